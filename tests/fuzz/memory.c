// SPDX-License-Identifier: GPL-2.0
/*
 * What the victims' pools are made of, HOSTILE_MEMORY: memory of the process (anon, memfd) or of
 * another driver (dmabuf) that is registered in place, instead of kernel pages.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "exporter.h"
#include "harness.h"

#define PAGE 4096

static void *map(uint64_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static void in_place(struct side *side, void *at, uint64_t bytes)
{
	char cause[256];
	int ret = rdmatensor_pool_register(side->rt, at, bytes, RDMATENSOR_POOL_PEERS_WRITE, 0,
					   &side->pool, cause, sizeof(cause));

	if (ret)
		test_fail(__FILE__, __LINE__, "POOL_REGISTER: %d: %s", ret, cause);
}

static void anon(struct side *side, uint64_t bytes)
{
	in_place(side, map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), bytes);
}

static void memfd(struct side *side, uint64_t bytes)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC);

	CHECK(fd >= 0);
	EQ(ftruncate(fd, (off_t)bytes), 0);
	in_place(side, map(bytes, MAP_SHARED, fd), bytes);
	close(fd);
}

static void dmabuf(struct side *side, uint64_t bytes)
{
	int fd = export_memfd(bytes, 0), ret;
	char cause[256];

	CHECK(fd >= 0);
	ret = rdmatensor_pool_import(side->rt, fd, RDMATENSOR_POOL_PEERS_WRITE, 0, &side->pool,
				     NULL, cause, sizeof(cause));
	if (ret)
		test_fail(__FILE__, __LINE__, "POOL_IMPORT: %d: %s", ret, cause);
	/* The CPU sees it by a mapping of its own */
	side->pool.base = map(bytes, MAP_SHARED, fd);
	close(fd);
}

static const struct {
	const char *name;
	void (*make)(struct side *side, uint64_t bytes);
} kinds[] = {
	{ "anon", anon }, { "memfd", memfd }, { "dmabuf", dmabuf },
};

static void (*chosen)(struct side *side, uint64_t bytes);

static void make(struct side *side, uint64_t bytes)
{
	bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	chosen(side, bytes);
	side->whole = 1;
}

__attribute__((constructor)) static void choose(void)
{
	const char *name = getenv("HOSTILE_MEMORY");
	size_t i;

	if (!name)
		return;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(name, kinds[i].name))
			chosen = kinds[i].make;
	if (!chosen) {
		fprintf(stderr, "HOSTILE_MEMORY: anon, memfd or dmabuf\n");
		exit(2);
	}
	side_pools_by(make);
}
