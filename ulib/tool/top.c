// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * top: what goes over each channel of this network namespace in the last interval, as
 * differences of its counters. A channel that is seen for the first time has no rate
 * yet; one that is gone is not shown any more.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdmatensor/netlink.h>

#include "json.h"
#include "nl.h"
#include "terminal.h"
#include "text.h"
#include "tool.h"

/* Of a worker's name */
#define NAME_WIDTH 15

/* What is shown of a channel, in this order */
enum rate { FETCHES, IN, SERVED, OUT, STALLS, ERRORS, NR_RATES };

static const char *const rate_keys[] = {
	[FETCHES] = "fetches_per_second",
	[IN] = "in_bytes_per_second",
	[SERVED] = "served_per_second",
	[OUT] = "out_bytes_per_second",
	[STALLS] = "stalls_per_second",
	[ERRORS] = "errors_per_second",
};

/* The counters that a rate is of */
static const struct {
	enum rate rate;
	enum rdmatensor_stat stat;
} parts[] = {
	{ FETCHES, RDMATENSOR_STAT_FETCHED },
	{ IN, RDMATENSOR_STAT_FETCHED_BYTES },
	{ SERVED, RDMATENSOR_STAT_SERVED },
	{ OUT, RDMATENSOR_STAT_SERVED_BYTES },
	{ STALLS, RDMATENSOR_STAT_STALL_SLOTS },
	{ STALLS, RDMATENSOR_STAT_STALL_SENDQ },
	{ STALLS, RDMATENSOR_STAT_STALL_REQUESTS },
	{ ERRORS, RDMATENSOR_STAT_FETCH_ERRORS },
};

/**
 * struct row - a channel
 * @context: id of its context
 * @channel: its own
 * @worker: the context's name
 * @peer: the peer's
 * @requests: fetches that have not ended
 * @sums: counters of each rate
 * @latency: fetches by log2 of their microseconds
 * @rates: a second, in the last interval; valid if @seen_before
 * @slow: as @latency, in the last interval
 * @seen_before: it was there at the interval's beginning
 */
struct row {
	uint32_t context;
	uint32_t channel;
	const char *worker;
	const char *peer;
	uint32_t requests;
	uint64_t sums[NR_RATES];
	uint64_t latency[RDMATENSOR_NL_LATENCY_NR];
	double rates[NR_RATES];
	uint64_t slow[RDMATENSOR_NL_LATENCY_NR];
	bool seen_before;
};

/**
 * struct sample - all channels at one moment
 * @list: the dump, which the rows' names are in
 * @rows: one for each
 * @nr: their number
 * @at_ns: when
 * @whole: false: some may be missing or there twice
 */
struct sample {
	struct json_object *list;
	struct row *rows;
	size_t nr;
	uint64_t at_ns;
	bool whole;
};

/**
 * struct top - options
 * @interval_ms: between two samples
 * @count: samples to show; 0: until it is interrupted
 * @json: a line of JSON for each
 * @context: only this one's channels; 0: all
 * @terminal: standard output is one with a cursor: the screen is redrawn
 */
struct top {
	int interval_ms;
	int64_t count;
	bool json;
	uint32_t context;
	bool terminal;
};

static void help(void)
{
	printf("Usage: rdmatensor top [-j] [-d SECONDS] [-n COUNT] [CONTEXT]\n"
	       "Show what goes over the channels of this network namespace, or of one context, in\n"
	       "each second: fetches and bytes in, served contents and bytes out, messages that\n"
	       "had to wait (STALL), fetches that failed (ERR), and how long fetches took. The\n"
	       "busiest comes first. q ends it.\n"
	       "\n"
	       "  -d, --delay SECONDS      between two samples (default: 1)\n"
	       "  -n, --count COUNT        end after so many\n"
	       "  -j, --json               a line of JSON for each\n"
	       "  -h, --help               this text\n");
}

static void read_row(struct row *row, struct json_object *object)
{
	struct json_object *counters = NULL, *latency = NULL;
	char below[24];
	size_t i;

	row->context = (uint32_t)number_of(object, "context");
	row->channel = (uint32_t)number_of(object, "channel");
	row->requests = (uint32_t)number_of(object, "requests");
	row->worker = text_of(object, "worker") ?: "";
	row->peer = text_of(object, "peer") ?: "";
	if (json_object_object_get_ex(object, "counters", &counters))
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			row->sums[parts[i].rate] +=
				number_of(counters, rdmatensor_stat_name(parts[i].stat));
	if (json_object_object_get_ex(object, "latency_us", &latency))
		for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++) {
			snprintf(below, sizeof(below), "%" PRIu64, UINT64_C(1) << i);
			row->latency[i] = number_of(latency, below);
		}
}

