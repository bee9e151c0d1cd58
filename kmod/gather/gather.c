// SPDX-License-Identifier: GPL-2.0
/*
 * Gathers.
 *
 * A gather is a work item. It processes the ids in chunks, two at a time: while the READs of
 * one are in flight, the next one is loaded, sorted and posted. If one chunk cannot hold all
 * ids, they are processed in the rough order of their rows (see plan.h), which is computed
 * when they are copied and costs six bytes an id: without it a row that is in two chunks is
 * read twice, and neighbours in two chunks are not joined. For 10^6 random ids of 10^6 rows
 * the order saves three READs of four, for power-law ids a third of them and more
 * (tests/kunit/plan.c). Without memory for it they are processed as they came. Each chunk:
 *
 *	load -> sort -> post lists, own and cached rows are copied -> all lists complete
 *
 * A list is posted to one lane and is complete when its last READ has completed without an
 * error; nothing else makes a row count as delivered. A list whose lane failed is posted
 * again, whole, on another one. If an owner refuses access its rows are gone, and the gather
 * fails. A row that several ids name is read once, and copied when it has completed.
 *
 * The ids are copied in the submitting task and nowhere else: a page fault on them may last
 * for ever, and then that task waits, which a signal can kill. They are copied once and
 * checked against the table's range twice: all of them before anything is posted, and each
 * when it is used, because the process can write to the table's order meanwhile. The copy is
 * charged to the task's cgroup and bounded by the destination, which is held by then and has
 * space for a row for each id. Ids without an order are freed as their chunks are processed.
 *
 * A gather that stops posts nothing more, and waits for what is in flight: the device may
 * write to the destination until its lists are done. The transport bounds that time.
 *
 * The work item holds one reference, the armed timer another. At most GATHERS_AT_WORK are at
 * work, and a gather that stops before its turn ends by another queue. @lock guards @done,
 * @stop and @queued; all other members belong to the work item.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "gather/gather.h"

/* Ids of one chunk, which is one piece of the copy; ids between two checks for a stop */
#define GATHER_CHUNK 16384U
#define GATHER_IDS 512U
/* Lists in flight at most */
#define GATHER_LISTS 256U
/* Rows that are copied before lists that are done are processed */
#define GATHER_COPIES 256U
/* Gathers of a context that are at work */
#define GATHERS_AT_WORK 256
/* Times that a list is posted before the gather fails */
#define GATHER_TRIES 8

/**
 * struct gather_chunk - ids that are processed together
 * @base: what the ids' positions are counted from
 * @nr: their number
 * @ids: resolved, and sorted
 * @ends: one for each source: its ids end there
 * @nexts: one for each source: its ids before it have been posted, or copied
 * @pending: lists that are not complete
 */
struct gather_chunk {
	u64 base;
	u32 nr;
	struct rdmatensor_gather_id *ids;
	u32 *ends;
	u32 *nexts;
	u32 pending;
};

/**
 * struct gather_list - a list
 * @read: the lane's part
 * @item: among the free ones, those that are done, or those to be posted again
 * @gather: whose
 * @chunk: whose ids
 * @first: first id
 * @nr: their number
 * @tries: times that it was posted
 */
struct gather_list {
	struct rdmatensor_readlist read;
	struct list_head item;
	struct rdmatensor_gather *gather;
	struct gather_chunk *chunk;
	u32 first;
	u32 nr;
	u32 tries;
};

/**
 * struct rdmatensor_gather - one gather
 * @op: the operation; its range is the destination
 * @offset: of the destination in its pool
 * @bytes: of all rows
 * @gathers: the context's
 * @table: referenced; NULL when it has ended
 * @ids: pieces of GATHER_CHUNK ids, as the process has them; NULL: used up
 * @nr_ids: their number
 * @wide: of 64 bits, else of 32
 * @parts: which part of its owner's rows each is in, until @order is made
 * @last: the previous id, resolved, during the first check
 * @unsorted: an id has a lesser row than the one before it
 * @order: positions of the ids in the order of processing; NULL: as they came
 * @work: runs the gather
 * @lock: guards @done, @stop and @queued
 * @queued: @work is, or has been
 * @done: lists that are done and not yet processed
 * @stop: 0, or the errno that it ends with
 * @delivered: rows that have been read, or copied
 * @missing: position of the first row that is known not to be delivered
 * @chunks: see above
 * @reads: of the list that is being built
 * @wrs: work requests of one list
 * @sges: scatter entries of one list
 * @room: capacity of @reads and @wrs
 * @lists: all
 * @free: those that are not in flight
 * @again: those whose lane has failed
 * @lanes: one for each source: where its next list goes
 * @flying: one for each source: lists that are in flight, or done and not yet processed
 * @name_len: length of @name
 * @name: the table's, not zero-terminated; outlives @table for those who describe the gather
 */
struct rdmatensor_gather {
	struct rdmatensor_operation op;
	u64 offset;
	u64 bytes;
	struct rdmatensor_gathers *gathers;
	struct rdmatensor_table *table;
	void **ids;
	u64 nr_ids;
	bool wide;
	u16 *parts;
	struct rdmatensor_gather_id last;
	bool unsorted;
	u32 *order;
	struct work_struct work;
	spinlock_t lock;
	struct list_head done;
	int stop;
	bool queued;
	u64 delivered;
	u64 missing;
	struct gather_chunk chunks[2];
	struct rdmatensor_read *reads;
	struct ib_rdma_wr *wrs;
	struct ib_sge *sges;
	u32 room;
	struct gather_list *lists;
	struct list_head free;
	struct list_head again;
	u8 *lanes;
	u16 *flying;
	u16 name_len;
	char name[] __counted_by(name_len);
};

