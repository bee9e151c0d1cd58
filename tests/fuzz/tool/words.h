/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each as LLVMFuzzerCustomMutator(), and does what LLVMFuzzerMutate() does where the text has
 * nothing for it, or no room.
 */
#ifndef TESTS_FUZZ_WORDS_H
#define TESTS_FUZZ_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/*
 * One number takes another's value, or nearly: offsets and dims are right together, or refused
 * soon
 */
size_t swap_number(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* One word stands where another did */
size_t swap_word(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* One gets another letter wherever it stands, for some have to be told twice */
size_t rename_word(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* @by, of @len bytes, stands where @room bytes at @at did */
size_t replace_run(uint8_t *data, size_t size, size_t max_size, size_t at, size_t room,
		   const void *by, size_t len);

#endif
