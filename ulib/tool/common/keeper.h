/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keepers: a process that holds the descriptor of a domain, and gives it to who can connect to
 * its socket. It does nothing else, so that it has nothing to fail by.
 */
#ifndef TOOL_KEEPER_H
#define TOOL_KEEPER_H

#include <stdbool.h>

/* Longest label, with its terminating zero */
#define KEEPER_LABEL_MAX 1024

/**
 * struct keeper - one that waits for what it is to keep
 * @fd: of the connection to it; it ends with this one
 * @path: of the socket that it will have
 */
struct keeper {
	int fd;
	const char *path;
};

/* All: EXIT_OK, or EXIT_FAILED with a message. @path: of a socket in the file system */

/*
 * Begins one for @path, which keeps nothing yet. Before there are threads, a context, or files
 * that it should not have
 */
int keeper_begin(const char *path, struct keeper *keeper);
/* It keeps a copy of @domain from here on, and outlives the caller. @label: any text */
int keeper_keep(struct keeper *keeper, int domain, const char *label);
/*
 * The domain that is kept there, -1: nobody keeps one, and what its label was, in room for
 * KEEPER_LABEL_MAX
 */
int keeper_get(const char *path, int *domain, char *label);
/* It closes the domain and ends. *@there: false: there was none */
int keeper_end(const char *path, bool *there);

#endif
