// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The element types of safetensors, and what they are here. Those that are shorter than a
 * byte, the exponents that go with them, and the floats without a negative zero have no type
 * of their own: such a tensor is opaque, and whoever has its header knows what it is.
 */
#include <inttypes.h>
#include <string.h>

#include "internal.h"

static const struct {
	const char *name;
	uint32_t data_type;
	uint32_t bits;
} map[] = {
	{ "BOOL", RDMATENSOR_DT_BOOL, 8 },
	{ "U8", RDMATENSOR_DT_UINT8, 8 },
	{ "I8", RDMATENSOR_DT_INT8, 8 },
	{ "F8_E5M2", RDMATENSOR_DT_FLOAT8_E5M2, 8 },
	{ "F8_E4M3", RDMATENSOR_DT_FLOAT8_E4M3FN, 8 },
	{ "I16", RDMATENSOR_DT_INT16, 16 },
	{ "U16", RDMATENSOR_DT_UINT16, 16 },
	{ "F16", RDMATENSOR_DT_HALF, 16 },
	{ "BF16", RDMATENSOR_DT_BFLOAT16, 16 },
	{ "I32", RDMATENSOR_DT_INT32, 32 },
	{ "U32", RDMATENSOR_DT_UINT32, 32 },
	{ "F32", RDMATENSOR_DT_FLOAT, 32 },
	{ "F64", RDMATENSOR_DT_DOUBLE, 64 },
	{ "I64", RDMATENSOR_DT_INT64, 64 },
	{ "U64", RDMATENSOR_DT_UINT64, 64 },
	{ "C64", RDMATENSOR_DT_COMPLEX64, 64 },
	{ "F4", RDMATENSOR_DT_VARIANT, 4 },
	{ "F6_E2M3", RDMATENSOR_DT_VARIANT, 6 },
	{ "F6_E3M2", RDMATENSOR_DT_VARIANT, 6 },
	{ "F8_E8M0", RDMATENSOR_DT_VARIANT, 8 },
	{ "F8_E4M3FNUZ", RDMATENSOR_DT_VARIANT, 8 },
	{ "F8_E5M2FNUZ", RDMATENSOR_DT_VARIANT, 8 },
};

#define NR (sizeof(map) / sizeof(map[0]))

uint32_t st_data_type(const char *name, uint32_t *bits)
{
	size_t i;

	for (i = 0; i < NR; i++) {
		if (strcmp(map[i].name, name))
			continue;
		*bits = map[i].bits;
		return map[i].data_type;
	}
	return RDMATENSOR_DT_INVALID;
}

const char *st_dtype(const char *name)
{
	size_t i;

	for (i = 0; i < NR; i++)
		if (!strcmp(map[i].name, name))
			return map[i].name;
	return NULL;
}

const char *st_data_type_name(uint32_t data_type)
{
	size_t i;

	/* One of many names is none */
	for (i = 0; i < NR && data_type != RDMATENSOR_DT_VARIANT; i++)
		if (map[i].data_type == data_type)
			return map[i].name;
	return NULL;
}

size_t st_element_bytes(uint32_t data_type)
{
	size_t i;

	for (i = 0; i < NR && data_type != RDMATENSOR_DT_VARIANT; i++)
		if (map[i].data_type == data_type)
			return map[i].bits / 8;
	return 0;
}

int st_shape_bytes(const char *name, uint64_t elements, uint32_t bits, uint64_t *bytes,
		   char *error, size_t error_len)
{
	uint32_t by = bits % 8 ? bits : bits / 8;

	if (__builtin_mul_overflow(elements, by, bytes))
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.520s\": its shape is larger than 64 bits can count",
			       name);
	if (by != bits)
		return 0;
	if (*bytes % 8)
		return st_fail(error, error_len, -EINVAL,
			       "tensor \"%.520s\": its %" PRIu64 " elements of %u bits are no whole number of bytes",
			       name, elements, bits);
	*bytes /= 8;
	return 0;
}
