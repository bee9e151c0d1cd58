/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contexts of this host, for readers other than their owners.
 */
#ifndef RDMATENSOR_CONTEXT_LIST_H
#define RDMATENSOR_CONTEXT_LIST_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include "context/owner.h"

struct net;

/**
 * struct rdmatensor_context_listed - a context's place in the list
 * @id: of the context, from 1; not used again soon
 * @net: its network namespace
 * @owner: the opener
 * @changes: counted as the generation of @net is
 * @users: the context, and its readers
 * @unused: @users is 0
 */
struct rdmatensor_context_listed {
	u32 id;
	const struct net *net;
	struct rdmatensor_owner owner;
	atomic_t changes;
	refcount_t users;
	struct completion unused;
};

/* At module load and unload. Return: 0, -ENOMEM */
int rdmatensor_context_list_init(void);
void rdmatensor_context_list_exit(void);

/**
 * rdmatensor_context_list_add - add a context to the list
 * @listed: filled
 * @net: network namespace of the context; outlives the place in the list
 *
 * Process context.
 *
 * Return: 0; -ENOMEM; -EBUSY: no id is free.
 */
int rdmatensor_context_list_add(struct rdmatensor_context_listed *listed, const struct net *net);

/**
 * rdmatensor_context_list_del - remove a context from the list
 * @listed: in the list
 *
 * Waits for its readers, so may sleep. After it nobody else has a reference.
 */
void rdmatensor_context_list_del(struct rdmatensor_context_listed *listed);

/**
 * rdmatensor_context_list_next - the next context of a network namespace
 * @net: the network namespace
 * @own: those of the caller alone (rdmatensor_owner_is_caller()): no others are held, so that
 *       nobody else's end waits for the caller
 * @id: in: the id before it, 0 at first; out: its id
 *
 * Process context.
 *
 * Return: a context, held for the caller to put by
 * rdmatensor_context_list_put(); NULL: there are no more.
 */
struct rdmatensor_context_listed *rdmatensor_context_list_next(const struct net *net, bool own,
							       u32 *id);
void rdmatensor_context_list_put(struct rdmatensor_context_listed *listed);

/**
 * rdmatensor_context_list_start - count a context that starts, in any network namespace
 * @most: bound on started contexts
 *
 * Return: 0: counted, until rdmatensor_context_list_end(); -EUSERS: there are @most.
 */
int rdmatensor_context_list_start(int most);
void rdmatensor_context_list_end(void);

/* Something that a dump shows of a context was added or removed. Any context */
void rdmatensor_context_list_changed(struct rdmatensor_context_listed *listed);
/* Generation of a network namespace: differs after each change; never 0 */
u32 rdmatensor_context_list_generation(const struct net *net);
/* The same of the caller's own contexts, which does not tell what others do. Process context */
u32 rdmatensor_context_list_own_generation(const struct net *net);

#endif /* RDMATENSOR_CONTEXT_LIST_H */
