// SPDX-License-Identifier: GPL-2.0
/*
 * Tag matching by (name, step_id).
 *
 * A key exists while it has a tensor or a waiter. Its tensors are in one of two lists:
 *
 *  offered: can be matched. While it is not empty there is no waiter.
 *  held:    cannot be matched. First those that were withdrawn and wait for their last put(),
 *           then the others in the order of their arrival: used up and in flight, or with
 *           uses 0 and of an aborted step, which stay for their WITHDRAW.
 *
 * What is offered may belong to a generation that is not visible: then it is as if it were not
 * there, but for the next one of its key. Waiters for any step of a name have a key of their own,
 * without tensors.
 *
 * Because a used-up tensor is in the second list, the next tensor of a name can be published
 * while the last one is still being read: a publisher need not know how far a peer is. If the
 * last one is then returned, two are offered, the older first.
 *
 * A context's table belongs to a table of lasting tensors, which several contexts share
 * (rdmatensor_rendezvous_join()). A lasting tensor has uses 0 and no context. A request that
 * finds nothing offered in its own table is matched with it, so what a context offers itself
 * goes first. Waiters are in their contexts' tables, and a new lasting tensor is matched with
 * those of all members.
 *
 * One lock guards everything in a table. That of a table of lasting tensors is taken within a
 * context's, so that no waiter is added between a look at both. The hash table is read under the
 * lock only, so keys are freed at once, unless a reference still needs the name. Keys are in
 * lists by step as well, so that ending a step does not cost what other steps hold; these walks
 * drop the lock now and then, since a step may hold very many names. And they are in a tree by the
 * number of their coming: a list of what is offered goes on behind any number, whatever has come
 * and gone since, without a trace of who reads it.
 *
 * Errors leave the table as it was, and tensor or waiter with the caller.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/rbtree.h>
#include <linux/rhashtable.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "core/rendezvous_table.h"

#define RDV_WALK_BATCH 256
/* In softirq, and beside other contexts of the domain */
#define RDV_LIST_BATCH 64
#define RDV_INSERT_TRIES 10
/* Cursor of a list: behind a key of the table of lasting tensors */
#define RDV_LASTING BIT_ULL(63)

/* Of a name of which any step is wanted the step is 0, and the two are told apart by comparison */
static u32 rdv_hash(const char *name, u16 name_len, s64 step_id, u32 seed)
{
	return jhash_3words(jhash(name, name_len, seed), lower_32_bits(step_id),
			    upper_32_bits(step_id), seed);
}

static u32 rdv_hash_lookup(const void *data, u32 len, u32 seed)
{
	const struct rdv_lookup *lookup = data;

	return rdv_hash(lookup->name, lookup->name_len, lookup->step_id, seed);
}

static u32 rdv_hash_key(const void *data, u32 len, u32 seed)
{
	const struct rdmatensor_rendezvous_key *key = data;

	return rdv_hash(key->name, key->name_len, key->step_id, seed);
}

static int rdv_compare(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct rdmatensor_rendezvous_key *key = obj;
	const struct rdv_lookup *lookup = arg->key;

	return key->step_id != lookup->step_id || key->any_step != lookup->any_step ||
	       key->name_len != lookup->name_len ||
	       memcmp(key->name, lookup->name, lookup->name_len);
}

static const struct rhashtable_params rdv_params = {
	.head_offset = offsetof(struct rdmatensor_rendezvous_key, node),
	.hashfn = rdv_hash_lookup,
	.obj_hashfn = rdv_hash_key,
	.obj_cmpfn = rdv_compare,
	.automatic_shrinking = true,
};

static struct list_head *rdv_step_bucket(struct rdmatensor_rendezvous *rdv, s64 step_id)
{
	return &rdv->steps[hash_64(step_id, RDV_STEP_BUCKET_BITS)];
}

struct rdmatensor_rendezvous *rdmatensor_rendezvous_alloc(void)
{
	struct rdmatensor_rendezvous *rdv;
	unsigned int i;
	int ret;

	rdv = kvzalloc(sizeof(*rdv), RDMATENSOR_GFP_SPARING);
	if (!rdv)
		return ERR_PTR(-ENOMEM);
	ret = rhashtable_init(&rdv->keys, &rdv_params);
	if (ret) {
		kvfree(rdv);
		return ERR_PTR(ret);
	}
	spin_lock_init(&rdv->lock);
	for (i = 0; i < ARRAY_SIZE(rdv->steps); i++)
		INIT_LIST_HEAD(&rdv->steps[i]);
	rdv->name_seed = get_random_u32();
	INIT_LIST_HEAD(&rdv->waiting);
	INIT_LIST_HEAD(&rdv->generations);
	init_rwsem(&rdv->membership);
	INIT_LIST_HEAD(&rdv->members);
	INIT_LIST_HEAD(&rdv->member);
	return rdv;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_alloc);

void rdmatensor_rendezvous_free(struct rdmatensor_rendezvous *rdv)
{
	u32 i;

	/* Rather leak than free what a tensor or a waiter points to */
	if (WARN_ON_ONCE(atomic_read(&rdv->keys.nelems) || !list_empty(&rdv->members) ||
			 !list_empty(&rdv->member) || !list_empty(&rdv->generations)))
		return;
	for (i = 0; i < rdv->nr_aborted; i++)
		rdmatensor_status_clear(&rdv->aborted_status[i]);
	rhashtable_destroy(&rdv->keys);
	kvfree(rdv);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_free);

static struct rdmatensor_rendezvous_key *rdv_find_key(struct rdmatensor_rendezvous *rdv,
						      const struct rdv_lookup *lookup)
{
	lockdep_assert_held(&rdv->lock);
	return rhashtable_lookup_fast(&rdv->keys, lookup, rdv_params);
}

static struct rdmatensor_rendezvous_key *rdv_alloc_key(const struct rdv_lookup *lookup, gfp_t gfp)
{
	struct rdmatensor_rendezvous_key *key;
	enum rdv_kind kind;

