// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls that submit one operation and return with its end. Each marks its
 * operation by a user_data of its own, and takes exactly that entry out of the
 * ring. The kernel kept a place in the ring for it, so it comes however many
 * other entries lie there.
 *
 * Any number of threads may be in such calls, and one beside them in
 * rdmatensor_reap(): the ring's process side is guarded by @reaping, and each
 * waits by itself, for the ring's head to go on from where it was looked at last:
 * what others take out of the ring meanwhile does not matter to that.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* How long the end of a tensor is waited for whose withdrawal has failed, before the next one */
#define AGAIN_MS 10

static bool is_interruptible(const struct rdmatensor *rt)
{
	return __atomic_load_n(&rt->interruptible, __ATOMIC_RELAXED);
}

/* Of @nr operations, at most RDMATENSOR_SUBMIT_MAX */
static void begin_call(struct rdmatensor *rt, struct rt_call *call, unsigned int nr)
{
	memset(call, 0, sizeof(*call));
	call->nr = nr;
	pthread_mutex_lock(&rt->reaping);
	/* Not around the end of 32 bits, as they are one after the other */
	if (rt->tag > UINT32_MAX - nr)
		rt->tag = 0;
	call->tag = RDMATENSOR_USER_DATA_LIBRARY | rt->tag;
	rt->tag += nr;
	call->next = rt->calls;
	rt->calls = call;
	pthread_mutex_unlock(&rt->reaping);
}

/* @abandoned: its entry is still to come, for nobody */
static void end_call(struct rdmatensor *rt, struct rt_call *call, bool abandoned)
{
	struct rt_call **at;

	pthread_mutex_lock(&rt->reaping);
	for (at = &rt->calls; *at != call; at = &(*at)->next)
		;
	*at = call->next;
	rt->abandoned += abandoned;
	pthread_mutex_unlock(&rt->reaping);
}

/* It ends an operation of a blocking call; *lives: of one that has not ended */
static bool is_calls(const struct rdmatensor *rt, const struct rdmatensor_cqe *cqe, bool *lives)
{
	const struct rt_call *call;

	if (cqe->user_data < RDMATENSOR_USER_DATA_LIBRARY || !rt_ring_is_end(cqe))
		return false;
	for (call = rt->calls; call && cqe->user_data - call->tag >= call->nr; call = call->next)
		;
	*lives = call;
	return true;
}

/* With @reaping held */
static void drop_abandoned(struct rdmatensor *rt)
{
	struct rdmatensor_cqe dropped;
	uint32_t i = 0, from;
	bool lives;

	while (rt->abandoned && i < rt_ring_ready(&rt->ring)) {
		const struct rdmatensor_cqe *at = rt_ring_at(&rt->ring, i);

		if (!is_calls(rt, at, &lives) || lives) {
			i++;
			continue;
		}
		from = i;
		rt_ring_take(&rt->ring, at->user_data, &from, &dropped);
		rt->abandoned--;
		rt->moves++;
	}
}

