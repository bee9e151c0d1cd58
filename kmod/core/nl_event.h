/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Netlink events: multicast to the listeners in one network namespace.
 */
#ifndef RDMATENSOR_NL_EVENT_H
#define RDMATENSOR_NL_EVENT_H

#include <net/genetlink.h>
#include "rdmatensor_netlink.h"

/**
 * struct rdmatensor_nl_event_args - what happened
 * @what: enum rdmatensor_nl_event
 * @context: id of the context
 * @worker: its name
 * @channel: id of the channel, 0: it concerns none
 * @peer: the peer's worker name, or NULL
 * @addr: its address, or NULL
 * @wait_ms: how long CONNECT waits for the peer, in milliseconds
 * @tensor: name of the tensor of a request, not zero-terminated, or NULL
 * @tensor_len: its length
 * @step_id: its step
 * @user_data: SUBMIT's
 * @error: negative errno, 0: none
 * @text: why, or NULL
 */
struct rdmatensor_nl_event_args {
	u32 what;
	u32 context;
	const char *worker;
	u32 channel;
	const char *peer;
	const struct sockaddr *addr;
	u32 wait_ms;
	const char *tensor;
	u16 tensor_len;
	s64 step_id;
	u64 user_data;
	int error;
	const char *text;
};

/* Sets the family that events are sent by, to its only group; NULL: events are dropped */
void rdmatensor_nl_event_family(const struct genl_family *family);

/**
 * rdmatensor_nl_event_send - multicast an event
 * @net: network namespace of the listeners
 * @event: what happened
 * @gfp: for the message; says from which context the call may come
 *
 * Does nothing without listeners; without memory the event is lost.
 */
void rdmatensor_nl_event_send(struct net *net, const struct rdmatensor_nl_event_args *event,
			      gfp_t gfp);

#endif /* RDMATENSOR_NL_EVENT_H */
