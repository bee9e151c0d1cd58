// SPDX-License-Identifier: GPL-2.0
/*
 * How contents share a lane: how much of them is posted, in which order, and what happens
 * to the rest. Writes end where a key ends, after 8 KiB; a chunk is 64 KiB.
 */
#include "script.h"

#define KEY ((u64)1 << END_SEG_SHIFT)
#define CHUNK SZ_64K
/* A chunk, and the write that exceeds it */
#define LIMIT (CHUNK + KEY)
#define LARGE SZ_256K
/* What a lane may have posted that nobody short waits for, in lane_bytes */
#define ALONE ((u64)4)

static struct script_end *open_lanes(struct kunit *test, u8 lanes, u32 max_requests,
				     const struct rdmatensor_channel_params *with)
{
	struct rdmatensor_channel_params params = *with;
	struct script_end *script = kunit_kzalloc(test, sizeof(*script), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, script);
	params.max_requests = max_requests;
	params.queue_depth = 1024;
	params.stripe_bytes = SZ_1G;
	seq_buf_init(&script->trace, script->text, sizeof(script->text));
	init_completion(&script->go);
	script->end = end_open(test, lanes, SZ_4M, &params);
	script_up(script);
	return script;
}

static struct script_end *open_with(struct kunit *test, u32 max_requests,
				    const struct rdmatensor_channel_params *with)
{
	return open_lanes(test, 1, max_requests, with);
}

static struct script_end *open(struct kunit *test, u32 max_requests)
{
	return open_with(test, max_requests, &end_params);
}

/* The peer asks for tensor number @index, which is there, in so many parts */
static void request_parts(struct script_end *script, u32 index, u64 bytes, u8 parts)
{
	struct end *end = script->end;
	char name[8];
	struct rdmatensor_publish_args args = {
		.user_data = index, .name = name, .step_id = 1, .uses = 1,
		.meta = SCRIPT_META(bytes),
	};
	struct rdmatensor_msg msg = {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = index, .name = name,
		.step_id = 1, SCRIPT_DEST(bytes, parts),
	};
	static const __le32 rkeys[160];

	msg.name_len = snprintf(name, sizeof(name), "%u", index);
	args.name_len = msg.name_len;
	if (bytes) {
		KUNIT_ASSERT_EQ(end->test, 0,
				rdmatensor_regions_alloc(&end->pool->regions, bytes, GFP_KERNEL,
							 &args.offset));
		args.pool = end->pool;
		rdmatensor_pool_get(end->pool);
	} else {
		msg.remote_addr = 0;
	}
	KUNIT_ASSERT_EQ(end->test, rdmatensor_publish(&end->core, &args), 0);
	msg.nr_rkeys = rdmatensor_wire_segments(msg.remote_addr, bytes, END_SEG_SHIFT);
	msg.rkeys = rkeys;
	rdmatensor_channel_rx_message(end->channel,
				      end_put_message(end, &msg, end->channel->credits.sent));
	/* Messages complete; writes are looked at below */
	script_trace(script);
}

static void request(struct script_end *script, u32 index, u64 bytes)
{
	request_parts(script, index, bytes, 1);
}

/* What a lane has posted of a content that has not completed; @index U32_MAX: of all */
static u64 posted_on(struct script_end *script, u8 lane, u32 index)
{
	struct post *post;
	u64 bytes = 0;

	spin_lock_bh(&script->end->channel->lock);
	list_for_each_entry(post, &script->end->posted[lane], item)
		if (post->kind == POST_WRITE && (index == U32_MAX || post->index == index))
			bytes += post->bytes;
	spin_unlock_bh(&script->end->channel->lock);
	return bytes;
}

static u64 posted(struct script_end *script, u32 index)
{
	return posted_on(script, 0, index);
}

/* The device says that @bytes are done on a lane, in one interrupt. Their contents, in @of */
static void complete_on(struct script_end *script, u8 lane, u64 bytes, u64 *of)
{
	struct post *post;

	local_bh_disable();
	while (bytes && (post = end_first(script->end, lane))) {
		u64 done = post->bytes;

		if (post->kind != POST_WRITE)
			done = 0;
		else if (of)
			of[post->index] += done;
		end_complete(script->end, lane);
		bytes -= min(bytes, done);
	}
	local_bh_enable();
}

