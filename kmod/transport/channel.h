/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A channel: the connection to one remote worker. Orders what is sent, counts
 * credits and queue entries, and hands what arrives to the state machines.
 *
 * Calls go down: request.c and response.c queue messages and writes here; this
 * calls the lane operations, which are verbs (lane.c) or a test's. What happens
 * comes back up: lanes call the rdmatensor_channel_rx_*() and _tx_*() functions, and
 * these call struct rdmatensor_channel_ops and the queued objects' own done
 * functions.
 *
 * Room transport: connections, queue pairs, message buffers, credits and READ lanes. It
 * calls memory, core and the verbs; all rooms above call it. It knows no tensor
 * and no table: what a message means is decided by those that queue and receive it.
 *
 * Locking: @lock guards everything in the channel and in its requests and
 * responses, and is taken in completion context. Inside it may be taken: the
 * rendezvous table's, regions', the ring's, the meta cache's, the fetch
 * table's lock. up-calls say whether they hold it.
 */
#ifndef RDMATENSOR_CHANNEL_H
#define RDMATENSOR_CHANNEL_H

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "core/keep.h"
#include "core/quota.h"
#include "core/stats.h"
#include "core/wire.h"
#include "transport/channel_params.h"
#include "transport/lane.h"
#include "transport/msgbuf.h"

struct rdmatensor_channel;
struct rdmatensor_context;
struct rdmatensor_core;
struct rdmatensor_domain;
struct rdmatensor_exposure;
struct rdmatensor_listings;
struct rdmatensor_lookup;
struct rdmatensor_pool;
struct rdmatensor_readers;

#define RDMATENSOR_RESPONSE_HASH_BITS 8

/**
 * struct rdmatensor_txmsg - a control message that waits for a slot, embedded
 * @item: in the channel's queue; empty: not queued
 * @fill: sets the message; @lock held. Called when slot, credit and queue entry are there
 * @posted: it has been posted as number @seq and is off the queue; @lock held.
 *          May free the object around it
 * @exposure: what it tells the peer of, and has to be registered before; or NULL
 */
struct rdmatensor_txmsg {
	struct list_head item;
	void (*fill)(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg);
	void (*posted)(struct rdmatensor_txmsg *tx, u64 seq);
	struct rdmatensor_exposure *exposure;
};

/**
 * struct rdmatensor_write - the content of one response, embedded
 * @index: request index, the immediate of each part's last write
 * @seq: number of the request message that it answers; acknowledged with lane 0's part
 * @pool: source, held until @done
 * @pool_offset: where in it
 * @cut: where the content lies from there on; NULL: all together
 * @dest: where it is to lie from @remote_addr on; NULL: all together
 * @bytes: length; 0: one empty write
 * @remote_addr: destination
 * @seg_shift: of the destination
 * @rkeys: of the destination, one for each segment from the first touched
 * @done: all parts have reached the peer, or as much as was posted of them before
 *        rdmatensor_channel_drop(); called without lock. Never, if the channel goes down
 *        before. Calls rdmatensor_channel_written()
 * @open: something of it has been posted; counts in channel->writes_open
 * @dropped: the peer has not got all of it, and will not
 * @nr_parts: valid members of @parts
 * @parts_left: parts that have not completed
 * @parts: one for each lane
 */
struct rdmatensor_write {
	u32 index;
	u64 seq;
	struct rdmatensor_pool *pool;
	u64 pool_offset;
	const struct rdmatensor_cut *cut;
	const struct rdmatensor_cut *dest;
	u64 bytes;
	u64 remote_addr;
	u8 seg_shift;
	const __le32 *rkeys;
	void (*done)(struct rdmatensor_write *write);
	bool open;
	bool dropped;
	u8 nr_parts;
	u8 parts_left;
	struct rdmatensor_part *parts;
};

