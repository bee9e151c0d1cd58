// SPDX-License-Identifier: GPL-2.0
/*
 * 80,000 rows of three owners, ids random with repeats, while one lane after the other
 * is lost in the middle of it: a READ that cannot be posted, or one that does not end
 * well, takes its lane and all that was in flight there with it.
 */
#include "owners.h"
#include "points.h"

/* A batch has more of them, where its lists are posted and where they are proven */
#define POINTS 24
#define ROWS_READ 80000
#define BATCH 4000

static unsigned int hits;

static void lose_a_lane(void)
{
	point_set(random_below(POINTS));
}

static void see_that_it_was(void)
{
	hits += point_hit();
}

TEST(rows_with_lanes_lost)
{
	uint64_t down, again;

	owners_many(ROWS_READ, BATCH, lose_a_lane, see_that_it_was);
	down = side_stat(reader, RDMATENSOR_STAT_GATHER_LANES_DOWN);
	again = side_stat(reader, RDMATENSOR_STAT_GATHER_AGAIN);
	printf("# %u points hit; %llu lanes went down, %llu rows were read again\n", hits,
	       (unsigned long long)down, (unsigned long long)again);
	EQ(hits, ROWS_READ / BATCH);
	CHECK(down >= hits / 2 && again > 0);
}
