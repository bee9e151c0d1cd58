// SPDX-License-Identifier: GPL-2.0
/*
 * Loopback fetches that want the tensor itself: in every state, whatever ends them.
 */
#include "end.h"
#include "fetch/fetch.h"
#include "fetch/local.h"

#define BYTES 100

/* An own core and pool; the channel is nobody's */
static struct end *open_end(struct kunit *test)
{
	return end_open(test, 1, 32 << END_SEG_SHIFT, &end_params);
}

static u64 offer(struct end *end, u32 uses, bool share, u64 user_data)
{
	struct rdmatensor_publish_args args = {
		.user_data = user_data, .name = "x", .name_len = 1, .step_id = 1, .uses = uses,
		.share = share, .pool = end->pool,
		.meta = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = BYTES,
			  .dims = { BYTES } },
	};

	KUNIT_ASSERT_EQ(end->test, rdmatensor_regions_alloc(&end->pool->regions, BYTES, GFP_KERNEL,
							    &args.offset), 0);
	rdmatensor_pool_get(end->pool);
	KUNIT_ASSERT_EQ(end->test, rdmatensor_publish(&end->core, &args), 0);
	return args.offset;
}

static void want_until(struct end *end, u64 user_data, u64 deadline_ns)
{
	struct rdmatensor_fetch_args args = {
		.user_data = user_data, .name = "x", .name_len = 1, .step_id = 1, .share = true,
		.deadline_ns = deadline_ns,
	};

	KUNIT_ASSERT_EQ(end->test, rdmatensor_local_submit(&end->core, &args), 0);
}

static void want(struct end *end, u64 user_data)
{
	want_until(end, user_data, 0);
}

/* The next entry is that. Return: its share_id */
static u32 entry(struct end *end, u16 type, u64 user_data, int result, bool shared)
{
	struct rdmatensor_cqe cqe = {};

	KUNIT_EXPECT_TRUE(end->test, end_reap(end, &cqe));
	KUNIT_EXPECT_EQ(end->test, cqe.type, type);
	KUNIT_EXPECT_EQ(end->test, cqe.user_data, user_data);
	KUNIT_EXPECT_EQ(end->test, cqe.result, result);
	KUNIT_EXPECT_EQ(end->test, !!(cqe.flags & RDMATENSOR_CQE_SHARED), shared);
	KUNIT_EXPECT_EQ(end->test, !!cqe.share_id, shared);
	return cqe.share_id;
}

static void no_entry(struct end *end)
{
	struct rdmatensor_cqe cqe;

	KUNIT_EXPECT_FALSE(end->test, end_reap(end, &cqe));
}

static void handed_over_and_back(struct kunit *test)
{
	struct end *end = open_end(test);
	struct rdmatensor_cqe cqe = {};
	u64 at = offer(end, 1, true, 7);

	want(end, 1);
	KUNIT_EXPECT_TRUE(test, end_reap(end, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.result, 0);
	KUNIT_EXPECT_EQ(test, cqe.pool_id, 1);
	KUNIT_EXPECT_EQ(test, cqe.offset, at);
	KUNIT_EXPECT_EQ(test, cqe.tensor_bytes, BYTES);
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_COPIED_BYTES), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&end->pool->regions, at), -EBUSY);
	no_entry(end);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, cqe.share_id + 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, cqe.share_id), 0);
	entry(end, RDMATENSOR_CQE_PUBLISH, 7, 0, false);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, cqe.share_id), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&end->pool->regions, at), 0);
	end_close(end);
}

/* Whoever waits has got nothing, and need not give it back */
static void ended_while_it_waits(struct kunit *test)
{
	struct end *end = open_end(test);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		want(end, 1);
		no_entry(end);
		KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, i + 1), -ENOENT);
		if (i == 0)
			KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&end->core, 1), 1);
		else if (i == 1)
			KUNIT_EXPECT_TRUE(test, end_expire(end, 1));
		else
			end_abort_step(end, 1, -EIO);
		entry(end, RDMATENSOR_CQE_FETCH, 1,
		      i == 0 ? -ECANCELED : i == 1 ? -ETIMEDOUT : -EIO, false);
		KUNIT_EXPECT_TRUE(test, xa_empty(&end->core.shares));
		KUNIT_EXPECT_EQ(test, atomic_read(&end->core.nr_shares), 0);
	}
	end_close(end);
}

/* As when ticks were missed while the timer was armed: it waits for the rest */
static void expired_before_its_deadline(struct kunit *test)
{
	struct end *end = open_end(test);

	want_until(end, 1, ktime_get_ns() + 3600 * NSEC_PER_SEC);
	KUNIT_EXPECT_TRUE(test, end_expire(end, 1));
	no_entry(end);
	KUNIT_EXPECT_TRUE(test, end_is_armed(end, 1));
	KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&end->core, 1), 1);
	entry(end, RDMATENSOR_CQE_FETCH, 1, -ECANCELED, false);
	end_close(end);
}

