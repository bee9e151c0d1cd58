// SPDX-License-Identifier: GPL-2.0
/* Who pays for what is not swapped: memory cgroups */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define ROOT "/tmp/cgroup"
#define GROUP ROOT "/worker"

enum { CHANNELS = 4, SLOTS = 512, SLOT = 4096 };
/* Connections, and what waits on each; a name takes the most that one can */
enum { ASKERS = 12, ASKED = 200 };
/* More than what describes the pages of a pool that just fits */
enum { NEAR_THE_LIMIT = 512 << 10 };

static long long used(void)
{
	long long bytes = -1;
	FILE *file = fopen(GROUP "/memory.current", "r");

	CHECK(file);
	EQ(fscanf(file, "%lld", &bytes), 1);
	fclose(file);
	return bytes;
}

/* Of its memory that there is a copy of for each processor */
static long long used_percpu(void)
{
	char line[128];
	long long bytes = -1;
	FILE *file = fopen(GROUP "/memory.stat", "r");

	CHECK(file);
	while (bytes < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "percpu %lld", &bytes) != 1)
			bytes = -1;
	fclose(file);
	CHECK(bytes >= 0);
	return bytes;
}

/* A group that is empty, with a limit */
static void group_make(const char *limit)
{
	struct stat stat_;

	mkdir(ROOT, 0755);
	if (stat(ROOT "/cgroup.procs", &stat_))
		EQ(mount("none", ROOT, "cgroup2", 0, NULL), 0);
	CHECK(file_put(ROOT "/cgroup.subtree_control", "+memory"));
	EQ(mkdir(GROUP, 0755), 0);
	CHECK(file_put(GROUP "/memory.max", limit));
}

static void slots(struct rdmatensor_start *start)
{
	start->msg_slots = SLOTS;
	start->msg_slot_bytes = SLOT;
	start->queue_depth = 4 * SLOTS;
}

/* In a process of the group: a context. Return: the line that failed, and START's answer */
static int start_here(struct rdmatensor **rt, struct rdmatensor_start *start)
{
	if (!file_put(GROUP "/cgroup.procs", "0"))
		return __LINE__;
	if (rdmatensor_open(NULL, rt))
		return __LINE__;
	rdmatensor_start_init(start, "grouped");
	return 0;
}

static int ring_too_long(void)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	int line = start_here(&rt, &start);

	if (line)
		return line;
	/* 192 MB: neither taken, nor is anybody killed for it */
	start.ring_entries = 1 << 20;
	if (rdmatensor_start(rt, &start) != -ENOMEM || !strstr(start.cause, "ring_entries"))
		return __LINE__;
	rdmatensor_close(rt);
	if (rdmatensor_open(NULL, &rt))
		return __LINE__;
	rdmatensor_start_init(&start, "grouped");
	if (rdmatensor_start(rt, &start))
		return __LINE__;
	rdmatensor_close(rt);
	return 0;
}

TEST_STOCK(ring_within_the_memory_cgroup)
{
	int line;

	group_make("64M");
	line = test_child(ring_too_long);
	rmdir(GROUP);
	if (line)
		test_fail(__FILE__, line, "not within the memory cgroup");
}

/* One that comes and goes, and is not mapped: page tables are the process's own */
static int pool_of(struct rdmatensor *rt, uint64_t bytes)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = bytes };
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };

	if (ioctl(rdmatensor_fd(rt), RDMATENSOR_POOL_CREATE, &create))
		return -errno;
	destroy.pool_id = create.out_pool_id;
	return ioctl(rdmatensor_fd(rt), RDMATENSOR_POOL_DESTROY, &destroy) ? -errno : 0;
}

/* The length that just fits, within a page; and all about it, whose descriptions may not fit */
static int pools_too_long(void)
{
	uint64_t fits = 1 << 20, too_long = 32 << 20, bytes;
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	int line = start_here(&rt, &start), ret;

	if (line)
		return line;
	if (rdmatensor_start(rt, &start))
		return __LINE__;
	for (bytes = (fits + too_long) / 2; too_long - fits > 4096; bytes = (fits + too_long) / 2) {
		bytes &= ~4095ull;
		ret = pool_of(rt, bytes);
		if (ret && ret != -ENOMEM)
			return __LINE__;
		*(ret ? &too_long : &fits) = bytes;
	}
	for (bytes = fits - NEAR_THE_LIMIT; bytes < fits + NEAR_THE_LIMIT; bytes += 8192) {
		ret = pool_of(rt, bytes);
		if (ret && ret != -ENOMEM)
			return __LINE__;
	}
	printf("# just fits: %llu bytes\n", (unsigned long long)fits);
	fflush(stdout);
	rdmatensor_close(rt);
	return 0;
}

/* As many regions of a pool as there is memory to know them by */
static int regions_too_many(void)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 16 << 20 };
	struct rdmatensor_pool_alloc alloc;
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	int line = start_here(&rt, &start), nr = 0, ret;

	if (line)
		return line;
	if (rdmatensor_start(rt, &start))
		return __LINE__;
	if (ioctl(rdmatensor_fd(rt), RDMATENSOR_POOL_CREATE, &create))
		return __LINE__;
	/* Its page is the process's own, which the OOM killer does come for */
	errno = 0;
	do {
		memset(&alloc, 0, sizeof(alloc));
		alloc.size = sizeof(alloc);
		alloc.pool_id = create.out_pool_id;
		alloc.bytes = 64;
		ret = ioctl(rdmatensor_fd(rt), RDMATENSOR_POOL_ALLOC, &alloc);
		nr += !ret;
	} while (!ret);
	ret = errno;
	rdmatensor_close(rt);
	printf("# %d regions\n", nr);
	fflush(stdout);
	return ret == ENOMEM ? 0 : __LINE__;
}

