// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that is killed, and a device that is taken away, at any moment: the survivor's
 * fetches end, what was not delivered is still there, and a new beginning works.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "crash.h"
#include "harness.h"

#define FETCHES 12
#define OFFERS 12

static struct pair p;

static uint64_t size_of(int i)
{
	return i % 3 ? 1000 : 3 << 20;
}

/* The one that will be killed: serves, fetches, connects again, until it is */
static void victim(int fd)
{
	static const char all_there[] = "x";
	struct rdmatensor_op op;
	char name[16];
	uint64_t at;
	int i, n;

	side_connect(&p.b, &p.a);
	at = side_alloc(&p.b, 3 << 20);
	for (i = 0; i < FETCHES; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		publish(&p.b, name, 0, size_of(i), i, 0, i);
	}
	if (write(fd, all_there, 1) != 1)
		_exit(1);
	for (n = 0; ; n++) {
		struct rdmatensor_pool pool;
		struct rdmatensor_cqe cqe;

		snprintf(name, sizeof(name), "a%d", n % OFFERS);
		rdmatensor_prep_fetch(&op, p.b.channel, name, 0, p.b.pool.id, at, 3 << 20,
				      rdmatensor_deadline_ms(20), n);
		if (rdmatensor_run(p.b.rt, &op, &cqe))
			continue;
		if (!rdmatensor_pool_create(p.b.rt, 4 << 20, &pool))
			rdmatensor_pool_destroy(p.b.rt, &pool);
	}
}

static void one_killing(int round)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t channel;
	char name[16], c;
	uint64_t to, from;
	int fds[2], i;
	pid_t pid;

	CHECK(!pipe(fds));
	memset(&p, 0, sizeof(p));
	side_open(&p.a, "a", 96 << 20, 1, NULL);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		/* Its own context: the parent's is the parent's */
		uint32_t port = p.a.port;

		memset(&p, 0, sizeof(p));
		p.a.port = port;
		side_open(&p.b, "b", 24 << 20, 1, NULL);
		victim(fds[1]);
	}
	close(fds[1]);
	for (i = 0; i < OFFERS; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		publish(&p.a, name, 0, size_of(i), i, 1, i);
	}
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	channel = cqe.channel;
	EQ(read(fds[0], &c, 1), 1);
	close(fds[0]);
	to = side_alloc(&p.a, FETCHES * (uint64_t)(3 << 20));
	for (i = 0; i < FETCHES; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		rdmatensor_prep_fetch(&op, channel, name, 0, p.a.pool.id,
				      to + (uint64_t)i * (3 << 20), 3 << 20, 0, 100 + i);
		EQ(side_do(&p.a, &op), 0);
	}
	any_moment(60000);
	kill(pid, SIGKILL);

	for (i = 0; i < FETCHES; i++) {
		int ret = side_next(&p.a, RDMATENSOR_CQE_FETCH, 100 + i, NULL);

		CHECK(ret == 0 || ret == -ECONNRESET);
		if (!ret)
			CHECK(filled(side_at(&p.a, to + (uint64_t)i * (3 << 20)), size_of(i), i));
	}
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	waitpid(pid, NULL, 0);
	/* Delivered, or still there */
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, to), 0);
	for (i = 0; i < OFFERS; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		rdmatensor_prep_withdraw(&op, name, 0, i);
		if (!side_do(&p.a, &op)) {
			EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, i, NULL), 0);
			EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, i, NULL), -ECANCELED);
		} else {
			EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, i, NULL), 0);
		}
	}
	/* A new one in its place */
	side_open(&p.b, "b", 1 << 20, 0, NULL);
	side_connect(&p.b, &p.a);
	from = publish(&p.a, "new", round, 5000, 1, 1, 1);
	EQ(fetch(&p.b, "new", round, 5000, &to, &cqe), 0);
	CHECK(filled(side_at(&p.b, to), 5000, 1));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, from), 0);
	side_close(&p.b);
	side_close(&p.a);
}

