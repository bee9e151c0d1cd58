/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef ST_INTERNAL_H
#define ST_INTERNAL_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "safetensors.h"

/* Stores an error line; returns @err, which compilers and analysers can see here */
__attribute__((format(printf, 4, 5)))
static inline int st_fail(char *error, size_t error_len, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (error && error_len)
		vsnprintf(error, error_len, fmt, args);
	va_end(args);
	return err;
}

struct json_object;

/* Header, tensor, shape */
#define ST_HEADER_NESTING 3
/* Member of a header that is no tensor */
#define ST_METADATA "__metadata__"

/**
 * struct st_words - what errors call a JSON text
 * @text: the whole
 * @member: one of its members
 */
struct st_words {
	const char *text;
	const char *member;
};

extern const struct st_words st_header_words;
extern const struct st_words st_index_words;

/* All of it from @at on. 0 or a negative errno; -ENODATA: the file ends too early */
int st_read_at(int fd, void *to, size_t bytes, off_t at);

/*
 * The tree of an object, which the caller puts, failed or not: *@root must be NULL before.
 * @nesting: objects and arrays within each other. -EINVAL, -ENOMEM.
 */
int st_parse_json(const struct st_words *words, int nesting, const char *json, size_t bytes,
		  struct json_object **root, char *error, size_t error_len);

/* Of elements of @bits each: whole bytes, which 64 bits count; or -EINVAL */
int st_shape_bytes(const char *name, uint64_t elements, uint32_t bits, uint64_t *bytes,
		   char *error, size_t error_len);

/* As st_make(), with all members of @metadata, or NULL: without __metadata__ */
int st_make_with(const struct st_tensor *tensors, size_t nr, struct json_object *metadata,
		 struct st_file *file, char *error, size_t error_len);

/*
 * Refuses what no valid header has and what would take far more memory than one of its
 * length: deep, empty and crowded arrays and objects. Any text may be given: of what is no
 * JSON it says nothing. -EINVAL.
 */
int st_check_outline(const char *json, size_t json_bytes, char *error, size_t error_len);

/*
 * json-c keeps the last of two members with one name, and ends a name at an
 * escaped zero. This looks at the text, which must be valid JSON already, and
 * refuses both. -EINVAL, -ENOMEM.
 */
int st_check_names(const struct st_words *words, const char *json, size_t json_bytes,
		   char *error, size_t error_len);

#endif
