/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests: the receiver's state machine of one fetch from a peer.
 */
#ifndef RDMATENSOR_REQUEST_H
#define RDMATENSOR_REQUEST_H

#include "fetch/fetch.h"
#include "transport/channel.h"

/**
 * rdmatensor_request_submit - fetch from a channel's peer
 *
 * @channel: UP, or the call fails
 * @args: checked; the references of args->pool and args->proxy are taken over on success
 *
 * Process context.
 *
 * Return: 0: a completion entry will come; -EACCES: peers must not write to the pool, or to
 * that of the proxy if there is one;
 * -ENOTCONN: the channel is not UP; an error of
 * rdmatensor_fetch_init(); -ENOMEM.
 */
int rdmatensor_request_submit(struct rdmatensor_channel *channel,
			      const struct rdmatensor_fetch_args *args);

/* A META_DATA_RESPONSE or ERROR_STATUS. Completion context. Return: 0; -EPROTO, with @why */
int rdmatensor_request_message(struct rdmatensor_channel *channel,
			       const struct rdmatensor_msg *msg, const char **why);
/* The last write of a lane's part, of @bytes, has arrived. Return: as above */
int rdmatensor_request_content(struct rdmatensor_channel *channel, u8 lane, u32 index,
			       u32 bytes, const char **why);
/* The channel is DOWN: ends all of its requests with its error */
void rdmatensor_request_down(struct rdmatensor_channel *channel);

#endif /* RDMATENSOR_REQUEST_H */
