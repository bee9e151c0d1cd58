// SPDX-License-Identifier: GPL-2.0
/*
 * Strides: tensors that are published as views, and that are fetched to places with gaps between them.
 * Every element comes to its place, and no other byte is written, whatever the shape and the order of
 * the dims on both sides.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include "harness.h"

#define POOL (8u << 20)
#define DIMS 4
#define REST RDMATENSOR_RANGE_REST
#define GAP 0xa5
#define MOST (1u << 16)

static struct pair p;
static uint64_t seed;

static uint64_t rnd(uint64_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (seed >> 33) % below : 0;
}

/**
 * struct view - elements in memory
 * @size: bytes of one
 * @strides: of the dims, in bytes
 * @span: from the first byte to behind the last one
 */
struct view {
	uint32_t size, ndims;
	uint64_t dims[DIMS], strides[DIMS], span;
};

static uint64_t elements(const struct view *view)
{
	uint64_t nr = 1;
	uint32_t i;

	for (i = 0; i < view->ndims; i++)
		nr *= view->dims[i];
	return nr;
}

static uint64_t place_of(const struct view *view, uint64_t element)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = view->ndims; i--;) {
		if (!view->dims[i])
			return 0;
		at += element % view->dims[i] * view->strides[i];
		element /= view->dims[i];
	}
	return at;
}

/* Its dims one after the other in any order, with gaps or none; @repeat: an element may be repeated */
static void lay_out(struct view *view, bool repeat)
{
	uint64_t extent = view->size;
	unsigned int left = (1u << view->ndims) - 1;
	uint32_t i;

	while (left) {
		i = rnd(3) ? 31 - (uint32_t)__builtin_clz(left) : rnd(view->ndims);
		if (!(left & 1u << i))
			continue;
		left &= ~(1u << i);
		if (!rnd(3))
			extent += rnd(4) * (rnd(2) ? 1 : view->size);
		view->strides[i] = repeat && !rnd(10) ? 0 : extent;
		extent += view->strides[i] * (view->dims[i] ? view->dims[i] - 1 : 0);
	}
	view->span = elements(view) ? extent : 0;
	/* The last gap belongs to nobody */
	if (view->span)
		view->span = place_of(view, elements(view) - 1) + view->size;
}

/* The whole of @source, or a part of it that is described by @part and @ranges */
static void part_of(const struct view *source, struct view *part, struct rdmatensor_range *ranges)
{
	uint32_t i;

	*part = *source;
	for (i = 0; i < source->ndims; i++) {
		ranges[i].start = rnd(2) ? rnd(source->dims[i] + 1) : 0;
		ranges[i].length = rnd(2) ? rnd(source->dims[i] - ranges[i].start + 1) : REST;
		part->dims[i] = ranges[i].length == REST ? source->dims[i] - ranges[i].start :
							    ranges[i].length;
	}
}

/* Element @element of the part is this one of the whole */
static uint64_t of_whole(const struct view *source, const struct view *part,
			 const struct rdmatensor_range *ranges, uint64_t element)
{
	uint64_t at = 0, stride = 1;
	uint32_t i;

	for (i = source->ndims; i--;) {
		at += (ranges[i].start + element % part->dims[i]) * stride;
		element /= part->dims[i];
		stride *= source->dims[i];
	}
	return at;
}

static void view_random(struct view *view, uint32_t *type)
{
	static const uint32_t types[] = {
		RDMATENSOR_DT_UINT8, RDMATENSOR_DT_HALF, RDMATENSOR_DT_FLOAT, RDMATENSOR_DT_INT64,
		RDMATENSOR_DT_COMPLEX128,
	};
	uint32_t i;

	*type = types[rnd(5)];
	view->size = rdmatensor_data_type_size(*type);
	view->ndims = rnd(DIMS + 1);
	for (i = 0; i < view->ndims; i++)
		view->dims[i] = rnd(20) ? 1 + rnd(view->ndims < 3 ? 60 : 8) : 0;
}

/* As the calls want them: a place for each element, or for any number of them */
static const struct rdmatensor_stride *places(const struct view *view)
{
	static struct rdmatensor_stride strides[DIMS];
	uint32_t i;

	for (i = 0; i < view->ndims; i++) {
		strides[i].bytes = view->strides[i];
		strides[i].most = rnd(2) ? view->dims[i] : REST;
	}
	return strides;
}

