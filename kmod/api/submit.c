// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT: takes an array of operations, in order, until one is refused.
 *
 * Every operation is copied in once and checked before anything is changed; a refused one
 * has changed nothing. Names and texts are copied to a buffer of the call, and from there by
 * the code that keeps them.
 */
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "api/ioctl.h"
#include "context/channels.h"
#include "context/context.h"
#include "core/limits.h"
#include "fetch/fetch.h"
#include "fetch/generation.h"
#include "fetch/listing.h"
#include "fetch/local.h"
#include "fetch/publication.h"
#include "fetch/request.h"
#include "gather/gather.h"

/**
 * struct submit_room - one call's private memory
 * @op: the operation
 * @name: its name, or prefix
 * @publish: arguments, here because they are large
 * @layout: one of them
 */
struct submit_room {
	struct rdmatensor_op op;
	char name[RDMATENSOR_NAME_MAX];
	struct rdmatensor_publish_args publish;
	struct rdmatensor_layout layout;
};

/* Fields that an operation does not name must be 0: it names @fields of these */
#define USES_CHANNEL BIT(0)
#define USES_NAME BIT(1)
#define USES_POOL BIT(2)
#define USES_OFFSET BIT(3)
#define USES_BYTES BIT(4)
#define USES_DEADLINE BIT(5)
#define USES_META BIT(6)
#define USES_STATUS BIT(7)
#define USES_TARGET BIT(8)
#define USES_USES BIT(9)
#define USES_IDS BIT(10)
#define USES_PROXY BIT(11)
#define USES_PREFIX BIT(12)
#define USES_SLICE BIT(13)
#define USES_STEP BIT(14)
#define USES_STRIDES BIT(15)
#define USES_TYPE BIT(16)

static int submit_check(const struct rdmatensor_op *op, u32 fields, u16 flags)
{
	if (op->__reserved || op->flags & ~flags)
		return -EINVAL;
	if ((!(fields & USES_CHANNEL) && op->channel) ||
	    (!(fields & (USES_NAME | USES_PREFIX)) && (op->name_uptr || op->name_len)) ||
	    (!(fields & (USES_NAME | USES_STEP)) && op->step_id) ||
	    (!(fields & USES_POOL) && op->pool_id) ||
	    (!(fields & USES_OFFSET) && op->offset) ||
	    (!(fields & USES_BYTES) && op->bytes) ||
	    (!(fields & USES_DEADLINE) && op->deadline_ns) ||
	    (!(fields & (USES_META | USES_TYPE)) && op->data_type) ||
	    (!(fields & (USES_META | USES_SLICE)) && (op->ndims || op->dims_uptr)) ||
	    (!(fields & USES_STATUS) && op->status) ||
	    (!(fields & (USES_STATUS | USES_STRIDES)) && (op->text_uptr || op->text_len)) ||
	    (!(fields & USES_TARGET) && op->target) ||
	    (!(fields & USES_USES) && op->uses) ||
	    (!(fields & USES_IDS) && (op->ids_uptr || op->nr_ids || op->table)) ||
	    (!(fields & USES_PROXY) && op->proxy_pool_id))
		return -EINVAL;
	if (op->name_len > RDMATENSOR_NAME_MAX || (fields & USES_NAME && !op->name_len))
		return -EINVAL;
	return 0;
}

static int submit_name(struct submit_room *room)
{
	return copy_from_user(room->name, u64_to_user_ptr(room->op.name_uptr),
			      room->op.name_len) ? -EFAULT : 0;
}

static int submit_publish_meta(struct submit_room *room)
{
	struct rdmatensor_meta *meta = &room->publish.meta;
	const struct rdmatensor_op *op = &room->op;

	if (op->ndims > RDMATENSOR_DIMS_MAX || op->data_type > RDMATENSOR_DT_MAX)
		return -EINVAL;
	meta->data_type = op->data_type;
	meta->ndims = op->ndims;
	meta->is_dead = !!(op->flags & RDMATENSOR_OP_DEAD);
	meta->bytes = op->bytes;
	if (copy_from_user(meta->dims, u64_to_user_ptr(op->dims_uptr),
			   op->ndims * sizeof(*meta->dims)))
		return -EFAULT;
	return rdmatensor_meta_check(meta);
}

