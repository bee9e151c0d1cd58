/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints, rdmatensor:rdmatensor_*. A fetch is followed by its user_data to its request,
 * and from there by channel and index through the messages and contents of both ends
 * (without the prefix):
 *
 *	fetch_submit -> request_state -> message_tx | message_rx -> response_state ->
 *	content_tx | content_rx -> request_state -> fetch_end
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdmatensor

#if !defined(RDMATENSOR_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RDMATENSOR_TRACE_H

#include <linux/tracepoint.h>
#include "core/wire.h"

#ifndef RDMATENSOR_TRACE_NAMES
#define RDMATENSOR_TRACE_NAMES

/* Bytes of a state's name. A pointer to it could outlive the module */
#define RDMATENSOR_TRACE_STATE 16

#define rdmatensor_trace_type(_type) \
	__print_symbolic(_type, \
			 { RDMATENSOR_WIRE_HELLO, "HELLO" }, \
			 { RDMATENSOR_WIRE_TENSOR_REQUEST, "TENSOR_REQUEST" }, \
			 { RDMATENSOR_WIRE_META_DATA_RESPONSE, "META_DATA_RESPONSE" }, \
			 { RDMATENSOR_WIRE_TENSOR_RE_REQUEST, "TENSOR_RE_REQUEST" }, \
			 { RDMATENSOR_WIRE_ERROR_STATUS, "ERROR_STATUS" }, \
			 { RDMATENSOR_WIRE_CANCEL, "CANCEL" }, \
			 { RDMATENSOR_WIRE_TABLE_OPEN, "TABLE_OPEN" }, \
			 { RDMATENSOR_WIRE_TABLE_INFO, "TABLE_INFO" }, \
			 { RDMATENSOR_WIRE_LIST, "LIST" }, \
			 { RDMATENSOR_WIRE_LIST_INFO, "LIST_INFO" })

#define rdmatensor_trace_channel_state(_state) \
	__print_symbolic(_state, \
			 { RDMATENSOR_CHANNEL_CONNECTING, "CONNECTING" }, \
			 { RDMATENSOR_CHANNEL_UP, "UP" }, \
			 { RDMATENSOR_CHANNEL_CLOSING, "CLOSING" }, \
			 { RDMATENSOR_CHANNEL_DOWN, "DOWN" })

#endif /* RDMATENSOR_TRACE_NAMES */

/* An operation has begun: its deadline in nanoseconds of CLOCK_MONOTONIC, 0: none */
TRACE_EVENT(rdmatensor_fetch_submit,
	TP_PROTO(u64 user_data, u32 channel, s64 step_id, u64 deadline_ns),
	TP_ARGS(user_data, channel, step_id, deadline_ns),
	TP_STRUCT__entry(
		__field(u64, user_data)
		__field(u32, channel)
		__field(s64, step_id)
		__field(u64, deadline_ns)
	),
	TP_fast_assign(
		__entry->user_data = user_data;
		__entry->channel = channel;
		__entry->step_id = step_id;
		__entry->deadline_ns = deadline_ns;
	),
	TP_printk("user_data=%llu channel=%u step=%lld deadline=%llu", __entry->user_data,
		  __entry->channel, __entry->step_id, __entry->deadline_ns)
);

/* It has ended: result as in its entry of the ring */
TRACE_EVENT(rdmatensor_fetch_end,
	TP_PROTO(u64 user_data, u32 channel, int result, u64 bytes),
	TP_ARGS(user_data, channel, result, bytes),
	TP_STRUCT__entry(
		__field(u64, user_data)
		__field(u32, channel)
		__field(int, result)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->user_data = user_data;
		__entry->channel = channel;
		__entry->result = result;
		__entry->bytes = bytes;
	),
	TP_printk("user_data=%llu channel=%u result=%d bytes=%llu", __entry->user_data,
		  __entry->channel, __entry->result, __entry->bytes)
);

/* A control message: seq counts those of one direction, from 1 */
DECLARE_EVENT_CLASS(rdmatensor_message,
	TP_PROTO(u32 channel, u32 seq, u8 type, u32 index, u32 bytes),
	TP_ARGS(channel, seq, type, index, bytes),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u32, seq)
		__field(u8, type)
		__field(u32, index)
		__field(u32, bytes)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->seq = seq;
		__entry->type = type;
		__entry->index = index;
		__entry->bytes = bytes;
	),
	TP_printk("channel=%u seq=%u type=%s index=%u bytes=%u", __entry->channel,
		  __entry->seq, rdmatensor_trace_type(__entry->type), __entry->index,
		  __entry->bytes)
);

DEFINE_EVENT(rdmatensor_message, rdmatensor_message_tx,
	TP_PROTO(u32 channel, u32 seq, u8 type, u32 index, u32 bytes),
	TP_ARGS(channel, seq, type, index, bytes));
DEFINE_EVENT(rdmatensor_message, rdmatensor_message_rx,
	TP_PROTO(u32 channel, u32 seq, u8 type, u32 index, u32 bytes),
	TP_ARGS(channel, seq, type, index, bytes));

