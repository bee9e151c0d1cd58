// SPDX-License-Identifier: GPL-2.0
/* What a process may have and do: locked memory, the ring's shared page, its namespace */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define LIMIT (4 << 20)

static struct side s;

static int within_limit(void)
{
	struct rdmatensor_pool first, second;
	int i;

	if (rdmatensor_pool_create(s.rt, LIMIT + 4096, &first) != -ENOMEM)
		return __LINE__;
	/* Again and again: what was destroyed, or not created, does not count */
	for (i = 0; i < 5; i++) {
		if (rdmatensor_pool_create(s.rt, LIMIT / 2, &first))
			return __LINE__;
		if (rdmatensor_pool_create(s.rt, LIMIT / 2 + 4096, &second) != -ENOMEM)
			return __LINE__;
		if (rdmatensor_pool_create(s.rt, LIMIT / 2, &second))
			return __LINE__;
		if (rdmatensor_pool_destroy(s.rt, &first) ||
		    rdmatensor_pool_destroy(s.rt, &second))
			return __LINE__;
	}
	return 0;
}

TEST(pools_count_as_locked_memory)
{
	side_open(&s, "limited", 4096, 0, NULL);
	AS_USER(LIMIT, within_limit);
}

/* By the memory cgroup alone; what is registered, and rings, count as ever */
static int beyond_limit(void)
{
	char *pages = mmap(NULL, 2 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	struct rdmatensor_pool first, second, own;
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	char cause[256];

	if (pages == MAP_FAILED)
		return __LINE__;
	if (rdmatensor_pool_create(s.rt, 2 * LIMIT, &first) ||
	    rdmatensor_pool_create(s.rt, LIMIT, &second))
		return __LINE__;
	if (rdmatensor_pool_register(s.rt, pages, LIMIT + 4096, 0, 0, &own, cause,
				     sizeof(cause)) != -ENOMEM ||
	    !strstr(cause, "RLIMIT_MEMLOCK"))
		return __LINE__;
	if (rdmatensor_pool_register(s.rt, pages, LIMIT, 0, 0, &own, cause, sizeof(cause)))
		return __LINE__;
	if (rdmatensor_open(NULL, &rt))
		return __LINE__;
	rdmatensor_start_init(&start, "ring");
	if (rdmatensor_start(rt, &start) != -ENOMEM || !strstr(start.cause, "RLIMIT_MEMLOCK"))
		return __LINE__;
	rdmatensor_close(rt);
	/* It is a matter of what was made, and not of what the parameter is when it is freed */
	return rdmatensor_pool_destroy(s.rt, &first) || rdmatensor_pool_destroy(s.rt, &second) ||
	       rdmatensor_pool_destroy(s.rt, &own) ? __LINE__ : 0;
}

TEST(pools_that_do_not_count_as_locked_memory)
{
	side_open(&s, "unlimited", 4096, 0, NULL);
	AS_USER_UNCOUNTED(LIMIT, beyond_limit);
	AS_USER(LIMIT, within_limit);
}

/* Raw, so that nothing is mapped or unmapped beside. Return: 0 or -errno */
static int create(int fd, struct rdmatensor_pool_create *pool)
{
	*pool = (struct rdmatensor_pool_create) { .size = sizeof(*pool), .bytes = LIMIT };
	return ioctl(fd, RDMATENSOR_POOL_CREATE, pool) ? -errno : 0;
}

static int destroy(int fd, const struct rdmatensor_pool_create *pool)
{
	struct rdmatensor_pool_destroy arg = { sizeof(arg), pool->out_pool_id };

	return ioctl(fd, RDMATENSOR_POOL_DESTROY, &arg) ? -errno : 0;
}

static int mapped_is_charged(void)
{
	struct rdmatensor_pool_create pool, next;
	int fd = rdmatensor_fd(s.rt), i;
	pid_t pid;
	char *at;

	for (i = 0; i < 3; i++) {
		if (create(fd, &pool))
			return __LINE__;
		at = mmap(NULL, LIMIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  (off_t)pool.out_mmap_offset);
		if (at == MAP_FAILED)
			return __LINE__;
		at[0] = at[LIMIT - 1] = 77;
		if (destroy(fd, &pool))
			return __LINE__;
		if (create(fd, &next) != -ENOMEM)
			return __LINE__;
		/* Half of it, in two pieces, and of another process */
		if (munmap(at, 4096) || munmap(at + LIMIT / 2, LIMIT / 4))
			return __LINE__;
		if (create(fd, &next) != -ENOMEM)
			return __LINE__;
		pid = fork();
		if (pid < 0)
			return __LINE__;
		if (!pid) {
			pause();
			_exit(0);
		}
		if (munmap(at, LIMIT))
			return __LINE__;
		if (create(fd, &next) != -ENOMEM)
			return __LINE__;
		if (kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid)
			return __LINE__;
		/* The last one has gone, and with it the charge */
		if (create(fd, &next) || destroy(fd, &next))
			return __LINE__;
	}
	return 0;
}

/* A pool is charged until its memory is free, whatever the process calls destroyed */
TEST(pools_count_until_unmapped)
{
	side_open(&s, "mapped", 4096, 0, NULL);
	AS_USER(LIMIT, mapped_is_charged);
}

/* After exec(), see below: the user's limit is used up */
__attribute__((constructor)) static void after_exec(void)
{
	const char *fd = getenv("TEST_USED_UP");
	struct rdmatensor_pool_create pool;

	if (fd)
		_exit(create(atoi(fd), &pool) != -ENOMEM);
}

static int exec_again(int fd)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", fd);
	setenv("TEST_USED_UP", text, 1);
	execl("/proc/self/exe", "system", NULL);
	return 2;
}

