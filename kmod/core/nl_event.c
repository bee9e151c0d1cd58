// SPDX-License-Identifier: GPL-2.0
/*
 * Events over generic netlink. The family belongs to netlink.c, which sets it when the module
 * is loaded and clears it when it is unloaded: no context is open then.
 */
#include "core/nl_event.h"

static const struct genl_family *nl_event_family;

void rdmatensor_nl_event_family(const struct genl_family *family)
{
	nl_event_family = family;
}

static int nl_event_fill(struct sk_buff *skb, const struct rdmatensor_nl_event_args *event)
{
	if (nla_put_u32(skb, RDMATENSOR_NL_A_EVENT, event->what) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_CONTEXT, event->context) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_WORKER, event->worker))
		return -EMSGSIZE;
	if (event->channel && nla_put_u32(skb, RDMATENSOR_NL_A_CHANNEL, event->channel))
		return -EMSGSIZE;
	if (event->peer && nla_put_string(skb, RDMATENSOR_NL_A_PEER, event->peer))
		return -EMSGSIZE;
	/* An IPv4 address has the length of an IPv6 one, as everywhere in the ABI */
	if (event->addr &&
	    (nla_put(skb, RDMATENSOR_NL_A_ADDR, sizeof(struct sockaddr_in6), event->addr) ||
	     nla_put_u32(skb, RDMATENSOR_NL_A_WAIT_MS, event->wait_ms)))
		return -EMSGSIZE;
	if (event->tensor &&
	    (nla_put(skb, RDMATENSOR_NL_A_TENSOR, event->tensor_len, event->tensor) ||
	     nla_put_u64_64bit(skb, RDMATENSOR_NL_A_STEP, event->step_id,
			       RDMATENSOR_NL_A_PAD) ||
	     nla_put_u64_64bit(skb, RDMATENSOR_NL_A_USER_DATA, event->user_data,
			       RDMATENSOR_NL_A_PAD)))
		return -EMSGSIZE;
	if (event->error && nla_put_s32(skb, RDMATENSOR_NL_A_ERROR, event->error))
		return -EMSGSIZE;
	if (event->text && nla_put_string(skb, RDMATENSOR_NL_A_TEXT, event->text))
		return -EMSGSIZE;
	return 0;
}

void rdmatensor_nl_event_send(struct net *net, const struct rdmatensor_nl_event_args *event,
			      gfp_t gfp)
{
	struct sk_buff *skb;
	void *hdr;

	if (!nl_event_family || !genl_has_listeners(nl_event_family, net, 0))
		return;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, gfp);
	if (!skb)
		return;
	hdr = genlmsg_put(skb, 0, 0, nl_event_family, 0, RDMATENSOR_NL_CMD_EVENT);
	if (!hdr || nl_event_fill(skb, event)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	genlmsg_multicast_netns(nl_event_family, net, skb, 0, 0, gfp);
}
