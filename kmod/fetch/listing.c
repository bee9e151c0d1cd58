// SPDX-License-Identifier: GPL-2.0
/*
 * Lists.
 *
 *	WAITING -> ASKED -> DONE
 *	WAITING -> DONE (cancel, deadline, end of the channel)
 *
 * A list is read piece by piece: each question names the cursor behind which the answer begins,
 * so the peer keeps nothing between two of them, and a slow reader costs it nothing.
 * A question has a slot, and a list that has none waits for one, in order. The question replaces
 * the one in its slot that has no answer, as in lookup.c, so that an operation which ends forgets
 * its question, and drops the late answer.
 *
 * What arrives has been checked entry by entry (rdmatensor_wire_decode()), and is copied to the
 * destination by the CPU: no peer gets a key for it, and an operation that is cancelled ends at
 * once. Cursors grow, so that a peer cannot make an operation go round.
 *
 * All state is guarded by the channel's lock, inside which that of the rendezvous table is taken,
 * and lives as long as the channel. An operation holds its channel.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/core.h"
#include "core/fault.h"
#include "core/limits.h"
#include "core/rendezvous.h"
#include "core/turns.h"
#include "fetch/listing.h"

enum listing_state {
	LISTING_WAITING,
	LISTING_ASKED,
	LISTING_DONE,
};

/**
 * struct rdmatensor_listing - one LIST
 * @op: the operation; its first reference is this machine's, until DONE
 * @channel: asked, referenced; NULL: the context itself
 * @tx: the question
 * @item: in the channel's list while WAITING
 * @state: enum listing_state, changed by listing_move() alone
 * @slot: where it is ASKED
 * @index: request index of the last question
 * @cursor: behind what has been written
 * @offset: of the destination in the operation's pool
 * @room: bytes of the destination
 * @stop: of the context's own: why it is to end, 0: it goes on
 * @written: of these
 * @prefix_len: bytes of @prefix
 * @prefix: not zero-terminated
 */
struct rdmatensor_listing {
	struct rdmatensor_operation op;
	struct rdmatensor_channel *channel;
	struct rdmatensor_txmsg tx;
	struct list_head item;
	u8 state;
	u8 slot;
	u32 index;
	u64 cursor;
	u64 offset;
	u64 room;
	u64 written;
	int stop;
	u16 prefix_len;
	char prefix[];
};

/**
 * struct listing_slot - a slot for own questions
 * @listing: that is ASKED here; NULL: none
 * @turns: numbers of the questions
 */
struct listing_slot {
	struct rdmatensor_listing *listing;
	struct rdmatensor_turns turns;
};

/**
 * struct listing_reply - a slot for a question of the peer's
 * @listings: whose
 * @tx: the answer, in the channel's queue as long as it is due
 * @index: of the question
 * @cursor: behind which the answer begins
 * @prefix: allocated; NULL: it is empty, or there was no memory
 * @prefix_len: bytes of it
 */
struct listing_reply {
	struct rdmatensor_listings *listings;
	struct rdmatensor_txmsg tx;
	u32 index;
	u64 cursor;
	char *prefix;
	u16 prefix_len;
};

/**
 * struct rdmatensor_listings - both directions of one channel
 * @channel: whose
 * @waiting: lists without a slot, the oldest first
 * @slots: for own questions
 * @replies: for the peer's
 */
struct rdmatensor_listings {
	struct rdmatensor_channel *channel;
	struct list_head waiting;
	struct listing_slot slots[RDMATENSOR_WIRE_LIST_SLOTS];
	struct listing_reply replies[RDMATENSOR_WIRE_LIST_SLOTS];
};

static struct rdmatensor_listing *to_listing(const struct rdmatensor_operation *op)
{
	return container_of(op, struct rdmatensor_listing, op);
}

static const char * const listing_names[] = {
	[LISTING_WAITING] = "WAITING",
	[LISTING_ASKED] = "ASKED",
	[LISTING_DONE] = "DONE",
};

static void listing_move(struct rdmatensor_listing *listing, enum listing_state to)
{
	static const u8 from[] = {
		[LISTING_ASKED] = BIT(LISTING_WAITING),
		[LISTING_DONE] = BIT(LISTING_WAITING) | BIT(LISTING_ASKED),
	};

	if (listing->channel)
		lockdep_assert_held(&listing->channel->lock);
	WARN_ON_ONCE(!(from[to] & BIT(listing->state)));
	WRITE_ONCE(listing->state, to);
}

