// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fill TEMPLATE: the template with the tables of the tool in it: a line @PARAMETERS@, @MODPROBE@,
 * @COMMANDS@, @OPTIONS COMMAND@, @CONTEXT OPTIONS@, @WORDS@ or @ZSH@ stands for what is made
 * of them. Module, library, tool and documents are made from the same tables, so that none of
 * them can differ.
 * fill --parameters: the table of Documentation/parameters.md.
 *
 * It runs where the tool is built, and not where the tool will run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fill.h"

/* False: nothing is known by that name */
static bool print_part(const char *name)
{
	static const char options[] = "OPTIONS ";

	if (!strcmp(name, "PARAMETERS"))
		params_man();
	else if (!strcmp(name, "MODPROBE"))
		params_modprobe();
	else if (!strcmp(name, "COMMANDS"))
		commands_man();
	else if (!strcmp(name, "CONTEXT OPTIONS"))
		context_options_man();
	else if (!strcmp(name, "WORDS"))
		completion_words();
	else if (!strcmp(name, "ZSH"))
		completion_zsh();
	else if (!strncmp(name, options, strlen(options)))
		return options_man(name + strlen(options));
	else
		return false;
	return true;
}

static int fill(const char *path, FILE *template)
{
	char line[1024];
	size_t len;

	while (fgets(line, sizeof(line), template)) {
		len = strlen(line);
		if (len < 3 || line[0] != '@' || line[len - 2] != '@') {
			fputs(line, stdout);
			continue;
		}
		line[len - 2] = '\0';
		if (!print_part(line + 1)) {
			fprintf(stderr, "fill: %s: there is no part \"%s\"\n", path, line + 1);
			return 1;
		}
	}
	if (!ferror(template))
		return 0;
	fprintf(stderr, "fill: %s: %s\n", path, strerror(errno));
	return 1;
}

static int fill_file(const char *path)
{
	FILE *template = fopen(path, "re");
	int err;

	if (!template) {
		fprintf(stderr, "fill: %s: %s\n", path, strerror(errno));
		return 1;
	}
	err = fill(path, template);
	fclose(template);
	return err;
}

int main(int argc, char **argv)
{
	int err = 0;

	if (argc != 2) {
		fputs("usage: fill {TEMPLATE | --parameters}\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--parameters"))
		params_markdown();
	else
		err = fill_file(argv[1]);
	if (!err && (fflush(stdout) || ferror(stdout))) {
		perror("fill: write");
		err = 1;
	}
	return err;
}
