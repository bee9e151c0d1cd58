// SPDX-License-Identifier: GPL-2.0
/* What a process may have: locked memory */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define LIMIT (4 << 20)

static struct side s;

/* In a process that gives up what it could not get back. Return: the line that failed */
static int within_limit(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	struct rdmatensor_pool first, second;
	int i;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setreuid(65534, 65534))
		return __LINE__;
	if (rdmatensor_pool_create(s.rt, LIMIT + 4096, &first) != -ENOMEM)
		return __LINE__;
	/* Again and again: what was destroyed, or not created, does not count */
	for (i = 0; i < 5; i++) {
		if (rdmatensor_pool_create(s.rt, LIMIT / 2, &first))
			return __LINE__;
		if (rdmatensor_pool_create(s.rt, LIMIT / 2 + 4096, &second) != -ENOMEM)
			return __LINE__;
		if (rdmatensor_pool_create(s.rt, LIMIT / 2, &second))
			return __LINE__;
		if (rdmatensor_pool_destroy(s.rt, &first) ||
		    rdmatensor_pool_destroy(s.rt, &second))
			return __LINE__;
	}
	return 0;
}

TEST(pools_count_as_locked_memory)
{
	int status, line;
	pid_t pid;

	side_open(&s, "limited", 4096, 0, NULL);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(within_limit() & 255);
	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	line = WEXITSTATUS(status);
	if (line)
		test_fail(__FILE__, line, "not within the limit");
}
