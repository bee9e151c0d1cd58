// SPDX-License-Identifier: GPL-2.0
/*
 * Look-ups.
 *
 * The keys of many rows do not fit one message: they are asked for piece by piece, and
 * every piece has to say the same of the rows. Whoever asks may give up before the answer
 * is there; the question then stays open, and the next asker waits for its answer before
 * it asks, so that the peer never has two.
 *
 * What an owner says has been held to its ranges by rdmatensor_wire_decode(). If it lies
 * beyond that, READs fail, or read what it lets be read: they go to it and nobody else,
 * and are of the length that this side wants.
 *
 * All state is guarded by the channel's lock, and lives as long as the channel.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "lookup.h"

static void lookup_fill_ask(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	struct rdmatensor_lookup *lookup = container_of(tx, struct rdmatensor_lookup, ask);

	msg->type = RDMATENSOR_WIRE_TABLE_OPEN;
	msg->request_index = lookup->index;
	msg->table.first_key = lookup->first_key;
	msg->name = lookup->name;
	msg->name_len = lookup->name_len;
}

static void lookup_posted_ask(struct rdmatensor_txmsg *tx, u64 seq)
{
}

static u32 lookup_room(const struct rdmatensor_channel *channel)
{
	u32 bytes = min(channel->peer_slot_bytes, channel->params.msg_slot_bytes);

	return (bytes - sizeof(struct rdmatensor_wire_hdr) -
		sizeof(struct rdmatensor_wire_table)) / sizeof(__le32);
}

static void lookup_posted_reply(struct rdmatensor_txmsg *tx, u64 seq)
{
	struct rdmatensor_lookup *lookup = container_of(tx, struct rdmatensor_lookup, reply);

	lookup->replying = false;
}

static void lookup_fill_reply(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	struct rdmatensor_lookup *lookup = container_of(tx, struct rdmatensor_lookup, reply);
	const struct rdmatensor_channel *channel = lookup->channel;

	rdmatensor_export_answer(lookup->exports, msg, lookup->reply_name,
				 lookup->reply_name_len, lookup->reply_first_key,
				 channel->msgbuf.rkeys, lookup_room(channel));
	msg->request_index = lookup->reply_index;
}

struct rdmatensor_lookup *rdmatensor_lookup_alloc(struct rdmatensor_exports *exports,
						  const struct rdmatensor_channel *channel)
{
	struct rdmatensor_lookup *lookup = kzalloc(sizeof(*lookup), GFP_KERNEL_ACCOUNT);

	if (!lookup)
		return NULL;
	lookup->channel = channel;
	lookup->keys = kvmalloc(channel->params.msg_slot_bytes, GFP_KERNEL_ACCOUNT);
	if (!lookup->keys) {
		kfree(lookup);
		return NULL;
	}
	lookup->exports = exports;
	mutex_init(&lookup->lock);
	INIT_LIST_HEAD(&lookup->ask.item);
	lookup->ask.fill = lookup_fill_ask;
	lookup->ask.posted = lookup_posted_ask;
	INIT_LIST_HEAD(&lookup->reply.item);
	lookup->reply.fill = lookup_fill_reply;
	lookup->reply.posted = lookup_posted_reply;
	return lookup;
}

void rdmatensor_lookup_free(struct rdmatensor_lookup *lookup)
{
	if (!lookup)
		return;
	mutex_destroy(&lookup->lock);
	kvfree(lookup->keys);
	kfree(lookup);
}

/* One question and its answer, which is in @lookup as long as its lock is held */
static int lookup_ask(struct rdmatensor_channel *channel, struct rdmatensor_lookup *lookup,
		      const char *name, u16 name_len, u32 first_key, unsigned long deadline)
{
	long left;
	int ret = 0;

	lockdep_assert_held(&lookup->lock);
	/* Somebody may have given up on a question that the peer still has */
	left = wait_event_interruptible_timeout(channel->wait, !READ_ONCE(lookup->asking) ||
						READ_ONCE(channel->state) !=
						RDMATENSOR_CHANNEL_UP,
						max_t(long, deadline - jiffies, 1));
	if (left <= 0)
		return left ? -EINTR : -ETIMEDOUT;

	spin_lock_bh(&channel->lock);
	if (!rdmatensor_channel_usable(channel)) {
		spin_unlock_bh(&channel->lock);
		return -ENOTCONN;
	}
	lookup->asking = true;
	lookup->answered = false;
	lookup->index = (lookup->index + 1) & S32_MAX;
	lookup->first_key = first_key;
	memcpy(lookup->name, name, name_len);
	lookup->name_len = name_len;
	rdmatensor_channel_send(channel, &lookup->ask);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);

	left = wait_event_interruptible_timeout(channel->wait, READ_ONCE(lookup->answered) ||
						READ_ONCE(channel->state) !=
						RDMATENSOR_CHANNEL_UP,
						max_t(long, deadline - jiffies, 1));
	spin_lock_bh(&channel->lock);
	if (lookup->answered)
		ret = lookup->answer.flags & RDMATENSOR_WIRE_F_FAILED ? lookup->answer.error : 0;
	else
		ret = left < 0 ? -EINTR : left ? -ENOTCONN : -ETIMEDOUT;
	/* What has not been posted yet need not be */
	if (!lookup->answered && rdmatensor_channel_unsend(&lookup->ask))
		lookup->asking = false;
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
static int lookup_take(struct rdmatensor_lookup *lookup,
		       struct rdmatensor_lookup_result *result, u32 first_key)
{
	const struct rdmatensor_msg *answer = &lookup->answer;
	u32 i;

