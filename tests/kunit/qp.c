// SPDX-License-Identifier: GPL-2.0
/*
 * What is handed to the core of a queue pair: what this side has chosen is set, what both
 * must keep to is the lesser of both sides, all else stays as resolved, or as rdma_cm has it.
 */
#include <kunit/test.h>
#include "transport/qp.h"

#define AUTO RDMATENSOR_AS_RESOLVED

/**
 * struct path_case - one path
 * @name: of the case
 * @roce: of the adapter
 * @resolved: service level and traffic class of the path as it was resolved, or came
 * @chosen: START's, or RDMATENSOR_AS_RESOLVED
 * @sl: that the queue pair gets
 * @traffic_class: that it gets
 */
struct path_case {
	const char *name;
	bool roce;
	struct { u8 sl; u8 traffic_class; } resolved;
	struct { s16 sl; s16 traffic_class; } chosen;
	u8 sl;
	u8 traffic_class;
};

static const struct path_case path_cases[] = {
	{ "InfiniBand, resolved", false, { 3, 32 }, { AUTO, AUTO }, 3, 32 },
	{ "InfiniBand, chosen", false, { 3, 32 }, { 5, 64 }, 5, 64 },
	{ "InfiniBand, 0 chosen", false, { 3, 32 }, { 0, 0 }, 0, 0 },
	{ "RoCE, by traffic class", true, { 4, 32 }, { AUTO, AUTO }, 4, 32 },
	{ "RoCE, chosen", true, { 4, 32 }, { 1, 255 }, 1, 255 },
	{ "RoCE, traffic class alone", true, { 4, 32 }, { AUTO, 96 }, 4, 96 },
	{ "RoCE, service level alone", true, { 4, 32 }, { 7, AUTO }, 7, 32 },
	{ "RoCE, 0 chosen", true, { 4, 32 }, { 0, 0 }, 0, 0 },
};

