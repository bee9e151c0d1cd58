// SPDX-License-Identifier: GPL-2.0
/*
 * The proof of delivery: what a gather says is there is there, and nothing else, whichever
 * READ fails and whatever has arrived of it. By hand first, then at random against what
 * the completions prove.
 */
#include <linux/irq_work.h>
#include <linux/prandom.h>
#include "reader.h"

#define SEED 0x70726f6f
#define SUITE_LANES 3

/* Rows that are no neighbours, so that each is a READ */
static void wide_apart(struct reader *reader, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		reader->ids[i] = 2 * i;
}

static struct reader *open_one(struct kunit *test, u8 lanes)
{
	const struct reader_config config = {
		.sources = 1, .lanes = lanes, .rows = 200, .row_bytes = 100, .cq_mod = 4,
		.queue_depth = 16,
	};

	return reader_open(test, &config);
}

static void succeed(struct reader *reader, u8 lane, u32 nr)
{
	while (nr--)
		reader_succeed(&reader->lanes[0][lane]);
}

static void close_with(struct reader *reader, int error)
{
	struct rdmatensor_cqe cqe;

	reader_end(reader, &cqe);
	KUNIT_EXPECT_EQ(reader->test, cqe.result, error);
	reader_expect_entry(reader, &cqe);
	reader_close(reader);
}

static void only_the_last_is_signalled(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct reader_read *read;
	u32 nr = 0;

	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	list_for_each_entry(read, &reader->lanes[0][0].posted, item)
		KUNIT_EXPECT_EQ(test, read->signalled, ++nr % 4 == 0);
	succeed(reader, 0, 7);
	KUNIT_EXPECT_FALSE(test, reader_has_ended(reader));
	succeed(reader, 0, 1);
	close_with(reader, 0);
}

/* As if that had happened so much earlier */
static void age(struct reader_lane *lane, unsigned long jiffies_ago)
{
	spin_lock_bh(&lane->lane->lock);
	lane->lane->said_at -= jiffies_ago;
	spin_unlock_bh(&lane->lane->lock);
}

static u8 looked_at(struct reader_lane *lane, unsigned long now)
{
	rdmatensor_readlane_watch(lane->lane, now);
	return READ_ONCE(lane->lane->state);
}

