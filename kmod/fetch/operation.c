// SPDX-License-Identifier: GPL-2.0
/*
 * The common part of operations.
 *
 * An operation reserves its entry in the ring first, so its end always finds space there,
 * and holds the range that it writes from before a peer can know of it until after no peer
 * can write it any more. While that range is still to be allocated it holds an empty one, so
 * that the pool stays. All of this is released before the entry becomes visible: what is left
 * then is the operation's own memory. The timer holds a reference while it is armed, which is
 * dropped by the handler, or by the one who disarms it.
 */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <kunit/visibility.h>
#include "core/trace.h"
#include "fetch/operation.h"

static void operation_expired(struct timer_list *timer)
{
	struct rdmatensor_operation *op = from_timer(op, timer, timer);

	op->ops->expire(op);
	rdmatensor_operation_put(op);
}

static int operation_hold(struct rdmatensor_operation *op,
			  const struct rdmatensor_operation_args *args)
{
	struct rdmatensor_regions *regions = &args->pool->regions;

	return args->sparse ?
	       rdmatensor_regions_hold_sparse(regions, &op->use, args->offset, args->bytes, true) :
	       rdmatensor_regions_hold(regions, &op->use, args->offset, args->bytes, true);
}

int rdmatensor_operation_init(struct rdmatensor_operation *op,
			      const struct rdmatensor_operation_ops *ops,
			      struct rdmatensor_core *core,
			      struct rdmatensor_counters *counters,
			      const struct rdmatensor_operation_args *args)
{
	int ret;

	if (args->pool && !args->pool->writable)
		return -EACCES;
	ret = rdmatensor_ring_reserve(&core->ring, 1);
	if (ret)
		return ret;

	if (args->pool) {
		ret = operation_hold(op, args);
		if (ret) {
			rdmatensor_ring_unreserve(&core->ring, 1);
			return ret;
		}
		op->pool_id = args->pool->id;
	}

	kref_init(&op->ref);
	op->ops = ops;
	op->core = core;
	rdmatensor_core_get(core);
	op->counters = counters;
	RB_CLEAR_NODE(&op->node);
	op->channel = args->channel;
	op->user_data = args->user_data;
	op->step_id = args->step_id;
	op->any_step = args->any_step;
	op->pool = args->pool;
	timer_setup(&op->timer, operation_expired, 0);
	return 0;
}

void rdmatensor_operation_get(struct rdmatensor_operation *op)
{
	kref_get(&op->ref);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_operation_get);

static void operation_release(struct kref *ref)
{
	struct rdmatensor_operation *op = container_of(ref, struct rdmatensor_operation, ref);
	struct rdmatensor_core *core = op->core;

	rdmatensor_status_clear(&op->status);
	op->ops->release(op);
	rdmatensor_core_put(core);
}

void rdmatensor_operation_put(struct rdmatensor_operation *op)
{
	kref_put(&op->ref, operation_release);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_operation_put);

void rdmatensor_operation_arm(struct rdmatensor_operation *op, unsigned long expires)
{
	rdmatensor_operation_get(op);
	if (mod_timer(&op->timer, expires))
		rdmatensor_operation_put(op);
}

static struct rdmatensor_operation *to_operation(const struct rb_node *node)
{
	return rb_entry(node, struct rdmatensor_operation, node);
}

static int operation_compare(const struct rdmatensor_operation_place *place,
			     const struct rdmatensor_operation *op)
{
	if (place->user_data != op->user_data)
		return place->user_data < op->user_data ? -1 : 1;
	if (place->serial != op->serial)
		return place->serial < op->serial ? -1 : 1;
	return 0;
}

static bool operation_less(struct rb_node *a, const struct rb_node *b)
{
	struct rdmatensor_operation_place place = {
		.user_data = to_operation(a)->user_data, .serial = to_operation(a)->serial,
	};

	return operation_compare(&place, to_operation(b)) < 0;
}

/* The timer wheel ends far before 2^62 */
static void operation_arm_deadline(struct rdmatensor_operation *op, u64 now)
{
	u64 left = op->deadline_ns > now ? op->deadline_ns - now : 0;

	rdmatensor_operation_arm(op, jiffies + min_t(u64, nsecs_to_jiffies64(left),
						     MAX_JIFFY_OFFSET - 1) + 1);
}

bool rdmatensor_operation_early(struct rdmatensor_operation *op)
{
	u64 now = ktime_get_ns();

	if (now >= op->deadline_ns)
		return false;
	/* Once it is out of the table nobody would disarm it any more */
	spin_lock_bh(&op->core->operations_lock);
	if (!RB_EMPTY_NODE(&op->node))
		operation_arm_deadline(op, now);
	spin_unlock_bh(&op->core->operations_lock);
	return true;
}

void rdmatensor_operation_begin(struct rdmatensor_operation *op, u64 deadline_ns)
{
	struct rdmatensor_core *core = op->core;
	u64 now = ktime_get_ns();

	op->begun_ns = now;
	rdmatensor_count(op->counters, op->ops->kind->submitted);
	trace_rdmatensor_fetch_submit(op->user_data, op->channel, op->step_id, deadline_ns);
	spin_lock_bh(&core->operations_lock);
	op->serial = ++core->next_serial;
	rb_add(&op->node, &core->operations, operation_less);
	spin_unlock_bh(&core->operations_lock);

	op->deadline_ns = deadline_ns;
	if (deadline_ns)
		operation_arm_deadline(op, now);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_operation_begin);

static void operation_drop(struct rdmatensor_operation *op)
{
	if (op->pool)
		rdmatensor_regions_drop(&op->pool->regions, &op->use);
}

