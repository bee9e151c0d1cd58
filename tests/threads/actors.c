// SPDX-License-Identifier: GPL-2.0
/*
 * What comes and goes beside the threads: peers, processes with contexts of their own that
 * are killed; and the RDMA device, which is unplugged and made again.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "threads.h"

extern char **environ;

static pid_t peer_begin(struct worker *w, unsigned int number)
{
	char fd[16], seed[24], which[16], patience[16];
	char *args[] = {
		"threads", "--peer", which, "--shared", fd, "--seed", seed,
		"--patience", patience, NULL
	};
	pid_t pid;

	sprintf(fd, "%d", shared_fd);
	sprintf(which, "%u", number);
	sprintf(patience, "%u", patience_s);
	sprintf(seed, "%llu", (unsigned long long)(rnd(w) | 1));
	return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ) ? -1 : pid;
}

static void peer_end(struct worker *w, unsigned int number, pid_t pid)
{
	shared->ports[MAINS + number - 1] = 0;
	kill(pid, SIGKILL);
	enter(w, "a killed process to end");
	waitpid(pid, NULL, 0);
	leave(w);
}

/*
 * Each lives for half a second to three after others can find it, and is killed in the
 * middle of whatever it does.
 */
void *peers_work(void *arg)
{
	uint64_t until[PEERS] = {};
	struct worker *w = arg;
	pid_t pids[PEERS] = {};
	unsigned int i;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < PEERS; i++) {
			if (pids[i] <= 0) {
				pids[i] = peer_begin(w, i + 1);
				until[i] = 0;
				if (pids[i] < 0)
					count(w, PEER, -EAGAIN);
			} else if (!until[i] && shared->ports[MAINS + i]) {
				until[i] = rdmatensor_deadline_ms(slowness * (500 + below(w, 2500)));
			} else if (until[i] && rdmatensor_now_ns() > until[i]) {
				peer_end(w, i + 1, pids[i]);
				count(w, PEER, 0);
				pids[i] = 0;
			}
		}
		poll(NULL, 0, 50);
	}
	for (i = 0; i < PEERS; i++)
		if (pids[i] > 0)
			peer_end(w, i + 1, pids[i]);
	w->gone = true;
	return NULL;
}

/*
 * The device. `rdma` is run by a process that was forked when there were no threads and
 * no handles.
 */
static int ask, answers;

static int rdma_link(const char *what, const char *rest)
{
	const char *device = getenv("LAB_RDMA_DEV");
	char command[256];

	snprintf(command, sizeof(command), "rdma link %s %s %s", what, device ?: "rxe0", rest);
	return system(command);
}

static int device_add(void)
{
	const char *netdev = getenv("LAB_NETDEV");
	char rest[128];

	snprintf(rest, sizeof(rest), "type rxe netdev %s", netdev ?: "d0");
	return rdma_link("add", rest);
}

static void device_process(int questions, int answer)
{
	unsigned char ms, result;

	while (read(questions, &ms, 1) == 1) {
		result = 0;
		if (ms) {
			if (rdma_link("delete", ""))
				result = 1;
			poll(NULL, 0, ms);
		}
		/* The network device may be let go of a moment later */
		for (; device_add() && ms; poll(NULL, 0, 100))
			;
		if (write(answer, &result, 1) != 1)
			break;
	}
	_exit(0);
}

bool device_prepare(void)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return false;
	switch (fork()) {
	case -1:
		return false;
	case 0:
		close(to[1]);
		close(from[0]);
		device_process(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	ask = to[1];
	answers = from[0];
	return true;
}

static int device_unplug(unsigned char ms)
{
	unsigned char result = 1;

	if (write(ask, &ms, 1) != 1 || read(answers, &result, 1) != 1)
		return -EPIPE;
	return result ? -EIO : 0;
}

/* Every eight seconds or so, on a fast kernel */
void *device_work(void *arg)
{
	uint64_t next = rdmatensor_deadline_ms(slowness * 3000);
	struct worker *w = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		poll(NULL, 0, 50);
		if (rdmatensor_now_ns() < next)
			continue;
		enter(w, "rdma link delete, and add");
		count(w, UNPLUG, device_unplug(1 + below(w, 200)));
		leave(w);
		next = rdmatensor_deadline_ms(slowness * (5000 + below(w, 6000)));
	}
	w->gone = true;
	return NULL;
}
