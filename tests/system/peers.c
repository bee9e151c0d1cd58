// SPDX-License-Identifier: GPL-2.0
/* What the peers of a context may do with each of its pools, as the pool was made for */
#include "harness.h"

#define BYTES 8192
#define ROW 64
#define ROWS (BYTES / ROW)

static struct pair p;

/* Both sides; a pool of @a's that is made for @peers takes the place of its own */
static void open_for(enum rdmatensor_pool_peers peers)
{
	pair_open(&p, 1 << 20, NULL);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(rdmatensor_pool_create_peers(p.a.rt, 4 * BYTES, peers, &p.a.pool), 0);
}

static void close_both(void)
{
	side_close(&p.a);
	side_close(&p.b);
}

/* To a region of @a's pool. Return: the result; *at: where */
static int fetch_from(uint32_t channel, const char *name, uint64_t *at)
{
	struct rdmatensor_cqe cqe;

	*at = side_alloc(&p.a, BYTES);
	return rdmatensor_fetch(p.a.rt, channel, name, 0, &p.a.pool, *at, BYTES,
				rdmatensor_deadline_ms(10000), &cqe);
}

static void fetch_into(enum rdmatensor_pool_peers peers, int error)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	open_for(peers);
	publish(&p.b, "x", 0, BYTES, 3, 1, 1);
	EQ(fetch_from(p.a.channel, "x", &at), error);
	if (error) {
		EQ(rdmatensor_fetch(p.a.rt, p.a.channel, "x", 0, &p.a.pool, RDMATENSOR_ALLOC, 0,
				    rdmatensor_deadline_ms(10000), &cqe), error);
		/* Nobody was asked: it is still there, for who may have it */
		side_none(&p.b, RDMATENSOR_CQE_PUBLISH, 1, 20);
	} else {
		CHECK(filled(side_at(&p.a, at), BYTES, 3));
		EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	}
	/* From the context itself no peer writes */
	publish(&p.a, "own", 0, BYTES, 4, 1, 2);
	EQ(fetch_from(RDMATENSOR_CHANNEL_SELF, "own", &at), 0);
	CHECK(filled(side_at(&p.a, at), BYTES, 4));
	close_both();
}

TEST(fetches_into_what_peers_must_not_write)
{
	fetch_into(RDMATENSOR_POOL_PEERS_NONE, -EACCES);
	fetch_into(RDMATENSOR_POOL_PEERS_READ, -EACCES);
	fetch_into(RDMATENSOR_POOL_PEERS_WRITE, 0);
}

/* What this side reads and writes needs no access of peers */
TEST(what_peers_must_not_reach_is_published_and_gathered_to)
{
	struct rdmatensor_table_open open = {};
	uint64_t ids[ROWS], i, at, to;
	struct rdmatensor_cqe cqe;
	uint32_t table;

	open_for(RDMATENSOR_POOL_PEERS_NONE);
	for (i = 0; i < ROWS; i++)
		ids[i] = ROWS - 1 - i;
	at = side_alloc(&p.b, BYTES);
	fill(side_at(&p.b, at), BYTES, 5);
	EQ(rdmatensor_table_export(p.b.rt, "rows", &p.b.pool, at, 0, ROWS, ROW, 0,
				   RDMATENSOR_DT_UINT8, &table), 0);
	EQ(rdmatensor_table_open(p.a.rt, "rows", &p.a.channel, 1, &open), 0);
	to = side_alloc(&p.a, BYTES);
	EQ(rdmatensor_gather(p.a.rt, open.out_table, ids, ROWS, &p.a.pool, to, BYTES,
			     rdmatensor_deadline_ms(10000), &cqe), 0);
	for (i = 0; i < ROWS; i++)
		EQ(memcmp(side_at(&p.a, to + i * ROW), side_at(&p.b, at + ids[i] * ROW), ROW), 0);

	publish(&p.a, "t", 0, BYTES, 6, 1, 1);
	EQ(fetch(&p.b, "t", 0, BYTES, &to, &cqe), 0);
	CHECK(filled(side_at(&p.b, to), BYTES, 6));
}

TEST(rows_of_what_peers_may_read)
{
	static const struct {
		enum rdmatensor_pool_peers peers;
		int error;
	} rows[] = {
		{ RDMATENSOR_POOL_PEERS_NONE, -EACCES },
		{ RDMATENSOR_POOL_PEERS_READ, 0 },
		{ RDMATENSOR_POOL_PEERS_WRITE, 0 },
	};
	struct rdmatensor_table_open open = {};
	struct rdmatensor_cqe cqe;
	uint64_t id = ROWS - 1, at, from;
	uint32_t table;
	size_t i;

	for (i = 0; i < 3; i++) {
		open_for(rows[i].peers);
		from = side_alloc(&p.a, BYTES);
		fill(side_at(&p.a, from), BYTES, 7);
		EQ(rdmatensor_table_export(p.a.rt, "rows", &p.a.pool, from, 0, ROWS, ROW, 0,
					   RDMATENSOR_DT_UINT8, &table), rows[i].error);
		if (!rows[i].error) {
			at = side_alloc(&p.b, ROW);
			EQ(rdmatensor_table_open(p.b.rt, "rows", &p.b.channel, 1, &open), 0);
			EQ(rdmatensor_gather(p.b.rt, open.out_table, &id, 1, &p.b.pool, at, ROW,
					     rdmatensor_deadline_ms(10000), &cqe), 0);
			EQ(memcmp(side_at(&p.b, at), side_at(&p.a, from + id * ROW), ROW), 0);
			EQ(rdmatensor_table_close(p.a.rt, table), 0);
		}
		close_both();
	}
}
