/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands and their options, each described once: parsing, --help, the completion of a
 * shell and the man pages are made from these tables. They are data only, because the
 * generator of the documents, which is built for the build machine, contains them too.
 */
#ifndef TOOL_OPTION_TABLE_H
#define TOOL_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* In the order of the tool's help */
enum command_id {
	COMMAND_SERVE,
	COMMAND_FETCH,
	COMMAND_LS,
	COMMAND_PERF,
	COMMAND_GATHER,
	COMMAND_INFO,
	COMMAND_DOCTOR,
	COMMAND_DOMAIN,
	COMMAND_SHOW,
	COMMAND_TOP,
	COMMAND_METRICS,
	COMMAND_SET,
	COMMAND_MONITOR,
	NR_COMMANDS
};

/**
 * struct command - one command
 * @name: its name
 * @what: what it does, in a few words
 * @usage: its help up to the options
 */
struct command {
	const char *name;
	const char *what;
	const char *usage;
};

extern const struct command commands[NR_COMMANDS];

/**
 * enum option_kind - what an option's argument is
 * @OPTION_FLAG: there is none: the option sets a flag
 * @OPTION_HELP: there is none: the option prints the help and ends the command
 * @OPTION_TEXT: any text
 * @OPTION_BYTES: a text of 1 to @most bytes
 * @OPTION_NUMBER: a decimal number from @least to @most
 * @OPTION_SIZE: bytes from 0 to @most, with K, M, G or T for powers of 1024
 * @OPTION_SECONDS: seconds, fractions allowed; @least and @most are in milliseconds
 * @OPTION_PARAM: a value of the parameter @param; 1 if there is no argument
 * @OPTION_OWN: what the command's own function takes
 */
enum option_kind {
	OPTION_FLAG,
	OPTION_HELP,
	OPTION_TEXT,
	OPTION_BYTES,
	OPTION_NUMBER,
	OPTION_SIZE,
	OPTION_SECONDS,
	OPTION_PARAM,
	OPTION_OWN
};

/* Where the value of an option goes: the command gives a place for each of them */
enum option_id {
	OPT_HELP,
	OPT_JSON,
	OPT_VERBOSE,
	OPT_DEVICE,
	OPT_LISTEN,
	OPT_WORKER,
	OPT_SETTING, /* all of OPTION_PARAM */
	OPT_PARAM,
	OPT_DEVICE_FILE,
	OPT_WAIT,
	OPT_PEER_WORKER,
	OPT_STEP,
	OPT_STEPS,
	OPT_EXIT_AFTER,
	OPT_SERVER,
	OPT_IN_FLIGHT,
	OPT_ITERS,
	OPT_DURATION,
	OPT_TIMEOUT,
	OPT_ALL,
	OPT_OUTPUT,
	OPT_ALLOC,
	OPT_FILTER,
	OPT_SLICE,
	OPT_MODE,
	OPT_MEMORY,
	OPT_KEEP,
	OPT_SIZE,
	OPT_MAX_SIZE,
	OPT_BATCH,
	OPT_ROWS,
	OPT_ROW_BYTES,
	OPT_TABLE,
	OPT_KIND,
	OPT_IDS,
	OPT_START,
	OPT_DELAY,
	OPT_COUNT,
	OPT_FILE,
	OPT_FORMAT,
	OPT_MAX_SERIES,
	OPT_CLUSTER
};

/* Where it stands in a command's help: below these heads, or at the top */
enum option_section { SECTION_OWN, SECTION_DEVICE, SECTION_OUTPUT };

/* What a shell offers for the argument */
enum option_words { WORDS_NONE, WORDS_DEVICES, WORDS_FILES };

/**
 * struct option_row - one option of one or several commands
 * @commands: those that have it, a bit for each
 * @section: of their help
 * @id: where its value goes
 * @name: its name, without --
 * @letter: its short form; 0: none
 * @arg: name of the argument, or NULL: none
 * @words: what a shell offers for it
 * @kind: what it is
 * @least: smallest value
 * @most: greatest value, or length
 * @preset: value if the option is not given; NULL: none, or the command's own rule
 * @param: of OPTION_PARAM: name of the parameter, which has range, default and variable
 * @variable: environment variable that is taken if the option is not given, or NULL
 * @help: what it does, for --help. {default}, {range} and {most} stand for the values
 * @man: the same for a man page, where more is to be said; NULL: as @help
 */
struct option_row {
	uint32_t commands;
	enum option_section section;
	enum option_id id;
	const char *name;
	char letter;
	const char *arg;
	enum option_words words;
	enum option_kind kind;
	int64_t least;
	int64_t most;
	const char *preset;
	const char *param;
	const char *variable;
	const char *help;
	const char *man;
};

extern const struct option_row option_rows[];
extern const size_t nr_option_rows;

#endif
