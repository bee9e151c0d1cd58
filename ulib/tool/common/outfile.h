/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A file that is written as a whole: its name has the former content, or none, until all of
 * the new content is on the disk. It is opened and its space reserved before the transfer,
 * which then does not begin in vain.
 */
#ifndef TOOL_OUTFILE_H
#define TOOL_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct outfile - a file that is open for writing
 * @name: as the user gave it, for texts; the caller's
 * @path: what it leads to, without symlinks
 * @work: its content's own name, in the same folder; "": it has none
 * @mode: of a new file, before the umask
 * @fd: to write to; -1: not open
 * @direct: written in place, such as a device, and not replaced
 * @stream: it has no positions, such as a pipe
 * @whole: all of the content is on the disk
 * @next: the next one whose content has a name that a signal removes
 */
struct outfile {
	const char *name;
	char path[PATH_MAX];
	char work[PATH_MAX];
	mode_t mode;
	int fd;
	bool direct;
	bool stream;
	bool whole;
	struct outfile *next;
};

/*
 * All, but outfile_sync(): EXIT_OK, or EXIT_FAILED with a message; then only outfile_drop() may
 * follow. Several can be open at a time; they stay where they are meanwhile.
 */

/*
 * A regular file keeps mode and owner, and is replaced where its symlinks lead; a device or a
 * pipe is written directly. A folder is refused, and so is a file that this process could
 * not return to its owner.
 */
int outfile_open(struct outfile *out, const char *name);
/* Reserves disk space, where the file system can */
int outfile_reserve(struct outfile *out, uint64_t bytes);
/*
 * Of several files that belong together, so that none gets its name before all are there: brings
 * the content to the disk, as outfile_commit() does. 0 or a negative errno
 */
int outfile_sync(struct outfile *out);
/* After the last write: brings the content to the disk, and gives it its name */
int outfile_commit(struct outfile *out);
/* Without outfile_commit() the name keeps what it had. No-op if it is not open */
void outfile_drop(struct outfile *out);

#endif