static void listing_write(struct rdmatensor_listing *listing, const void *from, u32 bytes)
{
	struct rdmatensor_pool *pool = listing->op.pool;
	u64 at = listing->offset + listing->written;
	const char *pos = from;
	u32 run;

	listing->written += bytes;
	for (; bytes; at += run, pos += run, bytes -= run) {
		run = min_t(u32, bytes, PAGE_SIZE - offset_in_page(at));
		memcpy(rdmatensor_pool_cpu(pool, at), pos, run);
	}
}

/* Return: false: there is no room for the entry, and nothing is written */
static bool listing_take(struct rdmatensor_listing *listing, const struct rdmatensor_listed *listed)
{
	static const char zeroes[8];
	const struct rdmatensor_meta *meta = &listed->meta;
	u32 dims = meta->ndims * sizeof(*meta->dims);
	u32 bytes = sizeof(struct rdmatensor_list_entry) + dims + listed->name_len;
	struct rdmatensor_list_entry entry = {
		.bytes = ALIGN(bytes + 1, sizeof(zeroes)),
		.status = listed->error,
		.cursor = listed->cursor,
		.step_id = listed->step_id,
		.tensor_bytes = meta->bytes,
		.uses = listed->uses,
		.data_type = meta->data_type,
		.name_len = listed->name_len,
		.ndims = meta->ndims,
		.flags = meta->is_dead ? RDMATENSOR_LIST_DEAD : 0,
	};

	if (entry.bytes > listing->room - listing->written)
		return false;
	listing_write(listing, &entry, sizeof(entry));
	listing_write(listing, meta->dims, dims);
	listing_write(listing, listed->name, listed->name_len);
	listing_write(listing, zeroes, entry.bytes - bytes);
	listing->cursor = listed->cursor;
	return true;
}

/* With the lock of the table that has it held */
static void listing_describe_tensor(const struct rdmatensor_tensor *tensor,
				    const struct rdmatensor_rendezvous_key *key, u64 cursor,
				    struct rdmatensor_listed *listed)
{
	memset(listed, 0, sizeof(*listed));
	listed->cursor = cursor;
	listed->step_id = tensor->step_id;
	listed->error = tensor->failed.error;
	if (!listed->error)
		listed->meta = tensor->meta;
	listed->uses = tensor->uses_left;
	listed->name = rdmatensor_rendezvous_key_name(key, &listed->name_len);
}

static void listing_entry(const struct rdmatensor_operation *op, int error,
			  struct rdmatensor_cqe *cqe)
{
	const struct rdmatensor_listing *listing = to_listing(op);

	if (error)
		return;
	cqe->pool_id = op->pool_id;
	cqe->offset = listing->offset;
	cqe->tensor_bytes = listing->written;
	cqe->cursor = listing->cursor;
}

static const struct rdmatensor_operation_kind listing_kind = {
	.cqe_type = RDMATENSOR_CQE_LIST,
	.submitted = RDMATENSOR_STAT_LISTS,
	.completed = RDMATENSOR_STAT_LISTED,
	.failed = RDMATENSOR_STAT_LIST_ERRORS,
	.entry = listing_entry,
};

static void listing_describe(struct rdmatensor_operation *op,
			     struct rdmatensor_operation_info *info)
{
	struct rdmatensor_listing *listing = to_listing(op);

	info->state = listing_names[READ_ONCE(listing->state)];
	info->name = listing->prefix;
	info->name_len = listing->prefix_len;
	if (!listing->channel)
		return;
	info->peer = listing->channel->worker;
	info->has_index = READ_ONCE(listing->state) == LISTING_ASKED;
	info->index = READ_ONCE(listing->index);
}

static void listing_release(struct rdmatensor_operation *op)
{
	struct rdmatensor_listing *listing = to_listing(op);

	if (listing->channel)
		rdmatensor_channel_put(listing->channel);
	kfree(listing);
}

/* The next piece, with a number of its own */
static void listing_ask(struct rdmatensor_listing *listing)
{
	struct rdmatensor_channel *channel = listing->channel;
	struct listing_slot *slot = &channel->listings->slots[listing->slot];

	WRITE_ONCE(listing->index, rdmatensor_turns_next(&slot->turns) *
				   RDMATENSOR_WIRE_LIST_SLOTS + listing->slot);
	rdmatensor_channel_send(channel, &listing->tx);
}

