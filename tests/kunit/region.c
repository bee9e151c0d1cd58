// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of a pool: single rules first, then long runs against a model that
 * knows of each byte whether it is handed out, read or written.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include "memory/region.h"
#include "rdmatensor.h"

#define ALIGNMENT RDMATENSOR_REGION_ALIGN
#define SEED 0x7265

static void new_regions(struct kunit *test, struct rdmatensor_regions *regions, u64 bytes)
{
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_init(regions, bytes), 0);
}

static u64 alloc(struct kunit *test, struct rdmatensor_regions *regions, u64 bytes)
{
	u64 offset = 1;

	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc(regions, bytes, GFP_KERNEL, &offset), 0);
	return offset;
}

static int alloc_ret(struct rdmatensor_regions *regions, u64 bytes)
{
	u64 offset;

	return rdmatensor_regions_alloc(regions, bytes, GFP_ATOMIC, &offset);
}

static void sizes_of_pools(struct kunit *test)
{
	static const struct {
		u64 bytes;
		int ret;
	} cases[] = {
		{ 0, -EINVAL }, { 1, -EINVAL }, { 63, -EINVAL }, { 64, 0 }, { 65, -EINVAL },
		{ 4096, 0 }, { 1ULL << 40, 0 }, { 1ULL << 63, 0 }, { U64_MAX, -EINVAL },
	};
	struct rdmatensor_regions regions;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ_MSG(test, rdmatensor_regions_init(&regions, cases[i].bytes),
				    cases[i].ret, "%llu bytes", cases[i].bytes);
		if (cases[i].ret)
			continue;
		KUNIT_EXPECT_EQ(test, alloc(test, &regions, cases[i].bytes), 0);
		KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 1), -ENOSPC);
		rdmatensor_regions_destroy(&regions);
	}
}

static void rounds_up(struct kunit *test)
{
	static const struct {
		u64 bytes;
		u64 taken;
	} cases[] = {
		{ 1, 64 }, { 63, 64 }, { 64, 64 }, { 65, 128 }, { 4095, 4096 }, { 4097, 4160 },
	};
	struct rdmatensor_regions regions;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		new_regions(test, &regions, 8192);
		KUNIT_EXPECT_EQ(test, alloc(test, &regions, cases[i].bytes), 0);
		KUNIT_EXPECT_EQ(test, alloc(test, &regions, 1), cases[i].taken);
		rdmatensor_regions_destroy(&regions);
	}
}

static void exhausted(struct kunit *test)
{
	struct rdmatensor_regions regions;
	unsigned int i;

	new_regions(test, &regions, 4096);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 4097), -ENOSPC);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, U64_MAX), -ENOSPC);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, U64_MAX - 62), -ENOSPC);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, alloc(test, &regions, 1), i * 64);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 1), -ENOSPC);

	/* Half of it free, and nothing of that longer than one piece */
	for (i = 0; i < 64; i += 2)
		KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, i * 64), 0);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 65), -ENOSPC);
	for (i = 0; i < 64; i += 2)
		KUNIT_EXPECT_EQ(test, alloc(test, &regions, 64), i * 64);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 1), -ENOSPC);
	rdmatensor_regions_destroy(&regions);
}

/* Three pieces and what follows, freed in each order, are one again */
static void joins(struct kunit *test)
{
	static const u8 orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	static const u64 lengths[] = { 1024, 64, 1984 };
	static const u64 pools[] = { 3072, 4096 };
	struct rdmatensor_regions regions;
	unsigned int i, j, p;
	u64 offsets[3];

	for (p = 0; p < ARRAY_SIZE(pools); p++) {
		for (i = 0; i < ARRAY_SIZE(orders); i++) {
			new_regions(test, &regions, pools[p]);
			for (j = 0; j < 3; j++)
				offsets[j] = alloc(test, &regions, lengths[j]);
			for (j = 0; j < 3; j++)
				KUNIT_EXPECT_EQ(test,
						rdmatensor_regions_free(&regions,
									offsets[orders[i][j]]),
						0);
			KUNIT_EXPECT_EQ(test, alloc(test, &regions, pools[p]), 0);
			KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), 0);
			KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), -ENOENT);
			rdmatensor_regions_destroy(&regions);
		}
	}
}

