// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * top: what goes over each channel of this network namespace in the last interval. A channel
 * that is seen for the first time has no rate yet; one that is gone is not shown any more.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include <rdmatensor/netlink.h>

#include "sample.h"
#include "terminal.h"
#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"
#include "tool/common/numbers.h"
#include "tool/common/options.h"
#include "tool/common/stop.h"
#include "view.h"

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

static int show(const struct top *top, const struct sample *sample, const struct row *total)
{
	int err = EXIT_OK;

	stop_unblock();
	if (top->json)
		view_json(sample, total);
	else
		err = view_print(sample, total, top->terminal);
	stop_block();
	return err;
}

/* True: the command ends, with *err. @last: the sample on the screen */
static bool wait_interval(const struct top *top, bool *keys, const struct sample *last,
			  const struct row *total, int *err)
{
	uint64_t end = rdmatensor_now_ns() + (uint64_t)top->interval_ms * 1000000;
	uint64_t now;

	while ((now = rdmatensor_now_ns()) < end) {
		/* The terminal may change again in the meantime */
		while (terminal_changed()) {
			if (top->terminal)
				*err = show(top, last, total);
			if (*err)
				return true;
		}
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

	err = sample_take(top->context, &before);
	if (err)
		return err;
	sample_sum(&before, &total);
	/* Shows the channels at once; the rates follow with the next sample */
	if (top->terminal)
		err = show(top, &before, &total);
	while (!err && !wait_interval(top, &keys, &before, &total, &err)) {
		err = sample_take(top->context, &now);
		if (err)
			break;
		sample_rate(&now, &before);
		sample_sum(&now, &total);
		sample_free(&before);
		before = now;
		err = show(top, &before, &total);
		/* Ends on a failed write, which main() reports */
		if (err || ferror(stdout) || ++shown == top->count)
			break;
	}
	/* The cursor is at the end of the last line */
	if (top->terminal)
		putchar('\n');
	sample_free(&before);
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
	struct top top = { 0 };
	uint64_t interval_ns = 0;
	const struct option_place places[] = {
		{ .id = OPT_DELAY, .ns = &interval_ns },
		{ .id = OPT_COUNT, .number = &top.count },
		{ .id = OPT_JSON, .flag = &top.json },
	};
	int64_t context = 0;
	int err;

	if (!options_parse(COMMAND_TOP, places, NR_PLACES(places), argc, argv, &err))
		return err;
	if (argc - optind > 1)
		return misused("one CONTEXT is enough");
	if (optind < argc)
		err = parse_number("CONTEXT", argv[optind], 1, INT32_MAX, &context);
	if (!err)
		err = look_for_context((uint32_t)context);
	if (err)
		return err;
	top.interval_ms = (int)(interval_ns / 1000000);
	top.context = (uint32_t)context;
	top.terminal = !top.json && terminal_has_cursor();
	stop_init();
	return !top.json && isatty(STDOUT_FILENO) ? run_on_terminal(&top) : run(&top, false);
}
