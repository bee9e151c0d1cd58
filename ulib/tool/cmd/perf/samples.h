/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Latencies of many operations in bounded memory. Up to SAMPLES_MAX all are kept; beyond,
 * every second one is dropped each time, which keeps the percentiles representative;
 * extremes and mean are exact.
 */
#ifndef TOOL_SAMPLES_H
#define TOOL_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#define SAMPLES_MAX (1u << 20)

/**
 * struct samples - what is kept
 * @ns: kept samples
 * @nr: their number
 * @stride: how many samples each of them stands for
 * @skip: samples to drop until the next one is kept
 * @count: all samples
 * @sum: of all, in ns
 * @min: of all, in ns
 * @max: of all, in ns
 */
struct samples {
	uint64_t *ns;
	size_t nr;
	uint64_t stride;
	uint64_t skip;
	uint64_t count;
	uint64_t sum;
	uint64_t min;
	uint64_t max;
};

/* 0 or -ENOMEM */
int samples_init(struct samples *samples);
void samples_reset(struct samples *samples);
void samples_add(struct samples *samples, uint64_t ns);
/* Sorts what is kept, for samples_percentile() */
void samples_sort(struct samples *samples);
/* In ns; 0 if there are none. @percent: 0..100 */
uint64_t samples_percentile(const struct samples *samples, unsigned int percent);
void samples_free(struct samples *samples);

#endif
