// SPDX-License-Identifier: GPL-2.0
/*
 * TABLE_EXPORT, TABLE_OPEN, TABLE_CLOSE.
 *
 * TABLE_OPEN waits for peers, so it holds no lock of the context. What it has made so
 * far is in the table that it builds, and goes with it if something fails.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/uaccess.h>
#include "api/ioctl.h"
#include "context/channels.h"
#include "context/context.h"
#include "core/fault.h"

/* Tries, when a table is exported again while it is queried piece by piece */
#define TABLES_TRIES 3

/* Flags of TABLE_OPEN that exclude each other */
#define TABLES_ORDER (RDMATENSOR_TABLE_ORDER | RDMATENSOR_TABLE_ORDER32)

/* Return: the name, to be freed; ERR_PTR: -ENOTCONN, -EINVAL, -EFAULT, -ENOMEM */
static char *tables_take_name(struct rdmatensor_context *context, u64 uptr, u32 len)
{
	if (!rdmatensor_context_started(context))
		return ERR_PTR(-ENOTCONN);
	if (!len || len > RDMATENSOR_NAME_MAX)
		return ERR_PTR(-EINVAL);
	return memdup_user(u64_to_user_ptr(uptr), len);
}

static bool tables_may_export(const struct rdmatensor_table_export *export, u64 stride)
{
	return !export->flags && export->row_start < export->row_end &&
	       export->row_end <= S64_MAX && export->row_bytes &&
	       export->row_bytes <= RDMATENSOR_ROW_MAX && stride >= export->row_bytes &&
	       export->data_type != RDMATENSOR_DT_INVALID &&
	       export->data_type <= RDMATENSOR_DT_MAX;
}

int rdmatensor_ioctl_table_export(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_table_export *export = arg;
	struct rdmatensor_export_args args = {
		.name_len = export->name_len,
		.offset = export->offset,
		.info = {
			.row_start = export->row_start,
			.row_end = export->row_end,
			.row_bytes = export->row_bytes,
			.stride = export->stride ?: export->row_bytes,
			.data_type = export->data_type,
		},
	};
	struct rdmatensor_export *made;
	char *name;
	u32 id;
	int ret;

	if (!tables_may_export(export, args.info.stride))
		return -EINVAL;
	name = tables_take_name(context, export->name_uptr, export->name_len);
	if (IS_ERR(name))
		return PTR_ERR(name);
	args.name = name;
	args.pool = rdmatensor_context_pool(context, export->pool_id);
	ret = -ENOENT;
	if (!args.pool)
		goto out_free_name;

	ret = rdmatensor_context_tables_reserve(context, &id);
	if (ret)
		goto out_put_pool;

	down_read(&context->device_use);
	rdmatensor_hold("table_export");
	made = READ_ONCE(context->gone) ? ERR_PTR(-ENODEV) :
	       rdmatensor_export_create(&context->exports, context->domain, &args);
	if (!IS_ERR(made)) {
		export->out_table = id;
		/* It may be closed from here on */
		rdmatensor_context_tables_add_export(context, id, made);
	}
	up_read(&context->device_use);
	kfree(name);
	if (!IS_ERR(made))
		return 0;

	rdmatensor_context_tables_unreserve(context, id);
	rdmatensor_pool_put(args.pool);
	return PTR_ERR(made);

out_put_pool:
	rdmatensor_pool_put(args.pool);
out_free_name:
	kfree(name);
	return ret;
}

static const char *tables_remedy(int error)
{
	switch (error) {
	case -ENOENT:
		return "it does not export that table; export it there";
	case -ENOTCONN:
		return "there is no such channel, or it has ended; connect first";
	case -EOPNOTSUPP:
		return "the peer has connected it, and listens nowhere; START it with a listener";
	case -ETIMEDOUT:
		return "it does not answer in time";
	case -EAGAIN:
		return "its owner keeps exporting the table again; retry when that has settled";
	case -EPROTO:
		return "what it says cannot be; compare the versions on both sides";
	case -ECONNREFUSED:
		return "it refuses lanes for reads; see the kernel log of both sides";
	case -EINTR:
		return "interrupted by a signal";
	case -ENODEV:
		return "the RDMA device is gone";
	case -EDQUOT:
		return "the RDMA cgroup allows no more queue pairs; raise rdma.max (hca_object)";
	default:
		return "see the kernel log of both sides";
	}
}

