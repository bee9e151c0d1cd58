// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: dumps of contexts, channels, pools, requests, tables, tensors and domains.
 *
 * A dump continues by ids: args[0] is the last context that was dumped whole, args[1] the
 * last of its objects that was sent; for requests, args[1] and those after it hold their place
 * in the table. Ids grow and are not reused soon, so that an object that appears or vanishes
 * meanwhile is shown or not, and every other one exactly once. The generation of the network
 * namespace's contexts marks a dump during which that happened.
 *
 * Domains have ids of their own. The pools of those that no context has joined come after those
 * of all contexts: args[5] is set by then, and args[0] is the last domain that was dumped whole.
 * For pools args[2] is the domain that args[1] is in.
 *
 * A context is held while it is read, and its lock is taken for what START, POOL_CREATE and
 * the device's removal change.
 */
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "api/netlink.h"
#include "context/channels.h"
#include "context/context.h"
#include "context/holdings_list.h"
#include "core/compat.h"
#include "core/nl_event.h"
#include "fetch/operation.h"
#include "memory/memory.h"
#include "rdmatensor_netlink.h"

#define NETLINK_CHANNEL_BYTES 8192

static struct genl_family netlink_family;

/* Fills one message. Return: 0, -EMSGSIZE: no space */
typedef int (*netlink_fill_fn)(struct sk_buff *skb, struct rdmatensor_context *context,
			       const void *object);

static struct rdmatensor_context *to_context(struct rdmatensor_context_listed *listed)
{
	return container_of(listed, struct rdmatensor_context, listed);
}

/* @values[i] as type @first + i; @sparse: without those that are 0 */
static int netlink_put_values(struct sk_buff *skb, int attr, const u64 *values, int nr,
			      int first, bool sparse)
{
	struct nlattr *nest = nla_nest_start(skb, attr);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < nr; i++) {
		if (sparse && !values[i])
			continue;
		if (nla_put_u64_64bit(skb, first + i, values[i], 0))
			return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int netlink_put_sums(struct sk_buff *skb, struct rdmatensor_sums *sum)
{
	return netlink_put_values(skb, RDMATENSOR_NL_A_COUNTERS, sum->tally.stats,
				  RDMATENSOR_STAT_NR, 1, false) ?:
	       netlink_put_values(skb, RDMATENSOR_NL_A_LATENCY, sum->tally.latency,
				  RDMATENSOR_NL_LATENCY_NR, 1, true) ?:
	       netlink_put_values(skb, RDMATENSOR_NL_A_ERRORS, sum->errors,
				  RDMATENSOR_NL_ERRORS_NR, 1, true);
}

/* What the device says, with the context's lock: START, and the device that may go */
static int netlink_put_adapter(struct sk_buff *skb, const struct rdmatensor_context *context)
{
	const struct rdmatensor_adapter *adapter = &context->adapter;

	if (context->gone)
		return 0;
	if (nla_put_string(skb, RDMATENSOR_NL_A_DEVICE, adapter->ibdev->name) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_PORT, adapter->port) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_GID_INDEX, adapter->gid_index) ||
	    nla_put(skb, RDMATENSOR_NL_A_GID, sizeof(adapter->gid), &adapter->gid) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_MTU, ib_mtu_enum_to_int(adapter->mtu)))
		return -EMSGSIZE;
	if (context->cm.listener &&
	    nla_put_u32(skb, RDMATENSOR_NL_A_LISTEN_PORT, context->cm.listen_port))
		return -EMSGSIZE;
	return 0;
}

