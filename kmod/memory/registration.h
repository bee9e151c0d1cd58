/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registrations: a slice of one memory in one domain, with the access that peers have.
 *
 * A slice is cut into memory regions of 1 << seg_shift bytes, with consecutive addresses: the
 * longer the pages that it lies in, the more bytes one takes. A
 * memory may have several registrations: a pool has one, for this side and, if it was made so,
 * for peers to write; an export of its rows is another one, for peers to read.
 */
#ifndef RDMATENSOR_REGISTRATION_H
#define RDMATENSOR_REGISTRATION_H

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include "core/quota.h"

struct rdmatensor_domain;
struct rdmatensor_memory;

/**
 * struct rdmatensor_mr - one memory region
 * @mr: the device's; NULL: not registered
 * @sgt: what it covers, mapped for the device; without entries: not mapped
 * @lkey: its local key. Both keys stay when the registration ends: a use that comes too late
 *        gets an error from the device, not memory that was freed
 * @rkey: its remote key
 */
struct rdmatensor_mr {
	struct ib_mr *mr;
	struct sg_table sgt;
	u32 lkey;
	u32 rkey;
};

/**
 * struct rdmatensor_registration - see above; embedded by its owner
 * @domain: referenced; NULL: it has ended, or never was
 * @memory: its owner keeps it for longer than the registration
 * @dir: what the memory is mapped for
 * @access: IB_ACCESS_*
 * @iova: address of the first byte, a multiple of 1 << @seg_shift
 * @page_shift: log2 of the pages that memory regions consist of, but for a short one at the end
 * @seg_shift: log2 of the distance at which keys change
 * @quota: of @mrs, while there is a @domain
 * @nr: of @mrs
 * @mrs: in the order of addresses
 */
struct rdmatensor_registration {
	struct rdmatensor_domain *domain;
	struct rdmatensor_memory *memory;
	enum dma_data_direction dir;
	int access;
	u64 iova;
	u8 page_shift;
	u8 seg_shift;
	struct rdmatensor_quota quota;
	u32 nr;
	struct rdmatensor_mr *mrs;
};

/**
 * struct rdmatensor_span - what is to be registered of a memory
 * @offset: where the slice begins, whole pages
 * @bytes: its length, whole pages
 * @most: memory regions that it may take
 */
struct rdmatensor_span {
	u64 offset;
	u64 bytes;
	u32 most;
};

/* The direction to map memory in: what peers may only read, the device only reads */
static inline enum dma_data_direction rdmatensor_registration_dir(int access)
{
	return access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE) ? DMA_BIDIRECTIONAL :
	       DMA_TO_DEVICE;
}

/**
 * rdmatensor_registration_begin - register a slice of a memory
 * @reg: filled, whatever was in it
 * @domain: where; the registration holds a reference until it ends
 * @memory: which
 * @span: which part of it
 * @access: IB_ACCESS_*
 *
 * In the longest pages that memory and device have, so that it takes the fewest memory regions.
 *
 * May sleep. Return: 0; -EOVERFLOW: more memory regions than @span or the device has, or no
 * addresses are left; -ENOMEM; -EDQUOT: rdma.max of the RDMA cgroup; -EIO: the device has failed
 * a registration; -ENODEV: it is being removed; -EINTR: the task is being killed; another errno of
 * the device's driver. On error nothing is registered, and @reg is as after its end.
 */
int rdmatensor_registration_begin(struct rdmatensor_registration *reg,
				  struct rdmatensor_domain *domain,
				  struct rdmatensor_memory *memory,
				  const struct rdmatensor_span *span, int access);
/*
 * Within begin(), which failed with @error: whether short pages may come through. Whatever fails
 * with long ones, in the platform, the driver or the device, may be all right with those, which
 * everybody has
 */
bool rdmatensor_registration_wants_less(const struct rdmatensor_registration *reg, int error);
/*
 * Within begin(): @mr's memory, which is mapped for the device, as pages of 1 << @page_shift bytes.
 * Return: 0; -EINVAL, -EIO: it does not lie in such ones; an errno of the driver's
 */
int rdmatensor_registration_map(const struct rdmatensor_mr *mr, u8 page_shift);
/**
 * rdmatensor_registration_slice - a list of some bytes, as they are mapped for the device
 * @reg: registered
 * @offset: where they begin in its slice
 * @bytes: of them; they are all behind one of its memory regions
 * @gfp: for the list
 * @sgt: out: exactly these bytes; sg_free_table() is the caller's. Without pages, and for the
 *       device alone
 *
 * Any context that @gfp allows. Return: 0, -ENOMEM.
 */
int rdmatensor_registration_slice(const struct rdmatensor_registration *reg, u64 offset, u32 bytes,
				  gfp_t gfp, struct sg_table *sgt);
/**
 * rdmatensor_registration_sge - some bytes by the addresses that the device has for them
 * @reg: registered
 * @offset: where they begin in its slice
 * @bytes: of them
 * @lkey: a key that all addresses of the device can be used with
 * @sge: out: array, an entry for each contiguous chunk
 * @max: its length
 * @covered: out: bytes that the entries cover, at most @bytes
 *
 * Any context. Return: entries filled.
 */
int rdmatensor_registration_sge(const struct rdmatensor_registration *reg, u64 offset, u64 bytes,
				u32 lkey, struct ib_sge *sge, int max, u64 *covered);
/*
 * No peer can reach the memory when it returns; nothing may be in flight from or to it.
 * Idempotent, but not from two at the same time. May sleep
 */
void rdmatensor_registration_end(struct rdmatensor_registration *reg);
/*
 * After the end, or a begin() that failed: the keys go. Return: whether the memory may be
 * freed; false: the device did not forget it. Idempotent. May sleep
 */
bool rdmatensor_registration_free(struct rdmatensor_registration *reg);

/* Index of the memory region that holds the byte at @offset of the slice */
static inline u32 rdmatensor_registration_index(const struct rdmatensor_registration *reg,
						u64 offset)
{
	return offset >> reg->seg_shift;
}

#endif /* RDMATENSOR_REGISTRATION_H */
