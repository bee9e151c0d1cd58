// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lists of what a peer offers, page by page. A page lies in memory that no peer can write, and is
 * copied from there to the caller's list. Cursors are those of one worker's life, so a list whose
 * channel went down begins anew by the next channel. A peer can not make it longer than it may be;
 * without a timeout it can make it last for ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

#define PAGE_BYTES (64u << 10)
/* Some millions of tensors */
#define LIST_MOST (256u << 20)

/**
 * struct lister - one call
 * @node: the node
 * @host: of the peer, "": the node itself
 * @prefix: of the names
 * @channel: to it
 * @deadline_ns: of all
 * @page: memory of the node's, of PAGE_BYTES,
 * @pool: in this pool,
 * @offset: there
 * @list: what has come
 * @bytes: of that
 * @room: of @list
 */
struct lister {
	struct rdmatensor_node *node;
	const char *host;
	const char *prefix;
	uint32_t channel;
	uint64_t deadline_ns;
	void *page;
	struct rdmatensor_pool pool;
	uint64_t offset;
	char *list;
	uint64_t bytes;
	uint64_t room;
};

static int fail(const struct lister *lister, int err, const char *why)
{
	const char *host = lister->host[0] ? lister->host : "this node";
	const char *remedy = err == -ETIMEDOUT ?
		": it needs more time (rdmatensor_node_timeout())" : "";

	return lister->prefix[0] ?
		node_fail(err, "list: %s, names that begin with \"%s\": %s%s", host, lister->prefix, why,
			  remedy) :
		node_fail(err, "list: %s: %s%s", host, why, remedy);
}

static int append(struct lister *lister, uint64_t bytes)
{
	uint64_t room = lister->room ? lister->room : PAGE_BYTES;
	char *list;

	if (!bytes)
		return 0;
	if (lister->bytes + bytes > LIST_MOST)
		return fail(lister, -EMSGSIZE,
			    "it is longer than 256 MiB: list parts of it, each by a longer prefix");
	while (room < lister->bytes + bytes)
		room *= 2;
	if (room > lister->room) {
		list = realloc(lister->list, room);
		if (!list)
			return fail(lister, -ENOMEM, "out of memory");
		lister->list = list;
		lister->room = room;
	}
	memcpy(lister->list + lister->bytes, lister->page, bytes);
	lister->bytes += bytes;
	return 0;
}

static int page_failed(struct lister *lister, const struct rdmatensor_cqe *cqe)
{
	char text[RDMATENSOR_STATUS_ROOM];

	if (!cqe->type && cqe->result == -EOPNOTSUPP)
		return fail(lister, cqe->result,
			    "the peer's module or this host's has no lists: install a newer one there");
	return fail(lister, cqe->result, node_status_text(lister->node, cqe, text, sizeof(text)));
}

/* All pages over one channel. Return: 0; a negative errno, *down: the channel has gone */
static int all_pages(struct lister *lister, bool *down)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t cursor = 0;
	int err;

	lister->bytes = 0;
	do {
		rdmatensor_prep_list(&op, lister->channel, lister->prefix, lister->pool.id,
				     lister->offset, PAGE_BYTES, cursor, lister->deadline_ns, 0);
		rt_run_many(lister->node->rt, &op, &cqe, 1);
		if (cqe.result) {
			*down = node_is_down(lister->node, lister->channel, cqe.result);
			return page_failed(lister, &cqe);
		}
		err = append(lister, cqe.tensor_bytes);
		cursor = rdmatensor_list_cursor(&cqe);
	} while (!err && cursor);
	return err;
}

static int connect_and_list(struct lister *lister)
{
	unsigned int vain = 0;
	uint32_t dead = 0;
	bool down;
	int err;

	do {
		if (lister->host[0]) {
			err = node_connect(lister->node, lister->host, dead, lister->deadline_ns,
					   &lister->channel);
			if (err)
				return err;
		}
		down = false;
		err = all_pages(lister, &down);
		dead = lister->channel;
		if (down && vain++ && node_pause(lister->node, vain - 1, lister->deadline_ns))
			return node_interrupted("list", lister->host);
	} while (down && (!lister->deadline_ns || rdmatensor_now_ns() < lister->deadline_ns));
	/* What a channel before this one has said */
	if (!err)
		node_clear_error();
	return err;
}

static int list(struct lister *lister)
{
	struct rdmatensor_node *node = lister->node;
	int err;

	err = node_alloc(node, &node->sources, PAGE_BYTES, &lister->page);
	if (err)
		return err;
	node_find(node, &node->sources, lister->page, &lister->pool, &lister->offset);
	err = connect_and_list(lister);
	rdmatensor_pool_free(node->rt, &lister->pool, lister->offset);
	return err;
}

int rdmatensor_list(struct rdmatensor_node *node, const char *peer, const char *prefix, void **out,
		    uint64_t *bytes)
{
	struct lister lister = {
		.node = node, .host = peer, .prefix = prefix ? prefix : "",
		.channel = RDMATENSOR_CHANNEL_SELF, .deadline_ns = node_deadline(node),
	};
	int err;

	*out = NULL;
	*bytes = 0;
	node_clear_error();
	if (strlen(lister.prefix) > RDMATENSOR_NAME_MAX)
		return node_fail(-EINVAL, "list: the prefix has more than %d bytes: no name is so long",
				 RDMATENSOR_NAME_MAX);
	err = node_start(node, *peer ? peer : NULL);
	if (!err)
		err = list(&lister);
	if (err) {
		free(lister.list);
		return err;
	}
	*out = lister.list;
	*bytes = lister.bytes;
	return 0;
}
