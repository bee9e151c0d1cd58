// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is written: one file, or the shards of a model and their index.
 *
 * Files of a folder get their names when the content of all is on the disk. A former index goes
 * before the first of them and the new one is the last: a folder has no index while not all that
 * it names is there, and none of another model.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"
#include "tool/common/files.h"
#include "tool/common/message.h"
#include "tool/common/progress.h"

static int check_folder(const char *name)
{
	struct stat st;

	if (stat(name, &st))
		return failed("write %s: %s%s", name, strerror(errno),
			      errno == ENOENT ? ": make the folder first" : "");
	if (!S_ISDIR(st.st_mode))
		return failed("write %s: it is no folder: leave out the slash for a file", name);
	if (access(name, W_OK | X_OK))
		return failed("write %s: %s", name, strerror(errno));
	return EXIT_OK;
}

int outputs_begin(struct outputs *outputs, const char *name)
{
	int err;

	memset(outputs, 0, sizeof(*outputs));
	outputs->name = name;
	outputs->folder = name[strlen(name) - 1] == '/';
	if (outputs->folder)
		return check_folder(name);
	outputs->files = calloc(1, sizeof(*outputs->files));
	if (!outputs->files)
		return failed("write %s: out of memory", name);
	err = outfile_open(outputs->files, name);
	outputs->nr = !err;
	return err;
}

static int open_in(struct outputs *outputs, const char *name)
{
	struct stat st;
	int err;

	if (asprintf(&outputs->names[outputs->nr], "%s%s", outputs->name, name) < 0) {
		outputs->names[outputs->nr] = NULL;
		return failed("write %s: out of memory", outputs->name);
	}
	outputs->files[outputs->nr].fd = -1;
	/* A link that is there could lead out of the folder, and its name is the peer's choice */
	if (!lstat(outputs->names[outputs->nr], &st) && !S_ISREG(st.st_mode))
		err = failed("write %s: it is no regular file, and the peer names the files of a folder: remove it, or give another folder",
			     outputs->names[outputs->nr]);
	else
		err = outfile_open(&outputs->files[outputs->nr], outputs->names[outputs->nr]);
	/* One that is not open is dropped as well, for its name */
	outputs->nr++;
	return err;
}

/* The model's names are of files in a folder, whoever gave them */
static int open_folder(struct outputs *outputs, const struct st_model *model)
{
	size_t i;
	int err = EXIT_OK;

	outputs->files = calloc(model->nr + 1, sizeof(*outputs->files));
	outputs->names = calloc(model->nr + 1, sizeof(*outputs->names));
	if (!outputs->files || !outputs->names)
		return failed("write %s: out of memory", outputs->name);
	for (i = 0; !err && i < model->nr; i++)
		err = open_in(outputs, model->shards[i].name);
	if (!err && model->index)
		err = open_in(outputs, ST_INDEX_NAME);
	return err;
}

int outputs_open(struct outputs *outputs, const struct st_model *model)
{
	int err = outputs->folder ? open_folder(outputs, model) : EXIT_OK;
	size_t i;

	for (i = 0; !err && i < model->nr; i++)
		err = outfile_reserve(&outputs->files[i],
				      st_data_offset(&model->shards[i].file) +
				      model->shards[i].file.data_bytes);
	if (!err && model->index)
		err = outfile_reserve(&outputs->files[i], model->index_bytes);
	return err;
}

/* ---- writing ---------------------------------------------------------------- */

/* The length of the header, the header, and the tensors, which @tensors has */
static int write_shard(const struct st_file *file, const struct piece *tensors,
		       const struct outfile *out, struct progress *progress)
{
	uint64_t length = htole64(file->header_bytes);
	struct piece *pieces = calloc(file->nr + 2, sizeof(*pieces));
	int err;

	if (!pieces)
		return -ENOMEM;
	pieces[0].base = &length;
	pieces[0].bytes = sizeof(length);
	pieces[1].base = file->header;
	pieces[1].bytes = file->header_bytes;
	memcpy(pieces + 2, tensors, file->nr * sizeof(*pieces));
	err = file_write(out->fd, out->stream, pieces, file->nr + 2, progress);
	free(pieces);
	return err;
}

