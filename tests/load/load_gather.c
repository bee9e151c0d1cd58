// SPDX-License-Identifier: GPL-2.0
/* Gathers of all rows of the peer's, two at a time */
#include <string.h>
#include "loads.h"

#define DEPTH 2

static struct {
	struct load load;
	struct scene *scene;
	uint64_t at[DEPTH];
	bool again;
	unsigned int flying;
} gather;

static void gather_rows(unsigned int i)
{
	struct scene *scene = gather.scene;
	struct rdmatensor_op op;

	rdmatensor_prep_gather(&op, scene->table, scene->ids, ROWS, scene->w.pool.id,
			       gather.at[i], ROWS * ROW_BYTES, 0, (uint64_t)gather.load.data << 32 | i);
	worker_submit(&scene->w, &op);
	gather.flying++;
}

static void gather_entry(struct load *load, const struct rdmatensor_cqe *cqe)
{
	(void)load;
	if (cqe->result)
		die("a gather of the load: %s", strerror(-cqe->result));
	gather.flying--;
	if (gather.again)
		gather_rows((uint32_t)cqe->user_data);
}

void load_gather_begin(struct scene *scene)
{
	unsigned int i;

	gather.load = (struct load){ .entry = gather_entry };
	gather.scene = scene;
	gather.again = true;
	worker_add(&scene->w, &gather.load);
	for (i = 0; i < DEPTH; i++) {
		gather.at[i] = worker_alloc(&scene->w, ROWS * ROW_BYTES);
		gather_rows(i);
	}
}

void load_gather_end(struct scene *scene)
{
	unsigned int i;

	gather.again = false;
	if (!worker_until_zero(&scene->w, &gather.flying, rdmatensor_deadline_ms(25000)))
		die("%u gathers have not ended", gather.flying);
	worker_remove(&scene->w, &gather.load);
	for (i = 0; i < DEPTH; i++) {
		if (!scene_rows_are(scene, gather.at[i], ROWS))
			die("a gather of the load has brought wrong rows");
		worker_free(&scene->w, gather.at[i]);
	}
}
