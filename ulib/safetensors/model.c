// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Opens models.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index.h"
#include "internal.h"
#include "shards.h"

static int out_of_memory(const char *path, char *error, size_t error_len)
{
	return st_fail(error, error_len, -ENOMEM, "%s: out of memory", path);
}

static int open_one(const char *path, struct st_model *model, char *error, size_t error_len)
{
	struct st_file file;
	int fd, err;

	err = st_open(path, &file, &fd, error, error_len);
	if (err)
		return err;
	err = st_model_one(&file, model);
	if (!err) {
		model->shards[0].fd = fd;
		model->shards[0].path = strdup(path);
		if (model->shards[0].path)
			return 0;
		st_model_free(model);
	} else {
		close(fd);
	}
	return out_of_memory(path, error, error_len);
}

/* *@text: for free(), if the call succeeds */
static int read_text(int fd, const char *path, char **text, size_t *bytes, char *error,
		     size_t error_len)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return st_fail(error, error_len, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return st_fail(error, error_len, -EINVAL, "%s: not a regular file", path);
	if (st.st_size > ST_INDEX_MAX)
		return st_fail(error, error_len, -EINVAL,
			       "%s: it has %jd bytes, %u are the most (is this an index?)", path,
			       (intmax_t)st.st_size, ST_INDEX_MAX);
	*bytes = (size_t)st.st_size;
	*text = malloc(*bytes + 1);
	if (!*text)
		return out_of_memory(path, error, error_len);
	err = st_read_at(fd, *text, *bytes, 0);
	if (!err)
		return 0;
	free(*text);
	*text = NULL;
	return st_fail(error, error_len, err, "%s: %s", path, err == -ENODATA ?
		       "the file has become shorter" : strerror(-err));
}

static int read_index(const char *path, char **text, size_t *bytes, char *error,
		      size_t error_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return st_fail(error, error_len, -errno, "%s: %s", path, strerror(errno));
	err = read_text(fd, path, text, bytes, error, error_len);
	close(fd);
	return err;
}

static int open_shard(const char *folder, const char *name, struct st_shard *shard, char *error,
		      size_t error_len)
{
	int err;

	if (st_shard_name(shard, name) || asprintf(&shard->path, "%s/%s", folder, name) < 0) {
		shard->path = NULL;
		return out_of_memory(folder, error, error_len);
	}
	err = st_open(shard->path, &shard->file, &shard->fd, error, error_len);
	if (err == -ENOENT)
		return st_fail(error, error_len, err,
			       "%s: it is not there, and " ST_INDEX_NAME " names it: bring it there, or correct the index",
			       shard->path);
	return err;
}

static int open_shards(const char *folder, struct json_object *root, struct st_model *model,
		       char *error, size_t error_len)
{
	const char **names;
	size_t nr, i;
	int err;

	err = st_index_shards(root, &names, &nr);
	if (!err) {
		model->shards = calloc(nr + 1, sizeof(*model->shards));
		err = model->shards ? 0 : -ENOMEM;
	}
	if (err)
		out_of_memory(folder, error, error_len);
	for (i = 0; !err && i < nr; i++) {
		model->shards[model->nr].fd = -1;
		err = open_shard(folder, names[i], &model->shards[model->nr++], error, error_len);
	}
	free(names);
	return err;
}

/* What index and shards say must be the same before anything is made of it */
static int open_indexed(const char *folder, const char *path, struct st_model *model,
			char *error, size_t error_len)
{
	struct st_model work = { 0 };
	struct json_object *root = NULL;
	char why[ST_ERROR_MAX] = "";
	int err;

	err = read_index(path, &work.index, &work.index_bytes, error, error_len);
	if (err)
		return err;
	err = st_index_parse(work.index, work.index_bytes, &root, why, sizeof(why));
	if (err) {
		st_fail(error, error_len, err, "%s: %s", path,
			err == -ENOMEM ? "out of memory" : why);
	} else {
		err = open_shards(folder, root, &work, error, error_len);
		if (!err) {
			err = st_index_check(root, &work, why, sizeof(why)) ?:
			      st_shards_list(&work, why, sizeof(why));
			if (err)
				st_fail(error, error_len, err, "%s: %s", path, why);
		}
	}
	json_object_put(root);
	if (err)
		st_model_free(&work);
	else
		*model = work;
	return err;
}

static int open_folder(const char *folder, struct st_model *model, char *error,
		       size_t error_len)
{
	char *index, *one = NULL;
	int err;

	if (asprintf(&index, "%s/" ST_INDEX_NAME, folder) < 0)
		return out_of_memory(folder, error, error_len);
	if (asprintf(&one, "%s/" ST_MODEL_NAME, folder) < 0) {
		free(index);
		return out_of_memory(folder, error, error_len);
	}
	if (!access(index, F_OK) || errno != ENOENT)
		err = open_indexed(folder, index, model, error, error_len);
	else if (!access(one, F_OK) || errno != ENOENT)
		err = open_one(one, model, error, error_len);
	else
		err = st_fail(error, error_len, -ENOENT,
			      "%s: the folder has neither " ST_INDEX_NAME " nor " ST_MODEL_NAME ": name a folder with one of them, or a file",
			      folder);
	free(index);
	free(one);
	return err;
}

int st_model_open(const char *path, struct st_model *model, char *error, size_t error_len)
{
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return open_folder(path, model, error, error_len);
	return open_one(path, model, error, error_len);
}

int st_model_one(struct st_file *file, struct st_model *model)
{
	struct st_shard *shard = calloc(1, sizeof(*shard));
	char *name = strdup(ST_MODEL_NAME);

	if (!shard || !name) {
		free(shard);
		free(name);
		st_free(file);
		return -ENOMEM;
	}
	*shard = (struct st_shard){ .name = name, .file = *file, .fd = -1 };
	memset(file, 0, sizeof(*file));
	*model = (struct st_model){ .shards = shard, .nr = 1, .all = &shard->file };
	return 0;
}

void st_model_close_files(struct st_model *model)
{
	size_t i;

	for (i = 0; i < model->nr; i++) {
		if (model->shards[i].fd >= 0)
			close(model->shards[i].fd);
		model->shards[i].fd = -1;
	}
}

void st_model_free(struct st_model *model)
{
	size_t i;

	st_model_close_files(model);
	st_shards_unlist(model);
	for (i = 0; i < model->nr; i++)
		st_shard_free(&model->shards[i]);
	free(model->shards);
	free(model->index);
	memset(model, 0, sizeof(*model));
}
