/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Look-ups: what a peer says of the rows that it exports, by TABLE_OPEN and TABLE_INFO.
 */
#ifndef RDMATENSOR_LOOKUP_H
#define RDMATENSOR_LOOKUP_H

#include "core/turns.h"
#include "gather/export.h"
#include "transport/channel.h"

/**
 * enum rdmatensor_reply_state - of the peer's question in a slot
 * @RDMATENSOR_REPLY_IDLE: there is none
 * @RDMATENSOR_REPLY_HELD: its rows are not there yet
 * @RDMATENSOR_REPLY_QUEUED: the answer is in the channel's queue
 */
enum rdmatensor_reply_state {
	RDMATENSOR_REPLY_IDLE,
	RDMATENSOR_REPLY_HELD,
	RDMATENSOR_REPLY_QUEUED,
};

/**
 * struct rdmatensor_reply - a slot for a question of the peer's
 * @lookup: whose
 * @state: enum rdmatensor_reply_state
 * @tx: the answer
 * @waiter: while HELD; its name is that of the question, allocated; NULL: there was no memory
 * @index: of the question
 * @first_key: that it asks for
 */
struct rdmatensor_reply {
	struct rdmatensor_lookup *lookup;
	u8 state;
	struct rdmatensor_txmsg tx;
	struct rdmatensor_export_waiter waiter;
	u32 index;
	u32 first_key;
};

/**
 * struct rdmatensor_slot - a slot for a question of ours
 * @question: that is waited for; NULL: none
 * @turns: numbers of those that are asked here
 */
struct rdmatensor_slot {
	struct rdmatensor_question *question;
	struct rdmatensor_turns turns;
};

/**
 * struct rdmatensor_lookup - both directions of one channel, guarded by its lock
 * @channel: whose
 * @exports: the context's, for the peer's questions
 * @slots: own questions
 * @replies: the peer's
 * @held_work: sends the answers that were HELD and can be given now
 */
struct rdmatensor_lookup {
	struct rdmatensor_channel *channel;
	struct rdmatensor_exports *exports;
	struct rdmatensor_slot slots[RDMATENSOR_WIRE_TABLE_SLOTS];
	struct rdmatensor_reply replies[RDMATENSOR_WIRE_TABLE_SLOTS];
	struct work_struct held_work;
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
						  struct rdmatensor_channel *channel);
/* The channel is DOWN: nothing of it waits for an export any more. Process context */
void rdmatensor_lookup_down(struct rdmatensor_channel *channel);
/* Frees what rdmatensor_lookup_alloc() returned; the channel is gone */
void rdmatensor_lookup_free(struct rdmatensor_lookup *lookup);

/**
 * rdmatensor_lookup_run - ask the peer
 * @channel: UP
 * @name: of the table
 * @name_len: its length
 * @wait: until the peer exports the table; it must have FEATURE_TABLE_WAIT
 * @deadline: in jiffies
 * @result: out
 *
 * Process context.
 *
 * Return: 0; -ENOENT, or another errno that the peer answered;
 * -ENOTCONN: the channel has ended; -ETIMEDOUT; -EINTR; -EAGAIN: the table was
 * exported again in between; -ENOMEM.
 */
int rdmatensor_lookup_run(struct rdmatensor_channel *channel, const char *name, u16 name_len,
			  bool wait, unsigned long deadline,
			  struct rdmatensor_lookup_result *result);

/* TABLE_OPEN and TABLE_INFO. Return: 0, or -EPROTO with @why */
int rdmatensor_lookup_message(struct rdmatensor_channel *channel,
			      const struct rdmatensor_msg *msg, const char **why);

#endif /* RDMATENSOR_LOOKUP_H */
