/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a rendezvous table is made of: for the files that work on it, and for no others.
 */
#ifndef RDMATENSOR_RENDEZVOUS_TABLE_H
#define RDMATENSOR_RENDEZVOUS_TABLE_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include "core/rendezvous.h"

#define RDV_STEP_BUCKET_BITS 8
#define RDV_ABORTED_MAX 64

/* What is looked for by name and step */
enum rdv_kind {
	RDV_ANY,
	RDV_OF_GENERATIONS,
	RDV_NR_KINDS,
};

/**
 * struct rdmatensor_rendezvous_key - a (name, step_id); or a name of which any step is wanted
 * @node: in the table's hash
 * @ref: the table's, and of those who need the name after that
 * @step_item: in the list of its step's bucket
 * @order: in the table's tree
 * @serial: number of its coming, from 1
 * @by_step: in the table's trees of names and steps, each, if it has offered anything of that
 *           kind since it was last looked at there
 * @name_hash: of the name alone
 * @offered: tensors that can be matched, the next one first, once their generation is visible
 * @held: tensors that cannot
 * @waiters: the oldest first
 * @bounds: with @any_step: waiters by the least step that they want, then by their age
 * @waiting: in the table's list, if anything has waited since that was last walked
 * @step_id: the step
 * @any_step: it has no tensors, but waiters for the newest step from theirs on
 * @name_len: bytes of @name; 0: a walk's place in a list, not a key
 * @name: any bytes
 */
struct rdmatensor_rendezvous_key {
	struct rhash_head node;
	refcount_t ref;
	struct list_head step_item;
	struct rb_node order;
	u64 serial;
	struct rb_node by_step[RDV_NR_KINDS];
	u32 name_hash;
	struct list_head offered;
	struct list_head held;
	struct list_head waiters;
	struct rb_root_cached bounds;
	struct list_head waiting;
	s64 step_id;
	bool any_step;
	u16 name_len;
	char name[];
};

/**
 * struct rdmatensor_rendezvous - the table
 * @lock: guards all below, and the table's members of tensors and waiters
 * @keys: all keys
 * @steps: all keys, in lists by hash of the step
 * @order: all keys, by their serial
 * @last_serial: of the newest key
 * @by_step: keys with something offered, by name and step; see core/newest.c
 * @name_seed: of the hash of names
 * @waiting: keys that something waits for
 * @nr_any_step: keys of which any step is wanted
 * @generations: of a table of lasting tensors: all that are not over
 * @nr_generations: of them
 * @nr_aborted: valid members of the three arrays
 * @abort_clock: counts aborts
 * @aborted_steps: the steps, on their own because each call searches them
 * @aborted_at: @abort_clock then; the smallest is forgotten first
 * @aborted_status: the statuses
 * @lasting: the table of lasting tensors that it belongs to, or NULL. Constant while it is in use
 * @membership: of a table of lasting tensors: guards @members
 * @members: contexts' tables that belong to it
 * @member: place of a context's table in them
 */
struct rdmatensor_rendezvous {
	spinlock_t lock;	/* see above */
	struct rhashtable keys;
	struct list_head steps[1 << RDV_STEP_BUCKET_BITS];
	struct rb_root order;
	u64 last_serial;
	struct rb_root by_step[RDV_NR_KINDS];
	u32 name_seed;
	struct list_head waiting;
	u32 nr_any_step;
	struct list_head generations;
	u32 nr_generations;
	u32 nr_aborted;
	u64 abort_clock;
	s64 aborted_steps[RDV_ABORTED_MAX];
	u64 aborted_at[RDV_ABORTED_MAX];
	struct rdmatensor_status aborted_status[RDV_ABORTED_MAX];
	struct rdmatensor_rendezvous *lasting;
	struct rw_semaphore membership;	/* see above */
	struct list_head members;
	struct list_head member;
};

/* What a key is found by */
struct rdv_lookup {
	const char *name;
	s64 step_id;
	u16 name_len;
	bool any_step;
};

/* What is offered next under a key; NULL: nothing that can be matched */
static inline struct rdmatensor_tensor *
rdmatensor_rdv_first(const struct rdmatensor_rendezvous_key *key)
{
	struct rdmatensor_tensor *tensor;

	if (list_empty(&key->offered))
		return NULL;
	tensor = list_first_entry(&key->offered, struct rdmatensor_tensor, item);
	return rdmatensor_generation_hides(tensor->generation) ? NULL : tensor;
}

/* An aborted step's status, NULL: it is not, or has been forgotten. With the lock held */
const struct rdmatensor_status *rdmatensor_rdv_aborted(const struct rdmatensor_rendezvous *rdv,
						       s64 step_id);

/*
 * The tensor leaves matching: true: it is idle, and can be detached. With the lock held, as are
 * the calls below
 */
bool rdmatensor_rdv_take_back(struct rdmatensor_tensor *tensor, int status);
/* It is the caller's again, and its key goes with the last one there */
void rdmatensor_rdv_remove(struct rdmatensor_rendezvous *rdv, struct rdmatensor_tensor *tensor);

/* The key may be found by its step from here on: it offers @tensor */
void rdmatensor_newest_add(struct rdmatensor_rendezvous *rdv,
			   struct rdmatensor_rendezvous_key *key,
			   const struct rdmatensor_tensor *tensor);
/* The key goes */
void rdmatensor_newest_remove(struct rdmatensor_rendezvous *rdv,
			      struct rdmatensor_rendezvous_key *key);
/* For ->name_hash */
u32 rdmatensor_newest_hash(const struct rdmatensor_rendezvous *rdv, const char *name,
			   u16 name_len);
/**
 * rdmatensor_newest_find - the newest step of a name
 * @rdv: the table
 * @kind: of a generation, or of any kind
 * @lookup: has the name
 * @from: the least step
 * @own: the context's table: its aborted steps are none
 *
 * It looks at newer steps whose generation is hidden or retired on its way, and at no others.
 *
 * Return: a key that offers something which can be matched, or NULL.
 */
struct rdmatensor_rendezvous_key *
rdmatensor_newest_find(struct rdmatensor_rendezvous *rdv, enum rdv_kind kind,
		       const struct rdv_lookup *lookup, s64 from,
		       const struct rdmatensor_rendezvous *own);

#endif /* RDMATENSOR_RENDEZVOUS_TABLE_H */
