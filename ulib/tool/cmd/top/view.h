/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A sample as a person sees it, or as JSON.
 */
#ifndef TOOL_TOP_VIEW_H
#define TOOL_TOP_VIEW_H

#include <stdbool.h>

#include "sample.h"

void view_json(const struct sample *sample, const struct row *total);
/* @terminal: standard output has a cursor. EXIT_OK, or EXIT_FAILED with a message */
int view_print(const struct sample *sample, const struct row *total, bool terminal);

#endif
