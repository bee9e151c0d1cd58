// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls that submit one operation and return with its end. Each marks its
 * operation by a user_data of its own, and takes exactly that entry out of the
 * ring. The kernel kept a place in the ring for it, so it comes however many
 * other entries lie there.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* How long the end of a tensor is waited for whose withdrawal has failed, before the next one */
#define AGAIN_MS 10

static uint64_t new_tag(struct rdmatensor *rt)
{
	return RDMATENSOR_USER_DATA_LIBRARY |
	       __atomic_add_fetch(&rt->tag, 1, __ATOMIC_RELAXED);
}

static uint32_t one_more(const struct rt_ring *ring)
{
	uint32_t ready = rt_ring_ready(ring);

	return ready > ring->mask ? ready : ready + 1;
}

/* 0: the entry is in @cqe; -ETIME; else the device is gone, and it with it */
static int await(struct rdmatensor *rt, uint64_t tag, uint64_t deadline_ns,
		 struct rdmatensor_cqe *cqe)
{
	uint32_t from = 0;
	int err = 0;

	for (;;) {
		/* Counted before the look: an entry that comes after it ends the wait */
		uint32_t more = one_more(&rt->ring);

		if (rt_ring_take(&rt->ring, tag, &from, cqe))
			return 0;
		if (err && err != -EINTR)
			return err;
		err = rdmatensor_submit(rt, NULL, 0, more, deadline_ns, NULL);
	}
}

/* Submits @op under @tag and waits; *taken: whether the kernel has it */
static int submit_and_await(struct rdmatensor *rt,
			    const struct rdmatensor_op *op, uint64_t tag,
			    uint64_t deadline_ns, struct rdmatensor_cqe *cqe,
			    unsigned int *taken)
{
	struct rdmatensor_op mine = *op;
	int err;

	memset(cqe, 0, sizeof(*cqe));
	*taken = 0;
	if (!rt->ring.hdr)
		return -ENOTCONN;
	mine.user_data = tag;
	err = rdmatensor_submit(rt, &mine, 1, one_more(&rt->ring), deadline_ns,
				taken);
	if (!*taken)
		return err ? err : -EIO;
	return await(rt, tag, deadline_ns, cqe);
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

int rdmatensor_run_sized(struct rdmatensor *rt, const struct rdmatensor_op *op, size_t op_size,
			 struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op mine;
	unsigned int taken;
	int err;

	err = rt_take_struct(&mine, sizeof(mine), op, op_size);
	if (!err && !makes_entry(&mine))
		err = -EINVAL;
	if (!err)
		err = submit_and_await(rt, &mine, new_tag(rt), 0, cqe, &taken);
	if (err) {
		memset(cqe, 0, sizeof(*cqe));
		return err;
	}
	cqe->user_data = mine.user_data;
	return cqe->result;
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

/* Without an entry of its own, for which a ring that only the caller reads may have no room */
static int withdraw_quietly(struct rdmatensor *rt, const char *name, int64_t step_id)
{
	struct rdmatensor_op op;
	int err;

	rdmatensor_prep_withdraw(&op, name, step_id, 0);
	op.flags |= RDMATENSOR_OP_QUIET;
	err = rdmatensor_submit(rt, &op, 1, 0, 0, NULL);
	/* A module that does not know the flag */
	return err == -EINVAL ? rdmatensor_withdraw(rt, name, step_id) : err;
}

int rdmatensor_publish(struct rdmatensor *rt, const char *name, int64_t step_id,
		       const struct rdmatensor_pool *pool, uint64_t offset,
		       uint64_t bytes, uint32_t data_type, uint32_t ndims,
		       const uint64_t *dims, uint32_t uses, uint64_t deadline_ns)
{
	uint64_t tag = new_tag(rt);
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int taken;
	int err, withdrawn;

	if (!uses)
		return -EINVAL;
	rdmatensor_prep_publish(&op, name, step_id, pool->id, offset, bytes,
				data_type, ndims, dims, uses, 0);
	err = submit_and_await(rt, &op, tag, deadline_ns, &cqe, &taken);
	if (!err)
		return cqe.result;
	/* What is used up just now is not found, and its entry comes */
	while (taken && err == -ETIME) {
		withdrawn = withdraw_quietly(rt, name, step_id);
		/* If it failed otherwise, as without memory, the tensor is still there */
		err = await(rt, tag, withdrawn && withdrawn != -ENOENT ?
			    rdmatensor_deadline_ms(AGAIN_MS) : 0, &cqe);
		if (!err)
			return withdrawn ? cqe.result : -ETIMEDOUT;
	}
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
