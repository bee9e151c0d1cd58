// SPDX-License-Identifier: GPL-2.0
/*
 * Steps as readers of weights use them: the newest one, an answer at once, and generations, which
 * become visible together and take each other's place.
 */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define POOL (4u << 20)
#define BYTES 30000
#define NAMES 5
#define GROUP 0x77656967687473ull

static struct pair p;
static int domain;
/* Where the last tensor is that was hidden */
static uint64_t hidden_at;

/* As publish(), hidden. Return: the operation's error */
static int hide(struct side *side, const char *name, int64_t step, unsigned int seed)
{
	const uint64_t dim = BYTES;
	struct rdmatensor_op op;
	uint64_t at;

	at = side_alloc(side, BYTES);
	hidden_at = at;
	fill(side_at(side, at), BYTES, seed);
	rdmatensor_prep_publish(&op, name, step, side->pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	rdmatensor_prep_in_generation(&op, GROUP);
	return side_do(side, &op);
}

static int reveal(struct side *side, int64_t step, uint64_t user_data)
{
	struct rdmatensor_op op;

	rdmatensor_prep_reveal(&op, GROUP, step, user_data);
	return side_do(side, &op);
}

static void revealed(struct side *side, int64_t step, uint64_t user_data)
{
	struct rdmatensor_cqe cqe;

	EQ(reveal(side, step, user_data), 0);
	EQ(side_next(side, RDMATENSOR_CQE_REVEAL, user_data, &cqe), 0);
	EQ(cqe.step_id, step);
}

static const char *name_of(int i)
{
	static char name[16];

	snprintf(name, sizeof(name), "w%d", i);
	return name;
}

/* All names of a step, whose bytes tell step and name */
static void hide_all(struct side *side, int64_t step)
{
	int i;

	for (i = 0; i < NAMES; i++)
		EQ(hide(side, name_of(i), step, step * NAMES + i), 0);
}

/* A fetch of @side's, over its channel or of itself, to a new region */
static void asked(struct side *side, struct rdmatensor_op *op, const char *name, int64_t step,
		  unsigned int flags, uint64_t user_data)
{
	rdmatensor_prep_fetch_alloc(op, side->channel, name, step, side->pool.id, 0,
				    rdmatensor_deadline_ms(10000), user_data);
	op->flags |= flags;
	EQ(side_do(side, op), 0);
}

static int get(struct side *side, const char *name, int64_t step, unsigned int flags,
	       struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;

	asked(side, &op, name, step, flags, 5);
	return side_next(side, RDMATENSOR_CQE_FETCH, 5, cqe);
}

/* It comes, from this step, and is right. The region is freed */
static void comes(struct side *side, const char *name, int64_t from, unsigned int flags,
		  int64_t step, unsigned int seed)
{
	struct rdmatensor_cqe cqe;

	EQ(get(side, name, from, flags, &cqe), 0);
	EQ(cqe.step_id, step);
	EQ(cqe.tensor_bytes, BYTES);
	CHECK(filled(side_at(side, cqe.offset), BYTES, seed));
	EQ(rdmatensor_pool_free(side->rt, &side->pool, cqe.offset), 0);
}

/* It does not, with this errno and a text that has @why */
static void refused(struct side *side, const char *name, int64_t step, unsigned int flags,
		    int error, const char *why)
{
	char text[RDMATENSOR_STATUS_TEXT_MAX + 1];
	struct rdmatensor_cqe cqe;

	EQ(get(side, name, step, flags, &cqe), error);
	EQ(cqe.step_id, step);
	snprintf(text, sizeof(text), "%.*s", (int)cqe.text_len, cqe.text);
	if (!(cqe.flags & RDMATENSOR_CQE_TEXT) || !strstr(text, why))
		test_fail(__FILE__, __LINE__, "\"%s\" is not in: %s", why, text);
}

/* What is there of a name, and what is waited for */
static void newest_of(struct side *side)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	publish(&p.a, "n", 3, BYTES, 3, 0, 0);
	publish(&p.a, "n", -9, BYTES, 1, 0, 0);
	publish(&p.a, "n", INT64_MAX, BYTES, 9, 1, 9);
	publish(&p.a, "nn", 4, BYTES, 2, 0, 0);
	comes(side, "n", INT64_MIN, RDMATENSOR_OP_NEWEST, INT64_MAX, 9);
	/* It is used up */
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 9, NULL), 0);
	comes(side, "n", -9, RDMATENSOR_OP_NEWEST, 3, 3);
	comes(side, "n", 3, RDMATENSOR_OP_NEWEST | RDMATENSOR_OP_NOWAIT, 3, 3);
	/* The second time its meta-data are known, and the step is not */
	comes(side, "n", 0, RDMATENSOR_OP_NEWEST, 3, 3);
	comes(side, "n", -9, 0, -9, 1);

	/* What is not there yet is waited for, from that step on */
	asked(side, &op, "n", 4, RDMATENSOR_OP_NEWEST, 6);
	publish(&p.a, "n", 2, BYTES, 5, 0, 0);
	side_none(side, RDMATENSOR_CQE_FETCH, 6, 20);
	publish(&p.a, "n", 7, BYTES, 7, 0, 0);
	EQ(side_next(side, RDMATENSOR_CQE_FETCH, 6, &cqe), 0);
	EQ(cqe.step_id, 7);
	CHECK(filled(side_at(side, cqe.offset), BYTES, 7));
}

