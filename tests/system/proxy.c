// SPDX-License-Identifier: GPL-2.0
/*
 * FETCH with RDMATENSOR_OP_PROXY: to memory of the process that is in no pool, and to pools that
 * peers cannot write; what is refused; that all is given back however it ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "whole.h"

#define POOL (4u << 20)

static struct pair p;

static void prepare_to(struct rdmatensor_op *op, const char *name, int64_t step, void *to,
		       uint64_t bytes, uint64_t user_data)
{
	rdmatensor_prep_fetch_memory(op, p.b.channel, name, step, to, bytes, p.b.pool.id,
				     rdmatensor_deadline_ms(20000), user_data);
}

/* The entry of the fetch that is user_data 9. Return: its result */
static int fetch_to(const char *name, int64_t step, void *to, uint64_t bytes,
		    struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;
	int ret;

	prepare_to(&op, name, step, to, bytes, 9);
	ret = side_do(&p.b, &op);
	if (ret)
		return ret;
	ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 9, cqe);
	EQ(cqe->pool_id, 0);
	EQ(cqe->offset, ret ? 0 : (uintptr_t)to);
	return ret;
}

static uint64_t copied(void)
{
	return side_stat(&p.b, RDMATENSOR_STAT_COPIED_BYTES);
}

/* No region is left in @side's pool of @bytes */
static void is_free(struct side *side, uint64_t bytes)
{
	EQ(rdmatensor_pool_free(side->rt, &side->pool, side_alloc(side, bytes)), 0);
}

static long pinned(void)
{
	return number_in("/proc/self/status", "VmPin:", " kB");
}

/* Pages are unpinned by a work item */
static void pinned_falls_to(long kb)
{
	uint64_t began = rdmatensor_now_ns();

	while (pinned() > kb && ms_since(began) < 10000)
		sched_yield();
	EQ(pinned(), kb);
}

TEST(proxied_to_any_address)
{
	static const uint64_t lengths[] = { 1, 63, 64, 4095, 4096, 4097, TENSOR, 2 << 20 };
	static const unsigned int skews[] = { 0, 1, 64, 4095 };
	unsigned char *at = malloc((2 << 20) + 3 * PAGE);
	struct rdmatensor_cqe cqe;
	uint64_t from, sum = 0;
	unsigned int i;
	long before;

	CHECK(at);
	pair_open(&p, POOL, NULL);
	before = pinned();
	/* The second time the request carries the proxy's keys at once */
	for (i = 0; i < 64; i++) {
		uint64_t bytes = lengths[i / 2 % 8];
		unsigned char *to = at + 8 + skews[i / 16];
		char name[8];

		snprintf(name, sizeof(name), "n%u", i / 2 % 8);
		from = publish(&p.a, name, i, bytes, i, 1, i);
		to[-1] = 0xee;
		memset(to, 0xee, bytes + 1);
		EQ(fetch_to(name, i, to, bytes, &cqe), 0);
		EQ(cqe.tensor_bytes, bytes);
		CHECK(filled(to, bytes, i));
		CHECK(to[-1] == 0xee && to[bytes] == 0xee);
		sum += bytes;
		EQ(copied(), sum);
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, i, NULL), 0);
		EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, from), 0);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_RE_REQUESTS), 8);
	is_free(&p.b, POOL);
	pinned_falls_to(before);
	free(at);
}

/* A pool that peers must not write to, and one that they may: there nothing is copied */
TEST(proxied_to_a_pool)
{
	static const enum rdmatensor_pool_peers peers[] = {
		RDMATENSOR_POOL_PEERS_NONE, RDMATENSOR_POOL_PEERS_READ,
		RDMATENSOR_POOL_PEERS_WRITE,
	};
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at, sum = 0;
	unsigned int i;

	pair_open(&p, POOL, NULL);
	publish(&p.a, "t", 0, TENSOR, 3, 0, 1);
	for (i = 0; i < 6; i++) {
		EQ(rdmatensor_pool_create_peers(p.b.rt, 2 * TENSOR, peers[i / 2], &pool), 0);
		EQ(rdmatensor_pool_alloc(p.b.rt, &pool, TENSOR, &at), 0);
		rdmatensor_prep_fetch(&op, p.b.channel, "t", 0, pool.id, at, TENSOR,
				      rdmatensor_deadline_ms(20000), 2);
		if (peers[i / 2] != RDMATENSOR_POOL_PEERS_WRITE)
			EQ(side_do(&p.b, &op), -EACCES);
		/* Its own pool will do, too, where peers write it */
		rdmatensor_prep_proxy(&op, i == 5 ? pool.id : p.b.pool.id);
		EQ(side_do(&p.b, &op), 0);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), 0);
		EQ(cqe.pool_id, pool.id);
		EQ(cqe.offset, at);
		CHECK(filled((unsigned char *)pool.base + at, TENSOR, 3));
		sum += peers[i / 2] == RDMATENSOR_POOL_PEERS_WRITE ? 0 : TENSOR;
		EQ(copied(), sum);
		EQ(rdmatensor_pool_destroy(p.b.rt, &pool), 0);
	}
	is_free(&p.b, POOL);
}

