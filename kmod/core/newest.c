// SPDX-License-Identifier: GPL-2.0
/*
 * The newest step of a name.
 *
 * Keys with something offered are in a tree by hash of the name, then by step. A key comes in with
 * its first tensor and goes with the key; one that offers nothing any more is taken out by the
 * search that meets it. So what only waits, as peers may in any number, is never searched.
 *
 * All calls are made with the table's lock held.
 */
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/string.h>
#include "core/rendezvous_table.h"

static struct rdmatensor_rendezvous_key *to_key(struct rb_node *node)
{
	return rb_entry_safe(node, struct rdmatensor_rendezvous_key, by_step);
}

u32 rdmatensor_newest_hash(const char *name, u16 name_len)
{
	return jhash(name, name_len, 0);
}

static bool newest_less(struct rb_node *a, const struct rb_node *b)
{
	const struct rdmatensor_rendezvous_key *x = to_key(a);
	const struct rdmatensor_rendezvous_key *y =
		rb_entry(b, struct rdmatensor_rendezvous_key, by_step);

	return x->name_hash != y->name_hash ? x->name_hash < y->name_hash :
	       x->step_id < y->step_id;
}

void rdmatensor_newest_add(struct rdmatensor_rendezvous *rdv,
			   struct rdmatensor_rendezvous_key *key)
{
	lockdep_assert_held(&rdv->lock);
	if (RB_EMPTY_NODE(&key->by_step))
		rb_add(&key->by_step, &rdv->by_step, newest_less);
}

void rdmatensor_newest_remove(struct rdmatensor_rendezvous *rdv,
			      struct rdmatensor_rendezvous_key *key)
{
	lockdep_assert_held(&rdv->lock);
	if (RB_EMPTY_NODE(&key->by_step))
		return;
	rb_erase(&key->by_step, &rdv->by_step);
	RB_CLEAR_NODE(&key->by_step);
}

/* The last key of a hash, NULL: there is none */
static struct rdmatensor_rendezvous_key *newest_last(const struct rdmatensor_rendezvous *rdv,
						     u32 name_hash)
{
	struct rdmatensor_rendezvous_key *found = NULL, *key;
	struct rb_node *node = rdv->by_step.rb_node;

	while (node) {
		key = to_key(node);
		if (key->name_hash <= name_hash) {
			found = key;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return found && found->name_hash == name_hash ? found : NULL;
}

/* Two names may have one hash */
static bool newest_is_named(const struct rdmatensor_rendezvous_key *key,
			    const struct rdv_lookup *lookup)
{
	return key->name_len == lookup->name_len &&
	       !memcmp(key->name, lookup->name, key->name_len);
}

struct rdmatensor_rendezvous_key *
rdmatensor_newest_find(struct rdmatensor_rendezvous *rdv, const struct rdv_lookup *lookup,
		       s64 from, const struct rdmatensor_rendezvous *own)
{
	u32 name_hash = rdmatensor_newest_hash(lookup->name, lookup->name_len);
	struct rdmatensor_rendezvous_key *key, *before;

	lockdep_assert_held(&rdv->lock);
	for (key = newest_last(rdv, name_hash);
	     key && key->name_hash == name_hash && key->step_id >= from; key = before) {
		before = to_key(rb_prev(&key->by_step));
		if (list_empty(&key->offered))
			rdmatensor_newest_remove(rdv, key);
		else if (rdmatensor_rdv_first(key) && newest_is_named(key, lookup) &&
			 !(own && rdmatensor_rdv_aborted(own, key->step_id)))
			return key;
	}
	return NULL;
}
