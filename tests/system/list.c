// SPDX-License-Identifier: GPL-2.0
/*
 * Lists of what is offered: everything once, page by page, of peers and of the context itself, and
 * how a list ends that is refused, cancelled or late.
 */
#include <pthread.h>
#include "harness.h"

#define NAMES 300
#define POOL (4 << 20)

static struct pair p;

/* One page from behind @cursor, of @room bytes at @at. Return: its result */
static int list(struct side *side, uint32_t channel, const char *prefix, uint64_t at, uint64_t room,
		uint64_t cursor, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;

	rdmatensor_prep_list(&op, channel, prefix, side->pool.id, at, room, cursor,
			     rdmatensor_deadline_ms(10000), 77);
	EQ(side_do(side, &op), 0);
	return side_next(side, RDMATENSOR_CQE_LIST, 77, cqe);
}

/*
 * All pages of @room bytes: how often each number of a name "PREFIX/NUMBER" has come, in @seen.
 * Return: pages
 */
static unsigned int list_all(struct side *side, uint32_t channel, const char *prefix, uint64_t room,
			     unsigned int *seen)
{
	const struct rdmatensor_list_entry *entry;
	uint64_t at = side_alloc(side, room), cursor = 0;
	unsigned int pages = 0, number;
	struct rdmatensor_cqe cqe;

	memset(seen, 0, NAMES * sizeof(*seen));
	do {
		EQ(list(side, channel, prefix, at, room, cursor, &cqe), 0);
		EQ(cqe.pool_id, side->pool.id);
		EQ(cqe.offset, at);
		CHECK(cqe.tensor_bytes <= room);
		for (entry = NULL; (entry = rdmatensor_list_next(side_at(side, at), cqe.tensor_bytes,
								 entry));) {
			CHECK(entry->cursor > cursor);
			cursor = entry->cursor;
			EQ(strlen(rdmatensor_list_name(entry)), entry->name_len);
			CHECK(!strncmp(rdmatensor_list_name(entry), prefix, strlen(prefix)));
			number = (unsigned int)atoi(strchr(rdmatensor_list_name(entry), '/') + 1);
			CHECK(number < NAMES);
			seen[number]++;
			EQ(entry->step_id, number % 3);
			EQ(entry->tensor_bytes, 8 * (1 + number % 5));
			EQ(entry->data_type, RDMATENSOR_DT_UINT8);
			EQ(entry->ndims, 1);
			EQ(rdmatensor_list_dims(entry)[0], entry->tensor_bytes);
			EQ(entry->uses, number % 4);
			EQ(entry->status, 0);
			EQ(entry->flags, 0);
		}
		pages++;
		CHECK(rdmatensor_list_cursor(&cqe) >= cursor || !rdmatensor_list_cursor(&cqe));
		cursor = rdmatensor_list_cursor(&cqe);
	} while (cursor);
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
	return pages;
}

static void offer_numbers(struct side *side, const char *prefix)
{
	char name[32];
	unsigned int i;

	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%s/%u", prefix, i);
		publish(side, name, i % 3, 8 * (1 + i % 5), i, i % 4, i);
	}
}

static void all_once(struct side *side, uint32_t channel)
{
	unsigned int seen[NAMES], i;

	EQ(list_all(side, channel, "a", 1 << 20, seen), 1);
	for (i = 0; i < NAMES; i++)
		EQ(seen[i], 1);
	CHECK(list_all(side, channel, "b/", RDMATENSOR_LIST_ENTRY_MAX, seen) > NAMES / 20);
	for (i = 0; i < NAMES; i++)
		EQ(seen[i], 1);
	EQ(list_all(side, channel, "b/29", 1 << 16, seen), 1);
	for (i = 0; i < NAMES; i++)
		EQ(seen[i], i == 29 || i / 10 == 29);
	EQ(list_all(side, channel, "c", 1 << 16, seen), 1);
	for (i = 0; i < NAMES; i++)
		EQ(seen[i], 0);
}

