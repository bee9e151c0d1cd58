// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A cluster's life: which source there is, the node, what it is found by; and its end. Nothing here
 * waits for another rank.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define TIMEOUT_MS 60000
#define CONNECTS 16
/* Channels beside those to and from each rank: tools, and ranks that come again */
#define CHANNELS_SPARE 64

/* In the order in which they are looked for: who sets one of the first means it */
static const struct cluster_source *const sources[] = {
	&cluster_hosts, &cluster_torchrun, &cluster_tf_config, &cluster_pmix,
};

static const struct cluster_source *const by_number[] = {
	[RDMATENSOR_CLUSTER_PMIX] = &cluster_pmix,
	[RDMATENSOR_CLUSTER_TF_CONFIG] = &cluster_tf_config,
	[RDMATENSOR_CLUSTER_TORCHRUN] = &cluster_torchrun,
	[RDMATENSOR_CLUSTER_HOSTS] = &cluster_hosts,
	[RDMATENSOR_CLUSTER_GIVEN] = &cluster_given,
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

const char *cluster_env(const char *name)
{
	const char *text = secure_getenv(name);

	return text && *text ? text : NULL;
}

int cluster_env_number(const char *source, const char *name, uint64_t most, unsigned int *out)
{
	const char *text = cluster_env(name);
	uint64_t number;

	if (!text)
		return node_fail(-ENOENT, "cluster: %s: %s is not set", source, name);
	if (rt_parse_number(text, 0, most, &number))
		return node_fail(-EINVAL, "cluster: %s: %s=%s is refused: it is a number from 0 to %llu",
				 source, name, text, (unsigned long long)most);
	*out = (unsigned int)number;
	return 0;
}

static int choose_by_name(struct rdmatensor_cluster *cluster, const char *name)
{
	size_t i;

	for (i = 0; i < NR(sources); i++) {
		if (!strcmp(sources[i]->name, name)) {
			cluster->source = sources[i];
			return 0;
		}
	}
	return node_fail(-EINVAL, "cluster: RDMATENSOR_CLUSTER=%s is refused: it is hosts, torchrun, tf_config or pmix",
			 name);
}

static int choose(struct rdmatensor_cluster *cluster)
{
	const char *name = cluster_env("RDMATENSOR_CLUSTER");
	size_t i;

	if (cluster->options.source >= NR(by_number))
		return node_fail(-EINVAL, "cluster: the options' source %u is none: it is one of enum rdmatensor_cluster_source",
				 cluster->options.source);
	cluster->source = by_number[cluster->options.source];
	if (cluster->source)
		return 0;
	if (name)
		return choose_by_name(cluster, name);
	for (i = 0; i < NR(sources); i++) {
		if (sources[i]->is_there()) {
			cluster->source = sources[i];
			return 0;
		}
	}
	/* MPICH's and Intel MPI's launcher, which tells by PMI-1 */
	if (cluster_env("PMI_RANK"))
		return node_fail(-ENOENT, "cluster: PMI_RANK=%s is of a launcher without PMIx (MPICH's, Intel MPI's): start it by Open MPI's mpirun or srun --mpi=pmix, or name the ranks in a file of hosts: RDMATENSOR_HOSTS=FILE RDMATENSOR_RANK=$PMI_RANK",
				 cluster_env("PMI_RANK"));
	return node_fail(-ENOENT, "cluster: nothing says which rank this process is: start it by mpirun, srun --mpi=pmix or torchrun, or set TF_CONFIG or RDMATENSOR_HOSTS");
}

static bool copy_text(const char **text)
{
	if (*text)
		*text = strdup(*text);
	return *text;
}

/* Return: 0; -ENOMEM, and what was copied has to be freed all the same */
static int copy_options(struct rdmatensor_cluster_options *options)
{
	const struct rdmatensor_cluster_store *theirs = options->store;
	struct rdmatensor_cluster_store *own = NULL;
	const char *listen = options->listen, *job = options->job;
	int failed;

	options->store = NULL;
	failed = (!copy_text(&options->listen) && listen) | (!copy_text(&options->job) && job);
	if (theirs) {
		own = malloc(sizeof(*own));
		if (own)
			*own = *theirs;
		options->store = own;
		failed |= !own;
	}
	return failed ? node_fail(-ENOMEM, "cluster: out of memory") : 0;
}

static void free_options(struct rdmatensor_cluster_options *options)
{
	free((void *)(uintptr_t)options->listen);
	free((void *)(uintptr_t)options->job);
	free((void *)(uintptr_t)options->store);
}

#define FLAGS_KNOWN ((uint32_t)(RDMATENSOR_CLUSTER_QUIET | RDMATENSOR_CLUSTER_INTERRUPTIBLE))

static int take_options(struct rdmatensor_cluster *cluster,
			const struct rdmatensor_cluster_options *options, size_t size)
{
	if (options && rt_take_struct(&cluster->options, sizeof(cluster->options), options, size))
		return node_fail(-E2BIG, "cluster: the options have fields that this library does not know: install the library that the program was built with, or a later one");
	if (cluster->options.flags & ~FLAGS_KNOWN || cluster->options.__pad) {
		/* Not copied yet */
		cluster->options.listen = cluster->options.job = NULL;
		cluster->options.store = NULL;
		return node_fail(-EINVAL, "cluster: the options have flags that this library does not know: clear them before you set them");
	}
	if (!cluster->options.timeout_ms)
		cluster->options.timeout_ms = TIMEOUT_MS;
	if (!cluster->options.connects)
		cluster->options.connects = CONNECTS;
	return copy_options(&cluster->options);
}

/* The source's job, or the one of the environment, or of the options */
static int name_job(struct rdmatensor_cluster *cluster)
{
	const char *name = cluster->options.job;
	char *job;

	if (!name)
		name = cluster_env("RDMATENSOR_JOB");
	if (!name)
		return 0;
	job = strdup(name);
	if (!job)
		return node_fail(-ENOMEM, "cluster: out of memory");
	free(cluster->job);
	cluster->job = job;
	return 0;
}

/* Where this rank listens: as the options say, as others are told, or anywhere */
static int choose_listen(const struct rdmatensor_cluster *cluster, char listen[ADDRESS_ROOM])
{
	const char *known = cluster->members.at[cluster->rank].address;
	char host[ADDRESS_ROOM];
	unsigned int port;
	int err;

	err = cluster_own_override(host, &port);
	if (err < 0)
		return err;
	if (!port && known)
		cluster_split(known, host, &port);
	snprintf(listen, ADDRESS_ROOM, ":%u", port);
	return 0;
}

/* Whom the device should lead to where the rule does not decide */
static const char *choose_near(const struct rdmatensor_cluster *cluster)
{
	const char *known = cluster->members.at[cluster->rank].address;

	if (known)
		return known;
	return cluster->source == &cluster_torchrun ? cluster_env("MASTER_ADDR") : NULL;
}

static int open_node(struct rdmatensor_cluster *cluster)
{
	char listen[ADDRESS_ROOM];
	int err;

	err = choose_listen(cluster, listen);
	if (err)
		return err;
	err = node_open(&cluster->node, cluster->options.listen ? cluster->options.listen : listen,
			choose_near(cluster), 2 * cluster->members.nr + CHANNELS_SPARE);
	if (err) {
		char cause[1024];

		snprintf(cause, sizeof(cause), "%s", rdmatensor_node_error());
		return node_fail(err, "cluster: rank %u: %s", cluster->rank, cause);
	}
	rdmatensor_node_timeout(cluster->node, cluster->options.timeout_ms);
	rdmatensor_node_interruptible(cluster->node, !!(cluster->options.flags &
							RDMATENSOR_CLUSTER_INTERRUPTIBLE));
	return 0;
}

/* In the table, and where others look */
static int announce(struct rdmatensor_cluster *cluster)
{
	char address[ADDRESS_ROOM];
	unsigned int other;
	int err;

	err = cluster_own_host(cluster);
	if (err)
		return err;
	err = cluster_offer_probes(cluster);
	if (err || !cluster->source->publish)
		return err;
	cluster_join(address, cluster->own_host, rdmatensor_node_port(cluster->node));
	err = cluster_member_place(cluster, cluster->rank, address, &other);
	if (!err)
		err = cluster->source->publish(cluster, address);
	cluster->published = !err;
	return err;
}

static int prepare(struct rdmatensor_cluster *cluster,
		   const struct rdmatensor_cluster_options *options, size_t size)
{
	int err;

	err = take_options(cluster, options, size);
	if (!err)
		err = choose(cluster);
	if (!err)
		err = cluster->source->find(cluster);
	if (!err)
		err = name_job(cluster);
	if (!err)
		err = open_node(cluster);
	return err ? err : announce(cluster);
}

int rdmatensor_cluster_open_sized(struct rdmatensor_cluster **out,
				  const struct rdmatensor_cluster_options *options, size_t size)
{
	struct rdmatensor_cluster *cluster = calloc(1, sizeof(*cluster));
	int err;

	*out = NULL;
	node_clear_error();
	if (!cluster)
		return node_fail(-ENOMEM, "cluster: out of memory");
	pthread_mutex_init(&cluster->lock, NULL);
	pthread_mutex_init(&cluster->telling, NULL);
	err = prepare(cluster, options, size);
	if (err) {
		char cause[1536];

		/* What ends it may have a line of its own */
		snprintf(cause, sizeof(cause), "%s", rdmatensor_node_error());
		rdmatensor_cluster_close(cluster);
		return node_fail(err, "%s", cause);
	}
	*out = cluster;
	return 0;
}

int rdmatensor_cluster_leave(struct rdmatensor_cluster *cluster)
{
	bool published = __atomic_exchange_n(&cluster->published, false, __ATOMIC_ACQ_REL);
	int err = 0;

	node_clear_error();
	if (published && cluster->source->leave)
		err = cluster->source->leave(cluster);
	return err;
}

void rdmatensor_cluster_close(struct rdmatensor_cluster *cluster)
{
	if (!cluster)
		return;
	rdmatensor_cluster_leave(cluster);
	rdmatensor_node_close(cluster->node);
	if (cluster->source && cluster->source->end)
		cluster->source->end(cluster);
	cluster_store_close(cluster);
	cluster_members_free(&cluster->members);
	free_options(&cluster->options);
	free(cluster->job);
	pthread_mutex_destroy(&cluster->telling);
	pthread_mutex_destroy(&cluster->lock);
	free(cluster);
}

struct rdmatensor_node *rdmatensor_cluster_node(struct rdmatensor_cluster *cluster)
{
	return cluster->node;
}

unsigned int rdmatensor_cluster_rank(struct rdmatensor_cluster *cluster)
{
	return cluster->rank;
}

const char *rdmatensor_cluster_source_name(struct rdmatensor_cluster *cluster)
{
	return cluster->source->name;
}

int rdmatensor_cluster_refresh(struct rdmatensor_cluster *cluster)
{
	unsigned int before = rdmatensor_cluster_size(cluster);
	int err = 0;

	node_clear_error();
	if (cluster->source->refresh)
		err = cluster->source->refresh(cluster);
	/* With those that have joined, all begin to count anew */
	if (!err && rdmatensor_cluster_size(cluster) != before)
		cluster->checks = cluster->checks_kept = cluster->barriers = 0;
	return err;
}
