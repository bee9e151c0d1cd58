// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Brings a model into memory: into one pool with its header and the pack behind the tensors, or
 * its files' own pages, in a pool for each. What files do not have as it is published, such as
 * the header of what a filter leaves, is in a small pool then.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parts.h"
#include "tool/common/files.h"
#include "tool/common/message.h"
#include "tool/common/progress.h"
#include "tool/common/published.h"

uint64_t serve_published(const struct serve *serve)
{
	return (uint64_t)serve->model.all->nr + 1 + !!serve->pack_bytes;
}

static int check_reserved(const struct serve *serve)
{
	const char *name = st_find(serve->model.all, INDEX_NAME) ? INDEX_NAME :
			   serve->model.index && st_find(serve->model.all, SHARDS_NAME) ?
			   SHARDS_NAME : NULL;

	if (!name)
		return EXIT_OK;
	return failed("read %s: tensor \"%s\": this name is reserved: rename it", serve->path,
		      name);
}

int serve_open(struct serve *serve)
{
	char error[ST_ERROR_MAX];
	int err;

	if (st_model_open(serve->path, &serve->model, error, sizeof(error)))
		return failed("read %s", error);
	err = filter_apply(&serve->filter, &serve->model, serve->path);
	if (!err)
		err = check_reserved(serve);
	if (!err && serve->model.index &&
	    st_model_pack(&serve->model, &serve->pack, &serve->pack_bytes, error, sizeof(error)))
		err = failed("read %s: %s", serve->path, error);
	if (err)
		return err;
	serve->header.bytes = serve->model.all->header_bytes;
	serve->shards.bytes = serve->pack_bytes;
	serve->dim = serve->pack_bytes;
	serve->tensors = calloc(serve->model.all->nr + 1, sizeof(*serve->tensors));
	return serve->tensors ? EXIT_OK : failed("%s: out of memory", serve->path);
}

static uint64_t put(struct region *region, const struct store *store, uint64_t at)
{
	region->pool = store->pool.id;
	region->offset = at;
	return at + align_region(region->bytes);
}

/* Header and pack, from @at of @store on. The end */
static uint64_t put_books(struct serve *serve, const struct store *store, uint64_t at)
{
	at = put(&serve->header, store, at);
	return serve->pack_bytes ? put(&serve->shards, store, at) : at;
}

static void write_books(const struct serve *serve, const struct store *store)
{
	memcpy((char *)store->pool.base + serve->header.offset, serve->model.all->header,
	       serve->header.bytes);
	if (serve->pack_bytes)
		memcpy((char *)store->pool.base + serve->shards.offset, serve->pack,
		       serve->pack_bytes);
}

/* ---- copied ----------------------------------------------------------------- */

/* Where everything goes in @store; the bytes of all */
static uint64_t lay_out(struct serve *serve, const struct store *store)
{
	const struct st_file *all = serve->model.all;
	uint64_t at = store->offset;
	size_t i;

	for (i = 0; i < all->nr; i++) {
		serve->tensors[i].bytes = all->tensors[i].bytes;
		at = put(&serve->tensors[i], store, at);
	}
	return put_books(serve, store, at) - store->offset;
}

/* Tensors that follow each other in the file are read together. 0 or a negative errno */
static int read_shard(const struct st_shard *shard, const struct piece *pieces,
		      struct progress *progress)
{
	size_t i, n;
	int err = 0;

	for (i = 0; !err && i < shard->file.nr; i += n) {
		for (n = 1; i + n < shard->file.nr; n++)
			if (st_shard_at(shard, i + n) !=
			    st_shard_at(shard, i + n - 1) + pieces[i + n - 1].bytes)
				break;
		err = file_read(shard->fd, st_shard_at(shard, i), pieces + i, n, progress);
	}
	return err;
}

