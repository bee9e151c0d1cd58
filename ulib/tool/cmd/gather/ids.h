/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which rows a gather asks for.
 */
#ifndef TOOL_GATHER_IDS_H
#define TOOL_GATHER_IDS_H

#include <stdint.h>

#include "sides.h"

/*
 * Fills in the ids of all gathers that are in flight at the same time, one array behind the
 * other, each below @rows. EXIT_OK, or EXIT_FAILED with a message
 */
int ids_choose(const struct gathering *gathering, uint64_t rows, uint64_t *ids);

#endif