static struct listing_slot *listing_free_slot(struct rdmatensor_listings *listings)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(listings->slots); i++)
		if (!listings->slots[i].listing)
			return &listings->slots[i];
	return NULL;
}

/* Asks for those that wait, as far as there are slots. The caller pumps */
static void listing_next(struct rdmatensor_listings *listings)
{
	struct rdmatensor_listing *listing;
	struct listing_slot *slot;

	while (rdmatensor_channel_usable(listings->channel) &&
	       (listing = list_first_entry_or_null(&listings->waiting, struct rdmatensor_listing,
						   item)) &&
	       (slot = listing_free_slot(listings))) {
		list_del_init(&listing->item);
		listing_move(listing, LISTING_ASKED);
		slot->listing = listing;
		listing->slot = slot - listings->slots;
		listing_ask(listing);
	}
}

/* With the channel's lock held, by a caller that holds operation or channel */
static void listing_end(struct rdmatensor_listing *listing, int error)
{
	struct rdmatensor_listings *listings = listing->channel->listings;

	list_del_init(&listing->item);
	rdmatensor_channel_unsend(&listing->tx);
	if (listing->state == LISTING_ASKED)
		listings->slots[listing->slot].listing = NULL;
	listing_move(listing, LISTING_DONE);
	rdmatensor_operation_finish(&listing->op, error, listing->written);
	rdmatensor_operation_put(&listing->op);
	listing_next(listings);
}

/* Return: true: it has ended with @status */
static bool listing_stop(struct rdmatensor_operation *op, const struct rdmatensor_status *status)
{
	struct rdmatensor_listing *listing = to_listing(op);
	struct rdmatensor_channel *channel = listing->channel;
	bool stopped;

	spin_lock_bh(&channel->lock);
	stopped = listing->state != LISTING_DONE;
	if (stopped) {
		rdmatensor_status_copy(&op->status, status);
		listing_end(listing, status->error);
		if (rdmatensor_channel_usable(channel))
			rdmatensor_channel_pump(channel);
	}
	spin_unlock_bh(&channel->lock);
	return stopped;
}

static void listing_cancel(struct rdmatensor_operation *op, const struct rdmatensor_status *status)
{
	listing_stop(op, status);
}

static void listing_expire(struct rdmatensor_operation *op)
{
	struct rdmatensor_status status = { .error = -ETIMEDOUT };

	if (rdmatensor_operation_early(op))
		return;
	if (listing_stop(op, &status))
		rdmatensor_operation_timed_out(op);
}

static const struct rdmatensor_operation_ops listing_ops = {
	.kind = &listing_kind,
	.cancel = listing_cancel,
	.expire = listing_expire,
	.describe = listing_describe,
	.release = listing_release,
};

static void listing_fill_question(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	const struct rdmatensor_listing *listing = container_of(tx, struct rdmatensor_listing, tx);

	msg->type = RDMATENSOR_WIRE_LIST;
	msg->request_index = listing->index;
	msg->cursor = listing->cursor;
	msg->name = listing->prefix;
	msg->name_len = listing->prefix_len;
}

static void listing_posted_question(struct rdmatensor_txmsg *tx, u64 seq)
{
	const struct rdmatensor_listing *listing = container_of(tx, struct rdmatensor_listing, tx);

	listing->channel->listings->slots[listing->slot].turns.asked =
		listing->index / RDMATENSOR_WIRE_LIST_SLOTS;
}

/* Return: a list that has not begun; ERR_PTR() */
static struct rdmatensor_listing *listing_new(struct rdmatensor_core *core,
					      const struct rdmatensor_operation_ops *ops,
					      struct rdmatensor_counters *counters, u32 channel,
					      const struct rdmatensor_listing_args *args)
{
	const struct rdmatensor_operation_args op_args = {
		.channel = channel,
		.user_data = args->user_data,
		.pool = args->pool,
		.offset = args->offset,
		.bytes = args->bytes,
	};
	struct rdmatensor_listing *listing;
	int ret;

	if (!rdmatensor_pool_reachable(args->pool))
		return ERR_PTR(-EOPNOTSUPP);
	listing = rdmatensor_should_fail() ? NULL :
		  kzalloc(struct_size(listing, prefix, args->prefix_len), RDMATENSOR_GFP_SPARING);
	if (!listing)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&listing->item);
	INIT_LIST_HEAD(&listing->tx.item);
	listing->tx.fill = listing_fill_question;
	listing->tx.posted = listing_posted_question;
	listing->cursor = args->cursor;
	listing->offset = args->offset;
	listing->room = args->bytes;
	listing->prefix_len = args->prefix_len;
	memcpy(listing->prefix, args->prefix, args->prefix_len);
	ret = rdmatensor_operation_init(&listing->op, ops, core, counters, &op_args);
	if (ret) {
		kfree(listing);
		return ERR_PTR(ret);
	}
	return listing;
}

