/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Generations of a domain, as operations make them: PUBLISH adds to one, REVEAL makes it visible in
 * place of the former one of its group, WITHDRAW ends it. See core/generation.h.
 */
#ifndef RDMATENSOR_FETCH_GENERATION_H
#define RDMATENSOR_FETCH_GENERATION_H

#include "core/core.h"
#include "core/generation.h"
#include "fetch/lasting.h"

/**
 * struct rdmatensor_generation_args - a checked REVEAL, or WITHDRAW of a generation
 * @user_data: for its entry; NULL: it has none
 * @group: whose generation
 * @step_id: which one
 */
struct rdmatensor_generation_args {
	const u64 *user_data;
	u64 group;
	s64 step_id;
};

/*
 * The one that a context may add tensors to. May sleep. Return: it, with a user of the caller's;
 * ERR_PTR: as rdmatensor_generation_join(); -ENOMEM
 */
struct rdmatensor_generation *rdmatensor_generation_use(struct rdmatensor_core *core, u64 group,
							s64 step_id);
/*
 * The entries of a tensor of it that has been released, which rdmatensor_generation_put() went
 * before, have been written, or it was not added. With the last one comes that of the generation.
 * Any context up to softirq
 */
void rdmatensor_generation_tell(struct rdmatensor_generation *generation);

/**
 * rdmatensor_reveal - make what a context has published hidden visible, all at once
 * @core: of the context
 * @args: checked
 *
 * Process context.
 *
 * Return: 0: an entry comes when nothing reads the tensors of the generation that it replaces;
 * -ENOENT: the context has no such generation that is hidden; -EAGAIN: the ring is full.
 */
int rdmatensor_reveal(struct rdmatensor_core *core, const struct rdmatensor_generation_args *args);

/*
 * As rdmatensor_withdraw(), of all tensors of a generation: one that is visible, of any context of
 * the domain, or the context's own that is hidden. Return: 0, -ENOENT, -EBUSY, -EAGAIN
 */
int rdmatensor_withdraw_generation(struct rdmatensor_core *core,
				   const struct rdmatensor_generation_args *args);

/*
 * What @core has hidden of an aborted step is withdrawn: a part of it must never be revealed.
 * Nothing tells when it has been taken back, but rdmatensor_generations_settle()
 */
void rdmatensor_generations_abort_step(struct rdmatensor_core *core, s64 step_id);

/* A domain's life. No context is a member when it ends */
void rdmatensor_generations_init(struct rdmatensor_lasting *lasting);
/* Before the tensors are withdrawn, and after */
void rdmatensor_generations_stop(struct rdmatensor_lasting *lasting);
void rdmatensor_generations_destroy(struct rdmatensor_lasting *lasting);
/*
 * A context ends: what it has not revealed is withdrawn, and what it waits for has no entry.
 * Return: nothing else than rdmatensor_generations_settle() tells when some of that has been
 * taken back
 */
bool rdmatensor_generations_leave(struct rdmatensor_lasting *lasting,
				  struct rdmatensor_core *core);
/*
 * What has been withdrawn by then is taken back, but for what is being read, which is not waited
 * for. May sleep
 */
void rdmatensor_generations_settle(struct rdmatensor_lasting *lasting);

#endif /* RDMATENSOR_FETCH_GENERATION_H */
