/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dumps: the messages of rdmatensor_netlink.h that describe contexts, channels, pools, requests,
 * tables, tensors and domains, for the netlink family and for the device file.
 */
#ifndef RDMATENSOR_DUMP_H
#define RDMATENSOR_DUMP_H

#include <linux/types.h>

struct genl_family;
struct net;
struct sk_buff;

/* Members of a place, which each dump uses as it needs them */
#define RDMATENSOR_DUMP_PLACE 6
/* One message takes no more: all lanes of a channel, and all that it has counted */
#define RDMATENSOR_DUMP_MESSAGE 8192

/**
 * struct rdmatensor_dump_part - a part of a dump, which one call makes
 * @skb: messages are appended, as many as have room
 * @family: whose messages they are
 * @net: network namespace of the contexts
 * @portid: netlink port of who has asked
 * @seq: number of the request
 * @only: the context that it is about, see rdmatensor_dump_by_context(); 0: all
 * @own: those of the caller alone, see rdmatensor_owner_is_caller()
 * @place: where it goes on; zeros: it begins. Any value is safe
 * @generation: in: of the namespace's contexts, or of the caller's own, at the last part, 0: there
 *              was none; out: now
 * @changed: in: 0; out: some came or went since the last part, and messages say so
 */
struct rdmatensor_dump_part {
	struct sk_buff *skb;
	const struct genl_family *family;
	const struct net *net;
	u32 portid;
	u32 seq;
	u32 only;
	bool own;
	long place[RDMATENSOR_DUMP_PLACE];
	u32 generation;
	bool changed;
};

/* There is a dump by that command (enum rdmatensor_nl_cmd) */
bool rdmatensor_dump_known(unsigned int cmd);
/* It may be of one context. Domains are no context's */
bool rdmatensor_dump_by_context(unsigned int cmd);

/**
 * rdmatensor_dump_next - append the next messages of a dump
 * @dump: see above
 * @cmd: is known
 *
 * Process context, no lock held.
 *
 * Return: length of all messages; 0: the dump has ended; -EMSGSIZE: not even one has room; -ENOMEM.
 */
int rdmatensor_dump_next(struct rdmatensor_dump_part *dump, unsigned int cmd);

#endif /* RDMATENSOR_DUMP_H */
