/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read lanes: queue pairs for READs, beside a channel's own lanes. One that fails takes
 * neither the channel nor the others with it, and can be connected again. The side that reads
 * connects them to the other side's listener; either side of a channel can do so, whichever
 * has connected the channel.
 */
#ifndef RDMATENSOR_READLANE_H
#define RDMATENSOR_READLANE_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "core/limits.h"
#include "core/quota.h"
#include "core/stats.h"
#include "transport/conn.h"

/* Of one channel that its peer may have connected: those in use, and those that go */
#define RDMATENSOR_READ_LANES_ACCEPTED (2 * RDMATENSOR_LANES_MAX)

struct rdmatensor_channel;
struct rdmatensor_cm;
struct rdmatensor_readers;
struct rdmatensor_readlane;

enum rdmatensor_readlane_state {
	RDMATENSOR_READLANE_IDLE,
	RDMATENSOR_READLANE_CONNECTING,
	RDMATENSOR_READLANE_UP,
	RDMATENSOR_READLANE_FAILED,
};

/**
 * struct rdmatensor_readlist - READs that were posted by one call, embedded
 * @cqe: of all but the last READ: only failures come here
 * @last: of the last one
 * @item: among the lane's that wait for @last
 * @lane: where it was posted
 * @nr: READs
 * @bytes: that they read
 * @status: 0, or a negative errno of the first failure: -ESTALE: the peer has refused
 *          access; -ECONNRESET: the lane has failed
 * @done: none of its READs is in flight any more; @status is valid: 0: all have arrived.
 *        Softirq or process context, no lock held; once
 */
struct rdmatensor_readlist {
	struct ib_cqe cqe;
	struct ib_cqe last;
	struct list_head item;
	struct rdmatensor_readlane *lane;
	u32 nr;
	u64 bytes;
	int status;
	void (*done)(struct rdmatensor_readlist *list);
};

/**
 * struct rdmatensor_readlane - one queue pair
 * @readers: whose
 * @index: which, of those that this side connects
 * @nr_lanes: how many the side that connects them wants
 * @item: of one that the peer has connected: among the accepted ones
 * @lock: guards @state, @room, @lists, @bytes, @said_at, @probes, and what the device said of
 *        the queue pair
 * @state: enum rdmatensor_readlane_state, changed by readlane_try_move() alone
 * @room: READs that may be posted
 * @lists: that are in flight
 * @bytes: that they read
 * @said_at: jiffies: when the device said something of @lists last, or the first was posted
 * @probes: in flight, which are in no list; nothing is posted behind one
 * @idle_probes: posted since the last list was done, while none was in flight
 * @watch: probes the lane while the device says nothing of @lists, and ends it in the end; armed
 *         while there are any
 * @conn: the connection, with the queue pair; without an id in IDLE
 * @down_work: takes a FAILED lane apart
 * @event_work: fails a lane whose queue pair the device has reported
 */
struct rdmatensor_readlane {
	struct rdmatensor_readers *readers;
	u8 index;
	u8 nr_lanes;
	struct list_head item;
	spinlock_t lock;
	u8 state;
	u32 room;
	struct list_head lists;
	u64 bytes;
	unsigned long said_at;
	u8 probes;
	u8 idle_probes;
	struct timer_list watch;
	struct rdmatensor_conn conn;
	struct work_struct down_work;
	struct work_struct event_work;
};

/**
 * struct rdmatensor_readers - those of one channel
 * @ref: the channel, each opened table that has this owner, each accepted lane,
 *       @restore_work
 * @cm: the context's, until @closed
 * @counters: where they are counted: the context's
 * @wait: waiters for space in a send queue, for a list, or for a lane
 * @peer: the owner's address, and its listener's port; 0: it has none
 * @nonce: the channel's
 * @active: this side has connected the channel
 * @params: the channel's
 * @vector: the channel's
 * @max_pieces: destinations that a READ may have on the device
 * @lock: connecting and taking apart
 * @closed: the channel is down: nothing is connected any more
 * @accept_lock: guards @accepted, @nr_accepted, @accept_closed
 * @accepted: lanes that the peer has connected
 * @nr_accepted: in it
 * @accept_closed: as @closed
 * @wq: for lanes' works
 * @quota: of the queue pairs of @lanes
 * @nr_lanes: valid members of @lanes, once something is connected
 * @failed: the last attempt to connect has left some lanes down
 * @retry_at: then, when to try again while others are UP, jiffies
 * @restore_wq: for @restore_work
 * @restore_work: that attempt; holds a reference
 * @give_way: it ends: a lane that was UP has failed, or somebody waits for @lock
 * @waiting: callers that wait for @lock to connect lanes
 * @restore_wanted: @restore_work found @lock taken, and is to be queued again
 * @starving: somebody waits for room in a send queue
 * @lanes: that this side has connected
 */
