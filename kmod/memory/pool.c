// SPDX-License-Identifier: GPL-2.0
/*
 * Pools: a memory, its registration, and which parts of it are in use.
 *
 * Who owns what: a context has its pools in a table; that, and every published
 * tensor, fetch and response in a pool, is a reference, and so is every mapping. The
 * pages are the pool's until the last of them goes. Another user of a page, such as a
 * device that reads it for O_DIRECT, keeps that page beyond it, and no other one: pages are
 * counted one by one.
 *
 * Registration ends earlier, when the pool is destroyed, its context closed or
 * the device removed: always by rdmatensor_pool_unregister(), in process context
 * and after everything that could read or write by it. The last reference may go
 * in a completion, when the device may be gone; freeing touches memory, and a dma-buf's exporter.
 *
 * Pages are charged to the user who asked for them, from before they are allocated
 * until after they are freed. As mappings keep the pool, a pool that was destroyed and
 * is still mapped is still charged: all of it, as all of it is still there.
 *
 * Errors: a creation that fails leaves nothing, the charge included.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/crc32c.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>
#include "core/compat/mm.h"
#include "core/fault.h"
#include "core/limits.h"
#include "memory/dmabuf.h"
#include "memory/domain.h"
#include "memory/memory.h"
#include "memory/pinned.h"
#include "memory/pool.h"

/* Bytes that the CPU works on between two offers to be preempted */
#define POOL_CPU_BYTES SZ_256K

static struct workqueue_struct *pool_wq;

