// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of two contexts that share one of lasting tensors: who is matched with what, and that
 * nothing is left. The order of locks is lockdep's to see: all pairs of calls are made.
 */
#include <linux/list.h>
#include <kunit/test.h>
#include "core/rendezvous.h"

#define NAME "x", 1
#define STEP 7LL

struct lasting_world {
	struct rdmatensor_rendezvous *lasting, *a, *b;
	struct rdmatensor_tensor own, other, tensor;
	struct rdmatensor_waiter waiters[3];
};

static struct lasting_world *new_world(struct kunit *test)
{
	struct lasting_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, world);
	world->lasting = rdmatensor_rendezvous_alloc();
	world->a = rdmatensor_rendezvous_alloc();
	world->b = rdmatensor_rendezvous_alloc();
	KUNIT_ASSERT_FALSE(test, IS_ERR(world->lasting));
	KUNIT_ASSERT_FALSE(test, IS_ERR(world->a) || IS_ERR(world->b));
	rdmatensor_rendezvous_join(world->a, world->lasting);
	rdmatensor_rendezvous_join(world->b, world->lasting);
	world->own.uses = 1;
	world->other.uses = 1;
	return world;
}

/* Each table warns, and is leaked, if there is anything in it */
static void end_world(struct lasting_world *world)
{
	rdmatensor_rendezvous_leave(world->a);
	rdmatensor_rendezvous_leave(world->b);
	rdmatensor_rendezvous_free(world->a);
	rdmatensor_rendezvous_free(world->b);
	rdmatensor_rendezvous_free(world->lasting);
}

static int ask(struct rdmatensor_rendezvous *rdv, struct rdmatensor_waiter *waiter)
{
	const struct rdmatensor_wanted wanted = { .name = "x", .name_len = 1, .step_id = STEP };

	return rdmatensor_rendezvous_request(rdv, waiter, &wanted, GFP_KERNEL);
}

static int last(struct lasting_world *world, struct rdmatensor_rendezvous *rdv,
		struct list_head *matches)
{
	return rdmatensor_rendezvous_publish_lasting(rdv, &world->tensor, NAME, STEP, matches);
}

/* It has not been released, but is by a WITHDRAW */
static void withdraw_last(struct kunit *test, struct lasting_world *world)
{
	struct rdmatensor_tensor *tensor;
	bool released;

	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, NAME, STEP, 0,
							     NULL, NULL, &tensor, &released), 0);
	KUNIT_EXPECT_PTR_EQ(test, tensor, &world->tensor);
	KUNIT_EXPECT_TRUE(test, released);
	KUNIT_EXPECT_EQ(test, tensor->withdraw_status, 0);
}

static bool put_last(struct lasting_world *world, bool delivered)
{
	LIST_HEAD(matches);

	return rdmatensor_rendezvous_put(world->lasting, &world->tensor, delivered, &matches) ||
	       !list_empty(&matches);
}

static void offered_by_all(struct kunit *test)
{
	struct lasting_world *world = new_world(test);
	LIST_HEAD(matches);
	int i;

	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, ask(i % 2 ? world->a : world->b, &world->waiters[i]), 0);
		KUNIT_EXPECT_PTR_EQ(test, world->waiters[i].tensor, &world->tensor);
	}
	/* Delivered or not, it is offered as before */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, put_last(world, i));
	withdraw_last(test, world);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0]), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->a, &world->waiters[0]));
	end_world(world);
}

static void met_by_all_who_wait(struct kunit *test)
{
	struct lasting_world *world = new_world(test);
	struct rdmatensor_waiter *waiter, *next;
	unsigned int nr = 0;
	LIST_HEAD(matches);
	int i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, ask(i % 2 ? world->a : world->b, &world->waiters[i]), 1);
	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), 0);
	list_for_each_entry_safe(waiter, next, &matches, item) {
		list_del_init(&waiter->item);
		KUNIT_EXPECT_PTR_EQ(test, waiter->tensor, &world->tensor);
		KUNIT_EXPECT_FALSE(test, put_last(world, true));
		nr++;
	}
	KUNIT_EXPECT_EQ(test, nr, 3);
	/* They wait no more */
	KUNIT_EXPECT_FALSE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[0]));
	withdraw_last(test, world);
	end_world(world);
}

static void own_ones_first(struct kunit *test)
{
	struct lasting_world *world = new_world(test);
	LIST_HEAD(matches);

	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish(world->b, &world->own, NAME, STEP,
							    &matches), 0);
	/* Not in its own context, but in another one */
	KUNIT_EXPECT_EQ(test, last(world, world->b, &matches), -EEXIST);
	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish(world->a, &world->other, NAME, STEP,
							    &matches), -EEXIST);

	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0]), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->own);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1]), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[1].tensor, &world->tensor);
	/* It comes back, and is first again */
	KUNIT_EXPECT_FALSE(test, rdmatensor_rendezvous_put(world->b, &world->own, false,
							   &matches));
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[2]), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[2].tensor, &world->own);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->b, &world->own, true,
							  &matches));
	KUNIT_EXPECT_FALSE(test, put_last(world, true));
	withdraw_last(test, world);
	end_world(world);
}

static bool is_first(struct rdmatensor_tensor *tensor, u64 arg)
{
	return (uintptr_t)tensor == arg;
}

