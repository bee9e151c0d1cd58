// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel owns head and the process owns tail. An entry is read only after
 * an acquire load of head has shown it, and is dead after the release store of
 * tail that has passed it.
 */
#include <errno.h>
#include <string.h>

#include "ring.h"

/*
 * A program has room for an entry that it was compiled with, and takes many at a time: what an entry
 * says more must come in another way
 */
_Static_assert(sizeof(struct rdmatensor_cqe) == 192, "the size of an entry is final");

size_t rt_ring_bytes(const struct rdmatensor_ring *hdr)
{
	uint64_t bytes;

	if (!hdr->entries || hdr->entries & (hdr->entries - 1))
		return 0;
	if (hdr->entry_bytes < sizeof(struct rdmatensor_cqe) ||
	    hdr->entry_bytes % 8)
		return 0;
	if (hdr->entries_offset < sizeof(*hdr) || hdr->entries_offset % 8)
		return 0;
	bytes = hdr->entries_offset + (uint64_t)hdr->entries * hdr->entry_bytes;
	if (bytes > SIZE_MAX / 2)
		return 0;
	return (size_t)bytes;
}

int rt_ring_init(struct rt_ring *ring, void *mem, size_t bytes)
{
	struct rdmatensor_ring *hdr = mem;
	size_t need;

	if (bytes < sizeof(*hdr))
		return -EPROTO;
	need = rt_ring_bytes(hdr);
	if (!need || need > bytes)
		return -EPROTO;
	ring->hdr = hdr;
	ring->entries = (unsigned char *)mem + hdr->entries_offset;
	ring->mask = hdr->entries - 1;
	ring->stride = hdr->entry_bytes;
	ring->bytes = bytes;
	return 0;
}

uint32_t rt_ring_ready(const struct rt_ring *ring)
{
	uint32_t head, tail, ready;

	if (!ring->hdr)
		return 0;
	/* Beside one that reaps both move: these two were there at one moment */
	do {
		tail = __atomic_load_n(&ring->hdr->tail, __ATOMIC_ACQUIRE);
		head = __atomic_load_n(&ring->hdr->head, __ATOMIC_ACQUIRE);
	} while (tail != __atomic_load_n(&ring->hdr->tail, __ATOMIC_RELAXED));
	ready = head - tail;
	return ready > ring->mask ? ring->mask + 1 : ready;
}

uint32_t rt_ring_head(const struct rt_ring *ring)
{
	return __atomic_load_n(&ring->hdr->head, __ATOMIC_ACQUIRE);
}

uint32_t rt_ring_tail(const struct rt_ring *ring)
{
	return __atomic_load_n(&ring->hdr->tail, __ATOMIC_RELAXED);
}

static struct rdmatensor_cqe *entry(const struct rt_ring *ring, uint32_t index)
{
	return (void *)(ring->entries +
			(size_t)(index & ring->mask) * ring->stride);
}

struct rdmatensor_cqe *rt_ring_at(const struct rt_ring *ring, uint32_t i)
{
	return entry(ring, ring->hdr->tail + i);
}

void rt_ring_advance(struct rt_ring *ring, uint32_t nr)
{
	if (ring->hdr)
		__atomic_store_n(&ring->hdr->tail, ring->hdr->tail + nr,
				 __ATOMIC_RELEASE);
}

uint32_t rt_ring_reap(struct rt_ring *ring, struct rdmatensor_cqe *cqes,
		      uint32_t nr)
{
	uint32_t ready = rt_ring_ready(ring);
	uint32_t i;

	if (nr > ready)
		nr = ready;
	for (i = 0; i < nr; i++)
		cqes[i] = *rt_ring_at(ring, i);
	if (nr)
		rt_ring_advance(ring, nr);
	return nr;
}

int rt_ring_is_end(const struct rdmatensor_cqe *cqe)
{
	return cqe->type == RDMATENSOR_CQE_FETCH ||
	       cqe->type == RDMATENSOR_CQE_PUBLISH ||
	       cqe->type == RDMATENSOR_CQE_WITHDRAW ||
	       cqe->type == RDMATENSOR_CQE_GATHER ||
	       cqe->type == RDMATENSOR_CQE_LIST ||
	       cqe->type == RDMATENSOR_CQE_REVEAL;
}

int rt_ring_take(struct rt_ring *ring, uint64_t user_data, uint32_t *from,
		 struct rdmatensor_cqe *cqe)
{
	uint32_t ready = rt_ring_ready(ring);
	uint32_t i;

	for (i = *from; i < ready; i++) {
		struct rdmatensor_cqe *at = rt_ring_at(ring, i);

		if (at->user_data == user_data && rt_ring_is_end(at))
			break;
	}
	if (i >= ready) {
		*from = ready;
		return 0;
	}
	*cqe = *rt_ring_at(ring, i);
	/* The older entries move up by one, and the oldest place is returned */
	for (; i > 0; i--)
		memcpy(rt_ring_at(ring, i), rt_ring_at(ring, i - 1),
		       sizeof(*cqe));
	rt_ring_advance(ring, 1);
	return 1;
}
