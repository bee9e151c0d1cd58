// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * serve: publishes every tensor of a safetensors file, until a signal.
 *
 * With --keep the context's domain is left to a keeper once all is published; the next server
 * joins it, and finds pool and tensors there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "safetensors/safetensors.h"
#include "tool/cmd/commands.h"
#include "tool/common/context_options.h"
#include "tool/common/files.h"
#include "tool/common/json.h"
#include "tool/common/keeper.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/output.h"
#include "tool/common/progress.h"
#include "tool/common/published.h"
#include "tool/common/server.h"
#include "tool/common/store.h"

/* Operations of one submit */
#define BATCH 256

/**
 * struct serve - the command's state
 * @server: the context
 * @path: the file
 * @first_step: of --step
 * @steps: of --steps
 * @memory: of --memory
 * @keep: of --keep, or NULL
 * @keeper: that waits for the domain
 * @domain: of a keeper, that the server joins; -1: none
 * @own: of the server, for a keeper
 * @kept: label of that domain
 * @label: of the file: its path, and what tells its content from another
 * @file: what the file's header says
 * @offsets: where each tensor is in the pool, the index behind the last
 * @store: the pool
 */
struct serve {
	struct server server;
	const char *path;
	int64_t first_step;
	int64_t steps;
	enum store_memory memory;
	const char *keep;
	struct keeper keeper;
	int domain;
	int own;
	char kept[KEEPER_LABEL_MAX];
	char label[KEEPER_LABEL_MAX];
	struct st_file file;
	uint64_t *offsets;
	struct store store;
};

/* Where each tensor goes; returns the bytes of the whole pool */
static uint64_t lay_out(struct serve *serve)
{
	uint64_t at = serve->store.offset;
	size_t i;

	for (i = 0; i < serve->file.nr; i++) {
		serve->offsets[i] = at;
		at += align_region(serve->file.tensors[i].bytes);
	}
	serve->offsets[i] = at;
	return at + align_region(serve->file.header_bytes) -
	       serve->store.offset;
}

/* In the file's own pages each tensor, and the header, is where the file has it */
static void lay_out_file(struct serve *serve)
{
	size_t i;

	for (i = 0; i < serve->file.nr; i++)
		serve->offsets[i] = st_data_offset(&serve->file) + serve->file.tensors[i].begin;
	serve->offsets[i] = ST_LENGTH_BYTES;
}

static int read_tensors(struct serve *serve, int fd)
{
	struct progress progress;
	struct piece *pieces;
	size_t i;
	int err;

	pieces = calloc(serve->file.nr + 1, sizeof(*pieces));
	if (!pieces)
		return failed("%s: out of memory", serve->path);
	for (i = 0; i < serve->file.nr; i++) {
		pieces[i].base = (char *)serve->store.pool.base +
				 serve->offsets[i];
		pieces[i].bytes = serve->file.tensors[i].bytes;
	}
	memcpy((char *)serve->store.pool.base + serve->offsets[i],
	       serve->file.header, serve->file.header_bytes);
	progress_begin(&progress, "reading", serve->file.data_bytes);
	err = file_read(fd, st_data_offset(&serve->file), pieces,
			serve->file.nr, &progress);
	progress_end(&progress);
	free(pieces);
	if (err)
		return failed("read %s: %s", serve->path, err == -ENODATA ?
			      "the file has become shorter" : strerror(-err));
	return EXIT_OK;
}

static int open_file(struct serve *serve, int *fd)
{
	char error[ST_ERROR_MAX];

	if (st_open(serve->path, &serve->file, fd, error, sizeof(error)))
		return failed("read %s", error);
	serve->offsets = calloc(serve->file.nr + 1, sizeof(*serve->offsets));
	if (serve->offsets && !st_find(&serve->file, INDEX_NAME))
		return EXIT_OK;
	close(*fd);
	if (!serve->offsets)
		return failed("%s: out of memory", serve->path);
	return failed("read %s: tensor \"%s\": this name is reserved: rename it",
		      serve->path, INDEX_NAME);
}

static int load_in_place(struct serve *serve, int fd)
{
	lay_out_file(serve);
	return store_register_file(serve->server.rt, fd, st_data_offset(&serve->file) +
				   serve->file.data_bytes, &serve->store);
}

static int load_copy(struct serve *serve, int fd)
{
	int err;

	err = store_create_of(serve->server.rt, serve->memory, 1, lay_out(serve),
			      RDMATENSOR_POOL_PEERS_NONE, &serve->store);
	if (err)
		return err;
	lay_out(serve);
	return read_tensors(serve, fd);
}

