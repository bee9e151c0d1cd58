/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Contents that doctor fetches: the words of perf's tensors.
 */
#ifndef TOOL_DOCTOR_CONTENT_H
#define TOOL_DOCTOR_CONTENT_H

#include <stdint.h>

struct doctor;
struct store;

/* One packet of any MTU, and several of the longest */
#define CONTENT_SHORT 1024
#define CONTENT_LONG 32768
/* How long a fetch may take */
#define CONTENT_MS 5000

/* 0, or a negative errno; -EILSEQ: other bytes than perf's */
int content_fetch(struct doctor *doctor, uint32_t channel, const char *name,
		  const struct store *store, uint64_t bytes, uint64_t *ns);
/* Reports @cause: there is no pool for the content */
void content_no_memory(struct doctor *doctor, const char *cause);

#endif
