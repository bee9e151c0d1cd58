// SPDX-License-Identifier: GPL-2.0
/*
 * What this receiver knows of a peer's tensors, by name.
 *
 * An entry that is kept is in the table and holds a reference of its own until
 * the cache is freed; nothing is evicted, since a name that is fetched once is
 * fetched each step. Because of that a look-up needs no lock: what it finds
 * cannot go. An entry that found no place, by the bound or because the table
 * could not grow, belongs to its getters alone; a fetch then works as if it met
 * the name for the first time. So the only error is having no memory for the
 * entry itself.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/jhash.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include "core/keep.h"
#include "core/limits.h"
#include "core/metacache.h"

struct rdmatensor_metacache {
	struct rhashtable names;
	atomic_t kept;
	u32 max_entries;
};

struct rdmatensor_metacache_entry {
	struct rhash_head node;
	refcount_t refs;
	spinlock_t lock;	/* guards meta */
	struct rdmatensor_meta meta;
	struct rdmatensor_keep *keep;	/* for who asked for it; guarded by its users */
	bool listed;	/* in the table */
	u16 name_len;
	char name[];
};

struct metacache_lookup {
	const char *name;
	u16 name_len;
};

static u32 metacache_hash_lookup(const void *data, u32 len, u32 seed)
{
	const struct metacache_lookup *lookup = data;

	return jhash(lookup->name, lookup->name_len, seed);
}

static u32 metacache_hash_entry(const void *data, u32 len, u32 seed)
{
	const struct rdmatensor_metacache_entry *entry = data;

	return jhash(entry->name, entry->name_len, seed);
}

static int metacache_compare(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct rdmatensor_metacache_entry *entry = obj;
	const struct metacache_lookup *lookup = arg->key;

	return entry->name_len != lookup->name_len ||
	       memcmp(entry->name, lookup->name, lookup->name_len);
}

static const struct rhashtable_params metacache_params = {
	.head_offset = offsetof(struct rdmatensor_metacache_entry, node),
	.hashfn = metacache_hash_lookup,
	.obj_hashfn = metacache_hash_entry,
	.obj_cmpfn = metacache_compare,
};

struct rdmatensor_metacache *rdmatensor_metacache_alloc(u32 max_entries)
{
	struct rdmatensor_metacache *cache;
	int ret;

	cache = kzalloc(sizeof(*cache), RDMATENSOR_GFP_SPARING);
	if (!cache)
		return ERR_PTR(-ENOMEM);
	ret = rhashtable_init(&cache->names, &metacache_params);
	if (ret) {
		kfree(cache);
		return ERR_PTR(ret);
	}
	cache->max_entries = min_t(u32, max_entries, INT_MAX);
	return cache;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_alloc);

static void metacache_free_entry(struct rdmatensor_metacache_entry *entry)
{
	kfree(entry->keep);
	kfree(entry);
}

static void metacache_free_kept(void *ptr, void *arg)
{
	struct rdmatensor_metacache_entry *entry = ptr;

	/* Rather leak than free what someone still reads */
	if (!WARN_ON_ONCE(refcount_read(&entry->refs) != 1))
		metacache_free_entry(entry);
}

void rdmatensor_metacache_free(struct rdmatensor_metacache *cache)
{
	rhashtable_free_and_destroy(&cache->names, metacache_free_kept, NULL);
	kfree(cache);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_free);

/* Returns the entry of the name in the table: @entry, an earlier one, or NULL */
static struct rdmatensor_metacache_entry *
metacache_keep_entry(struct rdmatensor_metacache *cache, struct rdmatensor_metacache_entry *entry,
		     const struct metacache_lookup *lookup)
{
	struct rdmatensor_metacache_entry *first;

	if (!atomic_add_unless(&cache->kept, 1, cache->max_entries))
		return NULL;

	/* The table's reference must be taken before others can find the entry */
	refcount_inc(&entry->refs);
	entry->listed = true;
	first = rhashtable_lookup_get_insert_key(&cache->names, lookup, &entry->node,
						 metacache_params);
	if (!first)
		return entry;

	entry->listed = false;
	refcount_dec(&entry->refs);
	atomic_dec(&cache->kept);
	return IS_ERR(first) ? NULL : first;
}

struct rdmatensor_metacache_entry *
rdmatensor_metacache_get(struct rdmatensor_metacache *cache, const char *name,
			 u16 name_len)
{
	struct metacache_lookup lookup = { .name = name, .name_len = name_len };
	struct rdmatensor_metacache_entry *entry, *first;

	might_sleep();

	entry = rhashtable_lookup_fast(&cache->names, &lookup, metacache_params);
	if (entry) {
		refcount_inc(&entry->refs);
		return entry;
	}

	entry = kzalloc(struct_size(entry, name, name_len), RDMATENSOR_GFP_SPARING);
	if (!entry)
		return ERR_PTR(-ENOMEM);
	refcount_set(&entry->refs, 1);
	spin_lock_init(&entry->lock);
	entry->name_len = name_len;
	memcpy(entry->name, name, name_len);

	first = metacache_keep_entry(cache, entry, &lookup);
	if (first && first != entry) {
		kfree(entry);
		entry = first;
		refcount_inc(&entry->refs);
	}
	return entry;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_get);

void rdmatensor_metacache_put(struct rdmatensor_metacache *cache,
			      struct rdmatensor_metacache_entry *entry)
{
	if (refcount_dec_and_test(&entry->refs))
		metacache_free_entry(entry);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_put);

bool rdmatensor_metacache_read(struct rdmatensor_metacache_entry *entry,
			       struct rdmatensor_meta *meta)
{
	spin_lock_bh(&entry->lock);
	*meta = entry->meta;
	spin_unlock_bh(&entry->lock);
	return meta->data_type != RDMATENSOR_DT_INVALID;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_read);

void rdmatensor_metacache_learn(struct rdmatensor_metacache_entry *entry,
				const struct rdmatensor_meta *meta)
{
	spin_lock_bh(&entry->lock);
	entry->meta = *meta;
	spin_unlock_bh(&entry->lock);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_learn);

const char *rdmatensor_metacache_name(const struct rdmatensor_metacache_entry *entry,
				      u16 *len)
{
	*len = entry->name_len;
	return entry->name;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_name);

struct rdmatensor_keep *rdmatensor_metacache_keep(struct rdmatensor_metacache_entry *entry)
{
	struct rdmatensor_keep *keep, *first;

	might_sleep();
	/* Of one that goes with its getters, nobody would know the next time */
	if (!entry->listed)
		return NULL;
	keep = READ_ONCE(entry->keep);
	if (keep)
		return keep;
	keep = kzalloc(sizeof(*keep), RDMATENSOR_GFP_SPARING);
	if (!keep)
		return NULL;
	first = cmpxchg(&entry->keep, NULL, keep);
	if (!first)
		return keep;
	kfree(keep);
	return first;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_metacache_keep);
