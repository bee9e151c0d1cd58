// SPDX-License-Identifier: GPL-2.0
/*
 * Pages in slices: arrays of pages, so that a byte is found at once however its neighbours are
 * scattered. Pages that happen to be neighbours are joined when they are mapped for a device,
 * because each chunk is an entry in a translation.
 *
 * Each mapping for a device has a scatter list of its own, so that mappings of the same pages
 * know nothing of each other: what ends one for writing, such as copying a bounced page back,
 * is no business of one for reading.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <rdma/ib_verbs.h>
#include "core/fault.h"
#include "core/limits.h"
#include "memory/pages.h"

static int pages_fill(struct rdmatensor_pages *pages, u32 slice)
{
	u32 nr = rdmatensor_pages_in(pages, slice);
	struct page **got;
	int ret;

	got = kvmalloc_array(nr, sizeof(*got), RDMATENSOR_GFP_SPARING);
	if (!got)
		return -ENOMEM;
	ret = pages->source->get(pages, (u64)slice << pages->slice_shift, got, nr);
	if (ret) {
		kvfree(got);
		return ret;
	}
	pages->slices[slice] = got;
	return 0;
}

void rdmatensor_pages_end(struct rdmatensor_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->nr && pages->slices[i]; i++) {
		pages->source->put(pages, pages->slices[i], rdmatensor_pages_in(pages, i));
		kvfree(pages->slices[i]);
		cond_resched();
	}
	kvfree(pages->slices);
	pages->slices = NULL;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_pages_end);

static u8 pages_shift(const struct rdmatensor_pages *pages)
{
	struct rdmatensor_runs runs = { 0 };
	u32 slice, nr, i;

	for (slice = 0; slice < pages->nr; slice++) {
		nr = rdmatensor_pages_in(pages, slice);
		for (i = 0; i < nr; i++)
			rdmatensor_runs_add(&runs, page_to_phys(pages->slices[slice][i]),
					    PAGE_SIZE);
		cond_resched();
	}
	return rdmatensor_runs_page_shift(&runs);
}

int rdmatensor_pages_begin(struct rdmatensor_pages *pages, u8 slice_shift, const bool *stop)
{
	u64 bytes = pages->memory.bytes, nr = DIV_ROUND_UP_ULL(bytes, 1ULL << slice_shift);
	int ret;
	u32 i;

	might_sleep();
	if (WARN_ON_ONCE(!bytes || !IS_ALIGNED(bytes, PAGE_SIZE) || nr > U32_MAX))
		return -EINVAL;
	pages->slices = kvcalloc(nr, sizeof(*pages->slices), RDMATENSOR_GFP_SPARING);
	if (!pages->slices)
		return -ENOMEM;
	pages->slice_shift = slice_shift;
	pages->nr = nr;

	for (i = 0; i < nr; i++) {
		rdmatensor_hold("pages");
		ret = fatal_signal_pending(current) ? -EINTR :
		      stop && READ_ONCE(*stop) ? -ENODEV : pages_fill(pages, i);
		if (ret) {
			rdmatensor_pages_end(pages);
			return ret;
		}
		cond_resched();
	}
	pages->memory.page_shift = pages_shift(pages);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_pages_begin);

/* The page that @offset lies in, and those after it; @nr: out: how many the slice has from it on */
static struct page **pages_at(const struct rdmatensor_pages *pages, u64 offset, u32 *nr)
{
	u32 slice = offset >> pages->slice_shift;
	u32 first = (offset & ((1ULL << pages->slice_shift) - 1)) >> PAGE_SHIFT;

	*nr = rdmatensor_pages_in(pages, slice) - first;
	return pages->slices[slice] + first;
}

void *rdmatensor_pages_addr(const struct rdmatensor_memory *memory, u64 offset, u32 *contiguous)
{
	u32 nr, run, skip = offset_in_page(offset);
	struct page **at;

	at = pages_at(rdmatensor_to_pages_const(memory), offset, &nr);
	for (run = 1; contiguous && run < nr; run++)
		if (page_to_pfn(at[run]) != page_to_pfn(at[0]) + run)
			break;
	if (contiguous)
		*contiguous = (run << PAGE_SHIFT) - skip;
	return page_address(at[0]) + skip;
}

/* A range may begin and end anywhere, and go over slices: their arrays are put together then */
static struct page **pages_gather(const struct rdmatensor_pages *pages, u64 offset, u32 nr)
{
	struct page **all, **at;
	u32 done, run;

	all = kvmalloc_array(nr, sizeof(*all), RDMATENSOR_GFP_SPARING);
	if (!all)
		return NULL;
	for (done = 0; done < nr; done += run) {
		at = pages_at(pages, offset + ((u64)done << PAGE_SHIFT), &run);
		run = min(run, nr - done);
		memcpy(all + done, at, run * sizeof(*all));
	}
	return all;
}

int rdmatensor_pages_map_array(struct page **pages, u32 nr, struct ib_device *ibdev,
			       enum dma_data_direction dir, struct sg_table *sgt)
{
	int ret;

	/* A device joins what it is given in parts, and no entry is longer than it takes */
	ret = sg_alloc_table_from_pages_segment(sgt, pages, nr, 0, (size_t)nr << PAGE_SHIFT,
						ib_dma_max_seg_size(ibdev), RDMATENSOR_GFP_SPARING);
	if (ret)
		return ret;
	sgt->nents = ib_dma_map_sg(ibdev, sgt->sgl, sgt->orig_nents, dir);
	if (sgt->nents)
		return 0;
	sg_free_table(sgt);
	return -ENOMEM;
}

int rdmatensor_pages_map(struct rdmatensor_memory *memory, u64 offset, u32 bytes,
			 struct ib_device *ibdev, enum dma_data_direction dir,
			 struct sg_table *sgt)
{
	u32 nr = bytes >> PAGE_SHIFT;
	struct page **all;
	int ret;

	all = pages_gather(rdmatensor_to_pages(memory), offset, nr);
	if (!all)
		return -ENOMEM;
	ret = rdmatensor_pages_map_array(all, nr, ibdev, dir, sgt);
	kvfree(all);
	return ret;
}

void rdmatensor_pages_unmap(struct rdmatensor_memory *memory, struct ib_device *ibdev,
			    enum dma_data_direction dir, struct sg_table *sgt)
{
	ib_dma_unmap_sg(ibdev, sgt->sgl, sgt->orig_nents, dir);
	sg_free_table(sgt);
}
