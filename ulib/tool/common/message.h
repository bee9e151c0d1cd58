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
/* Ends the program with a message */
void out_of_memory(void) __attribute__((noreturn));
/* A warning: the command goes on */
void warned(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As failed(), followed by point_to_help(); returns EXIT_USAGE */
int misused(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says how to get help; returns EXIT_USAGE */
int point_to_help(void);
/* Printed after be_verbose() only */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void be_verbose(void);
/* The ending of a noun that follows @nr */
static inline const char *plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

/* True: it is a terminal, and colours are wanted on it */
bool fd_has_colours(int fd);
bool stderr_has_colours(void);

#endif
