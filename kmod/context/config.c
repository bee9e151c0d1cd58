// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters, drawn from the table in rdmatensor_params.h.
 *
 * The default of each is a module parameter, checked against its range where it is set,
 * and read when a context starts. A field of START that is 0 and not in its mask takes the
 * default; "auto" is resolved where the value is used.
 */
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include "context/config.h"
#include "core/ring.h"
#include "core/wire.h"
#include "rdmatensor_params.h"

static_assert(RDMATENSOR_LANES_MAX == 8, "the table's range of lanes");
static_assert(RDMATENSOR_RING_ENTRIES_MAX == 1048576, "the table's range of ring_entries");

/**
 * struct config_param - one parameter
 * @name: of the module parameter and of START's field
 * @value: the default of new contexts; RDMATENSOR_PARAM_AUTO
 * @least: smallest value
 * @most: greatest value
 * @set: its bit in START's mask; 0: no field of START
 * @pow2: must be a power of two
 * @automatic: may be RDMATENSOR_PARAM_AUTO
 */
struct config_param {
	const char *name;
	u32 value;
	u32 least;
	u32 most;
	u64 set;
	bool pow2;
	bool automatic;
};

static bool config_in_range(const struct config_param *param, u64 value)
{
	return value >= param->least && value <= param->most &&
	       (!param->pow2 || is_power_of_2(value));
}

static int config_set(const char *text, const struct kernel_param *kp)
{
	struct config_param *param = kp->arg;
	unsigned int value = RDMATENSOR_PARAM_AUTO;
	int ret = 0;

	if (!param->automatic || !sysfs_streq(text, "auto")) {
		ret = kstrtouint(text, 0, &value);
		if (!ret && !config_in_range(param, value))
			ret = -EINVAL;
	}
	if (ret) {
		pr_err(KBUILD_MODNAME ": parameter %s: '%.*s' is refused: give a number from %u to %u%s%s\n",
		       param->name, (int)strcspn(text, "\n"), text, param->least, param->most,
		       param->pow2 ? " that is a power of two" : "",
		       param->automatic ? ", or auto" : "");
		return ret;
	}
	WRITE_ONCE(param->value, value);
	return 0;
}

static int config_get(char *buffer, const struct kernel_param *kp)
{
	struct config_param *param = kp->arg;
	u32 value = READ_ONCE(param->value);

	if (value == RDMATENSOR_PARAM_AUTO)
		return sysfs_emit(buffer, "auto\n");
	return sysfs_emit(buffer, "%u\n", value);
}

static const struct kernel_param_ops config_ops = {
	.set = config_set,
	.get = config_get,
};

