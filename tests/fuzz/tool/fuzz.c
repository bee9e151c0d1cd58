// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libFuzzer's entry points, what was reached, and the seeds.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define KINDS_MAX 256
#define SEEDS_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
	char name[64];
	/* By those to begin from, and by others */
	unsigned long long by_seeds;
	unsigned long long by_others;
} kinds[KINDS_MAX];
static unsigned int nr_kinds;
static unsigned long long tried;
static const char *seed_dir;
static unsigned int nr_seeds;
/* Of all files of the corpus before it grows, in order */
static uint64_t hashes[SEEDS_MAX];
static size_t nr_hashes;
/* The input is one of these */
static bool is_seed;

unsigned int to_reach(const char *fmt, ...)
{
	va_list args;

	HOLDS(nr_kinds < KINDS_MAX);
	va_start(args, fmt);
	vsnprintf(kinds[nr_kinds].name, sizeof(kinds[0].name), fmt, args);
	va_end(args);
	return nr_kinds++;
}

void reached(unsigned int kind)
{
	HOLDS(kind < nr_kinds);
	if (is_seed)
		kinds[kind].by_seeds++;
	else
		kinds[kind].by_others++;
}

void seed(const void *data, size_t size)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%04u", seed_dir, nr_seeds++);
	file = fopen(path, "w");
	if (!file || (size && fwrite(data, size, 1, file) != 1) || fclose(file)) {
		perror(path);
		exit(1);
	}
}

static void report(void)
{
	unsigned int i;

	for (i = 0; i < nr_kinds; i++)
		printf("# %-40s reached by %llu seeds and %llu others\n", kinds[i].name,
		       kinds[i].by_seeds, kinds[i].by_others);
	printf("inputs %llu\n", tried);
}

static uint64_t hash_of(const uint8_t *data, size_t size)
{
	uint64_t hash = 14695981039346656037u;

	while (size--)
		hash = (hash ^ *data++) * 1099511628211u;
	return hash;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void read_seeds(const char *path)
{
	uint8_t data[8192];
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t len = read(fd, data, sizeof(data));

		close(fd);
		if (len < 0)
			continue;
		HOLDS(nr_hashes < SEEDS_MAX);
		hashes[nr_hashes++] = hash_of(data, (size_t)len);
	}
	if (dir)
		closedir(dir);
	qsort(hashes, nr_hashes, sizeof(*hashes), compare);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fuzz_init();
	if (*argc == 3 && !strcmp((*argv)[1], "--seeds")) {
		seed_dir = (*argv)[2];
		fuzz_seeds();
		exit(0);
	}
	read_seeds((*argv)[*argc - 1]);
	return atexit(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t hash = hash_of(data, size);
	/* Allocated as long as it is, so that a byte more is seen */
	uint8_t *copy = malloc(size + !size);

	HOLDS(copy);
	memcpy(copy, data, size);
	tried++;
	is_seed = bsearch(&hash, hashes, nr_hashes, sizeof(*hashes), compare);
	fuzz_one(copy, size);
	free(copy);
	return 0;
}
