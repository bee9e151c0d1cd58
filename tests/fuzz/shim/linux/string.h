/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_SHIM_STRING_H
#define RDMATENSOR_SHIM_STRING_H

#include <string.h>

/* The first byte that is not @c, NULL: all are */
static inline const void *memchr_inv(const void *start, int c, size_t bytes)
{
	const unsigned char *at = start;

	for (; bytes; at++, bytes--)
		if (*at != (unsigned char)c)
			return at;
	return NULL;
}

#endif
