// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs whose first byte says what comes, and whose others are JSON: how they are changed, so
 * that many of them stay JSON, and how one to begin from is written.
 */
#include <string.h>

#include "fuzz.h"
#include "text.h"
#include "words.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	uint8_t how = size ? *data : 0;

	switch (size ? seed % 8 : 7) {
	case 0:
	case 1:
		return 1 + swap_number(data + 1, size - 1, max_size - 1, seed / 8);
	case 2:
		return 1 + swap_word(data + 1, size - 1, max_size - 1, seed / 8);
	case 3:
	case 4:
		return 1 + rename_word(data + 1, size - 1, max_size - 1, seed / 8);
	}
	size = LLVMFuzzerMutate(data, size, max_size);
	if (size && seed % 32 != 5)
		*data = how;
	return size;
}

void seed_with(uint8_t how, const void *text, size_t len)
{
	uint8_t input[4096] = { how };

	HOLDS(len < sizeof(input));
	memcpy(input + 1, text, len);
	seed(input, len + 1);
}

size_t text_from(const char *words, char *text, size_t room)
{
	size_t i, len = strlen(words);

	HOLDS(len < room);
	for (i = 0; i <= len; i++)
		text[i] = words[i] == '\'' ? '"' : words[i] == '|' ? '\0' : words[i];
	return len;
}

void seed_text(uint8_t how, const char *words)
{
	char text[4000] = "";

	seed_with(how, text, text_from(words, text, sizeof(text)));
}
