/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all lanes have in common: a queue pair that rdma_cm connects, with one completion
 * queue for both of its queues, over a path that the adapter and the parameters bound.
 */
#ifndef RDMATENSOR_QP_H
#define RDMATENSOR_QP_H

#include <rdma/rdma_cm.h>
#include "core/wire.h"
#include "memory/adapter.h"
#include "transport/channel_params.h"

/**
 * struct rdmatensor_qp_attr - a queue pair, as the device has it
 * @qpn: its number
 * @mtu: path MTU in bytes
 * @send_depth: entries of the send queue
 * @recv_depth: entries of the receive queue
 * @timeout: ack timeout is 4.096 us << it
 * @retry_count: transport retries
 * @rnr_retry: receiver-not-ready retries
 * @sl: service level
 * @traffic_class: GRH traffic class
 * @comp_vector: of its completion queue
 * @reads_in: READs of the peer that it answers at the same time
 * @reads_out: READs that it has in flight at the same time
 */
struct rdmatensor_qp_attr {
	u32 qpn;
	u32 mtu;
	u32 send_depth;
	u32 recv_depth;
	u8 timeout;
	u8 retry_count;
	u8 rnr_retry;
	u8 sl;
	u8 traffic_class;
	u32 comp_vector;
	u8 reads_in;
	u8 reads_out;
};

/**
 * struct rdmatensor_qp - a queue pair and its completion queue
 * @qp: rdma_cm does not know of it; NULL: there is none
 * @cq: for both queues, from the device's pool
 * @nr_cqe: entries taken of it
 * @attr: valid with @queried (release/acquire)
 * @queried: the device has been asked
 */
struct rdmatensor_qp {
	struct ib_qp *qp;
	struct ib_cq *cq;
	u32 nr_cqe;
	struct rdmatensor_qp_attr attr;
	bool queried;
};

/**
 * struct rdmatensor_qp_terms - what both sides of a connection have to keep to
 * @mtu: enum ib_mtu, the path's: the same at both ends
 * @reads_in: READs of the peer that this side answers at the same time
 * @reads_out: READs of this side that are in flight at the same time
 */
struct rdmatensor_qp_terms {
	u8 mtu;
	u8 reads_in;
	u8 reads_out;
};

/**
 * rdmatensor_qp_set_path - bound the path that the queue pair will take
 * @id: its route is resolved, or came with the peer's request
 * @adapter: MTU and, on InfiniBand, partition key
 * @params: service level and traffic class, or RDMATENSOR_AS_RESOLVED: as it was resolved,
 *          or came
 */
void rdmatensor_qp_set_path(struct rdma_cm_id *id, const struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_channel_params *params);

/* The same without the id */
void rdmatensor_qp_bound_path(struct sa_path_rec *path, const struct rdmatensor_adapter *adapter,
			      const struct rdmatensor_channel_params *params);

/* What this side takes: the path's MTU, and that many READs at most, if its device does */
void rdmatensor_qp_propose(struct rdmatensor_qp_terms *terms, const struct rdma_cm_id *id,
			   u8 reads_in, u8 reads_out);
/* The lesser of that and of the peer's request or answer, as rdma_cm reports it */
void rdmatensor_qp_agree(struct rdmatensor_qp_terms *terms, const struct rdma_conn_param *peer,
			 const struct rdmatensor_wire_private *private);
/* All of @param, for rdma_connect() and rdma_accept() */
void rdmatensor_qp_param(struct rdma_conn_param *param, const struct rdmatensor_qp *qp,
			 const struct rdmatensor_qp_terms *terms,
			 const struct rdmatensor_channel_params *params,
			 const struct rdmatensor_wire_private *private);
/* Of the attributes in @mask that rdma_cm proposes, those that this side or both have chosen */
void rdmatensor_qp_choose(struct ib_qp_attr *attr, int mask, const struct sa_path_rec *path,
			  const struct rdmatensor_qp_terms *terms,
			  const struct rdmatensor_channel_params *params);

/**
 * rdmatensor_qp_ready - take the queue pair to where it can receive and send
 * @qp: made
 * @id: the peer's request is accepted next, or its answer has come
 * @terms: agreed
 * @params: what holds for what this side sends
 *
 * In rdma_cm's handler. Return: 0, or what the device or rdma_cm returned.
 */
int rdmatensor_qp_ready(struct rdmatensor_qp *qp, struct rdma_cm_id *id,
			const struct rdmatensor_qp_terms *terms,
			const struct rdmatensor_channel_params *params);

/* Asks the device how the queue pair is set. May sleep. Return: 0, or what the device returned */
int rdmatensor_qp_query(const struct rdmatensor_qp *qp, struct rdmatensor_qp_attr *to);

/* Where a channel begins: its lanes take this vector and those that follow */
u32 rdmatensor_qp_vectors(void);

/**
 * rdmatensor_qp_alloc - make the queue pair, and take its completions' places
 * @qp: zeroed, or freed; in state INIT then
 * @id: bound to a device
 * @pd: the domain's
 * @attr: event handler, its context and the capacities are set, with one place in each queue
 *        for the drain; all else is set here
 * @poll: where completions are reported
 * @vector: whose processor takes the completions, modulo the device's number of them
 *
 * Process context. Return: 0, -EINVAL: the device has no completion queue of that size, or
 * what the device returned; @qp is as it was then.
 */
int rdmatensor_qp_alloc(struct rdmatensor_qp *qp, struct rdma_cm_id *id, struct ib_pd *pd,
			struct ib_qp_init_attr *attr, enum ib_poll_context poll, u32 vector);

/**
 * rdmatensor_qp_probe - post an empty write, which the peer's device answers by itself
 * @qp: can send, and has a place for it (RDMATENSOR_SENDQ_MORE)
 * @cqe: whose completion it is, in any case
 *
 * Any context. Return: 0, or what the device returned.
 */
int rdmatensor_qp_probe(const struct rdmatensor_qp *qp, struct ib_cqe *cqe);

/* Begins to end what is in flight, and notifies the peer. Process context */
void rdmatensor_qp_disconnect(struct rdmatensor_qp *qp, struct rdma_cm_id *id);

/* Drained before, if anything was posted. @qp has been made. Process context */
void rdmatensor_qp_free(struct rdmatensor_qp *qp);

#endif /* RDMATENSOR_QP_H */
