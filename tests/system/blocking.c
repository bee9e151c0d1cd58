// SPDX-License-Identifier: GPL-2.0
/* The library's blocking calls: many threads on one handle, and signals */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define THREADS 8
#define ROUNDS 200
#define TENSOR 4096

static struct pair p;

struct caller {
	pthread_t thread;
	unsigned int nr;
	uint64_t at;
	int ret;
	unsigned int good;
};

/* A check here would end the test in this thread: the caller counts instead */
static void *fetch_and_publish(void *arg)
{
	struct caller *caller = arg;
	uint64_t dim = TENSOR;
	struct rdmatensor_cqe cqe;
	char name[16];
	int i;

	snprintf(name, sizeof(name), "own%u", caller->nr);
	for (i = 0; i < ROUNDS && !caller->ret; i++) {
		uint64_t deadline = rdmatensor_deadline_ms(20000);

		memset(side_at(&p.b, caller->at), 0, TENSOR);
		caller->ret = rdmatensor_fetch(p.b.rt, p.b.channel, i % 2 ? "x" : "y", 0,
					       &p.b.pool, caller->at, TENSOR, deadline, &cqe);
		caller->good += filled(side_at(&p.b, caller->at), TENSOR, i % 2 ? 1 : 2);
		/* What nobody takes, so that ends by deadlines lie among the others */
		if (i % 20U == caller->nr && !caller->ret)
			caller->ret = rdmatensor_publish(p.b.rt, name, i, &p.b.pool, caller->at,
							 TENSOR, RDMATENSOR_DT_UINT8, 1, &dim, 1,
							 rdmatensor_deadline_ms(1)) != -ETIMEDOUT;
	}
	return NULL;
}

/* Each gets its own end, and one that reaps beside them all of the others, once each */
TEST(blocking_calls_of_many_threads)
{
	struct caller callers[THREADS] = {};
	unsigned char seen[ROUNDS] = {};
	struct rdmatensor_cqe cqes[4];
	struct rdmatensor_op op;
	unsigned int i, n, got = 0;
	uint64_t at;

	pair_open(&p, 4 << 20, NULL);
	publish(&p.a, "x", 0, TENSOR, 1, 0, 1);
	publish(&p.a, "y", 0, TENSOR, 2, 0, 2);
	at = side_alloc(&p.b, TENSOR);
	for (i = 0; i < THREADS; i++) {
		callers[i].nr = i;
		callers[i].at = side_alloc(&p.b, TENSOR);
		EQ(pthread_create(&callers[i].thread, NULL, fetch_and_publish, &callers[i]), 0);
	}
	for (i = 0; i < ROUNDS || got < ROUNDS;) {
		if (i < ROUNDS) {
			rdmatensor_prep_fetch(&op, p.b.channel, "x", 0, p.b.pool.id, at, TENSOR,
					      rdmatensor_deadline_ms(20000), i);
			i += !rdmatensor_submit(p.b.rt, &op, 1, 0, 0, NULL);
		}
		EQ(rdmatensor_wait(p.b.rt, 1, rdmatensor_deadline_ms(20000)), 0);
		for (n = rdmatensor_reap(p.b.rt, cqes, 4); n--; got++) {
			CHECK(cqes[n].type == RDMATENSOR_CQE_FETCH && !cqes[n].result);
			CHECK(cqes[n].user_data < ROUNDS && !seen[cqes[n].user_data]++);
		}
	}
	for (i = 0; i < THREADS; i++) {
		EQ(pthread_join(callers[i].thread, NULL), 0);
		EQ(callers[i].ret, 0);
		EQ(callers[i].good, ROUNDS);
	}
	EQ(rdmatensor_ready(p.b.rt), 0);
}

static void *fetch_later(void *arg)
{
	struct caller *caller = arg;
	struct rdmatensor_cqe cqe;

	caller->ret = rdmatensor_fetch(p.b.rt, p.b.channel, "later", 0, &p.b.pool, caller->at,
				       TENSOR, rdmatensor_deadline_ms(5000), &cqe);
	return NULL;
}

/* What it has found in the ring when it began may be gone when its own end comes */
TEST(blocking_call_beside_one_that_reaps)
{
	struct caller caller = {};
	struct rdmatensor_cqe cqes[3];
	struct rdmatensor_op op;
	uint64_t submits;
	unsigned int i;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < 3; i++) {
		rdmatensor_prep_fetch_alloc(&op, p.b.channel, "nobody", 0, p.b.pool.id, TENSOR,
					    rdmatensor_deadline_ms(1), i);
		EQ(side_do(&p.b, &op), 0);
	}
	EQ(rdmatensor_wait(p.b.rt, 3, rdmatensor_deadline_ms(20000)), 0);
	caller.at = side_alloc(&p.b, TENSOR);
	submits = side_stat(&p.b, RDMATENSOR_STAT_SUBMITS);
	EQ(pthread_create(&caller.thread, NULL, fetch_later, &caller), 0);
	while (side_stat(&p.b, RDMATENSOR_STAT_SUBMITS) == submits)
		usleep(1000);
	EQ(rdmatensor_reap(p.b.rt, cqes, 3), 3);
	publish(&p.a, "later", 0, TENSOR, 5, 0, 1);
	EQ(pthread_join(caller.thread, NULL), 0);
	EQ(caller.ret, 0);
	CHECK(filled(side_at(&p.b, caller.at), TENSOR, 5));
}

