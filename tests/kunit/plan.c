// SPDX-License-Identifier: GPL-2.0
/*
 * The plan of a gather: ordering, grouping, joining, cutting, and what a list proves. The
 * READs of a plan are carried out on small memories, and every row must be where it was
 * wanted, read once, and by no READ that a device would refuse.
 */
#include <linux/log2.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include "gather/plan.h"

#define SEED 0x67617468
#define ROWS 300
#define IDS 400
#define MEMORY 131072
#define READS 600

struct world {
	struct rdmatensor_gather_id ids[IDS];
	struct rdmatensor_read reads[READS];
	u8 owner[MEMORY];
	u8 pool[MEMORY * 2];
	bool proven[IDS];
};

static u8 byte_of(u64 row, u32 i)
{
	return row * 131 + i * 7 + (row >> 8);
}

static struct world *world_new(struct kunit *test)
{
	struct world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, world);
	return world;
}

static void set_id(struct world *world, u32 pos, u32 source, u64 row)
{
	world->ids[pos] = (struct rdmatensor_gather_id) {
		.row = row, .source = source, .pos = pos,
	};
}

static void sorted(struct kunit *test)
{
	struct world *world = world_new(test);
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, SEED);
	for (i = 0; i < IDS; i++)
		set_id(world, i, prandom_u32_state(&rnd) % 5, prandom_u32_state(&rnd) % ROWS);
	rdmatensor_plan_sort(world->ids, IDS);
	for (i = 1; i < IDS; i++) {
		const struct rdmatensor_gather_id *a = &world->ids[i - 1], *b = &world->ids[i];

		KUNIT_ASSERT_TRUE(test, a->source < b->source ||
				  (a->source == b->source && a->row < b->row) ||
				  (a->source == b->source && a->row == b->row && a->pos < b->pos));
		KUNIT_ASSERT_EQ(test, rdmatensor_plan_repeats(b),
				a->source == b->source && a->row == b->row);
	}
}

/* Carries READs out, as a device would, that also refuses what it must */
static void carry_out(struct kunit *test, struct world *world,
		      const struct rdmatensor_plan_source *source,
		      const struct rdmatensor_plan_dest *dest, u32 nr_reads)
{
	u32 i, k;

	for (i = 0; i < nr_reads; i++) {
		const struct rdmatensor_read *read = &world->reads[i];
		u64 addr = read->addr;

		KUNIT_ASSERT_GT(test, read->nr_pieces, 0);
		KUNIT_ASSERT_LE(test, read->nr_pieces, dest->max_pieces);
		KUNIT_ASSERT_LE(test, read->bytes, RDMATENSOR_READ_MAX);
		KUNIT_ASSERT_EQ(test, addr >> source->seg_shift,
				(addr + read->bytes - 1) >> source->seg_shift);
		for (k = 0; k < read->nr_pieces; k++) {
			const struct rdmatensor_piece *piece = &read->pieces[k];

			KUNIT_ASSERT_GT(test, piece->bytes, 0);
			KUNIT_ASSERT_EQ(test, piece->offset >> dest->seg_shift,
					(piece->offset + piece->bytes - 1) >> dest->seg_shift);
			KUNIT_ASSERT_LE(test, piece->offset + piece->bytes, sizeof(world->pool));
			KUNIT_ASSERT_LE(test, addr - source->addr + piece->bytes, MEMORY);
			memcpy(world->pool + piece->offset,
			       world->owner + (addr - source->addr), piece->bytes);
			addr += piece->bytes;
		}
		KUNIT_ASSERT_EQ(test, addr, read->addr + read->bytes);
	}
}

struct shape {
	const char *name;
	u64 addr;
	u32 row_bytes;
	u64 stride;
	u8 source_shift;
	u64 offset;
	u8 dest_shift;
	u8 max_pieces;
	u32 most;
	u64 rows;
};

static const struct shape shapes[] = {
	{ "plain", 0x400000, 64, 64, 21, 0, 21, 4, 128, ROWS },
	{ "one READ a list", 0x400000, 64, 64, 21, 0, 21, 4, 1, ROWS },
	{ "gaps between rows", 0x400000, 64, 100, 21, 64, 21, 4, 16, ROWS },
	{ "rows across the owner's keys", 0x400f80, 200, 200, 12, 0, 21, 4, 16, ROWS },
	{ "rows across the pool's keys", 0x400000, 200, 200, 21, 0xf80, 12, 4, 16, ROWS },
	{ "both, one destination", 0x400fff, 333, 334, 12, 0xfff, 12, 1, 7, ROWS },
	{ "rows longer than a segment", 0x400123, 9000, 9001, 12, 0x321, 12, 3, 5, 12 },
	{ "long rows, one READ a list", 0x400123, 9000, 9000, 12, 0x321, 12, 8, 1, 12 },
	{ "rows of a byte", 0x400ffe, 1, 1, 12, 0xffe, 12, 8, 128, ROWS },
};

