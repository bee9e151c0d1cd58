/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rendezvous table: published tensors and the requests that wait for them, matched by
 * (name, step_id). One table a context, and one a domain for what is to outlive them there. It
 * knows nothing of channels: callers embed a waiter
 * or a tensor, and get matches by return value, or as a list that they process after the
 * call, with no lock held.
 *
 * Ownership: a tensor belongs to the table from a successful publish until the
 * call that says "release" (its out list); from then on it is the caller's
 * again. A waiter belongs to the table while it waits; it leaves by a match
 * (on a list, with ->tensor or ->status set), or by a successful cancel.
 *
 * All calls but alloc/free/publish may come from softirq. No call sleeps but
 * alloc/free/publish. Nothing allocates after a match: a tensor that was
 * matched keeps its place in the table until it has been delivered, so that it
 * can be returned.
 */
#ifndef RDMATENSOR_RENDEZVOUS_H
#define RDMATENSOR_RENDEZVOUS_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include "core/generation.h"
#include "core/status.h"
#include "core/tensor.h"

struct rdmatensor_rendezvous;
struct rdmatensor_rendezvous_key;

/**
 * struct rdmatensor_tensor - one published tensor, embedded by its publisher
 *
 * Filled by the publisher before publish and constant from then on:
 * @meta: its meta-data
 * @failed: error != 0: there is no tensor, and requests end with this status
 * @uses: deliveries until it is used up; 0: until withdrawn
 * @id: for a withdrawal that means this one and no other of its name; 0: there is none such
 * @generation: that it becomes visible with, in a table of lasting tensors; NULL: it is visible
 *
 * The table's, under its lock:
 * @key: its (name, step)
 * @item: in one of the key's lists until it is released, then the caller's
 * @sibling: in its generation's list, until that is retired
 * @step_id: the step, to be read at any time after publish
 * @uses_left: deliveries not yet matched (if @uses)
 * @inflight: matched and not yet put
 * @withdrawn: not matched any more; released when @inflight is 0
 * @withdraw_status: 0: it was used up; else the errno it ends with
 */
struct rdmatensor_tensor {
	struct rdmatensor_meta meta;
	struct rdmatensor_status failed;
	u32 uses;
	u64 id;
	struct rdmatensor_generation *generation;

	struct rdmatensor_rendezvous_key *key;
	struct list_head item;
	struct list_head sibling;
	s64 step_id;
	u32 uses_left;
	u32 inflight;
	bool withdrawn;
	int withdraw_status;
};

/**
 * struct rdmatensor_waiter - one request for a tensor, embedded
 * @key: the table's while it waits; after an abort its own, referenced, for the name that it
 *       waited for; else NULL. Released by rdmatensor_waiter_end()
 * @item: in the key's list while it waits, in a caller's list of matches after
 * @waiting: the table's: it is in the key's list
 * @step_id: the table's: the step, or the least of which the newest is wanted
 * @bound: the table's: in the key's tree instead of its list, if the newest is
 * @tensor: set by a match. The waiter holds the tensor until it calls
 *          rdmatensor_rendezvous_put()
 * @status: set instead of @tensor when the step was aborted, or no match is to come
 * @matched: the waiter's own: what rdmatensor_rendezvous_work_off() calls for
 *           each match. Matches that follow from it are added to @more, not
 *           processed inside, so that the stack stays flat
 */
struct rdmatensor_waiter {
	struct rdmatensor_rendezvous_key *key;
	struct list_head item;
	bool waiting;
	s64 step_id;
	struct rb_node bound;
	struct rdmatensor_tensor *tensor;
	struct rdmatensor_status status;
	void (*matched)(struct rdmatensor_waiter *waiter, struct list_head *more);
};

/**
 * struct rdmatensor_wanted - what a request asks for
 * @name: any bytes
 * @name_len: 1..RDMATENSOR_NAME_MAX
 * @step_id: the step
 * @newest: the newest step from @step_id on that is offered, or the first one to be
 * @now: it does not wait
 */
struct rdmatensor_wanted {
	const char *name;
	u16 name_len;
	s64 step_id;
	bool newest;
	bool now;
};

/* May sleep. Return: an empty table, or ERR_PTR(-ENOMEM) */
struct rdmatensor_rendezvous *rdmatensor_rendezvous_alloc(void);
/* The table must be empty: see rdmatensor_rendezvous_drain() */
void rdmatensor_rendezvous_free(struct rdmatensor_rendezvous *rdv);

/**
 * rdmatensor_rendezvous_publish - offer a tensor
 * @rdv: the table
 * @tensor: filled; ->item and the table's members are set here
 * @name: any bytes
 * @name_len: 1..RDMATENSOR_NAME_MAX
 * @step_id: the step
 * @matches: waiters that met it are added here (at most ->uses of them)
 *
 * May sleep.
 * Return: 0; -EEXIST: a tensor, its own or a lasting one, is offered under that key and is not
 * used up or withdrawn; -ENOMEM; the status of an aborted step. On error the
 * tensor is still the caller's. A tensor that is used up but still on its way
 * does not stand against the next one of that key.
 */
