/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every fetch has, whether its tensor comes from a peer (request.c) or from
 * the context itself (local.c): a destination, a deadline, one entry in the
 * completion ring, and a place in the table by which it is cancelled.
 *
 * Room fetch: tensors by name, both sides of them: requests and responses, publications,
 * fetches of the context itself. It calls transport, memory and core. Gather, whose gathers
 * are fetches to who cancels and counts them, context and api call it.
 */
#ifndef RDMATENSOR_FETCH_H
#define RDMATENSOR_FETCH_H

#include <linux/kref.h>
#include <linux/timer.h>
#include "core/core.h"
#include "memory/pool.h"

struct rdmatensor_fetch;

/**
 * struct rdmatensor_fetch_info - one that is in flight, for people
 * @state: of its machine
 * @name: the tensor's, not zero-terminated; as long as the fetch is held
 * @name_len: its length
 * @peer: worker that it was asked of; as long as the fetch is held
 * @index: of its request
 * @has_index: there is a request
 */
struct rdmatensor_fetch_info {
	const char *state;
	const char *name;
	u16 name_len;
	const char *peer;
	u32 index;
	bool has_index;
};

/**
 * struct rdmatensor_fetch_ops - what request.c and local.c do differently
 * @cancel: end it with @status as soon as that is safe; no-op when it has ended. Process
 *          context
 * @expire: its timer has run out; softirq
 * @describe: fills @info; process context or softirq, no lock held
 * @free: the last reference is gone; any context
 */
struct rdmatensor_fetch_ops {
	void (*cancel)(struct rdmatensor_fetch *fetch,
		       const struct rdmatensor_status *status);
	void (*expire)(struct rdmatensor_fetch *fetch);
	void (*describe)(struct rdmatensor_fetch *fetch, struct rdmatensor_fetch_info *info);
	void (*free)(struct rdmatensor_fetch *fetch);
};

/**
 * struct rdmatensor_fetch_args - a checked FETCH operation, or the same of a GATHER
 * @gather: it is that: @name and @step_id mean nothing
 * @user_data: for its entry
 * @name: tensor's name, not zero-terminated
 * @name_len: its length
 * @step_id: the step
 * @pool: destination's; a reference is the fetch's from its beginning on. NULL: @share
 * @offset: where in it, without @alloc
 * @bytes: room there; with @alloc: longest tensor, 0: any
 * @alloc: allocate when the size is known
 * @share: wants the published tensor itself, of oneself: there is no destination
 * @keep: the peer need not be told of the destination each time; without @alloc
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 */
struct rdmatensor_fetch_args {
	bool gather;
	u64 user_data;
	const char *name;
	u16 name_len;
	s64 step_id;
	struct rdmatensor_pool *pool;
	u64 offset;
	u64 bytes;
	bool alloc;
	bool share;
	bool keep;
	u64 deadline_ns;
};

/**
 * struct rdmatensor_fetch - the common part, embedded
 * @ref: the state machine, the timer while it is armed, walkers of the table
 * @ops: see above
 * @core: referenced
 * @counters: where it is counted
 * @node: in the table by @user_data and @serial
 * @serial: grows from one fetch of the core to the next
 * @begun_ns: when it was submitted, CLOCK_MONOTONIC
 * @gather: it is one
 * @channel: for its entry
 * @user_data: for its entry
 * @step_id: the step
 * @rows_missing: of a gather, for its entry if it failed
 * @first_missing: position of the first of them
 * @pool: referenced; NULL when it has ended, or has no destination
 * @pool_id: its number, also then
 * @alloc: the destination is allocated here
 * @has_region: @use is that of a destination, and not an empty one; or it has been given
 *              the published one, of which it has no @use
 * @share_id: by which that is released; 0: it has not got it
 * @offset: of the destination, if @has_region
 * @room: bytes there, or the most to allocate
 * @use: the destination's
 * @meta: what is known of the tensor
 * @status: what it ends with, when that was decided before its end
 * @checksum: of the content, as the sender has it
 * @validate: @checksum is valid
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 * @timer: deadline, or later the bound on a CANCEL's answer
 */
