// SPDX-License-Identifier: GPL-2.0
/*
 * Ways round RLIMIT_MEMLOCK: a pool that takes all of it, and whoever made it lets go of it in one
 * way or another while the memory stays. Whatever the way, there is no room for a second one until
 * the memory is free. Each with memory of both kinds that count.
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define LIMIT (4 << 20)
/* Beside completion rings, of which each context that is started has one */
#define BYTES (LIMIT - 16 * 4096)

enum kind { KERNEL, OWN, NR_KINDS };

struct way {
	const char *name;
	/* Lets go of @rt, in which all of the limit is used. Return: the line that failed */
	int (*leave)(struct rdmatensor *rt, struct rdmatensor_pool *pool);
	/* Lets the memory go */
	int (*end)(void);
	/* It has no meaning for the process's own pages, which are its own afterwards */
	bool kernel_only;
};

static int kept, kept_too;
static void *mapped;

static struct rdmatensor *started(void)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;

	/* By this process alone: nobody else has the descriptor */
	if (rdmatensor_open(NULL, &rt))
		return NULL;
	rdmatensor_start_init(&start, "way");
	start.ring_entries = 16;
	return rdmatensor_start(rt, &start) ? NULL : rt;
}

static int pin(struct rdmatensor *rt, enum kind kind, uint64_t bytes, struct rdmatensor_pool *pool)
{
	char cause[256];
	void *pages;
	int ret;

	if (kind == KERNEL)
		return rdmatensor_pool_create(rt, bytes, pool);
	pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	ret = rdmatensor_pool_register(rt, pages, bytes, 0, 0, pool, cause, sizeof(cause));
	if (ret)
		munmap(pages, bytes);
	return ret;
}

static int leave_mapped(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	struct rdmatensor_pool_destroy arg = { sizeof(arg), pool->id };

	mapped = pool->base;
	return ioctl(rdmatensor_fd(rt), RDMATENSOR_POOL_DESTROY, &arg) ? __LINE__ : 0;
}

static int end_mapped(void)
{
	return munmap(mapped, BYTES) ? __LINE__ : 0;
}

static int end_kept(void)
{
	return close(kept) ? __LINE__ : 0;
}

static int leave_dup(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	kept = dup(rdmatensor_fd(rt));
	if (pool->base)
		munmap(pool->base, BYTES);
	rdmatensor_close(rt);
	return kept < 0 ? __LINE__ : 0;
}

/* Sent, and received by nobody: it is in the socket */
static int leave_sent(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
	int ends[2], fd = rdmatensor_fd(rt);

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		return __LINE__;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(ends[0], &msg, 0) != 1)
		return __LINE__;
	if (pool->base)
		munmap(pool->base, BYTES);
	rdmatensor_close(rt);
	kept = ends[0];
	kept_too = ends[1];
	return 0;
}

static int end_both(void)
{
	return close(kept) || close(kept_too) ? __LINE__ : 0;
}

static int leave_domain(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	if (rdmatensor_domain_create(rt, 0, &kept))
		return __LINE__;
	if (pool->base)
		munmap(pool->base, BYTES);
	rdmatensor_close(rt);
	return 0;
}

/* As a fixed file of an io_uring, which refers to it without a descriptor */
static int leave_uring(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	struct io_uring_params params = {};
	int fd = rdmatensor_fd(rt);

	kept = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (kept < 0 ||
	    syscall(SYS_io_uring_register, kept, IORING_REGISTER_FILES, &fd, 1))
		return __LINE__;
	if (pool->base)
		munmap(pool->base, BYTES);
	rdmatensor_close(rt);
	return 0;
}

static const struct way ways[] = {
	{ "destroyed, and still mapped", leave_mapped, end_mapped, true },
	{ "another descriptor", leave_dup, end_kept, false },
	{ "sent to a socket", leave_sent, end_both, false },
	{ "a domain's descriptor", leave_domain, end_kept, false },
	{ "an io_uring's file", leave_uring, end_kept, false },
};

/*
 * Pages that are pinned, of all processes; 0 where the kernel does not count them. A processor adds
 * what it has counted once a second, or every few dozen pages: this is about so many.
 */
