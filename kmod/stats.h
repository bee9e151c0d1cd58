/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters: per-CPU, summed when they are read. A channel has a set of its own,
 * which its context takes over when the channel ends.
 */
#ifndef RDMATENSOR_STATS_H
#define RDMATENSOR_STATS_H

#include <linux/list.h>
#include <linux/percpu.h>
#include "rdmatensor.h"

/**
 * struct rdmatensor_counters - one set
 * @item: among those of one context, see exchange.h
 * @percpu: RDMATENSOR_STAT_NR counters a CPU
 * @base: what was folded in from sets that are gone; under the owner's lock
 */
struct rdmatensor_counters {
	struct list_head item;
	u64 __percpu *percpu;
	u64 base[RDMATENSOR_STAT_NR];
};

int rdmatensor_counters_init(struct rdmatensor_counters *counters);
void rdmatensor_counters_destroy(struct rdmatensor_counters *counters);
/* Adds what @counters holds to @sum[RDMATENSOR_STAT_NR] */
void rdmatensor_counters_sum(const struct rdmatensor_counters *counters, u64 *sum);

static inline void rdmatensor_count_add(struct rdmatensor_counters *counters,
					enum rdmatensor_stat stat, u64 n)
{
	this_cpu_add(counters->percpu[stat], n);
}

static inline void rdmatensor_count(struct rdmatensor_counters *counters,
				    enum rdmatensor_stat stat)
{
	rdmatensor_count_add(counters, stat, 1);
}

#endif /* RDMATENSOR_STATS_H */
