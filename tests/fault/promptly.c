// SPDX-License-Identifier: GPL-2.0
/*
 * What a call gives up is free when it returns, whatever a reader or a worker does beside it: one
 * of these is held, or the freeing itself.
 */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdmatensor/netlink.h>
#include "harness.h"
#include "hold.h"

#define BYTES (1 << 20)
#define GROUP 7

static struct side s;
static int domain;

static int create(int fd, struct rdmatensor_pool_create *pool)
{
	*pool = (struct rdmatensor_pool_create){ .size = sizeof(*pool), .bytes = BYTES };
	return call(fd, RDMATENSOR_POOL_CREATE, pool);
}

static int destroy(int fd, uint32_t id)
{
	struct rdmatensor_pool_destroy arg = { .size = sizeof(arg), .pool_id = id };

	return call(fd, RDMATENSOR_POOL_DESTROY, &arg);
}

/* So that a pool that is made is the only one */
static void open_without_pool(const char *worker)
{
	side_open(&s, worker, 4096, 0, NULL);
	EQ(rdmatensor_pool_destroy(s.rt, &s.pool), 0);
}

static long pinned(void)
{
	return number_in("/proc/self/status", "VmPin:", " kB");
}

static void join(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_domain(start, domain), 0);
}

/*
 * A process of its own that makes one call: that it sleeps there says nothing, for most calls
 * sleep some time, but that it returns does
 */
static struct {
	pid_t pid;
	int go[2], told[2];
	int (*before)(void);
	void (*call)(void);
} partner;

/* In it */
static void partner_tells(const void *what, size_t bytes)
{
	EQ(write(partner.told[1], what, bytes), bytes);
}

static int partner_runs(void)
{
	uint32_t said;
	char c;

	/* It does not outlive a case that fails */
	signal(SIGALRM, SIG_DFL);
	alarm(120);
	close(partner.go[1]);
	close(partner.told[0]);
	said = (uint32_t)partner.before();
	partner_tells(&said, sizeof(said));
	EQ(read(partner.go[0], &c, 1), 1);
	partner.call();
	partner_tells(&said, sizeof(said));
	return 0;
}

/* Beside it. Return: 0: it says nothing for so long; 1: *said */
static int partner_said(int ms, uint32_t *said)
{
	struct pollfd fd = { .fd = partner.told[0], .events = POLLIN };

	return poll(&fd, 1, ms) == 1 && read(fd.fd, said, sizeof(*said)) == sizeof(*said);
}

/* Return: what it says, having come to its call */
static uint32_t partner_begin(int (*before)(void), void (*its_call)(void))
{
	uint32_t said;

	EQ(pipe(partner.go), 0);
	EQ(pipe(partner.told), 0);
	partner.before = before;
	partner.call = its_call;
	partner.pid = test_child_begin(partner_runs);
	close(partner.go[0]);
	close(partner.told[1]);
	CHECK(partner_said(20000, &said));
	return said;
}

static void partner_goes(void)
{
	EQ(write(partner.go[1], "", 1), 1);
}

/* Its call does not return while the thread is held, and does afterwards */
static void partner_is_kept(void)
{
	uint32_t said;
	int status;

	hold_wait();
	EQ(partner_said(500, &said), 0);
	hold_go();
	CHECK(partner_said(20000, &said));
	EQ(waitpid(partner.pid, &status, 0), partner.pid);
	EQ(status, 0);
	close(partner.go[1]);
	close(partner.told[0]);
}

static char room[RDMATENSOR_DUMP_ROOM_MAX] __attribute__((aligned(4)));

static struct rdmatensor_dump dump_of(int command)
{
	return (struct rdmatensor_dump){
		.size = sizeof(struct rdmatensor_dump), .command = command,
		.buf_uptr = (uint64_t)(uintptr_t)room, .room = RDMATENSOR_DUMP_ROOM_MIN,
	};
}

