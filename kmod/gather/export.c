// SPDX-License-Identifier: GPL-2.0
/*
 * Exports.
 *
 * The rows are pages of a pool. They are in the pool's registration, with the access that it
 * was made for, and in the export's own, for peers to read. For that one they are mapped for the
 * device to read only: an IOMMU enforces the direction. The export holds the pool and the range:
 * nothing can be fetched to it, and it cannot be freed.
 *
 * A withdrawal removes the name, then the regions. From then on a READ of the rows is an
 * access error for its sender: addresses are never reused.
 */
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "core/limits.h"
#include "gather/export.h"
#include "memory/domain.h"

void rdmatensor_exports_init(struct rdmatensor_exports *exports)
{
	spin_lock_init(&exports->lock);
	INIT_LIST_HEAD(&exports->waiters);
	hash_init(exports->by_name);
}

static u32 export_hash(const char *name, u16 name_len)
{
	return jhash(name, name_len, 0);
}

/* With the lock held */
static struct rdmatensor_export *export_look_up(struct rdmatensor_exports *exports,
						const char *name, u16 name_len)
{
	struct rdmatensor_export *export;

	lockdep_assert_held(&exports->lock);
	hash_for_each_possible(exports->by_name, export, node, export_hash(name, name_len))
		if (export->name_len == name_len && !memcmp(export->name, name, name_len))
			return export;
	return NULL;
}

/* Bytes of the pages that the rows are in; 0: they cannot be counted */
static u64 export_bytes(const struct rdmatensor_table_info *info)
{
	u64 bytes;

	if (check_mul_overflow(info->row_end - info->row_start - 1, info->stride, &bytes) ||
	    check_add_overflow(bytes, (u64)info->row_bytes, &bytes) || bytes > S64_MAX)
		return 0;
	return PAGE_ALIGN(bytes);
}

bool rdmatensor_export_wait(struct rdmatensor_exports *exports,
			    struct rdmatensor_export_waiter *waiter)
{
	bool waits;

	spin_lock_bh(&exports->lock);
	waits = !export_look_up(exports, waiter->name, waiter->name_len);
	if (waits)
		list_add_tail(&waiter->item, &exports->waiters);
	spin_unlock_bh(&exports->lock);
	return waits;
}

bool rdmatensor_export_unwait(struct rdmatensor_exports *exports,
			      struct rdmatensor_export_waiter *waiter)
{
	bool waited;

	spin_lock_bh(&exports->lock);
	waited = !list_empty(&waiter->item);
	list_del_init(&waiter->item);
	spin_unlock_bh(&exports->lock);
	return waited;
}

static void export_tell_waiters(struct rdmatensor_exports *exports,
				const struct rdmatensor_export *export)
{
	struct rdmatensor_export_waiter *waiter, *next;

	lockdep_assert_held(&exports->lock);
	list_for_each_entry_safe(waiter, next, &exports->waiters, item) {
		if (waiter->name_len != export->name_len ||
		    memcmp(waiter->name, export->name, export->name_len))
			continue;
		list_del_init(&waiter->item);
		waiter->exported(waiter);
	}
}

static int export_insert(struct rdmatensor_exports *exports, struct rdmatensor_export *export)
{
	int ret = 0;

	spin_lock_bh(&exports->lock);
	if (export_look_up(exports, export->name, export->name_len)) {
		ret = -EEXIST;
	} else {
		hash_add(exports->by_name, &export->node,
			 export_hash(export->name, export->name_len));
		export_tell_waiters(exports, export);
	}
	spin_unlock_bh(&exports->lock);
	return ret;
}

/* NULL: no memory */
static struct rdmatensor_export *export_new(const struct rdmatensor_export_args *args)
{
	struct rdmatensor_export *export;

	export = kzalloc(struct_size(export, name, args->name_len), RDMATENSOR_GFP_SPARING);
	if (!export)
		return NULL;
	kref_init(&export->ref);
	INIT_HLIST_NODE(&export->node);
	export->name_len = args->name_len;
	memcpy(export->name, args->name, args->name_len);
	export->info = args->info;
	export->pool = args->pool;
	export->offset = args->offset;
	return export;
}