/* Offers @view as "t", from an odd place in a region of its own. Return: the first byte's offset */
static uint64_t offer(struct side *side, const struct view *view, uint32_t type, uint16_t flags,
		      uint64_t *region)
{
	uint64_t bytes = elements(view) * view->size, lead = 1 + rnd(100);
	struct rdmatensor_op op;

	*region = side_alloc(side, view->span + lead + 1);
	fill(side_at(side, *region), view->span + lead + 1, seed);
	rdmatensor_prep_publish(&op, "t", 1, bytes ? side->pool.id : 0, bytes ? *region + lead : 0,
				bytes, type, view->ndims, view->dims, 0, 7);
	rdmatensor_prep_strides(&op, places(view), view->ndims);
	op.flags |= flags;
	EQ(side_do(side, &op), 0);
	return *region + lead;
}

static void take_back(struct side *side, uint64_t region)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, "t", 1, 5);
	EQ(side_do(side, &op), 0);
	EQ(side_next(side, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
	EQ(rdmatensor_pool_free(side->rt, &side->pool, region), 0);
}

/* Fetches a part of what @from offers at @at, and looks at each byte of where it goes */
static void strided_fetch(struct side *side, uint32_t channel, struct side *from,
			  const struct view *source, uint32_t type, uint64_t at)
{
	static unsigned char own[8 * MOST], want[8 * MOST];
	struct rdmatensor_range ranges[DIMS];
	uint64_t lead = rnd(100), room, region = 0, i;
	bool proxied = rnd(3) == 0, strided = rnd(4), sliced = source->ndims && rnd(3);
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned char *to;
	struct view part;

	part_of(source, &part, ranges);
	if (!sliced)
		part = *source;
	lay_out(&part, false);
	if (!strided) {
		part.span = part.size;
		for (i = part.ndims; i--;) {
			part.strides[i] = part.span;
			part.span *= part.dims[i];
		}
		lead = 0;
	}
	room = part.span + lead + 70;
	CHECK(room <= sizeof(own));
	if (!proxied)
		region = side_alloc(side, room);
	to = proxied ? own : side_at(side, region);
	memset(to, GAP, room);
	memset(want, GAP, room);
	for (i = 0; i < elements(&part); i++)
		memcpy(want + lead + place_of(&part, i), side_at(from, at) +
		       place_of(source, sliced ? of_whole(source, &part, ranges, i) : i),
		       part.size);

	if (proxied)
		rdmatensor_prep_fetch_memory(&op, channel, "t", 1, own + lead, part.span,
					     side->pool.id, 0, 3);
	else
		rdmatensor_prep_fetch(&op, channel, "t", 1, side->pool.id, region + lead, part.span,
				      0, 3);
	if (sliced)
		rdmatensor_prep_slice(&op, ranges, source->ndims);
	if (strided)
		rdmatensor_prep_strides(&op, places(&part), part.ndims);
	if (strided && rnd(2))
		op.data_type = type;
	EQ(side_do(side, &op), 0);
	EQ(side_next(side, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
	EQ(cqe.tensor_bytes, elements(&part) * part.size);
	EQ(cqe.ndims, part.ndims);
	CHECK(!memcmp(to, want, room));
	if (!proxied)
		EQ(rdmatensor_pool_free(side->rt, &side->pool, region), 0);
}

static void strides_of(struct side *side, uint32_t channel, unsigned int tensors)
{
	uint64_t at, region;
	struct view source;
	unsigned int i, j;
	uint32_t type;
	bool copied;

	for (i = 0; i < tensors; i++) {
		copied = !rnd(5);
		do {
			view_random(&source, &type);
			lay_out(&source, copied);
		} while (source.span > MOST || elements(&source) * source.size > MOST);
		at = offer(&p.a, &source, type, copied ? RDMATENSOR_OP_COPY : 0, &region);
		for (j = 0; j < 6; j++)
			strided_fetch(side, channel, &p.a, &source, type, at);
		take_back(&p.a, region);
	}
}

TEST(strides_of_all_layouts)
{
	seed = 1;
	pair_open(&p, POOL, NULL);
	strides_of(&p.b, p.b.channel, 60);
	strides_of(&p.a, RDMATENSOR_CHANNEL_SELF, 40);
}

static void over_lanes(struct rdmatensor_start *start)
{
	start->lanes = 4;
	start->stripe_bytes = 4096;
}

TEST(strides_over_lanes)
{
	seed = 2;
	pair_open(&p, POOL, over_lanes);
	strides_of(&p.b, p.b.channel, 40);
}

static void validating(struct rdmatensor_start *start)
{
	start->flags |= RDMATENSOR_START_VALIDATE;
}

TEST(strides_with_checksums)
{
	seed = 3;
	pair_open(&p, POOL, validating);
	strides_of(&p.b, p.b.channel, 30);
	CHECK(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED) >= 30 * 6);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS), 0);
}

