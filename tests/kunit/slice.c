// SPDX-License-Identifier: GPL-2.0
/*
 * Slices and layouts: what the meta-data of slices are, and where each of their bytes lies, in
 * tensors with and without gaps; against arithmetic that goes element by element.
 */
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include "core/slice.h"

#define SEED 0x51ce
#define DIMS 4

static const struct check_case {
	const char *name;
	struct rdmatensor_slice slice;
	int ret;
} check_cases[] = {
	{ "bytes", { 0, { { 0, 5 } } }, 0 },
	{ "no bytes", { 0, { { 0, 0 } } }, 0 },
	{ "the rest", { 0, { { S64_MAX, RDMATENSOR_RANGE_REST } } }, 0 },
	{ "to the last number", { 1, { { 1, S64_MAX - 1 } } }, 0 },
	{ "beyond it", { 1, { { 1, S64_MAX } } }, -EINVAL },
	{ "far beyond it", { 1, { { 0, U64_MAX - 1 } } }, -EINVAL },
	{ "from beyond it", { 1, { { 1ULL << 63, 0 } } }, -EINVAL },
	{ "the rest from beyond it", { 0, { { 1ULL << 63, RDMATENSOR_RANGE_REST } } }, -EINVAL },
	{ "the second range", { 2, { { 0, 1 }, { 2, S64_MAX } } }, -EINVAL },
	{ "one more than there are", { 1, { { 0, 1 }, { 2, S64_MAX } } }, 0 },
	{ "sixteen", { 16, { } }, 0 },
	{ "seventeen", { 17, { } }, -EINVAL },
};

static void check_case_name(const struct check_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(check, check_cases, check_case_name);

static void check(struct kunit *test)
{
	const struct check_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rdmatensor_slice_check(&c->slice), c->ret);
}

static const struct rdmatensor_meta matrix = {
	.data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 80, .dims = { 4, 5 },
};

static const struct rdmatensor_meta empty = {
	.data_type = RDMATENSOR_DT_FLOAT, .ndims = 3, .dims = { 1ULL << 40, 0, 1ULL << 40 },
};

static const struct rdmatensor_meta dead = {
	.data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .is_dead = 1, .dims = { 4, 5 },
};

static const struct rdmatensor_meta opaque = {
	.data_type = RDMATENSOR_DT_STRING, .ndims = 1, .bytes = 80, .dims = { 5 },
};

static const struct meta_case {
	const char *name;
	const struct rdmatensor_meta *whole;
	struct rdmatensor_slice slice;
	int ret;
	struct rdmatensor_meta part;
} meta_cases[] = {
	{ "all of it", &matrix, { 2, { { 0, 4 }, { 0, 5 } } }, 0,
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 80, .dims = { 4, 5 } } },
	{ "its rest", &matrix,
	  { 2, { { 1, RDMATENSOR_RANGE_REST }, { 2, RDMATENSOR_RANGE_REST } } }, 0,
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 36, .dims = { 3, 3 } } },
	{ "nothing at its end", &matrix, { 2, { { 4, 0 }, { 5, RDMATENSOR_RANGE_REST } } }, 0,
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2 } },
	{ "a row too many", &matrix, { 2, { { 0, 5 }, { 0, 5 } } }, -ERANGE },
	{ "a column too many", &matrix, { 2, { { 0, 4 }, { 1, 5 } } }, -ERANGE },
	{ "the rest of no row", &matrix, { 2, { { 5, RDMATENSOR_RANGE_REST }, { 0, 5 } } },
	  -ERANGE },
	{ "its rows", &matrix, { 1, { { 1, 2 } } }, 0,
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 40, .dims = { 2, 5 } } },
	{ "three dims", &matrix, { 3, { { 0, 4 }, { 0, 5 }, { 0, 1 } } }, -ERANGE },
	{ "its bytes", &matrix, { 0, { { 1, RDMATENSOR_RANGE_REST } } }, 0,
	  { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = 79, .dims = { 79 } } },
	{ "a byte too many", &matrix, { 0, { { 1, 80 } } }, -ERANGE },
	{ "of one without bytes", &empty,
	  { 3, { { 0, 1ULL << 40 }, { 0, 0 }, { 1, RDMATENSOR_RANGE_REST } } }, 0,
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 3, .dims = { 1ULL << 40, 0,
								  (1ULL << 40) - 1 } } },
	{ "of a dead one", &dead, { 1, { { 9, 9 } } }, 0,
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .is_dead = 1, .dims = { 4, 5 } } },
	{ "bytes of an opaque one", &opaque, { 0, { { 70, 10 } } }, 0,
	  { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = 10, .dims = { 10 } } },
	{ "elements of an opaque one", &opaque, { 1, { { 0, 5 } } }, -ERANGE },
};

