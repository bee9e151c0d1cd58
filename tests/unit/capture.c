// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"

char text[65536], messages[65536];

int capture_begin(int fd, int *saved)
{
	FILE *file = tmpfile();
	int copy = dup(fileno(file));

	fclose(file);
	*saved = dup(fd);
	dup2(copy, fd);
	return copy;
}

void capture_end(int fd, int saved, int copy, char *to, size_t to_len)
{
	ssize_t got;

	dup2(saved, fd);
	close(saved);
	got = pread(copy, to, to_len - 1, 0);
	to[got > 0 ? got : 0] = '\0';
	close(copy);
}

int run(int (*command)(int argc, char **argv), char *const *args)
{
	int argc = 1, err, out, err_fd, saved_out, saved_err, i;
	char *argv[32] = { "rdmatensor test" }, *kept[32];

	/* Arguments of a real program can be written to */
	for (; args[argc - 1]; argc++)
		argv[argc] = strdup(args[argc - 1]);
	argv[argc] = NULL;
	optind = 0;
	fflush(stdout);
	out = capture_begin(STDOUT_FILENO, &saved_out);
	err_fd = capture_begin(STDERR_FILENO, &saved_err);
	/* getopt_long() puts them into another order */
	memcpy(kept, argv, sizeof(kept));
	err = command(argc, argv);
	for (i = 1; i < argc; i++)
		free(kept[i]);
	fflush(stdout);
	capture_end(STDOUT_FILENO, saved_out, out, text, sizeof(text));
	capture_end(STDERR_FILENO, saved_err, err_fd, messages, sizeof(messages));
	return err;
}
