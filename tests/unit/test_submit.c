// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Prepared operations, batches, and the blocking calls, on the fake device.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"
#include "lib/internal.h"
#include "unit.h"

static struct rdmatensor *rt;
static struct rdmatensor_pool pool;
static uint64_t at;

static int setup(void **state)
{
	struct rdmatensor_start start;

	(void)state;
	fake_reset();
	rdmatensor_start_init(&start, "me");
	assert_int_equal(rdmatensor_open(FAKE_PATH, &rt), 0);
	assert_int_equal(rdmatensor_start(rt, &start), 0);
	assert_int_equal(rdmatensor_pool_create(rt, 1, &pool), 0);
	assert_int_equal(pool.bytes, 4096);
	assert_int_equal(rdmatensor_pool_alloc(rt, &pool, 1024, &at), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rdmatensor_close(rt);
	return 0;
}

static void test_prep(void **state)
{
	uint64_t dims[2] = { 3, 4 };
	struct rdmatensor_op op;

	(void)state;
	memset(&op, 0xff, sizeof(op));
	rdmatensor_prep_publish(&op, "name", -5, 1, 64, 48,
				RDMATENSOR_DT_FLOAT, 2, dims, 3, 77);
	assert_int_equal(op.opcode, RDMATENSOR_OP_PUBLISH);
	assert_int_equal(op.flags, 0);
	assert_int_equal(op.name_len, 4);
	assert_int_equal(op.name_uptr, rdmatensor_op_ptr("name"));
	assert_int_equal(op.step_id, -5);
	assert_int_equal(op.pool_id, 1);
	assert_int_equal(op.offset, 64);
	assert_int_equal(op.bytes, 48);
	assert_int_equal(op.ndims, 2);
	assert_int_equal(op.dims_uptr, rdmatensor_op_ptr(dims));
	assert_int_equal(op.uses, 3);
	assert_int_equal(op.user_data, 77);
	assert_int_equal(op.channel | op.status | op.text_uptr | op.text_len |
			 op.deadline_ns | op.target | op.__reserved, 0);
	/* A scalar has no dims to point to */
	rdmatensor_prep_publish(&op, "s", 0, 1, 0, 4, RDMATENSOR_DT_FLOAT, 0,
				dims, 0, 0);
	assert_int_equal(op.dims_uptr, 0);
	rdmatensor_prep_publish_dead(&op, "d", 0, RDMATENSOR_DT_FLOAT, 2, dims,
				     1, 0);
	assert_int_equal(op.flags, RDMATENSOR_OP_DEAD);
	assert_int_equal(op.bytes | op.pool_id, 0);
	rdmatensor_prep_publish_failed(&op, "f", 0, -EIO, "broken", 1, 0);
	assert_int_equal(op.flags, RDMATENSOR_OP_FAILED);
	assert_int_equal(op.status, -EIO);
	assert_int_equal(op.text_len, 6);
	rdmatensor_prep_publish_failed(&op, "f", 0, -EIO, NULL, 1, 0);
	assert_int_equal(op.text_uptr | op.text_len, 0);
	rdmatensor_prep_fetch(&op, 9, "x", 1, 2, 128, 256, 55, 8);
	assert_int_equal(op.opcode, RDMATENSOR_OP_FETCH);
	assert_int_equal(op.channel, 9);
	assert_int_equal(op.deadline_ns, 55);
	assert_int_equal(op.flags, 0);
	rdmatensor_prep_fetch_alloc(&op, 9, "x", 1, 2, 256, 55, 8);
	assert_int_equal(op.flags, RDMATENSOR_OP_ALLOC);
	assert_int_equal(op.offset, 0);
	assert_int_equal(op.bytes, 256);
	rdmatensor_prep_fetch(&op, 9, "x", 1, 2, 128, 256, 55, 8);
	rdmatensor_prep_proxy(&op, 3);
	assert_int_equal(op.flags, RDMATENSOR_OP_PROXY);
	assert_int_equal(op.proxy_pool_id, 3);
	assert_int_equal(op.pool_id, 2);
	assert_int_equal(op.offset, 128);
	rdmatensor_prep_fetch_memory(&op, 9, "x", 1, dims, 16, 3, 55, 8);
	assert_int_equal(op.flags, RDMATENSOR_OP_PROXY);
	assert_int_equal(op.proxy_pool_id, 3);
	assert_int_equal(op.pool_id, 0);
	assert_int_equal(op.offset, rdmatensor_op_ptr(dims));
	assert_int_equal(op.bytes, 16);
	assert_int_equal(op.channel, 9);
	assert_int_equal(op.deadline_ns, 55);
	rdmatensor_prep_cancel(&op, 4711);
	assert_int_equal(op.target, 4711);
	assert_int_equal(op.name_len, 0);
	rdmatensor_prep_free(&op, 2, 192);
	assert_int_equal(op.pool_id, 2);
	assert_int_equal(op.offset, 192);
	rdmatensor_prep_withdraw(&op, "w", 3, 4);
	assert_int_equal(op.opcode, RDMATENSOR_OP_WITHDRAW);
}

/* One call takes any number, and says where it stopped */
static void test_batches(void **state)
{
	unsigned int nr = 2 * RDMATENSOR_SUBMIT_MAX + 5, done = 0, i;
	struct rdmatensor_op *ops = calloc(nr, sizeof(*ops));

	(void)state;
	for (i = 0; i < nr; i++)
		rdmatensor_prep_free(&ops[i], pool.id, 0);
	fake.submits = 0;
	assert_int_equal(rdmatensor_submit(rt, ops, nr, 0, 0, &done), 0);
	assert_int_equal(done, nr);
	assert_int_equal(fake.submits, 3);
	for (i = RDMATENSOR_SUBMIT_MAX - 1; i < nr; i += 700) {
		ops[i].offset = 1;
		assert_int_equal(rdmatensor_submit(rt, ops, nr, 0, 0, &done),
				 -ENOENT);
		assert_int_equal(done, i);
		ops[i].offset = 0;
	}
	ops[0].offset = 1;
	assert_int_equal(rdmatensor_submit(rt, ops, nr, 0, 0, &done), -ENOENT);
	assert_int_equal(done, 0);
	free(ops);
}

static void test_full_ring(void **state)
{
	struct rdmatensor_op ops[FAKE_RING + 10];
	struct rdmatensor_cqe cqes[FAKE_RING];
	unsigned int i, done;

	(void)state;
	for (i = 0; i < NR(ops); i++)
		rdmatensor_prep_fetch(&ops[i], 1, "none", 0, pool.id, at, 8, 0,
				      i);
	assert_int_equal(rdmatensor_submit(rt, ops, NR(ops), 0, 0, &done),
			 -EAGAIN);
	assert_int_equal(done, FAKE_RING);
	assert_int_equal(rdmatensor_ready(rt), FAKE_RING);
	assert_int_equal(rdmatensor_reap(rt, cqes, FAKE_RING), FAKE_RING);
	for (i = 0; i < FAKE_RING; i++)
		assert_int_equal(cqes[i].user_data, i);
	assert_int_equal(rdmatensor_submit(rt, ops + done, NR(ops) - done, 0, 0,
					   &done), 0);
	assert_int_equal(done, 10);
	assert_int_equal(rdmatensor_peek(rt, 9)->user_data, FAKE_RING + 9);
	assert_null(rdmatensor_peek(rt, 10));
	rdmatensor_advance(rt, 10);
	assert_null(rdmatensor_peek(rt, 0));
}

static void publish_until_withdrawn(const char *name, uint64_t bytes)
{
	struct rdmatensor_op op;
	uint64_t dim = bytes;

	rdmatensor_prep_publish(&op, name, 0, pool.id, at, bytes,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
}

static void test_fetch(void **state)
{
	struct rdmatensor_cqe cqe;
	char text[128];
	uint64_t to;

	(void)state;
	memcpy((char *)pool.base + at, "0123456789", 10);
	publish_until_withdrawn("t", 10);
	assert_int_equal(rdmatensor_pool_alloc(rt, &pool, 10, &to), 0);
	fake.submits = 0;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, to, 10, 0,
					  &cqe), 0);
	/* Submitting and waiting are one call */
	assert_int_equal(fake.submits, 1);
	assert_memory_equal((char *)pool.base + to, "0123456789", 10);
	assert_int_equal(cqe.tensor_bytes, 10);
	assert_int_equal(rdmatensor_ready(rt), 0);
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool,
					  RDMATENSOR_ALLOC, 0, 0, &cqe), 0);
	assert_memory_equal((char *)pool.base + cqe.offset, "0123456789", 10);
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, to, 9, 0,
					  &cqe), -EMSGSIZE);
	assert_int_equal(cqe.tensor_bytes, 10);
	assert_true(cqe.flags & RDMATENSOR_CQE_META);
	assert_contains(rdmatensor_cqe_text(&cqe, text, sizeof(text)), "has 10 bytes");
	assert_int_equal(rdmatensor_fetch(rt, 1, "u", 0, &pool, to, 10, 0,
					  &cqe), -ETIMEDOUT);
	assert_int_equal(cqe.type, RDMATENSOR_CQE_FETCH);
	assert_int_equal(cqe.user_data, 0);
}

