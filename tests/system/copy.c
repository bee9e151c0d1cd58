// SPDX-License-Identifier: GPL-2.0
/* PUBLISH with RDMATENSOR_OP_COPY: the publisher's memory is free at once, and the copy is kept */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness.h"

static struct pair p;

/* Publishes @bytes at @at, filled by @seed, and spoils them. Return: its error */
static int copy_at(struct side *side, uint64_t at, const char *name, int64_t step,
		   uint64_t bytes, unsigned int seed, uint32_t uses, uint64_t user_data)
{
	struct rdmatensor_op op;
	uint64_t dim = bytes;
	int ret;

	fill(side_at(side, at), bytes, seed);
	rdmatensor_prep_publish(&op, name, step, side->pool.id, at, bytes, RDMATENSOR_DT_UINT8, 1,
				&dim, uses, user_data);
	op.flags |= RDMATENSOR_OP_COPY;
	ret = side_do(side, &op);
	memset(side_at(side, at), 0xee, bytes);
	return ret;
}

static void copy(struct side *side, const char *name, int64_t step, uint64_t bytes,
		 unsigned int seed, uint64_t user_data)
{
	uint64_t at = side_alloc(side, bytes);

	EQ(copy_at(side, at, name, step, bytes, seed, 1, user_data), 0);
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
	EQ(side_next(side, RDMATENSOR_CQE_PUBLISH, user_data, NULL), 0);
}

/* Into one region, by an own channel */
static void expect(struct side *side, const char *name, int64_t step, uint64_t bytes,
		   unsigned int seed)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	EQ(fetch(side, name, step, bytes, &at, &cqe), 0);
	EQ(cqe.tensor_bytes, bytes);
	CHECK(filled(side_at(side, at), bytes, seed));
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
}

/* The peer has a tensor before its publisher's device knows that: then the buffer is idle */
static void released(struct side *side, uint64_t tensors)
{
	uint64_t began = rdmatensor_now_ns();

	while (side_stat(side, RDMATENSOR_STAT_RELEASED) != tensors)
		CHECK(ms_since(began) < 60000);
}

/* A step of "n", from p.a to p.b, of as many as there were before and one */
static void copied_and_taken(int step, uint64_t bytes)
{
	copy(&p.a, "n", step, bytes, step, step);
	expect(&p.b, "n", step, bytes, step);
	released(&p.a, step + 1);
}

TEST(memory_is_free_at_once)
{
	struct rdmatensor_pool other;

	pair_open(&p, 8 << 20, NULL);
	copy(&p.a, "n", 0, 3 << 20, 1, 1);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISH_COPIES), 1);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_COPIED_BYTES), 3 << 20);
	/* Nor does anything else of the publisher's stand for it */
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(rdmatensor_pool_create(p.a.rt, 1 << 20, &other), 0);
	expect(&p.b, "n", 0, 3 << 20, 1);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 20);
	EQ(rdmatensor_pool_destroy(p.a.rt, &other), 0);
}

static int as_another_user(void)
{
	uint64_t at = side_alloc(&p.a, 70000);

	return copy_at(&p.a, at, "n", 1, 70000, 1, 1, 1) ||
	       rdmatensor_pool_free(p.a.rt, &p.a.pool, at) ? __LINE__ : 0;
}

/* Several users may have a context, or domain, and each pays for its own copies */
TEST(a_buffer_is_for_who_pays)
{
	pair_open(&p, 1 << 20, NULL);
	copy(&p.a, "n", 0, 70000, 0, 0);
	expect(&p.b, "n", 0, 70000, 0);
	released(&p.a, 1);
	AS_USER_UNCOUNTED(1 << 20, as_another_user);
	expect(&p.b, "n", 1, 70000, 1);
	released(&p.a, 2);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 2);
	/* And has its own again */
	copy(&p.a, "n", 2, 70000, 2, 2);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 2);
}

TEST(kept_from_step_to_step)
{
	int step;

	pair_open(&p, 1 << 20, NULL);
	for (step = 0; step < 20; step++) {
		copied_and_taken(step, 70000);
	}
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISH_COPIES), 20);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
	/* The size changes, and stays */
	for (; step < 24; step++) {
		copied_and_taken(step, 300000);
	}
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 2);
	/* Another name is another buffer */
	copy(&p.a, "m", step, 300000, step, step);
	expect(&p.b, "m", step, 300000, step);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 3);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_COPIED_BYTES), 0);
}

