// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel pages, in the largest physically contiguous chunks that can be allocated, because
 * each chunk is an entry in a translation.
 *
 * The memory holds one reference on each of its pages. Chunks are split, so that another
 * user of a page, a process that maps it or a device that reads it for O_DIRECT, keeps that
 * page and no other when the memory goes.
 *
 * Each mapping for a device has a scatter list of its own, so that mappings of the same pages
 * know nothing of each other: what ends one for writing, such as copying a bounced page back,
 * is no business of one for reading.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <rdma/ib_verbs.h>
#include "core/compat.h"
#include "core/fault.h"
#include "memory/memory.h"

/* Pages that are mapped under one page table lock */
#define PAGES_MMAP_BATCH 64

/**
 * struct pages - kernel pages
 * @memory: the base
 * @slice_shift: log2 of the bytes of a slice
 * @nr: slices
 * @slices: the chunks of each; those after the first that is empty are empty too
 */
struct pages {
	struct rdmatensor_memory memory;
	u8 slice_shift;
	u32 nr;
	struct sg_table slices[] __counted_by(nr);
};

static struct pages *to_pages(struct rdmatensor_memory *memory)
{
	return container_of(memory, struct pages, memory);
}

static const struct pages *to_pages_const(const struct rdmatensor_memory *memory)
{
	return container_of_const(memory, struct pages, memory);
}

/* A long chunk is worth no effort. A page is, up to but not to killing others for a pool */
static struct page *pages_chunk(unsigned int *order)
{
	struct page *page;

