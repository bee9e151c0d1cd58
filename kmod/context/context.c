// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: who owns what, and in which order it ends.
 *
 * A context owns its listener, channels, pools and tables. Ending it, by close
 * or because the device goes, is one sequence: no new channels; every channel
 * down, which takes the queue pairs and with them the peers' reach; pools
 * unregistered; the protection domain. After that nothing of the device is
 * in use. A close goes on: what is still waiting or published ends, then the
 * memory. A close gives each peer a bounded time to let go of what is in flight
 * (rdmatensor_channel_leave()); a removal gives none, and ends that of others. Nothing else here
 * waits for a peer: bounds are the device's.
 *
 * What takes long on the device, making and ending pools, exports and channels, is done
 * with @device_use held to read, and found by others only when it is whole. A removal first
 * says that the device goes, so that who is at it gives up soon, and then takes @device_use
 * to write: from there on it meets nobody, and finds all that there is.
 *
 * Channels end in a work item of their own (context_channel_down()), whatever
 * the cause. It is queued once, by the change to CLOSING.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/nsproxy.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "context/config.h"
#include "context/context.h"
#include "core/event.h"
#include "core/fault.h"
#include "fetch/fetch.h"
#include "fetch/local.h"
#include "fetch/publication.h"
#include "fetch/request.h"
#include "fetch/response.h"
#include "transport/lane.h"
#include "transport/qp.h"

#define CONTEXT_MAX_REQUESTS 256U
#define CONTEXT_NO_DEVICE "the RDMA device was removed"

static int context_message(struct rdmatensor_channel *channel,
			   const struct rdmatensor_msg *msg, u64 seq, const char **why)
{
	switch (msg->type) {
	case RDMATENSOR_WIRE_META_DATA_RESPONSE:
	case RDMATENSOR_WIRE_ERROR_STATUS:
		return rdmatensor_request_message(channel, msg, why);
	case RDMATENSOR_WIRE_TABLE_OPEN:
	case RDMATENSOR_WIRE_TABLE_INFO:
		return rdmatensor_lookup_message(channel, msg, why);
	default:
		return rdmatensor_response_message(channel, msg, seq, why);
	}
}

static int context_content(struct rdmatensor_channel *channel, u8 lane, u32 index, u32 bytes,
			   const char **why)
{
	return rdmatensor_request_content(channel, lane, index, bytes, why);
}

