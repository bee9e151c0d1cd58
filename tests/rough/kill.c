// SPDX-License-Identifier: GPL-2.0
/*
 * A command is killed at random moments of its life.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "rough.h"

/* As long as a command without an end lives after its first word */
#define LIFE_NS UINT64_C(60000000)

static struct outcome outcome;

int kills(const char *pattern, bool quick, unsigned int moments, unsigned int seed)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGKILL, SIGHUP, SIGQUIT };
	static const struct blow none;
	unsigned int m, bad, ended;
	const char *why;
	int failed = 0;
	uint64_t life;
	size_t i;

	for (i = 0; i < nr_scenes; i++) {
		const struct scene *scene = &scenes[i];
		struct blow blow = { 0 };
		unsigned short random[3];

		if (!scene->killed || fnmatch(pattern, scene->name, 0) || (quick && !scene->quick))
			continue;
		run(scene, &none, &outcome);
		life = outcome.ns + (scene->ends == ENDS_ITSELF ? 0 : LIFE_NS);
		why = judge_baseline(scene, &outcome);
		if (why)
			printf("# %s\n# %s\n", why, outcome.err);
		/* The same for a scene, whichever others are run */
		random[0] = (unsigned short)seed;
		random[1] = (unsigned short)(seed >> 16);
		random[2] = (unsigned short)i;
		for (m = 0, bad = why != NULL, ended = 0; m < moments; m++) {
			blow.signal = signals[m % (sizeof(signals) / sizeof(signals[0]))];
			blow.after_ns = (uint64_t)(erand48(random) * (double)life);
			run(scene, &blow, &outcome);
			ended += !outcome.status;
			why = judge_kill(scene, &blow, &outcome);
			if (!why)
				continue;
			printf("# signal %d after %.6f s: %s\n# %.300s\n", blow.signal,
			       (double)blow.after_ns / 1e9, why, outcome.err);
			bad++;
		}
		result(!bad, "%s: killed at %u moments of %.3f s, %u ended before or well",
		       scene->name, moments, (double)life / 1e9, ended);
		failed += bad > 0;
	}
	return failed;
}
