// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Command lines and environments: strings with a zero behind each, of which those that
 * begin with RDMA and have a = are variables. Up to where a command would begin, for
 * begun.c is in place of all that it would do. Whatever comes:
 * - the status is one of the tool's, and a refusal says on standard error what is refused,
 *   points to --help, prints nothing, and nothing has begun;
 * - what began has START's fields within their ranges (begun.c);
 * - JSON is JSON.
 */
#include <string.h>
#include <unistd.h>

#include "begun.h"
#include "fuzz.h"
#include "tool/common/params.h"
#include "words.h"

/* main.c's main() */
int tool_main(int argc, char **argv);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#define STRINGS_MAX 40

static const char *const commands[] = {
	"serve", "fetch", "perf", "gather", "info", "doctor", "show", "top", "set", "monitor",
	"domain", "ls", "metrics",
};

enum outcome { HELPED, REFUSED, BEGUN, NR_OUTCOMES };

static const char *const outcomes[NR_OUTCOMES] = { "helps", "refuses", "begins" };

static unsigned int kinds[NR(commands)][NR_OUTCOMES];
static unsigned int kind_no_command, kind_environment, kind_json;

void fuzz_init(void)
{
	size_t i;
	int k;

	for (i = 0; i < NR(commands); i++)
		for (k = 0; k < NR_OUTCOMES; k++)
			kinds[i][k] = to_reach("%s %s", commands[i], outcomes[k]);
	kind_no_command = to_reach("no command, or an unknown one");
	kind_environment = to_reach("a variable is refused");
	kind_json = to_reach("JSON");
	begun_init();
}

struct line {
	char *argv[STRINGS_MAX + 1];
	int argc;
	char *env[STRINGS_MAX + 1];
	int nr_env;
};

static void add_string_of(struct line *line, const char *text)
{
	char *copy = strdup(text);

	HOLDS(copy);
	if (!strncmp(text, "RDMA", 4) && strchr(text, '='))
		line->env[line->nr_env++] = copy;
	else
		line->argv[line->argc++] = copy;
}

static void cut(struct line *line, const uint8_t *data, size_t size)
{
	size_t at = 0;
	char *text;
	int i;

	memset(line, 0, sizeof(*line));
	add_string_of(line, "rdmatensor");
	for (i = 1; i < STRINGS_MAX && at < size; i++) {
		size_t len = strnlen((const char *)data + at, size - at);

		text = strndup((const char *)data + at, len);
		HOLDS(text);
		add_string_of(line, text);
		free(text);
		at += len + 1;
	}
}

static void drop(char **strings, int nr)
{
	while (nr--)
		free(strings[nr]);
}

static int run(const struct line *line, struct said *said)
{
	/* getopt_long() and the commands change both */
	char *argv[STRINGS_MAX + 1], **former = environ;
	int ret;

	memcpy(argv, line->argv, sizeof(argv));
	begun = false;
	optind = 0;
	tool_name = "";
	said_begin(said);
	environ = (char **)line->env;
	ret = tool_main(line->argc, argv);
	environ = former;
	said_end(said);
	return ret;
}

static size_t command_of(const struct line *line)
{
	size_t i;

	for (i = 0; i < NR(commands); i++)
		if (line->argc > 1 && !strcmp(line->argv[1], commands[i]))
			break;
	return i;
}

static bool begins(const char *text, const char *with)
{
	return text && !strncmp(text, with, strlen(with));
}

static enum outcome judge(int ret, const struct said *said)
{
	static const char end[] = "--help'.\n";

	HOLDS(ret >= EXIT_OK && ret <= EXIT_USAGE);
	if (ret == EXIT_USAGE) {
		HOLDS(!said->out_len && !begun);
		HOLDS(begins(said->err, "Usage: ") ||
		      (said->err_len > sizeof(end) &&
		       !strcmp(said->err + said->err_len - sizeof(end) + 1, end)));
		/* A line of its own before it */
		HOLDS(strchr(said->err, '\n') < said->err + said->err_len - 1);
		return REFUSED;
	}
	/* doctor's words are on standard output */
	HOLDS(ret == EXIT_OK || said->err_len || said->out_len);
	if (ret == EXIT_OK && (begins(said->out, "Usage: ") || begins(said->out, "rdmatensor ")) &&
	    !begun) {
		HOLDS(!said->err_len);
		return HELPED;
	}
	return BEGUN;
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct line line;
	struct said said;
	size_t command;
	int ret;

