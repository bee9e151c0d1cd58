/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Generations: lasting tensors of one step that become visible together, and together take the
 * place of those of another step.
 *
 *	HIDDEN -> VISIBLE -> RETIRED -> (over)
 *	HIDDEN -> RETIRED
 *
 * Without tensors it is over in any state.
 *
 * A tensor of a generation can be matched while that is VISIBLE, and at no other time: so a reveal
 * is one change of state, however many there are. Of a group, one generation is VISIBLE at most.
 *
 * Generations are guarded by the lock of their table of lasting tensors. Who embeds one owns its
 * memory, and frees it when rdmatensor_generation_put() says that it is over.
 */
#ifndef RDMATENSOR_GENERATION_H
#define RDMATENSOR_GENERATION_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/types.h>

/* Newer generations that have been gone back from, and are remembered for that */
#define RDMATENSOR_GENERATION_PAST 8

struct rdmatensor_rendezvous;

enum rdmatensor_generation_state {
	RDMATENSOR_GENERATION_HIDDEN,
	RDMATENSOR_GENERATION_VISIBLE,
	RDMATENSOR_GENERATION_RETIRED,
};

/**
 * struct rdmatensor_generation - tensors of one step and group
 * @item: in the table's list
 * @group: whose generation it is
 * @step_id: the step
 * @owner: the one who adds to it and reveals it
 * @state: enum rdmatensor_generation_state
 * @users: its tensors until they are released, who is about to add one, and the walk that is
 *         to retire them. Without any it is over, and out of the table
 * @untold: these, and those that have been released, but whose entries have not been written
 * @walked: the walk has been through
 * @withdrawn: nothing has taken its place
 * @past: newer steps that it has gone back from, the last one first
 * @nr_past: of them
 * @tensors: those of it that have not been retired or released
 */
struct rdmatensor_generation {
	struct list_head item;
	u64 group;
	s64 step_id;
	u64 owner;
	u8 state;
	bool walked;
	bool withdrawn;
	u8 nr_past;
	s64 past[RDMATENSOR_GENERATION_PAST];
	u32 users;
	atomic_t untold;
	struct list_head tensors;
};

/* Its tensors can not be matched. @generation: NULL: of none. With the table's lock held */
static inline bool rdmatensor_generation_hides(const struct rdmatensor_generation *generation)
{
	return generation && generation->state != RDMATENSOR_GENERATION_VISIBLE;
}

/* One fills it, and @owner is not the one. @generation: NULL: of none. With the lock held */
static inline bool
rdmatensor_generation_belongs_to_another(const struct rdmatensor_generation *generation, u64 owner)
{
	return generation && generation->state == RDMATENSOR_GENERATION_HIDDEN &&
	       generation->owner != owner;
}

/* A step that is not offered was replaced by @generation, which is visible. With the lock held */
static inline bool rdmatensor_generation_replaces(const struct rdmatensor_generation *generation,
						  s64 step_id)
{
	int i;

	if (step_id < generation->step_id)
		return true;
	for (i = 0; i < generation->nr_past; i++) {
		if (generation->past[i] == step_id)
			return true;
	}
	return false;
}

/**
 * rdmatensor_generation_join - become a user of a generation that is hidden
 * @rdv: table of lasting tensors
 * @group: the group
 * @step_id: the step
 * @owner: who is to reveal it
 * @spare: becomes the generation if there is none, and is set to NULL then; zeroed, or NULL
 * @generation: out: it, with one user more
 *
 * Return: 0; -EALREADY: it is visible; -EBUSY: another one owns it; -ENOSPC: there are
 * RDMATENSOR_GENERATIONS_MAX in the table; -ENOMEM: there is none, and no @spare.
 */
int rdmatensor_generation_join(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id,
			       u64 owner, struct rdmatensor_generation **spare,
			       struct rdmatensor_generation **generation);

/* One user less, which is still to tell of that. Any context */
void rdmatensor_generation_put(struct rdmatensor_rendezvous *rdv,
			       struct rdmatensor_generation *generation);
/* It has told. Return: true: it was the last one: all of it is the caller's. Any context */
bool rdmatensor_generation_told(struct rdmatensor_generation *generation);

/**
 * rdmatensor_generation_reveal - make a generation visible
 * @rdv: table of lasting tensors
 * @group: the group
 * @step_id: the step
 * @owner: its owner
 * @mark: called with the table's lock held for the generation that it takes the place of, before
 *        that can be over
 * @arg: for @mark
 *
 * From here on the former one's tensors are not matched any more, and this one's are: what has
 * waited for them is rdmatensor_rendezvous_wake()'s. The former one is to be retired.
 *
 * Return: 1: there is a former one; 0: there is none; -ENOENT: there is none that is hidden.
 */
int rdmatensor_generation_reveal(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id,
				 u64 owner,
				 void (*mark)(struct rdmatensor_generation *former, void *arg),
				 void *arg);

/*
 * Its tensors are not matched any more, whether it was visible, or hidden and @owner's. @mark and
 * @arg as for a reveal. Return: 0; -ENOENT: there is none; -EBUSY: another one's. It is to be
 * retired
 */
int rdmatensor_generation_withdraw(struct rdmatensor_rendezvous *rdv, u64 group, s64 step_id,
				   u64 owner,
				   void (*mark)(struct rdmatensor_generation *generation,
						void *arg), void *arg);

/*
 * As rdmatensor_generation_withdraw(), of all that are hidden and @owner's, of one step; @step_id:
 * NULL: of all. Return: their number
 */
unsigned int rdmatensor_generation_withdraw_hidden(struct rdmatensor_rendezvous *rdv, u64 owner,
						   const s64 *step_id);

/* Calls @fn for each, with the table's lock held */
void rdmatensor_generation_each(struct rdmatensor_rendezvous *rdv,
				void (*fn)(struct rdmatensor_generation *generation, void *arg),
				void *arg);

/* How many there are for rdmatensor_generation_retire() to return */
unsigned int rdmatensor_generation_nr_to_walk(struct rdmatensor_rendezvous *rdv);
/**
 * rdmatensor_generation_retire - take some tensors of a generation that is to be retired back
 * @rdv: table of lasting tensors
 * @released: those that nobody reads are the caller's again; the others end as if withdrawn
 * @walked: out: they were the last ones: it is to be put when @released has been processed
 *
 * By one caller at a time.
 *
 * Return: it; NULL: no generation is to be retired.
 */
struct rdmatensor_generation *rdmatensor_generation_retire(struct rdmatensor_rendezvous *rdv,
							   struct list_head *released,
							   bool *walked);

/* Takes one that has no tensors out of a table that nobody uses any more; NULL: there are none */
struct rdmatensor_generation *rdmatensor_generation_drain(struct rdmatensor_rendezvous *rdv);

#endif /* RDMATENSOR_GENERATION_H */
