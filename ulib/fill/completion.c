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

/* ---- zsh --------------------------------------------------------------------- */

/* Within single quotes. A bracket would end the text of an option */
static void put_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (*text == '[' || *text == ']' || *text == '\\')
			printf("\\%c", *text);
		else
			putchar(*text == '\n' ? ' ' : *text);
	}
}

/* A colon would end the name of an argument */
static void put_argument(const struct option_row *row)
{
	const char *c;

	putchar(':');
	for (c = row->arg; *c; c++) {
		if (*c == ':')
			putchar('\\');
		putchar(*c);
	}
	fputs(row->words == WORDS_DEVICES ? ":_rdmatensor_device_names" :
	      row->words == WORDS_FILES ? ":_files" : ": ", stdout);
}

/* Any number of times: which may be repeated, the table does not say */
static void print_spec(const struct option_row *row, const char *name)
{
	char text[OPTION_TEXT_MAX];

	printf("\t\t'*%s[", name);
	put_quoted(option_expand(row, row->help, text));
	putchar(']');
	if (row->arg)
		put_argument(row);
	puts("'");
}

static void print_specs(enum command_id command)
{
	char name[64];
	size_t i;

	printf("\t%s) options=(\n", commands[command].name);
	for (i = 0; i < nr_option_rows; i++) {
		if (!option_is_of(&option_rows[i], command))
			continue;
		if (option_rows[i].letter) {
			/* Its argument may be in the same word */
			snprintf(name, sizeof(name), "-%c%s", option_rows[i].letter,
				 option_rows[i].arg ? "+" : "");
			print_spec(&option_rows[i], name);
		}
		if (!is_first(command, i))
			continue;
		snprintf(name, sizeof(name), "--%s%s", option_rows[i].name,
			 option_rows[i].arg ? "=" : "");
		print_spec(&option_rows[i], name);
	}
	puts("\t) ;;");
}

void completion_zsh(void)
{
	int i;

	puts("\tcommands=(");
	for (i = 0; i < NR_COMMANDS; i++) {
		printf("\t\t'%s:", commands[i].name);
		put_quoted(commands[i].what);
		puts("'");
	}
	puts("\t\t'help:help on a command'\n\t)\n\tcase $words[2] in");
	for (i = 0; i < NR_COMMANDS; i++)
		print_specs((enum command_id)i);
	puts("\tesac");
}
