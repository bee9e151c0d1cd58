// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: who owns what, and in which order it ends.
 *
 * A context owns its listener, channels and tables; pools are its domain's (holdings.c), to
 * which it has a reference. It ends, by close or because the device is removed, in one sequence:
 * no new channels; every channel DOWN, which destroys the queue pairs and ends the peers'
 * access; exports withdrawn; the protection domain put. After that it uses nothing of the
 * device, and where it was alone in its domain pools are unregistered and the protection domain
 * is freed. A close continues: what is still waiting or
 * published ends, then the memory is freed. A close gives each peer a bounded time for what
 * is in flight (rdmatensor_channel_leave()); a removal gives none, and cuts short the time
 * that a close gives. Nothing else here waits for a peer: all bounds are the device's.
 *
 * What takes long on the device, creating and destroying pools, exports and channels, is done
 * with @device_use held for reading, and others find it only when it is whole. A removal
 * first sets @gone, so that such calls fail soon, and then takes @device_use for writing:
 * from there on no call uses the device, and the removal finds all that there is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/nsproxy.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "context/channels.h"
#include "context/config.h"
#include "context/context.h"
#include "core/fault.h"
#include "core/limits.h"
#include "core/nl_event.h"
#include "fetch/generation.h"
#include "fetch/local.h"
#include "fetch/operation.h"
#include "fetch/publication.h"
#include "memory/domain.h"
#include "transport/probe.h"

#define CONTEXT_MAX_REQUESTS 256U
#define CONTEXT_NO_DEVICE "the RDMA device was removed"

static void context_event(const struct rdmatensor_context *context, u32 what)
{
	struct rdmatensor_nl_event_args event = {
		.what = what,
		.context = context->listed.id,
		.worker = context->worker,
	};

	rdmatensor_nl_event_send(context->net, &event, GFP_KERNEL);
}

static void context_timed_out(struct rdmatensor_core *core, struct rdmatensor_operation *op)
{
	const struct rdmatensor_context *context =
		container_of(core, struct rdmatensor_context, core);
	struct rdmatensor_operation_info info = {};
	struct rdmatensor_nl_event_args event = {
		.what = RDMATENSOR_NL_EVENT_REQUEST_TIMEOUT,
		.context = context->listed.id,
		.worker = context->worker,
		.channel = op->channel,
		.step_id = op->step_id,
		.user_data = op->user_data,
		.error = -ETIMEDOUT,
	};

	op->ops->describe(op, &info);
	event.peer = info.peer ?: context->worker;
	event.tensor = info.name;
	event.tensor_len = info.name_len;
	rdmatensor_nl_event_send(context->net, &event, GFP_ATOMIC | __GFP_NOWARN);
}

static const struct rdmatensor_core_ops context_core_ops = {
	.timed_out = context_timed_out,
};

struct rdmatensor_context *rdmatensor_context_open(void)
{
	struct rdmatensor_context *context = kzalloc(sizeof(*context), RDMATENSOR_GFP_SPARING);
	int ret;

