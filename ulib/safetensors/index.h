/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The index of a model: a JSON object whose weight_map has for each tensor the name of its
 * shard.
 */
#ifndef ST_INDEX_H
#define ST_INDEX_H

#include "model.h"

struct json_object;

/*
 * Judges an index's text, which no tree is built of before its outline is that of an index.
 * *@root: out: its tree, which the caller puts, failed or not. 0, -EINVAL, -ENOMEM
 */
int st_index_parse(const char *json, size_t bytes, struct json_object **root, char *error,
		   size_t error_len);

/*
 * The names of the shards, each once, in their order; they are good names of files in the
 * index's folder, and live as long as @root. @names: for free(). 0, -ENOMEM
 */
int st_index_shards(struct json_object *root, const char ***names, size_t *nr);

/*
 * Whether shards and index have the same tensors. Takes weight_map apart: @root is good for
 * nothing else afterwards. 0, -EINVAL
 */
int st_index_check(struct json_object *root, const struct st_model *model, char *error,
		   size_t error_len);

/*
 * The index without the tensors that are not in @model any more. @text: for free(). 0,
 * -EINVAL, -ENOMEM
 */
int st_index_write(const struct st_model *model, char **text, size_t *bytes);

#endif
