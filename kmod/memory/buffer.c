// SPDX-License-Identifier: GPL-2.0
/*
 * Tensor buffers: which serves whom, and when one goes.
 *
 * Making and freeing take long on a device and may sleep, so they are done without the lock,
 * by the caller that needs a buffer; what a completion releases is freed by a work item.
 * Buffers are freed one at a time, with @membership held, so that a walk over all of them,
 * when the device goes, meets none that is half gone.
 */
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/jhash.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/limits.h"
#include "core/stats.h"
#include "memory/buffer.h"

enum buffer_state {
	BUFFER_MAKING,
	BUFFER_BUSY,
	BUFFER_IDLE,
	BUFFER_DOOMED,
};

/* All changes of state; each is legal from exactly those states */
static void buffer_move(struct rdmatensor_buffer *buffer, enum buffer_state to)
{
	static const u8 from[] = {
		[BUFFER_BUSY] = BIT(BUFFER_MAKING) | BIT(BUFFER_IDLE),
		[BUFFER_IDLE] = BIT(BUFFER_BUSY),
		[BUFFER_DOOMED] = BIT(BUFFER_BUSY) | BIT(BUFFER_IDLE),
	};

	lockdep_assert_held(&buffer->buffers->lock);
	WARN_ON_ONCE(!(from[to] & BIT(buffer->state)));
	buffer->state = to;
}

static u32 buffer_hash(const char *name, u16 name_len)
{
	return jhash(name, name_len, 0);
}

/* An idle one can no longer be found */
static void buffer_unlist(struct rdmatensor_buffer *buffer)
{
	hash_del(&buffer->node);
	list_del_init(&buffer->queue);
}

static void buffer_doom(struct rdmatensor_buffer *buffer)
{
	buffer_move(buffer, BUFFER_DOOMED);
	WRITE_ONCE(buffer->buffers->nr, buffer->buffers->nr - 1);
	list_add_tail(&buffer->queue, &buffer->buffers->doomed);
}

static struct rdmatensor_buffer *buffers_next_doomed(struct rdmatensor_buffers *buffers)
{
	struct rdmatensor_buffer *buffer;

	spin_lock_bh(&buffers->lock);
	buffer = list_first_entry_or_null(&buffers->doomed, struct rdmatensor_buffer, queue);
	if (buffer)
		list_del_init(&buffer->queue);
	spin_unlock_bh(&buffers->lock);
	return buffer;
}

static void buffers_free_doomed(struct rdmatensor_buffers *buffers)
{
	struct rdmatensor_buffer *buffer;

	mutex_lock(&buffers->membership);
	while ((buffer = buffers_next_doomed(buffers))) {
		list_del(&buffer->item);
		buffers->ops->unmake(buffers, buffer);
		kfree(buffer);
		WRITE_ONCE(buffers->nr_freed, buffers->nr_freed + 1);
		cond_resched();
	}
	mutex_unlock(&buffers->membership);
}

static void buffers_work(struct work_struct *work)
{
	buffers_free_doomed(container_of(work, struct rdmatensor_buffers, work));
}

void rdmatensor_buffers_init(struct rdmatensor_buffers *buffers)
{
	mutex_init(&buffers->membership);
	INIT_LIST_HEAD(&buffers->all);
	spin_lock_init(&buffers->lock);
	INIT_LIST_HEAD(&buffers->idle);
	INIT_LIST_HEAD(&buffers->doomed);
	hash_init(buffers->names);
	INIT_WORK(&buffers->work, buffers_work);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_buffers_init);

/* Frees the one that has been idle longest, and adds its bytes to @freed. False: there is none */
static bool buffers_reclaim(struct rdmatensor_buffers *buffers, u64 *freed)
{
	struct rdmatensor_buffer *buffer;
	bool found;

	spin_lock_bh(&buffers->lock);
	buffer = list_first_entry_or_null(&buffers->idle, struct rdmatensor_buffer, queue);
	if (buffer) {
		*freed += buffer->bytes;
		buffer_unlist(buffer);
		buffer_doom(buffer);
	}
	/* What was released, and is not freed yet, is space as well */
	found = !list_empty(&buffers->doomed);
	spin_unlock_bh(&buffers->lock);
	if (found)
		buffers_free_doomed(buffers);
	return found;
}

void rdmatensor_buffers_destroy(struct rdmatensor_buffers *buffers)
{
	u64 freed = 0;

	flush_work(&buffers->work);
	while (buffers_reclaim(buffers, &freed))
		;
	/* Rather leak than free what somebody reads */
	WARN_ON_ONCE(!list_empty(&buffers->all));
	mutex_destroy(&buffers->membership);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_buffers_destroy);

/*
 * An idle one of that name and size. Those of another size are of no use any more: the tensor
 * has changed
 */
static struct rdmatensor_buffer *buffers_find(struct rdmatensor_buffers *buffers,
					      const char *name, u16 name_len, u64 bytes)
{
	struct rdmatensor_buffer *buffer, *found = NULL;
	struct hlist_node *next;
	bool renew = false;

	spin_lock_bh(&buffers->lock);
	hash_for_each_possible_safe(buffers->names, buffer, next, node,
				    buffer_hash(name, name_len)) {
		if (buffer->name_len != name_len || memcmp(buffer->name, name, name_len))
			continue;
		/* Several users may have joined a domain; none uses what another pays for */
		if (!uid_eq(buffer->payer, current_uid()))
			continue;
		if (buffer->bytes != bytes) {
			buffer_unlist(buffer);
			buffer_doom(buffer);
			renew = true;
		} else if (!found) {
			found = buffer;
		}
	}
	if (found) {
		buffer_unlist(found);
		buffer_move(found, BUFFER_BUSY);
	}
	spin_unlock_bh(&buffers->lock);
	if (renew)
		buffers_free_doomed(buffers);
	return found;
}