/* A lane of which the device says nothing fails, and what it had is read by the other one */
static void device_that_says_nothing(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);
	struct reader_lane *mute = &reader->lanes[0][0];

	/* The second lane has no room for them */
	reader->lanes[0][1].lane->room = 0;
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	KUNIT_EXPECT_EQ(test, mute->lane->bytes, 800);
	KUNIT_EXPECT_TRUE(test, timer_pending(&mute->lane->watch));
	/* It says something while who looks waits for the lock */
	KUNIT_EXPECT_EQ(test, looked_at(mute, mute->lane->said_at - 1), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, looked_at(mute, jiffies + 25 * HZ), RDMATENSOR_READLANE_UP);
	/* Whatever it says, of one of two lists, makes it wait anew */
	age(mute, 25 * HZ);
	succeed(reader, 0, 4);
	KUNIT_EXPECT_EQ(test, looked_at(mute, jiffies + 25 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_TRUE(test, timer_pending(&mute->lane->watch));
	/* A slow line is not a device that says nothing: 60 MB take a minute */
	spin_lock_bh(&mute->lane->lock);
	mute->lane->bytes += 60000000;
	spin_unlock_bh(&mute->lane->lock);
	KUNIT_EXPECT_EQ(test, looked_at(mute, jiffies + 80 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, looked_at(mute, jiffies + 100 * HZ), RDMATENSOR_READLANE_FAILED);
	reader->lanes[0][1].lane->room = 16;
	reader_flush(mute);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	succeed(reader, 1, 4);
	/* Of none in flight nothing is to be said */
	age(&reader->lanes[0][1], 3600 * HZ);
	KUNIT_EXPECT_EQ(test, looked_at(&reader->lanes[0][1], jiffies), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, end_stat(reader->end, RDMATENSOR_STAT_GATHER_LANES_DOWN), 1);
	close_with(reader, 0);
}

/* The oldest one, when there may be no gather any more */
static void probe_succeeds(struct reader_lane *lane)
{
	struct ib_wc wc = { .qp = &lane->qp, .status = IB_WC_SUCCESS };
	struct reader *reader = lane->reader;
	struct reader_read *probe;

	spin_lock_bh(&reader->lock);
	probe = list_first_entry(&lane->posted, struct reader_read, item);
	list_del(&probe->item);
	reader->nr_posted--;
	spin_unlock_bh(&reader->lock);
	wc.wr_cqe = probe->cqe;
	probe->cqe->done(NULL, &wc);
	kfree(probe);
}

/* It sleeps over what was posted, until something else is: this side does it, by itself */
static void device_that_sleeps(struct kunit *test)
{
	struct rdmatensor_channel_params impatient = end_params;
	struct reader *reader = open_one(test, 1);
	struct reader_lane *lane = &reader->lanes[0][0];
	struct rdmatensor_readlist list = {};
	struct ib_rdma_wr wr = {};
	u32 i;

	impatient.probe_ms = 2000;
	lane->lane->readers->params = &impatient;
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 9));
	/* There may be more of them by now */
	succeed(reader, 0, 8);
	while (READ_ONCE(reader->nr_posted))
		probe_succeeds(lane);
	close_with(reader, 0);

	reader = open_one(test, 1);
	lane = &reader->lanes[0][0];
	impatient.probe_ms = 100 * MSEC_PER_SEC;
	lane->lane->readers->params = &impatient;
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 4 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, reader->nr_posted, 8);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 11 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, reader->nr_posted, 12);
	KUNIT_EXPECT_EQ(test, end_stat(reader->end, RDMATENSOR_STAT_TX_PROBES), 4);
	/* No READ comes behind one */
	KUNIT_EXPECT_EQ(test, rdmatensor_readlane_post(lane->lane, &list, &wr, 1), -EAGAIN);
	succeed(reader, 0, 8);
	for (i = 0; i < 3; i++)
		probe_succeeds(lane);
	KUNIT_EXPECT_EQ(test, rdmatensor_readlane_post(lane->lane, &list, &wr, 1), -EAGAIN);
	probe_succeeds(lane);
	KUNIT_EXPECT_EQ(test, lane->lane->probes, 0);
	close_with(reader, 0);
}

/* A probe that the device forgets keeps all READs off the lane: it is watched as well */
static void probe_that_is_lost(struct kunit *test)
{
	struct rdmatensor_channel_params impatient = end_params;
	struct reader *reader = open_one(test, 1);
	struct reader_lane *lane = &reader->lanes[0][0];
	struct reader_read *lost;

	impatient.probe_ms = 100 * MSEC_PER_SEC;
	lane->lane->readers->params = &impatient;
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 11 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, lane->lane->probes, 1);
	succeed(reader, 0, 8);
	KUNIT_EXPECT_TRUE(test, timer_pending(&lane->lane->watch));
	KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 20 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, lane->lane->probes, 2);
	KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 1000 * HZ), RDMATENSOR_READLANE_FAILED);
	spin_lock_bh(&reader->lock);
	while ((lost = list_first_entry_or_null(&lane->posted, struct reader_read, item))) {
		list_del(&lost->item);
		reader->nr_posted--;
		kfree(lost);
	}
	spin_unlock_bh(&reader->lock);
	close_with(reader, 0);
}

