// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/params.h>

#include "message.h"
#include "numbers.h"
#include "option_table.h"
#include "option_text.h"
#include "options.h"
#include "params.h"

/* Long options have the numbers of their rows, beyond any letter */
#define LONG_FIRST 256
/* More than any command has */
#define ROWS_MAX 64

/**
 * struct line - one command line on its way
 * @command: whose
 * @places: of the caller
 * @nr_places: their number
 * @longs: the command's options for getopt_long()
 * @nr_longs: their number
 * @letters: the same for their letters
 */
struct line {
	enum command_id command;
	const struct option_place *places;
	size_t nr_places;
	struct option longs[ROWS_MAX + 1];
	size_t nr_longs;
	char letters[2 * ROWS_MAX + 1];
};

int option_set_param(struct rdmatensor_start *start, const char *option, const char *name,
		     const char *arg)
{
	const struct param *param = param_find(name);
	char range[64];
	uint64_t value;

	if (!strcmp(arg, "auto"))
		value = RDMATENSOR_PARAM_AUTO;
	else if (number_with_unit(arg, &value) || value == RDMATENSOR_PARAM_AUTO)
		value = UINT64_MAX;
	if (rdmatensor_start_set(start, name, value))
		return misused("%s %s is refused: give a number from %s", option, arg,
			       param_range_text(param, range, sizeof(range)));
	return EXIT_OK;
}

static int take_bytes(const char *option, const char *arg, char *to, size_t most)
{
	size_t len = strlen(arg);

	if (!len || len > most)
		return misused("%s %s is refused: give 1 to %zu bytes", option, arg, most);
	memset(to, 0, most + 1);
	memcpy(to, arg, len);
	return EXIT_OK;
}

static const struct option_place *place_of(const struct line *line, enum option_id id)
{
	size_t i = 0;

	while (i < line->nr_places && line->places[i].id != id)
		i++;
	assert(i < line->nr_places);
	return &line->places[i];
}

static int take(const struct line *line, const struct option_row *row, const char *arg)
{
	const struct option_place *place = place_of(line, row->id);
	char option[32];

	snprintf(option, sizeof(option), "--%s", row->name);
	switch (row->kind) {
	case OPTION_FLAG:
		*place->flag = true;
		return EXIT_OK;
	case OPTION_TEXT:
		*place->text = arg;
		return EXIT_OK;
	case OPTION_BYTES:
		return take_bytes(option, arg, place->bytes, (size_t)row->most);
	case OPTION_NUMBER:
		return parse_number(option, arg, row->least, row->most, place->number);
	case OPTION_SIZE:
		return parse_size(option, arg, (uint64_t)row->most, place->size);
	case OPTION_SECONDS:
		return parse_seconds(option, arg, row->least, row->most, place->ns);
	case OPTION_PARAM:
		return option_set_param(place->start, option, row->param, row->arg ? arg : "1");
	case OPTION_OWN:
		return place->take(place->own, arg);
	default:
		return EXIT_OK;
	}
}

static bool has_long(const struct line *line, const char *name)
{
	size_t i;

	for (i = 0; i < line->nr_longs; i++)
		if (!strcmp(line->longs[i].name, name))
			return true;
	return false;
}

static void add_section(struct line *line, enum option_section section)
{
	char *letter = line->letters + strlen(line->letters);
	size_t i;

	for (i = 0; i < nr_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		if (row->section != section || !option_is_of(row, line->command))
			continue;
		if (row->letter)
			letter += sprintf(letter, "%c%s", row->letter, row->arg ? ":" : "");
		/* A command may add a letter to an option of all commands */
		if (has_long(line, row->name))
			continue;
		assert(line->nr_longs < ROWS_MAX);
		line->longs[line->nr_longs++] = (struct option) {
			.name = row->name,
			.has_arg = row->arg ? required_argument : no_argument,
			.val = LONG_FIRST + (int)i,
		};
	}
}

/* NULL: getopt_long() has said what is wrong */
static const struct option_row *row_of(const struct line *line, int opt)
{
	size_t i;

	if (opt >= LONG_FIRST)
		return &option_rows[opt - LONG_FIRST];
	for (i = 0; i < nr_option_rows; i++)
		if (option_rows[i].letter == opt && option_is_of(&option_rows[i], line->command))
			return &option_rows[i];
	return NULL;
}

static int take_presets(const struct line *line)
{
	int err = EXIT_OK;
	size_t i;

	for (i = 0; !err && i < nr_option_rows; i++)
		if (option_rows[i].preset && option_is_of(&option_rows[i], line->command))
			err = take(line, &option_rows[i], option_rows[i].preset);
	return err;
}

/* The library takes the variables of other kinds */
static void take_variables(const struct line *line)
{
	const struct option_row *row;

	for (row = option_rows; row < option_rows + nr_option_rows; row++)
		if (row->variable && row->kind == OPTION_TEXT && option_is_of(row, line->command) &&
		    !*place_of(line, row->id)->text)
			*place_of(line, row->id)->text = getenv(row->variable);
}

bool options_parse(enum command_id command, const struct option_place *places, size_t nr,
		   int argc, char **argv, int *status)
{
	struct line line = { .command = command, .places = places, .nr_places = nr };
	const struct option_row *row;
	int opt;

	/* The order in which getopt_long() lists the candidates of an abbreviation */
	add_section(&line, SECTION_OUTPUT);
	add_section(&line, SECTION_DEVICE);
	add_section(&line, SECTION_OWN);
	*status = take_presets(&line);
	while (!*status &&
	       (opt = getopt_long(argc, argv, line.letters, line.longs, NULL)) != -1) {
		row = row_of(&line, opt);
		if (row && row->kind == OPTION_HELP) {
			option_help(command, stdout);
			return false;
		}
		*status = row ? take(&line, row, optarg) : point_to_help();
	}
	take_variables(&line);
	return !*status;
}