	cut(&line, data, size);
	command = command_of(&line);
	ret = run(&line, &said);
	if (command < NR(commands))
		reached(kinds[command][judge(ret, &said)]);
	else if (judge(ret, &said) != BEGUN)
		reached(kind_no_command);
	else
		HOLDS(!"something began without a command");
	/* Unless it is what was refused */
	if (ret == EXIT_USAGE && strstr(said.err, ": environment: ") &&
	    !memmem(data, size, "environment", 11))
		reached(kind_environment);
	if (begins(said.out, "{") || begins(said.out, "[")) {
		HOLDS(check_json_lines(said.out, NULL) == 1);
		reached(kind_json);
	}
	said_free(&said);
	drop(line.argv, line.argc);
	drop(line.env, line.nr_env);
}

/* Another setting, which libFuzzer takes for the same: one code sets them all */
static size_t other_setting(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	const struct param *param = &params[seed % nr_params];
	const uint8_t *is = memchr(data, '=', size);
	const char *name = param->name;
	size_t at = is ? (size_t)(is - data) : 0;
	size_t len = strnlen((const char *)data + at, size - at);
	long long value[] = { param->least, param->least * 2, param->least + 1, param->most - 1 };
	char setting[128];

	for (; at && data[at - 1]; at--)
		len++;
	if (!is || data[at] == '-')
		return LLVMFuzzerMutate(data, size, max_size);
	if (len > 4 && !memcmp(data + at, "RDMA", 4))
		name = param->variable;
	snprintf(setting, sizeof(setting), "%s=%lld", name, value[seed / nr_params % NR(value)]);
	return replace_run(data, size, max_size, at, len, setting, strlen(setting));
}

/*
 * Of a command, or a setting's name, some letters would soon be others, and nothing looked at
 * behind it
 */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t kept = strnlen((const char *)data, size) + 1;

	if (seed % 4 == 1)
		return swap_number(data, size, max_size, seed / 4);
	if (seed % 4 == 2)
		return other_setting(data, size, max_size, seed / 4);
	if (seed % 16 == 0 || kept >= size || !strncmp((const char *)data, "RDMA", 4))
		kept = 0;
	return kept + LLVMFuzzerMutate(data + kept, size - kept, max_size - kept);
}

/*
 * Seeds: each option of each command that its help has, with values that some of them take
 */

struct text {
	char bytes[1024];
	size_t len;
};

static void append(struct text *text, const char *string)
{
	size_t len = strlen(string) + 1;

	HOLDS(text->len + len <= sizeof(text->bytes));
	memcpy(text->bytes + text->len, string, len);
	text->len += len;
}

/* What makes a command whole */
static void append_rest(struct text *text, const char *command)
{
	static const char *const rests[][5] = {
		{ "serve", "model.safetensors" }, { "fetch", "10.0.0.1", "-a", "-o", "x" },
		{ "perf", "10.0.0.1:18521" }, { "gather", "10.0.0.1", "10.0.0.2" },
		{ "info", "[::1]:18521" }, { "doctor", "10.0.0.1" }, { "show", "channels" },
		{ "set", "lanes", "2" },
	};
	size_t i, k;

	for (i = 0; i < NR(rests); i++)
		for (k = 1; !strcmp(rests[i][0], command) && k < NR(rests[i]) && rests[i][k]; k++)
			append(text, rests[i][k]);
}

static void seed_options(const char *command, const char *help)
{
	static const char *const values[] = {
		NULL, "1", "0", "auto", "4K,8M", "2.5", "0:64", "lanes=2", "lat", "power", ":18521",
	};
	const char *at = help;
	char option[64];
	size_t i, len;

	while ((at = strstr(at, " --"))) {
		at++;
		len = strspn(at, "-abcdefghijklmnopqrstuvwxyz");
		for (i = 0; i < NR(values); i++) {
			struct text text = { .len = 0 };

			append(&text, command);
			snprintf(option, sizeof(option), "%.*s%s%s", (int)len, at,
				 values[i] ? "=" : "", values[i] ? values[i] : "");
			append(&text, option);
			append_rest(&text, command);
			seed(text.bytes, text.len);
		}
		at += len;
	}
}

