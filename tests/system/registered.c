// SPDX-License-Identifier: GPL-2.0
/*
 * Pools of memory that the process has: of each kind, at any offset, whatever the process does
 * with the addresses later, and what cannot be registered.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "whole.h"

#define ROW 64u
#define ROWS 1000u

static struct pair p;
static char cause[256];

static int register_at(struct side *side, void *at, uint64_t bytes,
		       enum rdmatensor_pool_peers peers, uint32_t flags,
		       struct rdmatensor_pool *pool)
{
	cause[0] = 0;
	return rdmatensor_pool_register(side->rt, at, bytes, peers, flags, pool, cause,
					sizeof(cause));
}

/* Refused, with a line that names the call and has @text; nothing is pinned */
static void refused(void *at, uint64_t bytes, enum rdmatensor_pool_peers peers, uint32_t flags,
		    int error, const char *text)
{
	struct rdmatensor_pool pool = { 0 };

	EQ(register_at(&p.b, at, bytes, peers, flags, &pool), error);
	if (!strstr(cause, text) || strncmp(cause, "POOL_REGISTER: ", 15))
		test_fail(__FILE__, __LINE__, "the cause is \"%s\", without \"%s\"", cause, text);
	EQ(pool.id, 0);
}

/* kB that this process has pinned */
static long pinned(void)
{
	return number_in("/proc/self/status", "VmPin:", " kB");
}

/* Pools are freed by a work item, also those of the case before */
static void pinned_falls_to(long kb)
{
	uint64_t began = rdmatensor_now_ns();

	while (pinned() > kb && ms_since(began) < 10000)
		sched_yield();
	CHECK(pinned() <= kb);
}

/*
 * As much as is registered is pinned, from the call on until POOL_DESTROY has returned: the pages may be
 * wanted for something else then. Pages of the kernel take nothing of what may be locked
 */
TEST(registered_is_pinned_until_it_is_destroyed)
{
	struct rdmatensor_pool pool;
	unsigned int i;
	void *at;
	long kb;

	pages_fall_to(0);
	pair_open(&p, PAGE, NULL);
	kb = pinned();
	EQ(rdmatensor_pool_create(p.b.rt, 8 << 20, &pool), 0);
	EQ(pinned(), kb);
	EQ(rdmatensor_pool_destroy(p.b.rt, &pool), 0);
	at = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	for (i = 0; i < 8; i++) {
		EQ(register_at(&p.b, at, 8 << 20, RDMATENSOR_POOL_PEERS_WRITE, 0, &pool), 0);
		EQ(pinned(), kb + 8192);
		EQ(rdmatensor_pool_destroy(p.b.rt, &pool), 0);
		EQ(pinned(), kb);
	}
	munmap(at, 8 << 20);
}

/* Of both sides, in place of the pools that they have; @a publishes, @b fetches */
static void both_register(unsigned char *from, unsigned char *to)
{
	pair_open(&p, PAGE, NULL);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(register_at(&p.a, from, BYTES, RDMATENSOR_POOL_PEERS_NONE, 0, &p.a.pool), 0);
	EQ(register_at(&p.b, to, BYTES, RDMATENSOR_POOL_PEERS_WRITE, 0, &p.b.pool), 0);
	CHECK(p.b.pool.base == to);
	EQ(p.b.pool.bytes, BYTES);
}

TEST(registered_memory_of_each_kind)
{
	int fd = memfd_create("rdmatensor", 0);
	unsigned char *from, *to;

	CHECK(fd >= 0);
	EQ(ftruncate(fd, BYTES), 0);
	from = map_private(BYTES);
	to = map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	both_register(from, to);
	move(&p, from, to);
	side_close(&p.a);
	side_close(&p.b);

	from = map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	to = aligned_alloc(PAGE, BYTES);
	CHECK(to);
	both_register(from, to);
	move(&p, from, to);
	free(to);
	munmap(from, BYTES);
	close(fd);
}

