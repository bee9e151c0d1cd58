/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Imported memory: another driver's, by its dma-buf. See memory.h for what a memory is.
 */
#ifndef RDMATENSOR_DMABUF_H
#define RDMATENSOR_DMABUF_H

#include <linux/types.h>

#ifndef CONFIG_DMA_SHARED_BUFFER
#error "rdmatensor needs CONFIG_DMA_SHARED_BUFFER: CONFIG_INFINIBAND_USER_ACCESS selects it"
#endif

struct dma_buf;
struct rdmatensor_memory;

/**
 * struct rdmatensor_import - which dma-buf, and how it is used
 * @buf: referenced by the caller; the memory takes a reference of its own
 * @bytes: its length, a multiple of PAGE_SIZE, not 0
 * @slice_shift: log2 of the bytes of a slice: a mapping begins near one at once
 * @write: it can be a destination
 * @software: the device works on pages, by the CPU, and has no DMA (ib_uses_virt_dma())
 * @stop: given up when true; set by another task, or NULL. It outlives the making of the first
 *        mapping
 */
struct rdmatensor_import {
	struct dma_buf *buf;
	u64 bytes;
	u8 slice_shift;
	bool write;
	bool software;
	const bool *stop;
};

/* Module load and unload; exit comes after the last memory has been freed. Return: 0, an errno */
int rdmatensor_dmabuf_init(void);
void rdmatensor_dmabuf_exit(void);

/**
 * rdmatensor_dmabuf_alloc - a memory of a dma-buf
 * @import: which, and how
 * @cause: out on error: a line that says why and what to do; empty for -EINTR and -ENODEV
 * @room: its length
 *
 * For a device in software its pages are used: it is pinned, and the exporter must have a mapping
 * of them for the CPU; both last as long as the memory. For another one it is attached and pinned
 * when it is first mapped for the device, and the memory is unreachable. May sleep, and wait for
 * the exporter: no lock may be held that a removal of the device waits for.
 *
 * Return: ERR_PTR(-EOPNOTSUPP): what the exporter refuses, or pages that it has not;
 * ERR_PTR(-ENOMEM); ERR_PTR(-EINTR): a signal; ERR_PTR(-ENODEV): @stop.
 */
struct rdmatensor_memory *rdmatensor_dmabuf_alloc(const struct rdmatensor_import *import,
						  char *cause, size_t room);

#endif /* RDMATENSOR_DMABUF_H */
