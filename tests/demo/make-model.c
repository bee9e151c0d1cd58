// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * make-model DIR OUT.safetensors
 *
 * Makes a safetensors file of some 250 tensors out of the acoustic model that
 * Debian's package pocketsphinx-en-us has in
 * /usr/share/pocketsphinx/model/en-us/en-us. DIR is that folder, or an unpacked
 * copy of it. The same package gives the same bytes.
 *
 *   means.CODEBOOK.STREAM, variances.CODEBOOK.STREAM   F32 [128, 13]
 *   mixture_weights.STREAM                             U8  [128, 5126]
 *   transition_matrices                                F32 [42, 3, 4]
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "safetensors/safetensors.h"

#define BYTE_ORDER_MARK 0x11223344
/* A model's files are small; this bounds what a wrong file can ask for */
#define FILE_MAX (64u << 20)
#define TENSORS_MAX 4096

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
	va_list args;

	fputs("make-model: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/**
 * struct blob - a file in memory, and how far it is read
 * @path: for messages
 * @bytes: its content
 * @size: their number
 * @at: read position
 */
struct blob {
	char path[4096];
	unsigned char *bytes;
	size_t size;
	size_t at;
};

/**
 * struct model - the tensors so far
 * @tensors: as st_make() wants them
 * @content: bytes of each
 * @nr: their number
 */
struct model {
	struct st_tensor tensors[TENSORS_MAX];
	const unsigned char *content[TENSORS_MAX];
	size_t nr;
};

static void load(struct blob *blob, const char *dir, const char *name)
{
	struct stat st;
	ssize_t got;
	size_t at;
	int fd;

	snprintf(blob->path, sizeof(blob->path), "%s/%s", dir, name);
	fd = open(blob->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("%s: %s: give the folder en-us of the package pocketsphinx-en-us",
		    blob->path, strerror(errno));
	if (st.st_size > FILE_MAX)
		die("%s: larger than any such file", blob->path);
	blob->size = (size_t)st.st_size;
	blob->at = 0;
	blob->bytes = malloc(blob->size + 1);
	if (!blob->bytes)
		die("%s: out of memory", blob->path);
	for (at = 0; at < blob->size; at += (size_t)got) {
		got = read(fd, blob->bytes + at, blob->size - at);
		if (got <= 0)
			die("%s: %s", blob->path, strerror(errno));
	}
	close(fd);
}

static const unsigned char *take(struct blob *blob, size_t bytes)
{
	const unsigned char *at = blob->bytes + blob->at;

	if (bytes > blob->size - blob->at)
		die("%s: it ends at byte %zu, in the middle of something",
		    blob->path, blob->size);
	blob->at += bytes;
	return at;
}

static uint32_t take_u32(struct blob *blob)
{
	uint32_t value;

	memcpy(&value, take(blob, sizeof(value)), sizeof(value));
	return le32toh(value);
}

/* Text up to "endhdr", then the mark that tells the byte order */
static void skip_s3_header(struct blob *blob)
{
	static const char end[] = "endhdr\n";
	unsigned char *found;

	if (blob->size < 3 || memcmp(blob->bytes, "s3\n", 3))
		die("%s: it does not begin with s3", blob->path);
	found = memmem(blob->bytes, blob->size, end, sizeof(end) - 1);
	if (!found)
		die("%s: it has no endhdr", blob->path);
	blob->at = (size_t)(found - blob->bytes) + sizeof(end) - 1;
	if (take_u32(blob) != BYTE_ORDER_MARK)
		die("%s: its byte order is not little-endian", blob->path);
}

static void add(struct model *model, const unsigned char *content,
		uint32_t data_type, uint32_t ndims, const uint32_t *dims,
		const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static void add(struct model *model, const unsigned char *content,
		uint32_t data_type, uint32_t ndims, const uint32_t *dims,
		const char *fmt, ...)
{
	struct st_tensor *tensor;
	va_list args;
	uint32_t i;

	if (model->nr == TENSORS_MAX)
		die("more than %d tensors", TENSORS_MAX);
	tensor = &model->tensors[model->nr];
	model->content[model->nr++] = content;
	va_start(args, fmt);
	if (vasprintf(&tensor->name, fmt, args) < 0)
		die("out of memory");
	va_end(args);
	tensor->data_type = data_type;
	tensor->ndims = ndims;
	for (i = 0; i < ndims; i++)
		tensor->dims[i] = dims[i];
}

/* means and variances: [codebook][stream][density][coefficient] */
static void add_gaussians(struct model *model, struct blob *blob,
			  const char *dir, const char *name)
{
	uint32_t codebooks, streams, densities, floats, c, s, dims[2];
	uint64_t need;

	load(blob, dir, name);
	skip_s3_header(blob);
	codebooks = take_u32(blob);
	streams = take_u32(blob);
	densities = take_u32(blob);
	if (!codebooks || codebooks > 999 || !streams || streams > 9 ||
	    !densities || densities > 65536)
		die("%s: %u codebooks, %u streams, %u densities are out of range",
		    blob->path, codebooks, streams, densities);
	dims[0] = densities;
	dims[1] = take_u32(blob);
	for (s = 1; s < streams; s++)
		if (take_u32(blob) != dims[1])
			die("%s: its streams have different lengths",
			    blob->path);
	floats = take_u32(blob);
	need = (uint64_t)codebooks * streams * densities * dims[1];
	if (floats != need)
		die("%s: %u numbers, its dims make %" PRIu64, blob->path,
		    floats, need);
	for (c = 0; c < codebooks; c++)
		for (s = 0; s < streams; s++)
			add(model, take(blob, (size_t)densities * dims[1] * 4),
			    RDMATENSOR_DT_FLOAT, 2, dims, "%s.%02u.%u", name, c,
			    s);
}

static void add_transitions(struct model *model, struct blob *blob,
			    const char *dir)
{
	uint32_t dims[3], i;
	uint64_t need = 1;

	load(blob, dir, "transition_matrices");
	skip_s3_header(blob);
	for (i = 0; i < 3; i++) {
		dims[i] = take_u32(blob);
		if (dims[i] > 65536)
			die("%s: dim %u is out of range", blob->path, dims[i]);
		need *= dims[i];
	}
	if (take_u32(blob) != need)
		die("%s: its length does not fit its dims", blob->path);
	add(model, take(blob, need * 4), RDMATENSOR_DT_FLOAT, 3, dims,
	    "transition_matrices");
}

/* sendump: strings, then [stream][density][senone] bytes */
static void add_mixture_weights(struct model *model, struct blob *blob,
				const char *dir)
{
	uint32_t length, dims[2], s = 0;
	uint64_t bytes;

	load(blob, dir, "sendump");
	while ((length = take_u32(blob)))
		take(blob, length);
	dims[0] = take_u32(blob);
	dims[1] = take_u32(blob);
	bytes = (uint64_t)dims[0] * dims[1];
	if (!bytes || (blob->size - blob->at) % bytes)
		die("%s: %u rows of %u bytes do not fill it", blob->path,
		    dims[0], dims[1]);
	while (blob->at < blob->size)
		add(model, take(blob, bytes), RDMATENSOR_DT_UINT8, 2, dims,
		    "mixture_weights.%u", s++);
}

static void write_all(int fd, const unsigned char *from, uint64_t bytes,
		      uint64_t at, const char *path)
{
	ssize_t put;

	for (; bytes; bytes -= (uint64_t)put) {
		put = pwrite(fd, from, bytes, (off_t)at);
		if (put <= 0)
			die("write %s: %s", path, strerror(errno));
		from += put;
		at += (uint64_t)put;
	}
}

static void write_model(struct model *model, const char *path)
{
	static const char *const metadata[] = {
		"source", "pocketsphinx-en-us", NULL
	};
	char error[ST_ERROR_MAX];
	struct st_file file;
	size_t i;
	int fd, err;

	if (st_make(model->tensors, model->nr, metadata, &file, error,
		    sizeof(error)))
		die("%s", error);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		die("write %s: %s", path, strerror(errno));
	err = st_write_header(fd, &file);
	if (err)
		die("write %s: %s", path, strerror(-err));
	for (i = 0; i < model->nr; i++) {
		const struct st_tensor *tensor = st_find(&file, model->tensors[i].name);

		write_all(fd, model->content[i], tensor->bytes,
			  st_data_offset(&file) + tensor->begin, path);
	}
	if (close(fd))
		die("write %s: %s", path, strerror(errno));
	printf("make-model: %zu tensors, %" PRIu64 " bytes in %s\n", file.nr,
	       file.data_bytes, path);
	st_free(&file);
}

int main(int argc, char **argv)
{
	static struct model model;
	static struct blob blobs[4];
	size_t i;

	if (argc != 3 || argv[1][0] == '-') {
		fputs("Usage: make-model DIR OUT.safetensors\n"
		      "DIR is the folder en-us of the package pocketsphinx-en-us.\n",
		      stderr);
		return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
	}
	add_gaussians(&model, &blobs[0], argv[1], "means");
	add_gaussians(&model, &blobs[1], argv[1], "variances");
	add_mixture_weights(&model, &blobs[2], argv[1]);
	add_transitions(&model, &blobs[3], argv[1]);
	write_model(&model, argv[2]);
	for (i = 0; i < model.nr; i++)
		free(model.tensors[i].name);
	for (i = 0; i < 4; i++)
		free(blobs[i].bytes);
	return 0;
}
