/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Destinations that are told once (FETCH with RDMATENSOR_OP_KEEP; TensorFlow 1.2 kept its
 * tensor buffers like this). The receiver tells one under a number, the sender remembers it,
 * and a request with that number and nothing else means it.
 *
 * A number is told once, for one destination: what changes has another number. So it cannot
 * mean two things, and the sender either knows what it means or does not: then it answers as
 * to a request without a destination, and is told again. It may therefore forget any at any
 * time. What it remembers is written to only in answer to a request that says so.
 *
 * All calls but those for the end are made with the channel's lock.
 */
#ifndef RDMATENSOR_KEEP_H
#define RDMATENSOR_KEEP_H

#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/xarray.h>
#include "core/tensor.h"
#include "core/wire.h"

/* What a peer makes one channel remember, in bytes: it is the channel's owner who pays */
#define RDMATENSOR_KEPT_BYTES SZ_512K

/**
 * struct rdmatensor_kept - sender: a destination that a peer has told
 * @refs: the table, and responses that use it
 * @number: what the peer calls it
 * @nr_parts: how the content is cut
 * @seg_shift: log2 of the distance at which keys change
 * @remote_addr: of the first byte
 * @meta: of the tensor that it is for
 * @nr_rkeys: members of @rkeys
 * @rkeys: as they are on the wire
 */
struct rdmatensor_kept {
	refcount_t refs;
	u32 number;
	u8 nr_parts;
	u8 seg_shift;
	u64 remote_addr;
	struct rdmatensor_meta meta;
	u16 nr_rkeys;
	__le32 rkeys[] __counted_by(nr_rkeys);
};

/**
 * struct rdmatensor_kepts - sender: those of one channel
 * @slots: by number modulo RDMATENSOR_WIRE_KEEP_SLOTS
 * @bytes: of all of them, at most RDMATENSOR_KEPT_BYTES
 */
struct rdmatensor_kepts {
	struct xarray slots;
	size_t bytes;
};

void rdmatensor_kepts_init(struct rdmatensor_kepts *kepts);
/* No message comes any more. Any context */
void rdmatensor_kepts_forget(struct rdmatensor_kepts *kepts);
/* @msg tells a destination and its number. Without memory it is not remembered */
void rdmatensor_kepts_remember(struct rdmatensor_kepts *kepts, const struct rdmatensor_msg *msg);
/* A reference; NULL: it is not remembered, or no longer */
struct rdmatensor_kept *rdmatensor_kepts_get(struct rdmatensor_kepts *kepts, u32 number);
void rdmatensor_kept_put(struct rdmatensor_kept *kept);

/**
 * struct rdmatensor_keep - receiver: what it has told of one name's destination
 * @owned: the name has a slot of the peer's
 * @told: the peer was told of the destination below
 * @missed: times in a row that it did not know of it
 * @number: under which it was told, or would have been
 * @nr_parts: of it
 * @iova: of it; addresses are not used again by another pool
 * @meta: of it
 */
struct rdmatensor_keep {
	bool owned;
	bool told;
	u8 missed;
	u32 number;
	u8 nr_parts;
	u64 iova;
	struct rdmatensor_meta meta;
};

/**
 * rdmatensor_keep_tell - receiver: how a request says where its tensor goes
 * @keep: of the name
 * @nr_keeps: slots of the peer's that names of this channel have
 * @msg: a request that is about to be posted, with its destination
 * @iova: of that
 * @may_refer: what was told may do instead
 *
 * Return: true: @msg refers to what was told, by its number alone.
 */
bool rdmatensor_keep_tell(struct rdmatensor_keep *keep, u32 *nr_keeps,
			  struct rdmatensor_msg *msg, u64 iova, bool may_refer);
/* A request that referred to it was answered as if the peer knew nothing, or by content */
void rdmatensor_keep_missed(struct rdmatensor_keep *keep);
void rdmatensor_keep_met(struct rdmatensor_keep *keep);

#endif /* RDMATENSOR_KEEP_H */
