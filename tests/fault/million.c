// SPDX-License-Identifier: GPL-2.0
/*
 * A million rows of three owners, ids random with repeats, while one lane after the other
 * is lost in the middle of it: a READ that cannot be posted, or one that does not end
 * well, takes its lane and all that was under way there with it.
 */
#include "owners.h"
#include "points.h"

#define BATCH 50000
#define ROWS 60000
/* A batch has more of them, where its lists are posted and where they are proven */
#define POINTS 200

TEST(a_million_rows_with_lanes_lost)
{
	static uint64_t ids[BATCH];
	uint64_t at, done, down, again;
	struct rdmatensor_cqe cqe;
	unsigned int hits = 0;
	uint32_t table;

	owners_open(ROWS, ROW, ROW, BATCH);
	at = side_alloc(reader, BATCH * ROW);
	table = owners_table(NULL);
	for (done = 0; done < MILLION; done += BATCH) {
		random_ids(ids, BATCH, ROWS);
		memset(side_at(reader, at), 0, BATCH * ROW);
		point_set(random_below(POINTS));
		EQ(owners_gather(table, ids, BATCH, at, ROW, &cqe), 0);
		hits += point_hit();
		EQ(cqe.tensor_bytes, BATCH * ROW);
		owners_check(ids, BATCH, at, ROW);
	}
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHERED_ROWS), MILLION);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_ERRORS), 0);
	down = side_stat(reader, RDMATENSOR_STAT_GATHER_LANES_DOWN);
	again = side_stat(reader, RDMATENSOR_STAT_GATHER_AGAIN);
	printf("# %u points hit; %llu lanes went down, %llu rows were read again\n", hits,
	       (unsigned long long)down, (unsigned long long)again);
	EQ(hits, MILLION / BATCH);
	CHECK(down >= hits / 2 && again > 0);
}
