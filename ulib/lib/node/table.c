// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables that a node reads. The order of the ids and the rows of the cache lie in a pool of the table's
 * own, which no peer can reach. An owner that has gone ends the gathers from it: the first that hears
 * of it opens the table again, by new channels, while others wait for their turn, each for as long as
 * it may, and find that done; and all of them are repeated, which changes nothing anywhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* Rows that are read into the cache by one gather */
#define BATCH 65536

/**
 * struct rdmatensor_node_table
 * @node: the node
 * @nr: number of @owners and @channels
 * @owners: their addresses
 * @texts: what @owners point into
 * @cache: what is kept of the rows; row_end 0: nothing
 * @pool: for @cache and the order; id 0: there are none
 * @order_offset: of the order in it
 * @order_nr: its length, 0: there is none
 * @shape: two dims, type and bytes of a row
 * @rows: that the owners have
 * @turn: of the thread that opens the table, to which @shape, @rows and @channels belong
 * @channels: to the owners
 * @lock: guards what follows
 * @id: the kernel's; 0: it is to be opened
 * @opened: how often it was
 * @name: the table's
 */
struct rdmatensor_node_table {
	struct rdmatensor_node *node;
	unsigned int nr;
	const char **owners;
	char *texts;
	struct rdmatensor_table_cache cache;
	struct rdmatensor_pool pool;
	uint64_t order_offset;
	uint64_t order_nr;
	struct rdmatensor_tensor shape;
	uint64_t rows;
	sem_t turn;
	uint32_t *channels;
	pthread_mutex_t lock;
	uint32_t id;
	unsigned int opened;
	char name[];
};

static bool is_over(uint64_t deadline_ns)
{
	return deadline_ns && rdmatensor_now_ns() >= deadline_ns;
}

/*
 * What a peer that goes, starts, or is out of reach for a while ends a call with. That a channel is
 * down may be known later than what came of it
 */
static bool is_passing(int err)
{
	return err == -ENOTCONN || err == -ECONNRESET || err == -ESHUTDOWN ||
	       err == -ECONNREFUSED || err == -ETIMEDOUT || err == -EHOSTUNREACH ||
	       err == -ENETUNREACH || err == -EIO;
}

/* By the thread that opens. Return: 0; a negative errno, and the line is stored */
static int connect_owners(struct rdmatensor_node_table *table, uint64_t deadline_ns)
{
	struct rdmatensor_node *node = table->node;
	uint32_t channel;
	unsigned int i;
	int err;

	for (i = 0; i < table->nr; i++) {
		channel = table->channels[i];
		if (!*table->owners[i] || (channel && !node_is_down(node, channel, -ENOTCONN)))
			continue;
		err = node_connect(node, table->owners[i], channel, deadline_ns, &channel);
		if (err)
			return err;
		table->channels[i] = channel;
	}
	return 0;
}

/*
 * Of the first look, what the table is; later, whether it is the same. With an order the kernel tells
 * the number of ids, and not that of rows
 */
static int take_shape(struct rdmatensor_node_table *table, bool cached,
		      const struct rdmatensor_table_open *open)
{
	bool ordered = cached && table->order_nr;

	if (table->opened && (table->shape.bytes != open->out_row_bytes ||
			      table->shape.data_type != open->data_type ||
			      (!ordered && table->rows != open->out_rows)))
		return node_fail(-ESTALE, "table \"%s\": its owners have other rows than before: open it again",
				 table->name);
	if (!ordered)
		table->rows = open->out_rows;
	table->shape.bytes = open->out_row_bytes;
	table->shape.data_type = open->data_type;
	table->shape.ndims = 2;
	table->shape.dims[0] = table->order_nr ? table->order_nr : table->rows;
	table->shape.dims[1] = open->out_row_bytes /
			       (rdmatensor_data_type_size(open->data_type) ?: 1);
	return 0;
}

/* By the thread that opens. @cached: the copies are there. Return: as connect_owners() */
static int open_table(struct rdmatensor_node_table *table, bool cached, uint64_t deadline_ns,
		      uint32_t *id)
{
	struct rdmatensor_node *node = table->node;
	struct rdmatensor_table_open open = { .timeout_ms = node_left_ms(deadline_ns) };
	static const char begin[] = "table: ";
	const char *cause = open.cause;
	int err;

	if (cached && table->cache.row_end) {
		open.caches_uptr = rdmatensor_op_ptr(&table->cache);
		open.nr_caches = 1;
	}
	if (cached && table->order_nr) {
		open.flags = RDMATENSOR_TABLE_ORDER;
		open.order_pool_id = table->pool.id;
		open.order_offset = table->order_offset;
		open.order_nr = table->order_nr;
	}
	err = rdmatensor_table_open(node->rt, table->name, table->channels, table->nr, &open);
	if (err) {
		/* Of which table, the caller knows and the kernel does not say */
		if (!strncmp(cause, begin, strlen(begin)))
			cause += strlen(begin);
		return node_fail(err, "table \"%s\": %s", table->name, cause);
	}
	err = take_shape(table, cached, &open);
	if (err)
		rdmatensor_table_close(node->rt, open.out_table);
	*id = err ? 0 : open.out_table;
	return err;
}