TEST(newest_step_of_a_peer)
{
	pair_open(&p, POOL, NULL);
	newest_of(&p.b);
}

TEST(newest_step_of_oneself)
{
	pair_open(&p, POOL, NULL);
	p.a.channel = RDMATENSOR_CHANNEL_SELF;
	newest_of(&p.a);
}

static void validated(struct rdmatensor_start *start)
{
	start->flags |= RDMATENSOR_START_VALIDATE;
}

TEST(newest_step_with_a_checksum)
{
	pair_open(&p, POOL, validated);
	publish(&p.a, "n", 3, BYTES, 3, 0, 0);
	comes(&p.b, "n", 0, RDMATENSOR_OP_NEWEST, 3, 3);
	comes(&p.b, "n", 0, RDMATENSOR_OP_NEWEST, 3, 3);
}

TEST(newest_step_of_a_part)
{
	const struct rdmatensor_range range = { 100, 1000 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t from, at;

	pair_open(&p, POOL, NULL);
	from = publish(&p.a, "n", 3, BYTES, 3, 0, 0);
	at = side_alloc(&p.b, 1000);
	rdmatensor_prep_fetch(&op, p.b.channel, "n", 1, p.b.pool.id, at, 1000,
			      rdmatensor_deadline_ms(10000), 5);
	rdmatensor_prep_slice(&op, &range, 1);
	op.flags |= RDMATENSOR_OP_NEWEST;
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 5, &cqe), 0);
	EQ(cqe.step_id, 3);
	CHECK(!memcmp(side_at(&p.b, at), side_at(&p.a, from + 100), 1000));
}

/* A wait for any step belongs to none; what has been found belongs to its publisher's */
TEST(newest_step_and_aborts)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	pair_open(&p, POOL, NULL);
	asked(&p.b, &op, "n", 3, RDMATENSOR_OP_NEWEST, 6);
	EQ(rdmatensor_step_abort(p.b.rt, 3, -EIO, "why"), 0);
	EQ(rdmatensor_step_abort(p.a.rt, 3, -EIO, "why"), 0);
	EQ(rdmatensor_step_abort(p.a.rt, 0, -EIO, "why"), 0);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 6, 20);
	/* Nor does what has ended keep one from beginning */
	asked(&p.b, &op, "n", 3, RDMATENSOR_OP_NEWEST, 7);
	publish(&p.a, "n", 4, BYTES, 4, 0, 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 7, NULL), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 6, &cqe), 0);
	EQ(cqe.step_id, 4);
	/* Aborted, it is not the newest one any more */
	publish(&p.a, "n", 2, BYTES, 2, 0, 0);
	EQ(rdmatensor_step_abort(p.a.rt, 4, -EIO, "why"), 0);
	comes(&p.b, "n", 1, RDMATENSOR_OP_NEWEST, 2, 2);
}