static long pinned(void)
{
	long got = 0, released = 0, nr;
	char line[128];
	FILE *file = fopen("/proc/vmstat", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "nr_foll_pin_acquired %ld", &nr) == 1)
			got = nr;
		if (sscanf(line, "nr_foll_pin_released %ld", &nr) == 1)
			released = nr;
	}
	if (file)
		fclose(file);
	return got - released;
}

static int refused(struct rdmatensor *rt)
{
	struct rdmatensor_pool pool;
	enum kind kind;

	for (kind = KERNEL; kind < NR_KINDS; kind++)
		if (pin(rt, kind, BYTES, &pool) != -ENOMEM)
			return __LINE__;
	return 0;
}

/* Descriptors of an io_uring and of a socket go later than they are closed */
static int allowed(struct rdmatensor *rt, enum kind kind)
{
	uint64_t began = rdmatensor_now_ns();
	struct rdmatensor_pool pool;
	int ret;

	do {
		ret = pin(rt, kind, BYTES, &pool);
		if (ret)
			usleep(10000);
	} while (ret == -ENOMEM && ms_since(began) < 20000);
	return ret || rdmatensor_pool_destroy(rt, &pool) ? __LINE__ : 0;
}

static int each_way(enum kind kind)
{
	struct rdmatensor *other = started();
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	long before;
	size_t i;
	int line;

	if (!other)
		return __LINE__;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (kind == OWN && ways[i].kernel_only)
			continue;
		before = pinned();
		rt = started();
		if (!rt || pin(rt, kind, BYTES, &pool))
			return __LINE__;
		line = ways[i].leave(rt, &pool) ?: refused(other);
		/* Round the limit there would be twice as many */
		if (!line && pinned() - before > LIMIT / 4096 * 3 / 2)
			line = __LINE__;
		if (!line)
			line = ways[i].end() ?: allowed(other, kind);
		if (line) {
			printf("# %s, kind %d\n", ways[i].name, kind);
			fflush(stdout);
			return line;
		}
	}
	rdmatensor_close(other);
	return 0;
}

static int kernel_pages(void)
{
	return each_way(KERNEL);
}

static int own_pages(void)
{
	return each_way(OWN);
}

static void as_user(int (*fn)(void))
{
	EQ(chmod(RDMATENSOR_DEVICE_PATH, 0666), 0);
	AS_USER(LIMIT, fn);
	EQ(chmod(RDMATENSOR_DEVICE_PATH, 0600), 0);
}

TEST(no_way_round_the_limit)
{
	as_user(kernel_pages);
	as_user(own_pages);
}

/* A task that is gone: a thread, a process, one that has another program by then */
struct maker {
	struct rdmatensor *rt;
	enum kind kind;
	struct rdmatensor_pool pool;
	int ret;
};

static void *make(void *arg)
{
	struct maker *maker = arg;

	maker->ret = pin(maker->rt, maker->kind, BYTES, &maker->pool);
	return NULL;
}

static int by_thread(struct maker *maker)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make, maker) || pthread_join(thread, NULL))
		return __LINE__;
	return maker->ret ? __LINE__ : 0;
}

static int by_process(struct maker *maker)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		make(maker);
		_exit(maker->ret ? 1 : 0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status ? __LINE__ : 0;
}

/* The descriptor is inherited by the program, which ends, and another process still has it */
static int by_program(struct maker *maker)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		make(maker);
		if (!maker->ret)
			execl("/bin/true", "true", NULL);
		_exit(1);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status ? __LINE__ : 0;
}

static int makers_that_are_gone(void)
{
	static int (*const by[])(struct maker *maker) = { by_thread, by_process, by_program };
	struct rdmatensor *other = started();
	struct maker maker;
	size_t i;
	int line;

	if (!other)
		return __LINE__;
	for (maker.kind = KERNEL; maker.kind < NR_KINDS; maker.kind++) {
		for (i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
			maker.rt = started();
			if (!maker.rt)
				return __LINE__;
			line = by[i](&maker) ?: refused(other);
			if (line)
				return line;
			/* What a thread has mapped is the process's */
			if (i == 0 && maker.kind == KERNEL)
				munmap(maker.pool.base, BYTES);
			rdmatensor_close(maker.rt);
			line = allowed(other, maker.kind);
			if (line)
				return line;
		}
	}
	return 0;
}

TEST(no_limit_of_who_is_gone)
{
	as_user(makers_that_are_gone);
}
