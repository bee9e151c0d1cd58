// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "families.h"

_Static_assert(RDMATENSOR_STAT_NR <= 64, "counters_of() has a bit for each");

const char *const kind_names[NR_KINDS] = {
	[KIND_CONTEXT] = "context",
	[KIND_DOMAIN] = "domain",
	[KIND_CHANNEL] = "channel",
};

const struct gauge_family gauge_families[NR_GAUGES] = {
	[CONTEXT_CHANNELS] = { KIND_CONTEXT, "channels", NULL, "Channels of the context." },
	[CONTEXT_POOLS] = { KIND_CONTEXT, "pools", NULL,
			    "Pools of the domain that it has joined." },
	[DOMAIN_CONTEXTS] = { KIND_DOMAIN, "contexts", NULL,
			      "Contexts that have joined the domain." },
	[DOMAIN_POOLS] = { KIND_DOMAIN, "pools", NULL, "Pools of the domain." },
	[DOMAIN_POOL_BYTES] = { KIND_DOMAIN, "pool_bytes", "bytes", "Memory of these pools." },
	[DOMAIN_LASTING] = { KIND_DOMAIN, "lasting_tensors", NULL,
			     "Tensors that the domain keeps published for any number of fetches." },
	[CHANNEL_UP] = { KIND_CHANNEL, "up", NULL,
			 "1: the channel is up, 0: it connects, closes or is down." },
	[CHANNEL_REQUESTS] = { KIND_CHANNEL, "requests", NULL,
			       "Fetches from the peer that have not ended." },
	[CHANNEL_RESPONSES] = { KIND_CHANNEL, "responses", NULL,
				"Requests of the peer that have not ended here." },
	[CHANNEL_SLOTS] = { KIND_CHANNEL, "message_slots", NULL,
			    "Control messages that may be unconsumed at the same time." },
	[CHANNEL_UNCONSUMED] = { KIND_CHANNEL, "messages_unconsumed", NULL,
				 "Control messages that the peer has not reported as consumed." },
};

/* Operations of a channel, and of a context with itself */
#define BOTH(_help) { .help = (_help), .of_channel = true }
#define OWN(_help) { .help = (_help) }