static struct rdmatensor_gather *to_gather(struct rdmatensor_operation *op)
{
	return container_of(op, struct rdmatensor_gather, op);
}

static struct rdmatensor_counters *gather_counters(const struct rdmatensor_gather *gather)
{
	return gather->op.counters;
}

/**
 * struct gather_sleeper - the work item of a gather, at gathers->wait
 * @entry: in the queue
 * @gather: whose work item it is
 */
struct gather_sleeper {
	struct wait_queue_entry entry;
	const struct rdmatensor_gather *gather;
};

/* @key: the gather that is meant, NULL: all. Of many in flight each list concerns one alone */
static int gather_woken(struct wait_queue_entry *entry, unsigned int mode, int sync, void *key)
{
	const struct gather_sleeper *sleeper = container_of(entry, struct gather_sleeper, entry);

	if (key && key != sleeper->gather)
		return 0;
	return woken_wake_function(entry, mode, sync, key);
}

/* Who waits for a lane on behalf of the gather is at the same queue, and is woken too */
static void gather_wake(struct rdmatensor_gather *gather)
{
	__wake_up(&gather->gathers->wait, TASK_NORMAL, 0, gather);
}

/* Return: true: this is the first reason, which counts. @text: may be NULL. Any context */
static bool gather_stop(struct rdmatensor_gather *gather, int error, const char *text)
{
	bool first;

	spin_lock_bh(&gather->lock);
	first = !gather->stop;
	if (first) {
		rdmatensor_status_set(&gather->op.status, error, text);
		WRITE_ONCE(gather->stop, error);
	}
	spin_unlock_bh(&gather->lock);
	gather_wake(gather);
	return first;
}

static void gather_stop_stale(struct rdmatensor_gather *gather,
			      const struct rdmatensor_source *source)
{
	char text[RDMATENSOR_TEXT_MAX];

	snprintf(text, sizeof(text), "'%s' has taken its rows %llu..%llu back", source->worker,
		 source->row_start, source->row_end - 1);
	gather_stop(gather, -ESTALE, text);
}

/*
 * One that waits for its turn does not wait for that any longer: those before it may be at work
 * as long as an owner that has gone lets them. Any context
 */
static void gather_end_early(struct rdmatensor_gather *gather)
{
	spin_lock_bh(&gather->lock);
	/* Before that gather_queue() would lose the work to the cancellation, and sees the stop */
	if (gather->queued && cancel_work(&gather->work))
		queue_work(gather->gathers->end_wq, &gather->work);
	spin_unlock_bh(&gather->lock);
}

static void gather_queue(struct rdmatensor_gather *gather)
{
	struct rdmatensor_gathers *gathers = gather->gathers;

	/* The gather may be freed as soon as the lock is */
	spin_lock_bh(&gather->lock);
	gather->queued = true;
	queue_work(gather->stop ? gathers->end_wq : gathers->wq, &gather->work);
	spin_unlock_bh(&gather->lock);
}

static void gather_cancel(struct rdmatensor_operation *op, const struct rdmatensor_status *status)
{
	struct rdmatensor_gather *gather = to_gather(op);

	if (gather_stop(gather, status->error, NULL))
		gather_end_early(gather);
}

static void gather_expire(struct rdmatensor_operation *op)
{
	struct rdmatensor_gather *gather = to_gather(op);

	if (rdmatensor_operation_early(op))
		return;
	if (!gather_stop(gather, -ETIMEDOUT, NULL))
		return;
	rdmatensor_operation_timed_out(op);
	gather_end_early(gather);
}

static void gather_describe(struct rdmatensor_operation *op,
			    struct rdmatensor_operation_info *info)
{
	struct rdmatensor_gather *gather = to_gather(op);

	info->state = READ_ONCE(gather->stop) ? "STOPPING" : "GATHERING";
	info->name = gather->name;
	info->name_len = gather->name_len;
}

static u64 gather_pieces(const struct rdmatensor_gather *gather)
{
	return DIV_ROUND_UP_ULL(gather->nr_ids, GATHER_CHUNK);
}

static void gather_free_ids(struct rdmatensor_gather *gather)
{
	u64 i;

	if (!gather->ids)
		return;
	for (i = 0; i < gather_pieces(gather); i++)
		kvfree(gather->ids[i]);
	kvfree(gather->ids);
	gather->ids = NULL;
}

/* What gather_alloc() and gather_take_ids() have allocated */
static void gather_free(struct rdmatensor_gather *gather)
{
	int i;

	for (i = 0; i < 2; i++) {
		kvfree(gather->chunks[i].ids);
		kvfree(gather->chunks[i].ends);
		kvfree(gather->chunks[i].nexts);
	}
	gather_free_ids(gather);
	kvfree(gather->parts);
	kvfree(gather->order);
	kvfree(gather->reads);
	kvfree(gather->wrs);
	kvfree(gather->sges);
	kvfree(gather->lists);
	kvfree(gather->lanes);
	kvfree(gather->flying);
}

/* Any context: the work item has freed the rest */
static void gather_release(struct rdmatensor_operation *op)
{
	kfree(to_gather(op));
}

/* A failed gather tells how many rows are missing, and the position of the first */
static void gather_entry(const struct rdmatensor_operation *op, int error,
			 struct rdmatensor_cqe *cqe)
{
	const struct rdmatensor_gather *gather = container_of(op, struct rdmatensor_gather, op);

	if (error) {
		cqe->tensor_bytes = gather->nr_ids - gather->delivered;
		cqe->offset = gather->missing;
	} else {
		cqe->tensor_bytes = gather->bytes;
		cqe->pool_id = op->pool_id;
		cqe->offset = gather->offset;
	}
}