/* A matrix of 4 x 5 floats, whose region is the pool's first */
static const uint64_t matrix[2] = { 4, 5 };
static const struct rdmatensor_stride dense[2] = { { 20, 4 }, { 4, 5 } };

static int publish_view(struct side *side, uint64_t offset, const struct rdmatensor_stride *strides,
			uint32_t nr, uint16_t flags)
{
	struct rdmatensor_op op;

	rdmatensor_prep_publish(&op, "m", 1, side->pool.id, offset, 80, RDMATENSOR_DT_FLOAT, 2, matrix,
				0, 7);
	rdmatensor_prep_strides(&op, strides, nr);
	op.flags |= flags;
	return side_do(side, &op);
}

TEST(views_that_cannot_be_published)
{
	const struct rdmatensor_stride wide[3] = { { 400, REST }, { 4, 5 } };
	const struct rdmatensor_stride far[2] = { { 1ull << 63, 4 }, { 4, 5 } };
	const struct rdmatensor_stride long_way[2] = { { 1ull << 62, 4 }, { 4, 5 } };
	const struct rdmatensor_stride few[2] = { { 400, 3 }, { 4, 5 } };
	const struct rdmatensor_stride again[2] = { { 0, 4 }, { 4, 5 } };
	const struct rdmatensor_stride bytes = { 2, REST };
	uint64_t runs = RDMATENSOR_RUNS_MAX + 1;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, 1280);
	EQ(publish_view(&p.a, at, wide, 1, 0), -ERANGE);
	EQ(publish_view(&p.a, at, wide, 3, 0), -ERANGE);
	EQ(publish_view(&p.a, at, wide, 17, 0), -EINVAL);
	EQ(publish_view(&p.a, at, NULL, 2, 0), -EFAULT);
	EQ(publish_view(&p.a, at, far, 2, 0), -EINVAL);
	EQ(publish_view(&p.a, at, long_way, 2, 0), -ERANGE);
	EQ(publish_view(&p.a, at, few, 2, 0), -ERANGE);
	EQ(publish_view(&p.a, at, again, 2, 0), -EINVAL);
	EQ(publish_view(&p.a, at, again, 2, RDMATENSOR_OP_COPY), 0);
	rdmatensor_prep_withdraw(&op, "m", 1, 5);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
	EQ(publish_view(&p.a, at, wide, 2, RDMATENSOR_OP_SHARE), -EINVAL);
	/* From its first byte to its last one inside the region: 1220 bytes */
	EQ(publish_view(&p.a, at + 61, wide, 2, 0), -EINVAL);
	EQ(publish_view(&p.a, at + 60, wide, 2, 0), 0);
	rdmatensor_prep_withdraw(&op, "m", 1, 5);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 5, NULL), 0);
	EQ(publish_view(&p.a, at + 61, wide, 2, RDMATENSOR_OP_COPY), -EINVAL);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), 0);
	rdmatensor_prep_publish(&op, "s", 1, p.a.pool.id, side_alloc(&p.a, 64), 10, RDMATENSOR_DT_STRING,
				1, matrix, 0, 0);
	rdmatensor_prep_strides(&op, dense, 1);
	EQ(side_do(&p.a, &op), -ERANGE);
	rdmatensor_prep_publish(&op, "r", 1, p.a.pool.id, side_alloc(&p.a, 2 * runs), runs,
				RDMATENSOR_DT_UINT8, 1, &runs, 0, 0);
	rdmatensor_prep_strides(&op, &bytes, 1);
	EQ(side_do(&p.a, &op), -E2BIG);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.a, &op), 0);
	/* Strides without the flag, or of what has none */
	op.flags = 0;
	EQ(side_do(&p.a, &op), -EINVAL);
	rdmatensor_prep_withdraw(&op, "s", 1, 0);
	rdmatensor_prep_strides(&op, dense, 1);
	EQ(side_do(&p.a, &op), -EINVAL);
}

