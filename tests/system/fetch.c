// SPDX-License-Identifier: GPL-2.0
/* Contents: first and steady fetches, changes, sizes, lanes, slots, validation */
#include "harness.h"

static struct pair p;

TEST(first_fetch_learns_then_is_direct)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;
	int step;

	pair_open(&p, 1 << 20, NULL);
	for (step = 0; step < 3; step++) {
		publish(&p.a, "w", step, 5000, step, 1, step);
		EQ(fetch(&p.b, "w", step, 8192, &at, &cqe), 0);
		EQ(cqe.tensor_bytes, 5000);
		EQ(cqe.data_type, RDMATENSOR_DT_UINT8);
		EQ(cqe.ndims, 1);
		EQ(cqe.dims[0], 5000);
		CHECK(cqe.flags & RDMATENSOR_CQE_META);
		CHECK(filled(side_at(&p.b, at), 5000, step));
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, step, NULL), 0);
	}
	EQ(side_stat(&p.a, RDMATENSOR_STAT_TX_META_DATA_RESPONSES), 1);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_RE_REQUESTS), 1);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_REQUESTS), 3);
	EQ(side_stat(&p.a, RDMATENSOR_STAT_TX_WRITES), 3);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHED), 3);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_FETCHED_BYTES), 15000);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_COPIED_BYTES), 0);
}

TEST(request_before_publish)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	pair_open(&p, 1 << 20, NULL);
	at = side_alloc(&p.b, 4096);
	rdmatensor_prep_fetch(&op, p.b.channel, "late", 7, p.b.pool.id, at, 4096, 0, 1);
	EQ(side_do(&p.b, &op), 0);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 100);
	publish(&p.a, "late", 8, 4096, 1, 1, 8);
	side_none(&p.b, RDMATENSOR_CQE_FETCH, 1, 100);
	publish(&p.a, "late", 7, 4096, 2, 1, 7);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
	CHECK(filled(side_at(&p.b, at), 4096, 2));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 7, NULL), 0);
}

TEST(changed_meta_data)
{
	uint64_t flat[1] = { 4096 }, square[2] = { 64, 64 }, words[1] = { 1024 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t from, at;
	int meta = 0;

	pair_open(&p, 1 << 20, NULL);
	from = side_alloc(&p.a, 8192);
	fill(side_at(&p.a, from), 8192, 3);

#define NEXT(_step, _bytes, _type, _ndims, _dims) \
	do { \
		rdmatensor_prep_publish(&op, "t", _step, p.a.pool.id, from, _bytes, _type, \
					_ndims, _dims, 1, _step); \
		EQ(side_do(&p.a, &op), 0); \
		EQ(fetch(&p.b, "t", _step, 8192, &at, &cqe), 0); \
		EQ(cqe.tensor_bytes, _bytes); \
		EQ(cqe.data_type, _type); \
		EQ(cqe.ndims, _ndims); \
		CHECK(filled(side_at(&p.b, at), _bytes, 3)); \
		EQ(side_stat(&p.a, RDMATENSOR_STAT_TX_META_DATA_RESPONSES), meta); \
	} while (0)

	meta++;
	NEXT(0, 4096, RDMATENSOR_DT_UINT8, 1, flat);
	NEXT(1, 4096, RDMATENSOR_DT_UINT8, 1, flat);
	meta++;
	NEXT(2, 4096, RDMATENSOR_DT_UINT8, 2, square);
	meta++;
	NEXT(3, 4096, RDMATENSOR_DT_FLOAT, 1, words);
	flat[0] = 100;
	meta++;
	NEXT(4, 100, RDMATENSOR_DT_UINT8, 1, flat);
	flat[0] = 8192;
	meta++;
	NEXT(5, 8192, RDMATENSOR_DT_UINT8, 1, flat);
	NEXT(6, 8192, RDMATENSOR_DT_UINT8, 1, flat);

	/* Dead, and alive again */
	rdmatensor_prep_publish_dead(&op, "t", 7, RDMATENSOR_DT_UINT8, 1, flat, 1, 7);
	EQ(side_do(&p.a, &op), 0);
	EQ(fetch(&p.b, "t", 7, 8192, NULL, &cqe), 0);
	CHECK(cqe.flags & RDMATENSOR_CQE_DEAD);
	EQ(cqe.tensor_bytes, 0);
	meta += 2;
	NEXT(8, 8192, RDMATENSOR_DT_UINT8, 1, flat);
}

TEST(opaque_tensors_of_any_length)
{
	static const uint64_t lengths[] = { 0, 1, 63, 64, 65, 4095, 4097, 3000001 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t dim = 2;
	unsigned int i;

	pair_open(&p, 16 << 20, NULL);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		uint64_t from = side_alloc(&p.a, lengths[i]), at;

		fill(side_at(&p.a, from), lengths[i], i);
		rdmatensor_prep_publish(&op, "opaque", i, p.a.pool.id, from, lengths[i],
					RDMATENSOR_DT_STRING, 1, &dim, 1, i);
		EQ(side_do(&p.a, &op), 0);
		EQ(fetch(&p.b, "opaque", i, 3000001, &at, &cqe), 0);
		EQ(cqe.tensor_bytes, lengths[i]);
		EQ(cqe.data_type, RDMATENSOR_DT_STRING);
		CHECK(filled(side_at(&p.b, at), lengths[i], i));
		EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
	}
}

/* From nothing to more than several segments, direct and allocated, over 1..8 lanes */
static uint32_t lanes;

static void tune_lanes(struct rdmatensor_start *start)
{
	start->lanes = lanes;
	start->stripe_bytes = 10000;
}

static void sizes_over(uint32_t nr_lanes)
{
	static const uint64_t sizes[] = { 0, 1, 64, 4096, 10001, 40000, (2 << 20) - 1, 2 << 20,
					  (2 << 20) + 1, (7 << 20) + 13 };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	unsigned int i, again;
	uint64_t at, skew;

	lanes = nr_lanes;
	pair_open(&p, 24 << 20, tune_lanes);
	/* So that source and destination cross segments at different places */
	skew = side_alloc(&p.a, 1000);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t from = publish(&p.a, "t", i, sizes[i], i, 3, i);

		for (again = 0; again < 2; again++) {
			EQ(fetch(&p.b, "t", i, sizes[i], &at, &cqe), 0);
			EQ(cqe.tensor_bytes, sizes[i]);
			CHECK(filled(side_at(&p.b, at), sizes[i], i));
			EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
		}
		rdmatensor_prep_fetch_alloc(&op, p.b.channel, "t", i, p.b.pool.id, 0, 0, 99);
		EQ(side_do(&p.b, &op), 0);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 99, &cqe), 0);
		EQ(cqe.tensor_bytes, sizes[i]);
		if (sizes[i]) {
			EQ(cqe.pool_id, p.b.pool.id);
			CHECK(filled(side_at(&p.b, cqe.offset), sizes[i], i));
			EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, cqe.offset), 0);
		} else {
			EQ(cqe.pool_id, 0);
		}
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, i, NULL), 0);
		EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, from), 0);
	}
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, skew), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &p.b.pool), 0);
}

