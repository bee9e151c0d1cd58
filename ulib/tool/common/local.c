// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A socket gets its name when somebody is behind it, so that two processes that begin at once see each
 * other, and loses it before it is closed, so that nobody finds it dead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local.h"

/* A PID has 22 bits */
#define PID_MASK 0x3fffffu

_Static_assert(LOCAL_PATH_MAX + sizeof(".4194303") <= sizeof(((struct sockaddr_un *)NULL)->sun_path),
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
	/* One that does not wait, and finds the queue of who listens full */
	errno = err == EAGAIN ? EADDRINUSE : err;
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

int local_listen(const struct sockaddr_un *addr, int type, int backlog, struct stat *made)
{
	int fd = socket(AF_UNIX, type, 0), err = 0;
	struct sockaddr_un own = { .sun_family = AF_UNIX };

	if (fd < 0)
		return -errno;
	snprintf(own.sun_path, sizeof(own.sun_path), "%.99s.%u", addr->sun_path,
		 (unsigned int)getpid() & PID_MASK);
	unlink(own.sun_path);
	if (bind(fd, (const struct sockaddr *)&own, sizeof(own)) || listen(fd, backlog) ||
	    lstat(own.sun_path, made))
		err = -errno;
	else if (link(own.sun_path, addr->sun_path))
		err = errno == EEXIST && is_dead(addr, type) ? replace_dead(&own, addr, type) : -errno;
	unlink(own.sun_path);
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
