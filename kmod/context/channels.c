// SPDX-License-Identifier: GPL-2.0
/*
 * The channels of a context: their table, and what happens on their events.
 *
 * A channel enters the table whole, and leaves it when nothing of it is left on the device.
 * It ends in a work item (channels_down()), whatever the cause, which is queued once, by the
 * change to CLOSING.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include "context/channels.h"
#include "context/dispatch.h"
#include "core/fault.h"
#include "core/limits.h"
#include "core/nl_event.h"
#include "fetch/listing.h"
#include "fetch/response.h"
#include "gather/lookup.h"
#include "memory/domain.h"
#include "transport/lane.h"
#include "transport/qp.h"

static int channels_hello(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			  const char **why)
{
	if (channel->want_worker[0] && strcmp(channel->want_worker, channel->worker)) {
		*why = "the peer has another worker name";
		return -ENOENT;
	}
	if (!channel->active)
		rdmatensor_readers_peer_port(channel->readers, msg->listen_port);
	return 0;
}

/* What the reader of the log can do about the end of a channel */
static const char *channels_remedy(int error)
{
	switch (error) {
	case -EPROTO:
		return "compare the versions on both sides, and report it";
	case -ETIMEDOUT:
		return "see whether the peer and the way to it are up: rdmatensor doctor PEER";
	case -ECONNRESET:
		return "see the peer's log, and connect again";
	case -ENODEV:
		return "start a new context when the device is back";
	default:
		return "no action is needed if this was intended";
	}
}

/* @error: 0: it is up */
static void channels_event(const struct rdmatensor_channel *channel, int error, gfp_t gfp)
{
	const struct rdmatensor_context *context = channel->owner;
	struct rdmatensor_nl_event_args event = {
		.what = !error ? RDMATENSOR_NL_EVENT_CHANNEL_UP :
			error == -EPROTO ? RDMATENSOR_NL_EVENT_PEER_MISBEHAVED :
			RDMATENSOR_NL_EVENT_CHANNEL_DOWN,
		.context = context->listed.id,
		.worker = context->worker,
		.channel = channel->id,
		.peer = channel->worker,
		.error = error,
		.text = error ? channel->error_text : NULL,
	};

	rdmatensor_nl_event_send(context->net, &event, gfp);
}

static void channels_up(struct rdmatensor_channel *channel)
{
	struct rdmatensor_cqe cqe = {
		.type = RDMATENSOR_CQE_CHANNEL_UP,
		.flags = RDMATENSOR_CQE_TEXT,
		.channel = channel->id,
	};

	cancel_delayed_work(&channel->handshake_work);
	rdmatensor_context_list_changed(&channel->owner->listed);
	channels_event(channel, 0, GFP_ATOMIC | __GFP_NOWARN);
	if (channel->active)
		return;

	cqe.text_len = strlen(channel->worker);
	memcpy(cqe.text, channel->worker, cqe.text_len);

	spin_lock_bh(&channel->lock);
	if (channel->state == RDMATENSOR_CHANNEL_UP) {
		channel->announced = true;
		rdmatensor_ring_complete(&channel->core->ring, &cqe);
	}
	spin_unlock_bh(&channel->lock);
}

static void channels_failed(struct rdmatensor_channel *channel)
{
	queue_work(channel->owner->down_wq, &channel->down_work);
}

static void channels_freed(struct rdmatensor_channel *channel)
{
	if (channel->readers)
		rdmatensor_readers_put(channel->readers);
	rdmatensor_listings_free(channel->listings);
	rdmatensor_lookup_free(channel->lookup);
}

static const struct rdmatensor_channel_ops channels_ops = {
	.message = rdmatensor_dispatch_message,
	.content = rdmatensor_dispatch_content,
	.hello = channels_hello,
	.up = channels_up,
	.failed = channels_failed,
	.freed = channels_freed,
};

static void channels_handshake_expired(struct work_struct *work)
{
	struct rdmatensor_channel *channel =
		container_of(work, struct rdmatensor_channel, handshake_work.work);

	spin_lock_bh(&channel->lock);
	if (channel->state == RDMATENSOR_CHANNEL_CONNECTING)
		rdmatensor_channel_fail_locked(channel, -ETIMEDOUT,
					       "the peer did not complete the set-up");
	spin_unlock_bh(&channel->lock);
}

