// SPDX-License-Identifier: GPL-2.0
/*
 * Requests: the receiver's side of a fetch.
 *
 *	PENDING -> QUEUED -> SENT ----------------------------> (end)
 *	                      |  META                             ^
 *	                      v                                   |
 *	    (EXPOSING ->) RE_QUEUED -> RE_SENT -------------------+
 *	any but PENDING, QUEUED: cancel                           |
 *	                      v                                   |
 *	                CANCEL_QUEUED -> CANCEL_SENT -------------+
 *	                                     | content, error     |
 *	                                     +---> LINGER --------+
 *	                                     | answer, lane 0's part before it
 *	                                     +---> ANSWERED ------+
 *
 * A request is in the channel's table by index from its submission until the peer has no
 * more to send for it. Once the peer knows the destination, only the content, the peer's
 * ERROR_STATUS, or the end of the queue pairs ends the fetch: a deadline or a cancel sends
 * CANCEL, which the peer answers when no write is in flight (design 7.1). LINGER: the fetch
 * has ended, and the answer to its CANCEL is still to come. ANSWERED: the content goes over
 * several lanes and had begun; the peer has written all of it, and the answer on lane 0 has
 * overtaken the last immediates on the other lanes.
 *
 * A destination that the peer cannot write, or whose keys are too many for a message, has a
 * proxy if the process asked for it. To the machine it is a destination like others. Once all
 * of the content is there nothing cancels the fetch, for the peer it has ended, and a work item
 * copies: so states and lock are the same for a content that is copied, compared, or neither.
 *
 * Strict mode: a destination has keys of its own, which takes memory and time to make and takes
 * the device's word to take back. That a known tensor's destination is exposed with the
 * submission, in process context; else after the META_DATA_RESPONSE:
 *
 *	SENT -> EXPOSING -> RE_QUEUED		a work item makes the keys, or the fetch is
 *						cancelled with what it failed with
 *	(end) -> REVOKING -> (end)		all is decided; the keys are being taken back
 *	CANCEL_SENT -> REVOKING_LINGER -> LINGER	the same, before the answer has come
 *
 * The keys of a destination that turns out not to fit any more are taken back first, too. A
 * region is freed, copied from, or handed to the process, its checksum computed and its entry
 * made visible only after the device has said that its keys are no more. Where the channel goes
 * down instead, the queue pairs are gone by then.
 *
 * A domain that registers apart does so where the keys are made, without the lock (@registering).
 * Whatever ends the request meanwhile leaves the exposure alone, and takes the keys back, or
 * concludes, when they are there. A registration that fails ends the channel.
 *
 * The table holds one reference, the armed timer another. All members are guarded by the
 * channel's lock.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/keep.h"
#include "core/limits.h"
#include "core/metacache.h"
#include "core/trace.h"
#include "fetch/request.h"
#include "memory/domain.h"

/* Content that still counts as making progress, in bytes a millisecond */
#define REQUEST_SLOWEST 4096
/* What msg_slot_bytes can be set to */
#define REQUEST_SLOT_MOST 65536UL
#define REQUEST_PATIENCE_MAX (24 * 3600 * 1000)
/* Times that patience may restart: a peer may be busy, but not for ever */
#define REQUEST_PATIENCE_TIMES 16

enum request_state {
	REQUEST_NEW,
	REQUEST_PENDING,
	REQUEST_QUEUED,
	REQUEST_SENT,
	REQUEST_EXPOSING,
	REQUEST_RE_QUEUED,
	REQUEST_RE_SENT,
	REQUEST_CANCEL_QUEUED,
	REQUEST_CANCEL_SENT,
	REQUEST_LINGER,
	REQUEST_ANSWERED,
	REQUEST_REVOKING,
	REQUEST_REVOKING_LINGER,
	REQUEST_DONE,
};

/**
 * struct rdmatensor_request - one request
 * @fetch: the common part
 * @channel: referenced
 * @entry: the name's entry in the meta cache, held
 * @item: in the channel's pending list
 * @tx: the message to send next; the state says which
 * @settle: compares the checksum, copies from the proxy
 * @expose: strict mode: makes the keys, in EXPOSING
 * @state: enum request_state, changed by request_move() alone
 * @index: on the wire
 * @seq: number of the last request message: content acknowledges messages up to it
 * @admitted: counts in channel->outstanding
 * @exposed: the last request message carried a destination, or the next one will
 * @exposure: of that destination
 * @revoking: strict mode: its keys are being taken back
 * @registering: strict mode: the work item has the device register them, without the lock
 * @arrived: all of the content is there
 * @result: what the fetch ends with, once its end is decided
 * @keep: the name's destination as the peer remembers it; NULL: each request carries it
 * @referred: the request in flight refers to @keep by its number
 * @nr_parts: parts that were asked for
 * @parts: bits of the lanes whose part has not arrived
 * @nr_keys: memory regions that its destination may take, in the channel's @nr_keys
 * @patience: jiffies that the peer may be silent before the channel fails, after a CANCEL
 * @give_up: time in jiffies at which the channel fails in any case
 */
struct rdmatensor_request {
	struct rdmatensor_fetch fetch;
	struct rdmatensor_channel *channel;
	struct rdmatensor_metacache_entry *entry;
	struct list_head item;
	struct rdmatensor_txmsg tx;
	struct work_struct settle;
	struct work_struct expose;
	u8 state;
	u32 index;
	u64 seq;
	bool admitted;
	bool exposed;
	struct rdmatensor_exposure exposure;
	bool revoking;
	bool registering;
	bool arrived;
	int result;
	struct rdmatensor_keep *keep;
	bool referred;
	u8 nr_parts;
	u8 parts;
	u32 nr_keys;
	unsigned long patience;
	unsigned long give_up;
};

static struct rdmatensor_request *to_request(struct rdmatensor_operation *op)
{
	return container_of(rdmatensor_to_fetch(op), struct rdmatensor_request, fetch);
}

static const char * const request_names[] = {
	[REQUEST_NEW] = "NEW",
	[REQUEST_PENDING] = "PENDING",
	[REQUEST_QUEUED] = "QUEUED",
	[REQUEST_SENT] = "SENT",
	[REQUEST_EXPOSING] = "EXPOSING",
	[REQUEST_RE_QUEUED] = "RE_QUEUED",
	[REQUEST_RE_SENT] = "RE_SENT",
	[REQUEST_CANCEL_QUEUED] = "CANCEL_QUEUED",
	[REQUEST_CANCEL_SENT] = "CANCEL_SENT",
	[REQUEST_LINGER] = "LINGER",
	[REQUEST_ANSWERED] = "ANSWERED",
	[REQUEST_REVOKING] = "REVOKING",
	[REQUEST_REVOKING_LINGER] = "REVOKING_LINGER",
	[REQUEST_DONE] = "DONE",
};

