// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sysfs.h"

bool sysfs_line(char *text, size_t len, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;
	bool read;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	*text = '\0';
	file = fopen(path, "re");
	if (!file)
		return false;
	/* An empty entry of a GID table cannot be read */
	read = fgets(text, (int)len, file);
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return read && *text;
}
