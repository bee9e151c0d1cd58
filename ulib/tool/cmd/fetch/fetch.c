// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fetch: has tensors of a peer written into a pool, and the pool into a file.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outfile.h"
#include "parts.h"
#include "safetensors/safetensors.h"
#include "tool/cmd/commands.h"
#include "tool/common/context.h"
#include "tool/common/files.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/progress.h"
#include "tool/common/text.h"

static void help(void)
{
	printf("Usage: rdmatensor fetch [OPTION]... PEER NAME... -o OUT.safetensors\n"
	       "       rdmatensor fetch [OPTION]... PEER --all -o OUT.safetensors\n"
	       "Fetch tensors of a peer by name and write them into a safetensors file.\n"
	       "PEER is host, host:port or [v6]:port; the default port is %d.\n"
	       "\n"
	       "  -a, --all                all tensors that `rdmatensor serve` has there\n"
	       "  -o, --output FILE        file to write\n"
	       "      --step S             step number (default 0)\n"
	       "      --steps N            fetch N steps from S on, write the last (default 1)\n"
	       "  -q, --in-flight N        fetches at the same time (default 64)\n"
	       "  -t, --timeout SEC        bound on each fetch, 0: none (default 30)\n"
	       "      --alloc              let the kernel find the tensors' places\n"
	       "      --peer-worker NAME   name that the PEER must have\n"
	       "      --wait SEC           wait so long for a PEER that is not up yet, 0: not at all\n"
	       "                           (default: handshake_ms, 10)\n"
	       "%s", RDMATENSOR_PORT, common_help);
}

/* The length of the header, the header, and the tensors */
static int write_pieces(const struct fetch *fetch, const struct outfile *out)
{
	uint64_t length = htole64(fetch->file.header_bytes);
	struct progress progress;
	struct piece *pieces;
	size_t i;
	int err;

	pieces = calloc(fetch->file.nr + 2, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	pieces[0].base = &length;
	pieces[0].bytes = sizeof(length);
	pieces[1].base = fetch->file.header;
	pieces[1].bytes = fetch->file.header_bytes;
	for (i = 0; i < fetch->file.nr; i++) {
		pieces[i + 2].base = (char *)fetch->store.pool.base +
				     fetch->offsets[i];
		pieces[i + 2].bytes = fetch->file.tensors[i].bytes;
	}
	progress_begin(&progress, "writing", fetch->file.data_bytes);
	err = file_write(out->fd, out->stream, pieces, fetch->file.nr + 2, &progress);
	progress_end(&progress);
	free(pieces);
	return err;
}

static int write_output(const struct fetch *fetch, struct outfile *out)
{
	int err = write_pieces(fetch, out);

	if (err)
		return failed("write %s: %s", out->name, strerror(-err));
	return outfile_commit(out);
}

static int fetch_steps(struct fetch *fetch, struct outfile *out)
{
	struct step_result *results;
	int64_t i;
	int err = EXIT_OK;

	results = calloc((size_t)fetch->steps, sizeof(*results));
	if (!results)
		return failed("out of memory");
	for (i = 0; !err && i < fetch->steps; i++)
		err = fetch_step(fetch, fetch->first_step + i, &results[i]);
	if (!err)
		err = write_output(fetch, out);
	if (!err && fetch->common.json) {
		err = fetch_print_json(fetch, results, out->name);
	} else if (!err) {
		fetch_print(fetch, results);
		printf("rdmatensor: fetched %zu tensor%s, %" PRIu64 " bytes from ",
		       fetch->file.nr, plural(fetch->file.nr), fetch->file.data_bytes);
		put_string(stdout, fetch->peer);
		printf(" to ");
		put_string(stdout, out->name);
		putchar('\n');
	}
	free(results);
	return err;
}

enum { OPT_STEP = OPT_OWN, OPT_STEPS, OPT_ALLOC_PLACE, OPT_PEER_WORKER };

static const struct option options[] = {
	COMMON_LONG,
	{ "all", no_argument, NULL, 'a' },
	{ "output", required_argument, NULL, 'o' },
	{ "step", required_argument, NULL, OPT_STEP },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "in-flight", required_argument, NULL, 'q' },
	{ "timeout", required_argument, NULL, 't' },
	{ "alloc", no_argument, NULL, OPT_ALLOC_PLACE },
	{ "peer-worker", required_argument, NULL, OPT_PEER_WORKER },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ 0 }
};

