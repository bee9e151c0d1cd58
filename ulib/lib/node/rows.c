// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rows of tables that a node offers. They are read by peers without a word to this process, so they
 * lie in pools of their own, which peers may read: one for each piece of memory, and of other memory
 * a copy, which belongs to the offer and goes with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* Rows that are offered begin with a page, and whole pages are offered */
#define PAGE 4096

/* 0: they do not fit, or are none */
static uint64_t row_bytes_of(const struct rdmatensor_tensor *rows)
{
	uint64_t bytes = rdmatensor_data_type_size(rows->data_type), all;
	uint32_t i;

	if (!rows->ndims || rows->ndims > RDMATENSOR_DIMS_MAX || !rows->dims[0])
		return 0;
	/* Opaque: nobody knows but the caller */
	if (!bytes)
		return rows->bytes % rows->dims[0] ? 0 : rows->bytes / rows->dims[0];
	for (i = 1; i < rows->ndims; i++)
		if (__builtin_mul_overflow(bytes, rows->dims[i], &bytes))
			return 0;
	if (__builtin_mul_overflow(bytes, rows->dims[0], &all) || (rows->bytes && rows->bytes != all))
		return 0;
	return bytes;
}

/* NULL: a negative errno in *err, and the line is stored */
static struct node_rows *alloc_rows(struct rdmatensor_node *node, uint64_t bytes, int *err)
{
	struct node_rows *rows = calloc(1, sizeof(*rows));
	uint64_t whole = bytes > UINT64_MAX - PAGE ? UINT64_MAX : (bytes + PAGE - 1) / PAGE * PAGE;

	*err = rows ? rdmatensor_pool_create_peers(node->rt, whole, RDMATENSOR_POOL_PEERS_READ,
						   &rows->pool) : -ENOMEM;
	if (!*err) {
		*err = rdmatensor_pool_alloc(node->rt, &rows->pool, whole, &rows->offset);
		if (!*err)
			return rows;
		rdmatensor_pool_destroy(node->rt, &rows->pool);
	}
	free(rows);
	node_fail(*err, "rows: %" PRIu64 " bytes: %s: free what is not needed with rdmatensor_node_free(), or raise the limit (max_pools, memory.max, ulimit -l, rdma.max)",
		  bytes, strerror(-*err));
	return NULL;
}

static void add_rows(struct rdmatensor_node *node, struct node_rows *rows)
{
	pthread_mutex_lock(&node->lock);
	rows->next = node->rows;
	node->rows = rows;
	pthread_mutex_unlock(&node->lock);
}

static char *first_byte(const struct node_rows *rows)
{
	return (char *)rows->pool.base + rows->offset;
}

void *rdmatensor_node_alloc_rows(struct rdmatensor_node *node, uint64_t bytes)
{
	struct node_rows *rows;
	int err;

	node_clear_error();
	if (!bytes) {
		node_fail(-EINVAL, "rows: 0 bytes: ask for at least one");
		return NULL;
	}
	if (node_start(node, NULL))
		return NULL;
	node_rows_retry(node);
	rows = alloc_rows(node, bytes, &err);
	if (!rows)
		return NULL;
	add_rows(node, rows);
	return first_byte(rows);
}

/* With the lock held: memory of rdmatensor_node_alloc_rows(), from a page's first byte on */
static struct node_rows *find_memory(struct rdmatensor_node *node, const void *data)
{
	struct node_rows *rows;

	for (rows = node->rows; rows; rows = rows->next)
		if (!rows->copied && !rows->doomed && (uintptr_t)data >= (uintptr_t)rows->pool.base &&
		    (uintptr_t)data - (uintptr_t)rows->pool.base < rows->pool.bytes)
			return rows;
	return NULL;
}

static const char *remedy_of(int err)
{
	switch (err) {
	case -EEXIST:
		return ": withdraw the rows of that name first";
	case -EINVAL:
		return ": a name has 1 to 512 bytes, a row 1 to 1048576, and all rows lie in one piece of memory";
	case -EUSERS:
		return ": the node offers 1024 tables: withdraw some";
	case -EDQUOT:
		return ": the RDMA cgroup allows no more memory regions: raise hca_object in its rdma.max";
	default:
		return "";
	}
}

static int export(struct rdmatensor_node *node, const char *name,
		  const struct rdmatensor_tensor *tensor, uint64_t first, uint64_t row_bytes,
		  const struct rdmatensor_pool *pool, uint64_t offset, uint32_t *table)
{
	int err = rdmatensor_table_export(node->rt, name, pool, offset, first,
					  first + tensor->dims[0], row_bytes, 0, tensor->data_type,
					  table);

	if (err)
		return node_fail(err, "rows: \"%s\": %s%s", name, strerror(-err), remedy_of(err));
	return 0;
}

