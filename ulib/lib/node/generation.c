// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generations: sets of tensors that a node offers in place of each other, and gets whole.
 *
 * What is not the node's own memory is copied, and the copies belong to the generation: they are freed
 * by whoever reaps the entry of the REVEAL that has replaced it, as nobody reads them from then on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* How long a ring without room is waited for before the next attempt */
#define AGAIN_MS 10

static void free_copies(struct rdmatensor_node *node, struct node_generation *generation)
{
	unsigned int i;

	for (i = 0; i < generation->nr; i++)
		if (generation->copies[i])
			rdmatensor_node_free(node, generation->copies[i]);
}

/* Where the list has it; NULL: nowhere. With the lock held */
static struct node_generation **find(struct rdmatensor_node *node, uint64_t id)
{
	struct node_generation **at;

	for (at = &node->generations; *at && (*at)->id != id;)
		at = &(*at)->next;
	return *at ? at : NULL;
}

/* The visible one of a group, NULL: none. With the lock held */
static struct node_generation *visible(struct rdmatensor_node *node, uint64_t group)
{
	struct node_generation *generation = node->generations;

	while (generation && (generation->group != group || generation->replaced))
		generation = generation->next;
	return generation;
}

void node_generation_over(struct rdmatensor_node *node, uint64_t id)
{
	struct node_generation **at, *generation = NULL;

	pthread_mutex_lock(&node->lock);
	at = find(node, id);
	if (at) {
		generation = *at;
		*at = generation->next;
	}
	pthread_mutex_unlock(&node->lock);
	if (!generation)
		return;
	free_copies(node, generation);
	free(generation);
}

void node_generations_end(struct rdmatensor_node *node)
{
	struct node_generation *generation;

	while ((generation = node->generations)) {
		node->generations = generation->next;
		free(generation);
	}
}

/* Memory of the node's that has it, a copy if need be, which is in *copy then */
static int place(struct rdmatensor_node *node, const struct rdmatensor_tensor *tensor,
		 uint64_t bytes, void **copy, struct rdmatensor_pool *pool, uint64_t *offset)
{
	int err;

	if (node_in_place(node, tensor, bytes, pool, offset))
		return 0;
	err = node_alloc(node, &node->sources, bytes, copy);
	if (err)
		return err;
	node_copy_content(tensor, *copy, bytes);
	node_find(node, &node->sources, *copy, pool, offset);
	return 0;
}

static int prepare(struct rdmatensor_node *node, struct node_generation *generation,
		   const char *const *names, const struct rdmatensor_tensor *tensors,
		   struct rdmatensor_op *ops)
{
	const struct rdmatensor_tensor *tensor;
	struct rdmatensor_pool pool = { 0 };
	uint64_t bytes, offset = 0;
	unsigned int i;
	int err;

	for (i = 0; i < generation->nr; i++) {
		tensor = &tensors[i];
		err = node_check_offer(names[i], tensor, &bytes);
		if (!err)
			err = place(node, tensor, bytes, &generation->copies[i], &pool, &offset);
		if (err)
			return err;
		node_prep_offer(&ops[i], names[i], generation->step, tensor, bytes, &pool, offset);
		rdmatensor_prep_in_generation(&ops[i], generation->group);
	}
	return 0;
}

/* What has been hidden of it is gone when this returns, or when the device is */
static void take_back(struct rdmatensor_node *node, const struct node_generation *generation)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw_generation(&op, generation->group, generation->step, 0);
	rt_withdraw_by(node->rt, &op, 0);
}

static int hide_failed(const char *name, int64_t step, int err)
{
	if (err == -EALREADY)
		return node_fail(-EEXIST, "offer: step %" PRId64 " is visible already: offer another one",
				 step);
	return node_fail(err, "offer: \"%s\", step %" PRId64 ": %s%s", name, step, strerror(-err),
			 err == -EEXIST ? ": withdraw the offer, or offer it as another step" :
			 err == -EBUSY ? ": another process of the domain fills this step: offer another one" :
			 err == -ENOSPC ? ": peers still read too many former ones: wait for them (rdmatensor_wait_generation())" : "");
}

/* All of it, or nothing. Return: 0; a negative errno, and the line is stored */
static int hide(struct rdmatensor_node *node, const struct node_generation *generation,
		const struct rdmatensor_op *ops, const char *const *names)
{
	unsigned int at = 0, part, taken;
	int err = 0;

	while (at < generation->nr && !err) {
		part = generation->nr - at;
		if (part > RDMATENSOR_SUBMIT_MAX)
			part = RDMATENSOR_SUBMIT_MAX;
		taken = 0;
		err = rdmatensor_submit(node->rt, &ops[at], part, 0, 0, &taken);
		at += taken;
	}
	if (!err)
		return 0;
	/* Not one that is visible, or another process's */
	if (at)
		take_back(node, generation);
	return hide_failed(names[at], generation->step, err);
}

