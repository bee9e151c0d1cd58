// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Text and time.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

int rt_cause(char *cause, size_t cause_len, int err, const char *fmt, ...)
{
	va_list args;

	if (!cause || !cause_len)
		return err;
	va_start(args, fmt);
	vsnprintf(cause, cause_len, fmt, args);
	va_end(args);
	return err;
}

int rt_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long value;
	int base = 10;
	char *end;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	/* strtoull() itself would take blanks, a sign, and a second 0x */
	if (!(*text >= '0' && *text <= '9') &&
	    !(base == 16 && strchr("abcdefABCDEF", *text) && *text))
		return -EINVAL;
	if (base == 16 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, base);
	if (errno || *end || value < min || value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

void rt_copy_string(char *to, size_t to_len, const char *from)
{
	size_t len = strnlen(from, to_len - 1);

	memset(to, 0, to_len);
	memcpy(to, from, len);
}

int rt_take_struct(void *own, size_t own_size, const void *theirs, size_t size)
{
	const unsigned char *bytes = theirs;
	size_t i;

	for (i = own_size; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memset(own, 0, own_size);
	memcpy(own, theirs, size < own_size ? size : own_size);
	return 0;
}

void rt_give_struct(void *theirs, size_t size, const void *own, size_t own_size)
{
	memcpy(theirs, own, size < own_size ? size : own_size);
}

uint64_t rdmatensor_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t rdmatensor_deadline_ms(int64_t ms)
{
	uint64_t now;

	if (ms < 0)
		return 0;
	now = rdmatensor_now_ns();
	/* What the kernel's signed time cannot hold is never */
	if ((uint64_t)ms > (INT64_MAX - now) / 1000000u)
		return 0;
	return now + (uint64_t)ms * 1000000u;
}

const char *rdmatensor_cqe_text(const struct rdmatensor_cqe *cqe, char *text,
				size_t text_len)
{
	const char *words = cqe->result ? strerror(-cqe->result) : strerror(0);
	int len = cqe->text_len;

	if (!cqe->type && !cqe->result) {
		snprintf(text, text_len, "not submitted: the call's result says why");
		return text;
	}
	if (cqe->type == RDMATENSOR_CQE_FETCH && cqe->result == -EMSGSIZE &&
	    cqe->flags & RDMATENSOR_CQE_META && !(cqe->flags & RDMATENSOR_CQE_TEXT)) {
		snprintf(text, text_len, "%s: the tensor has %" PRIu64 " bytes, and its place fewer",
			 words, (uint64_t)cqe->tensor_bytes);
		return text;
	}
	if (!(cqe->flags & RDMATENSOR_CQE_TEXT) || !len) {
		snprintf(text, text_len, "%s", words);
		return text;
	}
	if (len > RDMATENSOR_TEXT_MAX)
		len = RDMATENSOR_TEXT_MAX;
	snprintf(text, text_len, "%s: %.*s", words, len, cqe->text);
	return text;
}

const char *rdmatensor_status_text(struct rdmatensor *rt, const struct rdmatensor_cqe *cqe,
				   char *text, size_t text_len)
{
	char all[RDMATENSOR_STATUS_TEXT_MAX];
	struct rdmatensor_status_text arg = {
		.size = sizeof(arg),
		.text_id = cqe->text_id,
		.text_uptr = rdmatensor_op_ptr(all),
		.text_len = sizeof(all),
	};

	if (!(cqe->flags & RDMATENSOR_CQE_MORE) || rt_ioctl(rt, RDMATENSOR_STATUS_TEXT, &arg))
		return rdmatensor_cqe_text(cqe, text, text_len);
	/* A kernel that is newer than this library may have a longer one */
	if (arg.text_len > sizeof(all))
		arg.text_len = sizeof(all);
	snprintf(text, text_len, "%s: %.*s", strerror(-cqe->result), (int)arg.text_len, all);
	return text;
}
