// SPDX-License-Identifier: GPL-2.0
/*
 * From 6.7 on: what a dump knows of its request is in a struct genl_info. A wrong answer does not
 * build
 */
#include <net/genetlink.h>

static struct nlattr **__maybe_unused probe(struct netlink_callback *cb)
{
	return genl_dumpit_info(cb)->info.attrs;
}
