/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of the module's netlink family, turned into JSON attribute by attribute. One
 * that this tool does not know is left out: a newer module may have it.
 */
#ifndef TOOL_NETLINK_ATTRS_H
#define TOOL_NETLINK_ATTRS_H

struct json_object;
struct nl_msg;

/* An object, to be put, with a member for each attribute of the message */
struct json_object *netlink_object(struct nl_msg *msg);

#endif
