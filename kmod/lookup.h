/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Look-ups: what a peer says of the rows that it exports, by TABLE_OPEN and TABLE_INFO.
 * One question at a time on a channel, in each direction.
 */
#ifndef RDMATENSOR_LOOKUP_H
#define RDMATENSOR_LOOKUP_H

#include <linux/mutex.h>
#include "channel.h"
#include "export.h"

/**
 * struct rdmatensor_lookup - both directions of one channel
 * @channel: whose
 * @exports: the context's, for the peer's questions
 * @lock: one asker at a time
 * @ask: the question, in the channel's queue. With the channel's lock, as all below:
 * @asking: it has no answer yet
 * @answered: it has, and @answer is that
 * @index: of the question
 * @first_key: that it asks for
 * @name: that it asks for
 * @name_len: its length; 0: the asker has given up
 * @answer: without pointers
 * @keys: of the answer, as many as a message has room for
 * @reply: the answer to the peer's question, in the channel's queue
 * @replying: it is
 * @reply_index: of the peer's question
 * @reply_first_key: likewise
 * @reply_name: likewise
 * @reply_name_len: its length
 */
struct rdmatensor_lookup {
	const struct rdmatensor_channel *channel;
	struct rdmatensor_exports *exports;
	struct mutex lock;
	struct rdmatensor_txmsg ask;
	bool asking;
	bool answered;
	u32 index;
	u32 first_key;
	char name[RDMATENSOR_NAME_MAX];
	u16 name_len;
	struct rdmatensor_msg answer;
	__le32 *keys;
	struct rdmatensor_txmsg reply;
	bool replying;
	u32 reply_index;
	u32 reply_first_key;
	char reply_name[RDMATENSOR_NAME_MAX];
	u16 reply_name_len;
};

/**
 * struct rdmatensor_lookup_result - an owner's rows
 * @info: rows
 * @addr: of the first one
 * @seg_shift: log2 of the distance at which keys change
 * @rkeys: info.nr_keys keys, the caller's, to be freed with kvfree()
 */
struct rdmatensor_lookup_result {
	struct rdmatensor_table_info info;
	u64 addr;
	u8 seg_shift;
	u32 *rkeys;
};

/* NULL: no memory */
struct rdmatensor_lookup *rdmatensor_lookup_alloc(struct rdmatensor_exports *exports,
						  const struct rdmatensor_channel *channel);
/* The channel is gone */
void rdmatensor_lookup_free(struct rdmatensor_lookup *lookup);

/**
 * rdmatensor_lookup_run - ask the peer
 * @channel: UP
 * @name: of the table
 * @name_len: its length
 * @deadline: in jiffies
 * @result: out
 *
 * Process context. Return: 0; -ENOENT: it has no such table, or what else it says;
 * -ENOTCONN: the channel has ended; -ETIMEDOUT; -EINTR; -EAGAIN: the table was
 * exported anew in between; -ENOMEM.
 */
int rdmatensor_lookup_run(struct rdmatensor_channel *channel, const char *name, u16 name_len,
			  unsigned long deadline, struct rdmatensor_lookup_result *result);

/* TABLE_OPEN and TABLE_INFO. Return: 0, or -EPROTO with @why */
int rdmatensor_lookup_message(struct rdmatensor_channel *channel,
			      const struct rdmatensor_msg *msg, const char **why);

#endif /* RDMATENSOR_LOOKUP_H */