/* Entries of others stay, whatever lies before and behind */
static void test_fetch_among_others(void **state)
{
	struct rdmatensor_cqe cqe, others[FAKE_RING];
	struct rdmatensor_op op;
	unsigned int i, n;

	(void)state;
	publish_until_withdrawn("t", 10);
	for (i = 0; i < 5; i++) {
		rdmatensor_prep_fetch(&op, 1, "t", 0, pool.id, at, 10, 0, i);
		assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
	}
	fake.extra = 7;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0,
					  &cqe), 0);
	n = rdmatensor_reap(rt, others, NR(others));
	assert_int_equal(n, 12);
	for (i = 0; i < 5; i++)
		assert_int_equal(others[i].user_data, i);
	for (; i < n; i++)
		assert_int_equal(others[i].type, RDMATENSOR_CQE_CHANNEL_DOWN);
	/* A ring that is full by others leaves no room, and says so */
	fake.extra = FAKE_RING;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0,
					  &cqe), -EAGAIN);
	assert_int_equal(cqe.type, 0);
	assert_int_equal(rdmatensor_ready(rt), FAKE_RING);
}

/* What comes between a look and the wait is not waited for once more */
static void test_entry_after_the_look(void **state)
{
	struct rdmatensor_cqe cqe;

	(void)state;
	publish_until_withdrawn("t", 10);
	fake.late = true;
	/* The wait of its own submission is over, and the entry is not there */
	fake.wait_error = -EINTR;
	fake.wait_errors = 1;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0,
					  &cqe), 0);
	assert_int_equal(fake.waits, 2);
}

