// SPDX-License-Identifier: GPL-2.0
/* Publications: uses, withdrawal, failure, aborted steps, bad regions */
#include "harness.h"

static struct pair p;

TEST(use_counts)
{
	struct rdmatensor_cqe cqe;
	int i;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "n", 0, 100, 1, 3, 1);
	for (i = 0; i < 3; i++) {
		side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 30);
		EQ(fetch(&p.b, "n", 0, 100, NULL, &cqe), 0);
	}
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	/* Used up: the next one waits */
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "n", 0, &p.b.pool, side_alloc(&p.b, 100), 100,
			    rdmatensor_deadline_ms(100), &cqe), -ETIMEDOUT);

	publish(&p.a, "always", 0, 100, 2, 0, 2);
	for (i = 0; i < 5; i++)
		EQ(fetch(&p.b, "always", 0, 100, NULL, &cqe), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 2, 30);
}

TEST(offered_twice)
{
	struct rdmatensor_op op;
	uint64_t dim = 100;
	uint64_t at;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	at = publish(&p.a, "n", 0, 100, 1, 1, 1);
	rdmatensor_prep_publish(&op, "n", 0, p.a.pool.id, at, 100, RDMATENSOR_DT_UINT8, 1, &dim,
				1, 2);
	EQ(side_do(&p.a, &op), -EEXIST);
	op.step_id = 1;
	EQ(side_do(&p.a, &op), 0);
}

TEST(withdraw)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	pair_open(&p, 1 << 20, NULL);
	rdmatensor_prep_withdraw(&op, "n", 0, 5);
	EQ(side_do(&p.a, &op), -ENOENT);
	publish(&p.a, "n", 0, 100, 1, 1, 1);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), -ECANCELED);
	EQ(side_do(&p.a, &op), -ENOENT);

	publish(&p.a, "always", 0, 100, 1, 0, 2);
	EQ(fetch(&p.b, "always", 0, 100, NULL, &cqe), 0);
	rdmatensor_prep_withdraw(&op, "always", 0, 6);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 6, NULL), 0);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 2, 20);
	/* Its memory is the process's again */
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
}

/* The process has its deadline also where the ring has no room for anything more */
TEST(deadline_with_a_full_ring)
{
	struct rdmatensor_op op;
	uint64_t dim = 64, until;
	unsigned int i = 0;
	uint64_t at;
	int ret;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	at = side_alloc(&p.a, 64);
	do {
		rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "nobody's", 7, 0, 0, 0, 0,
				      100 + i++);
		op.flags |= RDMATENSOR_OP_SHARE;
		ret = side_do(&p.a, &op);
	} while (!ret);
	EQ(ret, -EAGAIN);
	/* One place */
	rdmatensor_prep_cancel(&op, 100);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 100, NULL), -ECANCELED);
	until = rdmatensor_deadline_ms(100);
	EQ(rdmatensor_publish(p.a.rt, "late", 7, &p.a.pool, at, 64, RDMATENSOR_DT_UINT8, 1, &dim,
			      1, until), -ETIMEDOUT);
	CHECK(rdmatensor_now_ns() < until + 2000000000ull);
}

/* A WITHDRAW without an entry of its own: the tensor's tells */
TEST(quiet_withdraw)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "x", 1, 64, 1, 1, 2);
	rdmatensor_prep_withdraw(&op, "x", 1, 3);
	op.flags |= RDMATENSOR_OP_QUIET;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 2, NULL), -ECANCELED);
	side_none(&p.a, RDMATENSOR_CQE_WITHDRAW, 3, 20);
	EQ(side_do(&p.a, &op), -ENOENT);
	/* It would be waited for without end */
	EQ(rdmatensor_run(p.a.rt, &op, &cqe), -EINVAL);
}

TEST(failed_publisher)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 100);
	rdmatensor_prep_fetch(&op, p.b.channel, "f", 0, p.b.pool.id, at, 100, 0, 1);
	EQ(side_do(&p.b, &op), 0);
	rdmatensor_prep_publish_failed(&op, "f", 0, -ERANGE, "loss is not a number", 1, 2);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, &cqe), -ERANGE);
	CHECK(cqe.flags & RDMATENSOR_CQE_TEXT);
	EQ(cqe.text_len, 20);
	CHECK(!memcmp(cqe.text, "loss is not a number", 20));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 2, NULL), 0);
	/* The destination is free */
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
}