TEST(sizes_over_one_lane) { sizes_over(1); }
TEST(sizes_over_two_lanes) { sizes_over(2); }
TEST(sizes_over_eight_lanes) { sizes_over(8); }

TEST(many_in_flight_beyond_the_limit)
{
	enum { N = 1000 };
	struct rdmatensor_op op;
	struct rdmatensor_cqe cqe;
	uint64_t at;
	char name[32];
	int i;

	pair_open(&p, 4 << 20, NULL);
	at = side_alloc(&p.b, N * 1024);
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "t%d", i % 10);
		rdmatensor_prep_fetch(&op, p.b.channel, name, i, p.b.pool.id, at + i * 1024,
				      1024, 0, i);
		EQ(side_do(&p.b, &op), 0);
	}
	CHECK(side_stat(&p.b, RDMATENSOR_STAT_STALL_REQUESTS) > 0);
	for (i = N - 1; i >= 0; i--) {
		snprintf(name, sizeof(name), "t%d", i % 10);
		publish(&p.a, name, i, 1000, i, 1, i);
	}
	for (i = 0; i < N; i++) {
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, i, &cqe), 0);
		CHECK(filled(side_at(&p.b, at + i * 1024), 1000, i));
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, i, NULL), 0);
	}
}

static uint32_t slots, slot_bytes, batch;

static void tune_slots(struct rdmatensor_start *start)
{
	start->msg_slots = slots;
	start->msg_slot_bytes = slot_bytes;
	start->ack_batch = batch;
}