static void complete_bytes(struct script_end *script, u64 bytes, u64 *of)
{
	complete_on(script, 0, bytes, of);
}

static void bounded(struct kunit *test)
{
	struct script_end *script = open(test, 8);
	u64 done = 0;

	request(script, 0, LARGE);
	request(script, 1, LARGE);
	/* Completions that come one by one do not starve it: it does not become more */
	while (posted(script, U32_MAX)) {
		KUNIT_EXPECT_LE(test, posted(script, U32_MAX), LIMIT);
		if (2 * LARGE - done > LIMIT)
			KUNIT_EXPECT_GT(test, posted(script, U32_MAX), LIMIT - KEY);
		complete_bytes(script, KEY, NULL);
		done += KEY;
	}
	KUNIT_EXPECT_EQ(test, done, (u64)2 * LARGE);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_SERVED), 2);
	script_close(script);
}

/* A wire that had nothing left when its completions were seen is given more */
static void grows(struct kunit *test)
{
	struct script_end *script = open(test, 64);
	struct dql *limit = &script->end->channel->lanes[0].limit;
	u32 i;

	for (i = 0; i < 10; i++)
		request(script, i, LARGE);
	KUNIT_EXPECT_EQ(test, posted(script, U32_MAX), LIMIT);
	for (i = 0; i < 12 && limit->limit <= 2 * LIMIT; i++)
		complete_bytes(script, posted(script, U32_MAX), NULL);
	KUNIT_EXPECT_GT(test, limit->limit, 2 * LIMIT);
	KUNIT_EXPECT_GT(test, posted(script, U32_MAX), 2 * LIMIT);
	script_close(script);
}

/* With all that is posted at once, until nothing is left. Return: the most that was posted */
static u64 drain(struct script_end *script)
{
	u64 bytes, most = 0;

	while ((bytes = posted(script, U32_MAX))) {
		most = max(most, bytes);
		complete_bytes(script, bytes, NULL);
	}
	return most;
}

/* And not more than it may have, however often it has nothing left */
static void grows_to_its_bound(struct kunit *test)
{
	struct rdmatensor_channel_params params = end_params;
	struct script_end *script;
	struct rdmatensor_lane *lane;
	u32 i;

	params.lane_bytes = CHUNK;
	script = open_with(test, 64, &params);
	lane = &script->end->channel->lanes[0];
	for (i = 0; i < 10; i++)
		request(script, i, LARGE);
	KUNIT_EXPECT_EQ(test, drain(script), ALONE * CHUNK + KEY);
	KUNIT_EXPECT_EQ(test, lane->limit.limit, ALONE * CHUNK);
	script_close(script);
}

/* When a lane was last contended for. What tests do takes no time then */
static void contended_at(struct script_end *script, unsigned long at)
{
	spin_lock_bh(&script->end->channel->lock);
	script->end->channel->lanes[0].contended = at;
	spin_unlock_bh(&script->end->channel->lock);
}

/* Who waits for what is posted makes the bound smaller, for a second */
static void shrinks_for_who_waits(struct kunit *test)
{
	static const struct script_step cancel = CANCEL_OF(30, "cancelled#30");
	struct rdmatensor_channel_params params = end_params;
	struct script_end *script;
	bool idle = false;
	u32 i;

	params.lane_bytes = CHUNK;
	do {
		script = open_with(test, 64, &params);
		for (i = 0; i < 4; i++)
			request(script, i, LARGE);
		drain(script);
		if (!idle)
			for (; i < 6; i++)
				request(script, i, LARGE);
		KUNIT_EXPECT_EQ(test, posted(script, U32_MAX), idle ? 0 : ALONE * CHUNK + KEY);
		script_trace(script);
		script_do(script, &cancel);
		contended_at(script, jiffies + 600 * HZ);
		if (!idle)
			complete_bytes(script, posted(script, U32_MAX), NULL);
		for (; i < 8; i++)
			request(script, i, LARGE);
		KUNIT_EXPECT_EQ(test, drain(script), CHUNK + KEY);

		contended_at(script, jiffies - HZ);
		for (; i < 12; i++)
			request(script, i, LARGE);
		KUNIT_EXPECT_EQ(test, drain(script), ALONE * CHUNK + KEY);
		script_close(script);
		idle = !idle;
	} while (idle);
}

