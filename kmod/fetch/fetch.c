// SPDX-License-Identifier: GPL-2.0
/*
 * The common part of fetches.
 *
 * A fetch holds its entry in the ring from its first moment, so its end always
 * finds room, and the range that it writes from before a peer can know of it
 * until after none can write it any more. While its range is yet to be allocated
 * it holds an empty one, so that the pool stays. All that is let go before the
 * entry can be seen: what is left of it then is its own memory. The timer holds a
 * reference of its own while it is armed: whoever disarms it drops that, or its
 * handler does.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/trace.h"
#include "fetch/fetch.h"

static void fetch_expired(struct timer_list *timer)
{
	struct rdmatensor_fetch *fetch = from_timer(fetch, timer, timer);

	fetch->ops->expire(fetch);
	rdmatensor_fetch_put(fetch);
}

int rdmatensor_fetch_init(struct rdmatensor_fetch *fetch,
			  const struct rdmatensor_fetch_ops *ops,
			  struct rdmatensor_core *core,
			  struct rdmatensor_counters *counters, u32 channel,
			  const struct rdmatensor_fetch_args *args)
{
	int ret;

	if (!args->gather &&
	    rdmatensor_rendezvous_step_status(core->rdv, args->step_id, &fetch->status)) {
		ret = fetch->status.error;
		rdmatensor_status_clear(&fetch->status);
		return ret;
	}

	ret = rdmatensor_ring_reserve(&core->ring, 1);
	if (ret)
		return ret;

	if (args->pool) {
		ret = rdmatensor_regions_hold(&args->pool->regions, &fetch->use,
					      args->alloc ? 0 : args->offset,
					      args->alloc ? 0 : args->bytes, true);
		if (ret) {
			rdmatensor_ring_unreserve(&core->ring, 1);
			return ret;
		}
		fetch->pool_id = args->pool->id;
		fetch->has_region = !args->alloc;
	}

	kref_init(&fetch->ref);
	fetch->ops = ops;
	fetch->core = core;
	rdmatensor_core_get(core);
	fetch->counters = counters;
	RB_CLEAR_NODE(&fetch->node);
	fetch->gather = args->gather;
	fetch->channel = channel;
	fetch->user_data = args->user_data;
	fetch->step_id = args->step_id;
	fetch->pool = args->pool;
	fetch->alloc = args->alloc;
	fetch->offset = args->offset;
	fetch->room = args->bytes;
	timer_setup(&fetch->timer, fetch_expired, 0);
	return 0;
}

void rdmatensor_fetch_get(struct rdmatensor_fetch *fetch)
{
	kref_get(&fetch->ref);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_get);

static void fetch_release(struct kref *ref)
{
	struct rdmatensor_fetch *fetch = container_of(ref, struct rdmatensor_fetch, ref);
	struct rdmatensor_core *core = fetch->core;

	rdmatensor_status_clear(&fetch->status);
	fetch->ops->free(fetch);
	rdmatensor_core_put(core);
}

void rdmatensor_fetch_put(struct rdmatensor_fetch *fetch)
{
	kref_put(&fetch->ref, fetch_release);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_put);

void rdmatensor_fetch_arm(struct rdmatensor_fetch *fetch, unsigned long expires)
{
	rdmatensor_fetch_get(fetch);
	if (mod_timer(&fetch->timer, expires))
		rdmatensor_fetch_put(fetch);
}

static struct rdmatensor_fetch *to_fetch(const struct rb_node *node)
{
	return rb_entry(node, struct rdmatensor_fetch, node);
}

static int fetch_compare(const struct rdmatensor_fetch_place *place,
			 const struct rdmatensor_fetch *fetch)
{
	if (place->user_data != fetch->user_data)
		return place->user_data < fetch->user_data ? -1 : 1;
	if (place->serial != fetch->serial)
		return place->serial < fetch->serial ? -1 : 1;
	return 0;
}

static bool fetch_less(struct rb_node *a, const struct rb_node *b)
{
	struct rdmatensor_fetch_place place = {
		.user_data = to_fetch(a)->user_data, .serial = to_fetch(a)->serial,
	};

	return fetch_compare(&place, to_fetch(b)) < 0;
}

/* The wheel ends far before 2^62 */
static void fetch_arm_deadline(struct rdmatensor_fetch *fetch, u64 now)
{
	u64 left = fetch->deadline_ns > now ? fetch->deadline_ns - now : 0;

	rdmatensor_fetch_arm(fetch, jiffies + min_t(u64, nsecs_to_jiffies64(left),
						    MAX_JIFFY_OFFSET - 1) + 1);
}