/* The device has keys for 32 KiB each, or for 16 MiB of long pages */
static void lesser_device(int on)
{
	char cmd[512];

	if (on)
		snprintf(cmd, sizeof(cmd), "insmod %s/kmod/%s/rdmatensor_lesser.ko device=%s pages=8",
			 getenv("LAB_BUILD"), getenv("LAB_KERNEL"), getenv("LAB_RDMA_DEV"));
	EQ(system(on ? cmd : "rmmod rdmatensor_lesser"), 0);
}

static void small_slots(struct rdmatensor_start *start)
{
	start->msg_slots = 16;
	start->msg_slot_bytes = 1024;
	start->mr_page_bytes = 2 << 20;
}

static int fetch_into(const struct rdmatensor_pool *pool, const char *name, uint32_t proxy,
		      struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, p.b.channel, name, 0, pool->id, 1, pool->bytes - 1,
			      rdmatensor_deadline_ms(20000), 2);
	if (proxy)
		rdmatensor_prep_proxy(&op, proxy);
	EQ(side_do(&p.b, &op), 0);
	return side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, cqe);
}

/*
 * Single pages, which have too many keys for a message, and a proxy of long ones, which has
 * few; a shorter tensor goes straight to the same place. In strict mode keys are of single pages
 * everywhere
 */
TEST_POOL(proxied_for_its_keys)
{
	enum { LONG = 9 << 20, ROOM = 16 << 20 };
	unsigned char *at = map_private(LONG + PAGE);
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	char text[256];

	put_together();
	madvise(at, LONG + PAGE, MADV_NOHUGEPAGE);
	lesser_device(1);
	side_open(&p.a, "a", ROOM, 1, small_slots);
	side_open(&p.b, "b", ROOM, 1, small_slots);
	side_connect(&p.b, &p.a);
	lesser_device(0);
	EQ(rdmatensor_pool_register(p.b.rt, at, LONG + PAGE, RDMATENSOR_POOL_PEERS_WRITE, 0,
				    &pool, NULL, 0), 0);
	publish(&p.a, "long", 0, LONG, 3, 0, 1);
	publish(&p.a, "short", 0, TENSOR, 4, 0, 1);
	EQ(fetch_into(&pool, "long", 0, &cqe), -EMSGSIZE);
	CHECK(strstr(rdmatensor_cqe_text(&cqe, text, sizeof(text)), "msg_slot_bytes"));
	EQ(fetch_into(&pool, "long", p.b.pool.id, &cqe), 0);
	EQ(cqe.pool_id, pool.id);
	EQ(cqe.offset, 1);
	CHECK(filled(at + 1, LONG, 3));
	EQ(copied(), LONG);
	EQ(fetch_into(&pool, "short", p.b.pool.id, &cqe), 0);
	CHECK(filled(at + 1, TENSOR, 4));
	EQ(copied(), LONG);
	is_free(&p.b, ROOM);
	/* All of a pool of memory that was there before is handed out */
	EQ(fetch_into(&pool, "long", pool.id, &cqe), -ENOSPC);
}

/* From the context itself: once, and without a region, for which there would be no room */
TEST(proxied_from_itself)
{
	unsigned char *at = malloc(TENSOR + 1);
	struct rdmatensor_cqe cqe;

	CHECK(at);
	side_open(&p.b, "b", PAGE * 26, 0, NULL);
	p.b.channel = RDMATENSOR_CHANNEL_SELF;
	publish(&p.b, "t", 0, TENSOR, 4, 1, 1);
	EQ(fetch_to("t", 0, at + 1, TENSOR, &cqe), 0);
	CHECK(filled(at + 1, TENSOR, 4));
	EQ(copied(), TENSOR);
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	free(at);
}