static int another_process_pays_too(void)
{
	struct rdmatensor_pool_create pool;
	int fd = dup(rdmatensor_fd(s.rt)), status, i;
	pid_t pid;

	/* The first makes it and is gone; then nobody of that user has room, exec()ed or not */
	for (i = 0; i < 4; i++) {
		pid = fork();
		if (pid < 0)
			return __LINE__;
		if (!pid && i == 3)
			_exit(exec_again(fd));
		if (!pid)
			_exit(create(fd, &pool) != (i ? -ENOMEM : 0));
		if (waitpid(pid, &status, 0) != pid)
			return __LINE__;
		if (status)
			return __LINE__;
	}
	return 0;
}

/* Neither fork() and exit() nor exec() makes room: what was made is in the descriptor */
TEST(pools_of_processes_that_are_gone_count)
{
	side_open(&s, "inherited", 4096, 0, NULL);
	AS_USER(LIMIT, another_process_pays_too);
	/* The context's end gives it back */
	side_close(&s);
	side_open(&s, "inherited", 4096, 0, NULL);
	AS_USER(LIMIT, within_limit);
}

static struct rdmatensor *unstarted;

static int ring_within_limit(void)
{
	struct rdmatensor_pool_create pool = { .size = sizeof(pool) };
	struct rdmatensor_start start;

	rdmatensor_start_init(&start, "ring");
	start.ring_entries = 1 << 20;
	if (rdmatensor_start(unstarted, &start) != -ENOMEM ||
	    !strstr(start.cause, "RLIMIT_MEMLOCK"))
		return __LINE__;
	/* A shorter one fits, and what it takes is not there for pools */
	rdmatensor_start_init(&start, "ring");
	if (rdmatensor_start(unstarted, &start))
		return __LINE__;
	if (create(rdmatensor_fd(unstarted), &pool) != -ENOMEM)
		return __LINE__;
	pool = (struct rdmatensor_pool_create) { .size = sizeof(pool), .bytes = LIMIT - (1 << 20) };
	if (ioctl(rdmatensor_fd(unstarted), RDMATENSOR_POOL_CREATE, &pool))
		return __LINE__;
	return 0;
}

TEST(ring_counts_as_locked_memory)
{
	side_open(&s, "inherited", 4096, 0, NULL);
	EQ(rdmatensor_open(NULL, &unstarted), 0);
	AS_USER(LIMIT, ring_within_limit);
	/* With the context all of it is returned */
	rdmatensor_close(unstarted);
	AS_USER(LIMIT, within_limit);
}

