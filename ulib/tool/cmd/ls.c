// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ls: what a peer offers, page by page, in memory that no peer can write.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#include "tool/cmd/commands.h"
#include "tool/common/context.h"
#include "tool/common/filter.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/output.h"
#include "tool/common/text.h"

#define PAGE_BYTES (256u << 10)

/**
 * struct listing - one run of the command
 * @rt: the context
 * @peer: as it was written
 * @prefix: of the names
 * @filter: patterns, of which one has to match
 * @channel: to the peer
 * @pool: where the pages go,
 * @offset: there
 * @timeout_ns: of all of it, from when there is a channel; 0: none
 * @json: the report; NULL: lines are printed
 */
struct listing {
	struct rdmatensor *rt;
	const char *peer;
	const char *prefix;
	struct filter filter;
	uint32_t channel;
	struct rdmatensor_pool pool;
	uint64_t offset;
	uint64_t timeout_ns;
	struct json_object *json;
};

static void shape_text(const struct rdmatensor_list_entry *entry, char *text, size_t len)
{
	const uint64_t *dims = rdmatensor_list_dims(entry);
	size_t at = 0;
	unsigned int i;

	for (i = 0; i < entry->ndims && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, "%s%" PRIu64, i ? "," : "[", dims[i]);
	if (at < len)
		snprintf(text + at, len - at, entry->ndims ? "]" : "[]");
}

static void print_entry(const struct rdmatensor_list_entry *entry)
{
	char shape[RDMATENSOR_DIMS_MAX * 22 + 2] = "-", uses[16] = "-", step[24];

	if (!entry->status)
		shape_text(entry, shape, sizeof(shape));
	if (entry->uses)
		snprintf(uses, sizeof(uses), "%" PRIu32, entry->uses);
	snprintf(step, sizeof(step), "%" PRId64, (int64_t)entry->step_id);
	printf("%-10s %-19s %14" PRIu64 " %6s %5s ",
	       entry->status ? "-" : rdmatensor_data_type_name(entry->data_type), shape,
	       (uint64_t)entry->tensor_bytes, step, uses);
	put_text(stdout, rdmatensor_list_name(entry), entry->name_len);
	if (entry->status)
		printf(" (failed: %s)", strerror(-entry->status));
	puts(entry->flags & RDMATENSOR_LIST_DEAD ? " (dead)" : "");
}

static void add_entry(struct json_object *list, const struct rdmatensor_list_entry *entry)
{
	struct json_object *one = json_object_new_object(), *shape;
	const uint64_t *dims = rdmatensor_list_dims(entry);
	unsigned int i;

	json_object_object_add(one, "name", json_object_new_string_len(rdmatensor_list_name(entry),
								       entry->name_len));
	json_object_object_add(one, "step", json_object_new_int64(entry->step_id));
	if (entry->status) {
		json_object_object_add(one, "error", json_object_new_int64(entry->status));
		add_string(one, "text", strerror(-entry->status));
	} else {
		shape = json_object_new_array();
		for (i = 0; i < entry->ndims; i++)
			json_object_array_add(shape, json_object_new_uint64(dims[i]));
		add_string(one, "dtype", rdmatensor_data_type_name(entry->data_type));
		json_object_object_add(one, "shape", shape);
		add_number(one, "bytes", entry->tensor_bytes);
		json_object_object_add(one, "dead", json_object_new_boolean(entry->flags &
									    RDMATENSOR_LIST_DEAD));
	}
	add_number(one, "uses", entry->uses);
	json_object_array_add(list, one);
}

static void tell_entry(const struct listing *listing, const struct rdmatensor_list_entry *entry)
{
	if (listing->json)
		add_entry(listing->json, entry);
	else
		print_entry(entry);
}

/* A name may have any bytes, and what is behind a zero no pattern can mean */
static bool is_wanted(const struct listing *listing, const struct rdmatensor_list_entry *entry)
{
	char name[RDMATENSOR_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", (int)entry->name_len, rdmatensor_list_name(entry));
	return filter_matches(&listing->filter, name);
}

static const char *remedy(int err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return ": the peer's module or this host's has no lists: install a newer one there";
	case -ETIMEDOUT:
		return ": not all of it came within --timeout";
	case -ECONNRESET:
	case -ESHUTDOWN:
	case -ENODEV:
	case -EPROTO:
	case -ENOTCONN:
		return ": see the peer's log, and list again";
	default:
		return "";
	}
}

