/* SPDX-License-Identifier: GPL-2.0 */
/* Names and texts go to terminals and logs, which act on control characters */
#ifndef RDMATENSOR_TEXT_H
#define RDMATENSOR_TEXT_H

#include <linux/types.h>

/* U+0080 to U+009F in UTF-8, two bytes: a terminal obeys them as it does ESC sequences */
static inline bool rdmatensor_text_is_c1(const char *two)
{
	return (u8)two[0] == 0xc2 && ((u8)two[1] & 0xe0) == 0x80;
}

#endif /* RDMATENSOR_TEXT_H */
