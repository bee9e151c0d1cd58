// SPDX-License-Identifier: GPL-2.0
/* A flood of short fetches over the driver's channel */
#include <string.h>
#include "loads.h"

#define DEPTH 64

static struct {
	struct load load;
	struct worker *w;
	uint64_t at;
	bool again;
	unsigned int flying;
} flood;

static void flood_fetch(unsigned int i)
{
	struct rdmatensor_op op;
	char name[48];

	rdmatensor_prep_fetch(&op, flood.w->channel, perf_name(SMALL_BYTES, name), 0,
			      flood.w->pool.id, flood.at + i * SMALL_BYTES, SMALL_BYTES, 0,
			      (uint64_t)flood.load.data << 32 | i);
	worker_submit(flood.w, &op);
	flood.flying++;
}

static void flood_entry(struct load *load, const struct rdmatensor_cqe *cqe)
{
	(void)load;
	if (cqe->result)
		die("a fetch of the flood: %s", strerror(-cqe->result));
	flood.flying--;
	if (flood.again)
		flood_fetch((uint32_t)cqe->user_data);
}

void load_flood_begin(struct scene *scene)
{
	unsigned int i;

	flood.load = (struct load){ .entry = flood_entry };
	flood.w = &scene->w;
	flood.at = worker_alloc(flood.w, DEPTH * SMALL_BYTES);
	flood.again = true;
	worker_add(flood.w, &flood.load);
	for (i = 0; i < DEPTH; i++)
		flood_fetch(i);
}

void load_flood_end(struct scene *scene)
{
	unsigned int i;

	(void)scene;
	flood.again = false;
	if (!worker_until_zero(flood.w, &flood.flying, rdmatensor_deadline_ms(25000)))
		die("%u fetches of the flood have not ended", flood.flying);
	for (i = 0; i < DEPTH; i++)
		if (!perf_is(worker_at(flood.w, flood.at + i * SMALL_BYTES), SMALL_BYTES))
			die("what the flood has brought is wrong");
	worker_remove(flood.w, &flood.load);
	worker_free(flood.w, flood.at);
}
