// SPDX-License-Identifier: GPL-2.0
/*
 * Publications.
 *
 * A publication belongs to the rendezvous table from PUBLISH until the table releases it.
 * It holds its pool, the range that it is read from, and, if its end has a completion entry
 * (uses >= 1), space in the ring. The caller that the table releases it to frees it.
 *
 * One with uses 0 belongs to the table of lasting tensors of the context's domain, if there is one,
 * and outlives the context (fetch/lasting.h).
 *
 * A publication that was copied holds a tensor buffer instead, and nothing of the publisher:
 * its entry is there when PUBLISH returns.
 */
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "fetch/generation.h"
#include "fetch/publication.h"

/* Bytes that are copied between two checks for signals */
#define PUBLICATION_BATCH SZ_4M

/* No read is in flight. @keep: the buffer of a copy may serve the next one of its name */
static void publication_let_go(struct rdmatensor_publication *pub, bool keep)
{
	if (pub->buffer) {
		rdmatensor_buffer_put(pub->buffer, keep);
	} else if (pub->pool) {
		rdmatensor_regions_drop(&pub->pool->regions, &pub->use);
		rdmatensor_pool_put(pub->pool);
	}
	pub->buffer = NULL;
	pub->pool = NULL;
}

static void publication_entry(const struct rdmatensor_publication *pub,
			      struct rdmatensor_core *core, u16 type, u64 user_data, int result)
{
	struct rdmatensor_cqe cqe = {
		.user_data = user_data,
		.type = type,
		.result = result,
		.step_id = pub->step_id,
	};

	rdmatensor_ring_complete(&core->ring, &cqe);
}

/* Entry of the WITHDRAW, if it has one */
static void publication_end_withdraw(struct rdmatensor_publication *pub)
{
	struct rdmatensor_core *core = pub->withdrawer;

	if (!core)
		return;
	if (!pub->quiet)
		publication_entry(pub, core, RDMATENSOR_CQE_WITHDRAW, pub->withdraw_user_data, 0);
	rdmatensor_core_put(core);
}

/* It is in no table */
static void publication_free(struct rdmatensor_publication *pub)
{
	rdmatensor_status_clear(&pub->tensor.failed);
	kfree(pub->layout);
	kfree(pub);
}

/*
 * The table has released it: no read of its memory is in flight. All that it has taken is free
 * before the process can see an entry that says so
 */
static void publication_end(struct rdmatensor_publication *pub)
{
	struct rdmatensor_generation *generation = pub->tensor.generation;
	bool own_entry = pub->tensor.uses && !pub->told;
	struct rdmatensor_core *core = pub->core;

	if (pub->lasting)
		rdmatensor_lasting_remove(pub);
	publication_let_go(pub, !(pub->withdrawing || (generation && generation->withdrawn)));
	if (generation)
		rdmatensor_generation_put(pub->lasting->rdv, generation);
	core = core ?: pub->withdrawer;
	if (core)
		rdmatensor_count(&core->counters, RDMATENSOR_STAT_RELEASED);
	if (own_entry)
		publication_entry(pub, core, RDMATENSOR_CQE_PUBLISH, pub->user_data,
				  pub->tensor.withdraw_status);
	publication_end_withdraw(pub);
}

/* What has ended, and been told of, is nobody's */
static void publication_forget(struct rdmatensor_publication *pub)
{
	struct rdmatensor_core *own = pub->core;

	if (pub->tensor.generation)
		rdmatensor_generation_tell(pub->tensor.generation);
	publication_free(pub);
	if (own)
		rdmatensor_core_put(own);
}

static void publication_release(struct rdmatensor_publication *pub)
{
	publication_end(pub);
	publication_forget(pub);
}

/* @span: from the tensor's first byte to behind its last one */
static int publication_hold_range(struct rdmatensor_publication *pub,
				  const struct rdmatensor_publish_args *args, u64 span)
{
	struct rdmatensor_regions *regions = &args->pool->regions;

	return args->layout ?
	       rdmatensor_regions_hold_sparse(regions, &pub->use, args->offset, span, false) :
	       rdmatensor_regions_hold(regions, &pub->use, args->offset, span, false);
}

