/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slices and layouts: a part of a tensor that is fetched instead of all of it, a range in each of
 * its dims, or a range of its bytes; and where the elements of a tensor lie in memory that have
 * gaps between them. Pure functions: what the receiver asks for and what the sender sends are
 * computed by the same rules.
 */
#ifndef RDMATENSOR_SLICE_H
#define RDMATENSOR_SLICE_H

#include "core/tensor.h"

/**
 * struct rdmatensor_slice - a slice, whatever the tensor is
 * @ndims: dims that have a range, the slowest first; those behind them are taken whole. 0: one
 *         range, of the content's bytes
 * @ranges: length RDMATENSOR_RANGE_REST: to the end
 */
struct rdmatensor_slice {
	u8 ndims;
	struct rdmatensor_range ranges[RDMATENSOR_DIMS_MAX];
};

/**
 * struct rdmatensor_layout - where the elements of a tensor lie, if they do not lie together
 * @ndims: as its shape has
 * @strides: distance in bytes of the elements of each dim, the slowest first
 */
struct rdmatensor_layout {
	u8 ndims;
	u64 strides[RDMATENSOR_DIMS_MAX];
};

/**
 * struct rdmatensor_cut - where the bytes of a content lie in memory
 * @base: first byte
 * @skip: bytes that come before the content begins, in its order
 * @bytes: of a run: what lies together
 * @nr: levels of repetition, the fastest first
 * @count: runs, or repetitions of the level before
 * @stride: their distance in bytes
 */
struct rdmatensor_cut {
	u64 base;
	u64 skip;
	u64 bytes;
	u8 nr;
	u64 count[RDMATENSOR_DIMS_MAX];
	u64 stride[RDMATENSOR_DIMS_MAX];
};

/* Ranges whose ends can be told, for some tensor. Return: 0 or -EINVAL */
int rdmatensor_slice_check(const struct rdmatensor_slice *slice);

/**
 * rdmatensor_slice_meta - meta-data of a slice
 * @slice: checked
 * @whole: the tensor's, checked
 * @part: out: the lengths as its shape; of bytes RDMATENSOR_DT_UINT8 with one dim. Of a dead tensor
 *        its own: it has no content
 *
 * Return: 0; -ERANGE: the tensor has no such slice: fewer dims, or it ends before a range does.
 */
int rdmatensor_slice_meta(const struct rdmatensor_slice *slice,
			  const struct rdmatensor_meta *whole, struct rdmatensor_meta *part);

/* Strides whose products can be told. Return: 0 or -EINVAL */
int rdmatensor_layout_check(const struct rdmatensor_layout *layout);

/**
 * rdmatensor_layout_span - bytes from a tensor's first byte to behind its last one
 * @layout: checked
 * @meta: the tensor's, checked
 * @span: out: 0 if it is empty
 *
 * Return: 0; -ERANGE: the shape has another number of dims, the tensor is opaque, or it reaches
 * beyond 2^63 - 1.
 */
int rdmatensor_layout_span(const struct rdmatensor_layout *layout,
			   const struct rdmatensor_meta *meta, u64 *span);

/*
 * No two elements have bytes in common, of a tensor that has a span. Told of strides alone, each
 * of which has to reach over all that the lesser ones do: those of a view of an array always do
 */
bool rdmatensor_layout_disjoint(const struct rdmatensor_layout *layout,
				const struct rdmatensor_meta *meta);

/**
 * rdmatensor_slice_cut - where a slice lies
 * @slice: NULL: all of the tensor
 * @layout: of the tensor, which has a span; NULL: its elements lie together
 * @whole: of a tensor that has the slice, which is not empty
 * @cut: out: from the tensor's first byte on
 */
void rdmatensor_slice_cut(const struct rdmatensor_slice *slice,
			  const struct rdmatensor_layout *layout,
			  const struct rdmatensor_meta *whole, struct rdmatensor_cut *cut);

/*
 * What a cut of @bytes costs who writes it, or to it, in bytes of a content that lies together:
 * runs that are short take as long as some that are longer
 */
u64 rdmatensor_cut_cost(const struct rdmatensor_cut *cut, u64 bytes);

/* What lies together, so many times */
u64 rdmatensor_cut_runs(const struct rdmatensor_cut *cut);

/*
 * Where byte @pos of the content lies; @run: out: that many lie together there, of which the last
 * ones may be behind a range of bytes
 */
u64 rdmatensor_cut_at(const struct rdmatensor_cut *cut, u64 pos, u64 *run);

#endif /* RDMATENSOR_SLICE_H */
