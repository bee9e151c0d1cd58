// SPDX-License-Identifier: GPL-2.0
/*
 * RDMATENSOR_DUMP: what netlink shows to CAP_NET_ADMIN, of the caller's own contexts and domains.
 *
 * The place of a dump is the process's, so that any number of threads can dump by one descriptor,
 * and one that is forged leads to another object or to none. The messages are copied when
 * nothing is held any more: a process that does not let its memory be written keeps nobody else's
 * context from closing.
 */
#include <linux/uaccess.h>
#include <net/genetlink.h>
#include "api/dump.h"
#include "api/ioctl.h"
#include "api/netlink.h"
#include "context/context.h"
#include "core/limits.h"

static int dump_check(const struct rdmatensor_dump *arg)
{
	if (arg->__reserved || arg->room < RDMATENSOR_DUMP_ROOM_MIN ||
	    !rdmatensor_dump_known(arg->command))
		return -EINVAL;
	if (arg->context && !rdmatensor_dump_by_context(arg->command))
		return -EINVAL;
	return 0;
}

static void dump_begin(struct rdmatensor_dump_part *dump, const struct rdmatensor_context *context,
		       const struct rdmatensor_dump *arg)
{
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(dump->place) != ARRAY_SIZE(arg->place));
	dump->family = rdmatensor_netlink_family();
	dump->net = context->net;
	dump->only = arg->context;
	dump->own = true;
	dump->generation = arg->generation;
	for (i = 0; i < ARRAY_SIZE(dump->place); i++)
		dump->place[i] = arg->place[i];
}

static void dump_end(struct rdmatensor_dump *arg, const struct rdmatensor_dump_part *dump)
{
	int i;

	arg->flags = dump->changed ? RDMATENSOR_DUMP_CHANGED : 0;
	arg->out_bytes = dump->skb->len;
	arg->generation = dump->generation;
	for (i = 0; i < ARRAY_SIZE(dump->place); i++)
		arg->place[i] = dump->place[i];
}

int rdmatensor_ioctl_dump(struct rdmatensor_context *context, void *data)
{
	struct rdmatensor_dump *arg = data;
	/* With what an skb has beside it; messages are stored as words */
	u32 room = round_down(min_t(u32, arg->room, SKB_WITH_OVERHEAD(RDMATENSOR_DUMP_ROOM_MAX)),
			      8);
	struct rdmatensor_dump_part dump = {};
	int ret = dump_check(arg);

	BUILD_BUG_ON(RDMATENSOR_DUMP_ROOM_MIN < RDMATENSOR_DUMP_MESSAGE);
	if (ret)
		return ret;
	dump.skb = alloc_skb(room, RDMATENSOR_GFP_SPARING);
	if (!dump.skb)
		return -ENOMEM;
	/* It may have become longer than what was asked for */
	skb_reserve(dump.skb, skb_tailroom(dump.skb) - room);
	dump_begin(&dump, context, arg);
	ret = rdmatensor_dump_next(&dump, arg->command);
	if (ret >= 0) {
		ret = copy_to_user(u64_to_user_ptr(arg->buf_uptr), dump.skb->data, dump.skb->len) ?
		      -EFAULT : 0;
		dump_end(arg, &dump);
	}
	kfree_skb(dump.skb);
	return ret;
}