static const struct rdmatensor_operation_kind gather_kind = {
	.cqe_type = RDMATENSOR_CQE_GATHER,
	.submitted = RDMATENSOR_STAT_GATHERS,
	.completed = RDMATENSOR_STAT_GATHERED,
	.failed = RDMATENSOR_STAT_GATHER_ERRORS,
	.entry = gather_entry,
};

static const struct rdmatensor_operation_ops gather_ops = {
	.kind = &gather_kind,
	.cancel = gather_cancel,
	.expire = gather_expire,
	.describe = gather_describe,
	.release = gather_release,
};

/* Rows [@from, @to) of the chunk are not delivered */
static void gather_miss(struct rdmatensor_gather *gather, const struct gather_chunk *chunk,
			u32 from, u32 to)
{
	u32 i;

	for (i = from; i < to; i++)
		gather->missing = min(gather->missing, chunk->base + chunk->ids[i].pos);
}

static u64 gather_value(const struct rdmatensor_gather *gather, u64 at)
{
	const void *piece = gather->ids[at / GATHER_CHUNK];
	u32 i = at % GATHER_CHUNK;

	return gather->wide ? ((const u64 *)piece)[i] : ((const u32 *)piece)[i];
}

static void gather_out_of_range(struct rdmatensor_gather *gather, u64 at, u64 id)
{
	char text[96];

	snprintf(text, sizeof(text), "id %llu at position %llu is not in 0..%llu", id, at,
		 rdmatensor_table_ids(gather->table) - 1);
	gather->missing = min(gather->missing, at);
	gather_stop(gather, -ERANGE, text);
}

/* Position of the id that is processed as the @at'th */
static u64 gather_position(const struct rdmatensor_gather *gather, u64 at)
{
	return gather->order ? gather->order[at] : at;
}

/* The rows of that id and of all after it are not delivered */
static void gather_miss_rest(struct rdmatensor_gather *gather, u64 at)
{
	/* Without an order the first is the least */
	for (; at < gather->nr_ids; at++) {
		gather->missing = min(gather->missing, gather_position(gather, at));
		if (!gather->order)
			break;
		if (at % GATHER_CHUNK == 0)
			cond_resched();
	}
}

static void gather_note_part(struct rdmatensor_gather *gather, u64 at,
			     const struct rdmatensor_gather_id *id)
{
	const struct rdmatensor_source *source = &gather->table->sources[id->source];

	if (!gather->parts)
		return;
	if (id->source < gather->last.source ||
	    (id->source == gather->last.source && id->row < gather->last.row))
		gather->unsorted = true;
	gather->last = *id;
	gather->parts[at] = rdmatensor_plan_part(id->row, source->row_start, source->row_end);
}

/*
 * Resolves @nr ids from the @at'th on. @chunk: NULL: only checks them, and notes their parts.
 * False: the gather has stopped
 */
static bool gather_load(struct rdmatensor_gather *gather, u64 at, u32 nr,
			struct gather_chunk *chunk)
{
	struct rdmatensor_gather_id scratch;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct rdmatensor_gather_id *id = chunk ? &chunk->ids[i] : &scratch;
		u64 position = gather_position(gather, at + i);
		u64 value = gather_value(gather, position);

		if (rdmatensor_table_find(gather->table, value, id)) {
			gather_out_of_range(gather, position, value);
			return false;
		}
		if (chunk)
			id->pos = position - chunk->base;
		else
			gather_note_part(gather, position, id);
		if (i % GATHER_IDS)
			continue;
		if (READ_ONCE(gather->stop))
			return false;
		cond_resched();
	}
	return !READ_ONCE(gather->stop);
}

/* Copies the piece that begins at @at */
static int gather_take_piece(struct rdmatensor_gather *gather, const void __user *from, u64 at)
{
	u32 nr = min_t(u64, gather->nr_ids - at, GATHER_CHUNK);
	u32 width = gather->wide ? sizeof(u64) : sizeof(u32);
	unsigned long left;
	void *piece;

	/* RETRY_MAYFAIL: too many ids must not make the OOM killer run */
	piece = kvmalloc_array(nr, width, RDMATENSOR_GFP_SPARING);
	if (!piece && gather->parts) {
		/* The ids are needed, their order is not */
		kvfree(gather->parts);
		gather->parts = NULL;
		return gather_take_piece(gather, from, at);
	}
	if (!piece)
		return -ENOMEM;
	gather->ids[at / GATHER_CHUNK] = piece;
	left = copy_from_user(piece, from + at * width, nr * width);
	if (fatal_signal_pending(current))
		return -EINTR;
	if (left) {
		gather->missing = at + nr - DIV_ROUND_UP(left, width);
		gather_stop(gather, -EFAULT, "the ids cannot be read");
		return 0;
	}
	gather_load(gather, at, nr, NULL);
	return 0;
}

/* If there are more ids than a chunk holds, and memory: they will be put in order */
static void gather_alloc_parts(struct rdmatensor_gather *gather)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN;

	if (gather->nr_ids > GATHER_CHUNK && gather->nr_ids <= U32_MAX &&
	    !rdmatensor_fault(-ENOMEM))
		gather->parts = kvmalloc_array(gather->nr_ids, sizeof(*gather->parts), gfp);
}