TEST(several_steps_of_a_name)
{
	int i, round;

	pair_open(&p, 1 << 20, NULL);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 3; i++)
			copy(&p.a, "n", round * 10 + i, 5000, round + i, i);
		for (i = 2; i >= 0; i--)
			expect(&p.b, "n", round * 10 + i, 5000, round + i);
		released(&p.a, 3 * (round + 1));
	}
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 3);
}

TEST(copied_for_many)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;
	int i;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.a, 5000);
	EQ(copy_at(&p.a, at, "n", 0, 5000, 1, 3, 1), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	/* It is offered, as any other */
	EQ(copy_at(&p.a, at, "n", 0, 5000, 1, 1, 2), -EEXIST);
	for (i = 0; i < 3; i++)
		expect(&p.b, "n", 0, 5000, 1);
	/* For good: no entry, not even this one */
	EQ(copy_at(&p.a, at, "n", 1, 5000, 2, 0, 3), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 3, 20);
	for (i = 0; i < 3; i++)
		expect(&p.b, "n", 1, 5000, 2);
	rdmatensor_prep_withdraw(&op, "n", 1, 4);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 4, NULL), 0);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "n", 1, &p.b.pool, side_alloc(&p.b, 100), 100,
			    rdmatensor_deadline_ms(50), &cqe), -ETIMEDOUT);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 2, 20);
}

TEST(copied_by_own_context)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	side_open(&p.a, "a", 8 << 20, 0, NULL);
	copy(&p.a, "n", 0, 3 << 20, 1, 1);
	at = side_alloc(&p.a, 3 << 20);
	EQ(rdmatensor_fetch(p.a.rt, RDMATENSOR_CHANNEL_SELF, "n", 0, &p.a.pool, at, 3 << 20,
			    rdmatensor_deadline_ms(20000), &cqe), 0);
	CHECK(filled(side_at(&p.a, at), 3 << 20, 1));
	released(&p.a, 1);
	copy(&p.a, "n", 1, 3 << 20, 2, 2);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
}

TEST(nothing_to_copy)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t dim = 0;

	pair_open(&p, 1 << 20, NULL);
	rdmatensor_prep_publish(&op, "empty", 0, 0, 0, 0, RDMATENSOR_DT_FLOAT, 1, &dim, 1, 1);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	EQ(fetch(&p.b, "empty", 0, 0, NULL, &cqe), 0);
	EQ(cqe.tensor_bytes, 0);
	EQ(cqe.data_type, RDMATENSOR_DT_FLOAT);
	rdmatensor_prep_publish_dead(&op, "dead", 0, RDMATENSOR_DT_FLOAT, 0, NULL, 1, 2);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 2, NULL), 0);
	EQ(fetch(&p.b, "dead", 0, 0, NULL, &cqe), 0);
	CHECK(cqe.flags & RDMATENSOR_CQE_DEAD);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 20);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 2, 20);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 0);

	rdmatensor_prep_publish_failed(&op, "f", 0, -EIO, NULL, 1, 3);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.a, &op), -EINVAL);
	rdmatensor_prep_withdraw(&op, "n", 0, 4);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.a, &op), -EINVAL);
	rdmatensor_prep_fetch(&op, p.b.channel, "n", 0, p.b.pool.id, side_alloc(&p.b, 64), 64, 0,
			      5);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.b, &op), -EINVAL);
}

static void two_buffers(struct rdmatensor_start *start)
{
	start->max_pools = 2;
}

TEST(as_many_buffers_as_pools)
{
	uint64_t at;

	pair_open(&p, 1 << 20, two_buffers);
	copy(&p.a, "a", 0, 5000, 1, 1);
	copy(&p.a, "b", 0, 5000, 2, 2);
	at = side_alloc(&p.a, 5000);
	EQ(copy_at(&p.a, at, "c", 0, 5000, 3, 1, 3), -ENOBUFS);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 3, 20);
	/* The one that is refused changes nothing */
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISHED), 2);
	expect(&p.b, "a", 0, 5000, 1);
	released(&p.a, 1);
	EQ(copy_at(&p.a, at, "c", 0, 5000, 3, 1, 3), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 3, NULL), 0);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 3);
	expect(&p.b, "b", 0, 5000, 2);
	released(&p.a, 2);
	expect(&p.b, "c", 0, 5000, 3);
	released(&p.a, 3);
	/* Of b and c, which are idle, it is b that goes: the longest idle one */
	copy(&p.a, "d", 0, 5000, 4, 4);
	expect(&p.b, "d", 0, 5000, 4);
	released(&p.a, 4);
	copy(&p.a, "c", 1, 5000, 5, 5);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 4);
	expect(&p.b, "c", 1, 5000, 5);
}