static void test_signals(void **state)
{
	struct rdmatensor_cqe cqe;

	(void)state;
	publish_until_withdrawn("t", 10);
	fake.wait_error = -EINTR;
	fake.wait_errors = 3;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0,
					  &cqe), 0);
	/* Other waits do end by a signal */
	fake.wait_errors = 1;
	assert_int_equal(rdmatensor_wait(rt, 1, 0), -EINTR);
	assert_int_equal(rdmatensor_wait(rt, 1, 1), -ETIME);
}

/* What the library did not wait for is dropped when it comes, and nobody sees it */
static void test_interrupted(void **state)
{
	struct rdmatensor_cqe cqe, others[FAKE_RING];
	uint64_t dim = 10;

	(void)state;
	rdmatensor_interruptible(rt, 1);
	publish_until_withdrawn("t", 10);
	/* It has ended when it is to be cancelled */
	fake.late = true;
	fake.wait_error = -EINTR;
	fake.wait_errors = 1;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0, &cqe), 0);
	fake.hold = true;
	fake.wait_errors = 1;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10, RDMATENSOR_DT_UINT8, 1,
					    &dim, 1, 0), -EINTR);
	assert_int_equal(fake_published(), 1);
	/* Its withdrawal is made again until it does not fail */
	fake.wait_errors = 1;
	fake.fail_withdrawals = 2;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10, RDMATENSOR_DT_UINT8, 1,
					    &dim, 1, 0), -EINTR);
	assert_int_equal(fake_published(), 1);
	assert_int_equal(rdmatensor_ready(rt), 0);

	fake.late_withdrawal = true;
	fake.wait_errors = 1;
	assert_int_equal(rdmatensor_withdraw(rt, "t", 0), -EINTR);
	assert_int_equal(rdmatensor_ready(rt), 0);
	fake.extra = 3;
	fake_late();
	assert_int_equal(rdmatensor_reap(rt, others, FAKE_RING), 3);
	assert_int_equal(rdmatensor_ready(rt), 0);
	rdmatensor_interruptible(rt, 0);
	fake.wait_errors = 2;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0, &cqe), -ETIMEDOUT);
}

