// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Judges a header. Every refusal names the tensor and what is wrong with it.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/**
 * struct judge - where errors about one tensor go
 * @name: the tensor's
 * @error: the line
 * @error_len: its length
 */
struct judge {
	const char *name;
	char *error;
	size_t error_len;
};

#define refuse(judge, fmt, ...)                                              \
	st_fail((judge)->error, (judge)->error_len, -EINVAL,                 \
		"tensor \"%.520s\": " fmt, (judge)->name, ##__VA_ARGS__)

/* json-c stores a number that is too long as the greatest one that it has */
static int whole_number(struct json_object *value, uint64_t *out)
{
	if (!json_object_is_type(value, json_type_int) ||
	    json_object_get_int64(value) < 0)
		return -EINVAL;
	*out = json_object_get_uint64(value);
	return *out >= INT64_MAX ? -EINVAL : 0;
}

static int take_data_type(struct judge *judge, struct json_object *info,
			  struct st_tensor *tensor, uint32_t *bits)
{
	struct json_object *value;
	const char *text;

	if (!json_object_object_get_ex(info, "dtype", &value) ||
	    !json_object_is_type(value, json_type_string))
		return refuse(judge, "it has no dtype, or one that is no string");
	text = json_object_get_string(value);
	/* A zero in the string would hide what follows it */
	if (strlen(text) == (size_t)json_object_get_string_len(value))
		tensor->data_type = st_data_type(text, bits);
	tensor->dtype = st_dtype(text);
	if (tensor->data_type == RDMATENSOR_DT_INVALID)
		return refuse(judge, "dtype \"%.32s\" is unknown", text);
	return 0;
}

static int take_shape(struct judge *judge, struct json_object *info,
		      uint32_t bits, struct st_tensor *tensor)
{
	struct json_object *value;
	uint64_t elements = 1, dim;
	size_t i, ndims;

	if (!json_object_object_get_ex(info, "shape", &value) ||
	    !json_object_is_type(value, json_type_array))
		return refuse(judge, "it has no shape, or one that is no array");
	ndims = json_object_array_length(value);
	if (ndims > RDMATENSOR_DIMS_MAX)
		return refuse(judge, "its shape has %zu dims, %d are the most",
			      ndims, RDMATENSOR_DIMS_MAX);
	tensor->ndims = (uint32_t)ndims;
	for (i = 0; i < ndims; i++) {
		if (whole_number(json_object_array_get_idx(value, i), &dim))
			return refuse(judge, "dim %zu of its shape is no whole number from 0 to 2^63 - 2",
				      i);
		tensor->dims[i] = dim;
		if (__builtin_mul_overflow(elements, dim, &elements))
			return refuse(judge, "its shape is larger than 64 bits can count");
	}
	return st_shape_bytes(judge->name, elements, bits, &tensor->bytes, judge->error,
			      judge->error_len);
}

static int take_offsets(struct judge *judge, struct json_object *info,
			uint64_t data_bytes, struct st_tensor *tensor)
{
	struct json_object *value;
	uint64_t begin, end;

	if (!json_object_object_get_ex(info, "data_offsets", &value) ||
	    !json_object_is_type(value, json_type_array) ||
	    json_object_array_length(value) != 2)
		return refuse(judge, "it has no data_offsets, or they are no array of two");
	if (whole_number(json_object_array_get_idx(value, 0), &begin) ||
	    whole_number(json_object_array_get_idx(value, 1), &end))
		return refuse(judge, "its data_offsets are no whole numbers from 0 to 2^63 - 2");
	if (begin > end)
		return refuse(judge, "its data_offsets are reversed: it begins at %" PRIu64 " and ends at %" PRIu64,
			      begin, end);
	if (end > data_bytes)
		return refuse(judge, "its data_offsets are out of range: it ends at %" PRIu64 ", the data at %" PRIu64 " (a truncated file?)",
			      end, data_bytes);
	if (end - begin != tensor->bytes)
		return refuse(judge, "its data_offsets hold %" PRIu64 " bytes, its dtype and shape %" PRIu64,
			      end - begin, tensor->bytes);
	tensor->begin = begin;
	return 0;
}

static int take_tensor(struct judge *judge, struct json_object *info,
		       uint64_t data_bytes, struct st_tensor *tensor)
{
	size_t len = strlen(judge->name);
	uint32_t bits = 0;
	int err;

	if (!len)
		return refuse(judge, "its name is empty");
	if (len > RDMATENSOR_NAME_MAX)
		return refuse(judge, "its name has %zu bytes, %d are the most",
			      len, RDMATENSOR_NAME_MAX);
	if (!json_object_is_type(info, json_type_object))
		return refuse(judge, "it is no object");
	err = take_data_type(judge, info, tensor, &bits);
	if (!err)
		err = take_shape(judge, info, bits, tensor);
	if (!err)
		err = take_offsets(judge, info, data_bytes, tensor);
	if (err)
		return err;
	tensor->name = strdup(judge->name);
	return tensor->name ? 0 : -ENOMEM;
}

static int check_metadata(struct json_object *value, char *error,
			  size_t error_len)
{
	if (!json_object_is_type(value, json_type_object))
		return st_fail(error, error_len, -EINVAL,
			       ST_METADATA ": it is no object");
	json_object_object_foreach(value, key, text) {
		if (!json_object_is_type(text, json_type_string))
			return st_fail(error, error_len, -EINVAL,
				       ST_METADATA ": \"%.520s\" is no string", key);
	}
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct st_tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The tensors must cover the data exactly: no overlap, no hole, no rest */
static int check_cover(struct st_file *file, uint64_t data_bytes, char *error,
		       size_t error_len)
{
	struct judge judge = { .error = error, .error_len = error_len };
	uint64_t end = 0;
	size_t i;

	if (file->nr)
		qsort(file->tensors, file->nr, sizeof(*file->tensors),
		      by_offset);
	for (i = 0; i < file->nr; i++) {
		struct st_tensor *tensor = &file->tensors[i];

		judge.name = tensor->name;
		if (tensor->begin < end)
			return refuse(&judge, "it begins at %" PRIu64 " and overlaps \"%.400s\", which ends at %" PRIu64,
				      tensor->begin, tensor[-1].name, end);
		if (tensor->begin > end)
			return refuse(&judge, "it begins at %" PRIu64 ", and the bytes before it from %" PRIu64 " belong to no tensor",
				      tensor->begin, end);
		end += tensor->bytes;
	}
	if (data_bytes != UINT64_MAX && end != data_bytes)
		return st_fail(error, error_len, -EINVAL,
			       "the tensors end at %" PRIu64 ", the data at %" PRIu64 ": bytes that belong to no tensor",
			       end, data_bytes);
	file->data_bytes = end;
	return 0;
}

static int take_all(struct json_object *root, uint64_t data_bytes,
		    struct st_file *file, char *error, size_t error_len)
{
	struct judge judge = { .error = error, .error_len = error_len };
	size_t most = (size_t)json_object_object_length(root);
	int err;

	file->tensors = calloc(most + 1, sizeof(*file->tensors));
	if (!file->tensors)
		return -ENOMEM;
	json_object_object_foreach(root, key, info) {
		if (!strcmp(key, ST_METADATA)) {
			err = check_metadata(info, error, error_len);
		} else {
			judge.name = key;
			err = take_tensor(&judge, info, data_bytes,
					  &file->tensors[file->nr]);
			file->nr += !err;
		}
		if (err)
			return err;
	}
	return check_cover(file, data_bytes, error, error_len);
}

int st_parse(const char *json, size_t json_bytes, uint64_t data_bytes,
	     struct st_file *file, char *error, size_t error_len)
{
	struct json_object *root = NULL;
	struct st_file work = { 0 };
	int err;

	if (error && error_len)
		*error = '\0';
	if (json_bytes > ST_HEADER_MAX)
		return st_fail(error, error_len, -EINVAL,
			       "the header has %zu bytes, %u are the most",
			       json_bytes, ST_HEADER_MAX);
	if (!json_bytes || *json != '{')
		return st_fail(error, error_len, -EINVAL,
			       "the header does not begin with { (is this a safetensors file?)");
	if (memchr(json, '\0', json_bytes))
		return st_fail(error, error_len, -EINVAL,
			       "the header contains a zero byte");
	work.header = malloc(json_bytes + 1);
	if (!work.header) {
		err = -ENOMEM;
		goto out;
	}
	memcpy(work.header, json, json_bytes);
	work.header[json_bytes] = '\0';
	work.header_bytes = json_bytes;
	err = st_check_outline(work.header, json_bytes, error, error_len);
	if (!err)
		err = st_parse_json(&st_header_words, ST_HEADER_NESTING, work.header, json_bytes, &root,
				    error, error_len);
	if (!err)
		err = st_check_names(&st_header_words, work.header, json_bytes, error, error_len);
	if (!err)
		err = take_all(root, data_bytes, &work, error, error_len);
out:
	json_object_put(root);
	if (err == -ENOMEM)
		st_fail(error, error_len, err, "out of memory");
	if (err)
		st_free(&work);
	else
		*file = work;
	return err;
}

void st_free(struct st_file *file)
{
	size_t i;

	for (i = 0; i < file->nr; i++)
		free(file->tensors[i].name);
	free(file->tensors);
	free(file->header);
	memset(file, 0, sizeof(*file));
}

const struct st_tensor *st_find(const struct st_file *file, const char *name)
{
	size_t i;

	for (i = 0; i < file->nr; i++)
		if (!strcmp(file->tensors[i].name, name))
			return &file->tensors[i];
	return NULL;
}
