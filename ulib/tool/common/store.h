/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A pool with one region over all of it, in which a command lays its tensors out itself.
 */
#ifndef TOOL_STORE_H
#define TOOL_STORE_H

#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

/**
 * struct store - a pool and its region
 * @pool: the pool
 * @offset: where the region begins
 */
struct store {
	struct rdmatensor_pool pool;
	uint64_t offset;
};

/* @peers: what they may do with it. EXIT_OK, or EXIT_FAILED with a message */
int store_create(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		 struct store *store);
/* The same, but the message is returned in @cause and not printed */
int store_create_cause(struct rdmatensor *rt, uint64_t bytes, enum rdmatensor_pool_peers peers,
		       struct store *store, char *cause, size_t len);
/* For @nr times @bytes, in whole pages; an overflow is refused */
int store_create_array(struct rdmatensor *rt, uint64_t nr, uint64_t bytes,
		       enum rdmatensor_pool_peers peers, struct store *store);

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
