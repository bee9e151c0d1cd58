/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_FUZZ_BEGUN_H
#define TESTS_FUZZ_BEGUN_H

#include <stdbool.h>

/* A command has got as far as to do something */
extern bool begun;

void begun_init(void);

#endif
