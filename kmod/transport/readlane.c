// SPDX-License-Identifier: GPL-2.0
/*
 * Read lanes: connecting, posting, failing.
 *
 * A lane that fails, whatever the cause, goes to FAILED once, under its lock: nothing is
 * posted to it from then on. A work item then disconnects it, waits until the device has
 * returned all that was in flight, and destroys the queue pair: nothing writes to a
 * destination any more, and whatever list is left is done. Last it destroys the id. A lane that
 * this side connects is IDLE then and can be connected again; an accepted one is freed.
 *
 * A list is done when its last READ's completion is there: completions of a queue pair
 * come in the order of posting, failed and flushed ones too, so those before it have
 * ended. Where posting itself fails in the middle there is no last one; such a list, which
 * the lane keeps among those in flight, is done when the queue pair is gone.
 *
 * A device completes what it was given, or says that it failed: nothing else bounds the time of
 * a READ, for which a gather waits, and with it the process. soft-RoCE has been seen to do
 * neither. So a lane of which the device says nothing is probed, as probe.c has it for a channel's;
 * and fails if that lasts for longer than its retries take: flushing the queue pair is another
 * path through the device.
 *
 * Order of locks: readers->lock, readers->accept_lock, then a lane's. Handlers of rdma_cm
 * never take readers->lock: its holder may wait for them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "memory/domain.h"
#include "transport/cm.h"
#include "transport/probe.h"
#include "transport/readlane.h"

/* READs that a queue pair may have in flight: rdma_cm carries eight bits */
#define READLANE_RD_ATOMIC_MAX 255
/* The device may say nothing for so long, and for as long as the bytes take at a MB/s */
#define READLANE_SILENCE (30 * HZ)
#define READLANE_SLOWEST 1000
/* After an attempt to connect that failed, the next one is so many times as far off as it took */
#define READLANE_PAUSE 9
#define READLANE_PAUSE_MAX (60 * HZ)

/* All changes of state, each from exactly those; false: it is not in one of them */
static bool readlane_try_move(struct rdmatensor_readlane *lane, u8 to)
{
	static const u8 from[] = {
		[RDMATENSOR_READLANE_IDLE] = BIT(RDMATENSOR_READLANE_FAILED),
		[RDMATENSOR_READLANE_CONNECTING] = BIT(RDMATENSOR_READLANE_IDLE),
		[RDMATENSOR_READLANE_UP] = BIT(RDMATENSOR_READLANE_CONNECTING),
		[RDMATENSOR_READLANE_FAILED] = BIT(RDMATENSOR_READLANE_CONNECTING) |
					       BIT(RDMATENSOR_READLANE_UP),
	};

	lockdep_assert_held(&lane->lock);
	if (!(from[to] & BIT(lane->state)))
		return false;
	WRITE_ONCE(lane->state, to);
	return true;
}

static bool readlane_try_move_unlocked(struct rdmatensor_readlane *lane, u8 to)
{
	bool moved;

	spin_lock_bh(&lane->lock);
	moved = readlane_try_move(lane, to);
	spin_unlock_bh(&lane->lock);
	return moved;
}

/*
 * Any number of times. Return: whether it has failed by this call, and readers->wait is to be woken
 * without the lock.
 *
 * The work item is queued under the lock. Who finds the lane FAILED may take it apart, cancel the
 * work item, and then put the readers: one that came later would find them freed.
 */
static bool readlane_fail_locked(struct rdmatensor_readlane *lane)
{
	struct rdmatensor_readers *readers = lane->readers;
	bool was_up = lane->state == RDMATENSOR_READLANE_UP;

	if (!readlane_try_move(lane, RDMATENSOR_READLANE_FAILED))
		return false;
	/*
	 * It is to be taken apart, and what is connected beside it may take longer. Not later: who
	 * restores lanes may have taken it apart itself by then
	 */
	if (was_up && lane->conn.active)
		xchg(&readers->give_way, 1);
	if (lane->conn.active)
		rdmatensor_count(readers->counters, RDMATENSOR_STAT_GATHER_LANES_DOWN);
	queue_work(readers->wq, &lane->down_work);
	return true;
}

/* Any context but a hard interrupt, any number of times */
static void readlane_fail(struct rdmatensor_readlane *lane)
{
	struct rdmatensor_readers *readers = lane->readers;
	bool failed;

	spin_lock_bh(&lane->lock);
	failed = readlane_fail_locked(lane);
	spin_unlock_bh(&lane->lock);
	if (failed)
		wake_up_all(readers->wait);
}

/* Retries that the device makes by itself, each of up to four timeouts, are no silence */
static unsigned long readlane_patience(const struct rdmatensor_readlane *lane)
{
	const struct rdmatensor_channel_params *params = lane->readers->params;
	u64 retries_ns = (4096ULL << params->timeout) * 4 * (params->retry_count + 1);

	return READLANE_SILENCE + nsecs_to_jiffies(retries_ns) +
	       msecs_to_jiffies(min_t(u64, div_u64(lane->bytes, READLANE_SLOWEST), UINT_MAX / 2));
}

