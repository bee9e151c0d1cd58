/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_FUZZ_PEER_H
#define TESTS_FUZZ_PEER_H

#include <rdmatensor/rdmatensor.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct told - what fetches from it end with
 * @data: of the input, the part that is not taken yet
 * @size: its length
 * @probe: result of a fetch into no room
 * @late: the first one of these ends with -ETIMEDOUT instead
 * @dead: it has META and says that the tensor is dead
 * @fetch: result of a fetch
 * @less: so many bytes less than the probe has said
 * @text: content of the index; NULL: tensors' meta-data are from @data
 * @text_bytes: its length
 * @pools: pools that there are
 * @pool_bytes: length of the last one
 */
extern struct told {
	const uint8_t *data;
	size_t size;
	int probe;
	bool late;
	bool dead;
	int fetch;
	uint64_t less;
	const char *text;
	size_t text_bytes;
	unsigned int pools;
	uint64_t pool_bytes;
	/* Bytes of the last tree that was made of JSON, and those of the text */
	size_t tree_bytes;
	size_t tree_of;
} peer;

#endif
