// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Names and sizes of what the ABI counts by numbers.
 */
#include "internal.h"

static const struct {
	const char *name;
	uint8_t size;
} data_types[RDMATENSOR_DT_MAX + 1] = {
	[RDMATENSOR_DT_FLOAT] = { "float", 4 },
	[RDMATENSOR_DT_DOUBLE] = { "double", 8 },
	[RDMATENSOR_DT_INT32] = { "int32", 4 },
	[RDMATENSOR_DT_UINT8] = { "uint8", 1 },
	[RDMATENSOR_DT_INT16] = { "int16", 2 },
	[RDMATENSOR_DT_INT8] = { "int8", 1 },
	[RDMATENSOR_DT_STRING] = { "string", 0 },
	[RDMATENSOR_DT_COMPLEX64] = { "complex64", 8 },
	[RDMATENSOR_DT_INT64] = { "int64", 8 },
	[RDMATENSOR_DT_BOOL] = { "bool", 1 },
	[RDMATENSOR_DT_QINT8] = { "qint8", 1 },
	[RDMATENSOR_DT_QUINT8] = { "quint8", 1 },
	[RDMATENSOR_DT_QINT32] = { "qint32", 4 },
	[RDMATENSOR_DT_BFLOAT16] = { "bfloat16", 2 },
	[RDMATENSOR_DT_QINT16] = { "qint16", 2 },
	[RDMATENSOR_DT_QUINT16] = { "quint16", 2 },
	[RDMATENSOR_DT_UINT16] = { "uint16", 2 },
	[RDMATENSOR_DT_COMPLEX128] = { "complex128", 16 },
	[RDMATENSOR_DT_HALF] = { "half", 2 },
	[RDMATENSOR_DT_RESOURCE] = { "resource", 0 },
	[RDMATENSOR_DT_VARIANT] = { "variant", 0 },
	[RDMATENSOR_DT_UINT32] = { "uint32", 4 },
	[RDMATENSOR_DT_UINT64] = { "uint64", 8 },
	[RDMATENSOR_DT_FLOAT8_E5M2] = { "float8_e5m2", 1 },
	[RDMATENSOR_DT_FLOAT8_E4M3FN] = { "float8_e4m3fn", 1 },
};

size_t rdmatensor_data_type_size(uint32_t data_type)
{
	return data_type > RDMATENSOR_DT_MAX ? 0 : data_types[data_type].size;
}

const char *rdmatensor_data_type_name(uint32_t data_type)
{
	return data_type > RDMATENSOR_DT_MAX ? NULL : data_types[data_type].name;
}

static const char *const stats[] = {
	[RDMATENSOR_STAT_FETCHES] = "fetches",
	[RDMATENSOR_STAT_FETCHED] = "fetched",
	[RDMATENSOR_STAT_FETCH_ERRORS] = "fetch_errors",
	[RDMATENSOR_STAT_FETCHED_BYTES] = "fetched_bytes",
	[RDMATENSOR_STAT_SERVED] = "served",
	[RDMATENSOR_STAT_SERVED_BYTES] = "served_bytes",
	[RDMATENSOR_STAT_PUBLISHED] = "published",
	[RDMATENSOR_STAT_RELEASED] = "released",
	[RDMATENSOR_STAT_SUBMITS] = "submits",
	[RDMATENSOR_STAT_TX_MESSAGES] = "tx_messages",
	[RDMATENSOR_STAT_TX_REQUESTS] = "tx_requests",
	[RDMATENSOR_STAT_TX_META_DATA_RESPONSES] = "tx_meta_data_responses",
	[RDMATENSOR_STAT_TX_RE_REQUESTS] = "tx_re_requests",
	[RDMATENSOR_STAT_TX_ERROR_STATUSES] = "tx_error_statuses",
	[RDMATENSOR_STAT_TX_CANCELS] = "tx_cancels",
	[RDMATENSOR_STAT_TX_ACKS] = "tx_acks",
	[RDMATENSOR_STAT_TX_WRITES] = "tx_writes",
	[RDMATENSOR_STAT_RX_MESSAGES] = "rx_messages",
	[RDMATENSOR_STAT_RX_ACKS] = "rx_acks",
	[RDMATENSOR_STAT_RX_CONTENTS] = "rx_contents",
	[RDMATENSOR_STAT_RX_STRAY] = "rx_stray",
	[RDMATENSOR_STAT_STALL_SLOTS] = "stall_slots",
	[RDMATENSOR_STAT_STALL_SENDQ] = "stall_sendq",
	[RDMATENSOR_STAT_STALL_REQUESTS] = "stall_requests",
	[RDMATENSOR_STAT_COPIED_BYTES] = "copied_bytes",
	[RDMATENSOR_STAT_VALIDATED] = "validated",
	[RDMATENSOR_STAT_VALIDATE_ERRORS] = "validate_errors",
	[RDMATENSOR_STAT_PROTOCOL_ERRORS] = "protocol_errors",
	[RDMATENSOR_STAT_CHANNELS_UP] = "channels_up",
	[RDMATENSOR_STAT_CHANNELS_DOWN] = "channels_down",
	[RDMATENSOR_STAT_TX_PROBES] = "tx_probes",
	[RDMATENSOR_STAT_GATHERS] = "gathers",
	[RDMATENSOR_STAT_GATHERED] = "gathered",
	[RDMATENSOR_STAT_GATHER_ERRORS] = "gather_errors",
	[RDMATENSOR_STAT_GATHERED_ROWS] = "gathered_rows",
	[RDMATENSOR_STAT_GATHER_READS] = "gather_reads",
	[RDMATENSOR_STAT_GATHER_LISTS] = "gather_lists",
	[RDMATENSOR_STAT_GATHER_SIGNALLED] = "gather_signalled",
	[RDMATENSOR_STAT_GATHER_COPIES] = "gather_copies",
	[RDMATENSOR_STAT_GATHER_AGAIN] = "gather_again",
	[RDMATENSOR_STAT_GATHER_LANES_DOWN] = "gather_lanes_down",
	[RDMATENSOR_STAT_SHARED] = "shared",
	[RDMATENSOR_STAT_SHARES_RELEASED] = "shares_released",
	[RDMATENSOR_STAT_PUBLISH_COPIES] = "publish_copies",
	[RDMATENSOR_STAT_BUFFERS_MADE] = "buffers_made",
	[RDMATENSOR_STAT_TX_SHORT_REQUESTS] = "tx_short_requests",
	[RDMATENSOR_STAT_LISTS] = "lists",
	[RDMATENSOR_STAT_LISTED] = "listed",
	[RDMATENSOR_STAT_LIST_ERRORS] = "list_errors",
};

_Static_assert(sizeof(stats) / sizeof(stats[0]) == RDMATENSOR_STAT_NR,
	       "every counter has a name");

const char *rdmatensor_stat_name(unsigned int stat)
{
	return stat < RDMATENSOR_STAT_NR ? stats[stat] : NULL;
}