static int netlink_fill_context(struct sk_buff *skb, struct rdmatensor_context *context,
				const void *object)
{
	struct rdmatensor_sums *sum;
	int ret;

	if (nla_put_u32(skb, RDMATENSOR_NL_A_PID,
			pid_nr_ns(context->pid, task_active_pid_ns(current))) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_COMM, context->comm) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_INCARNATION, context->incarnation,
			      RDMATENSOR_NL_A_PAD) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_CHOICE, context->chosen) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_CHANNELS, atomic_read(&context->nr_channels)))
		return -EMSGSIZE;

	mutex_lock(&context->lock);
	ret = nla_put_u32(skb, RDMATENSOR_NL_A_DOMAIN, context->holdings->id) ?:
	      nla_put_u32(skb, RDMATENSOR_NL_A_POOLS,
			  rdmatensor_holdings_nr_pools(context->holdings)) ?:
	      netlink_put_adapter(skb, context);
	mutex_unlock(&context->lock);
	if (ret)
		return ret;

	sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	if (!sum)
		return -ENOMEM;
	rdmatensor_core_sum(&context->core, sum);
	ret = netlink_put_sums(skb, sum);
	kfree(sum);
	return ret;
}

/* Any context. @type: of the nest */
static int netlink_put_qp(struct sk_buff *skb, int type, const struct rdmatensor_qp_attr *attr)
{
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest || nla_put_u32(skb, RDMATENSOR_NL_A_QPN, attr->qpn) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_MTU, attr->mtu) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_TIMEOUT, attr->timeout) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_RETRY_COUNT, attr->retry_count) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_RNR_RETRY, attr->rnr_retry) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_SL, attr->sl) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_TRAFFIC_CLASS, attr->traffic_class) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_SEND_DEPTH, attr->send_depth) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_RECV_DEPTH, attr->recv_depth) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_COMP_VECTOR, attr->comp_vector) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_READS_IN, attr->reads_in) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_READS_OUT, attr->reads_out))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int netlink_put_lane(struct sk_buff *skb, const struct rdmatensor_lane *lane)
{
	/* Pairs with cm_up(): what the device has said is there */
	if (!smp_load_acquire(&lane->conn.qp.queried))
		return 0;
	return netlink_put_qp(skb, RDMATENSOR_NL_A_LANE, &lane->conn.qp.attr);
}

static int netlink_put_read_lane(void *skb, const struct rdmatensor_qp_attr *attr)
{
	return netlink_put_qp(skb, RDMATENSOR_NL_A_READ_LANE, attr);
}

static int netlink_fill_channel(struct sk_buff *skb, struct rdmatensor_context *context,
				const void *object)
{
	struct rdmatensor_channel *channel = (void *)object;
	u32 state, requests, responses, window, sent, consumed;
	struct rdmatensor_sums *sum;
	char peer[RDMATENSOR_WORKER_MAX];
	u64 incarnation;
	int i, ret;

	spin_lock_bh(&channel->lock);
	state = channel->state;
	/* Until its HELLO was accepted the name is being written */
	strscpy(peer, state == RDMATENSOR_CHANNEL_CONNECTING ? "" : channel->worker,
		sizeof(peer));
	incarnation = state == RDMATENSOR_CHANNEL_CONNECTING ? 0 : channel->incarnation;
	requests = channel->nr_requests;
	responses = channel->nr_responses;
	window = channel->credits.window;
	sent = channel->credits.sent;
	consumed = channel->credits.peer_told;
	spin_unlock_bh(&channel->lock);

	if (nla_put_u32(skb, RDMATENSOR_NL_A_CHANNEL, channel->id) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_STATE, state) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_PEER, peer) ||
	    nla_put(skb, RDMATENSOR_NL_A_ADDR, sizeof(channel->peer), &channel->peer) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_INCARNATION, incarnation,
			      RDMATENSOR_NL_A_PAD) ||
	    (channel->active && nla_put_flag(skb, RDMATENSOR_NL_A_ACTIVE)) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_REQUESTS, requests) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_RESPONSES, responses) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_MSG_SLOTS, window) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_SENT, sent) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_CONSUMED, consumed) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_MR_MODE, channel->domain ? "strict" : "pool"))
		return -EMSGSIZE;
	for (i = 0; i < channel->nr_lanes; i++) {
		ret = netlink_put_lane(skb, &channel->lanes[i]);
		if (ret)
			return ret;
	}
	ret = rdmatensor_readers_each(channel->readers, netlink_put_read_lane, skb);
	if (ret)
		return ret;

	sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	if (!sum)
		return -ENOMEM;
	rdmatensor_counters_sum(&channel->counters, sum);
	ret = netlink_put_sums(skb, sum);
	kfree(sum);
	return ret;
}

