/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic-netlink family: see rdmatensor_netlink.h.
 */
#ifndef RDMATENSOR_NETLINK_H
#define RDMATENSOR_NETLINK_H

int rdmatensor_netlink_register(void);
/* No context is open */
void rdmatensor_netlink_unregister(void);

#endif /* RDMATENSOR_NETLINK_H */
