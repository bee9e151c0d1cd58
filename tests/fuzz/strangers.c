// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that are none: private data of all kinds, half a handshake and silence,
 * a thousand of them; and what the module connects to may be no worker either.
 */
#include <asm/byteorder.h>
#include <endian.h>
#include <pthread.h>
#include <unistd.h>
#include "hold.h"
#include "hostile.h"

static struct liar liar;

/* The errno of the refusal; what was made is gone when this returns */
static int introduce(const struct rdmatensor_wire_private *own, size_t len)
{
	int ret;

	liar_init(&liar, 1);
	if (own)
		liar.own = *own;
	ret = liar_connect_lane(&liar, test_ip(), scene.p.a.port, 0, len);
	liar_close(&liar);
	return ret;
}

static struct rdmatensor_wire_private honest(void)
{
	struct rdmatensor_wire_private private;

	liar_init(&liar, 1);
	private = liar.own;
	liar_close(&liar);
	return private;
}

TEST(private_data_that_lies)
{
	const struct rdmatensor_wire_private right = honest();
	struct rdmatensor_wire_private own;
	size_t len;

	scene_open(NULL);
#define LIE(_field, _value, _error) \
	do { \
		own = right; \
		own._field = _value; \
		if (introduce(&own, sizeof(own)) != (_error)) \
			test_fail(__FILE__, __LINE__, "not refused with %d: %s = %s", _error, \
				  #_field, #_value); \
	} while (0)
	LIE(magic, 0, -EPROTO);
	LIE(magic, ~right.magic, -EPROTO);
	LIE(major, 0, -EPROTONOSUPPORT);
	LIE(major, 2, -EPROTONOSUPPORT);
	LIE(major, 255, -EPROTONOSUPPORT);
	LIE(lanes, 0, -EPROTO);
	LIE(lanes, LIAR_LANES + 1, -EPROTO);
	LIE(lanes, 255, -EPROTO);
	LIE(lane, 1, -EPROTO);
	LIE(lane, 255, -EPROTO);
	LIE(msg_slots, 0, -EPROTO);
	LIE(msg_slots, htole16(3), -EPROTO);
	LIE(msg_slots, htole16(2048), -EPROTO);
	LIE(msg_slots, htole16(0xffff), -EPROTO);
	LIE(msg_slot_bytes, 0, -EPROTO);
	LIE(msg_slot_bytes, htole32(512), -EPROTO);
	LIE(msg_slot_bytes, htole32(4097), -EPROTO);
	LIE(msg_slot_bytes, htole32(1 << 17), -EPROTO);
	LIE(msg_slot_bytes, htole32(0x80000000), -EPROTO);
	LIE(ack_batch, 0, -EPROTO);
	LIE(ack_batch, htole16(LIAR_SLOTS + 1), -EPROTO);
	LIE(max_requests, 0, -EPROTO);
	LIE(max_requests, htole32(0xffffffff), -EPROTO);
	/* A lane for reads, of a channel that is not there */
	LIE(flags, htole32(1), -ECONNRESET);
	LIE(flags, htole32(2), -EPROTO);
	LIE(flags, htole32(0x80000000), -EPROTO);
	LIE(__reserved[0], 1, -EPROTO);
	LIE(__reserved[7], 0x80, -EPROTO);
	LIE(__reserved[10], 0x80, -EPROTO);
	LIE(mtu, 0, -EPROTO);
	LIE(mtu, 6, -EPROTO);
	LIE(mtu, 255, -EPROTO);
	/* rdma_cm fills up with zeros, which only the last fields may be */
	for (len = 1; len <= offsetof(struct rdmatensor_wire_private, max_requests); len += 5)
		EQ(introduce(&right, len), -EPROTO);
	EQ(introduce(NULL, 0), -EPROTO);

	/* A lane of a channel that is not there, and one of another's with a guessed nonce */
	own = right;
	own.lanes = 2;
	own.lane = 1;
	EQ(introduce(&own, sizeof(own)), -ECONNRESET);
	scene_duty();
}

/* The second lane with another count of lanes, a lane twice, a lane of an open channel */
TEST(lanes_that_do_not_belong)
{
	scene_open(NULL);
	liar_init(&liar, 2);
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 0, sizeof(liar.own)), 0);
	liar.own.lanes = 3;
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 1, sizeof(liar.own)), -EPROTO);
	liar.own.lanes = 2;
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 1, sizeof(liar.own)), 0);
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 2, sizeof(liar.own)), -EPROTO);
	liar.own.lane = -2;
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 3, sizeof(liar.own)), -EPROTO);
	liar_close(&liar);

	scene_meet(&liar, 1);
	liar.own.lane = -1;
	liar.own.lanes = 2;
	CHECK(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 2, sizeof(liar.own)) < 0);
	liar.own.lane = 0;
	scene_lives(&liar);
}

