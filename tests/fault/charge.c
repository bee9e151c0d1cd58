// SPDX-License-Identifier: GPL-2.0
/*
 * Locked memory of pools that are being freed, which counts until they are: their user
 * waits for it where it does not fit, and can be killed meanwhile; other users do not.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"
#include "hold.h"

#define LIMIT (4 << 20)

enum { OWNER = 60001, OTHER = 60002 };

static struct side s;

/* Return: a process of that user, with a limit; 0 in it */
static pid_t user(uid_t uid)
{
	struct rlimit limit = { LIMIT, LIMIT };
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid && (setrlimit(RLIMIT_MEMLOCK, &limit) || setreuid(uid, uid)))
		_exit(255);
	return pid;
}

static int create(unsigned long long bytes, uint32_t *id)
{
	struct rdmatensor_pool_create pool = { .size = sizeof(pool), .bytes = bytes };
	int ret = call(rdmatensor_fd(s.rt), RDMATENSOR_POOL_CREATE, &pool);

	*id = pool.out_pool_id;
	return ret;
}

static int destroy(uint32_t id)
{
	struct rdmatensor_pool_destroy arg = { sizeof(arg), id };

	return call(rdmatensor_fd(s.rt), RDMATENSOR_POOL_DESTROY, &arg);
}

/* As that user: a pool of @bytes. Return: the process */
static pid_t creates(uid_t uid, unsigned long long bytes)
{
	pid_t pid = user(uid);
	uint32_t id;

	if (!pid) {
		int ret = create(bytes, &id);

		_exit(ret ? -ret : destroy(id));
	}
	return pid;
}

/* As that user: a pool of @bytes beside one of @before that it has already */
static pid_t creates_beside(uid_t uid, unsigned long long before, unsigned long long bytes)
{
	pid_t pid = user(uid);
	uint32_t id, second;

	if (!pid) {
		int ret = create(before, &id) ? -254 : create(bytes, &second);

		_exit(destroy(id) ? 253 : -ret);
	}
	return pid;
}

/* Return: the errno that it ended with, or 1000 and its signal */
static int ended(pid_t pid)
{
	int status;

	EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(pools_that_are_freed_hold_up_their_user_only)
{
	struct timespec from, to;
	pid_t pid, destroys;

	side_open(&s, "charge", 4096, 0, NULL);
	test_param("memlock", 1);
	hold_at("pool_free");
	destroys = creates(OWNER, LIMIT);
	hold_wait();

	/* A thread is held for 60 s at most: who had waited would have waited for that */
	clock_gettime(CLOCK_MONOTONIC, &from);
	EQ(ended(creates_beside(OTHER, LIMIT / 2, LIMIT)), ENOMEM);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK(to.tv_sec - from.tv_sec < 30);

	/* Nor does its own user, for what never fits */
	EQ(ended(creates(OWNER, LIMIT + 4096)), ENOMEM);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK(to.tv_sec - from.tv_sec < 30);

	/* For what will fit it waits, and may be killed */
	pid = creates(OWNER, LIMIT);
	process_sleeps(pid);
	EQ(kill(pid, SIGKILL), 0);
	EQ(ended(pid), 1000 + SIGKILL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK(to.tv_sec - from.tv_sec < 30);

	/* And gets it when it is free */
	pid = creates(OWNER, LIMIT);
	process_sleeps(pid);
	hold_go();
	EQ(ended(pid), 0);
	/* POOL_DESTROY returns when all is free */
	EQ(ended(destroys), 0);
	test_param("memlock", 0);
}
