// SPDX-License-Identifier: GPL-2.0
/*
 * Tables that are opened before they are exported, and over channels that the owner has
 * connected.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include "harness.h"
#include "kmsg.h"

#define ROW 512
#define ROWS 8
#define WAIT_MS 20000
/* Nobody comes in this time, but two messages and their answers have to go by on a busy machine */
#define SHORT_MS 1000
/* Questions that may wait at the same time, and more */
#define WAITERS 15
#define OPENERS 24

/**
 * struct opener - a thread that opens a table
 * @thread: it
 * @rt: where
 * @open: argument
 * @name: the table's
 * @channel: the owner's
 * @ret: what came of it
 */
struct opener {
	pthread_t thread;
	struct rdmatensor *rt;
	struct rdmatensor_table_open open;
	char name[16];
	uint32_t channel;
	int ret;
};

static struct pair p;
static struct opener openers[OPENERS];

static void *opener_run(void *arg)
{
	struct opener *opener = arg;

	opener->ret = rdmatensor_table_open(opener->rt, opener->name, &opener->channel, 1,
					    &opener->open);
	return NULL;
}

static void opener_prepare(struct opener *opener, struct side *side, const char *name,
			   uint32_t timeout_ms)
{
	memset(opener, 0, sizeof(*opener));
	opener->rt = side->rt;
	opener->channel = side->channel;
	opener->open.timeout_ms = timeout_ms;
	snprintf(opener->name, sizeof(opener->name), "%s", name);
}

static void opener_begin(struct opener *opener, struct side *side, const char *name,
			 uint32_t timeout_ms)
{
	opener_prepare(opener, side, name, timeout_ms);
	EQ(pthread_create(&opener->thread, NULL, opener_run, opener), 0);
}

static int opener_end(struct opener *opener)
{
	EQ(pthread_join(opener->thread, NULL), 0);
	return opener->ret;
}

/* Rows [first, first + ROWS), each filled by its own number. Return: the table */
static uint32_t offer(struct side *owner, const char *name, uint64_t first)
{
	uint64_t at = side_alloc(owner, 4096), i;
	uint32_t table;

	for (i = 0; i < ROWS; i++)
		fill(side_at(owner, at + i * ROW), ROW, (unsigned int)(first + i));
	EQ(rdmatensor_table_export(owner->rt, name, &owner->pool, at, first, first + ROWS, ROW, 0,
				   RDMATENSOR_DT_FLOAT, &table), 0);
	return table;
}

static void gathers(struct side *reader, uint32_t table)
{
	uint64_t ids[ROWS] = { 7, 0, 3, 3, 6, 1, 2, 5 }, at = side_alloc(reader, sizeof(ids) * ROW);
	struct rdmatensor_cqe cqe;
	unsigned int i;

	EQ(rdmatensor_gather(reader->rt, table, ids, ROWS, &reader->pool, at, ROWS * ROW,
			     rdmatensor_deadline_ms(WAIT_MS), &cqe), 0);
	for (i = 0; i < ROWS; i++)
		CHECK(filled(side_at(reader, at + i * ROW), ROW, (unsigned int)ids[i]));
}

static int opens_now(struct side *reader, const char *name)
{
	struct opener *opener = &openers[0];

	opener_prepare(opener, reader, name, WAIT_MS);
	opener->open.flags = RDMATENSOR_TABLE_NOWAIT;
	opener_run(opener);
	return opener->ret;
}

TEST(table_open_waits_for_its_owner)
{
	pair_open(&p, 1 << 20, NULL);
	log_begin();
	opener_begin(&openers[0], &p.b, "late", WAIT_MS);
	log_wait("does not export it yet");
	EQ(log_count("'b': table 'late': 'a' does not export it yet"), 1);
	/* Another one of the same owner need not wait for that */
	offer(&p.a, "other", 0);
	opener_prepare(&openers[1], &p.b, "other", WAIT_MS);
	opener_run(&openers[1]);
	EQ(openers[1].ret, 0);
	offer(&p.a, "late", 0);
	EQ(opener_end(&openers[0]), 0);
	gathers(&p.b, openers[0].open.out_table);
	gathers(&p.b, openers[1].open.out_table);
	/* Neither asked again and again, nor twice */
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_MESSAGES), 4);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_RX_STRAY), 0);
}

