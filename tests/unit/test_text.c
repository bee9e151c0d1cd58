// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What bytes of others look like: on a terminal, in a table, and in JSON.
 */
#include <json-c/json.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/text.h"
#include "unit.h"

static char *room;
static size_t room_bytes;

static FILE *begin(void)
{
	free(room);
	room = NULL;
	return open_memstream(&room, &room_bytes);
}

static const char *end(FILE *to)
{
	fclose(to);
	return room;
}

#define SHOWN(text) ({ FILE *to = begin(); put_text(to, text, sizeof(text) - 1); end(to); })
#define CELL(text, width) \
	({ FILE *to = begin(); put_cell(to, text, sizeof(text) - 1, width); end(to); })
#define CUT(text, width) \
	({ FILE *to = begin(); put_cut(to, text, sizeof(text) - 1, width); end(to); })

static void test_shown(void **state)
{
	(void)state;
	assert_string_equal(SHOWN("layer.0/weight:0 ~"), "layer.0/weight:0 ~");
	assert_string_equal(SHOWN("\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"),
			    "\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80");
	/* Commands of a terminal, in one byte and in two */
	assert_string_equal(SHOWN("a\033[2Jb\n\r\t\x7f"), "a\\x1b[2Jb\\x0a\\x0d\\x09\\x7f");
	assert_string_equal(SHOWN("\xc2\x9b" "2J"), "\\xc2\\x9b2J");
	assert_string_equal(SHOWN("\x9b" "2J"), "\\x9b2J");
	/* Right to left from here on, and a line's end that is none of ASCII's */
	assert_string_equal(SHOWN("a\xe2\x80\xae" "b\xe2\x80\xa8"),
			    "a\\xe2\\x80\\xaeb\\xe2\\x80\\xa8");
	/* No UTF-8: cut short, too long a form, half a pair, beyond the last */
	assert_string_equal(SHOWN("\xe6\x97"), "\\xe6\\x97");
	assert_string_equal(SHOWN("\xc0\xaf"), "\\xc0\\xaf");
	assert_string_equal(SHOWN("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	assert_string_equal(SHOWN("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
	assert_string_equal(SHOWN("a\0b"), "a\\x00b");
	/* What only looks so is not the same */
	assert_string_equal(SHOWN("\\x1b"), "\\\\x1b");
}

static void test_cells(void **state)
{
	(void)state;
	assert_string_equal(CELL("abc", 5), "abc  ");
	assert_string_equal(CELL("abcde", 5), "abcde");
	assert_string_equal(CELL("abcdef", 5), "abcd+");
	assert_string_equal(CELL("abcdef", 0), "abcdef");
	/* By columns, and never within a character */
	assert_string_equal(CELL("\xc3\xa9\xc3\xa9\xc3\xa9", 3), "\xc3\xa9\xc3\xa9\xc3\xa9");
	assert_string_equal(CELL("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3), "\xc3\xa9\xc3\xa9+");
	assert_string_equal(CELL("\xe6\x97\xa5\xe6\x97\xa5", 3), "\xe6\x97\xa5+");
	assert_string_equal(CELL("\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5", 4), "\xe6\x97\xa5+ ");
	assert_string_equal(CELL("\033\033", 6), "\\x1b+ ");
	assert_string_equal(CUT("abcdef", 4), "abcd");
	assert_string_equal(CUT("a\xe6\x97\xa5z", 3), "a\xe6\x97\xa5");
	assert_string_equal(CUT("a\xe6\x97\xa5z", 2), "a");
}

/* What print_json() prints of an object with that text, and of it what a strict parser reads */
static struct json_object *printed(const char *text, size_t bytes, char *line, size_t len)
{
	struct json_object *object = json_object_new_object(), *inner = json_object_new_object();
	struct json_object *list = json_object_new_array(), *read;
	struct json_tokener *tok = json_tokener_new();
	int saved = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	ssize_t got;

	json_object_object_add(inner, "name", json_object_new_string_len(text, (int)bytes));
	json_object_array_add(list, inner);
	json_object_object_add(object, "list", list);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	print_json(object);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	got = pread(fileno(file), line, len - 1, 0);
	fclose(file);
	assert_true(got > 0);
	line[got] = '\0';
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	read = json_tokener_parse_ex(tok, line, (int)got);
	if (!read)
		fail_msg("no JSON: %s", line);
	json_tokener_free(tok);
	return read;
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *list, *value = NULL;

	json_object_object_get_ex(object, "list", &list);
	json_object_object_get_ex(json_object_array_get_idx(list, 0), key, &value);
	return value;
}

/* Whatever it is, it can be had back from what was printed */
static void assert_lossless(const char *text, size_t bytes, const char *hex)
{
	char line[4096], digits[3] = "";
	struct json_object *object = printed(text, bytes, line, sizeof(line));
	struct json_object *name = member(object, "name"), *name_hex = member(object, "name_hex");
	size_t i;

	/* One line, and nothing in it that a terminal would do */
	assert_int_equal(strcspn(line, "\n"), strlen(line) - 1);
	for (i = 0; line[i + 1]; i++)
		assert_false((unsigned char)line[i] < ' ' || line[i] == 0x7f);
	assert_null(strstr(line, "\xc2\x9b"));
	assert_int_equal(!!name_hex, !!hex);
	if (!hex) {
		assert_int_equal(json_object_get_string_len(name), bytes);
		assert_memory_equal(json_object_get_string(name), text, bytes);
	} else {
		assert_string_equal(json_object_get_string(name), hex);
		for (i = 0; i < bytes; i++) {
			memcpy(digits, json_object_get_string(name_hex) + 2 * i, 2);
			assert_int_equal(strtol(digits, NULL, 16), (unsigned char)text[i]);
		}
		assert_int_equal(json_object_get_string_len(name_hex), 2 * bytes);
	}
	json_object_put(object);
}

#define LOSSLESS(text, hex) assert_lossless(text, sizeof(text) - 1, hex)

static void test_json(void **state)
{
	(void)state;
	LOSSLESS("layer \"0\"\\", NULL);
	LOSSLESS("a\0b\0", NULL);
	LOSSLESS("\033[2J\x7f\n", NULL);
	LOSSLESS("\xc2\x9b" "2J \xe2\x80\xae", NULL);
	LOSSLESS("\xe6\x97\xa5 \xf0\x9f\x98\x80", NULL);
	LOSSLESS("a\xff" "b", "a\xef\xbf\xbd" "b");
	LOSSLESS("\xe6\x97", "\xef\xbf\xbd\xef\xbf\xbd");
	LOSSLESS("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

locale_t __real_newlocale(int mask, const char *locale, locale_t base);
locale_t __wrap_newlocale(int mask, const char *locale, locale_t base);

static bool no_locales;

locale_t __wrap_newlocale(int mask, const char *locale, locale_t base)
{
	return no_locales ? (locale_t)0 : __real_newlocale(mask, locale, base);
}

/* The first test: the locale is looked for once in a process. It went round and round */
static void test_without_locale(void **state)
{
	struct json_object *object = json_object_new_object();
	int status;
	pid_t pid;

	(void)state;
	json_object_object_add(object, "name", json_object_new_string("\xe6\x97\xa5 \xff"));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		no_locales = true;
		alarm(20);
		if (!freopen("/dev/null", "w", stdout) ||
		    strcmp(SHOWN("a \xe6\x97\xa5"), "a \\xe6\\x97\\xa5"))
			_exit(1);
		print_json(object);
		_exit(0);
	}
	json_object_put(object);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int tidy(void **state)
{
	(void)state;
	free(room);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_locale),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, tidy);
}
