// SPDX-License-Identifier: GPL-2.0
/* A PUBLISH that copies its tensor is held before the first byte; all else goes on meanwhile */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "device.h"
#include "harness.h"
#include "hold.h"

#define BYTES 9000

static struct side s;
static uint64_t at;
static struct rdmatensor_op op;
static struct rdmatensor_submit submit;
static uint64_t dim;

static void prepare(const char *name, int64_t step, uint64_t user_data)
{
	dim = BYTES;
	rdmatensor_prep_publish(&op, name, step, s.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 1, user_data);
	op.flags |= RDMATENSOR_OP_COPY;
	submit = (struct rdmatensor_submit){
		.size = sizeof(submit), .op_size = sizeof(op),
		.ops_uptr = rdmatensor_op_ptr(&op), .nr_ops = 1,
	};
}

/* Held in the copy of (@name, @step), with entry @user_data */
static void begin(struct caller *held, const char *name, int64_t step, uint64_t user_data)
{
	prepare(name, step, user_data);
	hold_at("publish_copy");
	caller_begin(held, rdmatensor_fd(s.rt), RDMATENSOR_SUBMIT, &submit);
	hold_wait();
}

static void open_filled(void)
{
	side_open(&s, "copying", 1 << 20, 1, NULL);
	at = side_alloc(&s, BYTES);
	fill(side_at(&s, at), BYTES, 1);
}

static int withdraw(const char *name, int64_t step)
{
	struct rdmatensor_op other;

	rdmatensor_prep_withdraw(&other, name, step, 99);
	return side_do(&s, &other);
}

static void expect(const char *name, int64_t step)
{
	struct rdmatensor_cqe cqe;
	uint64_t to = side_alloc(&s, BYTES);

	EQ(rdmatensor_fetch(s.rt, RDMATENSOR_CHANNEL_SELF, name, step, &s.pool, to, BYTES,
			    rdmatensor_deadline_ms(20000), &cqe), 0);
	CHECK(filled(side_at(&s, to), BYTES, 1));
	EQ(rdmatensor_pool_free(s.rt, &s.pool, to), 0);
}

TEST(others_go_on_beside_a_copy)
{
	struct rdmatensor_op other;
	struct caller held;
	uint64_t to;

	open_filled();
	begin(&held, "n", 0, 1);
	/* It is not offered before it is copied whole */
	EQ(withdraw("n", 0), -ENOENT);
	side_none(&s, RDMATENSOR_CQE_PUBLISH, 1, 20);
	/* What is being copied stays as it is */
	rdmatensor_prep_fetch(&other, RDMATENSOR_CHANNEL_SELF, "m", 0, s.pool.id, at, BYTES, 0, 2);
	EQ(side_do(&s, &other), -EINVAL);
	EQ(rdmatensor_pool_free(s.rt, &s.pool, at), -EBUSY);
	EQ(rdmatensor_pool_destroy(s.rt, &s.pool), -EBUSY);
	/* Its buffer is busy, so the next one of the name has another */
	to = side_alloc(&s, BYTES);
	fill(side_at(&s, to), BYTES, 1);
	rdmatensor_prep_publish(&other, "n", 1, s.pool.id, to, BYTES, RDMATENSOR_DT_UINT8, 1, &dim,
				1, 3);
	other.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&s, &other), 0);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 3, NULL), 0);
	memset(side_at(&s, to), 0, BYTES);
	expect("n", 1);
	EQ(side_stat(&s, RDMATENSOR_STAT_BUFFERS_MADE), 2);
	hold_go();
	EQ(caller_end(&held), 0);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	EQ(rdmatensor_pool_free(s.rt, &s.pool, at), 0);
	expect("n", 0);
}

TEST(step_ends_while_it_is_copied)
{
	struct caller held;

	open_filled();
	begin(&held, "n", 5, 1);
	EQ(rdmatensor_step_abort(s.rt, 5, -EIO, "no more"), 0);
	hold_go();
	EQ(caller_end(&held), -EIO);
	side_none(&s, RDMATENSOR_CQE_PUBLISH, 1, 20);
	EQ(withdraw("n", 5), -ENOENT);
	EQ(side_stat(&s, RDMATENSOR_STAT_PUBLISHED), 0);
	/* The buffer is the name's all the same */
	prepare("n", 6, 2);
	EQ(side_do(&s, &op), 0);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 2, NULL), 0);
	EQ(side_stat(&s, RDMATENSOR_STAT_BUFFERS_MADE), 1);
	expect("n", 6);
}

/* The process is killed: it copies nothing any more, and what it shares is as before */
TEST(killed_while_it_copies)
{
	pid_t pid;
	int status;

	open_filled();
	prepare("n", 0, 1);
	hold_at("publish_copy");
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		call(rdmatensor_fd(s.rt), RDMATENSOR_SUBMIT, &submit);
		_exit(0);
	}
	hold_wait();
	EQ(kill(pid, SIGKILL), 0);
	hold_go();
	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	EQ(side_stat(&s, RDMATENSOR_STAT_PUBLISH_COPIES), 0);
	EQ(withdraw("n", 0), -ENOENT);
	side_none(&s, RDMATENSOR_CQE_PUBLISH, 1, 20);
	EQ(rdmatensor_pool_free(s.rt, &s.pool, at), 0);
	at = side_alloc(&s, BYTES);
	fill(side_at(&s, at), BYTES, 1);
	prepare("n", 1, 2);
	EQ(side_do(&s, &op), 0);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 2, NULL), 0);
	expect("n", 1);
	EQ(side_stat(&s, RDMATENSOR_STAT_BUFFERS_MADE), 1);
}

/* Closed under the hands of who copies: the last of it ends with the call */
TEST(closed_while_it_is_copied)
{
	struct caller held;

	open_filled();
	begin(&held, "n", 0, 1);
	side_close(&s);
	hold_go();
	EQ(caller_end(&held), 0);
}

/* A copy is no use of the device: neither waits for the other */
TEST(device_goes_while_it_is_copied)
{
	struct caller held;

	open_filled();
	begin(&held, "n", 0, 1);
	EQ(device_del(), 0);
	hold_go();
	EQ(caller_end(&held), 0);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	expect("n", 0);
	/* The buffer is there; another is not to be had */
	prepare("n", 1, 2);
	EQ(side_do(&s, &op), 0);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 2, NULL), 0);
	expect("n", 1);
	prepare("m", 1, 3);
	EQ(side_do(&s, &op), -ENODEV);
	side_close(&s);
	EQ(device_add(), 0);
	side_open(&s, "after", 1 << 20, 1, NULL);
}