/*
 * So many and no more: an answer that was held back is sent by a work item, when it runs. A
 * question that comes before that may take its place
 */
static void strays(struct side *side, uint64_t nr)
{
	uint64_t began = rdmatensor_now_ns();

	while (side_stat(side, RDMATENSOR_STAT_RX_STRAY) < nr && ms_since(began) < 20000)
		usleep(1000);
	EQ(side_stat(side, RDMATENSOR_STAT_RX_STRAY), nr);
}

TEST(table_open_gives_up)
{
	uint64_t began = rdmatensor_now_ns();

	pair_open(&p, 1 << 20, NULL);
	EQ(opens_now(&p.b, "late"), -ENOENT);
	CHECK(ms_since(began) < WAIT_MS / 2);
	began = rdmatensor_now_ns();
	opener_prepare(&openers[0], &p.b, "late", SHORT_MS);
	opener_run(&openers[0]);
	EQ(openers[0].ret, -ENOENT);
	/* The kernel counts ticks, and an emulated processor that others hold up finds them late */
	CHECK(ms_since(began) >= SHORT_MS - 100);
	CHECK(strstr(openers[0].open.cause, "does not export"));
	/* What nobody waits for any more is answered, and dropped */
	offer(&p.a, "late", 0);
	strays(&p.b, 1);
	EQ(opens_now(&p.b, "late"), 0);
	gathers(&p.b, openers[0].open.out_table);
	/* Or another question has taken its place: then it is not */
	opener_prepare(&openers[0], &p.b, "later", SHORT_MS);
	opener_run(&openers[0]);
	EQ(openers[0].ret, -ENOENT);
	opener_prepare(&openers[0], &p.b, "latest", SHORT_MS);
	opener_run(&openers[0]);
	EQ(openers[0].ret, -ENOENT);
	offer(&p.a, "later", 0);
	offer(&p.a, "latest", 0);
	strays(&p.b, 2);
	EQ(opens_now(&p.b, "latest"), 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}

static void interrupt(int signal)
{
	(void)signal;
}

TEST(table_open_that_waits_ends)
{
	struct sigaction action = { .sa_handler = interrupt };
	uint64_t began;

	pair_open(&p, 1 << 20, NULL);
	EQ(sigaction(SIGUSR1, &action, NULL), 0);
	began = rdmatensor_now_ns();
	log_begin();
	opener_begin(&openers[0], &p.b, "never", WAIT_MS);
	log_wait("does not export it yet");
	EQ(pthread_kill(openers[0].thread, SIGUSR1), 0);
	EQ(opener_end(&openers[0]), -EINTR);

	/* With its owner */
	log_begin();
	opener_begin(&openers[0], &p.b, "never", WAIT_MS);
	log_wait("'never'");
	/* Of two who say it at the same time, the kernel's limit of rate lets one alone */
	opener_begin(&openers[1], &p.b, "not at all", WAIT_MS);
	log_wait("'not at all'");
	side_close(&p.a);
	EQ(opener_end(&openers[0]), -ENOTCONN);
	EQ(opener_end(&openers[1]), -ENOTCONN);
	CHECK(ms_since(began) < WAIT_MS / 2);
}

/* The reader opens the table, and only then the owner has it */
static void opens_before(struct side *reader, struct side *owner, const char *name)
{
	log_begin();
	opener_begin(&openers[0], reader, name, WAIT_MS);
	log_wait("does not export it yet");
	offer(owner, name, 0);
	EQ(opener_end(&openers[0]), 0);
	gathers(reader, openers[0].open.out_table);
}

TEST(table_open_waits_for_itself)
{
	side_open(&p.a, "a", 1 << 20, 0, NULL);
	p.a.channel = RDMATENSOR_CHANNEL_SELF;
	EQ(opens_now(&p.a, "late"), -ENOENT);
	opens_before(&p.a, &p.a, "late");
}

/* One channel, both directions */
TEST(table_over_a_channel_of_its_owner)
{
	uint32_t of_a, of_b, i;

	pair_open(&p, 1 << 20, NULL);
	offer(&p.a, "of a", 0);
	offer(&p.b, "of b", 0);
	EQ(opens_now(&p.a, "of b"), 0);
	of_b = openers[0].open.out_table;
	EQ(opens_now(&p.b, "of a"), 0);
	of_a = openers[0].open.out_table;
	for (i = 0; i < 20; i++) {
		gathers(&p.a, of_b);
		gathers(&p.b, of_a);
	}
	CHECK(side_stat(&p.a, RDMATENSOR_STAT_GATHER_READS));
	EQ(side_stat(&p.a, RDMATENSOR_STAT_CHANNELS_UP), 1);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_CHANNELS_UP), 1);
	/* The channel's end is that of both directions, whoever ends it */
	EQ(rdmatensor_disconnect(p.a.rt, p.a.channel), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(opens_now(&p.a, "of b"), -ENOTCONN);
}

