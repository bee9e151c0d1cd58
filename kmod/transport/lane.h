/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lanes: the queue pairs of a channel, and what waits on each to be posted.
 *
 * The channel decides what is posted where and when (channel.c); a lane posts it and
 * reports what completes (lane.c).
 */
#ifndef RDMATENSOR_LANE_H
#define RDMATENSOR_LANE_H

/* 6.12's dynamic_queue_limits.h uses it, and does not include it */
#include <linux/jiffies.h>
#include <linux/dynamic_queue_limits.h>
#include "transport/conn.h"

struct rdmatensor_channel;
struct rdmatensor_exposure;
struct rdmatensor_write;

/* Entries of lane 0's send queue that only an ack may take */
#define RDMATENSOR_SENDQ_RESERVE 1

/**
 * struct rdmatensor_part - the part of a content that goes over one lane
 * @cqe: of its writes
 * @item: in one of the lane's queues while something of it is to be posted
 * @write: the content
 * @pos: next byte to post, from the tensor's start
 * @end: end of the part
 * @deficit: bytes that it may post in its turn
 * @posted: nothing more of it will be posted
 * @pending: posted writes that have not completed
 * @in_flight: what they count as, in bytes
 */
struct rdmatensor_part {
	struct ib_cqe cqe;
	struct list_head item;
	struct rdmatensor_write *write;
	u64 pos;
	u64 end;
	u32 deficit;
	bool posted;
	u32 pending;
	u32 in_flight;
};

/**
 * struct rdmatensor_lane - one queue pair of a channel
 * @channel: whose
 * @index: which, from 0
 * @conn: the connection, with the queue pair
 * @recv_cqe: of all receives
 * @send_cqe: of messages and acks
 * @sendq_free: send-queue entries that may be posted to, of queue_depth
 * @probes: of it in flight, which are not among those
 * @completes: something that was posted has completed since its probes were last thought of
 * @nr_recvs: receives that are kept posted
 * @max_sge: entries that a write may have
 * @fresh: parts of which nothing has been posted
 * @fresh_quota: bytes that those may post before the others go on; negative: what they owe
 * @hastened: parts of contents that the peer waits to be rid of, the shortest content's first
 * @writes: the other parts with something to post, which wait for those; the first one's turn is
 *          next, or now
 * @limit: of posted content bytes: as many as keep the wire busy
 * @completed: of those, bytes that have not been reported to @limit
 * @contended: jiffies at which the last one came that had to wait for what is posted
 */
struct rdmatensor_lane {
	struct rdmatensor_channel *channel;
	u8 index;
	struct rdmatensor_conn conn;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
	u32 sendq_free;
	u8 probes;
	bool completes;
	u32 nr_recvs;
	u8 max_sge;
	struct list_head fresh;
	s32 fresh_quota;
	struct list_head hastened;
	struct list_head writes;
	struct dql limit;
	u32 completed;
	unsigned long contended;
};

/**
 * struct rdmatensor_lane_ops - what a channel needs of a queue pair
 *
 * All are called with the channel's lock held, post one signalled work request
 * each, and return 0 or a negative errno. Completions are reported by
 * rdmatensor_channel_tx_message(), rdmatensor_channel_tx_ack(),
 * rdmatensor_channel_tx_probe(), rdmatensor_channel_tx_part(),
 * rdmatensor_channel_tx_registration() and rdmatensor_channel_tx_invalidation().
 *
 * @post_message: message number @seq of @bytes, which is in its tx slot, to the
 *                peer's slot of that number
 * @post_ack: an empty write with the ack's immediate
 * @post_probe: an empty write without immediate: the peer's device alone answers
 * @post_write: @sge to @remote_addr; @last: with the request index as immediate
 * @post_registration: of @mr, for the peer to write; what is posted later finds it registered
 * @post_invalidation: of @mr, one of @exposure's
 */
struct rdmatensor_lane_ops {
	int (*post_message)(struct rdmatensor_lane *lane, u64 seq, u32 bytes);
	int (*post_ack)(struct rdmatensor_lane *lane);
	int (*post_probe)(struct rdmatensor_lane *lane);
	int (*post_write)(struct rdmatensor_lane *lane, struct rdmatensor_part *part,
			  struct ib_sge *sge, int nr_sge, u64 remote_addr, u32 rkey,
			  bool last);
	int (*post_registration)(struct rdmatensor_lane *lane, struct ib_mr *mr);
	int (*post_invalidation)(struct rdmatensor_lane *lane,
				 struct rdmatensor_exposure *exposure, struct ib_mr *mr);
};

/* The verbs of a real queue pair */
extern const struct rdmatensor_lane_ops rdmatensor_lane_verbs;

/**
 * rdmatensor_lane_open - make the queue pair and post its receives
 * @lane: its connection's id is bound to a device
 * @pd: the domain's; in strict mode that of the channel's own domain
 *
 * Process context. Return: 0 or a negative errno, with nothing left behind.
 */
int rdmatensor_lane_open(struct rdmatensor_lane *lane, struct ib_pd *pd);

/**
 * rdmatensor_lane_close - end all that is in flight, and the queue pair
 * @lane: of a channel that is CLOSING
 *
 * When it returns every completion has been reported and the peer can write
 * nothing through this lane. Process context, bounded by the device. No-op on a lane
 * that was not opened.
 */
void rdmatensor_lane_close(struct rdmatensor_lane *lane);

/* A receive has completed; a completion's handler */
void rdmatensor_lane_recv_done(struct ib_cq *cq, struct ib_wc *wc);

#endif /* RDMATENSOR_LANE_H */
