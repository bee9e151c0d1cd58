// SPDX-License-Identifier: GPL-2.0
/*
 * The channel: set-up, order, credits, places in the send queue, and how it ends.
 */
#include "script.h"
#include "transport/probe.h"

static struct script_end *open_one(struct kunit *test, u32 slots, u32 ack_batch)
{
	struct rdmatensor_channel_params params = end_params;

	params.msg_slots = slots;
	params.ack_batch = ack_batch;
	params.max_requests = 64;
	return script_open(test, 1, &params);
}

#define DO(_script, ...) \
	do { \
		static const struct script_step step_ = __VA_ARGS__; \
		script_do(_script, &step_); \
	} while (0)

#define HELLO(_name, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_HELLO, .max_requests = 8, \
	   .text = _name, .text_len = sizeof(_name) - 1)

static const struct peer {
	const char *name;
	u32 slots;
	u32 slot_bytes;
	u32 ack_batch;
	u32 max_requests;
	const char *why;
} peers[] = {
	{ "least", 1, 1024, 1, 1, NULL },
	{ "most", 1024, 65536, 1024, 1 << 20, NULL },
	{ "no slots", 0, 1024, 1, 1, "message buffer of an impossible size" },
	{ "odd slots", 3, 1024, 1, 1, "message buffer of an impossible size" },
	{ "too many slots", 2048, 1024, 1, 1, "message buffer of an impossible size" },
	{ "short slots", 4, 512, 1, 1, "message buffer of an impossible size" },
	{ "odd length", 4, 1536, 1, 1, "message buffer of an impossible size" },
	{ "long slots", 4, 131072, 1, 1, "message buffer of an impossible size" },
	{ "no batch", 4, 1024, 0, 1, "ack batch out of range" },
	{ "long batch", 4, 1024, 5, 1, "ack batch out of range" },
	{ "no requests", 4, 1024, 4, 0, "request limit out of range" },
	{ "too many requests", 4, 1024, 4, (1 << 20) + 1, "request limit out of range" },
};

