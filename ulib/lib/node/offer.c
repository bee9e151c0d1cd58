// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a node offers: published until it is withdrawn, from its own memory. Of other memory a copy
 * is offered, which belongs to the offer and goes with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* Length of the shape, or what the caller says; false: neither, or they do not fit */
static bool length_of(const struct rdmatensor_tensor *tensor, uint64_t *bytes)
{
	uint64_t size = rdmatensor_data_type_size(tensor->data_type), all = size;
	uint32_t i;

	/* Opaque: nobody knows but the caller */
	*bytes = tensor->bytes;
	if (!size)
		return true;
	for (i = 0; i < tensor->ndims; i++)
		if (__builtin_mul_overflow(all, tensor->dims[i], &all))
			return false;
	*bytes = all;
	return !tensor->bytes || tensor->bytes == all;
}

int node_check_offer(const char *name, const struct rdmatensor_tensor *tensor, uint64_t *bytes)
{
	size_t len = strlen(name);

	if (!len || len > RDMATENSOR_NAME_MAX)
		return node_fail(-EINVAL, "offer: \"%.64s%s\": a name of %zu bytes: give it 1 to %u",
				 name, len > 64 ? "..." : "", len, RDMATENSOR_NAME_MAX);
	if (tensor->data_type == RDMATENSOR_DT_INVALID || tensor->data_type > RDMATENSOR_DT_MAX)
		return node_fail(-EINVAL, "offer: \"%s\": data_type %u is none: give it one of enum rdmatensor_data_type",
				 name, tensor->data_type);
	if (tensor->ndims > RDMATENSOR_DIMS_MAX)
		return node_fail(-EINVAL, "offer: \"%s\": %u dimensions are more than %u: flatten some",
				 name, tensor->ndims, RDMATENSOR_DIMS_MAX);
	if (!length_of(tensor, bytes))
		return node_fail(-EINVAL, "offer: \"%s\": %" PRIu64 " bytes are not those of its shape and type: leave bytes 0, or correct the shape",
				 name, tensor->bytes);
	if (tensor->slice)
		return node_fail(-EINVAL, "offer: \"%s\": slice is set, which is of tensors that are got: set it to NULL",
				 name);
	if (*bytes && !tensor->data)
		return node_fail(-EINVAL, "offer: \"%s\": no data", name);
	if (*bytes && tensor->strides && !rdmatensor_data_type_size(tensor->data_type))
		return node_fail(-EINVAL, "offer: \"%s\": strides of an opaque type: set them to NULL",
				 name);
	return 0;
}

bool node_in_place(struct rdmatensor_node *node, const struct rdmatensor_tensor *tensor,
		   uint64_t bytes, struct rdmatensor_pool *pool, uint64_t *offset)
{
	return !bytes || (node_find(node, &node->sources, tensor->data, pool, offset) &&
			  (tensor->strides || *offset % RDMATENSOR_REGION_ALIGN == 0));
}

void node_prep_offer(struct rdmatensor_op *op, const char *name, int64_t step,
		     const struct rdmatensor_tensor *tensor, uint64_t bytes,
		     const struct rdmatensor_pool *pool, uint64_t offset)
{
	rdmatensor_prep_publish(op, name, step, bytes ? pool->id : 0, bytes ? offset : 0, bytes,
				tensor->data_type, tensor->ndims, tensor->dims, 0, 0);
	if (bytes && tensor->strides && tensor->data == (char *)pool->base + offset)
		rdmatensor_prep_strides(op, tensor->strides, tensor->ndims);
}

void node_copy_content(const struct rdmatensor_tensor *tensor, void *to, uint64_t bytes)
{
	if (tensor->strides)
		node_gather(tensor, to);
	else
		memcpy(to, tensor->data, bytes);
}

