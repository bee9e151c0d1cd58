// SPDX-License-Identifier: GPL-2.0
/*
 * Generations of a table of lasting tensors: see core/generation.h.
 *
 * They are few (RDMATENSOR_GENERATIONS_MAX), so a list has them; their tensors may be very many,
 * and nothing here that holds the lock goes through these, but for the walk that retires them,
 * some at a time.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/lockdep.h>
#include <kunit/visibility.h>
#include "core/generation.h"
#include "core/rendezvous_table.h"
#include "rdmatensor.h"

#define GENERATION_BATCH 256

static void generation_move(struct rdmatensor_rendezvous *rdv,
			    struct rdmatensor_generation *generation,
			    enum rdmatensor_generation_state to)
{
	static const u8 from[] = {
		[RDMATENSOR_GENERATION_VISIBLE] = BIT(RDMATENSOR_GENERATION_HIDDEN),
		[RDMATENSOR_GENERATION_RETIRED] = BIT(RDMATENSOR_GENERATION_HIDDEN) |
						  BIT(RDMATENSOR_GENERATION_VISIBLE),
	};

	lockdep_assert_held(&rdv->lock);
	WARN_ON_ONCE(!(from[to] & BIT(generation->state)));
	/* Descriptions read it without the lock */
	WRITE_ONCE(generation->state, to);
}

/* That of a step, or, without a step, the visible one; NULL: there is none */
static struct rdmatensor_generation *generation_find(struct rdmatensor_rendezvous *rdv, u64 group,
						     const s64 *step_id)
{
	struct rdmatensor_generation *generation;

	lockdep_assert_held(&rdv->lock);
	list_for_each_entry(generation, &rdv->generations, item) {
		if (generation->group != group ||
		    generation->state == RDMATENSOR_GENERATION_RETIRED)
			continue;
		if (step_id ? generation->step_id == *step_id :
			      generation->state == RDMATENSOR_GENERATION_VISIBLE)
			return generation;
	}
	return NULL;
}

static int generation_new(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id, u64 owner,
			  struct rdmatensor_generation **spare,
			  struct rdmatensor_generation **generation)
{
	struct rdmatensor_generation *new = *spare;

	if (rdv->nr_generations >= RDMATENSOR_GENERATIONS_MAX)
		return -ENOSPC;
	if (!new)
		return -ENOMEM;
	rdv->nr_generations++;
	*spare = NULL;
	new->group = group;
	new->step_id = step_id;
	new->owner = owner;
	new->users = 1;
	atomic_set(&new->untold, 1);
	INIT_LIST_HEAD(&new->tensors);
	/* The one that is being filled is found first */
	list_add(&new->item, &rdv->generations);
	*generation = new;
	return 0;
}

static void generation_use(struct rdmatensor_rendezvous *rdv,
			   struct rdmatensor_generation *generation)
{
	lockdep_assert_held(&rdv->lock);
	generation->users++;
	atomic_inc(&generation->untold);
}

int rdmatensor_generation_join(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id,
			       u64 owner, struct rdmatensor_generation **spare,
			       struct rdmatensor_generation **generation)
{
	int ret = 0;

