// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gather: the options.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sides.h"
#include "tool/cmd/commands.h"
#include "tool/common/context_options.h"
#include "tool/common/message.h"
#include "tool/common/options.h"

static int take_rows(void *own, const char *text)
{
	struct gathering *gathering = own;
	char *colon, *end = NULL;

	errno = 0;
	gathering->row_start = strtoimax(text, &colon, 10);
	if (*colon == ':')
		gathering->row_end = strtoimax(colon + 1, &end, 10);
	if (errno || colon == text || !end || end == colon + 1 || *end ||
	    gathering->row_start < 0 || gathering->row_start >= gathering->row_end)
		return misused("--rows %s is refused: give START:END in digits alone, with START before END",
			       text);
	return EXIT_OK;
}

static int take_kind(void *own, const char *kind)
{
	static const char *const kinds[] = {
		[KIND_RANDOM] = "random", [KIND_SORTED] = "sorted", [KIND_POWER] = "power",
		[KIND_APART] = "apart",
	};
	struct gathering *gathering = own;
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i])) {
			gathering->kind = (enum gather_kind)i;
			return EXIT_OK;
		}
	return misused("--kind %s is refused: give random, sorted, power or apart", kind);
}

static int take_table(void *own, const char *name)
{
	struct gathering *gathering = own;

	gathering->table = name;
	return *name && strlen(name) <= RDMATENSOR_NAME_MAX ? EXIT_OK :
	       misused("--table is refused: give 1 to %d bytes", RDMATENSOR_NAME_MAX);
}

static int serve(struct gathering *gathering)
{
	if (!gathering->row_end)
		return misused("say which rows: --rows START:END");
	if (!gathering->row_bytes || gathering->row_bytes % 8)
		return misused("--row-bytes %" PRIu64 " is refused: give a multiple of 8 from 8 to %d",
			       gathering->row_bytes, RDMATENSOR_ROW_MAX);
	return gather_serve(gathering);
}

static int measure(struct gathering *gathering)
{
	if (gathering->row_end)
		return misused("--rows is what a --server exports; a client gathers rows of all PEERs");
	if (gathering->server.exit_after)
		return misused("--exit-after is of a --server; a client ends by --iters or --duration");
	if (gathering->nr_peers > RDMATENSOR_OWNERS_MAX)
		return misused("%d PEERs are enough", RDMATENSOR_OWNERS_MAX);
	/* 0 is the default, too */
	if (!gathering->count && !gathering->duration_ns)
		gathering->duration_ns = UINT64_C(2000000000);
	return gather_measure(gathering);
}

int cmd_gather(int argc, char **argv)
{
	struct gathering gathering = { 0 };
	bool server = false;
	const struct option_place places[] = {
		{ .id = OPT_SERVER, .flag = &server },
		{ .id = OPT_ROWS, .own = &gathering, .take = take_rows },
		{ .id = OPT_ROW_BYTES, .size = &gathering.row_bytes },
		{ .id = OPT_EXIT_AFTER, .number = &gathering.server.exit_after },
		{ .id = OPT_TABLE, .own = &gathering, .take = take_table },
		{ .id = OPT_KIND, .own = &gathering, .take = take_kind },
		{ .id = OPT_IDS, .number = &gathering.ids },
		{ .id = OPT_IN_FLIGHT, .number = &gathering.depth },
		{ .id = OPT_ITERS, .number = &gathering.count },
		{ .id = OPT_DURATION, .ns = &gathering.duration_ns },
		{ .id = OPT_TIMEOUT, .ns = &gathering.timeout_ns },
	};
	int err;

	if (!context_options_parse(COMMAND_GATHER, &gathering.server.options, places,
				   NR_PLACES(places), argc, argv, &err))
		return err;
	if (server != (optind == argc))
		return misused("give either --server or the PEERs");
	gathering.peers = argv + optind;
	gathering.nr_peers = argc - optind;
	return server ? serve(&gathering) : measure(&gathering);
}
