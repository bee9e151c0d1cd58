// SPDX-License-Identifier: GPL-2.0
/*
 * Generations of a table of lasting tensors that two contexts belong to: what is visible when, who
 * is woken, what ends, and that nothing is left of either.
 */
#include <linux/list.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include "core/rendezvous.h"
#include "rdmatensor.h"

#define GROUP 5
#define OWNER 77
#define OTHER 78
#define TENSORS 6
#define WAITERS 6

struct generation_world {
	struct rdmatensor_rendezvous *lasting, *a, *b;
	struct rdmatensor_tensor tensors[TENSORS];
	struct rdmatensor_waiter waiters[WAITERS];
	struct rdmatensor_generation *marked;
};

static struct generation_world *new_world(struct kunit *test)
{
	struct generation_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, world);
	world->lasting = rdmatensor_rendezvous_alloc();
	world->a = rdmatensor_rendezvous_alloc();
	world->b = rdmatensor_rendezvous_alloc();
	KUNIT_ASSERT_FALSE(test, IS_ERR(world->lasting) || IS_ERR(world->a) || IS_ERR(world->b));
	rdmatensor_rendezvous_join(world->a, world->lasting);
	rdmatensor_rendezvous_join(world->b, world->lasting);
	return world;
}

static void drain(struct generation_world *world)
{
	struct rdmatensor_generation *generation;
	LIST_HEAD(released);

	rdmatensor_rendezvous_drain(world->lasting, &released);
	while ((generation = rdmatensor_generation_drain(world->lasting)))
		kfree(generation);
}

/* Each table warns, and is leaked, if there is anything in it */
static void end_world(struct generation_world *world)
{
	drain(world);
	rdmatensor_rendezvous_leave(world->a);
	rdmatensor_rendezvous_leave(world->b);
	rdmatensor_rendezvous_free(world->a);
	rdmatensor_rendezvous_free(world->b);
	rdmatensor_rendezvous_free(world->lasting);
}

static int join(struct generation_world *world, s64 step_id, u64 owner,
		struct rdmatensor_generation **generation)
{
	struct rdmatensor_generation *spare = kzalloc(sizeof(*spare), GFP_KERNEL);
	int ret;

	if (!spare)
		return -ENOMEM;
	ret = rdmatensor_generation_join(world->lasting, GROUP, step_id, owner, &spare,
					 generation);
	kfree(spare);
	return ret;
}

/* A user parts from it, and has told. Return: it was the last one */
static bool part(struct generation_world *world, struct rdmatensor_generation *generation)
{
	rdmatensor_generation_put(world->lasting, generation);
	return rdmatensor_generation_told(generation);
}

/* Tensor number @i, hidden. @matches: what it has met, which is nothing */
static int hide(struct kunit *test, struct generation_world *world, int i, const char *name,
		s64 step_id)
{
	struct rdmatensor_tensor *tensor = &world->tensors[i];
	LIST_HEAD(matches);
	int ret;

	memset(tensor, 0, sizeof(*tensor));
	ret = join(world, step_id, OWNER, &tensor->generation);
	if (ret)
		return ret;
	ret = rdmatensor_rendezvous_publish_lasting(world->a, tensor, name, 1, step_id, &matches);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));
	if (ret && part(world, tensor->generation))
		kfree(tensor->generation);
	return ret;
}

static int ask(struct rdmatensor_rendezvous *rdv, struct rdmatensor_waiter *waiter,
	       const char *name, s64 step_id, bool newest)
{
	const struct rdmatensor_wanted wanted = {
		.name = name, .name_len = 1, .step_id = step_id, .newest = newest,
	};

	memset(waiter, 0xa5, sizeof(*waiter));
	return rdmatensor_rendezvous_request(rdv, waiter, &wanted, GFP_KERNEL);
}

static void mark(struct rdmatensor_generation *generation, void *arg)
{
	struct generation_world *world = arg;

	world->marked = generation;
}

