// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <unistd.h>
#include "crash.h"
#include "harness.h"

uint32_t below(uint32_t most)
{
	static unsigned int state;
	static int begun;

	if (!begun) {
		begun = 1;
		state = (unsigned int)amount("CRASH_SEED", 1);
		printf("# CRASH_SEED=%u\n", state);
	}
	return (uint32_t)rand_r(&state) % most;
}

void any_moment(uint32_t most_us)
{
	usleep(below(most_us));
}

long amount(const char *variable, long or_else)
{
	const char *text = getenv(variable);

	return text && *text ? atol(text) : or_else;
}
