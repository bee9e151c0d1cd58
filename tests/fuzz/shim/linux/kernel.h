/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_SHIM_KERNEL_H
#define RDMATENSOR_SHIM_KERNEL_H

#define ARRAY_SIZE(_array) (sizeof(_array) / sizeof((_array)[0]))

#endif