static void gather_make_order(struct rdmatensor_gather *gather)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN;
	u32 *begins, *order;

	/* Sorted ids need no order */
	if (!gather->unsorted) {
		kvfree(gather->parts);
		gather->parts = NULL;
	}
	if (!gather->parts)
		return;
	begins = kvmalloc_array(RDMATENSOR_PARTS, sizeof(*begins), gfp);
	order = kvmalloc_array(gather->nr_ids, sizeof(*order), gfp);
	if (begins && order) {
		rdmatensor_plan_order(gather->parts, gather->nr_ids, begins, order);
		gather->order = order;
	} else {
		kvfree(order);
	}
	kvfree(begins);
	kvfree(gather->parts);
	gather->parts = NULL;
}

/*
 * In the submitting task. Return: 0: all ids are copied and in the table's range, or the
 * gather has stopped; -ENOMEM; -EINTR: the task is being killed
 */
static int gather_take_ids(struct rdmatensor_gather *gather, u64 uptr)
{
	const void __user *from = u64_to_user_ptr(uptr);
	int ret = 0;
	u64 at;

	might_sleep();
	gather->ids = kvcalloc(max(gather_pieces(gather), 1ULL), sizeof(*gather->ids),
			       RDMATENSOR_GFP_SPARING);
	if (!gather->ids)
		return -ENOMEM;
	gather_alloc_parts(gather);
	for (at = 0; !ret && !gather->stop && at < gather->nr_ids; at += GATHER_CHUNK)
		ret = gather_take_piece(gather, from, at);
	if (!ret && !gather->stop)
		gather_make_order(gather);
	return ret;
}

/* Where the ids of each source begin and end, once they are sorted */
static void gather_split(struct rdmatensor_gather *gather, struct gather_chunk *chunk)
{
	u32 nr = gather->table->nr_sources + gather->table->nr_caches, i = 0, s;

	for (s = 0; s < nr; s++) {
		chunk->nexts[s] = i;
		while (i < chunk->nr && chunk->ids[i].source == s)
			i++;
		chunk->ends[s] = i;
	}
}

static void gather_list_done(struct rdmatensor_readlist *read)
{
	struct gather_list *list = container_of(read, struct gather_list, read);
	struct rdmatensor_gather *gather = list->gather;

	spin_lock_bh(&gather->lock);
	list_add_tail(&list->item, &gather->done);
	/* Under the lock: after it the gather may be freed */
	gather_wake(gather);
	spin_unlock_bh(&gather->lock);
}

static u64 gather_place(const struct rdmatensor_gather *gather, const struct gather_chunk *chunk,
			const struct rdmatensor_gather_id *id)
{
	return gather->offset + (chunk->base + id->pos) * gather->table->row_bytes;
}

/* All READs of the list are done: copies the rows that several ids name */
static void gather_completed(struct rdmatensor_gather *gather, struct gather_list *list)
{
	struct gather_chunk *chunk = list->chunk;
	const struct rdmatensor_gather_id *read = NULL;
	struct rdmatensor_pool *pool = gather->op.pool;
	u32 i, copies = 0;

	for (i = list->first; i < list->first + list->nr; i++) {
		const struct rdmatensor_gather_id *id = &chunk->ids[i];

		if (i == list->first || !rdmatensor_plan_repeats(id) ||
		    !rdmatensor_pool_reachable(pool)) {
			read = id;
			continue;
		}
		rdmatensor_pool_copy(pool, gather_place(gather, chunk, id), pool,
				     gather_place(gather, chunk, read),
				     gather->table->row_bytes);
		copies++;
	}
	if (copies)
		rdmatensor_count_add(gather_counters(gather), RDMATENSOR_STAT_GATHER_COPIES,
				     copies);
	gather->delivered += list->nr;
}

static void gather_give_up(struct rdmatensor_gather *gather, struct gather_list *list)
{
	gather_miss(gather, list->chunk, list->first, list->first + list->nr);
	list->chunk->pending--;
	list_add(&list->item, &gather->free);
}

static void gather_judge(struct rdmatensor_gather *gather, struct gather_list *list)
{
	u32 s = list->chunk->ids[list->first].source;
	struct rdmatensor_source *source = &gather->table->sources[s];

	gather->flying[s]--;
	if (!list->read.status) {
		gather_completed(gather, list);
		list->chunk->pending--;
		list_add(&list->item, &gather->free);
		return;
	}
	if (list->read.status == -ESTALE) {
		WRITE_ONCE(source->stale, true);
		gather_stop_stale(gather, source);
	} else if (list->tries >= GATHER_TRIES) {
		gather_stop(gather, -EIO, "reads fail again and again");
	}
	list_add_tail(&list->item, &gather->again);
}

/* Processes lists that are done. True: there were any */
static bool gather_reap(struct rdmatensor_gather *gather)
{
	struct gather_list *list, *next;
	LIST_HEAD(done);

	spin_lock_bh(&gather->lock);
	list_splice_init(&gather->done, &done);
	spin_unlock_bh(&gather->lock);
	if (list_empty(&done))
		return false;
	list_for_each_entry_safe(list, next, &done, item) {
		list_del_init(&list->item);
		gather_judge(gather, list);
	}
	cond_resched();
	return true;
}

static void gather_make_wrs(struct rdmatensor_gather *gather,
			    const struct rdmatensor_source *source, u32 nr_reads)
{
	struct ib_sge *sge = gather->sges;
	u64 covered;
	u32 i, k;

	for (i = 0; i < nr_reads; i++) {
		const struct rdmatensor_read *read = &gather->reads[i];
		u64 key = (read->addr >> source->plan.seg_shift) -
			  (source->plan.addr >> source->plan.seg_shift);
		struct ib_rdma_wr *wr = &gather->wrs[i];

		memset(wr, 0, sizeof(*wr));
		wr->wr.opcode = IB_WR_RDMA_READ;
		wr->wr.sg_list = sge;
		wr->wr.num_sge = read->nr_pieces;
		wr->remote_addr = read->addr;
		wr->rkey = source->rkeys[key];
		for (k = 0; k < read->nr_pieces; k++)
			rdmatensor_pool_sge(gather->op.pool, read->pieces[k].offset,
					    read->pieces[k].bytes, sge++, 1, &covered);
	}
}

