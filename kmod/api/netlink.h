/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic-netlink family: see rdmatensor_netlink.h.
 */
#ifndef RDMATENSOR_NETLINK_H
#define RDMATENSOR_NETLINK_H

struct genl_family;

int rdmatensor_netlink_register(void);
/* No context is open */
void rdmatensor_netlink_unregister(void);
/* The messages of dumps that the device file gives are its as well */
const struct genl_family *rdmatensor_netlink_family(void);

#endif /* RDMATENSOR_NETLINK_H */
