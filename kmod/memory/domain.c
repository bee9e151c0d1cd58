// SPDX-License-Identifier: GPL-2.0
/*
 * The domain: protection domain, and the queue pair that makes registrations in it.
 *
 * A fast registration is a work request. The domain's queue pair carries nothing
 * else, but for the empty write of domain_drain(): no packet of it is for a peer,
 * no peer may write through it, and it is connected to itself because only a
 * connected queue pair takes work requests.
 *
 * Memory regions are prepared by their owner (registration.c). Under the lock they are posted
 * as one chain of which the last request alone is signalled. Requests of a queue pair complete
 * in order, so when the last has completed, well or not, none before it is in flight.
 *
 * The domain uses the device, so the last reference is put before the device is gone.
 *
 * Errors: a failed request takes the queue pair to the error state; what is registered stays
 * so, and the next registration connects the queue pair again first, or, unless it is a
 * channel's, makes another one. A device that goes, stalls, or reports the queue pair's failure,
 * may not complete what was posted: that is waited for in bounded time, and then given up with
 * -ENODEV, as is all that comes after it. A completion that is later than that finds the domain,
 * which ends behind its completion queue, and lets it register again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/iommu.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <rdma/ib_cache.h>
#include <rdma/mr_pool.h>
#include "core/fault.h"
#include "core/limits.h"
#include "memory/adapter.h"
#include "memory/domain.h"
#include "rdmatensor.h"

/* Registrations in one chain; more of them would not hide more latency */
#define DOMAIN_SQ_DEPTH 64
/* Far from what a process or a small number could be mistaken for */
#define DOMAIN_FIRST_IOVA BIT_ULL(46)
#define DOMAIN_LAST_IOVA BIT_ULL(62)

/*
 * How long a chain may take, of which nothing goes over a wire; then, on a device that goes, and
 * behind a chain that took longer or a command that failed; and how long flushing it
 */
#define DOMAIN_SILENCE_MS 30000
#define DOMAIN_PATIENCE_MS 2000
#define DOMAIN_FLUSH_MS 1000

static void domain_report(struct ib_cq *cq, const struct ib_wc *wc)
{
	/* What fails first says why, the others are flushed after it */
	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		pr_err_ratelimited("register memory on %s: %s (%d, vendor 0x%x); the call that asked for it fails, and can be tried again\n",
				   cq->device->name, ib_wc_status_msg(wc->status), wc->status,
				   wc->vendor_err);
}

/* Not signalled, so it comes here only if it failed */
static void domain_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	domain_report(cq, wc);
}

static struct ib_cqe domain_reg_cqe = { .done = domain_reg_done };

/* That of the context, which those of its channels are split from: the device's end and silence */
static struct rdmatensor_domain *domain_whole(struct rdmatensor_domain *domain)
{
	return domain->of ?: domain;
}

static wait_queue_head_t *domain_waiters(struct rdmatensor_domain *domain)
{
	return &domain_whole(domain)->wait;
}

static void domain_last_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_domain *domain = container_of(wc->wr_cqe, struct rdmatensor_domain,
							last_cqe);

	rdmatensor_hold("registered");
	domain_report(cq, wc);
	domain->status = wc->status;
	/* Pairs with domain_is_done() */
	smp_store_release(&domain->done, true);
	wake_up_all(domain_waiters(domain));
}

static bool domain_is_done(const struct rdmatensor_domain *domain)
{
	/* Pairs with domain_last_done() */
	return smp_load_acquire(&domain->done);
}

void rdmatensor_domain_qp_event(struct ib_event *event, void *context)
{
	struct rdmatensor_domain *domain = context;

	if (event->event != IB_EVENT_QP_FATAL && event->event != IB_EVENT_QP_REQ_ERR &&
	    event->event != IB_EVENT_QP_ACCESS_ERR)
		return;
	/* There are drivers (irdma's) that report of one when another has its place */
	if (event->element.qp != READ_ONCE(domain->qp))
		return;
	WRITE_ONCE(domain->doubtful, true);
	wake_up_all(domain_waiters(domain));
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_domain_qp_event);

/*
 * A GID that the port has now, beginning with @first: addresses come and go, and what comes back
 * may have another place in the table. Any does, as no packet leaves
 */
