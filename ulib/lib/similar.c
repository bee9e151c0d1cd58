// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Names that a peer offers and that look like one that it does not: for the words of an error. What
 * cannot be listed, or not in time, gives none.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define PAGE_BYTES (64u << 10)
#define BEST 3
/* Of a suggestion, which is a line's end */
#define NAME_SHOWN 80

/**
 * struct similar - one look
 * @name: that is not offered,
 * @len: its length
 * @other_step: the name is offered, under @step
 * @step: the highest of such
 * @nr: names at @best, the nearest first
 * @distance: of each
 * @row: of the distances' table
 */
struct similar {
	const char *name;
	size_t len;
	bool other_step;
	int64_t step;
	unsigned int nr;
	char best[BEST][NAME_SHOWN + 1];
	unsigned int distance[BEST];
	unsigned int row[RDMATENSOR_NAME_MAX + 1];
};

/* Of longer names more letters may differ */
static unsigned int most(const struct similar *similar)
{
	return similar->len < 6 ? 2 : (unsigned int)similar->len / 3;
}

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Letters that are put in, left out or replaced (Levenshtein), whatever their case */
static unsigned int distance(struct similar *similar, const char *other, size_t len)
{
	unsigned int *row = similar->row, above, left, least;
	size_t i, k;

	for (i = 0; i <= similar->len; i++)
		row[i] = (unsigned int)i;
	for (k = 0; k < len; k++) {
		left = row[0];
		row[0] = (unsigned int)k + 1;
		for (i = 0; i < similar->len; i++) {
			above = row[i + 1];
			least = left + !same_letter(similar->name[i], other[k]);
			if (above + 1 < least)
				least = above + 1;
			if (row[i] + 1 < least)
				least = row[i] + 1;
			left = above;
			row[i + 1] = least;
		}
	}
	return row[similar->len];
}

/* As a line of text has it */
static void show(char *shown, const char *name, size_t len)
{
	size_t i, n = len < NAME_SHOWN ? len : NAME_SHOWN;

	for (i = 0; i < n; i++)
		shown[i] = iscntrl((unsigned char)name[i]) ? '?' : name[i];
	shown[n] = '\0';
}

/* Among the best, in its place, if it is not there under another step already */
static void keep(struct similar *similar, const char *name, size_t len, unsigned int far)
{
	char shown[NAME_SHOWN + 1];
	unsigned int i, at;

	show(shown, name, len);
	for (i = 0; i < similar->nr; i++)
		if (!strcmp(similar->best[i], shown))
			return;
	for (at = similar->nr; at && similar->distance[at - 1] > far; at--)
		;
	if (at == BEST)
		return;
	if (similar->nr < BEST)
		similar->nr++;
	for (i = similar->nr - 1; i > at; i--) {
		memcpy(similar->best[i], similar->best[i - 1], sizeof(shown));
		similar->distance[i] = similar->distance[i - 1];
	}
	memcpy(similar->best[at], shown, sizeof(shown));
	similar->distance[at] = far;
}

static void look_at(struct similar *similar, const struct rdmatensor_list_entry *entry)
{
	const char *name = rdmatensor_list_name(entry);
	size_t len = entry->name_len, longer, shorter;
	unsigned int far;

	if (len == similar->len && !memcmp(name, similar->name, len)) {
		if (!similar->other_step || entry->step_id > similar->step)
			similar->step = entry->step_id;
		similar->other_step = true;
		return;
	}
	longer = len > similar->len ? len : similar->len;
	shorter = len + similar->len - longer;
	if (longer - shorter > most(similar))
		return;
	far = distance(similar, name, len);
	if (far <= most(similar))
		keep(similar, name, len, far);
}

static int look(struct rdmatensor *rt, uint32_t channel, const struct rdmatensor_pool *pool,
		uint64_t offset, uint64_t deadline_ns, struct similar *similar)
{
	const void *page = (const char *)pool->base + offset;
	const struct rdmatensor_list_entry *entry;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t cursor = 0;
	int err;

	do {
		rdmatensor_prep_list(&op, channel, NULL, pool->id, offset, PAGE_BYTES, cursor,
				     deadline_ns, 0);
		err = rdmatensor_run(rt, &op, &cqe);
		if (err)
			return err;
		for (entry = NULL; (entry = rdmatensor_list_next(page, cqe.tensor_bytes, entry));)
			look_at(similar, entry);
		cursor = rdmatensor_list_cursor(&cqe);
	} while (cursor && rdmatensor_now_ns() < deadline_ns);
	return 0;
}

static void say(const struct similar *similar, char *text, size_t len)
{
	const char *const *words;
	static const char *const between[BEST + 1][BEST] = {
		{ "", "", "" }, { "", "", "" }, { "", " or ", "" }, { "", ", ", " or " },
	};
	size_t at;
	unsigned int i;

	if (similar->other_step) {
		snprintf(text, len, "it is offered there under step %" PRId64, similar->step);
		return;
	}
	if (!similar->nr)
		return;
	words = between[similar->nr];
	at = (size_t)snprintf(text, len, "did you mean ");
	for (i = 0; i < similar->nr && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, "%s\"%s\"", words[i], similar->best[i]);
	if (at < len)
		snprintf(text + at, len - at, "?");
}

int rdmatensor_similar(struct rdmatensor *rt, uint32_t channel, const char *name,
		       uint64_t deadline_ns, char *text, size_t len)
{
	struct similar *similar;
	struct rdmatensor_pool pool;
	uint64_t offset;
	int err;

	if (len)
		text[0] = '\0';
	if (strlen(name) > RDMATENSOR_NAME_MAX || !deadline_ns)
		return -EINVAL;
	similar = calloc(1, sizeof(*similar));
	if (!similar)
		return -ENOMEM;
	similar->name = name;
	similar->len = strlen(name);
	err = rdmatensor_pool_create_peers(rt, PAGE_BYTES, RDMATENSOR_POOL_PEERS_NONE, &pool);
	if (err)
		goto out_free;
	err = rdmatensor_pool_alloc(rt, &pool, PAGE_BYTES, &offset);
	if (!err)
		err = look(rt, channel, &pool, offset, deadline_ns, similar);
	rdmatensor_pool_destroy(rt, &pool);
	/* What was seen until then is as good */
	if (len)
		say(similar, text, len);
	if (similar->other_step)
		err = 1;
	else if (similar->nr)
		err = (int)similar->nr;
out_free:
	free(similar);
	return err;
}
