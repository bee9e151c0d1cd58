// SPDX-License-Identifier: GPL-2.0
/*
 * Loopback fetches that get the tensor itself: who has it, until when, and who is told.
 */
#include <pthread.h>
#include "harness.h"

#define TENSOR 100000

static struct pair p;

/* As publish(), but it may be shared. Return: its offset */
static uint64_t offer(struct side *side, const char *name, int64_t step, uint32_t uses,
		      uint64_t user_data)
{
	uint64_t at = side_alloc(side, TENSOR);
	struct rdmatensor_op op;
	uint64_t dim = TENSOR;

	fill(side_at(side, at), TENSOR, step);
	rdmatensor_prep_publish(&op, name, step, side->pool.id, at, TENSOR, RDMATENSOR_DT_UINT8, 1,
				&dim, uses, user_data);
	op.flags |= RDMATENSOR_OP_SHARE;
	EQ(side_do(side, &op), 0);
	return at;
}

static void want(struct side *side, const char *name, int64_t step, uint64_t deadline_ns,
		 uint64_t user_data)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_shared(&op, name, step, deadline_ns, user_data);
	EQ(side_do(side, &op), 0);
}

/* It has come, is at @at and whole. Return: its number */
static uint32_t got(struct side *side, uint64_t user_data, uint64_t at, int64_t step)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(side, RDMATENSOR_CQE_FETCH, user_data, &cqe), 0);
	CHECK(cqe.flags & RDMATENSOR_CQE_SHARED && cqe.flags & RDMATENSOR_CQE_META);
	CHECK(cqe.share_id);
	EQ(cqe.channel, RDMATENSOR_CHANNEL_SELF);
	EQ(cqe.pool_id, side->pool.id);
	EQ(cqe.offset, at);
	EQ(cqe.tensor_bytes, TENSOR);
	EQ(cqe.ndims, 1);
	EQ(cqe.dims[0], TENSOR);
	EQ(cqe.step_id, step);
	CHECK(filled(side_at(side, at), TENSOR, step));
	return cqe.share_id;
}

static int give_back(struct side *side, uint64_t share_id)
{
	struct rdmatensor_op op;

	rdmatensor_prep_release(&op, 0);
	op.target = share_id;
	return side_do(side, &op);
}

TEST(shared_is_the_tensor_itself)
{
	struct rdmatensor_op op;
	uint32_t share;
	uint64_t at;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	at = offer(&p.a, "x", 1, 1, 7);
	want(&p.a, "x", 1, 0, 1);
	share = got(&p.a, 1, at, 1);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_COPIED_BYTES), 0);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_SHARED), 1);
	/* Used up, but not yet its publisher's again, nor the pool's */
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 7, 30);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), -EBUSY);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), -EBUSY);
	rdmatensor_prep_fetch(&op, 0, "y", 0, p.a.pool.id, at, TENSOR, 0, 9);
	EQ(side_do(&p.a, &op), -EINVAL);
	EQ(give_back(&p.a, share), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
	EQ(give_back(&p.a, share), -ENOENT);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_SHARES_RELEASED), 1);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), 0);

	/* Asked for first */
	want(&p.a, "x", 2, 0, 2);
	side_none(&p.a, RDMATENSOR_CQE_FETCH, 2, 20);
	EQ(give_back(&p.a, share + 1), -ENOENT);
	at = offer(&p.a, "x", 2, 1, 8);
	EQ(give_back(&p.a, got(&p.a, 2, at, 2)), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 8, NULL), 0);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
}

