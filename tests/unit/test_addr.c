// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include <rdmatensor/rdmatensor.h>

#include "unit.h"

static uint8_t addr[28];
static char cause[512];

static int parse(const char *text, int passive)
{
	memset(addr, 0xaa, sizeof(addr));
	cause[0] = '\0';
	return rdmatensor_parse_addr(text, 18521, passive, addr, cause,
				     sizeof(cause));
}

static void test_good(void **state)
{
	static const struct {
		const char *text;
		int passive;
		const char *expect;
	} good[] = {
		{ "10.0.0.1", 0, "10.0.0.1:18521" },
		{ "10.0.0.1:1", 0, "10.0.0.1:1" },
		{ "10.0.0.1:65535", 0, "10.0.0.1:65535" },
		{ "10.0.0.1:0", 1, "10.0.0.1:0" },
		{ "::1", 0, "[::1]:18521" },
		{ "fe80::1:2", 0, "[fe80::1:2]:18521" },
		{ "[::1]", 0, "[::1]:18521" },
		{ "[2001:db8::7]:99", 0, "[2001:db8::7]:99" },
		{ "[10.0.0.1]:5", 0, "10.0.0.1:5" },
		{ "[fe80::1%lo]:9", 0, "[fe80::1%lo]:9" },
		{ ":7", 1, "0.0.0.0:7" },
		{ "*:7", 1, "0.0.0.0:7" },
		{ "*", 1, "0.0.0.0:18521" },
		{ "", 1, "0.0.0.0:18521" },
		{ "[::]:3", 1, "[::]:3" },
	};
	char text[80];
	size_t i;

	(void)state;
	for (i = 0; i < NR(good); i++) {
		if (parse(good[i].text, good[i].passive))
			fail_msg("%s: %s", good[i].text, cause);
		assert_string_equal(rdmatensor_format_addr(addr, text,
							   sizeof(text)),
				    good[i].expect);
	}
}

static void test_bad(void **state)
{
	static const struct {
		const char *text;
		int passive;
		int err;
		const char *words;
	} bad[] = {
		{ "", 0, -EINVAL, "names no host" },
		{ ":5", 0, -EINVAL, "names no host" },
		{ "7000", 1, -EINVAL, "write :PORT" },
		{ "7000:80", 0, -EINVAL, "a number alone is no host" },
		{ "10.0.0.1:0", 0, -EINVAL, "1 to 65535" },
		{ "10.0.0.1:", 0, -EINVAL, "1 to 65535" },
		{ "10.0.0.1:65536", 0, -EINVAL, "1 to 65535" },
		{ "10.0.0.1:65536", 1, -EINVAL, "0 to 65535" },
		{ "10.0.0.1:-1", 0, -EINVAL, "1 to 65535" },
		{ "10.0.0.1:80x", 0, -EINVAL, "1 to 65535" },
		{ "10.0.0.1: 80", 0, -EINVAL, "1 to 65535" },
		{ "[::1", 0, -EINVAL, "[v6]:port" },
		{ "[]:5", 0, -EINVAL, "[v6]:port" },
		{ "[::1]5", 0, -EINVAL, "[v6]:port" },
		{ "[::1]:", 0, -EINVAL, "1 to 65535" },
		{ "::1::2", 0, -EADDRNOTAVAIL, "::1::2" },
		{ "1:2:3", 0, -EADDRNOTAVAIL, "1:2:3" },
		{ "no-such-host.invalid", 0, -EADDRNOTAVAIL,
		  "no-such-host.invalid" },
	};
	char name[400];
	size_t i;

	(void)state;
	for (i = 0; i < NR(bad); i++) {
		int err = parse(bad[i].text, bad[i].passive);

		if (err != bad[i].err)
			fail_msg("%s: %d", bad[i].text, err);
		assert_contains(cause, bad[i].words);
	}
	memset(name, 'h', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(parse(name, 0), -EINVAL);
}

static void test_bytes(void **state)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	size_t i;

	(void)state;
	assert_int_equal(parse("10.1.2.3:258", 0), 0);
	memcpy(&in, addr, sizeof(in));
	assert_int_equal(in.sin_family, AF_INET);
	assert_int_equal(in.sin_port, htons(258));
	assert_int_equal(in.sin_addr.s_addr, htonl(0x0a010203));
	/* The kernel wants the rest zero */
	for (i = sizeof(in); i < sizeof(addr); i++)
		assert_int_equal(addr[i], 0);
	assert_int_equal(parse("[::1]:258", 0), 0);
	memcpy(&in6, addr, sizeof(in6));
	assert_int_equal(in6.sin6_family, AF_INET6);
	assert_int_equal(in6.sin6_port, htons(258));
	assert_true(IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr));
}

static void test_listen(void **state)
{
	struct rdmatensor_start start;
	struct sockaddr_in in;
	char text[80];

	(void)state;
	rdmatensor_start_init(&start, "me");
	assert_int_equal(rdmatensor_start_listen(&start, "10.0.0.1", cause,
						 sizeof(cause)), 0);
	assert_int_equal(start.flags, RDMATENSOR_START_LISTEN);
	memcpy(&in, start.listen_addr, sizeof(in));
	assert_int_equal(in.sin_port, 0);
	assert_int_equal(rdmatensor_start_listen(&start, "10.0.0.1:x", cause,
						 sizeof(cause)), -EINVAL);
	memset(addr, 0, sizeof(addr));
	assert_string_equal(rdmatensor_format_addr(addr, text, sizeof(text)),
			    "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_listen),
	};

	return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}