	if (!context)
		return ERR_PTR(-ENOMEM);
	mutex_init(&context->setup);
	init_rwsem(&context->device_use);
	mutex_init(&context->lock);
	init_waitqueue_head(&context->removal);
	init_waitqueue_head(&context->poll_wait);
	context->net = get_net(current->nsproxy->net_ns);
	context->memcg = get_mem_cgroup_from_mm(current->mm);
	xa_init_flags(&context->tables, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	rdmatensor_exports_init(&context->exports);
	xa_init_flags(&context->channels, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	get_task_comm(context->comm, current);
	/* Last: others find it from here on */
	ret = rdmatensor_context_list_add(&context->listed, context->net);
	if (ret) {
		mem_cgroup_put(context->memcg);
		put_net(context->net);
		mutex_destroy(&context->lock);
		mutex_destroy(&context->setup);
		kfree(context);
		return ERR_PTR(ret);
	}
	return context;
}

/* Ends every use of the device, the channels by @end. Idempotent */
static void context_stop(struct rdmatensor_context *context, rdmatensor_channel_end_fn *end,
			 int error, const char *text)
{
	struct rdmatensor_domain *domain;

	lockdep_assert_held_write(&context->device_use);
	domain = context->domain;
	if (!domain)
		return;

	rdmatensor_cm_unlisten(&context->cm);
	/* A removal that waits for this has failed the channels that it found, and no later ones */
	rdmatensor_context_end_channels(context, READ_ONCE(context->gone) ?
					rdmatensor_channel_fail : end, error, text);
	rdmatensor_context_wait_channels(context);
	rdmatensor_context_tables_withdraw(context);
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
	/* A START in progress finds this out before it uses the device */
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
	/* A close that waits for peers with device_use held stops waiting */
	rdmatensor_context_end_channels(context, rdmatensor_channel_fail, -ENODEV,
					CONTEXT_NO_DEVICE);
	down_write(&context->device_use);
	context_stop(context, rdmatensor_channel_fail, -ENODEV, CONTEXT_NO_DEVICE);
	up_write(&context->device_use);
	/* Entries have told of each channel's end, but who has no channel would wait for ever */
	rdmatensor_ring_over(&context->core.ring);
}

void rdmatensor_context_close(struct rdmatensor_context *context)
{
	LIST_HEAD(released);
	bool silent;

	rdmatensor_context_list_del(&context->listed);
	if (context->started) {
		/* No work of the CPU's is waited for that nobody wants any more */
		rdmatensor_core_end(&context->core);
		down_write(&context->device_use);
		context_stop(context, rdmatensor_channel_leave, -ESHUTDOWN, "the worker closed");
		up_write(&context->device_use);
		rdmatensor_hold("close_stopped");
		rdmatensor_adapter_unbind(&context->adapter);

		/* Only loopback fetches are left, those that are being copied, too */
		rdmatensor_operation_cancel_all(&context->core, -ESHUTDOWN);
		flush_workqueue(context->core.wq);
		/* No caller can release shares any more, and a shared tensor is still published */
		rdmatensor_local_release_all(&context->core);
		rdmatensor_context_tables_free(context);
		silent = rdmatensor_lasting_leave(&context->holdings->lasting, &context->core);
		rdmatensor_rendezvous_drain(context->core.rdv, &released);
		rdmatensor_publication_release_list(&released);
		/* Of who stays in the domain nobody is told when its memory is free */
		if (silent)
			rdmatensor_generations_settle(&context->holdings->lasting);

		destroy_workqueue(context->down_wq);
		rdmatensor_core_destroy(&context->core);
		rdmatensor_gathers_destroy(&context->gathers);
		atomic_dec(&context->holdings->nr_contexts);
		rdmatensor_holdings_put(context->holdings);
		rdmatensor_context_list_end();
		context_event(context, RDMATENSOR_NL_EVENT_CONTEXT_END);
	}
	xa_destroy(&context->tables);
	xa_destroy(&context->channels);
	mem_cgroup_put(context->memcg);
	put_net(context->net);
	mutex_destroy(&context->lock);
	mutex_destroy(&context->setup);
	kfree(context);
}

/* What the device must support. With @lock */
static int context_check_device(const struct rdmatensor_context *context,
				struct rdmatensor_start *start)
{
	const struct rdmatensor_channel_params *params = &context->params;
	const struct ib_device *ibdev = context->adapter.ibdev;
	u32 sendq = params->queue_depth + RDMATENSOR_SENDQ_MORE;
	u32 entries = sendq + rdmatensor_channel_recvs(params, 0) + 1;
	u64 longest = 1ULL << context->adapter.seg_shift;

	if (sendq > ibdev->attrs.max_qp_wr || entries > ibdev->attrs.max_cqe) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: queue_depth %u: device %s takes %d work requests a queue, %u of them beyond queue_depth, and %d completions; lower it",
			 params->queue_depth, ibdev->name, ibdev->attrs.max_qp_wr,
			 RDMATENSOR_SENDQ_MORE, ibdev->attrs.max_cqe);
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

/* Return: -ENODEV, with a cause */
static int context_domain_gone(struct rdmatensor_holdings *holdings, struct rdmatensor_start *start)
{
	char device[IB_DEVICE_NAME_MAX];

	rdmatensor_holdings_device(holdings, device, sizeof(device));
	snprintf(start->cause, sizeof(start->cause),
		 "START: the RDMA device %s of domain_fd %d was removed: close it, and make another domain when the device is back",
		 device, start->domain_fd);
	return -ENODEV;
}

/* All contexts of a domain are on one device. With @lock */
static int context_check_domain(const struct rdmatensor_context *context,
				struct rdmatensor_start *start)
{
	struct rdmatensor_holdings *holdings = context->holdings;
	const char *device = context->adapter.ibdev->name;
	char its[IB_DEVICE_NAME_MAX];

	if (READ_ONCE(holdings->adapter.ibdev) == context->adapter.ibdev)
		return 0;
	if (!(start->flags & RDMATENSOR_START_DOMAIN)) {
		/* Both were bound by the same words */
		snprintf(start->cause, sizeof(start->cause),
			 "START: %s came to be meant by device_name meanwhile: try again", device);
		return -ENODEV;
	}
	if (!rdmatensor_holdings_device(holdings, its, sizeof(its)))
		return context_domain_gone(holdings, start);
	snprintf(start->cause, sizeof(start->cause),
		 "START: domain_fd %d is of RDMA device %s, and device_name means %s: leave it empty, or join no domain",
		 start->domain_fd, its, device);
	return -EXDEV;
}

/* Replaces the line that says what was chosen */
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

	/* Its items wait for those of queues that have no rescuer either */
	context->down_wq = alloc_workqueue("rdmatensor_down", WQ_UNBOUND, 0);
	if (!context->down_wq) {
		context_no_memory(start, "a work queue", -ENOMEM);
		return -ENOMEM;
	}

	ret = rdmatensor_core_init(&context->core, start->ring_entries, &context->poll_wait);
	if (ret) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: ring_entries %u: no memory for a completion ring of %lu KiB and what goes with it (%d): free some, lower it, or raise RLIMIT_MEMLOCK (ulimit -l) or the limit of the memory cgroup",
			 start->ring_entries, rdmatensor_ring_bytes(start->ring_entries) >> 10,
			 ret);
		goto out_destroy_wq;
	}
	ret = rdmatensor_gathers_init(&context->gathers, &context->core);
	if (ret) {
		context_no_memory(start, "gathers", ret);
		goto out_destroy_core;
	}
	context->gathers.lanes = start->gather_lanes;
	context->gathers.cq_mod = min(start->cq_mod, start->queue_depth);
	context->gathers.queue_depth = start->queue_depth;
	context->gathers.connect_ms = context->params.connect_ms;
	context->core.publisher = context->incarnation;
	rdmatensor_lasting_join(&context->holdings->lasting, &context->core);
	context->core.ops = &context_core_ops;
	context->core.memcg = context->memcg;
	WRITE_ONCE(context->core.validate, !!(start->flags & RDMATENSOR_START_VALIDATE));

	cm->owner = context;
	cm->ops = &rdmatensor_context_cm_ops;
	cm->adapter = &context->adapter;
	cm->net = context->net;
	return 0;

