// SPDX-License-Identifier: GPL-2.0
/*
 * Destinations that are told once: what a receiver says and a sender understands, in the words
 * of script.h, and what is remembered.
 */
#include <linux/slab.h>
#include "core/keep.h"
#include "script.h"

#define NO_FEATURE "down:-71(kept destination without the feature)"

/* The first fetch of x, into a region; FETCH_AGAIN() is into the same */
#define TOLD \
	FETCH_KEEP(1, "x", 100, "req#0"), META(0, 100, "re#0+dest+keep:0"), \
	CONTENT(0, 0, 100, "end1:0")
#define REFERRED TOLD, FETCH_AGAIN(2, "x", 100, "req#1+keep:0")
/* The peer says what it has said before: it does not know the number */
#define MISSED(_id, _index, _keep, _next) \
	FETCH_AGAIN(_id, "x", 100, "req#" #_index "+keep:" _keep), \
	META(_index, 100, "re#" #_index "+dest" _next), \
	CONTENT(0, _index, 100, "end" #_id ":0")
#define KEEPS .features = RDMATENSOR_WIRE_FEATURE_KEEP

static const struct script receivers[] = {
	{ "told once", KEEPS, .steps = {
		REFERRED, CONTENT(0, 1, 100, "end2:0"),
		FETCH_AGAIN(3, "x", 100, "req#2+keep:0"), CONTENT(0, 2, 100, "end3:0"),
	} },
	{ "two at a time, of two names", KEEPS, .steps = {
		TOLD, FETCH_KEEP(2, "y", 100, "req#1"), META(1, 100, "re#1+dest+keep:1"),
		CONTENT(0, 1, 100, "end2:0"),
		FETCH_AGAIN(3, "y", 100, "req#2+keep:1"), CONTENT(0, 2, 100, "end3:0"),
		/* y's place is not what was told of x */
		FETCH_AGAIN(4, "x", 100, "req#3+dest+keep:1024"), CONTENT(0, 3, 100, "end4:0"),
		FETCH_AGAIN(5, "x", 100, "req#4+keep:1024"), CONTENT(0, 4, 100, "end5:0"),
	} },
	{ "elsewhere", KEEPS, .steps = {
		TOLD, FETCH_KEEP(2, "x", 100, "req#1+dest+keep:1024"),
		CONTENT(0, 1, 100, "end2:0"),
		FETCH_AGAIN(3, "x", 100, "req#2+keep:1024"), CONTENT(0, 2, 100, "end3:0"),
	} },
	{ "elsewhere, before the first has come", KEEPS, .steps = {
		REFERRED, FETCH_KEEP(3, "x", 100, "req#2+dest+keep:1024"),
		FETCH_AGAIN(4, "x", 0, "req#3"), CONTENT(0, 2, 100, "end3:0"),
		CONTENT(0, 1, 100, "end2:0"), META(3, 0, "re#3+dest+keep:2048"),
		CONTENT(0, 3, 0, "end4:0"),
	} },
	{ "shape has changed", KEEPS, .steps = {
		REFERRED, META(1, 64, "re#1+dest+keep:1024"), CONTENT(0, 1, 64, "end2:0"),
		FETCH_AGAIN(3, "x", 100, "req#2+keep:1024"), CONTENT(0, 2, 64, "end3:0"),
	} },
	{ "shape is another by now", KEEPS, .steps = {
		TOLD,
		STEP("req#1+dest", .op = OP_FETCH, .id = 2, .name = "x", .bytes = 100,
		     .place = true, .again = true),
		META(1, 64, "re#1+dest"), CONTENT(0, 1, 64, "end2:0"),
		FETCH_AGAIN(3, "x", 100, "req#2+dest+keep:1024"), CONTENT(0, 2, 64, "end3:0"),
	} },
	{ "empty", KEEPS, .steps = {
		FETCH_KEEP(1, "x", 0, "req#0"), META(0, 0, "re#0+dest+keep:0"),
		CONTENT(0, 0, 0, "end1:0"), FETCH_AGAIN(2, "x", 0, "req#1+keep:0"),
		CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "not asked to keep", KEEPS, .steps = {
		TOLD, FETCH_INTO(2, "x", 100, "req#1+dest"), CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "peer knows nothing of it", .steps = {
		FETCH_KEEP(1, "x", 100, "req#0"), META(0, 100, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:0"), FETCH_AGAIN(2, "x", 100, "req#1+dest"),
		CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "validated", KEEPS, .validate = true, .steps = {
		FETCH_KEEP(1, "x", 100, "req#0+val"), META(0, 100, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:0"), FETCH_AGAIN(2, "x", 100, "req#1+val"),
		META(1, 100, "re#1+dest"), CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "forgotten by the peer", KEEPS, .steps = {
		TOLD, MISSED(2, 1, "0", "+keep:1024"),
		FETCH_AGAIN(3, "x", 100, "req#2+keep:1024"), CONTENT(0, 2, 100, "end3:0"),
	} },
	{ "forgotten again and again", KEEPS, .steps = {
		TOLD, MISSED(2, 1, "0", "+keep:1024"), MISSED(3, 2, "1024", "+keep:2048"),
		MISSED(4, 3, "2048", ""),
		FETCH_AGAIN(5, "x", 100, "req#4+dest"), CONTENT(0, 4, 100, "end5:0"),
	} },
	{ "cancelled", KEEPS, .steps = {
		REFERRED, CANCEL(2, "cancel#1"), CANCELLED(1, "end2:-125"),
		FETCH_AGAIN(3, "x", 100, "req#2+keep:0"), CONTENT(0, 2, 100, "end3:0"),
	} },
	{ "failed", KEEPS, .steps = {
		REFERRED, ERR(1, -5, "end2:-5"),
		FETCH_AGAIN(3, "x", 100, "req#2+keep:0"), CONTENT(0, 2, 100, "end3:0"),
	} },
	{ "content is written once", KEEPS, .steps = {
		REFERRED, CONTENT(0, 1, 100, "end2:0"),
		CONTENT(0, 1, 100, "down:-71(content that was not asked for)"),
	} },
	{ "cut", KEEPS, .steps = {
		REFERRED, DOWN("end2:-104+text"),
	} },
	{ "cancelled before it was told", KEEPS, .steps = {
		TOLD, FULL, FETCH_KEEP(2, "x", 100, ""), CANCEL(2, "end2:-125"), ROOM(""),
		/* Nor is it what was told: that is where the last one went */
		FETCH_AGAIN(3, "x", 100, "req#2+dest+keep:1024"), CONTENT(0, 2, 100, "end3:0"),
	} },
};

KUNIT_ARRAY_PARAM(receiver, receivers, script_name);

static void receiver(struct kunit *test)
{
	script_run(test, test->param_value);
}

#define OFFERED(_uses) PUBLISH(7, "x", 100, _uses, "")

static const struct script senders[] = {
	{ "told, and referred to", KEEPS, .steps = {
		OFFERED(3), REQ_KEEP(0, "x", 100, 5, "w0#0:100!"), DONE(""),
		REQ_KEPT(1, "x", 5, "w0#1:100!"), DONE(""),
		REQ_KEPT(2, "x", 5, "w0#2:100!"), DONE("pub7:0"),
	} },
	{ "told again, and referred to", KEEPS, .steps = {
		OFFERED(2), REQ(0, "x", "meta#0"), RE_KEEP(0, 100, 1, "w0#0:100!"), DONE(""),
		REQ_KEPT(1, "x", 1, "w0#1:100!"), DONE("pub7:0"),
	} },
	{ "referred to before it is published", KEEPS, .steps = {
		OFFERED(1), REQ_KEEP(0, "x", 100, 5, "w0#0:100!"), DONE("pub7:0"),
		REQ_KEPT(1, "x", 5, ""), PUBLISH(7, "x", 100, 1, "w0#1:100!"), DONE("pub7:0"),
	} },
	{ "never told", KEEPS, .steps = {
		OFFERED(1), REQ_KEPT(0, "x", 5, "meta#0"), RE(0, 100, "w0#0:100!"),
		DONE("pub7:0"),
	} },
	{ "told another in its slot", KEEPS, .steps = {
		OFFERED(4), REQ_KEEP(0, "x", 100, 5, "w0#0:100!"), DONE(""),
		REQ_KEEP(1, "x", 100, 5 + 1024, "w0#1:100!"), DONE(""),
		REQ_KEPT(2, "x", 5, "meta#2"), RE(2, 100, "w0#2:100!"), DONE(""),
		REQ_KEPT(3, "x", 5 + 1024, "w0#3:100!"), DONE("pub7:0"),
	} },
	{ "told of another shape", KEEPS, .steps = {
		OFFERED(2), REQ_KEEP(0, "x", 64, 5, "meta#0"), RE(0, 100, "w0#0:100!"), DONE(""),
		REQ_KEPT(1, "x", 5, "meta#1"), RE(1, 100, "w0#1:100!"), DONE("pub7:0"),
	} },
	{ "told, and cancelled", KEEPS, .left = 1, .steps = {
		REQ_KEEP(0, "x", 100, 5, ""), CANCEL_OF(0, "cancelled#0"), OFFERED(2),
		REQ_KEPT(1, "x", 5, "w0#1:100!"), DONE(""),
	} },
	{ "told when its end is on the way", KEEPS, .steps = {
		PUBLISH_FAILED(7, "x", -5, ""), FULL, REQ(0, "x", "pub7:0"),
		RE_KEEP(0, 100, 5, ""), ROOM("err#0:-5"),
		OFFERED(1), REQ_KEPT(1, "x", 5, "w0#1:100!"), DONE("pub7:0"),
	} },
	{ "told while what it was is written", KEEPS, .steps = {
		OFFERED(3), REQ_KEEP(0, "x", 100, 5, "w0#0:100!"),
		REQ_KEPT(1, "x", 5, "w0#1:100!"),
		REQ_KEEP(2, "x", 100, 5 + 1024, "w0#2:100!"), DONE("pub7:0"),
	} },
	{ "several keys", KEEPS, .steps = {
		PUBLISH(7, "x", 30000, 2, ""),
		REQ_KEEP(0, "x", 30000, 5, "w0#0:8192 w0#0:8192 w0#0:8192 w0#0:5424!"), DONE(""),
		REQ_KEPT(1, "x", 5, "w0#1:8192 w0#1:8192 w0#1:8192 w0#1:5424!"),
		DONE("pub7:0"),
	} },
	{ "empty", KEEPS, .steps = {
		PUBLISH(7, "x", 0, 2, ""), REQ_KEEP(0, "x", 0, 5, "w0#0:0!"), DONE(""),
		REQ_KEPT(1, "x", 5, "w0#1:0!"), DONE("pub7:0"),
	} },
	{ "checked by the sender", KEEPS, .validate = true, .steps = {
		OFFERED(2), REQ_KEEP(0, "x", 100, 5, "meta#0+sum"), RE(0, 100, "w0#0:100!"),
		DONE(""), REQ_KEPT(1, "x", 5, "meta#1+sum"), RE(1, 100, "w0#1:100!"),
		DONE("pub7:0"),
	} },
	{ "cut", KEEPS, .left = 1, .steps = {
		OFFERED(2), REQ_KEEP(0, "x", 100, 5, "w0#0:100!"), DONE(""),
		REQ_KEPT(1, "y", 5, ""), REQ_KEPT(2, "x", 5, "w0#2:100!"), DOWN(""),
	} },
	{ "told without the feature", .left = 1, .steps = {
		OFFERED(1), REQ_KEEP(0, "x", 100, 5, NO_FEATURE),
	} },
	{ "referred to without the feature", .left = 1, .steps = {
		OFFERED(1), REQ_KEPT(0, "x", 5, NO_FEATURE),
	} },
};

KUNIT_ARRAY_PARAM(sender, senders, script_name);

static void sender(struct kunit *test)
{
	script_run(test, test->param_value);
}

/* What is remembered is bounded, whatever the peer tells */
static void as_much_as_it_may_be(struct kunit *test)
{
	struct rdmatensor_msg msg = { .meta = SCRIPT_META(1) };
	struct rdmatensor_kepts kepts;
	struct rdmatensor_kept *kept;
	static __le32 keys[16000];
	u32 i, remembered = 0;

	rdmatensor_kepts_init(&kepts);
	msg.rkeys = keys;
	for (i = 0; i < 4 * RDMATENSOR_WIRE_KEEP_SLOTS; i++) {
		msg.keep = i;
		msg.nr_rkeys = i < RDMATENSOR_WIRE_KEEP_SLOTS ? 1 : 16000;
		rdmatensor_kepts_remember(&kepts, &msg);
		KUNIT_ASSERT_LE(test, kepts.bytes, RDMATENSOR_KEPT_BYTES);
		if (i == RDMATENSOR_WIRE_KEEP_SLOTS - 1)
			/* All that there are numbers for, if they are short */
			KUNIT_EXPECT_GT(test, kepts.bytes, RDMATENSOR_WIRE_KEEP_SLOTS * 100);
	}
	for (i = 0; i < 4 * RDMATENSOR_WIRE_KEEP_SLOTS; i++) {
		kept = rdmatensor_kepts_get(&kepts, i);
		if (!kept)
			continue;
		KUNIT_EXPECT_GE(test, i, 3 * RDMATENSOR_WIRE_KEEP_SLOTS);
		remembered++;
		rdmatensor_kept_put(kept);
	}
	KUNIT_EXPECT_GT(test, remembered, 0);
	KUNIT_EXPECT_LT(test, remembered, RDMATENSOR_KEPT_BYTES / sizeof(keys) + 1);
	rdmatensor_kepts_forget(&kepts);
	KUNIT_EXPECT_EQ(test, kepts.bytes, 0);
}

/* Who uses one goes on with it when another has taken its place, or all are forgotten */
static void used_when_forgotten(struct kunit *test)
{
	struct rdmatensor_msg msg = { .keep = 3, .remote_addr = 77, .meta = SCRIPT_META(1) };
	struct rdmatensor_kept *first, *second;
	struct rdmatensor_kepts kepts;

	rdmatensor_kepts_init(&kepts);
	rdmatensor_kepts_remember(&kepts, &msg);
	first = rdmatensor_kepts_get(&kepts, 3);
	KUNIT_ASSERT_NOT_NULL(test, first);
	msg.keep += RDMATENSOR_WIRE_KEEP_SLOTS;
	msg.remote_addr = 88;
	rdmatensor_kepts_remember(&kepts, &msg);
	KUNIT_EXPECT_NULL(test, rdmatensor_kepts_get(&kepts, 3));
	second = rdmatensor_kepts_get(&kepts, msg.keep);
	KUNIT_ASSERT_NOT_NULL(test, second);
	rdmatensor_kepts_forget(&kepts);
	KUNIT_EXPECT_EQ(test, first->remote_addr, 77);
	KUNIT_EXPECT_EQ(test, second->remote_addr, 88);
	rdmatensor_kept_put(first);
	rdmatensor_kept_put(second);
}

/* More names than the peer has slots: the others are told each time, and take nobody's */
static void more_names_than_slots(struct kunit *test)
{
	struct rdmatensor_keep *keeps;
	struct rdmatensor_msg msg;
	u32 nr = 0, i, round;
	bool referred;

	keeps = kunit_kcalloc(test, RDMATENSOR_WIRE_KEEP_SLOTS + 2, sizeof(*keeps), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, keeps);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < RDMATENSOR_WIRE_KEEP_SLOTS + 2; i++) {
			bool has = i < RDMATENSOR_WIRE_KEEP_SLOTS;

			msg = (struct rdmatensor_msg) {
				.flags = RDMATENSOR_WIRE_F_DEST, .nr_parts = 1,
				.meta = SCRIPT_META(1),
			};
			referred = rdmatensor_keep_tell(&keeps[i], &nr, &msg, i * 64, true);
			KUNIT_EXPECT_EQ(test, referred, has && round);
			KUNIT_EXPECT_EQ(test, !(msg.flags & RDMATENSOR_WIRE_F_KEEP), !has);
			KUNIT_EXPECT_EQ(test, !(msg.flags & RDMATENSOR_WIRE_F_DEST), referred);
			if (has)
				KUNIT_EXPECT_EQ(test, msg.keep, i);
		}
	}
	KUNIT_EXPECT_EQ(test, nr, RDMATENSOR_WIRE_KEEP_SLOTS);
}

static struct kunit_case keep_tests[] = {
	KUNIT_CASE_PARAM(receiver, receiver_gen_params),
	KUNIT_CASE_PARAM(sender, sender_gen_params),
	KUNIT_CASE(as_much_as_it_may_be),
	KUNIT_CASE(used_when_forgotten),
	KUNIT_CASE(more_names_than_slots),
	{}
};

static struct kunit_suite keep_suite = {
	.name = "rdmatensor_keep",
	.test_cases = keep_tests,
};

kunit_test_suite(keep_suite);
