/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RDMA cgroups: who pays for queue pairs and memory regions (rdma.max, hca_object).
 *
 * The core charges what user-space verbs make, and nothing that a module makes. Here it is the
 * cgroup of the task that calls: what a process makes by START, CONNECT, TABLE_OPEN, or by making
 * or exporting memory. A kernel thread cannot pay: what it makes is owed, and paid by a process
 * that settles it. What a peer opens is settled by nobody; START's max_channels bounds it.
 */
#ifndef RDMATENSOR_QUOTA_H
#define RDMATENSOR_QUOTA_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct ib_device;

/**
 * struct rdmatensor_quota - what was charged, embedded by who owns what is paid for
 * @lock: guards the others
 * @payers: one for each call that charged, with the cgroup that pays
 * @owed: queue pairs and memory regions that nobody pays for yet
 */
struct rdmatensor_quota {
	spinlock_t lock;
	struct list_head payers;
	u32 owed;
};

static inline void rdmatensor_quota_init(struct rdmatensor_quota *quota)
{
	spin_lock_init(&quota->lock);
	INIT_LIST_HEAD(&quota->payers);
	quota->owed = 0;
}

/* Any context; what is charged or owed meanwhile is not in it */
static inline u32 rdmatensor_quota_owed(const struct rdmatensor_quota *quota)
{
	return READ_ONCE(quota->owed);
}

#ifdef CONFIG_CGROUP_RDMA
/**
 * rdmatensor_quota_charge - charge queue pairs or memory regions to the caller's cgroup
 * @quota: initialised; keeps what is charged, beside what it has already
 * @ibdev: their device, which is not gone before they are uncharged
 * @nr: number of them, all of which are charged, or none
 *
 * May sleep. Any number of callers at a time. Return: 0: also in a kernel thread, which owes
 * them; -EDQUOT: rdma.max of the cgroup or of one above it; -ENOMEM.
 */
int rdmatensor_quota_charge(struct rdmatensor_quota *quota, struct ib_device *ibdev, u32 nr);
/*
 * What is owed, charged to the caller; by a kernel thread nothing. Errors as above: it is still
 * owed then, and has been all the time. One caller at a time
 */
int rdmatensor_quota_settle(struct rdmatensor_quota *quota, struct ib_device *ibdev);
/* @nr of what is owed are gone, before anybody has paid for them */
void rdmatensor_quota_forgive(struct rdmatensor_quota *quota, u32 nr);
/* All of it, when what was paid for is gone. Idempotent. May sleep */
void rdmatensor_quota_uncharge(struct rdmatensor_quota *quota);
#else
static inline int rdmatensor_quota_charge(struct rdmatensor_quota *quota,
					  struct ib_device *ibdev, u32 nr)
{
	return 0;
}

static inline int rdmatensor_quota_settle(struct rdmatensor_quota *quota,
					  struct ib_device *ibdev)
{
	return 0;
}

static inline void rdmatensor_quota_forgive(struct rdmatensor_quota *quota, u32 nr)
{
}

static inline void rdmatensor_quota_uncharge(struct rdmatensor_quota *quota)
{
}
#endif

#endif /* RDMATENSOR_QUOTA_H */