out_destroy_core:
	rdmatensor_core_destroy(&context->core);
out_destroy_wq:
	destroy_workqueue(context->down_wq);
	return ret;
}

static void context_unprepare(struct rdmatensor_context *context)
{
	rdmatensor_lasting_leave(&context->holdings->lasting, &context->core);
	rdmatensor_gathers_destroy(&context->gathers);
	rdmatensor_core_destroy(&context->core);
	destroy_workqueue(context->down_wq);
}

/* What was chosen, for programs whose struct has the mask; others keep their own fields */
static void context_answer(const struct rdmatensor_context *context,
			   struct rdmatensor_start *start)
{
	if (start->size < offsetofend(struct rdmatensor_start, set))
		return;
	start->port = context->adapter.port;
	start->gid_index = context->adapter.gid_index;
	start->flags |= RDMATENSOR_START_GID_INDEX;
	start->mtu = ib_mtu_enum_to_int(context->adapter.mtu);
	start->max_pools = context->holdings->max_pools;
	start->mr_page_bytes = context->holdings->mr_page_bytes;
	start->mr_mode = context->holdings->strict ? RDMATENSOR_MR_MODE_STRICT :
			 RDMATENSOR_MR_MODE_POOL;
	/* A service level and a traffic class that were not set are those of the path */
	start->set |= RDMATENSOR_SET_ALL & ~(RDMATENSOR_SET_SL | RDMATENSOR_SET_TRAFFIC_CLASS);
}

/*
 * All that needs the device, which is there while @lock is held, unless @gone is set. Either
 * the context is started here, and context_device_gone() ends it, or nothing is left on the
 * device
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
	ret = context_check_device(context, start) ?: context_check_domain(context, start);
	if (ret)
		return ret;

	domain = rdmatensor_holdings_domain(context->holdings, start->cause,
					    sizeof(start->cause));
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
	atomic_inc(&context->holdings->nr_contexts);
	/* Pairs with rdmatensor_context_started() */
	smp_store_release(&context->started, true);
	return 0;

out_put_domain:
	context->domain = NULL;
	rdmatensor_domain_put(domain);
	return ret;
}

/* What START says of the context itself, and of channels before the device is known */
static void context_take(struct rdmatensor_context *context, const struct rdmatensor_start *start)
{
	struct rdmatensor_channel_params *params = &context->params;

	strscpy(context->worker, start->worker, sizeof(context->worker));
	context->max_channels = start->max_channels;
	params->max_requests = min(CONTEXT_MAX_REQUESTS,
				   params->queue_depth - 2 * params->msg_slots - 1);
	get_random_bytes(&context->incarnation, sizeof(context->incarnation));
}

