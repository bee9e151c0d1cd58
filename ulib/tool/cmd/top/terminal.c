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

/* The settings of the shell, and those of a command that reads keys */
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

/* In the background SIGTTOU would stop this process */
static void restore(void)
{
	if (tcgetpgrp(STDIN_FILENO) == getpgrp())
		tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

static void on_leave(int signo);

static void watch_leave(int signo)
{
	/* Within the handler the signal has its default effect; a blocked write is restarted */
	struct sigaction action = {
		.sa_handler = on_leave, .sa_flags = SA_RESETHAND | SA_NODEFER | SA_RESTART,
	};

	sigaction(signo, &action, NULL);
}

/* A stop or an end: raise() returns only when the command continues */
static void on_leave(int signo)
{
	int err = errno;

	restore();
	raise(signo);
	watch_leave(signo);
	/* In the background this stops the command until it is in the foreground */
	if (!stop_requested())
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	changed = 1;
	errno = err;
}

/* Signals that end or stop the command; a signal that is ignored stays so */
static const int leaves[] = { SIGTSTP, SIGQUIT, SIGHUP };

#define NR_LEAVES (sizeof(leaves) / sizeof(leaves[0]))

static bool watched[NR_LEAVES];

/* In the background this stops the command, and a signal that ends it must end the call, too */
static void read_keys(void)
{
	stop_unblock();
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	stop_block();
}

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
	read_keys();
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
	/* A terminal that has hung up returns at once, without a key */
	if (pfd.revents & (POLLHUP | POLLERR | POLLNVAL)) {
		*keys = false;
		return false;
	}
	return read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q');
}