static void slots_each(uint32_t a_slots, uint32_t a_batch, uint32_t b_slots, uint32_t b_batch)
{
	struct rdmatensor_op op;
	struct rdmatensor_cqe cqe;
	uint64_t at;
	int i;

	slot_bytes = 0;
	slots = a_slots;
	batch = a_batch;
	side_open(&p.a, "a", 1 << 20, 1, tune_slots);
	slots = b_slots;
	batch = b_batch;
	side_open(&p.b, "b", 1 << 20, 0, tune_slots);
	side_connect(&p.b, &p.a);

	/* Requests that all wait, then all go: nothing but acks can free slots */
	at = side_alloc(&p.b, 200 * 128);
	for (i = 0; i < 200; i++) {
		rdmatensor_prep_fetch(&op, p.b.channel, "s", i, p.b.pool.id, at + i * 128, 128,
				      0, i);
		EQ(side_do(&p.b, &op), 0);
	}
	for (i = 0; i < 200; i++)
		publish(&p.a, "s", i, 100, i, 1, i);
	for (i = 0; i < 200; i++) {
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, i, &cqe), 0);
		CHECK(filled(side_at(&p.b, at + i * 128), 100, i));
	}
}

TEST(slots_1_1) { slots_each(1, 1, 1, 1); }
TEST(slots_1_64) { slots_each(1, 1, 64, 64); }
TEST(slots_64_1) { slots_each(64, 64, 1, 1); }
TEST(slots_2_8_batch_full) { slots_each(2, 2, 8, 8); }
TEST(slots_128_batch_1) { slots_each(128, 1, 128, 1); }

static uint64_t writes(struct pair *pair)
{
	return side_stat(&pair->a, RDMATENSOR_STAT_TX_MESSAGES) +
	       side_stat(&pair->a, RDMATENSOR_STAT_TX_ACKS) +
	       side_stat(&pair->a, RDMATENSOR_STAT_TX_WRITES) +
	       side_stat(&pair->b, RDMATENSOR_STAT_TX_MESSAGES) +
	       side_stat(&pair->b, RDMATENSOR_STAT_TX_ACKS);
}

static void steady(int n)
{
	struct rdmatensor_cqe cqe;
	uint64_t at = side_alloc(&p.b, 4096);
	int i;

	for (i = 0; i < n; i++)
		EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "w", 0, &p.b.pool, at, 4096,
				    rdmatensor_deadline_ms(10000), &cqe), 0);
}

TEST(two_writes_a_steady_fetch)
{
	uint64_t before;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "w", 0, 4096, 1, 0, 0);
	steady(4);
	before = writes(&p);
	steady(500);
	CHECK(writes(&p) - before <= 1025);
}

TEST(three_writes_with_one_slot)
{
	uint64_t before;

	slots = 1;
	batch = 0;
	slot_bytes = 0;
	pair_open(&p, 1 << 20, tune_slots);
	publish(&p.a, "w", 0, 4096, 1, 0, 0);
	steady(4);
	before = writes(&p);
	steady(500);
	EQ(writes(&p) - before, 1500);
}

/* CRC32C, bit by bit: not the kernel's */
static uint32_t crc32c(const unsigned char *at, uint64_t bytes)
{
	uint32_t crc = ~0u;
	int bit;

	while (bytes--) {
		crc ^= *at++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

TEST(validation_switched_at_run_time)
{
	static const int who[] = { 0, 1, 2, 3, 0 };
	struct rdmatensor_cqe cqe;
	uint64_t at, n = 0;
	unsigned int i;

	pair_open(&p, 8 << 20, NULL);
	for (i = 0; i < sizeof(who) / sizeof(*who); i++) {
		EQ(rdmatensor_configure(p.a.rt, RDMATENSOR_CONFIGURE_VALIDATE,
					who[i] & 1 ? RDMATENSOR_CONFIGURE_VALIDATE : 0), 0);
		EQ(rdmatensor_configure(p.b.rt, RDMATENSOR_CONFIGURE_VALIDATE,
					who[i] & 2 ? RDMATENSOR_CONFIGURE_VALIDATE : 0), 0);
		publish(&p.a, "v", i, 100001, i, 1, i);
		EQ(fetch(&p.b, "v", i, 100001, &at, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), 100001, i));
		EQ(!!(cqe.flags & RDMATENSOR_CQE_VALIDATED), !!who[i]);
		if (who[i])
			EQ(cqe.checksum, crc32c(side_at(&p.b, at), 100001));
		n += !!who[i];
		EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), n);
	}
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS), 0);
}

TEST(validation_is_of_what_a_peer_sent)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	pair_open(&p, 8 << 20, NULL);
	EQ(rdmatensor_configure(p.b.rt, RDMATENSOR_CONFIGURE_VALIDATE,
				RDMATENSOR_CONFIGURE_VALIDATE), 0);
	publish(&p.b, "own", 0, 5000, 1, 1, 1);
	at = side_alloc(&p.b, 5000);
	EQ(rdmatensor_fetch(p.b.rt, RDMATENSOR_CHANNEL_SELF, "own", 0, &p.b.pool, at, 5000,
			    rdmatensor_deadline_ms(20000), &cqe), 0);
	CHECK(filled(side_at(&p.b, at), 5000, 1));
	EQ(cqe.flags & RDMATENSOR_CQE_VALIDATED, 0);
	EQ(side_stat(&p.b, RDMATENSOR_STAT_VALIDATED), 0);
}

