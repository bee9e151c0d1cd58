// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of slices. A tensor is row-major and has no gaps, so dims that are taken whole are one
 * with the dim before them: what is left is a run of bytes, repeated at each level of the dims
 * before it. Products cannot overflow, as those of the whole tensor do not.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include "core/slice.h"

/* A run counts as so many bytes at least: a write has some of them */
#define CUT_LEAST 1024

static unsigned int slice_ranges(const struct rdmatensor_slice *slice)
{
	return max_t(unsigned int, slice->ndims, 1);
}

int rdmatensor_slice_check(const struct rdmatensor_slice *slice)
{
	const struct rdmatensor_range *range = slice->ranges;
	unsigned int i;

	if (slice->ndims > RDMATENSOR_DIMS_MAX)
		return -EINVAL;
	for (i = 0; i < slice_ranges(slice); i++, range++)
		if (range->start > S64_MAX ||
		    (range->length != RDMATENSOR_RANGE_REST &&
		     range->length > S64_MAX - range->start))
			return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_slice_check);

/* How much of @most a range takes. False: it goes beyond */
static bool slice_length(const struct rdmatensor_range *range, u64 most, u64 *length)
{
	if (range->start > most)
		return false;
	*length = range->length == RDMATENSOR_RANGE_REST ? most - range->start : range->length;
	return *length <= most - range->start;
}

/* Of dim @i */
static const struct rdmatensor_range *slice_range(const struct rdmatensor_slice *slice,
						  unsigned int i)
{
	static const struct rdmatensor_range whole = { 0, RDMATENSOR_RANGE_REST };

	return i < slice->ndims ? &slice->ranges[i] : &whole;
}

int rdmatensor_slice_meta(const struct rdmatensor_slice *slice,
			  const struct rdmatensor_meta *whole, struct rdmatensor_meta *part)
{
	unsigned int i;

	*part = *whole;
	if (whole->is_dead)
		return 0;
	if (!slice->ndims) {
		memset(part, 0, sizeof(*part));
		part->data_type = RDMATENSOR_DT_UINT8;
		part->ndims = 1;
		if (!slice_length(&slice->ranges[0], whole->bytes, &part->bytes))
			return -ERANGE;
		part->dims[0] = part->bytes;
		return 0;
	}
	if (slice->ndims > whole->ndims || rdmatensor_data_type_opaque(whole->data_type))
		return -ERANGE;
	part->bytes = rdmatensor_data_type_bytes(whole->data_type);
	for (i = 0; i < whole->ndims; i++) {
		if (!slice_length(slice_range(slice, i), whole->dims[i], &part->dims[i]))
			return -ERANGE;
		/* A tensor of no bytes may have any other dims */
		part->bytes *= whole->bytes ? part->dims[i] : 0;
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_slice_meta);

/* The last level goes on at @stride: two are one then */
static bool slice_is_level(const struct rdmatensor_cut *cut, u64 stride)
{
	unsigned int last = cut->nr - 1;

	return stride == cut->stride[last] * cut->count[last];
}

void rdmatensor_slice_cut(const struct rdmatensor_slice *slice,
			  const struct rdmatensor_meta *whole, struct rdmatensor_cut *cut)
{
	u64 stride = rdmatensor_data_type_bytes(whole->data_type), length = 0;
	unsigned int i = whole->ndims;

	memset(cut, 0, sizeof(*cut));
	if (!slice->ndims) {
		cut->base = slice->ranges[0].start;
		slice_length(&slice->ranges[0], whole->bytes, &cut->bytes);
		return;
	}
	cut->bytes = stride;
	while (i--) {
		slice_length(slice_range(slice, i), whole->dims[i], &length);
		cut->base += slice_range(slice, i)->start * stride;
		/* All that lies behind it is taken whole */
		if (!cut->nr && cut->bytes == stride) {
			cut->bytes *= length;
		} else if (cut->nr && slice_is_level(cut, stride)) {
			cut->count[cut->nr - 1] *= length;
		} else if (length > 1) {
			cut->count[cut->nr] = length;
			cut->stride[cut->nr++] = stride;
		}
		stride *= whole->dims[i];
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_slice_cut);

u64 rdmatensor_cut_cost(const struct rdmatensor_cut *cut, u64 bytes)
{
	return max_t(u64, bytes, div64_u64(bytes, cut->bytes) * CUT_LEAST);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_cut_cost);

u64 rdmatensor_cut_at(const struct rdmatensor_cut *cut, u64 pos, u64 *run)
{
	u64 at = cut->base, within, index;
	unsigned int i;

	pos = div64_u64_rem(pos, cut->bytes, &within);
	*run = cut->bytes - within;
	for (i = 0; i < cut->nr && pos; i++) {
		pos = div64_u64_rem(pos, cut->count[i], &index);
		at += index * cut->stride[i];
	}
	return at + within;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_cut_at);
