// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A pool with one region over all of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "message.h"
#include "params.h"
#include "store.h"

/* KiB of locked memory for the pool and what the context has already */
static uint64_t wanted_kib(struct rdmatensor *rt, uint64_t bytes)
{
	struct rdmatensor_query query;

	if (!rdmatensor_query(rt, &query))
		bytes += 4096 + (uint64_t)query.ring_entries * sizeof(struct rdmatensor_cqe);
	return bytes / 1024 + 8;
}

/* EXIT_FAILED; @cause: room for the message, or NULL: it is printed */
__attribute__((format(printf, 3, 4)))
static int store_failed(char *cause, size_t len, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cause ? cause : text, cause ? len : sizeof(text), fmt, args);
	va_end(args);
	return cause ? EXIT_FAILED : failed("%s", text);
}

static int create_failed(struct rdmatensor *rt, uint64_t bytes, int err, char *cause, size_t len)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t kib = wanted_kib(rt, bytes);

	if (param_memlock())
		getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -EUSERS)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: the context has max_pools pools already: raise that: --param max_pools=N",
				    bytes);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur / 1024 < kib)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: RLIMIT_MEMLOCK is %" PRIu64 ", and pool and completion ring need more: raise it with `ulimit -l %" PRIu64 "`, or higher if this user has other pools",
			      bytes, (uint64_t)limit.rlim_cur, kib);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: out of memory, or other pools and rings of this user leave less of RLIMIT_MEMLOCK, which is %" PRIu64 ": end their processes, or raise it with `ulimit -l`",
			      bytes, (uint64_t)limit.rlim_cur);
	if (err == -ENOMEM)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: out of memory: raise the limit of the memory cgroup (memory.max) or give the machine more, or take fewer tensors at once",
			      bytes);
	if (err == -EDQUOT)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: " STORE_NO_REGIONS,
				    bytes);
	if (err == -EOVERFLOW)
		return store_failed(cause, len, "pool of %" PRIu64 " bytes: the device cannot register that much: take fewer tensors at once",
			      bytes);
	return store_failed(cause, len, "pool of %" PRIu64 " bytes: %s", bytes, strerror(-err));
}

static const char *const store_kinds[] = {
	[STORE_KERNEL] = "kernel",
	[STORE_ANON] = "anon",
	[STORE_MEMFD] = "memfd",
	[STORE_HUGE] = "huge",
	[STORE_DMABUF] = "dmabuf",
	[STORE_FILE] = "file",
};

int store_take_memory(const char *text, bool file, enum store_memory *memory)
{
	enum store_memory kind;

	for (kind = STORE_KERNEL; kind <= (file ? STORE_FILE : STORE_DMABUF); kind++)
		if (!strcmp(text, store_kinds[kind])) {
			*memory = kind;
			return EXIT_OK;
		}
	return misused("--memory %s is refused: give kernel, anon, memfd, huge%s", text,
		       file ? ", dmabuf or file" : " or dmabuf");
}

/* Of a file that has no name. False: errno says why */
static bool map_memfd(unsigned int flags, uint64_t bytes, void **at)
{
	int fd = memfd_create("rdmatensor", flags), err;

	*at = MAP_FAILED;
	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		*at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = errno;
	if (fd >= 0)
		close(fd);
	errno = err;
	return *at != MAP_FAILED;
}

