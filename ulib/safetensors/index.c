// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"
#include "internal.h"

#define MAP "weight_map"
#define METADATA "metadata"
#define TOTAL "total_size"

/* The index, and metadata with what others may add */
#define NESTING 6
/* Objects and arrays: weight_map, metadata, and what others may add */
#define INNER_MOST 16
/* Members beside those of weight_map */
#define OTHERS_MOST 256
/* "":"x.safetensors", */
#define MEMBER_LEAST 19

/*
 * A tree takes far more memory than its text where objects are empty and members short, and the
 * text may be a peer's. What passes takes a small multiple of what that of a valid index does.
 */
static int check_outline(const char *json, size_t bytes, char *error, size_t error_len)
{
	size_t at, inner = 0, members = 0;
	bool string = false;

	for (at = 0; at < bytes; at++) {
		char c = json[at];

		if (string && c == '\\')
			at++;
		else if (c == '"')
			string = !string;
		else if (string)
			continue;
		else if (c == '\'')
			/* json-c takes it for a quote, within which nothing is counted here */
			return st_fail(error, error_len, -EINVAL,
				       "the index is no JSON: it has single quotes");
		else if (c == '{' || c == '[')
			inner++;
		else if (c == ',')
			members++;
	}
	if (inner > INNER_MOST)
		return st_fail(error, error_len, -EINVAL,
			       "the index has %zu objects and arrays, %d are the most", inner,
			       INNER_MOST);
	if (members > bytes / MEMBER_LEAST + OTHERS_MOST)
		return st_fail(error, error_len, -EINVAL,
			       "the index has %zu members in %zu bytes: they are too short for tensors and their shards",
			       members, bytes);
	return 0;
}

/* A name that leads out of the folder, or hides there, is no shard's; a zero would hide its end */
static bool is_shard_name(const char *name, size_t len)
{
	const size_t suffix = sizeof(ST_SHARD_SUFFIX) - 1;
	size_t i;

	if (len <= suffix || len > NAME_MAX || *name == '.' ||
	    strcmp(name + len - suffix, ST_SHARD_SUFFIX))
		return false;
	for (i = 0; i < len; i++)
		if (name[i] == '/' || (unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return false;
	return true;
}

static int check_member(const char *tensor, struct json_object *shard, char *error,
			size_t error_len)
{
	const char *name;
	size_t len;

	if (!json_object_is_type(shard, json_type_string))
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.520s\": the index has no shard's name for it, but something else",
			       tensor);
	name = json_object_get_string(shard);
	len = (size_t)json_object_get_string_len(shard);
	if (!is_shard_name(name, len))
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.200s\": its shard \"%.300s\" is not the name of a %s file beside the index: name one, without a path",
			       tensor, name, ST_SHARD_SUFFIX);
	return 0;
}

static struct json_object *map_of(struct json_object *root)
{
	struct json_object *map;

	return json_object_object_get_ex(root, MAP, &map) &&
	       json_object_is_type(map, json_type_object) ? map : NULL;
}

static int check_map(struct json_object *root, char *error, size_t error_len)
{
	struct json_object *map = map_of(root);
	int err;

	if (!map)
		return st_fail(error, error_len, -EINVAL,
			       "the index has no " MAP ", or one that is no object: is it a model's?");
	if (!json_object_object_length(map))
		return st_fail(error, error_len, -EINVAL,
			       "the index's " MAP " is empty: it must name each tensor's shard");
	json_object_object_foreach(map, tensor, shard) {
		err = check_member(tensor, shard, error, error_len);
		if (err)
			return err;
	}
	return 0;
}

