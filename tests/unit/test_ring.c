// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ring, on memory of our own: layouts that are refused, order, wrap-around,
 * and taking one entry out of the middle.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/ring.h"
#include "unit.h"

#define ENTRIES 8
#define OFFSET 192

struct memory {
	struct rt_ring ring;
	struct rdmatensor_ring *hdr;
	size_t bytes;
};

static void make(struct memory *mem, uint32_t start, uint32_t stride)
{
	mem->bytes = OFFSET + (size_t)ENTRIES * stride;
	mem->hdr = calloc(1, mem->bytes);
	mem->hdr->entries = ENTRIES;
	mem->hdr->entry_bytes = stride;
	mem->hdr->entries_offset = OFFSET;
	mem->hdr->head = start;
	mem->hdr->tail = start;
	assert_int_equal(rt_ring_init(&mem->ring, mem->hdr, mem->bytes), 0);
}

static void push(struct memory *mem, uint64_t user_data, int type)
{
	struct rdmatensor_cqe cqe = {
		.user_data = user_data,
		.type = (uint16_t)type,
	};

	assert_true(mem->hdr->head - mem->hdr->tail < ENTRIES);
	memcpy((char *)mem->hdr + OFFSET +
	       (mem->hdr->head % ENTRIES) * mem->hdr->entry_bytes, &cqe,
	       sizeof(cqe));
	mem->hdr->head++;
}

static void test_layout(void **state)
{
	struct rdmatensor_ring hdr = {
		.entries = 8,
		.entry_bytes = sizeof(struct rdmatensor_cqe),
		.entries_offset = OFFSET,
	}, bad;
	struct rt_ring ring;
	size_t bytes = OFFSET + 8 * sizeof(struct rdmatensor_cqe);

	(void)state;
	assert_int_equal(rt_ring_bytes(&hdr), bytes);
	bad = hdr;
	bad.entries = 0;
	assert_int_equal(rt_ring_bytes(&bad), 0);
	bad.entries = 12;
	assert_int_equal(rt_ring_bytes(&bad), 0);
	bad = hdr;
	bad.entry_bytes = sizeof(struct rdmatensor_cqe) - 8;
	assert_int_equal(rt_ring_bytes(&bad), 0);
	bad.entry_bytes = sizeof(struct rdmatensor_cqe) + 4;
	assert_int_equal(rt_ring_bytes(&bad), 0);
	bad = hdr;
	bad.entries_offset = sizeof(hdr) - 8;
	assert_int_equal(rt_ring_bytes(&bad), 0);
	assert_int_equal(rt_ring_init(&ring, &hdr, bytes - 1), -EPROTO);
	assert_int_equal(rt_ring_init(&ring, &hdr, 8), -EPROTO);
}

static void test_reap(void **state)
{
	/* 2^32 is passed on the way, and entries may be longer than we know */
	uint32_t starts[] = { 0, 5, UINT32_MAX - 3 };
	struct rdmatensor_cqe cqes[ENTRIES];
	struct memory mem;
	uint64_t next = 0, expect = 0;
	unsigned int i, j, got;

	(void)state;
	for (i = 0; i < NR(starts); i++) {
		make(&mem, starts[i], sizeof(*cqes) + 64 * i);
		assert_int_equal(rt_ring_reap(&mem.ring, cqes, ENTRIES), 0);
		for (j = 0; j < 50; j++) {
			unsigned int n = j % (ENTRIES + 1);

			while (n--)
				push(&mem, next++, RDMATENSOR_CQE_FETCH);
			while ((got = rt_ring_reap(&mem.ring, cqes, 3))) {
				assert_true(got <= 3);
				for (n = 0; n < got; n++)
					assert_int_equal(cqes[n].user_data,
							 expect++);
			}
			assert_int_equal(next, expect);
		}
		free(mem.hdr);
	}
}

static void test_lies(void **state)
{
	struct rdmatensor_cqe cqes[2 * ENTRIES];
	struct memory mem;

	(void)state;
	make(&mem, 0, sizeof(*cqes));
	/* A head that is too far ahead never makes more entries than there are */
	mem.hdr->head = 1000;
	assert_int_equal(rt_ring_ready(&mem.ring), ENTRIES);
	assert_int_equal(rt_ring_reap(&mem.ring, cqes, NR(cqes)), ENTRIES);
	free(mem.hdr);
	/* Before START there is no ring */
	memset(&mem, 0, sizeof(mem));
	assert_int_equal(rt_ring_ready(&mem.ring), 0);
	assert_int_equal(rt_ring_reap(&mem.ring, cqes, 1), 0);
	rt_ring_advance(&mem.ring, 1);
}