static int fetch_strided(struct side *side, uint32_t channel, const char *name, uint64_t bytes,
			 const struct rdmatensor_stride *strides, uint32_t nr, uint32_t type, char *text)
{
	uint64_t at = side_alloc(side, bytes + 1);
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_fetch(&op, channel, name, 1, side->pool.id, at, bytes, 0, 3);
	rdmatensor_prep_strides(&op, strides, nr);
	op.data_type = type;
	ret = side_do(side, &op);
	text[0] = '\0';
	if (!ret) {
		ret = side_next(side, RDMATENSOR_CQE_FETCH, 3, &cqe);
		if (ret)
			rdmatensor_status_text(side->rt, &cqe, text, RDMATENSOR_STATUS_ROOM);
	}
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
	return ret;
}

static void misfits(struct side *side, uint32_t channel)
{
	static const struct {
		const char *name;
		uint64_t bytes;
		struct rdmatensor_stride strides[3];
		uint32_t nr;
		int ret;
		const char *text;
		uint32_t type;
	} cases[] = {
		{ "m", 80, { { 20, REST }, { 4, REST } }, 2, 0, NULL, 0 },
		{ "m", 79, { { 20, REST }, { 4, REST } }, 2, -EMSGSIZE, "bytes with these strides", 0 },
		{ "m", 1220, { { 400, REST }, { 4, REST } }, 2, 0, NULL, 0 },
		{ "m", 1219, { { 400, REST }, { 4, REST } }, 2, -EMSGSIZE, "bytes with these strides", 0 },
		{ "m", 80, { { 4, REST }, { 16, REST } }, 2, 0, NULL, 0 },
		{ "m", 80, { { 4, REST }, { 15, REST } }, 2, -EINVAL, "elements would overlap", 0 },
		{ "m", 80, { { 0, REST }, { 4, REST } }, 2, -EINVAL, "elements would overlap", 0 },
		{ "m", 80, { { 20, REST } }, 1, -ERANGE, "has 1 strides, and what comes has 2 dims", 0 },
		{ "m", 80, { { 80, REST }, { 20, REST }, { 4, REST } }, 3, -ERANGE, "has 3 strides", 0 },
		{ "m", 80, { { 1ull << 62, REST }, { 4, REST } }, 2, -ERANGE, "beyond all addresses", 0 },
		{ "m", 80, { { 1ull << 63, REST }, { 4, REST } }, 2, -EINVAL, NULL, 0 },
		{ "m", 80, { { 20, REST }, { 4, REST } }, 17, -EINVAL, NULL, 0 },
		{ "m", 1220, { { 400, 3 }, { 4, 5 } }, 2, -EMSGSIZE, "dim 0 of what comes has 4", 0 },
		{ "m", 1220, { { 400, 4 }, { 4, 4 } }, 2, -EMSGSIZE, "dim 1 of what comes has 5", 0 },
		{ "m", 1220, { { 400, 4 }, { 4, 0 } }, 2, -EMSGSIZE, "there are places for 0", 0 },
		{ "m", 80, { { 20, 4 }, { 4, 5 } }, 2, 0, NULL, RDMATENSOR_DT_FLOAT },
		{ "m", 80, { { 20, 4 }, { 4, 5 } }, 2, -EINVAL, "is of data type", RDMATENSOR_DT_INT32 },
		{ "m", 80, { { 20, 4 }, { 4, 5 } }, 2, -EINVAL, NULL, RDMATENSOR_DT_MAX + 1 },
		{ "opaque", 80, { { 1, REST } }, 1, -ERANGE, "opaque", 0 },
		{ "dead", 0, { { 1, REST }, { 1, REST } }, 2, 0, NULL, 0 },
		{ "dead", 0, { { 1, REST } }, 1, 0, NULL, 0 },
		{ "empty", 0, { { 0, REST }, { 0, REST } }, 2, 0, NULL, 0 },
		{ "empty", 0, { { 0, REST } }, 1, -ERANGE, "has 1 strides", 0 },
	};
	char text[RDMATENSOR_STATUS_ROOM];
	unsigned int i, at;
	int ret;

	/* Before and after the tensor is known */
	for (i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		at = i % (sizeof(cases) / sizeof(*cases));
		ret = fetch_strided(side, channel, cases[at].name, cases[at].bytes,
				    cases[at].strides, cases[at].nr, cases[at].type, text);
		if (ret != cases[at].ret || (cases[at].text && !strstr(text, cases[at].text)))
			test_fail(__FILE__, __LINE__, "case %u: %d, %s", at, ret, text);
		test_checks++;
	}
}

