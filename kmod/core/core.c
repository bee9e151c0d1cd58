// SPDX-License-Identifier: GPL-2.0
/*
 * The core. It owns ring, tables and workqueue, and nothing that is in them: each operation,
 * publication and channel holds a reference, and rdmatensor_core_destroy() returns when the
 * last one is dropped.
 */
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/core.h"

int rdmatensor_core_init(struct rdmatensor_core *core, u32 ring_entries,
			 wait_queue_head_t *poll_wait)
{
	int ret;

	memset(core, 0, sizeof(*core));
	refcount_set(&core->users, 1);
	init_completion(&core->idle);
	INIT_LIST_HEAD(&core->live_counters);
	mutex_init(&core->counters_lock);
	spin_lock_init(&core->operations_lock);
	core->operations = RB_ROOT;
	rdmatensor_texts_init(&core->texts);
	xa_init_flags(&core->shares, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH |
		      XA_FLAGS_ACCOUNT);

	ret = rdmatensor_ring_init(&core->ring, ring_entries, poll_wait);
	if (ret)
		return ret;

	ret = rdmatensor_counters_init(&core->counters);
	if (ret)
		goto out_destroy_ring;

	core->rdv = rdmatensor_rendezvous_alloc();
	if (IS_ERR_OR_NULL(core->rdv)) {
		ret = -ENOMEM;
		goto out_destroy_counters;
	}

	core->wq = alloc_workqueue("rdmatensor", WQ_UNBOUND, 0);
	if (!core->wq) {
		ret = -ENOMEM;
		goto out_free_rdv;
	}
	return 0;

out_free_rdv:
	rdmatensor_rendezvous_free(core->rdv);
out_destroy_counters:
	rdmatensor_counters_destroy(&core->counters);
out_destroy_ring:
	rdmatensor_ring_destroy(&core->ring);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_core_init);

void rdmatensor_core_destroy(struct rdmatensor_core *core)
{
	rdmatensor_core_put(core);
	wait_for_completion(&core->idle);

	destroy_workqueue(core->wq);
	rdmatensor_rendezvous_free(core->rdv);
	rdmatensor_texts_destroy(&core->texts);
	WARN_ON_ONCE(!xa_empty(&core->shares));
	rdmatensor_counters_destroy(&core->counters);
	rdmatensor_ring_destroy(&core->ring);
	mutex_destroy(&core->counters_lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_core_destroy);

void rdmatensor_core_adopt(struct rdmatensor_core *core,
			   struct rdmatensor_counters *counters)
{
	mutex_lock(&core->counters_lock);
	list_add_tail(&counters->item, &core->live_counters);
	mutex_unlock(&core->counters_lock);
}

void rdmatensor_core_fold(struct rdmatensor_core *core,
			  struct rdmatensor_counters *counters)
{
	mutex_lock(&core->counters_lock);
	list_del_init(&counters->item);
	rdmatensor_counters_sum(counters, &core->gone);
	mutex_unlock(&core->counters_lock);
}

void rdmatensor_core_sum(struct rdmatensor_core *core, struct rdmatensor_sums *sum)
{
	struct rdmatensor_counters *counters;

	mutex_lock(&core->counters_lock);
	rdmatensor_sums_add(sum, &core->gone);
	rdmatensor_counters_sum(&core->counters, sum);
	list_for_each_entry(counters, &core->live_counters, item)
		rdmatensor_counters_sum(counters, sum);
	mutex_unlock(&core->counters_lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_core_sum);
