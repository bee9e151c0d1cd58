/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lines on stderr, and the exit codes that go with them.
 */
#ifndef TOOL_MESSAGE_H
#define TOOL_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define EXIT_OK 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2

/* Name of the command, for messages; "": before there is one */
extern const char *tool_name;

/* Operation, object, cause, remedy; returns EXIT_FAILED */
int failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What goes on all the same, but is not as it should be */
void warned(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As failed(), and points to --help; returns EXIT_USAGE */
int misused(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The second half of it */
int point_to_help(void);
/* A note with --verbose only, which be_verbose() stands for */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void be_verbose(void);
/* What a noun ends with behind @nr */
static inline const char *plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

/* Whether that is a terminal on which colours are wanted */
bool fd_has_colours(int fd);
bool stderr_has_colours(void);

#endif
