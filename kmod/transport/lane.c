// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: posting to and completions of one queue pair.
 *
 * Every work request is signalled, so a completion frees exactly one place. The
 * queues are sized by the channel's arithmetic, with one place more each for
 * the drain, and the probes' own. A failed completion ends the channel. So does a flushed one,
 * unless the channel is ending already: where the peer reached for what it may not, the
 * queue pair goes into error and nothing else reports it. The ib_cqe alone says what
 * a completion belongs to: of a failed one only wr_cqe, qp and status are valid.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kunit/visibility.h>
#include "core/fault.h"
#include "memory/exposure.h"
#include "transport/channel.h"
#include "transport/lane.h"
#include "transport/probe.h"

static void lane_report(struct rdmatensor_lane *lane, const struct ib_wc *wc,
			const char *operation)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR) {
		rdmatensor_channel_lane_flushed(lane);
		return;
	}

	pr_info_ratelimited("%s on lane %u of channel %u to '%s': %s (%d, vendor 0x%x); the channel ends, connect again\n",
			    operation, lane->index, lane->channel->id, lane->channel->worker,
			    ib_wc_status_msg(wc->status), wc->status, wc->vendor_err);
	rdmatensor_channel_fail(lane->channel, -ECONNRESET,
				wc->status == IB_WC_RETRY_EXC_ERR ?
				"the peer does not answer any more" :
				ib_wc_status_msg(wc->status));
}

/* As above, of what has a place in the send queue and nothing else to release */
static void lane_lost(struct rdmatensor_lane *lane, const struct ib_wc *wc,
		      const char *operation)
{
	lane_report(lane, wc, operation);
	rdmatensor_channel_tx_lost(lane);
}

static int lane_post_recvs(struct rdmatensor_lane *lane, u32 nr)
{
	struct ib_recv_wr wr = { .wr_cqe = &lane->recv_cqe };
	int ret = 0;

	while (nr-- && !ret)
		ret = rdmatensor_fault(-ENOMEM) ?: ib_post_recv(lane->conn.qp.qp, &wr, NULL);
	return ret;
}

/*
 * A receive in place of one that has completed; none once the queue pair may be drained, behind
 * whose last request nothing may be posted
 */
static int lane_receive_again(struct rdmatensor_lane *lane)
{
	struct rdmatensor_channel *channel = lane->channel;
	int ret = 0;

	spin_lock_bh(&channel->lock);
	if (!rdmatensor_channel_over(channel))
		ret = lane_post_recvs(lane, 1);
	spin_unlock_bh(&channel->lock);
	return ret;
}

void rdmatensor_lane_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_lane *lane = wc->qp->qp_context;
	struct rdmatensor_channel *channel = lane->channel;
	u32 imm;

	if (wc->status != IB_WC_SUCCESS) {
		lane_report(lane, wc, "receive");
		return;
	}
	if (wc->opcode != IB_WC_RECV_RDMA_WITH_IMM || !(wc->wc_flags & IB_WC_WITH_IMM)) {
		rdmatensor_channel_fail(channel, -EPROTO,
					"peer sent what is no write with immediate");
		return;
	}

	/* Before anything that this immediate leads to is acknowledged */
	if (lane_receive_again(lane)) {
		rdmatensor_channel_fail(channel, -ECONNRESET, "posting a receive failed");
		return;
	}

	imm = be32_to_cpu(wc->ex.imm_data);
	if (imm <= RDMATENSOR_INDEX_MAX)
		rdmatensor_channel_rx_content(channel, lane->index, imm, wc->byte_len);
	else if (lane->index)
		rdmatensor_channel_fail(channel, -EPROTO, "control immediate on a content lane");
	else if (imm == RDMATENSOR_IMM_MESSAGE)
		rdmatensor_channel_rx_message(channel, wc->byte_len);
	else
		rdmatensor_channel_rx_ack(channel);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lane_recv_done);

static void lane_message_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_lane *lane = wc->qp->qp_context;

	if (wc->status != IB_WC_SUCCESS)
		lane_lost(lane, wc, "write of a message");
	else
		rdmatensor_channel_tx_message(lane->channel);
}

static void lane_ack_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_lane *lane = wc->qp->qp_context;

	if (wc->status != IB_WC_SUCCESS)
		lane_lost(lane, wc, "write of an ack");
	else
		rdmatensor_channel_tx_ack(lane->channel);
}

static struct ib_cqe lane_ack_cqe = { .done = lane_ack_done };

static void lane_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_lane *lane = wc->qp->qp_context;

	if (wc->status != IB_WC_SUCCESS)
		lane_report(lane, wc, "probe");
	rdmatensor_channel_tx_probe(lane, wc->status == IB_WC_SUCCESS);
}

static struct ib_cqe lane_probe_cqe = { .done = lane_probe_done };

static void lane_part_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_part *part = container_of(wc->wr_cqe, struct rdmatensor_part, cqe);
	struct rdmatensor_lane *lane = wc->qp->qp_context;

	if (wc->status != IB_WC_SUCCESS)
		lane_report(lane, wc, "write of content");
	rdmatensor_channel_tx_part(lane, part, wc->status == IB_WC_SUCCESS);
}

static int lane_post_message(struct rdmatensor_lane *lane, u64 seq, u32 bytes)
{
	struct rdmatensor_channel *channel = lane->channel;
	u32 slot = (seq - 1) & (channel->peer_slots - 1);
	struct ib_sge sge;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &lane->send_cqe,
			.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.ex.imm_data = cpu_to_be32(RDMATENSOR_IMM_MESSAGE),
		},
		.remote_addr = channel->peer_msgbuf + (u64)slot * channel->peer_slot_bytes,
		.rkey = channel->peer_rkey,
	};

	rdmatensor_msgbuf_tx_sge(&channel->msgbuf, seq, bytes, &sge);
	return rdmatensor_fault(-ENOMEM) ?: ib_post_send(lane->conn.qp.qp, &wr.wr, NULL);
}

