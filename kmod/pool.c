// SPDX-License-Identifier: GPL-2.0
/*
 * Pools of kernel pages.
 *
 * A pool is its context's; every published tensor and every fetch in it holds a
 * reference, so its pages stay as long as anybody here can touch them. What a
 * process has mapped, it keeps: pages are counted one by one. Registration ends
 * earlier, with the device or the context, when nothing can be under way.
 *
 * Errors of creation leave nothing: pages, charge and registration are undone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/crc32c.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include "pool.h"

static struct workqueue_struct *pool_wq;

int rdmatensor_pool_init(void)
{
	pool_wq = alloc_workqueue("rdmatensor_pool", WQ_UNBOUND, 0);
	return pool_wq ? 0 : -ENOMEM;
}

void rdmatensor_pool_exit(void)
{
	destroy_workqueue(pool_wq);
}

static int pool_charge(struct rdmatensor_pool *pool)
{
	u64 pages = pool->bytes >> PAGE_SHIFT;
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;

	if (atomic64_add_return(pages, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	pool->mm = mm;
	return 0;
}

static void pool_free(struct work_struct *work)
{
	struct rdmatensor_pool *pool = container_of(work, struct rdmatensor_pool, free_work);
	u32 i;

	rdmatensor_pool_unregister(pool);
	for (i = 0; i < pool->nr_segments; i++) {
		rdmatensor_segment_free(&pool->segments[i]);
		cond_resched();
	}
	kvfree(pool->segments);
	rdmatensor_regions_destroy(&pool->regions);
	atomic64_sub(pool->bytes >> PAGE_SHIFT, &pool->mm->pinned_vm);
	mmdrop(pool->mm);
	kfree(pool);
}

static int pool_alloc_segments(struct rdmatensor_pool *pool)
{
	u64 left = pool->bytes;
	u32 i;
	int ret;

	for (i = 0; i < pool->nr_segments; i++) {
		u32 bytes = min_t(u64, left, 1ULL << pool->seg_shift);

		if (fatal_signal_pending(current))
			return -EINTR;
		ret = rdmatensor_segment_alloc(&pool->segments[i], bytes, 0);
		if (ret)
			return ret;
		left -= bytes;
		cond_resched();
	}
	return 0;
}

struct rdmatensor_pool *rdmatensor_pool_create(struct rdmatensor_domain *domain, u64 bytes)
{
	struct rdmatensor_pool *pool;
	int ret;

	bytes = PAGE_ALIGN(bytes);
	if (!bytes || bytes >> domain->seg_shift > S32_MAX - 1)
		return ERR_PTR(-EOVERFLOW);

	pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	kref_init(&pool->ref);
	INIT_WORK(&pool->free_work, pool_free);
	pool->bytes = bytes;
	pool->seg_shift = domain->seg_shift;

	ret = pool_charge(pool);
	if (ret)
		goto out_free;
	ret = rdmatensor_regions_init(&pool->regions, bytes);
	if (ret)
		goto out_uncharge;

	ret = -ENOMEM;
	pool->nr_segments = DIV_ROUND_UP_ULL(bytes, 1ULL << pool->seg_shift);
	pool->segments = kvcalloc(pool->nr_segments, sizeof(*pool->segments),
				  GFP_KERNEL_ACCOUNT);
	if (!pool->segments) {
		rdmatensor_regions_destroy(&pool->regions);
		goto out_uncharge;
	}

	ret = pool_alloc_segments(pool);
	if (ret)
		goto out_put;
	ret = -EOVERFLOW;
	pool->iova = rdmatensor_domain_iova(domain, bytes);
	if (!pool->iova)
		goto out_put;
	ret = rdmatensor_domain_register(domain, pool->segments, pool->nr_segments,
					 pool->iova,
					 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	if (ret)
		goto out_put;
	kref_get(&domain->ref);
	pool->domain = domain;
	return pool;

out_put:
	/* Segments that were not reached are empty, which freeing minds */
	rdmatensor_pool_put(pool);
	return ERR_PTR(ret);
out_uncharge:
	atomic64_sub(bytes >> PAGE_SHIFT, &pool->mm->pinned_vm);
	mmdrop(pool->mm);
out_free:
	kfree(pool);
	return ERR_PTR(ret);
}

void rdmatensor_pool_get(struct rdmatensor_pool *pool)
{
	kref_get(&pool->ref);
}

static void pool_release(struct kref *ref)
{
	struct rdmatensor_pool *pool = container_of(ref, struct rdmatensor_pool, ref);

	queue_work(pool_wq, &pool->free_work);
}