TEST(peers_are_killed_at_any_moment)
{
	long rounds = amount("CRASH_KILLS", 16), i;

	for (i = 0; i < rounds; i++) {
		one_killing(i);
		test_alive();
	}
	printf("# %ld killed\n", rounds);
}

static atomic_int going_on;
static atomic_long connected, refused;

/* Connects, makes pools, as fast as it goes, whatever comes of it */
static void *restless(void *arg)
{
	(void)arg;
	while (atomic_load(&going_on)) {
		struct rdmatensor_pool pool;
		char addr[64], cause[160];
		uint32_t channel;

		test_addr(addr, sizeof(addr), p.a.port);
		if (!rdmatensor_connect(p.b.rt, addr, NULL, 2000, &channel, cause,
					sizeof(cause))) {
			atomic_fetch_add(&connected, 1);
			rdmatensor_disconnect(p.b.rt, channel);
		} else {
			atomic_fetch_add(&refused, 1);
		}
		if (!rdmatensor_pool_create(p.b.rt, 4 << 20, &pool))
			rdmatensor_pool_destroy(p.b.rt, &pool);
	}
	return NULL;
}

static void one_unplugging(void)
{
	const char *netdev = getenv("LAB_NETDEV"), *device = getenv("LAB_RDMA_DEV");
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	char command[200];
	pthread_t thread;
	uint64_t to;
	int i, ret;

	CHECK(netdev && device);
	pair_open(&p, 64 << 20, NULL);
	publish(&p.a, "x", 0, 3 << 20, 1, 0, 0);
	publish(&p.a, "undelivered", 0, 100, 2, 1, 50);
	to = side_alloc(&p.b, FETCHES * (uint64_t)(3 << 20));
	going_on = 1;
	CHECK(!pthread_create(&thread, NULL, restless, NULL));
	for (i = 0; i < FETCHES; i++) {
		rdmatensor_prep_fetch(&op, p.b.channel, i ? "x" : "never", 0, p.b.pool.id,
				      to + (uint64_t)i * (3 << 20), 3 << 20, 0, 1000 + i);
		EQ(side_do(&p.b, &op), 0);
	}
	any_moment(60000);
	snprintf(command, sizeof(command), "rdma link delete %s", device);
	EQ(system(command), 0);

	for (i = 0; i < FETCHES; i++) {
		ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 1000 + i, NULL);
		CHECK(ret == 0 || ret == -ENODEV || ret == -ECONNRESET);
	}
	going_on = 0;
	CHECK(!pthread_join(thread, NULL));
	/* Nothing of the device is left, everything of the context is */
	ret = rdmatensor_pool_create(p.b.rt, 4096, &(struct rdmatensor_pool){ 0 });
	EQ(ret, -ENODEV);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "undelivered", 0, p.a.pool.id,
			      side_alloc(&p.a, 100), 100, rdmatensor_deadline_ms(20000), 9);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 9, &cqe), 0);
	CHECK(filled(side_at(&p.a, cqe.offset), 100, 2));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 50, NULL), 0);
	side_close(&p.a);
	side_close(&p.b);
	snprintf(command, sizeof(command), "rdma link add %s type rxe netdev %s", device, netdev);
	EQ(system(command), 0);
}

TEST(devices_are_unplugged_at_any_moment)
{
	long rounds = amount("CRASH_UNPLUGS", 6), i;

	for (i = 0; i < rounds; i++) {
		one_unplugging();
		test_alive();
	}
	printf("# %ld unplugged, %ld connects made and %ld refused meanwhile\n", rounds,
	       atomic_load(&connected), atomic_load(&refused));
	/* As good as new */
	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "x", 0, 1000, 1, 1, 1);
	EQ(fetch(&p.b, "x", 0, 1000, NULL, &(struct rdmatensor_cqe){ 0 }), 0);
}