/* Who asks for strict mode does not get less. @asked: what START said. Return: 0, -EINVAL */
static int context_check_mode(const struct rdmatensor_holdings *joined,
			      struct rdmatensor_start *start,
			      const struct rdmatensor_start *asked)
{
	u32 mode = joined->strict ? RDMATENSOR_MR_MODE_STRICT : RDMATENSOR_MR_MODE_POOL;

	if (!asked->mr_mode || asked->mr_mode == mode)
		return 0;
	snprintf(start->cause, sizeof(start->cause),
		 "START: mr_mode %u, and that of the domain is %u, which holds for all its contexts: leave mr_mode alone, or join no domain",
		 asked->mr_mode, mode);
	return -EINVAL;
}

/* The domain's holdings, with a reference: those that it joins, or its own */
static struct rdmatensor_holdings *
context_enter(struct rdmatensor_context *context, struct rdmatensor_start *start,
	      const struct rdmatensor_start *asked, struct rdmatensor_holdings *joined,
	      struct rdmatensor_adapter_choice *choice)
{
	int ret;

	if (!joined)
		return rdmatensor_holdings_create(choice, context->net, start, start->cause,
						  sizeof(start->cause));
	if (joined->net_cookie != context->net->net_cookie) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: domain_fd %d is of another network namespace: open /dev/rdmatensor in that one, or join no domain",
			 start->domain_fd);
		return ERR_PTR(-EXDEV);
	}
	if (READ_ONCE(joined->gone))
		return ERR_PTR(context_domain_gone(joined, start));
	ret = context_check_mode(joined, start, asked);
	if (ret)
		return ERR_PTR(ret);
	choice->like = &joined->adapter;
	rdmatensor_holdings_get(joined);
	return joined;
}

/* After a bind. context_device_gone() may be called, even before the device is used */
static int context_start_bound(struct rdmatensor_context *context, struct rdmatensor_start *start)
{
	struct rdmatensor_channel_params *params = &context->params;
	int ret;

	params->retry_count = min(params->retry_count, context->adapter.retry_max);
	params->timeout = min(params->timeout + context->adapter.timeout_extra, 31);
	params->lane_bytes = params->lane_bytes ?: context->adapter.lane_bytes;
	start->lane_bytes = params->lane_bytes;
	rdmatensor_hold("start_bound");
	ret = context_prepare(context, start);
	if (ret)
		return ret;

	mutex_lock(&context->lock);
	ret = context_begin(context, start);
	if (!ret) {
		context_answer(context, start);
		pr_info_ratelimited("worker '%s': started: %s\n", context->worker,
				    context->chosen);
		rdmatensor_context_list_changed(&context->listed);
		context_event(context, RDMATENSOR_NL_EVENT_CONTEXT_START);
	}
	mutex_unlock(&context->lock);
	if (ret)
		context_unprepare(context);
	return ret;
}

static int context_start(struct rdmatensor_context *context, struct rdmatensor_start *start,
			 const struct rdmatensor_start *asked, struct rdmatensor_holdings *joined)
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
	struct rdmatensor_holdings *holdings;
	int ret;

	lockdep_assert_held(&context->setup);
	context_take(context, start);
	holdings = context_enter(context, start, asked, joined, &choice);
	if (holdings == ERR_PTR(-ENOMEM))
		context_no_memory(start, "its domain", -ENOMEM);
	if (IS_ERR(holdings))
		return PTR_ERR(holdings);
	context->holdings = holdings;
	context->params.strict = holdings->strict;
	/* Set for an earlier START's device. Nothing is bound, so there is no other reader */
	context->gone = false;
	ret = rdmatensor_adapter_bind(&context->adapter, &choice, context_device_gone,
				      start->cause, sizeof(start->cause));
	if (ret)
		goto out_put_holdings;
	ret = context_start_bound(context, start);
	if (ret)
		goto out_unbind;
	return 0;

out_unbind:
	rdmatensor_hold("start_unbind");
	/* Not under @lock: it waits for context_device_gone(), which takes that */
	rdmatensor_adapter_unbind(&context->adapter);
out_put_holdings:
	context->holdings = NULL;
	rdmatensor_holdings_put(holdings);
	return ret;
}

int rdmatensor_context_start(struct rdmatensor_context *context, struct rdmatensor_start *start,
			     struct rdmatensor_holdings *joined)
{
	struct rdmatensor_start *asked;
	u32 max_contexts;
	int ret;

	memset(start->cause, 0, sizeof(start->cause));
	/* A caller that is refused gets its own struct back, with the cause */
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
	ret = rdmatensor_context_list_start(max_contexts);
	if (ret) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: all max_contexts %u of this host are started: end some, or raise it",
			 max_contexts);
		goto out_unlock;
	}
	ret = context_start(context, start, asked, joined);
	if (ret)
		rdmatensor_context_list_end();
out_unlock:
	mutex_unlock(&context->setup);
	if (ret) {
		memcpy(asked->cause, start->cause, sizeof(asked->cause));
		*start = *asked;
	}
	kfree(asked);
	return ret;
}
