// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is usual is what the better quarter of all pairs has: if one host of three is slow, so are most
 * pairs. Odd is what takes more than twice as long, or moves fewer than two thirds of the bytes, as a
 * port at half its speed does. A rank most of whose pairs are odd is named itself, and its pairs are
 * not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"
#include "tool/common/json.h"
#include "tool/common/numbers.h"
#include "tool/common/output.h"

/* Ranks whose numbers are as wide as a terminal */
#define RANKS_IN_NUMBERS 16
/* Lines of odd pairs */
#define PAIRS_SHOWN 16
/* A difference that no two fetches are free of, however short they are */
#define LATENCY_SLACK_NS 5000

/**
 * struct kind - one of the two matrices
 * @name: what is measured
 * @key: of its matrix in JSON
 * @unit: of a number that is shown
 * @scale: of what is measured, in such a unit
 * @values: the matrix
 * @usual: what the better quarter of those that were measured has
 * @fair: so many times worse is not odd
 * @rising: more is worse
 */
struct kind {
	const char *name;
	const char *key;
	const char *unit;
	double scale;
	const uint64_t *values;
	uint64_t usual;
	double fair;
	bool rising;
};

/**
 * struct view - what is shown
 * @heat: what was measured
 * @kinds: latency and bandwidth
 * @odd: of each rank and kind, how many of its pairs are odd
 * @pairs: of each rank and kind, how many were measured
 */
struct view {
	const struct heat *heat;
	struct kind kinds[2];
	unsigned int (*odd)[2];
	unsigned int (*pairs)[2];
};

#define NR_KINDS 2

/* From what is as it should be to what is not */
enum level { LEVEL_GOOD, LEVEL_FAIR, LEVEL_ODD, LEVEL_BAD, NR_LEVELS };

static const char signs[NR_LEVELS] = { '.', '-', '+', '#' };

static const char *const colours_of[NR_LEVELS] = {
	"\033[32m", "\033[33m", "\033[31m", "\033[1;41m",
};

/* 0: nothing was measured, or -ENOMEM */
static int find_usual(struct kind *kind, size_t nr)
{
	uint64_t *sorted = malloc((nr ? nr : 1) * sizeof(*sorted));
	size_t i, kept = 0;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		if (kind->values[i])
			sorted[kept++] = kind->values[i];
	qsort(sorted, kept, sizeof(*sorted), number_order);
	kind->usual = kept ? sorted[kind->rising ? (kept - 1) / 4 : kept - 1 - (kept - 1) / 4] : 0;
	free(sorted);
	return 0;
}

static enum level level_of(const struct kind *kind, uint64_t value)
{
	double times;

	if (kind->rising && value <= kind->usual + LATENCY_SLACK_NS)
		return LEVEL_GOOD;
	times = kind->rising ? (double)value / (double)kind->usual :
			       (double)kind->usual / (double)value;
	return times <= 1.25 ? LEVEL_GOOD : times <= kind->fair ? LEVEL_FAIR :
	       times <= 4 ? LEVEL_ODD : LEVEL_BAD;
}

static uint64_t value_at(const struct view *view, unsigned int kind, unsigned int from,
			 unsigned int to)
{
	return view->kinds[kind].values[(size_t)from * view->heat->size + to];
}

static bool is_odd(const struct view *view, unsigned int kind, unsigned int from, unsigned int to)
{
	uint64_t value = value_at(view, kind, from, to);

	return value && level_of(&view->kinds[kind], value) >= LEVEL_ODD;
}

/* Of two ranks there is no telling which is the odd one */
static bool rank_is_odd(const struct view *view, unsigned int kind, unsigned int rank)
{
	return view->heat->size > 2 && 2 * view->odd[rank][kind] > view->pairs[rank][kind];
}

static bool pair_is_shown(const struct view *view, unsigned int kind, unsigned int from,
			  unsigned int to)
{
	return is_odd(view, kind, from, to) && !rank_is_odd(view, kind, from) &&
	       !rank_is_odd(view, kind, to);
}

static void view_end(struct view *view)
{
	free(view->odd);
	free(view->pairs);
}

