// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the tool prints, and whether it is JSON.
 */
#include <json-c/json.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "fuzz.h"

void said_begin(struct said *said)
{
	memset(said, 0, sizeof(*said));
	said->former_out = stdout;
	said->former_err = stderr;
	stdout = open_memstream(&said->out, &said->out_len);
	stderr = open_memstream(&said->err, &said->err_len);
	if (!stdout || !stderr)
		abort();
}

void said_end(struct said *said)
{
	fclose(stdout);
	fclose(stderr);
	stdout = said->former_out;
	stderr = said->former_err;
}

void said_free(struct said *said)
{
	free(said->out);
	free(said->err);
}

static struct json_object *parse(const char *text, size_t len)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *object;

	HOLDS(tok);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	/* With the zero behind it, or a number at its end would not end */
	object = json_tokener_parse_ex(tok, text, (int)len + 1);
	if (json_tokener_get_error(tok) != json_tokener_success)
		dprintf(2, "no JSON: %s: %s\n",
			json_tokener_error_desc(json_tokener_get_error(tok)), text);
	HOLDS(json_tokener_get_error(tok) == json_tokener_success);
	HOLDS(json_tokener_get_parse_end(tok) == len);
	json_tokener_free(tok);
	return object;
}

static void check_line(const char *line, size_t len, void (*each)(struct json_object *object))
{
	char *text = strndup(line, len);
	struct json_object *object, *again;
	const char *written;

	HOLDS(text);
	object = parse(text, len);
	HOLDS(object);
	written = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	again = parse(written, strlen(written));
	HOLDS(json_object_equal(object, again));
	json_object_put(again);
	if (each)
		each(object);
	json_object_put(object);
	free(text);
}

void check_clean(const char *text)
{
	static locale_t utf8;
	locale_t former;
	wchar_t c;
	int bytes;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	HOLDS(utf8);
	former = uselocale(utf8);
	for (; *text; text += bytes) {
		bytes = mbtowc(&c, text, MB_CUR_MAX);
		HOLDS(bytes > 0);
		HOLDS(c == L'\n' || !iswcntrl((wint_t)c));
	}
	uselocale(former);
}

size_t check_json_lines(const char *text, void (*each)(struct json_object *object))
{
	size_t nr = 0, len;

	check_clean(text);
	for (; *text; text += len + 1, nr++) {
		len = strcspn(text, "\n");
		/* A line that is whole */
		HOLDS(text[len] == '\n');
		check_line(text, len, each);
	}
	return nr;
}
