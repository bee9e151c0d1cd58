// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keepers.
 *
 * A keeper is forked before its parent opens a context, as it must inherit neither the file nor a
 * mapping of it: both would keep the context open. It is told what to keep by a socket pair; if
 * its parent ends before, it ends too, and leaves nothing. It gives the domain away by a
 * sequential-packet socket, whose file's mode says who may have it: its owner.
 *
 * A packet to it is one letter, and so is the first byte of its answer; a label follows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "local.h"
#include "message.h"

#define GET 'g'
#define END 'e'
#define DONE 'd'

/* Seconds that either side waits for the other, which has nothing to wait for */
#define PATIENCE 10
/* Who waits to be answered */
#define BACKLOG 8

/* One packet: a letter and a text, with a descriptor, or -1. Return: 0, an errno */
static int send_packet(int fd, char letter, const char *text, int with)
{
	struct iovec parts[] = {
		{ .iov_base = &letter, .iov_len = 1 },
		{ .iov_base = (char *)text, .iov_len = strlen(text) },
	};
	char room[CMSG_SPACE(sizeof(with))] = { 0 };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	struct cmsghdr *header;

	if (with >= 0) {
		packet.msg_control = room;
		packet.msg_controllen = sizeof(room);
		header = CMSG_FIRSTHDR(&packet);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(with));
		memcpy(CMSG_DATA(header), &with, sizeof(with));
	}
	return sendmsg(fd, &packet, MSG_NOSIGNAL) < 0 ? errno : 0;
}

static int descriptor_of(struct msghdr *packet)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(packet);
	int fd = -1;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/*
 * The next packet: its letter, its text, in room for KEEPER_LABEL_MAX, and its descriptor, or -1.
 * Return: 0, an errno
 */
static int receive_packet(int fd, char *letter, char *text, int *with)
{
	struct iovec parts[] = {
		{ .iov_base = letter, .iov_len = 1 },
		{ .iov_base = text, .iov_len = KEEPER_LABEL_MAX - 1 },
	};
	char room[CMSG_SPACE(sizeof(int))];
	/* There is no room for a second descriptor, which nobody would close */
	struct msghdr packet = {
		.msg_iov = parts, .msg_iovlen = 2,
		.msg_control = room, .msg_controllen = CMSG_LEN(sizeof(int)),
	};
	ssize_t got;

	do {
		got = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno;
	if (!got)
		return ECONNRESET;
	text[got - 1] = '\0';
	*with = descriptor_of(&packet);
	return 0;
}

static void be_patient(int fd)
{
	const struct timeval patience = { .tv_sec = PATIENCE };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* False: it is too long, or the current directory is gone; errno says why */
static bool address_of(const char *path, struct sockaddr_un *addr)
{
	char from[PATH_MAX] = "", whole[2 * PATH_MAX];

	if (*path != '/' && !getcwd(from, sizeof(from)))
		return false;
	snprintf(whole, sizeof(whole), "%s%s%s", from, *from ? "/" : "", path);
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	errno = ENAMETOOLONG;
	if (strlen(whole) > LOCAL_PATH_MAX)
		return false;
	strcpy(addr->sun_path, whole);
	return true;
}

static int path_failed(const char *path)
{
	if (errno == ENAMETOOLONG)
		return failed("keeper %s: from the root on the path of a socket is at most %d bytes long: give a shorter one",
			      path, LOCAL_PATH_MAX);
	return failed("keeper %s: %s", path, strerror(errno));
}

/* Its process is of this user, or the administrator's: others could give or ask for anything */
static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.uid == geteuid() || !peer.uid);
}

/* ---- the keeper ------------------------------------------------------------- */

/* One connection. True: it is the end */
static bool answer(int peer, int domain, const char *label)
{
	char letter, text[KEEPER_LABEL_MAX];
	int with = -1;

	if (receive_packet(peer, &letter, text, &with))
		return false;
	if (with >= 0)
		close(with);
	if (letter == END)
		return true;
	if (letter == GET)
		send_packet(peer, DONE, label, domain);
	return false;
}

static void keep(int listener, const struct sockaddr_un *addr, const struct stat *made, int domain,
		 const char *label)
{
	bool end = false;
	int peer;

	while (!end) {
		peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (peer < 0 && errno != EINTR && errno != ECONNABORTED)
			/* Out of descriptors or memory, for the moment */
			sleep(1);
		if (peer < 0)
			continue;
		be_patient(peer);
		end = is_ours(peer) && answer(peer, domain, label);
		if (end) {
			/* Who asked for the end sees it done */
			local_remove(addr, made);
			close(domain);
			send_packet(peer, DONE, "", -1);
		}
		close(peer);
	}
}

