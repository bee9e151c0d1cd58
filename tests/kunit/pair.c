// SPDX-License-Identifier: GPL-2.0
/*
 * Two ends and a wire between them that the case plays: it decides, at random
 * but by a seed, when each write reaches the peer, when the peer hears of it, and
 * when the sender hears that it did; and what the two processes do meanwhile.
 * Order is kept where a reliable connection keeps it, within one lane.
 *
 * The wire is as strict as a device: a write must lie within the memory of its
 * keys, an immediate must find a receive. And it is as unkind as one may be: bytes
 * are taken from where they are when the write arrives, not when it is posted.
 *
 * Some fetches keep their destination: each side has a place for each name, which is told once
 * and referred to then, as long as nobody makes it another.
 *
 * What must hold, for every seed:
 *  - a fetch that succeeds has the bytes of one tensor of its name and step;
 *  - every fetch ends once, and when nothing is in flight any more none is left;
 *  - nothing is written to where no fetch is in flight (design 7.1);
 *  - no slot is written before what was in it has been consumed;
 *  - a tensor's buffer is not read after its process has got it back;
 *  - in the end all places, credits and references are back.
 */
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "end.h"
#include "fetch/fetch.h"
#include "memory/memory.h"

#define ROUNDS 4000
/* A kernel on which each takes half a minute plays fewer */
static unsigned int seeds = 48;
module_param(seeds, uint, 0444);
MODULE_PARM_DESC(seeds, "games that are played by random choice, for each kind of end");
#define IDS 4096
#define IN_FLIGHT 24
#define OFFERED 24
#define NAMES 6
#define STEPS 3

struct incoming {
	struct list_head item;
	enum post_kind kind;
	u32 bytes;
	u32 index;
};

/* A fetch, or a publication: @side is whose, @bytes the room or the length */
struct thing {
	u8 side;
	u8 name;
	u8 step;
	bool live;
	bool fixed;
	bool kept;
	bool stopped;
	u32 uses;
	u32 bytes;
	u64 offset;
};

/**
 * struct pair - both ends and what is between them
 * @test: the case
 * @rnd: decides everything
 * @ends: the ends
 * @incoming: arrived at each end, by lane, and not yet heard of
 * @nr_incoming: lengths of those
 * @most_incoming: receives that are posted
 * @nr_lanes: of the channel
 * @fetches: by user_data
 * @tensors: by user_data
 * @nr_fetches: used members of @fetches
 * @nr_tensors: used members of @tensors
 * @homes: of names, by side: where kept tensors go
 * @in_flight: fetches that have not ended
 * @offered: tensors that have not been released
 * @good: fetches that ended well
 * @bad: that did not
 */
struct pair {
	struct kunit *test;
	struct rnd_state rnd;
	struct end *ends[2];
	struct list_head incoming[2][RDMATENSOR_LANES_MAX];
	u32 nr_incoming[2][RDMATENSOR_LANES_MAX];
	u32 most_incoming[2][RDMATENSOR_LANES_MAX];
	u8 nr_lanes;
	struct thing *fetches;
	struct thing *tensors;
	u32 nr_fetches;
	u32 nr_tensors;
	u64 homes[2][NAMES];
	u32 in_flight;
	u32 offered;
	u32 good;
	u32 bad;
};

static u32 below(struct pair *pair, u32 n)
{
	return prandom_u32_state(&pair->rnd) % n;
}

static void pair_name(const struct thing *thing, char *name)
{
	name[0] = 'a' + thing->name;
}

/* Content: which tensor it is, and bytes that depend on that and on the place */
static u8 content(u32 id, u32 pos)
{
	if (pos < 4)
		return id >> (8 * pos);
	return id * 31 + pos * 7 + (pos >> 8);
}

static void fill(struct pair *pair, u8 side, u64 offset, u32 bytes, int id)
{
	u32 pos = 0, run, i;

	for (; pos < bytes; pos += run) {
		u8 *at = end_at(pair->ends[side], offset + pos, &run);

		run = min(run, bytes - pos);
		for (i = 0; i < run; i++)
			at[i] = id < 0 ? 0xee : content(id, pos + i);
	}
}

