// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pools: created and mapped in one call, and unmapped by the handle's end; or memory of the
 * caller, which stays the caller's; or a dma-buf, which nothing here maps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

_Static_assert(sizeof(struct rdmatensor_pool) <= 24, "programs have it by value: its size is final");

static int destroy(struct rdmatensor *rt, uint32_t id)
{
	struct rdmatensor_pool_destroy arg = {
		.size = sizeof(arg),
		.pool_id = id,
	};

	return rt_ioctl(rt, RDMATENSOR_POOL_DESTROY, &arg);
}

int rt_map_pool(struct rdmatensor *rt, uint32_t id, uint64_t bytes, uint64_t offset,
		struct rdmatensor_pool *pool)
{
	struct rt_mapping *map = malloc(sizeof(*map));
	int err;

	if (!map)
		return -ENOMEM;
	map->id = id;
	map->bytes = (size_t)bytes;
	map->base = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rt->fd,
			 (off_t)offset);
	if (map->base == MAP_FAILED) {
		err = -errno;
		free(map);
		return err;
	}
	pool->base = map->base;
	pool->bytes = bytes;
	pool->id = id;
	pthread_mutex_lock(&rt->lock);
	map->next = rt->mappings;
	rt->mappings = map;
	pthread_mutex_unlock(&rt->lock);
	return 0;
}

int rdmatensor_pool_create(struct rdmatensor *rt, uint64_t bytes,
			   struct rdmatensor_pool *pool)
{
	return rdmatensor_pool_create_peers(rt, bytes, RDMATENSOR_POOL_PEERS_WRITE, pool);
}

int rdmatensor_pool_create_peers(struct rdmatensor *rt, uint64_t bytes,
				 enum rdmatensor_pool_peers peers, struct rdmatensor_pool *pool)
{
	struct rdmatensor_pool_create arg = {
		.size = sizeof(arg),
		.bytes = bytes,
		.peers = peers,
	};
	int err;

	err = rt_ioctl(rt, RDMATENSOR_POOL_CREATE, &arg);
	if (err)
		return err;
	err = rt_map_pool(rt, arg.out_pool_id, arg.bytes, arg.out_mmap_offset, pool);
	if (err)
		destroy(rt, arg.out_pool_id);
	return err;
}

int rdmatensor_pool_register(struct rdmatensor *rt, void *addr, uint64_t bytes,
			     enum rdmatensor_pool_peers peers, uint32_t flags,
			     struct rdmatensor_pool *pool, char *cause, size_t cause_len)
{
	struct rdmatensor_pool_register arg = {
		.size = sizeof(arg),
		.flags = flags,
		.addr = (uintptr_t)addr,
		.bytes = bytes,
		.peers = peers,
	};
	int err;

	err = rt_ioctl(rt, RDMATENSOR_POOL_REGISTER, &arg);
	if (err == -ENOTTY)
		return rt_cause(cause, cause_len, -EOPNOTSUPP,
				"POOL_REGISTER: the module is older than this: load one of this library's version");
	if (err)
		return rt_cause(cause, cause_len, err, "%s", arg.cause[0] ? arg.cause :
				"POOL_REGISTER: the call was interrupted, or is not one for this file");
	pool->base = addr;
	pool->bytes = bytes;
	pool->id = arg.out_pool_id;
	return 0;
}

int rdmatensor_pool_import(struct rdmatensor *rt, int dmabuf, enum rdmatensor_pool_peers peers,
			   uint32_t flags, struct rdmatensor_pool *pool, uint32_t *out_flags,
			   char *cause, size_t cause_len)
{
	struct rdmatensor_pool_import arg = {
		.size = sizeof(arg),
		.flags = flags,
		.fd = dmabuf,
		.peers = peers,
	};
	int err;

	err = rt_ioctl(rt, RDMATENSOR_POOL_IMPORT, &arg);
	if (err == -ENOTTY)
		return rt_cause(cause, cause_len, -EOPNOTSUPP,
				"POOL_IMPORT: the module is older than this: load one of this library's version");
	if (err)
		return rt_cause(cause, cause_len, err, "%s", arg.cause[0] ? arg.cause :
				"POOL_IMPORT: the call was interrupted, or is not one for this file");
	pool->base = NULL;
	pool->bytes = arg.out_bytes;
	pool->id = arg.out_pool_id;
	if (out_flags)
		*out_flags = arg.out_flags;
	return 0;
}

/* A mapping of a pool: at @base, or NULL: any */
static struct rt_mapping *forget(struct rdmatensor *rt, uint32_t id, const void *base)
{
	struct rt_mapping **at, *map;

	pthread_mutex_lock(&rt->lock);
	for (at = &rt->mappings; (map = *at); at = &map->next) {
		if (map->id == id && (!base || map->base == base)) {
			*at = map->next;
			break;
		}
	}
	pthread_mutex_unlock(&rt->lock);
	return map;
}

static void unmap(struct rt_mapping *map)
{
	munmap(map->base, map->bytes);
	free(map);
}

void rdmatensor_pool_close(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	struct rt_mapping *map = pool->base ? forget(rt, pool->id, pool->base) : NULL;

	if (map)
		unmap(map);
	memset(pool, 0, sizeof(*pool));
}

int rdmatensor_pool_destroy(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	struct rt_mapping *map;
	int err;

	err = destroy(rt, pool->id);
	if (err)
		return err;
	/* All of them, if it was opened more than once */
	while ((map = forget(rt, pool->id, NULL)))
		unmap(map);
	memset(pool, 0, sizeof(*pool));
	return 0;
}

void rt_unmap_all(struct rdmatensor *rt)
{
	while (rt->mappings) {
		struct rt_mapping *map = rt->mappings;

		rt->mappings = map->next;
		unmap(map);
	}
}

int rdmatensor_pool_alloc(struct rdmatensor *rt,
			  const struct rdmatensor_pool *pool, uint64_t bytes,
			  uint64_t *offset)
{
	struct rdmatensor_pool_alloc arg = {
		.size = sizeof(arg),
		.pool_id = pool->id,
		.bytes = bytes,
	};
	int err;

	err = rt_ioctl(rt, RDMATENSOR_POOL_ALLOC, &arg);
	if (!err)
		*offset = arg.out_offset;
	return err;
}

int rdmatensor_pool_free(struct rdmatensor *rt,
			 const struct rdmatensor_pool *pool, uint64_t offset)
{
	struct rdmatensor_op op;

	rdmatensor_prep_free(&op, pool->id, offset);
	return rdmatensor_submit(rt, &op, 1, 0, 0, NULL);
}