static void peer_name(const struct peer *peer, char *desc)
{
	strscpy(desc, peer->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(peer, peers, peer_name);

static void set_peer(struct kunit *test)
{
	const struct peer *peer = test->param_value;
	struct rdmatensor_channel_params params = {
		.msg_slots = peer->slots,
		.msg_slot_bytes = peer->slot_bytes,
		.ack_batch = peer->ack_batch,
		.max_requests = peer->max_requests,
	};
	struct script_end *script = open_one(test, 16, 16);
	struct rdmatensor_channel *channel = script->end->channel;
	struct rdmatensor_wire_private private;
	const char *why = NULL;

	end_private(&params, &private);
	KUNIT_EXPECT_EQ(test, rdmatensor_channel_set_peer(channel, &private, &why),
			peer->why ? -EPROTO : 0);
	KUNIT_EXPECT_STREQ(test, why ?: "", peer->why ?: "");
	if (!peer->why) {
		KUNIT_EXPECT_EQ(test, channel->max_outstanding, min(peer->max_requests, 64U));
		KUNIT_EXPECT_EQ(test, channel->credits.window, min(peer->slots, 16U));
	}
	script_close(script);
}

static const struct script scripts[] = {
	{ "HELLO twice", .steps = { HELLO("peer", "down:-71(HELLO out of turn)") } },
	{ "unknown type", .steps = {
		RX("down:-71(unknown type)",
		   .type = RDMATENSOR_WIRE_LIST_INFO + 1),
	} },
	{ "posting a message fails", .steps = {
		BREAK(-ENOMEM),
		FETCH(1, "x", "down:-104(posting to the send queue failed)"),
		DOWN("end1:-104+text"),
	} },
	{ "posting a content fails", .left = 1, .steps = {
		PUBLISH(7, "x", 100, 1, ""), BREAK(-ENODEV),
		REQ_DEST(0, "x", 100, "down:-19(posting to the send queue failed)"),
	} },
	{ "posting a second write fails", .left = 1, .steps = {
		PUBLISH(7, "x", 100, 2, ""), REQ_DEST(0, "x", 100, "w0#0:100!"),
		BREAK(-ENOMEM),
		REQ_DEST(1, "x", 100, "down:-104(posting to the send queue failed)"),
		DONE(""), DOWN(""),
	} },
	{ "messages go in order", .steps = {
		FULL, FETCH(1, "a", ""), FETCH(2, "b", ""), PUBLISH(7, "x", 100, 1, ""),
		REQ(0, "x", ""), FETCH(3, "c", ""), ROOM("req#0 req#1 meta#0 req#2"),
		RE(0, 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "nothing is posted after the end", .left = 1, .steps = {
		PUBLISH(7, "x", 100, 2, ""), FULL, FETCH(1, "y", ""), REQ(0, "x", ""),
		HELLO("peer", "down:-71(HELLO out of turn)"),
		ROOM(""), REQ(1, "x", ""), RX_ACK(""), CONTENT(0, 0, 100, ""),
		FETCH_FAILS(2, "x", 1, -ENOTCONN),
	} },
};

KUNIT_ARRAY_PARAM(script, scripts, script_name);

static void script(struct kunit *test)
{
	script_run(test, test->param_value);
}

static void prepare(struct kunit *test, struct script_end *script)
{
	struct rdmatensor_wire_private private;
	const char *why;

	end_private(script->end->channel->params, &private);
	KUNIT_ASSERT_EQ(test, rdmatensor_channel_set_peer(script->end->channel, &private,
							  &why), 0);
}

/* Who connected speaks first, and does not answer a HELLO with one */
static void hello_active(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	prepare(test, script);
	script->end->channel->active = true;
	rdmatensor_channel_hello(script->end->channel);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "hello");
	DO(script, HELLO("peer", "up"));
	KUNIT_EXPECT_STREQ(test, script->end->channel->worker, "peer");
	script_close(script);
}

static void hello_stranger(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	prepare(test, script);
	DO(script, HELLO("stranger", "down:-2(a stranger)"));
	script_close(script);
}

static void hello_before_all_lanes(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	prepare(test, script);
	script->end->channel->lanes_open = 0;
	DO(script, HELLO("peer", "down:-71(HELLO out of turn)"));
	script_close(script);
}

static void message_before_hello(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	prepare(test, script);
	DO(script, REQ(0, "x", "down:-71(message before HELLO)"));
	script_close(script);
}

static void hello_after_the_end(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	prepare(test, script);
	rdmatensor_channel_fail(script->end->channel, -ETIMEDOUT, "too late");
	rdmatensor_channel_hello(script->end->channel);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-110(too late)");
	DO(script, HELLO("peer", ""));
	script_close(script);
}

static void first_failure_counts(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	rdmatensor_channel_fail(script->end->channel, -ETIMEDOUT, "first");
	rdmatensor_channel_fail(script->end->channel, -EPROTO, "second");
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-110(first)");
	KUNIT_EXPECT_EQ(test, script->end->failed, 1);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_PROTOCOL_ERRORS), 0);
	script_close(script);
}

/* What was posted by then counts when it arrives, and who ends the channel sees that */
static void leaves(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);
	struct rdmatensor_channel *channel = script->end->channel;

	script_up(script);
	DO(script, PUBLISH(7, "x", 100, 1, ""));
	DO(script, PUBLISH(8, "z", 100, 1, ""));
	DO(script, REQ_DEST(0, "x", 100, "w0#0:100!"));
	rdmatensor_channel_leave(channel, -ESHUTDOWN, "bye");
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-108(bye)");
	KUNIT_EXPECT_TRUE(test, channel->leaves);
	KUNIT_EXPECT_FALSE(test, rdmatensor_channel_is_idle(channel));
	/* Nothing more is posted */
	DO(script, REQ_DEST(1, "z", 100, ""));
	DO(script, DONE("pub7:0"));
	KUNIT_EXPECT_TRUE(test, rdmatensor_channel_is_idle(channel));
	script_close(script);
}

/* Who has left is not hurried by a second leave, but by what ends it in earnest */
static void leave_fails(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);
	struct rdmatensor_channel *channel = script->end->channel;

	script_up(script);
	rdmatensor_channel_leave(channel, -ESHUTDOWN, "bye");
	rdmatensor_channel_leave(channel, -ECONNRESET, "and bye");
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-108(bye)");
	KUNIT_EXPECT_TRUE(test, channel->leaves);
	rdmatensor_channel_fail(channel, -ENODEV, "gone");
	KUNIT_EXPECT_FALSE(test, channel->leaves);
	KUNIT_EXPECT_EQ(test, channel->error, -ESHUTDOWN);
	script_close(script);
}

