// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each option of each command, as its row of the table has it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdmatensor/params.h>

#include "capture.h"
#include "fake.h"
#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "tool/common/option_text.h"
#include "tool/common/options.h"
#include "tool/common/params.h"
#include "unit.h"

static int setup(void **state)
{
	(void)state;
	fake_reset();
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	return 0;
}

/* Values of one option; the places of all others lead here, too */
static struct {
	enum command_id command;
	bool flag;
	const char *arg;
	char text[64];
	char bytes[256];
	int64_t number;
	uint64_t size;
	uint64_t ns;
	struct rdmatensor_start start;
	char own[64];
} got;

static int take_own(void *own, const char *arg)
{
	snprintf(own, sizeof(got.own), "%s", arg);
	return EXIT_OK;
}

static void fill_place(struct option_place *place, const struct option_row *row)
{
	place->id = row->id;
	switch (row->kind) {
	case OPTION_TEXT:
		place->text = &got.arg;
		break;
	case OPTION_BYTES:
		place->bytes = got.bytes;
		break;
	case OPTION_NUMBER:
		place->number = &got.number;
		break;
	case OPTION_SIZE:
		place->size = &got.size;
		break;
	case OPTION_SECONDS:
		place->ns = &got.ns;
		break;
	case OPTION_PARAM:
		place->start = &got.start;
		break;
	case OPTION_OWN:
		place->own = got.own;
		place->take = take_own;
		break;
	default:
		place->flag = &got.flag;
	}
}

/* In place of a command */
static int parse(int argc, char **argv)
{
	struct option_place places[64] = { 0 };
	size_t i, nr = 0;
	int status;

	for (i = 0; i < nr_option_rows; i++)
		if (option_is_of(&option_rows[i], got.command))
			fill_place(&places[nr++], &option_rows[i]);
	options_parse(got.command, places, nr, argc, argv, &status);
	/* The argument itself is gone with the command */
	snprintf(got.text, sizeof(got.text), "%s", got.arg ? got.arg : "");
	return status;
}

static int parse_one(enum command_id command, const char *option, const char *arg)
{
	memset(&got, 0, sizeof(got));
	rdmatensor_start_init(&got.start, NULL);
	got.command = command;
	return RUN(parse, (char *)option, (char *)arg);
}

static void refuses(enum command_id command, const char *option, const char *arg)
{
	if (parse_one(command, option, arg) != EXIT_USAGE)
		fail_msg("%s takes %s %s", commands[command].name, option, arg);
	assert_contains(messages, option);
	assert_contains(messages, "is refused: give ");
	assert_contains(messages, "--help'.\n");
}

static void takes(enum command_id command, const char *option, const char *arg)
{
	if (parse_one(command, option, arg) != EXIT_OK)
		fail_msg("%s refuses %s %s: %s", commands[command].name, option, arg, messages);
	assert_string_equal(messages, "");
}

static void check_number(enum command_id command, const struct option_row *row, const char *option)
{
	char arg[32];

	snprintf(arg, sizeof(arg), "%" PRId64, row->least);
	takes(command, option, arg);
	assert_int_equal(got.number, row->least);
	snprintf(arg, sizeof(arg), "%" PRId64, row->most);
	takes(command, option, arg);
	assert_int_equal(got.number, row->most);
	snprintf(arg, sizeof(arg), "%" PRId64, row->least - 1);
	refuses(command, option, arg);
	snprintf(arg, sizeof(arg), "%" PRIu64, (uint64_t)row->most + 1);
	refuses(command, option, arg);
	snprintf(arg, sizeof(arg), "from %" PRId64 " to ", row->least);
	assert_contains(messages, arg);
	refuses(command, option, "x");
	refuses(command, option, "");
	refuses(command, option, " 1");
	refuses(command, option, "1K");
}

static void check_size(enum command_id command, const struct option_row *row, const char *option)
{
	char arg[32];

	takes(command, option, "1k");
	assert_int_equal(got.size, 1024);
	snprintf(arg, sizeof(arg), "%" PRId64, row->most);
	takes(command, option, arg);
	assert_int_equal(got.size, row->most);
	snprintf(arg, sizeof(arg), "%" PRId64, row->most + 1);
	refuses(command, option, arg);
	refuses(command, option, "-1");
	refuses(command, option, "1Kx");
	refuses(command, option, "99999999999G");
}

