// SPDX-License-Identifier: GPL-2.0
/*
 * Destinations that are sent once: what the sender remembers, and what the receiver knows
 * that the sender remembers.
 */
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/keep.h"

/* A peer that did not remember so many times in a row has no space: send it each time */
#define KEEP_MISSED_MAX 3

void rdmatensor_kepts_init(struct rdmatensor_kepts *kepts)
{
	xa_init_flags(&kepts->slots, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	kepts->bytes = 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_kepts_init);

static size_t kept_bytes(const struct rdmatensor_kept *kept)
{
	return struct_size(kept, rkeys, kept->nr_rkeys);
}

static void kepts_drop(struct rdmatensor_kepts *kepts, struct rdmatensor_kept *kept)
{
	kepts->bytes -= kept_bytes(kept);
	rdmatensor_kept_put(kept);
}

void rdmatensor_kepts_forget(struct rdmatensor_kepts *kepts)
{
	struct rdmatensor_kept *kept;
	unsigned long slot;

	xa_for_each(&kepts->slots, slot, kept)
		kepts_drop(kepts, kept);
	xa_destroy(&kepts->slots);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_kepts_forget);

void rdmatensor_kepts_remember(struct rdmatensor_kepts *kepts, const struct rdmatensor_msg *msg)
{
	u32 slot = msg->keep % RDMATENSOR_WIRE_KEEP_SLOTS;
	struct rdmatensor_kept *kept, *old;
	size_t bytes;

	/* Whether or not the new one is remembered, no request refers to the old one any more */
	old = xa_erase_bh(&kepts->slots, slot);
	if (old)
		kepts_drop(kepts, old);

	bytes = struct_size(kept, rkeys, msg->nr_rkeys);
	if (bytes > RDMATENSOR_KEPT_BYTES - kepts->bytes || rdmatensor_should_fail())
		return;
	kept = kmalloc(bytes, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!kept)
		return;
	refcount_set(&kept->refs, 1);
	kept->number = msg->keep;
	kept->nr_parts = msg->nr_parts;
	kept->seg_shift = msg->seg_shift;
	kept->remote_addr = msg->remote_addr;
	kept->meta = msg->meta;
	kept->nr_rkeys = msg->nr_rkeys;
	if (msg->nr_rkeys)
		memcpy(kept->rkeys, msg->rkeys, msg->nr_rkeys * sizeof(*kept->rkeys));
	if (xa_is_err(xa_store_bh(&kepts->slots, slot, kept,
				  GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN))) {
		kfree(kept);
		return;
	}
	kepts->bytes += bytes;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_kepts_remember);

struct rdmatensor_kept *rdmatensor_kepts_get(struct rdmatensor_kepts *kepts, u32 number)
{
	struct rdmatensor_kept *kept = xa_load(&kepts->slots, number % RDMATENSOR_WIRE_KEEP_SLOTS);

	if (!kept || kept->number != number)
		return NULL;
	refcount_inc(&kept->refs);
	return kept;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_kepts_get);

void rdmatensor_kept_put(struct rdmatensor_kept *kept)
{
	if (refcount_dec_and_test(&kept->refs))
		kfree(kept);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_kept_put);

static bool keep_is(const struct rdmatensor_keep *keep, const struct rdmatensor_msg *msg,
		    u64 iova)
{
	return keep->told && keep->iova == iova && keep->nr_parts == msg->nr_parts &&
	       rdmatensor_meta_equal(&keep->meta, &msg->meta);
}

/* A number for the destination that is sent now. False: the peer will not remember it */
static bool keep_renew(struct rdmatensor_keep *keep, u32 *nr_keeps)
{
	if (keep->missed >= KEEP_MISSED_MAX)
		return false;
	if (keep->owned) {
		keep->number += RDMATENSOR_WIRE_KEEP_SLOTS;
		return true;
	}
	if (*nr_keeps == RDMATENSOR_WIRE_KEEP_SLOTS)
		return false;
	keep->owned = true;
	keep->number = (*nr_keeps)++;
	return true;
}

bool rdmatensor_keep_tell(struct rdmatensor_keep *keep, u32 *nr_keeps,
			  struct rdmatensor_msg *msg, u64 iova, bool may_refer)
{
	if (may_refer && keep_is(keep, msg, iova)) {
		msg->flags &= ~RDMATENSOR_WIRE_F_DEST;
		msg->flags |= RDMATENSOR_WIRE_F_KEEP;
		msg->keep = keep->number;
		return true;
	}

	keep->told = keep_renew(keep, nr_keeps);
	if (!keep->told)
		return false;
	keep->nr_parts = msg->nr_parts;
	keep->iova = iova;
	keep->meta = msg->meta;
	msg->flags |= RDMATENSOR_WIRE_F_KEEP;
	msg->keep = keep->number;
	return false;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_keep_tell);

void rdmatensor_keep_missed(struct rdmatensor_keep *keep)
{
	keep->missed = min(keep->missed + 1, KEEP_MISSED_MAX);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_keep_missed);

void rdmatensor_keep_met(struct rdmatensor_keep *keep)
{
	keep->missed = 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_keep_met);
