/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor tries with a context alone.
 */
#ifndef TOOL_DOCTOR_START_H
#define TOOL_DOCTOR_START_H

#include <stdbool.h>

struct doctor;

/* Choice of device, port and GID, path MTU, address that it listens on. False: no START */
bool doctor_start(struct doctor *doctor);
/* A fetch from itself through the RDMA device */
void doctor_itself(struct doctor *doctor);

#endif
