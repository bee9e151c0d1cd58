// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "json.h"
#include "manager.h"
#include "message.h"
#include "output.h"
#include "server.h"
#include "stop.h"
#include "store.h"
#include "text.h"

int server_start(struct server *server)
{
	char listen[16];
	int err;

	snprintf(listen, sizeof(listen), ":%d", RDMATENSOR_PORT);
	if (!server->options.listen)
		server->options.listen = listen;
	err = context_start(&server->options, &server->rt);
	if (server->options.listen == listen)
		server->options.listen = NULL;
	return err;
}

void server_fill(const struct store *store, uint64_t nr, server_word word, void *arg)
{
	uint64_t *words = (void *)((char *)store->pool.base + store->offset), i;

	for (i = 0; i < nr; i++)
		words[i] = word(arg, i);
}

static void print_ready(struct server *server, const char *what, const char *where,
			const struct rdmatensor_query *query, struct json_object *line)
{
	char device[128];

	if (server->options.json) {
		add_string(line, "worker", server->options.start.worker);
		add_string(line, "address", where);
		add_string(line, "device", query->device_name);
		add_number(line, "port", query->port);
		add_number(line, "gid_index", query->gid_index);
		print_json(line);
		return;
	}
	printf("rdmatensor: ");
	put_string(stdout, what);
	printf(" as worker ");
	put_string(stdout, server->options.start.worker);
	printf(" on ");
	put_string(stdout, where);
	printf(" (device ");
	put_string(stdout, context_device_text(query, device, sizeof(device)));
	printf(")\n");
	json_object_put(line);
}

int server_ready(struct server *server, const char *what, struct json_object *line)
{
	struct rdmatensor_query query;
	char where[80];
	int err;

	/*
	 * Not earlier: the kernel gives up pinning memory, and reading from a server that does
	 * not answer, for a signal that kills, and not for one that has a handler
	 */
	stop_init();
	stop_unblock();
	err = rdmatensor_query(server->rt, &query);
	if (!err)
		snprintf(server->device, sizeof(server->device), "%.*s",
			 (int)sizeof(query.device_name) - 1, query.device_name);
	if (!err && query.flags & RDMATENSOR_QUERY_DEVICE_GONE) {
		json_object_put(line);
		return failed("the RDMA device was removed meanwhile: start again when it is back");
	}
	context_listen_text(server->rt, &server->options, where, sizeof(where));
	if (err || !strcmp(where, "-")) {
		json_object_put(line);
		return failed("query: %s", err ? strerror(-err) : "it does not listen");
	}
	print_ready(server, what, where, &query, line);
	err = output_arrived();
	if (!err)
		manager_ready(what);
	return err;
}

/* Returns the number of withdrawals that have completed */
static uint64_t take_entries(struct server *server)
{
	const struct rdmatensor_cqe *cqe;
	uint64_t withdrawn = 0;
	char text[256];

	while ((cqe = rdmatensor_peek(server->rt, 0))) {
		switch (cqe->type) {
		case RDMATENSOR_CQE_CHANNEL_UP:
			note("channel %u up: worker %.*s", cqe->channel,
			     cqe->text_len, cqe->text);
			break;
		case RDMATENSOR_CQE_CHANNEL_DOWN:
			server->down++;
			note("channel %u down: %s", cqe->channel,
			     rdmatensor_cqe_text(cqe, text, sizeof(text)));
			break;
		case RDMATENSOR_CQE_WITHDRAW:
			withdrawn++;
			break;
		}
		rdmatensor_advance(server->rt, 1);
	}
	return withdrawn;
}

static bool is_over(const struct server *server)
{
	return server->exit_after && server->down >= server->exit_after;
}

int server_run(struct server *server)
{
	struct rdmatensor_query query;
	int err;

	while (!is_over(server)) {
		bool stop = stop_wait(server->rt, 0);

		take_entries(server);
		if (stop)
			break;
	}
	manager_stopping();
	err = rdmatensor_query(server->rt, &query);
	if (err)
		return failed("query: %s", strerror(-err));
	if (query.flags & RDMATENSOR_QUERY_DEVICE_GONE)
		return failed("device %s is gone: start again when it is back", server->device);
	return EXIT_OK;
}

void server_withdraw(struct server *server, uint64_t total, server_name name,
		     void *arg, uint64_t deadline_ns)
{
	uint64_t submitted = 0, ended = 0;
	struct rdmatensor_op op;
	const char *tensor;
	int64_t step;
	int err = 0;

	while (ended < total) {
		while (submitted < total) {
			tensor = name(arg, submitted, &step);
			rdmatensor_prep_withdraw(&op, tensor, step, 0);
			err = rdmatensor_submit(server->rt, &op, 1, 0, 0, NULL);
			if (err)
				break;
			submitted++;
		}
		/* A full ring is emptied below; other errors are final */
		if (err && err != -EAGAIN)
			break;
		err = context_wait(server->rt, 1, deadline_ns);
		/* While other entries arrive, no wait reaches its deadline */
		if (!err && rdmatensor_now_ns() >= deadline_ns)
			err = -ETIME;
		if (err)
			break;
		ended += take_entries(server);
	}
	if (ended < total)
		note("%" PRIu64 " of %" PRIu64 " tensors were still in use: %s",
		     total - ended, total, strerror(-err));
}

int server_end(struct server *server)
{
	uint64_t counters[RDMATENSOR_STAT_NR];
	struct json_object *line;
	int err;

	if (context_counters(server->rt, counters))
		return EXIT_FAILED;
	if (!server->options.json) {
		printf("rdmatensor: served %" PRIu64 " fetch%s, %" PRIu64 " bytes, in %" PRIu64 " RDMA write%s, over %" PRIu64 " channel%s\n",
		       counters[RDMATENSOR_STAT_SERVED],
		       counters[RDMATENSOR_STAT_SERVED] == 1 ? "" : "es",
		       counters[RDMATENSOR_STAT_SERVED_BYTES],
		       counters[RDMATENSOR_STAT_TX_WRITES],
		       plural(counters[RDMATENSOR_STAT_TX_WRITES]),
		       counters[RDMATENSOR_STAT_CHANNELS_UP],
		       plural(counters[RDMATENSOR_STAT_CHANNELS_UP]));
	} else {
		line = json_object_new_object();
		add_string(line, "event", "end");
		add_counters(line, counters, NULL);
		print_json(line);
	}
	err = output_arrived();
	stop_end();
	return err;
}