static void best_fit(struct kunit *test)
{
	struct rdmatensor_regions regions;
	u64 a, b, c, d;

	/* Holes of 512, 128, 256 and 128, in this order, and no other */
	new_regions(test, &regions, 512 + 128 + 256 + 128 + 4 * 64);
	a = alloc(test, &regions, 512);
	alloc(test, &regions, 64);
	b = alloc(test, &regions, 128);
	alloc(test, &regions, 64);
	c = alloc(test, &regions, 256);
	alloc(test, &regions, 64);
	d = alloc(test, &regions, 128);
	alloc(test, &regions, 64);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, d), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, a), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, c), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, b), 0);

	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 256), c);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 64), b);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 100), d);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 1), b + 64);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 64), a);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 449), -ENOSPC);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 448), a + 64);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 1), -ENOSPC);
	rdmatensor_regions_destroy(&regions);
}

static void free_errors(struct kunit *test)
{
	struct rdmatensor_regions regions;
	u64 a, b;

	new_regions(test, &regions, 4096);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), -ENOENT);
	a = alloc(test, &regions, 128);
	b = alloc(test, &regions, 128);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, a + 64), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, a + 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, b + 128), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 4096), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, U64_MAX), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, a), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, a), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, b), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, b), -ENOENT);
	rdmatensor_regions_destroy(&regions);
}

/*
 * The pool has 4096 bytes; [64, 256) and [256, 320) are handed out, and [128, 200)
 * is read or written. A range beside it is tried with both.
 */
static const struct hold_case {
	const char *name;
	u64 offset;
	u64 bytes;
	int read_over_read;
	int read_over_write;
	int write_over_read;
	int write_over_write;
} hold_cases[] = {
	{ "all of a region", 64, 192, 0, -EINVAL, -EINVAL, -EINVAL },
	{ "the same range", 128, 72, 0, -EINVAL, -EINVAL, -EINVAL },
	{ "inside it", 128, 1, 0, -EINVAL, -EINVAL, -EINVAL },
	{ "its last byte", 192, 8, 0, -EINVAL, -EINVAL, -EINVAL },
	{ "before it", 64, 64, 0, 0, 0, 0 },
	{ "before it and its first byte", 64, 65, 0, -EINVAL, -EINVAL, -EINVAL },
	{ "another region", 256, 64, 0, 0, 0, 0 },
	{ "part of another region", 256, 3, 0, 0, 0, 0 },
	{ "more than a region", 64, 193, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "two regions", 64, 256, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "from a region into what is free", 256, 65, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "free", 320, 64, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "from what is free into a region", 0, 128, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "not aligned", 65, 1, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "beyond the pool", 4096, 1, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "far beyond the pool", 1ULL << 63, 1, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "of all bytes", 64, U64_MAX, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "that wraps", 64, 0 - 64ULL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "empty, inside it", 128, 0, 0, 0, 0, 0 },
	{ "empty, where it is free", 1024, 0, 0, 0, 0, 0 },
	{ "empty, at the pool's end", 4096, 0, 0, 0, 0, 0 },
	{ "empty, beyond the pool", 4160, 0, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	{ "empty, not aligned", 100, 0, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
};

static void hold_case_name(const struct hold_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hold, hold_cases, hold_case_name);

static void hold(struct kunit *test)
{
	const struct hold_case *c = test->param_value;
	const int expected[2][2] = {
		{ c->read_over_read, c->read_over_write },
		{ c->write_over_read, c->write_over_write },
	};
	struct rdmatensor_use first, second;
	struct rdmatensor_regions regions;
	int write, over_write;

	new_regions(test, &regions, 4096);
	alloc(test, &regions, 64);
	KUNIT_ASSERT_EQ(test, alloc(test, &regions, 192), 64);
	KUNIT_ASSERT_EQ(test, alloc(test, &regions, 64), 256);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_free(&regions, 0), 0);

	for (write = 0; write < 2; write++) {
		for (over_write = 0; over_write < 2; over_write++) {
			int ret = expected[write][over_write];

			KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &first, 128, 72,
								      over_write), 0);
			memset(&second, 0xa5, sizeof(second));
			KUNIT_EXPECT_EQ_MSG(test,
					    rdmatensor_regions_hold(&regions, &second,
								    c->offset, c->bytes, write),
					    ret, "write %d over write %d", write, over_write);
			KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 64), -EBUSY);
			rdmatensor_regions_drop(&regions, &first);
			KUNIT_EXPECT_EQ(test, regions.nr_uses, !ret);
			if (!ret)
				rdmatensor_regions_drop(&regions, &second);
			KUNIT_EXPECT_EQ(test, regions.nr_uses, 0);
		}
	}
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 64), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 256), 0);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 4096), 0);
	rdmatensor_regions_destroy(&regions);
}

