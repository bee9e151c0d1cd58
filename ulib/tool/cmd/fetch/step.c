// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fetches all tensors of a step, many at a time, each from a peer that has it. What ends because its
 * channel has gone down is fetched again, by that peer's next channel or from another peer; all
 * that has arrived stays, unless its peer has become another worker, whose content may be another.
 * What one peer cannot send, another one is asked for.
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

/* Operations of one submit, entries of one reap, and error lines of one step */
#define BATCH 256
#define ENTRIES 32
#define LINES 10

/* A tensor that has no region in the pool yet */
#define NOWHERE UINT64_MAX

/**
 * struct place - a tensor in this step
 * @peer: whom it is fetched from, or was
 * @arrived: it is there
 */
struct place {
	struct peer *peer;
	bool arrived;
};

/**
 * struct run - one step in progress
 * @fetch: the command
 * @step: the step's number
 * @places: of each tensor
 * @todo: numbers of tensors that are to be submitted, in a circle of as many as there are tensors
 * @first: where the first one is
 * @waiting: their number
 * @refused: of each peer and each tensor, whether the peer has been asked for it and cannot send it;
 *           NULL: none has
 * @parked: numbers of tensors that wait for a peer that is being connected to
 * @nr_parked: their number
 * @flying: tensors that were submitted, and have not ended
 * @errors: tensors that have ended with an error, or cannot come; then no more are asked for
 * @lines: of these, told
 * @arrivals: tensors that have arrived, twice if they were forgotten
 * @left: tensors that were not asked for, because of an error
 * @progress: the bar
 */
struct run {
	struct fetch *fetch;
	int64_t step;
	struct place *places;
	size_t *todo;
	size_t first;
	size_t waiting;
	bool *refused;
	size_t *parked;
	size_t nr_parked;
	size_t flying;
	size_t errors;
	size_t lines;
	size_t arrivals;
	size_t left;
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
	/*
	 * Each fetch in flight has a place in the ring, and so have the end of each channel and the
	 * fetch of an index by another one
	 */
	if (fetch->in_flight > (int64_t)(query.ring_entries - 2 * fetch->peers.nr))
		fetch->in_flight = query.ring_entries - 2 * (int64_t)fetch->peers.nr;
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

static int run_failed(struct run *run, size_t i, const char *from, const char *why)
{
	run->errors++;
	if (run->lines < LINES) {
		run->lines++;
		/* A bar that goes on would say that there is hope */
		progress_end(&run->progress);
		failed("fetch tensor \"%s\", step %" PRId64 ", from %s: %s",
		       run->fetch->file->tensors[i].name, run->step, from, why);
	}
	return EXIT_FAILED;
}

/* ---- what is to be fetched ---------------------------------------------------- */

static void put_last(struct run *run, size_t i)
{
	run->todo[(run->first + run->waiting++) % run->fetch->file->nr] = i;
}

/* It was taken, and is the next one again */
static void put_back(struct run *run, size_t i)
{
	size_t nr = run->fetch->file->nr;

	run->first = (run->first + nr - 1) % nr;
	run->todo[run->first] = i;
	run->waiting++;
}

static size_t take_first(struct run *run)
{
	size_t i = run->todo[run->first];

	run->first = (run->first + 1) % run->fetch->file->nr;
	run->waiting--;
	return i;
}

/* Of the tensors that @peer has refused */
static bool *refused_by(const struct run *run, const struct peer *peer)
{
	return run->refused + (size_t)(peer - run->fetch->peers.all) * run->fetch->file->nr;
}

static bool has(const struct run *run, const struct peer *peer, size_t i)
{
	return (!peer->has || peer->has[i]) && !(run->refused && refused_by(run, peer)[i]);
}

/* False: out of memory */
static bool refuse(struct run *run, const struct peer *peer, size_t i)
{
	if (!run->refused)
		run->refused = calloc(run->fetch->peers.nr, run->fetch->file->nr);
	if (run->refused)
		refused_by(run, peer)[i] = true;
	return run->refused;
}

/* The one that sends what it has, or else the one that has least to do */
static bool is_better(const struct peer *peer, const struct peer *than)
{
	if (!peer->late != !than->late)
		return !peer->late;
	return peer->flying < than->flying;
}

/*
 * Of the peers that are up and have it, the best; NULL: there is none. Another channel is tried to
 * those that are down, unless the step has failed anyway. @may: one of them can have it, now or
 * later
 */
static struct peer *choose(struct run *run, size_t i, bool *may)
{
	struct peers *peers = &run->fetch->peers;
	struct peer *peer, *best = NULL;