bool rdmatensor_fetch_early(struct rdmatensor_fetch *fetch)
{
	u64 now = ktime_get_ns();

	if (now >= fetch->deadline_ns)
		return false;
	/* Once it is out of the table nobody would disarm it any more */
	spin_lock_bh(&fetch->core->fetch_lock);
	if (!RB_EMPTY_NODE(&fetch->node))
		fetch_arm_deadline(fetch, now);
	spin_unlock_bh(&fetch->core->fetch_lock);
	return true;
}

void rdmatensor_fetch_begin(struct rdmatensor_fetch *fetch, u64 deadline_ns)
{
	struct rdmatensor_core *core = fetch->core;
	u64 now = ktime_get_ns();

	fetch->begun_ns = now;
	rdmatensor_count(fetch->counters, fetch->gather ?
			 RDMATENSOR_STAT_GATHERS : RDMATENSOR_STAT_FETCHES);
	trace_rdmatensor_fetch_submit(fetch->user_data, fetch->channel, fetch->step_id, deadline_ns);
	spin_lock_bh(&core->fetch_lock);
	fetch->serial = ++core->next_serial;
	rb_add(&fetch->node, &core->fetches, fetch_less);
	spin_unlock_bh(&core->fetch_lock);

	fetch->deadline_ns = deadline_ns;
	if (deadline_ns)
		fetch_arm_deadline(fetch, now);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_begin);

/* What was allocated for it; what the process has named stays its own */
static void fetch_free_region(struct rdmatensor_fetch *fetch)
{
	if (!fetch->alloc || !fetch->has_region)
		return;
	fetch->has_region = false;
	rdmatensor_regions_free_held(&fetch->pool->regions, &fetch->use);
}

int rdmatensor_fetch_place(struct rdmatensor_fetch *fetch, gfp_t gfp)
{
	struct rdmatensor_regions *regions = &fetch->pool->regions;
	u64 bytes = fetch->meta.bytes;
	int ret;

	if (!fetch->alloc)
		return bytes > fetch->room ? -EMSGSIZE : 0;

	fetch_free_region(fetch);
	if (fetch->room && bytes > fetch->room)
		return -EMSGSIZE;
	if (!bytes)
		return 0;

	ret = rdmatensor_regions_alloc_hold(regions, &fetch->use, bytes, gfp,
					    &fetch->offset);
	if (ret)
		return ret;
	fetch->has_region = true;
	return 0;
}

static void fetch_drop(struct rdmatensor_fetch *fetch)
{
	if (fetch->pool)
		rdmatensor_regions_drop(&fetch->pool->regions, &fetch->use);
}

