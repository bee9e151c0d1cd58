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

/* For words of an error */
#define SIMILAR_MS 1000
/* Of the time that there is for an index: after it there is a word on what is waited for */
#define INDEX_SILENT_PART 3
/* That time, where --timeout 0 sets no end */
#define INDEX_TIMEOUT_NS (UINT64_C(30) * 1000000000)
/* No more than the kernel keeps texts of */
#define ASK_AT_ONCE 64
/* Tensors that cannot be fetched, of which each has its line */
#define WRONG_NAMED 8

uint64_t fetch_deadline(const struct fetch *fetch)
{
	return fetch->timeout_ns ? rdmatensor_now_ns() + fetch->timeout_ns : 0;
}

const char *fetch_remedy(const struct rdmatensor_cqe *cqe)
{
	switch (cqe->result) {
	case -ETIMEDOUT:
		return ": it did not arrive within --timeout, or the peer has not published it under this name and step (`rdmatensor ls` lists what it has)";
	case -ECONNRESET:
	case -ESHUTDOWN:
	case -ENODEV:
	case -EPROTO:
		return ": see the peer's log, and fetch again";
	case -ERANGE:
	case -EMSGSIZE:
	case -ENOSPC:
	case -EBADMSG:
		return "";
	case -EDQUOT:
		return ": " STORE_NO_REGIONS ", or lower --in-flight";
	default:
		/* All others come from the worker that should have published it */
		return ": its publisher reports this: correct it there, and fetch again";
	}
}

const char *fetch_refusal(const struct peer *peer, int err, char *text, size_t len)
{
	/* What was tried last says what to do, if another channel was tried */
	if (err == -ENOTCONN)
		snprintf(text, len, "the channel has gone down: %s%s",
			 *peer->why ? peer->why : strerror(-err),
			 strstr(peer->why, PEER_THEN) ? "" : ": see the peer's log, and fetch again");
	else if (err == -EDQUOT)
		snprintf(text, len, STORE_NO_REGIONS ", or lower --in-flight");
	else
		snprintf(text, len, "%s", strerror(-err));
	return text;
}

static int tensor_failed(struct fetch *fetch, const struct peer *peer, const char *name,
			 const struct rdmatensor_cqe *cqe, int err)
{
	char text[RDMATENSOR_STATUS_ROOM], meant[RDMATENSOR_STATUS_ROOM] = "";
	const char *remedy;

	if (!cqe->type || peer->state == PEER_GIVEN_UP)
		return failed("fetch tensor \"%s\", step %" PRId64 ", from %s: %s",
			      name, fetch->first_step, peer->name,
			      fetch_refusal(peer, peer->state == PEER_GIVEN_UP ? -ENOTCONN : err,
					    text, sizeof(text)));
	remedy = fetch_remedy(cqe);
	if (err == -ETIMEDOUT)
		rdmatensor_similar(fetch->rt, peer->channel, name,
				   rdmatensor_deadline_ms(SIMILAR_MS), meant, sizeof(meant));
	if (err == -ETIMEDOUT && !strcmp(name, INDEX_NAME))
		remedy = ": it did not arrive within --timeout, or the peer is not a `rdmatensor serve` with this step: raise --timeout, or name the tensors";
	return failed("fetch tensor \"%s\", step %" PRId64 ", from %s: %s%s%s%s",
		      name, fetch->first_step, peer->name,
		      rdmatensor_status_text(fetch->rt, cqe, text, sizeof(text)), remedy,
		      *meant ? "; " : "", meant);
}

/* The ends of channels; nothing else is in flight */
static void drop_events(struct fetch *fetch)
{
	struct rdmatensor_cqe cqes[16];

	while (rdmatensor_reap(fetch->rt, cqes, sizeof(cqes) / sizeof(cqes[0])))
		;
}

