/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor sees of this machine without a context.
 */
#ifndef TOOL_DOCTOR_HOST_H
#define TOOL_DOCTOR_HOST_H

#include <stdbool.h>

struct doctor;

/* True: it is loaded */
bool doctor_module(struct doctor *doctor);
/* The device's file, and the module's ABI */
void doctor_node(struct doctor *doctor);
void doctor_memlock(struct doctor *doctor);

#endif
