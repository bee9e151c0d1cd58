// SPDX-License-Identifier: GPL-2.0
/*
 * calls [--seed N] [--ops N | --seconds N]: a grammar of calls, at random, over the
 * whole ABI. Some contexts are connected to each other and to themselves; some
 * threads use all of them at once: every ioctl with fields mutated, mmap, poll,
 * close and open, fork, and writes to whatever is mapped. Ids are mostly live
 * ones, for what is refused at the door tells little.
 *
 * What it holds against the module, beside what the kernel itself finds: that each
 * call ends, that each kind of call can succeed, that no channel between two such
 * contexts ever ends by an error of the protocol, and that two contexts that are
 * made afterwards find all in order.
 *
 * Threads race, so a seed repeats the calls of each thread, not their interleaving.
 */
#define _GNU_SOURCE
#include <linux/dma-heap.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "calls.h"

static const struct {
	const char *name;
	unsigned int weight;
	/* Never has to succeed */
	bool may_fail;
} kinds[NR_KINDS] = {
	[OPEN] = { "open", 2, false },
	[QUERY] = { "QUERY", 10, false },
	/* Those that succeed are open's */
	[START] = { "START", 4, true },
	[CONFIGURE] = { "CONFIGURE", 10, false },
	[STATS] = { "STATS", 20, false },
	[POOL_CREATE] = { "POOL_CREATE", 20, false },
	[POOL_REGISTER] = { "POOL_REGISTER", 20, false },
	[POOL_IMPORT] = { "POOL_IMPORT", 20, false },
	[POOL_DESTROY] = { "POOL_DESTROY", 20, false },
	[POOL_ALLOC] = { "POOL_ALLOC", 80, false },
	[CONNECT] = { "CONNECT", 14, false },
	[DISCONNECT] = { "DISCONNECT", 8, false },
	[CHANNEL_QUERY] = { "CHANNEL_QUERY", 40, false },
	[STEP_ABORT] = { "STEP_ABORT", 6, false },
	[TABLE_EXPORT] = { "TABLE_EXPORT", 20, false },
	[TABLE_OPEN] = { "TABLE_OPEN", 20, false },
	[TABLE_CLOSE] = { "TABLE_CLOSE", 12, false },
	[STATUS_TEXT] = { "STATUS_TEXT", 20, false },
	[SUBMIT] = { "SUBMIT", 500, false },
	[UNKNOWN] = { "unknown ioctl", 5, true },
	[MAP] = { "mmap", 20, false },
	[POLL] = { "poll", 20, false },
	[REAP] = { "reap", 150, false },
	[SCRIBBLE] = { "scribble", 60, false },
	[FORK] = { "fork", 1, false },
};

static const char *const opcodes[NR_OPCODES] = {
	"PUBLISH", "WITHDRAW", "FETCH", "CANCEL", "FREE", "GATHER",
	"RELEASE", "LIST", "REVEAL",
};

struct context contexts[NR_CONTEXTS];
static struct worker workers[NR_THREADS];

static uint64_t ops_limit, ops_given;
static bool stop;
/* The kernel's own counts, of all contexts that have been closed */
static uint64_t totals[RDMATENSOR_STAT_NR];
static struct in_addr own_ip;

static struct context *any_context(struct worker *w)
{
	return &contexts[below(w, NR_CONTEXTS)];
}

/* The errors of calls are told as negative numbers */
static int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

static void count(struct worker *w, enum kind kind, int ret)
{
	if (ret >= 0) {
		w->ok[kind]++;
		return;
	}
	w->failed[kind]++;
	w->errors[-ret < ERRNO_MAX ? -ret : ERRNO_MAX]++;
}

/*
 * Values
 */

unsigned int region_of(struct worker *w, struct context *c)
{
	unsigned int i = below(w, NR_REGIONS), n = NR_REGIONS;

	while (!c->regions[i].pool && --n)
		i = (i + 1) % NR_REGIONS;
	return i;
}

uint32_t channel_of(struct worker *w, struct context *c)
{
	switch (below(w, 16)) {
	case 0:
		return RDMATENSOR_CHANNEL_SELF;
	case 1:
		return below(w, 64);
	case 2:
		return any_context(w)->channels[below(w, NR_IDS)];
	default:
		return live(w, c->channels);
	}
}

static uint32_t pool_of(struct worker *w, struct context *c)
{
	return one_in(w, 32) ? below(w, 64) : live(w, c->pool_ids);
}

uint64_t value(struct worker *w, struct context *c)
{
	switch (below(w, 10)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return UINT64_MAX - below(w, 3);
	case 3:
		return (1ull << below(w, 64)) - below(w, 2);
	case 4:
		return rnd(w);
	case 5:
		return below(w, 1024);
	case 6:
		return channel_of(w, c);
	case 7:
		return pool_of(w, c);
	case 8:
		return c->regions[below(w, NR_REGIONS)].offset;
	default:
		return (uintptr_t)w->pages + below(w, 3 * PAGE);
	}
}

void mutate(struct worker *w, struct context *c, void *at, size_t from, size_t bytes)
{
	unsigned int n = 1 + below(w, 3);

	while (n--) {
		size_t width = 1u << (1 + below(w, 3));
		size_t offset = from + below(w, (bytes - from) / width) * width;
		uint64_t v = value(w, c);

		if (offset + width <= bytes)
			memcpy((char *)at + offset, &v, width);
	}
}

/* In the range that is accepted, but more than the guest has */
static void bound(__u64 *v, __u64 most, __u64 refused)
{
	if (*v > most && *v <= refused)
		*v = most;
}

static void bound32(uint32_t *v, uint32_t most, uint32_t refused)
{
	if (*v > most && *v <= refused)
		*v = most;
}

int make(struct worker *w, struct context *c, unsigned long cmd, void *arg, uint32_t size)
{
	char *at = w->pages + PAGE - size;
	uint32_t other = size;
	int ret;

	switch (below(w, 40)) {
	case 0:
		return call(c->fd, cmd, (void *)value(w, c));
	case 1:
		at += 1 + below(w, size);
		break;
	case 2:
		other = value(w, c);
		break;
	case 3: /* its end, or all of it, read-only */
		at += 1 + below(w, PAGE - 1);
		break;
	case 4:
		at = w->pages + 2 * PAGE - below(w, size + 1);
		break;
	}
	memcpy(arg, &other, sizeof(other));
	if (at + size > w->pages + PAGE) {
		/* What cannot be written holds an argument from its making on */
		size_t there = w->pages + PAGE - at;

		if (at < w->pages + PAGE)
			memcpy(at, arg, there);
		return call(c->fd, cmd, at);
	}
	memcpy(at, arg, size);
	ret = call(c->fd, cmd, at);
	memcpy(arg, at, size);
	return ret;
}

