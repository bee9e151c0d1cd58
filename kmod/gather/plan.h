/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The plan of a gather: which rows are read from whom, in which order, by which READs.
 * Pure arithmetic, no I/O and no allocation.
 *
 * Ids are processed in chunks. If one chunk cannot hold all of them, they are first ordered
 * roughly, by the part of its owner's rows that each is in, so that a chunk has the same part
 * of all owners, and repeats and neighbours from anywhere in the batch.
 *
 * Each id of a chunk is resolved to a struct rdmatensor_gather_id: its row, and who has it.
 * Sorted by owner and row, neighbours in memory are neighbours in the array, and so are
 * repeats. A list is a run of ids of one owner, cut into READs: rows that follow each other
 * are one READ with several destinations, and of repeats only the first is read. A list is
 * posted at once and completed at once: its last READ's completion is that of all before it.
 */
#ifndef RDMATENSOR_PLAN_H
#define RDMATENSOR_PLAN_H

#include <linux/bits.h>
#include <linux/types.h>
#include "core/limits.h"

/* Longest READ, so that lanes share what is joined */
#define RDMATENSOR_READ_MAX BIT(20)
/* Parts of an owner's rows, by which a batch is ordered: a chunk begins and ends within one */
#define RDMATENSOR_PARTS BIT(12)

/**
 * struct rdmatensor_gather_id - one id of a chunk, resolved
 * @row: number of the row in the table
 * @source: who has it: the owner's number in the range map
 * @pos: position of the id, from where the destination begins
 */
struct rdmatensor_gather_id {
	u64 row;
	u32 source;
	u32 pos;
};

/**
 * struct rdmatensor_plan_source - where an owner's rows are
 * @row_start: number of its first row
 * @addr: address of that in the owner
 * @stride: distance of two rows in bytes
 * @seg_shift: log2 of the distance at which its keys change
 */
struct rdmatensor_plan_source {
	u64 row_start;
	u64 addr;
	u64 stride;
	u8 seg_shift;
};

/**
 * struct rdmatensor_plan_dest - where rows go
 * @offset: of position 0 in the pool
 * @row_bytes: distance of two positions, and length of a row
 * @seg_shift: log2 of the distance at which the pool's keys change
 * @max_pieces: destinations that one READ may have, 1..RDMATENSOR_PIECES_MAX
 * @repeats: repeats are read, too: the CPU cannot copy them
 */
struct rdmatensor_plan_dest {
	u64 offset;
	u32 row_bytes;
	u8 seg_shift;
	u8 max_pieces;
	bool repeats;
};

/**
 * struct rdmatensor_piece - one destination of a READ
 * @offset: in the pool; it does not cross a change of keys
 * @bytes: its length
 */
struct rdmatensor_piece {
	u64 offset;
	u32 bytes;
};

/**
 * struct rdmatensor_read - one READ
 * @addr: in the owner; it does not cross a change of keys
 * @bytes: sum of the pieces
 * @nr_pieces: members of @pieces
 * @pieces: in the order of @addr
 */
struct rdmatensor_read {
	u64 addr;
	u32 bytes;
	u32 nr_pieces;
	struct rdmatensor_piece pieces[RDMATENSOR_PIECES_MAX];
};

/* Which part of the owner's rows a row is in: below RDMATENSOR_PARTS, and grows with the row */
u16 rdmatensor_plan_part(u64 row, u64 row_start, u64 row_end);

/**
 * rdmatensor_plan_order - order a batch by parts
 * @parts: of each id
 * @nr: their number
 * @begins: RDMATENSOR_PARTS of them, for its own use
 * @order: out: positions of the ids, by part, and those of one part as they came
 *
 * May take long: no lock held.
 */
void rdmatensor_plan_order(const u16 *parts, u32 nr, u32 *begins, u32 *order);

/* By source, row and position. Bounded stack, no allocation; may take long: no lock held */
void rdmatensor_plan_sort(struct rdmatensor_gather_id *ids, u32 nr);

/**
 * rdmatensor_plan_cut - the READs of the next list
 * @ids: sorted, all of @source
 * @nr: their number, at least 1
 * @source: where they are
 * @dest: where they go
 * @most: READs that the list shall have; more, up to @room, only to finish one row
 * @reads: filled
 * @room: capacity of @reads, at least rdmatensor_plan_row_reads()
 * @nr_reads: out: READs of the list, at least 1
 *
 * Return: ids that are done with the list, at least 1; all repeats of the last row
 * are among them. Repeats have no READ: rdmatensor_plan_repeats() of the same row.
 */
u32 rdmatensor_plan_cut(const struct rdmatensor_gather_id *ids, u32 nr,
			const struct rdmatensor_plan_source *source,
			const struct rdmatensor_plan_dest *dest, u32 most,
			struct rdmatensor_read *reads, u32 room, u32 *nr_reads);

/* READs that one row may take at worst */
u32 rdmatensor_plan_row_reads(u32 row_bytes, u8 source_shift, u8 dest_shift, u8 max_pieces);

/* Is @id, which is not the first of its array, read by the one before it? */
static inline bool rdmatensor_plan_repeats(const struct rdmatensor_gather_id *id)
{
	return id[-1].row == id->row && id[-1].source == id->source;
}

#endif /* RDMATENSOR_PLAN_H */
