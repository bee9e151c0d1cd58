// SPDX-License-Identifier: GPL-2.0
/* How fetches end otherwise: cancel, deadline, too small, channels that go */
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

static struct pair p;

TEST(unknown_name_times_out)
{
	struct rdmatensor_cqe cqe;
	uint64_t at, t0 = rdmatensor_now_ns();

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 64);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "nobody", 0, &p.b.pool, at, 64,
			    rdmatensor_deadline_ms(200), &cqe), -ETIMEDOUT);
	CHECK(rdmatensor_now_ns() - t0 >= 200 * 1000000ull);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_CANCELS), 1);
	/* A deadline in the past */
	at = side_alloc(&p.b, 64);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "nobody", 0, &p.b.pool, at, 64, 1, &cqe),
	   -ETIMEDOUT);
	/* The peer has forgotten them: what it publishes now stays */
	publish(&p.a, "nobody", 0, 64, 1, 1, 9);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 9, 50);
	EQ(fetch(&p.b, "nobody", 0, 64, NULL, &cqe), 0);
}

TEST(cancel)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;
	int i;

	pair_open(&p, 8 << 20, NULL);
	rdmatensor_prep_cancel(&op, 77);
	EQ(side_do(&p.b, &op), -ENOENT);

	at = side_alloc(&p.b, 4 << 20);
	rdmatensor_prep_fetch(&op, p.b.channel, "c", 0, p.b.pool.id, at, 4 << 20, 0, 1);
	EQ(side_do(&p.b, &op), 0);
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), -ECANCELED);

	/* Races with the content: it ends once, one way or the other */
	publish(&p.a, "c", 1, 4 << 20, 1, 0, 2);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "c", 1, &p.b.pool, at, 4 << 20, 0, &cqe), 0);
	for (i = 0; i < 50; i++) {
		int ret, result;

		memset(side_at(&p.b, at), 0xee, 4 << 20);
		rdmatensor_prep_fetch(&op, p.b.channel, "c", 1, p.b.pool.id, at, 4 << 20, 0,
				      100 + i);
		EQ(side_do(&p.b, &op), 0);
		usleep(i * 100);
		rdmatensor_prep_cancel(&op, 100 + i);
		ret = side_do(&p.b, &op);
		CHECK(ret == 0 || ret == -ENOENT);
		result = side_next(&p.b, RDMATENSOR_CQE_FETCH, 100 + i, &cqe);
		CHECK(result == 0 || result == -ECANCELED);
		if (!result) {
			CHECK(filled(side_at(&p.b, at), 4 << 20, 1));
		} else {
			/* Handed back: nothing is written any more */
			memset(side_at(&p.b, at), 0x55, 4 << 20);
			usleep(2000);
			CHECK(side_at(&p.b, at)[0] == 0x55);
			CHECK(side_at(&p.b, at)[(4 << 20) - 1] == 0x55);
			CHECK(!memcmp(side_at(&p.b, at), side_at(&p.b, at) + 1,
				      (4 << 20) - 1));
		}
		side_none(&p.b, RDMATENSOR_CQE_FETCH, 100 + i, 0);
	}
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
}

TEST(destination_too_small)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;
	int i;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "s", 0, 1000, 1, 1, 1);
	at = side_alloc(&p.b, 2048);
	memset(side_at(&p.b, at), 0x77, 2048);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "s", 0, &p.b.pool, at, 999,
			    rdmatensor_deadline_ms(9000), &cqe), -EMSGSIZE);
	CHECK(cqe.flags & RDMATENSOR_CQE_META);
	EQ(cqe.tensor_bytes, 1000);
	EQ(cqe.dims[0], 1000);
	for (i = 0; i < 2048; i++)
		EQ(side_at(&p.b, at)[i], 0x77);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "s", 0, p.b.pool.id, 500, 0, 3);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), -EMSGSIZE);
	/* Known by now, and still too small; the tensor is still there */
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "s", 0, &p.b.pool, at, 0,
			    rdmatensor_deadline_ms(9000), &cqe), -EMSGSIZE);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 30);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "s", 0, &p.b.pool, at, 1000,
			    rdmatensor_deadline_ms(9000), &cqe), 0);
	CHECK(filled(side_at(&p.b, at), 1000, 1));
	EQ(side_at(&p.b, at)[1000], 0x77);
}

TEST(pool_full)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, 65536, NULL);
	publish(&p.a, "s", 0, 40000, 1, 1, 1);
	at = side_alloc(&p.b, 40000);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "s", 0, p.b.pool.id, 0, 0, 3);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), -ENOSPC);
	EQ(cqe.tensor_bytes, 40000);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
	CHECK(filled(side_at(&p.b, cqe.offset), 40000, 1));
}

static void small_ring(struct rdmatensor_start *start)
{
	start->ring_entries = 16;
}

