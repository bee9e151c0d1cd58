// SPDX-License-Identifier: GPL-2.0
/*
 * Counters. Writers touch their own CPU's copy only; a reader's sum is exact
 * for everything that happened before it began to read.
 */
#include <linux/cpumask.h>
#include <kunit/visibility.h>
#include "core/limits.h"
#include "core/stats.h"

int rdmatensor_counters_init(struct rdmatensor_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters->percpu = alloc_percpu_gfp(struct rdmatensor_tally, RDMATENSOR_GFP_SPARING);
	if (!counters->percpu)
		return -ENOMEM;
	INIT_LIST_HEAD(&counters->item);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_counters_init);

void rdmatensor_counters_destroy(struct rdmatensor_counters *counters)
{
	free_percpu(counters->percpu);
	counters->percpu = NULL;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_counters_destroy);

static void stats_tally_add(struct rdmatensor_tally *sum, const struct rdmatensor_tally *tally)
{
	int i;

	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		sum->stats[i] += READ_ONCE(tally->stats[i]);
	for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++)
		sum->latency[i] += READ_ONCE(tally->latency[i]);
}

void rdmatensor_sums_add(struct rdmatensor_sums *sum, const struct rdmatensor_sums *more)
{
	int i;

	stats_tally_add(&sum->tally, &more->tally);
	for (i = 0; i < RDMATENSOR_NL_ERRORS_NR; i++)
		sum->errors[i] += more->errors[i];
}

void rdmatensor_counters_sum(const struct rdmatensor_counters *counters,
			     struct rdmatensor_sums *sum)
{
	int cpu, i;

	for (i = 0; i < RDMATENSOR_NL_ERRORS_NR; i++)
		sum->errors[i] += atomic64_read(&counters->errors[i]);
	for_each_possible_cpu(cpu)
		stats_tally_add(&sum->tally, per_cpu_ptr(counters->percpu, cpu));
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_counters_sum);