	key = rdmatensor_should_fail() ? NULL :
	      kmalloc(struct_size(key, name, lookup->name_len), gfp);
	if (!key)
		return NULL;
	refcount_set(&key->ref, 1);
	INIT_LIST_HEAD(&key->offered);
	INIT_LIST_HEAD(&key->held);
	INIT_LIST_HEAD(&key->waiters);
	INIT_LIST_HEAD(&key->waiting);
	key->bounds = RB_ROOT_CACHED;
	for (kind = 0; kind < RDV_NR_KINDS; kind++)
		RB_CLEAR_NODE(&key->by_step[kind]);
	key->step_id = lookup->step_id;
	key->any_step = lookup->any_step;
	key->name_len = lookup->name_len;
	memcpy(key->name, lookup->name, lookup->name_len);
	return key;
}

static void rdv_put_key(struct rdmatensor_rendezvous_key *key)
{
	if (key && refcount_dec_and_test(&key->ref))
		kfree(key);
}

struct rdmatensor_rendezvous_key *
rdmatensor_rendezvous_key_alloc(const char *name, u16 name_len, gfp_t gfp)
{
	struct rdv_lookup lookup = { .name = name, .name_len = name_len };

	return rdv_alloc_key(&lookup, gfp);
}

struct rdmatensor_rendezvous_key *
rdmatensor_rendezvous_key_get(struct rdmatensor_rendezvous_key *key)
{
	refcount_inc(&key->ref);
	return key;
}

const char *rdmatensor_rendezvous_key_name(const struct rdmatensor_rendezvous_key *key, u16 *len)
{
	*len = key->name_len;
	return key->name;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_key_name);

void rdmatensor_waiter_end(struct rdmatensor_waiter *waiter)
{
	rdv_put_key(waiter->key);
	waiter->key = NULL;
	rdmatensor_status_clear(&waiter->status);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_waiter_end);

static bool rdv_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct rdmatensor_rendezvous_key, order)->serial <
	       rb_entry(b, struct rdmatensor_rendezvous_key, order)->serial;
}

static int rdv_insert_key(struct rdmatensor_rendezvous *rdv,
			  struct rdmatensor_rendezvous_key *key)
{
	int ret;

	lockdep_assert_held(&rdv->lock);
	ret = rhashtable_insert_fast(&rdv->keys, &key->node, rdv_params);
	if (ret)
		return ret;
	/* At the head: a walk of this bucket is past it, and comes to an end */
	list_add(&key->step_item, rdv_step_bucket(rdv, key->step_id));
	key->serial = ++rdv->last_serial;
	key->name_hash = rdmatensor_newest_hash(rdv, key->name, key->name_len);
	rb_add(&key->order, &rdv->order, rdv_less);
	rdv->nr_any_step += key->any_step;
	return 0;
}

/* Something waits there */
static bool rdv_is_awaited(const struct rdmatensor_rendezvous_key *key)
{
	return !list_empty(&key->waiters) || !RB_EMPTY_ROOT(&key->bounds.rb_root);
}

static void rdv_free_key_if_unused(struct rdmatensor_rendezvous *rdv,
				   struct rdmatensor_rendezvous_key *key)
{
	lockdep_assert_held(&rdv->lock);
	if (!list_empty(&key->offered) || !list_empty(&key->held) || rdv_is_awaited(key))
		return;
	rhashtable_remove_fast(&rdv->keys, &key->node, rdv_params);
	list_del(&key->step_item);
	list_del_init(&key->waiting);
	rb_erase(&key->order, &rdv->order);
	rdmatensor_newest_remove(rdv, key);
	rdv->nr_any_step -= key->any_step;
	rdv_put_key(key);
}

const struct rdmatensor_status *rdmatensor_rdv_aborted(const struct rdmatensor_rendezvous *rdv,
						       s64 step_id)
{
	u32 i;

	for (i = 0; i < rdv->nr_aborted; i++) {
		if (rdv->aborted_steps[i] == step_id)
			return &rdv->aborted_status[i];
	}
	return NULL;
}

static void rdv_remember_aborted(struct rdmatensor_rendezvous *rdv, s64 step_id,
				 const struct rdmatensor_status *status)
{
	u32 i, slot = 0;

	for (i = 0; i < rdv->nr_aborted; i++) {
		if (rdv->aborted_steps[i] == step_id) {
			slot = i;
			goto out_set;
		}
		if (rdv->aborted_at[i] < rdv->aborted_at[slot])
			slot = i;
	}
	if (rdv->nr_aborted < RDV_ABORTED_MAX) {
		slot = rdv->nr_aborted;
		/* Read without the lock by rdmatensor_rendezvous_step_status() */
		WRITE_ONCE(rdv->nr_aborted, slot + 1);
	}
out_set:
	rdv->aborted_steps[slot] = step_id;
	rdv->aborted_at[slot] = ++rdv->abort_clock;
	rdmatensor_status_copy(&rdv->aborted_status[slot], status);
}

static void rdv_match(struct rdmatensor_tensor *tensor, struct rdmatensor_waiter *waiter)
{
	tensor->inflight++;
	waiter->tensor = tensor;
	if (tensor->uses && !--tensor->uses_left)
		list_move_tail(&tensor->item, &tensor->key->held);
}

static bool rdv_wants_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct rdmatensor_waiter, bound)->step_id <
	       rb_entry(b, struct rdmatensor_waiter, bound)->step_id;
}

static void rdv_wait(struct rdmatensor_rendezvous *rdv, struct rdmatensor_rendezvous_key *key,
		     struct rdmatensor_waiter *waiter)
{
	waiter->key = key;
	waiter->waiting = true;
	if (key->any_step)
		rb_add_cached(&waiter->bound, &key->bounds, rdv_wants_less);
	else
		list_add_tail(&waiter->item, &key->waiters);
	/* At the head: a walk is past it, and comes to an end */
	if (list_empty(&key->waiting))
		list_add(&key->waiting, &rdv->waiting);
}

/* It is in no list, and its key stays, even if it was the last one there */
static void rdv_wait_no_more(struct rdmatensor_waiter *waiter)
{
	if (waiter->key->any_step)
		rb_erase_cached(&waiter->bound, &waiter->key->bounds);
	else
		list_del_init(&waiter->item);
	waiter->waiting = false;
	waiter->key = NULL;
}

