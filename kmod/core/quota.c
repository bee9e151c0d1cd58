// SPDX-License-Identifier: GPL-2.0
/*
 * Charges of RDMA cgroups.
 *
 * The kernel charges one object at a time, and tells which cgroup has paid, to which it must be
 * returned. A task can be moved to another cgroup at any time, so each run of charges that one
 * cgroup has paid is an entry of its own, held until it is uncharged. What is owed has no entry.
 */
#include <linux/cgroup_rdma.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "core/quota.h"

/**
 * struct quota_payer - a cgroup, and what it has paid
 * @item: in the quota's list
 * @cg: the cgroup, which each charge holds
 * @ibdev: for which device
 * @nr: how many objects
 */
struct quota_payer {
	struct list_head item;
	struct rdma_cgroup *cg;
	struct ib_device *ibdev;
	u32 nr;
};

static void quota_uncharge(struct list_head *payers)
{
	struct quota_payer *payer, *next;

	list_for_each_entry_safe(payer, next, payers, item) {
		for (; payer->nr; payer->nr--)
			rdmacg_uncharge(payer->cg, &payer->ibdev->cg_device,
					RDMACG_RESOURCE_HCA_OBJECT);
		kfree(payer);
		cond_resched();
	}
}

/* Return: what was owed, which is not any more */
static u32 quota_take_all(struct rdmatensor_quota *quota, struct list_head *payers)
{
	u32 owed;

	spin_lock(&quota->lock);
	list_splice_init(&quota->payers, payers);
	owed = quota->owed;
	quota->owed = 0;
	spin_unlock(&quota->lock);
	return owed;
}

static void quota_give(struct rdmatensor_quota *quota, struct list_head *payers, u32 owed)
{
	spin_lock(&quota->lock);
	list_splice(payers, &quota->payers);
	quota->owed += owed;
	spin_unlock(&quota->lock);
}

/* One object; @payers ends with who has paid for it */
static int quota_charge_one(struct list_head *payers, struct ib_device *ibdev)
{
	struct quota_payer *payer = NULL;
	struct rdma_cgroup *cg;
	int ret;

	ret = rdmatensor_fault(-EAGAIN) ?:
	      rdmacg_try_charge(&cg, &ibdev->cg_device, RDMACG_RESOURCE_HCA_OBJECT);
	if (ret)
		return ret == -EAGAIN ? -EDQUOT : ret;
	if (!list_empty(payers))
		payer = list_last_entry(payers, struct quota_payer, item);
	if (!payer || payer->cg != cg) {
		payer = kmalloc(sizeof(*payer), RDMATENSOR_GFP_SPARING);
		if (!payer) {
			rdmacg_uncharge(cg, &ibdev->cg_device, RDMACG_RESOURCE_HCA_OBJECT);
			return -ENOMEM;
		}
		payer->cg = cg;
		payer->ibdev = ibdev;
		payer->nr = 0;
		list_add_tail(&payer->item, payers);
	}
	payer->nr++;
	return 0;
}

static int quota_charge(struct rdmatensor_quota *quota, struct ib_device *ibdev, u32 nr)
{
	LIST_HEAD(payers);
	int ret = 0;

	for (; !ret && nr; nr--) {
		ret = quota_charge_one(&payers, ibdev);
		cond_resched();
	}
	if (ret)
		quota_uncharge(&payers);
	else
		quota_give(quota, &payers, 0);
	return ret;
}

int rdmatensor_quota_charge(struct rdmatensor_quota *quota, struct ib_device *ibdev, u32 nr)
{
	LIST_HEAD(none);

	might_sleep();
	if (!(current->flags & PF_KTHREAD))
		return quota_charge(quota, ibdev, nr);
	quota_give(quota, &none, nr);
	return 0;
}

int rdmatensor_quota_settle(struct rdmatensor_quota *quota, struct ib_device *ibdev)
{
	u32 owed = rdmatensor_quota_owed(quota);
	int ret;

	might_sleep();
	if (!owed || current->flags & PF_KTHREAD)
		return 0;
	ret = quota_charge(quota, ibdev, owed);
	rdmatensor_hold("quota_settle");
	if (!ret)
		rdmatensor_quota_forgive(quota, owed);
	return ret;
}

void rdmatensor_quota_forgive(struct rdmatensor_quota *quota, u32 nr)
{
	spin_lock(&quota->lock);
	quota->owed -= nr;
	spin_unlock(&quota->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_quota_forgive);

void rdmatensor_quota_uncharge(struct rdmatensor_quota *quota)
{
	LIST_HEAD(payers);

	might_sleep();
	quota_take_all(quota, &payers);
	quota_uncharge(&payers);
}
