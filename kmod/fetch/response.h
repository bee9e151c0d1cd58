/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Responses: the sender's state machine of one fetch by a peer.
 */
#ifndef RDMATENSOR_RESPONSE_H
#define RDMATENSOR_RESPONSE_H

#include "core/core.h"
#include "transport/channel.h"

/* Allocates all responses that the peer may cause. May sleep. Return: 0, -ENOMEM */
int rdmatensor_response_alloc(struct rdmatensor_channel *channel);
/**
 * rdmatensor_response_message - process a TENSOR_REQUEST, TENSOR_RE_REQUEST or CANCEL
 * @channel: UP
 * @msg: decoded and checked; valid during the call
 * @seq: its number on the channel, from 1
 * @why: out: what was wrong, after an error
 *
 * In completion context.
 *
 * Return: 0, -EPROTO.
 */
int rdmatensor_response_message(struct rdmatensor_channel *channel,
				const struct rdmatensor_msg *msg, u64 seq,
				const char **why);
/* Ends those of a step that have a tensor and do not write it yet. Process context */
void rdmatensor_response_abort_step(struct rdmatensor_channel *channel, s64 step_id,
				    const struct rdmatensor_status *status);
/*
 * The channel is DOWN: what was not delivered is published again. Checksums
 * that are being computed end by themselves, on the core's workqueue.
 */
void rdmatensor_response_down(struct rdmatensor_channel *channel);

#endif /* RDMATENSOR_RESPONSE_H */
