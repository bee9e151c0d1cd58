// SPDX-License-Identifier: GPL-2.0
/*
 * Channels: order, credits and queue entries.
 *
 * What is sent. Messages wait in one queue for three things at once: a slot that
 * the peer has consumed, a local slot whose write has completed, and a place in
 * lane 0's send queue. Contents wait in their lanes' queues for a place. Nothing
 * is posted but from rdmatensor_channel_pump(), so acknowledgments have the order of
 * posting, which is what the accounting in msgbuf.h relies on.
 *
 * How contents share a lane. What is posted can neither be overtaken nor taken back: so a
 * lane holds as many posted content bytes as keep the wire busy, which the kernel's
 * dynamic queue limits find out, and no more. The limit is bounded: where the processor and
 * not the wire is the bottleneck, completions come late and many at once, which looks like
 * a wire that starves, and on soft-RoCE the limit would grow to several MB, which only adds
 * to the time that others wait. While others wait, the bound is lane_bytes: for a second
 * after each short content, and each message about one, about a failure or a CANCEL. Long
 * contents that have the lane to themselves may post four times that: a lane that never
 * runs empty between two completions is a tenth faster on soft-RoCE. The rest is shared by
 * deficit round robin, a chunk in each turn. Contents that have not begun yet may post, all
 * of them together, as much as the others have since: so a small one passes the large ones,
 * and however many small ones come, half of the lane is the large ones'.
 * A large one that cannot be dropped when it is cancelled passes the other large ones.
 * Messages are not counted: they are short, and their number is bounded by the slots.
 *
 * Strict mode. All of the channel's queue pairs are in a domain of its own. What a message tells
 * the peer to write to is registered by work requests right before it in lane 0's send queue,
 * unless the domain registers apart, and invalidated by others there: each takes a place as a
 * write does. What is being sent is not
 * registered in that domain, and is read by the device's key for all of its addresses, which no
 * peer can use.
 *
 * What arrives on lane 0 is processed in order by one completion context. The
 * receive is posted again before anything is acknowledged, so a peer that keeps to its
 * credits never meets an empty receive queue.
 *
 * How it ends. Every failure, of the device or of the peer, goes through
 * rdmatensor_channel_fail(), and every end that a side asks for through
 * rdmatensor_channel_leave():
 * from then on nothing is posted, and the owner tears the lanes down in process
 * context. Only when the queue pairs are gone is the channel DOWN and may its fetches
 * end, because until then the peer can write into their results. After a leave, what has
 * been posted completes before that, if it does so soon.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/core.h"
#include "core/limits.h"
#include "core/metacache.h"
#include "core/trace.h"
#include "memory/domain.h"
#include "memory/exposure.h"
#include "memory/pool.h"
#include "transport/channel.h"
#include "transport/probe.h"

/* Scatter/gather entries of a write: by pools' keys; by addresses, one for each chunk of memory */
#define CHANNEL_SGES 4
#define CHANNEL_SGES_STRICT 16
/*
 * A chunk: the longest write, as long as the limit. What is posted may exceed that by one
 * write, as it has to, so that there is one to go on with when the other completes, and
 * that the limit can be seen to be too low
 */
#define CHANNEL_CHUNK_LEAST (64U * SZ_1K)
#define CHANNEL_CHUNK_MOST (256U * SZ_1K)
/* For how long after a content that had to wait for others more of its kind are expected */
#define CHANNEL_CONTENDED HZ
/* The bound of a lane without contention, in units of lane_bytes */
#define CHANNEL_ALONE 4
/* What a content of no bytes takes from the quota of those that have not begun */
#define CHANNEL_CONTENT_LEAST 256
/*
 * What a write of a slice counts as at least, in all that shares a lane: runs of few bytes are work
 * for the device all the same, and would take the lane from contents that are sent as a whole
 */
#define CHANNEL_CUT_LEAST SZ_4K
#define CHANNEL_METACACHE_MAX SZ_1M
/* Bounds of what a leave may take: a peer that is gone costs as much */
#define CHANNEL_LEAVE_LEAST HZ
#define CHANNEL_LEAVE_MOST (10 * HZ)

/*
 * One receive for each immediate that the peer can send before it learns
 * that more have been posted. Lane 0: a message for each of our slots; an ack for
 * each message of ours that is unacknowledged (with ack_batch 1 that is the
 * window, which is at most our own slots), one more that was in flight; and one
 * content for each request. Other lanes: contents only.
 */
u32 rdmatensor_channel_recvs(const struct rdmatensor_channel_params *params, u8 lane)
{
	if (lane)
		return params->max_requests + 1;
	return 2 * params->msg_slots + 1 + params->max_requests;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_recvs);

/* All changes of state; to is legal from exactly those states */
static bool channel_try_move(struct rdmatensor_channel *channel, u8 to)
{
	static const u8 from[] = {
		[RDMATENSOR_CHANNEL_CONNECTING] = 0,
		[RDMATENSOR_CHANNEL_UP] = BIT(RDMATENSOR_CHANNEL_CONNECTING),
		[RDMATENSOR_CHANNEL_CLOSING] = BIT(RDMATENSOR_CHANNEL_CONNECTING) |
					       BIT(RDMATENSOR_CHANNEL_UP),
		[RDMATENSOR_CHANNEL_DOWN] = BIT(RDMATENSOR_CHANNEL_CLOSING),
	};

	lockdep_assert_held(&channel->lock);
	if (!(from[to] & BIT(channel->state)))
		return false;
	trace_rdmatensor_channel_state(channel->id, channel->state, to, channel->error);
	/* The error before the state, for readers without the lock: pairs with cm_stopped() */
	smp_store_release(&channel->state, to);
	wake_up_all(&channel->wait);
	return true;
}

static void channel_free(struct work_struct *work);
static void channel_settle(struct tasklet_struct *tasklet);
static void channel_settle_work(struct work_struct *work);

