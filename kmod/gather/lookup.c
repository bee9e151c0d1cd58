// SPDX-License-Identifier: GPL-2.0
/*
 * Look-ups.
 *
 * The keys of many rows do not fit one message: they are asked for piece by piece, and
 * every piece has to say the same of the rows.
 *
 * Each question has a slot, and the peer has a slot for each of them. If the peer holds
 * questions until it exports the table (FEATURE_TABLE_WAIT), a question replaces the one in
 * its slot that has no answer: a reader gives up by forgetting the question, can make an owner
 * keep no more names than there are slots, and drops a late answer. Other peers answer one
 * question at a time, and at once: there is one slot then, which is not free before the answer
 * has arrived, whether a caller waits for it or not.
 *
 * rdmatensor_wire_decode() has checked an owner's answer against its ranges. If the owner lies
 * within those, READs fail, or read what it exposes: they go to it alone, and have the length
 * that this side has chosen.
 *
 * All state is guarded by the channel's lock, and lives as long as the channel. An export calls
 * its waiters under the list's lock, which is taken inside the channel's: so the answer is sent
 * by a work item, which holds the channel.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "core/core.h"
#include "core/limits.h"
#include "gather/lookup.h"

/**
 * struct rdmatensor_question - a question to the peer, and its answer
 * @tx: the question, in the channel's queue
 * @lookup: whose
 * @slot: where
 * @index: its request index
 * @first_key: that it asks for
 * @name: that it asks for
 * @name_len: its length
 * @wait: until there are rows
 * @answered: @answer is valid
 * @answer: without pointers
 * @keys: of the answer, as many as fit into a message
 */
struct rdmatensor_question {
	struct rdmatensor_txmsg tx;
	struct rdmatensor_lookup *lookup;
	u32 slot;
	u32 index;
	u32 first_key;
	const char *name;
	u16 name_len;
	bool wait;
	bool answered;
	struct rdmatensor_msg answer;
	__le32 keys[];
};

static bool lookup_many(const struct rdmatensor_channel *channel)
{
	return channel->features & RDMATENSOR_WIRE_FEATURE_TABLE_WAIT;
}

static void lookup_fill_question(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	const struct rdmatensor_question *question =
		container_of(tx, struct rdmatensor_question, tx);

	msg->type = RDMATENSOR_WIRE_TABLE_OPEN;
	msg->flags = question->wait ? RDMATENSOR_WIRE_F_WAIT : 0;
	msg->request_index = question->index;
	msg->table.first_key = question->first_key;
	msg->name = question->name;
	msg->name_len = question->name_len;
}

static void lookup_posted_question(struct rdmatensor_txmsg *tx, u64 seq)
{
	const struct rdmatensor_question *question =
		container_of(tx, struct rdmatensor_question, tx);

	question->lookup->slots[question->slot].turns.asked =
		question->index / RDMATENSOR_WIRE_TABLE_SLOTS;
}

static u32 lookup_room(const struct rdmatensor_channel *channel)
{
	u32 bytes = min(channel->peer_slot_bytes, channel->params->msg_slot_bytes);

	return (bytes - sizeof(struct rdmatensor_wire_hdr) -
		sizeof(struct rdmatensor_wire_table)) / sizeof(__le32);
}

static void lookup_end_reply(struct rdmatensor_reply *reply)
{
	kfree(reply->waiter.name);
	reply->waiter.name = NULL;
	reply->state = RDMATENSOR_REPLY_IDLE;
}

static void lookup_posted_reply(struct rdmatensor_txmsg *tx, u64 seq)
{
	lookup_end_reply(container_of(tx, struct rdmatensor_reply, tx));
}

static void lookup_fill_reply(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	const struct rdmatensor_reply *reply = container_of(tx, struct rdmatensor_reply, tx);
	const struct rdmatensor_channel *channel = reply->lookup->channel;

	if (reply->waiter.name) {
		rdmatensor_export_answer(reply->lookup->exports, msg, reply->waiter.name,
					 reply->waiter.name_len, reply->first_key,
					 channel->msgbuf.rkeys, lookup_room(channel));
	} else {
		msg->type = RDMATENSOR_WIRE_TABLE_INFO;
		msg->flags = RDMATENSOR_WIRE_F_FAILED;
		msg->error = -ENOMEM;
	}
	msg->request_index = reply->index;
}