static int view_begin(struct view *view, const struct heat *heat)
{
	const struct kind kinds[NR_KINDS] = {
		{ .name = "latency of 4096 bytes", .key = "latency_us", .unit = "us", .scale = 1e3,
		  .values = heat->latency_ns, .fair = 2, .rising = true },
		{ .name = "bandwidth of 8 MiB", .key = "mb_per_s", .unit = "MB/s", .scale = 1e6,
		  .values = heat->bytes_per_s, .fair = 1.5 },
	};
	size_t all = (size_t)heat->size * heat->size;
	unsigned int kind, from, to;
	int err = 0;

	view->heat = heat;
	memcpy(view->kinds, kinds, sizeof(kinds));
	view->odd = calloc(heat->size, sizeof(*view->odd));
	view->pairs = calloc(heat->size, sizeof(*view->pairs));
	if (!view->odd || !view->pairs)
		err = -ENOMEM;
	for (kind = 0; !err && kind < NR_KINDS; kind++)
		err = find_usual(&view->kinds[kind], all);
	for (kind = 0; !err && kind < NR_KINDS; kind++) {
		for (from = 0; from < heat->size; from++) {
			for (to = 0; to < heat->size; to++) {
				view->pairs[from][kind] += !!value_at(view, kind, from, to);
				view->pairs[to][kind] += !!value_at(view, kind, from, to);
				view->odd[from][kind] += is_odd(view, kind, from, to);
				view->odd[to][kind] += is_odd(view, kind, from, to);
			}
		}
	}
	if (err)
		view_end(view);
	return err;
}

static void print_cell(const struct kind *kind, uint64_t value, bool colours, bool numbers, FILE *to)
{
	enum level level = value ? level_of(kind, value) : LEVEL_GOOD;
	const char *begin = colours && value ? colours_of[level] : "";
	const char *end = colours && value ? "\033[0m" : "";

	if (!value)
		fprintf(to, numbers ? " %8s" : "%s", numbers ? "-" : " ");
	else if (numbers)
		fprintf(to, " %s%8.*f%s", begin, kind->rising ? 1 : 0, (double)value / kind->scale,
			end);
	else
		fprintf(to, "%s%c%s", begin, signs[level], end);
}

static void print_kind(const struct view *view, unsigned int nr, bool colours, FILE *to)
{
	const struct kind *kind = &view->kinds[nr];
	bool numbers = view->heat->size <= RANKS_IN_NUMBERS;
	unsigned int row, column;

	fprintf(to, "\n%s, %s, usual %.*f\n", kind->name, kind->unit, kind->rising ? 1 : 0,
		(double)kind->usual / kind->scale);
	if (numbers) {
		fprintf(to, "  by \\ of");
		for (column = 0; column < view->heat->size; column++)
			fprintf(to, " %8u", column);
		fputc('\n', to);
	}
	for (row = 0; row < view->heat->size; row++) {
		fprintf(to, numbers ? "  %7u" : "  %5u ", row);
		for (column = 0; column < view->heat->size; column++)
			print_cell(kind, value_at(view, nr, row, column), colours, numbers, to);
		fputc('\n', to);
	}
	if (!numbers)
		fprintf(to, "  row: by rank; column: of rank, from 0. Against what is usual: . up to 1.25 times%s, - up to %g, + up to 4, # more\n",
			kind->rising ? ", or 5 us more" : "", kind->fair);
}

static int print_odd(const struct view *view, unsigned int nr, FILE *to)
{
	const struct kind *kind = &view->kinds[nr];
	unsigned int size = view->heat->size, from, rank, of, lines = 0, pairs = 0;

	for (rank = 0; rank < size; rank++) {
		if (!rank_is_odd(view, nr, rank))
			continue;
		fprintf(to, "odd: rank %u (%s): %s with %u of its %u pairs\n", rank,
			view->heat->names[rank], kind->name, view->odd[rank][nr],
			view->pairs[rank][nr]);
		lines++;
	}
	for (from = 0; from < size; from++) {
		for (of = 0; of < size; of++) {
			if (!pair_is_shown(view, nr, from, of))
				continue;
			if (pairs++ >= PAIRS_SHOWN)
				continue;
			fprintf(to, "odd: rank %u (%s) of rank %u (%s): %s: %.1f %s, usual %.1f\n", from,
				view->heat->names[from], of, view->heat->names[of], kind->name,
				(double)value_at(view, nr, from, of) / kind->scale, kind->unit,
				(double)kind->usual / kind->scale);
		}
	}
	if (pairs > PAIRS_SHOWN)
		fprintf(to, "odd: %u more pairs: %s\n", pairs - PAIRS_SHOWN, kind->name);
	return (int)(lines + pairs);
}