static void readlane_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_readlane *lane = wc->qp->qp_context;

	/* The READs before it have said why */
	if (wc->status != IB_WC_SUCCESS)
		readlane_fail(lane);
	spin_lock_bh(&lane->lock);
	WRITE_ONCE(lane->probes, lane->probes - 1);
	spin_unlock_bh(&lane->lock);
	wake_up_all(lane->readers->wait);
}

static struct ib_cqe readlane_probe_cqe = { .done = readlane_probe_done };

/*
 * See probe.c. Return: 0 or a negative errno: the lane is to fail.
 *
 * No READ is posted behind a probe. soft-RoCE takes a second acknowledgment of the write, which
 * comes where the peer answers both the first and the repeated request, for one in the
 * middle of such a READ, and completes that one as if all of it had come.
 */
static int readlane_probe(struct rdmatensor_readlane *lane)
{
	int ret;

	lockdep_assert_held(&lane->lock);
	if (lane->probes == RDMATENSOR_PROBES)
		return 0;
	ret = rdmatensor_qp_probe(&lane->conn.qp, &readlane_probe_cqe);
	if (ret)
		return ret;
	WRITE_ONCE(lane->probes, lane->probes + 1);
	rdmatensor_count(lane->readers->counters, RDMATENSOR_STAT_TX_PROBES);
	return 0;
}

static bool readlane_is_watched(const struct rdmatensor_readlane *lane)
{
	lockdep_assert_held(&lane->lock);
	/* A probe that is lost would keep all READs off the lane */
	return lane->state == RDMATENSOR_READLANE_UP && (!list_empty(&lane->lists) || lane->probes);
}

/*
 * Without a list there is nothing to wake the device for but probes, and they would keep each other
 * going: a few, and what is lost then is waited for
 */
static bool readlane_is_probed(struct rdmatensor_readlane *lane)
{
	lockdep_assert_held(&lane->lock);
	if (!list_empty(&lane->lists))
		return true;
	if (lane->probes == RDMATENSOR_PROBES || lane->idle_probes == RDMATENSOR_PROBES)
		return false;
	lane->idle_probes++;
	return true;
}

void rdmatensor_readlane_watch(struct rdmatensor_readlane *lane, unsigned long now)
{
	unsigned long pause = rdmatensor_probe_pause(lane->readers->params), silence = 0;
	bool watched, given_up;
	int ret = 0;

	spin_lock_bh(&lane->lock);
	/* Whoever had the lock may have heard of something later than @now */
	if (time_after(now, lane->said_at))
		silence = now - lane->said_at;
	watched = readlane_is_watched(lane);
	given_up = watched && silence >= readlane_patience(lane);
	if (watched && !given_up) {
		if (silence >= pause && readlane_is_probed(lane))
			ret = readlane_probe(lane);
		mod_timer(&lane->watch, jiffies + pause);
	}
	spin_unlock_bh(&lane->lock);
	if (given_up)
		pr_warn_ratelimited("gather from %pISpc, lane %u: the device has completed no read for %lu s, and reported no error; its rows are read again on others if there are any\n",
				    &lane->readers->peer, lane->index, silence / HZ);
	if (given_up || ret)
		readlane_fail(lane);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readlane_watch);

static void readlane_watch(struct timer_list *timer)
{
	rdmatensor_readlane_watch(container_of(timer, struct rdmatensor_readlane, watch), jiffies);
}

/* The lists that are in flight have become one more, or one less */
static void readlane_add(struct rdmatensor_readlane *lane, struct rdmatensor_readlist *list)
{
	lockdep_assert_held(&lane->lock);
	if (list_empty(&lane->lists))
		lane->said_at = jiffies;
	list_add_tail(&list->item, &lane->lists);
	lane->bytes += list->bytes;
	if (!timer_pending(&lane->watch))
		mod_timer(&lane->watch, jiffies + rdmatensor_probe_pause(lane->readers->params));
}

static void readlane_remove(struct rdmatensor_readlane *lane, struct rdmatensor_readlist *list)
{
	lockdep_assert_held(&lane->lock);
	list_del_init(&list->item);
	lane->bytes -= list->bytes;
	lane->said_at = jiffies;
	lane->idle_probes = 0;
}

/*
 * That the key is no more is said by one status alone. Errors of the peer's device, or of a request
 * that it found invalid, are the lane's, and the next one may not have them
 */
static int readlist_status(const struct ib_wc *wc)
{
	return wc->status == IB_WC_REM_ACCESS_ERR ? -ESTALE : -ECONNRESET;
}