static void dump_held(struct caller *reader, struct rdmatensor_dump *dump)
{
	caller_begin(reader, rdmatensor_fd(s.rt), RDMATENSOR_DUMP, dump);
	hold_wait();
}

TEST(a_reader_keeps_no_pool)
{
	struct rdmatensor_pool_query query = { .size = sizeof(query) };
	static const int dumps[] = {
		RDMATENSOR_NL_CMD_DOMAIN_GET, RDMATENSOR_NL_CMD_POOL_GET, 0,
	};
	struct rdmatensor_pool_create pool;
	struct rdmatensor_dump dump;
	struct caller reader;
	unsigned int i;
	long before;

	test_param("memlock", 1);
	open_without_pool("reader");
	before = pinned();
	for (i = 0; i < 3; i++) {
		EQ(create(rdmatensor_fd(s.rt), &pool), 0);
		EQ(pinned(), before + BYTES / 1024);
		hold_at("pool_read");
		query.pool_id = pool.out_pool_id;
		if (dumps[i]) {
			dump = dump_of(dumps[i]);
			dump_held(&reader, &dump);
		} else {
			caller_begin(&reader, rdmatensor_fd(s.rt), RDMATENSOR_POOL_QUERY, &query);
			hold_wait();
		}
		EQ(destroy(rdmatensor_fd(s.rt), pool.out_pool_id), 0);
		EQ(pinned(), before);
		hold_go();
		EQ(caller_end(&reader), 0);
	}
	EQ(query.bytes, BYTES);
	test_param("memlock", 0);
}

static struct side other;

static int opens(void)
{
	side_open(&other, "partner", BYTES, 0, NULL);
	return 0;
}

static void closes(void)
{
	side_close(&other);
}

TEST(a_reader_keeps_no_domain)
{
	struct rdmatensor_dump dump = dump_of(RDMATENSOR_NL_CMD_DOMAIN_GET);
	struct caller reader;

	/* Goes on behind all that there are, so that it comes to the partner's */
	side_open(&s, "reader", 4096, 0, NULL);
	do {
		EQ(call(rdmatensor_fd(s.rt), RDMATENSOR_DUMP, &dump), 0);
	} while (dump.out_bytes);
	partner_begin(opens, closes);
	hold_at("domain_read");
	dump_held(&reader, &dump);
	partner_goes();
	partner_is_kept();
	EQ(caller_end(&reader), 0);
}

static void *mapped;

static int maps_and_destroys(void)
{
	struct rdmatensor_pool_create pool;

	EQ(create(rdmatensor_fd(s.rt), &pool), 0);
	mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rdmatensor_fd(s.rt),
		      (off_t)pool.out_mmap_offset);
	CHECK(mapped != MAP_FAILED);
	EQ(destroy(rdmatensor_fd(s.rt), pool.out_pool_id), 0);
	return 0;
}

static void unmaps(void)
{
	EQ(munmap(mapped, BYTES), 0);
}

TEST(memory_is_free_after_munmap)
{
	open_without_pool("maker");
	partner_begin(maps_and_destroys, unmaps);
	hold_at("pool_free");
	partner_goes();
	partner_is_kept();
}

TEST(memory_is_free_after_close)
{
	partner_begin(opens, closes);
	hold_at("pool_free");
	partner_goes();
	partner_is_kept();
}

