// SPDX-License-Identifier: GPL-2.0
/* START on one handle by several threads, beside contexts that come and go on the same device */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "harness.h"

#define STARTERS 4
#define SECONDS 8
/*
 * Lockdep has 8192 classes. Each START takes five, for the context's workqueues, and they come back
 * some grace periods after the START has failed or the context has gone. A fast machine would use
 * them up: so many of each kind
 */
#define LOCKDEP_STARTS 600

static struct {
	int fd;
	int stop;
	unsigned long most;
	/* Those that succeed, and those that fail */
	unsigned long calls[2];
	int unexpected;
} starts;

static int start(int fd, int bad)
{
	struct rdmatensor_start start;

	rdmatensor_start_init(&start, "starts");
	start.size = sizeof(start);
	start.ring_entries = 64;
	if (bad) {
		/* Fails when the device has been chosen: its message buffers are too long */
		start.msg_slots = 1024;
		start.queue_depth = 4096;
	}
	return ioctl(fd, RDMATENSOR_START, &start) ? -errno : 0;
}

static void expect(int got, int want)
{
	int none = 0;

	if (got != want)
		__atomic_compare_exchange_n(&starts.unexpected, &none, got ? got : 1, 0,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void *starter(void *arg)
{
	while (!__atomic_load_n(&starts.stop, __ATOMIC_RELAXED)) {
		int fd;

		if (__atomic_add_fetch(&starts.calls[(long)arg % 2], 1, __ATOMIC_RELAXED) > starts.most)
			break;
		if ((long)arg % 2) {
			expect(start(starts.fd, 1), -EINVAL);
			continue;
		}
		fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);
		expect(fd < 0, 0);
		expect(start(fd, 0), 0);
		close(fd);
	}
	return NULL;
}

TEST(starts_of_many_threads)
{
	pthread_t threads[STARTERS];
	struct timespec until;
	long i;

	memset(&starts, 0, sizeof(starts));
	starts.most = access("/proc/lockdep_stats", F_OK) ? ULONG_MAX : LOCKDEP_STARTS;
	starts.fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);
	CHECK(starts.fd >= 0);
	for (i = 0; i < STARTERS; i++)
		EQ(pthread_create(&threads[i], NULL, starter, (void *)i), 0);
	EQ(clock_gettime(CLOCK_MONOTONIC, &until), 0);
	until.tv_sec += SECONDS;
	for (i = 0; i < STARTERS &&
	     !pthread_clockjoin_np(threads[i], NULL, CLOCK_MONOTONIC, &until); i++)
		;
	__atomic_store_n(&starts.stop, 1, __ATOMIC_RELAXED);
	for (; i < STARTERS; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	printf("# %lu STARTs, and %lu that fail\n", starts.calls[0], starts.calls[1]);
	CHECK(starts.calls[0] >= 50 && starts.calls[1] >= 50);
	EQ(starts.unexpected, 0);
	EQ(start(starts.fd, 0), 0);
	close(starts.fd);
}

/* One of them wins, once */
static void *winner(void *arg)
{
	(void)arg;
	return (void *)(long)start(starts.fd, 0);
}

TEST(one_start_wins)
{
	pthread_t threads[STARTERS];
	int round, i, won;
	void *ret;

	for (round = 0; round < 20; round++) {
		starts.fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);
		CHECK(starts.fd >= 0);
		for (i = 0; i < STARTERS; i++)
			EQ(pthread_create(&threads[i], NULL, winner, NULL), 0);
		for (i = 0, won = 0; i < STARTERS; i++) {
			EQ(pthread_join(threads[i], &ret), 0);
			CHECK((long)ret == 0 || (long)ret == -EISCONN);
			won += !ret;
		}
		EQ(won, 1);
		close(starts.fd);
	}
}

/* Lines of the kernel's log since @fd was opened that have @text */
static int lines(int fd, const char *text)
{
	char line[8192];
	int nr = 0;
	ssize_t len;

	while ((len = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		if (len <= 0)
			continue;
		line[len] = '\0';
		nr += !!strstr(line, text);
	}
	return nr;
}

/* The kernel says it ten times in five seconds, by its default */
TEST(starts_do_not_fill_the_log)
{
	uint64_t t0 = rdmatensor_now_ns();
	int log, fd, i, said, most;

	log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(log >= 0);
	CHECK(lseek(log, 0, SEEK_END) >= 0);
	for (i = 0; i < 100; i++) {
		fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0);
		EQ(start(fd, 0), 0);
		close(fd);
	}
	most = 10 * (2 + (rdmatensor_now_ns() - t0) / 5000000000ull);
	said = lines(log, "worker 'starts': started:");
	close(log);
	printf("# said %d times, at most %d\n", said, most);
	CHECK(said <= most);
	CHECK(most < 100);
}