static void refused(void *to, uint64_t bytes, uint32_t pool, int error)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_memory(&op, p.b.channel, "t", 0, to, bytes, pool, 0, 1);
	EQ(side_do(&p.b, &op), error);
}

TEST(what_cannot_be_proxied)
{
	unsigned char *at = map_private(4 * PAGE), *read_only;
	struct rdmatensor_pool none, unwritable;
	struct rdmatensor_op op;
	long before;

	pair_open(&p, POOL, NULL);
	read_only = map(PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	EQ(rdmatensor_pool_create_peers(p.b.rt, PAGE, RDMATENSOR_POOL_PEERS_NONE, &none), 0);
	EQ(rdmatensor_pool_register(p.b.rt, read_only, PAGE, RDMATENSOR_POOL_PEERS_NONE,
				    RDMATENSOR_REGISTER_READ_ONLY, &unwritable, NULL, 0), 0);
	before = pinned();
	EQ(munmap(at + 3 * PAGE, PAGE), 0);
	refused(at + 2 * PAGE, PAGE + 1, p.b.pool.id, -EFAULT);
	refused(NULL, 1, p.b.pool.id, -EFAULT);
	refused((void *)-2ul, 1, p.b.pool.id, -EFAULT);
	refused((void *)-2ul, 16, p.b.pool.id, -EFAULT);
	refused(at, UINT64_MAX, p.b.pool.id, -EFAULT);
	refused(at, 1ull << 43, p.b.pool.id, -ENOMEM);
	/* What the process may not write nobody writes for it, wherever the way leads */
	refused(read_only, PAGE, p.b.pool.id, -EACCES);
	rdmatensor_prep_fetch(&op, p.b.channel, "t", 0, unwritable.id, 0, PAGE, 0, 1);
	rdmatensor_prep_proxy(&op, p.b.pool.id);
	EQ(side_do(&p.b, &op), -EACCES);
	/* The peer cannot write the proxy either */
	refused(at, PAGE, none.id, -EACCES);
	refused(at, PAGE, 0, -EINVAL);
	refused(at, PAGE, 99, -EINVAL);
	rdmatensor_prep_fetch_memory(&op, 99, "t", 0, at, PAGE, p.b.pool.id, 0, 1);
	EQ(side_do(&p.b, &op), -ENOTCONN);
	pinned_falls_to(before);
	is_free(&p.b, POOL);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHES), 0);
}

TEST(proxy_without_room)
{
	unsigned char *at = malloc(TENSOR);
	struct rdmatensor_cqe cqe = {};
	uint64_t taken;
	char text[256];

	CHECK(at);
	memset(at, 0xee, TENSOR);
	pair_open(&p, POOL, NULL);
	publish(&p.a, "t", 0, TENSOR, 5, 1, 1);
	taken = side_alloc(&p.b, POOL - TENSOR / 2);
	EQ(fetch_to("t", 0, at, TENSOR, &cqe), -ENOSPC);
	CHECK(strstr(rdmatensor_cqe_text(&cqe, text, sizeof(text)), "the proxy's pool"));
	EQ(fetch_to("t", 0, at, TENSOR, &cqe), -ENOSPC);
	CHECK(at[0] == 0xee && at[TENSOR - 1] == 0xee);
	side_none(&p.a, RDMATENSOR_CQE_PUBLISH, 1, 20);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, taken), 0);
	/* Longer than where it goes */
	EQ(fetch_to("t", 0, at, TENSOR - 1, &cqe), -EMSGSIZE);
	EQ(cqe.tensor_bytes, TENSOR);
	EQ(fetch_to("t", 0, at, TENSOR, &cqe), 0);
	CHECK(filled(at, TENSOR, 5));
	is_free(&p.b, POOL);
	free(at);
}