int rdmatensor_listing_submit(struct rdmatensor_channel *channel,
			      const struct rdmatensor_listing_args *args)
{
	struct rdmatensor_listing *listing;
	int ret = 0;

	listing = listing_new(channel->core, &listing_ops, &channel->counters, channel->id, args);
	if (IS_ERR(listing))
		return PTR_ERR(listing);

	spin_lock_bh(&channel->lock);
	if (!rdmatensor_channel_usable(channel))
		ret = -ENOTCONN;
	else if (!(channel->features & RDMATENSOR_WIRE_FEATURE_LIST))
		ret = -EOPNOTSUPP;
	if (ret) {
		spin_unlock_bh(&channel->lock);
		rdmatensor_operation_abandon(&listing->op);
		kfree(listing);
		return ret;
	}
	rdmatensor_channel_get(channel);
	listing->channel = channel;
	list_add_tail(&listing->item, &channel->listings->waiting);
	rdmatensor_operation_begin(&listing->op, args->deadline_ns);
	listing_next(channel->listings);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_listing_submit);

/* The call that has begun it ends it, before it returns */
static void listing_cancel_local(struct rdmatensor_operation *op,
				 const struct rdmatensor_status *status)
{
	WRITE_ONCE(to_listing(op)->stop, status->error);
}

static void listing_expire_local(struct rdmatensor_operation *op)
{
	if (rdmatensor_operation_early(op))
		return;
	WRITE_ONCE(to_listing(op)->stop, -ETIMEDOUT);
	rdmatensor_operation_timed_out(op);
}

static const struct rdmatensor_operation_ops listing_local_ops = {
	.kind = &listing_kind,
	.cancel = listing_cancel_local,
	.expire = listing_expire_local,
	.describe = listing_describe,
	.release = listing_release,
};

static bool listing_add_local(const struct rdmatensor_tensor *tensor,
			      const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg)
{
	struct rdmatensor_listed listed;

	listing_describe_tensor(tensor, key, cursor, &listed);
	return listing_take(arg, &listed);
}

int rdmatensor_listing_local(struct rdmatensor_core *core,
			     const struct rdmatensor_listing_args *args)
{
	struct rdmatensor_listing *listing;
	bool taken;
	int error;

	listing = listing_new(core, &listing_local_ops, &core->counters, RDMATENSOR_CHANNEL_SELF,
			      args);
	if (IS_ERR(listing))
		return PTR_ERR(listing);
	rdmatensor_operation_begin(&listing->op, args->deadline_ns);
	/* The timer comes late, if it is over by now */
	if (args->deadline_ns && ktime_get_ns() >= args->deadline_ns)
		WRITE_ONCE(listing->stop, -ETIMEDOUT);
	do {
		taken = rdmatensor_rendezvous_list(core->rdv, &listing->cursor, listing->prefix,
						   listing->prefix_len, listing_add_local, listing);
		cond_resched();
	} while (taken && listing->cursor && !READ_ONCE(listing->stop) &&
		 !signal_pending(current));
	error = READ_ONCE(listing->stop);
	if (!error && !taken && !listing->written)
		error = -EMSGSIZE;
	listing_move(listing, LISTING_DONE);
	rdmatensor_operation_finish(&listing->op, error, listing->written);
	rdmatensor_operation_put(&listing->op);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_listing_local);

/**
 * struct listing_fill - an answer that is being made
 * @at: where the next entry goes
 * @room: bytes there
 * @nr: entries before it
 */
struct listing_fill {
	char *at;
	u32 room;
	u32 nr;
};