static void print_header(void)
{
	printf("%-10s %-19s %14s %6s %5s %s\n", "DTYPE", "SHAPE", "BYTES", "STEP", "USES", "NAME");
}

static int page_failed(const struct listing *listing, const struct rdmatensor_cqe *cqe, int err)
{
	char text[RDMATENSOR_STATUS_ROOM];

	return failed("list tensors of %s: %s%s", listing->peer,
		      cqe->type ? rdmatensor_status_text(listing->rt, cqe, text, sizeof(text)) :
				  strerror(-err), remedy(err));
}

static int list(struct listing *listing)
{
	const struct rdmatensor_list_entry *entry;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	const void *page = (char *)listing->pool.base + listing->offset;
	uint64_t deadline_ns = listing->timeout_ns ? rdmatensor_now_ns() + listing->timeout_ns : 0;
	uint64_t cursor = 0;
	int err;

	do {
		memset(&cqe, 0, sizeof(cqe));
		rdmatensor_prep_list(&op, listing->channel, listing->prefix, listing->pool.id,
				     listing->offset, PAGE_BYTES, cursor, deadline_ns, 0);
		err = rdmatensor_run(listing->rt, &op, &cqe);
		if (err)
			return page_failed(listing, &cqe, err);
		if (!cursor && !listing->json)
			print_header();
		for (entry = NULL; (entry = rdmatensor_list_next(page, cqe.tensor_bytes, entry));)
			if (is_wanted(listing, entry))
				tell_entry(listing, entry);
		cursor = rdmatensor_list_cursor(&cqe);
	} while (cursor);
	return EXIT_OK;
}

static int connect_and_list(struct listing *listing, struct context_options *options,
			    const char *worker)
{
	int err;

	err = context_start(options, &listing->rt);
	if (err)
		return err;
	err = context_connect(listing->rt, options, listing->peer, worker, &listing->channel);
	if (err)
		goto out_close;
	err = rdmatensor_pool_create_peers(listing->rt, PAGE_BYTES, RDMATENSOR_POOL_PEERS_NONE,
					   &listing->pool);
	if (!err)
		err = rdmatensor_pool_alloc(listing->rt, &listing->pool, PAGE_BYTES,
					    &listing->offset);
	if (err) {
		err = failed("list tensors of %s: %u bytes of memory for it: %s", listing->peer,
			     PAGE_BYTES, strerror(-err));
		goto out_close;
	}
	err = list(listing);
out_close:
	rdmatensor_close(listing->rt);
	return err;
}

int cmd_ls(int argc, char **argv)
{
	struct context_options options;
	struct listing listing = { .prefix = "" };
	const char *worker = NULL;
	const struct option_place places[] = {
		{ .id = OPT_PEER_WORKER, .text = &worker },
		{ .id = OPT_TIMEOUT, .ns = &listing.timeout_ns },
		{ .id = OPT_FILTER, .own = &listing.filter, .take = filter_take },
	};
	int err;

	if (!context_options_parse(COMMAND_LS, &options, places, NR_PLACES(places), argc, argv,
				   &err))
		return err;
	if (argc - optind < 1 || argc - optind > 2)
		return misused("say of which PEER, and no more than one PREFIX");
	listing.peer = argv[optind];
	if (argc - optind > 1)
		listing.prefix = argv[optind + 1];
	if (strlen(listing.prefix) > RDMATENSOR_NAME_MAX)
		return misused("PREFIX is refused: no name is longer than %d bytes",
			       RDMATENSOR_NAME_MAX);
	if (options.json)
		listing.json = json_object_new_array();
	err = connect_and_list(&listing, &options, worker);
	/* What came before an error is a part only, which lines show and JSON would not */
	if (options.json && !err)
		print_json(listing.json);
	else
		json_object_put(listing.json);
	return err;
}
