// SPDX-License-Identifier: GPL-2.0
/*
 * Statuses: what is taken over of a text, who holds it, and which ones a context keeps.
 */
#include <kunit/test.h>
#include <linux/slab.h>
#include "core/status.h"

/* A character of each length, so that whatever byte a text is cut at is in one or between two */
#define MIXED "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"

static const struct cut {
	const char *text;
	u16 most;
	u16 left;
} cuts[] = {
	{ "", 0, 0 }, { "abc", 3, 3 }, { "abc", 4, 3 }, { "abc", 2, 2 }, { "abc", 0, 0 },
	{ MIXED, 10, 10 }, { MIXED, 9, 6 }, { MIXED, 8, 6 }, { MIXED, 7, 6 }, { MIXED, 6, 6 },
	{ MIXED, 5, 3 }, { MIXED, 4, 3 }, { MIXED, 3, 3 }, { MIXED, 2, 1 }, { MIXED, 1, 1 },
	/* None of it is UTF-8: then bytes are as good as characters */
	{ "\x80\x80\x80\x80\x80\x80\x80\x80", 5, 5 }, { "\x80\x80", 1, 1 },
	{ "\xff\xff\xff", 2, 2 },
};

static void cut_between_characters(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cuts); i++)
		KUNIT_EXPECT_EQ_MSG(test, rdmatensor_text_cut(cuts[i].text, strlen(cuts[i].text),
							      cuts[i].most),
				    cuts[i].left, "%u", i);
}

static void no_control_characters(struct kunit *test)
{
	struct rdmatensor_status status = {};
	const char *text;
	char said[256];
	u16 len, i, j;

	for (i = 0; i < sizeof(said); i++)
		said[i] = i;
	/* Short and long: both are cleaned */
	for (j = 64; j <= sizeof(said); j += 64) {
		rdmatensor_status_say(&status, -EIO, said, j, GFP_KERNEL);
		text = rdmatensor_status_text(&status, &len);
		KUNIT_EXPECT_EQ(test, len, j);
		for (i = 0; i < j; i++)
			KUNIT_EXPECT_EQ(test, (u8)text[i], i < ' ' || i == 0x7f ? ' ' : i);
		for (i = 0; i < status.text_len; i++)
			KUNIT_EXPECT_EQ(test, status.text[i], text[i]);
	}
	/* Those beyond ASCII, and what begins like them */
	rdmatensor_status_say(&status, -EIO, "a\xc2\x9bz\xc2\x80\xc2\xa9\xc2", 9, GFP_KERNEL);
	text = rdmatensor_status_text(&status, &len);
	KUNIT_EXPECT_EQ(test, len, 9);
	KUNIT_EXPECT_EQ(test, memcmp(text, "a  z  \xc2\xa9\xc2", 9), 0);
	rdmatensor_status_clear(&status);
}

static void held_by_all_copies(struct kunit *test)
{
	struct rdmatensor_status first = {}, second = {};
	struct rdmatensor_texts *texts = kunit_kzalloc(test, sizeof(*texts), GFP_KERNEL);
	struct rdmatensor_text *text;
	char *said = kunit_kzalloc(test, RDMATENSOR_STATUS_TEXT_MAX, GFP_KERNEL);
	u32 id;
	u16 len;

	KUNIT_ASSERT_NOT_NULL(test, texts);
	KUNIT_ASSERT_NOT_NULL(test, said);
	rdmatensor_texts_init(texts);
	memset(said, 'x', RDMATENSOR_STATUS_TEXT_MAX);
	rdmatensor_status_say(&first, -EIO, said, RDMATENSOR_TEXT_MAX, GFP_KERNEL);
	KUNIT_EXPECT_NULL(test, first.whole);
	rdmatensor_status_say(&first, -EIO, said, RDMATENSOR_TEXT_MAX + 1, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, first.whole);
	rdmatensor_status_say(&first, -EIO, said, RDMATENSOR_STATUS_TEXT_MAX, GFP_KERNEL);
	rdmatensor_status_copy(&second, &first);
	rdmatensor_status_copy(&second, &first);
	KUNIT_EXPECT_EQ(test, refcount_read(&first.whole->ref), 2);
	id = rdmatensor_texts_keep(texts, first.whole);
	KUNIT_EXPECT_EQ(test, refcount_read(&first.whole->ref), 3);
	rdmatensor_status_clear(&first);
	KUNIT_EXPECT_NULL(test, first.whole);
	rdmatensor_status_text(&first, &len);
	KUNIT_EXPECT_EQ(test, len, 0);
	rdmatensor_status_clear(&second);

	text = rdmatensor_texts_find(texts, id);
	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_EXPECT_EQ(test, refcount_read(&text->ref), 2);
	KUNIT_EXPECT_EQ(test, memcmp(text->text, said, RDMATENSOR_STATUS_TEXT_MAX), 0);
	rdmatensor_texts_destroy(texts);
	KUNIT_EXPECT_EQ(test, refcount_read(&text->ref), 1);
	rdmatensor_text_put(text);
}