static bool listing_add_reply(const struct rdmatensor_tensor *tensor,
			      const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg)
{
	struct rdmatensor_listed listed;
	struct listing_fill *fill = arg;
	u32 bytes;

	listing_describe_tensor(tensor, key, cursor, &listed);
	bytes = rdmatensor_wire_entry_put(&listed, fill->at, fill->room);
	fill->at += bytes;
	fill->room -= bytes;
	fill->nr += !!bytes;
	return bytes;
}

/* The longest entry has room in the shortest slot, so every answer gets on */
static_assert(sizeof(struct rdmatensor_wire_hdr) + sizeof(struct rdmatensor_wire_list) +
	      sizeof(struct rdmatensor_wire_entry) + RDMATENSOR_DIMS_MAX * sizeof(__le64) +
	      RDMATENSOR_NAME_MAX <= 1024);

static u32 listing_room(const struct rdmatensor_channel *channel)
{
	return min(channel->peer_slot_bytes, channel->params->msg_slot_bytes) -
	       sizeof(struct rdmatensor_wire_hdr) - sizeof(struct rdmatensor_wire_list);
}

static void listing_fill_reply(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	const struct listing_reply *reply = container_of(tx, struct listing_reply, tx);
	struct rdmatensor_channel *channel = reply->listings->channel;
	struct listing_fill fill = {
		.at = (char *)channel->msgbuf.rkeys,
		.room = listing_room(channel),
	};

	msg->type = RDMATENSOR_WIRE_LIST_INFO;
	msg->request_index = reply->index;
	if (channel->params->unlisted || (reply->prefix_len && !reply->prefix)) {
		msg->flags = RDMATENSOR_WIRE_F_FAILED;
		msg->error = channel->params->unlisted ? -EACCES : -ENOMEM;
		return;
	}
	msg->entries = fill.at;
	msg->cursor = reply->cursor;
	rdmatensor_rendezvous_list(channel->core->rdv, &msg->cursor, reply->prefix,
				   reply->prefix_len, listing_add_reply, &fill);
	msg->nr_entries = fill.nr;
	msg->entries_bytes = fill.at - (const char *)msg->entries;
}

static void listing_forget_reply(struct listing_reply *reply)
{
	rdmatensor_channel_unsend(&reply->tx);
	kfree(reply->prefix);
	reply->prefix = NULL;
}

static void listing_posted_reply(struct rdmatensor_txmsg *tx, u64 seq)
{
	listing_forget_reply(container_of(tx, struct listing_reply, tx));
}

struct rdmatensor_listings *rdmatensor_listings_alloc(struct rdmatensor_channel *channel)
{
	struct rdmatensor_listings *listings = kzalloc(sizeof(*listings), RDMATENSOR_GFP_SPARING);
	u32 i;

	if (!listings)
		return NULL;
	listings->channel = channel;
	INIT_LIST_HEAD(&listings->waiting);
	for (i = 0; i < ARRAY_SIZE(listings->replies); i++) {
		struct listing_reply *reply = &listings->replies[i];

		reply->listings = listings;
		INIT_LIST_HEAD(&reply->tx.item);
		reply->tx.fill = listing_fill_reply;
		reply->tx.posted = listing_posted_reply;
	}
	return listings;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_listings_alloc);

static void listing_go_down(struct rdmatensor_listing *listing)
{
	struct rdmatensor_channel *channel = listing->channel;

	if (channel->error_text)
		rdmatensor_status_set(&listing->op.status, channel->error, channel->error_text);
	listing_end(listing, channel->error);
}

static struct rdmatensor_listing *listing_any(struct rdmatensor_listings *listings)
{
	struct rdmatensor_listing *listing;
	u32 i;

	listing = list_first_entry_or_null(&listings->waiting, struct rdmatensor_listing, item);
	for (i = 0; !listing && i < ARRAY_SIZE(listings->slots); i++)
		listing = listings->slots[i].listing;
	return listing;
}

void rdmatensor_listing_down(struct rdmatensor_channel *channel)
{
	struct rdmatensor_listings *listings = channel->listings;
	struct rdmatensor_listing *listing;
	u32 i;

	/* No more come, but there may be as many as the ring has room: the lock is dropped */
	spin_lock_bh(&channel->lock);
	while ((listing = listing_any(listings))) {
		listing_go_down(listing);
		spin_unlock_bh(&channel->lock);
		cond_resched();
		spin_lock_bh(&channel->lock);
	}
	for (i = 0; i < ARRAY_SIZE(listings->replies); i++)
		listing_forget_reply(&listings->replies[i]);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_listing_down);