/* A peer does not write them one by one, the CPU may */
static void too_many_runs(void)
{
	const struct rdmatensor_stride second = { 2, REST };
	uint64_t runs = RDMATENSOR_RUNS_MAX + 1, from = side_alloc(&p.a, runs), i;
	char text[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_op op;
	unsigned char *own = malloc(2 * runs);

	CHECK(own);
	fill(side_at(&p.a, from), runs, 9);
	rdmatensor_prep_publish(&op, "runs", 1, p.a.pool.id, from, runs, RDMATENSOR_DT_UINT8, 1, &runs, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	EQ(fetch_strided(&p.b, p.b.channel, "runs", 2 * runs, &second, 1, 0, text), -E2BIG);
	CHECK(strstr(text, "the destination has 65537 runs of 1 bytes"));
	rdmatensor_prep_fetch_memory(&op, p.b.channel, "runs", 1, own, 2 * runs, p.b.pool.id, 0, 3);
	rdmatensor_prep_strides(&op, &second, 1);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL), 0);
	for (i = 0; i < runs; i++)
		if (own[2 * i] != side_at(&p.a, from)[i])
			test_fail(__FILE__, __LINE__, "byte %llu", (unsigned long long)i);
	free(own);
}

TEST(strides_that_do_not_fit)
{
	const uint64_t nothing[2] = { 0, 5 };
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, 80);
	EQ(publish_view(&p.a, at, dense, 2, 0), 0);
	rdmatensor_prep_publish(&op, "opaque", 1, p.a.pool.id, side_alloc(&p.a, 80), 80,
				RDMATENSOR_DT_STRING, 1, matrix, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	rdmatensor_prep_publish_dead(&op, "dead", 1, RDMATENSOR_DT_FLOAT, 2, matrix, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	rdmatensor_prep_publish(&op, "empty", 1, 0, 0, 0, RDMATENSOR_DT_FLOAT, 2, nothing, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	misfits(&p.b, p.b.channel);
	misfits(&p.a, RDMATENSOR_CHANNEL_SELF);
	too_many_runs();

	rdmatensor_prep_fetch(&op, p.b.channel, "m", 1, p.b.pool.id, side_alloc(&p.b, 80), 80, 0, 3);
	rdmatensor_prep_strides(&op, dense, 2);
	op.flags |= RDMATENSOR_OP_KEEP;
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "m", 1, p.b.pool.id, 0, 0, 3);
	rdmatensor_prep_strides(&op, dense, 2);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_fetch_shared(&op, "m", 1, 0, 3);
	rdmatensor_prep_strides(&op, dense, 2);
	EQ(side_do(&p.a, &op), -EINVAL);
}

/* Elements between each other's, at the same time; and never with what has all bytes of its range */
TEST(strides_beside_each_other)
{
	const struct rdmatensor_stride columns[2] = { { 8, 4 }, { 8, 1 } };
	const uint64_t column[2] = { 4, 1 };
	struct rdmatensor_op ops[2], op;
	uint64_t from, to;

	pair_open(&p, POOL, NULL);
	from = side_alloc(&p.a, 64);
	fill(side_at(&p.a, from), 64, 3);
	to = side_alloc(&p.b, 64);
	rdmatensor_prep_fetch(&ops[0], p.b.channel, "c", 1, p.b.pool.id, to, 28, 0, 1);
	rdmatensor_prep_strides(&ops[0], columns, 2);
	rdmatensor_prep_fetch(&ops[1], p.b.channel, "c", 1, p.b.pool.id, to + 4, 28, 0, 2);
	rdmatensor_prep_strides(&ops[1], columns, 2);
	EQ(side_do(&p.b, &ops[0]), 0);
	EQ(side_do(&p.b, &ops[1]), 0);
	/* Both wait: the range is theirs */
	rdmatensor_prep_fetch(&op, p.b.channel, "other", 1, p.b.pool.id, to, 16, 0, 4);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_publish(&op, "whole", 1, p.b.pool.id, to, 1, RDMATENSOR_DT_UINT8, 0, NULL, 0, 0);
	EQ(side_do(&p.b, &op), -EINVAL);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, to), -EBUSY);
	rdmatensor_prep_publish(&op, "c", 1, p.a.pool.id, from, 16, RDMATENSOR_DT_FLOAT, 2, column, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, NULL), 0);
	CHECK(!memcmp(side_at(&p.b, to), side_at(&p.a, from), 4));
	CHECK(!memcmp(side_at(&p.b, to + 4), side_at(&p.a, from), 4));
	CHECK(!memcmp(side_at(&p.b, to + 28), side_at(&p.a, from + 12), 4));
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, to), 0);
}

