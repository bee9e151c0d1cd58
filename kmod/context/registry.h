/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contexts of this host, for those who look at them from outside.
 */
#ifndef RDMATENSOR_REGISTRY_H
#define RDMATENSOR_REGISTRY_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/types.h>

struct net;

/**
 * struct rdmatensor_registered - a context's place in the registry
 * @id: of the context, from 1; not used again soon
 * @net: its network namespace
 * @users: the context, and whoever looks at it
 * @unused: @users is 0
 */
struct rdmatensor_registered {
	u32 id;
	const struct net *net;
	refcount_t users;
	struct completion unused;
};

/* Module load and unload */
int rdmatensor_registry_init(void);
void rdmatensor_registry_exit(void);
/* Return: 0, -ENOMEM, -EBUSY: no id is free. @net outlives the registration */
int rdmatensor_registry_add(struct rdmatensor_registered *registered, const struct net *net);
/* Waits for those who look at it. Nobody finds it any more */
void rdmatensor_registry_del(struct rdmatensor_registered *registered);
/* The next of @net after @id, which is set to its; held, to be put. NULL: none */
struct rdmatensor_registered *rdmatensor_registry_next(const struct net *net, u32 *id);
void rdmatensor_registry_put(struct rdmatensor_registered *registered);
/* A context of any namespace starts, if there are less than @most. Return: 0, -EUSERS */
int rdmatensor_registry_start(int most);
/* One that was started has ended */
void rdmatensor_registry_end(void);
/* Something of a context that a dump shows has come or gone. Any context */
void rdmatensor_registry_changed(const struct rdmatensor_registered *registered);
/* Of the network namespace's contexts: changes with each of them, never 0 */
u32 rdmatensor_registry_generation(const struct net *net);

#endif /* RDMATENSOR_REGISTRY_H */
