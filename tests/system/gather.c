// SPDX-License-Identifier: GPL-2.0
/* Tables and gathers: three owners, of which one is the reader itself; every row is checked */
#include "owners.h"

/* Fewer where memory is checked. gather-nodes.sh reads 300,000 over a wire */
TEST(many_rows_of_three_owners)
{
	const uint64_t nr = test_on_uml() ? 50000 : 200000;
	uint64_t reads, signalled;

	owners_many(nr, BATCH_MAX, NULL, NULL);
	reads = side_stat(reader, RDMATENSOR_STAT_GATHER_READS);
	signalled = side_stat(reader, RDMATENSOR_STAT_GATHER_SIGNALLED);
	printf("# %llu reads, %llu signalled, %llu copies\n", (unsigned long long)reads,
	       (unsigned long long)signalled,
	       (unsigned long long)side_stat(reader, RDMATENSOR_STAT_GATHER_COPIES));
	CHECK(reads < nr * 2 / 3);
	CHECK(signalled * 100 <= nr);
}

/*
 * Each row twice, and all neighbours, whatever lies between them in the batch: a batch is
 * longer than what is worked on at a time
 */
TEST(a_batch_is_read_as_a_whole)
{
	enum { MANY = 30000, NR = 2 * MANY };
	static uint64_t ids[NR];
	static uint32_t narrow[NR];
	uint64_t at, i, reads, swap, other, copies;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t table;

	owners_open(MANY, 64, 64, NR);
	at = side_alloc(reader, NR * 64);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = i % MANY;
	for (i = NR - 1; i; i--) {
		other = random_below(i + 1);
		swap = ids[i];
		ids[i] = ids[other];
		ids[other] = swap;
	}
	EQ(owners_gather(table, ids, NR, at, 64, &cqe), 0);
	owners_check(ids, NR, at, 64);
	reads = side_stat(reader, RDMATENSOR_STAT_GATHER_READS);
	printf("# %llu READs of %d rows\n", (unsigned long long)reads, MANY - (int)first_row[1]);
	/* As it comes, in four parts, it would be more than one a row */
	CHECK(reads * 4 <= MANY - first_row[1]);
	/* Own rows, and repeats; at the parts' edges some are read twice */
	copies = side_stat(reader, RDMATENSOR_STAT_GATHER_COPIES);
	CHECK(copies <= NR - (MANY - first_row[1]) && copies >= NR - (MANY - first_row[1]) - 100);
	for (i = 0; i < NR; i++)
		narrow[i] = ids[i];
	memset(side_at(reader, at), 0, NR * 64);
	rdmatensor_prep_gather32(&op, table, narrow, NR, reader->pool.id, at, NR * 64, 0, 7);
	EQ(side_do(reader, &op), 0);
	EQ(side_next(reader, RDMATENSOR_CQE_GATHER, 7, &cqe), 0);
	owners_check(ids, NR, at, 64);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), 2 * reads);
	/* The first that is missing is so in the batch, though it would be among the last */
	ids[0] = first_row[1] - 1;
	EQ(rdmatensor_table_close(reader->rt, exports[0]), 0);
	EQ(owners_gather(table, ids, NR, at, 64, &cqe), -ESTALE);
	EQ(cqe.offset, 0);
	EQ(cqe.tensor_bytes, NR);
}

TEST(gathered_rows_are_not_validated)
{
	enum { ROWS = 300 };
	struct rdmatensor_cqe cqe;
	uint64_t ids[ROWS], at, i;
	uint32_t table;

	owners_open(ROWS, ROW, ROW, ROWS);
	for (i = 0; i < OWNERS; i++)
		EQ(rdmatensor_configure(owners[i].rt, RDMATENSOR_CONFIGURE_VALIDATE,
					RDMATENSOR_CONFIGURE_VALIDATE), 0);
	at = side_alloc(reader, ROWS * ROW);
	table = owners_table(NULL);
	for (i = 0; i < ROWS; i++)
		ids[i] = i;
	EQ(owners_gather(table, ids, ROWS, at, ROW, &cqe), 0);
	owners_check(ids, ROWS, at, ROW);
	EQ(cqe.flags & RDMATENSOR_CQE_VALIDATED, 0);
	EQ(side_stat(reader, RDMATENSOR_STAT_VALIDATED), 0);
}

