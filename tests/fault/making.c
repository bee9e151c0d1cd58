// SPDX-License-Identifier: GPL-2.0
/*
 * What takes long on the device, and is held in the middle: all others go on beside it. The
 * device's removal makes it give up, waits for it, and meets nothing half made.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "device.h"
#include "exporter.h"
#include "harness.h"
#include "hold.h"

static struct side s;
static uint64_t rows;

static void *removal(void *arg)
{
	(void)arg;
	return (void *)(long)device_del();
}

static void query(int fd, struct rdmatensor_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	EQ(call(fd, RDMATENSOR_QUERY, query), 0);
}

static int shown(const char *what)
{
	char command[256];
	int status;

	snprintf(command, sizeof(command),
		 "\"$LAB_BUILD\"/ulib/bin/rdmatensor show %s -j >/dev/null", what);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int export(const char *name, uint32_t *table)
{
	return rdmatensor_table_export(s.rt, name, &s.pool, rows, 0, 8, 512, 0,
				       RDMATENSOR_DT_FLOAT, table);
}

/* Every other call, by this thread: none waits for the one that is held */
static void others_go_on(void)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_query now;
	uint32_t table;

	query(rdmatensor_fd(s.rt), &now);
	EQ(now.flags, RDMATENSOR_QUERY_STARTED);
	EQ(shown("contexts"), 0);
	EQ(shown("pools"), 0);
	EQ(shown("tables"), 0);
	EQ(rdmatensor_pool_create(s.rt, 8192, &pool), 0);
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	EQ(export("other rows", &table), 0);
	EQ(rdmatensor_table_close(s.rt, table), 0);
	side_connect(&s, &s);
	EQ(rdmatensor_disconnect(s.rt, s.channel), 0);
}

static int stepped;

static void *watch_step(void *arg)
{
	(void)arg;
	hold_wait();
	__atomic_store_n(&stepped, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* @held goes on, and ends before anybody comes to @point again */
static int end_without_step(struct caller *held, const char *point)
{
	pthread_t watch;
	int ret;

	hold_at(point);
	EQ(pthread_create(&watch, NULL, watch_step, NULL), 0);
	ret = caller_end(held);
	EQ(__atomic_load_n(&stepped, __ATOMIC_ACQUIRE), 0);
	EQ(pthread_cancel(watch), 0);
	EQ(pthread_join(watch, NULL), 0);
	hold_go();
	return ret;
}

/*
 * @held has been held in its call; the device goes before it goes on. @point: it takes no
 * other step to there; NULL: any
 */
static void removal_beside(struct caller *held, const char *point)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_query now;
	pthread_t thread;
	uint32_t table;
	void *ret;

	EQ(pthread_create(&thread, NULL, removal, NULL), 0);
	do {
		query(rdmatensor_fd(s.rt), &now);
		sched_yield();
	} while (!(now.flags & RDMATENSOR_QUERY_DEVICE_GONE));
	EQ(shown("contexts"), 0);
	EQ(rdmatensor_pool_create(s.rt, 8192, &pool), -ENODEV);
	EQ(export("late rows", &table), -ENODEV);
	if (!point)
		hold_go();
	EQ(point ? end_without_step(held, point) : caller_end(held), -ENODEV);
	EQ(pthread_join(thread, &ret), 0);
	EQ((long)ret, 0);
	query(rdmatensor_fd(s.rt), &now);
	EQ(now.pools, 1);
	EQ(rdmatensor_pool_destroy(s.rt, &s.pool), 0);
	side_close(&s);

	EQ(device_add(), 0);
	side_open(&s, "after", 1 << 20, 1, NULL);
}

TEST(others_go_on_beside_a_pool)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 5 << 20 };
	struct caller held;
	int i;

	side_open(&s, "making", 1 << 20, 1, NULL);
	rows = side_alloc(&s, 4096);
	for (i = 0; i < 2; i++) {
		hold_at("pages");
		caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_POOL_CREATE, &create);
		hold_wait();
		if (i) {
			removal_beside(&held, NULL);
			break;
		}
		others_go_on();
		hold_go();
		EQ(caller_end(&held), 0);
		EQ(call(rdmatensor_fd(s.rt), RDMATENSOR_POOL_DESTROY,
			&(struct rdmatensor_pool_destroy){
				.size = sizeof(struct rdmatensor_pool_destroy),
				.pool_id = create.out_pool_id }), 0);
	}
}