static void uses_keep_a_region(struct kunit *test)
{
	struct rdmatensor_use uses[3], empty;
	struct rdmatensor_regions regions;
	unsigned int i;

	new_regions(test, &regions, 4096);
	alloc(test, &regions, 256);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &uses[i], 0, 256, false),
				0);
	/* An empty one keeps the pool, not the region */
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &empty, 0, 0, true), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), -EBUSY);
		rdmatensor_regions_drop(&regions, &uses[i]);
	}
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&regions), -EBUSY);
	rdmatensor_regions_drop(&regions, &empty);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&regions), 0);
	rdmatensor_regions_destroy(&regions);
}

static void none_after_the_last(struct kunit *test)
{
	struct rdmatensor_regions regions;
	struct rdmatensor_use use, late;

	new_regions(test, &regions, 4096);
	alloc(test, &regions, 64);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &use, 0, 64, false), 0);
	/* What was refused has changed nothing */
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&regions), -EBUSY);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 64), 64);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &late, 64, 64, true), 0);
	rdmatensor_regions_drop(&regions, &late);
	rdmatensor_regions_drop(&regions, &use);

	/* Regions that are handed out and not in use go with the pool */
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&regions), 0);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 64), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &late, 0, 64, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &late, 0, 64, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &late, 0, 0, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, regions.nr_uses, 0);
	rdmatensor_regions_destroy(&regions);
}

static void held_from_the_beginning(struct kunit *test)
{
	struct rdmatensor_use use, other;
	struct rdmatensor_regions regions;
	u64 offset = 1;

	new_regions(test, &regions, 4096);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &use, 0, 0, true), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_alloc_hold(&regions, &use, 0, GFP_KERNEL,
							    &offset), -EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_alloc_hold(&regions, &use, 4097, GFP_KERNEL,
							    &offset), -ENOSPC);
	KUNIT_EXPECT_EQ(test, regions.nr_uses, 1);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 64), 0);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc_hold(&regions, &use, 65, GFP_ATOMIC,
							    &offset), 0);
	KUNIT_EXPECT_EQ(test, offset, 64);
	KUNIT_EXPECT_EQ(test, regions.nr_uses, 1);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 64), -EBUSY);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &other, 64, 1, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &other, 128, 64, false),
			-EINVAL);

	/* The region goes back, and the hold keeps the pool until there is another one */
	rdmatensor_regions_free_held(&regions, &use);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&regions), -EBUSY);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 64), -ENOENT);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 4096 - 64), 64);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 64), 0);

	/* Or the region stays, and is the process's */
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc_hold(&regions, &use, 4096 - 64,
							    GFP_KERNEL, &offset), 0);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, 1), -ENOSPC);
	rdmatensor_regions_drop(&regions, &use);
	KUNIT_EXPECT_EQ(test, regions.nr_uses, 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 64), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), 0);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 4096), 0);
	rdmatensor_regions_destroy(&regions);
}

