// SPDX-License-Identifier: GPL-2.0
/*
 * All domains by id. The table has no reference: what ends leaves it first, and waits for its
 * readers, so that what a domain has is never given up by one of these.
 */
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include "context/holdings.h"
#include "context/holdings_list.h"

static DEFINE_XARRAY_ALLOC1(holdings_list);
static u32 holdings_list_next_id;

int rdmatensor_holdings_list_add(struct rdmatensor_holdings *holdings)
{
	int ret;

	refcount_set(&holdings->readers, 1);
	init_completion(&holdings->unread);
	ret = xa_alloc_cyclic(&holdings_list, &holdings->id, holdings, XA_LIMIT(1, S32_MAX),
			      &holdings_list_next_id, GFP_KERNEL);
	return min(ret, 0);
}

void rdmatensor_holdings_list_del(struct rdmatensor_holdings *holdings)
{
	if (!holdings->id)
		return;
	xa_erase(&holdings_list, holdings->id);
	rdmatensor_holdings_list_put(holdings);
	wait_for_completion(&holdings->unread);
	/* Readers tell it */
	holdings->id = 0;
}

struct rdmatensor_holdings *rdmatensor_holdings_list_next(const struct net *net, bool own,
							  u32 *id)
{
	struct rdmatensor_holdings *holdings;
	unsigned long at = *id;

	xa_lock(&holdings_list);
	do {
		holdings = xa_find_after(&holdings_list, &at, ULONG_MAX, XA_PRESENT);
	} while (holdings && (holdings->net_cookie != net->net_cookie ||
			      (own && !rdmatensor_owner_is_caller(&holdings->owner)) ||
			      !kref_read(&holdings->ref)));
	if (holdings) {
		/* In the table it has its own */
		refcount_inc(&holdings->readers);
		*id = at;
	}
	xa_unlock(&holdings_list);
	return holdings;
}

void rdmatensor_holdings_list_put(struct rdmatensor_holdings *holdings)
{
	if (refcount_dec_and_test(&holdings->readers))
		complete(&holdings->unread);
}
