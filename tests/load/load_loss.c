// SPDX-License-Identifier: GPL-2.0
/* A wire that loses one packet in a hundred, each way, with long fetches on it */
#include <stdio.h>
#include <stdlib.h>
#include "bulk.h"
#include "loads.h"

static struct bulk bulk;

static void netem(struct scene *scene, const char *what)
{
	char command[160];

	snprintf(command, sizeof(command), "tc qdisc %s", what);
	if (system(command))
		die("no netem: %s", command);
	scene_order(scene, "netem %s", what);
}

void load_loss_begin(struct scene *scene)
{
	bulk_init(&bulk, &scene->w, LONG_BYTES, 1);
	netem(scene, "replace dev eth0 root netem loss 1% limit 100000");
	bulk_begin(&bulk, true);
}

void load_loss_end(struct scene *scene)
{
	if (!bulk_end(&bulk, rdmatensor_deadline_ms(25000)))
		die("the bulk over a wire that loses is not whole");
	bulk_free(&bulk);
	netem(scene, "del dev eth0 root");
}
