/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kernels 6.1 to 6.12 call differently.
 */
#ifndef RDMATENSOR_COMPAT_H
#define RDMATENSOR_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef MAX_PAGE_ORDER
/* MAX_ORDER was exclusive until 6.4; one too few does no harm */
#define MAX_PAGE_ORDER (MAX_ORDER - 1)
#endif

#ifndef GENL_MCAST_CAP_NET_ADMIN
/* Until 6.7, and 6.1.69, the flag of commands was that of groups */
#define GENL_MCAST_CAP_NET_ADMIN GENL_UNS_ADMIN_PERM
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define rdmatensor_dump_attrs(_cb) (genl_dumpit_info(_cb)->attrs)
#else
#define rdmatensor_dump_attrs(_cb) (genl_dumpit_info(_cb)->info.attrs)
#endif

#endif /* RDMATENSOR_COMPAT_H */
