// SPDX-License-Identifier: GPL-2.0
/*
 * A reader over a device that does what it is told. See reader.h.
 */
#include <linux/hash.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "reader.h"

#define POOL_BYTES (512 << 10)
/* Rows of a source have several keys, and some lie in two of their segments */
#define SOURCE_SEG_SHIFT (PAGE_SHIFT + 1)
#define SOURCE_FIRST_KEY 500
#define PATIENCE (60 * HZ)

static u64 source_addr(u32 source)
{
	return ((u64)source + 1) << 32;
}

static u8 source_byte(u64 addr)
{
	return hash_64(addr, 8);
}

static u32 source_rows(const struct reader *reader)
{
	return reader->config.rows / reader->config.sources;
}

/* What a device checks, and what the module must not rely on that it does */
static void check_read(struct reader *reader, u32 source, const struct ib_rdma_wr *wr,
		       const struct reader_read *read)
{
	const struct end *end = reader->end;
	u64 start = read->addr - source_addr(source);
	u64 last = start + read->bytes - 1;
	int i;

	KUNIT_EXPECT_EQ(reader->test, wr->wr.opcode, IB_WR_RDMA_READ);
	KUNIT_EXPECT_GT(reader->test, read->nr_sge, 0);
	KUNIT_EXPECT_LT(reader->test, last,
			(u64)source_rows(reader) * reader->config.row_bytes);
	KUNIT_EXPECT_EQ(reader->test, start >> SOURCE_SEG_SHIFT, last >> SOURCE_SEG_SHIFT);
	KUNIT_EXPECT_EQ(reader->test, wr->rkey,
			SOURCE_FIRST_KEY * (source + 1) + (start >> SOURCE_SEG_SHIFT));
	for (i = 0; i < read->nr_sge; i++) {
		u64 offset = read->sge[i].addr - END_IOVA;

		KUNIT_EXPECT_EQ(reader->test, read->sge[i].lkey,
				end->key + (offset >> END_SEG_SHIFT));
		KUNIT_EXPECT_LE(reader->test, offset + read->sge[i].length,
				(u64)reader->nr_ids * reader->config.row_bytes);
	}
}

static int take_read(struct reader_lane *lane, const struct ib_rdma_wr *wr)
{
	struct reader *reader = lane->reader;
	struct reader_read *read;
	int i;

	if (!lane->takes || wr->wr.num_sge > (int)ARRAY_SIZE(read->sge))
		return -ENOMEM;
	read = kzalloc(sizeof(*read), GFP_ATOMIC);
	if (!read)
		return -ENOMEM;
	lane->takes -= lane->takes != U32_MAX;
	read->cqe = wr->wr.wr_cqe;
	read->signalled = wr->wr.send_flags & IB_SEND_SIGNALED;
	read->addr = wr->remote_addr;
	read->nr_sge = wr->wr.num_sge;
	for (i = 0; i < read->nr_sge; i++) {
		read->sge[i] = wr->wr.sg_list[i];
		read->bytes += read->sge[i].length;
	}
	read->qp = &lane->qp;
	if (wr->wr.opcode != IB_WR_RDMA_WRITE)
		check_read(reader, lane->source, wr, read);
	else
		KUNIT_EXPECT_TRUE(reader->test, read->signalled && !read->nr_sge);
	list_add_tail(&read->item, &lane->posted);
	WRITE_ONCE(reader->nr_posted, reader->nr_posted + 1);
	reader->nr_posts++;
	return 0;
}

static int reader_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad)
{
	struct reader_lane *lane = container_of(qp, struct reader_lane, qp);
	int ret = 0;

	spin_lock(&lane->reader->lock);
	for (; wr && !ret; wr = wr->next) {
		*bad = wr;
		ret = take_read(lane, rdma_wr(wr));
	}
	spin_unlock(&lane->reader->lock);
	wake_up_interruptible(&lane->reader->end->poll_wait);
	return ret;
}

