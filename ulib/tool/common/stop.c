// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The signals that end a command are blocked between the check of the flag and ppoll(), which
 * unblocks them, so that none is lost in between. top and monitor have them blocked until then
 * as a rule, since a resize must not be lost either; servers have them unblocked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "message.h"
#include "stop.h"

static volatile sig_atomic_t requested;
static sigset_t outside;

static void on_signal(int signo)
{
	requested = signo;
	/* The wait for a pipe that nobody reads, too: alarm() is for handlers */
	alarm(STOP_SECONDS);
}

void stop_init(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	sigprocmask(SIG_BLOCK, NULL, &outside);
	/* Ignored or blocked by the parent, it could not end the process */
	signal(SIGALRM, SIG_DFL);
	sigdelset(&outside, SIGALRM);
	sigdelset(&outside, SIGINT);
	sigdelset(&outside, SIGTERM);
	sigdelset(&outside, SIGWINCH);
	sigdelset(&outside, SIGTSTP);
	sigdelset(&outside, SIGCONT);
	/* Before the handlers are set: a signal in between stays pending */
	stop_block();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void stop_unblock(void)
{
	sigprocmask(SIG_SETMASK, &outside, NULL);
}

void stop_block(void)
{
	sigset_t set = outside;

	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* A resize and a continuation end a wait, too */
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

void stop_end(void)
{
	alarm(0);
}

bool stop_requested(void)
{
	return requested;
}

/* Neither a signal nor an entry: a command that went on would be busy, or end as if well */
static void wait_failed(void)
{
	exit(failed("wait: %s", strerror(errno)));
}

/* As ppoll() does, between a look at the flag and the wait no signal is lost */
static int wait_until(struct pollfd *pfd, const struct timespec *wait)
{
	sigset_t before;
	int ret = -1;

	sigprocmask(SIG_BLOCK, NULL, &before);
	stop_block();
	errno = EINTR;
	if (!requested)
		ret = ppoll(pfd, 1, wait, &outside);
	if (ret < 0 && errno != EINTR)
		wait_failed();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ret;
}

bool stop_wait_fd(int fd, int ms)
{
	struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	wait_until(&pfd, ms < 0 ? NULL : &wait);
	return requested;
}

bool stop_wait(struct rdmatensor *rt, uint64_t deadline_ns)
{
	struct pollfd pfd = { .fd = rdmatensor_fd(rt), .events = POLLIN };
	struct timespec wait = { 0 };
	uint64_t now = rdmatensor_now_ns();

	if (deadline_ns > now) {
		wait.tv_sec = (time_t)((deadline_ns - now) / 1000000000u);
		wait.tv_nsec = (long)((deadline_ns - now) % 1000000000u);
	}
	if (wait_until(&pfd, deadline_ns ? &wait : NULL) < 0)
		return requested;
	/* What has ended is read first */
	return requested || (!(pfd.revents & POLLIN) &&
			     pfd.revents & (POLLERR | POLLHUP | POLLNVAL));
}