/* What was looked at in its place stays there, whatever is dropped later */
static void test_interrupted_beside_peek(void **state)
{
	const struct rdmatensor_cqe *first;
	struct rdmatensor_op op;

	(void)state;
	rdmatensor_interruptible(rt, 1);
	publish_until_withdrawn("t", 10);
	fake.late_withdrawal = true;
	fake.wait_error = -EINTR;
	fake.wait_errors = 1;
	assert_int_equal(rdmatensor_withdraw(rt, "t", 0), -EINTR);
	rdmatensor_prep_fetch(&op, 1, "none", 0, pool.id, at, 10, 0, 4711);
	assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
	first = rdmatensor_peek(rt, 0);
	assert_non_null(first);
	assert_int_equal(first->user_data, 4711);
	fake.extra = 3;
	fake_late();
	op.user_data = 4712;
	assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
	/* Up to what nobody is to see */
	assert_int_equal(rdmatensor_ready(rt), 4);
	assert_null(rdmatensor_peek(rt, 4));
	assert_ptr_equal(rdmatensor_peek(rt, 0), first);
	assert_int_equal(first->user_data, 4711);
	rdmatensor_advance(rt, 4);
	assert_int_equal(rdmatensor_ready(rt), 1);
	assert_int_equal(rdmatensor_peek(rt, 0)->user_data, 4712);
	rdmatensor_advance(rt, 1);
	assert_int_equal(rdmatensor_ready(rt), 0);
}

/* One that knows no waits for the head is asked once, and then as before */
static void test_older_module(void **state)
{
	struct rdmatensor_cqe cqe;
	uint64_t dim = 10;

	(void)state;
	fake.old = true;
	publish_until_withdrawn("t", 10);
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0, &cqe), 0);
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0, &cqe), 0);
	fake.extra = 5;
	assert_int_equal(rdmatensor_fetch(rt, 1, "t", 0, &pool, at, 10, 0, &cqe), 0);
	assert_int_equal(fake.too_big, 1);
	assert_int_equal(rdmatensor_ready(rt), 5);
	/* Nor that a withdrawal means one alone */
	fake.hold = true;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10, RDMATENSOR_DT_UINT8, 1,
					    &dim, 1, 1), -ETIMEDOUT);
	assert_int_equal(fake_published(), 1);
}

/* Another thread ends waits, also those that find something to do, or that are made of pieces */
static void test_stopped(void **state)
{
	static const struct {
		bool old;
		unsigned int ms;
	} kinds[] = { { false, 0 }, { false, 60000 }, { false, 1 }, { true, 0 }, { true, 60000 } };
	uint64_t dim = 10, deadline_ns;
	bool stop = true;
	size_t i;

	(void)state;
	rdmatensor_interruptible(rt, 1);
	rt_stop_by(&stop);
	fake.hold = true;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		fake.old = kinds[i].old;
		deadline_ns = kinds[i].ms ? rdmatensor_deadline_ms(kinds[i].ms) : 0;
		/* Entries of others, for as many as the ring has room */
		fake.extra = 10;
		assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10, RDMATENSOR_DT_UINT8, 1,
						    &dim, 1, deadline_ns), -EINTR);
		assert_int_equal(fake_published(), 0);
	}
	/* Nor does it hide a deadline where it may not end the call, and a withdrawal that is made again */
	fake.old = false;
	rdmatensor_interruptible(rt, 0);
	fake.fail_withdrawals = 2;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10, RDMATENSOR_DT_UINT8, 1, &dim, 1,
					    rdmatensor_deadline_ms(1)), -ETIMEDOUT);
	assert_int_equal(fake.fail_withdrawals, 0);
	assert_int_equal(fake_published(), 0);
	rt_stop_by(NULL);
	assert_false(rt_may_stop() || rt_stopped());
}

