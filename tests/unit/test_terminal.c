// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What runs on a terminal, on a real one of many sizes: top with more channels than there
 * are lines, with names that a terminal would take for commands; monitor into a pipe that
 * nobody reads. What the kernel tells comes from here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "tool/cmd/commands.h"
#include "tool/cmd/top/terminal.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"
#include "tool/common/output.h"
#include "tool/common/stop.h"
#include "tool/common/text.h"
#include "unit.h"

/* Channels that there are, and whether a dump of them comes whole */
static unsigned int nr_channels;
static bool whole, own;
/* Counts of a channel at each look; 0: they stand still */
static uint64_t growth;

/* The command in a script that a shell's job is, and which stops with it; 0: there is no script */
static pid_t *in_script;

/*
 * Stopped with its script, the command is not the first to hear of it: it is at work when the
 * shell has its terminal already
 */
static void work_while_stopped(void)
{
	printf("working\n");
	fflush(stdout);
	while (tcgetpgrp(STDIN_FILENO) == getpgrp())
		usleep(1000);
}

int __wrap_dump_objects(int cmd, uint32_t context, struct json_object **out,
			struct dump_extent *extent);
int __wrap_listen_events(bool (*event)(struct json_object *object, void *arg), void *arg);

int __wrap_dump_objects(int cmd, uint32_t context, struct json_object **out,
			struct dump_extent *extent)
{
	static uint64_t looks;
	struct json_object *one, *counters;
	unsigned int i;
	char name[64];