int rdmatensor_rendezvous_publish(struct rdmatensor_rendezvous *rdv,
				  struct rdmatensor_tensor *tensor, const char *name,
				  u16 name_len, s64 step_id, struct list_head *matches);

/**
 * rdmatensor_rendezvous_join - make a context's table belong to one of lasting tensors
 * @rdv: the context's, not in use yet
 * @lasting: the table of lasting tensors, which has no requests of its own
 *
 * May sleep. Until rdmatensor_rendezvous_leave(), after the last request and publication.
 */
void rdmatensor_rendezvous_join(struct rdmatensor_rendezvous *rdv,
				struct rdmatensor_rendezvous *lasting);
void rdmatensor_rendezvous_leave(struct rdmatensor_rendezvous *rdv);

/**
 * rdmatensor_rendezvous_publish_lasting - offer a tensor in several contexts
 * @rdv: table of the context that publishes it, which belongs to one of lasting tensors, as those
 *       of the others do
 * @tensor: as for publish, with ->uses 0. Put and withdrawn in the table of lasting tensors
 * @name: any bytes
 * @name_len: 1..RDMATENSOR_NAME_MAX
 * @step_id: the step
 * @matches: waiters of all these contexts that met it are added here
 *
 * May sleep. What another context offers itself under that key goes first there.
 *
 * With ->generation it is matched from that one's reveal on.
 *
 * Return: as rdmatensor_rendezvous_publish(), in the table of lasting tensors and in @rdv; an
 * aborted step is @rdv's; -EALREADY: the generation is not hidden any more.
 */
int rdmatensor_rendezvous_publish_lasting(struct rdmatensor_rendezvous *rdv,
					  struct rdmatensor_tensor *tensor, const char *name,
					  u16 name_len, s64 step_id, struct list_head *matches);

/**
 * rdmatensor_rendezvous_wake - match what waits for tensors that became visible
 * @lasting: table of lasting tensors
 * @matches: waiters of all contexts that met one, or whose step has been replaced, are added here
 *
 * May sleep.
 */
void rdmatensor_rendezvous_wake(struct rdmatensor_rendezvous *lasting, struct list_head *matches);

/**
 * rdmatensor_rendezvous_retire_step - match some tensors of a step no more
 * @rdv: table of lasting tensors
 * @step_id: the step
 * @whose: which of them; called with the table's lock held
 * @arg: for @whose
 *
 * They stay for their WITHDRAW. May sleep.
 */
void rdmatensor_rendezvous_retire_step(struct rdmatensor_rendezvous *rdv, s64 step_id,
				       bool (*whose)(struct rdmatensor_tensor *tensor,
						     u64 arg), u64 arg);

/**
 * rdmatensor_rendezvous_request - ask for a tensor
 * @rdv: the table
 * @waiter: everything in it is set here
 * @wanted: copied
 * @gfp: for what a request that has to wait needs
 *
 * Return: 0: matched, waiter->tensor is held; 1: it waits; -ENOMEM; -ECANCELED: waiter->status
 * says why it does not: the step was aborted; -ENOENT: it is not offered now; -ESTALE: a newer
 * generation of the name is visible, and this step is not offered any more.
 */
int rdmatensor_rendezvous_request(struct rdmatensor_rendezvous *rdv,
				  struct rdmatensor_waiter *waiter,
				  const struct rdmatensor_wanted *wanted, gfp_t gfp);

/*
 * True: it was waiting and is the caller's again. False: a match or an abort has removed it
 * and is processing it, or it never waited
 */
bool rdmatensor_rendezvous_cancel(struct rdmatensor_rendezvous *rdv,
				  struct rdmatensor_waiter *waiter);

/**
 * rdmatensor_rendezvous_put - a matched tensor is not needed any more
 * @rdv: the table
 * @tensor: it
 * @delivered: its content has reached the peer; else it is returned: offered
 *             again, before everything else under its key
 * @matches: waiters that meet the tensor that was returned; not read
 *           if @delivered
 *
 * A withdrawn tensor is not offered again. A tensor with uses 0 has stayed offered all the
 * time.
 *
 * Return: true: the tensor is released (used up, or withdrawn and idle) and the
 * caller's again; its ->withdraw_status says how it ended.
 */
bool rdmatensor_rendezvous_put(struct rdmatensor_rendezvous *rdv,
			       struct rdmatensor_tensor *tensor, bool delivered,
			       struct list_head *matches);

/**
 * rdmatensor_rendezvous_withdraw - withdraw what is offered under a key
 * @rdv: the table
 * @name: any bytes
 * @name_len: 1..RDMATENSOR_NAME_MAX
 * @step_id: the step
 * @id: of the tensor that is meant; 0: any
 * @tensor: out: what was offered; if it is still held by a match, it is
 *          released by the last put()
 * @released: out: it is the caller's already
 * @mark: called with the table's lock held, before anything can release the
 *        tensor, so that the caller can mark it, or refuse with an error; may be NULL
 * @arg: for @mark
 *
 * A tensor whose last use is matched but not delivered counts as offered too,
 * after those that can still be matched; of several it is the last one. A tensor
 * with uses 0 of an aborted step is found like this as well.
 * Ends with ->withdraw_status -ECANCELED (0 for uses 0).
 * Return: 0, -ENOENT: nothing is offered, -EALREADY: it is being withdrawn; what @mark returns.
 */
