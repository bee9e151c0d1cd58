// SPDX-License-Identifier: GPL-2.0
/*
 * A worker is held before it copies a tensor within its own context. Whatever ends a fetch ends
 * this one, too: what is not copied yet stays so, and the tensor is there for the next one.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness.h"
#include "hold.h"

#define BYTES 9000
/* What the module copies between two looks whether it is wanted */
#define PIECE (4u << 20)

static struct side s;
static unsigned char *memory;
static uint64_t to, bytes;

static void ask(uint64_t user_data, uint64_t deadline_ns)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "t", 0, s.pool.id, to, bytes,
			      deadline_ns, user_data);
	EQ(side_do(&s, &op), 0);
}

/* The fetch of a tensor of @size is held at @point */
static void begin(const char *point, uint64_t size, uint64_t deadline_ns)
{
	bytes = size;
	side_open(&s, "self", 32 << 20, 1, NULL);
	publish(&s, "t", 0, bytes, 1, 1, 7);
	to = side_alloc(&s, bytes);
	memory = side_at(&s, to);
	memset(memory, 0xee, bytes);
	hold_at(point);
	ask(1, deadline_ns);
	hold_wait();
}

static void untouched(const unsigned char *at, uint64_t size)
{
	CHECK(at[0] == 0xee && !memcmp(at, at + 1, size - 1));
}

/* It goes on, and ends with @error; all but @copied is as it was. The next one gets the tensor */
static void end(int error, uint64_t copied)
{
	struct rdmatensor_cqe cqe;

	side_none(&s, RDMATENSOR_CQE_FETCH, 1, 20);
	hold_go();
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 1, &cqe), error);
	untouched(memory + copied, bytes - copied);
	EQ(side_stat(&s, RDMATENSOR_STAT_COPIED_BYTES), 0);
	side_none(&s, RDMATENSOR_CQE_PUBLISH, 7, 20);
	ask(2, 0);
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 2, &cqe), 0);
	CHECK(filled(memory, bytes, 1));
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
	EQ(side_stat(&s, RDMATENSOR_STAT_COPIED_BYTES), bytes);
}

static void *close_it(void *unused)
{
	side_close(&s);
	return unused;
}

TEST(self_copy_cancelled)
{
	struct rdmatensor_op op;

	begin("local_copy", BYTES, 0);
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&s, &op), 0);
	/* It has its end already */
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&s, &op), 0);
	end(-ECANCELED, 0);
}

TEST(self_copy_later_than_its_deadline)
{
	begin("local_copy", BYTES, rdmatensor_deadline_ms(100));
	/* Nothing says that the time is over, as it ends in the worker that is held */
	side_none(&s, RDMATENSOR_CQE_FETCH, 1, 300);
	end(-ETIMEDOUT, 0);
}

/* A long one, of which a part has been copied */
TEST(self_copy_cancelled_in_the_middle)
{
	struct rdmatensor_op op;

	begin("local_copy_on", 9 << 20, 0);
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&s, &op), 0);
	end(-ECANCELED, PIECE);
}

/* The tensor goes with its step, and so there is none for the next one */
TEST(self_copy_of_an_aborted_step)
{
	struct rdmatensor_cqe cqe;

	begin("local_copy", BYTES, 0);
	EQ(rdmatensor_step_abort(s.rt, 0, -EDOM, "no more"), 0);
	side_none(&s, RDMATENSOR_CQE_FETCH, 1, 20);
	hold_go();
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 1, &cqe), -EDOM);
	untouched(memory, BYTES);
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 7, NULL), -EDOM);
}

/* Who waits for the tensor gets it when the copy has stopped */
TEST(self_copy_cancelled_before_the_next_one)
{
	struct rdmatensor_op op;

	begin("local_copy", BYTES, 0);
	to = side_alloc(&s, BYTES);
	ask(2, 0);
	side_none(&s, RDMATENSOR_CQE_FETCH, 2, 20);
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&s, &op), 0);
	hold_go();
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 1, NULL), -ECANCELED);
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 2, NULL), 0);
	untouched(memory, BYTES);
	CHECK(filled(side_at(&s, to), BYTES, 1));
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
}

/* Whoever closes waits for no copy: a ring has room for so many that they would take hours */
TEST(self_copy_of_a_closed_context)
{
	struct rdmatensor_op op;
	struct side peer;
	pthread_t closer;

	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	memset(memory, 0xee, BYTES);
	side_open(&peer, "peer", 1 << 20, 1, NULL);
	side_open(&s, "self", 1 << 20, 0, NULL);
	side_connect(&s, &peer);
	publish(&s, "t", 0, BYTES, 1, 1, 7);
	hold_at("local_copy");
	rdmatensor_prep_fetch_memory(&op, RDMATENSOR_CHANNEL_SELF, "t", 0, memory, BYTES,
				     s.pool.id, 0, 1);
	EQ(side_do(&s, &op), 0);
	hold_wait();
	EQ(pthread_create(&closer, NULL, close_it, NULL), 0);
	EQ(side_next(&peer, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	EQ(side_next(&peer, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	hold_go();
	EQ(pthread_join(closer, NULL), 0);
	untouched(memory, BYTES);
	EQ(munmap(memory, BYTES), 0);
	side_close(&peer);
}
