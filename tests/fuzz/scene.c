// SPDX-License-Identifier: GPL-2.0
/* The scene of the hostile peer, see hostile.h */
#include <endian.h>
#include "hostile.h"

struct scene scene;

long amount(const char *variable, long or_else)
{
	const char *value = getenv(variable);

	return value ? atol(value) : or_else;
}

uint32_t below(uint32_t most)
{
	static uint64_t state;

	if (!state)
		state = amount("HOSTILE_SEED", 1);
	state = state * 6364136223846793005 + 1442695040888963407;
	return most ? (state >> 33) % most : 0;
}

void scene_tune(struct rdmatensor_start *start)
{
	start->msg_slots = 16;
	start->queue_depth = 96;
	start->handshake_ms = 5000;
	start->cancel_ms = 500;
}

void scene_open(void (*tune)(struct rdmatensor_start *start))
{
	struct pair *p = &scene.p;

	memset(&scene, 0, sizeof(scene));
	pair_open(p, 4 << 20, tune ? tune : scene_tune);
	side_open(&scene.stranger, "stranger", STRANGER, 1, NULL);
	fill(side_at(&scene.stranger, 0), STRANGER, 7);
	scene.guard = side_alloc(&p->a, GUARD);
	fill(side_at(&p->a, scene.guard), GUARD, 8);
	publish(&p->a, "w", 0, TENSOR, 1, 0, 1);
	publish(&p->b, "h", 0, TENSOR, 2, 0, 2);
	scene.honest_at = side_alloc(&p->b, TENSOR);
	scene_duty();
}

void scene_duty(void)
{
	struct pair *p = &scene.p;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	EQ(rdmatensor_fetch(p->b.rt, p->b.channel, "w", 0, &p->b.pool, scene.honest_at, TENSOR,
			    rdmatensor_deadline_ms(10000), &cqe), 0);
	CHECK(filled(side_at(&p->b, scene.honest_at), TENSOR, 1));
	EQ(fetch(&p->a, "h", 0, TENSOR, &at, &cqe), 0);
	CHECK(filled(side_at(&p->a, at), TENSOR, 2));
	rdmatensor_prep_free(&op, p->a.pool.id, at);
	/* Of memory that was there before there are no regions to free */
	EQ(side_do(&p->a, &op), p->a.whole ? -ENOENT : 0);
	CHECK(filled(side_at(&p->a, scene.guard), GUARD, 8));
	CHECK(filled(side_at(&scene.stranger, 0), STRANGER, 7));
}

void scene_meet(struct liar *liar, unsigned int lanes)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_msg msg;
	int heard;

	liar_init(liar, lanes);
	EQ(liar_connect(liar, test_ip(), scene.p.a.port), 0);
	liar_hello(liar);
	heard = liar_hear(liar, &msg, 5000);
	if (heard == LIAR_END) {
		side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe);
		test_fail(__FILE__, __LINE__, "no HELLO: %s; of the other end: %d, %.*s",
			  ibv_wc_status_str(liar->ended), cqe.result, cqe.text_len, cqe.text);
	}
	EQ(heard, RDMATENSOR_WIRE_HELLO);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	scene.channel = cqe.channel;
}

void scene_ends(struct liar *liar, int error)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe), error);
	EQ(cqe.channel, scene.channel);
	scene.breaches += error == -EPROTO;
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), scene.breaches);
	liar_close(liar);
	scene_duty();
}

void scene_lives(struct liar *liar)
{
	struct rdmatensor_msg cancel = {
		.type = RDMATENSOR_WIRE_CANCEL, .request_index = 0xbeef,
	}, msg;
	int heard;

	liar_say(liar, &cancel);
	do {
		heard = liar_hear(liar, &msg, 5000);
		CHECK(heard != LIAR_SILENCE && heard != LIAR_END);
		if (liar->heard - liar->tell >= LIAR_ACK_BATCH)
			liar_ack(liar);
	} while (heard != RDMATENSOR_WIRE_ERROR_STATUS || msg.request_index != 0xbeef);
	liar_close(liar);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), scene.breaches);
	scene_duty();
}

struct rdmatensor_msg scene_right(int type, uint32_t index)
{
	static const __le32 rkeys[1] = { 0x1234 };
	struct rdmatensor_msg msg = { .type = type, .request_index = index };

	switch (type) {
	case RDMATENSOR_WIRE_HELLO:
		msg.request_index = 0;
		msg.incarnation = 1;
		msg.max_requests = LIAR_REQUESTS;
		msg.text = "liar";
		msg.text_len = 4;
		break;
	case RDMATENSOR_WIRE_TENSOR_REQUEST:
		msg.name = "w";
		msg.name_len = 1;
		break;
	case RDMATENSOR_WIRE_ERROR_STATUS:
		msg.flags = RDMATENSOR_WIRE_F_NAMED;
		msg.error = -EIO;
		msg.name = "lie";
		msg.name_len = 3;
		break;
	}
	if (type >= RDMATENSOR_WIRE_TENSOR_REQUEST &&
	    type <= RDMATENSOR_WIRE_TENSOR_RE_REQUEST) {
		msg.meta.data_type = RDMATENSOR_DT_UINT8;
		msg.meta.ndims = 1;
		msg.meta.dims[0] = TENSOR;
		msg.meta.bytes = TENSOR;
	}
	if (type == RDMATENSOR_WIRE_TENSOR_REQUEST ||
	    type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST) {
		msg.flags = RDMATENSOR_WIRE_F_DEST;
		msg.nr_parts = 1;
		msg.seg_shift = 21;
		msg.nr_rkeys = 1;
		msg.rkeys = rkeys;
	}
	return msg;
}

void scene_to_own(struct liar *liar, struct rdmatensor_msg *msg, __le32 *rkey)
{
	*rkey = htole32(liar->mr->rkey);
	msg->seg_shift = 40;
	msg->remote_addr = (uintptr_t)liar->memory + LIAR_DEST;
	msg->nr_rkeys = rdmatensor_wire_segments(msg->remote_addr, msg->meta.bytes, 40);
	msg->rkeys = rkey;
}

uint64_t scene_ask(uint64_t id, uint64_t room)
{
	struct side *a = &scene.p.a;
	struct rdmatensor_op op;
	uint64_t at = side_alloc(a, room);

	fill(side_at(a, at), room, 9);
	rdmatensor_prep_fetch(&op, scene.channel, "lie", 0, a->pool.id, at, room, 0, id);
	EQ(side_do(a, &op), 0);
	return at;
}

uint32_t scene_asked(struct liar *liar, struct rdmatensor_msg *msg)
{
	int heard;

	do {
		heard = liar_hear(liar, msg, 5000);
	} while (heard == LIAR_ACK);
	CHECK(heard == RDMATENSOR_WIRE_TENSOR_REQUEST ||
	      heard == RDMATENSOR_WIRE_TENSOR_RE_REQUEST);
	return msg->nr_rkeys ? le32toh(msg->rkeys[0]) : 0;
}