/* An owner that goes meanwhile is waited for again, until the deadline */
static int try_to_open(struct rdmatensor_node_table *table, bool cached, uint64_t deadline_ns,
		       uint32_t *id)
{
	unsigned int vain = 0;
	int err;

	for (;;) {
		err = connect_owners(table, deadline_ns);
		if (!err)
			err = open_table(table, cached, deadline_ns, id);
		if (!is_passing(err) || is_over(deadline_ns))
			return err;
		if (node_pause(table->node, ++vain, deadline_ns))
			return node_interrupted("table", table->name);
	}
}

/* Return: 0; -ETIMEDOUT, -EINTR, and the line is stored */
static int take_turn(struct rdmatensor_node_table *table, uint64_t deadline_ns)
{
	int err;

	do
		err = node_turn(&table->turn, deadline_ns);
	while (err == -EINTR && !__atomic_load_n(&table->node->interruptible, __ATOMIC_RELAXED));
	if (err == -EINTR)
		return node_interrupted("table", table->name);
	if (err)
		return node_fail(err, "table \"%s\": an owner has gone, and is not there again within the timeout (rdmatensor_node_timeout())",
				 table->name);
	return 0;
}

/*
 * Opens it, or again if nobody else has since it was opened for the @opened-th time. Return: 0; a
 * negative errno, and the line is stored
 */
static int open_again(struct rdmatensor_node_table *table, bool cached, unsigned int opened,
		      uint64_t deadline_ns)
{
	uint32_t id = 0, former;
	int err;

	err = take_turn(table, deadline_ns);
	if (err)
		return err;
	pthread_mutex_lock(&table->lock);
	if (table->id && table->opened != opened) {
		pthread_mutex_unlock(&table->lock);
		goto out_end_turn;
	}
	former = table->id;
	table->id = 0;
	pthread_mutex_unlock(&table->lock);

	if (former)
		rdmatensor_table_close(table->node->rt, former);
	err = try_to_open(table, cached, deadline_ns, &id);

	pthread_mutex_lock(&table->lock);
	table->id = id;
	table->opened += !err;
	pthread_mutex_unlock(&table->lock);
	node_rows_retry(table->node);
out_end_turn:
	sem_post(&table->turn);
	return err;
}

/* The gather is to be repeated: an owner has gone, or the table was closed by who saw that first */
static bool is_gone(struct rdmatensor_node_table *table, int err, unsigned int opened)
{
	bool gone;

	if (err == -EINTR || err == -ERANGE)
		return false;
	pthread_mutex_lock(&table->lock);
	gone = err == -ESTALE || is_passing(err) || !table->id || table->opened != opened;
	pthread_mutex_unlock(&table->lock);
	return gone;
}

static int gather_failed(struct rdmatensor_node_table *table, int err,
			 const struct rdmatensor_cqe *cqe)
{
	char text[RDMATENSOR_STATUS_ROOM];

	return node_fail(err, "get rows: \"%s\": %s", table->name,
			 node_status_text(table->node, cqe, text, sizeof(text)));
}

/* Return: 0; a negative errno, and the line is stored */
static int gather(struct rdmatensor_node_table *table, bool cached, const uint64_t *ids, uint64_t nr,
		  const struct rdmatensor_pool *pool, uint64_t offset, uint64_t deadline_ns)
{
	unsigned int opened, vain = 0;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint32_t id;
	int err;

	for (;;) {
		pthread_mutex_lock(&table->lock);
		id = table->id;
		opened = table->opened;
		pthread_mutex_unlock(&table->lock);
		if (id) {
			rdmatensor_prep_gather(&op, id, ids, nr, pool->id, offset,
					       nr * table->shape.bytes, deadline_ns, 0);
			/* Which waits for a place in the ring */
			rt_run_many(table->node->rt, &op, &cqe, 1);
			err = cqe.result;
			if (!err || !is_gone(table, err, opened) || is_over(deadline_ns))
				return err ? gather_failed(table, err, &cqe) : 0;
			/* One that ends each gather at once is not to be flooded with them */
			if (++vain > 1 && node_pause(table->node, vain, deadline_ns))
				return node_interrupted("get rows", table->name);
		}
		err = open_again(table, cached, opened, deadline_ns);
		if (err)
			return err;
	}
}