static void seed_setting(const struct param *param, const char *value)
{
	struct text text = { .len = 0 };
	char setting[128];

	snprintf(setting, sizeof(setting), "%s=%s", param->variable, value);
	append(&text, setting);
	append(&text, "info");
	append(&text, "--start");
	seed(text.bytes, text.len);

	text.len = 0;
	snprintf(setting, sizeof(setting), "%s=%s", param->other ? param->other : "RDMA_OTHER",
		 value);
	append(&text, setting);
	append(&text, "info");
	append(&text, "-S");
	append(&text, "--param");
	snprintf(setting, sizeof(setting), "%s=%s", param->name, value);
	append(&text, setting);
	seed(text.bytes, text.len);

	text.len = 0;
	append(&text, "set");
	append(&text, param->name);
	append(&text, value);
	seed(text.bytes, text.len);
}

/* The ends of each range, what is beyond them, and words */
static void seed_settings(void)
{
	char value[24];
	size_t i;
	int k;

	for (i = 0; i < nr_params; i++) {
		for (k = -1; k <= 1; k++) {
			snprintf(value, sizeof(value), "%lld", (long long)params[i].least + k);
			seed_setting(&params[i], value);
			snprintf(value, sizeof(value), "%lld", (long long)params[i].most + k);
			seed_setting(&params[i], value);
		}
		seed_setting(&params[i], "auto");
		seed_setting(&params[i], "none");
	}
}

static void seed_strings(const char *const *strings)
{
	struct text text = { .len = 0 };

	while (*strings)
		append(&text, *strings++);
	seed(text.bytes, text.len);
}

void fuzz_seeds(void)
{
	static const char *const others[][8] = {
		{ NULL }, { "" }, { "help" }, { "--version" }, { "-V" }, { "--help" },
		{ "RDMA_DEVICE=rxe0", "info", "-S", "-j" }, { "info", "-j" }, { "info" },
		{ "RDMATENSOR_DEVICE_PATH=/dev/null", "info" },
		{ "show", "contexts", "-j", "7" }, { "show", "pools" }, { "show", "requests" },
		{ "show", "tables" }, { "show", "params", "-j" }, { "show", "params", "-v" },
		{ "show", "params", "-j", "lanes", "mtu" }, { "monitor" }, { "monitor", "-j" },
		{ "top", "-n", "1", "-d", "0.5", "-j", "3" }, { "set", "device", "rxe0" },
		{ "gather", "--server", "--rows", "0:64", "--row-bytes", "1K" },
		{ "perf", "--server", "--max-size", "1M" }, { "doctor", "-j" },
		{ "fetch", "-d", "rxe0", "-i1", "-x", "2", "-o", "x" },
		{ "fetch", "10.0.0.1", "-o", "x", "w", "--", "-b" },
		{ "RDMA_QP_SL=1", "RDMA_SL=2", "info", "-S" },
		{ "domain", "show", "s" }, { "domain", "end", "s" }, { "domain", "show", "-j", "" },
		{ "ls", "10.0.0.1" }, { "ls", "10.0.0.1", "layer" }, { "ls", "-j", "-t", "1", "[::1]:7" },
		{ "metrics" }, { "metrics", "-f", "m", "--format", "openmetrics" },
		{ "metrics", "--listen", ":9", "--max-series", "7" },
	};
	struct line line = { .argv = { "rdmatensor" }, .argc = 1 };
	struct said said;
	size_t i;

	for (i = 0; i < NR(commands); i++) {
		line.argv[1] = (char *)commands[i];
		line.argv[2] = "--help";
		line.argc = 3;
		HOLDS(run(&line, &said) == EXIT_OK);
		seed_options(commands[i], said.out);
		said_free(&said);
	}
	seed_settings();
	for (i = 0; i < NR(others); i++)
		seed_strings(others[i]);
}
