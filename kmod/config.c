// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters.
 *
 * One table: each has a name, a default, a range, and a place in START. The
 * default is a module parameter, held to the range where it is set, and read
 * when a context starts. A field of START that is 0, or has no flag, where 0 is
 * a value of its own, takes the default.
 */
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include "config.h"
#include "ring.h"
#include "wire.h"

/*
 * P(name, default, least, most, flag, power of two, help): flag is the one of START
 * that says that the field is meant; 0: a field that is not 0 is.
 */
#define CONFIG_TABLE(P) \
	P(ring_entries, 4096, 16, RDMATENSOR_RING_ENTRIES_MAX, 0, false, \
	  "entries of a context's completion ring, rounded up to a power of two") \
	P(queue_depth, 1024, 16, 16384, 0, false, \
	  "RDMA_QP_QUEUE_DEPTH: work requests of each queue of a lane") \
	P(timeout, 14, 1, 31, 0, false, \
	  "RDMA_QP_TIMEOUT: local ack timeout is 4.096 us << timeout") \
	P(retry_count, 7, 0, 7, RDMATENSOR_START_RETRY_COUNT, false, \
	  "RDMA_QP_RETRY_COUNT: transport retries") \
	P(rnr_retry, 7, 0, 7, RDMATENSOR_START_RNR_RETRY, false, \
	  "receiver-not-ready retries, 7: no end") \
	P(sl, 0, 0, 7, 0, false, "RDMA_QP_SL: service level") \
	P(traffic_class, 0, 0, 255, 0, false, "RDMA_TRAFFIC_CLASS: of the GRH") \
	P(msg_slots, 64, 1, 1024, 0, true, \
	  "slots of a message buffer; 1: one control message at a time") \
	P(msg_slot_bytes, 4096, 1024, 65536, 0, true, "bytes of a slot") \
	P(ack_batch, 0, 0, 1024, 0, false, \
	  "messages that one ack tells, at most msg_slots; 0: half of msg_slots") \
	P(lanes, 1, 1, RDMATENSOR_LANES_MAX, 0, false, \
	  "queue pairs of a channel that this side connects") \
	P(stripe_bytes, 1048576, 1, U32_MAX, 0, false, \
	  "a tensor of more bytes is cut over the lanes") \
	P(max_channels, 256, 1, 4096, 0, false, "channels of a context at the same time") \
	P(handshake_ms, 10000, 100, 600000, 0, false, \
	  "bound on the set-up of a channel, in milliseconds") \
	P(cancel_ms, 5000, 100, 600000, 0, false, \
	  "bound on a peer's answer to a cancelled fetch, in milliseconds") \
	P(probe_ms, 2000, 10, 600000, 0, false, \
	  "a channel that is quiet for so long is probed, in milliseconds")

/**
 * struct config_param - one parameter
 * @name: of the module parameter and of START's field
 * @value: the default of new contexts
 * @least: smallest value
 * @most: greatest value
 * @flag: see CONFIG_TABLE
 * @pow2: must be a power of two
 */
struct config_param {
	const char *name;
	u32 value;
	u32 least;
	u32 most;
	u32 flag;
	bool pow2;
};

static bool config_in_range(const struct config_param *param, u64 value)
{
	return value >= param->least && value <= param->most &&
	       (!param->pow2 || is_power_of_2(value));
}

static int config_set(const char *text, const struct kernel_param *kp)
{
	struct config_param *param = kp->arg;
	unsigned int value;
	int ret;

	ret = kstrtouint(text, 0, &value);
	if (ret || !config_in_range(param, value)) {
		pr_err(KBUILD_MODNAME ": parameter %s: '%s' is not a number from %u to %u%s\n",
		       param->name, strim((char *)text), param->least, param->most,
		       param->pow2 ? " that is a power of two" : "");
		return ret ?: -EINVAL;
	}
	WRITE_ONCE(param->value, value);
	return 0;
}

static int config_get(char *buffer, const struct kernel_param *kp)
{
	struct config_param *param = kp->arg;

	return sysfs_emit(buffer, "%u\n", READ_ONCE(param->value));
}

static const struct kernel_param_ops config_ops = {
	.set = config_set,
	.get = config_get,
};

#define CONFIG_PARAM(_name, _value, _least, _most, _flag, _pow2, _help) \
	static struct config_param config_##_name = { \
		.name = #_name, .value = _value, .least = _least, .most = _most, \
		.flag = _flag, .pow2 = _pow2, \
	}; \
	module_param_cb(_name, &config_ops, &config_##_name, 0644); \
	MODULE_PARM_DESC(_name, _help " (" #_least ".." #_most ", default " #_value ")");

CONFIG_TABLE(CONFIG_PARAM)

static int config_take(const struct config_param *param, const struct rdmatensor_start *start,
		       u64 *field, char *cause, size_t room)
{
	bool meant = param->flag ? start->flags & param->flag : *field;

	if (!meant)
		*field = READ_ONCE(param->value);
	if (config_in_range(param, *field))
		return 0;
	snprintf(cause, room, "START: %s %llu is out of range: %u..%u%s", param->name, *field,
		 param->least, param->most, param->pow2 ? ", a power of two" : "");
	return -EINVAL;
}

int rdmatensor_config_start(struct rdmatensor_start *start,
			    struct rdmatensor_channel_params *params)
{
	u64 value;
	int ret;

	if (start->flags & ~RDMATENSOR_START_FLAGS) {
		snprintf(start->cause, sizeof(start->cause),
			 "START: unknown flags set; use a newer module");
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

#define CONFIG_FIELD(_name, ...) \
	value = start->_name; \
	ret = config_take(&config_##_name, start, &value, start->cause, \
			  sizeof(start->cause)); \
	if (ret) \
		return ret; \
	start->_name = value;

	CONFIG_TABLE(CONFIG_FIELD)

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

	params->queue_depth = start->queue_depth;
	params->timeout = start->timeout;
	params->retry_count = start->retry_count;
	params->rnr_retry = start->rnr_retry;
	params->sl = start->sl;
	params->traffic_class = start->traffic_class;
	params->msg_slots = start->msg_slots;
	params->msg_slot_bytes = start->msg_slot_bytes;
	params->ack_batch = start->ack_batch;
	params->stripe_bytes = start->stripe_bytes;
	params->cancel_ms = start->cancel_ms;
	params->probe_ms = start->probe_ms;
	return 0;
}