TEST(ids_of_all_kinds)
{
	enum { ROWS = 3000, NR = 2000 };
	uint64_t ids[NR], at, i, before;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t narrow[NR];
	uint32_t table;

	owners_open(ROWS, ROW, ROW, NR);
	at = side_alloc(reader, NR * ROW);
	table = owners_table(NULL);
	/* None */
	EQ(owners_gather(table, ids, 0, at, ROW, &cqe), 0);
	EQ(cqe.tensor_bytes, 0);
	/* Each single one at the edges of the owners */
	for (i = 0; i < OWNERS; i++) {
		ids[0] = first_row[i];
		EQ(owners_gather(table, ids, 1, at, ROW, &cqe), 0);
		owners_check(ids, 1, at, ROW);
		ids[0] = first_row[i + 1] - 1;
		EQ(owners_gather(table, ids, 1, at, ROW, &cqe), 0);
		owners_check(ids, 1, at, ROW);
	}
	/* All the same: one READ */
	for (i = 0; i < NR; i++)
		ids[i] = ROWS - 1;
	before = side_stat(reader, RDMATENSOR_STAT_GATHER_READS);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(ids, NR, at, ROW);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), before + 1);
	/* All own: no READ */
	for (i = 0; i < NR; i++)
		ids[i] = i * 7 % first_row[1];
	before = side_stat(reader, RDMATENSOR_STAT_GATHER_READS);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(ids, NR, at, ROW);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), before);
	/* In order: neighbours are joined */
	for (i = 0; i < NR; i++)
		ids[i] = first_row[1] + i;
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(ids, NR, at, ROW);
	CHECK(side_stat(reader, RDMATENSOR_STAT_GATHER_READS) - before < 20);
	/* Backwards, of 32 bits */
	for (i = 0; i < NR; i++)
		ids[i] = narrow[i] = ROWS - 1 - i;
	rdmatensor_prep_gather32(&op, table, narrow, NR, reader->pool.id, at, NR * ROW, 0, 7);
	memset(side_at(reader, at), 0, NR * ROW);
	EQ(side_do(reader, &op), 0);
	EQ(side_next(reader, RDMATENSOR_CQE_GATHER, 7, &cqe), 0);
	owners_check(ids, NR, at, ROW);
}

TEST(an_id_out_of_range)
{
	enum { ROWS = 300, NR = 1000 };
	uint64_t ids[NR], at, i;
	struct rdmatensor_cqe cqe;
	uint32_t table;
	char text[256];

	owners_open(ROWS, ROW, ROW, NR);
	at = side_alloc(reader, NR * ROW);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = i % ROWS;
	ids[777] = ROWS;
	ids[900] = UINT64_MAX;
	memset(side_at(reader, at), 0x5a, NR * ROW);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), -ERANGE);
	EQ(cqe.offset, 777);
	EQ(cqe.tensor_bytes, NR);
	CHECK(strstr(rdmatensor_cqe_text(&cqe, text, sizeof(text)), "id 300 at position 777"));
	/* Before anything was posted */
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), 0);
	for (i = 0; i < NR * ROW; i++)
		CHECK(side_at(reader, at)[i] == 0x5a);
	/* What cannot be read at all */
	EQ(owners_gather(table, (uint64_t *)4096, NR, at, ROW, &cqe), -EFAULT);
	/* No room, no such table */
	EQ(rdmatensor_gather(reader->rt, table, ids, 10, &reader->pool, at, 10 * ROW - 1, 0, &cqe),
	   -EMSGSIZE);
	EQ(owners_gather(table + 99, ids, 1, at, ROW, &cqe), -ENOENT);
	ids[0] = 1;
	EQ(owners_gather(table, ids, 1, at, ROW, &cqe), 0);
	owners_check(ids, 1, at, ROW);
}

/* Rows that cross keys on both sides, and have gaps between them */
TEST(rows_that_cross_segments)
{
	enum { BIG = 200000, ROWS = 60, NR = 90 };
	uint64_t ids[NR], at, i;
	struct rdmatensor_cqe cqe;
	uint32_t table;

	owners_open(ROWS, BIG, BIG + 1096, NR);
	at = side_alloc(reader, (uint64_t)NR * BIG);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = random_below(ROWS);
	EQ(owners_gather(table, ids, NR, at, BIG, &cqe), 0);
	owners_check(ids, NR, at, BIG);
}