/* All changes of state; each is legal from exactly those states */
static void request_move(struct rdmatensor_request *req, enum request_state to)
{
	static const u16 from[] = {
		[REQUEST_PENDING] = BIT(REQUEST_NEW),
		[REQUEST_QUEUED] = BIT(REQUEST_PENDING),
		[REQUEST_SENT] = BIT(REQUEST_QUEUED),
		[REQUEST_EXPOSING] = BIT(REQUEST_SENT),
		[REQUEST_RE_QUEUED] = BIT(REQUEST_SENT) | BIT(REQUEST_EXPOSING),
		[REQUEST_RE_SENT] = BIT(REQUEST_RE_QUEUED),
		[REQUEST_CANCEL_QUEUED] = BIT(REQUEST_SENT) | BIT(REQUEST_EXPOSING) |
					  BIT(REQUEST_RE_QUEUED) | BIT(REQUEST_RE_SENT),
		[REQUEST_CANCEL_SENT] = BIT(REQUEST_CANCEL_QUEUED),
		[REQUEST_LINGER] = BIT(REQUEST_CANCEL_SENT) | BIT(REQUEST_REVOKING_LINGER),
		[REQUEST_ANSWERED] = BIT(REQUEST_CANCEL_SENT),
		[REQUEST_REVOKING] = BIT(REQUEST_PENDING) | BIT(REQUEST_QUEUED) |
				     BIT(REQUEST_SENT) | BIT(REQUEST_EXPOSING) |
				     BIT(REQUEST_RE_QUEUED) | BIT(REQUEST_RE_SENT) |
				     BIT(REQUEST_CANCEL_QUEUED) | BIT(REQUEST_CANCEL_SENT) |
				     BIT(REQUEST_ANSWERED) | BIT(REQUEST_REVOKING_LINGER),
		[REQUEST_REVOKING_LINGER] = BIT(REQUEST_CANCEL_SENT),
		[REQUEST_DONE] = BIT(REQUEST_PENDING) | BIT(REQUEST_QUEUED) |
				 BIT(REQUEST_SENT) | BIT(REQUEST_EXPOSING) |
				 BIT(REQUEST_RE_QUEUED) | BIT(REQUEST_RE_SENT) |
				 BIT(REQUEST_CANCEL_QUEUED) | BIT(REQUEST_CANCEL_SENT) |
				 BIT(REQUEST_LINGER) | BIT(REQUEST_ANSWERED) |
				 BIT(REQUEST_REVOKING) | BIT(REQUEST_REVOKING_LINGER),
	};

	lockdep_assert_held(&req->channel->lock);
	WARN_ON_ONCE(!(from[to] & BIT(req->state)));
	trace_rdmatensor_request_state(req->channel->id, req->fetch.op.user_data, req->index,
				       request_names[req->state], request_names[to]);
	WRITE_ONCE(req->state, to);
}

static bool request_cancelling(const struct rdmatensor_request *req)
{
	return req->state == REQUEST_CANCEL_QUEUED || req->state == REQUEST_CANCEL_SENT;
}

/* A message for a short, an unknown or no content is slowed by what is posted before it */
static void request_send(struct rdmatensor_request *req)
{
	if (!req->exposed || req->fetch.meta.bytes <= RDMATENSOR_SHORT_BYTES ||
	    request_cancelling(req))
		rdmatensor_channel_contend(req->channel);
	/* What a CANCEL overtakes is registered no further */
	req->tx.exposure = req->channel->domain && req->exposed && !request_cancelling(req) ?
			   &req->exposure : NULL;
	rdmatensor_channel_send(req->channel, &req->tx);
}

/* PENDING -> QUEUED, in order, as far as the peer's limit goes */
static void request_admit(struct rdmatensor_channel *channel)
{
	struct rdmatensor_request *req;

	lockdep_assert_held(&channel->lock);
	while (channel->outstanding < channel->max_outstanding) {
		req = list_first_entry_or_null(&channel->pending, struct rdmatensor_request,
					       item);
		if (!req)
			return;
		list_del_init(&req->item);
		channel->outstanding++;
		req->admitted = true;
		request_move(req, REQUEST_QUEUED);
		request_send(req);
	}
}

/* The peer has no more to send for it. The caller has a reference of its own */
static void request_forget(struct rdmatensor_request *req)
{
	struct rdmatensor_channel *channel = req->channel;

	request_move(req, REQUEST_DONE);
	list_del_init(&req->item);
	rdmatensor_channel_unsend(&req->tx);
	xa_erase_bh(&channel->requests, req->index);
	channel->nr_requests--;
	if (req->admitted) {
		req->admitted = false;
		channel->outstanding--;
	}
	if (channel->state == RDMATENSOR_CHANNEL_UP)
		request_admit(channel);
	rdmatensor_operation_put(&req->fetch.op);
}

/* No peer can write to the destination any more */
static void request_let_go(struct rdmatensor_request *req)
{
	struct rdmatensor_pool *landing;
	u64 offset;

	if (!req->exposed)
		return;
	landing = rdmatensor_fetch_landing(&req->fetch, &offset);
	rdmatensor_pool_unexpose(landing, &req->exposure);
	req->exposed = false;
}

/*
 * The peer's use of the destination has ended. True: it could still write to it, and
 * request_revoked() goes on
 */
static bool request_unexpose(struct rdmatensor_request *req)
{
	if (!req->exposed || req->revoking)
		return req->revoking;
	if (req->registering) {
		req->revoking = true;
		return true;
	}
	if (req->exposure.domain && req->exposure.nr_open) {
		req->revoking = true;
		rdmatensor_channel_close_exposure(req->channel, &req->exposure);
		return true;
	}
	request_let_go(req);
	return false;
}

/* Expires unless the peer says something within cancel_ms, and the time that @bytes take */
static void request_be_patient(struct rdmatensor_request *req, u64 bytes)
{
	u64 ms = req->channel->params->cancel_ms + div_u64(bytes, REQUEST_SLOWEST);

	req->patience = msecs_to_jiffies(min_t(u64, ms, REQUEST_PATIENCE_MAX));
	req->give_up = jiffies + REQUEST_PATIENCE_TIMES * req->patience;
	rdmatensor_operation_arm(&req->fetch.op, jiffies + req->patience);
}

/*
 * The invalidation waits behind writes, which a peer can hold up for ever. Unlike an answer it is
 * not this peer's doing that there are so many: as long as they take on a slow line, and no less
 * than it may take until they are acknowledged
 */
static void request_await_keys(struct rdmatensor_request *req)
{
	const struct rdmatensor_channel *channel = req->channel;

	request_be_patient(req, rdmatensor_channel_posted_most(channel));
	req->patience = max(req->patience, rdmatensor_channel_leave_time(channel->params));
	req->give_up = jiffies + REQUEST_PATIENCE_TIMES * req->patience;
	rdmatensor_operation_arm(&req->fetch.op, jiffies + req->patience);
}

