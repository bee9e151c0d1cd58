// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads the header of a file, and writes one.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

int st_read_at(int fd, void *to, size_t bytes, off_t at)
{
	ssize_t got;

	while (bytes) {
		got = pread(fd, to, bytes, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -ENODATA;
		to = (char *)to + got;
		bytes -= (size_t)got;
		at += got;
	}
	return 0;
}

static int write_at(int fd, const void *from, size_t bytes, off_t at)
{
	ssize_t put;

	while (bytes) {
		put = pwrite(fd, from, bytes, at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		from = (const char *)from + put;
		bytes -= (size_t)put;
		at += put;
	}
	return 0;
}

static int read_header(int fd, const char *path, struct st_file *file,
		       char *error, size_t error_len)
{
	char why[ST_ERROR_MAX];
	uint64_t size, header;
	struct stat st;
	uint64_t length;
	char *json;
	int err;

	if (fstat(fd, &st))
		return st_fail(error, error_len, -errno, "%s: %s", path,
			       strerror(errno));
	if (!S_ISREG(st.st_mode))
		return st_fail(error, error_len, -EINVAL,
			       "%s: not a regular file", path);
	size = (uint64_t)st.st_size;
	if (size < ST_LENGTH_BYTES)
		return st_fail(error, error_len, -EINVAL,
			       "%s: %" PRIu64 " bytes are too few for a safetensors file",
			       path, size);
	err = st_read_at(fd, &length, sizeof(length), 0);
	if (err)
		return st_fail(error, error_len, err, "%s: %s", path,
			       strerror(-err));
	header = le64toh(length);
	if (header > ST_HEADER_MAX)
		return st_fail(error, error_len, -EINVAL,
			       "%s: the header has %" PRIu64 " bytes, %u are the most (is this a safetensors file?)",
			       path, header, ST_HEADER_MAX);
	if (header > size - ST_LENGTH_BYTES)
		return st_fail(error, error_len, -EINVAL,
			       "%s: the header has %" PRIu64 " bytes, the file only %" PRIu64 " (a truncated file?)",
			       path, header, size);
	json = malloc(header + 1);
	if (!json)
		return st_fail(error, error_len, -ENOMEM, "%s: out of memory",
			       path);
	err = st_read_at(fd, json, header, ST_LENGTH_BYTES);
	if (err) {
		st_fail(error, error_len, err, "%s: %s", path, strerror(-err));
	} else {
		err = st_parse(json, header, size - ST_LENGTH_BYTES - header,
			       file, why, sizeof(why));
		if (err)
			st_fail(error, error_len, err, "%s: %s", path, why);
	}
	free(json);
	return err;
}

int st_open(const char *path, struct st_file *file, int *fd, char *error,
	    size_t error_len)
{
	int err;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return st_fail(error, error_len, -errno, "%s: %s", path,
			       strerror(errno));
	err = read_header(*fd, path, file, error, error_len);
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

int st_write_header(int fd, const struct st_file *file)
{
	uint64_t length = htole64(file->header_bytes);
	int err;

	if (ftruncate(fd, (off_t)(st_data_offset(file) + file->data_bytes)))
		return -errno;
	err = write_at(fd, &length, sizeof(length), 0);
	if (err)
		return err;
	return write_at(fd, file->header, file->header_bytes, ST_LENGTH_BYTES);
}
