/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pinned pages: memory that the process has already. See memory.h for what a memory is.
 */
#ifndef RDMATENSOR_PINNED_H
#define RDMATENSOR_PINNED_H

#include <linux/types.h>

struct rdmatensor_memory;

/**
 * struct rdmatensor_pin - which pages of the calling process
 * @addr: address of the first one, a multiple of PAGE_SIZE
 * @bytes: a multiple of PAGE_SIZE, not 0; @addr + @bytes does not wrap
 * @write: they can be destinations; the process must be able to write to them
 */
struct rdmatensor_pin {
	unsigned long addr;
	u64 bytes;
	bool write;
};

/**
 * rdmatensor_pinned_alloc - pin pages of the calling process
 * @pin: which
 * @slice_shift: as for rdmatensor_kernel_pages_alloc()
 * @stop: given up when true; set by another task, or NULL
 * @cause: out on error: a line that says which page, why, and what to do; empty for -EINTR and
 *         -ENODEV
 * @room: its length
 *
 * No lock may be held that a fault or mmap() could wait for: a page may be long in coming, from
 * a file or from user space. They are charged to nobody here, but for what the process's faults
 * charge its memory cgroup.
 *
 * Return: ERR_PTR(-EFAULT): no page is there; ERR_PTR(-EACCES): the process may not read or
 * write it; ERR_PTR(-EOPNOTSUPP): a device's memory, a DAX file, or a file that may not be
 * written behind its file system's back; ERR_PTR(-ENOMEM); ERR_PTR(-EINTR): the task is being
 * killed; ERR_PTR(-ENODEV): @stop.
 */
struct rdmatensor_memory *rdmatensor_pinned_alloc(const struct rdmatensor_pin *pin,
						  u8 slice_shift, const bool *stop,
						  char *cause, size_t room);

#endif /* RDMATENSOR_PINNED_H */
