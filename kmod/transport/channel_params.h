/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What START decides for the channels of a context, on its way to their queue pairs.
 */
#ifndef RDMATENSOR_CHANNEL_PARAMS_H
#define RDMATENSOR_CHANNEL_PARAMS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* A service level or traffic class that is not set: as the path was resolved */
#define RDMATENSOR_AS_RESOLVED (-1)

/**
 * struct rdmatensor_channel_params - START's values, as far as channels need them
 * @lanes: of a channel that this side connects
 * @connect_ms: bound on the set-up of a channel, in milliseconds
 * @queue_depth: work requests of the send queue; receives: rdmatensor_channel_recvs()
 * @timeout: local ack timeout, exponent
 * @retry_count: transport retries
 * @rnr_retry: receiver-not-ready retries
 * @sl: service level, or RDMATENSOR_AS_RESOLVED
 * @traffic_class: GRH traffic class, or RDMATENSOR_AS_RESOLVED
 * @msg_slots: own slots
 * @msg_slot_bytes: of each
 * @ack_batch: messages that an own ack acknowledges
 * @stripe_bytes: longest tensor that goes over one lane
 * @lane_bytes: most that a lane's limit may become while others wait
 * @max_requests: requests that may be outstanding, in each direction
 * @cancel_ms: bound on the answer to a CANCEL, in milliseconds
 * @probe_ms: quiet time after which the peer is probed, in milliseconds
 * @cq_poll: where completions are handled
 * @unlisted: peers are not told what is offered
 * @strict: each channel is in a domain of its own, in which peers reach single destinations
 *
 * The context owns them. They are constant from START on, and outlive its channels, which
 * point to them.
 */
struct rdmatensor_channel_params {
	u8 lanes;
	u32 connect_ms;
	u32 queue_depth;
	u8 timeout;
	u8 retry_count;
	u8 rnr_retry;
	s16 sl;
	s16 traffic_class;
	u32 msg_slots;
	u32 msg_slot_bytes;
	u32 ack_batch;
	u64 stripe_bytes;
	u32 lane_bytes;
	u32 max_requests;
	u32 cancel_ms;
	u32 probe_ms;
	enum ib_poll_context cq_poll;
	bool unlisted;
	bool strict;
};

#endif /* RDMATENSOR_CHANNEL_PARAMS_H */