static void rdv_leave_key(struct rdmatensor_waiter *waiter, struct list_head *matches)
{
	rdv_wait_no_more(waiter);
	list_add_tail(&waiter->item, matches);
}

static void rdv_match_waiter(struct rdmatensor_tensor *tensor, struct rdmatensor_waiter *waiter,
			     struct list_head *matches)
{
	rdv_leave_key(waiter, matches);
	rdv_match(tensor, waiter);
}

static void rdv_match_waiters(struct rdmatensor_rendezvous_key *key, struct list_head *matches)
{
	struct rdmatensor_tensor *tensor;
	struct rdmatensor_waiter *waiter;

	for (;;) {
		tensor = rdmatensor_rdv_first(key);
		waiter = list_first_entry_or_null(&key->waiters, struct rdmatensor_waiter,
						  item);
		if (!tensor || !waiter)
			return;
		rdv_match_waiter(tensor, waiter, matches);
	}
}

/* How a tensor ends that its publisher withdraws */
static int rdv_withdraw_status(const struct rdmatensor_tensor *tensor)
{
	return tensor->uses ? -ECANCELED : 0;
}

/* Takes a tensor out of matching; true: it is idle, so it can be released */
bool rdmatensor_rdv_take_back(struct rdmatensor_tensor *tensor, int status)
{
	tensor->withdrawn = true;
	tensor->withdraw_status = status;
	list_move(&tensor->item, &tensor->key->held);
	return !tensor->inflight;
}

/* The tensor is the caller's again. Its key stays, even if it is the last one there */
static void rdv_detach(struct rdmatensor_tensor *tensor)
{
	list_del_init(&tensor->item);
	list_del_init(&tensor->sibling);
	tensor->key = NULL;
}

void rdmatensor_rdv_remove(struct rdmatensor_rendezvous *rdv, struct rdmatensor_tensor *tensor)
{
	struct rdmatensor_rendezvous_key *key = tensor->key;

	rdv_detach(tensor);
	rdv_free_key_if_unused(rdv, key);
}

/*
 * The hash did not take a key: a chain is too long while a larger table is being filled, or a
 * worker is still allocating the larger table, which may sleep. Callers that may sleep wait.
 */
static bool rdv_wait_for_hash(gfp_t gfp, unsigned int *tries)
{
	if (!gfpflags_allow_blocking(gfp) || ++*tries == RDV_INSERT_TRIES)
		return false;
	usleep_range(100, 1000);
	return true;
}

/* Takes *@spare if there is no such key. NULL: the hash did not take it */
static struct rdmatensor_rendezvous_key *
rdv_find_or_insert(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
		   struct rdmatensor_rendezvous_key **spare)
{
	struct rdmatensor_rendezvous_key *key = rdv_find_key(rdv, lookup);

	if (!key && *spare && !rdv_insert_key(rdv, *spare)) {
		key = *spare;
		*spare = NULL;
	}
	return key;
}

/* What can be matched under a key, the next one first; NULL: nothing */
static struct rdmatensor_tensor *rdv_offered(struct rdmatensor_rendezvous *rdv,
					     const struct rdv_lookup *lookup)
{
	struct rdmatensor_rendezvous_key *key = rdv_find_key(rdv, lookup);

	return key ? rdmatensor_rdv_first(key) : NULL;
}

/*
 * The table of lasting tensors has any, and is worth its lock, which goes inside of @rdv's. What is
 * added to it meanwhile looks into @rdv after that, with @rdv's lock
 */
static bool rdv_has_lasting(const struct rdmatensor_rendezvous *rdv)
{
	lockdep_assert_held(&rdv->lock);
	return rdv->lasting && atomic_read(&rdv->lasting->keys.nelems);
}

/*
 * The table of lasting tensors, locked; NULL: there are none. Sparse does not follow a lock that is
 * taken if there is one, so it is told of none
 */
static struct rdmatensor_rendezvous *rdv_lock_lasting(struct rdmatensor_rendezvous *rdv)
{
	if (!rdv_has_lasting(rdv))
		return NULL;
	spin_lock_nested(&rdv->lasting->lock, SINGLE_DEPTH_NESTING);
	__release(&rdv->lasting->lock);
	return rdv->lasting;
}

static void rdv_unlock_lasting(struct rdmatensor_rendezvous *lasting)
{
	if (!lasting)
		return;
	__acquire(&lasting->lock);
	spin_unlock(&lasting->lock);
}

static bool rdv_is_lasting(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup)
{
	struct rdmatensor_rendezvous *lasting = rdv_lock_lasting(rdv);
	bool found = lasting && rdv_offered(lasting, lookup);

	rdv_unlock_lasting(lasting);
	return found;
}

/*
 * The newest step of a name from @from on, of both tables. The table's own tensors go first, of the
 * same step. With both locks held; @lasting: NULL: there are none. Return: NULL: nothing
 */
static struct rdmatensor_rendezvous_key *rdv_newest(struct rdmatensor_rendezvous *rdv,
						    struct rdmatensor_rendezvous *lasting,
						    const struct rdv_lookup *lookup, s64 from)
{
	struct rdmatensor_rendezvous_key *key, *other = NULL;

	key = rdmatensor_newest_find(rdv, RDV_ANY, lookup, from, rdv);
	if (lasting)
		other = rdmatensor_newest_find(lasting, RDV_ANY, lookup, from, rdv);
	return key && !(other && other->step_id > key->step_id) ? key : other;
}

static bool rdv_match_newest(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
			     struct rdmatensor_waiter *waiter)
{
	struct rdmatensor_rendezvous *lasting = rdv_lock_lasting(rdv);
	struct rdmatensor_rendezvous_key *key;

	key = rdv_newest(rdv, lasting, lookup, waiter->step_id);
	if (key)
		rdv_match(rdmatensor_rdv_first(key), waiter);
	rdv_unlock_lasting(lasting);
	return key;
}

/* The waiter of a name whose bound is the least; NULL: none */
static struct rdmatensor_waiter *rdv_least_bound(const struct rdmatensor_rendezvous_key *key)
{
	return rb_entry_safe(rb_first_cached(&key->bounds), struct rdmatensor_waiter, bound);
}