static int lane_post_ack(struct rdmatensor_lane *lane)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &lane_ack_cqe,
			.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(RDMATENSOR_IMM_ACK),
		},
	};

	return rdmatensor_fault(-ENOMEM) ?: ib_post_send(lane->conn.qp.qp, &wr.wr, NULL);
}

static int lane_post_probe(struct rdmatensor_lane *lane)
{
	return rdmatensor_qp_probe(&lane->conn.qp, &lane_probe_cqe);
}

static int lane_post_write(struct rdmatensor_lane *lane, struct rdmatensor_part *part,
			   struct ib_sge *sge, int nr_sge, u64 remote_addr, u32 rkey,
			   bool last)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &part->cqe,
			.opcode = last ? IB_WR_RDMA_WRITE_WITH_IMM : IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = nr_sge,
			.ex.imm_data = cpu_to_be32(part->write->index),
		},
		.remote_addr = nr_sge ? remote_addr : 0,
		.rkey = rkey,
	};

	part->cqe.done = lane_part_done;
	return rdmatensor_fault(-ENOMEM) ?: ib_post_send(lane->conn.qp.qp, &wr.wr, NULL);
}

static void lane_registration_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_lane *lane = wc->qp->qp_context;

	if (wc->status != IB_WC_SUCCESS)
		lane_lost(lane, wc, "registration of a destination");
	else
		rdmatensor_channel_tx_registration(lane->channel);
}

static struct ib_cqe lane_registration_cqe = { .done = lane_registration_done };

static int lane_post_registration(struct rdmatensor_lane *lane, struct ib_mr *mr)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &lane_registration_cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	return rdmatensor_fault(-ENOMEM) ?: ib_post_send(lane->conn.qp.qp, &wr.wr, NULL);
}

static void lane_invalidation_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_exposure *exposure =
		container_of(wc->wr_cqe, struct rdmatensor_exposure, cqe);
	struct rdmatensor_lane *lane = wc->qp->qp_context;

	/* One that failed leaves the key to the peer until the queue pairs are gone */
	if (wc->status != IB_WC_SUCCESS)
		lane_lost(lane, wc, "invalidation of a destination");
	else
		rdmatensor_channel_tx_invalidation(lane->channel, exposure);
}

static int lane_post_invalidation(struct rdmatensor_lane *lane,
				  struct rdmatensor_exposure *exposure, struct ib_mr *mr)
{
	struct ib_send_wr wr = {
		.wr_cqe = &exposure->cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = mr->rkey,
	};

	exposure->cqe.done = lane_invalidation_done;
	return rdmatensor_fault(-ENOMEM) ?: ib_post_send(lane->conn.qp.qp, &wr, NULL);
}

const struct rdmatensor_lane_ops rdmatensor_lane_verbs = {
	.post_message = lane_post_message,
	.post_ack = lane_post_ack,
	.post_probe = lane_post_probe,
	.post_write = lane_post_write,
	.post_registration = lane_post_registration,
	.post_invalidation = lane_post_invalidation,
};

static void lane_qp_event(struct ib_event *event, void *context)
{
	struct rdmatensor_lane *lane = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		rdma_notify(lane->conn.id, IB_EVENT_COMM_EST);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		break;
	default:
		pr_info_ratelimited("queue pair of lane %u of channel %u to '%s': event: %s; if it is an error, the channel ends by it\n",
				    lane->index, lane->channel->id, lane->channel->worker,
				    ib_event_msg(event->event));
		break;
	}
}

int rdmatensor_lane_open(struct rdmatensor_lane *lane, struct ib_pd *pd)
{
	struct rdmatensor_channel *channel = lane->channel;
	struct ib_qp_init_attr attr = {
		.event_handler = lane_qp_event,
		.qp_context = lane,
		.cap = {
			.max_send_sge = min_t(u32, lane->max_sge,
					      lane->conn.id->device->attrs.max_send_sge),
			.max_recv_sge = 1,
		},
	};
	int ret;

	lane->nr_recvs = rdmatensor_channel_recvs(channel->params, lane->index);
	attr.cap.max_send_wr = channel->params->queue_depth + RDMATENSOR_SENDQ_MORE;
	attr.cap.max_recv_wr = lane->nr_recvs + 1;
	ret = rdmatensor_qp_alloc(&lane->conn.qp, lane->conn.id, pd, &attr,
				  channel->params->cq_poll, channel->vector + lane->index);
	if (ret)
		return ret;

	/* A device may grant more than was asked for */
	lane->max_sge = min_t(u32, lane->max_sge, attr.cap.max_send_sge);
	lane->recv_cqe.done = rdmatensor_lane_recv_done;
	lane->send_cqe.done = lane_message_done;
	ret = lane_post_recvs(lane, lane->nr_recvs);
	if (ret)
		goto out_free_qp;
	return 0;

out_free_qp:
	/* Before those that were posted are flushed, which would report another cause */
	rdmatensor_channel_fail(channel, ret, "posting receives failed");
	ib_drain_qp(lane->conn.qp.qp);
	rdmatensor_qp_free(&lane->conn.qp);
	return ret;
}

void rdmatensor_lane_close(struct rdmatensor_lane *lane)
{
	if (!lane->conn.qp.qp)
		return;

	/* Nothing is posted any more, and each completion has freed its place */
	ib_drain_qp(lane->conn.qp.qp);
	WARN_ON_ONCE(lane->sendq_free != lane->channel->params->queue_depth || lane->probes);
	rdmatensor_qp_free(&lane->conn.qp);
}
