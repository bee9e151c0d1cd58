// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls that submit operations and return with their ends. Each marks its
 * operations by user_data of its own. The kernel kept a place in the ring for each
 * end, so it comes however many other entries lie there.
 *
 * Any number of threads may be in such calls, and one beside them in
 * rdmatensor_reap(): the ring's process side is guarded by @reaping. Whoever looks
 * at the ring hands every end to the call that it is of, so that no end keeps its
 * place while the thread that wants it sleeps; what is left there is nobody's call's.
 * Each call waits by itself, for the ring's head to go on from where it was looked
 * at last: who took its end out of the ring does not matter to that.
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

/* Not the user_data of an operation that goes on, as its call is older than 2^32 others */
static uint32_t free_tag(const struct rdmatensor *rt, unsigned int nr)
{
	const struct rt_call *call = rt->calls;
	uint32_t tag = rt->tag, other;

	while (call) {
		/* Not around the end of 32 bits, as they are one after the other */
		if (tag > UINT32_MAX - nr) {
			tag = 0;
			call = rt->calls;
			continue;
		}
		other = (uint32_t)call->tag;
		if (tag < other + call->nr && other < tag + nr) {
			tag = other + call->nr;
			call = rt->calls;
			continue;
		}
		call = call->next;
	}
	return tag > UINT32_MAX - nr ? 0 : tag;
}

/* Of @nr operations, whose ends go to @cqes */
static void begin_call(struct rdmatensor *rt, struct rt_call *call, struct rdmatensor_cqe *cqes,
		       unsigned int nr)
{
	memset(call, 0, sizeof(*call));
	call->nr = nr;
	call->cqes = cqes;
	pthread_mutex_lock(&rt->reaping);
	/* Nobody has judged what came since there was a call */
	if (!rt->calls && !rt->abandoned)
		rt->judged = rt_ring_tail(&rt->ring);
	rt->tag = free_tag(rt, nr);
	call->tag = RDMATENSOR_USER_DATA_LIBRARY | rt->tag;
	rt->tag += nr;
	call->next = rt->calls;
	rt->calls = call;
	pthread_mutex_unlock(&rt->reaping);
}

/* @abandoned: its end, if it has not come, is nobody's */
static void end_call(struct rdmatensor *rt, struct rt_call *call, bool abandoned)
{
	struct rt_call **at;

	pthread_mutex_lock(&rt->reaping);
	for (at = &rt->calls; *at != call; at = &(*at)->next)
		;
	*at = call->next;
	rt->abandoned += abandoned && !call->ended;
	pthread_mutex_unlock(&rt->reaping);
}

/* It ends an operation of a blocking call; *call: of one that has not ended, else NULL */
static bool is_calls(const struct rdmatensor *rt, const struct rdmatensor_cqe *cqe,
		     struct rt_call **call)
{
	if (cqe->user_data < RDMATENSOR_USER_DATA_LIBRARY || !rt_ring_is_end(cqe))
		return false;
	for (*call = rt->calls; *call; *call = (*call)->next)
		if (cqe->user_data - (*call)->tag < (*call)->nr)
			return true;
	return rt->abandoned;
}

/*
 * Hands the ends of calls over, with @reaping held; what is left in the ring is for
 * rdmatensor_reap(). What was there at the last look has been judged
 */
static void hand_over(struct rdmatensor *rt)
{
	struct rdmatensor_cqe dropped;
	uint32_t tail, i, from;
	struct rt_call *call;

	if (!rt->calls && !rt->abandoned)
		return;
	tail = rt_ring_tail(&rt->ring);
	i = rt->judged - tail <= rt_ring_ready(&rt->ring) ? rt->judged - tail : 0;
	while (i < rt_ring_ready(&rt->ring)) {
		const struct rdmatensor_cqe *at = rt_ring_at(&rt->ring, i);
		uint64_t user_data = at->user_data;

		if (!is_calls(rt, at, &call)) {
			i++;
			continue;
		}
		/* The places of those before it move up by one */
		from = i;
		rt_ring_take(&rt->ring, user_data, &from,
			     call ? &call->cqes[user_data - call->tag] : &dropped);
		if (call)
			call->ended++;
		else
			rt->abandoned--;
	}
	rt->judged = rt_ring_tail(&rt->ring) + i;
}

