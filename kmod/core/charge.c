// SPDX-License-Identifier: GPL-2.0
/*
 * Locked memory. Charged before pages are allocated, uncharged after they are free.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include "core/charge.h"

/*
 * Charges whose pages are being freed: they are uncharged soon. Taken in any context, so with
 * interrupts off.
 *
 * @charge_lock guards the others
 * @charge_ending: these charges
 * @charge_nr_ended: how many have left the list
 * @charge_ended: one has
 */
static DEFINE_SPINLOCK(charge_lock);
static LIST_HEAD(charge_ending);
static unsigned long charge_nr_ended;
static DECLARE_WAIT_QUEUE_HEAD(charge_ended);

static unsigned long charge_limit(void)
{
	return rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

static bool charge_fits_beside(unsigned long now, unsigned long pages)
{
	unsigned long limit = charge_limit();

	return pages <= limit && now <= limit - pages;
}

/* False: not even if nothing else is charged */
static bool charge_fits(unsigned long pages)
{
	return charge_fits_beside(0, pages);
}

static int charge_user(struct user_struct *user, unsigned long pages)
{
	long now = atomic_long_read(&user->locked_vm);

	do {
		if (!charge_fits_beside(now, pages))
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &now, now + pages));
	return 0;
}

static int charge_now(struct rdmatensor_charge *charge, unsigned long pages)
{
	const struct cred *cred = NULL;
	int ret;

	if (!capable(CAP_IPC_LOCK)) {
		ret = charge_user(current_user(), pages);
		if (ret)
			return ret;
		cred = get_current_cred();
	}
	*charge = (struct rdmatensor_charge) {
		.cred = cred,
		.mm = current->mm,
		.pages = pages,
	};
	if (charge->mm) {
		mmgrab(charge->mm);
		atomic64_add(pages, &charge->mm->pinned_vm);
	}
	return 0;
}

/* Whether charges of @user end; @nr_ended: of anybody, before that */
static bool charge_is_ending(const struct user_struct *user, unsigned long *nr_ended)
{
	const struct rdmatensor_charge *charge;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&charge_lock, flags);
	*nr_ended = charge_nr_ended;
	list_for_each_entry(charge, &charge_ending, ending) {
		if (charge->payer != user)
			continue;
		found = true;
		break;
	}
	spin_unlock_irqrestore(&charge_lock, flags);
	return found;
}

int rdmatensor_charge(struct rdmatensor_charge *charge, unsigned long pages)
{
	unsigned long nr_ended;
	bool ending;
	int ret;

	for (;;) {
		/* Most fit at once, however many charges of other users are ending */
		ret = charge_now(charge, pages);
		if (!ret || !charge_fits(pages))
			return ret;
		/* In this order: pages that are freed in between already count as free */
		ending = charge_is_ending(current_user(), &nr_ended);
		ret = charge_now(charge, pages);
		if (!ret || !ending)
			return ret;
		if (wait_event_killable(charge_ended, READ_ONCE(charge_nr_ended) != nr_ended))
			return -EINTR;
	}
}

bool rdmatensor_charge_has_room(unsigned long pages)
{
	return capable(CAP_IPC_LOCK) ||
	       charge_fits_beside(atomic_long_read(&current_user()->locked_vm), pages);
}

void rdmatensor_charge_ends(struct rdmatensor_charge *charge)
{
	unsigned long flags;

	/* Without a user there is nothing to wait for */
	if (!charge->cred)
		return;
	spin_lock_irqsave(&charge_lock, flags);
	charge->payer = charge->cred->user;
	list_add_tail(&charge->ending, &charge_ending);
	spin_unlock_irqrestore(&charge_lock, flags);
}

/* Uncharged before it leaves the list: a reader that misses it finds the pages free */
static void charge_leave(struct rdmatensor_charge *charge)
{
	unsigned long flags;

	if (!charge->payer)
		return;
	spin_lock_irqsave(&charge_lock, flags);
	list_del(&charge->ending);
	WRITE_ONCE(charge_nr_ended, charge_nr_ended + 1);
	spin_unlock_irqrestore(&charge_lock, flags);
	wake_up_all(&charge_ended);
}

void rdmatensor_uncharge(struct rdmatensor_charge *charge)
{
	if (charge->cred) {
		atomic_long_sub(charge->pages, &charge->cred->user->locked_vm);
		put_cred(charge->cred);
	}
	if (charge->mm) {
		atomic64_sub(charge->pages, &charge->mm->pinned_vm);
		mmdrop(charge->mm);
	}
	charge_leave(charge);
	*charge = (struct rdmatensor_charge) {};
}
