// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keepers that begin where another one has died, and where a third one begins meanwhile. Any
 * descriptor is a domain to them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture.h"
#include "fake.h"
#include "tool/common/keeper.h"
#include "tool/common/message.h"
#include "unit.h"

static char dir[64], path[128], live[128];
/* What becomes of @path between the look at a dead socket and what is done about it */
static bool meanwhile;

int __real_lstat(const char *name, struct stat *stat);
int __wrap_lstat(const char *name, struct stat *stat);

/* Also in the keeper's process, which is forked */
int __wrap_lstat(const char *name, struct stat *stat)
{
	int ret = __real_lstat(name, stat);

	if (meanwhile && !strcmp(name, path)) {
		meanwhile = false;
		assert_int_equal(rename(live, path), 0);
	}
	return ret;
}

/* Paths of sockets are short */
static int setup(void **state)
{
	(void)state;
	fake_reset();
	meanwhile = false;
	strcpy(dir, "/tmp/keeper-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(live, sizeof(live), "%s/live", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	/* Nothing else may be left behind */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static int socket_at(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, name);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* What keeper_keep() returns; @messages has what it says */
static int keep(const char *label)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fd, saved, ret;
	struct keeper keeper;

	assert_true(null >= 0);
	assert_int_equal(keeper_begin(path, &keeper), EXIT_OK);
	fd = capture_begin(STDERR_FILENO, &saved);
	ret = keeper_keep(&keeper, null, label);
	capture_end(STDERR_FILENO, saved, fd, messages, sizeof(messages));
	close(null);
	return ret;
}

static void expect_kept(const char *label)
{
	char kept[KEEPER_LABEL_MAX];
	int domain;

	assert_int_equal(keeper_get(path, &domain, kept), EXIT_OK);
	assert_true(domain >= 0);
	assert_string_equal(kept, label);
	close(domain);
}

static void expect_end(void)
{
	bool there;

	assert_int_equal(keeper_end(path, &there), EXIT_OK);
	assert_true(there);
}

static void replaces_a_dead_one(void **state)
{
	(void)state;
	close(socket_at(path));
	assert_int_equal(keep("one"), EXIT_OK);
	expect_kept("one");
	assert_int_equal(keep("two"), EXIT_FAILED);
	assert_non_null(strstr(messages, "another server has left its domain there meanwhile"));
	expect_kept("one");
	expect_end();
}

/* What two have seen dead only one replaces: a keeper that nobody can reach keeps for ever */
static void replaces_no_other_one(void **state)
{
	int other = socket_at(live), client;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)state;
	close(socket_at(path));
	meanwhile = true;
	assert_int_equal(keep("one"), EXIT_FAILED);
	assert_non_null(strstr(messages, "another server has left its domain there meanwhile"));
	/* The other one is where it was */
	strcpy(addr.sun_path, path);
	client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(accept(other, NULL, NULL));
	close(client);
	close(other);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(replaces_a_dead_one, setup, teardown),
		cmocka_unit_test_setup_teardown(replaces_no_other_one, setup, teardown),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