static u32 keep(struct rdmatensor_texts *texts, u32 number)
{
	struct rdmatensor_status status = {};
	char said[200];
	u32 id;

	memset(said, 'x', sizeof(said));
	memcpy(said + sizeof(said) - 8, "        ", 8);
	snprintf(said + sizeof(said) - 8, 8, "%07u", number);
	rdmatensor_status_say(&status, -EIO, said, sizeof(said) - 1, GFP_KERNEL);
	id = status.whole ? rdmatensor_texts_keep(texts, status.whole) : 0;
	rdmatensor_status_clear(&status);
	return id;
}

/* And is no other one */
static bool is_kept(struct kunit *test, struct rdmatensor_texts *texts, u32 id, u32 number)
{
	struct rdmatensor_text *text = rdmatensor_texts_find(texts, id);
	char said[8];
	bool same;

	if (!text)
		return false;
	snprintf(said, sizeof(said), "%07u", number);
	same = !memcmp(text->text + text->len - 7, said, 7);
	KUNIT_EXPECT_TRUE_MSG(test, same, "%u is not text %u", id, number);
	rdmatensor_text_put(text);
	return true;
}

/* From that id on: the ids' numbers begin again after the last one, without 0 */
static void keep_many(struct kunit *test, u32 last)
{
	struct rdmatensor_texts *texts = kunit_kzalloc(test, sizeof(*texts), GFP_KERNEL);
	static u32 ids[3 * RDMATENSOR_STATUS_TEXTS];
	u32 i, j;

	KUNIT_ASSERT_NOT_NULL(test, texts);
	rdmatensor_texts_init(texts);
	texts->last = last;
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ids[i] = keep(texts, i);
		KUNIT_EXPECT_NE(test, ids[i], 0);
		/* The same once more is no other */
		KUNIT_EXPECT_EQ(test, keep(texts, i), ids[i]);
		KUNIT_EXPECT_FALSE(test, is_kept(test, texts, 0, i));
		KUNIT_EXPECT_FALSE(test, is_kept(test, texts, ids[i] + 1, i));
		for (j = 0; j <= i; j++) {
			bool kept = is_kept(test, texts, ids[j], j);

			if (i - j < RDMATENSOR_STATUS_TEXTS - 1)
				KUNIT_EXPECT_TRUE_MSG(test, kept, "%u at %u", j, i);
			if (i - j >= RDMATENSOR_STATUS_TEXTS)
				KUNIT_EXPECT_FALSE_MSG(test, kept, "%u at %u", j, i);
		}
	}
	rdmatensor_texts_destroy(texts);
}

static void keeps_the_last(struct kunit *test)
{
	keep_many(test, 0);
}

static void ids_begin_anew(struct kunit *test)
{
	keep_many(test, U32_MAX - RDMATENSOR_STATUS_TEXTS / 2);
}

static struct kunit_case status_tests[] = {
	KUNIT_CASE(cut_between_characters),
	KUNIT_CASE(no_control_characters),
	KUNIT_CASE(held_by_all_copies),
	KUNIT_CASE(keeps_the_last),
	KUNIT_CASE(ids_begin_anew),
	{}
};

static struct kunit_suite status_suite = {
	.name = "rdmatensor_status",
	.test_cases = status_tests,
};

kunit_test_suite(status_suite);
