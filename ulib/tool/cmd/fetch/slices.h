/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * --slice NAME=RANGE[,RANGE]...: of which tensors only a part is fetched, and which.
 */
#ifndef TOOL_FETCH_SLICES_H
#define TOOL_FETCH_SLICES_H

#include <stdbool.h>
#include <stddef.h>

#include <rdmatensor/rdmatensor.h>

#define SLICES_MOST 256

/**
 * struct slice - one of them
 * @arg: of the command line, which begins with the name
 * @name_len: its length
 * @ndims: number of @ranges
 * @ranges: of the first dims
 */
struct slice {
	const char *arg;
	size_t name_len;
	uint32_t ndims;
	struct rdmatensor_range ranges[RDMATENSOR_DIMS_MAX];
};

/** struct slices - all of them: @nr, at @all, for slices_free() */
struct slices {
	struct slice *all;
	size_t nr;
};

/* For the option, @arg is a struct slices. EXIT_OK; EXIT_USAGE, EXIT_FAILED with a message */
int slices_take(void *arg, const char *text);
/* Each is of one of @names. EXIT_OK, or EXIT_USAGE with a message */
int slices_check(const struct slices *slices, char *const *names, size_t nr);
/* Has @op, a fetch of @name, bring what is wanted of it */
void slices_apply(const struct slices *slices, const char *name, struct rdmatensor_op *op);
/* No-op for one of zeroes */
void slices_free(struct slices *slices);

#endif
