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
#include "tool/common/message.h"
#include "tool/common/options.h"

static void help(void)
{
	printf("Usage: rdmatensor gather --server --rows START:END [OPTION]...\n"
	       "       rdmatensor gather [OPTION]... PEER...\n"
	       "Measure how fast rows of a table are gathered that is partitioned over the PEERs,\n"
	       "each of which is a server that exports some of the rows. Every row of the last\n"
	       "gathers is compared.\n"
	       "\n"
	       "      --server             be a side that exports rows\n"
	       "      --rows START:END     server: which ones, without END\n"
	       "      --row-bytes N        server: of a row, a multiple of 8 (default 512)\n"
	       "      --exit-after N       server: end when N channels have gone down\n"
	       "      --table NAME         of the table (default rdmatensor.gather)\n"
	       "  -k, --kind KIND          ids: random, sorted, power: few rows are wanted often,\n"
	       "                           or apart: each row once, and none that are neighbours\n"
	       "                           (default random)\n"
	       "  -r, --ids N              of one gather (default 100000)\n"
	       "  -q, --in-flight N        gathers at the same time (default 2)\n"
	       "  -n, --iters N            gathers to measure\n"
	       "  -D, --duration SEC       or time to measure for (default 2)\n"
	       "  -t, --timeout SEC        bound on each gather (default 0: none)\n"
	       "      --wait SEC           wait so long for a PEER that is not up yet, 0: not at all\n"
	       "                           (default: handshake_ms, 10)\n"
	       "%s", common_help);
}

static int take_rows(struct gathering *gathering, const char *text)
{
	char *colon, *end = NULL;

	errno = 0;
	gathering->row_start = strtoimax(text, &colon, 10);
	if (*colon == ':')
		gathering->row_end = strtoimax(colon + 1, &end, 10);
	if (errno || colon == text || !end || end == colon + 1 || *end ||
	    gathering->row_start < 0 || gathering->row_start >= gathering->row_end)
		return misused("--rows %s is refused: give START:END, with START before END", text);
	return EXIT_OK;
}

static int take_kind(struct gathering *gathering, const char *kind)
{
	static const char *const kinds[] = {
		[KIND_RANDOM] = "random", [KIND_SORTED] = "sorted", [KIND_POWER] = "power",
		[KIND_APART] = "apart",
	};
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i])) {
			gathering->kind = (enum gather_kind)i;
			return EXIT_OK;
		}
	return misused("--kind %s is refused: give random, sorted, power or apart", kind);
}

enum { OPT_SERVER = OPT_OWN, OPT_ROWS, OPT_ROW_BYTES, OPT_EXIT_AFTER, OPT_TABLE };

static const struct option options[] = {
	COMMON_LONG,
	{ "server", no_argument, NULL, OPT_SERVER },
	{ "rows", required_argument, NULL, OPT_ROWS },
	{ "row-bytes", required_argument, NULL, OPT_ROW_BYTES },
	{ "exit-after", required_argument, NULL, OPT_EXIT_AFTER },
	{ "table", required_argument, NULL, OPT_TABLE },
	{ "kind", required_argument, NULL, 'k' },
	{ "ids", required_argument, NULL, 'r' },
	{ "in-flight", required_argument, NULL, 'q' },
	{ "iters", required_argument, NULL, 'n' },
	{ "duration", required_argument, NULL, 'D' },
	{ "timeout", required_argument, NULL, 't' },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ 0 }
};

static int take_option(struct gathering *gathering, int opt)
{
	switch (opt) {
	case OPT_ROWS:
		return take_rows(gathering, optarg);
	case OPT_ROW_BYTES:
		return parse_size("--row-bytes", optarg, RDMATENSOR_ROW_MAX,
				  &gathering->row_bytes);
	case OPT_EXIT_AFTER:
		return parse_number("--exit-after", optarg, 1, INT32_MAX,
				    &gathering->server.exit_after);
	case OPT_TABLE:
		gathering->table = optarg;
		return *optarg && strlen(optarg) <= RDMATENSOR_NAME_MAX ? EXIT_OK :
		       misused("--table is refused: give 1 to %d bytes", RDMATENSOR_NAME_MAX);
	case 'k':
		return take_kind(gathering, optarg);
	case 'r':
		return parse_number("--ids", optarg, 1, INT32_MAX, &gathering->ids);
	case 'q':
		return parse_number("--in-flight", optarg, 1, 1024, &gathering->depth);
	case 'n':
		return parse_number("--iters", optarg, 1, INT64_MAX, &gathering->count);
	case 'D':
		return parse_seconds("--duration", optarg, &gathering->duration_ns);
	case 't':
		return parse_seconds("--timeout", optarg, &gathering->timeout_ns);
	default:
		return common_option(&gathering->server.common, opt, optarg);
	}
}

int cmd_gather(int argc, char **argv)
{
	struct gathering gathering = {
		.table = "rdmatensor.gather", .row_bytes = 512, .ids = 100000, .depth = 2,
	};
	bool server = false;
	int opt, err = EXIT_OK;

	common_init(&gathering.server.common);
	while (!err && (opt = getopt_long(argc, argv, COMMON_SHORT "k:r:q:n:D:t:", options,
					  NULL)) != -1) {
		if (opt == 'h') {
			help();
			return EXIT_OK;
		}
		if (opt == OPT_SERVER)
			server = true;
		else
			err = take_option(&gathering, opt);
	}
	if (!err)
		err = common_environment(&gathering.server.common);
	if (err)
		return err;
	if (server != (optind == argc))
		return misused("give either --server or the PEERs");
	if (server) {
		if (!gathering.row_end)
			return misused("say which rows: --rows START:END");
		if (!gathering.row_bytes || gathering.row_bytes % 8)
			return misused("--row-bytes is refused: give a multiple of 8");
		return gather_serve(&gathering);
	}
	if (gathering.row_end)
		return misused("--rows is what a --server exports; a client gathers rows of all PEERs");
	gathering.peers = argv + optind;
	gathering.nr_peers = argc - optind;
	if (gathering.nr_peers > RDMATENSOR_OWNERS_MAX)
		return misused("%d PEERs are enough", RDMATENSOR_OWNERS_MAX);
	if (!gathering.count && !gathering.duration_ns)
		gathering.duration_ns = UINT64_C(2000000000);
	return gather_measure(&gathering);
}
