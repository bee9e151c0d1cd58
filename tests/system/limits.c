// SPDX-License-Identifier: GPL-2.0
/* What a process may have and do: locked memory, the ring's shared page, its namespace */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define LIMIT (4 << 20)

static struct side s;

/* In a process that gives up what it could not get back. Return: the line that failed */
static int within_limit(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	struct rdmatensor_pool first, second;
	int i;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setreuid(65534, 65534))
		return __LINE__;
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
	int status, line;
	pid_t pid;

	side_open(&s, "limited", 4096, 0, NULL);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(within_limit() & 255);
	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	line = WEXITSTATUS(status);
	if (line)
		test_fail(__FILE__, line, "not within the limit");
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
