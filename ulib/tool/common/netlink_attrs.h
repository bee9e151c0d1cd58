/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of the module's netlink family, converted to JSON attribute by attribute. An
 * unknown attribute is skipped: a newer module may send it.
 */
#ifndef TOOL_NETLINK_ATTRS_H
#define TOOL_NETLINK_ATTRS_H

struct json_object;
struct nl_msg;

/* An object with a member for each attribute of the message; the caller puts it */
struct json_object *netlink_object(struct nl_msg *msg);

#endif