static void shape_name(const struct shape *shape, char *desc)
{
	strscpy(desc, shape->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

/* All lists of one source; rows as many as the pool holds */
static void cut_all(struct kunit *test, struct world *world, const struct shape *shape, u32 nr)
{
	const struct rdmatensor_plan_source source = {
		.row_start = 1000, .addr = shape->addr, .stride = shape->stride,
		.seg_shift = shape->source_shift,
	};
	const struct rdmatensor_plan_dest dest = {
		.offset = shape->offset, .row_bytes = shape->row_bytes,
		.seg_shift = shape->dest_shift, .max_pieces = shape->max_pieces,
	};
	u32 row_reads = rdmatensor_plan_row_reads(shape->row_bytes, shape->source_shift,
						  shape->dest_shift, shape->max_pieces);
	u32 room = max(shape->most, row_reads), done, taken, nr_reads, i;

	KUNIT_ASSERT_LE(test, room, READS);
	rdmatensor_plan_sort(world->ids, nr);
	for (done = 0; done < nr; done += taken) {
		taken = rdmatensor_plan_cut(world->ids + done, nr - done, &source, &dest,
					    shape->most, world->reads, room, &nr_reads);
		KUNIT_ASSERT_GT(test, taken, 0);
		KUNIT_ASSERT_LE(test, taken, nr - done);
		KUNIT_ASSERT_GT(test, nr_reads, 0);
		KUNIT_ASSERT_LE(test, nr_reads, max(shape->most, row_reads));
		/* A list ends with all repeats of its last row */
		if (done + taken < nr)
			KUNIT_ASSERT_FALSE(test,
					   rdmatensor_plan_repeats(&world->ids[done + taken]));
		carry_out(test, world, &source, &dest, nr_reads);
		for (i = done; i < done + taken; i++) {
			const struct rdmatensor_gather_id *id = &world->ids[i];
			u8 *at = world->pool + shape->offset + id->pos * shape->row_bytes;

			KUNIT_ASSERT_FALSE(test, world->proven[id->pos]);
			world->proven[id->pos] = true;
			if (i > done && rdmatensor_plan_repeats(id))
				memcpy(at, world->pool + shape->offset +
				       world->ids[i - 1].pos * shape->row_bytes,
				       shape->row_bytes);
		}
	}
	for (i = 0; i < nr; i++) {
		const struct rdmatensor_gather_id *id = &world->ids[i];
		u8 *at = world->pool + shape->offset + id->pos * shape->row_bytes;
		u32 k;

		KUNIT_ASSERT_TRUE(test, world->proven[id->pos]);
		for (k = 0; k < shape->row_bytes; k++)
			KUNIT_ASSERT_EQ(test, at[k], byte_of(id->row, k));
	}
}

static u32 wants_of(const struct shape *shape)
{
	return min(IDS, (u32)((sizeof_field(struct world, pool) - shape->offset) /
			      shape->row_bytes));
}

static void world_fill(struct world *world, const struct shape *shape)
{
	u64 row;
	u32 i;

	memset(world, 0, sizeof(*world));
	for (row = 0; row < shape->rows; row++)
		for (i = 0; i < shape->row_bytes; i++)
			world->owner[row * shape->stride + i] = byte_of(1000 + row, i);
}

static void every_row_once(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct world *world = world_new(test);
	u32 nr = wants_of(shape), round, i;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, SEED);
	for (round = 0; round < 20; round++) {
		world_fill(world, shape);
		/* Few of many, many of few, runs */
		for (i = 0; i < nr; i++) {
			u64 row = round % 3 == 0 ? prandom_u32_state(&rnd) % shape->rows :
				  round % 3 == 1 ? prandom_u32_state(&rnd) % 7 :
				  (i + round) % shape->rows;

			set_id(world, i, 2, 1000 + row);
		}
		cut_all(test, world, shape, nr);
	}
}

static void neighbours_are_one_read(struct kunit *test)
{
	const struct rdmatensor_plan_source source = {
		.row_start = 0, .addr = 1 << 21, .stride = 64, .seg_shift = 21,
	};
	struct rdmatensor_plan_dest dest = {
		.offset = 0, .row_bytes = 64, .seg_shift = 21, .max_pieces = 4,
	};
	struct world *world = world_new(test);
	u32 nr_reads, taken, i;

	/* In order: one READ, one destination */
	for (i = 0; i < 100; i++)
		set_id(world, i, 0, i);
	taken = rdmatensor_plan_cut(world->ids, 100, &source, &dest, 128, world->reads, READS,
				    &nr_reads);
	KUNIT_EXPECT_EQ(test, taken, 100);
	KUNIT_EXPECT_EQ(test, nr_reads, 1);
	KUNIT_EXPECT_EQ(test, world->reads[0].nr_pieces, 1);
	KUNIT_EXPECT_EQ(test, world->reads[0].bytes, 6400);

	/* Backwards: as many as a READ has destinations */
	for (i = 0; i < 100; i++)
		set_id(world, i, 0, 99 - i);
	rdmatensor_plan_sort(world->ids, 100);
	taken = rdmatensor_plan_cut(world->ids, 100, &source, &dest, 128, world->reads, READS,
				    &nr_reads);
	KUNIT_EXPECT_EQ(test, taken, 100);
	KUNIT_EXPECT_EQ(test, nr_reads, 25);

	/* All the same: one row is read, the others are repeats */
	for (i = 0; i < 100; i++)
		set_id(world, i, 0, 5);
	taken = rdmatensor_plan_cut(world->ids, 100, &source, &dest, 1, world->reads, READS,
				    &nr_reads);
	KUNIT_EXPECT_EQ(test, taken, 100);
	KUNIT_EXPECT_EQ(test, nr_reads, 1);
	KUNIT_EXPECT_EQ(test, world->reads[0].bytes, 64);

	/* Every other one: none are neighbours, and the list is as long as it shall be */
	for (i = 0; i < 100; i++)
		set_id(world, i, 0, 2 * i);
	taken = rdmatensor_plan_cut(world->ids, 100, &source, &dest, 30, world->reads, READS,
				    &nr_reads);
	KUNIT_EXPECT_EQ(test, taken, 30);
	KUNIT_EXPECT_EQ(test, nr_reads, 30);
}

static void parts_cover_the_rows(struct kunit *test)
{
	static const u64 sizes[] = { 1, 2, 4095, 4096, 4097, 1000003, 1ULL << 40, S64_MAX };
	const u64 start = 1000;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 nr = min_t(u64, sizes[i], S64_MAX - start), step = max(nr / 9973, 1ULL), row;
		u16 before = 0, part = 0;

		KUNIT_EXPECT_EQ(test, rdmatensor_plan_part(start, start, start + nr), 0);
		for (row = 0; row < nr; row += step, before = part) {
			part = rdmatensor_plan_part(start + row, start, start + nr);
			KUNIT_ASSERT_GE(test, part, before);
			KUNIT_ASSERT_LT(test, part, RDMATENSOR_PARTS);
		}
		/* Half of them are used at least, so that none is long */
		part = rdmatensor_plan_part(start + nr - 1, start, start + nr);
		KUNIT_EXPECT_LT(test, part, RDMATENSOR_PARTS);
		KUNIT_EXPECT_GE(test, part + 1, min_t(u64, nr, RDMATENSOR_PARTS) / 2);
	}
}

