/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The service manager that has started this process, which is systemd: what it is told, and the
 * descriptors that it holds from one start of the service to the next.
 */
#ifndef TOOL_MANAGER_H
#define TOOL_MANAGER_H

#include <stdbool.h>

/* Whether the tool can talk to one at all: it is built with libsystemd */
#ifdef HAVE_LIBSYSTEMD
#define MANAGER_BUILT true
#else
#define MANAGER_BUILT false
#endif

/* What `serve --keep` has in the place of a keeper's socket */
#define KEEP_BY_MANAGER "systemd"

/* Longest name of a descriptor, with its terminating zero */
#define MANAGER_NAME_MAX 256

/**
 * typedef manager_kept - takes a descriptor that the manager has held
 * @arg: of manager_kept_each()
 * @fd: the descriptor, which is the callee's from here on
 * @name: what it was called
 */
typedef void (*manager_kept)(void *arg, int fd, const char *name);

/* One listens to this process */
bool manager_is_there(void);

/* What it says of the service. Nobody minds if none is there */
void manager_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void manager_ready(const char *status);
void manager_stopping(void);

/*
 * All: EXIT_OK, or EXIT_FAILED with a message. @name: shorter than MANAGER_NAME_MAX, and without
 * colons and control characters
 */

/* It holds a copy of @fd from here on, also when the process has ended */
int manager_keep(int fd, const char *name);
/* It closes what it holds by that name, and has done so when this returns */
int manager_drop(const char *name);
/* Of all that it has held until this start; once in a process */
int manager_kept_each(manager_kept each, void *arg);

#endif