#define RINGS 8
#define RING_BYTES (4096 + 1024 * sizeof(struct rdmatensor_cqe))

static struct rdmatensor *rings[RINGS];

/* All of the limit is a pool's, and then a part of it a ring's at once */
static int rings_after_pools(void)
{
	struct rdmatensor_pool_create pool;
	struct rdmatensor_start start;
	int i;

	for (i = 0; i < RINGS; i++) {
		pool = (struct rdmatensor_pool_create) {
			.size = sizeof(pool), .bytes = LIMIT - i * RING_BYTES,
		};
		if (ioctl(rdmatensor_fd(s.rt), RDMATENSOR_POOL_CREATE, &pool) ||
		    destroy(rdmatensor_fd(s.rt), &pool))
			return __LINE__;
		rdmatensor_start_init(&start, "ring");
		start.ring_entries = 1024;
		if (rdmatensor_start(rings[i], &start))
			return __LINE__;
	}
	return 0;
}

TEST(ring_counts_after_pools_that_are_freed)
{
	int i;

	side_open(&s, "inherited", 4096, 0, NULL);
	for (i = 0; i < RINGS; i++)
		EQ(rdmatensor_open(NULL, &rings[i]), 0);
	AS_USER(LIMIT, rings_after_pools);
	for (i = 0; i < RINGS; i++)
		rdmatensor_close(rings[i]);
}

/* The indices that it sees are the process's to spoil: it has only itself to hurt */
TEST(ring_indices_are_the_kernels)
{
	static const uint32_t lies[] = { 0, 1, 77, 0x7fffffff, 0x80000000, 0xffffffff };
	struct rdmatensor_ring *ring;
	struct rdmatensor_cqe *cqes;
	struct rdmatensor_op op;
	uint32_t head, i;

	side_open(&s, "a", 4096, 0, NULL);
	ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, rdmatensor_fd(s.rt),
		    RDMATENSOR_MMAP_RING);
	CHECK(ring != MAP_FAILED);
	EQ(ring->entries_offset, 4096);
	cqes = mmap(NULL, 4096 + ring->entries * sizeof(*cqes), PROT_READ, MAP_SHARED,
		    rdmatensor_fd(s.rt), RDMATENSOR_MMAP_RING);
	CHECK(cqes != MAP_FAILED);
	cqes = (void *)((char *)cqes + 4096);

	head = ring->head;
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++, head++) {
		ring->tail = head;
		rdmatensor_prep_fetch_alloc(&op, 0, "none", i, s.pool.id, 0, 0, 1000 + i);
		EQ(side_do(&s, &op), 0);

		/* No tail that can be makes the ring full; what was promised is kept */
		ring->tail = head + 1 + lies[i] % 1000;
		ring->head = lies[i];
		EQ(side_do(&s, &op), -EAGAIN);
		EQ(rdmatensor_step_abort(s.rt, i, -EIO, ""), 0);
		EQ(ring->head, head + 1);
		EQ(cqes[head & (ring->entries - 1)].user_data, 1000 + i);
		EQ(cqes[head & (ring->entries - 1)].result, -EIO);
	}
	ring->tail = head;
}

/* A context lives in its opener's network namespace, where the device has no address */
TEST(another_network_namespace)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct rdmatensor_start start;
		struct rdmatensor *rt;
		int ret;

		if (unshare(CLONE_NEWNET) || rdmatensor_open(NULL, &rt))
			_exit(1);
		rdmatensor_start_init(&start, "elsewhere");
		ret = rdmatensor_start(rt, &start);
		if (ret != -EADDRNOTAVAIL || !strstr(start.cause, "network namespace")) {
			printf("# START: %d: %s\n", ret, start.cause);
			_exit(2);
		}
		start.flags |= RDMATENSOR_START_GID_INDEX;
		start.gid_index = 1;
		ret = rdmatensor_start(rt, &start);
		if (ret != -EADDRNOTAVAIL || !strstr(start.cause, "another network namespace")) {
			printf("# START with a GID's index: %d: %s\n", ret, start.cause);
			_exit(3);
		}
		_exit(0);
	}
	CHECK(pid > 0);
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
}