/* Runs of which one begins in another segment than the one before, or goes over its end, at each place */
TEST(strides_over_segments)
{
	const struct rdmatensor_stride strides[2] = { { 1000, 4 }, { 1, 16 } };
	const uint64_t dims[2] = { 4, 16 }, segment = 2u << 20;
	unsigned char *to, want[3100];
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t from, at, i;

	pair_open(&p, POOL, NULL);
	from = side_alloc(&p.a, 64);
	fill(side_at(&p.a, from), 64, 3);
	rdmatensor_prep_publish(&op, "t", 1, p.a.pool.id, from, 64, RDMATENSOR_DT_UINT8, 2, dims, 0, 0);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_alloc(&p.b, 3 * segment), 0);
	memset(want, GAP, sizeof(want));
	for (i = 0; i < 64; i++)
		want[i / 16 * 1000 + i % 16] = side_at(&p.a, from)[i];
	for (i = 0; i < 4 * 70; i++) {
		/* Around where each run ends, and where all of them would if they lay together */
		at = segment - i % 4 * 1000 - i / 4;
		to = side_at(&p.b, at);
		memset(to, GAP, sizeof(want));
		rdmatensor_prep_fetch(&op, p.b.channel, "t", 1, p.b.pool.id, at, 3016, 0, 3);
		rdmatensor_prep_strides(&op, strides, 2);
		EQ(side_do(&p.b, &op), 0);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, &cqe), 0);
		CHECK(!memcmp(to, want, sizeof(want)));
	}
}

#define ROUNDS 30
#define ROWS 64
#define WIDTH 128
#define THREADS 8

static unsigned int failures;
static uint64_t common;

/* Of one matrix each its own columns, to those columns of one array that all have */
static void *columns_meanwhile(void *arg)
{
	const uint64_t first = (uintptr_t)arg * (WIDTH / THREADS);
	const struct rdmatensor_stride strides[2] = { { WIDTH, ROWS }, { 1, WIDTH / THREADS } };
	const struct rdmatensor_range columns[2] = { { 0, REST }, { first, WIDTH / THREADS } };
	unsigned char *to = side_at(&p.b, common) + first;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int i, row;

	for (i = 0; i < ROUNDS; i++) {
		rdmatensor_prep_fetch(&op, p.b.channel, "m", 1, p.b.pool.id, common + first,
				      (ROWS - 1) * WIDTH + WIDTH / THREADS, 0, 0);
		rdmatensor_prep_slice(&op, columns, 2);
		rdmatensor_prep_strides(&op, strides, 2);
		for (row = 0; row < ROWS; row++)
			memset(to + row * WIDTH, GAP, WIDTH / THREADS);
		if (rdmatensor_run(p.b.rt, &op, &cqe)) {
			failures++;
			continue;
		}
		for (row = 0; row < ROWS; row++)
			failures += !!memcmp(to + row * WIDTH, side_at(&p.a, 0) + row * WIDTH + first,
					     WIDTH / THREADS);
	}
	return NULL;
}