TEST(shared_where_both_agree)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	char text[RDMATENSOR_STATUS_ROOM];
	uint64_t at, to;

	pair_open(&p, 1 << 20, NULL);
	/* Not offered so: it is still there, for who has a place */
	at = publish(&p.a, "x", 1, TENSOR, 1, 1, 7);
	want(&p.a, "x", 1, 0, 1);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 1, &cqe), -EOPNOTSUPP);
	EQ(cqe.flags & RDMATENSOR_CQE_SHARED, 0);
	EQ(cqe.tensor_bytes, TENSOR);
	CHECK(strstr(rdmatensor_cqe_text(&cqe, text, sizeof(text)), "to a place"));
	EQ(give_back(&p.a, 1), -ENOENT);
	to = side_alloc(&p.a, TENSOR);
	EQ(rdmatensor_fetch(p.a.rt, 0, "x", 1, &p.a.pool, to, TENSOR, 0, &cqe), 0);
	CHECK(to != at && filled(side_at(&p.a, to), TENSOR, 1));
	EQ(side_stat(&p.a, RDMATENSOR_STAT_COPIED_BYTES), TENSOR);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);

	/* Offered so, but wanted at a place, and by a peer: copied, and written */
	offer(&p.a, "y", 2, 2, 8);
	EQ(rdmatensor_fetch(p.a.rt, 0, "y", 2, &p.a.pool, to, TENSOR, 0, &cqe), 0);
	EQ(cqe.flags & RDMATENSOR_CQE_SHARED, 0);
	EQ(cqe.offset, to);
	CHECK(filled(side_at(&p.a, to), TENSOR, 2));
	EQ(fetch(&p.b, "y", 2, TENSOR, &to, &cqe), 0);
	EQ(cqe.flags & RDMATENSOR_CQE_SHARED, 0);
	CHECK(filled(side_at(&p.b, to), TENSOR, 2));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 8, NULL), 0);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_SHARED), 0);

	/* Nothing can be shared of the dead, of the failed, or by a peer */
	rdmatensor_prep_publish_dead(&op, "d", 0, RDMATENSOR_DT_FLOAT, 0, NULL, 1, 9);
	op.flags |= RDMATENSOR_OP_SHARE;
	EQ(side_do(&p.a, &op), 0);
	want(&p.a, "d", 0, 0, 2);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), 0);
	EQ(cqe.flags & (RDMATENSOR_CQE_SHARED | RDMATENSOR_CQE_DEAD), RDMATENSOR_CQE_DEAD);
	EQ(cqe.share_id, 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 9, NULL), 0);
	rdmatensor_prep_publish_failed(&op, "f", 0, -EIO, "why", 1, 10);
	EQ(side_do(&p.a, &op), 0);
	want(&p.a, "f", 0, 0, 3);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 3, &cqe), -EIO);
	op.flags |= RDMATENSOR_OP_SHARE;
	EQ(side_do(&p.a, &op), -EINVAL);
	rdmatensor_prep_fetch_shared(&op, "y", 2, 0, 4);
	op.channel = p.b.channel;
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_fetch_shared(&op, "y", 2, 0, 4);
	op.flags |= RDMATENSOR_OP_ALLOC;
	EQ(side_do(&p.a, &op), -EINVAL);
	rdmatensor_prep_fetch_shared(&op, "y", 2, 0, 4);
	op.pool_id = p.a.pool.id;
	EQ(side_do(&p.a, &op), -EINVAL);
	op.pool_id = 0;
	op.bytes = 1;
	EQ(side_do(&p.a, &op), -EINVAL);
	op.bytes = 0;
	op.offset = 64;
	EQ(side_do(&p.a, &op), -EINVAL);
}

/* Several have it, a peer is served meanwhile, and the last one to let go frees it */
TEST(shared_by_several)
{
	struct rdmatensor_cqe cqe;
	uint32_t shares[3], i;
	uint64_t at, to;

	pair_open(&p, 1 << 20, NULL);
	at = offer(&p.a, "x", 1, 4, 7);
	for (i = 0; i < 3; i++) {
		want(&p.a, "x", 1, 0, i);
		shares[i] = got(&p.a, i, at, 1);
	}
	CHECK(shares[0] != shares[1] && shares[1] != shares[2]);
	EQ(give_back(&p.a, shares[1]), 0);
	EQ(fetch(&p.b, "x", 1, TENSOR, &to, &cqe), 0);
	CHECK(filled(side_at(&p.b, to), TENSOR, 1));
	/* Used up: the fourth waits for another one */
	want(&p.a, "x", 1, rdmatensor_deadline_ms(50), 9);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 9, NULL), -ETIMEDOUT);
	EQ(give_back(&p.a, shares[0]), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 7, 30);
	EQ(give_back(&p.a, shares[2]), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
}

