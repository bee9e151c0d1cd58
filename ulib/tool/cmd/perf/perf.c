// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * perf: the options.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sides.h"
#include "tool/cmd/commands.h"
#include "tool/common/context_options.h"
#include "tool/common/message.h"
#include "tool/common/numbers.h"
#include "tool/common/options.h"

static int take_sizes(void *own, const char *list)
{
	struct perf *perf = own;
	char *copy = strdup(list), *item, *rest = NULL;
	int err = EXIT_OK;

	if (!copy)
		return failed("out of memory");
	perf->nr_sizes = 0;
	for (item = strtok_r(copy, ",", &rest); !err && item; item = strtok_r(NULL, ",", &rest)) {
		if (perf->nr_sizes == PERF_SIZES_MAX)
			err = misused("--size takes at most %d sizes", PERF_SIZES_MAX);
		else
			err = parse_size("--size", item, UINT64_C(1) << 40,
					 &perf->sizes[perf->nr_sizes++]);
	}
	free(copy);
	if (!err && !perf->nr_sizes)
		err = misused("--size has no size in it");
	return err;
}

static int take_mode(void *own, const char *mode)
{
	struct perf *perf = own;

	perf->latency = !strcmp(mode, "lat");
	if (!perf->latency && strcmp(mode, "bw"))
		return misused("--mode %s is refused: give bw or lat", mode);
	return EXIT_OK;
}

static int take_memory(void *own, const char *memory)
{
	struct perf *perf = own;

	return store_take_memory(memory, false, &perf->memory);
}

static void set_defaults(struct perf *perf)
{
	if (!perf->depth)
		perf->depth = perf->latency ? 1 : 8;
	if (!perf->batch)
		perf->batch = perf->depth / 4 ? perf->depth / 4 : 1;
	if (perf->batch > perf->depth)
		perf->batch = perf->depth;
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
	const struct option_place places[] = {
		{ .id = OPT_SERVER, .flag = &server },
		{ .id = OPT_EXIT_AFTER, .number = &perf.server.exit_after },
		{ .id = OPT_MODE, .own = &perf, .take = take_mode },
		{ .id = OPT_MEMORY, .own = &perf, .take = take_memory },
		{ .id = OPT_SIZE, .own = &perf, .take = take_sizes },
		{ .id = OPT_MAX_SIZE, .size = &perf.max_size },
		{ .id = OPT_IN_FLIGHT, .number = &perf.depth },
		{ .id = OPT_BATCH, .number = &perf.batch },
		{ .id = OPT_ITERS, .number = &perf.iters },
		{ .id = OPT_DURATION, .ns = &perf.duration_ns },
		{ .id = OPT_PEER_WORKER, .text = &perf.peer_worker },
	};
	int err;

	if (!context_options_parse(COMMAND_PERF, &perf.server.options, places,
				   NR_PLACES(places), argc, argv, &err))
		return err;
	if (argc - optind != !server)
		return misused("give either --server or one PEER");
	if (!perf.max_size)
		return misused("--max-size 0 is refused: give the bytes of a tensor");
	if (server)
		return perf_serve(&perf);
	if (perf.server.exit_after)
		return misused("--exit-after is of a --server; a client ends by --iters or --duration");
	perf.peer = argv[optind];
	set_defaults(&perf);
	return perf_measure(&perf);
}