TEST(list_has_everything_once)
{
	pair_open(&p, POOL, NULL);
	offer_numbers(&p.a, "a");
	offer_numbers(&p.a, "b");
	all_once(&p.b, p.b.channel);
	all_once(&p.a, RDMATENSOR_CHANNEL_SELF);
	CHECK(side_stat(&p.b, RDMATENSOR_STAT_LISTS) > 3);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_LISTS), side_stat(&p.b, RDMATENSOR_STAT_LISTED));
}

/* What it says of those that are no plain tensors, and of those that are none any more */
TEST(list_tells_what_is_there)
{
	const struct rdmatensor_list_entry *entry;
	uint64_t at, cursor, dims[RDMATENSOR_DIMS_MAX] = { 0 };
	char name[RDMATENSOR_NAME_MAX + 1];
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int i;

	pair_open(&p, POOL, NULL);
	rdmatensor_prep_publish_failed(&op, "failed", 5, -EDOM, "no luck", 1, 1);
	EQ(side_do(&p.a, &op), 0);
	dims[0] = 9;
	rdmatensor_prep_publish_dead(&op, "dead", 6, RDMATENSOR_DT_FLOAT, 1, dims, 2, 2);
	EQ(side_do(&p.a, &op), 0);
	/* The longest there is */
	memset(name, 'n', RDMATENSOR_NAME_MAX);
	name[RDMATENSOR_NAME_MAX] = '\0';
	for (i = 0; i < RDMATENSOR_DIMS_MAX; i++)
		dims[i] = i == 3 ? 64 : 1;
	at = side_alloc(&p.a, 64);
	rdmatensor_prep_publish(&op, name, -7, p.a.pool.id, at, 64, RDMATENSOR_DT_UINT8,
				RDMATENSOR_DIMS_MAX, dims, 0, 3);
	EQ(side_do(&p.a, &op), 0);
	publish(&p.a, "used up", 0, 8, 1, 1, 4);
	EQ(fetch(&p.b, "used up", 0, 8, NULL, &cqe), 0);
	publish(&p.a, "withdrawn", 0, 8, 1, 1, 5);
	EQ(rdmatensor_withdraw(p.a.rt, "withdrawn", 0), 0);
	/* A request that waits is none that is offered */
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "waits", 0, p.b.pool.id, 0, 0, 6);
	EQ(side_do(&p.b, &op), 0);

	at = side_alloc(&p.b, 4096);
	EQ(list(&p.b, p.b.channel, "", at, 4096, 0, &cqe), 0);
	EQ(rdmatensor_list_cursor(&cqe), 0);
	entry = rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, NULL);
	CHECK(entry && !strcmp(rdmatensor_list_name(entry), "failed"));
	EQ(entry->status, -EDOM);
	EQ(entry->data_type, RDMATENSOR_DT_INVALID);
	EQ(entry->step_id, 5);
	entry = rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, entry);
	CHECK(entry && !strcmp(rdmatensor_list_name(entry), "dead"));
	EQ(entry->flags, RDMATENSOR_LIST_DEAD);
	EQ(entry->tensor_bytes, 0);
	EQ(entry->uses, 2);
	EQ(rdmatensor_list_dims(entry)[0], 9);
	entry = rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, entry);
	CHECK(entry && !strcmp(rdmatensor_list_name(entry), name));
	EQ(entry->step_id, -7);
	EQ(entry->uses, 0);
	EQ(entry->bytes, RDMATENSOR_LIST_ENTRY_MAX);
	CHECK(!memcmp(rdmatensor_list_dims(entry), dims, sizeof(dims)));
	CHECK(!rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, entry));

	/* Room for two, then not for the third, then for it alone */
	EQ(list(&p.b, p.b.channel, "", at, 200, 0, &cqe), 0);
	entry = rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, NULL);
	entry = rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, entry);
	CHECK(entry && !rdmatensor_list_next(side_at(&p.b, at), cqe.tensor_bytes, entry));
	cursor = rdmatensor_list_cursor(&cqe);
	CHECK(cursor >= entry->cursor);
	EQ(list(&p.b, p.b.channel, "", at, RDMATENSOR_LIST_ENTRY_MAX - 8, cursor, &cqe), -EMSGSIZE);
	EQ(list(&p.a, RDMATENSOR_CHANNEL_SELF, "", side_alloc(&p.a, 4096), 40, 0, &cqe), -EMSGSIZE);
	EQ(list(&p.b, p.b.channel, "", at, RDMATENSOR_LIST_ENTRY_MAX, cursor, &cqe), 0);
	EQ(cqe.tensor_bytes, RDMATENSOR_LIST_ENTRY_MAX);
	/* Cursors that never were: behind all of the context's own, and behind all */
	EQ(list(&p.b, p.b.channel, "", at, 4096, UINT64_MAX >> 1, &cqe), 0);
	EQ(cqe.tensor_bytes, RDMATENSOR_LIST_ENTRY_MAX);
	EQ(list(&p.b, p.b.channel, "", at, 4096, UINT64_MAX, &cqe), 0);
	EQ(cqe.tensor_bytes, 0);
}

