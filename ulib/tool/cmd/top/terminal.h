/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A command that draws a screen of its own: keys without Enter and without echo. When it
 * ends, is hung up, or is stopped by a key, the shell finds the terminal as it was.
 */
#ifndef TOOL_TERMINAL_H
#define TOOL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Standard output is a terminal with a cursor, on which lines can be redrawn */
bool terminal_has_cursor(void);
/* Of standard output; where a size is not known, that of the terminals of old */
void terminal_size(size_t *lines, size_t *columns);

/* After stop_init(). True: standard input has keys */
bool terminal_begin(void);
void terminal_end(void);
/* True, once: it has another size, or the command was stopped and goes on: redraw it */
bool terminal_changed(void);
/* True: q was pressed. Other keys mean nothing. *@keys: false if there are none any more */
bool terminal_asked_to_end(bool *keys);

#endif
