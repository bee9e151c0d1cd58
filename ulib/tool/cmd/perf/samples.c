// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "tool/common/numbers.h"

int samples_init(struct samples *samples)
{
	samples->ns = malloc(SAMPLES_MAX * sizeof(*samples->ns));
	if (!samples->ns)
		return -ENOMEM;
	/* Avoids page faults during the measurement */
	memset(samples->ns, 0, SAMPLES_MAX * sizeof(*samples->ns));
	samples_reset(samples);
	return 0;
}

void samples_reset(struct samples *samples)
{
	uint64_t *ns = samples->ns;

	memset(samples, 0, sizeof(*samples));
	samples->ns = ns;
	samples->stride = 1;
	samples->min = UINT64_MAX;
}

static void halve(struct samples *samples)
{
	size_t i;

	samples->nr /= 2;
	for (i = 0; i < samples->nr; i++)
		samples->ns[i] = samples->ns[2 * i];
	samples->stride *= 2;
}

void samples_add(struct samples *samples, uint64_t ns)
{
	samples->count++;
	samples->sum += ns;
	if (ns < samples->min)
		samples->min = ns;
	if (ns > samples->max)
		samples->max = ns;
	if (samples->skip) {
		samples->skip--;
		return;
	}
	if (samples->nr == SAMPLES_MAX)
		halve(samples);
	samples->ns[samples->nr++] = ns;
	samples->skip = samples->stride - 1;
}

void samples_sort(struct samples *samples)
{
	qsort(samples->ns, samples->nr, sizeof(*samples->ns), number_order);
}

uint64_t samples_percentile(const struct samples *samples, unsigned int percent)
{
	if (!samples->nr)
		return 0;
	return samples->ns[(samples->nr - 1) * percent / 100];
}

void samples_free(struct samples *samples)
{
	free(samples->ns);
}