static bool is_abandoned(const struct rdmatensor *rt, unsigned int i)
{
	struct rt_call *call;

	return is_calls(rt, rt_ring_at(&rt->ring, i), &call) && !call;
}

unsigned int rt_ready(struct rdmatensor *rt)
{
	unsigned int ready, i;

	if (!__atomic_load_n(&rt->abandoned, __ATOMIC_RELAXED))
		return rt_ring_ready(&rt->ring);
	pthread_mutex_lock(&rt->reaping);
	ready = rt_ring_ready(&rt->ring);
	for (; ready && is_abandoned(rt, 0); ready--) {
		rt_ring_advance(&rt->ring, 1);
		rt->abandoned--;
	}
	for (i = 0; i < ready && !is_abandoned(rt, i); i++)
		;
	pthread_mutex_unlock(&rt->reaping);
	return i;
}

unsigned int rt_reap_beside_calls(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
				  unsigned int nr)
{
	unsigned int taken, most;

	pthread_mutex_lock(&rt->reaping);
	hand_over(rt);
	/* What has come since then may be a call's */
	most = rt->calls || rt->abandoned ? rt->judged - rt_ring_tail(&rt->ring) : nr;
	taken = rt_ring_reap(&rt->ring, cqes, nr < most ? nr : most);
	pthread_mutex_unlock(&rt->reaping);
	return taken;
}

/* How many of its operations have ended */
static unsigned int ended(struct rdmatensor *rt, const struct rt_call *call)
{
	unsigned int nr;

	pthread_mutex_lock(&rt->reaping);
	hand_over(rt);
	nr = call->ended;
	pthread_mutex_unlock(&rt->reaping);
	return nr;
}

/*
 * 0: its end has come; -ETIME; -EINTR, if @interruptible; else the device is gone, and it
 * with it. @err: how a wait before it has ended
 */
static int await(struct rdmatensor *rt, const struct rt_call *call, int err, bool interruptible,
		 uint64_t deadline_ns)
{
	unsigned int none;

	for (;;) {
		/* Before the look: an entry that comes after it ends the wait */
		uint32_t head = rt_ring_head(&rt->ring);

		if (ended(rt, call))
			return 0;
		if (err && (err != -EINTR || interruptible))
			return err;
		/* Which a signal that may not end the wait has hidden */
		if (err && deadline_ns && rdmatensor_now_ns() >= deadline_ns)
			return -ETIME;
		err = rt_submit_until(rt, NULL, 0, head + 1, deadline_ns, &none);
	}
}

/* Submits @op under the call's tag and waits; *taken: whether the kernel has it */
static int submit_and_await(struct rdmatensor *rt, const struct rdmatensor_op *op,
			    const struct rt_call *call, uint64_t deadline_ns, bool interruptible,
			    unsigned int *taken)
{
	struct rdmatensor_op mine = *op;
	int err;

	*taken = 0;
	mine.user_data = call->tag;
	err = rt_submit_until(rt, &mine, 1, rt_ring_head(&rt->ring) + 1, deadline_ns, taken);
	if (!*taken)
		return err ? err : -EIO;
	return await(rt, call, err, interruptible, deadline_ns);
}

static int run(struct rdmatensor *rt, const struct rdmatensor_op *op, size_t op_size,
	       bool interruptible, struct rdmatensor_cqe *cqe);

/* Without an entry of its own, for which a ring that only the caller reads may have no room */
static int withdraw_quietly(struct rdmatensor *rt, const struct rdmatensor_op *publish,
			    const struct rt_call *call)
{
	struct rdmatensor_op op = {
		.opcode = RDMATENSOR_OP_WITHDRAW,
		.flags = RDMATENSOR_OP_QUIET,
		.name_uptr = publish->name_uptr,
		.name_len = publish->name_len,
		.step_id = publish->step_id,
		.target = call->tag,
	};

	struct rdmatensor_cqe cqe;
	int err = rdmatensor_submit(rt, &op, 1, 0, 0, NULL);

	if (err != -EINVAL)
		return err;
	/* A module that does not know that one alone can be meant, or the flag */
	op.target = 0;
	err = rdmatensor_submit(rt, &op, 1, 0, 0, NULL);
	if (err != -EINVAL)
		return err;
	op.flags = 0;
	return run(rt, &op, sizeof(op), false, &cqe);
}