static void meta_case_name(const struct meta_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(meta, meta_cases, meta_case_name);

static void meta(struct kunit *test)
{
	const struct meta_case *c = test->param_value;
	struct rdmatensor_meta part;

	KUNIT_ASSERT_EQ(test, rdmatensor_slice_check(&c->slice), 0);
	KUNIT_ASSERT_EQ(test, rdmatensor_slice_meta(&c->slice, c->whole, &part), c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, rdmatensor_meta_check(&part), 0);
	KUNIT_EXPECT_MEMEQ(test, &part, &c->part, sizeof(part));
}

/* Where the number @element of the slice lies, by division alone */
static u64 element_at(const struct rdmatensor_slice *slice, const struct rdmatensor_meta *whole,
		      const struct rdmatensor_meta *part, u64 element)
{
	u64 at = 0, stride = 1;
	unsigned int i;

	for (i = whole->ndims; i--;) {
		at += (slice->ranges[i].start + element % part->dims[i]) * stride;
		element /= part->dims[i];
		stride *= whole->dims[i];
	}
	return at;
}

static void random_slice(struct rnd_state *rnd, struct rdmatensor_meta *whole,
			 struct rdmatensor_slice *slice)
{
	static const u16 types[] = {
		RDMATENSOR_DT_UINT8, RDMATENSOR_DT_FLOAT, RDMATENSOR_DT_INT64,
	};
	unsigned int i;

	memset(whole, 0, sizeof(*whole));
	memset(slice, 0, sizeof(*slice));
	whole->data_type = types[prandom_u32_state(rnd) % ARRAY_SIZE(types)];
	whole->ndims = 1 + prandom_u32_state(rnd) % DIMS;
	whole->bytes = rdmatensor_data_type_bytes(whole->data_type);
	slice->ndims = 1 + prandom_u32_state(rnd) % whole->ndims;
	for (i = 0; i < whole->ndims; i++) {
		u32 dim = 1 + prandom_u32_state(rnd) % 7;
		u32 start = prandom_u32_state(rnd) % 2 ? prandom_u32_state(rnd) % dim : 0;

		whole->dims[i] = dim;
		whole->bytes *= dim;
		slice->ranges[i].start = start;
		slice->ranges[i].length = prandom_u32_state(rnd) % 3 ?
					  1 + prandom_u32_state(rnd) % (dim - start) :
					  RDMATENSOR_RANGE_REST;
		if (i >= slice->ndims)
			slice->ranges[i] = (struct rdmatensor_range){ 0, RDMATENSOR_RANGE_REST };
	}
}

/* Every byte of the slice, each run as long as it is, and none longer than what lies together */
static void expect_cut(struct kunit *test, const struct rdmatensor_slice *slice,
		       const struct rdmatensor_meta *whole, const struct rdmatensor_meta *part)
{
	u32 size = rdmatensor_data_type_bytes(whole->data_type);
	struct rdmatensor_cut cut;
	u64 pos, run, at;

	rdmatensor_slice_cut(slice, NULL, whole, &cut);
	KUNIT_EXPECT_EQ(test, part->bytes % cut.bytes, 0);
	for (pos = 0; pos < part->bytes; pos++) {
		at = rdmatensor_cut_at(&cut, pos, &run);
		KUNIT_ASSERT_EQ(test, at, element_at(slice, whole, part, pos / size) * size +
				pos % size);
		KUNIT_ASSERT_EQ(test, run, cut.bytes - pos % cut.bytes);
	}
	/* They are as long as they can be: what follows a run lies elsewhere */
	if (cut.bytes < part->bytes)
		KUNIT_EXPECT_NE(test, rdmatensor_cut_at(&cut, cut.bytes, &run),
				rdmatensor_cut_at(&cut, 0, &run) + cut.bytes);
}

static void cuts(struct kunit *test)
{
	struct rdmatensor_slice slice;
	struct rdmatensor_meta whole, part;
	struct rnd_state rnd;
	unsigned int round;

	prandom_seed_state(&rnd, SEED);
	for (round = 0; round < 2000; round++) {
		random_slice(&rnd, &whole, &slice);
		KUNIT_ASSERT_EQ(test, rdmatensor_meta_check(&whole), 0);
		KUNIT_ASSERT_EQ(test, rdmatensor_slice_meta(&slice, &whole, &part), 0);
		KUNIT_ASSERT_EQ(test, rdmatensor_meta_check(&part), 0);
		KUNIT_ASSERT_NE(test, part.bytes, 0);
		expect_cut(test, &slice, &whole, &part);
	}
}

static void cut_of_bytes(struct kunit *test)
{
	const struct rdmatensor_slice slice = { 0, { { 70, RDMATENSOR_RANGE_REST } } };
	struct rdmatensor_cut cut;
	u64 run;

	rdmatensor_slice_cut(&slice, NULL, &opaque, &cut);
	KUNIT_EXPECT_EQ(test, rdmatensor_cut_at(&cut, 0, &run), 70);
	KUNIT_EXPECT_EQ(test, run, 10);
	KUNIT_EXPECT_EQ(test, rdmatensor_cut_at(&cut, 9, &run), 79);
	KUNIT_EXPECT_EQ(test, run, 1);
}

/* What is taken in the last dim alone has one level of runs, however many dims there are */
static void levels(struct kunit *test)
{
	struct rdmatensor_meta whole = {
		.data_type = RDMATENSOR_DT_UINT8, .ndims = 16, .bytes = 65536,
		.dims = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 },
	};
	struct rdmatensor_slice slice = { .ndims = 16 };
	struct rdmatensor_cut cut;
	int i;

	for (i = 0; i < 15; i++)
		slice.ranges[i].length = RDMATENSOR_RANGE_REST;
	slice.ranges[15].length = 1;
	rdmatensor_slice_cut(&slice, NULL, &whole, &cut);
	KUNIT_EXPECT_EQ(test, cut.nr, 1);
	KUNIT_EXPECT_EQ(test, cut.bytes, 1);
	KUNIT_EXPECT_EQ(test, cut.count[0], 1 << 15);
	KUNIT_EXPECT_EQ(test, cut.stride[0], 2);
	/* Short runs cost more than they have bytes, long ones what they have */
	KUNIT_EXPECT_EQ(test, rdmatensor_cut_cost(&cut, 1 << 15), (u64)1 << 25);
	cut.bytes = 4096;
	KUNIT_EXPECT_EQ(test, rdmatensor_cut_cost(&cut, 1 << 15), (u64)1 << 15);
}

