// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rank, size and store that the program has itself.
 */
#include <errno.h>
#include <string.h>

#include "cluster.h"

static int find(struct rdmatensor_cluster *cluster)
{
	const struct rdmatensor_cluster_options *options = &cluster->options;
	const char *name = cluster->source->name;
	int err;

	if (!options->size || options->rank >= options->size)
		return node_fail(-ERANGE, "cluster: %s: rank %u is none of %u ranks: set the options' rank to one of 0 to size - 1",
				 name, options->rank, options->size);
	cluster->rank = options->rank;
	cluster->job = strdup("given");
	if (!cluster->job)
		return node_fail(-ENOMEM, "cluster: %s: out of memory", name);
	err = cluster_members_make(&cluster->members, name, options->size);
	return err ? err : cluster_store_open(cluster, name);
}

const struct cluster_source cluster_given = {
	.name = "given",
	.find = find,
	.publish = cluster_store_publish,
	.lookup = cluster_store_lookup,
	.leave = cluster_store_leave,
};
