// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A file of hosts, RDMATENSOR_HOSTS: a rank a line, "HOST[:PORT]", or "-" in the place of one that
 * has left; # begins a comment. Own rank is RDMATENSOR_RANK, or the only line with an address of
 * this host. All ranks have to have the same lines in the same order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/**
 * struct lines - a file that is read
 * @path: its name
 * @members: out: a rank for each line that has one
 * @room: for so many
 * @number: of the line, from 1
 */
struct lines {
	const char *path;
	struct cluster_members members;
	unsigned int room;
	unsigned int number;
};

static bool is_there(void)
{
	return cluster_env("RDMATENSOR_HOSTS");
}

static int no_memory(const struct lines *lines)
{
	return node_fail(-ENOMEM, "cluster: %s: out of memory", lines->path);
}

static int add(struct lines *lines, const char *address)
{
	struct cluster_members *members = &lines->members;
	struct cluster_member *more;

	if (members->nr == RANKS_MAX)
		return node_fail(-ERANGE, "cluster: %s: more than %d hosts", lines->path, RANKS_MAX);
	if (!members->at || members->nr == lines->room) {
		lines->room = lines->room ? 2 * lines->room : 64;
		more = reallocarray(members->at, lines->room, sizeof(*more));
		if (!more)
			return no_memory(lines);
		members->at = more;
	}
	memset(&members->at[members->nr], 0, sizeof(*members->at));
	members->at[members->nr].left = !address;
	if (address) {
		members->at[members->nr].address = strdup(address);
		if (!members->at[members->nr].address)
			return no_memory(lines);
	}
	members->nr++;
	return 0;
}

static int take_line(struct lines *lines, char *line)
{
	char address[ADDRESS_ROOM], where[512], *host, *rest;
	int err;

	line[strcspn(line, "#\r\n")] = '\0';
	host = strtok_r(line, " \t", &rest);
	if (!host)
		return 0;
	snprintf(where, sizeof(where), "%.400s, line %u", lines->path, lines->number);
	if (strtok_r(NULL, " \t", &rest))
		return node_fail(-EINVAL, "cluster: %s: more than one word: write HOST[:PORT], a line for each rank",
				 where);
	if (!strcmp(host, "-"))
		return add(lines, NULL);
	err = cluster_tidy(where, host, address);
	return err ? err : add(lines, address);
}

/* Return: 0, and @members has the ranks; an error, and the line is stored */
static int read_file(const char *path, struct cluster_members *members)
{
	struct lines lines = { .path = path };
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int err = 0;

	if (!file) {
		err = -errno;
		return node_fail(err, "cluster: the file of hosts %s: %s", path, strerror(-err));
	}
	while (!err && (len = getline(&line, &room, file)) >= 0) {
		lines.number++;
		if (memchr(line, '\0', (size_t)len))
			err = node_fail(-EINVAL, "cluster: %s, line %u: a zero byte: this is no file of hosts",
					path, lines.number);
		else
			err = take_line(&lines, line);
	}
	if (!err && ferror(file))
		err = node_fail(-EIO, "cluster: the file of hosts %s: it cannot be read", path);
	free(line);
	fclose(file);
	if (!err && !lines.members.nr)
		err = node_fail(-EINVAL, "cluster: the file of hosts %s has no host: write HOST[:PORT], a line for each rank",
				path);
	if (!err)
		err = cluster_members_check(&lines.members, path);
	if (err)
		cluster_members_free(&lines.members);
	else
		*members = lines.members;
	return err;
}

/* The only rank at this host */
static int find_rank(struct rdmatensor_cluster *cluster, const char *path)
{
	const struct cluster_members *members = &cluster->members;
	unsigned int i, found = members->nr;

	for (i = 0; i < members->nr; i++) {
		if (!members->at[i].address || !cluster_is_own(members->at[i].address))
			continue;
		if (found < members->nr)
			return node_fail(-EINVAL, "cluster: %s has several ranks of this host, as %u (%s) and %u (%s): set RDMATENSOR_RANK",
					 path, found, members->at[found].address, i,
					 members->at[i].address);
		found = i;
	}
	if (found == members->nr)
		return node_fail(-ENOENT, "cluster: %s has no address of this host: add it, or set RDMATENSOR_RANK to the rank that this process is",
				 path);
	cluster->rank = found;
	return 0;
}

static int find(struct rdmatensor_cluster *cluster)
{
	const char *path = cluster_env("RDMATENSOR_HOSTS");
	int err;

	if (!path)
		return node_fail(-EINVAL, "cluster: hosts: RDMATENSOR_HOSTS is not set: set it to a file with HOST[:PORT], a line for each rank");
	cluster->source_data = strdup(path);
	cluster->job = strdup("hosts");
	if (!cluster->source_data || !cluster->job)
		return node_fail(-ENOMEM, "cluster: hosts: out of memory");
	err = read_file(path, &cluster->members);
	if (err)
		return err;
	if (!cluster_env("RDMATENSOR_RANK"))
		return find_rank(cluster, path);
	err = cluster_env_number("hosts", "RDMATENSOR_RANK", UINT32_MAX, &cluster->rank);
	if (err)
		return err;
	if (cluster->rank >= cluster->members.nr)
		return node_fail(-ERANGE, "cluster: RDMATENSOR_RANK=%u is none of the ranks of %s: they are 0 to %u",
				 cluster->rank, path, cluster->members.nr - 1);
	if (!cluster->members.at[cluster->rank].address)
		return node_fail(-ENOENT, "cluster: %s says \"-\" for rank %u, which this process is: write its address there",
				 path, cluster->rank);
	return 0;
}

/* What was known of ranks that are where they were stays known */
static int adopt(struct rdmatensor_cluster *cluster, struct cluster_members *fresh)
{
	struct cluster_members *old = &cluster->members;
	const char *path = cluster->source_data;
	struct cluster_members swapped;
	unsigned int i;

	if (fresh->nr < old->nr)
		return node_fail(-ESTALE, "cluster: %s has %u ranks, and had %u: write \"-\" in the place of one that has left",
				 path, fresh->nr, old->nr);
	if (!fresh->at[cluster->rank].address ||
	    strcmp(fresh->at[cluster->rank].address, old->at[cluster->rank].address))
		return node_fail(-ESTALE, "cluster: %s has another address for this rank, %u, than the one it listens at, %s: write that there, or start the rank anew",
				 path, cluster->rank, old->at[cluster->rank].address);
	for (i = 0; i < old->nr; i++) {
		fresh->at[i].met = old->at[i].met && old->at[i].address && fresh->at[i].address &&
				   !strcmp(old->at[i].address, fresh->at[i].address);
		fresh->at[i].local = old->at[i].local;
		fresh->at[i].channel = old->at[i].channel;
	}
	swapped = *old;
	*old = *fresh;
	*fresh = swapped;
	return 0;
}

static int refresh(struct rdmatensor_cluster *cluster)
{
	struct cluster_members fresh = { .nr = 0 };
	int err;

	err = read_file(cluster->source_data, &fresh);
	if (err || !fresh.at)
		return err;
	pthread_mutex_lock(&cluster->lock);
	err = adopt(cluster, &fresh);
	pthread_mutex_unlock(&cluster->lock);
	cluster_members_free(&fresh);
	return err;
}

static void end(struct rdmatensor_cluster *cluster)
{
	free(cluster->source_data);
}

const struct cluster_source cluster_hosts = {
	.name = "hosts",
	.is_there = is_there,
	.find = find,
	.refresh = refresh,
	.end = end,
};