static void tables_cause(struct rdmatensor_table_open *open, const char *worker, u32 channel,
			 const char *step, int error)
{
	snprintf(open->cause, sizeof(open->cause),
		 "table: could not %s '%s' at channel %u (%d): %s", step, worker, channel, error,
		 tables_remedy(error));
}

static void tables_say_wait(const struct rdmatensor_context *context,
			    const struct rdmatensor_table *table, const char *worker,
			    unsigned long deadline)
{
	pr_info_ratelimited("worker '%s': table '%*pE': '%s' does not export it yet: waiting for it, up to %u ms\n",
			    context->worker, min_t(int, table->name_len, 64), table->name, worker,
			    jiffies_to_msecs(max_t(long, deadline - jiffies, 1)));
}

static int tables_ask_once(struct rdmatensor_channel *channel,
			   const struct rdmatensor_table *table, bool wait,
			   unsigned long deadline, struct rdmatensor_lookup_result *result)
{
	int tries, ret = -EAGAIN;

	for (tries = 0; ret == -EAGAIN && tries < TABLES_TRIES; tries++)
		ret = rdmatensor_lookup_run(channel, table->name, table->name_len, wait,
					    deadline, result);
	return ret;
}

/*
 * The first question is answered at once, which tells a peer without the table from one that
 * is silent. The peer holds the second until it exports the table
 */
static int tables_ask(struct rdmatensor_context *context, struct rdmatensor_channel *channel,
		      const struct rdmatensor_table *table, bool wait, unsigned long deadline,
		      struct rdmatensor_lookup_result *result)
{
	int tries, ret;

	ret = tables_ask_once(channel, table, false, deadline, result);
	if (ret != -ENOENT || !wait ||
	    !(channel->features & RDMATENSOR_WIRE_FEATURE_TABLE_WAIT))
		return ret;
	tables_say_wait(context, table, channel->worker, deadline);
	/* It may be withdrawn before its answer is sent */
	for (tries = 0; ret == -ENOENT && tries < TABLES_TRIES; tries++)
		ret = tables_ask_once(channel, table, true, deadline, result);
	return ret == -ETIMEDOUT ? -ENOENT : ret;
}

static int tables_open_remote(struct rdmatensor_context *context,
			      struct rdmatensor_table_open *open, struct rdmatensor_table *table,
			      u32 i, u32 id, unsigned long deadline)
{
	struct rdmatensor_lookup_result result = {};
	struct rdmatensor_channel *channel;
	const char *step = "ask";
	int ret;

	channel = rdmatensor_context_channel(context, id);
	if (!channel) {
		tables_cause(open, "", id, step, -ENOTCONN);
		return -ENOTCONN;
	}
	/* The contents of its HELLO are valid: pairs with channel_try_move() */
	if (smp_load_acquire(&channel->state) != RDMATENSOR_CHANNEL_UP)
		ret = -ENOTCONN;
	else if (!rdmatensor_readers_reachable(channel->readers))
		ret = -EOPNOTSUPP;
	else
		ret = tables_ask(context, channel, table, !(open->flags & RDMATENSOR_TABLE_NOWAIT),
				 deadline, &result);
	if (!ret) {
		step = "connect lanes to";
		ret = rdmatensor_readers_connect(channel->readers, context->gathers.lanes,
						 jiffies_to_msecs(max_t(long, deadline - jiffies,
									1)), NULL);
	}
	if (ret) {
		tables_cause(open, channel->worker, id, step, ret);
		goto out_put;
	}
	rdmatensor_readers_get(channel->readers);
	rdmatensor_table_set_remote(&table->sources[i], channel, channel->readers, &result);
	ret = rdmatensor_table_owner(table, i, &result.info, open->cause, sizeof(open->cause));
out_put:
	kvfree(result.rkeys);
	rdmatensor_channel_put(channel);
	return ret;
}