/* Both kinds are measured, or none */
static int print_missing(const struct view *view, FILE *to)
{
	unsigned int size = view->heat->size, from, of, pairs = 0;

	for (from = 0; from < size; from++) {
		for (of = 0; of < size; of++) {
			if (from == of || value_at(view, 0, from, of) || pairs++ >= PAIRS_SHOWN)
				continue;
			fprintf(to, "not measured: rank %u (%s) of rank %u (%s)\n", from,
				view->heat->names[from], of, view->heat->names[of]);
		}
	}
	if (pairs > PAIRS_SHOWN)
		fprintf(to, "not measured: %u more pairs\n", pairs - PAIRS_SHOWN);
	return (int)pairs;
}

int heat_print(const struct heat *heat, bool colours, FILE *to)
{
	unsigned int kind, rank;
	struct view view;
	int odd = 0;

	if (view_begin(&view, heat))
		return -ENOMEM;
	for (rank = 0; rank < heat->size && heat->size <= RANKS_IN_NUMBERS; rank++)
		fprintf(to, "%srank %u is %s\n", rank ? "" : "\n", rank, heat->names[rank]);
	for (kind = 0; kind < NR_KINDS; kind++)
		print_kind(&view, kind, colours, to);
	fputc('\n', to);
	for (kind = 0; kind < NR_KINDS; kind++)
		odd += print_odd(&view, kind, to);
	odd += print_missing(&view, to);
	view_end(&view);
	return odd;
}

/* NULL, which JSON has for it: not measured */
static struct json_object *number(const struct kind *kind, uint64_t value)
{
	double shown = (double)value / kind->scale;
	char text[32];

	snprintf(text, sizeof(text), "%.3f", shown);
	return value ? json_object_new_double_s(shown, text) : NULL;
}

static void add_matrix(struct json_object *object, const struct view *view, unsigned int nr)
{
	struct json_object *rows = json_object_new_array(), *row;
	const struct kind *kind = &view->kinds[nr];
	unsigned int from, to;
	char key[32];

	for (from = 0; from < view->heat->size; from++) {
		row = json_object_new_array();
		for (to = 0; to < view->heat->size; to++)
			json_object_array_add(row, number(kind, value_at(view, nr, from, to)));
		json_object_array_add(rows, row);
	}
	json_object_object_add(object, kind->key, rows);
	snprintf(key, sizeof(key), "usual_%s", kind->key);
	add_double(object, key, (double)kind->usual / kind->scale);
}

static struct json_object *odd_one(const struct view *view, unsigned int nr, unsigned int from)
{
	struct json_object *one = json_object_new_object();

	add_string(one, "what", view->kinds[nr].key);
	add_number(one, "rank", from);
	return one;
}

static int add_odd(struct json_object *list, const struct view *view, unsigned int nr)
{
	unsigned int size = view->heat->size, from, to;
	struct json_object *one;
	int odd = 0;

	for (from = 0; from < size; from++) {
		if (rank_is_odd(view, nr, from)) {
			one = odd_one(view, nr, from);
			add_number(one, "pairs", view->odd[from][nr]);
			json_object_array_add(list, one);
			odd++;
		}
		for (to = 0; to < size; to++) {
			if (!pair_is_shown(view, nr, from, to))
				continue;
			one = odd_one(view, nr, from);
			add_number(one, "of", to);
			add_double(one, "value", (double)value_at(view, nr, from, to) /
						 view->kinds[nr].scale);
			json_object_array_add(list, one);
			odd++;
		}
	}
	return odd;
}

static int add_missing(struct json_object *object, const struct view *view)
{
	unsigned int size = view->heat->size, from, of;
	int missing = 0;

	for (from = 0; from < size; from++)
		for (of = 0; of < size; of++)
			missing += from != of && !value_at(view, 0, from, of);
	add_number(object, "not_measured", (uint64_t)missing);
	return missing;
}

int heat_add(const struct heat *heat, struct json_object *object)
{
	struct json_object *odd_list = json_object_new_array(), *names = json_object_new_array();
	struct view view;
	unsigned int i;
	int odd = 0;

	if (view_begin(&view, heat))
		out_of_memory();
	for (i = 0; i < heat->size; i++)
		json_object_array_add(names, json_object_new_string(heat->names[i]));
	json_object_object_add(object, "ranks", names);
	for (i = 0; i < NR_KINDS; i++) {
		add_matrix(object, &view, i);
		odd += add_odd(odd_list, &view, i);
	}
	json_object_object_add(object, "odd", odd_list);
	odd += add_missing(object, &view);
	view_end(&view);
	return odd;
}
