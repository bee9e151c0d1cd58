/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A bar on stderr, on a terminal only.
 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct progress - a bar
 * @what: word in front of it
 * @total: bytes of the whole
 * @done: bytes so far
 * @started_ns: when it began
 * @drawn_ns: when it was last drawn
 * @on: standard error is a terminal
 */
struct progress {
	const char *what;
	uint64_t total;
	uint64_t done;
	uint64_t started_ns;
	uint64_t drawn_ns;
	bool on;
};

void progress_begin(struct progress *progress, const char *what,
		    uint64_t total);
void progress_add(struct progress *progress, uint64_t bytes);
/* Wipes the bar, so that a line can be written: the next progress_add() draws it again */
void progress_wipe(const struct progress *progress);
/* Wipes it for good */
void progress_end(struct progress *progress);

#endif