/* What describes a pool's pages is memory, too: a call fails for it, and nobody is killed */
TEST_STOCK(pools_within_the_memory_cgroup)
{
	int line;

	group_make("24M");
	line = test_child(pools_too_long) ?: test_child(regions_too_many);
	EQ(number_in(GROUP "/memory.events", "oom ", "\n"), 0);
	EQ(number_in(GROUP "/memory.events", "oom_kill ", "\n"), 0);
	rmdir(GROUP);
	if (line)
		test_fail(__FILE__, line, "not within the memory cgroup");
}

static int listen_here(int out, void (*tune)(struct rdmatensor_start *start))
{
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	struct rdmatensor *rt;
	int line = start_here(&rt, &start);
	char addr[64];

	if (line)
		return line;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (tune)
		tune(&start);
	test_addr(addr, sizeof(addr), 0);
	if (rdmatensor_start_listen(&start, addr, NULL, 0) || rdmatensor_start(rt, &start) ||
	    rdmatensor_query(rt, &query))
		return __LINE__;
	if (write(out, &query.listen_port, sizeof(query.listen_port)) !=
	    sizeof(query.listen_port))
		return __LINE__;
	pause();
	return 0;
}

/* A process of the group that listens. Return: it */
static pid_t listener_begin(struct side *listener, const char *limit,
			    void (*tune)(struct rdmatensor_start *start))
{
	int from[2];
	pid_t pid;

	group_make(limit);
	EQ(pipe(from), 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(listen_here(from[1], tune) & 255);
	close(from[1]);
	EQ(read(from[0], &listener->port, sizeof(listener->port)), sizeof(listener->port));
	close(from[0]);
	return pid;
}

static void listener_end(pid_t pid)
{
	EQ(kill(pid, SIGKILL), 0);
	EQ(waitpid(pid, NULL, 0), pid);
	rmdir(GROUP);
}

/* Whose peers connect pays for what that takes, whatever task it happens in */
TEST_STOCK(channels_are_the_listeners)
{
	static struct side peer, listener;
	long long before, after, percpu;
	pid_t pid;
	int i;

	pid = listener_begin(&listener, "max", slots);
	side_open(&peer, "peer", 4096, 0, slots);
	before = used();
	percpu = used_percpu();
	for (i = 0; i < CHANNELS; i++)
		side_connect(&peer, &listener);
	after = used();
	percpu = used_percpu() - percpu;
	listener_end(pid);
	printf("# %lld bytes, and %lld with %d channels, %lld of them for each processor\n", before, after,
	       CHANNELS, percpu);
	/* Their counters */
	CHECK(percpu >= CHANNELS * (long long)(RDMATENSOR_STAT_NR * sizeof(uint64_t)));
	CHECK(after - before >= 2ll * CHANNELS * SLOTS * SLOT);
}

/* Its memory bounds them: a peer too many is refused, and nobody is killed for it */
TEST_STOCK(channels_beyond_the_listeners_memory)
{
	static struct side peer, listener;
	char addr[64], cause[256];
	uint32_t channel;
	int ret = 0, nr;
	pid_t pid;

	pid = listener_begin(&listener, "24M", NULL);
	side_open(&peer, "peer", 4096, 0, NULL);
	test_addr(addr, sizeof(addr), listener.port);
	for (nr = 0; !ret && nr < 64; nr++)
		ret = rdmatensor_connect(peer.rt, addr, NULL, 30000, &channel,
					 cause, sizeof(cause));
	printf("# %d channels, then %d: %s\n", nr - 1, ret, cause);
	EQ(ret, -ENOMEM);
	CHECK(nr > 4);
	/* How often the OOM killer was called for the group, and killed */
	EQ(number_in(GROUP "/memory.events", "oom ", "\n"), 0);
	EQ(number_in(GROUP "/memory.events", "oom_kill ", "\n"), 0);
	listener_end(pid);
}

/* And for the names that peers ask for, as long as nobody publishes them */
TEST_STOCK(requests_that_wait_are_the_listeners)
{
	static struct side peer, listener;
	/* Some of both is counted later: up to 64 pages for each processor */
	const long long want = (long long)ASKERS * ASKED * RDMATENSOR_NAME_MAX -
			       2 * sysconf(_SC_NPROCESSORS_ONLN) * 64 * 4096;
	char name[RDMATENSOR_NAME_MAX + 1];
	uint32_t channels[ASKERS];
	struct rdmatensor_op op;
	long long before;
	unsigned int done;
	pid_t pid;
	int i, j, tries;

	CHECK(want > 0);
	pid = listener_begin(&listener, "max", NULL);
	side_open(&peer, "peer", ASKERS * ASKED * 64, 0, NULL);
	for (i = 0; i < ASKERS; i++) {
		side_connect(&peer, &listener);
		channels[i] = peer.channel;
	}
	before = used();
	for (i = 0; i < ASKERS; i++) {
		for (j = 0; j < ASKED; j++) {
			snprintf(name, sizeof(name), "%0*d", RDMATENSOR_NAME_MAX,
				 i * ASKED + j);
			rdmatensor_prep_fetch(&op, channels[i], name, 0, peer.pool.id,
					      side_alloc(&peer, 64), 64, 0, i * ASKED + j);
			EQ(rdmatensor_submit(peer.rt, &op, 1, 0, 0, &done), 0);
		}
	}
	/* They come when they come */
	for (tries = 0; tries < 500 && used() - before < want; tries++)
		usleep(20000);
	printf("# %lld bytes, and %lld with %d requests\n", before, used(), ASKERS * ASKED);
	CHECK(used() - before >= want);
	listener_end(pid);
}