/*
 * The calls
 */

static void start_init(struct worker *w, struct context *c, struct rdmatensor_start *start)
{
	struct sockaddr_in *in;

	memset(start, 0, sizeof(*start));
	start->size = sizeof(*start);
	snprintf(start->worker, sizeof(start->worker), "c%d", (int)(c - contexts));
	start->flags = RDMATENSOR_START_LISTEN;
	in = (void *)start->listen_addr;
	in->sin_family = AF_INET;
	in->sin_addr = own_ip;
	start->ring_entries = 64 << below(w, 6);
	start->msg_slots = 1 << below(w, 7);
	start->msg_slot_bytes = 1024 << below(w, 4);
	start->queue_depth = 2 * start->msg_slots + 8 + below(w, 256);
	start->lanes = 1 + below(w, 4);
	start->stripe_bytes = 1 + below(w, 1 << 17);
	start->max_channels = 1 + below(w, 16);
	start->handshake_ms = 500;
	start->cancel_ms = 100 + below(w, 400);
	if (one_in(w, 4))
		start->flags |= RDMATENSOR_START_VALIDATE;
}

static void tally(struct context *c)
{
	uint64_t counters[RDMATENSOR_STAT_NR];
	struct rdmatensor_stats stats = {
		.size = sizeof(stats), .nr = RDMATENSOR_STAT_NR,
		.counters_uptr = (uintptr_t)counters,
	};
	int i;

	if (call(c->fd, RDMATENSOR_STATS, &stats))
		return;
	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		__atomic_fetch_add(&totals[i], counters[i], __ATOMIC_RELAXED);
}

/* Under the lock for writing */
static void unmap_all(struct context *c)
{
	int i;

	if (c->ring)
		munmap(c->ring, c->ring_bytes);
	c->ring = NULL;
	for (i = 0; i < NR_IDS; i++) {
		if (c->pools[i].at)
			munmap(c->pools[i].at, c->pools[i].bytes);
		c->pools[i].at = NULL;
	}
}

/* Another context in place of an old one, which ends while others may be using it */
static int do_open(struct worker *w, struct context *c)
{
	struct rdmatensor_query query = { .size = sizeof(query) };
	struct rdmatensor_ring *ring = MAP_FAILED;
	struct rdmatensor_start start;
	int fd, old, ret;
	size_t bytes;

	fd = open(RDMATENSOR_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		start_init(w, c, &start);
		if (one_in(w, 2)) {
			mutate(w, c, &start, 4, sizeof(start) - sizeof(start.cause));
			bound32(&start.ring_entries, 4096, 1 << 20);
			bound32(&start.max_channels, 16, 4096);
			bound32(&start.handshake_ms, 500, 600000);
			bound32(&start.cancel_ms, 500, 600000);
			count(w, START, call(fd, RDMATENSOR_START, &start));
			start_init(w, c, &start);
		}
		ret = call(fd, RDMATENSOR_START, &start);
		/* A mutated one may have been right */
		ret = ret == -EISCONN ? 0 : ret;
	} while (ret == -EINVAL);
	if (!ret)
		ret = call(fd, RDMATENSOR_QUERY, &query);
	if (ret) {
		close(fd);
		return ret;
	}
	bytes = PAGE + (size_t)query.ring_entries * sizeof(struct rdmatensor_cqe);
	bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	pthread_rwlock_wrlock(&c->lock);
	unmap_all(c);
	old = c->fd;
	if (old >= 0)
		tally(c);
	c->fd = fd;
	c->ring = ring == MAP_FAILED ? NULL : ring;
	c->ring_bytes = bytes;
	c->port = query.listen_port;
	memset(c->channels, 0, sizeof(c->channels));
	memset(c->pool_ids, 0, sizeof(c->pool_ids));
	memset(c->regions, 0, sizeof(c->regions));
	memset(c->kept, 0, sizeof(c->kept));
	memset(c->exports, 0, sizeof(c->exports));
	memset(c->tables, 0, sizeof(c->tables));
	pthread_rwlock_unlock(&c->lock);
	if (old >= 0)
		close(old);
	return 0;
}

static int do_query(struct worker *w, struct context *c)
{
	ARG(query);

	MUTATE();
	return MAKE(QUERY);
}

static int do_start(struct worker *w, struct context *c)
{
	struct rdmatensor_start arg;

	/* On one that is started already */
	start_init(w, c, &arg);
	MUTATE();
	return MAKE(START);
}

static int do_configure(struct worker *w, struct context *c)
{
	ARG(configure);

	arg.mask = 1;
	arg.flags = one_in(w, 3);
	MUTATE();
	return MAKE(CONFIGURE);
}

static int do_stats(struct worker *w, struct context *c)
{
	uint64_t counters[RDMATENSOR_STAT_NR];

	ARG(stats);

	arg.channel = one_in(w, 2) ? 0 : channel_of(w, c);
	arg.nr = below(w, RDMATENSOR_STAT_NR + 1);
	arg.counters_uptr = (uintptr_t)counters;
	if (one_in(w, 4))
		arg.counters_uptr = value(w, c);
	arg.nr = arg.nr > RDMATENSOR_STAT_NR ? RDMATENSOR_STAT_NR : arg.nr;
	return MAKE(STATS);
}

static void forget(struct context *c, uint32_t pool)
{
	int i;

	for (i = 0; i < NR_IDS; i++)
		if (c->pool_ids[i] == pool)
			c->pool_ids[i] = 0;
	for (i = 0; i < NR_REGIONS; i++)
		if (c->regions[i].pool == pool)
			c->regions[i].pool = 0;
	for (i = 0; i < NR_NAMES; i++)
		if (c->kept[i].region.pool == pool)
			c->kept[i].region.pool = 0;
}

