/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sockets in the file system that a process listens at, and that outlive it if it is killed.
 */
#ifndef TOOL_COMMON_LOCAL_H
#define TOOL_COMMON_LOCAL_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A socket is called PATH.NUMBER before it has its name: bytes that PATH may have then */
#define LOCAL_PATH_MAX 99

/*
 * Listens at @addr, whose path has at most LOCAL_PATH_MAX bytes. A socket there that nobody listens at
 * is replaced; of several processes that do so at a time one has it. @type: as for socket(); @made: out: the
 * file. Return: the socket; -EADDRINUSE: somebody listens there; -EEXIST: there is a file of another
 * kind; another negative errno
 */
int local_listen(const struct sockaddr_un *addr, int type, int backlog, struct stat *made);

/* Takes the file away, before its socket is closed, if it is still the one that was made */
void local_remove(const struct sockaddr_un *addr, const struct stat *made);

#endif
