/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The domain: the protection domain that registrations are in. The contexts that share pools have
 * one, which may outlive them (context/holdings.h), and in strict mode each channel another one.
 * Counted, by registrations too.
 *
 * A fast registration is itself a work request. So that memory can be registered
 * before there is any channel, and stays so when all have gone, the domain has
 * one RC queue pair that is connected to itself.
 */
#ifndef RDMATENSOR_DOMAIN_H
#define RDMATENSOR_DOMAIN_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include "core/quota.h"

struct rdmatensor_adapter;

/**
 * struct rdmatensor_domain - PD and registration queue
 * @ref: counts contexts, and registrations
 * @of: what it was split from, and ends with; or NULL
 * @ibdev: its device
 * @pd: the protection domain
 * @seg_shift: see struct rdmatensor_adapter
 * @seg_shift_max: see struct rdmatensor_adapter
 * @page_shift_max: log2 of the longest page of a memory region
 * @strict: pools in it are closed to peers, which write to what their channel's own domain has
 * @apart: exposures are registered by the registration queue, before the channel sends anything.
 *         Else by the channel's queue pair, in order with the message
 * @exposed: bytes of addresses that exposures in it have taken so far
 * @quota: of the registration queue
 * @keys: of memory regions of exposures
 * @keys_lock: guards @keys_most, @keys_paid, @keys_made
 * @keys_most: that one exposure may have, of those that have been paid for
 * @keys_paid: memory regions that @keys has, or owes
 * @keys_made: memory regions that there are
 * @lock: one user of the registration queue at a time; guards @qp where @of is NULL, @broken,
 *        @dead, @next_iova
 * @cq: of the registration queue
 * @qp: of the registration queue; another one may take its place, unless @of is set
 * @route: what connects that to itself, but for its number; constant
 * @wait: for the chains that are posted, by it and those that are split from it
 * @last_cqe: of its last work request
 * @status: of its last work request, with @done
 * @done: it has completed
 * @doubtful: the device has reported that the registration queue has failed
 * @silent: the device was late with the last chain; @of's where that is set
 * @dead: a chain has not completed, and may yet: nothing more is posted until it has
 * @broken: @qp has to be connected again, or replaced, before its next use
 * @ending: the device is being removed: nothing more is registered
 * @sq_depth: registrations that may be posted at once
 * @next_iova: addresses are never handed out twice in a domain's life
 */
struct rdmatensor_domain {
	struct kref ref;
	struct rdmatensor_domain *of;
	struct ib_device *ibdev;
	struct ib_pd *pd;
	u8 seg_shift;
	u8 seg_shift_max;
	u8 page_shift_max;
	bool strict;
	bool apart;
	atomic64_t exposed;
	struct rdmatensor_quota quota;
	struct rdmatensor_quota keys;
	struct mutex keys_lock;
	u32 keys_most;
	u32 keys_paid;
	u32 keys_made;
	struct mutex lock;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_qp_attr route;
	wait_queue_head_t wait;
	struct ib_cqe last_cqe;
	enum ib_wc_status status;
	bool done;
	bool doubtful;
	bool silent;
	bool dead;
	bool broken;
	bool ending;
	u32 sq_depth;
	u64 next_iova;
};

/**
 * rdmatensor_domain_create - a protection domain, and what registers memory in it
 * @adapter: bound
 * @mr_page_bytes: longest page of a memory region, a power of two; less than PAGE_SIZE is
 *                 PAGE_SIZE
 * @strict: strict mode: rdmatensor_domain_split()
 * @cause: out on error: a line for the user
 * @room: its length
 *
 * May sleep. Return: a domain with one reference; ERR_PTR of -ENOMEM, -EDQUOT, -EOPNOTSUPP or an
 * errno of the device's driver.
 */
struct rdmatensor_domain *rdmatensor_domain_create(struct rdmatensor_adapter *adapter,
						   u32 mr_page_bytes, bool strict, char *cause,
						   size_t room);
/**
 * rdmatensor_domain_split - a protection domain of its own, for one channel
 * @of: on whose device
 *
 * Its queue pair has the pool of memory regions of its exposures, too (exposure.h). May sleep.
 * Return: a domain with one reference; ERR_PTR of -ENOMEM, -EDQUOT or an errno of the device's
 * driver.
 */
struct rdmatensor_domain *rdmatensor_domain_split(struct rdmatensor_domain *of);

