/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory: bytes that devices work on. What kind they are decides how they come to be, how they
 * are mapped for a device, and how the CPU reaches them. A registration (registration.h) makes
 * a slice of it accessible in one domain; a memory may have several.
 *
 * Kernel pages come in the largest physically contiguous chunks that can be allocated. Pinned
 * pages (pinned.h) are the process's own, in place. Imported memory (dmabuf.h) is another
 * driver's; the CPU may not be able to reach it. Coherent memory is for what a peer writes
 * and this side reads with no moment in between at which a buffer could be handed over: the
 * message buffers. Pools are plain pages, as processes map them; devices for which these would
 * have to be synced are refused (rdmatensor_domain_unfit()).
 *
 * The owner frees a memory when its last registration has ended. Kinds keep no count.
 */
#ifndef RDMATENSOR_MEMORY_H
#define RDMATENSOR_MEMORY_H

#include <linux/bitops.h>
#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

/* Longer pages would save nothing more: 512 of these are a gigabyte */
#define RDMATENSOR_MEMORY_PAGE_SHIFT_MAX 21

struct ib_device;
struct rdmatensor_memory;
struct vm_area_struct;

/**
 * struct rdmatensor_memory_ops - a kind of memory
 * @name: what users call it
 * @map: makes @sgt, the chunks of [@offset, @offset + @bytes) with the addresses that @ibdev
 *       has for them; both are whole pages. May sleep. Return: 0; a negative errno, and there
 *       is no @sgt
 * @unmap: the end of a map() for the same device and direction. The device has forgotten the
 *         addresses
 * @mmap: maps all of it into @vma, which is as long; NULL: this kind is not mapped. Return: 0;
 *        a negative errno, and the kernel takes down what is mapped
 * @addr: CPU address of a byte, unless the memory is unreachable; @contiguous: out: bytes that
 *        follow it without a break, or NULL
 * @free: nothing is mapped
 */
struct rdmatensor_memory_ops {
	const char *name;
	int (*map)(struct rdmatensor_memory *memory, u64 offset, u32 bytes,
		   struct ib_device *ibdev, enum dma_data_direction dir, struct sg_table *sgt);
	void (*unmap)(struct rdmatensor_memory *memory, struct ib_device *ibdev,
		      enum dma_data_direction dir, struct sg_table *sgt);
	int (*mmap)(const struct rdmatensor_memory *memory, struct vm_area_struct *vma);
	void *(*addr)(const struct rdmatensor_memory *memory, u64 offset, u32 *contiguous);
	void (*free)(struct rdmatensor_memory *memory);
};

/**
 * struct rdmatensor_memory - embedded by each kind
 * @ops: see above
 * @bytes: length, whole pages
 * @page_shift: log2 of the longest pages that it consists of, each at a multiple of its length
 *              in the memory and in the address space that a device sees, and only the last one
 *              shorter; at most RDMATENSOR_MEMORY_PAGE_SHIFT_MAX. A hint: the addresses that
 *              map() gives decide. Where only these tell, it becomes true with the first map()
 * @unreachable: the CPU cannot reach it; constant
 */
struct rdmatensor_memory {
	const struct rdmatensor_memory_ops *ops;
	u64 bytes;
	u8 page_shift;
	bool unreachable;
};

/**
 * struct rdmatensor_runs - the runs of contiguous bytes that a memory consists of; begins as 0
 * @bytes: bytes that were added
 * @next: address behind the last of them
 * @starts: offset and address of each run, or-ed together
 */
struct rdmatensor_runs {
	u64 bytes;
	u64 next;
	u64 starts;
};

static inline void rdmatensor_runs_add(struct rdmatensor_runs *runs, u64 addr, u64 bytes)
{
	if (!runs->bytes || addr != runs->next)
		runs->starts |= runs->bytes | addr;
	runs->next = addr + bytes;
	runs->bytes += bytes;
}

/* Return: the page_shift of a memory that consists of @runs */
static inline u8 rdmatensor_runs_page_shift(const struct rdmatensor_runs *runs)
{
	return __ffs64(runs->starts | BIT_ULL(RDMATENSOR_MEMORY_PAGE_SHIFT_MAX));
}

/**
 * rdmatensor_kernel_pages_alloc - zeroed kernel pages
 * @bytes: a multiple of PAGE_SIZE
 * @slice_shift: log2 of the bytes of a slice: no chunk is longer
 * @max_order: log2 of the pages of the longest chunk that is allocated at once; neighbours are
 *             joined all the same
 * @stop: given up when true; set by another task, or NULL
 *
 * Each page has a count of its own and can be mapped to user space, where it outlives the
 * memory. Charged to current's memory cgroup. May sleep; does not invoke the OOM killer.
 * Return: ERR_PTR(-ENOMEM); ERR_PTR(-EINTR): the task is being killed; ERR_PTR(-ENODEV): @stop.
 */
struct rdmatensor_memory *rdmatensor_kernel_pages_alloc(u64 bytes, u8 slice_shift,
							unsigned int max_order,
							const bool *stop);

/**
 * rdmatensor_coherent_alloc - zeroed memory that needs no syncing
 * @ibdev: for which device; must be there until it is freed
 * @bytes: a multiple of PAGE_SIZE
 * @block: a power of two; blocks of that many bytes are contiguous, counted from the beginning
 *
 * For what a device and the CPU use at the same time, with no moment at which to sync it.
 * Charged to current's memory cgroup. May sleep. Return: ERR_PTR(-ENOMEM).
 */
struct rdmatensor_memory *rdmatensor_coherent_alloc(struct ib_device *ibdev, u32 bytes,
						    u32 block);

static inline void *rdmatensor_memory_addr(const struct rdmatensor_memory *memory, u64 offset,
					   u32 *contiguous)
{
	return memory->ops->addr(memory, offset, contiguous);
}

/* May sleep. No-op for NULL */
static inline void rdmatensor_memory_free(struct rdmatensor_memory *memory)
{
	if (memory)
		memory->ops->free(memory);
}

#endif /* RDMATENSOR_MEMORY_H */
