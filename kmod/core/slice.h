/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slices: a part of a tensor that is fetched instead of all of it, a range in each of its dims, or
 * a range of its bytes. Pure functions: what the receiver asks for and what the sender sends are
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
 * struct rdmatensor_cut - where the bytes of a slice lie in a content
 * @base: first byte
 * @bytes: of a run: what lies together
 * @nr: levels of repetition, the fastest first
 * @count: runs, or repetitions of the level before
 * @stride: their distance in bytes
 */
struct rdmatensor_cut {
	u64 base;
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

/* Of a tensor that has the slice, which is not empty */
void rdmatensor_slice_cut(const struct rdmatensor_slice *slice,
			  const struct rdmatensor_meta *whole, struct rdmatensor_cut *cut);

/*
 * What a slice costs its sender, in bytes of a content that lies together: runs that are short take
 * as long as some that are longer
 */
u64 rdmatensor_cut_cost(const struct rdmatensor_cut *cut, u64 bytes);

/* Where byte @pos of the slice lies in the content; @run: out: that many lie together there */
u64 rdmatensor_cut_at(const struct rdmatensor_cut *cut, u64 pos, u64 *run);

#endif /* RDMATENSOR_SLICE_H */