/* Nor do slow probes keep each other going when there is nothing left to probe for */
static void probes_that_are_slow(struct kunit *test)
{
	struct rdmatensor_channel_params impatient = end_params;
	struct reader *reader = open_one(test, 1);
	struct reader_lane *lane = &reader->lanes[0][0];
	unsigned long now = jiffies + 11 * HZ;
	u32 i;

	impatient.probe_ms = 100 * MSEC_PER_SEC;
	lane->lane->readers->params = &impatient;
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	/* Each is done when the next one has been posted */
	KUNIT_EXPECT_EQ(test, looked_at(lane, now), RDMATENSOR_READLANE_UP);
	succeed(reader, 0, 8);
	for (i = 0; i < 20 && lane->lane->probes; i++) {
		KUNIT_EXPECT_EQ(test, looked_at(lane, now), RDMATENSOR_READLANE_UP);
		probe_succeeds(lane);
	}
	KUNIT_EXPECT_EQ(test, lane->lane->probes, 0);
	close_with(reader, 0);
}

/* A lane to which nothing can be posted any more has failed */
static void probe_that_fails(struct kunit *test)
{
	struct rdmatensor_channel_params impatient = end_params;
	struct reader *reader = open_one(test, 1);
	struct reader_lane *lane = &reader->lanes[0][0];

	impatient.probe_ms = 100 * MSEC_PER_SEC;
	lane->lane->readers->params = &impatient;
	wide_apart(reader, 4);
	reader_begin(reader, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	lane->takes = 0;
	KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 4 * HZ), RDMATENSOR_READLANE_UP);
	KUNIT_EXPECT_EQ(test, looked_at(lane, jiffies + 11 * HZ), RDMATENSOR_READLANE_FAILED);
	reader_flush(lane);
	close_with(reader, -ECONNRESET);
}

/**
 * struct watcher - another gather's work item, at the queue that all share
 * @entry: in it
 * @all: times that everybody was woken
 * @one: times that one gather was
 */
struct watcher {
	struct wait_queue_entry entry;
	u32 all;
	u32 one;
};

static int watcher_woken(struct wait_queue_entry *entry, unsigned int mode, int sync, void *key)
{
	struct watcher *watcher = container_of(entry, struct watcher, entry);

	if (key)
		watcher->one++;
	else
		watcher->all++;
	return 0;
}

/* Behind the gather's own, which is the first in the queue */
static void watch(struct reader *reader, struct watcher *watcher)
{
	init_waitqueue_func_entry(&watcher->entry, watcher_woken);
	spin_lock_irq(&reader->gathers.wait.lock);
	__add_wait_queue_entry_tail(&reader->gathers.wait, &watcher->entry);
	spin_unlock_irq(&reader->gathers.wait.lock);
}

/* The others sleep on, or each list costs as many wakes as there are gathers */
static void lists_wake_their_gather_alone(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct watcher watcher = {};

	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	KUNIT_ASSERT_TRUE(test, reader_sleeps(reader));
	watch(reader, &watcher);
	succeed(reader, 0, 8);
	remove_wait_queue(&reader->gathers.wait, &watcher.entry);
	KUNIT_EXPECT_EQ(test, watcher.all, 0);
	KUNIT_EXPECT_EQ(test, watcher.one, 2);
	close_with(reader, 0);
}

/* Nor when the lanes are full, if a list of its own will wake it */
static void full_lanes_wake_no_others(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct watcher watcher = {};

	wide_apart(reader, 32);
	reader_begin(reader, 32);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 16));
	KUNIT_ASSERT_TRUE(test, reader_sleeps(reader));
	watch(reader, &watcher);
	succeed(reader, 0, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 16));
	KUNIT_ASSERT_TRUE(test, reader_sleeps(reader));
	KUNIT_EXPECT_EQ(test, watcher.all, 0);
	remove_wait_queue(&reader->gathers.wait, &watcher.entry);
	succeed(reader, 0, 16);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 12));
	succeed(reader, 0, 12);
	close_with(reader, 0);
}

/* Those before it may be at work for ever, but for this one it is time */
static void time_is_up_before_its_turn(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct workqueue_struct *wq = reader->gathers.wq;

	/* It has one worker, which is busy until the end */
	reader->gathers.wq = reader->down_wq;
	reader->deadline_ns = ktime_get_ns() + NSEC_PER_MSEC;
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	reader->gathers.wq = wq;
	close_with(reader, -ETIMEDOUT);
}