TEST(strides_by_threads_beside_bulk)
{
	const uint64_t dims[2] = { ROWS, WIDTH };
	uint64_t at, big = 2u << 20;
	unsigned int i, bulks = 0;
	pthread_t threads[THREADS];
	struct rdmatensor_op op;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, ROWS * WIDTH);
	EQ(at, 0);
	fill(side_at(&p.a, at), ROWS * WIDTH, 5);
	rdmatensor_prep_publish(&op, "m", 1, p.a.pool.id, at, ROWS * WIDTH, RDMATENSOR_DT_UINT8, 2, dims,
				0, 0);
	EQ(side_do(&p.a, &op), 0);
	publish(&p.a, "bulk", 1, big, 6, 0, 0);
	failures = 0;
	common = side_alloc(&p.b, ROWS * WIDTH);
	for (i = 0; i < THREADS; i++)
		EQ(pthread_create(&threads[i], NULL, columns_meanwhile, (void *)(uintptr_t)i), 0);
	at = side_alloc(&p.b, big);
	for (i = 0; i < THREADS; bulks++) {
		struct rdmatensor_cqe cqe;

		EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "bulk", 1, &p.b.pool, at, big, 0, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), big, 6));
		while (i < THREADS && !pthread_tryjoin_np(threads[i], NULL))
			i++;
	}
	EQ(failures, 0);
	CHECK(!memcmp(side_at(&p.b, common), side_at(&p.a, 0), ROWS * WIDTH));
	printf("# %u contents of bulk beside them\n", bulks);
}

/*
 * Cancelled, and with the peer gone, in the middle of a content each of whose bytes lies alone: in the
 * destination, or at the publisher. What has begun on several lanes comes whole. What has ended is not
 * written to any more
 */
static void cancelled_midway(bool view, void (*tune)(struct rdmatensor_start *start))
{
	const uint64_t dims[1] = { tune ? 2048 : RDMATENSOR_RUNS_MAX };
	const struct rdmatensor_stride strides[1] = { { 8, REST } }, apart[1] = { { 3, dims[0] } };
	const uint64_t room = view ? dims[0] : 4 << 20;
	unsigned int i, cancelled = 0;
	struct rdmatensor_op op;
	uint64_t at, j;
	int ret;

	pair_open(&p, POOL, tune);
	rdmatensor_prep_publish(&op, "m", 1, p.a.pool.id, side_alloc(&p.a, 3 * dims[0]), dims[0],
				RDMATENSOR_DT_UINT8, 1, dims, 0, 0);
	if (view)
		rdmatensor_prep_strides(&op, apart, 1);
	EQ(side_do(&p.a, &op), 0);
	at = side_alloc(&p.b, room);
	rdmatensor_prep_fetch(&op, p.b.channel, "m", 1, p.b.pool.id, at, room, 0, 3);
	if (!view)
		rdmatensor_prep_strides(&op, strides, 1);
	for (i = 0; i < 10; i++) {
		uint64_t before = side_stat(&p.a, RDMATENSOR_STAT_TX_WRITES);
		struct rdmatensor_op cancel;

		EQ(side_do(&p.b, &op), 0);
		while (side_stat(&p.a, RDMATENSOR_STAT_TX_WRITES) < before + 50)
			;
		rdmatensor_prep_cancel(&cancel, 3);
		ret = side_do(&p.b, &cancel);
		CHECK(!ret || ret == -ENOENT);
		ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL);
		CHECK(!ret || ret == -ECANCELED);
		cancelled += !!ret;
		memset(side_at(&p.b, at), GAP, room);
	}
	CHECK(tune || cancelled > 5);
	/* What comes behind it on each lane has come, and nothing of the former one */
	publish(&p.a, "behind", 1, 64 << 10, 5, 1, 4);
	EQ(fetch(&p.b, "behind", 1, 64 << 10, NULL, &(struct rdmatensor_cqe){}), 0);
	for (j = 0; j < room; j++)
		if (side_at(&p.b, at)[j] != GAP)
			test_fail(__FILE__, __LINE__, "byte %llu was written after the end",
				  (unsigned long long)j);
	EQ(side_do(&p.b, &op), 0);
	side_close(&p.a);
	ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL);
	CHECK(ret == -ECONNRESET || !ret);
}

TEST(strides_that_are_cancelled)
{
	cancelled_midway(false, NULL);
}

TEST(views_that_are_cancelled)
{
	cancelled_midway(true, NULL);
}

TEST(views_over_lanes_that_are_cancelled)
{
	cancelled_midway(true, over_lanes);
}