/* With the list's lock: the work item holds the channel, which is there while it has a waiter */
static void lookup_exported(struct rdmatensor_export_waiter *waiter)
{
	struct rdmatensor_lookup *lookup =
		container_of(waiter, struct rdmatensor_reply, waiter)->lookup;
	struct rdmatensor_channel *channel = lookup->channel;

	rdmatensor_channel_get(channel);
	if (!queue_work(channel->core->wq, &lookup->held_work))
		rdmatensor_channel_put(channel);
}

static void lookup_queue_reply(struct rdmatensor_channel *channel,
			       struct rdmatensor_reply *reply)
{
	reply->state = RDMATENSOR_REPLY_QUEUED;
	rdmatensor_channel_send(channel, &reply->tx);
}

static void lookup_held_work(struct work_struct *work)
{
	struct rdmatensor_lookup *lookup =
		container_of(work, struct rdmatensor_lookup, held_work);
	struct rdmatensor_channel *channel = lookup->channel;
	u32 i;

	spin_lock_bh(&channel->lock);
	if (rdmatensor_channel_usable(channel)) {
		for (i = 0; i < RDMATENSOR_WIRE_TABLE_SLOTS; i++) {
			struct rdmatensor_reply *reply = &lookup->replies[i];

			/* Not listed: exported() was called. Listed: removed, and answered now */
			if (reply->state == RDMATENSOR_REPLY_HELD &&
			    list_empty_careful(&reply->waiter.item))
				lookup_queue_reply(channel, reply);
		}
		rdmatensor_channel_pump(channel);
	}
	spin_unlock_bh(&channel->lock);
	rdmatensor_channel_put(channel);
}

struct rdmatensor_lookup *rdmatensor_lookup_alloc(struct rdmatensor_exports *exports,
						  struct rdmatensor_channel *channel)
{
	struct rdmatensor_lookup *lookup = kzalloc(sizeof(*lookup), RDMATENSOR_GFP_SPARING);
	u32 i;

	if (!lookup)
		return NULL;
	lookup->channel = channel;
	lookup->exports = exports;
	INIT_WORK(&lookup->held_work, lookup_held_work);
	for (i = 0; i < RDMATENSOR_WIRE_TABLE_SLOTS; i++) {
		struct rdmatensor_reply *reply = &lookup->replies[i];

		reply->lookup = lookup;
		reply->waiter.exported = lookup_exported;
		INIT_LIST_HEAD(&reply->waiter.item);
		INIT_LIST_HEAD(&reply->tx.item);
		reply->tx.fill = lookup_fill_reply;
		reply->tx.posted = lookup_posted_reply;
	}
	return lookup;
}

void rdmatensor_lookup_down(struct rdmatensor_channel *channel)
{
	struct rdmatensor_lookup *lookup = channel->lookup;
	u32 i;

	spin_lock_bh(&channel->lock);
	for (i = 0; i < RDMATENSOR_WIRE_TABLE_SLOTS; i++) {
		struct rdmatensor_reply *reply = &lookup->replies[i];

		rdmatensor_export_unwait(lookup->exports, &reply->waiter);
		lookup_end_reply(reply);
	}
	spin_unlock_bh(&channel->lock);
}

void rdmatensor_lookup_free(struct rdmatensor_lookup *lookup)
{
	kfree(lookup);
}

/*
 * A free slot in which the peer will answer. NULL: there is none. The last slot is for questions
 * that are answered at once: they must not wait behind those that the peer holds
 */
static struct rdmatensor_slot *lookup_free_slot(struct rdmatensor_channel *channel, bool wait)
{
	struct rdmatensor_slot *slots = channel->lookup->slots;
	u32 nr = lookup_many(channel) ? RDMATENSOR_WIRE_TABLE_SLOTS - wait : 1, i;

	for (i = 0; i < nr; i++)
		if (!slots[i].question &&
		    (lookup_many(channel) || slots[i].turns.asked == slots[i].turns.answered))
			return &slots[i];
	return NULL;
}

static bool lookup_take_slot(struct rdmatensor_channel *channel,
			     struct rdmatensor_question *question)
{
	struct rdmatensor_slot *slot;

	spin_lock_bh(&channel->lock);
	slot = lookup_free_slot(channel, question->wait);
	if (slot) {
		slot->question = question;
		question->slot = slot - channel->lookup->slots;
	}
	spin_unlock_bh(&channel->lock);
	return slot;
}