/**
 * struct rdmatensor_channel_ops - what a channel calls up to
 *
 * @message: a checked message, number @seq. Not HELLO. Return: 0 or -EPROTO with @why
 * @content: the last write of a part, of @bytes, arrived on a lane. As above
 * @hello: the peer's HELLO. Return: 0 or why the channel is refused
 * @up: the channel is UP
 * @failed: it has begun to go down; @lock held, once: the owner arranges for
 *          rdmatensor_cm_teardown(), from process context
 *
 * @freed: the last reference is gone; process context. May be NULL
 *
 * Called in completion context; without @lock unless said.
 */
struct rdmatensor_channel_ops {
	int (*message)(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
		       u64 seq, const char **why);
	int (*content)(struct rdmatensor_channel *channel, u8 lane, u32 index, u32 bytes,
		       const char **why);
	int (*hello)(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
		     const char **why);
	void (*up)(struct rdmatensor_channel *channel);
	void (*failed)(struct rdmatensor_channel *channel);
	void (*freed)(struct rdmatensor_channel *channel);
};

/**
 * struct rdmatensor_channel - one channel
 * @ref: the owner's table, each request and response, and what runs on its behalf
 * @id: in the context, from 1
 * @owner: the context
 * @core: its tables and ring, referenced
 * @ops: see above
 * @lane_ops: see above
 * @params: the context's
 * @lock: see the head of this file
 * @state: enum rdmatensor_channel_state, changed by channel_try_move() alone
 * @error: why it goes down
 * @error_text: the same for the user
 * @leaves: it was UP, either side has asked for its end, and nothing has failed since:
 *          rdmatensor_channel_leave(). Written under @lock
 * @leave_until: jiffies at which that is over
 * @active: this side connected it
 * @nonce: common to its lanes
 * @nr_lanes: in all
 * @vector: completion vector of the first one, modulo the device's number of them
 * @lanes_open: lanes whose queue pair can send
 * @peer: address
 * @worker: the peer's name, from its HELLO
 * @incarnation: the peer's
 * @features: RDMATENSOR_WIRE_FEATURE_*: those that both sides have, once UP
 * @listen_port: for the HELLO: where the own listener can be reached from the peer; 0: nowhere
 * @own_incarnation: for the HELLO
 * @own_worker: for the HELLO, lives as long as the context
 * @user_data: CONNECT's
 * @want_worker: the name that CONNECT asked for, empty: any
 * @announced: the process knows of it, and its end will be reported
 * @wait: steps of the set-up, changes of @state, and what a leave waits for
 * @setup_done: no set-up in process context is in progress
 * @gone: down, its fetches have ended
 * @down_work: the teardown
 * @free_work: frees it, when the last reference is gone
 * @probe_timer: probes the peer, see probe.c; armed while the channel is UP
 * @lanes_timer: probes lanes, see probe.c; armed while something is posted
 * @heard: the peer has been heard of since the timer ran out last
 * @said_at: jiffies at which it sent something last: its device answers also when it does not
 * @handshake_work: ends a set-up that takes too long
 * @domain: strict mode: its own, with its queue pairs and its destinations. NULL: all that peers
 *          reach is in the context's. Constant
 * @users: threads that use @domain outside of @lock: rdmatensor_channel_enter()
 * @closing: exposures of which invalidations are still to be posted
 * @quota: of the queue pairs of its lanes; the owner's to charge and uncharge
 * @msgbuf: slots
 * @credits: their accounting
 * @peer_msgbuf: address of the peer's receive slots
 * @peer_rkey: key
 * @peer_slots: how many
 * @peer_slot_bytes: of each
 * @txq: messages that wait for a slot
 * @writes_open: contents that are posted and whose responses are in use, at most
 *               params->max_requests: to the peer their requests may have ended
 * @settle: reports to the lanes' limits what has completed, and posts more
 * @settle_work: the same, where completions are handled in a workqueue
 * @hello_tx: the HELLO
 * @requests: this side's requests by index
 * @nr_requests: those in it that the peer may still say something about, or will
 * @nr_keys: memory regions that destinations of requests may take at most, in strict mode
 * @next_index: where the search for a free index continues
 * @pending: requests that wait for @outstanding to fall
 * @outstanding: requests that the peer has, or may have
 * @max_outstanding: its bound: the lesser of both sides' max_requests
 * @responses: the peer's requests by index
 * @response_mem: memory of all responses, twice params->max_requests of them: what
 *                the peer counts, and @writes_open that it does not count any more
 * @free_responses: those not in use
 * @nr_responses: those in use
 * @kepts: destinations that the peer has described once
 * @nr_keeps: the peer's slots for such that names have here
 * @metacache: what was learnt of the peer's tensors
 * @listings: questions about what is offered, in both directions; the owner's to make and to free
 * @lookup: questions about tables, in both directions; the owner's to make and to free
 * @readers: lanes for READs; the owner makes and frees them
 * @counters: its own
 * @lanes: nr_lanes of them
 */
