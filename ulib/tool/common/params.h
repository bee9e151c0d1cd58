/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of parameters, for people.
 */
#ifndef TOOL_PARAMS_H
#define TOOL_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct param - one parameter, as rdmatensor/params.h has it
 * @name: of the module parameter
 * @value: default; RDMATENSOR_PARAM_AUTO
 * @least: smallest value
 * @most: greatest value
 * @power_of_two: only powers of two
 * @variable: in the environment; "": not there
 * @other: another name of it, or NULL
 * @unit: of the value, or ""
 * @help: what it is
 */
struct param {
	const char *name;
	uint32_t value;
	uint32_t least;
	uint32_t most;
	bool power_of_two;
	const char *variable;
	const char *other;
	const char *unit;
	const char *help;
};

/* All, in START's order; `device`, which is a name, is not among them */
extern const struct param params[];
extern const size_t nr_params;

/* NULL: there is none of that name */
const struct param *param_find(const char *name);
/* "64", or "auto" */
const char *param_value_text(uint32_t value, char *text, size_t len);
/* "1..1024, a power of two, or auto" */
const char *param_range_text(const struct param *param, char *text, size_t len);

/* The folder of the module's parameters in sysfs */
extern const char *params_dir;
/*
 * Current value of a parameter or of `device`, without the newline. 0 or a negative errno;
 * -ENOENT: the module is not loaded or does not have it
 */
int param_read(const char *name, char *text, size_t len);
/* Whether pools of kernel pages count as locked memory; also if the module does not say so */
bool param_memlock(void);
/* Bytes of the completion ring of a new context; 0: the module does not say */
uint64_t param_ring_bytes(void);

#endif