static const struct layout_case {
	const char *name;
	const struct rdmatensor_meta *meta;
	struct rdmatensor_layout layout;
	int check;
	int ret;
	u64 span;
	bool disjoint;
} layout_cases[] = {
	{ "without gaps", &matrix, { 2, { 20, 4 } }, 0, 0, 80, true },
	{ "columns of a wider array", &matrix, { 2, { 400, 4 } }, 0, 0, 1220, true },
	{ "transposed", &matrix, { 2, { 4, 16 } }, 0, 0, 80, true },
	{ "transposed, too narrow", &matrix, { 2, { 4, 15 } }, 0, 0, 76, false },
	{ "rows that overlap", &matrix, { 2, { 19, 4 } }, 0, 0, 77, false },
	{ "elements that overlap", &matrix, { 2, { 20, 3 } }, 0, 0, 76, false },
	{ "a row again and again", &matrix, { 2, { 0, 4 } }, 0, 0, 20, false },
	{ "one element", &matrix, { 2, { 0, 0 } }, 0, 0, 4, false },
	{ "one stride", &matrix, { 1, { 20 } }, 0, -ERANGE },
	{ "three strides", &matrix, { 3, { 80, 20, 4 } }, 0, -ERANGE },
	{ "to the last byte there can be", &matrix, { 2, { (S64_MAX - 20) / 3, 4 } }, 0, 0,
	  (S64_MAX - 20) / 3 * 3 + 20, true },
	{ "beyond it", &matrix, { 2, { (S64_MAX - 20) / 3 + 1, 4 } }, 0, -ERANGE },
	{ "far beyond it", &matrix, { 2, { S64_MAX, 4 } }, 0, -ERANGE },
	{ "a stride too long", &matrix, { 2, { 1ULL << 63, 4 } }, -EINVAL },
	{ "seventeen", &matrix, { 17, { 20, 4 } }, -EINVAL },
	{ "empty", &empty, { 3, { S64_MAX, S64_MAX, S64_MAX } }, 0, 0, 0, true },
	{ "opaque", &opaque, { 1, { 1 } }, 0, -ERANGE },
};

