// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * show: the contexts of this machine with their channels, domains, pools and requests, over netlink;
 * and the parameters that new ones begin with, which are the module's, in sysfs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/netlink.h>
#include <rdmatensor/params.h>

#include "tool/cmd/commands.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"
#include "tool/common/numbers.h"
#include "tool/common/options.h"
#include "tool/common/output.h"
#include "tool/common/params.h"
#include "tool/common/text.h"

static struct json_object *number_or_text(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	return *text && !*end ? json_object_new_uint64(value) : json_object_new_string(text);
}

static struct json_object *describe(const struct param *param, const char *value)
{
	struct json_object *one = json_object_new_object();
	char text[64] = "";

	add_string(one, "name", param->name);
	json_object_object_add(one, "value", value ? number_or_text(value) : NULL);
	json_object_object_add(one, "default",
			       number_or_text(param_value_text(param->value, text,
							       sizeof(text))));
	add_number(one, "least", param->least);
	add_number(one, "most", param->most);
	json_object_object_add(one, "power_of_two",
			       json_object_new_boolean(param->power_of_two));
	json_object_object_add(one, "auto",
			       json_object_new_boolean(param->value == RDMATENSOR_PARAM_AUTO));
	add_string(one, "unit", param->unit);
	if (*param->variable)
		add_string(one, "variable", param->variable);
	if (param->other)
		add_string(one, "other_variable", param->other);
	add_string(one, "help", param->help);
	return one;
}

/* Indented by @indent, in lines of at most 80 columns */
static void print_wrapped(const char *text, int indent)
{
	int column = 0;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (column && column + 1 + word > 80) {
			putchar('\n');
			column = 0;
		}
		column += printf("%*s%.*s", column ? 1 : indent, "", word, text);
		text += word + (text[word] == ' ');
	}
	putchar('\n');
}

static void print_param(const struct param *param, const char *value, bool verbose)
{
	char range[64], standard[16], line[512];
	bool chosen = param->value == RDMATENSOR_PARAM_AUTO;

	param_value_text(param->value, standard, sizeof(standard));
	snprintf(range, sizeof(range), "%s%" PRIu32 "..%" PRIu32 "%s", chosen ? "auto, " : "",
		 param->least, param->most, param->power_of_two ? " 2^n" : "");
	printf("%-15s %-10s %-10s %-21s %s\n", param->name, value ? value : "-", standard,
	       range, param->unit);
	if (!verbose)
		return;
	print_wrapped(param->help, 4);
	if (!*param->variable)
		return;
	snprintf(line, sizeof(line), "%s%s%s", param->variable, param->other ? ", " : "",
		 param->other ? param->other : "");
	print_wrapped(line, 4);
}

static bool named(const struct param *param, char *const *names, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(param->name, names[i]))
			return true;
	return !nr;
}

/* The one parameter that is not a number; START has no field of this name */
static void show_device(const char *device, struct json_object *list)
{
	struct json_object *one;

	if (!list) {
		printf("%-15s ", "device");
		put_cell(stdout, *device ? device : "-", *device ? strlen(device) : 1, 10);
		printf(" %-10s %-21s %s\n", "-", "an RDMA device", "name");
		return;
	}
	one = json_object_new_object();
	add_string(one, "name", "device");
	json_object_object_add(one, "value", *device ? json_object_new_string(device) : NULL);
	add_string(one, "variable", "RDMA_DEVICE");
	add_string(one, "help", "RDMA device of contexts that name none; none: the only active one");
	json_object_array_add(list, one);
}

static void tell_device(const char *device)
{
	printf("\nThe RDMA device is ");
	put_string(stdout, device);
	printf(" (parameter device).\n");
}

static int value_failed(const char *name, int err, struct json_object *list)
{
	json_object_put(list);
	return failed("show %s: %s/%s: %s", name, params_dir, name, strerror(-err));
}

