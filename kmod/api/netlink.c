// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: dumps (dump.c) and events.
 *
 * netlink's callback keeps the place of a dump, and the generations by which netlink marks the
 * message that ends it, if contexts came or went behind the last one that has an object.
 */
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "api/dump.h"
#include "api/netlink.h"
#include "core/compat/netlink.h"
#include "core/nl_event.h"
#include "rdmatensor_netlink.h"

static struct genl_family netlink_family;

const struct genl_family *rdmatensor_netlink_family(void)
{
	return &netlink_family;
}

static int netlink_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct nlattr *only = rdmatensor_dump_attrs(cb)[RDMATENSOR_NL_A_CONTEXT];
	const struct genlmsghdr *hdr = nlmsg_data(cb->nlh);
	struct rdmatensor_dump_part dump = {
		.skb = skb,
		.family = &netlink_family,
		.net = sock_net(skb->sk),
		.portid = NETLINK_CB(cb->skb).portid,
		.seq = cb->nlh->nlmsg_seq,
		.only = only ? nla_get_u32(only) : 0,
		.generation = cb->prev_seq,
	};
	int ret;

	BUILD_BUG_ON(sizeof(dump.place) > sizeof(cb->args));
	memcpy(dump.place, cb->args, sizeof(dump.place));
	ret = rdmatensor_dump_next(&dump, hdr->cmd);
	memcpy(cb->args, dump.place, sizeof(dump.place));
	if (skb->len)
		cb->prev_seq = dump.generation;
	cb->seq = dump.generation;
	return ret;
}

/* All lanes of a channel, and all that it has counted, are one message */
static int netlink_start_channels(struct netlink_callback *cb)
{
	cb->min_dump_alloc = RDMATENSOR_DUMP_MESSAGE;
	return 0;
}

static int netlink_start_domains(struct netlink_callback *cb)
{
	const struct nlattr *only = rdmatensor_dump_attrs(cb)[RDMATENSOR_NL_A_CONTEXT];
	const struct genlmsghdr *hdr = nlmsg_data(cb->nlh);

	if (!only || rdmatensor_dump_by_context(hdr->cmd))
		return 0;
	/* 6.1 loses it here */
	NL_SET_ERR_MSG_ATTR(cb->extack, only, "domains are no context's: ask for all of them");
	return -EINVAL;
}

static const struct nla_policy netlink_policy[] = {
	[RDMATENSOR_NL_A_CONTEXT] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct genl_ops netlink_ops[] = {
	{
		.cmd = RDMATENSOR_NL_CMD_CONTEXT_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump,
	}, {
		.cmd = RDMATENSOR_NL_CMD_CHANNEL_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = netlink_start_channels,
		.dumpit = netlink_dump,
	}, {
		.cmd = RDMATENSOR_NL_CMD_POOL_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump,
	}, {
		.cmd = RDMATENSOR_NL_CMD_REQUEST_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump,
	}, {
		.cmd = RDMATENSOR_NL_CMD_TABLE_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump,
	}, {
		.cmd = RDMATENSOR_NL_CMD_DOMAIN_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = netlink_start_domains,
		.dumpit = netlink_dump,
	}, {
		.cmd = RDMATENSOR_NL_CMD_TENSOR_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump,
	},
};

static const struct genl_multicast_group netlink_groups[] = {
	/* Names of workers and tensors, and who talks to whom: as for the dumps */
	{ .name = RDMATENSOR_NL_EVENTS, .flags = GENL_MCAST_CAP_NET_ADMIN },
};

static struct genl_family netlink_family __ro_after_init = {
	.name = RDMATENSOR_NL_NAME,
	.version = RDMATENSOR_NL_VERSION,
	.maxattr = ARRAY_SIZE(netlink_policy) - 1,
	.policy = netlink_policy,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = netlink_ops,
	.n_ops = ARRAY_SIZE(netlink_ops),
	.mcgrps = netlink_groups,
	.n_mcgrps = ARRAY_SIZE(netlink_groups),
	.resv_start_op = RDMATENSOR_NL_CMD_CONTEXT_GET,
};

int rdmatensor_netlink_register(void)
{
	int ret = genl_register_family(&netlink_family);

	if (!ret)
		rdmatensor_nl_event_family(&netlink_family);
	return ret;
}

void rdmatensor_netlink_unregister(void)
{
	rdmatensor_nl_event_family(NULL);
	genl_unregister_family(&netlink_family);
}