TEST(caches_and_order)
{
	enum { ROWS = 900, NR = 600, CACHED = 200 };
	struct rdmatensor_table_cache cache = { .row_start = 500, .row_end = 500 + CACHED };
	struct rdmatensor_table_open open = {};
	uint64_t ids[NR], rows[NR], at, order, i, reads;
	struct rdmatensor_cqe cqe;
	uint32_t table, plain;

	owners_open(ROWS, ROW, ROW, NR + CACHED + 100);
	plain = owners_table(NULL);
	at = side_alloc(reader, NR * ROW);
	cache.offset = side_alloc(reader, CACHED * ROW);
	cache.pool_id = reader->pool.id;
	for (i = 0; i < CACHED; i++)
		row_fill(side_at(reader, cache.offset + i * ROW), cache.row_start + i, ROW);
	order = side_alloc(reader, ROWS * 8);
	for (i = 0; i < ROWS; i++)
		((uint64_t *)side_at(reader, order))[i] = (i * 7 + 3) % ROWS;
	open.caches_uptr = (uintptr_t)&cache;
	open.nr_caches = 1;
	open.flags = RDMATENSOR_TABLE_ORDER;
	open.order_pool_id = reader->pool.id;
	open.order_offset = order;
	open.order_nr = ROWS;
	table = owners_table(&open);
	EQ(open.out_rows, ROWS);
	EQ(open.out_row_bytes, ROW);
	EQ(open.data_type, RDMATENSOR_DT_FLOAT);
	for (i = 0; i < NR; i++) {
		ids[i] = random_below(ROWS);
		rows[i] = (ids[i] * 7 + 3) % ROWS;
	}
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(rows, NR, at, ROW);
	/* All cached: no READ. The other table has no cache, and reads them */
	for (i = 0; i < NR; i++) {
		rows[i] = cache.row_start + i % CACHED;
		for (ids[i] = 0; (ids[i] * 7 + 3) % ROWS != rows[i]; ids[i]++)
			;
	}
	reads = side_stat(reader, RDMATENSOR_STAT_GATHER_READS);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(rows, NR, at, ROW);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_READS), reads);
	EQ(owners_gather(plain, rows, NR, at, ROW, &cqe), 0);
	owners_check(rows, NR, at, ROW);
	CHECK(side_stat(reader, RDMATENSOR_STAT_GATHER_READS) > reads);
	/* The order is the process's to spoil, and is looked at each time */
	((uint64_t *)side_at(reader, order))[ids[0]] = ROWS;
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), -ERANGE);
	EQ(cqe.offset, 0);
	/* Held while the table is open */
	EQ(rdmatensor_pool_free(reader->rt, &reader->pool, order), -EBUSY);
	EQ(rdmatensor_table_close(reader->rt, table), 0);
	EQ(rdmatensor_table_close(reader->rt, table), -ENOENT);
	EQ(rdmatensor_pool_free(reader->rt, &reader->pool, order), 0);
}

static void open_fails(const uint32_t *of, unsigned int nr, int error, const char *words)
{
	struct rdmatensor_table_open open = { .flags = RDMATENSOR_TABLE_NOWAIT };
	int got = rdmatensor_table_open(reader->rt, "features", of, nr, &open);

	if (got != error || !strstr(open.cause, words))
		test_fail(__FILE__, __LINE__, "%d (%s), expected %d and \"%s\"", got, open.cause,
			  error, words);
}