static int publication_copy_to(const struct rdmatensor_buffer *buffer,
			       const struct rdmatensor_publish_args *args)
{
	struct rdmatensor_cut cut;
	u64 done, at, run;

	rdmatensor_slice_cut(NULL, args->layout, &args->meta, &cut);
	for (done = 0; done < args->meta.bytes; done += run) {
		if (fatal_signal_pending(current))
			return -EINTR;
		at = rdmatensor_cut_at(&cut, done, &run);
		run = min_t(u64, run, PUBLICATION_BATCH);
		rdmatensor_pool_copy(buffer->pool, done, args->pool, args->offset + at, run);
	}
	return 0;
}

/* The source is held while it is copied, so that no fetch writes to it */
static int publication_copy(struct rdmatensor_core *core, struct rdmatensor_publication *pub,
			    const struct rdmatensor_publish_args *args, u64 span)
{
	struct rdmatensor_buffer *buffer;
	int ret;

	ret = publication_hold_range(pub, args, span);
	if (ret)
		return ret;

	buffer = rdmatensor_buffer_take(args->copy, &core->counters, args->name, args->name_len,
					args->meta.bytes);
	if (IS_ERR(buffer)) {
		ret = PTR_ERR(buffer);
		goto out_drop;
	}
	rdmatensor_hold("publish_copy");
	ret = publication_copy_to(buffer, args);
	if (ret) {
		rdmatensor_buffer_put(buffer, true);
		goto out_drop;
	}
	rdmatensor_count(&core->counters, RDMATENSOR_STAT_PUBLISH_COPIES);
	rdmatensor_count_add(&core->counters, RDMATENSOR_STAT_COPIED_BYTES, args->meta.bytes);
	pub->buffer = buffer;
	pub->pool = buffer->pool;
	pub->offset = 0;
out_drop:
	rdmatensor_regions_drop(&args->pool->regions, &pub->use);
	return ret;
}

/* A copy has no gaps. Return: 0, -ENOMEM, or why a device cannot be given it: -EINVAL, -E2BIG */
static int publication_lay_out(struct rdmatensor_publication *pub,
			       const struct rdmatensor_publish_args *args)
{
	if (!args->layout || args->copy)
		return 0;
	/* Nor is it longer than the memory that it is read from */
	if (!rdmatensor_layout_disjoint(args->layout, &args->meta))
		return -EINVAL;
	pub->layout = kmalloc(sizeof(*pub->layout), RDMATENSOR_GFP_SPARING);
	if (!pub->layout)
		return -ENOMEM;
	pub->layout->layout = *args->layout;
	rdmatensor_slice_cut(NULL, args->layout, &args->meta, &pub->layout->cut);
	return rdmatensor_cut_runs(&pub->layout->cut) > RDMATENSOR_RUNS_MAX ? -E2BIG : 0;
}

static int publication_hold(struct rdmatensor_core *core, struct rdmatensor_publication *pub,
			    const struct rdmatensor_publish_args *args)
{
	u64 span = args->meta.bytes;
	int ret;

	if (args->layout) {
		ret = rdmatensor_layout_span(args->layout, &args->meta, &span);
		if (ret)
			return ret;
	}
	if (!args->pool)
		return 0;
	ret = publication_lay_out(pub, args);
	if (ret)
		return ret;
	if (args->copy)
		return rdmatensor_pool_reachable(args->pool) ?
		       publication_copy(core, pub, args, span) : -EOPNOTSUPP;
	ret = publication_hold_range(pub, args, span);
	if (!ret)
		pub->pool = args->pool;
	return ret;
}