static int take_sample(const struct top *top, struct sample *sample)
{
	size_t i;
	int err;

	memset(sample, 0, sizeof(*sample));
	err = dump_objects(RDMATENSOR_NL_CMD_CHANNEL_GET, top->context, &sample->list,
			   &sample->whole);
	if (err)
		return err;
	sample->at_ns = rdmatensor_now_ns();
	sample->nr = json_object_array_length(sample->list);
	sample->rows = calloc(sample->nr + 1, sizeof(*sample->rows));
	if (!sample->rows) {
		json_object_put(sample->list);
		return failed("out of memory");
	}
	for (i = 0; i < sample->nr; i++)
		read_row(&sample->rows[i], json_object_array_get_idx(sample->list, i));
	return EXIT_OK;
}

static void free_sample(struct sample *sample)
{
	free(sample->rows);
	json_object_put(sample->list);
}

static void rate_row(struct row *row, const struct row *before, double seconds)
{
	int i;

	row->seen_before = true;
	for (i = 0; i < NR_RATES; i++)
		row->rates[i] = (double)(row->sums[i] - before->sums[i]) / seconds;
	for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++)
		row->slow[i] = row->latency[i] - before->latency[i];
}

static int busier(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double dx = x->rates[IN] + x->rates[OUT], dy = y->rates[IN] + y->rates[OUT];

	if (dx != dy)
		return dx < dy ? 1 : -1;
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	return x->channel < y->channel ? -1 : 1;
}

/* Rates since @before, and the busiest first */
static void rate(struct sample *now, const struct sample *before)
{
	double seconds = (double)(now->at_ns - before->at_ns) / 1e9;
	size_t i, k;

	for (i = 0; i < now->nr; i++)
		for (k = 0; k < before->nr; k++)
			if (now->rows[i].context == before->rows[k].context &&
			    now->rows[i].channel == before->rows[k].channel)
				rate_row(&now->rows[i], &before->rows[k], seconds);
	qsort(now->rows, now->nr, sizeof(*now->rows), busier);
}

/* Microseconds below which @part of the fetches ended; 0: there were none */
static uint64_t quantile(const uint64_t *buckets, double part)
{
	uint64_t all = 0, seen = 0;
	int i;

	for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++)
		all += buckets[i];
	for (i = 0; all && i < RDMATENSOR_NL_LATENCY_NR; i++) {
		seen += buckets[i];
		if ((double)seen >= part * (double)all)
			return UINT64_C(1) << i;
	}
	return 0;
}

static void add_up(const struct sample *sample, struct row *total)
{
	size_t i;
	int k;

	memset(total, 0, sizeof(*total));
	for (i = 0; i < sample->nr; i++) {
		for (k = 0; k < NR_RATES; k++)
			total->rates[k] += sample->rows[i].rates[k];
		for (k = 0; k < RDMATENSOR_NL_LATENCY_NR; k++)
			total->slow[k] += sample->rows[i].slow[k];
		total->requests += sample->rows[i].requests;
	}
}

static void add_rates(struct json_object *object, const struct row *row)
{
	int i;

	for (i = 0; i < NR_RATES; i++)
		add_double(object, rate_keys[i], row->rates[i]);
	add_number(object, "requests", row->requests);
	add_number(object, "median_below_us", quantile(row->slow, 0.5));
	add_number(object, "p99_below_us", quantile(row->slow, 0.99));
}

static void print_sample_json(const struct sample *sample, const struct row *total)
{
	struct json_object *root = json_object_new_object();
	struct json_object *list = json_object_new_array();
	size_t i;

	for (i = 0; i < sample->nr; i++) {
		const struct row *row = &sample->rows[i];
		struct json_object *one = json_object_new_object();

		add_number(one, "context", row->context);
		add_number(one, "channel", row->channel);
		add_string(one, "worker", row->worker);
		add_string(one, "peer", row->peer);
		json_object_object_add(one, "has_rates",
				       json_object_new_boolean(row->seen_before));
		add_rates(one, row);
		json_object_array_add(list, one);
	}
	if (!sample->whole)
		json_object_object_add(root, "incomplete", json_object_new_boolean(1));
	add_rates(root, total);
	json_object_object_add(root, "channels", list);
	print_json(root);
}

