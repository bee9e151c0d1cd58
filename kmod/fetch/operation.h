/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations: what SUBMIT begins and a completion entry ends. Fetches and gathers are the
 * two kinds. Each operation has an entry in the completion ring, a range that it writes, a
 * deadline, and a place in the core's table, in which a CANCEL finds it.
 *
 * Room fetch: operations; tensors by name, both sides of them: requests and responses,
 * publications, fetches of the context itself. It calls transport, memory and core. Gather,
 * whose gathers are operations, context and api call it.
 */
#ifndef RDMATENSOR_OPERATION_H
#define RDMATENSOR_OPERATION_H

#include <linux/kref.h>
#include <linux/rbtree.h>
#include <linux/timer.h>
#include "core/core.h"
#include "memory/pool.h"

struct rdmatensor_operation;

/**
 * struct rdmatensor_operation_info - description of an operation in flight, for people
 * @state: of its state machine
 * @name: the tensor's or table's, not zero-terminated; valid while the operation is held
 * @name_len: bytes of @name
 * @peer: worker that was asked; valid while the operation is held. NULL: the context itself
 * @index: of its request
 * @has_index: there is a request
 */
struct rdmatensor_operation_info {
	const char *state;
	const char *name;
	u16 name_len;
	const char *peer;
	u32 index;
	bool has_index;
};

/**
 * struct rdmatensor_operation_kind - what all operations of a kind have in common
 * @cqe_type: type of the completion entry
 * @submitted: counter of those that have begun
 * @completed: counter of those that have ended without an error
 * @failed: counter of those that have ended with an error
 * @has_step: its operations belong to a step, and end when that is aborted
 * @entry: fills in what the kind tells in its completion entry, whose common members are
 *         set. Any context
 */
struct rdmatensor_operation_kind {
	u16 cqe_type;
	enum rdmatensor_stat submitted;
	enum rdmatensor_stat completed;
	enum rdmatensor_stat failed;
	bool has_step;
	void (*entry)(const struct rdmatensor_operation *op, int error,
		      struct rdmatensor_cqe *cqe);
};

/**
 * struct rdmatensor_operation_ops - calls of the base to one state machine
 * @kind: of its operations
 * @cancel: end the operation with @status as soon as that is safe; no-op when it has ended.
 *          Process context
 * @expire: the timer has run out; softirq
 * @describe: fill in @info, which is zeroed; process context or softirq, no lock held
 * @release: the last reference is gone: free the memory; any context
 */
struct rdmatensor_operation_ops {
	const struct rdmatensor_operation_kind *kind;
	void (*cancel)(struct rdmatensor_operation *op, const struct rdmatensor_status *status);
	void (*expire)(struct rdmatensor_operation *op);
	void (*describe)(struct rdmatensor_operation *op, struct rdmatensor_operation_info *info);
	void (*release)(struct rdmatensor_operation *op);
};

/**
 * struct rdmatensor_operation_args - what an operation is made of
 * @channel: for the completion entry
 * @user_data: for the completion entry
 * @step_id: the step; 0 for kinds without one
 * @any_step: it is a bound, and no step's end ends the operation
 * @pool: of the range; the operation takes over a reference when it begins. NULL: no range
 * @offset: of the range in @pool, in bytes
 * @bytes: of the range; 0: the operation holds the pool, and a range to be allocated later
 * @sparse: it writes some of these, at strides
 */
struct rdmatensor_operation_args {
	u32 channel;
	u64 user_data;
	s64 step_id;
	bool any_step;
	struct rdmatensor_pool *pool;
	u64 offset;
	u64 bytes;
	bool sparse;
};

/**
 * struct rdmatensor_operation - the common part of an operation, embedded
 * @ref: the state machine, the timer while it is armed, readers of the table
 * @ops: its state machine
 * @core: referenced
 * @counters: counters that it adds to
 * @node: in core->operations, by @user_data and @serial
 * @serial: position among all operations of the core, from 1; guarded by operations_lock
 * @begun_ns: CLOCK_MONOTONIC of its submission
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 * @timer: runs to the deadline, then to the bound of a CANCEL's answer
 * @channel: for the completion entry
 * @user_data: for the completion entry
 * @step_id: the step
 * @any_step: @step_id is a bound
 * @pool: referenced; NULL: the operation has ended, or writes to no pool
 * @pool_id: number of @pool, for the completion entry
 * @use: hold on the range that is written
 * @status: what the operation will end with, once that is decided
 */
