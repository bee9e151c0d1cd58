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
/* No new reader finds them. Idempotent. Process context */
void rdmatensor_holdings_list_del(struct rdmatensor_holdings *holdings);

/**
 * rdmatensor_holdings_list_next - the next domain of a network namespace
 * @net: the network namespace
 * @own: those of the caller alone, as in rdmatensor_context_list_next()
 * @id: in: the id before it, 0 at first; out: its id
 *
 * Process context. Return: holdings with a reference of the caller's, which may turn out to be
 * the last one; NULL: there are no more.
 */
struct rdmatensor_holdings *rdmatensor_holdings_list_next(const struct net *net, bool own,
							  u32 *id);

#endif /* RDMATENSOR_HOLDINGS_LIST_H */
