// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <inttypes.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <string.h>

#include <rdmatensor/netlink.h>
#include <rdmatensor/rdmatensor.h>

#include "gid.h"
#include "json.h"
#include "netlink_attrs.h"
#include "output.h"

enum kind {
	NUMBER, WIDE, SIGNED, HEX, ERROR, TEXT, BYTES, FLAG, GID, ADDRESS, STATE, EVENT, COUNTERS,
	LATENCY, ERRORS, LANE, DTYPE, SHAPE
};

static const struct {
	const char *key;
	enum kind kind;
} attrs[] = {
	[RDMATENSOR_NL_A_EVENT] = { "event", EVENT },
	[RDMATENSOR_NL_A_CONTEXT] = { "context", NUMBER },
	[RDMATENSOR_NL_A_PID] = { "pid", NUMBER },
	[RDMATENSOR_NL_A_COMM] = { "comm", TEXT },
	[RDMATENSOR_NL_A_WORKER] = { "worker", TEXT },
	[RDMATENSOR_NL_A_INCARNATION] = { "incarnation", HEX },
	[RDMATENSOR_NL_A_DEVICE] = { "device", TEXT },
	[RDMATENSOR_NL_A_PORT] = { "port", NUMBER },
	[RDMATENSOR_NL_A_GID_INDEX] = { "gid_index", NUMBER },
	[RDMATENSOR_NL_A_GID] = { "gid", GID },
	[RDMATENSOR_NL_A_MTU] = { "mtu", NUMBER },
	[RDMATENSOR_NL_A_LISTEN_PORT] = { "listen_port", NUMBER },
	[RDMATENSOR_NL_A_CHOICE] = { "choice", TEXT },
	[RDMATENSOR_NL_A_CHANNELS] = { "channels", NUMBER },
	[RDMATENSOR_NL_A_POOLS] = { "pools", NUMBER },
	[RDMATENSOR_NL_A_COUNTERS] = { "counters", COUNTERS },
	[RDMATENSOR_NL_A_LATENCY] = { "latency_us", LATENCY },
	[RDMATENSOR_NL_A_ERRORS] = { "errors", ERRORS },
	[RDMATENSOR_NL_A_CHANNEL] = { "channel", NUMBER },
	[RDMATENSOR_NL_A_STATE] = { "state", STATE },
	[RDMATENSOR_NL_A_PEER] = { "peer", TEXT },
	[RDMATENSOR_NL_A_ADDR] = { "address", ADDRESS },
	[RDMATENSOR_NL_A_ACTIVE] = { "active", FLAG },
	[RDMATENSOR_NL_A_REQUESTS] = { "requests", NUMBER },
	[RDMATENSOR_NL_A_RESPONSES] = { "responses", NUMBER },
	[RDMATENSOR_NL_A_MSG_SLOTS] = { "msg_slots", NUMBER },
	[RDMATENSOR_NL_A_SENT] = { "sent", NUMBER },
	[RDMATENSOR_NL_A_CONSUMED] = { "consumed", NUMBER },
	[RDMATENSOR_NL_A_LANE] = { "lanes", LANE },
	[RDMATENSOR_NL_A_QPN] = { "qpn", NUMBER },
	[RDMATENSOR_NL_A_TIMEOUT] = { "timeout", NUMBER },
	[RDMATENSOR_NL_A_RETRY_COUNT] = { "retry_count", NUMBER },
	[RDMATENSOR_NL_A_RNR_RETRY] = { "rnr_retry", NUMBER },
	[RDMATENSOR_NL_A_SL] = { "sl", NUMBER },
	[RDMATENSOR_NL_A_TRAFFIC_CLASS] = { "traffic_class", NUMBER },
	[RDMATENSOR_NL_A_SEND_DEPTH] = { "send_depth", NUMBER },
	[RDMATENSOR_NL_A_RECV_DEPTH] = { "recv_depth", NUMBER },
	[RDMATENSOR_NL_A_POOL] = { "pool", NUMBER },
	[RDMATENSOR_NL_A_BYTES] = { "bytes", WIDE },
	[RDMATENSOR_NL_A_SEGMENTS] = { "segments", NUMBER },
	[RDMATENSOR_NL_A_USES] = { "uses", NUMBER },
	[RDMATENSOR_NL_A_REQUEST] = { "request", NUMBER },
	[RDMATENSOR_NL_A_REQUEST_STATE] = { "state", TEXT },
	[RDMATENSOR_NL_A_USER_DATA] = { "user_data", WIDE },
	[RDMATENSOR_NL_A_STEP] = { "step", SIGNED },
	[RDMATENSOR_NL_A_TENSOR] = { "tensor", BYTES },
	[RDMATENSOR_NL_A_AGE_NS] = { "age_ns", WIDE },
	[RDMATENSOR_NL_A_TABLE] = { "table", NUMBER },
	[RDMATENSOR_NL_A_EXPORT] = { "export", FLAG },
	[RDMATENSOR_NL_A_ROW_START] = { "row_start", WIDE },
	[RDMATENSOR_NL_A_ROW_END] = { "row_end", WIDE },
	[RDMATENSOR_NL_A_ROW_BYTES] = { "row_bytes", NUMBER },
	[RDMATENSOR_NL_A_OWNERS] = { "owners", NUMBER },
	[RDMATENSOR_NL_A_LANES_UP] = { "lanes_up", NUMBER },
	[RDMATENSOR_NL_A_ERROR] = { "error", ERROR },
	[RDMATENSOR_NL_A_TEXT] = { "text", TEXT },
	[RDMATENSOR_NL_A_COMP_VECTOR] = { "comp_vector", NUMBER },
	[RDMATENSOR_NL_A_READ_LANE] = { "read_lanes", LANE },
	[RDMATENSOR_NL_A_READS_IN] = { "reads_in", NUMBER },
	[RDMATENSOR_NL_A_READS_OUT] = { "reads_out", NUMBER },
	[RDMATENSOR_NL_A_WAIT_MS] = { "wait_ms", NUMBER },
	[RDMATENSOR_NL_A_PEERS] = { "peers", TEXT },
	[RDMATENSOR_NL_A_MEMORY] = { "memory", TEXT },
	[RDMATENSOR_NL_A_READ_ONLY] = { "read_only", FLAG },
	[RDMATENSOR_NL_A_UNREACHABLE] = { "unreachable", FLAG },
	[RDMATENSOR_NL_A_MR_MODE] = { "mr_mode", TEXT },
	[RDMATENSOR_NL_A_DOMAIN] = { "domain", NUMBER },
	[RDMATENSOR_NL_A_CONTEXTS] = { "contexts", NUMBER },
	[RDMATENSOR_NL_A_LASTING] = { "lasting", NUMBER },
	[RDMATENSOR_NL_A_DATA_TYPE] = { "dtype", DTYPE },
	[RDMATENSOR_NL_A_SHAPE] = { "shape", SHAPE },
	[RDMATENSOR_NL_A_DELIVERIES] = { "uses", NUMBER },
	[RDMATENSOR_NL_A_DEAD] = { "dead", FLAG },
};

