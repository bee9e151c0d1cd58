/* SPDX-License-Identifier: GPL-2.0 */
/* What the crash tests share: moments that a seed decides */
#ifndef RDMATENSOR_TEST_CRASH_H
#define RDMATENSOR_TEST_CRASH_H

#include <stdint.h>

/* Up to @most - 1; the same for the same CRASH_SEED (1) */
uint32_t below(uint32_t most);
/* Passes up to @most_us. The moment is the point: there is nothing to be waited for */
void any_moment(uint32_t most_us);
/* How much to do: the variable, or @or_else */
long amount(const char *variable, long or_else);

#endif