static void ordered_by_part(struct kunit *test)
{
	static u16 parts[1000];
	static u32 order[1000], begins[RDMATENSOR_PARTS];
	static bool seen[1000];
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, SEED);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i] = i < 2 ? i * (RDMATENSOR_PARTS - 1) : prandom_u32_state(&rnd) % 300;
	memset(seen, 0, sizeof(seen));
	rdmatensor_plan_order(parts, ARRAY_SIZE(parts), begins, order);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		KUNIT_ASSERT_LT(test, order[i], ARRAY_SIZE(parts));
		KUNIT_ASSERT_FALSE(test, seen[order[i]]);
		seen[order[i]] = true;
		if (i)
			KUNIT_ASSERT_TRUE(test, parts[order[i - 1]] < parts[order[i]] ||
					  (parts[order[i - 1]] == parts[order[i]] &&
					   order[i - 1] < order[i]));
	}
}

/* A batch as gathers have it: of two owners, cut into chunks as in gather.c */
#define BATCH 1000000U
#define BATCH_CHUNK 16384U
#define BATCH_OWNERS 2
#define BATCH_ROW 512

struct batch {
	struct rdmatensor_gather_id *chunk;
	u64 *ids;
	u16 *parts;
	u32 *order;
	u32 begins[RDMATENSOR_PARTS];
	struct rdmatensor_read reads[128];
	u64 rows;
};