#define CONFIG_PARAM(_name, _value, _least, _most, _kind, _set, _help, ...) \
	static struct config_param config_##_name = { \
		.name = #_name, .value = _value, .least = _least, .most = _most, \
		.set = _set, .pow2 = (_kind) & RDMATENSOR_PARAM_POW2, \
		.automatic = (_value) == RDMATENSOR_PARAM_AUTO, \
	}; \
	module_param_cb(_name, &config_ops, &config_##_name, 0644); \
	MODULE_PARM_DESC(_name, _help " (" #_least ".." #_most ")");

RDMATENSOR_PARAMS(CONFIG_PARAM)
RDMATENSOR_PARAM_SWITCHES(CONFIG_PARAM)
RDMATENSOR_PARAM_HOST(CONFIG_PARAM)

/* Each has a bit of its own, and there are no others */
#define CONFIG_SUM(_name, _value, _least, _most, _kind, _set, ...) + (_set)
#define CONFIG_OR(_name, _value, _least, _most, _kind, _set, ...) | (_set)
static_assert((0 RDMATENSOR_PARAMS(CONFIG_SUM) RDMATENSOR_PARAM_SWITCHES(CONFIG_SUM)) ==
	      RDMATENSOR_SET_ALL);
static_assert((0 RDMATENSOR_PARAMS(CONFIG_OR) RDMATENSOR_PARAM_SWITCHES(CONFIG_OR)) ==
	      RDMATENSOR_SET_ALL);

static char config_device[sizeof_field(struct rdmatensor_start, device_name)];
static DEFINE_MUTEX(config_device_lock);

static int config_device_set(const char *text, const struct kernel_param *kp)
{
	size_t len = strcspn(text, "\n");

	if (len >= sizeof(config_device) || strcspn(text, " /\t") < len) {
		pr_err(KBUILD_MODNAME ": parameter device: '%.*s' is refused: give the name of an RDMA device, of at most %zu bytes, or nothing: the only active one\n",
		       (int)len, text, sizeof(config_device) - 1);
		return -EINVAL;
	}
	mutex_lock(&config_device_lock);
	memset(config_device, 0, sizeof(config_device));
	memcpy(config_device, text, len);
	mutex_unlock(&config_device_lock);
	return 0;
}

static int config_device_get(char *buffer, const struct kernel_param *kp)
{
	int ret;

	mutex_lock(&config_device_lock);
	ret = sysfs_emit(buffer, "%s\n", config_device);
	mutex_unlock(&config_device_lock);
	return ret;
}

static const struct kernel_param_ops config_device_ops = {
	.set = config_device_set,
	.get = config_device_get,
};

module_param_cb(device, &config_device_ops, NULL, 0644);
MODULE_PARM_DESC(device, "RDMA device; empty: the only one that has an active port");

/* Flags that mark a field as set, as programs without the mask do */
static const struct {
	u32 flag;
	u64 set;
} config_flags[] = {
	{ RDMATENSOR_START_GID_INDEX, RDMATENSOR_SET_GID_INDEX },
	{ RDMATENSOR_START_RETRY_COUNT, RDMATENSOR_SET_RETRY_COUNT },
	{ RDMATENSOR_START_RNR_RETRY, RDMATENSOR_SET_RNR_RETRY },
};

/*
 * @flagged: fields that are meant only if flags or mask say so; @flags: those of them of
 * which the flags do. After it the mask has the field if that has a value
 */
static int config_take(const struct config_param *param, struct rdmatensor_start *start,
		       u64 flagged, u64 flags, u64 *field)
{
	bool masked = start->set & param->set;
	bool meant = masked || (flagged & param->set ? flags & param->set : *field);

	if (!meant)
		*field = READ_ONCE(param->value);
	if (param->automatic && *field == RDMATENSOR_PARAM_AUTO && (masked || !meant)) {
		*field = 0;
		start->set &= ~param->set;
		return 0;
	}
	start->set |= param->set;
	if (config_in_range(param, *field))
		return 0;
	snprintf(start->cause, sizeof(start->cause), "START: %s %llu is out of range: %u..%u%s%s",
		 param->name, *field, param->least, param->most,
		 param->pow2 ? ", a power of two" : "", param->automatic ? ", or auto" : "");
	return -EINVAL;
}

u32 rdmatensor_config_max_contexts(void)
{
	return READ_ONCE(config_max_contexts.value);
}

bool rdmatensor_config_memlock(void)
{
	return READ_ONCE(config_memlock.value);
}

/* What no parameter's range says. Return: 0, -EINVAL with the cause */
static int config_check_start(struct rdmatensor_start *start)
{
	if (start->flags & ~RDMATENSOR_START_FLAGS || start->set & ~RDMATENSOR_SET_ALL) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: unknown flags 0x%x, or fields 0x%llx in the mask, are set: clear them, or use a newer module",
			 start->flags & ~RDMATENSOR_START_FLAGS,
			 start->set & ~RDMATENSOR_SET_ALL);
		return -EINVAL;
	}
	if (start->__reserved) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: a reserved field is set: clear it, or use a newer module");
		return -EINVAL;
	}
	if (!rdmatensor_wire_worker_ok(start->worker,
				       strnlen(start->worker, sizeof(start->worker)))) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: the worker name is empty, longer than %zu bytes, or has control characters",
			 sizeof(start->worker) - 1);
		return -EINVAL;
	}
	if (strnlen(start->device_name, sizeof(start->device_name)) ==
	    sizeof(start->device_name)) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: the device name is not zero-terminated");
		return -EINVAL;
	}
	return 0;
}