/* The pieces of each shard, one shard's behind the other's, which begin at @first */
static void cut(const struct serve *serve, const struct store *store, struct piece *pieces,
		size_t *first)
{
	const struct st_model *model = &serve->model;
	struct st_place place;
	size_t i, nr = 0;

	for (i = 0; i < model->nr; i++) {
		first[i] = nr;
		nr += model->shards[i].file.nr;
	}
	for (i = 0; i < model->all->nr; i++) {
		place = st_model_place(model, i);
		pieces[first[place.shard] + place.tensor] = (struct piece){
			.base = (char *)store->pool.base + serve->tensors[i].offset,
			.bytes = serve->tensors[i].bytes,
		};
	}
}

static int read_tensors(const struct serve *serve, const struct store *store)
{
	const struct st_model *model = &serve->model;
	struct piece *pieces = calloc(model->all->nr + 1, sizeof(*pieces));
	size_t *first = calloc(model->nr + 1, sizeof(*first)), i;
	struct progress progress;
	int err = EXIT_OK, ret;

	if (!pieces || !first) {
		free(pieces);
		free(first);
		return failed("%s: out of memory", serve->path);
	}
	cut(serve, store, pieces, first);
	progress_begin(&progress, "reading", model->all->data_bytes);
	for (i = 0; !err && i < model->nr; i++) {
		ret = read_shard(&model->shards[i], pieces + first[i], &progress);
		if (!ret)
			continue;
		progress_end(&progress);
		err = failed("read %s: %s", model->shards[i].path, ret == -ENODATA ?
			     "the file has become shorter" : strerror(-ret));
	}
	progress_end(&progress);
	free(pieces);
	free(first);
	return err;
}

static int load_copy(struct serve *serve)
{
	struct store store = { 0 };
	int err;

	err = store_create_of(serve->server.rt, serve->memory, 1, lay_out(serve, &store),
			      RDMATENSOR_POOL_PEERS_NONE, &store);
	if (err)
		return err;
	lay_out(serve, &store);
	write_books(serve, &store);
	return read_tensors(serve, &store);
}

/* ---- in place --------------------------------------------------------------- */

static int register_shards(struct serve *serve, struct store *stores)
{
	const struct st_model *model = &serve->model;
	struct stat st;
	int err = EXIT_OK;
	size_t i;

	for (i = 0; !err && i < model->nr; i++) {
		if (fstat(model->shards[i].fd, &st))
			return failed("read %s: %s", model->shards[i].path, strerror(errno));
		err = store_register_file(serve->server.rt, model->shards[i].fd,
					  (uint64_t)st.st_size, &stores[i]);
	}
	return err;
}

static int load_books(struct serve *serve)
{
	struct store store = { 0 };
	int err;

	err = store_create(serve->server.rt, put_books(serve, &store, 0),
			   RDMATENSOR_POOL_PEERS_NONE, &store);
	if (err)
		return err;
	put_books(serve, &store, store.offset);
	write_books(serve, &store);
	return EXIT_OK;
}

static int load_in_place(struct serve *serve)
{
	const struct st_model *model = &serve->model;
	struct store *stores = calloc(model->nr, sizeof(*stores));
	struct st_place place;
	size_t i;
	int err;

	if (!stores)
		return failed("%s: out of memory", serve->path);
	err = register_shards(serve, stores);
	for (i = 0; !err && i < model->all->nr; i++) {
		place = st_model_place(model, i);
		serve->tensors[i] = (struct region){
			.pool = stores[place.shard].pool.id,
			.offset = st_shard_at(&model->shards[place.shard], place.tensor),
			.bytes = model->all->tensors[i].bytes,
		};
	}
	if (!err && (model->index || model->shards[0].at)) {
		err = load_books(serve);
	} else if (!err) {
		serve->header.pool = stores[0].pool.id;
		serve->header.offset = ST_LENGTH_BYTES;
	}
	free(stores);
	return err;
}

int serve_load(struct serve *serve)
{
	return serve->memory == STORE_FILE ? load_in_place(serve) : load_copy(serve);
}