TEST(proxied_without_bytes)
{
	unsigned char byte = 0xee;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	pair_open(&p, POOL, NULL);
	rdmatensor_prep_publish(&op, "dead", 0, 0, 0, 0, RDMATENSOR_DT_UINT8, 0, NULL, 0, 1);
	op.flags |= RDMATENSOR_OP_DEAD;
	EQ(side_do(&p.a, &op), 0);
	/* Nothing is at any address */
	EQ(fetch_to("dead", 0, NULL, 0, &cqe), 0);
	EQ(fetch_to("dead", 0, (void *)-1ul, 0, &cqe), 0);
	CHECK(cqe.flags & RDMATENSOR_CQE_DEAD);
	EQ(fetch_to("dead", 0, &byte, 1, &cqe), 0);
	EQ(byte, 0xee);
	publish(&p.a, "t", 0, 10, 1, 0, 2);
	EQ(fetch_to("t", 0, &byte, 0, &cqe), -EMSGSIZE);
	EQ(fetch_to("t", 0, &byte, 1, &cqe), -EMSGSIZE);
	EQ(byte, 0xee);
	EQ(copied(), 0);
	is_free(&p.b, POOL);
}

static int validate(struct rdmatensor *rt, int on)
{
	return rdmatensor_configure(rt, RDMATENSOR_CONFIGURE_VALIDATE,
				    on ? RDMATENSOR_CONFIGURE_VALIDATE : 0);
}

TEST(proxied_with_checksums)
{
	unsigned char *at = malloc(TENSOR);
	struct rdmatensor_cqe cqe;
	int i;

	CHECK(at);
	pair_open(&p, POOL, NULL);
	publish(&p.a, "t", 0, TENSOR, 6, 0, 1);
	for (i = 0; i < 4; i++) {
		EQ(validate(p.a.rt, i & 1), 0);
		EQ(validate(p.b.rt, i & 2), 0);
		memset(at, 0, TENSOR);
		EQ(fetch_to("t", 0, at, TENSOR, &cqe), 0);
		EQ(!!(cqe.flags & RDMATENSOR_CQE_VALIDATED), !!i);
		CHECK(filled(at, TENSOR, 6));
		EQ(copied(), (i + 1) * TENSOR);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), 3);
	is_free(&p.b, POOL);
	free(at);
}

/* Kinds of memory: a file's pages become the process's own, and the file does not change */
TEST(proxied_to_memory_of_each_kind)
{
	int fd = memfd_create("rdmatensor", 0);
	unsigned char *kinds[3], byte;
	struct rdmatensor_cqe cqe;
	unsigned int i;

	CHECK(fd >= 0);
	EQ(ftruncate(fd, 2 * BYTES), 0);
	pair_open(&p, POOL, NULL);
	publish(&p.a, "t", 0, TENSOR, 7, 0, 1);
	kinds[0] = map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	kinds[1] = map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	/* Of a pool, which the process has mapped, at an odd place */
	kinds[2] = side_at(&p.b, side_alloc(&p.b, TENSOR + 9));
	for (i = 0; i < 3; i++) {
		EQ(fetch_to("t", 0, kinds[i] + 9, TENSOR, &cqe), 0);
		CHECK(filled(kinds[i] + 9, TENSOR, 7));
	}
	EQ(pread(fd, &byte, 1, 10), 1);
	EQ(byte, 0);
	close(fd);
}

/* What the process does with the addresses meanwhile is its own affair */
TEST(proxied_to_memory_that_is_unmapped)
{
	unsigned char *at = map_private(BYTES), *other;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	long before;

	pair_open(&p, POOL, NULL);
	before = pinned();
	prepare_to(&op, "t", 0, at + 5, TENSOR, 1);
	EQ(side_do(&p.b, &op), 0);
	CHECK(pinned() > before);
	EQ(munmap(at, BYTES), 0);
	other = map_private(BYTES);
	memset(other, 0xee, BYTES);
	publish(&p.a, "t", 0, TENSOR, 8, 1, 2);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
	CHECK(other[5] == 0xee && !memcmp(other, other + 1, BYTES - 1));
	pinned_falls_to(before);
	EQ(munmap(other, BYTES), 0);
}