struct rdmatensor_channel {
	struct kref ref;
	u32 id;
	struct rdmatensor_context *owner;
	struct rdmatensor_core *core;
	const struct rdmatensor_channel_ops *ops;
	const struct rdmatensor_lane_ops *lane_ops;
	const struct rdmatensor_channel_params *params;

	spinlock_t lock;
	u8 state;
	int error;
	const char *error_text;
	bool leaves;
	unsigned long leave_until;

	bool active;
	u64 nonce;
	u8 nr_lanes;
	u32 vector;
	u8 lanes_open;
	struct sockaddr_storage peer;
	char worker[RDMATENSOR_WORKER_MAX];
	u64 incarnation;
	u32 features;
	u16 listen_port;
	u64 own_incarnation;
	const char *own_worker;
	u64 user_data;
	char want_worker[RDMATENSOR_WORKER_MAX];
	bool announced;
	wait_queue_head_t wait;
	struct completion setup_done;
	struct completion gone;
	struct work_struct down_work;
	struct work_struct free_work;
	struct delayed_work handshake_work;
	struct timer_list probe_timer;
	struct timer_list lanes_timer;
	bool heard;
	unsigned long said_at;

	struct rdmatensor_domain *domain;
	u32 users;
	struct list_head closing;

	struct rdmatensor_quota quota;
	struct rdmatensor_msgbuf msgbuf;
	struct rdmatensor_credits credits;
	u64 peer_msgbuf;
	u32 peer_rkey;
	u32 peer_slots;
	u32 peer_slot_bytes;

	struct list_head txq;
	u32 writes_open;
	struct tasklet_struct settle;
	struct work_struct settle_work;
	struct rdmatensor_txmsg hello_tx;

	struct xarray requests;
	u32 nr_requests;
	atomic64_t nr_keys;
	u32 next_index;
	struct list_head pending;
	u32 outstanding;
	u32 max_outstanding;

	DECLARE_HASHTABLE(responses, RDMATENSOR_RESPONSE_HASH_BITS);
	void *response_mem;
	struct list_head free_responses;
	u32 nr_responses;
	struct rdmatensor_kepts kepts;
	u32 nr_keeps;

	struct rdmatensor_metacache *metacache;
	struct rdmatensor_listings *listings;
	struct rdmatensor_lookup *lookup;
	struct rdmatensor_readers *readers;
	struct rdmatensor_counters counters;

	struct rdmatensor_lane lanes[];
};

/* Receives that lane 0 keeps posted: see rdmatensor_channel_recvs() */
u32 rdmatensor_channel_recvs(const struct rdmatensor_channel_params *params, u8 lane);

/**
 * rdmatensor_channel_alloc - a channel in state CONNECTING with empty lanes
 * @core: the context's; the channel holds a reference
 * @nr_lanes: 1..RDMATENSOR_LANES_MAX
 * @params: the context's, which outlives the channel
 * @ops: what the channel calls up to, constant
 * @lane_ops: what it posts by, constant
 *
 * It has neither a message buffer nor queue pairs yet. Process context. Return: a channel with
 * one reference, or ERR_PTR(-ENOMEM).
 */