/* A publisher's failure is found like a tensor */
TEST(newest_step_that_failed)
{
	struct rdmatensor_op op;

	pair_open(&p, POOL, NULL);
	publish(&p.a, "n", 2, BYTES, 2, 0, 0);
	rdmatensor_prep_publish_failed(&op, "n", 3, -EDOM, "diverged", 1, 1);
	EQ(side_do(&p.a, &op), 0);
	refused(&p.b, "n", 1, RDMATENSOR_OP_NEWEST, -EDOM, "diverged");
	comes(&p.b, "n", 1, RDMATENSOR_OP_NEWEST, 2, 2);
}

static void no_wait(struct side *side)
{
	refused(side, "n", 1, RDMATENSOR_OP_NOWAIT, -ENOENT, "not offered now");
	refused(side, "n", 1, RDMATENSOR_OP_NOWAIT | RDMATENSOR_OP_NEWEST, -ENOENT,
		"no such step of it");
	publish(&p.a, "n", 1, BYTES, 1, 1, 1);
	comes(side, "n", 1, RDMATENSOR_OP_NOWAIT, 1, 1);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	refused(side, "n", 1, RDMATENSOR_OP_NOWAIT, -ENOENT, "not offered now");
}

TEST(no_wait_for_a_peer)
{
	pair_open(&p, POOL, NULL);
	no_wait(&p.b);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_CHANNELS_DOWN), 0);
}

TEST(no_wait_for_oneself)
{
	pair_open(&p, POOL, NULL);
	p.a.channel = RDMATENSOR_CHANNEL_SELF;
	no_wait(&p.a);
}

/* How many tensors a LIST tells */
static int listed(struct side *side)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at, n = 0, done;

	at = side_alloc(side, 8192);
	rdmatensor_prep_list(&op, side->channel, "", side->pool.id, at, 8192, 0,
			     rdmatensor_deadline_ms(10000), 4);
	EQ(side_do(side, &op), 0);
	EQ(side_next(side, RDMATENSOR_CQE_LIST, 4, &cqe), 0);
	EQ(rdmatensor_list_cursor(&cqe), 0);
	for (done = 0; done < cqe.tensor_bytes; n++) {
		const struct rdmatensor_list_entry *entry =
			(const void *)(side_at(side, at) + done);

		done += entry->bytes;
	}
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
	return n;
}

/* Of those that are published with uses 0, how many are hidden */
static int hidden(struct side *side)
{
	struct rdmatensor_lasting_query query = { .size = sizeof(query) };
	int n = 0;

	while (!rdmatensor_lasting_query(side->rt, &query))
		n += !!(query.flags & RDMATENSOR_LASTING_HIDDEN);
	return n;
}

TEST(a_generation_is_hidden_until_it_is_revealed)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	int i;

	pair_open(&p, POOL, NULL);
	hide_all(&p.a, 1);
	EQ(hidden(&p.a), NAMES);
	EQ(listed(&p.b), 0);
	refused(&p.b, "w1", 1, RDMATENSOR_OP_NOWAIT, -ENOENT, "not offered now");
	refused(&p.b, "w1", 0, RDMATENSOR_OP_NOWAIT | RDMATENSOR_OP_NEWEST, -ENOENT,
		"no such step of it");
	EQ(hide(&p.a, "w1", 1, 0), -EEXIST);
	/* Who waits meets it then */
	asked(&p.b, &op, "w0", 1, 0, 6);
	asked(&p.b, &op, "w2", -5, RDMATENSOR_OP_NEWEST, 7);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 6, 20);

	revealed(&p.a, 1, 11);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 6, &cqe), 0);
	CHECK(filled(side_at(&p.b, cqe.offset), BYTES, NAMES));
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 7, &cqe), 0);
	EQ(cqe.step_id, 1);
	CHECK(filled(side_at(&p.b, cqe.offset), BYTES, NAMES + 2));
	for (i = 0; i < NAMES; i++)
		comes(&p.b, name_of(i), 0, RDMATENSOR_OP_NEWEST, 1, NAMES + i);
	EQ(hidden(&p.a), 0);
	EQ(listed(&p.b), NAMES);
	EQ(reveal(&p.a, 1, 12), -ENOENT);
	EQ(reveal(&p.a, 2, 12), -ENOENT);
	EQ(hide(&p.a, "late", 1, 0), -EALREADY);
}

