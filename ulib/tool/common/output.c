// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#include "json.h"
#include "message.h"
#include "output.h"
#include "text.h"

/* With U+FFFD for each byte that is no part of a character */
static struct json_object *repaired(const char *text, size_t bytes)
{
	struct json_object *string;
	char *good = malloc(3 * bytes + 1), *to = good;
	size_t taken;
	int columns;

	if (!good)
		out_of_memory();
	for (; bytes; text += taken, bytes -= taken) {
		taken = text_character(text, bytes, &columns);
		if (taken) {
			memcpy(to, text, taken);
			to += taken;
			continue;
		}
		memcpy(to, "\xef\xbf\xbd", 3);
		to += 3;
		taken = 1;
	}
	string = json_object_new_string_len(good, (int)(to - good));
	free(good);
	return string;
}

static struct json_object *in_hex(const char *text, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";
	struct json_object *string;
	char *hex = malloc(2 * bytes + 1);
	size_t i;

	if (!hex)
		out_of_memory();
	for (i = 0; i < bytes; i++) {
		hex[2 * i] = digits[(unsigned char)text[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)text[i] & 15];
	}
	string = json_object_new_string_len(hex, (int)(2 * bytes));
	free(hex);
	return string;
}

/* A copy with all texts in UTF-8, which the caller puts */
static struct json_object *in_utf8(struct json_object *value)
{
	struct json_object *copy;
	size_t i, bytes;
	char key_hex[64];

	if (json_object_is_type(value, json_type_array)) {
		copy = json_object_new_array();
		for (i = 0; i < json_object_array_length(value); i++)
			json_object_array_add(copy, in_utf8(json_object_array_get_idx(value, i)));
		return copy;
	}
	if (!json_object_is_type(value, json_type_object))
		return json_object_get(value);
	copy = json_object_new_object();
	json_object_object_foreach(value, key, member) {
		const char *text;

		if (!json_object_is_type(member, json_type_string)) {
			json_object_object_add(copy, key, in_utf8(member));
			continue;
		}
		text = json_object_get_string(member);
		bytes = (size_t)json_object_get_string_len(member);
		if (text_is_utf8(text, bytes)) {
			json_object_object_add(copy, key, json_object_get(member));
			continue;
		}
		snprintf(key_hex, sizeof(key_hex), "%s_hex", key);
		json_object_object_add(copy, key, repaired(text, bytes));
		json_object_object_add(copy, key_hex, in_hex(text, bytes));
	}
	return copy;
}

/*
 * json-c escapes what JSON demands. The other control characters are JSON as they are,
 * and commands to a terminal: they stand in strings only, where an escape is the same
 */
static void put_json(const char *json)
{
	size_t bytes = strlen(json), taken;
	int columns;

	for (; bytes; json += taken, bytes -= taken) {
		taken = text_character(json, bytes, &columns);
		/* Without a locale to say so: it was made UTF-8 before */
		if (!taken) {
			putchar(*json);
			taken = 1;
			continue;
		}
		/* No longer character is a control character */
		if (columns >= 0 || taken > 3)
			fwrite(json, 1, taken, stdout);
		else if (taken == 1)
			printf("\\u%04x", (unsigned char)*json);
		else if (taken == 2)
			printf("\\u%04x", (json[0] & 0x1f) << 6 | (json[1] & 0x3f));
		else
			printf("\\u%04x", (json[0] & 0xf) << 12 | (json[1] & 0x3f) << 6 |
			       (json[2] & 0x3f));
	}
	putchar('\n');
}

void print_json(struct json_object *object)
{
	struct json_object *good = in_utf8(object);
	const char *json = json_object_to_json_string_ext(good, JSON_C_TO_STRING_PLAIN |
							  JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!json)
		out_of_memory();
	put_json(json);
	fflush(stdout);
	json_object_put(good);
	json_object_put(object);
}

int output_arrived(void)
{
	errno = 0;
	if (!ferror(stdout) && !fflush(stdout))
		return EXIT_OK;
	return failed("write the output: %s", errno ? strerror(errno) : "a write has failed");
}

bool put_member(FILE *to, struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		return false;
	if (json_object_is_type(value, json_type_string))
		put_text(to, json_object_get_string(value),
			 (size_t)json_object_get_string_len(value));
	else
		put_string(to, json_object_get_string(value));
	return true;
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

	/* By itself json-c prints 17 digits */
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