/* The publisher may reuse its memory; the pool's reference is dropped */
static void publication_copied(struct rdmatensor_core *core,
			       const struct rdmatensor_publish_args *args)
{
	struct rdmatensor_cqe cqe = {
		.user_data = args->user_data,
		.type = RDMATENSOR_CQE_PUBLISH,
		.step_id = args->step_id,
	};

	if (args->pool)
		rdmatensor_pool_put(args->pool);
	if (args->uses)
		rdmatensor_ring_complete(&core->ring, &cqe);
}

/* NULL: no memory */
static struct rdmatensor_publication *publication_new(struct rdmatensor_core *core,
						      const struct rdmatensor_publish_args *args)
{
	bool lasting = !args->uses && core->lasting;
	u16 name_len = lasting ? args->name_len : 0;
	struct rdmatensor_publication *pub;

	pub = kzalloc(struct_size(pub, name, name_len), RDMATENSOR_GFP_SPARING);
	if (!pub)
		return NULL;
	pub->name_len = name_len;
	memcpy(pub->name, args->name, name_len);
	pub->core = lasting ? NULL : core;
	pub->publisher = core->publisher;
	pub->user_data = args->user_data;
	pub->step_id = args->step_id;
	pub->offset = args->offset;
	pub->share = args->share;
	pub->told = args->copy;
	pub->tensor.meta = args->meta;
	rdmatensor_status_init_copy(&pub->tensor.failed, &args->failed);
	pub->tensor.uses = args->uses;
	pub->tensor.id = args->uses ? args->user_data : 0;
	return pub;
}

/* It becomes visible with its generation. Return: 0, or that there is none which it could join */
static int publication_hide(struct rdmatensor_core *core, struct rdmatensor_publication *pub,
			    const struct rdmatensor_publish_args *args)
{
	struct rdmatensor_generation *generation;

	generation = rdmatensor_generation_use(core, args->group, args->step_id);
	if (IS_ERR(generation))
		return PTR_ERR(generation);
	pub->tensor.generation = generation;
	return 0;
}

/* From success on @pub may be freed. The pool's reference is the table's then */
static int publication_offer(struct rdmatensor_core *core, struct rdmatensor_publication *pub,
			     const struct rdmatensor_publish_args *args,
			     struct list_head *matches)
{
	int ret;

	if (pub->core) {
		rdmatensor_core_get(core);
		ret = rdmatensor_rendezvous_publish(core->rdv, &pub->tensor, args->name,
						    args->name_len, args->step_id, matches);
		if (ret)
			rdmatensor_core_put(core);
		return ret;
	}
	ret = rdmatensor_lasting_add(core->lasting, pub);
	if (ret)
		return ret;
	ret = rdmatensor_rendezvous_publish_lasting(core->rdv, &pub->tensor, args->name,
						    args->name_len, args->step_id, matches);
	if (ret)
		rdmatensor_lasting_remove(pub);
	return ret;
}

int rdmatensor_publish(struct rdmatensor_core *core,
		       const struct rdmatensor_publish_args *args)
{
	struct rdmatensor_publication *pub;
	struct rdmatensor_status late;
	LIST_HEAD(matches);
	int ret;

	pub = publication_new(core, args);
	if (!pub)
		return -ENOMEM;

	if (args->in_generation) {
		ret = publication_hide(core, pub, args);
		if (ret)
			goto out_free;
	}
	if (args->uses) {
		ret = rdmatensor_ring_reserve(&core->ring, 1);
		if (ret)
			goto out_free;
	}
	/* The table checks again: this saves a late publisher the buffer and the copy */
	if (args->copy && rdmatensor_rendezvous_step_status(core->rdv, args->step_id, &late)) {
		ret = late.error;
		rdmatensor_status_clear(&late);
		goto out_unreserve;
	}
	ret = publication_hold(core, pub, args);
	if (ret)
		goto out_unreserve;

	ret = publication_offer(core, pub, args, &matches);
	if (ret)
		goto out_drop;

	rdmatensor_count(&core->counters, RDMATENSOR_STAT_PUBLISHED);
	/* From here on pub may be freed */
	if (args->copy)
		publication_copied(core, args);
	rdmatensor_rendezvous_work_off_many(&matches);
	return 0;

out_drop:
	/* The pool's reference remains the caller's */
	if (pub->buffer)
		rdmatensor_buffer_put(pub->buffer, true);
	else if (pub->pool)
		rdmatensor_regions_drop(&pub->pool->regions, &pub->use);
out_unreserve:
	if (args->uses)
		rdmatensor_ring_unreserve(&core->ring, 1);
out_free:
	if (pub->tensor.generation) {
		rdmatensor_generation_put(core->lasting->rdv, pub->tensor.generation);
		rdmatensor_generation_tell(pub->tensor.generation);
	}
	publication_free(pub);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_publish);