TEST(withdrawn_copy_is_given_back)
{
	struct rdmatensor_op op;

	pair_open(&p, 1 << 20, two_buffers);
	copy(&p.a, "n", 0, 5000, 1, 1);
	rdmatensor_prep_withdraw(&op, "n", 0, 2);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 2, NULL), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 20);
	copy(&p.a, "n", 1, 5000, 2, 3);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 2);
	expect(&p.b, "n", 1, 5000, 2);
}

TEST(aborted_copy)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	pair_open(&p, 1 << 20, NULL);
	copy(&p.a, "n", 5, 5000, 1, 1);
	EQ(rdmatensor_step_abort(p.a.rt, 5, -EIO, "not this one"), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 20);
	at = side_alloc(&p.b, 5000);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "n", 5, &p.b.pool, at, 5000,
			    rdmatensor_deadline_ms(9000), &cqe), -EIO);
	EQ(copy_at(&p.a, side_alloc(&p.a, 5000), "n", 5, 5000, 1, 1, 2), -EIO);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 2, 20);
	/* Who is late has nothing copied, nor a buffer made */
	EQ(copy_at(&p.a, side_alloc(&p.a, 5000), "late", 5, 5000, 1, 1, 4), -EIO);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISH_COPIES), 1);
	/* The name goes on, and has its buffer */
	copy(&p.a, "n", 6, 5000, 2, 3);
	expect(&p.b, "n", 6, 5000, 2);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
}

/* What a peer that goes has not got is offered to the next one, from the same buffer */
TEST(peer_goes_in_the_middle)
{
	struct rdmatensor_op op;
	struct side other;

	pair_open(&p, 40 << 20, NULL);
	copy(&p.a, "n", 0, 32 << 20, 1, 1);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "n", 0, p.b.pool.id, 0, 0, 2);
	EQ(side_do(&p.b, &op), 0);
	side_close(&p.b);
	side_open(&other, "other", 40 << 20, 0, NULL);
	side_connect(&other, &p.a);
	if (!side_stat(&p.a, RDMATENSOR_STAT_SERVED))
		expect(&other, "n", 0, 32 << 20, 1);
	released(&p.a, 1);
	copy(&p.a, "n", 1, 32 << 20, 2, 3);
	expect(&other, "n", 1, 32 << 20, 2);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
}

/* While a large one is on its way */
TEST(copies_beside_bulk)
{
	struct rdmatensor_op op;
	uint64_t at;
	int i;

	pair_open(&p, 40 << 20, NULL);
	/* It may have ended before all of the others: it is not counted with what is released */
	publish(&p.a, "bulk", 0, 32 << 20, 9, 0, 100);
	at = side_alloc(&p.b, 32 << 20);
	rdmatensor_prep_fetch(&op, p.b.channel, "bulk", 0, p.b.pool.id, at, 32 << 20, 0, 101);
	EQ(side_do(&p.b, &op), 0);
	for (i = 0; i < 30; i++) {
		copy(&p.a, "n", i, 4096, i, i);
		expect(&p.b, "n", i, 4096, i);
		released(&p.a, i + 1);
	}
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 101, NULL), 0);
	CHECK(filled(side_at(&p.b, at), 32 << 20, 9));
	EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
}

enum { THREADS = 6, STEPS = 40, BYTES = 20000 };

/**
 * struct actor - one thread, on the handle that all use
 * @name: of its tensors, or of all threads' tensors
 * @base: of its steps
 * @at: its memory
 * @errors: submits that were refused
 */
static struct actor {
	pthread_t thread;
	const char *name;
	int64_t base;
	uint64_t at;
	int errors;
} actors[THREADS];

static void *act(void *arg)
{
	struct actor *actor = arg;
	struct rdmatensor_op op;
	uint64_t dim = BYTES;
	int step;

	for (step = 0; step < STEPS; step++) {
		fill(side_at(&p.a, actor->at), BYTES, actor->base + step);
		rdmatensor_prep_publish(&op, actor->name, actor->base + step, p.a.pool.id,
					actor->at, BYTES, RDMATENSOR_DT_UINT8, 1, &dim, 1, 1);
		op.flags |= RDMATENSOR_OP_COPY;
		actor->errors += !!rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL);
	}
	return NULL;
}

