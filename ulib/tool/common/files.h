/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pool memory from and to a file, with nothing in between.
 */
#ifndef TOOL_FILES_H
#define TOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress;

/**
 * struct piece - one range of memory; in the file the pieces follow each other
 * @base: first byte
 * @bytes: length
 */
struct piece {
	void *base;
	uint64_t bytes;
};

/* Both: 0 or a negative errno; -ENODATA: the file ends too early */
int file_read(int fd, uint64_t at, const struct piece *pieces, size_t nr,
	      struct progress *progress);
/* From the beginning; @stream: the file has no positions, such as a pipe */
int file_write(int fd, bool stream, const struct piece *pieces, size_t nr,
	       struct progress *progress);

#endif
