// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * torchrun's environment: RANK and WORLD_SIZE. Addresses are in a store. Which job it is, is in
 * torchrun's variables as well. Which start of it is not: TORCHELASTIC_RESTART_COUNT counts what
 * failed on one host, and differs from host to host. A worker group that was started anew overwrites
 * the former one's addresses, of whom nobody answers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster.h"

static bool is_there(void)
{
	return cluster_env("RANK") && cluster_env("WORLD_SIZE");
}

static const char *or_none(const char *name)
{
	const char *text = cluster_env(name);

	return text ? text : "none";
}

static int find(struct rdmatensor_cluster *cluster)
{
	const char *name = cluster->source->name;
	unsigned int size = 0;
	int err;

	err = cluster_env_number(name, "WORLD_SIZE", RANKS_MAX, &size);
	if (!err)
		err = cluster_env_number(name, "RANK", UINT32_MAX, &cluster->rank);
	if (err)
		return err;
	if (cluster->rank >= size)
		return node_fail(-ERANGE, "cluster: %s: RANK=%u is none of the WORLD_SIZE=%u ranks: they are 0 to WORLD_SIZE - 1",
				 name, cluster->rank, size);
	if (asprintf(&cluster->job, "%s-%s-%s", or_none("TORCHELASTIC_RUN_ID"),
		     or_none("MASTER_ADDR"), or_none("MASTER_PORT")) < 0) {
		cluster->job = NULL;
		return node_fail(-ENOMEM, "cluster: %s: out of memory", name);
	}
	err = cluster_members_make(&cluster->members, name, size);
	return err ? err : cluster_store_open(cluster, name);
}

const struct cluster_source cluster_torchrun = {
	.name = "torchrun",
	.is_there = is_there,
	.find = find,
	.publish = cluster_store_publish,
	.lookup = cluster_store_lookup,
	.leave = cluster_store_leave,
};