int st_index_parse(const char *json, size_t bytes, struct json_object **root, char *error,
		   size_t error_len)
{
	int err;

	*root = NULL;
	if (bytes > ST_INDEX_MAX)
		return st_fail(error, error_len, -EINVAL,
			       "the index has %zu bytes, %u are the most", bytes, ST_INDEX_MAX);
	if (memchr(json, '\0', bytes))
		return st_fail(error, error_len, -EINVAL, "the index contains a zero byte");
	err = check_outline(json, bytes, error, error_len);
	if (!err)
		err = st_parse_json(&st_index_words, NESTING, json, bytes, root, error, error_len);
	if (!err)
		err = st_check_names(&st_index_words, json, bytes, error, error_len);
	if (!err)
		err = check_map(*root, error, error_len);
	return err;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int st_index_shards(struct json_object *root, const char ***names, size_t *nr)
{
	struct json_object *map = map_of(root);
	size_t i, all = 0;

	*nr = 0;
	*names = calloc((size_t)json_object_object_length(map) + 1, sizeof(**names));
	if (!*names)
		return -ENOMEM;
	json_object_object_foreach(map, tensor, shard) {
		(void)tensor;
		(*names)[all++] = json_object_get_string(shard);
	}
	qsort(*names, all, sizeof(**names), by_text);
	for (i = 0; i < all; i++)
		if (!*nr || strcmp((*names)[*nr - 1], (*names)[i]))
			(*names)[(*nr)++] = (*names)[i];
	return 0;
}

static int check_shard(struct json_object *map, const struct st_shard *shard, char *error,
		       size_t error_len)
{
	struct json_object *named;
	size_t i;

	for (i = 0; i < shard->file.nr; i++) {
		const char *tensor = shard->file.tensors[i].name;

		if (!json_object_object_get_ex(map, tensor, &named))
			return st_fail(error, error_len, -EINVAL,
				       "tensor \"%.400s\": shard %.255s has it, and the index does not name it, or another shard has it as well: correct the index, or leave it in one shard",
				       tensor, shard->name);
		if (strcmp(json_object_get_string(named), shard->name))
			return st_fail(error, error_len, -EINVAL,
				       "tensor \"%.300s\": shard %.255s has it, and the index says that %.255s does: correct the index, or leave it in one shard",
				       tensor, shard->name, json_object_get_string(named));
		json_object_object_del(map, tensor);
	}
	return 0;
}

int st_index_check(struct json_object *root, const struct st_model *model, char *error,
		   size_t error_len)
{
	struct json_object *map = map_of(root);
	int err = 0;
	size_t i;

	for (i = 0; !err && i < model->nr; i++)
		err = check_shard(map, &model->shards[i], error, error_len);
	if (err)
		return err;
	json_object_object_foreach(map, tensor, shard) {
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.400s\": the index says that shard %.255s has it, and it does not: is this another model's shard, or index?",
			       tensor, json_object_get_string(shard));
	}
	return 0;
}

/* A new weight_map, of what the shards have */
static struct json_object *map_shards(const struct st_model *model)
{
	struct json_object *map = json_object_new_object(), *name;
	size_t i, k;

	for (i = 0; map && i < model->nr; i++)
		for (k = 0; k < model->shards[i].file.nr; k++) {
			name = json_object_new_string(model->shards[i].name);
			if (name && !json_object_object_add(map,
							    model->shards[i].file.tensors[k].name,
							    name))
				continue;
			json_object_put(name);
			json_object_put(map);
			return NULL;
		}
	return map;
}

/* Readers take it for the bytes of all tensors */
static int correct_total(struct json_object *root, const struct st_model *model)
{
	struct json_object *metadata, *total;
	uint64_t bytes = 0;
	size_t i;

	if (!json_object_object_get_ex(root, METADATA, &metadata) ||
	    !json_object_is_type(metadata, json_type_object) ||
	    !json_object_object_get_ex(metadata, TOTAL, NULL))
		return 0;
	for (i = 0; i < model->nr; i++)
		bytes += model->shards[i].file.data_bytes;
	total = json_object_new_uint64(bytes);
	if (total && !json_object_object_add(metadata, TOTAL, total))
		return 0;
	json_object_put(total);
	return -ENOMEM;
}

int st_index_write(const struct st_model *model, char **text, size_t *bytes)
{
	struct json_object *root, *map;
	const char *json;
	int err;

	err = st_index_parse(model->index, model->index_bytes, &root, NULL, 0);
	map = err ? NULL : map_shards(model);
	if (!err && (!map || json_object_object_add(root, MAP, map))) {
		json_object_put(map);
		err = -ENOMEM;
	}
	if (!err)
		err = correct_total(root, model);
	if (!err) {
		json = json_object_to_json_string_length(root, JSON_C_TO_STRING_PRETTY |
							 JSON_C_TO_STRING_SPACED |
							 JSON_C_TO_STRING_NOSLASHESCAPE, bytes);
		*text = json ? strdup(json) : NULL;
		err = *text ? 0 : -ENOMEM;
	}
	json_object_put(root);
	return err;
}
