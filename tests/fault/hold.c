// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "harness.h"
#include "hold.h"

static const char path[] = "/sys/kernel/debug/hold_rdmatensor";

static void hold_write(const char *text)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

void hold_at(const char *point)
{
	hold_write(point);
}

void hold_wait(void)
{
	char text[40];
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof(text)) > 0);
	close(fd);
}

void hold_go(void)
{
	hold_write("\n");
}

int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

static void *caller_run(void *arg)
{
	struct caller *caller = arg;

	__atomic_store_n(&caller->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	caller->ret = call(caller->fd, caller->cmd, caller->arg);
	__atomic_store_n(&caller->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

void caller_begin(struct caller *caller, int fd, unsigned long cmd, void *arg)
{
	memset(caller, 0, sizeof(*caller));
	caller->fd = fd;
	caller->cmd = cmd;
	caller->arg = arg;
	EQ(pthread_create(&caller->thread, NULL, caller_run, caller), 0);
}

static char task_state(pid_t tid)
{
	char name[64], text[256] = "", *at;
	int fd;

	/* Not in a listing of /proc, but there: any thread */
	snprintf(name, sizeof(name), "/proc/%d/stat", tid);
	fd = open(name, O_RDONLY);
	if (fd < 0)
		return 'X';
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	at = strrchr(text, ')');
	CHECK(at && at[1] == ' ');
	return at[2];
}

void caller_sleeps(struct caller *caller)
{
	pid_t tid;

	while (!(tid = __atomic_load_n(&caller->tid, __ATOMIC_ACQUIRE)))
		sched_yield();
	while (task_state(tid) != 'D') {
		if (__atomic_load_n(&caller->done, __ATOMIC_ACQUIRE))
			test_fail(__FILE__, __LINE__, "the call has returned: %d", caller->ret);
		sched_yield();
	}
}

void process_sleeps(pid_t pid)
{
	char state;

	while ((state = task_state(pid)) != 'D') {
		if (state == 'Z' || state == 'X')
			test_fail(__FILE__, __LINE__, "process %d has ended", pid);
		sched_yield();
	}
}

int caller_end(struct caller *caller)
{
	EQ(pthread_join(caller->thread, NULL), 0);
	return caller->ret;
}
