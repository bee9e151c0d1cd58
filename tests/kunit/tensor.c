// SPDX-License-Identifier: GPL-2.0
/* Data types and meta-data: which are right, and when two are the same. */
#include <linux/limits.h>
#include <kunit/test.h>
#include "core/tensor.h"

static const u8 element_bytes[] = {
	0, 4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8, 1, 1,
};

static void data_types(struct kunit *test)
{
	u32 dt;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(element_bytes), RDMATENSOR_DT_MAX + 1);
	for (dt = 0; dt <= RDMATENSOR_DT_MAX; dt++) {
		bool opaque = dt == RDMATENSOR_DT_STRING || dt == RDMATENSOR_DT_RESOURCE ||
			      dt == RDMATENSOR_DT_VARIANT;

		KUNIT_EXPECT_EQ_MSG(test, rdmatensor_data_type_bytes(dt), element_bytes[dt],
				    "type %u", dt);
		KUNIT_EXPECT_EQ_MSG(test, rdmatensor_data_type_opaque(dt), opaque,
				    "type %u", dt);
	}
	for (dt = RDMATENSOR_DT_MAX + 1; dt; dt = dt * 2 + 1) {
		KUNIT_EXPECT_EQ(test, rdmatensor_data_type_bytes(dt), 0);
		KUNIT_EXPECT_FALSE(test, rdmatensor_data_type_opaque(dt));
		if (dt == U32_MAX)
			break;
	}
}

static const struct meta_case {
	const char *name;
	struct rdmatensor_meta meta;
	int ret;
} meta_cases[] = {
	{ "a scalar", { .data_type = RDMATENSOR_DT_FLOAT, .bytes = 4 }, 0 },
	{ "a vector", { .data_type = RDMATENSOR_DT_HALF, .ndims = 1, .bytes = 14,
			.dims = { 7 } }, 0 },
	{ "a matrix", { .data_type = RDMATENSOR_DT_COMPLEX128, .ndims = 2, .bytes = 96,
			.dims = { 2, 3 } }, 0 },
	{ "all dims", { .data_type = RDMATENSOR_DT_BOOL, .ndims = 16, .bytes = 65536,
			.dims = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 } }, 0 },
	{ "empty", { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .dims = { 0, 5 } }, 0 },
	{ "empty, the rest would overflow",
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 3, .dims = { 1ULL << 40, 1ULL << 40 } },
	  0 },
	{ "empty with bytes",
	  { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .bytes = 4 }, -EINVAL },
	{ "one byte less", { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .bytes = 11,
			     .dims = { 3 } }, -EINVAL },
	{ "one byte more", { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .bytes = 13,
			     .dims = { 3 } }, -EINVAL },
	{ "no bytes", { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .dims = { 3 } },
	  -EINVAL },
	{ "a string", { .data_type = RDMATENSOR_DT_STRING, .ndims = 1, .bytes = 11,
			.dims = { 3 } }, 0 },
	{ "a resource", { .data_type = RDMATENSOR_DT_RESOURCE, .bytes = 1 }, 0 },
	{ "a variant", { .data_type = RDMATENSOR_DT_VARIANT }, 0 },
	{ "opaque, any shape",
	  { .data_type = RDMATENSOR_DT_STRING, .ndims = 2, .bytes = 1,
	    .dims = { U64_MAX, U64_MAX } }, 0 },
	{ "dead", { .data_type = RDMATENSOR_DT_FLOAT, .is_dead = 1 }, 0 },
	{ "dead with a shape",
	  { .data_type = RDMATENSOR_DT_FLOAT, .is_dead = 1, .ndims = 1, .dims = { 3 } }, 0 },
	{ "dead with bytes",
	  { .data_type = RDMATENSOR_DT_FLOAT, .is_dead = 1, .ndims = 1, .bytes = 12,
	    .dims = { 3 } }, -EINVAL },
	{ "dead and opaque with bytes",
	  { .data_type = RDMATENSOR_DT_STRING, .is_dead = 1, .bytes = 1 }, -EINVAL },
	{ "neither dead nor alive",
	  { .data_type = RDMATENSOR_DT_FLOAT, .is_dead = 2 }, -EINVAL },
	{ "no type", { .data_type = RDMATENSOR_DT_INVALID }, -EINVAL },
	{ "the last type", { .data_type = RDMATENSOR_DT_MAX, .bytes = 1 }, 0 },
	{ "beyond the last type",
	  { .data_type = RDMATENSOR_DT_MAX + 1, .bytes = 1 }, -EINVAL },
	{ "type 65535", { .data_type = U16_MAX, .bytes = 1 }, -EINVAL },
	{ "too many dims", { .data_type = RDMATENSOR_DT_UINT8, .ndims = 17, .bytes = 1,
			     .dims = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } },
	  -EINVAL },
	{ "255 dims", { .data_type = RDMATENSOR_DT_UINT8, .ndims = 255 }, -EINVAL },
	{ "a dim beyond ndims", { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = 3,
				  .dims = { 3, 1 } }, -EINVAL },
	{ "the last dim beyond ndims",
	  { .data_type = RDMATENSOR_DT_UINT8, .bytes = 1, .dims[15] = 1 }, -EINVAL },
	{ "the longest", { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = S64_MAX,
			   .dims = { S64_MAX } }, 0 },
	{ "longer", { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = 1ULL << 63,
		      .dims = { 1ULL << 63 } }, -EINVAL },
	{ "opaque and longer",
	  { .data_type = RDMATENSOR_DT_STRING, .bytes = 1ULL << 63 }, -EINVAL },
	{ "dims that wrap to the bytes",
	  { .data_type = RDMATENSOR_DT_UINT8, .ndims = 2, .bytes = 0,
	    .dims = { 1ULL << 32, 1ULL << 32 } }, -EINVAL },
	{ "an element size that wraps to the bytes",
	  { .data_type = RDMATENSOR_DT_INT64, .ndims = 1, .bytes = 8,
	    .dims = { (1ULL << 61) + 1 } }, -EINVAL },
};