/* As rdmatensor_fetch(), by as many channels as it takes */
static int fetch_one(struct fetch *fetch, struct peer *peer, const char *name,
		     const struct store *store, uint64_t bytes, uint64_t deadline,
		     struct rdmatensor_cqe *cqe)
{
	char text[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_op op;
	int err;

	for (;;) {
		memset(cqe, 0, sizeof(*cqe));
		rdmatensor_prep_fetch(&op, peer->channel, name, fetch->first_step, store->pool.id,
				      store->offset, bytes, deadline, 0);
		slices_apply(&fetch->slices, name, &op);
		err = rdmatensor_run(fetch->rt, &op, cqe);
		if (!peer_is_down(&fetch->peers, peer, err)) {
			peer->tries = 0;
			peers_progress(&fetch->peers);
			return err;
		}
		peer_down(peer, cqe->type ?
			  rdmatensor_status_text(fetch->rt, cqe, text, sizeof(text)) :
			  strerror(-err));
		while (peer->state != PEER_UP) {
			if (peer->state == PEER_DOWN)
				peer_again(&fetch->peers, peer);
			if (peer->state == PEER_GIVEN_UP)
				return err;
			drop_events(fetch);
			peers_wait(&fetch->peers);
			peers_look(&fetch->peers, NULL, NULL);
		}
	}
}

/* What a fetch into no room, which only returns meta-data, has ended with */
static int judge(struct fetch *fetch, struct peer *peer, const char *name,
		 const struct rdmatensor_cqe *cqe, int err)
{
	if (err && !(err == -EMSGSIZE && cqe->flags & RDMATENSOR_CQE_META))
		return tensor_failed(fetch, peer, name, cqe, err);
	if (cqe->flags & RDMATENSOR_CQE_DEAD)
		return failed("fetch tensor \"%s\", step %" PRId64 ": it is dead: it has no content",
			      name, fetch->first_step);
	return EXIT_OK;
}

static int probe(struct fetch *fetch, struct peer *peer, const struct store *store,
		 const char *name, struct rdmatensor_cqe *cqe)
{
	int err;

	err = fetch_one(fetch, peer, name, store, 0, fetch_deadline(fetch), cqe);
	return judge(fetch, peer, name, cqe, err);
}

/* Nobody is to wait without a word for a server that may be none */
static int probe_index(struct fetch *fetch, struct peer *peer, const struct store *store,
		       struct rdmatensor_cqe *cqe)
{
	uint64_t end = fetch_deadline(fetch), first;
	int err;

	first = rdmatensor_now_ns() + (fetch->timeout_ns ?: INDEX_TIMEOUT_NS) / INDEX_SILENT_PART;
	err = fetch_one(fetch, peer, INDEX_NAME, store, 0, first, cqe);
	if (err == -ETIMEDOUT && cqe->type && peer->state != PEER_GIVEN_UP) {
		warned("%s is up and offers no model yet: waiting for the `rdmatensor serve` there, until --timeout; `rdmatensor ls %s` lists what it offers, to be fetched by name",
		       peer->name, peer->name);
		err = fetch_one(fetch, peer, INDEX_NAME, store, 0, end, cqe);
	}
	return judge(fetch, peer, INDEX_NAME, cqe, err);
}

/* All at once. Entries of what the channel's end has kept from being asked are of type 0 */
static void ask(struct fetch *fetch, const struct peer *peer, const struct store *store,
		char **names, size_t nr, struct rdmatensor_cqe *cqes)
{
	struct rdmatensor_op ops[ASK_AT_ONCE];
	struct rdmatensor_cqe cqe;
	unsigned int left = 0;
	size_t i;
	int err;

	memset(cqes, 0, nr * sizeof(*cqes));
	for (i = 0; i < nr; i++) {
		rdmatensor_prep_fetch(&ops[i], peer->channel, names[i], fetch->first_step,
				      store->pool.id, store->offset, 0, fetch_deadline(fetch), i);
		slices_apply(&fetch->slices, names[i], &ops[i]);
	}
	rdmatensor_submit(fetch->rt, ops, nr, 0, 0, &left);
	while (left) {
		if (!rdmatensor_reap(fetch->rt, &cqe, 1)) {
			err = rdmatensor_wait(fetch->rt, 1, 0);
			if (err && err != -EINTR)
				return;
		} else if (cqe.type == RDMATENSOR_CQE_FETCH) {
			cqes[cqe.user_data] = cqe;
			left--;
		}
	}
}

/* 0, or a negative errno with @error */
typedef int (*take_text)(struct st_model *model, const char *text, size_t bytes, char *error,
			 size_t error_len);

static int take_header(struct st_model *model, const char *text, size_t bytes, char *error,
		       size_t error_len)
{
	struct st_file file;
	int err;

	err = st_parse(text, bytes, UINT64_MAX, &file, error, error_len);
	if (err)
		return err;
	err = st_model_one(&file, model);
	if (err)
		snprintf(error, error_len, "out of memory");
	return err;
}

/* In place of the file that the peer would make of its shards */
static int take_shards(struct st_model *model, const char *text, size_t bytes, char *error,
		       size_t error_len)
{
	st_model_free(model);
	return st_model_unpack(text, bytes, model, error, error_len);
}

/**
 * struct side - what a peer publishes beside its tensors
 * @name: its name
 * @bytes: its length
 * @take: judges it
 * @what: it, for messages
 * @keep: another worker is judged by it
 */
struct side {
	const char *name;
	uint64_t bytes;
	take_text take;
	const char *what;
	bool keep;
};

/* Into memory of its own that is not kept */
static int fetch_text(struct fetch *fetch, struct peer *peer, const struct side *side,
		      struct st_model *model)
{
	struct rdmatensor_cqe cqe;
	char error[ST_ERROR_MAX];
	struct store store;
	int err;

