// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One file of all shards, and what remains of shards when tensors leave them.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "index.h"
#include "internal.h"
#include "shards.h"

/* The members of a header's __metadata__ that @to does not have yet: the first one stays */
static int add_metadata(struct json_object *to, const struct st_file *file)
{
	struct json_object *root = NULL, *pairs;
	int err;

	/* It was judged before: __metadata__ is an object, if there is one */
	err = st_parse_json(&st_header_words, ST_HEADER_NESTING, file->header,
			    file->header_bytes, &root, NULL, 0);
	if (!err && json_object_object_get_ex(root, ST_METADATA, &pairs)) {
		json_object_object_foreach(pairs, key, value) {
			if (json_object_object_get_ex(to, key, NULL))
				continue;
			if (!json_object_object_add(to, key, json_object_get(value)))
				continue;
			json_object_put(value);
			err = -ENOMEM;
			break;
		}
	}
	json_object_put(root);
	return err;
}

static int make(const struct st_tensor *tensors, size_t nr, struct json_object *metadata,
		struct st_file *file, char *error, size_t error_len)
{
	if (metadata && !json_object_object_length(metadata))
		metadata = NULL;
	return st_make_with(tensors, nr, metadata, file, error, error_len);
}

/* ---- one file of all -------------------------------------------------------- */

static uint32_t bits_of(const struct st_tensor *tensor)
{
	uint32_t bits = 0;

	st_data_type(tensor->dtype, &bits);
	return bits;
}

/* Each of them is aligned behind longer ones; else the shards' order stays */
static int by_bits(const void *a, const void *b, void *arg)
{
	const struct st_model *model = arg;
	const struct st_place *x = a, *y = b;
	uint32_t xb = bits_of(&model->shards[x->shard].file.tensors[x->tensor]);
	uint32_t yb = bits_of(&model->shards[y->shard].file.tensors[y->tensor]);

	if (xb != yb)
		return xb > yb ? -1 : 1;
	if (x->shard != y->shard)
		return x->shard < y->shard ? -1 : 1;
	return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static void sort_places(struct st_model *model, size_t nr)
{
	size_t shard, tensor, i = 0;

	for (shard = 0; shard < model->nr; shard++)
		for (tensor = 0; tensor < model->shards[shard].file.nr; tensor++)
			model->places[i++] = (struct st_place){ shard, tensor };
	qsort_r(model->places, nr, sizeof(*model->places), by_bits, model);
}

static int merge(struct st_model *model, struct st_tensor *tensors, size_t nr,
		 struct json_object *metadata, char *error, size_t error_len)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < model->nr; i++)
		err = add_metadata(metadata, &model->shards[i].file);
	if (err)
		return err;
	sort_places(model, nr);
	for (i = 0; i < nr; i++)
		tensors[i] = model->shards[model->places[i].shard].file
				     .tensors[model->places[i].tensor];
	return make(tensors, nr, metadata, model->all, error, error_len);
}

int st_shards_list(struct st_model *model, char *error, size_t error_len)
{
	struct json_object *metadata = json_object_new_object();
	struct st_tensor *tensors;
	size_t nr = 0, i;
	int err;

	for (i = 0; i < model->nr; i++)
		nr += model->shards[i].file.nr;
	tensors = calloc(nr + 1, sizeof(*tensors));
	model->all = calloc(1, sizeof(*model->all));
	model->places = calloc(nr + 1, sizeof(*model->places));
	err = metadata && tensors && model->all && model->places ?
	      merge(model, tensors, nr, metadata, error, error_len) : -ENOMEM;
	if (err == -ENOMEM)
		st_fail(error, error_len, err, "out of memory");
	free(tensors);
	json_object_put(metadata);
	return err;
}

void st_shards_unlist(struct st_model *model)
{
	if (model->index && model->all) {
		st_free(model->all);
		free(model->all);
	}
	free(model->places);
	model->all = NULL;
	model->places = NULL;
}

