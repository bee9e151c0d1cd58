// SPDX-License-Identifier: GPL-2.0
/* Who pays for queue pairs and memory regions: RDMA cgroups */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define ROOT "/tmp/cgroup"
#define GROUP ROOT "/objects"

/* Objects that a context takes by START: the queue pair that registers memory */
enum { STARTED = 1 };

static struct side peer;

static const char *device(void)
{
	const char *name = getenv("LAB_RDMA_DEV");

	return name ? name : "rxe0";
}

static int allow(int objects)
{
	char text[128];

	snprintf(text, sizeof(text), "%s hca_object=%d", device(), objects);
	return file_put(GROUP "/rdma.max", text);
}

/* Objects that the group has; 0: it is not listed */
static int objects(void)
{
	FILE *file = fopen(GROUP "/rdma.current", "r");
	char named[64];
	int handles, nr, now = 0;

	if (!file)
		return -1;
	while (fscanf(file, "%63s hca_handle=%d hca_object=%d", named, &handles, &nr) == 3)
		if (!strcmp(named, device()))
			now = nr;
	fclose(file);
	return now;
}

/* @fn in a process of the group, which is new and empty */
static void in_group(int (*fn)(void))
{
	struct stat stat_;
	char text[128];
	int status;
	pid_t pid;

	mkdir(ROOT, 0755);
	if (stat(ROOT "/cgroup.procs", &stat_))
		EQ(mount("none", ROOT, "cgroup2", 0, NULL), 0);
	CHECK(file_put(ROOT "/cgroup.subtree_control", "+rdma"));
	EQ(mkdir(GROUP, 0755), 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(file_put(GROUP "/cgroup.procs", "0") ? fn() & 255 : 255);
	EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	/* With the process all has gone */
	EQ(objects(), 0);
	/*
	 * A group that is removed with a limit and without use stays in the device's list, and is
	 * freed: kernels to 6.12 at least crash when the device goes
	 */
	snprintf(text, sizeof(text), "%s hca_object=max", device());
	CHECK(file_put(GROUP "/rdma.max", text));
	rmdir(GROUP);
	if (WEXITSTATUS(status))
		test_fail(__FILE__, WEXITSTATUS(status), "not within the RDMA cgroup");
}

static int pools(void)
{
	struct rdmatensor_start start;
	struct rdmatensor_pool pool[4], own;
	struct rdmatensor *rt;
	char cause[256];
	void *pages;
	int i;

	if (!allow(0) || rdmatensor_open(NULL, &rt))
		return __LINE__;
	rdmatensor_start_init(&start, "objects");
	if (rdmatensor_start(rt, &start) != -EDQUOT || !strstr(start.cause, "rdma.max"))
		return __LINE__;
	if (objects() || !allow(STARTED + 3))
		return __LINE__;
	rdmatensor_start_init(&start, "objects");
	start.mr_page_bytes = 4096;
	if (rdmatensor_start(rt, &start) || objects() != STARTED)
		return __LINE__;
	for (i = 0; i < 3; i++)
		if (rdmatensor_pool_create(rt, 4096, &pool[i]) || objects() != STARTED + i + 1)
			return __LINE__;
	/* One more is refused, and takes nothing; so is each way to memory that is there */
	pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rdmatensor_pool_create(rt, 4096, &pool[3]) != -EDQUOT ||
	    rdmatensor_pool_register(rt, pages, 4096, 0, 0, &own, cause, sizeof(cause)) != -EDQUOT ||
	    !strstr(cause, "rdma.max") || objects() != STARTED + 3)
		return __LINE__;
	/* What is gone makes room */
	if (rdmatensor_pool_destroy(rt, &pool[1]) || objects() != STARTED + 2 ||
	    rdmatensor_pool_register(rt, pages, 4096, 0, 0, &own, cause, sizeof(cause)) ||
	    objects() != STARTED + 3)
		return __LINE__;
	/* A pool of which only some memory regions are allowed has none */
	if (!allow(STARTED + 5) || rdmatensor_pool_create(rt, 16 << 20, &pool[1]) != -EDQUOT ||
	    objects() != STARTED + 3)
		return __LINE__;
	rdmatensor_close(rt);
	return objects() ? __LINE__ : 0;
}

TEST(memory_regions_within_the_rdma_cgroup)
{
	in_group(pools);
}

