// SPDX-License-Identifier: GPL-2.0
/*
 * Opened tables.
 *
 * A table holds what its rows need: lanes to owners, own exports, pools of caches and of the
 * order's array. TABLE_OPEN builds it, and it is constant from then on, except for the marks
 * on sources whose owners have withdrawn their rows.
 *
 * The process can write to the order's array: each value is checked against the range whenever
 * it is read.
 */
#include <linux/bsearch.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <kunit/visibility.h>
#include "core/limits.h"
#include "gather/table.h"

struct rdmatensor_table *rdmatensor_table_alloc(const char *name, u16 name_len, u32 nr_sources,
						u32 nr_caches)
{
	struct rdmatensor_table *table = kzalloc(sizeof(*table), RDMATENSOR_GFP_SPARING);

	if (!table)
		return ERR_PTR(-ENOMEM);
	table->sources = kvcalloc(nr_sources + nr_caches, sizeof(*table->sources),
				  RDMATENSOR_GFP_SPARING);
	if (!table->sources) {
		kfree(table);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&table->ref);
	table->nr_sources = nr_sources;
	table->nr_caches = nr_caches;
	table->name_len = name_len;
	memcpy(table->name, name, name_len);
	return table;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_table_alloc);

void rdmatensor_table_get(struct rdmatensor_table *table)
{
	kref_get(&table->ref);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_table_get);

static void table_free_source(struct rdmatensor_source *source)
{
	if (source->readers)
		rdmatensor_readers_put(source->readers);
	kvfree(source->rkeys);
	if (source->export) {
		rdmatensor_export_put(source->export);
	} else if (source->pool) {
		rdmatensor_regions_drop(&source->pool->regions, &source->use);
		rdmatensor_pool_put(source->pool);
	}
}

static void table_release(struct kref *ref)
{
	struct rdmatensor_table *table = container_of(ref, struct rdmatensor_table, ref);
	u32 i;

	for (i = 0; i < table->nr_sources + table->nr_caches; i++)
		table_free_source(&table->sources[i]);
	if (table->order.pool) {
		rdmatensor_regions_drop(&table->order.pool->regions, &table->order.use);
		rdmatensor_pool_put(table->order.pool);
	}
	kvfree(table->sources);
	kfree(table);
}

void rdmatensor_table_put(struct rdmatensor_table *table)
{
	might_sleep();
	kref_put(&table->ref, table_release);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_table_put);

void rdmatensor_table_set_remote(struct rdmatensor_source *source,
				 const struct rdmatensor_channel *channel,
				 struct rdmatensor_readers *readers,
				 struct rdmatensor_lookup_result *result)
{
	source->row_start = result->info.row_start;
	source->row_end = result->info.row_end;
	source->stride = result->info.stride;
	source->channel = channel->id;
	strscpy(source->worker, channel->worker, sizeof(source->worker));
	source->readers = readers;
	source->plan = (struct rdmatensor_plan_source) {
		.row_start = result->info.row_start,
		.addr = result->addr,
		.stride = result->info.stride,
		.seg_shift = result->seg_shift,
	};
	source->rkeys = result->rkeys;
	result->rkeys = NULL;
}

void rdmatensor_table_set_own(struct rdmatensor_source *source, struct rdmatensor_export *export,
			      const char *worker)
{
	source->row_start = export->info.row_start;
	source->row_end = export->info.row_end;
	source->stride = export->info.stride;
	source->channel = RDMATENSOR_CHANNEL_SELF;
	strscpy(source->worker, worker, sizeof(source->worker));
	source->export = export;
	source->pool = export->pool;
	source->offset = export->offset;
}

int rdmatensor_table_set_cache(struct rdmatensor_table *table, u32 i,
			       const struct rdmatensor_table_cache *cache,
			       struct rdmatensor_pool *pool)
{
	struct rdmatensor_source *source = &table->sources[table->nr_sources + i];
	u64 stride = cache->stride ?: table->row_bytes, bytes;
	int ret;

	if (cache->__reserved || cache->row_start >= cache->row_end ||
	    stride < table->row_bytes ||
	    check_mul_overflow(cache->row_end - cache->row_start - 1, stride, &bytes) ||
	    check_add_overflow(bytes, (u64)table->row_bytes, &bytes))
		return -EINVAL;
	if (!rdmatensor_pool_reachable(pool))
		return -EOPNOTSUPP;
	ret = rdmatensor_regions_hold(&pool->regions, &source->use, cache->offset, bytes, false);
	if (ret)
		return ret;
	source->row_start = cache->row_start;
	source->row_end = cache->row_end;
	source->stride = stride;
	source->channel = RDMATENSOR_CHANNEL_SELF;
	source->pool = pool;
	source->offset = cache->offset;
	return 0;
}

int rdmatensor_table_set_order(struct rdmatensor_table *table, struct rdmatensor_pool *pool,
			       u64 offset, u64 nr, bool wide)
{
	struct rdmatensor_order *order = &table->order;
	u64 bytes;
	int ret;

	/* Entries are read where they are: none may lie across two pages */
	if (!nr || check_mul_overflow(nr, wide ? sizeof(u64) : sizeof(u32), &bytes) ||
	    !IS_ALIGNED(offset, RDMATENSOR_REGION_ALIGN))
		return -EINVAL;
	if (!rdmatensor_pool_reachable(pool))
		return -EOPNOTSUPP;
	ret = rdmatensor_regions_hold(&pool->regions, &order->use, offset, bytes, false);
	if (ret)
		return ret;
	order->pool = pool;
	order->offset = offset;
	order->nr = nr;
	order->wide = wide;
	return 0;
}

