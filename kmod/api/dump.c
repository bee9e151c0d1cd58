// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps of contexts, channels, pools, requests, tables, tensors and domains.
 *
 * A dump continues by ids: place[0] is the last context that was dumped whole, place[1] the
 * last of its objects that was sent; for requests, place[1] and those after it hold their place
 * in the table. Ids grow and are not reused soon, so that an object that appears or vanishes
 * meanwhile is shown or not, and every other one exactly once. The generation of the network
 * namespace's contexts marks a dump during which that happened.
 *
 * Domains have ids of their own. The pools of those that no context has joined come after those
 * of all contexts: place[5] is set by then, and place[0] is the last domain that was dumped whole.
 * For pools place[2] is the domain that place[1] is in.
 *
 * A context is held while it is read, and so is a domain, and locks are taken for what START,
 * POOL_CREATE and the device's removal change. Who closes it waits for that, so nothing here
 * waits for a process, and none but its user's and a privileged one holds it. Pools are told from
 * a copy: no reader holds what is charged.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include "api/dump.h"
#include "context/channels.h"
#include "context/context.h"
#include "context/holdings_list.h"
#include "core/fault.h"
#include "fetch/operation.h"
#include "memory/memory.h"
#include "rdmatensor_netlink.h"

/* Fills one message. Return: 0, -EMSGSIZE: no space */
typedef int (*dump_fill_fn)(struct sk_buff *skb, struct rdmatensor_context *context,
			    const void *object);

static struct rdmatensor_context *to_context(struct rdmatensor_context_listed *listed)
{
	return container_of(listed, struct rdmatensor_context, listed);
}

/* @values[i] as type @first + i; @sparse: without those that are 0 */
static int put_values(struct sk_buff *skb, int attr, const u64 *values, int nr, int first,
		      bool sparse)
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

/* @channel: NULL: of the whole context */
static int put_sums(struct sk_buff *skb, struct rdmatensor_context *context,
		    struct rdmatensor_channel *channel)
{
	struct rdmatensor_sums *sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	int ret;

	if (!sum)
		return -ENOMEM;
	if (channel)
		rdmatensor_counters_sum(&channel->counters, sum);
	else
		rdmatensor_core_sum(&context->core, sum);
	ret = put_values(skb, RDMATENSOR_NL_A_COUNTERS, sum->tally.stats, RDMATENSOR_STAT_NR, 1,
			 false) ?:
	      put_values(skb, RDMATENSOR_NL_A_LATENCY, sum->tally.latency,
			 RDMATENSOR_NL_LATENCY_NR, 1, true) ?:
	      put_values(skb, RDMATENSOR_NL_A_ERRORS, sum->errors, RDMATENSOR_NL_ERRORS_NR, 1,
			 true);
	kfree(sum);
	return ret;
}

/* What the device says, with the context's lock: START, and the device that may go */
static int put_adapter(struct sk_buff *skb, const struct rdmatensor_context *context)
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

static int fill_context(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
{
	int ret;

	if (nla_put_u32(skb, RDMATENSOR_NL_A_PID, rdmatensor_owner_pid(&context->listed.owner)) ||
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
	      put_adapter(skb, context);
	mutex_unlock(&context->lock);
	return ret ?: put_sums(skb, context, NULL);
}

/* Any context. @type: of the nest */
static int put_qp(struct sk_buff *skb, int type, const struct rdmatensor_qp_attr *attr)
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

static int put_lane(struct sk_buff *skb, const struct rdmatensor_lane *lane)
{
	/* Pairs with cm_up(): what the device has said is there */
	if (!smp_load_acquire(&lane->conn.qp.queried))
		return 0;
	return put_qp(skb, RDMATENSOR_NL_A_LANE, &lane->conn.qp.attr);
}

static int put_read_lane(void *skb, const struct rdmatensor_qp_attr *attr)
{
	return put_qp(skb, RDMATENSOR_NL_A_READ_LANE, attr);
}

static int fill_channel(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
{
	struct rdmatensor_channel *channel = (void *)object;
	u32 state, requests, responses, window, sent, consumed;
	char peer[RDMATENSOR_WORKER_MAX];
	u64 incarnation;
	int i, ret;

	spin_lock_bh(&channel->lock);
	state = channel->state;
	incarnation = rdmatensor_channel_peer(channel, peer);
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
		ret = put_lane(skb, &channel->lanes[i]);
		if (ret)
			return ret;
	}
	ret = rdmatensor_readers_each(channel->readers, put_read_lane, skb);
	return ret ?: put_sums(skb, context, channel);
}

/* What fill_pool() gets */
struct dumped_pool {
	const struct rdmatensor_holdings *holdings;
	const struct rdmatensor_pool_info *pool;
};

static const char *const dump_peers[] = {
	[RDMATENSOR_POOL_PEERS_WRITE] = "write",
	[RDMATENSOR_POOL_PEERS_NONE] = "none",
	[RDMATENSOR_POOL_PEERS_READ] = "read",
};

/* @context: NULL: of a domain that none has joined */
static int fill_pool(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
{
	const struct dumped_pool *its = object;
	const struct rdmatensor_pool_info *pool = its->pool;

	if (nla_put_u32(skb, RDMATENSOR_NL_A_DOMAIN, its->holdings->id) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_POOL, pool->id) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_BYTES, pool->bytes, RDMATENSOR_NL_A_PAD) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_PEERS, dump_peers[pool->peers]) ||
	    nla_put_string(skb, RDMATENSOR_NL_A_MEMORY, pool->memory) ||
	    (!pool->writable && nla_put_flag(skb, RDMATENSOR_NL_A_READ_ONLY)) ||
	    (!pool->reachable && nla_put_flag(skb, RDMATENSOR_NL_A_UNREACHABLE)) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_SEGMENTS, pool->segments) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_USES, pool->uses))
		return -EMSGSIZE;
	return 0;
}