static void put_latency(FILE *to, const char *what, uint64_t us)
{
	if (!us)
		fprintf(to, ", %s -", what);
	else if (us < 10000)
		fprintf(to, ", %s < %" PRIu64 " us", what, us);
	else
		fprintf(to, ", %s < %" PRIu64 " ms", what, us / 1000);
}

static void put_name(FILE *to, const char *name)
{
	name = *name ? name : "-";
	put_cell(to, name, strlen(name), NAME_WIDTH);
	fputc(' ', to);
}

/* In no more than @width columns, to the right: "12345", "12346k" where there is no more room */
static void put_number(FILE *to, double value, int width, int digits)
{
	static const char units[] = " kMGTPE";
	const char *unit = units;
	char text[64];
	int length;

	length = snprintf(text, sizeof(text), "%.*f", digits, value);
	while (length > width && unit[1]) {
		value /= 1000;
		unit++;
		length = snprintf(text, sizeof(text), "%.0f%c", value, *unit);
	}
	fprintf(to, "%*s", width, text);
}

/**
 * struct screen - lines on their way out
 * @line: the one that is written to, without a newline
 * @text: what it has, once it was flushed
 * @bytes: their number, the rest being of a longer line before
 * @top: options
 * @left: lines that there is room for
 * @columns: of each
 * @first: nothing was put out yet
 */
struct screen {
	FILE *line;
	char *text;
	size_t bytes;
	const struct top *top;
	size_t left;
	size_t columns;
	bool first;
};

static int screen_open(struct screen *screen, const struct top *top)
{
	memset(screen, 0, sizeof(*screen));
	screen->line = open_memstream(&screen->text, &screen->bytes);
	if (!screen->line)
		return failed("out of memory");
	screen->top = top;
	screen->first = true;
	screen->left = SIZE_MAX;
	screen->columns = SIZE_MAX;
	if (top->terminal) {
		terminal_size(&screen->left, &screen->columns);
		printf("\033[H\033[J");
	}
	return EXIT_OK;
}

/* Puts the line out. The last one of a terminal has no newline: it would scroll the first away */
static void screen_next(struct screen *screen, const char *colour)
{
	fflush(screen->line);
	if (screen->left) {
		if (!screen->first && screen->top->terminal)
			putchar('\n');
		fputs(colour, stdout);
		put_cut(stdout, screen->text, screen->bytes, screen->columns);
		if (*colour)
			fputs("\033[0m", stdout);
		if (!screen->top->terminal)
			putchar('\n');
		screen->left--;
		screen->first = false;
	}
	rewind(screen->line);
}

static void screen_close(struct screen *screen)
{
	fclose(screen->line);
	free(screen->text);
	fflush(stdout);
}

static void put_head(struct screen *screen, const struct sample *sample, const struct row *total)
{
	bool colours = screen->top->terminal && fd_has_colours(STDOUT_FILENO);
	FILE *to = screen->line;
	time_t t = time(NULL);
	char now[16];
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(now, sizeof(now), "%H:%M:%S", &tm);
	fprintf(to, "%s  %zu channels, %u fetches in flight", now, sample->nr, total->requests);
	put_latency(to, "median", quantile(total->slow, 0.5));
	put_latency(to, "99 %", quantile(total->slow, 0.99));
	screen_next(screen, "");
	fprintf(to, "in %.0f/s, %.1f MB/s; out %.0f/s, %.1f MB/s; %.0f stalls/s, %.0f errors/s",
		total->rates[FETCHES], total->rates[IN] / 1e6, total->rates[SERVED],
		total->rates[OUT] / 1e6, total->rates[STALLS], total->rates[ERRORS]);
	screen_next(screen, "");
	if (!sample->whole) {
		fprintf(to, "channels came and went: some may be missing or there twice");
		screen_next(screen, "");
	}
	fprintf(to, "%-15s %-15s %4s %7s %8s %7s %8s %5s %3s", "WORKER", "PEER", "REQ", "FETCH/s",
		"IN MB/s", "SERVE/s", "OUT MB/s", "STALL", "ERR");
	screen_next(screen, colours ? "\033[7m" : "");
}

