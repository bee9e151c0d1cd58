// SPDX-License-Identifier: GPL-2.0
/*
 * Generations.
 *
 * A generation belongs to the domain's table of lasting tensors from the first PUBLISH for it until
 * it is over: retired, with its last tensor released. Who is told of that is the context whose
 * REVEAL replaced it, or whose WITHDRAW ended it: it is referenced until then, or until it ends.
 *
 * Its tensors are taken back by the domain's worker, after the REVEAL or WITHDRAW that has made
 * them invisible: what that costs does not depend on their number, and an entry tells its end. Of
 * what an abort or the end of a context withdraws nothing tells: these wait for the worker.
 *
 * A context that ends takes what it has not revealed with it, so that of a writer that dies readers
 * see the old generation or the new one, and never a part.
 */
#include <linux/err.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "fetch/generation.h"
#include "fetch/publication.h"

/**
 * struct generation - one, with who waits for its end
 * @base: the table's
 * @asker: of the context that is told of its end, referenced; NULL: none. Guarded by the table's
 *         lock until it is over
 * @quiet: that has no entry
 * @type: of the entry
 * @user_data: for the entry
 * @step_id: for the entry: of the operation
 */
struct generation {
	struct rdmatensor_generation base;
	struct rdmatensor_core *asker;
	bool quiet;
	u16 type;
	u64 user_data;
	s64 step_id;
};

static struct generation *to_generation(struct rdmatensor_generation *base)
{
	return container_of(base, struct generation, base);
}

struct rdmatensor_generation *rdmatensor_generation_use(struct rdmatensor_core *core, u64 group,
							s64 step_id)
{
	struct rdmatensor_lasting *lasting = core->lasting;
	struct rdmatensor_generation *spare = NULL, *generation;
	struct generation *new;
	int ret;

	/* Most find theirs */
	ret = rdmatensor_generation_join(lasting->rdv, group, step_id, core->publisher, &spare,
					 &generation);
	if (ret != -ENOMEM && ret != -ENOSPC)
		return ret ? ERR_PTR(ret) : generation;
	new = rdmatensor_should_fail() ? NULL : kzalloc(sizeof(*new), RDMATENSOR_GFP_SPARING);
	if (!new)
		return ERR_PTR(-ENOMEM);
	/* Of those that are counted, some may only wait for the worker */
	if (ret == -ENOSPC)
		rdmatensor_generations_settle(lasting);
	spare = &new->base;
	ret = rdmatensor_generation_join(lasting->rdv, group, step_id, core->publisher, &spare,
					 &generation);
	if (spare)
		kfree(new);
	return ret ? ERR_PTR(ret) : generation;
}

static void generation_tell(struct rdmatensor_core *core, u16 type, u64 user_data, s64 step_id)
{
	struct rdmatensor_cqe cqe = {
		.user_data = user_data,
		.type = type,
		.step_id = step_id,
	};

	rdmatensor_ring_complete(&core->ring, &cqe);
}

void rdmatensor_generation_tell(struct rdmatensor_generation *base)
{
	struct generation *generation = to_generation(base);

	if (!rdmatensor_generation_told(base))
		return;
	if (generation->asker) {
		if (!generation->quiet)
			generation_tell(generation->asker, generation->type,
					generation->user_data, generation->step_id);
		rdmatensor_core_put(generation->asker);
	}
	kfree(generation);
}

/* A REVEAL or WITHDRAW, for rdmatensor_generation_reveal() and _withdraw() */
struct generation_asker {
	struct rdmatensor_core *core;
	const struct rdmatensor_generation_args *args;
	u16 type;
};

static void generation_mark(struct rdmatensor_generation *base, void *arg)
{
	struct generation *generation = to_generation(base);
	const struct generation_asker *asker = arg;
	const struct rdmatensor_generation_args *args = asker->args;

	generation->asker = asker->core;
	generation->quiet = !args->user_data;
	generation->type = asker->type;
	generation->user_data = args->user_data ? *args->user_data : 0;
	generation->step_id = args->step_id;
}

static void generation_retire_later(struct rdmatensor_lasting *lasting)
{
	queue_work(system_unbound_wq, &lasting->retire);
}

static void generation_retire(struct work_struct *work)
{
	struct rdmatensor_lasting *lasting = container_of(work, struct rdmatensor_lasting, retire);
	struct rdmatensor_generation *generation;
	LIST_HEAD(released);
	unsigned int nr;
	bool walked;

	rdmatensor_hold("retire");
	/* And no more, for there may be callers that wait for this run's end */
	nr = rdmatensor_generation_nr_to_walk(lasting->rdv);
	while (nr) {
		generation = rdmatensor_generation_retire(lasting->rdv, &released, &walked);
		if (!generation)
			break;
		rdmatensor_publication_release_list(&released);
		if (walked) {
			nr--;
			rdmatensor_generation_put(lasting->rdv, generation);
			rdmatensor_generation_tell(generation);
		}
		cond_resched();
	}
	if (rdmatensor_generation_nr_to_walk(lasting->rdv))
		generation_retire_later(lasting);
}