static int submit_publish_failed(struct submit_room *room)
{
	const struct rdmatensor_op *op = &room->op;

	return rdmatensor_status_from_user(&room->publish.failed, op->status, op->text_uptr,
					   op->text_len);
}

/* @most: out: of each dim. Return: 0, -EINVAL, -EFAULT */
static int submit_layout(const struct rdmatensor_op *op, struct rdmatensor_layout *layout,
			 u64 *most)
{
	struct rdmatensor_stride strides[RDMATENSOR_DIMS_MAX];
	unsigned int i;

	if (op->nr_strides > RDMATENSOR_DIMS_MAX)
		return -EINVAL;
	if (copy_from_user(strides, u64_to_user_ptr(op->strides_uptr),
			   op->nr_strides * sizeof(strides[0])))
		return -EFAULT;
	memset(layout, 0, sizeof(*layout));
	layout->ndims = op->nr_strides;
	for (i = 0; i < layout->ndims; i++) {
		layout->strides[i] = strides[i].bytes;
		most[i] = strides[i].most;
	}
	return rdmatensor_layout_check(layout);
}

/* Return: 0; -ERANGE: an element has no place; -EINVAL, -EFAULT */
static int submit_publish_layout(struct submit_room *room)
{
	struct rdmatensor_publish_args *args = &room->publish;
	u64 most[RDMATENSOR_DIMS_MAX];
	unsigned int i;
	int ret;

	ret = submit_layout(&room->op, &room->layout, most);
	if (ret)
		return ret;
	args->layout = &room->layout;
	for (i = 0; i < min(room->layout.ndims, args->meta.ndims); i++)
		if (args->meta.dims[i] > most[i])
			return -ERANGE;
	return 0;
}

static int submit_publish(struct rdmatensor_context *context, struct submit_room *room)
{
	struct rdmatensor_publish_args *args = &room->publish;
	const struct rdmatensor_op *op = &room->op;
	bool failed = op->flags & RDMATENSOR_OP_FAILED;
	int ret;

	ret = submit_check(op, (failed ? USES_NAME | USES_STATUS | USES_USES :
				USES_NAME | USES_USES | USES_POOL | USES_OFFSET | USES_BYTES |
				USES_META) |
			   (op->flags & RDMATENSOR_OP_GENERATION ? USES_TARGET : 0) |
			   (op->flags & RDMATENSOR_OP_STRIDES ? USES_STRIDES : 0),
			   (failed ? RDMATENSOR_OP_FAILED :
				     RDMATENSOR_OP_DEAD | RDMATENSOR_OP_COPY |
				     RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_SHARE) |
			   RDMATENSOR_OP_GENERATION);
	/* What is shared is the publisher's memory, whose place is all that is told of it */
	if (op->flags & RDMATENSOR_OP_SHARE &&
	    op->flags & (RDMATENSOR_OP_COPY | RDMATENSOR_OP_STRIDES))
		return -EINVAL;
	/* A generation lasts until the next one takes its place */
	if (op->flags & RDMATENSOR_OP_GENERATION && op->uses)
		return -EINVAL;
	if (!ret)
		ret = submit_name(room);
	if (ret)
		return ret;

	memset(args, 0, sizeof(*args));
	ret = failed ? submit_publish_failed(room) : submit_publish_meta(room);
	if (!ret && op->flags & RDMATENSOR_OP_STRIDES)
		ret = submit_publish_layout(room);
	if (ret)
		return ret;
	args->user_data = op->user_data;
	args->name = room->name;
	args->name_len = op->name_len;
	args->step_id = op->step_id;
	args->uses = op->uses;
	args->offset = op->offset;
	args->share = op->flags & RDMATENSOR_OP_SHARE;
	args->in_generation = op->flags & RDMATENSOR_OP_GENERATION;
	args->group = op->target;
	args->copy = op->flags & RDMATENSOR_OP_COPY ? &context->holdings->buffers : NULL;
	if (args->meta.bytes) {
		args->pool = rdmatensor_context_pool(context, op->pool_id);
		/* A region outside of any pool */
		if (!args->pool)
			return -EINVAL;
	}

	ret = rdmatensor_publish(&context->core, args);
	if (ret && args->pool)
		rdmatensor_pool_put(args->pool);
	rdmatensor_status_clear(&args->failed);
	return ret;
}

