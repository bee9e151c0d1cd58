// SPDX-License-Identifier: GPL-2.0
/* Tensor buffers: which one serves a name, how many there are, and which one goes. */
#include <linux/slab.h>
#include <kunit/test.h>
#include "core/stats.h"
#include "memory/buffer.h"

/**
 * struct bench - buffers whose memory is a number
 * @buffers: they
 * @counters: of them
 * @made: how many have been made
 * @freed: how many have been freed
 * @room: how many can be made; then it is @error
 * @tried: attempts
 * @bytes: of those that there are
 * @most: that they may have; then it is @error
 * @error: see @room, @most
 */
struct bench {
	struct rdmatensor_buffers buffers;
	struct rdmatensor_counters counters;
	unsigned long made;
	unsigned long freed;
	unsigned long room;
	unsigned long tried;
	u64 bytes;
	u64 most;
	int error;
};

static struct bench *to_bench(struct rdmatensor_buffers *buffers)
{
	return container_of(buffers, struct bench, buffers);
}

static int bench_make(struct rdmatensor_buffers *buffers, struct rdmatensor_buffer *buffer)
{
	struct bench *bench = to_bench(buffers);

	bench->tried++;
	if (bench->made - bench->freed >= bench->room || bench->bytes + buffer->bytes > bench->most)
		return bench->error;
	bench->made++;
	bench->bytes += buffer->bytes;
	buffer->pool = (void *)bench->made;
	return 0;
}

static void bench_unmake(struct rdmatensor_buffers *buffers, struct rdmatensor_buffer *buffer)
{
	to_bench(buffers)->freed++;
	to_bench(buffers)->bytes -= buffer->bytes;
}

static const struct rdmatensor_buffers_ops bench_ops = {
	.make = bench_make,
	.unmake = bench_unmake,
};

static struct bench *bench_open(struct kunit *test, u32 max, unsigned long room, int error)
{
	struct bench *bench = kunit_kzalloc(test, sizeof(*bench), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bench);
	KUNIT_ASSERT_EQ(test, rdmatensor_counters_init(&bench->counters), 0);
	bench->room = room;
	bench->most = U64_MAX;
	bench->error = error;
	bench->buffers.ops = &bench_ops;
	bench->buffers.wq = system_wq;
	bench->buffers.max = max;
	rdmatensor_buffers_init(&bench->buffers);
	return bench;
}

static void bench_close(struct kunit *test, struct bench *bench)
{
	flush_work(&bench->buffers.work);
	rdmatensor_buffers_destroy(&bench->buffers);
	KUNIT_EXPECT_EQ(test, bench->made, bench->freed);
	rdmatensor_counters_destroy(&bench->counters);
}

static struct rdmatensor_buffer *take(struct bench *bench, const char *name, u64 bytes)
{
	return rdmatensor_buffer_take(&bench->buffers, &bench->counters, name, strlen(name),
				      bytes);
}

/* Which one it is: they are numbered as they are made */
static unsigned long number(const struct rdmatensor_buffer *buffer)
{
	return IS_ERR(buffer) ? PTR_ERR(buffer) : (unsigned long)buffer->pool;
}

static bool make_room(struct bench *bench)
{
	struct rdmatensor_buffers *buffers = &bench->buffers;

	return rdmatensor_buffers_make_room(buffers, rdmatensor_buffers_nr_freed(buffers), 1);
}

static void idle_one_serves_the_next(struct kunit *test)
{
	struct bench *bench = bench_open(test, 10, 10, 0);
	struct rdmatensor_buffer *first, *second;
	int i;

	for (i = 0; i < 5; i++) {
		first = take(bench, "n", 100);
		KUNIT_EXPECT_EQ(test, number(first), 1);
		rdmatensor_buffer_put(first, true);
	}
	/* A busy one does not */
	first = take(bench, "n", 100);
	second = take(bench, "n", 100);
	KUNIT_EXPECT_EQ(test, number(first), 1);
	KUNIT_EXPECT_EQ(test, number(second), 2);
	rdmatensor_buffer_put(first, true);
	KUNIT_EXPECT_PTR_EQ(test, take(bench, "n", 100), first);
	rdmatensor_buffer_put(first, true);
	rdmatensor_buffer_put(second, true);
	KUNIT_EXPECT_EQ(test, bench->freed, 0);
	bench_close(test, bench);
}