static void test_wait_without_call(void **state)
{
	struct rdmatensor_op op;

	(void)state;
	rdmatensor_prep_fetch(&op, 1, "t", 0, pool.id, at, 10, 0, 0);
	assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
	fake.submits = 0;
	assert_int_equal(rdmatensor_wait(rt, 1, 0), 0);
	assert_int_equal(rdmatensor_wait(rt, 0, 0), 0);
	assert_int_equal(fake.submits, 0);
	assert_int_equal(rdmatensor_wait(rt, 2, 1), -ETIME);
	assert_int_equal(fake.submits, 1);
}

static void test_publish(void **state)
{
	uint64_t dim = 10;

	(void)state;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10,
					    RDMATENSOR_DT_UINT8, 1, &dim, 1,
					    0), 0);
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10,
					    RDMATENSOR_DT_UINT8, 1, &dim, 0,
					    0), -EINVAL);
	/* The deadline withdraws it, and both entries are taken */
	fake.hold = true;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10,
					    RDMATENSOR_DT_UINT8, 1, &dim, 1,
					    1), -ETIMEDOUT);
	assert_int_equal(fake_published(), 0);
	assert_int_equal(rdmatensor_ready(rt), 0);
	/* A withdrawal that fails is made again, and nothing is waited for meanwhile */
	fake.fail_withdrawals = 3;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10,
					    RDMATENSOR_DT_UINT8, 1, &dim, 1,
					    1), -ETIMEDOUT);
	assert_int_equal(fake.fail_withdrawals, 0);
	assert_int_equal(fake_published(), 0);
	publish_until_withdrawn("p", 10);
	assert_int_equal(rdmatensor_publish(rt, "p", 0, &pool, at, 10,
					    RDMATENSOR_DT_UINT8, 1, &dim, 1,
					    0), -EEXIST);
	assert_int_equal(rdmatensor_withdraw(rt, "p", 0), 0);
	assert_int_equal(rdmatensor_withdraw(rt, "p", 0), -ENOENT);
	assert_int_equal(rdmatensor_ready(rt), 0);
	/* It is delivered, whatever the withdrawal found */
	fake.taken = true;
	assert_int_equal(rdmatensor_publish(rt, "p", 1, &pool, at, 10, RDMATENSOR_DT_UINT8, 1,
					    &dim, 1, 1), 0);
	assert_int_equal(rdmatensor_ready(rt), 0);
}

static void test_run_refuses(void **state)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	(void)state;
	/* What makes no entry would be waited for without end */
	rdmatensor_prep_free(&op, pool.id, at);
	assert_int_equal(rdmatensor_run(rt, &op, &cqe), -EINVAL);
	rdmatensor_prep_cancel(&op, 1);
	assert_int_equal(rdmatensor_run(rt, &op, &cqe), -EINVAL);
	rdmatensor_prep_publish(&op, "p", 0, pool.id, at, 4,
				RDMATENSOR_DT_UINT8, 0, NULL, 0, 0);
	assert_int_equal(rdmatensor_run(rt, &op, &cqe), -EINVAL);
	assert_int_equal(cqe.type, 0);
}

static void test_before_start(void **state)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor *fresh;

	(void)state;
	assert_int_equal(rdmatensor_open(FAKE_PATH, &fresh), 0);
	assert_int_equal(rdmatensor_fetch(fresh, 1, "t", 0, &pool, 0, 1, 0,
					  &cqe), -ENOTCONN);
	assert_int_equal(rdmatensor_reap(fresh, &cqe, 1), 0);
	assert_null(rdmatensor_peek(fresh, 0));
	rdmatensor_close(fresh);
	rdmatensor_close(NULL);
}