/* Return: 0; a negative errno, and the line is stored */
static int reveal(struct rdmatensor_node *node, const struct node_generation *generation,
		  uint64_t former)
{
	uint64_t deadline_ns = node_deadline(node);
	struct rdmatensor_op op;
	unsigned int none;
	uint32_t head;
	int err;

	rdmatensor_prep_reveal(&op, generation->group, generation->step, former);
	do {
		head = rt_ring_head(&node->rt->ring);
		node_reap(node);
		err = rdmatensor_submit(node->rt, &op, 1, 0, 0, NULL);
		if (err != -EAGAIN)
			break;
		if (rt_submit_until(node->rt, NULL, 0, head + 1, rdmatensor_deadline_ms(AGAIN_MS),
				    &none) == -EINTR &&
		    __atomic_load_n(&node->interruptible, __ATOMIC_RELAXED))
			return node_interrupted("offer", "the generation");
	} while (!deadline_ns || rdmatensor_now_ns() < deadline_ns);
	if (err)
		return node_fail(err, "offer: step %" PRId64 " cannot be made visible: %s",
				 generation->step, err == -EAGAIN ? NODE_NO_ROOM : strerror(-err));
	return 0;
}

/*
 * It is hidden. Return: 0: it is visible, and the list's: *own is NULL; a negative errno, and the line
 * is stored
 */
static int take_place(struct rdmatensor_node *node, struct node_generation **own)
{
	struct node_generation *generation = *own, *former;
	uint64_t id;
	int err;

	/* Before: its entry may come, and be reaped by another thread, as soon as it is replaced */
	pthread_mutex_lock(&node->lock);
	former = visible(node, generation->group);
	id = former ? former->id : 0;
	if (former)
		former->replaced = true;
	pthread_mutex_unlock(&node->lock);

	err = reveal(node, generation, id);

	pthread_mutex_lock(&node->lock);
	if (err && former) {
		/* Nobody has ended it */
		former->replaced = false;
	} else if (!err) {
		generation->id = ++node->last_generation;
		generation->next = node->generations;
		node->generations = generation;
		*own = NULL;
	}
	pthread_mutex_unlock(&node->lock);
	return err;
}

/* Return: as take_place() */
static int offer(struct rdmatensor_node *node, struct node_generation **own,
		 const char *const *names, const struct rdmatensor_tensor *tensors)
{
	struct rdmatensor_op *ops = calloc((*own)->nr, sizeof(*ops));
	int err;

	if (!ops)
		return node_fail(-ENOMEM, "offer: out of memory");
	err = prepare(node, *own, names, tensors, ops);
	if (!err) {
		pthread_mutex_lock(&node->revealing);
		err = hide(node, *own, ops, names);
		if (!err) {
			err = take_place(node, own);
			if (err)
				take_back(node, *own);
		}
		pthread_mutex_unlock(&node->revealing);
	}
	free(ops);
	return err;
}

int rdmatensor_offer_generation(struct rdmatensor_node *node, const char *group, int64_t step,
				const char *const *names, const struct rdmatensor_tensor *tensors,
				unsigned int nr)
{
	struct node_generation *generation;
	int err;

	node_clear_error();
	if (!group[0] || !nr)
		return node_fail(-EINVAL, "offer: a generation without %s: name one", nr ? "a group" : "tensors");
	err = node_start(node, NULL);
	if (err)
		return err;
	generation = calloc(1, sizeof(*generation) + nr * sizeof(*generation->copies));
	if (!generation)
		return node_fail(-ENOMEM, "offer: out of memory");
	generation->group = rdmatensor_group(group);
	generation->step = step;
	generation->nr = nr;
	err = offer(node, &generation, names, tensors);
	if (generation)
		free_copies(node, generation);
	free(generation);
	return err;
}

static bool is_replaced_one_left(struct rdmatensor_node *node, uint64_t group)
{
	struct node_generation *generation;

	pthread_mutex_lock(&node->lock);
	generation = node->generations;
	while (generation && (generation->group != group || !generation->replaced))
		generation = generation->next;
	pthread_mutex_unlock(&node->lock);
	return generation;
}

