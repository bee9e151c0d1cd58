// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of segments: kernel pages, in the largest physically contiguous
 * chunks that can be allocated, because each chunk is an entry in a translation.
 *
 * A segment holds one reference on each of its pages. Chunks are split, so that
 * another user of a page, a process that maps it or a device that reads it for
 * O_DIRECT, keeps that page and no other when the segment goes.
 *
 * An allocation that fails leaves an empty segment, which may be freed.
 *
 * Coherent segments are for what a peer writes and this side reads with no moment in
 * between at which a buffer could be handed over: the message buffers. Pools are
 * plain pages, as processes map them; devices for which these would have to be synced
 * are refused (rdmatensor_domain_unfit()).
 */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/compat.h"
#include "memory/domain.h"

/* A chunk of coherent memory, unless a block is longer */
#define SEGMENT_COHERENT SZ_32K

/* Tries @order and down to @min_order, which is also what @order becomes */
static struct page *segment_chunk(unsigned int *order, unsigned int min_order)
{
	struct page *page;

	for (;; (*order)--) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

		/*
		 * A long chunk is worth no effort. The shortest is, up to but not
		 * to killing others for a pool that is too large.
		 */
		gfp |= *order > min_order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
		page = alloc_pages(gfp, *order);
		if (page || *order == min_order)
			break;
	}
	if (page && *order)
		split_page(page, *order);
	return page;
}

int rdmatensor_segment_alloc(struct rdmatensor_segment *segment, u32 bytes,
			     unsigned int min_order)
{
	u32 nr = bytes >> PAGE_SHIFT, done = 0, i;
	unsigned int order = MAX_PAGE_ORDER;
	struct page **pages, *page;
	int ret = -ENOMEM;

	might_sleep();
	memset(segment, 0, sizeof(*segment));
	if (WARN_ON_ONCE(!nr || min_order > MAX_PAGE_ORDER ||
			 !IS_ALIGNED(bytes, PAGE_SIZE << min_order)))
		return -EINVAL;

	pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;

	while (done < nr) {
		/* An order that failed is not tried again */
		order = min_t(unsigned int, order, ilog2(nr - done));
		page = segment_chunk(&order, min_order);
		if (!page)
			goto out_free_pages;
		for (i = 0; i < 1U << order; i++)
			pages[done++] = page + i;
		cond_resched();
	}

	/* Joins chunks that happen to be neighbours */
	ret = sg_alloc_table_from_pages(&segment->sgt, pages, nr, 0, bytes,
					GFP_KERNEL_ACCOUNT);
	if (ret)
		goto out_free_pages;
	segment->bytes = bytes;
	kvfree(pages);
	return 0;

out_free_pages:
	while (done)
		__free_page(pages[--done]);
	kvfree(pages);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_segment_alloc);

/* As dma_alloc_coherent(); devices in software take the CPU's addresses */
static void *segment_alloc_coherent_chunk(struct ib_device *ibdev, size_t bytes,
					  dma_addr_t *dma)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	void *cpu;

	if (!ib_uses_virt_dma(ibdev))
		return dma_alloc_coherent(ibdev->dma_device, bytes, dma, gfp);
	cpu = alloc_pages_exact(bytes, gfp);
	*dma = (uintptr_t)cpu;
	return cpu;
}

static void segment_free_coherent_chunk(struct ib_device *ibdev, size_t bytes, void *cpu,
					dma_addr_t dma)
{
	if (!ib_uses_virt_dma(ibdev))
		dma_free_coherent(ibdev->dma_device, bytes, cpu, dma);
	else
		free_pages_exact(cpu, bytes);
}

static void segment_free_coherent(struct rdmatensor_segment *segment)
{
	struct rdmatensor_coherent *coherent = segment->coherent;
	struct scatterlist *sg;
	u32 i;

	for_each_sgtable_sg(&segment->sgt, sg, i)
		if (coherent->cpus[i])
			segment_free_coherent_chunk(coherent->ibdev, coherent->bytes,
						    coherent->cpus[i], sg_dma_address(sg));
	sg_free_table(&segment->sgt);
	kfree(coherent);
	segment->coherent = NULL;
}

int rdmatensor_segment_alloc_coherent(struct rdmatensor_segment *segment,
				      struct ib_device *ibdev, u32 bytes, u32 block)
{
	struct rdmatensor_coherent *coherent;
	struct scatterlist *sg;
	dma_addr_t dma;
	u32 chunk, i;

	might_sleep();
	memset(segment, 0, sizeof(*segment));
	/* Short enough to be allocated when memory is fragmented */
	chunk = min(max3(block, (u32)PAGE_SIZE, (u32)SEGMENT_COHERENT), bytes);
	if (WARN_ON_ONCE(!bytes || !is_power_of_2(block) || !IS_ALIGNED(bytes, chunk) ||
			 !IS_ALIGNED(chunk, PAGE_SIZE)))
		return -EINVAL;
	coherent = kzalloc(struct_size(coherent, cpus, bytes / chunk), GFP_KERNEL_ACCOUNT);
	if (!coherent)
		return -ENOMEM;
	coherent->ibdev = ibdev;
	coherent->bytes = chunk;
	coherent->nr = bytes / chunk;
	if (sg_alloc_table(&segment->sgt, coherent->nr, GFP_KERNEL_ACCOUNT)) {
		kfree(coherent);
		return -ENOMEM;
	}
	segment->coherent = coherent;
	for_each_sgtable_sg(&segment->sgt, sg, i) {
		coherent->cpus[i] = segment_alloc_coherent_chunk(ibdev, chunk, &dma);
		if (!coherent->cpus[i]) {
			segment_free_coherent(segment);
			return -ENOMEM;
		}
		/* It has no page that could be asked for: what is mapped is all there is */
		sg->length = chunk;
		sg_dma_address(sg) = dma;
		sg_dma_len(sg) = chunk;
	}
	segment->bytes = bytes;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_segment_alloc_coherent);

void rdmatensor_segment_free(struct rdmatensor_segment *segment)
{
	struct scatterlist *sg;
	unsigned long pfn, n;
	u32 i;

	if (!segment->bytes)
		return;
	/* A device that may still write is worse than pages that are lost */
	if (WARN_ON_ONCE(segment->mr || segment->mapped))
		return;

	if (segment->coherent) {
		segment_free_coherent(segment);
		segment->bytes = 0;
		return;
	}
	/* By number: a chunk's first page may have another owner as soon as it is free */
	for_each_sgtable_sg(&segment->sgt, sg, i) {
		pfn = page_to_pfn(sg_page(sg));
		for (n = 0; n < sg->length >> PAGE_SHIFT; n++)
			__free_page(pfn_to_page(pfn + n));
	}
	sg_free_table(&segment->sgt);
	segment->bytes = 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_segment_free);

void *rdmatensor_segment_addr(const struct rdmatensor_segment *segment, u32 offset,
			      u32 *contiguous)
{
	const struct rdmatensor_coherent *coherent = segment->coherent;
	struct scatterlist *sg;
	int i;

	if (coherent) {
		if (contiguous)
			*contiguous = coherent->bytes - offset % coherent->bytes;
		return coherent->cpus[offset / coherent->bytes] + offset % coherent->bytes;
	}
	for_each_sgtable_sg(&segment->sgt, sg, i) {
		if (offset < sg->length) {
			if (contiguous)
				*contiguous = sg->length - offset;
			return sg_virt(sg) + offset;
		}
		offset -= sg->length;
	}
	WARN_ON_ONCE(1);
	return NULL;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_segment_addr);