static void readlist_failed(struct rdmatensor_readlist *list, const struct ib_wc *wc)
{
	if (!list->status)
		list->status = readlist_status(wc);
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		pr_info_ratelimited("gather from %pISpc, lane %u: read failed: %s (%d, vendor 0x%x); its rows are read again on others if there are any\n",
				    &list->lane->readers->peer, list->lane->index,
				    ib_wc_status_msg(wc->status), wc->status, wc->vendor_err);
	readlane_fail(list->lane);
}

/* Not signalled, so it comes here only if it failed */
static void readlist_read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	readlist_failed(container_of(wc->wr_cqe, struct rdmatensor_readlist, cqe), wc);
}

void rdmatensor_readers_starve(struct rdmatensor_readers *readers)
{
	WRITE_ONCE(readers->starving, true);
	/* Pairs with readers_have_room(): room that it does not see is of a time that sees this */
	smp_mb();
}

/* A list that is done concerns one gather, its room all that wait for some */
static void readers_have_room(struct rdmatensor_readers *readers)
{
	/* Pairs with rdmatensor_readers_starve() */
	smp_mb();
	if (!READ_ONCE(readers->starving))
		return;
	WRITE_ONCE(readers->starving, false);
	wake_up_all(readers->wait);
}

static void readlist_last_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rdmatensor_readlist *list =
		container_of(wc->wr_cqe, struct rdmatensor_readlist, last);
	struct rdmatensor_readlane *lane = list->lane;

	if (wc->status != IB_WC_SUCCESS) {
		readlist_failed(list, wc);
	} else if (rdmatensor_should_fail()) {
		/* As if the device had failed after this READ: what has arrived does not count */
		list->status = -ECONNRESET;
		readlane_fail(lane);
	}
	spin_lock_bh(&lane->lock);
	readlane_remove(lane, list);
	WRITE_ONCE(lane->room, lane->room + list->nr);
	spin_unlock_bh(&lane->lock);
	readers_have_room(lane->readers);
	rdmatensor_count(lane->readers->counters, RDMATENSOR_STAT_GATHER_SIGNALLED);
	list->done(list);
}

int rdmatensor_readlane_post(struct rdmatensor_readlane *lane, struct rdmatensor_readlist *list,
			     struct ib_rdma_wr *wrs, u32 nr)
{
	bool failed;
	u32 i;
	int ret, k;

	list->cqe.done = readlist_read_done;
	list->last.done = readlist_last_done;
	list->lane = lane;
	list->nr = nr;
	list->bytes = 0;
	list->status = 0;
	for (i = 0; i < nr; i++) {
		for (k = 0; k < wrs[i].wr.num_sge; k++)
			list->bytes += wrs[i].wr.sg_list[k].length;
		wrs[i].wr.wr_cqe = i + 1 < nr ? &list->cqe : &list->last;
		wrs[i].wr.send_flags = i + 1 < nr ? 0 : IB_SEND_SIGNALED;
		wrs[i].wr.next = i + 1 < nr ? &wrs[i + 1].wr : NULL;
	}

