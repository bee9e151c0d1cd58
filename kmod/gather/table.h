/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Opened tables: the map from rows to who has them.
 */
#ifndef RDMATENSOR_TABLE_H
#define RDMATENSOR_TABLE_H

#include <linux/kref.h>
#include "gather/export.h"
#include "gather/lookup.h"
#include "gather/plan.h"
#include "transport/readlane.h"

/**
 * struct rdmatensor_source - rows of one owner, or a copy of them in a pool
 * @row_start: number of the first row
 * @row_end: number after the last one
 * @stride: distance of two rows in bytes
 * @channel: the owner's; SELF: this context, and with @export NULL a cache
 * @worker: its name, for messages
 * @stale: the owner has refused access: its rows are not there any more
 * @readers: lanes to it, referenced; NULL: the rows are in @pool
 * @plan: where the rows are in the owner
 * @rkeys: keys of the rows, one for each 1 << plan.seg_shift
 * @export: own rows, referenced
 * @pool: own rows' pool, or a cache's, referenced
 * @offset: of the first row in it
 * @use: a cache's range is read
 */
struct rdmatensor_source {
	u64 row_start;
	u64 row_end;
	u64 stride;
	u32 channel;
	char worker[RDMATENSOR_WORKER_MAX];
	bool stale;
	struct rdmatensor_readers *readers;
	struct rdmatensor_plan_source plan;
	u32 *rkeys;
	struct rdmatensor_export *export;
	struct rdmatensor_pool *pool;
	u64 offset;
	struct rdmatensor_use use;
};

/**
 * struct rdmatensor_order - the array that turns ids into rows
 * @pool: that it is in, referenced; NULL: ids are rows
 * @offset: where in it
 * @nr: members
 * @wide: of 64 bits, else of 32
 * @use: the range is read
 */
struct rdmatensor_order {
	struct rdmatensor_pool *pool;
	u64 offset;
	u64 nr;
	bool wide;
	struct rdmatensor_use use;
};

/**
 * struct rdmatensor_table - an opened table
 * @ref: the context's, each gather
 * @row_bytes: of each row
 * @data_type: of its elements
 * @rows: number after the last row
 * @order: see there
 * @nr_sources: owners, which have each row once between them
 * @nr_caches: behind them in @sources
 * @sources: owners by row, then caches by row
 * @name_len: length of @name
 * @name: not zero-terminated
 */
struct rdmatensor_table {
	struct kref ref;
	u32 row_bytes;
	u32 data_type;
	u64 rows;
	struct rdmatensor_order order;
	u32 nr_sources;
	u32 nr_caches;
	struct rdmatensor_source *sources;
	u16 name_len;
	char name[RDMATENSOR_NAME_MAX];
};

/**
 * struct rdmatensor_table_shown - description of a table or an export: a copy, so that a reader
 *				   does not keep the table from being closed
 * @export: it is one
 * @name: not zero-terminated
 * @name_len: length of @name
 * @row_start: number of its first row
 * @row_end: number after its last row
 * @row_bytes: of each row
 * @pool_id: of an export: that the rows are in
 * @nr_owners: of a table
 * @lanes_up: of a table: to all owners together
 */
struct rdmatensor_table_shown {
	bool export;
	char name[RDMATENSOR_NAME_MAX];
	u16 name_len;
	u64 row_start;
	u64 row_end;
	u32 row_bytes;
	u32 pool_id;
	u32 nr_owners;
	u32 lanes_up;
};

/* No owners yet. ERR_PTR(-ENOMEM) */
struct rdmatensor_table *rdmatensor_table_alloc(const char *name, u16 name_len, u32 nr_sources,
						u32 nr_caches);
void rdmatensor_table_get(struct rdmatensor_table *table);
/* Process context */
void rdmatensor_table_put(struct rdmatensor_table *table);

/* The owner has been asked: its keys and a reference of @readers are the source's */
void rdmatensor_table_set_remote(struct rdmatensor_source *source,
				 const struct rdmatensor_channel *channel,
				 struct rdmatensor_readers *readers,
				 struct rdmatensor_lookup_result *result);
/* Own rows: the reference is the source's */
void rdmatensor_table_set_own(struct rdmatensor_source *source, struct rdmatensor_export *export,
			      const char *worker);
/*
 * A cache: the reference is the source's. Return: 0; -EINVAL: it is in no region that is
 * held; -EOPNOTSUPP: the CPU cannot reach it
 */
int rdmatensor_table_set_cache(struct rdmatensor_table *table, u32 i,
			       const struct rdmatensor_table_cache *cache,
			       struct rdmatensor_pool *pool);
/* As above, of the order */
int rdmatensor_table_set_order(struct rdmatensor_table *table, struct rdmatensor_pool *pool,
			       u64 offset, u64 nr, bool wide);

/**
 * rdmatensor_table_owner - one owner's info: of the same shape as the first one's
 * @table: being built
 * @i: number of the source
 * @info: what it says
 * @cause: line for the user
 * @room: bytes of @cause
 *
 * The first one sets the table's.
 *
 * Return: 0, -EPROTOTYPE.
 */
int rdmatensor_table_owner(struct rdmatensor_table *table, u32 i,
			   const struct rdmatensor_table_info *info, char *cause, size_t room);
/**
 * rdmatensor_table_complete - all sources are there: sort them, and see that each row has one
 * @table: being built
 * @cause: line for the user
 * @room: bytes of @cause
 *
 * Return: 0; -ENOTUNIQ, -ENODATA with @cause, which names the owners.
 */
int rdmatensor_table_complete(struct rdmatensor_table *table, char *cause, size_t room);

/* Number of ids; each below it has a row, unless the order's array says otherwise */
u64 rdmatensor_table_ids(const struct rdmatensor_table *table);
/* Any context */
void rdmatensor_table_show(const struct rdmatensor_table *table,
			   struct rdmatensor_table_shown *shown);
/**
 * rdmatensor_table_find - who has the row of an id
 * @table: complete
 * @value: the id, as the process has it
 * @id: out: its row and source
 *
 * A cache before an owner.
 *
 * Return: 0, -ERANGE.
 */
int rdmatensor_table_find(const struct rdmatensor_table *table, u64 value,
			  struct rdmatensor_gather_id *id);

#endif /* RDMATENSOR_TABLE_H */
