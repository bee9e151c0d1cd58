// SPDX-License-Identifier: GPL-2.0
/*
 * Lasting tensors.
 *
 * A lasting publication belongs to the domain's table, and to no context: it holds its pool and its
 * range, and no core. It ends by a WITHDRAW of any context of the domain, or with the domain.
 *
 * The list of publications is for those who look for them: contexts that join, and the end of a
 * context that has withdrawn one. Its lock guards who that is. It is taken within the table's.
 */
#include <linux/sched.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include "core/limits.h"
#include "fetch/generation.h"
#include "fetch/lasting.h"
#include "fetch/publication.h"

/* A WITHDRAW waits for its last reader. Few are, however many there are: they are found by this */
#define LASTING_WITHDRAWN XA_MARK_1

int rdmatensor_lasting_init(struct rdmatensor_lasting *lasting)
{
	lasting->rdv = rdmatensor_rendezvous_alloc();
	if (IS_ERR(lasting->rdv))
		return -ENOMEM;
	xa_init_flags(&lasting->offers, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	lasting->next = 0;
	atomic_set(&lasting->nr, 0);
	rdmatensor_generations_init(lasting);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lasting_init);

void rdmatensor_lasting_destroy(struct rdmatensor_lasting *lasting)
{
	LIST_HEAD(released);

	rdmatensor_generations_stop(lasting);
	rdmatensor_rendezvous_drain(lasting->rdv, &released);
	rdmatensor_publication_release_list(&released);
	rdmatensor_generations_destroy(lasting);
	WARN_ON_ONCE(!xa_empty(&lasting->offers));
	xa_destroy(&lasting->offers);
	rdmatensor_rendezvous_free(lasting->rdv);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lasting_destroy);

void rdmatensor_lasting_join(struct rdmatensor_lasting *lasting, struct rdmatensor_core *core)
{
	core->lasting = lasting;
	rdmatensor_rendezvous_join(core->rdv, lasting->rdv);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lasting_join);

/* The next publication whose WITHDRAW is @core's. From here on it is nobody's */
static bool lasting_forget(struct rdmatensor_lasting *lasting, struct rdmatensor_core *core,
			   unsigned long *id)
{
	struct rdmatensor_publication *pub;
	bool quiet = false;

	xa_lock_bh(&lasting->offers);
	do {
		pub = xa_find_after(&lasting->offers, id, ULONG_MAX, LASTING_WITHDRAWN);
	} while (pub && pub->withdrawer != core);
	if (pub) {
		pub->withdrawer = NULL;
		quiet = pub->quiet;
	}
	xa_unlock_bh(&lasting->offers);
	if (pub && !quiet)
		rdmatensor_ring_unreserve(&core->ring, 1);
	return pub;
}

bool rdmatensor_lasting_leave(struct rdmatensor_lasting *lasting, struct rdmatensor_core *core)
{
	unsigned long id = 0;
	bool silent;

	rdmatensor_rendezvous_leave(core->rdv);
	silent = rdmatensor_generations_leave(lasting, core);
	while (lasting_forget(lasting, core, &id)) {
		rdmatensor_core_put(core);
		cond_resched();
	}
	core->lasting = NULL;
	return silent;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lasting_leave);

int rdmatensor_lasting_add(struct rdmatensor_lasting *lasting, struct rdmatensor_publication *pub)
{
	int ret;

	pub->lasting = lasting;
	ret = xa_alloc_cyclic_bh(&lasting->offers, &pub->lasting_id, pub, xa_limit_31b,
				 &lasting->next, RDMATENSOR_GFP_SPARING);
	if (ret < 0) {
		pub->lasting = NULL;
		return ret;
	}
	atomic_inc(&lasting->nr);
	return 0;
}

void rdmatensor_lasting_remove(struct rdmatensor_publication *pub)
{
	xa_erase_bh(&pub->lasting->offers, pub->lasting_id);
	atomic_dec(&pub->lasting->nr);
}

void rdmatensor_lasting_mark(struct rdmatensor_publication *pub, struct rdmatensor_core *core,
			     const u64 *user_data)
{
	xa_lock(&pub->lasting->offers);
	pub->withdrawing = true;
	pub->withdrawer = core;
	pub->quiet = !user_data;
	pub->withdraw_user_data = user_data ? *user_data : 0;
	__xa_set_mark(&pub->lasting->offers, pub->lasting_id, LASTING_WITHDRAWN);
	xa_unlock(&pub->lasting->offers);
}

/* True: it has been published by that one, and notes that it is offered no more */
static bool lasting_retire(struct rdmatensor_tensor *tensor, u64 publisher)
{
	struct rdmatensor_publication *pub = to_publication(tensor);

	if (pub->publisher != publisher)
		return false;
	WRITE_ONCE(pub->retired, true);
	return true;
}

void rdmatensor_lasting_abort_step(struct rdmatensor_core *core, s64 step_id)
{
	if (!core->lasting)
		return;
	rdmatensor_rendezvous_retire_step(core->lasting->rdv, step_id, lasting_retire,
					  core->publisher);
	rdmatensor_generations_abort_step(core, step_id);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lasting_abort_step);

/* A publication leaves the list before it leaves its generation, which is there as long */
static bool lasting_is(const struct rdmatensor_publication *pub,
		       enum rdmatensor_generation_state state)
{
	const struct rdmatensor_generation *generation = pub->tensor.generation;

	return generation && READ_ONCE(generation->state) == state;
}

static void lasting_describe(const struct rdmatensor_publication *pub,
			     struct rdmatensor_lasting_info *info)
{
	info->name_len = pub->name_len;
	memcpy(info->name, pub->name, pub->name_len);
	info->step_id = pub->step_id;
	info->meta = pub->tensor.meta;
	info->copied = pub->buffer;
	info->pool_id = pub->pool && !pub->buffer ? pub->pool->id : 0;
	info->offset = info->pool_id ? pub->offset : 0;
	info->error = pub->tensor.failed.error;
	info->withdrawing = pub->withdrawing || lasting_is(pub, RDMATENSOR_GENERATION_RETIRED);
	info->retired = READ_ONCE(pub->retired);
	info->hidden = lasting_is(pub, RDMATENSOR_GENERATION_HIDDEN);
}

bool rdmatensor_lasting_next(struct rdmatensor_lasting *lasting, unsigned long *id,
			     struct rdmatensor_lasting_info *info)
{
	struct rdmatensor_publication *pub;

	xa_lock_bh(&lasting->offers);
	pub = xa_find_after(&lasting->offers, id, ULONG_MAX, XA_PRESENT);
	if (pub)
		lasting_describe(pub, info);
	xa_unlock_bh(&lasting->offers);
	return pub;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_lasting_next);