static struct library {
	struct rdmatensor *rt;
	pthread_barrier_t barrier;
	struct rdmatensor_start start[STARTERS];
	int ret[STARTERS];
} library;

static void *library_starter(void *arg)
{
	long i = (long)arg;

	rdmatensor_start_init(&library.start[i], "starts");
	library.start[i].ring_entries = 64u << i;
	pthread_barrier_wait(&library.barrier);
	library.ret[i] = rdmatensor_start(library.rt, &library.start[i]);
	return NULL;
}

static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[256];
	int nr = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		nr += !!strstr(line, "/dev/rdmatensor");
	fclose(maps);
	return nr;
}

/* By the library, which maps the ring too: one starts the context, by its own arguments */
TEST(one_of_many_threads_starts_it)
{
	pthread_t threads[STARTERS];
	struct rdmatensor_query query;
	int round, started, won, before = mappings();
	long i;

	for (round = 0; round < 60; round++) {
		EQ(rdmatensor_open(NULL, &library.rt), 0);
		EQ(pthread_barrier_init(&library.barrier, NULL, STARTERS), 0);
		for (i = 0; i < STARTERS; i++)
			EQ(pthread_create(&threads[i], NULL, library_starter, (void *)i), 0);
		for (i = 0; i < STARTERS; i++)
			EQ(pthread_join(threads[i], NULL), 0);
		pthread_barrier_destroy(&library.barrier);
		for (i = 0, started = 0, won = 0; i < STARTERS; i++) {
			if (!library.ret[i]) {
				started++;
				won = i;
				continue;
			}
			EQ(library.ret[i], -EISCONN);
			CHECK(strstr(library.start[i].cause, "started already"));
		}
		EQ(started, 1);
		EQ(rdmatensor_query(library.rt, &query), 0);
		EQ(query.ring_entries, 64u << won);
		rdmatensor_close(library.rt);
		EQ(mappings(), before);
	}
}

/* START that listens at an address. Return: what it says */
static int listens(const char *host, uint32_t port, struct rdmatensor **rt,
		   struct rdmatensor_start *start)
{
	char addr[64];
	int ret;

	snprintf(addr, sizeof(addr), "%s:%u", host, port);
	rdmatensor_start_init(start, "listens");
	EQ(rdmatensor_start_listen(start, addr, NULL, 0), 0);
	EQ(rdmatensor_open(NULL, rt), 0);
	ret = rdmatensor_start(*rt, start);
	if (ret)
		rdmatensor_close(*rt);
	return ret;
}

/* A port in use is one, whichever of the two listens on all addresses */
TEST(ports_in_use)
{
	const char *hosts[] = { "", test_ip() };
	struct rdmatensor *first, *second;
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	int i, k;

	for (i = 0; i < 2; i++) {
		EQ(listens(hosts[i], 0, &first, &start), 0);
		EQ(rdmatensor_query(first, &query), 0);
		for (k = 0; k < 2; k++) {
			EQ(listens(hosts[k], query.listen_port, &second, &start), -EADDRINUSE);
			CHECK(strstr(start.cause, "the port is in use"));
		}
		/* That is none of it */
		EQ(listens("192.0.2.1", query.listen_port, &second, &start), -EADDRNOTAVAIL);
		CHECK(strstr(start.cause, "no RDMA device has that address"));
		rdmatensor_close(first);
	}
}

/* Nobody gets there: no RDMA device has one */
TEST(listen_at_a_loopback_address)
{
	static const char *const hosts[] = {
		"127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]",
	};
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	size_t i;

	for (i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		EQ(listens(hosts[i], 0, &rt, &start), -EADDRNOTAVAIL);
		CHECK(strstr(start.cause, "no RDMA device has a loopback address"));
	}
	EQ(listens(test_ip(), 0, &rt, &start), 0);
	rdmatensor_close(rt);
}
