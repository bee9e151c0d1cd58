// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of pages that are longer than the processor's: how many keys there are then,
 * and that each byte still comes to its place. The lab's soft-RoCE takes 512 pages behind a key,
 * 2 MiB of 4 KiB each, and 16 MiB of long ones.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "owners.h"
#include "whole.h"

#define LONG_PAGE (2ull << 20)
#define SHORT_SEGMENT (2ull << 20)
#define LONG_SEGMENT (16ull << 20)
/* No other pool is so long. Its end is in no whole long page */
#define POOL (9 * LONG_PAGE + 75 * PAGE)
#define ROUNDS 60
#define ENDS 40

static struct pair p;
static struct side s;
static uint32_t page_bytes;

static void tune(struct rdmatensor_start *start)
{
	start->mr_page_bytes = page_bytes;
}

static uint64_t cut(uint64_t bytes, uint64_t segment)
{
	return (bytes + segment - 1) / segment;
}

TEST(keys_of_long_pages)
{
	static const struct {
		uint32_t page_bytes;
		uint64_t segment;
	} rows[] = {
		{ 0, LONG_SEGMENT }, { 2 << 20, LONG_SEGMENT }, { 8192, 2 * SHORT_SEGMENT },
		{ 65536, LONG_SEGMENT }, { 4096, SHORT_SEGMENT },
	};
	unsigned int i;

	put_together();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		page_bytes = rows[i].page_bytes;
		side_open(&s, "keys", POOL, 0, tune);
		EQ(keys_of(POOL), cut(POOL, rows[i].segment));
		side_close(&s);
	}
}

static long free_kb(void)
{
	return number_in("/proc/meminfo", "MemFree:", " kB");
}

/* What is no longer than a key of short pages takes one, and is as short as it was */
TEST(pools_that_end_in_a_long_page)
{
	static const uint64_t lengths[] = {
		PAGE, LONG_PAGE - PAGE, LONG_PAGE, LONG_PAGE + PAGE, 2 * LONG_PAGE - PAGE,
		2 * LONG_PAGE, 7 * LONG_PAGE + 511 * PAGE,
	};
	struct rdmatensor_pool pool;
	unsigned int i;
	long kb;

	put_together();
	side_open(&s, "ends", PAGE, 0, NULL);
	EQ(rdmatensor_pool_destroy(s.rt, &s.pool), 0);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		EQ(rdmatensor_pool_create(s.rt, lengths[i], &pool), 0);
		EQ(pool.bytes, lengths[i]);
		EQ(keys_of(lengths[i]), 1);
		memset(pool.base, 0xa5, lengths[i]);
		EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	}
	/* What is beyond their ends is free */
	kb = free_kb();
	for (i = 0; i < ENDS; i++) {
		EQ(rdmatensor_pool_create(s.rt, LONG_PAGE + PAGE, &pool), 0);
		EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	}
	CHECK(free_kb() > kb - (long)(ENDS * LONG_PAGE / 1024 / 2));
}

/* From anywhere to anywhere, and no byte beside it */
static void move_about(uint32_t from_page_bytes, uint32_t to_page_bytes)
{
	uint64_t from, to, bytes;
	struct rdmatensor_cqe cqe;
	unsigned char *at;
	int i;

	page_bytes = from_page_bytes;
	side_open(&p.a, "a", POOL, 1, tune);
	page_bytes = to_page_bytes;
	side_open(&p.b, "b", POOL, 1, tune);
	side_connect(&p.b, &p.a);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	from = side_alloc(&p.a, POOL);
	to = side_alloc(&p.b, POOL);
	EQ(from | to, 0);
	at = side_at(&p.b, 0);
	for (i = 0; i < ROUNDS; i++) {
		/* Some over many keys, which takes its time where memory is checked */
		bytes = 1 + random_below(i % 10 ? 9000 : POOL - 1);
		from = random_below(i % 3 ? POOL - bytes + 1 : 64);
		to = random_below(POOL - bytes + 1);
		/* Over the end of a long page, in most cases */
		if (i % 2 && bytes < LONG_PAGE)
			to = LONG_PAGE * (1 + random_below(8)) - random_below(bytes + 1);
		from = from / 64 * 64;
		to = to / 64 * 64;
		fill(side_at(&p.a, from), bytes, i);
		if (to)
			at[to - 1] = 0xee;
		memset(at + to, 0xee, bytes + (to + bytes < POOL));
		EQ(publish_at(&p.a, "t", from, bytes), 0);
		EQ(fetch_at(&p.b, p.b.channel, "t", to, bytes), 0);
		CHECK(filled(at + to, bytes, i));
		CHECK(!to || at[to - 1] == 0xee);
		CHECK(to + bytes == POOL || at[to + bytes] == 0xee);
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_COPIED_BYTES), 0);
	side_close(&p.a);
	side_close(&p.b);
}

