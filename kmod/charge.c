// SPDX-License-Identifier: GPL-2.0
/*
 * Locked memory. Charged before pages are allocated, given back after they are free.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include "charge.h"

static int charge_user(struct user_struct *user, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long now = atomic_long_read(&user->locked_vm);

	do {
		if (pages > limit || (unsigned long)now > limit - pages)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &now, now + pages));
	return 0;
}

int rdmatensor_charge(struct rdmatensor_charge *charge, unsigned long pages)
{
	struct user_struct *user = NULL;
	int ret;

	if (!capable(CAP_IPC_LOCK)) {
		user = current_user();
		ret = charge_user(user, pages);
		if (ret)
			return ret;
		get_uid(user);
	}
	charge->user = user;
	charge->pages = pages;
	charge->mm = current->mm;
	if (charge->mm) {
		mmgrab(charge->mm);
		atomic64_add(pages, &charge->mm->pinned_vm);
	}
	return 0;
}

void rdmatensor_uncharge(struct rdmatensor_charge *charge)
{
	if (charge->user) {
		atomic_long_sub(charge->pages, &charge->user->locked_vm);
		free_uid(charge->user);
	}
	if (charge->mm) {
		atomic64_sub(charge->pages, &charge->mm->pinned_vm);
		mmdrop(charge->mm);
	}
	*charge = (struct rdmatensor_charge) {};
}
