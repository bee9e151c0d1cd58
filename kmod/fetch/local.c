// SPDX-License-Identifier: GPL-2.0
/*
 * Loopback fetches: TensorFlow's local rendezvous.
 *
 *	WAITING -> COPYING -> DONE
 *	WAITING -> DONE (cancel, deadline, aborted step, failed publisher)
 *	WAITING -> SHARED (the tensor itself, until it is released)
 *
 * No peer is involved, so a cancelled fetch ends at once, unless its match is being
 * processed: then local_matched() ends it.
 *
 * A fetch of the tensor itself is in the core's table of shares from its submission on, so
 * that a match need not allocate. A SHARED fetch has ended for everybody but its publisher:
 * it keeps the match, and the table's reference, until it is removed from the table. The one
 * caller that removes it releases both.
 */
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "fetch/local.h"
#include "fetch/publication.h"

enum local_state {
	LOCAL_WAITING,
	LOCAL_COPYING,
	LOCAL_SHARED,
	LOCAL_DONE,
};

/**
 * struct rdmatensor_local - one loopback fetch
 * @fetch: the common part; its first reference is this machine's, until DONE
 * @waiter: in the rendezvous table
 * @copy: copies the content
 * @lock: guards @state, @cancelled and the decision to end
 * @state: enum local_state, changed by local_move() alone
 * @cancelled: ends with fetch.op.status as soon as the match is processed
 * @share_id: in the table of shares, which holds a reference; 0: the content is copied
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
	u32 share_id;
	u16 name_len;
	char name[] __counted_by(name_len);
};

static struct rdmatensor_local *to_local(struct rdmatensor_operation *op)
{
	return container_of(rdmatensor_to_fetch(op), struct rdmatensor_local, fetch);
}

static const char * const local_names[] = {
	[LOCAL_WAITING] = "WAITING",
	[LOCAL_COPYING] = "COPYING",
	[LOCAL_SHARED] = "SHARED",
	[LOCAL_DONE] = "DONE",
};

static void local_move(struct rdmatensor_local *local, enum local_state to)
{
	static const u8 from[] = {
		[LOCAL_COPYING] = BIT(LOCAL_WAITING),
		[LOCAL_SHARED] = BIT(LOCAL_WAITING),
		[LOCAL_DONE] = BIT(LOCAL_WAITING) | BIT(LOCAL_COPYING),
	};

	lockdep_assert_held(&local->lock);
	WARN_ON_ONCE(!(from[to] & BIT(local->state)));
	WRITE_ONCE(local->state, to);
}

/* False: another caller has removed it */
static bool local_unlist(struct rdmatensor_core *core, u32 share_id)
{
	if (!xa_erase_bh(&core->shares, share_id))
		return false;
	atomic_dec(&core->nr_shares);
	return true;
}

static void local_finish(struct rdmatensor_local *local, int error)
{
	/* It has ended without its share: nothing to release */
	if (local->share_id && !local->fetch.share_id &&
	    local_unlist(local->fetch.op.core, local->share_id))
		rdmatensor_operation_put(&local->fetch.op);
	rdmatensor_fetch_finish(&local->fetch, error);
	rdmatensor_operation_put(&local->fetch.op);
}

/* Return: true: it ends with @status */
static bool local_stop(struct rdmatensor_operation *op, const struct rdmatensor_status *status)
{
	struct rdmatensor_local *local = to_local(op);
	bool stopped = false, end = false;

	spin_lock_bh(&local->lock);
	if (!local->cancelled &&
	    (local->state == LOCAL_WAITING || local->state == LOCAL_COPYING)) {
		stopped = true;
		rdmatensor_status_copy(&op->status, status);
		if (local->state == LOCAL_WAITING &&
		    rdmatensor_rendezvous_cancel(op->core->rdv, &local->waiter)) {
			local_move(local, LOCAL_DONE);
			end = true;
		} else {
			/* local_matched() or local_copy() ends it */
			WRITE_ONCE(local->cancelled, true);
		}
	}
	spin_unlock_bh(&local->lock);
	if (end)
		local_finish(local, status->error);
	return stopped;
}

static void local_cancel(struct rdmatensor_operation *op, const struct rdmatensor_status *status)
{
	local_stop(op, status);
}

