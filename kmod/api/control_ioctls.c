// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls that begin, end and query a context, its channels and steps. Only START holds a
 * lock of the context while it waits.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "api/domain_file.h"
#include "api/ioctl.h"
#include "context/channels.h"
#include "context/context.h"
#include "fetch/generation.h"
#include "fetch/operation.h"
#include "fetch/publication.h"
#include "fetch/response.h"

int rdmatensor_ioctl_query(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_query *query = arg;

	if (query->__reserved)
		return -EINVAL;

	*query = (struct rdmatensor_query) {
		.size = query->size,
		.abi_version = RDMATENSOR_ABI_VERSION,
	};
	if (!rdmatensor_context_started(context))
		return 0;

	mutex_lock(&context->lock);
	query->flags = RDMATENSOR_QUERY_STARTED;
	query->ring_entries = context->core.ring.entries;
	query->incarnation = context->incarnation;
	if (READ_ONCE(context->core.validate))
		query->flags |= RDMATENSOR_QUERY_VALIDATE;
	if (context->gone) {
		query->flags |= RDMATENSOR_QUERY_DEVICE_GONE;
	} else {
		strscpy(query->device_name, context->adapter.ibdev->name,
			sizeof(query->device_name));
		query->listen_port = context->cm.listener ? context->cm.listen_port : 0;
	}
	query->port = context->adapter.port;
	query->gid_index = context->adapter.gid_index;
	memcpy(query->gid, context->adapter.gid.raw, sizeof(query->gid));
	query->mtu = ib_mtu_enum_to_int(context->adapter.mtu);
	query->channels = atomic_read(&context->nr_channels);
	query->pools = rdmatensor_holdings_nr_pools(context->holdings);
	query->max_segment_bytes = 1ULL << context->adapter.seg_shift;
	mutex_unlock(&context->lock);
	return 0;
}

/* The domain that START names, with a reference; NULL: none */
static struct rdmatensor_holdings *start_domain(struct rdmatensor_start *start)
{
	struct rdmatensor_holdings *joined;

	if (!(start->flags & RDMATENSOR_START_DOMAIN))
		return NULL;
	if (start->size < offsetofend(struct rdmatensor_start, domain_fd)) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: RDMATENSOR_START_DOMAIN, but the struct ends before domain_fd: set size to that of a newer header");
		return ERR_PTR(-EINVAL);
	}
	joined = rdmatensor_domain_file_get(start->domain_fd);
	if (IS_ERR(joined))
		snprintf(start->cause, sizeof(start->cause),
			 "START: domain_fd %d is %s: give the descriptor that RDMATENSOR_DOMAIN_CREATE has made",
			 start->domain_fd,
			 joined == ERR_PTR(-EBADF) ? "not open" : "no descriptor of a domain");
	return joined;
}

int rdmatensor_ioctl_start(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_start *start = arg;
	struct rdmatensor_holdings *joined;
	int ret;

	memset(start->cause, 0, sizeof(start->cause));
	joined = start_domain(start);
	if (IS_ERR(joined))
		return PTR_ERR(joined);
	ret = rdmatensor_context_start(context, start, joined);
	if (joined)
		rdmatensor_holdings_put(joined);
	return ret;
}

int rdmatensor_ioctl_configure(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_configure *configure = arg;

	if (configure->__reserved || configure->flags & ~configure->mask ||
	    configure->mask & ~RDMATENSOR_CONFIGURE_VALIDATE)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	if (configure->mask & RDMATENSOR_CONFIGURE_VALIDATE)
		WRITE_ONCE(context->core.validate,
			   !!(configure->flags & RDMATENSOR_CONFIGURE_VALIDATE));
	return 0;
}

int rdmatensor_ioctl_stats(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_stats *stats = arg;
	struct rdmatensor_channel *channel;
	u32 nr = min_t(u32, stats->nr, RDMATENSOR_STAT_NR);
	struct rdmatensor_sums *sum;
	int ret = 0;

	if (stats->__reserved)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	if (!sum)
		return -ENOMEM;

	if (stats->channel) {
		channel = rdmatensor_context_channel(context, stats->channel);
		if (!channel) {
			ret = -ENOENT;
			goto out_free;
		}
		rdmatensor_counters_sum(&channel->counters, sum);
		rdmatensor_channel_put(channel);
	} else {
		rdmatensor_core_sum(&context->core, sum);
	}

	stats->nr = RDMATENSOR_STAT_NR;
	if (copy_to_user(u64_to_user_ptr(stats->counters_uptr), sum->tally.stats,
			 nr * sizeof(*sum->tally.stats)))
		ret = -EFAULT;
out_free:
	kfree(sum);
	return ret;
}