int rdmatensor_pool_init(void)
{
	int ret;

	ret = rdmatensor_dmabuf_init();
	if (ret)
		return ret;
	/* Freeing memory must not have to wait for memory */
	pool_wq = alloc_workqueue("rdmatensor_pool", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (pool_wq)
		return 0;
	rdmatensor_dmabuf_exit();
	return -ENOMEM;
}

void rdmatensor_pool_exit(void)
{
	destroy_workqueue(pool_wq);
	rdmatensor_dmabuf_exit();
}

bool rdmatensor_pool_too_long(u64 bytes)
{
	return bytes >> PAGE_SHIFT > totalram_pages();
}

static void pool_free_memory(struct rdmatensor_pool *pool)
{
	/* What the device does not forget stays allocated. Others of the user do not wait for it */
	if (rdmatensor_registration_free(&pool->reg))
		rdmatensor_memory_free(pool->memory);
	rdmatensor_regions_destroy(&pool->regions);
	rdmatensor_uncharge(&pool->charge);
}

static void pool_free_work(struct work_struct *work)
{
	struct rdmatensor_pool *pool = container_of(work, struct rdmatensor_pool, free_work);

	/* Its keys would keep leading to pages that have another owner by then */
	if (WARN_ON_ONCE(pool->reg.domain))
		rdmatensor_pool_unregister(pool);
	rdmatensor_hold("pool_free");
	pool_free_memory(pool);
	kfree(pool);
}

int rdmatensor_pool_size(const struct rdmatensor_domain *domain, u64 *bytes)
{
	if (!*bytes)
		return -EINVAL;
	if (*bytes > U64_MAX - PAGE_SIZE)
		return -EOVERFLOW;
	*bytes = PAGE_ALIGN(*bytes);
	/* Before anything is allocated */
	return rdmatensor_domain_segments(domain, *bytes) > domain->ibdev->attrs.max_mr ?
	       -EOVERFLOW : 0;
}

/* Charged, and without memory */
static struct rdmatensor_pool *pool_new(u64 bytes, enum rdmatensor_pool_peers peers,
					bool writable, bool memlock)
{
	struct rdmatensor_pool *pool;
	int ret;

	pool = kzalloc(sizeof(*pool), RDMATENSOR_GFP_SPARING);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	kref_init(&pool->ref);
	INIT_WORK(&pool->free_work, pool_free_work);
	pool->bytes = bytes;
	pool->peers = peers;
	pool->writable = writable;

	/* Else the memory cgroup bounds them, and they take nothing away from what is locked */
	ret = memlock ? rdmatensor_charge(&pool->charge, bytes >> PAGE_SHIFT) : 0;
	if (ret)
		goto out_free;
	ret = rdmatensor_regions_init(&pool->regions, bytes);
	if (ret)
		goto out_uncharge;
	return pool;

out_uncharge:
	rdmatensor_uncharge(&pool->charge);
out_free:
	kfree(pool);
	return ERR_PTR(ret);
}

/* It has no other user: what is there is freed at once */
static void pool_free(struct rdmatensor_pool *pool)
{
	pool_free_memory(pool);
	kfree(pool);
}

/* @memory: the pool's, or an error, with which the pool is gone */
static struct rdmatensor_pool *pool_take(struct rdmatensor_pool *pool,
					 struct rdmatensor_memory *memory)
{
	if (!IS_ERR(memory)) {
		pool->memory = memory;
		return pool;
	}
	pool_free(pool);
	return ERR_CAST(memory);
}

int rdmatensor_pool_register(struct rdmatensor_pool *pool, struct rdmatensor_domain *domain)
{
	const struct rdmatensor_span all = { .bytes = pool->bytes, .most = U32_MAX };

	return rdmatensor_registration_begin(&pool->reg, domain, pool->memory, &all,
					     rdmatensor_pool_access(pool->peers, pool->writable,
								    domain->strict));
}

struct rdmatensor_pool *rdmatensor_pool_create(struct rdmatensor_domain *domain, u64 bytes,
					       enum rdmatensor_pool_peers peers,
					       bool memlock)
{
	struct rdmatensor_pool *pool;
	u8 slice_shift;
	int ret;

	might_sleep();
	ret = rdmatensor_pool_size(domain, &bytes);
	if (ret)
		return ERR_PTR(ret);
	if (rdmatensor_pool_too_long(bytes))
		return ERR_PTR(-ENOMEM);
	pool = pool_new(bytes, peers, true, memlock);
	if (IS_ERR(pool))
		return pool;
	/* In slices that long pages fit in, also where a memory region has fewer bytes */
	slice_shift = max_t(u8, domain->seg_shift, RDMATENSOR_MEMORY_PAGE_SHIFT_MAX);
	pool = pool_take(pool, rdmatensor_kernel_pages_alloc(bytes, slice_shift, MAX_PAGE_ORDER,
							     &domain->ending));
	if (IS_ERR(pool))
		return pool;
	ret = rdmatensor_pool_register(pool, domain);
	if (ret) {
		pool_free(pool);
		return ERR_PTR(ret);
	}
	return pool;
}

/* The pool as a whole is one region, at 0: the process has laid it out before */
static int pool_hand_out(struct rdmatensor_pool *pool)
{
	u64 offset;

	pool->regions.align = 1;
	return rdmatensor_regions_alloc(&pool->regions, pool->bytes, RDMATENSOR_GFP_SPARING,
					&offset);
}

/* A new pool of memory that is there already; @call: for the cause */
static struct rdmatensor_pool *pool_new_of(u64 bytes, enum rdmatensor_pool_peers peers,
					   bool writable, const char *call, char *cause,
					   size_t room)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK);
	struct rdmatensor_pool *pool;

	pool = pool_new(bytes, peers, writable, true);
	if (pool != ERR_PTR(-ENOMEM))
		return pool;
	if (limit == RLIM_INFINITY || capable(CAP_IPC_LOCK))
		snprintf(cause, room,
			 "%s: no memory for what describes the pool: free some, or raise the limit of the memory cgroup",
			 call);
	else
		snprintf(cause, room,
			 "%s: %llu KiB are more than is left of RLIMIT_MEMLOCK, %lu KiB for all that this user has locked: destroy pools, or raise it (ulimit -l, LimitMEMLOCK=)",
			 call, bytes >> 10, limit >> 10);
	return pool;
}

/* All of it is handed out, or the pool is gone */
static struct rdmatensor_pool *pool_take_whole(struct rdmatensor_pool *pool,
					       struct rdmatensor_memory *memory)
{
	int ret;

	pool = pool_take(pool, memory);
	if (IS_ERR(pool))
		return pool;
	ret = pool_hand_out(pool);
	if (ret) {
		pool_free(pool);
		return ERR_PTR(ret);
	}
	return pool;
}

struct rdmatensor_pool *rdmatensor_pool_pin(const struct rdmatensor_pin *pin,
					    enum rdmatensor_pool_peers peers, u8 slice_shift,
					    const bool *stop, char *cause, size_t room)
{
	struct rdmatensor_pool *pool;

	might_sleep();
	cause[0] = '\0';
	if (rdmatensor_pool_too_long(pin->bytes)) {
		snprintf(cause, room,
			 "POOL_REGISTER: %llu KiB are more memory than there is: register less",
			 pin->bytes >> 10);
		return ERR_PTR(-ENOMEM);
	}
	pool = pool_new_of(pin->bytes, peers, pin->write, "POOL_REGISTER", cause, room);
	return IS_ERR(pool) ? pool :
	       pool_take_whole(pool, rdmatensor_pinned_alloc(pin, slice_shift, stop, cause,
							     room));
}

