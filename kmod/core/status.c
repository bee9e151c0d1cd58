// SPDX-License-Identifier: GPL-2.0
/*
 * Statuses and their texts.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "core/status.h"
#include "core/text.h"

static struct rdmatensor_text *status_text_alloc(u16 len, gfp_t gfp)
{
	struct rdmatensor_text *text;

	text = rdmatensor_should_fail() ? NULL : kmalloc(struct_size(text, text, len), gfp);
	if (!text)
		return NULL;
	refcount_set(&text->ref, 1);
	text->len = len;
	return text;
}

static struct rdmatensor_text *status_text_get(struct rdmatensor_text *text)
{
	refcount_inc(&text->ref);
	return text;
}

void rdmatensor_text_put(struct rdmatensor_text *text)
{
	if (text && refcount_dec_and_test(&text->ref))
		kfree(text);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_text_put);

u16 rdmatensor_text_cut(const char *text, u16 len, u16 most)
{
	u16 cut;

	if (len <= most)
		return len;
	/* A character has four bytes at most, of which all but the first are 10xxxxxx */
	for (cut = most; cut && most - cut < 3 && (text[cut] & 0xc0) == 0x80; cut--)
		;
	return (text[cut] & 0xc0) == 0x80 ? most : cut;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_text_cut);

/* The text goes to terminals and logs, which may act on control characters */
static void status_text_clean(char *text, u16 len)
{
	u16 i;

	for (i = 0; i < len; i++) {
		if ((u8)text[i] < ' ' || text[i] == 0x7f)
			text[i] = ' ';
		if (i && rdmatensor_text_is_c1(&text[i - 1]))
			memset(&text[i - 1], ' ', 2);
	}
}

void rdmatensor_status_clear(struct rdmatensor_status *status)
{
	rdmatensor_text_put(status->whole);
	status->whole = NULL;
	status->error = 0;
	status->text_len = 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_status_clear);

void rdmatensor_status_init_copy(struct rdmatensor_status *to,
				 const struct rdmatensor_status *from)
{
	*to = *from;
	if (to->whole)
		status_text_get(to->whole);
}

void rdmatensor_status_copy(struct rdmatensor_status *to, const struct rdmatensor_status *from)
{
	rdmatensor_status_clear(to);
	rdmatensor_status_init_copy(to, from);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_status_copy);

void rdmatensor_status_set(struct rdmatensor_status *status, int error, const char *text)
{
	rdmatensor_status_clear(status);
	status->error = error;
	status->text_len = text ? min_t(size_t, strlen(text), sizeof(status->text)) : 0;
	memcpy(status->text, text ?: "", status->text_len);
}

void rdmatensor_status_say(struct rdmatensor_status *status, int error, const char *text,
			   u16 len, gfp_t gfp)
{
	rdmatensor_status_clear(status);
	status->error = error;
	status->text_len = rdmatensor_text_cut(text, len, sizeof(status->text));
	memcpy(status->text, text, status->text_len);
	status_text_clean(status->text, status->text_len);
	if (len <= sizeof(status->text))
		return;

	status->whole = status_text_alloc(len, gfp);
	if (!status->whole)
		return;
	memcpy(status->whole->text, text, len);
	status_text_clean(status->whole->text, len);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_status_say);

int rdmatensor_status_from_user(struct rdmatensor_status *status, int error, u64 text_uptr,
				u32 len)
{
	struct rdmatensor_text *whole = NULL;
	char *text = status->text;

	if (error >= 0 || error < -MAX_ERRNO || len > RDMATENSOR_STATUS_TEXT_MAX)
		return -EINVAL;
	if (len > sizeof(status->text)) {
		whole = status_text_alloc(len, RDMATENSOR_GFP_SPARING);
		if (!whole)
			return -ENOMEM;
		text = whole->text;
	}
	if (copy_from_user(text, u64_to_user_ptr(text_uptr), len)) {
		rdmatensor_text_put(whole);
		return -EFAULT;
	}

	status_text_clean(text, len);
	status->error = error;
	status->text_len = rdmatensor_text_cut(text, len, sizeof(status->text));
	if (whole)
		memcpy(status->text, text, status->text_len);
	status->whole = whole;
	return 0;
}

const char *rdmatensor_status_text(const struct rdmatensor_status *status, u16 *len)
{
	*len = status->whole ? status->whole->len : status->text_len;
	return status->whole ? status->whole->text : status->text;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_status_text);

void rdmatensor_texts_init(struct rdmatensor_texts *texts)
{
	memset(texts, 0, sizeof(*texts));
	spin_lock_init(&texts->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_texts_init);

void rdmatensor_texts_destroy(struct rdmatensor_texts *texts)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(texts->kept); i++)
		rdmatensor_text_put(texts->kept[i]);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_texts_destroy);

static struct rdmatensor_text **status_texts_place(struct rdmatensor_texts *texts, u32 id)
{
	lockdep_assert_held(&texts->lock);
	return &texts->kept[id % ARRAY_SIZE(texts->kept)];
}

u32 rdmatensor_texts_keep(struct rdmatensor_texts *texts, struct rdmatensor_text *text)
{
	struct rdmatensor_text **place, *old = NULL;
	u32 id;

	spin_lock_bh(&texts->lock);
	place = status_texts_place(texts, texts->last);
	/* All fetches of an aborted step have the same text */
	if (!*place || (*place)->len != text->len ||
	    memcmp((*place)->text, text->text, text->len)) {
		/* 0 is nobody's */
		if (!++texts->last)
			texts->last = 1;
		place = status_texts_place(texts, texts->last);
		old = *place;
		*place = status_text_get(text);
	}
	id = texts->last;
	spin_unlock_bh(&texts->lock);
	rdmatensor_text_put(old);
	return id;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_texts_keep);

struct rdmatensor_text *rdmatensor_texts_find(struct rdmatensor_texts *texts, u32 id)
{
	struct rdmatensor_text *text = NULL;

	spin_lock_bh(&texts->lock);
	if (id && texts->last - id < ARRAY_SIZE(texts->kept))
		text = *status_texts_place(texts, id);
	if (text)
		status_text_get(text);
	spin_unlock_bh(&texts->lock);
	return text;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_texts_find);
