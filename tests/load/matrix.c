// SPDX-License-Identifier: GPL-2.0
/*
 * The load matrix: a row is an operation and one way in which it ends, a column is what
 * goes on besides, a cell is how long the row may take there: so many times what it takes
 * without a load, or so many milliseconds, whichever is more; or why there is no such cell.
 * What the row tells must be one of its results in every column. Each cell is a case.
 *
 * Times hold for two emulated nodes on a machine that does other things besides, where 4 KB
 * alone take 5 to 15 ms: they tell bounded from unbounded, and what waits for all bulk from
 * what waits for its turn. A cell's time is the median of the row's repetitions, its result
 * that of each. A cell over its bound is measured anew, twice at most, and its least median
 * counts: the machine's other work does not come back each time, a queue that is too long does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "cases.h"
#include "loads.h"
#include "matrix.h"

#define REPEAT_MAX 5
#define ROUNDS_MAX 3

/**
 * struct column - a load
 * @name: of it
 * @begin: NULL: none
 * @end: NULL: none
 */
static const struct column {
	const char *name;
	void (*begin)(struct scene *scene);
	void (*end)(struct scene *scene);
} columns[] = {
	{ "none", NULL, NULL },
	{ "bulk", load_bulk_begin, load_bulk_end },
	{ "flood", load_flood_begin, load_flood_end },
	{ "gather", load_gather_begin, load_gather_end },
	{ "loss", load_loss_begin, load_loss_end },
	{ "stopped", load_stopped_begin, load_stopped_end },
};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

/**
 * struct cell - what a row may take in a column
 * @times: what it takes without a load, so often
 * @ms: or, if that is more, so many milliseconds
 * @why: instead of both: why there is no such cell
 */
struct cell {
	unsigned int times;
	unsigned int ms;
	const char *why;
};

#define IN(_times, _ms) { .times = _times, .ms = _ms }
#define NO(_why) { .why = _why }

static const char orders[] = "a stopped process carries out no order";
static const char read_up[] = "the peer reads its ring";
static const char loads_own[] = "the load's own gathers would end so, too";

#define OK 0
#define RESULTS(...) { __VA_ARGS__ }

/**
 * struct row - an operation, and how it ends
 * @operation: in words
 * @ending: in words
 * @fn: does it
 * @repeat: so often
 * @results: those that are right; two if it is a race
 * @nr_results: their number
 * @cells: in the order of the columns
 */
static const struct row {
	const char *operation;
	const char *ending;
	case_fn fn;
	unsigned int repeat;
	int results[3];
	unsigned int nr_results;
	struct cell cells[COLUMNS];
} rows[] = {
#define ROW(_operation, _ending, _fn, _repeat, _nr, _results, ...) \
	{ _operation, _ending, _fn, _repeat, _results, _nr, { __VA_ARGS__ } }

/*	what is done, how it ends, by what, how often, how many results, which,
 *		none, bulk, flood, gather, loss, stopped
 */
ROW("fetch", "with its tensor", fetch_ok, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("fetch", "with its tensor, to a place that is kept", fetch_kept, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("fetch", "with its tensor, to where the peer cannot write", fetch_proxied, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("fetch of one's own", "with its tensor", fetch_self, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("fetch", "by its deadline", fetch_deadline, 3, 1, RESULTS(-ETIMEDOUT),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 2000), IN(10, 500)),
ROW("fetch", "by its deadline, being written", fetch_deadline_writing, 3, 2,
	RESULTS(-ETIMEDOUT, OK),
	IN(0, 500), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 2000), IN(10, 1000)),
ROW("fetch", "by CANCEL", fetch_cancel, 5, 1, RESULTS(-ECANCELED),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 300)),
ROW("fetch", "by CANCEL, to where the peer cannot write", fetch_proxied_cancel, 5, 1,
	RESULTS(-ECANCELED),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 300)),
ROW("fetch", "by CANCEL, being written", fetch_cancel_writing, 3, 2, RESULTS(-ECANCELED, OK),
	IN(0, 500), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 2000), IN(10, 1000)),
