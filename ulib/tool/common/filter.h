/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * --filter: which of a model's tensors a command takes.
 */
#ifndef TOOL_FILTER_H
#define TOOL_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "safetensors/model.h"

/* Patterns of one command */
#define FILTER_MOST 64

/**
 * struct filter - patterns, as a shell has them
 * @globs: each --filter's, of the command line
 * @nr: their number; 0: every tensor is taken
 */
struct filter {
	const char *globs[FILTER_MOST];
	size_t nr;
};

/* One more; for struct option_place. EXIT_OK, or EXIT_USAGE with a message */
int filter_take(void *filter, const char *glob);
/* Whether any pattern matches, or there is none */
bool filter_matches(const struct filter *filter, const char *name);
/*
 * Leaves in @model, which is called @what in messages, the tensors whose names match a pattern.
 * EXIT_OK, or EXIT_FAILED with a message; then only st_model_free() may follow
 */
int filter_apply(const struct filter *filter, struct st_model *model, const char *what);

#endif