	spin_lock_bh(&lane->lock);
	if (lane->state != RDMATENSOR_READLANE_UP) {
		spin_unlock_bh(&lane->lock);
		return -ENOTCONN;
	}
	if (lane->room < nr || lane->probes) {
		spin_unlock_bh(&lane->lock);
		return -EAGAIN;
	}
	WRITE_ONCE(lane->room, lane->room - nr);
	readlane_add(lane, list);
	ret = rdmatensor_fault(-ENOMEM) ?: ib_post_send(lane->conn.qp.qp, &wrs[0].wr, NULL);
	/* Some may have been posted: the end of the queue pair ends the list */
	failed = ret && readlane_fail_locked(lane);
	spin_unlock_bh(&lane->lock);
	if (failed) {
		rdmatensor_hold("readlane_failed");
		wake_up_all(lane->readers->wait);
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readlane_post);

void rdmatensor_readlane_drained(struct rdmatensor_readlane *lane)
{
	struct rdmatensor_readlist *list;

	for (;;) {
		spin_lock_bh(&lane->lock);
		list = list_first_entry_or_null(&lane->lists, struct rdmatensor_readlist, item);
		if (list)
			readlane_remove(lane, list);
		spin_unlock_bh(&lane->lock);
		if (!list)
			break;
		if (!list->status)
			list->status = -ECONNRESET;
		list->done(list);
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readlane_drained);

static void readlane_close(struct rdmatensor_readlane *lane)
{
	/* It has failed, so nobody arms it again */
	timer_delete_sync(&lane->watch);
	rdmatensor_conn_disconnect(&lane->conn);
	if (lane->conn.qp.qp) {
		ib_drain_qp(lane->conn.qp.qp);
		if (lane->conn.active)
			rdmatensor_hold("readlane_flushed");
		rdmatensor_qp_free(&lane->conn.qp);
		/*
		 * A drain that the device refused is not told of, so no list ends before this. What
		 * the CQ's poller has taken by then it may still complete
		 */
		rdmatensor_readlane_drained(lane);
		WARN_ON_ONCE(lane->probes);
	}
	/* Its queue pair has no events any more */
	cancel_work_sync(&lane->event_work);
	rdmatensor_conn_destroy(&lane->conn);
}

/* A gather that found it locked tries again */
static void readers_unlock(struct rdmatensor_readers *readers)
{
	mutex_unlock(&readers->lock);
	smp_mb(); /* Pairs with readers_restore_work() */
	if (READ_ONCE(readers->restore_wanted)) {
		WRITE_ONCE(readers->restore_wanted, false);
		rdmatensor_readers_restore(readers);
	}
	wake_up_all(readers->wait);
}

static void readlane_down(struct rdmatensor_readlane *lane)
{
	struct rdmatensor_readers *readers = lane->readers;

	lockdep_assert_held(&readers->lock);
	if (lane->state != RDMATENSOR_READLANE_FAILED)
		return;
	readlane_close(lane);
	readlane_try_move_unlocked(lane, RDMATENSOR_READLANE_IDLE);
	wake_up_all(readers->wait);
}

/* It is closed and on no list, and its work item will not run */
static void readlane_free_accepted(struct rdmatensor_readlane *lane)
{
	struct rdmatensor_readers *readers = lane->readers;

	kfree(lane);
	spin_lock_bh(&readers->accept_lock);
	WRITE_ONCE(readers->nr_accepted, readers->nr_accepted - 1);
	spin_unlock_bh(&readers->accept_lock);
	wake_up_all(readers->wait);
	rdmatensor_readers_put(readers);
}

static void readlane_down_work(struct work_struct *work)
{
	struct rdmatensor_readlane *lane =
		container_of(work, struct rdmatensor_readlane, down_work);
	struct rdmatensor_readers *readers = lane->readers;
	bool gone;

	if (lane->conn.active) {
		mutex_lock(&readers->lock);
		readlane_down(lane);
		readers_unlock(readers);
		return;
	}

	/* The one that takes it off the list takes it apart */
	spin_lock_bh(&readers->accept_lock);
	gone = list_empty(&lane->item);
	list_del_init(&lane->item);
	spin_unlock_bh(&readers->accept_lock);
	if (gone)
		return;
	readlane_close(lane);
	readlane_free_accepted(lane);
}

static struct rdmatensor_readlane *readlane_of(struct rdmatensor_conn *conn)
{
	return container_of(conn, struct rdmatensor_readlane, conn);
}

static void readlane_event_work(struct work_struct *work)
{
	readlane_fail(container_of(work, struct rdmatensor_readlane, event_work));
}

/* In a hard interrupt, too, and the lane's lock is not for that */
void rdmatensor_readlane_qp_event(struct ib_event *event, void *context)
{
	struct rdmatensor_readlane *lane = context;

	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(lane->conn.id, IB_EVENT_COMM_EST);
	else if (event->event != IB_EVENT_QP_LAST_WQE_REACHED)
		queue_work(lane->readers->wq, &lane->event_work);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readlane_qp_event);

/* READs consume no receive at the other end, so the only receive is the drain's */
static int readlane_open(struct rdmatensor_conn *conn)
{
	struct rdmatensor_readlane *lane = readlane_of(conn);
	const struct rdmatensor_readers *readers = lane->readers;
	u32 depth = readers->params->queue_depth + RDMATENSOR_SENDQ_MORE;
	struct ib_qp_init_attr attr = {
		.event_handler = rdmatensor_readlane_qp_event,
		.qp_context = lane,
		.cap = {
			.max_send_wr = conn->active ? depth : 1,
			.max_recv_wr = 1,
			.max_send_sge = conn->active ? readers->max_pieces : 1,
			.max_recv_sge = 1,
		},
	};
	int ret;

	/* A completion for each READ: failed and flushed ones come one by one, signalled or not */
	ret = rdmatensor_fault(-EBUSY) ?:
	      rdmatensor_qp_alloc(&conn->qp, conn->id, readers->cm->domain->pd, &attr,
				  readers->params->cq_poll, readers->vector + lane->index);
	if (ret)
		return ret;
	WRITE_ONCE(lane->room, readers->params->queue_depth);
	WRITE_ONCE(lane->probes, 0);
	/* As if it had failed between two steps; the work item has not found it, or waits */
	if (rdmatensor_should_fail())
		readlane_try_move_unlocked(lane, RDMATENSOR_READLANE_FAILED);
	return 0;
}

/* Alike on both sides: the reader need not be the one that has connected the channel */
static __le32 readlane_flags(const struct rdmatensor_readlane *lane)
{
	return cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_READ |
			   (lane->conn.active == lane->readers->active ? 0 :
			    RDMATENSOR_WIRE_PRIVATE_REVERSE));
}

static void readlane_describe(const struct rdmatensor_conn *conn, u8 mtu,
			      struct rdmatensor_wire_private *private)
{
	const struct rdmatensor_readlane *lane =
		container_of_const(conn, struct rdmatensor_readlane, conn);