/**
 * struct arrival - of which the last step may be one that waits
 * @what: it is
 * @waits: for what is posted
 * @steps: that lead to it
 */
struct arrival {
	const char *what;
	bool waits;
	struct script_step steps[4];
};

static const struct arrival arrivals[] = {
	{ "a short tensor, to be described", true,
	  { PUBLISH(9, "x", SZ_64K, 1, ""), REQ(31, "x", "meta#31") } },
	{ "a long one, to be described", false,
	  { PUBLISH(9, "x", SZ_64K + 1, 1, ""), REQ(31, "x", "meta#31") } },
	{ "a failure", true,
	  { PUBLISH_FAILED(9, "x", -EIO, ""), REQ(31, "x", "err#31:-5 pub9:0") } },
	{ "a CANCEL of what is being written", true,
	  { PUBLISH(9, "x", 100, 1, ""), REQ_DEST(31, "x", 100, "w0#31:100!"),
	    CANCEL_OF(31, "") } },
	{ "a CANCEL", true, { CANCEL_OF(31, "cancelled#31") } },
	{ "a fetch of what is unknown", true, { FETCH(1, "x", "req#0") } },
	{ "a fetch that turns out short", true,
	  { FETCH(1, "x", "req#0"), META(0, SZ_64K, "re#0+dest") } },
	{ "a fetch that turns out long", false,
	  { FETCH(1, "x", "req#0"), META(0, SZ_64K + 1, "re#0+dest") } },
	{ "a fetch that is cancelled", true,
	  { FETCH(1, "x", "req#0"), META(0, SZ_64K + 1, "re#0+dest"), CANCEL(1, "cancel#0") } },
};

static void arrival_name(const struct arrival *arrival, char *name)
{
	strscpy(name, arrival->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(arrival, arrivals, arrival_name);

static void felt_by_who_waits(struct kunit *test)
{
	const struct arrival *arrival = test->param_value;
	unsigned long before = jiffies - HZ;
	struct script_end *script = open(test, 8);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(arrival->steps) && arrival->steps[i].line; i++) {
		contended_at(script, before);
		script_do(script, &arrival->steps[i]);
	}
	KUNIT_EXPECT_EQ(test, script->end->channel->lanes[0].contended != before, arrival->waits);
	script_close(script);
}

/* When it comes, and when its turn does; not what is longer */
static void felt_by_short_contents(struct kunit *test)
{
	unsigned long before = jiffies - HZ;
	struct script_end *script = open(test, 8);
	const unsigned long *at = &script->end->channel->lanes[0].contended;

	contended_at(script, before);
	request(script, 0, SZ_64K + KEY);
	KUNIT_EXPECT_EQ(test, *at, before);
	request(script, 1, SZ_4K);
	KUNIT_EXPECT_NE(test, *at, before);
	contended_at(script, before);
	complete_bytes(script, posted(script, 0), NULL);
	KUNIT_EXPECT_EQ(test, posted(script, 1), SZ_4K);
	KUNIT_EXPECT_NE(test, *at, before);
	drain(script);
	script_close(script);
}

static void felt_on_all_lanes(struct kunit *test)
{
	struct script_end *script = script_open(test, 2, &end_params);
	struct rdmatensor_channel *channel = script->end->channel;

	spin_lock_bh(&channel->lock);
	rdmatensor_channel_contend(channel);
	KUNIT_EXPECT_EQ(test, channel->lanes[0].limit.max_limit, end_params.lane_bytes);
	KUNIT_EXPECT_EQ(test, channel->lanes[1].limit.max_limit, end_params.lane_bytes);
	spin_unlock_bh(&channel->lock);
	script_close(script);
}

static void lane_bytes(struct kunit *test)
{
	static const u32 bytes[] = { SZ_64K, SZ_128K, SZ_64M };
	struct rdmatensor_channel_params params = end_params;
	struct script_end *script;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		const struct rdmatensor_lane *lanes;

		params.lane_bytes = bytes[i];
		script = script_open(test, 2, &params);
		lanes = script->end->channel->lanes;
		KUNIT_EXPECT_EQ(test, lanes[0].limit.max_limit, ALONE * bytes[i]);
		KUNIT_EXPECT_EQ(test, lanes[1].limit.max_limit, ALONE * bytes[i]);
		script_close(script);
	}
}

