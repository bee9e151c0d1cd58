// SPDX-License-Identifier: GPL-2.0
/*
 * Slices: what is wanted of a tensor comes, and nothing else, whatever its shape, wherever it comes
 * from and goes to; and what it has not got is refused.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include "harness.h"

#define POOL (8u << 20)
#define DIMS 5
#define REST RDMATENSOR_RANGE_REST

static struct pair p;
static uint64_t seed;

static uint64_t rnd(uint64_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (seed >> 33) % below : 0;
}

/**
 * struct shape - a tensor that is offered, and a slice of it
 * @type: its data type, of @size bytes
 * @ndims: its dims
 * @at: its content, in the publisher's pool
 */
struct shape {
	uint32_t type, size, ndims;
	uint64_t dims[DIMS];
	uint64_t bytes, at;
	struct rdmatensor_range ranges[DIMS];
	uint32_t nr_ranges;
};

static void shape_random(struct shape *shape, uint64_t most)
{
	static const uint32_t types[] = {
		RDMATENSOR_DT_UINT8, RDMATENSOR_DT_HALF, RDMATENSOR_DT_FLOAT, RDMATENSOR_DT_INT64,
		RDMATENSOR_DT_COMPLEX128,
	};
	uint32_t i;

	shape->type = types[rnd(5)];
	shape->size = rdmatensor_data_type_size(shape->type);
	shape->ndims = 1 + rnd(DIMS);
	shape->bytes = shape->size;
	for (i = 0; i < shape->ndims; i++) {
		shape->dims[i] = rnd(12) ? 1 + rnd(shape->ndims < 3 ? 150 : 14) : rnd(3);
		shape->bytes *= shape->dims[i];
		if (shape->bytes > most) {
			shape->bytes /= shape->dims[i];
			shape->dims[i] = 1;
		}
	}
}

static void slice_random(struct shape *shape)
{
	uint32_t i;

	shape->nr_ranges = rnd(8) ? 1 + rnd(shape->ndims) : 0;
	for (i = 0; i < shape->ndims; i++) {
		struct rdmatensor_range *range = &shape->ranges[i];
		uint64_t dim = shape->nr_ranges ? shape->dims[i] : shape->bytes;

		range->start = rnd(3) ? rnd(dim + 1) : 0;
		range->length = rnd(3) ? rnd(dim - range->start + 1) : REST;
		/* Of dims behind those that have one all is taken */
		if (!rnd(3) || (i && i >= shape->nr_ranges))
			*range = (struct rdmatensor_range){ 0, rnd(2) ? dim : REST };
	}
}

static uint64_t length_of(const struct shape *shape, uint32_t i)
{
	uint64_t dim = shape->nr_ranges ? shape->dims[i] : shape->bytes;

	return shape->ranges[i].length == REST ? dim - shape->ranges[i].start :
						 shape->ranges[i].length;
}

static void offer(struct side *side, const char *name, struct shape *shape, uint32_t uses)
{
	struct rdmatensor_op op;

	shape->at = shape->bytes ? side_alloc(side, shape->bytes) : 0;
	if (shape->bytes)
		fill(side_at(side, shape->at), shape->bytes, seed);
	rdmatensor_prep_publish(&op, name, 1, shape->bytes ? side->pool.id : 0, shape->at,
				shape->bytes, shape->type, shape->ndims, shape->dims, uses, 7);
	EQ(side_do(side, &op), 0);
}

