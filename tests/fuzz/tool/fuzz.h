/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the fuzzers of the tool share. Each is libFuzzer's main() around a fuzz_one(), and
 * writes the inputs to begin from itself: PROGRAM --seeds DIRECTORY.
 */
#ifndef TESTS_FUZZ_TOOL_H
#define TESTS_FUZZ_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdmatensor/rdmatensor.h>

#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/store.h"

/* Standard error may be a buffer at the time */
#define HOLDS(_cond) \
	do { \
		if (!(_cond)) { \
			dprintf(2, "%s:%d: not so: %s\n", __FILE__, __LINE__, #_cond); \
			abort(); \
		} \
	} while (0)

#define NR(_array) (sizeof(_array) / sizeof((_array)[0]))

/* A target's own */
void fuzz_one(const uint8_t *data, size_t size);
/* Before the first input: tells what is to be reached */
void fuzz_init(void);
/* Inputs to begin from, by seed() */
void fuzz_seeds(void);

/* A kind of input that the fuzzer must reach; the number is for reached() */
unsigned int to_reach(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void reached(unsigned int kind);
/* Writes an input to begin from */
void seed(const void *data, size_t size);

/**
 * struct said - what the tool has printed
 * @out: on standard output
 * @out_len: its length
 * @err: on standard error
 * @err_len: its length
 * @former_out: standard output before
 * @former_err: standard error before
 */
struct said {
	char *out;
	size_t out_len;
	char *err;
	size_t err_len;
	FILE *former_out;
	FILE *former_err;
};

/* From here on what is printed is kept */
void said_begin(struct said *said);
/* Up to here; for said_free() */
void said_end(struct said *said);
void said_free(struct said *said);

/* All of it are characters, and none of them a command to a terminal */
void check_clean(const char *text);

struct json_object;

/*
 * It is clean, and every line of it JSON as it is defined, which says the same when it has
 * been read and written again. @each: is called with each, may be NULL. How many there were
 */
size_t check_json_lines(const char *text, void (*each)(struct json_object *object));

#endif
