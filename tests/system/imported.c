// SPDX-License-Identifier: GPL-2.0
/*
 * Pools of other drivers' memory, by a dma-buf: of each exporter that a stock kernel has, for as
 * long as the pool is there, and what cannot be imported.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "exporter.h"
#include "whole.h"

static struct pair p;
static char cause[256];

/* Fails the test if it cannot */
static int export_by(const struct exporter *exporter, uint64_t bytes, int flags)
{
	int fd = exporter->export(bytes, flags);

	if (fd < 0)
		test_fail(__FILE__, __LINE__, "%s exports nothing: %m", exporter->name);
	return fd;
}

static int export_any(uint64_t bytes, int flags)
{
	return export_by(exporter_next(NULL), bytes, flags);
}

static int import_at(struct side *side, int fd, enum rdmatensor_pool_peers peers, uint32_t flags,
		     struct rdmatensor_pool *pool)
{
	uint32_t out_flags = 0xff;
	int ret;

	cause[0] = 0;
	ret = rdmatensor_pool_import(side->rt, fd, peers, flags, pool, &out_flags, cause,
				     sizeof(cause));
	/* A device in software takes nothing that the CPU cannot reach */
	CHECK(ret || !out_flags);
	return ret;
}

/* Of both sides, in place of the pools that they have; @a publishes, @b fetches */
static void both_import(int from, int to)
{
	pair_open(&p, PAGE, NULL);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(import_at(&p.a, from, RDMATENSOR_POOL_PEERS_NONE, 0, &p.a.pool), 0);
	EQ(import_at(&p.b, to, RDMATENSOR_POOL_PEERS_WRITE, 0, &p.b.pool), 0);
	CHECK(!p.b.pool.base);
	EQ(p.b.pool.bytes, BYTES);
}

/* dma-bufs of this machine; all are this program's */
static long nr_bufs(void)
{
	return number_in("/sys/kernel/debug/dma_buf/bufinfo", "Total ", " objects,");
}

static void bufs_fall_to(long nr)
{
	uint64_t began = rdmatensor_now_ns();

	while (nr_bufs() != nr && ms_since(began) < 10000)
		sched_yield();
	EQ(nr_bufs(), nr);
}

static unsigned char *map_buf(int fd)
{
	return map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
}

static void from_to(const struct exporter *a, const struct exporter *b)
{
	int from = export_by(a, BYTES, O_RDWR), to = export_by(b, BYTES, O_RDWR);
	unsigned char *source = map_buf(from), *dest = map_buf(to);

	printf("# from %s to %s\n", a->name, b->name);
	both_import(from, to);
	move(&p, source, dest);
	side_close(&p.a);
	side_close(&p.b);
	munmap(source, BYTES);
	munmap(dest, BYTES);
	close(from);
	close(to);
}

TEST(imported_memory_of_each_exporter)
{
	const struct exporter *first = exporter_next(NULL), *exporter, *next;
	long before = nr_bufs();

	/* Into the next one, and from the last one into the first */
	for (exporter = first; exporter; exporter = next) {
		next = exporter_next(exporter);
		from_to(exporter, next ? next : first);
	}
	bufs_fall_to(before);
}

/* The pool, and a tensor that is published in it, keep the memory, and nobody else has to */
TEST(imported_memory_that_is_closed)
{
	int from = export_any(BYTES, O_RDWR), to = export_any(BYTES, O_RDWR);
	unsigned char *source = map_buf(from), *dest = map_buf(to);
	long before = nr_bufs() - 2;

	both_import(from, to);
	fill(source + 77, TENSOR, 5);
	EQ(publish_at(&p.a, "t", 77, TENSOR), 0);
	close(from);
	munmap(source, BYTES);
	EQ(nr_bufs(), before + 2);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), -EBUSY);
	EQ(fetch_at(&p.b, p.b.channel, "t", 5, TENSOR), 0);
	CHECK(filled(dest + 5, TENSOR, 5));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	bufs_fall_to(before + 1);

	/* A context that is closed, too */
	close(to);
	side_close(&p.b);
	CHECK(filled(dest + 5, TENSOR, 5));
	EQ(nr_bufs(), before + 1);
	munmap(dest, BYTES);
	bufs_fall_to(before);
}