/* Element by element, the way that is not the module's */
static void check_part(const struct side *side, const struct shape *shape,
		       const unsigned char *got, uint64_t bytes)
{
	const unsigned char *whole = (unsigned char *)side->pool.base + shape->at;
	uint64_t index[DIMS] = { 0 }, n, at;
	uint32_t i;

	if (!shape->nr_ranges) {
		EQ(bytes, length_of(shape, 0));
		CHECK(!bytes || !memcmp(got, whole + shape->ranges[0].start, bytes));
		return;
	}
	for (n = 0; n < bytes; n += shape->size) {
		for (i = 0, at = 0; i < shape->ndims; i++)
			at = at * shape->dims[i] + shape->ranges[i].start + index[i];
		if (memcmp(got + n, whole + at * shape->size, shape->size))
			test_fail(__FILE__, __LINE__, "byte %llu is another one",
				  (unsigned long long)n);
		for (i = shape->ndims; i-- && ++index[i] == length_of(shape, i);)
			index[i] = 0;
	}
	test_checks++;
}

static void check_entry(const struct shape *shape, const struct rdmatensor_cqe *cqe)
{
	uint64_t bytes = shape->size;
	uint32_t i;

	CHECK(cqe->flags & RDMATENSOR_CQE_META);
	if (!shape->nr_ranges) {
		EQ(cqe->data_type, RDMATENSOR_DT_UINT8);
		EQ(cqe->ndims, 1);
		EQ(cqe->dims[0], length_of(shape, 0));
		EQ(cqe->tensor_bytes, length_of(shape, 0));
		return;
	}
	EQ(cqe->data_type, shape->type);
	EQ(cqe->ndims, shape->ndims);
	for (i = 0; i < shape->ndims; i++) {
		EQ(cqe->dims[i], length_of(shape, i));
		bytes *= cqe->dims[i];
	}
	EQ(cqe->tensor_bytes, bytes);
}

/* To a region that is made for it, to one that is there, or, by a proxy, to memory of the process */
static void slice_fetch(struct side *side, uint32_t channel, const char *name,
			const struct shape *shape, const struct side *from)
{
	static unsigned char own[1 << 20];
	unsigned int how = rnd(3);
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at = 0;

	if (how == 0)
		rdmatensor_prep_fetch_alloc(&op, channel, name, 1, side->pool.id, 0, 0, 3);
	else if (how == 1)
		rdmatensor_prep_fetch(&op, channel, name, 1, side->pool.id,
				      at = side_alloc(side, shape->bytes + 1), shape->bytes, 0, 3);
	else
		rdmatensor_prep_fetch_memory(&op, channel, name, 1, own + rnd(100), shape->bytes,
					     side->pool.id, 0, 3);
	rdmatensor_prep_slice(&op, shape->ranges, shape->nr_ranges);
	EQ(side_do(side, &op), 0);
	EQ(side_next(side, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
	check_entry(shape, &cqe);
	check_part(from, shape, how == 2 ? (unsigned char *)(uintptr_t)op.offset :
		   side_at(side, how == 1 ? at : cqe.offset), cqe.tensor_bytes);
	if (how == 1)
		EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
	else if (how == 0 && cqe.tensor_bytes)
		EQ(rdmatensor_pool_free(side->rt, &side->pool, cqe.offset), 0);
}

static void slices_of(struct side *side, uint32_t channel, unsigned int tensors)
{
	uint64_t before = side_stat(&p.a, RDMATENSOR_STAT_SERVED_BYTES), wanted = 0;
	struct shape shape;
	struct rdmatensor_op op;
	char name[16];
	unsigned int i, j;
	uint32_t k;

	for (i = 0; i < tensors; i++) {
		shape_random(&shape, 1 << 19);
		snprintf(name, sizeof(name), "t%u", i);
		offer(&p.a, name, &shape, 0);
		for (j = 0; j < 8; j++) {
			uint64_t bytes = shape.size;

			slice_random(&shape);
			slice_fetch(side, channel, name, &shape, &p.a);
			for (k = 0; k < shape.ndims; k++)
				bytes *= length_of(&shape, k);
			wanted += shape.nr_ranges ? bytes : length_of(&shape, 0);
		}
		rdmatensor_prep_withdraw(&op, name, 1, 5);
		EQ(side_do(&p.a, &op), 0);
		EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
		if (shape.bytes)
			EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, shape.at), 0);
	}
	/* What was wanted, and no byte more, was sent */
	if (channel != RDMATENSOR_CHANNEL_SELF)
		EQ(side_stat(&p.a, RDMATENSOR_STAT_SERVED_BYTES) - before, wanted);
}

