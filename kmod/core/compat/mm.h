/* SPDX-License-Identifier: GPL-2.0 */
/* Mappings and orders of pages */
#ifndef RDMATENSOR_COMPAT_MM_H
#define RDMATENSOR_COMPAT_MM_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include "core/compat/have.h"

#ifndef RDMATENSOR_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef MAX_PAGE_ORDER
/* MAX_ORDER was exclusive until 6.4; one too few does no harm */
#define MAX_PAGE_ORDER (MAX_ORDER - 1)
#endif

#endif /* RDMATENSOR_COMPAT_MM_H */
