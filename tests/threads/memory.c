// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of pools and of the ring, made, advised and taken away while calls use what
 * they map. They are touched by system calls: what is not there is an error then, and no
 * signal.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "exporter.h"
#include "threads.h"

static void touch(struct worker *w, char *at, size_t bytes)
{
	size_t n = 1 + below(w, 256), from = below(w, bytes);
	int pipes[2];

	if (n > bytes - from)
		n = bytes - from;
	/* Into it from a file, out of it to a pipe */
	if (pread(shared_fd, at + from, n, 0) < 0 || pipe(pipes))
		return;
	if (write(pipes[1], at + below(w, bytes), 1) < 0)
		errno = 0;
	close(pipes[0]);
	close(pipes[1]);
}

/* Of the pool, or of the ring; kept, or gone at once */
int do_map(struct worker *w, struct life *life)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE };
	unsigned int slot = below(w, NR_POOLS), place = below(w, NR_MAPS);
	uint64_t offset = one_in(w, 6) ? RDMATENSOR_MMAP_RING : life->pools[slot].mmap_offset;
	bool ring = offset == RDMATENSOR_MMAP_RING;
	size_t bytes = ring ? life->ring_bytes : life->pools[slot].bytes;
	int prot = one_in(w, 2) ? PROT_READ | PROT_WRITE : prots[below(w, 4)];
	char *at;

	if (one_in(w, 8))
		bytes = 1 + below(w, 1 << 20);
	bytes += !bytes;
	if (one_in(w, 16))
		offset = (rnd(w) | PAGE) & ~0xfffull;
	enter(w, "mmap");
	at = mmap(NULL, bytes, prot, one_in(w, 8) ? MAP_PRIVATE : MAP_SHARED, life->fd, offset);
	leave(w);
	if (at == MAP_FAILED)
		return -errno;
	/* What is written into the ring's page is believed by nobody, and counted on by us */
	if (!ring)
		touch(w, at, bytes);
	enter(w, "munmap");
	if (!ring && one_in(w, 2)) {
		pthread_mutex_lock(&life->maps_lock);
		if (life->maps[place].at)
			munmap(life->maps[place].at, life->maps[place].bytes);
		life->maps[place].at = NULL;
		/* Not by a closed one: it has dropped its maps */
		if (!__atomic_load_n(&life->closed, __ATOMIC_ACQUIRE)) {
			life->maps[place].at = at;
			life->maps[place].bytes = bytes;
			at = NULL;
		}
		pthread_mutex_unlock(&life->maps_lock);
	}
	if (at)
		munmap(at, bytes);
	leave(w);
	return 0;
}

int do_madvise(struct worker *w, struct life *life)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED, MADV_FREE, MADV_REMOVE, MADV_COLD,
		MADV_PAGEOUT, MADV_DONTFORK, MADV_DOFORK, MADV_HUGEPAGE, MADV_SEQUENTIAL,
		MADV_POPULATE_READ, MADV_POPULATE_WRITE,
	};
	unsigned int place = below(w, NR_MAPS);
	int ret = -ENOENT;

	enter(w, "madvise");
	pthread_mutex_lock(&life->maps_lock);
	if (life->maps[place].at) {
		char *at = life->maps[place].at;
		size_t bytes = life->maps[place].bytes;

		ret = madvise(at, bytes, advices[below(w, sizeof(advices) / sizeof(*advices))]) ?
			-errno : 0;
		touch(w, at, bytes);
	}
	pthread_mutex_unlock(&life->maps_lock);
	leave(w);
	return ret;
}

int do_munmap(struct worker *w, struct life *life)
{
	unsigned int place = below(w, NR_MAPS);
	int ret = -ENOENT;

	enter(w, "munmap");
	pthread_mutex_lock(&life->maps_lock);
	if (life->maps[place].at) {
		ret = munmap(life->maps[place].at, life->maps[place].bytes) ? -errno : 0;
		life->maps[place].at = NULL;
	}
	pthread_mutex_unlock(&life->maps_lock);
	leave(w);
	return ret;
}

