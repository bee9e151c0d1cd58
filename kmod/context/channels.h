/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The channels of a context.
 */
#ifndef RDMATENSOR_CHANNELS_H
#define RDMATENSOR_CHANNELS_H

#include "context/context.h"

/* What the listener calls: accepts channels, and read lanes of channels */
extern const struct rdmatensor_cm_ops rdmatensor_context_cm_ops;

/* A channel by its id, held for the caller to put; NULL: none */
struct rdmatensor_channel *rdmatensor_context_channel(struct rdmatensor_context *context,
						      u32 id);
/* The next channel after *@id, which is set to its id; held for the caller to put. NULL: none */
struct rdmatensor_channel *rdmatensor_context_next_channel(struct rdmatensor_context *context,
							   unsigned long *id);

/**
 * rdmatensor_context_channel_add - a channel in the table, with its message buffer
 * @context: started
 * @connect: CONNECT's argument; NULL: the peer connects the channel
 * @timeout_ms: bound on the set-up, in milliseconds
 * @lanes: of the channel
 * @nonce: common to the lanes
 * @peer: address
 *
 * With device_use, or in the listener's handler.
 *
 * Return: a channel with one more reference for the caller; ERR_PTR(-EUSERS): there are
 * max_channels; ERR_PTR(-EAGAIN): the ring is full; ERR_PTR(-ENOMEM).
 */
struct rdmatensor_channel *
rdmatensor_context_channel_add(struct rdmatensor_context *context,
			       const struct rdmatensor_connect *connect, u32 timeout_ms,
			       u8 lanes, u64 nonce, const struct sockaddr *peer);

/* How channels are ended: rdmatensor_channel_leave() or rdmatensor_channel_fail() */
typedef void rdmatensor_channel_end_fn(struct rdmatensor_channel *channel, int error,
				       const char *text);

/* Ends all channels by @end, with @error and @text. Process context */
void rdmatensor_context_end_channels(struct rdmatensor_context *context,
				     rdmatensor_channel_end_fn *end, int error,
				     const char *text);
/* Waits until all channels, which are ending, are gone. Process context */
void rdmatensor_context_wait_channels(struct rdmatensor_context *context);

#endif /* RDMATENSOR_CHANNELS_H */
