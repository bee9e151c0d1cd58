// SPDX-License-Identifier: GPL-2.0
/*
 * POOL_CREATE, POOL_REGISTER, POOL_DESTROY, POOL_ALLOC. The context holds one reference of
 * each pool, and drops all of them when it is closed.
 */
#include <linux/overflow.h>
#include "api/ioctl.h"
#include "context/context.h"
#include "core/fault.h"
#include "memory/pinned.h"

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

/*
 * It may be destroyed from here on. Under @device_use: a removal finds it. Storing into a
 * reserved place cannot fail
 */
static void pools_add(struct rdmatensor_context *context, struct rdmatensor_pool *pool)
{
	lockdep_assert_held(&context->device_use);
	WARN_ON_ONCE(xa_store(&context->pools, pool->id, pool, GFP_KERNEL));
	rdmatensor_context_list_changed(&context->listed);
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
	pools_add(context, pool);
	up_read(&context->device_use);
	return 0;
}

#define POOL_REGISTER_SAYS(_register, _format, ...) \
	snprintf((_register)->cause, sizeof((_register)->cause), \
		 "POOL_REGISTER: " _format, ##__VA_ARGS__)

static int pools_check_register(struct rdmatensor_pool_register *reg)
{
	u64 end;

	if (reg->flags & ~RDMATENSOR_REGISTER_FLAGS || reg->peers > RDMATENSOR_POOL_PEERS_READ) {
		POOL_REGISTER_SAYS(reg,
				   "flags 0x%x, peers %u: this module knows flags 0x%x and peers 0..%u",
				   reg->flags, reg->peers, RDMATENSOR_REGISTER_FLAGS,
				   RDMATENSOR_POOL_PEERS_READ);
		return -EINVAL;
	}
	if (reg->flags & RDMATENSOR_REGISTER_READ_ONLY &&
	    reg->peers == RDMATENSOR_POOL_PEERS_WRITE) {
		POOL_REGISTER_SAYS(reg,
				   "peers cannot write to what is registered read-only: set peers to RDMATENSOR_POOL_PEERS_NONE or _READ");
		return -EINVAL;
	}
	if (!reg->bytes || !IS_ALIGNED(reg->addr | reg->bytes, PAGE_SIZE)) {
		POOL_REGISTER_SAYS(reg,
				   "%llu bytes at 0x%llx: both must be multiples of the page size, %lu, and not 0: have the memory from mmap() or aligned_alloc()",
				   reg->bytes, reg->addr, PAGE_SIZE);
		return -EINVAL;
	}
	if (check_add_overflow(reg->addr, reg->bytes, &end) || end > ULONG_MAX ||
	    reg->bytes > RDMATENSOR_POOL_BYTES_MAX) {
		POOL_REGISTER_SAYS(reg,
				   "%llu bytes at 0x%llx: no process has so many: check address and length",
				   reg->bytes, reg->addr);
		return -EFAULT;
	}
	return 0;
}

/* Before anything is pinned. Return: 0, -EOVERFLOW, -ENODEV */
static int pools_fit(struct rdmatensor_context *context, u64 bytes)
{
	int ret;

	/* The removal has begun: fail without waiting for its end */
	if (READ_ONCE(context->gone))
		return -ENODEV;
	down_read(&context->device_use);
	ret = READ_ONCE(context->gone) ? -ENODEV :
	      rdmatensor_pool_size(context->domain, &bytes);
	up_read(&context->device_use);
	return ret;
}

/*
 * Pinned without a lock: a page may be long in coming, even from another process (userfaultfd,
 * FUSE), and a removal of the device is not to wait for it. mmap() of a pool is called with the
 * address space's lock, which a fault takes, too
 */
static struct rdmatensor_pool *pools_pin(struct rdmatensor_context *context,
					 struct rdmatensor_pool_register *reg)
{
	const struct rdmatensor_pin pin = {
		.addr = reg->addr,
		.bytes = reg->bytes,
		.write = !(reg->flags & RDMATENSOR_REGISTER_READ_ONLY),
	};
	struct rdmatensor_pool *pool;
	unsigned long nr_freed;
	u32 tries;

	tries = rdmatensor_buffers_tries(&context->buffers);
	do {
		nr_freed = rdmatensor_buffers_nr_freed(&context->buffers);
		pool = rdmatensor_pool_pin(&pin, reg->peers, context->adapter.seg_shift,
					   &context->gone, reg->cause, sizeof(reg->cause));
		/* Idle buffers, which are kept for reuse only, are freed for a pool */
	} while (pool == ERR_PTR(-ENOMEM) && --tries &&
		 rdmatensor_buffers_make_room(&context->buffers, nr_freed));
	return pool;
}

static int pools_register(struct rdmatensor_context *context,
			  struct rdmatensor_pool_register *reg, u32 id)
{
	struct rdmatensor_pool *pool;
	int ret;

	ret = pools_fit(context, reg->bytes);
	if (ret)
		return ret;
	pool = pools_pin(context, reg);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	pool->id = id;
	rdmatensor_hold("pool_pinned");
	ret = -ENODEV;
	if (READ_ONCE(context->gone))
		goto out_put;
	down_read(&context->device_use);
	if (!READ_ONCE(context->gone))
		ret = rdmatensor_pool_register(pool, context->domain);
	if (!ret)
		pools_add(context, pool);
	up_read(&context->device_use);
	if (!ret)
		return 0;
out_put:
	rdmatensor_pool_put_now(pool);
	return ret;
}

/* Where nobody has said more */
static const char *pools_why(int error)
{
	switch (error) {
	case -ENODEV:
		return "the RDMA device is being removed: start a new context when it is back";
	case -EOVERFLOW:
		return "the device registers no more: destroy pools, or register less";
	case -ENOMEM:
		return "no memory to describe them: free some, or raise memory.max of the cgroup";
	case -EINTR:
		return "the process is being killed";
	default:
		return "the device refuses to register them: see the kernel's log";
	}
}

int rdmatensor_ioctl_pool_register(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_register *reg = arg;
	u32 id;
	int ret;

	memset(reg->cause, 0, sizeof(reg->cause));
	reg->out_pool_id = 0;
	ret = pools_check_register(reg);
	if (ret)
		return ret;
	if (!rdmatensor_context_started(context)) {
		POOL_REGISTER_SAYS(reg, "the context is not started: START it first");
		return -ENOTCONN;
	}
	ret = pools_reserve(context, &id);
	if (ret) {
		POOL_REGISTER_SAYS(reg,
				   "all max_pools %u of this context are there, or no memory is (%d): destroy one, or START with more",
				   context->max_pools, ret);
		return ret;
	}
	ret = pools_register(context, reg, id);
	if (ret) {
		xa_release(&context->pools, id);
		pools_unreserve(context);
		if (!reg->cause[0])
			POOL_REGISTER_SAYS(reg, "%llu bytes: %s (%d)", reg->bytes,
					   pools_why(ret), ret);
		return ret;
	}
	reg->out_pool_id = id;
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
