// SPDX-License-Identifier: GPL-2.0
/*
 * Holdings: the life of what contexts share.
 *
 * The first context to START makes them; a descriptor (api/domain_file.c) is another reference,
 * by which later contexts join. They end with the last reference: pools are unregistered, the
 * protection domain is freed, lasting tensors are released, and at last the pools' memory.
 *
 * Contexts make pools with their own device_use held, and each has a reference to the
 * protection domain until its own use of the device has ended. Pools are destroyed, and tensor
 * buffers made, with the holdings' device_use held, as a context that is stopped may still call.
 * The holdings' adapter is told of a removal after those of all contexts, which are stopped by
 * then: nothing is in flight to or from a pool.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include "context/config.h"
#include "context/context_list.h"
#include "context/holdings.h"
#include "context/holdings_list.h"
#include "core/fault.h"
#include "core/limits.h"
#include "memory/domain.h"
#include "memory/pool.h"

/*
 * Tensor buffers are pools that no process maps and no peer accesses: writes to peers and
 * loopback fetches read them
 */
static int holdings_make_buffer(struct rdmatensor_buffers *buffers,
				struct rdmatensor_buffer *buffer)
{
	struct rdmatensor_holdings *holdings =
		container_of(buffers, struct rdmatensor_holdings, buffers);
	struct rdmatensor_pool *pool = ERR_PTR(-ENODEV);

	if (READ_ONCE(holdings->gone))
		return -ENODEV;
	down_read(&holdings->device_use);
	if (holdings->domain && !rdmatensor_domain_ending(holdings->domain))
		pool = rdmatensor_pool_create(holdings->domain, buffer->bytes,
					      RDMATENSOR_POOL_PEERS_NONE,
					      rdmatensor_config_memlock());
	/* Under @device_use: a removal finds it there */
	if (!IS_ERR(pool))
		buffer->pool = pool;
	up_read(&holdings->device_use);
	return PTR_ERR_OR_ZERO(pool);
}

/* A removal unregisters it, too: never both at the same time, by the buffers' membership */
static void holdings_unmake_buffer(struct rdmatensor_buffers *buffers,
				   struct rdmatensor_buffer *buffer)
{
	rdmatensor_pool_unregister(buffer->pool);
	/* The memory is free before a waiter is woken because of the free place */
	rdmatensor_pool_put_now(buffer->pool);
}

static const struct rdmatensor_buffers_ops holdings_buffers_ops = {
	.make = holdings_make_buffer,
	.unmake = holdings_unmake_buffer,
};

static void holdings_unregister_buffer(struct rdmatensor_buffer *buffer)
{
	rdmatensor_pool_unregister(buffer->pool);
}

/* Ends every use of the device. No context uses it any more. Idempotent */
static void holdings_stop(struct rdmatensor_holdings *holdings)
{
	struct rdmatensor_domain *domain;
	struct rdmatensor_pool *pool;
	unsigned long id;

	down_write(&holdings->device_use);
	domain = holdings->domain;
	if (domain) {
		xa_for_each(&holdings->pools, id, pool)
			rdmatensor_pool_unregister(pool);
		rdmatensor_buffers_each(&holdings->buffers, holdings_unregister_buffer);
		/* As it is called now: devices can be renamed */
		strscpy(holdings->device, domain->ibdev->name, sizeof(holdings->device));
		holdings->domain = NULL;
		/* Contexts and exports have put theirs, or would use what goes now */
		WARN_ON_ONCE(!rdmatensor_domain_is_last(domain));
		rdmatensor_domain_put(domain);
	}
	up_write(&holdings->device_use);
}

static void holdings_device_gone(struct rdmatensor_adapter *adapter)
{
	struct rdmatensor_holdings *holdings =
		container_of(adapter, struct rdmatensor_holdings, adapter);

	WRITE_ONCE(holdings->gone, true);
	holdings_stop(holdings);
}