/* Its memory regions are idle again, or were never made. By one at a time */
static void request_give_keys(struct rdmatensor_request *req)
{
	if (!req->nr_keys)
		return;
	atomic64_sub(req->nr_keys, &req->channel->nr_keys);
	req->nr_keys = 0;
}

/* Nobody but this side can write to the destination any more. Moves the request on to @to */
static void request_conclude(struct rdmatensor_request *req, enum request_state to)
{
	bool settle = req->arrived && rdmatensor_fetch_is_unsettled(&req->fetch);

	/* Before the process has its entry, and fetches the next one */
	request_give_keys(req);
	if (settle)
		/* The fetch ends in process context; for the peer it has ended now */
		rdmatensor_operation_get(&req->fetch.op);
	else
		rdmatensor_fetch_finish(&req->fetch, req->result);
	if (to == REQUEST_DONE)
		request_forget(req);
	else
		request_move(req, to);
	if (settle)
		queue_work(req->channel->core->wq, &req->settle);
}

/*
 * Ends the fetch, with what has arrived or @error. @to: LINGER: the answer to a CANCEL is still
 * to come; DONE: the peer has no more to send
 */
static void request_end(struct rdmatensor_request *req, int error, enum request_state to)
{
	req->result = error;
	rdmatensor_channel_unsend(&req->tx);
	/* Of those that wait for their turn, if it does */
	list_del_init(&req->item);
	if (request_unexpose(req)) {
		request_move(req, to == REQUEST_DONE ? REQUEST_REVOKING : REQUEST_REVOKING_LINGER);
		request_await_keys(req);
	} else {
		request_conclude(req, to);
	}
}

/* As above, by whether a CANCEL has been sent */
static void request_end_unanswered(struct rdmatensor_request *req, int error)
{
	request_end(req, error,
		    req->state == REQUEST_CANCEL_SENT ? REQUEST_LINGER : REQUEST_DONE);
}

static u32 request_slot_bytes(const struct rdmatensor_channel *channel)
{
	return min(channel->peer_slot_bytes, channel->params->msg_slot_bytes);
}

static void request_describe_layout(const struct rdmatensor_request *req,
				    struct rdmatensor_msg *msg)
{
	const struct rdmatensor_fetch_layout *layout;

	layout = rdmatensor_fetch_landing_layout(&req->fetch);
	if (!layout)
		return;
	msg->flags |= RDMATENSOR_WIRE_F_LAYOUT;
	msg->layout = &layout->wire;
}

static void request_describe(const struct rdmatensor_request *req,
			     struct rdmatensor_msg *msg)
{
	msg->request_index = req->index;
	msg->step_id = req->fetch.step_id;
	if (req->fetch.slice) {
		msg->flags |= RDMATENSOR_WIRE_F_SLICE;
		msg->slice = &req->fetch.slice->wire;
	}
	if (req->exposed) {
		msg->flags |= RDMATENSOR_WIRE_F_DEST;
		msg->nr_parts = req->nr_parts;
		msg->seg_shift = req->exposure.seg_shift;
		msg->nr_rkeys = req->exposure.nr_rkeys;
		msg->remote_addr = req->exposure.nr_rkeys ? req->exposure.iova : 0;
		msg->meta = *rdmatensor_fetch_whole(&req->fetch);
		request_describe_layout(req, msg);
	}
}

/*
 * The destination is compared with the remembered one, and replaces it, when the message is
 * posted and not before: the peer learns in this order. It is held as for any other request
 */
static void request_tell(struct rdmatensor_request *req, struct rdmatensor_msg *msg)
{
	struct rdmatensor_channel *channel = req->channel;

	req->referred = req->keep && req->exposed &&
			rdmatensor_keep_tell(req->keep, &channel->nr_keeps, msg,
					     req->exposure.iova, req->state == REQUEST_QUEUED);
	if (req->referred)
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_TX_SHORT_REQUESTS);
}

static void request_fill(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	struct rdmatensor_request *req = container_of(tx, struct rdmatensor_request, tx);
	__le32 *rkeys = req->channel->msgbuf.rkeys;
	struct rdmatensor_pool *landing;
	u64 offset;

	if (req->state == REQUEST_CANCEL_QUEUED) {
		msg->type = RDMATENSOR_WIRE_CANCEL;
		msg->request_index = req->index;
		return;
	}

	request_describe(req, msg);
	request_tell(req, msg);
	if (req->referred)
		msg->nr_rkeys = 0;
	landing = rdmatensor_fetch_landing(&req->fetch, &offset);
	if (msg->nr_rkeys)
		rdmatensor_pool_rkeys(landing, &req->exposure, rkeys);
	msg->rkeys = rkeys;

	if (req->state == REQUEST_RE_QUEUED) {
		msg->type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST;
		return;
	}
	msg->type = RDMATENSOR_WIRE_TENSOR_REQUEST;
	msg->name = rdmatensor_metacache_name(req->entry, &msg->name_len);
	if (req->fetch.validate)
		msg->flags |= RDMATENSOR_WIRE_F_VALIDATE;
	if (req->fetch.newest)
		msg->flags |= RDMATENSOR_WIRE_F_NEWEST;
	if (req->fetch.now)
		msg->flags |= RDMATENSOR_WIRE_F_NOW;
}

static void request_posted(struct rdmatensor_txmsg *tx, u64 seq)
{
	struct rdmatensor_request *req = container_of(tx, struct rdmatensor_request, tx);

	switch (req->state) {
	case REQUEST_QUEUED:
		req->seq = seq;
		request_move(req, REQUEST_SENT);
		break;
	case REQUEST_RE_QUEUED:
		req->seq = seq;
		request_move(req, REQUEST_RE_SENT);
		break;
	default:
		request_move(req, REQUEST_CANCEL_SENT);
		break;
	}
}

/* Runs of the landing that the peer would have to write one by one. Return: 0; -E2BIG */
static int request_count_runs(struct rdmatensor_request *req)
{
	struct rdmatensor_fetch *fetch = &req->fetch;
	char text[RDMATENSOR_TEXT_MAX];
	struct rdmatensor_cut cut;

	if (!rdmatensor_fetch_landing_layout(fetch))
		return 0;
	rdmatensor_fetch_cut(fetch, &cut);
	if (rdmatensor_cut_runs(&cut) <= RDMATENSOR_RUNS_MAX)
		return 0;
	scnprintf(text, sizeof(text),
		  "the destination has %llu runs of %llu bytes, and %u is the most: fetch parts, or name a proxy",
		  rdmatensor_cut_runs(&cut), cut.bytes, RDMATENSOR_RUNS_MAX);
	rdmatensor_status_set(&fetch->op.status, -E2BIG, text);
	return -E2BIG;
}