/* The same memory twice, in one context: the pools know nothing of each other */
TEST(imported_twice)
{
	int fd = export_any(BYTES, O_RDWR);
	unsigned char *at = map_buf(fd);
	struct rdmatensor_pool second;

	both_import(fd, fd);
	EQ(import_at(&p.a, fd, RDMATENSOR_POOL_PEERS_READ, 0, &second), 0);
	CHECK(second.id != p.a.pool.id);
	fill(at, TENSOR, 5);
	EQ(publish_at(&p.a, "t", 0, TENSOR), 0);
	EQ(rdmatensor_pool_destroy(p.a.rt, &second), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", BYTES / 2, TENSOR), 0);
	CHECK(filled(at + BYTES / 2, TENSOR, 5));
	munmap(at, BYTES);
	close(fd);
}

/* What the processor does with it: copies, checksums, rows of its own, an order */
TEST(imported_memory_and_the_processor)
{
	enum { TO = BYTES / 2 + 17, ORDER = 600 * PAGE, ROWS = 1000, ROW = 64 };
	int fd = export_any(BYTES, O_RDWR), i;
	uint32_t self = RDMATENSOR_CHANNEL_SELF, table, *order;
	struct rdmatensor_table_open open = {};
	unsigned char *at = map_buf(fd);
	uint64_t ids[3] = { 5, 0, 9 };
	struct rdmatensor_cqe cqe;

	both_import(fd, export_any(BYTES, O_RDWR));
	EQ(rdmatensor_configure(p.a.rt, RDMATENSOR_CONFIGURE_VALIDATE,
				RDMATENSOR_CONFIGURE_VALIDATE), 0);
	fill(at + 3, TENSOR, 3);
	EQ(publish_at(&p.a, "t", 3, TENSOR), 0);
	EQ(fetch_at(&p.b, p.b.channel, "t", 1, TENSOR), 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), 1);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);

	EQ(publish_at(&p.a, "own", 3, TENSOR), 0);
	EQ(fetch_at(&p.a, self, "own", TO, TENSOR), 0);
	CHECK(filled(at + TO, TENSOR, 3));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);

	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
	EQ(import_at(&p.a, fd, RDMATENSOR_POOL_PEERS_READ, 0, &p.a.pool), 0);
	EQ(rdmatensor_table_export(p.a.rt, "rows", &p.a.pool, 0, 0, ROWS, ROW, 0,
				   RDMATENSOR_DT_UINT8, &table), 0);
	order = (uint32_t *)(at + ORDER);
	for (i = 0; i < ROWS; i++)
		order[i] = (uint32_t)(ROWS - 1 - i);
	open.flags = RDMATENSOR_TABLE_ORDER32;
	open.order_pool_id = p.a.pool.id;
	open.order_nr = ROWS;
	open.order_offset = ORDER;
	EQ(rdmatensor_table_open(p.a.rt, "rows", &self, 1, &open), 0);
	EQ(rdmatensor_gather(p.a.rt, open.out_table, ids, 3, &p.a.pool, TO, TENSOR,
			     rdmatensor_deadline_ms(10000), &cqe), 0);
	for (i = 0; i < 3; i++)
		CHECK(!memcmp(at + TO + i * ROW, at + (ROWS - 1 - ids[i]) * ROW, ROW));
	munmap(at, BYTES);
	close(fd);
}

/* It is the process's region from the start; and it maps the dma-buf, not the pool */
TEST(imported_memory_is_one_region)
{
	int fd = export_any(BYTES, O_RDWR);
	uint64_t offset;

	pair_open(&p, PAGE, NULL);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(import_at(&p.b, fd, RDMATENSOR_POOL_PEERS_WRITE, 0, &p.b.pool), 0);
	EQ(rdmatensor_pool_alloc(p.b.rt, &p.b.pool, 64, &offset), -ENOSPC);
	is_not_mapped(&p.b);
	close(fd);
}

/* Refused, with a line that names the call and has @text; no dma-buf is kept */
static void refused(int fd, enum rdmatensor_pool_peers peers, uint32_t flags, int error,
		    const char *text)
{
	struct rdmatensor_pool pool = { 0 };
	long before = nr_bufs();

	EQ(import_at(&p.b, fd, peers, flags, &pool), error);
	if (!strstr(cause, text) || strncmp(cause, "POOL_IMPORT: ", 13))
		test_fail(__FILE__, __LINE__, "the cause is \"%s\", without \"%s\"", cause, text);
	EQ(pool.id, 0);
	EQ(nr_bufs(), before);
}

