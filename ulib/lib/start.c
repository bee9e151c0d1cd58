// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * START's argument: defaults, and the environment variables.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include <rdmatensor/params.h>

void rdmatensor_start_init(struct rdmatensor_start *start, const char *worker)
{
	char host[RDMATENSOR_WORKER_MAX - 12] = "worker";

	memset(start, 0, sizeof(*start));
	start->size = sizeof(*start);
	if (worker && *worker) {
		rt_copy_string(start->worker, sizeof(start->worker), worker);
		return;
	}
	gethostname(host, sizeof(host));
	host[sizeof(host) - 1] = '\0';
	snprintf(start->worker, sizeof(start->worker), "%s-%d", host,
		 (int)getpid());
}

/**
 * struct variable - one parameter in the environment
 * @name: of the variable
 * @other: an older name of it, or NULL
 * @offset: of its field in struct rdmatensor_start
 * @bytes: of the field; 0: it has none, @flag is it
 * @min: least value
 * @max: greatest value
 * @flag: START flag that says that the value is meant, or 0
 * @power_of_two: only powers of two
 */
struct variable {
	const char *name;
	const char *other;
	size_t offset;
	size_t bytes;
	uint32_t min;
	uint32_t max;
	uint32_t flag;
	bool power_of_two;
};

#define VARIABLE(_name, _default, _least, _most, _kind, _flag, _help, _variable, _other, ...) \
	{ _variable, _other, offsetof(struct rdmatensor_start, _name), \
	  sizeof(((struct rdmatensor_start *)0)->_name), _least, _most, _flag, \
	  (_kind) & RDMATENSOR_PARAM_POW2 },
#define SWITCH(_name, _default, _least, _most, _kind, _flag, _help, _variable, _other, ...) \
	{ _variable, _other, 0, 0, _least, _most, _flag, false },

static const struct variable variables[] = {
	RDMATENSOR_PARAMS(VARIABLE)
	RDMATENSOR_PARAM_SWITCHES(SWITCH)
};

/* The environment is not trusted in a set-user-id program */
static const char *get(const char *name)
{
	const char *text = name ? secure_getenv(name) : NULL;

	return text && *text ? text : NULL;
}

static int parse(const struct variable *var, const char *name,
		 const char *text, uint32_t *out, char *cause,
		 size_t cause_len)
{
	uint64_t value;
	int err;

	err = rt_parse_number(text, var->min, var->max, &value);
	if (!err && var->power_of_two && value & (value - 1))
		err = -EINVAL;
	if (err && var->power_of_two)
		return rt_cause(cause, cause_len, err,
				"environment: %s=%s is refused: set a power of two from %" PRIu32 " to %" PRIu32 ", or unset it",
				name, text, var->min, var->max);
	if (err)
		return rt_cause(cause, cause_len, err,
				"environment: %s=%s is refused: set a number from %" PRIu32 " to %" PRIu32 ", or unset it",
				name, text, var->min, var->max);
	*out = (uint32_t)value;
	return 0;
}

static int take(struct rdmatensor_start *start, const struct variable *var,
		char *cause, size_t cause_len)
{
	const char *name = var->name;
	const char *text = get(name);
	const char *other = get(var->other);
	uint32_t value = 0, value_other = 0;
	int err;

	if (!text && !other)
		return 0;
	if (text) {
		err = parse(var, name, text, &value, cause, cause_len);
		if (err)
			return err;
	}
	if (other) {
		err = parse(var, var->other, other, &value_other, cause,
			    cause_len);
		if (err)
			return err;
		if (text && value != value_other)
			return rt_cause(cause, cause_len, -EINVAL,
					"environment: %s=%s and %s=%s are the same parameter: unset one of them",
					name, text, var->other, other);
		value = value_other;
	}
	if (var->bytes == sizeof(uint64_t)) {
		uint64_t wide = value;

		memcpy((char *)start + var->offset, &wide, sizeof(wide));
	} else if (var->bytes) {
		memcpy((char *)start + var->offset, &value, sizeof(value));
	} else if (!value) {
		start->flags &= ~var->flag;
		return 0;
	}
	start->flags |= var->flag;
	return 0;
}

int rdmatensor_start_from_env(struct rdmatensor_start *start, char *cause,
			      size_t cause_len)
{
	struct rdmatensor_start work = *start;
	const char *device = get("RDMA_DEVICE");
	size_t i;
	int err;

	if (device) {
		if (strlen(device) >= sizeof(work.device_name))
			return rt_cause(cause, cause_len, -EINVAL,
					"environment: RDMA_DEVICE=%s is refused: a device name has at most %zu bytes, see `rdma link`",
					device, sizeof(work.device_name) - 1);
		rt_copy_string(work.device_name, sizeof(work.device_name),
			       device);
	}
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		err = take(&work, &variables[i], cause, cause_len);
		if (err)
			return err;
	}
	*start = work;
	return 0;
}

int rdmatensor_start_listen(struct rdmatensor_start *start, const char *addr,
			    char *cause, size_t cause_len)
{
	uint8_t parsed[sizeof(start->listen_addr)];
	int err;

	err = rdmatensor_parse_addr(addr, 0, 1, parsed, cause, cause_len);
	if (err)
		return err;
	memcpy(start->listen_addr, parsed, sizeof(parsed));
	start->flags |= RDMATENSOR_START_LISTEN;
	return 0;
}