static u32 gather_cut(struct rdmatensor_gather *gather, struct gather_chunk *chunk,
		      const struct rdmatensor_source *source, u32 first, u32 end,
		      u32 *nr_reads)
{
	const struct rdmatensor_plan_dest dest = {
		.offset = gather->offset + chunk->base * gather->table->row_bytes,
		.row_bytes = gather->table->row_bytes,
		.seg_shift = gather->op.pool->reg.seg_shift,
		.max_pieces = source->readers->max_pieces,
		.repeats = !rdmatensor_pool_reachable(gather->op.pool),
	};

	return rdmatensor_plan_cut(chunk->ids + first, end - first, &source->plan, &dest,
				   gather->gathers->cq_mod, gather->reads, gather->room,
				   nr_reads);
}

/* A lane of the source with space for a list, in turns. NULL: none */
static struct rdmatensor_readlane *gather_lane(struct rdmatensor_gather *gather, u32 s)
{
	struct rdmatensor_readers *readers = gather->table->sources[s].readers;
	u8 nr = READ_ONCE(readers->nr_lanes), i;

	for (i = 0; i < nr; i++) {
		struct rdmatensor_readlane *lane =
			&readers->lanes[(gather->lanes[s] + i) % nr];

		if (READ_ONCE(lane->state) == RDMATENSOR_READLANE_UP &&
		    !READ_ONCE(lane->probes) && READ_ONCE(lane->room) >= gather->room) {
			gather->lanes[s] = (gather->lanes[s] + i + 1) % nr;
			return lane;
		}
	}
	return NULL;
}

static bool gather_try_list(struct rdmatensor_gather *gather, struct gather_list *list,
			    u32 s, u32 end)
{
	struct rdmatensor_source *source = &gather->table->sources[s];
	struct rdmatensor_readlane *lane = gather_lane(gather, s);
	u32 nr_reads;

	if (!lane)
		return false;
	list->nr = gather_cut(gather, list->chunk, source, list->first, end, &nr_reads);
	gather_make_wrs(gather, source, nr_reads);
	list->read.done = gather_list_done;
	list->tries++;
	if (rdmatensor_readlane_post(lane, &list->read, gather->wrs, nr_reads)) {
		list->tries--;
		return false;
	}
	rdmatensor_count(gather_counters(gather), RDMATENSOR_STAT_GATHER_LISTS);
	rdmatensor_count_add(gather_counters(gather), RDMATENSOR_STAT_GATHER_READS, nr_reads);
	return true;
}

/* All lanes of the source take READs */
static bool gather_is_served(const struct rdmatensor_gather *gather, u32 s)
{
	const struct rdmatensor_readers *readers = gather->table->sources[s].readers;
	u8 nr = READ_ONCE(readers->nr_lanes), i;

	for (i = 0; i < nr; i++)
		if (READ_ONCE(readers->lanes[i].state) != RDMATENSOR_READLANE_UP ||
		    READ_ONCE(readers->lanes[i].probes))
			return false;
	return true;
}

/* Posts [list->first, @end), or as much of it as fits. True: it is in flight */
static bool gather_post_list(struct rdmatensor_gather *gather, struct gather_list *list,
			     u32 s, u32 end)
{
	bool posted = gather_try_list(gather, list, s, end);

	/*
	 * A list of its own will wake it, unless it is on a lane that may not complete; those of
	 * others give their room back, and do not
	 */
	if (!posted && (!gather->flying[s] || !gather_is_served(gather, s))) {
		rdmatensor_readers_starve(gather->table->sources[s].readers);
		posted = gather_try_list(gather, list, s, end);
	}
	gather->flying[s] += posted;
	return posted;
}

/*
 * Connects the lanes of a source of which none is UP. Only when there is nothing else to do,
 * as it may take long. False: another gather is doing so
 */
static bool gather_revive(struct rdmatensor_gather *gather, u32 s)
{
	struct rdmatensor_source *source = &gather->table->sources[s];
	char text[RDMATENSOR_TEXT_MAX];
	int ret;

	if (rdmatensor_readers_up(source->readers))
		return true;
	ret = rdmatensor_readers_connect(source->readers, gather->gathers->lanes,
					 gather->gathers->connect_ms, &gather->stop);
	if (ret == -EBUSY)
		return false;
	if (!ret)
		return true;
	/* Without effect if the gather has stopped meanwhile */
	snprintf(text, sizeof(text), "no lane to '%s' is left (%d)", source->worker, ret);
	gather_stop(gather, ret == -ENOTCONN ? -ECONNRESET : ret, text);
	return true;
}

/* Posts lists whose lane failed on other lanes. True: at least one is in flight again */
static bool gather_post_again(struct rdmatensor_gather *gather)
{
	struct gather_list *list, *next;
	bool progress = false;
	LIST_HEAD(again);

	list_splice_init(&gather->again, &again);
	list_for_each_entry_safe(list, next, &again, item) {
		u32 rows = list->nr;

		/* Unlinked before it is posted: it may be done before that returns */
		list_del_init(&list->item);
		if (!gather_post_list(gather, list, list->chunk->ids[list->first].source,
				      list->first + rows)) {
			list_add_tail(&list->item, &gather->again);
			continue;
		}
		/* The same ids make the same READs */
		WARN_ON_ONCE(list->nr != rows);
		rdmatensor_count_add(gather_counters(gather), RDMATENSOR_STAT_GATHER_AGAIN, rows);
		progress = true;
	}
	return progress;
}

