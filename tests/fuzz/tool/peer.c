// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context with a peer, by the linker's --wrap: pools are allocated as long as they are, and
 * fetches end as the input has it.
 */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "fuzz.h"
#include "peer.h"

struct told peer;

size_t __sanitizer_get_current_allocated_bytes(void);

int __wrap_rdmatensor_pool_create(struct rdmatensor *rt, uint64_t bytes,
				  struct rdmatensor_pool *pool);
int __wrap_rdmatensor_pool_create_peers(struct rdmatensor *rt, uint64_t bytes,
					enum rdmatensor_pool_peers peers,
					struct rdmatensor_pool *pool);
int __wrap_rdmatensor_pool_alloc(struct rdmatensor *rt, const struct rdmatensor_pool *pool,
				 uint64_t bytes, uint64_t *offset);
int __wrap_rdmatensor_pool_destroy(struct rdmatensor *rt, struct rdmatensor_pool *pool);
int __wrap_rdmatensor_run_sized(struct rdmatensor *rt, const struct rdmatensor_op *op,
				size_t op_size, struct rdmatensor_cqe *cqe);
int __wrap_rdmatensor_submit_sized(struct rdmatensor *rt, const struct rdmatensor_op *ops,
				   size_t op_size, unsigned int nr, unsigned int wait_nr,
				   uint64_t deadline_ns, unsigned int *done);
unsigned int __wrap_rdmatensor_reap(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
				    unsigned int nr);
int __wrap_rdmatensor_similar(struct rdmatensor *rt, uint32_t channel, const char *name,
			      uint64_t deadline_ns, char *text, size_t len);
int __wrap_rdmatensor_query_sized(struct rdmatensor *rt, struct rdmatensor_query *query,
				    size_t size);
int __wrap_rdmatensor_channel_query_sized(struct rdmatensor *rt,
					  struct rdmatensor_channel_query *query, size_t size);
const char *__wrap_rdmatensor_status_text(struct rdmatensor *rt, const struct rdmatensor_cqe *cqe,
					  char *text, size_t len);
struct json_object *__wrap_json_tokener_parse_ex(struct json_tokener *tok, const char *text,
						 int len);
struct json_object *__real_json_tokener_parse_ex(struct json_tokener *tok, const char *text,
						 int len);

/* What was made last, to which all is fetched */
static struct rdmatensor_pool last;

/* Longer than any index: its length counts, and nothing is written to it */
#define POOL_MAX (1u << 20)
#define MOST_AT_ONCE 64

int __wrap_rdmatensor_pool_create(struct rdmatensor *rt, uint64_t bytes,
				  struct rdmatensor_pool *pool)
{
	(void)rt;
	HOLDS(bytes);
	memset(pool, 0, sizeof(*pool));
	pool->base = malloc(bytes < POOL_MAX ? bytes : POOL_MAX);
	HOLDS(pool->base);
	pool->id = 1;
	pool->bytes = bytes;
	last = *pool;
	peer.pools++;
	peer.pool_bytes = bytes;
	return 0;
}

int __wrap_rdmatensor_pool_create_peers(struct rdmatensor *rt, uint64_t bytes,
					enum rdmatensor_pool_peers peers,
					struct rdmatensor_pool *pool)
{
	/* What is fetched is written by the peer */
	HOLDS(peers == RDMATENSOR_POOL_PEERS_WRITE);
	return __wrap_rdmatensor_pool_create(rt, bytes, pool);
}

int __wrap_rdmatensor_pool_alloc(struct rdmatensor *rt, const struct rdmatensor_pool *pool,
				 uint64_t bytes, uint64_t *offset)
{
	(void)rt;
	HOLDS(bytes && bytes <= pool->bytes);
	*offset = 0;
	return 0;
}

int __wrap_rdmatensor_pool_destroy(struct rdmatensor *rt, struct rdmatensor_pool *pool)
{
	(void)rt;
	HOLDS(peer.pools-- && pool->base);
	free(pool->base);
	pool->base = NULL;
	return 0;
}

static void take(void *to, size_t bytes)
{
	size_t n = bytes < peer.size ? bytes : peer.size;

	memset(to, 0, bytes);
	memcpy(to, peer.data, n);
	peer.data += n;
	peer.size -= n;
}