static void operation_entry(const struct rdmatensor_operation *op, int error,
			    struct rdmatensor_cqe *cqe)
{
	memset(cqe, 0, sizeof(*cqe));
	cqe->user_data = op->user_data;
	cqe->type = op->ops->kind->cqe_type;
	cqe->result = error;
	cqe->step_id = op->step_id;
	cqe->channel = op->channel;
	op->ops->kind->entry(op, error, cqe);
	if (error && op->status.text_len) {
		cqe->flags |= RDMATENSOR_CQE_TEXT;
		cqe->text_len = op->status.text_len;
		memset(cqe->text, 0, sizeof(cqe->text));
		memcpy(cqe->text, op->status.text, op->status.text_len);
	}
	if (error && op->status.whole) {
		cqe->flags |= RDMATENSOR_CQE_MORE;
		cqe->text_id = rdmatensor_texts_keep(&op->core->texts, op->status.whole);
	}
}

static void operation_count_end(struct rdmatensor_operation *op, int error)
{
	const struct rdmatensor_operation_kind *kind = op->ops->kind;

	if (error)
		rdmatensor_count_error(op->counters, error);
	rdmatensor_count(op->counters, error ? kind->failed : kind->completed);
}

void rdmatensor_operation_finish(struct rdmatensor_operation *op, int error, u64 bytes)
{
	struct rdmatensor_core *core = op->core;
	struct rdmatensor_cqe cqe;

	spin_lock_bh(&core->operations_lock);
	rb_erase(&op->node, &core->operations);
	RB_CLEAR_NODE(&op->node);
	spin_unlock_bh(&core->operations_lock);
	if (timer_delete(&op->timer))
		rdmatensor_operation_put(op);

	operation_drop(op);
	if (op->pool)
		rdmatensor_pool_put(op->pool);
	op->pool = NULL;

	operation_count_end(op, error);

	trace_rdmatensor_fetch_end(op->user_data, op->channel, error, error ? 0 : bytes);
	operation_entry(op, error, &cqe);
	rdmatensor_ring_complete(&core->ring, &cqe);
}

void rdmatensor_operation_abandon(struct rdmatensor_operation *op)
{
	operation_drop(op);
	rdmatensor_ring_unreserve(&op->core->ring, 1);
	rdmatensor_core_put(op->core);
}

void rdmatensor_operation_timed_out(struct rdmatensor_operation *op)
{
	const struct rdmatensor_core_ops *ops = op->core->ops;

	if (ops)
		ops->timed_out(op->core, op);
}

/* The first one behind @place. With the lock held */
static struct rdmatensor_operation *
operation_behind(const struct rdmatensor_core *core,
		 const struct rdmatensor_operation_place *place)
{
	struct rb_node *node = core->operations.rb_node;
	struct rdmatensor_operation *found = NULL;

	lockdep_assert_held(&core->operations_lock);
	while (node) {
		if (operation_compare(place, to_operation(node)) < 0) {
			found = to_operation(node);
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

struct rdmatensor_operation *rdmatensor_operation_next(struct rdmatensor_core *core,
						       struct rdmatensor_operation_place *place)
{
	struct rdmatensor_operation *found;

	spin_lock_bh(&core->operations_lock);
	found = operation_behind(core, place);
	if (found) {
		rdmatensor_operation_get(found);
		place->user_data = found->user_data;
		place->serial = found->serial;
	}
	spin_unlock_bh(&core->operations_lock);
	return found;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_operation_next);

/*
 * Cancels what has begun and matches, one by one and each without the lock: there may be as
 * many as the ring has entries. @user_data and @step_id, unless NULL, say which match. An
 * operation that begins meanwhile does not: the walk ends behind the last one that is there
 */
static int operation_cancel_matching(struct rdmatensor_core *core, const u64 *user_data,
				     const s64 *step_id, const struct rdmatensor_status *status)
{
	struct rdmatensor_operation_place place = { .user_data = user_data ? *user_data : 0 };
	struct rdmatensor_operation_place last = place;
	struct rdmatensor_operation *op;
	u64 newest;
	int n = 0;

	might_sleep();
	spin_lock_bh(&core->operations_lock);
	newest = core->next_serial;
	last.serial = newest;
	if (!user_data && !RB_EMPTY_ROOT(&core->operations))
		last.user_data = to_operation(rb_last(&core->operations))->user_data;
	spin_unlock_bh(&core->operations_lock);

	while ((op = rdmatensor_operation_next(core, &place))) {
		bool beyond = operation_compare(&last, op) < 0;

		if (!beyond && op->serial <= newest &&
		    (!step_id || (op->ops->kind->has_step && !op->any_step &&
				  op->step_id == *step_id))) {
			op->ops->cancel(op, status);
			n++;
		}
		rdmatensor_operation_put(op);
		if (beyond)
			break;
		cond_resched();
	}
	return n;
}

int rdmatensor_operation_cancel(struct rdmatensor_core *core, u64 user_data)
{
	struct rdmatensor_status status = { .error = -ECANCELED };

	return operation_cancel_matching(core, &user_data, NULL, &status);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_operation_cancel);

int rdmatensor_operation_abort_step(struct rdmatensor_core *core, s64 step_id,
				    const struct rdmatensor_status *status)
{
	return operation_cancel_matching(core, NULL, &step_id, status);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_operation_abort_step);

int rdmatensor_operation_cancel_all(struct rdmatensor_core *core, int error)
{
	struct rdmatensor_status status = { .error = error };

	return operation_cancel_matching(core, NULL, NULL, &status);
}
