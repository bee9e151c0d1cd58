// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * START's argument: defaults, and the environment.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdmatensor/params.h>
#include <rdmatensor/rdmatensor.h>

#include "unit.h"

static const char *const names[] = {
	"RDMA_DEVICE", "RDMA_DEVICE_PORT", "RDMA_GID_INDEX",
	"RDMA_QP_PKEY_INDEX", "RDMA_PKEY", "RDMA_QP_QUEUE_DEPTH",
	"RDMA_QUEUE_DEPTH", "RDMA_QP_TIMEOUT", "RDMA_TIMEOUT",
	"RDMA_QP_RETRY_COUNT", "RDMA_RETRY_CNT", "RDMA_QP_SL", "RDMA_SL",
	"RDMA_QP_MTU", "RDMA_MTU", "RDMA_TRAFFIC_CLASS", "RDMATENSOR_VALIDATE",
};

static int clean(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < NR(names); i++)
		unsetenv(names[i]);
	return 0;
}

static struct rdmatensor_start start;
static char cause[512];

static int from_env(void)
{
	rdmatensor_start_init(&start, "me");
	cause[0] = '\0';
	return rdmatensor_start_from_env(&start, cause, sizeof(cause));
}

static void test_init(void **state)
{
	char longer[2 * RDMATENSOR_WORKER_MAX];

	(void)state;
	rdmatensor_start_init(&start, "worker-7");
	assert_int_equal(start.size, sizeof(start));
	assert_string_equal(start.worker, "worker-7");
	assert_int_equal(start.flags, 0);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	rdmatensor_start_init(&start, longer);
	assert_int_equal(strlen(start.worker), RDMATENSOR_WORKER_MAX - 1);
	rdmatensor_start_init(&start, NULL);
	assert_non_null(strrchr(start.worker, '-'));
	assert_int_equal(atoi(strrchr(start.worker, '-') + 1), getpid());
}

static void test_nothing(void **state)
{
	struct rdmatensor_start plain;

	(void)state;
	rdmatensor_start_init(&plain, "me");
	assert_int_equal(from_env(), 0);
	assert_memory_equal(&start, &plain, sizeof(start));
	/* Set but empty is as good as not set */
	setenv("RDMA_QP_SL", "", 1);
	setenv("RDMA_DEVICE", "", 1);
	assert_int_equal(from_env(), 0);
	assert_memory_equal(&start, &plain, sizeof(start));
}

static void test_all(void **state)
{
	(void)state;
	setenv("RDMA_DEVICE", "rxe0", 1);
	setenv("RDMA_DEVICE_PORT", "2", 1);
	setenv("RDMA_GID_INDEX", "0", 1);
	setenv("RDMA_QP_PKEY_INDEX", "0x10", 1);
	setenv("RDMA_QP_QUEUE_DEPTH", "512", 1);
	setenv("RDMA_QP_TIMEOUT", "31", 1);
	setenv("RDMA_QP_RETRY_COUNT", "0", 1);
	setenv("RDMA_QP_SL", "7", 1);
	setenv("RDMA_QP_MTU", "2048", 1);
	setenv("RDMA_TRAFFIC_CLASS", "0xFf", 1);
	assert_int_equal(from_env(), 0);
	assert_string_equal(start.device_name, "rxe0");
	assert_int_equal(start.port, 2);
	assert_int_equal(start.gid_index, 0);
	assert_int_equal(start.pkey_index, 16);
	assert_int_equal(start.queue_depth, 512);
	assert_int_equal(start.timeout, 31);
	assert_int_equal(start.retry_count, 0);
	assert_int_equal(start.sl, 7);
	assert_int_equal(start.mtu, 2048);
	assert_int_equal(start.traffic_class, 255);
	/* 0 is a value as others are: the mask says which fields are meant */
	assert_int_equal(start.flags, 0);
	assert_int_equal(start.set, RDMATENSOR_SET_PORT | RDMATENSOR_SET_GID_INDEX |
			 RDMATENSOR_SET_PKEY_INDEX | RDMATENSOR_SET_QUEUE_DEPTH |
			 RDMATENSOR_SET_TIMEOUT | RDMATENSOR_SET_RETRY_COUNT |
			 RDMATENSOR_SET_SL | RDMATENSOR_SET_MTU |
			 RDMATENSOR_SET_TRAFFIC_CLASS);
}

static void test_auto(void **state)
{
	(void)state;
	setenv("RDMA_QP_MTU", "auto", 1);
	setenv("RDMA_SL", "auto", 1);
	assert_int_equal(from_env(), 0);
	assert_int_equal(start.mtu, RDMATENSOR_PARAM_AUTO);
	assert_int_equal(start.sl, RDMATENSOR_PARAM_AUTO);
	assert_int_equal(start.set, RDMATENSOR_SET_MTU | RDMATENSOR_SET_SL);
	setenv("RDMA_PKEY", "auto", 1);
	assert_int_equal(from_env(), -EINVAL);
}