static void layout_case_name(const struct layout_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(layout, layout_cases, layout_case_name);

static void layout(struct kunit *test)
{
	const struct layout_case *c = test->param_value;
	u64 span;

	KUNIT_ASSERT_EQ(test, rdmatensor_layout_check(&c->layout), c->check);
	if (c->check)
		return;
	KUNIT_ASSERT_EQ(test, rdmatensor_layout_span(&c->layout, c->meta, &span), c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, span, c->span);
	KUNIT_EXPECT_EQ(test, rdmatensor_layout_disjoint(&c->layout, c->meta), c->disjoint);
}

/* Dims in any order, gaps or none behind each; now and then an element that is repeated */
static void random_layout(struct rnd_state *rnd, const struct rdmatensor_meta *whole,
			  struct rdmatensor_layout *layout)
{
	u64 extent = rdmatensor_data_type_bytes(whole->data_type);
	unsigned int left = BIT(whole->ndims) - 1, i;

	memset(layout, 0, sizeof(*layout));
	layout->ndims = whole->ndims;
	while (left) {
		/* Mostly the fastest that is left: runs are long then */
		i = prandom_u32_state(rnd) % 3 ? fls(left) - 1 :
						 prandom_u32_state(rnd) % whole->ndims;
		if (!(left & BIT(i)))
			continue;
		left &= ~BIT(i);
		if (!(prandom_u32_state(rnd) % 3))
			extent += prandom_u32_state(rnd) % 5;
		layout->strides[i] = prandom_u32_state(rnd) % 16 ? extent : 0;
		extent += layout->strides[i] * (whole->dims[i] - 1);
	}
}

/* Where the number @element of the tensor lies */
static u64 laid_out_at(const struct rdmatensor_layout *layout, const struct rdmatensor_meta *whole,
		       u64 element)
{
	u64 at = 0;
	unsigned int i;

	for (i = whole->ndims; i--;) {
		at += element % whole->dims[i] * layout->strides[i];
		element /= whole->dims[i];
	}
	return at;
}

/* Of a slice of it, which may be a range of bytes from @skip on */
static void expect_laid_out(struct kunit *test, const struct rdmatensor_slice *slice,
			    const struct rdmatensor_layout *layout,
			    const struct rdmatensor_meta *whole,
			    const struct rdmatensor_meta *part, u64 skip)
{
	u32 size = rdmatensor_data_type_bytes(whole->data_type);
	u64 pos, run, at, byte, last = U64_MAX, together = 0;
	struct rdmatensor_cut cut;

	rdmatensor_slice_cut(slice, layout, whole, &cut);
	for (pos = 0; pos < part->bytes; pos++) {
		at = rdmatensor_cut_at(&cut, pos, &run);
		byte = pos + skip;
		if (slice->ndims)
			byte = element_at(slice, whole, part, pos / size) * size + pos % size;
		KUNIT_ASSERT_EQ(test, at, laid_out_at(layout, whole, byte / size) + byte % size);
		/* What is said to lie together does */
		if (together)
			KUNIT_ASSERT_EQ(test, at, last + 1);
		last = at;
		KUNIT_ASSERT_GT(test, run, 0);
		KUNIT_ASSERT_TRUE(test, !together || run == together);
		together = run - 1;
	}
}

/* Against a map of all bytes */
static void expect_span(struct kunit *test, const struct rdmatensor_layout *layout,
			const struct rdmatensor_meta *whole)
{
	u32 size = rdmatensor_data_type_bytes(whole->data_type), i;
	u64 span, most = 0, at, element;
	bool overlaps = false;
	u8 *map;

	KUNIT_ASSERT_EQ(test, rdmatensor_layout_span(layout, whole, &span), 0);
	map = kzalloc(span, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, map);
	for (element = 0; element < whole->bytes / size; element++) {
		at = laid_out_at(layout, whole, element);
		most = max(most, at + size);
		for (i = 0; i < size && at + i < span; i++)
			overlaps |= map[at + i]++;
	}
	kfree(map);
	KUNIT_EXPECT_EQ(test, span, most);
	KUNIT_EXPECT_EQ(test, rdmatensor_layout_disjoint(layout, whole), !overlaps);
}

static void layouts(struct kunit *test)
{
	struct rdmatensor_slice slice, bytes = {};
	struct rdmatensor_meta whole, part;
	struct rdmatensor_layout layout;
	struct rnd_state rnd;
	unsigned int round;

	prandom_seed_state(&rnd, SEED);
	for (round = 0; round < 1000; round++) {
		random_slice(&rnd, &whole, &slice);
		random_layout(&rnd, &whole, &layout);
		expect_span(test, &layout, &whole);
		KUNIT_ASSERT_EQ(test, rdmatensor_slice_meta(&slice, &whole, &part), 0);
		expect_laid_out(test, &slice, &layout, &whole, &part, 0);
		bytes.ranges[0].start = prandom_u32_state(&rnd) % whole.bytes;
		bytes.ranges[0].length = RDMATENSOR_RANGE_REST;
		KUNIT_ASSERT_EQ(test, rdmatensor_slice_meta(&bytes, &whole, &part), 0);
		expect_laid_out(test, &bytes, &layout, &whole, &part, bytes.ranges[0].start);
	}
}

/* Neighbours are one run, whatever dims they are of */
static void runs_of_layouts(struct kunit *test)
{
	const struct rdmatensor_meta whole = {
		.data_type = RDMATENSOR_DT_FLOAT, .ndims = 4, .bytes = 480, .dims = { 2, 1, 3, 20 },
	};
	struct rdmatensor_layout layout = { 4, { 240, 7, 80, 4 } };
	struct rdmatensor_cut cut;

	rdmatensor_slice_cut(NULL, &layout, &whole, &cut);
	KUNIT_EXPECT_EQ(test, cut.nr, 0);
	KUNIT_EXPECT_EQ(test, cut.bytes, 480);
	layout.strides[0] = 1000;
	rdmatensor_slice_cut(NULL, &layout, &whole, &cut);
	KUNIT_EXPECT_EQ(test, cut.nr, 1);
	KUNIT_EXPECT_EQ(test, cut.bytes, 240);
	layout.strides[2] = 100;
	layout.strides[0] = 300;
	rdmatensor_slice_cut(NULL, &layout, &whole, &cut);
	KUNIT_EXPECT_EQ(test, cut.nr, 1);
	KUNIT_EXPECT_EQ(test, cut.bytes, 80);
	KUNIT_EXPECT_EQ(test, cut.count[0], 6);
	rdmatensor_slice_cut(NULL, NULL, &whole, &cut);
	KUNIT_EXPECT_EQ(test, cut.nr, 0);
	KUNIT_EXPECT_EQ(test, cut.bytes, 480);
}

static struct kunit_case slice_tests[] = {
	KUNIT_CASE_PARAM(check, check_gen_params),
	KUNIT_CASE_PARAM(meta, meta_gen_params),
	KUNIT_CASE(cuts),
	KUNIT_CASE(cut_of_bytes),
	KUNIT_CASE(levels),
	KUNIT_CASE_PARAM(layout, layout_gen_params),
	KUNIT_CASE(layouts),
	KUNIT_CASE(runs_of_layouts),
	{}
};

static struct kunit_suite slice_suite = {
	.name = "rdmatensor_slice",
	.test_cases = slice_tests,
};

kunit_test_suite(slice_suite);
