// SPDX-License-Identifier: GPL-2.0
/*
 * Ids, and the destination of a fetch with a proxy, that are on memory which nobody fills, as on
 * a file system whose server is gone: it is who submits that waits, and nobody else, and a
 * signal ends it.
 *
 * The worker is a process of its own, which runs the second test here; userfaultfd's
 * descriptor is held by the first one too, so that the fault outlives all that the worker has.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "exporter.h"
#include "owners.h"

enum { ROWS = 3000, NR = 1000 };

/* Where the worker hears and speaks, in its environment */
#define WORKER "TEST_STALLED_WORKER"

static void tell(int fd, int word)
{
	EQ(write(fd, &word, sizeof(word)), sizeof(word));
}

static int hear(int fd)
{
	int word;

	EQ(read(fd, &word, sizeof(word)), sizeof(word));
	return word;
}

/* Descriptors and mappings of all contexts */
static int module_users(void)
{
	FILE *file = fopen("/sys/module/rdmatensor/refcnt", "r");
	int users = -1;

	CHECK(file);
	EQ(fscanf(file, "%d", &users), 1);
	fclose(file);
	return users;
}

/* What the worker's first thread does with that memory */
enum stalling { IDS, DESTINATION };

static void worker_stalls(enum stalling what)
{
	int to[2], from[2], pidfd, uffd, status, users = module_users();
	struct uffd_msg msg;
	char text[32];
	pid_t pid;

	EQ(pipe(to), 0);
	EQ(pipe(from), 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		snprintf(text, sizeof(text), "%d %d %d", to[0], from[1], what);
		setenv(WORKER, text, 1);
		execl("/proc/self/exe", "system", "the_worker_that_stalls", NULL);
		_exit(1);
	}
	close(from[1]);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(pidfd >= 0);
	uffd = (int)syscall(SYS_pidfd_getfd, pidfd, hear(from[0]), 0);
	CHECK(uffd >= 0);
	/* The fault has been taken: from here on somebody waits for it */
	EQ(poll(&(struct pollfd) { uffd, POLLIN, 0 }, 1, 30000), 1);
	EQ(read(uffd, &msg, sizeof(msg)), sizeof(msg));
	EQ(msg.event, UFFD_EVENT_PAGEFAULT);
	/* Its other thread has done all that it was to do meanwhile */
	tell(to[1], 1);
	EQ(hear(from[0]), 2);
	EQ(kill(pid, SIGKILL), 0);
	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	/* And nothing that it had is left behind, although the fault is still there */
	EQ(module_users(), users);
	close(uffd);
	close(pidfd);
	close(to[0]);
	close(to[1]);
	close(from[0]);
}

TEST_STOCK(ids_that_stall) { worker_stalls(IDS); }
/* In 6.1 what is pinned for long does not wait for user space: the fetch is refused */
TEST_IF(destination_that_stalls, !test_on_uml() && !is_6_1()) { worker_stalls(DESTINATION); }

static uint32_t table;
static uint64_t *stalling;
static uint64_t stalled_at;

static void *stall(void *what)
{
	struct rdmatensor_op op;

	if (*(int *)what == DESTINATION)
		rdmatensor_prep_fetch_memory(&op, RDMATENSOR_CHANNEL_SELF, "never", 0, stalling,
					     NR, reader->pool.id, 0, 1);
	else
		rdmatensor_prep_gather(&op, table, stalling, NR, reader->pool.id, stalled_at,
				       NR * ROW, 0, 1);
	side_do(reader, &op);
	return NULL;
}

static int watch(void *at, size_t bytes)
{
	struct uffdio_register range = {
		.range = { (uintptr_t)at, bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_NONBLOCK);

	CHECK(fd >= 0);
	EQ(ioctl(fd, UFFDIO_API, &api), 0);
	EQ(ioctl(fd, UFFDIO_REGISTER, &range), 0);
	return fd;
}

TEST_IF(the_worker_that_stalls, getenv(WORKER))
{
	uint64_t ids[NR], at, i;
	struct rdmatensor_cqe cqe;
	pthread_t thread;
	int in, out, what;

	EQ(sscanf(getenv(WORKER), "%d %d %d", &in, &out, &what), 3);
	owners_open(ROWS, ROW, ROW, 2 * NR);
	at = side_alloc(reader, NR * ROW);
	stalled_at = side_alloc(reader, NR * ROW);
	table = owners_table(NULL);
	for (i = 0; i < NR; i++)
		ids[i] = random_below(ROWS);
	stalling = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stalling != MAP_FAILED);
	tell(out, watch(stalling, 8192));
	EQ(pthread_create(&thread, NULL, stall, &what), 0);

	EQ(hear(in), 1);
	EQ(owners_gather(table, ids, NR, at, ROW, &cqe), 0);
	owners_check(ids, NR, at, ROW);
	publish(reader, "t", 0, 1000, 1, 1, 9);
	EQ(rdmatensor_fetch(reader->rt, RDMATENSOR_CHANNEL_SELF, "t", 0, &reader->pool, at, 1000,
			    rdmatensor_deadline_ms(20000), &cqe), 0);
	tell(out, 2);
	pause();
}