/* The copy is the offer's, who ever withdraws that */
static int offer_copy(struct rdmatensor_node *node, struct node_offer *offer,
		      const struct rdmatensor_tensor *tensor, uint64_t first, uint64_t row_bytes)
{
	struct node_rows *rows;
	int err;

	node_rows_retry(node);
	rows = alloc_rows(node, row_bytes * tensor->dims[0], &err);
	if (!rows)
		return err;
	memcpy(first_byte(rows), tensor->data, row_bytes * tensor->dims[0]);
	err = export(node, offer->name, tensor, first, row_bytes, &rows->pool, rows->offset,
		     &offer->table);
	if (err) {
		rdmatensor_pool_destroy(node->rt, &rows->pool);
		free(rows);
		return err;
	}
	rows->copied = true;
	offer->copy = rows;
	add_rows(node, rows);
	return 0;
}

int rdmatensor_offer_rows(struct rdmatensor_node *node, const char *name,
			  const struct rdmatensor_tensor *rows, uint64_t first)
{
	uint64_t row_bytes = row_bytes_of(rows), offset;
	struct rdmatensor_pool pool;
	struct node_offer *offer;
	struct node_rows *memory;
	int err;

	node_clear_error();
	if (!row_bytes || !rows->data || first > UINT64_MAX - rows->dims[0])
		return node_fail(-EINVAL, "rows: \"%s\": no rows, or not those of the shape and type: give data, dims (the first one is the number of rows) and bytes 0",
				 name);
	err = node_start(node, NULL);
	if (err)
		return err;
	offer = calloc(1, sizeof(*offer) + strlen(name) + 1);
	if (!offer)
		return node_fail(-ENOMEM, "rows: \"%s\": out of memory", name);
	memcpy(offer->name, name, strlen(name) + 1);
	pthread_mutex_lock(&node->lock);
	memory = find_memory(node, rows->data);
	if (memory)
		pool = memory->pool;
	pthread_mutex_unlock(&node->lock);
	offer->memory = memory;
	offset = memory ? (uint64_t)((uintptr_t)rows->data - (uintptr_t)pool.base) : 1;
	err = offset % PAGE ? offer_copy(node, offer, rows, first, row_bytes) :
	      export(node, name, rows, first, row_bytes, &pool, offset, &offer->table);
	if (err) {
		free(offer);
		return err;
	}
	pthread_mutex_lock(&node->lock);
	offer->next = node->offers;
	node->offers = offer;
	pthread_mutex_unlock(&node->lock);
	return 0;
}

static void take_rows(struct rdmatensor_node *node, const struct node_rows *rows)
{
	struct node_rows **at;

	for (at = &node->rows; *at != rows; at = &(*at)->next)
		;
	*at = rows->next;
}

/*
 * With the lock held. Nobody needs the memory, but a table of the node's own may still have the rows:
 * then it goes when that is closed
 */
static void destroy_rows(struct rdmatensor_node *node, struct node_rows *rows)
{
	rows->doomed = true;
	if (rdmatensor_pool_destroy(node->rt, &rows->pool))
		return;
	take_rows(node, rows);
	free(rows);
}

void node_rows_retry(struct rdmatensor_node *node)
{
	struct node_rows *rows, *next;

	pthread_mutex_lock(&node->lock);
	for (rows = node->rows; rows; rows = next) {
		next = rows->next;
		if (rows->doomed)
			destroy_rows(node, rows);
	}
	pthread_mutex_unlock(&node->lock);
}

int rdmatensor_withdraw_rows(struct rdmatensor_node *node, const char *name)
{
	struct node_offer **at, *offer;

	node_clear_error();
	pthread_mutex_lock(&node->lock);
	for (at = &node->offers; *at && strcmp((*at)->name, name); at = &(*at)->next)
		;
	offer = *at;
	if (offer)
		*at = offer->next;
	pthread_mutex_unlock(&node->lock);
	if (!offer)
		return node_fail(-ENOENT, "rows: \"%s\": they are not offered", name);
	rdmatensor_table_close(node->rt, offer->table);
	if (offer->copy) {
		pthread_mutex_lock(&node->lock);
		destroy_rows(node, offer->copy);
		pthread_mutex_unlock(&node->lock);
	}
	free(offer);
	return 0;
}

/* With the lock held */
static bool is_offered(const struct rdmatensor_node *node, const struct node_rows *rows)
{
	const struct node_offer *offer;

	for (offer = node->offers; offer; offer = offer->next)
		if (offer->memory == rows)
			return true;
	return false;
}

int node_rows_free(struct rdmatensor_node *node, const void *data)
{
	struct node_rows *rows;
	int err = -ENOENT;

	pthread_mutex_lock(&node->lock);
	rows = find_memory(node, data);
	if (rows && first_byte(rows) == data) {
		err = is_offered(node, rows) ? -EBUSY : 0;
		if (!err)
			destroy_rows(node, rows);
	}
	pthread_mutex_unlock(&node->lock);
	return err;
}

void node_rows_end(struct rdmatensor_node *node)
{
	struct node_offer *offer;
	struct node_rows *rows;

	while ((offer = node->offers)) {
		node->offers = offer->next;
		free(offer);
	}
	while ((rows = node->rows)) {
		node->rows = rows->next;
		free(rows);
	}
}