/* One pool for one that it forgets, or there would soon be no memory */
static unsigned int make_place(struct worker *w, struct context *c)
{
	unsigned int slot = below(w, NR_IDS);
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };

	destroy.pool_id = c->pool_ids[slot];
	if (destroy.pool_id && !call(c->fd, RDMATENSOR_POOL_DESTROY, &destroy))
		forget(c, destroy.pool_id);
	return slot;
}

/* What peers may do with it: most often all, or hardly a fetch would find a place */
static uint32_t pool_peers(struct worker *w)
{
	return one_in(w, 4) ? 1 + below(w, 2) : RDMATENSOR_POOL_PEERS_WRITE;
}

/* Pages that this program has for it, and nothing of it else; behind them there is nothing */
#define ARENA_BYTES (2ul << 20)

static char *arena;

static bool make_arena(void)
{
	arena = mmap(NULL, 2 * ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arena != MAP_FAILED &&
	       !mprotect(arena, ARENA_BYTES / 4 * 3, PROT_READ | PROT_WRITE) &&
	       !mprotect(arena + ARENA_BYTES / 4 * 3, ARENA_BYTES / 4, PROT_READ);
}

static void bound_to_arena(__u64 *addr, __u64 *bytes)
{
	__u64 from = (uintptr_t)arena, end = from + 2 * ARENA_BYTES;

	if (*addr < 1ull << 56 && *addr >= 4096 && (*addr < from || *addr >= end))
		*addr = from;
	if (*addr >= from && *addr < end && *bytes > end - *addr && *bytes < 1ull << 40)
		*bytes = end - *addr;
}

/* Of memory that is there already: any part of it is a region */
static void own_pool(struct worker *w, struct context *c, unsigned int slot, unsigned int region,
		     uint32_t id, uint64_t bytes)
{
	c->pool_ids[slot] = id;
	c->pool_bytes[slot] = bytes;
	c->regions[region].pool = id;
	c->regions[region].offset = below(w, bytes);
	c->regions[region].bytes = 1 + below(w, bytes - c->regions[region].offset);
}

static int do_pool_register(struct worker *w, struct context *c)
{
	unsigned int slot = make_place(w, c), region = below(w, NR_REGIONS);
	int ret;

	ARG(pool_register);

	arg.bytes = 4096 * (1 + below(w, one_in(w, 4) ? ARENA_BYTES / 4096 : 16));
	arg.addr = (uintptr_t)arena + 4096 * below(w, ARENA_BYTES / 4096);
	if (arg.bytes > (uintptr_t)arena + ARENA_BYTES - arg.addr)
		arg.bytes = (uintptr_t)arena + ARENA_BYTES - arg.addr;
	arg.peers = pool_peers(w);
	arg.flags = arg.peers && one_in(w, 2) ? RDMATENSOR_REGISTER_READ_ONLY : 0;
	MUTATE();
	bound_to_arena(&arg.addr, &arg.bytes);
	ret = MAKE(POOL_REGISTER);
	if (!ret)
		own_pool(w, c, slot, region, arg.out_pool_id, arg.bytes);
	return ret;
}

/* dma-bufs, the first of which is of the kernel's heap, and files that are none */
#define NR_BUFS 4

static int bufs[NR_BUFS];

static bool make_bufs(void)
{
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), i;

	for (i = 0; i < 3; i++) {
		struct dma_heap_allocation_data data = {
			.len = 4096ul << (4 * i), .fd_flags = (i == 1 ? O_RDONLY : O_RDWR) | O_CLOEXEC,
		};

		if (heap < 0 || ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data))
			return false;
		bufs[i] = (int)data.fd;
	}
	bufs[3] = heap;
	return true;
}

static int do_pool_import(struct worker *w, struct context *c)
{
	unsigned int slot = make_place(w, c), region = below(w, NR_REGIONS);
	int ret;

	ARG(pool_import);

	arg.fd = bufs[one_in(w, 8) ? 3 : below(w, 3)];
	arg.peers = pool_peers(w);
	arg.flags = arg.peers && one_in(w, 2) ? RDMATENSOR_IMPORT_READ_ONLY : 0;
	MUTATE();
	ret = MAKE(POOL_IMPORT);
	if (!ret)
		own_pool(w, c, slot, region, arg.out_pool_id, arg.out_bytes);
	return ret;
}

static int do_pool_create(struct worker *w, struct context *c)
{
	unsigned int slot = make_place(w, c);
	int ret;

	ARG(pool_create);

	arg.peers = pool_peers(w);
	arg.bytes = 1 + below(w, one_in(w, 4) ? 5 << 20 : 1 << 17);
	MUTATE();
	bound(&arg.bytes, 8 << 20, 1ull << 36);
	ret = MAKE(POOL_CREATE);
	if (!ret) {
		c->pool_ids[slot] = arg.out_pool_id;
		c->pool_bytes[slot] = arg.bytes;
	}
	return ret;
}

static int do_pool_destroy(struct worker *w, struct context *c)
{
	int ret;

	ARG(pool_destroy);

	arg.pool_id = pool_of(w, c);
	MUTATE();
	ret = MAKE(POOL_DESTROY);
	if (!ret)
		forget(c, arg.pool_id);
	return ret;
}

static int do_pool_alloc(struct worker *w, struct context *c)
{
	unsigned int slot = below(w, NR_REGIONS);
	int ret;

	ARG(pool_alloc);

	arg.pool_id = pool_of(w, c);
	arg.bytes = 1 + below(w, one_in(w, 8) ? 1 << 20 : 1 << 14);
	MUTATE();
	ret = MAKE(POOL_ALLOC);
	if (!ret) {
		c->regions[slot].pool = arg.pool_id;
		c->regions[slot].offset = arg.out_offset;
		c->regions[slot].bytes = arg.bytes;
	}
	return ret;
}

static int do_connect(struct worker *w, struct context *c)
{
	struct context *to = any_context(w);
	struct sockaddr_in *in;
	int ret;

	ARG(connect);

	in = (void *)arg.addr;
	in->sin_family = AF_INET;
	in->sin_addr = own_ip;
	in->sin_port = htons(to->port);
	if (one_in(w, 3))
		snprintf(arg.worker, sizeof(arg.worker), "c%d", (int)(to - contexts));
	arg.user_data = below(w, 16);
	arg.timeout_ms = 1 + below(w, 500);
	MUTATE();
	if (!arg.timeout_ms || arg.timeout_ms > 500)
		arg.timeout_ms = 500;
	ret = MAKE(CONNECT);
	if (!ret)
		c->channels[below(w, NR_IDS)] = arg.out_channel;
	return ret;
}