static int reveal(struct generation_world *world, s64 step_id)
{
	world->marked = NULL;
	return rdmatensor_generation_reveal(world->lasting, GROUP, step_id, OWNER, mark, world);
}

/* What a tensor's user does when the table has released it. Return: its generation is over */
static bool let_go(struct generation_world *world, struct rdmatensor_tensor *tensor)
{
	struct rdmatensor_generation *generation = tensor->generation;
	bool over = part(world, generation);

	if (over)
		kfree(generation);
	return over;
}

/* Retires one. Return: how many were released; *over: it was over then */
static int retire(struct kunit *test, struct generation_world *world, bool *over)
{
	struct rdmatensor_tensor *tensor, *next;
	struct rdmatensor_generation *generation;
	LIST_HEAD(released);
	bool walked = false;
	int nr = 0;

	while (!walked) {
		generation = rdmatensor_generation_retire(world->lasting, &released, &walked);
		KUNIT_ASSERT_NOT_NULL(test, generation);
		list_for_each_entry_safe(tensor, next, &released, item) {
			list_del_init(&tensor->item);
			KUNIT_EXPECT_EQ(test, tensor->withdraw_status, 0);
			KUNIT_EXPECT_PTR_EQ(test, tensor->generation, generation);
			KUNIT_EXPECT_FALSE(test, let_go(world, tensor));
			nr++;
		}
	}
	*over = part(world, generation);
	if (*over)
		kfree(generation);
	return nr;
}

static bool put(struct generation_world *world, int i)
{
	LIST_HEAD(matches);

	return rdmatensor_rendezvous_put(world->lasting, &world->tensors[i], true, &matches);
}

/* Waiter number @i is first of the matches, with tensor number @tensor; < 0: with an errno */
static void expect_met(struct kunit *test, struct generation_world *world,
		       struct list_head *matches, int i, int tensor)
{
	struct rdmatensor_waiter *waiter;

	waiter = list_first_entry_or_null(matches, struct rdmatensor_waiter, item);
	KUNIT_ASSERT_PTR_EQ(test, waiter, &world->waiters[i]);
	list_del_init(&waiter->item);
	KUNIT_EXPECT_FALSE(test, waiter->waiting);
	if (tensor >= 0) {
		KUNIT_EXPECT_PTR_EQ(test, waiter->tensor, &world->tensors[tensor]);
	} else {
		KUNIT_EXPECT_PTR_EQ(test, waiter->tensor, NULL);
		KUNIT_EXPECT_EQ(test, waiter->status.error, tensor);
		/* The name that it waited for */
		KUNIT_EXPECT_NOT_NULL(test, waiter->key);
		rdmatensor_waiter_end(waiter);
	}
}

static void hidden_until_revealed(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	LIST_HEAD(matches);

	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 7), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 1, "y", 7), 0);
	/* It has its place, hidden or not */
	KUNIT_EXPECT_EQ(test, hide(test, world, 2, "x", 7), -EEXIST);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 7, false), 1);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1], "y", 0, true), 1);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[2], "y", 8, true), 1);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[3], "z", 0, true), 1);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));

	KUNIT_EXPECT_EQ(test, reveal(world, 7), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->marked, NULL);
	/* From here on they are matched, before and after others were woken */
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[4], "x", 7, false), 0);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	expect_met(test, world, &matches, 0, 0);
	expect_met(test, world, &matches, 1, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));
	KUNIT_EXPECT_EQ(test, reveal(world, 7), -ENOENT);
	KUNIT_EXPECT_EQ(test, hide(test, world, 2, "z", 7), -EALREADY);

	KUNIT_EXPECT_FALSE(test, put(world, 0) || put(world, 0) || put(world, 1));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[2]));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[3]));
	end_world(world);
}

