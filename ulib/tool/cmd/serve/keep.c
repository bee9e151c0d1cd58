// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * With --keep the context's domain is left to a keeper once all is published, which is a process
 * or the service manager; the next server joins it, and finds pools and tensors there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"
#include "tool/common/message.h"
#include "tool/common/published.h"

uint64_t serve_sum(uint64_t sum, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	while (bytes--)
		sum = (sum ^ *p++) * UINT64_C(0x100000001b3);
	return sum;
}

/* Of what one file's label says by itself, for each shard; and of the patterns */
static int sum_up(const struct serve *serve, uint64_t *sum)
{
	const struct st_model *model = &serve->model;
	char text[256];
	struct stat is;
	size_t i;

	*sum = SERVE_SUM_BEGIN;
	if (model->index)
		*sum = serve_sum(*sum, model->index, model->index_bytes);
	for (i = 0; i < model->nr; i++) {
		if (fstat(model->shards[i].fd, &is))
			return failed("%s: %s", model->shards[i].path, strerror(errno));
		snprintf(text, sizeof(text), "%ju %ju %jd %jd.%09ld", (uintmax_t)is.st_dev,
			 (uintmax_t)is.st_ino, (intmax_t)is.st_size, (intmax_t)is.st_mtim.tv_sec,
			 is.st_mtim.tv_nsec);
		*sum = serve_sum(*sum, text, strlen(text) + 1);
	}
	for (i = 0; i < serve->filter.nr; i++)
		*sum = serve_sum(*sum, serve->filter.globs[i], strlen(serve->filter.globs[i]) + 1);
	return EXIT_OK;
}

/* A path that is too long for the label is cut: what follows it tells models apart, too */
static int label_model(struct serve *serve)
{
	char *path = realpath(serve->path, NULL);
	char what[128];
	struct stat is;
	uint64_t sum;
	int err = EXIT_OK;

	if (!path || fstat(serve->model.shards[0].fd, &is)) {
		free(path);
		return failed("%s: %s", serve->path, strerror(errno));
	}
	if (serve->model.index || serve->filter.nr) {
		err = sum_up(serve, &sum);
		snprintf(what, sizeof(what), "%zu files, %" PRIx64, serve->model.nr, sum);
	} else {
		snprintf(what, sizeof(what), "%ju %ju %jd bytes, of %jd.%09ld",
			 (uintmax_t)is.st_dev, (uintmax_t)is.st_ino, (intmax_t)is.st_size,
			 (intmax_t)is.st_mtim.tv_sec, is.st_mtim.tv_nsec);
	}
	if (!err)
		snprintf(serve->label, sizeof(serve->label),
			 "%.800s\n%s, steps %" PRId64 " to %" PRId64, path, what, serve->first_step,
			 serve->first_step + serve->steps - 1);
	free(path);
	return err;
}

/* Of the model, in the order of its name */
struct sorted {
	const struct st_tensor *tensor;
};

static int compare_names(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	return strcmp(x->tensor->name, y->tensor->name);
}

/* NULL: out of memory */
static struct sorted *sort_by_name(const struct st_file *all)
{
	struct sorted *sorted = calloc(all->nr + 1, sizeof(*sorted));
	size_t i;

	for (i = 0; sorted && i < all->nr; i++)
		sorted[i].tensor = &all->tensors[i];
	if (sorted)
		qsort(sorted, all->nr, sizeof(*sorted), compare_names);
	return sorted;
}

/* Whether a tensor of the domain is one of the model's, which are @sorted */
static bool is_ours(const struct serve *serve, const struct sorted *sorted,
		    const struct rdmatensor_lasting_query *query)
{
	char name[RDMATENSOR_NAME_MAX + 1];
	const struct st_tensor key = { .name = name }, *tensor;
	const struct sorted wanted = { &key }, *found;

	if (query->step_id < serve->first_step || query->status ||
	    query->step_id - serve->first_step >= serve->steps || query->flags)
		return false;
	memcpy(name, query->name, query->name_len);
	name[query->name_len] = '\0';
	if (!strcmp(name, INDEX_NAME))
		return query->bytes == serve->header.bytes;
	if (serve->pack_bytes && !strcmp(name, SHARDS_NAME))
		return query->bytes == serve->pack_bytes;
	if (strlen(name) != query->name_len)
		return false;
	found = bsearch(&wanted, sorted, serve->model.all->nr, sizeof(*sorted), compare_names);
	if (!found)
		return false;
	tensor = found->tensor;
	return query->bytes == tensor->bytes &&
	       query->data_type == (uint32_t)tensor->data_type &&
	       query->ndims == tensor->ndims &&
	       !memcmp(query->dims, tensor->dims, tensor->ndims * sizeof(*tensor->dims));
}

int serve_take_up(struct serve *serve)
{
	struct rdmatensor_lasting_query query = { .size = sizeof(query) };
	uint64_t nr = 0, all = (uint64_t)serve->steps * serve_published(serve);
	struct sorted *sorted = sort_by_name(serve->model.all);
	int err;

	if (!sorted)
		return failed("%s: out of memory", serve->path);
	while (!(err = rdmatensor_lasting_query(serve->server.rt, &query)))
		nr += is_ours(serve, sorted, &query);
	free(sorted);
	if (err != -ENOENT)
		return failed("keeper %s: what it keeps: %s", serve->keep, strerror(-err));
	if (nr == all)
		return EXIT_OK;
	if (serve->by_manager)
		return stored_drop(serve) ?:
		       failed("what systemd keeps has only %" PRIu64 " of %" PRIu64 " tensors, and is freed now: start the service again",
			      nr, all);
	return failed("keeper %s: only %" PRIu64 " of %" PRIu64 " tensors are there: end it with `rdmatensor domain end %s`, and serve again",
		      serve->keep, nr, all, serve->keep);
}

int serve_open_domain(struct serve *serve)
{
	struct rdmatensor_domain_query query = { .size = sizeof(query) };
	int err;

	if (!serve->keep)
		return EXIT_OK;
	err = label_model(serve);
	if (!err && serve->by_manager)
		return stored_take(serve);
	if (!err)
		err = keeper_get(serve->keep, &serve->domain, serve->kept);
	if (err)
		return err;
	if (serve->domain < 0)
		return keeper_begin(serve->keep, &serve->keeper);
	if (strcmp(serve->kept, serve->label))
		return failed("keeper %s: it keeps %.*s, of which the file, the time of its last change, the steps or --filter are others: end it with `rdmatensor domain end %s`, or give another socket",
			      serve->keep, (int)strcspn(serve->kept, "\n"), serve->kept,
			      serve->keep);
	if (!rdmatensor_domain_query(serve->domain, &query) &&
	    query.flags & RDMATENSOR_DOMAIN_DEVICE_GONE)
		return failed("keeper %s: the RDMA device of what it keeps was removed: end it with `rdmatensor domain end %s`, and start again when the device is back",
			      serve->keep, serve->keep);
	rdmatensor_start_domain(&serve->server.options.start, serve->domain);
	return EXIT_OK;
}

int serve_create_domain(struct serve *serve)
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

int serve_leave_domain(struct serve *serve)
{
	int err;

	if (!serve->keep || serve->domain >= 0)
		return EXIT_OK;
	err = serve->by_manager ? stored_put(serve) :
	      keeper_keep(&serve->keeper, serve->own, serve->label);
	close(serve->own);
	return err;
}