int rdmatensor_table_owner(struct rdmatensor_table *table, u32 i,
			   const struct rdmatensor_table_info *info, char *cause, size_t room)
{
	if (!i) {
		table->row_bytes = info->row_bytes;
		table->data_type = info->data_type;
		return 0;
	}
	if (table->row_bytes == info->row_bytes && table->data_type == info->data_type)
		return 0;
	snprintf(cause, room,
		 "table: rows of '%s' have %u bytes of data type %u, those of '%s' %u bytes of %u; export the same from both",
		 table->sources[0].worker, table->row_bytes, table->data_type,
		 table->sources[i].worker, info->row_bytes, info->data_type);
	return -EPROTOTYPE;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_table_owner);

static int table_compare(const void *a, const void *b)
{
	const struct rdmatensor_source *x = a, *y = b;

	if (x->row_start != y->row_start)
		return x->row_start < y->row_start ? -1 : 1;
	return x->row_end < y->row_end ? -1 : x->row_end > y->row_end;
}

/* Is every row of [from, to) in a cache? */
static bool table_cached(const struct rdmatensor_table *table, u64 from, u64 to)
{
	const struct rdmatensor_source *cache = &table->sources[table->nr_sources];
	u32 i;

	for (i = 0; i < table->nr_caches && from < to; i++, cache++)
		if (cache->row_start <= from && cache->row_end > from)
			from = cache->row_end;
	return from >= to;
}

static int table_check_owners(const struct rdmatensor_table *table, char *cause, size_t room)
{
	const struct rdmatensor_source *source = table->sources, *before = NULL;
	u64 next = 0;
	u32 i;

	for (i = 0; i < table->nr_sources; i++, before = source++) {
		if (before && source->row_start < before->row_end) {
			snprintf(cause, room,
				 "table: rows %llu..%llu are exported by both '%s' and '%s'; export each row once",
				 source->row_start, min(source->row_end, before->row_end) - 1,
				 before->worker, source->worker);
			return -ENOTUNIQ;
		}
		if (!table_cached(table, next, source->row_start)) {
			snprintf(cause, room,
				 "table: rows %llu..%llu, before those of '%s'%s%s%s, are exported by no owner that was given; name all owners, or cache these rows",
				 next, source->row_start - 1, source->worker,
				 before ? " and after those of '" : "",
				 before ? before->worker : "", before ? "'" : "");
			return -ENODATA;
		}
		next = source->row_end;
	}
	return 0;
}

int rdmatensor_table_complete(struct rdmatensor_table *table, char *cause, size_t room)
{
	struct rdmatensor_source *sources = table->sources;
	u32 i;
	int ret;

	/* A use is in a tree by its address: caches stay where they are, and come in order */
	sort(sources, table->nr_sources, sizeof(*sources), table_compare, NULL);
	for (i = 1; i < table->nr_caches; i++)
		if (sources[table->nr_sources + i].row_start <
		    sources[table->nr_sources + i - 1].row_end) {
			snprintf(cause, room,
				 "table: caches overlap or are not in the order of their rows; give them in order");
			return -ENOTUNIQ;
		}
	ret = table_check_owners(table, cause, room);
	if (ret)
		return ret;
	table->rows = sources[table->nr_sources - 1].row_end;
	if (table->nr_caches)
		table->rows = max(table->rows,
				  sources[table->nr_sources + table->nr_caches - 1].row_end);
	if (!table_cached(table, sources[table->nr_sources - 1].row_end, table->rows)) {
		snprintf(cause, room,
			 "table: rows after %llu are cached in part; cache all, or none",
			 sources[table->nr_sources - 1].row_end - 1);
		return -ENODATA;
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_table_complete);

u64 rdmatensor_table_ids(const struct rdmatensor_table *table)
{
	return table->order.pool ? table->order.nr : table->rows;
}

void rdmatensor_table_show(const struct rdmatensor_table *table,
			   struct rdmatensor_table_shown *shown)
{
	u32 i;

	*shown = (struct rdmatensor_table_shown) {
		.name_len = table->name_len,
		.row_end = table->rows,
		.row_bytes = table->row_bytes,
		.nr_owners = table->nr_sources,
	};
	memcpy(shown->name, table->name, table->name_len);
	for (i = 0; i < table->nr_sources; i++)
		if (table->sources[i].readers)
			shown->lanes_up += rdmatensor_readers_up(table->sources[i].readers);
}

static int table_compare_row(const void *key, const void *element)
{
	const struct rdmatensor_source *source = element;
	u64 row = *(const u64 *)key;

	return row < source->row_start ? -1 : row >= source->row_end;
}

int rdmatensor_table_find(const struct rdmatensor_table *table, u64 value,
			  struct rdmatensor_gather_id *id)
{
	const struct rdmatensor_order *order = &table->order;
	const struct rdmatensor_source *found = NULL;
	void *at;

	id->row = value;
	if (order->pool) {
		if (value >= order->nr)
			return -ERANGE;
		at = rdmatensor_pool_cpu(order->pool,
					 order->offset + value * (order->wide ? 8 : 4));
		/* Once: the process can write there */
		id->row = order->wide ? READ_ONCE(*(u64 *)at) : READ_ONCE(*(u32 *)at);
	}
	if (id->row >= table->rows)
		return -ERANGE;
	if (table->nr_caches)
		found = bsearch(&id->row, table->sources + table->nr_sources, table->nr_caches,
				sizeof(*found), table_compare_row);
	if (!found)
		found = bsearch(&id->row, table->sources, table->nr_sources, sizeof(*found),
				table_compare_row);
	if (!found)
		return -ERANGE;
	id->source = found - table->sources;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_table_find);