static void check_seconds(enum command_id command, const struct option_row *row,
			  const char *option)
{
	char arg[32];

	snprintf(arg, sizeof(arg), "%.3f", (double)row->least / 1e3);
	takes(command, option, arg);
	assert_int_equal(got.ns, row->least * 1000000);
	snprintf(arg, sizeof(arg), "%.3f", (double)row->most / 1e3);
	takes(command, option, arg);
	assert_int_equal(got.ns, row->most * 1000000);
	snprintf(arg, sizeof(arg), "%.4f", ((double)row->most + 0.1) / 1e3);
	refuses(command, option, arg);
	snprintf(arg, sizeof(arg), "%.4f", ((double)row->least - 0.1) / 1e3);
	refuses(command, option, arg);
	refuses(command, option, "nan");
	refuses(command, option, "1s");
}

static void check_param(enum command_id command, const struct option_row *row, const char *option)
{
	const struct param *param = param_find(row->param);
	char arg[32];

	assert_non_null(param);
	if (!row->arg)
		return;
	snprintf(arg, sizeof(arg), "%" PRIu32, param->least);
	takes(command, option, arg);
	assert_int_not_equal(got.start.set, 0);
	snprintf(arg, sizeof(arg), "%" PRIu32, param->most);
	takes(command, option, arg);
	snprintf(arg, sizeof(arg), "%" PRIu64, (uint64_t)param->most + 1);
	refuses(command, option, arg);
	snprintf(arg, sizeof(arg), "%" PRIu32 "..%" PRIu32, param->least, param->most);
	assert_contains(messages, arg);
	if (param->power_of_two)
		refuses(command, option, "1025");
	if (param->value == RDMATENSOR_PARAM_AUTO)
		takes(command, option, "auto");
	else
		refuses(command, option, "auto");
}

static void check_bytes(enum command_id command, const struct option_row *row, const char *option)
{
	char arg[256];

	assert_true(row->most + 1 < (int64_t)sizeof(arg));
	memset(arg, 'n', sizeof(arg));
	arg[row->most + 1] = '\0';
	refuses(command, option, arg);
	arg[row->most] = '\0';
	takes(command, option, arg);
	assert_string_equal(got.bytes, arg);
	refuses(command, option, "");
}

static void check_row(enum command_id command, const struct option_row *row, const char *option)
{
	switch (row->kind) {
	case OPTION_NUMBER:
		check_number(command, row, option);
		break;
	case OPTION_SIZE:
		check_size(command, row, option);
		break;
	case OPTION_SECONDS:
		check_seconds(command, row, option);
		break;
	case OPTION_PARAM:
		check_param(command, row, option);
		break;
	case OPTION_BYTES:
		check_bytes(command, row, option);
		break;
	case OPTION_TEXT:
		takes(command, option, "any text");
		assert_string_equal(got.text, "any text");
		break;
	case OPTION_OWN:
		takes(command, option, "its own");
		assert_string_equal(got.own, "its own");
		break;
	case OPTION_FLAG:
		takes(command, option, NULL);
		assert_true(got.flag);
		break;
	case OPTION_HELP:
		break;
	}
}

static void each_row(void (*look)(enum command_id command, const struct option_row *row,
				  const char *option))
{
	char option[40];
	size_t i;
	int k;

	for (k = 0; k < NR_COMMANDS; k++)
		for (i = 0; i < nr_option_rows; i++) {
			if (!option_is_of(&option_rows[i], (enum command_id)k))
				continue;
			snprintf(option, sizeof(option), "--%s", option_rows[i].name);
			look((enum command_id)k, &option_rows[i], option);
		}
}

static void test_values(void **state)
{
	(void)state;
	unsetenv("RDMATENSOR_DEVICE_PATH");
	each_row(check_row);
}

static void check_letter(enum command_id command, const struct option_row *row, const char *option)
{
	char letter[3] = { '-', row->letter };

	(void)option;
	if (!row->letter || row->kind == OPTION_HELP)
		return;
	if (row->kind == OPTION_FLAG) {
		takes(command, letter, NULL);
		assert_true(got.flag);
	} else if (row->kind == OPTION_NUMBER) {
		takes(command, letter, "7");
		assert_int_equal(got.number, 7);
	} else {
		takes(command, letter, "1");
	}
}

static void test_letters(void **state)
{
	(void)state;
	each_row(check_letter);
}

