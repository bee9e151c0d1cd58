// SPDX-License-Identifier: GPL-2.0
/*
 * All domains by id. The table has no reference: what ends leaves it first, and a reader that
 * meets one whose last reference is gone passes it over.
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

	ret = xa_alloc_cyclic(&holdings_list, &holdings->id, holdings, XA_LIMIT(1, S32_MAX),
			      &holdings_list_next_id, GFP_KERNEL);
	return min(ret, 0);
}

void rdmatensor_holdings_list_del(struct rdmatensor_holdings *holdings)
{
	if (holdings->id)
		xa_erase(&holdings_list, holdings->id);
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
			      !kref_get_unless_zero(&holdings->ref)));
	xa_unlock(&holdings_list);
	if (holdings)
		*id = at;
	return holdings;
}