static unsigned int channels(struct side *side)
{
	struct rdmatensor_channel_query query = { .flags = RDMATENSOR_CHANNEL_NEXT };
	unsigned int nr = 0;

	while (!rdmatensor_channel_query(side->rt, &query)) {
		query.flags = RDMATENSOR_CHANNEL_NEXT;
		nr++;
	}
	return nr;
}

/* The only channels left are the honest peer's, within the time that they may take */
static void wait_for_calm(void)
{
	uint64_t end = rdmatensor_deadline_ms(20000);

	while (channels(&scene.p.a) > 1)
		CHECK(rdmatensor_deadline_ms(0) < end);
}

/* Longer than eight connections take on a slow machine */
static void tune_patience(struct rdmatensor_start *start)
{
	scene_tune(start);
	start->handshake_ms = 5000;
}

static void *second_lane(void *unused)
{
	(void)unused;
	/* Whatever comes of it: the channel may have ended before */
	liar_connect_lane(&liar, test_ip(), scene.p.a.port, 1, sizeof(liar.own));
	return NULL;
}

/* A HELLO, and a content for all lanes, before one of them has a queue pair that could send it */
TEST(hello_while_a_lane_is_being_made)
{
	uint64_t end = rdmatensor_deadline_ms(20000);
	struct rdmatensor_msg msg;
	pthread_t thread;
	__le32 rkey;

	/* Kernels without injected failures hold nobody: there it is luck */
	if (access("/sys/kernel/debug/hold_rdmatensor", F_OK)) {
		printf("# no thread can be held on this kernel: not tried\n");
		return;
	}
	scene_open(tune_patience);
	liar_init(&liar, 2);
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 0, sizeof(liar.own)), 0);
	hold_at("lane_taken");
	EQ(pthread_create(&thread, NULL, second_lane, NULL), 0);
	hold_wait();
	liar_hello(&liar);
	msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 7);
	scene_to_own(&liar, &msg, &rkey);
	msg.nr_parts = 2;
	liar_say(&liar, &msg);
	while (side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS) == scene.breaches)
		CHECK(rdmatensor_deadline_ms(0) < end);
	scene.breaches++;
	hold_go();
	pthread_join(thread, NULL);
	liar_close(&liar);
	wait_for_calm();
	scene_duty();
}

/* The message buffer that it names is none: it never hears a HELLO */
TEST(message_buffers_that_are_none)
{
	struct rdmatensor_msg msg;
	int what;

	scene_open(NULL);
	for (what = 0; what < 3; what++) {
		liar_init(&liar, 1);
		if (what == 0)
			liar.own.msgbuf_rkey = htole32(0xdeadbe00);
		else if (what == 1)
			liar.own.msgbuf_addr = htole64(0xfffffffffffff000);
		else
			/* The victim's own keys are of no use in its own queue pairs */
			liar.own.msgbuf_addr = htole64(1 << 20);
		EQ(liar_connect(&liar, test_ip(), scene.p.a.port), 0);
		liar_hello(&liar);
		while (liar_hear(&liar, &msg, 5000) != LIAR_END)
			;
		liar_close(&liar);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
		scene_duty();
	}
}

TEST(connect_and_vanish)
{
	long rounds = amount("HOSTILE_VANISH", 60), i;

	scene_open(NULL);
	for (i = 0; i < rounds; i++) {
		liar_init(&liar, 1 + i % 3);
		EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 0, sizeof(liar.own)), 0);
		if (i % 2)
			liar_hello(&liar);
		liar_close(&liar);
	}
	wait_for_calm();
	scene_duty();
}

TEST(half_a_handshake_and_silence)
{
	struct liar silent[8];
	struct rdmatensor_msg msg;
	unsigned int i;

	scene_open(tune_patience);
	for (i = 0; i < 8; i++) {
		/* One lane of three; or all of them, and no HELLO */
		liar_init(&silent[i], i % 2 ? 3 : 1);
		EQ(liar_connect_lane(&silent[i], test_ip(), scene.p.a.port, 0,
				     sizeof(silent[i].own)), 0);
	}
	EQ(channels(&scene.p.a), 9);
	scene_duty();
	/* The victim's patience ends; then it ends them, and says so to nobody */
	for (i = 0; i < 8; i++) {
		EQ(liar_hear(&silent[i], &msg, 20000), LIAR_END);
		liar_close(&silent[i]);
	}
	wait_for_calm();
	side_none(&scene.p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, 0);
	side_none(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, 0);
	scene_duty();
}

static void tune_few_channels(struct rdmatensor_start *start)
{
	scene_tune(start);
	start->max_channels = 40;
	start->handshake_ms = 3000;
}

