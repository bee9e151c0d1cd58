// SPDX-License-Identifier: GPL-2.0
/* The path as it is handed to the core: what was chosen is set, all else stays as resolved */
#include <kunit/test.h>
#include "qp.h"

/**
 * struct path_case - one path
 * @name: of the case
 * @roce: of the adapter
 * @resolved: service level of the path as it was resolved
 * @chosen: START's
 * @sl: that the queue pair gets
 */
struct path_case {
	const char *name;
	bool roce;
	u8 resolved;
	u8 chosen;
	u8 sl;
};

static const struct path_case path_cases[] = {
	{ "InfiniBand, resolved", false, 3, 0, 3 },
	{ "InfiniBand, chosen", false, 3, 5, 5 },
	{ "InfiniBand, neither", false, 0, 0, 0 },
	{ "RoCE, by traffic class", true, 4, 0, 4 },
	{ "RoCE, chosen", true, 4, 1, 1 },
};

static void path_desc(const struct path_case *path, char *desc)
{
	strscpy(desc, path->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(path, path_cases, path_desc);

static void path(struct kunit *test)
{
	const struct path_case *want = test->param_value;
	const struct rdmatensor_channel_params params = { .sl = want->chosen };
	const struct rdmatensor_adapter adapter = {
		.roce = want->roce, .mtu = IB_MTU_2048, .pkey = 0x8001,
	};
	struct sa_path_rec path = {
		.mtu = IB_MTU_4096, .sl = want->resolved, .pkey = cpu_to_be16(0xffff),
		.traffic_class = 32,
	};

	rdmatensor_qp_bound_path(&path, &adapter, &params);
	KUNIT_EXPECT_EQ(test, path.sl, want->sl);
	KUNIT_EXPECT_EQ(test, (int)path.mtu, (int)IB_MTU_2048);
	KUNIT_EXPECT_EQ(test, path.traffic_class, 32);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(path.pkey), want->roce ? 0xffff : 0x8001);

	/* Never longer than the path bears */
	path.mtu = IB_MTU_1024;
	rdmatensor_qp_bound_path(&path, &adapter, &params);
	KUNIT_EXPECT_EQ(test, (int)path.mtu, (int)IB_MTU_1024);
}

static struct kunit_case qp_tests[] = {
	KUNIT_CASE_PARAM(path, path_gen_params),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "rdmatensor_qp",
	.test_cases = qp_tests,
};

kunit_test_suite(qp_suite);
