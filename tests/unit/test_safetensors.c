// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Good headers, each hostile one, files cut short, and many mutations.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "safetensors/safetensors.h"
#include "fake.h"
#include "unit.h"

static struct st_file file;
static char error[ST_ERROR_MAX];

static int parse(const char *json, uint64_t data_bytes)
{
	memset(&file, 0, sizeof(file));
	error[0] = '\0';
	return st_parse(json, strlen(json), data_bytes, &file, error,
			sizeof(error));
}

static const char good[] =
	"{\"__metadata__\":{\"format\":\"pt\",\"n\":\"\"},"
	"\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
	"\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
	"\"empty\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[32,32]},"
	"\"c.d/e\":{\"shape\":[5],\"data_offsets\":[32,37],\"dtype\":\"BOOL\"}}   ";

#define T(name, dtype, shape, offsets) \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_good(void **state)
{
	const struct st_tensor *tensor;

	(void)state;
	if (parse(good, 37))
		fail_msg("%s", error);
	assert_int_equal(file.nr, 4);
	assert_int_equal(file.data_bytes, 37);
	assert_string_equal(file.header, good);
	/* In the order of their bytes */
	assert_string_equal(file.tensors[0].name, "a");
	assert_string_equal(file.tensors[1].name, "b");
	assert_string_equal(file.tensors[2].name, "empty");
	assert_string_equal(file.tensors[3].name, "c.d/e");
	tensor = st_find(&file, "b");
	assert_non_null(tensor);
	assert_int_equal(tensor->data_type, RDMATENSOR_DT_FLOAT);
	assert_int_equal(tensor->ndims, 2);
	assert_int_equal(tensor->dims[0], 2);
	assert_int_equal(tensor->dims[1], 3);
	assert_int_equal(tensor->begin, 8);
	assert_int_equal(tensor->bytes, 24);
	assert_null(st_find(&file, "__metadata__"));
	assert_null(st_find(&file, "z"));
	st_free(&file);
	/* Without knowing how much data there is */
	assert_int_equal(parse(good, UINT64_MAX), 0);
	assert_int_equal(file.data_bytes, 37);
	st_free(&file);
	assert_int_equal(parse("{}", 0), 0);
	assert_int_equal(file.nr, 0);
	st_free(&file);
	assert_int_equal(parse("{\"__metadata__\":{}}", 0), 0);
	st_free(&file);
	/* Those that are shorter than a byte, and whose bytes only the header tells */
	assert_int_equal(parse("{" T("a", "F4", "[3,2]", "[0,3]") "," T("b", "F6_E3M2", "[4]", "[3,6]")
			       "," T("c", "F8_E8M0", "[2]", "[6,8]") "," T("d", "F6_E2M3", "[0,5]", "[8,8]")
			       "}", 8), 0);
	assert_int_equal(file.tensors[0].bytes, 3);
	assert_int_equal(file.tensors[0].data_type, RDMATENSOR_DT_VARIANT);
	assert_int_equal(file.tensors[1].bytes, 3);
	assert_int_equal(file.tensors[2].bytes, 2);
	st_free(&file);
	/* A whole pair is a character */
	assert_int_equal(parse("{\"\\ud83d\\uDE00\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), 0);
	assert_string_equal(file.tensors[0].name, "\xf0\x9f\x98\x80");
	st_free(&file);
	/* Escapes in a name are no reason to refuse it */
	assert_int_equal(parse("{\"\\u00e9\\t\\\"\\\\\\/\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), 0);
	assert_string_equal(file.tensors[0].name, "\xc3\xa9\t\"\\/");
	st_free(&file);
}

#define SIXTEEN "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"

static void test_hostile(void **state)
{
	static const struct {
		const char *json;
		uint64_t bytes;
		const char *words;
		const char *more;
	} bad[] = {
		{ "", 0, "does not begin with {", "" },
		{ "[]", 0, "does not begin with {", "" },
		{ " {}", 0, "does not begin with {", "" },
		{ "{", 0, "ends too early", "" },
		{ "{\"a\":", 0, "ends too early", "" },
		{ "{\"a\"}", 0, "is no JSON", "byte" },
		{ "{}{}", 0, "JSON", "" },
		{ "{} x", 0, "JSON", "" },
		{ "{\"a\":1,}", 0, "is no JSON", "" },
		{ "{'a':1}", 0, "is no JSON", "single quotes" },
		{ "{\"a\":[[[[1]]]]}", 0, "\"a\"", "no object" },
		{ "{\"a\":{\"b\":{\"c\":{\"d\":{}}}}}", 0, "is no JSON", "nesting" },
		{ "{\"a\":{\"b\":1}}", 0, "\"a\"", "no dtype" },
		{ "{" T("a", "U8", "[[1]]", "[0,1]") "}", 1, "\"a\"", "contains arrays" },
		{ "{\"a\":{\"b\":[],\"c\":{},\"d\":[],\"e\":[],\"f\":[]}}", 0, "\"a\"",
		  "more than 4 arrays and objects" },
		{ "{\"\xff\":1}", 0, "is no JSON", "utf-8" },
		{ "{" T("a\tb", "U8", "[1]", "[0,1]") "}", 1, "control", "" },
		{ "{" T("", "U8", "[1]", "[0,1]") "}", 1, "name is empty", "" },
		{ "{" T("\\ud800", "U8", "[1]", "[0,1]") "}", 1, "surrogate", "" },
		{ "{" T("\\ud800\\ud800", "U8", "[1]", "[0,1]") "}", 1, "surrogate", "" },
		{ "{" T("\\udc00\\ud800", "U8", "[1]", "[0,1]") "}", 1, "surrogate", "" },
		{ "{" T("\\uDbff\"", "U8", "[1]", "[0,1]") "}", 1, "", "" },
		{ "{\"__metadata__\":{\"k\":\"\\uDFFFx\"}}", 0, "surrogate", "" },
		{ "{" T("a\\u0000b", "U8", "[1]", "[0,1]") "}", 1,
		  "zero byte", "a\\u0000b" },
		{ "{" T("a", "U8", "[1]", "[0,1]") "," T("b", "U8", "[1]", "[1,2]")
		  "," T("a", "U8", "[1]", "[2,3]") "}", 3, "\"a\"", "twice" },
		{ "{" T("a", "U8", "[1]", "[0,1]") "," T("\\u0061", "U8", "[1]",
		  "[1,2]") "}", 2, "\"a\"", "twice" },
		{ "{\"t\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		  1, "\"dtype\"", "twice" },
		{ "{\"t\":1}", 0, "\"t\"", "no object" },
		{ "{\"t\":null}", 0, "\"t\"", "no object" },
		{ "{\"t\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "\"t\"",
		  "no dtype" },
		{ "{\"t\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
		  "\"t\"", "no dtype" },
		{ "{" T("t", "F5", "[1]", "[0,1]") "}", 1, "\"t\"",
		  "\"F5\" is unknown" },
		{ "{" T("t", "F4", "[3]", "[0,2]") "}", 2, "\"t\"", "whole number of bytes" },
		{ "{" T("t", "F6_E2M3", "[3,2]", "[0,5]") "}", 5, "\"t\"",
		  "whole number of bytes" },
		{ "{" T("t", "F4", "[4]", "[0,4]") "}", 4, "\"t\"",
		  "hold 4 bytes, its dtype and shape 2" },
		{ "{" T("t", "F4", "[9223372036854775806]", "[0,0]") "}", 0, "\"t\"",
		  "64 bits" },
		{ "{" T("t", "F32\\u0000", "[1]", "[0,4]") "}", 4, "\"t\"",
		  "is unknown" },
		{ "{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "\"t\"",
		  "no shape" },
		{ "{" T("t", "U8", "3", "[0,3]") "}", 3, "\"t\"", "no shape" },
		{ "{" T("t", "U8", "[-1]", "[0,1]") "}", 1, "\"t\"", "dim 0" },
		{ "{" T("t", "U8", "[1,\"2\"]", "[0,2]") "}", 2, "\"t\"",
		  "dim 1" },
		{ "{" T("t", "U8", "[1.0]", "[0,1]") "}", 1, "\"t\"", "dim 0" },
		{ "{" T("t", "U8", "[0,99999999999999999999999]", "[0,0]") "}", 0,
		  "\"t\"", "dim 1" },
		{ "{" T("t", "U8", "[0,-99999999999999999999999]", "[0,0]") "}", 0,
		  "\"t\"", "dim 1" },
		{ "{" T("t", "U8", "[" SIXTEEN ",1]", "[0,1]") "}", 1, "\"t\"",
		  "17 dims" },
		{ "{" T("t", "F64", "[4294967296,4294967296]", "[0,8]") "}", 8,
		  "\"t\"", "64 bits" },
		{ "{" T("t", "F64", "[4611686018427387904]", "[0,0]") "}", 0,
		  "\"t\"", "64 bits" },
		{ "{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "\"t\"",
		  "no data_offsets" },
		{ "{" T("t", "U8", "[1]", "[0]") "}", 1, "\"t\"",
		  "no data_offsets" },
		{ "{" T("t", "U8", "[1]", "[0,1,1]") "}", 1, "\"t\"",
		  "no data_offsets" },
		{ "{" T("t", "U8", "[1]", "[-1,0]") "}", 1, "\"t\"",
		  "no whole numbers" },
		{ "{" T("t", "U8", "[1]", "[0,1e0]") "}", 1, "\"t\"",
		  "no whole numbers" },
		{ "{" T("t", "U8", "[1]", "[1,0]") "}", 1, "\"t\"", "reversed" },
		{ "{" T("t", "U8", "[2]", "[0,2]") "}", 1, "\"t\"",
		  "out of range" },
		{ "{" T("t", "U8", "[1]", "[18446744073709551615,18446744073709551615]")
		  "}", 1, "\"t\"", "no whole numbers" },
		{ "{" T("t", "F32", "[2]", "[0,4]") "}", 4, "\"t\"",
		  "hold 4 bytes, its dtype and shape 8" },
		{ "{" T("a", "U8", "[4]", "[0,4]") "," T("b", "U8", "[4]", "[2,6]")
		  "}", 6, "\"b\"", "overlaps \"a\"" },
		{ "{" T("a", "U8", "[4]", "[0,4]") "," T("b", "U8", "[4]", "[0,4]")
		  "}", 4, "\"b\"", "overlaps \"a\"" },
		{ "{" T("a", "U8", "[9]", "[0,9]") "," T("z", "U8", "[0]", "[5,5]")
		  "}", 9, "\"z\"", "overlaps \"a\"" },
		{ "{" T("a", "U8", "[1]", "[0,1]") "," T("b", "U8", "[1]", "[2,3]")
		  "}", 3, "\"b\"", "belong to no tensor" },
		{ "{" T("a", "U8", "[1]", "[1,2]") "}", 2, "\"a\"",
		  "belong to no tensor" },
		{ "{" T("a", "U8", "[1]", "[0,1]") "}", 2, "the data at 2",
		  "belong to no tensor" },
		{ "{}", 1, "belong to no tensor", "" },
		{ "{\"__metadata__\":3}", 0, "__metadata__", "no object" },
		{ "{\"__metadata__\":[]}", 0, "__metadata__", "no object" },
		{ "{\"__metadata__\":{\"k\":{}}}", 0, "__metadata__", "no string" },
		{ "{\"__metadata__\":{\"k\":1}}", 0, "__metadata__",
		  "\"k\" is no string" },
		{ "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "\"k\"",
		  "twice" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < NR(bad); i++) {
		if (parse(bad[i].json, bad[i].bytes) != -EINVAL)
			fail_msg("accepted: %s", bad[i].json);
		assert_contains(error, bad[i].words);
		assert_contains(error, bad[i].more);
		assert_null(file.tensors);
		assert_null(file.header);
	}
	assert_int_equal(st_parse("{}\0", 3, 0, &file, error, sizeof(error)),
			 -EINVAL);
	assert_contains(error, "zero byte");
	/* Without room for the words, and without any */
	assert_int_equal(st_parse("x", 1, 0, &file, error, 5), -EINVAL);
	assert_int_equal(strlen(error), 4);
	assert_int_equal(st_parse("x", 1, 0, &file, NULL, 0), -EINVAL);
}

/* @nr times, with the number in front where there is a place for it, within braces */
static char *many(unsigned int nr, const char *fmt)
{
	char *json = malloc((size_t)nr * (strlen(fmt) + 12) + 3), *at = json;
	unsigned int i;

	assert_non_null(json);
	*at++ = '{';
	for (i = 0; i < nr; i++)
		at += sprintf(at, fmt, i);
	/* A comma is behind each */
	strcpy(at - 1, "}");
	return json;
}

/* What a header of a peer may cost: no more than a few times what a good one does */
static void test_memory(void **state)
{
	static const struct {
		const char *fmt;
		bool taken;
	} forms[] = {
		{ T("%u", "U8", "[]", "[0,0]") ",", true },
		{ "\"%u\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{},\"f\":\"1234567890\"},", true },
		{ "\"%u\":{\"a\":[],\"b\":[],\"c\":[],\"d\":[],\"f\":\"1234567890\"},", true },
		{ "\"%u\":0,", true },
		{ "\"%u\":{\"a\":[" SIXTEEN "," SIXTEEN "," SIXTEEN "]},", true },
		{ "\"%u\":{},", false },
		{ "\"%u\":[],", false },
		{ "\"%u\":[{},{},{},{}],", false },
		{ "\"%u\":{\"a\":{\"a\":{},\"b\":{},\"c\":{}}},", false },
		{ "\"%u\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{},\"e\":{},\"f\":{}},", false },
		{ "\"%u\":{\"a\":[" SIXTEEN "," SIXTEEN "," SIXTEEN "," SIXTEEN ",1]},", false },
		{ "\"__metadata__\":{\"a\":[{},{}]},", false },
		{ "'\"%u':[{},{},{},{}],", false },
	};
	double good_cost = 0, cost;
	size_t i;

	(void)state;
	for (i = 0; i < NR(forms); i++) {
		char *json = many(20000, forms[i].fmt);

		fake.tree_bytes = 0;
		if (!parse(json, 0) && i)
			fail_msg("accepted: %.100s", json);
		assert_int_equal(fake.tree_bytes > 0, forms[i].taken);
		cost = (double)fake.tree_bytes / (double)strlen(json);
		if (!i)
			good_cost = cost;
		/* Of the cheapest form that is good */
		if (cost > 4 * good_cost)
			fail_msg("%.0f bytes a byte, a good header %.0f: %.100s", cost, good_cost,
				 json);
		st_free(&file);
		free(json);
	}
}

/* One tensor, and one array in it that is as long as the header */
static void test_long_array(void **state)
{
	size_t bytes = 2 << 20;
	char *json = malloc(bytes + 1), *at = json;

	(void)state;
	assert_non_null(json);
	at += sprintf(at, "{\"a\":[{}");
	while (at < json + bytes - 6)
		at += sprintf(at, ",{}");
	strcpy(at, "]}");
	fake.tree_bytes = 0;
	assert_int_equal(parse(json, 0), -EINVAL);
	assert_int_equal(fake.tree_bytes, 0);
	free(json);
}

static void test_names(void **state)
{
	char json[1200], name[RDMATENSOR_NAME_MAX + 2];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[RDMATENSOR_NAME_MAX + 1] = '\0';
	snprintf(json, sizeof(json), "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		 name);
	assert_int_equal(parse(json, 1), -EINVAL);
	assert_contains(error, name);
	assert_contains(error, "513 bytes");
	name[RDMATENSOR_NAME_MAX] = '\0';
	snprintf(json, sizeof(json), "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		 name);
	assert_int_equal(parse(json, 1), 0);
	assert_string_equal(file.tensors[0].name, name);
	st_free(&file);
}

static void test_data_types(void **state)
{
	static const char *const names[] = {
		"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "I16", "U16", "F16",
		"BF16", "I32", "U32", "F32", "F64", "I64", "U64", "C64",
	};
	static const size_t bytes[] = {
		1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 8,
	};
	uint32_t bits = 0;
	uint32_t data_type;
	size_t i;

	(void)state;
	for (i = 0; i < NR(names); i++) {
		data_type = st_data_type(names[i], &bits);
		assert_int_not_equal(data_type, RDMATENSOR_DT_INVALID);
		assert_string_equal(st_data_type_name(data_type), names[i]);
		assert_int_equal(st_element_bytes(data_type), bytes[i]);
		assert_int_equal(bits, 8 * bytes[i]);
	}
	assert_int_equal(st_data_type("f32", &bits), RDMATENSOR_DT_INVALID);
	assert_null(st_data_type_name(RDMATENSOR_DT_STRING));
	/* Opaque, and which of these it is only the header tells */
	assert_int_equal(st_data_type("F4", &bits), RDMATENSOR_DT_VARIANT);
	assert_int_equal(bits, 4);
	assert_int_equal(st_data_type("F6_E2M3", &bits), RDMATENSOR_DT_VARIANT);
	assert_int_equal(bits, 6);
	assert_int_equal(st_data_type("F8_E4M3FNUZ", &bits), RDMATENSOR_DT_VARIANT);
	assert_int_equal(bits, 8);
	assert_int_equal(st_data_type("F8_E5M2FNUZ", &bits), RDMATENSOR_DT_VARIANT);
	assert_null(st_data_type_name(RDMATENSOR_DT_VARIANT));
	assert_int_equal(st_element_bytes(RDMATENSOR_DT_VARIANT), 0);
	assert_int_equal(st_element_bytes(RDMATENSOR_DT_STRING), 0);
}

static const struct st_tensor to_make[] = {
	{ .name = "second/\"q\"\n", .data_type = RDMATENSOR_DT_BFLOAT16,
	  .ndims = 2, .dims = { 3, 5 } },
	{ .name = "first", .data_type = RDMATENSOR_DT_DOUBLE },
	{ .name = "none", .data_type = RDMATENSOR_DT_INT8, .ndims = 1 },
};

static void test_make(void **state)
{
	static const char *const metadata[] = { "k", "v", "l", "", NULL };
	struct st_file again;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		memset(error, 0, sizeof(error));
		if (st_make(to_make, 3, i ? metadata : NULL, &file, error,
			    sizeof(error)))
			fail_msg("%s", error);
		assert_int_equal(file.header_bytes % 8, 0);
		assert_int_equal(file.nr, 3);
		assert_int_equal(file.data_bytes, 38);
		assert_string_equal(file.tensors[0].name, to_make[0].name);
		assert_int_equal(file.tensors[1].begin, 30);
		/* The same again, byte for byte */
		assert_int_equal(st_make(to_make, 3, i ? metadata : NULL,
					 &again, error, sizeof(error)), 0);
		assert_int_equal(file.header_bytes, again.header_bytes);
		assert_memory_equal(file.header, again.header,
				    file.header_bytes);
		st_free(&again);
		st_free(&file);
	}
	assert_int_equal(st_make(NULL, 0, NULL, &file, error, sizeof(error)),
			 0);
	assert_string_equal(file.header, "{}      ");
	st_free(&file);
}

/* Of an opaque type the name must be given, and its bits count */
static void test_make_short(void **state)
{
	struct st_tensor tensors[] = {
		{ .name = "a", .dtype = "F4", .data_type = RDMATENSOR_DT_VARIANT, .ndims = 2,
		  .dims = { 3, 2 } },
		{ .name = "b", .dtype = "F8_E8M0", .data_type = RDMATENSOR_DT_VARIANT, .ndims = 1,
		  .dims = { 2 } },
	};

	(void)state;
	if (st_make(tensors, 2, NULL, &file, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(file.data_bytes, 5);
	assert_string_equal(file.tensors[0].dtype, "F4");
	assert_string_equal(file.tensors[1].dtype, "F8_E8M0");
	assert_int_equal(file.tensors[1].begin, 3);
	st_free(&file);
	tensors[0].dims[0] = 1;
	tensors[0].dims[1] = 3;
	assert_int_equal(st_make(tensors, 2, NULL, &file, error, sizeof(error)), -EINVAL);
	assert_contains(error, "no whole number of bytes");
	tensors[0].dims[1] = 2;
	tensors[1].data_type = RDMATENSOR_DT_UINT8;
	assert_int_equal(st_make(tensors, 2, NULL, &file, error, sizeof(error)), -EINVAL);
	tensors[1].data_type = RDMATENSOR_DT_VARIANT;
	tensors[1].dtype = NULL;
	assert_int_equal(st_make(tensors, 2, NULL, &file, error, sizeof(error)), -EINVAL);
	assert_contains(error, "no element type");
}

static void test_make_refuses(void **state)
{
	struct st_tensor bad[2] = { to_make[0], to_make[1] };

	(void)state;
#define refused(words)                                                     \
	do {                                                               \
		assert_int_equal(st_make(bad, 2, NULL, &file, error,       \
					 sizeof(error)), -EINVAL);         \
		assert_contains(error, words);                             \
	} while (0)
	bad[1].data_type = RDMATENSOR_DT_STRING;
	refused("element type 7");
	bad[1] = bad[0];
	refused("taken");
	bad[1].name = "__metadata__";
	refused("taken");
	bad[1].name = "";
	refused("empty");
	bad[1].name = "\xff\xfe";
	refused("no JSON");
	bad[1] = to_make[1];
	bad[1].ndims = 17;
	refused("too long");
	bad[1].ndims = 2;
	bad[1].dims[0] = UINT64_C(1) << 40;
	bad[1].dims[1] = UINT64_C(1) << 40;
	refused("64 bits");
	bad[1].ndims = 1;
	bad[1].dims[0] = (UINT64_C(1) << 61) - 1;
	bad[0] = bad[1];
	bad[0].name = "x";
	bad[1].name = "y";
	bad[1].ndims = 2;
	bad[1].dims[1] = 1;
	refused("tensor \"");
}

static char path[256];

static void write_file(const void *bytes, size_t size)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/st-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static int open_bytes(const void *bytes, size_t size, int *fd)
{
	int err;

	write_file(bytes, size);
	memset(&file, 0, sizeof(file));
	error[0] = '\0';
	err = st_open(path, &file, fd, error, sizeof(error));
	if (err)
		assert_contains(error, path);
	unlink(path);
	return err;
}

static size_t make_bytes(unsigned char *to, const char *json, uint64_t length,
			 size_t data)
{
	size_t i, n = strlen(json);

	for (i = 0; i < 8; i++)
		to[i] = (unsigned char)(length >> (8 * i));
	memcpy(to + 8, json, n);
	memset(to + 8 + n, 0x5a, data);
	return 8 + n + data;
}

static void test_files(void **state)
{
	unsigned char bytes[1024];
	size_t size, cut;
	int fd;

	(void)state;
	size = make_bytes(bytes, good, strlen(good), 37);
	assert_int_equal(open_bytes(bytes, size, &fd), 0);
	assert_int_equal(st_data_offset(&file), 8 + strlen(good));
	close(fd);
	st_free(&file);
	/* Cut anywhere, it is refused, and so is what goes on */
	for (cut = 0; cut < size; cut++) {
		assert_int_equal(open_bytes(bytes, cut, &fd), -EINVAL);
		assert_int_equal(fd, -1);
	}
	assert_int_equal(open_bytes(bytes, size + 1, &fd), -EINVAL);
	assert_contains(error, "belong to no tensor");
	make_bytes(bytes, good, 100000001, 37);
	assert_int_equal(open_bytes(bytes, size, &fd), -EINVAL);
	assert_contains(error, "100000001 bytes, 100000000 are the most");
	make_bytes(bytes, good, UINT64_MAX, 37);
	assert_int_equal(open_bytes(bytes, size, &fd), -EINVAL);
	make_bytes(bytes, good, size - 7, 37);
	assert_int_equal(open_bytes(bytes, size, &fd), -EINVAL);
	assert_contains(error, "truncated");
	assert_int_equal(st_open("/no/such/file", &file, &fd, error,
				 sizeof(error)), -ENOENT);
	assert_int_equal(st_open("/dev", &file, &fd, error, sizeof(error)),
			 -EINVAL);
	assert_contains(error, "not a regular file");
}

static void test_write(void **state)
{
	struct st_file again;
	int fd;

	(void)state;
	assert_int_equal(st_make(to_make, 3, NULL, &file, error,
				 sizeof(error)), 0);
	write_file("", 0);
	fd = open(path, O_RDWR);
	assert_int_equal(st_write_header(fd, &file), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END),
			 8 + (off_t)file.header_bytes + 38);
	close(fd);
	if (st_open(path, &again, &fd, error, sizeof(error)))
		fail_msg("%s", error);
	assert_string_equal(again.header, file.header);
	assert_int_equal(st_write_header(fd, &file), -EINVAL);
	close(fd);
	unlink(path);
	st_free(&again);
	st_free(&file);
}

/* A generator of our own: the same on every machine */
static uint64_t seed = 20171;

static uint32_t draw(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % below;
}

static void check_accepted(uint64_t data_bytes)
{
	uint64_t end = 0, bytes;
	size_t i, d;

	for (i = 0; i < file.nr; i++) {
		const struct st_tensor *tensor = &file.tensors[i];
		size_t len = strlen(tensor->name);

		assert_true(len >= 1 && len <= RDMATENSOR_NAME_MAX);
		assert_true(tensor->ndims <= RDMATENSOR_DIMS_MAX);
		bytes = st_element_bytes(tensor->data_type);
		assert_true(bytes > 0);
		for (d = 0; d < tensor->ndims; d++)
			bytes *= tensor->dims[d];
		assert_int_equal(bytes, tensor->bytes);
		assert_int_equal(tensor->begin, end);
		end += bytes;
		assert_ptr_equal(st_find(&file, tensor->name), tensor);
	}
	assert_int_equal(end, data_bytes);
	assert_int_equal(end, file.data_bytes);
}

static void test_mutations(void **state)
{
	static const char *const bits[] = {
		"{", "}", "[", "]", ",", ":", "\"", "\\", "0", "-1", "1e9",
		"18446744073709551615", "\\u0000", "\\ud800", "null", "true",
		"\"a\":", "\"shape\"", "\"dtype\":\"F32\",", "\xc3\xa9", "\x80",
		"\"__metadata__\":{},", "//", "/**/", "NaN", " ",
	};
	char json[2048], work[2048];
	unsigned int round, accepted = 0;
	size_t len, at, n;
	const char *bit;
	int err;

	(void)state;
	for (round = 0; round < 40000; round++) {
		unsigned int times = 1 + draw(3);

		strcpy(json, good);
		while (times--) {
			len = strlen(json);
			at = draw((uint32_t)len);
			switch (draw(4)) {
			case 0: /* another byte */
				json[at] = (char)(1 + draw(255));
				break;
			case 1: /* some bytes less */
				n = draw(8);
				if (at + n > len)
					n = len - at;
				memmove(json + at, json + at + n,
					len - at - n + 1);
				break;
			case 2: /* a piece more */
				bit = bits[draw(NR(bits))];
				strcpy(work, json + at);
				strcpy(json + at, bit);
				strcat(json, work);
				break;
			default: /* a stretch of itself again */
				n = draw(40);
				if (at + n > len)
					n = len - at;
				strcpy(work, json + at);
				strcpy(json + at + n, work);
				break;
			}
		}
		err = parse(json, 37);
		if (!err) {
			accepted++;
			check_accepted(37);
			st_free(&file);
		} else {
			assert_int_equal(err, -EINVAL);
			assert_int_not_equal(error[0], '\0');
		}
	}
	/* Some hit only blanks and names; a parser that refuses all is no good */
	assert_in_range(accepted, 400, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_long_array),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_data_types),
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_make_short),
		cmocka_unit_test(test_make_refuses),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