void rdmatensor_pool_put(struct rdmatensor_pool *pool)
{
	kref_put(&pool->ref, pool_release);
}

void rdmatensor_pool_unregister(struct rdmatensor_pool *pool)
{
	struct rdmatensor_domain *domain = pool->domain;

	if (!domain)
		return;
	pool->domain = NULL;
	rdmatensor_domain_unregister(domain, pool->segments, pool->nr_segments);
	rdmatensor_domain_put(domain);
}

static void pool_vm_flags(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, VM_DONTEXPAND);
#else
	vma->vm_flags |= VM_DONTEXPAND;
#endif
}

/* Pages with counts of their own: get_user_pages() works on them, so O_DIRECT does */
int rdmatensor_pool_mmap(struct rdmatensor_pool *pool, struct vm_area_struct *vma)
{
	unsigned long addr = vma->vm_start;
	struct scatterlist *sg;
	u32 i;
	int ret, j;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_end - vma->vm_start != pool->bytes)
		return -EINVAL;

	pool_vm_flags(vma);
	for (i = 0; i < pool->nr_segments; i++) {
		for_each_sgtable_sg(&pool->segments[i].sgt, sg, j) {
			u32 k;

			for (k = 0; k < sg->length >> PAGE_SHIFT; k++, addr += PAGE_SIZE) {
				ret = vm_insert_page(vma, addr, sg_page(sg) + k);
				if (ret)
					return ret;
			}
		}
		cond_resched();
	}
	return 0;
}

void rdmatensor_pool_expose(struct rdmatensor_pool *pool, u64 offset, u64 bytes,
			    struct rdmatensor_channel *channel,
			    struct rdmatensor_exposure *exposure)
{
	u64 last = offset + bytes - 1;

	exposure->iova = pool->iova + offset;
	exposure->first = offset >> pool->seg_shift;
	exposure->nr_rkeys = bytes ? (last >> pool->seg_shift) - exposure->first + 1 : 0;
	exposure->seg_shift = pool->seg_shift;
}

/* In mr_mode=pool a region stays reachable: see the ABI's header */
void rdmatensor_pool_unexpose(struct rdmatensor_pool *pool,
			      const struct rdmatensor_exposure *exposure)
{
}

__le32 rdmatensor_pool_rkey(const struct rdmatensor_pool *pool,
			    const struct rdmatensor_exposure *exposure, u32 i)
{
	return cpu_to_le32(pool->segments[exposure->first + i].mr->rkey);
}

int rdmatensor_pool_sge(const struct rdmatensor_pool *pool, u64 offset, u64 bytes,
			struct ib_sge *sge, int max, u64 *covered)
{
	u64 mask = (1ULL << pool->seg_shift) - 1, done = 0;
	int n;

	for (n = 0; n < max && done < bytes; n++) {
		u64 at = offset + done;
		u64 run = min((mask + 1) - (at & mask), bytes - done);

		sge[n].addr = pool->iova + at;
		sge[n].length = run;
		sge[n].lkey = pool->segments[at >> pool->seg_shift].mr->lkey;
		done += run;
	}
	*covered = done;
	return n;
}

static void *pool_addr(const struct rdmatensor_pool *pool, u64 offset, u64 *run)
{
	u64 mask = (1ULL << pool->seg_shift) - 1;
	u32 contiguous;
	void *addr;

	addr = rdmatensor_segment_addr(&pool->segments[offset >> pool->seg_shift],
				       offset & mask, &contiguous);
	*run = min_t(u64, *run, contiguous);
	return addr;
}

u32 rdmatensor_pool_checksum(const struct rdmatensor_pool *pool, u64 offset, u64 bytes)
{
	u32 crc = ~0U;

	might_sleep();
	while (bytes) {
		u64 run = min_t(u64, bytes, SZ_256K);
		const void *from = pool_addr(pool, offset, &run);

		crc = crc32c(crc, from, run);
		offset += run;
		bytes -= run;
		cond_resched();
	}
	return ~crc;
}

void rdmatensor_pool_copy(struct rdmatensor_pool *to, u64 to_offset,
			  const struct rdmatensor_pool *from, u64 from_offset, u64 bytes)
{
	might_sleep();
	while (bytes) {
		u64 run = min_t(u64, bytes, SZ_256K);
		const void *source = pool_addr(from, from_offset, &run);
		void *dest = pool_addr(to, to_offset, &run);

		memcpy(dest, source, run);
		from_offset += run;
		to_offset += run;
		bytes -= run;
		cond_resched();
	}
}
