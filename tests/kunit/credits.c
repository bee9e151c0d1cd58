// SPDX-License-Identifier: GPL-2.0
/*
 * Credits: each function at its edges, and both sides of a direction against each
 * other, because the protocol rests on their keeping one count.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "transport/msgbuf.h"

static void pair(struct rdmatensor_credits *a, u32 a_slots, u32 a_batch,
		 struct rdmatensor_credits *b, u32 b_slots, u32 b_batch)
{
	rdmatensor_credits_init(a, a_slots, a_batch);
	rdmatensor_credits_init(b, b_slots, b_batch);
	rdmatensor_credits_peer(a, a_slots, b_slots, b_batch);
	rdmatensor_credits_peer(b, b_slots, a_slots, a_batch);
}

static void credits_window(struct kunit *test)
{
	struct rdmatensor_credits a, b;
	int i;

	pair(&a, 4, 2, &b, 8, 8);
	KUNIT_EXPECT_EQ(test, a.window, 4U);
	KUNIT_EXPECT_EQ(test, b.window, 4U);
	/* A batch beyond the window would never be due */
	KUNIT_EXPECT_EQ(test, b.ack_batch, 4U);
	KUNIT_EXPECT_EQ(test, a.peer_ack_batch, 4U);
	KUNIT_EXPECT_FALSE(test, a.eager);

	for (i = 1; i <= 4; i++) {
		KUNIT_EXPECT_TRUE(test, rdmatensor_credits_can_send(&a));
		KUNIT_EXPECT_EQ(test, rdmatensor_credits_sent(&a), (u64)i);
	}
	KUNIT_EXPECT_FALSE(test, rdmatensor_credits_can_send(&a));
	/* Consumed, but the write has not completed here: the slot is not free */
	KUNIT_EXPECT_EQ(test, rdmatensor_credits_told_count(&a, 1), 0);
	KUNIT_EXPECT_FALSE(test, rdmatensor_credits_can_send(&a));
	rdmatensor_credits_sent_done(&a);
	KUNIT_EXPECT_TRUE(test, rdmatensor_credits_can_send(&a));
	rdmatensor_credits_sent(&a);
	/* Completed, but not consumed: neither */
	rdmatensor_credits_sent_done(&a);
	KUNIT_EXPECT_FALSE(test, rdmatensor_credits_can_send(&a));
}

static void credits_one_slot(struct kunit *test)
{
	struct rdmatensor_credits a, b;

	pair(&a, 1, 1, &b, 64, 32);
	KUNIT_EXPECT_TRUE(test, a.eager);
	KUNIT_EXPECT_TRUE(test, b.eager);
	KUNIT_EXPECT_EQ(test, b.ack_batch, 1U);
	KUNIT_EXPECT_FALSE(test, rdmatensor_credits_ack_due(&b));
	KUNIT_EXPECT_EQ(test, rdmatensor_credits_consume(&b), 1ULL);
	KUNIT_EXPECT_TRUE(test, rdmatensor_credits_ack_due(&b));
	rdmatensor_credits_tell_ack(&b);
	KUNIT_EXPECT_FALSE(test, rdmatensor_credits_ack_due(&b));
}

static void credits_lies(struct kunit *test)
{
	struct rdmatensor_credits a, b;

	pair(&a, 8, 4, &b, 8, 4);
	rdmatensor_credits_sent(&a);
	rdmatensor_credits_sent(&a);
	KUNIT_EXPECT_EQ(test, rdmatensor_credits_told_count(&a, 3), -EPROTO);
	KUNIT_EXPECT_EQ(test, rdmatensor_credits_told_ack(&a), -EPROTO);
	KUNIT_EXPECT_EQ(test, rdmatensor_credits_told_count(&a, 2), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_credits_told_count(&a, 1), -EPROTO);
	KUNIT_EXPECT_EQ(test, a.peer_told, 2ULL);
	/* Content tells up to its request, and never takes back */
	rdmatensor_credits_told_upto(&a, 1);
	KUNIT_EXPECT_EQ(test, a.peer_told, 2ULL);
}

/*
 * The number of a request that has waited while very many others came and went: it tells
 * nothing new, on either side, however the lower bits of the counts look
 */
