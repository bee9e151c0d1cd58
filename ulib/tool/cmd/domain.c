// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * domain: shows or ends a domain that `serve --keep` has left to a keeper.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "tool/cmd/commands.h"
#include "tool/common/json.h"
#include "tool/common/keeper.h"
#include "tool/common/manager.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/output.h"
#include "tool/common/text.h"

static int nobody(const char *path)
{
	return failed("keeper %s: nobody keeps a domain there: `rdmatensor serve --keep %s` begins",
		      path, path);
}

static void print(const char *path, const char *label,
		  const struct rdmatensor_domain_query *query)
{
	printf("%-10s ", "SOCKET");
	put_string(stdout, path);
	printf("\n%-10s ", "FILE");
	put_string(stdout, label);
	printf("\n%-10s ", "DEVICE");
	put_string(stdout, query->device_name);
	printf("%s\n%-10s %" PRIu32 "\n%-10s %" PRIu32 " of %" PRIu32 "\n%-10s %" PRIu64 "\n%-10s %" PRIu64 "\n",
	       query->flags & RDMATENSOR_DOMAIN_DEVICE_GONE ? " (removed)" : "",
	       "CONTEXTS", query->contexts, "POOLS", query->pools, query->max_pools,
	       "BYTES", (uint64_t)query->pool_bytes, "TENSORS", (uint64_t)query->lasting);
}

static void print_as_json(const char *path, const char *label,
			  const struct rdmatensor_domain_query *query)
{
	struct json_object *root = json_object_new_object();

	add_string(root, "socket", path);
	add_string(root, "file", label);
	add_string(root, "device", query->device_name);
	json_object_object_add(root, "device_gone",
			       json_object_new_boolean(query->flags &
						       RDMATENSOR_DOMAIN_DEVICE_GONE));
	add_number(root, "contexts", query->contexts);
	add_number(root, "pools", query->pools);
	add_number(root, "max_pools", query->max_pools);
	add_number(root, "bytes", query->pool_bytes);
	add_number(root, "tensors", query->lasting);
	print_json(root);
}

static int show(const char *path, bool json)
{
	struct rdmatensor_domain_query query = { .size = sizeof(query) };
	char label[KEEPER_LABEL_MAX];
	int fd, err;

	err = keeper_get(path, &fd, label);
	if (err)
		return err;
	if (fd < 0)
		return nobody(path);
	err = rdmatensor_domain_query(fd, &query);
	close(fd);
	if (err)
		return failed("keeper %s: what it keeps is no domain: %s", path, strerror(-err));
	/* The file's name; what follows tells one content from another */
	label[strcspn(label, "\n")] = '\0';
	if (json)
		print_as_json(path, label, &query);
	else
		print(path, label, &query);
	return output_arrived();
}

static int end(const char *path)
{
	bool there;
	int err;

	err = keeper_end(path, &there);
	return err || there ? err : nobody(path);
}

int cmd_domain(int argc, char **argv)
{
	bool json = false;
	const struct option_place places[] = {
		{ .id = OPT_JSON, .flag = &json },
	};
	const char *what;
	int err;

	if (!options_parse(COMMAND_DOMAIN, places, NR_PLACES(places), argc, argv, &err))
		return err;
	if (argc - optind != 2)
		return misused("say what to do, show or end, and with which SOCKET");
	what = argv[optind];
	if (!*argv[optind + 1])
		return misused("SOCKET is empty: give the path of `serve --keep SOCKET`");
	if (!strcmp(argv[optind + 1], KEEP_BY_MANAGER))
		return misused("what systemd keeps ends with its service: `systemctl stop`");
	if (!strcmp(what, "show"))
		return show(argv[optind + 1], json);
	if (!strcmp(what, "end"))
		return end(argv[optind + 1]);
	return misused("there is no \"%s\" for a domain: show or end", what);
}