static void nothing(int sig)
{
	(void)sig;
}

static void *fetch_nothing(void *arg)
{
	struct caller *caller = arg;
	struct rdmatensor_cqe cqe;

	caller->ret = rdmatensor_fetch(p.b.rt, p.b.channel, "nobody", 0, &p.b.pool, caller->at,
				       TENSOR, caller->nr ? rdmatensor_deadline_ms(caller->nr) : 0,
				       &cqe);
	return NULL;
}

static void *publish_for_nobody(void *arg)
{
	struct caller *caller = arg;
	uint64_t dim = TENSOR;

	caller->ret = rdmatensor_publish(p.b.rt, "mine", 0, &p.b.pool, caller->at, TENSOR,
					 RDMATENSOR_DT_UINT8, 1, &dim, 1, 0);
	return NULL;
}

/* A signal each 10 ms, until the call has ended. Return: its result */
static int interrupt(void *(*call)(void *), unsigned int ms)
{
	struct caller caller = { .nr = ms, .at = side_alloc(&p.b, TENSOR) };
	struct rdmatensor_op op;
	struct timespec ts;
	int ret;

	EQ(pthread_create(&caller.thread, NULL, call, &caller), 0);
	do {
		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += 10000000;
		if (ts.tv_nsec >= 1000000000) {
			ts.tv_sec++;
			ts.tv_nsec -= 1000000000;
		}
		ret = pthread_timedjoin_np(caller.thread, NULL, &ts);
		if (ret)
			pthread_kill(caller.thread, SIGUSR1);
	} while (ret);
	/* Whatever has ended it, the region is the caller's */
	rdmatensor_prep_free(&op, p.b.pool.id, caller.at);
	EQ(side_do(&p.b, &op), p.b.whole ? -ENOENT : 0);
	EQ(rdmatensor_ready(p.b.rt), 0);
	return caller.ret;
}

TEST(blocking_calls_that_end_by_a_signal)
{
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGUSR1, &action, NULL);
	pair_open(&p, 1 << 20, NULL);
	EQ(interrupt(fetch_nothing, 200), -ETIMEDOUT);
	rdmatensor_interruptible(p.b.rt, 1);
	EQ(interrupt(fetch_nothing, 0), -EINTR);
	EQ(interrupt(publish_for_nobody, 0), -EINTR);
	/* It was withdrawn, so that it can be published again */
	EQ(interrupt(publish_for_nobody, 0), -EINTR);
	rdmatensor_interruptible(p.b.rt, 0);
	EQ(interrupt(fetch_nothing, 200), -ETIMEDOUT);
}

struct waiter {
	uint32_t head;
	unsigned int ms;
	int ret;
};

static void *wait_for_head(void *arg)
{
	struct waiter *waiter = arg;
	struct rdmatensor_submit submit = {
		.size = sizeof(submit), .flags = RDMATENSOR_SUBMIT_HEAD,
		.wait_head = waiter->head, .deadline_ns = rdmatensor_deadline_ms(waiter->ms),
	};

	waiter->ret = ioctl(rdmatensor_fd(p.b.rt), RDMATENSOR_SUBMIT, &submit) ? -errno : 0;
	return NULL;
}

/* Who waits for the head does not care for what others have taken out of the ring meanwhile */
TEST(wait_for_a_head)
{
	struct waiter waiter = { .ms = 20000 };
	struct rdmatensor_ring *ring;
	struct rdmatensor_cqe cqe;
	pthread_t thread;
	unsigned int i;

	pair_open(&p, 1 << 20, NULL);
	ring = mmap(NULL, 4096, PROT_READ, MAP_SHARED, rdmatensor_fd(p.b.rt),
		    RDMATENSOR_MMAP_RING);
	CHECK(ring != MAP_FAILED);
	for (i = 0; i < 3; i++) {
		struct rdmatensor_op op;

		rdmatensor_prep_fetch_alloc(&op, p.b.channel, "nobody", 0, p.b.pool.id, TENSOR,
					    rdmatensor_deadline_ms(1), i);
		EQ(side_do(&p.b, &op), 0);
	}
	EQ(rdmatensor_wait(p.b.rt, 3, rdmatensor_deadline_ms(20000)), 0);
	/* Come to, and past */
	waiter.head = ring->head;
	wait_for_head(&waiter);
	EQ(waiter.ret, 0);
	waiter.head = ring->head - 2;
	wait_for_head(&waiter);
	EQ(waiter.ret, 0);
	waiter.head = ring->head + 1;
	waiter.ms = 50;
	wait_for_head(&waiter);
	EQ(waiter.ret, -ETIME);

	waiter.ms = 20000;
	EQ(pthread_create(&thread, NULL, wait_for_head, &waiter), 0);
	for (i = 0; i < 3; i++)
		EQ(rdmatensor_reap(p.b.rt, &cqe, 1), 1);
	/* Whose entry the library takes as well */
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "nobody", 0, &p.b.pool, RDMATENSOR_ALLOC, 0,
			    rdmatensor_deadline_ms(1), &cqe), -ETIMEDOUT);
	EQ(pthread_join(thread, NULL), 0);
	EQ(waiter.ret, 0);
	munmap(ring, 4096);
}