/* Bytes of a huge page of the default size; 0: the kernel has none */
static uint64_t huge_page(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	uint64_t kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Hugepagesize: %" SCNu64, &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

static int map_memory(enum store_memory memory, uint64_t *bytes, void **at)
{
	uint64_t page;

	switch (memory) {
	case STORE_HUGE:
		page = huge_page();
		if (!page)
			return failed("huge pages: this kernel has none: take other memory");
		*bytes = align_up(*bytes, page);
		if (map_memfd(MFD_CLOEXEC | MFD_HUGETLB, *bytes, at))
			return EXIT_OK;
		return failed("%" PRIu64 " huge pages of %" PRIu64 " KiB: %s: fewer are free (`grep HugePages /proc/meminfo`): raise vm.nr_hugepages, which counts those in use, too",
			      *bytes / page, page / 1024, strerror(errno));
	case STORE_MEMFD:
		if (map_memfd(MFD_CLOEXEC, *bytes, at))
			return EXIT_OK;
		break;
	default:
		*at = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		if (*at != MAP_FAILED)
			return EXIT_OK;
	}
	return failed("%" PRIu64 " bytes of memory: %s", *bytes, strerror(errno));
}

static int store_register(struct rdmatensor *rt, enum store_memory memory, uint64_t bytes,
			  enum rdmatensor_pool_peers peers, struct store *store)
{
	char cause[256];
	int err;

	err = map_memory(memory, &bytes, &store->mapped);
	if (err)
		return err;
	err = rdmatensor_pool_register(rt, store->mapped, bytes, peers, 0, &store->pool, cause,
				       sizeof(cause));
	if (!err)
		return EXIT_OK;
	munmap(store->mapped, bytes);
	return failed("%s", cause);
}

#define HEAP "/dev/dma_heap/system"

/* A dma-buf of the kernel's own pages. -1, with a message: there is none */
static int export_heap(uint64_t bytes)
{
	struct dma_heap_allocation_data data = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open(HEAP, O_RDWR | O_CLOEXEC), err;

	if (heap < 0) {
		failed(errno == EACCES ?
		       "%s: %s: run as root, or let a udev rule give it to you; or take other memory" :
		       "%s: %s: boot a kernel with CONFIG_DMABUF_HEAPS_SYSTEM, or take other memory",
		       HEAP, strerror(errno));
		return -1;
	}
	err = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? errno : 0;
	close(heap);
	if (!err)
		return (int)data.fd;
	failed("%" PRIu64 " bytes of %s: %s", bytes, HEAP, strerror(err));
	return -1;
}

static int store_import(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
			struct store *store)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	int fd = export_heap(bytes), err = EXIT_OK;
	char cause[256];

	if (fd < 0)
		return EXIT_FAILED;
	store->mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* The CPU uses it until the end, as the kernel does */
	if (store->mapped == MAP_FAILED || ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		err = failed("%" PRIu64 " bytes of a dma-buf: %s", bytes, strerror(errno));
	else if (rdmatensor_pool_import(rt, fd, peers, 0, &store->pool, NULL, cause,
					sizeof(cause))) {
		munmap(store->mapped, bytes);
		err = failed("%s", cause);
	}
	close(fd);
	if (!err)
		store->pool.base = store->mapped;
	return err;
}

int store_register_file(struct rdmatensor *rt, int fd, uint64_t bytes, struct store *store)
{
	uint64_t all = align_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
	char cause[256];

	store->offset = 0;
	store->mapped = mmap(NULL, all, PROT_READ, MAP_SHARED, fd, 0);
	if (store->mapped == MAP_FAILED)
		return failed("%" PRIu64 " bytes of the file: %s", all, strerror(errno));
	if (!rdmatensor_pool_register(rt, store->mapped, all, RDMATENSOR_POOL_PEERS_NONE,
				      RDMATENSOR_REGISTER_READ_ONLY, &store->pool, cause,
				      sizeof(cause)))
		return EXIT_OK;
	munmap(store->mapped, all);
	return failed("%s", cause);
}

int store_create_of(struct rdmatensor *rt, enum store_memory memory, uint64_t nr, uint64_t bytes,
		    enum rdmatensor_pool_peers peers, struct store *store)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all;

	if (__builtin_mul_overflow(nr, bytes, &all) || align_up(all, page) == UINT64_MAX)
		return failed("pool of %" PRIu64 " times %" PRIu64 " bytes: the product does not fit into 64 bits: take fewer, or shorter ones",
			      nr, bytes);
	all = align_up(all, page);
	store->mapped = NULL;
	store->offset = 0;
	switch (memory) {
	case STORE_KERNEL:
		return store_create(rt, all, peers, store);
	case STORE_DMABUF:
		return store_import(rt, all, peers, store);
	default:
		return store_register(rt, memory, all, peers, store);
	}
}

int store_create_array(struct rdmatensor *rt, uint64_t nr, uint64_t bytes,
		       enum rdmatensor_pool_peers peers, struct store *store)
{
	return store_create_of(rt, STORE_KERNEL, nr, bytes, peers, store);
}

int store_destroy(struct rdmatensor *rt, struct store *store)
{
	uint64_t bytes = store->pool.bytes;

	if (rdmatensor_pool_destroy(rt, &store->pool))
		return failed("pool of %" PRIu64 " bytes: it is still in use", bytes);
	if (store->mapped)
		munmap(store->mapped, bytes);
	store->mapped = NULL;
	return EXIT_OK;
}

int store_create(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		 struct store *store)
{
	return store_create_cause(rt, bytes, peers, store, NULL, 0);
}

int store_create_cause(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		       struct store *store, char *cause, size_t len)
{
	int err;

	store->mapped = NULL;
	err = rdmatensor_pool_create_peers(rt, bytes, peers, &store->pool);
	if (err)
		return create_failed(rt, bytes, err, cause, len);
	err = rdmatensor_pool_alloc(rt, &store->pool, bytes, &store->offset);
	if (!err)
		return EXIT_OK;
	rdmatensor_pool_destroy(rt, &store->pool);
	return store_failed(cause, len, "region of %" PRIu64 " bytes: %s", bytes, strerror(-err));
}