TEST(shared_and_withdrawn_or_aborted)
{
	struct rdmatensor_op op;
	uint32_t share;
	uint64_t at;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	/* Withdrawn, used up or not, or for good */
	for (uint32_t uses = 0; uses < 3; uses++) {
		at = offer(&p.a, "x", uses, uses, 7);
		want(&p.a, "x", uses, 0, 1);
		share = got(&p.a, 1, at, uses);
		rdmatensor_prep_withdraw(&op, "x", uses, 5);
		EQ(side_do(&p.a, &op), 0);
		side_none(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, 20);
		EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), -EBUSY);
		EQ(give_back(&p.a, share), 0);
		EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
		if (uses)
			EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), -ECANCELED);
		EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), 0);
	}

	/* Of a step that is aborted: who has it keeps it, who waits has none */
	at = offer(&p.a, "x", 10, 1, 7);
	want(&p.a, "x", 10, 0, 1);
	share = got(&p.a, 1, at, 10);
	want(&p.a, "x", 10, 0, 2);
	EQ(rdmatensor_step_abort(p.a.rt, 10, -EIO, "why"), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, NULL), -EIO);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 7, 20);
	CHECK(filled(side_at(&p.a, at), TENSOR, 10));
	rdmatensor_prep_fetch_shared(&op, "x", 10, 0, 3);
	EQ(side_do(&p.a, &op), -EIO);
	EQ(give_back(&p.a, share), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), -EIO);

	/* Cancelled while it waits; what is there already is not cancelled any more */
	want(&p.a, "x", 20, 0, 4);
	rdmatensor_prep_cancel(&op, 4);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 4, NULL), -ECANCELED);
	at = offer(&p.a, "x", 20, 1, 7);
	want(&p.a, "x", 20, 0, 4);
	share = got(&p.a, 4, at, 20);
	EQ(side_do(&p.a, &op), -ENOENT);
	EQ(give_back(&p.a, share), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
}

/* One of two of a name, of which only the other can still be matched */
TEST(withdrawn_is_the_one_that_was_meant)
{
	struct rdmatensor_op op;
	uint32_t share;
	uint64_t at[2];

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	at[0] = offer(&p.a, "x", 1, 1, 7);
	want(&p.a, "x", 1, 0, 1);
	share = got(&p.a, 1, at[0], 1);
	at[1] = offer(&p.a, "x", 1, 1, 8);

	rdmatensor_prep_withdraw(&op, "x", 1, 5);
	op.target = 9;
	EQ(side_do(&p.a, &op), -ENOENT);
	op.target = 7;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_do(&p.a, &op), -EALREADY);
	side_none(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, 20);
	EQ(give_back(&p.a, share), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), -ECANCELED);
	EQ(side_do(&p.a, &op), -ENOENT);

	/* The other one is offered as before, and without a number any is meant */
	want(&p.a, "x", 1, 0, 2);
	share = got(&p.a, 2, at[1], 1);
	EQ(give_back(&p.a, share), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 8, NULL), 0);
	offer(&p.a, "x", 1, 2, 0);
	EQ(side_do(&p.a, &op), -ENOENT);
	op.target = 0;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 0, NULL), -ECANCELED);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
}

/* Closed with what was not returned, what waits, and what is still offered */
TEST(shared_until_the_close)
{
	struct rdmatensor_op op;
	uint32_t i;
	uint64_t at;

	pair_open(&p, 8 << 20, NULL);
	for (i = 0; i < 30; i++) {
		at = offer(&p.a, "x", i, i % 3, i);
		want(&p.a, "x", i, 0, i);
		got(&p.a, i, at, i);
		want(&p.a, "waits", i, 0, 100 + i);
		if (i % 2)
			continue;
		rdmatensor_prep_withdraw(&op, "x", i, 5);
		EQ(side_do(&p.a, &op), 0);
	}
	side_close(&p.a);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
}

/* As many as there may be, and no more */
TEST(shares_are_bounded)
{
	struct rdmatensor_op ops[256], release;
	struct rdmatensor_cqe cqe;
	uint32_t done, n = 0, i, last = 0;
	int ret = 0;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	offer(&p.a, "x", 0, 0, 0);
	for (i = 0; i < 256; i++)
		rdmatensor_prep_fetch_shared(&ops[i], "x", 0, 0, 1);
	while (!ret && n < 2 * RDMATENSOR_SHARES_MAX) {
		ret = rdmatensor_submit(p.a.rt, ops, 256, 0, 0, &done);
		for (i = 0; i < done; i++, n++) {
			EQ(rdmatensor_wait(p.a.rt, 1, rdmatensor_deadline_ms(20000)), 0);
			EQ(rdmatensor_reap(p.a.rt, &cqe, 1), 1);
			EQ(cqe.result, 0);
			last = cqe.share_id;
		}
		test_alive();
	}
	EQ(ret, -EAGAIN);
	EQ(n, RDMATENSOR_SHARES_MAX);
	rdmatensor_prep_release(&release, last);
	EQ(side_do(&p.a, &release), 0);
	EQ(side_do(&p.a, &ops[0]), 0);
	EQ(side_do(&p.a, &ops[0]), -EAGAIN);
	/* One that ends without is none */
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
	rdmatensor_prep_release(&release, cqe.share_id);
	EQ(side_do(&p.a, &release), 0);
	want(&p.a, "other", 0, rdmatensor_deadline_ms(20), 2);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), -ETIMEDOUT);
	EQ(side_do(&p.a, &ops[0]), 0);
}