static void check_content(struct pair *pair, const struct thing *fetch, u64 offset, u32 bytes)
{
	const struct thing *tensor;
	u32 pos = 0, run, i, id = 0;

	/* Shorter ones do not say which they are */
	if (bytes < 4)
		return;
	for (i = 0; i < 4; i++)
		id |= *(u8 *)end_at(pair->ends[fetch->side], offset + i, &run) << (8 * i);
	KUNIT_ASSERT_LT_MSG(pair->test, id, pair->nr_tensors, "content of no tensor");
	tensor = &pair->tensors[id];
	KUNIT_EXPECT_NE(pair->test, tensor->side, fetch->side);
	KUNIT_EXPECT_EQ(pair->test, tensor->name, fetch->name);
	KUNIT_EXPECT_EQ(pair->test, tensor->step, fetch->step);
	KUNIT_EXPECT_EQ(pair->test, tensor->bytes, bytes);
	for (; pos < bytes; pos += run) {
		const u8 *at = end_at(pair->ends[fetch->side], offset + pos, &run);

		run = min(run, bytes - pos);
		for (i = 0; i < run; i++)
			if (at[i] != content(id, pos + i)) {
				KUNIT_FAIL(pair->test, "tensor %u: byte %u is wrong", id, pos + i);
				return;
			}
	}
}

static void fetch_ended(struct pair *pair, struct thing *fetch, const struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_regions *regions = &pair->ends[fetch->side]->pool->regions;

	KUNIT_EXPECT_TRUE_MSG(pair->test, fetch->live, "fetch %llu ended twice", cqe->user_data);
	fetch->live = false;
	pair->in_flight--;
	if (cqe->result) {
		pair->bad++;
	} else {
		pair->good++;
		if (cqe->pool_id)
			check_content(pair, fetch, cqe->offset, cqe->tensor_bytes);
		if (cqe->pool_id && !fetch->fixed && cqe->tensor_bytes)
			KUNIT_EXPECT_EQ(pair->test,
					rdmatensor_regions_free(regions, cqe->offset), 0);
	}
	if (fetch->fixed) {
		fill(pair, fetch->side, fetch->offset, fetch->bytes, -1);
		if (!fetch->kept)
			KUNIT_EXPECT_EQ(pair->test,
					rdmatensor_regions_free(regions, fetch->offset), 0);
	}
}

static void tensor_released(struct pair *pair, struct thing *tensor)
{
	KUNIT_EXPECT_TRUE_MSG(pair->test, tensor->live, "tensor %zd released twice",
			      tensor - pair->tensors);
	tensor->live = false;
	pair->offered--;
	if (!tensor->bytes)
		return;
	/* It is the process's again, and this process has a use for it */
	fill(pair, tensor->side, tensor->offset, tensor->bytes, -1);
	KUNIT_EXPECT_EQ(pair->test,
			rdmatensor_regions_free(&pair->ends[tensor->side]->pool->regions,
						tensor->offset), 0);
}

static bool pair_reap(struct pair *pair)
{
	struct rdmatensor_cqe cqe;
	bool any = false;
	u8 side;

	for (side = 0; side < 2; side++) {
		while (end_reap(pair->ends[side], &cqe)) {
			any = true;
			if (cqe.type == RDMATENSOR_CQE_FETCH)
				fetch_ended(pair, &pair->fetches[cqe.user_data], &cqe);
			else if (cqe.type == RDMATENSOR_CQE_PUBLISH || cqe.user_data != IDS)
				tensor_released(pair, &pair->tensors[cqe.user_data]);
		}
	}
	return any;
}

/* The wire */

static bool is_destination(struct rdmatensor_regions *regions, u64 first, u64 last)
{
	struct rb_node *node;
	bool found = false;

	spin_lock_bh(&regions->lock);
	for (node = rb_first_cached(&regions->writers); node; node = rb_next(node)) {
		struct rdmatensor_use *use = rb_entry(node, struct rdmatensor_use, node);

		found |= use->start <= first && last <= use->last;
	}
	spin_unlock_bh(&regions->lock);
	return found;
}