/* The peer, or only its device, has answered */
static void channel_heard(struct rdmatensor_channel *channel)
{
	lockdep_assert_held(&channel->lock);
	channel->heard = true;
}

/* The peer has said something: its device alone does not */
static void channel_said(struct rdmatensor_channel *channel)
{
	channel_heard(channel);
	channel->said_at = jiffies;
}

static void channel_fill_hello(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	struct rdmatensor_channel *channel =
		container_of(tx, struct rdmatensor_channel, hello_tx);

	msg->type = RDMATENSOR_WIRE_HELLO;
	msg->incarnation = channel->own_incarnation;
	msg->max_requests = channel->params->max_requests;
	msg->features = RDMATENSOR_WIRE_FEATURES;
	msg->listen_port = channel->listen_port;
	msg->text = channel->own_worker;
	msg->text_len = strlen(channel->own_worker);
}

static void channel_posted_hello(struct rdmatensor_txmsg *tx, u64 seq)
{
}

/* What a lane may have posted while others wait */
static u32 channel_lane_bytes(const struct rdmatensor_channel *channel)
{
	return max(channel->params->lane_bytes, CHANNEL_CHUNK_LEAST);
}

u64 rdmatensor_channel_posted_most(const struct rdmatensor_channel *channel)
{
	return (u64)channel_lane_bytes(channel) * CHANNEL_ALONE + CHANNEL_CHUNK_MOST;
}

static void channel_bound_limit(struct rdmatensor_lane *lane)
{
	u32 bytes = channel_lane_bytes(lane->channel);

	if (!time_before(jiffies, lane->contended + CHANNEL_CONTENDED))
		bytes *= CHANNEL_ALONE;
	lane->limit.max_limit = bytes;
	/* It would be held to that when something completes, and the lane may be idle */
	if (lane->limit.limit > bytes) {
		lane->limit.adj_limit -= lane->limit.limit - bytes;
		lane->limit.limit = bytes;
	}
}

static void channel_init_messages(struct rdmatensor_channel *channel)
{
	rdmatensor_credits_init(&channel->credits, channel->params->msg_slots,
				channel->params->ack_batch);
	INIT_LIST_HEAD(&channel->txq);
	INIT_LIST_HEAD(&channel->closing);
	INIT_LIST_HEAD(&channel->hello_tx.item);
	channel->hello_tx.fill = channel_fill_hello;
	channel->hello_tx.posted = channel_posted_hello;
}

static void channel_init_lane(struct rdmatensor_channel *channel, u8 index)
{
	struct rdmatensor_lane *lane = &channel->lanes[index];

	lane->channel = channel;
	lane->index = index;
	lane->sendq_free = channel->params->queue_depth;
	lane->max_sge = CHANNEL_SGES;
	INIT_LIST_HEAD(&lane->fresh);
	INIT_LIST_HEAD(&lane->hastened);
	INIT_LIST_HEAD(&lane->writes);
	dql_init(&lane->limit, HZ);
	lane->limit.min_limit = CHANNEL_CHUNK_LEAST;
	lane->contended = jiffies - CHANNEL_CONTENDED;
	channel_bound_limit(lane);
	lane->limit.limit = lane->limit.min_limit;
	lane->limit.adj_limit = lane->limit.min_limit;
}

struct rdmatensor_channel *
rdmatensor_channel_alloc(struct rdmatensor_core *core, u8 nr_lanes,
			 const struct rdmatensor_channel_params *params,
			 const struct rdmatensor_channel_ops *ops,
			 const struct rdmatensor_lane_ops *lane_ops)
{
	struct rdmatensor_channel *channel;
	int ret, i;

	channel = kvzalloc(struct_size(channel, lanes, nr_lanes), RDMATENSOR_GFP_SPARING);
	if (!channel)
		return ERR_PTR(-ENOMEM);

	ret = rdmatensor_counters_init(&channel->counters);
	if (ret)
		goto out_free_channel;

	channel->metacache = rdmatensor_metacache_alloc(CHANNEL_METACACHE_MAX);
	if (IS_ERR(channel->metacache)) {
		ret = PTR_ERR(channel->metacache);
		goto out_destroy_counters;
	}
	rdmatensor_quota_init(&channel->quota);

	kref_init(&channel->ref);
	channel->ops = ops;
	channel->core = core;
	rdmatensor_core_get(core);
	rdmatensor_core_adopt(core, &channel->counters);
	channel->lane_ops = lane_ops;
	channel->params = params;
	spin_lock_init(&channel->lock);
	channel->state = RDMATENSOR_CHANNEL_CONNECTING;
	init_waitqueue_head(&channel->wait);
	init_completion(&channel->setup_done);
	init_completion(&channel->gone);
	INIT_WORK(&channel->free_work, channel_free);
	rdmatensor_probe_init(channel);
	tasklet_setup(&channel->settle, channel_settle);
	INIT_WORK(&channel->settle_work, channel_settle_work);
	channel->said_at = jiffies;
	channel_init_messages(channel);
	xa_init_flags(&channel->requests, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&channel->pending);
	hash_init(channel->responses);
	INIT_LIST_HEAD(&channel->free_responses);
	rdmatensor_kepts_init(&channel->kepts);

	channel->nr_lanes = nr_lanes;
	for (i = 0; i < nr_lanes; i++)
		channel_init_lane(channel, i);
	return channel;

out_destroy_counters:
	rdmatensor_counters_destroy(&channel->counters);
out_free_channel:
	kvfree(channel);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_alloc);

void rdmatensor_channel_get(struct rdmatensor_channel *channel)
{
	kref_get(&channel->ref);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_get);