static void hide_shared(struct side *side, int64_t step)
{
	uint64_t at = side_alloc(side, BYTES), dim = BYTES;
	struct rdmatensor_op op;

	rdmatensor_prep_publish(&op, "s", step, side->pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	op.flags |= RDMATENSOR_OP_SHARE;
	rdmatensor_prep_in_generation(&op, GROUP);
	EQ(side_do(side, &op), 0);
}

/* Return: the share, until whose release the tensor is read */
static uint32_t share_of(struct side *side, int64_t step)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_shared(&op, "s", step, 0, 5);
	EQ(side_do(side, &op), 0);
	EQ(side_next(side, RDMATENSOR_CQE_FETCH, 5, &cqe), 0);
	return cqe.share_id;
}

/* Generation 3, of one tensor that is read until its share, which is returned, is released */
static uint32_t revealed_and_read(struct side *side)
{
	hide_shared(side, 3);
	revealed(side, 3, 13);
	return share_of(side, 3);
}

TEST(a_generation_takes_the_place_of_another)
{
	struct rdmatensor_op op;
	uint64_t former_at;
	uint32_t share;
	int i;

	pair_open(&p, POOL, NULL);
	hide_all(&p.a, 1);
	revealed(&p.a, 1, 11);
	former_at = hidden_at;
	hide_all(&p.a, 2);
	for (i = 0; i < NAMES; i++)
		comes(&p.b, name_of(i), 0, RDMATENSOR_OP_NEWEST, 1, NAMES + i);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, former_at), -EBUSY);
	revealed(&p.a, 2, 12);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, former_at), 0);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, hidden_at), -EBUSY);
	for (i = 0; i < NAMES; i++) {
		comes(&p.b, name_of(i), 0, RDMATENSOR_OP_NEWEST, 2, 2 * NAMES + i);
		comes(&p.b, name_of(i), 2, 0, 2, 2 * NAMES + i);
		refused(&p.b, name_of(i), 1, 0, -ESTALE, "step 2 has taken the place");
	}
	EQ(listed(&p.b), NAMES);

	/* A reader of the former one holds its entry back */
	share = revealed_and_read(&p.a);
	hide_all(&p.a, 4);
	EQ(reveal(&p.a, 4, 14), 0);
	comes(&p.b, "w3", 0, RDMATENSOR_OP_NEWEST, 4, 4 * NAMES + 3);
	side_none(&p.a, RDMATENSOR_CQE_REVEAL, 14, 20);
	rdmatensor_prep_release(&op, share);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_REVEAL, 14, NULL), 0);

	/* Back to an older step, quietly */
	hide_all(&p.a, 1);
	rdmatensor_prep_reveal(&op, GROUP, 1, 15);
	op.flags |= RDMATENSOR_OP_QUIET;
	EQ(side_do(&p.a, &op), 0);
	comes(&p.b, "w3", 0, RDMATENSOR_OP_NEWEST, 1, NAMES + 3);
	side_none(&p.a, RDMATENSOR_CQE_REVEAL, 15, 20);
}

