/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * json-c for reports. It returns NULL where there is no memory, and asserts that it is not
 * passed NULL. A report is complete or not printed: without memory the program ends with a
 * message. Headers of files and peers are parsed by libsafetensors, which returns errors.
 */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <json-c/json.h>

#include "message.h"

static inline struct json_object *json_made(struct json_object *object)
{
	if (!object)
		out_of_memory();
	return object;
}

/* The text of a member that does not exist is NULL, too */
static inline const char *json_text(struct json_object *object, const char *text)
{
	if (object && !text)
		out_of_memory();
	return text;
}

static inline void json_added(int err)
{
	if (err)
		out_of_memory();
}

#define json_object_new_object() json_made(json_object_new_object())
#define json_object_new_array() json_made(json_object_new_array())
#define json_object_new_boolean(value) json_made(json_object_new_boolean(value))
#define json_object_new_int(value) json_made(json_object_new_int(value))
#define json_object_new_int64(value) json_made(json_object_new_int64(value))
#define json_object_new_uint64(value) json_made(json_object_new_uint64(value))
#define json_object_new_double_s(value, text) json_made(json_object_new_double_s(value, text))
#define json_object_new_string(text) json_made(json_object_new_string(text))
#define json_object_new_string_len(text, len) json_made(json_object_new_string_len(text, len))
#define json_object_object_add(object, key, value) \
	json_added(json_object_object_add(object, key, value))
#define json_object_get_string(object) json_text(object, json_object_get_string(object))
#define json_object_array_add(array, value) json_added(json_object_array_add(array, value))

#endif