TEST(ring_overrun_is_back_pressure)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;
	int n = 0, i, ret;

	pair_open(&p, 1 << 20, small_ring);
	at = side_alloc(&p.b, 64 * 64);
	publish(&p.a, "r", 0, 64, 1, 0, 0);
	/* Never reaped: refused when 16, less one for the channel, are promised */
	for (;;) {
		rdmatensor_prep_fetch(&op, p.b.channel, "r", 0, p.b.pool.id, at + n * 64, 64, 0,
				      n);
		ret = side_do(&p.b, &op);
		if (ret)
			break;
		n++;
	}
	EQ(ret, -EAGAIN);
	EQ(n, 15);
	for (i = 0; i < n; i++)
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, i, &cqe), 0);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, n, &cqe), 0);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, n, 0);
}

TEST(disconnect_gives_back)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at, i;

	pair_open(&p, 32 << 20, NULL);
	publish(&p.a, "big", 0, 8 << 20, 1, 1, 1);
	at = side_alloc(&p.b, 16 << 20);
	rdmatensor_prep_fetch(&op, p.b.channel, "big", 0, p.b.pool.id, at, 8 << 20, 0, 1);
	EQ(side_do(&p.b, &op), 0);
	rdmatensor_prep_fetch(&op, p.b.channel, "none", 0, p.b.pool.id, at + (8 << 20), 64, 0, 2);
	EQ(side_do(&p.b, &op), 0);
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
	i = side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL) == 0;
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, NULL), -ESHUTDOWN);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe), -ESHUTDOWN);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe), -ECONNRESET);
	EQ(side_do(&p.b, &op), -ENOTCONN);
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), -ENOENT);

	side_connect(&p.b, &p.a);
	if (!i) {
		/* Not delivered, so still published */
		EQ(fetch(&p.b, "big", 0, 8 << 20, &at, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), 8 << 20, 1));
	}
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
}

TEST(peer_is_killed)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	int fds[2], i, ended = 0;
	uint32_t port;
	uint64_t at;
	pid_t pid;

	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		side_open(&p.a, "a", 8 << 20, 1, NULL);
		publish(&p.a, "t", 0, 4 << 20, 1, 0, 0);
		if (write(fds[1], &p.a.port, sizeof(port)) != sizeof(port))
			_exit(1);
		for (;;)
			pause();
	}
	EQ(read(fds[0], &port, sizeof(port)), sizeof(port));
	side_open(&p.b, "b", 64 << 20, 1, NULL);
	p.a.port = port;
	side_connect(&p.b, &p.a);
	at = side_alloc(&p.b, 8 * (4 << 20));
	for (i = 0; i < 8; i++) {
		rdmatensor_prep_fetch(&op, p.b.channel, i ? "t" : "never", 0, p.b.pool.id,
				      at + (uint64_t)i * (4 << 20), 4 << 20, 0, i);
		EQ(side_do(&p.b, &op), 0);
	}
	usleep(20000);
	kill(pid, SIGKILL);
	for (i = 0; i < 8; i++) {
		int ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, i, NULL);

		CHECK(ret == 0 || ret == -ECONNRESET);
		ended += ret != 0;
	}
	CHECK(ended >= 1);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe), -ECONNRESET);
	waitpid(pid, NULL, 0);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);

	/* Another one in its place */
	side_open(&p.a, "a", 8 << 20, 1, NULL);
	side_connect(&p.b, &p.a);
	publish(&p.a, "t", 0, 1000, 2, 1, 1);
	EQ(fetch(&p.b, "t", 0, 1000, &at, &cqe), 0);
	CHECK(filled(side_at(&p.b, at), 1000, 2));
}

TEST(poll_wakes)
{
	struct pollfd pfd = { .events = POLLIN };
	struct rdmatensor_op op;

	pair_open(&p, 1 << 20, NULL);
	pfd.fd = rdmatensor_fd(p.b.rt);
	EQ(poll(&pfd, 1, 0), 0);
	rdmatensor_prep_fetch(&op, p.b.channel, "p", 0, p.b.pool.id, side_alloc(&p.b, 64), 64, 0,
			      1);
	EQ(side_do(&p.b, &op), 0);
	EQ(poll(&pfd, 1, 50), 0);
	publish(&p.a, "p", 0, 64, 1, 1, 1);
	EQ(poll(&pfd, 1, 10000), 1);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	EQ(poll(&pfd, 1, 0), 0);
}

TEST(connect_errors_name_their_cause)
{
	char cause[256], addr[64];
	uint32_t channel;

	pair_open(&p, 1 << 20, NULL);
	snprintf(addr, sizeof(addr), "%s:1", test_ip());
	EQ(rdmatensor_connect(p.b.rt, addr, NULL, 300, &channel, cause, sizeof(cause)),
	   -ECONNREFUSED);
	CHECK(strstr(cause, "nobody listens"));
	snprintf(addr, sizeof(addr), "%s:%u", test_ip(), p.a.port);
	EQ(rdmatensor_connect(p.b.rt, addr, "other", 0, &channel, cause, sizeof(cause)),
	   -ENOENT);
	CHECK(strstr(cause, "'a'") && strstr(cause, "'other'"));
	EQ(rdmatensor_connect(p.b.rt, addr, "a", 0, &channel, cause, sizeof(cause)), 0);
	/* Nobody at that address of the wire */
	CHECK(rdmatensor_connect(p.b.rt, "10.0.0.77:7000", NULL, 1500, &channel, cause,
				 sizeof(cause)) < 0);
	CHECK(cause[0]);
	CHECK(rdmatensor_connect(p.b.rt, "192.0.2.1:7000", NULL, 1500, &channel, cause,
				 sizeof(cause)) < 0);
	CHECK(cause[0]);
}

