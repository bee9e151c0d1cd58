/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Destinations that are sent once (FETCH with RDMATENSOR_OP_KEEP; TensorFlow 1.2 kept its
 * tensor buffers like this). The receiver sends a destination under a number, the sender
 * remembers it, and a request with that number alone refers to it.
 *
 * A number is used for one destination: a destination that changes gets another number. So a
 * number is never ambiguous, and the sender either remembers it or not: then it answers as to
 * a request without a destination, and the receiver sends it again. The sender may therefore
 * forget any number at any time. It writes to a remembered destination only in answer to a
 * request that refers to it.
 *
 * All calls are made with the channel's lock, except those that end a table.
 */
#ifndef RDMATENSOR_KEEP_H
#define RDMATENSOR_KEEP_H

#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/xarray.h>
#include "core/tensor.h"
#include "core/wire.h"

/* Bytes that a peer can make one channel remember, charged to the channel's owner */
#define RDMATENSOR_KEPT_BYTES SZ_512K

/**
 * struct rdmatensor_kept - sender: a destination that is remembered
 * @refs: the table, and responses that use it
 * @number: with which the peer refers to it
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
 * struct rdmatensor_kepts - sender: the remembered destinations of one channel
 * @slots: by number modulo RDMATENSOR_WIRE_KEEP_SLOTS
 * @bytes: of all of them, at most RDMATENSOR_KEPT_BYTES
 */
struct rdmatensor_kepts {
	struct xarray slots;
	size_t bytes;
};

void rdmatensor_kepts_init(struct rdmatensor_kepts *kepts);
/* Forgets all; no message arrives any more. Any context */
void rdmatensor_kepts_forget(struct rdmatensor_kepts *kepts);
/* Remembers the destination in @msg under its number, if there is memory */
void rdmatensor_kepts_remember(struct rdmatensor_kepts *kepts, const struct rdmatensor_msg *msg);
/* A remembered destination, held for the caller to put; NULL: it is not remembered */
struct rdmatensor_kept *rdmatensor_kepts_get(struct rdmatensor_kepts *kepts, u32 number);
void rdmatensor_kept_put(struct rdmatensor_kept *kept);

/**
 * struct rdmatensor_keep - receiver: what was sent of one name's destination
 * @owned: the name has a slot at the peer
 * @told: the destination below was sent under @number
 * @missed: times in a row that the peer did not remember it
 * @number: of the destination
 * @nr_parts: of the destination
 * @iova: of the destination; addresses are not reused by another pool
 * @meta: of the destination
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
 * rdmatensor_keep_tell - receiver: put the destination, or its number, into a request
 * @keep: of the name
 * @nr_keeps: slots at the peer that names of this channel own
 * @msg: a request that is about to be posted, with its destination
 * @iova: of the destination
 * @may_refer: the request may refer to what was sent before
 *
 * Return: true: @msg refers to the destination by its number alone.
 */
bool rdmatensor_keep_tell(struct rdmatensor_keep *keep, u32 *nr_keeps,
			  struct rdmatensor_msg *msg, u64 iova, bool may_refer);
/* The peer did not remember (missed), or did (met), what a request referred to */
void rdmatensor_keep_missed(struct rdmatensor_keep *keep);
void rdmatensor_keep_met(struct rdmatensor_keep *keep);

#endif /* RDMATENSOR_KEEP_H */