static int context_hello(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
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

/* What whoever reads the log can do about the end of a channel */
static const char *context_remedy(int error)
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

static void context_event(const struct rdmatensor_context *context, u32 what)
{
	struct rdmatensor_event event = {
		.what = what,
		.context = context->registered.id,
		.worker = context->worker,
	};

	rdmatensor_event_send(context->net, &event, GFP_KERNEL);
}

/* @error: 0: it is up */
static void context_channel_event(const struct rdmatensor_channel *channel, int error, gfp_t gfp)
{
	const struct rdmatensor_context *context = channel->owner;
	struct rdmatensor_event event = {
		.what = !error ? RDMATENSOR_NL_EVENT_CHANNEL_UP :
			error == -EPROTO ? RDMATENSOR_NL_EVENT_PEER_MISBEHAVED :
			RDMATENSOR_NL_EVENT_CHANNEL_DOWN,
		.context = context->registered.id,
		.worker = context->worker,
		.channel = channel->id,
		.peer = channel->worker,
		.error = error,
		.text = error ? channel->error_text : NULL,
	};

	rdmatensor_event_send(context->net, &event, gfp);
}

static void context_fetch_timed_out(struct rdmatensor_exchange *exchange,
				    struct rdmatensor_fetch *fetch)
{
	const struct rdmatensor_context *context =
		container_of(exchange, struct rdmatensor_context, exchange);
	struct rdmatensor_fetch_info info = {};
	struct rdmatensor_event event = {
		.what = RDMATENSOR_NL_EVENT_REQUEST_TIMEOUT,
		.context = context->registered.id,
		.worker = context->worker,
		.channel = fetch->channel,
		.step_id = fetch->step_id,
		.user_data = fetch->user_data,
		.error = -ETIMEDOUT,
	};

	fetch->ops->describe(fetch, &info);
	event.peer = info.peer ?: context->worker;
	event.tensor = info.name;
	event.tensor_len = info.name_len;
	rdmatensor_event_send(context->net, &event, GFP_ATOMIC | __GFP_NOWARN);
}

static const struct rdmatensor_exchange_ops context_exchange_ops = {
	.timed_out = context_fetch_timed_out,
};

static void context_up(struct rdmatensor_channel *channel)
{
	struct rdmatensor_cqe cqe = {
		.type = RDMATENSOR_CQE_CHANNEL_UP,
		.flags = RDMATENSOR_CQE_TEXT,
		.channel = channel->id,
	};

	cancel_delayed_work(&channel->handshake_work);
	rdmatensor_registry_changed(&channel->owner->registered);
	context_channel_event(channel, 0, GFP_ATOMIC | __GFP_NOWARN);
	if (channel->active)
		return;

	cqe.text_len = strlen(channel->worker);
	memcpy(cqe.text, channel->worker, cqe.text_len);

	spin_lock_bh(&channel->lock);
	if (channel->state == RDMATENSOR_CHANNEL_UP) {
		channel->announced = true;
		rdmatensor_ring_complete(&channel->exchange->ring, &cqe);
	}
	spin_unlock_bh(&channel->lock);
}

static void context_failed(struct rdmatensor_channel *channel)
{
	queue_work(channel->owner->down_wq, &channel->down_work);
}

static void context_freed(struct rdmatensor_channel *channel)
{
	if (channel->readers)
		rdmatensor_readers_put(channel->readers);
	rdmatensor_lookup_free(channel->lookup);
}

static const struct rdmatensor_channel_ops context_channel_ops = {
	.message = context_message,
	.content = context_content,
	.hello = context_hello,
	.up = context_up,
	.failed = context_failed,
	.freed = context_freed,
};

static void context_handshake_expired(struct work_struct *work)
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
static u32 context_channel_entries(const struct rdmatensor_channel *channel)
{
	return channel->active ? 1 : 2;
}

static void context_channel_down(struct work_struct *work)
{
	struct rdmatensor_channel *channel =
		container_of(work, struct rdmatensor_channel, down_work);
	struct rdmatensor_context *context = channel->owner;
	struct rdmatensor_cqe cqe = {
		.type = RDMATENSOR_CQE_CHANNEL_DOWN,
		.user_data = channel->user_data,
		.channel = channel->id,
		.result = channel->error,
	};

	cancel_delayed_work_sync(&channel->handshake_work);
	/* Whoever connects lanes for reads gives up, and nobody reads from here any more */
	rdmatensor_readers_close(channel->readers);
	rdmatensor_cm_teardown(channel);

	rdmatensor_channel_down(channel);
	rdmatensor_lookup_down(channel);
	rdmatensor_request_down(channel);
	rdmatensor_response_down(channel);
	rdmatensor_msgbuf_free(&channel->msgbuf);

	if (channel->announced || channel->error == -EPROTO)
		pr_info_ratelimited("worker '%s': channel %u to '%s' at %pISpc down: %s (%d); %s\n",
				    context->worker, channel->id, channel->worker,
				    &channel->peer, channel->error_text, channel->error,
				    context_remedy(channel->error));
	if (channel->announced || channel->error == -EPROTO)
		context_channel_event(channel, channel->error, GFP_KERNEL);
	if (channel->announced) {
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_CHANNELS_DOWN);
		if (channel->error_text) {
			cqe.flags = RDMATENSOR_CQE_TEXT;
			cqe.text_len = min_t(size_t, strlen(channel->error_text),
					     sizeof(cqe.text));
			memcpy(cqe.text, channel->error_text, cqe.text_len);
		}
		rdmatensor_ring_complete(&context->exchange.ring, &cqe);
	} else {
		rdmatensor_ring_unreserve(&context->exchange.ring,
					  context_channel_entries(channel));
	}

	xa_erase(&context->channels, channel->id);
	/* A dump that has seen it is told so: not before it is gone, when another could begin */
	rdmatensor_registry_changed(&context->registered);
	atomic_dec(&context->nr_channels);
	complete_all(&channel->gone);
	rdmatensor_channel_put(channel);
}