static void test_open(void **state)
{
	struct rdmatensor *other;

	(void)state;
	assert_int_equal(rdmatensor_open("/no/such/file", &other), -ENOENT);
	/* Some other device is told apart at once */
	assert_int_equal(rdmatensor_open("/dev/null", &other), -ENOTTY);
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	assert_int_equal(rdmatensor_open(NULL, &other), 0);
	rdmatensor_close(other);
	fake.open_error = -EACCES;
	assert_int_equal(rdmatensor_open(NULL, &other), -EACCES);
}

static void test_pools(void **state)
{
	static unsigned char own[8192] __attribute__((aligned(4096)));
	struct rdmatensor_pool many[6];
	char cause[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < NR(many); i++) {
		assert_int_equal(rdmatensor_pool_create(rt, 5000 * i + 1,
							&many[i]), 0);
		memset(many[i].base, (int)i, many[i].bytes);
	}
	for (i = 0; i < NR(many); i++)
		assert_int_equal(((char *)many[i].base)[many[i].bytes - 1], i);
	assert_int_equal(rdmatensor_pool_destroy(rt, &many[2]), 0);
	assert_null(many[2].base);
	assert_int_equal(rdmatensor_pool_destroy(rt, &many[2]), -ENOENT);
	fake.pool_error = -ENOMEM;
	assert_int_equal(rdmatensor_pool_create(rt, 1, &many[2]), -ENOMEM);
	own[8191] = 7;
	/* Memory of the caller's stays the caller's */
	fake.pool_error = 0;
	assert_int_equal(rdmatensor_pool_register(rt, own, sizeof(own), RDMATENSOR_POOL_PEERS_NONE,
						  0, &many[2], cause, sizeof(cause)), 0);
	assert_ptr_equal(many[2].base, own);
	assert_int_equal(many[2].bytes, sizeof(own));
	assert_int_equal(rdmatensor_pool_destroy(rt, &many[2]), 0);
	assert_int_equal(own[8191], 7);
	fake.pool_error = -EACCES;
	assert_int_equal(rdmatensor_pool_register(rt, own, sizeof(own), RDMATENSOR_POOL_PEERS_NONE,
						  0, &many[2], cause, sizeof(cause)), -EACCES);
	assert_string_equal(cause, "POOL_REGISTER: as the test wants");
	/* The others go with the handle; the sanitizer watches */
	assert_int_equal(rdmatensor_pool_free(rt, &pool, at), 0);
}

/* Nothing maps a dma-buf but its owner */
static void test_pool_import(void **state)
{
	int fd = memfd_create("rdmatensor", 0);
	struct rdmatensor_pool other;
	uint32_t flags = 0;
	char cause[256];

	(void)state;
	fake.pool_error = -EACCES;
	assert_int_equal(ftruncate(fd, 12288), 0);
	assert_int_equal(rdmatensor_pool_import(rt, fd, RDMATENSOR_POOL_PEERS_NONE, 0, &other,
						&flags, cause, sizeof(cause)), -EACCES);
	assert_string_equal(cause, "POOL_IMPORT: as the test wants");
	fake.pool_error = 0;
	assert_int_equal(rdmatensor_pool_import(rt, fd, RDMATENSOR_POOL_PEERS_NONE, 0, &other,
						&flags, cause, sizeof(cause)), 0);
	assert_null(other.base);
	assert_int_equal(other.bytes, 12288);
	assert_int_equal(flags, RDMATENSOR_IMPORTED_UNREACHABLE);
	assert_int_equal(rdmatensor_pool_destroy(rt, &other), 0);
	assert_int_equal(rdmatensor_pool_import(rt, -1, 0, 0, &other, NULL, NULL, 0), -EBADF);
	close(fd);
}

