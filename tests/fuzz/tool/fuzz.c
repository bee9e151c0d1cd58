// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libFuzzer's entry points, what was reached, and the seeds.
 */
#include <stdarg.h>
#include <string.h>

#include "fuzz.h"

#define KINDS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
	char name[64];
	unsigned long long nr;
} kinds[KINDS_MAX];
static unsigned int nr_kinds;
static unsigned long long tried;
static const char *seed_dir;
static unsigned int nr_seeds;

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
	kinds[kind].nr++;
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
		printf("# %-40s %llu reached\n", kinds[i].name, kinds[i].nr);
	printf("inputs %llu\n", tried);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fuzz_init();
	if (*argc == 3 && !strcmp((*argv)[1], "--seeds")) {
		seed_dir = (*argv)[2];
		fuzz_seeds();
		exit(0);
	}
	return atexit(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Allocated as long as it is, so that a byte more is seen */
	uint8_t *copy = malloc(size + !size);

	HOLDS(copy);
	memcpy(copy, data, size);
	tried++;
	fuzz_one(copy, size);
	free(copy);
	return 0;
}