/* Where uses begin anywhere, none begins in the end of a region that only aligns it */
static void held_to_its_end(struct kunit *test)
{
	struct rdmatensor_use use, other;
	struct rdmatensor_regions regions;
	u64 offset = 1;

	new_regions(test, &regions, 4096);
	regions.align = 1;
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_hold(&regions, &use, 0, 0, true), 0);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc_hold(&regions, &use, 100, GFP_KERNEL,
							    &offset), 0);
	KUNIT_EXPECT_EQ(test, offset, 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &other, 100, 20, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &other, 127, 1, true), -EINVAL);
	rdmatensor_regions_free_held(&regions, &use);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 4096), 0);
	rdmatensor_regions_drop(&regions, &use);
	rdmatensor_regions_destroy(&regions);
}

#define MODEL_BYTES 16384
#define MODEL_CELLS (MODEL_BYTES / ALIGNMENT)
#define MODEL_USES 64

/*
 * @owner: of each cell of ALIGNMENT bytes, 1 + the cell that its region begins
 *         in; 0: free
 * @readers, @writers: of each byte
 */
struct model {
	u16 owner[MODEL_CELLS];
	u8 readers[MODEL_BYTES];
	u8 writers[MODEL_BYTES];
	struct rdmatensor_use uses[MODEL_USES];
	struct {
		u32 offset;
		u32 bytes;
		bool write;
		bool held;
	} held[MODEL_USES];
};

/* The first of the shortest runs of free cells that @cells fit into; -1: none */
static int model_fit(const struct model *model, unsigned int cells)
{
	unsigned int i, run, best = MODEL_CELLS + 1;
	int found = -1;

	for (i = 0; i < MODEL_CELLS; i += run) {
		bool free = !model->owner[i];

		for (run = 1; i + run < MODEL_CELLS && !model->owner[i + run] == free &&
		     (free || model->owner[i + run] == model->owner[i]); run++)
			;
		if (free && run >= cells && run < best) {
			best = run;
			found = i;
		}
	}
	return found;
}

static unsigned int model_region_cells(const struct model *model, unsigned int cell)
{
	unsigned int n = 0;

	while (cell + n < MODEL_CELLS && model->owner[cell + n] == 1 + cell)
		n++;
	return n;
}

static bool model_used(const struct model *model, unsigned int cell, unsigned int cells)
{
	return memchr_inv(&model->readers[cell * ALIGNMENT], 0, cells * ALIGNMENT) ||
	       memchr_inv(&model->writers[cell * ALIGNMENT], 0, cells * ALIGNMENT);
}

static int model_hold(const struct model *model, u32 offset, u32 bytes, bool write)
{
	unsigned int cell = offset / ALIGNMENT, end = DIV_ROUND_UP(offset + bytes, ALIGNMENT);
	unsigned int i;

	if (offset % ALIGNMENT || offset + bytes > MODEL_BYTES)
		return -EINVAL;
	if (!bytes)
		return 0;
	for (i = cell; i < end; i++) {
		if (!model->owner[i] || model->owner[i] != model->owner[cell])
			return -EINVAL;
	}
	if (memchr_inv(&model->writers[offset], 0, bytes))
		return -EINVAL;
	if (write && memchr_inv(&model->readers[offset], 0, bytes))
		return -EINVAL;
	return 0;
}

static void model_count(struct model *model, unsigned int i, int by)
{
	u8 *counts = model->held[i].write ? model->writers : model->readers;
	u32 at;

	for (at = 0; at < model->held[i].bytes; at++)
		counts[model->held[i].offset + at] += by;
}

static bool random_alloc(struct model *model, struct rdmatensor_regions *regions,
			 struct rnd_state *rnd)
{
	u32 bytes = 1 + prandom_u32_state(rnd) % (MODEL_BYTES >> (prandom_u32_state(rnd) % 10));
	unsigned int cells = DIV_ROUND_UP(bytes, ALIGNMENT), i;
	int fit = model_fit(model, cells);
	u64 offset = 1;
	int ret;

	ret = rdmatensor_regions_alloc(regions, bytes, GFP_KERNEL, &offset);
	if (fit < 0)
		return ret == -ENOSPC;
	if (ret || offset != fit * ALIGNMENT)
		return false;
	for (i = 0; i < cells; i++)
		model->owner[fit + i] = 1 + fit;
	return true;
}

