// SPDX-License-Identifier: GPL-2.0
/*
 * Imported memory: a dma-buf, as its exporter has it.
 *
 * A device with DMA is attached to it, and gets the exporter's addresses: there may be no pages
 * behind them, and the CPU is never used (the memory is unreachable). The attachment is pinned,
 * because a fast registration cannot be revoked at the moment at which an exporter wants to move
 * the memory. It is made by the first mapping and ends with the last one, and so before the
 * device goes; the dma-buf itself may stay for longer.
 *
 * A device in software has no DMA. It gets the pages, which are found by the exporter's mapping
 * for the CPU. Such a mapping alone does not keep the pages where they are: so there is an
 * attachment here, too, and a pin, from before it until after it. It is that of a device of this
 * module, which has no DMA, and nothing is mapped for it. The CPU's accesses are bracketed once,
 * from the beginning to the end of the memory, as a peer may use it at any time between.
 *
 * Nobody waits here for an exporter without a bound but for its own locks: who imports can be
 * killed, and a removal of the device ends the wait.
 *
 * Errors: what an exporter refuses is -EOPNOTSUPP, as each has errnos of its own that would be
 * mistaken for the device's.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <kunit/visibility.h>
#include <rdma/ib_verbs.h>
#include "core/compat/dma_buf.h"
#include "core/fault.h"
#include "core/limits.h"
#include "memory/dmabuf.h"
#include "memory/memory.h"
#include "memory/pages.h"

/* What the exporter's own work on the memory may take until it is there: a GPU that fills it */
#define DMABUF_FENCE_WAIT (10 * HZ)
/* Between two looks whether it is still wanted */
#define DMABUF_FENCE_LOOK (HZ / 20 + 1)

/* What dma-bufs are attached to for devices without DMA */
static struct device *dmabuf_software;

/**
 * struct dmabuf_place - where a slice begins in the exporter's list
 * @sg: the entry
 * @skip: bytes of it that are before the slice
 */
struct dmabuf_place {
	struct scatterlist *sg;
	u32 skip;
};

/**
 * struct dmabuf - see above
 * @memory: the base
 * @buf: referenced
 * @map: the exporter's mapping for the CPU; empty: none
 * @write: it can be a destination
 * @software: devices get pages
 * @slice_shift: log2 of the bytes of a slice
 * @stop: nothing more is waited for when true; of the context that imports, and read only while
 *        that makes the first mapping, which stays until the device goes
 * @lock: guards what follows, but for @attach of @software, which is constant
 * @nr_mapped: mappings for the device: the attachment is there while there are any
 * @ibdev: the device that it is attached to
 * @attach: the attachment
 * @sgt: of @attach; none of @software
 * @places: of each slice
 * @pinned: the attachment is, and so nobody moves the memory; under the dma-buf's reservation lock
 */
struct dmabuf {
	struct rdmatensor_memory memory;
	struct dma_buf *buf;
	struct iosys_map map;
	bool write;
	bool software;
	u8 slice_shift;
	const bool *stop;

	struct mutex lock;
	u32 nr_mapped;
	struct ib_device *ibdev;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	struct dmabuf_place *places;
	bool pinned;
};

static struct dmabuf *to_dmabuf(struct rdmatensor_memory *memory)
{
	return container_of(memory, struct dmabuf, memory);
}

static enum dma_data_direction dmabuf_dir(const struct dmabuf *dmabuf)
{
	return dmabuf->write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/* As a reader or writer in the kernel, whatever devices do */
static enum dma_data_direction dmabuf_cpu_dir(const struct dmabuf *dmabuf)
{
	return dmabuf->write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
}

/*
 * NULL: the mapping has no page of the linear map there. A device's memory may be mapped without
 * pages: there is nothing behind the pointer then
 */
static struct page *dmabuf_page(const struct dmabuf *dmabuf, u64 offset)
{
	const void *at = dmabuf->map.vaddr + offset;
	struct page *page;

	if (is_vmalloc_addr(at))
		page = vmalloc_to_page(at);
	else
		page = virt_addr_valid(at) ? virt_to_page(at) : NULL;
	if (!page || !pfn_valid(page_to_pfn(page)))
		return NULL;
	return PageHighMem(page) || PageReserved(page) || is_zone_device_page(page) ? NULL : page;
}

static void *dmabuf_addr(const struct rdmatensor_memory *memory, u64 offset, u32 *contiguous)
{
	const struct dmabuf *dmabuf = container_of_const(memory, struct dmabuf, memory);

	if (contiguous)
		*contiguous = min_t(u64, memory->bytes - offset, U32_MAX);
	return dmabuf->map.vaddr + offset;
}

static int dmabuf_map_pages(const struct dmabuf *dmabuf, u64 offset, u32 bytes,
			    struct ib_device *ibdev, enum dma_data_direction dir,
			    struct sg_table *sgt)
{
	u32 nr = bytes >> PAGE_SHIFT, i;
	struct page **pages;
	int ret;

