// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * doctor --cluster: run by every host of a file, once each. All ranks find the same, so rank 0 is
 * the one that prints; another one says in one line how it ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/cluster.h>

#include "cluster.h"
#include "heat.h"
#include "pairs.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"

/* As many hosts that are not there hold others up for no longer than they are waited for */
#define CONNECTS 128

/**
 * struct round - one visit to a cluster
 * @cluster: joined
 * @rank: own rank
 * @size: number of ranks
 * @errors: of all pairs, as rdmatensor_cluster_check() has them
 * @own: what this rank has measured
 * @all: what all have; of rank 0 only
 * @names: of the ranks, for a person
 * @as_json: --json was given
 * @json: what is printed then, by rank 0; else NULL
 */
struct round {
	struct rdmatensor_cluster *cluster;
	unsigned int rank;
	unsigned int size;
	int *errors;
	struct pairs_row own;
	struct pairs_row all;
	char (*names)[80];
	bool as_json;
	struct json_object *json;
};

static void *array(size_t nr, size_t bytes)
{
	void *memory = calloc(nr, bytes);

	if (!memory)
		out_of_memory();
	return memory;
}

static int lost(void)
{
	return failed("%s", rdmatensor_node_error());
}

static int round_begin(struct round *round, const char *file, uint64_t timeout_ns, bool json)
{
	struct rdmatensor_cluster_options options = {
		.source = RDMATENSOR_CLUSTER_HOSTS,
		.timeout_ms = timeout_ns ? (int64_t)((timeout_ns + 999999) / 1000000) : -1,
		.connects = CONNECTS,
		/* A program's rank at its address is not a doctor's */
		.job = "doctor",
	};
	size_t all;

	if (setenv("RDMATENSOR_HOSTS", file, 1))
		out_of_memory();
	if (rdmatensor_cluster_open(&round->cluster, &options))
		return lost();
	round->rank = rdmatensor_cluster_rank(round->cluster);
	round->size = rdmatensor_cluster_size(round->cluster);
	all = (size_t)round->size * round->size;
	round->errors = array(all, sizeof(*round->errors));
	round->own.latency_ns = array(round->size, sizeof(uint64_t));
	round->own.bytes_per_s = array(round->size, sizeof(uint64_t));
	round->all.latency_ns = array(all, sizeof(uint64_t));
	round->all.bytes_per_s = array(all, sizeof(uint64_t));
	round->names = array(round->size, sizeof(*round->names));
	round->as_json = json;
	if (json && round->rank == 0)
		round->json = json_object_new_object();
	return EXIT_OK;
}

static void round_end(struct round *round)
{
	rdmatensor_cluster_close(round->cluster);
	free(round->errors);
	free(round->own.latency_ns);
	free(round->own.bytes_per_s);
	free(round->all.latency_ns);
	free(round->all.bytes_per_s);
	free(round->names);
}

static void name_all(struct round *round)
{
	char address[RDMATENSOR_CLUSTER_ADDRESS_MAX];
	unsigned int rank;

	for (rank = 0; rank < round->size; rank++) {
		if (rdmatensor_cluster_address(round->cluster, rank, address, sizeof(address)))
			strcpy(address, "address not known");
		snprintf(round->names[rank], sizeof(round->names[rank]), "%.79s", address);
	}
}

static void add_errors(struct round *round)
{
	struct json_object *list = json_object_new_array(), *one;
	size_t all = (size_t)round->size * round->size, i;

	for (i = 0; i < all; i++) {
		if (!round->errors[i])
			continue;
		one = json_object_new_object();
		add_number(one, "rank", i / round->size);
		add_number(one, "of", i % round->size);
		json_object_object_add(one, "error", json_object_new_int(round->errors[i]));
		add_string(one, "text", strerror(-round->errors[i]));
		json_object_array_add(list, one);
	}
	json_object_object_add(round->json, "errors", list);
}

/*
 * One rank tells people all of it, and so does each that has not reached it.
 *
 * Return: how many pairs do not work; -1: with a message, it could not be found out
 */
static int check(struct round *round)
{
	int bad = rdmatensor_cluster_check(round->cluster, round->errors, round->size);
	bool reached;
	char *text;

	if (bad < 0) {
		lost();
		return -1;
	}
	reached = !round->errors[(size_t)round->rank * round->size];
	if (round->json) {
		add_errors(round);
	} else if (!round->as_json && (round->rank == 0 || !reached)) {
		text = rdmatensor_cluster_matrix(round->cluster, round->errors, round->size);
		if (!text)
			out_of_memory();
		fputs(text, stdout);
		free(text);
		if (bad)
			puts("Nothing was measured: mend these pairs, or leave their hosts out of the file, first.");
		fflush(stdout);
	} else if (bad) {
		failed("cluster: %d pairs do not work: %s", bad, reached ? "rank 0 says which" :
		       "rank 0 is not reached, so without --json this one says which");
	}
	return bad;
}

static int measure(struct round *round)
{
	struct progress progress;
	int err, bad = 0;

	err = pairs_agree(round->cluster, &bad);
	if (err)
		return lost();
	if (bad)
		return failed("cluster: %d pairs do not work: rank 0 says which", bad);
	progress_begin(&progress, "measure", (round->size - 1) * PAIR_BYTES);
	err = pairs_measure(round->cluster, &round->own, &progress);
	progress_end(&progress);
	err = err ? err : pairs_gather(round->cluster, &round->own, &round->all);
	/* Rank 0 has the rows before any rank goes */
	err = err ? err : rdmatensor_cluster_barrier(round->cluster);
	return err ? lost() : EXIT_OK;
}

static int report(struct round *round)
{
	struct heat heat = {
		.size = round->size, .names = round->names,
		.latency_ns = round->all.latency_ns, .bytes_per_s = round->all.bytes_per_s,
	};
	int odd;

	name_all(round);
	odd = round->json ? heat_add(&heat, round->json) :
			    heat_print(&heat, fd_has_colours(STDOUT_FILENO), stdout);
	if (odd < 0)
		out_of_memory();
	if (!round->json && !odd)
		puts("No pair is odd.");
	return odd ? EXIT_FAILED : EXIT_OK;
}

int doctor_cluster(const char *file, uint64_t timeout_ns, bool json)
{
	struct round round = {};
	int bad, err;

	err = round_begin(&round, file, timeout_ns, json);
	if (err) {
		/* Its rank is not known yet */
		if (json) {
			round.json = json_object_new_object();
			add_string(round.json, "error", rdmatensor_node_error());
			print_json(round.json);
		}
		return err;
	}
	bad = check(&round);
	/* A rank that knows of none asks */
	if (bad > 0 && round.rank == 0)
		pairs_agree(round.cluster, &bad);
	err = bad ? EXIT_FAILED : measure(&round);
	if (!err && round.rank == 0)
		err = report(&round);
	/* Whoever reads JSON is told what standard error says */
	if (round.json) {
		if (bad < 0 || (!bad && !json_object_object_get_ex(round.json, "odd", NULL)))
			add_string(round.json, "error", rdmatensor_node_error());
		print_json(round.json);
	}
	round_end(&round);
	return err;
}
