// SPDX-License-Identifier: GPL-2.0
/* Many at once: contexts that all fetch from each other, threads on one context */
#include <pthread.h>
#include <sys/socket.h>
#include "harness.h"

#define SIDES 4
#define TENSORS 40

static struct pair p;

static struct member {
	struct side side;
	int nr;
	uint32_t to[SIDES];
	uint64_t at[SIDES][TENSORS];
	pthread_barrier_t *start;
	pthread_t thread;
} members[SIDES];

static uint64_t size_of(int side, int tensor)
{
	return 1 + (uint64_t)((side * 7919 + tensor * 104729) % 20000);
}

/* Asks all others for all of theirs, and then publishes what those have asked for */
static void *member_main(void *arg)
{
	struct member *me = arg;
	struct rdmatensor_op op;
	unsigned int done;
	char name[32];
	int other, i;

	pthread_barrier_wait(me->start);
	for (i = 0; i < TENSORS; i++) {
		for (other = 0; other < SIDES; other++) {
			if (other == me->nr)
				continue;
			snprintf(name, sizeof(name), "%d of %d", i, other);
			rdmatensor_prep_fetch(&op, me->to[other], name, i / 10, me->side.pool.id,
					      me->at[other][i], size_of(other, i),
					      rdmatensor_deadline_ms(20000),
					      other * TENSORS + i);
			if (rdmatensor_submit(me->side.rt, &op, 1, 0, 0, &done))
				return "a fetch was not taken";
		}
	}
	for (i = 0; i < TENSORS; i++) {
		uint64_t bytes = size_of(me->nr, i);
		uint64_t dim = bytes;

		snprintf(name, sizeof(name), "%d of %d", i, me->nr);
		rdmatensor_prep_publish(&op, name, i / 10, me->side.pool.id, me->at[me->nr][i],
					bytes, RDMATENSOR_DT_UINT8, 1, &dim, SIDES - 1, i);
		if (rdmatensor_submit(me->side.rt, &op, 1, 0, 0, &done))
			return "a tensor was not taken";
	}
	return NULL;
}

TEST(four_contexts_at_once)
{
	pthread_barrier_t start;
	char cause[160], addr[64], name[2] = "a";
	void *error;
	int i, j, k;

	memset(members, 0, sizeof(members));
	for (i = 0; i < SIDES; i++) {
		name[0] = 'a' + i;
		side_open(&members[i].side, name, 8 << 20, 1, NULL);
		members[i].nr = i;
		members[i].start = &start;
		for (j = 0; j < SIDES; j++)
			for (k = 0; k < TENSORS; k++)
				members[i].at[j][k] = side_alloc(&members[i].side, size_of(j, k));
		for (k = 0; k < TENSORS; k++)
			fill(side_at(&members[i].side, members[i].at[i][k]), size_of(i, k),
			     i * TENSORS + k);
	}
	for (i = 0; i < SIDES; i++) {
		for (j = 0; j < SIDES; j++) {
			if (i == j)
				continue;
			name[0] = 'a' + j;
			test_addr(addr, sizeof(addr), members[j].side.port);
			EQ(rdmatensor_connect(members[i].side.rt, addr, name, 0,
					      &members[i].to[j], cause, sizeof(cause)), 0);
		}
	}

	CHECK(!pthread_barrier_init(&start, NULL, SIDES));
	for (i = 0; i < SIDES; i++)
		CHECK(!pthread_create(&members[i].thread, NULL, member_main, &members[i]));
	for (i = 0; i < SIDES; i++) {
		CHECK(!pthread_join(members[i].thread, &error));
		if (error)
			test_fail(__FILE__, __LINE__, "context %d: %s", i, (char *)error);
	}
	pthread_barrier_destroy(&start);

	for (i = 0; i < SIDES; i++) {
		for (j = 0; j < SIDES; j++) {
			for (k = 0; k < TENSORS; k++) {
				if (i == j) {
					EQ(side_next(&members[i].side, RDMATENSOR_CQE_PUBLISH, k,
						     NULL), 0);
					continue;
				}
				EQ(side_next(&members[i].side, RDMATENSOR_CQE_FETCH,
					     j * TENSORS + k, NULL), 0);
				CHECK(filled(side_at(&members[i].side, members[i].at[j][k]),
					     size_of(j, k), j * TENSORS + k));
			}
		}
		EQ(side_stat(&members[i].side, RDMATENSOR_STAT_FETCHED), (SIDES - 1) * TENSORS);
		EQ(side_stat(&members[i].side, RDMATENSOR_STAT_SERVED), (SIDES - 1) * TENSORS);
	}
}