/* Four ack timeouts, and neither for an instant nor for an hour */
static void leave_time(struct kunit *test)
{
	static const struct { u8 timeout; unsigned int ms; } cases[] = {
		{ 1, 1000 }, { 14, 1000 }, { 16, 1073 }, { 18, 4294 }, { 20, 10000 }, { 31, 10000 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct script_end *script = open_one(test, 16, 16);
		struct rdmatensor_channel *channel = script->end->channel;
		unsigned long begun = jiffies;

		script->end->params.timeout = cases[i].timeout;
		rdmatensor_channel_leave(channel, -ESHUTDOWN, "bye");
		/* Rounded down to jiffies, of which some may pass */
		KUNIT_EXPECT_GE(test, jiffies_to_msecs(channel->leave_until - begun) + 10,
				cases[i].ms);
		KUNIT_EXPECT_LE(test, jiffies_to_msecs(channel->leave_until - jiffies),
				cases[i].ms);
		script_close(script);
	}
}

/* One that is not up, or has failed before, has nothing to wait for */
static void leaves_nothing(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	prepare(test, script);
	rdmatensor_channel_leave(script->end->channel, -ESHUTDOWN, "bye");
	KUNIT_EXPECT_FALSE(test, script->end->channel->leaves);
	script_close(script);

	script = open_one(test, 16, 16);
	script_up(script);
	rdmatensor_channel_fail(script->end->channel, -ECONNRESET, "broken");
	rdmatensor_channel_leave(script->end->channel, -ESHUTDOWN, "bye");
	KUNIT_EXPECT_FALSE(test, script->end->channel->leaves);
	KUNIT_EXPECT_EQ(test, script->end->channel->error, -ECONNRESET);
	script_close(script);
}

#define FLUSHED "down:-104(the device has ended the queue pair: the peer broke its access rights, or the device failed)"

/* Of a lane that stands, nothing else tells */
static void flushed(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	rdmatensor_channel_lane_flushed(&script->end->channel->lanes[0]);
	KUNIT_EXPECT_STREQ(test, script_trace(script), FLUSHED);
	script_close(script);
}

static void impossible_lengths(struct kunit *test)
{
	static const u32 lengths[] = { 0, sizeof(struct rdmatensor_wire_hdr) - 1, 1025, ~0U };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct script_end *script = open_one(test, 16, 16);

		script_up(script);
		rdmatensor_channel_rx_message(script->end->channel, lengths[i]);
		KUNIT_EXPECT_STREQ(test, script_trace(script),
				   "down:-71(message of an impossible length)");
		KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_PROTOCOL_ERRORS), 1);
		script_close(script);
	}
}

/* A count of consumed messages that was never reached, or has been surpassed */
static void lying_counts(struct kunit *test)
{
	static const int lies[] = { -1, 1, 1 << 30, -(1 << 30) };
	struct rdmatensor_msg msg = {
		.type = RDMATENSOR_WIRE_CANCEL, .request_index = 9,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		struct script_end *script = open_one(test, 16, 16);
		struct rdmatensor_channel *channel = script->end->channel;
		u32 bytes;

		script_up(script);
		DO(script, CANCEL_OF(9, "cancelled#9"));
		bytes = end_put_message(script->end, &msg, channel->credits.sent);
		rdmatensor_channel_rx_message(channel, bytes);
		KUNIT_EXPECT_STREQ(test, script_trace(script), "cancelled#9");

		/* Of what was told last: one less, or more than was sent */
		bytes = end_put_message(script->end, &msg, lies[i] +
					(lies[i] < 0 ? channel->credits.peer_told :
						       channel->credits.sent));
		rdmatensor_channel_rx_message(channel, bytes);
		KUNIT_EXPECT_STREQ(test, script_trace(script),
				   "down:-71(count of consumed messages goes backwards or too far)");
		script_close(script);
	}
}

static void ack_of_nothing(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	DO(script, RX_ACK("down:-71(ack of messages that were never sent)"));
	script_close(script);
}

static void fetch(struct script_end *script, u64 id, bool posted)
{
	struct script_step step = FETCH(id, "x", "");
	char expect[16] = "";

	if (posted)
		snprintf(expect, sizeof(expect), "req#%llu", id - 1);
	step.expect = expect;
	script_do(script, &step);
}

