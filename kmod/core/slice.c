// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of slices and layouts. Where a tensor has no gaps, dims that are taken whole are one
 * with the dim before them: what is left is a run of bytes, repeated at each level of the dims
 * before it. Products cannot overflow, as those of the whole tensor do not, nor its span.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/sort.h>
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

int rdmatensor_layout_check(const struct rdmatensor_layout *layout)
{
	unsigned int i;

	if (layout->ndims > RDMATENSOR_DIMS_MAX)
		return -EINVAL;
	for (i = 0; i < layout->ndims; i++)
		if (layout->strides[i] > S64_MAX)
			return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_layout_check);

int rdmatensor_layout_span(const struct rdmatensor_layout *layout,
			   const struct rdmatensor_meta *meta, u64 *span)
{
	unsigned int i;
	u64 way;

	*span = 0;
	if (layout->ndims != meta->ndims || rdmatensor_data_type_opaque(meta->data_type))
		return -ERANGE;
	if (!meta->bytes)
		return 0;
	*span = rdmatensor_data_type_bytes(meta->data_type);
	for (i = 0; i < meta->ndims; i++)
		if (check_mul_overflow(meta->dims[i] - 1, layout->strides[i], &way) ||
		    check_add_overflow(*span, way, span) || *span > S64_MAX)
			return -ERANGE;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_layout_span);

/* A dim of more than one element */
struct layout_dim {
	u64 stride;
	u64 length;
};

static int layout_compare(const void *a, const void *b)
{
	const struct layout_dim *first = a, *second = b;

	return first->stride < second->stride ? -1 : first->stride > second->stride;
}

bool rdmatensor_layout_disjoint(const struct rdmatensor_layout *layout,
				const struct rdmatensor_meta *meta)
{
	struct layout_dim dims[RDMATENSOR_DIMS_MAX];
	u64 extent = rdmatensor_data_type_bytes(meta->data_type);
	unsigned int i, nr = 0;

	if (!meta->bytes)
		return true;
	for (i = 0; i < meta->ndims; i++)
		if (meta->dims[i] > 1)
			dims[nr++] = (struct layout_dim){ layout->strides[i], meta->dims[i] };
	sort(dims, nr, sizeof(dims[0]), layout_compare, NULL);
	for (i = 0; i < nr; i++) {
		if (dims[i].stride < extent)
			return false;
		extent += dims[i].stride * (dims[i].length - 1);
	}
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_layout_disjoint);

/* Goes on with the elements of a dim: with the run or the last level it may be one */
static void cut_repeat(struct rdmatensor_cut *cut, u64 length, u64 stride)
{
	unsigned int last = cut->nr - 1;

	if (length == 1)
		return;
	if (!cut->nr && stride == cut->bytes) {
		cut->bytes *= length;
	} else if (cut->nr && stride == cut->stride[last] * cut->count[last]) {
		cut->count[last] *= length;
	} else {
		cut->count[cut->nr] = length;
		cut->stride[cut->nr++] = stride;
	}
}

void rdmatensor_slice_cut(const struct rdmatensor_slice *slice,
			  const struct rdmatensor_layout *layout,
			  const struct rdmatensor_meta *whole, struct rdmatensor_cut *cut)
{
	static const struct rdmatensor_slice all;
	const struct rdmatensor_slice *of_dims = slice && slice->ndims ? slice : &all;
	u64 packed = rdmatensor_data_type_bytes(whole->data_type), length = 0, stride;
	unsigned int i = whole->ndims;

	memset(cut, 0, sizeof(*cut));
	if (slice && !slice->ndims)
		cut->skip = slice->ranges[0].start;
	/* Nor has an opaque tensor elements */
	if (!layout && of_dims == &all) {
		cut->bytes = whole->bytes;
		return;
	}
	cut->bytes = packed;
	while (i--) {
		stride = layout ? layout->strides[i] : packed;
		slice_length(slice_range(of_dims, i), whole->dims[i], &length);
		cut->base += slice_range(of_dims, i)->start * stride;
		cut_repeat(cut, length, stride);
		packed *= whole->dims[i];
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_slice_cut);

u64 rdmatensor_cut_cost(const struct rdmatensor_cut *cut, u64 bytes)
{
	return max_t(u64, bytes, div64_u64(bytes, cut->bytes) * CUT_LEAST);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_cut_cost);

u64 rdmatensor_cut_runs(const struct rdmatensor_cut *cut)
{
	unsigned int i;
	u64 runs = 1;

	for (i = 0; i < cut->nr; i++)
		runs *= cut->count[i];
	return runs;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_cut_runs);

u64 rdmatensor_cut_at(const struct rdmatensor_cut *cut, u64 pos, u64 *run)
{
	u64 at = cut->base, within, index;
	unsigned int i;

	pos = div64_u64_rem(cut->skip + pos, cut->bytes, &within);
	*run = cut->bytes - within;
	for (i = 0; i < cut->nr && pos; i++) {
		pos = div64_u64_rem(pos, cut->count[i], &index);
		at += index * cut->stride[i];
	}
	return at + within;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_cut_at);
