// SPDX-License-Identifier: GPL-2.0
/*
 * A worker is held before it copies from a proxy to its destination: all of the content has come,
 * and whatever ends a fetch comes too late. All else goes on meanwhile, and whatever goes away
 * leaves the copy what it needs.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "device.h"
#include "harness.h"
#include "hold.h"

#define BYTES 9000
#define POOL (1u << 20)
#define MAPPED (4 * 4096)

static struct pair p;
static unsigned char *at;

static int submit_proxied(struct side *side, int64_t step, uint64_t deadline_ns)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_memory(&op, side->channel, "t", step, at + 1, BYTES, side->pool.id,
				     deadline_ns, 1);
	return side_do(side, &op);
}

/* The fetch of step 0 is held before its copy */
static void begin(uint64_t deadline_ns)
{
	at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	memset(at, 0xee, MAPPED);
	pair_open(&p, POOL, NULL);
	publish(&p.a, "t", 0, BYTES, 1, 1, 7);
	hold_at("proxy_copy");
	EQ(submit_proxied(&p.b, 0, deadline_ns), 0);
	hold_wait();
	/* To its publisher it is delivered */
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 20);
	CHECK(at[1] == 0xee && !memcmp(at, at + 1, MAPPED - 1));
}

/* It goes on, and succeeds */
static void end(void)
{
	struct rdmatensor_cqe cqe;

	hold_go();
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
	EQ(cqe.offset, (uintptr_t)at + 1);
	CHECK(filled(at + 1, BYTES, 1));
	CHECK(at[0] == 0xee && at[BYTES + 1] == 0xee);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 20);
	/* No region is left */
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, side_alloc(&p.b, POOL)), 0);
	EQ(munmap(at, MAPPED), 0);
}

TEST(too_late_to_end_a_copy)
{
	struct rdmatensor_op op;

	begin(rdmatensor_deadline_ms(300));
	/* There is nothing to be ended any more, but the fetch is there: it is left alone */
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&p.b, &op), 0);
	EQ(rdmatensor_step_abort(p.b.rt, 0, -EIO, "no more"), 0);
	EQ(rdmatensor_step_abort(p.a.rt, 0, -EIO, "no more"), 0);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 400);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), -EBUSY);
	/* The region that it copies from is the first one of the pool, and the kernel's */
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, 0), -EBUSY);
	end();
	EQ(side_stat(&p.b, RDMATENSOR_STAT_COPIED_BYTES), BYTES);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_CANCELS), 0);
}

TEST(others_go_on_beside_a_proxy)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t to;

	begin(0);
	publish(&p.a, "t", 1, BYTES, 2, 2, 8);
	EQ(fetch(&p.b, "t", 1, BYTES, &to, &cqe), 0);
	CHECK(filled(side_at(&p.b, to), BYTES, 2));
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, to), 0);
	/* Another one with a proxy, too: its worker is not this one */
	memset(at + BYTES + 2, 0, 1);
	rdmatensor_prep_fetch_memory(&op, p.b.channel, "t", 1, at + BYTES + 2, 1, p.b.pool.id, 0,
				     2);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, NULL), -EMSGSIZE);
	end();
}

TEST(channel_ends_beside_a_proxy)
{
	begin(0);
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	side_close(&p.a);
	end();
}

TEST(destination_is_unmapped_beside_a_proxy)
{
	unsigned char *other;

	begin(0);
	EQ(munmap(at, MAPPED), 0);
	other = mmap(at, MAPPED, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(other == at);
	memset(at, 0x55, MAPPED);
	hold_go();
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	CHECK(at[1] == 0x55 && !memcmp(at, at + 1, MAPPED - 1));
	EQ(munmap(at, MAPPED), 0);
}

/* A copy is no use of the device: neither waits for the other */
TEST(device_goes_beside_a_proxy)
{
	begin(0);
	EQ(device_del(), 0);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 20);
	end();
	EQ(submit_proxied(&p.b, 1, 0), -ENODEV);
	side_close(&p.a);
	side_close(&p.b);
	EQ(device_add(), 0);
	side_open(&p.a, "after", POOL, 1, NULL);
}

static void *close_b(void *unused)
{
	side_close(&p.b);
	return unused;
}

/* What is closed waits for the worker, which needs its pool, and not for a copy */
TEST(closed_beside_a_proxy)
{
	pthread_t closer;

	begin(0);
	EQ(pthread_create(&closer, NULL, close_b, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	hold_go();
	EQ(pthread_join(closer, NULL), 0);
	/* Nobody gets its entry any more, and a copy may take long */
	CHECK(at[1] == 0xee && !memcmp(at, at + 1, MAPPED - 1));
	EQ(munmap(at, MAPPED), 0);
}

/* The process dies before its last copy, which needs no page that nobody sees any more */
TEST(killed_beside_a_proxy)
{
	int status, ready[2];
	char byte;
	pid_t pid;

	at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	side_open(&p.a, "a", POOL, 1, NULL);
	publish(&p.a, "t", 0, BYTES, 1, 1, 7);
	EQ(pipe(ready), 0);
	hold_at("proxy_copy");
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		side_open(&p.b, "dies", POOL, 0, NULL);
		side_connect(&p.b, &p.a);
		if (submit_proxied(&p.b, 0, 0) || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	close(ready[1]);
	EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	hold_wait();
	EQ(kill(pid, SIGKILL), 0);
	hold_go();
	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
	EQ(munmap(at, MAPPED), 0);
}

/* Held when its destination is pinned, before it has begun: a call of step 3 */
static void begin_pinned(struct caller *held, struct rdmatensor_submit *submit,
			 struct rdmatensor_op *op)
{
	at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	pair_open(&p, POOL, NULL);
	rdmatensor_prep_fetch_memory(op, p.b.channel, "t", 3, at + 1, BYTES, p.b.pool.id, 0, 1);
	*submit = (struct rdmatensor_submit){
		.size = sizeof(*submit), .op_size = sizeof(*op),
		.ops_uptr = rdmatensor_op_ptr(op), .nr_ops = 1,
	};
	hold_at("fetch");
	caller_begin(held, rdmatensor_fd(p.b.rt), RDMATENSOR_SUBMIT, submit);
	hold_wait();
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), -EBUSY);
}

TEST(pinned_and_aborted)
{
	struct rdmatensor_submit submit;
	struct rdmatensor_op op;
	struct caller held;

	begin_pinned(&held, &submit, &op);
	EQ(rdmatensor_step_abort(p.b.rt, 3, -EDOM, NULL), 0);
	hold_go();
	EQ(caller_end(&held), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), -EDOM);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(munmap(at, MAPPED), 0);
}

/* In strict mode an end waits for each SUBMIT that maps a destination; one is held here */
TEST_POOL(pinned_and_disconnected)
{
	struct rdmatensor_submit submit;
	struct rdmatensor_op op;
	struct caller held;

	begin_pinned(&held, &submit, &op);
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
	hold_go();
	EQ(caller_end(&held), -ENOTCONN);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 20);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(munmap(at, MAPPED), 0);
}

TEST_POOL(pinned_and_unplugged)
{
	struct rdmatensor_submit submit;
	struct rdmatensor_op op;
	struct caller held;

	begin_pinned(&held, &submit, &op);
	EQ(device_del(), 0);
	hold_go();
	EQ(caller_end(&held), -ENOTCONN);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	side_close(&p.a);
	side_close(&p.b);
	EQ(device_add(), 0);
	EQ(munmap(at, MAPPED), 0);
}
