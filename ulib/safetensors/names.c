// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a JSON library does not tell: members that appear twice, names with a
 * zero in them, and the forms beyond JSON that it accepts. The text has been
 * parsed before, so a walk over strings and brackets is enough.
 */
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Objects nest two deep: the header and one for each tensor, the index and its map */
#define DEPTH 2

/**
 * struct span - a name in the text, its quotes included
 * @at: first byte
 * @bytes: length
 * @object: number of the object that it is a member of, in order of opening
 */
struct span {
	const char *at;
	size_t bytes;
	size_t object;
};

/**
 * struct walk - names found so far
 * @spans: the names
 * @nr: their number
 * @room: room at @spans
 */
struct walk {
	struct span *spans;
	size_t nr;
	size_t room;
};

static int push(struct walk *walk, const char *at, size_t bytes, size_t object)
{
	if (walk->nr == walk->room) {
		size_t room = walk->room ? walk->room * 2 : 256;
		struct span *spans;

		spans = realloc(walk->spans, room * sizeof(*spans));
		if (!spans)
			return -ENOMEM;
		walk->spans = spans;
		walk->room = room;
	}
	walk->spans[walk->nr++] = (struct span){ at, bytes, object };
	return 0;
}

/* Of \uXXXX at @p; 0: it is another escape */
static unsigned int escaped(const char *p, const char *end)
{
	char digits[5] = "";

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return 0;
	memcpy(digits, p + 2, 4);
	return (unsigned int)strtoul(digits, NULL, 16);
}

/*
 * NULL: there is in it what no text is: -EILSEQ: a control character, which JSON only has
 * escaped; -EPROTO: half a pair of UTF-16, for which json-c puts something else, so that
 * two names could become one
 */
static const char *skip_string(const char *p, const char *end, int *err)
{
	unsigned int c;

	for (p++; p < end && *p != '"'; p++) {
		*err = -EILSEQ;
		if ((unsigned char)*p < ' ')
			return NULL;
		if (*p != '\\')
			continue;
		c = escaped(p, end);
		*err = -EPROTO;
		if (c >= 0xdc00 && c <= 0xdfff)
			return NULL;
		if (c >= 0xd800 && c <= 0xdbff) {
			c = escaped(p + 6, end);
			if (c < 0xdc00 || c > 0xdfff)
				return NULL;
			p += 6;
		}
		p++;
	}
	return p < end ? p + 1 : end;
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n", *p))
		p++;
	return p;
}

static int collect(struct walk *walk, const char *p, const char *end)
{
	size_t object[DEPTH + 1] = { 0 };
	size_t opened = 0;
	int depth = 0;
	int err;

	while (p < end) {
		if (*p == '"') {
			const char *after = skip_string(p, end, &err);
			const char *next;

			if (!after)
				return err;
			next = skip_space(after, end);
			/* A string before a colon is a member's name */
			if (next < end && *next == ':' && depth <= DEPTH) {
				err = push(walk, p, (size_t)(after - p),
					   object[depth]);
				if (err)
					return err;
			}
			p = after;
			continue;
		}
		if (*p == '{' && ++depth <= DEPTH)
			object[depth] = ++opened;
		else if (*p == '}')
			depth--;
		else if (strchr("'NI", *p))
			return -EBADMSG;
		p++;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	size_t least = x->bytes < y->bytes ? x->bytes : y->bytes;
	int diff;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	diff = memcmp(x->at, y->at, least);
	if (diff)
		return diff;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool has_zero(const struct span *span)
{
	const char *p = span->at, *end = span->at + span->bytes;

	for (; p < end; p++) {
		if (*p != '\\')
			continue;
		p++;
		if (end - p >= 5 && !memcmp(p, "u0000", 5))
			return true;
	}
	return false;
}

/*
 * One name can be spelled in several ways by escapes. So names that have any
 * are brought to the one form in which json-c writes them.
 */
static int unescape(struct span *span, char **text)
{
	struct json_tokener *tok;
	struct json_object *name;
	const char *plain;

	if (!memchr(span->at, '\\', span->bytes))
		return 0;
	tok = json_tokener_new();
	if (!tok)
		return -ENOMEM;
	name = json_tokener_parse_ex(tok, span->at, (int)span->bytes);
	plain = name ? json_object_to_json_string_ext(name,
						      JSON_C_TO_STRING_PLAIN |
						      JSON_C_TO_STRING_NOSLASHESCAPE) : NULL;
	*text = plain ? strdup(plain) : NULL;
	json_object_put(name);
	json_tokener_free(tok);
	if (!*text)
		return -ENOMEM;
	span->at = *text;
	span->bytes = strlen(*text);
	return 0;
}

int st_check_names(const struct st_words *words, const char *json, size_t json_bytes,
		   char *error, size_t error_len)
{
	struct walk walk = { 0 };
	char **texts = NULL;
	size_t i;
	int err;

	err = collect(&walk, json, json + json_bytes);
	if (err == -EILSEQ)
		err = st_fail(error, error_len, -EINVAL,
			      "the %s is no JSON: it has a control character in a string",
			      words->text);
	if (err == -EPROTO)
		err = st_fail(error, error_len, -EINVAL,
			      "the %s is no text: a string has one half of a surrogate pair, U+D800 to U+DFFF, without the other",
			      words->text);
	if (err == -EBADMSG)
		err = st_fail(error, error_len, -EINVAL,
			      "the %s is no JSON: it has single quotes, NaN or Infinity",
			      words->text);
	if (!err && walk.nr) {
		texts = calloc(walk.nr, sizeof(*texts));
		err = texts ? 0 : -ENOMEM;
	}
	for (i = 0; !err && i < walk.nr; i++) {
		struct span *span = &walk.spans[i];

		if (has_zero(span))
			err = st_fail(error, error_len, -EINVAL,
				      "%s %.*s: its name contains a zero byte", words->member,
				      (int)(span->bytes < 600 ? span->bytes : 600),
				      span->at);
		else
			err = unescape(span, &texts[i]);
	}
	if (!err && walk.nr)
		qsort(walk.spans, walk.nr, sizeof(*walk.spans), compare);
	for (i = 1; !err && i < walk.nr; i++) {
		struct span *span = &walk.spans[i];

		if (!compare(span, span - 1))
			err = st_fail(error, error_len, -EINVAL,
				      "%s %.*s: this name appears twice", words->member,
				      (int)(span->bytes < 600 ? span->bytes : 600),
				      span->at);
	}
	for (i = 0; texts && i < walk.nr; i++)
		free(texts[i]);
	free(texts);
	free(walk.spans);
	return err;
}
