// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * perf: the options.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sides.h"
#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "tool/common/options.h"

static void help(void)
{
	printf("Usage: rdmatensor perf --server [OPTION]...\n"
	       "       rdmatensor perf [OPTION]... PEER\n"
	       "Measure how fast tensors of a PEER are fetched. The server has every power of\n"
	       "two up to 64M; give it --size too for others.\n"
	       "\n"
	       "      --server             be the side that publishes\n"
	       "      --exit-after N       server: end when N channels have gone down\n"
	       "  -m, --mode bw|lat        many in flight, or one at a time (default bw)\n"
	       "  -s, --size N[,N]...      bytes of a tensor, as 4K,8M (default 64K,1M,8M; lat: 4K)\n"
	       "  -l, --lanes N            queue pairs of the channel (default 1)\n"
	       "  -q, --in-flight N        fetches at the same time (default 8; lat: 1)\n"
	       "      --batch N            ends that one system call waits for (default: a\n"
	       "                           quarter of --in-flight)\n"
	       "  -n, --iters N            fetches to measure\n"
	       "  -D, --duration SEC       or time to measure for (default 2)\n"
	       "      --peer-worker NAME   name that the PEER must have\n"
	       "      --wait SEC           wait so long for a PEER that is not up yet, 0: not at all\n"
	       "                           (default: handshake_ms, 10)\n"
	       "%s", common_help);
}

static int take_sizes(struct perf *perf, char *list)
{
	char *item, *rest = NULL;
	int err;

	perf->nr_sizes = 0;
	for (item = strtok_r(list, ",", &rest); item;
	     item = strtok_r(NULL, ",", &rest)) {
		if (perf->nr_sizes == PERF_SIZES_MAX)
			return misused("--size takes at most %d sizes",
				       PERF_SIZES_MAX);
		err = parse_size("--size", item, UINT64_C(1) << 40,
				 &perf->sizes[perf->nr_sizes++]);
		if (err)
			return err;
	}
	return perf->nr_sizes ? EXIT_OK : misused("--size names no size");
}

enum { OPT_SERVER = OPT_OWN, OPT_EXIT_AFTER, OPT_BATCH, OPT_PEER_WORKER };

static const struct option options[] = {
	COMMON_LONG,
	{ "server", no_argument, NULL, OPT_SERVER },
	{ "exit-after", required_argument, NULL, OPT_EXIT_AFTER },
	{ "mode", required_argument, NULL, 'm' },
	{ "size", required_argument, NULL, 's' },
	{ "in-flight", required_argument, NULL, 'q' },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "iters", required_argument, NULL, 'n' },
	{ "duration", required_argument, NULL, 'D' },
	{ "peer-worker", required_argument, NULL, OPT_PEER_WORKER },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ 0 }
};

static int take_mode(struct perf *perf, const char *mode)
{
	perf->latency = !strcmp(mode, "lat");
	if (!perf->latency && strcmp(mode, "bw"))
		return misused("--mode %s is refused: give bw or lat", mode);
	return EXIT_OK;
}

static int take_option(struct perf *perf, int opt)
{
	switch (opt) {
	case OPT_EXIT_AFTER:
		return parse_number("--exit-after", optarg, 1, INT32_MAX,
				    &perf->server.exit_after);
	case OPT_BATCH:
		return parse_number("--batch", optarg, 1, 65536, &perf->batch);
	case OPT_PEER_WORKER:
		perf->peer_worker = optarg;
		return EXIT_OK;
	case 'm':
		return take_mode(perf, optarg);
	case 's':
		return take_sizes(perf, optarg);
	case 'l':
		return common_option(&perf->server.common, OPT_LANES, optarg);
	case 'q':
		return parse_number("--in-flight", optarg, 1, 65536,
				    &perf->depth);
	case 'n':
		return parse_number("--iters", optarg, 1, INT64_MAX,
				    &perf->iters);
	case 'D':
		return parse_seconds_in("--duration", optarg, 0.001, 1000000, &perf->duration_ns);
	default:
		return common_option(&perf->server.common, opt, optarg);
	}
}

static void set_defaults(struct perf *perf)
{
	if (!perf->depth)
		perf->depth = perf->latency ? 1 : 8;
	if (!perf->batch)
		perf->batch = perf->depth / 4 ? perf->depth / 4 : 1;
	if (perf->batch > perf->depth)
		perf->batch = perf->depth;
	if (!perf->iters && !perf->duration_ns)
		perf->duration_ns = UINT64_C(2000000000);
	if (perf->nr_sizes)
		return;
	if (perf->latency) {
		perf->sizes[perf->nr_sizes++] = 4096;
	} else {
		perf->sizes[perf->nr_sizes++] = 64 << 10;
		perf->sizes[perf->nr_sizes++] = 1 << 20;
		perf->sizes[perf->nr_sizes++] = 8 << 20;
	}
}

int cmd_perf(int argc, char **argv)
{
	struct perf perf = { 0 };
	bool server = false;
	int opt, err = EXIT_OK;

	common_init(&perf.server.common);
	while (!err && (opt = getopt_long(argc, argv, COMMON_SHORT "m:s:l:q:n:D:",
					  options, NULL)) != -1) {
		if (opt == 'h') {
			help();
			return EXIT_OK;
		}
		if (opt == OPT_SERVER)
			server = true;
		else
			err = take_option(&perf, opt);
	}
	if (!err)
		err = common_environment(&perf.server.common);
	if (err)
		return err;
	if (argc - optind != !server)
		return misused("give either --server or one PEER");
	if (server)
		return perf_serve(&perf);
	perf.peer = argv[optind];
	set_defaults(&perf);
	return perf_measure(&perf);
}