/* Nor one that is known to fail when it is submitted */
static void fails_before_its_turn(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct workqueue_struct *wq = reader->gathers.wq;
	struct rdmatensor_cqe cqe;

	reader->gathers.wq = reader->down_wq;
	wide_apart(reader, 8);
	reader->ids[5] = 200;
	reader_begin(reader, 8);
	reader->gathers.wq = wq;
	reader_end(reader, &cqe);
	KUNIT_EXPECT_EQ(test, cqe.result, -ERANGE);
	reader_close(reader);
}

static void list_of_another_done(struct rdmatensor_readlist *list)
{
}

/* Whoever waits for room is woken by what gives some back, whose ever it was */
static void room_of_another(struct kunit *test)
{
	struct rdmatensor_readlist list = { .done = list_of_another_done };
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };
	struct reader *reader = open_one(test, 1);
	struct reader_lane *lane = &reader->lanes[0][0];

	/* A list of four has room if that of another is done. Of its bytes it has read none */
	lane->lane->room = 4;
	wr.remote_addr = reader->table->sources[0].plan.addr + 1;
	KUNIT_ASSERT_EQ(test, rdmatensor_readlane_post(lane->lane, &list, &wr, 1), 0);
	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_sleeps(reader));
	KUNIT_EXPECT_EQ(test, READ_ONCE(reader->nr_posted), 1);
	succeed(reader, 0, 1);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	succeed(reader, 0, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	succeed(reader, 0, 4);
	close_with(reader, 0);
}

/**
 * struct reporter - a device that reports an event in a hard interrupt
 * @work: the interrupt
 * @lane: of whose queue pair
 * @state: of the lane, when it has been told
 */
struct reporter {
	struct irq_work work;
	struct rdmatensor_readlane *lane;
	u8 state;
};

static void report(struct irq_work *work)
{
	struct reporter *reporter = container_of(work, struct reporter, work);
	struct ib_event event = { .event = IB_EVENT_QP_ACCESS_ERR };

	rdmatensor_readlane_qp_event(&event, reporter->lane);
	reporter->state = READ_ONCE(reporter->lane->state);
}

/* As drivers may: nothing there takes a lock that others hold with interrupts on */
static void events_in_interrupts(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct reader_lane *lane = &reader->lanes[0][0];
	struct reporter reporter = {
		.work = IRQ_WORK_INIT_HARD(report), .lane = lane->lane,
	};

	wide_apart(reader, 4);
	reader_begin(reader, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	irq_work_queue(&reporter.work);
	irq_work_sync(&reporter.work);
	KUNIT_EXPECT_EQ(test, reporter.state, RDMATENSOR_READLANE_UP);
	/* Its queue is stuck; this is what it will do */
	KUNIT_ASSERT_TRUE(test, cancel_work_sync(&lane->lane->event_work));
	lane->lane->event_work.func(&lane->lane->event_work);
	KUNIT_EXPECT_EQ(test, READ_ONCE(lane->lane->state), RDMATENSOR_READLANE_FAILED);
	reader_flush(lane);
	close_with(reader, -ECONNRESET);
}

/* Of a list @nr READs succeed and the next one fails: it is read again, whole */
static void reads_it_again(struct kunit *test, u32 nr, enum ib_wc_status status, u32 arrived)
{
	struct reader *reader = open_one(test, 2);

	wide_apart(reader, 4);
	reader_begin(reader, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	succeed(reader, 0, nr);
	reader_fail(&reader->lanes[0][0], status, arrived);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	KUNIT_EXPECT_EQ(test, reader_posted(&reader->lanes[0][1]), 4);
	succeed(reader, 1, 4);
	KUNIT_EXPECT_EQ(test, end_stat(reader->end, RDMATENSOR_STAT_GATHER_AGAIN), 4);
	KUNIT_EXPECT_EQ(test, end_stat(reader->end, RDMATENSOR_STAT_GATHER_LANES_DOWN), 1);
	close_with(reader, 0);
}

static void one_in_the_middle_fails(struct kunit *test)
{
	reads_it_again(test, 2, IB_WC_RETRY_EXC_ERR, 50);
}

/* All of it has arrived, but nobody has said so */
static void the_last_one_fails(struct kunit *test)
{
	reads_it_again(test, 3, IB_WC_WR_FLUSH_ERR, 100);
}

/* It says nothing of the rows */
static void the_owners_device_fails(struct kunit *test)
{
	reads_it_again(test, 1, IB_WC_REM_OP_ERR, 10);
}

/* Nor is the request what it was when it comes again */
static void the_owners_device_finds_it_invalid(struct kunit *test)
{
	reads_it_again(test, 1, IB_WC_REM_INV_REQ_ERR, 10);
}

/* Of four lists two were completed when their lane failed */
static void what_is_completed_stays_so(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);

	/* The second lane has no room for them */
	reader->lanes[0][1].lane->room = 0;
	wide_apart(reader, 16);
	reader_begin(reader, 16);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 16));
	succeed(reader, 0, 9);
	reader->lanes[0][1].lane->room = 16;
	reader_fail(&reader->lanes[0][0], IB_WC_RETRY_EXC_ERR, 0);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 24);
	succeed(reader, 1, 8);
	close_with(reader, 0);
}