/* What netlink_fill_pool() gets */
struct netlink_pool {
	const struct rdmatensor_holdings *holdings;
	const struct rdmatensor_pool *pool;
};

static const char *const netlink_peers[] = {
	[RDMATENSOR_POOL_PEERS_WRITE] = "write",
	[RDMATENSOR_POOL_PEERS_NONE] = "none",
	[RDMATENSOR_POOL_PEERS_READ] = "read",
};

/* @context: NULL: of a domain that none has joined */
static int netlink_fill_pool(struct sk_buff *skb, struct rdmatensor_context *context,
			     const void *object)
{
	const struct netlink_pool *its = object;
	const struct rdmatensor_pool *pool = its->pool;

	if (nla_put_u32(skb, RDMATENSOR_NL_A_DOMAIN, its->holdings->id) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_POOL, pool->id) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_BYTES, pool->bytes, RDMATENSOR_NL_A_PAD) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_PEERS, netlink_peers[pool->peers]) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_MEMORY, pool->memory->ops->name) ||
	    (!pool->writable && nla_put_flag(skb, RDMATENSOR_NL_A_READ_ONLY)) ||
	    (!rdmatensor_pool_reachable(pool) &&
	     nla_put_flag(skb, RDMATENSOR_NL_A_UNREACHABLE)) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_SEGMENTS, pool->reg.nr) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_USES, READ_ONCE(pool->regions.nr_uses)))
		return -EMSGSIZE;
	return 0;
}

static int netlink_fill_request(struct sk_buff *skb, struct rdmatensor_context *context,
				const void *object)
{
	struct rdmatensor_operation *op = (void *)object;
	struct rdmatensor_operation_info info = {};

	op->ops->describe(op, &info);
	if ((op->channel != RDMATENSOR_CHANNEL_SELF &&
	     nla_put_u32(skb, RDMATENSOR_NL_A_CHANNEL, op->channel)) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_PEER, info.peer ?: context->worker) ||
	    (info.has_index && nla_put_u32(skb, RDMATENSOR_NL_A_REQUEST, info.index)) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_REQUEST_STATE, info.state) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_USER_DATA, op->user_data,
			      RDMATENSOR_NL_A_PAD) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_STEP, op->step_id,
			      RDMATENSOR_NL_A_PAD) ||
	    nla_put(skb, RDMATENSOR_NL_A_TENSOR, info.name_len, info.name) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_AGE_NS, ktime_get_ns() - op->begun_ns,
			      RDMATENSOR_NL_A_PAD) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_POOL, op->pool_id))
		return -EMSGSIZE;
	return 0;
}

/* What netlink_fill_table() gets */
struct netlink_table {
	u32 id;
	struct rdmatensor_table_shown shown;
};

static int netlink_put_rows(struct sk_buff *skb, u64 start, u64 end, u32 row_bytes)
{
	if (nla_put_u64_64bit(skb, RDMATENSOR_NL_A_ROW_START, start, RDMATENSOR_NL_A_PAD) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_ROW_END, end, RDMATENSOR_NL_A_PAD) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_ROW_BYTES, row_bytes))
		return -EMSGSIZE;
	return 0;
}

static int netlink_fill_table(struct sk_buff *skb, struct rdmatensor_context *context,
			      const void *object)
{
	const struct netlink_table *table = object;
	const struct rdmatensor_table_shown *shown = &table->shown;

	if (nla_put_u32(skb, RDMATENSOR_NL_A_TABLE, table->id) ||
	    nla_put(skb, RDMATENSOR_NL_A_TENSOR, shown->name_len, shown->name) ||
	    netlink_put_rows(skb, shown->row_start, shown->row_end, shown->row_bytes))
		return -EMSGSIZE;
	if (shown->export)
		return nla_put_flag(skb, RDMATENSOR_NL_A_EXPORT) ?:
		       nla_put_u32(skb, RDMATENSOR_NL_A_POOL, shown->pool_id);
	return nla_put_u32(skb, RDMATENSOR_NL_A_OWNERS, shown->nr_owners) ?:
	       nla_put_u32(skb, RDMATENSOR_NL_A_LANES_UP, shown->lanes_up);
}