static void test_no_validation(void **state)
{
	(void)state;
	setenv("RDMATENSOR_VALIDATE", "0", 1);
	assert_int_equal(from_env(), 0);
	assert_int_equal(start.flags, 0);
	assert_int_equal(start.set, RDMATENSOR_SET_VALIDATE);
	setenv("RDMATENSOR_VALIDATE", "1", 1);
	assert_int_equal(from_env(), 0);
	assert_int_equal(start.flags, RDMATENSOR_START_VALIDATE);
	assert_int_equal(start.set, RDMATENSOR_SET_VALIDATE);
}

/* A program with the struct as it was before the mask: nothing behind it is touched */
static void test_older_struct(void **state)
{
	const size_t older = offsetof(struct rdmatensor_start, set);
	unsigned char *bytes = (unsigned char *)&start;
	size_t i;

	(void)state;
	setenv("RDMA_GID_INDEX", "0", 1);
	setenv("RDMA_QP_SL", "0", 1);
	setenv("RDMA_TRAFFIC_CLASS", "8", 1);
	setenv("RDMATENSOR_VALIDATE", "1", 1);
	setenv("RDMA_QP_MTU", "auto", 1);
	memset(&start, 0xa5, sizeof(start));
	rdmatensor_start_init_sized(&start, older, "me");
	assert_int_equal(start.size, older);
	assert_int_equal(rdmatensor_start_from_env(&start, cause, sizeof(cause)), 0);
	assert_int_equal(start.flags, RDMATENSOR_START_GID_INDEX | RDMATENSOR_START_VALIDATE);
	assert_int_equal(start.traffic_class, 8);
	assert_int_equal(start.mtu, 0);
	assert_int_equal(rdmatensor_start_set(&start, "retry_count", 0), 0);
	assert_true(start.flags & RDMATENSOR_START_RETRY_COUNT);
	for (i = older; i < sizeof(start); i++)
		assert_int_equal(bytes[i], 0xa5);
	/* One that was not made by the library */
	memset(&start, 0, sizeof(start));
	assert_int_equal(rdmatensor_start_from_env(&start, cause, sizeof(cause)), -EINVAL);
	assert_contains(cause, "rdmatensor_start_init()");
}

static void test_set(void **state)
{
	struct rdmatensor_start plain;

	(void)state;
	rdmatensor_start_init(&start, "me");
	plain = start;
	assert_int_equal(rdmatensor_start_set(&start, "sl", 8), -EINVAL);
	assert_int_equal(rdmatensor_start_set(&start, "sl", 1ull << 32), -EINVAL);
	assert_int_equal(rdmatensor_start_set(&start, "lanes", RDMATENSOR_PARAM_AUTO), -EINVAL);
	assert_int_equal(rdmatensor_start_set(&start, "mtu", 1500), -EINVAL);
	assert_int_equal(rdmatensor_start_set(&start, "max_contexts", 1), -ENOENT);
	assert_memory_equal(&start, &plain, sizeof(start));
	assert_int_equal(rdmatensor_start_set(&start, "sl", 0), 0);
	assert_int_equal(rdmatensor_start_set(&start, "stripe_bytes", 4294967294), 0);
	assert_int_equal(rdmatensor_start_set(&start, "validate", 0), 0);
	assert_int_equal(start.set, RDMATENSOR_SET_SL | RDMATENSOR_SET_STRIPE_BYTES |
			 RDMATENSOR_SET_VALIDATE);
	assert_int_equal(start.stripe_bytes, 4294967294);
}

static void test_older_names(void **state)
{
	(void)state;
	setenv("RDMA_PKEY", "1", 1);
	setenv("RDMA_QUEUE_DEPTH", "16", 1);
	setenv("RDMA_TIMEOUT", "3", 1);
	setenv("RDMA_RETRY_CNT", "4", 1);
	setenv("RDMA_SL", "5", 1);
	setenv("RDMA_MTU", "256", 1);
	assert_int_equal(from_env(), 0);
	assert_int_equal(start.pkey_index, 1);
	assert_int_equal(start.queue_depth, 16);
	assert_int_equal(start.timeout, 3);
	assert_int_equal(start.retry_count, 4);
	assert_int_equal(start.sl, 5);
	assert_int_equal(start.mtu, 256);
	/* Both names may say the same */
	setenv("RDMA_QP_SL", "5", 1);
	assert_int_equal(from_env(), 0);
	setenv("RDMA_QP_SL", "6", 1);
	assert_int_equal(from_env(), -EINVAL);
	assert_contains(cause, "RDMA_QP_SL=6");
	assert_contains(cause, "RDMA_SL=5");
}