static int fill_request(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
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

/* What fill_table() gets */
struct dumped_table {
	u32 id;
	struct rdmatensor_table_shown shown;
};

static int put_rows(struct sk_buff *skb, u64 start, u64 end, u32 row_bytes)
{
	if (nla_put_u64_64bit(skb, RDMATENSOR_NL_A_ROW_START, start, RDMATENSOR_NL_A_PAD) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_ROW_END, end, RDMATENSOR_NL_A_PAD) ||
	    nla_put_u32(skb, RDMATENSOR_NL_A_ROW_BYTES, row_bytes))
		return -EMSGSIZE;
	return 0;
}

static int fill_table(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
{
	const struct dumped_table *table = object;
	const struct rdmatensor_table_shown *shown = &table->shown;

	if (nla_put_u32(skb, RDMATENSOR_NL_A_TABLE, table->id) ||
	    nla_put(skb, RDMATENSOR_NL_A_TENSOR, shown->name_len, shown->name) ||
	    put_rows(skb, shown->row_start, shown->row_end, shown->row_bytes))
		return -EMSGSIZE;
	if (shown->export)
		return nla_put_flag(skb, RDMATENSOR_NL_A_EXPORT) ?:
		       nla_put_u32(skb, RDMATENSOR_NL_A_POOL, shown->pool_id);
	return nla_put_u32(skb, RDMATENSOR_NL_A_OWNERS, shown->nr_owners) ?:
	       nla_put_u32(skb, RDMATENSOR_NL_A_LANES_UP, shown->lanes_up);
}

/* What fill_tensor() gets, with the lock of its table held */
struct dumped_tensor {
	const struct rdmatensor_tensor *tensor;
	const struct rdmatensor_rendezvous_key *key;
};

static int put_meta(struct sk_buff *skb, const struct rdmatensor_meta *meta)
{
	if (nla_put_u32(skb, RDMATENSOR_NL_A_DATA_TYPE, meta->data_type) ||
	    nla_put(skb, RDMATENSOR_NL_A_SHAPE, meta->ndims * sizeof(meta->dims[0]), meta->dims) ||
	    nla_put_u64_64bit(skb, RDMATENSOR_NL_A_BYTES, meta->bytes, RDMATENSOR_NL_A_PAD) ||
	    (meta->is_dead && nla_put_flag(skb, RDMATENSOR_NL_A_DEAD)))
		return -EMSGSIZE;
	return 0;
}

static int fill_tensor(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
{
	const struct dumped_tensor *its = object;
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
	       put_meta(skb, &tensor->meta);
}

static int fill_domain(struct sk_buff *skb, struct rdmatensor_context *context, const void *object)
{
	struct rdmatensor_holdings *holdings = (void *)object;
	char device[IB_DEVICE_NAME_MAX];
	struct rdmatensor_pool_info pool;
	u64 bytes = 0;
	u32 pools = 0;
	unsigned long id = 0;

	while (rdmatensor_holdings_next_pool_info(holdings, &id, &pool)) {
		pools++;
		bytes += pool.bytes;
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
static int dump_of(struct rdmatensor_dump_part *dump, u8 cmd, dump_fill_fn fill,
		   struct rdmatensor_context *context, const char *worker, const void *object)
{
	int flags = NLM_F_MULTI | (dump->changed ? NLM_F_DUMP_INTR : 0), ret = -EMSGSIZE;
	struct sk_buff *skb = dump->skb;
	void *hdr = genlmsg_put(skb, dump->portid, dump->seq, dump->family, flags, cmd);

	if (!hdr)
		return ret;
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

static int dump_one(struct rdmatensor_dump_part *dump, u8 cmd, dump_fill_fn fill,
		    struct rdmatensor_context *context, const void *object)
{
	return dump_of(dump, cmd, fill, context, context->worker, object);
}

static int dump_itself(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context)
{
	return dump_one(dump, RDMATENSOR_NL_CMD_CONTEXT_GET, fill_context, context, NULL);
}

static int dump_its_channels(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context)
{
	struct rdmatensor_channel *channel;
	unsigned long id = dump->place[1];
	int ret = 0;

	while (!ret && (channel = rdmatensor_context_next_channel(context, &id))) {
		ret = dump_one(dump, RDMATENSOR_NL_CMD_CHANNEL_GET, fill_channel, context, channel);
		if (!ret)
			dump->place[1] = id;
		rdmatensor_channel_put(channel);
	}
	return ret;
}

/* @context: NULL: it is a domain that none has joined */
static int dump_pools_of(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context,
			 const char *worker, struct rdmatensor_holdings *holdings)
{
	struct rdmatensor_pool_info pool;
	unsigned long id = 0;
	int ret = 0;

	/* The domain that the dump was at may have gone since, and another be in its place */
	if (dump->place[2] == holdings->id)
		id = dump->place[1];
	dump->place[2] = holdings->id;
	while (!ret && rdmatensor_holdings_next_pool_info(holdings, &id, &pool)) {
		const struct dumped_pool its = { holdings, &pool };

		ret = dump_of(dump, RDMATENSOR_NL_CMD_POOL_GET, fill_pool, context, worker, &its);
		if (!ret)
			dump->place[1] = id;
	}
	return ret;
}

static int dump_its_pools(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context)
{
	return dump_pools_of(dump, context, context->worker, context->holdings);
}

/* Those of a domain that others alone have joined are told by it, as if none had */
static bool dump_has_own(const struct rdmatensor_dump_part *dump,
			 const struct rdmatensor_holdings *holdings)
{
	struct rdmatensor_context_listed *listed;
	bool found = false;
	u32 id = 0;

	while (!found && (listed = rdmatensor_context_list_next(dump->net, true, &id))) {
		found = rdmatensor_context_started(to_context(listed)) &&
			to_context(listed)->holdings == holdings;
		rdmatensor_context_list_put(listed);
		cond_resched();
	}
	return found;
}

static int dump_bare_pools(struct rdmatensor_dump_part *dump, struct rdmatensor_holdings *holdings)
{
	/* Who joins it now is a context that begins during the dump: it may be missing */
	if (dump->own ? dump_has_own(dump, holdings) : atomic_read(&holdings->nr_contexts))
		return 0;
	return dump_pools_of(dump, NULL, holdings->worker, holdings);
}

static int dump_domain(struct rdmatensor_dump_part *dump, struct rdmatensor_holdings *holdings)
{
	return dump_of(dump, RDMATENSOR_NL_CMD_DOMAIN_GET, fill_domain, NULL, holdings->worker,
		       holdings);
}

static int dump_its_requests(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context)
{
	struct rdmatensor_operation_place place;
	struct rdmatensor_operation *op;
	int ret = 0;

	BUILD_BUG_ON(sizeof(place) > sizeof(dump->place) - sizeof(dump->place[0]));
	memcpy(&place, &dump->place[1], sizeof(place));
	while (!ret && (op = rdmatensor_operation_next(&context->core, &place))) {
		ret = dump_one(dump, RDMATENSOR_NL_CMD_REQUEST_GET, fill_request, context, op);
		if (!ret)
			memcpy(&dump->place[1], &place, sizeof(place));
		rdmatensor_operation_put(op);
	}
	return ret;
}

static int dump_its_tables(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context)
{
	struct dumped_table *table;
	unsigned long id = dump->place[1];
	int ret = 0;

	table = kmalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	while (!ret && rdmatensor_context_next_table(context, &id, &table->shown)) {
		table->id = id;
		ret = dump_one(dump, RDMATENSOR_NL_CMD_TABLE_GET, fill_table, context, table);
		if (!ret)
			dump->place[1] = id;
	}
	kfree(table);
	return ret;
}

/* What dump_add_tensor() gets */
struct dumped_tensors {
	struct rdmatensor_dump_part *dump;
	struct rdmatensor_context *context;
};

/* Under the table's lock. False: it does not fit, and comes with the next call */
static bool dump_add_tensor(const struct rdmatensor_tensor *tensor,
			    const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg)
{
	const struct dumped_tensor its = { tensor, key };
	const struct dumped_tensors *all = arg;

	return !dump_one(all->dump, RDMATENSOR_NL_CMD_TENSOR_GET, fill_tensor, all->context, &its);
}

static int dump_its_tensors(struct rdmatensor_dump_part *dump, struct rdmatensor_context *context)
{
	struct dumped_tensors all = { dump, context };
	bool fits;
	u64 cursor;

	BUILD_BUG_ON(sizeof(cursor) > sizeof(dump->place) - sizeof(dump->place[0]));
	memcpy(&cursor, &dump->place[1], sizeof(cursor));
	do {
		fits = rdmatensor_rendezvous_list(context->core.rdv, &cursor, "", 0,
						  dump_add_tensor, &all);
		memcpy(&dump->place[1], &cursor, sizeof(cursor));
		cond_resched();
	} while (fits && cursor);
	return fits ? 0 : -EMSGSIZE;
}

/* @part appends what it can of one context, from place[1] on */
static int dump_contexts(struct rdmatensor_dump_part *dump,
			 int (*part)(struct rdmatensor_dump_part *dump,
				     struct rdmatensor_context *context))
{
	struct rdmatensor_context_listed *listed;
	struct rdmatensor_context *context;
	u32 id = dump->place[0];
	int ret = 0;

	if (dump->only && !id)
		id = dump->only - 1;
	while (!ret && (listed = rdmatensor_context_list_next(dump->net, dump->own, &id))) {
		context = to_context(listed);
		if (dump->only && id != dump->only) {
			rdmatensor_context_list_put(listed);
			break;
		}
		if (rdmatensor_context_started(context))
			ret = part(dump, context);
		rdmatensor_context_list_put(listed);
		if (!ret) {
			dump->place[0] = id;
			memset(&dump->place[1], 0, sizeof(dump->place) - sizeof(dump->place[0]));
		}
	}
	return ret;
}

/* @part appends what it can of one domain, from place[1] on */
static int dump_domains(struct rdmatensor_dump_part *dump,
			int (*part)(struct rdmatensor_dump_part *dump,
				    struct rdmatensor_holdings *holdings))
{
	struct rdmatensor_holdings *holdings;
	u32 id = dump->place[0];
	int ret = 0;

	while (!ret && (holdings = rdmatensor_holdings_list_next(dump->net, dump->own, &id))) {
		rdmatensor_hold("domain_read");
		ret = part(dump, holdings);
		rdmatensor_holdings_list_put(holdings);
		if (!ret) {
			dump->place[0] = id;
			dump->place[1] = 0;
		}
		/* Each may have looked at all contexts */
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
	}
	return ret;
}

static int dump_pools(struct rdmatensor_dump_part *dump)
{
	int ret;

	if (!dump->place[5]) {
		ret = dump_contexts(dump, dump_its_pools);
		/* The others come with the next call, if there is something of these */
		if (ret || dump->only || dump->skb->len)
			return ret;
		dump->place[5] = 1;
		dump->place[0] = 0;
		dump->place[1] = 0;
	}
	return dump_domains(dump, dump_bare_pools);
}

static int dump_part(struct rdmatensor_dump_part *dump, unsigned int cmd)
{
	switch (cmd) {
	case RDMATENSOR_NL_CMD_CONTEXT_GET:
		return dump_contexts(dump, dump_itself);
	case RDMATENSOR_NL_CMD_CHANNEL_GET:
		return dump_contexts(dump, dump_its_channels);
	case RDMATENSOR_NL_CMD_POOL_GET:
		return dump_pools(dump);
	case RDMATENSOR_NL_CMD_REQUEST_GET:
		return dump_contexts(dump, dump_its_requests);
	case RDMATENSOR_NL_CMD_TABLE_GET:
		return dump_contexts(dump, dump_its_tables);
	case RDMATENSOR_NL_CMD_DOMAIN_GET:
		return dump_domains(dump, dump_domain);
	case RDMATENSOR_NL_CMD_TENSOR_GET:
		return dump_contexts(dump, dump_its_tensors);
	default:
		return -EOPNOTSUPP;
	}
}

bool rdmatensor_dump_known(unsigned int cmd)
{
	return cmd >= RDMATENSOR_NL_CMD_CONTEXT_GET && cmd <= RDMATENSOR_NL_CMD_TENSOR_GET &&
	       cmd != RDMATENSOR_NL_CMD_EVENT;
}

bool rdmatensor_dump_by_context(unsigned int cmd)
{
	return cmd != RDMATENSOR_NL_CMD_DOMAIN_GET;
}

int rdmatensor_dump_next(struct rdmatensor_dump_part *dump, unsigned int cmd)
{
	u32 generation = dump->own ? rdmatensor_context_list_own_generation(dump->net) :
				     rdmatensor_context_list_generation(dump->net);
	int ret;

	dump->changed = dump->generation && dump->generation != generation;
	dump->generation = generation;
	ret = dump_part(dump, cmd);
	/* What does not fit comes with the next call; a message that never fits is an error */
	return dump->skb->len ?: ret;
}
