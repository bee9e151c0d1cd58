// SPDX-License-Identifier: GPL-2.0
/*
 * Over queue pairs that sleep over what is posted to them, as soft-RoCE's do now and then, and with
 * tests/device/sleeper.c each time: READs of a gather, and contents that the peer posts at
 * once. What is in flight comes in time all the same, and no lane has failed by it.
 */
#include <inttypes.h>
#include <string.h>
#include "cases.h"
#include "scene.h"
#include "sleeps.h"

#define TIMES 3

static uint64_t stat_of(struct scene *scene, unsigned int stat)
{
	uint64_t counters[RDMATENSOR_STAT_NR];

	if (rdmatensor_stats(scene->w.rt, 0, counters, RDMATENSOR_STAT_NR))
		die("STATS");
	return counters[stat];
}

static int gathers(struct scene *scene)
{
	uint64_t took;

	return gather_ok(scene, &took) || stat_of(scene, RDMATENSOR_STAT_GATHER_LANES_DOWN);
}

static int fetches(struct scene *scene)
{
	static struct rdmatensor_op ops[SHORTS];
	static char names[SHORTS][16];
	int64_t step = scene->step++;
	uint64_t first = 0, number;
	int failed = 0;
	unsigned int i;

	memset(worker_at(&scene->w, scene->at), 0, SHORTS * SHORT_BYTES);
	for (i = 0; i < SHORTS; i++) {
		number = worker_number();
		first = i ? first : number;
		rdmatensor_prep_fetch(&ops[i], scene->w.channel, short_name(i, names[i]), step,
				      scene->w.pool.id, scene->at + i * SHORT_BYTES, SHORT_BYTES, 0,
				      number);
	}
	if (rdmatensor_submit(scene->w.rt, ops, SHORTS, 0, 0, NULL))
		die("SUBMIT of fetches");
	scene_order(scene, "shorts %" PRId64, step);
	for (i = 0; i < SHORTS; i++)
		failed |= scene_next(scene, RDMATENSOR_CQE_FETCH, first + i, NULL) ||
			  !perf_is(worker_at(&scene->w, scene->at + i * SHORT_BYTES), SHORT_BYTES);
	return failed;
}

int sleeps_run(const char *host)
{
	static int (*const cases[])(struct scene *scene) = { gathers, fetches };
	static const char *const names[] = {
		"rows of a gather come over a queue pair that sleeps",
		"contents that are posted at once come over a queue pair that sleeps",
	};
	struct scene scene;
	unsigned int i, k;
	int failures = 0;

	scene_open(&scene, host);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t began = rdmatensor_now_ns();
		int failed = 0;

		for (k = 0; k < TIMES && !failed; k++)
			failed = cases[i](&scene);
		printf("%s %u - %s: %.0f ms each\n", failed ? "not ok" : "ok", i + 1, names[i],
		       (rdmatensor_now_ns() - began) / 1e6 / TIMES);
		failures += failed;
	}
	scene_close(&scene);
	return failures;
}