/* READs of the batch, in @chunk ids at a time, in the order of parts or as they came */
static u64 batch_reads(struct batch *batch, u32 chunk, bool ordered)
{
	const struct rdmatensor_plan_dest dest = {
		.row_bytes = BATCH_ROW, .seg_shift = 21, .max_pieces = RDMATENSOR_PIECES_MAX,
	};
	u64 half = batch->rows / BATCH_OWNERS, total = 0;
	u32 at, nr, i, end, nr_reads;

	for (at = 0; at < BATCH; at += nr) {
		nr = min(BATCH - at, chunk);
		for (i = 0; i < nr; i++) {
			u32 pos = ordered ? batch->order[at + i] : at + i;

			batch->chunk[i] = (struct rdmatensor_gather_id) {
				.row = batch->ids[pos], .source = batch->ids[pos] / half,
				.pos = pos,
			};
		}
		rdmatensor_plan_sort(batch->chunk, nr);
		for (i = 0; i < nr;) {
			const struct rdmatensor_plan_source source = {
				.row_start = batch->chunk[i].source * half,
				.addr = 0x400000, .stride = BATCH_ROW, .seg_shift = 21,
			};

			for (end = i; end < nr; end++)
				if (batch->chunk[end].source != batch->chunk[i].source)
					break;
			while (i < end) {
				i += rdmatensor_plan_cut(batch->chunk + i, end - i, &source,
							 &dest, ARRAY_SIZE(batch->reads),
							 batch->reads, ARRAY_SIZE(batch->reads),
							 &nr_reads);
				total += nr_reads;
			}
		}
		cond_resched();
	}
	return total;
}

static struct batch *batch_new(struct kunit *test)
{
	struct batch *batch = kvzalloc(sizeof(*batch), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, batch);
	test->priv = batch;
	batch->chunk = kvmalloc_array(BATCH, sizeof(*batch->chunk), GFP_KERNEL);
	batch->ids = kvmalloc_array(BATCH, sizeof(*batch->ids), GFP_KERNEL);
	batch->parts = kvmalloc_array(BATCH, sizeof(*batch->parts), GFP_KERNEL);
	batch->order = kvmalloc_array(BATCH, sizeof(*batch->order), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, batch->chunk && batch->ids && batch->parts && batch->order);
	return batch;
}

static void plan_exit(struct kunit *test)
{
	struct batch *batch = test->priv;

	if (!batch)
		return;
	kvfree(batch->chunk);
	kvfree(batch->ids);
	kvfree(batch->parts);
	kvfree(batch->order);
	kvfree(batch);
}

/* READs of 10^6 ids: as they come, in the order of parts, and of the batch sorted as a whole */
static void batch_measure(struct kunit *test, const char *what, u64 rows, bool power)
{
	struct batch *batch = test->priv;
	u64 half = rows / BATCH_OWNERS, came, ordered, whole;
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, SEED);
	batch->rows = rows;
	for (i = 0; i < BATCH; i++) {
		u64 span = power ? (rows >> (prandom_u32_state(&rnd) % ilog2(rows))) : rows;
		u64 id = prandom_u32_state(&rnd) % span;

		/* Rows that are wanted often are anywhere */
		batch->ids[i] = power ? id * 0x9e3779b1 % rows : id;
		batch->parts[i] = rdmatensor_plan_part(batch->ids[i], batch->ids[i] / half * half,
						       (batch->ids[i] / half + 1) * half);
	}
	rdmatensor_plan_order(batch->parts, BATCH, batch->begins, batch->order);
	came = batch_reads(batch, BATCH_CHUNK, false);
	ordered = batch_reads(batch, BATCH_CHUNK, true);
	whole = batch_reads(batch, BATCH, false);
	kunit_info(test, "%s of %llu rows: %llu READs as they come, %llu by parts, %llu whole\n",
		   what, rows, came, ordered, whole);
	KUNIT_EXPECT_LE(test, ordered, whole + whole / 50);
	KUNIT_EXPECT_GT(test, came, ordered + ordered / 10);
}

static void a_batch_is_read_as_a_whole(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_KCSAN))
		kunit_skip(test, "one thread has no data race, and takes longer than KUnit waits");
	batch_new(test);
	batch_measure(test, "uniform", 1000000, false);
	batch_measure(test, "power law", 10000000, true);
}

static struct kunit_case plan_cases[] = {
	KUNIT_CASE(parts_cover_the_rows),
	KUNIT_CASE(ordered_by_part),
	KUNIT_CASE(a_batch_is_read_as_a_whole),
	KUNIT_CASE(sorted),
	KUNIT_CASE_PARAM(every_row_once, shape_gen_params),
	KUNIT_CASE(neighbours_are_one_read),
	{}
};

static struct kunit_suite plan_suite = {
	.name = "rdmatensor_plan",
	.exit = plan_exit,
	.test_cases = plan_cases,
};

kunit_test_suite(plan_suite);
