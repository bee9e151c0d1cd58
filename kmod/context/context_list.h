/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contexts of this host, for readers other than their owners.
 */
#ifndef RDMATENSOR_CONTEXT_LIST_H
#define RDMATENSOR_CONTEXT_LIST_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/types.h>

struct net;

/**
 * struct rdmatensor_context_listed - a context's place in the list
 * @id: of the context, from 1; not used again soon
 * @net: its network namespace
 * @users: the context, and its readers
 * @unused: @users is 0
 */
struct rdmatensor_context_listed {
	u32 id;
	const struct net *net;
	refcount_t users;
	struct completion unused;
};

/* Module load and unload */
int rdmatensor_context_list_init(void);
void rdmatensor_context_list_exit(void);
/* Return: 0, -ENOMEM, -EBUSY: no id is free. @net outlives the place in the list */
int rdmatensor_context_list_add(struct rdmatensor_context_listed *listed, const struct net *net);
/* Removes it, so that no new reader finds it, and waits for its readers. May sleep */
void rdmatensor_context_list_del(struct rdmatensor_context_listed *listed);
/* The next of @net after @id, which is set to its; held, to be put. NULL: none */
struct rdmatensor_context_listed *rdmatensor_context_list_next(const struct net *net, u32 *id);
void rdmatensor_context_list_put(struct rdmatensor_context_listed *listed);
/* Counts a context that starts, in any namespace, up to @most of them. Return: 0, -EUSERS */
int rdmatensor_context_list_start(int most);
/* A context that was counted has ended */
void rdmatensor_context_list_end(void);
/* Something that a dump shows of a context was added or removed. Any context */
void rdmatensor_context_list_changed(const struct rdmatensor_context_listed *listed);
/* Generation of a network namespace: differs after each change; never 0 */
u32 rdmatensor_context_list_generation(const struct net *net);

#endif /* RDMATENSOR_CONTEXT_LIST_H */