/* As the waits for the peer's answers end */
static int lookup_waited(long left)
{
	return left < 0 ? -EINTR : left ? 0 : -ETIMEDOUT;
}

/* Return: 0: @question has a slot */
static int lookup_enter(struct rdmatensor_channel *channel,
			struct rdmatensor_question *question, unsigned long deadline)
{
	bool mine = false;
	long left;

	left = wait_event_interruptible_timeout(channel->wait,
						(mine = lookup_take_slot(channel, question)) ||
						READ_ONCE(channel->state) !=
						RDMATENSOR_CHANNEL_UP,
						max_t(long, deadline - jiffies, 1));
	if (mine)
		return 0;
	return lookup_waited(left) ?: -ENOTCONN;
}

/* Frees the slot. A question that is still queued is not sent any more */
static void lookup_leave(struct rdmatensor_channel *channel,
			 struct rdmatensor_question *question)
{
	spin_lock_bh(&channel->lock);
	rdmatensor_channel_unsend(&question->tx);
	channel->lookup->slots[question->slot].question = NULL;
	spin_unlock_bh(&channel->lock);
	wake_up_all(&channel->wait);
}

/* One question and its answer, which stays in @question until the next one */
static int lookup_ask(struct rdmatensor_channel *channel, struct rdmatensor_question *question,
		      u32 first_key, unsigned long deadline)
{
	struct rdmatensor_slot *slot = &channel->lookup->slots[question->slot];
	long left;
	int ret = 0;

	spin_lock_bh(&channel->lock);
	if (!rdmatensor_channel_usable(channel)) {
		spin_unlock_bh(&channel->lock);
		return -ENOTCONN;
	}
	question->index = rdmatensor_turns_next(&slot->turns) * RDMATENSOR_WIRE_TABLE_SLOTS +
			  question->slot;
	question->answered = false;
	question->first_key = first_key;
	rdmatensor_channel_send(channel, &question->tx);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);

	left = wait_event_interruptible_timeout(channel->wait, READ_ONCE(question->answered) ||
						READ_ONCE(channel->state) !=
						RDMATENSOR_CHANNEL_UP,
						max_t(long, deadline - jiffies, 1));
	spin_lock_bh(&channel->lock);
	if (question->answered)
		ret = question->answer.flags & RDMATENSOR_WIRE_F_FAILED ?
		      rdmatensor_wire_errno(question->answer.error) : 0;
	else
		ret = lookup_waited(left) ?: -ENOTCONN;
	spin_unlock_bh(&channel->lock);
	return ret;
}

static bool lookup_same(const struct rdmatensor_msg *answer,
			const struct rdmatensor_lookup_result *result)
{
	return answer->table.row_start == result->info.row_start &&
	       answer->table.row_end == result->info.row_end &&
	       answer->table.row_bytes == result->info.row_bytes &&
	       answer->table.stride == result->info.stride &&
	       answer->table.data_type == result->info.data_type &&
	       answer->remote_addr == result->addr && answer->seg_shift == result->seg_shift;
}

/* Takes the keys of an answer over. Return: 0, or why that cannot be */
static int lookup_take(const struct rdmatensor_question *question,
		       struct rdmatensor_lookup_result *result, u32 first_key)
{
	const struct rdmatensor_msg *answer = &question->answer;
	u32 i;

	if (!first_key) {
		result->info = answer->table;
		result->addr = answer->remote_addr;
		result->seg_shift = answer->seg_shift;
		result->rkeys = kvmalloc_array(answer->table.nr_keys, sizeof(*result->rkeys),
					       RDMATENSOR_GFP_SPARING);
		if (!result->rkeys)
			return -ENOMEM;
	} else if (!lookup_same(answer, result)) {
		return -EAGAIN;
	}
	if (answer->table.first_key != first_key)
		return -EPROTO;
	for (i = 0; i < answer->nr_rkeys; i++)
		result->rkeys[first_key + i] = le32_to_cpu(question->keys[i]);
	return 0;
}

int rdmatensor_lookup_run(struct rdmatensor_channel *channel, const char *name, u16 name_len,
			  bool wait, unsigned long deadline,
			  struct rdmatensor_lookup_result *result)
{
	struct rdmatensor_question *question;
	u32 have = 0;
	int ret;