static void fetch_entry(const struct rdmatensor_fetch *fetch, int error,
			struct rdmatensor_cqe *cqe)
{
	memset(cqe, 0, sizeof(*cqe));
	cqe->user_data = fetch->user_data;
	cqe->type = fetch->gather ? RDMATENSOR_CQE_GATHER : RDMATENSOR_CQE_FETCH;
	cqe->result = error;
	cqe->step_id = fetch->step_id;
	cqe->channel = fetch->channel;
	if (fetch->has_region && !error) {
		cqe->pool_id = fetch->pool_id;
		cqe->offset = fetch->offset;
	}
	if (fetch->share_id && !error) {
		cqe->flags |= RDMATENSOR_CQE_SHARED;
		cqe->share_id = fetch->share_id;
	}
	if (fetch->gather) {
		cqe->tensor_bytes = error ? fetch->rows_missing : fetch->meta.bytes;
		if (error)
			cqe->offset = fetch->first_missing;
	}
	if (fetch->meta.data_type != RDMATENSOR_DT_INVALID) {
		cqe->flags |= RDMATENSOR_CQE_META;
		if (fetch->meta.is_dead)
			cqe->flags |= RDMATENSOR_CQE_DEAD;
		cqe->tensor_bytes = fetch->meta.bytes;
		cqe->data_type = fetch->meta.data_type;
		cqe->ndims = fetch->meta.ndims;
		memcpy(cqe->dims, fetch->meta.dims, sizeof(cqe->dims));
	}
	if (error && fetch->status.text_len) {
		cqe->flags |= RDMATENSOR_CQE_TEXT;
		cqe->text_len = fetch->status.text_len;
		memset(cqe->text, 0, sizeof(cqe->text));
		memcpy(cqe->text, fetch->status.text, fetch->status.text_len);
	}
	if (error && fetch->status.whole) {
		cqe->flags |= RDMATENSOR_CQE_MORE;
		cqe->text_id = rdmatensor_texts_keep(&fetch->core->texts,
						     fetch->status.whole);
	}
	if (fetch->validate) {
		cqe->checksum = fetch->checksum;
		if (!error)
			cqe->flags |= RDMATENSOR_CQE_VALIDATED;
	}
}

static void fetch_count_end(struct rdmatensor_fetch *fetch, int error)
{
	struct rdmatensor_counters *counters = fetch->counters;

	if (error)
		rdmatensor_count_error(counters, error);
	if (fetch->gather) {
		rdmatensor_count(counters, error ? RDMATENSOR_STAT_GATHER_ERRORS :
						   RDMATENSOR_STAT_GATHERED);
	} else if (error) {
		rdmatensor_count(counters, RDMATENSOR_STAT_FETCH_ERRORS);
	} else {
		rdmatensor_count(counters, RDMATENSOR_STAT_FETCHED);
		rdmatensor_count_add(counters, RDMATENSOR_STAT_FETCHED_BYTES, fetch->meta.bytes);
		rdmatensor_count_latency(counters, ktime_get_ns() - fetch->begun_ns);
	}
}

void rdmatensor_fetch_finish(struct rdmatensor_fetch *fetch, int error)
{
	struct rdmatensor_core *core = fetch->core;
	struct rdmatensor_cqe cqe;

	spin_lock_bh(&core->fetch_lock);
	rb_erase(&fetch->node, &core->fetches);
	RB_CLEAR_NODE(&fetch->node);
	spin_unlock_bh(&core->fetch_lock);
	if (timer_delete(&fetch->timer))
		rdmatensor_fetch_put(fetch);

	if (error)
		fetch_free_region(fetch);
	fetch_drop(fetch);
	if (fetch->pool)
		rdmatensor_pool_put(fetch->pool);
	fetch->pool = NULL;

	fetch_count_end(fetch, error);

	trace_rdmatensor_fetch_end(fetch->user_data, fetch->channel, error,
				   error ? 0 : fetch->meta.bytes);
	fetch_entry(fetch, error, &cqe);
	rdmatensor_ring_complete(&core->ring, &cqe);
}

void rdmatensor_fetch_abandon(struct rdmatensor_fetch *fetch)
{
	fetch_free_region(fetch);
	fetch_drop(fetch);
	rdmatensor_ring_unreserve(&fetch->core->ring, 1);
	rdmatensor_core_put(fetch->core);
}

void rdmatensor_fetch_timed_out(struct rdmatensor_fetch *fetch)
{
	const struct rdmatensor_core_ops *ops = fetch->core->ops;

	if (ops)
		ops->timed_out(fetch->core, fetch);
}