struct rdmatensor_fetch {
	struct kref ref;
	const struct rdmatensor_fetch_ops *ops;
	struct rdmatensor_core *core;
	struct rdmatensor_counters *counters;
	struct rb_node node;
	u64 serial;
	u64 begun_ns;
	bool gather;
	u32 channel;
	u64 user_data;
	s64 step_id;
	u64 rows_missing;
	u64 first_missing;
	struct rdmatensor_pool *pool;
	u32 pool_id;
	bool alloc;
	bool has_region;
	u32 share_id;
	u64 offset;
	u64 room;
	struct rdmatensor_use use;
	struct rdmatensor_meta meta;
	struct rdmatensor_status status;
	u32 checksum;
	bool validate;
	u64 deadline_ns;
	struct timer_list timer;
};

/**
 * rdmatensor_fetch_init - a fetch that holds its ring entry and destination
 *
 * Return: 0; -EAGAIN: the ring; -EINVAL: the destination; the status of an
 * aborted step. On success it ends by rdmatensor_fetch_finish(), or, before
 * rdmatensor_fetch_begin(), by rdmatensor_fetch_abandon(), which leaves the reference
 * of the pool to the caller.
 */
int rdmatensor_fetch_init(struct rdmatensor_fetch *fetch,
			  const struct rdmatensor_fetch_ops *ops,
			  struct rdmatensor_core *core,
			  struct rdmatensor_counters *counters, u32 channel,
			  const struct rdmatensor_fetch_args *args);
void rdmatensor_fetch_abandon(struct rdmatensor_fetch *fetch);
/* From here on it can be cancelled and can expire */
void rdmatensor_fetch_begin(struct rdmatensor_fetch *fetch, u64 deadline_ns);
void rdmatensor_fetch_get(struct rdmatensor_fetch *fetch);
void rdmatensor_fetch_put(struct rdmatensor_fetch *fetch);
/*
 * True: the timer has run out before the deadline, and is armed again unless the fetch has
 * ended. It counts jiffies, and a processor that has missed ticks reads old ones when it
 * arms it. The timer must not have been armed for anything else, and not be now
 */
bool rdmatensor_fetch_early(struct rdmatensor_fetch *fetch);
/* (Re-)arms the timer */
void rdmatensor_fetch_arm(struct rdmatensor_fetch *fetch, unsigned long expires);

/**
 * rdmatensor_fetch_place - have a destination for fetch->meta
 *
 * Return: 0: held, or nothing is needed; -EMSGSIZE: longer than the room;
 * -ENOSPC, -ENOMEM: of the pool. After an error there is no allocated destination.
 */
int rdmatensor_fetch_place(struct rdmatensor_fetch *fetch, gfp_t gfp);

/**
 * rdmatensor_fetch_finish - its end: destination and pool let go, then the entry written
 * @error: 0 or a negative errno. Once. The caller's own reference remains
 *
 * No peer may be able to write to the destination any more.
 */
void rdmatensor_fetch_finish(struct rdmatensor_fetch *fetch, int error);

/* What finish() gets when a checksum has to be compared first; may sleep */
int rdmatensor_fetch_check(struct rdmatensor_fetch *fetch);

/* Its deadline has passed, and it has not ended otherwise: tells who listens. No lock held */
void rdmatensor_fetch_timed_out(struct rdmatensor_fetch *fetch);

/**
 * struct rdmatensor_fetch_place - a place in the table of fetches
 * @user_data: of the fetch there
 * @serial: its; no fetch has 0
 */
struct rdmatensor_fetch_place {
	u64 user_data;
	u64 serial;
};

/*
 * The next one that has not ended, in the table's order: behind @place, which is set to
 * its; begin with zeros. Held, to be put. NULL: there is none
 */
struct rdmatensor_fetch *rdmatensor_fetch_next(struct rdmatensor_core *core,
					       struct rdmatensor_fetch_place *place);

/*
 * Of the fetches that had begun when they were called. Process context. Return: fetches
 * that were asked to end
 */
int rdmatensor_fetch_cancel(struct rdmatensor_core *core, u64 user_data);
int rdmatensor_fetch_abort_step(struct rdmatensor_core *core, s64 step_id,
				const struct rdmatensor_status *status);
int rdmatensor_fetch_cancel_all(struct rdmatensor_core *core, int error);

#endif /* RDMATENSOR_FETCH_H */