TEST(validation_finds_a_changed_content)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t from, at;
	int i, found = 0;

	/* A publisher that does not leave its buffer alone between checksum and write */
	pair_open(&p, 64 << 20, NULL);
	EQ(rdmatensor_configure(p.b.rt, RDMATENSOR_CONFIGURE_VALIDATE,
				RDMATENSOR_CONFIGURE_VALIDATE), 0);
	from = publish(&p.a, "v", 0, 8 << 20, 1, 0, 0);
	at = side_alloc(&p.b, 8 << 20);
	for (i = 0; i < 20 && !found; i++) {
		rdmatensor_prep_fetch(&op, p.b.channel, "v", 0, p.b.pool.id, at, 8 << 20, 0, i);
		EQ(side_do(&p.b, &op), 0);
		while (!rdmatensor_ready(p.b.rt)) {
			side_at(&p.a, from)[8191]++;
			side_at(&p.a, from)[(8 << 20) - 1]++;
		}
		found = side_next(&p.b, RDMATENSOR_CQE_FETCH, i, &cqe) == -EBADMSG;
	}
	CHECK(found);
	CHECK(cqe.flags & RDMATENSOR_CQE_TEXT);
	CHECK(side_stat(&p.b, RDMATENSOR_STAT_VALIDATE_ERRORS) > 0);
	/* That fetch's error, and no more */
	EQ(fetch(&p.b, "v", 0, 8 << 20, NULL, &cqe), 0);
}

TEST(both_sides_fetch_over_one_channel)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;
	int i;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < 50; i++) {
		publish(&p.a, "from a", i, 1000, i, 1, i);
		publish(&p.b, "from b", i, 2000, i, 1, i);
		EQ(fetch(&p.a, "from b", i, 2000, &at, &cqe), 0);
		CHECK(filled(side_at(&p.a, at), 2000, i));
		EQ(fetch(&p.b, "from a", i, 2000, &at, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), 1000, i));
	}
}

TEST(from_oneself)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t at;

	side_open(&p.a, "a", 16 << 20, 0, NULL);
	publish(&p.a, "x", 0, 5000001, 4, 2, 10);
	EQ(fetch(&p.a, "x", 0, 5000001, &at, &cqe), 0);
	EQ(cqe.channel, RDMATENSOR_CHANNEL_SELF);
	CHECK(filled(side_at(&p.a, at), 5000001, 4));
	EQ(fetch(&p.a, "x", 0, 5000000, NULL, &cqe), -EMSGSIZE);
	EQ(cqe.tensor_bytes, 5000001);
	rdmatensor_prep_fetch_alloc(&op, 0, "x", 0, p.a.pool.id, 0, 0, 1);
	EQ(side_do(&p.a, &op), 0);
	/* Two regions of 5 MB and this pool: no room for a third */
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 1, &cqe), -ENOSPC);
	EQ(rdmatensor_pool_free(p.a.rt, &p.a.pool, at), 0);
	rdmatensor_prep_fetch_alloc(&op, 0, "x", 0, p.a.pool.id, 0, 0, 2);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), 0);
	CHECK(filled(side_at(&p.a, cqe.offset), 5000001, 4));
	EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 10, NULL), 0);

	/* Request first; deadline; a failed publisher */
	at = side_alloc(&p.a, 64);
	rdmatensor_prep_fetch(&op, 0, "y", 0, p.a.pool.id, at, 64, 0, 3);
	EQ(side_do(&p.a, &op), 0);
	publish(&p.a, "y", 0, 64, 5, 1, 11);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 3, NULL), 0);
	CHECK(filled(side_at(&p.a, at), 64, 5));
	rdmatensor_prep_fetch(&op, 0, "z", 0, p.a.pool.id, at, 64, rdmatensor_deadline_ms(50),
			      4);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 4, NULL), -ETIMEDOUT);
	rdmatensor_prep_publish_failed(&op, "z", 0, -EOVERFLOW, "no such thing", 1, 12);
	EQ(side_do(&p.a, &op), 0);
	EQ(fetch(&p.a, "z", 0, 64, NULL, &cqe), -EOVERFLOW);
	CHECK(cqe.text_len == 13 && !memcmp(cqe.text, "no such thing", 13));
}