static int channels(void)
{
	struct rdmatensor_table_open open = { .size = sizeof(open) };
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	uint32_t channel, more;
	char addr[64], cause[256];
	int before;

	test_addr(addr, sizeof(addr), peer.port);
	if (!allow(1000) || rdmatensor_open(NULL, &rt))
		return __LINE__;
	rdmatensor_start_init(&start, "objects");
	start.lanes = 3;
	start.gather_lanes = 2;
	if (rdmatensor_start(rt, &start) ||
	    rdmatensor_connect(rt, addr, NULL, 0, &channel, cause, sizeof(cause)))
		return __LINE__;
	/* Its lanes, and at least one memory region of its message buffer */
	before = objects();
	printf("# %d objects with a channel of 3 lanes\n", before);
	fflush(stdout);
	if (before < STARTED + 3 + 1 || !allow(before + 2))
		return __LINE__;
	if (rdmatensor_connect(rt, addr, NULL, 0, &more, cause, sizeof(cause)) != -EDQUOT ||
	    !strstr(cause, "rdma.max") || objects() != before)
		return __LINE__;
	if (!allow(before + 1) ||
	    rdmatensor_table_open(rt, "rows", &channel, 1, &open) != -EDQUOT ||
	    !strstr(open.cause, "rdma.max") || objects() != before)
		return __LINE__;
	if (!allow(before + 2) || rdmatensor_table_open(rt, "rows", &channel, 1, &open) ||
	    objects() != before + 2)
		return __LINE__;
	/* Its lanes are the channel's, whoever opens another table */
	if (rdmatensor_table_open(rt, "rows", &channel, 1, &open) || objects() != before + 2)
		return __LINE__;
	if (rdmatensor_disconnect(rt, channel))
		return __LINE__;
	rdmatensor_close(rt);
	return objects() ? __LINE__ : 0;
}

TEST(queue_pairs_within_the_rdma_cgroup)
{
	struct rdmatensor_pool rows;
	uint32_t table;
	uint64_t at;

	side_open(&peer, "peer", 65536, 1, NULL);
	EQ(rdmatensor_pool_create_peers(peer.rt, 4096, RDMATENSOR_POOL_PEERS_READ, &rows), 0);
	EQ(rdmatensor_pool_alloc(peer.rt, &rows, 4096, &at), 0);
	EQ(rdmatensor_table_export(peer.rt, "rows", &rows, at, 0, 16, 64, 0,
				   RDMATENSOR_DT_FLOAT, &table), 0);
	in_group(channels);
}

#define NAMES 3
/* Of several memory regions */
#define NAME_LONG NAMES

/* SUBMIT's answer, or that of the fetch */
static int fetched(struct rdmatensor *rt, uint32_t channel, uint32_t pool, unsigned int i)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int done;
	char name[16];
	int ret;

	snprintf(name, sizeof(name), "n%u", i);
	rdmatensor_prep_fetch_alloc(&op, channel, name, 0, pool, 0, rdmatensor_deadline_ms(30000),
				    i);
	ret = rdmatensor_submit(rt, &op, 1, 1, rdmatensor_deadline_ms(60000), &done);
	if (ret)
		return ret;
	return rdmatensor_reap(rt, &cqe, 1) == 1 ? cqe.result : -ENOENT;
}

/* In the group, in strict mode, with a pool of @bytes. Return: 0, or a line of this file */
static int join_strictly(struct rdmatensor **rt, struct rdmatensor_pool *pool, uint64_t bytes,
			 uint32_t *channel)
{
	struct rdmatensor_start start;
	char addr[64], cause[256];

	test_addr(addr, sizeof(addr), peer.port);
	if (!allow(1000) || rdmatensor_open(NULL, rt))
		return __LINE__;
	rdmatensor_start_init(&start, "objects");
	if (rdmatensor_start_set(&start, "mr_mode", RDMATENSOR_MR_MODE_STRICT) ||
	    rdmatensor_start(*rt, &start) || rdmatensor_pool_create(*rt, bytes, pool) ||
	    rdmatensor_connect(*rt, addr, NULL, 0, channel, cause, sizeof(cause)))
		return __LINE__;
	return 0;
}

/* In strict mode: a fetch pays for a memory region before it is known where the tensor will go */
static int strictly(void)
{
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	uint32_t channel;
	int before, line;

	line = join_strictly(&rt, &pool, 65536, &channel);
	if (line)
		return line;
	before = objects();
	if (!allow(before) || fetched(rt, channel, pool.id, 0) != -EDQUOT || objects() != before)
		return __LINE__;
	if (!allow(before + 1) || fetched(rt, channel, pool.id, 0) || objects() != before + 1)
		return __LINE__;
	/* Which is used again */
	if (fetched(rt, channel, pool.id, 1) || fetched(rt, channel, pool.id, 2) ||
	    objects() != before + 1)
		return __LINE__;
	rdmatensor_close(rt);
	return objects() ? __LINE__ : 0;
}

