/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fetches: operations that end with a tensor, which comes from a peer (request.c) or from
 * the context itself (local.c).
 */
#ifndef RDMATENSOR_FETCH_H
#define RDMATENSOR_FETCH_H

#include "core/wire.h"
#include "fetch/operation.h"
#include "fetch/proxy.h"

/**
 * struct rdmatensor_fetch_slice - what is wanted of a tensor
 * @slice: checked
 * @wire: the same for the peer
 * @whole: what is known of the tensor itself
 */
struct rdmatensor_fetch_slice {
	struct rdmatensor_slice slice;
	struct rdmatensor_wire_slice wire;
	struct rdmatensor_meta whole;
};

/**
 * struct rdmatensor_fetch_layout - where a tensor's elements are to lie in a destination
 * @layout: checked
 * @most: elements of each dim that have a place
 * @data_type: of those; RDMATENSOR_DT_INVALID: any
 * @wire: the layout for the peer
 */
struct rdmatensor_fetch_layout {
	struct rdmatensor_layout layout;
	u64 most[RDMATENSOR_DIMS_MAX];
	u32 data_type;
	struct rdmatensor_wire_layout wire;
};

/**
 * struct rdmatensor_fetch_args - a checked FETCH operation
 * @user_data: for its entry
 * @name: tensor's name, not zero-terminated
 * @name_len: bytes of @name
 * @step_id: the step
 * @newest: the newest step from @step_id on. Without @keep
 * @now: the fetch ends with -ENOENT if it is not offered
 * @pool: destination's; a reference is the fetch's from its beginning on. NULL: @share
 * @offset: of the destination in @pool, without @alloc
 * @base: of the process's own memory: address of byte 0 of @pool, which is unknown to others
 * @in_process: the destination is the process's own memory, and is named by its address
 * @proxy: pool in which a region may stand in for a destination that the peer cannot write; a
 *         reference is the fetch's from its beginning on. NULL: none. Without @alloc
 * @bytes: length of the destination; with @alloc: of the longest tensor, 0: any
 * @alloc: allocate the destination when the size is known
 * @share: take the published tensor itself, of the own context: there is no destination
 * @keep: the peer may remember the destination from one fetch to the next; without @alloc
 * @slice: what is wanted of the tensor, allocated; the fetch's from its beginning on. NULL: all.
 *         Without @share and @keep
 * @layout: of the content in the destination, allocated; the fetch's as @slice. NULL: it lies
 *          together. Without @alloc, @share and @keep
 * @deadline_ns: CLOCK_MONOTONIC, 0: none
 */
struct rdmatensor_fetch_args {
	u64 user_data;
	const char *name;
	u16 name_len;
	s64 step_id;
	bool newest;
	bool now;
	struct rdmatensor_pool *pool;
	u64 offset;
	u64 base;
	bool in_process;
	struct rdmatensor_pool *proxy;
	u64 bytes;
	bool alloc;
	bool share;
	bool keep;
	struct rdmatensor_fetch_slice *slice;
	struct rdmatensor_fetch_layout *layout;
	u64 deadline_ns;
};

/**
 * struct rdmatensor_fetch - the common part of a fetch, embedded
 * @op: the operation; its range is the destination
 * @newest: the newest step from op.step_id on is wanted
 * @now: the peer is to answer at once
 * @step_id: the step: op.step_id, until another one has been found
 * @alloc: the destination is allocated here
 * @has_region: the completion entry names @offset: a destination that is not empty, or the
 *              published tensor itself
 * @share_id: number of the share, with which it is released; 0: the fetch has none
 * @offset: of the destination or of the published tensor, if @has_region
 * @base: what the completion entry adds to @offset
 * @proxy: stands in for the destination if that is necessary
 * @room: bytes of the destination; with @alloc: the most to allocate, 0: any
 * @slice: what is wanted of the tensor; NULL: all
 * @layout: of that in the destination; NULL: it lies together
 * @meta: what is known of it
 * @checksum: of the content, as the sender computed it
 * @validate: @checksum is valid
 */
struct rdmatensor_fetch {
	struct rdmatensor_operation op;
	bool newest;
	bool now;
	s64 step_id;
	bool alloc;
	bool has_region;
	u32 share_id;
	u64 offset;
	u64 base;
	struct rdmatensor_proxy proxy;
	u64 room;
	struct rdmatensor_fetch_slice *slice;
	struct rdmatensor_fetch_layout *layout;
	struct rdmatensor_meta meta;
	u32 checksum;
	bool validate;
};

static inline struct rdmatensor_fetch *rdmatensor_to_fetch(struct rdmatensor_operation *op)
{
	return container_of(op, struct rdmatensor_fetch, op);
}

extern const struct rdmatensor_operation_kind rdmatensor_fetch_kind;

/**
 * rdmatensor_fetch_init - a fetch that holds its ring entry and its destination
 * @fetch: zeroed
 * @ops: of rdmatensor_fetch_kind
 * @core: a reference is taken
 * @counters: live as long as @fetch
 * @channel: for the completion entry
 * @args: copied, but for the name
 *
 * On success the fetch ends by rdmatensor_fetch_finish(), or, before
 * rdmatensor_operation_begin(), by rdmatensor_fetch_abandon().
 *
 * Return: 0; -EAGAIN: the ring is full; -EINVAL: the destination; the status of an aborted
 * step.
 */
