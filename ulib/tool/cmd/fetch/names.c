// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What there is to fetch. A fetch into a destination of 0 bytes ends with -EMSGSIZE and the
 * tensor's meta-data, which is how the command learns its size.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "safetensors/safetensors.h"
#include "tool/common/message.h"
#include "tool/common/published.h"
#include "tool/common/store.h"

uint64_t fetch_deadline(const struct fetch *fetch)
{
	return fetch->timeout_ns ? rdmatensor_now_ns() + fetch->timeout_ns : 0;
}

const char *fetch_remedy(const struct rdmatensor_cqe *cqe)
{
	switch (cqe->result) {
	case -ETIMEDOUT:
		return ": it did not arrive within --timeout, or the peer has not published it under this name and step";
	case -ECONNRESET:
	case -ESHUTDOWN:
	case -ENODEV:
	case -EPROTO:
		return ": see the peer's log, and fetch again";
	case -EMSGSIZE:
	case -ENOSPC:
	case -EBADMSG:
		return "";
	case -EDQUOT:
		return ": the RDMA cgroup allows no more memory regions: raise hca_object in its rdma.max, or lower --in-flight";
	default:
		/* All others come from the worker that should have published it */
		return ": its publisher reports this: correct it there, and fetch again";
	}
}

const char *fetch_refusal(const struct fetch *fetch, int err, char *text, size_t len)
{
	if (err == -ENOTCONN)
		snprintf(text, len, "the channel has gone down: %s: see the peer's log, and fetch again",
			 *fetch->down ? fetch->down : strerror(-err));
	else if (err == -EDQUOT)
		snprintf(text, len, "the RDMA cgroup allows no more memory regions: raise hca_object in its rdma.max, or lower --in-flight");
	else
		snprintf(text, len, "%s", strerror(-err));
	return text;
}

static int tensor_failed(struct fetch *fetch, const char *name,
			 const struct rdmatensor_cqe *cqe, int err)
{
	char text[RDMATENSOR_STATUS_ROOM];
	const char *remedy;

	if (!cqe->type)
		return failed("fetch tensor \"%s\", step %" PRId64 ", from %s: %s",
			      name, fetch->first_step, fetch->peer,
			      fetch_refusal(fetch, err, text, sizeof(text)));
	remedy = fetch_remedy(cqe);
	if (err == -ETIMEDOUT && !strcmp(name, INDEX_NAME))
		remedy = ": it did not arrive within --timeout, or the peer is not a `rdmatensor serve` with this step: raise --timeout, or name the tensors";
	return failed("fetch tensor \"%s\", step %" PRId64 ", from %s: %s%s",
		      name, fetch->first_step, fetch->peer,
		      rdmatensor_status_text(fetch->rt, cqe, text, sizeof(text)), remedy);
}

/* A region of the smallest size, for a fetch that only returns meta-data */
static int probe(struct fetch *fetch, const struct store *store,
		 const char *name, struct rdmatensor_cqe *cqe)
{
	int err;

	err = rdmatensor_fetch(fetch->rt, fetch->channel, name,
			       fetch->first_step, &store->pool, store->offset,
			       0, fetch_deadline(fetch), cqe);
	if (err && !(err == -EMSGSIZE && cqe->flags & RDMATENSOR_CQE_META))
		return tensor_failed(fetch, name, cqe, err);
	if (cqe->flags & RDMATENSOR_CQE_DEAD)
		return failed("fetch tensor \"%s\", step %" PRId64 ": it is dead: it has no content",
			      name, fetch->first_step);
	return EXIT_OK;
}

/* 0, or a negative errno with @error */
typedef int (*take_text)(struct fetch *fetch, const char *text, size_t bytes, char *error,
			 size_t error_len);

static int take_header(struct fetch *fetch, const char *text, size_t bytes, char *error,
		       size_t error_len)
{
	struct st_file file;
	int err;

	err = st_parse(text, bytes, UINT64_MAX, &file, error, error_len);
	if (err)
		return err;
	err = st_model_one(&file, &fetch->model);
	if (err)
		snprintf(error, error_len, "out of memory");
	return err;
}

/* In place of the file that the peer would make of its shards */
static int take_shards(struct fetch *fetch, const char *text, size_t bytes, char *error,
		       size_t error_len)
{
	st_model_free(&fetch->model);
	return st_model_unpack(text, bytes, &fetch->model, error, error_len);
}