struct rdmatensor_readers {
	struct kref ref;
	struct rdmatensor_cm *cm;
	struct rdmatensor_counters *counters;
	wait_queue_head_t *wait;
	struct sockaddr_storage peer;
	u64 nonce;
	bool active;
	const struct rdmatensor_channel_params *params;
	u32 vector;
	u8 max_pieces;
	struct mutex lock;
	bool closed;
	spinlock_t accept_lock;
	struct list_head accepted;
	u32 nr_accepted;
	bool accept_closed;
	struct workqueue_struct *wq;
	struct rdmatensor_quota quota;
	u8 nr_lanes;
	bool failed;
	unsigned long retry_at;
	struct workqueue_struct *restore_wq;
	struct work_struct restore_work;
	int give_way;
	atomic_t waiting;
	bool restore_wanted;
	bool starving;
	struct rdmatensor_readlane lanes[RDMATENSOR_LANES_MAX];
};

/* Process context. @wait and @counters outlive the context's channels. NULL: no memory */
struct rdmatensor_readers *rdmatensor_readers_alloc(struct rdmatensor_cm *cm,
						    struct rdmatensor_counters *counters,
						    wait_queue_head_t *wait,
						    struct workqueue_struct *wq,
						    struct workqueue_struct *restore_wq,
						    const struct rdmatensor_channel *channel);
/*
 * Probes @lane if the device has said nothing of it for a while at @now, jiffies, or ends it; and
 * looks again later
 */
void rdmatensor_readlane_watch(struct rdmatensor_readlane *lane, unsigned long now);
/* The peer has connected the channel, and says where it listens. Before the channel is UP */
void rdmatensor_readers_peer_port(struct rdmatensor_readers *readers, u16 port);
/* Whether the peer listens, so that lanes can be connected to it. The channel has been UP */
bool rdmatensor_readers_reachable(const struct rdmatensor_readers *readers);
void rdmatensor_readers_get(struct rdmatensor_readers *readers);
/* Any context. They must be closed by then */
void rdmatensor_readers_put(struct rdmatensor_readers *readers);
/* All lanes end, those in flight and those to come. Process context, no lock of theirs */
void rdmatensor_readers_close(struct rdmatensor_readers *readers);

/**
 * rdmatensor_readers_connect - have @nr lanes UP
 * @readers: of a channel whose peer is reachable
 * @nr: lanes wanted, 1..RDMATENSOR_LANES_MAX
 * @timeout_ms: for all of them
 * @stop: ends it when it is not 0, and @wait is woken; NULL: a signal does
 *
 * Process context. Return: 0: at least one is UP; -EINTR: it was to end; with @stop
 * -EBUSY: another caller connects them, and @wait is woken when it has done so; -ENOTCONN: the
 * channel is down; -EDQUOT: rdma.max of the RDMA cgroup; -ECONNREFUSED: the peer refuses them, or
 * has no listener; -EIO: the device is busy; another negative errno: the last failure, the peer's
 * own errno if it has refused a lane with one that workers refuse with.
 */
int rdmatensor_readers_connect(struct rdmatensor_readers *readers, u8 nr, u32 timeout_ms,
			       const int *stop);
/* The peer connects a lane: in rdma_cm's handler. Return: 0: @id is the lane's; an errno */
int rdmatensor_readers_accept(struct rdmatensor_readers *readers, struct rdma_cm_id *id,
			      const struct rdma_cm_event *event,
			      const struct rdmatensor_wire_private *private);
/*
 * Calls @fn for each lane that is UP, this side's and the peer's, until it returns other than
 * 0, which is returned; locks are held
 */
int rdmatensor_readers_each(struct rdmatensor_readers *readers,
			    int (*fn)(void *arg, const struct rdmatensor_qp_attr *attr),
			    void *arg);
/*
 * Has lanes connected again that have failed, beside those that are UP; if none is, that is
 * rdmatensor_readers_connect()'s. After an attempt that failed the next one is not made at once: by
 * nine times as long as it has taken, up to a minute. A work item does it: who reads does not wait.
 * Process context
 */
void rdmatensor_readers_restore(struct rdmatensor_readers *readers);
/* A gather found no room: all are woken when there is some. It looks once more before it sleeps */
void rdmatensor_readers_starve(struct rdmatensor_readers *readers);
/* Lanes that are UP now */
u32 rdmatensor_readers_up(struct rdmatensor_readers *readers);

/**
 * rdmatensor_readlane_post - post a list, in one call, its last READ signalled
 * @lane: of those that this side has connected
 * @list: with @done set, all else is set here
 * @wrs: chained READs, their wr_cqe and flags are set here
 * @nr: their number, at most the queue depth
 *
 * Any context. Return: 0: list->done() will be called; -EAGAIN: no room, or a probe is in
 * flight; -ENOTCONN: the lane is not UP.
 */
int rdmatensor_readlane_post(struct rdmatensor_readlane *lane, struct rdmatensor_readlist *list,
			     struct ib_rdma_wr *wrs, u32 nr);
/* The device reports an event of the queue pair of @context, a lane. Any context */
void rdmatensor_readlane_qp_event(struct ib_event *event, void *context);
/*
 * None of the lane's READs is in flight any more: its lists are done that wait for a
 * completion which does not come. After the queue pair has been destroyed
 */
void rdmatensor_readlane_drained(struct rdmatensor_readlane *lane);

#endif /* RDMATENSOR_READLANE_H */