static uint64_t nr_published(const struct serve *serve)
{
	return (uint64_t)serve->steps * (serve->file.nr + 1);
}

/* A path that is too long for the label is cut: what follows it tells files apart, too */
static int label_file(struct serve *serve, int fd)
{
	char *path = realpath(serve->path, NULL);
	struct stat is;

	if (!path || fstat(fd, &is)) {
		free(path);
		return failed("%s: %s", serve->path, strerror(errno));
	}
	snprintf(serve->label, sizeof(serve->label),
		 "%.800s\n%ju %ju %jd bytes, of %jd.%09ld, steps %" PRId64 " to %" PRId64,
		 path, (uintmax_t)is.st_dev, (uintmax_t)is.st_ino, (intmax_t)is.st_size,
		 (intmax_t)is.st_mtim.tv_sec, is.st_mtim.tv_nsec, serve->first_step,
		 serve->first_step + serve->steps - 1);
	free(path);
	return EXIT_OK;
}

/* Whether a tensor of the domain is one of the file's */
static bool is_ours(const struct serve *serve, const struct rdmatensor_lasting_query *query)
{
	char name[RDMATENSOR_NAME_MAX + 1];
	const struct st_tensor *tensor;

	if (query->step_id < serve->first_step || query->status ||
	    query->step_id - serve->first_step >= serve->steps || query->flags)
		return false;
	memcpy(name, query->name, query->name_len);
	name[query->name_len] = '\0';
	if (!strcmp(name, INDEX_NAME))
		return query->bytes == serve->file.header_bytes;
	tensor = strlen(name) == query->name_len ? st_find(&serve->file, name) : NULL;
	return tensor && query->bytes == tensor->bytes &&
	       query->data_type == (uint32_t)tensor->data_type &&
	       query->ndims == tensor->ndims &&
	       !memcmp(query->dims, tensor->dims, tensor->ndims * sizeof(*tensor->dims));
}

/* All that would be published is there already */
static int take_up(struct serve *serve)
{
	struct rdmatensor_lasting_query query = { .size = sizeof(query) };
	uint64_t nr = 0;
	int err;

	while (!(err = rdmatensor_lasting_query(serve->server.rt, &query)))
		nr += is_ours(serve, &query);
	if (err != -ENOENT)
		return failed("keeper %s: what it keeps: %s", serve->keep, strerror(-err));
	if (nr == nr_published(serve))
		return EXIT_OK;
	return failed("keeper %s: only %" PRIu64 " of %" PRIu64 " tensors are there: end it with `rdmatensor domain end %s`, and serve again",
		      serve->keep, nr, nr_published(serve), serve->keep);
}

/* The file is checked before anything else begins */
static int open_domain(struct serve *serve, int fd)
{
	int err;

	if (!serve->keep)
		return EXIT_OK;
	err = label_file(serve, fd);
	if (!err)
		err = keeper_get(serve->keep, &serve->domain, serve->kept);
	if (err)
		return err;
	if (serve->domain < 0)
		return keeper_begin(serve->keep, &serve->keeper);
	if (strcmp(serve->kept, serve->label))
		return failed("keeper %s: it keeps %.*s, of which file, content or steps are others: end it with `rdmatensor domain end %s`, or give another socket",
			      serve->keep, (int)strcspn(serve->kept, "\n"), serve->kept,
			      serve->keep);
	rdmatensor_start_domain(&serve->server.options.start, serve->domain);
	return EXIT_OK;
}

/* What a keeper will get, before a model is loaded in vain */
static int create_domain(struct serve *serve)
{
	int err;

	if (!serve->keep || serve->domain >= 0)
		return EXIT_OK;
	err = rdmatensor_domain_create(serve->server.rt, RDMATENSOR_DOMAIN_CLOEXEC, &serve->own);
	if (!err)
		return EXIT_OK;
	return failed("domain: %s%s", strerror(-err), err == -EUSERS ?
		      ": all max_contexts of this host are there: raise it with `rdmatensor set max_contexts N`" :
		      "");
}

static int load(struct serve *serve)
{
	int fd, err;

	err = open_file(serve, &fd);
	if (err)
		return err;
	err = open_domain(serve, fd);
	if (!err)
		err = server_start(&serve->server);
	if (!err)
		err = create_domain(serve);
	if (!err)
		err = serve->domain >= 0 ? take_up(serve) :
		      serve->memory == STORE_FILE ? load_in_place(serve, fd) :
						    load_copy(serve, fd);
	close(fd);
	return err;
}