/* Kernel pages that another pool has; pages of this one are as good as any */
TEST(registered_mapping_of_a_pool)
{
	unsigned char *to = map_private(BYTES), *from;
	struct rdmatensor_pool kernel, own;

	pair_open(&p, PAGE, NULL);
	EQ(rdmatensor_pool_create(p.a.rt, BYTES, &kernel), 0);
	from = kernel.base;
	own = p.a.pool;
	EQ(register_at(&p.a, from, BYTES, RDMATENSOR_POOL_PEERS_NONE, 0, &p.a.pool), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(register_at(&p.b, to, BYTES, RDMATENSOR_POOL_PEERS_WRITE, 0, &p.b.pool), 0);
	move(&p, from, to);
	/* The pages are this pool's for as long as it is there */
	fill(from + 5, TENSOR, 9);
	EQ(rdmatensor_pool_destroy(p.a.rt, &kernel), 0);
	EQ(publish_at(&p.a, "t", 5, TENSOR), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", 0, TENSOR), 0);
	CHECK(filled(to, TENSOR, 9));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	p.a.pool = own;
}

/* What the process does with the addresses is nothing to the pool */
static void goes_away(unsigned char *from, void (*away)(unsigned char *from))
{
	unsigned char *to = map_private(BYTES);
	long before, first;

	/* Cases before it leave pools that are mapped */
	pages_fall_to(0);
	first = pinned();
	both_register(from, to);
	EQ(pages_pinned(), 2 * PAGES);
	before = pinned();
	fill(from + 77, TENSOR, 5);
	EQ(publish_at(&p.a, "t", 77, TENSOR), 0);
	away(from);
	EQ(fetch_at(&p.b, p.b.channel, "t", 5, TENSOR), 0);
	CHECK(filled(to + 5, TENSOR, 5));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);

	/* A destination that has gone is written to, and hurts nobody */
	away(to);
	EQ(publish_at(&p.a, "t", 77, TENSOR), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", 5, TENSOR), 0);
	EQ(pinned(), before);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	pinned_falls_to(before - (long)(BYTES >> 10));
	side_close(&p.a);
	side_close(&p.b);
	pinned_falls_to(first);
	pages_fall_to(0);
}

static void unmapped(unsigned char *from)
{
	EQ(munmap(from, BYTES), 0);
}

/* Other memory is at its addresses at once */
static void replaced(unsigned char *from)
{
	CHECK(mmap(from, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		   -1, 0) == from);
	memset(from, 0x11, BYTES);
}

static void dropped(unsigned char *from)
{
	EQ(madvise(from, BYTES, MADV_DONTNEED), 0);
	memset(from, 0x22, BYTES);
}

static void moved(unsigned char *from)
{
	CHECK(mremap(from, BYTES, 2 * BYTES, MREMAP_MAYMOVE) != MAP_FAILED);
}

TEST(registered_memory_that_is_unmapped)
{
	goes_away(map_private(BYTES), unmapped);
	goes_away(map_private(BYTES), replaced);
	goes_away(map_private(BYTES), dropped);
	goes_away(map_private(BYTES), moved);
}

static int truncated_fd;

static void truncated(unsigned char *from)
{
	(void)from;
	EQ(ftruncate(truncated_fd, 0), 0);
	EQ(ftruncate(truncated_fd, BYTES), 0);
}

TEST(registered_file_that_is_truncated)
{
	truncated_fd = memfd_create("rdmatensor", 0);
	CHECK(truncated_fd >= 0);
	EQ(ftruncate(truncated_fd, BYTES), 0);
	goes_away(map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, truncated_fd), truncated);
	close(truncated_fd);
}

/* The child has copies, whoever writes first; the pool's pages stay the parent's */
TEST(registered_memory_after_fork)
{
	unsigned char *from = map_private(BYTES), *to = map_private(BYTES);
	int status;
	pid_t pid;

	both_register(from, to);
	fill(from, TENSOR, 5);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		status = !filled(from, TENSOR, 5);
		memset(from, 0x33, BYTES);
		memset(to, 0x33, BYTES);
		_exit(status);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	CHECK(filled(from, TENSOR, 5));
	fill(from, TENSOR, 6);
	EQ(publish_at(&p.a, "t", 0, TENSOR), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", 0, TENSOR), 0);
	CHECK(filled(to, TENSOR, 6));
	EQ(to[TENSOR], 0);
}

/*
 * Pages that the process has only read, or never touched, are a file's, or all the same page of
 * zeroes: what it writes later has to be what peers read
 */
static void written_later(unsigned char *from, int seen)
{
	unsigned char *to = map_private(BYTES);
	unsigned int i, sum = 0;

	pair_open(&p, PAGE, NULL);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(register_at(&p.b, to, BYTES, RDMATENSOR_POOL_PEERS_WRITE, 0, &p.b.pool), 0);
	for (i = 0; seen && i < BYTES; i += PAGE)
		sum += *(volatile unsigned char *)(from + i);
	EQ(sum, 0);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(register_at(&p.a, from, BYTES, RDMATENSOR_POOL_PEERS_NONE,
		       RDMATENSOR_REGISTER_READ_ONLY, &p.a.pool), 0);
	fill(from + 9, TENSOR, 8);
	EQ(publish_at(&p.a, "t", 9, TENSOR), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", 0, TENSOR), 0);
	CHECK(filled(to, TENSOR, 8));
	side_close(&p.a);
	side_close(&p.b);
	munmap(to, BYTES);
	munmap(from, BYTES);
}

TEST(registered_read_only_and_written_later)
{
	int fd = memfd_create("rdmatensor", 0);

	CHECK(fd >= 0);
	EQ(ftruncate(fd, BYTES), 0);
	written_later(map_private(BYTES), 0);
	written_later(map_private(BYTES), 1);
	written_later(map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd), 1);
	written_later(map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd), 1);
	close(fd);
}

/* A file's pages, which the process may only read, are published and exported in place */
static void read_only(int flags, int fd)
{
	unsigned char *from = map(BYTES, PROT_READ, flags, fd);
	struct rdmatensor_table_open open = {};
	uint64_t id = 0, ids[2] = { 7, 3 }, at;
	struct rdmatensor_cqe cqe;
	uint32_t table;

	pair_open(&p, 1 << 20, NULL);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(register_at(&p.a, from, BYTES, RDMATENSOR_POOL_PEERS_READ,
		       RDMATENSOR_REGISTER_READ_ONLY, &p.a.pool), 0);
	EQ(publish_at(&p.a, "t", 13, TENSOR), 0);
	at = side_alloc(&p.b, TENSOR);
	EQ(fetch_at(&p.b, p.b.channel, "t", at, TENSOR), 0);
	CHECK(!memcmp(side_at(&p.b, at), from + 13, TENSOR));
	EQ(rdmatensor_table_export(p.a.rt, "rows", &p.a.pool, PAGE, 0, ROWS, ROW, 0,
				   RDMATENSOR_DT_UINT8, &table), 0);
	EQ(rdmatensor_table_open(p.b.rt, "rows", &p.b.channel, 1, &open), 0);
	EQ(rdmatensor_gather(p.b.rt, open.out_table, ids, 2, &p.b.pool, at, TENSOR,
			     rdmatensor_deadline_ms(10000), &cqe), 0);
	CHECK(!memcmp(side_at(&p.b, at), from + PAGE + 7 * ROW, ROW));
	CHECK(!memcmp(side_at(&p.b, at + ROW), from + PAGE + 3 * ROW, ROW));

	/* Nothing writes to it, over a channel or by this side's processor */
	EQ(fetch_at(&p.a, p.a.channel, "t", 0, TENSOR), -EACCES);
	EQ(publish_at(&p.a, "own", 13, TENSOR), 0);
	EQ(fetch_at(&p.a, RDMATENSOR_CHANNEL_SELF, "own", BYTES / 2, TENSOR), -EACCES);
	EQ(rdmatensor_table_open(p.a.rt, "rows", (uint32_t[]){ RDMATENSOR_CHANNEL_SELF }, 1,
				 &open), 0);
	EQ(rdmatensor_gather(p.a.rt, open.out_table, &id, 1, &p.a.pool, BYTES / 2, ROW,
			     rdmatensor_deadline_ms(10000), &cqe), -EACCES);
	side_close(&p.a);
	side_close(&p.b);
	munmap(from, BYTES);
}

TEST(registered_read_only)
{
	char path[] = "/tmp/rdmatensor-XXXXXX";
	unsigned char *bytes = map_private(BYTES);
	int fd = mkstemp(path), ro;

	CHECK(fd >= 0);
	fill(bytes, BYTES, 4);
	EQ(write(fd, bytes, BYTES), BYTES);
	ro = open(path, O_RDONLY);
	CHECK(ro >= 0);
	read_only(MAP_SHARED, ro);
	read_only(MAP_PRIVATE, ro);
	/* The file is as it was: nobody has written to it */
	EQ(pread(fd, bytes + PAGE, PAGE, PAGE), PAGE);
	CHECK(filled(bytes, BYTES, 4));
	unlink(path);
	close(fd);
	close(ro);
}

TEST(what_cannot_be_registered)
{
	unsigned char *at = map_private(8 * PAGE), *ro, *none;
	int fd = memfd_create("rdmatensor", 0);
	long before;

	CHECK(fd >= 0);
	pages_fall_to(0);
	pair_open(&p, PAGE, NULL);
	before = pinned();
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(pinned(), before);
	refused(at + 1, PAGE, 0, 0, -EINVAL, "multiples of the page size");
	refused(at, PAGE + 1, 0, 0, -EINVAL, "multiples of the page size");
	refused(at, 0, 0, 0, -EINVAL, "multiples of the page size");
	refused(at, PAGE, 0, 2, -EINVAL, "flags 0x2");
	refused(at, PAGE, 3, 0, -EINVAL, "peers 3");
	refused(at, PAGE, RDMATENSOR_POOL_PEERS_WRITE, RDMATENSOR_REGISTER_READ_ONLY, -EINVAL,
		"read-only");
	refused((void *)-(long)PAGE, 2 * PAGE, 0, 0, -EFAULT, "check address and length");
	refused(at, UINT64_MAX & ~(uint64_t)(PAGE - 1), 0, 0, -EFAULT, "check address");
	refused((void *)0, PAGE, 0, 0, -EFAULT, "nothing is mapped there");
	/* Of the kernel */
	refused((void *)-(2ul << 20), PAGE, 0, 0, -EFAULT, "page at 0x");

	/* A hole, which is found after others were pinned */
	EQ(munmap(at + 5 * PAGE, PAGE), 0);
	refused(at, 8 * PAGE, 0, 0, -EFAULT, "nothing is mapped there");
	none = map(PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	refused(none, PAGE, 0, 0, -EACCES, "may not use it");
	refused(none, PAGE, RDMATENSOR_POOL_PEERS_NONE, RDMATENSOR_REGISTER_READ_ONLY, -EACCES,
		"may not use it");
	ro = map(PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	refused(ro, PAGE, 0, 0, -EACCES, "RDMATENSOR_REGISTER_READ_ONLY");
	refused(ro, PAGE, RDMATENSOR_POOL_PEERS_NONE, 0, -EACCES, "map it writable");
	EQ(ftruncate(fd, PAGE), 0);
	ro = map(2 * PAGE, PROT_READ, MAP_SHARED, fd);
	refused(ro, 2 * PAGE, RDMATENSOR_POOL_PEERS_NONE, RDMATENSOR_REGISTER_READ_ONLY, -EFAULT,
		"beyond its file's end");
	EQ(pinned(), before);
	EQ(pages_pinned(), 0);
	EQ(register_at(&p.b, at, 5 * PAGE, 0, 0, &p.b.pool), 0);
	EQ(pinned(), before + 20);
	EQ(pages_pinned(), 5);
	close(fd);
}

/* What the processor does with them: copies, checksums, rows of its own and an order of rows */
TEST(registered_memory_at_odd_places)
{
	enum { FROM = 3, TO = BYTES / 2 + 17, ORDER = 600 * PAGE };
	unsigned char *at = map_private(BYTES), *other = map_private(BYTES);
	uint32_t *order = (uint32_t *)(at + ORDER), self = RDMATENSOR_CHANNEL_SELF, table;
	struct rdmatensor_table_open open = {};
	uint64_t ids[3] = { 5, 0, 9 }, i;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t dim = TENSOR;

	both_register(at, other);
	EQ(rdmatensor_configure(p.a.rt, RDMATENSOR_CONFIGURE_VALIDATE,
				RDMATENSOR_CONFIGURE_VALIDATE), 0);
	fill(at + FROM, TENSOR, 3);
	EQ(publish_at(&p.a, "t", FROM, TENSOR), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", TO, TENSOR), 0);
	CHECK(filled(other + TO, TENSOR, 3));
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);

	EQ(publish_at(&p.a, "own", FROM, TENSOR), 0);
	EQ(fetch_at(&p.a, self, "own", TO, TENSOR), 0);
	CHECK(filled(at + TO, TENSOR, 3));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);

	rdmatensor_prep_publish(&op, "copy", 0, p.a.pool.id, FROM, TENSOR, RDMATENSOR_DT_UINT8, 1,
				&dim, 1, 1);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	memset(at + FROM, 0, TENSOR);
	EQ(fetch_at(&p.b, p.b.channel, "copy", TO + 1, TENSOR), 0);
	CHECK(filled(other + TO + 1, TENSOR, 3));

	/* Peers may read nothing of @a's pool: rows of another one, by an order in this one */
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(register_at(&p.b, other, BYTES, RDMATENSOR_POOL_PEERS_READ, 0, &p.b.pool), 0);
	fill(other, BYTES, 4);
	EQ(rdmatensor_table_export(p.b.rt, "rows", &p.b.pool, 0, 0, ROWS, ROW, 0,
				   RDMATENSOR_DT_UINT8, &table), 0);
	for (i = 0; i < ROWS; i++)
		order[i] = ROWS - 1 - i;
	open.flags = RDMATENSOR_TABLE_ORDER32;
	open.order_pool_id = p.a.pool.id;
	open.order_nr = ROWS;
	open.order_offset = ORDER + 4;
	EQ(rdmatensor_table_open(p.a.rt, "rows", &p.a.channel, 1, &open), -EINVAL);
	open.order_offset = ORDER;
	EQ(rdmatensor_table_open(p.a.rt, "rows", &p.a.channel, 1, &open), 0);
	EQ(rdmatensor_gather(p.a.rt, open.out_table, ids, 3, &p.a.pool, TO, TENSOR,
			     rdmatensor_deadline_ms(10000), &cqe), 0);
	for (i = 0; i < 3; i++)
		CHECK(!memcmp(at + TO + i * ROW, other + (ROWS - 1 - ids[i]) * ROW, ROW));
}

/* It is the process's region from the start; and mapped already */
TEST(registered_memory_is_one_region)
{
	unsigned char *at = map_private(BYTES);
	uint64_t offset;

	pair_open(&p, PAGE, NULL);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(register_at(&p.b, at, BYTES, 0, 0, &p.b.pool), 0);
	EQ(rdmatensor_pool_alloc(p.b.rt, &p.b.pool, 64, &offset), -ENOSPC);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, 64), -ENOENT);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, 0), 0);
	EQ(rdmatensor_pool_alloc(p.b.rt, &p.b.pool, 64, &offset), 0);
	EQ(publish_at(&p.b, "t", BYTES / 2, 64), -EINVAL);
	EQ(publish_at(&p.b, "t", offset, 64), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), -EBUSY);
	is_not_mapped(&p.b);
}