static void arrive_write(struct pair *pair, u8 to, const struct post *post)
{
	struct end *from = pair->ends[!to], *end = pair->ends[to];
	u64 offset = post->remote_addr - END_IOVA, source, done = 0;
	u32 run, left;
	int i;

	if (!post->bytes)
		return;
	KUNIT_ASSERT_LE(pair->test, offset + post->bytes, end->pool->bytes);
	KUNIT_EXPECT_EQ(pair->test, post->rkey, end->key + (u32)(offset >> END_SEG_SHIFT));
	KUNIT_EXPECT_EQ(pair->test, offset >> END_SEG_SHIFT,
			(offset + post->bytes - 1) >> END_SEG_SHIFT);
	KUNIT_EXPECT_TRUE_MSG(pair->test,
			      is_destination(&end->pool->regions, offset,
					     offset + post->bytes - 1),
			      "request %u: a write where no fetch is in flight", post->index);

	for (i = 0; i < post->nr_sge; i++) {
		source = post->sge[i].addr - END_IOVA;
		KUNIT_EXPECT_EQ(pair->test, post->sge[i].lkey,
				from->key + (u32)(source >> END_SEG_SHIFT));
		for (left = post->sge[i].length; left; left -= run, source += run, done += run) {
			u32 from_run, to_run;
			void *at = end_at(end, offset + done, &to_run);
			const void *in = end_at(from, source, &from_run);

			run = min3(left, from_run, to_run);
			memcpy(at, in, run);
		}
	}
}

static void arrive_message(struct pair *pair, u8 to, const struct post *post)
{
	struct rdmatensor_msgbuf *tx = &pair->ends[!to]->channel->msgbuf;
	struct rdmatensor_channel *channel = pair->ends[to]->channel;
	u32 slot = (post->seq - 1) & (channel->msgbuf.slots - 1);

	KUNIT_EXPECT_LE_MSG(pair->test, post->seq - channel->credits.consumed,
			    channel->msgbuf.slots, "a slot is written that was not consumed");
	memcpy(rdmatensor_memory_addr(channel->msgbuf.rx.memory,
				      slot * channel->msgbuf.slot_bytes, NULL),
	       rdmatensor_msgbuf_tx_slot(tx, post->seq), post->bytes);
}

