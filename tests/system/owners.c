// SPDX-License-Identifier: GPL-2.0
#include "owners.h"

struct side owners[OWNERS];
uint32_t exports[OWNERS];
uint32_t channels[OWNERS];
uint64_t first_row[OWNERS + 1];
uint64_t rows_at[OWNERS];

/* xorshift: the same each time */
static uint64_t random_state = 88172645463325252u;

uint64_t random_below(uint64_t most)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % most;
}

/* Word @i of row @row: no two are the same */
static uint64_t word(uint64_t row, unsigned int i)
{
	return (row * 1000003 + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void row_fill(unsigned char *at, uint64_t row, unsigned int bytes)
{
	unsigned int i;

	for (i = 0; i < bytes / 8; i++)
		((uint64_t *)at)[i] = word(row, i);
}

int row_is(const unsigned char *at, uint64_t row, unsigned int bytes)
{
	unsigned int i;

	for (i = 0; i < bytes / 8; i++)
		if (((const uint64_t *)at)[i] != word(row, i))
			return 0;
	return 1;
}

uint64_t pages(uint64_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

/* What takes a channel and its READs is to be the test's doing alone, so no probes */
static void tune_lanes(struct rdmatensor_start *start)
{
	start->probe_ms = 600000;
	start->gather_lanes = 4;
}

void owners_open(uint64_t rows, unsigned int row_bytes, uint64_t stride, uint64_t ids)
{
	uint64_t share = (rows + OWNERS - 1) / OWNERS, r;
	int i;

	for (i = 0; i <= OWNERS; i++)
		first_row[i] = share * i < rows ? share * i : rows;
	for (i = 0; i < OWNERS; i++) {
		uint64_t nr = first_row[i + 1] - first_row[i];
		uint64_t bytes = pages((nr - 1) * stride + row_bytes);

		side_open(&owners[i], i ? (i == 1 ? "one" : "two") : "reader",
			  bytes + (i ? 0 : pages(ids * row_bytes + 64)), !!i, tune_lanes);
		rows_at[i] = side_alloc(&owners[i], bytes);
		for (r = 0; r < nr; r++)
			row_fill(side_at(&owners[i], rows_at[i] + r * stride), first_row[i] + r,
				 row_bytes);
		EQ(rdmatensor_table_export(owners[i].rt, "features", &owners[i].pool, rows_at[i],
					   first_row[i], first_row[i + 1], row_bytes, stride,
					   RDMATENSOR_DT_FLOAT, &exports[i]), 0);
		channels[i] = RDMATENSOR_CHANNEL_SELF;
		if (i) {
			side_connect(reader, &owners[i]);
			channels[i] = reader->channel;
		}
	}
}

uint32_t owners_table(struct rdmatensor_table_open *open)
{
	struct rdmatensor_table_open mine = {};

	open = open ? open : &mine;
	if (rdmatensor_table_open(reader->rt, "features", channels, OWNERS, open))
		test_fail(__FILE__, __LINE__, "%s", open->cause);
	return open->out_table;
}

int owners_gather(uint32_t table, const uint64_t *ids, uint64_t nr, uint64_t at,
		  unsigned int row_bytes, struct rdmatensor_cqe *cqe)
{
	test_alive();
	return rdmatensor_gather(reader->rt, table, ids, nr, &reader->pool, at, nr * row_bytes,
				 rdmatensor_deadline_ms(WAIT_MS), cqe);
}

void owners_check(const uint64_t *ids, uint64_t nr, uint64_t at, unsigned int row_bytes)
{
	uint64_t i;

	for (i = 0; i < nr; i++)
		if (!row_is(side_at(reader, at + i * row_bytes), ids[i], row_bytes))
			test_fail(__FILE__, __LINE__, "row %llu at position %llu is wrong",
				  (unsigned long long)ids[i], (unsigned long long)i);
}

void owners_many(uint64_t nr, uint64_t batch, void (*before)(void), void (*after)(void))
{
	enum { ROWS = 60000 };
	static uint64_t ids[BATCH_MAX];
	struct rdmatensor_cqe cqe;
	uint64_t at, done, i;
	uint32_t table;

	CHECK(batch <= BATCH_MAX && nr % batch == 0);
	owners_open(ROWS, ROW, ROW, batch);
	at = side_alloc(reader, batch * ROW);
	table = owners_table(NULL);
	for (done = 0; done < nr; done += batch) {
		/* One in four is one of a few: repeats */
		for (i = 0; i < batch; i++)
			ids[i] = random_below(i % 4 ? ROWS : 100);
		memset(side_at(reader, at), 0, batch * ROW);
		if (before)
			before();
		EQ(owners_gather(table, ids, batch, at, ROW, &cqe), 0);
		if (after)
			after();
		EQ(cqe.tensor_bytes, batch * ROW);
		EQ(cqe.offset, at);
		owners_check(ids, batch, at, ROW);
	}
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHERED_ROWS), nr);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHERED), nr / batch);
	EQ(side_stat(reader, RDMATENSOR_STAT_GATHER_ERRORS), 0);
}