static void local_expire(struct rdmatensor_operation *op)
{
	struct rdmatensor_status status = { .error = -ETIMEDOUT };

	if (rdmatensor_operation_early(op))
		return;
	if (local_stop(op, &status))
		rdmatensor_operation_timed_out(op);
}

static void local_describe(struct rdmatensor_operation *op, struct rdmatensor_operation_info *info)
{
	struct rdmatensor_local *local = to_local(op);

	info->state = local_names[READ_ONCE(local->state)];
	info->name = local->name;
	info->name_len = local->name_len;
}

static void local_release(struct rdmatensor_operation *op)
{
	struct rdmatensor_local *local = to_local(op);

	rdmatensor_waiter_end(&local->waiter);
	kfree(local->fetch.slice);
	kfree(local->fetch.layout);
	kfree(local);
}

static const struct rdmatensor_operation_ops local_ops = {
	.kind = &rdmatensor_fetch_kind,
	.cancel = local_cancel,
	.expire = local_expire,
	.describe = local_describe,
	.release = local_release,
};

/*
 * By runs that lie together on both sides. A whole tensor takes as long as memory is slow, and a
 * process may have as many copies as its ring has entries: what has ended stops between two.
 * Return: 0; -ESHUTDOWN: it has stopped
 */
static int local_copy_content(struct rdmatensor_local *local,
			      const struct rdmatensor_publication *pub)
{
	struct rdmatensor_fetch *fetch = &local->fetch;
	u64 bytes = fetch->meta.bytes, pos, at, to, run, room;
	struct rdmatensor_cut from, dest;

	rdmatensor_slice_cut(fetch->slice ? &fetch->slice->slice : NULL,
			     pub->layout ? &pub->layout->layout : NULL,
			     rdmatensor_fetch_whole(fetch), &from);
	rdmatensor_fetch_cut(fetch, &dest);
	for (pos = 0; pos < bytes; pos += run) {
		rdmatensor_hold(pos ? "local_copy_on" : "local_copy");
		if (READ_ONCE(local->cancelled) || rdmatensor_core_ends(fetch->op.core))
			return -ESHUTDOWN;
		at = rdmatensor_cut_at(&from, pos, &run);
		to = rdmatensor_cut_at(&dest, pos, &room);
		run = min3(run, room, bytes - pos);
		run = min_t(u64, run, RDMATENSOR_CPU_BYTES);
		rdmatensor_pool_copy(fetch->op.pool, fetch->offset + to, pub->pool,
				     pub->offset + at, run);
	}
	return 0;
}

static void local_copy(struct work_struct *work)
{
	struct rdmatensor_local *local = container_of(work, struct rdmatensor_local, copy);
	struct rdmatensor_publication *pub = to_publication(local->waiter.tensor);
	struct rdmatensor_fetch *fetch = &local->fetch;
	LIST_HEAD(matches);
	int error;

	error = local_copy_content(local, pub);
	/* In state COPYING others only mark it */
	spin_lock_bh(&local->lock);
	if (local->cancelled)
		error = fetch->op.status.error;
	local_move(local, LOCAL_DONE);
	spin_unlock_bh(&local->lock);

	if (!error)
		rdmatensor_count_add(fetch->op.counters, RDMATENSOR_STAT_COPIED_BYTES,
				     fetch->meta.bytes);
	rdmatensor_publication_put(pub, !error, &matches);
	rdmatensor_rendezvous_work_off(&matches);
	local_finish(local, error);
}

/* The entry names the published tensor; there is no destination */
static void local_share(struct rdmatensor_local *local, const struct rdmatensor_publication *pub)
{
	struct rdmatensor_fetch *fetch = &local->fetch;

	fetch->share_id = local->share_id;
	fetch->has_region = true;
	fetch->op.pool_id = pub->pool->id;
	fetch->offset = pub->offset;
	rdmatensor_count(fetch->op.counters, RDMATENSOR_STAT_SHARED);
}