/* A list of which the device has taken only the first two: nothing is signalled */
static void posting_fails_in_the_middle(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);

	reader->lanes[0][0].takes = 2;
	wide_apart(reader, 4);
	reader_begin(reader, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 2));
	succeed(reader, 0, 2);
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 2);
	reader_flush(&reader->lanes[0][0]);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	succeed(reader, 1, 4);
	close_with(reader, 0);
}

static void no_lane_is_left(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);

	wide_apart(reader, 16);
	/* So that the missing ones are not the last ones */
	reader->ids[0] = 100;
	reader_begin(reader, 16);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 16));
	succeed(reader, 0, 4);
	reader_fail(&reader->lanes[0][0], IB_WC_RETRY_EXC_ERR, 10);
	succeed(reader, 1, 5);
	reader_fail(&reader->lanes[0][1], IB_WC_RETRY_EXC_ERR, 10);
	close_with(reader, -ECONNRESET);
}

/* It sleeps while another gather of the table connects the lanes, and is told of the end */
static void somebody_else_connects(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);
	struct rdmatensor_readers *readers = reader->table->sources[0].readers;

	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	mutex_lock(&readers->lock);
	reader_fail(&reader->lanes[0][0], IB_WC_RETRY_EXC_ERR, 10);
	reader_fail(&reader->lanes[0][1], IB_WC_RETRY_EXC_ERR, 10);
	KUNIT_EXPECT_TRUE(test, reader_sleeps(reader));
	/* Who had the lock until here says nothing; the one that follows does */
	mutex_unlock(&readers->lock);
	KUNIT_EXPECT_TRUE(test, reader_sleeps(reader));
	KUNIT_EXPECT_FALSE(test, reader_has_ended(reader));
	KUNIT_EXPECT_EQ(test, rdmatensor_readers_connect(readers, 0, 1, NULL), -ENOTCONN);
	close_with(reader, -ECONNRESET);
}

static void a_refusal_is_not_asked_again(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);
	struct rdmatensor_cqe cqe;

	wide_apart(reader, 8);
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	reader_fail(&reader->lanes[0][0], IB_WC_REM_ACCESS_ERR, 0);
	succeed(reader, 1, 4);
	reader_end(reader, &cqe);
	KUNIT_EXPECT_EQ(test, cqe.result, -ESTALE);
	KUNIT_EXPECT_EQ(test, cqe.flags & RDMATENSOR_CQE_TEXT, RDMATENSOR_CQE_TEXT);
	KUNIT_EXPECT_EQ(test, strncmp(cqe.text, "'owner-0' has taken its rows 0..199 back",
				      cqe.text_len), 0);
	reader_expect_entry(reader, &cqe);
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 8);

	/* Nor is anything asked of it later on */
	reader_begin(reader, 1);
	reader_end(reader, &cqe);
	KUNIT_EXPECT_EQ(test, cqe.result, -ESTALE);
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 0);
	reader_close(reader);
}

