// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#include "sample.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"
#include "tool/common/output.h"

/* The counters that add up to a rate */
static const struct {
	enum rate rate;
	enum rdmatensor_stat stat;
} parts[] = {
	{ FETCHES, RDMATENSOR_STAT_FETCHED },
	{ IN, RDMATENSOR_STAT_FETCHED_BYTES },
	{ SERVED, RDMATENSOR_STAT_SERVED },
	{ OUT, RDMATENSOR_STAT_SERVED_BYTES },
	{ STALLS, RDMATENSOR_STAT_STALL_SLOTS },
	{ STALLS, RDMATENSOR_STAT_STALL_SENDQ },
	{ STALLS, RDMATENSOR_STAT_STALL_REQUESTS },
	{ ERRORS, RDMATENSOR_STAT_FETCH_ERRORS },
};

static void read_row(struct row *row, struct json_object *object)
{
	struct json_object *counters = NULL, *latency = NULL;
	char below[24];
	size_t i;

	row->context = (uint32_t)number_of(object, "context");
	row->channel = (uint32_t)number_of(object, "channel");
	row->requests = (uint32_t)number_of(object, "requests");
	row->worker = text_of(object, "worker") ?: "";
	row->peer = text_of(object, "peer") ?: "";
	if (json_object_object_get_ex(object, "counters", &counters))
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			row->sums[parts[i].rate] +=
				number_of(counters, rdmatensor_stat_name(parts[i].stat));
	if (json_object_object_get_ex(object, "latency_us", &latency))
		for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++) {
			snprintf(below, sizeof(below), "%" PRIu64, UINT64_C(1) << i);
			row->latency[i] = number_of(latency, below);
		}
}

int sample_take(uint32_t context, struct sample *sample)
{
	struct dump_extent extent;
	size_t i;
	int err;

	memset(sample, 0, sizeof(*sample));
	err = dump_objects(RDMATENSOR_NL_CMD_CHANNEL_GET, context, &sample->list, &extent);
	if (err)
		return err;
	sample->whole = extent.whole;
	sample->own = extent.own;
	sample->at_ns = rdmatensor_now_ns();
	sample->nr = json_object_array_length(sample->list);
	sample->rows = calloc(sample->nr + 1, sizeof(*sample->rows));
	if (!sample->rows) {
		json_object_put(sample->list);
		return failed("out of memory");
	}
	for (i = 0; i < sample->nr; i++)
		read_row(&sample->rows[i], json_object_array_get_idx(sample->list, i));
	return EXIT_OK;
}

void sample_free(struct sample *sample)
{
	free(sample->rows);
	json_object_put(sample->list);
}

static void rate_row(struct row *row, const struct row *before, double seconds)
{
	int i;

	row->seen_before = true;
	for (i = 0; i < NR_RATES; i++)
		row->rates[i] = (double)(row->sums[i] - before->sums[i]) / seconds;
	for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++)
		row->slow[i] = row->latency[i] - before->latency[i];
}

static int busier(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double dx = x->rates[IN] + x->rates[OUT], dy = y->rates[IN] + y->rates[OUT];

	if (dx != dy)
		return dx < dy ? 1 : -1;
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	return x->channel < y->channel ? -1 : 1;
}

void sample_rate(struct sample *now, const struct sample *before)
{
	double seconds = (double)(now->at_ns - before->at_ns) / 1e9;
	size_t i, k;

	for (i = 0; i < now->nr; i++)
		for (k = 0; k < before->nr; k++)
			if (now->rows[i].context == before->rows[k].context &&
			    now->rows[i].channel == before->rows[k].channel)
				rate_row(&now->rows[i], &before->rows[k], seconds);
	qsort(now->rows, now->nr, sizeof(*now->rows), busier);
}

uint64_t sample_quantile(const uint64_t *buckets, double part)
{
	uint64_t all = 0, seen = 0;
	int i;

	for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++)
		all += buckets[i];
	for (i = 0; all && i < RDMATENSOR_NL_LATENCY_NR; i++) {
		seen += buckets[i];
		if ((double)seen >= part * (double)all)
			return UINT64_C(1) << i;
	}
	return 0;
}

void sample_sum(const struct sample *sample, struct row *total)
{
	size_t i;
	int k;

	memset(total, 0, sizeof(*total));
	for (i = 0; i < sample->nr; i++) {
		for (k = 0; k < NR_RATES; k++)
			total->rates[k] += sample->rows[i].rates[k];
		for (k = 0; k < RDMATENSOR_NL_LATENCY_NR; k++)
			total->slow[k] += sample->rows[i].slow[k];
		total->requests += sample->rows[i].requests;
	}
}
