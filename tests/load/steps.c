// SPDX-License-Identifier: GPL-2.0
/*
 * Two ways to hand a tensor over, step after step: without copies, and copied to a buffer
 * that is kept, to a place that is kept (RDMATENSOR_OP_COPY, RDMATENSOR_OP_KEEP). Measured
 * is the time from PUBLISH until the publisher may write to its memory again, and until the
 * receiver has the tensor besides, which is a step. The receiver waits for it already.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "figures.h"
#include "steps.h"
#include "worker.h"

#define WARM 3

/**
 * struct way - one of the two
 * @name: of its tensor
 * @publish: flags of PUBLISH
 * @fetch: flags of FETCH
 * @free_ns: times until the memory is free
 * @step_ns: times until all is done
 */
struct way {
	const char *name;
	uint16_t publish;
	uint16_t fetch;
	uint64_t *free_ns;
	uint64_t *step_ns;
};

static struct way ways[] = {
	{ .name = "in place" },
	{ .name = "copied", .publish = RDMATENSOR_OP_COPY, .fetch = RDMATENSOR_OP_KEEP },
};

static struct worker from, to;
static uint64_t from_at, to_at, bytes;

/* The first and the last byte of it say of which step it is */
static void stamp(const struct worker *worker, uint64_t at, unsigned int step)
{
	unsigned char *tensor = worker_at(worker, at);

	tensor[0] = tensor[bytes - 1] = (unsigned char)step;
}

static void expect(const struct way *way, unsigned int step)
{
	const unsigned char *tensor = worker_at(&to, to_at);

	if (tensor[0] != (unsigned char)step || tensor[bytes - 1] != (unsigned char)step)
		die("step %u, %s: another tensor", step, way->name);
}

static uint64_t next(struct worker *worker, int type, uint64_t number, const char *name)
{
	struct rdmatensor_cqe cqe;

	worker_next(worker, type, number, 0, &cqe);
	if (cqe.result)
		die("%s: ended with %d", name, cqe.result);
	return rdmatensor_now_ns();
}

static void one_step(struct way *way, unsigned int step, unsigned int sample)
{
	uint64_t number = worker_number(), began, free_at, done;
	struct rdmatensor_op op;
	uint64_t dim = bytes;

	stamp(&from, from_at, step);
	stamp(&to, to_at, ~step);
	rdmatensor_prep_fetch(&op, to.channel, way->name, step, to.pool.id, to_at, bytes, 0,
			      number);
	op.flags |= way->fetch;
	worker_submit(&to, &op);

	rdmatensor_prep_publish(&op, way->name, step, from.pool.id, from_at, bytes,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, number);
	op.flags |= way->publish;
	began = rdmatensor_now_ns();
	worker_submit(&from, &op);
	free_at = next(&from, RDMATENSOR_CQE_PUBLISH, number, way->name);
	if (way->publish & RDMATENSOR_OP_COPY)
		stamp(&from, from_at, ~step);
	done = next(&to, RDMATENSOR_CQE_FETCH, number, way->name);
	expect(way, step);
	way->free_ns[sample] = free_at - began;
	way->step_ns[sample] = done - began;
}

static double typical_us(uint64_t *ns, unsigned int nr)
{
	qsort(ns, nr, sizeof(*ns), compare_u64);
	return percentile(ns, nr, 500) / 1e3;
}

int steps_run(const char *ip, const char *bytes_text, const char *nr_text)
{
	unsigned int nr = (unsigned int)strtoul(nr_text, NULL, 0), i;
	char addr[80];
	size_t w;

	bytes = strtoull(bytes_text, NULL, 0);
	if (!nr || !bytes)
		die("steps: give a length and a number");
	snprintf(addr, sizeof(addr), "%s:0", ip);
	worker_open(&from, "steps-from", bytes, addr);
	worker_open(&to, "steps-to", bytes, NULL);
	snprintf(addr, sizeof(addr), "%s:%u", ip, from.port);
	worker_connect(&to, addr);
	from_at = worker_alloc(&from, bytes);
	to_at = worker_alloc(&to, bytes);
	memset(worker_at(&from, from_at), 1, bytes);
	for (w = 0; w < 2; w++) {
		ways[w].free_ns = calloc(nr, sizeof(uint64_t));
		ways[w].step_ns = calloc(nr, sizeof(uint64_t));
		if (!ways[w].free_ns || !ways[w].step_ns)
			die("out of memory");
	}
	for (i = 0; i < WARM + nr; i++)
		for (w = 0; w < 2; w++)
			one_step(&ways[w], i, i < WARM ? 0 : i - WARM);

	printf("{\"bytes\": %" PRIu64 ", \"steps\": %u", bytes, nr);
	for (w = 0; w < 2; w++) {
		printf(", \"%s\": {\"free_us\": %.1f, \"step_us\": %.1f}",
		       w ? "copied" : "in_place", typical_us(ways[w].free_ns, nr),
		       typical_us(ways[w].step_ns, nr));
		free(ways[w].free_ns);
		free(ways[w].step_ns);
	}
	printf("}\n");
	worker_close(&to);
	worker_close(&from);
	return 0;
}
