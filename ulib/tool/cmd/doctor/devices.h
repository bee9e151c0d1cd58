/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor sees of RDMA devices, in sysfs.
 */
#ifndef TOOL_DOCTOR_DEVICES_H
#define TOOL_DOCTOR_DEVICES_H

#include <stdbool.h>

struct doctor;

/* RDMA devices with their ports and GIDs. True: there is one to use */
bool doctor_devices(struct doctor *doctor);

#endif
