// SPDX-License-Identifier: GPL-2.0
/*
 * POOL_CREATE, POOL_DESTROY, POOL_ALLOC. The context holds one reference of each pool, and
 * drops all of them when it is closed.
 */
#include "api/ioctl.h"
#include "context/context.h"

/*
 * Reserves a place among the pools, and an id under which there is no pool yet, so that
 * nothing can fail after the memory was allocated
 */
static int pools_reserve(struct rdmatensor_context *context, u32 *id)
{
	int ret = -EUSERS;

	mutex_lock(&context->lock);
	if (context->nr_pools < context->max_pools) {
		ret = xa_alloc_cyclic(&context->pools, id, NULL,
				      XA_LIMIT(1, RDMATENSOR_POOL_ID_MAX),
				      &context->next_pool, GFP_KERNEL_ACCOUNT);
		if (ret >= 0)
			context->nr_pools++;
	}
	mutex_unlock(&context->lock);
	return min(ret, 0);
}

/* After its id was freed */
static void pools_unreserve(struct rdmatensor_context *context)
{
	mutex_lock(&context->lock);
	context->nr_pools--;
	mutex_unlock(&context->lock);
}

int rdmatensor_ioctl_pool_create(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_create *create = arg;
	struct rdmatensor_pool *pool;
	unsigned long nr_freed;
	u32 tries;
	u32 id;
	int ret;

	if (create->flags || create->peers > RDMATENSOR_POOL_PEERS_READ || !create->bytes ||
	    create->bytes > RDMATENSOR_POOL_BYTES_MAX)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	/* The removal has begun: fail without waiting for its end */
	if (READ_ONCE(context->gone))
		return -ENODEV;
	ret = pools_reserve(context, &id);
	if (ret)
		return ret;

	tries = rdmatensor_buffers_tries(&context->buffers);
	down_read(&context->device_use);
	do {
		nr_freed = rdmatensor_buffers_nr_freed(&context->buffers);
		pool = READ_ONCE(context->gone) ? ERR_PTR(-ENODEV) :
		       rdmatensor_pool_create(context->domain, create->bytes, create->peers);
		/* Idle buffers, which are kept for reuse only, are freed for a pool */
	} while (pool == ERR_PTR(-ENOMEM) && --tries &&
		 rdmatensor_buffers_make_room(&context->buffers, nr_freed));
	if (IS_ERR(pool)) {
		up_read(&context->device_use);
		xa_release(&context->pools, id);
		pools_unreserve(context);
		return PTR_ERR(pool);
	}
	pool->id = id;
	create->bytes = pool->bytes;
	create->out_pool_id = id;
	create->out_mmap_offset = rdmatensor_pool_mmap_offset(pool);
	/* It may be destroyed from here on. Storing into a reserved place cannot fail */
	WARN_ON_ONCE(xa_store(&context->pools, id, pool, GFP_KERNEL));
	rdmatensor_context_list_changed(&context->listed);
	up_read(&context->device_use);
	return 0;
}

int rdmatensor_ioctl_pool_destroy(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_destroy *destroy = arg;
	struct rdmatensor_pool *pool;
	int ret = 0;

	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	/* A removal does not find it once it is out of the table: so it waits for this */
	down_read(&context->device_use);
	xa_lock(&context->pools);
	pool = xa_load(&context->pools, destroy->pool_id);
	if (!pool)
		ret = -ENOENT;
	else
		ret = rdmatensor_regions_close(&pool->regions);
	if (!ret)
		__xa_erase(&context->pools, destroy->pool_id);
	xa_unlock(&context->pools);
	if (!ret) {
		rdmatensor_context_list_changed(&context->listed);
		/* No other caller can find it any more */
		rdmatensor_pool_unregister(pool);
		rdmatensor_pool_put(pool);
		pools_unreserve(context);
	}
	up_read(&context->device_use);
	return ret;
}

int rdmatensor_ioctl_pool_alloc(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_alloc *alloc = arg;
	struct rdmatensor_pool *pool;
	int ret;

	if (!alloc->bytes)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	pool = rdmatensor_context_pool(context, alloc->pool_id);
	if (!pool)
		return -ENOENT;
	ret = rdmatensor_regions_alloc(&pool->regions, alloc->bytes, GFP_KERNEL_ACCOUNT,
				       &alloc->out_offset);
	rdmatensor_pool_put(pool);
	return ret;
}