/* The first place of a wait is in a table that knows of no lasting tensor */
static void woken_in_all_contexts(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	LIST_HEAD(matches);
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, ask(i % 2 ? world->a : world->b, &world->waiters[i],
					  "x", i < 2 ? 7 : 3, i >= 2), 1);
	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 7), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 7), 0);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&matches), 4);
	for (i = 0; i < 4; i++) {
		list_del_init(&world->waiters[i].item);
		KUNIT_EXPECT_PTR_EQ(test, world->waiters[i].tensor, &world->tensors[0]);
		KUNIT_EXPECT_FALSE(test, put(world, 0));
	}
	end_world(world);
}

/* Who asks for a step that has been gone back from is told so, also when later ones have come */
static void gone_back_from(struct kunit *test)
{
	static const s64 steps[] = { 9, 7, 3, 4, 5 };
	struct generation_world *world = new_world(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		KUNIT_EXPECT_EQ(test, hide(test, world, i, "x", steps[i]), 0);
		KUNIT_EXPECT_EQ(test, reveal(world, steps[i]), !!i);
	}
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 9, false), -ECANCELED);
	KUNIT_EXPECT_EQ(test, world->waiters[0].status.error, -ESTALE);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "x", 7, false), -ECANCELED);
	KUNIT_EXPECT_EQ(test, world->waiters[0].status.error, -ESTALE);
	/* It never was, and may come */
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[1], "x", 8, false), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[1]));
	end_world(world);
}

static void replaced_at_once(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	LIST_HEAD(matches);
	bool over;

	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 1, "y", 1), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 1), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 2, "x", 2), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 3, "y", 2), 0);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->tensors[0]);
	/* A step of which there never was any */
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1], "y", 0, false), -ECANCELED);
	KUNIT_EXPECT_EQ(test, world->waiters[1].status.error, -ESTALE);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1], "z", 1, false), 1);

	KUNIT_EXPECT_EQ(test, reveal(world, 2), 1);
	KUNIT_EXPECT_PTR_EQ(test, world->marked, world->tensors[0].generation);
	/* Not one of the former ones, retired or not yet */
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[2], "y", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[2].tensor, &world->tensors[3]);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[3], "x", 1, false), -ECANCELED);
	KUNIT_EXPECT_EQ(test, world->waiters[3].status.error, -ESTALE);
	/* What is read stays until then, and with it the generation */
	KUNIT_EXPECT_EQ(test, retire(test, world, &over), 1);
	KUNIT_EXPECT_FALSE(test, over);
	KUNIT_EXPECT_TRUE(test, put(world, 0));
	KUNIT_EXPECT_TRUE(test, let_go(world, &world->tensors[0]));
	KUNIT_EXPECT_FALSE(test, put(world, 3));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[1]));

	/* Back to an older step */
	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[4], "x", 3, false), 1);
	KUNIT_EXPECT_EQ(test, reveal(world, 1), 1);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[3], "x", 2, false), -ECANCELED);
	KUNIT_EXPECT_EQ(test, world->waiters[3].status.error, -ESTALE);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[5], "x", S64_MAX, false), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[4]));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[5]));
	/* The newest from a step on that has been gone back from may come again */
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[4], "x", 2, true), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[4]));
	/* Nor is a newer one than that of any generation */
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[4], "x", 3, true), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[4]));
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->tensors[0]);
	KUNIT_EXPECT_FALSE(test, put(world, 0));
	/* Its step may be taken again before the worker has come to it, and is another one then */
	KUNIT_EXPECT_EQ(test, hide(test, world, 4, "x", 2), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 2), 1);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 2, false), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->tensors[4]);
	KUNIT_EXPECT_FALSE(test, put(world, 4));
	KUNIT_EXPECT_EQ(test, retire(test, world, &over) + retire(test, world, &over), 3);
	KUNIT_EXPECT_TRUE(test, over);
	KUNIT_EXPECT_PTR_EQ(test, rdmatensor_generation_retire(world->lasting, &matches, &over),
			    NULL);
	end_world(world);
}

