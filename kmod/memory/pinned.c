// SPDX-License-Identifier: GPL-2.0
/*
 * Pinned pages: the process's own, in place.
 *
 * They are pinned for long (FOLL_LONGTERM), which takes them out of memory that the kernel
 * must be able to move or to take away, breaks what would be copied at the next write, and has
 * fork() copy them for the child at once. So what was pinned stays what it is whatever the
 * process does with its addresses: after munmap(), MADV_DONTNEED or the truncation of a file
 * the memory has the pages, and the process has others or none.
 *
 * A page that the process may not write is not written, by nobody: a memory is pinned for
 * writing or for reading, as a whole, and a mapping for a device has no more access than that
 * (rdmatensor_registration_begin()).
 *
 * Errors: each one has a line that names the page and what to do about it.
 */
#include <linux/backing-dev.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "core/compat/pin.h"
#include "core/fault.h"
#include "core/limits.h"
#include "memory/pages.h"
#include "memory/pinned.h"

/**
 * struct pinned - see above
 * @pages: the base
 * @addr: where they are in the process
 * @write: pinned for writing
 * @failed: address of the first page that could not be pinned
 */
struct pinned {
	struct rdmatensor_pages pages;
	unsigned long addr;
	bool write;
	unsigned long failed;
};

static struct pinned *to_pinned(struct rdmatensor_pages *pages)
{
	return container_of(pages, struct pinned, pages);
}

/* Devices in software, and copies, use the linear map. Return: pages before the first bad one */
static int pinned_usable(const struct pinned *pinned, struct page **got, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (PageHighMem(got[i]) || (pinned->write && rdmatensor_written_back(got[i])))
			break;
	return i;
}

/* Return: pages that were pinned, at least one; a negative errno */
static int pinned_pin(const struct pinned *pinned, unsigned long addr, u32 nr, struct page **got)
{
	int ret, usable;

	if (rdmatensor_should_fail())
		return -ENOMEM;
	ret = pinned->write ? pin_user_pages_fast(addr, nr, FOLL_LONGTERM | FOLL_WRITE, got) :
			      rdmatensor_pin_to_read(addr, nr, got);
	if (ret <= 0)
		return ret ?: -EFAULT;
	usable = pinned_usable(pinned, got, ret);
	unpin_user_pages(got + usable, ret - usable);
	/* Those before it are good: the next call begins with the bad one */
	return usable ?: -EOPNOTSUPP;
}

static int pinned_get(struct rdmatensor_pages *pages, u64 offset, struct page **got, u32 nr)
{
	struct pinned *pinned = to_pinned(pages);
	u32 done;
	int ret;

	for (done = 0; done < nr; done += ret) {
		unsigned long addr = pinned->addr + offset + ((unsigned long)done << PAGE_SHIFT);

		ret = fatal_signal_pending(current) ? -EINTR :
		      pinned_pin(pinned, addr, nr - done, got + done);
		if (ret < 0) {
			pinned->failed = addr;
			unpin_user_pages(got, done);
			return ret;
		}
		cond_resched();
	}
	return 0;
}

/* A device may have written to each of them, which the kernel has not seen */
static void pinned_put(struct rdmatensor_pages *pages, struct page **got, u32 nr)
{
	unpin_user_pages_dirty_lock(got, nr, to_pinned(pages)->write);
}

static const struct rdmatensor_pages_source pinned_source = {
	.get = pinned_get,
	.put = pinned_put,
};

static void pinned_free(struct rdmatensor_memory *memory)
{
	struct rdmatensor_pages *pages = rdmatensor_to_pages(memory);

	rdmatensor_pages_end(pages);
	kfree(to_pinned(pages));
}

static const struct rdmatensor_memory_ops pinned_ops = {
	.name = "process",
	.map = rdmatensor_pages_map,
	.unmap = rdmatensor_pages_unmap,
	.addr = rdmatensor_pages_addr,
	.free = pinned_free,
};

static bool pinned_beyond_file(const struct vm_area_struct *vma, unsigned long addr)
{
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start);
	const struct inode *inode = vma->vm_file ? file_inode(vma->vm_file) : NULL;

	return inode && S_ISREG(inode->i_mode) && offset >= (u64)i_size_read(inode);
}

/* As the kernel decides which files it does not pin for writing */
static bool pinned_file_sees_writes(const struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED) || !vma->vm_file)
		return false;
	return (vma->vm_ops && (vma->vm_ops->page_mkwrite || vma->vm_ops->pfn_mkwrite)) ||
	       mapping_can_writeback(vma->vm_file->f_mapping);
}

/* Why a page could not be pinned */
enum pinned_why {
	PINNED_HOLE, PINNED_DEVICE, PINNED_FORBIDDEN, PINNED_READ_ONLY, PINNED_BEYOND,
	PINNED_NO_HUGE, PINNED_SEES_WRITES, PINNED_NO_PAGE, PINNED_NO_MEMORY, PINNED_NOT_FOR_LONG,
};