/* Entries of the ring that a channel needs: its end, and if the peer made it, its beginning */
static u32 channels_entries(const struct rdmatensor_channel *channel)
{
	return channel->active ? 1 : 2;
}

/* In the log, to monitors, and by the entry of its end, unless its beginning had none */
static void channels_report_down(struct rdmatensor_channel *channel)
{
	struct rdmatensor_context *context = channel->owner;
	struct rdmatensor_cqe cqe = {
		.type = RDMATENSOR_CQE_CHANNEL_DOWN,
		.user_data = channel->user_data,
		.channel = channel->id,
		.result = channel->error,
	};

	if (channel->announced || channel->error == -EPROTO) {
		pr_info_ratelimited("worker '%s': channel %u to '%s' at %pISpc down: %s (%d); %s\n",
				    context->worker, channel->id, channel->worker,
				    &channel->peer, channel->error_text, channel->error,
				    channels_remedy(channel->error));
		channels_event(channel, channel->error, GFP_KERNEL);
	}
	if (!channel->announced) {
		rdmatensor_ring_unreserve(&context->core.ring, channels_entries(channel));
		return;
	}
	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_CHANNELS_DOWN);
	if (channel->error_text) {
		cqe.flags = RDMATENSOR_CQE_TEXT;
		cqe.text_len = min_t(size_t, strlen(channel->error_text), sizeof(cqe.text));
		memcpy(cqe.text, channel->error_text, cqe.text_len);
	}
	rdmatensor_ring_complete(&context->core.ring, &cqe);
}

/* Uses the device. Its queue pairs are gone, or were never made */
static void channels_unprepare(struct rdmatensor_channel *channel)
{
	rdmatensor_msgbuf_free(&channel->msgbuf);
	rdmatensor_channel_leave_domain(channel);
	rdmatensor_quota_uncharge(&channel->quota);
}

static void channels_down(struct work_struct *work)
{
	struct rdmatensor_channel *channel =
		container_of(work, struct rdmatensor_channel, down_work);
	struct rdmatensor_context *context = channel->owner;

	cancel_delayed_work_sync(&channel->handshake_work);
	/* A thread that connects read lanes gives up, and no gather reads from here any more */
	rdmatensor_readers_close(channel->readers);
	rdmatensor_cm_teardown(channel);

	rdmatensor_channel_down(channel);
	rdmatensor_dispatch_down(channel);
	channels_unprepare(channel);
	/* Its place first: who reads of the end may connect again at once */
	atomic_dec(&context->nr_channels);
	channels_report_down(channel);
	rdmatensor_hold("channel_reported");

	xa_erase(&context->channels, channel->id);
	/* Not before it is gone: a dump that began in between would still list it, unnoticed */
	rdmatensor_context_list_changed(&context->listed);
	complete_all(&channel->gone);
	rdmatensor_channel_put(channel);
}

/*
 * Bounds the set-up. The channel can be found already, and so may be going down: its teardown
 * has cancelled the timer then, and nobody would do so again
 */
static void channels_arm_handshake(struct rdmatensor_channel *channel, unsigned long delay)
{
	spin_lock_bh(&channel->lock);
	if (channel->state == RDMATENSOR_CHANNEL_CONNECTING)
		queue_delayed_work(channel->owner->down_wq, &channel->handshake_work, delay);
	spin_unlock_bh(&channel->lock);
}