#define THREADS 4
#define ROUNDS 400

static struct {
	uint32_t shares[THREADS * ROUNDS];
	uint32_t nr, next, released;
	int wrong;
} many;

/* Returns what has come, and tries what somebody else has returned already */
static void *release_some(void *unused)
{
	struct rdmatensor_op op;

	(void)unused;
	while (__atomic_load_n(&many.released, __ATOMIC_RELAXED) < THREADS * ROUNDS) {
		uint32_t at = __atomic_load_n(&many.next, __ATOMIC_RELAXED);
		int ret;

		if (at >= __atomic_load_n(&many.nr, __ATOMIC_ACQUIRE))
			continue;
		rdmatensor_prep_release(&op, many.shares[at]);
		ret = rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL);
		if (!ret) {
			__atomic_fetch_add(&many.released, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&many.next, 1, __ATOMIC_RELAXED);
		} else if (ret != -ENOENT) {
			many.wrong = ret;
		}
	}
	return NULL;
}

static void *want_some(void *arg)
{
	struct rdmatensor_op op;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		rdmatensor_prep_fetch_shared(&op, "x", (intptr_t)arg * ROUNDS + i, 0, 1);
		while (rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL))
			;
	}
	return NULL;
}

/* Threads on one handle want and return, while a peer is served in bulk */
TEST(shared_by_threads_beside_bulk)
{
	pthread_t threads[2 * THREADS];
	struct rdmatensor_op op, bulk;
	struct rdmatensor_cqe cqe;
	uint64_t at, bulk_at;
	uint64_t dim = 64;
	uint32_t i, released = 0, served = 0;
	intptr_t n;

	memset(&many, 0, sizeof(many));
	pair_open(&p, 32 << 20, NULL);
	publish(&p.a, "bulk", 0, 4 << 20, 1, 0, 9);
	bulk_at = side_alloc(&p.b, 4 << 20);
	rdmatensor_prep_fetch(&bulk, p.b.channel, "bulk", 0, p.b.pool.id, bulk_at, 4 << 20, 0, 3);
	EQ(side_do(&p.b, &bulk), 0);
	at = side_alloc(&p.a, 64);
	for (n = 0; n < THREADS; n++) {
		EQ(pthread_create(&threads[n], NULL, want_some, (void *)n), 0);
		EQ(pthread_create(&threads[THREADS + n], NULL, release_some, NULL), 0);
	}
	for (i = 0; released < THREADS * ROUNDS;) {
		if (i < THREADS * ROUNDS) {
			rdmatensor_prep_publish(&op, "x", i, p.a.pool.id, at, 64,
						RDMATENSOR_DT_UINT8, 1, &dim, 1, i);
			op.flags |= RDMATENSOR_OP_SHARE;
			if (!rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL))
				i++;
		} else {
			rdmatensor_wait(p.a.rt, 1, rdmatensor_deadline_ms(100));
		}
		while (rdmatensor_reap(p.a.rt, &cqe, 1)) {
			EQ(cqe.result, 0);
			if (cqe.type == RDMATENSOR_CQE_PUBLISH) {
				released++;
				continue;
			}
			if (cqe.type != RDMATENSOR_CQE_FETCH)
				continue;
			CHECK(cqe.flags & RDMATENSOR_CQE_SHARED && cqe.offset == at);
			many.shares[many.nr] = cqe.share_id;
			__atomic_store_n(&many.nr, many.nr + 1, __ATOMIC_RELEASE);
		}
		while (rdmatensor_reap(p.b.rt, &cqe, 1)) {
			EQ(cqe.result, 0);
			served++;
			EQ(side_do(&p.b, &bulk), 0);
		}
		test_alive();
	}
	for (n = 0; n < 2 * THREADS; n++)
		EQ(pthread_join(threads[n], NULL), 0);
	EQ(many.wrong, 0);
	EQ(many.released, THREADS * ROUNDS);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_SHARED), THREADS * ROUNDS);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_SHARES_RELEASED), THREADS * ROUNDS);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), 0);
	printf("# %u contents of bulk beside them\n", served);
}
