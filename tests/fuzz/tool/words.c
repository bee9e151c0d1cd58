// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Changes that leave a text whole: numbers and words of it change places.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

static int is_of_word(int byte)
{
	return isalnum(byte) || byte == '.' || byte == '_';
}

static size_t run_at(const uint8_t *data, size_t size, size_t at, int (*of)(int byte))
{
	size_t end = at;

	while (end < size && of(data[end]))
		end++;
	return end - at;
}

/* One of the text's numbers or words, and where it is; 0: there are none */
static size_t run_in(const uint8_t *data, size_t size, int (*of)(int byte), unsigned int which,
		     size_t *at)
{
	size_t i, len, nr = 0;

	for (i = 0; i < size; i += run_at(data, size, i, of) + 1)
		nr += run_at(data, size, i, of) > 0;
	for (i = 0; nr && i < size; i += len + 1) {
		len = run_at(data, size, i, of);
		if (len && which-- % nr == 0) {
			*at = i;
			return len;
		}
	}
	return 0;
}

size_t replace_run(uint8_t *data, size_t size, size_t max_size, size_t at, size_t room,
		   const void *by, size_t len)
{
	if (size - room + len > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memmove(data + at + len, data + at + room, size - at - room);
	memcpy(data + at, by, len);
	return size - room + len;
}

size_t swap_number(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t from, to, len, room;
	char number[24];

	len = run_in(data, size, isdigit, seed & 0xff, &from);
	room = run_in(data, size, isdigit, seed >> 8 & 0xff, &to);
	if (!len || !room || len > 19)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(number, data + from, len);
	number[len] = '\0';
	len = (size_t)snprintf(number, sizeof(number), "%llu",
			       strtoull(number, NULL, 10) + (seed >> 16) % 3);
	return replace_run(data, size, max_size, to, room, number, len);
}

size_t swap_word(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t from, to, len, room;
	uint8_t word[32];

	len = run_in(data, size, is_of_word, seed & 0xff, &from);
	room = run_in(data, size, is_of_word, seed >> 8 & 0xff, &to);
	if (!len || !room || len > sizeof(word))
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(word, data + from, len);
	return replace_run(data, size, max_size, to, room, word, len);
}

size_t rename_word(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t at, len, i, run;
	uint8_t word[32];

	len = run_in(data, size, is_of_word, seed & 0xff, &at);
	if (!len || len > sizeof(word))
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(word, data + at, len);
	at = (seed >> 8) % len;
	for (i = 0; i < size; i += run + 1) {
		run = run_at(data, size, i, is_of_word);
		if (run == len && !memcmp(data + i, word, len))
			data[i + at] = (uint8_t)('a' + (seed >> 16) % 26);
	}
	return size;
}
