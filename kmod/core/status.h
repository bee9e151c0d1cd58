/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How something failed: an errno, and a text for people.
 *
 * Most texts are the module's own and fit into an entry of the ring, so a status has space for
 * that many bytes in itself. A longer one, which a publisher or a peer has written, is in
 * memory that all copies of the status share, charged to the context that received it. After
 * a fetch has failed with it, its context keeps it for a while, so that the process can query
 * it.
 */
#ifndef RDMATENSOR_STATUS_H
#define RDMATENSOR_STATUS_H

#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include "rdmatensor.h"

/**
 * struct rdmatensor_text - a text that does not fit into an entry of the ring
 * @ref: statuses that have it, and the texts that a context keeps
 * @len: bytes of @text, at most RDMATENSOR_STATUS_TEXT_MAX
 * @text: not zero-terminated, without control characters
 */
struct rdmatensor_text {
	refcount_t ref;
	u16 len;
	char text[] __counted_by(len);
};

/**
 * struct rdmatensor_status - how something failed
 * @error: negative errno, 0: it did not fail
 * @text_len: valid bytes of @text
 * @text: for people, not zero-terminated
 * @whole: referenced: what @text is the beginning of; NULL: @text is all
 *
 * Copied by the calls below, or by assignment if the reference moves with it. A zeroed status
 * needs no rdmatensor_status_clear().
 */
struct rdmatensor_status {
	int error;
	u16 text_len;
	char text[RDMATENSOR_TEXT_MAX];
	struct rdmatensor_text *whole;
};

/* A text of the module's own, cut to RDMATENSOR_TEXT_MAX bytes; may be NULL */
void rdmatensor_status_set(struct rdmatensor_status *status, int error, const char *text);
/**
 * rdmatensor_status_say - set a text of a publisher or a peer
 * @status: its former text is released
 * @error: negative errno
 * @text: any bytes; control characters are taken for spaces
 * @len: its length, at most RDMATENSOR_STATUS_TEXT_MAX
 * @gfp: for one that is long. If there is no memory its beginning has to do
 */
void rdmatensor_status_say(struct rdmatensor_status *status, int error, const char *text,
			   u16 len, gfp_t gfp);
/*
 * As above, from the process's memory, into one that is zero. Return: 0, -EINVAL: @error is
 * none, or @len too long, -EFAULT, -ENOMEM; nothing is held then
 */
int rdmatensor_status_from_user(struct rdmatensor_status *status, int error, u64 text_uptr,
				u32 len);
/* Copies; the former text of @to is released */
void rdmatensor_status_copy(struct rdmatensor_status *to, const struct rdmatensor_status *from);
/* Copies to memory that is not initialised */
void rdmatensor_status_init_copy(struct rdmatensor_status *to,
				 const struct rdmatensor_status *from);
/* Releases the text, and zeroes all but the bytes of @text */
void rdmatensor_status_clear(struct rdmatensor_status *status);
/* The whole text; valid as long as the status has it */
const char *rdmatensor_status_text(const struct rdmatensor_status *status, u16 *len);

/*
 * Bytes of @text that make at most @most: less by the beginning of a UTF-8 character that
 * would be cut in two
 */
u16 rdmatensor_text_cut(const char *text, u16 len, u16 most);

/**
 * struct rdmatensor_texts - the texts that a process can query
 * @lock: guards all below; taken in completion context
 * @last: id of the newest one, 0: there is none yet
 * @kept: referenced: the newest ones, each at its id modulo their number
 */
struct rdmatensor_texts {
	spinlock_t lock;
	u32 last;
	struct rdmatensor_text *kept[RDMATENSOR_STATUS_TEXTS];
};

void rdmatensor_texts_init(struct rdmatensor_texts *texts);
void rdmatensor_texts_destroy(struct rdmatensor_texts *texts);
/* Keeps a text. Any context. Return: its id, not 0; the newest text's if that is equal */
u32 rdmatensor_texts_keep(struct rdmatensor_texts *texts, struct rdmatensor_text *text);
/* A text, referenced for the caller to put; NULL: it is not kept any more */
struct rdmatensor_text *rdmatensor_texts_find(struct rdmatensor_texts *texts, u32 id);
void rdmatensor_text_put(struct rdmatensor_text *text);

#endif /* RDMATENSOR_STATUS_H */
