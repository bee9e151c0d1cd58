/* SPDX-License-Identifier: GPL-2.0 */
/* What the module's pure files take from the kernel's own <linux/types.h> */
#ifndef RDMATENSOR_SHIM_TYPES_H
#define RDMATENSOR_SHIM_TYPES_H

#include_next <linux/types.h>
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#endif
