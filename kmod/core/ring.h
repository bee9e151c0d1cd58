/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The completion ring that a process maps and reaps without system calls.
 */
#ifndef RDMATENSOR_RING_H
#define RDMATENSOR_RING_H

#include <linux/spinlock.h>
#include <linux/wait.h>
#include "core/charge.h"
#include "rdmatensor.h"

struct vm_area_struct;

#define RDMATENSOR_RING_ENTRIES_MAX 1048576U

/**
 * struct rdmatensor_ring_state - the kernel's side of a ring
 * @lock: guards all below; taken in completion context
 * @shared: the mapped page of indices; written here, of it only ->tail is read
 * @cqes: the mapped entries; written here, never read
 * @entries: capacity, a power of two
 * @bytes: of the mapping
 * @charge: for them
 * @head: entries written; the copy that counts
 * @reserved: entries promised to what is in flight
 * @wake_at: value of @head at which SUBMIT's waiters are woken
 * @has_waiters: @wake_at is valid
 * @over: the device has gone, and all channels have ended
 * @poll_wait: poll(), woken by each entry, and when it is over; its owner's, for who polls may
 *	have come before the ring is there, as epoll does, which waits where it waited first
 * @submit_wait: SUBMIT's waiters, woken at @wake_at
 */
struct rdmatensor_ring_state {
	spinlock_t lock;
	struct rdmatensor_ring *shared;
	struct rdmatensor_cqe *cqes;
	u32 entries;
	unsigned long bytes;
	struct rdmatensor_charge charge;
	u32 head;
	u32 reserved;
	u32 wake_at;
	bool has_waiters;
	bool over;
	wait_queue_head_t *poll_wait;
	wait_queue_head_t submit_wait;
};

/* Bytes of the mapping of a ring */
unsigned long rdmatensor_ring_bytes(u32 entries);
/**
 * rdmatensor_ring_init - a ring that is empty
 * @ring: filled
 * @entries: rounded up to a power of two by the caller
 * @poll_wait: the owner's, for @ring->poll_wait; outlives @ring
 *
 * The ring is memory that is not swapped, like a pool, and up to 200 MB of it: it is locked
 * memory of the caller's user (rdmatensor_charge()), and its pages are the caller's memory
 * cgroup's. Either alone leaves a hole: a host without memory cgroups bounds nothing by
 * them, and a user who is not bounded may be in a container that is.
 *
 * Return: 0; -ENOMEM: one of the two, or there is none; -EINTR: killed while it waited.
 */
int rdmatensor_ring_init(struct rdmatensor_ring_state *ring, u32 entries,
			 wait_queue_head_t *poll_wait);
void rdmatensor_ring_destroy(struct rdmatensor_ring_state *ring);

/**
 * rdmatensor_ring_reserve - promise @nr entries
 * @ring: the ring
 * @nr: number of entries
 *
 * Return: 0, or -EAGAIN: reserved entries and those that the process has not
 * consumed leave no space. Every promise ends with one rdmatensor_ring_complete()
 * or rdmatensor_ring_unreserve().
 */
int rdmatensor_ring_reserve(struct rdmatensor_ring_state *ring, u32 nr);
void rdmatensor_ring_unreserve(struct rdmatensor_ring_state *ring, u32 nr);
/* Uses up one promise. Any context */
void rdmatensor_ring_complete(struct rdmatensor_ring_state *ring,
			      const struct rdmatensor_cqe *cqe);

/**
 * rdmatensor_ring_wait - wait until the process has @nr entries to reap
 * @ring: the ring
 * @nr: number of entries
 * @deadline_ns: CLOCK_MONOTONIC, 0: no end
 *
 * Return: 0, -ETIME, -EINTR.
 */
int rdmatensor_ring_wait(struct rdmatensor_ring_state *ring, u32 nr, u64 deadline_ns);
/* The same, until head has come to @head or is past it, whatever the process has reaped */
int rdmatensor_ring_wait_head(struct rdmatensor_ring_state *ring, u32 head, u64 deadline_ns);
/* What poll() is told, of who waits on @poll_wait already */
__poll_t rdmatensor_ring_poll(struct rdmatensor_ring_state *ring);
/*
 * The device has gone, and the entries of the channels' ends are there: poll() gives EPOLLERR from
 * now on, also to a process whose context had nothing that could end. What the CPU works on, and
 * gathers, may have entries later. Idempotent
 */
void rdmatensor_ring_over(struct rdmatensor_ring_state *ring);
int rdmatensor_ring_mmap(struct rdmatensor_ring_state *ring, struct vm_area_struct *vma);

#endif /* RDMATENSOR_RING_H */
