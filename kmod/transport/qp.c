// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of lanes.
 *
 * rdma_cm connects them, but they are not its own: it would take all of an accepted queue
 * pair from the request, and of a connecting one from the answer, before either side has
 * its say. What each side has chosen holds for what it sends (service level, traffic class,
 * timeout, retries); what both must have alike, or may not exceed at the other end, is the
 * lesser of both: path MTU and READs at the same time. The request carries what the
 * connecting side supports, the answer what holds.
 *
 * The completion queue is the device's, shared by all that take places in it; it is returned
 * after the queue pair that reports to it is gone. The core's pool makes one for each
 * of the device's vectors at a time, and each vector interrupts a processor of its own; so
 * channels begin at one vector after the other, and so do the lanes of each. Nothing is
 * posted or drained here: the lane does that, as it knows what is in flight.
 */
#include <kunit/visibility.h>
#include "core/fault.h"
#include "transport/qp.h"

/* What is not set stays as the path was resolved, by the subnet manager or the host */
void rdmatensor_qp_bound_path(struct sa_path_rec *path, const struct rdmatensor_adapter *adapter,
			      const struct rdmatensor_channel_params *params)
{
	path->mtu = min_t(u8, path->mtu, adapter->mtu);
	if (params->sl != RDMATENSOR_AS_RESOLVED)
		path->sl = params->sl;
	if (params->traffic_class != RDMATENSOR_AS_RESOLVED)
		path->traffic_class = params->traffic_class;
	if (!adapter->roce)
		path->pkey = cpu_to_be16(adapter->pkey);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_qp_bound_path);

void rdmatensor_qp_set_path(struct rdma_cm_id *id, const struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_channel_params *params)
{
	rdmatensor_qp_bound_path(id->route.path_rec, adapter, params);
}

void rdmatensor_qp_propose(struct rdmatensor_qp_terms *terms, const struct rdma_cm_id *id,
			   u8 reads_in, u8 reads_out)
{
	const struct ib_device_attr *attrs = &id->device->attrs;

	terms->mtu = id->route.path_rec->mtu;
	terms->reads_in = min_t(u32, attrs->max_qp_rd_atom, reads_in);
	terms->reads_out = min_t(u32, attrs->max_qp_init_rd_atom, reads_out);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_qp_propose);

void rdmatensor_qp_agree(struct rdmatensor_qp_terms *terms, const struct rdma_conn_param *peer,
			 const struct rdmatensor_wire_private *private)
{
	terms->mtu = min(terms->mtu, private->mtu);
	terms->reads_in = min(terms->reads_in, peer->responder_resources);
	terms->reads_out = min(terms->reads_out, peer->initiator_depth);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_qp_agree);

void rdmatensor_qp_param(struct rdma_conn_param *param, const struct rdmatensor_qp *qp,
			 const struct rdmatensor_qp_terms *terms,
			 const struct rdmatensor_channel_params *params,
			 const struct rdmatensor_wire_private *private)
{
	memset(param, 0, sizeof(*param));
	param->private_data = private;
	param->private_data_len = sizeof(*private);
	param->responder_resources = terms->reads_in;
	param->initiator_depth = terms->reads_out;
	param->retry_count = params->retry_count;
	param->rnr_retry_count = params->rnr_retry;
	param->qp_num = qp->qp->qp_num;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_qp_param);

void rdmatensor_qp_choose(struct ib_qp_attr *attr, int mask, const struct sa_path_rec *path,
			  const struct rdmatensor_qp_terms *terms,
			  const struct rdmatensor_channel_params *params)
{
	if (mask & IB_QP_AV) {
		rdma_ah_set_sl(&attr->ah_attr, path->sl);
		if (rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH)
			rdma_ah_retrieve_grh(&attr->ah_attr)->traffic_class =
				path->traffic_class;
	}
	if (mask & IB_QP_PATH_MTU)
		attr->path_mtu = terms->mtu;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = terms->reads_in;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr->max_rd_atomic = terms->reads_out;
	if (mask & IB_QP_TIMEOUT)
		attr->timeout = params->timeout;
	if (mask & IB_QP_RETRY_CNT)
		attr->retry_cnt = params->retry_count;
	if (mask & IB_QP_RNR_RETRY)
		attr->rnr_retry = params->rnr_retry;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_qp_choose);

