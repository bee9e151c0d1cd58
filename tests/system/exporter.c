// SPDX-License-Identifier: GPL-2.0
/*
 * Exporters of dma-bufs: see exporter.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "exporter.h"

#define PAGE 4096u

/* Of the kernel's drm.h and drm_mode.h, which a build machine need not have */
struct drm_dumb {
	__u32 height, width, bpp, flags, handle, pitch;
	__u64 size;
};

struct drm_prime {
	__u32 handle, flags;
	__s32 fd;
};

#define DRM_CREATE_DUMB _IOWR('d', 0xb2, struct drm_dumb)
#define DRM_PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime)

static int export_heap(uint64_t bytes, int flags)
{
	struct dma_heap_allocation_data data = {
		.len = bytes, .fd_flags = (__u32)flags | O_CLOEXEC,
	};
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), ret;

	ret = heap < 0 ? -1 : ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data);
	if (heap >= 0)
		close(heap);
	return ret ? -1 : (int)data.fd;
}

int export_memfd(uint64_t bytes, unsigned int flags)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memfd, fd = -1;

	memfd = memfd_create("rdmatensor", MFD_ALLOW_SEALING | MFD_CLOEXEC | flags);
	create.memfd = (__u32)memfd;
	if (device >= 0 && memfd >= 0 && !ftruncate(memfd, (off_t)bytes) &&
	    !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(device, UDMABUF_CREATE, &create);
	if (memfd >= 0)
		close(memfd);
	if (device >= 0)
		close(device);
	return fd;
}

static int export_udmabuf(uint64_t bytes, int flags)
{
	(void)flags;
	return export_memfd(bytes, 0);
}

static int export_vgem(uint64_t bytes, int flags)
{
	struct drm_dumb create = { .height = (__u32)(bytes / PAGE), .width = PAGE / 4, .bpp = 32 };
	struct drm_prime prime = { .flags = O_CLOEXEC | (__u32)flags, .fd = -1 };
	int card = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);

	if (card < 0)
		return -1;
	if (!ioctl(card, DRM_CREATE_DUMB, &create)) {
		prime.handle = create.handle;
		if (create.size != bytes || ioctl(card, DRM_PRIME_HANDLE_TO_FD, &prime))
			prime.fd = -1;
	}
	close(card);
	return prime.fd;
}

/* What must be there, so that none is left out unseen: 6.1 has one, kernels of the lab two */
static const struct exporter exporters[] = {
	{ "system", export_heap, 0, 1 },
	{ "udmabuf", export_udmabuf, 0, 1 },
	{ "vgem", export_vgem, 1, 0 },
};

#define NR_EXPORTERS (sizeof(exporters) / sizeof(exporters[0]))

int is_6_1(void)
{
	struct utsname name;

	return !uname(&name) && !strncmp(name.release, "6.1.", 4);
}

static int is_here(const struct exporter *exporter)
{
	const char *kernel = getenv("LAB_KERNEL");

	if (kernel && (*kernel < '0' || *kernel > '9'))
		return exporter->on_built;
	return !is_6_1() || exporter->on_6_1;
}

const struct exporter *exporter_next(const struct exporter *exporter)
{
	exporter = exporter ? exporter + 1 : exporters;
	while (exporter < exporters + NR_EXPORTERS && !is_here(exporter))
		exporter++;
	return exporter < exporters + NR_EXPORTERS ? exporter : NULL;
}