/* The tensors' places in memory, one shard's behind the other's, which begin at @first */
static void cut(const struct fetch *fetch, struct piece *pieces, size_t *first)
{
	const struct st_model *model = &fetch->model;
	struct st_place place;
	size_t i, nr = 0;

	for (i = 0; i < model->nr; i++) {
		first[i] = nr;
		nr += model->shards[i].file.nr;
	}
	for (i = 0; i < model->all->nr; i++) {
		place = st_model_place(model, i);
		pieces[first[place.shard] + place.tensor] = (struct piece){
			/* One without bytes may have no offset */
			.base = (char *)fetch->store.pool.base +
				(model->all->tensors[i].bytes ? fetch->offsets[i] : 0),
			.bytes = model->all->tensors[i].bytes,
		};
	}
}

static int write_files(const struct outputs *outputs, const struct fetch *fetch,
		       const struct piece *pieces, const size_t *first,
		       struct progress *progress)
{
	const struct st_model *model = &fetch->model;
	struct piece index = { .base = model->index, .bytes = model->index_bytes };
	struct outfile *out;
	int err = 0;
	size_t i;

	for (i = 0; i < outputs->nr; i++) {
		out = &outputs->files[i];
		if (i < model->nr)
			err = write_shard(&model->shards[i].file, pieces + first[i], out, progress);
		else
			err = file_write(out->fd, out->stream, &index, 1, NULL);
		/* A file alone is brought to the disk when it gets its name */
		if (!err && outputs->nr > 1)
			err = outfile_sync(out);
		if (err) {
			progress_end(progress);
			return failed("write %s: %s", out->name, strerror(-err));
		}
	}
	return EXIT_OK;
}

/* What it says is not true from the first new file on */
static int remove_index(const struct outputs *outputs)
{
	char *name;
	int err = EXIT_OK;

	if (asprintf(&name, "%s%s", outputs->name, ST_INDEX_NAME) < 0)
		return failed("write %s: out of memory", outputs->name);
	if (unlink(name) && errno != ENOENT)
		err = failed("write %s: remove the former index: %s", outputs->name,
			     strerror(errno));
	free(name);
	return err;
}

static int commit(struct outputs *outputs)
{
	size_t i;

	if (outputs->folder && remove_index(outputs))
		return EXIT_FAILED;
	for (i = 0; i < outputs->nr; i++) {
		if (!outfile_commit(&outputs->files[i]))
			continue;
		if (i)
			failed("write %s: %zu of %zu files are new: correct this, and fetch again",
			       outputs->name, i, outputs->nr);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

int outputs_write(struct outputs *outputs, const struct fetch *fetch)
{
	struct piece *pieces = calloc(fetch->file->nr + 1, sizeof(*pieces));
	size_t *first = calloc(fetch->model.nr + 1, sizeof(*first));
	struct progress progress;
	int err;

	if (pieces && first) {
		cut(fetch, pieces, first);
		progress_begin(&progress, "writing", fetch->file->data_bytes);
		err = write_files(outputs, fetch, pieces, first, &progress);
		progress_end(&progress);
	} else {
		err = failed("write %s: out of memory", outputs->name);
	}
	free(pieces);
	free(first);
	return err ? err : commit(outputs);
}

void outputs_drop(struct outputs *outputs)
{
	size_t i;

	for (i = 0; i < outputs->nr; i++) {
		outfile_drop(&outputs->files[i]);
		if (outputs->names)
			free(outputs->names[i]);
	}
	free(outputs->files);
	free(outputs->names);
	memset(outputs, 0, sizeof(*outputs));
}