/* It has come and gone, to what has connected the channel */
TEST(table_waited_for_over_a_channel_of_its_owner)
{
	pair_open(&p, 1 << 20, NULL);
	opens_before(&p.a, &p.b, "of b");
}

/* A context that is connected to itself: each end is the other's */
TEST(table_over_both_ends_of_one_context)
{
	struct rdmatensor_cqe cqe;
	uint32_t active;

	side_open(&p.a, "a", 1 << 20, 1, NULL);
	side_connect(&p.a, &p.a);
	active = p.a.channel;
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	CHECK(cqe.channel != active);
	offer(&p.a, "t", 0);
	EQ(opens_now(&p.a, "t"), 0);
	gathers(&p.a, openers[0].open.out_table);
	p.a.channel = cqe.channel;
	EQ(opens_now(&p.a, "t"), 0);
	gathers(&p.a, openers[0].open.out_table);
}

TEST(table_of_an_owner_that_listens_nowhere)
{
	struct rdmatensor_cqe cqe;

	side_open(&p.a, "a", 1 << 20, 1, NULL);
	side_open(&p.b, "b", 1 << 20, 0, NULL);
	side_connect(&p.b, &p.a);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	p.a.channel = cqe.channel;
	offer(&p.b, "of b", 0);
	EQ(opens_now(&p.a, "of b"), -EOPNOTSUPP);
	CHECK(strstr(openers[0].open.cause, "listens nowhere"));
}

/*
 * More than may ask at the same time, and one that need not wait among them. Last of this file:
 * what is said so often is not said any more for a while
 */
TEST(table_open_of_many_that_wait)
{
	static struct opener there;
	char name[16];
	int i;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < OPENERS; i++) {
		snprintf(name, sizeof(name), "late%d", i);
		opener_begin(&openers[i], &p.b, name, WAIT_MS);
	}
	/* HELLO, each one's first question, and as many that wait as there is room for */
	while (side_stat(&p.b, RDMATENSOR_STAT_TX_MESSAGES) < 1 + OPENERS + WAITERS)
		sched_yield();
	offer(&p.a, "there", 0);
	opener_prepare(&there, &p.b, "there", WAIT_MS);
	opener_run(&there);
	EQ(there.ret, 0);
	for (i = OPENERS - 1; i >= 0; i--) {
		snprintf(name, sizeof(name), "late%d", i);
		offer(&p.a, name, 0);
	}
	for (i = 0; i < OPENERS; i++)
		EQ(opener_end(&openers[i]), 0);
	gathers(&p.b, openers[OPENERS - 1].open.out_table);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}
