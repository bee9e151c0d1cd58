// SPDX-License-Identifier: GPL-2.0
/*
 * The newest step of a name.
 *
 * Keys with something offered are in a tree by name, then by step, and those with something of a
 * generation in another one, too. A key comes in with its first tensor and goes with the key; one
 * that offers nothing any more is taken out by the search that meets it. So what only waits, as
 * peers may in any number, is never searched.
 *
 * Names are compared by a hash first, whose seed nobody knows.
 *
 * All calls are made with the table's lock held.
 */
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/string.h>
#include "core/rendezvous_table.h"

static struct rdmatensor_rendezvous_key *to_key(struct rb_node *node, enum rdv_kind kind)
{
	return node ? container_of(node - kind, struct rdmatensor_rendezvous_key, by_step[0]) :
	       NULL;
}

u32 rdmatensor_newest_hash(const struct rdmatensor_rendezvous *rdv, const char *name,
			   u16 name_len)
{
	return jhash(name, name_len, rdv->name_seed);
}

static int newest_compare_names(u32 name_hash, const char *name, u16 name_len,
				const struct rdmatensor_rendezvous_key *key)
{
	if (name_hash != key->name_hash)
		return name_hash < key->name_hash ? -1 : 1;
	if (name_len != key->name_len)
		return name_len < key->name_len ? -1 : 1;
	return memcmp(name, key->name, name_len);
}

static bool newest_less(const struct rdmatensor_rendezvous_key *a,
			const struct rdmatensor_rendezvous_key *b)
{
	int names = newest_compare_names(a->name_hash, a->name, a->name_len, b);

	return names ? names < 0 : a->step_id < b->step_id;
}

static void newest_insert(struct rdmatensor_rendezvous *rdv, struct rdmatensor_rendezvous_key *key,
			  enum rdv_kind kind)
{
	struct rb_node **link = &rdv->by_step[kind].rb_node, *parent = NULL;

	if (!RB_EMPTY_NODE(&key->by_step[kind]))
		return;
	while (*link) {
		parent = *link;
		link = newest_less(key, to_key(parent, kind)) ? &parent->rb_left :
								&parent->rb_right;
	}
	rb_link_node(&key->by_step[kind], parent, link);
	rb_insert_color(&key->by_step[kind], &rdv->by_step[kind]);
}

void rdmatensor_newest_add(struct rdmatensor_rendezvous *rdv,
			   struct rdmatensor_rendezvous_key *key,
			   const struct rdmatensor_tensor *tensor)
{
	lockdep_assert_held(&rdv->lock);
	newest_insert(rdv, key, RDV_ANY);
	if (tensor->generation)
		newest_insert(rdv, key, RDV_OF_GENERATIONS);
}

static void newest_erase(struct rdmatensor_rendezvous *rdv, struct rdmatensor_rendezvous_key *key,
			 enum rdv_kind kind)
{
	if (RB_EMPTY_NODE(&key->by_step[kind]))
		return;
	rb_erase(&key->by_step[kind], &rdv->by_step[kind]);
	RB_CLEAR_NODE(&key->by_step[kind]);
}

void rdmatensor_newest_remove(struct rdmatensor_rendezvous *rdv,
			      struct rdmatensor_rendezvous_key *key)
{
	lockdep_assert_held(&rdv->lock);
	newest_erase(rdv, key, RDV_ANY);
	newest_erase(rdv, key, RDV_OF_GENERATIONS);
}

/* The last key of a name, NULL: there is none */
static struct rdmatensor_rendezvous_key *newest_last(const struct rdmatensor_rendezvous *rdv,
						     enum rdv_kind kind, u32 name_hash,
						     const struct rdv_lookup *lookup)
{
	struct rb_node *node = rdv->by_step[kind].rb_node;
	struct rdmatensor_rendezvous_key *found = NULL;
	int names;

	while (node) {
		names = newest_compare_names(name_hash, lookup->name, lookup->name_len,
					     to_key(node, kind));
		if (!names)
			found = to_key(node, kind);
		node = names < 0 ? node->rb_left : node->rb_right;
	}
	return found;
}

/* Something of it can be matched */
static bool newest_offers(const struct rdmatensor_rendezvous_key *key, enum rdv_kind kind)
{
	const struct rdmatensor_tensor *tensor = rdmatensor_rdv_first(key);

	return tensor && (kind == RDV_ANY || tensor->generation);
}

struct rdmatensor_rendezvous_key *
rdmatensor_newest_find(struct rdmatensor_rendezvous *rdv, enum rdv_kind kind,
		       const struct rdv_lookup *lookup, s64 from,
		       const struct rdmatensor_rendezvous *own)
{
	u32 name_hash = rdmatensor_newest_hash(rdv, lookup->name, lookup->name_len);
	struct rdmatensor_rendezvous_key *key, *before;

	lockdep_assert_held(&rdv->lock);
	for (key = newest_last(rdv, kind, name_hash, lookup); key && key->step_id >= from;
	     key = before) {
		before = to_key(rb_prev(&key->by_step[kind]), kind);
		if (before && newest_compare_names(name_hash, lookup->name, lookup->name_len,
						   before))
			before = NULL;
		if (list_empty(&key->offered))
			newest_erase(rdv, key, kind);
		else if (newest_offers(key, kind) && !rdmatensor_rdv_aborted(own, key->step_id))
			return key;
	}
	return NULL;
}