	*may = false;
	for (peer = peers->all; peer < peers->all + peers->nr; peer++) {
		if (!has(run, peer, i))
			continue;
		if (peer->state == PEER_DOWN && !run->errors)
			peer_again(peers, peer);
		*may |= peer->state != PEER_GIVEN_UP;
		if (peer->state == PEER_UP && (!best || is_better(peer, best)))
			best = peer;
	}
	return best;
}

/* It is told with others of the same reason */
static void miss(struct peer *peer, size_t i, enum missing_why why)
{
	if (!peer->missing[why].nr++)
		peer->missing[why].first = i;
}

/* Nobody has it any more: the last one that did says why */
static void nobody_has(struct run *run, size_t i)
{
	const struct peers *peers = &run->fetch->peers;
	struct peer *peer, *last = NULL;

	for (peer = peers->all; peer < peers->all + peers->nr; peer++)
		if (has(run, peer, i))
			last = peer;
	if (!last) {
		run_failed(run, i, run->fetch->peer, "none of the peers can send it");
		return;
	}
	run->errors++;
	miss(last, i, MISSING_DOWN);
}

/* "tensor "a"", or "3 tensors, "a" and others" */
static const char *told(const struct run *run, const struct missing *missing, char *text, size_t len)
{
	const char *name = run->fetch->file->tensors[missing->first].name;

	if (missing->nr == 1)
		snprintf(text, len, "tensor \"%s\", step %" PRId64, name, run->step);
	else
		snprintf(text, len, "%zu tensors, \"%s\" and others, step %" PRId64, missing->nr,
			 name, run->step);
	return text;
}

static void tell_missing_of(struct run *run, struct peer *peer)
{
	struct missing *down = &peer->missing[MISSING_DOWN], *late = &peer->missing[MISSING_LATE];
	char why[sizeof(peer->why) + 64], which[RDMATENSOR_NAME_MAX + 96];

	if (down->nr)
		failed("fetch %s, from %s: %s", told(run, down, which, sizeof(which)), peer->name,
		       fetch_refusal(peer, -ENOTCONN, why, sizeof(why)));
	if (late->nr)
		failed("fetch %s, from %s: not within --timeout: raise it, or check --step and --steps, if the peer does not serve step %" PRId64,
		       told(run, late, which, sizeof(which)), peer->name, run->step);
	if (peer->missing[MISSING_ASKED].nr)
		warned("%s has not sent %s, within --timeout: another PEER was asked, and this one is asked last from now on",
		       peer->name, told(run, &peer->missing[MISSING_ASKED], which, sizeof(which)));
	run->lines += down->nr + late->nr;
	memset(peer->missing, 0, sizeof(peer->missing));
}

static void tell_missing(struct run *run)
{
	struct peers *peers = &run->fetch->peers;
	struct peer *peer;

	for (peer = peers->all; peer < peers->all + peers->nr; peer++)
		tell_missing_of(run, peer);
	if (run->errors > run->lines)
		failed("and %zu more", run->errors - run->lines);
	if (run->left)
		failed("%zu more tensor%s of step %" PRId64 " %s not asked for", run->left,
		       plural(run->left), run->step, run->left == 1 ? "was" : "were");
}

/* Another peer than @but may have it, now or later */
static bool another_has(const struct run *run, size_t i, const struct peer *but)
{
	const struct peers *peers = &run->fetch->peers;
	const struct peer *peer;

	for (peer = peers->all; peer < peers->all + peers->nr; peer++)
		if (peer != but && peer->state != PEER_GIVEN_UP && has(run, peer, i))
			return true;
	return false;
}

/* The operations that wait for a peer are to be looked at again */
static void unpark(struct run *run)
{
	size_t i;

	for (i = 0; i < run->nr_parked; i++)
		put_last(run, run->parked[i]);
	run->nr_parked = 0;
}

/* ---- what has ended ----------------------------------------------------------- */

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

/* Its region is free, and it is to be fetched anew */
static void forget(struct run *run, size_t i)
{
	struct fetch *fetch = run->fetch;
	struct rdmatensor_op op;
	char why[256];
	int err;

	if (!fetch->alloc || fetch->offsets[i] == NOWHERE)
		return;
	rdmatensor_prep_free(&op, fetch->store.pool.id, fetch->offsets[i]);
	err = rdmatensor_submit(fetch->rt, &op, 1, 0, 0, NULL);
	fetch->offsets[i] = NOWHERE;
	if (err) {
		snprintf(why, sizeof(why), "its place in the pool cannot be freed: %s",
			 strerror(-err));
		run_failed(run, i, run->places[i].peer ? run->places[i].peer->name : fetch->peer,
			   why);
	}
}

/* What its peer says of it, @err and @why, is final for this peer only */
static void cannot_send(struct run *run, size_t i, int err, const char *why)
{
	struct peer *peer = run->places[i].peer;

	peer->late++;
	if (another_has(run, i, peer) && refuse(run, peer, i)) {
		note("tensor \"%s\", step %" PRId64 ", from %s: %s: another PEER is asked",
		     run->fetch->file->tensors[i].name, run->step, peer->name, why);
		if (err == -ETIMEDOUT)
			miss(peer, i, MISSING_ASKED);
		forget(run, i);
		put_last(run, i);
	} else if (err == -ETIMEDOUT) {
		run->errors++;
		miss(peer, i, MISSING_LATE);
	} else {
		run_failed(run, i, peer->name, why);
	}
}

static void arrived(struct run *run, size_t i, const struct rdmatensor_cqe *cqe)
{
	const struct st_tensor *tensor = &run->fetch->file->tensors[i];

	if (cqe->flags & RDMATENSOR_CQE_DEAD) {
		cannot_send(run, i, 0, "it is dead: it has no content");
		return;
	}
	if (!is_as_expected(tensor, cqe)) {
		cannot_send(run, i, 0, "its dtype or shape has changed: fetch again");
		return;
	}
	run->places[i].arrived = true;
	run->arrivals++;
	peer_got(run->places[i].peer, tensor->bytes);
	progress_add(&run->progress, tensor->bytes);
}

static void end_one(struct run *run, const struct rdmatensor_cqe *cqe)
{
	size_t i = (size_t)cqe->user_data;
	char text[RDMATENSOR_STATUS_ROOM], why[RDMATENSOR_STATUS_ROOM + 128];
	struct peer *peer = run->places[i].peer;

	run->flying--;
	peer->flying--;
	/* A tensor without bytes has no region: what begins at its offset is another one's */
	if (!cqe->result && run->fetch->alloc && cqe->pool_id)
		run->fetch->offsets[i] = cqe->offset;
	/* By a former channel, perhaps from a former worker: whatever it is, it is fetched again */
	if (cqe->channel != peer->channel) {
		forget(run, i);
		put_last(run, i);
		return;
	}
	if (!cqe->result) {
		arrived(run, i, cqe);
		return;
	}
	rdmatensor_status_text(run->fetch->rt, cqe, text, sizeof(text));
	if (peer->state != PEER_UP || peer_is_down(&run->fetch->peers, peer, cqe->result)) {
		peer_down(peer, text);
		put_last(run, i);
		return;
	}
	snprintf(why, sizeof(why), "%s%s", text, fetch_remedy(cqe));
	cannot_send(run, i, cqe->result, why);
}

static void channel_down(struct fetch *fetch, const struct rdmatensor_cqe *cqe)
{
	struct peer *peer = peers_find(&fetch->peers, cqe->channel);
	char text[256];

	rdmatensor_cqe_text(cqe, text, sizeof(text));
	if (peer)
		peer_down(peer, text);
}

/* Return: there were some. Threads that connect take their own entries beside it */
static bool reap(struct run *run)
{
	struct rdmatensor_cqe cqes[ENTRIES];
	size_t before = run->arrivals;
	unsigned int i, nr;
	bool any = false;

	while ((nr = rdmatensor_reap(run->fetch->rt, cqes, ENTRIES))) {
		any = true;
		for (i = 0; i < nr; i++) {
			if (cqes[i].type == RDMATENSOR_CQE_FETCH &&
			    cqes[i].user_data < run->fetch->file->nr)
				end_one(run, &cqes[i]);
			else if (cqes[i].type == RDMATENSOR_CQE_CHANNEL_DOWN)
				channel_down(run->fetch, &cqes[i]);
		}
	}
	if (run->arrivals != before)
		peers_progress(&run->fetch->peers);
	return any;
}

/* The worker that has taken the peer's place may have a model of the same names */
static void peer_is_new(void *arg, const struct peer *peer)
{
	struct run *run = arg;
	size_t i, nr = 0;

	if (run->refused)
		memset(refused_by(run, peer), 0, run->fetch->file->nr);
	for (i = 0; i < run->fetch->file->nr; i++) {
		if (run->places[i].peer != peer || !run->places[i].arrived)
			continue;
		run->places[i].arrived = false;
		run->progress.done -= run->fetch->file->tensors[i].bytes;
		forget(run, i);
		put_last(run, i);
		nr++;
	}
	if (nr) {
		progress_wipe(&run->progress);
		warned("%s was started anew: its %zu tensor%s of step %" PRId64 " that had arrived %s fetched again",
		       peer->name, nr, plural(nr), run->step, nr == 1 ? "is" : "are");
	}
}

/* ---- fetching ----------------------------------------------------------------- */

static void prep(const struct run *run, size_t i, uint64_t deadline, struct rdmatensor_op *op)
{
	const struct fetch *fetch = run->fetch;
	const struct st_tensor *tensor = &fetch->file->tensors[i];
	uint32_t channel = run->places[i].peer->channel;

	if (fetch->alloc)
		rdmatensor_prep_fetch_alloc(op, channel, tensor->name, run->step,
					    fetch->store.pool.id, tensor->bytes, deadline, i);
	else
		rdmatensor_prep_fetch(op, channel, tensor->name, run->step, fetch->store.pool.id,
				      fetch->offsets[i], tensor->bytes, deadline, i);
	slices_apply(&fetch->slices, tensor->name, op);
}

/* Operations that can be submitted now; what nobody can send ends, what somebody will waits */
static unsigned int fill(struct run *run, struct rdmatensor_op *ops)
{
	struct fetch *fetch = run->fetch;
	uint64_t deadline = fetch_deadline(fetch);
	size_t room = (size_t)fetch->in_flight - run->flying;
	unsigned int nr = 0;
	size_t i;
	bool may;

	while (run->waiting && nr < room && nr < BATCH) {
		i = take_first(run);
		run->places[i].peer = choose(run, i, &may);
		if (may && run->errors) {
			run->left++;
		} else if (run->places[i].peer) {
			run->places[i].peer->flying++;
			prep(run, i, deadline, &ops[nr++]);
		} else if (may) {
			run->parked[run->nr_parked++] = i;
		} else {
			nobody_has(run, i);
		}
	}
	return nr;
}

/* The operations from @ops on were not taken */
static void unfill(struct run *run, const struct rdmatensor_op *ops, unsigned int nr)
{
	size_t i;

	while (nr) {
		i = (size_t)ops[--nr].user_data;
		run->places[i].peer->flying--;
		put_back(run, i);
	}
}

/*
 * Number of completions that a submit of @nr waits for, so that the next submit replaces
 * several; 0 if there is room for more
 */
static unsigned int wait_for(const struct run *run, unsigned int nr)
{
	size_t flying = run->flying + nr;
	size_t most = (size_t)run->fetch->in_flight, part = most / 4;

	if (flying < most && run->waiting)
		return 0;
	/* The end of one peer's channel is not to wait for what others send */
	if (part < 1 || run->fetch->peers.nr > 1)
		part = 1;
	return (unsigned int)(part < flying ? part : flying);
}

/* The operation of tensor @i is refused. EXIT_OK: its peer is down, and it is to be fetched again */
static int refused(struct run *run, size_t i, int err)
{
	struct peer *peer = run->places[i].peer;
	char why[512];

	/* The end of the channel, too, is in the ring */
	reap(run);
	if (peer->state != PEER_UP)
		return EXIT_OK;
	if (peer_is_down(&run->fetch->peers, peer, err)) {
		peer_down(peer, strerror(-err));
		return EXIT_OK;
	}
	fetch_refusal(peer, err, why, sizeof(why));
	return run_failed(run, i, peer->name, why);
}

/*
 * Submits, and waits until something has ended; while there are threads, for them as well, which a
 * wait for the ring alone would not see
 */
static int submit(struct run *run, struct rdmatensor_op *ops, unsigned int nr)
{
	bool connecting = peers_connecting(&run->fetch->peers);
	struct fetch *fetch = run->fetch;
	unsigned int done = 0;
	int err;

	err = rdmatensor_submit(fetch->rt, ops, nr, connecting ? 0 : wait_for(run, nr), 0, &done);
	run->flying += done;
	unfill(run, ops + done, nr - done);
	/* The ring is full: of what is there, or of what is to come */
	if (err == -EAGAIN && (reap(run) || run->flying || connecting)) {
		if (!connecting && run->flying)
			context_wait(fetch->rt, 1, 0);
		err = 0;
	}
	/* Another error is final for the operation that follows */
	if (err && err != -EINTR)
		return done < nr ? refused(run, (size_t)ops[done].user_data, err) :
		       failed("fetch from %s: %s", fetch->peer, strerror(-err));
	if (connecting && !reap(run))
		peers_wait(&fetch->peers);
	reap(run);
	return EXIT_OK;
}

static int fetch_all(struct run *run)
{
	struct rdmatensor_op ops[BATCH];
	struct fetch *fetch = run->fetch;
	unsigned int nr;
	int err = EXIT_OK;
	size_t i;

	for (i = 0; i < fetch->file->nr; i++)
		put_last(run, i);
	while (!err && (run->waiting || run->nr_parked || run->flying)) {
		/* What waits for a peer is looked at when there is news, and not each time */
		if (peers_look(&fetch->peers, peer_is_new, run) || run->errors)
			unpark(run);
		nr = fill(run, ops);
		if (nr || run->flying)
			err = submit(run, ops, nr);
		else if (run->nr_parked)
			peers_wait(&fetch->peers);
	}
	return err || run->errors ? EXIT_FAILED : EXIT_OK;
}

/* The bytes of the step before must not pass for those of this step */
static void clear(struct run *run)
{
	struct fetch *fetch = run->fetch;
	size_t i;

	memset(fetch->store.pool.base, 0, fetch->store.pool.bytes);
	for (i = 0; i < fetch->file->nr; i++)
		forget(run, i);
}

static int run_step(struct run *run, struct step_result *result)
{
	struct fetch *fetch = run->fetch;
	uint64_t before[RDMATENSOR_STAT_NR];
	uint64_t began;
	unsigned int i;
	int err;

	for (i = 0; i < fetch->peers.nr; i++)
		fetch->peers.all[i].restarts = 0;
	if (run->step != fetch->first_step)
		clear(run);
	if (context_counters(fetch->rt, before))
		return EXIT_FAILED;
	progress_begin(&run->progress, "fetching", fetch->file->data_bytes);
	fetch->peers.bar = &run->progress;
	fetch->peers.step = run->step;
	began = rdmatensor_now_ns();
	err = fetch_all(run);
	result->seconds = (double)(rdmatensor_now_ns() - began) / 1e9;
	progress_end(&run->progress);
	fetch->peers.bar = NULL;
	tell_missing(run);
	if (err)
		return err;
	result->step = run->step;
	if (context_counters(fetch->rt, result->counters))
		return EXIT_FAILED;
	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		result->counters[i] -= before[i];
	return EXIT_OK;
}

int fetch_step(struct fetch *fetch, int64_t step, struct step_result *result)
{
	struct run run = { .fetch = fetch, .step = step };
	int err;

	run.places = calloc(fetch->file->nr + 1, sizeof(*run.places));
	run.todo = calloc(fetch->file->nr + 1, sizeof(*run.todo));
	run.parked = calloc(fetch->file->nr + 1, sizeof(*run.parked));
	err = run.places && run.todo && run.parked ? run_step(&run, result) :
	      failed("out of memory");
	free(run.places);
	free(run.todo);
	free(run.parked);
	free(run.refused);
	return err;
}
