/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lists: what a peer, or the context itself, offers under names that begin with a prefix, by LIST
 * and LIST_INFO.
 */
#ifndef RDMATENSOR_LISTING_H
#define RDMATENSOR_LISTING_H

#include "fetch/operation.h"
#include "transport/channel.h"

/**
 * struct rdmatensor_listing_args - a checked LIST operation
 * @user_data: for its entry
 * @prefix: not zero-terminated
 * @prefix_len: bytes of @prefix, 0..RDMATENSOR_NAME_MAX
 * @cursor: behind which it begins; 0: from the beginning
 * @pool: destination's; a reference is the operation's after success
 * @offset: of the destination in @pool, a multiple of 8
 * @bytes: length of the destination, not 0
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 */
struct rdmatensor_listing_args {
	u64 user_data;
	const char *prefix;
	u16 prefix_len;
	u64 cursor;
	struct rdmatensor_pool *pool;
	u64 offset;
	u64 bytes;
	u64 deadline_ns;
};

/* NULL: no memory */
struct rdmatensor_listings *rdmatensor_listings_alloc(struct rdmatensor_channel *channel);
/* The channel is DOWN: ends its lists, and forgets the peer's questions. Process context */
void rdmatensor_listing_down(struct rdmatensor_channel *channel);
/* Frees what rdmatensor_listings_alloc() returned; the channel is gone. No-op for NULL */
void rdmatensor_listings_free(struct rdmatensor_listings *listings);

/**
 * rdmatensor_listing_submit - ask a peer
 * @channel: to it
 * @args: checked
 *
 * Process context.
 *
 * Return: 0: an entry will come; -EAGAIN: the ring; -EINVAL: the destination; -EACCES: the pool is
 * read-only; -EOPNOTSUPP: the CPU cannot reach the pool, or the peer knows no lists; -ENOTCONN;
 * -ENOMEM.
 */
int rdmatensor_listing_submit(struct rdmatensor_channel *channel,
			      const struct rdmatensor_listing_args *args);

/* The same of what the context itself offers; the entry has come when it returns */
int rdmatensor_listing_local(struct rdmatensor_core *core,
			     const struct rdmatensor_listing_args *args);

/* LIST and LIST_INFO. Return: 0, or -EPROTO with @why */
int rdmatensor_listing_message(struct rdmatensor_channel *channel,
			       const struct rdmatensor_msg *msg, const char **why);

#endif /* RDMATENSOR_LISTING_H */
