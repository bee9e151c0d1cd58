/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dispatch: who a received message or content is for.
 */
#ifndef RDMATENSOR_DISPATCH_H
#define RDMATENSOR_DISPATCH_H

#include "transport/channel.h"

/**
 * rdmatensor_dispatch_message - hand a control message to its state machine
 * @channel: UP, or going down by now
 * @msg: decoded and checked; valid during the call
 * @seq: its number on the channel, from 1
 * @why: out: what was wrong, after an error
 *
 * In the order of arrival, in completion context: softirq or a workqueue.
 *
 * Return: 0, -EPROTO: the peer broke the protocol.
 */
int rdmatensor_dispatch_message(struct rdmatensor_channel *channel,
				const struct rdmatensor_msg *msg, u64 seq, const char **why);

/**
 * rdmatensor_dispatch_content - hand the end of a part of a content to its request
 * @channel: UP, or going down by now
 * @lane: on which the part came
 * @index: of the request
 * @bytes: of the write that carried the immediate
 * @why: out: what was wrong, after an error
 *
 * In completion context.
 *
 * Return: 0, -EPROTO: the peer broke the protocol.
 */
int rdmatensor_dispatch_content(struct rdmatensor_channel *channel, u8 lane, u32 index,
				u32 bytes, const char **why);

/* The channel is DOWN: ends what its messages have begun. Process context */
void rdmatensor_dispatch_down(struct rdmatensor_channel *channel);

#endif /* RDMATENSOR_DISPATCH_H */