TEST(what_cannot_be_imported)
{
	int fd = export_any(BYTES, O_RDWR), null = open("/dev/null", O_RDWR), ro;
	struct rdmatensor_query query;
	struct rdmatensor_cqe cqe;

	pair_open(&p, 1 << 20, NULL);
	refused(-1, RDMATENSOR_POOL_PEERS_WRITE, 0, -EBADF, "no file is open there");
	refused(1000, RDMATENSOR_POOL_PEERS_WRITE, 0, -EBADF, "fd 1000");
	refused(null, RDMATENSOR_POOL_PEERS_WRITE, 0, -EINVAL, "is no dma-buf");
	refused(rdmatensor_fd(p.b.rt), RDMATENSOR_POOL_PEERS_WRITE, 0, -EINVAL, "is no dma-buf");
	refused(fd, RDMATENSOR_POOL_PEERS_WRITE, 2, -EINVAL, "flags 0x2");
	refused(fd, 3, 0, -EINVAL, "peers 3");
	refused(fd, RDMATENSOR_POOL_PEERS_WRITE, RDMATENSOR_IMPORT_READ_ONLY, -EINVAL,
		"read-only");
	EQ(rdmatensor_query(p.b.rt, &query), 0);
	EQ(query.pools, 1);
	close(fd);

	/* Whoever cannot read it could have it fetched */
	if (!strcmp(exporter_next(NULL)->name, "system")) {
		fd = export_any(BYTES, O_WRONLY);
		refused(fd, RDMATENSOR_POOL_PEERS_WRITE, 0, -EACCES, "open for writing alone");
		close(fd);
	}
	ro = export_any(BYTES, O_RDONLY);
	refused(ro, RDMATENSOR_POOL_PEERS_WRITE, 0, -EACCES, "RDMATENSOR_IMPORT_READ_ONLY");
	refused(ro, RDMATENSOR_POOL_PEERS_NONE, 0, -EACCES, "O_RDWR");
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
	EQ(import_at(&p.b, ro, RDMATENSOR_POOL_PEERS_READ, RDMATENSOR_IMPORT_READ_ONLY,
		     &p.b.pool), 0);
	EQ(publish_at(&p.b, "t", 0, PAGE), 0);
	EQ(rdmatensor_fetch(p.a.rt, p.a.channel, "t", 0, &p.a.pool,
			    side_alloc(&p.a, PAGE), PAGE, rdmatensor_deadline_ms(10000), &cqe), 0);
	EQ(publish_at(&p.b, "t", 0, PAGE), 0);
	EQ(fetch_at(&p.b, p.b.channel, "none", 0, PAGE), -EACCES);
	EQ(fetch_at(&p.b, RDMATENSOR_CHANNEL_SELF, "t", PAGE, PAGE), -EACCES);
	close(ro);
	close(null);
}

/* Before Linux 6.13 udmabuf's mapping is of the wrong pages then: other bytes would be sent */
TEST_IF(imported_huge_pages_of_udmabuf, !is_6_1() && !test_on_uml())
{
	FILE *file = fopen("/proc/sys/vm/nr_hugepages", "w");
	int fd;

	CHECK(file);
	CHECK(fprintf(file, "1") == 1);
	fclose(file);
	fd = export_memfd(2 << 20, MFD_HUGETLB);
	CHECK(fd >= 0);
	pair_open(&p, PAGE, NULL);
	refused(fd, RDMATENSOR_POOL_PEERS_WRITE, 0, -EOPNOTSUPP, "POOL_REGISTER");
	close(fd);
	file = fopen("/proc/sys/vm/nr_hugepages", "w");
	CHECK(file);
	CHECK(fprintf(file, "0") == 1);
	fclose(file);
}

static int limited_fd;

static int within_limit(void)
{
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	int i;

	rdmatensor_start_init(&start, "bounded");
	if (rdmatensor_open(NULL, &rt) || rdmatensor_start(rt, &start))
		return __LINE__;
	/* What is imported counts as what is made, each time */
	for (i = 0; i < 8; i++) {
		if (rdmatensor_pool_import(rt, limited_fd, 0, 0, &pool, NULL, cause, sizeof(cause)))
			return __LINE__;
		if (rdmatensor_pool_import(rt, limited_fd, 0, 0, &pool, NULL, cause,
					   sizeof(cause)) != -ENOMEM ||
		    !strstr(cause, "RLIMIT_MEMLOCK") || !strstr(cause, "ulimit -l"))
			return __LINE__;
		if (rdmatensor_pool_destroy(rt, &pool))
			return __LINE__;
	}
	rdmatensor_close(rt);
	return 0;
}

TEST(imported_memory_counts)
{
	limited_fd = export_any(2 << 20, O_RDWR);
	AS_USER(3 << 20, within_limit);
	close(limited_fd);
}
