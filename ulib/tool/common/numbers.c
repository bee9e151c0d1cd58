// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "numbers.h"

int number_order(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

int number_with_unit(const char *arg, uint64_t *out)
{
	static const char units[] = "kmgt";
	uint64_t value;
	const char *unit;
	char *end;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (errno || !isdigit((unsigned char)*arg))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		for (; unit >= units; unit--)
			if (__builtin_mul_overflow(value, UINT64_C(1024), &value))
				return -ERANGE;
	}
	*out = value;
	return 0;
}

int parse_number(const char *option, const char *arg, int64_t min, int64_t max, int64_t *out)
{
	char *end;
	intmax_t value;

	errno = 0;
	value = strtoimax(arg, &end, 10);
	if (errno || end == arg || *end || isspace((unsigned char)*arg) ||
	    value < min || value > max)
		return misused("%s %s is refused: give a number from %" PRId64 " to %" PRId64,
			       option, arg, min, max);
	*out = value;
	return EXIT_OK;
}

int parse_size(const char *option, const char *arg, uint64_t max, uint64_t *out)
{
	uint64_t value;

	if (number_with_unit(arg, &value) || value > max)
		return misused("%s %s is refused: give bytes from 0 to %" PRIu64 ", as 4096, 4K, 8M, 1G or 1T",
			       option, arg, max);
	*out = value;
	return EXIT_OK;
}

int parse_seconds(const char *option, const char *arg, int64_t min_ms, int64_t max_ms,
		  uint64_t *ns)
{
	double min = (double)min_ms / 1e3, max = (double)max_ms / 1e3;
	double value;
	char *end;

	errno = 0;
	value = strtod(arg, &end);
	/* Neither "nan" nor "inf", nor a sign */
	if (errno || *end || (!isdigit((unsigned char)*arg) && *arg != '.') ||
	    !(value >= min && value <= max))
		return misused("%s %s is refused: give seconds from %.7g to %.7g",
			       option, arg, min, max);
	*ns = (uint64_t)(value * 1e9);
	return EXIT_OK;
}
