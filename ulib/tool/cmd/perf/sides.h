/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The two sides of perf: a server that publishes tensors of many sizes, and a client that
 * fetches them again and again.
 */
#ifndef TOOL_PERF_SIDES_H
#define TOOL_PERF_SIDES_H

#include "tool/common/server.h"
#include "tool/common/store.h"

#define PERF_SIZES_MAX 32

/**
 * struct perf - options of both sides
 * @server: the server's context; the client's options too
 * @peer: the server's address, for the client
 * @peer_worker: the name that it must have, or NULL
 * @sizes: of --size
 * @nr_sizes: their number
 * @max_size: server: of --max-size
 * @latency: --mode lat
 * @memory: of --memory
 * @depth: of --in-flight, 0: the mode's default
 * @batch: of --batch, 0: a quarter of @depth
 * @iters: of --iters, 0: by time
 * @duration_ns: of --duration
 */
struct perf {
	struct server server;
	const char *peer;
	const char *peer_worker;
	uint64_t sizes[PERF_SIZES_MAX];
	size_t nr_sizes;
	uint64_t max_size;
	bool latency;
	enum store_memory memory;
	int64_t depth;
	int64_t batch;
	int64_t iters;
	uint64_t duration_ns;
};

/* server.c: until a signal, or --exit-after */
int perf_serve(struct perf *perf);
/* client.c */
int perf_measure(struct perf *perf);

#endif
