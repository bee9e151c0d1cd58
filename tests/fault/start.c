// SPDX-License-Identifier: GPL-2.0
/*
 * START beside another START, and beside the device's removal: at each point at which the
 * one can meet the other, and after each failure. Whatever it meets, a START that says 0
 * leaves a context that works, and one that fails leaves a handle that can be started.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include "device.h"
#include "harness.h"
#include "hold.h"
#include "points.h"

static int handle(void)
{
	int fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static struct rdmatensor_start *start_args(struct rdmatensor_start *start)
{
	char addr[64];

	rdmatensor_start_init(start, "start");
	start->size = sizeof(*start);
	start->ring_entries = 64;
	test_addr(addr, sizeof(addr), 0);
	EQ(rdmatensor_start_listen(start, addr, NULL, 0), 0);
	return start;
}

/* Fails only when the device is known: a message buffer is at most 2 MiB on soft-RoCE */
static struct rdmatensor_start *bad_args(struct rdmatensor_start *start)
{
	start_args(start);
	start->msg_slots = 1024;
	start->queue_depth = 4096;
	return start;
}

static int start_now(int fd)
{
	struct rdmatensor_start start;

	return call(fd, RDMATENSOR_START, start_args(&start));
}

/* The context is started, its device is there, and memory can be registered */
static void works(int fd)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 1 << 20 };
	struct rdmatensor_query query = { .size = sizeof(query) };

	EQ(call(fd, RDMATENSOR_QUERY, &query), 0);
	EQ(query.flags, RDMATENSOR_QUERY_STARTED);
	CHECK(query.listen_port);
	EQ(call(fd, RDMATENSOR_POOL_CREATE, &create), 0);
}

static void not_started(int fd)
{
	struct rdmatensor_query query = { .size = sizeof(query) };

	EQ(call(fd, RDMATENSOR_QUERY, &query), 0);
	EQ(query.flags, 0);
}

TEST(start_waits_for_one_that_fails)
{
	struct rdmatensor_start bad, good;
	struct caller first, second;
	int fd = handle();

	hold_at("start_unbind");
	caller_begin(&first, fd, RDMATENSOR_START, bad_args(&bad));
	hold_wait();
	caller_begin(&second, fd, RDMATENSOR_START, start_args(&good));
	caller_sleeps(&second);
	not_started(fd);
	hold_go();
	EQ(caller_end(&first), -EINVAL);
	CHECK(strstr(bad.cause, "message buffer"));
	EQ(caller_end(&second), 0);
	works(fd);
	EQ(start_now(fd), -EISCONN);
	close(fd);
}

/* It has chosen the device, and has nothing on it */
TEST(device_goes_while_start_is_at_work)
{
	struct rdmatensor_start start;
	struct caller caller;
	int fd = handle();

	hold_at("start_bound");
	caller_begin(&caller, fd, RDMATENSOR_START, start_args(&start));
	hold_wait();
	/* The removal does not wait for START */
	EQ(device_del(), 0);
	hold_go();
	EQ(caller_end(&caller), -ENODEV);
	CHECK(strstr(start.cause, "removed meanwhile"));
	not_started(fd);
	EQ(start_now(fd), -ENODEV);
	not_started(fd);

	EQ(device_add(), 0);
	EQ(start_now(fd), 0);
	works(fd);
	close(fd);
}

/* As above, and the device is back before it looks: it is another one */
TEST(device_goes_and_comes_while_start_is_at_work)
{
	struct rdmatensor_start start;
	struct caller caller;
	int fd = handle();

	hold_at("start_bound");
	caller_begin(&caller, fd, RDMATENSOR_START, start_args(&start));
	hold_wait();
	EQ(device_del(), 0);
	EQ(device_add(), 0);
	hold_go();
	EQ(caller_end(&caller), -ENODEV);
	EQ(start_now(fd), 0);
	works(fd);
	close(fd);
}

TEST(device_goes_after_start_has_failed)
{
	struct rdmatensor_start start;
	struct caller caller;
	int fd = handle();

	hold_at("start_unbind");
	caller_begin(&caller, fd, RDMATENSOR_START, bad_args(&start));
	hold_wait();
	EQ(device_del(), 0);
	hold_go();
	EQ(caller_end(&caller), -EINVAL);

	EQ(device_add(), 0);
	EQ(start_now(fd), 0);
	works(fd);
	close(fd);
}

/* Return: whether START came to the module's n-th point of failure */
static int starts_at_point(int n)
{
	int fd = handle(), hit;

	point_set(n);
	start_now(fd);
	hit = point_hit();
	close(fd);
	return hit;
}

TEST(device_goes_after_start_has_failed_at_each_point)
{
	struct rdmatensor_start start;
	struct caller caller;
	int n, fd;

	for (n = 0; starts_at_point(n); n++) {
		fd = handle();
		hold_at("start_unbind");
		point_set(n);
		caller_begin(&caller, fd, RDMATENSOR_START, start_args(&start));
		hold_wait();
		CHECK(point_hit());
		EQ(device_del(), 0);
		hold_go();
		CHECK(caller_end(&caller) < 0);
		not_started(fd);
		EQ(device_add(), 0);
		EQ(start_now(fd), 0);
		works(fd);
		close(fd);
		test_alive();
	}
	printf("# %d points\n", n);
	CHECK(n > 0);
}

static void *closer(void *arg)
{
	close(*(int *)arg);
	return NULL;
}

/* The context has ended, and is still bound: the removal ends nothing a second time */
TEST(device_goes_while_the_context_closes)
{
	pthread_t thread;
	int fd = handle();

	EQ(start_now(fd), 0);
	works(fd);
	hold_at("close_stopped");
	EQ(pthread_create(&thread, NULL, closer, &fd), 0);
	hold_wait();
	EQ(device_del(), 0);
	hold_go();
	EQ(pthread_join(thread, NULL), 0);
	EQ(device_add(), 0);
	fd = handle();
	EQ(start_now(fd), 0);
	works(fd);
	close(fd);
}