static void channel_free(struct work_struct *work)
{
	struct rdmatensor_channel *channel =
		container_of(work, struct rdmatensor_channel, free_work);
	struct rdmatensor_core *core = channel->core;

	WARN_ON_ONCE(channel->nr_responses);
	WARN_ON_ONCE(!xa_empty(&channel->requests));
	rdmatensor_metacache_free(channel->metacache);
	rdmatensor_core_fold(core, &channel->counters);
	rdmatensor_counters_destroy(&channel->counters);
	kvfree(channel->response_mem);
	rdmatensor_kepts_forget(&channel->kepts);
	if (channel->ops->freed)
		channel->ops->freed(channel);
	kvfree(channel);
	rdmatensor_core_put(core);
}

/* The last reference may be a timer's */
static void channel_release(struct kref *ref)
{
	struct rdmatensor_channel *channel = container_of(ref, struct rdmatensor_channel, ref);

	queue_work(channel->core->wq, &channel->free_work);
}

void rdmatensor_channel_put(struct rdmatensor_channel *channel)
{
	kref_put(&channel->ref, channel_release);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_put);

void rdmatensor_channel_take_domain(struct rdmatensor_channel *channel,
				    struct rdmatensor_domain *domain)
{
	int i;

	channel->domain = domain;
	for (i = 0; i < channel->nr_lanes; i++)
		channel->lanes[i].max_sge = CHANNEL_SGES_STRICT;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_take_domain);

/* None enters any more */
static bool channel_is_unused(struct rdmatensor_channel *channel)
{
	bool unused;

	spin_lock_bh(&channel->lock);
	unused = !channel->users;
	spin_unlock_bh(&channel->lock);
	return unused;
}

void rdmatensor_channel_leave_domain(struct rdmatensor_channel *channel)
{
	might_sleep();
	if (!channel->domain)
		return;
	wait_event(channel->wait, channel_is_unused(channel));
	rdmatensor_domain_put(channel->domain);
}

int rdmatensor_channel_enter(struct rdmatensor_channel *channel)
{
	int ret = 0;

	spin_lock_bh(&channel->lock);
	if (channel->state == RDMATENSOR_CHANNEL_UP)
		channel->users++;
	else
		ret = -ENOTCONN;
	spin_unlock_bh(&channel->lock);
	return ret;
}

void rdmatensor_channel_exit(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	channel->users--;
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING)
		wake_up_all(&channel->wait);
	spin_unlock_bh(&channel->lock);
}

int rdmatensor_channel_set_peer(struct rdmatensor_channel *channel,
				const struct rdmatensor_wire_private *private,
				const char **why)
{
	u32 slots = le16_to_cpu(private->msg_slots);
	u32 slot_bytes = le32_to_cpu(private->msg_slot_bytes);
	u32 ack_batch = le16_to_cpu(private->ack_batch);
	u32 max_requests = le32_to_cpu(private->max_requests);

	if (!is_power_of_2(slots) || slots > 1024 || !is_power_of_2(slot_bytes) ||
	    slot_bytes < 1024 || slot_bytes > SZ_64K) {
		*why = "message buffer of an impossible size";
		return -EPROTO;
	}
	if (!ack_batch || ack_batch > slots) {
		*why = "ack batch out of range";
		return -EPROTO;
	}
	if (!max_requests || max_requests > SZ_1M) {
		*why = "request limit out of range";
		return -EPROTO;
	}

	channel->peer_msgbuf = le64_to_cpu(private->msgbuf_addr);
	channel->peer_rkey = le32_to_cpu(private->msgbuf_rkey);
	channel->peer_slots = slots;
	channel->peer_slot_bytes = slot_bytes;
	channel->max_outstanding = min(max_requests, channel->params->max_requests);
	rdmatensor_credits_peer(&channel->credits, channel->params->msg_slots, slots,
				ack_batch);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_set_peer);

void rdmatensor_channel_hello(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	if (channel->state <= RDMATENSOR_CHANNEL_UP) {
		rdmatensor_channel_send(channel, &channel->hello_tx);
		rdmatensor_channel_pump(channel);
	}
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_hello);

static void channel_end(struct rdmatensor_channel *channel, int error, const char *text)
{
	channel->error = error;
	channel->error_text = text;
	channel_try_move(channel, RDMATENSOR_CHANNEL_CLOSING);
	if (error == -EPROTO)
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_PROTOCOL_ERRORS);
	channel->ops->failed(channel);
}

void rdmatensor_channel_fail_locked(struct rdmatensor_channel *channel, int error,
				    const char *text)
{
	lockdep_assert_held(&channel->lock);
	if (channel->state < RDMATENSOR_CHANNEL_CLOSING) {
		channel_end(channel, error, text);
	} else if (channel->leaves) {
		/* What the leave waits for does not come any more */
		WRITE_ONCE(channel->leaves, false);
		wake_up_all(&channel->wait);
	}
}

void rdmatensor_channel_fail(struct rdmatensor_channel *channel, int error,
			     const char *text)
{
	spin_lock_bh(&channel->lock);
	rdmatensor_channel_fail_locked(channel, error, text);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_fail);

/* As long as a lane takes that loses what it sends three times, within reason */
unsigned long rdmatensor_channel_leave_time(const struct rdmatensor_channel_params *params)
{
	u64 ack_ns = 4096ULL << params->timeout;

	return clamp_t(u64, nsecs_to_jiffies64(4 * ack_ns), CHANNEL_LEAVE_LEAST,
		       CHANNEL_LEAVE_MOST);
}

void rdmatensor_channel_leave(struct rdmatensor_channel *channel, int error,
			      const char *text)
{
	spin_lock_bh(&channel->lock);
	if (channel->state < RDMATENSOR_CHANNEL_CLOSING) {
		/* Before the owner's teardown can look; the time begins now, and not with that */
		channel->leaves = channel->state == RDMATENSOR_CHANNEL_UP;
		channel->leave_until = jiffies + rdmatensor_channel_leave_time(channel->params);
		channel_end(channel, error, text);
	}
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_leave);

