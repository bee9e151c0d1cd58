/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names and texts of files, peers and other processes on their way to a person: what a
 * terminal could take for a command is shown and not sent.
 *
 * A character is shown as it is if it is printable UTF-8. All other bytes, among them
 * control characters, those that change the direction of writing, and what is no UTF-8,
 * are shown as \xNN each, and a backslash as \\, so that no text looks like an escape.
 */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* All of @text, which may have zeros in it */
void put_text(FILE *to, const char *text, size_t bytes);
/* The same of a string */
void put_string(FILE *to, const char *text);
/*
 * As above, in no more than @width columns of a terminal and filled up to these: what is
 * longer ends with +, as ps has it. @width 0: however long it is
 */
void put_cell(FILE *to, const char *text, size_t bytes, size_t width);
/* So much of a line of one's own, without a newline, as @width columns hold */
void put_cut(FILE *to, const char *line, size_t bytes, size_t width);

/*
 * The bytes of the UTF-8 character that @text begins with; 0: it begins with something
 * else. *@columns: what a terminal takes for it; -1: it is no character to be shown
 */
size_t text_character(const char *text, size_t bytes, int *columns);
/* Characters and nothing else, whether they can be shown or not */
bool text_is_utf8(const char *text, size_t bytes);

#endif
