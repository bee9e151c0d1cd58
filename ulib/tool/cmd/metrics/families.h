/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The families of metrics: names, units and help texts. A family is of one kind of subject, whose
 * word is in its name: rdmatensor_KIND_NAME.
 */
#ifndef TOOL_METRICS_FAMILIES_H
#define TOOL_METRICS_FAMILIES_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

/* What metrics are about */
enum kind { KIND_CONTEXT, KIND_DOMAIN, KIND_CHANNEL, NR_KINDS };

/* The numbers of a subject that go up and down */
enum gauge {
	CONTEXT_CHANNELS,
	CONTEXT_POOLS,
	DOMAIN_CONTEXTS,
	DOMAIN_POOLS,
	DOMAIN_POOL_BYTES,
	DOMAIN_LASTING,
	CHANNEL_UP,
	CHANNEL_REQUESTS,
	CHANNEL_RESPONSES,
	CHANNEL_SLOTS,
	CHANNEL_UNCONSUMED,
	NR_GAUGES
};

/**
 * struct gauge_family - a family of gauges
 * @kind: of its subjects
 * @name: behind the kind; ends with the unit, if it has one
 * @unit: bytes or seconds, or NULL: a number of something
 * @help: what it is
 */
struct gauge_family {
	enum kind kind;
	const char *name;
	const char *unit;
	const char *help;
};

/**
 * struct counter_family - the counters of one enum rdmatensor_stat, whose name it has
 * @help: what is counted
 * @of_channel: channels count it, too; the others have nothing to do with a peer
 */
struct counter_family {
	const char *help;
	bool of_channel;
};

/* By their numbers */
extern const char *const kind_names[NR_KINDS];
extern const struct gauge_family gauge_families[NR_GAUGES];
extern const struct counter_family counter_families[RDMATENSOR_STAT_NR];

/* "bytes", or NULL: a number of something */
const char *counter_unit(enum rdmatensor_stat stat);
/* Which of the counters subjects of that kind have, a bit for each */
uint64_t counters_of(enum kind kind);

#endif