static const struct ib_gid_attr *domain_gid(struct rdmatensor_domain *domain, u32 port, int first)
{
	const struct ib_gid_attr *gid;
	int i, len;

	len = domain->ibdev->port_data[port].immutable.gid_tbl_len;
	gid = rdma_get_gid_attr(domain->ibdev, port, first);
	for (i = 0; IS_ERR(gid) && i < len; i++)
		gid = rdma_get_gid_attr(domain->ibdev, port, i);
	return gid;
}

/* The address of this port, as a destination */
static int domain_address(struct rdmatensor_domain *domain, struct rdma_ah_attr *ah)
{
	u32 port = domain->route.port_num;
	const struct ib_gid_attr *gid;
	int ret = 0;

	if (!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH))
		return 0;
	gid = domain_gid(domain, port, rdma_ah_read_grh(ah)->sgid_index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	rdma_ah_set_grh(ah, (union ib_gid *)&gid->gid, 0, gid->index, 1, 0);
	/* The port's own MAC address: nothing resolves addresses for a kernel queue pair */
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		ret = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
	rdma_put_gid_attr(gid);
	return ret;
}

/* Fills what the queue pair needs each time that it is connected */
static int domain_route(struct rdmatensor_domain *domain,
			const struct rdmatensor_adapter *adapter)
{
	struct ib_qp_attr *route = &domain->route;
	struct rdma_ah_attr *ah = &route->ah_attr;
	struct ib_port_attr port;
	int ret;

	ret = ib_query_port(domain->ibdev, adapter->port, &port);
	if (ret)
		return ret;
	route->port_num = adapter->port;
	route->pkey_index = adapter->pkey_index;
	route->path_mtu = adapter->mtu;
	route->timeout = 14;
	route->retry_cnt = 7;
	route->rnr_retry = 7;
	ah->type = rdma_ah_find_type(domain->ibdev, adapter->port);
	rdma_ah_set_port_num(ah, adapter->port);
	if (!adapter->roce)
		rdma_ah_set_dlid(ah, port.lid);
	if (rdma_is_grh_required(domain->ibdev, adapter->port))
		rdma_ah_set_grh(ah, (union ib_gid *)&adapter->gid, 0, adapter->gid_index, 1, 0);
	return 0;
}

static struct ib_qp *domain_make_qp(struct rdmatensor_domain *domain)
{
	struct ib_qp_init_attr attr = {
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = domain->cq,
		.recv_cq = domain->cq,
		.cap = {
			.max_send_wr = domain->sq_depth + 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.event_handler = rdmatensor_domain_qp_event,
		.qp_context = domain,
	};

