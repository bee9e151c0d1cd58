// SPDX-License-Identifier: GPL-2.0
/*
 * A step is aborted while a fetch of it is on its way into the tables: it has been found to
 * be of no aborted step, and is in none of the tables that the abort goes through.
 */
#include "harness.h"
#include "hold.h"

static struct side s;
static uint32_t channel;
static struct rdmatensor_cqe cqe;

static void *fetcher(void *ret)
{
	uint64_t at = side_alloc(&s, 100);

	*(int *)ret = rdmatensor_fetch(s.rt, channel, "nobody's", 5, &s.pool, at, 100,
				       rdmatensor_deadline_ms(15000), &cqe);
	return NULL;
}

/* With the status of the abort, and at once */
static void aborted_on_its_way(void)
{
	static const char text[] = "the step is over";
	pthread_t thread;
	int ret = 0;

	hold_at("fetch");
	EQ(pthread_create(&thread, NULL, fetcher, &ret), 0);
	hold_wait();
	EQ(rdmatensor_step_abort(s.rt, 5, -EDOM, text), 0);
	hold_go();
	EQ(pthread_join(thread, NULL), 0);
	EQ(ret, -EDOM);
	CHECK(cqe.flags & RDMATENSOR_CQE_TEXT);
	EQ(cqe.text_len, strlen(text));
	CHECK(!memcmp(cqe.text, text, cqe.text_len));
}

TEST(fetch_is_aborted_on_its_way)
{
	side_open(&s, "aborted", 1 << 20, 1, NULL);
	side_connect(&s, &s);
	channel = s.channel;
	aborted_on_its_way();
}

TEST(fetch_from_oneself_is_aborted_on_its_way)
{
	side_open(&s, "aborted", 1 << 20, 1, NULL);
	channel = RDMATENSOR_CHANNEL_SELF;
	aborted_on_its_way();
}
