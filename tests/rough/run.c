// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "rough.h"

/* Longer than any command takes whose waits have an end */
#define PATIENCE_NS UINT64_C(15000000000)
/* Between two contexts of which a monitor is to tell */
#define EVENT_NS UINT64_C(10000000)
/* For its first word, once a call has failed */
#define MUTE_NS UINT64_C(1000000000)
/* fail.c's descriptor in the child */
#define TELL 100

uint64_t now_ns(void)
{
	return rdmatensor_now_ns();
}

pid_t spawn(char *const argv[], char *const env[], int *out, int err, int tell)
{
	struct rlimit no_core = { 0 };
	int pipes[2] = { -1, -1 };
	pid_t pid;

	if (out && pipe2(pipes, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid) {
		if (out) {
			close(pipes[1]);
			*out = pipes[0];
		}
		return pid;
	}
	setrlimit(RLIMIT_CORE, &no_core);
	if (out || err >= 0)
		dup2(out ? pipes[1] : err, STDOUT_FILENO);
	if (err >= 0)
		dup2(err, STDERR_FILENO);
	if (tell >= 0)
		dup2(tell, TELL);
	for (; env && *env; env++)
		putenv(*env);
	execv(argv[0], argv);
	_exit(127);
}

/* Until @fd (-1: nothing) can be read, the process has ended, or it is @end. True: it can */
static bool wait_readable(pid_t pid, int fd, uint64_t end, bool *ended)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	uint64_t now = now_ns(), left = end > now ? end - now : 0;
	struct timespec time = { (time_t)(left / 1000000000), (long)(left % 1000000000) };

	fds[1].fd = pidfd_open(pid, 0);
	ppoll(fds, 2, &time, NULL);
	close(fds[1].fd);
	*ended = fds[1].revents;
	return fds[0].revents;
}

bool wait_end(pid_t pid, uint64_t ns)
{
	bool ended;

	wait_readable(pid, -1, now_ns() + ns, &ended);
	return ended;
}

/* A context comes and goes */
static void make_event(void)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;

	rdmatensor_start_init(&start, "event");
	if (rdmatensor_open(NULL, &rt))
		die("open");
	rdmatensor_start(rt, &start);
	rdmatensor_close(rt);
}

static size_t take(int fd, char *text, size_t len)
{
	ssize_t got = read(fd, text + len, TEXT - 1 - len);

	text[len + (got > 0 ? (size_t)got : 0)] = '\0';
	return got > 0 ? (size_t)got : 0;
}

/* Its first words, or none if what has failed is their way; true: it has said some */
static bool wait_word(const struct scene *scene, pid_t pid, int fd, int tell, char *text)
{
	uint64_t end = now_ns() + PATIENCE_NS, next;
	bool ended = false, said = false;

	while (!ended && !said && now_ns() < end) {
		if (scene->ends == ENDS_HEARD)
			make_event();
		next = now_ns() + EVENT_NS;
		said = wait_readable(pid, fd, next < end ? next : end, &ended);
		if (next + MUTE_NS < end && lseek(tell, 0, SEEK_END) > 0)
			end = next + MUTE_NS;
	}
	return said && take(fd, text, 0);
}

/* The counterpart has ended badly before the command itself: it may have met the one before */
static bool ended_first(pid_t pid, pid_t *beside, uint64_t end)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	uint64_t now = now_ns();
	int status = 0;

	fds[0].fd = pidfd_open(pid, 0);
	fds[1].fd = pidfd_open(*beside, 0);
	poll(fds, 2, end > now ? (int)((end - now) / 1000000) : 0);
	close(fds[0].fd);
	close(fds[1].fd);
	if (!fds[0].revents && fds[1].revents) {
		waitpid(*beside, &status, 0);
		*beside = 0;
	}
	return status;
}

static char *const *environment(const struct scene *scene, const struct blow *blow)
{
	static char preload[600], how[64], at[64];
	static char *env[6];
	int nr = 0;

	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", getenv("ROUGH_PRELOAD"));
	snprintf(how, sizeof(how), "ROUGH_HOW=%s", blow->how ? blow->how : "");
	snprintf(at, sizeof(at), "ROUGH_AT=%ld", blow->at);
	env[nr++] = preload;
	env[nr++] = "ROUGH_TELL=100";
	env[nr++] = how;
	env[nr++] = at;
	if (scene->no_tmpfile)
		env[nr++] = "ROUGH_NO_TMPFILE=1";
	env[nr] = NULL;
	return env;
}

static void free_argv(char *argv[ARGS])
{
	int i;

	for (i = 0; argv[i]; i++)
		free(argv[i]);
}

static pid_t begin_beside(const struct scene *scene)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char *argv[ARGS];
	pid_t pid;

	unlink(BESIDE);
	scene_argv(scene->beside, argv);
	pid = spawn(argv, NULL, NULL, nowhere, -1);
	close(nowhere);
	free_argv(argv);
	return pid;
}

/* Its counterpart has come to its end, or is brought to it */
static void end_beside(pid_t pid, bool well)
{
	if (pid <= 0)
		return;
	if (!well || !wait_end(pid, 2 * PATIENCE_NS))
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void run(const struct scene *scene, const struct blow *blow, struct outcome *outcome)
{
	uint64_t begun = now_ns(), end = begun + PATIENCE_NS;
	int err = memfd_create("stderr", MFD_CLOEXEC), tell = memfd_create("tell", MFD_CLOEXEC), out;
	bool ended = false, said = false;
	char *argv[ARGS];
	pid_t pid, beside = 0;
	size_t len = 0;
	ssize_t got;

	memset(outcome, 0, sizeof(*outcome));
	scene_argv(scene->line, argv);
	pid = spawn(argv, environment(scene, blow), &out, err, tell);
	if (scene->beside && (blow->signal || scene->ends == ENDS_ITSELF))
		beside = begin_beside(scene);
	if (blow->signal) {
		wait_readable(pid, -1, begun + blow->after_ns, &ended);
		kill(pid, blow->signal);
	} else if (scene->ends != ENDS_ITSELF) {
		said = wait_word(scene, pid, out, tell, outcome->out);
		len = strlen(outcome->out);
		if (said && scene->beside) {
			beside = begin_beside(scene);
			end_beside(beside, true);
			beside = 0;
		}
		kill(pid, SIGTERM);
		end = now_ns() + PATIENCE_NS;
	}
	while (beside && !blow->signal && ended_first(pid, &beside, end))
		beside = begin_beside(scene);
	/* Until it has closed its end */
	while (wait_readable(-1, out, end, &ended) && (got = (ssize_t)take(out, outcome->out, len)))
		len += (size_t)got;
	outcome->hung = !wait_end(pid, now_ns() < end ? end - now_ns() : 0);
	if (outcome->hung)
		kill(pid, SIGKILL);
	waitpid(pid, &outcome->status, 0);
	outcome->ns = now_ns() - begun;
	end_beside(beside, blow->signal || !outcome->status);
	got = pread(err, outcome->err, TEXT - 1, 0);
	outcome->err[got > 0 ? got : 0] = '\0';
	got = pread(tell, outcome->struck, sizeof(outcome->struck) - 1, 0);
	outcome->struck[got > 0 ? got : 0] = '\0';
	close(out);
	close(err);
	close(tell);
	free_argv(argv);
}
