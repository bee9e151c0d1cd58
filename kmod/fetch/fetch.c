// SPDX-License-Identifier: GPL-2.0
/*
 * The common part of fetches: destination and proxy, meta-data and checksum.
 *
 * The destination is held from the submission to the end, whether it is written by a peer or by
 * a copy. Memory of the process that is in no pool is pinned by SUBMIT, in the caller's task,
 * and is a pool of its own that nobody else knows: so a copy faults on nothing, and what the
 * process does with the addresses meanwhile, or its death, is of no concern to it.
 */
#include <linux/ktime.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "fetch/fetch.h"

static void fetch_entry(const struct rdmatensor_operation *op, int error,
			struct rdmatensor_cqe *cqe)
{
	const struct rdmatensor_fetch *fetch = container_of(op, struct rdmatensor_fetch, op);

	cqe->step_id = fetch->step_id;
	if (fetch->has_region && !error) {
		cqe->pool_id = op->pool_id;
		cqe->offset = fetch->base + fetch->offset;
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
		.any_step = args->newest,
		.pool = args->pool,
		.offset = args->alloc ? 0 : args->offset,
		.bytes = args->alloc ? 0 : args->bytes,
		.sparse = args->layout,
	};
	struct rdmatensor_status status;
	int ret;

	if (!args->newest &&
	    rdmatensor_rendezvous_step_status(core->rdv, args->step_id, &status)) {
		ret = status.error;
		rdmatensor_status_clear(&status);
		return ret;
	}

	ret = rdmatensor_operation_init(&fetch->op, ops, core, counters, &op_args);
	if (ret)
		return ret;
	ret = rdmatensor_proxy_init(&fetch->proxy, args->proxy);
	if (ret) {
		rdmatensor_operation_abandon(&fetch->op);
		return ret;
	}
	fetch->newest = args->newest;
	fetch->now = args->now;
	fetch->step_id = args->step_id;
	fetch->has_region = args->pool && !args->alloc;
	fetch->alloc = args->alloc;
	/* It is in no pool that the process knows */
	if (args->in_process)
		fetch->op.pool_id = 0;
	fetch->offset = args->offset;
	fetch->base = args->base;
	fetch->room = args->bytes;
	fetch->slice = args->slice;
	fetch->layout = args->layout;
	return 0;
}

void rdmatensor_fetch_unlearn(struct rdmatensor_fetch *fetch)
{
	memset(&fetch->meta, 0, sizeof(fetch->meta));
	if (fetch->slice)
		memset(&fetch->slice->whole, 0, sizeof(fetch->slice->whole));
}

int rdmatensor_fetch_learn(struct rdmatensor_fetch *fetch, const struct rdmatensor_meta *whole)
{
	struct rdmatensor_meta part;
	int ret;

	if (!fetch->slice) {
		fetch->meta = *whole;
		return 0;
	}
	ret = rdmatensor_slice_meta(&fetch->slice->slice, whole, &part);
	if (ret)
		return ret;
	fetch->slice->whole = *whole;
	fetch->meta = part;
	return 0;
}

void rdmatensor_slice_misfits(struct rdmatensor_status *status,
			      const struct rdmatensor_slice *slice,
			      const struct rdmatensor_meta *whole)
{
	char text[RDMATENSOR_TEXT_MAX];
	int len, i;

	len = scnprintf(text, sizeof(text), "the tensor has no such slice: ");
	if (!slice->ndims) {
		scnprintf(text + len, sizeof(text) - len, "it has %llu bytes", whole->bytes);
	} else if (rdmatensor_data_type_opaque(whole->data_type)) {
		scnprintf(text + len, sizeof(text) - len,
			  "it is opaque: only a range of its %llu bytes can be asked for",
			  whole->bytes);
	} else {
		len += scnprintf(text + len, sizeof(text) - len, "its shape is [");
		for (i = 0; i < whole->ndims; i++)
			len += scnprintf(text + len, sizeof(text) - len, "%s%llu", i ? ", " : "",
					 whole->dims[i]);
		scnprintf(text + len, sizeof(text) - len, "]");
	}
	rdmatensor_status_set(status, -ERANGE, text);
}

u64 rdmatensor_fetch_cost(const struct rdmatensor_fetch *fetch)
{
	u64 bytes = fetch->meta.bytes, cost = bytes;
	struct rdmatensor_cut cut;

	if (!bytes)
		return 0;
	if (fetch->slice) {
		rdmatensor_slice_cut(&fetch->slice->slice, NULL, &fetch->slice->whole, &cut);
		cost = rdmatensor_cut_cost(&cut, bytes);
	}
	if (rdmatensor_fetch_landing_layout(fetch)) {
		rdmatensor_fetch_cut(fetch, &cut);
		cost = max(cost, rdmatensor_cut_cost(&cut, bytes));
	}
	return cost;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_fetch_cost);

