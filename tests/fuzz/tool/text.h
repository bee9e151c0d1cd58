/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* An input to begin from: its first byte, and the others */
void seed_with(uint8_t how, const void *text, size_t len);
/* A text of what is easily read in C: ' for ", and | for a zero byte. Its length */
size_t text_from(const char *words, char *text, size_t room);
/* An input to begin from, of such a text */
void seed_text(uint8_t how, const char *words);

#endif
