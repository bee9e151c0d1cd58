// SPDX-License-Identifier: GPL-2.0
/*
 * Lies at random: HOSTILE_SECONDS of them from HOSTILE_SEED. Some liars are connected
 * at any time; what they say is mostly nearly right, for what is refused at the door
 * tells little. Meanwhile an honest peer fetches steadily, in a thread of its
 * own, and the victim fetches from the liars; each of its fetches must end, once.
 */
#include <asm/byteorder.h>
#include <endian.h>
#include <pthread.h>
#include <unistd.h>
#include "hostile.h"

#define LIARS 4
#define ASKED_MAX 64

static struct liar liars[LIARS];
static uint32_t channels[LIARS];
static char ended[1 << 20];
static uint64_t asked, ends;

static struct {
	pthread_t thread;
	bool stop;
	uint64_t fetches;
	uint64_t wrong;
	uint64_t longest_ns;
} honest;

static uint64_t now_ns(void)
{
	return rdmatensor_deadline_ms(0);
}

static void *fetch_steadily(void *unused)
{
	struct side *b = &scene.p.b;
	uint64_t last = now_ns(), now;
	struct rdmatensor_cqe cqe;

	(void)unused;
	while (!__atomic_load_n(&honest.stop, __ATOMIC_RELAXED)) {
		memset(side_at(b, scene.honest_at), 0, TENSOR);
		if (rdmatensor_fetch(b->rt, b->channel, "w", 0, &b->pool, scene.honest_at,
				     TENSOR, rdmatensor_deadline_ms(20000), &cqe) ||
		    !filled(side_at(b, scene.honest_at), TENSOR, 1))
			honest.wrong++;
		now = now_ns();
		if (now - last > honest.longest_ns)
			honest.longest_ns = now - last;
		last = now;
		__atomic_fetch_add(&honest.fetches, 1, __ATOMIC_RELAXED);
		/* The liars want their share of the processor */
		usleep(1000);
	}
	return NULL;
}

static void reap(void)
{
	struct rdmatensor_cqe cqes[64];
	unsigned int n, i, j;

	while ((n = rdmatensor_reap(scene.p.a.rt, cqes, 64)))
		for (i = 0; i < n; i++) {
			if (cqes[i].type == RDMATENSOR_CQE_CHANNEL_DOWN)
				for (j = 0; j < LIARS; j++)
					if (channels[j] == cqes[i].channel)
						channels[j] = 0;
			if (cqes[i].type != RDMATENSOR_CQE_FETCH)
				continue;
			CHECK(cqes[i].user_data < asked);
			if (ended[cqes[i].user_data]++)
				test_fail(__FILE__, __LINE__, "fetch %llu ended twice",
					  (unsigned long long)cqes[i].user_data);
			ends++;
		}
}

static void victim_asks(uint32_t channel)
{
	struct rdmatensor_range range = { below(80), below(2) ? below(TENSOR) : ~0ull };
	struct rdmatensor_stride stride = { below(4), below(4) ? RDMATENSOR_RANGE_REST : below(TENSOR) };
	struct side *a = &scene.p.a;
	struct rdmatensor_op op;

	if (!channel || asked - ends > ASKED_MAX || asked == sizeof(ended))
		return;
	/* Into the guard: the liar may write there, and nobody looks */
	rdmatensor_prep_fetch(&op, channel, below(2) ? "lie" : "other", below(3), a->pool.id,
			      scene.guard + below(4) * TENSOR, below(2) ? TENSOR : 64,
			      below(3) ? rdmatensor_deadline_ms(below(300)) : 0, asked);
	if (below(2))
		op.flags |= RDMATENSOR_OP_KEEP;
	else if (below(2))
		rdmatensor_prep_slice(&op, &range, below(2));
	if (!(op.flags & RDMATENSOR_OP_KEEP) && !below(3))
		rdmatensor_prep_strides(&op, &stride, 1);
	if (!side_do(a, &op))
		asked++;
}

static void meet(int i)
{
	struct rdmatensor_channel_query query = { .flags = RDMATENSOR_CHANNEL_NEXT };
	struct liar *liar = &liars[i];
	struct rdmatensor_msg msg;

	liar_init(liar, 1 + below(3));
	if (below(8))
		liar->features |= RDMATENSOR_WIRE_FEATURE_KEEP;
	if (below(8))
		liar->features |= RDMATENSOR_WIRE_FEATURE_SLICE;
	if (below(8))
		liar->features |= RDMATENSOR_WIRE_FEATURE_NEWEST;
	if (below(8))
		liar->features |= RDMATENSOR_WIRE_FEATURE_LAYOUT;
	if (!below(8)) {
		unsigned char *byte = (unsigned char *)&liar->own + below(sizeof(liar->own));

		*byte ^= 1 << below(8);
	}
	if (liar_connect(liar, test_ip(), scene.p.a.port)) {
		liar_close(liar);
		return;
	}
	if (!below(16))
		return;
	liar_hello(liar);
	if (liar_hear(liar, &msg, 300) != RDMATENSOR_WIRE_HELLO)
		return;
	/* The newest one: its entry may not have been reaped yet */
	while (!rdmatensor_channel_query(scene.p.a.rt, &query)) {
		channels[i] = query.channel;
		query.flags = RDMATENSOR_CHANNEL_NEXT;
	}
}