/* Whether the guest's device asks for hardware addresses; a dummy does not. Return: whether it did */
static bool ask_neighbours(bool ask)
{
	const char *netdev = getenv("LAB_NETDEV");
	unsigned int flags = 0;
	char text[128];
	FILE *file;

	snprintf(text, sizeof(text), "/sys/class/net/%s/flags", netdev);
	file = fopen(text, "r");
	CHECK(file && fscanf(file, "%x", &flags) == 1);
	fclose(file);
	snprintf(text, sizeof(text), "ip link set dev %s arp %s", netdev, ask ? "on" : "off");
	EQ(system(text), 0);
	return !(flags & IFF_NOARP);
}

TEST(connect_to_an_address_that_nobody_has)
{
	char cause[256];
	uint32_t channel;
	bool asked;
	int ret;

	side_open(&p.b, "b", 4096, 0, NULL);
	asked = ask_neighbours(true);
	ret = rdmatensor_connect(p.b.rt, "10.0.0.77:7000", NULL, 1500, &channel, cause,
				 sizeof(cause));
	ask_neighbours(asked);
	EQ(ret, -EHOSTUNREACH);
	CHECK(strstr(cause, "no neighbour"));
}

/* @ret: what came of the connect that runs meanwhile; @done: it has ended */
struct waiting {
	char cause[256];
	int ret;
	bool done;
};

static void *connect_to_what_goes(void *arg)
{
	struct waiting *waiting = arg;
	uint32_t channel;

	waiting->ret = rdmatensor_connect(p.b.rt, "10.0.0.78:7999", NULL, 2500, &channel,
					  waiting->cause, sizeof(waiting->cause));
	__atomic_store_n(&waiting->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Packets that the device has received: connection requests, and refusals */
static long packets(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/rcvd_pkts",
		 getenv("LAB_RDMA_DEV"));
	return number_in(path, "", "");
}

/* The last try, which the deadline cuts in the resolution of the address, hides none before it */
TEST(connect_to_an_address_that_goes)
{
	struct waiting waiting = { .done = false };
	sigset_t all, before_all;
	char text[128];
	pthread_t thread;
	bool asked;
	long before;
	FILE *ip;

	snprintf(text, sizeof(text), "ip addr add 10.0.0.78/24 dev %s", getenv("LAB_NETDEV"));
	EQ(system(text), 0);
	side_open(&p.b, "b", 4096, 0, NULL);
	asked = ask_neighbours(true);
	ip = popen("ip -batch -", "w");
	CHECK(ip);
	before = packets();
	/* The shell's end would interrupt it */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before_all);
	EQ(pthread_create(&thread, NULL, connect_to_what_goes, &waiting), 0);
	pthread_sigmask(SIG_SETMASK, &before_all, NULL);
	/*
	 * Five tries have been refused by then, each by one packet, and the pause before the next is
	 * 160 ms or more. The address goes in that pause: soft-RoCE that has a connection message to
	 * send from an address that is gone ends its management queue pair, and no CONNECT to it
	 * succeeds any more
	 */
	while (packets() < before + 10)
		CHECK(!__atomic_load_n(&waiting.done, __ATOMIC_ACQUIRE));
	fprintf(ip, "addr del 10.0.0.78/24 dev %s\n", getenv("LAB_NETDEV"));
	EQ(pclose(ip), 0);
	pthread_join(thread, NULL);
	ask_neighbours(asked);
	EQ(waiting.ret, -ECONNREFUSED);
	CHECK(strstr(waiting.cause, "nobody listens"));
}

static void two_channels(struct rdmatensor_start *start)
{
	start->max_channels = 2;
}

TEST(channel_limit)
{
	char cause[256], addr[64];
	uint32_t one, two, three;
	int i;

	side_open(&p.a, "a", 4096, 1, two_channels);
	side_open(&p.b, "b", 4096, 0, NULL);
	snprintf(addr, sizeof(addr), "%s:%u", test_ip(), p.a.port);
	EQ(rdmatensor_connect(p.b.rt, addr, NULL, 0, &one, cause, sizeof(cause)), 0);
	EQ(rdmatensor_connect(p.b.rt, addr, NULL, 0, &two, cause, sizeof(cause)), 0);
	/* Each time the peer's reason, whatever else ends with the attempt */
	for (i = 0; i < 50; i++) {
		EQ(rdmatensor_connect(p.b.rt, addr, NULL, 0, &three, cause, sizeof(cause)),
		   -EUSERS);
		CHECK(strstr(cause, "max_channels"));
	}
	EQ(rdmatensor_disconnect(p.b.rt, one), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(rdmatensor_connect(p.b.rt, addr, NULL, 0, &three, cause, sizeof(cause)), 0);
}
