/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all lanes have in common: a queue pair on an rdma_cm id, with one completion queue
 * for both of its queues, over a path that the adapter and the parameters bound.
 */
#ifndef RDMATENSOR_QP_H
#define RDMATENSOR_QP_H

#include <rdma/rdma_cm.h>
#include "adapter.h"
#include "channel.h"

/**
 * rdmatensor_qp_set_path - bound the path that the queue pair will take
 * @id: its route is resolved
 * @adapter: MTU and, on InfiniBand, partition key
 * @params: service level, 0: as it was resolved; and ack timeout
 */
void rdmatensor_qp_set_path(struct rdma_cm_id *id, const struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_channel_params *params);

/* The same without the id */
void rdmatensor_qp_bound_path(struct sa_path_rec *path, const struct rdmatensor_adapter *adapter,
			      const struct rdmatensor_channel_params *params);

/* Where a channel begins: its lanes take this vector and those that follow */
u32 rdmatensor_qp_vectors(void);

/**
 * rdmatensor_qp_alloc - make the queue pair, and take its completions' places
 * @qp: zeroed, or freed
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

/* Drained before, if anything was posted. @qp has been made. Process context */
void rdmatensor_qp_free(struct rdmatensor_qp *qp, struct rdma_cm_id *id);

#endif /* RDMATENSOR_QP_H */