void rt_drop_abandoned(struct rdmatensor *rt)
{
	if (!__atomic_load_n(&rt->abandoned, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&rt->reaping);
	drop_abandoned(rt);
	pthread_mutex_unlock(&rt->reaping);
}

unsigned int rt_reap_beside_calls(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
				  unsigned int nr)
{
	unsigned int taken = 0;
	bool lives;

	pthread_mutex_lock(&rt->reaping);
	drop_abandoned(rt);
	if (!rt->calls)
		taken = rt_ring_reap(&rt->ring, cqes, nr);
	/* Up to the first that a call is about to take */
	while (rt->calls && taken < nr && rt_ring_ready(&rt->ring) &&
	       !is_calls(rt, rt_ring_at(&rt->ring, 0), &lives))
		taken += rt_ring_reap(&rt->ring, &cqes[taken], 1);
	rt->moves += taken;
	pthread_mutex_unlock(&rt->reaping);
	return taken;
}

static bool take(struct rdmatensor *rt, struct rt_call *call, struct rdmatensor_cqe *cqe)
{
	bool found;

	pthread_mutex_lock(&rt->reaping);
	drop_abandoned(rt);
	if (call->moves != rt->moves)
		call->from = 0;
	call->moves = rt->moves;
	found = rt_ring_take(&rt->ring, call->tag, &call->from, cqe);
	rt->moves += found;
	pthread_mutex_unlock(&rt->reaping);
	return found;
}

/*
 * 0: the entry is in @cqe; -ETIME; -EINTR, if @interruptible; else the device is gone, and it
 * with it. @err: how a wait before it has ended
 */
static int await(struct rdmatensor *rt, struct rt_call *call, int err, bool interruptible,
		 uint64_t deadline_ns, struct rdmatensor_cqe *cqe)
{
	unsigned int none;

	for (;;) {
		/* Before the look: an entry that comes after it ends the wait */
		uint32_t head = rt_ring_head(&rt->ring);

		if (take(rt, call, cqe))
			return 0;
		if (err && (err != -EINTR || interruptible))
			return err;
		err = rt_submit_until(rt, NULL, 0, head + 1, deadline_ns, &none);
	}
}

/* Submits @op under the call's tag and waits; *taken: whether the kernel has it */
static int submit_and_await(struct rdmatensor *rt, const struct rdmatensor_op *op,
			    struct rt_call *call, uint64_t deadline_ns, bool interruptible,
			    struct rdmatensor_cqe *cqe, unsigned int *taken)
{
	struct rdmatensor_op mine = *op;
	int err;

	memset(cqe, 0, sizeof(*cqe));
	*taken = 0;
	mine.user_data = call->tag;
	err = rt_submit_until(rt, &mine, 1, rt_ring_head(&rt->ring) + 1, deadline_ns, taken);
	if (!*taken)
		return err ? err : -EIO;
	return await(rt, call, err, interruptible, deadline_ns, cqe);
}

/* Without an entry of its own, for which a ring that only the caller reads may have no room */
static int withdraw_quietly(struct rdmatensor *rt, const struct rdmatensor_op *publish)
{
	struct rdmatensor_op op = {
		.opcode = RDMATENSOR_OP_WITHDRAW,
		.flags = RDMATENSOR_OP_QUIET,
		.name_uptr = publish->name_uptr,
		.name_len = publish->name_len,
		.step_id = publish->step_id,
	};

	struct rdmatensor_cqe cqe;
	int err = rdmatensor_submit(rt, &op, 1, 0, 0, NULL);

	if (err != -EINVAL)
		return err;
	/* A module that does not know the flag */
	op.flags = 0;
	return rdmatensor_run(rt, &op, &cqe);
}

/*
 * Takes a publication back, as often as it needs, and waits until the buffer is free: until then
 * it cannot be given back. Return: 0: it was withdrawn; 1: it ended by itself, as @cqe says; else
 * the device is gone
 */
static int take_back(struct rdmatensor *rt, const struct rdmatensor_op *op, struct rt_call *call,
		     struct rdmatensor_cqe *cqe)
{
	int withdrawn, err;

	do {
		withdrawn = withdraw_quietly(rt, op);
		/*
		 * What is used up just now is not found, and its entry comes. If it failed
		 * otherwise, as without memory, the tensor is still there
		 */
		err = await(rt, call, 0, false, withdrawn && withdrawn != -ENOENT ?
			    rdmatensor_deadline_ms(AGAIN_MS) : 0, cqe);
	} while (err == -ETIME);
	return err ? err : !!withdrawn;
}

/* By a signal, of what the kernel has. Return: as rdmatensor_run() */
static int end_interrupted(struct rdmatensor *rt, const struct rdmatensor_op *op,
		       struct rt_call *call, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op cancel;
	int err;

	if (op->opcode == RDMATENSOR_OP_PUBLISH) {
		err = take_back(rt, op, call, cqe);
		return err < 0 ? err : err ? cqe->result : -EINTR;
	}
	rdmatensor_prep_cancel(&cancel, call->tag);
	/* What has ended is not found, and what cannot be cancelled just now goes on to its end */
	rdmatensor_submit(rt, &cancel, 1, 0, 0, NULL);
	err = await(rt, call, 0, false, 0, cqe);
	if (err)
		return err;
	return cqe->result == -ECANCELED ? -EINTR : cqe->result;
}

void rdmatensor_interruptible(struct rdmatensor *rt, int on)
{
	__atomic_store_n(&rt->interruptible, on, __ATOMIC_RELAXED);
}

/* Others would be waited for without end */
static bool makes_entry(const struct rdmatensor_op *op)
{
	return !(op->opcode == RDMATENSOR_OP_CANCEL ||
		 op->opcode == RDMATENSOR_OP_FREE ||
		 op->opcode == RDMATENSOR_OP_RELEASE ||
		 (op->opcode == RDMATENSOR_OP_WITHDRAW && op->flags & RDMATENSOR_OP_QUIET) ||
		 (op->opcode == RDMATENSOR_OP_PUBLISH && !op->uses));
}

static int run(struct rdmatensor *rt, const struct rdmatensor_op *op, size_t op_size,
	       bool interruptible, struct rdmatensor_cqe *cqe)
{
	bool abandoned = false;
	struct rdmatensor_op mine;
	struct rt_call call;
	unsigned int taken;
	int err;

	memset(cqe, 0, sizeof(*cqe));
	if (!rt->ring.hdr)
		return -ENOTCONN;
	err = rt_take_struct(&mine, sizeof(mine), op, op_size);
	if (!err && !makes_entry(&mine))
		err = -EINVAL;
	if (err)
		return err;

	begin_call(rt, &call, 1);
	err = submit_and_await(rt, &mine, &call, 0, interruptible, cqe, &taken);
	if (err == -EINTR && taken && mine.opcode == RDMATENSOR_OP_WITHDRAW) {
		abandoned = true;
	} else if (err == -EINTR && taken) {
		err = end_interrupted(rt, &mine, &call, cqe);
	} else if (!err) {
		err = cqe->result;
	}
	end_call(rt, &call, abandoned);
	if (cqe->type)
		cqe->user_data = mine.user_data;
	return err;
}

int rdmatensor_run_sized(struct rdmatensor *rt, const struct rdmatensor_op *op, size_t op_size,
			 struct rdmatensor_cqe *cqe)
{
	return run(rt, op, op_size, is_interruptible(rt), cqe);
}

int rt_withdraw(struct rdmatensor *rt, const char *name, int64_t step_id)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, name, step_id, 0);
	return run(rt, &op, sizeof(op), false, &cqe);
}