/* The first one behind @place. With the lock held */
static struct rdmatensor_fetch *fetch_behind(const struct rdmatensor_core *core,
					     const struct rdmatensor_fetch_place *place)
{
	struct rb_node *node = core->fetches.rb_node;
	struct rdmatensor_fetch *found = NULL;

	lockdep_assert_held(&core->fetch_lock);
	while (node) {
		if (fetch_compare(place, to_fetch(node)) < 0) {
			found = to_fetch(node);
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

struct rdmatensor_fetch *rdmatensor_fetch_next(struct rdmatensor_core *core,
					       struct rdmatensor_fetch_place *place)
{
	struct rdmatensor_fetch *found;

	spin_lock_bh(&core->fetch_lock);
	found = fetch_behind(core, place);
	if (found) {
		rdmatensor_fetch_get(found);
		place->user_data = found->user_data;
		place->serial = found->serial;
	}
	spin_unlock_bh(&core->fetch_lock);
	return found;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_next);

int rdmatensor_fetch_check(struct rdmatensor_fetch *fetch)
{
	u32 sum = 0;

	rdmatensor_count(fetch->counters, RDMATENSOR_STAT_VALIDATED);
	if (fetch->meta.bytes)
		sum = rdmatensor_pool_checksum(fetch->pool, fetch->offset, fetch->meta.bytes);
	if (sum == fetch->checksum)
		return 0;

	rdmatensor_count(fetch->counters, RDMATENSOR_STAT_VALIDATE_ERRORS);
	rdmatensor_status_set(&fetch->status, -EBADMSG, "checksum of the content differs");
	return -EBADMSG;
}

/*
 * Cancels what has begun and is wanted, one by one and each without the lock: there may
 * be as many as the ring has entries. @user_data and @step_id, unless NULL, say of which.
 * What begins meanwhile is not of those: the walk ends behind the last one that is there
 */
static int fetch_cancel_matching(struct rdmatensor_core *core, const u64 *user_data,
				 const s64 *step_id, const struct rdmatensor_status *status)
{
	struct rdmatensor_fetch_place place = { .user_data = user_data ? *user_data : 0 };
	struct rdmatensor_fetch_place last = place;
	struct rdmatensor_fetch *fetch;
	u64 newest;
	int n = 0;

	might_sleep();
	spin_lock_bh(&core->fetch_lock);
	newest = core->next_serial;
	last.serial = newest;
	if (!user_data && !RB_EMPTY_ROOT(&core->fetches))
		last.user_data = to_fetch(rb_last(&core->fetches))->user_data;
	spin_unlock_bh(&core->fetch_lock);

	while ((fetch = rdmatensor_fetch_next(core, &place))) {
		bool beyond = fetch_compare(&last, fetch) < 0;

		/* A gather is of no step */
		if (!beyond && fetch->serial <= newest &&
		    (!step_id || (!fetch->gather && fetch->step_id == *step_id))) {
			fetch->ops->cancel(fetch, status);
			n++;
		}
		rdmatensor_fetch_put(fetch);
		if (beyond)
			break;
		cond_resched();
	}
	return n;
}

int rdmatensor_fetch_cancel(struct rdmatensor_core *core, u64 user_data)
{
	struct rdmatensor_status status = { .error = -ECANCELED };

	return fetch_cancel_matching(core, &user_data, NULL, &status);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_cancel);

int rdmatensor_fetch_abort_step(struct rdmatensor_core *core, s64 step_id,
				const struct rdmatensor_status *status)
{
	return fetch_cancel_matching(core, NULL, &step_id, status);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_abort_step);

int rdmatensor_fetch_cancel_all(struct rdmatensor_core *core, int error)
{
	struct rdmatensor_status status = { .error = error };

	return fetch_cancel_matching(core, NULL, NULL, &status);
}