/* Two large ones go side by side, a chunk each */
static void side_by_side(struct script_end *script, u32 one, u32 other, u64 bytes)
{
	struct kunit *test = script->end->test;
	u64 of[8] = {};

	request(script, one, bytes);
	request(script, other, bytes);
	while (of[one] + posted(script, one) < bytes) {
		complete_bytes(script, KEY, of);
		KUNIT_EXPECT_LE(test, abs_diff(of[one] + posted(script, one),
					       of[other] + posted(script, other)),
				LIMIT + CHUNK + KEY);
	}
	/* The first had what was posted before the second came */
	KUNIT_EXPECT_GE(test, of[other], bytes - LIMIT - 2 * CHUNK);
}

static void fair(struct kunit *test)
{
	struct script_end *script = open(test, 8);

	side_by_side(script, 0, 1, LARGE);
	script_close(script);
}

/* A small one waits for what is posted and for one turn, however many are large */
static void small_passes_large(struct kunit *test)
{
	struct script_end *script = open(test, 16);
	u64 of[16] = {}, before = 0;
	u32 i;

	for (i = 0; i < 8; i++)
		request(script, i, LARGE);
	for (i = 0; i < 4 * CHUNK / KEY; i++)
		complete_bytes(script, KEY, of);
	request(script, 8, SZ_4K);
	memset(of, 0, sizeof(of));
	while (!of[8] && posted(script, U32_MAX)) {
		complete_bytes(script, 1, of);
		before = 0;
		for (i = 0; i < 8; i++)
			before += of[i];
	}
	KUNIT_EXPECT_EQ(test, of[8], (u64)SZ_4K);
	KUNIT_EXPECT_LE(test, before, (u64)LIMIT + CHUNK);
	script_close(script);
}

/* Any number of small ones leave a large one half of the lane */
static void flood_of_small(struct kunit *test)
{
	struct script_end *script = open(test, 64);
	u64 of[64] = {}, small = 0;
	u32 i;

	request(script, 0, LARGE);
	for (i = 1; i < 60; i++)
		request(script, i, KEY);
	complete_bytes(script, LIMIT, of);
	memset(of, 0, sizeof(of));
	for (i = 0; i < 4 * CHUNK / KEY; i++)
		complete_bytes(script, KEY, of);
	for (i = 1; i < 60; i++)
		small += of[i];
	KUNIT_EXPECT_GE(test, of[0], (u64)CHUNK);
	KUNIT_EXPECT_GE(test, small, (u64)CHUNK);
	script_close(script);
}

/* The end of a content is a turn, too, and is worth no more than it is long */
static void flood_of_tails(struct kunit *test)
{
	struct script_end *script = open(test, 64);
	u64 of[64] = {}, others = 0;
	u32 i;

	request(script, 0, SZ_1M);
	for (i = 1; i < 60; i++)
		request(script, i, KEY + KEY / 2);
	complete_bytes(script, LIMIT, of);
	memset(of, 0, sizeof(of));
	for (i = 0; i < 6 * CHUNK / KEY; i++)
		complete_bytes(script, KEY, of);
	for (i = 1; i < 60; i++)
		others += of[i];
	/* It has a turn for as much as has begun and ended, and that for as much as began */
	KUNIT_EXPECT_GE(test, 5 * of[0], others);
	script_close(script);
}

