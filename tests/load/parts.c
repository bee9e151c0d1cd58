// SPDX-License-Identifier: GPL-2.0
/*
 * Cases: parts of tensors and elements with gaps between them, the newest step, and generations.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cases.h"

/* From a row to the next one, where they have gaps as long as they are */
#define APART (2 * SQUARE)
#define SPREAD_BYTES (UINT64_C(1) * (SQUARE - 1) * APART + SQUARE)
#define GROUP 1
#define NAMES 16

static const struct rdmatensor_stride apart[] = { { APART, SQUARE }, { 1, SQUARE } };

/* @op, and its entry of that type, which goes to @cqe if that is not NULL */
static int run(struct scene *scene, struct rdmatensor_op *op, int type,
	       struct rdmatensor_cqe *cqe, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	int ret;

	op->user_data = worker_number();
	worker_submit(&scene->w, op);
	ret = scene_next(scene, type, op->user_data, cqe);
	*took_ns = since(began);
	return ret;
}

/* Row after row together, as they came */
static bool square_is(const unsigned char *at, uint64_t stride, uint64_t first, uint64_t nr)
{
	unsigned char whole[SMALL_BYTES];
	uint64_t i;

	perf_fill(whole, sizeof(whole));
	for (i = 0; i < nr; i++)
		if (memcmp(at + i * stride, whole + (first + i) * SQUARE, SQUARE))
			return false;
	return true;
}

/* The rows from a quarter to three quarters */
int fetch_slice(struct scene *scene, uint64_t *took_ns)
{
	const struct rdmatensor_range rows = { SQUARE / 4, SQUARE / 2 };
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_fetch(&op, scene->w.channel, SQUARE_NAME, 0, scene->w.pool.id, scene->at,
			      SMALL_BYTES / 2, 0, 0);
	rdmatensor_prep_slice(&op, &rows, 1);
	ret = run(scene, &op, RDMATENSOR_CQE_FETCH, NULL, took_ns);
	return !ret && !square_is(worker_at(&scene->w, scene->at), SQUARE, SQUARE / 4, SQUARE / 2) ?
	       WRONG : ret;
}

static uint64_t spread_begin(struct scene *scene, const char *name, int64_t step)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;

	memset(worker_at(&scene->w, scene->at), 0xee, SPREAD_BYTES);
	rdmatensor_prep_fetch(&op, scene->w.channel, name, step, scene->w.pool.id, scene->at,
			      SPREAD_BYTES, 0, number);
	rdmatensor_prep_strides(&op, apart, 2);
	worker_submit(&scene->w, &op);
	return number;
}

/* What lies between the rows stays what it was */
static bool gaps_are_whole(const struct scene *scene)
{
	const unsigned char *at = worker_at(&scene->w, scene->at);
	unsigned int i, k;

	for (i = 0; i < SQUARE - 1; i++)
		for (k = SQUARE; k < APART; k++)
			if (at[i * APART + k] != 0xee)
				return false;
	return true;
}

int fetch_spread(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_FETCH, spread_begin(scene, SQUARE_NAME, 0), NULL);
	*took_ns = since(began);
	return !ret && !(square_is(worker_at(&scene->w, scene->at), APART, 0, SQUARE) &&
			 gaps_are_whole(scene)) ? WRONG : ret;
}

int fetch_spread_cancel(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = spread_begin(scene, "nobody's", scene->step++);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	cancel(scene, number);
	ret = scene_next(scene, RDMATENSOR_CQE_FETCH, number, NULL);
	*took_ns = since(began);
	return gaps_are_whole(scene) ? ret : WRONG;
}

/* Of a name that has one step, @flags say which */
static int fetch_by(struct scene *scene, const char *name, uint16_t flags, uint64_t *took_ns)
{
	struct rdmatensor_cqe cqe = { 0 };
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_fetch(&op, scene->w.channel, name, -1, scene->w.pool.id, scene->at,
			      SMALL_BYTES, 0, 0);
	op.flags |= flags;
	ret = run(scene, &op, RDMATENSOR_CQE_FETCH, &cqe, took_ns);
	return !ret && (cqe.step_id || !perf_is(worker_at(&scene->w, scene->at), SMALL_BYTES)) ?
	       WRONG : ret;
}

int fetch_newest(struct scene *scene, uint64_t *took_ns)
{
	return fetch_by(scene, SQUARE_NAME, RDMATENSOR_OP_NEWEST, took_ns);
}

int fetch_now(struct scene *scene, uint64_t *took_ns)
{
	return fetch_by(scene, "nobody's", RDMATENSOR_OP_NEWEST | RDMATENSOR_OP_NOWAIT, took_ns);
}

/* Read in place, by the peer; from the order to it to fetch it */
int publish_view(struct scene *scene, uint64_t *took_ns)
{
	const uint64_t dims[] = { SQUARE, SQUARE };
	uint64_t number = worker_number(), began;
	int64_t step = scene->step++;
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_publish(&op, "lent", step, scene->w.pool.id, scene->lent, SMALL_BYTES,
				RDMATENSOR_DT_UINT8, 2, dims, 1, number);
	rdmatensor_prep_strides(&op, apart, 2);
	worker_submit(&scene->w, &op);
	began = rdmatensor_now_ns();
	scene_order(scene, "get lent %lld", (long long)step);
	ret = scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL);
	*took_ns = since(began);
	return ret;
}

/* Of NAMES tensors, hidden. Return: its step */
static int64_t generation_fill(struct scene *scene)
{
	int64_t step = scene->step++;
	uint64_t dim = SMALL_BYTES;
	struct rdmatensor_op op;
	char name[16];
	int i;

	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "member.%d", i);
		rdmatensor_prep_publish(&op, name, step, scene->w.pool.id, scene->lent,
					SMALL_BYTES, RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
		rdmatensor_prep_in_generation(&op, GROUP);
		worker_submit(&scene->w, &op);
	}
	return step;
}

/* In place of the former one, if there is one */
static int reveal(struct scene *scene, int64_t step, uint64_t *took_ns)
{
	struct rdmatensor_op op;

	rdmatensor_prep_reveal(&op, GROUP, step, 0);
	return run(scene, &op, RDMATENSOR_CQE_REVEAL, NULL, took_ns);
}

static int withdraw_generation(struct scene *scene, int64_t step, uint64_t *took_ns)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw_generation(&op, GROUP, step, 0);
	return run(scene, &op, RDMATENSOR_CQE_WITHDRAW, NULL, took_ns);
}

/* The second one, which takes the place of the first */
int generation_revealed(struct scene *scene, uint64_t *took_ns)
{
	int64_t first = generation_fill(scene), second;
	uint64_t ignored;
	int ret;

	if (reveal(scene, first, &ignored))
		return WRONG;
	second = generation_fill(scene);
	ret = reveal(scene, second, took_ns);
	return withdraw_generation(scene, second, &ignored) ? WRONG : ret;
}

int generation_withdrawn(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = generation_fill(scene);
	uint64_t ignored;

	return reveal(scene, step, &ignored) ? WRONG : withdraw_generation(scene, step, took_ns);
}