/* An ack: told counts the messages that its sender has acknowledged so far */
DECLARE_EVENT_CLASS(rdmatensor_ack,
	TP_PROTO(u32 channel, u32 told),
	TP_ARGS(channel, told),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u32, told)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->told = told;
	),
	TP_printk("channel=%u told=%u", __entry->channel, __entry->told)
);

DEFINE_EVENT(rdmatensor_ack, rdmatensor_ack_tx,
	TP_PROTO(u32 channel, u32 told),
	TP_ARGS(channel, told));
DEFINE_EVENT(rdmatensor_ack, rdmatensor_ack_rx,
	TP_PROTO(u32 channel, u32 told),
	TP_ARGS(channel, told));

/* A write of content was posted, last: with the immediate; or its immediate has arrived */
DECLARE_EVENT_CLASS(rdmatensor_content,
	TP_PROTO(u32 channel, u8 lane, u32 index, u64 bytes, bool last),
	TP_ARGS(channel, lane, index, bytes, last),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u8, lane)
		__field(u32, index)
		__field(u64, bytes)
		__field(bool, last)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->lane = lane;
		__entry->index = index;
		__entry->bytes = bytes;
		__entry->last = last;
	),
	TP_printk("channel=%u lane=%u index=%u bytes=%llu%s", __entry->channel, __entry->lane,
		  __entry->index, __entry->bytes, __entry->last ? " last" : "")
);

DEFINE_EVENT(rdmatensor_content, rdmatensor_content_tx,
	TP_PROTO(u32 channel, u8 lane, u32 index, u64 bytes, bool last),
	TP_ARGS(channel, lane, index, bytes, last));
DEFINE_EVENT(rdmatensor_content, rdmatensor_content_rx,
	TP_PROTO(u32 channel, u8 lane, u32 index, u64 bytes, bool last),
	TP_ARGS(channel, lane, index, bytes, last));

/* States as request.c draws them; before it has an index that is 0 */
TRACE_EVENT(rdmatensor_request_state,
	TP_PROTO(u32 channel, u64 user_data, u32 index, const char *from, const char *to),
	TP_ARGS(channel, user_data, index, from, to),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u64, user_data)
		__field(u32, index)
		__array(char, from, RDMATENSOR_TRACE_STATE)
		__array(char, to, RDMATENSOR_TRACE_STATE)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->user_data = user_data;
		__entry->index = index;
		strscpy(__entry->from, from, sizeof(__entry->from));
		strscpy(__entry->to, to, sizeof(__entry->to));
	),
	TP_printk("channel=%u user_data=%llu index=%u %s -> %s", __entry->channel,
		  __entry->user_data, __entry->index, __entry->from, __entry->to)
);

/* States as response.c draws them */
TRACE_EVENT(rdmatensor_response_state,
	TP_PROTO(u32 channel, u32 index, const char *from, const char *to),
	TP_ARGS(channel, index, from, to),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u32, index)
		__array(char, from, RDMATENSOR_TRACE_STATE)
		__array(char, to, RDMATENSOR_TRACE_STATE)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->index = index;
		strscpy(__entry->from, from, sizeof(__entry->from));
		strscpy(__entry->to, to, sizeof(__entry->to));
	),
	TP_printk("channel=%u index=%u %s -> %s", __entry->channel, __entry->index,
		  __entry->from, __entry->to)
);

/* Something waits: for a slot or credit, an entry of the send queue, the peer's limit */
TRACE_EVENT(rdmatensor_stall,
	TP_PROTO(u32 channel, const char *what),
	TP_ARGS(channel, what),
	TP_STRUCT__entry(
		__field(u32, channel)
		__array(char, what, RDMATENSOR_TRACE_STATE)
	),
	TP_fast_assign(
		__entry->channel = channel;
		strscpy(__entry->what, what, sizeof(__entry->what));
	),
	TP_printk("channel=%u for=%s", __entry->channel, __entry->what)
);

TRACE_EVENT(rdmatensor_channel_state,
	TP_PROTO(u32 channel, u8 from, u8 to, int error),
	TP_ARGS(channel, from, to, error),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u8, from)
		__field(u8, to)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->from = from;
		__entry->to = to;
		__entry->error = error;
	),
	TP_printk("channel=%u %s -> %s error=%d", __entry->channel,
		  rdmatensor_trace_channel_state(__entry->from),
		  rdmatensor_trace_channel_state(__entry->to), __entry->error)
);

/* Memory was registered: nr segments from one address on */
TRACE_EVENT(rdmatensor_memory_register,
	TP_PROTO(const char *device, u64 iova, u32 nr, u64 bytes, int error),
	TP_ARGS(device, iova, nr, bytes, error),
	TP_STRUCT__entry(
		__array(char, device, 64)
		__field(u64, iova)
		__field(u32, nr)
		__field(u64, bytes)
		__field(int, error)
	),
	TP_fast_assign(
		strscpy(__entry->device, device, sizeof(__entry->device));
		__entry->iova = iova;
		__entry->nr = nr;
		__entry->bytes = bytes;
		__entry->error = error;
	),
	TP_printk("device=%s iova=0x%llx segments=%u bytes=%llu error=%d", __entry->device,
		  __entry->iova, __entry->nr, __entry->bytes, __entry->error)
);

#endif /* RDMATENSOR_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH core
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
