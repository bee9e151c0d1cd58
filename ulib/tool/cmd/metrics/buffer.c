// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "tool/common/message.h"

void buffer_put(struct buffer *buffer, const char *text, size_t bytes)
{
	if (buffer->room - buffer->bytes < bytes) {
		size_t room = 2 * buffer->room + bytes + 4096;
		char *more = realloc(buffer->text, room);

		if (!more)
			out_of_memory();
		buffer->text = more;
		buffer->room = room;
	}
	memcpy(buffer->text + buffer->bytes, text, bytes);
	buffer->bytes += bytes;
}

void buffer_string(struct buffer *buffer, const char *string)
{
	buffer_put(buffer, string, strlen(string));
}

void buffer_number(struct buffer *buffer, uint64_t number)
{
	char digits[24], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	buffer_put(buffer, at, (size_t)(digits + sizeof(digits) - at));
}

void buffer_format(struct buffer *buffer, const char *fmt, ...)
{
	va_list args;
	char *text;
	int bytes;

	va_start(args, fmt);
	bytes = vasprintf(&text, fmt, args);
	va_end(args);
	if (bytes < 0)
		out_of_memory();
	buffer_put(buffer, text, (size_t)bytes);
	free(text);
}