/*
 * Where the content goes to is for the peer to write from here on. Return: 0; -EMSGSIZE: it
 * takes more keys than a message has, and is not; -E2BIG
 */
static int request_expose_landing(struct rdmatensor_request *req)
{
	struct rdmatensor_channel *channel = req->channel;
	struct rdmatensor_fetch *fetch = &req->fetch;
	struct rdmatensor_msg msg = {};
	struct rdmatensor_pool *pool;
	u64 length, offset;
	int ret;

	ret = request_count_runs(req);
	if (ret)
		return ret;
	pool = rdmatensor_fetch_landing(fetch, &offset);
	rdmatensor_pool_expose(pool, offset, rdmatensor_fetch_landing_bytes(fetch), channel->domain,
			       &req->exposure);
	req->exposed = true;
	req->nr_parts = fetch->meta.bytes > channel->params->stripe_bytes ?
			channel->nr_lanes : 1;
	req->parts = BIT(req->nr_parts) - 1;

	msg.type = req->state == REQUEST_NEW ? RDMATENSOR_WIRE_TENSOR_REQUEST :
					      RDMATENSOR_WIRE_TENSOR_RE_REQUEST;
	request_describe(req, &msg);
	rdmatensor_metacache_name(req->entry, &msg.name_len);
	/* Computed here: the wire's count of keys has only 16 bits */
	msg.nr_rkeys = 0;
	length = rdmatensor_wire_length(&msg) + (u64)req->exposure.nr_rkeys * sizeof(*msg.rkeys);
	if (length <= request_slot_bytes(channel))
		return 0;

	fetch->op.status.text_len =
		scnprintf(fetch->op.status.text, sizeof(fetch->op.status.text),
			  "%u segments need a message of %llu bytes, slots have %u: ",
			  req->exposure.nr_rkeys, length, request_slot_bytes(channel));
	fetch->op.status.text_len +=
		scnprintf(fetch->op.status.text + fetch->op.status.text_len,
			  sizeof(fetch->op.status.text) - fetch->op.status.text_len,
			  "%s%lu", length <= REQUEST_SLOT_MOST ?
			  "raise msg_slot_bytes to " : "publish it in parts: the most is ",
			  min(roundup_pow_of_two(length), REQUEST_SLOT_MOST));
	request_unexpose(req);
	return -EMSGSIZE;
}

/* A peer that writes no layouts writes to the proxy of what has one */
static bool request_knows_layout(const struct rdmatensor_request *req)
{
	return !req->fetch.layout ||
	       READ_ONCE(req->channel->features) & RDMATENSOR_WIRE_FEATURE_LAYOUT;
}

/*
 * A destination that fits the known meta-data, or its proxy. Return: 0, or why there is none:
 * then the request is sent without it, or the fetch is cancelled.
 */
static int request_expose(struct rdmatensor_request *req, gfp_t gfp)
{
	struct rdmatensor_fetch *fetch = &req->fetch;
	int ret;

	ret = rdmatensor_fetch_place(fetch, gfp);
	if (ret)
		return ret;
	if (fetch->op.pool->peers == RDMATENSOR_POOL_PEERS_WRITE && request_knows_layout(req)) {
		ret = request_expose_landing(req);
		if (!ret || !fetch->proxy.pool)
			return ret;
	}
	ret = rdmatensor_fetch_stand_in(fetch, gfp) ?: request_expose_landing(req);
	if (ret)
		rdmatensor_proxy_give(&fetch->proxy);
	return ret;
}

/*
 * What has begun on several lanes is written whole, before what nobody cancels, and whether the
 * tensor is a view with short runs its publisher alone knows
 */
static u64 request_cost(const struct rdmatensor_request *req)
{
	u64 bytes = req->fetch.meta.bytes, cost = rdmatensor_fetch_cost(&req->fetch);
	const struct rdmatensor_cut runs = {
		.bytes = max_t(u64, div_u64(bytes, RDMATENSOR_RUNS_MAX), 1),
	};

	return req->nr_parts > 1 ? max(cost, rdmatensor_cut_cost(&runs, bytes)) : cost;
}

/*
 * How long the peer may be silent before it answers a CANCEL: it may first have to write
 * the whole destination. A length that it only announced extends nothing. Any message
 * restarts the time, since the answer goes the same way. Acknowledgements of its device do
 * not: a device sends them for a peer that hangs, too.
 */
static void request_await_answer(struct rdmatensor_request *req)
{
	/* While keys are being taken back the meta-data are those of another destination */
	request_be_patient(req, req->exposed && !req->revoking ? request_cost(req) : 0);
}

/* True: the peer has sent something since, and the time was extended */
static bool request_await_longer(struct rdmatensor_request *req)
{
	unsigned long until = req->channel->said_at + req->patience;

	if (time_after(until, req->give_up))
		until = req->give_up;
	if (!time_after(until, jiffies))
		return false;
	rdmatensor_operation_arm(&req->fetch.op, until);
	return true;
}

/* Ends it as soon as the peer cannot write any more */
static void request_stop(struct rdmatensor_request *req, int error)
{
	req->fetch.op.status.error = error;

	switch (req->state) {
	case REQUEST_PENDING:
	case REQUEST_QUEUED:
		request_end(req, error, REQUEST_DONE);
		break;
	case REQUEST_SENT:
	case REQUEST_EXPOSING:
	case REQUEST_RE_QUEUED:
	case REQUEST_RE_SENT:
		/* A re-request that still waits for its slot becomes the CANCEL */
		rdmatensor_channel_unsend(&req->tx);
		request_await_answer(req);
		request_move(req, REQUEST_CANCEL_QUEUED);
		request_send(req);
		break;
	default:
		break;
	}
}

static void request_cancel(struct rdmatensor_operation *op,
			   const struct rdmatensor_status *status)
{
	struct rdmatensor_request *req = to_request(op);
	struct rdmatensor_channel *channel = req->channel;

	spin_lock_bh(&channel->lock);
	if (req->state < REQUEST_CANCEL_QUEUED) {
		rdmatensor_status_copy(&op->status, status);
		request_stop(req, status->error);
		rdmatensor_channel_pump(channel);
	}
	spin_unlock_bh(&channel->lock);
}

/* What a request waits for that is to end soon, as text if it does not; NULL: nothing */
static const char *request_awaits(const struct rdmatensor_request *req)
{
	switch (req->state) {
	case REQUEST_CANCEL_QUEUED:
	case REQUEST_CANCEL_SENT:
		return "the peer does not answer a CANCEL";
	case REQUEST_ANSWERED:
		return "a part of a content does not come";
	case REQUEST_REVOKING:
	case REQUEST_REVOKING_LINGER:
		return "the keys of a destination cannot be taken back: the peer receives nothing";
	default:
		return NULL;
	}
}

