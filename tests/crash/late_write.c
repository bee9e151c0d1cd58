// SPDX-License-Identifier: GPL-2.0
/*
 * Results that were handed back are not written to any more (design 7.1): fetches of
 * large tensors are ended in all ways there are while their bytes come in, and as soon
 * as the entry is there the process puts bytes of its own in their place.
 */
#include <unistd.h>
#include "crash.h"
#include "harness.h"

#define LARGE (16 << 20)
#define PLACES 3
#define CANARY 0xa5

static struct pair p;
static uint64_t places[PLACES];
static int holds_canary[PLACES];

static void ask(int place, uint64_t id, uint64_t deadline)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, p.b.channel, "large", 0, p.b.pool.id, places[place], LARGE,
			      deadline, id);
	EQ(side_do(&p.b, &op), 0);
}

/* Its first bytes have come in: it is being written to */
static void wait_for_bytes(int place)
{
	volatile unsigned char *at = side_at(&p.b, places[place]);
	uint64_t end = rdmatensor_deadline_ms(20000);

	while (at[4096] == CANARY && !rdmatensor_ready(p.b.rt))
		CHECK(rdmatensor_deadline_ms(0) < end);
}

static void check_canaries(void)
{
	int place;
	long i;

	for (place = 0; place < PLACES; place++) {
		const unsigned char *at = side_at(&p.b, places[place]);

		for (i = 0; holds_canary[place] && i < LARGE; i++)
			if (at[i] != CANARY)
				test_fail(__FILE__, __LINE__,
					  "byte %ld of place %d was written after its end", i,
					  place);
	}
}

static void reconnect(void)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe) < 0, 1);
	side_connect(&p.b, &p.a);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	p.a.channel = cqe.channel;
}

TEST(results_of_ended_fetches_stay_as_they_are)
{
	long rounds = amount("CRASH_LATE_WRITES", 60), i;
	int ended_early = 0, place, ret;
	struct rdmatensor_op op;

	pair_open(&p, (PLACES + 1) * (uint64_t)LARGE, NULL);
	publish(&p.a, "large", 0, LARGE, 1, 0, 1);
	for (place = 0; place < PLACES; place++)
		places[place] = side_alloc(&p.b, LARGE);
	/* What the peer knows already comes without a question back */
	ask(0, 999, 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 999, NULL), 0);

	for (i = 0; i < rounds; i++) {
		place = i % PLACES;
		check_canaries();
		holds_canary[place] = 0;
		memset(side_at(&p.b, places[place]), CANARY, LARGE);
		ask(place, i, i % 3 == 1 ? rdmatensor_deadline_ms(1 + below(10)) : 0);
		wait_for_bytes(place);
		if (i % 3 == 0) {
			rdmatensor_prep_cancel(&op, i);
			EQ(side_do(&p.b, &op), 0);
		} else if (i % 3 == 2) {
			if (i % 2)
				EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
			else
				EQ(rdmatensor_disconnect(p.a.rt, p.a.channel), 0);
		}
		ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, i, NULL);
		if (ret) {
			memset(side_at(&p.b, places[place]), CANARY, LARGE);
			holds_canary[place] = 1;
			ended_early++;
		} else {
			CHECK(filled(side_at(&p.b, places[place]), LARGE, 1));
		}
		if (i % 3 == 2)
			reconnect();
		test_alive();
	}
	check_canaries();
	printf("# %ld fetches, %d ended before their tensor had come\n", rounds, ended_early);
	CHECK(ended_early > rounds / 10);
}
