// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where ranks leave their addresses for each other: a folder that all hosts share, or what the
 * program has, as torch's store. Under "rdmatensor/JOB/rank.N" there is "HOST:PORT", or nothing.
 *
 * In a folder it is the file rdmatensor-USER/JOB/rank.N, by the user's number. Others may be able
 * to write to that folder, so only files are read that are the user's own, which is who has made
 * the own one. A file is made under another name, and renamed when it is whole, so a reader finds
 * all of it or none; a rank that leaves removes its file, and the last one the job's folder. What a
 * job has left there that was killed is overwritten by the next one of its name. Readers look again
 * and again: a shared file system tells nobody of what other hosts write.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster.h"

#define KEY_ROOM 400
/* Of a job's name in a key: with the rest it is a file's name */
#define JOB_MOST 180

/* A store's own folder and the key below it, as that of the user */
static int path_of(const struct rdmatensor_cluster *cluster, const char *key, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/rdmatensor-%u%s", cluster->store_dir,
			(unsigned int)cluster->store_user, key + strlen("rdmatensor")) < PATH_MAX ?
	       0 : -ENAMETOOLONG;
}

/* *owner: who has made it, as the file system sees this user. Nothing is left of one that fails */
static int write_whole(const char *path, const char *value, uid_t *owner)
{
	size_t len = strlen(value);
	struct stat made;
	ssize_t written;
	int fd, err;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	written = write(fd, value, len);
	err = written == (ssize_t)len ? 0 : written < 0 ? -errno : -ENOSPC;
	if (!err && fstat(fd, &made))
		err = -errno;
	/* A network file system may say only now that it has no room */
	if (close(fd) && !err)
		err = -errno;
	if (err)
		unlink(path);
	else
		*owner = made.st_uid;
	return err;
}

/* JOB/ and its parents below the store's folder, which is there */
static int make_folders(const struct rdmatensor_cluster *cluster, char *path)
{
	char *slash = path + strlen(cluster->store_dir);

	int err = 0;

	while (!err && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			err = -errno;
		*slash = '/';
	}
	return err;
}

static int remove_file(const struct rdmatensor_cluster *cluster, char *path)
{
	char *slash;

	if (unlink(path) && errno != ENOENT)
		return -errno;
	/* Whose is the last one; until then they are not empty */
	while ((slash = strrchr(path + strlen(cluster->store_dir) + 1, '/'))) {
		*slash = '\0';
		if (rmdir(path))
			break;
	}
	return 0;
}

static int file_set(void *arg, const char *key, const char *value)
{
	struct rdmatensor_cluster *cluster = arg;
	char path[PATH_MAX], fresh[PATH_MAX + 32], host[65] = "";
	int err, again = 0;

	err = path_of(cluster, key, path);
	if (err)
		return err;
	if (!value)
		return remove_file(cluster, path);
	gethostname(host, sizeof(host) - 1);
	snprintf(fresh, sizeof(fresh), "%s.%.16s.%d", path, host, (int)getpid());
	do {
		/* Another rank may leave just now, and take the folder with it */
		err = make_folders(cluster, path);
		if (!err)
			err = write_whole(fresh, value, &cluster->store_owner);
		/* A process of that number before this one was killed there */
		if (err == -EEXIST && unlink(fresh) && errno != ENOENT)
			return -errno;
		if (!err && rename(fresh, path)) {
			err = -errno;
			unlink(fresh);
		}
	} while ((err == -ENOENT || err == -EEXIST) && again++ < 8);
	return err;
}

static int file_read(void *arg, const char *key, char *value, size_t room)
{
	const struct rdmatensor_cluster *cluster = arg;
	char path[PATH_MAX];
	struct stat there;
	ssize_t len;
	int fd, err;

	err = path_of(cluster, key, path);
	if (err)
		return err;
	/* Whatever it is, this waits for nobody */
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &there) ? -errno : 0;
	/* Nor one of the user's that another has given this name */
	if (!err && (!S_ISREG(there.st_mode) || there.st_uid != cluster->store_owner ||
		     there.st_nlink > 1))
		err = -EPERM;
	len = err ? 0 : read(fd, value, room);
	if (!err)
		err = len < 0 ? -errno : (size_t)len == room ? -EMSGSIZE : 0;
	close(fd);
	if (!err)
		value[len] = '\0';
	return err;
}

/* It may be replaced on another host while it is read: then what has taken its place is read */
static int file_get(void *arg, const char *key, char *value, size_t room)
{
	int i, err = -ESTALE;

	for (i = 0; i < 3 && err == -ESTALE; i++)
		err = file_read(arg, key, value, room);
	return err;
}