static int within_limit(void)
{
	unsigned char *at = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	int i;

	rdmatensor_start_init(&start, "bounded");
	if (rdmatensor_open(NULL, &rt) || rdmatensor_start(rt, &start))
		return __LINE__;
	/* What is registered counts as what is made */
	for (i = 0; i < 3; i++) {
		if (rdmatensor_pool_register(rt, at, 2 << 20, 0, 0, &pool, cause, sizeof(cause)))
			return __LINE__;
		if (rdmatensor_pool_register(rt, at, 2 << 20, 0, 0, &pool, cause,
					     sizeof(cause)) != -ENOMEM ||
		    !strstr(cause, "RLIMIT_MEMLOCK") || !strstr(cause, "ulimit -l"))
			return __LINE__;
		if (rdmatensor_pool_create(rt, 2 << 20, &(struct rdmatensor_pool){ 0 }) != -ENOMEM)
			return __LINE__;
		/* Its addresses are not its pages */
		if (munmap(at, 2 << 20) ||
		    mmap(at, 2 << 20, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at ||
		    rdmatensor_pool_register(rt, at, 2 << 20, 0, 0,
					     &(struct rdmatensor_pool){ 0 }, cause,
					     sizeof(cause)) != -ENOMEM)
			return __LINE__;
		if (rdmatensor_pool_destroy(rt, &pool))
			return __LINE__;
	}
	rdmatensor_close(rt);
	return 0;
}

TEST(registered_memory_counts)
{
	AS_USER(3 << 20, within_limit);
}
