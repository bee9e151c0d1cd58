/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A command line, parsed by the table of options.
 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "option_table.h"

/**
 * struct option_place - where the values of an option go
 * @id: of the option
 * @flag: of OPTION_FLAG: becomes true
 * @text: of OPTION_TEXT: the argument itself
 * @bytes: of OPTION_BYTES: room for the greatest length and a zero
 * @number: of OPTION_NUMBER
 * @size: of OPTION_SIZE
 * @ns: of OPTION_SECONDS, in nanoseconds
 * @start: of OPTION_PARAM: the field of that parameter is set
 * @own: of OPTION_OWN: for @take
 * @take: of OPTION_OWN: EXIT_OK, or EXIT_USAGE with a message
 */
struct option_place {
	enum option_id id;
	union {
		bool *flag;
		const char **text;
		char *bytes;
		int64_t *number;
		uint64_t *size;
		uint64_t *ns;
		struct rdmatensor_start *start;
		void *own;
	};
	int (*take)(void *own, const char *arg);
};

#define NR_PLACES(_places) (sizeof(_places) / sizeof((_places)[0]))

/*
 * Puts the defaults, the options of @argv, and the variables of those that are not given into
 * their places; every option of the command has one. Arguments are from optind on. False: the
 * command ends here with *status, as after --help
 */
bool options_parse(enum command_id command, const struct option_place *places, size_t nr,
		   int argc, char **argv, int *status);

/* Sets a parameter to a number or to auto; EXIT_OK, or EXIT_USAGE with a message */
int option_set_param(struct rdmatensor_start *start, const char *option, const char *name,
		     const char *arg);

#endif