TEST(a_thousand_connections)
{
	static struct liar crowd[64];
	long rounds = amount("HOSTILE_CONNECTIONS", 1000), i;
	int ret, taken = 0, refused = 0;

	scene_open(tune_few_channels);
	for (i = 0; i < rounds; i++) {
		struct liar *one = &crowd[i % 64];

		if (one->memory)
			liar_close(one);
		liar_init(one, 1);
		ret = liar_connect_lane(one, test_ip(), scene.p.a.port, 0, sizeof(one->own));
		taken += !ret;
		refused += ret == -EUSERS;
		CHECK(!ret || ret == -EUSERS);
		CHECK(i % 50 || channels(&scene.p.a) <= 40);
		if (i % 100 == 0) {
			scene_duty();
			test_alive();
		}
	}
	for (i = 0; i < 64; i++)
		if (crowd[i].memory)
			liar_close(&crowd[i]);
	printf("# %d taken, %d refused for want of channels\n", taken, refused);
	CHECK(taken > 40 && refused);
	wait_for_calm();
	scene_meet(&liar, 1);
	scene_lives(&liar);
}

/* What the module connects to */

static unsigned int liar_port;

static struct {
	pthread_t thread;
	uint32_t channel;
	int ret;
	char cause[256];
} caller;

static void *calls_up(void *unused)
{
	char addr[64];

	(void)unused;
	test_addr(addr, sizeof(addr), liar_port);
	caller.ret = rdmatensor_connect(scene.p.a.rt, addr, NULL, 1500, &caller.channel,
					caller.cause, sizeof(caller.cause));
	return NULL;
}

static void call_begin(void)
{
	liar_init(&liar, 1);
	EQ(liar_listen(&liar, test_ip(), &liar_port), 0);
	EQ(pthread_create(&caller.thread, NULL, calls_up, NULL), 0);
}

static void call_ends(int error)
{
	pthread_join(caller.thread, NULL);
	if (caller.ret != error)
		test_fail(__FILE__, __LINE__, "CONNECT: %d, expected %d: %s", caller.ret, error,
			  caller.cause);
	liar_close(&liar);
	scene_duty();
}

TEST(answers_that_are_none)
{
	int what;

	scene_open(NULL);
	for (what = 0; what < 12; what++) {
		struct rdmatensor_wire_private *own = &liar.own;
		size_t len = sizeof(*own);

		call_begin();
		switch (what) {
		case 0:
			own->magic = 0;
			break;
		case 1:
			own->lane = 1;
			break;
		case 2:
			own->lanes = 2;
			break;
		case 3:
			own->msg_slots = 0;
			break;
		case 4:
			own->msg_slot_bytes = htole32(UINT32_MAX);
			break;
		case 5:
			own->max_requests = 0;
			break;
		case 6:
			own->flags = 1;
			break;
		case 7:
			len = 0;
			break;
		case 8:
			len = 20;
			break;
		case 9:
			own->major = 9;
			break;
		}
		liar_accept(&liar, what != 10, len);
		call_ends(what == 9 ? -EPROTONOSUPPORT : what == 11 ? -ETIMEDOUT : -EPROTO);
	}
}

TEST(refusals_that_are_none)
{
	struct rdmatensor_wire_reject reject = {
		.magic = htole32(RDMATENSOR_WIRE_MAGIC), .major = RDMATENSOR_WIRE_MAJOR,
		.error = htole16(EUSERS),
	};

	scene_open(NULL);
	call_begin();
	liar_reject(&liar, &reject, sizeof(reject));
	call_ends(-EUSERS);
	/* No signal of this process's, after which it would call again */
	call_begin();
	reject.error = htole16(EINTR);
	liar_reject(&liar, &reject, sizeof(reject));
	call_ends(-EREMOTEIO);
	call_begin();
	liar_reject(&liar, &reject, 3);
	call_ends(-EPROTO);
	call_begin();
	reject.error = 0;
	liar_reject(&liar, &reject, sizeof(reject));
	call_ends(-EPROTO);
	call_begin();
	reject.error = htole16(0xffff);
	liar_reject(&liar, &reject, sizeof(reject));
	call_ends(-EPROTO);
	call_begin();
	reject.magic = 1;
	liar_reject(&liar, &reject, sizeof(reject));
	call_ends(-EPROTO);
}

/* It is called, says HELLO, and lies then: the caller's channel ends like any other */
TEST(a_called_peer_that_lies)
{
	struct rdmatensor_msg msg;
	struct rdmatensor_cqe cqe;

	scene_open(NULL);
	call_begin();
	EQ(liar_accept(&liar, true, sizeof(liar.own)), 0);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_HELLO);
	liar_hello(&liar);
	pthread_join(caller.thread, NULL);
	EQ(caller.ret, 0);
	scene.channel = caller.channel;
	liar_content(&liar, 0, 9, 0, 0, 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe), -EPROTO);
	EQ(cqe.channel, scene.channel);
	liar_close(&liar);
	scene_duty();
}