void rdmatensor_channel_left(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	WRITE_ONCE(channel->leaves, false);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_left);

bool rdmatensor_channel_is_idle(struct rdmatensor_channel *channel)
{
	bool idle = true;
	int i;

	spin_lock_bh(&channel->lock);
	for (i = 0; i < channel->nr_lanes; i++)
		idle &= channel->lanes[i].sendq_free == channel->params->queue_depth;
	spin_unlock_bh(&channel->lock);
	return idle;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_is_idle);

/* Something was posted there */
static void channel_take_place(struct rdmatensor_lane *lane)
{
	rdmatensor_probe_watch(lane);
	lane->sendq_free--;
}

/* What was posted there has completed, one way or the other */
static void channel_free_place(struct rdmatensor_lane *lane)
{
	struct rdmatensor_channel *channel = lane->channel;

	lockdep_assert_held(&channel->lock);
	lane->sendq_free++;
	lane->completes = true;
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING)
		wake_up_all(&channel->wait);
}

void rdmatensor_channel_lane_flushed(struct rdmatensor_lane *lane)
{
	rdmatensor_channel_fail(lane->channel, -ECONNRESET,
				"the device has ended the queue pair: the peer broke its access rights, or the device failed");
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_lane_flushed);

void rdmatensor_channel_lane_connected(struct rdmatensor_lane *lane)
{
	struct rdmatensor_channel *channel = lane->channel;

	spin_lock_bh(&channel->lock);
	channel->lanes_open++;
	spin_unlock_bh(&channel->lock);
}

void rdmatensor_channel_down(struct rdmatensor_channel *channel)
{
	struct rdmatensor_part *part, *next;
	int i;

	/* Since CLOSING nothing is posted, and the queue pairs are gone: nothing completes */
	rdmatensor_probe_end(channel);
	tasklet_kill(&channel->settle);
	cancel_work_sync(&channel->settle_work);
	spin_lock_bh(&channel->lock);
	channel_try_move(channel, RDMATENSOR_CHANNEL_DOWN);
	while (!list_empty(&channel->txq))
		list_del_init(channel->txq.next);
	while (!list_empty(&channel->closing))
		list_del_init(channel->closing.next);
	for (i = 0; i < channel->nr_lanes; i++) {
		struct rdmatensor_lane *lane = &channel->lanes[i];

		list_splice_init(&lane->fresh, &lane->writes);
		list_splice_init(&lane->hastened, &lane->writes);
		list_for_each_entry_safe(part, next, &lane->writes, item)
			list_del_init(&part->item);
	}
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_down);

void rdmatensor_channel_stall(struct rdmatensor_channel *channel, enum rdmatensor_stat stat)
{
	rdmatensor_count(&channel->counters, stat);
	trace_rdmatensor_stall(channel->id,
			       stat == RDMATENSOR_STAT_STALL_SLOTS ? "slot" :
			       stat == RDMATENSOR_STAT_STALL_SENDQ ? "send queue" : "peer's limit");
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_stall);

void rdmatensor_channel_send(struct rdmatensor_channel *channel,
			     struct rdmatensor_txmsg *tx)
{
	lockdep_assert_held(&channel->lock);
	if (!list_empty(&channel->txq) || !rdmatensor_credits_can_send(&channel->credits))
		rdmatensor_channel_stall(channel, RDMATENSOR_STAT_STALL_SLOTS);
	list_add_tail(&tx->item, &channel->txq);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_send);

bool rdmatensor_channel_unsend(struct rdmatensor_txmsg *tx)
{
	if (list_empty(&tx->item))
		return false;
	list_del_init(&tx->item);
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_unsend);

void rdmatensor_channel_close_exposure(struct rdmatensor_channel *channel,
				       struct rdmatensor_exposure *exposure)
{
	lockdep_assert_held(&channel->lock);
	rdmatensor_exposure_close(exposure);
	list_add_tail(&exposure->item, &channel->closing);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_close_exposure);

static bool channel_waits(const struct rdmatensor_lane *lane)
{
	return !list_empty(&lane->fresh) || !list_empty(&lane->hastened) ||
	       !list_empty(&lane->writes);
}

/* What is posted stays posted: the bound holds from the next write on */
static void channel_contend(struct rdmatensor_lane *lane)
{
	lane->contended = jiffies;
	channel_bound_limit(lane);
}

void rdmatensor_channel_contend(struct rdmatensor_channel *channel)
{
	int i;

	lockdep_assert_held(&channel->lock);
	for (i = 0; i < channel->nr_lanes; i++)
		channel_contend(&channel->lanes[i]);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_contend);

void rdmatensor_channel_write(struct rdmatensor_channel *channel,
			      struct rdmatensor_write *write)
{
	int i;

