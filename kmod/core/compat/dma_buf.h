/* SPDX-License-Identifier: GPL-2.0 */
/* Who takes an exporter's lock, and what udmabuf has mistaken */
#ifndef RDMATENSOR_COMPAT_DMA_BUF_H
#define RDMATENSOR_COMPAT_DMA_BUF_H

#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/version.h>
#include "core/compat/have.h"

/*
 * Until 6.2 an exporter takes the lock that it needs to map, and from then on the caller does. That
 * a kernel has dma_buf_vmap_unlocked() would not tell: 6.1.55 took
 * dma_buf_map_attachment_unlocked() without what exporters do in 6.2
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define rdmatensor_dma_buf_vmap dma_buf_vmap
#define rdmatensor_dma_buf_vunmap dma_buf_vunmap
#else
#define rdmatensor_dma_buf_vmap dma_buf_vmap_unlocked
#define rdmatensor_dma_buf_vunmap dma_buf_vunmap_unlocked
#endif

#ifdef RDMATENSOR_HAVE_IMPORT_NS_BY_SYMBOL
#define RDMATENSOR_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define RDMATENSOR_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * In 6.11 and 6.12 udmabuf maps the first page of a huge one in place of each. A page that is
 * part of a huge one is not to be trusted there. No header shows it. By its version, a kernel of
 * these with the mend goes without the huge pages of udmabuf; an older one, into which a vendor has
 * brought udmabuf as it was then, would not be told
 */
static inline bool rdmatensor_vmap_mistakes(const struct dma_buf *buf, struct page *page)
{
	return LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0) &&
	       LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0) &&
	       !strcmp(buf->exp_name, "udmabuf") && PageCompound(page);
}

#endif /* RDMATENSOR_COMPAT_DMA_BUF_H */