/* In a generation, and of a region of its own. Return: the operation's error */
static int publish_in(struct side *side, const char *name, int64_t step, uint64_t at)
{
	const uint64_t dim = 64;
	struct rdmatensor_op op;

	rdmatensor_prep_publish(&op, name, step, side->pool.id, at, dim, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	rdmatensor_prep_in_generation(&op, GROUP);
	return side_do(side, &op);
}

static struct rdmatensor_step_abort step_abort = {
	.size = sizeof(step_abort), .step_id = 3, .status = -EIO,
};

/* Something hidden of a step, whose abort is held, or its worker. Return: where it is */
static uint64_t abort_held_at(const char *point, struct caller *aborting)
{
	uint64_t at;

	side_open(&s, "maker", BYTES, 0, NULL);
	at = side_alloc(&s, 64);
	EQ(publish_in(&s, "t", 3, at), 0);
	hold_at(point);
	caller_begin(aborting, rdmatensor_fd(s.rt), RDMATENSOR_STEP_ABORT, &step_abort);
	hold_wait();
	return at;
}

TEST(what_is_hidden_of_a_step_is_free_after_its_abort)
{
	struct caller aborting;
	uint64_t at = abort_held_at("retire", &aborting);

	caller_sleeps(&aborting);
	hold_go();
	EQ(caller_end(&aborting), 0);
	EQ(rdmatensor_pool_free(s.rt, &s.pool, at), 0);
}

/* By a caller that has withdrawn it, and has not come further: it is free for the other one */
TEST(what_another_abort_has_withdrawn_is_free)
{
	struct caller aborting;
	uint64_t at = abort_held_at("hidden_withdrawn", &aborting);

	EQ(rdmatensor_step_abort(s.rt, 3, -EIO, NULL), 0);
	EQ(rdmatensor_pool_free(s.rt, &s.pool, at), 0);
	hold_go();
	EQ(caller_end(&aborting), 0);
}

static int hides(void)
{
	side_open(&other, "writer", BYTES, 0, join);
	EQ(publish_in(&other, "t", 3, side_alloc(&other, 64)), 0);
	return (int)other.pool.id;
}

static void withdraws_and_closes(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw_generation(&op, GROUP, 3, 9);
	EQ(side_do(&other, &op), 0);
	side_close(&other);
}

/* @how: what it has withdrawn itself, and not been told of, is free as well */
static void writer_closes(void (*how)(void))
{
	uint32_t pool;

	side_open(&s, "maker", BYTES, 0, NULL);
	EQ(rdmatensor_domain_create(s.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	pool = partner_begin(hides, how);
	EQ(destroy(rdmatensor_fd(s.rt), pool), -EBUSY);
	hold_at("retire");
	partner_goes();
	partner_is_kept();
	EQ(destroy(rdmatensor_fd(s.rt), pool), 0);
	close(domain);
}

TEST(what_a_writer_has_hidden_is_free_after_its_close)
{
	writer_closes(closes);
}

TEST(what_a_writer_has_withdrawn_is_free_after_its_close)
{
	writer_closes(withdraws_and_closes);
}

/* Another context may fill that step: with WITHDRAW's entry its generation has gone */
TEST(the_last_of_a_generation_is_withdrawn)
{
	struct rdmatensor_submit submit;
	struct caller withdrawing;
	struct rdmatensor_op op;

	side_open(&s, "maker", BYTES, 0, NULL);
	EQ(rdmatensor_domain_create(s.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	side_open(&other, "other", BYTES, 0, join);
	EQ(publish_in(&s, "t", 3, side_alloc(&s, 64)), 0);
	EQ(publish_in(&other, "t", 3, side_alloc(&other, 64)), -EBUSY);
	rdmatensor_prep_withdraw(&op, "t", 3, 9);
	submit = (struct rdmatensor_submit){
		.size = sizeof(submit), .op_size = sizeof(op),
		.ops_uptr = rdmatensor_op_ptr(&op), .nr_ops = 1,
	};
	hold_at("withdrawn");
	caller_begin(&withdrawing, rdmatensor_fd(s.rt), RDMATENSOR_SUBMIT, &submit);
	hold_wait();
	EQ(side_next(&s, RDMATENSOR_CQE_WITHDRAW, 9, NULL), 0);
	EQ(publish_in(&other, "t", 3, side_alloc(&other, 64)), 0);
	hold_go();
	EQ(caller_end(&withdrawing), 0);
	close(domain);
}