/* Contents of no bytes have their turn, too, and no more than that */
static void flood_of_empty(struct kunit *test)
{
	struct script_end *script = open(test, 512);
	u64 *of = kunit_kcalloc(test, 512, sizeof(*of), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, of);
	request(script, 0, LARGE);
	for (i = 1; i < 400; i++)
		request(script, i, 0);
	for (i = 0; i < 3 * CHUNK / KEY; i++)
		complete_bytes(script, KEY, of);
	KUNIT_EXPECT_GE(test, of[0], (u64)3 * CHUNK);
	script_close(script);
}

/* What waits for its turn when the peer does not want it any more is not written */
static void cancelled_in_its_turn(struct kunit *test)
{
	static const struct script_step cancel = CANCEL_OF(0, "");
	struct script_end *script = open(test, 8);
	u64 of[1] = {};

	request(script, 0, LARGE);
	complete_bytes(script, KEY, of);
	script_trace(script);
	script_do(script, &cancel);
	KUNIT_EXPECT_EQ(test, posted(script, 0), (u64)LIMIT);
	complete_bytes(script, LIMIT - KEY, of);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	complete_bytes(script, KEY, of);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "cancelled#0");
	KUNIT_EXPECT_EQ(test, of[0], (u64)LIMIT + KEY);
	script_close(script);
	/* Nobody has got it */
	KUNIT_EXPECT_EQ(test, script->end->left, 1);
}

/* Both lanes go on by a write, until that has happened. Return: bytes of others than @but */
static u64 until(struct script_end *script, const char *trace, u32 but)
{
	u64 of[8] = {}, others = 0;
	u32 i;

	while (posted_on(script, 0, U32_MAX) || posted_on(script, 1, U32_MAX)) {
		for (i = 0; i < 2; i++)
			complete_on(script, i, 1, of);
		if (strstr(script_trace(script), trace))
			break;
	}
	for (i = 0; i < ARRAY_SIZE(of); i++)
		others += i == but ? 0 : of[i];
	return others;
}

/*
 * What has begun on two lanes is written to its end, and its peer waits for that. It passes the
 * others, and is passed by what is short. Of two that are as long it is the first
 */
static void cancelled_on_two_lanes(struct kunit *test)
{
	static const struct script_step of_2 = CANCEL_OF(2, ""), of_1 = CANCEL_OF(1, "");
	/* What is in flight, and may go on by then */
	const u64 before = 2 * (LIMIT + CHUNK);
	struct script_end *script = open_lanes(test, 2, 8, &end_params);
	u64 of[8] = {};
	u32 i;

	for (i = 0; i < 3; i++)
		request_parts(script, i, SZ_1M, 2);
	for (i = 0; i < 8 * CHUNK / KEY; i++) {
		complete_on(script, 0, KEY, of);
		complete_on(script, 1, KEY, of);
	}
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_GT(test, of[i], 0);
		KUNIT_EXPECT_LT(test, of[i], SZ_1M - 2 * LIMIT);
	}
	script_trace(script);
	script_do(script, &of_2);
	script_do(script, &of_1);
	request(script, 3, SZ_4K);
	KUNIT_EXPECT_LE(test, until(script, "pub3:0", 3), before);
	KUNIT_EXPECT_LE(test, until(script, "cancelled#2", 2), before);
	KUNIT_EXPECT_LE(test, until(script, "cancelled#1", 1), before);
	until(script, "never", U32_MAX);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_SERVED), 4);
	/* What serves those that come then, and has served these, does not pass any more */
	side_by_side(script, 4, 5, SZ_256K + SZ_128K);
	script_close(script);
}

/* The short one does not wait for the long one that was cancelled before */
static void cancelled_short_and_long(struct kunit *test)
{
	static const struct script_step of_0 = CANCEL_OF(0, ""), of_1 = CANCEL_OF(1, "");
	struct script_end *script = open_lanes(test, 2, 8, &end_params);
	u32 i;

	request_parts(script, 0, SZ_1M, 2);
	request_parts(script, 1, SZ_512K, 2);
	request_parts(script, 2, SZ_1M, 2);
	for (i = 0; i < 6 * CHUNK / KEY; i++) {
		complete_on(script, 0, KEY, NULL);
		complete_on(script, 1, KEY, NULL);
	}
	script_trace(script);
	script_do(script, &of_0);
	script_do(script, &of_1);
	KUNIT_EXPECT_LE(test, until(script, "cancelled#1", 1), (u64)2 * (LIMIT + CHUNK));
	KUNIT_EXPECT_LE(test, until(script, "cancelled#0", 0), (u64)2 * (LIMIT + CHUNK));
	until(script, "never", U32_MAX);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_SERVED), 3);
	script_close(script);
}