struct rdmatensor_pool *rdmatensor_pool_import(const struct rdmatensor_import *import,
					       enum rdmatensor_pool_peers peers, char *cause,
					       size_t room)
{
	struct rdmatensor_pool *pool;

	might_sleep();
	cause[0] = '\0';
	pool = pool_new_of(import->bytes, peers, import->write, "POOL_IMPORT", cause, room);
	return IS_ERR(pool) ? pool :
	       pool_take_whole(pool, rdmatensor_dmabuf_alloc(import, cause, room));
}

void rdmatensor_pool_get(struct rdmatensor_pool *pool)
{
	kref_get(&pool->ref);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_pool_get);

static void pool_begin_to_free(struct kref *ref)
{
	struct rdmatensor_pool *pool = container_of(ref, struct rdmatensor_pool, ref);

	rdmatensor_charge_ends(&pool->charge);
}

static void pool_release(struct kref *ref)
{
	struct rdmatensor_pool *pool = container_of(ref, struct rdmatensor_pool, ref);

	pool_begin_to_free(ref);
	queue_work(pool_wq, &pool->free_work);
}

void rdmatensor_pool_put(struct rdmatensor_pool *pool)
{
	kref_put(&pool->ref, pool_release);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_pool_put);

void rdmatensor_pool_put_now(struct rdmatensor_pool *pool)
{
	might_sleep();
	if (kref_put(&pool->ref, pool_begin_to_free))
		pool_free_work(&pool->free_work);
}

void rdmatensor_pool_unregister(struct rdmatensor_pool *pool)
{
	rdmatensor_registration_end(&pool->reg);
}

void rdmatensor_pool_describe(const struct rdmatensor_pool *pool,
			      struct rdmatensor_pool_info *info)
{
	const struct rdmatensor_memory_ops *ops = pool->memory->ops;

	*info = (struct rdmatensor_pool_info) {
		.id = pool->id,
		.bytes = pool->bytes,
		.peers = pool->peers,
		.writable = pool->writable,
		.reachable = rdmatensor_pool_reachable(pool),
		.mappable = ops->mmap,
		.memory = ops->name,
		.segments = pool->reg.nr,
		.uses = READ_ONCE(pool->regions.nr_uses),
	};
}

static void pool_vma_open(struct vm_area_struct *vma)
{
	rdmatensor_pool_get(vma->vm_private_data);
}

/*
 * With the address space's lock, which freeing takes about as long as unmapping has: who unmaps
 * a pool that was destroyed may want the memory for something else
 */
static void pool_vma_close(struct vm_area_struct *vma)
{
	rdmatensor_pool_put_now(vma->vm_private_data);
}

/* A page that the process has dropped by MADV_DONTNEED: it is still the pool's */
static vm_fault_t pool_vma_fault(struct vm_fault *vmf)
{
	const struct rdmatensor_pool *pool = vmf->vma->vm_private_data;
	u64 offset = ((u64)vmf->pgoff << PAGE_SHIFT) - rdmatensor_pool_mmap_offset(pool->id);

	if (WARN_ON_ONCE(offset >= pool->bytes))
		return VM_FAULT_SIGBUS;
	vmf->page = virt_to_page(rdmatensor_pool_cpu(pool, offset));
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct pool_vm_ops = {
	.open = pool_vma_open,
	.close = pool_vma_close,
	.fault = pool_vma_fault,
};

/*
 * All pages are mapped from the start, with counts of their own: only a page that the process
 * has dropped faults, and get_user_pages(), which O_DIRECT needs, works.
 *
 * After fork() the child sees the same pages: workers that prepare tensors for
 * their parent want that. Not in a core dump: pools are large, and while one is
 * written peers go on writing to them. It does not grow, as there is nothing
 * behind its end.
 */
int rdmatensor_pool_mmap(struct rdmatensor_pool *pool, struct vm_area_struct *vma)
{
	int ret;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_end - vma->vm_start != pool->bytes)
		return -EINVAL;

	if (!pool->memory->ops->mmap)
		return -ENODEV;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	ret = pool->memory->ops->mmap(pool->memory, vma);
	if (ret)
		return ret;
	/* What fails before is taken down without close() */
	rdmatensor_pool_get(pool);
	vma->vm_private_data = pool;
	vma->vm_ops = &pool_vm_ops;
	return 0;
}