/*
 * Who waits for the newest step of a name, of which something is offered now: the least bound
 * first
 */
static void rdv_match_any_step(struct rdmatensor_rendezvous *rdv, const char *name, u16 name_len,
			       struct list_head *matches)
{
	const struct rdv_lookup lookup = { .name = name, .name_len = name_len, .any_step = true };
	struct rdmatensor_rendezvous_key *key, *newest = NULL;
	struct rdmatensor_rendezvous *lasting;
	struct rdmatensor_waiter *waiter;

	if (!rdv->nr_any_step)
		return;
	key = rdv_find_key(rdv, &lookup);
	if (!key)
		return;
	lasting = rdv_lock_lasting(rdv);
	/* Each one that is looked at leaves, but for the last */
	while ((waiter = rdv_least_bound(key))) {
		/* Until it is used up */
		if (!newest || !rdmatensor_rdv_first(newest))
			newest = rdv_newest(rdv, lasting, &lookup, waiter->step_id);
		if (!newest || newest->step_id < waiter->step_id)
			break;
		rdv_leave_key(waiter, matches);
		rdv_match(rdmatensor_rdv_first(newest), waiter);
	}
	rdv_unlock_lasting(lasting);
	rdv_free_key_if_unused(rdv, key);
}

/* Something is offered there that can still be matched, or is to be */
static bool rdv_is_taken(struct rdmatensor_rendezvous_key *key)
{
	struct rdmatensor_tensor *tensor, *next;

	list_for_each_entry_safe(tensor, next, &key->offered, item) {
		if (!tensor->generation ||
		    tensor->generation->state != RDMATENSOR_GENERATION_RETIRED)
			return true;
		/* As the walk that retires it would */
		list_move(&tensor->item, &key->held);
	}
	return false;
}

/* Return: 0; -EEXIST; -EALREADY; 1: the hash did not take the key */
static int rdv_offer(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
		     struct rdmatensor_tensor *tensor, struct rdmatensor_rendezvous_key **spare)
{
	struct rdmatensor_rendezvous_key *key = rdv_find_or_insert(rdv, lookup, spare);

	if (!key)
		return 1;
	if (rdv_is_taken(key))
		return -EEXIST;
	INIT_LIST_HEAD(&tensor->sibling);
	if (tensor->generation) {
		if (tensor->generation->state != RDMATENSOR_GENERATION_HIDDEN) {
			rdv_free_key_if_unused(rdv, key);
			return -EALREADY;
		}
		list_add_tail(&tensor->sibling, &tensor->generation->tensors);
	}
	tensor->key = key;
	tensor->step_id = lookup->step_id;
	tensor->uses_left = tensor->uses;
	tensor->inflight = 0;
	tensor->withdrawn = false;
	tensor->withdraw_status = 0;
	list_add_tail(&tensor->item, &key->offered);
	rdmatensor_newest_add(rdv, key, tensor);
	return 0;
}

/* As rdv_offer(), in @rdv's own table; and what waits for it is matched */
static int rdv_offer_own(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
			 struct rdmatensor_tensor *tensor,
			 struct rdmatensor_rendezvous_key **spare, struct list_head *matches)
{
	int ret;

	if (rdv_is_lasting(rdv, lookup))
		return -EEXIST;
	ret = rdv_offer(rdv, lookup, tensor, spare);
	if (!ret) {
		rdv_match_waiters(tensor->key, matches);
		rdv_match_any_step(rdv, lookup->name, lookup->name_len, matches);
	}
	return ret;
}

/* As rdv_offer(), in the table of lasting tensors */
static int rdv_offer_lasting(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
			     struct rdmatensor_tensor *tensor,
			     struct rdmatensor_rendezvous_key **spare)
{
	int ret;

	if (rdv_offered(rdv, lookup))
		return -EEXIST;
	spin_lock_nested(&rdv->lasting->lock, SINGLE_DEPTH_NESTING);
	ret = rdv_offer(rdv->lasting, lookup, tensor, spare);
	spin_unlock(&rdv->lasting->lock);
	return ret;
}

/* @matches: NULL: the tensor lasts */
static int rdv_publish(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
		       struct rdmatensor_tensor *tensor, struct list_head *matches)
{
	struct rdmatensor_rendezvous_key *spare;
	const struct rdmatensor_status *status;
	unsigned int tries = 0;
	int ret;

	might_sleep();

	spare = rdv_alloc_key(lookup, RDMATENSOR_GFP_SPARING);
	if (!spare)
		return -ENOMEM;
	do {
		spin_lock_bh(&rdv->lock);
		status = rdmatensor_rdv_aborted(rdv, lookup->step_id);
		ret = status ? status->error :
		      matches ? rdv_offer_own(rdv, lookup, tensor, &spare, matches) :
		      rdv_offer_lasting(rdv, lookup, tensor, &spare);
		spin_unlock_bh(&rdv->lock);
	} while (ret > 0 && rdv_wait_for_hash(GFP_KERNEL, &tries));
	kfree(spare);
	return ret > 0 ? -ENOMEM : ret;
}

int rdmatensor_rendezvous_publish(struct rdmatensor_rendezvous *rdv,
				  struct rdmatensor_tensor *tensor, const char *name,
				  u16 name_len, s64 step_id, struct list_head *matches)
{
	const struct rdv_lookup lookup = {
		.name = name, .name_len = name_len, .step_id = step_id
	};

	return rdv_publish(rdv, &lookup, tensor, matches);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_publish);

/*
 * Those of one key for a lasting tensor. Return: false: none is offered. Else the key may have been
 * freed
 */
static bool rdv_meet_key(struct rdmatensor_rendezvous *rdv, struct rdmatensor_rendezvous_key *key,
			 const struct rdv_lookup *lookup, struct list_head *matches)
{
	struct rdmatensor_rendezvous *lasting;
	struct rdmatensor_waiter *waiter, *next;
	struct rdmatensor_tensor *tensor;

	lasting = rdv_lock_lasting(rdv);
	tensor = lasting ? rdv_offered(lasting, lookup) : NULL;
	if (tensor)
		list_for_each_entry_safe(waiter, next, &key->waiters, item)
			rdv_match_waiter(tensor, waiter, matches);
	rdv_unlock_lasting(lasting);
	if (tensor)
		rdv_free_key_if_unused(rdv, key);
	return tensor;
}

