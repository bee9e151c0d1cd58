// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how many ticks of the counter that perftest times with a microsecond has.
 *
 * perftest gauges that itself, from waits of some hundred microseconds each, and gives no
 * figure where these scatter, as they do in a guest that has to wait for its processor. It
 * reports ticks instead (-C), and a long wait turns them into time.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define WAIT_NS 200000000

static uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t now;

	asm volatile("isb; mrs %0, cntvct_el0" : "=r" (now));
	return now;
#else
#error the counter that perftest reads on this processor
#endif
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(void)
{
	uint64_t begun_ns = now_ns(), begun = ticks(), ns;

	while ((ns = now_ns() - begun_ns) < WAIT_NS)
		;
	printf("%.3f\n", (double)(ticks() - begun) * 1e3 / (double)ns);
	return 0;
}
