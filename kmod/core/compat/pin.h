/* SPDX-License-Identifier: GPL-2.0 */
/* What a pin of the process's memory does about copy-on-write and write-back */
#ifndef RDMATENSOR_COMPAT_PIN_H
#define RDMATENSOR_COMPAT_PIN_H

#include <linux/backing-dev.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/version.h>
#include "core/compat/have.h"

/*
 * Without the looks below wrong bytes would be served, or lost. No probe leaves one out alone:
 * below the release that does it, it is done here, and where a vendor has brought that to an older
 * kernel it is done twice, which costs time and nothing else.
 */

/*
 * Pins pages that are only read. What a private mapping only reads may be a page of its file, or
 * of zeroes, which the process's next write replaces: kernels from 6.2 on break this up first,
 * and until then only a pin for writing did. Where nothing is replaced that would fail, or have
 * a file system prepare a write: so the mapping is looked at, and no other one is touched. One
 * that changes meanwhile hurts nobody but its process.
 */
#if defined(RDMATENSOR_HAVE_PINS_THAT_SHARE) || LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
static inline int rdmatensor_pin_to_read(unsigned long addr, int nr, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM;
	struct vm_area_struct *vma;
	int ret = -EFAULT;

	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
	vma = find_vma(current->mm, addr);
	if (vma && vma->vm_start <= addr && vma->vm_flags & VM_READ) {
		nr = min_t(unsigned long, nr, (vma->vm_end - addr) >> PAGE_SHIFT);
		/* Huge pages that cannot be written to are not had by force, nor replaced as yet */
		if (is_cow_mapping(vma->vm_flags) &&
		    (vma->vm_flags & VM_WRITE || !is_vm_hugetlb_page(vma)))
			flags |= FOLL_FORCE | FOLL_WRITE;
		ret = 0;
	}
	mmap_read_unlock(current->mm);
	return ret ?: pin_user_pages_fast(addr, nr, flags, pages);
}
#else
static inline int rdmatensor_pin_to_read(unsigned long addr, int nr, struct page **pages)
{
	return pin_user_pages_fast(addr, nr, FOLL_LONGTERM, pages);
}
#endif

/*
 * A page of a file whose file system has to see each write, as it writes it back: who is pinned
 * for writing writes to it unseen. Kernels from 6.5 on do not pin it. The page's lock keeps the
 * file; who is killed while he waits for it needs no answer.
 */
#if defined(RDMATENSOR_HAVE_PIN_USER_PAGES_VMAS) || LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
static inline bool rdmatensor_written_back(struct page *page)
{
	struct address_space *mapping;
	bool ret;

	if (PageAnon(page))
		return false;
	if (lock_page_killable(page))
		return true;
	mapping = page_mapping(page);
	ret = mapping && mapping_can_writeback(mapping);
	unlock_page(page);
	return ret;
}
#else
static inline bool rdmatensor_written_back(struct page *page)
{
	return false;
}
#endif

#endif /* RDMATENSOR_COMPAT_PIN_H */