#define LONG_BYTES (8u << 20)
/* For which there is a memory region on soft-RoCE */
#define SEGMENT (2u << 20)

/* The first name to a place; as fetched() */
static int into(struct rdmatensor *rt, uint32_t channel, uint32_t pool, uint64_t at, uint64_t bytes)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int done;
	int ret;

	rdmatensor_prep_fetch(&op, channel, "n0", 0, pool, at, bytes, rdmatensor_deadline_ms(30000),
			      0);
	ret = rdmatensor_submit(rt, &op, 1, 1, rdmatensor_deadline_ms(60000), &done);
	if (ret)
		return ret;
	return rdmatensor_reap(rt, &cqe, 1) == 1 ? cqe.result : -ENOENT;
}

/*
 * The other memory regions of a tensor that is longer than one has room for are made by a kernel
 * thread, and owed. Who cannot pay for them loses them, and not the channel
 */
static int strictly_owed(void)
{
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	uint32_t channel;
	int before, line;
	uint64_t at;

	line = join_strictly(&rt, &pool, 4 * LONG_BYTES, &channel);
	if (line)
		return line;
	if (rdmatensor_pool_alloc(rt, &pool, LONG_BYTES, &at))
		return __LINE__;
	before = objects();
	if (!allow(before + 1) || fetched(rt, channel, pool.id, NAME_LONG) ||
	    objects() != before + 1)
		return __LINE__;
	/* What is paid for is enough */
	if (fetched(rt, channel, pool.id, 0) || objects() != before + 1)
		return __LINE__;
	/* It is not, and there would be no room for those that are owed, and one more */
	if (!allow(before + 2) || into(rt, channel, pool.id, at, 2 * SEGMENT) ||
	    objects() != before + 2)
		return __LINE__;
	/* Its meta-data is known, so that the process makes them */
	if (fetched(rt, channel, pool.id, NAME_LONG) != -EDQUOT || objects() != before + 2)
		return __LINE__;
	/* Who can pay does so */
	if (!allow(1000) || fetched(rt, channel, pool.id, NAME_LONG) ||
	    objects() < before + 3)
		return __LINE__;
	rdmatensor_close(rt);
	return objects() ? __LINE__ : 0;
}

#define THREADS 4
/* Fetches of each that SUBMIT takes */
#define TURNS 40
/* What one fetch of the long tensor takes on a device with the shortest lists, and one more */
#define FEW 6

/**
 * struct crowd - threads that fetch over one channel
 * @rt: the context
 * @pool: its pool
 * @channel: to the peer
 * @places: of each thread, LONG_BYTES
 * @begun: fetches that SUBMIT has taken; atomic
 * @refused: SUBMITs that ended with -EDQUOT; atomic
 * @broken: a line of this file; atomic
 * @ended: all threads have; atomic
 */
static struct crowd {
	struct rdmatensor *rt;
	struct rdmatensor_pool pool;
	uint32_t channel;
	uint64_t places[THREADS];
	unsigned int begun, refused;
	int broken;
	bool ended;
} crowd;

static void break_off(int line)
{
	__atomic_store_n(&crowd.broken, line, __ATOMIC_RELAXED);
}