ROW("fetch", "by the publisher's error", fetch_failed, 5, 1, RESULTS(-EIO),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 300)),
ROW("fetch", "by STEP_ABORT here", fetch_abort_here, 5, 1, RESULTS(-EDOM),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 300)),
ROW("fetch", "by STEP_ABORT at the peer", fetch_abort_there, 3, 1, RESULTS(-EDOM),
	IN(0, 300), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 3000), NO(orders)),
ROW("fetch of half of the rows", "with its tensor", fetch_slice, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("fetch to rows with gaps", "with its tensor", fetch_spread, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("fetch to rows with gaps", "by CANCEL", fetch_spread_cancel, 5, 1, RESULTS(-ECANCELED),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 300)),
ROW("fetch of the newest step", "with its tensor", fetch_newest, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("fetch that is not to wait", "as it is not offered", fetch_now, 5, 1, RESULTS(-ENOENT),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("publish", "by its use", publish_used, 3, 1, RESULTS(OK),
	IN(0, 300), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 3000), NO(orders)),
ROW("publish", "by its copy", publish_copied, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("publish", "by WITHDRAW", publish_withdrawn, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("publish of a view", "by its use", publish_view, 3, 1, RESULTS(OK),
	IN(0, 300), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 3000), NO(orders)),
ROW("generation", "in place of the former one", generation_revealed, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("generation", "by WITHDRAW", generation_withdrawn, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("publish", "by WITHDRAW, being read", publish_withdrawn_read, 3, 2, RESULTS(OK, -ENOENT),
	IN(0, 4000), IN(10, 5000), IN(10, 5000), IN(10, 5000), IN(10, 8000), NO(orders)),
ROW("publish", "by STEP_ABORT", publish_aborted, 5, 1, RESULTS(-EDOM),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("list", "with all entries", list_ok, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 200), IN(10, 400), IN(10, 300), IN(10, 2000), IN(10, 200)),
ROW("list of one's own", "with all entries", list_self, 5, 1, RESULTS(OK),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("list", "by its deadline", list_deadline, 5, 2, RESULTS(-ETIMEDOUT, OK),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 500), IN(10, 300)),
ROW("list", "by CANCEL", list_cancel, 5, 2, RESULTS(-ECANCELED, OK),
	IN(0, 200), IN(10, 300), IN(10, 400), IN(10, 300), IN(10, 500), IN(10, 300)),
ROW("gather", "with its rows", gather_ok, 3, 1, RESULTS(OK),
	IN(0, 500), IN(10, 1000), IN(10, 1000), IN(10, 2000), IN(10, 3000), IN(10, 1000)),
ROW("gather", "by its deadline", gather_deadline, 3, 2, RESULTS(-ETIMEDOUT, OK),
	IN(0, 500), IN(10, 1000), IN(10, 1000), IN(10, 2000), IN(10, 3000), IN(10, 1000)),
ROW("gather", "by CANCEL", gather_cancel, 3, 2, RESULTS(-ECANCELED, OK),
	IN(0, 500), IN(10, 1000), IN(10, 1000), IN(10, 2000), IN(10, 3000), IN(10, 1000)),
ROW("gather", "by an id that the table has not", gather_range, 3, 1, RESULTS(-ERANGE),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("gather", "by its owner's TABLE_CLOSE", gather_retracted, 1, 2, RESULTS(-ESTALE, OK),
	IN(0, 3000), IN(10, 5000), IN(10, 5000), NO(loads_own), IN(10, 10000), NO(orders)),
ROW("connect", "with a channel", connect_ok, 3, 1, RESULTS(OK),
	IN(0, 1000), IN(10, 2000), IN(10, 2000), IN(10, 2000), IN(10, 10000), IN(10, 2000)),
ROW("connect", "refused: nobody listens", connect_nobody, 3, 1, RESULTS(-ECONNREFUSED),
	IN(0, 1000), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 10000), IN(10, 1000)),
ROW("connect", "refused: another worker's name", connect_name, 3, 1, RESULTS(-ENOENT),
	IN(0, 1000), IN(10, 2000), IN(10, 2000), IN(10, 2000), IN(10, 10000), IN(10, 2000)),
ROW("disconnect", "of an idle channel", disconnect_idle, 3, 1, RESULTS(OK),
	IN(0, 1000), IN(10, 1000), IN(10, 1000), IN(10, 1000), IN(10, 5000), IN(10, 1000)),
ROW("disconnect", "with fetches in flight", disconnect_busy, 1, 1, RESULTS(OK),
	IN(0, 1000), IN(10, 3000), IN(10, 3000), IN(10, 3000), IN(10, 5000), IN(10, 2000)),
ROW("close", "with fetches in flight", close_busy, 1, 1, RESULTS(OK),
	IN(0, 1000), IN(10, 3000), IN(10, 3000), IN(10, 3000), IN(10, 5000), IN(10, 2000)),
ROW("kill -9", "with fetches in flight", kill_busy, 1, 1, RESULTS(OK),
	IN(0, 1000), IN(10, 3000), IN(10, 3000), IN(10, 3000), IN(10, 5000), IN(10, 2000)),
ROW("pool create", "of 4 MB", pool_create, 3, 1, RESULTS(OK),
	IN(0, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("pool import", "of 4 MB", pool_import, 3, 1, RESULTS(OK),
	IN(0, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 2000), IN(10, 500)),
ROW("pool register", "of 4 MB", pool_register, 3, 1, RESULTS(OK),
	IN(0, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 2000), IN(10, 500)),
ROW("pool alloc", "of 100 kB", pool_alloc, 5, 1, RESULTS(OK),
	IN(0, 50), IN(10, 50), IN(10, 50), IN(10, 50), IN(10, 50), IN(10, 50)),
ROW("pool destroy", "of 4 MB", pool_destroy, 3, 1, RESULTS(OK),
	IN(0, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("pool destroy", "refused: a fetch goes there", pool_destroy_busy, 3, 1, RESULTS(-EBUSY),
	IN(0, 200), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("table export", "of 64 KB", table_export, 3, 1, RESULTS(OK),
	IN(0, 300), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("table close", "of an export", table_unexport, 3, 1, RESULTS(OK),
	IN(0, 300), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
ROW("table open", "over lanes that are there", table_open, 3, 1, RESULTS(OK),
	IN(0, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 3000), IN(10, 500)),
ROW("table open", "with lanes to connect", table_open_lanes, 1, 1, RESULTS(OK),
	IN(0, 2000), IN(10, 3000), IN(10, 3000), IN(10, 3000), IN(10, 10000), IN(10, 3000)),
ROW("table open", "refused: not exported", table_unknown, 3, 1, RESULTS(-ENOENT),
	IN(0, 300), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 3000), IN(10, 500)),
ROW("table close", "of an opened one", table_close, 3, 1, RESULTS(OK),
	IN(0, 300), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500), IN(10, 500)),
/* The last one: it fills that ring */
ROW("connect", "refused: the peer's ring is full", connect_unread, 1, 1, RESULTS(-EAGAIN),
	NO(read_up), NO(read_up), NO(read_up), NO(read_up), NO(read_up), IN(0, 2000)),
};

#define ROWS_OF_TABLE (sizeof(rows) / sizeof(*rows))

/* Without a load, of each row */
static uint64_t base_ns[ROWS_OF_TABLE];
static int number, failures;

static bool is_right(const struct row *row, int ret)
{
	unsigned int i;

	for (i = 0; i < row->nr_results; i++)
		if (row->results[i] == ret)
			return true;
	return false;
}

/* What bounds are multiplied by, of kernels that are slow and not evenly so: LOAD_SLACK */
static unsigned int slack = 1;

/* What the row's repetitions took, sorted; false, and @ret, if a result is not right */
static bool run_row(struct scene *scene, const struct row *row, uint64_t *took, int *ret)
{
	unsigned int i;

	for (i = 0; i < row->repeat; i++) {
		*ret = row->fn(scene, &took[i]);
		if (!is_right(row, *ret))
			return false;
	}
	qsort(took, row->repeat, sizeof(*took), compare_u64);
	return true;
}

static void run_cell(struct scene *scene, unsigned int r, unsigned int c)
{
	const struct row *row = &rows[r];
	const struct cell *cell = &row->cells[c];
	uint64_t took[REPEAT_MAX] = { 0 }, bound, typical, least = UINT64_MAX;
	unsigned int round;
	int ret;

	if (cell->why)
		return;
	for (round = 0; round < ROUNDS_MAX; round++) {
		if (!run_row(scene, row, took, &ret)) {
			printf("not ok %d - %s: %s %s: %s (%d)\n", ++number, columns[c].name,
			       row->operation, row->ending, strerror(-ret), ret);
			failures++;
			return;
		}
		typical = took[row->repeat / 2];
		if (typical < least)
			least = typical;
		if (!c)
			base_ns[r] = least;
		bound = cell->times * base_ns[r];
		if (bound < cell->ms * MS)
			bound = cell->ms * MS;
		bound *= slack;
		if (least <= bound)
			break;
		printf("# %s: %s %s: %.2f ms, more than %.0f: once more\n", columns[c].name,
		       row->operation, row->ending, typical / 1e6, bound / 1e6);
	}
	printf("%s %d - %s: %s %s: %.2f ms, worst %.2f, at most %.0f\n",
	       least <= bound ? "ok" : "not ok", ++number, columns[c].name, row->operation,
	       row->ending, least / 1e6, took[row->repeat - 1] / 1e6, bound / 1e6);
	failures += least > bound;
}

/* What a load began with and what cases have ended with is what there is after it */
static void check_after(struct scene *scene, const char *name)
{
	struct rdmatensor_channel_query query = { .channel = scene->w.channel };
	bool well;

	well = !rdmatensor_channel_query(scene->w.rt, &query) &&
	       query.state == RDMATENSOR_CHANNEL_UP && !query.requests;
	if (!well)
		printf("# the channel is in state %u, with %u fetches\n", query.state,
		       query.requests);
	if (scene->w.nr_kept) {
		printf("# %u entries were not expected, the first of type %u: %d\n",
		       scene->w.nr_kept, scene->w.kept[0].type, scene->w.kept[0].result);
		well = false;
		scene->w.nr_kept = 0;
	}
	printf("%s %d - %s: the channel is up, and nothing is left\n", well ? "ok" : "not ok",
	       ++number, name);
	failures += !well;
}

static bool is_wanted(const char *name, char *const *loads)
{
	if (!loads || !*loads)
		return true;
	for (; *loads; loads++)
		if (!strcmp(*loads, name))
			return true;
	return false;
}

static bool is_column(const char *name)
{
	unsigned int c;

	for (c = 0; c < COLUMNS; c++)
		if (!strcmp(columns[c].name, name))
			return true;
	return false;
}

int matrix_knows(char *const *loads)
{
	unsigned int c;

	while (*loads && is_column(*loads))
		loads++;
	if (!*loads)
		return 0;
	printf("# no load is called %s. There are:", *loads);
	for (c = 0; c < COLUMNS; c++)
		printf(" %s", columns[c].name);
	printf("\nnot ok 1 - load %s\n1..1\n", *loads);
	return 1;
}

int matrix_run(const char *host, char *const *loads)
{
	struct scene scene;
	unsigned int r, c;
	uint64_t began;

	if (getenv("LOAD_SLACK"))
		slack = atoi(getenv("LOAD_SLACK"));
	scene_open(&scene, host);
	for (c = 0; c < COLUMNS; c++) {
		/* The first one has what the others are compared with */
		if (c && !is_wanted(columns[c].name, loads))
			continue;
		began = rdmatensor_now_ns();
		if (columns[c].begin)
			columns[c].begin(&scene);
		for (r = 0; r < ROWS_OF_TABLE; r++)
			run_cell(&scene, r, c);
		if (columns[c].end)
			columns[c].end(&scene);
		check_after(&scene, columns[c].name);
		printf("# %s: %.1f s\n", columns[c].name,
		       (rdmatensor_now_ns() - began) / 1e9);
	}
	for (r = 0; r < ROWS_OF_TABLE; r++)
		for (c = 0; c < COLUMNS; c++)
			if (rows[r].cells[c].why)
				printf("# no cell %s: %s %s: %s\n", columns[c].name,
				       rows[r].operation, rows[r].ending,
				       rows[r].cells[c].why);
	scene_close(&scene);
	printf("1..%d\n", number);
	return failures;
}