static int show_params(char *const *names, int nr, bool json, bool verbose)
{
	struct json_object *list = json ? json_object_new_array() : NULL;
	char value[64] = "", device[64] = "";
	int err = param_read("device", device, sizeof(device));
	bool loaded = err != -ENOENT;
	size_t i;

	for (i = 0; (int)i < nr; i++)
		if (!param_find(names[i]) && strcmp(names[i], "device")) {
			json_object_put(list);
			return misused("there is no parameter \"%s\"; rdmatensor show params lists them",
				       names[i]);
		}
	if (err && loaded)
		return value_failed("device", err, list);
	if (!json)
		printf("%-15s %-10s %-10s %-21s %s\n", "PARAMETER", "VALUE", "DEFAULT", "RANGE",
		       "UNIT");
	for (i = 0; (int)i < nr; i++)
		if (!strcmp(names[i], "device"))
			show_device(device, list);
	for (i = 0; i < nr_params; i++) {
		const char *at;

		if (!named(&params[i], names, nr))
			continue;
		err = param_read(params[i].name, value, sizeof(value));
		/* The module does not have it, or is not loaded */
		if (err && err != -ENOENT)
			return value_failed(params[i].name, err, list);
		at = err ? NULL : value;
		if (json)
			json_object_array_add(list, describe(&params[i], at));
		else
			print_param(&params[i], at, verbose);
	}
	if (json) {
		print_json(list);
		return EXIT_OK;
	}
	if (!loaded)
		printf("\nThe module is not loaded: after modprobe rdmatensor VALUE has the values that apply.\n");
	else if (device[0] && !nr)
		tell_device(device);
	return EXIT_OK;
}

/**
 * struct column - of a table
 * @title: its head
 * @key: in the JSON
 * @width: columns of a terminal; 0: the last one, which is as long as it is
 */
struct column {
	const char *title;
	const char *key;
	int width;
};

static const struct table {
	const char *name;
	int cmd;
	struct column columns[10];
} tables[] = {
	{ "contexts", RDMATENSOR_NL_CMD_CONTEXT_GET, {
		{ "CONTEXT", "context", 7 }, { "PID", "pid", 7 }, { "WORKER", "worker", 17 },
		{ "DEVICE", "device", 8 }, { "PORT", "port", 4 }, { "CHANNELS", "channels", 8 },
		{ "POOLS", "pools", 5 }, { "GID", "gid", 0 },
	} },
	{ "channels", RDMATENSOR_NL_CMD_CHANNEL_GET, {
		{ "CONTEXT", "context", 7 }, { "CHANNEL", "channel", 7 }, { "STATE", "state", 10 },
		{ "PEER", "peer", 20 }, { "REQ", "requests", 4 },
		{ "RESP", "responses", 4 }, { "ADDRESS", "address", 0 },
	} },
	{ "domains", RDMATENSOR_NL_CMD_DOMAIN_GET, {
		{ "DOMAIN", "domain", 6 }, { "DEVICE", "device", 8 },
		{ "CONTEXTS", "contexts", 8 }, { "POOLS", "pools", 5 },
		{ "BYTES", "bytes", 15 }, { "LASTING", "lasting", 7 },
		{ "MR_MODE", "mr_mode", 7 }, { "MADE BY", "worker", 0 },
	} },
	{ "pools", RDMATENSOR_NL_CMD_POOL_GET, {
		{ "CONTEXT", "context", 7 }, { "DOMAIN", "domain", 6 }, { "POOL", "pool", 7 },
		{ "WORKER", "worker", 13 },
		{ "BYTES", "bytes", 15 }, { "MEMORY", "memory", 7 }, { "PEERS", "peers", 5 },
		{ "SEGMENTS", "segments", 8 }, { "USES", "uses", 0 },
	} },
	{ "requests", RDMATENSOR_NL_CMD_REQUEST_GET, {
		{ "CONTEXT", "context", 7 }, { "PEER", "peer", 16 }, { "REQ", "request", 5 },
		{ "STATE", "state", 13 }, { "AGE_S", "age_ns", 9 }, { "STEP", "step", 6 },
		{ "TENSOR", "tensor", 0 },
	} },
	{ "tensors", RDMATENSOR_NL_CMD_TENSOR_GET, {
		{ "CONTEXT", "context", 7 }, { "DTYPE", "dtype", 10 }, { "SHAPE", "shape", 19 },
		{ "BYTES", "bytes", 14 }, { "STEP", "step", 6 }, { "USES", "uses", 5 },
		{ "NAME", "tensor", 0 },
	} },
	{ "tables", RDMATENSOR_NL_CMD_TABLE_GET, {
		{ "CONTEXT", "context", 7 }, { "TABLE", "table", 5 },
		{ "ROW_START", "row_start", 11 }, { "ROW_END", "row_end", 11 },
		{ "BYTES", "row_bytes", 7 },
		{ "OWNERS", "owners", 6 }, { "LANES", "lanes_up", 5 }, { "NAME", "tensor", 0 },
	} },
};