	err = store_create(fetch->rt, side->bytes, RDMATENSOR_POOL_PEERS_WRITE, &store);
	if (err)
		return err;
	err = fetch_one(fetch, peer, side->name, &store, side->bytes, fetch_deadline(fetch), &cqe);
	if (err)
		err = tensor_failed(fetch, peer, side->name, &cqe, err);
	else if (side->take(model, (char *)store.pool.base + store.offset, cqe.tensor_bytes, error,
			    sizeof(error)))
		err = failed("%s of %s: %s", side->what, peer->name, error);
	else if (side->keep && peer_keep_index(peer, (char *)store.pool.base + store.offset,
					       cqe.tensor_bytes))
		err = failed("out of memory");
	rdmatensor_pool_destroy(fetch->rt, &store.pool);
	return err;
}

/* The one dim of a server's index says that there are shards, and how long what tells of them is */
static uint64_t shards_of(const struct rdmatensor_cqe *cqe)
{
	return cqe->data_type == RDMATENSOR_DT_STRING && cqe->ndims == 1 ? cqe->dims[0] : 0;
}

/* Into @model, of zeroes. EXIT_OK, or EXIT_FAILED with a message */
static int index_of(struct fetch *fetch, struct peer *peer, struct st_model *model)
{
	struct side index = { INDEX_NAME, 0, take_header, "index", true };
	struct rdmatensor_cqe cqe;
	struct store store;
	int err;

	err = store_create(fetch->rt, 1, RDMATENSOR_POOL_PEERS_WRITE, &store);
	if (err)
		return err;
	err = probe_index(fetch, peer, &store, &cqe);
	rdmatensor_pool_destroy(fetch->rt, &store.pool);
	if (err)
		return err;
	index.bytes = cqe.tensor_bytes;
	peer->shards_bytes = shards_of(&cqe);
	if (!index.bytes || index.bytes > ST_HEADER_MAX)
		return failed("index of %s: %" PRIu64 " bytes are not a safetensors header",
			      peer->name, index.bytes);
	return fetch_text(fetch, peer, &index, model);
}

/* In place of fetch->model, which has the same tensors in one file */
static int shards_into(struct fetch *fetch, struct peer *peer)
{
	struct side shards = { SHARDS_NAME, peer->shards_bytes, take_shards, "shards", false };

	if (!shards.bytes)
		return EXIT_OK;
	if (shards.bytes > ST_PACK_MAX)
		return failed("shards of %s: %" PRIu64 " bytes are not their headers", peer->name,
			      shards.bytes);
	return fetch_text(fetch, peer, &shards, &fetch->model);
}

static int index_of_all(struct fetch *fetch, struct st_model *of)
{
	struct peer *peers = fetch->peers.all, *whole = peers;
	struct fetch_union all = { 0 };
	size_t i;
	int err = EXIT_OK;

	for (i = 0; !err && i < fetch->peers.nr; i++)
		err = index_of(fetch, &peers[i], &of[i]);
	if (err)
		return err;
	if (fetch->peers.nr > 1) {
		err = fetch_unite(fetch, of, &all, &whole);
	} else {
		fetch->model = *of;
		memset(of, 0, sizeof(*of));
	}
	if (!err && fetch->folder)
		err = shards_into(fetch, whole);
	if (!err)
		err = filter_apply(&fetch->filter, &fetch->model, fetch->peer);
	if (!err && fetch->peers.nr > 1)
		err = fetch_owners(fetch, &all);
	fetch_union_free(&all);
	return err;
}

int fetch_index(struct fetch *fetch)
{
	struct st_model *of = calloc(fetch->peers.nr, sizeof(*of));
	size_t i;
	int err;

	if (!of)
		return failed("out of memory");
	err = index_of_all(fetch, of);
	if (!err)
		fetch->file = fetch->model.all;
	for (i = 0; i < fetch->peers.nr; i++)
		st_model_free(&of[i]);
	free(of);
	return err;
}

/* Of a type that only a header tells, meta-data do not say enough */
static int no_file_of(const char *name)
{
	return failed("fetch tensor \"%s\": its meta-data do not tell its dtype, as of types with less than a byte: fetch it with --all --filter '%s', from a `rdmatensor serve`",
		      name, name);
}

/* What @cqe says of @name; asked for once more if the channel has gone, over the next one */
static int take_meta(struct fetch *fetch, const struct store *store, char *name,
		     struct rdmatensor_cqe *cqe, struct st_tensor *tensor)
{
	struct peer *peer = fetch->peers.all;
	char text[RDMATENSOR_STATUS_ROOM];
	bool down;
	int err;