/* The waiters of one member for a new lasting tensor */
static void rdv_meet(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
		     struct list_head *matches)
{
	struct rdmatensor_rendezvous_key *key;

	spin_lock_bh(&rdv->lock);
	key = rdv_find_key(rdv, lookup);
	if (key && !list_empty(&key->waiters))
		rdv_meet_key(rdv, key, lookup, matches);
	rdv_match_any_step(rdv, lookup->name, lookup->name_len, matches);
	spin_unlock_bh(&rdv->lock);
}

int rdmatensor_rendezvous_publish_lasting(struct rdmatensor_rendezvous *rdv,
					  struct rdmatensor_tensor *tensor, const char *name,
					  u16 name_len, s64 step_id, struct list_head *matches)
{
	const struct rdv_lookup lookup = {
		.name = name, .name_len = name_len, .step_id = step_id
	};
	struct rdmatensor_rendezvous *lasting = rdv->lasting, *member;
	bool hidden = tensor->generation;
	int ret;

	ret = rdv_publish(rdv, &lookup, tensor, NULL);
	if (ret)
		return ret;

	/* It may be withdrawn from here on */
	rdmatensor_hold("publish_lasting");
	/* What is hidden meets nobody before its reveal, which wakes who waits */
	if (hidden)
		return 0;
	down_read(&lasting->membership);
	list_for_each_entry(member, &lasting->members, member)
		rdv_meet(member, &lookup, matches);
	up_read(&lasting->membership);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_publish_lasting);

void rdmatensor_rendezvous_join(struct rdmatensor_rendezvous *rdv,
				struct rdmatensor_rendezvous *lasting)
{
	rdv->lasting = lasting;
	down_write(&lasting->membership);
	list_add_tail(&rdv->member, &lasting->members);
	up_write(&lasting->membership);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_join);

void rdmatensor_rendezvous_leave(struct rdmatensor_rendezvous *rdv)
{
	down_write(&rdv->lasting->membership);
	list_del_init(&rdv->member);
	up_write(&rdv->lasting->membership);
	rdv->lasting = NULL;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_leave);

/*
 * A step that is not offered was replaced by a generation that is visible: a newer one, or one that
 * has gone back from it. Return: its step is in *step_id
 */
static bool rdv_is_replaced(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
			    s64 *step_id)
{
	struct rdmatensor_rendezvous *lasting = rdv_lock_lasting(rdv);
	struct rdmatensor_rendezvous_key *key = NULL;
	bool replaced = false;

	if (lasting && lasting->nr_generations)
		key = rdmatensor_newest_find(lasting, RDV_OF_GENERATIONS, lookup, S64_MIN, rdv);
	if (key) {
		*step_id = key->step_id;
		replaced = rdmatensor_generation_replaces(rdmatensor_rdv_first(key)->generation,
							  lookup->step_id);
	}
	rdv_unlock_lasting(lasting);
	return replaced;
}

static void rdv_say_replaced(struct rdmatensor_status *status, s64 step_id)
{
	char text[RDMATENSOR_TEXT_MAX];

	scnprintf(text, sizeof(text), "step %lld has taken the place of this one", step_id);
	rdmatensor_status_set(status, -ESTALE, text);
}

/*
 * A request that has not been matched is not to wait. Return: true: ->status says why. With the
 * table's lock
 */
static bool rdv_refuse(struct rdmatensor_rendezvous *rdv, struct rdmatensor_waiter *waiter,
		       const struct rdmatensor_wanted *wanted, const struct rdv_lookup *lookup)
{
	s64 step_id;

	if (!wanted->newest && rdv_is_replaced(rdv, lookup, &step_id)) {
		rdv_say_replaced(&waiter->status, step_id);
		return true;
	}
	if (!wanted->now)
		return false;
	rdmatensor_status_set(&waiter->status, -ENOENT, wanted->newest ?
			      "no such step of it is offered now, and the request was not to wait" :
			      "it is not offered now, and the request was not to wait");
	return true;
}

/* The table's own tensors go first. Return: whether it is matched */
static bool rdv_match_now(struct rdmatensor_rendezvous *rdv, struct rdmatensor_waiter *waiter,
			  const struct rdv_lookup *lookup)
{
	struct rdmatensor_rendezvous *lasting = NULL;
	struct rdmatensor_tensor *tensor;

	if (lookup->any_step)
		return rdv_match_newest(rdv, lookup, waiter);
	tensor = rdv_offered(rdv, lookup);
	if (!tensor) {
		lasting = rdv_lock_lasting(rdv);
		tensor = lasting ? rdv_offered(lasting, lookup) : NULL;
	}
	if (tensor)
		rdv_match(tensor, waiter);
	rdv_unlock_lasting(lasting);
	return tensor;
}

/*
 * With the lock. Return: as rdmatensor_rendezvous_request(), but -ENOMEM: there is no key that it
 * could wait at
 */
static int rdv_ask(struct rdmatensor_rendezvous *rdv, struct rdmatensor_waiter *waiter,
		   const struct rdmatensor_wanted *wanted, const struct rdv_lookup *lookup,
		   struct rdmatensor_rendezvous_key **spare)
{
	const struct rdmatensor_status *status;
	struct rdmatensor_rendezvous_key *key;

	lockdep_assert_held(&rdv->lock);
	/* A concurrent cancel may read it already */
	waiter->key = NULL;
	INIT_LIST_HEAD(&waiter->item);
	waiter->waiting = false;
	waiter->step_id = wanted->step_id;
	waiter->tensor = NULL;
	waiter->status.error = 0;
	waiter->status.text_len = 0;
	waiter->status.whole = NULL;
	status = wanted->newest ? NULL : rdmatensor_rdv_aborted(rdv, wanted->step_id);
	if (status) {
		rdmatensor_status_init_copy(&waiter->status, status);
		return -ECANCELED;
	}
	if (rdv_match_now(rdv, waiter, lookup))
		return 0;
	if (rdv_refuse(rdv, waiter, wanted, lookup))
		return -ECANCELED;
	key = rdv_find_or_insert(rdv, lookup, spare);
	if (!key)
		return -ENOMEM;
	rdv_wait(rdv, key, waiter);
	return 1;
}

