/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The two sides of gather: a server that exports rows, and a client that gathers them from
 * several servers again and again.
 */
#ifndef TOOL_GATHER_SIDES_H
#define TOOL_GATHER_SIDES_H

#include "tool/common/server.h"

enum gather_kind { KIND_RANDOM, KIND_SORTED, KIND_POWER, KIND_APART };

/**
 * struct gathering - options of both sides
 * @server: the server's context; the client's options too
 * @table: name of the table
 * @row_start: server: number of its first row
 * @row_end: server: number after its last one
 * @row_bytes: server: of a row
 * @peers: client: addresses of all owners
 * @nr_peers: their number
 * @ids: client: of one gather
 * @kind: client: which ones
 * @depth: client: gathers at the same time
 * @count: client: gathers to measure, 0: by time
 * @duration_ns: client: time to measure for
 * @timeout_ns: client: bound on each gather, 0: none
 */
struct gathering {
	struct server server;
	const char *table;
	int64_t row_start;
	int64_t row_end;
	uint64_t row_bytes;
	char **peers;
	int nr_peers;
	int64_t ids;
	enum gather_kind kind;
	int64_t depth;
	int64_t count;
	uint64_t duration_ns;
	uint64_t timeout_ns;
};

/* Word @i of a row of @row_bytes, by which the client checks what arrives */
static inline uint64_t gather_word(uint64_t row, uint64_t row_bytes, uint64_t i)
{
	return (row * (row_bytes / 8) + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* server.c: until a signal, or --exit-after */
int gather_serve(struct gathering *gathering);
/* client.c */
int gather_measure(struct gathering *gathering);

#endif
