// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that lies, a lie at a time. Each ends the liar's own channel, with the errno
 * and the counter that belong to it, or is none that matters; and after each the
 * honest peer is served and nobody's memory has changed.
 */
#include <asm/byteorder.h>
#include <endian.h>
#include "hostile.h"

static struct liar liar;

static const struct {
	const char *name;
	size_t offset, bytes;
} fields[] = {
#define FIELD(_name) \
	{ #_name, offsetof(struct rdmatensor_wire_hdr, _name), \
	  sizeof(((struct rdmatensor_wire_hdr *)0)->_name) }
	FIELD(length), FIELD(version_major), FIELD(type), FIELD(flags), FIELD(request_index),
	FIELD(step_id), FIELD(remote_addr), FIELD(tensor_bytes), FIELD(checksum),
	FIELD(error_status), FIELD(data_type), FIELD(is_dead), FIELD(ndims), FIELD(nr_rkeys),
	FIELD(name_len), FIELD(text_len), FIELD(nr_parts), FIELD(seg_shift), FIELD(keep),
	FIELD(consumed),
	{ "first of the tail", sizeof(struct rdmatensor_wire_hdr), 8 },
	{ "second of the tail", sizeof(struct rdmatensor_wire_hdr) + 8, 8 },
};

/* With the field at all ones, one more than is right, one less, and the highest bit changed */
static uint64_t wrong(uint64_t value, int how, size_t bytes)
{
	switch (how) {
	case 0:
		return UINT64_MAX;
	case 1:
		return value + 1;
	case 2:
		return value - 1;
	default:
		return value ^ 1ull << (8 * bytes - 1);
	}
}

TEST(every_field_of_every_message)
{
	char good[LIAR_SLOT_BYTES] __attribute__((aligned(8)));
	char bad[LIAR_SLOT_BYTES] __attribute__((aligned(8)));
	int type, how, lies = 0, taken = 0;
	struct rdmatensor_msg msg;
	const char *why;
	size_t i;

	scene_open(NULL);
	for (type = RDMATENSOR_WIRE_HELLO; type <= RDMATENSOR_WIRE_CANCEL; type++) {
		msg = scene_right(type, 5);
		uint32_t len = rdmatensor_wire_encode(&msg, good, sizeof(good));

		for (i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
			for (how = 0; how < 4; how++) {
				uint64_t value = 0;

				if (fields[i].offset + fields[i].bytes > len)
					continue;
				memcpy(bad, good, len);
				memcpy(&value, good + fields[i].offset, fields[i].bytes);
				value = wrong(value, how, fields[i].bytes);
				memcpy(bad + fields[i].offset, &value, fields[i].bytes);
				/* What the decoder takes is the business of the other tests */
				if (!rdmatensor_wire_decode(bad, len, &msg, &why) &&
				    (strcmp(fields[i].name, "consumed") || how == 1)) {
					taken++;
					continue;
				}
				scene_meet(&liar, 1);
				liar_say_bytes(&liar, bad, len);
				scene_ends(&liar, -EPROTO);
				lies++;
				test_alive();
			}
		}
	}
	printf("# %d lies, %d were right messages\n", lies, taken);
	CHECK(lies > 250);
}

TEST(every_length_of_a_write)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 5);
	char bytes[3 * LIAR_SLOT_BYTES] __attribute__((aligned(8))) = {};
	uint32_t len = rdmatensor_wire_encode(&msg, bytes, sizeof(bytes));
	uint32_t lengths[] = { 0, 1, 63, 64, len - 1, len + 1, LIAR_SLOT_BYTES,
			       LIAR_SLOT_BYTES + 1, 3 * LIAR_SLOT_BYTES };
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		scene_meet(&liar, 1);
		liar_say_bytes(&liar, bytes, lengths[i]);
		scene_ends(&liar, -EPROTO);
	}
}

TEST(unknown_types)
{
	const uint8_t types[] = { 0, RDMATENSOR_WIRE_TABLE_OPEN, RDMATENSOR_WIRE_TABLE_INFO,
				  RDMATENSOR_WIRE_LIST, RDMATENSOR_WIRE_LIST_INFO, 11,
				  0x7f, 0xff };
	struct rdmatensor_wire_hdr hdr = {
		.length = htole32(sizeof(hdr)), .version_major = RDMATENSOR_WIRE_MAJOR,
	};
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(types); i++) {
		scene_meet(&liar, 1);
		hdr.type = types[i];
		liar_say_bytes(&liar, &hdr, sizeof(hdr));
		scene_ends(&liar, -EPROTO);
	}
}

TEST(dims_that_overflow)
{
	const uint64_t dims[][3] = {
		{ 1ull << 32, 1ull << 32, 1 }, { 1ull << 63, 2, 1 }, { UINT64_MAX, 1, 1 },
		{ TENSOR, 0, 1 }, { 3, 1ull << 62, 4 },
	};
	int type;
	size_t i;

	scene_open(NULL);
	for (type = RDMATENSOR_WIRE_TENSOR_REQUEST; type <= RDMATENSOR_WIRE_TENSOR_RE_REQUEST;
	     type++) {
		for (i = 0; i < sizeof(dims) / sizeof(*dims); i++) {
			struct rdmatensor_msg msg = scene_right(type, 1);

			msg.meta.ndims = 3;
			memcpy(msg.meta.dims, dims[i], sizeof(dims[i]));
			scene_meet(&liar, 1);
			liar_say(&liar, &msg);
			scene_ends(&liar, -EPROTO);
		}
	}
}

