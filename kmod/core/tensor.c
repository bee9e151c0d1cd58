// SPDX-License-Identifier: GPL-2.0
/*
 * What a tensor's meta-data may be. Pure functions: whatever comes from a peer
 * or from the process is checked by the same rules here, so that nothing behind
 * them meets a shape whose bytes do not add up. An error is -EINVAL and has no
 * effect; the caller knows whose meta-data it was.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include "core/tensor.h"

#define OPAQUE 0xff

static const u8 tensor_element_bytes[RDMATENSOR_DT_MAX + 1] = {
	[RDMATENSOR_DT_FLOAT] = 4,
	[RDMATENSOR_DT_DOUBLE] = 8,
	[RDMATENSOR_DT_INT32] = 4,
	[RDMATENSOR_DT_UINT8] = 1,
	[RDMATENSOR_DT_INT16] = 2,
	[RDMATENSOR_DT_INT8] = 1,
	[RDMATENSOR_DT_STRING] = OPAQUE,
	[RDMATENSOR_DT_COMPLEX64] = 8,
	[RDMATENSOR_DT_INT64] = 8,
	[RDMATENSOR_DT_BOOL] = 1,
	[RDMATENSOR_DT_QINT8] = 1,
	[RDMATENSOR_DT_QUINT8] = 1,
	[RDMATENSOR_DT_QINT32] = 4,
	[RDMATENSOR_DT_BFLOAT16] = 2,
	[RDMATENSOR_DT_QINT16] = 2,
	[RDMATENSOR_DT_QUINT16] = 2,
	[RDMATENSOR_DT_UINT16] = 2,
	[RDMATENSOR_DT_COMPLEX128] = 16,
	[RDMATENSOR_DT_HALF] = 2,
	[RDMATENSOR_DT_RESOURCE] = OPAQUE,
	[RDMATENSOR_DT_VARIANT] = OPAQUE,
	[RDMATENSOR_DT_UINT32] = 4,
	[RDMATENSOR_DT_UINT64] = 8,
	[RDMATENSOR_DT_FLOAT8_E5M2] = 1,
	[RDMATENSOR_DT_FLOAT8_E4M3FN] = 1,
};

bool rdmatensor_data_type_opaque(u32 data_type)
{
	return data_type <= RDMATENSOR_DT_MAX && tensor_element_bytes[data_type] == OPAQUE;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_data_type_opaque);

u32 rdmatensor_data_type_bytes(u32 data_type)
{
	if (data_type > RDMATENSOR_DT_MAX || tensor_element_bytes[data_type] == OPAQUE)
		return 0;
	return tensor_element_bytes[data_type];
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_data_type_bytes);

/*
 * A dim of 0 makes the tensor empty whatever the others are, even where their
 * product alone would overflow.
 */
static bool tensor_shape_bytes(const struct rdmatensor_meta *meta, u64 *bytes)
{
	u64 product = rdmatensor_data_type_bytes(meta->data_type);
	unsigned int i;

	for (i = 0; i < meta->ndims; i++) {
		if (!meta->dims[i]) {
			*bytes = 0;
			return true;
		}
	}
	for (i = 0; i < meta->ndims; i++) {
		if (check_mul_overflow(product, meta->dims[i], &product))
			return false;
	}
	*bytes = product;
	return true;
}

int rdmatensor_meta_check(const struct rdmatensor_meta *meta)
{
	unsigned int i;
	u64 bytes;

	if (meta->data_type == RDMATENSOR_DT_INVALID ||
	    meta->data_type > RDMATENSOR_DT_MAX)
		return -EINVAL;
	if (meta->ndims > RDMATENSOR_DIMS_MAX || meta->is_dead > 1)
		return -EINVAL;
	for (i = meta->ndims; i < RDMATENSOR_DIMS_MAX; i++) {
		if (meta->dims[i])
			return -EINVAL;
	}
	if (meta->bytes > S64_MAX)
		return -EINVAL;
	if (meta->is_dead)
		return meta->bytes ? -EINVAL : 0;
	if (rdmatensor_data_type_opaque(meta->data_type))
		return 0;
	if (!tensor_shape_bytes(meta, &bytes) || bytes != meta->bytes)
		return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_meta_check);

bool rdmatensor_meta_equal(const struct rdmatensor_meta *a,
			   const struct rdmatensor_meta *b)
{
	return a->data_type == b->data_type && a->ndims == b->ndims &&
	       a->is_dead == b->is_dead && a->bytes == b->bytes &&
	       !memcmp(a->dims, b->dims, a->ndims * sizeof(a->dims[0]));
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_meta_equal);
