// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slices are of names, not of shapes: whether a tensor has one its peer says, in the error of the fetch.
 */
#include <stdlib.h>
#include <string.h>

#include "slices.h"
#include "tool/common/message.h"

#define HINT "write START:STOP for each dimension, the first one first, as 0:1024,: (a side that is left out is the tensor's; no step, nothing from the end, STOP not before START)"

/* Digits up to what follows them; none: @or_else. False: too many */
static bool take_index(const char **at, uint64_t or_else, uint64_t *out)
{
	*out = 0;
	if (**at < '0' || **at > '9') {
		*out = or_else;
		return true;
	}
	for (; **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out) || *out > INT64_MAX)
			return false;
	return true;
}

/* "0:4", ":", or "3", which is 3:4. False: it is none */
static bool take_range(const char **at, struct rdmatensor_range *range)
{
	const char *begin = *at;
	uint64_t stop;

	if (!take_index(at, 0, &range->start))
		return false;
	if (**at != ':') {
		range->length = 1;
		return *at > begin;
	}
	(*at)++;
	if (!take_index(at, RDMATENSOR_RANGE_REST, &stop))
		return false;
	range->length = stop == RDMATENSOR_RANGE_REST ? stop : stop - range->start;
	return stop >= range->start;
}

int slices_take(void *arg, const char *text)
{
	struct slices *slices = arg;
	const char *at = strrchr(text, '=');
	struct slice *slice;

	if (slices->nr == SLICES_MOST)
		return misused("--slice %s is refused: %d are the most", text, SLICES_MOST);
	if (!slices->all)
		slices->all = calloc(SLICES_MOST, sizeof(*slices->all));
	if (!slices->all)
		return failed("out of memory");
	if (!at || at == text)
		return misused("--slice %s is refused: give NAME=RANGE[,RANGE]...: " HINT, text);
	slice = &slices->all[slices->nr++];
	slice->arg = text;
	slice->name_len = (size_t)(at - text);
	do {
		at++;
		if (slice->ndims == RDMATENSOR_DIMS_MAX)
			return misused("--slice %s is refused: no tensor has more than %d dimensions",
				       text, RDMATENSOR_DIMS_MAX);
		if (!take_range(&at, &slice->ranges[slice->ndims++]))
			return misused("--slice %s is refused at range %u: " HINT, text, slice->ndims);
	} while (*at == ',');
	return *at ? misused("--slice %s is refused at \"%s\": " HINT, text, at) : EXIT_OK;
}

static bool is_of(const struct slice *slice, const char *name)
{
	return strlen(name) == slice->name_len && !memcmp(slice->arg, name, slice->name_len);
}

int slices_check(const struct slices *slices, char *const *names, size_t nr)
{
	size_t i, k, of;

	for (i = 0; i < slices->nr; i++) {
		const struct slice *slice = &slices->all[i];

		for (of = 0, k = 0; k < nr; k++)
			of += is_of(slice, names[k]);
		if (!of)
			return misused("--slice %s is refused: \"%.*s\" is none of the names: name it as well",
				       slice->arg, (int)slice->name_len, slice->arg);
		for (k = 0; k < i; k++)
			if (slices->all[k].name_len == slice->name_len &&
			    !memcmp(slices->all[k].arg, slice->arg, slice->name_len))
				return misused("--slice %s is refused: \"%.*s\" has one already: fetch one part at a time",
					       slice->arg, (int)slice->name_len, slice->arg);
	}
	return EXIT_OK;
}

void slices_apply(const struct slices *slices, const char *name, struct rdmatensor_op *op)
{
	size_t i;

	for (i = 0; i < slices->nr; i++)
		if (is_of(&slices->all[i], name))
			rdmatensor_prep_slice(op, slices->all[i].ranges, slices->all[i].ndims);
}

void slices_free(struct slices *slices)
{
	free(slices->all);
	*slices = (struct slices){ 0 };
}