#define NR_ATTRS ((int)(sizeof(attrs) / sizeof(attrs[0])))

static const char *const events[] = {
	[RDMATENSOR_NL_EVENT_CONTEXT_START] = "context start",
	[RDMATENSOR_NL_EVENT_CONTEXT_END] = "context end",
	[RDMATENSOR_NL_EVENT_CHANNEL_UP] = "channel up",
	[RDMATENSOR_NL_EVENT_CHANNEL_DOWN] = "channel down",
	[RDMATENSOR_NL_EVENT_PEER_MISBEHAVED] = "peer misbehaved",
	[RDMATENSOR_NL_EVENT_DEVICE_GONE] = "device gone",
	[RDMATENSOR_NL_EVENT_REQUEST_TIMEOUT] = "request timeout",
	[RDMATENSOR_NL_EVENT_CONNECT_WAITS] = "connect waits",
};

static const char *const states[] = {
	[RDMATENSOR_CHANNEL_CONNECTING] = "connecting",
	[RDMATENSOR_CHANNEL_UP] = "up",
	[RDMATENSOR_CHANNEL_CLOSING] = "closing",
	[RDMATENSOR_CHANNEL_DOWN] = "down",
};

static struct json_object *word(const char *const *words, size_t nr, uint32_t i)
{
	return i < nr && words[i] ? json_object_new_string(words[i]) :
				    json_object_new_int64(i);
}

static void add_attrs(struct json_object *object, struct nlattr *head, int len);

static struct json_object *counters(struct nlattr *nest)
{
	struct json_object *object = json_object_new_object();
	struct nlattr *attr;
	int left;

	nla_for_each_nested(attr, nest, left)
		if (nla_type(attr) >= 1 && nla_type(attr) <= RDMATENSOR_STAT_NR &&
		    nla_len(attr) >= (int)sizeof(uint64_t))
			add_number(object, rdmatensor_stat_name(nla_type(attr) - 1),
				   nla_get_u64(attr));
	return object;
}

/* "64": number of fetches that took at least 32 us and less than 64 us */
static struct json_object *latency(struct nlattr *nest)
{
	struct json_object *object = json_object_new_object();
	struct nlattr *attr;
	char below[24];
	int left;

	nla_for_each_nested(attr, nest, left) {
		if (nla_type(attr) < 1 || nla_type(attr) > RDMATENSOR_NL_LATENCY_NR ||
		    nla_len(attr) < (int)sizeof(uint64_t))
			continue;
		snprintf(below, sizeof(below), "%" PRIu64, UINT64_C(1) << (nla_type(attr) - 1));
		add_number(object, below, nla_get_u64(attr));
	}
	return object;
}