static int do_disconnect(struct worker *w, struct context *c)
{
	int ret, i;

	ARG(disconnect);

	arg.channel = channel_of(w, c);
	MUTATE();
	ret = MAKE(DISCONNECT);
	for (i = 0; !ret && i < NR_IDS; i++)
		if (c->channels[i] == arg.channel)
			c->channels[i] = 0;
	for (i = 0; !ret && i < NR_NAMES; i++)
		if (c->kept[i].channel == arg.channel)
			c->kept[i].channel = 0;
	return ret;
}

static int do_channel_query(struct worker *w, struct context *c)
{
	int ret;

	ARG(channel_query);

	if (one_in(w, 2)) {
		arg.flags = RDMATENSOR_CHANNEL_NEXT;
		arg.channel = one_in(w, 2) ? 0 : channel_of(w, c);
	} else {
		arg.channel = channel_of(w, c);
	}
	MUTATE();
	ret = MAKE(CHANNEL_QUERY);
	if (!ret)
		c->channels[below(w, NR_IDS)] = arg.channel;
	return ret;
}

const char words[] = "abcdefghijklmnopqrstuvwxyz";
static const char long_words[2 * RDMATENSOR_STATUS_TEXT_MAX] = "a long story";

/* Of all lengths that are right, and of some that are not */
static uint32_t text_len(struct worker *w)
{
	return one_in(w, 4) ? below(w, 20) : below(w, RDMATENSOR_STATUS_TEXT_MAX + 20);
}

/* The ids are not many: most of those that may be there are asked for */
static int do_status_text(struct worker *w, struct context *c)
{
	char text[RDMATENSOR_STATUS_TEXT_MAX];

	ARG(status_text);

	arg.text_id = one_in(w, 8) ? below(w, 1024) : __atomic_load_n(&c->text_id, __ATOMIC_RELAXED);
	MUTATE();
	/* What is written to stays ours: any other address may be a thread's stack */
	arg.text_uptr = one_in(w, 8) ? below(w, 4096) : (uintptr_t)text;
	arg.text_len = below(w, sizeof(text) + 1);
	return MAKE(STATUS_TEXT);
}

/* A step is aborted for good, so it is seldom one of those that are fetched */
static int do_step_abort(struct worker *w, struct context *c)
{
	ARG(step_abort);

	arg.status = -1 - (int)below(w, 4095);
	arg.step_id = one_in(w, 16) ? below(w, 3) : 3 + below(w, 1000);
	arg.text_uptr = (uintptr_t)long_words;
	arg.text_len = text_len(w);
	MUTATE();
	return MAKE(STEP_ABORT);
}

/*
 * What is told once is used again: the same destination, for the same name of the same peer.
 * A longer one takes its place, for more tensors fit into it
 */
static void keep(struct worker *w, struct rdmatensor_op *op, struct kept *kept)
{
	if (!kept->region.pool || op->bytes > kept->region.bytes || one_in(w, 8))
		kept->region = (struct region){ op->pool_id, op->offset, op->bytes };
	if (!kept->channel || one_in(w, 4))
		kept->channel = op->channel;
	op->pool_id = kept->region.pool;
	op->offset = kept->region.offset;
	op->bytes = kept->region.bytes;
	op->channel = kept->channel;
}

/* Where peers cannot write, at an address most often: of the arena, that it stays ours */
static void make_proxied(struct worker *w, struct context *c, struct rdmatensor_op *op)
{
	op->flags |= RDMATENSOR_OP_PROXY;
	op->proxy_pool_id = pool_of(w, c);
	if (one_in(w, 4))
		return;
	op->pool_id = 0;
	op->offset = (uintptr_t)arena + below(w, ARENA_BYTES);
	op->bytes = one_in(w, 16) ? below(w, ARENA_BYTES) : below(w, 1 << 16);
}

/* A slice's, of bytes and of up to all dims; the last ones are nobody's */
static const struct rdmatensor_range ranges[RDMATENSOR_DIMS_MAX + 1] = {
	{ 1, RDMATENSOR_RANGE_REST }, { 0, RDMATENSOR_RANGE_REST }, { 0, 1 }, { 3, 2 },
	{ 1ull << 62, 1ull << 62 },
};

/* Of elements, dense and not, and of a few dims */
static const struct rdmatensor_stride strides[RDMATENSOR_DIMS_MAX + 1] = {
	{ 8, RDMATENSOR_RANGE_REST }, { 1, RDMATENSOR_RANGE_REST }, { 2, 100 }, { 0, 1 }, { 100, 0 },
	{ 1ull << 62, 1 }, { 1ull << 63, 1 },
};

static void make_strided(struct worker *w, struct rdmatensor_op *op)
{
	op->flags |= RDMATENSOR_OP_STRIDES;
	op->strides_uptr = (uintptr_t)&strides[below(w, 5)];
	op->nr_strides = one_in(w, 8) ? below(w, RDMATENSOR_DIMS_MAX + 2) : 1;
}