	lockdep_assert_held(&channel->lock);
	write->parts_left = write->nr_parts;
	write->open = false;
	write->dropped = false;
	for (i = 0; i < write->nr_parts; i++) {
		struct rdmatensor_part *part = &write->parts[i];
		struct rdmatensor_lane *lane = &channel->lanes[i];
		u64 bytes;

		rdmatensor_wire_part(write->bytes, write->nr_parts, i, &part->pos, &bytes);
		part->end = part->pos + bytes;
		part->posted = false;
		part->pending = 0;
		part->in_flight = 0;
		part->write = write;
		if (channel_waits(lane))
			rdmatensor_channel_stall(channel, RDMATENSOR_STAT_STALL_SENDQ);
		if (write->bytes <= RDMATENSOR_SHORT_BYTES)
			channel_contend(lane);
		list_add_tail(&part->item, &lane->fresh);
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_write);

static u32 channel_chunk(const struct rdmatensor_lane *lane)
{
	return clamp_t(u32, round_down(lane->limit.limit, SZ_4K), CHANNEL_CHUNK_LEAST,
		       CHANNEL_CHUNK_MOST);
}

static void channel_hasten_part(struct rdmatensor_lane *lane, struct rdmatensor_part *part)
{
	struct list_head *at;

	list_for_each(at, &lane->hastened)
		if (list_entry(at, struct rdmatensor_part, item)->write->bytes > part->write->bytes)
			break;
	part->deficit = channel_chunk(lane);
	list_move_tail(&part->item, at);
}

/*
 * Its peer waits for the answer, and its memory is not its own until then. It allows the answer
 * the time of the content's own bytes, from the last one on that has come. By turns with others it
 * would take the time of all, in which the peer hears nothing; before what nobody has cancelled,
 * and what is longer, it does not
 */
static void channel_hasten(struct rdmatensor_channel *channel, struct rdmatensor_write *write)
{
	int i;

	for (i = 0; i < write->nr_parts; i++) {
		struct rdmatensor_part *part = &write->parts[i];

		if (!part->posted)
			channel_hasten_part(&channel->lanes[i], part);
	}
}

bool rdmatensor_channel_drop(struct rdmatensor_channel *channel,
			     struct rdmatensor_write *write)
{
	int i;

	lockdep_assert_held(&channel->lock);
	/*
	 * The answer to the CANCEL goes over lane 0, behind what was written there. Of other
	 * lanes only their own last write says that nothing more will come
	 */
	if (write->nr_parts > 1 && write->open) {
		channel_hasten(channel, write);
		return false;
	}
	for (i = 0; i < write->nr_parts; i++) {
		struct rdmatensor_part *part = &write->parts[i];

		if (part->posted)
			continue;
		list_del_init(&part->item);
		part->posted = true;
		write->dropped = true;
		if (!part->pending)
			write->parts_left--;
	}
	/* If nothing was dropped, the last completion calls done() */
	return write->dropped && !write->parts_left;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_drop);

void rdmatensor_channel_written(struct rdmatensor_channel *channel,
				struct rdmatensor_write *write)
{
	lockdep_assert_held(&channel->lock);
	if (write->open) {
		write->open = false;
		channel->writes_open--;
	}
}

static int channel_post_message(struct rdmatensor_channel *channel,
				struct rdmatensor_txmsg *tx)
{
	static const u8 stat[] = {
		[RDMATENSOR_WIRE_TENSOR_REQUEST] = RDMATENSOR_STAT_TX_REQUESTS,
		[RDMATENSOR_WIRE_META_DATA_RESPONSE] = RDMATENSOR_STAT_TX_META_DATA_RESPONSES,
		[RDMATENSOR_WIRE_TENSOR_RE_REQUEST] = RDMATENSOR_STAT_TX_RE_REQUESTS,
		[RDMATENSOR_WIRE_ERROR_STATUS] = RDMATENSOR_STAT_TX_ERROR_STATUSES,
		[RDMATENSOR_WIRE_CANCEL] = RDMATENSOR_STAT_TX_CANCELS,
	};
	struct rdmatensor_lane *lane = &channel->lanes[0];
	u64 seq = channel->credits.sent + 1;
	void *slot = rdmatensor_msgbuf_tx_slot(&channel->msgbuf, seq);
	struct rdmatensor_msg msg = {};
	u32 bytes;
	int ret;

	tx->fill(tx, &msg);
	ret = rdmatensor_wire_encode(&msg, slot, min(channel->peer_slot_bytes,
						     channel->msgbuf.slot_bytes));
	/* It was checked to fit when it was queued */
	if (WARN_ON_ONCE(ret < 0))
		return ret;
	rdmatensor_wire_set_consumed(slot,
				     rdmatensor_credits_tell_count(&channel->credits));

	bytes = ret;
	ret = channel->lane_ops->post_message(lane, seq, bytes);
	if (ret)
		return ret;
	trace_rdmatensor_message_tx(channel->id, seq, msg.type, msg.request_index, bytes);

	rdmatensor_credits_sent(&channel->credits);
	channel_take_place(lane);
	list_del_init(&tx->item);
	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_TX_MESSAGES);
	if (msg.type < ARRAY_SIZE(stat) && stat[msg.type])
		rdmatensor_count(&channel->counters, stat[msg.type]);
	tx->posted(tx, seq);
	return 0;
}

static int channel_post_registration(struct rdmatensor_channel *channel,
				     struct rdmatensor_exposure *exposure, struct ib_mr *mr)
{
	struct rdmatensor_lane *lane = &channel->lanes[0];
	int ret;

	ret = channel->lane_ops->post_registration(lane, mr);
	if (ret)
		return ret;
	channel_take_place(lane);
	rdmatensor_exposure_posted(exposure);
	return 0;
}

/* What the message at the head of the queue needs next: a registration, or to be posted itself */
static int channel_post_head(struct rdmatensor_channel *channel)
{
	struct rdmatensor_txmsg *tx =
		list_first_entry(&channel->txq, struct rdmatensor_txmsg, item);
	struct ib_mr *mr = tx->exposure ? rdmatensor_exposure_next(tx->exposure) : NULL;

	return mr ? channel_post_registration(channel, tx->exposure, mr) :
		    channel_post_message(channel, tx);
}

/* One by one, the oldest first; what is no longer in the list waits for completions alone */
static int channel_post_invalidation(struct rdmatensor_channel *channel)
{
	struct rdmatensor_exposure *exposure =
		list_first_entry(&channel->closing, struct rdmatensor_exposure, item);
	struct rdmatensor_lane *lane = &channel->lanes[0];
	int ret;

	ret = channel->lane_ops->post_invalidation(lane, exposure,
						   rdmatensor_exposure_next(exposure));
	if (ret)
		return ret;
	channel_take_place(lane);
	rdmatensor_exposure_posted(exposure);
	if (!rdmatensor_exposure_next(exposure))
		list_del_init(&exposure->item);
	return 0;
}

