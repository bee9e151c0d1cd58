/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the tool, run within a test.
 */
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

#include <stddef.h>

/* What the last one has printed on standard output and on standard error */
extern char text[65536], messages[65536];

/*
 * What goes to @fd goes into a file, which is returned; @saved is for capture_end(), which
 * undoes that and takes the file's content as a string
 */
int capture_begin(int fd, int *saved);
void capture_end(int fd, int saved, int copy, char *to, size_t to_len);

/* Runs it with these arguments, the last of which is NULL; its exit code */
int run(int (*command)(int argc, char **argv), char *const *args);

#define RUN(command, ...) run(command, (char *[]){ __VA_ARGS__, NULL })

#endif
