/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locked memory: who pays for pages that are not swapped.
 *
 * The user is charged, as for io_uring and iommufd, and not the address space: a process that
 * execs, or whose child allocates and exits, has a new address space with nothing charged to
 * it, and the memory lives on in the descriptor.
 */
#ifndef RDMATENSOR_CHARGE_H
#define RDMATENSOR_CHARGE_H

#include <linux/list.h>
#include <linux/types.h>

struct cred;
struct mm_struct;
struct user_struct;

/**
 * struct rdmatensor_charge - what was charged, embedded by the owner of the pages
 * @cred: whose user was charged, referenced; NULL: nobody, as the caller had CAP_IPC_LOCK.
 *        free_uid(), which would put the user alone, is not exported before 6.2 and 6.1.184. The
 *        credentials keep the caller's keyrings besides, for as long as its pages are charged
 * @mm: whose VmPin shows the pages, grabbed, or NULL. It bounds nothing here, but others compare it
 *      with the limit: verbs' registrations, and so MPI's
 * @pages: number of pages; 0: nothing is charged
 * @ending: in the list of those whose pages are being freed
 * @payer: the user of @cred, also after that was put; only to compare, while the charge is in that
 *         list; NULL: it is not
 */
struct rdmatensor_charge {
	const struct cred *cred;
	struct mm_struct *mm;
	unsigned long pages;
	struct list_head ending;
	const struct user_struct *payer;
};

/**
 * rdmatensor_charge - charge pages to the caller
 * @charge: filled
 * @pages: number of pages
 *
 * The caller's RLIMIT_MEMLOCK bounds what its user has charged in all, here and by others
 * that charge users. With CAP_IPC_LOCK nothing is charged, so that what an administrator
 * has pinned takes nothing away from processes of the same user that are bounded.
 *
 * At the limit, charges of the same user that end are waited for, as they count until their
 * pages are free, unless @pages are more than the limit in any case. May sleep.
 *
 * Return: 0; -ENOMEM: the limit; -EINTR: killed while it waited.
 */
int rdmatensor_charge(struct rdmatensor_charge *charge, unsigned long pages);
/* Whether that many would fit now, for the caller; what others do meanwhile may change it */
bool rdmatensor_charge_has_room(unsigned long pages);
/* The pages are being freed, and rdmatensor_uncharge() is to come soon. Any context; once */
void rdmatensor_charge_ends(struct rdmatensor_charge *charge);
/* The pages are free. Any context; idempotent */
void rdmatensor_uncharge(struct rdmatensor_charge *charge);

#endif /* RDMATENSOR_CHARGE_H */