/* @bytes of the source from @from on, or as many as the entries have room for */
static int channel_run_sge(const struct rdmatensor_channel *channel,
			   const struct rdmatensor_write *write, u64 from, u64 bytes,
			   struct ib_sge *sge, int most, u64 *covered)
{
	from += write->pool_offset;
	return channel->domain ?
	       rdmatensor_registration_sge(&write->pool->reg, from, bytes,
					   channel->domain->pd->local_dma_lkey, sge, most,
					   covered) :
	       rdmatensor_pool_sge(write->pool, from, bytes, sge, most, covered);
}

/* The same of a content from @pos on, whose runs take an entry each at least */
static int channel_sge(const struct rdmatensor_channel *channel,
		       const struct rdmatensor_write *write, u64 pos, u64 bytes,
		       struct ib_sge *sge, int most, u64 *covered)
{
	u64 done = 0, at, run;
	int nr = 0;

	if (!write->cut)
		return channel_run_sge(channel, write, pos, bytes, sge, most, covered);
	while (nr < most && done < bytes) {
		at = rdmatensor_cut_at(write->cut, pos + done, &run);
		nr += channel_run_sge(channel, write, at, min(run, bytes - done), sge + nr,
				      most - nr, &run);
		done += run;
	}
	*covered = done;
	return nr;
}

/* Where byte @pos of the content goes; @run: out: that many may follow it there, with its key */
static u64 channel_dest(const struct rdmatensor_write *write, u64 pos, u64 *run)
{
	u64 segment = 1ULL << write->seg_shift, addr, left = U64_MAX;

	addr = write->remote_addr + (write->dest ? rdmatensor_cut_at(write->dest, pos, &left) :
						   pos);
	*run = min(left, segment - (addr & (segment - 1)));
	return addr;
}

/*
 * One write: up to a change of the destination's key, a gap in the destination, the last sge, or
 * @most bytes. @cost: out
 */
static int channel_post_write(struct rdmatensor_lane *lane, struct rdmatensor_part *part,
			      u32 most, u32 *cost)
{
	struct rdmatensor_channel *channel = lane->channel;
	struct rdmatensor_write *write = part->write;
	u64 room, addr = channel_dest(write, part->pos, &room);
	u64 bytes = min3(room, part->end - part->pos, (u64)most);
	struct ib_sge sge[CHANNEL_SGES_STRICT];
	int nr_sge = 0, ret;
	u32 rkey = 0;
	bool last;

	if (bytes) {
		u64 first = write->remote_addr >> write->seg_shift;
		int most = min_t(int, lane->max_sge, ARRAY_SIZE(sge));

		nr_sge = channel_sge(channel, write, part->pos, bytes, sge, most, &bytes);
		rkey = le32_to_cpu(write->rkeys[(addr >> write->seg_shift) - first]);
	}
	last = part->pos + bytes == part->end;

	ret = channel->lane_ops->post_write(lane, part, sge, nr_sge, addr, rkey, last);
	if (ret)
		return ret;

	channel_take_place(lane);
	*cost = write->cut || write->dest ? max_t(u32, bytes, CHANNEL_CUT_LEAST) : bytes;
	dql_queued(&lane->limit, *cost);
	if (!write->open) {
		write->open = true;
		channel->writes_open++;
	}
	part->pos += bytes;
	part->pending++;
	part->in_flight += *cost;
	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_TX_WRITES);
	trace_rdmatensor_content_tx(channel->id, lane->index, write->index, bytes, last);
	if (last) {
		part->posted = true;
		list_del_init(&part->item);
		if (!lane->index && !channel->credits.eager)
			rdmatensor_credits_tell_upto(&channel->credits, write->seq);
	}
	return 0;
}

/*
 * To the peer a request ends when its content arrives, here when the completion
 * says so, and the peer's next request can be faster. What is between the two is
 * bounded, so that responses are.
 */
static struct rdmatensor_part *channel_fresh_part(struct rdmatensor_lane *lane)
{
	struct rdmatensor_channel *channel = lane->channel;
	struct rdmatensor_part *part;

	part = list_first_entry_or_null(&lane->fresh, struct rdmatensor_part, item);
	if (!part || part->write->open || channel->writes_open < channel->params->max_requests)
		return part;
	/* What has begun on another lane must not wait for it: it may be what it waits for */
	if (channel->nr_lanes > 1)
		list_for_each_entry(part, &lane->fresh, item)
			if (part->write->open)
				return part;
	return NULL;
}

/* Posts one write of what has not begun, which then has its turns like the others */
static int channel_post_fresh(struct rdmatensor_lane *lane, struct rdmatensor_part *part)
{
	u32 cost;
	int ret;

	ret = channel_post_write(lane, part, channel_chunk(lane), &cost);
	if (ret)
		return ret;
	lane->fresh_quota -= max_t(u32, cost, CHANNEL_CONTENT_LEAST);
	/* It may have waited for long */
	if (part->write->bytes <= RDMATENSOR_SHORT_BYTES)
		channel_contend(lane);
	if (!part->posted) {
		part->deficit = channel_chunk(lane);
		list_move_tail(&part->item, &lane->writes);
	}
	return 0;
}

static struct rdmatensor_part *channel_next_part(struct rdmatensor_lane *lane)
{
	return list_first_entry_or_null(&lane->hastened, struct rdmatensor_part, item) ?:
	       list_first_entry_or_null(&lane->writes, struct rdmatensor_part, item);
}