/* Nobody has said that this one knows of kept destinations */
TEST(kept_without_the_feature)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 5);

	scene_open(NULL);
	msg.flags |= RDMATENSOR_WIRE_F_KEEP;
	msg.flags &= ~RDMATENSOR_WIRE_F_VALIDATE;
	scene_meet(&liar, 1);
	liar_say(&liar, &msg);
	scene_ends(&liar, -EPROTO);
	msg.flags = RDMATENSOR_WIRE_F_KEEP;
	scene_meet(&liar, 1);
	liar_say(&liar, &msg);
	scene_ends(&liar, -EPROTO);
}

/* Nor of lists */
TEST(lists_without_the_feature)
{
	struct rdmatensor_msg list = { .type = RDMATENSOR_WIRE_LIST, .request_index = 4 };
	struct rdmatensor_msg info = { .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = 4 };

	scene_open(NULL);
	scene_meet(&liar, 1);
	liar_say(&liar, &list);
	scene_ends(&liar, -EPROTO);
	scene_meet(&liar, 1);
	liar_say(&liar, &info);
	scene_ends(&liar, -EPROTO);
}

/* Nor of slices; and of who does, one that is another's or of what there is not */
TEST(slices_that_lie)
{
	const struct rdmatensor_wire_slice half = {
		.ndims = 1, .ranges = { { htole64(0), htole64(TENSOR / 2) } },
	}, other_half = {
		.ndims = 1, .ranges = { { htole64(TENSOR / 2), htole64(TENSOR / 2) } },
	}, beyond = {
		.ndims = 1, .ranges = { { htole64(0), htole64(TENSOR + 1) } },
	};
	const struct {
		const struct rdmatensor_wire_slice *first, *then;
	} pairs[] = {
		{ &half, &other_half }, { &half, NULL }, { NULL, &half },
	};
	struct rdmatensor_msg ask = { .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 1,
				      .name = "w", .name_len = 1 }, msg;
	struct rdmatensor_msg again = scene_right(RDMATENSOR_WIRE_TENSOR_RE_REQUEST, 1);
	const struct rdmatensor_range range = { 0, TENSOR + 1 }, fits = { 0, TENSOR };
	struct rdmatensor_msg other;
	struct rdmatensor_op op;
	__le32 rkey;
	size_t i;

	scene_open(NULL);
	ask.flags = RDMATENSOR_WIRE_F_SLICE;
	ask.slice = &half;
	scene_meet(&liar, 1);
	liar_say(&liar, &ask);
	scene_ends(&liar, -EPROTO);

	liar_features |= RDMATENSOR_WIRE_FEATURE_SLICE;
	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		scene_meet(&liar, 1);
		ask.flags = pairs[i].first ? RDMATENSOR_WIRE_F_SLICE : 0;
		ask.slice = pairs[i].first;
		liar_say(&liar, &ask);
		EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_META_DATA_RESPONSE);
		EQ(msg.meta.bytes, TENSOR);
		scene_to_own(&liar, &again, &rkey);
		again.flags = RDMATENSOR_WIRE_F_DEST | (pairs[i].then ? RDMATENSOR_WIRE_F_SLICE : 0);
		again.slice = pairs[i].then;
		liar_say(&liar, &again);
		scene_ends(&liar, -EPROTO);
	}

	/* It is told, and may go on */
	scene_meet(&liar, 1);
	ask.flags = RDMATENSOR_WIRE_F_SLICE;
	ask.slice = &beyond;
	liar_say(&liar, &ask);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_ERROR_STATUS);
	EQ(msg.error, -ERANGE);
	scene_lives(&liar);

	/* Of a tensor that has no such slice nobody sends meta-data */
	scene_meet(&liar, 1);
	rdmatensor_prep_fetch(&op, scene.channel, "lie", 0, scene.p.a.pool.id,
			      side_alloc(&scene.p.a, TENSOR), TENSOR, 0, 1);
	rdmatensor_prep_slice(&op, &range, 1);
	EQ(side_do(&scene.p.a, &op), 0);
	scene_asked(&liar, &msg);
	CHECK(msg.flags & RDMATENSOR_WIRE_F_SLICE);
	msg = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
	liar_say(&liar, &msg);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), -EPROTO);
	scene_ends(&liar, -EPROTO);

	/* Nor does it end with what comes behind them, once there is a destination */
	for (i = 0; i < 20; i++) {
		scene_meet(&liar, 1);
		scene_ask(100 + i, TENSOR);
		scene_asked(&liar, &msg);
		other = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
		liar_say(&liar, &other);
		scene_asked(&liar, &msg);
		other = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, msg.request_index);
		liar_say(&liar, &other);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 100 + i, NULL), -EIO);
		op.channel = scene.channel;
		op.dims_uptr = rdmatensor_op_ptr(&fits);
		op.user_data = 2 + i;
		EQ(side_do(&scene.p.a, &op), 0);
		scene_asked(&liar, &msg);
		CHECK(msg.flags & RDMATENSOR_WIRE_F_SLICE && msg.flags & RDMATENSOR_WIRE_F_DEST);
		other = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
		other.meta.bytes = other.meta.dims[0] = TENSOR / 2;
		liar_say(&liar, &other);
		liar_content(&liar, 0, msg.request_index, 0, msg.remote_addr,
			     le32toh(msg.rkeys[0]));
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 2 + i, NULL), -EPROTO);
		scene_ends(&liar, -EPROTO);
	}
	liar_features &= ~RDMATENSOR_WIRE_FEATURE_SLICE;
}