/**
 * struct tables_own_wait - a call that waits for an export of its own context
 * @waiter: in the list of waiters
 * @context: the context
 * @exported: it has come
 */
struct tables_own_wait {
	struct rdmatensor_export_waiter waiter;
	struct rdmatensor_context *context;
	bool exported;
};

static void tables_own_exported(struct rdmatensor_export_waiter *waiter)
{
	struct tables_own_wait *wait = container_of(waiter, struct tables_own_wait, waiter);

	WRITE_ONCE(wait->exported, true);
	wake_up_all(&wait->context->removal);
}

/* Return: 0: it may be there now; -EINTR, -ENODEV */
static int tables_wait_own(struct rdmatensor_context *context,
			   const struct rdmatensor_table *table, unsigned long deadline)
{
	struct tables_own_wait wait = {
		.waiter = {
			.item = LIST_HEAD_INIT(wait.waiter.item),
			.name = table->name,
			.name_len = table->name_len,
			.exported = tables_own_exported,
		},
		.context = context,
	};
	long left;

	if (!rdmatensor_export_wait(&context->exports, &wait.waiter))
		return 0;
	tables_say_wait(context, table, context->worker, deadline);
	left = wait_event_interruptible_timeout(context->removal, READ_ONCE(wait.exported) ||
						READ_ONCE(context->gone),
						max_t(long, deadline - jiffies, 1));
	/* From here on it is not called */
	rdmatensor_export_unwait(&context->exports, &wait.waiter);
	if (READ_ONCE(context->gone))
		return -ENODEV;
	return left < 0 ? -EINTR : 0;
}

static int tables_open_own(struct rdmatensor_context *context,
			   struct rdmatensor_table_open *open, struct rdmatensor_table *table,
			   u32 i, unsigned long deadline)
{
	struct rdmatensor_export *export;
	int ret;

	if (!(open->flags & RDMATENSOR_TABLE_NOWAIT)) {
		ret = tables_wait_own(context, table, deadline);
		if (ret) {
			tables_cause(open, context->worker, RDMATENSOR_CHANNEL_SELF, "wait for",
				     ret);
			return ret;
		}
	}
	export = rdmatensor_export_find(&context->exports, table->name, table->name_len);
	if (!export) {
		snprintf(open->cause, sizeof(open->cause),
			 "table: this context does not export it; export it first");
		return -ENOENT;
	}
	rdmatensor_table_set_own(&table->sources[i], export, context->worker);
	return rdmatensor_table_owner(table, i, &export->info, open->cause, sizeof(open->cause));
}

static int tables_open_owners(struct rdmatensor_context *context,
			      struct rdmatensor_table_open *open, struct rdmatensor_table *table)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(open->timeout_ms ?:
							    context->params.connect_ms);
	u32 i, *channels;
	int ret = 0;

	channels = memdup_user(u64_to_user_ptr(open->channels_uptr),
			       array_size(open->nr_channels, sizeof(*channels)));
	if (IS_ERR(channels))
		return PTR_ERR(channels);
	for (i = 0; !ret && i < open->nr_channels; i++)
		ret = channels[i] == RDMATENSOR_CHANNEL_SELF ?
		      tables_open_own(context, open, table, i, deadline) :
		      tables_open_remote(context, open, table, i, channels[i], deadline);
	kfree(channels);
	return ret;
}