/* The window is the slots; an ack opens it by its batch, a message by its count */
static void window(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 8);
	u64 id;

	script_up(script);
	for (id = 1; id <= 15; id++)
		fetch(script, id, true);
	fetch(script, 16, false);
	fetch(script, 17, false);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_STALL_SLOTS), 2);
	DO(script, RX_ACK("req#15 req#16"));
	for (id = 18; id <= 23; id++)
		fetch(script, id, true);
	fetch(script, 24, false);
	/* It carries the count of everything that was sent */
	DO(script, RE(9, 100, "req#23"));
	script_close(script);
}

/* A slot is not used again before its write is done, whatever the peer tells */
static void slots_of_unfinished_writes(struct kunit *test)
{
	struct script_end *script = open_one(test, 2, 2);

	script_up(script);
	script->slow = true;
	fetch(script, 1, true);
	DO(script, RE(9, 100, ""));
	fetch(script, 2, true);
	fetch(script, 3, false);
	DO(script, RE(9, 100, ""));
	end_complete(script->end, 0);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#2");
	script_close(script);
}

/* After as many messages as a batch has, unless something else has told of them */
static void acks(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 4);
	struct rdmatensor_channel *channel = script->end->channel;
	int i;

	/* Our HELLO has told of theirs */
	script_up(script);
	for (i = 0; i < 3; i++)
		DO(script, RE(9, 100, ""));
	DO(script, RE(9, 100, "ack"));
	for (i = 0; i < 3; i++)
		DO(script, RE(9, 100, ""));
	/* A message of ours tells */
	DO(script, CANCEL_OF(9, "cancelled#9"));
	KUNIT_EXPECT_EQ(test, channel->credits.told, channel->credits.consumed);
	for (i = 0; i < 3; i++)
		DO(script, RE(9, 100, ""));
	fetch(script, 1, true);
	for (i = 0; i < 3; i++)
		DO(script, RE(9, 100, ""));
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_TX_ACKS), 1);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_RX_STRAY), 13);
	script_close(script);
}

/* Content tells up to its request, at both ends */
static void content_tells(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);
	struct rdmatensor_channel *channel = script->end->channel;

	script_up(script);
	DO(script, PUBLISH(7, "x", 100, 0, ""));
	DO(script, RE(9, 100, ""));
	DO(script, REQ_DEST(0, "x", 100, "w0#0:100!"));
	KUNIT_EXPECT_EQ(test, channel->credits.told, 3);
	DO(script, RE(9, 100, ""));
	KUNIT_EXPECT_EQ(test, channel->credits.told, 3);
	/* What was consumed after the request is not told by its content */
	DO(script, REQ_DEST(1, "late", 100, ""));
	DO(script, RE(9, 100, ""));
	DO(script, PUBLISH(8, "late", 100, 0, "w0#1:100!"));
	KUNIT_EXPECT_EQ(test, channel->credits.consumed, 6);
	KUNIT_EXPECT_EQ(test, channel->credits.told, 5);

	DO(script, FETCH(1, "y", "req#0"));
	DO(script, META(0, 100, "re#0+dest"));
	DO(script, FETCH(2, "z", "req#1"));
	KUNIT_EXPECT_EQ(test, channel->credits.sent, 4);
	KUNIT_EXPECT_EQ(test, channel->credits.peer_told, 2);
	DO(script, CONTENT(0, 0, 100, "end1:0"));
	KUNIT_EXPECT_EQ(test, channel->credits.peer_told, 3);
	DO(script, DONE(""));
	script_close(script);
}

/* With one slot each message is acked before it is acted upon, and by nothing else */
static void one_slot(struct kunit *test)
{
	struct script_end *script = open_one(test, 1, 1);
	struct rdmatensor_channel *channel = script->end->channel;
	struct rdmatensor_msg hello = {
		.type = RDMATENSOR_WIRE_HELLO, .max_requests = 8, .text = "peer", .text_len = 4,
	};

	prepare(test, script);
	rdmatensor_channel_rx_message(channel, end_put_message(script->end, &hello, 0));
	KUNIT_EXPECT_STREQ(test, script_trace(script), "ack hello up");
	DO(script, PUBLISH(7, "x", 100, 1, ""));
	DO(script, FETCH(1, "y", ""));
	DO(script, RX_ACK("req#0"));
	DO(script, RX_ACK(""));
	DO(script, REQ(0, "x", "ack meta#0"));
	DO(script, RX_ACK(""));
	DO(script, RE(0, 100, "ack w0#0:100!"));
	DO(script, RX_ACK("down:-71(ack of messages that were never sent)"));
	script_close(script);
}