void rdmatensor_fetch_cut(const struct rdmatensor_fetch *fetch, struct rdmatensor_cut *cut)
{
	rdmatensor_slice_cut(NULL, fetch->layout ? &fetch->layout->layout : NULL, &fetch->meta,
			     cut);
}

/* What was allocated for it; what the process has named stays its own */
static void fetch_free_region(struct rdmatensor_fetch *fetch)
{
	if (!fetch->alloc || !fetch->has_region)
		return;
	fetch->has_region = false;
	rdmatensor_regions_free_held(&fetch->op.pool->regions, &fetch->op.use);
}

/* Return: @error, which the text is for */
static int fetch_say(struct rdmatensor_fetch *fetch, int error, const char *text)
{
	rdmatensor_status_set(&fetch->op.status, error, text);
	return error;
}

/* A destination with a layout has a place for each element. Return: 0; why not, with a text */
static int fetch_fit_layout(struct rdmatensor_fetch *fetch, u64 *span)
{
	const struct rdmatensor_fetch_layout *places = fetch->layout;
	const struct rdmatensor_meta *meta = &fetch->meta;
	char text[RDMATENSOR_TEXT_MAX];
	unsigned int i;

	if (places->data_type && places->data_type != meta->data_type) {
		scnprintf(text, sizeof(text),
			  "what comes is of data type %u, and the destination is for elements of type %u",
			  meta->data_type, places->data_type);
		return fetch_say(fetch, -EINVAL, text);
	}
	if (rdmatensor_layout_span(&places->layout, meta, span)) {
		if (places->layout.ndims == meta->ndims &&
		    !rdmatensor_data_type_opaque(meta->data_type))
			return fetch_say(fetch, -ERANGE,
					 "with these strides what comes ends beyond all addresses");
		scnprintf(text, sizeof(text),
			  "the destination has %u strides, and what comes has %u dims%s: give a stride for each",
			  places->layout.ndims, meta->ndims,
			  rdmatensor_data_type_opaque(meta->data_type) ? " and is opaque" : "");
		return fetch_say(fetch, -ERANGE, text);
	}
	for (i = 0; i < meta->ndims; i++) {
		if (meta->dims[i] <= places->most[i])
			continue;
		scnprintf(text, sizeof(text),
			  "dim %u of what comes has %llu elements, and there are places for %llu",
			  i, meta->dims[i], places->most[i]);
		return fetch_say(fetch, -EMSGSIZE, text);
	}
	if (!rdmatensor_layout_disjoint(&places->layout, meta))
		return fetch_say(fetch, -EINVAL,
				 "elements would overlap in the destination: give each dim a stride that reaches over all faster ones");
	if (*span <= fetch->room)
		return 0;
	scnprintf(text, sizeof(text),
		  "what comes takes %llu bytes with these strides, and the destination has %llu",
		  *span, fetch->room);
	return fetch_say(fetch, -EMSGSIZE, text);
}

