// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of a cluster's ranks: what each is called, where it is, and whether it was met there. A
 * source makes it before anybody else has the cluster; from then on the cluster's lock guards it.
 * It owns its strings, and hands out copies only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

int cluster_members_make(struct cluster_members *members, const char *source, unsigned int nr)
{
	if (!nr || nr > RANKS_MAX)
		return node_fail(-ERANGE, "cluster: %s: %u ranks: a job has 1 to %d", source, nr,
				 RANKS_MAX);
	members->at = calloc(nr, sizeof(*members->at));
	if (!members->at)
		return node_fail(-ENOMEM, "cluster: %s: %u ranks: out of memory", source, nr);
	members->nr = nr;
	return 0;
}

void cluster_members_free(struct cluster_members *members)
{
	unsigned int i;

	for (i = 0; i < members->nr; i++) {
		free(members->at[i].name);
		free(members->at[i].address);
	}
	free(members->at);
	members->at = NULL;
	members->nr = 0;
}

/**
 * struct place - where a rank is
 * @address: its address
 * @rank: its number
 */
struct place {
	const char *address;
	unsigned int rank;
};

/* By address; of one address the lesser rank first */
static int by_address(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	int order = strcmp(a->address, b->address);

	return order ? order : a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int same_address(const char *source, unsigned int one, unsigned int other,
			const char *address)
{
	return node_fail(-ENOTUNIQ, "cluster: %s: ranks %u and %u both have the address %s: give each a port of its own",
			 source, one, other, address);
}

int cluster_members_check(const struct cluster_members *members, const char *source)
{
	struct place *sorted = calloc(members->nr, sizeof(*sorted));
	unsigned int i, nr = 0;
	int err = 0;

	if (!sorted)
		return node_fail(-ENOMEM, "cluster: %s: out of memory", source);
	for (i = 0; i < members->nr; i++)
		if (members->at[i].address)
			sorted[nr++] = (struct place) { members->at[i].address, i };
	qsort(sorted, nr, sizeof(*sorted), by_address);
	for (i = 1; !err && i < nr; i++)
		if (!strcmp(sorted[i - 1].address, sorted[i].address))
			err = same_address(source, sorted[i - 1].rank, sorted[i].rank,
					   sorted[i].address);
	free(sorted);
	return err;
}

int cluster_has(struct rdmatensor_cluster *cluster, unsigned int rank)
{
	unsigned int nr = rdmatensor_cluster_size(cluster);

	return rank < nr ? 0 : node_fail(-ERANGE, "cluster: there is no rank %u: ranks are 0 to %u",
					 rank, nr - 1);
}

/*
 * With the lock held. The other rank that was met there, or is this one, or the table's length. One that was
 * not met there may have been there before
 */
static unsigned int whose(const struct rdmatensor_cluster *cluster, unsigned int rank,
			  const char *address)
{
	const struct cluster_members *members = &cluster->members;
	unsigned int i;

	for (i = 0; i < members->nr; i++)
		if (i != rank && (members->at[i].met || i == cluster->rank) &&
		    members->at[i].address && !strcmp(members->at[i].address, address))
			break;
	return i;
}

int cluster_member_place(struct rdmatensor_cluster *cluster, unsigned int rank,
			 const char *address, unsigned int *whose_is)
{
	struct cluster_member *member;
	unsigned int other;
	char *copy;
	int err = 0;

	copy = strdup(address);
	if (!copy)
		return node_fail(-ENOMEM, "cluster: rank %u: out of memory", rank);
	pthread_mutex_lock(&cluster->lock);
	member = &cluster->members.at[rank];
	other = whose(cluster, rank, address);
	*whose_is = other;
	if (other < cluster->members.nr) {
		err = same_address(cluster->source->name, other < rank ? other : rank,
				   other < rank ? rank : other, address);
	} else if (!member->address || strcmp(member->address, address)) {
		free(member->address);
		member->address = copy;
		copy = NULL;
		member->met = false;
	}
	pthread_mutex_unlock(&cluster->lock);
	free(copy);
	return err;
}

void cluster_member_lost(struct rdmatensor_cluster *cluster, unsigned int rank, uint32_t channel)
{
	struct cluster_member *member;

	pthread_mutex_lock(&cluster->lock);
	member = &cluster->members.at[rank];
	if (member->channel == channel)
		member->met = false;
	pthread_mutex_unlock(&cluster->lock);
}

int cluster_member_address(struct rdmatensor_cluster *cluster, unsigned int rank,
			   char address[ADDRESS_ROOM])
{
	const struct cluster_member *member;
	int err = -EAGAIN;

	pthread_mutex_lock(&cluster->lock);
	member = &cluster->members.at[rank];
	if (member->left) {
		err = -ENOENT;
	} else if (member->address) {
		rt_copy_string(address, ADDRESS_ROOM, member->address);
		err = 0;
	}
	pthread_mutex_unlock(&cluster->lock);
	return err;
}

void cluster_member_met(struct rdmatensor_cluster *cluster, unsigned int rank, const char *placed,
			const char *address, uint32_t channel)
{
	struct cluster_member *member;

	pthread_mutex_lock(&cluster->lock);
	member = &cluster->members.at[rank];
	if (member->address && !strcmp(member->address, placed)) {
		member->met = true;
		member->local = strcmp(placed, address);
		member->channel = channel;
	}
	pthread_mutex_unlock(&cluster->lock);
}

bool cluster_member_reached(struct rdmatensor_cluster *cluster, unsigned int rank,
			    struct cluster_place *place)
{
	const struct cluster_member *member;
	bool reached, local;

	pthread_mutex_lock(&cluster->lock);
	member = &cluster->members.at[rank];
	reached = member->met && !member->left;
	local = member->local;
	if (reached)
		rt_copy_string(place->placed, ADDRESS_ROOM, member->address);
	place->channel = reached ? member->channel : 0;
	pthread_mutex_unlock(&cluster->lock);
	if (!reached)
		return false;
	rt_copy_string(place->address, ADDRESS_ROOM, place->placed);
	if (local)
		cluster_localize(cluster, place->address);
	return true;
}

const char *cluster_said(struct rdmatensor_cluster *cluster, unsigned int rank,
			 char said[SAID_ROOM])
{
	const struct cluster_member *member;
	const char *name, *address;

	pthread_mutex_lock(&cluster->lock);
	member = &cluster->members.at[rank];
	name = member->name;
	address = member->address;
	if (name || address)
		snprintf(said, SAID_ROOM, "rank %u (%.80s%s%.80s)", rank, name ? name : "",
			 name && address ? ", " : "", address ? address : "");
	else
		snprintf(said, SAID_ROOM, "rank %u", rank);
	pthread_mutex_unlock(&cluster->lock);
	return said;
}

unsigned int rdmatensor_cluster_size(struct rdmatensor_cluster *cluster)
{
	unsigned int nr;

	pthread_mutex_lock(&cluster->lock);
	nr = cluster->members.nr;
	pthread_mutex_unlock(&cluster->lock);
	return nr;
}

/* With the lock held, or before anybody else has the table */
static void call(const struct cluster_members *members, unsigned int rank, char *text, size_t len)
{
	if (members->at[rank].name)
		snprintf(text, len, "%s", members->at[rank].name);
	else
		snprintf(text, len, "%u", rank);
}

int rdmatensor_cluster_name(struct rdmatensor_cluster *cluster, unsigned int rank, char *text,
			    size_t text_len)
{
	int err;

	node_clear_error();
	err = cluster_has(cluster, rank);
	if (err)
		return err;
	pthread_mutex_lock(&cluster->lock);
	call(&cluster->members, rank, text, text_len);
	pthread_mutex_unlock(&cluster->lock);
	return 0;
}

int rdmatensor_cluster_find(struct rdmatensor_cluster *cluster, const char *name,
			    unsigned int *rank)
{
	char first[ADDRESS_ROOM], called[ADDRESS_ROOM];
	unsigned int i, nr;

	node_clear_error();
	pthread_mutex_lock(&cluster->lock);
	nr = cluster->members.nr;
	call(&cluster->members, 0, first, sizeof(first));
	for (i = 0; i < nr; i++) {
		call(&cluster->members, i, called, sizeof(called));
		if (!strcmp(called, name))
			break;
	}
	pthread_mutex_unlock(&cluster->lock);
	if (i == nr)
		return node_fail(-ENOENT, "cluster: no rank is called \"%s\": the %u ranks of %s are called \"%s\" to \"%s\"",
				 name, nr, cluster->source->name, first, called);
	*rank = i;
	return 0;
}
