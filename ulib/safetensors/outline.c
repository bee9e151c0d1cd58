// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The outline of a header, judged before a JSON library builds a tree of it: an empty
 * object of two bytes takes about 1000 bytes in a tree, and headers come from peers.
 * The tree of what passes takes a small multiple of what that of a valid header does.
 *
 * The walk sees strings and brackets only. Whatever else is wrong with the text is left
 * to the JSON library, and what the tree says to st_parse().
 */
#include <stdbool.h>
#include <string.h>

#include "internal.h"

/* Header, tensor, shape, and one more, which the library refuses with its own words */
#define DEPTH 4
/* Objects and arrays of one tensor: shape and data_offsets, and two that others may add */
#define INNER_MOST 4
/* Members of one of these: dims, and more of what others may add */
#define MEMBERS_MOST 64
/* {"dtype":"U8","shape":[],"data_offsets":[0,0]} */
#define TENSOR_LEAST 46

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

/**
 * struct outline - where the walk is
 * @open: brackets that are open, the outermost first
 * @depth: their number
 * @inner: brackets within the member of the header that the walk is in
 * @members: commas within the innermost of these
 * @begin: where that member's object begins
 * @metadata: its name is __metadata__
 * @name: the last string at the depth of the header
 * @name_len: its length
 */
struct outline {
	char open[DEPTH];
	unsigned int depth;
	unsigned int inner;
	unsigned int members;
	size_t begin;
	bool metadata;
	const char *name;
	size_t name_len;
};

static int refuse(const struct outline *outline, char *error, size_t error_len, const char *why)
{
	return st_fail(error, error_len, -EINVAL, "tensor \"%.*s\": %s",
		       (int)(outline->name_len < 520 ? outline->name_len : 520),
		       outline->name ? outline->name : "", why);
}

static bool is_metadata(const struct outline *outline)
{
	static const char metadata[] = "__metadata__";

	return outline->name && outline->name_len == sizeof(metadata) - 1 &&
	       !memcmp(outline->name, metadata, sizeof(metadata) - 1);
}

static int enter(struct outline *outline, char bracket, size_t at, char *error, size_t error_len)
{
	/* What is deeper is the JSON library's to refuse, which goes no deeper either */
	if (outline->depth == DEPTH)
		return 1;
	if (outline->depth && outline->open[outline->depth - 1] == '[')
		return refuse(outline, error, error_len,
			      "an array of it contains arrays or objects");
	if (outline->depth == 1) {
		outline->metadata = is_metadata(outline);
		if (bracket == '[' && !outline->metadata)
			return refuse(outline, error, error_len, "it is no object");
		outline->inner = 0;
		outline->begin = at;
	} else if (outline->depth > 1) {
		if (outline->metadata)
			return st_fail(error, error_len, -EINVAL,
				       "__metadata__: it has a member that is no string");
		if (++outline->inner > INNER_MOST)
			return refuse(outline, error, error_len,
				      "it has more than " STRING(INNER_MOST) " arrays and objects");
		outline->members = 0;
	}
	outline->open[outline->depth++] = bracket;
	return 0;
}

static int leave(struct outline *outline, size_t at, char *error, size_t error_len)
{
	if (!outline->depth)
		return 1;
	if (--outline->depth == 1 && outline->open[1] == '{' && !outline->metadata &&
	    at + 1 - outline->begin < TENSOR_LEAST)
		return refuse(outline, error, error_len,
			      "it has no dtype, no shape or no data_offsets");
	return 0;
}

/* Behind the string that begins at @at; @bytes: it has no end */
static size_t string_end(const char *json, size_t bytes, size_t at)
{
	for (at++; at < bytes && json[at] != '"'; at++)
		if (json[at] == '\\')
			at++;
	return at < bytes ? at + 1 : bytes;
}

int st_check_outline(const char *json, size_t bytes, char *error, size_t error_len)
{
	struct outline outline = { 0 };
	size_t at = 0, end;
	int err = 0;

	while (!err && at < bytes) {
		switch (json[at]) {
		case '"':
			end = string_end(json, bytes, at);
			if (outline.depth == 1) {
				outline.name = json + at + 1;
				outline.name_len = end - at > 2 ? end - at - 2 : 0;
			}
			at = end;
			continue;
		case '\'':
			/* json-c takes it for a quote, within which brackets are none */
			return st_fail(error, error_len, -EINVAL,
				       "the header is no JSON: it has single quotes");
		case '{':
		case '[':
			err = enter(&outline, json[at], at, error, error_len);
			break;
		case '}':
		case ']':
			err = leave(&outline, at, error, error_len);
			break;
		case ',':
			if (outline.depth > 2 && ++outline.members == MEMBERS_MOST)
				err = refuse(&outline, error, error_len,
					     "an array or object of it has more than " STRING(MEMBERS_MOST) " members");
			break;
		}
		at++;
	}
	/* 1: no JSON, or too deep: the library says where */
	return err < 0 ? err : 0;
}
