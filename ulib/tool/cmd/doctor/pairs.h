/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What each rank of a cluster measures with each other one. No rank has to do with two others at a
 * time, so that what is measured is that pair alone, if each host has one rank.
 */
#ifndef TOOL_DOCTOR_PAIRS_H
#define TOOL_DOCTOR_PAIRS_H

#include <stdint.h>

#include <rdmatensor/cluster.h>

#include "tool/common/progress.h"

/**
 * struct pairs_row - what one rank has measured
 * @latency_ns: of the fetch of 4096 bytes of each rank: the median; own rank: 0
 * @bytes_per_s: of the fetch of 8 MiB: the best; own rank: 0
 *
 * Each is an array of as many as the cluster has ranks.
 */
struct pairs_row {
	uint64_t *latency_ns;
	uint64_t *bytes_per_s;
};

/* What a rank fetches of each other one, bytes */
#define PAIR_BYTES (37 * UINT64_C(4096) + 4 * (UINT64_C(8) << 20))

/*
 * Before anything is measured: @bad is how many pairs this rank knows not to work, and becomes how many
 * rank 0 knows of, if this rank knows of none: one that came late may know more than others. Return:
 * 0; a negative errno, and rdmatensor_node_error() has the line
 */
int pairs_agree(struct rdmatensor_cluster *cluster, int *bad);

/*
 * Measures with all others, each of which makes this call too; @progress has PAIR_BYTES more after
 * each. A pair that fails is not measured, which is 0. Return: 0; a negative errno, and
 * rdmatensor_node_error() has the line
 */
int pairs_measure(struct rdmatensor_cluster *cluster, struct pairs_row *row,
		  struct progress *progress);

/*
 * Rank 0 has the rows of all: @all, one behind the other in order of ranks, what is @row's own
 * included. The others give theirs, and @all is not written. Return: as above
 */
int pairs_gather(struct rdmatensor_cluster *cluster, const struct pairs_row *row,
		 struct pairs_row *all);

#endif
