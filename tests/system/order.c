// SPDX-License-Identifier: GPL-2.0
/*
 * Workers start in any order: a peer that is not up yet is waited for, and what somebody
 * has answered is final.
 */
#include "harness.h"
#include "kmsg.h"
#include "waits.h"
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_MS 20000
#define CALLERS 16
/* Where the one that comes late listens: none of those that any connection may take */
#define LATE_PORT 20000

/**
 * struct caller - a thread that connects
 * @thread: it
 * @connect: its argument
 * @rt: where
 * @ret: what came of it
 * @ended: an eventfd: it has come
 */
struct caller {
	pthread_t thread;
	struct rdmatensor_connect connect;
	struct rdmatensor *rt;
	int ret, ended;
};

static struct side early, late;
static struct caller callers[CALLERS];

static void *caller_run(void *arg)
{
	struct caller *caller = arg;

	caller->ret = rdmatensor_connect_raw(caller->rt, &caller->connect);
	eventfd_write(caller->ended, 1);
	return NULL;
}

static void caller_prepare(struct caller *caller, uint32_t port, uint32_t timeout_ms)
{
	char addr[64];

	memset(caller, 0, sizeof(*caller));
	caller->rt = early.rt;
	caller->connect.timeout_ms = timeout_ms;
	test_addr(addr, sizeof(addr), port);
	EQ(rdmatensor_parse_addr(addr, 0, 0, caller->connect.addr, NULL, 0), 0);
}

static void caller_begin(struct caller *caller, uint32_t port, uint32_t timeout_ms)
{
	caller_prepare(caller, port, timeout_ms);
	caller->ended = eventfd(0, EFD_CLOEXEC);
	CHECK(caller->ended >= 0);
	EQ(pthread_create(&caller->thread, NULL, caller_run, caller), 0);
}

/* It has found nobody, and will try again */
static void caller_waits(struct caller *caller)
{
	if (!waits_until(caller->ended))
		test_fail(__FILE__, __LINE__, "ended with %d in place of waiting: %s", caller->ret,
			  caller->connect.cause);
}

static int caller_end(struct caller *caller)
{
	EQ(pthread_join(caller->thread, NULL), 0);
	close(caller->ended);
	return caller->ret;
}

static void listen_late(struct rdmatensor_start *start)
{
	char addr[64];

	test_addr(addr, sizeof(addr), LATE_PORT);
	EQ(rdmatensor_start_listen(start, addr, NULL, 0), 0);
}

static void early_open(void (*tune)(struct rdmatensor_start *start))
{
	side_open(&early, "early", 4096, 0, tune);
	waits_begin("early");
}

static void late_open(void)
{
	side_open(&late, "late", 4096, 0, listen_late);
}

TEST(connect_waits_for_its_peer)
{
	struct rdmatensor_channel_query query = { 0 };
	struct rdmatensor_query all;

	early_open(NULL);
	caller_begin(&callers[0], LATE_PORT, WAIT_MS);
	caller_waits(&callers[0]);
	EQ(waits_nr(), 1);
	late_open();
	EQ(caller_end(&callers[0]), 0);
	CHECK(strstr(callers[0].connect.cause, "'late'"));
	CHECK(strstr(callers[0].connect.cause, "; waited "));
	query.channel = callers[0].connect.out_channel;
	EQ(rdmatensor_channel_query(early.rt, &query), 0);
	EQ(query.state, RDMATENSOR_CHANNEL_UP);
	EQ(side_next(&late, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	EQ(rdmatensor_query(early.rt, &all), 0);
	EQ(all.channels, 1);
	/* The tries that found nobody are no channels that went down */
	side_none(&early, RDMATENSOR_CQE_CHANNEL_DOWN, 0, 0);
}

TEST(connect_says_once_how_long_it_waits)
{
	unsigned int waited, tries;
	const char *text;
	uint64_t began;

	early_open(NULL);
	caller_prepare(&callers[0], LATE_PORT, 1200);
	strcpy(callers[0].connect.worker, "late");
	began = rdmatensor_now_ns();
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -ECONNREFUSED);
	/* The kernel counts ticks, and an emulated processor that others hold up finds them late */
	CHECK(ms_since(began) >= 1100);
	CHECK(ms_since(began) < 10000);
	text = strstr(callers[0].connect.cause, "; waited ");
	CHECK(strstr(callers[0].connect.cause, "start the peer"));
	CHECK(text && sscanf(text, "; waited %u ms for it, %u tries", &waited, &tries) == 2);
	CHECK(waited >= 1190);
	/* Pauses grow: 10 and at most 20 ms, then twice as long, up to a second */
	CHECK(tries >= 3 && tries <= 10);
	EQ(waits_nr(), 1);
}

/* The log leaves out what was said often before, and soon says it again */
TEST(connect_that_waits_is_in_the_log)
{
	early_open(NULL);
	log_begin();
	do {
		caller_prepare(&callers[0], LATE_PORT, 2000);
		strcpy(callers[0].connect.worker, "late");
		EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -ECONNREFUSED);
	} while (!log_count("worker 'early': connect to 'late' at "));
	CHECK(log_count(": nobody listens there yet (-111): waiting for it, up to "));
}