/* Each end of a fetch that waits: what it held is the process's again with the entry */
TEST(proxied_and_ended)
{
	struct rdmatensor_pool own, none;
	unsigned char *at = malloc(TENSOR);
	struct rdmatensor_op op;
	uint64_t where;
	int i, error;
	long before;

	CHECK(at);
	memset(at, 0xee, TENSOR);
	pair_open(&p, POOL, NULL);
	before = pinned();
	own = p.b.pool;
	for (i = 0; i < 8; i++) {
		EQ(rdmatensor_pool_create(p.b.rt, POOL, &p.b.pool), 0);
		EQ(rdmatensor_pool_create_peers(p.b.rt, TENSOR, RDMATENSOR_POOL_PEERS_NONE,
						&none), 0);
		EQ(rdmatensor_pool_alloc(p.b.rt, &none, TENSOR, &where), 0);
		prepare_to(&op, "never", i, at, TENSOR, 1);
		if (i % 2) {
			op.pool_id = none.id;
			op.offset = where;
		}
		if (i / 2 == 1)
			op.deadline_ns = rdmatensor_deadline_ms(50);
		EQ(side_do(&p.b, &op), 0);
		EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), -EBUSY);
		EQ(rdmatensor_pool_destroy(p.b.rt, &none), i % 2 ? -EBUSY : 0);
		error = i / 2 == 0 ? -ECANCELED : i / 2 == 1 ? -ETIMEDOUT :
			i / 2 == 2 ? -EIO : -ESHUTDOWN;
		rdmatensor_prep_cancel(&op, 1);
		if (i / 2 == 0)
			EQ(side_do(&p.b, &op), 0);
		if (i / 2 == 2)
			EQ(rdmatensor_step_abort(p.b.rt, i, -EIO, NULL), 0);
		if (i / 2 == 3) {
			EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
			EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
			side_connect(&p.b, &p.a);
			EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
		}
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, NULL), error);
		EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
		if (i % 2)
			EQ(rdmatensor_pool_destroy(p.b.rt, &none), 0);
	}
	p.b.pool = own;
	CHECK(at[0] == 0xee && !memcmp(at, at + 1, TENSOR - 1));
	pinned_falls_to(before);
	free(at);
}

/* Cancelled at any moment: it has come whole, or nothing is written any more */
TEST(proxied_and_cancelled_at_any_moment)
{
	enum { LONG = 2 << 20 };
	unsigned char *at = malloc(LONG);
	struct rdmatensor_op op;
	int i, ret, result;

	CHECK(at);
	pair_open(&p, POOL, NULL);
	publish(&p.a, "t", 0, LONG, 1, 0, 1);
	for (i = 0; i < 60; i++) {
		prepare_to(&op, "t", 0, at, LONG, 100 + i);
		EQ(side_do(&p.b, &op), 0);
		usleep(i * 100);
		rdmatensor_prep_cancel(&op, 100 + i);
		ret = side_do(&p.b, &op);
		CHECK(ret == 0 || ret == -ENOENT);
		result = side_next(&p.b, RDMATENSOR_CQE_FETCH, 100 + i, NULL);
		CHECK(result == 0 || result == -ECANCELED);
		if (!result) {
			CHECK(filled(at, LONG, 1));
		} else {
			memset(at, 0x55, LONG);
			usleep(2000);
			CHECK(at[0] == 0x55 && !memcmp(at, at + 1, LONG - 1));
		}
		side_none(&p.b, RDMATENSOR_CQE_FETCH, 100 + i, 0);
		test_alive();
	}
	is_free(&p.b, POOL);
	free(at);
}

enum { LONG = 256 << 10 };

static struct side user;

/* Return: 0, or the submit's error */
static int begin_as_user(unsigned char *to, int64_t step, uint64_t user_data)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_memory(&op, RDMATENSOR_CHANNEL_SELF, "t", step, to, LONG,
				     user.pool.id, 0, user_data);
	return rdmatensor_submit(user.rt, &op, 1, 0, 0, NULL);
}

static int within_limit(void)
{
	unsigned char *at = malloc(3 * LONG);
	struct rdmatensor_cqe cqe;
	int i;

	/* One after the other: each finds the locked memory of the one before free again */
	for (i = 0; at && i < 50; i++) {
		if (begin_as_user(at + i, 0, 2) ||
		    rdmatensor_wait(user.rt, 1, rdmatensor_deadline_ms(20000)) ||
		    rdmatensor_reap(user.rt, &cqe, 1) != 1 || cqe.result ||
		    !filled(at + i, LONG, 1))
			return __LINE__;
	}
	/* Two at the same time are too many, and of one that is too long nobody has to wait */
	if (begin_as_user(at, 1, 3))
		return __LINE__;
	if (begin_as_user(at + 2 * LONG - PAGE, 2, 4) != -ENOMEM)
		return __LINE__;
	free(at);
	return 0;
}

