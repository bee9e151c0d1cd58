// SPDX-License-Identifier: GPL-2.0
/*
 * Gathers of which something fails: each point in turn, in what posts and what proves, in
 * connecting lanes and in exporting. Whatever it is, rows that are said to be there are
 * right: a gather ends with all of them, or says which are missing.
 */
#include <poll.h>
#include "harness.h"
#include "hold.h"
#include "points.h"

#define ROWS 4000
#define ROW 512
#define NR 3000
#define FEW 16

static struct side owner, reader;
static uint64_t rows_at, at, ids[NR];

static uint64_t word(uint64_t row, unsigned int i)
{
	return (row * 64 + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void tune(struct rdmatensor_start *start)
{
	/* A probe is a point too, whenever its timer comes to it, and takes the channel */
	start->probe_ms = 600000;
	start->gather_lanes = 3;
	start->cq_mod = 32;
	start->queue_depth = 64;
	start->msg_slots = 16;
	start->handshake_ms = 2000;
}

static void open_both(void (*tune)(struct rdmatensor_start *start))
{
	uint64_t row;
	unsigned int i;

	side_open(&owner, "owner", ROWS * ROW, 1, tune);
	rows_at = side_alloc(&owner, ROWS * ROW);
	for (row = 0; row < ROWS; row++)
		for (i = 0; i < ROW / 8; i++)
			((uint64_t *)side_at(&owner, rows_at))[row * 64 + i] = word(row, i);
	side_open(&reader, "reader", NR * ROW, 0, tune);
	at = side_alloc(&reader, NR * ROW);
	side_connect(&reader, &owner);
	for (i = 0; i < NR; i++)
		ids[i] = (i * 7919u + i / 3) % ROWS;
}

/* The first @nr of them */
static void check_rows(uint64_t nr)
{
	uint64_t i;
	unsigned int k;

	for (i = 0; i < nr; i++)
		for (k = 0; k < ROW / 8; k++)
			if (((uint64_t *)side_at(&reader, at))[i * 64 + k] != word(ids[i], k))
				test_fail(__FILE__, __LINE__, "row %llu at position %llu is wrong",
					  (unsigned long long)ids[i], (unsigned long long)i);
}

static int export(uint32_t *table)
{
	return rdmatensor_table_export(owner.rt, "t", &owner.pool, rows_at, 0, ROWS, ROW, 0,
				       RDMATENSOR_DT_FLOAT, table);
}

static int gather(uint32_t table, struct rdmatensor_cqe *cqe)
{
	test_alive();
	memset(side_at(&reader, at), 0, NR * ROW);
	return rdmatensor_gather(reader.rt, table, ids, NR, &reader.pool, at, NR * ROW,
				 rdmatensor_deadline_ms(20000), cqe);
}

TEST(gathers_with_each_point_failing)
{
	struct rdmatensor_table_open open = {};
	uint64_t again = 0, before, down = 0;
	unsigned int n, whole = 0, failed = 0;
	struct rdmatensor_cqe cqe;
	uint32_t exported;
	int hit = 1, err;

	open_both(tune);
	EQ(export(&exported), 0);
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	for (n = 0; hit && n < 2000; n++) {
		before = side_stat(&reader, RDMATENSOR_STAT_GATHER_AGAIN);
		point_set(n);
		err = gather(open.out_table, &cqe);
		hit = point_hit();
		if (err) {
			failed++;
			CHECK(cqe.tensor_bytes > 0 && cqe.tensor_bytes <= NR);
			CHECK(cqe.offset < NR);
			check_rows(cqe.offset);
		} else {
			whole++;
			check_rows(NR);
		}
		again += side_stat(&reader, RDMATENSOR_STAT_GATHER_AGAIN) - before;
	}
	down = side_stat(&reader, RDMATENSOR_STAT_GATHER_LANES_DOWN);
	printf("# %u points: %u whole, %u failed; %llu rows were read again, %llu lanes went down\n",
	       n, whole, failed, (unsigned long long)again, (unsigned long long)down);
	CHECK(!hit);
	/* Each list has a point where it is posted and one where it is proven */
	CHECK(n > 50);
	CHECK(down >= n / 2 && again > 0);
	/* One lane of three is not the end */
	EQ(failed, 0);
}

static void tune_one_lane(struct rdmatensor_start *start)
{
	tune(start);
	start->gather_lanes = 1;
}

/*
 * A device that cannot make a queue pair now says that it is busy, as does a gather that
 * another one connects the lanes for: that one is waited for, the device is not
 */
TEST(gathers_of_a_busy_device)
{
	struct rdmatensor_table_open open = {};
	struct rdmatensor_cqe cqe;
	unsigned int n, busy = 0;
	uint32_t exported;
	int err;

	open_both(tune_one_lane);
	EQ(export(&exported), 0);
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	/* After a post that fails: the address, the route, and the queue pair */
	points_set_each(3);
	for (n = 0; n < 12; n++) {
		err = gather(open.out_table, &cqe);
		CHECK(err != -ETIMEDOUT);
		busy += err == -EIO;
	}
	point_hit();
	printf("# %u of %u gathers found the device busy\n", busy, n);
	CHECK(busy);
	EQ(gather(open.out_table, &cqe), 0);
	check_rows(NR);
}

TEST(tables_with_each_point_failing)
{
	struct rdmatensor_table_open open;
	struct rdmatensor_cqe cqe;
	unsigned int n, failed = 0;
	uint32_t exported;
	int hit = 1, err;

	open_both(tune);
	for (n = 0; hit && n < 2000; n++) {
		memset(&open, 0, sizeof(open));
		point_set(n);
		err = export(&exported);
		if (!err) {
			err = rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open);
			if (!err)
				err = gather(open.out_table, &cqe);
		}
		hit = point_hit();
		if (err)
			failed++;
		else
			check_rows(NR);
		if (open.out_table)
			EQ(rdmatensor_table_close(reader.rt, open.out_table), 0);
		rdmatensor_table_close(owner.rt, exported);
		/* A channel that could not be probed, or whose message could not be posted */
		if (err == -ECONNRESET || err == -ENOTCONN || err == -ENOMEM) {
			side_forget(&reader, RDMATENSOR_CQE_CHANNEL_DOWN);
			side_forget(&owner, RDMATENSOR_CQE_CHANNEL_DOWN);
			side_forget(&owner, RDMATENSOR_CQE_CHANNEL_UP);
			side_connect(&reader, &owner);
		}
	}
	printf("# %u points, %u of them ended it\n", n, failed);
	CHECK(!hit && failed > 0);
	/* All is well after it */
	memset(&open, 0, sizeof(open));
	EQ(export(&exported), 0);
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	EQ(gather(open.out_table, &cqe), 0);
	check_rows(NR);
}

/* It takes more READs then, and no row is wrong or missing */
TEST(gather_without_memory_for_an_order)
{
	enum { MANY = 40000 };
	struct rdmatensor_table_open open = {};
	static uint64_t many[MANY];
	uint64_t reads[2], before, bytes = (uint64_t)MANY * ROW;
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	unsigned int i, k, round;
	uint32_t exported;

	open_both(tune);
	EQ(export(&exported), 0);
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	EQ(rdmatensor_pool_create(reader.rt, bytes, &pool), 0);
	EQ(rdmatensor_pool_alloc(reader.rt, &pool, bytes, &at), 0);
	for (i = 0; i < MANY; i++)
		many[i] = i * 7919u % ROWS;
	for (round = 0; round < 2; round++) {
		test_alive();
		memset(pool.base, 0, bytes);
		before = side_stat(&reader, RDMATENSOR_STAT_GATHER_READS);
		if (round)
			point_set(0);
		EQ(rdmatensor_gather(reader.rt, open.out_table, many, MANY, &pool, at, bytes,
				     rdmatensor_deadline_ms(20000), &cqe), 0);
		if (round)
			CHECK(point_hit());
		reads[round] = side_stat(&reader, RDMATENSOR_STAT_GATHER_READS) - before;
		for (i = 0; i < MANY; i++)
			for (k = 0; k < ROW / 8; k++)
				CHECK(((uint64_t *)((char *)pool.base + at))[i * 64 + k] ==
				      word(many[i], k));
	}
	printf("# %llu READs in order, %llu as they come\n", (unsigned long long)reads[0],
	       (unsigned long long)reads[1]);
	CHECK(reads[1] > reads[0] * 3 / 2);
}

/* Rows that their own context takes back when a gather has begun: none of them is delivered */
TEST(own_rows_taken_back_in_the_middle)
{
	uint32_t self = RDMATENSOR_CHANNEL_SELF, export;
	struct rdmatensor_table_open open = { 0 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int i;

	side_open(&owner, "owner", (ROWS + NR) * ROW, 0, tune);
	rows_at = side_alloc(&owner, ROWS * ROW);
	at = side_alloc(&owner, NR * ROW);
	for (i = 0; i < NR; i++)
		ids[i] = i;
	EQ(rdmatensor_table_export(owner.rt, "own", &owner.pool, rows_at, 0, ROWS, ROW, 0,
				   RDMATENSOR_DT_FLOAT, &export), 0);
	EQ(rdmatensor_table_open(owner.rt, "own", &self, 1, &open), 0);
	rdmatensor_prep_gather(&op, open.out_table, ids, NR, owner.pool.id, at, NR * ROW, 0, 1);
	hold_at("gather_copy");
	EQ(side_do(&owner, &op), 0);
	hold_wait();
	EQ(rdmatensor_table_close(owner.rt, export), 0);
	/* They are the process's now */
	memset(side_at(&owner, rows_at), 0xff, ROWS * ROW);
	hold_go();
	EQ(side_next(&owner, RDMATENSOR_CQE_GATHER, 1, &cqe), -ESTALE);
	EQ(cqe.tensor_bytes, NR);
	EQ(cqe.offset, 0);
	EQ(side_stat(&owner, RDMATENSOR_STAT_GATHERED_ROWS), 0);
	EQ(rdmatensor_table_close(owner.rt, open.out_table), 0);
}

/*
 * A device that refuses to drain a queue pair says so to nobody: no gather may end, and give its
 * destination back, before the queue pair is gone
 */
TEST(rows_in_flight_outlive_no_queue_pair)
{
	struct rdmatensor_table_open open = {};
	struct pollfd pfd = { .events = POLLIN };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	int cancelled, early;
	uint32_t exported;

	open_both(tune_one_lane);
	EQ(export(&exported), 0);
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	EQ(gather(open.out_table, &cqe), 0);
	pfd.fd = rdmatensor_fd(reader.rt);
	EQ(poll(&pfd, 1, 0), 0);
	/* In one list: a gather that has more to post closes its lane itself */
	rdmatensor_prep_gather(&op, open.out_table, ids, FEW, reader.pool.id, at, FEW * ROW, 0, 1);
	hold_at("readlane_flushed");
	/* Of a post that has failed some READs may be under way */
	points_set_from(0);
	EQ(side_do(&reader, &op), 0);
	hold_wait();
	point_hit();
	rdmatensor_prep_cancel(&op, 1);
	cancelled = side_do(&reader, &op);
	early = poll(&pfd, 1, 200);
	hold_go();
	EQ(cancelled, 0);
	EQ(early, 0);
	EQ(side_next(&reader, RDMATENSOR_CQE_GATHER, 1, &cqe), -ECANCELED);
	EQ(gather(open.out_table, &cqe), 0);
	check_rows(NR);
}

/*
 * A post fails, and before the gather goes on, the channel that takes the lane apart is gone, and
 * all that holds its readers is the table of that gather
 */
TEST(a_post_fails_while_its_channel_goes)
{
	struct rdmatensor_table_open open = {};
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int round;
	uint32_t exported;

	open_both(tune_one_lane);
	EQ(export(&exported), 0);
	for (round = 0; round < 8; round++) {
		EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
		EQ(gather(open.out_table, &cqe), 0);
		rdmatensor_prep_gather(&op, open.out_table, ids, FEW, reader.pool.id, at, FEW * ROW,
				       0, 1);
		hold_at("readlane_failed");
		point_set(0);
		EQ(side_do(&reader, &op), 0);
		hold_wait();
		CHECK(point_hit());
		EQ(rdmatensor_table_close(reader.rt, open.out_table), 0);
		EQ(rdmatensor_disconnect(reader.rt, reader.channel), 0);
		side_forget(&reader, RDMATENSOR_CQE_CHANNEL_DOWN);
		side_forget(&owner, RDMATENSOR_CQE_CHANNEL_DOWN);
		side_forget(&owner, RDMATENSOR_CQE_CHANNEL_UP);
		hold_go();
		EQ(side_next(&reader, RDMATENSOR_CQE_GATHER, 1, &cqe), -ECONNRESET);
		EQ(cqe.offset, 0);
		side_connect(&reader, &owner);
	}
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	EQ(gather(open.out_table, &cqe), 0);
	check_rows(NR);
}

/*
 * Lanes that break, and then a step of connecting them that fails, at either end: again and
 * again, more often than the owner accepts lanes. None may stay behind in its count
 */
TEST(gathers_whose_lanes_cannot_be_connected)
{
	struct rdmatensor_table_open open = {};
	unsigned int k, n, failed = 0;
	struct rdmatensor_cqe cqe;
	uint32_t exported;
	int err;

	open_both(tune_one_lane);
	EQ(export(&exported), 0);
	EQ(rdmatensor_table_open(reader.rt, "t", &reader.channel, 1, &open), 0);
	/* After a post that fails, the k-th point is one of a step: from the seventh on the owner's */
	for (k = 1; k < 14; k++) {
		points_set_each(k);
		for (n = 0; n < 24; n++) {
			err = gather(open.out_table, &cqe);
			CHECK(err != -ETIMEDOUT);
			failed += err != 0;
		}
		point_hit();
		EQ(gather(open.out_table, &cqe), 0);
		check_rows(NR);
	}
	printf("# %u of %u gathers had no lane\n", failed, 24 * (k - 1));
	CHECK(failed > 40);
}
