// SPDX-License-Identifier: GPL-2.0
/*
 * Exposures of strict mode: memory regions of a channel's domain, over one request's bytes.
 *
 * The bytes are mapped for the device already, by the pool's registration, which gives no peer
 * access; a memory region here is a second view of the same addresses. It begins at the first
 * byte and ends behind the last one, not at the ends of pages: devices check addresses and
 * length to the byte. Where one memory region ends and the next begins is a matter of the pool's
 * offsets, so that each lies in one slice of the pool's registration.
 *
 * Who owns what: the domain's pool of memory regions (ib_mr_pool, on the queue pair that the
 * domain registers with) has the idle ones, an exposure those in use. The pool begins empty and
 * grows, in process context, whenever an exposure finds it so; it shrinks with the domain. It
 * cannot become larger than what is exposed at one time, which the requests that may be
 * outstanding bound, and EXPOSURE_KEYS_MAX: what drivers allocate for a memory region is charged
 * to nobody, and destinations with gaps, which may cover each other, have as many as they are long.
 *
 * Who pays: a process, when it fetches, for as many as its fetches can have at one time; they are
 * made later, by a kernel thread, which could charge nobody. How long a destination that the kernel
 * allocates will be is not known by then: it pays for one, what is made beyond that is owed, and
 * the next fetch pays. If it cannot, what is idle of that is freed.
 *
 * Each use has another key and other addresses: what a peer remembers of an earlier one leads
 * nowhere. Keys have eight bits for that, and return; addresses do after 2^61 bytes.
 */
#include <linux/atomic.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <rdma/mr_pool.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "memory/domain.h"
#include "memory/exposure.h"
#include "memory/registration.h"

/* Above all registrations' */
#define EXPOSURE_IOVA BIT_ULL(62)
#define EXPOSURE_SPACE BIT_ULL(61)
/* On soft-RoCE 128 MiB of the kernel's memory, for 32 GiB of destinations */
#define EXPOSURE_KEYS_MAX 16384U
/* Registrations in one chain: on the stack, as memory may be short where they are posted */
#define EXPOSURE_CHAIN 4

void rdmatensor_exposure_begin(struct rdmatensor_exposure *exposure,
			       struct rdmatensor_domain *domain, u64 offset, u64 bytes)
{
	u64 step = 1ULL << domain->seg_shift;
	u64 within = offset & (step - 1);
	u64 span = round_up(within + bytes, step);

	exposure->domain = domain;
	exposure->offset = offset;
	exposure->bytes = bytes;
	exposure->seg_shift = domain->seg_shift;
	exposure->first = 0;
	exposure->nr_rkeys = bytes ? span >> domain->seg_shift : 0;
	exposure->iova = EXPOSURE_IOVA + within +
			 ((atomic64_add_return(span, &domain->exposed) - span) &
			  (EXPOSURE_SPACE - 1));
	INIT_LIST_HEAD(&exposure->mrs);
	exposure->nr_mrs = 0;
	exposure->closing = false;
	exposure->at = &exposure->mrs;
	exposure->nr_registered = 0;
	exposure->nr_invalidated = 0;
	exposure->nr_open = 0;
	INIT_LIST_HEAD(&exposure->item);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exposure_begin);

/* Of the driver, some of which say -EAGAIN when they have no more: to callers that is "grow" */
static int exposure_error(int error)
{
	return error == -EAGAIN ? -ENOMEM : error;
}

/* Those of the domain are @nr, and paid for as long as it is there */
static int exposure_pay(struct rdmatensor_domain *domain, u32 nr)
{
	int ret;

	lockdep_assert_held(&domain->keys_lock);
	if (nr <= domain->keys_paid)
		return 0;
	ret = rdmatensor_quota_charge(&domain->keys, domain->ibdev, nr - domain->keys_paid);
	if (!ret)
		WRITE_ONCE(domain->keys_paid, nr);
	return ret;
}

/* Which has been idle the longest. NULL: none is */
static struct ib_mr *exposure_take_idle(struct ib_qp *qp)
{
	struct ib_mr *mr = ib_mr_pool_get(qp, &qp->rdma_mrs);

	if (!mr)
		return NULL;
	/* It does not come back */
	spin_lock_irq(&qp->mr_lock);
	qp->mrs_used--;
	spin_unlock_irq(&qp->mr_lock);
	return mr;
}

