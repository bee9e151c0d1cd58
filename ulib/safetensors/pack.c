// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Index and headers of a model in one piece. A pack is judged by st_parse(), which bounds what
 * a peer can make of it, and by what judges index and headers of files.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <endian.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"
#include "internal.h"
#include "shards.h"

static int too_long(char *error, size_t error_len)
{
	return st_fail(error, error_len, -EINVAL,
		       "the index and the headers of all shards have more than %u bytes", ST_PACK_MAX);
}

/* A header whose "tensors" are the files' */
static int make_table(const struct st_model *model, struct st_file *table, char *error,
		      size_t error_len)
{
	struct st_tensor *files = calloc(model->nr + 1, sizeof(*files));
	size_t i;
	int err;

	if (!files)
		return st_fail(error, error_len, -ENOMEM, "out of memory");
	for (i = 0; i <= model->nr; i++) {
		files[i].data_type = RDMATENSOR_DT_UINT8;
		files[i].ndims = 1;
		files[i].name = i ? model->shards[i - 1].name : (char *)ST_INDEX_NAME;
		files[i].dims[0] = i ? model->shards[i - 1].file.header_bytes : model->index_bytes;
	}
	err = st_make(files, model->nr + 1, NULL, table, error, error_len);
	free(files);
	return err;
}

int st_model_pack(const struct st_model *model, char **pack, size_t *bytes, char *error,
		  size_t error_len)
{
	struct st_file table = { 0 };
	uint64_t length;
	size_t i;
	char *to;
	int err;

	if (!model->index)
		return st_fail(error, error_len, -EINVAL, "the model has no index");
	err = make_table(model, &table, error, error_len);
	if (err)
		return err;
	/* Analysers do not see that st_make() has succeeded */
	assert(table.header);
	*bytes = st_data_offset(&table) + table.data_bytes;
	if (*bytes > ST_PACK_MAX) {
		st_free(&table);
		return too_long(error, error_len);
	}
	*pack = malloc(*bytes);
	if (!*pack) {
		st_free(&table);
		return st_fail(error, error_len, -ENOMEM, "out of memory");
	}
	length = htole64(table.header_bytes);
	to = memcpy(*pack, &length, sizeof(length));
	to = mempcpy(to + sizeof(length), table.header, table.header_bytes);
	to = mempcpy(to, model->index, model->index_bytes);
	for (i = 0; i < model->nr; i++)
		to = mempcpy(to, model->shards[i].file.header, model->shards[i].file.header_bytes);
	st_free(&table);
	return 0;
}

static int take_table(const char *pack, size_t bytes, struct st_file *table, char *error,
		      size_t error_len)
{
	uint64_t length;

	if (bytes > ST_PACK_MAX)
		return too_long(error, error_len);
	if (bytes < ST_LENGTH_BYTES)
		return st_fail(error, error_len, -EINVAL, "%zu bytes are no list of shards", bytes);
	memcpy(&length, pack, sizeof(length));
	length = le64toh(length);
	if (length > bytes - ST_LENGTH_BYTES)
		return st_fail(error, error_len, -EINVAL,
			       "the list of shards is longer than its %zu bytes", bytes);
	return st_parse(pack + ST_LENGTH_BYTES, length, bytes - ST_LENGTH_BYTES - length, table,
			error, error_len);
}

static int take_shard(const struct st_tensor *from, const char *data, struct st_shard *shard,
		      char *error, size_t error_len)
{
	char why[ST_ERROR_MAX];
	int err;

	if (st_shard_name(shard, from->name))
		return st_fail(error, error_len, -ENOMEM, "out of memory");
	err = st_parse(data + from->begin, from->bytes, UINT64_MAX, &shard->file, why, sizeof(why));
	return err ? st_fail(error, error_len, err, "shard %.255s: %s", from->name, why) : 0;
}

/* The table must be as make_table() has it: the index, and the shards that it names, in order */
static int take_shards(const struct st_file *table, const char *data, const char **names,
		       size_t nr, struct st_model *model, char *error, size_t error_len)
{
	int err = 0;
	size_t i;

	for (i = 0; i < nr && i + 1 < table->nr; i++)
		if (strcmp(names[i], table->tensors[i + 1].name))
			break;
	if (i < nr || nr + 1 != table->nr)
		return st_fail(error, error_len, -EINVAL,
			       "the shards are not those that their index names");
	model->shards = calloc(nr + 1, sizeof(*model->shards));
	if (!model->shards)
		return st_fail(error, error_len, -ENOMEM, "out of memory");
	model->nr = nr;
	for (i = 0; i < nr; i++)
		model->shards[i].fd = -1;
	for (i = 0; !err && i < nr; i++)
		err = take_shard(&table->tensors[i + 1], data, &model->shards[i], error, error_len);
	return err;
}

static int take_model(const struct st_file *table, const char *data, struct st_model *model,
		      char *error, size_t error_len)
{
	struct json_object *root = NULL;
	const char **names = NULL;
	size_t nr;
	int err;

	if (!table->nr || strcmp(table->tensors[0].name, ST_INDEX_NAME))
		return st_fail(error, error_len, -EINVAL, "the list of shards has no index");
	model->index_bytes = table->tensors[0].bytes;
	model->index = malloc(model->index_bytes + 1);
	if (!model->index)
		return st_fail(error, error_len, -ENOMEM, "out of memory");
	memcpy(model->index, data, model->index_bytes);
	err = st_index_parse(model->index, model->index_bytes, &root, error, error_len);
	if (!err)
		err = st_index_shards(root, &names, &nr);
	if (!err)
		err = take_shards(table, data, names, nr, model, error, error_len);
	if (!err)
		err = st_index_check(root, model, error, error_len);
	if (!err)
		err = st_shards_list(model, error, error_len);
	if (err == -ENOMEM)
		st_fail(error, error_len, err, "out of memory");
	free(names);
	json_object_put(root);
	return err;
}

int st_model_unpack(const char *pack, size_t bytes, struct st_model *model, char *error,
		    size_t error_len)
{
	struct st_model work = { 0 };
	struct st_file table = { 0 };
	int err;

	err = take_table(pack, bytes, &table, error, error_len);
	if (err)
		return err;
	err = take_model(&table, pack + ST_LENGTH_BYTES + table.header_bytes, &work, error,
			 error_len);
	st_free(&table);
	if (err)
		st_model_free(&work);
	else
		*model = work;
	return err;
}