/* An operation that would be right if its ids are still alive */
static void make_op(struct worker *w, struct context *c, struct rdmatensor_op *op, uint64_t *dims)
{
	unsigned int region = region_of(w, c);
	uint64_t offset = c->regions[region].offset, bytes = c->regions[region].bytes;
	uint32_t pool = c->regions[region].pool, name;

	memset(op, 0, sizeof(*op));
	op->user_data = below(w, 64);
	switch (below(w, 29)) {
	case 0 ... 4:
		op->opcode = RDMATENSOR_OP_PUBLISH;
		op->uses = one_in(w, 2) ? 0 : 1 + below(w, 3);
		if (one_in(w, 12)) {
			op->flags = RDMATENSOR_OP_FAILED;
			op->status = -1 - (int)below(w, 200);
			op->text_uptr = (uintptr_t)long_words + below(w, 20);
			op->text_len = text_len(w);
			break;
		}
		op->data_type = RDMATENSOR_DT_UINT8;
		op->ndims = 1;
		op->dims_uptr = (uintptr_t)dims;
		if (one_in(w, 12)) {
			op->flags = RDMATENSOR_OP_DEAD;
			dims[0] = below(w, 100);
			break;
		}
		if (one_in(w, 8))
			bytes = below(w, bytes + 1);
		if (!one_in(w, 3))
			op->flags = RDMATENSOR_OP_SHARE;
		op->pool_id = pool;
		op->offset = offset;
		op->bytes = bytes;
		dims[0] = bytes;
		if (one_in(w, 3))
			op->flags = RDMATENSOR_OP_COPY;
		if (one_in(w, 4)) {
			op->bytes = dims[0] = bytes / 8;
			op->flags &= ~RDMATENSOR_OP_SHARE;
			make_strided(w, op);
		}
		if (!op->uses && one_in(w, 2)) {
			op->flags |= RDMATENSOR_OP_GENERATION;
			op->target = below(w, 2);
		}
		break;
	case 5 ... 8:
		op->opcode = RDMATENSOR_OP_WITHDRAW;
		op->flags = one_in(w, 4) ? RDMATENSOR_OP_QUIET : 0;
		op->target = one_in(w, 8) ? below(w, 64) : 0;
		break;
	case 9 ... 15:
		op->opcode = RDMATENSOR_OP_FETCH;
		op->channel = channel_of(w, c);
		op->deadline_ns = rdmatensor_now_ns() + below(w, 100000000);
		if (one_in(w, 4)) {
			op->flags = RDMATENSOR_OP_SHARE;
			op->channel = RDMATENSOR_CHANNEL_SELF;
			break;
		}
		if (one_in(w, 3)) {
			op->flags = RDMATENSOR_OP_SLICE;
			op->ndims = below(w, one_in(w, 8) ? RDMATENSOR_DIMS_MAX + 2 : 3);
			op->dims_uptr = (uintptr_t)ranges;
		}
		if (one_in(w, 3)) {
			op->flags |= RDMATENSOR_OP_ALLOC;
			op->pool_id = pool_of(w, c);
			break;
		}
		op->pool_id = pool;
		op->offset = offset;
		op->bytes = bytes;
		if (one_in(w, 4))
			make_strided(w, op);
		if (!op->flags && !one_in(w, 4))
			op->flags = RDMATENSOR_OP_KEEP;
		else if (!one_in(w, 3))
			make_proxied(w, c, op);
		break;
	case 16 ... 17:
		op->opcode = RDMATENSOR_OP_CANCEL;
		op->target = one_in(w, 4) ? below(w, 64) : c->fetches[below(w, NR_IDS)];
		break;
	case 18 ... 19:
		op->opcode = RDMATENSOR_OP_FREE;
		op->pool_id = pool;
		op->offset = offset;
		break;
	case 20 ... 21:
		op->opcode = RDMATENSOR_OP_RELEASE;
		op->target = one_in(w, 16) ? below(w, 1024) : c->shares[below(w, NR_IDS)];
		break;
	case 22 ... 23:
		op->opcode = RDMATENSOR_OP_LIST;
		op->channel = one_in(w, 4) ? RDMATENSOR_CHANNEL_SELF : channel_of(w, c);
		op->name_uptr = (uintptr_t)words + below(w, NR_NAMES);
		op->name_len = below(w, 2);
		op->pool_id = pool;
		op->offset = offset;
		op->bytes = bytes;
		op->target = one_in(w, 4) ? rnd(w) : below(w, 2);
		op->deadline_ns = rdmatensor_now_ns() + below(w, 100000000);
		break;
	case 24 ... 25:
		op->opcode = one_in(w, 4) ? RDMATENSOR_OP_WITHDRAW : RDMATENSOR_OP_REVEAL;
		op->flags = (op->opcode == RDMATENSOR_OP_WITHDRAW ? RDMATENSOR_OP_GENERATION : 0) |
			    (one_in(w, 4) ? RDMATENSOR_OP_QUIET : 0);
		op->target = below(w, 2);
		op->step_id = below(w, 3);
		break;
	default:
		make_gather(w, c, op);
		break;
	}
	if (op->opcode <= RDMATENSOR_OP_FETCH &&
	    !(op->opcode == RDMATENSOR_OP_WITHDRAW && op->flags & RDMATENSOR_OP_GENERATION)) {
		/* Few, so that they meet */
		name = op->flags == RDMATENSOR_OP_KEEP && one_in(w, 2) ? 0 : below(w, NR_NAMES);
		op->name_uptr = (uintptr_t)words + name;
		op->name_len = one_in(w, 64) ? sizeof(words) - 4 : 1;
		op->step_id = below(w, 3);
		if (op->opcode == RDMATENSOR_OP_FETCH && op->flags == RDMATENSOR_OP_KEEP)
			keep(w, op, &c->kept[name]);
	}
	/* Kept destinations meet few of their own, and are left alone */
	if (op->opcode == RDMATENSOR_OP_FETCH && op->flags != RDMATENSOR_OP_KEEP) {
		op->flags |= one_in(w, 4) ? RDMATENSOR_OP_NEWEST : 0;
		op->flags |= one_in(w, 6) ? RDMATENSOR_OP_NOWAIT : 0;
	}
	if (one_in(w, 10))
		mutate(w, c, op, 0, sizeof(*op));
	/* What is written to stays ours */
	if (op->flags & RDMATENSOR_OP_PROXY && !op->pool_id)
		bound_to_arena(&op->offset, &op->bytes);
}

