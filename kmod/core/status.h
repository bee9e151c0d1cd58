/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How something failed: an errno, and a text for people.
 *
 * Most texts are the module's own and fit into an entry of the ring, so a status has room
 * for that many bytes in itself. A longer one, which a publisher or a peer has written, is
 * beside that in memory that all copies of the status share, and that is charged to who has
 * brought it in. After a fetch has failed with one, its context keeps it for a while, where
 * the process can ask for it.
 */
#ifndef RDMATENSOR_STATUS_H
#define RDMATENSOR_STATUS_H

#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include "rdmatensor.h"

/**
 * struct rdmatensor_text - a text that an entry of the ring has no room for
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
 * Not copied by assignment, but by the calls below, unless its reference goes with it. One
 * that is zero needs no end.
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
 * rdmatensor_status_say - a text that somebody else has written
 * @status: what it had is let go
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
/* What @to had is let go */
void rdmatensor_status_copy(struct rdmatensor_status *to, const struct rdmatensor_status *from);
/* To memory that means nothing yet */
void rdmatensor_status_init_copy(struct rdmatensor_status *to,
				 const struct rdmatensor_status *from);
/* Zero again, but for the bytes of @text */
void rdmatensor_status_clear(struct rdmatensor_status *status);
/* All of its text, as long as it has it */
const char *rdmatensor_status_text(const struct rdmatensor_status *status, u16 *len);

/*
 * Bytes of @text that make at most @most: less by the beginning of a UTF-8 character that
 * would be cut in two
 */
u16 rdmatensor_text_cut(const char *text, u16 len, u16 most);

/**
 * struct rdmatensor_texts - those that a process can ask for
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
/* Any context. Return: its id, not 0; that of the newest one if that says the same */
u32 rdmatensor_texts_keep(struct rdmatensor_texts *texts, struct rdmatensor_text *text);
/* Referenced, to be put; NULL: it is not kept */
struct rdmatensor_text *rdmatensor_texts_find(struct rdmatensor_texts *texts, u32 id);
void rdmatensor_text_put(struct rdmatensor_text *text);

#endif /* RDMATENSOR_STATUS_H */
