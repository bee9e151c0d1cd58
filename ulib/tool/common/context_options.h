/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Options of all commands that open a context: they are START's fields, and what such a
 * command prints.
 */
#ifndef TOOL_CONTEXT_OPTIONS_H
#define TOOL_CONTEXT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

#include "options.h"

/* Of --wait: as long as a connection may take, handshake_ms */
#define WAIT_DEFAULT UINT64_MAX

/**
 * struct context_options - their values
 * @start: START's argument
 * @listen: --listen, or NULL
 * @device_file: --device-file, else of the environment, or NULL
 * @json: --json
 * @verbose: --verbose
 * @wait_ns: --wait: how long the command waits for a peer that is not up yet; 0: not at all;
 *           WAIT_DEFAULT
 */
struct context_options {
	struct rdmatensor_start start;
	const char *listen;
	const char *device_file;
	bool json;
	bool verbose;
	uint64_t wait_ns;
};

/*
 * As options_parse(), with the places of these options beside @places. What no option has
 * set is taken from the environment
 */
bool context_options_parse(enum command_id command, struct context_options *options,
			   const struct option_place *places, size_t nr, int argc, char **argv,
			   int *status);

#endif