TEST(from_long_pages_to_long_pages) { move_about(0, 0); }
TEST(from_long_pages_to_short_ones) { move_about(0, 4096); }
TEST(from_short_pages_to_long_ones) { move_about(4096, 65536); }

/* Rows of a table begin where the process wants it: in pages as long as that is a multiple of */
TEST(rows_within_long_pages)
{
	static const uint64_t skews[] = { 0, LONG_PAGE, PAGE, 16 * PAGE, 511 * PAGE };
	enum { LONG_ROW = 8192, ROWS = 2100, NR = 64 };
	uint64_t ids[NR], to, i, k;
	struct rdmatensor_table_open open;
	struct rdmatensor_cqe cqe;
	uint32_t export;

	pair_open(&p, POOL + LONG_PAGE, NULL);
	EQ(side_alloc(&p.a, POOL + LONG_PAGE), 0);
	to = side_alloc(&p.b, NR * LONG_ROW);
	for (k = 0; k < sizeof(skews) / sizeof(skews[0]); k++) {
		for (i = 0; i < ROWS; i++)
			row_fill(side_at(&p.a, skews[k] + i * LONG_ROW), i + k, LONG_ROW);
		EQ(rdmatensor_table_export(p.a.rt, "rows", &p.a.pool, skews[k], 0, ROWS, LONG_ROW,
					   0, RDMATENSOR_DT_FLOAT, &export), 0);
		memset(&open, 0, sizeof(open));
		EQ(rdmatensor_table_open(p.b.rt, "rows", &p.b.channel, 1, &open), 0);
		for (i = 0; i < NR; i++)
			ids[i] = random_below(ROWS);
		EQ(rdmatensor_gather(p.b.rt, open.out_table, ids, NR, &p.b.pool, to,
				     NR * LONG_ROW, rdmatensor_deadline_ms(10000), &cqe), 0);
		for (i = 0; i < NR; i++)
			CHECK(row_is(side_at(&p.b, to + i * LONG_ROW), ids[i] + k, LONG_ROW));
		EQ(rdmatensor_table_close(p.b.rt, open.out_table), 0);
		EQ(rdmatensor_table_close(p.a.rt, export), 0);
	}
}

/* Huge pages of a process; those of User-Mode Linux are none */
TEST_STOCK(registered_huge_pages)
{
	int fd = memfd_create("huge", MFD_HUGETLB), nr = open("/proc/sys/vm/nr_hugepages", O_RDWR);
	static const uint64_t bytes = 4 * LONG_PAGE;
	struct rdmatensor_pool pool;
	unsigned char *at, *only_read;

	put_together();
	CHECK(nr >= 0);
	EQ(write(nr, "8", 1), 1);
	CHECK(fd >= 0);
	EQ(ftruncate(fd, bytes), 0);
	at = map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	side_open(&s, "huge", PAGE, 0, NULL);
	EQ(rdmatensor_pool_register(s.rt, at, bytes, RDMATENSOR_POOL_PEERS_WRITE, 0, &pool, NULL,
				    0), 0);
	EQ(keys_of(bytes), 1);
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	/* Not from where a long page begins, but long ones all the same */
	EQ(rdmatensor_pool_register(s.rt, at + 16 * PAGE, bytes - 16 * PAGE,
				    RDMATENSOR_POOL_PEERS_WRITE, 0, &pool, NULL, 0), 0);
	EQ(keys_of(bytes - 16 * PAGE), 1);
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	/* To be read alone, where nobody can write and nothing is replaced */
	only_read = map(bytes, PROT_READ, MAP_PRIVATE, fd);
	EQ(rdmatensor_pool_register(s.rt, only_read, bytes, RDMATENSOR_POOL_PEERS_NONE,
				    RDMATENSOR_REGISTER_READ_ONLY, &pool, NULL, 0), 0);
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	munmap(only_read, bytes);
	munmap(at, bytes);
	side_close(&s);
	close(fd);
	EQ(pwrite(nr, "0", 1, 0), 1);
	close(nr);
}

/* Pages of a process as they come: no two of them in a row are neighbours */
TEST(registered_single_pages)
{
	uint64_t bytes = POOL, i;
	struct rdmatensor_pool pool;
	unsigned char *at;

	at = map_private(bytes);
	EQ(madvise(at, bytes, MADV_NOHUGEPAGE) && errno != EINVAL, 0);
	/* From the end on and with gaps, so that they do not come in the order of their addresses */
	for (i = POOL / PAGE; i-- > 0; )
		if (i % 2)
			at[i * PAGE] = 1;
	for (i = POOL / PAGE; i-- > 0; )
		if (!(i % 2))
			at[i * PAGE] = 1;
	side_open(&s, "single", PAGE, 0, NULL);
	EQ(rdmatensor_pool_register(s.rt, at, bytes, RDMATENSOR_POOL_PEERS_WRITE, 0, &pool, NULL,
				    0), 0);
	EQ(keys_of(bytes), cut(bytes, SHORT_SEGMENT));
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
	munmap(at, bytes);
}
