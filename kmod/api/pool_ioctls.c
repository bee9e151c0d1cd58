// SPDX-License-Identifier: GPL-2.0
/*
 * POOL_CREATE, POOL_REGISTER, POOL_IMPORT, POOL_DESTROY, POOL_ALLOC, POOL_QUERY. The context's
 * domain holds one reference of each pool, and drops all of them when it ends.
 */
#include <linux/dma-buf.h>
#include <linux/overflow.h>
#include "api/ioctl.h"
#include "context/config.h"
#include "context/context.h"
#include "core/fault.h"
#include "core/limits.h"
#include "memory/dmabuf.h"
#include "memory/pinned.h"

/* It may be destroyed from here on. Under @device_use: a removal finds it */
static void pools_add(struct rdmatensor_context *context, struct rdmatensor_pool *pool)
{
	lockdep_assert_held(&context->device_use);
	rdmatensor_holdings_add(context->holdings, pool);
	rdmatensor_context_list_changed(&context->listed);
}

/* Of what @arg says. Return: as rdmatensor_pool_create() */
typedef struct rdmatensor_pool *(*pools_make_fn)(struct rdmatensor_context *context, void *arg);

/**
 * enum pools_kind - what a pool is made of, and so what bounds it
 * @POOLS_CREATED: pages of the kernel's
 * @POOLS_PINNED: a process's memory, which counts for RLIMIT_MEMLOCK
 * @POOLS_IMPORTED: a dma-buf, which does so too, and may be longer than all memory
 */
enum pools_kind {
	POOLS_CREATED,
	POOLS_PINNED,
	POOLS_IMPORTED,
};

/* Nothing that is freed makes room for it. What is idle does not count for RLIMIT_MEMLOCK */
static bool pools_in_vain(enum pools_kind kind, u64 bytes)
{
	if (kind != POOLS_IMPORTED && rdmatensor_pool_too_long(bytes))
		return true;
	return kind != POOLS_CREATED && !rdmatensor_config_memlock() &&
	       !rdmatensor_charge_has_room(bytes >> PAGE_SHIFT);
}

/*
 * Idle buffers, which are kept for reuse only, are freed for a pool of @bytes; but not for one
 * that there cannot be: they are others', too
 */
static struct rdmatensor_pool *pools_make(struct rdmatensor_context *context, pools_make_fn make,
					  void *arg, enum pools_kind kind, u64 bytes)
{
	struct rdmatensor_buffers *buffers = &context->holdings->buffers;
	u32 tries = rdmatensor_buffers_tries(buffers);
	struct rdmatensor_pool *pool;
	unsigned long nr_freed;

	do {
		nr_freed = rdmatensor_buffers_nr_freed(buffers);
		pool = make(context, arg);
	} while ((pool == ERR_PTR(-ENOMEM) || pool == ERR_PTR(-EDQUOT)) && --tries &&
		 !pools_in_vain(kind, bytes) &&
		 rdmatensor_buffers_make_room(buffers, nr_freed, bytes));
	return pool;
}

static struct rdmatensor_pool *pools_create(struct rdmatensor_context *context, void *arg)
{
	const struct rdmatensor_pool_create *create = arg;

	lockdep_assert_held(&context->device_use);
	return READ_ONCE(context->gone) ? ERR_PTR(-ENODEV) :
	       rdmatensor_pool_create(context->domain, create->bytes, create->peers,
				      rdmatensor_config_memlock());
}

int rdmatensor_ioctl_pool_create(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_create *create = arg;
	struct rdmatensor_pool *pool;
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
	ret = rdmatensor_holdings_reserve(context->holdings, &id);
	if (ret)
		return ret;

	down_read(&context->device_use);
	pool = pools_make(context, pools_create, create, POOLS_CREATED, create->bytes);
	if (IS_ERR(pool)) {
		up_read(&context->device_use);
		rdmatensor_holdings_unreserve(context->holdings, id);
		return PTR_ERR(pool);
	}
	pool->id = id;
	create->bytes = pool->bytes;
	create->out_pool_id = id;
	create->out_mmap_offset = rdmatensor_pool_mmap_offset(pool->id);
	pools_add(context, pool);
	up_read(&context->device_use);
	return 0;
}