static struct script_end *open_one_slot(struct kunit *test)
{
	struct script_end *script = open_one(test, 1, 1);
	struct rdmatensor_msg hello = {
		.type = RDMATENSOR_WIRE_HELLO, .max_requests = 8, .text = "peer", .text_len = 4,
	};

	prepare(test, script);
	rdmatensor_channel_rx_message(script->end->channel,
				      end_put_message(script->end, &hello, 0));
	KUNIT_EXPECT_STREQ(test, script_trace(script), "ack hello up");
	DO(script, RX_ACK(""));
	return script;
}

/* Where there was no place for that ack, the content still comes behind it */
static void one_slot_and_a_full_queue(struct kunit *test)
{
	struct script_end *script = open_one_slot(test);

	DO(script, PUBLISH(7, "x", 100, 1, ""));
	DO(script, FULL);
	DO(script, REQ_DEST(0, "x", 100, ""));
	DO(script, ROOM("ack w0#0:100!"));
	DO(script, DONE("pub7:0"));
	script_close(script);
}

/* The last place of lane 0's queue is an ack's: two ends that are full go on */
static void place_for_an_ack(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 4);
	struct rdmatensor_channel *channel = script->end->channel;
	int i;

	script_up(script);
	DO(script, PUBLISH(7, "x", 100, 1, ""));
	DO(script, FULL);
	spin_lock_bh(&channel->lock);
	channel->lanes[0].sendq_free = 1;
	script->free_places--;
	spin_unlock_bh(&channel->lock);
	DO(script, FETCH(1, "y", ""));
	DO(script, REQ_DEST(0, "x", 100, ""));
	for (i = 0; i < 2; i++)
		DO(script, RE(9, 100, ""));
	DO(script, RE(9, 100, "ack"));
	DO(script, ROOM("req#0 w0#0:100!"));
	DO(script, DONE("pub7:0"));
	script_close(script);
}

static int count_receive(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	qp->qp_num++;
	return 0;
}

/* Behind the last one that a drain posts there is none: its flush would find no lane */
static void receives_of_a_channel_that_ends(struct kunit *test)
{
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	struct ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct script_end *script = open_one(test, 16, 4);
	struct rdmatensor_channel *channel = script->end->channel;
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.wc_flags = IB_WC_WITH_IMM,
		.ex.imm_data = cpu_to_be32(RDMATENSOR_IMM_ACK),
		.qp = qp,
	};
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	ibdev->ops.post_recv = count_receive;
	qp->device = ibdev;
	qp->qp_context = &channel->lanes[0];
	script_up(script);
	channel->lanes[0].conn.qp.qp = qp;
	/* What arrives meanwhile counts, until something fails: messages that were never sent */
	rdmatensor_channel_leave(channel, -ESHUTDOWN, "bye");
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-108(bye)");
	rdmatensor_lane_recv_done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, qp->qp_num, 1);
	for (i = 0; i < 3; i++)
		rdmatensor_lane_recv_done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, qp->qp_num, 1);
	channel->lanes[0].conn.qp.qp = NULL;
	script_close(script);
}

static void ack_fails(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 4);
	int i;

	script_up(script);
	for (i = 0; i < 3; i++)
		DO(script, RE(9, 100, ""));
	DO(script, BREAK(-EIO));
	DO(script, RE(9, 100, "down:-104(posting to the send queue failed)"));
	script_close(script);

	/* With one slot an ack does not wait for others */
	script = open_one_slot(test);
	DO(script, BREAK(-EIO));
	DO(script, RE(9, 100, "down:-104(posting to the send queue failed)"));
	script_close(script);
}

/* Every lane has a queue of its own: a full one holds up no other */
static void lanes_are_apart(struct kunit *test)
{
	struct script_end *script = script_open(test, 2, &end_params);

	script_up(script);
	DO(script, PUBLISH(7, "x", 20480, 1, ""));
	DO(script, FULL);
	DO(script, RX("w1#0:4096 w1#0:4096!", .type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		      .request_index = 0, .name = "x", .name_len = 1, SCRIPT_DEST(20480, 2)));
	DO(script, DONE(""));
	DO(script, ROOM("w0#0:8192 w0#0:4096!"));
	DO(script, DONE("pub7:0"));
	script_close(script);
}

