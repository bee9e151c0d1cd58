/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools: registered memory. Of kernel pages, which the process maps, of the process's own, or of
 * a dma-buf.
 *
 * Room memory: the RDMA device's choice, protection domains, pages and their registration,
 * regions that are allocated in them. It calls core and the verbs, sends no message, and is
 * called by all rooms above.
 */
#ifndef RDMATENSOR_POOL_H
#define RDMATENSOR_POOL_H

#include <linux/bits.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/workqueue.h>
#include "core/charge.h"
#include "memory/exposure.h"
#include "memory/memory.h"
#include "memory/region.h"
#include "memory/registration.h"
#include "rdmatensor.h"

struct rdmatensor_import;
struct rdmatensor_pin;

/**
 * struct rdmatensor_pool - one pool
 * @ref: the context's table, every use (published tensor, fetch, export, table) and every
 *       mapping
 * @id: in the context, from 1
 * @bytes: whole pages
 * @peers: what they may do with it
 * @writable: it can be a destination. Else nothing writes to it, neither peers nor this side
 * @memory: the pages
 * @reg: all of @memory, as this side and peers use it; ended by unregister()
 * @charge: the charge for the pages
 * @regions: which parts are handed out and in use
 * @free_work: frees it: the last reference may go in softirq
 */
struct rdmatensor_pool {
	struct kref ref;
	u32 id;
	u64 bytes;
	enum rdmatensor_pool_peers peers;
	bool writable;
	struct rdmatensor_memory *memory;
	struct rdmatensor_registration reg;
	struct rdmatensor_charge charge;
	struct rdmatensor_regions regions;
	struct work_struct free_work;
};

/**
 * struct rdmatensor_pool_info - description of one, for readers that do not hold it
 * @id: in the context
 * @bytes: its length
 * @peers: what they may do with it
 * @writable: it can be a destination
 * @reachable: see rdmatensor_pool_reachable()
 * @mappable: processes can map it
 * @memory: name of its kind of memory, a literal
 * @segments: how many memory regions its registration has
 * @uses: how many uses it has
 */
struct rdmatensor_pool_info {
	u32 id;
	u64 bytes;
	enum rdmatensor_pool_peers peers;
	bool writable;
	bool reachable;
	bool mappable;
	const char *memory;
	u32 segments;
	u64 uses;
};

/* Module load and unload; exit waits for pools that are being freed */
int rdmatensor_pool_init(void);
void rdmatensor_pool_exit(void);

/*
 * IB_ACCESS_*. This side reads all pools; peers read by an export's registration alone, and in
 * @strict mode write by an exposure's
 */
static inline int rdmatensor_pool_access(enum rdmatensor_pool_peers peers, bool writable,
					 bool strict)
{
	if (!writable)
		return 0;
	return IB_ACCESS_LOCAL_WRITE |
	       (peers == RDMATENSOR_POOL_PEERS_WRITE && !strict ? IB_ACCESS_REMOTE_WRITE : 0);
}

/* The length of a pool, rounded up to whole pages. Return: 0, -EINVAL, -EOVERFLOW */
int rdmatensor_pool_size(const struct rdmatensor_domain *domain, u64 *bytes);

/**
 * rdmatensor_pool_create - allocate, charge and register
 * @domain: where it is registered; the pool holds a reference until it is unregistered
 * @bytes: length, rounded up to whole pages
 * @peers: what they may do with it, beside what this side does
 * @memlock: its pages, which the caller's memory cgroup pays for, count as locked memory, too
 *
 * Charges the caller (rdmatensor_charge()) until the pages are free, which is not before
 * the last mapping has gone. Process context; interruptible by a fatal signal. Return: a
 * pool with one reference; ERR_PTR(-ENOMEM), (-EINVAL): no bytes, (-EOVERFLOW): more than the
 * device registers, (-EINTR), (-EIO), (-ENODEV): see rdmatensor_registration_begin().
 */
struct rdmatensor_pool *rdmatensor_pool_create(struct rdmatensor_domain *domain,
					       u64 bytes,
					       enum rdmatensor_pool_peers peers,
					       bool memlock);

/**
 * rdmatensor_pool_pin - pin and charge, without a registration
 * @pin: which pages of the process; whole ones
 * @peers: what they may do with it; not RDMATENSOR_POOL_PEERS_WRITE unless pinned for writing
 * @slice_shift: the domain's seg_shift
 * @stop: see rdmatensor_pinned_alloc()
 * @cause: out on error: a line, or empty
 * @room: its length
 *
 * Charges the caller (rdmatensor_charge()) until the pages are unpinned. All of it is one
 * region, which is the process's. As for locks, see rdmatensor_pinned_alloc().
 *
 * Return: a pool with one reference; ERR_PTR(-ENOMEM), (-EINTR), or an error of
 * rdmatensor_pinned_alloc().
 */
struct rdmatensor_pool *rdmatensor_pool_pin(const struct rdmatensor_pin *pin,
					    enum rdmatensor_pool_peers peers, u8 slice_shift,
					    const bool *stop, char *cause, size_t room);
/**
 * rdmatensor_pool_import - import and charge, without a registration
 * @import: which dma-buf, and how
 * @peers: what they may do with it; not RDMATENSOR_POOL_PEERS_WRITE unless imported for writing
 * @cause: out on error: a line, or empty
 * @room: its length
 *
 * As rdmatensor_pool_pin(), with the errors of rdmatensor_dmabuf_alloc().
 */
