/* SPDX-License-Identifier: GPL-2.0 */
/* Many fetches of a long tensor over one channel */
#ifndef LOAD_BULK_H
#define LOAD_BULK_H

#include "worker.h"

#define BULK_DEPTH_MAX 16

/**
 * struct bulk - the load
 * @load: its place among its worker's
 * @worker: whose
 * @bytes: of the tensor
 * @at: regions that it is fetched to
 * @depth: their number
 * @again: what has ended is fetched again
 * @flying: fetches in flight
 * @ended: fetches that have ended with their tensor
 * @failed: and those that have not
 * @error: the first error
 */
struct bulk {
	struct load load;
	struct worker *worker;
	uint64_t bytes;
	uint64_t at[BULK_DEPTH_MAX];
	unsigned int depth;
	bool again;
	unsigned int flying;
	unsigned int ended;
	unsigned int failed;
	int error;
};

/* Its regions, and one fetch, so that the others need no meta-data */
void bulk_init(struct bulk *bulk, struct worker *worker, uint64_t bytes, unsigned int depth);
/* @depth of them */
void bulk_begin(struct bulk *bulk, bool again);
/* Nothing is fetched again. Return: all have ended, and well, and are whole */
bool bulk_end(struct bulk *bulk, uint64_t deadline_ns);
void bulk_free(struct bulk *bulk);

#endif