static void test_refused(void **state)
{
	static const struct {
		const char *name;
		const char *value;
		const char *range;
	} bad[] = {
		{ "RDMA_DEVICE_PORT", "0", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "256", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "1x", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "one", "1 to 255" },
		{ "RDMA_DEVICE_PORT", " 1", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "1 ", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "+1", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "0x", "1 to 255" },
		{ "RDMA_DEVICE_PORT", "0x0x1", "1 to 255" },
		{ "RDMA_GID_INDEX", "-1", "0 to 255" },
		{ "RDMA_GID_INDEX", "4294967296", "0 to 255" },
		{ "RDMA_GID_INDEX", "18446744073709551616", "0 to 255" },
		{ "RDMA_PKEY", "65536", "0 to 65535" },
		{ "RDMA_QUEUE_DEPTH", "15", "16 to 16384" },
		{ "RDMA_TIMEOUT", "32", "1 to 31" },
		{ "RDMA_TIMEOUT", "0", "1 to 31" },
		{ "RDMA_RETRY_CNT", "8", "0 to 7" },
		{ "RDMA_QP_SL", "8", "0 to 7" },
		{ "RDMA_QP_MTU", "1500", "power of two from 256 to 4096" },
		{ "RDMA_QP_MTU", "8192", "power of two from 256 to 4096" },
		{ "RDMA_QP_MTU", "128", "power of two from 256 to 4096" },
		{ "RDMA_TRAFFIC_CLASS", "256", "0 to 255" },
	};
	struct rdmatensor_start plain;
	size_t i;

	rdmatensor_start_init(&plain, "me");
	for (i = 0; i < NR(bad); i++) {
		setenv("RDMA_DEVICE", "rxe0", 1);
		setenv(bad[i].name, bad[i].value, 1);
		assert_int_equal(from_env(), -EINVAL);
		assert_contains(cause, bad[i].name);
		assert_contains(cause, bad[i].value);
		assert_contains(cause, bad[i].range);
		/* Nothing is changed by what is refused */
		assert_memory_equal(&start, &plain, sizeof(start));
		clean(state);
	}
}

static void test_device_name(void **state)
{
	char name[65];

	(void)state;
	memset(name, 'd', 64);
	name[64] = '\0';
	setenv("RDMA_DEVICE", name, 1);
	assert_int_equal(from_env(), -EINVAL);
	assert_contains(cause, "63 bytes");
	name[63] = '\0';
	setenv("RDMA_DEVICE", name, 1);
	assert_int_equal(from_env(), 0);
	assert_string_equal(start.device_name, name);
	/* The text is optional */
	setenv("RDMA_QP_SL", "8", 1);
	assert_int_equal(rdmatensor_start_from_env(&start, NULL, 0), -EINVAL);
}

/* What is chosen is not looked at in the environment, however bad it is there */
static void test_rest(void **state)
{
	(void)state;
	rdmatensor_start_init(&start, "test");
	setenv("RDMA_QP_SL", "99", 1);
	setenv("RDMATENSOR_VALIDATE", "7", 1);
	setenv("RDMA_GID_INDEX", "x", 1);
	setenv("RDMA_DEVICE", "rxe1", 1);
	setenv("RDMA_TRAFFIC_CLASS", "8", 1);
	assert_int_equal(rdmatensor_start_rest_from_env(&start, cause, sizeof(cause)), -EINVAL);
	assert_int_equal(rdmatensor_start_set(&start, "sl", 0), 0);
	assert_int_equal(rdmatensor_start_set(&start, "validate", 0), 0);
	assert_int_equal(rdmatensor_start_rest_from_env(&start, cause, sizeof(cause)), -EINVAL);
	assert_contains(cause, "RDMA_GID_INDEX=x");
	/* Written without the mask it is chosen as well, if it is not 0 */
	start.gid_index = 3;
	strcpy(start.device_name, "rxe0");
	assert_int_equal(rdmatensor_start_rest_from_env(&start, cause, sizeof(cause)), 0);
	assert_int_equal(start.sl, 0);
	assert_int_equal(start.gid_index, 3);
	assert_int_equal(start.traffic_class, 8);
	assert_string_equal(start.device_name, "rxe0");
	/* The other one looks at all */
	assert_int_equal(rdmatensor_start_from_env(&start, cause, sizeof(cause)), -EINVAL);
	clean(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_init, clean),
		cmocka_unit_test_setup(test_nothing, clean),
		cmocka_unit_test_setup(test_all, clean),
		cmocka_unit_test_setup(test_auto, clean),
		cmocka_unit_test_setup(test_no_validation, clean),
		cmocka_unit_test_setup(test_older_struct, clean),
		cmocka_unit_test_setup(test_set, clean),
		cmocka_unit_test_setup(test_older_names, clean),
		cmocka_unit_test_setup(test_refused, clean),
		cmocka_unit_test_setup(test_device_name, clean),
		cmocka_unit_test_setup(test_rest, clean),
	};

	return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