/* A part of it must not be revealed */
TEST(a_generation_whose_step_is_aborted)
{
	int i;

	pair_open(&p, POOL, NULL);
	hide_all(&p.a, 1);
	revealed(&p.a, 1, 11);
	hide_all(&p.a, 2);
	EQ(hide(&p.a, "other step", 3, 3), 0);
	EQ(rdmatensor_step_abort(p.a.rt, 2, -EIO, "why"), 0);
	EQ(reveal(&p.a, 2, 12), -ENOENT);
	EQ(hide(&p.a, "late", 2, 2), -EIO);
	comes(&p.b, "w1", 0, RDMATENSOR_OP_NEWEST, 1, NAMES + 1);
	/* Nor when it has been forgotten */
	for (i = 0; i < 64; i++)
		EQ(rdmatensor_step_abort(p.a.rt, 100 + i, -EIO, "why"), 0);
	EQ(reveal(&p.a, 2, 12), -ENOENT);
	revealed(&p.a, 3, 13);
	comes(&p.b, "other step", 0, RDMATENSOR_OP_NEWEST, 3, 3);
}

TEST(a_generation_is_gone_back_from)
{
	pair_open(&p, POOL, NULL);
	hide_all(&p.a, 1);
	revealed(&p.a, 1, 11);
	hide_all(&p.a, 2);
	revealed(&p.a, 2, 12);
	hide_all(&p.a, 1);
	revealed(&p.a, 1, 13);
	refused(&p.b, "w1", 2, 0, -ESTALE, "step 1 has taken the place");
	comes(&p.b, "w1", 0, RDMATENSOR_OP_NEWEST, 1, NAMES + 1);
}

/* A failure and a copy are of it as any other tensor */
/* A copy of what is written to @at, of a step that is not visible yet */
static void hide_copy(uint64_t at, int64_t step)
{
	const uint64_t dim = BYTES;
	struct rdmatensor_op op;

	fill(side_at(&p.a, at), BYTES, step);
	rdmatensor_prep_publish(&op, "copy", step, p.a.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	op.flags |= RDMATENSOR_OP_COPY;
	rdmatensor_prep_in_generation(&op, GROUP);
	EQ(side_do(&p.a, &op), 0);
}

TEST(a_generation_of_all_kinds)
{
	struct rdmatensor_op op;
	uint64_t at, before;
	int i;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, BYTES);
	for (i = 0; i < 3; i++) {
		before = side_stat(&p.a, RDMATENSOR_STAT_PUBLISH_COPIES);
		hide_copy(at, i);
		EQ(side_stat(&p.a, RDMATENSOR_STAT_PUBLISH_COPIES), before + 1);
		rdmatensor_prep_publish_failed(&op, "failed", i, -EDOM, "diverged", 0, 0);
		rdmatensor_prep_in_generation(&op, GROUP);
		EQ(side_do(&p.a, &op), 0);
		revealed(&p.a, i, 11);
		comes(&p.b, "copy", 0, RDMATENSOR_OP_NEWEST, i, i);
		refused(&p.b, "failed", i, 0, -EDOM, "diverged");
	}
}

/* The buffer of a copy serves the next one of its name, unless the generation is withdrawn */
TEST(a_withdrawn_generation_keeps_no_buffer)
{
	struct rdmatensor_op op;
	uint64_t at;
	int i;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, BYTES);
	for (i = 0; i < 6; i++) {
		hide_copy(at, i);
		revealed(&p.a, i, 11);
		comes(&p.b, "copy", i, 0, i, i);
		/* Two that follow each other have one each, and the next but one the former one's */
		EQ(side_stat(&p.a, RDMATENSOR_STAT_BUFFERS_MADE), i < 2 ? i + 1 : 2 + i / 5);
		if (i != 3)
			continue;
		rdmatensor_prep_withdraw_generation(&op, GROUP, i, 21);
		EQ(side_do(&p.a, &op), 0);
		EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 21, NULL), 0);
	}
}

