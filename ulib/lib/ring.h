/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The consumer's side of the mapped completion ring. It knows nothing of the
 * device: it works on any memory that is laid out as <rdmatensor/uapi.h> says.
 */
#ifndef RDMATENSOR_RING_H
#define RDMATENSOR_RING_H

#include <stddef.h>
#include <stdint.h>

#include <rdmatensor/uapi.h>

/**
 * struct rt_ring - view of a ring
 * @hdr: the mapping; NULL: there is none
 * @entries: the first entry
 * @mask: capacity - 1
 * @stride: bytes from entry to entry
 * @bytes: of the mapping
 */
struct rt_ring {
	struct rdmatensor_ring *hdr;
	unsigned char *entries;
	uint32_t mask;
	uint32_t stride;
	size_t bytes;
};

/* What a mapping must be long, as its own header says; 0: the header is no good */
size_t rt_ring_bytes(const struct rdmatensor_ring *hdr);

/* Sets a view up; -EPROTO: the layout is none that this library knows */
int rt_ring_init(struct rt_ring *ring, void *mem, size_t bytes);

/* Entries that wait to be consumed */
uint32_t rt_ring_ready(const struct rt_ring *ring);

/* Entries that the kernel has written, modulo 2^32 */
uint32_t rt_ring_head(const struct rt_ring *ring);

/* Entries that the process has given back, modulo 2^32 */
uint32_t rt_ring_tail(const struct rt_ring *ring);

/* The end of an operation, and not an event */
int rt_ring_is_end(const struct rdmatensor_cqe *cqe);

/* Entry @i from the oldest, which must be ready */
struct rdmatensor_cqe *rt_ring_at(const struct rt_ring *ring, uint32_t i);

/* Consumes the @nr oldest entries */
void rt_ring_advance(struct rt_ring *ring, uint32_t nr);

/* Copies and consumes up to @nr entries; returns how many */
uint32_t rt_ring_reap(struct rt_ring *ring, struct rdmatensor_cqe *cqes,
		      uint32_t nr);

/*
 * Takes the one entry of an operation with @user_data out of the ring, wherever
 * it is; those before it stay, in their order. @from: entries that were looked
 * at already; updated when the entry is not there, so that the next call goes
 * on behind them. Returns whether it was there.
 */
int rt_ring_take(struct rt_ring *ring, uint64_t user_data, uint32_t *from,
		 struct rdmatensor_cqe *cqe);

#endif
