// SPDX-License-Identifier: GPL-2.0
/*
 * The allocator of one pool, and the readers and writers of its parts.
 *
 * Extents tile the pool. Each is free or handed out, and no two neighbours are
 * free, so that what is free is as long as it can be. A use lies in one extent
 * that is handed out and keeps it from being freed: this is what makes it true
 * that no byte is handed out again while a peer may still write it.
 *
 * Uses are what keeps a pool, too: it is closed when there are none, and there is none
 * from then on. References to its memory, which readers take, do not keep it.
 *
 * Extents are owned by the regions, uses by the structs that embed them. Errors leave
 * everything as it was; freeing and dropping cannot fail for want of memory.
 */
#include <linux/align.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/interval_tree_generic.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "memory/region.h"
#include "rdmatensor.h"

struct rdmatensor_extent {
	struct rb_node by_offset;
	struct rb_node by_size;	/* while free */
	u64 offset;
	u64 bytes;
	u64 uses;
	bool free;
};

#define REGION_USE_START(use) ((use)->start)
#define REGION_USE_LAST(use) ((use)->last)

INTERVAL_TREE_DEFINE(struct rdmatensor_use, node, u64, subtree_last, REGION_USE_START,
		     REGION_USE_LAST, static inline, region_uses)

#define region_by_offset(rb) rb_entry(rb, struct rdmatensor_extent, by_offset)
#define region_by_size(rb) rb_entry(rb, struct rdmatensor_extent, by_size)

static bool region_offset_less(struct rb_node *a, const struct rb_node *b)
{
	return region_by_offset(a)->offset < region_by_offset(b)->offset;
}

/* Equal lengths by offset: the pool fills from its beginning */
static bool region_size_less(struct rb_node *a, const struct rb_node *b)
{
	const struct rdmatensor_extent *x = region_by_size(a), *y = region_by_size(b);

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes;
	return x->offset < y->offset;
}