int st_model_join(const struct st_file *files, size_t nr, struct st_model *model, char *error,
		  size_t error_len)
{
	struct st_shard *shards = calloc(nr + 1, sizeof(*shards));
	struct st_model parts = { .shards = shards, .nr = nr };
	size_t i;
	int err;

	if (!shards)
		return st_fail(error, error_len, -ENOMEM, "out of memory");
	for (i = 0; i < nr; i++)
		shards[i].file = files[i];
	err = st_shards_list(&parts, error, error_len);
	if (!err) {
		err = st_model_one(parts.all, model);
		if (err)
			st_fail(error, error_len, err, "out of memory");
	}
	free(parts.all);
	free(parts.places);
	free(shards);
	return err;
}

/* ---- a part of them --------------------------------------------------------- */

int st_shard_name(struct st_shard *shard, const char *name)
{
	shard->name = strdup(name);
	return shard->name ? 0 : -ENOMEM;
}

void st_shard_free(struct st_shard *shard)
{
	if (shard->fd >= 0)
		close(shard->fd);
	free(shard->name);
	free(shard->path);
	free(shard->at);
	st_free(&shard->file);
}

/* Where the bytes are stays, whatever the new header says */
static int replace(struct st_shard *shard, const struct st_tensor *tensors, uint64_t *at,
		   size_t nr, char *error, size_t error_len)
{
	struct json_object *metadata = json_object_new_object();
	struct st_file file;
	int err;

	err = metadata ? add_metadata(metadata, &shard->file) : -ENOMEM;
	if (!err)
		err = make(tensors, nr, metadata, &file, error, error_len);
	json_object_put(metadata);
	if (err)
		return err;
	st_free(&shard->file);
	free(shard->at);
	shard->file = file;
	shard->at = at;
	return 0;
}

static int filter_shard(struct st_shard *shard, bool (*wanted)(void *arg, const char *name),
			void *arg, char *error, size_t error_len)
{
	struct st_tensor *tensors = calloc(shard->file.nr + 1, sizeof(*tensors));
	uint64_t *at = calloc(shard->file.nr + 1, sizeof(*at));
	size_t nr = 0, i;
	int err = tensors && at ? 0 : -ENOMEM;

	for (i = 0; !err && i < shard->file.nr; i++) {
		if (!wanted(arg, shard->file.tensors[i].name))
			continue;
		at[nr] = st_shard_at(shard, i);
		tensors[nr++] = shard->file.tensors[i];
	}
	if (!err && nr == shard->file.nr) {
		/* A header that nothing is missing in stays as it is, byte by byte */
		free(at);
	} else {
		if (!err)
			err = replace(shard, tensors, at, nr, error, error_len);
		if (err)
			free(at);
	}
	free(tensors);
	return err;
}

static void drop_empty(struct st_model *model)
{
	size_t i, nr = 0;

	for (i = 0; i < model->nr; i++) {
		if (model->shards[i].file.nr)
			model->shards[nr++] = model->shards[i];
		else
			st_shard_free(&model->shards[i]);
	}
	model->nr = nr;
}

static int write_index(struct st_model *model)
{
	char *text = NULL;
	size_t bytes;
	int err = st_index_write(model, &text, &bytes);

	if (err)
		return err;
	free(model->index);
	model->index = text;
	model->index_bytes = bytes;
	return 0;
}

int st_model_filter(struct st_model *model, bool (*wanted)(void *arg, const char *name),
		    void *arg, char *error, size_t error_len)
{
	size_t before = model->all->nr, after = 0, i;
	int err = 0;

	if (error && error_len)
		*error = '\0';
	for (i = 0; !err && i < model->nr; i++) {
		err = filter_shard(&model->shards[i], wanted, arg, error, error_len);
		after += model->shards[i].file.nr;
	}
	if (!err && !after)
		return -ENOENT;
	if (!err && model->index && after != before) {
		st_shards_unlist(model);
		drop_empty(model);
		err = write_index(model);
		if (!err)
			err = st_shards_list(model, error, error_len);
	}
	if (err == -ENOMEM)
		st_fail(error, error_len, err, "out of memory");
	return err;
}
