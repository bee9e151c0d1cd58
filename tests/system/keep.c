// SPDX-License-Identifier: GPL-2.0
/* FETCH with RDMATENSOR_OP_KEEP: the peer is told of a destination once */
#include <pthread.h>
#include <sched.h>
#include "harness.h"

static struct pair p;

static void prepare(struct rdmatensor_op *op, const char *name, int64_t step, uint64_t at,
		    uint64_t room, uint64_t user_data)
{
	rdmatensor_prep_fetch(op, p.b.channel, name, step, p.b.pool.id, at, room,
			      rdmatensor_deadline_ms(20000), user_data);
	op->flags |= RDMATENSOR_OP_KEEP;
}

/* To @at; @seed: of its bytes */
static void keep(const char *name, int64_t step, uint64_t at, uint64_t bytes, unsigned int seed)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	prepare(&op, name, step, at, bytes, 1);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
	EQ(cqe.offset, at);
	EQ(cqe.tensor_bytes, bytes);
	CHECK(filled(side_at(&p.b, at), bytes, seed));
	memset(side_at(&p.b, at), 0xee, bytes);
}

static uint64_t shorts(void)
{
	return side_stat(&p.b, RDMATENSOR_STAT_TX_SHORT_REQUESTS);
}

/* In strict mode nothing is kept, and all comes as well */
static uint64_t of_pools(uint64_t nr)
{
	return test_strict() ? 0 : nr;
}

TEST_POOL(told_once)
{
	uint64_t at, requests;
	int step;

	pair_open(&p, 8 << 20, NULL);
	at = side_alloc(&p.b, 100000);
	for (step = 0; step < 20; step++) {
		publish(&p.a, "n", step, 100000, step, 1, step);
		keep("n", step, at, 100000, step);
	}
	/* The first was answered with the meta-data, and its answer told the place */
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_REQUESTS), 20);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_RE_REQUESTS), 1);
	EQ(shorts(), 19);
	requests = side_stat(&p.b, RDMATENSOR_STAT_TX_MESSAGES);
	/* Without the flag it is told, and what was told is as before */
	publish(&p.a, "n", 20, 100000, 20, 1, 20);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "n", 20, &p.b.pool, at, 100000,
			    rdmatensor_deadline_ms(20000), &(struct rdmatensor_cqe){}), 0);
	EQ(shorts(), 19);
	publish(&p.a, "n", 21, 100000, 21, 1, 21);
	keep("n", 21, at, 100000, 21);
	EQ(shorts(), 20);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_MESSAGES), requests + 2);
}

TEST_POOL(told_when_it_changes)
{
	struct rdmatensor_pool other, own;
	uint64_t at, to;

	pair_open(&p, 8 << 20, NULL);
	at = side_alloc(&p.b, 9000);
	to = side_alloc(&p.b, 9000);
	publish(&p.a, "n", 0, 9000, 1, 1, 1);
	keep("n", 0, at, 9000, 1);
	/* Another place: and the first one is not written to again */
	publish(&p.a, "n", 1, 9000, 2, 1, 2);
	keep("n", 1, to, 9000, 2);
	EQ(shorts(), 0);
	publish(&p.a, "n", 2, 9000, 3, 1, 3);
	keep("n", 2, to, 9000, 3);
	EQ(shorts(), 1);
	CHECK(side_at(&p.b, at)[0] == 0xee && side_at(&p.b, at)[8999] == 0xee);
	/* Another length, of the tensor */
	publish(&p.a, "n", 3, 5000, 4, 1, 4);
	keep("n", 3, to, 5000, 4);
	publish(&p.a, "n", 4, 5000, 5, 1, 5);
	keep("n", 4, to, 5000, 5);
	EQ(shorts(), 2);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_RE_REQUESTS), 2);
	/* Another pool, whose region begins at the same offset */
	EQ(rdmatensor_pool_create(p.b.rt, 8 << 20, &other), 0);
	own = p.b.pool;
	p.b.pool = other;
	EQ(side_alloc(&p.b, 9000), at);
	publish(&p.a, "n", 5, 5000, 6, 1, 6);
	keep("n", 5, at, 5000, 6);
	EQ(shorts(), 2);
	publish(&p.a, "n", 6, 5000, 7, 1, 7);
	keep("n", 6, at, 5000, 7);
	EQ(shorts(), 3);
	/* The pool goes, and comes again: what was told of it means nothing */
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(rdmatensor_pool_create(p.b.rt, 8 << 20, &p.b.pool), 0);
	EQ(side_alloc(&p.b, 9000), at);
	publish(&p.a, "n", 7, 5000, 8, 1, 8);
	keep("n", 7, at, 5000, 8);
	EQ(shorts(), 3);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	p.b.pool = own;
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}

TEST(kept_and_cancelled)
{
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 9000);
	publish(&p.a, "n", 0, 9000, 1, 1, 1);
	keep("n", 0, at, 9000, 1);
	prepare(&op, "n", 1, at, 9000, 5);
	EQ(side_do(&p.b, &op), 0);
	rdmatensor_prep_cancel(&op, 5);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 5, NULL), -ECANCELED);
	/* Now it is there, and nobody has asked for it */
	publish(&p.a, "n", 1, 9000, 2, 1, 2);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 2, 50);
	CHECK(side_at(&p.b, at)[0] == 0xee && side_at(&p.b, at)[8999] == 0xee);
	keep("n", 1, at, 9000, 2);
	EQ(shorts(), of_pools(2));
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
}

