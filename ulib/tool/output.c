// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

void print_json(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
	json_object_put(object);
}

void add_counters(struct json_object *object, const uint64_t *after,
		  const uint64_t *before)
{
	unsigned int i;

	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		add_number(object, rdmatensor_stat_name(i),
			   after[i] - (before ? before[i] : 0));
}

void add_string(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

void add_number(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

void add_double(struct json_object *object, const char *key, double value)
{
	char text[32];

	/* json-c's own form has 17 digits */
	snprintf(text, sizeof(text), "%.9g", value);
	json_object_object_add(object, key, json_object_new_double_s(value,
								     text));
}

uint64_t number_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_uint64(value) : 0;
}

const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) :
								NULL;
}

void cut_cell(char *text, size_t width)
{
	if (strlen(text) > width)
		strcpy(text + width - 1, "+");
}
