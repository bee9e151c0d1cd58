// SPDX-License-Identifier: GPL-2.0
/*
 * Fetches from oneself: TensorFlow's local rendezvous.
 *
 *	WAITING -> COPYING -> DONE
 *	WAITING -> DONE (cancel, deadline, aborted step, failed publisher)
 *
 * No peer is involved, so a cancelled one ends at once, but for the moment that
 * a match is being worked off: then local_matched() ends it.
 */
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "fault.h"
#include "local.h"
#include "publication.h"

enum local_state {
	LOCAL_WAITING,
	LOCAL_COPYING,
	LOCAL_DONE,
};

/**
 * struct rdmatensor_local - one fetch from oneself
 * @fetch: the common part; its first reference is this machine's, until DONE
 * @waiter: in the rendezvous table
 * @copy: does the copy
 * @lock: guards @state, @cancelled and the decision to end
 * @state: enum local_state, changed by local_move() alone
 * @cancelled: ends with fetch.status as soon as the match is worked off
 * @name_len: length of @name
 * @name: the tensor's, not zero-terminated
 */
struct rdmatensor_local {
	struct rdmatensor_fetch fetch;
	struct rdmatensor_waiter waiter;
	struct work_struct copy;
	spinlock_t lock;
	u8 state;
	bool cancelled;
	u16 name_len;
	char name[] __counted_by(name_len);
};

static const char * const local_names[] = {
	[LOCAL_WAITING] = "WAITING",
	[LOCAL_COPYING] = "COPYING",
	[LOCAL_DONE] = "DONE",
};

static void local_move(struct rdmatensor_local *local, enum local_state to)
{
	static const u8 from[] = {
		[LOCAL_COPYING] = BIT(LOCAL_WAITING),
		[LOCAL_DONE] = BIT(LOCAL_WAITING) | BIT(LOCAL_COPYING),
	};

	lockdep_assert_held(&local->lock);
	WARN_ON_ONCE(!(from[to] & BIT(local->state)));
	WRITE_ONCE(local->state, to);
}

static void local_finish(struct rdmatensor_local *local, int error)
{
	rdmatensor_fetch_finish(&local->fetch, error);
	rdmatensor_fetch_put(&local->fetch);
}

/* Return: true: it ends with @status */
static bool local_stop(struct rdmatensor_fetch *fetch, const struct rdmatensor_status *status)
{
	struct rdmatensor_local *local = container_of(fetch, struct rdmatensor_local, fetch);
	bool stopped = false, end = false;

	spin_lock_bh(&local->lock);
	if (local->state == LOCAL_WAITING && !local->cancelled) {
		stopped = true;
		rdmatensor_status_copy(&fetch->status, status);
		if (rdmatensor_rendezvous_cancel(fetch->exchange->rdv, &local->waiter)) {
			local_move(local, LOCAL_DONE);
			end = true;
		} else {
			local->cancelled = true;
		}
	}
	spin_unlock_bh(&local->lock);
	if (end)
		local_finish(local, status->error);
	return stopped;
}

static void local_cancel(struct rdmatensor_fetch *fetch, const struct rdmatensor_status *status)
{
	local_stop(fetch, status);
}

static void local_expire(struct rdmatensor_fetch *fetch)
{
	struct rdmatensor_status status = { .error = -ETIMEDOUT };

	if (local_stop(fetch, &status))
		rdmatensor_fetch_timed_out(fetch);
}

static void local_describe(struct rdmatensor_fetch *fetch, struct rdmatensor_fetch_info *info)
{
	struct rdmatensor_local *local = container_of(fetch, struct rdmatensor_local, fetch);

	info->state = local_names[READ_ONCE(local->state)];
	info->name = local->name;
	info->name_len = local->name_len;
}

static void local_free(struct rdmatensor_fetch *fetch)
{
	struct rdmatensor_local *local = container_of(fetch, struct rdmatensor_local, fetch);

	rdmatensor_waiter_end(&local->waiter);
	kfree(local);
}

static const struct rdmatensor_fetch_ops local_ops = {
	.cancel = local_cancel,
	.expire = local_expire,
	.describe = local_describe,
	.free = local_free,
};