	return ib_create_qp(domain->pd, &attr);
}

static int domain_connect(struct rdmatensor_domain *domain)
{
	struct ib_qp_attr attr = domain->route;
	int ret;

	attr.dest_qp_num = domain->qp->qp_num;
	/* What packet it would accept is not to be guessed */
	attr.rq_psn = get_random_u32() & 0xffffff;
	attr.sq_psn = attr.rq_psn;

	ret = domain_address(domain, &attr.ah_attr);
	if (ret)
		return ret;

	attr.qp_state = IB_QPS_INIT;
	ret = ib_modify_qp(domain->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;

	attr.qp_state = IB_QPS_RTR;
	ret = ib_modify_qp(domain->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;

	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(domain->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/*
 * There are drivers with no way back from the error state (irdma's): another queue pair takes the
 * place of the one on which nothing is in flight. What is registered is the protection domain's,
 * and stays so
 */
static int domain_replace(struct rdmatensor_domain *domain)
{
	struct ib_qp *former = domain->qp, *qp;
	int ret;

	qp = domain_make_qp(domain);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	WRITE_ONCE(domain->qp, qp);
	/* What was reported is of the former, and no more of that is heard */
	WRITE_ONCE(domain->doubtful, false);
	ret = rdmatensor_fault(-EIO) ?: domain_connect(domain);
	if (ret) {
		WRITE_ONCE(domain->qp, former);
		former = qp;
	}
	WARN_ON_ONCE(ib_destroy_qp(former));
	return ret;
}

/*
 * A work request that fails takes the queue pair with it. The device may have been
 * out of memory for a moment only, and the context still needs it: the queue
 * pair, on which nothing is in flight, starts again, or another one does. A channel's is not
 * replaced: its idle keys are with it, and the channel ends by the error, which is -EIO
 */
static int domain_restore(struct rdmatensor_domain *domain)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	int ret;

	/* A removal waits for this, and a device that is gone takes its time for each command */
	if (rdmatensor_domain_ending(domain))
		return -ENODEV;
	/* Nothing of it is in flight, whatever state it is in */
	ret = ib_modify_qp(domain->qp, &attr, IB_QP_STATE);
	/* What was reported of it before */
	WRITE_ONCE(domain->doubtful, false);
	if (!ret)
		ret = rdmatensor_fault(-EIO) ?: domain_connect(domain);
	if (ret && !domain->of)
		ret = domain_replace(domain);
	domain->broken = ret;
	if (ret)
		pr_err_ratelimited("register memory on %s: the queue pair cannot be connected again: %pe; the call that asked for it fails, and can be tried again\n",
				   domain->ibdev->name, ERR_PTR(ret));
	return ret && domain->of ? -EIO : ret;
}

bool rdmatensor_domain_shared(const struct rdmatensor_mapped *mapped)
{
	return mapped->translated ? mapped->coherent && mapped->in_place : !mapped->need_sync;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_domain_shared);

static void domain_ask_platform(struct device *dma, dma_addr_t addr, struct page *page,
				struct rdmatensor_mapped *mapped)
{
	struct iommu_domain *translation = iommu_get_domain_for_dev(dma);

	/* Behind an IOMMU that lets addresses through, a device is mapped like without one */
	mapped->translated = translation && translation->type & __IOMMU_DOMAIN_PAGING;
	mapped->coherent = dev_is_dma_coherent(dma);
	mapped->in_place = mapped->translated &&
			   iommu_iova_to_phys(translation, addr) == page_to_phys(page);
	mapped->need_sync = dma_need_sync(dma, addr);
}

/*
 * Pools are written by a process and by peers with no moment at which somebody could sync
 * them, and they may be anywhere in memory. Tried with a page, as it is the platform that
 * decides on it: bounce buffers may be forced, and caches not be coherent
 */
const char *rdmatensor_domain_unfit(struct device *dma)
{
	struct rdmatensor_mapped mapped;
	const char *unfit = NULL;
	struct page *page;
	dma_addr_t addr;

	if (dma_addressing_limited(dma))
		return "addresses only a part of this host's memory";
	page = alloc_page(GFP_KERNEL);
	if (!page)
		return ERR_PTR(-ENOMEM);
	addr = dma_map_page(dma, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dma, addr)) {
		unfit = "maps no memory";
	} else {
		domain_ask_platform(dma, addr, page, &mapped);
		if (!rdmatensor_domain_shared(&mapped))
			unfit = "is not coherent, or goes through bounce buffers";
		dma_unmap_page(dma, addr, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	__free_page(page);
	return unfit;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_domain_unfit);

/* Return: 0; -EOPNOTSUPP, -ENOMEM, with a line for the user */
static int domain_check_device(const struct rdmatensor_adapter *adapter, char *cause,
			       size_t room)
{
	struct ib_device *ibdev = adapter->ibdev;
	const char *unfit;

	/* A device in software works on the memory itself */
	unfit = rdmatensor_should_fail() ? "fails, as it was told to" :
		ib_uses_virt_dma(ibdev) ? NULL : rdmatensor_domain_unfit(ibdev->dma_device);
	if (!unfit)
		return 0;
	if (IS_ERR(unfit)) {
		snprintf(cause, room,
			 "START: %s/%u: to try how the device maps memory, could not allocate a page (%pe); try again when memory is free",
			 ibdev->name, adapter->port, unfit);
		return PTR_ERR(unfit);
	}
	snprintf(cause, room,
		 "START: %s/%u: the device %s, and pools would need copies that nobody makes; take another device, or boot without swiotlb=force and, for a device that does not reach all memory, with its IOMMU translating",
		 ibdev->name, adapter->port, unfit);
	return -EOPNOTSUPP;
}

/* Destinations are mapped with a lock held, and one driver waits for memory where it does that */
static int domain_check_strict(const struct ib_device *ibdev, bool strict, char *cause,
			       size_t room)
{
	if (!strict || ibdev->ops.driver_id != RDMA_DRIVER_HNS)
		return 0;
	snprintf(cause, room,
		 "START: mr_mode %u: the driver of %s waits for memory where it maps a destination, and cannot: use mr_mode %u",
		 RDMATENSOR_MR_MODE_STRICT, ibdev->name, RDMATENSOR_MR_MODE_POOL);
	return -EOPNOTSUPP;
}

/*
 * The protection domain and the queue pair, which is connected to itself; @step for the user.
 * @adapter: NULL: the route is known
 */
static int domain_open(struct rdmatensor_domain *domain, const struct rdmatensor_adapter *adapter,
		       const char **step)
{
	int ret;

	*step = "have a queue pair: raise hca_object in rdma.max of the RDMA cgroup";
	ret = rdmatensor_quota_charge(&domain->quota, domain->ibdev, 1);
	if (ret)
		return ret;

	*step = "make a protection domain";
	domain->pd = ib_alloc_pd(domain->ibdev, 0);
	if (IS_ERR(domain->pd)) {
		ret = PTR_ERR(domain->pd);
		goto out_uncharge;
	}

	*step = "make a completion queue";
	domain->cq = ib_alloc_cq_any(domain->ibdev, domain, domain->sq_depth + 1,
				     IB_POLL_WORKQUEUE);
	if (IS_ERR(domain->cq)) {
		ret = PTR_ERR(domain->cq);
		goto out_dealloc_pd;
	}

	*step = "make a queue pair";
	domain->qp = domain_make_qp(domain);
	if (IS_ERR(domain->qp)) {
		ret = PTR_ERR(domain->qp);
		goto out_free_cq;
	}

	*step = "connect a queue pair to itself";
	ret = adapter ? domain_route(domain, adapter) : 0;
	ret = ret ?: domain_connect(domain);
	if (ret)
		goto out_destroy_qp;
	return 0;

out_destroy_qp:
	ib_destroy_qp(domain->qp);
out_free_cq:
	ib_free_cq(domain->cq);
out_dealloc_pd:
	ib_dealloc_pd(domain->pd);
out_uncharge:
	rdmatensor_quota_uncharge(&domain->quota);
	return ret;
}

static struct rdmatensor_domain *domain_new(void)
{
	struct rdmatensor_domain *domain = kzalloc(sizeof(*domain), RDMATENSOR_GFP_SPARING);

	if (!domain)
		return NULL;
	kref_init(&domain->ref);
	mutex_init(&domain->lock);
	mutex_init(&domain->keys_lock);
	init_waitqueue_head(&domain->wait);
	rdmatensor_quota_init(&domain->quota);
	rdmatensor_quota_init(&domain->keys);
	domain->next_iova = DOMAIN_FIRST_IOVA;
	return domain;
}

static void domain_free(struct rdmatensor_domain *domain)
{
	mutex_destroy(&domain->keys_lock);
	mutex_destroy(&domain->lock);
	kfree(domain);
}

struct rdmatensor_domain *rdmatensor_domain_create(struct rdmatensor_adapter *adapter,
						   u32 mr_page_bytes, bool strict, char *cause,
						   size_t room)
{
	struct ib_device *ibdev = adapter->ibdev;
	struct rdmatensor_domain *domain;
	const char *step = "allocate memory";
	int ret;

	might_sleep();
	ret = domain_check_device(adapter, cause, room) ?:
	      domain_check_strict(ibdev, strict, cause, room);
	if (ret)
		return ERR_PTR(ret);
	domain = domain_new();
	if (!domain) {
		ret = -ENOMEM;
		goto out_cause;
	}
	domain->ibdev = ibdev;
	domain->seg_shift = adapter->seg_shift;
	domain->seg_shift_max = adapter->seg_shift_max;
	domain->page_shift_max = max_t(u8, ilog2(mr_page_bytes), PAGE_SHIFT);
	domain->strict = strict;
	/* One entry, and its completion, are the drain's */
	domain->sq_depth = clamp(min(ibdev->attrs.max_qp_wr, ibdev->attrs.max_cqe) - 1, 1,
				 DOMAIN_SQ_DEPTH);
	ret = domain_open(domain, adapter, &step);
	if (ret)
		goto out_free_domain;
	return domain;

out_free_domain:
	domain_free(domain);
out_cause:
	snprintf(cause, room,
		 "START: %s/%u: to register memory, could not %s (%pe); see 'rdma resource' for what is used up and the kernel log",
		 ibdev->name, adapter->port, step, ERR_PTR(ret));
	return ERR_PTR(ret);
}

struct rdmatensor_domain *rdmatensor_domain_split(struct rdmatensor_domain *of)
{
	struct rdmatensor_domain *domain;
	const char *step;
	int ret;

	might_sleep();
	domain = domain_new();
	if (!domain)
		return ERR_PTR(-ENOMEM);
	kref_get(&of->ref);
	domain->of = of;
	domain->ibdev = of->ibdev;
	domain->seg_shift = of->seg_shift;
	domain->seg_shift_max = of->seg_shift_max;
	domain->page_shift_max = of->page_shift_max;
	domain->strict = true;
	/*
	 * Soft-RoCE executes what is registered behind a packet that it sends again once more,
	 * finds the key in use, and ends the queue pair. The registration queue sends no packets
	 */
	domain->apart = of->ibdev->ops.driver_id == RDMA_DRIVER_RXE;
	domain->route = of->route;
	domain->sq_depth = of->sq_depth;
	ret = rdmatensor_fault(-ENOMEM) ?: domain_open(domain, NULL, &step);
	if (ret) {
		domain_free(domain);
		rdmatensor_domain_put(of);
		return ERR_PTR(ret);
	}
	return domain;
}

/* Every registration has been waited for, so the queue pair is idle, or the device has failed */
static void domain_release(struct kref *ref)
{
	struct rdmatensor_domain *domain = container_of(ref, struct rdmatensor_domain, ref);
	struct rdmatensor_domain *of = domain->of;

	ib_mr_pool_destroy(domain->qp, &domain->qp->rdma_mrs);
	ib_destroy_qp(domain->qp);
	ib_free_cq(domain->cq);
	ib_dealloc_pd(domain->pd);
	rdmatensor_quota_uncharge(&domain->keys);
	rdmatensor_quota_uncharge(&domain->quota);
	domain_free(domain);
	if (of)
		rdmatensor_domain_put(of);
}

void rdmatensor_domain_put(struct rdmatensor_domain *domain)
{
	might_sleep();
	kref_put(&domain->ref, domain_release);
}

void rdmatensor_domain_end(struct rdmatensor_domain *domain)
{
	WRITE_ONCE(domain->ending, true);
	wake_up_all(&domain->wait);
}

u64 rdmatensor_domain_iova(struct rdmatensor_domain *domain, u64 bytes, u8 seg_shift)
{
	u64 step = 1ULL << seg_shift;
	u64 iova;

	mutex_lock(&domain->lock);
	iova = round_up(domain->next_iova, step);
	if (iova <= DOMAIN_LAST_IOVA && bytes <= DOMAIN_LAST_IOVA - iova)
		/* With an unused range between two */
		domain->next_iova = iova + round_up(bytes, step) + step;
	else
		iova = 0;
	mutex_unlock(&domain->lock);
	return iova;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_domain_iova);

u8 rdmatensor_domain_pages(const struct rdmatensor_domain *domain, u8 page_shift, u8 *seg_shift)
{
	u64 sizes = domain->ibdev->attrs.page_size_cap;
	u8 longest = min(page_shift, domain->page_shift_max), seg;

	sizes &= GENMASK_ULL(longest, PAGE_SHIFT);
	longest = sizes ? fls64(sizes) - 1 : PAGE_SHIFT;
	/* As many of them as the device takes of the CPU's */
	seg = min_t(u8, domain->seg_shift + longest - PAGE_SHIFT, domain->seg_shift_max);
	if (seg <= max(longest, domain->seg_shift)) {
		*seg_shift = domain->seg_shift;
		return PAGE_SHIFT;
	}
	*seg_shift = seg;
	return longest;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_domain_pages);

static void domain_give_up(struct rdmatensor_domain *domain)
{
	domain->dead = true;
	pr_err_ratelimited("register memory on %s: the device has failed or goes, and does not complete what was posted: the call that asked for it fails, as do others until it does; start a new context when the device is back\n",
			   domain->ibdev->name);
}

/*
 * Others wait for this one, and some of them cannot be killed; and those that connect to others
 * would do so for each of their channels. They shall not wait as long each
 *
 * @refuses: the device does not do what it is told
 *
 * Return: 0: the chain has completed, well or not; -ENODEV: it has not, and is dead
 */
static int domain_await(struct rdmatensor_domain *domain, bool refuses)
{
	struct rdmatensor_domain *whole = domain_whole(domain);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	wait_queue_head_t *waiters = domain_waiters(domain);
	bool done;

	wait_event_timeout(*waiters, domain_is_done(domain) || READ_ONCE(domain->doubtful) ||
			   rdmatensor_domain_ending(domain),
			   msecs_to_jiffies(refuses || READ_ONCE(whole->silent) ?
					    DOMAIN_PATIENCE_MS : DOMAIN_SILENCE_MS));
	done = wait_event_timeout(*waiters, domain_is_done(domain),
				  msecs_to_jiffies(DOMAIN_PATIENCE_MS));
	/* One that has failed is no word about the device */
	if (done || !READ_ONCE(domain->doubtful))
		WRITE_ONCE(whole->silent, !done);
	if (done)
		return 0;
	/* There are drivers that flush only what they are told to, and such as cannot any more */
	domain->broken = true;
	ib_modify_qp(domain->qp, &attr, IB_QP_STATE);
	if (wait_event_timeout(*waiters, domain_is_done(domain),
			       msecs_to_jiffies(DOMAIN_FLUSH_MS)))
		return 0;
	domain_give_up(domain);
	return -ENODEV;
}

/*
 * A part of a chain has been posted, and not the request that would tell of its end: an empty write
 * does, on a queue pair that flushes, and on one that could not be told to and works on. Bounded as
 * the wait for a chain is, which ib_drain_sq() is not, and shorter where the device does not do
 * what it is told: it is most likely gone
 */
static void domain_drain(struct rdmatensor_domain *domain)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_rdma_wr last = {
		.wr = {
			.wr_cqe = &domain->last_cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	bool refuses = ib_modify_qp(domain->qp, &attr, IB_QP_STATE);

	if (ib_post_send(domain->qp, &last.wr, NULL))
		domain_give_up(domain);
	else
		domain_await(domain, refuses);
}

/* Posts @wrs, which is one chain, and waits until none of it is in flight */
static int domain_post(struct rdmatensor_domain *domain, struct ib_reg_wr *wrs, u32 nr)
{
	const struct ib_send_wr *refused = &wrs[0].wr;
	int ret;

	lockdep_assert_held(&domain->lock);
	/* What was given up has completed, and requests complete in order: none is in flight */
	if (domain->dead && domain_is_done(domain))
		domain->dead = false;
	if (domain->dead)
		return -ENODEV;
	if (domain->broken) {
		ret = domain_restore(domain);
		if (ret)
			return ret;
	}

	domain->done = false;
	domain->last_cqe.done = domain_last_done;
	wrs[nr - 1].wr.wr_cqe = &domain->last_cqe;
	wrs[nr - 1].wr.send_flags = IB_SEND_SIGNALED;

	ret = rdmatensor_fault(-ENOMEM) ?: ib_post_send(domain->qp, &wrs[0].wr, &refused);
	if (ret) {
		pr_err_ratelimited("register memory on %s: posting failed: %pe; the call that asked for it fails, and can be tried again\n",
				   domain->ibdev->name, ERR_PTR(ret));
		if (refused != &wrs[0].wr)
			domain_drain(domain);
		goto out_break;
	}
	ret = domain_await(domain, false);
	if (ret)
		return ret;
	ret = domain->status == IB_WC_SUCCESS ? rdmatensor_fault(-EIO) : -EIO;
	if (ret)
		goto out_break;
	/* Reported before that completion or after it: nobody can tell, and the next use would */
	if (READ_ONCE(domain->doubtful))
		domain->broken = true;
	return 0;

out_break:
	domain->broken = true;
	return ret;
}

int rdmatensor_domain_post(struct rdmatensor_domain *domain, struct ib_reg_wr *wrs, u32 nr)
{
	int ret;
	u32 i;

	might_sleep();
	for (i = 0; i < nr; i++) {
		wrs[i].wr.opcode = IB_WR_REG_MR;
		wrs[i].wr.wr_cqe = &domain_reg_cqe;
		wrs[i].wr.next = i + 1 < nr ? &wrs[i + 1].wr : NULL;
	}
	mutex_lock(&domain->lock);
	ret = domain_post(domain, wrs, nr);
	mutex_unlock(&domain->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_domain_post);