	rdmatensor_wire_init_private(private, lane->index, lane->nr_lanes, lane->readers->nonce,
				     mtu);
	private->flags = readlane_flags(lane);
}

static bool readlane_alive(struct rdmatensor_conn *conn)
{
	struct rdmatensor_readlane *lane = readlane_of(conn);
	bool connecting;

	spin_lock_bh(&lane->lock);
	connecting = lane->state == RDMATENSOR_READLANE_CONNECTING;
	spin_unlock_bh(&lane->lock);
	return connecting;
}

static int readlane_answer(struct rdmatensor_conn *conn,
			   const struct rdmatensor_wire_private *private,
			   const struct rdmatensor_qp_terms *terms, const char **why)
{
	const struct rdmatensor_readlane *lane = readlane_of(conn);

	if (private->flags != readlane_flags(lane) ||
	    private->nonce != cpu_to_le64(lane->readers->nonce) || private->lane != lane->index)
		return -EPROTO;
	/* A peer that answers none of them would let them wait for ever */
	return terms->reads_out ? 0 : -EPROTO;
}

static void readlane_up(struct rdmatensor_conn *conn)
{
	struct rdmatensor_readlane *lane = readlane_of(conn);
	struct rdmatensor_qp_attr attr;
	bool queried;

	if (!readlane_alive(conn))
		return;
	queried = !rdmatensor_qp_query(&conn->qp, &attr);
	spin_lock_bh(&lane->lock);
	if (readlane_try_move(lane, RDMATENSOR_READLANE_UP)) {
		conn->qp.queried = queried;
		if (queried)
			conn->qp.attr = attr;
	}
	spin_unlock_bh(&lane->lock);
}

static void readlane_failed(struct rdmatensor_conn *conn, int error, const char *text)
{
	readlane_fail(readlane_of(conn));
}

static void readlane_left(struct rdmatensor_conn *conn)
{
	readlane_fail(readlane_of(conn));
}

static const char *readlane_remedy(int error)
{
	switch (error) {
	case -EUSERS:
		return "it takes no more lanes for READs of this channel; lower gather_lanes";
	case -ECONNRESET:
		return "its end of the channel is gone; connect again";
	default:
		return rdmatensor_conn_remedy(error);
	}
}

/*
 * The errnos that a worker refuses with are reported as they are. Any other has a meaning of its
 * own here: that another gather connects the lanes and will be done soon, that this side's device
 * has gone, that an id is out of range. A gather that took a refusal for one of these could wait
 * forever, or make its process give up
 */
static int readlane_refusal(struct rdmatensor_conn *conn, int error)
{
	const struct rdmatensor_readlane *lane = readlane_of(conn);

	pr_info_ratelimited("lane %u for READs from %pISpc: the peer refuses it (%d): %s\n",
			    lane->index, &lane->readers->peer, error, readlane_remedy(error));
	switch (error) {
	case -ECONNRESET:
	case -ENOMEM:
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EXDEV:
		return error;
	default:
		return -ECONNREFUSED;
	}
}

/* A failure ends the set-up also between two steps, or when no step reports it */
static int readlane_stopped(struct rdmatensor_conn *conn)
{
	const struct rdmatensor_readlane *lane = readlane_of(conn);

	if (READ_ONCE(lane->readers->closed))
		return -ENOTCONN;
	if (READ_ONCE(lane->state) != RDMATENSOR_READLANE_FAILED)
		return 0;
	return READ_ONCE(conn->step_error) ?: -ECONNRESET;
}

static const struct rdmatensor_conn_ops readlane_conn_ops = {
	.open = readlane_open,
	.describe = readlane_describe,
	.alive = readlane_alive,
	.answer = readlane_answer,
	.up = readlane_up,
	.failed = readlane_failed,
	.left = readlane_left,
	.refusal = readlane_refusal,
	.stopped = readlane_stopped,
};

static void readlane_init(struct rdmatensor_readlane *lane, struct rdmatensor_readers *readers,
			  u8 index, bool active)
{
	lane->readers = readers;
	lane->index = index;
	lane->conn.ops = &readlane_conn_ops;
	lane->conn.params = readers->params;
	lane->conn.wait = readers->wait;
	lane->conn.active = active;
	/* The side that connects the lane reads from the other one */
	lane->conn.reads_in = active ? 0 : READLANE_RD_ATOMIC_MAX;
	lane->conn.reads_out = active ? READLANE_RD_ATOMIC_MAX : 0;
	INIT_LIST_HEAD(&lane->item);
	INIT_LIST_HEAD(&lane->lists);
	spin_lock_init(&lane->lock);
	timer_setup(&lane->watch, readlane_watch, 0);
	INIT_WORK(&lane->down_work, readlane_down_work);
	INIT_WORK(&lane->event_work, readlane_event_work);
	lane->state = RDMATENSOR_READLANE_IDLE;
}

static void readers_restore_work(struct work_struct *work);

struct rdmatensor_readers *rdmatensor_readers_alloc(struct rdmatensor_cm *cm,
						    struct rdmatensor_counters *counters,
						    wait_queue_head_t *wait,
						    struct workqueue_struct *wq,
						    struct workqueue_struct *restore_wq,
						    const struct rdmatensor_channel *channel)
{
	const struct ib_device_attr *attrs = &cm->adapter->ibdev->attrs;
	struct rdmatensor_readers *readers;
	u8 i;

	readers = kzalloc(sizeof(*readers), RDMATENSOR_GFP_SPARING);
	if (!readers)
		return NULL;
	kref_init(&readers->ref);
	readers->cm = cm;
	readers->counters = counters;
	readers->wait = wait;
	readers->wq = wq;
	readers->restore_wq = restore_wq;
	readers->peer = channel->peer;
	readers->nonce = channel->nonce;
	readers->active = channel->active;
	readers->params = channel->params;
	/* Lane 0 has nothing to do while its reader reads */
	readers->vector = channel->vector;
	readers->max_pieces = min3(attrs->max_send_sge, max(attrs->max_sge_rd, 1),
				   RDMATENSOR_PIECES_MAX);
	mutex_init(&readers->lock);
	spin_lock_init(&readers->accept_lock);
	INIT_LIST_HEAD(&readers->accepted);
	rdmatensor_quota_init(&readers->quota);
	INIT_WORK(&readers->restore_work, readers_restore_work);
	for (i = 0; i < ARRAY_SIZE(readers->lanes); i++)
		readlane_init(&readers->lanes[i], readers, i, true);
	return readers;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readers_alloc);

/* In either family's place */
static __be16 *readers_port(struct rdmatensor_readers *readers)
{
	return readers->peer.ss_family == AF_INET6 ?
	       &((struct sockaddr_in6 *)&readers->peer)->sin6_port :
	       &((struct sockaddr_in *)&readers->peer)->sin_port;
}

void rdmatensor_readers_peer_port(struct rdmatensor_readers *readers, u16 port)
{
	*readers_port(readers) = cpu_to_be16(port);
}

bool rdmatensor_readers_reachable(const struct rdmatensor_readers *readers)
{
	return *readers_port((struct rdmatensor_readers *)readers);
}

void rdmatensor_readers_get(struct rdmatensor_readers *readers)
{
	kref_get(&readers->ref);
}

static void readers_release(struct kref *ref)
{
	struct rdmatensor_readers *readers = container_of(ref, struct rdmatensor_readers, ref);

	mutex_destroy(&readers->lock);
	kfree(readers);
}

void rdmatensor_readers_put(struct rdmatensor_readers *readers)
{
	kref_put(&readers->ref, readers_release);
}

void rdmatensor_readers_close(struct rdmatensor_readers *readers)
{
	struct rdmatensor_readlane *lane;
	u8 i;

	might_sleep();
	/* Before the lock: a connect that holds it gives up */
	WRITE_ONCE(readers->closed, true);
	wake_up_all(readers->wait);
	mutex_lock(&readers->lock);
	for (i = 0; i < ARRAY_SIZE(readers->lanes); i++) {
		readlane_fail(&readers->lanes[i]);
		readlane_down(&readers->lanes[i]);
	}
	readers_unlock(readers);
	/* A work item that came later finds nothing to do */
	for (i = 0; i < ARRAY_SIZE(readers->lanes); i++)
		cancel_work_sync(&readers->lanes[i].down_work);
	rdmatensor_quota_uncharge(&readers->quota);

	for (;;) {
		spin_lock_bh(&readers->accept_lock);
		readers->accept_closed = true;
		lane = list_first_entry_or_null(&readers->accepted, struct rdmatensor_readlane,
						item);
		if (lane)
			list_del_init(&lane->item);
		spin_unlock_bh(&readers->accept_lock);
		if (!lane)
			break;
		readlane_fail(lane);
		/* After it no readlane_fail() is about to queue the work item */
		readlane_close(lane);
		cancel_work_sync(&lane->down_work);
		readlane_free_accepted(lane);
	}
	/* Those that a work item of their own is taking apart */
	wait_event(*readers->wait, !READ_ONCE(readers->nr_accepted));
}

u32 rdmatensor_readers_up(struct rdmatensor_readers *readers)
{
	u32 up = 0;
	u8 i;

	for (i = 0; i < READ_ONCE(readers->nr_lanes); i++)
		up += READ_ONCE(readers->lanes[i].state) == RDMATENSOR_READLANE_UP;
	return up;
}

static int readlane_show(struct rdmatensor_readlane *lane,
			 int (*fn)(void *arg, const struct rdmatensor_qp_attr *attr), void *arg)
{
	int ret = 0;

	spin_lock_bh(&lane->lock);
	if (lane->state == RDMATENSOR_READLANE_UP && lane->conn.qp.queried)
		ret = fn(arg, &lane->conn.qp.attr);
	spin_unlock_bh(&lane->lock);
	return ret;
}

int rdmatensor_readers_each(struct rdmatensor_readers *readers,
			    int (*fn)(void *arg, const struct rdmatensor_qp_attr *attr),
			    void *arg)
{
	struct rdmatensor_readlane *lane;
	int ret = 0;
	u8 i;

	for (i = 0; !ret && i < READ_ONCE(readers->nr_lanes); i++)
		ret = readlane_show(&readers->lanes[i], fn, arg);
	spin_lock_bh(&readers->accept_lock);
	list_for_each_entry(lane, &readers->accepted, item) {
		if (ret)
			break;
		ret = readlane_show(lane, fn, arg);
	}
	spin_unlock_bh(&readers->accept_lock);
	return ret;
}

static int readlane_connect(struct rdmatensor_readlane *lane, u8 nr_lanes,
			    unsigned long deadline, const int *stop)
{
	const struct rdmatensor_readers *readers = lane->readers;
	const struct rdmatensor_conn_target to = {
		.net = readers->cm->net,
		.adapter = readers->cm->adapter,
		.peer = (const struct sockaddr *)&readers->peer,
		.deadline = deadline,
		.stop = stop,
	};
	const char *step;
	int ret;

	lane->nr_lanes = nr_lanes;
	ret = rdmatensor_conn_connect(&lane->conn, &to, &step);
	/* Of the device: waiting for another gather, or asking the owner again, is of no use */
	return ret == -EBUSY || ret == -EAGAIN ? -EIO : ret;
}

/* After an attempt that failed it is not time at once, as long as another lane is UP */
static bool readers_may_retry(const struct rdmatensor_readers *readers)
{
	return !READ_ONCE(readers->failed) ||
	       time_after_eq(jiffies, READ_ONCE(readers->retry_at));
}

/* @begun: the attempt that has ended. A small part of the time is spent on those that fail */
static void readers_note(struct rdmatensor_readers *readers, unsigned long begun, bool failed)
{
	unsigned long took = min_t(unsigned long, jiffies - begun, READLANE_PAUSE_MAX);

	lockdep_assert_held(&readers->lock);
	WRITE_ONCE(readers->retry_at, jiffies + clamp_t(unsigned long, took * READLANE_PAUSE, HZ,
							READLANE_PAUSE_MAX));
	WRITE_ONCE(readers->failed, failed);
}

static int readers_connect(struct rdmatensor_readers *readers, u8 nr, unsigned long deadline,
			   const int *stop)
{
	unsigned long begun = jiffies;
	int ret = 0, error = -ENOTCONN;
	bool failed = false;
	u8 i;

	lockdep_assert_held(&readers->lock);
	for (i = 0; i < nr && !readers->closed && ret != -EINTR; i++) {
		struct rdmatensor_readlane *lane = &readers->lanes[i];

		readlane_down(lane);
		if (!readlane_try_move_unlocked(lane, RDMATENSOR_READLANE_CONNECTING))
			continue;
		ret = readlane_connect(lane, nr, deadline, stop);
		if (ret) {
			error = ret;
			failed |= ret != -EINTR;
			readlane_fail(lane);
			readlane_down(lane);
		}
	}
	/* Who was interrupted, or came too late, has learnt nothing of the peer */
	if (ret != -EINTR && time_before(begun, deadline))
		readers_note(readers, begun, failed);
	return rdmatensor_readers_up(readers) && ret != -EINTR ? 0 : error;
}

/* Whoever has the lock to restore lanes ends; once: gathers that wait for it are woken, too */
static void readers_want(struct rdmatensor_readers *readers)
{
	/* A full barrier: the lock was found taken before. Pairs with readers_restore_work() */
	if (!xchg(&readers->give_way, 1))
		wake_up_all(readers->wait);
}

int rdmatensor_readers_connect(struct rdmatensor_readers *readers, u8 nr, u32 timeout_ms,
			       const int *stop)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	int ret = 0;

