/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What `serve` and `perf --server` have in common: they publish, wait to be
 * told to end, and withdraw.
 */
#ifndef TOOL_SERVER_H
#define TOOL_SERVER_H

#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

#include "context_options.h"

struct json_object;

/**
 * struct server - a context that publishes
 * @options: options
 * @exit_after: end when so many channels have gone down; 0: never
 * @rt: the context
 * @down: channels that have gone down
 */
struct server {
	struct context_options options;
	int64_t exit_after;
	struct rdmatensor *rt;
	int64_t down;
};

/**
 * typedef server_name - name and step of a published tensor
 * @arg: of server_withdraw()
 * @i: number of the tensor
 * @step: out: its step
 *
 * Return: its name, which lives on.
 */
typedef const char *(*server_name)(void *arg, uint64_t i, int64_t *step);

/* Starts a context that listens; EXIT_OK, or EXIT_FAILED with a message */
int server_start(struct server *server);
/*
 * The line that says "ready": @what as text, or @line (taken over) as JSON; EXIT_OK, or
 * EXIT_FAILED with a message
 */
int server_ready(struct server *server, const char *what,
		 struct json_object *line);
/* Until a signal, @exit_after, or the device's end */
int server_run(struct server *server);
/* How long a server that ends waits for its peers' last reads */
#define SERVER_END_MS 10000
/*
 * Takes @total tensors back, until @deadline_ns. What is not free by then is given up by
 * closing the context, which ends its channels
 */
void server_withdraw(struct server *server, uint64_t total, server_name name,
		     void *arg, uint64_t deadline_ns);
/* The last line, with the counters; EXIT_OK, or EXIT_FAILED with a message */
int server_end(struct server *server);

#endif
