// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <string.h>

#include "option_table.h"
#include "option_text.h"
#include "params.h"

/* Column of the help at which the words on an option begin */
#define WORDS_AT 27

static void range_of(const struct option_row *row, int64_t *least, int64_t *most)
{
	const struct param *param = row->param ? param_find(row->param) : NULL;

	*least = param ? param->least : row->least;
	*most = param ? param->most : row->most;
}

static void value_of(const struct option_row *row, const char *name, size_t name_len,
		     char *text, size_t len)
{
	const struct param *param = row->param ? param_find(row->param) : NULL;
	int64_t least, most;

	range_of(row, &least, &most);
	if (!strncmp(name, "range", name_len))
		snprintf(text, len, "%" PRId64 "..%" PRId64, least, most);
	else if (!strncmp(name, "most", name_len))
		snprintf(text, len, "%" PRId64, most);
	else if (param)
		param_value_text(param->value, text, len);
	else
		snprintf(text, len, "%s", row->preset ? row->preset : "none");
}

const char *option_expand(const struct option_row *row, const char *text,
			  char to[OPTION_TEXT_MAX])
{
	char value[64];
	size_t at = 0, name_len;

	for (; *text && at < OPTION_TEXT_MAX - sizeof(value); text++) {
		if (*text != '{') {
			to[at++] = *text;
			continue;
		}
		name_len = strcspn(++text, "}");
		value_of(row, text, name_len, value, sizeof(value));
		at += (size_t)snprintf(to + at, OPTION_TEXT_MAX - at, "%s", value);
		text += name_len;
	}
	to[at] = '\0';
	return to;
}

static void print_row(const struct option_row *row, FILE *to)
{
	char head[64], text[OPTION_TEXT_MAX];
	const char *line = option_expand(row, row->help, text);
	int len;

	snprintf(head, sizeof(head), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ',
		 row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
		 row->arg ? " " : "", row->arg ? row->arg : "");
	fprintf(to, "%-*s", WORDS_AT, head);
	for (;;) {
		len = (int)strcspn(line, "\n");
		fprintf(to, "%.*s\n", len, line);
		if (!line[len])
			return;
		line += len + 1;
		fprintf(to, "%*s", WORDS_AT, "");
	}
}

static void print_section(enum command_id command, enum option_section section,
			  const char *head, FILE *to)
{
	size_t i;

	for (i = 0; i < nr_option_rows; i++) {
		if (option_rows[i].section != section || !option_is_of(&option_rows[i], command))
			continue;
		fputs(head, to);
		head = "";
		print_row(&option_rows[i], to);
	}
}

void option_help(enum command_id command, FILE *to)
{
	fputs(commands[command].usage, to);
	print_section(command, SECTION_OWN, "\n", to);
	print_section(command, SECTION_DEVICE, "\nDevice and protocol:\n", to);
	print_section(command, SECTION_OUTPUT, "Output:\n", to);
}