/* A REVEAL, or a WITHDRAW of a generation */
static int submit_generation(struct rdmatensor_context *context, const struct rdmatensor_op *op,
			     u16 flags,
			     int (*call)(struct rdmatensor_core *core,
					 const struct rdmatensor_generation_args *args))
{
	struct rdmatensor_generation_args args = {
		.user_data = op->flags & RDMATENSOR_OP_QUIET ? NULL : &op->user_data,
		.group = op->target,
		.step_id = op->step_id,
	};
	int ret;

	ret = submit_check(op, USES_TARGET | USES_STEP, flags | RDMATENSOR_OP_QUIET);
	return ret ?: call(&context->core, &args);
}

static int submit_reveal(struct rdmatensor_context *context, struct submit_room *room)
{
	return submit_generation(context, &room->op, 0, rdmatensor_reveal);
}

static int submit_withdraw(struct rdmatensor_context *context, struct submit_room *room)
{
	const struct rdmatensor_op *op = &room->op;
	int ret;

	if (op->flags & RDMATENSOR_OP_GENERATION)
		return submit_generation(context, op, RDMATENSOR_OP_GENERATION,
					 rdmatensor_withdraw_generation);
	ret = submit_check(op, USES_NAME | USES_TARGET, RDMATENSOR_OP_QUIET);
	if (!ret)
		ret = submit_name(room);
	if (ret)
		return ret;
	return rdmatensor_withdraw(&context->core,
				   op->flags & RDMATENSOR_OP_QUIET ? NULL : &op->user_data,
				   room->name, op->name_len, op->step_id, op->target);
}

/* From the context itself, without a destination: the content stays the publisher's */
static int submit_fetch_shared(struct rdmatensor_context *context,
			       struct rdmatensor_fetch_args *args,
			       const struct rdmatensor_op *op)
{
	if (op->channel != RDMATENSOR_CHANNEL_SELF || op->pool_id || op->offset || op->bytes)
		return -EINVAL;
	args->share = true;
	return rdmatensor_local_submit(&context->core, args);
}

/*
 * The process's own memory. It is pinned here, by its own task, as the fetch may wait for long
 * and a copy must find it there. Of 0 bytes there is nothing to pin: an empty range of the
 * proxy's pool is held in its place
 */
static int submit_fetch_in_process(struct rdmatensor_context *context,
				   struct rdmatensor_fetch_args *args,
				   const struct rdmatensor_op *op)
{
	args->in_process = true;
	args->base = op->offset;
	args->offset = 0;
	if (!op->bytes) {
		rdmatensor_pool_get(args->proxy);
		args->pool = args->proxy;
		return 0;
	}
	args->pool = rdmatensor_pools_pin(context, op->offset, op->bytes);
	if (IS_ERR(args->pool))
		return PTR_ERR(args->pool);
	args->base = ALIGN_DOWN(op->offset, PAGE_SIZE);
	args->offset = offset_in_page(op->offset);
	return 0;
}

static int submit_fetch_to(struct rdmatensor_context *context,
			   const struct rdmatensor_fetch_args *args, u32 id)
{
	struct rdmatensor_channel *channel;
	int ret;

	if (id == RDMATENSOR_CHANNEL_SELF)
		return rdmatensor_local_submit(&context->core, args);
	channel = rdmatensor_context_channel(context, id);
	if (!channel)
		return -ENOTCONN;
	ret = rdmatensor_request_submit(channel, args);
	rdmatensor_channel_put(channel);
	return ret;
}

static int submit_fetch_proxied(struct rdmatensor_context *context,
				struct rdmatensor_fetch_args *args,
				const struct rdmatensor_op *op)
{
	int ret;

	args->proxy = rdmatensor_context_pool(context, op->proxy_pool_id);
	if (!args->proxy)
		return -EINVAL;
	/* Before memory is pinned */
	ret = args->proxy->peers == RDMATENSOR_POOL_PEERS_WRITE ? 0 : -EACCES;
	if (ret)
		goto out_put_proxy;
	if (op->pool_id) {
		args->pool = rdmatensor_context_pool(context, op->pool_id);
		ret = args->pool ? 0 : -EINVAL;
	} else {
		ret = submit_fetch_in_process(context, args, op);
	}
	if (ret)
		goto out_put_proxy;
	ret = submit_fetch_to(context, args, op->channel);
	if (ret)
		goto out_put_pool;
	return 0;

out_put_pool:
	/* A process that tries again waits for what it had pinned */
	rdmatensor_pool_put_now(args->pool);
out_put_proxy:
	rdmatensor_pool_put(args->proxy);
	return ret;
}

