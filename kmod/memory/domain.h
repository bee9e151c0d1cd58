/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The domain: the protection domain and the registrations in it. Counted, so
 * that it can later be shared by several contexts and outlive them.
 *
 * A fast registration is itself a work request. So that memory can be registered
 * before there is any channel, and stays so when all have gone, the domain has
 * one RC queue pair that is connected to itself.
 */
#ifndef RDMATENSOR_DOMAIN_H
#define RDMATENSOR_DOMAIN_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

struct rdmatensor_adapter;

/**
 * struct rdmatensor_domain - PD and registration queue
 * @ref: counts contexts and, through them, pools and channels
 * @ibdev: its device
 * @pd: the protection domain
 * @seg_shift: see struct rdmatensor_adapter
 * @lock: one user of the registration queue at a time; guards @broken, @next_iova
 * @cq: of the registration queue
 * @qp: of the registration queue
 * @route: what connects that to itself, constant
 * @broken: it has to be connected again before its next use
 * @ending: the device is being removed: nothing more is registered
 * @sq_depth: registrations that may be posted at once
 * @next_iova: addresses are never handed out twice in a domain's life
 */
struct rdmatensor_domain {
	struct kref ref;
	struct ib_device *ibdev;
	struct ib_pd *pd;
	u8 seg_shift;
	struct mutex lock;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_qp_attr route;
	bool broken;
	bool ending;
	u32 sq_depth;
	u64 next_iova;
};

/* Return: a domain with one reference, or ERR_PTR; cause is a line for the user then */
struct rdmatensor_domain *rdmatensor_domain_create(struct rdmatensor_adapter *adapter,
						   char *cause, size_t room);
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
/* The direction to map memory in: what peers may only read, the device only reads */
static inline enum dma_data_direction rdmatensor_domain_dir(int access)
{
	return access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE) ? DMA_BIDIRECTIONAL :
	       DMA_TO_DEVICE;
}

/* Process context. The last one uses the device, so it comes before gone() returns */
void rdmatensor_domain_put(struct rdmatensor_domain *domain);
/* Registrations, and allocations for them, give up soon, with -ENODEV. Any context */
void rdmatensor_domain_end(struct rdmatensor_domain *domain);
static inline bool rdmatensor_domain_ending(const struct rdmatensor_domain *domain)
{
	return READ_ONCE(domain->ending);
}

/**
 * rdmatensor_domain_iova - a range of addresses for memory to be registered
 * @domain: where it will be registered
 * @bytes: length of the range
 *
 * May sleep. Return: the first address, aligned to 1 << seg_shift, of a range that is handed
 * out once in a domain's life; 0: the space is used up.
 */
u64 rdmatensor_domain_iova(struct rdmatensor_domain *domain, u64 bytes);

/**
 * struct rdmatensor_coherent - memory that device and CPU see alike at any time
 * @ibdev: the device; it is there for longer than the memory
 * @bytes: of each chunk
 * @nr: chunks
 * @cpus: address of each for the CPU; the device's is in the segment's scatter list
 */
struct rdmatensor_coherent {
	struct ib_device *ibdev;
	u32 bytes;
	u32 nr;
	void *cpus[] __counted_by(nr);
};

/**
 * struct rdmatensor_segment - memory behind one memory region
 * @bytes: length, whole pages, at most 1 << seg_shift
 * @sgt: its chunks: physically contiguous, as large as could be allocated
 * @coherent: the chunks, where they are coherent memory, which has no other pages
 * @mapped: entries after DMA mapping, 0: not mapped
 * @dir: what it was mapped for
 * @mr: the region, NULL: not registered
 * @lkey: its local key. Both keys stay when the registration ends: a use that comes
 *        too late gets an error from the device, not memory that was freed
 * @rkey: its remote key
 * @iova: address of the first byte in the domain
 *
 * Pages are split, so that each has its own count and can be mapped to user
 * space, where it outlives the segment.
 */
struct rdmatensor_segment {
	u32 bytes;
	struct sg_table sgt;
	struct rdmatensor_coherent *coherent;
	int mapped;
	enum dma_data_direction dir;
	struct ib_mr *mr;
	u32 lkey;
	u32 rkey;
	u64 iova;
};

/**
 * rdmatensor_segment_alloc - zeroed pages
 * @segment: filled, whatever was in it
 * @bytes: a multiple of PAGE_SIZE << @min_order
 * @min_order: every block of that order is contiguous and aligned to its size,
 *             counted from the segment's beginning
 *
 * Charged to current's memory cgroup. May sleep; does not invoke the OOM killer.
 * Return: 0; -ENOMEM: @segment is empty then, and may be freed.
 */
int rdmatensor_segment_alloc(struct rdmatensor_segment *segment, u32 bytes,
			     unsigned int min_order);
/**
 * rdmatensor_segment_alloc_coherent - zeroed memory that needs no syncing
 * @segment: filled, whatever was in it
 * @ibdev: for which device; must be there until it is freed
 * @bytes: a multiple of PAGE_SIZE
 * @block: a power of two; blocks of that many bytes are contiguous, counted from the beginning
 *
 * For what a device and the CPU use at the same time, with no moment at which to sync it.
 * Charged to current's memory cgroup. May sleep.
 * Return: 0; -ENOMEM: @segment is empty then, and may be freed.
 */
int rdmatensor_segment_alloc_coherent(struct rdmatensor_segment *segment,
				      struct ib_device *ibdev, u32 bytes, u32 block);
/* Must not be registered; idempotent */
void rdmatensor_segment_free(struct rdmatensor_segment *segment);
/* CPU address of a byte; the chunk around it is contiguous. O(chunks) */
void *rdmatensor_segment_addr(const struct rdmatensor_segment *segment, u32 offset,
			      u32 *contiguous);

/**
 * rdmatensor_domain_register - register segments
 * @domain: with a reference of the caller's
 * @segments: array of segments, allocated and not registered
 * @nr: its length
 * @iova: of the first; each next one begins 1 << seg_shift further
 * @access: IB_ACCESS_*
 *
 * Posts all, waits for all. May sleep. Return: 0; -EIO: the device has failed a registration;
 * -ENODEV: it is being removed; -ENOMEM, or another errno of the device's driver.
 * On error none is registered, and the next call begins with a registration queue made again.
 */
int rdmatensor_domain_register(struct rdmatensor_domain *domain,
			       struct rdmatensor_segment *segments, u32 nr, u64 iova,
			       int access);
/*
 * No peer can reach them when it returns; nothing may be in flight from or to them.
 * Those that are not registered are passed over. May sleep
 */
void rdmatensor_domain_unregister(struct rdmatensor_domain *domain,
				  struct rdmatensor_segment *segments, u32 nr);

#endif /* RDMATENSOR_DOMAIN_H */