static void names_have_their_own(struct kunit *test)
{
	static const char * const names[] = { "a", "b", "ab", "a\0b" };
	static const u16 lengths[] = { 1, 1, 2, 3 };
	struct bench *bench = bench_open(test, 10, 10, 0);
	struct rdmatensor_buffer *buffer;
	int i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < ARRAY_SIZE(names); i++) {
			buffer = rdmatensor_buffer_take(&bench->buffers, &bench->counters,
							names[i], lengths[i], 9);
			KUNIT_EXPECT_EQ(test, number(buffer), i + 1);
			rdmatensor_buffer_put(buffer, true);
		}
	}
	bench_close(test, bench);
}

static void other_size_renews(struct kunit *test)
{
	struct bench *bench = bench_open(test, 10, 10, 0);
	struct rdmatensor_buffer *first, *second;

	first = take(bench, "n", 100);
	second = take(bench, "n", 100);
	rdmatensor_buffer_put(first, true);
	/* What is idle goes; what is busy does when it is found idle */
	first = take(bench, "n", 101);
	KUNIT_EXPECT_EQ(test, number(first), 3);
	KUNIT_EXPECT_EQ(test, first->bytes, 101);
	KUNIT_EXPECT_EQ(test, bench->freed, 1);
	rdmatensor_buffer_put(second, true);
	rdmatensor_buffer_put(first, true);
	first = take(bench, "n", 101);
	KUNIT_EXPECT_EQ(test, number(first), 3);
	KUNIT_EXPECT_EQ(test, bench->freed, 2);
	rdmatensor_buffer_put(first, true);
	/* A shorter one, too: it would hold memory that nobody uses */
	first = take(bench, "n", 50);
	KUNIT_EXPECT_EQ(test, number(first), 4);
	KUNIT_EXPECT_EQ(test, bench->freed, 3);
	rdmatensor_buffer_put(first, true);
	bench_close(test, bench);
}

static void not_more_than_the_most(struct kunit *test)
{
	struct bench *bench = bench_open(test, 2, 10, 0);
	struct rdmatensor_buffer *a, *b, *c;

	a = take(bench, "a", 1);
	b = take(bench, "b", 1);
	KUNIT_EXPECT_EQ(test, number(take(bench, "c", 1)), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, number(take(bench, "a", 1)), -ENOBUFS);
	/* The one that has been idle longest goes */
	rdmatensor_buffer_put(b, true);
	rdmatensor_buffer_put(a, true);
	c = take(bench, "c", 1);
	KUNIT_EXPECT_EQ(test, number(c), 3);
	a = take(bench, "a", 1);
	KUNIT_EXPECT_EQ(test, number(a), 1);
	rdmatensor_buffer_put(a, true);
	rdmatensor_buffer_put(c, true);
	KUNIT_EXPECT_EQ(test, bench->made, 3);
	bench_close(test, bench);
}