/* What is wanted of the tensor, for the fetch to own; NULL: all. Or ERR_PTR */
static struct rdmatensor_fetch_slice *submit_slice(const struct rdmatensor_op *op)
{
	struct rdmatensor_fetch_slice *wanted;
	u32 ranges = max(op->ndims, 1U);
	int ret;

	if (!(op->flags & RDMATENSOR_OP_SLICE))
		return NULL;
	if (op->ndims > RDMATENSOR_DIMS_MAX)
		return ERR_PTR(-EINVAL);
	wanted = kzalloc(sizeof(*wanted), RDMATENSOR_GFP_SPARING);
	if (!wanted)
		return ERR_PTR(-ENOMEM);
	wanted->slice.ndims = op->ndims;
	ret = copy_from_user(wanted->slice.ranges, u64_to_user_ptr(op->dims_uptr),
			     ranges * sizeof(wanted->slice.ranges[0])) ? -EFAULT : 0;
	if (!ret)
		ret = rdmatensor_slice_check(&wanted->slice);
	if (ret) {
		kfree(wanted);
		return ERR_PTR(ret);
	}
	rdmatensor_wire_slice_put(&wanted->slice, &wanted->wire);
	return wanted;
}

/* Where it is to lie in the destination, for the fetch to own; NULL: together. Or ERR_PTR */
static struct rdmatensor_fetch_layout *submit_fetch_layout(const struct rdmatensor_op *op)
{
	struct rdmatensor_fetch_layout *layout;
	int ret;

	if (!(op->flags & RDMATENSOR_OP_STRIDES))
		return NULL;
	if (op->data_type > RDMATENSOR_DT_MAX)
		return ERR_PTR(-EINVAL);
	layout = kzalloc(sizeof(*layout), RDMATENSOR_GFP_SPARING);
	if (!layout)
		return ERR_PTR(-ENOMEM);
	layout->data_type = op->data_type;
	ret = submit_layout(op, &layout->layout, layout->most);
	if (ret) {
		kfree(layout);
		return ERR_PTR(ret);
	}
	rdmatensor_wire_layout_put(&layout->layout, &layout->wire);
	return layout;
}

/* To a place that peers write, or over one */
static int submit_fetch_placed(struct rdmatensor_context *context,
			       struct rdmatensor_fetch_args *args,
			       const struct rdmatensor_op *op)
{
	int ret;

	if (op->flags & RDMATENSOR_OP_PROXY)
		return submit_fetch_proxied(context, args, op);
	args->pool = rdmatensor_context_pool(context, op->pool_id);
	if (!args->pool)
		return -EINVAL;
	ret = submit_fetch_to(context, args, op->channel);
	if (ret)
		rdmatensor_pool_put(args->pool);
	return ret;
}

/* What may go together */
static u16 submit_fetch_flags(const struct rdmatensor_op *op)
{
	u16 parts = RDMATENSOR_OP_SLICE | RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_PROXY;
	u16 any = RDMATENSOR_OP_NEWEST | RDMATENSOR_OP_NOWAIT;

	if (op->flags & RDMATENSOR_OP_SHARE)
		return any | RDMATENSOR_OP_SHARE;
	if (op->flags & RDMATENSOR_OP_ALLOC)
		return any | RDMATENSOR_OP_ALLOC | RDMATENSOR_OP_SLICE;
	if (op->flags & (RDMATENSOR_OP_SLICE | RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_NEWEST))
		return any | parts;
	return any | RDMATENSOR_OP_KEEP | RDMATENSOR_OP_PROXY;
}