TEST(connect_need_not_wait)
{
	uint64_t began;

	early_open(NULL);
	caller_prepare(&callers[0], LATE_PORT, WAIT_MS);
	callers[0].connect.flags = RDMATENSOR_CONNECT_NOWAIT;
	began = rdmatensor_now_ns();
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -ECONNREFUSED);
	CHECK(ms_since(began) < WAIT_MS / 2);
	CHECK(strstr(callers[0].connect.cause, "nobody listens"));
	CHECK(!strstr(callers[0].connect.cause, "waited"));
	EQ(waits_nr(), 0);
	callers[0].connect.flags = 1 << 1;
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -EINVAL);
}

static void one_channel(struct rdmatensor_start *start)
{
	start->max_channels = 1;
}

/* What somebody has answered, and what this side lacks */
TEST(connect_waits_for_no_change_of_mind)
{
	uint64_t began;

	early_open(one_channel);
	late_open();
	began = rdmatensor_now_ns();
	caller_prepare(&callers[0], LATE_PORT, WAIT_MS);
	strcpy(callers[0].connect.worker, "another");
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -ENOENT);
	callers[0].connect.worker[0] = '\0';
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), 0);
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -EUSERS);
	CHECK(ms_since(began) < WAIT_MS / 2);
	EQ(waits_nr(), 0);
}

/* Who waits holds no channel: the one that is allowed can be had meanwhile */
TEST(connect_that_waits_holds_nothing)
{
	struct side other = {};
	int i;

	early_open(one_channel);
	side_open(&other, "other", 4096, 1, NULL);
	caller_begin(&callers[0], LATE_PORT, WAIT_MS);
	caller_waits(&callers[0]);
	/* Unless it comes in the middle of a try */
	for (i = 0; i < 1000; i++) {
		caller_prepare(&callers[1], other.port, WAIT_MS);
		callers[1].ret = rdmatensor_connect_raw(early.rt, &callers[1].connect);
		if (callers[1].ret != -EUSERS)
			break;
	}
	EQ(callers[1].ret, 0);
	/* There is none for it now, and that is its own side's word */
	EQ(caller_end(&callers[0]), -EUSERS);
	side_close(&other);
}

static void interrupt(int signal)
{
	(void)signal;
}

TEST(connect_that_waits_is_interrupted)
{
	struct sigaction action = { .sa_handler = interrupt };
	uint64_t began;

	early_open(NULL);
	EQ(sigaction(SIGUSR1, &action, NULL), 0);
	began = rdmatensor_now_ns();
	caller_begin(&callers[0], LATE_PORT, WAIT_MS);
	caller_waits(&callers[0]);
	EQ(pthread_kill(callers[0].thread, SIGUSR1), 0);
	EQ(caller_end(&callers[0]), -EINTR);
	CHECK(strstr(callers[0].connect.cause, "interrupted"));
	CHECK(ms_since(began) < WAIT_MS / 2);
}

