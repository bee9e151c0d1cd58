// SPDX-License-Identifier: GPL-2.0
/*
 * The common part of fetches: destination, meta-data and checksum.
 */
#include <linux/ktime.h>
#include <linux/string.h>
#include "fetch/fetch.h"

static void fetch_entry(const struct rdmatensor_operation *op, int error,
			struct rdmatensor_cqe *cqe)
{
	const struct rdmatensor_fetch *fetch = container_of(op, struct rdmatensor_fetch, op);

	if (fetch->has_region && !error) {
		cqe->pool_id = op->pool_id;
		cqe->offset = fetch->offset;
	}
	if (fetch->share_id && !error) {
		cqe->flags |= RDMATENSOR_CQE_SHARED;
		cqe->share_id = fetch->share_id;
	}
	if (fetch->meta.data_type != RDMATENSOR_DT_INVALID) {
		cqe->flags |= RDMATENSOR_CQE_META;
		if (fetch->meta.is_dead)
			cqe->flags |= RDMATENSOR_CQE_DEAD;
		cqe->tensor_bytes = fetch->meta.bytes;
		cqe->data_type = fetch->meta.data_type;
		cqe->ndims = fetch->meta.ndims;
		memcpy(cqe->dims, fetch->meta.dims, sizeof(cqe->dims));
	}
	if (fetch->validate) {
		cqe->checksum = fetch->checksum;
		if (!error)
			cqe->flags |= RDMATENSOR_CQE_VALIDATED;
	}
}

const struct rdmatensor_operation_kind rdmatensor_fetch_kind = {
	.cqe_type = RDMATENSOR_CQE_FETCH,
	.submitted = RDMATENSOR_STAT_FETCHES,
	.completed = RDMATENSOR_STAT_FETCHED,
	.failed = RDMATENSOR_STAT_FETCH_ERRORS,
	.has_step = true,
	.entry = fetch_entry,
};

int rdmatensor_fetch_init(struct rdmatensor_fetch *fetch,
			  const struct rdmatensor_operation_ops *ops,
			  struct rdmatensor_core *core,
			  struct rdmatensor_counters *counters, u32 channel,
			  const struct rdmatensor_fetch_args *args)
{
	const struct rdmatensor_operation_args op_args = {
		.channel = channel,
		.user_data = args->user_data,
		.step_id = args->step_id,
		.pool = args->pool,
		.offset = args->alloc ? 0 : args->offset,
		.bytes = args->alloc ? 0 : args->bytes,
	};
	struct rdmatensor_status status;
	int ret;

	if (rdmatensor_rendezvous_step_status(core->rdv, args->step_id, &status)) {
		ret = status.error;
		rdmatensor_status_clear(&status);
		return ret;
	}

	ret = rdmatensor_operation_init(&fetch->op, ops, core, counters, &op_args);
	if (ret)
		return ret;
	fetch->has_region = args->pool && !args->alloc;
	fetch->alloc = args->alloc;
	fetch->offset = args->offset;
	fetch->room = args->bytes;
	return 0;
}

/* What was allocated for it; what the process has named stays its own */
static void fetch_free_region(struct rdmatensor_fetch *fetch)
{
	if (!fetch->alloc || !fetch->has_region)
		return;
	fetch->has_region = false;
	rdmatensor_regions_free_held(&fetch->op.pool->regions, &fetch->op.use);
}

int rdmatensor_fetch_place(struct rdmatensor_fetch *fetch, gfp_t gfp)
{
	struct rdmatensor_regions *regions = &fetch->op.pool->regions;
	u64 bytes = fetch->meta.bytes;
	int ret;

	if (!fetch->alloc)
		return bytes > fetch->room ? -EMSGSIZE : 0;

	fetch_free_region(fetch);
	if (fetch->room && bytes > fetch->room)
		return -EMSGSIZE;
	if (!bytes)
		return 0;

	ret = rdmatensor_regions_alloc_hold(regions, &fetch->op.use, bytes, gfp,
					    &fetch->offset);
	if (ret)
		return ret;
	fetch->has_region = true;
	return 0;
}

void rdmatensor_fetch_finish(struct rdmatensor_fetch *fetch, int error)
{
	struct rdmatensor_counters *counters = fetch->op.counters;

	if (error) {
		fetch_free_region(fetch);
	} else {
		rdmatensor_count_add(counters, RDMATENSOR_STAT_FETCHED_BYTES, fetch->meta.bytes);
		rdmatensor_count_latency(counters, ktime_get_ns() - fetch->op.begun_ns);
	}
	rdmatensor_operation_finish(&fetch->op, error, fetch->meta.bytes);
}

void rdmatensor_fetch_abandon(struct rdmatensor_fetch *fetch)
{
	fetch_free_region(fetch);
	rdmatensor_operation_abandon(&fetch->op);
}

int rdmatensor_fetch_check(struct rdmatensor_fetch *fetch)
{
	struct rdmatensor_counters *counters = fetch->op.counters;
	u32 sum = 0;

	/* The peer's mode, not this context's: that one has been looked at before */
	if (fetch->meta.bytes && !rdmatensor_pool_reachable(fetch->op.pool)) {
		rdmatensor_status_set(&fetch->op.status, -EOPNOTSUPP,
				      "the peer sends checksums, and the CPU cannot reach the destination: switch validation off there");
		return -EOPNOTSUPP;
	}
	rdmatensor_count(counters, RDMATENSOR_STAT_VALIDATED);
	if (fetch->meta.bytes)
		sum = rdmatensor_pool_checksum(fetch->op.pool, fetch->offset, fetch->meta.bytes);
	if (sum == fetch->checksum)
		return 0;

	rdmatensor_count(counters, RDMATENSOR_STAT_VALIDATE_ERRORS);
	rdmatensor_status_set(&fetch->op.status, -EBADMSG, "checksum of the content differs");
	return -EBADMSG;
}