static void not_offered_so(struct kunit *test)
{
	struct end *end = open_end(test);

	offer(end, 1, false, 7);
	want(end, 1);
	entry(end, RDMATENSOR_CQE_FETCH, 1, -EOPNOTSUPP, false);
	KUNIT_EXPECT_TRUE(test, xa_empty(&end->core.shares));
	no_entry(end);
	end_close(end);
	KUNIT_EXPECT_EQ(test, end->left, 1);
}

/* In any order, and not before the last one */
static void several_takers(struct kunit *test)
{
	struct end *end = open_end(test);
	u32 shares[3], i;

	want(end, 0);
	want(end, 1);
	offer(end, 3, true, 7);
	want(end, 2);
	for (i = 0; i < 3; i++)
		shares[i] = entry(end, RDMATENSOR_CQE_FETCH, i, 0, true);
	for (i = 0; i < 3; i++) {
		no_entry(end);
		KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, shares[2 - i]), 0);
	}
	entry(end, RDMATENSOR_CQE_PUBLISH, 7, 0, false);
	end_close(end);
}

static void withdrawn_under_its_taker(struct kunit *test)
{
	struct end *end = open_end(test);
	const u64 withdrawal = 8;
	u32 share;

	offer(end, 2, true, 7);
	want(end, 1);
	share = entry(end, RDMATENSOR_CQE_FETCH, 1, 0, true);
	KUNIT_EXPECT_EQ(test, rdmatensor_withdraw(&end->core, &withdrawal, "x", 1, 1, 0), 0);
	no_entry(end);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, share), 0);
	entry(end, RDMATENSOR_CQE_PUBLISH, 7, -ECANCELED, false);
	entry(end, RDMATENSOR_CQE_WITHDRAW, 8, 0, false);
	end_close(end);
}

static void aborted_under_its_taker(struct kunit *test)
{
	struct end *end = open_end(test);
	u32 share;

	offer(end, 1, true, 7);
	want(end, 1);
	share = entry(end, RDMATENSOR_CQE_FETCH, 1, 0, true);
	end_abort_step(end, 1, -EIO);
	no_entry(end);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, share), 0);
	entry(end, RDMATENSOR_CQE_PUBLISH, 7, -EIO, false);
	end_close(end);
}

/* What nobody returns is returned, and what is used up is so */
static void all_at_the_close(struct kunit *test)
{
	struct end *end = open_end(test);

	offer(end, 2, true, 7);
	want(end, 1);
	want(end, 2);
	entry(end, RDMATENSOR_CQE_FETCH, 1, 0, true);
	entry(end, RDMATENSOR_CQE_FETCH, 2, 0, true);
	rdmatensor_local_release_all(&end->core);
	entry(end, RDMATENSOR_CQE_PUBLISH, 7, 0, false);
	KUNIT_EXPECT_TRUE(test, xa_empty(&end->core.shares));
	end_close(end);
	KUNIT_EXPECT_EQ(test, end->left, 0);
}

/* A fetch from oneself is a copy; what hands the tensor itself over is none */
static void out_of_reach(struct kunit *test)
{
	struct end *end = open_end(test);
	struct rdmatensor_fetch_args args = {
		.user_data = 1, .name = "x", .name_len = 1, .step_id = 1, .pool = end->pool,
		.alloc = true,
	};
	struct rdmatensor_publish_args copy = {
		.user_data = 8, .name = "y", .name_len = 1, .step_id = 1, .uses = 1,
		.pool = end->pool, .copy = (void *)end,
		.meta = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = BYTES,
			  .dims = { BYTES } },
	};
	u32 share;

	end->pool->memory->unreachable = true;
	offer(end, 2, true, 7);
	rdmatensor_pool_get(end->pool);
	KUNIT_ASSERT_EQ(test, rdmatensor_local_submit(&end->core, &args), 0);
	entry(end, RDMATENSOR_CQE_FETCH, 1, -EOPNOTSUPP, false);
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_COPIED_BYTES), 0);
	/* It is still offered, as often as before */
	want(end, 2);
	share = entry(end, RDMATENSOR_CQE_FETCH, 2, 0, true);
	want(end, 3);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, share), 0);
	share = entry(end, RDMATENSOR_CQE_FETCH, 3, 0, true);
	KUNIT_EXPECT_EQ(test, rdmatensor_local_release(&end->core, share), 0);
	entry(end, RDMATENSOR_CQE_PUBLISH, 7, 0, false);
	KUNIT_EXPECT_EQ(test, rdmatensor_publish(&end->core, &copy), -EOPNOTSUPP);
	no_entry(end);
	end_close(end);
}

static struct kunit_case local_tests[] = {
	KUNIT_CASE(handed_over_and_back),
	KUNIT_CASE(ended_while_it_waits),
	KUNIT_CASE(expired_before_its_deadline),
	KUNIT_CASE(not_offered_so),
	KUNIT_CASE(out_of_reach),
	KUNIT_CASE(several_takers),
	KUNIT_CASE(withdrawn_under_its_taker),
	KUNIT_CASE(aborted_under_its_taker),
	KUNIT_CASE(all_at_the_close),
	{}
};

static struct kunit_suite local_suite = {
	.name = "rdmatensor_local",
	.test_cases = local_tests,
};

kunit_test_suite(local_suite);
