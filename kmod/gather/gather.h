/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gathers: rows of a table, by batched RDMA READs.
 *
 * Room gather: exported rows, tables over the rows of many workers, the plan of READs and
 * the gathers that carry it out. It calls fetch for the common part of an operation,
 * transport for READ lanes and messages, memory and core. Context and api call it.
 */
#ifndef RDMATENSOR_GATHER_H
#define RDMATENSOR_GATHER_H

#include "fetch/operation.h"
#include "gather/table.h"

/**
 * struct rdmatensor_gathers - what all gathers of one context share
 * @wait: lists that are done, lanes that come and go, gathers that are to stop
 * @wq: one work item a gather
 * @end_wq: those that stop before their turn
 * @restore_wq: lanes that are connected again, which may take long: for readers
 * @core: the context's
 * @lanes: START's gather_lanes
 * @cq_mod: START's
 * @queue_depth: of a lane
 * @connect_ms: bound on connecting a lane again
 */
struct rdmatensor_gathers {
	wait_queue_head_t wait;
	struct workqueue_struct *wq;
	struct workqueue_struct *end_wq;
	struct workqueue_struct *restore_wq;
	struct rdmatensor_core *core;
	u8 lanes;
	u32 cq_mod;
	u32 queue_depth;
	u32 connect_ms;
};

/**
 * struct rdmatensor_gather_args - a checked GATHER operation
 * @user_data: for its entry
 * @pool: destination's; a reference is the gather's after success
 * @offset: of the destination in @pool
 * @bytes: length of the destination
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 * @table: a reference is the gather's after success
 * @ids_uptr: array in the caller's address space
 * @nr_ids: its length
 * @wide: ids of 64 bits, else of 32
 */
struct rdmatensor_gather_args {
	u64 user_data;
	struct rdmatensor_pool *pool;
	u64 offset;
	u64 bytes;
	u64 deadline_ns;
	struct rdmatensor_table *table;
	u64 ids_uptr;
	u64 nr_ids;
	bool wide;
};

/* Return: 0, -ENOMEM */
int rdmatensor_gathers_init(struct rdmatensor_gathers *gathers,
			    struct rdmatensor_core *core);
/* All gathers have ended */
void rdmatensor_gathers_destroy(struct rdmatensor_gathers *gathers);

/**
 * rdmatensor_gather_submit - begin a gather
 *
 * @gathers: of the context
 * @args: checked
 *
 * In the process that submits, whose ids are copied before it returns. No lock held, as that
 * may take long.
 *
 * Return: 0: an entry will come, and the references of @args are the
 * gather's; -EAGAIN: the ring; -EINVAL: the destination; -EMSGSIZE: it is shorter than the
 * rows; -EOVERFLOW: a row takes more READs than a lane can queue; -ENOMEM; -EINTR: the
 * process is being killed.
 */
int rdmatensor_gather_submit(struct rdmatensor_gathers *gathers,
			     const struct rdmatensor_gather_args *args);

#endif /* RDMATENSOR_GATHER_H */