static void a_list_that_always_fails(struct kunit *test)
{
	struct reader *reader = open_one(test, RDMATENSOR_LANES_MAX);
	u8 lane;

	wide_apart(reader, 4);
	reader_begin(reader, 4);
	for (lane = 0; lane < RDMATENSOR_LANES_MAX; lane++) {
		KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
		reader_fail(&reader->lanes[0][lane], IB_WC_LOC_QP_OP_ERR, 100);
	}
	close_with(reader, -EIO);
}

/* Whoever has a reference: with its entry all that it held is the process's again */
static void who_looks_keeps_nothing(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	struct rdmatensor_operation_place place = {};
	struct rdmatensor_operation *op;
	struct rdmatensor_cqe cqe;

	wide_apart(reader, 4);
	reader_begin(reader, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	op = rdmatensor_operation_next(&reader->end->core, &place);
	KUNIT_ASSERT_NOT_NULL(test, op);
	succeed(reader, 0, 4);
	/* Which sees that neither pool nor table is held */
	reader_end(reader, &cqe);
	KUNIT_EXPECT_EQ(test, cqe.result, 0);
	reader_expect_entry(reader, &cqe);
	rdmatensor_operation_put(op);
	reader_close(reader);
}

/* As when ticks were missed while the timer was armed: it goes on */
static void expired_before_its_deadline(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);

	wide_apart(reader, 4);
	reader->deadline_ns = ktime_get_ns() + 3600 * NSEC_PER_SEC;
	reader_begin(reader, 4);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	KUNIT_EXPECT_TRUE(test, end_expire(reader->end, READER_USER_DATA));
	KUNIT_EXPECT_TRUE(test, end_is_armed(reader->end, READER_USER_DATA));
	succeed(reader, 0, 4);
	close_with(reader, 0);
}

static unsigned int nr_timed_out;

static void count_timed_out(struct rdmatensor_core *core, struct rdmatensor_operation *op)
{
	nr_timed_out++;
}

/* A deadline is an event if the gather ends by it, and not if something else came first */
static void deadline_is_told_if_it_counts(struct kunit *test)
{
	static const struct rdmatensor_core_ops ops = { .timed_out = count_timed_out };
	static const int ends[] = { -ETIMEDOUT, -ECANCELED, 0 };
	struct rdmatensor_cqe cqe;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		struct reader *reader = open_one(test, 1);
		struct rdmatensor_operation_place place = {};
		struct rdmatensor_operation *op;

		reader->end->core.ops = &ops;
		nr_timed_out = 0;
		wide_apart(reader, 4);
		reader->deadline_ns = ktime_get_ns() + 3600 * NSEC_PER_SEC;
		reader_begin(reader, 4);
		KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
		op = rdmatensor_operation_next(&reader->end->core, &place);
		KUNIT_ASSERT_NOT_NULL(test, op);
		op->deadline_ns = 1;
		if (ends[i] == -ECANCELED)
			rdmatensor_operation_cancel(&reader->end->core, READER_USER_DATA);
		if (ends[i])
			op->ops->expire(op);
		succeed(reader, 0, 4);
		reader_end(reader, &cqe);
		KUNIT_EXPECT_EQ(test, cqe.result, ends[i]);
		/* Its timer was about to run when it ended */
		op->ops->expire(op);
		KUNIT_EXPECT_EQ(test, nr_timed_out, ends[i] == -ETIMEDOUT);
		rdmatensor_operation_put(op);
		reader_close(reader);
	}
}