TEST(slices_of_all_shapes)
{
	seed = 1;
	pair_open(&p, POOL, NULL);
	slices_of(&p.b, p.b.channel, 60);
	slices_of(&p.a, RDMATENSOR_CHANNEL_SELF, 40);
}

static void over_lanes(struct rdmatensor_start *start)
{
	start->lanes = 4;
	start->stripe_bytes = 4096;
}

TEST(slices_over_lanes)
{
	seed = 2;
	pair_open(&p, POOL, over_lanes);
	slices_of(&p.b, p.b.channel, 60);
}

static void validating(struct rdmatensor_start *start)
{
	start->flags |= RDMATENSOR_START_VALIDATE;
}

TEST(slices_with_checksums)
{
	seed = 3;
	pair_open(&p, POOL, validating);
	slices_of(&p.b, p.b.channel, 30);
	CHECK(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED) > 30 * 8 - 1);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS), 0);
}

/* A tensor that changes between a slice and the next: what was known of it is no longer so */
TEST(slices_of_what_changes)
{
	struct shape shape;
	char name[] = "t";
	unsigned int i;

	seed = 4;
	pair_open(&p, POOL, NULL);
	for (i = 0; i < 100; i++) {
		shape_random(&shape, 1 << 14);
		slice_random(&shape);
		offer(&p.a, name, &shape, 1);
		slice_fetch(&p.b, p.b.channel, name, &shape, &p.a);
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
		if (shape.bytes)
			EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, shape.at), 0);
	}
	/* What was known of it saved a message now and then */
	CHECK(side_stat(&p.b, RDMATENSOR_STAT_FETCHED) == 100);
}