/* Who waited for a step while it was hidden, or before, ends when another one is visible */
static void waits_that_come_to_nothing(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	LIST_HEAD(matches);
	bool over;

	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 1, false), 1);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[1], "x", 3, false), 1);
	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 1, "x", 2), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 2), 0);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	expect_met(test, world, &matches, 0, -ESTALE);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));

	world->marked = NULL;
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw(world->lasting, GROUP, 1, OWNER,
							     mark, world), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->marked, world->tensors[0].generation);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw(world->lasting, GROUP, 1, OWNER,
							     mark, world), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw(world->lasting, GROUP + 1, 2, OWNER,
							     mark, world), -ENOENT);
	KUNIT_EXPECT_EQ(test, retire(test, world, &over), 1);
	KUNIT_EXPECT_TRUE(test, over);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw(world->lasting, GROUP, 2, OTHER,
							     mark, world), 0);
	/* Without a visible one nothing is replaced */
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[2], "x", 1, false), 1);
	KUNIT_EXPECT_EQ(test, retire(test, world, &over), 1);
	KUNIT_EXPECT_TRUE(test, over);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[1]));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[2]));
	end_world(world);
}

/* A lasting tensor of a newer step, which is of no generation, ends no wait */
static void beside_what_only_lasts(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_tensor *tensor = &world->tensors[1], *withdrawn;
	LIST_HEAD(matches);
	bool released;

	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 1), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish_lasting(world->a, tensor, "y", 1, 9,
								    &matches), 0);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "y", 3, false), 1);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));
	/* Nor does it hide one that does */
	KUNIT_EXPECT_EQ(test, hide(test, world, 2, "y", 5), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 5), 1);
	rdmatensor_rendezvous_wake(world->lasting, &matches);
	expect_met(test, world, &matches, 0, -ESTALE);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "y", 4, false), -ECANCELED);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "y", 6, false), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[0]));
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, "y", 1, 9, 0, NULL,
							     NULL, &withdrawn, &released), 0);
	end_world(world);
}

static void of_one_owner(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_generation *generation, *late;
	bool over;

	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, join(world, 1, OTHER, &generation), -EBUSY);
	/* He would go on, and reveal a part */
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw(world->lasting, GROUP, 1, OTHER,
							     mark, world), -EBUSY);
	KUNIT_EXPECT_EQ(test, join(world, 2, OTHER, &generation), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_reveal(world->lasting, GROUP, 1, OTHER, mark,
							   world), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw_hidden(world->lasting, OWNER,
								    NULL), 1);
	KUNIT_EXPECT_EQ(test, reveal(world, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, retire(test, world, &over), 1);
	KUNIT_EXPECT_TRUE(test, over);
	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 1), 0);
	KUNIT_EXPECT_EQ(test, join(world, 1, OTHER, &late), -EALREADY);
	/* One without tensors is none */
	KUNIT_EXPECT_TRUE(test, part(world, generation));
	kfree(generation);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_reveal(world->lasting, GROUP, 2, OTHER, mark,
							   world), -ENOENT);
	end_world(world);
}

static void one_tensor_withdrawn(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_tensor *tensor;
	bool released, over;

	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 1), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 1, "y", 1), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, "x", 1, 1, 0, NULL,
							     NULL, &tensor, &released), 0);
	KUNIT_EXPECT_TRUE(test, released);
	KUNIT_EXPECT_FALSE(test, let_go(world, tensor));
	KUNIT_EXPECT_EQ(test, reveal(world, 1), 0);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "x", 1, false), 1);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1], "y", 1, false), 0);
	/* Being read, it is withdrawn by name, and then with all the others */
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, "y", 1, 1, 0, NULL,
							     NULL, &tensor, &released), 0);
	KUNIT_EXPECT_FALSE(test, released);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw(world->lasting, GROUP, 1, OWNER,
							     mark, world), 0);
	KUNIT_EXPECT_EQ(test, retire(test, world, &over), 0);
	KUNIT_EXPECT_FALSE(test, over);
	KUNIT_EXPECT_TRUE(test, put(world, 1));
	KUNIT_EXPECT_TRUE(test, let_go(world, &world->tensors[1]));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[0]));
	end_world(world);
}

