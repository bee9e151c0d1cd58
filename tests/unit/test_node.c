// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a node's calls wait with: pauses, turns, and the deadline of one thread; and what is copied
 * between elements that lie at strides and those that lie together.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "fake.h"
#include "lib/node/node.h"
#include "unit.h"

static struct rdmatensor_node node = { .timeout_ms = 1000 };

static void nothing(int sig)
{
	(void)sig;
}

/* Again and again: one that comes right before a wait does not end it */
static void begin_signals(void)
{
	struct itimerval each = { .it_interval = { .tv_usec = 5000 }, .it_value = { .tv_usec = 5000 } };
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

static void end_signals(void)
{
	struct itimerval none = { .it_value = { .tv_usec = 0 } };

	setitimer(ITIMER_REAL, &none, NULL);
}

static void test_pause(void **state)
{
	uint64_t began = rdmatensor_now_ns(), deadline = rdmatensor_deadline_ms(20);

	(void)state;
	assert_int_equal(node_pause(&node, 1, 0), 0);
	assert_true(rdmatensor_now_ns() - began >= 10000000);
	/* Not beyond the call's end: a second is its most */
	assert_int_equal(node_pause(&node, 100, deadline), 0);
	assert_true(rdmatensor_now_ns() >= deadline);
	began = rdmatensor_now_ns();
	assert_int_equal(node_pause(&node, 100, deadline), 0);
	begin_signals();
	node.interruptible = 1;
	assert_int_equal(node_pause(&node, 100, 0), -EINTR);
	node.interruptible = 0;
	assert_int_equal(node_pause(&node, 100, 0), 0);
	end_signals();
	assert_true(rdmatensor_now_ns() - began < 900000000);
}

static void test_turn(void **state)
{
	sem_t turn;

	(void)state;
	sem_init(&turn, 0, 1);
	assert_int_equal(node_turn(&turn, 0), 0);
	assert_int_equal(node_turn(&turn, rdmatensor_deadline_ms(10)), -ETIMEDOUT);
	assert_int_equal(node_turn(&turn, 1), -ETIMEDOUT);
	begin_signals();
	assert_int_equal(node_turn(&turn, 0), -EINTR);
	assert_int_equal(node_turn(&turn, rdmatensor_deadline_ms(10000)), -EINTR);
	end_signals();
	sem_post(&turn);
	assert_int_equal(node_turn(&turn, 1), 0);
	sem_destroy(&turn);
}

/* Three rows of two out of rows of five, and columns as rows */
static void test_strides(void **state)
{
	struct rdmatensor_stride rows[2] = { { 10, 3 }, { 2, 2 } }, turned[2] = { { 2, 5 }, { 10, 3 } };
	struct rdmatensor_tensor tensor = {
		.data_type = RDMATENSOR_DT_UINT16, .ndims = 2, .dims = { 3, 2 }, .strides = rows,
	};
	uint16_t whole[15], packed[15], i;
	uint64_t span;

	(void)state;
	for (i = 0; i < 15; i++)
		whole[i] = i;
	tensor.data = whole + 1;
	node_gather(&tensor, packed);
	for (i = 0; i < 6; i++)
		assert_int_equal(packed[i], 1 + i / 2 * 5 + i % 2);
	assert_true(node_strides_span(&tensor, &span));
	assert_int_equal(span, 24);
	memset(whole, 0, sizeof(whole));
	node_scatter(&tensor, packed);
	for (i = 0; i < 15; i++)
		assert_int_equal(whole[i], i % 5 == 1 || i % 5 == 2 ? i : 0);
	tensor.data = whole;
	tensor.strides = turned;
	tensor.dims[0] = 5;
	tensor.dims[1] = 3;
	node_gather(&tensor, packed);
	for (i = 0; i < 15; i++)
		assert_int_equal(packed[i], whole[i % 3 * 5 + i / 3]);
}

/* To memory that found no room what comes is placed by the library, if there are places for it */
static void test_places(void **state)
{
	static const struct {
		struct rdmatensor_cqe cqe;
		int ret;
	} cases[] = {
		{ { .flags = RDMATENSOR_CQE_META, .tensor_bytes = 64, .data_type = RDMATENSOR_DT_FLOAT,
		    .ndims = 1, .dims = { 16 } }, 0 },
		{ { .flags = RDMATENSOR_CQE_META, .tensor_bytes = 68, .data_type = RDMATENSOR_DT_FLOAT,
		    .ndims = 1, .dims = { 17 } }, -ERANGE },
		{ { .flags = RDMATENSOR_CQE_META, .tensor_bytes = 64, .data_type = RDMATENSOR_DT_INT32,
		    .ndims = 1, .dims = { 16 } }, -ERANGE },
		{ { .flags = RDMATENSOR_CQE_META, .tensor_bytes = 64, .data_type = RDMATENSOR_DT_FLOAT,
		    .ndims = 2, .dims = { 4, 4 } }, -ERANGE },
		/* Of no bytes, and of any shape */
		{ { .flags = RDMATENSOR_CQE_META | RDMATENSOR_CQE_DEAD,
		    .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .dims = { 1000 } }, 0 },
		{ { .flags = RDMATENSOR_CQE_META, .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2,
		    .dims = { 1ull << 40, 0 } }, 0 },
	};
	const struct rdmatensor_stride stride = { 8, 16 };
	struct rdmatensor_node *own;
	const char *name = "w";
	size_t i;

	(void)state;
	fake_reset();
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	assert_int_equal(rdmatensor_node_open(&own, NULL), 0);
	for (i = 0; i < NR(cases); i++) {
		struct rdmatensor_tensor tensor = {
			.data = calloc(1, 15 * 8 + 4), .strides = &stride, .ndims = 1,
			.data_type = RDMATENSOR_DT_FLOAT,
		};
		void *data = tensor.data;

		fake.crowded = &cases[i].cqe;
		assert_int_equal(rdmatensor_get_many(own, "", &name, &tensor, 1), cases[i].ret);
		assert_null(fake.crowded);
		if (cases[i].ret)
			assert_contains(rdmatensor_node_error(), "does not fit the strides");
		/* As it was said, for another attempt */
		assert_int_equal(tensor.bytes, cases[i].ret ? 124 : cases[i].cqe.tensor_bytes);
		free(data);
	}
	rdmatensor_node_close(own);
	assert_int_equal(fake_open(), 0);
}

/* A peer that is told the host alone looks for it at the port that it then has */
static void test_listen(void **state)
{
	static const struct {
		const char *listen;
		const char *at;
	} cases[] = {
		{ "10.0.0.1", "10.0.0.1:18521" }, { "10.0.0.1:7", "10.0.0.1:7" },
		{ "10.0.0.1:0", "10.0.0.1:0" }, { ":0", "0.0.0.0:0" }, { ":18522", "0.0.0.0:18522" },
		{ "[fd00::1]", "[fd00::1]:18521" },
	};
	struct rdmatensor_node *own;
	char text[64];
	size_t i;

	(void)state;
	fake_reset();
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	for (i = 0; i < NR(cases); i++) {
		assert_int_equal(rdmatensor_node_open(&own, cases[i].listen), 0);
		assert_true(own->start.flags & RDMATENSOR_START_LISTEN);
		assert_string_equal(rdmatensor_format_addr(own->start.listen_addr, text,
							   sizeof(text)), cases[i].at);
		rdmatensor_node_close(own);
	}
	assert_int_equal(fake_open(), 0);
}

static void test_deadline(void **state)
{
	uint64_t now = rdmatensor_now_ns();

	(void)state;
	assert_true(node_deadline(&node) >= now + 1000000000);
	assert_int_equal(rdmatensor_node_until(4711), 0);
	assert_int_equal(node_deadline(&node), 4711);
	assert_int_equal(rdmatensor_node_until(0), 4711);
	assert_true(node_deadline(&node) >= now + 1000000000);
	rdmatensor_node_timeout(&node, -1);
	assert_int_equal(node_deadline(&node), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_strides),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_deadline),
	};

	return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
