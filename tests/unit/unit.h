/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* A line must contain these words */
#define assert_contains(text, words)                                       \
	do {                                                               \
		if (!strstr(text, words))                                  \
			fail_msg("\"%s\" is not in \"%s\"", words, text);  \
	} while (0)

#endif