/* A channel with its identity */
static struct rdmatensor_channel *channels_alloc(struct rdmatensor_context *context,
						 const struct rdmatensor_connect *connect,
						 u8 lanes, u64 nonce, const struct sockaddr *peer)
{
	struct rdmatensor_channel *channel;

	channel = rdmatensor_channel_alloc(&context->core, lanes, &context->params,
					   &channels_ops, &rdmatensor_lane_verbs);
	if (IS_ERR(channel))
		return channel;
	channel->owner = context;
	channel->active = connect;
	channel->nonce = nonce;
	channel->vector = rdmatensor_qp_vectors();
	channel->own_incarnation = context->incarnation;
	channel->own_worker = context->worker;
	INIT_WORK(&channel->down_work, channels_down);
	INIT_DELAYED_WORK(&channel->handshake_work, channels_handshake_expired);
	memcpy(&channel->peer, peer, peer->sa_family == AF_INET6 ?
	       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	if (connect) {
		channel->user_data = connect->user_data;
		strscpy(channel->want_worker, connect->worker, sizeof(channel->want_worker));
	} else {
		complete_all(&channel->setup_done);
	}
	return channel;
}

/*
 * What the peer can reach: the message buffer, and in strict mode a domain around it. On error
 * channels_unprepare() is the caller's
 */
static int channels_prepare(struct rdmatensor_context *context, struct rdmatensor_channel *channel)
{
	struct rdmatensor_domain *domain = context->domain;
	int ret;

	/* The lanes' queue pairs: rdma_cm's handler, which makes them, is nobody's */
	ret = rdmatensor_quota_charge(&channel->quota, domain->ibdev, channel->nr_lanes);
	if (ret)
		return ret;
	if (context->params.strict) {
		domain = rdmatensor_domain_split(domain);
		if (IS_ERR(domain))
			return PTR_ERR(domain);
		rdmatensor_channel_take_domain(channel, domain);
	}
	return rdmatensor_msgbuf_alloc(&channel->msgbuf, domain, context->params.msg_slots,
				       context->params.msg_slot_bytes);
}

/* What the channel needs besides its lanes. Freed with it, but for what the peer can reach */
static int channels_equip(struct rdmatensor_context *context, struct rdmatensor_channel *channel)
{
	int ret;

	channel->listings = rdmatensor_listings_alloc(channel);
	channel->lookup = rdmatensor_lookup_alloc(&context->exports, channel);
	channel->readers = rdmatensor_readers_alloc(&context->cm, &context->core.counters,
						    &context->gathers.wait,
						    context->core.wq,
						    context->gathers.restore_wq, channel);
	if (!channel->listings || !channel->lookup || !channel->readers)
		return -ENOMEM;
	ret = rdmatensor_response_alloc(channel);
	if (ret)
		return ret;
	return channels_prepare(context, channel);
}

struct rdmatensor_channel *
rdmatensor_context_channel_add(struct rdmatensor_context *context,
			       const struct rdmatensor_connect *connect, u32 timeout_ms,
			       u8 lanes, u64 nonce, const struct sockaddr *peer)
{
	unsigned long handshake = msecs_to_jiffies(timeout_ms);
	struct rdmatensor_channel *channel;
	int ret;

	/* CONNECT itself ends in time, and has more to say */
	if (connect)
		handshake += HZ;

	/* An attempt that is refused is at no time counted: it would refuse others */
	if (!atomic_add_unless(&context->nr_channels, 1, context->max_channels)) {
		rdmatensor_hold("channel_refused");
		return ERR_PTR(-EUSERS);
	}

	channel = channels_alloc(context, connect, lanes, nonce, peer);
	if (IS_ERR(channel)) {
		ret = PTR_ERR(channel);
		goto out_dec;
	}
	ret = channels_equip(context, channel);
	if (ret)
		goto out_unprepare;
	ret = rdmatensor_ring_reserve(&context->core.ring, channels_entries(channel));
	if (ret)
		goto out_unprepare;

	rdmatensor_channel_get(channel);
	ret = xa_alloc_cyclic(&context->channels, &channel->id, channel,
			      XA_LIMIT(1, S32_MAX), &context->next_channel, RDMATENSOR_GFP_SPARING);
	if (ret < 0)
		goto out_unreserve;
	rdmatensor_context_list_changed(&context->listed);

	rdmatensor_hold("channel_visible");
	channels_arm_handshake(channel, handshake);
	return channel;

out_unreserve:
	rdmatensor_channel_put(channel);
	rdmatensor_ring_unreserve(&context->core.ring, channels_entries(channel));
out_unprepare:
	channels_unprepare(channel);
	rdmatensor_channel_put(channel);
out_dec:
	atomic_dec(&context->nr_channels);
	return ERR_PTR(ret);
}

static struct rdmatensor_channel *
channels_accept_channel(struct rdmatensor_context *context,
			const struct rdmatensor_wire_private *private,
			const struct sockaddr *peer)
{
	struct rdmatensor_channel *channel;
	const char *why = "";
	int ret;

	channel = rdmatensor_context_channel_add(context, NULL, context->params.connect_ms,
						 private->lanes, le64_to_cpu(private->nonce),
						 peer);
	if (IS_ERR(channel))
		return channel;

	ret = rdmatensor_channel_set_peer(channel, private, &why);
	if (ret) {
		rdmatensor_channel_fail(channel, ret, why);
		rdmatensor_channel_put(channel);
		return ERR_PTR(ret);
	}
	return channel;
}

/*
 * In rdma_cm's handler of the listener, which unlisten() waits for: not under @device_use.
 * The handler runs in no process: what it allocates is charged to the context's cgroup
 */
static struct rdmatensor_channel *
channels_accept(struct rdmatensor_context *context,
		const struct rdmatensor_wire_private *private, const struct sockaddr *peer)
{
	struct mem_cgroup *old = set_active_memcg(context->memcg);
	struct rdmatensor_channel *channel;

	channel = channels_accept_channel(context, private, peer);
	set_active_memcg(old);
	return channel;
}

/* The channel of that nonce that this side has connected (@active), or the peer */
static struct rdmatensor_channel *channels_find_one(struct rdmatensor_context *context, u64 nonce,
						    bool active)
{
	struct rdmatensor_channel *channel, *found = NULL;
	unsigned long id;

	xa_lock(&context->channels);
	xa_for_each(&context->channels, id, channel) {
		if (channel->active != active || channel->nonce != nonce)
			continue;
		rdmatensor_channel_get(channel);
		found = channel;
		break;
	}
	xa_unlock(&context->channels);
	return found;
}

static struct rdmatensor_channel *channels_find(struct rdmatensor_context *context, u64 nonce)
{
	return channels_find_one(context, nonce, false);
}

static int channels_accept_read(struct rdmatensor_context *context,
				const struct rdmatensor_wire_private *private,
				struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	bool reverse = private->flags & cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_REVERSE);
	struct rdmatensor_channel *channel =
		channels_find_one(context, le64_to_cpu(private->nonce), reverse);
	int ret = -ECONNRESET;
	struct mem_cgroup *old;

	if (!channel)
		return ret;
	old = set_active_memcg(context->memcg);
	if (READ_ONCE(channel->state) == RDMATENSOR_CHANNEL_UP)
		ret = rdmatensor_readers_accept(channel->readers, id, event, private);
	set_active_memcg(old);
	rdmatensor_channel_put(channel);
	return ret;
}