	(void)cmd;
	(void)context;
	looks++;
	if (in_script && looks > 1)
		work_while_stopped();
	*out = json_object_new_array();
	*extent = (struct dump_extent){ .whole = whole, .own = own };
	for (i = 0; i < nr_channels; i++) {
		one = json_object_new_object();
		add_number(one, "context", 1);
		add_number(one, "channel", i + 1);
		add_number(one, "requests", growth ? 123456 : 1);
		snprintf(name, sizeof(name), "\033[2J\xc2\x9b" "31m\r\n%u", i);
		add_string(one, "worker", name);
		add_string(one, "peer", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac");
		counters = json_object_new_object();
		add_number(counters, rdmatensor_stat_name(RDMATENSOR_STAT_FETCHED),
			   looks * growth);
		add_number(counters, rdmatensor_stat_name(RDMATENSOR_STAT_FETCHED_BYTES),
			   looks * growth * 4096);
		add_number(counters, rdmatensor_stat_name(RDMATENSOR_STAT_FETCH_ERRORS),
			   looks * growth);
		add_number(counters, rdmatensor_stat_name(RDMATENSOR_STAT_STALL_SLOTS),
			   looks * growth);
		json_object_object_add(one, "counters", counters);
		json_object_array_add(*out, one);
	}
	return EXIT_OK;
}

/* Events without an end, if there are channels; else one that says what is missing */
int __wrap_listen_events(bool (*event)(struct json_object *object, void *arg), void *arg)
{
	struct json_object *object;

	do {
		object = json_object_new_object();
		add_string(object, "event", nr_channels ? "channel up" : "lost");
		add_number(object, nr_channels ? "context" : "events", 7);
		add_string(object, "worker", "\033[31m");
	} while (event(object, arg) && nr_channels && !stop_requested());
	return EXIT_OK;
}

/**
 * struct terminal - one with a command on it
 * @fd: what a person has of it
 * @child: the command
 * @text: what has come, zero-terminated
 * @bytes: their number
 */
static struct terminal {
	int fd;
	pid_t child;
	char text[1 << 18];
	size_t bytes;
} terminal;

#define ARGS(...) ((char *[]){ "rdmatensor test", __VA_ARGS__, NULL })

static int count(char *const *args)
{
	int nr = 0;

	while (args[nr])
		nr++;
	return nr;
}

static void run_on(int lines, int columns, int (*command)(int argc, char **argv), char **args)
{
	struct winsize size = { .ws_row = (unsigned short)lines, .ws_col = (unsigned short)columns };

	memset(&terminal, 0, sizeof(terminal));
	fflush(stdout);
	terminal.child = forkpty(&terminal.fd, NULL, NULL, &size);
	assert_true(terminal.child >= 0);
	if (!terminal.child) {
		optind = 0;
		/* Nothing of this program's, as its reports of leaks */
		exit(command(count(args), args) || fflush(stdout) ? 3 : 0);
	}
}

/* More of what it prints. False: it has ended */
static bool read_more(void)
{
	struct pollfd pfd = { .fd = terminal.fd, .events = POLLIN };
	ssize_t got;

	if (poll(&pfd, 1, 20000) != 1)
		fail_msg("nothing more has come: %s",
			 terminal.text + (terminal.bytes > 600 ? terminal.bytes - 600 : 0));
	got = read(terminal.fd, terminal.text + terminal.bytes,
		   sizeof(terminal.text) - 1 - terminal.bytes);
	if (got <= 0)
		return false;
	terminal.bytes += (size_t)got;
	terminal.text[terminal.bytes] = '\0';
	return true;
}

static int end_of(void)
{
	int status;

	while (read_more())
		;
	close(terminal.fd);
	assert_int_equal(waitpid(terminal.child, &status, 0), terminal.child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static size_t eat(const char **at, const char *what)
{
	size_t len = strlen(what);

	if (strncmp(*at, what, len))
		return 0;
	*at += len;
	return len;
}

/*
 * From the clearing of the screen to the next one or the end: @lines and @columns hold it,
 * and of commands it has only those of ours. Returns its lines
 */
static int check_frame(const char *at, int lines, int columns, bool colours)
{
	static const char clear[] = "\033[H\033[J";
	int line = 1, column = 0, taken;
	size_t bytes;

	assert_true(eat(&at, clear));
	while (*at && strncmp(at, clear, strlen(clear))) {
		if (eat(&at, "\r\n")) {
			/* The one at the end puts the cursor behind the last line */
			if (!*at)
				break;
			line++;
			column = 0;
			continue;
		}
		if (eat(&at, "\033[7m") || eat(&at, "\033[0m")) {
			if (!colours)
				fail_msg("colours: %s", terminal.text);
			continue;
		}
		bytes = text_character(at, strlen(at), &taken);
		if (!bytes || taken < 0)
			fail_msg("line %d has byte %02x", line, (unsigned char)*at);
		at += bytes;
		column += taken;
		if (column > columns)
			fail_msg("line %d is longer than %d columns: %s", line, columns,
				 terminal.text);
	}
	if (line > lines)
		fail_msg("%d lines on %d: %s", line, lines, terminal.text);
	return line;
}

static const char *last_frame(void)
{
	const char *at = terminal.text, *frame = NULL;

	for (; (at = strstr(at, "\033[H\033[J")); at++)
		frame = at;
	if (!frame)
		fail_msg("no frame: %s", terminal.text);
	return frame;
}

static int setup(void **state)
{
	(void)state;
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	nr_channels = 40;
	whole = true;
	own = false;
	growth = 0;
	in_script = NULL;
	return 0;
}

static void test_top_fits(void **state)
{
	static const struct {
		int lines, columns;
	} sizes[] = { { 24, 80 }, { 10, 40 }, { 25, 132 }, { 4, 20 }, { 1, 1 }, { 100, 81 } };
	size_t i;

	(void)state;
	for (i = 0; i < NR(sizes); i++) {
		/* Small numbers, then such that no column has room for */
		for (growth = 0; growth < UINT64_C(1) << 45; growth += UINT64_C(1) << 44) {
			run_on(sizes[i].lines, sizes[i].columns, cmd_top,
			       ARGS("-d", "0.01", "-n", "2"));
			assert_int_equal(end_of(), 0);
			assert_int_equal(check_frame(last_frame(), sizes[i].lines,
						     sizes[i].columns, true),
					 sizes[i].lines > 43 ? 43 : sizes[i].lines);
		}
	}
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "1"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "40 channels");
	assert_contains(terminal.text, "... and 20 more");
	assert_contains(terminal.text, "\\x1b[2J");
}

/* The first frame after the size has changed comes at once, and fits */
static void test_top_resized(void **state)
{
	struct winsize size = { .ws_row = 10, .ws_col = 40 };
	size_t seen;
	int lines = 0;

	(void)state;
	run_on(24, 80, cmd_top, ARGS("-d", "3600"));
	while (!strstr(terminal.text, "more"))
		assert_true(read_more());
	check_frame(last_frame(), 24, 80, true);
	seen = terminal.bytes;
	assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
	while (!strstr(terminal.text + seen, "more"))
		assert_true(read_more());
	lines = check_frame(last_frame(), 10, 40, true);
	assert_int_equal(lines, 10);
	assert_int_equal(write(terminal.fd, "q", 1), 1);
	assert_int_equal(end_of(), 0);
}

/* In its own process group; the shell waits for it to stop, or to end */
static void run_job(int argc, char **argv)
{
	pid_t child;
	int status;

	signal(SIGTTOU, SIG_DFL);
	setpgid(0, 0);
	raise(SIGSTOP);
	if (!in_script)
		exit(cmd_top(argc, argv));
	child = fork();
	if (!child)
		exit(cmd_top(argc, argv));
	*in_script = child;
	waitpid(child, &status, 0);
	exit(status);
}

/* All of the script has stopped: of a process that is no child of one's there is no event */
static bool command_stops(void)
{
	uint64_t end = rdmatensor_now_ns() + UINT64_C(10000000000);
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)*in_script);
	while (state != 'T' && rdmatensor_now_ns() < end) {
		usleep(1000);
		file = fopen(path, "r");
		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
	}
	return state == 'T';
}

