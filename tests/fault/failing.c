// SPDX-License-Identifier: GPL-2.0
/*
 * A channel that fails while it writes: the next content cannot be posted, and those before
 * it are in flight. The queue pair is drained before it goes, or the module warns that
 * entries of its send queue have not been returned.
 */
#include "harness.h"
#include "points.h"

#define CONTENT (4u << 20)
#define FAILURES 3

TEST(channel_fails_beside_its_writes)
{
	static struct pair p;
	unsigned int n, hit = 0;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, 64 << 20, NULL);
	at = side_alloc(&p.b, CONTENT);
	for (n = 0; n < FAILURES; n++) {
		publish(&p.a, "big", n, CONTENT, 1, 1, n);
		/* The request, its answer and the first writes pass */
		point_set(8 + n);
		rdmatensor_prep_fetch(&op, p.b.channel, "big", n, p.b.pool.id, at, CONTENT, 0, n);
		EQ(side_do(&p.b, &op), 0);
		CHECK(side_next(&p.b, RDMATENSOR_CQE_FETCH, n, NULL) < 0);
		hit += point_hit();
		side_forget(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN);
		side_forget(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN);
		side_connect(&p.b, &p.a);
		/* What was not delivered is still published */
		EQ(fetch(&p.b, "big", n, CONTENT, NULL, &cqe), 0);
		side_next(&p.a, RDMATENSOR_CQE_PUBLISH, n, NULL);
	}
	EQ(hit, FAILURES);
}