/*
 * Bounds the set-up. The channel can be found already, and so may be going down: its teardown
 * has cancelled the timer then, and nobody would do so again
 */
static void context_arm_handshake(struct rdmatensor_channel *channel, unsigned long delay)
{
	spin_lock_bh(&channel->lock);
	if (channel->state == RDMATENSOR_CHANNEL_CONNECTING)
		queue_delayed_work(channel->owner->down_wq, &channel->handshake_work, delay);
	spin_unlock_bh(&channel->lock);
}

struct rdmatensor_channel *
rdmatensor_context_channel_add(struct rdmatensor_context *context,
			       const struct rdmatensor_connect *connect, u32 timeout_ms,
			       u8 lanes, u64 nonce, const struct sockaddr *peer)
{
	unsigned long handshake = msecs_to_jiffies(timeout_ms);
	struct rdmatensor_channel *channel;
	int ret;

	if (atomic_inc_return(&context->nr_channels) > context->max_channels) {
		ret = -EUSERS;
		goto out_dec;
	}

	channel = rdmatensor_channel_alloc(&context->exchange, lanes, &context->params,
					   &context_channel_ops, &rdmatensor_lane_verbs);
	if (IS_ERR(channel)) {
		ret = PTR_ERR(channel);
		goto out_dec;
	}
	channel->owner = context;
	channel->active = connect;
	channel->nonce = nonce;
	channel->vector = rdmatensor_qp_vectors();
	channel->own_incarnation = context->incarnation;
	channel->own_worker = context->worker;
	INIT_WORK(&channel->down_work, context_channel_down);
	INIT_DELAYED_WORK(&channel->handshake_work, context_handshake_expired);
	memcpy(&channel->peer, peer, peer->sa_family == AF_INET6 ?
	       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	if (connect) {
		channel->user_data = connect->user_data;
		strscpy(channel->want_worker, connect->worker, sizeof(channel->want_worker));
		/* CONNECT itself ends in time, and has more to say */
		handshake += HZ;
	} else {
		complete_all(&channel->setup_done);
	}

	ret = -ENOMEM;
	channel->lookup = rdmatensor_lookup_alloc(&context->exports, channel);
	channel->readers = rdmatensor_readers_alloc(&context->cm, &context->exchange.counters,
						    &context->gathers.wait,
						    context->exchange.wq, channel);
	if (!channel->lookup || !channel->readers)
		goto out_put;
	ret = rdmatensor_response_alloc(channel);
	if (ret)
		goto out_put;
	ret = rdmatensor_msgbuf_alloc(&channel->msgbuf, context->domain,
				      context->params.msg_slots,
				      context->params.msg_slot_bytes);
	if (ret)
		goto out_put;
	ret = rdmatensor_ring_reserve(&context->exchange.ring,
				      context_channel_entries(channel));
	if (ret)
		goto out_free_msgbuf;

	rdmatensor_channel_get(channel);
	ret = xa_alloc_cyclic(&context->channels, &channel->id, channel,
			      XA_LIMIT(1, S32_MAX), &context->next_channel, GFP_KERNEL);
	if (ret < 0)
		goto out_unreserve;
	rdmatensor_registry_changed(&context->registered);

	rdmatensor_hold("channel_visible");
	context_arm_handshake(channel, handshake);
	return channel;

out_unreserve:
	rdmatensor_channel_put(channel);
	rdmatensor_ring_unreserve(&context->exchange.ring, context_channel_entries(channel));
out_free_msgbuf:
	rdmatensor_msgbuf_free(&channel->msgbuf);
out_put:
	rdmatensor_channel_put(channel);
out_dec:
	atomic_dec(&context->nr_channels);
	return ERR_PTR(ret);
}

static struct rdmatensor_channel *
context_accept_channel(struct rdmatensor_context *context,
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
 * In rdma_cm's handler of the listener, which unlisten() waits for: not under @device_use. The
 * handler's task is nobody's; who listens pays
 */
static struct rdmatensor_channel *
context_accept(struct rdmatensor_context *context,
	       const struct rdmatensor_wire_private *private, const struct sockaddr *peer)
{
	struct mem_cgroup *old = set_active_memcg(context->memcg);
	struct rdmatensor_channel *channel;

	channel = context_accept_channel(context, private, peer);
	set_active_memcg(old);
	return channel;
}

/* Of those with that nonce the one that this side has connected, or not */
static struct rdmatensor_channel *context_find_one(struct rdmatensor_context *context, u64 nonce,
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

static struct rdmatensor_channel *context_find(struct rdmatensor_context *context, u64 nonce)
{
	return context_find_one(context, nonce, false);
}

static int context_accept_read(struct rdmatensor_context *context,
			       const struct rdmatensor_wire_private *private,
			       struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	bool reverse = private->flags & cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_REVERSE);
	struct rdmatensor_channel *channel =
		context_find_one(context, le64_to_cpu(private->nonce), reverse);
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

static const struct rdmatensor_cm_ops context_cm_ops = {
	.accept_read = context_accept_read,
	.accept = context_accept,
	.find = context_find,
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

/* The first channel with an id above *@id, which is set to it */
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

struct rdmatensor_pool *rdmatensor_context_pool(struct rdmatensor_context *context, u32 id)
{
	struct rdmatensor_pool *pool;

	xa_lock(&context->pools);
	pool = xa_load(&context->pools, id);
	if (pool)
		rdmatensor_pool_get(pool);
	xa_unlock(&context->pools);
	return pool;
}

struct rdmatensor_pool *rdmatensor_context_next_pool(struct rdmatensor_context *context,
						     unsigned long *id)
{
	struct rdmatensor_pool *pool;

	xa_lock(&context->pools);
	pool = xa_find_after(&context->pools, id, ULONG_MAX, XA_PRESENT);
	if (pool)
		rdmatensor_pool_get(pool);
	xa_unlock(&context->pools);
	return pool;
}

struct rdmatensor_context *rdmatensor_context_open(void)
{
	struct rdmatensor_context *context = kzalloc(sizeof(*context), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!context)
		return ERR_PTR(-ENOMEM);
	mutex_init(&context->setup);
	init_rwsem(&context->device_use);
	mutex_init(&context->lock);
	init_waitqueue_head(&context->removal);
	context->net = get_net(current->nsproxy->net_ns);
	context->memcg = get_mem_cgroup_from_mm(current->mm);
	xa_init_flags(&context->pools, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	xa_init_flags(&context->tables, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	rdmatensor_exports_init(&context->exports);
	xa_init_flags(&context->channels, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	get_task_comm(context->comm, current);
	/* As it is found when it is complete */
	ret = rdmatensor_registry_add(&context->registered, context->net);
	if (ret) {
		mem_cgroup_put(context->memcg);
		put_net(context->net);
		mutex_destroy(&context->lock);
		mutex_destroy(&context->setup);
		kfree(context);
		return ERR_PTR(ret);
	}
	context->pid = get_pid(task_tgid(current));
	return context;
}

/*
 * Tensor buffers are pools that no process maps and no peer reaches: they are read by writes
 * to peers, and by loopback fetches
 */
static int context_make_buffer(struct rdmatensor_buffers *buffers,
			       struct rdmatensor_buffer *buffer)
{
	struct rdmatensor_context *context =
		container_of(buffers, struct rdmatensor_context, buffers);
	struct rdmatensor_pool *pool;

	if (READ_ONCE(context->gone))
		return -ENODEV;
	down_read(&context->device_use);
	pool = READ_ONCE(context->gone) ? ERR_PTR(-ENODEV) :
	       rdmatensor_pool_create(context->domain, buffer->bytes, IB_ACCESS_LOCAL_WRITE);
	/* Under @device_use: a removal finds it there */
	if (!IS_ERR(pool))
		buffer->pool = pool;
	up_read(&context->device_use);
	return PTR_ERR_OR_ZERO(pool);
}

/* A removal unregisters it, too: never both at the same time, by the buffers' membership */
static void context_unmake_buffer(struct rdmatensor_buffers *buffers,
				  struct rdmatensor_buffer *buffer)
{
	rdmatensor_pool_unregister(buffer->pool);
	/* Who is told that there is room finds the memory free */
	rdmatensor_pool_put_now(buffer->pool);
}

static const struct rdmatensor_buffers_ops context_buffers_ops = {
	.make = context_make_buffer,
	.unmake = context_unmake_buffer,
};

static void context_unregister_buffer(struct rdmatensor_buffer *buffer)
{
	rdmatensor_pool_unregister(buffer->pool);
}

/* As @end does, rdmatensor_channel_leave() or rdmatensor_channel_fail() */
static void context_end_channels(struct rdmatensor_context *context,
				 void (*end)(struct rdmatensor_channel *channel, int error,
					     const char *text),
				 int error, const char *text)
{
	struct rdmatensor_channel *channel;
	unsigned long id = 0;

	while ((channel = rdmatensor_context_next_channel(context, &id))) {
		end(channel, error, text);
		rdmatensor_channel_put(channel);
	}
}

/* Ends every use of the device, the channels by @end. Idempotent */
static void context_stop(struct rdmatensor_context *context,
			 void (*end)(struct rdmatensor_channel *channel, int error,
				     const char *text),
			 int error, const char *text)
{
	struct rdmatensor_channel *channel;
	struct rdmatensor_domain *domain;
	struct rdmatensor_pool *pool;
	unsigned long id = 0;

	lockdep_assert_held_write(&context->device_use);
	domain = context->domain;
	if (!domain)
		return;

	rdmatensor_cm_unlisten(&context->cm);
	/* A removal that is waiting for this has failed those that it met, and no later ones */
	context_end_channels(context, READ_ONCE(context->gone) ? rdmatensor_channel_fail : end,
			     error, text);
	while ((channel = rdmatensor_context_next_channel(context, &id))) {
		wait_for_completion(&channel->gone);
		rdmatensor_channel_put(channel);
	}
	rdmatensor_context_tables_withdraw(context);
	xa_for_each(&context->pools, id, pool)
		rdmatensor_pool_unregister(pool);
	rdmatensor_buffers_each(&context->buffers, context_unregister_buffer);
	mutex_lock(&context->lock);
	context->domain = NULL;
	mutex_unlock(&context->lock);
	rdmatensor_domain_put(domain);
}

static void context_device_gone(struct rdmatensor_adapter *adapter)
{
	struct rdmatensor_context *context =
		container_of(adapter, struct rdmatensor_context, adapter);

	bool started;

	mutex_lock(&context->lock);
	WRITE_ONCE(context->gone, true);
	/* A START that is at work finds that out before it uses the device */
	started = context->started;
	if (context->domain)
		rdmatensor_domain_end(context->domain);
	mutex_unlock(&context->lock);
	wake_up_all(&context->removal);
	if (!started)
		return;

	context_event(context, RDMATENSOR_NL_EVENT_DEVICE_GONE);
	pr_info_ratelimited("worker '%s': RDMA device %s is being removed: its channels end; start a new context when it is back\n",
			    context->worker, adapter->ibdev->name);
	rdmatensor_hold("device_gone");
	/* A close, or whoever else waits with device_use for a peer, does so no longer */
	context_end_channels(context, rdmatensor_channel_fail, -ENODEV, CONTEXT_NO_DEVICE);
	down_write(&context->device_use);
	context_stop(context, rdmatensor_channel_fail, -ENODEV, CONTEXT_NO_DEVICE);
	up_write(&context->device_use);
}

void rdmatensor_context_close(struct rdmatensor_context *context)
{
	struct rdmatensor_pool *pool;
	LIST_HEAD(released);
	unsigned long id;

	rdmatensor_registry_del(&context->registered);
	if (context->started) {
		down_write(&context->device_use);
		context_stop(context, rdmatensor_channel_leave, -ESHUTDOWN, "the worker closed");
		up_write(&context->device_use);
		rdmatensor_hold("close_stopped");
		rdmatensor_adapter_unbind(&context->adapter);

		/* Only loopback fetches are left; copies in flight end by themselves */
		rdmatensor_fetch_cancel_all(&context->exchange, -ESHUTDOWN);
		flush_workqueue(context->exchange.wq);
		/* Nobody can give them back any more, and what is shared is still published */
		rdmatensor_local_release_all(&context->exchange);
		rdmatensor_context_tables_free(context);
		rdmatensor_rendezvous_drain(context->exchange.rdv, &released);
		rdmatensor_publication_release_list(&released);

		xa_for_each(&context->pools, id, pool) {
			xa_erase(&context->pools, id);
			rdmatensor_pool_put(pool);
		}
		destroy_workqueue(context->down_wq);
		rdmatensor_exchange_destroy(&context->exchange);
		rdmatensor_buffers_destroy(&context->buffers);
		rdmatensor_gathers_destroy(&context->gathers);
		rdmatensor_registry_end();
		context_event(context, RDMATENSOR_NL_EVENT_CONTEXT_END);
	}
	xa_destroy(&context->pools);
	xa_destroy(&context->tables);
	xa_destroy(&context->channels);
	put_pid(context->pid);
	mem_cgroup_put(context->memcg);
	put_net(context->net);
	mutex_destroy(&context->lock);
	mutex_destroy(&context->setup);
	kfree(context);
}

/* What the device must take. With @lock */
static int context_check_device(const struct rdmatensor_context *context,
				struct rdmatensor_start *start)
{
	const struct rdmatensor_channel_params *params = &context->params;
	const struct ib_device *ibdev = context->adapter.ibdev;
	u32 entries = params->queue_depth + 1 + rdmatensor_channel_recvs(params, 0) + 1;
	u64 longest = 1ULL << context->adapter.seg_shift;

	if (params->queue_depth + 1 > ibdev->attrs.max_qp_wr || entries > ibdev->attrs.max_cqe) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: queue_depth %u: device %s takes %d work requests a queue and %d completions; lower it",
			 params->queue_depth, ibdev->name, ibdev->attrs.max_qp_wr,
			 ibdev->attrs.max_cqe);
		return -EINVAL;
	}
	if ((u64)params->msg_slots * params->msg_slot_bytes > longest) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: msg_slots %u of msg_slot_bytes %u: a message buffer is at most %llu bytes on %s; lower one",
			 params->msg_slots, params->msg_slot_bytes, longest, ibdev->name);
		return -EINVAL;
	}
	return 0;
}

/* In the place of the line that tells what was chosen */
static void context_no_memory(struct rdmatensor_start *start, const char *what, int error)
{
	snprintf(start->cause, sizeof(start->cause),
		 "START: no memory for %s (%d): free some, or raise the limit of the memory cgroup",
		 what, error);
}

/* All that needs no device */
static int context_prepare(struct rdmatensor_context *context,
			   struct rdmatensor_start *start)
{
	struct rdmatensor_cm *cm = &context->cm;
	int ret;

	context->down_wq = alloc_workqueue("rdmatensor_down", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!context->down_wq) {
		context_no_memory(start, "a work queue", -ENOMEM);
		return -ENOMEM;
	}

	ret = rdmatensor_exchange_init(&context->exchange, start->ring_entries);
	if (ret) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: ring_entries %u: no memory for a completion ring of %lu KiB and what goes with it (%d): free some, lower it, or raise RLIMIT_MEMLOCK (ulimit -l) or the limit of the memory cgroup",
			 start->ring_entries, rdmatensor_ring_bytes(start->ring_entries) >> 10,
			 ret);
		goto out_destroy_wq;
	}
	ret = rdmatensor_gathers_init(&context->gathers, &context->exchange);
	if (ret) {
		context_no_memory(start, "gathers", ret);
		goto out_destroy_exchange;
	}
	context->gathers.lanes = start->gather_lanes;
	context->gathers.cq_mod = min(start->cq_mod, start->queue_depth);
	context->gathers.queue_depth = start->queue_depth;
	context->gathers.connect_ms = context->params.connect_ms;
	context->buffers.ops = &context_buffers_ops;
	context->buffers.counters = &context->exchange.counters;
	context->buffers.wq = context->exchange.wq;
	context->buffers.max = context->max_pools;
	rdmatensor_buffers_init(&context->buffers);
	context->exchange.ops = &context_exchange_ops;
	context->exchange.memcg = context->memcg;
	WRITE_ONCE(context->exchange.validate, !!(start->flags & RDMATENSOR_START_VALIDATE));

	cm->owner = context;
	cm->ops = &context_cm_ops;
	cm->adapter = &context->adapter;
	cm->net = context->net;
	return 0;

out_destroy_exchange:
	rdmatensor_exchange_destroy(&context->exchange);
out_destroy_wq:
	destroy_workqueue(context->down_wq);
	return ret;
}

static void context_unprepare(struct rdmatensor_context *context)
{
	rdmatensor_gathers_destroy(&context->gathers);
	rdmatensor_exchange_destroy(&context->exchange);
	rdmatensor_buffers_destroy(&context->buffers);
	destroy_workqueue(context->down_wq);
}

/* What was chosen, for programs whose struct has the mask: others found their own there */
static void context_answer(const struct rdmatensor_context *context,
			   struct rdmatensor_start *start)
{
	if (start->size < offsetofend(struct rdmatensor_start, set))
		return;
	start->port = context->adapter.port;
	start->gid_index = context->adapter.gid_index;
	start->flags |= RDMATENSOR_START_GID_INDEX;
	start->mtu = ib_mtu_enum_to_int(context->adapter.mtu);
	/* A level and a class that nobody has chosen are the path's */
	start->set |= RDMATENSOR_SET_ALL & ~(RDMATENSOR_SET_SL | RDMATENSOR_SET_TRAFFIC_CLASS);
}

/*
 * All that needs the device, which is there for as long as @lock is held, unless @gone says
 * that it is not. Either the context is started here, and gone() ends it, or nothing is left
 * on the device
 */
static int context_begin(struct rdmatensor_context *context, struct rdmatensor_start *start)
{
	struct sockaddr *addr = (struct sockaddr *)start->listen_addr;
	struct rdmatensor_domain *domain;
	int ret;

	lockdep_assert_held(&context->lock);
	if (context->gone) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: the RDMA device was removed meanwhile; try again when it is back");
		return -ENODEV;
	}
	ret = context_check_device(context, start);
	if (ret)
		return ret;

	domain = rdmatensor_domain_create(&context->adapter, start->cause, sizeof(start->cause));
	if (IS_ERR(domain))
		return PTR_ERR(domain);
	context->domain = domain;
	context->cm.domain = domain;
	if (start->flags & RDMATENSOR_START_LISTEN) {
		ret = rdmatensor_cm_listen(&context->cm, addr, start->cause,
					   sizeof(start->cause));
		if (ret)
			goto out_put_domain;
	}

	strscpy(context->chosen, start->cause, sizeof(context->chosen));
	/* Pairs with rdmatensor_context_started() */
	smp_store_release(&context->started, true);
	return 0;

out_put_domain:
	context->domain = NULL;
	rdmatensor_domain_put(domain);
	return ret;
}

