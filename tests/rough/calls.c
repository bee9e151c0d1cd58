// SPDX-License-Identifier: GPL-2.0
/*
 * Each call of a command fails in turn: with each errno that it may have, or by half.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "rough.h"

static const char *const hows[] = { "short", "EINTR", "ENOSPC", "EIO", "EMFILE", "ENOMEM" };

/* More than any command makes: one that tries for ever what fails does */
#define CALLS_MAX 200000

#define NR_HOWS (sizeof(hows) / sizeof(hows[0]))

static struct outcome outcome;

static void tell(const struct blow *blow, const char *bad)
{
	const char *line;
	int len;

	printf("# %s at call %ld (%s): %s\n", blow->how, blow->at, outcome.struck, bad);
	printf("# %.*s\n", 300, outcome.err);
	/* doctor's report, but for what is well */
	for (line = outcome.out; *line; line += len + (line[len] == '\n')) {
		len = (int)strcspn(line, "\n");
		if (!strncmp(line, "FAIL", 4) || !strncmp(line, "WARN", 4))
			printf("# %.*s\n", len, line);
	}
}

/* Calls that failed; *wrong: of them, with a wrong end */
static unsigned int sweep(const struct scene *scene, const char *how, unsigned int every,
			  unsigned int seed, unsigned int *bad)
{
	/* What allocates is the most, and the same code all over again */
	long step = (long)(strcmp(how, "ENOMEM") ? (every + 7) / 8 : every) *
		    (scene->sparse ? scene->sparse : 1);
	struct blow blow = { .how = how, .at = 1 + (long)(seed % (unsigned int)step) };
	const char *why = NULL;
	unsigned int nr = 0;

	for (; blow.at <= CALLS_MAX; blow.at += step) {
		run(scene, &blow, &outcome);
		why = judge_call(scene, &blow, &outcome);
		if (!outcome.struck[0] && !outcome.hung)
			break;
		nr++;
		if (!why)
			continue;
		tell(&blow, why);
		++*bad;
	}
	if (blow.at > CALLS_MAX)
		why = "it makes calls without an end";
	/* Nothing has failed, so all is as it was */
	if (why) {
		tell(&blow, why);
		++*bad;
	}
	return nr;
}

int calls(const char *pattern, bool quick, unsigned int every, unsigned int seed)
{
	static const struct blow none;
	unsigned int nr, bad;
	const char *why;
	int failed = 0;
	size_t i, k;

	for (i = 0; i < nr_scenes; i++) {
		const struct scene *scene = &scenes[i];
		uint64_t begun = now_ns();

		if (fnmatch(pattern, scene->name, 0) || (quick && !scene->quick))
			continue;
		run(scene, &none, &outcome);
		why = judge_baseline(scene, &outcome);
		if (why) {
			printf("# %s\n# %s\n", why, outcome.err);
			result(false, "%s: without a failure", scene->name);
			failed++;
			continue;
		}
		for (nr = 0, bad = 0, k = 0; k < NR_HOWS; k++)
			nr += sweep(scene, hows[k], every, seed, &bad);
		result(!bad && nr, "%s: %u calls failed in turn, %u with a wrong end, %.1f s",
		       scene->name, nr, bad, (double)(now_ns() - begun) / 1e9);
		failed += bad || !nr;
	}
	return failed;
}
