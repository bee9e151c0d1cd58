/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All channels of this network namespace at one moment, and the rates since the sample
 * before, which are differences of their counters.
 */
#ifndef TOOL_TOP_SAMPLE_H
#define TOOL_TOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdmatensor/netlink.h>

struct json_object;

/* What is shown of a channel, in this order */
enum rate { FETCHES, IN, SERVED, OUT, STALLS, ERRORS, NR_RATES };

/**
 * struct row - a channel
 * @context: id of its context
 * @channel: its own
 * @worker: the context's name
 * @peer: the peer's
 * @requests: fetches that have not ended
 * @sums: counters of each rate
 * @latency: fetches by log2 of their microseconds
 * @rates: a second, in the last interval; valid if @seen_before
 * @slow: as @latency, in the last interval
 * @seen_before: it was there at the interval's beginning
 */
struct row {
	uint32_t context;
	uint32_t channel;
	const char *worker;
	const char *peer;
	uint32_t requests;
	uint64_t sums[NR_RATES];
	uint64_t latency[RDMATENSOR_NL_LATENCY_NR];
	double rates[NR_RATES];
	uint64_t slow[RDMATENSOR_NL_LATENCY_NR];
	bool seen_before;
};

/**
 * struct sample - all channels at one moment
 * @list: the dump, which the rows' names are in
 * @rows: one for each
 * @nr: their number
 * @at_ns: when
 * @whole: false: some may be missing or listed twice
 * @own: of what this user opened alone
 */
struct sample {
	struct json_object *list;
	struct row *rows;
	size_t nr;
	uint64_t at_ns;
	bool whole;
	bool own;
};

/* Channels of one context, 0: of all. EXIT_OK, or EXIT_FAILED with a message */
int sample_take(uint32_t context, struct sample *sample);
void sample_free(struct sample *sample);
/* Rates since @before, and the busiest first */
void sample_rate(struct sample *now, const struct sample *before);
/* All rows as one */
void sample_sum(const struct sample *sample, struct row *total);
/* Microseconds below which @part of the fetches ended; 0: there were none */
uint64_t sample_quantile(const uint64_t *buckets, double part);

#endif
