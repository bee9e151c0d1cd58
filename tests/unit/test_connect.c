// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A host with several addresses: which of them are tried, and at which one is waited.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "fake.h"
#include "tool/common/context.h"
#include "tool/common/message.h"
#include "tool/common/options.h"
#include "unit.h"

static struct rdmatensor *rt;
/* That were connected by @rt */
static uint32_t channels;
static char cause[256];

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);

/* "host" has one of each family, that of IPv6 first, as where it is preferred */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	struct addrinfo numeric = *hints, *second;
	int err;

	if (strcmp(node, "host"))
		return __real_getaddrinfo(node, service, hints, list);
	numeric.ai_flags = AI_NUMERICHOST;
	err = __real_getaddrinfo("fd00::1", service, &numeric, list) ?:
	      __real_getaddrinfo("10.0.0.1", service, &numeric, &second);
	if (!err)
		(*list)->ai_next = second;
	return err;
}

static int setup(void **state)
{
	struct rdmatensor_start start;

	(void)state;
	fake_reset();
	channels = 0;
	rdmatensor_start_init(&start, "test");
	return rdmatensor_open(FAKE_PATH, &rt) || rdmatensor_start(rt, &start);
}

static int teardown(void **state)
{
	(void)state;
	rdmatensor_close(rt);
	return 0;
}

static int family(void)
{
	return ((struct sockaddr_in *)fake.connected.addr)->sin_family;
}

static int connect_to(const char *peer, uint32_t timeout_ms)
{
	uint32_t channel = 0;
	int err = rdmatensor_connect(rt, peer, NULL, timeout_ms, &channel, cause, sizeof(cause));

	assert_int_equal(channel, err ? 0 : ++channels);
	return err;
}

static void test_next_address(void **state)
{
	static const int errors[] = {
		-ECONNREFUSED, -EHOSTUNREACH, -ENETUNREACH, -EADDRNOTAVAIL, -EAFNOSUPPORT,
		-ETIMEDOUT, -EXDEV,
	};
	size_t i;

	(void)state;
	for (i = 0; i < NR(errors); i++) {
		fake.connects = 0;
		fake.connect_error_v6 = errors[i];
		assert_int_equal(connect_to("host", 0), 0);
		assert_int_equal(fake.connects, 2);
		assert_int_equal(family(), AF_INET);
		assert_int_equal(ntohs(((struct sockaddr_in *)fake.connected.addr)->sin_port),
				 RDMATENSOR_PORT);
	}
	/* The first is as good as the other */
	fake.connects = 0;
	fake.connect_error_v6 = 0;
	assert_int_equal(connect_to("host:99", 0), 0);
	assert_int_equal(fake.connects, 1);
	assert_int_equal(family(), AF_INET6);
	/* What is not the address's fault is not mended by another one */
	fake.connects = 0;
	fake.connect_error_v6 = -EACCES;
	assert_int_equal(connect_to("host", 0), -EACCES);
	assert_int_equal(fake.connects, 1);
}

static void test_waits(void **state)
{
	struct rdmatensor_connect connect = { .flags = RDMATENSOR_CONNECT_NOWAIT };
	uint64_t begun;

	(void)state;
	/* A peer that comes later, on the host's other address: each has its turns */
	fake.connect_error_v6 = -ENETUNREACH;
	fake.connect_error = -ECONNREFUSED;
	fake.connects_until = 6;
	assert_int_equal(connect_to("host", 20000), 0);
	assert_int_equal(fake.connects, 6);
	assert_int_equal(family(), AF_INET);
	/* No turn keeps the other address waiting for long, nor waits itself */
	assert_int_equal(fake.connected.flags, RDMATENSOR_CONNECT_NOWAIT);
	assert_in_range(fake.connected.timeout_ms, 1, 4000);
	/* It never comes: the bound is on all together, and what is told is what can be mended */
	fake.connects_until = 0;
	fake.connect_error_v6 = -ECONNREFUSED;
	fake.connect_error = -ENETUNREACH;
	begun = rdmatensor_now_ns();
	assert_int_equal(connect_to("host", 50), -ECONNREFUSED);
	assert_in_range(rdmatensor_now_ns() - begun, 50000000, UINT64_C(5000000000));
	assert_contains(cause, "nobody listens");
	fake.connect_error_v6 = -EXDEV;
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(connect_to("host", 50), -ECONNREFUSED);
	/* Who does not want to wait does not, and has its argument back */
	fake.connects = 0;
	connect.timeout_ms = 700;
	assert_int_equal(rdmatensor_connect_peer(rt, "host", &connect, cause, sizeof(cause)),
			 -ECONNREFUSED);
	assert_int_equal(fake.connects, 2);
	assert_int_equal(connect.timeout_ms, 700);
	assert_int_equal(connect.flags, RDMATENSOR_CONNECT_NOWAIT);
	/* One address: one ioctl, as it is */
	fake.connects = 0;
	assert_int_equal(connect_to("10.0.0.1", 7), -ECONNREFUSED);
	assert_int_equal(fake.connects, 1);
	assert_int_equal(fake.connected.timeout_ms, 7);
	assert_int_equal(fake.connected.flags, 0);
}

/* Stopped and going on, a command waits for what is left of its --wait */
static void test_wait_goes_on(void **state)
{
	uint64_t begun = rdmatensor_now_ns();
	uint32_t channel = 0;

	(void)state;
	fake.connect_error = -EINTR;
	fake.connects_until = 3;
	fake.connect_ms = 40;
	assert_int_equal(connect_within(rt, UINT64_C(5000000000), "10.0.0.1", NULL, &channel, cause,
					sizeof(cause)), 0);
	assert_int_equal(fake.connects, 3);
	assert_in_range(fake.connected.timeout_ms, 1, 5000 - 2 * 40);
	/* No time is left: as short as can be, and not the default, which is 0 */
	assert_int_equal(wait_ms(wait_left(1000000, begun)), 1);
	assert_int_equal(wait_ms(wait_left(WAIT_DEFAULT, begun)), 0);
	assert_int_equal(wait_left(0, begun), 0);
	/* Longer than the ABI's field holds: as long as it does */
	assert_int_equal(wait_ms(UINT64_C(4294967296) * 1000000), UINT32_MAX);
	assert_int_equal(wait_ms(UINT64_C(9007199254740993) * 1000), UINT32_MAX);
	assert_int_equal(wait_ms(UINT64_MAX - 1), UINT32_MAX);
	assert_int_equal(wait_ms(1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_next_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wait_goes_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
