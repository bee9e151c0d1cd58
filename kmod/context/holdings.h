/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Holdings: what a domain has, and the contexts that have joined it share: the protection
 * domain, pools, tensor buffers, and lasting tensors. They stay as long as a context or a
 * descriptor (RDMATENSOR_DOMAIN_CREATE) refers to them.
 */
#ifndef RDMATENSOR_HOLDINGS_H
#define RDMATENSOR_HOLDINGS_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "context/owner.h"
#include "fetch/lasting.h"
#include "memory/adapter.h"
#include "memory/buffer.h"

struct net;
struct rdmatensor_domain;
struct rdmatensor_pool;
struct rdmatensor_pool_info;

/**
 * struct rdmatensor_holdings - what contexts share
 * @ref: contexts that have joined, and the descriptors' file
 * @readers: of the list, and the list itself
 * @unread: there are none any more
 * @id: of the domain, from 1, for readers; 0: it is not in the list
 * @worker: name of the context that made it
 * @owner: who made it
 * @net_cookie: of the network namespace of the context that made them
 * @device: last name of an RDMA device that has gone
 * @adapter: told of a removal after those of contexts
 * @device_use: for reading: a tensor buffer is made; for writing: all use of the device ends
 * @gone: the device is being removed, or was
 * @domain: PD and registrations; NULL: not made yet, or all use of the device has ended
 * @lock: guards @nr_pools, @next_pool and @described
 * @pools: by id
 * @nr_pools: in @pools, or about to be, or just out of it
 * @max_pools: bound on @nr_pools
 * @next_pool: where the search for an id goes on
 * @mr_page_bytes: longest page of a memory region
 * @strict: peers write to single destinations alone (START's mr_mode)
 * @buffers: that published tensors are copied to; as many as pools at most
 * @lasting: tensors with uses 0
 * @nr_contexts: that have joined
 * @described: there was a descriptor, so they count as a context of the host
 */
struct rdmatensor_holdings {
	struct kref ref;
	refcount_t readers;
	struct completion unread;
	u32 id;
	char worker[RDMATENSOR_WORKER_MAX];
	struct rdmatensor_owner owner;
	u64 net_cookie;
	char device[IB_DEVICE_NAME_MAX];
	struct rdmatensor_adapter adapter;
	struct rw_semaphore device_use;
	bool gone;
	struct rdmatensor_domain *domain;
	struct mutex lock;	/* see above */
	struct xarray pools;
	u32 nr_pools;
	u32 max_pools;
	u32 next_pool;
	u32 mr_page_bytes;
	bool strict;
	struct rdmatensor_buffers buffers;
	struct rdmatensor_lasting lasting;
	atomic_t nr_contexts;
	bool described;
};

/**
 * rdmatensor_holdings_create - bind them to a device
 * @choice: of the device
 * @net: network namespace of the context
 * @start: worker, and max_pools, mr_page_bytes and mr_mode of the domain; each has its value
 * @cause: line for the user, see rdmatensor_adapter_bind()
 * @room: its length
 *
 * May sleep. Return: holdings with one reference, and no domain yet; ERR_PTR(-ENOMEM), (-EBUSY):
 * no id is left, without a line; an error of rdmatensor_adapter_bind().
 */
struct rdmatensor_holdings *
rdmatensor_holdings_create(const struct rdmatensor_adapter_choice *choice, struct net *net,
			   const struct rdmatensor_start *start, char *cause, size_t room);
/*
 * The domain, made if it is not there yet, with a reference of the caller's. The caller's own
 * adapter is bound to the same device, and not told of its removal yet, until this returns.
 * Errors as rdmatensor_domain_create()
 */
struct rdmatensor_domain *rdmatensor_holdings_domain(struct rdmatensor_holdings *holdings,
						     char *cause, size_t room);

static inline void rdmatensor_holdings_get(struct rdmatensor_holdings *holdings)
{
	kref_get(&holdings->ref);
}

/* The last one ends all that is there. Under no lock that a removal takes. May sleep */
void rdmatensor_holdings_put(struct rdmatensor_holdings *holdings);

/**
 * rdmatensor_holdings_describe - a first descriptor: they may stay without a context
 * @holdings: with a reference of the caller's
 * @most: bound on started contexts, and domains that have had a descriptor, of the host
 *
 * Return: 0: also if there was one before; -EUSERS: there are @most.
 */
int rdmatensor_holdings_describe(struct rdmatensor_holdings *holdings, int most);

/* The device's name. May sleep. False: it has gone, or is not used yet */
bool rdmatensor_holdings_device(struct rdmatensor_holdings *holdings, char *name, size_t room);

/* Held for the caller to put; NULL: none */
struct rdmatensor_pool *rdmatensor_holdings_pool(struct rdmatensor_holdings *holdings, u32 id);
/*
 * For readers, which do not hold it: what a pool is charged for must not last until a reader goes
 * on. The next: after *@id, which is set to its id. Process context. False: there is none
 */
bool rdmatensor_holdings_pool_info(struct rdmatensor_holdings *holdings, u32 id,
				   struct rdmatensor_pool_info *info);
bool rdmatensor_holdings_next_pool_info(struct rdmatensor_holdings *holdings, unsigned long *id,
					struct rdmatensor_pool_info *info);
u32 rdmatensor_holdings_nr_pools(struct rdmatensor_holdings *holdings);

/*
 * Reserves a place among the pools, and an id under which there is no pool yet, so that nothing
 * can fail after the memory was allocated. Return: 0, -EUSERS, -ENOMEM, -EBUSY
 */
int rdmatensor_holdings_reserve(struct rdmatensor_holdings *holdings, u32 *id);
/* Frees a place in which there is no pool */
void rdmatensor_holdings_unreserve(struct rdmatensor_holdings *holdings, u32 id);
/*
 * It has its id, and may be destroyed from here on. With device_use of a context that has
 * joined, for reading: a removal finds it
 */
void rdmatensor_holdings_add(struct rdmatensor_holdings *holdings, struct rdmatensor_pool *pool);
/* Unregisters and puts a pool. May sleep. Return: 0, -ENOENT, -EBUSY: it is in use */
int rdmatensor_holdings_destroy(struct rdmatensor_holdings *holdings, u32 id);

#endif /* RDMATENSOR_HOLDINGS_H */
