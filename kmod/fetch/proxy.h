/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Proxies: the region that a peer writes in place of a destination that it cannot write. The
 * content is copied from there once, when it has arrived (TensorFlow's proxy tensor).
 *
 * A fetch names the pool that the region is allocated in, which is registered and charged
 * already. That pool is held as long as the fetch, and the region while a peer may write it and
 * until it has been copied: it is given back before the completion entry is visible.
 */
#ifndef RDMATENSOR_PROXY_H
#define RDMATENSOR_PROXY_H

#include "memory/pool.h"

/**
 * struct rdmatensor_proxy - what stands in for a destination, embedded by the fetch
 * @pool: that regions are allocated in, held; NULL: the fetch wants no proxy
 * @use: hold on @pool: of the region, or of an empty range
 * @offset: of the region in @pool
 * @used: content goes to @offset, and not to the destination. Of no bytes there is no region
 */
struct rdmatensor_proxy {
	struct rdmatensor_pool *pool;
	struct rdmatensor_use use;
	u64 offset;
	bool used;
};

/**
 * rdmatensor_proxy_init - hold the pool
 * @proxy: zeroed
 * @pool: stays referenced until rdmatensor_proxy_end(); NULL: none, and the calls below do nothing
 *
 * Return: 0; -EINVAL: the pool is being destroyed.
 */
int rdmatensor_proxy_init(struct rdmatensor_proxy *proxy, struct rdmatensor_pool *pool);

/**
 * rdmatensor_proxy_take - have a region for a content
 * @proxy: has a pool, and is not used
 * @bytes: of the content
 * @gfp: for the allocator of regions
 *
 * Any context. Return: 0; -ENOSPC, -ENOMEM: see rdmatensor_regions_alloc().
 */
int rdmatensor_proxy_take(struct rdmatensor_proxy *proxy, u64 bytes, gfp_t gfp);
/* Frees the region, which no peer can write any more. Idempotent; any context */
void rdmatensor_proxy_give(struct rdmatensor_proxy *proxy);
/* Ends the hold, and frees the region. The caller's reference of the pool remains. Any context */
void rdmatensor_proxy_end(struct rdmatensor_proxy *proxy);

#endif /* RDMATENSOR_PROXY_H */
