// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How far a call is: told to the program, or on a terminal in one line, which the last one ends. A
 * thing that is quick says nothing there.
 */
#include <stdio.h>
#include <unistd.h>

#include "cluster.h"

static void on_terminal(const struct rdmatensor_cluster *cluster,
			const struct rdmatensor_cluster_progress *progress)
{
	static const char *const words[] = {
		[RDMATENSOR_CLUSTER_CONNECTING] = "connected",
		[RDMATENSOR_CLUSTER_CHECKING] = "checked",
		[RDMATENSOR_CLUSTER_GATHERING] = "reported",
	};
	bool last = progress->done == progress->total;
	char failed[48] = "";

	if (progress->failed)
		snprintf(failed, sizeof(failed), ", %u do not answer", progress->failed);
	fprintf(stderr, "\rrank %u: %u of %u ranks %s%s%s", cluster->rank,
		progress->done - progress->failed, progress->total, words[progress->stage], failed,
		last ? "\n" : "");
}

void cluster_tell(struct rdmatensor_cluster *cluster,
		  const struct rdmatensor_cluster_progress *progress)
{
	if (cluster->options.progress)
		cluster->options.progress(cluster->options.progress_arg, progress);
	else if (!(cluster->options.flags & RDMATENSOR_CLUSTER_QUIET) && isatty(STDERR_FILENO))
		on_terminal(cluster, progress);
}