static int submit_fetch(struct rdmatensor_context *context, struct submit_room *room)
{
	const struct rdmatensor_op *op = &room->op;
	struct rdmatensor_fetch_args args = {
		.user_data = op->user_data,
		.name = room->name,
		.name_len = op->name_len,
		.step_id = op->step_id,
		.newest = op->flags & RDMATENSOR_OP_NEWEST,
		.now = op->flags & RDMATENSOR_OP_NOWAIT,
		.offset = op->offset,
		.bytes = op->bytes,
		.alloc = op->flags & RDMATENSOR_OP_ALLOC,
		.keep = op->flags & RDMATENSOR_OP_KEEP,
		.deadline_ns = op->deadline_ns,
	};
	int ret;

	ret = submit_check(op, USES_CHANNEL | USES_NAME | USES_POOL | USES_BYTES |
			   USES_DEADLINE | (args.alloc ? 0 : USES_OFFSET) |
			   (op->flags & RDMATENSOR_OP_PROXY ? USES_PROXY : 0) |
			   (op->flags & RDMATENSOR_OP_SLICE ? USES_SLICE : 0) |
			   (op->flags & RDMATENSOR_OP_STRIDES ? USES_STRIDES | USES_TYPE : 0),
			   submit_fetch_flags(op));
	if (!ret)
		ret = submit_name(room);
	if (ret)
		return ret;
	if (op->flags & RDMATENSOR_OP_SHARE)
		return submit_fetch_shared(context, &args, op);
	args.slice = submit_slice(op);
	if (IS_ERR(args.slice))
		return PTR_ERR(args.slice);
	args.layout = submit_fetch_layout(op);
	if (IS_ERR(args.layout)) {
		ret = PTR_ERR(args.layout);
		goto out_free_slice;
	}
	ret = submit_fetch_placed(context, &args, op);
	if (ret)
		goto out_free_layout;
	return 0;

out_free_layout:
	kfree(args.layout);
out_free_slice:
	kfree(args.slice);
	return ret;
}

static int submit_gather(struct rdmatensor_context *context, struct submit_room *room)
{
	const struct rdmatensor_op *op = &room->op;
	struct rdmatensor_gather_args args = {
		.user_data = op->user_data,
		.offset = op->offset,
		.bytes = op->bytes,
		.deadline_ns = op->deadline_ns,
		.ids_uptr = op->ids_uptr,
		.nr_ids = op->nr_ids,
		.wide = !(op->flags & RDMATENSOR_OP_IDS32),
	};
	int ret;

	ret = submit_check(op, USES_POOL | USES_OFFSET | USES_BYTES | USES_DEADLINE | USES_IDS,
			   RDMATENSOR_OP_IDS32);
	if (ret)
		return ret;
	args.table = rdmatensor_context_table(context, op->table);
	if (!args.table)
		return -ENOENT;
	args.pool = rdmatensor_context_pool(context, op->pool_id);
	ret = args.pool ? rdmatensor_gather_submit(&context->gathers, &args) : -EINVAL;
	if (ret) {
		if (args.pool)
			rdmatensor_pool_put(args.pool);
		rdmatensor_table_put(args.table);
	}
	return ret;
}

static int submit_list_from(struct rdmatensor_context *context,
			    const struct rdmatensor_listing_args *args, u32 id)
{
	struct rdmatensor_channel *channel;
	int ret;

	if (id == RDMATENSOR_CHANNEL_SELF)
		return rdmatensor_listing_local(&context->core, args);
	channel = rdmatensor_context_channel(context, id);
	if (!channel)
		return -ENOTCONN;
	ret = rdmatensor_listing_submit(channel, args);
	rdmatensor_channel_put(channel);
	return ret;
}

static int submit_list(struct rdmatensor_context *context, struct submit_room *room)
{
	const struct rdmatensor_op *op = &room->op;
	struct rdmatensor_listing_args args = {
		.user_data = op->user_data,
		.prefix = room->name,
		.prefix_len = op->name_len,
		.cursor = op->target,
		.offset = op->offset,
		.bytes = op->bytes,
		.deadline_ns = op->deadline_ns,
	};
	int ret;

	ret = submit_check(op, USES_CHANNEL | USES_PREFIX | USES_POOL | USES_OFFSET | USES_BYTES |
			   USES_DEADLINE | USES_TARGET, 0);
	if (!ret && (!op->bytes || !IS_ALIGNED(op->offset, sizeof(u64))))
		ret = -EINVAL;
	if (!ret)
		ret = submit_name(room);
	if (ret)
		return ret;
	args.pool = rdmatensor_context_pool(context, op->pool_id);
	if (!args.pool)
		return -EINVAL;
	ret = submit_list_from(context, &args, op->channel);
	if (ret)
		rdmatensor_pool_put(args.pool);
	return ret;
}