/* Each field within its range, or with its default. Return: 0, -EINVAL with the cause */
static int config_fill_start(struct rdmatensor_start *start)
{
	u64 value, flagged = 0, flags = 0;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(config_flags); i++) {
		flagged |= config_flags[i].set;
		if (start->flags & config_flags[i].flag)
			flags |= config_flags[i].set;
	}
#define CONFIG_FIELD(_name, ...) \
	value = start->_name; \
	ret = config_take(&config_##_name, start, flagged, flags, &value); \
	if (ret) \
		return ret; \
	start->_name = value;

	RDMATENSOR_PARAMS(CONFIG_FIELD)

	for (i = 0; i < ARRAY_SIZE(config_flags); i++)
		if (start->set & config_flags[i].set)
			start->flags |= config_flags[i].flag;
	if (!(start->set & RDMATENSOR_SET_VALIDATE) && READ_ONCE(config_validate.value))
		start->flags |= RDMATENSOR_START_VALIDATE;
	start->set |= RDMATENSOR_SET_VALIDATE;
	/* Who joins a domain takes its device */
	if (!start->device_name[0] && !(start->flags & RDMATENSOR_START_DOMAIN)) {
		mutex_lock(&config_device_lock);
		memcpy(start->device_name, config_device, sizeof(start->device_name));
		mutex_unlock(&config_device_lock);
	}
	return 0;
}

/* Fields that depend on each other. Return: 0, -EINVAL with the cause */
static int config_relate_start(struct rdmatensor_start *start)
{
	start->ring_entries = roundup_pow_of_two(start->ring_entries);
	if (!start->ack_batch)
		start->ack_batch = max(start->msg_slots / 2, 1U);
	if (start->ack_batch > start->msg_slots) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: ack_batch %u is out of range: 1..%u, the msg_slots",
			 start->ack_batch, start->msg_slots);
		return -EINVAL;
	}
	if (start->queue_depth < 2 * start->msg_slots + 8) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: queue_depth %u is out of range: at least %u for %u msg_slots",
			 start->queue_depth, 2 * start->msg_slots + 8, start->msg_slots);
		return -EINVAL;
	}
	return 0;
}

int rdmatensor_config_start(struct rdmatensor_start *start,
			    struct rdmatensor_channel_params *params)
{
	int ret;

	ret = config_check_start(start);
	if (!ret)
		ret = config_fill_start(start);
	if (!ret)
		ret = config_relate_start(start);
	if (ret)
		return ret;

	params->lanes = start->lanes;
	params->connect_ms = start->handshake_ms;
	params->queue_depth = start->queue_depth;
	params->timeout = start->timeout;
	params->retry_count = start->retry_count;
	params->rnr_retry = start->rnr_retry;
	params->sl = start->set & RDMATENSOR_SET_SL ? start->sl : RDMATENSOR_AS_RESOLVED;
	params->traffic_class = start->set & RDMATENSOR_SET_TRAFFIC_CLASS ?
				start->traffic_class : RDMATENSOR_AS_RESOLVED;
	params->msg_slots = start->msg_slots;
	params->msg_slot_bytes = start->msg_slot_bytes;
	params->ack_batch = start->ack_batch;
	params->stripe_bytes = start->stripe_bytes;
	params->lane_bytes = start->lane_bytes;
	params->cancel_ms = start->cancel_ms;
	params->probe_ms = start->probe_ms;
	params->cq_poll = start->cq_poll == 2 ? IB_POLL_WORKQUEUE : IB_POLL_SOFTIRQ;
	params->strict = start->mr_mode == RDMATENSOR_MR_MODE_STRICT;
	params->unlisted = start->list_mode == RDMATENSOR_LIST_MODE_NONE;
	return 0;
}
