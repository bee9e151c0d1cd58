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
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "core/trace.h"
#include "memory/domain.h"
#include "memory/memory.h"
#include "memory/registration.h"

int rdmatensor_registration_map(const struct rdmatensor_mr *mr, u8 page_shift)
{
	u32 page_bytes = 1U << page_shift;
	int mapped = -EINVAL;

	/* The first entry may begin within a page, for all that ib_map_mr_sg() minds */
	if (IS_ALIGNED(sg_dma_address(mr->sgt.sgl), page_bytes) && !rdmatensor_should_fail())
		mapped = ib_map_mr_sg(mr->mr, mr->sgt.sgl, mr->sgt.nents, NULL, page_bytes);
	if (mapped == mr->sgt.nents)
		return 0;
	return mapped < 0 ? mapped : -EIO;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_registration_map);

/* What it got is left to registration_undo() if it fails */
static int registration_prepare(const struct rdmatensor_registration *reg,
				struct rdmatensor_mr *mr, u64 offset, u32 bytes, u64 iova)
{
	struct rdmatensor_domain *domain = reg->domain;
	u8 page_shift = reg->page_shift;
	int ret;

	/* An end, which an IOMMU need not put where a long page begins */
	if (bytes <= 1U << domain->seg_shift)
		page_shift = PAGE_SHIFT;
	ret = reg->memory->ops->map(reg->memory, offset, bytes, domain->ibdev, reg->dir, &mr->sgt);
	if (ret) {
		memset(&mr->sgt, 0, sizeof(mr->sgt));
		return ret;
	}
	mr->mr = rdmatensor_should_fail() ? ERR_PTR(-ENOMEM) :
		 ib_alloc_mr(domain->pd, IB_MR_TYPE_MEM_REG,
			     DIV_ROUND_UP(bytes, 1U << page_shift));
	if (IS_ERR(mr->mr)) {
		ret = PTR_ERR(mr->mr);
		mr->mr = NULL;
		return ret;
	}
	ret = rdmatensor_registration_map(mr, page_shift);
	if (ret)
		return ret;

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

	wrs = kmalloc_array(longest, sizeof(*wrs), RDMATENSOR_GFP_SPARING);
	if (!wrs)
		return -ENOMEM;
	for (done = 0; !ret && done < reg->nr; done += chain) {
		chain = min(reg->nr - done, longest);
		ret = registration_chain(reg, offset, bytes, done, chain, wrs);
	}
	kfree(wrs);
	return ret;
}

/* In pages of at most 1 << @page_shift bytes */
static int registration_try(struct rdmatensor_registration *reg,
			    struct rdmatensor_domain *domain,
			    const struct rdmatensor_span *span, u8 page_shift)
{
	u64 nr;
	int ret;

	reg->page_shift = rdmatensor_domain_pages(domain, page_shift, &reg->seg_shift);
	nr = DIV_ROUND_UP_ULL(span->bytes, 1ULL << reg->seg_shift);
	if (nr > min_t(u64, span->most, domain->ibdev->attrs.max_mr))
		return -EOVERFLOW;
	reg->nr = nr;
	reg->mrs = kvcalloc(nr, sizeof(*reg->mrs), RDMATENSOR_GFP_SPARING);
	if (!reg->mrs)
		return -ENOMEM;
	reg->iova = rdmatensor_domain_iova(domain, span->bytes, reg->seg_shift);
	if (!reg->iova)
		return -EOVERFLOW;
	ret = rdmatensor_quota_charge(&reg->quota, domain->ibdev, nr);
	if (ret)
		return ret;
	kref_get(&domain->ref);
	reg->domain = domain;
	ret = registration_make(reg, span->offset, span->bytes);
	if (ret)
		rdmatensor_registration_end(reg);
	return ret;
}

/*
 * The longest pages that are worth trying for @span. What takes one key anyway takes none: keys
 * are few then, and addresses are not used up by their alignment
 */
static u8 registration_page_shift(const struct rdmatensor_domain *domain,
				  const struct rdmatensor_memory *memory,
				  const struct rdmatensor_span *span)
{
	u8 shift = READ_ONCE(memory->page_shift);

	if (span->bytes <= 1ULL << domain->seg_shift)
		return PAGE_SHIFT;
	return span->offset ? min_t(u8, shift, __ffs64(span->offset)) : shift;
}