/* @_arg: of an ioctl that has a cause */
#define POOLS_SAY(_arg, _call, _format, ...) \
	snprintf((_arg)->cause, sizeof((_arg)->cause), _call ": " _format, ##__VA_ARGS__)
#define POOL_REGISTER_SAYS(_register, _format, ...) \
	POOLS_SAY(_register, "POOL_REGISTER", _format, ##__VA_ARGS__)
#define POOL_IMPORT_SAYS(_import, _format, ...) \
	POOLS_SAY(_import, "POOL_IMPORT", _format, ##__VA_ARGS__)

/* What REGISTER and IMPORT both say: READ_ONLY is bit 0 of their flags, and all there is */
static int pools_check_flags(u32 flags, u32 peers, const char *call, char *cause, size_t room)
{
	BUILD_BUG_ON(RDMATENSOR_REGISTER_READ_ONLY != RDMATENSOR_IMPORT_READ_ONLY);
	BUILD_BUG_ON(RDMATENSOR_REGISTER_FLAGS != RDMATENSOR_IMPORT_FLAGS);
	if (flags & ~RDMATENSOR_REGISTER_FLAGS || peers > RDMATENSOR_POOL_PEERS_READ) {
		snprintf(cause, room,
			 "%s: flags 0x%x, peers %u: this module knows flags 0x%x and peers 0..%u",
			 call, flags, peers, RDMATENSOR_REGISTER_FLAGS,
			 RDMATENSOR_POOL_PEERS_READ);
		return -EINVAL;
	}
	if (flags & RDMATENSOR_REGISTER_READ_ONLY && peers == RDMATENSOR_POOL_PEERS_WRITE) {
		snprintf(cause, room,
			 "%s: peers cannot write to what is read-only: set peers to RDMATENSOR_POOL_PEERS_NONE or _READ",
			 call);
		return -EINVAL;
	}
	return 0;
}

static int pools_check_register(struct rdmatensor_pool_register *reg)
{
	u64 end;

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
static struct rdmatensor_pool *pools_pin(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_register *reg = arg;
	const struct rdmatensor_pin pin = {
		.addr = reg->addr,
		.bytes = reg->bytes,
		.write = !(reg->flags & RDMATENSOR_REGISTER_READ_ONLY),
	};

	return rdmatensor_pool_pin(&pin, reg->peers, context->adapter.seg_shift, &context->gone,
				   reg->cause, sizeof(reg->cause));
}

static struct rdmatensor_pool *pools_pin_all(struct rdmatensor_context *context,
					     struct rdmatensor_pool_register *reg)
{
	return pools_make(context, pools_pin, reg, POOLS_PINNED, reg->bytes);
}

struct rdmatensor_pool *rdmatensor_pools_pin(struct rdmatensor_context *context, u64 addr,
					     u64 bytes)
{
	struct rdmatensor_pool_register reg = {
		.addr = ALIGN_DOWN(addr, PAGE_SIZE),
		.peers = RDMATENSOR_POOL_PEERS_NONE,
	};
	u64 end;
	int ret;

	if (check_add_overflow(addr, bytes, &end) || end > U64_MAX - PAGE_SIZE)
		return ERR_PTR(-EFAULT);
	reg.bytes = PAGE_ALIGN(end) - reg.addr;
	ret = pools_check_register(&reg);
	if (ret)
		return ERR_PTR(ret);
	if (READ_ONCE(context->gone))
		return ERR_PTR(-ENODEV);
	return pools_pin_all(context, &reg);
}

/* Of memory that is there, and is not registered yet. With an error the pool is gone */
static int pools_begin(struct rdmatensor_context *context, struct rdmatensor_pool *pool, u32 id)
{
	int ret = -ENODEV;

	pool->id = id;
	rdmatensor_hold("pool_pinned");
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

static int pools_register(struct rdmatensor_context *context,
			  struct rdmatensor_pool_register *reg, u32 id)
{
	struct rdmatensor_pool *pool;
	int ret;

	ret = pools_fit(context, reg->bytes);
	if (ret)
		return ret;
	pool = pools_pin_all(context, reg);
	return IS_ERR(pool) ? PTR_ERR(pool) : pools_begin(context, pool, id);
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
	case -EDQUOT:
		return "the RDMA cgroup allows no more regions: raise hca_object in its rdma.max";
	case -EINTR:
		return "there is a signal for the process: try again";
	case -EOPNOTSUPP:
		return "the exporter refuses, has no whole pages, or was not ready in 10 s";
	default:
		return "the device refuses to register them: see the kernel's log";
	}
}

/* Reserves a place, with a cause */
static int pools_enter(struct rdmatensor_context *context, u32 *id, const char *call,
		       char *cause, size_t room)
{
	int ret;

	if (!rdmatensor_context_started(context)) {
		snprintf(cause, room, "%s: the context is not started: START it first", call);
		return -ENOTCONN;
	}
	ret = rdmatensor_holdings_reserve(context->holdings, id);
	if (ret)
		snprintf(cause, room,
			 "%s: all max_pools %u of this context are there, or no memory is (%d): destroy one, or START with more",
			 call, context->holdings->max_pools, ret);
	return ret;
}

/* There is no pool in that place. A cause that is there stays */
static void pools_leave(struct rdmatensor_context *context, u32 id, int error, const char *call,
			char *cause, size_t room)
{
	rdmatensor_holdings_unreserve(context->holdings, id);
	if (!cause[0])
		snprintf(cause, room, "%s: %s (%d)", call, pools_why(error), error);
}

int rdmatensor_ioctl_pool_register(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_register *reg = arg;
	u32 id;
	int ret;

	memset(reg->cause, 0, sizeof(reg->cause));
	reg->out_pool_id = 0;
	ret = pools_check_flags(reg->flags, reg->peers, "POOL_REGISTER", reg->cause,
				sizeof(reg->cause)) ?: pools_check_register(reg);
	if (ret)
		return ret;
	ret = pools_enter(context, &id, "POOL_REGISTER", reg->cause, sizeof(reg->cause));
	if (ret)
		return ret;
	ret = pools_register(context, reg, id);
	if (ret) {
		pools_leave(context, id, ret, "POOL_REGISTER", reg->cause, sizeof(reg->cause));
		return ret;
	}
	reg->out_pool_id = id;
	return 0;
}

/* Return: 0; an errno with a cause */
static int pools_check_import(struct rdmatensor_pool_import *import, const struct dma_buf *buf)
{
	if (!buf->size || !IS_ALIGNED(buf->size, PAGE_SIZE)) {
		POOL_IMPORT_SAYS(import,
				 "the dma-buf has %zu bytes, which is not a number of whole pages: export it so",
				 buf->size);
		return -EINVAL;
	}
	if (buf->size > RDMATENSOR_POOL_BYTES_MAX) {
		POOL_IMPORT_SAYS(import,
				 "the dma-buf has %zu bytes, and a pool at most %llu: export it in parts",
				 buf->size, RDMATENSOR_POOL_BYTES_MAX);
		return -EOVERFLOW;
	}
	if (!(buf->file->f_mode & FMODE_READ)) {
		POOL_IMPORT_SAYS(import,
				 "fd %d is open for writing alone, and what is in a pool can be read: export it with O_RDWR",
				 import->fd);
		return -EACCES;
	}
	if (!(import->flags & RDMATENSOR_IMPORT_READ_ONLY) && !(buf->file->f_mode & FMODE_WRITE)) {
		POOL_IMPORT_SAYS(import,
				 "fd %d is open for reading alone: export it with O_RDWR, or import it with RDMATENSOR_IMPORT_READ_ONLY",
				 import->fd);
		return -EACCES;
	}
	return 0;
}

/* The dma-buf of the caller's descriptor, referenced */
static struct dma_buf *pools_dma_buf(struct rdmatensor_pool_import *import)
{
	struct dma_buf *buf = dma_buf_get(import->fd);

	if (buf == ERR_PTR(-EBADF))
		POOL_IMPORT_SAYS(import,
				 "fd %d: no file is open there: give the descriptor of a dma-buf",
				 import->fd);
	else if (IS_ERR(buf))
		POOL_IMPORT_SAYS(import,
				 "fd %d is no dma-buf: give the descriptor that its exporter made (UDMABUF_CREATE, DMA_HEAP_IOCTL_ALLOC, cuMemGetHandleForAddressRange(), hsa_amd_portable_export_dmabuf())",
				 import->fd);
	return buf;
}

/* What is imported: the ioctl's argument, and the dma-buf that its descriptor is of */
struct pools_import {
	struct rdmatensor_pool_import *arg;
	struct dma_buf *buf;
};

/* Without a lock, as pools_pin(): its exporter may be long about it */
static struct rdmatensor_pool *pools_import_buf(struct rdmatensor_context *context, void *arg)
{
	const struct pools_import *from = arg;
	const struct rdmatensor_import import = {
		.buf = from->buf,
		.bytes = from->buf->size,
		.slice_shift = context->adapter.seg_shift,
		.write = !(from->arg->flags & RDMATENSOR_IMPORT_READ_ONLY),
		.software = context->adapter.software,
		.stop = &context->gone,
	};

	return rdmatensor_pool_import(&import, from->arg->peers, from->arg->cause,
				      sizeof(from->arg->cause));
}

static int pools_import_as(struct rdmatensor_context *context,
			   struct rdmatensor_pool_import *arg, struct dma_buf *buf, u32 id)
{
	struct pools_import from = { .arg = arg, .buf = buf };
	struct rdmatensor_pool *pool;
	bool reachable;
	int ret;

	ret = pools_check_import(arg, buf) ?: pools_fit(context, buf->size);
	if (ret)
		return ret;
	pool = pools_make(context, pools_import_buf, &from, POOLS_IMPORTED, buf->size);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	reachable = rdmatensor_pool_reachable(pool);
	ret = pools_begin(context, pool, id);
	if (ret)
		return ret;
	arg->out_bytes = buf->size;
	arg->out_flags = reachable ? 0 : RDMATENSOR_IMPORTED_UNREACHABLE;
	return 0;
}

static int pools_import(struct rdmatensor_context *context, struct rdmatensor_pool_import *arg,
			u32 id)
{
	struct dma_buf *buf;
	int ret;

	buf = pools_dma_buf(arg);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = pools_import_as(context, arg, buf, id);
	dma_buf_put(buf);
	return ret;
}

int rdmatensor_ioctl_pool_import(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_import *import = arg;
	u32 id;
	int ret;

	memset(import->cause, 0, sizeof(import->cause));
	import->out_pool_id = 0;
	import->out_flags = 0;
	import->out_bytes = 0;
	ret = pools_check_flags(import->flags, import->peers, "POOL_IMPORT", import->cause,
				sizeof(import->cause));
	if (ret)
		return ret;
	ret = pools_enter(context, &id, "POOL_IMPORT", import->cause, sizeof(import->cause));
	if (ret)
		return ret;
	ret = pools_import(context, import, id);
	if (ret) {
		pools_leave(context, id, ret, "POOL_IMPORT", import->cause,
			    sizeof(import->cause));
		return ret;
	}
	import->out_pool_id = id;
	return 0;
}

int rdmatensor_ioctl_pool_destroy(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_destroy *destroy = arg;
	int ret;

	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	ret = rdmatensor_holdings_destroy(context->holdings, destroy->pool_id);
	if (!ret)
		rdmatensor_context_list_changed(&context->listed);
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
	ret = rdmatensor_regions_alloc(&pool->regions, alloc->bytes, RDMATENSOR_GFP_SPARING,
				       &alloc->out_offset);
	rdmatensor_pool_put(pool);
	return ret;
}
