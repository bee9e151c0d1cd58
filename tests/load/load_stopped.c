// SPDX-License-Identifier: GPL-2.0
/* The peer's process is stopped: its kernel serves on, and nobody reads its ring */
#include "bulk.h"
#include "loads.h"

static struct bulk bulk;

void load_stopped_begin(struct scene *scene)
{
	bulk_init(&bulk, &scene->w, LONG_BYTES, 1);
	scene_order(scene, "stop");
	bulk_begin(&bulk, true);
}

void load_stopped_end(struct scene *scene)
{
	if (!bulk_end(&bulk, rdmatensor_deadline_ms(25000)))
		die("the bulk from a stopped peer is not whole");
	bulk_free(&bulk);
	scene_order(scene, "go on");
}