/* Nearly right */
static void say_something(struct liar *liar, const struct rdmatensor_msg *heard)
{
	char bytes[LIAR_SLOT_BYTES] __attribute__((aligned(8)));
	struct rdmatensor_msg msg = {
		.type = 2 + below(5),
		.request_index = below(3) ? heard->request_index : below(32),
		.step_id = below(4) ? heard->step_id : below(3),
	};
	static const char text[RDMATENSOR_STATUS_TEXT_MAX] = "lies";
	const struct rdmatensor_wire_slice slice = {
		.ndims = below(2), .ranges = { { htole64(below(TENSOR)),
						 htole64(below(2) ? below(TENSOR) : UINT64_MAX) } },
	};
	const struct rdmatensor_wire_layout layout = {
		.ndims = below(8) ? 1 : below(3),
		.strides = { htole64(below(8) ? 1 + below(3) : (uint64_t)below(9) << below(64)) },
	};
	struct rdmatensor_slice wanted;
	struct rdmatensor_layout placed;
	struct rdmatensor_meta part;
	u64 content;
	__le32 rkeys[4];
	uint32_t len;
	int i;

	switch (msg.type) {
	case RDMATENSOR_WIRE_ERROR_STATUS:
		msg.error = -(int)(1 + below(4095));
		msg.flags = below(3) ? 0 : RDMATENSOR_WIRE_F_CANCELLED;
		if (!msg.flags && below(2)) {
			msg.flags = RDMATENSOR_WIRE_F_NAMED;
			msg.name = "lies";
			msg.name_len = below(8) ? 3 : 4;
		}
		msg.text = text;
		msg.text_len = below(below(4) ? 5 : rdmatensor_wire_text_max(msg.flags) + 1);
		break;
	case RDMATENSOR_WIRE_CANCEL:
		break;
	default:
		msg.meta.data_type = RDMATENSOR_DT_UINT8;
		msg.meta.ndims = 1;
		msg.meta.bytes = below(4) ? TENSOR : (uint64_t)below(1 << 20) << below(40);
		msg.meta.dims[0] = msg.meta.bytes;
		break;
	}
	if (msg.type == RDMATENSOR_WIRE_TENSOR_REQUEST) {
		msg.name = below(4) ? "w" : "never";
		msg.name_len = msg.name[0] == 'w' ? 1 : 5;
		msg.flags = below(8) ? 0 : RDMATENSOR_WIRE_F_VALIDATE;
		msg.flags |= below(8) ? 0 : RDMATENSOR_WIRE_F_NOW;
		msg.flags |= below(6) ? 0 : RDMATENSOR_WIRE_F_NEWEST;
	} else if (msg.type == RDMATENSOR_WIRE_META_DATA_RESPONSE && !below(4)) {
		msg.flags = RDMATENSOR_WIRE_F_CHECKSUM;
		msg.checksum = below(UINT32_MAX);
	}
	part = msg.meta;
	content = msg.meta.bytes;
	if ((msg.type == RDMATENSOR_WIRE_TENSOR_REQUEST ||
	     msg.type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST) && !below(4)) {
		msg.flags |= RDMATENSOR_WIRE_F_SLICE;
		msg.slice = &slice;
		rdmatensor_wire_slice_get(&slice, &wanted);
		if (!rdmatensor_slice_meta(&wanted, &msg.meta, &part))
			content = part.bytes;
	}
	if ((msg.type == RDMATENSOR_WIRE_TENSOR_REQUEST && below(2)) ||
	    msg.type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST) {
		msg.flags |= RDMATENSOR_WIRE_F_DEST;
		if (!below(4)) {
			msg.flags |= RDMATENSOR_WIRE_F_LAYOUT;
			msg.layout = &layout;
			rdmatensor_wire_layout_get(&layout, &placed);
			/* Room for it is behind what is there for the others */
			if (!rdmatensor_layout_span(&placed, &part, &content) &&
			    content > 4 * TENSOR)
				return;
		}
		msg.seg_shift = below(4) ? 40 : 12 + below(29);
		msg.remote_addr = (uintptr_t)liar->memory + LIAR_DEST + below(8192);
		msg.nr_rkeys = rdmatensor_wire_segments(msg.remote_addr, content, msg.seg_shift);
		if (msg.nr_rkeys > 4)
			return;
		for (i = 0; i < 4; i++)
			rkeys[i] = htole32(below(8) ? liar->mr->rkey : below(UINT32_MAX));
		msg.rkeys = rkeys;
		msg.nr_parts = below(4) ? 1 : 1 + below(liar->nr_lanes);
	}
	if ((msg.type == RDMATENSOR_WIRE_TENSOR_REQUEST ||
	     msg.type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST) &&
	    !(msg.flags & (RDMATENSOR_WIRE_F_VALIDATE | RDMATENSOR_WIRE_F_SLICE |
			   RDMATENSOR_WIRE_F_LAYOUT)) && below(2)) {
		msg.flags |= RDMATENSOR_WIRE_F_KEEP;
		msg.keep = below(4) + 1024 * below(3);
	}
	len = rdmatensor_wire_encode(&msg, bytes, sizeof(bytes));
	rdmatensor_wire_set_consumed(bytes, liar->heard + (below(16) ? 0 : below(4)));
	for (i = below(3) ? 0 : below(4); i; i--)
		bytes[below(len)] ^= 1 << below(8);
	liar_say_bytes(liar, bytes, below(32) ? len : below(LIAR_SLOT_BYTES));
}

