// SPDX-License-Identifier: GPL-2.0
/*
 * The exchange. It owns ring, tables and workqueue, and nothing that is in
 * them: each fetch, publication and channel holds a reference, and the last
 * one to go lets rdmatensor_exchange_destroy() end.
 */
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/exchange.h"

int rdmatensor_exchange_init(struct rdmatensor_exchange *exchange, u32 ring_entries)
{
	int ret;

	memset(exchange, 0, sizeof(*exchange));
	refcount_set(&exchange->users, 1);
	init_completion(&exchange->idle);
	INIT_LIST_HEAD(&exchange->live_counters);
	mutex_init(&exchange->counters_lock);
	spin_lock_init(&exchange->fetch_lock);
	exchange->fetches = RB_ROOT;
	rdmatensor_texts_init(&exchange->texts);
	xa_init_flags(&exchange->shares, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH |
		      XA_FLAGS_ACCOUNT);

	ret = rdmatensor_ring_init(&exchange->ring, ring_entries);
	if (ret)
		return ret;

	ret = rdmatensor_counters_init(&exchange->counters);
	if (ret)
		goto out_destroy_ring;

	exchange->rdv = rdmatensor_rendezvous_alloc();
	if (IS_ERR_OR_NULL(exchange->rdv)) {
		ret = -ENOMEM;
		goto out_destroy_counters;
	}

	exchange->wq = alloc_workqueue("rdmatensor", WQ_UNBOUND, 0);
	if (!exchange->wq) {
		ret = -ENOMEM;
		goto out_free_rdv;
	}
	return 0;

out_free_rdv:
	rdmatensor_rendezvous_free(exchange->rdv);
out_destroy_counters:
	rdmatensor_counters_destroy(&exchange->counters);
out_destroy_ring:
	rdmatensor_ring_destroy(&exchange->ring);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exchange_init);

void rdmatensor_exchange_destroy(struct rdmatensor_exchange *exchange)
{
	rdmatensor_exchange_put(exchange);
	wait_for_completion(&exchange->idle);

	destroy_workqueue(exchange->wq);
	rdmatensor_rendezvous_free(exchange->rdv);
	rdmatensor_texts_destroy(&exchange->texts);
	WARN_ON_ONCE(!xa_empty(&exchange->shares));
	rdmatensor_counters_destroy(&exchange->counters);
	rdmatensor_ring_destroy(&exchange->ring);
	mutex_destroy(&exchange->counters_lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exchange_destroy);

void rdmatensor_exchange_adopt(struct rdmatensor_exchange *exchange,
			       struct rdmatensor_counters *counters)
{
	mutex_lock(&exchange->counters_lock);
	list_add_tail(&counters->item, &exchange->live_counters);
	mutex_unlock(&exchange->counters_lock);
}

void rdmatensor_exchange_fold(struct rdmatensor_exchange *exchange,
			      struct rdmatensor_counters *counters)
{
	mutex_lock(&exchange->counters_lock);
	list_del_init(&counters->item);
	rdmatensor_counters_sum(counters, &exchange->gone);
	mutex_unlock(&exchange->counters_lock);
}

void rdmatensor_exchange_sum(struct rdmatensor_exchange *exchange, struct rdmatensor_sums *sum)
{
	struct rdmatensor_counters *counters;

	mutex_lock(&exchange->counters_lock);
	rdmatensor_sums_add(sum, &exchange->gone);
	rdmatensor_counters_sum(&exchange->counters, sum);
	list_for_each_entry(counters, &exchange->live_counters, item)
		rdmatensor_counters_sum(counters, sum);
	mutex_unlock(&exchange->counters_lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_exchange_sum);