static struct json_object *errors(struct nlattr *nest)
{
	struct json_object *object = json_object_new_object();
	const char *name;
	struct nlattr *attr;
	int left;

	nla_for_each_nested(attr, nest, left) {
		if (nla_type(attr) < 1 || nla_len(attr) < (int)sizeof(uint64_t))
			continue;
		name = nla_type(attr) == 1 ? "other" : strerrorname_np(nla_type(attr) - 1);
		add_number(object, name ? name : "unknown", nla_get_u64(attr));
	}
	return object;
}

/* A type that a later module has is its number */
static struct json_object *data_type(uint32_t type)
{
	const char *name = rdmatensor_data_type_name(type);

	return name ? json_object_new_string(name) : json_object_new_int64(type);
}

static struct json_object *shape(struct nlattr *attr)
{
	struct json_object *dims = json_object_new_array();
	uint64_t dim;
	int at;

	for (at = 0; at + (int)sizeof(dim) <= nla_len(attr); at += (int)sizeof(dim)) {
		memcpy(&dim, (char *)nla_data(attr) + at, sizeof(dim));
		json_object_array_add(dims, json_object_new_uint64(dim));
	}
	return dims;
}

/* A shorter attribute is skipped */
static bool fits(const struct nlattr *attr, enum kind kind)
{
	static const int least[] = {
		[NUMBER] = 4, [WIDE] = 8, [SIGNED] = 8, [HEX] = 8, [ERROR] = 4, [GID] = 16,
		[ADDRESS] = 28, [STATE] = 4, [EVENT] = 4, [DTYPE] = 4,
	};

	return (size_t)kind >= sizeof(least) / sizeof(least[0]) || nla_len(attr) >= least[kind];
}

static struct json_object *value(struct nlattr *attr, enum kind kind)
{
	char text[128];

	switch (kind) {
	case NUMBER:
		return json_object_new_int64(nla_get_u32(attr));
	case WIDE:
		return json_object_new_uint64(nla_get_u64(attr));
	case SIGNED:
		return json_object_new_int64((int64_t)nla_get_u64(attr));
	case HEX:
		snprintf(text, sizeof(text), "%016" PRIx64, nla_get_u64(attr));
		return json_object_new_string(text);
	case ERROR:
		return json_object_new_int((int)nla_get_u32(attr));
	case TEXT:
		return json_object_new_string_len(nla_data(attr),
						  (int)strnlen(nla_data(attr), nla_len(attr)));
	case BYTES:
		/* A name may have zeros in it */
		return json_object_new_string_len(nla_data(attr), nla_len(attr));
	case FLAG:
		return json_object_new_boolean(1);
	case GID:
		return json_object_new_string(gid_text(nla_data(attr), text, sizeof(text)));
	case ADDRESS:
		return json_object_new_string(rdmatensor_format_addr(nla_data(attr), text,
								     sizeof(text)));
	case STATE:
		return word(states, sizeof(states) / sizeof(states[0]), nla_get_u32(attr));
	case EVENT:
		return word(events, sizeof(events) / sizeof(events[0]), nla_get_u32(attr));
	case COUNTERS:
		return counters(attr);
	case LATENCY:
		return latency(attr);
	case ERRORS:
		return errors(attr);
	case DTYPE:
		return data_type(nla_get_u32(attr));
	case SHAPE:
		return shape(attr);
	default:
		return NULL;
	}
}

static void add_lane(struct json_object *object, const char *key, struct nlattr *nest)
{
	struct json_object *lanes, *lane = json_object_new_object();

	if (!json_object_object_get_ex(object, key, &lanes)) {
		lanes = json_object_new_array();
		json_object_object_add(object, key, lanes);
	}
	add_attrs(lane, nla_data(nest), nla_len(nest));
	json_object_array_add(lanes, lane);
}

static void add_attrs(struct json_object *object, struct nlattr *head, int len)
{
	struct nlattr *attr;
	int left;

	nla_for_each_attr(attr, head, len, left) {
		int type = nla_type(attr);

		if (type >= NR_ATTRS || !attrs[type].key || !fits(attr, attrs[type].kind))
			continue;
		if (attrs[type].kind == LANE)
			add_lane(object, attrs[type].key, attr);
		else
			json_object_object_add(object, attrs[type].key,
					       value(attr, attrs[type].kind));
	}
}

struct json_object *netlink_object(struct nl_msg *msg)
{
	struct genlmsghdr *hdr = nlmsg_data(nlmsg_hdr(msg));
	struct json_object *object = json_object_new_object();

	add_attrs(object, genlmsg_attrdata(hdr, 0), genlmsg_attrlen(hdr, 0));
	return object;
}