static void run_out(struct script_end *script)
{
	struct timer_list *timer = &script->end->channel->probe_timer;

	timer->function(timer);
}

/* A peer that was not heard of for a while is probed, once until it answers */
static void probes(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	script->slow = true;
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "probe0");
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	end_complete(script->end, 0);
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	DO(script, RE(9, 100, ""));
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "probe0");
	end_complete(script->end, 0);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_TX_PROBES), 2);
	run_out(script);
	DO(script, BREAK(-EIO));
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script),
			   "down:-104(posting to the send queue failed)");
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	script_close(script);
}

/* A probe has a place of its own: a queue that is full needs it most */
static void place_for_a_probe(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	run_out(script);
	DO(script, FULL);
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "probe0");
	DO(script, ROOM(""));
	script_close(script);
}

static void lanes_run_out(struct script_end *script, const char *expect)
{
	struct timer_list *timer = &script->end->channel->lanes_timer;

	timer->function(timer);
	KUNIT_EXPECT_STREQ(script->end->test, script_trace(script), expect);
}

static bool lanes_are_watched(struct script_end *script)
{
	return timer_pending(&script->end->channel->lanes_timer);
}

/* A lane that completes nothing of what it has is probed, so often as there are places for it */
static void probes_a_lane_that_sleeps(struct kunit *test)
{
	struct script_end *script = script_open(test, 2, &end_params);
	int i;

	script_up(script);
	/* The HELLO has armed it, and is done: it runs out for once */
	KUNIT_EXPECT_TRUE(test, timer_delete(&script->end->channel->lanes_timer));
	lanes_run_out(script, "");
	KUNIT_EXPECT_FALSE(test, lanes_are_watched(script));
	DO(script, PUBLISH(7, "x", 8192, 1, ""));
	DO(script, RX("w0#0:4096! w1#0:4096!", .type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		      .request_index = 0, .name = "x", .name_len = 1, SCRIPT_DEST(8192, 2)));
	KUNIT_EXPECT_TRUE(test, lanes_are_watched(script));
	/* They were posted to idle lanes at any time since the timer was armed */
	lanes_run_out(script, "");
	end_complete(script->end, 0);
	for (i = 0; i < 4; i++)
		lanes_run_out(script, "probe1");
	lanes_run_out(script, "");
	KUNIT_EXPECT_TRUE(test, lanes_are_watched(script));
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_TX_PROBES), 4);
	end_complete(script->end, 1);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "pub7:0");
	/* A lane can sleep over its probes as well: it is watched until they are back */
	timer_delete(&script->end->channel->lanes_timer);
	lanes_run_out(script, "");
	KUNIT_EXPECT_TRUE(test, lanes_are_watched(script));
	for (i = 0; i < 4; i++)
		end_complete(script->end, 1);
	timer_delete(&script->end->channel->lanes_timer);
	lanes_run_out(script, "");
	KUNIT_EXPECT_FALSE(test, lanes_are_watched(script));
	KUNIT_EXPECT_EQ(test, script->end->channel->lanes[1].probes, 0);
	/* They had places of their own */
	KUNIT_EXPECT_EQ(test, script->end->channel->lanes[1].sendq_free, end_params.queue_depth);
	script_close(script);
}

/* The probe of a quiet peer is no sign of it while the lane sleeps over that one */
static void probes_a_lane_that_sleeps_over_a_probe(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	timer_delete(&script->end->channel->lanes_timer);
	script->slow = true;
	run_out(script);
	run_out(script);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "probe0");
	KUNIT_EXPECT_TRUE(test, lanes_are_watched(script));
	lanes_run_out(script, "");
	lanes_run_out(script, "probe0");
	end_complete(script->end, 0);
	end_complete(script->end, 0);
	script_close(script);
}