static void lie(int i)
{
	struct liar *liar = &liars[i];
	static struct rdmatensor_msg heard[LIARS];
	uint32_t rkey = heard[i].nr_rkeys == 1 ? le32toh(heard[i].rkeys[0]) : below(UINT32_MAX);
	uint32_t len, slots = le16toh(liar->peer.msg_slots) *
			      le32toh(liar->peer.msg_slot_bytes);
	unsigned int lane = liar->ids[liar->nr_lanes - 1] ? below(liar->nr_lanes) : 0;

	switch (below(16)) {
	case 0 ... 6:
		say_something(liar, &heard[i]);
		break;
	case 7:
		len = heard[i].meta.bytes <= 65536 ? heard[i].meta.bytes : 64;
		liar_content(liar, lane, below(2) ? heard[i].request_index : below(64),
			     below(4) ? len : below(TENSOR), heard[i].remote_addr, rkey);
		break;
	case 8:
		liar_ack(liar);
		break;
	case 9:
		if (slots > 4096)
			liar_post(liar, 0, IBV_WR_RDMA_WRITE, LIAR_DEST, below(4096),
				  le64toh(liar->peer.msgbuf_addr) + below(slots - 4096),
				  le32toh(liar->peer.msgbuf_rkey), 0);
		break;
	case 10:
		if (!below(4))
			liar_post(liar, lane, below(2) ? IBV_WR_SEND : IBV_WR_RDMA_READ,
				  LIAR_FROM, below(64), le64toh(liar->peer.msgbuf_addr),
				  le32toh(liar->peer.msgbuf_rkey), 0);
		break;
	case 11:
		if (!below(8))
			liar_close(liar);
		break;
	case 12 ... 13:
		victim_asks(channels[i]);
		break;
	default:
		switch (liar_hear(liar, &heard[i], below(5))) {
		case LIAR_END:
			liar_close(liar);
			memset(&heard[i], 0, sizeof(heard[i]));
			break;
		case LIAR_CONTENT:
		case LIAR_ACK:
			heard[i].nr_rkeys = 0;
			break;
		}
		break;
	}
	if (!liar->memory)
		channels[i] = 0;
}

TEST(lies_at_random)
{
	uint64_t seconds = amount("HOSTILE_SECONDS", 10), end, alone, lies = 0;
	int i;

	scene_open(NULL);
	printf("# seed %ld, %llu s\n", amount("HOSTILE_SEED", 1), (unsigned long long)seconds);
	EQ(pthread_create(&honest.thread, NULL, fetch_steadily, NULL), 0);
	end = now_ns() + 2000000000;
	while (now_ns() < end)
		usleep(100000);
	alone = __atomic_load_n(&honest.fetches, __ATOMIC_RELAXED);

	end = now_ns() + seconds * 1000000000;
	while (now_ns() < end) {
		i = below(LIARS);
		if (liars[i].memory)
			lie(i);
		else
			meet(i);
		reap();
		if (!(++lies % 256))
			test_alive();
	}
	for (i = 0; i < LIARS; i++)
		if (liars[i].memory)
			liar_close(&liars[i]);
	end = now_ns() + 20000000000;
	while (ends < asked) {
		CHECK(now_ns() < end);
		rdmatensor_wait(scene.p.a.rt, 1, rdmatensor_deadline_ms(100));
		reap();
	}
	__atomic_store_n(&honest.stop, true, __ATOMIC_RELAXED);
	pthread_join(honest.thread, NULL);
	printf("# the honest peer: %llu fetches in 2 s before, %llu during; the longest took %llu ms\n",
	       (unsigned long long)alone, (unsigned long long)(honest.fetches - alone),
	       (unsigned long long)honest.longest_ns / 1000000);
	printf("# %llu fetches from liars, each ended once; %llu breaches counted\n",
	       (unsigned long long)asked,
	       (unsigned long long)side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS));
	EQ(honest.wrong, 0);
	CHECK(honest.fetches - alone > 20 * seconds);
	CHECK(honest.longest_ns < 5000000000);
	CHECK(side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS));
	CHECK(asked);
	CHECK(filled(side_at(&scene.stranger, 0), STRANGER, 7));
	fill(side_at(&scene.p.a, scene.guard), GUARD, 8);
	scene_duty();
	printf("connections %llu, messages %llu\n", liar_connections, liar_messages);
}