int rdmatensor_wait_generation(struct rdmatensor_node *node, const char *group)
{
	uint64_t deadline_ns = node_deadline(node), number = rdmatensor_group(group);
	unsigned int none;
	uint32_t head;
	int err = 0;

	node_clear_error();
	if (!rdmatensor_node_handle(node))
		return 0;
	for (;;) {
		/* Before the look: what comes after it ends the wait */
		head = rt_ring_head(&node->rt->ring);
		node_reap(node);
		if (!is_replaced_one_left(node, number))
			return 0;
		if (err == -EINTR && __atomic_load_n(&node->interruptible, __ATOMIC_RELAXED))
			return node_interrupted("wait", group);
		if (err && err != -EINTR)
			break;
		err = rt_submit_until(node->rt, NULL, 0, head + 1, deadline_ns, &none);
	}
	return err == -ETIME ?
	       node_fail(-ETIMEDOUT, "wait: \"%s\": peers still read what was replaced: wait on, or end their channels",
			 group) :
	       node_fail(err, "wait: \"%s\": %s", group, strerror(-err));
}

int rdmatensor_withdraw_generation(struct rdmatensor_node *node, const char *group)
{
	uint64_t number = rdmatensor_group(group), id = 0;
	struct node_generation *generation;
	struct rdmatensor_op op;
	int64_t step = 0;
	int err = -ENOENT;

	node_clear_error();
	pthread_mutex_lock(&node->revealing);
	pthread_mutex_lock(&node->lock);
	generation = visible(node, number);
	if (generation) {
		id = generation->id;
		step = generation->step;
	}
	pthread_mutex_unlock(&node->lock);
	if (id) {
		rdmatensor_prep_withdraw_generation(&op, number, step, 0);
		err = rt_withdraw_by(node->rt, &op, node_deadline(node));
	}
	/* Another process of the domain may have ended it */
	if (!err || err == -ENOENT)
		node_generation_over(node, id);
	pthread_mutex_unlock(&node->revealing);
	if (err)
		return node_fail(err, "withdraw: generation of \"%s\": %s", group, err == -ENOENT ?
				 "it is not offered" : err == -EAGAIN ? NODE_NO_ROOM : strerror(-err));
	return 0;
}

/* What has come of an attempt that is to be made again is nobody's */
static void forget(struct rdmatensor_node *node, struct rdmatensor_tensor *tensors,
		   const struct rdmatensor_tensor *asked, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (!asked[i].data && tensors[i].data)
			rdmatensor_node_free(node, tensors[i].data);
		tensors[i] = asked[i];
	}
}

/* The first one of the newest step, then the others of that. Return: as rdmatensor_get_many() */
static int get_once(struct rdmatensor_node *node, const char *peer, const char *const *names,
		    struct rdmatensor_tensor *tensors, unsigned int nr, int64_t from)
{
	unsigned int i;
	int err;

	tensors[0].step = from;
	tensors[0].flags = RDMATENSOR_TENSOR_NEWEST;
	err = rdmatensor_get_many(node, peer, names, tensors, 1);
	if (err || nr == 1)
		return err;
	for (i = 1; i < nr; i++) {
		tensors[i].step = tensors[0].step;
		tensors[i].flags = RDMATENSOR_TENSOR_NOWAIT;
	}
	return rdmatensor_get_many(node, peer, names + 1, tensors + 1, nr - 1);
}

int rdmatensor_get_generation(struct rdmatensor_node *node, const char *peer,
			      const char *const *names, struct rdmatensor_tensor *tensors,
			      unsigned int nr, int64_t *step)
{
	uint64_t deadline_ns = node_deadline(node), former;
	struct rdmatensor_tensor *asked;
	int64_t last = INT64_MIN, found;
	bool absent = false;
	int err;

	node_clear_error();
	if (!nr)
		return node_fail(-EINVAL, "get: %s: a generation without tensors: name one", peer);
	asked = malloc(nr * sizeof(*asked));
	if (!asked)
		return node_fail(-ENOMEM, "get: %s: out of memory", peer);
	memcpy(asked, tensors, nr * sizeof(*asked));
	/* One bound for all attempts */
	former = rdmatensor_node_until(deadline_ns ? deadline_ns : UINT64_MAX);
	for (;;) {
		err = get_once(node, peer, names, tensors, nr, *step);
		found = tensors[0].step;
		/* The peer has not said that */
		if (node_guard_error())
			break;
		/* Not there, twice in the same one: it has no such tensor */
		if (err != -ESTALE && (err != -ENOENT || (absent && found == last)))
			break;
		absent = err == -ENOENT;
		last = found;
		forget(node, tensors, asked, nr);
	}
	rdmatensor_node_until(former);
	if (!err)
		*step = found;
	else
		forget(node, tensors, asked, nr);
	free(asked);
	return err;
}
