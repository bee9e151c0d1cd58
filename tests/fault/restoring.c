// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pair by which memory is registered starts again after a failure; and, when that fails
 * as well, another time.
 */
#include <stdbool.h>
#include "harness.h"
#include "points.h"

static struct side s;

static int create(void)
{
	struct rdmatensor_pool pool;
	int ret = rdmatensor_pool_create(s.rt, 8192, &pool);

	return ret ?: rdmatensor_pool_destroy(s.rt, &pool);
}

/* Return: whether there is such a point */
static bool create_failing_at(int point)
{
	point_set(point);
	create();
	return point_hit();
}

TEST(registrations_after_two_failures)
{
	unsigned int first = 0, second, nr = 0;
	bool once, twice;

	do {
		side_open(&s, "restores", 4096, 0, NULL);
		second = 0;
		do {
			once = create_failing_at(first);
			twice = once && create_failing_at(second++);
			EQ(create(), 0);
			nr += twice;
		} while (twice);
		side_close(&s);
		first++;
	} while (once);
	printf("# %u points, %u pairs of them\n", first - 1, nr);
	/* One of them, at least, after which it starts again */
	CHECK(first > 3 && nr > 9);
}