	if (!first_key) {
		result->info = answer->table;
		result->addr = answer->remote_addr;
		result->seg_shift = answer->seg_shift;
		result->rkeys = kvmalloc_array(answer->table.nr_keys, sizeof(*result->rkeys),
					       GFP_KERNEL_ACCOUNT);
		if (!result->rkeys)
			return -ENOMEM;
	} else if (!lookup_same(answer, result)) {
		return -EAGAIN;
	}
	if (answer->table.first_key != first_key)
		return -EPROTO;
	for (i = 0; i < answer->nr_rkeys; i++)
		result->rkeys[first_key + i] = le32_to_cpu(lookup->keys[i]);
	return 0;
}

int rdmatensor_lookup_run(struct rdmatensor_channel *channel, const char *name, u16 name_len,
			  unsigned long deadline, struct rdmatensor_lookup_result *result)
{
	struct rdmatensor_lookup *lookup = channel->lookup;
	u32 have = 0;
	int ret;

	memset(result, 0, sizeof(*result));
	ret = mutex_lock_interruptible(&lookup->lock);
	if (ret)
		return ret;
	do {
		ret = lookup_ask(channel, lookup, name, name_len, have, deadline);
		if (!ret)
			ret = lookup_take(lookup, result, have);
		if (!ret)
			have += lookup->answer.nr_rkeys;
	} while (!ret && have < result->info.nr_keys);
	mutex_unlock(&lookup->lock);
	if (ret) {
		kvfree(result->rkeys);
		result->rkeys = NULL;
	}
	return ret;
}

static int lookup_question(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			   const char **why)
{
	struct rdmatensor_lookup *lookup = channel->lookup;

	if (lookup->replying) {
		*why = "a second TABLE_OPEN before the answer to the first";
		return -EPROTO;
	}
	lookup->replying = true;
	lookup->reply_index = msg->request_index;
	lookup->reply_first_key = msg->table.first_key;
	lookup->reply_name_len = msg->name_len;
	memcpy(lookup->reply_name, msg->name, msg->name_len);
	rdmatensor_channel_send(channel, &lookup->reply);
	rdmatensor_channel_pump(channel);
	return 0;
}

static int lookup_answer(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			 const char **why)
{
	struct rdmatensor_lookup *lookup = channel->lookup;

	if (!lookup->asking || !list_empty(&lookup->ask.item) ||
	    msg->request_index != lookup->index) {
		*why = "TABLE_INFO that was not asked for";
		return -EPROTO;
	}
	lookup->answer = *msg;
	/* It fits: the message was no longer than an own slot */
	if (msg->nr_rkeys)
		memcpy(lookup->keys, msg->rkeys, msg->nr_rkeys * sizeof(*msg->rkeys));
	WRITE_ONCE(lookup->asking, false);
	WRITE_ONCE(lookup->answered, true);
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