static void test_peek(void **state)
{
	struct memory mem;
	unsigned int i;

	(void)state;
	make(&mem, UINT32_MAX - 1, sizeof(struct rdmatensor_cqe));
	for (i = 0; i < 5; i++)
		push(&mem, 100 + i, RDMATENSOR_CQE_FETCH);
	for (i = 0; i < 5; i++)
		assert_int_equal(rt_ring_at(&mem.ring, i)->user_data, 100 + i);
	rt_ring_advance(&mem.ring, 2);
	assert_int_equal(rt_ring_ready(&mem.ring), 3);
	assert_int_equal(rt_ring_at(&mem.ring, 0)->user_data, 102);
	free(mem.hdr);
}

/* Each place in turn is taken out; the others keep their order */
static void test_take(void **state)
{
	struct rdmatensor_cqe cqe, rest[ENTRIES];
	unsigned int place, i, n;
	struct memory mem;
	uint32_t from;

	(void)state;
	for (place = 0; place < ENTRIES; place++) {
		make(&mem, UINT32_MAX - 2, sizeof(cqe));
		for (i = 0; i < ENTRIES; i++)
			push(&mem, i, RDMATENSOR_CQE_FETCH);
		from = 0;
		assert_int_equal(rt_ring_take(&mem.ring, place, &from, &cqe), 1);
		assert_int_equal(cqe.user_data, place);
		n = rt_ring_reap(&mem.ring, rest, ENTRIES);
		assert_int_equal(n, ENTRIES - 1);
		for (i = 0; i < n; i++)
			assert_int_equal(rest[i].user_data,
					 i < place ? i : i + 1);
		free(mem.hdr);
	}
}

static void test_take_later(void **state)
{
	struct rdmatensor_cqe cqe;
	struct memory mem;
	uint32_t from = 0;

	(void)state;
	make(&mem, 0, sizeof(cqe));
	push(&mem, 1, RDMATENSOR_CQE_FETCH);
	/* A channel's entry is none of an operation, whatever its user_data */
	push(&mem, 7, RDMATENSOR_CQE_CHANNEL_DOWN);
	assert_int_equal(rt_ring_take(&mem.ring, 7, &from, &cqe), 0);
	assert_int_equal(from, 2);
	push(&mem, 7, RDMATENSOR_CQE_WITHDRAW);
	assert_int_equal(rt_ring_take(&mem.ring, 7, &from, &cqe), 1);
	assert_int_equal(cqe.type, RDMATENSOR_CQE_WITHDRAW);
	assert_int_equal(rt_ring_ready(&mem.ring), 2);
	assert_int_equal(rt_ring_at(&mem.ring, 0)->user_data, 1);
	assert_int_equal(rt_ring_at(&mem.ring, 1)->type,
			 RDMATENSOR_CQE_CHANNEL_DOWN);
	free(mem.hdr);
}

static bool enough;

/* The kernel and a thread that reaps, as one: never more than one entry */
static void *come_and_go(void *arg)
{
	struct memory *mem = arg;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		__atomic_store_n(&mem->hdr->head, mem->hdr->head + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&mem->hdr->tail, mem->hdr->tail + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Who looks beside one that reaps never sees more than there was */
static void test_beside_reaper(void **state)
{
	struct memory mem;
	pthread_t thread;
	uint32_t start = UINT32_MAX - 5, ready, most = 0;

	(void)state;
	make(&mem, start, sizeof(struct rdmatensor_cqe));
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &mem), 0);
	/* Until it has been at work for a while, however late it begins */
	while (__atomic_load_n(&mem.hdr->head, __ATOMIC_RELAXED) - start < 5000000) {
		ready = rt_ring_ready(&mem.ring);
		most = ready > most ? ready : most;
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_in_range(most, 0, 1);
	free(mem.hdr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_reap),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_peek),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_take_later),
		cmocka_unit_test(test_beside_reaper),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
