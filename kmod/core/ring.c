// SPDX-License-Identifier: GPL-2.0
/*
 * The completion ring.
 *
 * The kernel owns head, the reservations and the entries between tail and head + reserved;
 * the process owns tail and the entries before head. Space is reserved when an operation is
 * accepted, so a completion never finds the ring full: a process that does not reap is
 * refused new operations instead.
 *
 * Nothing in the mapping is trusted. tail is read once for each decision; a value outside of
 * [head - entries, head] counts as a full ring, so a false one only costs the process entries.
 */
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>
#include "core/compat/mm.h"
#include "core/ring.h"

static u32 ring_filled(const struct rdmatensor_ring_state *ring)
{
	/* Pairs with the process's release store: its reads of entries are done */
	u32 filled = ring->head - smp_load_acquire(&ring->shared->tail);

	return min(filled, ring->entries);
}

unsigned long rdmatensor_ring_bytes(u32 entries)
{
	return PAGE_ALIGN(PAGE_SIZE + (unsigned long)entries * sizeof(struct rdmatensor_cqe));
}

int rdmatensor_ring_init(struct rdmatensor_ring_state *ring, u32 entries,
			 wait_queue_head_t *poll_wait)
{
	int ret;

	memset(ring, 0, sizeof(*ring));
	spin_lock_init(&ring->lock);
	ring->poll_wait = poll_wait;
	init_waitqueue_head(&ring->submit_wait);

	if (WARN_ON_ONCE(!is_power_of_2(entries) || entries > RDMATENSOR_RING_ENTRIES_MAX))
		return -EINVAL;

	ring->entries = entries;
	ring->bytes = rdmatensor_ring_bytes(entries);
	ret = rdmatensor_charge(&ring->charge, ring->bytes >> PAGE_SHIFT);
	if (ret)
		return ret;
	/* RETRY_MAYFAIL: must not make the OOM killer of the memory cgroup run */
	ring->shared = __vmalloc(ring->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO |
				 __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!ring->shared) {
		rdmatensor_uncharge(&ring->charge);
		return -ENOMEM;
	}

	ring->cqes = (void *)ring->shared + PAGE_SIZE;
	ring->shared->entries = entries;
	ring->shared->entry_bytes = sizeof(*ring->cqes);
	ring->shared->entries_offset = PAGE_SIZE;
	return 0;
}

void rdmatensor_ring_destroy(struct rdmatensor_ring_state *ring)
{
	WARN_ON_ONCE(ring->reserved);
	vfree(ring->shared);
	ring->shared = NULL;
	rdmatensor_uncharge(&ring->charge);
}

int rdmatensor_ring_reserve(struct rdmatensor_ring_state *ring, u32 nr)
{
	int ret = 0;

	spin_lock_bh(&ring->lock);
	if ((u64)ring->reserved + ring_filled(ring) + nr > ring->entries)
		ret = -EAGAIN;
	else
		ring->reserved += nr;
	spin_unlock_bh(&ring->lock);
	return ret;
}

void rdmatensor_ring_unreserve(struct rdmatensor_ring_state *ring, u32 nr)
{
	spin_lock_bh(&ring->lock);
	WARN_ON_ONCE(ring->reserved < nr);
	ring->reserved -= nr;
	spin_unlock_bh(&ring->lock);
}

void rdmatensor_ring_complete(struct rdmatensor_ring_state *ring,
			      const struct rdmatensor_cqe *cqe)
{
	bool wake_submit;

	spin_lock_bh(&ring->lock);
	WARN_ON_ONCE(!ring->reserved);
	ring->reserved--;
	ring->cqes[ring->head & (ring->entries - 1)] = *cqe;
	ring->head++;
	/* The entry is whole before the process can see it */
	smp_store_release(&ring->shared->head, ring->head);

	wake_submit = ring->has_waiters && (s32)(ring->head - ring->wake_at) >= 0;
	if (wake_submit)
		ring->has_waiters = false;
	spin_unlock_bh(&ring->lock);

	if (wake_submit)
		wake_up_all(&ring->submit_wait);
	/* The lock above orders the entry before this check of the queue */
	if (wq_has_sleeper(ring->poll_wait))
		wake_up_interruptible_poll(ring->poll_wait, EPOLLIN | EPOLLRDNORM);
}

