/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of serve: bringing a model into memory (load), what a keeper has of it (keep), or the
 * service manager (stored), and the command around them.
 */
#ifndef TOOL_SERVE_PARTS_H
#define TOOL_SERVE_PARTS_H

#include "safetensors/model.h"
#include "tool/common/filter.h"
#include "tool/common/keeper.h"
#include "tool/common/server.h"
#include "tool/common/store.h"

/**
 * struct region - where something that is published is
 * @pool: the pool
 * @offset: in it
 * @bytes: its length
 */
struct region {
	uint32_t pool;
	uint64_t offset;
	uint64_t bytes;
};

/**
 * struct serve - the command's state
 * @server: the context
 * @path: the file or folder
 * @first_step: of --step
 * @steps: of --steps
 * @memory: of --memory
 * @filter: of --filter
 * @keep: of --keep, or NULL
 * @by_manager: the service manager is the keeper
 * @keeper: that waits for the domain
 * @stored: name of this model's domain in the service manager's store
 * @domain: of a keeper, that the server joins; -1: none
 * @own: of the server, for a keeper
 * @kept: label of that domain
 * @label: of the model: its path, and what tells its content from another
 * @model: what the headers say
 * @begun_ns: when they had been read
 * @pack: of a model with an index: index and headers in one piece
 * @pack_bytes: its length; 0: there is none
 * @dim: the same, the only dim of the header
 * @tensors: where each of @model->all's is
 * @header: the header of all tensors
 * @shards: the pack
 */
struct serve {
	struct server server;
	const char *path;
	int64_t first_step;
	int64_t steps;
	enum store_memory memory;
	struct filter filter;
	const char *keep;
	bool by_manager;
	struct keeper keeper;
	char stored[64];
	int domain;
	int own;
	char kept[KEEPER_LABEL_MAX];
	char label[KEEPER_LABEL_MAX];
	struct st_model model;
	uint64_t begun_ns;
	char *pack;
	size_t pack_bytes;
	uint64_t dim;
	struct region *tensors;
	struct region header;
	struct region shards;
};

/* All: EXIT_OK, or EXIT_FAILED with a message */

/* load.c */

/* Reads the headers, and judges them */
int serve_open(struct serve *serve);
/* Brings the tensors into pools of the context; @tensors, @header and @shards say where */
int serve_load(struct serve *serve);
/* What a step has: the tensors, their header, and the pack of a model with an index */
uint64_t serve_published(const struct serve *serve);

/* keep.c: nothing without --keep */

/* Before the context starts: asks for the keeper's domain, or begins a keeper */
int serve_open_domain(struct serve *serve);
/* What a keeper will get, before a model is loaded in vain */
int serve_create_domain(struct serve *serve);
/* All that would be published is in the keeper's domain already */
int serve_take_up(struct serve *serve);
/* When all is published, so that a keeper has a whole model */
int serve_leave_domain(struct serve *serve);

/* FNV-1a of all that was mixed: it tells a label from another, and nobody gains by two alike */
#define SERVE_SUM_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t serve_sum(uint64_t sum, const void *data, size_t bytes);

/* stored.c */

/*
 * Takes this model's domain out of what the manager has kept, -1: there is none, and has it close
 * whatever else there is of ours
 */
int stored_take(struct serve *serve);
/* The server's own domain for the next one, or nothing if it turned out not to be of use */
int stored_put(struct serve *serve);
int stored_drop(struct serve *serve);

#endif