static bool is_usual(void)
{
	struct termios now;

	return !tcgetattr(STDIN_FILENO, &now) && now.c_lflag & ICANON && now.c_lflag & ECHO;
}

/* A shell with one job, which it brings back when it has stopped: it says how it finds the terminal */
static int shell(int argc, char **argv)
{
	pid_t job;
	int status;

	signal(SIGTTOU, SIG_IGN);
	job = fork();
	if (!job)
		run_job(argc, argv);
	while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
		if (tcsetpgrp(STDIN_FILENO, getpgrp()))
			return 1;
		if (in_script && WSTOPSIG(status) != SIGSTOP && !command_stops())
			return 1;
		if (WSTOPSIG(status) != SIGSTOP)
			printf("stopped %s\n", is_usual() ? "well" : "raw");
		fflush(stdout);
		if (tcsetpgrp(STDIN_FILENO, job) || kill(-job, SIGCONT))
			return 1;
	}
	tcsetpgrp(STDIN_FILENO, getpgrp());
	printf("ended %s, signal %d\n", is_usual() ? "well" : "raw",
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return status;
}

/* Returns what has come since */
static const char *press_and_see(const char *key)
{
	size_t seen = terminal.bytes;

	assert_int_equal(write(terminal.fd, key, 1), 1);
	while (!strstr(terminal.text + seen, "more"))
		assert_true(read_more());
	check_frame(last_frame(), 24, 80, true);
	return terminal.text + seen;
}

#define CTRL_Z "\032"
#define CTRL_BACKSLASH "\034"

/* Ctrl-Z gives the shell its terminal, and fg draws again at once; twice, and then the end */
static void test_top_stopped(void **state)
{
	const char *keys[] = { "q", CTRL_BACKSLASH };
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < NR(keys); i++) {
		run_on(24, 80, shell, ARGS("-d", "3600"));
		while (!strstr(terminal.text, "more"))
			assert_true(read_more());
		for (k = 0; k < 2; k++)
			assert_contains(press_and_see(CTRL_Z), "stopped well");
		assert_int_equal(write(terminal.fd, keys[i], 1), 1);
		assert_int_equal(end_of(), i ? 3 : 0);
		assert_contains(terminal.text, i ? "ended well, signal 3" : "ended well, signal 0");
	}
}

/*
 * The script stops first, and the shell has its terminal before the command gives it back:
 * that must not stop the command once more, which nobody would see
 */