/**
 * struct rdmatensor_mapped - what the platform says of a page that is mapped for a device
 * @translated: an IOMMU translates the device's addresses
 * @coherent: the CPU's caches are coherent with the device
 * @in_place: what the IOMMU leads to is the page itself, and no bounce buffer; not known
 *            without translation
 * @need_sync: dma_need_sync()
 */
struct rdmatensor_mapped {
	bool translated;
	bool coherent;
	bool in_place;
	bool need_sync;
};

/*
 * Whether device and CPU see the same bytes of it at any time. Behind an IOMMU dma_need_sync()
 * does not say: until 6.10 it is true for every device whose mapping operations could sync,
 * and since then for those of which any one mapping has gone through a bounce buffer
 */
bool rdmatensor_domain_shared(const struct rdmatensor_mapped *mapped);
/*
 * Return: what keeps a device from working on memory that a process and a peer use at any
 * time, for the user; NULL: nothing; ERR_PTR(-ENOMEM): it could not be tried. May sleep
 */
const char *rdmatensor_domain_unfit(struct device *dma);
static inline void rdmatensor_domain_get(struct rdmatensor_domain *domain)
{
	kref_get(&domain->ref);
}

/* Whether the caller's reference is the only one */
static inline bool rdmatensor_domain_is_last(const struct rdmatensor_domain *domain)
{
	return kref_read(&domain->ref) == 1;
}

/* Process context. The last one uses the device, so it comes before gone() returns */
void rdmatensor_domain_put(struct rdmatensor_domain *domain);
/* An event of the registration queue's. @context: the domain. May be called in a hard interrupt */
void rdmatensor_domain_qp_event(struct ib_event *event, void *context);

/* Registrations, and allocations that watch @ending, give up soon, with -ENODEV. Any context */
void rdmatensor_domain_end(struct rdmatensor_domain *domain);
static inline bool rdmatensor_domain_ending(const struct rdmatensor_domain *domain)
{
	return domain->of ? READ_ONCE(domain->of->ending) : READ_ONCE(domain->ending);
}

/**
 * rdmatensor_domain_iova - a range of addresses for memory to be registered
 * @domain: where it will be registered
 * @bytes: length of the range
 * @seg_shift: log2 of the bytes behind one memory region of it
 *
 * May sleep. Return: the first address, aligned to 1 << @seg_shift, of a range that is handed
 * out once in a domain's life; 0: the space is used up.
 */
u64 rdmatensor_domain_iova(struct rdmatensor_domain *domain, u64 bytes, u8 seg_shift);

/**
 * rdmatensor_domain_pages - the pages of memory regions
 * @domain: where memory will be registered
 * @page_shift: log2 of the pages that it consists of, PAGE_SHIFT or more
 * @seg_shift: out: log2 of the bytes that go behind one memory region
 *
 * Return: log2 of the longest pages, at most @page_shift, that the device has; PAGE_SHIFT, if a
 * memory region would not take several of them, or no more bytes than it does of PAGE_SIZE.
 */
u8 rdmatensor_domain_pages(const struct rdmatensor_domain *domain, u8 page_shift, u8 *seg_shift);

/**
 * rdmatensor_domain_post - have memory regions registered
 * @domain: with a reference of the caller's
 * @wrs: requests, which this links into one chain
 * @nr: of them, at most rdmatensor_domain_depth()
 *
 * Waits until none is in flight, or it is given up. May sleep. Return: 0; -EIO: the device has
 * failed one, or a channel's queue pair cannot be connected again; -ENODEV: the device has not
 * completed one, or is being removed; another errno of the device's driver. After an error any of
 * them may be registered, and the next call begins with connecting the queue pair again.
 */
int rdmatensor_domain_post(struct rdmatensor_domain *domain, struct ib_reg_wr *wrs, u32 nr);
/* Memory regions that @bytes, at least 1, take at most: without pages longer than PAGE_SIZE */
static inline u64 rdmatensor_domain_segments(const struct rdmatensor_domain *domain, u64 bytes)
{
	return DIV_ROUND_UP_ULL(bytes, 1ULL << domain->seg_shift);
}

static inline u32 rdmatensor_domain_depth(const struct rdmatensor_domain *domain)
{
	return domain->sq_depth;
}

#endif /* RDMATENSOR_DOMAIN_H */