/*
 * A device that has failed may never say what came of a registration: its removal, for which the
 * call would wait, is not kept waiting by it
 */
TEST(registration_that_does_not_complete)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 5 << 20 };
	struct rdmatensor_pool pool;
	struct caller held;
	pthread_t thread;
	void *ret;

	side_open(&s, "making", 1 << 20, 1, NULL);
	hold_at("registered");
	caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_POOL_CREATE, &create);
	hold_wait();
	EQ(pthread_create(&thread, NULL, removal, NULL), 0);
	/* Its completion is held still */
	EQ(caller_end(&held), -ENODEV);
	EQ(rdmatensor_pool_create(s.rt, 8192, &pool), -ENODEV);
	hold_go();
	EQ(pthread_join(thread, &ret), 0);
	EQ((long)ret, 0);
	side_close(&s);
	EQ(device_add(), 0);
	side_open(&s, "after", 1 << 20, 1, NULL);
}

/* The device goes while @held is held in its call, and does not wait for that one's end */
static void removal_past(struct caller *held, const char *cause)
{
	struct rdmatensor_query now;
	pthread_t thread;
	void *ret;

	EQ(pthread_create(&thread, NULL, removal, NULL), 0);
	EQ(pthread_join(thread, &ret), 0);
	EQ((long)ret, 0);
	hold_go();
	EQ(caller_end(held), -ENODEV);
	CHECK(strstr(cause, "start a new context"));
	query(rdmatensor_fd(s.rt), &now);
	EQ(now.pools, 1);
	side_close(&s);
	EQ(device_add(), 0);
}

/* A page may be one that another process has to bring: nobody waits for it, nor does a removal */
static void register_held_at(const char *point)
{
	struct rdmatensor_pool_register args = {
		.size = sizeof(args), .bytes = 5 << 20, .peers = RDMATENSOR_POOL_PEERS_WRITE,
	};
	struct caller held;
	void *at;

	at = mmap(NULL, args.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	args.addr = (uintptr_t)at;
	side_open(&s, "making", 1 << 20, 1, NULL);
	rows = side_alloc(&s, 4096);
	hold_at(point);
	caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_POOL_REGISTER, &args);
	hold_wait();
	others_go_on();
	hold_go();
	EQ(caller_end(&held), 0);
	EQ(call(rdmatensor_fd(s.rt), RDMATENSOR_POOL_DESTROY,
		&(struct rdmatensor_pool_destroy){
			.size = sizeof(struct rdmatensor_pool_destroy),
			.pool_id = args.out_pool_id }), 0);

	hold_at(point);
	caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_POOL_REGISTER, &args);
	hold_wait();
	removal_past(&held, args.cause);
	munmap(at, args.bytes);
}

TEST(others_go_on_beside_pages_that_are_pinned)
{
	register_held_at("pages");
	register_held_at("pool_pinned");
}

/* Its exporter may be long about it: nobody waits for that, nor does a removal */
static void import_held_at(const char *point)
{
	struct rdmatensor_pool_import args = {
		.size = sizeof(args), .peers = RDMATENSOR_POOL_PEERS_WRITE,
	};
	struct caller held;

	args.fd = exporter_next(NULL)->export(5 << 20, O_RDWR);
	CHECK(args.fd >= 0);
	side_open(&s, "making", 1 << 20, 1, NULL);
	rows = side_alloc(&s, 4096);
	hold_at(point);
	caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_POOL_IMPORT, &args);
	hold_wait();
	others_go_on();
	removal_past(&held, args.cause);
	close(args.fd);
}

TEST(others_go_on_beside_a_dma_buf)
{
	import_held_at("dma_buf");
	import_held_at("pool_pinned");
}

