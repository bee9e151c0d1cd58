/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of fetch: from whom (peers), what to fetch (names, union), fetching it (step), writing it
 * (outputs), what that took (report), and the command around them.
 */
#ifndef TOOL_FETCH_PARTS_H
#define TOOL_FETCH_PARTS_H

#include "peers.h"
#include "safetensors/model.h"
#include "slices.h"
#include "tool/common/context_options.h"
#include "tool/common/filter.h"
#include "tool/common/outfile.h"
#include "tool/common/store.h"

/**
 * struct fetch - the command's state
 * @options: options
 * @rt: the context
 * @peer: address of the peer, or list of addresses, as given
 * @peers: the same, each with its channel
 * @first_step: of --step
 * @steps: of --steps
 * @in_flight: of --in-flight
 * @timeout_ns: of --timeout, for each tensor
 * @alloc: --alloc: the kernel finds the tensors' places
 * @memory: of --memory
 * @output: of -o
 * @folder: shards are written, where the peer has some
 * @filter: of --filter
 * @slices: of --slice
 * @model: the file that is written, or the shards
 * @file: all tensors, @model's
 * @store: where they go
 * @offsets: where each is in the pool
 */
struct fetch {
	struct context_options options;
	struct rdmatensor *rt;
	char *peer;
	struct peers peers;
	int64_t first_step;
	int64_t steps;
	int64_t in_flight;
	uint64_t timeout_ns;
	bool alloc;
	enum store_memory memory;
	const char *output;
	bool folder;
	struct filter filter;
	struct slices slices;
	struct st_model model;
	const struct st_file *file;
	struct store store;
	uint64_t *offsets;
};

/**
 * struct step_result - what one step took
 * @step: its number
 * @seconds: from the first submit to the last completion
 * @counters: the context's, for this step only; those of its one channel are gone when the
 *            peer has ended
 */
struct step_result {
	int64_t step;
	double seconds;
	uint64_t counters[RDMATENSOR_STAT_NR];
};

/* When a fetch that begins now must end */
uint64_t fetch_deadline(const struct fetch *fetch);

/* What to do about a fetch that has failed, to be appended to its text; may be "" */
const char *fetch_remedy(const struct rdmatensor_cqe *cqe);
/* Why a fetch from @peer was not submitted, and what to do about it: @text */
const char *fetch_refusal(const struct peer *peer, int err, char *text, size_t len);

/* names.c: fill in fetch->model and fetch->file; EXIT_OK, or EXIT_FAILED with a message */

/* From the peers' indices, or with fetch->folder from the shards of the first */
int fetch_index(struct fetch *fetch);
/* From the meta-data of each name */
int fetch_meta(struct fetch *fetch, char **names, size_t nr);

/* union.c: EXIT_OK, or EXIT_FAILED with a message */

/**
 * struct fetch_union - what several peers have
 * @files: each peer's index, for the models change hands
 * @nr_files: their number
 * @all: by name, those of the same name by peer
 * @nr: their number
 * @names: the number of different names
 */
struct fetch_union {
	struct st_file *files;
	size_t nr_files;
	struct found *all;
	size_t nr;
	size_t names;
};

/*
 * @of: the model of each peer; @all: of zeroes. Fills in fetch->model, which may be one of them: that
 * of @whole, the first peer that has all tensors, if there is one. fetch_union_free() follows in
 * any case
 */
int fetch_unite(struct fetch *fetch, struct st_model *of, struct fetch_union *all,
		struct peer **whole);
/* Who has which tensor of fetch->model, filtered or not */
int fetch_owners(struct fetch *fetch, const struct fetch_union *all);
/* No-op for one of zeroes */
void fetch_union_free(struct fetch_union *all);

/* step.c: EXIT_OK, or EXIT_FAILED with a message */

/* Makes the pool and lays the tensors out */
int fetch_prepare(struct fetch *fetch);
/* Fetches all tensors of one step */
int fetch_step(struct fetch *fetch, int64_t step, struct step_result *result);

/* outputs.c: EXIT_OK, or EXIT_FAILED with a message; then only outputs_drop() may follow */

/**
 * struct outputs - the file, or the files of a folder
 * @name: as the user gave it
 * @folder: it is a folder, and ends in a slash
 * @files: the model's files in their order, and the index behind them
 * @names: of each in a folder
 * @nr: their number
 */
struct outputs {
	const char *name;
	bool folder;
	struct outfile *files;
	char **names;
	size_t nr;
};

/* Before the fetch, which would be in vain if nothing can be written there */
int outputs_begin(struct outputs *outputs, const char *name);
/* When it is known what there is to write: opens all files, and reserves their space */
int outputs_open(struct outputs *outputs, const struct st_model *model);
/* Writes all that was fetched, and gives the files their names, the index last */
int outputs_write(struct outputs *outputs, const struct fetch *fetch);
/* Without outputs_write() nothing has changed. No-op for one of zeroes */
void outputs_drop(struct outputs *outputs);

/* report.c: a line for each of --steps */

void fetch_print(const struct fetch *fetch, const struct step_result *results);
/* EXIT_OK, or EXIT_FAILED with a message */
int fetch_print_json(const struct fetch *fetch, const struct step_result *results,
		     const char *output);

#endif