struct rdmatensor_export *rdmatensor_export_create(struct rdmatensor_exports *exports,
						   struct rdmatensor_domain *domain,
						   const struct rdmatensor_export_args *args)
{
	u64 bytes = export_bytes(&args->info);
	const struct rdmatensor_span rows = {
		.offset = args->offset,
		.bytes = bytes,
		.most = RDMATENSOR_WIRE_KEYS_MAX,
	};
	struct rdmatensor_export *export;
	int ret;

	might_sleep();
	if (!bytes || !IS_ALIGNED(args->offset, PAGE_SIZE))
		return ERR_PTR(-EINVAL);
	if (args->pool->peers == RDMATENSOR_POOL_PEERS_NONE)
		return ERR_PTR(-EACCES);

	export = export_new(args);
	if (!export)
		return ERR_PTR(-ENOMEM);

	ret = rdmatensor_regions_hold(&args->pool->regions, &export->use, args->offset, bytes,
				      false);
	if (ret)
		goto out_free;

	ret = rdmatensor_registration_begin(&export->reg, domain, args->pool->memory, &rows,
					    IB_ACCESS_REMOTE_READ);
	if (ret)
		goto out_free_registration;
	/* The last row ends in the last page */
	export->info.nr_keys = export->reg.nr;
	ret = export_insert(exports, export);
	if (ret)
		goto out_unregister;
	return export;

out_unregister:
	rdmatensor_registration_end(&export->reg);
out_free_registration:
	if (!rdmatensor_registration_free(&export->reg)) {
		/* See export_release() */
		rdmatensor_pool_get(args->pool);
		return ERR_PTR(ret);
	}
	rdmatensor_regions_drop(&args->pool->regions, &export->use);
out_free:
	kfree(export);
	return ERR_PTR(ret);
}

void rdmatensor_export_withdraw(struct rdmatensor_exports *exports,
				struct rdmatensor_export *export)
{
	might_sleep();
	if (!export->reg.domain)
		return;
	/*
	 * Before the withdrawal returns: pairs with gather_copy(), which copies before it
	 * checks
	 */
	smp_store_mb(export->withdrawn, true);
	spin_lock_bh(&exports->lock);
	hash_del(&export->node);
	spin_unlock_bh(&exports->lock);
	rdmatensor_registration_end(&export->reg);
}

static void export_release(struct kref *ref)
{
	struct rdmatensor_export *export = container_of(ref, struct rdmatensor_export, ref);

	/*
	 * A device that does not forget the rows may still read them: the range stays in use,
	 * and the pool allocated
	 */
	if (!rdmatensor_registration_free(&export->reg))
		return;
	rdmatensor_regions_drop(&export->pool->regions, &export->use);
	rdmatensor_pool_put(export->pool);
	kfree(export);
}

void rdmatensor_export_put(struct rdmatensor_export *export)
{
	might_sleep();
	kref_put(&export->ref, export_release);
}

struct rdmatensor_export *rdmatensor_export_find(struct rdmatensor_exports *exports,
						 const char *name, u16 name_len)
{
	struct rdmatensor_export *export;

	spin_lock_bh(&exports->lock);
	export = export_look_up(exports, name, name_len);
	if (export)
		kref_get(&export->ref);
	spin_unlock_bh(&exports->lock);
	return export;
}

void rdmatensor_export_answer(struct rdmatensor_exports *exports, struct rdmatensor_msg *msg,
			      const char *name, u16 name_len, u32 first_key, __le32 *rkeys,
			      u32 room)
{
	struct rdmatensor_export *export;
	u32 i;

	msg->type = RDMATENSOR_WIRE_TABLE_INFO;
	spin_lock_bh(&exports->lock);
	export = export_look_up(exports, name, name_len);
	if (!export || first_key >= export->info.nr_keys) {
		msg->flags = RDMATENSOR_WIRE_F_FAILED;
		msg->error = export ? -ESTALE : -ENOENT;
	} else {
		msg->table = export->info;
		msg->table.first_key = first_key;
		msg->remote_addr = export->reg.iova;
		msg->seg_shift = export->reg.seg_shift;
		msg->nr_rkeys = min3(export->info.nr_keys - first_key, room, (u32)U16_MAX);
		for (i = 0; i < msg->nr_rkeys; i++)
			rkeys[i] = cpu_to_le32(export->reg.mrs[first_key + i].rkey);
		msg->rkeys = rkeys;
	}
	spin_unlock_bh(&exports->lock);
}
