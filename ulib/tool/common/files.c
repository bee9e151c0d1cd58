// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Vectors of pool memory from and to files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "files.h"
#include "progress.h"

/* Bytes of one call: enough to be efficient, few enough to show progress */
#define CHUNK (UINT64_C(32) << 20)
#define VECTORS 256

/**
 * struct place - where in the pieces the next byte is
 * @pieces: all
 * @nr: their number
 * @i: the current one
 * @skip: bytes of it that are done
 */
struct place {
	const struct piece *pieces;
	size_t nr;
	size_t i;
	uint64_t skip;
};

static int fill(const struct place *place, struct iovec *vec)
{
	uint64_t room = CHUNK, skip = place->skip, bytes;
	size_t i;
	int nr = 0;

	for (i = place->i; i < place->nr && nr < VECTORS && room; i++) {
		bytes = place->pieces[i].bytes - skip;
		if (bytes > room)
			bytes = room;
		if (bytes) {
			vec[nr].iov_base = (char *)place->pieces[i].base + skip;
			vec[nr++].iov_len = bytes;
		}
		room -= bytes;
		skip = 0;
	}
	return nr;
}

static void pass(struct place *place, uint64_t bytes)
{
	while (place->i < place->nr) {
		uint64_t left = place->pieces[place->i].bytes - place->skip;

		if (bytes < left) {
			place->skip += bytes;
			return;
		}
		bytes -= left;
		place->i++;
		place->skip = 0;
	}
}

typedef ssize_t (*vector_call)(int fd, const struct iovec *vec, int nr,
			       off_t at);

static int transfer(vector_call call, int fd, uint64_t at,
		    const struct piece *pieces, size_t nr,
		    struct progress *progress)
{
	struct place place = { .pieces = pieces, .nr = nr };
	struct iovec vec[VECTORS];
	ssize_t got;
	int nr_vec;

	for (;;) {
		nr_vec = fill(&place, vec);
		/* Pieces of 0 bytes fill no vector, and may end the list */
		if (!nr_vec) {
			pass(&place, 0);
			if (place.i == place.nr)
				return 0;
			continue;
		}
		got = call(fd, vec, nr_vec, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -ENODATA;
		at += (uint64_t)got;
		pass(&place, (uint64_t)got);
		if (progress)
			progress_add(progress, (uint64_t)got);
	}
}

int file_read(int fd, uint64_t at, const struct piece *pieces, size_t nr,
	      struct progress *progress)
{
	return transfer(preadv, fd, at, pieces, nr, progress);
}

static ssize_t write_on(int fd, const struct iovec *vec, int nr, off_t at)
{
	(void)at;
	return writev(fd, vec, nr);
}

int file_write(int fd, bool stream, const struct piece *pieces, size_t nr,
	       struct progress *progress)
{
	return transfer(stream ? write_on : pwritev, fd, 0, pieces, nr, progress);
}
