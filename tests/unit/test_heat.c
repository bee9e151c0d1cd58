// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* doctor --cluster: what is odd, and how it is shown, of numbers that come from here */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cmd/doctor/heat.h"
#include "unit.h"

#define SIZE_MAX_HERE 40

static uint64_t latency[SIZE_MAX_HERE * SIZE_MAX_HERE], speed[SIZE_MAX_HERE * SIZE_MAX_HERE];
static char names[SIZE_MAX_HERE][80];
static struct heat heat = { .names = names, .latency_ns = latency, .bytes_per_s = speed };

/* All alike: 20 us, 10 GB/s */
static void all_alike(unsigned int size)
{
	unsigned int from, to;

	heat.size = size;
	memset(latency, 0, sizeof(latency));
	memset(speed, 0, sizeof(speed));
	for (from = 0; from < size; from++) {
		snprintf(names[from], sizeof(names[from]), "10.0.0.%u:18521", from + 1);
		for (to = 0; to < size; to++) {
			latency[from * size + to] = from == to ? 0 : 20000;
			speed[from * size + to] = from == to ? 0 : UINT64_C(10000000000);
		}
	}
}

static uint64_t *at(uint64_t *values, unsigned int from, unsigned int to)
{
	return &values[from * heat.size + to];
}

/* For free() */
static char *printed(bool colours, int odd)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	assert_int_equal(heat_print(&heat, colours, file), odd);
	fclose(file);
	return text;
}

static void has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no \"%s\" in:\n%s", what, text);
}

static void test_nothing_is_odd(void **state)
{
	char *text;

	(void)state;
	all_alike(4);
	/* Up to twice as long, and from two thirds of the bytes on */
	*at(latency, 0, 1) = 40000;
	*at(speed, 2, 3) = UINT64_C(6670000000);
	text = printed(false, 0);
	has(text, "rank 3 is 10.0.0.4:18521\n");
	has(text, "latency of 4096 bytes, us, usual 20.0\n  by \\ of        0        1        2        3\n"
		  "        0        -     40.0     20.0     20.0\n");
	has(text, "bandwidth of 8 MiB, MB/s, usual 10000\n");
	has(text, "        2    10000    10000        -     6670\n");
	assert_null(strstr(text, "odd"));
	assert_null(strchr(text, '\033'));
	free(text);
}

static void test_odd_pair(void **state)
{
	char *text;

	(void)state;
	all_alike(4);
	*at(latency, 1, 2) = 40100;
	*at(speed, 3, 0) = UINT64_C(5000000000);
	text = printed(true, 2);
	has(text, "odd: rank 1 (10.0.0.2:18521) of rank 2 (10.0.0.3:18521): latency of 4096 bytes: 40.1 us, usual 20.0\n");
	has(text, "odd: rank 3 (10.0.0.4:18521) of rank 0 (10.0.0.1:18521): bandwidth of 8 MiB: 5000.0 MB/s, usual 10000.0\n");
	/* Green, and red for what is odd */
	has(text, "\033[32m    20.0\033[0m");
	has(text, "\033[31m    40.1\033[0m");
	free(text);
	/* Some microseconds more are nothing, whatever the median is */
	all_alike(4);
	for (unsigned int i = 0; i < 16; i++)
		latency[i] = latency[i] ? 1000 : 0;
	*at(latency, 1, 2) = 6000;
	text = printed(false, 0);
	free(text);
	*at(latency, 1, 2) = 6001;
	text = printed(false, 1);
	free(text);
}

