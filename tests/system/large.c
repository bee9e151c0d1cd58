// SPDX-License-Identifier: GPL-2.0
/*
 * The longest tensors that go in one piece: as long as the keys of their destination fit into
 * a slot, to the byte. Those of more than 2 GiB are for a guest with 10 GiB of memory, which
 * tests/system/huge runs.
 */
#include <unistd.h>
#include "exporter.h"
#include "harness.h"

#define HUGE_MEMORY (9ull << 30)

/* Of a message without its tail */
#define HEADER 64
#define PAGE 4096

static struct pair p;
static uint32_t slot_bytes, nr_lanes;

static int memory_for_huge_ones(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE >= HUGE_MEMORY;
}

/* A few hundred MB take a minute where KASAN looks on; of the others one will do */
static int is_large_here(void)
{
	const char *kernel = getenv("LAB_KERNEL");

	return !is_6_1() && !(kernel && (strstr(kernel, "-debug") || strstr(kernel, "-gcov")));
}

static void tune(struct rdmatensor_start *start)
{
	start->msg_slot_bytes = slot_bytes;
	start->lanes = nr_lanes;
}

/* First and last word of each page, and the last byte: other pages would be other words */
static uint64_t word(uint64_t at)
{
	return (at + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void mark(unsigned char *at, uint64_t bytes)
{
	uint64_t i;

	for (i = 0; i + PAGE <= bytes; i += PAGE) {
		*(uint64_t *)(at + i) = word(i);
		*(uint64_t *)(at + i + PAGE - 8) = word(i + PAGE - 8);
	}
	at[bytes - 1] ^= 0x5a;
}

static void marked(const unsigned char *at, uint64_t bytes, unsigned char last)
{
	uint64_t i;

	for (i = 0; i + PAGE < bytes; i += PAGE)
		if (*(uint64_t *)(at + i) != word(i) ||
		    *(uint64_t *)(at + i + PAGE - 8) != word(i + PAGE - 8))
			test_fail(__FILE__, __LINE__, "the page at %llu of %llu is another",
				  (unsigned long long)i, (unsigned long long)bytes);
	EQ(at[bytes - 1], last);
	/* Not a byte beyond it */
	EQ(at[bytes], 0);
}

static int publishes(uint64_t at, uint64_t bytes, int64_t step, uint32_t ndims)
{
	uint64_t dims[16] = { bytes };
	struct rdmatensor_op op;
	uint32_t i;

	for (i = 1; i < 16; i++)
		dims[i] = 1;
	rdmatensor_prep_publish(&op, "large", step, p.a.pool.id, at, bytes, RDMATENSOR_DT_UINT8,
				ndims, dims, 1, step);
	return side_do(&p.a, &op);
}

static int fetches(uint64_t at, uint64_t bytes, int64_t step, struct rdmatensor_cqe *cqe)
{
	/* They take as long as they are: the harness's minute is for others */
	alarm(600);
	return rdmatensor_fetch(p.b.rt, p.b.channel, "large", step, &p.b.pool, at, bytes,
				rdmatensor_deadline_ms(600000), cqe);
}

/* The longest tensor of @ndims dims, and one byte more; that many slots of So many bytes */
static void to_the_byte(uint32_t ndims, const char *remedy)
{
	struct rdmatensor_query query;
	char text[RDMATENSOR_TEXT_MAX + 1];
	uint64_t segment, longest, from, at;
	struct rdmatensor_cqe cqe;
	unsigned char last;

	EQ(rdmatensor_query(p.b.rt, &query), 0);
	segment = query.max_segment_bytes;
	longest = (slot_bytes - HEADER - ndims * 8) / 4 * segment;
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(rdmatensor_pool_create(p.a.rt, longest + PAGE, &p.a.pool), 0);
	EQ(rdmatensor_pool_create(p.b.rt, longest + PAGE, &p.b.pool), 0);
	from = side_alloc(&p.a, longest + 1);
	at = side_alloc(&p.b, longest + 1);
	EQ(at % segment, 0);
	mark(side_at(&p.a, from), longest);
	last = side_at(&p.a, from)[longest - 1];

	EQ(publishes(from, longest + 1, 1, ndims), 0);
	EQ(fetches(at, longest + 1, 1, &cqe), -EMSGSIZE);
	CHECK(cqe.flags & RDMATENSOR_CQE_TEXT);
	rdmatensor_cqe_text(&cqe, text, sizeof(text));
	printf("# %llu bytes, and one more: %s\n", (unsigned long long)longest, text);
	CHECK(strstr(text, remedy));
	/* It was not delivered, so it is still there; and the channel goes on */
	EQ(side_stat(&p.a, RDMATENSOR_STAT_SERVED), 0);
	EQ(publishes(from, longest, 2, ndims), 0);
	EQ(fetches(at, longest + 1, 2, &cqe), 0);
	EQ(cqe.tensor_bytes, longest);
	marked(side_at(&p.b, at), longest, last);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 2, NULL), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 0);
	/* Its keys and its name do not fit together, now that all is known: it is asked for again */
	memset(side_at(&p.b, at), 0, PAGE);
	EQ(publishes(from, longest, 3, ndims), 0);
	EQ(fetches(at, longest + 1, 3, &cqe), 0);
	marked(side_at(&p.b, at), longest, last);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_RE_REQUESTS), 2);
}