struct rdmatensor_pool *rdmatensor_pool_import(const struct rdmatensor_import *import,
					       enum rdmatensor_pool_peers peers, char *cause,
					       size_t room);
/* Once, before anybody else knows of it. Return: as rdmatensor_registration_begin() */
int rdmatensor_pool_register(struct rdmatensor_pool *pool, struct rdmatensor_domain *domain);
void rdmatensor_pool_get(struct rdmatensor_pool *pool);
/*
 * Any context. The last one has the pages freed, soon and by a work item; the pool
 * must be unregistered by then. Those that a process waits for, which destroys, unmaps or closes,
 * use rdmatensor_pool_put_now()
 */
void rdmatensor_pool_put(struct rdmatensor_pool *pool);
/* The same, but with the last one the pages are free on return. May sleep */
void rdmatensor_pool_put_now(struct rdmatensor_pool *pool);
/*
 * Ends registration, keeps the pages: the device goes, the context is closed or the
 * pool destroyed. No write to or from it may be in flight. Idempotent, but not from
 * two at the same time. May sleep
 */
void rdmatensor_pool_unregister(struct rdmatensor_pool *pool);
/*
 * The offset for mmap() of a pool, from its id, which is the page number. Pools overlap
 * there, but a pool is mapped whole or not at all, so that an offset names one. It is
 * below 2^44, which is all that a process of 32 bits can name (mmap2()), for any number
 * of pools of any size. 0 is the ring's
 */
static inline u64 rdmatensor_pool_mmap_offset(u32 id)
{
	return (u64)id << PAGE_SHIFT;
}

/* Pages of 64 KiB leave that many ids below 2^44 */
#define RDMATENSOR_POOL_ID_MAX (BIT(28) - 1)
/* Longest pool */
#define RDMATENSOR_POOL_BYTES_MAX BIT_ULL(43)

/*
 * The whole pool, MAP_SHARED; -EINVAL for anything else, -ENODEV: the process has its pages
 * already. The mapping is a reference
 */
int rdmatensor_pool_mmap(struct rdmatensor_pool *pool, struct vm_area_struct *vma);

/**
 * rdmatensor_pool_expose - let a channel's peer write to a region
 * @pool: registered, for peers to write
 * @offset: where the region begins
 * @bytes: its length
 * @domain: strict mode: that of the channel, in which the region gets keys of its own: the
 *          exposure has begun, and rdmatensor_exposure_extend() goes on. NULL: the keys are those
 *          of the pool, which any peer of the context can use: this is a look-up
 * @exposure: out: what the peer needs
 *
 * Any context. The caller holds the region (rdmatensor_regions_hold()) until after unexpose.
 */
void rdmatensor_pool_expose(struct rdmatensor_pool *pool, u64 offset, u64 bytes,
			    struct rdmatensor_domain *domain,
			    struct rdmatensor_exposure *exposure);
/* The end of an expose. The peer's use of the region has ended; see rdmatensor_exposure_end() */
void rdmatensor_pool_unexpose(struct rdmatensor_pool *pool,
			      struct rdmatensor_exposure *exposure);
/* The keys, as the wire wants them: nr_rkeys of them. Its exposure is whole */
void rdmatensor_pool_rkeys(const struct rdmatensor_pool *pool,
			   const struct rdmatensor_exposure *exposure, __le32 *rkeys);

/**
 * rdmatensor_pool_sge - local addresses of a range, for a work request
 * @pool: registered
 * @offset: where the range begins
 * @bytes: its length
 * @sge: out: array
 * @max: its length
 * @covered: out: bytes that the entries cover, at most @bytes
 *
 * Any context. Return: entries filled.
 */
int rdmatensor_pool_sge(const struct rdmatensor_pool *pool, u64 offset, u64 bytes,
			struct ib_sge *sge, int max, u64 *covered);

/*
 * Whether the CPU can work on the bytes. If not, the functions below must not be called, and
 * what needs them is refused: copies, checksums
 */
static inline bool rdmatensor_pool_reachable(const struct rdmatensor_pool *pool)
{
	return !pool->memory->unreachable;
}

/* CPU address of a byte; what is aligned to its size of up to a page is contiguous */
void *rdmatensor_pool_cpu(const struct rdmatensor_pool *pool, u64 offset);

/* A snapshot. Any context: whoever asks keeps the pool from going */
void rdmatensor_pool_describe(const struct rdmatensor_pool *pool,
			      struct rdmatensor_pool_info *info);

/* More than there is: refused, rather than use all memory up to find out */
bool rdmatensor_pool_too_long(u64 bytes);

/* What is worked off by the CPU at a time, between two looks whether it is still wanted */
#define RDMATENSOR_CPU_BYTES SZ_4M

/* CRC32C of a range behind what has had @crc, ~0 at first, by the CPU; may sleep */
u32 rdmatensor_pool_crc(const struct rdmatensor_pool *pool, u64 offset, u64 bytes, u32 crc);
/* memcpy() of a range, by the CPU; may sleep */
void rdmatensor_pool_copy(struct rdmatensor_pool *to, u64 to_offset,
			  const struct rdmatensor_pool *from, u64 from_offset, u64 bytes);

#endif /* RDMATENSOR_POOL_H */