/* The copy is made by the CPU */
static int local_reaches(struct rdmatensor_fetch *fetch, const struct rdmatensor_publication *pub)
{
	if (!fetch->meta.bytes || (rdmatensor_pool_reachable(pub->pool) &&
				   rdmatensor_pool_reachable(fetch->op.pool)))
		return 0;
	rdmatensor_status_set(&fetch->op.status, -EOPNOTSUPP,
			      "the CPU cannot reach both, and a fetch from oneself is a copy: publish and fetch in two contexts");
	return -EOPNOTSUPP;
}

/* The publisher of a lasting tensor may be of another context, and does not pay for this one */
static int local_place(struct rdmatensor_fetch *fetch)
{
	struct mem_cgroup *old = set_active_memcg(fetch->op.core->memcg);
	int ret;

	ret = rdmatensor_fetch_place(fetch, GFP_ATOMIC | __GFP_ACCOUNT);
	set_active_memcg(old);
	return ret;
}

/* Return: 0: there is a destination, or none is needed; @to is the next state */
static int local_take(struct rdmatensor_local *local, enum local_state *to)
{
	struct rdmatensor_publication *pub = to_publication(local->waiter.tensor);
	struct rdmatensor_fetch *fetch = &local->fetch;
	int ret;

	fetch->step_id = rdmatensor_tensor_step(&pub->tensor);
	ret = rdmatensor_fetch_learn(fetch, &pub->tensor.meta);
	if (ret) {
		rdmatensor_slice_misfits(&fetch->op.status, &fetch->slice->slice,
					 &pub->tensor.meta);
		return ret;
	}
	if (!local->share_id) {
		ret = local_reaches(fetch, pub);
		if (ret)
			return ret;
		ret = local_place(fetch);
		if (!ret && fetch->meta.bytes)
			*to = LOCAL_COPYING;
		return ret;
	}
	if (!fetch->meta.bytes)
		return 0;
	if (!pub->share) {
		rdmatensor_status_set(&fetch->op.status, -EOPNOTSUPP,
				      "its publisher does not share it: fetch it to a place");
		return -EOPNOTSUPP;
	}
	local_share(local, pub);
	*to = LOCAL_SHARED;
	return 0;
}

static void local_matched(struct rdmatensor_waiter *waiter, struct list_head *more)
{
	struct rdmatensor_local *local = container_of(waiter, struct rdmatensor_local, waiter);
	struct rdmatensor_fetch *fetch = &local->fetch;
	struct rdmatensor_tensor *tensor = waiter->tensor;
	enum local_state to = LOCAL_DONE;
	bool delivered = false;
	int error = 0;

	spin_lock_bh(&local->lock);
	if (local->cancelled) {
		error = fetch->op.status.error;
	} else if (!tensor) {
		rdmatensor_status_copy(&fetch->op.status, &waiter->status);
		error = waiter->status.error;
	} else if (tensor->failed.error) {
		rdmatensor_status_copy(&fetch->op.status, &tensor->failed);
		error = tensor->failed.error;
		delivered = true;
	} else {
		error = local_take(local, &to);
		delivered = !error;
	}
	local_move(local, to);
	/* Whoever finds it COPYING can flush the queue: local_copy() ends behind the lock */
	if (to == LOCAL_COPYING)
		queue_work(fetch->op.core->wq, &local->copy);
	spin_unlock_bh(&local->lock);

	if (to == LOCAL_COPYING)
		return;
	/* From here on a share may be released, and its tensor be freed */
	if (tensor && to != LOCAL_SHARED)
		rdmatensor_publication_put(to_publication(tensor), delivered, more);
	local_finish(local, error);
}

/*
 * Ends a fetch that was cancelled before it began to wait. local_stop() searches the table
 * and marks the fetch under the lock, so it has either found it there, or marked it
 */
static void local_end_cancelled(struct rdmatensor_local *local)
{
	bool end = false;

	spin_lock_bh(&local->lock);
	if (local->state == LOCAL_WAITING && local->cancelled &&
	    rdmatensor_rendezvous_cancel(local->fetch.op.core->rdv, &local->waiter)) {
		local_move(local, LOCAL_DONE);
		end = true;
	}
	spin_unlock_bh(&local->lock);
	if (end)
		local_finish(local, local->fetch.op.status.error);
}

