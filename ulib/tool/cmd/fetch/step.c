// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fetches all tensors of a step, many at a time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "safetensors/safetensors.h"
#include "tool/common/context.h"
#include "tool/common/message.h"
#include "tool/common/progress.h"
#include "tool/common/store.h"

/* Operations of one submit, and error lines of one step */
#define BATCH 256
#define LINES 10

/* A tensor that has no region in the pool yet */
#define NOWHERE UINT64_MAX

/**
 * struct run - one step in progress
 * @fetch: the command
 * @step: the step's number
 * @next: tensor that is submitted next
 * @ended: tensors that have ended
 * @errors: of them, with an error
 * @progress: the bar
 */
struct run {
	struct fetch *fetch;
	int64_t step;
	size_t next;
	size_t ended;
	size_t errors;
	struct progress progress;
};

int fetch_prepare(struct fetch *fetch)
{
	struct rdmatensor_query query;
	uint64_t total = 0;
	size_t i;
	int err;

	err = rdmatensor_query(fetch->rt, &query);
	if (err)
		return failed("query: %s", strerror(-err));
	/* Each fetch in flight has a place in the ring, and so has the end of the channel */
	if (fetch->in_flight > (int64_t)query.ring_entries - 1)
		fetch->in_flight = query.ring_entries - 1;
	fetch->offsets = calloc(fetch->file->nr + 1, sizeof(*fetch->offsets));
	if (!fetch->offsets)
		return failed("out of memory");
	for (i = 0; i < fetch->file->nr; i++)
		if (__builtin_add_overflow(total, align_region(fetch->file->tensors[i].bytes),
					   &total) || total > INT64_MAX)
			return failed("pool for %zu tensors: they are larger than any memory: take fewer at once",
				      fetch->file->nr);
	if (!total)
		total = 1;
	if (fetch->alloc) {
		/* The kernel allocates the regions, and needs some space for that */
		err = rdmatensor_pool_create(fetch->rt, total + total / 8,
					     &fetch->store.pool);
		if (err)
			return failed("pool of %" PRIu64 " bytes: %s", total,
				      strerror(-err));
	} else {
		err = store_create_of(fetch->rt, fetch->memory, 1, total,
				      RDMATENSOR_POOL_PEERS_WRITE, &fetch->store);
		if (err)
			return err;
	}
	total = fetch->store.offset;
	for (i = 0; i < fetch->file->nr; i++) {
		fetch->offsets[i] = fetch->alloc ? NOWHERE : total;
		total += align_region(fetch->file->tensors[i].bytes);
	}
	return EXIT_OK;
}

static int run_failed(struct run *run, size_t i, const char *why)
{
	if (run->errors++ < LINES) {
		progress_end(&run->progress);
		failed("fetch tensor \"%s\", step %" PRId64 ", from %s: %s",
		       run->fetch->file->tensors[i].name, run->step,
		       run->fetch->peer, why);
	}
	return EXIT_FAILED;
}

static bool is_as_expected(const struct st_tensor *tensor,
			   const struct rdmatensor_cqe *cqe)
{
	return cqe->flags & RDMATENSOR_CQE_META &&
	       cqe->data_type == tensor->data_type &&
	       cqe->tensor_bytes == tensor->bytes &&
	       cqe->ndims == tensor->ndims &&
	       !memcmp(cqe->dims, tensor->dims,
		       tensor->ndims * sizeof(tensor->dims[0]));
}

static void end_one(struct run *run, const struct rdmatensor_cqe *cqe)
{
	size_t i = (size_t)cqe->user_data;
	char text[RDMATENSOR_STATUS_ROOM], why[RDMATENSOR_STATUS_ROOM + 128];

	run->ended++;
	if (!cqe->result && run->fetch->alloc)
		run->fetch->offsets[i] = cqe->offset;
	progress_add(&run->progress, run->fetch->file->tensors[i].bytes);
	if (cqe->result) {
		snprintf(why, sizeof(why), "%s%s",
			 rdmatensor_status_text(run->fetch->rt, cqe, text, sizeof(text)),
			 fetch_remedy(cqe));
		run_failed(run, i, why);
	} else if (cqe->flags & RDMATENSOR_CQE_DEAD) {
		run_failed(run, i, "it is dead: it has no content");
	} else if (!is_as_expected(&run->fetch->file->tensors[i], cqe)) {
		run_failed(run, i, "its dtype or shape has changed: fetch again");
	}
}

static void channel_down(struct fetch *fetch, const struct rdmatensor_cqe *cqe)
{
	rdmatensor_cqe_text(cqe, fetch->down, sizeof(fetch->down));
	note("channel %u down: %s", cqe->channel, fetch->down);
}