/* What has begun on one lane and has all of it there, and waits for its first turn on the other */
static void cancelled_before_the_second_lane(struct kunit *test)
{
	static const struct script_step cancel = CANCEL_OF(5, "");
	struct script_end *script = open_lanes(test, 2, 8, &end_params);
	u32 i;

	/* Of lane 0 alone: lane 1 has nothing else to do */
	for (i = 0; i < 5; i++)
		request(script, i, LARGE);
	request_parts(script, 5, LARGE, 2);
	KUNIT_EXPECT_EQ(test, posted_on(script, 0, 5), 0);
	KUNIT_EXPECT_GT(test, posted_on(script, 1, 5), 0);
	script_trace(script);
	script_do(script, &cancel);
	KUNIT_EXPECT_LE(test, until(script, "cancelled#5", 5), (u64)LIMIT + CHUNK);
	until(script, "never", U32_MAX);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_SERVED), 6);
	script_close(script);
}

/* Nothing is posted for a request that is new to the peer before the old response is free */
static void responses_are_enough(struct kunit *test)
{
	struct script_end *script = open(test, 1);
	struct post *post;

	request(script, 0, 100);
	request(script, 1, 100);
	end_complete(script->end, 0);
	post = end_first(script->end, 0);
	KUNIT_ASSERT_NOT_NULL(test, post);
	KUNIT_EXPECT_EQ(test, post->index, 1);
	KUNIT_EXPECT_EQ(test, post->responses, 1);
	script_close(script);
}

/* A device that takes fewer entries for a write gets more writes */
static void few_sges(struct kunit *test)
{
	struct script_end *script = open(test, 8);
	struct rdmatensor_channel *channel = script->end->channel;
	struct post *post;
	u64 bytes = 0;

	spin_lock_bh(&channel->lock);
	channel->lanes[0].max_sge = 1;
	spin_unlock_bh(&channel->lock);
	/* The second one's source does not lie as its destination does */
	request(script, 0, KEY / 2);
	request(script, 1, 4 * KEY);
	while ((post = end_first(script->end, 0))) {
		KUNIT_EXPECT_LE(test, post->nr_sge, 1);
		bytes += post->bytes;
		end_complete(script->end, 0);
	}
	KUNIT_EXPECT_EQ(test, bytes, 4 * KEY + KEY / 2);
	script_close(script);
}

/* @rows bytes, each a run of its own: a column of what is published, or whole, to a column */
static void request_column(struct script_end *script, u32 index, u64 rows, bool place)
{
	static const struct rdmatensor_wire_layout gaps = {
		.ndims = 1, .strides = { cpu_to_le64(2) },
	};
	static const struct rdmatensor_wire_slice column = {
		.ndims = 2, .ranges = { { 0, cpu_to_le64(RDMATENSOR_RANGE_REST) },
					{ 0, cpu_to_le64(1) } },
	};
	struct end *end = script->end;
	struct rdmatensor_publish_args args = {
		.user_data = index, .name = "c", .name_len = 1, .step_id = 1, .uses = 1,
		.meta = { .data_type = RDMATENSOR_DT_UINT8, .ndims = place ? 1 : 2,
			  .bytes = place ? rows : 2 * rows, .dims = { rows, place ? 0 : 2 } },
		.pool = end->pool,
	};
	static const __le32 rkeys[160];
	struct rdmatensor_msg msg = {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = index, .name = "c",
		.name_len = 1, .step_id = 1, SCRIPT_DEST(rows, 1), .rkeys = rkeys,
		.slice = place ? NULL : &column, .layout = place ? &gaps : NULL,
	};

	msg.flags |= place ? RDMATENSOR_WIRE_F_LAYOUT : RDMATENSOR_WIRE_F_SLICE;
	msg.meta = args.meta;
	msg.nr_rkeys = rdmatensor_wire_segments(msg.remote_addr, place ? 2 * rows - 1 : rows,
						END_SEG_SHIFT);
	end->channel->features |= RDMATENSOR_WIRE_FEATURE_SLICE |
				  RDMATENSOR_WIRE_FEATURE_LAYOUT;
	KUNIT_ASSERT_EQ(end->test, 0, rdmatensor_regions_alloc(&end->pool->regions, 2 * rows,
							       GFP_KERNEL, &args.offset));
	rdmatensor_pool_get(end->pool);
	KUNIT_ASSERT_EQ(end->test, rdmatensor_publish(&end->core, &args), 0);
	rdmatensor_channel_rx_message(end->channel,
				      end_put_message(end, &msg, end->channel->credits.sent));
	script_trace(script);
}