/* A WITHDRAW: whose it is, and for its entry; NULL: it has none */
struct publication_asker {
	struct rdmatensor_core *core;
	const u64 *user_data;
};

/* Return: 0; -EBUSY: it is hidden, and whoever fills that generation would reveal a part of it */
static int publication_mark_withdrawing(struct rdmatensor_tensor *tensor, void *arg)
{
	struct rdmatensor_publication *pub = to_publication(tensor);
	const struct publication_asker *asker = arg;

	if (rdmatensor_generation_belongs_to_another(tensor->generation, asker->core->publisher))
		return -EBUSY;
	if (pub->lasting) {
		rdmatensor_lasting_mark(pub, asker->core, asker->user_data);
		return 0;
	}
	pub->withdrawing = true;
	pub->withdrawer = asker->core;
	pub->quiet = !asker->user_data;
	pub->withdraw_user_data = asker->user_data ? *asker->user_data : 0;
	return 0;
}

/* What the context offers itself goes first */
static int publication_withdraw(struct publication_asker *asker, const char *name, u16 name_len,
				s64 step_id, u64 id, struct rdmatensor_tensor **tensor,
				bool *released)
{
	struct rdmatensor_core *core = asker->core;
	int ret, lasting;

	ret = rdmatensor_rendezvous_withdraw(core->rdv, name, name_len, step_id, id,
					     publication_mark_withdrawing, asker, tensor,
					     released);
	if (!ret || id || !core->lasting)
		return ret;
	lasting = rdmatensor_rendezvous_withdraw(core->lasting->rdv, name, name_len, step_id, 0,
						 publication_mark_withdrawing, asker, tensor,
						 released);
	return lasting == -ENOENT ? ret : lasting;
}

int rdmatensor_withdraw(struct rdmatensor_core *core, const u64 *user_data,
			const char *name, u16 name_len, s64 step_id, u64 id)
{
	struct publication_asker asker = { .core = core, .user_data = user_data };
	struct rdmatensor_tensor *tensor;
	bool released;
	int ret;

	if (user_data) {
		ret = rdmatensor_ring_reserve(&core->ring, 1);
		if (ret)
			return ret;
	}

	/* The publication's, which may be released at once */
	rdmatensor_core_get(core);
	ret = publication_withdraw(&asker, name, name_len, step_id, id, &tensor, &released);
	if (ret) {
		rdmatensor_core_put(core);
		if (user_data)
			rdmatensor_ring_unreserve(&core->ring, 1);
		return ret;
	}
	if (released) {
		publication_end(to_publication(tensor));
		rdmatensor_hold("withdrawn");
		publication_forget(to_publication(tensor));
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_withdraw);

void rdmatensor_publication_put(struct rdmatensor_publication *pub, bool delivered,
				struct list_head *matches)
{
	struct rdmatensor_rendezvous *rdv = pub->lasting ? pub->lasting->rdv : pub->core->rdv;

	if (rdmatensor_rendezvous_put(rdv, &pub->tensor, delivered, matches))
		publication_release(pub);
}

void rdmatensor_publication_release_list(struct list_head *released)
{
	struct rdmatensor_tensor *tensor, *next;

	list_for_each_entry_safe(tensor, next, released, item) {
		list_del_init(&tensor->item);
		publication_release(to_publication(tensor));
		cond_resched();
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_publication_release_list);
