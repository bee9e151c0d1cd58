// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A pool with one region over all of it, in which a subcommand lays its tensors
 * out itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "tool.h"

static int create_failed(uint64_t bytes, int err)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)
		return failed("pool of %" PRIu64 " bytes: RLIMIT_MEMLOCK is %" PRIu64 ": raise it with `ulimit -l %" PRIu64 "`",
			      bytes, (uint64_t)limit.rlim_cur,
			      bytes / 1024 + 1);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		return failed("pool of %" PRIu64 " bytes: out of memory, or other pools of this user leave less of RLIMIT_MEMLOCK, which is %" PRIu64 ": end their processes, or raise it with `ulimit -l`",
			      bytes, (uint64_t)limit.rlim_cur);
	if (err == -ENOMEM)
		return failed("pool of %" PRIu64 " bytes: out of memory: give the machine more, or take fewer tensors at once",
			      bytes);
	if (err == -EOVERFLOW)
		return failed("pool of %" PRIu64 " bytes: the device registers less: take fewer tensors at once",
			      bytes);
	return failed("pool of %" PRIu64 " bytes: %s", bytes, strerror(-err));
}

int store_create(struct rdmatensor *rt, uint64_t bytes, struct store *store)
{
	int err;

	err = rdmatensor_pool_create(rt, bytes, &store->pool);
	if (err)
		return create_failed(bytes, err);
	err = rdmatensor_pool_alloc(rt, &store->pool, bytes, &store->offset);
	if (!err)
		return EXIT_OK;
	rdmatensor_pool_destroy(rt, &store->pool);
	return failed("region of %" PRIu64 " bytes: %s", bytes, strerror(-err));
}