/* An own tensor of that step goes first; a newer own one is the newest */
static void beside_own_ones(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_status status = { .error = -EIO };
	struct rdmatensor_tensor own = { .uses = 1 }, newer = { .uses = 1 };
	LIST_HEAD(matches);

	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "x", 5), 0);
	/* Of the same step, which nobody offers yet */
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish(world->b, &own, "x", 1, 5, &matches),
			0);
	KUNIT_EXPECT_EQ(test, reveal(world, 5), 0);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &own);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->tensors[0]);
	KUNIT_EXPECT_FALSE(test, put(world, 0));
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->b, &own, true, &matches));
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish(world->b, &newer, "x", 1, 9,
							    &matches), 0);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &newer);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->b, &newer, true, &matches));
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->tensors[0]);
	KUNIT_EXPECT_FALSE(test, put(world, 0));
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish(world->b, &own, "x", 1, 4, &matches),
			0);
	/* That context has ended the newer step */
	rdmatensor_rendezvous_abort_step(world->b, 5, &status, &matches, &matches);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "x", 0, true), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &own);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->b, &own, true, &matches));
	end_world(world);
}

/* Who adds to it meanwhile comes too late, whatever has become of it */
static void filled_too_late(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_tensor *tensor = &world->tensors[1];
	LIST_HEAD(matches);
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, hide(test, world, 2 * i, "x", i), 0);
		memset(tensor, 0, sizeof(*tensor));
		KUNIT_EXPECT_EQ(test, join(world, i, OWNER, &tensor->generation), 0);
		if (i)
			KUNIT_EXPECT_EQ(test, rdmatensor_generation_withdraw_hidden(world->lasting,
										    OWNER, NULL),
					1);
		else
			KUNIT_EXPECT_EQ(test, reveal(world, i), 0);
		KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish_lasting(world->a, tensor, "y",
									    1, i, &matches),
				-EALREADY);
		KUNIT_EXPECT_FALSE(test, let_go(world, tensor));
	}
	end_world(world);
}

static void of_several_groups(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_generation *spare = kzalloc(sizeof(*spare), GFP_KERNEL);
	struct rdmatensor_tensor *tensor = &world->tensors[0];
	LIST_HEAD(matches);

	KUNIT_ASSERT_NOT_NULL(test, spare);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_join(world->lasting, GROUP + 1, 1, OWNER,
							 &spare, &tensor->generation), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish_lasting(world->a, tensor, "o", 1, 1,
								    &matches), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_reveal(world->lasting, GROUP + 1, 1, OWNER,
							   mark, world), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 1, "x", 2), 0);
	/* It takes no other's place */
	KUNIT_EXPECT_EQ(test, reveal(world, 2), 0);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0], "o", 1, false), 0);
	KUNIT_EXPECT_FALSE(test, put(world, 0));
	end_world(world);
}

#define MANY 700

static void of_many_tensors(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_tensor *tensors = kunit_kcalloc(test, MANY, sizeof(*tensors), GFP_KERNEL);
	LIST_HEAD(matches);
	char name[8];
	bool over;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, tensors);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%d", i);
		KUNIT_ASSERT_EQ(test, join(world, 1, OWNER, &tensors[i].generation), 0);
		KUNIT_ASSERT_EQ(test, rdmatensor_rendezvous_publish_lasting(world->a, &tensors[i],
									    name, strlen(name), 1,
									    &matches), 0);
	}
	KUNIT_EXPECT_EQ(test, reveal(world, 1), 0);
	KUNIT_EXPECT_EQ(test, hide(test, world, 0, "1", 2), 0);
	KUNIT_EXPECT_EQ(test, reveal(world, 2), 1);
	KUNIT_EXPECT_EQ(test, retire(test, world, &over), MANY);
	KUNIT_EXPECT_TRUE(test, over);
	end_world(world);
}