const struct rdmatensor_cm_ops rdmatensor_context_cm_ops = {
	.accept_read = channels_accept_read,
	.accept = channels_accept,
	.find = channels_find,
};

struct rdmatensor_channel *rdmatensor_context_channel(struct rdmatensor_context *context,
						      u32 id)
{
	struct rdmatensor_channel *channel;

	xa_lock(&context->channels);
	channel = xa_load(&context->channels, id);
	if (channel)
		rdmatensor_channel_get(channel);
	xa_unlock(&context->channels);
	return channel;
}

struct rdmatensor_channel *rdmatensor_context_next_channel(struct rdmatensor_context *context,
							   unsigned long *id)
{
	struct rdmatensor_channel *channel;

	xa_lock(&context->channels);
	channel = xa_find_after(&context->channels, id, ULONG_MAX, XA_PRESENT);
	if (channel)
		rdmatensor_channel_get(channel);
	xa_unlock(&context->channels);
	return channel;
}

void rdmatensor_context_end_channels(struct rdmatensor_context *context,
				     rdmatensor_channel_end_fn *end, int error,
				     const char *text)
{
	struct rdmatensor_channel *channel;
	unsigned long id = 0;

	while ((channel = rdmatensor_context_next_channel(context, &id))) {
		end(channel, error, text);
		rdmatensor_channel_put(channel);
	}
}

void rdmatensor_context_wait_channels(struct rdmatensor_context *context)
{
	struct rdmatensor_channel *channel;
	unsigned long id = 0;

	while ((channel = rdmatensor_context_next_channel(context, &id))) {
		wait_for_completion(&channel->gone);
		rdmatensor_channel_put(channel);
	}
}