TEST(ranges_that_do_not_fit)
{
	uint32_t some[OWNERS + 1], other;
	uint64_t more;

	owners_open(900, ROW, ROW, 10);
	/* One is missing, in the middle and before the first */
	some[0] = channels[0];
	some[1] = channels[2];
	open_fails(some, 2, -ENODATA, "'two'");
	open_fails(some, 2, -ENODATA, "300..599");
	open_fails(channels + 1, 2, -ENODATA, "0..299");
	/* Twice the same */
	memcpy(some, channels, sizeof(channels));
	some[OWNERS] = channels[1];
	open_fails(some, OWNERS + 1, -ENOTUNIQ, "both 'one' and 'one'");
	/* Not there */
	EQ(rdmatensor_table_close(owners[2].rt, exports[2]), 0);
	open_fails(channels, OWNERS, -ENOENT, "'two'");
	/* Overlapping, of another shape, of another type */
	more = 301 * ROW;
	EQ(rdmatensor_table_export(owners[2].rt, "features", &owners[2].pool, rows_at[2], 599,
				   900 - 1, ROW, 0, RDMATENSOR_DT_FLOAT, &other), 0);
	open_fails(channels, OWNERS, -ENOTUNIQ, "rows 599..599 are exported by both 'one' and 'two'");
	EQ(rdmatensor_table_close(owners[2].rt, other), 0);
	EQ(rdmatensor_table_export(owners[2].rt, "features", &owners[2].pool, rows_at[2], 600, 900,
				   ROW / 2, ROW, RDMATENSOR_DT_FLOAT, &other), 0);
	open_fails(channels, OWNERS, -EPROTOTYPE, "256 bytes");
	EQ(rdmatensor_table_close(owners[2].rt, other), 0);
	EQ(rdmatensor_table_export(owners[2].rt, "features", &owners[2].pool, rows_at[2], 600, 900,
				   ROW, 0, RDMATENSOR_DT_INT32, &other), 0);
	open_fails(channels, OWNERS, -EPROTOTYPE, "'two'");
	/* Not twice under a name; not outside of a region, nor from the middle of a page */
	EQ(rdmatensor_table_export(owners[2].rt, "features", &owners[2].pool, rows_at[2], 600, 900,
				   ROW, 0, RDMATENSOR_DT_INT32, &other), -EEXIST);
	EQ(rdmatensor_table_export(owners[2].rt, "x", &owners[2].pool, rows_at[2], 0,
				   more + 1000, ROW, 0, RDMATENSOR_DT_INT32, &other), -EINVAL);
	EQ(rdmatensor_table_export(owners[2].rt, "x", &owners[2].pool, rows_at[2] + 512, 0, 1, ROW,
				   0, RDMATENSOR_DT_INT32, &other), -EINVAL);
	EQ(rdmatensor_table_export(owners[2].rt, "x", &owners[2].pool, rows_at[2], 1, 1, ROW,
				   0, RDMATENSOR_DT_INT32, &other), -EINVAL);
	/* No such channel */
	some[0] = 4711;
	open_fails(some, 1, -ENOTCONN, "4711");
}

TEST(a_partition_that_is_taken_back)
{
	enum { ROWS = 900, NR = 500 };
	uint64_t ids[NR], at, i;
	struct rdmatensor_cqe cqe;
	uint32_t table, again;
	char text[256];

	owners_open(ROWS, ROW, ROW, NR);
	at = side_alloc(reader, NR * ROW);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = random_below(ROWS);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	EQ(rdmatensor_pool_free(owners[2].rt, &owners[2].pool, rows_at[2]), -EBUSY);
	EQ(rdmatensor_table_close(owners[2].rt, exports[2]), 0);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), -ESTALE);
	CHECK(strstr(rdmatensor_cqe_text(&cqe, text, sizeof(text)), "'two' has taken its rows"));
	CHECK(cqe.tensor_bytes > 0 && cqe.tensor_bytes <= NR);
	CHECK(cqe.offset < NR && ids[cqe.offset] >= first_row[1]);
	/* It stays so, even if the rows come back: whoever wants them opens the table again */
	EQ(rdmatensor_table_export(owners[2].rt, "features", &owners[2].pool, rows_at[2],
				   first_row[2], first_row[3], ROW, 0, RDMATENSOR_DT_FLOAT,
				   &exports[2]), 0);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), -ESTALE);
	again = owners_table(NULL);
	EQ(owners_gather(again, ids, NR, at, ROW, &cqe), 0);
	owners_check(ids, NR, at, ROW);
	/* The other owners' rows are there all the time */
	for (i = 0; i < NR; i++)
		ids[i] = random_below(first_row[2]);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(ids, NR, at, ROW);
	/* The reader's own */
	EQ(rdmatensor_table_close(reader->rt, exports[0]), 0);
	ids[0] = 0;
	EQ(owners_gather(table, ids, 1, at, ROW, &cqe), -ESTALE);
}

