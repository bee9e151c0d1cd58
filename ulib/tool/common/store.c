// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A pool with one region over all of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "message.h"
#include "store.h"

/* KiB of locked memory for the pool and what the context has already */
static uint64_t wanted_kib(struct rdmatensor *rt, uint64_t bytes)
{
	struct rdmatensor_query query;

	if (!rdmatensor_query(rt, &query))
		bytes += 4096 + (uint64_t)query.ring_entries * sizeof(struct rdmatensor_cqe);
	return bytes / 1024 + 8;
}

/* EXIT_FAILED; @cause: room for the message, or NULL: it is printed */
__attribute__((format(printf, 3, 4)))
static int store_failed(char *cause, size_t len, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cause ? cause : text, cause ? len : sizeof(text), fmt, args);
	va_end(args);
	return cause ? EXIT_FAILED : failed("%s", text);
}

static int create_failed(struct rdmatensor *rt, uint64_t bytes, int err, char *cause, size_t len)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t kib = wanted_kib(rt, bytes);

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -EUSERS)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: the context has max_pools pools already: raise that: --param max_pools=N",
				    bytes);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur / 1024 < kib)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: RLIMIT_MEMLOCK is %" PRIu64 ", and pool and completion ring need more: raise it with `ulimit -l %" PRIu64 "`, or higher if this user has other pools",
			      bytes, (uint64_t)limit.rlim_cur, kib);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: out of memory, or other pools and rings of this user leave less of RLIMIT_MEMLOCK, which is %" PRIu64 ": end their processes, or raise it with `ulimit -l`",
			      bytes, (uint64_t)limit.rlim_cur);
	if (err == -ENOMEM)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: out of memory: raise the limit of the memory cgroup (memory.max) or give the machine more, or take fewer tensors at once",
			      bytes);
	if (err == -EOVERFLOW)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: the device cannot register that much: take fewer tensors at once",
			      bytes);
	return store_failed(cause, len, "pool of %" PRIu64 " bytes: %s", bytes, strerror(-err));
}

int store_create_array(struct rdmatensor *rt, uint64_t nr, uint64_t bytes,
		       enum rdmatensor_pool_peers peers, struct store *store)
{
	uint64_t all;

	if (__builtin_mul_overflow(nr, bytes, &all))
		return failed("pool of %" PRIu64 " times %" PRIu64 " bytes: the product does not fit into 64 bits: take fewer, or shorter ones",
			      nr, bytes);
	return store_create(rt, align_up(all, 4096), peers, store);
}

int store_create(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		 struct store *store)
{
	return store_create_cause(rt, bytes, peers, store, NULL, 0);
}

int store_create_cause(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		       struct store *store, char *cause, size_t len)
{
	int err;

	err = rdmatensor_pool_create_peers(rt, bytes, peers, &store->pool);
	if (err)
		return create_failed(rt, bytes, err, cause, len);
	err = rdmatensor_pool_alloc(rt, &store->pool, bytes, &store->offset);
	if (!err)
		return EXIT_OK;
	rdmatensor_pool_destroy(rt, &store->pool);
	return store_failed(cause, len, "region of %" PRIu64 " bytes: %s", bytes, strerror(-err));
}