struct rdmatensor_operation {
	struct kref ref;
	const struct rdmatensor_operation_ops *ops;
	struct rdmatensor_core *core;
	struct rdmatensor_counters *counters;
	struct rb_node node;
	u64 serial;
	u64 begun_ns;
	u64 deadline_ns;
	struct timer_list timer;
	u32 channel;
	u64 user_data;
	s64 step_id;
	bool any_step;
	struct rdmatensor_pool *pool;
	u32 pool_id;
	struct rdmatensor_use use;
	struct rdmatensor_status status;
};

/**
 * rdmatensor_operation_init - an operation that holds its ring entry and its range
 * @op: zeroed
 * @ops: its state machine
 * @core: a reference is taken
 * @counters: live as long as @op
 * @args: copied
 *
 * On success the operation ends by rdmatensor_operation_finish(), or, before
 * rdmatensor_operation_begin(), by rdmatensor_operation_abandon().
 *
 * Return: 0; -EAGAIN: the ring is full; -EINVAL: the range.
 */
int rdmatensor_operation_init(struct rdmatensor_operation *op,
			      const struct rdmatensor_operation_ops *ops,
			      struct rdmatensor_core *core,
			      struct rdmatensor_counters *counters,
			      const struct rdmatensor_operation_args *args);

/**
 * rdmatensor_operation_abandon - undo rdmatensor_operation_init()
 * @op: has not begun
 *
 * The pool's reference is the caller's again, and so is the memory of @op.
 */
void rdmatensor_operation_abandon(struct rdmatensor_operation *op);

/**
 * rdmatensor_operation_begin - make an operation visible
 * @op: initialised
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 *
 * From here on it can be cancelled and can expire.
 */
void rdmatensor_operation_begin(struct rdmatensor_operation *op, u64 deadline_ns);

/**
 * rdmatensor_operation_finish - end an operation
 * @op: has begun; the caller's reference remains
 * @error: 0 or a negative errno
 * @bytes: that it has moved, for the trace
 *
 * Called once. No peer may be able to write to the range any more. Range and pool are
 * released before the completion entry becomes visible. Any context.
 */
void rdmatensor_operation_finish(struct rdmatensor_operation *op, int error, u64 bytes);

/* A reference; any context */
void rdmatensor_operation_get(struct rdmatensor_operation *op);
void rdmatensor_operation_put(struct rdmatensor_operation *op);

/**
 * rdmatensor_operation_arm - set or move the timer
 * @op: has begun
 * @expires: in jiffies
 */
void rdmatensor_operation_arm(struct rdmatensor_operation *op, unsigned long expires);

/**
 * rdmatensor_operation_early - check a timer that has run out against the deadline
 * @op: its timer was armed for the deadline and for nothing else, and is not armed now
 *
 * The timer counts jiffies, and a processor that has missed ticks arms it by old ones.
 *
 * Return: true: the deadline is still to come, and the timer is armed again unless the
 * operation has ended.
 */
bool rdmatensor_operation_early(struct rdmatensor_operation *op);

/* Reports that the deadline has ended the operation to the core's listener. No lock held */
void rdmatensor_operation_timed_out(struct rdmatensor_operation *op);

/**
 * struct rdmatensor_operation_place - a place in the table of operations
 * @user_data: of the operation there
 * @serial: of the operation there; no operation has 0
 */
struct rdmatensor_operation_place {
	u64 user_data;
	u64 serial;
};

/**
 * rdmatensor_operation_next - the next operation that has not ended
 * @core: whose table
 * @place: in: the place before it, zeroed at first; out: its own
 *
 * Return: an operation, held for the caller to put; NULL: there are no more.
 */
struct rdmatensor_operation *rdmatensor_operation_next(struct rdmatensor_core *core,
						       struct rdmatensor_operation_place *place);

/*
 * Cancel operations that had begun before the call: those of one @user_data, those of a
 * step, or all. Process context. Return: number of operations that were cancelled
 */
int rdmatensor_operation_cancel(struct rdmatensor_core *core, u64 user_data);
int rdmatensor_operation_abort_step(struct rdmatensor_core *core, s64 step_id,
				    const struct rdmatensor_status *status);
int rdmatensor_operation_cancel_all(struct rdmatensor_core *core, int error);

#endif /* RDMATENSOR_OPERATION_H */
