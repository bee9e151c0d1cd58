// SPDX-License-Identifier: GPL-2.0
/* A context of a domain has been told that the device goes, and destroys a pool beside it */
#include <pthread.h>
#include <unistd.h>
#include "device.h"
#include "harness.h"
#include "hold.h"

static struct side first, second;
static int domain;

static void join(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_domain(start, domain), 0);
}

static void *removal(void *arg)
{
	(void)arg;
	return (void *)(long)device_del();
}

/* The pool is unregistered once, and the device goes only after that */
TEST(a_pool_is_destroyed_while_the_device_goes)
{
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };
	struct rdmatensor_query query;
	struct caller held;
	pthread_t going;
	void *ret;

	side_open(&first, "first", 4 << 20, 1, NULL);
	EQ(rdmatensor_domain_create(first.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	side_open(&second, "second", 1 << 20, 1, join);
	side_connect(&second, &first);
	destroy.pool_id = first.pool.id;
	hold_at("pool_destroy");
	caller_begin(&held, rdmatensor_fd(first.rt), RDMATENSOR_POOL_DESTROY, &destroy);
	hold_wait();
	EQ(pthread_create(&going, NULL, removal, NULL), 0);
	/* Both contexts are told, and are stopped */
	do {
		usleep(1000);
		EQ(rdmatensor_query(second.rt, &query), 0);
	} while (!(query.flags & RDMATENSOR_QUERY_DEVICE_GONE));
	/* Most likely the removal waits for the pool now; if not, it will */
	usleep(200000);
	hold_go();
	EQ(caller_end(&held), 0);
	EQ(pthread_join(going, &ret), 0);
	EQ((long)ret, 0);
	close(domain);
	EQ(device_add(), 0);
}