TEST(an_owner_that_goes)
{
	enum { ROWS = 90000, NR = 60000 };
	uint64_t *ids = malloc(NR * sizeof(*ids)), at, i;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t table;
	int err;

	CHECK(ids);
	owners_open(ROWS, ROW, ROW, NR);
	at = side_alloc(reader, NR * ROW);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = random_below(ROWS);
	memset(side_at(reader, at), 0, NR * ROW);
	rdmatensor_prep_gather(&op, table, ids, NR, reader->pool.id, at, NR * ROW, 0, 5);
	EQ(side_do(reader, &op), 0);
	while (!side_stat(reader, RDMATENSOR_STAT_GATHER_SIGNALLED))
		;
	side_close(&owners[1]);
	err = side_next(reader, RDMATENSOR_CQE_GATHER, 5, &cqe);
	printf("# %d: %llu of %d rows were missing, first %llu\n", err,
	       (unsigned long long)cqe.tensor_bytes, NR, (unsigned long long)cqe.offset);
	CHECK(err == -ECONNRESET || err == -ESTALE || err == -ECONNREFUSED);
	CHECK(cqe.tensor_bytes > 0 && cqe.tensor_bytes < NR);
	CHECK(cqe.offset < NR);
	/* Those before the first that is missing are right */
	owners_check(ids, cqe.offset, at, ROW);
	free(ids);
}

TEST(gathers_are_cancelled_and_time_out)
{
	enum { ROWS = 30000, NR = 200000 };
	uint64_t *ids = malloc(NR * sizeof(*ids)), at, i;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t table;

	CHECK(ids);
	owners_open(ROWS, ROW, ROW, NR);
	at = side_alloc(reader, NR * ROW);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = first_row[1] + random_below(ROWS - first_row[1]);
	rdmatensor_prep_gather(&op, table, ids, NR, reader->pool.id, at, NR * ROW, 0, 5);
	EQ(side_do(reader, &op), 0);
	/* The destination is its own as long as it is in flight */
	rdmatensor_prep_gather(&op, table, ids, 1, reader->pool.id, at, ROW, 0, 6);
	EQ(side_do(reader, &op), -EINVAL);
	rdmatensor_prep_cancel(&op, 5);
	EQ(side_do(reader, &op), 0);
	EQ(side_next(reader, RDMATENSOR_CQE_GATHER, 5, &cqe), -ECANCELED);
	CHECK(cqe.tensor_bytes > 0);
	rdmatensor_prep_gather(&op, table, ids, NR, reader->pool.id, at, NR * ROW,
			       rdmatensor_deadline_ms(20), 5);
	EQ(side_do(reader, &op), 0);
	EQ(side_next(reader, RDMATENSOR_CQE_GATHER, 5, &cqe), -ETIMEDOUT);
	owners_check(ids, cqe.offset, at, ROW);
	/* Closed in the middle */
	rdmatensor_prep_gather(&op, table, ids, NR, reader->pool.id, at, NR * ROW, 0, 5);
	EQ(side_do(reader, &op), 0);
	free(ids);
}

/* Several at the same time, of two tables, over the same lanes */
TEST(gathers_at_the_same_time)
{
	enum { ROWS = 6000, NR = 3000, GATHERS = 8 };
	static uint64_t ids[GATHERS][NR], at[GATHERS];
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t table[2];
	unsigned int g, i;

	owners_open(ROWS, ROW, ROW, GATHERS * NR);
	table[0] = owners_table(NULL);
	table[1] = owners_table(NULL);
	for (g = 0; g < GATHERS; g++) {
		at[g] = side_alloc(reader, NR * ROW);
		for (i = 0; i < NR; i++)
			ids[g][i] = random_below(ROWS);
		rdmatensor_prep_gather(&op, table[g % 2], ids[g], NR, reader->pool.id, at[g],
				       NR * ROW, 0, g);
		EQ(side_do(reader, &op), 0);
	}
	EQ(rdmatensor_table_close(reader->rt, table[1]), 0);
	for (g = 0; g < GATHERS; g++) {
		EQ(side_next(reader, RDMATENSOR_CQE_GATHER, g, &cqe), 0);
		owners_check(ids[g], NR, at[g], ROW);
	}
}