char *arena;
int bufs[NR_BUFS];
static int arena_file;

/* Of each exporter in turn; the last one is none */
static int buf_make(unsigned int i)
{
	static const struct exporter *exporter;

	if (i == NR_BUFS - 1)
		return memfd_create("none", MFD_CLOEXEC);
	exporter = exporter_next(exporter);
	if (!exporter)
		exporter = exporter_next(NULL);
	return exporter->export(PAGE << (4 * i), i == 1 ? O_RDONLY : O_RDWR);
}

static bool bufs_make(void)
{
	unsigned int i;

	for (i = 0; i < NR_BUFS; i++) {
		bufs[i] = buf_make(i);
		if (bufs[i] < 0)
			return false;
	}
	return true;
}

bool arena_make(void)
{
	arena = mmap(NULL, 2 * ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena_file = memfd_create("rdmatensor", MFD_CLOEXEC);
	if (arena == MAP_FAILED || arena_file < 0 || ftruncate(arena_file, ARENA_BYTES) ||
	    !bufs_make())
		return false;
	return mmap(arena, ARENA_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == arena;
}

void arena_bound(__u64 *addr, __u64 *bytes)
{
	__u64 from = (uintptr_t)arena, end = from + 2 * ARENA_BYTES;

	/* Above all that a process has, and the page at 0, are nobody's */
	if (*addr < 1ull << 56 && *addr >= PAGE && (*addr < from || *addr >= end))
		*addr = from + *addr % (ARENA_BYTES / PAGE) * PAGE;
	if (*addr >= from && *addr < end && *bytes > end - *addr && *bytes < 1ull << 40)
		*bytes = end - *addr;
}

/* A part of it becomes other memory, of the same kind or another, or is advised */
int do_arena(struct worker *w)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_COLD, MADV_PAGEOUT,
		MADV_DONTFORK, MADV_DOFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_MERGEABLE,
		MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_WIPEONFORK, MADV_KEEPONFORK,
	};
	static const int prots[] = {
		PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE,
	};
	size_t from = below(w, ARENA_BYTES / PAGE) * PAGE;
	size_t bytes = PAGE * (1 + below(w, one_in(w, 4) ? 256 : 16));
	int prot = prots[below(w, 4)], ret = 0;

	if (bytes > ARENA_BYTES - from)
		bytes = ARENA_BYTES - from;
	enter(w, "arena");
	switch (below(w, 7)) {
	case 6:
		if (mmap(arena + from, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, bufs[0],
			 0) == MAP_FAILED)
			ret = -errno;
		break;
	case 0:
		if (mmap(arena + from, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			ret = -errno;
		break;
	case 1:
		if (mmap(arena + from, bytes, prot,
			 (one_in(w, 2) ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED, arena_file,
			 from) == MAP_FAILED)
			ret = -errno;
		break;
	case 2:
		ret = mprotect(arena + from, bytes, prot) ? -errno : 0;
		break;
	case 3:
		if (one_in(w, 8) && !ftruncate(arena_file, below(w, ARENA_BYTES)))
			ret = ftruncate(arena_file, ARENA_BYTES) ? -errno : 0;
		break;
	default:
		ret = madvise(arena + from, bytes,
			      advices[below(w, sizeof(advices) / sizeof(*advices))]) ? -errno : 0;
		touch(w, arena + from, bytes);
	}
	leave(w);
	return ret;
}

void maps_drop(struct life *life)
{
	int i;

	pthread_mutex_lock(&life->maps_lock);
	for (i = 0; i < NR_MAPS; i++) {
		if (life->maps[i].at)
			munmap(life->maps[i].at, life->maps[i].bytes);
		life->maps[i].at = NULL;
	}
	pthread_mutex_unlock(&life->maps_lock);
}
