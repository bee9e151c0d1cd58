// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "text.h"

/* Marks of direction, embeddings, overrides and isolates: they reorder what surrounds them */
static bool is_reordering(wchar_t c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Line and paragraph separators, and the mark that an editor hides */
static bool is_hidden(wchar_t c)
{
	return c == 0x2028 || c == 0x2029 || c == 0xfeff;
}

size_t text_character(const char *text, size_t bytes, int *columns)
{
	static locale_t utf8;
	static bool asked;
	mbstate_t state = { 0 };
	locale_t before;
	size_t taken;
	wchar_t c;

	*columns = -1;
	if (bytes && (unsigned char)*text < 0x80) {
		*columns = *text >= ' ' && *text != 0x7f ? 1 : -1;
		return 1;
	}
	if (!asked)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	asked = true;
	/* Without the locale no byte is known to be a character */
	if (!utf8)
		return 0;
	before = uselocale(utf8);
	taken = mbrtowc(&c, text, bytes, &state);
	/* Surrogates, and codes beyond the last plane, are not characters */
	if (!taken || taken > bytes || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		taken = 0;
	else if (!is_reordering(c) && !is_hidden(c))
		*columns = wcwidth(c);
	uselocale(before);
	return taken;
}

bool text_is_utf8(const char *text, size_t bytes)
{
	size_t taken;
	int columns;

	for (; bytes; text += taken, bytes -= taken) {
		taken = text_character(text, bytes, &columns);
		if (!taken)
			return false;
	}
	return true;
}

/**
 * struct shown - one character as a person sees it
 * @text: zero-terminated
 * @columns: that it takes
 * @taken: bytes that it stands for
 */
struct shown {
	char text[20];
	size_t columns;
	size_t taken;
};

static void show(struct shown *shown, const char *text, size_t bytes)
{
	size_t taken, i, at = 0;
	int columns;

	taken = text_character(text, bytes, &columns);
	shown->taken = taken ? taken : 1;
	if (columns >= 0 && *text != '\\') {
		memcpy(shown->text, text, taken);
		shown->text[taken] = '\0';
		shown->columns = (size_t)columns;
		return;
	}
	if (*text == '\\') {
		strcpy(shown->text, "\\\\");
		shown->columns = 2;
		return;
	}
	for (i = 0; i < shown->taken; i++)
		at += (size_t)snprintf(shown->text + at, sizeof(shown->text) - at, "\\x%02x",
				       (unsigned char)text[i]);
	shown->columns = at;
}

void put_text(FILE *to, const char *text, size_t bytes)
{
	struct shown shown;

	for (; bytes; text += shown.taken, bytes -= shown.taken) {
		show(&shown, text, bytes);
		fputs(shown.text, to);
	}
}

void put_string(FILE *to, const char *text)
{
	put_text(to, text, strlen(text));
}

static size_t columns_of(const char *text, size_t bytes)
{
	struct shown shown;
	size_t columns = 0;

	for (; bytes; text += shown.taken, bytes -= shown.taken) {
		show(&shown, text, bytes);
		columns += shown.columns;
	}
	return columns;
}

void put_cell(FILE *to, const char *text, size_t bytes, size_t width)
{
	size_t all = width ? columns_of(text, bytes) : 0, columns = 0;
	struct shown shown;

	for (; bytes; text += shown.taken, bytes -= shown.taken) {
		show(&shown, text, bytes);
		/* One column is for the + */
		if (all > width && columns + shown.columns > width - 1)
			break;
		fputs(shown.text, to);
		columns += shown.columns;
	}
	if (all > width) {
		fputc('+', to);
		columns++;
	}
	if (columns < width)
		fprintf(to, "%*s", (int)(width - columns), "");
}

void put_cut(FILE *to, const char *line, size_t bytes, size_t width)
{
	size_t taken;
	int columns;

	for (; bytes; line += taken, bytes -= taken) {
		taken = text_character(line, bytes, &columns);
		if (!taken || columns < 0 || (size_t)columns > width)
			break;
		fwrite(line, 1, taken, to);
		width -= (size_t)columns;
	}
}