/* The extent with the greatest offset that is not beyond @offset */
static struct rdmatensor_extent *region_find_offset(const struct rdmatensor_regions *regions,
						    u64 offset)
{
	struct rb_node *node = regions->extents.rb_node;
	struct rdmatensor_extent *found = NULL;

	while (node) {
		struct rdmatensor_extent *extent = region_by_offset(node);

		if (extent->offset <= offset) {
			found = extent;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return found;
}

/* The shortest free extent of at least @bytes */
static struct rdmatensor_extent *region_find_fit(const struct rdmatensor_regions *regions,
						 u64 bytes)
{
	struct rb_node *node = regions->free_by_size.rb_node;
	struct rdmatensor_extent *found = NULL;

	while (node) {
		struct rdmatensor_extent *extent = region_by_size(node);

		if (extent->bytes >= bytes) {
			found = extent;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

int rdmatensor_regions_init(struct rdmatensor_regions *regions, u64 bytes)
{
	struct rdmatensor_extent *extent;

	if (!bytes || !IS_ALIGNED(bytes, RDMATENSOR_REGION_ALIGN))
		return -EINVAL;
	extent = kzalloc(sizeof(*extent), RDMATENSOR_GFP_SPARING);
	if (!extent)
		return -ENOMEM;

	spin_lock_init(&regions->lock);
	regions->bytes = bytes;
	regions->align = RDMATENSOR_REGION_ALIGN;
	regions->extents = RB_ROOT;
	regions->free_by_size = RB_ROOT;
	regions->readers = RB_ROOT_CACHED;
	regions->writers = RB_ROOT_CACHED;
	regions->sparse_readers = RB_ROOT_CACHED;
	regions->sparse_writers = RB_ROOT_CACHED;
	regions->nr_uses = 0;

	extent->bytes = bytes;
	extent->free = true;
	rb_add(&extent->by_offset, &regions->extents, region_offset_less);
	rb_add(&extent->by_size, &regions->free_by_size, region_size_less);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_init);

void rdmatensor_regions_destroy(struct rdmatensor_regions *regions)
{
	struct rdmatensor_extent *extent, *next;

	/* A use that drops later would touch its extent: rather leak them */
	if (WARN_ON_ONCE(regions->nr_uses))
		return;
	rbtree_postorder_for_each_entry_safe(extent, next, &regions->extents, by_offset) {
		kfree(extent);
		/* As many as a process has made, of 64 bytes each */
		cond_resched();
	}
	regions->extents = RB_ROOT;
	regions->free_by_size = RB_ROOT;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_destroy);

/*
 * Takes the front of the best fit, in *@spare if that is longer. ERR_PTR(-ENOSPC),
 * ERR_PTR(-ENOMEM): nothing has changed.
 */
static struct rdmatensor_extent *region_take(struct rdmatensor_regions *regions, u64 bytes,
					     struct rdmatensor_extent **spare)
{
	struct rdmatensor_extent *fit, *taken;

	fit = region_find_fit(regions, bytes);
	if (!fit)
		return ERR_PTR(-ENOSPC);
	if (fit->bytes == bytes) {
		rb_erase(&fit->by_size, &regions->free_by_size);
		fit->free = false;
		return fit;
	}
	taken = *spare;
	if (!taken)
		return ERR_PTR(-ENOMEM);
	*spare = NULL;

	/* The order by offset does not change when the front is cut off */
	taken->offset = fit->offset;
	taken->bytes = bytes;
	rb_erase(&fit->by_size, &regions->free_by_size);
	fit->offset += bytes;
	fit->bytes -= bytes;
	rb_add(&fit->by_size, &regions->free_by_size, region_size_less);
	rb_add(&taken->by_offset, &regions->extents, region_offset_less);
	return taken;
}

static struct rb_root_cached *region_uses_of(struct rdmatensor_regions *regions,
					     const struct rdmatensor_use *use)
{
	if (use->sparse)
		return use->write ? &regions->sparse_writers : &regions->sparse_readers;
	return use->write ? &regions->writers : &regions->readers;
}

static void region_hold(struct rdmatensor_regions *regions, struct rdmatensor_use *use,
			struct rdmatensor_extent *extent, u64 offset, u64 bytes)
{
	use->start = offset;
	use->last = offset + bytes - 1;
	use->extent = extent;
	extent->uses++;
	region_uses_insert(use, region_uses_of(regions, use));
}

/* @use: NULL, or an empty one, which gets the region as a destination */
static int region_alloc(struct rdmatensor_regions *regions, struct rdmatensor_use *use, u64 bytes,
			gfp_t gfp, u64 *offset)
{
	struct rdmatensor_extent *extent, *spare;
	int ret = 0;

	if (!bytes)
		return -EINVAL;
	if (bytes > regions->bytes)
		return -ENOSPC;

	spare = rdmatensor_should_fail() ? NULL : kzalloc(sizeof(*spare), gfp);

	spin_lock_bh(&regions->lock);
	extent = regions->closed ? ERR_PTR(-ENOENT) :
		 region_take(regions, ALIGN(bytes, RDMATENSOR_REGION_ALIGN), &spare);
	if (IS_ERR(extent)) {
		ret = PTR_ERR(extent);
	} else {
		*offset = extent->offset;
		if (use) {
			use->write = true;
			use->sparse = false;
			/* To its aligned end: regions_free_held() frees all of it */
			region_hold(regions, use, extent, extent->offset, extent->bytes);
		}
	}
	spin_unlock_bh(&regions->lock);

	kfree(spare);
	return ret;
}

int rdmatensor_regions_alloc(struct rdmatensor_regions *regions, u64 bytes, gfp_t gfp,
			     u64 *offset)
{
	return region_alloc(regions, NULL, bytes, gfp, offset);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_alloc);

int rdmatensor_regions_alloc_hold(struct rdmatensor_regions *regions,
				  struct rdmatensor_use *use, u64 bytes, gfp_t gfp,
				  u64 *offset)
{
	return region_alloc(regions, use, bytes, gfp, offset);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_alloc_hold);

/*
 * Makes @extent the free union of itself and the free neighbour at @node, which
 * is returned to be freed. NULL: there is none.
 */
static struct rdmatensor_extent *region_join(struct rdmatensor_regions *regions,
					     struct rdmatensor_extent *extent,
				      struct rb_node *node)
{
	struct rdmatensor_extent *neighbour = node ? region_by_offset(node) : NULL;

	if (!neighbour || !neighbour->free)
		return NULL;
	rb_erase(&neighbour->by_size, &regions->free_by_size);
	rb_erase(&neighbour->by_offset, &regions->extents);
	extent->offset = min(extent->offset, neighbour->offset);
	extent->bytes += neighbour->bytes;
	return neighbour;
}

/* What is left of the neighbours is put into @joined, to be freed */
static void region_free(struct rdmatensor_regions *regions, struct rdmatensor_extent *extent,
			struct rdmatensor_extent *joined[2])
{
	joined[0] = region_join(regions, extent, rb_prev(&extent->by_offset));
	joined[1] = region_join(regions, extent, rb_next(&extent->by_offset));
	extent->free = true;
	rb_add(&extent->by_size, &regions->free_by_size, region_size_less);
}

int rdmatensor_regions_free(struct rdmatensor_regions *regions, u64 offset)
{
	struct rdmatensor_extent *extent, *joined[2] = {};
	int ret = 0;

	spin_lock_bh(&regions->lock);
	extent = region_find_offset(regions, offset);
	if (!extent || extent->offset != offset || extent->free)
		ret = -ENOENT;
	else if (extent->uses)
		ret = -EBUSY;
	else
		region_free(regions, extent, joined);
	spin_unlock_bh(&regions->lock);

	kfree(joined[0]);
	kfree(joined[1]);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_free);

static bool region_overlaps(struct rb_root_cached *tree, u64 start, u64 last)
{
	return region_uses_iter_first(tree, start, last);
}

static int region_hold_locked(struct rdmatensor_regions *regions, struct rdmatensor_use *use,
			      u64 offset, u64 bytes)
{
	struct rdmatensor_extent *extent;
	u64 last;

	if (regions->closed || !(use->sparse || IS_ALIGNED(offset, regions->align)) ||
	    offset > regions->bytes || bytes > regions->bytes - offset)
		return -EINVAL;
	if (!bytes) {
		use->extent = NULL;
		return 0;
	}

	extent = region_find_offset(regions, offset);
	if (extent->free || offset - extent->offset + bytes > extent->bytes)
		return -EINVAL;
	last = offset + bytes - 1;
	if (region_overlaps(&regions->writers, offset, last) ||
	    (use->write && region_overlaps(&regions->readers, offset, last)))
		return -EINVAL;
	if (!use->sparse &&
	    (region_overlaps(&regions->sparse_writers, offset, last) ||
	     (use->write && region_overlaps(&regions->sparse_readers, offset, last))))
		return -EINVAL;
	region_hold(regions, use, extent, offset, bytes);
	return 0;
}

static int regions_hold(struct rdmatensor_regions *regions, struct rdmatensor_use *use, u64 offset,
			u64 bytes)
{
	int ret;

	spin_lock_bh(&regions->lock);
	ret = region_hold_locked(regions, use, offset, bytes);
	if (!ret)
		WRITE_ONCE(regions->nr_uses, regions->nr_uses + 1);
	spin_unlock_bh(&regions->lock);
	return ret;
}

int rdmatensor_regions_hold(struct rdmatensor_regions *regions,
			    struct rdmatensor_use *use, u64 offset, u64 bytes, bool write)
{
	use->write = write;
	use->sparse = false;
	return regions_hold(regions, use, offset, bytes);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_hold);

int rdmatensor_regions_hold_sparse(struct rdmatensor_regions *regions,
				   struct rdmatensor_use *use, u64 offset, u64 bytes, bool write)
{
	use->write = write;
	use->sparse = true;
	return regions_hold(regions, use, offset, bytes);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_hold_sparse);

/* It is an empty one then */
static void region_drop(struct rdmatensor_regions *regions, struct rdmatensor_use *use)
{
	if (!use->extent)
		return;
	region_uses_remove(use, region_uses_of(regions, use));
	use->extent->uses--;
	use->extent = NULL;
}

void rdmatensor_regions_drop(struct rdmatensor_regions *regions,
			     struct rdmatensor_use *use)
{
	spin_lock_bh(&regions->lock);
	region_drop(regions, use);
	WRITE_ONCE(regions->nr_uses, regions->nr_uses - 1);
	spin_unlock_bh(&regions->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_drop);

void rdmatensor_regions_free_held(struct rdmatensor_regions *regions,
				  struct rdmatensor_use *use)
{
	struct rdmatensor_extent *extent, *joined[2] = {};

	spin_lock_bh(&regions->lock);
	extent = use->extent;
	region_drop(regions, use);
	/* It was all of the region, and a destination: there can be no other use */
	if (!WARN_ON_ONCE(extent->uses))
		region_free(regions, extent, joined);
	spin_unlock_bh(&regions->lock);

	kfree(joined[0]);
	kfree(joined[1]);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_free_held);

int rdmatensor_regions_close(struct rdmatensor_regions *regions)
{
	int ret = 0;

	spin_lock_bh(&regions->lock);
	if (regions->nr_uses)
		ret = -EBUSY;
	else
		regions->closed = true;
	spin_unlock_bh(&regions->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_regions_close);