	memset(result, 0, sizeof(*result));
	/* @keys can hold those of any message that fits a slot */
	question = kvzalloc(struct_size(question, keys, channel->params->msg_slot_bytes /
					sizeof(__le32)), RDMATENSOR_GFP_SPARING);
	if (!question)
		return -ENOMEM;
	INIT_LIST_HEAD(&question->tx.item);
	question->tx.fill = lookup_fill_question;
	question->tx.posted = lookup_posted_question;
	question->lookup = channel->lookup;
	question->name = name;
	question->name_len = name_len;
	question->wait = wait;
	ret = lookup_enter(channel, question, deadline);
	if (ret)
		goto out_free;
	do {
		ret = lookup_ask(channel, question, have, deadline);
		if (!ret)
			ret = lookup_take(question, result, have);
		if (!ret)
			have += question->answer.nr_rkeys;
		/* An owner may give them one by one, each in time */
		if (!ret && have < result->info.nr_keys && time_after_eq(jiffies, deadline))
			ret = -ETIMEDOUT;
	} while (!ret && have < result->info.nr_keys);
	lookup_leave(channel, question);
	if (ret) {
		kvfree(result->rkeys);
		result->rkeys = NULL;
	}
out_free:
	kvfree(question);
	return ret;
}

static int lookup_question(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			   const char **why)
{
	struct rdmatensor_lookup *lookup = channel->lookup;
	bool many = lookup_many(channel);
	struct rdmatensor_reply *reply =
		&lookup->replies[many ? msg->request_index % RDMATENSOR_WIRE_TABLE_SLOTS : 0];

	if (!many && reply->state != RDMATENSOR_REPLY_IDLE) {
		*why = "a second TABLE_OPEN before the answer to the first";
		return -EPROTO;
	}
	if (!many && msg->flags & RDMATENSOR_WIRE_F_WAIT) {
		*why = "TABLE_OPEN that waits, from who does not know of it";
		return -EPROTO;
	}
	/* Replaces the question in the slot, if that has no answer yet */
	rdmatensor_channel_unsend(&reply->tx);
	rdmatensor_export_unwait(lookup->exports, &reply->waiter);
	lookup_end_reply(reply);
	reply->index = msg->request_index;
	reply->first_key = msg->table.first_key;
	reply->waiter.name = kmemdup(msg->name, msg->name_len,
				     GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	reply->waiter.name_len = msg->name_len;
	if (msg->flags & RDMATENSOR_WIRE_F_WAIT && reply->waiter.name &&
	    rdmatensor_export_wait(lookup->exports, &reply->waiter)) {
		reply->state = RDMATENSOR_REPLY_HELD;
		return 0;
	}
	lookup_queue_reply(channel, reply);
	rdmatensor_channel_pump(channel);
	return 0;
}

static int lookup_answer(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			 const char **why)
{
	struct rdmatensor_slot *slot =
		&channel->lookup->slots[msg->request_index % RDMATENSOR_WIRE_TABLE_SLOTS];
	struct rdmatensor_question *question = slot->question;
	u32 number = msg->request_index / RDMATENSOR_WIRE_TABLE_SLOTS;

	if (!rdmatensor_turns_is_due(&slot->turns, number)) {
		*why = "TABLE_INFO that was not asked for";
		return -EPROTO;
	}
	slot->turns.answered = number;
	if (question && question->index == msg->request_index) {
		question->answer = *msg;
		/* It fits: the message was no longer than an own slot */
		if (msg->nr_rkeys)
			memcpy(question->keys, msg->rkeys,
			       msg->nr_rkeys * sizeof(*msg->rkeys));
		WRITE_ONCE(question->answered, true);
	} else {
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_STRAY);
	}
	wake_up_all(&channel->wait);
	return 0;
}

int rdmatensor_lookup_message(struct rdmatensor_channel *channel,
			      const struct rdmatensor_msg *msg, const char **why)
{
	int ret = 0;

	spin_lock_bh(&channel->lock);
	if (rdmatensor_channel_usable(channel))
		ret = msg->type == RDMATENSOR_WIRE_TABLE_OPEN ?
		      lookup_question(channel, msg, why) : lookup_answer(channel, msg, why);
	spin_unlock_bh(&channel->lock);
	return ret;
}
