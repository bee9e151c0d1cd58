// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A node's memory: pools of two kinds, for what is offered and for what is got, which are made as
 * they are needed, each twice as long as the one before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

#define POOL_LEAST (UINT64_C(16) << 20)
#define POOL_MOST (UINT64_C(1) << 30)
/* Regions that one SUBMIT gives back */
#define FREES 64

bool node_pool(struct rdmatensor_node *node, struct node_pools *pools, unsigned int i,
	       struct rdmatensor_pool *pool)
{
	bool there;

	pthread_mutex_lock(&node->lock);
	there = i < pools->nr;
	if (there)
		*pool = pools->pools[pools->nr - 1 - i];
	pthread_mutex_unlock(&node->lock);
	return there;
}

/* With the lock held */
static int add_pool(struct rdmatensor_node *node, struct node_pools *pools, uint64_t bytes)
{
	struct rdmatensor_pool *more;
	uint64_t usual = POOL_LEAST;
	int err;

	if (pools->nr)
		usual = 2 * pools->pools[pools->nr - 1].bytes;
	if (usual > POOL_MOST)
		usual = POOL_MOST;
	more = realloc(pools->pools, (pools->nr + 1) * sizeof(*more));
	if (!more)
		return node_fail(-ENOMEM, "pool: out of memory");
	pools->pools = more;
	err = rdmatensor_pool_create_peers(node->rt, bytes > usual ? bytes : usual, pools->peers,
					   &more[pools->nr]);
	/* Where there is less memory, no more than is needed now */
	if (err == -ENOMEM && bytes < usual)
		err = rdmatensor_pool_create_peers(node->rt, bytes, pools->peers,
						   &more[pools->nr]);
	if (err)
		return node_fail(err, "pool of %" PRIu64 " bytes: %s: give back what is not needed with rdmatensor_node_free(), or raise the limit (memory.max, ulimit -l, rdma.max)",
				 bytes, strerror(-err));
	pools->nr++;
	return 0;
}

int node_grow(struct rdmatensor_node *node, struct node_pools *pools, uint64_t bytes,
	      unsigned int known)
{
	int err = 0;

	pthread_mutex_lock(&node->lock);
	if (pools->nr <= known)
		err = add_pool(node, pools, bytes ? bytes : 1);
	pthread_mutex_unlock(&node->lock);
	return err;
}

bool node_find(struct rdmatensor_node *node, struct node_pools *pools, const void *data,
	       struct rdmatensor_pool *pool, uint64_t *offset)
{
	bool found = false;
	unsigned int i;

	pthread_mutex_lock(&node->lock);
	for (i = 0; i < pools->nr && !found; i++) {
		*offset = (uint64_t)((uintptr_t)data - (uintptr_t)pools->pools[i].base);
		*pool = pools->pools[i];
		found = (uintptr_t)data >= (uintptr_t)pool->base && *offset < pool->bytes;
	}
	pthread_mutex_unlock(&node->lock);
	return found;
}

int node_alloc(struct rdmatensor_node *node, struct node_pools *pools, uint64_t bytes, void **data)
{
	struct rdmatensor_pool pool;
	uint64_t offset;
	unsigned int i;
	int err;

	do {
		for (i = 0; node_pool(node, pools, i, &pool); i++) {
			err = rdmatensor_pool_alloc(node->rt, &pool, bytes, &offset);
			if (!err) {
				*data = (char *)pool.base + offset;
				return 0;
			}
			if (err != -ENOSPC)
				return node_fail(err, "alloc: %" PRIu64 " bytes of pool %u: %s", bytes,
						 pool.id, strerror(-err));
		}
		err = node_grow(node, pools, bytes, i);
	} while (!err);
	return err;
}

static void *alloc_of(struct rdmatensor_node *node, struct node_pools *pools, uint64_t bytes)
{
	void *data = NULL;

	node_clear_error();
	if (!bytes) {
		node_fail(-EINVAL, "alloc: 0 bytes: ask for at least one");
		return NULL;
	}
	if (!node_start(node, NULL))
		node_alloc(node, pools, bytes, &data);
	return data;
}

void *rdmatensor_node_alloc(struct rdmatensor_node *node, uint64_t bytes)
{
	return alloc_of(node, &node->sources, bytes);
}

void *rdmatensor_node_alloc_out(struct rdmatensor_node *node, uint64_t bytes)
{
	return alloc_of(node, &node->landings, bytes);
}

static int free_failed(const void *data, int err)
{
	if (err == -EBUSY)
		return node_fail(err, "free: the memory at %p is offered: withdraw the offer first",
				 data);
	return node_fail(err, "free: %p is not the first byte of memory of this node", data);
}

/* Operations for the node's memory among @data; rows are pools; what is not its own fails */
static unsigned int prepare_frees(struct rdmatensor_node *node, void *const *data,
				  unsigned int nr, struct rdmatensor_op *ops, int *err)
{
	struct rdmatensor_pool pool;
	unsigned int i, made = 0;
	uint64_t offset;
	int ret;

	for (i = 0; i < nr; i++) {
		if (node_find(node, &node->sources, data[i], &pool, &offset) ||
		    node_find(node, &node->landings, data[i], &pool, &offset)) {
			rdmatensor_prep_free(&ops[made], pool.id, offset);
			/* Not the kernel's: whose it is, for the error */
			ops[made++].user_data = i;
			continue;
		}
		ret = node_rows_free(node, data[i]);
		if (ret && !*err)
			*err = free_failed(data[i], ret);
	}
	return made;
}

static int free_some(struct rdmatensor_node *node, void *const *data, unsigned int nr)
{
	struct rdmatensor_op ops[FREES];
	unsigned int made, at = 0, done;
	int ret = 0, err;

	made = prepare_frees(node, data, nr, ops, &ret);
	while (at < made) {
		err = rdmatensor_submit(node->rt, &ops[at], made - at, 0, 0, &done);
		at += done;
		if (at == made)
			break;
		if (!ret)
			ret = free_failed(data[ops[at].user_data], err);
		at++;
	}
	return ret;
}

int rdmatensor_node_free_many(struct rdmatensor_node *node, void *const *data, unsigned int nr)
{
	int ret = 0, err;
	unsigned int part;

	/* One that succeeds leaves the line: a collector may call it right behind a call that failed */
	for (; nr; nr -= part, data += part) {
		part = nr < FREES ? nr : FREES;
		err = free_some(node, data, part);
		ret = ret ? ret : err;
	}
	return ret;
}

int rdmatensor_node_free(struct rdmatensor_node *node, void *data)
{
	return data ? rdmatensor_node_free_many(node, &data, 1) : 0;
}
