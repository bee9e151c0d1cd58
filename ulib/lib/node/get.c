// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Gets: fetches from a peer, all in flight at once, in rounds. What ends because its channel went
 * down is tried again in the next round, by a new channel; a fetch changes nothing at the peer, so it
 * can be repeated. What found no room in the newest pool has told its length by then: it gets a place
 * of its own, from any pool or from one more. All else is done. Nothing that a peer says makes a round
 * more: whether a channel is down is asked of the kernel, and a place is made once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/**
 * struct want - one tensor of a call
 * @name: its name
 * @tensor: the caller's
 * @error: the caller's, or NULL: how it ended
 * @need: it found no room, and is so long at most
 * @place: that was made for it, of @need
 */
struct want {
	const char *name;
	struct rdmatensor_tensor *tensor;
	int *error;
	uint64_t need;
	void *place;
};

/**
 * struct gets - one call
 * @node: the node
 * @host: of the peer, "": the node itself
 * @channel: to it
 * @deadline_ns: of all
 * @wants: what has not come yet
 * @nr: of them
 * @vain: rounds in which nothing came
 * @err: the first error that will not be tried again
 * @failed: how many tensors have such a one
 */
struct gets {
	struct rdmatensor_node *node;
	const char *host;
	uint32_t channel;
	uint64_t deadline_ns;
	struct want *wants;
	unsigned int nr;
	unsigned int vain;
	int err;
	unsigned int failed;
};

/* For words only, so it may not take long */
#define SIMILAR_MS 250
/* Then for so many times of what it took nobody is asked again */
#define SIMILAR_PAUSES 8

/*
 * What may have been meant, to be appended; "". All that a peer offers is listed for it, which must not become
 * what a program spends its time on that asks again and again for what is not there yet
 */