static void test_top_stopped_in_script(void **state)
{
	size_t seen;

	(void)state;
	in_script = mmap(NULL, sizeof(*in_script), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(in_script != MAP_FAILED);
	run_on(24, 80, shell, ARGS("-d", "0.01", "-n", "1"));
	while (!strstr(terminal.text, "working"))
		assert_true(read_more());
	seen = terminal.bytes;
	assert_int_equal(write(terminal.fd, CTRL_Z, 1), 1);
	while (!strstr(terminal.text + seen, "ended"))
		assert_true(read_more());
	assert_contains(terminal.text + seen, "stopped");
	assert_contains(terminal.text + seen, "more");
	assert_contains(terminal.text + seen, "ended well, signal 0");
	assert_int_equal(end_of(), 0);
	munmap(in_script, sizeof(*in_script));
}

/* As `timeout` does: a job in the background, which the terminal stops, is told to end */
static int end_in_background(int argc, char **argv)
{
	int status;
	pid_t job;

	job = fork();
	if (!job) {
		signal(SIGTTOU, SIG_DFL);
		setpgid(0, 0);
		exit(cmd_top(argc, argv));
	}
	if (waitpid(job, &status, WUNTRACED) != job || !WIFSTOPPED(status))
		return 1;
	kill(job, SIGTERM);
	kill(job, SIGCONT);
	if (waitpid(job, &status, WUNTRACED) != job || WIFSTOPPED(status)) {
		kill(job, SIGKILL);
		return 1;
	}
	printf("ended %s\n", is_usual() ? "well" : "raw");
	return status;
}

static void test_top_in_background(void **state)
{
	(void)state;
	run_on(24, 80, end_in_background, ARGS("-d", "3600"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "ended well");
}

/* What the shell has ignored stays so: the next thing that is drawn is for the size */
static int ignoring(int argc, char **argv)
{
	signal(SIGTSTP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return cmd_top(argc, argv);
}

static void test_top_ignores(void **state)
{
	struct winsize size = { .ws_row = 24, .ws_col = 79 };
	struct termios modes;
	size_t seen;

	(void)state;
	run_on(24, 80, ignoring, ARGS("-d", "3600"));
	while (!strstr(terminal.text, "more"))
		assert_true(read_more());
	seen = terminal.bytes;
	/* The keys are looked at later, and would take what was drawn by then with them */
	assert_int_equal(tcgetattr(terminal.fd, &modes), 0);
	modes.c_lflag |= NOFLSH;
	assert_int_equal(tcsetattr(terminal.fd, TCSANOW, &modes), 0);
	assert_int_equal(write(terminal.fd, CTRL_Z CTRL_BACKSLASH, 2), 2);
	assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
	while (!strstr(terminal.text + seen, "more"))
		assert_true(read_more());
	assert_int_equal(write(terminal.fd, "q", 1), 1);
	assert_int_equal(end_of(), 0);
}

/* A keyboard that is gone reads as one that nobody touches, at once and for ever */
static void test_hung_up(void **state)
{
	int fd, keyboard, status;
	bool keys = true;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid) {
		signal(SIGHUP, SIG_IGN);
		if (openpty(&fd, &keyboard, NULL, NULL, NULL) ||
		    dup2(keyboard, STDIN_FILENO) < 0 || !terminal_begin() ||
		    terminal_asked_to_end(&keys) || !keys)
			_exit(1);
		if (write(fd, "q", 1) != 1 || !terminal_asked_to_end(&keys) || !keys)
			_exit(2);
		close(fd);
		_exit(terminal_asked_to_end(&keys) || keys ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_top_plain(void **state)
{
	const char *at;

	(void)state;
	setenv("NO_COLOR", "1", 1);
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "2"));
	assert_int_equal(end_of(), 0);
	check_frame(last_frame(), 24, 80, false);
	/* No screen: one sample behind the other, and no command at all */
	setenv("TERM", "dumb", 1);
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "2"));
	assert_int_equal(end_of(), 0);
	assert_null(strchr(terminal.text, '\033'));
	at = strstr(terminal.text, "40 channels");
	assert_non_null(at);
	assert_non_null(strstr(at + 1, "40 channels"));
	assert_null(strstr(terminal.text, "more"));
}

static void test_incomplete(void **state)
{
	(void)state;
	whole = false;
	nr_channels = 3;
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "1"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "came and went");
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "1", "-j"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "\"incomplete\":true");
	run_on(24, 80, cmd_show, ARGS("channels"));
	assert_int_equal(end_of(), 3);
	assert_contains(terminal.text, "try again");
	/* What there is, is shown all the same; a name is no command here either */
	assert_contains(terminal.text, "CONTEXT");
	assert_null(strstr(terminal.text, "\033[2J"));
	whole = true;
	run_on(24, 80, cmd_show, ARGS("channels"));
	assert_int_equal(end_of(), 0);
}