static void request_expire(struct rdmatensor_operation *op)
{
	struct rdmatensor_request *req = to_request(op);
	struct rdmatensor_channel *channel = req->channel;
	bool timed_out = false;
	const char *late;

	spin_lock_bh(&channel->lock);
	/* The last holder of the lock has armed it again: this expiry no longer counts */
	if (timer_pending(&op->timer))
		goto out_unlock;
	late = request_awaits(req);
	if (late) {
		/* A channel that is ending ends the request as well */
		if (rdmatensor_channel_usable(channel) && !request_await_longer(req))
			rdmatensor_channel_fail_locked(channel, -ETIMEDOUT, late);
	} else if (req->state < REQUEST_CANCEL_QUEUED && !rdmatensor_operation_early(op)) {
		rdmatensor_status_set(&op->status, -ETIMEDOUT, NULL);
		request_stop(req, -ETIMEDOUT);
		rdmatensor_channel_pump(channel);
		timed_out = true;
	}
out_unlock:
	spin_unlock_bh(&channel->lock);
	if (timed_out)
		rdmatensor_operation_timed_out(op);
}

static void request_describe_fetch(struct rdmatensor_operation *op,
				   struct rdmatensor_operation_info *info)
{
	struct rdmatensor_request *req = to_request(op);

	info->state = request_names[READ_ONCE(req->state)];
	info->name = rdmatensor_metacache_name(req->entry, &info->name_len);
	/* Set before the channel was UP, and requests are made after that */
	info->peer = req->channel->worker;
	info->index = req->index;
	info->has_index = true;
}

static void request_release(struct rdmatensor_operation *op)
{
	struct rdmatensor_request *req = to_request(op);

	rdmatensor_metacache_put(req->channel->metacache, req->entry);
	request_give_keys(req);
	rdmatensor_channel_put(req->channel);
	kfree(req->fetch.slice);
	kfree(req->fetch.layout);
	kfree(req);
}

static const struct rdmatensor_operation_ops request_ops = {
	.kind = &rdmatensor_fetch_kind,
	.cancel = request_cancel,
	.expire = request_expire,
	.describe = request_describe_fetch,
	.release = request_release,
};

static void request_settle(struct work_struct *work)
{
	struct rdmatensor_request *req = container_of(work, struct rdmatensor_request, settle);

	rdmatensor_fetch_finish(&req->fetch, rdmatensor_fetch_settle(&req->fetch));
	rdmatensor_operation_put(&req->fetch.op);
}

/* The keys are there, or why not. With the lock held, in EXPOSING */
static void request_exposed(struct rdmatensor_request *req, int error)
{
	if (error) {
		/* Others may be short of them, and the peer may be long in answering the CANCEL */
		if (!req->exposure.nr_open)
			request_let_go(req);
		request_stop(req, error);
	} else {
		request_move(req, REQUEST_RE_QUEUED);
		request_send(req);
	}
	rdmatensor_channel_pump(req->channel);
}

/*
 * One key more. Return: 0: they are all there, or the fetch has ended meanwhile; -EAGAIN: call
 * again, with a memory region more in the domain if *@short_of_mrs
 */
static int request_expose_next(struct rdmatensor_request *req, gfp_t gfp, bool *short_of_mrs)
{
	struct rdmatensor_pool *landing;
	u64 offset;
	int ret;

	*short_of_mrs = false;
	landing = rdmatensor_fetch_landing(&req->fetch, &offset);
	ret = rdmatensor_exposure_extend(&req->exposure, &landing->reg, gfp);
	if (ret == -EAGAIN)
		*short_of_mrs = true;
	else if (!ret && !rdmatensor_exposure_is_whole(&req->exposure))
		ret = -EAGAIN;
	return ret;
}

/* The queue pairs are gone, and with them the peer's use of all keys */
static void request_go_down(struct rdmatensor_request *req)
{
	struct rdmatensor_channel *channel = req->channel;

	/* In REVOKING its end is decided */
	if (req->state != REQUEST_REVOKING && req->state != REQUEST_REVOKING_LINGER) {
		if (channel->error_text && !req->fetch.op.status.text_len)
			rdmatensor_status_set(&req->fetch.op.status, channel->error,
					      channel->error_text);
		req->result = channel->error;
	}
	request_let_go(req);
	request_conclude(req, REQUEST_DONE);
}

/* Keys of a domain that registers apart. If that fails it is not known which are valid */
static void request_register(struct rdmatensor_request *req)
{
	struct rdmatensor_channel *channel = req->channel;
	int ret = 0;

	if (req->exposed && channel->domain && channel->domain->apart)
		ret = rdmatensor_exposure_register(&req->exposure);
	if (ret)
		rdmatensor_channel_fail(channel, ret == -ENODEV ? ret : -ECONNRESET,
					"registering a destination failed");
}

/* Has been registered, and what has happened to it since; with the lock held */
static void request_registered(struct rdmatensor_request *req)
{
	struct rdmatensor_channel *channel = req->channel;

	req->registering = false;
	if (channel->state == RDMATENSOR_CHANNEL_DOWN) {
		request_go_down(req);
	} else if (!rdmatensor_channel_usable(channel)) {
		/* request_down() is still to come */
	} else if (req->revoking) {
		rdmatensor_channel_close_exposure(channel, &req->exposure);
		rdmatensor_channel_pump(channel);
	} else if (req->state == REQUEST_EXPOSING) {
		request_exposed(req, 0);
	}
}

/* All keys are mapped, or why not; with the lock held. Their registration follows without it */
static void request_mapped(struct rdmatensor_request *req, int error)
{
	if (!error && req->channel->domain->apart)
		req->registering = true;
	else
		request_exposed(req, error);
}

/* Under the lock key by key: what happens in between finds those that are there, and ends them */
static void request_expose_work(struct work_struct *work)
{
	struct rdmatensor_request *req =
		container_of(work, struct rdmatensor_request, expose);
	struct rdmatensor_channel *channel = req->channel;
	bool short_of_mrs = false, wanted;
	int ret;

	if (rdmatensor_channel_enter(channel))
		goto out_put;
	do {
		ret = short_of_mrs ? rdmatensor_exposure_grow(channel->domain) : 0;
		spin_lock_bh(&channel->lock);
		/* On a channel that is going down request_down() ends it */
		wanted = req->state == REQUEST_EXPOSING && rdmatensor_channel_usable(channel);
		if (!wanted)
			ret = 0;
		else if (!ret)
			ret = request_expose_next(req, GFP_ATOMIC | __GFP_NOWARN,
						  &short_of_mrs);
		if (wanted && ret != -EAGAIN)
			request_mapped(req, ret);
		spin_unlock_bh(&channel->lock);
		cond_resched();
	} while (ret == -EAGAIN);

	/* Nobody else changes that */
	if (req->registering) {
		request_register(req);
		spin_lock_bh(&channel->lock);
		request_registered(req);
		spin_unlock_bh(&channel->lock);
	}
	rdmatensor_channel_exit(channel);
out_put:
	rdmatensor_operation_put(&req->fetch.op);
}