bool rdmatensor_registration_wants_less(const struct rdmatensor_registration *reg, int error)
{
	switch (error) {
	case 0:
	case -EINTR:
	case -ENODEV:
	case -EOVERFLOW:
	case -EDQUOT:
	/* An exporter's refusal, or its fence that was late: it would be asked again */
	case -EOPNOTSUPP:
		return false;
	default:
		return reg->page_shift > PAGE_SHIFT;
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_registration_wants_less);

int rdmatensor_registration_begin(struct rdmatensor_registration *reg,
				  struct rdmatensor_domain *domain,
				  struct rdmatensor_memory *memory,
				  const struct rdmatensor_span *span, int access)
{
	u8 page_shift, tried = U8_MAX;
	int ret;

	might_sleep();
	memset(reg, 0, sizeof(*reg));
	rdmatensor_quota_init(&reg->quota);
	if (WARN_ON_ONCE(!span->bytes || span->offset + span->bytes > memory->bytes))
		return -EINVAL;
	reg->memory = memory;
	reg->access = access;
	reg->dir = rdmatensor_registration_dir(access);
	for (;;) {
		/* A first map() may have shown how long they are; one more length is tried */
		page_shift = registration_page_shift(domain, memory, span);
		if (page_shift >= tried)
			page_shift = PAGE_SHIFT;
		ret = registration_try(reg, domain, span, page_shift);
		if (!rdmatensor_registration_wants_less(reg, ret))
			break;
		if (!rdmatensor_registration_free(reg)) {
			ret = -EIO;
			break;
		}
		tried = page_shift;
	}
	trace_rdmatensor_memory_register(domain->ibdev->name, reg->iova, reg->nr, span->bytes, ret);
	return ret;
}

/* The entry that the byte at @offset is in; @skip: out: bytes before it there */
static struct scatterlist *registration_find(const struct rdmatensor_registration *reg, u64 offset,
					     u32 *skip)
{
	const struct rdmatensor_mr *mr = &reg->mrs[rdmatensor_registration_index(reg, offset)];
	u32 left = offset & ((1ULL << reg->seg_shift) - 1);
	struct scatterlist *sg = mr->sgt.sgl;

	for (; left >= sg_dma_len(sg); sg = sg_next(sg))
		left -= sg_dma_len(sg);
	*skip = left;
	return sg;
}

/* Entries that @bytes take, the first of which begins @skip bytes into @sg */
static u32 registration_entries(struct scatterlist *sg, u32 skip, u32 bytes)
{
	u64 covered = sg_dma_len(sg) - skip;
	u32 nr = 1;

	for (; covered < bytes; nr++) {
		sg = sg_next(sg);
		covered += sg_dma_len(sg);
	}
	return nr;
}

int rdmatensor_registration_slice(const struct rdmatensor_registration *reg, u64 offset, u32 bytes,
				  gfp_t gfp, struct sg_table *sgt)
{
	struct scatterlist *from, *to;
	u32 skip;
	int ret, i;

	from = registration_find(reg, offset, &skip);
	ret = sg_alloc_table(sgt, registration_entries(from, skip, bytes), gfp);
	if (ret)
		return ret;
	for_each_sg(sgt->sgl, to, sgt->nents, i) {
		sg_dma_address(to) = sg_dma_address(from) + skip;
		sg_dma_len(to) = min(sg_dma_len(from) - skip, bytes);
		bytes -= sg_dma_len(to);
		skip = 0;
		from = sg_next(from);
	}
	return 0;
}

int rdmatensor_registration_sge(const struct rdmatensor_registration *reg, u64 offset, u64 bytes,
				u32 lkey, struct ib_sge *sge, int max, u64 *covered)
{
	u64 step = 1ULL << reg->seg_shift, done = 0;
	struct scatterlist *sg = NULL;
	u32 skip;
	int nr;

	for (nr = 0; nr < max && done < bytes; nr++) {
		if (!sg || !((offset + done) & (step - 1)))
			sg = registration_find(reg, offset + done, &skip);
		sge[nr].addr = sg_dma_address(sg) + skip;
		sge[nr].length = min_t(u64, bytes - done, sg_dma_len(sg) - skip);
		sge[nr].lkey = lkey;
		done += sge[nr].length;
		skip = 0;
		sg = sg_next(sg);
	}
	*covered = done;
	return nr;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_registration_sge);

void rdmatensor_registration_end(struct rdmatensor_registration *reg)
{
	struct rdmatensor_domain *domain = reg->domain;

	might_sleep();
	if (!domain)
		return;
	registration_undo(reg);
	rdmatensor_quota_uncharge(&reg->quota);
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
