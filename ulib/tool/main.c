// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdmatensor - the command-line tool
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "tool/cmd/commands.h"
#include "tool/common/manager.h"
#include "tool/common/message.h"
#include "tool/common/option_table.h"
#include "tool/common/output.h"

static void help(FILE *to)
{
	size_t i;

	fputs("Usage: rdmatensor COMMAND [OPTION]...\n"
	      "Move tensors between machines by name, over RDMA.\n\n"
	      "Commands:\n", to);
	for (i = 0; i < NR_COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].what);
	fputs("\n"
	      "  rdmatensor COMMAND --help   prints a command's options; so does help COMMAND\n"
	      "  rdmatensor --version        prints the version\n\n"
	      "Exit status: 0 success, 1 failure, 2 wrong usage.\n", to);
}

static int run(int argc, char **argv)
{
	static char name[64];
	char wish[] = "--help", *words[] = { NULL, NULL, wish, NULL };
	size_t i;

	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	/* "help COMMAND" is "COMMAND --help" */
	if (!strcmp(argv[1], "help") && argc > 3)
		return misused("help takes one COMMAND");
	if (!strcmp(argv[1], "help") && argc > 2) {
		words[1] = argv[2];
		argv = words;
		argc = 3;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		help(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("rdmatensor %s, ABI %d, %s systemd\n", rdmatensor_version(),
		       RDMATENSOR_ABI_VERSION, MANAGER_BUILT ? "with" : "without");
		return EXIT_OK;
	}
	for (i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		tool_name = commands[i].name;
		snprintf(name, sizeof(name), "rdmatensor %s", tool_name);
		argv[1] = name;
		return command_runs[i](argc - 1, argv + 1);
	}
	return misused("there is no command \"%s\"", argv[1]);
}

/*
 * What is opened next would take the number of a standard stream that is closed, and messages
 * would go into an output file. What is open for neither reading nor writing fails as a
 * closed one does, also under the name /dev/stdout
 */
static int occupy_streams(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_DIRECTORY) != fd)
			return failed("open / in place of closed stream %d: %s", fd,
				      strerror(errno));
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	int ret = occupy_streams();

	if (ret)
		return ret;
	ret = run(argc, argv);
	return ret ? ret : output_arrived();
}