static const char *similar(const struct gets *gets, const char *name, char *text, size_t len)
{
	size_t at = (size_t)snprintf(text, len, "; ");
	uint64_t begun = rdmatensor_now_ns(), ended, next, mine;
	int nr;

	next = __atomic_load_n(&gets->node->words_ns, __ATOMIC_RELAXED);
	/* One thread at a time */
	mine = begun + SIMILAR_MS * UINT64_C(1000000) * (SIMILAR_PAUSES + 1);
	if (begun < next ||
	    !__atomic_compare_exchange_n(&gets->node->words_ns, &next, mine, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return "";
	nr = rdmatensor_similar(gets->node->rt, gets->channel, name,
				rdmatensor_deadline_ms(SIMILAR_MS), text + at, len - at);
	ended = rdmatensor_now_ns();
	/* Unless it took so long that another one has begun */
	__atomic_compare_exchange_n(&gets->node->words_ns, &mine,
				    ended + (ended - begun) * SIMILAR_PAUSES, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return nr > 0 ? text : "";
}

static void set_error(const struct want *want, int err)
{
	if (want->error)
		*want->error = err;
}

static const char *whose(const struct gets *gets)
{
	return *gets->host ? gets->host : "this node";
}

/* Of the first one the line says why; @cqe: its end, or why it was not taken */
static void fail(struct gets *gets, const struct want *want, const struct rdmatensor_cqe *cqe,
		 const char *text)
{
	bool late = cqe->result == -ETIMEDOUT && gets->deadline_ns && cqe->type &&
		    !(cqe->flags & RDMATENSOR_CQE_TEXT) &&
		    rdmatensor_now_ns() >= gets->deadline_ns;
	bool absent = cqe->result == -ENOENT && want->tensor->flags & RDMATENSOR_TENSOR_NOWAIT;
	char meant[RDMATENSOR_STATUS_ROOM] = "", step[40];
	/* The publisher's own -EINTR is no signal here */
	int err = cqe->result == -EINTR && !(cqe->flags & RT_CQE_SIGNAL) ? -EREMOTEIO :
		  cqe->result;

	set_error(want, err);
	if (gets->failed++)
		return;
	gets->err = err;
	if (want->tensor->flags & RDMATENSOR_TENSOR_NEWEST && want->tensor->step == INT64_MIN)
		snprintf(step, sizeof(step), "any step");
	else
		snprintf(step, sizeof(step), "step %" PRId64 "%s", want->tensor->step,
			 want->tensor->flags & RDMATENSOR_TENSOR_NEWEST ? " or newer" : "");
	node_fail(err, "get: %s/%s, %s: %s%s%s", whose(gets), want->name, step, text,
		  !late ? "" : !*gets->host ?
		  ": it does not offer it under this name and step" :
		  ": the peer has not published it under this name and step, or needs more time (rdmatensor_node_timeout())",
		  (late || absent) && !node_guard_probes() ?
		  similar(gets, want->name, meant, sizeof(meant)) : "");
}

/* Of a destination with strides: what its places take, unless the caller says it */
static int give_room(const struct gets *gets, const struct want *want)
{
	struct rdmatensor_tensor *tensor = want->tensor;

	if (!tensor->strides)
		return 0;
	if (!tensor->data || tensor->ndims > RDMATENSOR_DIMS_MAX)
		return node_fail(-EINVAL, "get: %s/%s: strides are those of memory at data, one for each of up to %d dims",
				 whose(gets), want->name, RDMATENSOR_DIMS_MAX);
	if (!tensor->bytes && !node_strides_span(tensor, &tensor->bytes))
		return node_fail(-EINVAL, "get: %s/%s: strides without bytes: say in each how many elements have a place, and the data_type",
				 whose(gets), want->name);
	return 0;
}

/*
 * Where it goes: to a place that was made for it; into the newest pool; or into the caller's memory,
 * which peers cannot write
 */
static int prepare(struct gets *gets, struct want *want, struct rdmatensor_op *op)
{
	struct rdmatensor_tensor *tensor = want->tensor;
	struct rdmatensor_node *node = gets->node;
	void *to = tensor->data;
	struct rdmatensor_pool pool, own;
	uint64_t offset, room;
	/* What comes to a place of its own is taken from there */
	bool strided = tensor->strides && !want->place && !want->need;
	int err;

	err = give_room(gets, want);
	if (err)
		return err;
	room = tensor->bytes;
	if (want->need && !want->place) {
		err = node_alloc(node, &node->landings, want->need, &want->place);
		if (err)
			return err;
	}
	if (want->place) {
		to = want->place;
		room = want->need;
	}
	while (!node_pool(node, &node->landings, 0, &pool)) {
		err = node_grow(node, &node->landings, 1, 0);
		if (err)
			return err;
	}
	if (!to)
		rdmatensor_prep_fetch_alloc(op, gets->channel, want->name, tensor->step, pool.id, 0,
					    gets->deadline_ns, 0);
	else if (node_find(node, &node->landings, to, &own, &offset) &&
		 (strided || offset % RDMATENSOR_REGION_ALIGN == 0))
		rdmatensor_prep_fetch(op, gets->channel, want->name, tensor->step, own.id, offset,
				      room, gets->deadline_ns, 0);
	else
		rdmatensor_prep_fetch_memory(op, gets->channel, want->name, tensor->step, to, room,
					     pool.id, gets->deadline_ns, 0);
	if (tensor->slice ? tensor->slice_ndims > RDMATENSOR_DIMS_MAX : tensor->slice_ndims > 0)
		return node_fail(-EINVAL, "get: %s/%s: %" PRIu64 " ranges of a slice: there are up to %d of them at slice, or none",
				 whose(gets), want->name, tensor->slice_ndims, RDMATENSOR_DIMS_MAX);
	if (tensor->slice)
		rdmatensor_prep_slice(op, tensor->slice, (uint32_t)tensor->slice_ndims);
	if (strided) {
		rdmatensor_prep_strides(op, tensor->strides, tensor->ndims);
		op->data_type = tensor->data_type;
	}
	if (tensor->flags & RDMATENSOR_TENSOR_NEWEST)
		op->flags |= RDMATENSOR_OP_NEWEST;
	if (tensor->flags & RDMATENSOR_TENSOR_NOWAIT)
		op->flags |= RDMATENSOR_OP_NOWAIT;
	return 0;
}

static void describe(struct rdmatensor_tensor *tensor, const struct rdmatensor_cqe *cqe)
{
	tensor->bytes = cqe->tensor_bytes;
	tensor->data_type = cqe->data_type;
	tensor->ndims = cqe->ndims;
	memcpy(tensor->dims, cqe->dims, sizeof(tensor->dims));
}

/* Where the node had a place for it: the entry says in which pool */
static void *place_of(struct rdmatensor_node *node, const struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_pool pool;
	unsigned int i;

	for (i = 0; node_pool(node, &node->landings, i, &pool); i++)
		if (pool.id == cqe->pool_id)
			return (char *)pool.base + cqe->offset;
	return NULL;
}

/* Into the place that was made for it: the caller's own memory has to have it */
static void hand_over(struct gets *gets, struct want *want, const struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_tensor *tensor = want->tensor;

	set_error(want, 0);
	describe(tensor, cqe);
	tensor->step = cqe->step_id;
	if (want->place && tensor->data && tensor->strides) {
		/* What is dead or empty has any dims */
		if (tensor->bytes)
			node_scatter(tensor, want->place);
	} else if (want->place && tensor->data) {
		memcpy(tensor->data, want->place, tensor->bytes);
	} else if (want->place) {
		tensor->data = want->place;
		want->place = NULL;
	} else if (!tensor->data && tensor->bytes) {
		tensor->data = place_of(gets->node, cqe);
	}
}

/* To a place of its own what comes has come without its strides: nobody has compared them */
static bool is_misfit(const struct want *want, const struct rdmatensor_cqe *cqe)
{
	return want->place && want->tensor->strides && cqe->tensor_bytes &&
	       !node_strides_fit(want->tensor, cqe->data_type, cqe->ndims, cqe->dims);
}

/* True: it is to be tried again */
static bool ended(struct gets *gets, struct want *want, const struct rdmatensor_cqe *cqe, bool down)
{
	static const struct rdmatensor_cqe misfit = { .result = -ERANGE };
	char text[RDMATENSOR_STATUS_ROOM];
	bool described = cqe->flags & RDMATENSOR_CQE_META && !(cqe->flags & RDMATENSOR_CQE_TEXT);

	if (cqe->type && !cqe->result) {
		if (is_misfit(want, cqe))
			fail(gets, want, &misfit,
			     "what comes does not fit the strides and bytes of its destination");
		else
			hand_over(gets, want, cqe);
		return false;
	}
	if (down && (!gets->deadline_ns || rdmatensor_now_ns() < gets->deadline_ns))
		return true;
	if (cqe->result == -ENOSPC && !want->need) {
		want->need = want->tensor->data ? want->tensor->bytes :
			     described ? cqe->tensor_bytes : 0;
		if (want->need)
			return true;
	}
	/* What it is to be got to again stays as it was said */
	if (described && !want->tensor->strides)
		describe(want->tensor, cqe);
	fail(gets, want, cqe, node_status_text(gets->node, cqe, text, sizeof(text)));
	return false;
}

static void free_place(struct gets *gets, struct want *want)
{
	struct rdmatensor_pool pool;
	uint64_t offset;

	if (want->place && node_find(gets->node, &gets->node->landings, want->place, &pool, &offset))
		rdmatensor_pool_free(gets->node->rt, &pool, offset);
	want->place = NULL;
}

/* Return: 0; an error that ends all of them, whose line is stored */
static int round_of_all(struct gets *gets, struct rdmatensor_op *ops, struct rdmatensor_cqe *cqes)
{
	unsigned int i, left = 0;
	uint32_t dead = 0;
	bool down, interrupted = false;
	int err;

	for (i = 0; i < gets->nr; i++) {
		err = prepare(gets, &gets->wants[i], &ops[i]);
		if (err)
			return err;
	}
	rt_run_many(gets->node->rt, ops, cqes, gets->nr);
	for (i = 0; i < gets->nr; i++) {
		interrupted |= cqes[i].flags & RT_CQE_SIGNAL;
		down = node_is_down(gets->node, gets->channel, cqes[i].result);
		if (down)
			dead = gets->channel;
		if (ended(gets, &gets->wants[i], &cqes[i], down))
			gets->wants[left++] = gets->wants[i];
		else
			free_place(gets, &gets->wants[i]);
	}
	gets->vain = left == gets->nr ? gets->vain + 1 : 0;
	gets->nr = left;
	/* A signal ends all of it */
	if (interrupted)
		return -EINTR;
	if (!left || !dead)
		return 0;
	/* A peer that ends each channel at once is not to be flooded with them */
	if (gets->vain > 1 && node_pause(gets->node, gets->vain - 1, gets->deadline_ns))
		return node_interrupted("get", gets->host);
	return node_connect(gets->node, gets->host, dead, gets->deadline_ns, &gets->channel);
}

static int run(struct gets *gets)
{
	struct rdmatensor_cqe *cqes = calloc(gets->nr, sizeof(*cqes));
	struct rdmatensor_op *ops = calloc(gets->nr, sizeof(*ops));
	unsigned int i;
	int err = -ENOMEM;

	if (!ops || !cqes) {
		node_fail(err, "get: %s: out of memory", gets->host);
		goto out;
	}
	err = gets->host[0] ? node_connect(gets->node, gets->host, 0, gets->deadline_ns,
					   &gets->channel) : 0;
	while (!err && gets->nr)
		err = round_of_all(gets, ops, cqes);
	if (gets->failed > 1)
		node_fail_more("; and %u others of this call failed", gets->failed - 1);
out:
	/* What ended all of them has ended those that were to be tried again */
	for (i = 0; i < gets->nr; i++) {
		set_error(&gets->wants[i], err);
		free_place(gets, &gets->wants[i]);
	}
	free(ops);
	free(cqes);
	/* Whose line it is */
	return gets->err && !node_guard_error() ? gets->err : err;
}

int rdmatensor_get_each(struct rdmatensor_node *node, const char *peer,
			const char *const *names, struct rdmatensor_tensor *tensors,
			unsigned int nr, int *errors)
{
	struct gets gets = {
		.node = node, .host = peer, .channel = RDMATENSOR_CHANNEL_SELF, .nr = nr,
		.deadline_ns = node_deadline(node),
	};
	struct want *wants;
	unsigned int i;
	int err;

	node_clear_error();
	if (!nr)
		return 0;
	wants = calloc(nr, sizeof(*wants));
	if (!wants) {
		err = node_fail(-ENOMEM, "get: %s: out of memory", peer);
		goto out;
	}
	for (i = 0; i < nr; i++) {
		wants[i].name = names[i];
		wants[i].tensor = &tensors[i];
		wants[i].error = errors ? &errors[i] : NULL;
	}
	gets.wants = wants;
	err = node_start(node, *peer ? peer : NULL);
	if (err)
		goto out;
	err = run(&gets);
	free(wants);
	return err;
out:
	free(wants);
	for (i = 0; errors && i < nr; i++)
		errors[i] = err;
	return err;
}

int rdmatensor_get_many(struct rdmatensor_node *node, const char *peer,
			const char *const *names, struct rdmatensor_tensor *tensors,
			unsigned int nr)
{
	return rdmatensor_get_each(node, peer, names, tensors, nr, NULL);
}

int rdmatensor_get(struct rdmatensor_node *node, const char *from,
		   struct rdmatensor_tensor *tensor)
{
	const char *slash = strchr(from, '/'), *name;
	char *host;
	int err;

	node_clear_error();
	if (!slash || !slash[1])
		return node_fail(-EINVAL, "get: \"%s\" is refused: write HOST[:PORT]/NAME", from);
	host = strndup(from, (size_t)(slash - from));
	if (!host)
		return node_fail(-ENOMEM, "get: %s: out of memory", from);
	name = slash + 1;
	err = rdmatensor_get_many(node, host, &name, tensor, 1);
	free(host);
	return err;
}
