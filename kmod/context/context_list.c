// SPDX-License-Identifier: GPL-2.0
/*
 * All contexts by id. A reader holds a reference on the context that it reads, and the
 * end of a context waits for its readers, so that no lock is held while one is read.
 *
 * The contexts of each network namespace have a generation of their own: a dump lists only
 * those, and must not reveal what other namespaces do.
 */
#include <linux/atomic.h>
#include <linux/jhash.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "context/context_list.h"

/**
 * struct context_list_net - a network namespace
 * @seq: its generation
 */
struct context_list_net {
	atomic_t seq;
};

/* Contexts that are looked at before others may have the lock */
#define CONTEXT_LIST_STEPS 64

static DEFINE_XARRAY_ALLOC1(context_list);
static u32 context_list_next_id;
static unsigned int context_list_net_id;
static atomic_t context_list_started;

static struct context_list_net *to_context_list_net(const struct net *net)
{
	return net_generic(net, context_list_net_id);
}

static int __net_init context_list_net_init(struct net *net)
{
	atomic_set(&to_context_list_net(net)->seq, 1);
	return 0;
}

static struct pernet_operations context_list_net_ops = {
	.init = context_list_net_init,
	.id = &context_list_net_id,
	.size = sizeof(struct context_list_net),
};

int rdmatensor_context_list_init(void)
{
	return register_pernet_subsys(&context_list_net_ops);
}

void rdmatensor_context_list_exit(void)
{
	unregister_pernet_subsys(&context_list_net_ops);
}

int rdmatensor_context_list_add(struct rdmatensor_context_listed *listed, const struct net *net)
{
	int ret;

	listed->net = net;
	rdmatensor_owner_init(&listed->owner);
	atomic_set(&listed->changes, 1);
	refcount_set(&listed->users, 1);
	init_completion(&listed->unused);
	ret = xa_alloc_cyclic(&context_list, &listed->id, listed, XA_LIMIT(1, S32_MAX),
			      &context_list_next_id, GFP_KERNEL);
	if (ret < 0)
		rdmatensor_owner_put(&listed->owner);
	return ret < 0 ? ret : 0;
}

void rdmatensor_context_list_del(struct rdmatensor_context_listed *listed)
{
	xa_erase(&context_list, listed->id);
	rdmatensor_context_list_changed(listed);
	rdmatensor_context_list_put(listed);
	wait_for_completion(&listed->unused);
	rdmatensor_owner_put(&listed->owner);
}

/*
 * The next entry after @at, with the list's lock held, which is let go of now and then: a host
 * may have very many contexts, and most of them are not the caller's.
 */
static struct rdmatensor_context_listed *context_list_step(unsigned long *at, unsigned int *steps)
{
	lockdep_assert_held(&context_list.xa_lock);
	if (++*steps % CONTEXT_LIST_STEPS == 0) {
		xa_unlock(&context_list);
		cond_resched();
		xa_lock(&context_list);
	}
	return xa_find_after(&context_list, at, ULONG_MAX, XA_PRESENT);
}

struct rdmatensor_context_listed *rdmatensor_context_list_next(const struct net *net, bool own,
							       u32 *id)
{
	struct rdmatensor_context_listed *listed;
	unsigned long at = *id;
	unsigned int steps = 0;

	xa_lock(&context_list);
	do {
		listed = context_list_step(&at, &steps);
	} while (listed && (listed->net != net ||
			    (own && !rdmatensor_owner_is_caller(&listed->owner))));
	if (listed) {
		/* In the table it has its own */
		refcount_inc(&listed->users);
		*id = at;
	}
	xa_unlock(&context_list);
	return listed;
}

void rdmatensor_context_list_put(struct rdmatensor_context_listed *listed)
{
	if (refcount_dec_and_test(&listed->users))
		complete(&listed->unused);
}

int rdmatensor_context_list_start(int most)
{
	int now = atomic_read(&context_list_started);

	/* The bound may have been lowered below what there is */
	do {
		if (now >= most)
			return -EUSERS;
	} while (!atomic_try_cmpxchg(&context_list_started, &now, now + 1));
	return 0;
}

void rdmatensor_context_list_end(void)
{
	atomic_dec(&context_list_started);
}

void rdmatensor_context_list_changed(struct rdmatensor_context_listed *listed)
{
	atomic_t *seq = &to_context_list_net(listed->net)->seq;

	atomic_inc(&listed->changes);
	/* To a dump 0 means that there is no generation */
	if (!atomic_inc_return(seq))
		atomic_inc(seq);
}

u32 rdmatensor_context_list_generation(const struct net *net)
{
	return atomic_read(&to_context_list_net(net)->seq);
}

u32 rdmatensor_context_list_own_generation(const struct net *net)
{
	struct rdmatensor_context_listed *listed;
	unsigned int steps = 0;
	unsigned long at = 0;
	u32 generation = 0;

	/* One that changes when it has been passed is found changed by the next look */
	xa_lock(&context_list);
	while ((listed = context_list_step(&at, &steps)))
		if (listed->net == net && rdmatensor_owner_is_caller(&listed->owner))
			generation = jhash_2words(listed->id, atomic_read(&listed->changes),
						  generation);
	xa_unlock(&context_list);
	return generation ?: 1;
}