static void check_missing(enum command_id command, const struct option_row *row,
			  const char *option)
{
	char given[64];

	if (row->arg) {
		assert_int_equal(parse_one(command, option, NULL), EXIT_USAGE);
		assert_contains(messages, "requires an argument");
		assert_contains(messages, row->name);
		return;
	}
	snprintf(given, sizeof(given), "%s=1", option);
	assert_int_equal(parse_one(command, given, NULL), EXIT_USAGE);
	assert_contains(messages, "doesn't allow an argument");
}

static void test_missing(void **state)
{
	(void)state;
	each_row(check_missing);
}

static void test_unknown(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < NR_COMMANDS; i++) {
		assert_int_equal(parse_one((enum command_id)i, "--no-such", NULL), EXIT_USAGE);
		assert_contains(messages, "unrecognized option");
		assert_contains(messages, "--help'.\n");
		assert_int_equal(parse_one((enum command_id)i, "-Z", NULL), EXIT_USAGE);
		assert_contains(messages, "invalid option");
	}
	/* An option of another command is none */
	assert_int_equal(parse_one(COMMAND_SERVE, "--rows", "0:1"), EXIT_USAGE);
	assert_int_equal(parse_one(COMMAND_SHOW, "--device", "x"), EXIT_USAGE);
	/* The letter of one is another option of the next */
	takes(COMMAND_TOP, "-d", "2");
	assert_int_equal(got.ns, 2000000000);
	takes(COMMAND_INFO, "-d", "2");
	assert_string_equal(got.bytes, "2");
}

static void test_presets(void **state)
{
	struct option_place places[64] = { 0 };
	char *argv[] = { "rdmatensor test", NULL };
	size_t i, nr = 0;
	int64_t numbers[64];
	int status;

	(void)state;
	memset(&got, 0, sizeof(got));
	for (i = 0; i < nr_option_rows; i++) {
		if (!option_is_of(&option_rows[i], COMMAND_FETCH))
			continue;
		fill_place(&places[nr], &option_rows[i]);
		if (option_rows[i].kind == OPTION_NUMBER)
			places[nr].number = &numbers[i];
		nr++;
	}
	optind = 0;
	assert_true(options_parse(COMMAND_FETCH, places, nr, 1, argv, &status));
	assert_int_equal(status, EXIT_OK);
	for (i = 0; i < nr_option_rows; i++)
		if (option_is_of(&option_rows[i], COMMAND_FETCH) && option_rows[i].preset &&
		    option_rows[i].kind == OPTION_NUMBER)
			assert_int_equal(numbers[i], atoll(option_rows[i].preset));
	assert_int_equal(got.ns, UINT64_C(30000000000));
	/* A text that is not given is its variable's */
	assert_string_equal(got.arg, FAKE_PATH);
	takes(COMMAND_INFO, "--device-file", "/dev/other");
	assert_string_equal(got.text, "/dev/other");
}

static void check_help(enum command_id command, const struct option_row *row, const char *option)
{
	char line[OPTION_TEXT_MAX], said[OPTION_TEXT_MAX];

	assert_int_equal(RUN(command_runs[command], "--help"), EXIT_OK);
	assert_string_equal(messages, "");
	assert_contains(text, commands[command].usage);
	assert_contains(text, option);
	option_expand(row, row->help, said);
	said[strcspn(said, "\n")] = '\0';
	assert_contains(text, said);
	snprintf(line, sizeof(line), "%s%s%s ", option, row->arg ? " " : "",
		 row->arg ? row->arg : "");
	assert_contains(text, line);
	assert_null(strchr(said, '{'));
	if (row->man)
		assert_null(strchr(option_expand(row, row->man, said), '{'));
}

static void test_help(void **state)
{
	int i;

	(void)state;
	each_row(check_help);
	/* A variable that is wrong stands in nobody's way to the help */
	setenv("RDMA_QP_SL", "99", 1);
	each_row(check_help);
	for (i = 0; i <= COMMAND_DOCTOR; i++) {
		assert_int_equal(RUN(command_runs[i], "-j"), EXIT_USAGE);
		assert_contains(messages, "RDMA_QP_SL=99");
	}
	unsetenv("RDMA_QP_SL");
}

int main(void)
{
#define test(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		test(test_values),
		test(test_letters),
		test(test_missing),
		test(test_unknown),
		test(test_presets),
		test(test_help),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