	might_sleep();
	if (!mutex_trylock(&readers->lock)) {
		if (!stop)
			atomic_inc(&readers->waiting);
		readers_want(readers);
		if (stop)
			return -EBUSY;
		ret = mutex_lock_interruptible(&readers->lock);
		atomic_dec(&readers->waiting);
		if (ret)
			return -EINTR;
	}
	/* Once, by who opens the first table: a lane that is connected again is paid for */
	if (nr > readers->nr_lanes && !readers->closed)
		ret = rdmatensor_quota_charge(&readers->quota, readers->cm->adapter->ibdev,
					      nr - readers->nr_lanes);
	if (!ret) {
		WRITE_ONCE(readers->nr_lanes, max(readers->nr_lanes, nr));
		ret = readers_connect(readers, nr, deadline, stop);
	}
	readers_unlock(readers);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readers_connect);

static bool readers_may_restore(struct rdmatensor_readers *readers)
{
	u32 up = rdmatensor_readers_up(readers);

	return !READ_ONCE(readers->closed) && up && up < READ_ONCE(readers->nr_lanes) &&
	       readers_may_retry(readers);
}

static void readers_restore_work(struct work_struct *work)
{
	struct rdmatensor_readers *readers =
		container_of(work, struct rdmatensor_readers, restore_work);
	unsigned long deadline = jiffies + msecs_to_jiffies(readers->params->connect_ms);
	bool gives_way;
	u8 i;

	/* Whoever finds the lock taken by this sets it again, and so does each lane that fails */
	WRITE_ONCE(readers->give_way, 0);
	/* Pairs with readers_want() */
	smp_mb();
	if (!mutex_trylock(&readers->lock)) {
		/* Whoever has it has this one begun again, unless that was missed */
		WRITE_ONCE(readers->restore_wanted, true);
		smp_mb(); /* Pairs with readers_unlock() */
		if (!mutex_trylock(&readers->lock))
			goto out_put;
		WRITE_ONCE(readers->restore_wanted, false);
	}
	/* Who waited before may have lost the lock, and the flag, to this */
	if (atomic_read(&readers->waiting))
		WRITE_ONCE(readers->give_way, 1);
	/* Those that have failed before wait for the lock to be taken apart */
	for (i = 0; i < readers->nr_lanes; i++)
		readlane_down(&readers->lanes[i]);
	gives_way = READ_ONCE(readers->give_way);
	if (!gives_way && readers_may_restore(readers))
		readers_connect(readers, readers->nr_lanes, deadline, &readers->give_way);
	readers_unlock(readers);
	/* Who waited for the lock has this begun again: after it, or this would by itself */
	if (gives_way)
		WRITE_ONCE(readers->restore_wanted, true);
out_put:
	rdmatensor_readers_put(readers);
}