static int context_start(struct rdmatensor_context *context, struct rdmatensor_start *start)
{
	struct rdmatensor_adapter_choice choice = {
		.device_name = start->device_name,
		.port = start->port,
		.has_gid_index = start->set & RDMATENSOR_SET_GID_INDEX,
		.gid_index = start->gid_index,
		.pkey_index = start->pkey_index,
		.mtu = start->mtu,
		.net = context->net,
	};
	struct rdmatensor_channel_params *params = &context->params;
	int ret;

	lockdep_assert_held(&context->setup);
	strscpy(context->worker, start->worker, sizeof(context->worker));
	context->max_channels = start->max_channels;
	context->max_pools = start->max_pools;
	params->max_requests = min(CONTEXT_MAX_REQUESTS,
				   params->queue_depth - 2 * params->msg_slots - 1);
	get_random_bytes(&context->incarnation, sizeof(context->incarnation));

	/* Of an earlier START's device. Nothing is bound, so nobody else looks at it */
	context->gone = false;
	ret = rdmatensor_adapter_bind(&context->adapter, &choice, context_device_gone,
				      start->cause, sizeof(start->cause));
	if (ret)
		return ret;
	/* From here on gone() may be called, even before the device has been used */
	params->retry_count = min(params->retry_count, context->adapter.retry_max);
	params->timeout = min(params->timeout + context->adapter.timeout_extra, 31);
	params->lane_bytes = params->lane_bytes ?: context->adapter.lane_bytes;
	start->lane_bytes = params->lane_bytes;
	rdmatensor_hold("start_bound");
	ret = context_prepare(context, start);
	if (ret)
		goto out_unbind;

	mutex_lock(&context->lock);
	ret = context_begin(context, start);
	if (!ret) {
		context_answer(context, start);
		pr_info_ratelimited("worker '%s': started: %s\n", context->worker,
				    context->chosen);
		rdmatensor_registry_changed(&context->registered);
		context_event(context, RDMATENSOR_NL_EVENT_CONTEXT_START);
	}
	mutex_unlock(&context->lock);
	if (ret)
		goto out_unprepare;
	return 0;

out_unprepare:
	context_unprepare(context);
out_unbind:
	rdmatensor_hold("start_unbind");
	/* Not under @lock: it waits for gone(), which takes that */
	rdmatensor_adapter_unbind(&context->adapter);
	return ret;
}