static int refused(struct side *side, uint32_t channel, const struct rdmatensor_range *ranges,
		   uint32_t ndims)
{
	char text[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_fetch_alloc(&op, channel, "m", 1, side->pool.id, 0, 0, 3);
	rdmatensor_prep_slice(&op, ranges, ndims);
	ret = side_do(side, &op);
	if (ret)
		return ret;
	ret = side_next(side, RDMATENSOR_CQE_FETCH, 3, &cqe);
	if (ret)
		CHECK(strstr(rdmatensor_status_text(side->rt, &cqe, text, sizeof(text)),
			     "the tensor has no such slice"));
	return ret;
}

static void misfits(struct side *side, uint32_t channel)
{
	static const struct {
		struct rdmatensor_range ranges[3];
		uint32_t ndims;
		int ret;
	} cases[] = {
		{ { { 0, 4 }, { 0, 5 } }, 2, 0 },
		{ { { 4, 0 }, { 5, REST } }, 2, 0 },
		{ { { 0, 5 }, { 0, 5 } }, 2, -ERANGE },
		{ { { 0, 4 }, { 1, 5 } }, 2, -ERANGE },
		{ { { 5, REST }, { 0, 5 } }, 2, -ERANGE },
		{ { { 5, 0 }, { 0, 5 } }, 2, -ERANGE },
		{ { { 1, 3 } }, 1, 0 },
		{ { { 1, 4 } }, 1, -ERANGE },
		{ { { 0, 4 }, { 0, 5 }, { 0, 1 } }, 3, -ERANGE },
		{ { { 0, 80 } }, 0, 0 },
		{ { { 0, 81 } }, 0, -ERANGE },
		{ { { 80, REST } }, 0, 0 },
		{ { { 81, REST } }, 0, -ERANGE },
		{ { { 1, (1ull << 63) - 1 } }, 0, -EINVAL },
		{ { { 1, (1ull << 63) - 2 } }, 0, -ERANGE },
		{ { { 1ull << 63, REST } }, 0, -EINVAL },
		{ { { 0, 4 }, { 1, REST - 1 } }, 2, -EINVAL },
	};
	unsigned int i;

	/* Before and after the tensor is known */
	for (i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		unsigned int at = i % (sizeof(cases) / sizeof(*cases));

		if (refused(side, channel, cases[at].ranges, cases[at].ndims) != cases[at].ret)
			test_fail(__FILE__, __LINE__, "case %u is not %d", at, cases[at].ret);
		test_checks++;
	}
}

TEST(slices_that_there_are_not)
{
	struct shape matrix = {
		.type = RDMATENSOR_DT_FLOAT, .size = 4, .ndims = 2, .dims = { 4, 5 }, .bytes = 80,
	};
	const struct rdmatensor_range range = { 0, REST }, beyond = { 0, 5 };
	struct rdmatensor_op op;

	pair_open(&p, POOL, NULL);
	offer(&p.a, "m", &matrix, 0);
	misfits(&p.b, p.b.channel);
	misfits(&p.a, RDMATENSOR_CHANNEL_SELF);

	/* It is not used up by who wants what it has not got */
	offer(&p.a, "once", &matrix, 1);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "once", 1, p.b.pool.id, 0, 0, 3);
	rdmatensor_prep_slice(&op, &beyond, 1);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL), -ERANGE);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 7, 20);
	rdmatensor_prep_slice(&op, &range, 0);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);

	/* What goes together with it, and from where it is read */
	op.flags |= RDMATENSOR_OP_SHARE;
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_fetch(&op, p.b.channel, "m", 1, p.b.pool.id, 0, 64, 0, 3);
	rdmatensor_prep_slice(&op, &range, 0);
	op.flags |= RDMATENSOR_OP_KEEP;
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "m", 1, p.b.pool.id, 0, 0, 3);
	rdmatensor_prep_slice(&op, NULL, 0);
	EQ(side_do(&p.b, &op), -EFAULT);
	rdmatensor_prep_slice(&op, &range, 17);
	EQ(side_do(&p.b, &op), -EINVAL);
	op.flags &= ~RDMATENSOR_OP_SLICE;
	EQ(side_do(&p.b, &op), -EINVAL);
}

/* No room for it, a tensor without content, and one that nobody can describe */
TEST(slices_of_odd_tensors)
{
	const struct rdmatensor_range all[2] = { { 1, REST }, { 1, REST } };
	const uint64_t dims[2] = { 3, 4 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, POOL, NULL);
	rdmatensor_prep_publish_dead(&op, "dead", 1, RDMATENSOR_DT_FLOAT, 2, dims, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "dead", 1, p.b.pool.id, 0, 0, 3);
	rdmatensor_prep_slice(&op, all, 2);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
	CHECK(cqe.flags & RDMATENSOR_CQE_DEAD);
	EQ(cqe.tensor_bytes, 0);

	at = side_alloc(&p.a, 1000);
	fill(side_at(&p.a, at), 1000, 9);
	rdmatensor_prep_publish(&op, "opaque", 1, p.a.pool.id, at, 1000, RDMATENSOR_DT_STRING, 2,
				dims, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "opaque", 1, p.b.pool.id, 0, 0, 3);
	rdmatensor_prep_slice(&op, all, 2);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL), -ERANGE);
	rdmatensor_prep_slice(&op, all, 0);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
	EQ(cqe.tensor_bytes, 999);
	CHECK(!memcmp(side_at(&p.b, cqe.offset), side_at(&p.a, at) + 1, 999));

	/* The room that counts is the slice's */
	rdmatensor_prep_fetch(&op, p.b.channel, "opaque", 1, p.b.pool.id, side_alloc(&p.b, 1000),
			      998, 0, 3);
	rdmatensor_prep_slice(&op, all, 0);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), -EMSGSIZE);
	op.bytes = 999;
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
}

#define ROUNDS 40

static unsigned int failures;