/* Half of them have a name in common. The other side fetches meanwhile */
TEST(copies_by_many_threads)
{
	static const char *const names[] = { "common", "1", "common", "3", "common", "5" };
	int i, step;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < THREADS; i++) {
		actors[i] = (struct actor){ .name = names[i], .base = i * 1000,
					    .at = side_alloc(&p.a, BYTES) };
		EQ(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
	}
	for (step = 0; step < STEPS; step++)
		for (i = 0; i < THREADS; i++)
			expect(&p.b, names[i], i * 1000 + step, BYTES, i * 1000 + step);
	for (i = 0; i < THREADS; i++) {
		EQ(pthread_join(actors[i].thread, NULL), 0);
		EQ(actors[i].errors, 0);
	}
	for (i = 0; i < THREADS * STEPS; i++)
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISH_COPIES), THREADS * STEPS);
}

#define LIMIT (4 << 20)

static int try_copy(const char *name, uint64_t at, uint64_t bytes)
{
	struct rdmatensor_op op;
	uint64_t dim = bytes;

	rdmatensor_prep_publish(&op, name, 0, p.a.pool.id, at, bytes, RDMATENSOR_DT_UINT8, 1,
				&dim, 1, 1);
	op.flags |= RDMATENSOR_OP_COPY;
	return rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL);
}

/* Allocated before: what fails here is told by the line alone */
static uint64_t limited_at;

static int copies_within_limit(void)
{
	uint64_t at = limited_at;
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	if (try_copy("too long", at, LIMIT + 4096) != -ENOMEM)
		return __LINE__;
	if (try_copy("a", at, LIMIT / 2) || try_copy("b", at, LIMIT / 2))
		return __LINE__;
	if (try_copy("c", at, 4096) != -ENOMEM)
		return __LINE__;
	/* Withdrawn, or delivered and idle: it makes room, for another one and for a pool */
	rdmatensor_prep_withdraw(&op, "a", 0, 2);
	if (rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL) || try_copy("c", at, LIMIT / 2))
		return __LINE__;
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "c", 0, p.a.pool.id,
			      at + LIMIT + 4096, LIMIT / 2, 0, 3);
	if (rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL))
		return __LINE__;
	do {
		if (rdmatensor_wait(p.a.rt, 1, rdmatensor_deadline_ms(20000)) ||
		    rdmatensor_reap(p.a.rt, &cqe, 1) != 1)
			return __LINE__;
	} while (cqe.user_data != 3);
	if (cqe.result)
		return __LINE__;
	if (rdmatensor_pool_create(p.a.rt, LIMIT / 2, &pool))
		return __LINE__;
	if (try_copy("d", at, 4096) != -ENOMEM)
		return __LINE__;
	return rdmatensor_pool_destroy(p.a.rt, &pool) || try_copy("d", at, 4096) ? __LINE__ : 0;
}

TEST(copies_count_as_locked_memory)
{
	side_open(&p.a, "limited", 8 << 20, 0, NULL);
	limited_at = side_alloc(&p.a, 7 << 20);
	AS_USER(LIMIT, copies_within_limit);
}

static int registers_beyond_limit(void)
{
	static char cause[256];
	unsigned char *memory = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rdmatensor_pool pool;

	if (memory == MAP_FAILED)
		return __LINE__;
	return rdmatensor_pool_register(p.a.rt, memory, 2 << 20, 0, 0, &pool, cause,
					sizeof(cause)) == -ENOMEM ? 0 : __LINE__;
}

/* What there cannot be, whatever is freed for it, costs the domain none of its buffers */
TEST(what_cannot_be_made_frees_no_buffer)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	struct rdmatensor_pool pool;
	int step;

	pair_open(&p, 1 << 20, NULL);
	for (step = 0; step < 3; step++) {
		copied_and_taken(step, 70000);
		EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), 1);
		if (!step)
			EQ(rdmatensor_pool_create(p.a.rt, memory + (1 << 20), &pool), -ENOMEM);
		else
			AS_USER_UNCOUNTED(1 << 20, registers_beyond_limit);
	}
}