static void local_copy(struct work_struct *work)
{
	struct rdmatensor_local *local = container_of(work, struct rdmatensor_local, copy);
	struct rdmatensor_publication *pub = to_publication(local->waiter.tensor);
	struct rdmatensor_fetch *fetch = &local->fetch;
	LIST_HEAD(matches);

	rdmatensor_pool_copy(fetch->pool, fetch->offset, pub->pool, pub->offset,
			     fetch->meta.bytes);
	rdmatensor_count_add(fetch->counters, RDMATENSOR_STAT_COPIED_BYTES,
			     fetch->meta.bytes);
	rdmatensor_publication_put(pub, true, &matches);
	rdmatensor_rendezvous_work_off(&matches);

	spin_lock_bh(&local->lock);
	local_move(local, LOCAL_DONE);
	spin_unlock_bh(&local->lock);
	local_finish(local, 0);
}

static void local_matched(struct rdmatensor_waiter *waiter, struct list_head *more)
{
	struct rdmatensor_local *local = container_of(waiter, struct rdmatensor_local, waiter);
	struct rdmatensor_fetch *fetch = &local->fetch;
	struct rdmatensor_tensor *tensor = waiter->tensor;
	bool delivered = false, copy = false;
	int error = 0;

	spin_lock_bh(&local->lock);
	if (local->cancelled) {
		error = fetch->status.error;
	} else if (!tensor) {
		rdmatensor_status_copy(&fetch->status, &waiter->status);
		error = waiter->status.error;
	} else if (tensor->failed.error) {
		rdmatensor_status_copy(&fetch->status, &tensor->failed);
		error = tensor->failed.error;
		delivered = true;
	} else {
		fetch->meta = tensor->meta;
		error = rdmatensor_fetch_place(fetch, GFP_ATOMIC | __GFP_ACCOUNT);
		delivered = !error;
		copy = !error && tensor->meta.bytes;
	}
	local_move(local, copy ? LOCAL_COPYING : LOCAL_DONE);
	spin_unlock_bh(&local->lock);

	if (copy) {
		queue_work(fetch->exchange->wq, &local->copy);
		return;
	}
	if (tensor)
		rdmatensor_publication_put(to_publication(tensor), delivered, more);
	local_finish(local, error);
}

/*
 * Ends it if it was cancelled before it began to wait. Under the lock: local_stop() looks
 * into the table and marks in one step, so it has either found it there, or marked it
 */
static void local_end_cancelled(struct rdmatensor_local *local)
{
	bool end = false;

	spin_lock_bh(&local->lock);
	if (local->state == LOCAL_WAITING && local->cancelled &&
	    rdmatensor_rendezvous_cancel(local->fetch.exchange->rdv, &local->waiter)) {
		local_move(local, LOCAL_DONE);
		end = true;
	}
	spin_unlock_bh(&local->lock);
	if (end)
		local_finish(local, local->fetch.status.error);
}

int rdmatensor_local_submit(struct rdmatensor_exchange *exchange,
			    const struct rdmatensor_fetch_args *args)
{
	struct rdmatensor_local *local;
	LIST_HEAD(matches);
	int ret;

	local = kzalloc(struct_size(local, name, args->name_len), GFP_KERNEL_ACCOUNT);
	if (!local)
		return -ENOMEM;
	local->name_len = args->name_len;
	memcpy(local->name, args->name, args->name_len);

	spin_lock_init(&local->lock);
	INIT_WORK(&local->copy, local_copy);
	INIT_LIST_HEAD(&local->waiter.item);
	local->waiter.matched = local_matched;

	ret = rdmatensor_fetch_init(&local->fetch, &local_ops, exchange, &exchange->counters,
				    RDMATENSOR_CHANNEL_SELF, args);
	if (ret) {
		kfree(local);
		return ret;
	}

	rdmatensor_hold("fetch");
	/* A timer or a cancel may come before the table has it: then that is not found waiting */
	rdmatensor_fetch_get(&local->fetch);
	rdmatensor_fetch_begin(&local->fetch, args->deadline_ns);
	ret = rdmatensor_rendezvous_request(exchange->rdv, &local->waiter, args->name,
					    args->name_len, args->step_id,
					    GFP_ATOMIC | __GFP_ACCOUNT);
	if (ret == 1) {
		/* It waits now, and who cancelled it before that did not find it */
		local_end_cancelled(local);
	} else {
		/* The status of an aborted step is there already */
		if (ret && ret != -ECANCELED)
			local->waiter.status.error = ret;
		list_add(&local->waiter.item, &matches);
		rdmatensor_rendezvous_work_off(&matches);
	}
	rdmatensor_fetch_put(&local->fetch);
	return 0;
}