int rdmatensor_rendezvous_request(struct rdmatensor_rendezvous *rdv,
				  struct rdmatensor_waiter *waiter,
				  const struct rdmatensor_wanted *wanted, gfp_t gfp)
{
	const struct rdv_lookup lookup = {
		.name = wanted->name, .name_len = wanted->name_len,
		.step_id = wanted->newest ? 0 : wanted->step_id, .any_step = wanted->newest,
	};
	struct rdmatensor_rendezvous_key *spare = NULL;
	unsigned int tries = 0;
	int ret;

	for (;;) {
		spin_lock_bh(&rdv->lock);
		ret = rdv_ask(rdv, waiter, wanted, &lookup, &spare);
		spin_unlock_bh(&rdv->lock);
		if (ret != -ENOMEM)
			break;
		if (spare && !rdv_wait_for_hash(gfp, &tries))
			break;
		/* Only a request that waits needs a key: most never come here */
		if (!spare)
			spare = rdv_alloc_key(&lookup, gfp);
		if (!spare)
			break;
	}
	kfree(spare);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_request);

/* They end, as a newer generation of the name is visible. The key may be freed */
static void rdv_end_replaced(struct rdmatensor_rendezvous *rdv,
			     struct rdmatensor_rendezvous_key *key,
			     const struct rdv_lookup *lookup, struct list_head *matches)
{
	struct rdmatensor_waiter *waiter, *next;
	s64 step_id;

	if (!rdv_is_replaced(rdv, lookup, &step_id))
		return;
	list_for_each_entry_safe(waiter, next, &key->waiters, item) {
		rdv_leave_key(waiter, matches);
		waiter->key = rdmatensor_rendezvous_key_get(key);
		rdv_say_replaced(&waiter->status, step_id);
	}
	rdv_free_key_if_unused(rdv, key);
}

/* A generation became visible, and perhaps has what is waited for there */
static void rdv_wake_key(struct rdmatensor_rendezvous *rdv, struct rdmatensor_rendezvous_key *key,
			 struct list_head *matches)
{
	const struct rdv_lookup lookup = {
		.name = key->name, .name_len = key->name_len, .step_id = key->step_id,
	};

	if (!rdv_is_awaited(key))
		list_del_init(&key->waiting);
	else if (key->any_step)
		rdv_match_any_step(rdv, key->name, key->name_len, matches);
	else if (!rdv_meet_key(rdv, key, &lookup, matches))
		rdv_end_replaced(rdv, key, &lookup, matches);
}

/* All of one member. What begins to wait meanwhile has looked for itself */
static void rdv_wake(struct rdmatensor_rendezvous *rdv, struct list_head *matches)
{
	struct rdmatensor_rendezvous_key place = { .name_len = 0 };
	unsigned int met = 0;

	spin_lock_bh(&rdv->lock);
	list_add(&place.waiting, &rdv->waiting);
	while (!list_is_last(&place.waiting, &rdv->waiting)) {
		struct rdmatensor_rendezvous_key *key = list_next_entry(&place, waiting);

		list_move(&place.waiting, &key->waiting);
		/* Else it is another walk's place */
		if (key->name_len)
			rdv_wake_key(rdv, key, matches);
		if (++met % RDV_WALK_BATCH == 0) {
			spin_unlock_bh(&rdv->lock);
			cond_resched();
			spin_lock_bh(&rdv->lock);
		}
	}
	list_del(&place.waiting);
	spin_unlock_bh(&rdv->lock);
}

void rdmatensor_rendezvous_wake(struct rdmatensor_rendezvous *lasting, struct list_head *matches)
{
	struct rdmatensor_rendezvous *member;

	might_sleep();
	down_read(&lasting->membership);
	list_for_each_entry(member, &lasting->members, member)
		rdv_wake(member, matches);
	up_read(&lasting->membership);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_wake);

bool rdmatensor_rendezvous_cancel(struct rdmatensor_rendezvous *rdv,
				  struct rdmatensor_waiter *waiter)
{
	struct rdmatensor_rendezvous_key *key;
	bool waiting;

	spin_lock_bh(&rdv->lock);
	waiting = waiter->waiting;
	if (waiting) {
		key = waiter->key;
		rdv_wait_no_more(waiter);
		rdv_free_key_if_unused(rdv, key);
	}
	spin_unlock_bh(&rdv->lock);
	return waiting;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_cancel);

bool rdmatensor_rendezvous_put(struct rdmatensor_rendezvous *rdv,
			       struct rdmatensor_tensor *tensor, bool delivered,
			       struct list_head *matches)
{
	struct rdmatensor_rendezvous_key *key;
	bool released;

	spin_lock_bh(&rdv->lock);
	key = tensor->key;
	tensor->inflight--;
	if (!delivered && tensor->uses) {
		tensor->uses_left++;
		if (!tensor->withdrawn) {
			list_move(&tensor->item, &key->offered);
			rdmatensor_newest_add(rdv, key, tensor);
			rdv_match_waiters(key, matches);
			rdv_match_any_step(rdv, key->name, key->name_len, matches);
		}
	}
	released = !tensor->inflight &&
		   (tensor->withdrawn || (tensor->uses && !tensor->uses_left));
	if (released)
		rdmatensor_rdv_remove(rdv, tensor);
	spin_unlock_bh(&rdv->lock);
	return released;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_put);

/* The last one of it in a list; NULL: it is not there */
static struct rdmatensor_tensor *rdv_find_id(struct list_head *list, u64 id)
{
	struct rdmatensor_tensor *tensor;

	list_for_each_entry_reverse(tensor, list, item)
		if (tensor->id == id)
			return tensor;
	return NULL;
}

static struct rdmatensor_tensor *rdv_find_this(struct rdmatensor_rendezvous_key *key, u64 id)
{
	struct rdmatensor_tensor *tensor;

	tensor = rdv_find_id(&key->offered, id) ?: rdv_find_id(&key->held, id);
	if (!tensor)
		return ERR_PTR(-ENOENT);
	return tensor->withdrawn ? ERR_PTR(-EALREADY) : tensor;
}