static void credits_old_request(struct kunit *test)
{
	static const u64 passed[] = {
		1, S32_MAX, (u64)S32_MAX + 2, U32_MAX - 1ULL, U32_MAX, 1ULL << 32,
		(1ULL << 32) + 1, (1ULL << 32) + 3, (3ULL << 31) + 2, 1ULL << 40,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(passed); i++) {
		u64 seq = 7, now = seq + passed[i];
		struct rdmatensor_credits a, b;

		pair(&a, 8, 8, &b, 8, 8);
		a.sent = now + 2;
		a.sent_done = now;
		a.peer_told = now;
		b.consumed = now + 2;
		b.told = now;
		rdmatensor_credits_tell_upto(&b, seq);
		rdmatensor_credits_told_upto(&a, seq);
		KUNIT_EXPECT_EQ(test, b.told, now);
		KUNIT_EXPECT_EQ(test, a.peer_told, now);
		/* And the count goes on from there */
		KUNIT_EXPECT_EQ(test, 0,
				rdmatensor_credits_told_count(&a,
							      rdmatensor_credits_tell_count(&b)));
		KUNIT_EXPECT_EQ(test, a.peer_told, now + 2);
	}
}

/* One direction, a to b, with everything that can tell, in the order of delivery */
static void credits_both_sides_agree(struct kunit *test)
{
	static const u32 sizes[][4] = {
		{ 1, 1, 1, 1 }, { 1, 1, 64, 32 }, { 2, 2, 8, 8 }, { 64, 32, 64, 32 },
		{ 128, 1, 16, 16 },
	};
	struct rnd_state rnd;
	unsigned int i, n;

	prandom_seed_state(&rnd, 20241121);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct rdmatensor_credits a, b;
		u32 unacted = 0, stuck = 0;
		u64 arrived;

		pair(&a, sizes[i][0], sizes[i][1], &b, sizes[i][2], sizes[i][3]);
		/* Near the wrap of what the wire carries */
		arrived = U32_MAX - 1000ULL;
		a.sent = arrived;
		a.sent_done = arrived;
		a.peer_told = arrived;
		b.consumed = arrived;
		b.told = arrived;

		for (n = 0; n < 20000; n++) {
			switch (prandom_u32_state(&rnd) % 5) {
			case 0:
				if (rdmatensor_credits_can_send(&a))
					rdmatensor_credits_sent(&a);
				break;
			case 1:
				if (a.sent_done != a.sent)
					rdmatensor_credits_sent_done(&a);
				break;
			case 2:
				if (arrived == a.sent)
					break;
				arrived++;
				KUNIT_ASSERT_EQ(test, rdmatensor_credits_consume(&b), arrived);
				unacted++;
				break;
			case 3:
				/* A message of b's, or content for the oldest request */
				if (b.eager || !unacted)
					break;
				if (prandom_u32_state(&rnd) & 1) {
					u32 told = rdmatensor_credits_tell_count(&b);

					KUNIT_ASSERT_EQ(test, 0,
							rdmatensor_credits_told_count(&a, told));
				} else {
					u64 seq = b.consumed - unacted + 1;

					rdmatensor_credits_tell_upto(&b, seq);
					rdmatensor_credits_told_upto(&a, seq);
				}
				unacted--;
				break;
			default:
				while (rdmatensor_credits_ack_due(&b)) {
					rdmatensor_credits_tell_ack(&b);
					KUNIT_ASSERT_EQ(test, 0, rdmatensor_credits_told_ack(&a));
				}
				break;
			}
			KUNIT_ASSERT_EQ(test, a.peer_told, b.told);
			KUNIT_ASSERT_LE(test, a.sent - b.consumed, a.window);
		}

		/* Acks alone never leave the sender stuck */
		for (n = 0; n < 1000 && stuck < 8; n++) {
			if (rdmatensor_credits_can_send(&a)) {
				rdmatensor_credits_sent(&a);
				stuck = 0;
			}
			while (a.sent_done != a.sent)
				rdmatensor_credits_sent_done(&a);
			while (b.consumed != a.sent)
				rdmatensor_credits_consume(&b);
			while (rdmatensor_credits_ack_due(&b)) {
				rdmatensor_credits_tell_ack(&b);
				KUNIT_ASSERT_EQ(test, 0, rdmatensor_credits_told_ack(&a));
			}
			stuck++;
		}
		KUNIT_EXPECT_LT(test, stuck, 8U);
	}
}

static struct kunit_case credits_cases[] = {
	KUNIT_CASE(credits_window),
	KUNIT_CASE(credits_one_slot),
	KUNIT_CASE(credits_lies),
	KUNIT_CASE(credits_old_request),
	KUNIT_CASE(credits_both_sides_agree),
	{}
};

static struct kunit_suite credits_suite = {
	.name = "rdmatensor_credits",
	.test_cases = credits_cases,
};

kunit_test_suite(credits_suite);
