// SPDX-License-Identifier: GPL-2.0
/* max_pools holds for all threads together, at every moment; and all of it can be had */
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include "harness.h"

#define THREADS 8
#define LIMIT 5
#define ROUNDS 150

static struct side s;
/* Pools that are there for certain: counted after they were made, and off before they go */
static int pools, most, wrong, refused;

static void few_pools(struct rdmatensor_start *start)
{
	start->max_pools = LIMIT;
}

static int call(unsigned long cmd, void *arg)
{
	return ioctl(rdmatensor_fd(s.rt), cmd, arg) ? -errno : 0;
}

static void *maker(void *arg)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 4096 };
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };
	int i, now, ret;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		ret = call(RDMATENSOR_POOL_CREATE, &create);
		if (ret) {
			__atomic_fetch_add(ret == -EUSERS ? &refused : &wrong, 1, __ATOMIC_RELAXED);
			sched_yield();
			continue;
		}
		now = __atomic_add_fetch(&pools, 1, __ATOMIC_SEQ_CST);
		if (now > __atomic_load_n(&most, __ATOMIC_SEQ_CST))
			__atomic_store_n(&most, now, __ATOMIC_SEQ_CST);
		sched_yield();
		__atomic_fetch_sub(&pools, 1, __ATOMIC_SEQ_CST);
		destroy.pool_id = create.out_pool_id;
		if (call(RDMATENSOR_POOL_DESTROY, &destroy))
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST(pool_limit_of_many_threads)
{
	struct rdmatensor_pool held[LIMIT];
	pthread_t threads[THREADS];
	struct rdmatensor_query query;
	int i;

	pools = 1;
	most = wrong = refused = 0;
	side_open(&s, "pools", 4096, 0, few_pools);
	for (i = 0; i < THREADS; i++)
		EQ(pthread_create(&threads[i], NULL, maker, NULL), 0);
	for (i = 0; i < THREADS; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	printf("# at most %d of %d pools, %d times refused\n", most, LIMIT, refused);
	EQ(wrong, 0);
	CHECK(most <= LIMIT);
	EQ(rdmatensor_query(s.rt, &query), 0);
	EQ(query.pools, 1);

	/* No place has been lost */
	for (i = 0; i < LIMIT - 1; i++)
		EQ(rdmatensor_pool_create(s.rt, 4096, &held[i]), 0);
	EQ(rdmatensor_pool_create(s.rt, 4096, &held[i]), -EUSERS);
	EQ(rdmatensor_pool_destroy(s.rt, &held[0]), 0);
	EQ(rdmatensor_pool_create(s.rt, 4096, &held[0]), 0);
}
