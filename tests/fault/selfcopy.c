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

static struct side s;
static unsigned char *memory;
static uint64_t to;

static void ask(uint64_t user_data, uint64_t deadline_ns)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "t", 0, s.pool.id, to, BYTES,
			      deadline_ns, user_data);
	EQ(side_do(&s, &op), 0);
}

/* The fetch is held before its copy */
static void begin(uint32_t uses, uint64_t deadline_ns)
{
	side_open(&s, "self", 1 << 20, 1, NULL);
	publish(&s, "t", 0, BYTES, uses, 1, 7);
	to = side_alloc(&s, BYTES);
	memory = side_at(&s, to);
	memset(memory, 0xee, BYTES);
	hold_at("local_copy");
	ask(1, deadline_ns);
	hold_wait();
}

static void untouched(void)
{
	CHECK(memory[0] == 0xee && !memcmp(memory, memory + 1, BYTES - 1));
}

/* It goes on, and ends with @error; the next one gets the tensor */
static void end(int error)
{
	struct rdmatensor_cqe cqe;

	side_none(&s, RDMATENSOR_CQE_FETCH, 1, 20);
	hold_go();
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 1, &cqe), error);
	untouched();
	EQ(side_stat(&s, RDMATENSOR_STAT_COPIED_BYTES), 0);
	side_none(&s, RDMATENSOR_CQE_PUBLISH, 7, 20);
	ask(2, 0);
	EQ(side_next(&s, RDMATENSOR_CQE_FETCH, 2, &cqe), 0);
	CHECK(filled(memory, BYTES, 1));
	EQ(side_next(&s, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
	EQ(side_stat(&s, RDMATENSOR_STAT_COPIED_BYTES), BYTES);
}

static void *close_it(void *unused)
{
	side_close(&s);
	return unused;
}

TEST(self_copy_cancelled)
{
	struct rdmatensor_op op;

	begin(1, 0);
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&s, &op), 0);
	/* It has its end already */
	rdmatensor_prep_cancel(&op, 1);
	EQ(side_do(&s, &op), 0);
	end(-ECANCELED);
}

TEST(self_copy_later_than_its_deadline)
{
	begin(1, rdmatensor_deadline_ms(100));
	/* Nothing says that the time is over, as it ends in the worker that is held */
	side_none(&s, RDMATENSOR_CQE_FETCH, 1, 300);
	end(-ETIMEDOUT);
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
	publish(&s, "t", 0, BYTES, 0, 1, 7);
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
	untouched();
	EQ(munmap(memory, BYTES), 0);
	side_close(&peer);
}