int rdmatensor_rendezvous_withdraw(struct rdmatensor_rendezvous *rdv, const char *name,
				   u16 name_len, s64 step_id, u64 id,
				   int (*mark)(struct rdmatensor_tensor *tensor, void *arg),
				   void *arg, struct rdmatensor_tensor **tensor,
				   bool *released);

/**
 * rdmatensor_rendezvous_abort_step - end everything of a step
 * @rdv: the table
 * @step_id: the step
 * @status: that they end with
 * @released: tensors that are the caller's again; ->withdraw_status is the error.
 *            Those that a match holds end with it too, at their last put()
 * @waiters: waiters, with ->status set
 *
 * Tensors with uses 0 stay for their WITHDRAW, but are not matched any more.
 * The step is remembered, with the 63 that were aborted before it.
 */
void rdmatensor_rendezvous_abort_step(struct rdmatensor_rendezvous *rdv, s64 step_id,
				      const struct rdmatensor_status *status,
				      struct list_head *released,
				      struct list_head *waiters);

/**
 * rdmatensor_rendezvous_list - some of what is offered
 * @rdv: table of a context
 * @cursor: in: 0 to begin, then what the last call has left here, or what @add was given; out: to
 *          go on, 0: nothing follows
 * @prefix: names that begin with it; any bytes
 * @prefix_len: 0..RDMATENSOR_NAME_MAX
 * @add: called for each, with the table's lock held, the next of its key first: @cursor is to go on
 *       behind it. Return: false: it is not taken, nor is any behind it
 * @arg: for @add
 *
 * In the order in which their keys came to be, those of the table of lasting tensors last. What
 * is offered all the time from the first call to the last one comes exactly once, a lasting one
 * if no own one of its name and step came or went meanwhile. It looks at a bounded number of keys,
 * and may find nothing: the call that leaves @cursor 0 was the last one.
 *
 * Return: false: @add has not taken one, with which @cursor goes on.
 */
bool rdmatensor_rendezvous_list(struct rdmatensor_rendezvous *rdv, u64 *cursor, const char *prefix,
				u16 prefix_len,
				bool (*add)(const struct rdmatensor_tensor *tensor,
					    const struct rdmatensor_rendezvous_key *key,
					    u64 cursor, void *arg), void *arg);

/*
 * True: the step was aborted, and its status is copied to @status, which need not be
 * initialised. For fetches, which check at their start
 */
bool rdmatensor_rendezvous_step_status(struct rdmatensor_rendezvous *rdv, s64 step_id,
				       struct rdmatensor_status *status);

/*
 * Releases all tensors, as if withdrawn, of a context that is closing: none is held by a
 * match, and none is published any more
 */
void rdmatensor_rendezvous_drain(struct rdmatensor_rendezvous *rdv,
				 struct list_head *released);

/**
 * rdmatensor_rendezvous_key_alloc - a key that is in no table, for its name
 * @name: any bytes
 * @name_len: bytes of @name
 * @gfp: for the key
 *
 * Return: a key with one reference, NULL: no memory.
 */
struct rdmatensor_rendezvous_key *
rdmatensor_rendezvous_key_alloc(const char *name, u16 name_len, gfp_t gfp);
/* One more reference to a key that the caller or a matched tensor holds */
struct rdmatensor_rendezvous_key *
rdmatensor_rendezvous_key_get(struct rdmatensor_rendezvous_key *key);
/* As long as the key is referenced */
const char *rdmatensor_rendezvous_key_name(const struct rdmatensor_rendezvous_key *key, u16 *len);
/* Releases the key and status of a waiter that does not wait; idempotent. Any context */
void rdmatensor_waiter_end(struct rdmatensor_waiter *waiter);

/* The first of a list of matches, with those that it adds. False: there is none */
static inline bool rdmatensor_rendezvous_work_off_one(struct list_head *matches)
{
	struct rdmatensor_waiter *waiter;

	waiter = list_first_entry_or_null(matches, struct rdmatensor_waiter, item);
	if (!waiter)
		return false;
	list_del_init(&waiter->item);
	waiter->matched(waiter, matches);
	return true;
}

/*
 * Processes a list of matches: calls ->matched() of each waiter, and of those that it adds. No
 * lock of the table or of a channel may be held
 */
static inline void rdmatensor_rendezvous_work_off(struct list_head *matches)
{
	while (rdmatensor_rendezvous_work_off_one(matches))
		;
}

/* As rdmatensor_rendezvous_work_off(), in process context: there may be as many as requests */
static inline void rdmatensor_rendezvous_work_off_many(struct list_head *matches)
{
	while (rdmatensor_rendezvous_work_off_one(matches))
		cond_resched();
}

/* The step of a tensor that has been published, released or not */
s64 rdmatensor_tensor_step(const struct rdmatensor_tensor *tensor);

#endif /* RDMATENSOR_RENDEZVOUS_H */