static void *slices_meanwhile(void *arg)
{
	const struct rdmatensor_range columns[2] = {
		{ 0, REST }, { (uintptr_t)arg * 16, 16 },
	};
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int i, row;

	for (i = 0; i < ROUNDS; i++) {
		rdmatensor_prep_fetch_alloc(&op, p.b.channel, "m", 1, p.b.pool.id, 0, 0, 0);
		rdmatensor_prep_slice(&op, columns, 2);
		if (rdmatensor_run(p.b.rt, &op, &cqe)) {
			failures++;
			continue;
		}
		for (row = 0; row < 64; row++)
			failures += !!memcmp(side_at(&p.b, cqe.offset) + row * 16,
					     side_at(&p.a, 0) + row * 128 + columns[1].start, 16);
		failures += !!rdmatensor_pool_free(p.b.rt, &p.b.pool, cqe.offset);
	}
	return NULL;
}

/* By many threads of one context, beside a bulk that is as long as they are */
TEST(slices_by_threads_beside_bulk)
{
	const uint64_t dims[2] = { 64, 128 };
	struct rdmatensor_op op;
	pthread_t threads[8];
	unsigned int i, bulks = 0;
	uint64_t at, big = 2u << 20;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, 64 * 128);
	EQ(at, 0);
	fill(side_at(&p.a, at), 64 * 128, 5);
	rdmatensor_prep_publish(&op, "m", 1, p.a.pool.id, at, 64 * 128, RDMATENSOR_DT_UINT8, 2, dims,
				0, 0);
	EQ(side_do(&p.a, &op), 0);
	publish(&p.a, "bulk", 1, big, 6, 0, 0);
	failures = 0;
	for (i = 0; i < 8; i++)
		EQ(pthread_create(&threads[i], NULL, slices_meanwhile, (void *)(uintptr_t)i), 0);
	at = side_alloc(&p.b, big);
	for (i = 0; i < 8; bulks++) {
		struct rdmatensor_cqe cqe;

		EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "bulk", 1, &p.b.pool, at, big, 0, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), big, 6));
		while (i < 8 && !pthread_tryjoin_np(threads[i], NULL))
			i++;
	}
	EQ(failures, 0);
	printf("# %u contents of bulk beside them\n", bulks);
}

/* Cancelled, and with the peer gone, in the middle of a content of many short runs */
TEST(slices_that_are_cancelled)
{
	const struct rdmatensor_range column[2] = { { 0, REST }, { 1, 1 } };
	const uint64_t dims[2] = { 1 << 19, 8 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int i, cancelled = 0;
	uint64_t at;
	int ret;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, 4 << 20);
	rdmatensor_prep_publish(&op, "m", 1, p.a.pool.id, at, 4 << 20, RDMATENSOR_DT_UINT8, 2, dims,
				0, 0);
	EQ(side_do(&p.a, &op), 0);
	for (i = 0; i < 10; i++) {
		rdmatensor_prep_fetch_alloc(&op, p.b.channel, "m", 1, p.b.pool.id, 0, 0, 3);
		rdmatensor_prep_slice(&op, column, 2);
		EQ(side_do(&p.b, &op), 0);
		while (side_stat(&p.a, RDMATENSOR_STAT_TX_WRITES) < 50 * (i + 1))
			;
		rdmatensor_prep_cancel(&op, 3);
		ret = side_do(&p.b, &op);
		CHECK(!ret || ret == -ENOENT);
		ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe);
		CHECK(!ret || ret == -ECANCELED);
		cancelled += !!ret;
		if (!ret)
			EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, cqe.offset), 0);
	}
	CHECK(cancelled > 5);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "m", 1, p.b.pool.id, 0, 0, 3);
	rdmatensor_prep_slice(&op, column, 2);
	EQ(side_do(&p.b, &op), 0);
	side_close(&p.a);
	ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL);
	CHECK(ret == -ECONNRESET || !ret);
}