struct rdmatensor_channel *
rdmatensor_channel_alloc(struct rdmatensor_core *core, u8 nr_lanes,
			 const struct rdmatensor_channel_params *params,
			 const struct rdmatensor_channel_ops *ops,
			 const struct rdmatensor_lane_ops *lane_ops);
void rdmatensor_channel_get(struct rdmatensor_channel *channel);
/* Any context; everything in it must be gone when the last one goes */
void rdmatensor_channel_put(struct rdmatensor_channel *channel);

/*
 * Strict mode, before anything is connected: its queue pairs will be in @domain, which it holds
 * until rdmatensor_channel_leave_domain()
 */
void rdmatensor_channel_take_domain(struct rdmatensor_channel *channel,
				    struct rdmatensor_domain *domain);
/* It is DOWN, or was never connected, and its requests have ended. No-op in pool mode. May sleep */
void rdmatensor_channel_leave_domain(struct rdmatensor_channel *channel);
/*
 * The channel's domain is used outside of the lock until exit(): it stays until then. Process
 * context. Return: 0; -ENOTCONN: the channel is not UP
 */
int rdmatensor_channel_enter(struct rdmatensor_channel *channel);
void rdmatensor_channel_exit(struct rdmatensor_channel *channel);

/* The peer's side, from the connection's private data. -EPROTO with @why */
int rdmatensor_channel_set_peer(struct rdmatensor_channel *channel,
				const struct rdmatensor_wire_private *private,
				const char **why);
/* All lanes are up: say HELLO */
void rdmatensor_channel_hello(struct rdmatensor_channel *channel);

/**
 * rdmatensor_channel_fail - begin to end the channel
 * @channel: in any state
 * @error: negative errno for its fetches
 * @text: constant string for the user
 *
 * Any context, any number of times: the first call counts.
 */
void rdmatensor_channel_fail(struct rdmatensor_channel *channel, int error,
			     const char *text);
void rdmatensor_channel_fail_locked(struct rdmatensor_channel *channel, int error,
				    const char *text);
/* Bytes that a lane may have posted before what is posted next. Any context */
u64 rdmatensor_channel_posted_most(const struct rdmatensor_channel *channel);
/* Until what is posted is acknowledged on a line that loses some; jiffies */
unsigned long rdmatensor_channel_leave_time(const struct rdmatensor_channel_params *params);

/**
 * rdmatensor_channel_leave - end the channel because this side or the peer wants to
 * @channel: in any state; its transport works
 * @error: as for rdmatensor_channel_fail()
 * @text: as for rdmatensor_channel_fail()
 *
 * Nothing more is posted. The teardown lets what has been posted complete first, for up to four
 * ack timeouts, and one to ten seconds: content that has reached the peer counts as delivered
 * only if it is acknowledged. A failure ends that.
 */
void rdmatensor_channel_leave(struct rdmatensor_channel *channel, int error,
			      const char *text);
/* The teardown waits for nothing any more, and from now on nothing is posted, probes included */
void rdmatensor_channel_left(struct rdmatensor_channel *channel);
/* Nothing that was posted is in flight, but probes. The teardown waits for that at @wait */
bool rdmatensor_channel_is_idle(struct rdmatensor_channel *channel);
/*
 * The device has returned unprocessed what was posted to the lane: its queue pair is in
 * error, and that ends the channel. Any context
 */
void rdmatensor_channel_lane_flushed(struct rdmatensor_lane *lane);
/* The lane's queue pair can send: it is connected, or about to be accepted */
void rdmatensor_channel_lane_connected(struct rdmatensor_lane *lane);
/* CLOSING -> DOWN: the lanes are gone. Forgets queued messages and writes. May sleep */
void rdmatensor_channel_down(struct rdmatensor_channel *channel);

/* With the channel's lock held: */
void rdmatensor_channel_send(struct rdmatensor_channel *channel,
			     struct rdmatensor_txmsg *tx);