	pages = kvmalloc_array(nr, sizeof(*pages), RDMATENSOR_GFP_SPARING);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		pages[i] = dmabuf_page(dmabuf, offset + ((u64)i << PAGE_SHIFT));
	ret = rdmatensor_pages_map_array(pages, nr, ibdev, dir, sgt);
	kvfree(pages);
	return ret;
}

/* Pinning may move it to where the device reaches it: nothing is mapped then. Later nobody may */
static void dmabuf_moved(struct dma_buf_attachment *attach)
{
	const struct dmabuf *dmabuf = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (dmabuf->pinned)
		pr_warn_ratelimited("dma-buf of %s: its exporter moves memory that is pinned\n",
				    attach->dmabuf->exp_name);
}

static const struct dma_buf_attach_ops dmabuf_attach_ops = {
	.allow_peer2peer = true,
	.move_notify = dmabuf_moved,
};

/* Slices begin and end where pages do, and so must the exporter's entries */
static int dmabuf_find_places(struct dmabuf *dmabuf)
{
	u64 at = 0, slice = 0, nr = DIV_ROUND_UP_ULL(dmabuf->memory.bytes,
						     1ULL << dmabuf->slice_shift);
	struct rdmatensor_runs runs = { 0 };
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(dmabuf->sgt, sg, i) {
		u64 end = at + sg_dma_len(sg);

		/* An entry of no bytes would be a page of its own in a translation */
		if (!sg_dma_len(sg) || !IS_ALIGNED(sg_dma_address(sg) | sg_dma_len(sg), PAGE_SIZE))
			return -EOPNOTSUPP;
		/* What is not imported may begin anywhere */
		if (at < dmabuf->memory.bytes)
			rdmatensor_runs_add(&runs, sg_dma_address(sg), sg_dma_len(sg));
		for (; slice < nr && slice << dmabuf->slice_shift < end; slice++) {
			dmabuf->places[slice].sg = sg;
			dmabuf->places[slice].skip = (slice << dmabuf->slice_shift) - at;
		}
		at = end;
	}
	WRITE_ONCE(dmabuf->memory.page_shift, rdmatensor_runs_page_shift(&runs));
	return at >= dmabuf->memory.bytes ? 0 : -EOPNOTSUPP;
}

/* Until the exporter's own work on it is done. Return: 0; -EINTR: killed; -ENODEV; -ETIME */
static int dmabuf_wait(const struct dmabuf *dmabuf)
{
	unsigned long end = jiffies + DMABUF_FENCE_WAIT;

	while (!dma_resv_wait_timeout(dmabuf->buf->resv, DMA_RESV_USAGE_KERNEL, false,
				      DMABUF_FENCE_LOOK)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (dmabuf->stop && READ_ONCE(*dmabuf->stop))
			return -ENODEV;
		if (time_after(jiffies, end))
			return -ETIME;
	}
	return 0;
}

/* Return: 0; -EINTR: there is a signal; an errno of the exporter */
static int dmabuf_pin(struct dmabuf *dmabuf)
{
	int ret;

	ret = dma_resv_lock_interruptible(dmabuf->buf->resv, NULL);
	if (ret)
		return ret;
	ret = dma_buf_pin(dmabuf->attach);
	dmabuf->pinned = !ret;
	dma_resv_unlock(dmabuf->buf->resv);
	return ret;
}

static void dmabuf_unpin(struct dmabuf *dmabuf)
{
	dma_resv_lock(dmabuf->buf->resv, NULL);
	dmabuf->pinned = false;
	dma_buf_unpin(dmabuf->attach);
	dma_resv_unlock(dmabuf->buf->resv);
}

/* Pinned, and so it stays where it is mapped */
static int dmabuf_map_attachment(struct dmabuf *dmabuf)
{
	struct sg_table *sgt;

	sgt = dma_buf_map_attachment_unlocked(dmabuf->attach, dmabuf_dir(dmabuf));
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	dmabuf->sgt = sgt;
	/* Pinning may have begun a move */
	return dmabuf_wait(dmabuf) ?: dmabuf_find_places(dmabuf);
}

static void dmabuf_detach(struct dmabuf *dmabuf)
{
	lockdep_assert_held(&dmabuf->lock);
	if (dmabuf->sgt)
		dma_buf_unmap_attachment_unlocked(dmabuf->attach, dmabuf->sgt,
						  dmabuf_dir(dmabuf));
	dmabuf->sgt = NULL;
	dmabuf_unpin(dmabuf);
	dma_buf_detach(dmabuf->buf, dmabuf->attach);
	dmabuf->attach = NULL;
	kvfree(dmabuf->places);
	dmabuf->places = NULL;
}

static int dmabuf_attach(struct dmabuf *dmabuf, struct ib_device *ibdev)
{
	u64 nr = DIV_ROUND_UP_ULL(dmabuf->memory.bytes, 1ULL << dmabuf->slice_shift);
	struct dma_buf_attachment *attach;
	int ret;

	lockdep_assert_held(&dmabuf->lock);
	dmabuf->places = kvcalloc(nr, sizeof(*dmabuf->places), RDMATENSOR_GFP_SPARING);
	if (!dmabuf->places)
		return -ENOMEM;
	/*
	 * An exporter that moves nothing maps it at once, and in both directions; but without these
	 * operations it would not be told that the device may reach another device's memory
	 */
	attach = rdmatensor_should_fail() ? ERR_PTR(-EBUSY) :
		 dma_buf_dynamic_attach(dmabuf->buf, ibdev->dma_device, &dmabuf_attach_ops,
					dmabuf);
	if (IS_ERR(attach)) {
		ret = PTR_ERR(attach);
		goto out_free;
	}
	dmabuf->attach = attach;
	dmabuf->ibdev = ibdev;
	ret = dmabuf_pin(dmabuf);
	if (ret)
		goto out_detach;
	ret = dmabuf_map_attachment(dmabuf);
	if (ret)
		dmabuf_detach(dmabuf);
	return ret;

out_detach:
	dma_buf_detach(dmabuf->buf, dmabuf->attach);
	dmabuf->attach = NULL;
out_free:
	kvfree(dmabuf->places);
	dmabuf->places = NULL;
	return ret;
}

/* An exporter's errnos would be taken for the RDMA device's */
static int dmabuf_error(const struct dmabuf *dmabuf, int error)
{
	switch (error) {
	case 0:
	case -ENOMEM:
	case -EINTR:
		return error;
	case -ERESTARTSYS:
		return -EINTR;
	case -ENODEV:
		if (dmabuf->stop && READ_ONCE(*dmabuf->stop))
			return error;
		fallthrough;
	default:
		return -EOPNOTSUPP;
	}
}

static int dmabuf_use(struct dmabuf *dmabuf, struct ib_device *ibdev)
{
	int ret = 0;

	if (mutex_lock_killable(&dmabuf->lock))
		return -EINTR;
	if (!dmabuf->nr_mapped)
		ret = dmabuf_attach(dmabuf, ibdev);
	else if (WARN_ON_ONCE(dmabuf->ibdev != ibdev))
		ret = -EINVAL;
	if (!ret)
		dmabuf->nr_mapped++;
	mutex_unlock(&dmabuf->lock);
	return dmabuf_error(dmabuf, ret);
}

static void dmabuf_unuse(struct dmabuf *dmabuf)
{
	mutex_lock(&dmabuf->lock);
	if (!--dmabuf->nr_mapped)
		dmabuf_detach(dmabuf);
	mutex_unlock(&dmabuf->lock);
}

/* Goes over the entries of [@offset, @offset + @bytes); fills @sgt's if it has any. Return: them */
static u32 dmabuf_walk(const struct dmabuf *dmabuf, u64 offset, u32 bytes, struct sg_table *sgt)
{
	const struct dmabuf_place *place = &dmabuf->places[offset >> dmabuf->slice_shift];
	u64 skip = place->skip + (offset & ((1ULL << dmabuf->slice_shift) - 1));
	struct scatterlist *from = place->sg, *to = sgt->sgl;
	u32 nr = 0, run;

	while (skip >= sg_dma_len(from)) {
		skip -= sg_dma_len(from);
		from = sg_next(from);
	}
	for (; bytes; bytes -= run, nr++, from = sg_next(from), skip = 0) {
		run = min_t(u64, sg_dma_len(from) - skip, bytes);
		if (!to)
			continue;
		to->length = run;
		sg_dma_address(to) = sg_dma_address(from) + skip;
		sg_dma_len(to) = run;
		to = sg_next(to);
	}
	return nr;
}

static int dmabuf_map_dma(struct dmabuf *dmabuf, u64 offset, u32 bytes,
			  struct ib_device *ibdev, struct sg_table *sgt)
{
	int ret;