static int open_folder(struct rdmatensor_cluster *cluster, const char *source, const char *folder)
{
	struct stat stat_of;
	int err;

	if (*folder != '/')
		return node_fail(-EINVAL, "cluster: %s: RDMATENSOR_STORE=file:%s: write file:/FOLDER, with the whole path of one that all hosts share",
				 source, folder);
	if (stat(folder, &stat_of))
		err = -errno;
	else
		err = S_ISDIR(stat_of.st_mode) ? 0 : -ENOTDIR;
	if (err)
		return node_fail(err, "cluster: %s: the store %s: %s: make a folder that all hosts share, and name it by RDMATENSOR_STORE=file:/FOLDER",
				 source, folder, strerror(-err));
	cluster->store_dir = strdup(folder);
	if (!cluster->store_dir)
		return node_fail(-ENOMEM, "cluster: %s: out of memory", source);
	cluster->store_user = geteuid();
	cluster->store = (struct rdmatensor_cluster_store) {
		.set = file_set, .get = file_get, .arg = cluster,
	};
	return 0;
}

int cluster_store_open(struct rdmatensor_cluster *cluster, const char *source)
{
	const char *text = cluster_env("RDMATENSOR_STORE");

	if (cluster->options.store) {
		cluster->store = *cluster->options.store;
		if (!cluster->store.set || !cluster->store.get)
			return node_fail(-EINVAL, "cluster: %s: the store has no set or no get", source);
		return 0;
	}
	if (!text)
		return node_fail(-EINVAL, "cluster: %s: there is no store for addresses: set RDMATENSOR_STORE=file:/FOLDER of one that all hosts share, or give a store in the options (in Python torch's is taken)",
				 source);
	if (!strncmp(text, "file:", 5))
		return open_folder(cluster, source, text + 5);
	return node_fail(-EINVAL, "cluster: %s: RDMATENSOR_STORE=%s: only file:/FOLDER is known",
			 source, text);
}

void cluster_store_close(struct rdmatensor_cluster *cluster)
{
	free(cluster->store_dir);
	cluster->store_dir = NULL;
}

/*
 * What is no part of a file's name, nor of one that begins with a dot, becomes _. Names that this, or
 * their length, has made equal are told apart by their hashes
 */
static void key_of(const struct rdmatensor_cluster *cluster, unsigned int rank, char key[KEY_ROOM])
{
	bool differs = strlen(cluster->job) > JOB_MOST;
	char *at = key;

	snprintf(key, KEY_ROOM, "rdmatensor/_%.*s", JOB_MOST, cluster->job);
	for (at += strlen("rdmatensor/_"); *at; at++) {
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:", *at)) {
			*at = '_';
			differs = true;
		}
	}
	if (differs)
		at += snprintf(at, KEY_ROOM - (size_t)(at - key), "-%016llx",
			       (unsigned long long)rdmatensor_group(cluster->job));
	snprintf(at, KEY_ROOM - (size_t)(at - key), "/rank.%u", rank);
}

static int failed(const struct rdmatensor_cluster *cluster, int err, const char *what,
		  const char *key)
{
	char path[PATH_MAX];

	if (!cluster->store_dir || path_of(cluster, key, path))
		return node_fail(err, "cluster: %s: %s the store's key %s: %s", cluster->source->name, what,
				 key, strerror(-err));
	return node_fail(err, "cluster: %s: %s %s: %s%s", cluster->source->name, what, path, strerror(-err),
			 err == -EPERM || err == -ELOOP ? ": what is there is no plain file that a rank of this user has made: remove it, or name another folder by RDMATENSOR_STORE" :
			 err == -EACCES ? ": it, or its folder, is another user's: name a folder of the user's own by RDMATENSOR_STORE" : "");
}

int cluster_store_publish(struct rdmatensor_cluster *cluster, const char *address)
{
	char key[KEY_ROOM];
	int err;

	key_of(cluster, cluster->rank, key);
	err = cluster->store.set(cluster->store.arg, key, address);
	return err ? failed(cluster, err, "leaving the address in", key) : 0;
}

int cluster_store_lookup(struct rdmatensor_cluster *cluster, unsigned int rank,
			 uint64_t deadline_ns, char address[ADDRESS_ROOM])
{
	char key[KEY_ROOM], value[ADDRESS_ROOM], where[KEY_ROOM + 64];
	int err;

	(void)deadline_ns;
	key_of(cluster, rank, key);
	err = cluster->store.get(cluster->store.arg, key, value, sizeof(value));
	if (err == -ENOENT)
		return -EAGAIN;
	if (err) {
		failed(cluster, err, "reading", key);
		/* These mean something of the rank to who asks */
		return err == -EAGAIN || err == -ENOTUNIQ ? -EIO : err;
	}
	snprintf(where, sizeof(where), "the store's %s", key);
	return cluster_tidy(where, value, address);
}

int cluster_store_leave(struct rdmatensor_cluster *cluster)
{
	char key[KEY_ROOM];
	int err;

	key_of(cluster, cluster->rank, key);
	err = cluster->store.set(cluster->store.arg, key, NULL);
	return err ? failed(cluster, err, "taking the address out of", key) : 0;
}
