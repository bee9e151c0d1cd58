/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A long text that is made of many short ones. A stream in memory does the same, but clears all of
 * its memory each time it grows, which is most of what a scrape of hundreds of channels would cost.
 */
#ifndef TOOL_METRICS_BUFFER_H
#define TOOL_METRICS_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct buffer - a text; all zero: an empty one
 * @text: malloc()ed, or NULL; its user frees it
 * @bytes: its length
 * @room: how many bytes @text has memory for
 */
struct buffer {
	char *text;
	size_t bytes;
	size_t room;
};

/* All: at the end. Without memory the program ends with a message */

void buffer_put(struct buffer *buffer, const char *text, size_t bytes);
void buffer_string(struct buffer *buffer, const char *string);
void buffer_number(struct buffer *buffer, uint64_t number);
void buffer_format(struct buffer *buffer, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
