// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel pages, in the largest physically contiguous chunks that can be allocated.
 *
 * The memory holds one reference on each of its pages. Chunks are split, so that another
 * user of a page, a process that maps it or a device that reads it for O_DIRECT, keeps that
 * page and no other when the memory goes.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/limits.h"
#include "memory/pages.h"

/* Of a chunk that can be a long page of a memory region */
#define KERNEL_PAGES_LONG_ORDER (RDMATENSOR_MEMORY_PAGE_SHIFT_MAX - PAGE_SHIFT)

/**
 * struct kernel_pages - see above
 * @pages: the base
 * @max_order: log2 of the pages of the longest chunk that is allocated at once
 */
struct kernel_pages {
	struct rdmatensor_pages pages;
	unsigned int max_order;
};

static struct kernel_pages *to_kernel_pages(struct rdmatensor_pages *pages)
{
	return container_of(pages, struct kernel_pages, pages);
}

/*
 * A long chunk is worth no effort. A page is, up to but not to killing others for a pool. @fits:
 * the longest order of which all is of use; a longer one is worth one attempt
 */
static struct page *kernel_pages_chunk(unsigned int *order, unsigned int fits)
{
	struct page *page;

	for (;; *order = min(*order - 1, fits)) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

		gfp |= *order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
		page = alloc_pages(gfp, *order);
		if (page || !*order)
			break;
	}
	if (page && *order)
		split_page(page, *order);
	return page;
}

static void kernel_pages_put(struct rdmatensor_pages *pages, struct page **got, u32 nr)
{
	while (nr)
		__free_page(got[--nr]);
}

/*
 * What is longer than a slice is to consist of long pages, and its end to begin where one may: it
 * is cut from one, as long as there are any
 */
static unsigned int kernel_pages_order(const struct rdmatensor_pages *pages, unsigned int order,
				       u32 left)
{
	if (order >= KERNEL_PAGES_LONG_ORDER && left < 1U << KERNEL_PAGES_LONG_ORDER &&
	    pages->slice_shift >= RDMATENSOR_MEMORY_PAGE_SHIFT_MAX &&
	    pages->memory.bytes > 1ULL << RDMATENSOR_MEMORY_PAGE_SHIFT_MAX)
		return KERNEL_PAGES_LONG_ORDER;
	return min_t(unsigned int, order, ilog2(left));
}

static int kernel_pages_get(struct rdmatensor_pages *pages, u64 offset, struct page **got, u32 nr)
{
	unsigned int order = to_kernel_pages(pages)->max_order;
	struct page *page;
	u32 done = 0, i;

	while (done < nr) {
		/* An order that failed is not tried again */
		order = kernel_pages_order(pages, order, nr - done);
		page = kernel_pages_chunk(&order, ilog2(nr - done));
		if (!page)
			goto out_free;
		for (i = 0; i < 1U << order; i++)
			if (done < nr)
				got[done++] = page + i;
			else
				__free_page(page + i);
		cond_resched();
	}
	return 0;

out_free:
	kernel_pages_put(pages, got, done);
	return -ENOMEM;
}

static const struct rdmatensor_pages_source kernel_pages_source = {
	.get = kernel_pages_get,
	.put = kernel_pages_put,
};

static int kernel_pages_mmap(const struct rdmatensor_memory *memory, struct vm_area_struct *vma)
{
	const struct rdmatensor_pages *pages = rdmatensor_to_pages_const(memory);
	unsigned long addr = vma->vm_start, left;
	int ret;
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		left = rdmatensor_pages_in(pages, i);
		ret = vm_insert_pages(vma, addr, pages->slices[i], &left);
		if (ret)
			return ret;
		addr += 1UL << pages->slice_shift;
		cond_resched();
	}
	return 0;
}

static void kernel_pages_free(struct rdmatensor_memory *memory)
{
	struct rdmatensor_pages *pages = rdmatensor_to_pages(memory);

	rdmatensor_pages_end(pages);
	kfree(to_kernel_pages(pages));
}

static const struct rdmatensor_memory_ops kernel_pages_ops = {
	.name = "kernel",
	.map = rdmatensor_pages_map,
	.unmap = rdmatensor_pages_unmap,
	.mmap = kernel_pages_mmap,
	.addr = rdmatensor_pages_addr,
	.free = kernel_pages_free,
};

struct rdmatensor_memory *rdmatensor_kernel_pages_alloc(u64 bytes, u8 slice_shift,
							unsigned int max_order,
							const bool *stop)
{
	struct kernel_pages *kernel;
	int ret;

	kernel = kzalloc(sizeof(*kernel), RDMATENSOR_GFP_SPARING);
	if (!kernel)
		return ERR_PTR(-ENOMEM);
	kernel->pages.memory.ops = &kernel_pages_ops;
	kernel->pages.memory.bytes = bytes;
	kernel->pages.source = &kernel_pages_source;
	kernel->max_order = max_order;
	ret = rdmatensor_pages_begin(&kernel->pages, slice_shift, stop);
	if (ret) {
		kfree(kernel);
		return ERR_PTR(ret);
	}
	return &kernel->pages.memory;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_kernel_pages_alloc);
