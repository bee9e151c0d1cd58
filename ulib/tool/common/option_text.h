/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of options as text, for the help of a command and for the documents.
 */
#ifndef TOOL_OPTION_TEXT_H
#define TOOL_OPTION_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "option_table.h"

/* Room for what option_expand() makes */
#define OPTION_TEXT_MAX 512

static inline bool option_is_of(const struct option_row *row, enum command_id command)
{
	return row->commands >> command & 1;
}

/* The row's @text with its values in the place of {default}, {range} and {most} */
const char *option_expand(const struct option_row *row, const char *text,
			  char to[OPTION_TEXT_MAX]);
/* What COMMAND --help prints */
void option_help(enum command_id command, FILE *to);

#endif
