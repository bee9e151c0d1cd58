/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor reads from sysfs.
 */
#ifndef TOOL_DOCTOR_SYSFS_H
#define TOOL_DOCTOR_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

#define SYSFS_MODULE "/sys/module/rdmatensor"
#define SYSFS_DEVICES "/sys/class/infiniband"
#define SYSFS_NETDEVS "/sys/class/net"

/* First line of the file that @fmt names. False: it is empty or cannot be read */
bool sysfs_line(char *text, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
