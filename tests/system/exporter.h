/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exporters of dma-bufs that a machine without a GPU has: the system's heap, udmabuf, which makes
 * one of a memfd, and vgem, a driver of graphics without a card.
 */
#ifndef RDMATENSOR_TEST_EXPORTER_H
#define RDMATENSOR_TEST_EXPORTER_H

#include <stdint.h>

/**
 * struct exporter - who makes dma-bufs
 * @name: what the kernel calls it
 * @export: a dma-buf of @bytes, whole pages, open as @flags, O_RDWR or O_RDONLY, which udmabuf
 *          ignores. Its descriptor; -1: there is none
 * @on_6_1: a stock 6.1 has it
 * @on_built: kernels that the lab builds have it
 */
struct exporter {
	const char *name;
	int (*export)(uint64_t bytes, int flags);
	int on_6_1, on_built;
};

/* The next one that this kernel must have; NULL: the first one. NULL: that was the last one */
const struct exporter *exporter_next(const struct exporter *exporter);
/* By udmabuf, of a memfd with @flags more */
int export_memfd(uint64_t bytes, unsigned int flags);
int is_6_1(void);

#endif /* RDMATENSOR_TEST_EXPORTER_H */