static int submit_cancel(struct rdmatensor_context *context, struct submit_room *room)
{
	int ret;

	ret = submit_check(&room->op, USES_TARGET, 0);
	if (ret)
		return ret;
	return rdmatensor_operation_cancel(&context->core, room->op.target) ? 0 : -ENOENT;
}

static int submit_free(struct rdmatensor_context *context, struct submit_room *room)
{
	struct rdmatensor_pool *pool;
	int ret;

	ret = submit_check(&room->op, USES_POOL | USES_OFFSET, 0);
	if (ret)
		return ret;
	pool = rdmatensor_context_pool(context, room->op.pool_id);
	if (!pool)
		return -EINVAL;
	ret = rdmatensor_regions_free(&pool->regions, room->op.offset);
	rdmatensor_pool_put(pool);
	return ret;
}

static int submit_release(struct rdmatensor_context *context, struct submit_room *room)
{
	int ret;

	ret = submit_check(&room->op, USES_TARGET, 0);
	if (ret)
		return ret;
	return rdmatensor_local_release(&context->core, room->op.target);
}

static int (*const submit_ops[])(struct rdmatensor_context *context,
				 struct submit_room *room) = {
	[RDMATENSOR_OP_PUBLISH] = submit_publish,
	[RDMATENSOR_OP_WITHDRAW] = submit_withdraw,
	[RDMATENSOR_OP_FETCH] = submit_fetch,
	[RDMATENSOR_OP_CANCEL] = submit_cancel,
	[RDMATENSOR_OP_FREE] = submit_free,
	[RDMATENSOR_OP_GATHER] = submit_gather,
	[RDMATENSOR_OP_RELEASE] = submit_release,
	[RDMATENSOR_OP_LIST] = submit_list,
	[RDMATENSOR_OP_REVEAL] = submit_reveal,
};

static int submit_one(struct rdmatensor_context *context, struct submit_room *room)
{
	u32 opcode = room->op.opcode;

	if (opcode >= ARRAY_SIZE(submit_ops))
		return -EOPNOTSUPP;
	return submit_ops[array_index_nospec(opcode, ARRAY_SIZE(submit_ops))](context, room);
}

int rdmatensor_ioctl_submit(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_submit *submit = arg;
	struct submit_room *room;
	int ret = 0;
	u32 i;

	submit->out_done = 0;
	submit->out_error = 0;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	if (submit->nr_ops > RDMATENSOR_SUBMIT_MAX ||
	    submit->wait_nr > context->core.ring.entries ||
	    (submit->nr_ops && submit->op_size < offsetofend(struct rdmatensor_op, target)) ||
	    submit->flags & ~RDMATENSOR_SUBMIT_HEAD ||
	    (submit->flags & RDMATENSOR_SUBMIT_HEAD ? submit->wait_nr : submit->wait_head))
		return -EINVAL;
	if (submit->op_size > PAGE_SIZE)
		return -E2BIG;
	rdmatensor_count(&context->core.counters, RDMATENSOR_STAT_SUBMITS);

	if (submit->nr_ops) {
		room = kmalloc(sizeof(*room), GFP_KERNEL);
		if (!room)
			return -ENOMEM;
		for (i = 0; !ret && i < submit->nr_ops; i++) {
			ret = copy_struct_from_user(&room->op, sizeof(room->op),
						    u64_to_user_ptr(submit->ops_uptr +
								    (u64)i * submit->op_size),
						    submit->op_size);
			if (!ret)
				ret = submit_one(context, room);
			if (!ret)
				submit->out_done++;
			cond_resched();
		}
		kfree(room);
	}
	if (ret) {
		submit->out_error = ret;
		return submit->out_done ? 0 : ret;
	}
	if (submit->flags & RDMATENSOR_SUBMIT_HEAD)
		ret = rdmatensor_ring_wait_head(&context->core.ring, submit->wait_head,
						submit->deadline_ns);
	else if (submit->wait_nr)
		ret = rdmatensor_ring_wait(&context->core.ring, submit->wait_nr,
					   submit->deadline_ns);
	return ret;
}