/* After the META_DATA_RESPONSE, in EXPOSING or, in pool mode, on the way to RE_QUEUED */
static void request_expose_again(struct rdmatensor_request *req)
{
	int ret = request_expose(req, GFP_ATOMIC | __GFP_ACCOUNT);

	if (ret) {
		request_stop(req, ret);
	} else if (rdmatensor_exposure_is_whole(&req->exposure)) {
		request_move(req, REQUEST_RE_QUEUED);
		request_send(req);
	} else {
		rdmatensor_operation_get(&req->fetch.op);
		queue_work(req->channel->core->wq, &req->expose);
	}
}

/* The device has taken back the keys of the destination. The channel's lock is held */
static void request_revoked(struct rdmatensor_exposure *exposure)
{
	struct rdmatensor_request *req =
		container_of(exposure, struct rdmatensor_request, exposure);

	req->revoking = false;
	request_let_go(req);
	switch (req->state) {
	case REQUEST_EXPOSING:
		request_expose_again(req);
		break;
	case REQUEST_REVOKING:
		request_conclude(req, REQUEST_DONE);
		break;
	case REQUEST_REVOKING_LINGER:
		request_conclude(req, REQUEST_LINGER);
		break;
	default:
		/* Cancelled since: it ends when that is answered */
		break;
	}
}

/* Holds the entry of the name in the meta cache. Or ERR_PTR */
static struct rdmatensor_request *request_new(struct rdmatensor_channel *channel,
					      const struct rdmatensor_fetch_args *args)
{
	struct rdmatensor_request *req = kzalloc(sizeof(*req), RDMATENSOR_GFP_SPARING);
	int ret;

	if (!req)
		return ERR_PTR(-ENOMEM);

	req->channel = channel;
	INIT_LIST_HEAD(&req->item);
	INIT_LIST_HEAD(&req->tx.item);
	INIT_WORK(&req->settle, request_settle);
	INIT_WORK(&req->expose, request_expose_work);
	req->exposure.closed = request_revoked;
	req->tx.fill = request_fill;
	req->tx.posted = request_posted;
	req->state = REQUEST_NEW;

	req->entry = rdmatensor_metacache_get(channel->metacache, args->name,
					      args->name_len);
	if (IS_ERR(req->entry)) {
		ret = PTR_ERR(req->entry);
		kfree(req);
		return ERR_PTR(ret);
	}
	return req;
}

/* The keys of a destination that nobody else knows of yet. Return: 0, or why there are none */
static int request_expose_now(struct rdmatensor_request *req)
{
	bool short_of_mrs;
	int ret;

	while (!rdmatensor_exposure_is_whole(&req->exposure)) {
		/* Who ends the channel waits for this */
		ret = fatal_signal_pending(current) ? -EINTR :
		      READ_ONCE(req->channel->state) != RDMATENSOR_CHANNEL_UP ? -ENOTCONN :
		      request_expose_next(req, GFP_KERNEL, &short_of_mrs);
		if (ret == -EAGAIN && short_of_mrs)
			ret = rdmatensor_exposure_grow(req->channel->domain);
		cond_resched();
		if (ret && ret != -EAGAIN) {
			request_unexpose(req);
			return ret;
		}
	}
	return 0;
}

/*
 * In strict mode requests that wait for their turn have no keys yet, so that the memory regions
 * of a channel are bounded by what may be outstanding. They get theirs after META_DATA_RESPONSE
 */
static bool request_may_expose(const struct rdmatensor_request *req)
{
	const struct rdmatensor_channel *channel = req->channel;
	u32 outstanding;

	if (!channel->domain)
		return true;
	/* data_race(): without the lock: each thread that submits at this time can make one more */
	outstanding = data_race(channel->nr_requests);
	return outstanding < channel->max_outstanding;
}

/* A destination, if the meta-data is known. Return: 0, with one or without; -EDQUOT: rdma.max */
static int request_recall(struct rdmatensor_request *req,
			  const struct rdmatensor_fetch_args *args)
{
	struct rdmatensor_channel *channel = req->channel;
	struct rdmatensor_meta known;
	int ret = 0;

	req->fetch.validate = READ_ONCE(channel->core->validate);
	/* In strict mode a destination has other keys with each fetch */
	if (args->keep && !req->fetch.validate && !channel->domain &&
	    READ_ONCE(channel->features) & RDMATENSOR_WIRE_FEATURE_KEEP)
		req->keep = rdmatensor_metacache_keep(req->entry);
	/* The step is told by the answer, so there is to be one */
	if (rdmatensor_metacache_read(req->entry, &known) && !req->fetch.validate &&
	    !req->fetch.newest &&
	    !rdmatensor_fetch_learn(&req->fetch, &known) && request_may_expose(req)) {
		ret = request_expose(req, RDMATENSOR_GFP_SPARING) ?: request_expose_now(req);
		if (ret) {
			req->fetch.op.status.text_len = 0;
			rdmatensor_proxy_give(&req->fetch.proxy);
		}
	}
	/* Without a destination the request carries no meta-data: the peer sends its own */
	if (!req->exposed)
		rdmatensor_fetch_unlearn(&req->fetch);
	/* What a named destination needs has been paid for */
	return ret == -EDQUOT && args->alloc ? ret : 0;
}

/*
 * With the lock held, on a channel that is usable; or is going down: request_down() is to come
 * then, and the request waits for it
 */
static void request_begin(struct rdmatensor_request *req,
			  const struct rdmatensor_fetch_args *args)
{
	struct rdmatensor_channel *channel = req->channel;
	struct rdmatensor_status status;

	request_move(req, REQUEST_PENDING);
	channel->nr_requests++;
	if (!list_empty(&channel->pending) ||
	    channel->outstanding >= channel->max_outstanding)
		rdmatensor_channel_stall(channel, RDMATENSOR_STAT_STALL_REQUESTS);
	list_add_tail(&req->item, &channel->pending);
	rdmatensor_operation_begin(&req->fetch.op, args->deadline_ns);
	/* An abort whose walk missed the request has remembered the step before */
	if (!args->newest &&
	    rdmatensor_rendezvous_step_status(channel->core->rdv, args->step_id, &status)) {
		rdmatensor_status_clear(&req->fetch.op.status);
		req->fetch.op.status = status;
		request_stop(req, status.error);
	}
	if (!rdmatensor_channel_usable(channel))
		return;
	request_admit(channel);
	rdmatensor_channel_pump(channel);
}

/*
 * A region whose keys are registered stays the kernel's until the queue pairs are gone, though no
 * peer has been told of them
 */
static bool request_may_begin(const struct rdmatensor_request *req)
{
	const struct rdmatensor_channel *channel = req->channel;

	return rdmatensor_channel_usable(channel) ||
	       (req->exposed && req->exposure.domain && req->exposure.nr_open &&
		channel->state != RDMATENSOR_CHANNEL_DOWN);
}

