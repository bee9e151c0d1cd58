// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatch of what a channel receives: the one place that knows which state machine each
 * type of message belongs to.
 */
#include "context/dispatch.h"
#include "fetch/listing.h"
#include "fetch/request.h"
#include "fetch/response.h"
#include "gather/lookup.h"

int rdmatensor_dispatch_message(struct rdmatensor_channel *channel,
				const struct rdmatensor_msg *msg, u64 seq, const char **why)
{
	switch (msg->type) {
	case RDMATENSOR_WIRE_META_DATA_RESPONSE:
	case RDMATENSOR_WIRE_ERROR_STATUS:
		return rdmatensor_request_message(channel, msg, why);
	case RDMATENSOR_WIRE_TABLE_OPEN:
	case RDMATENSOR_WIRE_TABLE_INFO:
		return rdmatensor_lookup_message(channel, msg, why);
	case RDMATENSOR_WIRE_LIST:
	case RDMATENSOR_WIRE_LIST_INFO:
		return rdmatensor_listing_message(channel, msg, why);
	default:
		return rdmatensor_response_message(channel, msg, seq, why);
	}
}

int rdmatensor_dispatch_content(struct rdmatensor_channel *channel, u8 lane, u32 index,
				u32 bytes, const char **why)
{
	return rdmatensor_request_content(channel, lane, index, bytes, why);
}

void rdmatensor_dispatch_down(struct rdmatensor_channel *channel)
{
	rdmatensor_lookup_down(channel);
	rdmatensor_listing_down(channel);
	rdmatensor_request_down(channel);
	rdmatensor_response_down(channel);
}