static void test_odd_rank(void **state)
{
	unsigned int other;
	char *text;

	(void)state;
	all_alike(8);
	for (other = 0; other < 8; other++)
		if (other != 5)
			*at(speed, 5, other) = *at(speed, other, 5) = UINT64_C(1000000000);
	/* A pair of others is named beside it */
	*at(speed, 1, 2) = UINT64_C(100000000);
	text = printed(false, 2);
	has(text, "odd: rank 5 (10.0.0.6:18521): bandwidth of 8 MiB with 14 of its 14 pairs\n");
	has(text, "odd: rank 1 (10.0.0.2:18521) of rank 2 ");
	assert_null(strstr(text, "of rank 5"));
	free(text);
	/* Of three, most pairs are the slow one's */
	all_alike(3);
	for (other = 0; other < 2; other++)
		*at(latency, 2, other) = *at(latency, other, 2) = 60000;
	text = printed(false, 1);
	has(text, "odd: rank 2 (10.0.0.3:18521): latency of 4096 bytes with 4 of its 4 pairs\n");
	free(text);
	/* Of two nobody is named alone */
	all_alike(2);
	*at(latency, 1, 0) = 100000;
	text = printed(false, 1);
	has(text, "odd: rank 1 (10.0.0.2:18521) of rank 0 ");
	free(text);
}

static void test_map(void **state)
{
	char *text;

	(void)state;
	all_alike(20);
	*at(latency, 0, 1) = 30000;
	*at(latency, 0, 2) = 60000;
	*at(latency, 0, 3) = 600000;
	text = printed(false, 2);
	has(text, "      0  -+#................\n");
	has(text, "     19 ................... \n");
	has(text, ". up to 1.25 times, or 5 us more, - up to 2, + up to 4, # more");
	assert_null(strstr(text, "rank 3 is"));
	free(text);
}

/* More odd pairs than are shown are counted */
static void test_many_odd(void **state)
{
	unsigned int i;
	char *text;

	(void)state;
	all_alike(40);
	for (i = 0; i < 20; i++)
		*at(latency, 2 * i, 2 * i + 1) = 100000;
	text = printed(false, 20);
	has(text, "odd: rank 30 (");
	assert_null(strstr(text, "odd: rank 32 ("));
	has(text, "odd: 4 more pairs: latency of 4096 bytes\n");
	free(text);
}

static void test_json(void **state)
{
	struct json_object *object = json_object_new_object(), *odd, *rows, *value;

	(void)state;
	all_alike(3);
	*at(latency, 2, 0) = 50500;
	assert_int_equal(heat_add(&heat, object), 1);
	assert_true(json_object_object_get_ex(object, "odd", &odd));
	assert_int_equal(json_object_array_length(odd), 1);
	assert_string_equal(json_object_to_json_string_ext(json_object_array_get_idx(odd, 0),
							   JSON_C_TO_STRING_PLAIN),
			    "{\"what\":\"latency_us\",\"rank\":2,\"of\":0,\"value\":50.5}");
	assert_true(json_object_object_get_ex(object, "latency_us", &rows));
	assert_string_equal(json_object_to_json_string_ext(rows, JSON_C_TO_STRING_PLAIN),
			    "[[null,20.000,20.000],[20.000,null,20.000],[50.500,20.000,null]]");
	assert_true(json_object_object_get_ex(object, "usual_mb_per_s", &value));
	assert_int_equal((int)json_object_get_double(value), 10000);
	json_object_put(object);
}

/* What was not measured is not usual, and is named */
static void test_not_measured(void **state)
{
	struct json_object *object = json_object_new_object(), *value;
	char *text;

	(void)state;
	all_alike(3);
	*at(latency, 1, 0) = *at(speed, 1, 0) = 0;
	text = printed(false, 1);
	has(text, "        1        -        -    10000\n");
	has(text, "not measured: rank 1 (10.0.0.2:18521) of rank 0 (10.0.0.1:18521)\n");
	free(text);
	assert_int_equal(heat_add(&heat, object), 1);
	assert_true(json_object_object_get_ex(object, "not_measured", &value));
	assert_int_equal(json_object_get_int(value), 1);
	json_object_put(object);
	/* Nothing was */
	memset(latency, 0, sizeof(latency));
	memset(speed, 0, sizeof(speed));
	text = printed(false, 6);
	has(text, "latency of 4096 bytes, us, usual 0.0\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_odd),
		cmocka_unit_test(test_odd_pair),
		cmocka_unit_test(test_odd_rank),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_many_odd),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