static int tables_open_caches(struct rdmatensor_context *context,
			      struct rdmatensor_table_open *open, struct rdmatensor_table *table)
{
	struct rdmatensor_table_cache cache;
	struct rdmatensor_pool *pool;
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < open->nr_caches; i++) {
		if (copy_from_user(&cache, u64_to_user_ptr(open->caches_uptr +
							   i * sizeof(cache)), sizeof(cache)))
			return -EFAULT;
		pool = rdmatensor_context_pool(context, cache.pool_id);
		ret = pool ? rdmatensor_table_set_cache(table, i, &cache, pool) : -EINVAL;
		if (ret && pool)
			rdmatensor_pool_put(pool);
		if (ret)
			snprintf(open->cause, sizeof(open->cause),
				 "table: cache %u: its fields are out of range, or its rows are in no region of a pool that is held, or in one that the CPU cannot reach (%d)",
				 i, ret);
	}
	return ret;
}

static int tables_open_order(struct rdmatensor_context *context,
			     struct rdmatensor_table_open *open, struct rdmatensor_table *table)
{
	struct rdmatensor_pool *pool;
	int ret;

	if (!(open->flags & TABLES_ORDER))
		return 0;
	pool = rdmatensor_context_pool(context, open->order_pool_id);
	ret = pool ? rdmatensor_table_set_order(table, pool, open->order_offset, open->order_nr,
						open->flags & RDMATENSOR_TABLE_ORDER) : -EINVAL;
	if (ret && pool)
		rdmatensor_pool_put(pool);
	if (ret)
		snprintf(open->cause, sizeof(open->cause),
			 "table: the order is empty, or in no region of a pool that is held, or in one that the CPU cannot reach (%d)",
			 ret);
	return ret;
}

static int tables_build(struct rdmatensor_context *context, struct rdmatensor_table_open *open,
			const char *name, struct rdmatensor_table **out)
{
	struct rdmatensor_table *table;
	int ret;

	table = rdmatensor_table_alloc(name, open->name_len, open->nr_channels, open->nr_caches);
	if (IS_ERR(table))
		return PTR_ERR(table);
	ret = tables_open_owners(context, open, table);
	if (!ret)
		ret = tables_open_caches(context, open, table);
	if (!ret)
		ret = tables_open_order(context, open, table);
	if (!ret)
		ret = rdmatensor_table_complete(table, open->cause, sizeof(open->cause));
	if (ret) {
		rdmatensor_table_put(table);
		return ret;
	}
	*out = table;
	return 0;
}

int rdmatensor_ioctl_table_open(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_table_open *open = arg;
	struct rdmatensor_table *table;
	char *name;
	int ret;

	memset(open->cause, 0, sizeof(open->cause));
	if (open->flags & ~(TABLES_ORDER | RDMATENSOR_TABLE_NOWAIT) ||
	    (open->flags & TABLES_ORDER) == TABLES_ORDER ||
	    (!(open->flags & TABLES_ORDER) &&
	     (open->order_pool_id || open->order_offset || open->order_nr)) ||
	    open->__reserved || !open->nr_channels ||
	    open->nr_channels > RDMATENSOR_OWNERS_MAX || open->nr_caches > RDMATENSOR_OWNERS_MAX)
		return -EINVAL;
	name = tables_take_name(context, open->name_uptr, open->name_len);
	if (IS_ERR(name))
		return PTR_ERR(name);
	ret = tables_build(context, open, name, &table);
	kfree(name);
	if (ret)
		return ret;

	ret = rdmatensor_context_tables_reserve(context, &open->out_table);
	if (!ret) {
		open->data_type = table->data_type;
		open->out_rows = rdmatensor_table_ids(table);
		open->out_row_bytes = table->row_bytes;
		rdmatensor_context_tables_add_opened(context, open->out_table, table);
	} else {
		snprintf(open->cause, sizeof(open->cause), "table: %s",
			 ret == -EUSERS ? "this context has 1024 of them; close some" :
			 ret == -ENODEV ? "the RDMA device is gone" : "out of memory");
		rdmatensor_table_put(table);
	}
	return ret;
}

int rdmatensor_ioctl_table_close(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_table_close *close = arg;

	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	return rdmatensor_context_tables_remove(context, close->table);
}
