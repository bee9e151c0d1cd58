// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * JSON texts of files and of peers: nothing beyond what JSON is.
 */
#include <json-c/json.h>
#include <string.h>

#include "internal.h"

const struct st_words st_header_words = { .text = "header", .member = "tensor" };
const struct st_words st_index_words = { .text = "index", .member = "member" };

int st_parse_json(const struct st_words *words, int nesting, const char *json, size_t bytes,
		  struct json_object **root, char *error, size_t error_len)
{
	struct json_tokener *tok;
	enum json_tokener_error bad;
	size_t end;

	tok = json_tokener_new_ex(nesting + 1);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT |
			       JSON_TOKENER_VALIDATE_UTF8);
	*root = json_tokener_parse_ex(tok, json, (int)bytes);
	bad = json_tokener_get_error(tok);
	end = json_tokener_get_parse_end(tok);
	json_tokener_free(tok);
	if (bad == json_tokener_continue)
		return st_fail(error, error_len, -EINVAL,
			       "the %s's JSON ends too early", words->text);
	if (bad != json_tokener_success)
		return st_fail(error, error_len, -EINVAL,
			       "the %s is no JSON: %s at byte %zu", words->text,
			       json_tokener_error_desc(bad), end);
	for (; end < bytes; end++)
		if (!strchr(" \t\r\n", json[end]))
			return st_fail(error, error_len, -EINVAL,
				       "the %s goes on behind its JSON, at byte %zu",
				       words->text, end);
	if (!json_object_is_type(*root, json_type_object))
		return st_fail(error, error_len, -EINVAL,
			       "the %s's JSON is no object", words->text);
	return 0;
}