static void path_desc(const struct path_case *path, char *desc)
{
	strscpy(desc, path->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(path, path_cases, path_desc);

static void path(struct kunit *test)
{
	const struct path_case *want = test->param_value;
	const struct rdmatensor_channel_params params = {
		.sl = want->chosen.sl, .traffic_class = want->chosen.traffic_class,
	};
	const struct rdmatensor_adapter adapter = {
		.roce = want->roce, .mtu = IB_MTU_2048, .pkey = 0x8001,
	};
	struct sa_path_rec path = {
		.mtu = IB_MTU_4096, .sl = want->resolved.sl, .pkey = cpu_to_be16(0xffff),
		.traffic_class = want->resolved.traffic_class,
	};

	rdmatensor_qp_bound_path(&path, &adapter, &params);
	KUNIT_EXPECT_EQ(test, path.sl, want->sl);
	KUNIT_EXPECT_EQ(test, (int)path.mtu, (int)IB_MTU_2048);
	KUNIT_EXPECT_EQ(test, path.traffic_class, want->traffic_class);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(path.pkey), want->roce ? 0xffff : 0x8001);

	/* Never longer than the path bears */
	path.mtu = IB_MTU_1024;
	rdmatensor_qp_bound_path(&path, &adapter, &params);
	KUNIT_EXPECT_EQ(test, (int)path.mtu, (int)IB_MTU_1024);
}

/**
 * struct end - one end of a connection
 * @ibdev: its device
 * @path: to the other one
 * @id: rdma_cm's
 * @terms: what it proposes, or has agreed to
 * @qp: its queue pair, of which only the number counts
 * @own: what @qp points to
 * @private: what it says
 * @param: what it says by rdma_cm
 */
struct end {
	struct ib_device ibdev;
	struct sa_path_rec path;
	struct rdma_cm_id id;
	struct rdmatensor_qp_terms terms;
	struct rdmatensor_qp qp;
	struct ib_qp own;
	struct rdmatensor_wire_private private;
	struct rdma_conn_param param;
};

static const struct rdmatensor_channel_params end_params = {
	.retry_count = 3, .rnr_retry = 2,
	.sl = RDMATENSOR_AS_RESOLVED, .traffic_class = RDMATENSOR_AS_RESOLVED,
};

static struct end *end_open(struct kunit *test, int bears, int begins, u8 mtu)
{
	struct end *end = kunit_kzalloc(test, sizeof(*end), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, end);
	end->ibdev.attrs.max_qp_rd_atom = bears;
	end->ibdev.attrs.max_qp_init_rd_atom = begins;
	end->path.mtu = mtu;
	end->id.device = &end->ibdev;
	end->id.route.path_rec = &end->path;
	end->own.qp_num = 77;
	end->qp.qp = &end->own;
	return end;
}

static void end_says(struct end *end)
{
	rdmatensor_wire_init_private(&end->private, 0, 1, 1, end->terms.mtu);
	rdmatensor_qp_param(&end->param, &end->qp, &end->terms, &end_params, &end->private);
}

/* As rdma_cm tells the other end of it: what is begun there is to be borne here */
static void end_hears(struct end *end, const struct end *from)
{
	const struct rdma_conn_param told = {
		.responder_resources = from->param.initiator_depth,
		.initiator_depth = from->param.responder_resources,
	};

	rdmatensor_qp_agree(&end->terms, &told, &from->private);
}

/**
 * struct terms_case - two devices that are connected
 * @name: of the case
 * @asks: of who connects: READs that its device bears, and begins; the path's MTU
 * @answers: of who accepts
 * @out: READs that the one who connects has in flight
 * @in: READs that it answers
 * @mtu: of both
 */
struct terms_case {
	const char *name;
	struct { int bears; int begins; u8 mtu; } asks, answers;
	u8 out;
	u8 in;
	u8 mtu;
};

static const struct terms_case terms_cases[] = {
	{ "alike", { 16, 16, 5 }, { 16, 16, 5 }, 16, 16, 5 },
	{ "the owner's device bears one", { 16, 16, 5 }, { 1, 16, 5 }, 1, 16, 5 },
	{ "the reader's device begins one", { 16, 1, 5 }, { 16, 16, 5 }, 1, 16, 5 },
	{ "the reader's device bears one", { 1, 16, 5 }, { 16, 16, 5 }, 16, 1, 5 },
	{ "the owner's device begins one", { 16, 16, 5 }, { 16, 1, 5 }, 16, 1, 5 },
	{ "more than the lanes take", { 4096, 4096, 5 }, { 300, 300, 5 }, 200, 200, 5 },
	{ "all of a byte", { 255, 256, 5 }, { 257, 255, 5 }, 200, 200, 5 },
	{ "none", { 16, 16, 5 }, { 0, 0, 5 }, 0, 0, 5 },
	{ "the accepting side's MTU is less", { 16, 16, 5 }, { 16, 16, 3 }, 16, 16, 3 },
	{ "the connecting side's MTU is less", { 16, 16, 1 }, { 16, 16, 4 }, 16, 16, 1 },
};

static void terms_desc(const struct terms_case *terms, char *desc)
{
	strscpy(desc, terms->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(terms, terms_cases, terms_desc);

#define READS_MOST 200

/* From the devices' attributes, over what is told, to what both ends set */
static void terms(struct kunit *test)
{
	const struct terms_case *want = test->param_value;
	struct end *a = end_open(test, want->asks.bears, want->asks.begins, want->asks.mtu);
	struct end *b = end_open(test, want->answers.bears, want->answers.begins,
				 want->answers.mtu);

	rdmatensor_qp_propose(&a->terms, &a->id, READS_MOST, READS_MOST);
	end_says(a);
	KUNIT_EXPECT_EQ(test, a->param.responder_resources, min(want->asks.bears, READS_MOST));
	KUNIT_EXPECT_EQ(test, a->param.initiator_depth, min(want->asks.begins, READS_MOST));
	KUNIT_EXPECT_EQ(test, a->param.retry_count, 3);
	KUNIT_EXPECT_EQ(test, a->param.rnr_retry_count, 2);
	KUNIT_EXPECT_EQ(test, a->param.qp_num, 77);
	KUNIT_EXPECT_PTR_EQ(test, a->param.private_data, (const void *)&a->private);
	KUNIT_EXPECT_EQ(test, a->param.private_data_len, 56);

	rdmatensor_qp_propose(&b->terms, &b->id, READS_MOST, READS_MOST);
	end_hears(b, a);
	end_says(b);
	rdmatensor_qp_propose(&a->terms, &a->id, READS_MOST, READS_MOST);
	end_hears(a, b);

	KUNIT_EXPECT_EQ(test, a->terms.reads_out, want->out);
	KUNIT_EXPECT_EQ(test, b->terms.reads_in, want->out);
	KUNIT_EXPECT_EQ(test, a->terms.reads_in, want->in);
	KUNIT_EXPECT_EQ(test, b->terms.reads_out, want->in);
	KUNIT_EXPECT_EQ(test, a->terms.mtu, want->mtu);
	KUNIT_EXPECT_EQ(test, b->terms.mtu, want->mtu);
}

/* A lane for READs begins none of those that it does not want, whatever the peer says */
static void reads_of_one_side(struct kunit *test)
{
	struct end *a = end_open(test, 16, 16, 5), *b = end_open(test, 16, 16, 5);

	rdmatensor_qp_propose(&a->terms, &a->id, 0, READS_MOST);
	b->param.responder_resources = 255;
	b->param.initiator_depth = 255;
	b->private.mtu = 5;
	end_hears(a, b);
	KUNIT_EXPECT_EQ(test, a->terms.reads_in, 0);
	KUNIT_EXPECT_EQ(test, a->terms.reads_out, 16);
}

/* What is in the mask is set, nothing else is touched */
static void attributes(struct kunit *test)
{
	static const struct rdmatensor_channel_params params = {
		.timeout = 16, .retry_count = 3, .rnr_retry = 2,
	};
	static const struct rdmatensor_qp_terms terms = {
		.mtu = IB_MTU_1024, .reads_in = 5, .reads_out = 6,
	};
	static const struct sa_path_rec path = { .sl = 4, .traffic_class = 96 };
	struct ib_qp_attr attr = {}, before;

	rdma_ah_set_ah_flags(&attr.ah_attr, IB_AH_GRH);
	rdmatensor_qp_choose(&attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			     IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, &path, &terms,
			     &params);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&attr.ah_attr), 4);
	KUNIT_EXPECT_EQ(test, rdma_ah_read_grh(&attr.ah_attr)->traffic_class, 96);
	KUNIT_EXPECT_EQ(test, (int)attr.path_mtu, (int)IB_MTU_1024);
	KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 5);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 0);
	KUNIT_EXPECT_EQ(test, attr.timeout, 0);

	rdmatensor_qp_choose(&attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			     IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC, &path, &terms, &params);
	KUNIT_EXPECT_EQ(test, attr.timeout, 16);
	KUNIT_EXPECT_EQ(test, attr.retry_cnt, 3);
	KUNIT_EXPECT_EQ(test, attr.rnr_retry, 2);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 6);

	/* INIT: where rdma_cm has the P_Key's index from the path */
	memset(&attr, 0x5a, sizeof(attr));
	before = attr;
	rdmatensor_qp_choose(&attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			     IB_QP_ACCESS_FLAGS, &path, &terms, &params);
	KUNIT_EXPECT_EQ(test, memcmp(&attr, &before, sizeof(attr)), 0);

	/* Within a subnet of InfiniBand there is no GRH, and none comes to be */
	memset(&attr, 0, sizeof(attr));
	rdmatensor_qp_choose(&attr, IB_QP_AV, &path, &terms, &params);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&attr.ah_attr), 4);
	KUNIT_EXPECT_EQ(test, attr.ah_attr.grh.traffic_class, 0);
	KUNIT_EXPECT_EQ(test, (int)rdma_ah_get_ah_flags(&attr.ah_attr), 0);
}

static struct kunit_case qp_tests[] = {
	KUNIT_CASE_PARAM(path, path_gen_params),
	KUNIT_CASE_PARAM(terms, terms_gen_params),
	KUNIT_CASE(reads_of_one_side),
	KUNIT_CASE(attributes),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "rdmatensor_qp",
	.test_cases = qp_tests,
};

kunit_test_suite(qp_suite);