/*
 * Takes a publication back, as often as it needs, and waits until the buffer is free: until then
 * it cannot be given back. Return: 0: it was withdrawn; 1: it ended by itself, and what was withdrawn,
 * if anything, was another one of its name; else the device is gone
 */
static int take_back(struct rdmatensor *rt, const struct rdmatensor_op *op,
		     const struct rt_call *call)
{
	int withdrawn, err;

	do {
		withdrawn = withdraw_quietly(rt, op, call);
		/*
		 * What is used up just now is not found, and its entry comes. If it failed
		 * otherwise, as without memory, the tensor is still there
		 */
		err = await(rt, call, 0, false, withdrawn && withdrawn != -ENOENT ?
			    rdmatensor_deadline_ms(AGAIN_MS) : 0);
	} while (err == -ETIME);
	return err ? err : withdrawn || call->cqes->result != -ECANCELED;
}

/* By a signal, of what the kernel has. Return: as rdmatensor_run() */
static int end_interrupted(struct rdmatensor *rt, const struct rdmatensor_op *op,
			   const struct rt_call *call)
{
	struct rdmatensor_op cancel;
	int err;

	if (op->opcode == RDMATENSOR_OP_PUBLISH) {
		err = take_back(rt, op, call);
		return err < 0 ? err : err ? call->cqes->result : -EINTR;
	}
	rdmatensor_prep_cancel(&cancel, call->tag);
	/* What has ended is not found, and what cannot be cancelled just now goes on to its end */
	rdmatensor_submit(rt, &cancel, 1, 0, 0, NULL);
	err = await(rt, call, 0, false, 0);
	if (err)
		return err;
	return call->cqes->result == -ECANCELED ? -EINTR : call->cqes->result;
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
		 ((op->opcode == RDMATENSOR_OP_WITHDRAW ||
		   op->opcode == RDMATENSOR_OP_REVEAL) && op->flags & RDMATENSOR_OP_QUIET) ||
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

	begin_call(rt, &call, cqe, 1);
	err = submit_and_await(rt, &mine, &call, 0, interruptible, &taken);
	if (err == -EINTR && taken && mine.opcode == RDMATENSOR_OP_WITHDRAW) {
		abandoned = true;
	} else if (err == -EINTR && taken) {
		err = end_interrupted(rt, &mine, &call);
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

int rt_withdraw_by(struct rdmatensor *rt, const struct rdmatensor_op *op, uint64_t deadline_ns)
{
	struct rdmatensor_cqe cqe;
	unsigned int none;
	uint32_t head;
	int err;

	do {
		head = rt_ring_head(&rt->ring);
		err = run(rt, op, sizeof(*op), false, &cqe);
		if (err != -EAGAIN)
			return err;
		/* Nothing is begun yet, so a signal may end it */
		if (rt_submit_until(rt, NULL, 0, head + 1, rdmatensor_deadline_ms(AGAIN_MS),
				    &none) == -EINTR && is_interruptible(rt))
			return -EINTR;
	} while (!deadline_ns || rdmatensor_now_ns() < deadline_ns);
	return err;
}

int rt_withdraw(struct rdmatensor *rt, const char *name, int64_t step_id, uint64_t deadline_ns)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, name, step_id, 0);
	return rt_withdraw_by(rt, &op, deadline_ns);
}

/**
 * struct many - a call of many operations
 * @rt: the handle
 * @call: the call
 * @ops: the operations,
 * @nr: their number
 * @next: the first of them that was neither taken by the kernel nor refused
 * @taken: so many of those before it were taken
 * @interrupted: a signal has ended it: no more are submitted
 */
struct many {
	struct rdmatensor *rt;
	struct rt_call call;
	struct rdmatensor_op *ops;
	unsigned int nr;
	unsigned int next;
	unsigned int taken;
	bool interrupted;
};

/* Those that have ended are not found, others may go on to their end */
static void cancel_all(const struct many *many)
{
	struct rdmatensor_op op;
	unsigned int i;

	for (i = 0; i < many->next; i++) {
		rdmatensor_prep_cancel(&op, many->ops[i].user_data);
		rdmatensor_submit(many->rt, &op, 1, 0, 0, NULL);
	}
}