/* What can be refused before anything is known of the tensor. Return: 0, -EACCES, -EOPNOTSUPP */
static int request_check_pools(const struct rdmatensor_channel *channel,
			       const struct rdmatensor_fetch_args *args)
{
	const struct rdmatensor_pool *landing = args->proxy ?: args->pool;

	if (landing->peers != RDMATENSOR_POOL_PEERS_WRITE)
		return -EACCES;
	if (READ_ONCE(channel->core->validate) &&
	    !(rdmatensor_pool_reachable(args->pool) && rdmatensor_pool_reachable(landing)))
		return -EOPNOTSUPP;
	return 0;
}

/* What the peer knows its HELLO has told, which makes the channel usable. Return: 0, -EOPNOTSUPP */
static int request_check_features(struct rdmatensor_channel *channel, u32 features)
{
	bool usable, knows;

	if (!features)
		return 0;
	spin_lock_bh(&channel->lock);
	usable = rdmatensor_channel_usable(channel);
	knows = !(features & ~channel->features);
	spin_unlock_bh(&channel->lock);
	return knows ? 0 : usable ? -EOPNOTSUPP : -ENOTCONN;
}

/* In strict mode the process pays for the keys, for one if it does not name the destination */
static int request_reserve_keys(struct rdmatensor_request *req,
				const struct rdmatensor_fetch_args *args)
{
	struct rdmatensor_channel *channel = req->channel;
	u64 sum;
	int ret;

	if (!channel->domain)
		return 0;
	/* In a proxy it may begin anywhere */
	req->nr_keys = args->alloc ? 1 :
		       rdmatensor_wire_segments(args->offset, args->bytes,
						channel->domain->seg_shift) + !!args->proxy;
	sum = atomic64_add_return(req->nr_keys, &channel->nr_keys);
	ret = rdmatensor_exposure_reserve(channel->domain, req->nr_keys, sum,
					  channel->max_outstanding);
	if (ret)
		request_give_keys(req);
	return ret;
}

static int request_submit(struct rdmatensor_channel *channel,
			  const struct rdmatensor_fetch_args *args)
{
	struct rdmatensor_request *req;
	int ret;

	ret = request_check_features(channel,
				     (args->slice ? RDMATENSOR_WIRE_FEATURE_SLICE : 0) |
				     (args->layout && !args->proxy ?
				      RDMATENSOR_WIRE_FEATURE_LAYOUT : 0) |
				     (args->newest || args->now ?
				      RDMATENSOR_WIRE_FEATURE_NEWEST : 0));
	if (!ret)
		ret = request_check_pools(channel, args);
	if (ret)
		return ret;
	req = request_new(channel, args);
	if (IS_ERR(req))
		return PTR_ERR(req);

	ret = rdmatensor_fetch_init(&req->fetch, &request_ops, channel->core, &channel->counters,
				    channel->id, args);
	if (ret)
		goto out_put_entry;
	ret = request_reserve_keys(req, args);
	if (ret)
		goto out_abandon_fetch;
	ret = request_recall(req, args);
	if (ret)
		goto out_abandon;

	ret = xa_alloc_cyclic_bh(&channel->requests, &req->index, req,
				 XA_LIMIT(0, RDMATENSOR_INDEX_MAX), &channel->next_index,
				 RDMATENSOR_GFP_SPARING);
	if (ret < 0)
		goto out_abandon;

	request_register(req);
	rdmatensor_hold("fetch");
	/* The table's reference is the first one; this one is for the rest of this function */
	rdmatensor_operation_get(&req->fetch.op);
	rdmatensor_channel_get(channel);

	spin_lock_bh(&channel->lock);
	if (!request_may_begin(req)) {
		/* Under the lock, as is every access to what is found in the table */
		xa_erase_bh(&channel->requests, req->index);
		spin_unlock_bh(&channel->lock);
		rdmatensor_channel_put(channel);
		/* Of what is registered the queue pairs are gone */
		request_let_go(req);
		ret = -ENOTCONN;
		goto out_abandon;
	}
	request_begin(req, args);
	spin_unlock_bh(&channel->lock);

	rdmatensor_operation_put(&req->fetch.op);
	return 0;

out_abandon:
	request_unexpose(req);
	request_give_keys(req);
out_abandon_fetch:
	rdmatensor_fetch_abandon(&req->fetch);
out_put_entry:
	rdmatensor_metacache_put(channel->metacache, req->entry);
	kfree(req);
	return ret;
}

int rdmatensor_request_submit(struct rdmatensor_channel *channel,
			      const struct rdmatensor_fetch_args *args)
{
	int ret;

	if (!channel->domain)
		return request_submit(channel, args);
	ret = rdmatensor_channel_enter(channel);
	if (ret)
		return ret;
	ret = request_submit(channel, args);
	rdmatensor_channel_exit(channel);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_request_submit);

/* For the peer it has ended, or was never sent */
static bool request_is_over(const struct rdmatensor_request *req)
{
	return req->state < REQUEST_SENT || req->state == REQUEST_REVOKING;
}

/* For the process it has ended, and the peer still has to answer a CANCEL */
static bool request_lingers(const struct rdmatensor_request *req)
{
	return req->state == REQUEST_LINGER || req->state == REQUEST_REVOKING_LINGER;
}

/* With the lock held; NULL: it has ended, or was never sent */
static struct rdmatensor_request *request_find(struct rdmatensor_channel *channel, u32 index)
{
	struct rdmatensor_request *req = xa_load(&channel->requests, index);

	return req && !request_is_over(req) ? req : NULL;
}

static int request_meta(struct rdmatensor_request *req, const struct rdmatensor_msg *msg,
			const char **why)
{
	struct rdmatensor_fetch *fetch = &req->fetch;

	rdmatensor_metacache_learn(req->entry, &msg->meta);
	/* A CANCEL is in flight: the peer drops the tensor that it has just described */
	if (request_cancelling(req) || request_lingers(req))
		return 0;
	/* ANSWERED is among these */
	if (req->state != REQUEST_SENT) {
		*why = "META_DATA_RESPONSE out of turn";
		return -EPROTO;
	}
	if (fetch->newest ? msg->step_id < fetch->op.step_id :
			    msg->step_id != fetch->op.step_id) {
		*why = "META_DATA_RESPONSE of another step";
		return -EPROTO;
	}
	fetch->step_id = msg->step_id;

	/* The peer has begun to write the destination, which may be freed below */
	if (req->exposed && req->parts != BIT(req->nr_parts) - 1) {
		*why = "META_DATA_RESPONSE after a part of the content";
		return -EPROTO;
	}

	/* The same as the request had: the peer does not remember the destination */
	if (req->referred && !(msg->flags & RDMATENSOR_WIRE_F_CHECKSUM) &&
	    rdmatensor_meta_equal(&msg->meta, &fetch->meta))
		rdmatensor_keep_missed(req->keep);
	if (rdmatensor_fetch_learn(fetch, &msg->meta)) {
		*why = "META_DATA_RESPONSE of a tensor that has no such slice";
		return -EPROTO;
	}
	fetch->validate = msg->flags & RDMATENSOR_WIRE_F_CHECKSUM;
	fetch->checksum = msg->checksum;

	if (req->channel->domain)
		request_move(req, REQUEST_EXPOSING);
	if (!request_unexpose(req))
		request_expose_again(req);
	return 0;
}