/* The process: parent's end is gone, or has told it what to keep */
static void run(int parent, const struct sockaddr_un *addr)
{
	char letter, label[KEEPER_LABEL_MAX];
	int domain = -1, listener, null, err;
	struct stat made;

	/* The parent's files: the model's, a lock, a pipe that somebody waits for the end of */
	close_range(STDERR_FILENO + 1, (unsigned int)parent - 1, 0);
	close_range((unsigned int)parent + 1, UINT_MAX, 0);
	setsid();
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "rdmatensor-keep");
	if (receive_packet(parent, &letter, label, &domain) || domain < 0)
		return;
	umask(0177);
	listener = local_listen(addr, SOCK_SEQPACKET | SOCK_CLOEXEC, BACKLOG, &made);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (listener >= 0 && !chdir("/") && null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		send_packet(parent, DONE, "", -1);
		close(parent);
		keep(listener, addr, &made, domain, label);
		return;
	}
	err = listener < 0 ? -listener : errno;
	snprintf(label, sizeof(label), "%s%s", strerror(err), err == EADDRINUSE ?
		 ": another server has left its domain there meanwhile: start this one again, and it serves from that" :
		 err == ENOENT ? ": make its folder, or give another path" : "");
	send_packet(parent, END, label, -1);
}

int keeper_begin(const char *path, struct keeper *keeper)
{
	struct sockaddr_un addr;
	int pair[2], status;
	pid_t pid;

	if (!address_of(path, &addr))
		return path_failed(path);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return failed("keeper %s: %s", path, strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		/* Twice: nobody is to wait for it */
		close(pair[0]);
		pid = fork();
		if (!pid)
			run(pair[1], &addr);
		_exit(pid < 0);
	}
	close(pair[1]);
	/* Where children are not waited for (SIGCHLD ignored), whether it began shows later */
	if (pid < 0 || (waitpid(pid, &status, 0) == pid && status)) {
		close(pair[0]);
		return failed("keeper %s: could not start a process: %s", path,
			      strerror(pid < 0 ? errno : EAGAIN));
	}
	be_patient(pair[0]);
	keeper->fd = pair[0];
	keeper->path = path;
	return EXIT_OK;
}

int keeper_keep(struct keeper *keeper, int domain, const char *label)
{
	char letter = END, text[KEEPER_LABEL_MAX] = "";
	int with = -1, err;

	err = send_packet(keeper->fd, GET, label, domain) ?:
	      receive_packet(keeper->fd, &letter, text, &with);
	close(keeper->fd);
	if (err)
		return failed("keeper %s: its process has ended: %s", keeper->path,
			      strerror(err));
	return letter == DONE ? EXIT_OK : failed("keeper %s: %s", keeper->path, text);
}

/* ---- who asks it ------------------------------------------------------------ */

/* *@fd: connected, or -1: nobody is there */
static int connect_to(const char *path, int *fd)
{
	struct sockaddr_un addr;
	struct stat there;
	int err;

	*fd = -1;
	if (!address_of(path, &addr))
		return path_failed(path);
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return failed("keeper %s: %s", path, strerror(errno));
	be_patient(*fd);
	if (!connect(*fd, (struct sockaddr *)&addr, sizeof(addr))) {
		if (is_ours(*fd))
			return EXIT_OK;
		close(*fd);
		return failed("keeper %s: it is another user's: be that user, or give another path", path);
	}
	err = errno;
	close(*fd);
	*fd = -1;
	if (err == ECONNREFUSED && !lstat(addr.sun_path, &there) && !S_ISSOCK(there.st_mode))
		return failed("keeper %s: it is no socket: give another path", path);
	if (err == ENOENT || err == ECONNREFUSED)
		return EXIT_OK;
	return failed("keeper %s: %s%s", path, strerror(err), err == EACCES || err == EPERM ?
		      ": it is another user's: be that user, or give another path" : err == EPROTOTYPE ?
		      ": another program's socket is there: give another path" : "");
}

/* Closes @fd */
static int ask(const char *path, int fd, char letter, char *text, int *with)
{
	char answered = 0;
	int err;

	*with = -1;
	err = send_packet(fd, letter, "", -1) ?: receive_packet(fd, &answered, text, with);
	close(fd);
	if (!err && answered == DONE)
		return EXIT_OK;
	return failed("keeper %s: it does not answer: %s%s", path, strerror(err ? err : EPROTO),
		      err == EPIPE || err == ECONNRESET ?
		      ": it answers its own user alone, or has just ended" : "");
}

int keeper_get(const char *path, int *domain, char *label)
{
	int fd, err;

	*domain = -1;
	*label = '\0';
	err = connect_to(path, &fd);
	if (err || fd < 0)
		return err;
	err = ask(path, fd, GET, label, domain);
	if (!err && *domain < 0)
		return failed("keeper %s: it sends no descriptor: raise RLIMIT_NOFILE (ulimit -n)",
			      path);
	return err;
}

int keeper_end(const char *path, bool *there)
{
	char text[KEEPER_LABEL_MAX];
	int fd, with, err;

	err = connect_to(path, &fd);
	*there = !err && fd >= 0;
	if (!*there)
		return err;
	err = ask(path, fd, END, text, &with);
	if (with >= 0)
		close(with);
	return err;
}
