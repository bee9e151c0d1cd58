// SPDX-License-Identifier: GPL-2.0
/*
 * Fetches with checksums over channels that are cut at random from either end: each
 * ends once, what arrives is right, and what did not arrive is still there.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "crash.h"
#include "harness.h"

#define BATCH 32

static struct pair p;
static atomic_int cutting, channel_a, channel_b;
static atomic_long cuts;

/* Takes the moments from a state of its own: it runs beside the others */
static void *cutter(void *seed)
{
	unsigned int state = (unsigned int)(uintptr_t)seed;

	while (atomic_load(&cutting)) {
		usleep(2000 + (unsigned int)rand_r(&state) % 20000);
		/* Whichever is there: it may be gone already */
		if (rand_r(&state) % 2)
			atomic_fetch_add(&cuts, !rdmatensor_disconnect(p.b.rt, channel_b));
		else
			atomic_fetch_add(&cuts, !rdmatensor_disconnect(p.a.rt, channel_a));
	}
	return NULL;
}

/* A channel, though it may be cut again before this returns */
static void again(void)
{
	struct rdmatensor_cqe cqe;
	char addr[64], cause[160];
	uint32_t channel;
	int ret;

	side_forget(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN);
	side_forget(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN);
	test_addr(addr, sizeof(addr), p.a.port);
	do {
		ret = rdmatensor_connect(p.b.rt, addr, NULL, 0, &channel, cause, sizeof(cause));
	} while (ret == -ECONNRESET || ret == -ESHUTDOWN || ret == -ECONNREFUSED);
	if (ret)
		test_fail(__FILE__, __LINE__, "CONNECT: %d: %s", ret, cause);
	p.b.channel = channel;
	channel_b = channel;
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	channel_a = cqe.channel;
}

static uint64_t size_of(long step, int i)
{
	static const uint64_t sizes[] = { 1, 100, 4096, 9000, 40000 };

	return sizes[(step + i) % 5];
}

/* One fetch that is known to have been taken. Return: its result */
static int ended(int i)
{
	struct rdmatensor_cqe cqe;
	int ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, i, &cqe);

	if (ret && ret != -ECONNRESET && ret != -ESHUTDOWN)
		test_fail(__FILE__, __LINE__, "a fetch ended with %d: %.*s", ret,
			  cqe.flags & RDMATENSOR_CQE_TEXT ? cqe.text_len : 0, cqe.text);
	CHECK(ret || cqe.flags & RDMATENSOR_CQE_VALIDATED);
	return ret;
}

TEST(nothing_is_lost_when_channels_are_cut)
{
	long total = amount("CRASH_FETCHES", 2500), fetches = 0, again_and_again = 0, step;
	uint64_t from[BATCH], to[BATCH];
	struct rdmatensor_op op;
	pthread_t thread;
	int i, ret;

	pair_open(&p, 8 << 20, NULL);
	channel_a = p.a.channel;
	channel_b = p.b.channel;
	EQ(rdmatensor_configure(p.b.rt, RDMATENSOR_CONFIGURE_VALIDATE,
				RDMATENSOR_CONFIGURE_VALIDATE), 0);
	for (i = 0; i < BATCH; i++) {
		from[i] = side_alloc(&p.a, 40000);
		to[i] = side_alloc(&p.b, 40000);
	}
	cutting = 1;
	CHECK(!pthread_create(&thread, NULL, cutter, (void *)(uintptr_t)(1 + below(1 << 30))));

	for (step = 0; fetches < total; step++) {
		char missing[BATCH], taken[BATCH], name[16];
		int left = BATCH;

		memset(missing, 1, sizeof(missing));
		for (i = 0; i < BATCH; i++) {
			uint64_t dim = size_of(step, i);

			snprintf(name, sizeof(name), "t%d", i);
			fill(side_at(&p.a, from[i]), dim, step * BATCH + i);
			rdmatensor_prep_publish(&op, name, step, p.a.pool.id, from[i], dim,
						RDMATENSOR_DT_UINT8, 1, &dim, 1, i);
			EQ(side_do(&p.a, &op), 0);
		}
		while (left) {
			for (i = 0; i < BATCH; i++) {
				taken[i] = 0;
				if (!missing[i])
					continue;
				snprintf(name, sizeof(name), "t%d", i);
				rdmatensor_prep_fetch(&op, p.b.channel, name, step, p.b.pool.id,
						      to[i], 40000, 0, i);
				ret = side_do(&p.b, &op);
				CHECK(ret == 0 || ret == -ENOTCONN || ret == -ENOENT);
				taken[i] = !ret;
			}
			for (i = 0; i < BATCH; i++) {
				if (!taken[i])
					continue;
				fetches++;
				if (ended(i)) {
					again_and_again++;
					continue;
				}
				missing[i] = 0;
				left--;
				CHECK(filled(side_at(&p.b, to[i]), size_of(step, i),
					     step * BATCH + i));
			}
			if (left)
				again();
		}
		/* What arrived as the channel went down may have been returned as well */
		for (i = 0; i < BATCH; i++) {
			snprintf(name, sizeof(name), "t%d", i);
			rdmatensor_prep_withdraw(&op, name, step, i);
			ret = side_do(&p.a, &op);
			CHECK(ret == 0 || ret == -ENOENT);
			EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, i, NULL),
			   ret ? 0 : -ECANCELED);
			if (!ret)
				EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, i, NULL), 0);
		}
		test_alive();
	}
	cutting = 0;
	CHECK(!pthread_join(thread, NULL));
	printf("# %ld fetches, %ld of them ended by %ld cuts\n", fetches, again_and_again,
	       atomic_load(&cuts));
	CHECK(again_and_again > 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS), 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHES), fetches);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHED) + side_stat(&p.b, RDMATENSOR_STAT_FETCH_ERRORS),
	   fetches);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}