/* What a peer publishes beside its tensors, into memory of its own that is not kept */
static int fetch_text(struct fetch *fetch, const char *name, uint64_t bytes, take_text take,
		      const char *what)
{
	struct rdmatensor_cqe cqe;
	char error[ST_ERROR_MAX];
	struct store store;
	int err;

	err = store_create(fetch->rt, bytes, RDMATENSOR_POOL_PEERS_WRITE, &store);
	if (err)
		return err;
	err = rdmatensor_fetch(fetch->rt, fetch->channel, name, fetch->first_step, &store.pool,
			       store.offset, bytes, fetch_deadline(fetch), &cqe);
	if (err)
		err = tensor_failed(fetch, name, &cqe, err);
	else if (take(fetch, (char *)store.pool.base + store.offset, cqe.tensor_bytes, error,
		      sizeof(error)))
		err = failed("%s of %s: %s", what, fetch->peer, error);
	rdmatensor_pool_destroy(fetch->rt, &store.pool);
	return err;
}

/* The one dim of a server's index says that there are shards, and how long what tells of them is */
static uint64_t shards_of(const struct rdmatensor_cqe *cqe)
{
	return cqe->data_type == RDMATENSOR_DT_STRING && cqe->ndims == 1 ? cqe->dims[0] : 0;
}

int fetch_index(struct fetch *fetch)
{
	struct rdmatensor_cqe cqe;
	struct store store;
	uint64_t bytes;
	int err;

	err = store_create(fetch->rt, 1, RDMATENSOR_POOL_PEERS_WRITE, &store);
	if (err)
		return err;
	err = probe(fetch, &store, INDEX_NAME, &cqe);
	rdmatensor_pool_destroy(fetch->rt, &store.pool);
	if (err)
		return err;
	bytes = cqe.tensor_bytes;
	if (!bytes || bytes > ST_HEADER_MAX)
		return failed("index of %s: %" PRIu64 " bytes are not a safetensors header",
			      fetch->peer, bytes);
	err = fetch_text(fetch, INDEX_NAME, bytes, take_header, "index");
	bytes = fetch->folder ? shards_of(&cqe) : 0;
	if (!err && bytes > ST_PACK_MAX)
		err = failed("shards of %s: %" PRIu64 " bytes are not their headers", fetch->peer,
			     bytes);
	else if (!err && bytes)
		err = fetch_text(fetch, SHARDS_NAME, bytes, take_shards, "shards");
	if (!err)
		err = filter_apply(&fetch->filter, &fetch->model, fetch->peer);
	if (!err)
		fetch->file = fetch->model.all;
	return err;
}

/* Of a type that only a header tells, meta-data do not say enough */
static int no_file_of(const char *name)
{
	return failed("fetch tensor \"%s\": its meta-data do not tell its dtype, as of types with less than a byte: fetch it with --all --filter '%s', from a `rdmatensor serve`",
		      name, name);
}

int fetch_meta(struct fetch *fetch, char **names, size_t nr)
{
	struct st_tensor *tensors;
	struct rdmatensor_cqe cqe;
	char error[ST_ERROR_MAX];
	struct st_file file;
	struct store store;
	size_t i;
	int err;

	tensors = calloc(nr, sizeof(*tensors));
	if (!tensors)
		return failed("out of memory");
	err = store_create(fetch->rt, 1, RDMATENSOR_POOL_PEERS_WRITE, &store);
	if (err) {
		free(tensors);
		return err;
	}
	for (i = 0; !err && i < nr; i++) {
		err = probe(fetch, &store, names[i], &cqe);
		if (!err && cqe.data_type == RDMATENSOR_DT_VARIANT)
			err = no_file_of(names[i]);
		if (err)
			break;
		tensors[i].name = names[i];
		tensors[i].data_type = cqe.data_type;
		tensors[i].ndims = cqe.ndims;
		if (cqe.ndims <= RDMATENSOR_DIMS_MAX)
			memcpy(tensors[i].dims, cqe.dims,
			       cqe.ndims * sizeof(cqe.dims[0]));
	}
	rdmatensor_pool_destroy(fetch->rt, &store.pool);
	if (!err && st_make(tensors, nr, NULL, &file, error, sizeof(error)))
		err = failed("%s", error);
	else if (!err && st_model_one(&file, &fetch->model))
		err = failed("out of memory");
	if (!err)
		fetch->file = fetch->model.all;
	free(tensors);
	return err;
}