static void unlisted(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_set(start, "list_mode", RDMATENSOR_LIST_MODE_NONE), 0);
}

TEST(list_may_be_refused)
{
	char text[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, POOL, unlisted);
	publish(&p.a, "secret", 0, 8, 1, 1, 1);
	at = side_alloc(&p.b, 4096);
	EQ(list(&p.b, p.b.channel, "", at, 4096, 0, &cqe), -EACCES);
	CHECK(strstr(rdmatensor_status_text(p.b.rt, &cqe, text, sizeof(text)), "list_mode"));
	EQ(side_stat(&p.b, RDMATENSOR_STAT_LIST_ERRORS), 1);
	/* To the context itself it is no secret, nor to who knows the name */
	EQ(list(&p.a, RDMATENSOR_CHANNEL_SELF, "s", side_alloc(&p.a, 4096), 4096, 0, &cqe), 0);
	CHECK(cqe.tensor_bytes);
	EQ(fetch(&p.b, "secret", 0, 8, NULL, &cqe), 0);

	rdmatensor_prep_list(&op, 99, "", p.b.pool.id, at, 4096, 0, 0, 1);
	EQ(side_do(&p.b, &op), -ENOTCONN);
	rdmatensor_prep_list(&op, p.b.channel, "", p.b.pool.id + 1, at, 4096, 0, 0, 1);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_list(&op, p.b.channel, "", p.b.pool.id, at, 0, 0, 0, 1);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_list(&op, p.b.channel, "", p.b.pool.id, at, 8192, 0, 0, 1);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_list(&op, p.b.channel, "", p.b.pool.id, at + 4, 64, 0, 0, 1);
	EQ(side_do(&p.b, &op), -EINVAL);
	rdmatensor_prep_list(&op, p.b.channel, "", p.b.pool.id, at, 4096, 0, 0, 1);
	op.name_len = RDMATENSOR_NAME_MAX + 1;
	EQ(side_do(&p.b, &op), -EINVAL);
	op.name_len = 1;
	EQ(side_do(&p.b, &op), -EFAULT);
	op.name_len = 0;
	op.step_id = 1;
	EQ(side_do(&p.b, &op), -EINVAL);
	op.step_id = 0;
	op.flags = RDMATENSOR_OP_ALLOC;
	EQ(side_do(&p.b, &op), -EINVAL);
}

#define THREADS 4
#define ROUNDS 5

static unsigned int running;

/* Tensors of another prefix come and go */
static void *churn(void *arg)
{
	uint64_t at = (uint64_t)(uintptr_t)arg, dim = 8;
	struct rdmatensor_op op;
	char name[32];
	unsigned int i;

	for (i = 0; __atomic_load_n(&running, __ATOMIC_RELAXED); i++) {
		snprintf(name, sizeof(name), "b/%u", i % NAMES);
		rdmatensor_prep_publish(&op, name, i % NAMES % 3, p.a.pool.id, at, 8,
					RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
		if (rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL))
			break;
		rdmatensor_prep_withdraw(&op, name, i % NAMES % 3, 0);
		op.flags = RDMATENSOR_OP_QUIET;
		if (rdmatensor_submit(p.a.rt, &op, 1, 0, 0, NULL))
			break;
	}
	return __atomic_load_n(&running, __ATOMIC_RELAXED) ? "a call failed" : NULL;
}

