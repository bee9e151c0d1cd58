// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "fill.h"
#include "tool/common/option_text.h"

/* Options of all commands whose argument is of that kind */
static void print_arguments(const char *variable, enum option_words words)
{
	const char *space = "";
	size_t i;

	printf("%s='", variable);
	for (i = 0; i < nr_option_rows; i++) {
		if (option_rows[i].words != words)
			continue;
		if (option_rows[i].letter)
			printf("%s-%c --%s", space, option_rows[i].letter, option_rows[i].name);
		else
			printf("%s--%s", space, option_rows[i].name);
		space = " ";
	}
	puts("'");
}

/* A command may have a name twice, with another letter */
static bool is_first(enum command_id command, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++)
		if (option_is_of(&option_rows[i], command) &&
		    !strcmp(option_rows[i].name, option_rows[at].name))
			return false;
	return true;
}

static void print_options(enum command_id command)
{
	size_t i;

	printf("\t%s) echo", commands[command].name);
	for (i = 0; i < nr_option_rows; i++)
		if (option_is_of(&option_rows[i], command) && is_first(command, i))
			printf(" --%s", option_rows[i].name);
	puts(" ;;");
}

void completion_words(void)
{
	int i;

	printf("_rdmatensor_commands='");
	for (i = 0; i < NR_COMMANDS; i++)
		printf("%s%s", i ? " " : "", commands[i].name);
	puts("'");
	print_arguments("_rdmatensor_devices", WORDS_DEVICES);
	print_arguments("_rdmatensor_files", WORDS_FILES);
	puts("\n_rdmatensor_options() {\n\tcase $1 in");
	for (i = 0; i < NR_COMMANDS; i++)
		print_options((enum command_id)i);
	puts("\tesac\n}");
}