	ret = dmabuf_use(dmabuf, ibdev);
	if (ret)
		return ret;
	memset(sgt, 0, sizeof(*sgt));
	ret = sg_alloc_table(sgt, dmabuf_walk(dmabuf, offset, bytes, sgt), RDMATENSOR_GFP_SPARING);
	if (ret) {
		dmabuf_unuse(dmabuf);
		return ret;
	}
	dmabuf_walk(dmabuf, offset, bytes, sgt);
	return 0;
}

/* A list without pages: nobody but the device may look at it */
static int dmabuf_map(struct rdmatensor_memory *memory, u64 offset, u32 bytes,
		      struct ib_device *ibdev, enum dma_data_direction dir,
		      struct sg_table *sgt)
{
	struct dmabuf *dmabuf = to_dmabuf(memory);

	if (WARN_ON_ONCE(dir != DMA_TO_DEVICE && !dmabuf->write))
		return -EACCES;
	return dmabuf->software ? dmabuf_map_pages(dmabuf, offset, bytes, ibdev, dir, sgt) :
				  dmabuf_map_dma(dmabuf, offset, bytes, ibdev, sgt);
}

static void dmabuf_unmap(struct rdmatensor_memory *memory, struct ib_device *ibdev,
			 enum dma_data_direction dir, struct sg_table *sgt)
{
	struct dmabuf *dmabuf = to_dmabuf(memory);

