/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A file that is written as a whole: its name has the former content, or none, until all of
 * the new one is on the disk. It is opened and its room taken before there is anything to
 * write, so that what cannot be written costs no transfer.
 */
#ifndef TOOL_OUTFILE_H
#define TOOL_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct outfile - one that is open for writing
 * @name: as the user gave it, for texts; the caller's
 * @path: what it leads to, without symlinks
 * @work: its content's own name, in the same folder; "": it has none
 * @mode: of a new file, before the umask
 * @fd: to write to; -1: not open
 * @direct: there is nothing to replace, as with a device: what is written is there at once
 * @stream: it has no positions, as with a pipe
 */
struct outfile {
	const char *name;
	char path[PATH_MAX];
	char work[PATH_MAX];
	mode_t mode;
	int fd;
	bool direct;
	bool stream;
};

/* All: EXIT_OK, or EXIT_FAILED with a message, and then nothing is left but outfile_drop() */

/*
 * A regular file keeps mode and owner, and is replaced where its symlinks lead to; what is no
 * file is written to directly. A folder is refused, and so is a file that this process could
 * not give back to its owner.
 */
int outfile_open(struct outfile *out, const char *name);
/* Room on the disk for that much, where the file system can promise it */
int outfile_reserve(struct outfile *out, uint64_t bytes);
/* All is written: gets it to the disk, and gives it its name */
int outfile_commit(struct outfile *out);
/* Without outfile_commit() the name is what it was. No-op if it is not open */
void outfile_drop(struct outfile *out);

#endif