static int publish(struct rdmatensor_node *node, const char *name,
		   const struct rdmatensor_tensor *tensor, uint64_t bytes,
		   const struct rdmatensor_pool *pool, uint64_t offset)
{
	struct rdmatensor_op op;
	int err;

	node_prep_offer(&op, name, tensor->step, tensor, bytes, pool, offset);
	err = rdmatensor_submit(node->rt, &op, 1, 0, 0, NULL);
	if (err)
		return node_fail(err, "offer: \"%s\", step %" PRId64 ": %s%s", name,
				 tensor->step, strerror(-err), err == -EEXIST ?
				 ": withdraw the offer, or offer it as another step" : "");
	return 0;
}

static int offer_copy(struct rdmatensor_node *node, const char *name,
		      const struct rdmatensor_tensor *tensor, uint64_t bytes)
{
	struct node_copy *copy = calloc(1, sizeof(*copy) + strlen(name) + 1);
	struct rdmatensor_pool pool;
	uint64_t offset = 0;
	int err;

	if (!copy)
		return node_fail(-ENOMEM, "offer: \"%s\": out of memory", name);
	memcpy(copy->name, name, strlen(name) + 1);
	copy->step = tensor->step;
	copy->data = rdmatensor_node_alloc(node, bytes);
	if (!copy->data) {
		free(copy);
		return -ENOMEM;
	}
	node_copy_content(tensor, copy->data, bytes);
	node_find(node, &node->sources, copy->data, &pool, &offset);
	/* Together: who withdraws what is published finds its copy */
	pthread_mutex_lock(&node->lock);
	err = publish(node, name, tensor, bytes, &pool, offset);
	if (err) {
		pthread_mutex_unlock(&node->lock);
		rdmatensor_pool_free(node->rt, &pool, offset);
		free(copy);
		return err;
	}
	copy->next = node->copies;
	node->copies = copy;
	pthread_mutex_unlock(&node->lock);
	return 0;
}

int rdmatensor_offer(struct rdmatensor_node *node, const char *name,
		     const struct rdmatensor_tensor *tensor)
{
	struct rdmatensor_pool pool = { 0 };
	uint64_t offset = 0, bytes = 0;
	int err;

	node_clear_error();
	err = node_check_offer(name, tensor, &bytes);
	if (!err)
		err = node_start(node, NULL);
	if (err)
		return err;
	if (node_in_place(node, tensor, bytes, &pool, &offset))
		return publish(node, name, tensor, bytes, &pool, offset);
	return offer_copy(node, name, tensor, bytes);
}

/* Out of the list; NULL: it was not copied */
static struct node_copy *take_copy(struct rdmatensor_node *node, const char *name, int64_t step)
{
	struct node_copy **at, *copy;

	pthread_mutex_lock(&node->lock);
	for (at = &node->copies; *at && ((*at)->step != step || strcmp((*at)->name, name));)
		at = &(*at)->next;
	copy = *at;
	if (copy)
		*at = copy->next;
	pthread_mutex_unlock(&node->lock);
	return copy;
}

static void put_copy_back(struct rdmatensor_node *node, struct node_copy *copy)
{
	pthread_mutex_lock(&node->lock);
	copy->next = node->copies;
	node->copies = copy;
	pthread_mutex_unlock(&node->lock);
}

int rdmatensor_withdraw_offer(struct rdmatensor_node *node, const char *name, int64_t step)
{
	struct rdmatensor *rt = rdmatensor_node_handle(node);
	struct node_copy *copy;
	int err;

	node_clear_error();
	/* Before: another thread may offer the name again as soon as it is withdrawn */
	copy = take_copy(node, name, step);
	err = rt ? rt_withdraw(rt, name, step, node_deadline(node)) : -ENOENT;
	if (copy && err && err != -ENOENT) {
		put_copy_back(node, copy);
	} else if (copy) {
		rdmatensor_node_free(node, copy->data);
		free(copy);
	}
	if (err)
		return node_fail(err, "withdraw: \"%s\", step %" PRId64 ": %s", name, step,
				 err == -ENOENT ? "it is not offered" :
				 err == -EAGAIN ? NODE_NO_ROOM : strerror(-err));
	return 0;
}
