// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Makes a header. It is judged by st_parse() like any other, so what is written
 * can be read.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int add(struct json_object *to, const char *key,
	       struct json_object *value)
{
	if (!value)
		return -ENOMEM;
	if (json_object_object_add(to, key, value)) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

static int append(struct json_object *array, uint64_t number)
{
	struct json_object *value = json_object_new_uint64(number);

	if (!value)
		return -ENOMEM;
	if (json_object_array_add(array, value)) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

static int add_tensor(struct json_object *root, const struct st_tensor *tensor,
		      uint64_t *begin, char *error, size_t error_len)
{
	const char *dtype = tensor->dtype ? tensor->dtype : st_data_type_name(tensor->data_type);
	uint64_t elements = 1, bytes;
	struct json_object *info, *shape, *offsets;
	uint32_t bits = 0, i;
	int err;

	if (!dtype || st_data_type(dtype, &bits) != tensor->data_type)
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.520s\": a safetensors file has no element type %u",
			       tensor->name, tensor->data_type);
	if (tensor->ndims > RDMATENSOR_DIMS_MAX ||
	    !strcmp(tensor->name, ST_METADATA) ||
	    json_object_object_get_ex(root, tensor->name, NULL))
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.520s\": its name is taken, or its shape too long",
			       tensor->name);
	info = json_object_new_object();
	err = add(root, tensor->name, info);
	if (err)
		return err;
	err = add(info, "dtype", json_object_new_string(dtype));
	if (err)
		return err;
	shape = json_object_new_array();
	err = add(info, "shape", shape);
	for (i = 0; !err && i < tensor->ndims; i++) {
		err = append(shape, tensor->dims[i]);
		if (!err && __builtin_mul_overflow(elements, tensor->dims[i], &elements))
			err = st_fail(error, error_len, -EINVAL,
				      "tensor \"%.520s\": its shape is larger than 64 bits can count",
				      tensor->name);
	}
	if (!err)
		err = st_shape_bytes(tensor->name, elements, bits, &bytes, error, error_len);
	if (err)
		return err;
	offsets = json_object_new_array();
	err = add(info, "data_offsets", offsets);
	if (!err)
		err = append(offsets, *begin);
	if (!err && __builtin_add_overflow(*begin, bytes, begin))
		err = st_fail(error, error_len, -EINVAL,
			      "tensor \"%.520s\": the file is larger than 64 bits can count",
			      tensor->name);
	if (!err)
		err = append(offsets, *begin);
	return err;
}


/* Spaces behind the header put the data at a multiple of 8 in the file */
static int finish(struct json_object *root, struct st_file *file, char *error,
		  size_t error_len)
{
	const char *json;
	size_t len, padded;
	char *text;
	int err;

	json = json_object_to_json_string_length(root,
						 JSON_C_TO_STRING_PLAIN |
						 JSON_C_TO_STRING_NOSLASHESCAPE,
						 &len);
	if (!json)
		return -ENOMEM;
	padded = (len + 7) / 8 * 8;
	text = malloc(padded);
	if (!text)
		return -ENOMEM;
	memset(text, ' ', padded);
	memcpy(text, json, len);
	err = st_parse(text, padded, UINT64_MAX, file, error, error_len);
	free(text);
	return err;
}

int st_make_with(const struct st_tensor *tensors, size_t nr, struct json_object *metadata,
		 struct st_file *file, char *error, size_t error_len)
{
	struct json_object *root = json_object_new_object();
	uint64_t begin = 0;
	size_t i;
	int err;

	if (error && error_len)
		*error = '\0';
	err = root ? 0 : -ENOMEM;
	if (!err && metadata)
		err = add(root, ST_METADATA, json_object_get(metadata));
	for (i = 0; !err && i < nr; i++)
		err = add_tensor(root, &tensors[i], &begin, error, error_len);
	if (!err)
		err = finish(root, file, error, error_len);
	if (err == -ENOMEM)
		st_fail(error, error_len, err, "out of memory");
	json_object_put(root);
	return err;
}

int st_make(const struct st_tensor *tensors, size_t nr,
	    const char *const *metadata, struct st_file *file, char *error,
	    size_t error_len)
{
	struct json_object *pairs = NULL;
	int err = 0;

	if (metadata && *metadata) {
		pairs = json_object_new_object();
		err = pairs ? 0 : -ENOMEM;
	}
	for (; !err && pairs && metadata[0]; metadata += 2)
		err = add(pairs, metadata[0], json_object_new_string(metadata[1]));
	if (err)
		st_fail(error, error_len, err, "out of memory");
	else
		err = st_make_with(tensors, nr, pairs, file, error, error_len);
	json_object_put(pairs);
	return err;
}
