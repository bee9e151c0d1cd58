/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The domains of this host, for readers that have joined none of them.
 */
#ifndef RDMATENSOR_HOLDINGS_LIST_H
#define RDMATENSOR_HOLDINGS_LIST_H

#include <linux/types.h>

struct net;
struct rdmatensor_holdings;

/*
 * Gives them an id, from 1, which is not used again soon. They are whole: a reader may find them
 * at once. Process context. Return: 0; -ENOMEM; -EBUSY: no id is free
 */
int rdmatensor_holdings_list_add(struct rdmatensor_holdings *holdings);
/* Waits for their readers, so may sleep. After it nobody finds them. Idempotent */
void rdmatensor_holdings_list_del(struct rdmatensor_holdings *holdings);

/**
 * rdmatensor_holdings_list_next - the next domain of a network namespace
 * @net: the network namespace
 * @own: those of the caller alone, as in rdmatensor_context_list_next()
 * @id: in: the id before it, 0 at first; out: its id
 *
 * Process context. Return: holdings, there until rdmatensor_holdings_list_put(), for which their
 * last user waits; NULL: there are no more.
 */
struct rdmatensor_holdings *rdmatensor_holdings_list_next(const struct net *net, bool own,
							  u32 *id);
void rdmatensor_holdings_list_put(struct rdmatensor_holdings *holdings);

#endif /* RDMATENSOR_HOLDINGS_LIST_H */
