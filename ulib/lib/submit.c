// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations go in by SUBMIT, completions come out of the mapped ring.
 */
#include <errno.h>

#include "internal.h"

/* Of a wait, where others may take what is waited for */
#define PIECE_MS 10

static int submit_part(struct rdmatensor *rt, const void *ops, size_t op_size,
		       unsigned int nr, unsigned int wait_nr,
		       uint64_t deadline_ns, unsigned int *done)
{
	struct rdmatensor_submit arg = {
		.size = sizeof(arg),
		.op_size = (uint32_t)op_size,
		.ops_uptr = rdmatensor_op_ptr(ops),
		.nr_ops = nr,
		.wait_nr = wait_nr,
		.deadline_ns = deadline_ns,
	};
	int err;

	err = rt_ioctl(rt, RDMATENSOR_SUBMIT, &arg);
	*done = arg.out_done > nr ? nr : arg.out_done;
	return err ? err : arg.out_error;
}

int rdmatensor_submit_sized(struct rdmatensor *rt, const struct rdmatensor_op *ops,
			    size_t op_size, unsigned int nr, unsigned int wait_nr,
			    uint64_t deadline_ns, unsigned int *done)
{
	/* Steps through it are the program's, whose entries may be shorter or longer */
	const char *at = (const char *)ops;
	unsigned int taken = 0, part, part_done;
	int err;

	for (;;) {
		part = nr - taken;
		if (part > RDMATENSOR_SUBMIT_MAX)
			part = RDMATENSOR_SUBMIT_MAX;
		err = submit_part(rt, at, op_size, part,
				  taken + part == nr ? wait_nr : 0, deadline_ns,
				  &part_done);
		taken += part_done;
		if (err || part_done < part || taken == nr)
			break;
		at += part * op_size;
	}
	if (done)
		*done = taken;
	return err;
}

/*
 * For a module that does not know the head to wait for, and has taken nothing. Entries that others
 * take meanwhile would prolong a wait for a number of them: it is cut into pieces, and who waits
 * looks again after each
 */
static int submit_by_count(struct rdmatensor *rt, const struct rdmatensor_op *ops, unsigned int nr,
			   uint32_t head, uint64_t deadline_ns, unsigned int *taken)
{
	uint64_t piece_ns = rdmatensor_deadline_ms(PIECE_MS);
	uint32_t ready = rt_ring_ready(&rt->ring);
	bool last = deadline_ns && deadline_ns <= piece_ns;
	int err;

	*taken = 0;
	if (!nr && (int32_t)(rt_ring_head(&rt->ring) - head) >= 0)
		return 0;
	err = rdmatensor_submit(rt, ops, nr, ready > rt->ring.mask ? ready : ready + 1,
				last ? deadline_ns : piece_ns, taken);
	/* An operation may be longer than the module knows as well */
	if (err != -E2BIG)
		__atomic_store_n(&rt->no_head, true, __ATOMIC_RELAXED);
	return err == -ETIME && !last && *taken == nr ? 0 : err;
}

static _Thread_local const bool *own_stop;

void rt_stop_by(const bool *stop)
{
	own_stop = stop;
}

bool rt_may_stop(void)
{
	return own_stop;
}

bool rt_stopped(void)
{
	return own_stop && __atomic_load_n(own_stop, __ATOMIC_RELAXED);
}

uint64_t rt_stop_look(uint64_t deadline_ns, bool *last)
{
	uint64_t look_ns = rdmatensor_deadline_ms(RT_STOP_MS);

	*last = !own_stop || (deadline_ns && deadline_ns <= look_ns);
	return *last ? deadline_ns : look_ns;
}

static int submit_until(struct rdmatensor *rt, const struct rdmatensor_op *ops, unsigned int nr,
			uint32_t head, uint64_t deadline_ns, unsigned int *taken)
{
	struct rdmatensor_submit arg = {
		.size = sizeof(arg),
		.op_size = sizeof(*ops),
		.ops_uptr = rdmatensor_op_ptr(ops),
		.nr_ops = nr,
		.deadline_ns = deadline_ns,
		.flags = RDMATENSOR_SUBMIT_HEAD,
		.wait_head = head,
	};
	int err = -E2BIG;

	if (!__atomic_load_n(&rt->no_head, __ATOMIC_RELAXED))
		err = rt_ioctl(rt, RDMATENSOR_SUBMIT, &arg);
	if (err != -E2BIG) {
		*taken = arg.out_done > nr ? nr : arg.out_done;
		return err ? err : arg.out_error;
	}
	return submit_by_count(rt, ops, nr, head, deadline_ns, taken);
}

int rt_submit_until(struct rdmatensor *rt, const struct rdmatensor_op *ops, unsigned int nr,
		    uint32_t head, uint64_t deadline_ns, unsigned int *taken)
{
	unsigned int part;
	uint64_t until_ns;
	bool last;
	int err;

	*taken = 0;
	do {
		until_ns = rt_stop_look(deadline_ns, &last);
		err = submit_until(rt, ops ? ops + *taken : NULL, nr - *taken, head, until_ns, &part);
		*taken += part;
		/* Also where entries of others come, and where the caller itself waits by pieces */
		if (rt_stopped() && (!err || err == -ETIME))
			return -EINTR;
	} while (err == -ETIME && !last);
	return err;
}

int rdmatensor_wait(struct rdmatensor *rt, unsigned int nr,
		    uint64_t deadline_ns)
{
	if (rt_ring_ready(&rt->ring) >= nr)
		return 0;
	return rdmatensor_submit(rt, NULL, 0, nr, deadline_ns, NULL);
}

unsigned int rdmatensor_reap(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
			     unsigned int nr)
{
	return rt_reap_beside_calls(rt, cqes, nr);
}

unsigned int rdmatensor_ready(struct rdmatensor *rt)
{
	return rt_ready(rt);
}

const struct rdmatensor_cqe *rdmatensor_peek(struct rdmatensor *rt,
					     unsigned int i)
{
	return i < rt_ready(rt) ? rt_ring_at(&rt->ring, i) : NULL;
}

void rdmatensor_advance(struct rdmatensor *rt, unsigned int nr)
{
	rt_ring_advance(&rt->ring, nr);
}