/* Writes of a content that are posted and have not completed */
static u32 writes(struct script_end *script, u32 index)
{
	struct post *post;
	u32 nr = 0;

	spin_lock_bh(&script->end->channel->lock);
	list_for_each_entry(post, &script->end->posted[0], item)
		nr += post->kind == POST_WRITE && post->index == index;
	spin_unlock_bh(&script->end->channel->lock);
	return nr;
}

/*
 * Runs of a byte cost more than their bytes: they do not fill the lane, nor keep it from others. Of
 * those of the source some go with one write, of a place each is one
 */
static void runs_of_a_byte(struct kunit *test, bool place)
{
	struct script_end *script = open(test, 8);
	u64 of[2] = {};
	int i;

	request_column(script, 1, 4 * SZ_1K, place);
	KUNIT_EXPECT_GT(test, writes(script, 1), 1);
	KUNIT_EXPECT_LE(test, writes(script, 1), LIMIT / SZ_4K + 1);
	request(script, 0, LARGE);
	for (i = 0; i < 1000 && of[0] < LARGE; i++) {
		KUNIT_EXPECT_LE(test, writes(script, 1), LIMIT / SZ_4K + 1);
		complete_bytes(script, 1, of);
	}
	/* As much of the lane for the one as for the other: 4 bytes count as 4 KiB */
	KUNIT_EXPECT_GE(test, of[0], (u64)LARGE);
	KUNIT_EXPECT_LE(test, of[1], 2 * (LARGE / SZ_4K) * 4);
	KUNIT_EXPECT_GT(test, of[1], 0);
	drain(script);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_SERVED), 2);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_SERVED_BYTES),
			LARGE + 4 * SZ_1K);
	script_close(script);
}

static void short_runs(struct kunit *test)
{
	runs_of_a_byte(test, false);
}

static void short_runs_of_a_place(struct kunit *test)
{
	runs_of_a_byte(test, true);
}

static struct kunit_case share_tests[] = {
	KUNIT_CASE(bounded),
	KUNIT_CASE(grows),
	KUNIT_CASE(grows_to_its_bound),
	KUNIT_CASE(shrinks_for_who_waits),
	KUNIT_CASE_PARAM(felt_by_who_waits, arrival_gen_params),
	KUNIT_CASE(felt_by_short_contents),
	KUNIT_CASE(felt_on_all_lanes),
	KUNIT_CASE(lane_bytes),
	KUNIT_CASE(fair),
	KUNIT_CASE(small_passes_large),
	KUNIT_CASE(flood_of_small),
	KUNIT_CASE(flood_of_tails),
	KUNIT_CASE(flood_of_empty),
	KUNIT_CASE(cancelled_in_its_turn),
	KUNIT_CASE(cancelled_on_two_lanes),
	KUNIT_CASE(cancelled_short_and_long),
	KUNIT_CASE(cancelled_before_the_second_lane),
	KUNIT_CASE(responses_are_enough),
	KUNIT_CASE(few_sges),
	KUNIT_CASE(short_runs),
	KUNIT_CASE(short_runs_of_a_place),
	{}
};

static struct kunit_suite share_suite = {
	.name = "rdmatensor_share",
	.test_cases = share_tests,
};

kunit_test_suite(share_suite);
