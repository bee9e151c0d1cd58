/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names under which commands publish tensors, and the contents of perf's.
 */
#ifndef TOOL_PUBLISHED_H
#define TOOL_PUBLISHED_H

#include <stdint.h>

/*
 * Names under which `serve` publishes the JSON header of its file, or of one file with all
 * tensors of its shards; and the index and headers of shards, st_model_pack(). If there are
 * shards, the first of the two has one dim: the bytes of the other
 */
#define INDEX_NAME "rdmatensor.index"
#define SHARDS_NAME "rdmatensor.shards"

/* "rdmatensor.perf.4096" */
void perf_name(uint64_t size, char name[48]);

/* Word @i of each tensor of perf, by which the client checks what arrives */
static inline uint64_t perf_word(uint64_t i)
{
	return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

#endif