const struct counter_family counter_families[RDMATENSOR_STAT_NR] = {
	[RDMATENSOR_STAT_FETCHES] = BOTH("Fetches submitted."),
	[RDMATENSOR_STAT_FETCHED] = BOTH("Fetches that ended with their tensor."),
	[RDMATENSOR_STAT_FETCH_ERRORS] = BOTH("Fetches that ended with an error."),
	[RDMATENSOR_STAT_FETCHED_BYTES] = BOTH("Content that arrived, or was shared."),
	[RDMATENSOR_STAT_SERVED] = BOTH("Contents sent and acknowledged by the peer's device."),
	[RDMATENSOR_STAT_SERVED_BYTES] =
		BOTH("Content sent and acknowledged by the peer's device."),
	[RDMATENSOR_STAT_PUBLISHED] = OWN("Tensors published."),
	[RDMATENSOR_STAT_RELEASED] = OWN("Published tensors whose buffer was released."),
	[RDMATENSOR_STAT_SUBMITS] = OWN("SUBMIT calls."),
	[RDMATENSOR_STAT_TX_MESSAGES] = BOTH("Control messages written."),
	[RDMATENSOR_STAT_TX_REQUESTS] = BOTH("TENSOR_REQUEST messages written."),
	[RDMATENSOR_STAT_TX_META_DATA_RESPONSES] = BOTH("META_DATA_RESPONSE messages written."),
	[RDMATENSOR_STAT_TX_RE_REQUESTS] = BOTH("TENSOR_RE_REQUEST messages written."),
	[RDMATENSOR_STAT_TX_ERROR_STATUSES] = BOTH("ERROR_STATUS messages written."),
	[RDMATENSOR_STAT_TX_CANCELS] = BOTH("CANCEL messages written."),
	[RDMATENSOR_STAT_TX_ACKS] = BOTH("Acknowledgements written."),
	[RDMATENSOR_STAT_TX_WRITES] = BOTH("RDMA WRITEs of content posted."),
	[RDMATENSOR_STAT_RX_MESSAGES] = BOTH("Control messages consumed."),
	[RDMATENSOR_STAT_RX_ACKS] = BOTH("Acknowledgements received."),
	[RDMATENSOR_STAT_RX_CONTENTS] = BOTH("Immediates of content received."),
	[RDMATENSOR_STAT_RX_STRAY] = BOTH("Messages about requests that had ended already."),
	[RDMATENSOR_STAT_STALL_SLOTS] = BOTH("Messages that had to wait for a slot."),
	[RDMATENSOR_STAT_STALL_SENDQ] = BOTH("Writes that had to wait for the send queue."),
	[RDMATENSOR_STAT_STALL_REQUESTS] = BOTH("Requests that had to wait for the peer's limit."),
	[RDMATENSOR_STAT_COPIED_BYTES] = BOTH("Content that the CPU copied."),
	[RDMATENSOR_STAT_VALIDATED] = BOTH("Contents whose checksum was compared."),
	[RDMATENSOR_STAT_VALIDATE_ERRORS] = BOTH("Contents whose checksum differed."),
	[RDMATENSOR_STAT_PROTOCOL_ERRORS] =
		BOTH("Channels ended because the peer broke the protocol."),
	[RDMATENSOR_STAT_CHANNELS_UP] = BOTH("Channels that came up."),
	[RDMATENSOR_STAT_CHANNELS_DOWN] = BOTH("Channels that went down."),
	[RDMATENSOR_STAT_TX_PROBES] = BOTH("Empty writes on a quiet channel, or on a queue pair that completes nothing."),
	[RDMATENSOR_STAT_GATHERS] = OWN("Gathers submitted."),
	[RDMATENSOR_STAT_GATHERED] = OWN("Gathers that ended with all rows."),
	[RDMATENSOR_STAT_GATHER_ERRORS] = OWN("Gathers that ended with an error."),
	[RDMATENSOR_STAT_GATHERED_ROWS] = OWN("Rows delivered, of failed gathers too."),
	[RDMATENSOR_STAT_GATHER_READS] = OWN("RDMA READs of gathers posted."),
	[RDMATENSOR_STAT_GATHER_LISTS] = OWN("Lists of RDMA READs posted, one call each."),
	[RDMATENSOR_STAT_GATHER_SIGNALLED] = OWN("Completions of these lists."),
	[RDMATENSOR_STAT_GATHER_COPIES] =
		OWN("Rows copied by the CPU: the context's own, cached, repeated."),
	[RDMATENSOR_STAT_GATHER_AGAIN] = OWN("Rows read again because a lane had failed."),
	[RDMATENSOR_STAT_GATHER_LANES_DOWN] = OWN("Lanes for gathers that have failed."),
	[RDMATENSOR_STAT_SHARED] = OWN("Loopback fetches that got the tensor itself."),
	[RDMATENSOR_STAT_SHARES_RELEASED] = OWN("Shares of such tensors that were released."),
	[RDMATENSOR_STAT_PUBLISH_COPIES] = OWN("Tensors that PUBLISH copied."),
	[RDMATENSOR_STAT_BUFFERS_MADE] = OWN("Tensor buffers made for such copies."),
	[RDMATENSOR_STAT_TX_SHORT_REQUESTS] =
		BOTH("TENSOR_REQUEST messages that name a destination the peer knows already."),
	[RDMATENSOR_STAT_LISTS] = BOTH("Lists submitted."),
	[RDMATENSOR_STAT_LISTED] = BOTH("Lists that ended with their entries."),
	[RDMATENSOR_STAT_LIST_ERRORS] = BOTH("Lists that ended with an error."),
};

const char *counter_unit(enum rdmatensor_stat stat)
{
	static const char unit[] = "bytes";
	const char *name = rdmatensor_stat_name(stat);
	size_t len = strlen(name);

	return len > strlen(unit) && !strcmp(name + len - strlen(unit), unit) ? unit : NULL;
}

uint64_t counters_of(enum kind kind)
{
	uint64_t which = 0;
	int i;

	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		if (kind == KIND_CONTEXT ||
		    (kind == KIND_CHANNEL && counter_families[i].of_channel))
			which |= UINT64_C(1) << i;
	return which;
}
