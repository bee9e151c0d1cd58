// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of segments: kernel pages, in the largest physically contiguous
 * chunks that are to be had, because each chunk is an entry in a translation.
 *
 * A segment holds one reference on each of its pages. Chunks are split, so that
 * whoever else has a page, a process that maps it or a device that reads it for
 * O_DIRECT, keeps that page and no other when the segment goes.
 *
 * An allocation that fails leaves an empty segment, which may be freed.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "compat.h"
#include "domain.h"

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
		/* An order that was not to be had is not asked for again */
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

void rdmatensor_segment_free(struct rdmatensor_segment *segment)
{
	struct sg_page_iter iter;

	if (!segment->bytes)
		return;
	/* A device that may still write is worse than pages that are lost */
	if (WARN_ON_ONCE(segment->mr || segment->mapped))
		return;

	for_each_sgtable_page(&segment->sgt, &iter, 0)
		__free_page(sg_page_iter_page(&iter));
	sg_free_table(&segment->sgt);
	segment->bytes = 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_segment_free);

void *rdmatensor_segment_addr(const struct rdmatensor_segment *segment, u32 offset,
			      u32 *contiguous)
{
	struct scatterlist *sg;
	int i;

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