static int link_do(const char *what, const char *more)
{
	const char *netdev = getenv("LAB_NETDEV"), *device = getenv("LAB_RDMA_DEV");
	char command[128];
	int status;

	snprintf(command, sizeof(command), "rdma link %s %s %s %s", what, device ? device : "rxe0",
		 more, *more ? (netdev ? netdev : "d0") : "");
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Takes the device away and brings another */
TEST(connect_that_waits_ends_with_its_device)
{
	uint64_t began;
	int i;

	early_open(NULL);
	began = rdmatensor_now_ns();
	for (i = 0; i < 4; i++)
		caller_begin(&callers[i], LATE_PORT, 600000);
	caller_waits(&callers[0]);
	EQ(link_do("del", ""), 0);
	for (i = 0; i < 4; i++) {
		EQ(caller_end(&callers[i]), -ENODEV);
		CHECK(callers[i].connect.cause[0]);
	}
	CHECK(ms_since(began) < 60000);
	side_close(&early);
	EQ(link_do("add", "type rxe netdev"), 0);
}

/* Over channels that either side has connected, and those that are up */
TEST(connect_finds_a_worker_by_name)
{
	struct side other = {};
	uint32_t channel, second;

	early_open(NULL);
	late_open();
	EQ(rdmatensor_channel_find(early.rt, "late", &channel), -ENOENT);
	side_connect(&early, &late);
	EQ(rdmatensor_channel_find(early.rt, "late", &channel), 0);
	EQ(channel, early.channel);
	EQ(rdmatensor_channel_find(early.rt, "lat", &channel), -ENOENT);
	EQ(rdmatensor_channel_find(early.rt, "late2", &channel), -ENOENT);
	EQ(side_next(&late, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	EQ(rdmatensor_channel_find(late.rt, "early", &channel), 0);
	/* The last one of several, and of two workers none */
	side_connect(&early, &late);
	EQ(rdmatensor_channel_find(early.rt, "late", &second), 0);
	EQ(second, early.channel);
	side_open(&other, "late", 4096, 1, NULL);
	side_connect(&early, &other);
	EQ(rdmatensor_channel_find(early.rt, "late", &channel), -ENOTUNIQ);
	EQ(rdmatensor_disconnect(early.rt, early.channel), 0);
	EQ(rdmatensor_channel_find(early.rt, "late", &channel), 0);
	EQ(channel, second);
	side_close(&other);
}

TEST(connect_of_many_that_wait)
{
	struct rdmatensor_query all;
	int i;

	early_open(NULL);
	caller_begin(&callers[0], LATE_PORT, WAIT_MS);
	caller_waits(&callers[0]);
	for (i = 1; i < CALLERS; i++)
		caller_begin(&callers[i], LATE_PORT, WAIT_MS);
	late_open();
	for (i = 0; i < CALLERS; i++) {
		EQ(caller_end(&callers[i]), 0);
		EQ(side_next(&late, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	}
	EQ(rdmatensor_query(early.rt, &all), 0);
	EQ(all.channels, CALLERS);
}

/* It would go to the kernel's log */
TEST(connect_by_a_name_that_none_has)
{
	early_open(NULL);
	caller_prepare(&callers[0], LATE_PORT, 1200);
	strcpy(callers[0].connect.worker, "late\n[  0.0] all is well");
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -EINVAL);
	CHECK(strstr(callers[0].connect.cause, "control characters"));
}

/* Nobody is there, and soft-RoCE that has been asked for ::1 connects nobody any more */
TEST(connect_by_a_loopback_address)
{
	static const char *const own[] = {
		"127.0.0.1:1", "127.1.2.3:1", "0.0.0.0:1", "[::1]:1", "[::]:1",
		"[::ffff:127.0.0.1]:1", "[::ffff:0.0.0.0]:1",
	};
	uint64_t from;
	size_t i;

	early_open(NULL);
	late_open();
	for (i = 0; i < sizeof(own) / sizeof(*own); i++) {
		caller_prepare(&callers[0], LATE_PORT, WAIT_MS);
		EQ(rdmatensor_parse_addr(own[i], 0, 0, callers[0].connect.addr, NULL, 0), 0);
		from = rdmatensor_now_ns();
		EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), -EADDRNOTAVAIL);
		CHECK(rdmatensor_now_ns() - from < WAIT_MS / 2 * 1000000ull);
		CHECK(strstr(callers[0].connect.cause, "name an address of the device"));
	}
	caller_prepare(&callers[0], LATE_PORT, WAIT_MS);
	EQ(rdmatensor_connect_raw(early.rt, &callers[0].connect), 0);
}
