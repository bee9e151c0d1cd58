/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_SHIM_BYTEORDER_H
#define RDMATENSOR_SHIM_BYTEORDER_H

#include <endian.h>
#include <linux/types.h>

#define cpu_to_le16(_value) htole16(_value)
#define cpu_to_le32(_value) htole32(_value)
#define cpu_to_le64(_value) htole64(_value)
#define le16_to_cpu(_value) le16toh(_value)
#define le32_to_cpu(_value) le32toh(_value)
#define le64_to_cpu(_value) le64toh(_value)

#endif
