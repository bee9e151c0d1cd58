// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <string.h>

#include "labels.h"
#include "tool/common/message.h"
#include "tool/common/text.h"

void labels_begin(struct labels *labels, bool comma)
{
	memset(labels, 0, sizeof(*labels));
	labels->comma = comma;
	labels->to = open_memstream(&labels->text, &labels->bytes);
	if (!labels->to)
		out_of_memory();
}

static void begin_label(struct labels *labels, const char *name)
{
	fprintf(labels->to, "%s%s=\"", labels->comma ? "," : "", name);
	labels->comma = true;
}

/* Both formats have these three escapes and no others */
static void put_character(FILE *to, const char *text, size_t bytes)
{
	if (*text == '\\' || *text == '"')
		fputc('\\', to);
	fwrite(text, 1, bytes, to);
}

void labels_text(struct labels *labels, const char *name, const char *value, int bytes)
{
	size_t left = strnlen(value, bytes > 0 ? (size_t)bytes : 0), taken;
	int columns;

	if (!left)
		return;
	begin_label(labels, name);
	for (; left; value += taken, left -= taken) {
		taken = text_character(value, left, &columns);
		if (taken && columns >= 0)
			put_character(labels->to, value, taken);
		else if (*value == '\n')
			fputs("\\n", labels->to);
		else
			/* The numbers of subjects keep such names apart */
			fputs("\xef\xbf\xbd", labels->to);
		if (!taken)
			taken = 1;
	}
	fputc('"', labels->to);
}

void labels_number(struct labels *labels, const char *name, uint64_t value)
{
	begin_label(labels, name);
	fprintf(labels->to, "%" PRIu64 "\"", value);
}

void labels_more(struct labels *labels, const char *list)
{
	fputs(list, labels->to);
}

char *labels_end(struct labels *labels)
{
	if (fclose(labels->to) || !labels->text)
		out_of_memory();
	return labels->text;
}
