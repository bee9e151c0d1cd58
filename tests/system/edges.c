// SPDX-License-Identifier: GPL-2.0
/* Tables at their edges: orders of both widths, caches that leave gaps, end and overlap */
#include "owners.h"

enum { ROWS = 900, NR = 600, WIDE = 1536 };

static struct rdmatensor_table_cache caches[4];

/* A cache of rows [@from, @to), every @stride, in a region that ends with the last of them */
static void cache_make(struct rdmatensor_table_cache *cache, uint64_t from, uint64_t to,
		       uint64_t stride)
{
	uint64_t step = stride ? stride : ROW, i;

	*cache = (struct rdmatensor_table_cache) {
		.row_start = from, .row_end = to, .stride = stride, .pool_id = reader->pool.id,
		.offset = side_alloc(reader, (to - from - 1) * step + ROW),
	};
	for (i = from; i < to; i++)
		row_fill(side_at(reader, cache->offset + (i - from) * step), i, ROW);
}

static struct rdmatensor_table_open cached(unsigned int nr)
{
	return (struct rdmatensor_table_open) {
		.caches_uptr = (uintptr_t)caches, .nr_caches = nr,
	};
}

static void opens_not(unsigned int nr, int error, const char *words)
{
	struct rdmatensor_table_open open = cached(nr);
	int got = rdmatensor_table_open(reader->rt, "features", channels, OWNERS, &open);

	if (got != error || !strstr(open.cause, words))
		test_fail(__FILE__, __LINE__,
			  "caches %llu..%llu, stride %llu: %d (%s), expected %d and \"%s\"",
			  (unsigned long long)caches[0].row_start,
			  (unsigned long long)caches[0].row_end,
			  (unsigned long long)caches[0].stride, got, open.cause, error, words);
	test_checks++;
}

/* Each row of [@from, @to), of which @own are copied: the reader's own, and cached ones */
static void gathers_all(uint32_t table, uint64_t from, uint64_t to, uint64_t own)
{
	uint64_t copies = side_stat(reader, RDMATENSOR_STAT_GATHER_COPIES), i;
	uint64_t at = side_alloc(reader, (to - from) * ROW), ids[WIDE];
	struct rdmatensor_cqe cqe;

	for (i = from; i < to; i++)
		ids[i - from] = i;
	EQ(owners_gather(table, ids, to - from, at, ROW, &cqe), 0);
	owners_check(ids, to - from, at, ROW);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_COPIES) - copies, own);
	EQ(rdmatensor_pool_free(reader->rt, &reader->pool, at), 0);
}

/* As an owner of order: 32 bits an id, the array as long as its region */
TEST(order_of_32_bits)
{
	struct rdmatensor_table_open open = { .flags = RDMATENSOR_TABLE_ORDER32 };
	uint64_t ids[NR], rows[NR], at, i;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t narrow[NR], table, *order;

	owners_open(ROWS, ROW, ROW, NR + 100);
	at = side_alloc(reader, NR * ROW);
	open.order_pool_id = reader->pool.id;
	open.order_offset = side_alloc(reader, ROWS * 4);
	open.order_nr = ROWS;
	order = (uint32_t *)side_at(reader, open.order_offset);
	for (i = 0; i < ROWS; i++)
		order[i] = (i * 7 + 3) % ROWS;
	table = owners_table(&open);
	EQ(open.out_rows, ROWS);
	for (i = 0; i < NR; i++) {
		narrow[i] = ids[i] = i < 2 ? i * (ROWS - 1) : random_below(ROWS);
		rows[i] = order[ids[i]];
	}
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(rows, NR, at, ROW);
	/* Ids and order of 32 bits */
	memset(side_at(reader, at), 0, NR * ROW);
	rdmatensor_prep_gather32(&op, table, narrow, NR, reader->pool.id, at, NR * ROW, 0, 7);
	EQ(side_do(reader, &op), 0);
	EQ(side_next(reader, RDMATENSOR_CQE_GATHER, 7, &cqe), 0);
	owners_check(rows, NR, at, ROW);
	/* Behind its end, and what is there is no row */
	ids[5] = ROWS;
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), -ERANGE);
	EQ(cqe.offset, 5);
	ids[5] = ROWS - 1;
	order[ROWS - 1] = UINT32_MAX;
	EQ(owners_gather(table, ids + 5, 1, at, ROW, &cqe), -ERANGE);
	EQ(rdmatensor_table_close(reader->rt, table), 0);
	/* Of 64 bits it is longer than its region */
	open.flags = RDMATENSOR_TABLE_ORDER;
	EQ(rdmatensor_table_open(reader->rt, "features", channels, OWNERS, &open), -EINVAL);
	CHECK(strstr(open.cause, "the order is empty, or in no region"));
	open.flags = RDMATENSOR_TABLE_ORDER32;
	open.order_nr = 0;
	EQ(rdmatensor_table_open(reader->rt, "features", channels, OWNERS, &open), -EINVAL);
	open.order_nr = UINT64_MAX / 4 + 2;
	EQ(rdmatensor_table_open(reader->rt, "features", channels, OWNERS, &open), -EINVAL);
}