static bool random_free(struct model *model, struct rdmatensor_regions *regions,
			struct rnd_state *rnd)
{
	unsigned int cell = prandom_u32_state(rnd) % MODEL_CELLS, cells;
	int ret;

	/* Mostly where a region begins */
	if (model->owner[cell] && prandom_u32_state(rnd) % 8)
		cell = model->owner[cell] - 1;
	ret = rdmatensor_regions_free(regions, cell * ALIGNMENT);
	cells = model_region_cells(model, cell);
	if (!cells)
		return ret == -ENOENT;
	if (model_used(model, cell, cells))
		return ret == -EBUSY;
	memset(&model->owner[cell], 0, cells * sizeof(model->owner[0]));
	return !ret;
}

static bool random_use(struct model *model, struct rdmatensor_regions *regions,
		       struct rnd_state *rnd)
{
	unsigned int i = prandom_u32_state(rnd) % MODEL_USES;
	u32 cell, offset, bytes;
	bool write;
	int ret;

	if (model->held[i].held) {
		rdmatensor_regions_drop(regions, &model->uses[i]);
		model_count(model, i, -1);
		model->held[i].held = false;
		return true;
	}

	cell = prandom_u32_state(rnd) % (MODEL_CELLS + 1);
	offset = cell * ALIGNMENT;
	bytes = prandom_u32_state(rnd) % 512;
	write = prandom_u32_state(rnd) & 1;
	/* Mostly as much as the region has from here on, and aligned */
	if (prandom_u32_state(rnd) % 4 && cell < MODEL_CELLS && model->owner[cell])
		bytes = 1 + bytes % (ALIGNMENT * model_region_cells(model,
								    model->owner[cell] - 1));
	if (!(prandom_u32_state(rnd) % 16))
		offset += prandom_u32_state(rnd) % ALIGNMENT;
	ret = rdmatensor_regions_hold(regions, &model->uses[i], offset, bytes, write);
	if (ret != model_hold(model, offset, bytes, write))
		return false;
	if (!ret) {
		model->held[i].offset = offset;
		model->held[i].bytes = bytes;
		model->held[i].write = write;
		model->held[i].held = true;
		model_count(model, i, 1);
	}
	return true;
}

static void random_runs(struct kunit *test)
{
	struct model *model = kvzalloc(sizeof(*model), GFP_KERNEL);
	struct rdmatensor_regions regions;
	unsigned int round, i, uses;
	struct rnd_state rnd;
	bool right = true;

	KUNIT_ASSERT_NOT_NULL(test, model);
	if (rdmatensor_regions_init(&regions, MODEL_BYTES)) {
		KUNIT_FAIL(test, "init");
		goto out_free;
	}
	prandom_seed_state(&rnd, SEED);

	for (round = 0; round < 100000 && right; round++) {
		switch (prandom_u32_state(&rnd) % 8) {
		case 0 ... 2:
			right = random_alloc(model, &regions, &rnd);
			break;
		case 3 ... 4:
			right = random_free(model, &regions, &rnd);
			break;
		default:
			right = random_use(model, &regions, &rnd);
			break;
		}
	}
	KUNIT_EXPECT_TRUE_MSG(test, right, "round %u", round);

	uses = 0;
	for (i = 0; i < MODEL_USES; i++)
		uses += model->held[i].held;
	KUNIT_EXPECT_EQ(test, regions.nr_uses, uses);
	for (i = 0; i < MODEL_USES; i++) {
		if (model->held[i].held)
			rdmatensor_regions_drop(&regions, &model->uses[i]);
	}
	for (i = 0; i < MODEL_CELLS; i++) {
		if (model->owner[i] == 1 + i)
			KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, i * ALIGNMENT),
					0);
	}
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, MODEL_BYTES), 0);
	rdmatensor_regions_destroy(&regions);
out_free:
	kvfree(model);
}

