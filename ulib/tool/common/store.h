/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A pool with one region over all of it, in which a command lays its tensors out itself: of
 * kernel pages, or of memory that the store has mapped.
 */
#ifndef TOOL_STORE_H
#define TOOL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

/* What -EDQUOT means, of a pool, or in strict mode of a fetch; and the remedy */
#define STORE_NO_REGIONS \
	"the RDMA cgroup allows no more memory regions: raise hca_object in its rdma.max"

/**
 * enum store_memory - what a store is made of
 * @STORE_KERNEL: the pool's own pages
 * @STORE_ANON: anonymous memory of this process
 * @STORE_MEMFD: memfd_create()'s
 * @STORE_HUGE: hugetlbfs', in pages of the default size
 * @STORE_DMABUF: a dma-buf of the system's heap
 * @STORE_FILE: a file's own pages, by store_register_file()
 */
enum store_memory { STORE_KERNEL, STORE_ANON, STORE_MEMFD, STORE_HUGE, STORE_DMABUF,
		    STORE_FILE };

/**
 * struct store - a pool and its region
 * @pool: the pool
 * @offset: where the region begins
 * @mapped: what was mapped for it, or NULL: the pool's own pages are
 */
struct store {
	struct rdmatensor_pool pool;
	uint64_t offset;
	void *mapped;
};

/* What --memory says; @file: STORE_FILE is one, too. EXIT_OK, or EXIT_MISUSED with a message */
int store_take_memory(const char *text, bool file, enum store_memory *memory);

/* @peers: what they may do with it. EXIT_OK, or EXIT_FAILED with a message */
int store_create(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		 struct store *store);
/* The same, but the message is returned in @cause and not printed */
int store_create_cause(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		       struct store *store, char *cause, size_t len);
/* For @nr times @bytes, in whole pages; an overflow is refused */
int store_create_array(struct rdmatensor *rt, uint64_t nr, uint64_t bytes,
		       enum rdmatensor_pool_peers peers, struct store *store);
/* The same, of any kind of memory */
int store_create_of(struct rdmatensor *rt, enum store_memory memory, uint64_t nr, uint64_t bytes,
		    enum rdmatensor_pool_peers peers, struct store *store);
/* All of a file of @bytes, to publish from; its first byte is at @store's offset, 0 */
int store_register_file(struct rdmatensor *rt, int fd, uint64_t bytes, struct store *store);
/* EXIT_OK, or EXIT_FAILED with a message: it is still in use */
int store_destroy(struct rdmatensor *rt, struct store *store);

/* Saturates: no pool has UINT64_MAX bytes */
static inline uint64_t align_up(uint64_t bytes, uint64_t align)
{
	return bytes > UINT64_MAX - align ? UINT64_MAX : (bytes + align - 1) / align * align;
}

/* Distance of two regions; a region of 0 bytes has a place as well */
static inline uint64_t align_region(uint64_t bytes)
{
	uint64_t align = RDMATENSOR_REGION_ALIGN;

	return bytes ? align_up(bytes, align) : align;
}

#endif
