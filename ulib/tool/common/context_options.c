// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "context_options.h"
#include "message.h"
#include "options.h"
#include "params.h"

/* NAME=VALUE */
static int take_named(void *own, const char *arg)
{
	size_t len = strcspn(arg, "=");
	char name[32] = "", option[64];

	if (len < sizeof(name))
		memcpy(name, arg, len);
	/* A parameter without a variable is one of the host */
	if (!arg[len] || !param_find(name) || !*param_find(name)->variable)
		return misused("--param %s is refused: give NAME=VALUE, with one of the names that rdmatensor-params(7) has for a context",
			       arg);
	snprintf(option, sizeof(option), "--param %s", name);
	return option_set_param(own, option, name, arg + len + 1);
}

static int take_environment(struct context_options *options)
{
	char cause[512];

	if (rdmatensor_start_rest_from_env(&options->start, cause, sizeof(cause)))
		return misused("%s, or give the option in its place", cause);
	return EXIT_OK;
}

bool context_options_parse(enum command_id command, struct context_options *options,
			   const struct option_place *places, size_t nr, int argc, char **argv,
			   int *status)
{
	struct rdmatensor_start *start = &options->start;
	struct option_place all[32] = {
		{ .id = OPT_DEVICE, .bytes = start->device_name },
		{ .id = OPT_WORKER, .bytes = start->worker },
		{ .id = OPT_SETTING, .start = start },
		{ .id = OPT_PARAM, .own = start, .take = take_named },
		{ .id = OPT_LISTEN, .text = &options->listen },
		{ .id = OPT_DEVICE_FILE, .text = &options->device_file },
		{ .id = OPT_WAIT, .ns = &options->wait_ns },
		{ .id = OPT_JSON, .flag = &options->json },
		{ .id = OPT_VERBOSE, .flag = &options->verbose },
	};
	const size_t nr_ours = 9;

	memset(options, 0, sizeof(*options));
	options->wait_ns = WAIT_DEFAULT;
	rdmatensor_start_init(start, NULL);
	assert(nr_ours + nr <= sizeof(all) / sizeof(all[0]));
	if (nr)
		memcpy(all + nr_ours, places, nr * sizeof(*places));
	if (!options_parse(command, all, nr_ours + nr, argc, argv, status))
		return false;
	if (options->verbose)
		be_verbose();
	*status = take_environment(options);
	return !*status;
}