/* Fetches and gathers. Those that have ended are not found, others may go on to their end */
static void cancel_all(struct rdmatensor *rt, const struct rt_call *call)
{
	struct rdmatensor_op op;
	unsigned int i;

	for (i = 0; i < call->nr; i++) {
		rdmatensor_prep_cancel(&op, call->tag + i);
		rdmatensor_submit(rt, &op, 1, 0, 0, NULL);
	}
}

/* The entries of a call that have come. Return: their number */
static unsigned int take_all(struct rdmatensor *rt, const struct rt_call *call,
			     struct rdmatensor_cqe *cqes)
{
	unsigned int found = 0;
	uint32_t i, at;

	pthread_mutex_lock(&rt->reaping);
	drop_abandoned(rt);
	for (i = 0; i < rt_ring_ready(&rt->ring); i++) {
		const struct rdmatensor_cqe *cqe = rt_ring_at(&rt->ring, i);
		uint64_t nr = cqe->user_data - call->tag;

		if (nr >= call->nr || !rt_ring_is_end(cqe))
			continue;
		at = i--;
		found += (unsigned int)rt_ring_take(&rt->ring, call->tag + nr, &at, &cqes[nr]);
		rt->moves++;
	}
	pthread_mutex_unlock(&rt->reaping);
	return found;
}

/*
 * Waits for all @left that the kernel has: as many more entries there will be at least, so nobody
 * wakes for each. Return: 0; or the device is gone
 */
static int await_all(struct rdmatensor *rt, const struct rt_call *call,
		     struct rdmatensor_cqe *cqes, unsigned int left, bool *interrupted)
{
	bool interruptible = is_interruptible(rt);
	unsigned int none;
	uint32_t head;
	int err = 0;

	for (;;) {
		head = rt_ring_head(&rt->ring);
		left -= take_all(rt, call, cqes);
		if (!left || (err && err != -EINTR))
			return left ? err : 0;
		if (err && interruptible && !*interrupted) {
			*interrupted = true;
			cancel_all(rt, call);
		}
		/* What has come since head was read is among the @left */
		err = rt_submit_until(rt, NULL, 0, head + left, 0, &none);
	}
}

