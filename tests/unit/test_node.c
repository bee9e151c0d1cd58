// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a node's calls wait with: pauses, turns, and the deadline of one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/time.h>

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
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_deadline),
	};

	return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
