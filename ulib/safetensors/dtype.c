// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The element types that safetensors and rdmatensor both have.
 */
#include <string.h>

#include "safetensors.h"

static const struct {
	const char *name;
	uint32_t data_type;
	uint32_t bytes;
} map[] = {
	{ "BOOL", RDMATENSOR_DT_BOOL, 1 },
	{ "U8", RDMATENSOR_DT_UINT8, 1 },
	{ "I8", RDMATENSOR_DT_INT8, 1 },
	{ "F8_E5M2", RDMATENSOR_DT_FLOAT8_E5M2, 1 },
	{ "F8_E4M3", RDMATENSOR_DT_FLOAT8_E4M3FN, 1 },
	{ "I16", RDMATENSOR_DT_INT16, 2 },
	{ "U16", RDMATENSOR_DT_UINT16, 2 },
	{ "F16", RDMATENSOR_DT_HALF, 2 },
	{ "BF16", RDMATENSOR_DT_BFLOAT16, 2 },
	{ "I32", RDMATENSOR_DT_INT32, 4 },
	{ "U32", RDMATENSOR_DT_UINT32, 4 },
	{ "F32", RDMATENSOR_DT_FLOAT, 4 },
	{ "F64", RDMATENSOR_DT_DOUBLE, 8 },
	{ "I64", RDMATENSOR_DT_INT64, 8 },
	{ "U64", RDMATENSOR_DT_UINT64, 8 },
	{ "C64", RDMATENSOR_DT_COMPLEX64, 8 },
};

#define NR (sizeof(map) / sizeof(map[0]))

uint32_t st_data_type(const char *name)
{
	size_t i;

	for (i = 0; i < NR; i++)
		if (!strcmp(map[i].name, name))
			return map[i].data_type;
	return RDMATENSOR_DT_INVALID;
}

const char *st_data_type_name(uint32_t data_type)
{
	size_t i;

	for (i = 0; i < NR; i++)
		if (map[i].data_type == data_type)
			return map[i].name;
	return NULL;
}

size_t st_element_bytes(uint32_t data_type)
{
	size_t i;

	for (i = 0; i < NR; i++)
		if (map[i].data_type == data_type)
			return map[i].bytes;
	return 0;
}