static void bounded(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_generation *generation;
	s64 step;

	for (step = 0; step < RDMATENSOR_GENERATIONS_MAX; step++)
		KUNIT_ASSERT_EQ(test, join(world, step, OWNER, &generation), 0);
	KUNIT_EXPECT_EQ(test, join(world, step, OWNER, &generation), -ENOSPC);
	KUNIT_EXPECT_EQ(test, join(world, 3, OWNER, &generation), 0);
	KUNIT_EXPECT_FALSE(test, part(world, generation));
	KUNIT_EXPECT_TRUE(test, part(world, generation));
	kfree(generation);
	KUNIT_EXPECT_EQ(test, join(world, step, OWNER, &generation), 0);
	end_world(world);
}

/* Out of the table with its last user; and told of with the last one that tells, whoever that is */
static void told_in_any_order(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	struct rdmatensor_generation *generation, *next;

	KUNIT_ASSERT_EQ(test, join(world, 3, OWNER, &generation), 0);
	KUNIT_ASSERT_EQ(test, join(world, 3, OWNER, &generation), 0);
	rdmatensor_generation_put(world->lasting, generation);
	KUNIT_EXPECT_EQ(test, join(world, 3, OTHER, &next), -EBUSY);
	rdmatensor_generation_put(world->lasting, generation);
	KUNIT_EXPECT_EQ(test, join(world, 3, OTHER, &next), 0);
	KUNIT_EXPECT_PTR_NE(test, next, generation);
	KUNIT_EXPECT_FALSE(test, rdmatensor_generation_told(generation));
	KUNIT_EXPECT_TRUE(test, rdmatensor_generation_told(generation));
	kfree(generation);
	KUNIT_EXPECT_TRUE(test, part(world, next));
	kfree(next);
	end_world(world);
}

/* Of those that have been replaced, the first one first */
static void retired_in_order(struct kunit *test)
{
	struct generation_world *world = new_world(test);
	bool over;
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, hide(test, world, i, "x", i), 0);
		KUNIT_EXPECT_EQ(test, reveal(world, i), !!i);
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, rdmatensor_generation_nr_to_walk(world->lasting), 2 - i);
		/* It has only that tensor, which is released with it */
		KUNIT_EXPECT_FALSE(test, list_empty(&world->tensors[i].sibling));
		KUNIT_EXPECT_EQ(test, retire(test, world, &over), 1);
		KUNIT_EXPECT_TRUE(test, over);
		KUNIT_EXPECT_TRUE(test, list_empty(&world->tensors[i].sibling));
	}
	KUNIT_EXPECT_EQ(test, rdmatensor_generation_nr_to_walk(world->lasting), 0);
	end_world(world);
}

static struct kunit_case generation_cases[] = {
	KUNIT_CASE(hidden_until_revealed),
	KUNIT_CASE(woken_in_all_contexts),
	KUNIT_CASE(replaced_at_once),
	KUNIT_CASE(gone_back_from),
	KUNIT_CASE(waits_that_come_to_nothing),
	KUNIT_CASE(beside_what_only_lasts),
	KUNIT_CASE(of_one_owner),
	KUNIT_CASE(one_tensor_withdrawn),
	KUNIT_CASE(beside_own_ones),
	KUNIT_CASE(filled_too_late),
	KUNIT_CASE(of_several_groups),
	KUNIT_CASE(of_many_tensors),
	KUNIT_CASE(bounded),
	KUNIT_CASE(told_in_any_order),
	KUNIT_CASE(retired_in_order),
	{}
};

static struct kunit_suite generation_suite = {
	.name = "rdmatensor_generation",
	.test_cases = generation_cases,
};

kunit_test_suite(generation_suite);