static int local_list(struct rdmatensor_local *local)
{
	struct rdmatensor_core *core = local->fetch.op.core;
	int ret;

	if (!atomic_add_unless(&core->nr_shares, 1, RDMATENSOR_SHARES_MAX))
		return -EAGAIN;
	/* Taken before the table has it: a process can guess the number */
	rdmatensor_operation_get(&local->fetch.op);
	ret = xa_alloc_cyclic_bh(&core->shares, &local->share_id, local, xa_limit_32b,
				 &core->next_share, RDMATENSOR_GFP_SPARING);
	if (ret >= 0)
		return 0;
	local->share_id = 0;
	atomic_dec(&core->nr_shares);
	return ret;
}

/* It is out of the table: no other caller releases it */
static void local_give_back(struct rdmatensor_local *local)
{
	struct rdmatensor_publication *pub = to_publication(local->waiter.tensor);
	LIST_HEAD(matches);

	rdmatensor_count(local->fetch.op.counters, RDMATENSOR_STAT_SHARES_RELEASED);
	rdmatensor_publication_put(pub, true, &matches);
	rdmatensor_rendezvous_work_off(&matches);
	rdmatensor_operation_put(&local->fetch.op);
}

int rdmatensor_local_release(struct rdmatensor_core *core, u64 share_id)
{
	struct rdmatensor_local *local;
	bool shared = false;

	if (share_id > U32_MAX)
		return -ENOENT;
	xa_lock_bh(&core->shares);
	local = xa_load(&core->shares, share_id);
	if (local) {
		spin_lock(&local->lock);
		shared = local->state == LOCAL_SHARED;
		spin_unlock(&local->lock);
	}
	if (shared)
		__xa_erase(&core->shares, share_id);
	xa_unlock_bh(&core->shares);
	if (!shared)
		return -ENOENT;
	atomic_dec(&core->nr_shares);
	local_give_back(local);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_local_release);

void rdmatensor_local_release_all(struct rdmatensor_core *core)
{
	struct rdmatensor_local *local;
	unsigned long id;

	xa_for_each(&core->shares, id, local) {
		rdmatensor_local_release(core, id);
		cond_resched();
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_local_release_all);

int rdmatensor_local_submit(struct rdmatensor_core *core,
			    const struct rdmatensor_fetch_args *args)
{
	const struct rdmatensor_wanted wanted = {
		.name = args->name, .name_len = args->name_len, .step_id = args->step_id,
		.newest = args->newest, .now = args->now,
	};
	struct rdmatensor_local *local;
	LIST_HEAD(matches);
	int ret;

	local = kzalloc(struct_size(local, name, args->name_len), RDMATENSOR_GFP_SPARING);
	if (!local)
		return -ENOMEM;
	local->name_len = args->name_len;
	memcpy(local->name, args->name, args->name_len);

	spin_lock_init(&local->lock);
	INIT_WORK(&local->copy, local_copy);
	INIT_LIST_HEAD(&local->waiter.item);
	local->waiter.matched = local_matched;

	ret = rdmatensor_fetch_init(&local->fetch, &local_ops, core, &core->counters,
				    RDMATENSOR_CHANNEL_SELF, args);
	if (ret) {
		kfree(local);
		return ret;
	}
	if (args->share) {
		ret = local_list(local);
		if (ret) {
			rdmatensor_fetch_abandon(&local->fetch);
			kfree(local);
			return ret;
		}
	}

	rdmatensor_hold("fetch");
	/* A timer or a cancel may come before the fetch waits in the table, and not find it */
	rdmatensor_operation_get(&local->fetch.op);
	rdmatensor_operation_begin(&local->fetch.op, args->deadline_ns);
	ret = rdmatensor_rendezvous_request(core->rdv, &local->waiter, &wanted,
					    GFP_ATOMIC | __GFP_ACCOUNT);
	if (ret == 1) {
		/* It waits now; a cancel before that did not find it */
		local_end_cancelled(local);
	} else {
		/* waiter.status already says why there is no match to wait for */
		if (ret && ret != -ECANCELED)
			local->waiter.status.error = ret;
		list_add(&local->waiter.item, &matches);
		rdmatensor_rendezvous_work_off(&matches);
	}
	rdmatensor_operation_put(&local->fetch.op);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_local_submit);
