// SPDX-License-Identifier: GPL-2.0
/*
 * What a call gives up is free when it returns, whatever a reader or a worker does beside it: one
 * of these is held, or the freeing itself.
 */
#include <poll.h>
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
struct partner {
	pid_t pid;
	int in, out;
};

/* Return: true in it */
static int partner_begin(struct partner *partner)
{
	int in[2], out[2];

	EQ(pipe(in), 0);
	EQ(pipe(out), 0);
	fflush(stdout);
	partner->pid = fork();
	CHECK(partner->pid >= 0);
	partner->in = partner->pid ? in[1] : in[0];
	partner->out = partner->pid ? out[0] : out[1];
	close(partner->pid ? in[0] : in[1]);
	close(partner->pid ? out[1] : out[0]);
	return !partner->pid;
}

/* In it */
static void partner_tells(struct partner *partner)
{
	if (write(partner->out, "", 1) != 1)
		_exit(200);
}

static void partner_waits(struct partner *partner)
{
	char c;

	if (read(partner->in, &c, 1) != 1)
		_exit(201);
}

/* Beside it */
static void partner_goes(struct partner *partner)
{
	EQ(write(partner->in, "", 1), 1);
}

static int partner_told(struct partner *partner, int ms)
{
	struct pollfd fd = { .fd = partner->out, .events = POLLIN };
	char c;

	EQ(fd.fd < 0, 0);
	return poll(&fd, 1, ms) == 1 && read(partner->out, &c, 1) == 1;
}

static void partner_end(struct partner *partner)
{
	int status;

	EQ(waitpid(partner->pid, &status, 0), partner->pid);
	EQ(status, 0);
	close(partner->in);
	close(partner->out);
}

/* Its call does not return while the thread is held, and does afterwards */
static void partner_is_kept(struct partner *partner)
{
	hold_wait();
	EQ(partner_told(partner, 500), 0);
	hold_go();
	CHECK(partner_told(partner, 60000));
	partner_end(partner);
}

static char room[RDMATENSOR_DUMP_ROOM_MAX] __attribute__((aligned(4)));

static void dump_begin(struct caller *reader, struct rdmatensor_dump *dump, int command)
{
	*dump = (struct rdmatensor_dump){
		.size = sizeof(*dump), .command = command,
		.buf_uptr = (uint64_t)(uintptr_t)room, .room = RDMATENSOR_DUMP_ROOM_MIN,
	};
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
			dump_begin(&reader, &dump, dumps[i]);
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

TEST(a_reader_keeps_no_domain)
{
	struct rdmatensor_dump dump;
	struct partner partner;
	struct caller reader;
	struct side other;

	/* Its own comes after that of the partner, which is read first */
	if (partner_begin(&partner)) {
		side_open(&other, "partner", BYTES, 0, NULL);
		partner_tells(&partner);
		partner_waits(&partner);
		side_close(&other);
		partner_tells(&partner);
		_exit(0);
	}
	CHECK(partner_told(&partner, 60000));
	open_without_pool("reader");
	hold_at("domain_read");
	dump_begin(&reader, &dump, RDMATENSOR_NL_CMD_DOMAIN_GET);
	partner_goes(&partner);
	partner_is_kept(&partner);
	EQ(caller_end(&reader), 0);
}

TEST(memory_is_free_after_munmap)
{
	struct rdmatensor_pool_create pool;
	struct partner partner;
	void *at;

	open_without_pool("maker");
	if (partner_begin(&partner)) {
		EQ(create(rdmatensor_fd(s.rt), &pool), 0);
		at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rdmatensor_fd(s.rt),
			  (off_t)pool.out_mmap_offset);
		CHECK(at != MAP_FAILED);
		EQ(destroy(rdmatensor_fd(s.rt), pool.out_pool_id), 0);
		partner_tells(&partner);
		partner_waits(&partner);
		EQ(munmap(at, BYTES), 0);
		partner_tells(&partner);
		_exit(0);
	}
	CHECK(partner_told(&partner, 60000));
	hold_at("pool_free");
	partner_goes(&partner);
	partner_is_kept(&partner);
}

TEST(memory_is_free_after_close)
{
	struct partner partner;

	if (partner_begin(&partner)) {
		side_open(&s, "maker", BYTES, 0, NULL);
		partner_tells(&partner);
		partner_waits(&partner);
		side_close(&s);
		partner_tells(&partner);
		_exit(0);
	}
	CHECK(partner_told(&partner, 60000));
	hold_at("pool_free");
	partner_goes(&partner);
	partner_is_kept(&partner);
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

TEST(what_is_hidden_of_a_step_is_free_after_its_abort)
{
	struct rdmatensor_step_abort abort = {
		.size = sizeof(abort), .step_id = 3, .status = -EIO,
	};
	struct caller aborting;
	uint64_t at;

	side_open(&s, "maker", BYTES, 0, NULL);
	at = side_alloc(&s, 64);
	EQ(publish_in(&s, "t", 3, at), 0);
	hold_at("retire");
	caller_begin(&aborting, rdmatensor_fd(s.rt), RDMATENSOR_STEP_ABORT, &abort);
	hold_wait();
	caller_sleeps(&aborting);
	hold_go();
	EQ(caller_end(&aborting), 0);
	EQ(rdmatensor_pool_free(s.rt, &s.pool, at), 0);
}

TEST(what_a_writer_has_hidden_is_free_after_its_close)
{
	struct partner partner;
	struct side writer;

	side_open(&s, "maker", BYTES, 0, NULL);
	EQ(rdmatensor_domain_create(s.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	if (partner_begin(&partner)) {
		side_open(&writer, "writer", BYTES, 0, join);
		EQ(publish_in(&writer, "t", 3, side_alloc(&writer, 64)), 0);
		if (write(partner.out, &writer.pool.id, sizeof(writer.pool.id)) < 0)
			_exit(202);
		partner_waits(&partner);
		side_close(&writer);
		partner_tells(&partner);
		_exit(0);
	}
	EQ(read(partner.out, &writer.pool.id, sizeof(writer.pool.id)), sizeof(writer.pool.id));
	EQ(destroy(rdmatensor_fd(s.rt), writer.pool.id), -EBUSY);
	hold_at("retire");
	partner_goes(&partner);
	partner_is_kept(&partner);
	EQ(destroy(rdmatensor_fd(s.rt), writer.pool.id), 0);
	close(domain);
}

/* Another context may fill that step: there is no generation of it when WITHDRAW's entry is there */
TEST(the_last_of_a_generation_is_withdrawn)
{
	struct rdmatensor_submit submit;
	struct caller withdrawing;
	struct rdmatensor_op op;
	struct side other;

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
