// SPDX-License-Identifier: GPL-2.0
/*
 * channels PEER N: opens N channels to a `rdmatensor perf --server`, says "ready", and fetches
 * 4 KiB over each in turn, 8 at a time, until it is killed.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rdmatensor/rdmatensor.h>

#define BYTES 4096
#define IN_FLIGHT 8
#define CHANNELS_MOST 4096

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "channels: %s: %s\n", what, why);
	return 1;
}

static int fetch_for_ever(struct rdmatensor *rt, const uint32_t *channels, unsigned int nr,
			  const struct rdmatensor_pool *pool)
{
	struct rdmatensor_cqe cqes[IN_FLIGHT];
	unsigned int at = 0, left, i, done;
	struct rdmatensor_op op;
	char text[256];

	for (;; at++) {
		for (i = 0; i < IN_FLIGHT; i++) {
			rdmatensor_prep_fetch(&op, channels[(at * IN_FLIGHT + i) % nr],
					      "rdmatensor.perf.4096", 0, pool->id, i * BYTES, BYTES,
					      0, i);
			if (rdmatensor_submit(rt, &op, 1, 0, 0, &done))
				return fail("submit", "refused");
		}
		for (left = IN_FLIGHT; left; left -= done) {
			if (rdmatensor_wait(rt, 1, 0))
				return fail("wait", "it failed");
			done = rdmatensor_reap(rt, cqes, left);
			for (i = 0; i < done; i++)
				if (cqes[i].result < 0)
					return fail("fetch", rdmatensor_cqe_text(&cqes[i], text,
										 sizeof(text)));
		}
	}
}

int main(int argc, char **argv)
{
	static uint32_t channels[CHANNELS_MOST];
	struct rdmatensor_start start = { .worker = "channels" };
	unsigned int nr = argc > 2 ? (unsigned int)atoi(argv[2]) : 0, i;
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	uint64_t offset;
	char cause[256];

	if (!nr || nr > CHANNELS_MOST)
		return fail("usage", "channels PEER N");
	if (rdmatensor_open_cause(NULL, &rt, cause, sizeof(cause)))
		return fail("open", cause);
	if (rdmatensor_start(rt, &start) || rdmatensor_pool_create(rt, IN_FLIGHT * BYTES, &pool) ||
	    rdmatensor_pool_alloc(rt, &pool, IN_FLIGHT * BYTES, &offset))
		return fail("start", "no context with a pool");
	for (i = 0; i < nr; i++)
		if (rdmatensor_connect(rt, argv[1], NULL, 60000, &channels[i], cause,
				       sizeof(cause)))
			return fail("connect", cause);
	puts("ready");
	fflush(stdout);
	return fetch_for_ever(rt, channels, nr, &pool);
}
