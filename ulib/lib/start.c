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

/* The struct before it had a mask, which is all that programs of that time have room for */
#define FIRST_SIZE offsetof(struct rdmatensor_start, set)

void rdmatensor_start_init_sized(struct rdmatensor_start *start, size_t size, const char *worker)
{
	char host[RDMATENSOR_WORKER_MAX - 12] = "worker";

	memset(start, 0, size);
	start->size = (uint32_t)size;
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
 * struct field - one parameter
 * @name: of it
 * @variable: in the environment
 * @other: an older name of that, or NULL
 * @offset: of its field in struct rdmatensor_start
 * @bytes: of the field; 0: RDMATENSOR_START_VALIDATE is it
 * @least: smallest value
 * @most: greatest value
 * @set: its bit in START's mask
 * @power_of_two: only powers of two
 * @automatic: may be RDMATENSOR_PARAM_AUTO
 */
struct field {
	const char *name;
	const char *variable;
	const char *other;
	size_t offset;
	size_t bytes;
	uint32_t least;
	uint32_t most;
	uint64_t set;
	bool power_of_two;
	bool automatic;
};

#define FIELD(_name, _default, _least, _most, _kind, _set, _help, _variable, _other, ...) \
	{ #_name, _variable, _other, offsetof(struct rdmatensor_start, _name), \
	  sizeof(((struct rdmatensor_start *)0)->_name), _least, _most, _set, \
	  (_kind) & RDMATENSOR_PARAM_POW2, (_default) == RDMATENSOR_PARAM_AUTO },
#define SWITCH(_name, _default, _least, _most, _kind, _set, _help, _variable, _other, ...) \
	{ #_name, _variable, _other, 0, 0, _least, _most, _set, false, false },

static const struct field fields[] = {
	RDMATENSOR_PARAMS(FIELD)
	RDMATENSOR_PARAM_SWITCHES(SWITCH)
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool has_mask(const struct rdmatensor_start *start)
{
	return start->size >= FIRST_SIZE + sizeof(start->set);
}

/* A struct of an older program ends before it */
static bool has_field(const struct rdmatensor_start *start, const struct field *field)
{
	return start->size >= field->offset + field->bytes;
}

static bool fits(const struct field *field, uint64_t value)
{
	if (field->automatic && value == RDMATENSOR_PARAM_AUTO)
		return true;
	return value >= field->least && value <= field->most &&
	       !(field->power_of_two && value & (value - 1));
}

/* The flags by which programs without a mask say that a field is meant */
static uint32_t flag_of(uint64_t set)
{
	return set == RDMATENSOR_SET_GID_INDEX ? RDMATENSOR_START_GID_INDEX :
	       set == RDMATENSOR_SET_RETRY_COUNT ? RDMATENSOR_START_RETRY_COUNT :
	       set == RDMATENSOR_SET_RNR_RETRY ? RDMATENSOR_START_RNR_RETRY : 0;
}

/* @value fits. A struct without a mask has room for what can be said without it */
static void set_field(struct rdmatensor_start *start, const struct field *field, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;
	bool masked = has_mask(start);

	if (!field->bytes)
		start->flags = value ? start->flags | RDMATENSOR_START_VALIDATE :
				       start->flags & ~RDMATENSOR_START_VALIDATE;
	else if (value == RDMATENSOR_PARAM_AUTO && !masked)
		memset((char *)start + field->offset, 0, field->bytes);
	else
		memcpy((char *)start + field->offset,
		       field->bytes == sizeof(value) ? (void *)&value : (void *)&narrow,
		       field->bytes);
	if (masked)
		start->set |= field->set;
	else if (value == RDMATENSOR_PARAM_AUTO)
		start->flags &= ~flag_of(field->set);
	else
		start->flags |= flag_of(field->set);
}

int rdmatensor_start_set(struct rdmatensor_start *start, const char *name, uint64_t value)
{
	size_t i;

	for (i = 0; i < NR_FIELDS; i++) {
		if (strcmp(fields[i].name, name))
			continue;
		if (!fits(&fields[i], value) || !has_field(start, &fields[i]))
			return -EINVAL;
		set_field(start, &fields[i], value);
		return 0;
	}
	return -ENOENT;
}

/* The environment is not trusted in a set-user-id program */
static const char *get(const char *name)
{
	const char *text = name ? secure_getenv(name) : NULL;

	return text && *text ? text : NULL;
}

static int parse(const struct field *field, const char *name,
		 const char *text, uint64_t *out, char *cause,
		 size_t cause_len)
{
	if (field->automatic && !strcmp(text, "auto")) {
		*out = RDMATENSOR_PARAM_AUTO;
		return 0;
	}
	if (!rt_parse_number(text, field->least, field->most, out) && fits(field, *out))
		return 0;
	return rt_cause(cause, cause_len, -EINVAL,
			"environment: %s=%s is refused: set a %s from %" PRIu32 " to %" PRIu32 "%s, or unset it",
			name, text, field->power_of_two ? "power of two" : "number", field->least,
			field->most, field->automatic ? ", or auto" : "");
}

static int take(struct rdmatensor_start *start, const struct field *field,
		char *cause, size_t cause_len)
{
	const char *name = field->variable;
	const char *text = get(name);
	const char *other = get(field->other);
	uint64_t value = 0, value_other = 0;
	int err;

	if (!text && !other)
		return 0;
	if (text) {
		err = parse(field, name, text, &value, cause, cause_len);
		if (err)
			return err;
	}
	if (other) {
		err = parse(field, field->other, other, &value_other, cause,
			    cause_len);
		if (err)
			return err;
		if (text && value != value_other)
			return rt_cause(cause, cause_len, -EINVAL,
					"environment: %s=%s and %s=%s are the same parameter: unset one of them",
					name, text, field->other, other);
		value = value_other;
	}
	set_field(start, field, value);
	return 0;
}

/* Whether the program has chosen a value already, with the mask or without it */
static bool is_chosen(const struct rdmatensor_start *start, const struct field *field)
{
	static const uint64_t unset;

	if (has_mask(start) && start->set & field->set)
		return true;
	if (!field->bytes)
		return start->flags & RDMATENSOR_START_VALIDATE;
	return start->flags & flag_of(field->set) ||
	       memcmp((const char *)start + field->offset, &unset, field->bytes);
}

static int from_env(struct rdmatensor_start *start, bool leave_chosen, char *cause,
		    size_t cause_len)
{
	const char *device = get("RDMA_DEVICE");
	struct rdmatensor_start work;
	size_t i, size;
	int err;

	/* No more than the program has */
	size = start->size < sizeof(work) ? start->size : sizeof(work);
	if (size < FIRST_SIZE)
		return rt_cause(cause, cause_len, -EINVAL,
				"environment: START's argument is of %" PRIu32 " bytes: begin with rdmatensor_start_init()",
				start->size);
	memcpy(&work, start, size);
	if (device && !(leave_chosen && work.device_name[0])) {
		if (strlen(device) >= sizeof(work.device_name))
			return rt_cause(cause, cause_len, -EINVAL,
					"environment: RDMA_DEVICE=%s is refused: a device name has at most %zu bytes, see `rdma link`",
					device, sizeof(work.device_name) - 1);
		rt_copy_string(work.device_name, sizeof(work.device_name),
			       device);
	}
	for (i = 0; i < NR_FIELDS; i++) {
		if (!has_field(&work, &fields[i]) || (leave_chosen && is_chosen(&work, &fields[i])))
			continue;
		err = take(&work, &fields[i], cause, cause_len);
		if (err)
			return err;
	}
	memcpy(start, &work, size);
	return 0;
}

int rdmatensor_start_from_env(struct rdmatensor_start *start, char *cause, size_t cause_len)
{
	return from_env(start, false, cause, cause_len);
}

int rdmatensor_start_rest_from_env(struct rdmatensor_start *start, char *cause, size_t cause_len)
{
	return from_env(start, true, cause, cause_len);
}

int rdmatensor_start_listen(struct rdmatensor_start *start, const char *addr,
			    char *cause, size_t cause_len)
{
	return rt_start_listen(start, addr, 0, cause, cause_len);
}

int rt_start_listen(struct rdmatensor_start *start, const char *addr, uint16_t default_port,
		    char *cause, size_t cause_len)
{
	uint8_t parsed[sizeof(start->listen_addr)];
	int err;

	err = rdmatensor_parse_addr(addr, default_port, 1, parsed, cause, cause_len);
	if (err)
		return err;
	memcpy(start->listen_addr, parsed, sizeof(parsed));
	start->flags |= RDMATENSOR_START_LISTEN;
	return 0;
}
