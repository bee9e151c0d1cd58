// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fetch: fetches tensors of a peer into a pool, and writes the pool into a file, or files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "tool/cmd/commands.h"
#include "tool/common/context.h"
#include "tool/common/context_options.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "tool/common/text.h"

static int fetch_steps(struct fetch *fetch, struct outputs *outputs)
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
		err = outputs_write(outputs, fetch);
	if (!err && fetch->options.json) {
		err = fetch_print_json(fetch, results, outputs->name);
	} else if (!err) {
		fetch_print(fetch, results);
		printf("rdmatensor: fetched %zu tensor%s, %" PRIu64 " bytes from ",
		       fetch->file->nr, plural(fetch->file->nr), fetch->file->data_bytes);
		put_string(stdout, fetch->peer);
		printf(" to ");
		put_string(stdout, outputs->name);
		putchar('\n');
	}
	free(results);
	return err;
}

static int fetch_from(struct fetch *fetch, struct outputs *outputs, char **names, size_t nr)
{
	int err;

	err = context_start(&fetch->options, &fetch->rt);
	if (err)
		return err;
	fetch->peers.rt = fetch->rt;
	fetch->peers.step = fetch->first_step;
	err = peers_connect(&fetch->peers);
	if (!err)
		err = nr ? fetch_meta(fetch, names, nr) : fetch_index(fetch);
	if (!err)
		err = fetch_prepare(fetch);
	if (!err)
		err = outputs_open(outputs, &fetch->model);
	if (!err)
		err = fetch_steps(fetch, outputs);
	if (peers_end(&fetch->peers))
		rdmatensor_close(fetch->rt);
	st_model_free(&fetch->model);
	free(fetch->offsets);
	return err;
}

/* Refuses names that no tensor or no file can have */
static int check_names(char *const *names, size_t nr)
{
	size_t i, k;

	for (i = 0; i < nr; i++) {
		if (!*names[i] || strlen(names[i]) > RDMATENSOR_NAME_MAX)
			return misused("NAME \"%s\" has %zu bytes: a tensor's name has 1 to %d",
				       names[i], strlen(names[i]), RDMATENSOR_NAME_MAX);
		if (!text_is_utf8(names[i], strlen(names[i])))
			return misused("NAME \"%s\" is not UTF-8: a safetensors file cannot have it",
				       names[i]);
		for (k = 0; k < i; k++)
			if (!strcmp(names[i], names[k]))
				return misused("NAME \"%s\" is given twice", names[i]);
	}
	return EXIT_OK;
}

/* "PEER[,PEER]..." */
static int take_peers(struct fetch *fetch, char *list, bool all)
{
	int err;

	fetch->peer = strdup(list);
	if (!fetch->peer)
		return failed("out of memory");
	fetch->peers.options = &fetch->options;
	fetch->peers.timeout_ns = fetch->timeout_ns;
	err = peers_take(&fetch->peers, list);
	if (err || fetch->peers.nr == 1)
		return err;
	if (!all)
		return misused("several PEERs are refused with names: only indices tell who has which tensor: give --all, with --filter NAME for some of them");
	if (fetch->peers.worker)
		return misused("--peer-worker is refused with several PEERs: it is the name of one: leave it out");
	return EXIT_OK;
}

/* PEER; the names follow from optind on. EXIT_OK, or EXIT_USAGE with a message */
static int take_arguments(struct fetch *fetch, bool all, int argc, char **argv)
{
	char *list;
	size_t nr;
	int err;

	if (optind == argc)
		return misused("give a PEER");
	list = argv[optind++];
	nr = (size_t)(argc - optind);
	if (all == (nr > 0))
		return misused("give either names or --all; before names that begin with -, give --");
	err = check_names(argv + optind, nr);
	if (err)
		return err;
	if (fetch->alloc && fetch->memory != STORE_KERNEL)
		return misused("--alloc is refused with --memory: memory that is registered has no places to hand out: leave out one of the two");
	if (fetch->slices.nr && all)
		return misused("--slice is refused with --all: give the names of the tensors, and --slice for those of which you want a part");
	err = slices_check(&fetch->slices, argv + optind, nr);
	if (err)
		return err;
	if (fetch->filter.nr && !all)
		return misused("--filter is refused with names: give --all, or leave it out");
	if (!fetch->output || !*fetch->output)
		return misused("give -o OUT.safetensors");
	if (!strcmp(fetch->output, "-"))
		return misused("-o - is refused: standard output is for the report; give ./- for a file of that name");
	fetch->folder = fetch->output[strlen(fetch->output) - 1] == '/';
	if (fetch->folder && !all)
		return misused("-o %s is refused with names: a folder is for all of a model's files: give --all, or -o OUT.safetensors",
			       fetch->output);
	return take_peers(fetch, list, all);
}

static int take_memory(void *own, const char *memory)
{
	struct fetch *fetch = own;

	return store_take_memory(memory, false, &fetch->memory);
}

int cmd_fetch(int argc, char **argv)
{
	struct fetch fetch = { 0 };
	bool all = false;
	const struct option_place places[] = {
		{ .id = OPT_ALL, .flag = &all },
		{ .id = OPT_OUTPUT, .text = &fetch.output },
		{ .id = OPT_STEP, .number = &fetch.first_step },
		{ .id = OPT_STEPS, .number = &fetch.steps },
		{ .id = OPT_IN_FLIGHT, .number = &fetch.in_flight },
		{ .id = OPT_TIMEOUT, .ns = &fetch.timeout_ns },
		{ .id = OPT_ALLOC, .flag = &fetch.alloc },
		{ .id = OPT_FILTER, .own = &fetch.filter, .take = filter_take },
		{ .id = OPT_SLICE, .own = &fetch.slices, .take = slices_take },
		{ .id = OPT_MEMORY, .own = &fetch, .take = take_memory },
		{ .id = OPT_PEER_WORKER, .text = &fetch.peers.worker },
	};
	struct outputs outputs = { 0 };
	int err;

	if (!context_options_parse(COMMAND_FETCH, &fetch.options, places,
				   NR_PLACES(places), argc, argv, &err)) {
		slices_free(&fetch.slices);
		return err;
	}
	err = take_arguments(&fetch, all, argc, argv);
	if (!err)
		err = outputs_begin(&outputs, fetch.output);
	if (!err)
		err = fetch_from(&fetch, &outputs, argv + optind, (size_t)(argc - optind));
	outputs_drop(&outputs);
	peers_end(&fetch.peers);
	slices_free(&fetch.slices);
	free(fetch.peer);
	return err;
}