TEST(others_go_on_beside_rows)
{
	struct rdmatensor_table_export args = {
		.size = sizeof(args), .name_uptr = (uintptr_t)"held rows", .name_len = 9,
		.row_end = 8, .row_bytes = 512, .data_type = RDMATENSOR_DT_FLOAT,
	};
	struct caller held;
	int i;

	side_open(&s, "making", 1 << 20, 1, NULL);
	rows = side_alloc(&s, 4096);
	args.pool_id = s.pool.id;
	args.offset = rows;
	for (i = 0; i < 2; i++) {
		hold_at("table_export");
		caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_TABLE_EXPORT, &args);
		hold_wait();
		/* What is only reserved is nobody's to close */
		EQ(rdmatensor_table_close(s.rt, args.out_table + 1), -ENOENT);
		if (i) {
			removal_beside(&held, NULL);
			break;
		}
		others_go_on();
		hold_go();
		EQ(caller_end(&held), 0);
		EQ(rdmatensor_table_close(s.rt, args.out_table), 0);
	}
}

static void short_pages(struct rdmatensor_start *start)
{
	start->mr_page_bytes = 4096;
}

/* Rows in several segments: the next one is not begun when the device goes */
TEST(rows_give_up_between_segments)
{
	struct rdmatensor_table_export args = {
		.size = sizeof(args), .name_uptr = (uintptr_t)"long rows", .name_len = 9,
		.row_end = 8, .row_bytes = 512, .data_type = RDMATENSOR_DT_FLOAT,
	};
	struct rdmatensor_query now;
	struct caller held;

	side_open(&s, "making", 16 << 20, 1, short_pages);
	query(rdmatensor_fd(s.rt), &now);
	CHECK(now.max_segment_bytes <= 4 << 20);
	rows = side_alloc(&s, 3 * now.max_segment_bytes);
	args.pool_id = s.pool.id;
	args.offset = rows;
	args.stride = now.max_segment_bytes / 4;
	hold_at("registration");
	caller_begin(&held, rdmatensor_fd(s.rt), RDMATENSOR_TABLE_EXPORT, &args);
	hold_wait();
	removal_beside(&held, "registration");
}

static void *closer(void *arg)
{
	close(*(int *)arg);
	return NULL;
}

/* The removal has begun with a context, which its process closes meanwhile */
TEST(context_closes_while_the_device_goes)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 1 << 20 };
	struct pollfd pfd = { .events = POLLIN };
	struct rdmatensor_start start;
	pthread_t going, closing;
	struct rdmatensor_query now;
	void *ret;
	int fd;

	fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	rdmatensor_start_init(&start, "closing");
	start.size = sizeof(start);
	EQ(call(fd, RDMATENSOR_START, &start), 0);
	EQ(call(fd, RDMATENSOR_POOL_CREATE, &create), 0);
	hold_at("device_gone");
	EQ(pthread_create(&going, NULL, removal, NULL), 0);
	hold_wait();
	query(fd, &now);
	EQ(now.flags, RDMATENSOR_QUERY_STARTED | RDMATENSOR_QUERY_DEVICE_GONE);
	/* poll() tells of it when its entries have come */
	pfd.fd = fd;
	EQ(poll(&pfd, 1, 0), 0);
	hold_at("close_stopped");
	EQ(pthread_create(&closing, NULL, closer, &fd), 0);
	hold_wait();
	hold_go();
	EQ(pthread_join(closing, NULL), 0);
	EQ(pthread_join(going, &ret), 0);
	EQ((long)ret, 0);
	EQ(device_add(), 0);
	side_open(&s, "after", 1 << 20, 1, NULL);
}

static void patient(struct rdmatensor_start *start)
{
	/* A leave may take its longest time then, which is ten seconds */
	start->timeout = 20;
	start->set |= RDMATENSOR_SET_TIMEOUT;
}

static void *side_closer(void *side)
{
	side_close(side);
	return NULL;
}

/* A peer has heard that it is left, and does not say so: the removal waits for neither */
TEST(channel_is_left_while_the_device_goes)
{
	static struct pair p;
	pthread_t going, closing;
	uint64_t began;
	void *ret;

	pair_open(&p, 1 << 20, patient);
	hold_at("peer_left");
	EQ(pthread_create(&closing, NULL, side_closer, &p.a), 0);
	hold_wait();
	began = rdmatensor_now_ns();
	EQ(pthread_create(&going, NULL, removal, NULL), 0);
	EQ(pthread_join(closing, NULL), 0);
	CHECK(ms_since(began) < 7000);
	hold_go();
	EQ(pthread_join(going, &ret), 0);
	EQ((long)ret, 0);
	EQ(device_add(), 0);
	side_open(&s, "after", 1 << 20, 1, NULL);
}