/* The oldest write of a lane that is on its way reaches end @to */
static bool arrive(struct pair *pair, u8 to, u8 lane)
{
	struct incoming *in;
	struct post *post = end_arrive(pair->ends[!to], lane);

	if (!post)
		return false;
	if (post->kind == POST_WRITE)
		arrive_write(pair, to, post);
	else if (post->kind == POST_MESSAGE)
		arrive_message(pair, to, post);
	if (!post->last)
		return true;

	in = kzalloc(sizeof(*in), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(pair->test, in);
	in->kind = post->kind;
	in->bytes = post->bytes;
	in->index = post->index;
	list_add_tail(&in->item, &pair->incoming[to][lane]);
	KUNIT_EXPECT_LE_MSG(pair->test, ++pair->nr_incoming[to][lane],
			    pair->most_incoming[to][lane], "no receive is posted");
	return true;
}

/* End @at hears of what arrived first */
static bool hear(struct pair *pair, u8 at, u8 lane)
{
	struct rdmatensor_channel *channel = pair->ends[at]->channel;
	struct incoming *in;

	in = list_first_entry_or_null(&pair->incoming[at][lane], struct incoming, item);
	if (!in)
		return false;
	list_del(&in->item);
	pair->nr_incoming[at][lane]--;
	if (in->kind == POST_WRITE)
		rdmatensor_channel_rx_content(channel, lane, in->index, in->bytes);
	else if (in->kind == POST_MESSAGE)
		rdmatensor_channel_rx_message(channel, in->bytes);
	else
		rdmatensor_channel_rx_ack(channel);
	kfree(in);
	return true;
}

/* The sender hears that its oldest write has arrived */
static bool complete_one(struct pair *pair, u8 side, u8 lane)
{
	struct post *post = end_first(pair->ends[side], lane);

	if (!post || !post->arrived)
		return false;
	end_complete(pair->ends[side], lane);
	return true;
}

static bool wire_step(struct pair *pair, u8 side, u8 lane, u8 what)
{
	if (what == 0)
		return arrive(pair, side, lane);
	return what == 1 ? hear(pair, side, lane) : complete_one(pair, side, lane);
}

/* One thing that can happen does, whichever */
static void wire_any(struct pair *pair)
{
	u32 nr = 2 * pair->nr_lanes * 3, first = below(pair, nr), i;

	for (i = 0; i < nr; i++) {
		u32 what = (first + i * 7) % nr;

		if (wire_step(pair, what % 2, what / 2 % pair->nr_lanes,
			      what / 2 / pair->nr_lanes))
			return;
	}
}

/* Until nothing moves any more */
static void settle(struct pair *pair)
{
	bool moved;
	u8 side, lane, what;

	do {
		moved = pair_reap(pair);
		for (side = 0; side < 2; side++) {
			for (lane = 0; lane < pair->nr_lanes; lane++)
				for (what = 0; what < 3; what++)
					moved |= wire_step(pair, side, lane, what);
			flush_workqueue(pair->ends[side]->core.wq);
		}
	} while (moved);
}

/* The processes */

static void random_thing(struct pair *pair, struct thing *thing)
{
	static const u32 sizes[] = { 0, 4, 100, 4096, 8192, 8193, 20000, 40000 };

	memset(thing, 0, sizeof(*thing));
	thing->side = below(pair, 2);
	thing->name = below(pair, NAMES);
	thing->step = 1 + below(pair, STEPS);
	thing->bytes = sizes[below(pair, ARRAY_SIZE(sizes))];
}

/* Mostly @thing is to find its like among the other side's, if one of those is live */
static void meet(struct pair *pair, struct thing *thing, const struct thing *others, u32 nr)
{
	const struct thing *other;
	u32 id = nr ? below(pair, nr) : 0;

	while (id < nr && !others[id].live)
		id++;
	if (id == nr || !below(pair, 6))
		return;
	other = &others[id];
	thing->side = !other->side;
	thing->name = other->name;
	thing->step = other->step;
}

static void do_fetch(struct pair *pair)
{
	struct thing *fetch = &pair->fetches[pair->nr_fetches];
	struct rdmatensor_fetch_args args = { .user_data = pair->nr_fetches, .name_len = 1 };
	struct end *end;
	char name[1];

	if (pair->in_flight >= IN_FLIGHT || pair->nr_fetches == IDS)
		return;
	random_thing(pair, fetch);
	meet(pair, fetch, pair->tensors, pair->nr_tensors);
	end = pair->ends[fetch->side];
	fetch->fixed = fetch->bytes && below(pair, 2);
	if (below(pair, 4))
		fetch->bytes = 40000;
	fetch->kept = below(pair, 2);
	if (fetch->kept) {
		fetch->fixed = true;
		fetch->bytes = 40000;
		fetch->offset = pair->homes[fetch->side][fetch->name];
	} else if (fetch->fixed &&
		   rdmatensor_regions_alloc(&end->pool->regions, fetch->bytes, GFP_KERNEL,
					    &fetch->offset)) {
		return;
	}
	pair_name(fetch, name);
	args.name = name;
	args.step_id = fetch->step;
	args.pool = end->pool;
	args.alloc = !fetch->fixed;
	args.offset = fetch->offset;
	args.bytes = fetch->fixed ? fetch->bytes : 0;
	args.keep = fetch->kept;
	rdmatensor_pool_get(end->pool);
	if (rdmatensor_request_submit(end->channel, &args)) {
		rdmatensor_pool_put(end->pool);
		/* To a home that another one of the name is on its way to, too */
		if (fetch->fixed && !fetch->kept)
			rdmatensor_regions_free(&end->pool->regions, fetch->offset);
		return;
	}
	fetch->live = true;
	pair->nr_fetches++;
	pair->in_flight++;
}

static void do_publish(struct pair *pair)
{
	struct thing *tensor = &pair->tensors[pair->nr_tensors];
	struct rdmatensor_publish_args args = { .user_data = pair->nr_tensors, .name_len = 1 };
	struct end *end;
	char name[1];

	if (pair->offered >= OFFERED || pair->nr_tensors == IDS)
		return;
	random_thing(pair, tensor);
	meet(pair, tensor, pair->fetches, pair->nr_fetches);
	end = pair->ends[tensor->side];
	tensor->uses = below(pair, 3);
	args.meta.data_type = RDMATENSOR_DT_UINT8;
	args.meta.ndims = 1;
	switch (below(pair, 12)) {
	case 0:
		args.failed.error = -EIO;
		tensor->bytes = 0;
		break;
	case 1:
		args.meta.is_dead = 1;
		args.meta.dims[0] = 9;
		tensor->bytes = 0;
		break;
	default:
		args.meta.bytes = tensor->bytes;
		args.meta.dims[0] = tensor->bytes;
		break;
	}
	if (tensor->bytes) {
		if (rdmatensor_regions_alloc(&end->pool->regions, tensor->bytes, GFP_KERNEL,
					     &tensor->offset))
			return;
		fill(pair, tensor->side, tensor->offset, tensor->bytes, pair->nr_tensors);
		args.pool = end->pool;
		rdmatensor_pool_get(end->pool);
	}
	pair_name(tensor, name);
	args.name = name;
	args.step_id = tensor->step;
	args.uses = tensor->uses;
	args.offset = tensor->offset;
	if (rdmatensor_publish(&end->core, &args)) {
		if (tensor->bytes) {
			rdmatensor_regions_free(&end->pool->regions, tensor->offset);
			rdmatensor_pool_put(end->pool);
		}
		return;
	}
	tensor->live = true;
	pair->nr_tensors++;
	pair->offered++;
}

static void do_cancel(struct pair *pair)
{
	u32 id = pair->nr_fetches ? below(pair, pair->nr_fetches) : 0;
	struct thing *fetch = &pair->fetches[id];

	/* One that may be in flight */
	while (id < pair->nr_fetches && !fetch->live)
		fetch = &pair->fetches[++id];
	if (id < pair->nr_fetches)
		rdmatensor_operation_cancel(&pair->ends[fetch->side]->core, id);
}

/*
 * The entry of a WITHDRAW names the operation, not the tensor. So that it is known
 * which buffer is free, nothing is withdrawn while two of its name are live
 */
static void do_withdraw(struct pair *pair)
{
	struct thing key, *tensor, *found = NULL;
	char name[1];
	u64 user_data;
	u32 id;

	random_thing(pair, &key);
	for (id = 0; id < pair->nr_tensors; id++) {
		tensor = &pair->tensors[id];
		if (!tensor->live || tensor->side != key.side || tensor->name != key.name ||
		    tensor->step != key.step)
			continue;
		if (found)
			return;
		found = tensor;
	}
	if (!found || found->stopped)
		return;
	found->stopped = true;
	pair_name(&key, name);
	user_data = found->uses ? IDS : found - pair->tensors;
	KUNIT_EXPECT_EQ(pair->test,
			rdmatensor_withdraw(&pair->ends[key.side]->core, &user_data, name, 1,
					    key.step, 0), 0);
}

/* From now on what was told of it is not where tensors of the name go */
static void do_move(struct pair *pair)
{
	u8 side = below(pair, 2), name = below(pair, NAMES);
	struct rdmatensor_regions *regions = &pair->ends[side]->pool->regions;
	u64 offset;

	if (rdmatensor_regions_alloc(regions, 40000, GFP_KERNEL, &offset))
		return;
	/* Unless a fetch is in flight to there */
	if (rdmatensor_regions_free(regions, pair->homes[side][name]))
		KUNIT_EXPECT_EQ(pair->test, rdmatensor_regions_free(regions, offset), 0);
	else
		pair->homes[side][name] = offset;
}

static void process_step(struct pair *pair)
{
	struct thing thing;

	switch (below(pair, 64)) {
	case 0 ... 3:
		do_withdraw(pair);
		break;
	case 4 ... 9:
		do_cancel(pair);
		break;
	case 10:
		random_thing(pair, &thing);
		WRITE_ONCE(pair->ends[thing.side]->core.validate, below(pair, 4) == 0);
		break;
	case 11:
		do_move(pair);
		break;
	case 12 ... 37:
		do_publish(pair);
		break;
	default:
		do_fetch(pair);
		break;
	}
}

static void pair_params(struct pair *pair, struct rdmatensor_channel_params *params)
{
	*params = end_params;
	params->msg_slots = 1 << below(pair, 6);
	params->ack_batch = 1 + below(pair, params->msg_slots);
	params->max_requests = 1 + below(pair, 16);
	params->stripe_bytes = 1 + below(pair, 30000);
	/* The least that START allows, or some more */
	params->queue_depth = params->max_requests + 2 * params->msg_slots + 1 + below(pair, 8);
}

static struct pair *pair_open(struct kunit *test, u32 seed)
{
	struct pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	struct rdmatensor_channel_params params[2];
	struct rdmatensor_wire_private private;
	struct rdmatensor_regions *regions;
	const char *why;
	u8 side, lane, name;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	pair->test = test;
	prandom_seed_state(&pair->rnd, seed);
	pair->fetches = kunit_kcalloc(test, IDS, sizeof(*pair->fetches), GFP_KERNEL);
	pair->tensors = kunit_kcalloc(test, IDS, sizeof(*pair->tensors), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pair->fetches);
	KUNIT_ASSERT_NOT_NULL(test, pair->tensors);
	pair->nr_lanes = 1 + below(pair, 4);
	for (side = 0; side < 2; side++) {
		pair_params(pair, &params[side]);
		pair->ends[side] = end_open(test, pair->nr_lanes, 128 << END_SEG_SHIFT,
					    &params[side]);
		regions = &pair->ends[side]->pool->regions;
		for (name = 0; name < NAMES; name++)
			KUNIT_ASSERT_EQ(test, 0,
					rdmatensor_regions_alloc(regions, 40000, GFP_KERNEL,
								 &pair->homes[side][name]));
	}
	for (side = 0; side < 2; side++) {
		end_private(&params[!side], &private);
		KUNIT_ASSERT_EQ(test, rdmatensor_channel_set_peer(pair->ends[side]->channel,
								  &private, &why), 0);
		for (lane = 0; lane < pair->nr_lanes; lane++) {
			INIT_LIST_HEAD(&pair->incoming[side][lane]);
			pair->most_incoming[side][lane] =
				rdmatensor_channel_recvs(&params[side], lane);
		}
	}
	pair->ends[0]->channel->active = true;
	rdmatensor_channel_hello(pair->ends[0]->channel);
	settle(pair);
	KUNIT_ASSERT_EQ(test, pair->ends[0]->up + pair->ends[1]->up, 2);
	return pair;
}

/* Nothing is in flight: what counts something must say so */
static void check_rest(struct pair *pair)
{
	u8 side, lane;

	for (side = 0; side < 2; side++) {
		struct rdmatensor_channel *channel = pair->ends[side]->channel;

		KUNIT_EXPECT_STREQ(pair->test, channel->error_text ?: "", "");
		KUNIT_EXPECT_EQ(pair->test, channel->outstanding, 0);
		KUNIT_EXPECT_EQ(pair->test, channel->writes_open, 0);
		KUNIT_EXPECT_EQ(pair->test, channel->nr_responses, 0);
		KUNIT_EXPECT_EQ(pair->test, channel->credits.sent, channel->credits.sent_done);
		KUNIT_EXPECT_EQ(pair->test, channel->credits.sent,
				pair->ends[!side]->channel->credits.consumed);
		KUNIT_EXPECT_EQ(pair->test, channel->credits.peer_told,
				pair->ends[!side]->channel->credits.told);
		for (lane = 0; lane < pair->nr_lanes; lane++)
			KUNIT_EXPECT_EQ(pair->test, channel->lanes[lane].sendq_free,
					channel->params->queue_depth);
	}
}

/* What the process had has been returned: all the rest must be free as well */
static void check_regions(struct pair *pair, u8 side)
{
	struct rdmatensor_regions *regions = &pair->ends[side]->pool->regions;
	u64 offset;
	u32 id;
	u8 name;

	for (name = 0; name < NAMES; name++)
		KUNIT_EXPECT_EQ(pair->test,
				rdmatensor_regions_free(regions, pair->homes[side][name]), 0);
	for (id = 0; id < pair->nr_tensors; id++) {
		const struct thing *tensor = &pair->tensors[id];

		if (tensor->live && tensor->side == side && tensor->bytes)
			KUNIT_EXPECT_EQ(pair->test,
					rdmatensor_regions_free(regions, tensor->offset), 0);
	}
	KUNIT_EXPECT_EQ(pair->test,
			rdmatensor_regions_alloc(regions, regions->bytes, GFP_KERNEL, &offset),
			0);
}

static void pair_close(struct pair *pair)
{
	struct incoming *in, *next;
	u8 side, lane;
	u32 id;

	/* What is on its way is lost, at both ends, before either takes back its memory */
	for (side = 0; side < 2; side++)
		if (pair->ends[side]->channel->state != RDMATENSOR_CHANNEL_DOWN)
			end_down(pair->ends[side]);
	for (side = 0; side < 2; side++) {
		flush_workqueue(pair->ends[side]->core.wq);
		for (lane = 0; lane < pair->nr_lanes; lane++)
			list_for_each_entry_safe(in, next, &pair->incoming[side][lane], item)
				kfree(in);
	}
	for (side = 0; side < 2; side++) {
		LIST_HEAD(released);

		rdmatensor_rendezvous_drain(pair->ends[side]->core.rdv, &released);
		rdmatensor_publication_release_list(&released);
	}
	pair_reap(pair);
	KUNIT_EXPECT_EQ(pair->test, pair->in_flight, 0);
	/* Those that are used for good have no entry */
	for (id = 0; id < pair->nr_tensors; id++)
		KUNIT_EXPECT_TRUE_MSG(pair->test,
				      !pair->tensors[id].live || !pair->tensors[id].uses,
				      "tensor %u is lost", id);
	for (side = 0; side < 2; side++) {
		check_regions(pair, side);
		end_close(pair->ends[side]);
	}
}

static void play(struct pair *pair)
{
	u32 round;

	for (round = 0; round < ROUNDS; round++) {
		if (below(pair, 4))
			wire_any(pair);
		else
			process_step(pair);
		pair_reap(pair);
	}
}

static u32 total_good, total_bad, total_short;

/* All goes its way to the end: whoever still waits is told that the steps are over */
static void quiet_end(struct kunit *test)
{
	struct pair *pair = pair_open(test, *(const u32 *)test->param_value);
	s64 step;
	u8 side;

	play(pair);
	for (step = 1; step <= STEPS; step++)
		for (side = 0; side < 2; side++)
			end_abort_step(pair->ends[side], step, -ECANCELED);
	settle(pair);
	KUNIT_EXPECT_EQ(test, pair->in_flight, 0);
	check_rest(pair);
	total_good += pair->good;
	total_bad += pair->bad;
	for (side = 0; side < 2; side++)
		total_short += end_stat(pair->ends[side], RDMATENSOR_STAT_TX_SHORT_REQUESTS);
	pair_close(pair);
}

/* What the seeds above have played was no idle game */
static void much_has_happened(struct kunit *test)
{
	kunit_info(test, "%u fetches ended well, %u with an error; %u short requests\n",
		   total_good, total_bad, total_short);
	KUNIT_EXPECT_GT(test, total_good, seeds * 50);
	KUNIT_EXPECT_GT(test, total_bad, seeds * 20);
	KUNIT_EXPECT_GT(test, total_short, seeds * 5);
}

/* The connection is cut in the middle, whatever is in flight */
static void cut(struct kunit *test)
{
	struct pair *pair = pair_open(test, 1000 + *(const u32 *)test->param_value);

	play(pair);
	pair_close(pair);
}

static const void *seed_gen_params(const void *prev, char *desc)
{
	static u32 seed;

	seed = prev ? seed + 1 : 1;
	if (seed > seeds)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "seed %u", seed);
	return &seed;
}

static struct kunit_case pair_tests[] = {
	KUNIT_CASE_PARAM(quiet_end, seed_gen_params),
	KUNIT_CASE(much_has_happened),
	KUNIT_CASE_PARAM(cut, seed_gen_params),
	{}
};

static struct kunit_suite pair_suite = {
	.name = "rdmatensor_pair",
	.test_cases = pair_tests,
};

kunit_test_suite(pair_suite);
