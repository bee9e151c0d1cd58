// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * monitor: the module's events, a line for each.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tool/cmd/commands.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"
#include "tool/common/options.h"
#include "tool/common/output.h"
#include "tool/common/stop.h"

static void now_text(char *text, size_t len)
{
	struct timespec now;
	struct tm tm;
	size_t end;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	end = strftime(text, len, "%Y-%m-%dT%H:%M:%S", &tm);
	end += (size_t)snprintf(text + end, len - end, ".%03ld", now.tv_nsec / 1000000);
	strftime(text + end, len - end, "%z", &tm);
}

/* The members that the event has, in this order */
static void print_members(struct json_object *object)
{
	static const struct {
		const char *before, *key, *after;
	} members[] = {
		{ " context ", "context", "" }, { " worker ", "worker", "" },
		{ " channel ", "channel", "" }, { " peer ", "peer", "" },
		{ " address ", "address", "" }, { " for ", "wait_ms", " ms" },
		{ " tensor ", "tensor", "" }, { " step ", "step", "" },
		{ ": ", "text", "" }, { " (", "error", ")" },
	};
	const char *text;
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		text = text_of(object, members[i].key);
		if (!text || (!*text && !strcmp(members[i].key, "peer")))
			continue;
		fputs(members[i].before, stdout);
		put_member(stdout, object, members[i].key);
		fputs(members[i].after, stdout);
	}
}

static bool print_event(struct json_object *object, void *arg)
{
	const bool *json = arg;
	const char *what;
	char now[64];

	now_text(now, sizeof(now));
	stop_unblock();
	if (*json) {
		add_string(object, "time", now);
		print_json(object);
		stop_block();
		return !ferror(stdout);
	}
	what = text_of(object, "event");
	printf("%s %-15s", now, what ? what : "?");
	if (what && !strcmp(what, "lost"))
		printf(" %s events: more arrived at once than the socket holds",
		       text_of(object, "events"));
	else
		print_members(object);
	putchar('\n');
	fflush(stdout);
	stop_block();
	json_object_put(object);
	/* Events that cannot be printed are not waited for: main() reports the error */
	return !ferror(stdout);
}

int cmd_monitor(int argc, char **argv)
{
	bool json = false;
	const struct option_place places[] = { { .id = OPT_JSON, .flag = &json } };
	int err;

	if (!options_parse(COMMAND_MONITOR, places, 1, argc, argv, &err))
		return err;
	if (optind < argc)
		return misused("no argument is expected after the options");
	stop_init();
	return listen_events(print_event, &json);
}