/* Nor of places with gaps; and of who does, one content that goes over a gap */
TEST(layouts_that_lie)
{
	const struct rdmatensor_wire_layout gaps = { .ndims = 1, .strides = { htole64(2) } };
	const struct rdmatensor_stride strides[] = { { 2, TENSOR } };
	struct rdmatensor_msg again = scene_right(RDMATENSOR_WIRE_TENSOR_RE_REQUEST, 1), msg;
	struct rdmatensor_msg ask = { .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 1,
				      .name = "w", .name_len = 1 };
	struct rdmatensor_op op;
	__le32 rkey;
	int bytes;

	scene_open(NULL);
	scene_meet(&liar, 1);
	liar_say(&liar, &ask);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_META_DATA_RESPONSE);
	scene_to_own(&liar, &again, &rkey);
	again.flags |= RDMATENSOR_WIRE_F_LAYOUT;
	again.layout = &gaps;
	liar_say(&liar, &again);
	scene_ends(&liar, -EPROTO);

	/* A peer that does not write to such places is not asked to */
	scene_meet(&liar, 1);
	rdmatensor_prep_fetch(&op, scene.channel, "lie", 0, scene.p.a.pool.id,
			      side_alloc(&scene.p.a, 2 * TENSOR), 2 * TENSOR - 1, 0, 1);
	rdmatensor_prep_strides(&op, strides, 1);
	EQ(side_do(&scene.p.a, &op), -EOPNOTSUPP);
	scene_lives(&liar);

	liar_features |= RDMATENSOR_WIRE_FEATURE_LAYOUT;
	for (bytes = 0; bytes <= 2; bytes++) {
		scene_meet(&liar, 1);
		op.channel = scene.channel;
		op.user_data = 10 + bytes;
		EQ(side_do(&scene.p.a, &op), 0);
		scene_asked(&liar, &msg);
		if (!(msg.flags & RDMATENSOR_WIRE_F_DEST)) {
			struct rdmatensor_msg told = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE,
								 msg.request_index);

			liar_say(&liar, &told);
			scene_asked(&liar, &msg);
		}
		CHECK(msg.flags & RDMATENSOR_WIRE_F_LAYOUT && msg.flags & RDMATENSOR_WIRE_F_DEST);
		EQ(msg.layout->ndims, 1);
		EQ(le64toh(msg.layout->strides[0]), 2);
		/* The last byte, which lies alone */
		liar_content(&liar, 0, msg.request_index, bytes,
			     msg.remote_addr + 2 * TENSOR - 1 - bytes, le32toh(msg.rkeys[0]));
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 10 + bytes, NULL),
		   bytes == 1 ? 0 : -EPROTO);
		if (bytes == 1)
			scene_lives(&liar);
		else
			scene_ends(&liar, -EPROTO);
	}
	liar_features &= ~RDMATENSOR_WIRE_FEATURE_LAYOUT;
}

/* What is asked of any step is answered of one, which is not older than that, and stays it */
TEST(newest_steps)
{
	struct rdmatensor_msg ask = { .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 1,
				      .name = "w", .name_len = 1, .step_id = -4 }, msg;
	struct rdmatensor_msg again = scene_right(RDMATENSOR_WIRE_TENSOR_RE_REQUEST, 1), other;
	static const uint16_t flags[] = { RDMATENSOR_WIRE_F_NEWEST, RDMATENSOR_WIRE_F_NOW };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	__le32 rkey;
	size_t i;

	scene_open(NULL);
	publish(&scene.p.a, "w", -3, TENSOR, 1, 0, 1);
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		scene_meet(&liar, 1);
		ask.flags = flags[i];
		liar_say(&liar, &ask);
		scene_ends(&liar, -EPROTO);
	}

	liar_features |= RDMATENSOR_WIRE_FEATURE_NEWEST;
	scene_meet(&liar, 1);
	ask.flags = RDMATENSOR_WIRE_F_NEWEST;
	liar_say(&liar, &ask);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_META_DATA_RESPONSE);
	EQ(msg.step_id, 0);
	/* That of the request is another one now */
	scene_to_own(&liar, &again, &rkey);
	again.step_id = -4;
	liar_say(&liar, &again);
	scene_ends(&liar, -EPROTO);

	/* Told, and aborted then: the request's step is not the one that ends it */
	scene_meet(&liar, 1);
	ask.name = "n";
	publish(&scene.p.a, "n", 5, TENSOR, 1, 0, 1);
	liar_say(&liar, &ask);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_META_DATA_RESPONSE);
	EQ(msg.step_id, 5);
	EQ(rdmatensor_step_abort(scene.p.a.rt, -4, -EDOM, "another"), 0);
	EQ(rdmatensor_step_abort(scene.p.a.rt, 5, -EIO, "why"), 0);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_ERROR_STATUS);
	EQ(msg.error, -EIO);
	scene_lives(&liar);

	scene_meet(&liar, 1);
	ask.flags = RDMATENSOR_WIRE_F_NOW;
	ask.step_id = 1;
	ask.name = "never";
	ask.name_len = 5;
	liar_say(&liar, &ask);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_ERROR_STATUS);
	EQ(msg.error, -ENOENT);
	scene_lives(&liar);

	/* An older one than was asked for is none; a newer one is re-requested by its number */
	for (i = 0; i < 2; i++) {
		scene_meet(&liar, 1);
		rdmatensor_prep_fetch(&op, scene.channel, "lie", 7, scene.p.a.pool.id,
				      side_alloc(&scene.p.a, TENSOR), TENSOR, 0, 1);
		op.flags |= RDMATENSOR_OP_NEWEST;
		EQ(side_do(&scene.p.a, &op), 0);
		scene_asked(&liar, &msg);
		CHECK(msg.flags == RDMATENSOR_WIRE_F_NEWEST);
		EQ(msg.step_id, 7);
		other = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
		other.step_id = i ? 9 : 6;
		liar_say(&liar, &other);
		if (!i) {
			EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), -EPROTO);
			scene_ends(&liar, -EPROTO);
			continue;
		}
		scene_asked(&liar, &msg);
		EQ(msg.type, RDMATENSOR_WIRE_TENSOR_RE_REQUEST);
		EQ(msg.step_id, 9);
		liar_content(&liar, 0, msg.request_index, TENSOR, msg.remote_addr,
			     le32toh(msg.rkeys[0]));
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
		EQ(cqe.step_id, 9);
		scene_lives(&liar);
	}
	liar_features &= ~RDMATENSOR_WIRE_FEATURE_NEWEST;
}

