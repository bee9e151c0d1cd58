/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kernels 6.1 to 6.12 call differently.
 */
#ifndef RDMATENSOR_COMPAT_H
#define RDMATENSOR_COMPAT_H

#include <linux/backing-dev.h>
#include <linux/dma-buf.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/version.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/*
 * Pins pages that are only read. What a private mapping only reads may be a page of its file, or
 * of zeroes, which the process's next write replaces: kernels from 6.2 on break this up first,
 * and until then only a pin for writing did. Where nothing is replaced that would fail, or have
 * a file system prepare a write: so the mapping is looked at, and no other one is touched. One
 * that changes meanwhile hurts nobody but its process.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
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
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
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

/* Until 6.2 an exporter takes the lock that it needs to map, and from then on the caller does */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define rdmatensor_dma_buf_vmap dma_buf_vmap
#define rdmatensor_dma_buf_vunmap dma_buf_vunmap
#else
#define rdmatensor_dma_buf_vmap dma_buf_vmap_unlocked
#define rdmatensor_dma_buf_vunmap dma_buf_vunmap_unlocked
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define RDMATENSOR_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define RDMATENSOR_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * In 6.11 and 6.12 udmabuf maps the first page of a huge one in place of each. A page that is
 * part of a huge one is not to be trusted there
 */
static inline bool rdmatensor_vmap_mistakes(const struct dma_buf *buf, struct page *page)
{
	return LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0) &&
	       LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0) &&
	       !strcmp(buf->exp_name, "udmabuf") && PageCompound(page);
}

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