static void put_row(struct screen *screen, const struct row *row)
{
	static const struct {
		enum rate rate;
		int width;
		int digits;
		double unit;
	} columns[] = {
		{ FETCHES, 7, 0, 1 }, { IN, 8, 1, 1e6 }, { SERVED, 7, 0, 1 }, { OUT, 8, 1, 1e6 },
		{ STALLS, 5, 0, 1 }, { ERRORS, 3, 0, 1 },
	};
	size_t i;

	put_name(screen->line, row->worker);
	put_name(screen->line, row->peer);
	put_number(screen->line, row->requests, 4, 0);
	for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		fputc(' ', screen->line);
		if (row->seen_before)
			put_number(screen->line, row->rates[columns[i].rate] / columns[i].unit,
				   columns[i].width, columns[i].digits);
		else
			fprintf(screen->line, "%*s", columns[i].width, "-");
	}
	screen_next(screen, "");
}

static int print_sample(const struct top *top, const struct sample *sample,
			const struct row *total)
{
	struct screen screen;
	size_t i, most;
	int err;

	err = screen_open(&screen, top);
	if (err)
		return err;
	put_head(&screen, sample, total);
	/* One line says how many there is no room for */
	most = sample->nr > screen.left && screen.left ? screen.left - 1 : sample->nr;
	for (i = 0; i < most; i++)
		put_row(&screen, &sample->rows[i]);
	if (i < sample->nr) {
		fprintf(screen.line, "... and %zu more", sample->nr - i);
		screen_next(&screen, "");
	}
	screen_close(&screen);
	return EXIT_OK;
}

static int show(const struct top *top, const struct sample *sample, const struct row *total)
{
	int err = EXIT_OK;

	stop_unblock();
	if (top->json)
		print_sample_json(sample, total);
	else
		err = print_sample(top, sample, total);
	stop_block();
	return err;
}

/* True: it is to end. @last is what is on the screen */
static bool wait_interval(const struct top *top, bool *keys, const struct sample *last,
			  const struct row *total)
{
	uint64_t end = rdmatensor_now_ns() + (uint64_t)top->interval_ms * 1000000;
	uint64_t now;

	while ((now = rdmatensor_now_ns()) < end) {
		/* While it is shown it may change again */
		while (terminal_changed())
			if (top->terminal && show(top, last, total))
				return true;
		if (stop_wait_fd(*keys ? STDIN_FILENO : -1, (int)((end - now) / 1000000) + 1))
			return true;
		if (*keys && rdmatensor_now_ns() < end && terminal_asked_to_end(keys))
			return true;
	}
	return false;
}

static int run(const struct top *top, bool keys)
{
	struct sample before, now;
	struct row total;
	int64_t shown = 0;
	int err;

	err = take_sample(top, &before);
	if (err)
		return err;
	add_up(&before, &total);
	/* A person sees at once what there is; rates come with the next one */
	if (top->terminal)
		err = show(top, &before, &total);
	while (!err && !wait_interval(top, &keys, &before, &total)) {
		err = take_sample(top, &now);
		if (err)
			break;
		rate(&now, &before);
		add_up(&now, &total);
		free_sample(&before);
		before = now;
		err = show(top, &before, &total);
		/* Nobody can read what comes after it: main() says so */
		if (err || ferror(stdout) || ++shown == top->count)
			break;
	}
	/* The cursor stands behind the last line */
	if (top->terminal)
		putchar('\n');
	free_sample(&before);
	return err;
}

static int run_on_terminal(const struct top *top)
{
	bool keys = terminal_begin();
	int err = run(top, keys);

	if (keys)
		terminal_end();
	return err;
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = {
		{ "delay", required_argument, NULL, 'd' },
		{ "count", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	struct top top = { .interval_ms = 1000 };
	int64_t context = 0;
	int opt, err = EXIT_OK;
	uint64_t ns;

	while (!err && (opt = getopt_long(argc, argv, "d:n:jh", options, NULL)) != -1) {
		switch (opt) {
		case 'd':
			err = parse_seconds_in("--delay", optarg, 0.01, 3600, &ns);
			top.interval_ms = err ? 0 : (int)(ns / 1000000);
			break;
		case 'n':
			err = parse_number("--count", optarg, 1, INT32_MAX, &top.count);
			break;
		case 'j':
			top.json = true;
			break;
		case 'h':
			help();
			return EXIT_OK;
		default:
			return point_to_help();
		}
	}
	if (!err && argc - optind > 1)
		err = misused("one CONTEXT is enough");
	if (!err && optind < argc)
		err = parse_number("CONTEXT", argv[optind], 1, INT32_MAX, &context);
	if (!err)
		err = look_for_context((uint32_t)context);
	if (err)
		return err;
	top.context = (uint32_t)context;
	top.terminal = !top.json && terminal_has_cursor();
	stop_init();
	return !top.json && isatty(STDOUT_FILENO) ? run_on_terminal(&top) : run(&top, false);
}