int rdmatensor_context_start(struct rdmatensor_context *context, struct rdmatensor_start *start)
{
	struct rdmatensor_start *asked;
	u32 max_contexts;
	int ret;

	memset(start->cause, 0, sizeof(start->cause));
	/* Who is refused has what was asked for, to ask again: all but the cause */
	asked = kmemdup(start, sizeof(*start), GFP_KERNEL);
	if (!asked) {
		context_no_memory(start, "its argument", -ENOMEM);
		return -ENOMEM;
	}
	mutex_lock(&context->setup);
	if (context->started) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: this context is started already: open another one");
		ret = -EISCONN;
		goto out_unlock;
	}

	ret = rdmatensor_config_start(start, &context->params);
	if (ret)
		goto out_unlock;
	max_contexts = rdmatensor_config_max_contexts();
	ret = rdmatensor_registry_start(max_contexts);
	if (ret) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: all max_contexts %u of this host are started: end some, or raise it",
			 max_contexts);
		goto out_unlock;
	}
	ret = context_start(context, start);
	if (ret)
		rdmatensor_registry_end();
out_unlock:
	mutex_unlock(&context->setup);
	if (ret) {
		memcpy(asked->cause, start->cause, sizeof(asked->cause));
		*start = *asked;
	}
	kfree(asked);
	return ret;
}
