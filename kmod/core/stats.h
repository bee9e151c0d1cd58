/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters: per-CPU, summed when they are read. A channel has a set of its own,
 * which its context takes over when the channel ends.
 */
#ifndef RDMATENSOR_STATS_H
#define RDMATENSOR_STATS_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/time64.h>
#include "rdmatensor.h"
#include "rdmatensor_netlink.h"

/**
 * struct rdmatensor_tally - what a set counts at every fetch, one for each CPU
 * @stats: by enum rdmatensor_stat
 * @latency: fetches that ended with their tensor, by log2 of their microseconds
 */
struct rdmatensor_tally {
	u64 stats[RDMATENSOR_STAT_NR];
	u64 latency[RDMATENSOR_NL_LATENCY_NR];
};

/**
 * struct rdmatensor_sums - a set, summed
 * @tally: of all CPUs
 * @errors: fetches that ended with that errno; [0]: with one beyond the table
 */
struct rdmatensor_sums {
	struct rdmatensor_tally tally;
	u64 errors[RDMATENSOR_NL_ERRORS_NR];
};

/**
 * struct rdmatensor_counters - one set
 * @item: in core->live_counters
 * @percpu: what is counted often
 * @errors: what is counted rarely: ends with each errno
 */
struct rdmatensor_counters {
	struct list_head item;
	struct rdmatensor_tally __percpu *percpu;
	atomic64_t errors[RDMATENSOR_NL_ERRORS_NR];
};

int rdmatensor_counters_init(struct rdmatensor_counters *counters);
void rdmatensor_counters_destroy(struct rdmatensor_counters *counters);
/* Adds @more to @sum */
void rdmatensor_sums_add(struct rdmatensor_sums *sum, const struct rdmatensor_sums *more);
/* Adds what @counters holds */
void rdmatensor_counters_sum(const struct rdmatensor_counters *counters,
			     struct rdmatensor_sums *sum);

static inline void rdmatensor_count_add(struct rdmatensor_counters *counters,
					enum rdmatensor_stat stat, u64 n)
{
	this_cpu_add(counters->percpu->stats[stat], n);
}

static inline void rdmatensor_count(struct rdmatensor_counters *counters,
				    enum rdmatensor_stat stat)
{
	rdmatensor_count_add(counters, stat, 1);
}

/* A fetch has ended with its tensor, after so long */
static inline void rdmatensor_count_latency(struct rdmatensor_counters *counters, u64 ns)
{
	unsigned int log2 = fls64(ns / NSEC_PER_USEC);

	this_cpu_inc(counters->percpu->latency[min(log2, RDMATENSOR_NL_LATENCY_NR - 1U)]);
}

/* A fetch has ended with that negative errno */
static inline void rdmatensor_count_error(struct rdmatensor_counters *counters, int error)
{
	atomic64_inc(&counters->errors[-error < RDMATENSOR_NL_ERRORS_NR ? -error : 0]);
}

#endif /* RDMATENSOR_STATS_H */