static void stay_stuck(struct work_struct *work)
{
	wait_for_completion(&container_of(work, struct reader, stuck)->release);
}

static void open_lane(struct reader *reader, u32 s, u8 i, struct rdmatensor_readers *readers)
{
	struct reader_lane *lane = &reader->lanes[s][i];

	lane->reader = reader;
	lane->source = s;
	lane->takes = U32_MAX;
	INIT_LIST_HEAD(&lane->posted);
	INIT_LIST_HEAD(&lane->arrived);
	lane->qp.device = reader->ibdev;
	lane->qp.qp_context = &readers->lanes[i];
	lane->id.device = reader->ibdev;
	lane->lane = &readers->lanes[i];
	lane->lane->conn.qp.qp = &lane->qp;
	lane->lane->conn.id = &lane->id;
	lane->lane->room = reader->config.queue_depth;
	lane->lane->state = RDMATENSOR_READLANE_UP;
}

static void open_source(struct reader *reader, u32 s)
{
	struct rdmatensor_source *source = &reader->table->sources[s];
	u32 rows = source_rows(reader), nr_keys, i;
	struct rdmatensor_readers *readers;

	readers = rdmatensor_readers_alloc(&reader->cm, &reader->end->core.counters,
					   &reader->gathers.wait, reader->down_wq,
					   reader->down_wq, reader->end->channel);
	KUNIT_ASSERT_NOT_NULL(reader->test, readers);
	/* Nothing is connected again */
	readers->closed = true;
	readers->nr_lanes = reader->config.lanes;
	for (i = 0; i < reader->config.lanes; i++)
		open_lane(reader, s, i, readers);

	source->row_start = s * rows;
	source->row_end = (s + 1) * rows;
	source->stride = reader->config.row_bytes;
	source->channel = s + 1;
	snprintf(source->worker, sizeof(source->worker), "owner-%u", s);
	source->readers = readers;
	source->plan = (struct rdmatensor_plan_source) {
		.row_start = source->row_start,
		.addr = source_addr(s),
		.stride = source->stride,
		.seg_shift = SOURCE_SEG_SHIFT,
	};
	nr_keys = rdmatensor_wire_segments(source->plan.addr, (u64)rows * source->stride,
					   SOURCE_SEG_SHIFT);
	source->rkeys = kvcalloc(nr_keys, sizeof(*source->rkeys), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(reader->test, source->rkeys);
	for (i = 0; i < nr_keys; i++)
		source->rkeys[i] = SOURCE_FIRST_KEY * (s + 1) + i;
}

static void open_table(struct reader *reader)
{
	char cause[256] = "";
	u32 s;

	reader->table = rdmatensor_table_alloc("rows", 4, reader->config.sources, 0);
	KUNIT_ASSERT_FALSE(reader->test, IS_ERR(reader->table));
	reader->table->row_bytes = reader->config.row_bytes;
	reader->table->data_type = RDMATENSOR_DT_UINT8;
	for (s = 0; s < reader->config.sources; s++)
		open_source(reader, s);
	KUNIT_ASSERT_EQ_MSG(reader->test,
			    rdmatensor_table_complete(reader->table, cause, sizeof(cause)), 0,
			    "%s", cause);
}

struct reader *reader_open(struct kunit *test, const struct reader_config *config)
{
	struct reader *reader;
	u64 offset;

	reader = kunit_kzalloc(test, sizeof(*reader), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, reader);
	reader->test = test;
	reader->config = *config;
	spin_lock_init(&reader->lock);
	reader->ibdev = kunit_kzalloc(test, sizeof(*reader->ibdev), GFP_KERNEL);
	reader->adapter = kunit_kzalloc(test, sizeof(*reader->adapter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, reader->ibdev);
	KUNIT_ASSERT_NOT_NULL(test, reader->adapter);
	reader->ibdev->ops.post_send = reader_post_send;
	reader->ibdev->attrs.max_send_sge = 5;
	reader->ibdev->attrs.max_sge_rd = 3;
	reader->adapter->ibdev = reader->ibdev;
	reader->cm.adapter = reader->adapter;
	reader->uptr = kunit_vm_mmap(test, NULL, 0, PAGE_ALIGN(sizeof(reader->ids)),
				     PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, reader->uptr, 0);

	reader->end = end_open(test, 1, POOL_BYTES, &end_params);
	KUNIT_ASSERT_LE(test, READER_IDS_MAX * config->row_bytes, POOL_BYTES);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc(&reader->end->pool->regions, POOL_BYTES,
						       GFP_KERNEL, &offset), 0);
	KUNIT_ASSERT_EQ(test, rdmatensor_gathers_init(&reader->gathers,
						      &reader->end->core), 0);
	reader->gathers.lanes = config->lanes;
	reader->gathers.cq_mod = config->cq_mod;
	reader->gathers.queue_depth = config->queue_depth;
	reader->gathers.connect_ms = 1;

	reader->down_wq = alloc_ordered_workqueue("rdmatensor_kunit_down", 0);
	KUNIT_ASSERT_NOT_NULL(test, reader->down_wq);
	init_completion(&reader->release);
	INIT_WORK(&reader->stuck, stay_stuck);
	queue_work(reader->down_wq, &reader->stuck);
	open_table(reader);
	return reader;
}

static void forget_reads(struct list_head *reads)
{
	struct reader_read *read, *next;

	list_for_each_entry_safe(read, next, reads, item) {
		list_del(&read->item);
		kfree(read);
	}
}

/* The address space that kunit_vm_mmap() has made; KUnit itself would keep it for ever */
static void drop_mm(void)
{
	struct mm_struct *mm = current->mm;

	kthread_unuse_mm(mm);
	mmput(mm);
}

void reader_close(struct reader *reader)
{
	u32 s;
	u8 i;

	rdmatensor_gathers_destroy(&reader->gathers);
	for (s = 0; s < reader->config.sources; s++)
		for (i = 0; i < reader->config.lanes; i++) {
			timer_delete_sync(&reader->lanes[s][i].lane->watch);
			/* Behind the one that is stuck: they never run */
			cancel_work_sync(&reader->lanes[s][i].lane->event_work);
			cancel_work_sync(&reader->lanes[s][i].lane->down_work);
			KUNIT_EXPECT_TRUE(reader->test,
					  list_empty(&reader->lanes[s][i].lane->lists));
			forget_reads(&reader->lanes[s][i].arrived);
		}
	complete(&reader->release);
	destroy_workqueue(reader->down_wq);
	KUNIT_EXPECT_EQ(reader->test, kref_read(&reader->table->ref), 1);
	rdmatensor_table_put(reader->table);
	end_close(reader->end);
	drop_mm();
}

void reader_begin(struct reader *reader, u32 nr_ids)
{
	struct rdmatensor_pool *pool = reader->end->pool;
	struct rdmatensor_gather_args args = {
		.user_data = READER_USER_DATA,
		.pool = pool,
		.bytes = (u64)nr_ids * reader->config.row_bytes,
		.deadline_ns = reader->deadline_ns,
		.table = reader->table,
		.ids_uptr = reader->uptr,
		.nr_ids = nr_ids,
		.wide = true,
	};
	u32 run;
	u64 at;

	KUNIT_ASSERT_EQ(reader->test, copy_to_user((void __user *)reader->uptr, reader->ids,
						   nr_ids * sizeof(reader->ids[0])), 0);
	for (at = 0; at < pool->bytes; at += run)
		memset(end_at(reader->end, at, &run), 0xee, run);
	memset(reader->completed, 0, sizeof(reader->completed));
	reader->nr_ids = nr_ids;
	reader->nr_posts = 0;
	rdmatensor_pool_get(pool);
	rdmatensor_table_get(reader->table);
	KUNIT_ASSERT_EQ(reader->test, rdmatensor_gather_submit(&reader->gathers, &args), 0);
}

bool reader_has_ended(const struct reader *reader)
{
	const struct rdmatensor_ring *ring = reader->end->core.ring.shared;

	/* Pairs with rdmatensor_ring_complete() */
	return smp_load_acquire(&ring->head) != ring->tail;
}

bool reader_wait(struct reader *reader, u32 nr)
{
	wait_event_interruptible_timeout(reader->end->poll_wait,
					 READ_ONCE(reader->nr_posted) >= nr ||
					 reader_has_ended(reader), PATIENCE);
	return READ_ONCE(reader->nr_posted) >= nr;
}

bool reader_sleeps(struct reader *reader)
{
	wait_queue_head_t *wait = &reader->gathers.wait;
	unsigned long end = jiffies + PATIENCE;
	struct wait_queue_entry *entry;
	struct task_struct *task;
	bool sleeps = false;

	/* Whoever wakes a task sets its state: it is that of a sleeper only when it sleeps again */
	while (!sleeps && !reader_has_ended(reader) && time_before(jiffies, end)) {
		spin_lock_irq(&wait->lock);
		entry = list_first_entry_or_null(&wait->head, struct wait_queue_entry, entry);
		task = entry ? entry->private : NULL;
		sleeps = task && READ_ONCE(task->__state) == TASK_IDLE;
		spin_unlock_irq(&wait->lock);
		if (!sleeps)
			schedule_timeout_uninterruptible(1);
	}
	return sleeps;
}

void reader_end(struct reader *reader, struct rdmatensor_cqe *cqe)
{
	wait_event_interruptible_timeout(reader->end->poll_wait,
					 reader_has_ended(reader), PATIENCE);
	KUNIT_ASSERT_TRUE(reader->test, end_reap(reader->end, cqe));
	KUNIT_EXPECT_EQ(reader->test, cqe->type, RDMATENSOR_CQE_GATHER);
	KUNIT_EXPECT_EQ(reader->test, cqe->user_data, READER_USER_DATA);
	/* Nothing writes to the destination any more, and nothing is kept */
	KUNIT_EXPECT_EQ(reader->test, READ_ONCE(reader->nr_posted), 0);
	KUNIT_EXPECT_EQ(reader->test, reader->end->pool->regions.nr_uses, 0);
	KUNIT_EXPECT_EQ(reader->test, kref_read(&reader->end->pool->ref), 1);
	KUNIT_EXPECT_EQ(reader->test, kref_read(&reader->table->ref), 1);
}

u32 reader_posted(struct reader_lane *lane)
{
	u32 nr;

	spin_lock_bh(&lane->reader->lock);
	nr = list_count_nodes(&lane->posted);
	spin_unlock_bh(&lane->reader->lock);
	return nr;
}

/* The oldest one is not in flight any more. NULL: there is none */
static struct reader_read *next_read(struct reader_lane *lane)
{
	struct reader *reader = lane->reader;
	struct reader_read *read;

	spin_lock_bh(&reader->lock);
	read = list_first_entry_or_null(&lane->posted, struct reader_read, item);
	if (read) {
		list_del_init(&read->item);
		WRITE_ONCE(reader->nr_posted, reader->nr_posted - 1);
	}
	spin_unlock_bh(&reader->lock);
	/* Not with the lock held: it sleeps when it has something to say */
	if (read)
		KUNIT_EXPECT_FALSE(reader->test, reader_has_ended(reader));
	return read;
}

/* The first @bytes of it */
static void arrive(struct reader *reader, const struct reader_read *read, u32 bytes)
{
	u64 addr = read->addr;
	u32 run, k;
	int i;

	for (i = 0; i < read->nr_sge; i++) {
		u8 *to = end_at(reader->end, read->sge[i].addr - END_IOVA, &run);

		KUNIT_EXPECT_GE(reader->test, run, read->sge[i].length);
		for (k = 0; k < read->sge[i].length && bytes; k++, bytes--)
			to[k] = source_byte(addr++);
	}
}

static void tell(const struct reader_read *read, enum ib_wc_status status)
{
	struct ib_wc wc = { .wr_cqe = read->cqe, .qp = read->qp, .status = status };

	read->cqe->done(NULL, &wc);
}

/* All rows that it has a part of */
static void prove(struct reader_lane *lane)
{
	struct reader *reader = lane->reader;
	const struct reader_read *read;
	u64 row, last;

	list_for_each_entry(read, &lane->arrived, item) {
		row = (read->addr - source_addr(lane->source)) / reader->config.row_bytes;
		last = (read->addr + read->bytes - 1 - source_addr(lane->source)) /
		       reader->config.row_bytes;
		for (; row <= last; row++)
			reader->completed[lane->source * source_rows(reader) + row] = true;
	}
	forget_reads(&lane->arrived);
}

void reader_succeed(struct reader_lane *lane)
{
	struct reader_read *read = next_read(lane);

	KUNIT_ASSERT_NOT_NULL(lane->reader->test, read);
	if (!read->nr_sge) {
		tell(read, IB_WC_SUCCESS);
		kfree(read);
		return;
	}
	arrive(lane->reader, read, read->bytes);
	list_add_tail(&read->item, &lane->arrived);
	if (!read->signalled)
		return;
	tell(read, IB_WC_SUCCESS);
	prove(lane);
}

void reader_flush(struct reader_lane *lane)
{
	struct reader_read *read;

	while ((read = next_read(lane))) {
		tell(read, IB_WC_WR_FLUSH_ERR);
		kfree(read);
	}
	rdmatensor_readlane_drained(lane->lane);
}

void reader_fail(struct reader_lane *lane, enum ib_wc_status status, u32 arrived)
{
	struct reader_read *read = next_read(lane);

	KUNIT_ASSERT_NOT_NULL(lane->reader->test, read);
	arrive(lane->reader, read, arrived);
	tell(read, status);
	kfree(read);
	reader_flush(lane);
}

u32 reader_missing(const struct reader *reader, u32 *first)
{
	u32 missing = 0, i;

	for (i = reader->nr_ids; i--;)
		if (!reader->completed[reader->ids[i]]) {
			*first = i;
			missing++;
		}
	return missing;
}

void reader_expect_rows(struct reader *reader, u32 from, u32 to)
{
	u32 row_bytes = reader->config.row_bytes, wrong = 0, run, i, k;

	for (i = from; i < to; i++) {
		u32 source = reader->ids[i] / source_rows(reader);
		u64 addr = source_addr(source) +
			   (reader->ids[i] - source * source_rows(reader)) * row_bytes;

		for (k = 0; k < row_bytes; k++)
			wrong += *(u8 *)end_at(reader->end, (u64)i * row_bytes + k, &run) !=
				 source_byte(addr + k);
	}
	KUNIT_EXPECT_EQ_MSG(reader->test, wrong, 0, "bytes of positions %u..%u", from, to);
}

void reader_expect_entry(struct reader *reader, const struct rdmatensor_cqe *cqe)
{
	u32 first = 0, missing = reader_missing(reader, &first);

	if (cqe->result) {
		KUNIT_EXPECT_GT(reader->test, cqe->tensor_bytes, 0);
		KUNIT_EXPECT_EQ(reader->test, cqe->tensor_bytes, missing);
		KUNIT_EXPECT_EQ(reader->test, cqe->offset, first);
		reader_expect_rows(reader, 0, cqe->offset);
		return;
	}
	KUNIT_EXPECT_EQ(reader->test, missing, 0);
	KUNIT_EXPECT_EQ(reader->test, cqe->tensor_bytes,
			(u64)reader->nr_ids * reader->config.row_bytes);
	reader_expect_rows(reader, 0, reader->nr_ids);
}
