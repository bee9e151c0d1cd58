/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the servers of several commands share: they publish, wait for a signal, and withdraw.
 */
#ifndef TOOL_SERVER_H
#define TOOL_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

#include "context_options.h"

struct json_object;
struct store;

/**
 * struct server - a context that publishes
 * @options: options
 * @exit_after: number of channels after whose end the server ends; 0: never
 * @rt: the context
 * @down: channels that have gone down
 * @device: its name, which is not to be had any more once it has gone
 */
struct server {
	struct context_options options;
	int64_t exit_after;
	struct rdmatensor *rt;
	int64_t down;
	char device[64];
};

/**
 * typedef server_name - name and step of a published tensor
 * @arg: of server_withdraw()
 * @i: number of the tensor
 * @step: out: its step
 *
 * Return: its name, valid until the next call.
 */
typedef const char *(*server_name)(void *arg, uint64_t i, int64_t *step);

/**
 * typedef server_word - word of a server's content
 * @arg: of server_fill()
 * @i: its number
 *
 * Return: the word.
 */
typedef uint64_t (*server_word)(void *arg, uint64_t i);

/* Starts a context that listens; EXIT_OK, or EXIT_FAILED with a message */
int server_start(struct server *server);
/* Writes @nr words into @store, which may take long */
void server_fill(const struct store *store, uint64_t nr, server_word word, void *arg);
/*
 * Prints that the server is ready: @what, or @line as JSON, which is put, and tells the service
 * manager. From here on a signal ends the server and not the process. EXIT_OK, or EXIT_FAILED
 * with a message
 */
int server_ready(struct server *server, const char *what,
		 struct json_object *line);
/* Serves until a signal, @exit_after, or the removal of the device */
int server_run(struct server *server);
/* How long a server that ends waits for its peers' last reads */
#define SERVER_END_MS 10000
/*
 * Withdraws @total tensors, until @deadline_ns. What is still in use then is freed by closing
 * the context, which ends its channels
 */
void server_withdraw(struct server *server, uint64_t total, server_name name,
		     void *arg, uint64_t deadline_ns);
/* The last line, with the counters; EXIT_OK, or EXIT_FAILED with a message */
int server_end(struct server *server);

#endif