/* Posts one write of whose turn it is; as many bytes may the fresh ones post then */
static int channel_post_turn(struct rdmatensor_lane *lane, struct rdmatensor_part *part)
{
	u32 cost;
	int ret;

	ret = channel_post_write(lane, part, part->deficit, &cost);
	if (ret)
		return ret;
	part->deficit -= min(part->deficit, cost);
	lane->fresh_quota = min_t(s32, lane->fresh_quota + cost, channel_chunk(lane));
	if (!part->posted && !part->deficit) {
		part->deficit = channel_chunk(lane);
		/* Else it is the first of those, until it has ended */
		if (list_empty(&lane->hastened))
			list_move_tail(&part->item, &lane->writes);
	}
	return 0;
}

static int channel_post_contents(struct rdmatensor_lane *lane)
{
	struct rdmatensor_part *fresh, *part;
	int ret = 0;

	while (!ret && lane->sendq_free > RDMATENSOR_SENDQ_RESERVE &&
	       dql_avail(&lane->limit) >= 0) {
		fresh = channel_fresh_part(lane);
		part = channel_next_part(lane);
		/* Without the others there is nothing to owe */
		if (!part)
			lane->fresh_quota = 0;
		if (fresh && (lane->fresh_quota > 0 || !part))
			ret = channel_post_fresh(lane, fresh);
		else if (part)
			ret = channel_post_turn(lane, part);
		else
			break;
	}
	return ret;
}

static int channel_post_acks(struct rdmatensor_channel *channel)
{
	struct rdmatensor_lane *lane = &channel->lanes[0];
	int ret;

	while (rdmatensor_credits_ack_due(&channel->credits) && lane->sendq_free) {
		ret = channel->lane_ops->post_ack(lane);
		if (ret)
			return ret;
		channel_take_place(lane);
		rdmatensor_credits_tell_ack(&channel->credits);
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_TX_ACKS);
		trace_rdmatensor_ack_tx(channel->id, channel->credits.told);
	}
	return 0;
}

/* What a channel ends with whose device does not take a work request, whatever it says of that */
static int channel_post_error(int error, const char **why)
{
	*why = "posting to the send queue failed";
	return error == -ENODEV ? error : -ECONNRESET;
}

void rdmatensor_channel_pump(struct rdmatensor_channel *channel)
{
	struct rdmatensor_lane *lane = &channel->lanes[0];
	const char *why;
	int ret = 0, i;

	lockdep_assert_held(&channel->lock);
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING)
		return;

	while (!ret && !list_empty(&channel->closing) &&
	       lane->sendq_free > RDMATENSOR_SENDQ_RESERVE)
		ret = channel_post_invalidation(channel);

	while (!ret && !list_empty(&channel->txq) &&
	       rdmatensor_credits_can_send(&channel->credits) &&
	       lane->sendq_free > RDMATENSOR_SENDQ_RESERVE)
		ret = channel_post_head(channel);

	/* With one slot an ack alone tells of a request: the content would be taken for it */
	if (!ret && channel->credits.eager)
		ret = channel_post_acks(channel);

	for (i = 0; !ret && i < channel->nr_lanes; i++)
		ret = channel_post_contents(&channel->lanes[i]);

	if (!ret)
		ret = channel_post_acks(channel);
	if (ret) {
		ret = channel_post_error(ret, &why);
		rdmatensor_channel_fail_locked(channel, ret, why);
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_pump);

static int channel_rx_hello(struct rdmatensor_channel *channel,
			    const struct rdmatensor_msg *msg, const char **why)
{
	bool up;
	int ret;

	if (channel->state != RDMATENSOR_CHANNEL_CONNECTING ||
	    channel->lanes_open != channel->nr_lanes) {
		*why = "HELLO out of turn";
		return -EPROTO;
	}

	/* Who looks at a channel that ends meanwhile finds it whole */
	spin_lock_bh(&channel->lock);
	memcpy(channel->worker, msg->text, msg->text_len);
	channel->worker[msg->text_len] = '\0';
	channel->incarnation = msg->incarnation;
	spin_unlock_bh(&channel->lock);
	/* A fetch may read it before the channel is up, and is refused later */
	WRITE_ONCE(channel->features, msg->features & RDMATENSOR_WIRE_FEATURES);

	ret = channel->ops->hello(channel, msg, why);
	if (ret)
		return ret;

	spin_lock_bh(&channel->lock);
	up = channel_try_move(channel, RDMATENSOR_CHANNEL_UP);
	if (up) {
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_CHANNELS_UP);
		rdmatensor_probe_begin(channel);
		if (!channel->active)
			rdmatensor_channel_send(channel, &channel->hello_tx);
	}
	spin_unlock_bh(&channel->lock);
	if (up)
		channel->ops->up(channel);
	return 0;
}

void rdmatensor_channel_rx_message(struct rdmatensor_channel *channel, u32 bytes)
{
	const char *why = "message of an impossible length";
	struct mem_cgroup *memcg;
	struct rdmatensor_msg msg;
	int ret;
	u64 seq;

	/* Slot and scratch are this context's alone: lane 0 completes in order */
	seq = channel->credits.consumed + 1;
	ret = rdmatensor_msgbuf_copy_out(&channel->msgbuf, seq, bytes);
	if (!ret)
		ret = rdmatensor_wire_decode(channel->msgbuf.scratch, bytes, &msg, &why);

	spin_lock_bh(&channel->lock);
	channel_said(channel);
	rdmatensor_credits_consume(&channel->credits);
	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_MESSAGES);
	if (!ret)
		trace_rdmatensor_message_rx(channel->id, seq, msg.type, msg.request_index, bytes);
	if (!ret) {
		ret = rdmatensor_credits_told_count(&channel->credits, msg.consumed);
		if (ret)
			why = "count of consumed messages goes backwards or too far";
	}
	if (!ret && channel->state < RDMATENSOR_CHANNEL_CLOSING && channel->credits.eager) {
		ret = channel_post_acks(channel);
		if (ret)
			ret = channel_post_error(ret, &why);
	}
	if (!ret && msg.type != RDMATENSOR_WIRE_HELLO &&
	    channel->state == RDMATENSOR_CHANNEL_CONNECTING) {
		ret = -EPROTO;
		why = "message before HELLO";
	}
	spin_unlock_bh(&channel->lock);

	if (!ret) {
		/* In a completion, which runs on behalf of no task */
		memcg = set_active_memcg(channel->core->memcg);
		ret = msg.type == RDMATENSOR_WIRE_HELLO ?
			channel_rx_hello(channel, &msg, &why) :
			channel->ops->message(channel, &msg, seq, &why);
		set_active_memcg(memcg);
	}

	spin_lock_bh(&channel->lock);
	if (ret)
		rdmatensor_channel_fail_locked(channel, ret, why);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_rx_message);

