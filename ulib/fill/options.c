// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fill.h"
#include "tool/common/option_text.h"
#include "tool/common/params.h"

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Characters that mean something else to roff, or that it would set in another way */
static void put_plain(const char *text, size_t len)
{
	for (; len--; text++)
		if (*text == '-' || *text == '\\')
			printf("\\%c", *text);
		else if (*text == '\'')
			fputs("\\(aq", stdout);
		else
			putchar(*text == '\n' ? ' ' : *text);
}

static void put_font(char font, const char *text, size_t len)
{
	printf("\\f%c", font);
	put_plain(text, len);
	fputs("\\fR", stdout);
}

/* "START:END" is names in italics, "bw|lat" words in bold */
static void put_argument(const char *arg)
{
	size_t len;

	for (; *arg; arg += len) {
		for (len = 1; is_word(arg[0]) && is_word(arg[len]); len++)
			;
		if (!is_word(*arg))
			put_plain(arg, len);
		else
			put_font(isupper((unsigned char)*arg) ? 'I' : 'B', arg, len);
	}
}

/* A name of which the argument is made */
static bool is_argument(const struct option_row *row, const char *word, size_t len)
{
	const char *at = row->arg;
	size_t name;

	for (; at && *at; at += name ? name : 1) {
		name = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
		if (name && name == len && !strncmp(at, word, len))
			return true;
	}
	return false;
}

/* How much of a text @at one word of it is, of which @font is the font; 0: no word */
static size_t word_at(const struct option_row *row, const char *at, char *font)
{
	size_t len = 0;

	*font = 'R';
	if (!strncmp(at, "--", 2)) {
		*font = 'B';
		return 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
	}
	while (is_word(at[len]))
		len++;
	if (is_argument(row, at, len))
		*font = 'I';
	return len;
}

/* Options and what stands in `` become bold, names of the argument italic */
static void put_sentence(const struct option_row *row, const char *text)
{
	size_t len;
	char font;

	while (*text) {
		if (*text == '`') {
			len = strcspn(text + 1, "`");
			put_font('B', text + 1, len);
			text += len + 2;
			continue;
		}
		/* A new sentence is a new line */
		if (!strncmp(text, ". ", 2) && isupper((unsigned char)text[2])) {
			puts(".");
			text += 2;
			continue;
		}
		len = word_at(row, text, &font);
		if (font != 'R')
			put_font(font, text, len);
		else
			put_plain(text, len ? len : 1);
		text += len ? len : 1;
	}
}

/* What --help says becomes a sentence; what is said for man pages is one */
static void put_words(const struct option_row *row)
{
	char text[OPTION_TEXT_MAX];

	option_expand(row, row->man ? row->man : row->help, text);
	text[0] = (char)toupper((unsigned char)text[0]);
	put_sentence(row, text);
	puts(row->man ? "" : ".");
}

static void put_range(const struct option_row *row)
{
	const struct param *param;

	switch (row->kind) {
	case OPTION_NUMBER:
		/* Beyond, the range is that of the number's type */
		if (row->most < INT32_MAX)
			printf("From %" PRId64 " to %" PRId64 ".\n", row->least, row->most);
		break;
	case OPTION_SECONDS:
		if (row->least)
			printf("In seconds, from %.7g to %.7g.\n", (double)row->least / 1e3,
			       (double)row->most / 1e3);
		else
			puts("In seconds.");
		break;
	case OPTION_PARAM:
		param = param_find(row->param);
		printf("Parameter\n.BR %s ,\nvariable\n.BR %s%s%s .\n", param->name,
		       param->variable, param->other ? " \" or \" " : "",
		       param->other ? param->other : "");
		break;
	default:
		break;
	}
	if (row->variable)
		printf("Variable\n.BR %s .\n", row->variable);
}

static void print_row(const struct option_row *row)
{
	puts(".TP");
	if (row->letter)
		printf("\\fB\\-%c\\fR, ", row->letter);
	fputs("\\fB\\-\\-", stdout);
	put_plain(row->name, strlen(row->name));
	fputs("\\fR", stdout);
	if (row->arg) {
		putchar(' ');
		put_argument(row->arg);
	}
	putchar('\n');
	put_words(row);
	put_range(row);
}

static void print_section(enum command_id command, enum option_section section)
{
	size_t i;

	for (i = 0; i < nr_option_rows; i++)
		if (option_rows[i].section == section && option_is_of(&option_rows[i], command))
			print_row(&option_rows[i]);
}

bool options_man(const char *command)
{
	int i;

	for (i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(command, commands[i].name))
			continue;
		print_section((enum command_id)i, SECTION_OWN);
		return true;
	}
	return false;
}

void context_options_man(void)
{
	/* Of any that opens one */
	print_section(COMMAND_SERVE, SECTION_DEVICE);
	print_section(COMMAND_SERVE, SECTION_OUTPUT);
}

void commands_man(void)
{
	int i;

	for (i = 0; i < NR_COMMANDS; i++)
		printf(".TP\n.BR rdmatensor\\-%s (1)\n%c%s.\n", commands[i].name,
		       toupper((unsigned char)commands[i].what[0]), commands[i].what + 1);
}