/* 1024 bytes: header 64, 16 dims 128, so room for 208 keys */
TEST_IF(keys_that_just_fit_a_small_slot, is_large_here())
{
	slot_bytes = 1024;
	nr_lanes = 1;
	pair_open(&p, PAGE, tune);
	to_the_byte(16, "msg_slot_bytes to 2048");
}

/* So many bytes, each to a key of its own. Return: the fetch's result */
static int far_apart(uint64_t from, uint64_t at, uint64_t segment, uint64_t rows,
		     struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_stride strides[16] = { { segment, rows } };
	struct rdmatensor_op op;
	uint32_t i;

	for (i = 1; i < 16; i++)
		strides[i] = (struct rdmatensor_stride){ 1, 1 };
	fill(side_at(&p.a, from), rows, rows);
	EQ(publishes(from, rows, rows, 16), 0);
	rdmatensor_prep_fetch(&op, p.b.channel, "large", rows, p.b.pool.id, at,
			      (rows - 1) * segment + 1, rdmatensor_deadline_ms(60000), 7);
	rdmatensor_prep_strides(&op, strides, 16);
	EQ(side_do(&p.b, &op), 0);
	return side_next(&p.b, RDMATENSOR_CQE_FETCH, 7, cqe);
}

/* A place's strides are in the message beside its keys: 64, 128 and 136 bytes leave room for 174 */
TEST_IF(keys_of_a_place_that_just_fit_a_small_slot, is_large_here())
{
	const uint64_t most = (1024 - HEADER - 16 * 8 - 8 - 16 * 8) / 4;
	char text[RDMATENSOR_TEXT_MAX + 1];
	struct rdmatensor_query query;
	struct rdmatensor_cqe cqe;
	uint64_t segment, from, at, i;

	slot_bytes = 1024;
	nr_lanes = 1;
	pair_open(&p, PAGE, tune);
	from = side_alloc(&p.a, most + 1);
	EQ(rdmatensor_query(p.b.rt, &query), 0);
	segment = query.max_segment_bytes;
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(rdmatensor_pool_create(p.b.rt, most * segment + PAGE, &p.b.pool), 0);
	at = side_alloc(&p.b, most * segment + 1);
	EQ(at % segment, 0);
	EQ(far_apart(from, at, segment, most + 1, &cqe), -EMSGSIZE);
	rdmatensor_cqe_text(&cqe, text, sizeof(text));
	CHECK(strstr(text, "msg_slot_bytes to 2048"));
	EQ(far_apart(from, at, segment, most, &cqe), 0);
	for (i = 0; i < most; i++) {
		EQ(side_at(&p.b, at + i * segment)[0], side_at(&p.a, from)[i]);
		EQ(side_at(&p.b, at + i * segment)[1], 0);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}

TEST_IF(huge_keys_that_just_fit_a_slot, memory_for_huge_ones())
{
	alarm(600);
	slot_bytes = 4096;
	nr_lanes = 1;
	pair_open(&p, PAGE, NULL);
	to_the_byte(1, "msg_slot_bytes to 8192");
}

/* Lengths and offsets of more than 32 bits, on one lane and cut over two */
TEST_IF(huge_more_than_4_gib, memory_for_huge_ones())
{
	uint64_t bytes = (4ull << 30) + 3 * PAGE + 1, from, at;
	struct rdmatensor_cqe cqe;
	unsigned char last;

	alarm(600);
	slot_bytes = 16384;
	for (nr_lanes = 1; nr_lanes <= 2; nr_lanes++) {
		pair_open(&p, bytes + PAGE, tune);
		from = side_alloc(&p.a, bytes);
		at = side_alloc(&p.b, bytes + 1);
		mark(side_at(&p.a, from), bytes);
		last = side_at(&p.a, from)[bytes - 1];
		EQ(publishes(from, bytes, 0, 1), 0);
		EQ(fetches(at, bytes + 1, 0, &cqe), 0);
		EQ(cqe.tensor_bytes, bytes);
		EQ(cqe.dims[0], bytes);
		marked(side_at(&p.b, at), bytes, last);
		EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHED_BYTES), bytes);
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 0, NULL), 0);
		side_close(&p.a);
		side_close(&p.b);
	}
}
