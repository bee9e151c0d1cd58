// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of segments: kernel pages in the largest contiguous chunks to be had.
 *
 * Chunks are split into pages, each with a count of its own, so that a page that
 * a process has mapped outlives the segment.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "domain.h"

/* 2 MiB: what a segment holds on the devices with the shortest page lists */
#define SEGMENT_ORDER_MAX 9

static struct page *segment_chunk(unsigned int *order, unsigned int min_order)
{
	struct page *page;

	for (;; (*order)--) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

		/* Only the least is worth an effort */
		if (*order > min_order)
			gfp |= __GFP_NORETRY;
		page = alloc_pages(gfp, *order);
		if (page || *order <= min_order)
			break;
	}
	if (page && *order)
		split_page(page, *order);
	return page;
}

static void segment_free_pages(struct page *page, u32 bytes)
{
	u32 i;

	for (i = 0; i < bytes >> PAGE_SHIFT; i++)
		__free_page(page + i);
}

int rdmatensor_segment_alloc(struct rdmatensor_segment *segment, u32 bytes,
			     unsigned int min_order)
{
	u32 left = bytes >> PAGE_SHIFT, most = DIV_ROUND_UP(left, 1U << min_order), nr = 0;
	unsigned int order = SEGMENT_ORDER_MAX;
	struct scatterlist *sg, *table;

	memset(segment, 0, sizeof(*segment));
	table = kvmalloc_array(most, sizeof(*table), GFP_KERNEL_ACCOUNT);
	if (!table)
		return -ENOMEM;
	sg_init_table(table, most);

	while (left) {
		struct page *page;

		order = min_t(unsigned int, order, ilog2(left));
		page = order < min_order ? NULL : segment_chunk(&order, min_order);
		if (!page)
			goto out_free;
		sg_set_page(&table[nr++], page, PAGE_SIZE << order, 0);
		left -= 1U << order;
		cond_resched();
	}

	/* Its own length: most segments need far fewer entries than pages */
	if (sg_alloc_table(&segment->sgt, nr, GFP_KERNEL_ACCOUNT))
		goto out_free;
	sg = segment->sgt.sgl;
	for (most = 0; most < nr; most++, sg = sg_next(sg))
		sg_set_page(sg, sg_page(&table[most]), table[most].length, 0);
	kvfree(table);
	segment->bytes = bytes;
	return 0;

out_free:
	while (nr--)
		segment_free_pages(sg_page(&table[nr]), table[nr].length);
	kvfree(table);
	return -ENOMEM;
}

void rdmatensor_segment_free(struct rdmatensor_segment *segment)
{
	struct scatterlist *sg;
	int i;

	if (!segment->bytes)
		return;
	WARN_ON_ONCE(segment->mr);
	for_each_sgtable_sg(&segment->sgt, sg, i)
		segment_free_pages(sg_page(sg), sg->length);
	sg_free_table(&segment->sgt);
	segment->bytes = 0;
}

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
