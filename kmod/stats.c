// SPDX-License-Identifier: GPL-2.0
/*
 * Counters. Writers touch their own CPU's copy only; a reader's sum is exact
 * for everything that happened before it began to read.
 */
#include <linux/cpumask.h>
#include <kunit/visibility.h>
#include "stats.h"

int rdmatensor_counters_init(struct rdmatensor_counters *counters)
{
	counters->percpu = __alloc_percpu(sizeof(u64) * RDMATENSOR_STAT_NR, __alignof__(u64));
	if (!counters->percpu)
		return -ENOMEM;
	INIT_LIST_HEAD(&counters->item);
	memset(counters->base, 0, sizeof(counters->base));
	return 0;
}

void rdmatensor_counters_destroy(struct rdmatensor_counters *counters)
{
	free_percpu(counters->percpu);
	counters->percpu = NULL;
}

void rdmatensor_counters_sum(const struct rdmatensor_counters *counters, u64 *sum)
{
	int cpu, i;

	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		sum[i] += counters->base[i];

	for_each_possible_cpu(cpu) {
		const u64 *v = per_cpu_ptr(counters->percpu, cpu);

		for (i = 0; i < RDMATENSOR_STAT_NR; i++)
			sum[i] += READ_ONCE(v[i]);
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_counters_sum);