	spin_lock_bh(&rdv->lock);
	*generation = generation_find(rdv, group, &step_id);
	if (!*generation)
		ret = generation_new(rdv, group, step_id, owner, spare, generation);
	else if ((*generation)->state != RDMATENSOR_GENERATION_HIDDEN)
		ret = -EALREADY;
	else if ((*generation)->owner != owner)
		ret = -EBUSY;
	else
		generation_use(rdv, *generation);
	spin_unlock_bh(&rdv->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_join);

void rdmatensor_generation_put(struct rdmatensor_rendezvous *rdv,
			       struct rdmatensor_generation *generation)
{
	spin_lock_bh(&rdv->lock);
	if (!--generation->users) {
		list_del_init(&generation->item);
		rdv->nr_generations--;
	}
	spin_unlock_bh(&rdv->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_put);

bool rdmatensor_generation_told(struct rdmatensor_generation *generation)
{
	return atomic_dec_and_test(&generation->untold);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_told);

/* Its last user is the walk that retires it, which is to come */
static void generation_end(struct rdmatensor_rendezvous *rdv,
			   struct rdmatensor_generation *generation)
{
	generation_move(rdv, generation, RDMATENSOR_GENERATION_RETIRED);
	generation_use(rdv, generation);
}

/* Of the former one, and of those that it has gone back from, the steps that are newer */
static void generation_inherit(struct rdmatensor_generation *generation,
			       const struct rdmatensor_generation *former)
{
	int i;

	if (former->step_id > generation->step_id)
		generation->past[generation->nr_past++] = former->step_id;
	for (i = 0; i < former->nr_past && generation->nr_past < RDMATENSOR_GENERATION_PAST; i++)
		if (former->past[i] > generation->step_id)
			generation->past[generation->nr_past++] = former->past[i];
}

int rdmatensor_generation_reveal(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id,
				 u64 owner,
				 void (*mark)(struct rdmatensor_generation *former, void *arg),
				 void *arg)
{
	struct rdmatensor_generation *generation, *former;
	int ret = -ENOENT;

	spin_lock_bh(&rdv->lock);
	generation = generation_find(rdv, group, &step_id);
	if (!generation || generation->state != RDMATENSOR_GENERATION_HIDDEN ||
	    generation->owner != owner)
		goto out_unlock;
	former = generation_find(rdv, group, NULL);
	ret = !!former;
	if (former) {
		mark(former, arg);
		generation_inherit(generation, former);
		generation_end(rdv, former);
	}
	generation_move(rdv, generation, RDMATENSOR_GENERATION_VISIBLE);
out_unlock:
	spin_unlock_bh(&rdv->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_reveal);

int rdmatensor_generation_withdraw(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id,
				   u64 owner,
				   void (*mark)(struct rdmatensor_generation *generation,
						void *arg), void *arg)
{
	struct rdmatensor_generation *generation;
	int ret = 0;

	spin_lock_bh(&rdv->lock);
	generation = generation_find(rdv, group, &step_id);
	if (!generation) {
		ret = -ENOENT;
	} else if (rdmatensor_generation_belongs_to_another(generation, owner)) {
		/* Its owner would go on to fill it, and reveal a part */
		ret = -EBUSY;
	} else {
		mark(generation, arg);
		generation->withdrawn = true;
		generation_end(rdv, generation);
	}
	spin_unlock_bh(&rdv->lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_withdraw);

unsigned int rdmatensor_generation_withdraw_hidden(struct rdmatensor_rendezvous *rdv, u64 owner,
						   const s64 *step_id)
{
	struct rdmatensor_generation *generation;
	unsigned int nr = 0;

	spin_lock_bh(&rdv->lock);
	list_for_each_entry(generation, &rdv->generations, item) {
		if (generation->owner == owner &&
		    generation->state == RDMATENSOR_GENERATION_HIDDEN &&
		    (!step_id || generation->step_id == *step_id)) {
			generation->withdrawn = true;
			generation_end(rdv, generation);
			nr++;
		}
	}
	spin_unlock_bh(&rdv->lock);
	return nr;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_withdraw_hidden);

void rdmatensor_generation_each(struct rdmatensor_rendezvous *rdv,
				void (*fn)(struct rdmatensor_generation *generation, void *arg),
				void *arg)
{
	struct rdmatensor_generation *generation;

	spin_lock_bh(&rdv->lock);
	list_for_each_entry(generation, &rdv->generations, item)
		fn(generation, arg);
	spin_unlock_bh(&rdv->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_each);

static struct rdmatensor_generation *generation_to_walk(struct rdmatensor_rendezvous *rdv)
{
	struct rdmatensor_generation *generation;

	/* The oldest first: who waits for its own does not wait for all that come later */
	list_for_each_entry_reverse(generation, &rdv->generations, item) {
		if (generation->state == RDMATENSOR_GENERATION_RETIRED && !generation->walked)
			return generation;
	}
	return NULL;
}

unsigned int rdmatensor_generation_nr_to_walk(struct rdmatensor_rendezvous *rdv)
{
	struct rdmatensor_generation *generation;
	unsigned int nr = 0;

	spin_lock_bh(&rdv->lock);
	list_for_each_entry(generation, &rdv->generations, item)
		nr += generation->state == RDMATENSOR_GENERATION_RETIRED && !generation->walked;
	spin_unlock_bh(&rdv->lock);
	return nr;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_nr_to_walk);

struct rdmatensor_generation *rdmatensor_generation_retire(struct rdmatensor_rendezvous *rdv,
							   struct list_head *released,
							   bool *walked)
{
	struct rdmatensor_generation *generation;
	struct rdmatensor_tensor *tensor;
	unsigned int met;

	spin_lock_bh(&rdv->lock);
	generation = generation_to_walk(rdv);
	for (met = 0; generation && met < GENERATION_BATCH; met++) {
		/* None is added: those that are released meanwhile leave the list by themselves */
		tensor = list_first_entry_or_null(&generation->tensors, struct rdmatensor_tensor,
						  sibling);
		if (!tensor) {
			generation->walked = true;
			break;
		}
		list_del_init(&tensor->sibling);
		if (!tensor->withdrawn && rdmatensor_rdv_take_back(tensor, 0)) {
			rdmatensor_rdv_remove(rdv, tensor);
			list_add_tail(&tensor->item, released);
		}
	}
	*walked = generation && generation->walked;
	spin_unlock_bh(&rdv->lock);
	return generation;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_retire);

struct rdmatensor_generation *rdmatensor_generation_drain(struct rdmatensor_rendezvous *rdv)
{
	struct rdmatensor_generation *generation;

	spin_lock_bh(&rdv->lock);
	generation = list_first_entry_or_null(&rdv->generations, struct rdmatensor_generation,
					      item);
	if (generation) {
		list_del_init(&generation->item);
		rdv->nr_generations--;
	}
	spin_unlock_bh(&rdv->lock);
	return generation;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_generation_drain);