static int qp_modify(struct ib_qp *qp, struct rdma_cm_id *id, enum ib_qp_state state,
		     const struct rdmatensor_qp_terms *terms,
		     const struct rdmatensor_channel_params *params)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	if (terms)
		rdmatensor_qp_choose(&attr, mask, id->route.path_rec, terms, params);
	return ib_modify_qp(qp, &attr, mask);
}

int rdmatensor_qp_ready(struct rdmatensor_qp *qp, struct rdma_cm_id *id,
			const struct rdmatensor_qp_terms *terms,
			const struct rdmatensor_channel_params *params)
{
	/* A request may say what is none, and not every driver looks */
	if (terms->mtu < IB_MTU_256 || terms->mtu > IB_MTU_4096)
		return -EPROTO;
	/* Once more to INIT: rdma_cm knows the peer now, and what it may reach */
	return rdmatensor_fault(-ENOMEM) ?:
	       qp_modify(qp->qp, id, IB_QPS_INIT, terms, params) ?:
	       qp_modify(qp->qp, id, IB_QPS_RTR, terms, params) ?:
	       qp_modify(qp->qp, id, IB_QPS_RTS, terms, params);
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
	struct ib_qp *made;
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
	attr->port_num = id->port_num;
	attr->send_cq = cq;
	attr->recv_cq = cq;
	ret = rdmatensor_fault(-ENOMEM);
	made = ret ? ERR_PTR(ret) : ib_create_qp(pd, attr);
	if (IS_ERR(made)) {
		ret = PTR_ERR(made);
		goto out_put_cq;
	}
	/* Receives can be posted from then on */
	ret = qp_modify(made, id, IB_QPS_INIT, NULL, NULL);
	if (ret)
		goto out_destroy_qp;
	qp->qp = made;
	qp->cq = cq;
	qp->nr_cqe = nr_cqe;
	return 0;

out_destroy_qp:
	ib_destroy_qp(made);
out_put_cq:
	ib_cq_pool_put(cq, nr_cqe);
	return ret;
}

int rdmatensor_qp_query(const struct rdmatensor_qp *qp, struct rdmatensor_qp_attr *to)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	int ret;

	ret = ib_query_qp(qp->qp, &attr,
			  IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			  IB_QP_RNR_RETRY | IB_QP_CAP | IB_QP_MAX_QP_RD_ATOMIC |
			  IB_QP_MAX_DEST_RD_ATOMIC, &init);
	if (ret)
		return ret;
	*to = (struct rdmatensor_qp_attr) {
		.qpn = qp->qp->qp_num,
		.mtu = ib_mtu_enum_to_int(attr.path_mtu),
		.comp_vector = qp->cq->comp_vector,
		.send_depth = attr.cap.max_send_wr,
		.recv_depth = attr.cap.max_recv_wr,
		.timeout = attr.timeout,
		.retry_count = attr.retry_cnt,
		.rnr_retry = attr.rnr_retry,
		.sl = rdma_ah_get_sl(&attr.ah_attr),
		.reads_in = attr.max_dest_rd_atomic,
		.reads_out = attr.max_rd_atomic,
	};
	if (rdma_ah_get_ah_flags(&attr.ah_attr) & IB_AH_GRH)
		to->traffic_class = rdma_ah_read_grh(&attr.ah_attr)->traffic_class;
	return 0;
}

int rdmatensor_qp_probe(const struct rdmatensor_qp *qp, struct ib_cqe *cqe)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	return rdmatensor_fault(-ENOMEM) ?: ib_post_send(qp->qp, &wr.wr, NULL);
}

void rdmatensor_qp_disconnect(struct rdmatensor_qp *qp, struct rdma_cm_id *id)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	/* All lanes stop at the same time, and are drained one by one: the drain tries again */
	ib_modify_qp(qp->qp, &attr, IB_QP_STATE);
	rdma_disconnect(id);
}

void rdmatensor_qp_free(struct rdmatensor_qp *qp)
{
	ib_destroy_qp(qp->qp);
	ib_cq_pool_put(qp->cq, qp->nr_cqe);
	qp->qp = NULL;
	qp->cq = NULL;
}
