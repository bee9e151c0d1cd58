// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "message.h"
#include "progress.h"

#define WIDTH 30
#define INTERVAL_NS UINT64_C(100000000)

void progress_begin(struct progress *progress, const char *what, uint64_t total)
{
	memset(progress, 0, sizeof(*progress));
	progress->what = what;
	progress->total = total;
	progress->started_ns = rdmatensor_now_ns();
	/* A short transfer shows no bar */
	progress->drawn_ns = progress->started_ns;
	progress->on = isatty(STDERR_FILENO);
}

static void draw(struct progress *progress, uint64_t now)
{
	double part = progress->total ?
		      (double)progress->done / (double)progress->total : 1;
	double seconds = (double)(now - progress->started_ns) / 1e9;
	char bar[WIDTH + 1];
	int full;

	if (part > 1)
		part = 1;
	full = (int)(part * WIDTH);
	memset(bar, '#', (size_t)full);
	memset(bar + full, '.', (size_t)(WIDTH - full));
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r%s %s[%s]%s %3d %% %8.1f MB/s ", progress->what,
		stderr_has_colours() ? "\033[32m" : "", bar,
		stderr_has_colours() ? "\033[0m" : "", (int)(part * 100),
		seconds > 0 ? (double)progress->done / seconds / 1e6 : 0);
	fflush(stderr);
	progress->drawn_ns = now;
}

void progress_add(struct progress *progress, uint64_t bytes)
{
	uint64_t now;

	progress->done += bytes;
	if (!progress->on)
		return;
	now = rdmatensor_now_ns();
	if (now - progress->drawn_ns >= INTERVAL_NS)
		draw(progress, now);
}

void progress_wipe(const struct progress *progress)
{
	if (!progress->on || progress->drawn_ns == progress->started_ns)
		return;
	fprintf(stderr, "\r%*s\r", (int)strlen(progress->what) + WIDTH + 30,
		"");
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	progress_wipe(progress);
	progress->on = false;
}