static void test_connect(void **state)
{
	char cause[300], name[100];
	uint32_t channel = 0;

	(void)state;
	assert_int_equal(rdmatensor_connect(rt, "10.0.0.1", NULL, 0, &channel,
					    cause, sizeof(cause)), 0);
	assert_int_equal(channel, 1);
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(rdmatensor_connect(rt, "10.0.0.1", "w", 0, &channel,
					    cause, sizeof(cause)),
			 -ECONNREFUSED);
	assert_contains(cause, "nobody listens");
	assert_int_equal(rdmatensor_connect(rt, "[", NULL, 0, &channel, cause,
					    sizeof(cause)), -EINVAL);
	memset(name, 'w', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(rdmatensor_connect(rt, "10.0.0.1", name, 0, &channel,
					    cause, sizeof(cause)), -EINVAL);
	assert_contains(cause, "63 bytes");
	assert_int_equal(rdmatensor_connect(rt, "10.0.0.1", NULL, 0, &channel,
					    NULL, 0), -ECONNREFUSED);
}

static void test_helpers(void **state)
{
	char all[RDMATENSOR_STATUS_ROOM], whole[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_cqe cqe = { .result = -EINVAL };
	char text[64];
	unsigned int i, j;
	uint64_t now;

	(void)state;
	assert_string_equal(rdmatensor_cqe_text(&cqe, text, sizeof(text)),
			    strerror(EINVAL));
	/* What no call has filled in does not say that all is well */
	assert_contains(rdmatensor_cqe_text(&(struct rdmatensor_cqe){ 0 }, text, sizeof(text)),
			"not submitted");
	cqe.flags = RDMATENSOR_CQE_TEXT;
	memcpy(cqe.text, "no such layer", 13);
	cqe.text_len = 13;
	assert_contains(rdmatensor_cqe_text(&cqe, text, sizeof(text)),
			": no such layer");
	/* Not terminated, and a length that lies */
	memset(cqe.text, 'x', sizeof(cqe.text));
	cqe.text_len = 65535;
	assert_int_equal(strlen(rdmatensor_cqe_text(&cqe, text, sizeof(text))),
			 sizeof(text) - 1);
	/* All of it, its beginning if it is not kept any more, and no byte too many */
	cqe.text_len = sizeof(cqe.text);
	assert_string_equal(rdmatensor_status_text(rt, &cqe, all, sizeof(all)),
			    rdmatensor_cqe_text(&cqe, whole, sizeof(whole)));
	cqe.flags |= RDMATENSOR_CQE_MORE;
	cqe.text_id = FAKE_TEXT_ID + 1;
	assert_string_equal(rdmatensor_status_text(rt, &cqe, all, sizeof(all)), whole);
	cqe.text_id = FAKE_TEXT_ID;
	rdmatensor_status_text(rt, &cqe, all, sizeof(all));
	assert_int_equal(strspn(all + strlen(strerror(EINVAL)) + 2, "y"),
			 RDMATENSOR_STATUS_TEXT_MAX);
	assert_int_equal(strlen(all), strlen(strerror(EINVAL)) + 2 + RDMATENSOR_STATUS_TEXT_MAX);
	assert_int_equal(strlen(rdmatensor_status_text(rt, &cqe, all, 100)), 99);
	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(rdmatensor_stat_name(i),
						rdmatensor_stat_name(j));
	assert_null(rdmatensor_stat_name(RDMATENSOR_STAT_NR));
	for (i = 1; i <= RDMATENSOR_DT_MAX; i++)
		assert_non_null(rdmatensor_data_type_name(i));
	assert_null(rdmatensor_data_type_name(0));
	assert_null(rdmatensor_data_type_name(RDMATENSOR_DT_MAX + 1));
	assert_int_equal(rdmatensor_data_type_size(RDMATENSOR_DT_STRING), 0);
	assert_int_equal(rdmatensor_data_type_size(RDMATENSOR_DT_COMPLEX128),
			 16);
	assert_int_equal(rdmatensor_deadline_ms(-1), 0);
	assert_int_equal(rdmatensor_deadline_ms(INT64_MAX), 0);
	now = rdmatensor_now_ns();
	assert_in_range(rdmatensor_deadline_ms(1000), now + 1000000000,
			now + 60000000000);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_prep),
		test(test_batches),
		test(test_full_ring),
		test(test_fetch),
		test(test_fetch_among_others),
		test(test_entry_after_the_look),
		test(test_signals),
		test(test_interrupted),
		test(test_interrupted_beside_peek),
		test(test_older_module),
		test(test_stopped),
		test(test_wait_without_call),
		test(test_publish),
		test(test_run_refuses),
		test(test_before_start),
		test(test_open),
		test(test_pools),
		test(test_pool_import),
		test(test_connect),
		test(test_helpers),
	};

	return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
