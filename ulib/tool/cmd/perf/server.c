// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * perf --server: one region, published under many lengths.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sides.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/published.h"
#include "tool/common/server.h"
#include "tool/common/store.h"

/* The powers of two up to 1 TiB, and those of --size */
#define SIZES_MAX (PERF_SIZES_MAX + 41)

/**
 * struct published - sizes that are published
 * @sizes: each once
 * @nr: their number
 * @name: room for a name
 */
struct published {
	uint64_t sizes[SIZES_MAX];
	size_t nr;
	char name[48];
};

static void add(struct published *published, uint64_t size)
{
	size_t i;

	for (i = 0; i < published->nr; i++)
		if (published->sizes[i] == size)
			return;
	published->sizes[published->nr++] = size;
}

static uint64_t choose(const struct perf *perf, struct published *published)
{
	uint64_t size, most = 0;
	size_t i;

	for (size = 1; size <= perf->max_size; size *= 2)
		add(published, size);
	for (i = 0; i < perf->nr_sizes; i++)
		add(published, perf->sizes[i]);
	for (i = 0; i < published->nr; i++)
		if (published->sizes[i] > most)
			most = published->sizes[i];
	return most;
}

static int publish(struct perf *perf, const struct published *published,
		   const struct store *store)
{
	struct rdmatensor_op op;
	char name[48];
	uint64_t dim;
	size_t i;
	int err;

	for (i = 0; i < published->nr; i++) {
		dim = published->sizes[i];
		perf_name(dim, name);
		rdmatensor_prep_publish(&op, name, 0, store->pool.id,
					store->offset, dim,
					RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
		err = rdmatensor_submit(perf->server.rt, &op, 1, 0, 0, NULL);
		if (err)
			return failed("publish tensor \"%s\": %s", name,
				      strerror(-err));
	}
	return EXIT_OK;
}

static const char *name_of(void *arg, uint64_t i, int64_t *step)
{
	struct published *published = arg;

	*step = 0;
	perf_name(published->sizes[i], published->name);
	return published->name;
}

static int run(struct perf *perf, struct published *published, uint64_t most)
{
	struct json_object *line = json_object_new_object();
	char what[128];
	int err;

	add_string(line, "event", "ready");
	add_number(line, "max_bytes", most);
	snprintf(what, sizeof(what), "perf server, tensors up to %" PRIu64 " bytes,",
		 most);
	err = server_ready(&perf->server, what, line);
	if (!err)
		err = server_run(&perf->server);
	if (err)
		return err;
	server_withdraw(&perf->server, published->nr, name_of, published,
			rdmatensor_deadline_ms(SERVER_END_MS));
	return server_end(&perf->server);
}

static uint64_t word_of(void *arg, uint64_t i)
{
	(void)arg;
	return perf_word(i);
}

int perf_serve(struct perf *perf)
{
	struct published published = { 0 };
	struct store store = { 0 };
	uint64_t most;
	int err;

	err = server_start(&perf->server);
	if (err)
		return err;
	most = choose(perf, &published);
	err = store_create_of(perf->server.rt, perf->memory, 1, align_up(most, 8),
			      RDMATENSOR_POOL_PEERS_NONE, &store);
	if (!err) {
		server_fill(&store, (most + 7) / 8, word_of, NULL);
		err = publish(perf, &published, &store);
	}
	if (!err)
		err = run(perf, &published, most);
	rdmatensor_close(perf->server.rt);
	return err;
}
