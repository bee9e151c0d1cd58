/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The meta cache: what this receiver last learnt of a name's meta-data at one
 * peer. One cache a channel. An entry is made in process context when a name is
 * first fetched, so that learning, in completion context, never allocates.
 */
#ifndef RDMATENSOR_METACACHE_H
#define RDMATENSOR_METACACHE_H

#include <linux/rhashtable.h>
#include "core/tensor.h"

struct rdmatensor_metacache;
struct rdmatensor_metacache_entry;

/**
 * rdmatensor_metacache_alloc - make an empty cache
 * @max_entries: bound on names; beyond it get() gives entries that are freed
 *               with their last put() instead of being kept, and that no other
 *               get() of the same name meets
 *
 * May sleep.
 * Return: the cache, or ERR_PTR(-ENOMEM).
 */
struct rdmatensor_metacache *rdmatensor_metacache_alloc(u32 max_entries);
/* May sleep. All entries must have been put */
void rdmatensor_metacache_free(struct rdmatensor_metacache *cache);

/**
 * rdmatensor_metacache_get - the entry of a name, made if there is none
 *
 * @cache: the cache
 * @name: any bytes
 * @name_len: their number
 *
 * Process context, may sleep. Safe against concurrent get() of the same name.
 * Return: a counted entry, or ERR_PTR(-ENOMEM).
 */
struct rdmatensor_metacache_entry *
rdmatensor_metacache_get(struct rdmatensor_metacache *cache, const char *name,
			 u16 name_len);
/* Any context up to softirq */
void rdmatensor_metacache_put(struct rdmatensor_metacache *cache,
			      struct rdmatensor_metacache_entry *entry);

/*
 * Copies out what is known; false (and data_type INVALID): nothing yet. Any
 * context up to softirq, and so is learning.
 */
bool rdmatensor_metacache_read(struct rdmatensor_metacache_entry *entry,
			       struct rdmatensor_meta *meta);
void rdmatensor_metacache_learn(struct rdmatensor_metacache_entry *entry,
				const struct rdmatensor_meta *meta);
struct rdmatensor_keep;
/*
 * What the peer remembers of the destination of an entry's tensors. Process context, may
 * sleep. NULL: the entry is not kept, or there is no memory: then it is sent each time
 */
struct rdmatensor_keep *rdmatensor_metacache_keep(struct rdmatensor_metacache_entry *entry);
/* The entry's own copy of the name, lives as long as the entry is held */
const char *rdmatensor_metacache_name(const struct rdmatensor_metacache_entry *entry,
				      u16 *len);

#endif /* RDMATENSOR_METACACHE_H */
