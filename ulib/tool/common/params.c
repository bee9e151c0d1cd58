// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/params.h>
#include <rdmatensor/uapi.h>

#include "params.h"

#define PARAM(_name, _value, _least, _most, _kind, _flag, _help, _variable, _other, _unit) \
	{ #_name, _value, _least, _most, (_kind) & RDMATENSOR_PARAM_POW2, _variable, _other, \
	  _unit, _help },

const struct param params[] = {
	RDMATENSOR_PARAMS(PARAM)
	RDMATENSOR_PARAM_SWITCHES(PARAM)
	RDMATENSOR_PARAM_HOST(PARAM)
};

const char *params_dir = "/sys/module/rdmatensor/parameters";

const size_t nr_params = sizeof(params) / sizeof(params[0]);

const struct param *param_find(const char *name)
{
	size_t i;

	for (i = 0; i < nr_params; i++)
		if (!strcmp(params[i].name, name))
			return &params[i];
	return NULL;
}

const char *param_value_text(uint32_t value, char *text, size_t len)
{
	if (value == RDMATENSOR_PARAM_AUTO)
		snprintf(text, len, "auto");
	else
		snprintf(text, len, "%" PRIu32, value);
	return text;
}

const char *param_range_text(const struct param *param, char *text, size_t len)
{
	snprintf(text, len, "%" PRIu32 "..%" PRIu32 "%s%s", param->least, param->most,
		 param->power_of_two ? ", a power of two" : "",
		 param->value == RDMATENSOR_PARAM_AUTO ? ", or auto" : "");
	return text;
}

int param_read(const char *name, char *text, size_t len)
{
	char path[PATH_MAX];
	FILE *file;
	int err = 0;

	snprintf(path, sizeof(path), "%s/%s", params_dir, name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (!fgets(text, (int)len, file))
		err = ferror(file) ? -errno : -ENODATA;
	fclose(file);
	text[err ? 0 : strcspn(text, "\n")] = '\0';
	return err;
}

bool param_memlock(void)
{
	char value[16];

	return param_read("memlock", value, sizeof(value)) || strcmp(value, "0");
}

uint64_t param_ring_bytes(void)
{
	unsigned long wanted;
	uint64_t entries = 1;
	char value[16];

	if (param_read("ring_entries", value, sizeof(value)))
		return 0;
	wanted = strtoul(value, NULL, 10);
	while (entries < wanted)
		entries *= 2;
	/* One page, and the entries, in whole pages */
	return 4096 + ((entries * sizeof(struct rdmatensor_cqe) + 4095) & ~4095ULL);
}