static const struct {
	int error;
	const char *text;
} pinned_whys[] = {
	[PINNED_HOLE] = { -EFAULT,
		"nothing is mapped there: register memory that is mapped from end to end",
	},
	[PINNED_DEVICE] = { -EOPNOTSUPP,
		"a device's memory is mapped there, which has no pages to pin: import its dma-buf (POOL_IMPORT), or copy it into memory of the process",
	},
	[PINNED_FORBIDDEN] = { -EACCES,
		"the process may not use it: register memory that it can read",
	},
	[PINNED_READ_ONLY] = { -EACCES,
		"it is mapped read-only: map it writable, or register it with RDMATENSOR_REGISTER_READ_ONLY",
	},
	[PINNED_BEYOND] = { -EFAULT,
		"it is beyond its file's end: register less, or make the file longer",
	},
	[PINNED_NO_HUGE] = { -ENOMEM,
		"no huge page is left for it, or none that its cgroup may have: make more (sysctl vm.nr_hugepages)",
	},
	[PINNED_SEES_WRITES] = { -EOPNOTSUPP,
		"its file system must see each write: use memfd_create(), or memory that is not a file's",
	},
	[PINNED_NO_PAGE] = { -EFAULT,
		"no page can be had there, as in a guard area, in a file system that is full, or where memory has failed: register memory that the process can use",
	},
	[PINNED_NO_MEMORY] = { -ENOMEM,
		"no memory for it, or for a copy where it can stay: free some, or raise the limit of the memory cgroup",
	},
	[PINNED_NOT_FOR_LONG] = { -EOPNOTSUPP,
		"it is of a kind that cannot be pinned for long, as a DAX file or a device's memory: copy it into memory of the process",
	},
};

/* A fault that failed, by the mapping */
static enum pinned_why pinned_explain_fault(const struct pinned *pinned,
					    const struct vm_area_struct *vma)
{
	if (!vma || vma->vm_start > pinned->failed)
		return PINNED_HOLE;
	if (vma->vm_flags & (VM_IO | VM_PFNMAP))
		return PINNED_DEVICE;
	if (!(vma->vm_flags & (pinned->write ? VM_READ | VM_WRITE : VM_READ)))
		return PINNED_FORBIDDEN;
	if (pinned->write && !(vma->vm_flags & VM_WRITE))
		return PINNED_READ_ONLY;
	if (pinned_beyond_file(vma, pinned->failed))
		return PINNED_BEYOND;
	if (vma->vm_flags & VM_HUGETLB)
		return PINNED_NO_HUGE;
	if (pinned->write && pinned_file_sees_writes(vma))
		return PINNED_SEES_WRITES;
	return PINNED_NO_PAGE;
}

static enum pinned_why pinned_explain(const struct pinned *pinned,
				      const struct vm_area_struct *vma, int error)
{
	switch (error) {
	case -ENOMEM:
		return PINNED_NO_MEMORY;
	case -EFAULT:
		return pinned_explain_fault(pinned, vma);
	default:
		return pinned->write && vma && pinned_file_sees_writes(vma) ? PINNED_SEES_WRITES :
		       PINNED_NOT_FOR_LONG;
	}
}

/* Return: the errno for the process */
static int pinned_say(const struct pinned *pinned, int error, char *cause, size_t room)
{
	struct mm_struct *mm = current->mm;
	enum pinned_why why;

	cause[0] = '\0';
	if (error == -ENODEV)
		return error;
	if (fatal_signal_pending(current) || mmap_read_lock_killable(mm))
		return -EINTR;
	why = pinned_explain(pinned, find_vma(mm, pinned->failed), error);
	mmap_read_unlock(mm);
	snprintf(cause, room, "POOL_REGISTER: page at 0x%lx: %s", pinned->failed,
		 pinned_whys[why].text);
	return pinned_whys[why].error;
}

struct rdmatensor_memory *rdmatensor_pinned_alloc(const struct rdmatensor_pin *pin,
						  u8 slice_shift, const bool *stop,
						  char *cause, size_t room)
{
	struct pinned *pinned;
	int ret;

	pinned = kzalloc(sizeof(*pinned), RDMATENSOR_GFP_SPARING);
	if (!pinned) {
		snprintf(cause, room,
			 "POOL_REGISTER: no memory: free some, or raise the limit of the memory cgroup");
		return ERR_PTR(-ENOMEM);
	}
	pinned->pages.memory.ops = &pinned_ops;
	pinned->pages.memory.bytes = pin->bytes;
	pinned->pages.source = &pinned_source;
	pinned->addr = untagged_addr(pin->addr);
	pinned->write = pin->write;
	pinned->failed = pinned->addr;
	ret = rdmatensor_pages_begin(&pinned->pages, slice_shift, stop);
	if (ret) {
		ret = pinned_say(pinned, ret, cause, room);
		kfree(pinned);
		return ERR_PTR(ret);
	}
	return &pinned->pages.memory;
}