/*
 * Submits what the kernel takes, and waits for the ends. Return: how many were done. One that is
 * refused is among them, unless the ring has no room for it while others are in flight
 */
static unsigned int run_some(struct rdmatensor *rt, struct rdmatensor_op *ops,
			     struct rdmatensor_cqe *cqes, unsigned int nr, bool *interrupted)
{
	uint32_t head = rt_ring_head(&rt->ring);
	unsigned int i, taken = 0, none;
	struct rt_call call;
	int err, gone = 0;

	begin_call(rt, &call, nr);
	for (i = 0; i < nr; i++)
		ops[i].user_data = call.tag + i;
	err = rdmatensor_submit(rt, ops, nr, 0, 0, &taken);
	if (taken)
		gone = await_all(rt, &call, cqes, taken, interrupted);
	end_call(rt, &call, false);
	for (i = 0; gone && i < taken; i++)
		if (!cqes[i].type)
			cqes[i].result = gone;
	if (taken == nr || (taken && err == -EAGAIN))
		return taken;
	/* By entries of others, which somebody reaps, or ends of others, which are to come */
	if (err == -EAGAIN && !*interrupted && (!ops[taken].deadline_ns ||
						rdmatensor_now_ns() < ops[taken].deadline_ns)) {
		rt_submit_until(rt, NULL, 0, head + 1, rdmatensor_deadline_ms(AGAIN_MS), &none);
		return 0;
	}
	/* The deadline was its own, and there was no room for it until then */
	cqes[taken].result = err == -EAGAIN ? -ETIMEDOUT : err;
	return taken + 1;
}

void rt_run_many(struct rdmatensor *rt, struct rdmatensor_op *ops, struct rdmatensor_cqe *cqes,
		 unsigned int nr)
{
	unsigned int i, done = 0, part;
	bool interrupted = false;

	memset(cqes, 0, nr * sizeof(*cqes));
	while (done < nr && !interrupted) {
		part = nr - done < RDMATENSOR_SUBMIT_MAX ? nr - done : RDMATENSOR_SUBMIT_MAX;
		done += run_some(rt, &ops[done], &cqes[done], part, &interrupted);
	}
	/* What was cancelled, and what was not submitted for that */
	for (i = 0; interrupted && i < nr; i++)
		if (i >= done || cqes[i].result == -ECANCELED)
			cqes[i].result = -EINTR;
}

int rdmatensor_fetch(struct rdmatensor *rt, uint32_t channel, const char *name,
		     int64_t step_id, const struct rdmatensor_pool *pool,
		     uint64_t offset, uint64_t bytes, uint64_t deadline_ns,
		     struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;

	if (offset == RDMATENSOR_ALLOC)
		rdmatensor_prep_fetch_alloc(&op, channel, name, step_id,
					    pool->id, bytes, deadline_ns, 0);
	else
		rdmatensor_prep_fetch(&op, channel, name, step_id, pool->id,
				      offset, bytes, deadline_ns, 0);
	return rdmatensor_run(rt, &op, cqe);
}

int rdmatensor_publish(struct rdmatensor *rt, const char *name, int64_t step_id,
		       const struct rdmatensor_pool *pool, uint64_t offset,
		       uint64_t bytes, uint32_t data_type, uint32_t ndims,
		       const uint64_t *dims, uint32_t uses, uint64_t deadline_ns)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	struct rt_call call;
	unsigned int taken;
	int err, back;

	if (!uses)
		return -EINVAL;
	if (!rt->ring.hdr)
		return -ENOTCONN;
	rdmatensor_prep_publish(&op, name, step_id, pool->id, offset, bytes,
				data_type, ndims, dims, uses, 0);
	begin_call(rt, &call, 1);
	err = submit_and_await(rt, &op, &call, deadline_ns, is_interruptible(rt), &cqe, &taken);
	if (!err) {
		err = cqe.result;
	} else if (taken && (err == -ETIME || err == -EINTR)) {
		back = take_back(rt, &op, &call, &cqe);
		err = back < 0 ? back : back ? cqe.result : err == -EINTR ? -EINTR : -ETIMEDOUT;
	}
	end_call(rt, &call, false);
	return err;
}

int rdmatensor_withdraw(struct rdmatensor *rt, const char *name,
			int64_t step_id)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, name, step_id, 0);
	return rdmatensor_run(rt, &op, &cqe);
}
