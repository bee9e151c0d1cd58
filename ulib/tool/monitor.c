// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * monitor: the module's events, a line for each.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "nl.h"
#include "tool.h"

static void help(void)
{
	printf("Usage: rdmatensor monitor [-j]\n"
	       "Show what happens to the contexts of this network namespace, with the time, until\n"
	       "it is interrupted: contexts start and end, channels come up and go down and why,\n"
	       "peers misbehave, devices go, requests time out, CONNECT waits for a peer.\n"
	       "\n"
	       "  -j, --json               a line of JSON for each\n"
	       "  -h, --help               this text\n");
}

static void now_text(char *text, size_t len)
{
	struct timespec now;
	struct tm tm;
	size_t end;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	end = strftime(text, len, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + end, len - end, ".%03ld", now.tv_nsec / 1000000);
}

static bool print_event(struct json_object *object, void *arg)
{
	const bool *json = arg;
	const char *text, *what;
	char now[64];

	now_text(now, sizeof(now));
	if (*json) {
		add_string(object, "time", now);
		print_json(object);
		return true;
	}
	what = text_of(object, "event");
	text = text_of(object, "worker");
	printf("%s %-15s context %s worker %s", now, what ? what : "?",
	       text_of(object, "context"), text ? text : "?");
	text = text_of(object, "channel");
	if (text)
		printf(" channel %s", text);
	text = text_of(object, "peer");
	if (text && *text)
		printf(" peer %s", text);
	text = text_of(object, "address");
	if (text)
		printf(" address %s for %s ms", text, text_of(object, "wait_ms"));
	text = text_of(object, "tensor");
	if (text)
		printf(" tensor %s step %s", text, text_of(object, "step"));
	text = text_of(object, "text");
	if (text)
		printf(": %s (%s)", text, text_of(object, "error"));
	putchar('\n');
	fflush(stdout);
	json_object_put(object);
	return true;
}

int cmd_monitor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	bool json = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			help();
			return EXIT_OK;
		default:
			return point_to_help();
		}
	}
	if (optind < argc)
		return misused("nothing is expected behind the options");
	stop_init();
	return listen_events(print_event, &json);
}