/* What a REVEAL or WITHDRAW holds until its entry. Return: 0, -EAGAIN */
static int generation_ask(struct rdmatensor_core *core,
			  const struct rdmatensor_generation_args *args)
{
	int ret = args->user_data ? rdmatensor_ring_reserve(&core->ring, 1) : 0;

	if (!ret)
		rdmatensor_core_get(core);
	return ret;
}

/* There is nothing to wait for: @error, or the entry at once. Return: @error */
static int generation_answer(struct rdmatensor_core *core,
			     const struct rdmatensor_generation_args *args, int error)
{
	if (args->user_data && error)
		rdmatensor_ring_unreserve(&core->ring, 1);
	else if (args->user_data)
		generation_tell(core, RDMATENSOR_CQE_REVEAL, *args->user_data, args->step_id);
	rdmatensor_core_put(core);
	return error;
}

int rdmatensor_reveal(struct rdmatensor_core *core, const struct rdmatensor_generation_args *args)
{
	struct generation_asker asker = {
		.core = core, .args = args, .type = RDMATENSOR_CQE_REVEAL,
	};
	struct rdmatensor_lasting *lasting = core->lasting;
	LIST_HEAD(matches);
	int ret;

	ret = generation_ask(core, args);
	if (ret)
		return ret;
	ret = rdmatensor_generation_reveal(lasting->rdv, args->group, args->step_id,
					   core->publisher, generation_mark, &asker);
	if (ret > 0)
		generation_retire_later(lasting);
	else
		ret = generation_answer(core, args, ret);
	if (ret < 0)
		return ret;
	rdmatensor_hold("reveal");
	rdmatensor_rendezvous_wake(lasting->rdv, &matches);
	rdmatensor_rendezvous_work_off_many(&matches);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_reveal);

int rdmatensor_withdraw_generation(struct rdmatensor_core *core,
				   const struct rdmatensor_generation_args *args)
{
	struct generation_asker asker = {
		.core = core, .args = args, .type = RDMATENSOR_CQE_WITHDRAW,
	};
	int ret;

	ret = generation_ask(core, args);
	if (ret)
		return ret;
	ret = rdmatensor_generation_withdraw(core->lasting->rdv, args->group, args->step_id,
					     core->publisher, generation_mark, &asker);
	if (ret)
		return generation_answer(core, args, ret);
	generation_retire_later(core->lasting);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_withdraw_generation);

void rdmatensor_generations_abort_step(struct rdmatensor_core *core, s64 step_id)
{
	if (!rdmatensor_generation_withdraw_hidden(core->lasting->rdv, core->publisher, &step_id))
		return;
	rdmatensor_hold("hidden_withdrawn");
	generation_retire_later(core->lasting);
}

void rdmatensor_generations_settle(struct rdmatensor_lasting *lasting)
{
	might_sleep();
	/* Whoever has withdrawn some may not have come as far as to queue it */
	generation_retire_later(lasting);
	flush_work(&lasting->retire);
}

void rdmatensor_generations_init(struct rdmatensor_lasting *lasting)
{
	INIT_WORK(&lasting->retire, generation_retire);
}

void rdmatensor_generations_stop(struct rdmatensor_lasting *lasting)
{
	cancel_work_sync(&lasting->retire);
}

void rdmatensor_generations_destroy(struct rdmatensor_lasting *lasting)
{
	struct rdmatensor_generation *generation;

	while ((generation = rdmatensor_generation_drain(lasting->rdv)))
		kfree(to_generation(generation));
}

/* Those that a context which ends has asked for */
struct generation_forget {
	struct rdmatensor_core *core;
	unsigned int nr;
	unsigned int entries;
};

static void generation_forget(struct rdmatensor_generation *base, void *arg)
{
	struct generation *generation = to_generation(base);
	struct generation_forget *forget = arg;

	if (generation->asker != forget->core)
		return;
	generation->asker = NULL;
	forget->nr++;
	forget->entries += !generation->quiet;
}

bool rdmatensor_generations_leave(struct rdmatensor_lasting *lasting,
				  struct rdmatensor_core *core)
{
	struct generation_forget forget = { .core = core };
	bool silent;

	silent = rdmatensor_generation_withdraw_hidden(lasting->rdv, core->publisher, NULL);
	rdmatensor_generation_each(lasting->rdv, generation_forget, &forget);
	if (forget.entries)
		rdmatensor_ring_unreserve(&core->ring, forget.entries);
	silent |= forget.nr;
	while (forget.nr--)
		rdmatensor_core_put(core);
	return silent;
}