static int do_submit(struct worker *w, struct context *c)
{
	struct rdmatensor_op ops[OPS_MAX];
	uint64_t dims[OPS_MAX];
	uint32_t i, n;
	int ret;

	ARG(submit);

	arg.op_size = sizeof(*ops);
	arg.ops_uptr = (uintptr_t)ops;
	/* The first that is refused ends it, so most are short */
	arg.nr_ops = below(w, one_in(w, 4) ? OPS_MAX + 1 : 4);
	for (i = 0; i < arg.nr_ops; i++)
		make_op(w, c, &ops[i], &dims[i]);
	if (one_in(w, 8)) {
		if (one_in(w, 2)) {
			arg.wait_nr = 1 + below(w, 20);
		} else {
			arg.flags = RDMATENSOR_SUBMIT_HEAD;
			arg.wait_head = below(w, 1000);
		}
		/* Those without an end are ended by a signal */
		if (!one_in(w, 16))
			arg.deadline_ns = rdmatensor_now_ns() + below(w, 5000000);
	}
	if (one_in(w, 16))
		mutate(w, c, &arg, 4, sizeof(arg));
	ret = MAKE(SUBMIT);
	if (arg.ops_uptr != (uintptr_t)ops || arg.op_size != sizeof(*ops) ||
	    arg.out_done > OPS_MAX)
		return ret;
	for (i = 0; i < arg.out_done; i++) {
		if (ops[i].opcode < NR_OPCODES)
			w->op_ok[ops[i].opcode]++;
		if (ops[i].opcode == RDMATENSOR_OP_FETCH || ops[i].opcode == RDMATENSOR_OP_GATHER ||
		    ops[i].opcode == RDMATENSOR_OP_LIST)
			c->fetches[below(w, NR_IDS)] = ops[i].user_data;
		for (n = 0; ops[i].opcode == RDMATENSOR_OP_FREE && n < NR_REGIONS; n++)
			if (c->regions[n].pool == ops[i].pool_id &&
			    c->regions[n].offset == ops[i].offset)
				c->regions[n].pool = 0;
	}
	if (arg.out_error && i < OPS_MAX && ops[i].opcode < NR_OPCODES)
		w->op_failed[ops[i].opcode]++;
	return ret;
}

static int do_unknown(struct worker *w, struct context *c)
{
	unsigned long cmd = _IO(RDMATENSOR_IOC_TYPE, below(w, 256));

	/* Neither one that is known, with whatever lies there as its argument */
	if (one_in(w, 2))
		cmd ^= 1ul << (16 + below(w, 16));
	else if (_IOC_NR(cmd) >= RDMATENSOR_CMD_QUERY && _IOC_NR(cmd) <= RDMATENSOR_CMD_DUMP)
		cmd = _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_DUMP + 1);
	return call(c->fd, cmd, (void *)value(w, c));
}

static int do_map(struct worker *w, struct context *c)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE };
	unsigned int slot = below(w, NR_IDS);
	uint32_t id = c->pool_ids[slot];
	uint64_t bytes = c->pool_bytes[slot];
	bool keep = one_in(w, 2);
	int ret = 0;
	void *at;

	if (keep) {
		pthread_rwlock_wrlock(&c->lock);
		if (c->pools[slot].at)
			munmap(c->pools[slot].at, c->pools[slot].bytes);
		at = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd,
			  (off_t)id * PAGE);
		ret = at == MAP_FAILED ? -errno : 0;
		c->pools[slot].at = ret ? NULL : at;
		c->pools[slot].bytes = bytes;
		pthread_rwlock_unlock(&c->lock);
		return ret;
	}
	if (one_in(w, 2))
		bytes = below(w, 1 << 20) + 1;
	at = mmap(NULL, bytes ? bytes : 1, prots[below(w, 4)],
		  one_in(w, 4) ? MAP_PRIVATE : MAP_SHARED, c->fd,
		  one_in(w, 2) ? (off_t)below(w, 64) * PAGE : (off_t)(value(w, c) & ~0xfffull));
	ret = at == MAP_FAILED ? -errno : 0;
	if (at != MAP_FAILED)
		munmap(at, bytes ? bytes : 1);
	return ret;
}

static int do_poll(struct worker *w, struct context *c)
{
	struct pollfd pfd = { .fd = c->fd, .events = below(w, 0x40) };

	return poll(&pfd, 1, below(w, 3)) < 0 ? -errno : 0;
}

/* Reads all that is there, and learns from it */
static int do_reap(struct worker *w, struct context *c)
{
	struct rdmatensor_ring *ring;
	uint32_t head, tail, n;

	pthread_rwlock_rdlock(&c->lock);
	ring = c->ring;
	if (ring) {
		uint32_t entries = (c->ring_bytes - PAGE) / sizeof(struct rdmatensor_cqe);

		while (entries & (entries - 1))
			entries &= entries - 1;
		head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
		for (n = 0; tail != head && n < entries; tail++, n++) {
			struct rdmatensor_cqe *cqe = (void *)((char *)ring + PAGE);
			unsigned int slot = below(w, NR_REGIONS);

			cqe += tail & (entries - 1);
			if (cqe->flags & RDMATENSOR_CQE_MORE)
				__atomic_store_n(&c->text_id, cqe->text_id, __ATOMIC_RELAXED);
			if (cqe->type == RDMATENSOR_CQE_FETCH &&
			    cqe->flags & RDMATENSOR_CQE_SHARED) {
				c->shares[slot % NR_IDS] = cqe->share_id;
			} else if (cqe->type == RDMATENSOR_CQE_FETCH && !cqe->result &&
				   cqe->tensor_bytes) {
				c->regions[slot].pool = cqe->pool_id;
				c->regions[slot].offset = cqe->offset;
				c->regions[slot].bytes = cqe->tensor_bytes;
			} else if (cqe->type == RDMATENSOR_CQE_CHANNEL_UP) {
				c->channels[slot % NR_IDS] = cqe->channel;
			} else if (cqe->type == RDMATENSOR_CQE_CHANNEL_DOWN &&
				   cqe->result == -EPROTO) {
				printf("# a channel ended by an error of the protocol: %.*s\n",
				       RDMATENSOR_TEXT_MAX, cqe->text);
			}
		}
		__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
	}
	pthread_rwlock_unlock(&c->lock);
	return 0;
}

static int do_scribble(struct worker *w, struct context *c)
{
	unsigned int slot = below(w, NR_IDS), n = 1 + below(w, 16);

	pthread_rwlock_rdlock(&c->lock);
	if (c->ring && one_in(w, 4)) {
		uint32_t *at = (uint32_t *)c->ring;

		/* The indices most of all; then all that the kernel has written there */
		if (one_in(w, 2))
			__atomic_store_n(&c->ring->tail, (uint32_t)value(w, c), __ATOMIC_RELEASE);
		while (n--)
			at[below(w, c->ring_bytes / sizeof(*at))] = value(w, c);
	} else if (c->pools[slot].at) {
		unsigned char *at = c->pools[slot].at;

		while (n--)
			at[below(w, c->pools[slot].bytes)] = rnd(w);
	}
	pthread_rwlock_unlock(&c->lock);
	return 0;
}

