// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"
#include "terminal.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/text.h"
#include "view.h"

/* Columns of a worker's name */
#define NAME_WIDTH 15

static const char *const rate_keys[] = {
	[FETCHES] = "fetches_per_second",
	[IN] = "in_bytes_per_second",
	[SERVED] = "served_per_second",
	[OUT] = "out_bytes_per_second",
	[STALLS] = "stalls_per_second",
	[ERRORS] = "errors_per_second",
};

static void add_rates(struct json_object *object, const struct row *row)
{
	int i;

	for (i = 0; i < NR_RATES; i++)
		add_double(object, rate_keys[i], row->rates[i]);
	add_number(object, "requests", row->requests);
	add_number(object, "median_below_us", sample_quantile(row->slow, 0.5));
	add_number(object, "p99_below_us", sample_quantile(row->slow, 0.99));
}

void view_json(const struct sample *sample, const struct row *total)
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
	if (sample->own)
		json_object_object_add(root, "own_only", json_object_new_boolean(1));
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

/* Right-aligned in at most @width columns: "12345", or "12346k" if it does not fit */
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
 * @terminal: there is a cursor: the screen is redrawn
 * @left: lines that there is room for
 * @columns: of each
 * @first: nothing was put out yet
 */
struct screen {
	FILE *line;
	char *text;
	size_t bytes;
	bool terminal;
	size_t left;
	size_t columns;
	bool first;
};

static int screen_open(struct screen *screen, bool terminal)
{
	memset(screen, 0, sizeof(*screen));
	screen->line = open_memstream(&screen->text, &screen->bytes);
	if (!screen->line)
		return failed("out of memory");
	screen->terminal = terminal;
	screen->first = true;
	screen->left = SIZE_MAX;
	screen->columns = SIZE_MAX;
	if (terminal) {
		terminal_size(&screen->left, &screen->columns);
		printf("\033[H\033[J");
	}
	return EXIT_OK;
}

/* Prints the line. On a terminal the last one has no newline, which would scroll */
static void screen_next(struct screen *screen, const char *colour)
{
	fflush(screen->line);
	if (screen->left) {
		if (!screen->first && screen->terminal)
			putchar('\n');
		fputs(colour, stdout);
		put_cut(stdout, screen->text, screen->bytes, screen->columns);
		if (*colour)
			fputs("\033[0m", stdout);
		if (!screen->terminal)
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
	bool colours = screen->terminal && fd_has_colours(STDOUT_FILENO);
	FILE *to = screen->line;
	time_t t = time(NULL);
	char now[16];
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(now, sizeof(now), "%H:%M:%S", &tm);
	fprintf(to, "%s  %zu channels, %u fetches in flight", now, sample->nr, total->requests);
	put_latency(to, "median", sample_quantile(total->slow, 0.5));
	put_latency(to, "99 %", sample_quantile(total->slow, 0.99));
	screen_next(screen, "");
	fprintf(to, "in %.0f/s, %.1f MB/s; out %.0f/s, %.1f MB/s; %.0f stalls/s, %.0f errors/s",
		total->rates[FETCHES], total->rates[IN] / 1e6, total->rates[SERVED],
		total->rates[OUT] / 1e6, total->rates[STALLS], total->rates[ERRORS]);
	screen_next(screen, "");
	if (!sample->whole) {
		fprintf(to, "channels came and went: some may be missing or listed twice");
		screen_next(screen, "");
	}
	if (sample->own) {
		fprintf(to, "what this user opened in this PID namespace, for want of CAP_NET_ADMIN");
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

int view_print(const struct sample *sample, const struct row *total, bool terminal)
{
	struct screen screen;
	size_t i, most;
	int err;

	err = screen_open(&screen, terminal);
	if (err)
		return err;
	put_head(&screen, sample, total);
	/* One line says how many channels do not fit */
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
