// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A barrier by dissemination: in round k each rank waits for a token of the one 2^k below it, and
 * so has heard, directly or not, of all others when the rounds are over. Tokens are empty tensors
 * of a step of their own.
 *
 * A rank must not close its node before those that wait for its tokens have them: so each says when
 * it is past the rounds, and waits for those that read its tokens to say so, or to be gone, which
 * they only are when they are past them too, or have died.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster.h"

/* Binary digits of RANKS_MAX */
#define ROUNDS_MAX 15

static void kind_of(unsigned int round, char kind[24])
{
	snprintf(kind, 24, "barrier%u", round);
}

static int await_token(struct rdmatensor_cluster *cluster, unsigned int from, const char *kind,
		       int64_t step, uint64_t deadline_ns)
{
	struct rdmatensor_tensor tensor = { .step = step };
	char token[TOKEN_ROOM], said[SAID_ROOM];
	const char *name = token;
	int err;

	cluster_call_token(cluster, kind, from, token);
	err = cluster_get(cluster, from, &name, &tensor, 1, deadline_ns);
	if (err == -ETIMEDOUT)
		return node_fail(err, "cluster: %s has not come to the barrier within the timeout, or one that it waits for: look for its own error, or raise the timeout",
				 cluster_said(cluster, from, said));
	return err;
}

/* Who reads its token is reached before, so that it can be waited for in the end */
static int one_round(struct rdmatensor_cluster *cluster, unsigned int round, unsigned int nr,
		     unsigned int *reader, int64_t step, uint64_t deadline_ns)
{
	unsigned int distance = 1u << round;
	char kind[24];
	int err;

	*reader = (cluster->rank + distance) % nr;
	kind_of(round, kind);
	err = cluster_reach(cluster, *reader, false, deadline_ns);
	if (!err)
		err = cluster_offer_token(cluster, kind, step);
	return err ? err : await_token(cluster, (cluster->rank + nr - distance) % nr, kind, step,
				       deadline_ns);
}

int rdmatensor_cluster_barrier(struct rdmatensor_cluster *cluster)
{
	uint64_t deadline_ns = cluster_deadline(cluster);
	unsigned int nr = rdmatensor_cluster_size(cluster), readers[ROUNDS_MAX], round, i;
	int64_t step = ++cluster->barriers;
	char kind[24];
	int err = 0;

	node_clear_error();
	for (round = 0; !err && 1u << round < nr; round++)
		err = one_round(cluster, round, nr, &readers[round], step, deadline_ns);
	if (err)
		return err;
	err = cluster_offer_token(cluster, "past", step);
	if (err)
		return err;
	cluster_await_quietly(cluster, readers, round, "past", step, deadline_ns);
	/* All have come here, so nobody waits for anything of the former one */
	for (i = 0; i < round; i++) {
		kind_of(i, kind);
		cluster_withdraw(cluster, kind, step - 1);
	}
	cluster_withdraw(cluster, "past", step - 1);
	node_clear_error();
	return 0;
}