/* The seed's "cached range" before all, one over two owners, one at the end; in any layout */
TEST(several_caches)
{
	struct rdmatensor_table_open open;
	uint64_t reads, ids[4], at;
	struct rdmatensor_cqe cqe;
	uint32_t table;

	owners_open(ROWS, ROW, ROW, 3 * ROWS);
	cache_make(&caches[0], 0, 1, 0);
	cache_make(&caches[1], 290, 330, ROW);
	/* It follows the one before it, and rows of it lie apart, on no boundary */
	cache_make(&caches[2], 330, 400, 2 * ROW + 24);
	cache_make(&caches[3], ROWS - 7, ROWS, WIDE);
	open = cached(4);
	table = owners_table(&open);
	EQ(open.out_rows, ROWS);
	/* 0..299 are its own; of others, those that are cached */
	gathers_all(table, 0, ROWS, 300 + 100 + 7);
	/* None but cached ones: nothing is read */
	reads = side_stat(reader, RDMATENSOR_STAT_GATHER_READS);
	gathers_all(table, 300, 400, 100);
	gathers_all(table, ROWS - 7, ROWS, 7);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), reads);
	/* The last one before, and the first after them: they are read */
	at = side_alloc(reader, 4 * ROW);
	ids[0] = ROWS - 8;
	ids[1] = 400;
	EQ(owners_gather(table, ids, 2, at, ROW, &cqe), 0);
	owners_check(ids, 2, at, ROW);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), reads + 2);
	/* Behind the end */
	ids[1] = ROWS;
	EQ(owners_gather(table, ids, 2, at, ROW, &cqe), -ERANGE);
	/* What is cached is not written to while the table is there */
	ids[0] = 0;
	EQ(owners_gather(table, ids, 1, caches[1].offset, ROW, &cqe), -EINVAL);
	EQ(rdmatensor_pool_free(reader->rt, &reader->pool, caches[3].offset), -EBUSY);
	EQ(rdmatensor_table_close(reader->rt, table), 0);
	EQ(rdmatensor_pool_free(reader->rt, &reader->pool, caches[3].offset), 0);
	/* Two caches of the same bytes are two names for them */
	caches[3] = caches[1];
	caches[3].row_start = 500;
	caches[3].row_end = 510;
	open = cached(4);
	table = owners_table(&open);
	ids[0] = 505;
	EQ(owners_gather(table, ids, 1, at, ROW, &cqe), 0);
	ids[0] = 295;
	owners_check(ids, 1, at, ROW);
}

/* What no owner has may be cached: in the middle, before the first, behind the last */
TEST(caches_in_the_place_of_owners)
{
	uint32_t only[1], some[2];
	struct rdmatensor_table_open open;

	owners_open(ROWS, ROW, ROW, 3 * ROWS);
	some[0] = channels[0];
	some[1] = channels[2];
	cache_make(&caches[0], 300, 600, 0);
	open = cached(1);
	EQ(rdmatensor_table_open(reader->rt, "features", some, 2, &open), 0);
	gathers_all(open.out_table, 0, ROWS, 600);
	/* One short */
	caches[0].row_end--;
	open = cached(1);
	EQ(rdmatensor_table_open(reader->rt, "features", some, 2, &open), -ENODATA);
	CHECK(strstr(open.cause, "300..599"));

	only[0] = channels[1];
	cache_make(&caches[0], 0, 300, 0);
	cache_make(&caches[1], 590, 640, 600);
	open = cached(2);
	EQ(rdmatensor_table_open(reader->rt, "features", only, 1, &open), 0);
	EQ(open.out_rows, 640);
	gathers_all(open.out_table, 0, 640, 350);
	/* Not from the owner's end on */
	caches[1].row_start = 601;
	open = cached(2);
	EQ(rdmatensor_table_open(reader->rt, "features", only, 1, &open), -ENODATA);
	CHECK(strstr(open.cause, "rows after 599 are cached in part"));
}

TEST(caches_that_do_not_fit)
{
	static const struct {
		uint64_t row_start, row_end, stride, more;
	} bad[] = {
		{ 5, 5, 0, 0 }, { 5, 4, 0, 0 }, { 0, 10, ROW - 1, 0 }, { 0, 10, 1, 0 },
		{ 0, 11, 0, 0 }, { 0, 10, ROW + 8, 0 }, { 0, 10, 0, 64 },
		{ 0, 10, 1ull << 61, 0 }, { 0, UINT64_MAX, 0, 0 },
		{ 0, 2, 0ull - ROW, 0 }, { 0, 10, 0, 1 }, { 0, 10, 0, 0ull - 64 },
	};
	struct rdmatensor_table_open open;
	unsigned int i;

	owners_open(ROWS, ROW, ROW, 3 * ROWS);
	cache_make(&caches[0], 100, 120, 0);
	/* The same row in two, whichever of them is given first; and not in their order */
	cache_make(&caches[1], 119, 130, 0);
	opens_not(2, -ENOTUNIQ, "caches overlap");
	caches[1] = caches[0];
	opens_not(2, -ENOTUNIQ, "caches overlap");
	caches[1].row_start = 80;
	caches[1].row_end = 90;
	opens_not(2, -ENOTUNIQ, "not in the order");
	/* Out of the region, or out of all numbers; it ends with row 9 */
	cache_make(&caches[0], 0, 10, 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t offset = caches[0].offset;

		caches[0].row_start = bad[i].row_start;
		caches[0].row_end = bad[i].row_end;
		caches[0].stride = bad[i].stride;
		caches[0].offset += bad[i].more;
		opens_not(1, -EINVAL, "cache 0: its fields are out of range");
		caches[0].offset = offset;
	}
	caches[0].row_start = 0;
	caches[0].row_end = 10;
	caches[0].stride = 0;
	caches[0].__reserved = 1;
	opens_not(1, -EINVAL, "cache 0");
	caches[0].__reserved = 0;
	caches[0].pool_id = 4711;
	opens_not(1, -EINVAL, "cache 0");
	/* None of them has kept anything */
	caches[0].pool_id = reader->pool.id;
	open = cached(1);
	EQ(rdmatensor_table_close(reader->rt, owners_table(&open)), 0);
	EQ(rdmatensor_pool_free(reader->rt, &reader->pool, caches[0].offset), 0);
}
