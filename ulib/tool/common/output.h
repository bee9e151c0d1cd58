/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * JSON on stdout, and what is read out of it.
 */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/*
 * Prints it as one line and frees it. What it prints is JSON, whatever bytes names and texts
 * have: in one that is not UTF-8 each invalid byte becomes U+FFFD, and a member beside it, of
 * the same name with _hex appended, has all bytes
 */
void print_json(struct json_object *object);
/* Flushes. EXIT_OK: all that was printed has arrived; else EXIT_FAILED with a message */
int output_arrived(void);
/* Adds every counter of after - before (NULL: 0) under its own name */
void add_counters(struct json_object *object, const uint64_t *after,
		  const uint64_t *before);
/* Adds a string or a number */
void add_string(struct json_object *object, const char *key, const char *value);
void add_number(struct json_object *object, const char *key, uint64_t value);
void add_double(struct json_object *object, const char *key, double value);
/* Value of a member; 0 or NULL: there is none. The text belongs to the object */
uint64_t number_of(struct json_object *object, const char *key);
const char *text_of(struct json_object *object, const char *key);
/* put_text() of a member that is a text; nothing if there is none. True: there is one */
bool put_member(FILE *to, struct json_object *object, const char *key);

#endif
