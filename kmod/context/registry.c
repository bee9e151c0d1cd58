// SPDX-License-Identifier: GPL-2.0
/*
 * The registry: all contexts by id. Who looks at one holds it, and its end waits for
 * that, so no lock is held while it is looked at.
 *
 * Those of one network namespace have a generation of their own: a dump sees them alone,
 * and nothing that others do may be seen in it.
 */
#include <linux/atomic.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "context/registry.h"

/**
 * struct registry_net - a network namespace
 * @seq: its generation
 */
struct registry_net {
	atomic_t seq;
};

static DEFINE_XARRAY_ALLOC1(registry);
static u32 registry_next_id;
static unsigned int registry_net_id;
static atomic_t registry_started;

static struct registry_net *to_registry_net(const struct net *net)
{
	return net_generic(net, registry_net_id);
}

static int __net_init registry_net_init(struct net *net)
{
	atomic_set(&to_registry_net(net)->seq, 1);
	return 0;
}

static struct pernet_operations registry_net_ops = {
	.init = registry_net_init,
	.id = &registry_net_id,
	.size = sizeof(struct registry_net),
};

int rdmatensor_registry_init(void)
{
	return register_pernet_subsys(&registry_net_ops);
}

void rdmatensor_registry_exit(void)
{
	unregister_pernet_subsys(&registry_net_ops);
}

int rdmatensor_registry_add(struct rdmatensor_registered *registered, const struct net *net)
{
	int ret;

	registered->net = net;
	refcount_set(&registered->users, 1);
	init_completion(&registered->unused);
	ret = xa_alloc_cyclic(&registry, &registered->id, registered, XA_LIMIT(1, S32_MAX),
			      &registry_next_id, GFP_KERNEL);
	return ret < 0 ? ret : 0;
}

void rdmatensor_registry_del(struct rdmatensor_registered *registered)
{
	xa_erase(&registry, registered->id);
	rdmatensor_registry_changed(registered);
	rdmatensor_registry_put(registered);
	wait_for_completion(&registered->unused);
}

struct rdmatensor_registered *rdmatensor_registry_next(const struct net *net, u32 *id)
{
	struct rdmatensor_registered *registered;
	unsigned long at = *id;

	xa_lock(&registry);
	do {
		registered = xa_find_after(&registry, &at, ULONG_MAX, XA_PRESENT);
	} while (registered && registered->net != net);
	if (registered) {
		/* In the table it has its own */
		refcount_inc(&registered->users);
		*id = at;
	}
	xa_unlock(&registry);
	return registered;
}

void rdmatensor_registry_put(struct rdmatensor_registered *registered)
{
	if (refcount_dec_and_test(&registered->users))
		complete(&registered->unused);
}

int rdmatensor_registry_start(int most)
{
	int now = atomic_read(&registry_started);

	/* The bound may have been lowered below what there is */
	do {
		if (now >= most)
			return -EUSERS;
	} while (!atomic_try_cmpxchg(&registry_started, &now, now + 1));
	return 0;
}

void rdmatensor_registry_end(void)
{
	atomic_dec(&registry_started);
}

void rdmatensor_registry_changed(const struct rdmatensor_registered *registered)
{
	atomic_t *seq = &to_registry_net(registered->net)->seq;

	/* 0 means to a dump that it has no generation */
	if (!atomic_inc_return(seq))
		atomic_inc(seq);
}

u32 rdmatensor_registry_generation(const struct net *net)
{
	return atomic_read(&to_registry_net(net)->seq);
}