static void print_cell(struct json_object *row, const struct column *column)
{
	struct json_object *cell;
	const char *text = "-";
	char seconds[32];
	size_t bytes;

	if (json_object_object_get_ex(row, column->key, &cell))
		text = json_object_is_type(cell, json_type_array) ?
		       json_object_to_json_string_ext(cell, JSON_C_TO_STRING_PLAIN) :
		       json_object_get_string(cell);
	else
		cell = NULL;
	if (cell && !strcmp(column->key, "age_ns")) {
		snprintf(seconds, sizeof(seconds), "%.3f",
			 (double)json_object_get_uint64(cell) / 1e9);
		text = seconds;
	}
	bytes = json_object_is_type(cell, json_type_string) ?
		(size_t)json_object_get_string_len(cell) : strlen(text);
	put_cell(stdout, text, bytes, (size_t)column->width);
	putchar(column[1].title ? ' ' : '\n');
}

static void print_table(const struct table *table, struct json_object *list)
{
	const struct column *column;
	size_t i;

	for (column = table->columns; column->title; column++)
		printf("%-*s%s", column->width, column->title, column[1].title ? " " : "\n");
	for (i = 0; i < json_object_array_length(list); i++)
		for (column = table->columns; column->title; column++)
			print_cell(json_object_array_get_idx(list, i), column);
}

static int show_table(const struct table *table, char *const *args, int nr, bool json)
{
	struct json_object *list;
	int64_t context = 0;
	struct dump_extent extent;
	int err;

	if (nr && table->cmd == RDMATENSOR_NL_CMD_DOMAIN_GET)
		return misused("domains are no context's: show all of them");
	if (nr > 1)
		return misused("one CONTEXT is enough");
	if (nr) {
		err = parse_number("CONTEXT", args[0], 1, INT32_MAX, &context);
		if (!err)
			err = look_for_context((uint32_t)context);
		if (err)
			return err;
	}
	err = dump_objects(table->cmd, (uint32_t)context, &list, &extent);
	if (err)
		return err;
	if (json) {
		print_json(list);
	} else {
		print_table(table, list);
		json_object_put(list);
	}
	if (extent.own)
		warned("this is what this user opened in this PID namespace: CAP_NET_ADMIN over this network namespace shows all");
	return extent.whole ? EXIT_OK :
	       failed("show %s: contexts, channels or other objects came and went during each attempt: some may be missing or listed twice: try again",
		      table->name);
}

int cmd_show(int argc, char **argv)
{
	bool json = false, verbose = false;
	const struct option_place places[] = {
		{ .id = OPT_JSON, .flag = &json },
		{ .id = OPT_VERBOSE, .flag = &verbose },
	};
	const char *what;
	size_t i;
	int err;

	if (!options_parse(COMMAND_SHOW, places, NR_PLACES(places), argc, argv, &err))
		return err;
	if (optind == argc)
		return misused("say what to show: contexts, channels, domains, pools, requests, tensors, tables or params");
	what = argv[optind++];
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(what, tables[i].name))
			return show_table(&tables[i], argv + optind, argc - optind, json);
	if (strcmp(what, "params"))
		return misused("there is no \"%s\" to show: contexts, channels, domains, pools, requests, tensors, tables or params",
			       what);
	return show_params(argv + optind, argc - optind, json, verbose);
}
