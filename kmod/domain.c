// SPDX-License-Identifier: GPL-2.0
/*
 * The domain: protection domain, registrations, and the queue pair that makes
 * them.
 *
 * A fast registration is a work request, so the domain keeps one RC queue pair
 * connected to itself. It carries nothing but REG_MR; posting and waiting are
 * under the domain's lock, so its completion needs no matching. A registration
 * ends by freeing its MR: what keeps a peer from using a key until then is that
 * the queue pairs it could use it on are gone, or that it may.
 *
 * Segments belong to their pool or message buffer. A failed registration leaves
 * all of its segments as they were.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "adapter.h"
#include "domain.h"

#define DOMAIN_SENDQ 64
#define DOMAIN_TIMEOUT (10 * HZ)
/* Far from what user space or a small number could be mistaken for */
#define DOMAIN_FIRST_IOVA BIT_ULL(46)
#define DOMAIN_LAST_IOVA BIT_ULL(62)

struct domain_reg {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void domain_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct domain_reg *reg = container_of(wc->wr_cqe, struct domain_reg, cqe);

	reg->status = wc->status;
	complete(&reg->done);
}

static int domain_connect(struct rdmatensor_domain *domain,
			  struct rdmatensor_adapter *adapter)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = adapter->port,
		.qp_access_flags = 0,
	};
	struct ib_port_attr port;
	int ret;

	ret = ib_modify_qp(domain->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;

	ret = ib_query_port(domain->ibdev, adapter->port, &port);
	if (ret)
		return ret;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = adapter->mtu;
	attr.dest_qp_num = domain->qp->qp_num;
	attr.min_rnr_timer = 12;
	attr.ah_attr.type = rdma_ah_find_type(domain->ibdev, adapter->port);
	rdma_ah_set_port_num(&attr.ah_attr, adapter->port);
	if (adapter->roce) {
		const struct ib_gid_attr *gid;
		u8 mac[ETH_ALEN] = {};

		gid = rdma_get_gid_attr(domain->ibdev, adapter->port, adapter->gid_index);
		if (IS_ERR(gid))
			return PTR_ERR(gid);
		/* Its own address needs no resolution */
		ret = rdma_read_gid_l2_fields(gid, NULL, mac);
		if (ret) {
			rdma_put_gid_attr(gid);
			return ret;
		}
		rdma_ah_set_grh(&attr.ah_attr, &adapter->gid, 0, adapter->gid_index, 1, 0);
		memcpy(attr.ah_attr.roce.dmac, mac, ETH_ALEN);
		rdma_put_gid_attr(gid);
	} else {
		rdma_ah_set_dlid(&attr.ah_attr, port.lid);
	}
	ret = ib_modify_qp(domain->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	return ib_modify_qp(domain->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

struct rdmatensor_domain *rdmatensor_domain_create(struct rdmatensor_adapter *adapter,
						   char *cause, size_t room)
{
	struct ib_qp_init_attr attr = {
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = DOMAIN_SENDQ + 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct rdmatensor_domain *domain;
	const char *step = "allocate it";
	int ret;

	domain = kzalloc(sizeof(*domain), GFP_KERNEL_ACCOUNT);
	if (!domain) {
		ret = -ENOMEM;
		goto out_cause;
	}
	kref_init(&domain->ref);
	mutex_init(&domain->lock);
	domain->ibdev = adapter->ibdev;
	domain->seg_shift = adapter->seg_shift;
	domain->next_iova = DOMAIN_FIRST_IOVA;
	domain->sq_depth = DOMAIN_SENDQ;

	step = "make a protection domain";
	domain->pd = ib_alloc_pd(domain->ibdev, 0);
	if (IS_ERR(domain->pd)) {
		ret = PTR_ERR(domain->pd);
		goto out_free;
	}

	step = "make a completion queue";
	domain->cq = ib_alloc_cq_any(domain->ibdev, domain, DOMAIN_SENDQ + 3,
				     IB_POLL_WORKQUEUE);
	if (IS_ERR(domain->cq)) {
		ret = PTR_ERR(domain->cq);
		goto out_dealloc_pd;
	}

	step = "make the registration queue pair";
	attr.send_cq = domain->cq;
	attr.recv_cq = domain->cq;
	domain->qp = ib_create_qp(domain->pd, &attr);
	if (IS_ERR(domain->qp)) {
		ret = PTR_ERR(domain->qp);
		goto out_free_cq;
	}

	step = "connect the registration queue pair to itself";
	ret = domain_connect(domain, adapter);
	if (ret)
		goto out_destroy_qp;
	return domain;

out_destroy_qp:
	ib_destroy_qp(domain->qp);
out_free_cq:
	ib_free_cq(domain->cq);
out_dealloc_pd:
	ib_dealloc_pd(domain->pd);
out_free:
	mutex_destroy(&domain->lock);
	kfree(domain);
out_cause:
	snprintf(cause, room, "START: domain on %s: could not %s (%d); see the kernel log",
		 adapter->ibdev->name, step, ret);
	return ERR_PTR(ret);
}

static void domain_release(struct kref *ref)
{
	struct rdmatensor_domain *domain = container_of(ref, struct rdmatensor_domain, ref);

	ib_drain_qp(domain->qp);
	ib_destroy_qp(domain->qp);
	ib_free_cq(domain->cq);
	ib_dealloc_pd(domain->pd);
	mutex_destroy(&domain->lock);
	kfree(domain);
}

void rdmatensor_domain_put(struct rdmatensor_domain *domain)
{
	kref_put(&domain->ref, domain_release);
}

u64 rdmatensor_domain_iova(struct rdmatensor_domain *domain, u64 bytes)
{
	u64 iova, step = 1ULL << domain->seg_shift;

	mutex_lock(&domain->lock);
	iova = domain->next_iova;
	if (bytes > DOMAIN_LAST_IOVA - iova)
		iova = 0;
	else
		/* A segment of nobody's between two: running over an end hits no one */
		domain->next_iova = iova + round_up(bytes, step) + step;
	mutex_unlock(&domain->lock);
	return iova;
}

/* With the lock held. Return: 0, or why it is not registered */
static int domain_reg_one(struct rdmatensor_domain *domain,
			  struct rdmatensor_segment *segment, u64 iova, int access)
{
	struct domain_reg reg = { .cqe.done = domain_reg_done };
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &reg.cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.access = access,
	};
	int ret;

	segment->mr = ib_alloc_mr(domain->pd, IB_MR_TYPE_MEM_REG, segment->bytes >> PAGE_SHIFT);
	if (IS_ERR(segment->mr)) {
		ret = PTR_ERR(segment->mr);
		segment->mr = NULL;
		return ret;
	}

	segment->mapped = ib_dma_map_sg(domain->ibdev, segment->sgt.sgl,
					segment->sgt.orig_nents, DMA_BIDIRECTIONAL);
	if (!segment->mapped) {
		ret = -ENOMEM;
		goto out_dereg;
	}

	ret = ib_map_mr_sg(segment->mr, segment->sgt.sgl, segment->mapped, NULL, PAGE_SIZE);
	if (ret != segment->mapped) {
		ret = ret < 0 ? ret : -EINVAL;
		goto out_unmap;
	}
	/* The address is taken from here when the registration is posted */
	segment->mr->iova = iova;
	segment->iova = iova;

	init_completion(&reg.done);
	wr.mr = segment->mr;
	wr.key = segment->mr->rkey;
	ret = ib_post_send(domain->qp, &wr.wr, NULL);
	if (ret)
		goto out_unmap;
	/* The queue pair completes or flushes it; there is no third way */
	while (!wait_for_completion_timeout(&reg.done, DOMAIN_TIMEOUT))
		pr_warn_ratelimited("registration on %s has not completed for %d seconds\n",
				    domain->ibdev->name, DOMAIN_TIMEOUT / HZ);
	if (reg.status == IB_WC_SUCCESS)
		return 0;

	pr_err_ratelimited("registration of memory on %s failed: %s\n", domain->ibdev->name,
			   ib_wc_status_msg(reg.status));
	ret = -EIO;
out_unmap:
	ib_dma_unmap_sg(domain->ibdev, segment->sgt.sgl, segment->sgt.orig_nents,
			DMA_BIDIRECTIONAL);
	segment->mapped = 0;
out_dereg:
	ib_dereg_mr(segment->mr);
	segment->mr = NULL;
	return ret;
}

int rdmatensor_domain_register(struct rdmatensor_domain *domain,
			       struct rdmatensor_segment *segments, u32 nr, u64 iova,
			       int access)
{
	int ret = 0;
	u32 i;

	might_sleep();
	for (i = 0; i < nr; i++) {
		mutex_lock(&domain->lock);
		ret = domain_reg_one(domain, &segments[i],
				     iova + ((u64)i << domain->seg_shift), access);
		mutex_unlock(&domain->lock);
		if (ret) {
			rdmatensor_domain_unregister(domain, segments, i);
			break;
		}
	}
	return ret;
}

void rdmatensor_domain_unregister(struct rdmatensor_domain *domain,
				  struct rdmatensor_segment *segments, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct rdmatensor_segment *segment = &segments[i];

		if (!segment->mr)
			continue;
		ib_dereg_mr(segment->mr);
		segment->mr = NULL;
		ib_dma_unmap_sg(domain->ibdev, segment->sgt.sgl, segment->sgt.orig_nents,
				DMA_BIDIRECTIONAL);
		segment->mapped = 0;
	}
}
