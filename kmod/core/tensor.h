/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The meta-data of a tensor: pure data, shared by the wire, the meta cache, the
 * rendezvous table and both state machines.
 */
#ifndef RDMATENSOR_TENSOR_H
#define RDMATENSOR_TENSOR_H

#include <linux/types.h>
#include "rdmatensor.h"

/**
 * struct rdmatensor_meta - what a receiver must know before content can come
 * @data_type: enum rdmatensor_data_type; RDMATENSOR_DT_INVALID: unknown
 * @ndims: valid members of @dims, 0 is a scalar
 * @is_dead: a dead tensor has meta-data and no content
 * @bytes: length of the content in bytes; 0 if dead
 * @dims: the shape; members from @ndims on are 0
 */
struct rdmatensor_meta {
	u16 data_type;
	u8 ndims;
	u8 is_dead;
	u64 bytes;
	u64 dims[RDMATENSOR_DIMS_MAX];
};

/* Serialised bytes of any length, whatever the shape says */
bool rdmatensor_data_type_opaque(u32 data_type);
/* Bytes of one element; 0: opaque, or not a data type */
u32 rdmatensor_data_type_bytes(u32 data_type);

/**
 * rdmatensor_meta_check - hold meta-data to its ranges and to itself
 * @meta: of a tensor that exists, so its data type is known
 *
 * A dead tensor has no bytes, whatever its shape; of all others but the opaque
 * ones the bytes are the product of the dims and the element's size.
 *
 * Return: 0 or -EINVAL.
 */
int rdmatensor_meta_check(const struct rdmatensor_meta *meta);

/* Compares all but the members of dims from ndims on */
bool rdmatensor_meta_equal(const struct rdmatensor_meta *a,
			   const struct rdmatensor_meta *b);

#endif /* RDMATENSOR_TENSOR_H */