	down = cqe->type && peer_is_down(&fetch->peers, peer, cqe->result);
	if (down)
		peer_down(peer, rdmatensor_status_text(fetch->rt, cqe, text, sizeof(text)));
	if (down || !cqe->type)
		err = probe(fetch, peer, store, name, cqe);
	else
		err = judge(fetch, peer, name, cqe, cqe->result);
	if (!err && cqe->data_type == RDMATENSOR_DT_VARIANT)
		err = no_file_of(name);
	if (err)
		return err;
	tensor->name = name;
	tensor->data_type = cqe->data_type;
	tensor->ndims = cqe->ndims;
	if (cqe->ndims <= RDMATENSOR_DIMS_MAX)
		memcpy(tensor->dims, cqe->dims, cqe->ndims * sizeof(cqe->dims[0]));
	return EXIT_OK;
}

/* All of @names, so that one fetch says of all what is wrong with them */
static int take_all_meta(struct fetch *fetch, const struct store *store, char **names, size_t nr,
			 struct st_tensor *tensors)
{
	struct rdmatensor_cqe cqes[ASK_AT_ONCE];
	size_t i, k, n, wrong = 0;

	for (i = 0; i < nr; i += n) {
		n = nr - i < ASK_AT_ONCE ? nr - i : ASK_AT_ONCE;
		ask(fetch, fetch->peers.all, store, names + i, n, cqes);
		for (k = 0; k < n && wrong < WRONG_NAMED; k++)
			if (take_meta(fetch, store, names[i + k], &cqes[k], &tensors[i + k])) {
				wrong++;
				if (fetch->peers.all->state == PEER_GIVEN_UP)
					return EXIT_FAILED;
			}
		if (wrong == WRONG_NAMED && i + k < nr)
			return failed("fetch: %zu more tensors were not looked at, after %u that cannot be fetched",
				      nr - i - k, WRONG_NAMED);
	}
	return wrong ? EXIT_FAILED : EXIT_OK;
}

int fetch_meta(struct fetch *fetch, char **names, size_t nr)
{
	struct st_tensor *tensors;
	char error[ST_ERROR_MAX];
	struct st_file file;
	struct store store;
	int err;

	tensors = calloc(nr, sizeof(*tensors));
	if (!tensors)
		return failed("out of memory");
	err = store_create(fetch->rt, 1, RDMATENSOR_POOL_PEERS_WRITE, &store);
	if (err) {
		free(tensors);
		return err;
	}
	err = take_all_meta(fetch, &store, names, nr, tensors);
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
