// SPDX-License-Identifier: GPL-2.0
/*
 * Pools that are one region: see whole.h.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "whole.h"

unsigned char *map(uint64_t bytes, int prot, int flags, int fd)
{
	unsigned char *at = mmap(NULL, bytes, prot, flags, fd, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

unsigned char *map_private(uint64_t bytes)
{
	return map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

int publish_at(struct side *side, const char *name, uint64_t at, uint64_t bytes)
{
	struct rdmatensor_op op;
	uint64_t dim = bytes;

	rdmatensor_prep_publish(&op, name, 0, side->pool.id, at, bytes, RDMATENSOR_DT_UINT8, 1,
				&dim, 1, 1);
	return side_do(side, &op);
}

int fetch_at(struct side *side, uint32_t channel, const char *name, uint64_t at,
		    uint64_t bytes)
{
	struct rdmatensor_cqe cqe;

	return rdmatensor_fetch(side->rt, channel, name, 0, &side->pool, at, bytes,
				rdmatensor_deadline_ms(10000), &cqe);
}

void move(struct pair *p, unsigned char *from, unsigned char *to)
{
	static const struct {
		uint64_t from, to, bytes;
	} moves[] = {
		{ 0, 0, TENSOR }, { 1, 4097, TENSOR }, { 63, 8, 1 },
		{ PAGE - 1, 2 * PAGE - 1, 2 }, { (512 * PAGE) - 7, 77, TENSOR },
		{ 99, 512 * PAGE - 5000, TENSOR }, { 0, 0, BYTES }, { BYTES - 3, BYTES - 3, 3 },
	};
	char name[20];
	uint64_t i;

	for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		memset(to, 0xee, BYTES);
		fill(from + moves[i].from, moves[i].bytes, 3 + i);
		snprintf(name, sizeof(name), "t%d", (int)i);
		EQ(publish_at(&p->a, name, moves[i].from, moves[i].bytes), 0);
		EQ(fetch_at(&p->b, p->b.channel, name, moves[i].to, moves[i].bytes), 0);
		CHECK(filled(to + moves[i].to, moves[i].bytes, 3 + i));
		CHECK(!moves[i].to || to[moves[i].to - 1] == 0xee);
		CHECK(moves[i].to + moves[i].bytes == BYTES ||
		      to[moves[i].to + moves[i].bytes] == 0xee);
		EQ(side_next(&p->a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	}
	EQ(side_stat(&p->a, RDMATENSOR_STAT_COPIED_BYTES), 0);
	EQ(side_stat(&p->b, RDMATENSOR_STAT_COPIED_BYTES), 0);
}

void is_not_mapped(struct side *side)
{
	struct rdmatensor_query query;

	CHECK(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, rdmatensor_fd(side->rt),
		   (off_t)side->pool.id << 12) == MAP_FAILED);
	EQ(errno, ENODEV);
	EQ(rdmatensor_query(side->rt, &query), 0);
	EQ(query.pools, 1);
}

long pages_pinned(void)
{
	int refresh = open("/proc/sys/vm/stat_refresh", O_WRONLY);
	long nr, acquired = -1, released = -1;
	char name[64];
	FILE *file;

	if (refresh >= 0) {
		EQ(write(refresh, "1", 1), 1);
		close(refresh);
	}
	file = fopen("/proc/vmstat", "r");
	CHECK(file);
	while (fscanf(file, "%63s %ld", name, &nr) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			acquired = nr;
		if (!strcmp(name, "nr_foll_pin_released"))
			released = nr;
	}
	fclose(file);
	CHECK(acquired >= 0 && released >= 0);
	return acquired - released;
}

void pages_fall_to(long nr)
{
	uint64_t began = rdmatensor_now_ns();

	while (pages_pinned() != nr && ms_since(began) < 10000)
		sched_yield();
	EQ(pages_pinned(), nr);
}

void put_together(void)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY);

	if (fd < 0)
		return;
	EQ(write(fd, "1", 1), 1);
	close(fd);
}