/* The device may still write: the entry comes when it does not any more */
static void cancelled_under_way(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);

	wide_apart(reader, 40);
	reader_begin(reader, 40);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 32));
	KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&reader->end->core,
							  READER_USER_DATA), 1);
	KUNIT_EXPECT_TRUE(test, reader_sleeps(reader));
	succeed(reader, 0, 16);
	succeed(reader, 1, 10);
	KUNIT_EXPECT_FALSE(test, reader_has_ended(reader));
	reader_fail(&reader->lanes[0][1], IB_WC_RETRY_EXC_ERR, 0);
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 32);
	close_with(reader, -ECANCELED);
}

static void repeats_are_copied_when_completed(struct kunit *test)
{
	struct reader *reader = open_one(test, 2);
	u32 i;

	for (i = 0; i < 64; i++)
		reader->ids[i] = i % 4 * 10;
	reader_begin(reader, 64);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 4);
	succeed(reader, 0, 3);
	reader_fail(&reader->lanes[0][0], IB_WC_RETRY_EXC_ERR, 100);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 4));
	KUNIT_EXPECT_EQ(test, end_stat(reader->end, RDMATENSOR_STAT_GATHER_COPIES), 0);
	succeed(reader, 1, 4);
	close_with(reader, 0);
}

/* Where nothing can be copied, repeats are read */
static void repeats_out_of_reach(struct kunit *test)
{
	struct reader *reader = open_one(test, 1);
	u32 i;

	reader->end->pool->memory->unreachable = true;
	for (i = 0; i < 8; i++)
		reader->ids[i] = i % 2 * 10;
	reader_begin(reader, 8);
	KUNIT_ASSERT_TRUE(test, reader_wait(reader, 8));
	KUNIT_EXPECT_EQ(test, reader->nr_posts, 8);
	succeed(reader, 0, 8);
	KUNIT_EXPECT_EQ(test, end_stat(reader->end, RDMATENSOR_STAT_GATHER_COPIES), 0);
	close_with(reader, 0);
}

static struct reader_lane *random_lane(struct reader *reader, struct rnd_state *rnd)
{
	struct reader_lane *lane;

	do {
		lane = &reader->lanes[prandom_u32_state(rnd) % reader->config.sources]
				     [prandom_u32_state(rnd) % reader->config.lanes];
	} while (!reader_posted(lane));
	return lane;
}

/* One gather, READs of which fail one in @one_in. Return: what it ended with */
static int at_random_once(struct reader *reader, struct rnd_state *rnd, u32 one_in)
{
	static const enum ib_wc_status statuses[] = {
		IB_WC_RETRY_EXC_ERR, IB_WC_WR_FLUSH_ERR, IB_WC_LOC_QP_OP_ERR, IB_WC_FATAL_ERR,
	};
	u32 nr = prandom_u32_state(rnd) % READER_IDS_MAX + 1, i, r;
	u32 range = prandom_u32_state(rnd) % reader->config.rows + 1;
	struct rdmatensor_cqe cqe;

	for (i = 0; i < nr; i++)
		reader->ids[i] = prandom_u32_state(rnd) % range;
	reader_begin(reader, nr);
	while (reader_wait(reader, 1)) {
		struct reader_lane *lane = random_lane(reader, rnd);

		r = prandom_u32_state(rnd);
		if (r % one_in)
			reader_succeed(lane);
		else if (r / one_in % 10)
			reader_fail(lane, statuses[r % ARRAY_SIZE(statuses)], r % 2000);
		else
			reader_fail(lane, IB_WC_REM_ACCESS_ERR, 0);
	}
	reader_end(reader, &cqe);
	reader_expect_entry(reader, &cqe);
	return cqe.result;
}

/* In parts, for KUnit gives up a case that takes five minutes, and there are slow kernels */
#define PARTS 12
#define PART_READERS 5
static u32 total_ended, total_lost, total_refused;

