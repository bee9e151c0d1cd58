/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tensor buffers: memory of the kernel's that a tensor is copied into when it is published,
 * and that is kept under the tensor's name from step to step (TensorFlow 1.2's RdmaTensorBuffer
 * at the sender).
 *
 *	MAKING -> BUSY <-> IDLE
 *	   |       |        |
 *	   |       +--------+-> DOOMED -> (freed)
 *	   +-> (freed)
 *
 * A buffer is BUSY from the moment that a PUBLISH takes it until its publication is released.
 * A name has as many as it has publications at the same time. An idle one serves the next
 * PUBLISH of its name by the same user, who pays for it, and is freed if that one's tensor has
 * another size, if @max are there, if there is no memory for another one, or with the domain. A
 * tensor that is withdrawn does not need its buffer any more.
 */
#ifndef RDMATENSOR_BUFFER_H
#define RDMATENSOR_BUFFER_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include "rdmatensor.h"

#define RDMATENSOR_BUFFER_HASH_BITS 8

struct rdmatensor_buffers;
struct rdmatensor_counters;
struct rdmatensor_pool;

/**
 * struct rdmatensor_buffer - one buffer
 * @buffers: where it is kept
 * @item: in all of them
 * @node: in the idle ones, by name
 * @queue: in the idle ones, by age; or in those that are to be freed
 * @state: see above; changed by buffer_move() alone
 * @bytes: of the tensor that it was made for
 * @payer: whose task has made it
 * @pool: whole pages, set by @make
 * @name_len: length of @name
 * @name: the tensor's
 */
struct rdmatensor_buffer {
	struct rdmatensor_buffers *buffers;
	struct list_head item;
	struct hlist_node node;
	struct list_head queue;
	u8 state;
	u64 bytes;
	kuid_t payer;
	struct rdmatensor_pool *pool;
	u16 name_len;
	char name[] __counted_by(name_len);
};

/**
 * struct rdmatensor_buffers_ops - what memory it is
 * @make: sets @buffer's pool, of at least buffer->bytes; may sleep. Return: 0, a negative errno
 * @unmake: nothing reads it any more; may sleep
 */
struct rdmatensor_buffers_ops {
	int (*make)(struct rdmatensor_buffers *buffers, struct rdmatensor_buffer *buffer);
	void (*unmake)(struct rdmatensor_buffers *buffers, struct rdmatensor_buffer *buffer);
};

/**
 * struct rdmatensor_buffers - those of one domain
 * @ops: see above
 * @wq: frees what a completion has released
 * @max: bound on @nr
 * @membership: guards @all and @nr_freed; held while buffers are freed. Before @lock
 * @all: whatever their state
 * @nr_freed: how many have been freed; read without @membership, too
 * @lock: guards the others, and their states
 * @nr: those that are not doomed
 * @idle: the longest idle first
 * @doomed: to be freed
 * @names: idle ones
 * @work: frees the doomed
 */
struct rdmatensor_buffers {
	const struct rdmatensor_buffers_ops *ops;
	struct workqueue_struct *wq;
	u32 max;
	struct mutex membership;	/* see above */
	struct list_head all;
	unsigned long nr_freed;
	spinlock_t lock;	/* see above */
	u32 nr;
	struct list_head idle;
	struct list_head doomed;
	DECLARE_HASHTABLE(names, RDMATENSOR_BUFFER_HASH_BITS);
	struct work_struct work;
};

/* @ops, @wq and @max are set. What can be used from here on costs no memory yet */
void rdmatensor_buffers_init(struct rdmatensor_buffers *buffers);
/* All have been put. May sleep */
void rdmatensor_buffers_destroy(struct rdmatensor_buffers *buffers);

/**
 * rdmatensor_buffer_take - the buffer of a name, for one publication
 * @buffers: of the domain
 * @counters: where it is counted if it is made
 * @name: any bytes
 * @name_len: their number
 * @bytes: of the tensor, at least 1
 *
 * Process context. Return: a busy one; ERR_PTR(-ENOBUFS): all @max of them are busy;
 * what making one returns, when there is no idle one left to free instead.
 */
struct rdmatensor_buffer *rdmatensor_buffer_take(struct rdmatensor_buffers *buffers,
						 struct rdmatensor_counters *counters,
						 const char *name, u16 name_len, u64 bytes);
/* Nothing reads it any more. @keep: for the next one of its name. Any context up to softirq */
void rdmatensor_buffer_put(struct rdmatensor_buffer *buffer, bool keep);
/**
 * rdmatensor_buffers_make_room - free space, after an attempt that found none
 * @buffers: of the domain
 * @nr_freed: what rdmatensor_buffers_nr_freed() was before the attempt
 * @bytes: what the attempt was for, at least 1: an attempt costs about as much as it asks for, so
 *         there is none for less
 *
 * Reclaims those that have been idle longest, of @bytes together or all that there are, or waits
 * for one that is being freed. May sleep. Return: whether another attempt is worth it; false if
 * the task is being killed.
 */
bool rdmatensor_buffers_make_room(struct rdmatensor_buffers *buffers, unsigned long nr_freed,
				  u64 bytes);

/* Bound on such attempts for one purpose: others may take again what they have freed */
static inline u32 rdmatensor_buffers_tries(const struct rdmatensor_buffers *buffers)
{
	return READ_ONCE(buffers->nr) + 2;
}

static inline unsigned long rdmatensor_buffers_nr_freed(const struct rdmatensor_buffers *buffers)
{
	return READ_ONCE(buffers->nr_freed);
}

/* Calls @fn for each that has memory; none is freed meanwhile. May sleep */
void rdmatensor_buffers_each(struct rdmatensor_buffers *buffers,
			     void (*fn)(struct rdmatensor_buffer *buffer));

#endif /* RDMATENSOR_BUFFER_H */
