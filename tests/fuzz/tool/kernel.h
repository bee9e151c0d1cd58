/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_FUZZ_KERNEL_H
#define TESTS_FUZZ_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct kernel - what a netlink socket receives
 * @data: messages: a length each, of two bytes, and the bytes behind netlink's own header
 * @size: length of all
 * @error: what receiving ends with, 0 or a negative error of libnl's
 * @errors: so many times
 * @drops: messages that there was no room for, at the end of each receiving
 * @dumps: that were asked for
 * @messages: that were received
 * @turns: every other message is of every other dump
 */
extern struct kernel {
	const uint8_t *data;
	size_t size;
	int error;
	unsigned int errors;
	uint32_t drops;
	unsigned int dumps;
	size_t messages;
	bool turns;
} kernel;

/* The length that is written so */
static inline size_t kernel_length(const uint8_t *at)
{
	return at[0] | (size_t)(at[1] & 0x0f) << 8;
}

#endif