/* Which the module has looked at: no more dims than there can be */
static void take_meta(struct rdmatensor_cqe *cqe)
{
	uint8_t head[2], dim;
	unsigned int i;

	take(head, sizeof(head));
	cqe->data_type = head[0] % (RDMATENSOR_DT_MAX + 2);
	cqe->ndims = head[1] % (RDMATENSOR_DIMS_MAX + 1);
	for (i = 0; i < cqe->ndims; i++) {
		take(&dim, 1);
		if (dim < 0xf0)
			cqe->dims[i] = dim;
		else
			take(&cqe->dims[i], sizeof(cqe->dims[i]));
	}
}

int __wrap_rdmatensor_run_sized(struct rdmatensor *rt, const struct rdmatensor_op *op,
				size_t op_size, struct rdmatensor_cqe *cqe)
{
	uint64_t bytes = op->bytes;

	(void)rt;
	HOLDS(op_size == sizeof(*op) && op->opcode == RDMATENSOR_OP_FETCH && !op->flags);
	HOLDS(op->name_len && op->pool_id == last.id && bytes <= last.bytes - op->offset);
	memset(cqe, 0, sizeof(*cqe));
	cqe->type = RDMATENSOR_CQE_FETCH;
	cqe->result = bytes ? peer.fetch : peer.late ? -ETIMEDOUT : peer.probe;
	peer.late = false;
	if (cqe->result && cqe->result != -EMSGSIZE)
		return cqe->result;
	cqe->flags = RDMATENSOR_CQE_META | (peer.dead ? RDMATENSOR_CQE_DEAD : 0);
	if (peer.text) {
		cqe->tensor_bytes = peer.text_bytes - (bytes ? peer.less : 0);
		cqe->data_type = RDMATENSOR_DT_STRING;
		if (!cqe->result && bytes)
			memcpy((char *)last.base + op->offset, peer.text, cqe->tensor_bytes);
	} else {
		take_meta(cqe);
	}
	return cqe->result;
}

/* Of what was submitted at once, each to be had once, the last one first */
static struct rdmatensor_cqe ended[MOST_AT_ONCE];
static unsigned int nr_ended;

int __wrap_rdmatensor_submit_sized(struct rdmatensor *rt, const struct rdmatensor_op *ops,
				   size_t op_size, unsigned int nr, unsigned int wait_nr,
				   uint64_t deadline_ns, unsigned int *done)
{
	unsigned int i;

	(void)deadline_ns;
	HOLDS(!nr_ended && nr && nr <= MOST_AT_ONCE && !wait_nr);
	for (i = 0; i < nr; i++) {
		__wrap_rdmatensor_run_sized(rt, &ops[i], op_size, &ended[i]);
		ended[i].user_data = ops[i].user_data;
	}
	nr_ended = nr;
	*done = nr;
	return 0;
}

unsigned int __wrap_rdmatensor_reap(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
				    unsigned int nr)
{
	(void)rt;
	HOLDS(nr);
	if (!nr_ended)
		return 0;
	*cqes = ended[--nr_ended];
	return 1;
}

/* It is not asked for names */
int __wrap_rdmatensor_similar(struct rdmatensor *rt, uint32_t channel, const char *name,
			      uint64_t deadline_ns, char *text, size_t len)
{
	(void)rt;
	(void)channel;
	HOLDS(*name && deadline_ns && len);
	*text = '\0';
	return 0;
}

int __wrap_rdmatensor_query_sized(struct rdmatensor *rt, struct rdmatensor_query *query,
				    size_t size)
{
	(void)rt;
	HOLDS(size == sizeof(*query));
	memset(query, 0, size);
	query->ring_entries = 64;
	return 0;
}

/* Whatever errno the peer tells: its channel is up */
int __wrap_rdmatensor_channel_query_sized(struct rdmatensor *rt,
					  struct rdmatensor_channel_query *query, size_t size)
{
	(void)rt;
	HOLDS(size == sizeof(*query));
	query->state = RDMATENSOR_CHANNEL_UP;
	return 0;
}

const char *__wrap_rdmatensor_status_text(struct rdmatensor *rt, const struct rdmatensor_cqe *cqe,
					  char *text, size_t len)
{
	(void)rt;
	snprintf(text, len, "%s", strerror(-cqe->result));
	return text;
}

/* Nothing of a tree is freed while it grows, so what it takes at its end is the most */
struct json_object *__wrap_json_tokener_parse_ex(struct json_tokener *tok, const char *text,
						 int len)
{
	size_t before = __sanitizer_get_current_allocated_bytes();
	struct json_object *tree = __real_json_tokener_parse_ex(tok, text, len);

	/* That of a header, not that of a name in it */
	if (*text == '{') {
		peer.tree_bytes = __sanitizer_get_current_allocated_bytes() - before;
		peer.tree_of = (size_t)len;
	}
	return tree;
}
