// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pair by which memory is registered starts again after a failure; and, when that fails
 * as well, another one takes its place, or it does so another time.
 */
#include <errno.h>
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

/* The last point of a creation is that of the request itself, which takes its queue pair with it */
static void break_it(void)
{
	int point, ret = 0;

	for (point = 0; ret != -EIO; point++) {
		CHECK(point < 10);
		point_set(point);
		ret = create();
		CHECK(point_hit());
	}
}

/* A driver may have no way back from the error state: then another queue pair takes its place */
TEST(registrations_without_a_way_back)
{
	int point, ret = -EIO;

	side_open(&s, "replaces", 4096, 1, NULL);
	break_it();
	/* What it would be connected again by fails, and the call does not */
	for (point = 0; ret && point < 10; point++) {
		point_set(point);
		ret = create();
		CHECK(point_hit());
	}
	EQ(ret, 0);
	EQ(create(), 0);
	/* Nor can the other one be connected, for the moment */
	break_it();
	points_set_from(point - 1);
	EQ(create(), -EIO);
	point_hit();
	EQ(create(), 0);
	EQ(create(), 0);
	side_close(&s);
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
