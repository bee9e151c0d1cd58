// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who measures with whom is a tournament's plan, by the circle method: one rank stays where it is,
 * the others move on by one place in each round, and who faces each other is a pair. A pair has no
 * clock in common with others: each waits for the other one to come to the round, then the lower
 * rank measures while the higher serves, and then the other way round. Since all go through the
 * rounds in the same order, none waits for one that waits for it.
 *
 * Who waits gets a tensor that is not offered yet: turns are tensors of one byte, whose step is the
 * round.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"
#include "tool/common/numbers.h"

#define SMALL 4096
#define LARGE (8u << 20)
#define SMALL_TIMES 33
/* Not counted: caches and the congestion window are as they were before */
#define SMALL_WARM 4
#define LARGE_TIMES 4
/* Of each kind; a slow pair is measured less often, for others wait for its ranks */
#define KIND_NS UINT64_C(1000000000)

_Static_assert(PAIR_BYTES == (SMALL_WARM + SMALL_TIMES) * SMALL + LARGE_TIMES * (uint64_t)LARGE,
	       "what a pair moves");

static const char small_name[] = "doctor.small", large_name[] = "doctor.large";
static const char row_name[] = "doctor.row", verdict_name[] = "doctor.verdict";
/* Come to the round, measured, measured too */
static const char *const turns[] = { "doctor.here", "doctor.first", "doctor.second" };

/**
 * struct table - where pairs meet
 * @cluster: the ranks
 * @rank: own rank
 * @size: number of ranks
 * @bytes: memory that others fetch from, and of turns
 * @room: memory that peers write to, LARGE bytes
 */
struct table {
	struct rdmatensor_cluster *cluster;
	unsigned int rank;
	unsigned int size;
	uint8_t *bytes;
	uint8_t *room;
};

static int offer(struct table *table, const char *name, int64_t step, void *data, uint64_t bytes)
{
	struct rdmatensor_tensor tensor = {
		.data = data, .step = step, .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
		.dims = { bytes },
	};

	return rdmatensor_offer(rdmatensor_cluster_node(table->cluster), name, &tensor);
}

/* To @data, which has so many bytes */
static int get(struct table *table, unsigned int rank, const char *name, int64_t step, void *data,
	       uint64_t bytes)
{
	struct rdmatensor_tensor tensor = { .data = data, .bytes = bytes, .step = step };

	return rdmatensor_cluster_get_many(table->cluster, rank, &name, &tensor, 1);
}

static int say(struct table *table, unsigned int turn, unsigned int round)
{
	return offer(table, turns[turn], round, table->bytes, 1);
}

static int await(struct table *table, unsigned int rank, unsigned int turn, unsigned int round)
{
	return get(table, rank, turns[turn], round, table->room, 1);
}

/* How long one fetch took, of @bytes, in ns; 0: it failed */
static uint64_t time_one(struct table *table, unsigned int rank, const char *name, uint64_t bytes)
{
	uint64_t began = rdmatensor_now_ns(), took;

	if (get(table, rank, name, 0, table->room, bytes))
		return 0;
	took = rdmatensor_now_ns() - began;
	return took ? took : 1;
}

static int measure_one(struct table *table, unsigned int rank, struct pairs_row *row)
{
	uint64_t took[SMALL_TIMES], now, best = UINT64_MAX, until;
	int i, nr = 0;

	until = rdmatensor_now_ns() + KIND_NS;
	for (i = -SMALL_WARM; i < SMALL_TIMES && (nr < 1 || rdmatensor_now_ns() < until); i++) {
		now = time_one(table, rank, small_name, SMALL);
		if (!now)
			return -EIO;
		if (i >= 0)
			took[nr++] = now;
	}
	until = rdmatensor_now_ns() + KIND_NS;
	for (i = 0; i < LARGE_TIMES && (i < 1 || rdmatensor_now_ns() < until); i++) {
		now = time_one(table, rank, large_name, LARGE);
		if (!now)
			return -EIO;
		if (now < best)
			best = now;
	}
	qsort(took, (size_t)nr, sizeof(took[0]), number_order);
	row->latency_ns[rank] = took[nr / 2];
	row->bytes_per_s[rank] = (uint64_t)(LARGE * 1e9 / (double)best);
	return 0;
}