/* The rows of the cache, from their owners */
static int fill_cache(struct rdmatensor_node_table *table, uint64_t deadline_ns)
{
	uint64_t row = table->cache.row_start, end = table->cache.row_end, nr, i;
	uint64_t *ids = calloc(BATCH, sizeof(*ids));
	int err = 0;

	if (!ids)
		return node_fail(-ENOMEM, "table \"%s\": out of memory", table->name);
	for (; !err && row < end; row += nr) {
		nr = end - row < BATCH ? end - row : BATCH;
		for (i = 0; i < nr; i++)
			ids[i] = row + i;
		err = gather(table, false, ids, nr, &table->pool, table->cache.offset +
			     (row - table->cache.row_start) * table->cache.stride, deadline_ns);
	}
	free(ids);
	return err;
}

/* Memory for the order and the cache. Return: 0; a negative errno, and the line is stored */
static int keep(struct rdmatensor_node_table *table,
		const struct rdmatensor_node_table_options *options)
{
	uint64_t rows = options->cache_end > options->cache_first ?
			options->cache_end - options->cache_first : 0;
	uint64_t order_bytes, cache_bytes, at, align = RDMATENSOR_REGION_ALIGN;
	int err;

	if (rows && options->cache_end > table->rows)
		return node_fail(-EINVAL, "table \"%s\": cache of rows %" PRIu64 " to %" PRIu64 ": the table has %" PRIu64,
				 table->name, options->cache_first, options->cache_end, table->rows);
	if (__builtin_mul_overflow(options->order ? options->order_nr : 0, sizeof(*options->order),
				   &order_bytes) || order_bytes > INT64_MAX / 4 ||
	    __builtin_mul_overflow(rows, table->shape.bytes, &cache_bytes) ||
	    cache_bytes > INT64_MAX / 4)
		return node_fail(-EOVERFLOW, "table \"%s\": cache and order are larger than any memory",
				 table->name);
	order_bytes = (order_bytes + align - 1) / align * align;
	if (!order_bytes && !cache_bytes)
		return 0;
	err = rdmatensor_pool_create_peers(table->node->rt, order_bytes + cache_bytes,
					   RDMATENSOR_POOL_PEERS_NONE, &table->pool);
	if (!err)
		err = rdmatensor_pool_alloc(table->node->rt, &table->pool,
					    order_bytes + cache_bytes, &at);
	if (err)
		return node_fail(err, "table \"%s\": %" PRIu64 " bytes for cache and order: %s: take less, or raise the limit (memory.max, ulimit -l, rdma.max)",
				 table->name, order_bytes + cache_bytes, strerror(-err));
	if (options->order) {
		table->order_offset = at;
		table->order_nr = options->order_nr;
		memcpy((char *)table->pool.base + at, options->order,
		       options->order_nr * sizeof(*options->order));
	}
	if (rows)
		table->cache = (struct rdmatensor_table_cache){
			.row_start = options->cache_first,
			.row_end = options->cache_end,
			.offset = at + order_bytes,
			.stride = table->shape.bytes,
			.pool_id = table->pool.id,
		};
	return 0;
}

/* Return: 0; a negative errno, and the line is stored */
static int begin(struct rdmatensor_node_table *table,
		 const struct rdmatensor_node_table_options *options)
{
	uint64_t deadline_ns = node_deadline(table->node);
	int err;

	err = open_again(table, false, 0, deadline_ns);
	if (err || !options)
		return err;
	err = keep(table, options);
	if (!err && table->cache.row_end)
		err = fill_cache(table, deadline_ns);
	/* With what is kept */
	if (!err && table->pool.id)
		err = open_again(table, true, table->opened, deadline_ns);
	return err;
}