/* Posts one list of each source that has more. True: at least one is in flight */
static bool gather_post(struct rdmatensor_gather *gather, struct gather_chunk *chunk)
{
	struct gather_list *list;
	bool progress = false;
	u32 s;

	for (s = 0; s < gather->table->nr_sources; s++) {
		if (chunk->nexts[s] == chunk->ends[s] || !gather->table->sources[s].readers)
			continue;
		list = list_first_entry_or_null(&gather->free, struct gather_list, item);
		if (!list)
			break;
		list->chunk = chunk;
		list->first = chunk->nexts[s];
		list->tries = 0;
		list_del_init(&list->item);
		chunk->pending++;
		if (!gather_post_list(gather, list, s, chunk->ends[s])) {
			chunk->pending--;
			list_add(&list->item, &gather->free);
			continue;
		}
		chunk->nexts[s] += list->nr;
		progress = true;
	}
	return progress;
}

/* Copies some own or cached rows. True: there were any */
static bool gather_copy(struct rdmatensor_gather *gather, struct gather_chunk *chunk)
{
	const struct rdmatensor_table *table = gather->table;
	u32 nr = table->nr_sources + table->nr_caches, left = GATHER_COPIES, first, s;

	for (s = 0; s < nr && left; s++) {
		const struct rdmatensor_source *source = &table->sources[s];

		if (source->readers)
			continue;
		rdmatensor_hold("gather_copy");
		first = chunk->nexts[s];
		for (; chunk->nexts[s] < chunk->ends[s] && left; chunk->nexts[s]++, left--) {
			const struct rdmatensor_gather_id *id = &chunk->ids[chunk->nexts[s]];

			rdmatensor_pool_copy(gather->op.pool, gather_place(gather, chunk, id),
					     source->pool, source->offset +
					     (id->row - source->row_start) * source->stride,
					     table->row_bytes);
		}
		/*
		 * After the copies; pairs with rdmatensor_export_withdraw(): rows that were copied
		 * after the withdrawal returned are not delivered
		 */
		smp_rmb();
		if (source->export && chunk->nexts[s] != first &&
		    READ_ONCE(source->export->withdrawn)) {
			left += chunk->nexts[s] - first;
			chunk->nexts[s] = first;
			gather_stop_stale(gather, source);
			break;
		}
	}
	if (left == GATHER_COPIES)
		return false;
	rdmatensor_count_add(gather_counters(gather), RDMATENSOR_STAT_GATHER_COPIES,
			     GATHER_COPIES - left);
	gather->delivered += GATHER_COPIES - left;
	return true;
}

static bool gather_idle(const struct rdmatensor_gather *gather, const struct gather_chunk *chunk)
{
	u32 nr = gather->table->nr_sources + gather->table->nr_caches, s;

	if (chunk->pending)
		return false;
	for (s = 0; s < nr; s++)
		if (chunk->nexts[s] != chunk->ends[s])
			return false;
	return true;
}

/* True: rows of the chunk were withdrawn, and the gather has stopped */
static bool gather_is_stale(struct rdmatensor_gather *gather, const struct gather_chunk *chunk)
{
	const struct rdmatensor_table *table = gather->table;
	u32 s;

	for (s = 0; s < table->nr_sources; s++) {
		const struct rdmatensor_source *source = &table->sources[s];

		if (chunk->nexts[s] == chunk->ends[s] ||
		    !(READ_ONCE(source->stale) ||
		      (source->export && READ_ONCE(source->export->withdrawn))))
			continue;
		gather_stop_stale(gather, source);
		return true;
	}
	return false;
}

/* False: it has stopped */
static bool gather_begin_chunk(struct rdmatensor_gather *gather, struct gather_chunk *chunk, u64 at)
{
	chunk->base = gather->order ? 0 : at;
	chunk->nr = min_t(u64, gather->nr_ids - at, GATHER_CHUNK);
	if (!gather_load(gather, at, chunk->nr, chunk))
		return false;
	if (!gather->order) {
		kvfree(gather->ids[at / GATHER_CHUNK]);
		gather->ids[at / GATHER_CHUNK] = NULL;
	}
	rdmatensor_plan_sort(chunk->ids, chunk->nr);
	gather_split(gather, chunk);
	return !gather_is_stale(gather, chunk);
}

/* Does what can be done now. True: that was something */
static bool gather_step(struct rdmatensor_gather *gather, struct gather_chunk *older,
			struct gather_chunk *newer)
{
	bool progress = gather_reap(gather);

	if (READ_ONCE(gather->stop))
		return true;
	progress |= gather_post_again(gather);
	progress |= gather_post(gather, older);
	progress |= gather_post(gather, newer);
	/* While READs are in flight */
	progress |= gather_copy(gather, older) || gather_copy(gather, newer);
	cond_resched();
	return progress;
}

/* Waits, unless a source that is needed has lost all its lanes */
static void gather_wait(struct rdmatensor_gather *gather, struct wait_queue_entry *wait)
{
	const struct rdmatensor_source *sources = gather->table->sources;
	struct gather_list *list;
	u32 s;
	int i;

	list = list_first_entry_or_null(&gather->again, struct gather_list, item);
	s = list ? list->chunk->ids[list->first].source : 0;
	if (list && !rdmatensor_readers_up(sources[s].readers) && gather_revive(gather, s))
		return;
	for (i = 0; i < 2; i++)
		for (s = 0; s < gather->table->nr_sources; s++)
			if (gather->chunks[i].nexts[s] != gather->chunks[i].ends[s] &&
			    sources[s].readers && !rdmatensor_readers_up(sources[s].readers) &&
			    gather_revive(gather, s))
				return;
	wait_woken(wait, TASK_IDLE, MAX_SCHEDULE_TIMEOUT);
}