TEST(a_generation_is_withdrawn)
{
	struct rdmatensor_op op;
	int i;

	pair_open(&p, POOL, NULL);
	for (i = 0; i < 2; i++) {
		hide_all(&p.a, 1);
		if (i)
			revealed(&p.a, 1, 11);
		rdmatensor_prep_withdraw_generation(&op, GROUP, 1, 21);
		EQ(side_do(&p.a, &op), 0);
		EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 21, NULL), 0);
		EQ(side_do(&p.a, &op), -ENOENT);
		EQ(reveal(&p.a, 1, 12), -ENOENT);
		refused(&p.b, "w1", 0, RDMATENSOR_OP_NOWAIT | RDMATENSOR_OP_NEWEST, -ENOENT,
			"no such step");
		/* The memory is the process's again */
		EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, hidden_at), 0);
	}
	/* One of it goes by itself, hidden; another one, visible */
	hide_all(&p.a, 1);
	rdmatensor_prep_withdraw(&op, "w0", 1, 22);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 22, NULL), 0);
	revealed(&p.a, 1, 11);
	rdmatensor_prep_withdraw(&op, "w1", 1, 22);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 22, NULL), 0);
	EQ(listed(&p.b), NAMES - 2);
	comes(&p.b, "w2", 1, 0, 1, NAMES + 2);
}

static void join(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_domain(start, domain), 0);
}

