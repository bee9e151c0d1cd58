/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the module says of all contexts, domains and channels of this network namespace, read for
 * metrics at one moment. Whatever contexts and peers there are, it holds no more series than it
 * was asked for.
 */
#ifndef TOOL_METRICS_SCRAPE_H
#define TOOL_METRICS_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdmatensor/netlink.h>

#include "families.h"

/**
 * struct subject - what metrics are about: a context, a domain or a channel
 * @id: its number; of a channel its context's
 * @labels: which one it is, as name="value",name="value"
 * @info: what else is to be said of it, in the same form, with a comma in front; may be ""
 * @device: label of the RDMA device within @labels, with a comma in front; "": it has gone
 * @known: counters that the module has told, a bit for each
 * @counters: by enum rdmatensor_stat
 * @latency: fetches that ended with their tensor, by log2 of their microseconds
 * @errors: fetches that ended with that errno; [0]: with another one
 * @gauges: those of its kind
 */
struct subject {
	uint32_t id;
	char *labels;
	char *info;
	char *device;
	uint64_t known;
	uint64_t counters[RDMATENSOR_STAT_NR];
	uint64_t latency[RDMATENSOR_NL_LATENCY_NR];
	uint64_t errors[RDMATENSOR_NL_ERRORS_NR];
	uint64_t gauges[NR_GAUGES];
};

/**
 * struct subjects - all of a kind
 * @list: in the order of the dump, which is that of their numbers
 * @nr: their number
 * @room: how many the list has memory for
 */
struct subjects {
	struct subject *list;
	size_t nr;
	size_t room;
};

/**
 * struct scrape - all of them
 * @of: by kind
 * @series: in all of these
 * @most: bound on @series
 * @left_out: series of subjects beyond the bound
 * @whole: false: objects came and went; some may be missing or listed twice
 * @own: of the user's own contexts and domains alone
 * @took_ns: time that it took to ask the module, in nanoseconds
 */
struct scrape {
	struct subjects of[NR_KINDS];
	uint64_t series;
	uint64_t most;
	uint64_t left_out;
	bool whole;
	bool own;
	uint64_t took_ns;
};

/*
 * With @most series, of whole subjects: contexts first, then domains, then channels. EXIT_OK, or
 * EXIT_FAILED with a message; scrape_free() follows either
 */
int scrape_take(struct scrape *scrape, uint64_t most);
void scrape_free(struct scrape *scrape);

#endif
