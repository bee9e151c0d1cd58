// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * info: what this machine has, and with a PEER, whether it can be reached.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rdmatensor/params.h>

#include "tool/cmd/commands.h"
#include "tool/common/context.h"
#include "tool/common/context_options.h"
#include "tool/common/gid.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/output.h"

static const char *const states[] = {
	[RDMATENSOR_CHANNEL_CONNECTING] = "connecting",
	[RDMATENSOR_CHANNEL_UP] = "up",
	[RDMATENSOR_CHANNEL_CLOSING] = "closing",
	[RDMATENSOR_CHANNEL_DOWN] = "down",
};

static const char *state_name(uint32_t state)
{
	return state < sizeof(states) / sizeof(states[0]) ? states[state] : "?";
}

static struct json_object *describe(const struct rdmatensor_query *query,
				    const char *choice)
{
	struct json_object *root = json_object_new_object();
	bool started = query->flags & RDMATENSOR_QUERY_STARTED;
	char text[128];

	add_string(root, "version", rdmatensor_version());
	add_number(root, "abi_version", query->abi_version);
	json_object_object_add(root, "started",
			       json_object_new_boolean(started));
	if (!started)
		return root;
	add_string(root, "device", query->device_name);
	add_number(root, "port", query->port);
	add_number(root, "gid_index", query->gid_index);
	add_string(root, "gid", gid_text(query->gid, text, sizeof(text)));
	add_number(root, "mtu", query->mtu);
	add_number(root, "listen_port", query->listen_port);
	add_number(root, "ring_entries", query->ring_entries);
	add_number(root, "max_segment_bytes", query->max_segment_bytes);
	snprintf(text, sizeof(text), "%016" PRIx64,
		 (uint64_t)query->incarnation);
	add_string(root, "incarnation", text);
	add_string(root, "choice", choice);
	return root;
}

/* The parameters as START has set them */
static struct json_object *parameters(const struct rdmatensor_start *start)
{
	struct json_object *object = json_object_new_object();

	/* The path decides these later */
#define FIELD(_name, _value, _least, _most, _kind, _set, ...) \
	if (start->set & (_set)) \
		add_number(object, #_name, start->_name); \
	else \
		add_string(object, #_name, "auto");
	RDMATENSOR_PARAMS(FIELD)
	add_number(object, "validate", !!(start->flags & RDMATENSOR_START_VALIDATE));
	return object;
}

/* NULL: with a message */
static struct json_object *channels(struct rdmatensor *rt)
{
	struct rdmatensor_channel_query query = {
		.flags = RDMATENSOR_CHANNEL_NEXT,
	};
	struct json_object *list = json_object_new_array();
	struct json_object *one;
	char text[128];
	int err;

	while (!(err = rdmatensor_channel_query(rt, &query))) {
		one = json_object_new_object();
		add_number(one, "channel", query.channel);
		add_string(one, "state", state_name(query.state));
		add_string(one, "worker", query.worker);
		add_string(one, "address",
			   rdmatensor_format_addr(query.addr, text,
						  sizeof(text)));
		snprintf(text, sizeof(text), "%016" PRIx64,
			 (uint64_t)query.incarnation);
		add_string(one, "incarnation", text);
		add_number(one, "lanes", query.lanes);
		add_number(one, "msg_slots", query.msg_slots);
		add_number(one, "msg_slot_bytes", query.msg_slot_bytes);
		add_number(one, "ack_batch", query.ack_batch);
		add_number(one, "max_requests", query.max_requests);
		add_number(one, "requests", query.requests);
		add_number(one, "responses", query.responses);
		json_object_array_add(list, one);
	}
	if (err == -ENOENT)
		return list;
	failed("query channels: %s", strerror(-err));
	json_object_put(list);
	return NULL;
}

/* The same tree as text: a line for each value, nested ones indented */
static void print_text(struct json_object *object, int indent)
{
	json_object_object_foreach(object, key, value) {
		size_t i;

		if (json_object_is_type(value, json_type_object)) {
			printf("%*s%s:\n", indent, "", key);
			print_text(value, indent + 2);
		} else if (json_object_is_type(value, json_type_array)) {
			for (i = 0; i < json_object_array_length(value); i++) {
				printf("%*s%s:\n", indent, "", key);
				print_text(json_object_array_get_idx(value, i),
					   indent + 2);
			}
		} else {
			printf("%*s%s: ", indent, "", key);
			put_member(stdout, object, key);
			putchar('\n');
		}
	}
}

static int show(struct rdmatensor *rt, const struct context_options *options)
{
	uint64_t counters[RDMATENSOR_STAT_NR];
	struct json_object *root, *list, *stats;
	struct rdmatensor_query query;
	int err;

	err = rdmatensor_query(rt, &query);
	if (err)
		return failed("query: %s", strerror(-err));
	root = describe(&query, options->start.cause);
	if (query.flags & RDMATENSOR_QUERY_STARTED) {
		json_object_object_add(root, "parameters", parameters(&options->start));
		list = channels(rt);
		json_object_object_add(root, "channels", list);
		if (!list || context_counters(rt, counters)) {
			json_object_put(root);
			return EXIT_FAILED;
		}
		stats = json_object_new_object();
		add_counters(stats, counters, NULL);
		json_object_object_add(root, "counters", stats);
	}
	if (options->json) {
		print_json(root);
	} else {
		print_text(root, 0);
		json_object_put(root);
	}
	return EXIT_OK;
}

int cmd_info(int argc, char **argv)
{
	struct context_options options;
	const char *worker = NULL;
	bool start = false;
	const struct option_place places[] = {
		{ .id = OPT_START, .flag = &start },
		{ .id = OPT_PEER_WORKER, .text = &worker },
	};
	struct rdmatensor *rt;
	uint32_t channel;
	int err;

	if (!context_options_parse(COMMAND_INFO, &options, places,
				   NR_PLACES(places), argc, argv, &err))
		return err;
	if (argc - optind > 1)
		return misused("one PEER is enough");
	if (start || options.listen || optind < argc)
		err = context_start(&options, &rt);
	else
		err = context_open(&options, &rt);
	if (err)
		return err;
	/* Shows what is there now: does not wait for the peer */
	options.wait_ns = 0;
	if (optind < argc)
		err = context_connect(rt, &options, argv[optind], worker, &channel);
	if (!err)
		err = show(rt, &options);
	rdmatensor_close(rt);
	return err;
}