/* When all is published, so that a keeper has a whole model */
static int leave_domain(struct serve *serve)
{
	int err = keeper_keep(&serve->keeper, serve->own, serve->label);

	close(serve->own);
	return err;
}

static const char *name_of(void *arg, uint64_t i, int64_t *step)
{
	const struct serve *serve = arg;
	uint64_t per_step = serve->file.nr + 1;

	*step = serve->first_step + (int64_t)(i / per_step);
	i %= per_step;
	return i < serve->file.nr ? serve->file.tensors[i].name : INDEX_NAME;
}

static void prep(const struct serve *serve, struct rdmatensor_op *op,
		 size_t i, int64_t step)
{
	const struct st_tensor *tensor = &serve->file.tensors[i];

	if (i < serve->file.nr)
		rdmatensor_prep_publish(op, tensor->name, step,
					serve->store.pool.id, serve->offsets[i],
					tensor->bytes, tensor->data_type,
					tensor->ndims, tensor->dims, 0, 0);
	else
		rdmatensor_prep_publish(op, INDEX_NAME, step,
					serve->store.pool.id, serve->offsets[i],
					serve->file.header_bytes,
					RDMATENSOR_DT_STRING, 0, NULL, 0, 0);
}

static int publish_step(struct serve *serve, int64_t step)
{
	struct rdmatensor_op ops[BATCH];
	size_t nr = serve->file.nr + 1;
	unsigned int done, n;
	int64_t unused;
	size_t i = 0;
	int err;

	while (i < nr) {
		for (n = 0; n < BATCH && i + n < nr; n++)
			prep(serve, &ops[n], i + n, step);
		err = rdmatensor_submit(serve->server.rt, ops, n, 0, 0, &done);
		if (err)
			return failed("publish tensor \"%s\", step %" PRId64 ": %s",
				      name_of(serve, i + done, &unused), step,
				      strerror(-err));
		i += n;
	}
	return EXIT_OK;
}

static int tell_ready(struct serve *serve)
{
	struct json_object *line = json_object_new_object();
	char what[512];

	add_string(line, "event", "ready");
	add_number(line, "tensors", serve->file.nr);
	add_number(line, "bytes", serve->file.data_bytes);
	add_string(line, "file", serve->path);
	json_object_object_add(line, "taken_up", json_object_new_boolean(serve->domain >= 0));
	snprintf(what, sizeof(what), "serving %zu tensor%s, %" PRIu64 " bytes of %s%s%s",
		 serve->file.nr, plural(serve->file.nr), serve->file.data_bytes, serve->path,
		 serve->domain >= 0 ? ", taken up from " : "",
		 serve->domain >= 0 ? serve->keep : "");
	return server_ready(&serve->server, what, line);
}

static int serve_file(struct serve *serve)
{
	int64_t step;
	int err;

	err = load(serve);
	for (step = 0; !err && serve->domain < 0 && step < serve->steps; step++)
		err = publish_step(serve, serve->first_step + step);
	if (!err && serve->keep && serve->domain < 0)
		err = leave_domain(serve);
	if (!err)
		err = tell_ready(serve);
	if (!err)
		err = server_run(&serve->server);
	if (!err && !serve->keep)
		server_withdraw(&serve->server, nr_published(serve), name_of, serve,
				rdmatensor_deadline_ms(SERVER_END_MS));
	if (!err)
		err = server_end(&serve->server);
	rdmatensor_close(serve->server.rt);
	st_free(&serve->file);
	free(serve->offsets);
	return err;
}

static int take_memory(void *own, const char *memory)
{
	struct serve *serve = own;

	return store_take_memory(memory, true, &serve->memory);
}

int cmd_serve(int argc, char **argv)
{
	struct serve serve = { .domain = -1 };
	const struct option_place places[] = {
		{ .id = OPT_STEP, .number = &serve.first_step },
		{ .id = OPT_STEPS, .number = &serve.steps },
		{ .id = OPT_EXIT_AFTER, .number = &serve.server.exit_after },
		{ .id = OPT_MEMORY, .own = &serve, .take = take_memory },
		{ .id = OPT_KEEP, .text = &serve.keep },
	};
	int err;

	if (!context_options_parse(COMMAND_SERVE, &serve.server.options, places,
				   NR_PLACES(places), argc, argv, &err))
		return err;
	if (argc - optind != 1)
		return misused("give one MODEL.safetensors");
	serve.path = argv[optind];
	return serve_file(&serve);
}
