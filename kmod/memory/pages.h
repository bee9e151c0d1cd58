/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages in slices: what kinds of memory have in common that consist of pages of the linear map.
 * A kind says where pages come from and who gets them at the end; the rest is the same for all.
 */
#ifndef RDMATENSOR_PAGES_H
#define RDMATENSOR_PAGES_H

#include <linux/mm_types.h>
#include "memory/memory.h"

struct rdmatensor_pages;

/**
 * struct rdmatensor_pages_source - where pages come from
 * @get: takes @nr pages for the bytes from @offset on. May sleep. Return: 0; a negative errno,
 *       and it has taken none
 * @put: the end of get() for @nr pages, in any order. May sleep
 */
struct rdmatensor_pages_source {
	int (*get)(struct rdmatensor_pages *pages, u64 offset, struct page **got, u32 nr);
	void (*put)(struct rdmatensor_pages *pages, struct page **got, u32 nr);
};

/**
 * struct rdmatensor_pages - embedded by each kind
 * @memory: the base
 * @source: see above
 * @slice_shift: log2 of the bytes of a slice
 * @nr: slices
 * @slices: the pages of each, allocated one by one so that none is long; NULL: not there, and
 *          neither are those after it
 */
struct rdmatensor_pages {
	struct rdmatensor_memory memory;
	const struct rdmatensor_pages_source *source;
	u8 slice_shift;
	u32 nr;
	struct page ***slices;
};

static inline struct rdmatensor_pages *rdmatensor_to_pages(struct rdmatensor_memory *memory)
{
	return container_of(memory, struct rdmatensor_pages, memory);
}

static inline const struct rdmatensor_pages *
rdmatensor_to_pages_const(const struct rdmatensor_memory *memory)
{
	return container_of_const(memory, struct rdmatensor_pages, memory);
}

/**
 * rdmatensor_pages_begin - take all pages
 * @pages: zeroed, but for its @source and @memory
 * @slice_shift: log2 of the bytes of a slice, which are taken at once
 * @stop: given up when true; set by another task, or NULL
 *
 * May sleep. Return: 0; -ENOMEM; -EINTR: the task is being killed; -ENODEV: @stop; an errno of
 * the source. On error nothing is left.
 */
int rdmatensor_pages_begin(struct rdmatensor_pages *pages, u8 slice_shift, const bool *stop);
/* Puts what there is. May sleep */
void rdmatensor_pages_end(struct rdmatensor_pages *pages);
/* Pages of a slice: all are as long as the first but for the last one */
static inline u32 rdmatensor_pages_in(const struct rdmatensor_pages *pages, u32 slice)
{
	u64 left = pages->memory.bytes - ((u64)slice << pages->slice_shift);

	return min(left, 1ULL << pages->slice_shift) >> PAGE_SHIFT;
}

/* As in struct rdmatensor_memory_ops */
int rdmatensor_pages_map(struct rdmatensor_memory *memory, u64 offset, u32 bytes,
			 struct ib_device *ibdev, enum dma_data_direction dir,
			 struct sg_table *sgt);
/* The same of @nr @pages, whoever has them */
int rdmatensor_pages_map_array(struct page **pages, u32 nr, struct ib_device *ibdev,
			       enum dma_data_direction dir, struct sg_table *sgt);
void rdmatensor_pages_unmap(struct rdmatensor_memory *memory, struct ib_device *ibdev,
			    enum dma_data_direction dir, struct sg_table *sgt);
void *rdmatensor_pages_addr(const struct rdmatensor_memory *memory, u64 offset,
			    u32 *contiguous);

#endif /* RDMATENSOR_PAGES_H */
