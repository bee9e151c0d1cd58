/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Labels as both formats write them: name="value",name="value". Values come from files, peers and
 * other processes: they are UTF-8 in any case, have nothing that a terminal takes for a command,
 * and end where the quotation mark is that belongs to them.
 */
#ifndef TOOL_METRICS_LABELS_H
#define TOOL_METRICS_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct labels - a list that is being written
 * @to: where to
 * @text: what is written, when it has ended
 * @bytes: its length
 * @comma: there is a label to the left, in this list or where it will be
 */
struct labels {
	FILE *to;
	char *text;
	size_t bytes;
	bool comma;
};

/* @comma: it will stand behind another list */
void labels_begin(struct labels *labels, bool comma);
/* A value of @bytes, or up to the zero that it has in it; an empty value is none */
void labels_text(struct labels *labels, const char *name, const char *value, int bytes);
void labels_number(struct labels *labels, const char *name, uint64_t value);
/* Another list, with a comma in front, or "" */
void labels_more(struct labels *labels, const char *list);
/* The list, which the caller frees. Without memory the program ends with a message */
char *labels_end(struct labels *labels);

#endif
