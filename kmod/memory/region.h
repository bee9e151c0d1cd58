/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions of one pool: which parts are handed out, and which of those are being
 * read (published tensors) or written (results of fetches) at the moment.
 *
 * Everything is O(log n) in the number of extents: free extents are in a tree
 * by length (best fit) and by address (joining neighbours), uses in interval
 * trees. Pure arithmetic on offsets: no memory of the pool is touched.
 *
 * Any context up to softirq; a spinlock inside.
 */
#ifndef RDMATENSOR_REGION_H
#define RDMATENSOR_REGION_H

#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct rdmatensor_extent;

/**
 * struct rdmatensor_use - one reader or writer of a range, embedded by it
 * @node: in a tree of readers or writers
 * @start: first byte
 * @last: last byte, inclusive (interval tree's convention)
 * @subtree_last: interval tree's
 * @extent: the extent that it lies in, held; NULL for an empty range: it keeps the pool, and
 *          no region
 * @write: a fetch writes here
 * @sparse: only some of the bytes, which lie at strides
 */
struct rdmatensor_use {
	struct rb_node node;
	u64 start;
	u64 last;
	u64 subtree_last;
	struct rdmatensor_extent *extent;
	bool write;
	bool sparse;
};

/**
 * struct rdmatensor_regions - the state of one pool
 * @lock: guards all below
 * @bytes: of the pool
 * @align: uses begin at multiples of it, if they are not sparse: RDMATENSOR_REGION_ALIGN, or 1 in
 *         memory that the process has laid out before it was a pool
 * @extents: all extents by offset, free and handed out; they tile the pool
 * @free_by_size: free ones by (length, offset)
 * @readers: uses of published tensors
 * @writers: uses of fetches
 * @sparse_readers: those of both that are sparse
 * @sparse_writers: the same
 * @nr_uses: in all trees, empty ones included
 * @closed: the pool has been destroyed: nothing is handed out or used any more
 */
struct rdmatensor_regions {
	spinlock_t lock;	/* see above */
	u64 bytes;
	u32 align;
	struct rb_root extents;
	struct rb_root free_by_size;
	struct rb_root_cached readers;
	struct rb_root_cached writers;
	struct rb_root_cached sparse_readers;
	struct rb_root_cached sparse_writers;
	u64 nr_uses;
	bool closed;
};

/**
 * rdmatensor_regions_init - everything is free
 * @regions: filled here
 * @bytes: of the pool, a multiple of RDMATENSOR_REGION_ALIGN
 *
 * May sleep.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int rdmatensor_regions_init(struct rdmatensor_regions *regions, u64 bytes);
/* May sleep. Extents that are handed out are forgotten; there must be no uses */
void rdmatensor_regions_destroy(struct rdmatensor_regions *regions);

/**
 * rdmatensor_regions_alloc - hand out a range
 * @regions: the pool's
 * @bytes: at least 1, rounded up to RDMATENSOR_REGION_ALIGN
 * @gfp: for one struct; GFP_ATOMIC in completion context
 * @offset: out
 *
 * Best fit, and of equal fits the first in the pool.
 *
 * Return: 0, -ENOSPC: no free extent is that long, -ENOMEM, -EINVAL: 0 bytes, -ENOENT: closed.
 */
int rdmatensor_regions_alloc(struct rdmatensor_regions *regions, u64 bytes, gfp_t gfp,
			     u64 *offset);

/**
 * rdmatensor_regions_alloc_hold - hand out a range that is a destination at once
 * @regions: the pool's
 * @use: a hold of an empty range, which becomes that of this one
 * @bytes: as for rdmatensor_regions_alloc()
 * @gfp: for one struct; GFP_ATOMIC in completion context
 * @offset: out
 *
 * For a region that the process has not asked for by offset: between an alloc and a hold
 * it could free the region.
 *
 * Return: as rdmatensor_regions_alloc().
 */
int rdmatensor_regions_alloc_hold(struct rdmatensor_regions *regions,
				  struct rdmatensor_use *use, u64 bytes, gfp_t gfp,
				  u64 *offset);

/**
 * rdmatensor_regions_free - free a range
 * @regions: the pool's
 * @offset: where it begins
 *
 * Return: 0, -ENOENT: no handed-out extent begins at offset, -EBUSY: it
 * has uses.
 */
int rdmatensor_regions_free(struct rdmatensor_regions *regions, u64 offset);

/**
 * rdmatensor_regions_hold - begin to use a range
 * @regions: the pool's
 * @use: filled here; must stay where it is until it is dropped
 * @offset: first byte
 * @bytes: length, any
 * @write: as a fetch's destination: it may overlap no other use; else as a
 *         source: it may overlap no destination
 *
 * Return: 0; -EINVAL: closed, @offset is no multiple of @regions' align, not inside one
 * handed-out extent, or an overlap. An empty range must begin inside the pool
 * or at its end, and overlaps nothing.
 */
int rdmatensor_regions_hold(struct rdmatensor_regions *regions,
			    struct rdmatensor_use *use, u64 offset, u64 bytes, bool write);
/*
 * The same for some of the bytes of the range. It may begin anywhere, and overlap other sparse
 * uses: whether those are of the same bytes is not looked at, for columns of one array come from
 * several peers at the same time
 */
int rdmatensor_regions_hold_sparse(struct rdmatensor_regions *regions,
				   struct rdmatensor_use *use, u64 offset, u64 bytes,
				   bool write);
/* The end of a hold that succeeded */
void rdmatensor_regions_drop(struct rdmatensor_regions *regions,
			     struct rdmatensor_use *use);
/*
 * Frees what rdmatensor_regions_alloc_hold() has handed out, for a fetch that did not
 * succeed; the hold is one of an empty range again
 */
void rdmatensor_regions_free_held(struct rdmatensor_regions *regions,
				  struct rdmatensor_use *use);
/**
 * rdmatensor_regions_close - the pool is being destroyed
 * @regions: the pool's
 *
 * Return: 0: nothing uses it, and nothing will; -EBUSY: something does, an empty range
 * included: all is as it was.
 */
int rdmatensor_regions_close(struct rdmatensor_regions *regions);

#endif /* RDMATENSOR_REGION_H */