void rdmatensor_readers_restore(struct rdmatensor_readers *readers)
{
	if (!readers_may_restore(readers))
		return;
	rdmatensor_readers_get(readers);
	if (!queue_work(readers->restore_wq, &readers->restore_work))
		rdmatensor_readers_put(readers);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_readers_restore);

/*
 * The reader has given up the one that it had by this number, or it would not connect it again. Its
 * DREQ may have been lost, and nothing else would tell of that: no work request is posted here.
 * Before there is another one: the device may have no queue pair left but that of the former one
 */
static void readers_fail_former(struct rdmatensor_readers *readers, u8 index)
{
	struct rdmatensor_readlane *lane;
	bool failed = false;

	spin_lock_bh(&readers->accept_lock);
	list_for_each_entry(lane, &readers->accepted, item) {
		if (lane->index != index)
			continue;
		spin_lock(&lane->lock);
		failed |= readlane_fail_locked(lane);
		spin_unlock(&lane->lock);
	}
	spin_unlock_bh(&readers->accept_lock);
	if (failed)
		wake_up_all(readers->wait);
}

int rdmatensor_readers_accept(struct rdmatensor_readers *readers, struct rdma_cm_id *id,
			      const struct rdma_cm_event *event,
			      const struct rdmatensor_wire_private *private)
{
	struct rdmatensor_qp_terms terms;
	struct rdmatensor_readlane *lane;
	int ret;

	readers_fail_former(readers, private->lane);
	lane = kzalloc(sizeof(*lane), RDMATENSOR_GFP_SPARING);
	if (!lane)
		return -ENOMEM;
	readlane_init(lane, readers, private->lane, false);
	lane->state = RDMATENSOR_READLANE_CONNECTING;
	lane->nr_lanes = private->lanes;
	rdmatensor_conn_adopt(&lane->conn, id);
	ret = rdmatensor_conn_prepare(&lane->conn, readers->cm->adapter, &event->param.conn,
				      &terms);
	if (ret)
		goto out_free;

	spin_lock_bh(&readers->accept_lock);
	/* One that has failed already would stay: its work item has found it on no list */
	if (readers->accept_closed || READ_ONCE(lane->state) == RDMATENSOR_READLANE_FAILED)
		ret = -ECONNRESET;
	else if (readers->nr_accepted == RDMATENSOR_READ_LANES_ACCEPTED)
		ret = -EUSERS;
	if (!ret) {
		rdmatensor_readers_get(readers);
		WRITE_ONCE(readers->nr_accepted, readers->nr_accepted + 1);
		list_add_tail(&lane->item, &readers->accepted);
	}
	spin_unlock_bh(&readers->accept_lock);
	if (ret)
		goto out_free;

	/* From here on failures are the lane's own */
	if (rdmatensor_conn_accept(&lane->conn, &terms))
		readlane_fail(lane);
	return 0;

out_free:
	if (lane->conn.qp.qp)
		rdmatensor_qp_free(&lane->conn.qp);
	/* An event of the queue pair may have queued them: the lane is found in no list */
	cancel_work_sync(&lane->event_work);
	cancel_work_sync(&lane->down_work);
	kfree(lane);
	return ret;
}