/* A child that has all that its parent has, and goes */
static int do_fork(struct worker *w, struct context *c)
{
	struct rdmatensor_query query = { .size = sizeof(query) };
	bool looks = one_in(w, 2);
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(looks && ioctl(c->fd, RDMATENSOR_QUERY, &query) ? 1 : 0);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int (*const doers[NR_KINDS])(struct worker *w, struct context *c) = {
	[OPEN] = do_open,
	[QUERY] = do_query,
	[START] = do_start,
	[CONFIGURE] = do_configure,
	[STATS] = do_stats,
	[POOL_CREATE] = do_pool_create,
	[POOL_REGISTER] = do_pool_register,
	[POOL_IMPORT] = do_pool_import,
	[POOL_DESTROY] = do_pool_destroy,
	[POOL_ALLOC] = do_pool_alloc,
	[CONNECT] = do_connect,
	[DISCONNECT] = do_disconnect,
	[CHANNEL_QUERY] = do_channel_query,
	[STEP_ABORT] = do_step_abort,
	[TABLE_EXPORT] = do_table_export,
	[TABLE_OPEN] = do_table_open,
	[TABLE_CLOSE] = do_table_close,
	[STATUS_TEXT] = do_status_text,
	[SUBMIT] = do_submit,
	[UNKNOWN] = do_unknown,
	[MAP] = do_map,
	[POLL] = do_poll,
	[REAP] = do_reap,
	[SCRIBBLE] = do_scribble,
	[FORK] = do_fork,
};

static uint64_t total(unsigned int stat)
{
	return __atomic_load_n(&totals[stat], __ATOMIC_RELAXED);
}

/* So far: what contexts that have ended have counted */
static bool went_over_channels(void)
{
	return total(RDMATENSOR_STAT_CHANNELS_UP) && total(RDMATENSOR_STAT_TX_WRITES) &&
	       total(RDMATENSOR_STAT_FETCHED) && total(RDMATENSOR_STAT_COPIED_BYTES);
}

static bool copies_met(void)
{
	return total(RDMATENSOR_STAT_PUBLISH_COPIES) > total(RDMATENSOR_STAT_BUFFERS_MADE) &&
	       total(RDMATENSOR_STAT_BUFFERS_MADE);
}

/* What is rare is waited for, but not for ever: how much time there is for a call differs */
static bool is_enough(uint64_t given)
{
	if (!ops_limit || given < ops_limit)
		return false;
	return given >= 5 * ops_limit ||
	       (went_over_channels() && copies_met() && total(RDMATENSOR_STAT_GATHER_READS) &&
		total(RDMATENSOR_STAT_TX_SHORT_REQUESTS));
}

static void *work(void *arg)
{
	unsigned int all = 0, at;
	struct worker *w = arg;
	enum kind kind;

	for (kind = 0; kind < NR_KINDS; kind++)
		all += kinds[kind].weight;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (is_enough(__atomic_fetch_add(&ops_given, 1, __ATOMIC_RELAXED)))
			break;
		at = below(w, all);
		for (kind = 0; at >= kinds[kind].weight; kind++)
			at -= kinds[kind].weight;
		__atomic_store_n(&w->now, kind, __ATOMIC_RELAXED);
		count(w, kind, doers[kind](w, any_context(w)));
		__atomic_store_n(&w->done, w->done + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&w->now, NR_KINDS, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * The whole
 */

static int number, failures;

static void result(bool ok, const char *what)
{
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++number, what);
	failures += !ok;
}

static void interrupted(int sig)
{
	(void)sig;
}

/* Bound by the limit on pinned memory, as a process of a user is */
static void be_ordinary(void)
{
	struct rlimit limit = { PINNED_MAX, PINNED_MAX };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	FILE *param;

	param = fopen("/sys/module/rdmatensor/parameters/memlock", "w");
	if (!param || fputs("1", param) < 0 || fclose(param)) {
		perror("calls: memlock");
		exit(1);
	}
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || syscall(SYS_capget, &header, data)) {
		perror("calls: limits");
		exit(1);
	}
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, data)) {
		perror("calls: capset");
		exit(1);
	}
}

static void prepare(struct worker *w, uint64_t seed)
{
	w->random = seed * NR_THREADS + (w - workers);
	w->pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	if (w->pages == MAP_FAILED || mprotect(w->pages + PAGE, PAGE, PROT_READ) ||
	    mprotect(w->pages + 2 * PAGE, PAGE, PROT_NONE)) {
		perror("calls: mmap");
		exit(1);
	}
}

/* Interrupts them now and then, and sees to it that each call ends */
static void watch(uint64_t seconds, uint64_t seed)
{
	uint64_t end = seconds ? rdmatensor_deadline_ms(seconds * 1000) : 0;
	struct worker own = { .random = ~seed };
	struct { uint64_t done, since; } seen[NR_THREADS] = {};
	bool running = true;
	int i;

	while (running) {
		uint64_t now = rdmatensor_now_ns();

		if (end && now >= end)
			__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		running = false;
		for (i = 0; i < NR_THREADS; i++) {
			struct worker *w = &workers[i];
			enum kind kind = __atomic_load_n(&w->now, __ATOMIC_ACQUIRE);
			uint64_t done = __atomic_load_n(&w->done, __ATOMIC_ACQUIRE);

			if (kind == NR_KINDS)
				continue;
			running = true;
			if (done != seen[i].done || !seen[i].since) {
				seen[i].done = done;
				seen[i].since = now;
			} else if (now - seen[i].since > STUCK_S * 1000000000ull) {
				printf("not ok %d - %s has not ended in %d s\n", ++number,
				       kinds[kind].name, STUCK_S);
				_exit(1);
			}
			if (one_in(&own, 4))
				pthread_kill(w->thread, SIGUSR1);
		}
		poll(NULL, 0, 10);
	}
}