int rdmatensor_fetch_init(struct rdmatensor_fetch *fetch,
			  const struct rdmatensor_operation_ops *ops,
			  struct rdmatensor_core *core,
			  struct rdmatensor_counters *counters, u32 channel,
			  const struct rdmatensor_fetch_args *args);

/* Undoes rdmatensor_fetch_init(). The pools' references, slice and layout are the caller's again */
void rdmatensor_fetch_abandon(struct rdmatensor_fetch *fetch);

/*
 * The tensor's meta-data, from which those of the slice follow. Return: 0; -ERANGE: it has no such
 * slice, and what was known stays
 */
int rdmatensor_fetch_learn(struct rdmatensor_fetch *fetch, const struct rdmatensor_meta *whole);
/* What the content costs its sender, see rdmatensor_cut_cost() */
u64 rdmatensor_fetch_cost(const struct rdmatensor_fetch *fetch);
/* Nothing is known of the tensor */
void rdmatensor_fetch_unlearn(struct rdmatensor_fetch *fetch);
/* The tensor's own meta-data, as they are known */
static inline const struct rdmatensor_meta *
rdmatensor_fetch_whole(const struct rdmatensor_fetch *fetch)
{
	return fetch->slice ? &fetch->slice->whole : &fetch->meta;
}

/* Sets -ERANGE, with what the tensor has instead of the slice */
void rdmatensor_slice_misfits(struct rdmatensor_status *status,
			      const struct rdmatensor_slice *slice,
			      const struct rdmatensor_meta *whole);

/**
 * rdmatensor_fetch_place - have a destination for fetch->meta
 * @fetch: an allocated destination, or a region of its proxy, of other meta-data is freed
 * @gfp: for the allocator of regions
 *
 * Return: 0: held, or nothing is needed; -EMSGSIZE: longer than the destination, or than
 * it has places in a dim; -ERANGE, -EINVAL: the layout is of other meta-data, or would have
 * elements overlap; of a layout fetch->op.status has the text;
 * -ENOSPC, -ENOMEM: of the pool. After an error there is no allocated destination.
 */
int rdmatensor_fetch_place(struct rdmatensor_fetch *fetch, gfp_t gfp);

/**
 * rdmatensor_fetch_stand_in - have the content go to the proxy
 * @fetch: has a proxy, and a destination for fetch->meta
 * @gfp: for the allocator of regions
 *
 * Return: 0; -EOPNOTSUPP: the CPU cannot copy from there to the destination; -ENOSPC, -ENOMEM:
 * of the proxy's pool. fetch->op.status has the text.
 */
int rdmatensor_fetch_stand_in(struct rdmatensor_fetch *fetch, gfp_t gfp);

/* Where the content arrives: @offset: out. The destination, or what stands in for it */
struct rdmatensor_pool *rdmatensor_fetch_landing(const struct rdmatensor_fetch *fetch,
						 u64 *offset);

/* The content's bytes there, with the gaps between them */
u64 rdmatensor_fetch_landing_bytes(const struct rdmatensor_fetch *fetch);

/* The layout there; NULL: the content lies together, or there is none */
static inline const struct rdmatensor_fetch_layout *
rdmatensor_fetch_landing_layout(const struct rdmatensor_fetch *fetch)
{
	return fetch->proxy.used || !fetch->meta.bytes ? NULL : fetch->layout;
}

/* Where the bytes of a content that is not empty lie in the destination */
void rdmatensor_fetch_cut(const struct rdmatensor_fetch *fetch, struct rdmatensor_cut *cut);

/* There is something for rdmatensor_fetch_settle() to do */
static inline bool rdmatensor_fetch_is_unsettled(const struct rdmatensor_fetch *fetch)
{
	return fetch->validate || (fetch->proxy.used && fetch->meta.bytes);
}

/**
 * rdmatensor_fetch_finish - end a fetch
 * @fetch: has begun; the caller's reference remains
 * @error: 0 or a negative errno. After an error an allocated destination is freed
 *
 * See rdmatensor_operation_finish().
 */
void rdmatensor_fetch_finish(struct rdmatensor_fetch *fetch, int error);

/**
 * rdmatensor_fetch_settle - compare the checksum of the content, and copy it from the proxy
 * @fetch: its content has arrived, and no peer can write it any more
 *
 * In a work item: a copy takes its time. The destination's pages are pinned, or a pool's: no
 * address of the process is used, and nothing is waited for. What has a wrong checksum is not
 * copied.
 *
 * Return: what rdmatensor_fetch_finish() gets: 0; -EBADMSG; -EOPNOTSUPP: the CPU cannot reach it;
 * -ESHUTDOWN: the context ended before it was done.
 */
int rdmatensor_fetch_settle(struct rdmatensor_fetch *fetch);

#endif /* RDMATENSOR_FETCH_H */