TEST(proxied_memory_counts)
{
	side_open(&user, "user", 1 << 20, 0, NULL);
	publish(&user, "t", 0, LONG, 1, 0, 1);
	AS_USER(LONG + 3 * PAGE, within_limit);
}

/* The process dies while its fetch waits, or is on its way: nothing stays pinned */
TEST(proxied_and_killed)
{
	int round, status, ready[2];
	char byte;
	pid_t pid;

	pages_fall_to(0);
	pair_open(&p, 8 << 20, NULL);
	for (round = 0; round < 4; round++) {
		EQ(pipe(ready), 0);
		fflush(stdout);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			struct side s = { 0 };
			struct rdmatensor_op op;

			side_open(&s, "dies", POOL, 0, NULL);
			side_connect(&s, &p.a);
			rdmatensor_prep_fetch_memory(&op, s.channel, "t", round,
						     malloc(2 << 20), 2 << 20, s.pool.id, 0, 1);
			_exit(side_do(&s, &op) || write(ready[1], "x", 1) != 1 || pause());
		}
		EQ(close(ready[1]), 0);
		EQ(read(ready[0], &byte, 1), 1);
		if (round % 2)
			publish(&p.a, "t", round, 2 << 20, 1, 1, round);
		usleep(round * 1000);
		EQ(kill(pid, SIGKILL), 0);
		EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
		EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
		EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
		EQ(close(ready[0]), 0);
		pages_fall_to(0);
	}
}

enum { THREADS = 6, STEPS = 40 };

/**
 * struct actor - one thread, on the handle that all use
 * @at: where its tensors go
 * @ended: steps whose tensor has come; the main thread reaps for all
 * @error: of a submit
 */
static struct actor {
	pthread_t thread;
	unsigned char *at;
	int ended;
	int error;
} actors[THREADS];

static uint64_t length(int thread, int step)
{
	return 1 + thread * 17000 + step * 31;
}

static void *act(void *arg)
{
	struct actor *actor = arg;
	int step, nr = actor - actors;
	struct rdmatensor_op op;
	char name[8];

	for (step = 0; step < STEPS && !actor->error; step++) {
		while (__atomic_load_n(&actor->ended, __ATOMIC_ACQUIRE) < step)
			sched_yield();
		snprintf(name, sizeof(name), "n%d", nr);
		prepare_to(&op, name, step, actor->at, length(nr, step), nr);
		actor->error = rdmatensor_submit(p.b.rt, &op, 1, 0, 0, NULL);
	}
	return NULL;
}

TEST(proxied_by_many_threads)
{
	struct rdmatensor_cqe cqe;
	struct actor *actor;
	int i, step, ended;
	char name[8];

	pair_open(&p, 32 << 20, NULL);
	for (i = 0; i < THREADS; i++) {
		for (step = 0; step < STEPS; step++) {
			snprintf(name, sizeof(name), "n%d", i);
			publish(&p.a, name, step, length(i, step), i + step, 1, 0);
		}
		/* On pages that they have in common, some of them */
		actors[i] = (struct actor){ .at = malloc(length(i, STEPS)) };
		CHECK(actors[i].at);
	}
	for (i = 0; i < THREADS; i++)
		EQ(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
	for (ended = 0; ended < THREADS * STEPS; ended++) {
		EQ(rdmatensor_wait(p.b.rt, 1, rdmatensor_deadline_ms(20000)), 0);
		EQ(rdmatensor_reap(p.b.rt, &cqe, 1), 1);
		EQ(cqe.result, 0);
		EQ(cqe.type, RDMATENSOR_CQE_FETCH);
		actor = &actors[cqe.user_data];
		EQ(cqe.offset, (uintptr_t)actor->at);
		CHECK(filled(actor->at, length(cqe.user_data, actor->ended),
			     cqe.user_data + actor->ended));
		memset(actor->at, 0xee, length(cqe.user_data, actor->ended));
		__atomic_store_n(&actor->ended, actor->ended + 1, __ATOMIC_RELEASE);
	}
	for (i = 0; i < THREADS; i++) {
		EQ(pthread_join(actors[i].thread, NULL), 0);
		EQ(actors[i].error, 0);
		free(actors[i].at);
	}
	is_free(&p.b, 32 << 20);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
}