void rdmatensor_listings_free(struct rdmatensor_listings *listings)
{
	kfree(listings);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_listings_free);

static void listing_question(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg)
{
	struct listing_reply *reply = &channel->listings->replies[msg->request_index %
								  RDMATENSOR_WIRE_LIST_SLOTS];

	/* Replaces the question in the slot, if that has no answer yet */
	listing_forget_reply(reply);
	reply->index = msg->request_index;
	reply->cursor = msg->cursor;
	reply->prefix_len = msg->name_len;
	if (msg->name_len)
		reply->prefix = kmemdup(msg->name, msg->name_len,
					GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	rdmatensor_channel_send(channel, &reply->tx);
	rdmatensor_channel_pump(channel);
}

/* The entries of an answer. Return: 0: all of them; 1: as many as there was room for; -EPROTO */
static int listing_take_entries(struct rdmatensor_listing *listing,
				const struct rdmatensor_msg *msg, const char **why)
{
	const char *pos = msg->entries;
	struct rdmatensor_listed listed;
	u32 i;

	*why = "LIST_INFO whose cursors do not grow";
	if (msg->cursor && msg->cursor <= listing->cursor)
		return -EPROTO;
	for (i = 0; i < msg->nr_entries; i++) {
		/* It has been decoded */
		pos += rdmatensor_wire_entry_get(pos, (const char *)msg->entries +
						 msg->entries_bytes - pos, &listed);
		if (listed.cursor <= listing->cursor ||
		    (msg->cursor && listed.cursor > msg->cursor))
			return -EPROTO;
		if (listed.name_len < listing->prefix_len ||
		    memcmp(listed.name, listing->prefix, listing->prefix_len)) {
			*why = "LIST_INFO of a name that was not asked for";
			return -EPROTO;
		}
		if (!listing_take(listing, &listed))
			return 1;
	}
	listing->cursor = msg->cursor;
	return 0;
}

static void listing_refused(struct rdmatensor_listing *listing, int error)
{
	if (error == -EACCES)
		rdmatensor_status_set(&listing->op.status, error,
				      "the peer does not tell what it offers: its list_mode is 2");
	listing_end(listing, rdmatensor_wire_errno(error));
}

static void listing_taken(struct rdmatensor_listing *listing, bool full)
{
	if (full)
		listing_end(listing, listing->written ? 0 : -EMSGSIZE);
	else if (!listing->cursor)
		listing_end(listing, 0);
	else
		listing_ask(listing);
}

static int listing_answer(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			  const char **why)
{
	struct listing_slot *slot =
		&channel->listings->slots[msg->request_index % RDMATENSOR_WIRE_LIST_SLOTS];
	struct rdmatensor_listing *listing = slot->listing;
	u32 number = msg->request_index / RDMATENSOR_WIRE_LIST_SLOTS;
	int full;

	if (!rdmatensor_turns_is_due(&slot->turns, number)) {
		*why = "LIST_INFO that was not asked for";
		return -EPROTO;
	}
	slot->turns.answered = number;
	if (!listing || listing->index != msg->request_index) {
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_STRAY);
		return 0;
	}
	if (msg->flags & RDMATENSOR_WIRE_F_FAILED) {
		listing_refused(listing, msg->error);
	} else {
		full = listing_take_entries(listing, msg, why);
		if (full < 0)
			return full;
		listing_taken(listing, full);
	}
	rdmatensor_channel_pump(channel);
	return 0;
}

int rdmatensor_listing_message(struct rdmatensor_channel *channel,
			       const struct rdmatensor_msg *msg, const char **why)
{
	int ret = 0;

	spin_lock_bh(&channel->lock);
	if (!rdmatensor_channel_usable(channel)) {
		/* Its lists are about to end, or have */
	} else if (!(channel->features & RDMATENSOR_WIRE_FEATURE_LIST)) {
		*why = "LIST or LIST_INFO, from who does not know of it";
		ret = -EPROTO;
	} else if (msg->type == RDMATENSOR_WIRE_LIST) {
		listing_question(channel, msg);
	} else {
		ret = listing_answer(channel, msg, why);
	}
	spin_unlock_bh(&channel->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_listing_message);
