// SPDX-License-Identifier: GPL-2.0
/*
 * Registrations: memory regions of a slice of memory, made in chains.
 *
 * Memory regions are prepared one by one, each at its address, and registered by the domain,
 * which waits until all are. A registration ends when its memory regions are freed: that, and
 * no work request, is what takes a key away from peers for good.
 *
 * Who owns what: the registration is its owner's, a pool, an export or a message buffer, which
 * also keeps the memory until the registration has ended. The domain uses the device, so the
 * owner ends the registration before the device is gone.
 *
 * Errors: a registration that fails leaves nothing registered, and nothing mapped.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "core/fault.h"
#include "core/trace.h"
#include "memory/domain.h"
#include "memory/memory.h"
#include "memory/registration.h"

/* What it got is left to registration_undo() if it fails */
static int registration_prepare(const struct rdmatensor_registration *reg,
				struct rdmatensor_mr *mr, u64 offset, u32 bytes, u64 iova)
{
	struct rdmatensor_domain *domain = reg->domain;
	int ret, mapped;

	ret = reg->memory->ops->map(reg->memory, offset, bytes, domain->ibdev, reg->dir, &mr->sgt);
	if (ret) {
		memset(&mr->sgt, 0, sizeof(mr->sgt));
		return ret;
	}
	mr->mr = rdmatensor_should_fail() ? ERR_PTR(-ENOMEM) :
		 ib_alloc_mr(domain->pd, IB_MR_TYPE_MEM_REG, bytes >> PAGE_SHIFT);
	if (IS_ERR(mr->mr)) {
		ret = PTR_ERR(mr->mr);
		mr->mr = NULL;
		return ret;
	}
	mapped = ib_map_mr_sg(mr->mr, mr->sgt.sgl, mr->sgt.nents, NULL, PAGE_SIZE);
	if (mapped < 0)
		return mapped;
	if (mapped != mr->sgt.nents)
		return -EIO;

	/* Devices take the address from here when the registration is posted */
	mr->mr->iova = iova;
	mr->lkey = mr->mr->lkey;
	mr->rkey = mr->mr->rkey;
	return 0;
}

static void registration_undo(struct rdmatensor_registration *reg)
{
	struct rdmatensor_mr *mr;
	u32 i;

	for (i = 0; i < reg->nr; i++) {
		mr = &reg->mrs[i];
		/*
		 * First the device forgets the addresses, then they are taken away. If it
		 * does not, the memory is kept for ever
		 */
		if (mr->mr) {
			if (WARN_ON_ONCE(ib_dereg_mr(mr->mr)))
				continue;
			mr->mr = NULL;
		}
		if (mr->sgt.sgl)
			reg->memory->ops->unmap(reg->memory, reg->domain->ibdev, reg->dir,
						&mr->sgt);
		memset(&mr->sgt, 0, sizeof(mr->sgt));
		cond_resched();
	}
}

/* Memory regions [@first, @first + @nr), by @wrs */
static int registration_chain(struct rdmatensor_registration *reg, u64 offset, u64 bytes,
			      u32 first, u32 nr, struct ib_reg_wr *wrs)
{
	u64 step = 1ULL << reg->seg_shift, at;
	int ret;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct rdmatensor_mr *mr = &reg->mrs[first + i];

		if (fatal_signal_pending(current))
			return -EINTR;
		rdmatensor_hold("registration");
		if (rdmatensor_domain_ending(reg->domain))
			return -ENODEV;
		at = (u64)(first + i) << reg->seg_shift;
		ret = registration_prepare(reg, mr, offset + at, min(step, bytes - at),
					   reg->iova + at);
		if (ret)
			return ret;
		wrs[i] = (struct ib_reg_wr) {
			.mr = mr->mr,
			.key = mr->rkey,
			.access = reg->access,
		};
		cond_resched();
	}
	return rdmatensor_domain_post(reg->domain, wrs, nr);
}

static int registration_make(struct rdmatensor_registration *reg, u64 offset, u64 bytes)
{
	u32 longest = min(reg->nr, rdmatensor_domain_depth(reg->domain)), done, chain;
	struct ib_reg_wr *wrs;
	int ret = 0;

	wrs = kmalloc_array(longest, sizeof(*wrs), GFP_KERNEL_ACCOUNT);
	if (!wrs)
		return -ENOMEM;
	for (done = 0; !ret && done < reg->nr; done += chain) {
		chain = min(reg->nr - done, longest);
		ret = registration_chain(reg, offset, bytes, done, chain, wrs);
	}
	kfree(wrs);
	return ret;
}

int rdmatensor_registration_begin(struct rdmatensor_registration *reg,
				  struct rdmatensor_domain *domain,
				  struct rdmatensor_memory *memory, u64 offset, u64 bytes,
				  int access)
{
	u64 nr = rdmatensor_domain_segments(domain, bytes);
	int ret;

	might_sleep();
	memset(reg, 0, sizeof(*reg));
	if (WARN_ON_ONCE(!bytes || offset + bytes > memory->bytes))
		return -EINVAL;
	if (nr > domain->ibdev->attrs.max_mr)
		return -EOVERFLOW;
	reg->memory = memory;
	reg->access = access;
	reg->dir = rdmatensor_registration_dir(access);
	reg->seg_shift = domain->seg_shift;
	reg->nr = nr;
	reg->mrs = kvcalloc(nr, sizeof(*reg->mrs), GFP_KERNEL_ACCOUNT);
	if (!reg->mrs)
		return -ENOMEM;
	reg->iova = rdmatensor_domain_iova(domain, bytes);
	if (!reg->iova)
		return -EOVERFLOW;
	kref_get(&domain->ref);
	reg->domain = domain;
	ret = registration_make(reg, offset, bytes);
	trace_rdmatensor_memory_register(domain->ibdev->name, reg->iova, nr, bytes, ret);
	if (ret)
		rdmatensor_registration_end(reg);
	return ret;
}

void rdmatensor_registration_end(struct rdmatensor_registration *reg)
{
	struct rdmatensor_domain *domain = reg->domain;

	might_sleep();
	if (!domain)
		return;
	registration_undo(reg);
	reg->domain = NULL;
	rdmatensor_domain_put(domain);
}

bool rdmatensor_registration_free(struct rdmatensor_registration *reg)
{
	u32 i;

	if (WARN_ON_ONCE(reg->domain))
		return false;
	/* A device that may still write is worse than memory that is lost */
	for (i = 0; i < reg->nr && reg->mrs; i++)
		if (WARN_ON_ONCE(reg->mrs[i].mr))
			return false;
	kvfree(reg->mrs);
	reg->mrs = NULL;
	return true;
}
