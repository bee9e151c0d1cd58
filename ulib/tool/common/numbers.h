/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of a command line. What is out of range is refused with the range. And their order.
 */
#ifndef TOOL_NUMBERS_H
#define TOOL_NUMBERS_H

#include <stdint.h>

/* For qsort() of uint64_t: the least comes first */
int number_order(const void *a, const void *b);

/* "4096", "4K", "8m", "1G", "1T". 0 or a negative errno */
int number_with_unit(const char *arg, uint64_t *out);

/* All: EXIT_OK, or EXIT_USAGE with a message that begins with @option */

int parse_number(const char *option, const char *arg, int64_t min, int64_t max, int64_t *out);
/* As number_with_unit(), up to @max */
int parse_size(const char *option, const char *arg, uint64_t max, uint64_t *out);
/* A time in seconds, fractions allowed, as nanoseconds; the range is in milliseconds */
int parse_seconds(const char *option, const char *arg, int64_t min_ms, int64_t max_ms,
		  uint64_t *ns);

#endif
