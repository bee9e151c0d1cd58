// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A socket gets its name when somebody is behind it, so that two processes that begin at once see each
 * other, and loses it before it is closed, so that nobody finds it dead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local.h"

_Static_assert(LOCAL_PATH_MAX + sizeof(".3fffff") <= sizeof(((struct sockaddr_un *)NULL)->sun_path),
	       "both fit into an address");

/* A socket that nobody listens at. Else errno says what it is instead */
static bool is_dead(const struct sockaddr_un *addr, int type)
{
	int fd = socket(AF_UNIX, type, 0), err;
	struct stat there;

	if (fd < 0)
		return false;
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno : EADDRINUSE;
	close(fd);
	/* One that does not wait, and finds the queue of who listens full; one of another kind */
	errno = err == EAGAIN || err == EPROTOTYPE ? EADDRINUSE : err;
	if (lstat(addr->sun_path, &there))
		return false;
	if (S_ISSOCK(there.st_mode))
		return err == ECONNREFUSED;
	errno = EEXIST;
	return false;
}

/*
 * @own takes the place of a dead one. Of two that have seen it dead the later one has the earlier one's
 * socket in its hands, which lives, and puts it back: nobody could reach that process any more
 */
static int replace_dead(const struct sockaddr_un *own, const struct sockaddr_un *addr, int type)
{
	if (!renameat2(AT_FDCWD, own->sun_path, AT_FDCWD, addr->sun_path, RENAME_EXCHANGE)) {
		if (is_dead(own, type))
			return 0;
		renameat2(AT_FDCWD, own->sun_path, AT_FDCWD, addr->sun_path, RENAME_EXCHANGE);
		return -EADDRINUSE;
	}
	/* The other one has ended, and its socket with it */
	if (errno == ENOENT)
		return link(own->sun_path, addr->sun_path) ? -errno : 0;
	/* A file system that cannot exchange */
	return errno == EINVAL && !rename(own->sun_path, addr->sun_path) ? 0 : -errno;
}

/* A name of its own beside @addr, that processes of one number in other namespaces do not take as well */
static int bind_beside(int fd, const struct sockaddr_un *addr, struct sockaddr_un *own)
{
	unsigned int random, tries = 0;

	own->sun_family = AF_UNIX;
	do {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EAGAIN;
		snprintf(own->sun_path, sizeof(own->sun_path), "%.99s.%06x", addr->sun_path,
			 random & 0x3fffff);
		if (!bind(fd, (const struct sockaddr *)own, sizeof(*own)))
			return 0;
	} while (errno == EADDRINUSE && ++tries < 8);
	return -errno;
}

int local_listen(const struct sockaddr_un *addr, int type, int backlog, struct stat *made)
{
	int fd = socket(AF_UNIX, type, 0), err = 0, tries = 0;
	struct sockaddr_un own;

	if (fd < 0)
		return -errno;
	err = bind_beside(fd, addr, &own);
	if (err)
		goto out_close;
	if (listen(fd, backlog) || lstat(own.sun_path, made)) {
		err = -errno;
		goto out_unlink;
	}
	do {
		err = 0;
		if (link(own.sun_path, addr->sun_path))
			err = errno == EEXIST && is_dead(addr, type) ?
			      replace_dead(&own, addr, type) : -errno;
		/* Whoever was there has gone in between */
	} while (err == -ENOENT && ++tries < 8);
out_unlink:
	unlink(own.sun_path);
out_close:
	if (!err)
		return fd;
	close(fd);
	return err;
}

void local_remove(const struct sockaddr_un *addr, const struct stat *made)
{
	struct stat there;

	if (!lstat(addr->sun_path, &there) && there.st_dev == made->st_dev &&
	    there.st_ino == made->st_ino)
		unlink(addr->sun_path);
}