/* Short and long ones, to a place or to none, of which some are cancelled; others come in between */
static void *fetch_within(void *arg)
{
	unsigned int me = (uintptr_t)arg, turn = 0, done, random = me + 1;
	uint64_t end = rdmatensor_deadline_ms(60000);
	struct rdmatensor_op op;
	char name[16];
	int ret;

	while (turn < TURNS && !crowd.broken) {
		if (rdmatensor_now_ns() > end)
			break_off(__LINE__);
		sched_yield();
		random = random * 1103515245 + 12345;
		snprintf(name, sizeof(name), "n%u", (random >> 16) % (NAMES + 1));
		if (random >> 20 & 1)
			rdmatensor_prep_fetch(&op, crowd.channel, name, 0, crowd.pool.id,
					      crowd.places[me], LONG_BYTES,
					      rdmatensor_deadline_ms(30000), me);
		else
			rdmatensor_prep_fetch_alloc(&op, crowd.channel, name, 0, crowd.pool.id, 0,
						    rdmatensor_deadline_ms(30000), me);
		ret = rdmatensor_submit(crowd.rt, &op, 1, 0, 0, &done);
		turn += !ret;
		if (!ret)
			__atomic_add_fetch(&crowd.begun, 1, __ATOMIC_RELAXED);
		else if (ret == -EDQUOT)
			__atomic_add_fetch(&crowd.refused, 1, __ATOMIC_RELAXED);
		/* The last fetch still goes to that place; the ring is full */
		else if (ret != -EINVAL && ret != -EAGAIN)
			break_off(__LINE__);
		if (random >> 21 & 1)
			continue;
		rdmatensor_prep_cancel(&op, me);
		ret = rdmatensor_submit(crowd.rt, &op, 1, 0, 0, &done);
		if (ret && ret != -ENOENT && ret != -EAGAIN)
			break_off(__LINE__);
	}
	return NULL;
}

/* Entries, until there are as many as fetches; and what the group has is looked at meanwhile */
static unsigned int reap_within(int most)
{
	struct rdmatensor_cqe cqe;
	unsigned int nr = 0;

	while (!__atomic_load_n(&crowd.ended, __ATOMIC_ACQUIRE) ||
	       nr < __atomic_load_n(&crowd.begun, __ATOMIC_RELAXED)) {
		if (objects() > most)
			break_off(__LINE__);
		if (rdmatensor_wait(crowd.rt, 1, rdmatensor_deadline_ms(100)) ||
		    rdmatensor_reap(crowd.rt, &cqe, 1) != 1)
			continue;
		nr++;
		if (cqe.result && cqe.result != -ECANCELED && cqe.result != -EDQUOT &&
		    cqe.result != -ENOSPC && cqe.result != -EMSGSIZE)
			break_off(__LINE__);
		if (!cqe.result && cqe.offset >= THREADS * LONG_BYTES &&
		    rdmatensor_pool_free(crowd.rt, &crowd.pool, cqe.offset))
			break_off(__LINE__);
	}
	return nr;
}

static void *join_all(void *arg)
{
	pthread_t *threads = arg;
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&crowd.ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* In strict mode: what threads at one channel do to each other's debt, they never have more */
static int strictly_together(void)
{
	pthread_t threads[THREADS], joins;
	int before, line;
	uintptr_t i;

	line = join_strictly(&crowd.rt, &crowd.pool, (2 * THREADS + 4) * LONG_BYTES, &crowd.channel);
	if (line)
		return line;
	before = objects();
	/* What the fetches allocate lies behind them */
	for (i = 0; i < THREADS; i++)
		if (rdmatensor_pool_alloc(crowd.rt, &crowd.pool, LONG_BYTES, &crowd.places[i]) ||
		    crowd.places[i] >= THREADS * LONG_BYTES)
			return __LINE__;
	if (!allow(before + FEW))
		return __LINE__;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fetch_within, (void *)i))
			return __LINE__;
	if (pthread_create(&joins, NULL, join_all, threads))
		return __LINE__;
	reap_within(before + FEW);
	pthread_join(joins, NULL);
	if (crowd.broken)
		return crowd.broken;
	printf("# %u fetches, %u refused\n", crowd.begun, crowd.refused);
	if (!crowd.refused)
		return __LINE__;
	/* Nothing is left of it */
	if (fetched(crowd.rt, crowd.channel, crowd.pool.id, 0) ||
	    objects() > before + FEW)
		return __LINE__;
	rdmatensor_close(crowd.rt);
	return objects() ? __LINE__ : 0;
}

#define SPREAD_BYTES (64u << 20)

/* A fetch of an element for each MiB of a place, which is answered when its keys are to be made */
static int spread(struct rdmatensor *rt, uint32_t channel, uint32_t pool, uint64_t at)
{
	const struct rdmatensor_stride stride = { 1 << 20, 64 };
	struct rdmatensor_op op;
	unsigned int done;

	rdmatensor_prep_fetch(&op, channel, "n0", 0, pool, at, SPREAD_BYTES,
			      rdmatensor_deadline_ms(30000), 7);
	rdmatensor_prep_strides(&op, &stride, 1);
	op.flags |= RDMATENSOR_OP_NEWEST;
	return rdmatensor_submit(rt, &op, 1, 0, 0, &done);
}