/* Answers to what was never asked */
TEST(indices_never_issued)
{
	const uint32_t indices[] = { 0, 1, 255, 0x7fffffff, RDMATENSOR_INDEX_MAX };
	struct rdmatensor_msg msg;
	size_t i;
	int type;

	scene_open(NULL);
	for (i = 0; i < sizeof(indices) / sizeof(*indices); i++) {
		scene_meet(&liar, 1);
		liar_content(&liar, 0, indices[i], 0, 0, 0);
		scene_ends(&liar, -EPROTO);
		for (type = RDMATENSOR_WIRE_META_DATA_RESPONSE;
		     type <= RDMATENSOR_WIRE_ERROR_STATUS; type += 2) {
			msg = scene_right(type, indices[i]);
			scene_meet(&liar, 1);
			liar_say(&liar, &msg);
			scene_ends(&liar, -EPROTO);
		}
		msg = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, indices[i]);
		msg.flags = RDMATENSOR_WIRE_F_CANCELLED;
		scene_meet(&liar, 1);
		liar_say(&liar, &msg);
		scene_ends(&liar, -EPROTO);
	}
}

/* A re-request that crosses with an error is none of the peer's fault */
TEST(re_request_of_nothing_is_stray)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_RE_REQUEST, 3);
	uint64_t stray;

	scene_open(NULL);
	stray = side_stat(&scene.p.a, RDMATENSOR_STAT_RX_STRAY);
	scene_meet(&liar, 1);
	liar_say(&liar, &msg);
	scene_lives(&liar);
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_RX_STRAY), stray + 1);
}

/* The fetch is answered as it should be, up to the re-request in *msg. Return: the key */
static uint32_t describe(struct rdmatensor_msg *msg)
{
	struct rdmatensor_msg meta;

	scene_asked(&liar, msg);
	meta = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg->request_index);
	liar_say(&liar, &meta);
	return scene_asked(&liar, msg);
}

TEST(contents_twice_and_of_finished_requests)
{
	struct rdmatensor_msg msg;
	uint64_t at;
	uint32_t rkey;

	scene_open(NULL);
	scene_meet(&liar, 1);
	at = scene_ask(1, TENSOR);
	rkey = describe(&msg);
	fill((void *)(liar.memory + LIAR_FROM), TENSOR, 3);
	EQ(liar_content(&liar, 0, msg.request_index, TENSOR, msg.remote_addr, rkey), 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	CHECK(filled(side_at(&scene.p.a, at), TENSOR, 3));
	liar_content(&liar, 0, msg.request_index, 0, 0, 0);
	scene_ends(&liar, -EPROTO);

	/* An error for what has had its content */
	scene_meet(&liar, 1);
	scene_ask(2, TENSOR);
	rkey = describe(&msg);
	EQ(liar_content(&liar, 0, msg.request_index, TENSOR, msg.remote_addr, rkey), 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 2, NULL), 0);
	msg = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, msg.request_index);
	liar_say(&liar, &msg);
	scene_ends(&liar, -EPROTO);
}

TEST(contents_of_other_lengths)
{
	const uint32_t lengths[] = { 0, TENSOR + 1, 2 * TENSOR };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_msg msg;
	uint32_t rkey;
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		scene_meet(&liar, 1);
		scene_ask(i, TENSOR);
		rkey = describe(&msg);
		liar_content(&liar, 0, msg.request_index, lengths[i], msg.remote_addr, rkey);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, i, &cqe), -EPROTO);
		scene_ends(&liar, -EPROTO);
	}
}

TEST(content_before_it_has_a_place)
{
	struct rdmatensor_msg msg;

	scene_open(NULL);
	scene_meet(&liar, 1);
	scene_ask(1, TENSOR);
	scene_asked(&liar, &msg);
	CHECK(!(msg.flags & RDMATENSOR_WIRE_F_DEST));
	liar_content(&liar, 0, msg.request_index, 0, 0, 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), -EPROTO);
	scene_ends(&liar, -EPROTO);
}

TEST(meta_data_twice_and_of_another_step)
{
	struct rdmatensor_msg msg, meta;

	scene_open(NULL);
	scene_meet(&liar, 1);
	scene_ask(1, TENSOR);
	describe(&msg);
	meta = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
	liar_say(&liar, &meta);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), -EPROTO);
	scene_ends(&liar, -EPROTO);

	scene_meet(&liar, 1);
	scene_ask(2, TENSOR);
	scene_asked(&liar, &msg);
	meta = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
	meta.step_id = 1;
	liar_say(&liar, &meta);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 2, NULL), -EPROTO);
	scene_ends(&liar, -EPROTO);
}