/* Return: NULL, or what was wrong. Each has its own part of the pool */
static void *list_in_thread(void *arg)
{
	uint64_t at = (uint64_t)(uintptr_t)arg;
	const struct rdmatensor_list_entry *entry;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int round, seen;
	uint64_t cursor;

	for (round = 0; round < ROUNDS; round++) {
		cursor = 0;
		seen = 0;
		do {
			rdmatensor_prep_list(&op, p.b.channel, "a/", p.b.pool.id, at, 4096, cursor,
					     rdmatensor_deadline_ms(20000), 0);
			if (rdmatensor_run(p.b.rt, &op, &cqe))
				return "a list failed";
			for (entry = NULL; (entry = rdmatensor_list_next(side_at(&p.b, at),
									 cqe.tensor_bytes, entry));)
				seen++;
			cursor = rdmatensor_list_cursor(&cqe);
		} while (cursor);
		if (seen != NAMES)
			return "not all of them";
	}
	return NULL;
}

TEST(list_by_many_threads_beside_churn)
{
	pthread_t threads[THREADS], churns;
	const char *wrong;
	unsigned int i;
	void *end;

	pair_open(&p, POOL, NULL);
	offer_numbers(&p.a, "a");
	running = 1;
	EQ(pthread_create(&churns, NULL, churn, (void *)(uintptr_t)side_alloc(&p.a, 8)), 0);
	for (i = 0; i < THREADS; i++)
		EQ(pthread_create(&threads[i], NULL, list_in_thread,
				  (void *)(uintptr_t)side_alloc(&p.b, 4096)), 0);
	for (wrong = NULL, i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &end);
		wrong = wrong ? wrong : end;
	}
	running = 0;
	pthread_join(churns, &end);
	if (wrong || end)
		test_fail(__FILE__, __LINE__, "%s", wrong ? wrong : (const char *)end);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_LIST_ERRORS), 0);
}

/*
 * More than there are slots; each ends once, by its cancel, the deadline, or itself. A deadline
 * that is past already ends a list at the next tick, which a fast answer may precede: go on until
 * some were too late.
 */
TEST(lists_that_are_cancelled)
{
	unsigned int i, ends[3] = { 0 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at[16];

	pair_open(&p, POOL, NULL);
	offer_numbers(&p.a, "a");
	for (i = 0; i < 16; i++)
		at[i] = side_alloc(&p.b, 1 << 16);
	for (i = 0; i < 160 || i % 16 || !ends[0] || !ends[2]; i++) {
		rdmatensor_prep_list(&op, p.b.channel, "a", p.b.pool.id, at[i % 16], 1 << 16, 0,
				     i % 5 == 1 ? 1 : 0, i % 16 + 1);
		EQ(side_do(&p.b, &op), 0);
		if (i % 16 != 15)
			continue;
		for (op.target = 1; op.target <= 16; op.target += 3) {
			rdmatensor_prep_cancel(&op, op.target);
			side_do(&p.b, &op);
		}
		for (op.target = 1; op.target <= 16; op.target++) {
			int got = side_next(&p.b, RDMATENSOR_CQE_LIST, op.target, &cqe);

			CHECK(!got || got == -ECANCELED || got == -ETIMEDOUT);
			ends[!got ? 0 : got == -ECANCELED ? 1 : 2]++;
			if (!got)
				EQ(rdmatensor_list_cursor(&cqe), 0);
		}
	}
	EQ(ends[0] + ends[1] + ends[2], i);
	/* The destination is free as soon as the entry is there */
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at[0]), 0);
	/* Those that wait end with the channel */
	for (i = 1; i < 16; i++) {
		rdmatensor_prep_list(&op, p.b.channel, "a", p.b.pool.id, at[i], 1 << 16, 0, 0, 100 + i);
		EQ(side_do(&p.b, &op), 0);
	}
	side_close(&p.a);
	for (i = 1; i < 16; i++) {
		int got = side_next(&p.b, RDMATENSOR_CQE_LIST, 100 + i, &cqe);

		CHECK(!got || got == -ECONNRESET || got == -ESHUTDOWN);
	}
}
