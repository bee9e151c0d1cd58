// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of lanes.
 *
 * The completion queue is the device's, shared by whoever takes places in it; it is given
 * back after the queue pair that reports to it is gone. The core's pool makes one for each
 * of the device's vectors at a time, and each vector interrupts a processor of its own; so
 * channels begin at one vector after the other, and so do the lanes of each. Nothing is
 * posted here and nothing drained: that is the lane's, who knows what is under way.
 */
#include <kunit/visibility.h>
#include "fault.h"
#include "qp.h"

/* What nobody has chosen stays as the path was resolved: by the subnet's manager, or the host */
void rdmatensor_qp_bound_path(struct sa_path_rec *path, const struct rdmatensor_adapter *adapter,
			      const struct rdmatensor_channel_params *params)
{
	path->mtu = min_t(u8, path->mtu, adapter->mtu);
	if (params->sl)
		path->sl = params->sl;
	if (!adapter->roce)
		path->pkey = cpu_to_be16(adapter->pkey);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_qp_bound_path);

void rdmatensor_qp_set_path(struct rdma_cm_id *id, const struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_channel_params *params)
{
	rdmatensor_qp_bound_path(id->route.path_rec, adapter, params);
	rdma_set_ack_timeout(id, params->timeout);
}

u32 rdmatensor_qp_vectors(void)
{
	static atomic_t vector;

	/* Taken modulo the device's vectors, whose number is most often a power of two */
	return (u32)atomic_inc_return(&vector) & S16_MAX;
}

int rdmatensor_qp_alloc(struct rdmatensor_qp *qp, struct rdma_cm_id *id, struct ib_pd *pd,
			struct ib_qp_init_attr *attr, enum ib_poll_context poll, u32 vector)
{
	u32 nr_cqe = attr->cap.max_send_wr + attr->cap.max_recv_wr;
	struct ib_cq *cq;
	int ret;

	/* START has checked the depth; ib_cq_pool_get() never returns if it is too large */
	if (WARN_ON_ONCE(nr_cqe > id->device->attrs.max_cqe))
		return -EINVAL;
	cq = ib_cq_pool_get(id->device, nr_cqe, vector, poll);
	if (IS_ERR(cq))
		return PTR_ERR(cq);

	attr->sq_sig_type = IB_SIGNAL_REQ_WR;
	attr->qp_type = IB_QPT_RC;
	attr->send_cq = cq;
	attr->recv_cq = cq;
	ret = rdmatensor_fault(-ENOMEM) ?: rdma_create_qp(id, pd, attr);
	if (ret) {
		ib_cq_pool_put(cq, nr_cqe);
		return ret;
	}
	qp->cq = cq;
	qp->nr_cqe = nr_cqe;
	return 0;
}

void rdmatensor_qp_free(struct rdmatensor_qp *qp, struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	ib_cq_pool_put(qp->cq, qp->nr_cqe);
	qp->cq = NULL;
}