/* Of what was not asked for, and by who has said that it says no names */
TEST(errors_of_another_tensor)
{
	static const struct {
		const char *name;
		int64_t step;
		uint32_t features;
	} lies[] = {
		{ "liE", 0, RDMATENSOR_WIRE_FEATURE_ERROR_NAMED },
		{ "li", 0, RDMATENSOR_WIRE_FEATURE_ERROR_NAMED },
		{ "lies", 0, RDMATENSOR_WIRE_FEATURE_ERROR_NAMED },
		{ "lie", 1, RDMATENSOR_WIRE_FEATURE_ERROR_NAMED },
		{ "lie", 0, 0 },
	};
	struct rdmatensor_msg msg;
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		liar_features = lies[i].features;
		scene_meet(&liar, 1);
		scene_ask(i, TENSOR);
		scene_asked(&liar, &msg);
		msg = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, msg.request_index);
		msg.name = lies[i].name;
		msg.name_len = strlen(lies[i].name);
		msg.step_id = lies[i].step;
		liar_say(&liar, &msg);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, i, NULL), -EPROTO);
		scene_ends(&liar, -EPROTO);
	}
	liar_features = RDMATENSOR_WIRE_FEATURE_ERROR_NAMED;
}

/* It is shown to people: whatever it is, it moves no cursor, and is bounded */
TEST(texts_of_any_bytes)
{
	static const uint32_t lengths[] = { 0, 1, 128, 129, 511, 512, RDMATENSOR_STATUS_TEXT_MAX };
	char text[RDMATENSOR_STATUS_TEXT_MAX], line[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_cqe cqe;
	struct rdmatensor_msg msg;
	size_t i, n, before = strlen(strerror(EIO)) + 2;

	scene_open(NULL);
	scene_meet(&liar, 1);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (n = 0; n < sizeof(text); n++)
			text[n] = n * 7 + i;
		scene_ask(i, TENSOR);
		scene_asked(&liar, &msg);
		msg = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, msg.request_index);
		msg.text = text;
		msg.text_len = lengths[i];
		liar_say(&liar, &msg);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, i, &cqe), -EIO);
		rdmatensor_status_text(scene.p.a.rt, &cqe, line, sizeof(line));
		EQ(strlen(line), lengths[i] ? before + lengths[i] : before - 2);
		for (n = 0; line[n]; n++)
			CHECK((unsigned char)line[n] >= ' ' && line[n] != 0x7f);
		EQ(!!(cqe.flags & RDMATENSOR_CQE_MORE), lengths[i] > 128);
	}
	scene_lives(&liar);
}

/*
 * A tensor that fits nowhere is the fetch's own error; and however large it was said
 * to be, the answer to the CANCEL is not waited for any longer.
 */
TEST(a_tensor_too_large_to_exist)
{
	struct rdmatensor_msg msg, meta;
	uint64_t end;
	int heard;

	scene_open(NULL);
	scene_meet(&liar, 1);
	scene_ask(1, TENSOR);
	scene_asked(&liar, &msg);
	meta = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
	meta.meta.bytes = meta.meta.dims[0] = 1ull << 60;
	liar_say(&liar, &meta);
	do {
		heard = liar_hear(&liar, &msg, 5000);
	} while (heard == LIAR_ACK);
	EQ(heard, RDMATENSOR_WIRE_CANCEL);
	end = rdmatensor_deadline_ms(10000);
	CHECK(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL) < 0);
	CHECK(rdmatensor_deadline_ms(0) < end);
	scene_ends(&liar, -ETIMEDOUT);
}

TEST(requests_twice_or_too_many)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 1);
	uint32_t i;

	scene_open(NULL);
	msg.name = "never published";
	msg.name_len = 5;
	scene_meet(&liar, 1);
	liar_say(&liar, &msg);
	liar_say(&liar, &msg);
	scene_ends(&liar, -EPROTO);

	scene_meet(&liar, 1);
	for (i = 0; i < 1024; i++) {
		msg.request_index = i;
		liar_say(&liar, &msg);
	}
	scene_ends(&liar, -EPROTO);
}

TEST(cancels_twice_or_too_many)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 1);
	struct rdmatensor_msg cancel = scene_right(RDMATENSOR_WIRE_CANCEL, 1), answer;
	uint32_t i;
	int heard;

	scene_open(NULL);
	/* Answered, also when there is nothing to cancel */
	scene_meet(&liar, 1);
	liar_say(&liar, &cancel);
	do {
		heard = liar_hear(&liar, &answer, 5000);
	} while (heard == LIAR_ACK);
	EQ(heard, RDMATENSOR_WIRE_ERROR_STATUS);
	CHECK(answer.flags & RDMATENSOR_WIRE_F_CANCELLED);
	scene_lives(&liar);

	/* It hears none of the answers, and says so: they pile up */
	scene_meet(&liar, 1);
	liar.lie_count = true;
	liar.tell = liar.heard;
	for (i = 0; i < 1024; i++) {
		cancel.request_index = msg.request_index = i;
		liar_say(&liar, &cancel);
	}
	scene_ends(&liar, -EPROTO);
}

TEST(acks_and_counts_of_what_was_never_sent)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_CANCEL, 1);
	const uint32_t tells[] = { 2, 1000, UINT32_MAX, 1u << 31 };
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(tells) / sizeof(*tells); i++) {
		scene_meet(&liar, 1);
		liar.lie_count = true;
		liar.tell = tells[i];
		liar_say(&liar, &msg);
		scene_ends(&liar, -EPROTO);
	}
	scene_meet(&liar, 1);
	liar_ack(&liar);
	liar_ack(&liar);
	scene_ends(&liar, -EPROTO);

	/* Backwards */
	scene_meet(&liar, 1);
	liar_say(&liar, &msg);
	liar.lie_count = true;
	liar.tell = 0;
	liar_say(&liar, &msg);
	scene_ends(&liar, -EPROTO);
}

