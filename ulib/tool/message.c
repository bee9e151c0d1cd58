// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lines for people, on stderr.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"
#include "tool.h"

static bool verbose;

bool fd_has_colours(int fd)
{
	const char *none = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fd) && !(none && *none) && term && strcmp(term, "dumb");
}

bool stderr_has_colours(void)
{
	return fd_has_colours(STDERR_FILENO);
}

void be_verbose(void)
{
	verbose = true;
}

static void line(const char *kind, const char *fmt, va_list args)
{
	bool colours = *kind && stderr_has_colours();

	fflush(stdout);
	fprintf(stderr, "rdmatensor%s%s: %s%s%s", *tool_name ? " " : "",
		tool_name, colours ? "\033[1;31m" : "", kind,
		colours ? "\033[0m" : "");
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

int failed(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line("error: ", fmt, args);
	va_end(args);
	return EXIT_FAILED;
}

int point_to_help(void)
{
	fprintf(stderr, "Try 'rdmatensor %s%s--help'.\n", tool_name,
		*tool_name ? " " : "");
	return EXIT_USAGE;
}

int misused(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line("", fmt, args);
	va_end(args);
	return point_to_help();
}

void note(const char *fmt, ...)
{
	va_list args;

	if (!verbose)
		return;
	va_start(args, fmt);
	line("", fmt, args);
	va_end(args);
}
