/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the tool, run within a test.
 */
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

/* What the last one has printed on standard output and on standard error */
extern char text[65536], messages[65536];

/* Runs it with these arguments, the last of which is NULL; its exit code */
int run(int (*command)(int argc, char **argv), char *const *args);

#define RUN(command, ...) run(command, (char *[]){ __VA_ARGS__, NULL })

#endif