TEST(re_requests_out_of_turn)
{
	struct rdmatensor_msg ask = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 1), msg;
	struct rdmatensor_msg again = scene_right(RDMATENSOR_WIRE_TENSOR_RE_REQUEST, 1);
	__le32 rkey;
	int what, heard;

	scene_open(NULL);
	ask.flags = 0;
	ask.nr_rkeys = 0;
	ask.nr_parts = 0;
	ask.seg_shift = 0;
	memset(&ask.meta, 0, sizeof(ask.meta));
	for (what = 0; what < 4; what++) {
		scene_meet(&liar, 1);
		scene_to_own(&liar, &again, &rkey);
		if (what == 0) {
			/* Before there was an answer */
			ask.name = "never";
			ask.name_len = 5;
			liar_say(&liar, &ask);
			liar_say(&liar, &again);
			scene_ends(&liar, -EPROTO);
			ask.name_len = 1;
			ask.name = "w";
			continue;
		}
		liar_say(&liar, &ask);
		do {
			heard = liar_hear(&liar, &msg, 5000);
		} while (heard == LIAR_ACK);
		EQ(heard, RDMATENSOR_WIRE_META_DATA_RESPONSE);
		EQ(msg.meta.bytes, TENSOR);
		if (what == 1) {
			/* Of other meta-data than it was told: it would be written beyond */
			struct rdmatensor_msg other = again;

			other.meta.bytes = other.meta.dims[0] = TENSOR / 2;
			liar_say(&liar, &other);
		} else if (what == 2) {
			again.step_id = 9;
			liar_say(&liar, &again);
			again.step_id = 0;
		} else {
			/* More parts than there are lanes */
			again.nr_parts = 2;
			liar_say(&liar, &again);
		}
		scene_ends(&liar, -EPROTO);
	}
}

/* Where the liar wants its content is no place: the write fails, the tensor is kept */
TEST(destinations_that_are_none)
{
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 1);
	const uint64_t places[] = { 0, 0x1000, 1ull << 47, INT64_MAX - TENSOR };
	__le32 rkey;
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		scene_meet(&liar, 1);
		scene_to_own(&liar, &msg, &rkey);
		msg.remote_addr = places[i];
		liar_say(&liar, &msg);
		scene_ends(&liar, -ECONNRESET);
	}
	/* The victim's own message buffer as a destination is nobody's there */
	scene_meet(&liar, 1);
	scene_to_own(&liar, &msg, &rkey);
	msg.remote_addr = le64toh(liar.peer.msgbuf_addr);
	rkey = liar.peer.msgbuf_rkey;
	liar_say(&liar, &msg);
	scene_ends(&liar, -ECONNRESET);
}

TEST(more_messages_than_credits)
{
	struct rdmatensor_msg cancel = scene_right(RDMATENSOR_WIRE_CANCEL, 1);
	int i, round;

	scene_open(NULL);
	for (round = 0; round < 3; round++) {
		scene_meet(&liar, 1);
		/* Four windows at once; each message is right by itself */
		for (i = 0; i < 64; i++) {
			cancel.request_index = i;
			liar_say(&liar, &cancel);
		}
		scene_lives(&liar);
	}
}

/* The slots are written over and over while what is in them is being read */
TEST(slots_rewritten_while_they_are_read)
{
	char bytes[LIAR_SLOT_BYTES] __attribute__((aligned(8)));
	struct rdmatensor_msg msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 1);
	long rounds = amount("HOSTILE_REWRITES", 30), round;
	int i, ended = 0;
	uint64_t down;

	scene_open(NULL);
	down = side_stat(&scene.p.a, RDMATENSOR_STAT_CHANNELS_DOWN);
	for (round = 0; round < rounds; round++) {
		uint32_t slots;

		scene_meet(&liar, 1);
		slots = le16toh(liar.peer.msg_slots) * le32toh(liar.peer.msg_slot_bytes);
		for (i = 0; i < 32; i++) {
			uint32_t len;

			msg.request_index = i;
			len = rdmatensor_wire_encode(&msg, bytes, sizeof(bytes));
			bytes[below(len)] ^= 1 << below(8);
			liar_say_bytes(&liar, bytes, len);
			/* And right over it, from a place of other bytes */
			memset(liar.memory + LIAR_DEST, below(256), 4096);
			if (liar_post(&liar, 0, IBV_WR_RDMA_WRITE, LIAR_DEST, 4096,
				      le64toh(liar.peer.msgbuf_addr) + below(slots - 4096),
				      le32toh(liar.peer.msgbuf_rkey), 0))
				break;
		}
		liar_close(&liar);
		ended += side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL) == -EPROTO;
		scene.breaches = side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS);
		scene_duty();
		test_alive();
	}
	printf("# %d of %ld channels ended by a breach\n", ended, rounds);
	CHECK(ended);
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_CHANNELS_DOWN), down + rounds);
}

TEST(hello_out_of_turn)
{
	const int first[] = { RDMATENSOR_WIRE_TENSOR_REQUEST, RDMATENSOR_WIRE_CANCEL,
			      RDMATENSOR_WIRE_ERROR_STATUS };
	struct rdmatensor_msg msg;
	size_t i;

	scene_open(NULL);
	scene_meet(&liar, 1);
	liar_hello(&liar);
	scene_ends(&liar, -EPROTO);

	/* Before one: a channel that never came up leaves nothing but the count */
	for (i = 0; i < 4; i++) {
		liar_init(&liar, 1);
		EQ(liar_connect(&liar, test_ip(), scene.p.a.port), 0);
		if (i < 3) {
			msg = scene_right(first[i], 1);
			liar_say(&liar, &msg);
		} else {
			liar_content(&liar, 0, 1, 0, 0, 0);
		}
		while (liar_hear(&liar, &msg, 5000) != LIAR_END)
			;
		liar_close(&liar);
		scene.breaches++;
		EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), scene.breaches);
		scene_duty();
	}
}