/**
 * struct ring_goal - what a waiter waits for
 * @by_head: head, or the number of entries to reap
 * @value: of either
 */
struct ring_goal {
	bool by_head;
	u32 value;
};

/* At which head a goal is reached, if nobody reaps until then */
static u32 ring_goal_at(const struct rdmatensor_ring_state *ring, const struct ring_goal *goal)
{
	return goal->by_head ? goal->value : ring->head - ring_filled(ring) + goal->value;
}

/* True: it is reached. Else sets the head at which waiters are woken */
static bool ring_enough(struct rdmatensor_ring_state *ring, const struct ring_goal *goal)
{
	bool enough;
	u32 at;

	spin_lock_bh(&ring->lock);
	at = ring_goal_at(ring, goal);
	enough = (s32)(ring->head - at) >= 0;
	if (!enough) {
		if (!ring->has_waiters || (s32)(at - ring->wake_at) < 0)
			ring->wake_at = at;
		ring->has_waiters = true;
	}
	spin_unlock_bh(&ring->lock);
	return enough;
}

static int ring_wait(struct rdmatensor_ring_state *ring, const struct ring_goal *goal,
		     u64 deadline_ns)
{
	DEFINE_WAIT(wait);
	int ret = 0;

	for (;;) {
		prepare_to_wait(&ring->submit_wait, &wait, TASK_INTERRUPTIBLE);
		if (ring_enough(ring, goal))
			break;
		if (signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		if (!deadline_ns) {
			schedule();
		} else {
			ktime_t end = ns_to_ktime(min_t(u64, deadline_ns, KTIME_MAX));

			if (!schedule_hrtimeout(&end, HRTIMER_MODE_ABS)) {
				if (!ring_enough(ring, goal))
					ret = -ETIME;
				break;
			}
		}
	}
	finish_wait(&ring->submit_wait, &wait);
	return ret;
}

int rdmatensor_ring_wait(struct rdmatensor_ring_state *ring, u32 nr, u64 deadline_ns)
{
	const struct ring_goal goal = { .value = nr };

	return ring_wait(ring, &goal, deadline_ns);
}

int rdmatensor_ring_wait_head(struct rdmatensor_ring_state *ring, u32 head, u64 deadline_ns)
{
	const struct ring_goal goal = { .by_head = true, .value = head };

	return ring_wait(ring, &goal, deadline_ns);
}

void rdmatensor_ring_over(struct rdmatensor_ring_state *ring)
{
	spin_lock_bh(&ring->lock);
	ring->over = true;
	spin_unlock_bh(&ring->lock);
	/* Those too of whom one alone is to take an entry (EPOLLEXCLUSIVE) */
	wake_up_interruptible_all(ring->poll_wait);
}

__poll_t rdmatensor_ring_poll(struct rdmatensor_ring_state *ring)
{
	__poll_t mask = 0;

	spin_lock_bh(&ring->lock);
	if (ring_filled(ring))
		mask = EPOLLIN | EPOLLRDNORM;
	if (ring->over)
		mask |= EPOLLERR;
	spin_unlock_bh(&ring->lock);
	return mask;
}

/* A mapping holds the file, and so the ring */
static vm_fault_t ring_vma_fault(struct vm_fault *vmf)
{
	struct rdmatensor_ring_state *ring = vmf->vma->vm_private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;

	if (WARN_ON_ONCE(offset >= ring->bytes))
		return VM_FAULT_SIGBUS;
	vmf->page = vmalloc_to_page((void *)ring->shared + offset);
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct ring_vm_ops = {
	.fault = ring_vma_fault,
};

int rdmatensor_ring_mmap(struct rdmatensor_ring_state *ring, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_end - vma->vm_start > ring->bytes)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = ring;
	vma->vm_ops = &ring_vm_ops;
	return 0;
}
