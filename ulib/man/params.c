// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * params markdown | man: the table of parameters, for the README and for
 * rdmatensor-params(7). From the header that module and library are built from, so
 * that none of them can differ.
 */
#include <stdio.h>
#include <string.h>

#include "tool/common/params.h"

static void markdown(void)
{
	char value[16], range[64];
	size_t i;

	printf("| parameter | default | range | unit | environment | |\n|---|---|---|---|---|---|\n");
	for (i = 0; i < nr_params; i++) {
		const struct param *param = &params[i];

		printf("| %s | %s | %s | %s | %s%s%s | %s |\n", param->name,
		       param_value_text(param->value, value, sizeof(value)),
		       param_range_text(param, range, sizeof(range)), param->unit,
		       param->variable, param->other ? ", " : "",
		       param->other ? param->other : "", param->help);
	}
}

static void man(void)
{
	char value[16], range[64];
	size_t i;

	for (i = 0; i < nr_params; i++) {
		const struct param *param = &params[i];

		printf(".TP\n.BR %s", param->name);
		if (*param->variable)
			printf(" \", \" %s", param->variable);
		if (param->other)
			printf(" \", \" %s", param->other);
		printf("\n%s.\n.br\nDefault %s; %s%s%s.\n", param->help,
		       param_value_text(param->value, value, sizeof(value)),
		       param_range_text(param, range, sizeof(range)), *param->unit ? "; in " : "",
		       param->unit);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "markdown"))
		markdown();
	else if (argc == 2 && !strcmp(argv[1], "man"))
		man();
	else
		return 2;
	return 0;
}