/* Of sources whose other lanes serve meanwhile */
static void gather_restore_lanes(struct rdmatensor_gather *gather)
{
	u32 s;

	for (s = 0; s < gather->table->nr_sources; s++) {
		const struct rdmatensor_source *source = &gather->table->sources[s];

		if (source->readers && !READ_ONCE(source->stale))
			rdmatensor_readers_restore(source->readers);
	}
}

static void gather_all(struct rdmatensor_gather *gather, struct wait_queue_entry *wait)
{
	u64 at = 0;
	int k = 0;

	while (!READ_ONCE(gather->stop)) {
		struct gather_chunk *chunk = &gather->chunks[k], *other = &gather->chunks[!k];

		if (at < gather->nr_ids && gather_idle(gather, chunk)) {
			if (!gather_begin_chunk(gather, chunk, at))
				break;
			at += chunk->nr;
			k = !k;
			continue;
		}
		if (at == gather->nr_ids && gather_idle(gather, chunk) &&
		    gather_idle(gather, other))
			return;
		if (!gather_step(gather, chunk, other))
			gather_wait(gather, wait);
	}
	gather_miss_rest(gather, at);
}

/* Waits until nothing writes to the destination any more, and notes missing rows */
static void gather_settle(struct rdmatensor_gather *gather, struct wait_queue_entry *wait)
{
	u32 nr = gather->table->nr_sources + gather->table->nr_caches, s;
	struct gather_list *list, *next;
	int i;

	for (;;) {
		bool reaped = gather_reap(gather);

		list_for_each_entry_safe(list, next, &gather->again, item) {
			list_del_init(&list->item);
			gather_give_up(gather, list);
		}
		if (!gather->chunks[0].pending && !gather->chunks[1].pending)
			break;
		if (!reaped)
			wait_woken(wait, TASK_IDLE, MAX_SCHEDULE_TIMEOUT);
	}
	for (i = 0; i < 2; i++)
		for (s = 0; s < nr; s++)
			gather_miss(gather, &gather->chunks[i], gather->chunks[i].nexts[s],
				    gather->chunks[i].ends[s]);
}

static void gather_work(struct work_struct *work)
{
	struct rdmatensor_gather *gather = container_of(work, struct rdmatensor_gather, work);
	struct gather_sleeper sleeper = { .gather = gather };
	int error;

	init_waitqueue_func_entry(&sleeper.entry, gather_woken);
	sleeper.entry.private = current;
	add_wait_queue(&gather->gathers->wait, &sleeper.entry);
	if (!READ_ONCE(gather->stop)) {
		gather_restore_lanes(gather);
		gather_all(gather, &sleeper.entry);
	}
	gather_settle(gather, &sleeper.entry);
	remove_wait_queue(&gather->gathers->wait, &sleeper.entry);

	/* From here on gather_stop() has no effect */
	spin_lock_bh(&gather->lock);
	error = gather->stop;
	if (!error)
		WRITE_ONCE(gather->stop, 1);
	spin_unlock_bh(&gather->lock);

	WARN_ON_ONCE(!error && gather->delivered != gather->nr_ids);
	/* Stopped before the first chunk: all rows are missing */
	if (gather->missing == U64_MAX)
		gather->missing = 0;
	rdmatensor_count_add(gather_counters(gather), RDMATENSOR_STAT_GATHERED_ROWS,
			     gather->delivered);
	/* Before the entry: once it is visible the process may close the table and the context */
	rdmatensor_table_put(gather->table);
	gather->table = NULL;
	gather_free(gather);
	rdmatensor_operation_finish(&gather->op, error, gather->bytes);
	rdmatensor_operation_put(&gather->op);
}

static int gather_alloc_chunk(struct gather_chunk *chunk, u32 nr, u32 nr_sources)
{
	chunk->ids = kvmalloc_array(nr, sizeof(*chunk->ids), RDMATENSOR_GFP_SPARING);
	chunk->ends = kvcalloc(nr_sources, sizeof(*chunk->ends), RDMATENSOR_GFP_SPARING);
	chunk->nexts = kvcalloc(nr_sources, sizeof(*chunk->nexts), RDMATENSOR_GFP_SPARING);
	return chunk->ids && chunk->ends && chunk->nexts ? 0 : -ENOMEM;
}

static int gather_alloc(struct rdmatensor_gather *gather, u64 nr_ids, u8 max_pieces)
{
	u32 nr = max_t(u64, min_t(u64, nr_ids, GATHER_CHUNK), 1), nr_lists, i;
	u32 nr_sources = gather->table->nr_sources + gather->table->nr_caches;

	gather->reads = kvmalloc_array(gather->room, sizeof(*gather->reads),
				       RDMATENSOR_GFP_SPARING);
	gather->wrs = kvmalloc_array(gather->room, sizeof(*gather->wrs), RDMATENSOR_GFP_SPARING);
	gather->sges = kvmalloc_array(array_size(gather->room, max_pieces),
				      sizeof(*gather->sges), RDMATENSOR_GFP_SPARING);
	gather->lanes = kvcalloc(nr_sources, sizeof(*gather->lanes), RDMATENSOR_GFP_SPARING);
	gather->flying = kvcalloc(nr_sources, sizeof(*gather->flying), RDMATENSOR_GFP_SPARING);
	nr_lists = min(nr, GATHER_LISTS);
	gather->lists = kvcalloc(nr_lists, sizeof(*gather->lists), RDMATENSOR_GFP_SPARING);
	if (!gather->reads || !gather->wrs || !gather->sges ||
	    !gather->lanes || !gather->flying || !gather->lists)
		return -ENOMEM;
	for (i = 0; i < nr_lists; i++) {
		gather->lists[i].gather = gather;
		list_add_tail(&gather->lists[i].item, &gather->free);
	}
	return gather_alloc_chunk(&gather->chunks[0], nr, nr_sources) ?:
	       gather_alloc_chunk(&gather->chunks[1], nr, nr_sources);
}