	if (dmabuf->software) {
		rdmatensor_pages_unmap(memory, ibdev, dir, sgt);
		return;
	}
	sg_free_table(sgt);
	dmabuf_unuse(dmabuf);
}

/* Of a device in software: the pages stay where they are from here on */
static int dmabuf_keep(struct dmabuf *dmabuf)
{
	bool moves = dma_buf_is_dynamic(dmabuf->buf);
	struct dma_buf_attachment *attach;
	int ret;

	/* Who does not move anything would map it for the device otherwise, which has no DMA */
	attach = dma_buf_dynamic_attach(dmabuf->buf, dmabuf_software,
					moves ? &dmabuf_attach_ops : NULL, dmabuf);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	dmabuf->attach = attach;
	ret = moves ? dmabuf_pin(dmabuf) : 0;
	if (ret) {
		dma_buf_detach(dmabuf->buf, attach);
		dmabuf->attach = NULL;
	}
	return ret;
}

static void dmabuf_unkeep(struct dmabuf *dmabuf)
{
	if (dma_buf_is_dynamic(dmabuf->buf))
		dmabuf_unpin(dmabuf);
	dma_buf_detach(dmabuf->buf, dmabuf->attach);
	dmabuf->attach = NULL;
}

static void dmabuf_leave(struct dmabuf *dmabuf)
{
	if (iosys_map_is_null(&dmabuf->map))
		return;
	dma_buf_end_cpu_access(dmabuf->buf, dmabuf_cpu_dir(dmabuf));
	rdmatensor_dma_buf_vunmap(dmabuf->buf, &dmabuf->map);
	iosys_map_clear(&dmabuf->map);
	dmabuf_unkeep(dmabuf);
}

static void dmabuf_free(struct rdmatensor_memory *memory)
{
	struct dmabuf *dmabuf = to_dmabuf(memory);

	WARN_ON_ONCE(dmabuf->nr_mapped);
	dmabuf_leave(dmabuf);
	dma_buf_put(dmabuf->buf);
	mutex_destroy(&dmabuf->lock);
	kfree(dmabuf);
}

static const struct rdmatensor_memory_ops dmabuf_ops = {
	.name = "dmabuf",
	.map = dmabuf_map,
	.unmap = dmabuf_unmap,
	.addr = dmabuf_addr,
	.free = dmabuf_free,
};

/* Return: 0: the CPU has a mapping, between begin and end of its access */
static int dmabuf_enter(struct dmabuf *dmabuf)
{
	int ret;

	ret = dmabuf_keep(dmabuf);
	if (ret)
		return ret;
	ret = dmabuf_wait(dmabuf);
	if (ret)
		goto out_unkeep;
	ret = rdmatensor_fault(-ENOMEM) ?: rdmatensor_dma_buf_vmap(dmabuf->buf, &dmabuf->map);
	if (ret)
		goto out_unkeep;
	ret = dmabuf->map.is_iomem ? -EOPNOTSUPP :
	      dma_buf_begin_cpu_access(dmabuf->buf, dmabuf_cpu_dir(dmabuf));
	if (!ret)
		return 0;
	rdmatensor_dma_buf_vunmap(dmabuf->buf, &dmabuf->map);
out_unkeep:
	iosys_map_clear(&dmabuf->map);
	dmabuf_unkeep(dmabuf);
	return ret;
}

/* Return: 0, and how long its pages are is known; -EBADFD: a page cannot be used; -EINTR */
static int dmabuf_check_pages(struct dmabuf *dmabuf)
{
	struct rdmatensor_runs runs = { 0 };
	struct page *page;
	u64 offset;

	for (offset = 0; offset < dmabuf->memory.bytes; offset += PAGE_SIZE) {
		page = dmabuf_page(dmabuf, offset);
		if (!page || rdmatensor_vmap_mistakes(dmabuf->buf, page))
			return -EBADFD;
		if (fatal_signal_pending(current))
			return -EINTR;
		rdmatensor_runs_add(&runs, page_to_phys(page), PAGE_SIZE);
		cond_resched();
	}
	dmabuf->memory.page_shift = rdmatensor_runs_page_shift(&runs);
	return 0;
}

/* Return: @error as the process gets it */
static int dmabuf_say(const struct dmabuf *dmabuf, int error, char *cause, size_t room)
{
	const char *name = dmabuf->buf->exp_name;

	switch (error) {
	case -ENOMEM:
		snprintf(cause, room,
			 "POOL_IMPORT: no memory, or no addresses of the kernel, to map it: free some, or import less");
		break;
	case -ETIME:
		snprintf(cause, room,
			 "POOL_IMPORT: its exporter, %s, was not ready with it in 10 s: wait for the work on it first",
			 name);
		break;
	case -EBADFD:
		snprintf(cause, room,
			 "POOL_IMPORT: the mapping of its exporter, %s, does not lead to pages of its own, as with a device's memory, or with huge pages of udmabuf before Linux 6.13: register the memory itself (POOL_REGISTER), or make it of small pages",
			 name);
		break;
	default:
		if (dmabuf_error(dmabuf, error) != -EOPNOTSUPP)
			break;
		snprintf(cause, room,
			 "POOL_IMPORT: its exporter, %s, has no pages for the CPU (%d), which a device in software works by: use memory of the system, or an RDMA device in hardware",
			 name, error);
	}
	return dmabuf_error(dmabuf, error);
}

/* Return: 0; an errno with a cause, where there is one */
static int dmabuf_reach(struct dmabuf *dmabuf, char *cause, size_t room)
{
	int ret;

	rdmatensor_hold("dma_buf");
	ret = dmabuf_enter(dmabuf) ?: dmabuf_check_pages(dmabuf);
	return ret ? dmabuf_say(dmabuf, ret, cause, room) : 0;
}

struct rdmatensor_memory *rdmatensor_dmabuf_alloc(const struct rdmatensor_import *import,
						  char *cause, size_t room)
{
	struct dmabuf *dmabuf;
	int ret;

	might_sleep();
	if (WARN_ON_ONCE(!import->bytes || import->bytes > import->buf->size ||
			 !IS_ALIGNED(import->bytes, PAGE_SIZE)))
		return ERR_PTR(-EINVAL);
	dmabuf = kzalloc(sizeof(*dmabuf), RDMATENSOR_GFP_SPARING);
	if (!dmabuf) {
		snprintf(cause, room,
			 "POOL_IMPORT: no memory: free some, or raise the limit of the memory cgroup");
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&dmabuf->lock);
	dmabuf->memory.ops = &dmabuf_ops;
	dmabuf->memory.bytes = import->bytes;
	/* As long as nobody has seen an address */
	dmabuf->memory.page_shift = RDMATENSOR_MEMORY_PAGE_SHIFT_MAX;
	dmabuf->buf = import->buf;
	get_dma_buf(dmabuf->buf);
	dmabuf->write = import->write;
	dmabuf->software = import->software;
	dmabuf->slice_shift = import->slice_shift;
	dmabuf->stop = import->stop;
	dmabuf->memory.unreachable = !import->software;
	ret = import->software ? dmabuf_reach(dmabuf, cause, room) : 0;
	if (ret) {
		dmabuf_free(&dmabuf->memory);
		return ERR_PTR(ret);
	}
	return &dmabuf->memory;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_dmabuf_alloc);

int rdmatensor_dmabuf_init(void)
{
	dmabuf_software = root_device_register("rdmatensor");
	return PTR_ERR_OR_ZERO(dmabuf_software);
}

void rdmatensor_dmabuf_exit(void)
{
	root_device_unregister(dmabuf_software);
}

RDMATENSOR_IMPORT_DMA_BUF;