/* What a leave waits for can be asleep; when the leave is over nothing is posted any more */
static void probes_a_lane_that_leaves(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);
	struct rdmatensor_channel *channel = script->end->channel;

	script_up(script);
	DO(script, PUBLISH(7, "x", 100, 1, ""));
	DO(script, REQ_DEST(0, "x", 100, "w0#0:100!"));
	rdmatensor_channel_leave(channel, -ESHUTDOWN, "bye");
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-108(bye)");
	lanes_run_out(script, "");
	lanes_run_out(script, "probe0");
	rdmatensor_channel_left(channel);
	timer_delete(&channel->lanes_timer);
	lanes_run_out(script, "");
	KUNIT_EXPECT_FALSE(test, lanes_are_watched(script));
	DO(script, DONE("pub7:0"));
	script_close(script);
}

static void probe_pause(struct kunit *test)
{
	static const struct { u32 probe_ms, pause_ms; } cases[] = {
		{ 10, 10 }, { 100, 10 }, { 2000, 200 }, { 10000, 1000 }, { 600000, 5000 },
	};
	struct rdmatensor_channel_params params = end_params;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		params.probe_ms = cases[i].probe_ms;
		KUNIT_EXPECT_EQ(test, rdmatensor_probe_pause(&params),
				msecs_to_jiffies(cases[i].pause_ms));
	}
}

/* One that completes what it has, however slowly, is not */
static void probes_no_lane_that_is_slow(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	script->slow = true;
	DO(script, FETCH(1, "x", "req#0"));
	lanes_run_out(script, "");
	DO(script, FETCH(2, "y", "req#1"));
	end_complete(script->end, 0);
	lanes_run_out(script, "");
	DO(script, FETCH(3, "z", "req#2"));
	end_complete(script->end, 0);
	lanes_run_out(script, "");
	lanes_run_out(script, "probe0");
	end_complete(script->end, 0);
	end_complete(script->end, 0);
	KUNIT_EXPECT_EQ(test, end_stat(script->end, RDMATENSOR_STAT_TX_PROBES), 1);
	lanes_run_out(script, "");
	script_close(script);
}

static void lane_probe_fails(struct kunit *test)
{
	struct script_end *script = open_one(test, 16, 16);

	script_up(script);
	script->slow = true;
	DO(script, FETCH(1, "y", "req#0"));
	lanes_run_out(script, "");
	DO(script, BREAK(-EIO));
	lanes_run_out(script, "down:-104(posting to the send queue failed)");
	lanes_run_out(script, "");
	script_close(script);
}

static struct kunit_case channel_tests[] = {
	KUNIT_CASE_PARAM(set_peer, peer_gen_params),
	KUNIT_CASE_PARAM(script, script_gen_params),
	KUNIT_CASE(hello_active),
	KUNIT_CASE(hello_stranger),
	KUNIT_CASE(hello_before_all_lanes),
	KUNIT_CASE(message_before_hello),
	KUNIT_CASE(hello_after_the_end),
	KUNIT_CASE(first_failure_counts),
	KUNIT_CASE(leaves),
	KUNIT_CASE(leave_fails),
	KUNIT_CASE(leave_time),
	KUNIT_CASE(leaves_nothing),
	KUNIT_CASE(flushed),
	KUNIT_CASE(impossible_lengths),
	KUNIT_CASE(lying_counts),
	KUNIT_CASE(ack_of_nothing),
	KUNIT_CASE(window),
	KUNIT_CASE(slots_of_unfinished_writes),
	KUNIT_CASE(acks),
	KUNIT_CASE(content_tells),
	KUNIT_CASE(one_slot),
	KUNIT_CASE(one_slot_and_a_full_queue),
	KUNIT_CASE(place_for_an_ack),
	KUNIT_CASE(receives_of_a_channel_that_ends),
	KUNIT_CASE(ack_fails),
	KUNIT_CASE(lanes_are_apart),
	KUNIT_CASE(probes),
	KUNIT_CASE(place_for_a_probe),
	KUNIT_CASE(probes_a_lane_that_sleeps),
	KUNIT_CASE(probes_a_lane_that_sleeps_over_a_probe),
	KUNIT_CASE(probes_a_lane_that_leaves),
	KUNIT_CASE(probe_pause),
	KUNIT_CASE(probes_no_lane_that_is_slow),
	KUNIT_CASE(lane_probe_fails),
	{}
};

static struct kunit_suite channel_suite = {
	.name = "rdmatensor_channel",
	.test_cases = channel_tests,
};

kunit_test_suite(channel_suite);