/* The tensor that a WITHDRAW of @key means; ERR_PTR(-EALREADY): all are withdrawn */
static struct rdmatensor_tensor *rdv_find_withdraw(struct rdmatensor_rendezvous_key *key)
{
	struct rdmatensor_tensor *tensor;

	if (!list_empty(&key->offered))
		return list_last_entry(&key->offered, struct rdmatensor_tensor, item);
	if (list_empty(&key->held))
		return ERR_PTR(-ENOENT);
	/* Withdrawn tensors are in front */
	tensor = list_last_entry(&key->held, struct rdmatensor_tensor, item);
	return tensor->withdrawn ? ERR_PTR(-EALREADY) : tensor;
}

int rdmatensor_rendezvous_withdraw(struct rdmatensor_rendezvous *rdv, const char *name,
				   u16 name_len, s64 step_id, u64 id,
				   int (*mark)(struct rdmatensor_tensor *tensor, void *arg),
				   void *arg, struct rdmatensor_tensor **tensor,
				   bool *released)
{
	struct rdv_lookup lookup = {
		.name = name, .name_len = name_len, .step_id = step_id
	};
	struct rdmatensor_rendezvous_key *key;
	struct rdmatensor_tensor *found;
	int ret = 0;

	spin_lock_bh(&rdv->lock);
	key = rdv_find_key(rdv, &lookup);
	found = ERR_PTR(-ENOENT);
	if (key)
		found = id ? rdv_find_this(key, id) : rdv_find_withdraw(key);
	if (IS_ERR(found)) {
		ret = PTR_ERR(found);
		goto out_unlock;
	}
	if (mark)
		ret = mark(found, arg);
	if (ret)
		goto out_unlock;
	*tensor = found;
	*released = rdmatensor_rdv_take_back(found, rdv_withdraw_status(found));
	if (*released)
		rdmatensor_rdv_remove(rdv, found);
out_unlock:
	spin_unlock_bh(&rdv->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_withdraw);

/*
 * Calls @fn for each key of a bucket, with the lock held. @fn may free the key. Keys that are
 * inserted meanwhile are skipped. May sleep, without the lock.
 */
static void rdv_walk_bucket(struct rdmatensor_rendezvous *rdv, struct list_head *bucket,
			    void (*fn)(struct rdmatensor_rendezvous *rdv,
				       struct rdmatensor_rendezvous_key *key, void *arg),
			    void *arg)
{
	struct rdmatensor_rendezvous_key place = { .name_len = 0 };
	unsigned int met = 0;

	might_sleep();
	spin_lock_bh(&rdv->lock);
	list_add(&place.step_item, bucket);
	while (!list_is_last(&place.step_item, bucket)) {
		struct rdmatensor_rendezvous_key *key =
			list_next_entry(&place, step_item);

		list_move(&place.step_item, &key->step_item);
		/* Else it is another walk's place */
		if (key->name_len)
			fn(rdv, key, arg);
		if (++met % RDV_WALK_BATCH == 0) {
			spin_unlock_bh(&rdv->lock);
			cond_resched();
			spin_lock_bh(&rdv->lock);
		}
	}
	list_del(&place.step_item);
	spin_unlock_bh(&rdv->lock);
}

struct rdv_abort {
	s64 step_id;
	const struct rdmatensor_status *status;
	struct list_head *released;
	struct list_head *waiters;
};

static void rdv_abort_key(struct rdmatensor_rendezvous *rdv,
			  struct rdmatensor_rendezvous_key *key, void *arg)
{
	struct rdmatensor_waiter *waiter, *next_waiter;
	struct rdmatensor_tensor *tensor, *next;
	struct rdv_abort *abort = arg;

	/* Who waits for any step is in @bounds of a key, and goes on waiting */
	if (key->step_id != abort->step_id)
		return;

	list_for_each_entry_safe(tensor, next, &key->held, item) {
		/* They are in flight, so none is idle */
		if (tensor->uses && !tensor->withdrawn)
			rdmatensor_rdv_take_back(tensor, abort->status->error);
	}
	list_for_each_entry_safe(tensor, next, &key->offered, item) {
		if (!tensor->uses) {
			list_move_tail(&tensor->item, &key->held);
		} else if (rdmatensor_rdv_take_back(tensor, abort->status->error)) {
			rdv_detach(tensor);
			list_add_tail(&tensor->item, abort->released);
		}
	}
	list_for_each_entry_safe(waiter, next_waiter, &key->waiters, item) {
		waiter->waiting = false;
		refcount_inc(&key->ref);
		rdmatensor_status_copy(&waiter->status, abort->status);
		list_move_tail(&waiter->item, abort->waiters);
	}
	rdv_free_key_if_unused(rdv, key);
}

void rdmatensor_rendezvous_abort_step(struct rdmatensor_rendezvous *rdv, s64 step_id,
				      const struct rdmatensor_status *status,
				      struct list_head *released,
				      struct list_head *waiters)
{
	struct rdv_abort abort = {
		.step_id = step_id,
		.status = status,
		.released = released,
		.waiters = waiters,
	};

	/* From here on nothing of the step is added, so that one walk finds all */
	spin_lock_bh(&rdv->lock);
	rdv_remember_aborted(rdv, step_id, status);
	spin_unlock_bh(&rdv->lock);

	rdv_walk_bucket(rdv, rdv_step_bucket(rdv, step_id), rdv_abort_key, &abort);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_abort_step);

struct rdv_retire {
	s64 step_id;
	bool (*whose)(struct rdmatensor_tensor *tensor, u64 arg);
	u64 arg;
};

static void rdv_retire_key(struct rdmatensor_rendezvous *rdv,
			   struct rdmatensor_rendezvous_key *key, void *arg)
{
	struct rdmatensor_tensor *tensor, *next;
	struct rdv_retire *retire = arg;

	if (key->step_id != retire->step_id)
		return;
	list_for_each_entry_safe(tensor, next, &key->offered, item) {
		if (retire->whose(tensor, retire->arg))
			list_move_tail(&tensor->item, &key->held);
	}
}

void rdmatensor_rendezvous_retire_step(struct rdmatensor_rendezvous *rdv, s64 step_id,
				       bool (*whose)(struct rdmatensor_tensor *tensor,
						     u64 arg), u64 arg)
{
	struct rdv_retire retire = { .step_id = step_id, .whose = whose, .arg = arg };

	rdv_walk_bucket(rdv, rdv_step_bucket(rdv, step_id), rdv_retire_key, &retire);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_retire_step);

bool rdmatensor_rendezvous_step_status(struct rdmatensor_rendezvous *rdv, s64 step_id,
				       struct rdmatensor_status *status)
{
	const struct rdmatensor_status *found;

	/*
	 * Most contexts never abort a step. A caller that became visible to the walk of an abort,
	 * under a lock that the walk takes after it has remembered the step, either sees the step
	 * here or is found by the walk
	 */
	if (!READ_ONCE(rdv->nr_aborted))
		return false;
	spin_lock_bh(&rdv->lock);
	found = rdmatensor_rdv_aborted(rdv, step_id);
	if (found)
		rdmatensor_status_init_copy(status, found);
	spin_unlock_bh(&rdv->lock);
	return found;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_step_status);

/* The first key behind number @serial */
static struct rdmatensor_rendezvous_key *rdv_key_behind(const struct rdmatensor_rendezvous *rdv,
							u64 serial)
{
	struct rdmatensor_rendezvous_key *found = NULL, *key;
	struct rb_node *node = rdv->order.rb_node;

	lockdep_assert_held(&rdv->lock);
	while (node) {
		key = rb_entry(node, struct rdmatensor_rendezvous_key, order);
		if (key->serial > serial) {
			found = key;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

struct rdv_list {
	const char *prefix;
	u16 prefix_len;
	bool (*add)(const struct rdmatensor_tensor *tensor,
		    const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg);
	void *arg;
};

/* @own: the context's table, if @key is a lasting tensor's: what it offers itself goes first */
static bool rdv_is_listed(const struct rdv_list *list, const struct rdmatensor_rendezvous_key *key,
			  struct rdmatensor_rendezvous *own)
{
	struct rdmatensor_rendezvous_key *before;

	if (!rdmatensor_rdv_first(key) || key->name_len < list->prefix_len ||
	    memcmp(key->name, list->prefix, list->prefix_len))
		return false;
	if (!own)
		return true;
	if (rdmatensor_rdv_aborted(own, key->step_id))
		return false;
	before = rdv_find_key(own, &(struct rdv_lookup){
		.name = key->name, .name_len = key->name_len, .step_id = key->step_id
	});
	return !before || !rdmatensor_rdv_first(before);
}

/* Some behind *serial, out: the last one's; 0: nothing follows. Return: false: one was not taken */
static bool rdv_list_keys(struct rdmatensor_rendezvous *rdv, const struct rdv_list *list,
			  struct rdmatensor_rendezvous *own, u64 *serial)
{
	struct rdmatensor_rendezvous_key *key = rdv_key_behind(rdv, *serial);
	u64 mark = own ? RDV_LASTING : 0;
	unsigned int met = 0;

	for (; key && met < RDV_LIST_BATCH; met++) {
		if (rdv_is_listed(list, key, own) &&
		    !list->add(rdmatensor_rdv_first(key), key, key->serial | mark, list->arg))
			return false;
		*serial = key->serial;
		key = rb_entry_safe(rb_next(&key->order), struct rdmatensor_rendezvous_key, order);
	}
	if (!key)
		*serial = 0;
	return true;
}

bool rdmatensor_rendezvous_list(struct rdmatensor_rendezvous *rdv, u64 *cursor, const char *prefix,
				u16 prefix_len,
				bool (*add)(const struct rdmatensor_tensor *tensor,
					    const struct rdmatensor_rendezvous_key *key,
					    u64 cursor, void *arg), void *arg)
{
	const struct rdv_list list = {
		.prefix = prefix, .prefix_len = prefix_len, .add = add, .arg = arg,
	};
	struct rdmatensor_rendezvous *lasting;
	u64 serial = *cursor & ~RDV_LASTING;
	bool taken;

	spin_lock_bh(&rdv->lock);
	lasting = rdv_has_lasting(rdv) ? rdv->lasting : NULL;
	if (!(*cursor & RDV_LASTING)) {
		taken = rdv_list_keys(rdv, &list, NULL, &serial);
		/* Those of the other table are for the next call */
		*cursor = serial || !taken ? serial : lasting ? RDV_LASTING : 0;
	} else if (lasting) {
		spin_lock_nested(&lasting->lock, SINGLE_DEPTH_NESTING);
		taken = rdv_list_keys(lasting, &list, rdv, &serial);
		spin_unlock(&lasting->lock);
		*cursor = serial || !taken ? serial | RDV_LASTING : 0;
	} else {
		taken = true;
		*cursor = 0;
	}
	spin_unlock_bh(&rdv->lock);
	return taken;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_list);

static void rdv_drain_list(struct list_head *tensors, struct list_head *released)
{
	struct rdmatensor_tensor *tensor, *next;

	list_for_each_entry_safe(tensor, next, tensors, item) {
		/* It is being read: leak it, and the table with it */
		if (WARN_ON_ONCE(tensor->inflight))
			continue;
		if (!tensor->withdrawn)
			tensor->withdraw_status = rdv_withdraw_status(tensor);
		rdv_detach(tensor);
		list_add_tail(&tensor->item, released);
	}
}

static void rdv_drain_key(struct rdmatensor_rendezvous *rdv,
			  struct rdmatensor_rendezvous_key *key, void *released)
{
	rdv_drain_list(&key->offered, released);
	rdv_drain_list(&key->held, released);
	rdv_free_key_if_unused(rdv, key);
}

void rdmatensor_rendezvous_drain(struct rdmatensor_rendezvous *rdv,
				 struct list_head *released)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rdv->steps); i++)
		rdv_walk_bucket(rdv, &rdv->steps[i], rdv_drain_key, released);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_rendezvous_drain);

s64 rdmatensor_tensor_step(const struct rdmatensor_tensor *tensor)
{
	return tensor->step_id;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_tensor_step);
