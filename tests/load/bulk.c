// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "bulk.h"

static void bulk_fetch(struct bulk *bulk, unsigned int i)
{
	struct rdmatensor_op op;
	char name[48];

	rdmatensor_prep_fetch(&op, bulk->worker->channel, perf_name(bulk->bytes, name), 0,
			      bulk->worker->pool.id, bulk->at[i], bulk->bytes, 0,
			      (uint64_t)bulk->load.data << 32 | i);
	worker_submit(bulk->worker, &op);
	bulk->flying++;
}

static void bulk_entry(struct load *load, const struct rdmatensor_cqe *cqe)
{
	struct bulk *bulk = (struct bulk *)load;

	bulk->flying--;
	if (cqe->result) {
		bulk->failed++;
		if (!bulk->error)
			bulk->error = cqe->result;
		return;
	}
	bulk->ended++;
	if (bulk->again)
		bulk_fetch(bulk, (uint32_t)cqe->user_data);
}

void bulk_init(struct bulk *bulk, struct worker *worker, uint64_t bytes, unsigned int depth)
{
	unsigned int i;
	char name[48];
	int ret;

	memset(bulk, 0, sizeof(*bulk));
	bulk->load.entry = bulk_entry;
	bulk->worker = worker;
	bulk->bytes = bytes;
	bulk->depth = depth;
	for (i = 0; i < depth; i++)
		bulk->at[i] = worker_alloc(worker, bytes);
	worker_add(worker, &bulk->load);
	ret = worker_fetch(worker, perf_name(bytes, name), bulk->at[0], bytes, 0, NULL);
	if (ret)
		die("fetch of \"%s\": %s", name, strerror(-ret));
}

void bulk_begin(struct bulk *bulk, bool again)
{
	unsigned int i;

	bulk->again = again;
	for (i = 0; i < bulk->depth; i++) {
		memset(worker_at(bulk->worker, bulk->at[i]), 0, bulk->bytes);
		bulk_fetch(bulk, i);
	}
}

bool bulk_end(struct bulk *bulk, uint64_t deadline_ns)
{
	unsigned int i;

	bulk->again = false;
	if (!worker_until_zero(bulk->worker, &bulk->flying, deadline_ns)) {
		printf("# %u long fetches have not ended\n", bulk->flying);
		return false;
	}
	if (bulk->failed) {
		printf("# %u long fetches failed: %s\n", bulk->failed, strerror(-bulk->error));
		return false;
	}
	for (i = 0; i < bulk->depth; i++) {
		if (perf_is(worker_at(bulk->worker, bulk->at[i]), bulk->bytes))
			continue;
		printf("# what long fetch %u has brought is wrong\n", i);
		return false;
	}
	return true;
}

void bulk_free(struct bulk *bulk)
{
	unsigned int i;

	worker_remove(bulk->worker, &bulk->load);
	for (i = 0; i < bulk->depth; i++)
		worker_free(bulk->worker, bulk->at[i]);
}
