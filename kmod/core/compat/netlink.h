/* SPDX-License-Identifier: GPL-2.0 */
/* Generic netlink: who may join a group, and where a dump has its attributes */
#ifndef RDMATENSOR_COMPAT_NETLINK_H
#define RDMATENSOR_COMPAT_NETLINK_H

#include <net/genetlink.h>
#include "core/compat/have.h"

#ifndef GENL_MCAST_CAP_NET_ADMIN
/* Until 6.7, and 6.1.69, the flag of commands was that of groups */
#define GENL_MCAST_CAP_NET_ADMIN GENL_UNS_ADMIN_PERM
#endif

#ifdef RDMATENSOR_HAVE_GENL_DUMP_INFO
#define rdmatensor_dump_attrs(_cb) (genl_dumpit_info(_cb)->info.attrs)
#else
#define rdmatensor_dump_attrs(_cb) (genl_dumpit_info(_cb)->attrs)
#endif

#endif /* RDMATENSOR_COMPAT_NETLINK_H */
