// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include "fill.h"
#include "tool/common/params.h"

void params_markdown(void)
{
	char value[16], range[64];
	size_t i;

	printf("| parameter | default | range | unit | environment | |\n"
	       "|---|---|---|---|---|---|\n");
	for (i = 0; i < nr_params; i++) {
		const struct param *param = &params[i];

		printf("| %s | %s | %s | %s | %s%s%s | %s |\n", param->name,
		       param_value_text(param->value, value, sizeof(value)),
		       param_range_text(param, range, sizeof(range)), param->unit,
		       param->variable, param->other ? ", " : "",
		       param->other ? param->other : "", param->help);
	}
}

void params_man(void)
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

/* Comments of lines that say what is true without them */
void params_modprobe(void)
{
	char value[16], range[64];
	size_t i;

	for (i = 0; i < nr_params; i++) {
		const struct param *param = &params[i];

		printf("\n# %s (%s%s%s)\n#options rdmatensor %s=%s\n", param->help,
		       param_range_text(param, range, sizeof(range)), *param->unit ? " " : "",
		       param->unit, param->name, param_value_text(param->value, value, sizeof(value)));
	}
}