TEST(names_that_would_write_to_the_log)
{
	const char *const names[] = { "a\nb", "\x1b[31m", "tab\t", "\x7f" };
	struct rdmatensor_msg msg;
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		liar_init(&liar, 1);
		EQ(liar_connect(&liar, test_ip(), scene.p.a.port), 0);
		msg = scene_right(RDMATENSOR_WIRE_HELLO, 0);
		msg.text = names[i];
		msg.text_len = strlen(names[i]);
		liar_say(&liar, &msg);
		while (liar_hear(&liar, &msg, 5000) != LIAR_END)
			;
		liar_close(&liar);
		scene.breaches++;
		EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), scene.breaches);
	}
	scene_duty();
}

/* What is no write with immediate, and what reaches where nothing was opened */
TEST(other_operations)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int error;
	} rows[] = {
		{ IBV_WR_SEND, -EPROTO },
		{ IBV_WR_SEND_WITH_IMM, -EPROTO },
		/* Of a key that is nobody's */
		{ IBV_WR_SEND_WITH_INV, -ECONNRESET },
		/* Nothing can be read, not even the message buffer */
		{ IBV_WR_RDMA_READ, -ECONNRESET },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, -ECONNRESET },
	};
	size_t i;

	scene_open(NULL);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool named = rows[i].opcode == IBV_WR_SEND_WITH_INV;

		scene_meet(&liar, 1);
		liar_post(&liar, 0, rows[i].opcode, LIAR_FROM,
			  rows[i].opcode >= IBV_WR_RDMA_READ && !named ? 8 : 0,
			  le64toh(liar.peer.msgbuf_addr),
			  named ? 0xdead : le32toh(liar.peer.msgbuf_rkey), 0);
		scene_ends(&liar, rows[i].error);
	}
}

/* A write where it may not ends the channel, though no completion tells of it */
TEST(writes_beyond_what_was_opened)
{
	uint64_t at;
	uint32_t bytes;
	int what;

	scene_open(NULL);
	for (what = 0; what < 4; what++) {
		scene_meet(&liar, 1);
		at = le64toh(liar.peer.msgbuf_addr);
		bytes = le16toh(liar.peer.msg_slots) * le32toh(liar.peer.msg_slot_bytes);
		CHECK(liar_post(&liar, 0, IBV_WR_RDMA_WRITE, LIAR_FROM, 64,
				what == 0 ? at - 64 : what == 1 ? at + bytes :
				what == 2 ? at + bytes - 32 : at,
				le32toh(liar.peer.msgbuf_rkey) + (what == 3), 0));
		scene_ends(&liar, -ECONNRESET);
	}
}

/* The keys of another context, known or guessed, open nothing */
TEST(keys_of_other_contexts)
{
	struct side *s = &scene.stranger;
	struct rdmatensor_msg msg, meta;
	struct rdmatensor_op op;
	struct liar other;
	uint32_t rkey, key;
	uint64_t iova, at;
	int i;

	scene_open(NULL);
	/* What the stranger's pool goes by, from a fetch of its own */
	liar_init(&other, 1);
	EQ(liar_connect(&other, test_ip(), s->port), 0);
	liar_hello(&other);
	EQ(liar_hear(&other, &msg, 5000), RDMATENSOR_WIRE_HELLO);
	struct rdmatensor_cqe cqe;

	EQ(side_next(s, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	at = side_alloc(s, TENSOR);
	fill(side_at(s, 0), STRANGER, 7);
	rdmatensor_prep_fetch(&op, cqe.channel, "x", 0, s->pool.id, at, TENSOR, 0, 1);
	EQ(side_do(s, &op), 0);
	scene_asked(&other, &msg);
	meta = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
	liar_say(&other, &meta);
	rkey = scene_asked(&other, &msg);
	iova = msg.remote_addr;
	CHECK(rkey && iova);

	/* The key works for whom it was given to */
	memset(other.memory + LIAR_FROM, 0x5a, TENSOR);
	EQ(liar_post(&other, 0, IBV_WR_RDMA_WRITE, LIAR_FROM, TENSOR, iova, rkey, 0), 0);
	EQ(side_at(s, at)[17], 0x5a);
	fill(side_at(s, 0), STRANGER, 7);

	for (i = 0; i < amount("HOSTILE_KEYS", 64); i++) {
		/* The very one; its neighbours by index; its others by key byte */
		key = i == 0 ? rkey : i < 33 ? rkey + ((uint32_t)(i - 16) << 8) :
		      (rkey & ~0xffu) | ((rkey + i) & 0xff);
		scene_meet(&liar, 1);
		/* A neighbour may be the victim's own pool, which is what design 7.4 allows */
		if (!liar_post(&liar, 0, IBV_WR_RDMA_WRITE, LIAR_FROM, 64, iova, key, 0)) {
			CHECK(i);
			CHECK(filled(side_at(s, 0), STRANGER, 7));
			fill(side_at(&scene.p.a, scene.guard), GUARD, 8);
			liar_close(&liar);
			EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL),
			   -ECONNRESET);
			continue;
		}
		scene_ends(&liar, -ECONNRESET);
		test_alive();
	}
	liar_close(&other);
	EQ(side_next(s, RDMATENSOR_CQE_FETCH, 1, NULL), -ECONNRESET);
}