/**
 * struct what - the options that are not part of struct fetch
 * @output: file to write
 * @peer_worker: the peer's name, or NULL
 * @all: --all
 */
struct what {
	const char *output;
	const char *peer_worker;
	bool all;
};

static int take_option(struct fetch *fetch, struct what *what, int opt)
{
	switch (opt) {
	case 'a':
		what->all = true;
		return EXIT_OK;
	case 'o':
		what->output = optarg;
		return EXIT_OK;
	case 'q':
		return parse_number("--in-flight", optarg, 1, 65536,
				    &fetch->in_flight);
	case 't':
		return parse_seconds("--timeout", optarg, &fetch->timeout_ns);
	case OPT_STEP:
		return parse_number("--step", optarg, 0, INT64_MAX / 2,
				    &fetch->first_step);
	case OPT_STEPS:
		return parse_number("--steps", optarg, 1, 1000000,
				    &fetch->steps);
	case OPT_ALLOC_PLACE:
		fetch->alloc = true;
		return EXIT_OK;
	case OPT_PEER_WORKER:
		what->peer_worker = optarg;
		return EXIT_OK;
	default:
		return common_option(&fetch->common, opt, optarg);
	}
}

static int fetch_from(struct fetch *fetch, const struct what *what, struct outfile *out,
		      char **names, size_t nr)
{
	int err;

	err = context_start(&fetch->common, &fetch->rt);
	if (err)
		return err;
	err = context_connect(fetch->rt, &fetch->common, fetch->peer, what->peer_worker,
			      &fetch->channel);
	if (!err)
		err = what->all ? fetch_index(fetch) :
				  fetch_meta(fetch, names, nr);
	if (!err)
		err = fetch_prepare(fetch);
	if (!err)
		err = outfile_reserve(out, st_data_offset(&fetch->file) + fetch->file.data_bytes);
	if (!err)
		err = fetch_steps(fetch, out);
	rdmatensor_close(fetch->rt);
	st_free(&fetch->file);
	free(fetch->offsets);
	return err;
}

/* What no tensor is called, or no file can have, is not asked for */
static int check_names(char *const *names, size_t nr)
{
	size_t i, k;

	for (i = 0; i < nr; i++) {
		if (!*names[i] || strlen(names[i]) > RDMATENSOR_NAME_MAX)
			return misused("NAME \"%s\" has %zu bytes: a tensor's name has 1 to %d",
				       names[i], strlen(names[i]), RDMATENSOR_NAME_MAX);
		if (!text_is_utf8(names[i], strlen(names[i])))
			return misused("NAME \"%s\" is no UTF-8: a safetensors file cannot have it",
				       names[i]);
		for (k = 0; k < i; k++)
			if (!strcmp(names[i], names[k]))
				return misused("NAME \"%s\" is given twice", names[i]);
	}
	return EXIT_OK;
}

int cmd_fetch(int argc, char **argv)
{
	struct fetch fetch = {
		.steps = 1,
		.in_flight = 64,
		.timeout_ns = UINT64_C(30000000000),
	};
	struct what what = { 0 };
	struct outfile out;
	size_t nr;
	int opt, err = EXIT_OK;

	common_init(&fetch.common);
	while (!err && (opt = getopt_long(argc, argv, COMMON_SHORT "ao:q:t:",
					  options, NULL)) != -1) {
		if (opt == 'h') {
			help();
			return EXIT_OK;
		}
		err = take_option(&fetch, &what, opt);
	}
	if (!err)
		err = common_environment(&fetch.common);
	if (err)
		return err;
	if (optind == argc)
		return misused("give a PEER");
	fetch.peer = argv[optind++];
	nr = (size_t)(argc - optind);
	if (what.all == (nr > 0))
		return misused("give either names or --all; before names that begin with -, give --");
	err = check_names(argv + optind, nr);
	if (err)
		return err;
	if (!what.output)
		return misused("give -o OUT.safetensors");
	if (!strcmp(what.output, "-"))
		return misused("-o - is refused: the standard output is the report's; give ./- for a file that is called so");
	/* What cannot be written is not fetched */
	err = outfile_open(&out, what.output);
	if (err)
		return err;
	err = fetch_from(&fetch, &what, &out, argv + optind, nr);
	outfile_drop(&out);
	return err;
}