static void test_own_only(void **state)
{
	static const char says[] = "what this user opened in this PID namespace, for want";

	(void)state;
	nr_channels = 3;
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "1"));
	assert_int_equal(end_of(), 0);
	assert_null(strstr(terminal.text, says));
	own = true;
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "1"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, says);
	run_on(24, 80, cmd_top, ARGS("-d", "0.01", "-n", "1", "-j"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "\"own_only\":true");
	/* JSON has no room for it: it is told beside */
	run_on(24, 80, cmd_show, ARGS("channels", "-j"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "this is what this user opened in this PID namespace");
}

static void test_lost(void **state)
{
	(void)state;
	nr_channels = 0;
	run_on(24, 80, cmd_monitor, ARGS("-j"));
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "\"event\":\"lost\",\"events\":7");
	run_on(24, 80, cmd_monitor, ARGS("-h"));
	assert_int_equal(end_of(), 0);
	run_on(24, 80, cmd_monitor, (char *[]){ "rdmatensor monitor", NULL });
	assert_int_equal(end_of(), 0);
	assert_contains(terminal.text, "lost");
	assert_contains(terminal.text, "7 events");
}

/* Nobody reads what it writes, and then it is told to end */
static void assert_ends_stalled(int (*command)(int argc, char **argv), char **args)
{
	int fds[2], status, bytes, before = -1, tries;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	child = fork();
	if (!child) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		optind = 0;
		_exit(command(count(args), args));
	}
	close(fds[1]);
	/* Full: nothing more has come into it for a while */
	for (bytes = 0; bytes != before || !bytes; poll(NULL, 0, 100)) {
		before = bytes;
		assert_int_equal(ioctl(fds[0], FIONREAD, &bytes), 0);
	}
	/* A signal that came right before the write has ended nothing: the next one kills */
	for (tries = 0; !waitpid(child, &status, WNOHANG); tries++) {
		kill(child, tries < 500 ? SIGTERM : SIGKILL);
		poll(NULL, 0, 10);
	}
	close(fds[0]);
	assert_true(WIFEXITED(status) || WTERMSIG(status) == SIGTERM);
}

static void test_stalled(void **state)
{
	(void)state;
	assert_ends_stalled(cmd_monitor, ARGS("-j"));
	assert_ends_stalled(cmd_top, ARGS("-j", "-d", "0.01"));
}

/* Nothing of it arrives: it ends, and main() says why */
static void assert_ends_full(int (*command)(int argc, char **argv), char **args)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		FILE *full = freopen("/dev/full", "w", stdout);

		optind = 0;
		alarm(20);
		_exit(!full || command(count(args), args) || !ferror(stdout) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_full(void **state)
{
	(void)state;
	assert_ends_full(cmd_monitor, ARGS("-j"));
	assert_ends_full(cmd_top, ARGS("-j", "-d", "0.01"));
}

int main(void)
{
#define on_terminal(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		on_terminal(test_top_fits),
		on_terminal(test_top_resized),
		on_terminal(test_top_stopped),
		on_terminal(test_top_stopped_in_script),
		on_terminal(test_top_in_background),
		on_terminal(test_top_ignores),
		on_terminal(test_hung_up),
		on_terminal(test_top_plain),
		on_terminal(test_incomplete),
		on_terminal(test_own_only),
		on_terminal(test_lost),
		on_terminal(test_stalled),
		on_terminal(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
