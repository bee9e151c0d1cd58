// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lines for people, on stderr.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"
#include "text.h"

const char *tool_name = "";

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

/* One write, so that lines of several processes do not mix */
static void line(const char *kind, const char *colour, const char *fmt, va_list args)
{
	bool colours = *kind && stderr_has_colours();
	char *text = NULL, *whole = NULL;
	size_t bytes;
	FILE *to;

	fflush(stdout);
	to = open_memstream(&whole, &bytes);
	if (!to || vasprintf(&text, fmt, args) < 0) {
		fputs("rdmatensor: error: out of memory\n", stderr);
		text = NULL;
	} else {
		fprintf(to, "rdmatensor%s%s: %s%s%s", *tool_name ? " " : "", tool_name,
			colours ? colour : "", kind, colours ? "\033[0m" : "");
		put_string(to, text);
		fputc('\n', to);
	}
	if (to && !fclose(to))
		fwrite(whole, 1, bytes, stderr);
	free(whole);
	free(text);
}

int failed(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line("error: ", "\033[1;31m", fmt, args);
	va_end(args);
	return EXIT_FAILED;
}

void out_of_memory(void)
{
	exit(failed("out of memory"));
}

void warned(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line("warning: ", "\033[33m", fmt, args);
	va_end(args);
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
	line("", "", fmt, args);
	va_end(args);
	return point_to_help();
}

void note(const char *fmt, ...)
{
	va_list args;

	if (!verbose)
		return;
	va_start(args, fmt);
	line("", "", fmt, args);
	va_end(args);
}
