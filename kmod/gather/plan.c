// SPDX-License-Identifier: GPL-2.0
/*
 * The plan of a gather: ordering, joining, cutting.
 *
 * A row becomes pieces at each change of keys, the owner's or the pool's. A piece is
 * joined to the READ before it if it follows it in the owner's memory, no key changes
 * between them, and the READ has a destination to spare. A row whose pieces do not
 * fit the list any more is left to the next list, whole: what a list proves is rows.
 */
#include <linux/export.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <kunit/visibility.h>
#include "gather/plan.h"

/* Ids between two calls of cond_resched() */
#define PLAN_IDS 16384U

u16 rdmatensor_plan_part(u64 row, u64 row_start, u64 row_end)
{
	u64 width = div64_u64(row_end - row_start - 1, RDMATENSOR_PARTS) + 1;

	return div64_u64(row - row_start, width);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_plan_part);

void rdmatensor_plan_order(const u16 *parts, u32 nr, u32 *begins, u32 *order)
{
	u32 i, begin = 0;

	memset(begins, 0, RDMATENSOR_PARTS * sizeof(*begins));
	for (i = 0; i < nr; i++) {
		begins[parts[i]]++;
		if (i % PLAN_IDS == 0)
			cond_resched();
	}
	for (i = 0; i < RDMATENSOR_PARTS; i++) {
		u32 members = begins[i];

		begins[i] = begin;
		begin += members;
	}
	for (i = 0; i < nr; i++) {
		order[begins[parts[i]]++] = i;
		if (i % PLAN_IDS == 0)
			cond_resched();
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_plan_order);

static int plan_compare(const void *a, const void *b)
{
	const struct rdmatensor_gather_id *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->pos < y->pos ? -1 : x->pos > y->pos;
}

void rdmatensor_plan_sort(struct rdmatensor_gather_id *ids, u32 nr)
{
	u32 i;

	/* Sorted ids cost no more than this */
	for (i = 1; i < nr; i++)
		if (plan_compare(&ids[i - 1], &ids[i]) > 0)
			break;
	if (i < nr)
		sort(ids, nr, sizeof(*ids), plan_compare, NULL);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_plan_sort);

u32 rdmatensor_plan_row_reads(u32 row_bytes, u8 source_shift, u8 dest_shift, u8 max_pieces)
{
	/* The peer's shift may be up to 40 */
	u32 remote = ((u64)row_bytes >> source_shift) + 2;
	u32 local = ((u64)row_bytes >> dest_shift) + 2;

	/* A READ ends where a key of the owner changes, or when its destinations are used up */
	return remote + local / max_pieces + 1 + row_bytes / RDMATENSOR_READ_MAX;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_plan_row_reads);

static u64 to_boundary(u64 at, u8 shift)
{
	return (1ULL << shift) - (at & ((1ULL << shift) - 1));
}

/* True: the piece is part of the READ now */
static bool plan_join(struct rdmatensor_read *read, u64 addr, const struct rdmatensor_piece *piece,
		      const struct rdmatensor_plan_source *source,
		      const struct rdmatensor_plan_dest *dest)
{
	struct rdmatensor_piece *last = &read->pieces[read->nr_pieces - 1];

	if (addr != read->addr + read->bytes || !(addr & ((1ULL << source->seg_shift) - 1)) ||
	    piece->bytes > RDMATENSOR_READ_MAX - read->bytes)
		return false;
	if (last->offset + last->bytes == piece->offset &&
	    piece->offset & ((1ULL << dest->seg_shift) - 1)) {
		last->bytes += piece->bytes;
	} else {
		if (read->nr_pieces == dest->max_pieces)
			return false;
		read->pieces[read->nr_pieces++] = *piece;
	}
	read->bytes += piece->bytes;
	return true;
}

/*
 * One row more. False: it does not fit, and @reads is as it was: a row's first piece may
 * have been joined to a READ before it, which @saved has from before
 */
static bool plan_add_row(const struct rdmatensor_gather_id *id,
			 const struct rdmatensor_plan_source *source,
			 const struct rdmatensor_plan_dest *dest, struct rdmatensor_read *reads,
			 u32 room, u32 *nr_reads)
{
	u64 addr = source->addr + (id->row - source->row_start) * source->stride;
	u64 offset = dest->offset + (u64)id->pos * dest->row_bytes;
	u32 before = *nr_reads, left = dest->row_bytes;
	struct rdmatensor_read saved = {};
	struct rdmatensor_piece piece;

	if (before)
		saved = reads[before - 1];
	while (left) {
		piece.offset = offset;
		piece.bytes = min3((u64)left, to_boundary(addr, source->seg_shift),
				   to_boundary(offset, dest->seg_shift));
		if (!*nr_reads || !plan_join(&reads[*nr_reads - 1], addr, &piece, source, dest)) {
			if (*nr_reads >= room) {
				*nr_reads = before;
				if (before)
					reads[before - 1] = saved;
				return false;
			}
			reads[*nr_reads].addr = addr;
			reads[*nr_reads].bytes = piece.bytes;
			reads[*nr_reads].nr_pieces = 1;
			reads[*nr_reads].pieces[0] = piece;
			++*nr_reads;
		}
		addr += piece.bytes;
		offset += piece.bytes;
		left -= piece.bytes;
	}
	return true;
}

u32 rdmatensor_plan_cut(const struct rdmatensor_gather_id *ids, u32 nr,
			const struct rdmatensor_plan_source *source,
			const struct rdmatensor_plan_dest *dest, u32 most,
			struct rdmatensor_read *reads, u32 room, u32 *nr_reads)
{
	u32 done = 0;

	*nr_reads = 0;
	while (done < nr) {
		if (done && !dest->repeats && rdmatensor_plan_repeats(&ids[done])) {
			done++;
			continue;
		}
		/* The first row always; then as long as the list is no longer than it shall be */
		if (!plan_add_row(&ids[done], source, dest, reads,
				  done ? min(most, room) : room, nr_reads))
			break;
		done++;
	}
	return done;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_plan_cut);