/* What netlink_fill_tensor() gets, with the lock of its table held */
struct netlink_tensor {
	const struct rdmatensor_tensor *tensor;
	const struct rdmatensor_rendezvous_key *key;
};

static int netlink_put_meta(struct sk_buff *skb, const struct rdmatensor_meta *meta)
{
	if (nla_put_u32(skb, RDMATENSOR_NL_A_DATA_TYPE, meta->data_type) ||
	    nla_put(skb, RDMATENSOR_NL_A_SHAPE, meta->ndims * sizeof(meta->dims[0]), meta->dims) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_BYTES, meta->bytes, RDMATENSOR_NL_A_PAD) ||
	    (meta->is_dead && nla_put_flag(skb, RDMATENSOR_NL_A_DEAD)))
		return -EMSGSIZE;
	return 0;
}

static int netlink_fill_tensor(struct sk_buff *skb, struct rdmatensor_context *context,
			       const void *object)
{
	const struct netlink_tensor *its = object;
	const struct rdmatensor_tensor *tensor = its->tensor;
	const char *name;
	u16 name_len;

	name = rdmatensor_rendezvous_key_name(its->key, &name_len);
	if (nla_put(skb, RDMATENSOR_NL_A_TENSOR, name_len, name) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_STEP, rdmatensor_tensor_step(tensor),
			      RDMATENSOR_NL_A_PAD) ||
	    (tensor->uses_left &&
	     nla_put_u32(skb, RDMATENSOR_NL_A_DELIVERIES, tensor->uses_left)))
		return -EMSGSIZE;
	return tensor->failed.error ?
	       nla_put_s32(skb, RDMATENSOR_NL_A_ERROR, tensor->failed.error) :
	       netlink_put_meta(skb, &tensor->meta);
}

static int netlink_fill_domain(struct sk_buff *skb, struct rdmatensor_context *context,
			       const void *object)
{
	struct rdmatensor_holdings *holdings = (void *)object;
	char device[IB_DEVICE_NAME_MAX];
	struct rdmatensor_pool *pool;
	u64 bytes = 0;
	u32 pools = 0;
	unsigned long id = 0;

	while ((pool = rdmatensor_holdings_next_pool(holdings, &id))) {
		pools++;
		bytes += pool->bytes;
		rdmatensor_pool_put(pool);
	}
	if (nla_put_u32(skb, RDMATENSOR_NL_A_DOMAIN, holdings->id) ||
	    (rdmatensor_holdings_device(holdings, device, sizeof(device)) &&
	     nla_put_string(skb, RDMATENSOR_NL_A_DEVICE, device)) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_CONTEXTS, atomic_read(&holdings->nr_contexts)) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_POOLS, pools) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_BYTES, bytes, RDMATENSOR_NL_A_PAD) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_LASTING, atomic_read(&holdings->lasting.nr)) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_MR_MODE, holdings->strict ? "strict" : "pool"))
		return -EMSGSIZE;
	return 0;
}