static void many_regions(struct kunit *test)
{
	struct rdmatensor_regions regions;
	u32 i;

	new_regions(test, &regions, 100000ULL * ALIGNMENT);
	for (i = 0; i < 100000; i++)
		KUNIT_ASSERT_EQ(test, alloc(test, &regions, 1), (u64)i * ALIGNMENT);
	for (i = 0; i < 100000; i += 2)
		KUNIT_ASSERT_EQ(test, rdmatensor_regions_free(&regions, (u64)i * ALIGNMENT), 0);
	KUNIT_EXPECT_EQ(test, alloc_ret(&regions, ALIGNMENT + 1), -ENOSPC);
	for (i = 1; i < 100000; i += 2)
		KUNIT_ASSERT_EQ(test, rdmatensor_regions_free(&regions, (u64)i * ALIGNMENT), 0);
	KUNIT_EXPECT_EQ(test, alloc(test, &regions, 100000ULL * ALIGNMENT), 0);
	rdmatensor_regions_destroy(&regions);
}

/* Which uses may lie over each other: the second one is refused, or both are there */
static void beside_each_other(struct kunit *test)
{
	static const struct {
		bool write[2], sparse[2];
		int ret;
	} cases[] = {
		{ { false, false }, { false, false }, 0 },
		{ { false, false }, { true, false }, 0 },
		{ { false, false }, { true, true }, 0 },
		{ { false, true }, { false, false }, -EINVAL },
		{ { false, true }, { false, true }, -EINVAL },
		{ { false, true }, { true, false }, -EINVAL },
		{ { false, true }, { true, true }, 0 },
		{ { true, true }, { false, false }, -EINVAL },
		{ { true, true }, { false, true }, -EINVAL },
		{ { true, true }, { true, true }, 0 },
	};
	struct rdmatensor_regions regions;
	struct rdmatensor_use uses[2];
	unsigned int i, first, j;
	u64 at;

	KUNIT_ASSERT_EQ(test, rdmatensor_regions_init(&regions, 4096), 0);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc(&regions, 4096, GFP_KERNEL, &at), 0);
	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		first = i % 2;
		memset(uses, 0, sizeof(uses));
		for (j = 0; j < 2; j++) {
			unsigned int which = j ? !first : first;
			bool write = cases[i / 2].write[which];
			int ret;

			if (cases[i / 2].sparse[which])
				ret = rdmatensor_regions_hold_sparse(&regions, &uses[j], 64 * j,
								     256, write);
			else
				ret = rdmatensor_regions_hold(&regions, &uses[j], 64 * j, 256,
							      write);

			if (j)
				KUNIT_EXPECT_EQ_MSG(test, ret, cases[i / 2].ret, "case %u", i);
			else
				KUNIT_EXPECT_EQ_MSG(test, ret, 0, "case %u", i);
			if (!ret && j)
				rdmatensor_regions_drop(&regions, &uses[1]);
		}
		KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), -EBUSY);
		rdmatensor_regions_drop(&regions, &uses[0]);
	}
	/* A sparse one begins anywhere, and ends inside all the same */
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold(&regions, &uses[0], 1, 1, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold_sparse(&regions, &uses[0], 1, 4096, true),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_hold_sparse(&regions, &uses[0], 1, 4095, true), 0);
	rdmatensor_regions_drop(&regions, &uses[0]);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&regions, 0), 0);
	rdmatensor_regions_destroy(&regions);
}

static struct kunit_case region_tests[] = {
	KUNIT_CASE(beside_each_other),
	KUNIT_CASE(sizes_of_pools),
	KUNIT_CASE(rounds_up),
	KUNIT_CASE(exhausted),
	KUNIT_CASE(joins),
	KUNIT_CASE(best_fit),
	KUNIT_CASE(free_errors),
	KUNIT_CASE_PARAM(hold, hold_gen_params),
	KUNIT_CASE(uses_keep_a_region),
	KUNIT_CASE(none_after_the_last),
	KUNIT_CASE(held_from_the_beginning),
	KUNIT_CASE(held_to_its_end),
	KUNIT_CASE(random_runs),
	KUNIT_CASE(many_regions),
	{}
};

static struct kunit_suite region_suite = {
	.name = "rdmatensor_region",
	.test_cases = region_tests,
};

kunit_test_suite(region_suite);