#define SUBMITTERS 3
#define EACH 400
#define X_BYTES 300

static uint64_t places[SUBMITTERS * EACH];

/* What there is but fetches: names that come and go, pools, counters */
static void *others_main(void *arg)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_op op;
	unsigned int done;
	uint64_t counters[RDMATENSOR_STAT_NR];
	int i;

	(void)arg;
	for (i = 0; i < 100; i++) {
		rdmatensor_prep_publish_failed(&op, "other", i, -EIO, "", 1, i);
		if (rdmatensor_submit(p.b.rt, &op, 1, 0, 0, &done))
			return "a tensor was not taken";
		rdmatensor_prep_withdraw(&op, "other", i, i);
		if (rdmatensor_submit(p.b.rt, &op, 1, 0, 0, &done))
			return "a WITHDRAW was not taken";
		if (i % 10)
			continue;
		if (rdmatensor_pool_create(p.b.rt, 65536, &pool))
			return "a pool was not made";
		if (rdmatensor_stats(p.b.rt, 0, counters, RDMATENSOR_STAT_NR) < 0)
			return "no counters";
		if (rdmatensor_pool_destroy(p.b.rt, &pool))
			return "a pool was not destroyed";
	}
	return NULL;
}

static void *submitter_main(void *arg)
{
	int first = (int)(intptr_t)arg * EACH, i;
	struct rdmatensor_op ops[4];
	unsigned int done, k;

	for (i = 0; i < EACH; i += 4) {
		for (k = 0; k < 4; k++)
			rdmatensor_prep_fetch(&ops[k], p.b.channel, "x", 0, p.b.pool.id,
					      places[first + i + k], X_BYTES,
					      rdmatensor_deadline_ms(20000), first + i + k);
		if (rdmatensor_submit(p.b.rt, ops, 4, 0, 0, &done) || done != 4)
			return "four fetches were not taken";
	}
	return NULL;
}

static void large_ring(struct rdmatensor_start *start)
{
	start->ring_entries = 4096;
}

TEST(threads_on_one_context)
{
	pthread_t threads[SUBMITTERS + 1];
	void *error;
	int i;

	pair_open(&p, 4 << 20, large_ring);
	publish(&p.a, "x", 0, X_BYTES, 9, 0, 1);
	for (i = 0; i < SUBMITTERS * EACH; i++)
		places[i] = side_alloc(&p.b, X_BYTES);

	for (i = 0; i < SUBMITTERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, submitter_main, (void *)(intptr_t)i));
	CHECK(!pthread_create(&threads[i], NULL, others_main, NULL));
	/* This one reaps, while they submit */
	for (i = 0; i < SUBMITTERS * EACH; i++) {
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, i, NULL), 0);
		CHECK(filled(side_at(&p.b, places[i]), X_BYTES, 9));
	}
	for (i = 0; i < SUBMITTERS + 1; i++) {
		CHECK(!pthread_join(threads[i], &error));
		if (error)
			test_fail(__FILE__, __LINE__, "thread %d: %s", i, (char *)error);
	}
	for (i = 0; i < 100; i++) {
		EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, i, NULL), -ECANCELED);
		EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, i, NULL), 0);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHED), SUBMITTERS * EACH);
}

TEST(over_ipv6)
{
	struct rdmatensor_channel_query query = { 0 };
	const char *ip = getenv("TEST_IP6");
	struct rdmatensor_cqe cqe;
	uint64_t at;
	int i;

	CHECK(ip);
	test_set_ip(ip);
	pair_open(&p, 4 << 20, NULL);
	query.channel = p.b.channel;
	EQ(rdmatensor_channel_query(p.b.rt, &query), 0);
	EQ(((struct sockaddr *)(void *)query.addr)->sa_family, AF_INET6);
	for (i = 0; i < 3; i++) {
		publish(&p.a, "x", i, 100000, i, 1, i);
		EQ(fetch(&p.b, "x", i, 100000, &at, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), 100000, i));
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_CHANNELS_UP), 1);
}