static int validate(struct rdmatensor *rt, int on)
{
	return rdmatensor_configure(rt, RDMATENSOR_CONFIGURE_VALIDATE,
				    on ? RDMATENSOR_CONFIGURE_VALIDATE : 0);
}

TEST(kept_with_checksums)
{
	uint64_t at;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 9000);
	publish(&p.a, "n", 0, 9000, 1, 0, 1);
	keep("n", 0, at, 9000, 1);
	keep("n", 0, at, 9000, 1);
	EQ(shorts(), of_pools(1));
	EQ(validate(p.b.rt, 1), 0);
	keep("n", 0, at, 9000, 1);
	EQ(shorts(), of_pools(1));
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), 1);
	EQ(validate(p.b.rt, 0), 0);
	EQ(validate(p.a.rt, 1), 0);
	keep("n", 0, at, 9000, 1);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), 2);
	EQ(validate(p.a.rt, 0), 0);
	keep("n", 0, at, 9000, 1);
	keep("n", 0, at, 9000, 1);
	EQ(shorts(), of_pools(4));
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), 2);
}

TEST(kept_by_own_context)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	publish(&p.a, "n", 0, 9000, 1, 1, 1);
	at = side_alloc(&p.a, 9000);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "n", 0, p.a.pool.id, at, 9000, 0, 2);
	op.flags |= RDMATENSOR_OP_KEEP;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), 0);
	CHECK(filled(side_at(&p.a, at), 9000, 1));
	/* There is nothing to keep before it is known how much */
	rdmatensor_prep_fetch_alloc(&op, RDMATENSOR_CHANNEL_SELF, "n", 1, p.a.pool.id, 0, 0, 3);
	op.flags |= RDMATENSOR_OP_KEEP;
	EQ(side_do(&p.a, &op), -EINVAL);
	rdmatensor_prep_withdraw(&op, "n", 0, 4);
	op.flags |= RDMATENSOR_OP_KEEP;
	EQ(side_do(&p.a, &op), -EINVAL);
}

enum { NAMES = 1100 };

/* More names than the peer remembers: the others are told of each time, and all arrive */
TEST_POOL(more_names_than_are_kept)
{
	uint64_t at, before;
	char name[16];
	int i, step;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 64 * NAMES);
	for (step = 0; step < 3; step++) {
		before = shorts();
		for (i = 0; i < NAMES; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			if (!step)
				publish(&p.a, name, 0, 16, i, 0, i);
			keep(name, 0, at + 64 * i, 16, i);
			if (!(i % 100))
				test_alive();
		}
		EQ(shorts() - before, step ? 1024 : 0);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_RE_REQUESTS), NAMES);
}

enum { THREADS = 6, STEPS = 40, BYTES = 20000 };

/**
 * struct actor - one thread, on the handle that all use
 * @name: of its tensors, or of all threads' tensors
 * @at: where they go, two places
 * @ended: steps whose tensor has come; the main thread reaps for all
 * @error: of a submit
 */
static struct actor {
	pthread_t thread;
	const char *name;
	uint64_t at[2];
	int ended;
	int error;
} actors[THREADS];

/* The other place, now and then */
static uint64_t place(const struct actor *actor, int step)
{
	return actor->at[step % 5 == 4];
}

static void *act(void *arg)
{
	struct actor *actor = arg;
	struct rdmatensor_op op;
	int step;

	for (step = 0; step < STEPS && !actor->error; step++) {
		while (__atomic_load_n(&actor->ended, __ATOMIC_ACQUIRE) < step)
			sched_yield();
		prepare(&op, actor->name, step, place(actor, step), BYTES, actor - actors);
		actor->error = rdmatensor_submit(p.b.rt, &op, 1, 0, 0, NULL);
	}
	return NULL;
}

/* Half of them have a name in common, and all have places of their own */
TEST(kept_by_many_threads)
{
	static const char *const names[] = { "common", "1", "common", "3", "common", "5" };
	struct rdmatensor_cqe cqe;
	struct actor *actor;
	int i, step, ended;

	pair_open(&p, 8 << 20, NULL);
	for (step = 0; step < STEPS; step++)
		for (i = 0; i < THREADS; i++)
			if (!i || i % 2)
				publish(&p.a, names[i], step, BYTES, step, i ? 1 : 3, 0);
	for (i = 0; i < THREADS; i++) {
		actors[i] = (struct actor){ .name = names[i],
					    .at = { side_alloc(&p.b, BYTES),
						    side_alloc(&p.b, BYTES) } };
		EQ(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
	}
	for (ended = 0; ended < THREADS * STEPS; ended++) {
		EQ(rdmatensor_wait(p.b.rt, 1, rdmatensor_deadline_ms(20000)), 0);
		EQ(rdmatensor_reap(p.b.rt, &cqe, 1), 1);
		EQ(cqe.result, 0);
		EQ(cqe.type, RDMATENSOR_CQE_FETCH);
		actor = &actors[cqe.user_data];
		EQ(cqe.step_id, actor->ended);
		EQ(cqe.offset, place(actor, actor->ended));
		CHECK(filled(side_at(&p.b, cqe.offset), BYTES, actor->ended));
		memset(side_at(&p.b, cqe.offset), 0xee, BYTES);
		__atomic_store_n(&actor->ended, actor->ended + 1, __ATOMIC_RELEASE);
	}
	for (i = 0; i < THREADS; i++) {
		EQ(pthread_join(actors[i].thread, NULL), 0);
		EQ(actors[i].error, 0);
	}
	CHECK(test_strict() ? !shorts() : shorts() > STEPS);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}