/*
 * Lane 0's part has arrived, and others have not: a content over several lanes that has begun
 * is written whole, so their last writes are in flight
 */
static bool request_overtaken(const struct rdmatensor_request *req)
{
	return req->exposed && req->parts && !(req->parts & BIT(0));
}

/* It has the name and step of the request, and the feature was agreed on */
static bool request_is_named(const struct rdmatensor_request *req,
			     const struct rdmatensor_msg *msg)
{
	const char *name;
	u16 name_len;

	name = rdmatensor_metacache_name(req->entry, &name_len);
	return req->channel->features & RDMATENSOR_WIRE_FEATURE_ERROR_NAMED &&
	       msg->step_id == req->fetch.op.step_id && msg->name_len == name_len &&
	       !memcmp(msg->name, name, name_len);
}

static int request_error(struct rdmatensor_request *req, const struct rdmatensor_msg *msg,
			 const char **why)
{
	struct rdmatensor_fetch *fetch = &req->fetch;

	if (msg->flags & RDMATENSOR_WIRE_F_CANCELLED) {
		if (req->state == REQUEST_CANCEL_SENT) {
			if (request_overtaken(req)) {
				request_move(req, REQUEST_ANSWERED);
				return 0;
			}
			request_end(req, fetch->op.status.error, REQUEST_DONE);
			return 0;
		}
		if (req->state == REQUEST_REVOKING_LINGER) {
			request_move(req, REQUEST_REVOKING);
			return 0;
		}
		if (req->state == REQUEST_LINGER) {
			request_forget(req);
			return 0;
		}
		*why = "answer to a CANCEL that was not sent";
		return -EPROTO;
	}
	if (request_lingers(req) || req->state == REQUEST_ANSWERED) {
		*why = "second end of one request";
		return -EPROTO;
	}
	if (msg->flags & RDMATENSOR_WIRE_F_NAMED && !request_is_named(req, msg)) {
		*why = "ERROR_STATUS of another tensor";
		return -EPROTO;
	}

	rdmatensor_status_say(&fetch->op.status, msg->error, msg->text, msg->text_len,
			      GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	request_end_unanswered(req, msg->error);
	return 0;
}

int rdmatensor_request_message(struct rdmatensor_channel *channel,
			       const struct rdmatensor_msg *msg, const char **why)
{
	struct rdmatensor_request *req;
	int ret = 0;

	spin_lock_bh(&channel->lock);
	req = request_find(channel, msg->request_index);
	if (!req) {
		*why = "answer to a request that was not sent or has ended";
		ret = -EPROTO;
	} else if (msg->type == RDMATENSOR_WIRE_META_DATA_RESPONSE) {
		ret = request_meta(req, msg, why);
	} else {
		ret = request_error(req, msg, why);
	}
	spin_unlock_bh(&channel->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_request_message);

/* Where byte @pos of the content lands; @together: out: bytes that lie together there, up to it */
static u64 request_lands_at(const struct rdmatensor_request *req, u64 pos, u64 *together)
{
	struct rdmatensor_cut cut;
	u64 at, left;

	*together = pos + 1;
	if (!rdmatensor_fetch_landing_layout(&req->fetch))
		return pos;
	rdmatensor_fetch_cut(&req->fetch, &cut);
	at = rdmatensor_cut_at(&cut, pos, &left);
	*together = cut.bytes - left + 1;
	return at;
}

/* True: the last write of this lane's part may be that long */
static bool request_content_fits(const struct rdmatensor_request *req, u8 lane, u32 bytes)
{
	u64 mask = (1ULL << req->exposure.seg_shift) - 1;
	u64 offset, part, last, together, most;

	rdmatensor_wire_part(req->fetch.meta.bytes, req->nr_parts, lane, &offset, &part);
	if (!part)
		return !bytes;
	last = req->exposure.iova +
	       request_lands_at(req, offset + part - 1, &together);
	/* What lies together before the last byte, of the part and in its segment */
	most = min3(together, part, (last & mask) + 1);
	return bytes && bytes <= most;
}

int rdmatensor_request_content(struct rdmatensor_channel *channel, u8 lane, u32 index,
			       u32 bytes, const char **why)
{
	struct rdmatensor_request *req;
	int ret = -EPROTO;

	spin_lock_bh(&channel->lock);
	req = request_find(channel, index);
	if (!req && lane) {
		/* Completions of other lanes may be polled after the request's end on lane 0 */
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_STRAY);
		ret = 0;
		goto out_unlock;
	}
	if (!req || !req->exposed || req->revoking ||
	    (req->state != REQUEST_SENT && req->state != REQUEST_RE_SENT &&
	     req->state != REQUEST_ANSWERED && !request_cancelling(req))) {
		*why = "content that was not asked for";
		goto out_unlock;
	}
	if (!(req->parts & BIT(lane))) {
		*why = "part of a content twice";
		goto out_unlock;
	}
	if (!request_content_fits(req, lane, bytes)) {
		*why = "content of an impossible length";
		goto out_unlock;
	}

	ret = 0;
	if (!lane)
		rdmatensor_credits_told_upto(&channel->credits, req->seq);
	req->parts &= ~BIT(lane);
	if (req->parts)
		goto out_unlock;
	if (req->referred)
		rdmatensor_keep_met(req->keep);

	req->arrived = true;
	request_end_unanswered(req, 0);
out_unlock:
	spin_unlock_bh(&channel->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_request_content);

void rdmatensor_request_down(struct rdmatensor_channel *channel)
{
	struct rdmatensor_request *req;
	unsigned long index = 0;

	for (;; index++) {
		spin_lock_bh(&channel->lock);
		req = xa_find(&channel->requests, &index, ULONG_MAX, XA_PRESENT);
		if (!req) {
			spin_unlock_bh(&channel->lock);
			break;
		}
		/* NEW: its submitter finds the channel down, and removes it */
		if (req->state == REQUEST_LINGER)
			request_forget(req);
		/* What is being registered finds the channel down as well, then */
		else if (req->state != REQUEST_NEW && !req->registering)
			request_go_down(req);
		spin_unlock_bh(&channel->lock);
		/* As many as the ring has entries */
		cond_resched();
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_request_down);
