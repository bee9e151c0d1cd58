/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exports: rows that this context lets its peers read, by name. Each has memory regions
 * of its own, for reading and for nothing else, over pages of a pool.
 */
#ifndef RDMATENSOR_EXPORT_H
#define RDMATENSOR_EXPORT_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/spinlock.h>
#include "core/wire.h"
#include "memory/pool.h"

#define RDMATENSOR_EXPORT_HASH_BITS 6

/**
 * struct rdmatensor_export_waiter - a wait for a name to be exported, embedded
 * @item: in the context's list while it waits; the list's lock
 * @name: not zero-terminated, its owner's
 * @name_len: its length
 * @exported: the name is there, and @item off the list. With the list's lock held
 */
struct rdmatensor_export_waiter {
	struct list_head item;
	const char *name;
	u16 name_len;
	void (*exported)(struct rdmatensor_export_waiter *waiter);
};

/**
 * struct rdmatensor_exports - those of one context, by name
 * @lock: guards @by_name and @waiters; taken in completion context, inside a channel's lock
 * @waiters: for what is not there yet: a bounded number of each peer's, and calls of its own
 * @by_name: all that peers can ask for
 */
struct rdmatensor_exports {
	spinlock_t lock;
	struct list_head waiters;
	DECLARE_HASHTABLE(by_name, RDMATENSOR_EXPORT_HASH_BITS);
};

/**
 * struct rdmatensor_export - one
 * @ref: the context's table, and every table of the context itself that has its rows
 * @node: in by_name, until it is withdrawn
 * @pool: that the rows are in, referenced
 * @offset: of the first row, whole pages
 * @use: the rows' range is read
 * @reg: the rows' pages, for reading; ended by the withdrawal
 * @info: rows; nr_keys is @reg's
 * @withdrawn: rdmatensor_export_withdraw() has begun
 * @name_len: length of @name
 * @name: not zero-terminated
 */
struct rdmatensor_export {
	struct kref ref;
	struct hlist_node node;
	struct rdmatensor_pool *pool;
	u64 offset;
	struct rdmatensor_use use;
	struct rdmatensor_registration reg;
	struct rdmatensor_table_info info;
	bool withdrawn;
	u16 name_len;
	char name[] __counted_by(name_len);
};

/**
 * struct rdmatensor_export_args - a TABLE_EXPORT
 * @name: not zero-terminated
 * @name_len: its length
 * @pool: that the rows are in; a reference is the export's after success
 * @offset: of the first row, a multiple of the page size
 * @info: rows, without keys
 */
struct rdmatensor_export_args {
	const char *name;
	u16 name_len;
	struct rdmatensor_pool *pool;
	u64 offset;
	struct rdmatensor_table_info info;
};

void rdmatensor_exports_init(struct rdmatensor_exports *exports);

/**
 * rdmatensor_export_create - register rows and let peers ask for them
 * @exports: of the context
 * @domain: where the rows are registered
 * @args: copied; the pool's reference is taken over on success
 *
 * Process context, may sleep.
 *
 * Return: an export with one reference; ERR_PTR(-EINVAL): the rows are not in one region that
 * is held; ERR_PTR(-EACCES): peers must not read the pool; ERR_PTR(-EOVERFLOW): more keys than
 * the wire can count; ERR_PTR(-EEXIST); ERR_PTR(-ENOMEM); ERR_PTR(-EIO), (-ENODEV), (-EINTR):
 * see rdmatensor_registration_begin().
 */
struct rdmatensor_export *rdmatensor_export_create(struct rdmatensor_exports *exports,
						   struct rdmatensor_domain *domain,
						   const struct rdmatensor_export_args *args);
/*
 * When it returns, no peer can read the rows, and no gather of this context begins to copy
 * them. Idempotent. Process context
 */
void rdmatensor_export_withdraw(struct rdmatensor_exports *exports,
				struct rdmatensor_export *export);
/* Process context. It must have been withdrawn */
void rdmatensor_export_put(struct rdmatensor_export *export);

/* Held, to be put; NULL: there is none. Process context */
struct rdmatensor_export *rdmatensor_export_find(struct rdmatensor_exports *exports,
						 const char *name, u16 name_len);
/*
 * Waits for the name that is in @waiter. False: it is there already. Any context up to softirq,
 * as the next one
 */
bool rdmatensor_export_wait(struct rdmatensor_exports *exports,
			    struct rdmatensor_export_waiter *waiter);
/* Not any more. True: it did, and exported() has not been and will not be called */
bool rdmatensor_export_unwait(struct rdmatensor_exports *exports,
			      struct rdmatensor_export_waiter *waiter);
/**
 * rdmatensor_export_answer - answer a peer's TABLE_OPEN
 * @exports: of the context
 * @msg: TABLE_INFO: filled but for the index; F_FAILED if there is no such export
 * @name: that was asked for
 * @name_len: bytes of @name
 * @first_key: that was asked for
 * @rkeys: out: keys
 * @room: capacity of @rkeys
 *
 * Any context up to softirq.
 */
void rdmatensor_export_answer(struct rdmatensor_exports *exports, struct rdmatensor_msg *msg,
			      const char *name, u16 name_len, u32 first_key, __le32 *rkeys,
			      u32 room);

#endif /* RDMATENSOR_EXPORT_H */