static void idle_ones_make_room(struct kunit *test)
{
	struct bench *bench = bench_open(test, 10, 3, -ENOMEM);
	struct rdmatensor_buffer *buffers[3];
	char name[] = "a";
	int i;

	for (i = 0; i < 3; i++, name[0]++)
		buffers[i] = take(bench, name, 1);
	KUNIT_EXPECT_EQ(test, number(take(bench, "x", 1)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, bench->freed, 0);
	rdmatensor_buffer_put(buffers[1], true);
	buffers[1] = take(bench, "x", 1);
	KUNIT_EXPECT_EQ(test, number(buffers[1]), 4);
	KUNIT_EXPECT_EQ(test, bench->freed, 1);
	/* All that are idle, if it takes that */
	bench->room = 1;
	rdmatensor_buffer_put(buffers[0], true);
	rdmatensor_buffer_put(buffers[2], true);
	KUNIT_EXPECT_EQ(test, number(take(bench, "y", 1)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, bench->freed, 3);
	rdmatensor_buffer_put(buffers[1], true);
	bench_close(test, bench);
}

/* Memory regions are counted by a cgroup, and idle buffers have some */
static void idle_ones_make_room_for_keys(struct kunit *test)
{
	struct bench *bench = bench_open(test, 10, 2, -EDQUOT);
	struct rdmatensor_buffer *a = take(bench, "a", 1), *b = take(bench, "b", 1);

	KUNIT_EXPECT_EQ(test, number(take(bench, "x", 1)), -EDQUOT);
	rdmatensor_buffer_put(a, true);
	a = take(bench, "x", 1);
	KUNIT_EXPECT_EQ(test, number(a), 3);
	KUNIT_EXPECT_EQ(test, bench->freed, 1);
	rdmatensor_buffer_put(a, true);
	rdmatensor_buffer_put(b, true);
	bench_close(test, bench);
}

/* An attempt costs as much as it asks for: it is not made once for each that is freed */
static void room_for_a_long_one(struct kunit *test)
{
	struct bench *bench = bench_open(test, 100, 100, -ENOMEM);
	struct rdmatensor_buffer *buffers[32];
	char name[] = "A";
	int i;

	bench->most = 40;
	for (i = 0; i < 32; i++, name[0]++)
		buffers[i] = take(bench, name, 1);
	for (i = 0; i < 32; i++)
		rdmatensor_buffer_put(buffers[i], true);
	bench->tried = 0;
	buffers[0] = take(bench, "long", 30);
	KUNIT_EXPECT_EQ(test, number(buffers[0]), 33);
	KUNIT_EXPECT_EQ(test, bench->tried, 2);
	/* As many as it is long, and no more */
	KUNIT_EXPECT_EQ(test, bench->freed, 30);
	rdmatensor_buffer_put(buffers[0], true);
	bench_close(test, bench);
}

static void other_errors_free_nothing(struct kunit *test)
{
	struct bench *bench = bench_open(test, 10, 1, -ENODEV);
	struct rdmatensor_buffer *buffer = take(bench, "a", 1);

	rdmatensor_buffer_put(buffer, true);
	KUNIT_EXPECT_EQ(test, number(take(bench, "b", 1)), -ENODEV);
	KUNIT_EXPECT_EQ(test, bench->freed, 0);
	/* What is there already serves on */
	KUNIT_EXPECT_PTR_EQ(test, take(bench, "a", 1), buffer);
	rdmatensor_buffer_put(buffer, true);
	bench_close(test, bench);
}

static void not_kept(struct kunit *test)
{
	struct bench *bench = bench_open(test, 1, 10, 0);
	struct rdmatensor_buffer *buffer = take(bench, "a", 1);

	rdmatensor_buffer_put(buffer, false);
	/* It is room at once, and free soon */
	buffer = take(bench, "a", 1);
	KUNIT_EXPECT_EQ(test, number(buffer), 2);
	flush_work(&bench->buffers.work);
	KUNIT_EXPECT_EQ(test, bench->freed, 1);
	rdmatensor_buffer_put(buffer, true);
	KUNIT_EXPECT_TRUE(test, make_room(bench));
	KUNIT_EXPECT_FALSE(test, make_room(bench));
	bench_close(test, bench);
}

static void count_one(struct rdmatensor_buffer *buffer)
{
	to_bench(buffer->buffers)->room++;
}

static void each_is_met(struct kunit *test)
{
	struct bench *bench = bench_open(test, 10, 10, 0);
	struct rdmatensor_buffer *busy = take(bench, "busy", 1);

	rdmatensor_buffer_put(take(bench, "idle", 1), true);
	rdmatensor_buffers_each(&bench->buffers, count_one);
	KUNIT_EXPECT_EQ(test, bench->room, 12);
	rdmatensor_buffer_put(busy, true);
	bench_close(test, bench);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(idle_one_serves_the_next),
	KUNIT_CASE(names_have_their_own),
	KUNIT_CASE(other_size_renews),
	KUNIT_CASE(not_more_than_the_most),
	KUNIT_CASE(idle_ones_make_room),
	KUNIT_CASE(idle_ones_make_room_for_keys),
	KUNIT_CASE(room_for_a_long_one),
	KUNIT_CASE(other_errors_free_nothing),
	KUNIT_CASE(not_kept),
	KUNIT_CASE(each_is_met),
	{}
};

static struct kunit_suite suite = {
	.name = "rdmatensor_buffer",
	.test_cases = cases,
};

kunit_test_suite(suite);