/* A rank that cannot say its turn leaves the other one waiting, and no longer than the timeout */
static int meet(struct table *table, unsigned int rank, unsigned int round, struct pairs_row *row)
{
	bool first = table->rank < rank;
	int err;

	err = say(table, 0, round);
	err = err ? err : await(table, rank, 0, round);
	if (!err && !first)
		err = await(table, rank, 1, round);
	err = err ? err : measure_one(table, rank, row);
	err = err ? err : say(table, first ? 1 : 2, round);
	if (!err && first)
		err = await(table, rank, 2, round);
	return err;
}

/* Among @seats, an even number: the last one stays; the own seat: nobody */
static unsigned int opponent(unsigned int seat, unsigned int round, unsigned int seats)
{
	unsigned int others = seats - 1, faced;

	if (seat == others) {
		/* It faces who faces itself among the others: 2 * seat = round, modulo an odd number */
		faced = round % 2 ? (round + others) / 2 : round / 2;
		return faced % others;
	}
	faced = (round + others - seat) % others;
	return faced == seat ? others : faced;
}

static int table_open(struct table *table, struct rdmatensor_cluster *cluster)
{
	struct rdmatensor_node *node = rdmatensor_cluster_node(cluster);
	int err;

	table->cluster = cluster;
	table->rank = rdmatensor_cluster_rank(cluster);
	table->size = rdmatensor_cluster_size(cluster);
	table->bytes = rdmatensor_node_alloc(node, LARGE);
	table->room = table->bytes ? rdmatensor_node_alloc_out(node, LARGE) : NULL;
	if (!table->room)
		return -ENOMEM;
	memset(table->bytes, 0x5a, LARGE);
	err = offer(table, small_name, 0, table->bytes, SMALL);
	return err ? err : offer(table, large_name, 0, table->bytes, LARGE);
}

int pairs_measure(struct rdmatensor_cluster *cluster, struct pairs_row *row,
		  struct progress *progress)
{
	unsigned int seats, round, rank;
	struct table table;
	int err;

	err = table_open(&table, cluster);
	seats = table.size + table.size % 2;
	for (round = 0; !err && round + 1 < seats; round++) {
		rank = opponent(table.rank, round, seats);
		/* An odd one out */
		if (rank >= table.size)
			continue;
		/* What was not measured is 0 in the row, and the next round is another pair's */
		meet(&table, rank, round, row);
		progress_add(progress, PAIR_BYTES);
	}
	/* What is offered stays until the cluster is closed, for others may not be done */
	return err;
}

static int take_rows(struct table *table, const struct pairs_row *own, struct pairs_row *all,
		     uint64_t *room)
{
	size_t bytes = table->size * sizeof(uint64_t), at;
	unsigned int rank;
	int err;

	for (rank = 0; rank < table->size; rank++) {
		at = (size_t)rank * table->size;
		if (rank == table->rank) {
			memcpy(all->latency_ns + at, own->latency_ns, bytes);
			memcpy(all->bytes_per_s + at, own->bytes_per_s, bytes);
			continue;
		}
		err = get(table, rank, row_name, 0, room, 2 * bytes);
		if (err)
			return err;
		memcpy(all->latency_ns + at, room, bytes);
		memcpy(all->bytes_per_s + at, room + table->size, bytes);
	}
	return 0;
}

int pairs_agree(struct rdmatensor_cluster *cluster, int *bad)
{
	struct table table = { .cluster = cluster };
	int32_t *verdict;
	int err;

	verdict = rdmatensor_node_alloc_out(rdmatensor_cluster_node(cluster), sizeof(*verdict));
	if (!verdict)
		return -ENOMEM;
	*verdict = *bad;
	if (rdmatensor_cluster_rank(cluster) == 0)
		return offer(&table, verdict_name, 0, verdict, sizeof(*verdict));
	err = *bad ? 0 : get(&table, 0, verdict_name, 0, verdict, sizeof(*verdict));
	if (!err)
		*bad = *verdict;
	return err;
}

int pairs_gather(struct rdmatensor_cluster *cluster, const struct pairs_row *row,
		 struct pairs_row *all)
{
	struct table table = {
		.cluster = cluster, .rank = rdmatensor_cluster_rank(cluster),
		.size = rdmatensor_cluster_size(cluster),
	};
	size_t bytes = table.size * sizeof(uint64_t);
	uint64_t *both;

	both = rdmatensor_node_alloc_out(rdmatensor_cluster_node(cluster), 2 * bytes);
	if (!both)
		return -ENOMEM;
	if (table.rank == 0)
		return take_rows(&table, row, all, both);
	memcpy(both, row->latency_ns, bytes);
	memcpy(both + table.size, row->bytes_per_s, bytes);
	return offer(&table, row_name, 0, both, 2 * bytes);
}