void rdmatensor_channel_rx_ack(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	channel_said(channel);
	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_ACKS);
	if (rdmatensor_credits_told_ack(&channel->credits))
		rdmatensor_channel_fail_locked(channel, -EPROTO,
					       "ack of messages that were never sent");
	trace_rdmatensor_ack_rx(channel->id, channel->credits.peer_told);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_rx_ack);

void rdmatensor_channel_rx_content(struct rdmatensor_channel *channel, u8 lane, u32 index,
				   u32 bytes)
{
	const char *why = NULL;
	int ret;

	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_CONTENTS);
	trace_rdmatensor_content_rx(channel->id, lane, index, bytes, true);
	ret = channel->ops->content(channel, lane, index, bytes, &why);

	spin_lock_bh(&channel->lock);
	channel_said(channel);
	if (ret)
		rdmatensor_channel_fail_locked(channel, ret, why);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_rx_content);

void rdmatensor_channel_tx_message(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	channel_heard(channel);
	channel_free_place(&channel->lanes[0]);
	rdmatensor_credits_sent_done(&channel->credits);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_tx_message);

void rdmatensor_channel_tx_ack(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	channel_heard(channel);
	channel_free_place(&channel->lanes[0]);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_tx_ack);

void rdmatensor_channel_tx_probe(struct rdmatensor_lane *lane, bool ok)
{
	struct rdmatensor_channel *channel = lane->channel;

	spin_lock_bh(&channel->lock);
	lane->probes--;
	lane->completes = true;
	if (ok)
		channel_heard(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_tx_probe);

void rdmatensor_channel_tx_registration(struct rdmatensor_channel *channel)
{
	spin_lock_bh(&channel->lock);
	channel_free_place(&channel->lanes[0]);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_tx_registration);

void rdmatensor_channel_tx_invalidation(struct rdmatensor_channel *channel,
					struct rdmatensor_exposure *exposure)
{
	struct mem_cgroup *memcg;

	spin_lock_bh(&channel->lock);
	channel_free_place(&channel->lanes[0]);
	/* A destination that follows is on behalf of the channel's owner */
	memcg = set_active_memcg(channel->core->memcg);
	if (!--exposure->nr_open)
		exposure->closed(exposure);
	set_active_memcg(memcg);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_tx_invalidation);

void rdmatensor_channel_tx_lost(struct rdmatensor_lane *lane)
{
	spin_lock_bh(&lane->channel->lock);
	channel_free_place(lane);
	spin_unlock_bh(&lane->channel->lock);
}

static void channel_tell_limit(struct rdmatensor_lane *lane)
{
	channel_bound_limit(lane);
	if (lane->completed)
		dql_completed(&lane->limit, lane->completed);
	lane->completed = 0;
}

/*
 * What has completed of a lane's contents is reported to its limit once all completions that
 * are there have been handled, not one by one: a single one looks as if the others
 * were still on the wire, and a limit that is too low would never be noticed. A tasklet
 * runs behind the softirq that handles completions, a work item behind the one that does.
 */
static void channel_settle_lanes(struct rdmatensor_channel *channel)
{
	int i;

	spin_lock_bh(&channel->lock);
	for (i = 0; i < channel->nr_lanes; i++)
		channel_tell_limit(&channel->lanes[i]);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}

static void channel_settle(struct tasklet_struct *tasklet)
{
	struct rdmatensor_channel *channel = from_tasklet(channel, tasklet, settle);

	channel_settle_lanes(channel);
}

static void channel_settle_work(struct work_struct *work)
{
	channel_settle_lanes(container_of(work, struct rdmatensor_channel, settle_work));
}

/* The workqueue whose workers are also those of the one that polls completions */
static void channel_settle_later(struct rdmatensor_channel *channel)
{
	if (channel->params->cq_poll == IB_POLL_WORKQUEUE)
		queue_work(system_highpri_wq, &channel->settle_work);
	else
		tasklet_schedule(&channel->settle);
}

/*
 * Which of a part's writes has completed is not known, nor needed: the limit learns of as
 * many bytes as they have on the average, and of all of them with the last one
 */
static void channel_completed(struct rdmatensor_lane *lane, struct rdmatensor_part *part)
{
	u32 bytes = part->in_flight / part->pending--;

	part->in_flight -= bytes;
	lane->completed += bytes;
}

void rdmatensor_channel_tx_part(struct rdmatensor_lane *lane, struct rdmatensor_part *part,
				bool ok)
{
	struct rdmatensor_channel *channel = lane->channel;
	struct rdmatensor_write *write = part->write;
	bool done = false;

	spin_lock_bh(&channel->lock);
	channel_free_place(lane);
	channel_completed(lane, part);
	if (ok) {
		channel_heard(channel);
		if (part->posted && !part->pending)
			done = !--write->parts_left;
		if (channel_waits(lane)) {
			channel_settle_later(channel);
		} else {
			channel_tell_limit(lane);
			/* Else done() does */
			if (!done)
				rdmatensor_channel_pump(channel);
		}
	}
	spin_unlock_bh(&channel->lock);

	if (done)
		write->done(write);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_channel_tx_part);