static void refuse(struct many *many, int err, uint16_t flags)
{
	struct rdmatensor_cqe *cqe = &many->call.cqes[many->next++];

	cqe->result = err;
	cqe->flags = flags;
}

/* Submits what the ring has room for. Return: true: it had none for the next one */
static bool submit_some(struct many *many)
{
	unsigned int part, taken;
	int err;

	while (many->next < many->nr) {
		part = many->nr - many->next;
		if (part > RDMATENSOR_SUBMIT_MAX)
			part = RDMATENSOR_SUBMIT_MAX;
		taken = 0;
		err = rdmatensor_submit(many->rt, &many->ops[many->next], part, 0, 0, &taken);
		many->next += taken;
		many->taken += taken;
		if (taken == part)
			continue;
		if (err == -EAGAIN)
			return true;
		refuse(many, err ? err : -EIO, 0);
	}
	return false;
}

/*
 * Waits for one of @left in flight if there are more to submit, without them for what others take
 * out of the ring; else for all @left: as many more entries there will be at least, so nobody wakes
 * for each. @head: from before the look at the ring. Return: 0, or the device is gone
 */
static int await_some(struct many *many, uint32_t head, unsigned int left, bool full)
{
	struct rdmatensor *rt = many->rt;
	unsigned int none;
	int err;

	/* Some at a time, but not so many that a slow one holds up what there is room for */
	if (full)
		err = rt_submit_until(rt, NULL, 0, head + 1 + left / 4,
				      rdmatensor_deadline_ms(AGAIN_MS), &none);
	else
		err = rt_submit_until(rt, NULL, 0, head + left, 0, &none);
	if (err == -EINTR && is_interruptible(rt) && !many->interrupted) {
		many->interrupted = true;
		cancel_all(many);
	}
	return err == -EINTR || err == -ETIME ? 0 : err;
}

/* Return: 0: all has ended or was refused; the device is gone */
static int run_all(struct many *many)
{
	unsigned int left;
	uint32_t head;
	bool full;
	int err = 0;

	do {
		head = rt_ring_head(&many->rt->ring);
		/* What has ended makes room, of other calls too */
		ended(many->rt, &many->call);
		full = !many->interrupted && submit_some(many);
		left = many->taken - ended(many->rt, &many->call);
		if (full && many->ops[many->next].deadline_ns &&
		    rdmatensor_now_ns() >= many->ops[many->next].deadline_ns)
			refuse(many, -ETIMEDOUT, RT_CQE_NO_ROOM);
		else if (full || left)
			err = await_some(many, head, left, full);
	} while (!err && (full || left));
	return err;
}

static void signalled(struct rdmatensor_cqe *cqe)
{
	cqe->result = -EINTR;
	cqe->flags |= RT_CQE_SIGNAL;
}

void rt_run_many(struct rdmatensor *rt, struct rdmatensor_op *ops, struct rdmatensor_cqe *cqes,
		 unsigned int nr)
{
	struct many many = { .rt = rt, .ops = ops, .nr = nr };
	unsigned int i;
	int gone;

	memset(cqes, 0, nr * sizeof(*cqes));
	begin_call(rt, &many.call, cqes, nr);
	for (i = 0; i < nr; i++)
		ops[i].user_data = many.call.tag + i;
	gone = run_all(&many);
	end_call(rt, &many.call, false);
	for (i = 0; i < nr; i++)
		if (gone && !cqes[i].type && !cqes[i].result)
			cqes[i].result = gone;
		/* What was cancelled, and what was not submitted for that */
		else if (many.interrupted && (i >= many.next || cqes[i].result == -ECANCELED))
			signalled(&cqes[i]);
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
	memset(&cqe, 0, sizeof(cqe));
	begin_call(rt, &call, &cqe, 1);
	err = submit_and_await(rt, &op, &call, deadline_ns, is_interruptible(rt), &taken);
	if (!err) {
		err = cqe.result;
	} else if (taken && (err == -ETIME || err == -EINTR)) {
		back = take_back(rt, &op, &call);
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