/* In strict mode: all keys that a place with gaps can have are paid for before anybody makes them */
static int strictly_with_gaps(void)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	struct rdmatensor *rt;
	uint32_t channel;
	int before, keys, line;
	uint64_t at;

	line = join_strictly(&rt, &pool, SPREAD_BYTES, &channel);
	if (line)
		return line;
	if (rdmatensor_pool_alloc(rt, &pool, SPREAD_BYTES, &at))
		return __LINE__;
	before = objects();
	if (!allow(before + 3) || spread(rt, channel, pool.id, at) != -EDQUOT || objects() != before)
		return __LINE__;
	if (!allow(1000) || spread(rt, channel, pool.id, at))
		return __LINE__;
	keys = objects() - before;
	if (keys < 4 || !allow(before + 2 * keys - 1))
		return __LINE__;
	if (rdmatensor_wait(rt, 1, rdmatensor_deadline_ms(30000)) ||
	    rdmatensor_reap(rt, &cqe, 1) != 1 || cqe.result || objects() != before + keys)
		return __LINE__;
	/* They are used again; but two at one time would need twice as many */
	if (spread(rt, channel, pool.id, at) || rdmatensor_wait(rt, 1, rdmatensor_deadline_ms(30000)) ||
	    rdmatensor_reap(rt, &cqe, 1) != 1 || cqe.result || objects() != before + keys)
		return __LINE__;
	rdmatensor_close(rt);
	return objects() ? __LINE__ : 0;
}

TEST(strict_gaps_within_the_rdma_cgroup)
{
	struct rdmatensor_op op;
	uint64_t dim = 64;

	side_open(&peer, "peer", 65536, 1, NULL);
	rdmatensor_prep_publish(&op, "n0", 0, peer.pool.id, side_alloc(&peer, 64), 64,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	EQ(side_do(&peer, &op), 0);
	in_group(strictly_with_gaps);
}

static void publish_names(void)
{
	struct rdmatensor_op op;
	uint64_t dim = 64;
	char name[16];
	unsigned int i;

	side_open(&peer, "peer", 2 * LONG_BYTES, 1, NULL);
	for (i = 0; i <= NAMES; i++) {
		if (i == NAME_LONG)
			dim = LONG_BYTES;
		snprintf(name, sizeof(name), "n%u", i);
		rdmatensor_prep_publish(&op, name, 0, peer.pool.id, side_alloc(&peer, dim), dim,
					RDMATENSOR_DT_UINT8, 1, &dim, 0, i);
		EQ(side_do(&peer, &op), 0);
	}
}

TEST(strict_within_the_rdma_cgroup)
{
	publish_names();
	in_group(strictly);
}

TEST(strict_that_owes_within_the_rdma_cgroup)
{
	publish_names();
	in_group(strictly_owed);
}

TEST(strict_threads_within_the_rdma_cgroup)
{
	publish_names();
	in_group(strictly_together);
}

/* In the group: what a peer opens is bounded by max_channels, and not charged to anybody */
static int accepts(void)
{
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	struct rdmatensor_cqe cqe;
	struct rdmatensor *rt;
	char addr[64], cause[256];
	uint32_t channel;
	int ret, status;
	pid_t pid;

	if (!allow(STARTED) || rdmatensor_open(NULL, &rt))
		return __LINE__;
	rdmatensor_start_init(&start, "objects");
	test_addr(addr, sizeof(addr), 0);
	if (rdmatensor_start_listen(&start, addr, NULL, 0) || rdmatensor_start(rt, &start) ||
	    rdmatensor_query(rt, &query))
		return __LINE__;
	test_addr(addr, sizeof(addr), query.listen_port);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!file_put(ROOT "/cgroup.procs", "0"))
			_exit(1);
		side_open(&peer, "peer", 4096, 0, NULL);
		ret = rdmatensor_connect(peer.rt, addr, NULL, 0, &channel, cause, sizeof(cause));
		_exit(ret ? 2 : 0);
	}
	ret = rdmatensor_wait(rt, 1, rdmatensor_deadline_ms(30000));
	if (ret || rdmatensor_reap(rt, &cqe, 1) != 1 || cqe.type != RDMATENSOR_CQE_CHANNEL_UP)
		return __LINE__;
	if (waitpid(pid, &status, 0) != pid || status || objects() != STARTED)
		return __LINE__;
	rdmatensor_close(rt);
	return objects() ? __LINE__ : 0;
}

TEST(peers_within_max_channels)
{
	in_group(accepts);
}
