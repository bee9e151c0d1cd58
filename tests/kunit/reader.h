/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reader that gathers over a device which does what the suite says: READs wait until
 * they are told how to end. The owners' memory is a function of the address.
 *
 * As a device does it, READs of a lane end in the order of posting, one that is not
 * signalled without a completion if it succeeds; after the first that fails all others are
 * flushed. A lane that has failed is never connected again.
 *
 * Which rows have completed is worked out here too, from the completions alone: a READ is when
 * its own or a later one of its lane was signalled and has succeeded.
 */
#ifndef RDMATENSOR_KUNIT_READER_H
#define RDMATENSOR_KUNIT_READER_H

#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "end.h"
#include "gather/gather.h"
#include "transport/cm.h"

#define READER_SOURCES_MAX 3
#define READER_IDS_MAX 512
#define READER_ROWS_MAX 1024
#define READER_USER_DATA 77

/**
 * struct reader_config - what there is
 * @sources: owners, 1..READER_SOURCES_MAX
 * @lanes: to each
 * @rows: of all owners together, a multiple of @sources
 * @row_bytes: of a row; the next one follows it
 * @cq_mod: READs of a list
 * @queue_depth: READs of a lane
 */
struct reader_config {
	u32 sources;
	u8 lanes;
	u32 rows;
	u32 row_bytes;
	u32 cq_mod;
	u32 queue_depth;
};

/**
 * struct reader_read - a READ that was posted, or an empty write: a probe
 * @item: among its lane's that are in flight, or that have not arrived
 * @cqe: who hears of it
 * @qp: where it was posted
 * @signalled: of its success, too
 * @addr: in the owner
 * @bytes: its length
 * @nr_sge: members of @sge
 * @sge: destinations
 */
struct reader_read {
	struct list_head item;
	struct ib_cqe *cqe;
	struct ib_qp *qp;
	bool signalled;
	u64 addr;
	u32 bytes;
	int nr_sge;
	struct ib_sge sge[RDMATENSOR_PIECES_MAX];
};

/**
 * struct reader_lane - a queue pair
 * @reader: whose
 * @source: number of the owner
 * @id: of the module's lane
 * @qp: of the module's lane
 * @lane: the module's
 * @posted: READs in flight, the oldest first
 * @arrived: READs that have ended well and are not completed
 * @takes: READs until posting fails; U32_MAX: it does not
 */
struct reader_lane {
	struct reader *reader;
	u32 source;
	struct rdma_cm_id id;
	struct ib_qp qp;
	struct rdmatensor_readlane *lane;
	struct list_head posted;
	struct list_head arrived;
	u32 takes;
};

/**
 * struct reader - see above
 * @test: the case
 * @config: see above
 * @end: core and pool
 * @ibdev: has one verb
 * @adapter: what lanes ask of it
 * @cm: what READ lanes ask of the connection manager
 * @gathers: that are tried
 * @table: of all owners
 * @down_wq: where lanes that have failed wait, behind @stuck, to be taken apart
 * @stuck: waits for @release
 * @release: the end
 * @lock: guards the lanes' @posted and what is counted
 * @nr_posted: READs in flight
 * @nr_posts: READs posted in the last gather
 * @lanes: of each owner
 * @uptr: the ids, in the process's memory
 * @ids: the same
 * @deadline_ns: of the next gather; 0: none
 * @nr_ids: of the last gather
 * @completed: rows of the last gather
 */
struct reader {
	struct kunit *test;
	struct reader_config config;
	struct end *end;
	struct ib_device *ibdev;
	struct rdmatensor_adapter *adapter;
	struct rdmatensor_cm cm;
	struct rdmatensor_gathers gathers;
	struct rdmatensor_table *table;
	struct workqueue_struct *down_wq;
	struct work_struct stuck;
	struct completion release;
	spinlock_t lock;	/* see above */
	u32 nr_posted;
	u32 nr_posts;
	struct reader_lane lanes[READER_SOURCES_MAX][RDMATENSOR_LANES_MAX];
	unsigned long uptr;
	u64 ids[READER_IDS_MAX];
	u64 deadline_ns;
	u32 nr_ids;
	bool completed[READER_ROWS_MAX];
};

struct reader *reader_open(struct kunit *test, const struct reader_config *config);
/* No gather is in flight */
void reader_close(struct reader *reader);

/* Begins a gather of reader->ids */
void reader_begin(struct reader *reader, u32 nr_ids);
/* Until @nr READs are in flight, or the gather has ended. True: they are */
bool reader_wait(struct reader *reader, u32 nr);
/* False: there is no entry yet */
bool reader_has_ended(const struct reader *reader);
/* The gather has done what it can, and waits to be woken. False: it does not come to that */
bool reader_sleeps(struct reader *reader);
/* The gather's entry, which must come now; nothing may be in flight then */
void reader_end(struct reader *reader, struct rdmatensor_cqe *cqe);

/* READs in flight on a lane */
u32 reader_posted(struct reader_lane *lane);
/* The oldest READ of a lane succeeds */
void reader_succeed(struct reader_lane *lane);
/* It fails, when @arrived bytes of it are there; the others are flushed */
void reader_fail(struct reader_lane *lane, enum ib_wc_status status, u32 arrived);
/* All READs of a lane are flushed, if there are any, and it is drained */
void reader_flush(struct reader_lane *lane);

/* Of the ids' positions, those whose row has not arrived; @first: the first of them */
u32 reader_missing(const struct reader *reader, u32 *first);
/* Rows of positions [@from, @to) are where they belong, and what they should be */
void reader_expect_rows(struct reader *reader, u32 from, u32 to);
/* The entry that has come reports exactly the rows that have arrived */
void reader_expect_entry(struct reader *reader, const struct rdmatensor_cqe *cqe);

#endif /* RDMATENSOR_KUNIT_READER_H */
