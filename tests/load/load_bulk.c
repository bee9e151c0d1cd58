// SPDX-License-Identifier: GPL-2.0
/* Bulk both ways over the driver's channel */
#include "bulk.h"
#include "loads.h"

static struct bulk bulk;

void load_bulk_begin(struct scene *scene)
{
	bulk_init(&bulk, &scene->w, LONG_BYTES, 4);
	bulk_begin(&bulk, true);
	scene_order(scene, "bulk on");
}

void load_bulk_end(struct scene *scene)
{
	scene_order(scene, "bulk off");
	if (!bulk_end(&bulk, rdmatensor_deadline_ms(25000)))
		die("the driver's bulk is not whole");
	bulk_free(&bulk);
}