void rdmatensor_pool_expose(struct rdmatensor_pool *pool, u64 offset, u64 bytes,
			    struct rdmatensor_domain *domain,
			    struct rdmatensor_exposure *exposure)
{
	const struct rdmatensor_registration *reg = &pool->reg;

	if (domain) {
		rdmatensor_exposure_begin(exposure, domain, offset, bytes);
		return;
	}
	exposure->domain = NULL;
	exposure->iova = reg->iova + offset;
	exposure->first = rdmatensor_registration_index(reg, offset);
	exposure->nr_rkeys = 0;
	exposure->seg_shift = reg->seg_shift;
	if (bytes)
		exposure->nr_rkeys = rdmatensor_registration_index(reg, offset + bytes - 1) -
				     exposure->first + 1;
}

/* In pool mode peers can reach pools as long as they exist: see the ABI's header */
void rdmatensor_pool_unexpose(struct rdmatensor_pool *pool, struct rdmatensor_exposure *exposure)
{
	if (exposure->domain)
		rdmatensor_exposure_end(exposure);
}

void rdmatensor_pool_rkeys(const struct rdmatensor_pool *pool,
			   const struct rdmatensor_exposure *exposure, __le32 *rkeys)
{
	struct ib_mr *mr;
	u32 i = 0;

	if (exposure->domain) {
		list_for_each_entry(mr, &exposure->mrs, qp_entry)
			rkeys[i++] = cpu_to_le32(mr->rkey);
		return;
	}
	for (i = 0; i < exposure->nr_rkeys; i++)
		rkeys[i] = cpu_to_le32(pool->reg.mrs[exposure->first + i].rkey);
}

/*
 * By the pool's own keys, which take one entry for a memory region; by the device's key
 * for all memory it would be one for each contiguous chunk, so never fewer.
 */
int rdmatensor_pool_sge(const struct rdmatensor_pool *pool, u64 offset, u64 bytes,
			struct ib_sge *sge, int max, u64 *covered)
{
	const struct rdmatensor_registration *reg = &pool->reg;
	u64 step = 1ULL << reg->seg_shift, done = 0;
	int nr;

	for (nr = 0; nr < max && done < bytes; nr++) {
		u64 at = offset + done;
		u32 run = min_t(u64, bytes - done, step - (at & (step - 1)));

		sge[nr].addr = reg->iova + at;
		sge[nr].length = run;
		sge[nr].lkey = reg->mrs[rdmatensor_registration_index(reg, at)].lkey;
		done += run;
	}
	*covered = done;
	return nr;
}

/* @bytes is cut to what is contiguous, and short enough to be done at once */
static void *pool_addr(const struct rdmatensor_pool *pool, u64 offset, u64 *bytes)
{
	u32 contiguous = 0;
	void *addr;

	/* Of short runs as many as there are elements: what follows them is not looked for */
	if (offset_in_page(offset) + *bytes <= PAGE_SIZE)
		return rdmatensor_memory_addr(pool->memory, offset, NULL);
	addr = rdmatensor_memory_addr(pool->memory, offset, &contiguous);
	*bytes = min3(*bytes, (u64)contiguous, (u64)POOL_CPU_BYTES);
	return addr;
}

void *rdmatensor_pool_cpu(const struct rdmatensor_pool *pool, u64 offset)
{
	u64 run = 1;

	return pool_addr(pool, offset, &run);
}

u32 rdmatensor_pool_crc(const struct rdmatensor_pool *pool, u64 offset, u64 bytes, u32 crc)
{
	u64 run;

	might_sleep();
	if (WARN_ON_ONCE(!rdmatensor_pool_reachable(pool)))
		return crc;
	for (; bytes; offset += run, bytes -= run) {
		const void *from;

		run = bytes;
		from = pool_addr(pool, offset, &run);
		crc = crc32c(crc, from, run);
		cond_resched();
	}
	return crc;
}

void rdmatensor_pool_copy(struct rdmatensor_pool *to, u64 to_offset,
			  const struct rdmatensor_pool *from, u64 from_offset, u64 bytes)
{
	u64 run;

	might_sleep();
	if (WARN_ON_ONCE(!rdmatensor_pool_reachable(to) || !rdmatensor_pool_reachable(from)))
		return;
	for (; bytes; to_offset += run, from_offset += run, bytes -= run) {
		const void *source;
		void *dest;

		run = bytes;
		source = pool_addr(from, from_offset, &run);
		dest = pool_addr(to, to_offset, &run);
		/* They overlap where a process has named memory of a pool by its address */
		memmove(dest, source, run);
		cond_resched();
	}
}
