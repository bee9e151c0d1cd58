// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The signals that end a server are blocked except during ppoll(), so that none is lost
 * between the check of the flag and the wait.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#include "message.h"
#include "stop.h"

static volatile sig_atomic_t requested;
static sigset_t outside;

static void on_signal(int signo)
{
	requested = signo;
}

void stop_init(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	sigprocmask(SIG_BLOCK, NULL, &outside);
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

bool stop_requested(void)
{
	return requested;
}

/* Neither a signal nor an entry: a command that went on would be busy, or end as if well */
static void wait_failed(void)
{
	exit(failed("wait: %s", strerror(errno)));
}

bool stop_wait_fd(int fd, int ms)
{
	struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	/* A signal may have arrived while they were not blocked */
	if (requested)
		return true;
	if (ppoll(&pfd, 1, ms < 0 ? NULL : &wait, &outside) < 0 && errno != EINTR)
		wait_failed();
	return requested;
}

bool stop_wait(struct rdmatensor *rt, uint64_t deadline_ns)
{
	struct pollfd pfd = { .fd = rdmatensor_fd(rt), .events = POLLIN };
	struct timespec wait = { 0 };
	uint64_t now = rdmatensor_now_ns();

	if (requested)
		return true;
	if (deadline_ns > now) {
		wait.tv_sec = (time_t)((deadline_ns - now) / 1000000000u);
		wait.tv_nsec = (long)((deadline_ns - now) % 1000000000u);
	}
	if (ppoll(&pfd, 1, deadline_ns ? &wait : NULL, &outside) < 0) {
		if (errno != EINTR)
			wait_failed();
		return requested;
	}
	return requested || pfd.revents & (POLLERR | POLLHUP | POLLNVAL);
}
