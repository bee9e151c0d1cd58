/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Models: a safetensors file, or a folder with an index and the shards that it names. The
 * index has for each tensor the name of the one shard that has it.
 *
 * Neither an index nor a shard is trusted, of a folder or of a peer: st_model_open() and
 * st_model_unpack() take those only in which index and shards say the same.
 */
#ifndef ST_MODEL_H
#define ST_MODEL_H

#include <stdbool.h>

#include "safetensors.h"

/* Name of a folder's index, and of a model that has none */
#define ST_INDEX_NAME "model.safetensors.index.json"
#define ST_MODEL_NAME "model.safetensors"
/* What the name of each shard ends in */
#define ST_SHARD_SUFFIX ".safetensors"
/* Longest index */
#define ST_INDEX_MAX (64u << 20)
/* Longest result of st_model_pack() */
#define ST_PACK_MAX (2 * ST_HEADER_MAX)

/**
 * struct st_shard - one file of a model
 * @name: in the model's folder
 * @path: where it was read, or NULL: it is a peer's
 * @file: its tensors
 * @at: where each tensor's bytes are in what @fd reads; NULL: where @file says
 * @fd: open for reading; -1: not open
 */
struct st_shard {
	char *name;
	char *path;
	struct st_file file;
	uint64_t *at;
	int fd;
};

/**
 * struct st_place - where a tensor of a model is
 * @shard: number of its shard
 * @tensor: its number there
 */
struct st_place {
	size_t shard;
	size_t tensor;
};

/**
 * struct st_model - what st_model_open(), st_model_unpack() or st_model_one() made
 * @shards: its files, in the order of their names
 * @nr: their number
 * @index: the index's text; NULL: there is none, and the only file is the model
 * @index_bytes: its length
 * @all: all tensors, as one file has them: the only one, or one that is made of the shards,
 *       with the longest elements first, so that each tensor is aligned in it
 * @places: of each of @all's; NULL: in the only file, at the same number. Of two tensors
 *          without bytes it may name the other
 */
struct st_model {
	struct st_shard *shards;
	size_t nr;
	char *index;
	size_t index_bytes;
	struct st_file *all;
	struct st_place *places;
};

/**
 * st_model_open() - open a model and read all headers
 * @path: a safetensors file; or a folder with ST_INDEX_NAME and shards, or with ST_MODEL_NAME.
 *        Symbolic links are followed
 * @model: out, for st_model_free(); untouched if the call fails
 * @error: out: a line that names the file, what is wrong, and what to do
 * @error_len: its length, ST_ERROR_MAX is enough
 *
 * Return: 0, or a negative errno.
 */
int st_model_open(const char *path, struct st_model *model, char *error, size_t error_len);

/**
 * st_model_one() - a model of one file
 * @file: the file, which is the model's from now on, failed or not
 * @model: out, for st_model_free(); untouched if the call fails
 *
 * Return: 0, -ENOMEM.
 */
int st_model_one(struct st_file *file, struct st_model *model);

/**
 * st_model_join() - a model of one file with the tensors of several files
 * @files: the files, no two of which have a tensor in common; not changed
 * @nr: their number
 * @model: out, for st_model_free(); untouched if the call fails. The longest elements are first,
 *         and behind these the order is that of the files
 * @error: as for st_model_open()
 * @error_len: as for st_model_open()
 *
 * Return: 0; -EINVAL: no file can have these tensors; -ENOMEM.
 */
int st_model_join(const struct st_file *files, size_t nr, struct st_model *model, char *error,
		  size_t error_len);

/**
 * st_model_filter() - leave only some tensors in a model
 * @model: the model. Shards that have none of them leave it, the others' headers and the index
 *         are written again
 * @wanted: whether a tensor stays
 * @arg: for @wanted
 * @error: as for st_model_open()
 * @error_len: as for st_model_open()
 *
 * Return: 0; -ENOENT, without a text: no tensor stays; -EINVAL, -ENOMEM. After an error only
 * st_model_free() may follow.
 */
int st_model_filter(struct st_model *model, bool (*wanted)(void *arg, const char *name),
		    void *arg, char *error, size_t error_len);

/**
 * st_model_pack() - the index and all headers in one piece, for a peer
 * @model: a model with an index
 * @pack: out, for free(): a safetensors file itself, whose "tensors" of bytes are the index
 *        and each shard's header under their file names
 * @bytes: out: its length
 * @error: as for st_model_open()
 * @error_len: as for st_model_open()
 *
 * Return: 0; -EINVAL: there is no index, or it would be longer than ST_PACK_MAX; -ENOMEM.
 */
int st_model_pack(const struct st_model *model, char **pack, size_t *bytes, char *error,
		  size_t error_len);

/**
 * st_model_unpack() - the model of a pack
 * @pack: the pack, which is not trusted
 * @bytes: its length
 * @model: out, for st_model_free(); untouched if the call fails. No shard is open
 * @error: as for st_model_open()
 * @error_len: as for st_model_open()
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int st_model_unpack(const char *pack, size_t bytes, struct st_model *model, char *error,
		    size_t error_len);

/** st_model_place() - where tensor @i of @model->all is */
static inline struct st_place st_model_place(const struct st_model *model, size_t i)
{
	return model->places ? model->places[i] : (struct st_place){ .shard = 0, .tensor = i };
}

/** st_shard_at() - where the bytes of tensor @i are in what @shard->fd reads */
static inline uint64_t st_shard_at(const struct st_shard *shard, size_t i)
{
	return shard->at ? shard->at[i] :
			   st_data_offset(&shard->file) + shard->file.tensors[i].begin;
}

/** st_model_close_files() - what is read is read */
void st_model_close_files(struct st_model *model);

/** st_model_free() - close and free all of a model; one of zeroes as well */
void st_model_free(struct st_model *model);

#endif
