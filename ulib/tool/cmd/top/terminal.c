// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"
#include "tool/common/stop.h"

/* As the shell has it, and as a command with keys does */
static struct termios usual, raw;
static volatile sig_atomic_t changed;

bool terminal_has_cursor(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

void terminal_size(size_t *lines, size_t *columns)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		memset(&size, 0, sizeof(size));
	*lines = size.ws_row ? size.ws_row : 24;
	*columns = size.ws_col ? size.ws_col : 80;
}

/* Or it was stopped */
static void on_resize(int signo)
{
	(void)signo;
	changed = 1;
}

/* Another job's terminal is left as it is: SIGTTOU would stop this one for that */
static void restore(void)
{
	if (tcgetpgrp(STDIN_FILENO) == getpgrp())
		tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

static void on_leave(int signo);

static void watch_leave(int signo)
{
	/* In the handler it has its usual meaning; a write that waits for the terminal goes on */
	struct sigaction action = {
		.sa_handler = on_leave, .sa_flags = SA_RESETHAND | SA_NODEFER | SA_RESTART,
	};

	sigaction(signo, &action, NULL);
}

/* Ctrl-Z and fg, or an end: raise() returns only if the command goes on */
static void on_leave(int signo)
{
	int err = errno;

	restore();
	raise(signo);
	watch_leave(signo);
	/* After bg this stops until fg: there are no keys, nor is there a screen, before that */
	if (!stop_requested())
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	changed = 1;
	errno = err;
}

/* What ends or stops the command; watched unless it is ignored, as a shell may have it */
static const int leaves[] = { SIGTSTP, SIGQUIT, SIGHUP };

#define NR_LEAVES (sizeof(leaves) / sizeof(leaves[0]))

static bool watched[NR_LEAVES];

bool terminal_begin(void)
{
	struct sigaction action = { .sa_handler = on_resize, .sa_flags = SA_RESTART };
	size_t i;

	sigaction(SIGWINCH, &action, NULL);
	sigaction(SIGCONT, &action, NULL);
	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &usual))
		return false;
	raw = usual;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	atexit(restore);
	for (i = 0; i < NR_LEAVES; i++) {
		watched[i] = !sigaction(leaves[i], NULL, &action) && action.sa_handler == SIG_DFL;
		if (watched[i])
			watch_leave(leaves[i]);
	}
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	return true;
}

void terminal_end(void)
{
	size_t i;

	restore();
	for (i = 0; i < NR_LEAVES; i++)
		if (watched[i])
			signal(leaves[i], SIG_DFL);
}

bool terminal_changed(void)
{
	bool was = changed;

	/* A change in between is seen by the drawing that follows */
	changed = 0;
	return was;
}

bool terminal_asked_to_end(bool *keys)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	if (poll(&pfd, 1, 0) <= 0)
		return false;
	/* A read of a terminal that has hung up is as empty as one of no key, and at once */
	if (pfd.revents & (POLLHUP | POLLERR | POLLNVAL)) {
		*keys = false;
		return false;
	}
	return read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q');
}