static void of_aborted_steps(struct kunit *test)
{
	const struct rdmatensor_status status = { .error = -EIO };
	struct lasting_world *world = new_world(test);
	LIST_HEAD(released);
	LIST_HEAD(matches);

	/* The publisher's abort, in its own table */
	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), 0);
	rdmatensor_rendezvous_abort_step(world->a, STEP, &status, &released, &matches);
	KUNIT_EXPECT_EQ(test, ask(world->a, &world->waiters[0]), -ECANCELED);
	rdmatensor_waiter_end(&world->waiters[0]);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1]), 0);
	KUNIT_EXPECT_FALSE(test, put_last(world, true));

	/* Some, or all, are not matched any more, and found by a WITHDRAW */
	rdmatensor_rendezvous_retire_step(world->lasting, STEP + 1, is_first,
					  (uintptr_t)&world->tensor);
	rdmatensor_rendezvous_retire_step(world->lasting, STEP, is_first,
					  (uintptr_t)&world->other);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1]), 0);
	KUNIT_EXPECT_FALSE(test, put_last(world, true));
	rdmatensor_rendezvous_retire_step(world->lasting, STEP, is_first,
					  (uintptr_t)&world->tensor);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[1]), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->b, &world->waiters[1]));
	withdraw_last(test, world);

	/* A step that the publisher has aborted takes none */
	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), -EIO);
	KUNIT_EXPECT_EQ(test, last(world, world->b, &matches), 0);
	withdraw_last(test, world);
	end_world(world);
}

static void withdrawn_while_it_is_read(struct kunit *test)
{
	struct lasting_world *world = new_world(test);
	struct rdmatensor_tensor *tensor;
	LIST_HEAD(matches);
	bool released;

	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), 0);
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0]), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, NAME, STEP, 0,
							     NULL, NULL, &tensor, &released), 0);
	KUNIT_EXPECT_FALSE(test, released);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, NAME, STEP, 0,
							     NULL, NULL, &tensor, &released),
			-EALREADY);
	/* Its last reader releases it */
	KUNIT_EXPECT_TRUE(test, put_last(world, false));
	end_world(world);
}

/* What a list has found: names of one letter, and where it goes on behind the last one */
struct found {
	char names[16];
	unsigned int nr;
	unsigned int room;
	u64 cursor;
};

static bool add_found(const struct rdmatensor_tensor *tensor,
		      const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg)
{
	struct found *found = arg;
	u16 name_len;

	if (!found->room)
		return false;
	found->room--;
	found->cursor = cursor;
	found->names[found->nr++] = *(const char *)rdmatensor_rendezvous_key_name(key, &name_len);
	return true;
}

/* Some from behind a cursor, out: behind the last of them; 0: there are no more */
static void expect_list(struct kunit *test, struct rdmatensor_rendezvous *rdv, u64 *cursor,
			unsigned int room, const char *names)
{
	struct found found = { .room = room };
	unsigned int calls = 0;
	bool taken;

	do
		taken = rdmatensor_rendezvous_list(rdv, cursor, "", 0, add_found, &found);
	while (taken && *cursor && ++calls < 8);
	KUNIT_EXPECT_STREQ(test, found.names, names);
	KUNIT_EXPECT_EQ(test, taken, !*cursor);
	if (!taken && found.nr)
		*cursor = found.cursor;
}

/* Own ones and then those of the domain, of which an own one is in front of the same name's */
static void listed_behind_own_ones(struct kunit *test)
{
	struct lasting_world *world = new_world(test);
	const struct rdmatensor_status status = { .error = -EIO };
	struct rdmatensor_tensor *tensor;
	LIST_HEAD(released);
	LIST_HEAD(matches);
	u64 cursor = 0;
	bool done;

	world->other.uses = 0;
	expect_list(test, world->b, &cursor, 9, "");
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish(world->b, &world->own, NAME, STEP,
							    &matches), 0);
	KUNIT_EXPECT_EQ(test, last(world, world->a, &matches), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_publish_lasting(world->a, &world->other, "z", 1,
								    STEP + 1, &matches), 0);
	expect_list(test, world->a, &cursor, 9, "xz");
	expect_list(test, world->a, &cursor, 1, "x");
	expect_list(test, world->a, &cursor, 9, "z");
	/* Its own x is before that of the domain */
	expect_list(test, world->b, &cursor, 9, "xz");
	expect_list(test, world->b, &cursor, 1, "x");
	expect_list(test, world->b, &cursor, 1, "z");
	cursor = 0;
	/* What is in use is not offered: the domain's is, then */
	KUNIT_EXPECT_EQ(test, ask(world->b, &world->waiters[0]), 0);
	KUNIT_EXPECT_PTR_EQ(test, world->waiters[0].tensor, &world->own);
	expect_list(test, world->b, &cursor, 9, "xz");
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->b, &world->own, true, &matches));
	expect_list(test, world->b, &cursor, 9, "xz");
	/* Not of a step that it has aborted, which is nothing to the other one */
	rdmatensor_rendezvous_abort_step(world->b, STEP, &status, &released, &matches);
	expect_list(test, world->b, &cursor, 9, "z");
	expect_list(test, world->a, &cursor, 9, "xz");
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->lasting, "z", 1, STEP + 1, 0,
							     NULL, NULL, &tensor, &done), 0);
	withdraw_last(test, world);
	expect_list(test, world->a, &cursor, 9, "");
	end_world(world);
}

static struct kunit_case lasting_tests[] = {
	KUNIT_CASE(offered_by_all),
	KUNIT_CASE(met_by_all_who_wait),
	KUNIT_CASE(own_ones_first),
	KUNIT_CASE(of_aborted_steps),
	KUNIT_CASE(withdrawn_while_it_is_read),
	KUNIT_CASE(listed_behind_own_ones),
	{}
};

static struct kunit_suite lasting_suite = {
	.name = "rdmatensor_lasting",
	.test_cases = lasting_tests,
};

kunit_test_suite(lasting_suite);