static void free_table(struct rdmatensor_node_table *table)
{
	free(table->owners);
	free(table->texts);
	free(table->channels);
	sem_destroy(&table->turn);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static struct rdmatensor_node_table *alloc_table(struct rdmatensor_node *node, const char *name,
						 const char *const *owners, unsigned int nr)
{
	struct rdmatensor_node_table *table = calloc(1, sizeof(*table) + strlen(name) + 1);
	size_t room = 1;
	unsigned int i;
	char *at;

	if (!table)
		return NULL;
	table->node = node;
	table->nr = nr;
	memcpy(table->name, name, strlen(name) + 1);
	pthread_mutex_init(&table->lock, NULL);
	sem_init(&table->turn, 0, 1);
	table->owners = calloc(nr + 1, sizeof(*table->owners));
	table->channels = calloc(nr + 1, sizeof(*table->channels));
	for (i = 0; i < nr; i++)
		room += strlen(owners[i]) + 1;
	table->texts = malloc(room);
	if (!table->owners || !table->channels || !table->texts)
		goto out_free_table;
	/* Their channels are to be made, or are RDMATENSOR_CHANNEL_SELF */
	for (i = 0, at = table->texts; i < nr; i++, at += strlen(at) + 1)
		table->owners[i] = strcpy(at, owners[i]);
	return table;

out_free_table:
	free_table(table);
	return NULL;
}

static bool are_options(const struct rdmatensor_node_table_options *options)
{
	const uint64_t *reserved = options->__reserved;

	return !options->order == !options->order_nr &&
	       !(reserved[0] | reserved[1] | reserved[2] | reserved[3]);
}

int rdmatensor_node_table_open(struct rdmatensor_node *node, const char *name,
			       const char *const *owners, unsigned int nr,
			       const struct rdmatensor_node_table_options *options,
			       struct rdmatensor_node_table **out)
{
	struct rdmatensor_node_table *table;
	const char *other = NULL;
	unsigned int i;
	int err;

	*out = NULL;
	node_clear_error();
	if (!nr)
		return node_fail(-EINVAL, "table \"%s\": no owners: name the nodes that offer its rows",
				 name);
	if (options && !are_options(options))
		return node_fail(-EINVAL, "table \"%s\": an order without ids, or a reserved member that is not 0: clear the options, and give order and order_nr both or neither",
				 name);
	for (i = 0; i < nr && !other; i++)
		if (*owners[i])
			other = owners[i];
	err = node_start(node, other);
	if (err)
		return err;
	table = alloc_table(node, name, owners, nr);
	if (!table)
		return node_fail(-ENOMEM, "table \"%s\": out of memory", name);
	err = begin(table, options);
	if (err) {
		rdmatensor_node_table_close(table);
		return err;
	}
	*out = table;
	return 0;
}

void rdmatensor_node_table_shape(const struct rdmatensor_node_table *table,
				 struct rdmatensor_tensor *shape)
{
	*shape = table->shape;
}

/* Through a place of the node's, where the caller's own cannot be read into */
static int get_to(struct rdmatensor_node_table *table, const uint64_t *ids, uint64_t nr,
		  uint64_t bytes, struct rdmatensor_tensor *rows, uint64_t deadline_ns)
{
	struct rdmatensor_node *node = table->node;
	struct rdmatensor_pool pool;
	void *place = rows->data;
	uint64_t offset;
	int err;

	if (!place || !node_find(node, &node->landings, place, &pool, &offset) ||
	    offset % RDMATENSOR_REGION_ALIGN) {
		err = node_alloc(node, &node->landings, bytes, &place);
		if (err)
			return err;
		node_find(node, &node->landings, place, &pool, &offset);
	}
	err = gather(table, true, ids, nr, &pool, offset, deadline_ns);
	if (place != rows->data && rows->data && !err)
		memcpy(rows->data, place, bytes);
	if (place != rows->data && (rows->data || err))
		rdmatensor_pool_free(node->rt, &pool, offset);
	else
		rows->data = place;
	return err;
}

int rdmatensor_get_rows(struct rdmatensor_node_table *table, const uint64_t *ids, uint64_t nr,
			struct rdmatensor_tensor *rows)
{
	uint64_t bytes, room = rows->data ? rows->bytes : UINT64_MAX;
	int err = 0;

	node_clear_error();
	if (__builtin_mul_overflow(nr, table->shape.bytes, &bytes) || bytes > INT64_MAX / 2)
		return node_fail(-EOVERFLOW, "get rows: \"%s\": %" PRIu64 " rows are larger than any memory",
				 table->name, nr);
	if (bytes > room) {
		rows->bytes = bytes;
		return node_fail(-EMSGSIZE, "get rows: \"%s\": %" PRIu64 " rows take %" PRIu64 " bytes, and there is room for %" PRIu64,
				 table->name, nr, bytes, room);
	}
	if (bytes)
		err = get_to(table, ids, nr, bytes, rows, node_deadline(table->node));
	if (err)
		return err;
	rows->bytes = bytes;
	rows->data_type = table->shape.data_type;
	rows->ndims = 2;
	rows->dims[0] = nr;
	rows->dims[1] = table->shape.dims[1];
	return 0;
}

void rdmatensor_node_table_close(struct rdmatensor_node_table *table)
{
	if (!table)
		return;
	if (table->id)
		rdmatensor_table_close(table->node->rt, table->id);
	if (table->pool.id)
		rdmatensor_pool_destroy(table->node->rt, &table->pool);
	node_rows_retry(table->node);
	free_table(table);
}