int rdmatensor_ioctl_connect(struct rdmatensor_context *context, void *arg)
{
	return rdmatensor_context_connect(context, arg);
}

int rdmatensor_ioctl_disconnect(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_disconnect *disconnect = arg;
	struct rdmatensor_channel *channel;

	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	channel = rdmatensor_context_channel(context, disconnect->channel);
	if (!channel)
		return -ENOENT;
	rdmatensor_channel_leave(channel, -ESHUTDOWN, "disconnected");
	wait_for_completion(&channel->gone);
	rdmatensor_channel_put(channel);
	return 0;
}

int rdmatensor_ioctl_channel_query(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_channel_query *query = arg;
	struct rdmatensor_channel *channel;
	unsigned long id = query->channel;

	if (query->flags & ~RDMATENSOR_CHANNEL_NEXT)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	channel = query->flags ? rdmatensor_context_next_channel(context, &id) :
				 rdmatensor_context_channel(context, id);
	if (!channel)
		return -ENOENT;

	spin_lock_bh(&channel->lock);
	query->channel = channel->id;
	query->state = channel->state;
	query->incarnation = rdmatensor_channel_peer(channel, query->worker);
	memcpy(query->addr, &channel->peer, sizeof(query->addr));
	query->lanes = channel->nr_lanes;
	query->msg_slots = channel->peer_slots;
	query->msg_slot_bytes = channel->peer_slot_bytes;
	query->ack_batch = channel->credits.peer_ack_batch;
	query->max_requests = channel->max_outstanding;
	query->requests = channel->nr_requests;
	query->responses = channel->nr_responses;
	spin_unlock_bh(&channel->lock);
	rdmatensor_channel_put(channel);
	return 0;
}

int rdmatensor_ioctl_step_abort(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_core *core = &context->core;
	struct rdmatensor_step_abort *abort = arg;
	struct rdmatensor_channel *channel;
	struct rdmatensor_status status = {};
	unsigned long id = 0;
	LIST_HEAD(released);
	LIST_HEAD(waiters);
	int ret;

	/* SUBMIT's -EAGAIN is the ring's: who meets it submits again and again */
	if (abort->__reserved || abort->status >= 0 || abort->status < -MAX_ERRNO ||
	    abort->status == -EAGAIN ||
	    abort->text_len > RDMATENSOR_STATUS_TEXT_MAX)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	ret = rdmatensor_status_from_user(&status, abort->status, abort->text_uptr,
					  abort->text_len);
	if (ret)
		return ret;

	/* First the table: what is submitted from then on gets the status */
	rdmatensor_rendezvous_abort_step(core->rdv, abort->step_id, &status, &released,
					 &waiters);
	rdmatensor_rendezvous_work_off_many(&waiters);
	rdmatensor_publication_release_list(&released);
	rdmatensor_lasting_abort_step(core, abort->step_id);
	while ((channel = rdmatensor_context_next_channel(context, &id))) {
		rdmatensor_response_abort_step(channel, abort->step_id, &status);
		rdmatensor_channel_put(channel);
	}
	rdmatensor_operation_abort_step(core, abort->step_id, &status);
	rdmatensor_status_clear(&status);
	/*
	 * Nothing tells when memory of hidden generations is the process's again. Last, for others
	 * are told first; and always, for another caller may have withdrawn them a moment ago
	 */
	rdmatensor_generations_settle(core->lasting);
	return 0;
}

int rdmatensor_ioctl_status_text(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_status_text *ask = arg;
	struct rdmatensor_text *text;
	int ret = 0;

	if (ask->__reserved)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	text = rdmatensor_texts_find(&context->core.texts, ask->text_id);
	if (!text)
		return -ENOENT;
	if (copy_to_user(u64_to_user_ptr(ask->text_uptr), text->text,
			 min_t(u32, ask->text_len, text->len)))
		ret = -EFAULT;
	else
		ask->text_len = text->len;
	rdmatensor_text_put(text);
	return ret;
}