static void reap(struct run *run)
{
	const struct rdmatensor_cqe *cqe;

	while ((cqe = rdmatensor_peek(run->fetch->rt, 0))) {
		if (cqe->type == RDMATENSOR_CQE_FETCH &&
		    cqe->user_data < run->fetch->file->nr)
			end_one(run, cqe);
		else if (cqe->type == RDMATENSOR_CQE_CHANNEL_DOWN)
			channel_down(run->fetch, cqe);
		rdmatensor_advance(run->fetch->rt, 1);
	}
}

static unsigned int fill(const struct run *run, struct rdmatensor_op *ops)
{
	const struct fetch *fetch = run->fetch;
	uint64_t deadline = fetch_deadline(fetch);
	size_t room = (size_t)fetch->in_flight - (run->next - run->ended);
	size_t left = fetch->file->nr - run->next;
	unsigned int n, nr;

	nr = (unsigned int)(left < room ? left : room);
	if (nr > BATCH)
		nr = BATCH;
	for (n = 0; n < nr; n++) {
		size_t i = run->next + n;
		const struct st_tensor *tensor = &fetch->file->tensors[i];

		if (fetch->alloc)
			rdmatensor_prep_fetch_alloc(&ops[n], fetch->channel,
						    tensor->name, run->step,
						    fetch->store.pool.id,
						    tensor->bytes, deadline, i);
		else
			rdmatensor_prep_fetch(&ops[n], fetch->channel,
					      tensor->name, run->step,
					      fetch->store.pool.id,
					      fetch->offsets[i], tensor->bytes,
					      deadline, i);
	}
	return nr;
}

/*
 * Number of completions that a submit of @nr waits for, so that the next submit replaces
 * several; 0 if there is room for more
 */
static unsigned int wait_for(const struct run *run, unsigned int nr)
{
	size_t flying = run->next + nr - run->ended;
	size_t most = (size_t)run->fetch->in_flight, part = most / 4;

	if (flying < most && run->next + nr < run->fetch->file->nr)
		return 0;
	if (part < 1)
		part = 1;
	return (unsigned int)(part < flying ? part : flying);
}

/* The operation that follows those that were submitted is refused */
static int submit_failed(struct run *run, int err)
{
	char why[512];

	/* The end of the channel, too, is in the ring */
	reap(run);
	fetch_refusal(run->fetch, err, why, sizeof(why));
	return run_failed(run, run->next < run->fetch->file->nr ? run->next : 0, why);
}

static int fetch_all(struct run *run)
{
	struct rdmatensor_op ops[BATCH];
	struct fetch *fetch = run->fetch;
	unsigned int nr, done;
	int err;

	while (run->ended < fetch->file->nr) {
		nr = fill(run, ops);
		err = rdmatensor_submit(fetch->rt, ops, nr, wait_for(run, nr),
					0, &done);
		run->next += done;
		/* An error other than -EAGAIN is final for the operation that follows */
		if (err && err != -EINTR &&
		    !(err == -EAGAIN && run->next > run->ended))
			return submit_failed(run, err);
		if (err == -EAGAIN)
			context_wait(fetch->rt, 1, 0);
		reap(run);
	}
	return run->errors ? EXIT_FAILED : EXIT_OK;
}

/* The bytes of the step before must not pass for those of this step */
static void clear(struct fetch *fetch)
{
	struct rdmatensor_op op;
	size_t i;

	memset(fetch->store.pool.base, 0, fetch->store.pool.bytes);
	for (i = 0; fetch->alloc && i < fetch->file->nr; i++) {
		if (fetch->offsets[i] == NOWHERE)
			continue;
		rdmatensor_prep_free(&op, fetch->store.pool.id,
				     fetch->offsets[i]);
		rdmatensor_submit(fetch->rt, &op, 1, 0, 0, NULL);
		fetch->offsets[i] = NOWHERE;
	}
}

int fetch_step(struct fetch *fetch, int64_t step, struct step_result *result)
{
	uint64_t before[RDMATENSOR_STAT_NR];
	struct run run = { .fetch = fetch, .step = step };
	uint64_t began;
	unsigned int i;
	int err;

	if (step != fetch->first_step)
		clear(fetch);
	if (context_counters(fetch->rt, before))
		return EXIT_FAILED;
	progress_begin(&run.progress, "fetching", fetch->file->data_bytes);
	began = rdmatensor_now_ns();
	err = fetch_all(&run);
	result->seconds = (double)(rdmatensor_now_ns() - began) / 1e9;
	progress_end(&run.progress);
	if (run.errors > LINES)
		failed("and %zu more", run.errors - LINES);
	if (err)
		return err;
	result->step = step;
	if (context_counters(fetch->rt, result->counters))
		return EXIT_FAILED;
	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		result->counters[i] -= before[i];
	return EXIT_OK;
}
