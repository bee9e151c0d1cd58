// SPDX-License-Identifier: GPL-2.0
/*
 * rough [--every N] [--moments N] [--seed N] [--quick] [--scene PATTERN] BIN FAIL.SO ADDRESS
 *
 * Each call of the programs in BIN fails in turn, or each N-th allocation and each N/8-th of
 * the others (--every, 0: none); and they are killed at that many random moments (--moments).
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rough.h"

static int number;

void result(bool ok, const char *fmt, ...)
{
	va_list args;

	printf("%s %d - ", ok ? "ok" : "not ok", ++number);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void die(const char *what)
{
	printf("# %s\n", strerror(errno));
	result(false, "rough: %s", what);
	exit(1);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "every", required_argument, NULL, 'e' },
		{ "moments", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "quick", no_argument, NULL, 'q' },
		{ "scene", required_argument, NULL, 'c' },
		{ 0 }
	};
	unsigned int every = 0, moments = 0, seed = 1;
	const char *pattern = "*";
	bool quick = false;
	int opt, failed = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'e':
			every = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'm':
			moments = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 's':
			seed = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			pattern = optarg;
			break;
		case 'q':
			quick = true;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# seed %u\n", seed);
	scenes_begin(argv[optind], argv[optind + 1], argv[optind + 2]);
	if (every)
		failed += calls(pattern, quick, every, seed);
	if (moments)
		failed += kills(pattern, quick, moments, seed);
	scenes_end();
	return failed ? 1 : 0;
}