/* One message of a dump. @context: NULL: it is about no context, but about @worker's domain */
static int netlink_dump_of(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
			   netlink_fill_fn fill, struct rdmatensor_context *context,
			   const char *worker, const void *object)
{
	void *hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				&netlink_family, NLM_F_MULTI, cmd);

	int ret = -EMSGSIZE;

	if (!hdr)
		return ret;
	genl_dump_check_consistent(cb, hdr);
	if ((!context || !nla_put_u32(skb, RDMATENSOR_NL_A_CONTEXT, context->listed.id)) &&
	    !nla_put_string(skb, RDMATENSOR_NL_A_WORKER, worker))
		ret = fill(skb, context, object);
	if (ret) {
		genlmsg_cancel(skb, hdr);
		return ret;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int netlink_dump_one(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
			    netlink_fill_fn fill, struct rdmatensor_context *context,
			    const void *object)
{
	return netlink_dump_of(skb, cb, cmd, fill, context, context->worker, object);
}

static int netlink_dump_itself(struct sk_buff *skb, struct netlink_callback *cb,
			       struct rdmatensor_context *context)
{
	return netlink_dump_one(skb, cb, RDMATENSOR_NL_CMD_CONTEXT_GET, netlink_fill_context,
				context, NULL);
}

static int netlink_dump_its_channels(struct sk_buff *skb, struct netlink_callback *cb,
				     struct rdmatensor_context *context)
{
	struct rdmatensor_channel *channel;
	unsigned long id = cb->args[1];
	int ret = 0;

	while (!ret && (channel = rdmatensor_context_next_channel(context, &id))) {
		ret = netlink_dump_one(skb, cb, RDMATENSOR_NL_CMD_CHANNEL_GET,
				       netlink_fill_channel, context, channel);
		if (!ret)
			cb->args[1] = id;
		rdmatensor_channel_put(channel);
	}
	return ret;
}

/* @context: NULL: it is a domain that none has joined */
static int netlink_dump_pools_of(struct sk_buff *skb, struct netlink_callback *cb,
				 struct rdmatensor_context *context, const char *worker,
				 struct rdmatensor_holdings *holdings)
{
	struct rdmatensor_pool *pool;
	unsigned long id = 0;
	int ret = 0;

	/* The domain that the dump was at may have gone since, and another be in its place */
	if (cb->args[2] == holdings->id)
		id = cb->args[1];
	cb->args[2] = holdings->id;
	while (!ret && (pool = rdmatensor_holdings_next_pool(holdings, &id))) {
		const struct netlink_pool its = { holdings, pool };

		ret = netlink_dump_of(skb, cb, RDMATENSOR_NL_CMD_POOL_GET, netlink_fill_pool,
				      context, worker, &its);
		if (!ret)
			cb->args[1] = id;
		rdmatensor_pool_put(pool);
	}
	return ret;
}

static int netlink_dump_its_pools(struct sk_buff *skb, struct netlink_callback *cb,
				  struct rdmatensor_context *context)
{
	return netlink_dump_pools_of(skb, cb, context, context->worker, context->holdings);
}

static int netlink_dump_bare_pools(struct sk_buff *skb, struct netlink_callback *cb,
				   struct rdmatensor_holdings *holdings)
{
	/* Who joins it now is a context that begins during the dump: it may be missing */
	if (atomic_read(&holdings->nr_contexts))
		return 0;
	return netlink_dump_pools_of(skb, cb, NULL, holdings->worker, holdings);
}

static int netlink_dump_domain(struct sk_buff *skb, struct netlink_callback *cb,
			       struct rdmatensor_holdings *holdings)
{
	return netlink_dump_of(skb, cb, RDMATENSOR_NL_CMD_DOMAIN_GET, netlink_fill_domain, NULL,
			       holdings->worker, holdings);
}

static int netlink_dump_its_requests(struct sk_buff *skb, struct netlink_callback *cb,
				     struct rdmatensor_context *context)
{
	struct rdmatensor_operation_place place;
	struct rdmatensor_operation *op;
	int ret = 0;

	BUILD_BUG_ON(sizeof(place) > sizeof(cb->args) - sizeof(cb->args[0]));
	memcpy(&place, &cb->args[1], sizeof(place));
	while (!ret && (op = rdmatensor_operation_next(&context->core, &place))) {
		ret = netlink_dump_one(skb, cb, RDMATENSOR_NL_CMD_REQUEST_GET,
				       netlink_fill_request, context, op);
		if (!ret)
			memcpy(&cb->args[1], &place, sizeof(place));
		rdmatensor_operation_put(op);
	}
	return ret;
}

static int netlink_dump_its_tables(struct sk_buff *skb, struct netlink_callback *cb,
				   struct rdmatensor_context *context)
{
	struct netlink_table *table;
	unsigned long id = cb->args[1];
	int ret = 0;

	table = kmalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	while (!ret && rdmatensor_context_next_table(context, &id, &table->shown)) {
		table->id = id;
		ret = netlink_dump_one(skb, cb, RDMATENSOR_NL_CMD_TABLE_GET, netlink_fill_table,
				       context, table);
		if (!ret)
			cb->args[1] = id;
	}
	kfree(table);
	return ret;
}

/* What netlink_add_tensor() gets */
struct netlink_tensors {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct rdmatensor_context *context;
};

/* Under the table's lock. False: it does not fit, and comes with the next call */
static bool netlink_add_tensor(const struct rdmatensor_tensor *tensor,
			       const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg)
{
	const struct netlink_tensor its = { tensor, key };
	const struct netlink_tensors *all = arg;

	return !netlink_dump_one(all->skb, all->cb, RDMATENSOR_NL_CMD_TENSOR_GET,
				 netlink_fill_tensor, all->context, &its);
}

static int netlink_dump_its_tensors(struct sk_buff *skb, struct netlink_callback *cb,
				    struct rdmatensor_context *context)
{
	struct netlink_tensors all = { skb, cb, context };
	bool fits;
	u64 cursor;

	BUILD_BUG_ON(sizeof(cursor) > sizeof(cb->args) - sizeof(cb->args[0]));
	memcpy(&cursor, &cb->args[1], sizeof(cursor));
	do {
		fits = rdmatensor_rendezvous_list(context->core.rdv, &cursor, "", 0,
						  netlink_add_tensor, &all);
		memcpy(&cb->args[1], &cursor, sizeof(cursor));
		cond_resched();
	} while (fits && cursor);
	return fits ? 0 : -EMSGSIZE;
}

/* @dump sends what it can of one context, from args[1] on */
static int netlink_dump(struct sk_buff *skb, struct netlink_callback *cb,
			int (*dump)(struct sk_buff *skb, struct netlink_callback *cb,
				    struct rdmatensor_context *context))
{
	const struct nlattr *only = rdmatensor_dump_attrs(cb)[RDMATENSOR_NL_A_CONTEXT];
	const struct net *net = sock_net(skb->sk);
	struct rdmatensor_context_listed *listed;
	u32 id = cb->args[0];
	int ret = 0;

	cb->seq = rdmatensor_context_list_generation(net);
	if (only && !id)
		id = nla_get_u32(only) - 1;
	while (!ret && (listed = rdmatensor_context_list_next(net, &id))) {
		if (only && id != nla_get_u32(only)) {
			rdmatensor_context_list_put(listed);
			break;
		}
		if (rdmatensor_context_started(to_context(listed)))
			ret = dump(skb, cb, to_context(listed));
		rdmatensor_context_list_put(listed);
		if (!ret) {
			cb->args[0] = id;
			memset(&cb->args[1], 0, sizeof(cb->args) - sizeof(cb->args[0]));
		}
	}
	/* What does not fit comes with the next call; a message that never fits is an error */
	return skb->len ? skb->len : ret;
}

/* @dump sends what it can of one domain, from args[1] on */
static int netlink_dump_each_domain(struct sk_buff *skb, struct netlink_callback *cb,
				    int (*dump)(struct sk_buff *skb, struct netlink_callback *cb,
						struct rdmatensor_holdings *holdings))
{
	const struct net *net = sock_net(skb->sk);
	struct rdmatensor_holdings *holdings;
	u32 id = cb->args[0];
	int ret = 0;

	cb->seq = rdmatensor_context_list_generation(net);
	while (!ret && (holdings = rdmatensor_holdings_list_next(net, &id))) {
		ret = dump(skb, cb, holdings);
		rdmatensor_holdings_put(holdings);
		if (!ret) {
			cb->args[0] = id;
			cb->args[1] = 0;
		}
	}
	return skb->len ? skb->len : ret;
}

static int netlink_dump_contexts(struct sk_buff *skb, struct netlink_callback *cb)
{
	return netlink_dump(skb, cb, netlink_dump_itself);
}

static int netlink_dump_channels(struct sk_buff *skb, struct netlink_callback *cb)
{
	return netlink_dump(skb, cb, netlink_dump_its_channels);
}

static int netlink_dump_pools(struct sk_buff *skb, struct netlink_callback *cb)
{
	int ret;

	if (!cb->args[5]) {
		ret = netlink_dump(skb, cb, netlink_dump_its_pools);
		if (ret || rdmatensor_dump_attrs(cb)[RDMATENSOR_NL_A_CONTEXT])
			return ret;
		cb->args[5] = 1;
		cb->args[0] = 0;
		cb->args[1] = 0;
	}
	return netlink_dump_each_domain(skb, cb, netlink_dump_bare_pools);
}

static int netlink_dump_domains(struct sk_buff *skb, struct netlink_callback *cb)
{
	return netlink_dump_each_domain(skb, cb, netlink_dump_domain);
}

static int netlink_dump_requests(struct sk_buff *skb, struct netlink_callback *cb)
{
	return netlink_dump(skb, cb, netlink_dump_its_requests);
}

static int netlink_dump_tables(struct sk_buff *skb, struct netlink_callback *cb)
{
	return netlink_dump(skb, cb, netlink_dump_its_tables);
}

static int netlink_dump_tensors(struct sk_buff *skb, struct netlink_callback *cb)
{
	return netlink_dump(skb, cb, netlink_dump_its_tensors);
}

/* All lanes of a channel, and all that it has counted, are one message */
static int netlink_start_channels(struct netlink_callback *cb)
{
	cb->min_dump_alloc = NETLINK_CHANNEL_BYTES;
	return 0;
}

static const struct nla_policy netlink_policy[] = {
	[RDMATENSOR_NL_A_CONTEXT] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct genl_ops netlink_ops[] = {
	{
		.cmd = RDMATENSOR_NL_CMD_CONTEXT_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump_contexts,
	}, {
		.cmd = RDMATENSOR_NL_CMD_CHANNEL_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = netlink_start_channels,
		.dumpit = netlink_dump_channels,
	}, {
		.cmd = RDMATENSOR_NL_CMD_POOL_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump_pools,
	}, {
		.cmd = RDMATENSOR_NL_CMD_REQUEST_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump_requests,
	}, {
		.cmd = RDMATENSOR_NL_CMD_TABLE_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump_tables,
	}, {
		.cmd = RDMATENSOR_NL_CMD_DOMAIN_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump_domains,
	}, {
		.cmd = RDMATENSOR_NL_CMD_TENSOR_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.dumpit = netlink_dump_tensors,
	},
};

static const struct genl_multicast_group netlink_groups[] = {
	/* Names of workers and tensors, and who talks to whom: as for the dumps */
	{ .name = RDMATENSOR_NL_EVENTS, .flags = GENL_MCAST_CAP_NET_ADMIN },
};

static struct genl_family netlink_family __ro_after_init = {
	.name = RDMATENSOR_NL_NAME,
	.version = RDMATENSOR_NL_VERSION,
	.maxattr = ARRAY_SIZE(netlink_policy) - 1,
	.policy = netlink_policy,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = netlink_ops,
	.n_ops = ARRAY_SIZE(netlink_ops),
	.mcgrps = netlink_groups,
	.n_mcgrps = ARRAY_SIZE(netlink_groups),
	.resv_start_op = RDMATENSOR_NL_CMD_CONTEXT_GET,
};

int rdmatensor_netlink_register(void)
{
	int ret = genl_register_family(&netlink_family);

	if (!ret)
		rdmatensor_nl_event_family(&netlink_family);
	return ret;
}

void rdmatensor_netlink_unregister(void)
{
	rdmatensor_nl_event_family(NULL);
	genl_unregister_family(&netlink_family);
}
