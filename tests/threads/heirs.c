// SPDX-License-Identifier: GPL-2.0
/* Children that have a descriptor by inheritance: one that is killed, one that execs */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "threads.h"

static int wait_for(struct worker *w, pid_t pid)
{
	int status;

	enter(w, "wait for a child");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	leave(w);
	return 0;
}

/*
 * Nothing but system calls: the others' locks are as they were. A peer may be killed when
 * it has forked and not yet done more: the child goes with it
 */
static void child(int fd, bool waits, pid_t parent)
{
	struct rdmatensor_query query = { .size = sizeof(query) };
	struct rdmatensor_submit wait = { .size = sizeof(wait), .wait_nr = 100 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	ioctl(fd, RDMATENSOR_QUERY, &query);
	if (waits && query.flags & RDMATENSOR_QUERY_STARTED)
		ioctl(fd, RDMATENSOR_SUBMIT, &wait);
	_exit(0);
}

/* It goes by itself, or is killed in the middle of a wait without an end */
int do_fork(struct worker *w, struct life *life)
{
	pid_t parent = getpid(), pid;
	bool waits = one_in(w, 2);

	enter(w, "fork");
	pid = fork();
	if (!pid)
		child(life->fd, waits, parent);
	leave(w);
	if (pid < 0)
		return -errno;
	if (waits) {
		poll(NULL, 0, 1 + below(w, 5));
		kill(pid, SIGKILL);
	}
	return wait_for(w, pid);
}

/* Another program goes on with the context, while its threads here do too */
int do_exec(struct worker *w, struct life *life)
{
	char number[16], *args[] = { "threads", "--heir", number, NULL };
	pid_t pid;

	sprintf(number, "%d", life->fd);
	enter(w, "fork and exec");
	pid = fork();
	if (!pid) {
		fcntl(life->fd, F_SETFD, 0);
		execv("/proc/self/exe", args);
		_exit(127);
	}
	leave(w);
	if (pid < 0)
		return -errno;
	return wait_for(w, pid);
}

/* What it got: 50 ms of calls whose ends are not counted */
int heir_main(int fd)
{
	uint64_t end = rdmatensor_deadline_ms(50);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		struct rdmatensor_pool_create create = {
			.size = sizeof(create), .bytes = 4 * PAGE,
		};
		struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };
		struct rdmatensor_query query = { .size = sizeof(query) };
		struct rdmatensor_step_abort abort = {
			.size = sizeof(abort), .status = -EIO, .step_id = 77,
		};
		struct rdmatensor_submit wait = {
			.size = sizeof(wait), .wait_nr = 1,
			.deadline_ns = rdmatensor_deadline_ms(2),
		};
		void *at;

		ioctl(fd, RDMATENSOR_QUERY, &query);
		if (ioctl(fd, RDMATENSOR_POOL_CREATE, &create))
			continue;
		at = mmap(NULL, create.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  create.out_mmap_offset);
		if (at != MAP_FAILED)
			memset(at, 1, create.bytes);
		ioctl(fd, RDMATENSOR_SUBMIT, &wait);
		ioctl(fd, RDMATENSOR_STEP_ABORT, &abort);
		destroy.pool_id = create.out_pool_id;
		ioctl(fd, RDMATENSOR_POOL_DESTROY, &destroy);
		/* With the mapping it goes when this one ends */
	} while (rdmatensor_now_ns() < end);
	return 0;
}