	for (;; (*order)--) {
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

/* @slice is empty if that fails */
static int pages_fill(struct sg_table *slice, u32 bytes, unsigned int order)
{
	u32 nr = bytes >> PAGE_SHIFT, done = 0, i;
	struct page **pages, *page;
	int ret = -ENOMEM;

	pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;

	while (done < nr) {
		/* An order that failed is not tried again */
		order = min_t(unsigned int, order, ilog2(nr - done));
		page = pages_chunk(&order);
		if (!page)
			goto out_free_pages;
		for (i = 0; i < 1U << order; i++)
			pages[done++] = page + i;
		cond_resched();
	}

	/* Joins chunks that happen to be neighbours */
	ret = sg_alloc_table_from_pages(slice, pages, nr, 0, bytes, GFP_KERNEL_ACCOUNT);
	if (ret) {
		memset(slice, 0, sizeof(*slice));
		goto out_free_pages;
	}
	kvfree(pages);
	return 0;

out_free_pages:
	while (done)
		__free_page(pages[--done]);
	kvfree(pages);
	return ret;
}

static void pages_empty(struct sg_table *slice)
{
	struct scatterlist *sg;
	unsigned long pfn, n;
	u32 i;

	/* By number: a chunk's first page may have another owner as soon as it is free */
	for_each_sgtable_sg(slice, sg, i) {
		pfn = page_to_pfn(sg_page(sg));
		for (n = 0; n < sg->length >> PAGE_SHIFT; n++)
			__free_page(pfn_to_page(pfn + n));
	}
	sg_free_table(slice);
}

static void pages_free(struct rdmatensor_memory *memory)
{
	struct pages *pages = to_pages(memory);
	u32 i;

	for (i = 0; i < pages->nr && pages->slices[i].sgl; i++) {
		pages_empty(&pages->slices[i]);
		cond_resched();
	}
	kvfree(pages);
}

/* The chunk that @offset lies in; @skip: out: bytes of it before that */
static struct scatterlist *pages_find(const struct pages *pages, u64 offset, u32 *skip)
{
	const struct sg_table *slice = &pages->slices[offset >> pages->slice_shift];
	u32 left = offset & ((1ULL << pages->slice_shift) - 1), i;
	struct scatterlist *sg;

	for_each_sgtable_sg(slice, sg, i) {
		if (left < sg->length) {
			*skip = left;
			return sg;
		}
		left -= sg->length;
	}
	WARN_ON_ONCE(1);
	return NULL;
}

static void *pages_addr(const struct rdmatensor_memory *memory, u64 offset, u32 *contiguous)
{
	struct scatterlist *sg;
	u32 skip;

	sg = pages_find(to_pages_const(memory), offset, &skip);
	if (!sg)
		return NULL;
	if (contiguous)
		*contiguous = sg->length - skip;
	return sg_virt(sg) + skip;
}

/**
 * struct pages_cursor - a walk over the chunks of a range
 * @pages: of which
 * @sg: the last chunk; NULL: it was its slice's last one, or there was none yet
 * @offset: of what comes next
 * @left: bytes that are to come
 */
struct pages_cursor {
	const struct pages *pages;
	struct scatterlist *sg;
	u64 offset;
	u32 left;
};

/* The next chunk, cut to the range; NULL: that was all */
static struct page *pages_next(struct pages_cursor *at, u32 *bytes)
{
	u32 skip = 0;

	if (!at->left)
		return NULL;
	if (at->sg)
		at->sg = sg_next(at->sg);
	if (!at->sg)
		at->sg = pages_find(at->pages, at->offset, &skip);
	*bytes = min(at->sg->length - skip, at->left);
	at->offset += *bytes;
	at->left -= *bytes;
	return nth_page(sg_page(at->sg), skip >> PAGE_SHIFT);
}

/* A scatter list of [@offset, @offset + @bytes) */
static int pages_list(const struct pages *pages, u64 offset, u32 bytes, struct sg_table *sgt)
{
	const struct pages_cursor first = { .pages = pages, .offset = offset, .left = bytes };
	struct pages_cursor at = first;
	struct scatterlist *sg;
	u32 nr = 0, run = 0, i;
	struct page *page;
	int ret;

	while (pages_next(&at, &run))
		nr++;
	ret = sg_alloc_table(sgt, nr, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	at = first;
	for_each_sgtable_sg(sgt, sg, i) {
		page = pages_next(&at, &run);
		sg_set_page(sg, page, run, 0);
	}
	return 0;
}

static int pages_map(struct rdmatensor_memory *memory, u64 offset, u32 bytes,
		     struct ib_device *ibdev, enum dma_data_direction dir, struct sg_table *sgt)
{
	int ret;

	ret = pages_list(to_pages(memory), offset, bytes, sgt);
	if (ret)
		return ret;
	sgt->nents = ib_dma_map_sg(ibdev, sgt->sgl, sgt->orig_nents, dir);
	if (sgt->nents)
		return 0;
	sg_free_table(sgt);
	return -ENOMEM;
}

static void pages_unmap(struct rdmatensor_memory *memory, struct ib_device *ibdev,
			enum dma_data_direction dir, struct sg_table *sgt)
{
	ib_dma_unmap_sg(ibdev, sgt->sgl, sgt->orig_nents, dir);
	sg_free_table(sgt);
}

static int pages_insert(struct vm_area_struct *vma, unsigned long *addr, struct page **pages,
			unsigned long nr)
{
	unsigned long left = nr;
	int ret;

	ret = vm_insert_pages(vma, *addr, pages, &left);
	if (ret)
		return ret;
	*addr += nr << PAGE_SHIFT;
	return 0;
}

static int pages_insert_slice(struct vm_area_struct *vma, unsigned long *addr,
			      const struct sg_table *slice)
{
	struct page *pages[PAGES_MMAP_BATCH];
	struct sg_page_iter iter;
	unsigned long nr = 0;
	int ret;

	for_each_sgtable_page(slice, &iter, 0) {
		pages[nr++] = sg_page_iter_page(&iter);
		if (nr < ARRAY_SIZE(pages))
			continue;
		ret = pages_insert(vma, addr, pages, nr);
		if (ret)
			return ret;
		nr = 0;
	}
	return nr ? pages_insert(vma, addr, pages, nr) : 0;
}

static int pages_mmap(const struct rdmatensor_memory *memory, struct vm_area_struct *vma)
{
	const struct pages *pages = to_pages_const(memory);
	unsigned long addr = vma->vm_start;
	int ret;
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		ret = pages_insert_slice(vma, &addr, &pages->slices[i]);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

static const struct rdmatensor_memory_ops pages_ops = {
	.map = pages_map,
	.unmap = pages_unmap,
	.mmap = pages_mmap,
	.addr = pages_addr,
	.free = pages_free,
};

struct rdmatensor_memory *rdmatensor_pages_alloc(u64 bytes, u8 slice_shift,
						 unsigned int max_order, const bool *stop)
{
	u64 nr = DIV_ROUND_UP_ULL(bytes, 1ULL << slice_shift), left = bytes;
	struct pages *pages;
	int ret;
	u32 i;

	might_sleep();
	if (WARN_ON_ONCE(!bytes || !IS_ALIGNED(bytes, PAGE_SIZE) || nr > U32_MAX))
		return ERR_PTR(-EINVAL);
	pages = kvzalloc(struct_size(pages, slices, nr), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return ERR_PTR(-ENOMEM);
	pages->memory.ops = &pages_ops;
	pages->memory.bytes = bytes;
	pages->slice_shift = slice_shift;
	pages->nr = nr;

	for (i = 0; i < nr; i++) {
		u32 run = min_t(u64, left, 1ULL << slice_shift);

		rdmatensor_hold("pages_alloc");
		ret = fatal_signal_pending(current) ? -EINTR :
		      stop && READ_ONCE(*stop) ? -ENODEV : pages_fill(&pages->slices[i], run,
							      max_order);
		if (ret) {
			pages_free(&pages->memory);
			return ERR_PTR(ret);
		}
		left -= run;
		cond_resched();
	}
	return &pages->memory;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_pages_alloc);