void rdmatensor_exposure_free_owed(struct rdmatensor_domain *domain)
{
	struct ib_mr *mr;

	lockdep_assert_held(&domain->keys_lock);
	while (rdmatensor_quota_owed(&domain->keys) && !fatal_signal_pending(current)) {
		/* Or one that the device could not make in the end */
		if (domain->keys_made == domain->keys_paid) {
			mr = exposure_take_idle(domain->qp);
			if (!mr)
				return;
			ib_dereg_mr(mr);
			domain->keys_made--;
		}
		WRITE_ONCE(domain->keys_paid, domain->keys_paid - 1);
		rdmatensor_quota_forgive(&domain->keys, 1);
		cond_resched();
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exposure_free_owed);

/* What kernel threads have made, so that there may be @nr: also if others are still owed */
static int exposure_settle(struct rdmatensor_domain *domain, u32 nr)
{
	u32 owed;
	int ret;

	lockdep_assert_held(&domain->keys_lock);
	ret = rdmatensor_quota_settle(&domain->keys, domain->ibdev);
	if (ret != -EDQUOT)
		return ret;
	rdmatensor_exposure_free_owed(domain);
	owed = rdmatensor_quota_owed(&domain->keys);
	return !owed || nr + owed <= domain->keys_paid ? 0 : ret;
}

/* With one more of @nr, there may be so many at one time */
static u32 exposure_keys_of_all(const struct rdmatensor_domain *domain, u32 nr, u64 sum, u32 most)
{
	u64 largest = max(READ_ONCE(domain->keys_most), nr);

	return min3(sum, largest * most, (u64)EXPOSURE_KEYS_MAX);
}

int rdmatensor_exposure_reserve(struct rdmatensor_domain *domain, u32 nr, u64 sum, u32 most)
{
	u32 all;
	int ret;

	might_sleep();
	/* Most fetches find them paid for, without the lock. What others free meanwhile is owed */
	if (!rdmatensor_quota_owed(&domain->keys) && nr <= READ_ONCE(domain->keys_most) &&
	    exposure_keys_of_all(domain, nr, sum, most) <= READ_ONCE(domain->keys_paid))
		return 0;
	mutex_lock(&domain->keys_lock);
	all = exposure_keys_of_all(domain, nr, sum, most);
	ret = exposure_settle(domain, all) ?: exposure_pay(domain, all);
	if (!ret)
		WRITE_ONCE(domain->keys_most, max(domain->keys_most, nr));
	mutex_unlock(&domain->keys_lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exposure_reserve);

static struct ib_mr *exposure_alloc_mr(struct rdmatensor_domain *domain)
{
	struct ib_mr *mr;
	int ret;

	lockdep_assert_held(&domain->keys_lock);
	if (domain->keys_made >= EXPOSURE_KEYS_MAX)
		return ERR_PTR(-EDQUOT);
	ret = exposure_pay(domain, domain->keys_made + 1);
	if (ret)
		return ERR_PTR(ret);
	mr = rdmatensor_should_fail() ? ERR_PTR(-ENOMEM) :
	     ib_alloc_mr(domain->pd, IB_MR_TYPE_MEM_REG,
			 1U << (domain->seg_shift - PAGE_SHIFT));
	if (IS_ERR(mr))
		return ERR_PTR(exposure_error(PTR_ERR(mr)));
	domain->keys_made++;
	return mr;
}

int rdmatensor_exposure_grow(struct rdmatensor_domain *domain)
{
	struct ib_qp *qp = domain->qp;
	struct ib_mr *mr;

	might_sleep();
	mutex_lock(&domain->keys_lock);
	mr = exposure_alloc_mr(domain);
	mutex_unlock(&domain->keys_lock);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	/* As ib_mr_pool_init() does, which on error would free those that are there already */
	spin_lock_irq(&qp->mr_lock);
	list_add(&mr->qp_entry, &qp->rdma_mrs);
	spin_unlock_irq(&qp->mr_lock);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exposure_grow);

/* Under the address at which the peer writes, and no longer under its last key */
static int exposure_map(struct ib_mr *mr, const struct rdmatensor_registration *reg,
			u64 offset, u32 bytes, u64 iova, gfp_t gfp)
{
	struct sg_table sgt;
	int ret, mapped;

	ret = rdmatensor_registration_slice(reg, offset, bytes, gfp, &sgt);
	if (ret)
		return ret;
	mapped = rdmatensor_should_fail() ? -EINVAL :
		 ib_map_mr_sg(mr, sgt.sgl, sgt.nents, NULL, PAGE_SIZE);
	if (mapped != sgt.nents)
		ret = mapped < 0 ? mapped : -EIO;
	sg_free_table(&sgt);
	if (ret)
		return exposure_error(ret);
	mr->iova = iova;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return 0;
}

int rdmatensor_exposure_extend(struct rdmatensor_exposure *exposure,
			       const struct rdmatensor_registration *reg, gfp_t gfp)
{
	u64 step = 1ULL << exposure->seg_shift;
	u64 begin = round_down(exposure->offset, step) + exposure->nr_mrs * step;
	u64 from = max(begin, exposure->offset);
	u64 to = min(begin + step, exposure->offset + exposure->bytes);
	struct ib_qp *qp = exposure->domain->qp;
	struct ib_mr *mr;
	int ret;

	mr = ib_mr_pool_get(qp, &qp->rdma_mrs);
	if (!mr)
		return -EAGAIN;
	ret = exposure_map(mr, reg, from, to - from,
			   exposure->iova + (from - exposure->offset), gfp);
	if (ret) {
		ib_mr_pool_put(qp, &qp->rdma_mrs, mr);
		return ret;
	}
	list_add_tail(&mr->qp_entry, &exposure->mrs);
	exposure->nr_mrs++;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exposure_extend);

struct ib_mr *rdmatensor_exposure_next(const struct rdmatensor_exposure *exposure)
{
	u32 done = exposure->closing ? exposure->nr_invalidated : exposure->nr_registered;
	u32 all = exposure->closing ? exposure->nr_registered : exposure->nr_mrs;

	return done < all ? list_entry(exposure->at->next, struct ib_mr, qp_entry) : NULL;
}

void rdmatensor_exposure_posted(struct rdmatensor_exposure *exposure)
{
	exposure->at = exposure->at->next;
	if (exposure->closing) {
		exposure->nr_invalidated++;
	} else {
		exposure->nr_registered++;
		exposure->nr_open++;
	}
}

int rdmatensor_exposure_register(struct rdmatensor_exposure *exposure)
{
	struct ib_reg_wr wrs[EXPOSURE_CHAIN];
	u32 most = min_t(u32, ARRAY_SIZE(wrs), rdmatensor_domain_depth(exposure->domain)), nr;
	struct ib_mr *mr;
	int ret = 0;

	might_sleep();
	while (!ret && rdmatensor_exposure_next(exposure)) {
		for (nr = 0; nr < most; nr++) {
			mr = rdmatensor_exposure_next(exposure);
			if (!mr)
				break;
			wrs[nr] = (struct ib_reg_wr) {
				.mr = mr,
				.key = mr->rkey,
				.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
			};
			rdmatensor_exposure_posted(exposure);
		}
		ret = rdmatensor_domain_post(exposure->domain, wrs, nr);
	}
	return ret;
}

void rdmatensor_exposure_close(struct rdmatensor_exposure *exposure)
{
	exposure->closing = true;
	exposure->at = &exposure->mrs;
}

/*
 * Behind all others, so that it rests while there are any: a device in software may still be at
 * a packet for which it has looked the key up. ib_mr_pool_put() would put it before them; to
 * move it after that is too late, as a SUBMIT, which has no lock, may have got it since
 */
static void exposure_put(struct ib_qp *qp, struct ib_mr *mr)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->mr_lock, flags);
	list_add_tail(&mr->qp_entry, &qp->rdma_mrs);
	qp->mrs_used--;
	spin_unlock_irqrestore(&qp->mr_lock, flags);
}

void rdmatensor_exposure_end(struct rdmatensor_exposure *exposure)
{
	struct ib_qp *qp = exposure->domain->qp;
	struct ib_mr *mr, *next;

	list_for_each_entry_safe(mr, next, &exposure->mrs, qp_entry) {
		list_del(&mr->qp_entry);
		/*
		 * Soft-RoCE looks a key up for the first packet of a write only, and the range
		 * for each
		 */
		mr->length = 0;
		exposure_put(qp, mr);
	}
	list_del_init(&exposure->item);
	exposure->nr_mrs = 0;
	exposure->nr_open = 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exposure_end);