/* Something has to wait: counted, and traced. @stat: RDMATENSOR_STAT_STALL_* */
void rdmatensor_channel_stall(struct rdmatensor_channel *channel, enum rdmatensor_stat stat);
/* Take it off the queue if it is on it. True: it was */
bool rdmatensor_channel_unsend(struct rdmatensor_txmsg *tx);
/* Invalidates what has been registered of @exposure, which is something, and calls its closed() */
void rdmatensor_channel_close_exposure(struct rdmatensor_channel *channel,
				       struct rdmatensor_exposure *exposure);
/* Contents up to this length are delayed by what is posted before them, as are their messages */
#define RDMATENSOR_SHORT_BYTES SZ_64K

/* What waits for posted contents, and more that may follow: lanes post less for a while */
void rdmatensor_channel_contend(struct rdmatensor_channel *channel);
/* Cuts the write into its parts and queues them */
void rdmatensor_channel_write(struct rdmatensor_channel *channel,
			      struct rdmatensor_write *write);
/*
 * Posts no more of the write; of one that goes over several lanes and has begun, all, before what
 * nobody drops. Return: true: nothing of it is in flight, and done() will not be called; false: it
 * will be called, as without the drop
 */
bool rdmatensor_channel_drop(struct rdmatensor_channel *channel,
			     struct rdmatensor_write *write);
/* From done(), when what answered the request is free again */
void rdmatensor_channel_written(struct rdmatensor_channel *channel,
				struct rdmatensor_write *write);
/* Posts what can be posted. Call it after send(), write() and changes of outstanding */
void rdmatensor_channel_pump(struct rdmatensor_channel *channel);
static inline bool rdmatensor_channel_usable(const struct rdmatensor_channel *channel)
{
	lockdep_assert_held(&channel->lock);
	return channel->state == RDMATENSOR_CHANNEL_UP;
}

/* Nothing may be posted any more, by either side of a queue. With the lock held */
static inline bool rdmatensor_channel_over(const struct rdmatensor_channel *channel)
{
	lockdep_assert_held(&channel->lock);
	return channel->state >= RDMATENSOR_CHANNEL_CLOSING && !channel->leaves;
}

/*
 * The peer's name, to @worker, which has RDMATENSOR_WORKER_MAX bytes, and its incarnation. Until
 * its HELLO was accepted they are being written: empty, and 0
 */
static inline u64 rdmatensor_channel_peer(const struct rdmatensor_channel *channel, char *worker)
{
	bool known = channel->state != RDMATENSOR_CHANNEL_CONNECTING;

	lockdep_assert_held(&channel->lock);
	strscpy(worker, known ? channel->worker : "", RDMATENSOR_WORKER_MAX);
	return known ? channel->incarnation : 0;
}

/* From lanes, without lock */
void rdmatensor_channel_rx_message(struct rdmatensor_channel *channel, u32 bytes);
void rdmatensor_channel_rx_ack(struct rdmatensor_channel *channel);
void rdmatensor_channel_rx_content(struct rdmatensor_channel *channel, u8 lane, u32 index,
				   u32 bytes);
void rdmatensor_channel_tx_message(struct rdmatensor_channel *channel);
void rdmatensor_channel_tx_ack(struct rdmatensor_channel *channel);
void rdmatensor_channel_tx_probe(struct rdmatensor_lane *lane, bool ok);
void rdmatensor_channel_tx_registration(struct rdmatensor_channel *channel);
void rdmatensor_channel_tx_invalidation(struct rdmatensor_channel *channel,
					struct rdmatensor_exposure *exposure);
/* A message or ack has failed, or was flushed: its place is free again */
void rdmatensor_channel_tx_lost(struct rdmatensor_lane *lane);
void rdmatensor_channel_tx_part(struct rdmatensor_lane *lane, struct rdmatensor_part *part,
				bool ok);

#endif /* RDMATENSOR_CHANNEL_H */