/* False: there are as many as there may be */
static bool buffers_add(struct rdmatensor_buffers *buffers, struct rdmatensor_buffer *buffer)
{
	bool room;

	mutex_lock(&buffers->membership);
	spin_lock_bh(&buffers->lock);
	room = buffers->nr < buffers->max;
	if (room)
		WRITE_ONCE(buffers->nr, buffers->nr + 1);
	spin_unlock_bh(&buffers->lock);
	if (room)
		list_add_tail(&buffer->item, &buffers->all);
	mutex_unlock(&buffers->membership);
	return room;
}

static void buffers_remove(struct rdmatensor_buffers *buffers, struct rdmatensor_buffer *buffer)
{
	mutex_lock(&buffers->membership);
	list_del(&buffer->item);
	mutex_unlock(&buffers->membership);
	spin_lock_bh(&buffers->lock);
	WRITE_ONCE(buffers->nr, buffers->nr - 1);
	spin_unlock_bh(&buffers->lock);
}

static struct rdmatensor_buffer *buffer_make(struct rdmatensor_buffers *buffers,
					     struct rdmatensor_counters *counters,
					     const char *name, u16 name_len, u64 bytes)
{
	struct rdmatensor_buffer *buffer;
	int ret;

	buffer = kzalloc(struct_size(buffer, name, name_len), RDMATENSOR_GFP_SPARING);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->buffers = buffers;
	INIT_LIST_HEAD(&buffer->queue);
	buffer->state = BUFFER_MAKING;
	buffer->bytes = bytes;
	buffer->payer = current_uid();
	buffer->name_len = name_len;
	memcpy(buffer->name, name, name_len);

	if (!buffers_add(buffers, buffer)) {
		ret = -ENOBUFS;
		goto out_free;
	}
	ret = buffers->ops->make(buffers, buffer);
	if (ret)
		goto out_remove;

	spin_lock_bh(&buffers->lock);
	buffer_move(buffer, BUFFER_BUSY);
	spin_unlock_bh(&buffers->lock);
	rdmatensor_count(counters, RDMATENSOR_STAT_BUFFERS_MADE);
	return buffer;

out_remove:
	buffers_remove(buffers, buffer);
out_free:
	kfree(buffer);
	return ERR_PTR(ret);
}

/* Whether any has been freed since @nr_freed; waits for one that is being freed */
static bool buffers_freed(struct rdmatensor_buffers *buffers, unsigned long nr_freed)
{
	bool freed;

	mutex_lock(&buffers->membership);
	freed = buffers->nr_freed != nr_freed;
	mutex_unlock(&buffers->membership);
	return freed;
}

bool rdmatensor_buffers_make_room(struct rdmatensor_buffers *buffers, unsigned long nr_freed,
				  u64 bytes)
{
	bool any = false;
	u64 freed = 0;

	while (freed < bytes && !fatal_signal_pending(current) && buffers_reclaim(buffers, &freed))
		any = true;
	return !fatal_signal_pending(current) && (any || buffers_freed(buffers, nr_freed));
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_buffers_make_room);

struct rdmatensor_buffer *rdmatensor_buffer_take(struct rdmatensor_buffers *buffers,
						 struct rdmatensor_counters *counters,
						 const char *name, u16 name_len, u64 bytes)
{
	u32 tries = rdmatensor_buffers_tries(buffers);
	struct rdmatensor_buffer *buffer;
	unsigned long nr_freed;
	u64 room;

	might_sleep();
	buffer = buffers_find(buffers, name, name_len, bytes);
	if (buffer)
		return buffer;
	do {
		nr_freed = rdmatensor_buffers_nr_freed(buffers);
		buffer = buffer_make(buffers, counters, name, name_len, bytes);
		if (!IS_ERR(buffer) ||
		    (buffer != ERR_PTR(-ENOMEM) && buffer != ERR_PTR(-ENOBUFS) &&
		     buffer != ERR_PTR(-EDQUOT)))
			return buffer;
		/* Of those that there may be, one is enough */
		room = buffer == ERR_PTR(-ENOBUFS) ? 1 : bytes;
	} while (--tries && rdmatensor_buffers_make_room(buffers, nr_freed, room));
	return buffer;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_buffer_take);

void rdmatensor_buffer_put(struct rdmatensor_buffer *buffer, bool keep)
{
	struct rdmatensor_buffers *buffers = buffer->buffers;

	spin_lock_bh(&buffers->lock);
	if (keep) {
		buffer_move(buffer, BUFFER_IDLE);
		hash_add(buffers->names, &buffer->node,
			 buffer_hash(buffer->name, buffer->name_len));
		list_add_tail(&buffer->queue, &buffers->idle);
	} else {
		buffer_doom(buffer);
		queue_work(buffers->wq, &buffers->work);
	}
	spin_unlock_bh(&buffers->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_buffer_put);

void rdmatensor_buffers_each(struct rdmatensor_buffers *buffers,
			     void (*fn)(struct rdmatensor_buffer *buffer))
{
	struct rdmatensor_buffer *buffer;

	mutex_lock(&buffers->membership);
	list_for_each_entry(buffer, &buffers->all, item)
		if (buffer->pool)
			fn(buffer);
	mutex_unlock(&buffers->membership);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_buffers_each);
