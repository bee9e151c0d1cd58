// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

int st_fail(char *error, size_t error_len, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (error && error_len)
		vsnprintf(error, error_len, fmt, args);
	va_end(args);
	return err;
}