static void report(void)
{
	uint64_t all = 0, ok, failed, errors[ERRNO_MAX + 1] = {};
	char what[128];
	unsigned int i;
	enum kind kind;
	int t, e;

	for (kind = 0; kind < NR_KINDS; kind++) {
		ok = 0;
		failed = 0;
		for (t = 0; t < NR_THREADS; t++) {
			ok += workers[t].ok[kind];
			failed += workers[t].failed[kind];
		}
		all += ok + failed;
		snprintf(what, sizeof(what), "%s: %llu done, %llu refused", kinds[kind].name,
			 (unsigned long long)ok, (unsigned long long)failed);
		result(ok || kinds[kind].may_fail, what);
	}
	for (i = 0; i < NR_OPCODES; i++) {
		ok = 0;
		failed = 0;
		for (t = 0; t < NR_THREADS; t++) {
			ok += workers[t].op_ok[i];
			failed += workers[t].op_failed[i];
		}
		snprintf(what, sizeof(what), "operation %s: %llu taken, %llu refused", opcodes[i],
			 (unsigned long long)ok, (unsigned long long)failed);
		result(ok, what);
	}
	for (t = 0; t < NR_THREADS; t++)
		for (e = 0; e <= ERRNO_MAX; e++)
			errors[e] += workers[t].errors[e];
	for (e = 0; e <= ERRNO_MAX; e++)
		if (errors[e])
			printf("# %-20s %llu\n", strerrorname_np(e) ? strerrorname_np(e) : "other",
			       (unsigned long long)errors[e]);
	for (i = 0; i < RDMATENSOR_STAT_NR; i++)
		printf("# %-20s %llu\n", rdmatensor_stat_name(i), (unsigned long long)totals[i]);
	result(went_over_channels(), "tensors went over channels, and from contexts to themselves");
	result(totals[RDMATENSOR_STAT_GATHER_READS], "rows were read from peers");
	result(copies_met(), "copies found buffers, and made some");
	result(totals[RDMATENSOR_STAT_TX_SHORT_REQUESTS], "requests referred to what was told");
	/* Of VALIDATE_ERRORS there are some: contents are scribbled over on their way */
	result(!totals[RDMATENSOR_STAT_PROTOCOL_ERRORS], "no protocol error");
	printf("calls %llu\n", (unsigned long long)all);
}

/* Two contexts as if nothing had been: a tensor there, and its bytes */
static bool in_order(void)
{
	struct rdmatensor *rt[2] = {};
	struct rdmatensor_pool pool[2];
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	char addr[64], ip[32];
	const size_t bytes = 3 << 20;
	uint64_t dim = bytes;
	uint32_t channel;
	uint64_t at[2];
	int ret = 0, i;
	size_t n;

	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", own_ip.s_addr & 255, own_ip.s_addr >> 8 & 255,
		 own_ip.s_addr >> 16 & 255, own_ip.s_addr >> 24);
	for (i = 0; !ret && i < 2; i++) {
		rdmatensor_start_init(&start, i ? "fetcher" : "publisher");
		snprintf(addr, sizeof(addr), "%s:0", ip);
		ret = rdmatensor_start_listen(&start, addr, NULL, 0);
		ret = ret ? ret : rdmatensor_open(NULL, &rt[i]);
		ret = ret ? ret : rdmatensor_start(rt[i], &start);
		ret = ret ? ret : rdmatensor_pool_create(rt[i], bytes, &pool[i]);
		ret = ret ? ret : rdmatensor_pool_alloc(rt[i], &pool[i], bytes, &at[i]);
	}
	if (!ret) {
		for (n = 0; n < bytes; n++)
			((unsigned char *)pool[0].base)[n] = n * 31 + (n >> 8) * 7;
		ret = rdmatensor_query(rt[0], &query);
		snprintf(addr, sizeof(addr), "%s:%u", ip, query.listen_port);
	}
	if (!ret) {
		rdmatensor_prep_publish(&op, "t", 0, pool[0].id, at[0], bytes,
					RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
		ret = rdmatensor_submit(rt[0], &op, 1, 0, 0, NULL);
	}
	ret = ret ? ret : rdmatensor_connect(rt[1], addr, "publisher", 0, &channel, NULL, 0);
	ret = ret ? ret : rdmatensor_configure(rt[1], RDMATENSOR_CONFIGURE_VALIDATE,
					       RDMATENSOR_CONFIGURE_VALIDATE);
	ret = ret ? ret : rdmatensor_fetch(rt[1], channel, "t", 0, &pool[1], at[1], bytes,
					   rdmatensor_deadline_ms(20000), &cqe);
	if (!ret && (memcmp(pool[0].base, pool[1].base, bytes) ||
		     !(cqe.flags & RDMATENSOR_CQE_VALIDATED)))
		ret = -EBADMSG;
	if (ret)
		printf("# two new contexts: %s (%s)\n", strerror(-ret), start.cause);
	rdmatensor_close(rt[0]);
	rdmatensor_close(rt[1]);
	return !ret;
}

int main(int argc, char **argv)
{
	uint64_t seed = rdmatensor_now_ns() % 1000000007, seconds = 0;
	struct sigaction action = { .sa_handler = interrupted };
	const char *ip = getenv("LAB_IP");
	unsigned int b[4];
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--ops"))
			ops_limit = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = strtoull(argv[i + 1], NULL, 0);
		else
			break;
	}
	if (i != argc || !ops_limit == !seconds) {
		fprintf(stderr, "usage: calls [--seed N] --ops N | --seconds N\n");
		return 2;
	}
	if (sscanf(ip ? ip : "10.0.0.1", "%u.%u.%u.%u", &b[0], &b[1], &b[2], &b[3]) != 4)
		return 2;
	own_ip.s_addr = b[0] | b[1] << 8 | b[2] << 16 | b[3] << 24;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# seed %llu\n", (unsigned long long)seed);

	sigaction(SIGUSR1, &action, NULL);
	be_ordinary();
	if (!make_arena() || !make_bufs()) {
		result(false, "memory to register and to import");
		return 1;
	}
	for (i = 0; i < NR_THREADS; i++)
		prepare(&workers[i], seed);
	for (i = 0; i < NR_CONTEXTS; i++) {
		contexts[i].fd = -1;
		pthread_rwlock_init(&contexts[i].lock, NULL);
		if (do_open(&workers[0], &contexts[i])) {
			result(false, "contexts to begin with");
			return 1;
		}
	}
	for (i = 0; i < NR_THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	watch(seconds, seed);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < NR_CONTEXTS; i++) {
		unmap_all(&contexts[i]);
		tally(&contexts[i]);
		close(contexts[i].fd);
	}
	report();
	result(in_order(), "two new contexts: a fetch, checked");
	printf("1..%d\n", number);
	return failures ? 1 : 0;
}