/* Readers of a writer that dies see what was revealed, by whom that may be, and nothing else */
TEST(a_writer_dies_before_it_reveals)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_op op;
	uint64_t at, began;
	struct side writer;
	int i;

	pair_open(&p, POOL, NULL);
	EQ(rdmatensor_domain_create(p.a.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	for (i = 0; i < 3; i++) {
		side_open(&writer, "writer", POOL, 0, join);
		hide_all(&writer, 2 * i + 1);
		revealed(&writer, 2 * i + 1, 11);
		hide_all(&writer, 2 * i + 2);
		at = hidden_at;
		/* Nobody else's to fill or to reveal */
		EQ(hide(&p.a, "mine", 2 * i + 2, 0), -EBUSY);
		EQ(reveal(&p.a, 2 * i + 2, 12), -ENOENT);
		rdmatensor_prep_withdraw_generation(&op, GROUP, 2 * i + 2, 21);
		EQ(side_do(&p.a, &op), -EBUSY);
		rdmatensor_prep_withdraw(&op, "w0", 2 * i + 2, 22);
		EQ(side_do(&p.a, &op), -EBUSY);
		EQ(hidden(&p.a), NAMES);
		pool = writer.pool;
		side_close(&writer);
		/* Nothing reads it, and a worker lets go of it */
		began = rdmatensor_now_ns();
		while (rdmatensor_pool_free(p.a.rt, &pool, at) == -EBUSY && ms_since(began) < 5000)
			usleep(1000);
		EQ(rdmatensor_pool_free(p.a.rt, &pool, at), -ENOENT);
		comes(&p.b, "w1", 0, RDMATENSOR_OP_NEWEST, 2 * i + 1, (2 * i + 1) * NAMES + 1);
		comes(&p.b, "w1", 2 * i + 1, 0, 2 * i + 1, (2 * i + 1) * NAMES + 1);
		refused(&p.b, "w1", 2 * i + 2, RDMATENSOR_OP_NOWAIT, -ENOENT, "not offered now");
	}
	/* Its place is free again */
	hide_all(&p.a, 2);
	revealed(&p.a, 2, 11);
	comes(&p.b, "w1", 0, RDMATENSOR_OP_NEWEST, 2, 2 * NAMES + 1);
	close(domain);
}

/* A context that ends does not wait for readers of what it has replaced */
TEST(a_writer_dies_before_its_entry)
{
	struct rdmatensor_op op;
	uint32_t shares[2];
	struct side writer;
	int i;

	pair_open(&p, POOL, NULL);
	EQ(rdmatensor_domain_create(p.a.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	shares[0] = revealed_and_read(&p.a);
	side_open(&writer, "writer", POOL, 0, join);
	hide_all(&writer, 4);
	hide_shared(&writer, 4);
	EQ(reveal(&writer, 4, 14), 0);
	shares[1] = share_of(&p.a, 4);
	side_none(&writer, RDMATENSOR_CQE_REVEAL, 14, 20);
	/* Neither one that waits for its entry nor one that wants none */
	hide_all(&writer, 5);
	rdmatensor_prep_reveal(&op, GROUP, 5, 15);
	op.flags |= RDMATENSOR_OP_QUIET;
	EQ(side_do(&writer, &op), 0);
	side_close(&writer);
	comes(&p.b, "w3", 0, RDMATENSOR_OP_NEWEST, 5, 5 * NAMES + 3);
	for (i = 0; i < 2; i++) {
		rdmatensor_prep_release(&op, shares[i]);
		EQ(side_do(&p.a, &op), 0);
	}
	close(domain);
}

#define BATCH 512
/* Of few names and of many: the shortest of fewer is longer */
#define REVEALS 20

/* @nr names of a step, all of the same memory */
static void hide_many(struct side *side, unsigned int nr, int64_t step, uint64_t at)
{
	static struct rdmatensor_op ops[BATCH];
	static char names[BATCH][16];
	const uint64_t dim = 64;
	unsigned int i, taken;

	while (nr) {
		for (i = 0; i < BATCH && nr; i++, nr--) {
			snprintf(names[i], sizeof(names[i]), "m%u", nr);
			rdmatensor_prep_publish(&ops[i], names[i], step, side->pool.id, at, dim,
						RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
			rdmatensor_prep_in_generation(&ops[i], GROUP);
		}
		EQ(rdmatensor_submit(side->rt, ops, i, 0, 0, &taken), 0);
		EQ(taken, i);
	}
}

/* Of this thread's own: a worker may take the processor as soon as it has something to do */
static uint64_t spent_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
	return spent.tv_sec * 1000000000ull + spent.tv_nsec;
}

/* The shortest REVEAL of @times, each of as many names in place of as many */
static uint64_t reveal_ns(struct side *side, unsigned int nr, unsigned int times, uint64_t at)
{
	uint64_t best = UINT64_MAX, began, ns;
	struct rdmatensor_op op;
	static int64_t step;

	while (times--) {
		hide_many(side, nr, ++step, at);
		rdmatensor_prep_reveal(&op, GROUP, step, 1);
		began = spent_ns();
		EQ(side_do(side, &op), 0);
		ns = spent_ns() - began;
		/* Emulated processors have clocks that stand still now and then */
		best = ns && ns < best ? ns : best;
		EQ(side_next(side, RDMATENSOR_CQE_REVEAL, 1, NULL), 0);
		test_alive();
	}
	return best;
}

/*
 * However many names become visible, it takes as long. By how much it differs tells only a clock
 * that counts instructions: GENERATION_NAMES says that there is one, and how many names. User-Mode
 * Linux counts ticks, which are too long
 */
TEST_STOCK(a_reveal_does_not_go_through_names)
{
	const char *most = getenv("GENERATION_NAMES");
	unsigned int nr = most ? atoi(most) : 2000;
	uint64_t few, many, at;

	pair_open(&p, POOL, NULL);
	at = side_alloc(&p.a, 64);
	/* The first one replaces nothing */
	reveal_ns(&p.a, 100, 1, at);
	few = reveal_ns(&p.a, 100, REVEALS, at);
	reveal_ns(&p.a, nr, 1, at);
	many = reveal_ns(&p.a, nr, REVEALS, at);
	printf("# REVEAL of 100 names %llu ns, of %u %llu ns\n", (unsigned long long)few, nr,
	       (unsigned long long)many);
	CHECK(few < UINT64_MAX);
	CHECK(!most || many * 10 < few * 11);
	CHECK(many < 1000000);
}
