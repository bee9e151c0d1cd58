// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copies between elements that lie at strides and those that lie together, where the device does not
 * do it: of memory that is in no pool, or of a content that found no room in one.
 */
#include <string.h>

#include "node.h"

/**
 * struct walk - one copy
 * @dims: the shape
 * @strides: of the strided side
 * @ndims: length of both
 * @packed: next byte of the side that lies together
 * @gather: from the strided side
 */
struct walk {
	const uint64_t *dims;
	const struct rdmatensor_stride *strides;
	uint32_t ndims;
	char *packed;
	bool gather;
};

static void copy_run(struct walk *walk, char *strided, uint64_t bytes)
{
	if (walk->gather)
		memcpy(walk->packed, strided, bytes);
	else
		memcpy(strided, walk->packed, bytes);
	walk->packed += bytes;
}

/* All elements whose first @dim indices are told by @at; @run: bytes that lie together there */
static void copy_dims(struct walk *walk, char *at, uint32_t dim, uint32_t last, uint64_t run)
{
	uint64_t i;

	if (dim == last) {
		copy_run(walk, at, run);
		return;
	}
	for (i = 0; i < walk->dims[dim]; i++)
		copy_dims(walk, at + i * walk->strides[dim].bytes, dim + 1, last, run);
}

static void copy_all(struct walk *walk, void *strided, uint64_t element)
{
	uint32_t last = walk->ndims;

	/* The fastest dims, as far as they have no gaps */
	while (last && walk->strides[last - 1].bytes == element)
		element *= walk->dims[--last];
	if (element)
		copy_dims(walk, strided, 0, last, element);
}

bool node_strides_fit(const struct rdmatensor_tensor *tensor, uint32_t data_type, uint32_t ndims,
		      const uint64_t *dims)
{
	uint64_t way, span = rdmatensor_data_type_size(data_type);
	uint32_t i;

	if (ndims != tensor->ndims || !span ||
	    (tensor->data_type && tensor->data_type != data_type))
		return false;
	/* None is 0, for something has come */
	for (i = 0; i < ndims; i++)
		if (dims[i] > tensor->strides[i].most ||
		    __builtin_mul_overflow(dims[i] - 1, tensor->strides[i].bytes, &way) ||
		    __builtin_add_overflow(span, way, &span))
			return false;
	return span <= tensor->bytes;
}

bool node_strides_span(const struct rdmatensor_tensor *tensor, uint64_t *span)
{
	uint64_t way;
	uint32_t i;

	*span = rdmatensor_data_type_size(tensor->data_type);
	for (i = 0; i < tensor->ndims; i++) {
		if (!tensor->strides[i].most) {
			*span = 0;
			return true;
		}
		if (__builtin_mul_overflow(tensor->strides[i].most - 1, tensor->strides[i].bytes, &way) ||
		    __builtin_add_overflow(*span, way, span))
			return false;
	}
	return *span;
}

void node_gather(const struct rdmatensor_tensor *tensor, void *to)
{
	struct walk walk = {
		.dims = tensor->dims, .strides = tensor->strides, .ndims = tensor->ndims,
		.packed = to, .gather = true,
	};

	copy_all(&walk, tensor->data, rdmatensor_data_type_size(tensor->data_type));
}

void node_scatter(const struct rdmatensor_tensor *tensor, const void *from)
{
	struct walk walk = {
		.dims = tensor->dims, .strides = tensor->strides, .ndims = tensor->ndims,
		.packed = (char *)from,
	};

	copy_all(&walk, tensor->data, rdmatensor_data_type_size(tensor->data_type));
}