static const void *part_gen_params(const void *prev, char *desc)
{
	static u32 part;

	part = prev ? part + 1 : 0;
	if (part == PARTS)
		return NULL;
	if (!part) {
		total_ended = 0;
		total_lost = 0;
		total_refused = 0;
	}
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "part %u", part);
	return &part;
}

static void at_random(struct kunit *test)
{
	u32 part = *(const u32 *)test->param_value, i;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, SEED + part);
	for (i = part * PART_READERS; i < (part + 1) * PART_READERS; i++) {
		const struct reader_config config = {
			.sources = i % READER_SOURCES_MAX + 1,
			.lanes = SUITE_LANES,
			.rows = 60 * (i % 17 + 1),
			.row_bytes = prandom_u32_state(&rnd) % 1000 + 1,
			.cq_mod = prandom_u32_state(&rnd) % 32 + 1,
			.queue_depth = 64,
		};
		struct reader *reader = reader_open(test, &config);
		int ret, k;

		/* Fewer and fewer lanes are left */
		for (k = 0, ret = 0; k < 6 && !ret; k++) {
			ret = at_random_once(reader, &rnd, 150);
			total_ended += !ret;
		}
		total_lost += ret == -ECONNRESET;
		total_refused += ret == -ESTALE;
		KUNIT_EXPECT_TRUE_MSG(test, !ret || ret == -ECONNRESET || ret == -ESTALE,
				      "a gather ended with %d", ret);
		reader_close(reader);
	}
}

/* About 260, 17 and 13: the gather's own thread makes them differ from run to run */
static void all_ends_were_met(struct kunit *test)
{
	kunit_info(test, "%u gathers whole; %u ended without lanes, %u refused", total_ended,
		   total_lost, total_refused);
	KUNIT_EXPECT_GT(test, total_ended, 50);
	KUNIT_EXPECT_GT(test, total_lost, 0);
	KUNIT_EXPECT_GT(test, total_refused, 0);
}

static struct kunit_case gather_tests[] = {
	KUNIT_CASE(only_the_last_is_signalled),
	KUNIT_CASE(device_that_says_nothing),
	KUNIT_CASE(device_that_sleeps),
	KUNIT_CASE(probe_that_fails),
	KUNIT_CASE(probe_that_is_lost),
	KUNIT_CASE(probes_that_are_slow),
	KUNIT_CASE(lists_wake_their_gather_alone),
	KUNIT_CASE(full_lanes_wake_no_others),
	KUNIT_CASE(time_is_up_before_its_turn),
	KUNIT_CASE(fails_before_its_turn),
	KUNIT_CASE(room_of_another),
	KUNIT_CASE(events_in_interrupts),
	KUNIT_CASE(one_in_the_middle_fails),
	KUNIT_CASE(the_last_one_fails),
	KUNIT_CASE(the_owners_device_fails),
	KUNIT_CASE(the_owners_device_finds_it_invalid),
	KUNIT_CASE(what_is_completed_stays_so),
	KUNIT_CASE(posting_fails_in_the_middle),
	KUNIT_CASE(no_lane_is_left),
	KUNIT_CASE(somebody_else_connects),
	KUNIT_CASE(a_refusal_is_not_asked_again),
	KUNIT_CASE(a_list_that_always_fails),
	KUNIT_CASE(who_looks_keeps_nothing),
	KUNIT_CASE(expired_before_its_deadline),
	KUNIT_CASE(deadline_is_told_if_it_counts),
	KUNIT_CASE(cancelled_under_way),
	KUNIT_CASE(repeats_are_copied_when_completed),
	KUNIT_CASE(repeats_out_of_reach),
	KUNIT_CASE_PARAM(at_random, part_gen_params),
	KUNIT_CASE(all_ends_were_met),
	{}
};

static struct kunit_suite gather_suite = {
	.name = "rdmatensor_gather",
	.test_cases = gather_tests,
};

kunit_test_suite(gather_suite);
