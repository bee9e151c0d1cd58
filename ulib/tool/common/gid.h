/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TOOL_GID_H
#define TOOL_GID_H

#include <stddef.h>
#include <stdint.h>

/* "fe80::1" or "10.0.0.1" */
const char *gid_text(const uint8_t gid[16], char *text, size_t len);

#endif