struct rdmatensor_holdings *
rdmatensor_holdings_create(const struct rdmatensor_adapter_choice *choice, struct net *net,
			   const struct rdmatensor_start *start, char *cause, size_t room)
{
	struct rdmatensor_holdings *holdings;
	struct rdmatensor_adapter_choice last = *choice;
	int ret;

	holdings = kzalloc(sizeof(*holdings), RDMATENSOR_GFP_SPARING);
	if (!holdings)
		return ERR_PTR(-ENOMEM);
	ret = rdmatensor_lasting_init(&holdings->lasting);
	if (ret)
		goto out_free;
	kref_init(&holdings->ref);
	init_rwsem(&holdings->device_use);
	mutex_init(&holdings->lock);
	xa_init_flags(&holdings->pools, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	holdings->net_cookie = net->net_cookie;
	rdmatensor_owner_init(&holdings->owner);
	strscpy(holdings->worker, start->worker, sizeof(holdings->worker));
	holdings->max_pools = start->max_pools;
	holdings->mr_page_bytes = start->mr_page_bytes;
	holdings->strict = start->mr_mode == RDMATENSOR_MR_MODE_STRICT;
	holdings->buffers.ops = &holdings_buffers_ops;
	holdings->buffers.wq = system_unbound_wq;
	holdings->buffers.max = start->max_pools;
	rdmatensor_buffers_init(&holdings->buffers);

	last.last = true;
	ret = rdmatensor_adapter_bind(&holdings->adapter, &last, holdings_device_gone, cause,
				      room);
	if (ret)
		goto out_destroy;
	/* Last: readers find it from here on */
	ret = rdmatensor_holdings_list_add(holdings);
	if (ret)
		goto out_unbind;
	return holdings;

out_unbind:
	rdmatensor_adapter_unbind(&holdings->adapter);
out_destroy:
	rdmatensor_owner_put(&holdings->owner);
	rdmatensor_buffers_destroy(&holdings->buffers);
	mutex_destroy(&holdings->lock);
	rdmatensor_lasting_destroy(&holdings->lasting);
out_free:
	kfree(holdings);
	return ERR_PTR(ret);
}

struct rdmatensor_domain *rdmatensor_holdings_domain(struct rdmatensor_holdings *holdings,
						     char *cause, size_t room)
{
	struct rdmatensor_domain *domain;

	down_write(&holdings->device_use);
	domain = holdings->domain;
	if (!domain) {
		domain = rdmatensor_domain_create(&holdings->adapter, holdings->mr_page_bytes,
						  holdings->strict, cause, room);
		if (IS_ERR(domain))
			goto out_up;
		holdings->domain = domain;
	}
	rdmatensor_domain_get(domain);
out_up:
	up_write(&holdings->device_use);
	return domain;
}

static void holdings_free(struct kref *ref)
{
	struct rdmatensor_holdings *holdings =
		container_of(ref, struct rdmatensor_holdings, ref);
	struct rdmatensor_pool *pool;
	unsigned long id;

	rdmatensor_holdings_list_del(holdings);
	holdings_stop(holdings);
	rdmatensor_adapter_unbind(&holdings->adapter);
	rdmatensor_lasting_destroy(&holdings->lasting);
	xa_for_each(&holdings->pools, id, pool) {
		xa_erase(&holdings->pools, id);
		/* Whoever closes last may want the memory for something else */
		rdmatensor_pool_put_now(pool);
		cond_resched();
	}
	xa_destroy(&holdings->pools);
	rdmatensor_buffers_destroy(&holdings->buffers);
	if (holdings->described)
		rdmatensor_context_list_end();
	rdmatensor_owner_put(&holdings->owner);
	mutex_destroy(&holdings->lock);
	kfree(holdings);
}

void rdmatensor_holdings_put(struct rdmatensor_holdings *holdings)
{
	might_sleep();
	kref_put(&holdings->ref, holdings_free);
}

int rdmatensor_holdings_describe(struct rdmatensor_holdings *holdings, int most)
{
	int ret = 0;

	mutex_lock(&holdings->lock);
	if (!holdings->described)
		ret = rdmatensor_context_list_start(most);
	if (!ret)
		holdings->described = true;
	mutex_unlock(&holdings->lock);
	return ret;
}

bool rdmatensor_holdings_device(struct rdmatensor_holdings *holdings, char *name, size_t room)
{
	bool there;

	down_read(&holdings->device_use);
	there = holdings->domain;
	strscpy(name, there ? holdings->domain->ibdev->name : holdings->device, room);
	up_read(&holdings->device_use);
	return there;
}

struct rdmatensor_pool *rdmatensor_holdings_pool(struct rdmatensor_holdings *holdings, u32 id)
{
	struct rdmatensor_pool *pool;

	xa_lock(&holdings->pools);
	pool = xa_load(&holdings->pools, id);
	if (pool)
		rdmatensor_pool_get(pool);
	xa_unlock(&holdings->pools);
	return pool;
}

bool rdmatensor_holdings_pool_info(struct rdmatensor_holdings *holdings, u32 id,
				   struct rdmatensor_pool_info *info)
{
	struct rdmatensor_pool *pool;

	/* A pool leaves the table, under this lock, before its reference is put */
	xa_lock(&holdings->pools);
	pool = xa_load(&holdings->pools, id);
	if (pool)
		rdmatensor_pool_describe(pool, info);
	xa_unlock(&holdings->pools);
	rdmatensor_hold("pool_read");
	return pool;
}

bool rdmatensor_holdings_next_pool_info(struct rdmatensor_holdings *holdings, unsigned long *id,
					struct rdmatensor_pool_info *info)
{
	struct rdmatensor_pool *pool;

	xa_lock(&holdings->pools);
	pool = xa_find_after(&holdings->pools, id, ULONG_MAX, XA_PRESENT);
	if (pool)
		rdmatensor_pool_describe(pool, info);
	xa_unlock(&holdings->pools);
	rdmatensor_hold("pool_read");
	return pool;
}

u32 rdmatensor_holdings_nr_pools(struct rdmatensor_holdings *holdings)
{
	u32 nr;

	mutex_lock(&holdings->lock);
	nr = holdings->nr_pools;
	mutex_unlock(&holdings->lock);
	return nr;
}

/* A place in which there is no pool, or not any more, is free */
static void holdings_vacate(struct rdmatensor_holdings *holdings)
{
	mutex_lock(&holdings->lock);
	holdings->nr_pools--;
	mutex_unlock(&holdings->lock);
}

int rdmatensor_holdings_reserve(struct rdmatensor_holdings *holdings, u32 *id)
{
	int ret = -EUSERS;

	mutex_lock(&holdings->lock);
	if (holdings->nr_pools < holdings->max_pools) {
		ret = xa_alloc_cyclic(&holdings->pools, id, NULL,
				      XA_LIMIT(1, RDMATENSOR_POOL_ID_MAX),
				      &holdings->next_pool, RDMATENSOR_GFP_SPARING);
		if (ret >= 0)
			holdings->nr_pools++;
	}
	mutex_unlock(&holdings->lock);
	return min(ret, 0);
}

void rdmatensor_holdings_unreserve(struct rdmatensor_holdings *holdings, u32 id)
{
	xa_release(&holdings->pools, id);
	holdings_vacate(holdings);
}

void rdmatensor_holdings_add(struct rdmatensor_holdings *holdings, struct rdmatensor_pool *pool)
{
	/* Storing into a reserved place cannot fail */
	WARN_ON_ONCE(xa_store(&holdings->pools, pool->id, pool, GFP_KERNEL));
}

/* Takes a pool out that nothing uses: no other caller can find it any more */
static struct rdmatensor_pool *holdings_take(struct rdmatensor_holdings *holdings, u32 id)
{
	struct rdmatensor_pool *pool;
	int ret;

	xa_lock(&holdings->pools);
	pool = xa_load(&holdings->pools, id);
	ret = pool ? rdmatensor_regions_close(&pool->regions) : -ENOENT;
	if (!ret)
		__xa_erase(&holdings->pools, id);
	xa_unlock(&holdings->pools);
	return ret ? ERR_PTR(ret) : pool;
}

int rdmatensor_holdings_destroy(struct rdmatensor_holdings *holdings, u32 id)
{
	struct rdmatensor_pool *pool;

	/*
	 * A removal does not find it once it is out of the table, so it waits for this. A context
	 * that has been told of the removal may still call, while others are being told
	 */
	down_read(&holdings->device_use);
	pool = holdings_take(holdings, id);
	if (!IS_ERR(pool)) {
		rdmatensor_hold("pool_destroy");
		rdmatensor_pool_unregister(pool);
		holdings_vacate(holdings);
	}
	up_read(&holdings->device_use);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	/* The caller may want what was pinned for something else when this returns */
	rdmatensor_pool_put_now(pool);
	return 0;
}
