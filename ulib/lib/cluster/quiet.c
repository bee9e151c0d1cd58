// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waiting for others that may be gone already, which is no error: by the channels that there are, all
 * at once. By one that another thread has made meanwhile a rank proves first who it is.
 */
#include <stdlib.h>

#include "cluster.h"

/* For all proofs together, each its share: few have another channel than they were reached by */
#define PROOFS_MS 4000

/* By which a rank has proven who it is, if there is a channel to it; 0: it is not waited for */
static uint32_t proven_channel(struct rdmatensor_cluster *cluster, unsigned int rank,
			       uint64_t proofs_ns, unsigned int nr_left)
{
	struct cluster_place place;
	uint64_t share_ns;
	uint32_t channel;

	if (!cluster_member_reached(cluster, rank, &place))
		return 0;
	channel = node_channel(cluster->node, place.address);
	if (!channel || channel == place.channel)
		return channel;
	/* Another thread has made a later one, which may lead to somebody else */
	place.channel = channel;
	share_ns = rdmatensor_deadline_ms(node_left_ms(proofs_ns) / nr_left);
	return cluster_is_there(cluster, rank, &place, share_ns) ? channel : 0;
}

void cluster_await_quietly(struct rdmatensor_cluster *cluster, const unsigned int *ranks,
			   unsigned int nr, const char *kind, int64_t step, uint64_t deadline_ns)
{
	struct rdmatensor_cqe *cqes = calloc(nr + 1, sizeof(*cqes));
	struct rdmatensor_op *ops = calloc(nr + 1, sizeof(*ops));
	char (*names)[TOKEN_ROOM] = calloc(nr + 1, sizeof(*names));
	uint64_t proofs_ns = cluster_earlier(deadline_ns, rdmatensor_deadline_ms(PROOFS_MS));
	struct rdmatensor_pool pool;
	unsigned int i, wanted = 0;
	uint32_t channel;

	/* There is a pool if anything was got before; without, nobody was reached */
	if (!cqes || !ops || !names ||
	    !node_pool(cluster->node, &cluster->node->landings, 0, &pool))
		goto out;
	for (i = 0; i < nr; i++) {
		channel = ranks[i] == cluster->rank ? 0 :
			  proven_channel(cluster, ranks[i], proofs_ns, nr - i);
		if (!channel)
			continue;
		cluster_call_token(cluster, kind, ranks[i], names[wanted]);
		rdmatensor_prep_fetch_alloc(&ops[wanted], channel, names[wanted], step, pool.id, 0,
					    deadline_ns, 0);
		wanted++;
	}
	rt_run_many(cluster->node->rt, ops, cqes, wanted);
out:
	free(names);
	free(ops);
	free(cqes);
}