int rdmatensor_fetch_place(struct rdmatensor_fetch *fetch, gfp_t gfp)
{
	struct rdmatensor_regions *regions = &fetch->op.pool->regions;
	u64 bytes = fetch->meta.bytes;
	int ret;

	rdmatensor_proxy_give(&fetch->proxy);
	if (fetch->layout && !fetch->meta.is_dead)
		return fetch_fit_layout(fetch, &bytes);
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

int rdmatensor_fetch_stand_in(struct rdmatensor_fetch *fetch, gfp_t gfp)
{
	u64 bytes = fetch->meta.bytes;
	int ret;

	fetch->op.status.text_len = 0;
	if (bytes && !rdmatensor_pool_reachable(fetch->op.pool))
		return fetch_say(fetch, -EOPNOTSUPP,
				 "the peer cannot write the destination, and the CPU cannot copy to it: fetch to a pool that peers write");
	if (bytes && !rdmatensor_pool_reachable(fetch->proxy.pool))
		return fetch_say(fetch, -EOPNOTSUPP,
				 "the CPU cannot copy from the proxy's pool: name a pool of kernel pages for it");
	ret = rdmatensor_proxy_take(&fetch->proxy, bytes, gfp);
	if (ret == -ENOSPC)
		return fetch_say(fetch, ret,
				 "the proxy's pool has no room for the tensor: make it larger, or free regions of it");
	return ret;
}

struct rdmatensor_pool *rdmatensor_fetch_landing(const struct rdmatensor_fetch *fetch, u64 *offset)
{
	if (fetch->proxy.used) {
		*offset = fetch->proxy.offset;
		return fetch->proxy.pool;
	}
	*offset = fetch->offset;
	return fetch->op.pool;
}

u64 rdmatensor_fetch_landing_bytes(const struct rdmatensor_fetch *fetch)
{
	const struct rdmatensor_fetch_layout *layout = rdmatensor_fetch_landing_layout(fetch);
	u64 bytes = fetch->meta.bytes;

	/* It was placed, so it has one */
	if (layout)
		rdmatensor_layout_span(&layout->layout, &fetch->meta, &bytes);
	return bytes;
}

static void fetch_end_proxy(struct rdmatensor_fetch *fetch)
{
	struct rdmatensor_pool *pool = fetch->proxy.pool;

	rdmatensor_proxy_end(&fetch->proxy);
	if (pool)
		rdmatensor_pool_put(pool);
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
	fetch_end_proxy(fetch);
	rdmatensor_operation_finish(&fetch->op, error, fetch->meta.bytes);
}

void rdmatensor_fetch_abandon(struct rdmatensor_fetch *fetch)
{
	fetch_free_region(fetch);
	rdmatensor_proxy_end(&fetch->proxy);
	rdmatensor_operation_abandon(&fetch->op);
}

/* Of the content where it has arrived. Of a part of it, if the context ends meanwhile */
static u32 fetch_sum(const struct rdmatensor_fetch *fetch)
{
	bool spread = rdmatensor_fetch_landing_layout(fetch);
	u64 bytes = fetch->meta.bytes, offset, pos, at, run;
	struct rdmatensor_pool *pool;
	struct rdmatensor_cut cut;
	u32 crc = ~0U;

	pool = rdmatensor_fetch_landing(fetch, &offset);
	if (spread)
		rdmatensor_fetch_cut(fetch, &cut);
	for (pos = 0; pos < bytes && !rdmatensor_core_ends(fetch->op.core); pos += run) {
		at = pos;
		run = bytes;
		if (spread)
			at = rdmatensor_cut_at(&cut, pos, &run);
		run = min3(run, bytes - pos, (u64)RDMATENSOR_CPU_BYTES);
		crc = rdmatensor_pool_crc(pool, offset + at, run, crc);
	}
	return ~crc;
}

/* From the proxy to the destination */
static void fetch_copy(struct rdmatensor_fetch *fetch)
{
	u64 bytes = fetch->meta.bytes, pos, at, run;
	struct rdmatensor_cut cut;

	rdmatensor_fetch_cut(fetch, &cut);
	/* What has no bytes may land where the CPU reaches nothing */
	for (pos = 0; pos < bytes && !rdmatensor_core_ends(fetch->op.core); pos += run) {
		at = rdmatensor_cut_at(&cut, pos, &run);
		run = min3(run, bytes - pos, (u64)RDMATENSOR_CPU_BYTES);
		rdmatensor_pool_copy(fetch->op.pool, fetch->offset + at, fetch->proxy.pool,
				     fetch->proxy.offset + pos, run);
	}
}

static int fetch_check(struct rdmatensor_fetch *fetch)
{
	struct rdmatensor_counters *counters = fetch->op.counters;
	struct rdmatensor_pool *pool;
	u64 offset;
	u32 sum = 0;

	pool = rdmatensor_fetch_landing(fetch, &offset);
	/* The peer's mode, not this context's: that one has been looked at before */
	if (fetch->meta.bytes && !rdmatensor_pool_reachable(pool))
		return fetch_say(fetch, -EOPNOTSUPP,
				 "the peer sends checksums, and the CPU cannot reach the destination: switch validation off there");
	if (fetch->meta.bytes)
		sum = fetch_sum(fetch);
	if (rdmatensor_core_ends(fetch->op.core))
		return -ESHUTDOWN;
	rdmatensor_count(counters, RDMATENSOR_STAT_VALIDATED);
	if (sum == fetch->checksum)
		return 0;

	rdmatensor_count(counters, RDMATENSOR_STAT_VALIDATE_ERRORS);
	return fetch_say(fetch, -EBADMSG, "checksum of the content differs");
}

int rdmatensor_fetch_settle(struct rdmatensor_fetch *fetch)
{
	u64 bytes = fetch->meta.bytes;
	int ret;

	ret = fetch->validate ? fetch_check(fetch) : 0;
	if (ret || !fetch->proxy.used)
		return ret;
	rdmatensor_hold("proxy_copy");
	fetch_copy(fetch);
	if (rdmatensor_core_ends(fetch->op.core))
		return -ESHUTDOWN;
	rdmatensor_count_add(fetch->op.counters, RDMATENSOR_STAT_COPIED_BYTES, bytes);
	return 0;
}