/* READs that a list can hold, and pieces of a READ. 0: a lane cannot take that many */
static u32 gather_room(const struct rdmatensor_gathers *gathers,
		       const struct rdmatensor_table *table, u8 dest_shift, u8 *max_pieces)
{
	u32 room = gathers->cq_mod, i;

	*max_pieces = 1;
	for (i = 0; i < table->nr_sources; i++) {
		const struct rdmatensor_source *source = &table->sources[i];

		if (!source->readers)
			continue;
		*max_pieces = max(*max_pieces, source->readers->max_pieces);
		room = max(room, rdmatensor_plan_row_reads(table->row_bytes,
							   source->plan.seg_shift, dest_shift,
							   source->readers->max_pieces));
	}
	return room > gathers->queue_depth ? 0 : room;
}

/* Own and cached rows are copied, from where to where the CPU reaches */
static bool gather_reaches(const struct rdmatensor_gather_args *args)
{
	const struct rdmatensor_table *table = args->table;
	u32 i;

	for (i = 0; i < table->nr_sources + table->nr_caches; i++) {
		const struct rdmatensor_source *source = &table->sources[i];

		if (!source->readers && !(rdmatensor_pool_reachable(source->pool) &&
					  rdmatensor_pool_reachable(args->pool)))
			return false;
	}
	return true;
}

int rdmatensor_gather_submit(struct rdmatensor_gathers *gathers,
			     const struct rdmatensor_gather_args *args)
{
	const struct rdmatensor_operation_args op_args = {
		.channel = RDMATENSOR_CHANNEL_SELF,
		.user_data = args->user_data,
		.pool = args->pool,
		.offset = args->offset,
		.bytes = args->bytes,
	};
	struct rdmatensor_gather *gather;
	u8 max_pieces;
	u64 bytes;
	int ret;

	if (check_mul_overflow(args->nr_ids, (u64)args->table->row_bytes, &bytes) ||
	    bytes > args->bytes)
		return -EMSGSIZE;
	if (!gather_reaches(args))
		return -EOPNOTSUPP;
	gather = kzalloc(struct_size(gather, name, args->table->name_len), RDMATENSOR_GFP_SPARING);
	if (!gather)
		return -ENOMEM;
	gather->name_len = args->table->name_len;
	memcpy(gather->name, args->table->name, gather->name_len);
	gather->gathers = gathers;
	gather->table = args->table;
	gather->offset = args->offset;
	gather->bytes = bytes;
	gather->nr_ids = args->nr_ids;
	gather->wide = args->wide;
	gather->missing = U64_MAX;
	spin_lock_init(&gather->lock);
	INIT_LIST_HEAD(&gather->done);
	INIT_LIST_HEAD(&gather->free);
	INIT_LIST_HEAD(&gather->again);
	INIT_WORK(&gather->work, gather_work);

	gather->room = gather_room(gathers, args->table, args->pool->reg.seg_shift,
				   &max_pieces);
	ret = gather->room ? gather_alloc(gather, args->nr_ids, max_pieces) : -EOVERFLOW;
	if (!ret)
		ret = rdmatensor_operation_init(&gather->op, &gather_ops, gathers->core,
						&gathers->core->counters, &op_args);
	if (ret)
		goto out_free;
	ret = gather_take_ids(gather, args->ids_uptr);
	if (ret)
		goto out_abandon;
	rdmatensor_operation_begin(&gather->op, args->deadline_ns);
	gather_queue(gather);
	return 0;

out_abandon:
	rdmatensor_operation_abandon(&gather->op);
out_free:
	gather_free(gather);
	kfree(gather);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_gather_submit);

int rdmatensor_gathers_init(struct rdmatensor_gathers *gathers,
			    struct rdmatensor_core *core)
{
	init_waitqueue_head(&gathers->wait);
	gathers->core = core;
	gathers->wq = alloc_workqueue("rdmatensor_gather", WQ_UNBOUND, GATHERS_AT_WORK);
	if (!gathers->wq)
		return -ENOMEM;
	gathers->end_wq = alloc_workqueue("rdmatensor_gather_end", WQ_UNBOUND, 0);
	if (!gathers->end_wq)
		goto out_destroy_wq;
	gathers->restore_wq = alloc_workqueue("rdmatensor_restore", WQ_UNBOUND, 0);
	if (!gathers->restore_wq)
		goto out_destroy_end_wq;
	return 0;

out_destroy_end_wq:
	destroy_workqueue(gathers->end_wq);
out_destroy_wq:
	destroy_workqueue(gathers->wq);
	return -ENOMEM;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_gathers_init);

void rdmatensor_gathers_destroy(struct rdmatensor_gathers *gathers)
{
	destroy_workqueue(gathers->wq);
	destroy_workqueue(gathers->end_wq);
	destroy_workqueue(gathers->restore_wq);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_gathers_destroy);
