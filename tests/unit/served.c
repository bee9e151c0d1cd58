// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "capture.h"
#include "fake.h"
#include "served.h"
#include "tool/cmd/commands.h"
#include "unit.h"

/*
 * A server runs in a thread of its own, with its output in this program's. The
 * threads' options are parsed one after the other: getopt is not reentrant.
 */
static struct {
	pthread_t thread;
	int argc;
	char *argv[16];
	int result;
} server;

static void *serve(void *arg)
{
	(void)arg;
	server.result = cmd_serve(server.argc, server.argv);
	return NULL;
}

/* It is ready when it has said so: later its line would be among a command's output */
void server_start_with(char *const *args, unsigned int expect)
{
	int out, saved;

	server.argc = 1;
	server.argv[0] = "rdmatensor serve";
	while (args[server.argc - 1]) {
		server.argv[server.argc] = args[server.argc - 1];
		server.argc++;
	}
	server.argv[server.argc] = NULL;
	optind = 0;
	fflush(stdout);
	out = capture_begin(STDOUT_FILENO, &saved);
	assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
	while (lseek(out, 0, SEEK_END) <= 0)
		usleep(1000);
	capture_end(STDOUT_FILENO, saved, out, text, sizeof(text));
	assert_contains(text, "serving ");
	assert_int_equal(fake_published(), expect);
}

void server_end_leaving(int expect, unsigned int published)
{
	fake_event(RDMATENSOR_CQE_CHANNEL_DOWN, 1);
	pthread_join(server.thread, NULL);
	assert_int_equal(server.result, expect);
	assert_int_equal(fake_published(), published);
}

void server_end_with(int expect)
{
	server_end_leaving(expect, 0);
}