/* What the kernel knows of the only memory region of @bytes: nobody tells a peer */
static uint32_t key_of(uint64_t bytes)
{
	char line[512], length[32], *at;
	uint32_t key = 0;
	FILE *regions;
	int found = 0;

	snprintf(length, sizeof(length), "mrlen %llu ", (unsigned long long)bytes);
	regions = popen("rdma -dd resource show mr", "r");
	CHECK(regions);
	while (fgets(line, sizeof(line), regions)) {
		at = strstr(line, " rkey 0x");
		if (!at || !strstr(line, length))
			continue;
		key = strtoul(at + strlen(" rkey "), NULL, 16);
		found++;
	}
	EQ(pclose(regions), 0);
	EQ(found, 1);
	return key;
}

/* Address and key are right, as a pool that peers may write shows: others cannot be written */
TEST(pools_that_peers_must_not_write)
{
	static const enum rdmatensor_pool_peers rows[] = {
		RDMATENSOR_POOL_PEERS_WRITE, RDMATENSOR_POOL_PEERS_NONE,
		RDMATENSOR_POOL_PEERS_READ,
	};
	const uint64_t bytes = 5 * 4096;
	struct rdmatensor *rt;
	struct rdmatensor_pool closed, open;
	struct rdmatensor_query query;
	struct rdmatensor_msg msg;
	struct rdmatensor_op op;
	uint64_t step, at;
	size_t i;
	int ret;

	scene_open(NULL);
	rt = scene.p.a.rt;
	query = (struct rdmatensor_query){ 0 };
	EQ(rdmatensor_query(rt, &query), 0);
	step = query.max_segment_bytes;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		scene_meet(&liar, 1);
		/* Neighbours by address: what the peer is told of one says where the other is */
		EQ(rdmatensor_pool_create_peers(rt, bytes, rows[i], &closed), 0);
		EQ(rdmatensor_pool_create(rt, 4096, &open), 0);
		fill(closed.base, bytes, 9);
		EQ(rdmatensor_pool_alloc(rt, &open, 4096, &at), 0);
		rdmatensor_prep_fetch(&op, scene.channel, "x", 0, open.id, at, 4096, 0, 1);
		EQ(side_do(&scene.p.a, &op), 0);
		CHECK(describe(&msg));
		memset(liar.memory + LIAR_FROM, 0x5a, 64);
		ret = liar_post(&liar, 0, IBV_WR_RDMA_WRITE, LIAR_FROM, 64,
				msg.remote_addr - 2 * step, key_of(bytes), 0);
		if (rows[i] == RDMATENSOR_POOL_PEERS_WRITE) {
			EQ(ret, 0);
			EQ(((unsigned char *)closed.base)[17], 0x5a);
			liar_close(&liar);
			EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL),
			   -ECONNRESET);
		} else {
			CHECK(ret);
			CHECK(filled(closed.base, bytes, 9));
			scene_ends(&liar, -ECONNRESET);
		}
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), -ECONNRESET);
		EQ(rdmatensor_pool_destroy(rt, &closed), 0);
		EQ(rdmatensor_pool_destroy(rt, &open), 0);
	}
}

/*
 * A peer that was given a key can take it away from everybody, which is what README
 * says of peers of one context. Nothing else is lost by it: another pool serves.
 */
TEST(a_key_that_is_taken_away)
{
	struct pair *p = &scene.p;
	struct rdmatensor_pool other;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_msg msg;
	uint32_t rkey;

	scene_open(NULL);
	scene_meet(&liar, 1);
	scene_ask(1, TENSOR);
	rkey = describe(&msg);
	liar_post(&liar, 0, IBV_WR_SEND_WITH_INV, LIAR_FROM, 0, 0, rkey, 0);
	EQ(side_next(&p->a, RDMATENSOR_CQE_FETCH, 1, NULL), -EPROTO);
	EQ(side_next(&p->a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -EPROTO);
	liar_close(&liar);

	/* What goes there now fails, with an errno, and takes its channel along */
	EQ(fetch(&p->a, "h", 0, TENSOR, NULL, &cqe), -ECONNRESET);
	EQ(side_next(&p->a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(side_next(&p->b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(rdmatensor_pool_create(p->a.rt, 1 << 20, &other), 0);
	side_connect(&p->b, &p->a);
	EQ(side_next(&p->a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	EQ(rdmatensor_fetch(p->a.rt, cqe.channel, "h", 0, &other, RDMATENSOR_ALLOC, 0,
			    rdmatensor_deadline_ms(10000), &cqe), 0);
	CHECK(filled((unsigned char *)other.base + cqe.offset, TENSOR, 2));
}

TEST(content_lanes)
{
	uint64_t stray;
	struct rdmatensor_msg msg;

	scene_open(NULL);
	/* A control immediate on a content lane */
	scene_meet(&liar, 2);
	liar_post(&liar, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0, 0, RDMATENSOR_IMM_MESSAGE);
	scene_ends(&liar, -EPROTO);
	scene_meet(&liar, 2);
	liar_post(&liar, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0, 0, RDMATENSOR_IMM_ACK);
	scene_ends(&liar, -EPROTO);
	/* What has ended on lane 0 may still come on another */
	scene_meet(&liar, 2);
	stray = side_stat(&scene.p.a, RDMATENSOR_STAT_RX_STRAY);
	liar_content(&liar, 1, 77, 0, 0, 0);
	scene_lives(&liar);
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_RX_STRAY), stray + 1);
	/* One part was asked for, and a second comes */
	scene_meet(&liar, 2);
	scene_ask(1, TENSOR);
	describe(&msg);
	liar_content(&liar, 1, msg.request_index, 0, 0, 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 1, NULL), -EPROTO);
	scene_ends(&liar, -EPROTO);
}