TEST(step_abort_on_both_sides)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;
	uint64_t dim = 100;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 4096);
	/* The sender aborts: waiting requests end, and later ones */
	rdmatensor_prep_fetch(&op, p.b.channel, "x", 5, p.b.pool.id, at, 100, 0, 1);
	EQ(side_do(&p.b, &op), 0);
	publish(&p.a, "y", 5, 100, 1, 1, 2);
	publish(&p.a, "y", 6, 100, 1, 1, 3);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 50);
	EQ(rdmatensor_step_abort(p.a.rt, 5, -EIO, "worker 3 failed"), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, &cqe), -EIO);
	EQ(cqe.text_len, 15);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 2, NULL), -EIO);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "y", 5, &p.b.pool, at, 100,
			    rdmatensor_deadline_ms(9000), &cqe), -EIO);
	rdmatensor_prep_publish(&op, "z", 5, p.a.pool.id, side_alloc(&p.a, 100), 100,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, 4);
	EQ(side_do(&p.a, &op), -EIO);
	EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "y", 6, &p.b.pool, at, 100,
			    rdmatensor_deadline_ms(9000), &cqe), 0);

	/* The receiver aborts: its fetches end, and later ones */
	rdmatensor_prep_fetch(&op, p.b.channel, "x", 7, p.b.pool.id, at, 100, 0, 5);
	EQ(side_do(&p.b, &op), 0);
	EQ(rdmatensor_step_abort(p.b.rt, 7, -EINTR, NULL), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 5, NULL), -EINTR);
	EQ(side_do(&p.b, &op), -EINTR);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
	EQ(rdmatensor_step_abort(p.b.rt, 7, 0, NULL), -EINVAL);
}

TEST(bad_publish_changes_nothing)
{
	struct rdmatensor_op op;
	char name[RDMATENSOR_NAME_MAX + 2];
	uint64_t dim = 100, huge = 1ull << 62;
	uint64_t at;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	at = side_alloc(&p.a, 1000);
#define PREP() rdmatensor_prep_publish(&op, "n", 0, p.a.pool.id, at, 100, \
				       RDMATENSOR_DT_UINT8, 1, &dim, 1, 1)
	PREP(); op.pool_id = 99; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.offset = 1 << 20; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.offset = at + 1; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.offset = at + 64 * 16; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.bytes = 101; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.bytes = 2000; dim = 2000; EQ(side_do(&p.a, &op), -EINVAL); dim = 100;
	PREP(); op.dims_uptr = rdmatensor_op_ptr(&huge); EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.data_type = 0; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.data_type = 26; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.ndims = 17; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.dims_uptr = 8; EQ(side_do(&p.a, &op), -EFAULT);
	PREP(); op.name_uptr = 8; EQ(side_do(&p.a, &op), -EFAULT);
	PREP(); op.name_len = 0; EQ(side_do(&p.a, &op), -EINVAL);
	memset(name, 'x', sizeof(name));
	PREP(); op.name_uptr = rdmatensor_op_ptr(name); op.name_len = RDMATENSOR_NAME_MAX + 1;
	EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.flags = 1 << 7; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.__reserved = 1; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.target = 1; EQ(side_do(&p.a, &op), -EINVAL);
	PREP(); op.opcode = 77; EQ(side_do(&p.a, &op), -EOPNOTSUPP);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISHED), 0);
	PREP(); op.name_uptr = rdmatensor_op_ptr(name); op.name_len = RDMATENSOR_NAME_MAX;
	EQ(side_do(&p.a, &op), 0);
}

TEST(regions_in_flight)
{
	struct rdmatensor_op op;
	uint64_t dim = 100;
	uint64_t at, to;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 1024);
	rdmatensor_prep_fetch(&op, p.b.channel, "x", 0, p.b.pool.id, at + 128, 128, 0, 1);
	EQ(side_do(&p.b, &op), 0);
	/* Overlaps the destination: as source, as destination, to be freed */
	rdmatensor_prep_publish(&op, "n", 0, p.b.pool.id, at + 64, 100, RDMATENSOR_DT_UINT8, 1,
				&dim, 1, 2);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_fetch(&op, p.b.channel, "y", 0, p.b.pool.id, at + 192, 64, 0, 3);
	EQ(side_do(&p.b, &op), -EINVAL);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), -EBUSY);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), -EBUSY);
	rdmatensor_prep_fetch(&op, p.b.channel, "y", 0, p.b.pool.id, at + 256, 64, 0, 4);
	EQ(side_do(&p.b, &op), 0);
	/* Overlaps a source */
	to = publish(&p.a, "x", 0, 100, 1, 0, 5);
	rdmatensor_prep_fetch(&op, 0, "x", 0, p.a.pool.id, to, 100, 0, 6);
	EQ(side_do(&p.a, &op), -EINVAL);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at + 64), -ENOENT);
	rdmatensor_prep_cancel(&op, 4);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 4, NULL), -ECANCELED);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
}
