/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The core: what all operations and publications of one context share.
 *
 * Room core: data structures, the wire format, counters and events. It needs no RDMA device
 * and calls no other room; all others call it, and its parts are tested alone.
 */
#ifndef RDMATENSOR_CORE_H
#define RDMATENSOR_CORE_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "core/rendezvous.h"
#include "core/ring.h"
#include "core/stats.h"
#include "core/status.h"

struct mem_cgroup;
struct rdmatensor_core;
struct rdmatensor_lasting;
struct rdmatensor_operation;

/**
 * struct rdmatensor_core_ops - calls to the listener of a core
 * @timed_out: an operation's deadline has passed; softirq, no lock held
 */
struct rdmatensor_core_ops {
	void (*timed_out)(struct rdmatensor_core *core, struct rdmatensor_operation *op);
};

/**
 * struct rdmatensor_core - ring, rendezvous table and table of operations
 * @users: channels, operations, publications, and the context
 * @idle: @users is 0
 * @ring: completions
 * @rdv: rendezvous table
 * @lasting: where its tensors with uses 0 are; NULL: in @rdv. Constant between the first and
 *           the last operation
 * @publisher: tells what it has put there from what others have: random
 * @counters: of what belongs to no channel
 * @gone: of channels that are gone
 * @live_counters: of channels that are not gone, wherever they may be
 * @counters_lock: guards @live_counters and @gone
 * @texts: of fetches that have failed
 * @shares: loopback fetches of the tensor itself, waiting or SHARED, by share_id
 * @nr_shares: in @shares, or about to be, or just out of it
 * @next_share: where the search for an id goes on
 * @wq: checksums, copies
 * @validate: data-validation mode, read without lock
 * @ending: nobody will look at the ring again: what the CPU has begun it need not end
 * @ops: of the listener, or NULL
 * @memcg: the context's, charged for what peers' messages make the core allocate; NULL: the
 *         kernel has no memory cgroups
 * @operations_lock: guards @operations and @next_serial
 * @next_serial: serial of the last operation that has begun
 * @operations: all that have not ended, by user_data, then by serial: any number may have
 *              the same user_data, and the lock is not held for a whole walk
 */
struct rdmatensor_core {
	refcount_t users;
	struct completion idle;
	struct rdmatensor_ring_state ring;
	struct rdmatensor_rendezvous *rdv;
	struct rdmatensor_lasting *lasting;
	u64 publisher;
	struct rdmatensor_counters counters;
	struct rdmatensor_sums gone;
	struct list_head live_counters;
	struct mutex counters_lock;
	struct rdmatensor_texts texts;
	struct xarray shares;
	atomic_t nr_shares;
	u32 next_share;
	struct workqueue_struct *wq;
	bool validate;
	bool ending;
	const struct rdmatensor_core_ops *ops;
	struct mem_cgroup *memcg;
	spinlock_t operations_lock;
	u64 next_serial;
	struct rb_root operations;
};

/**
 * rdmatensor_core_init - an empty core, with one user: the caller
 * @core: filled
 * @ring_entries: capacity of the ring, a power of two
 * @poll_wait: where poll() waits for it; outlives @core
 *
 * May sleep.
 *
 * Return: 0; -ENOMEM; an error of rdmatensor_ring_init().
 */
int rdmatensor_core_init(struct rdmatensor_core *core, u32 ring_entries,
			 wait_queue_head_t *poll_wait);

/* Waits for all other users, then frees what @core owns. May sleep */
void rdmatensor_core_destroy(struct rdmatensor_core *core);

/* Before the operations that are left are cancelled; never taken back */
static inline void rdmatensor_core_end(struct rdmatensor_core *core)
{
	WRITE_ONCE(core->ending, true);
}

static inline bool rdmatensor_core_ends(const struct rdmatensor_core *core)
{
	return READ_ONCE(core->ending);
}

static inline void rdmatensor_core_get(struct rdmatensor_core *core)
{
	refcount_inc(&core->users);
}

static inline void rdmatensor_core_put(struct rdmatensor_core *core)
{
	if (refcount_dec_and_test(&core->users))
		complete(&core->idle);
}

/*
 * rdmatensor_core_adopt() makes counters of a channel part of the context's sums;
 * rdmatensor_core_fold() adds their final values and forgets them. May sleep
 */
void rdmatensor_core_adopt(struct rdmatensor_core *core,
			   struct rdmatensor_counters *counters);
void rdmatensor_core_fold(struct rdmatensor_core *core,
			  struct rdmatensor_counters *counters);
/* Adds all counters of the context to @sum. May sleep */
void rdmatensor_core_sum(struct rdmatensor_core *core, struct rdmatensor_sums *sum);

#endif /* RDMATENSOR_CORE_H */