static void meta_case_name(const struct meta_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(meta, meta_cases, meta_case_name);

static void meta_check(struct kunit *test)
{
	const struct meta_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rdmatensor_meta_check(&c->meta), c->ret);
}

static void meta_equal(struct kunit *test)
{
	const struct rdmatensor_meta a = {
		.data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 24, .dims = { 2, 3 },
	};
	struct rdmatensor_meta b = a;

	KUNIT_EXPECT_TRUE(test, rdmatensor_meta_equal(&a, &b));
	b.dims[2] = 5;
	KUNIT_EXPECT_TRUE(test, rdmatensor_meta_equal(&a, &b));
	b = a;
	b.data_type = RDMATENSOR_DT_INT32;
	KUNIT_EXPECT_FALSE(test, rdmatensor_meta_equal(&a, &b));
	b = a;
	b.ndims = 1;
	KUNIT_EXPECT_FALSE(test, rdmatensor_meta_equal(&a, &b));
	b = a;
	b.is_dead = 1;
	KUNIT_EXPECT_FALSE(test, rdmatensor_meta_equal(&a, &b));
	b = a;
	b.bytes = 23;
	KUNIT_EXPECT_FALSE(test, rdmatensor_meta_equal(&a, &b));
	b = a;
	b.dims[0] = 3;
	b.dims[1] = 2;
	KUNIT_EXPECT_FALSE(test, rdmatensor_meta_equal(&a, &b));
}

static struct kunit_case tensor_tests[] = {
	KUNIT_CASE(data_types),
	KUNIT_CASE_PARAM(meta_check, meta_gen_params),
	KUNIT_CASE(meta_equal),
	{}
};

static struct kunit_suite tensor_suite = {
	.name = "rdmatensor_tensor",
	.test_cases = tensor_tests,
};

kunit_test_suite(tensor_suite);
