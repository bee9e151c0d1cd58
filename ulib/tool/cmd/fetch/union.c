// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One model of what several peers have. Of two peers that have a tensor of the same name, dtype and
 * shape either may send it: they are taken to have the same content, which nothing here can tell.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "tool/common/message.h"

/**
 * struct found - a tensor of a peer
 * @tensor: what the peer's index says
 * @peer: the peer's number
 * @at: its number in the index
 * @first: no peer before has one of this name
 */
struct found {
	const struct st_tensor *tensor;
	size_t peer;
	size_t at;
	bool first;
};

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = strcmp(x->tensor->name, y->tensor->name);

	return order ? order : (x->peer > y->peer) - (x->peer < y->peer);
}

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->peer != y->peer)
		return x->peer < y->peer ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* EXIT_OK, or EXIT_FAILED with a message */
static int list_all(struct fetch_union *all, const struct st_model *of, const struct fetch *fetch)
{
	size_t i, k, most = 0;
	char error[ST_ERROR_MAX];

	all->files = calloc(fetch->peers.nr + 1, sizeof(*all->files));
	for (i = 0; all->files && i < fetch->peers.nr; i++, all->nr_files++) {
		if (st_parse(of[i].all->header, of[i].all->header_bytes, UINT64_MAX, &all->files[i],
			     error, sizeof(error)))
			return failed("index of %s: %s", fetch->peers.all[i].name, error);
		most += all->files[i].nr;
	}
	all->all = calloc(most + 1, sizeof(*all->all));
	if (!all->files || !all->all) {
		failed("out of memory");
		return EXIT_FAILED;
	}
	for (i = 0; i < all->nr_files; i++)
		for (k = 0; k < all->files[i].nr; k++)
			all->all[all->nr++] = (struct found){
				.tensor = &all->files[i].tensors[k],
				.peer = i,
				.at = k,
			};
	return EXIT_OK;
}

/* A type is more than the length of its elements */
static bool are_equal(const struct st_tensor *a, const struct st_tensor *b)
{
	return !strcmp(a->dtype, b->dtype) && a->bytes == b->bytes && a->ndims == b->ndims &&
	       !memcmp(a->dims, b->dims, a->ndims * sizeof(a->dims[0]));
}

static int compare_all(const struct fetch *fetch, struct fetch_union *all)
{
	const struct peer *peers = fetch->peers.all;
	struct found *found, *first = NULL;

	qsort(all->all, all->nr, sizeof(*all->all), by_name);
	for (found = all->all; found < all->all + all->nr; found++) {
		found->first = !first || strcmp(first->tensor->name, found->tensor->name);
		if (found->first) {
			first = found;
			all->names++;
		} else if (!are_equal(first->tensor, found->tensor)) {
			return failed("tensor \"%s\" has another dtype or shape at %s than at %s: name peers that serve the same model",
				      found->tensor->name, peers[found->peer].name,
				      peers[first->peer].name);
		}
	}
	return EXIT_OK;
}

/* A file of what each peer is the first to have */
static int join(struct fetch *fetch, struct fetch_union *all, const struct st_model *of)
{
	size_t nr_peers = fetch->peers.nr, i, k;
	struct st_file *files = calloc(nr_peers + 1, sizeof(*files));
	struct st_tensor *tensors = calloc(all->names + 1, sizeof(*tensors)), *next = tensors;
	char error[ST_ERROR_MAX];
	int err = EXIT_OK;

	if (!files || !tensors) {
		free(files);
		free(tensors);
		return failed("out of memory");
	}
	qsort(all->all, all->nr, sizeof(*all->all), by_place);
	for (i = k = 0; i < nr_peers; i++) {
		files[i] = *of[i].all;
		files[i].tensors = next;
		for (; k < all->nr && all->all[k].peer == i; k++)
			if (all->all[k].first)
				*next++ = *all->all[k].tensor;
		files[i].nr = (size_t)(next - files[i].tensors);
	}
	if (st_model_join(files, nr_peers, &fetch->model, error, sizeof(error)))
		err = failed("the tensors of %s: %s", fetch->peer, error);
	qsort(all->all, all->nr, sizeof(*all->all), by_name);
	free(files);
	free(tensors);
	return err;
}

int fetch_unite(struct fetch *fetch, struct st_model *of, struct fetch_union *all,
		struct peer **whole)
{
	size_t i;
	int err;

	*whole = NULL;
	err = list_all(all, of, fetch);
	if (!err)
		err = compare_all(fetch, all);
	if (err)
		return err;
	for (i = 0; i < fetch->peers.nr; i++) {
		if (of[i].all->nr != all->names)
			continue;
		*whole = &fetch->peers.all[i];
		fetch->model = of[i];
		memset(&of[i], 0, sizeof(of[i]));
		return EXIT_OK;
	}
	if (fetch->folder)
		return failed("-o %s: no peer has all tensors, so none can tell the files: give -o OUT.safetensors, or one more PEER that serves the whole folder",
			      fetch->output);
	return join(fetch, all, of);
}

static const struct found *find_first(const struct fetch_union *all, const char *name)
{
	size_t low = 0, high = all->nr, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(all->all[middle].tensor->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return all->all + low;
}

int fetch_owners(struct fetch *fetch, const struct fetch_union *all)
{
	const struct found *found, *end = all->all + all->nr;
	const struct st_file *file = fetch->model.all;
	struct peer *peers = fetch->peers.all;
	size_t i;

	for (i = 0; i < fetch->peers.nr; i++) {
		peers[i].has = calloc(file->nr + 1, sizeof(*peers[i].has));
		if (!peers[i].has)
			return failed("out of memory");
	}
	for (i = 0; i < file->nr; i++)
		for (found = find_first(all, file->tensors[i].name);
		     found < end && !strcmp(found->tensor->name, file->tensors[i].name); found++)
			peers[found->peer].has[i] = true;
	return EXIT_OK;
}

void fetch_union_free(struct fetch_union *all)
{
	size_t i;

	for (i = 0; i < all->nr_files; i++)
		st_free(&all->files[i]);
	free(all->files);
	free(all->all);
}
