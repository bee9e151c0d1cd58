// SPDX-License-Identifier: GPL-2.0
/*
 * Requests: every state, and in every state everything that the peer, the
 * process and the clock can do. The words are in script.h.
 */
#include "script.h"

/* CRC32C of 100 zeros, which is what a new region holds */
#define ZEROS_SUM 0x07cb9ff6

/* Ways into a state. Of a known tensor: request 1, fetch 2 */
#define PENDING		FETCH(1, "x", "req#0"), FETCH(2, "y", "")
#define QUEUED		FULL, FETCH(1, "x", "")
#define SENT		FETCH(1, "x", "req#0")
#define RE_QUEUED	SENT, FULL, META(0, 100, "")
#define RE_SENT		SENT, META(0, 100, "re#0+dest")
#define KNOWN		RE_SENT, CONTENT(0, 0, 100, "end1:0")
#define DIRECT		KNOWN, FETCH(2, "x", "req#1+dest")
#define CANCEL_QUEUED	DIRECT, FULL, CANCEL(2, "")
#define CANCEL_SENT	DIRECT, CANCEL(2, "cancel#1")
#define LINGER		CANCEL_SENT, CONTENT(0, 1, 100, "end2:0")

#define NOT_SENT "down:-71(answer to a request that was not sent or has ended)"
#define NOT_ASKED "down:-71(content that was not asked for)"
#define NO_CANCEL "down:-71(answer to a CANCEL that was not sent)"
#define META_TURN "down:-71(META_DATA_RESPONSE out of turn)"
#define LENGTH "down:-71(content of an impossible length)"
#define TWICE "down:-71(part of a content twice)"
#define SECOND_END "down:-71(second end of one request)"
#define NO_ANSWER "down:-110(the peer does not answer a CANCEL)"

static const struct script scripts[] = {
	{ "first fetch", .steps = {
		RE_SENT, CONTENT(0, 0, 100, "end1:0"),
	} },
	{ "known tensor", .steps = {
		DIRECT, CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "known tensor that has changed", .steps = {
		DIRECT, META(1, 200, "re#1+dest"), CONTENT(0, 1, 200, "end2:0"),
		FETCH(3, "x", "req#2+dest"), CONTENT(0, 2, 200, "end3:0"),
	} },
	{ "known tensor that is empty now", .steps = {
		DIRECT, META(1, 0, "re#1+dest"), CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "known tensor that is dead now", .steps = {
		DIRECT,
		RX("re#1+dest", .type = RDMATENSOR_WIRE_META_DATA_RESPONSE,
		   .request_index = 1, .meta = SCRIPT_DEAD),
		CONTENT(0, 1, 0, "end2:0+dead"),
	} },
	{ "two tensors, the later one first", .steps = {
		SENT, FETCH(2, "y", "req#1"),
		META(1, 50, "re#1+dest"), CONTENT(0, 1, 50, "end2:0"),
		META(0, 100, "re#0+dest"), CONTENT(0, 0, 100, "end1:0"),
	} },
	{ "one tensor twice", .steps = {
		SENT, FETCH(2, "x", "req#1"),
		META(0, 100, "re#0+dest"), META(1, 100, "re#1+dest"),
		CONTENT(0, 1, 100, "end2:0"), CONTENT(0, 0, 100, "end1:0"),
	} },
	{ "own region", .steps = {
		FETCH_INTO(1, "x", 100, "req#0"), META(0, 100, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:0"),
	} },
	{ "own region is too small", .steps = {
		FETCH_INTO(1, "x", 64, "req#0"), META(0, 100, "cancel#0"),
		CANCELLED(0, "end1:-90"),
	} },
	{ "own region is too small for a known one", .steps = {
		KNOWN, FETCH_INTO(2, "x", 64, "req#1"), META(1, 100, "cancel#1"),
		CANCELLED(1, "end2:-90"),
	} },
	{ "pool is too small", .steps = {
		SENT, META(0, 1 << 20, "cancel#0"), CANCELLED(0, "end1:-28"),
	} },
	{ "pool is too small for a known one", .steps = {
		SENT, META(0, 1 << 20, "cancel#0"), CANCELLED(0, "end1:-28"),
		FETCH(2, "x", "req#1"), META(1, 100, "re#1+dest"),
		CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "failed tensor", .steps = {
		SENT, ERR(0, -5, "end1:-5"), FETCH(2, "y", "req#1"),
	} },
	{ "failed tensor, with a text", .steps = {
		SENT, RX("end1:-5+text", .type = RDMATENSOR_WIRE_ERROR_STATUS,
			 .request_index = 0, .error = -5, .text = "why", .text_len = 3),
	} },

	{ "pending, admitted", .max_requests = 1, .steps = {
		PENDING, ERR(0, -5, "req#1 end1:-5"), ERR(1, -5, "end2:-5"),
	} },
	{ "pending, cancelled", .max_requests = 1, .steps = {
		PENDING, CANCEL(2, "end2:-125"), ERR(0, -5, "end1:-5"),
	} },
	{ "pending, expired", .max_requests = 1, .steps = {
		PENDING, EXPIRE(2, "end2:-110"), ERR(0, -5, "end1:-5"),
	} },
	{ "pending, aborted", .max_requests = 1, .steps = {
		PENDING, ABORT(1, -5, "cancel#0 end2:-5"), CANCELLED(0, "end1:-5"),
	} },
	{ "pending, described", .max_requests = 1, .steps = {
		PENDING, META(1, 100, NOT_SENT),
	} },
	{ "pending, failed", .max_requests = 1, .steps = {
		PENDING, ERR(1, -5, NOT_SENT),
	} },
	{ "pending, content", .max_requests = 1, .steps = {
		PENDING, CONTENT(0, 1, 100, NOT_ASKED),
	} },
	{ "pending, cut", .max_requests = 1, .steps = {
		PENDING, DOWN("end1:-104+text end2:-104+text"),
	} },

	{ "queued, sent", .steps = {
		QUEUED, ROOM("req#0"),
	} },
	{ "queued, cancelled", .steps = {
		QUEUED, CANCEL(1, "end1:-125"), ROOM(""), FETCH(2, "x", "req#1"),
	} },
	{ "queued, expired", .steps = {
		QUEUED, EXPIRE(1, "end1:-110"), ROOM(""),
	} },
	{ "queued, described", .steps = {
		QUEUED, META(0, 100, NOT_SENT), ROOM(""),
	} },
	{ "queued, failed", .steps = {
		QUEUED, ERR(0, -5, NOT_SENT), ROOM(""),
	} },
	{ "queued, content", .steps = {
		QUEUED, CONTENT(0, 0, 100, NOT_ASKED), ROOM(""),
	} },
	{ "queued, cut", .steps = {
		QUEUED, DOWN("end1:-104+text"),
	} },

	{ "sent, cancelled", .steps = {
		SENT, CANCEL(1, "cancel#0"), CANCELLED(0, "end1:-125"), ERR(0, -5, NOT_SENT),
	} },
	{ "sent, expired", .steps = {
		SENT, EXPIRE(1, "cancel#0"), CANCELLED(0, "end1:-110"),
	} },
	{ "sent, aborted", .steps = {
		SENT, ABORT(1, -5, "cancel#0"), CANCELLED(0, "end1:-5"),
		FETCH_FAILS(2, "x", 1, -5),
	} },
	{ "sent, described for another step", .steps = {
		SENT, RX("down:-71(META_DATA_RESPONSE of another step)",
			 .type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .step_id = 2,
			 .request_index = 0, .meta = SCRIPT_META(100)),
	} },
	{ "sent, another is described", .steps = {
		SENT, META(1, 100, NOT_SENT),
	} },
	{ "sent without destination, content", .steps = {
		SENT, CONTENT(0, 0, 100, NOT_ASKED),
	} },
	{ "sent, answer to no CANCEL", .steps = {
		SENT, CANCELLED(0, NO_CANCEL),
	} },
	{ "sent, cut", .steps = {
		SENT, DOWN("end1:-104+text"),
	} },

	{ "direct, failed", .steps = {
		DIRECT, ERR(1, -5, "end2:-5"),
	} },
	{ "direct, content too long", .steps = {
		DIRECT, CONTENT(0, 1, 101, LENGTH),
	} },
	{ "direct, no content", .steps = {
		DIRECT, CONTENT(0, 1, 0, LENGTH),
	} },
	{ "direct, content on another lane", .lanes = 2, .steps = {
		DIRECT, CONTENT(1, 1, 100, TWICE),
	} },
	{ "direct, content twice", .steps = {
		DIRECT, CONTENT(0, 1, 100, "end2:0"), CONTENT(0, 1, 100, NOT_ASKED),
	} },
	{ "direct, content late on another lane", .lanes = 2, .steps = {
		DIRECT, CONTENT(0, 1, 100, "end2:0"), CONTENT(1, 1, 100, ""),
	} },
	{ "direct, failed twice", .steps = {
		DIRECT, ERR(1, -5, "end2:-5"), ERR(1, -5, NOT_SENT),
	} },
	{ "direct, cut", .steps = {
		DIRECT, DOWN("end2:-104+text"), FETCH_FAILS(3, "x", 1, -107),
	} },

	{ "re-queued, sent", .steps = {
		RE_QUEUED, ROOM("re#0+dest"), CONTENT(0, 0, 100, "end1:0"),
	} },
	{ "re-queued, described again", .steps = {
		RE_QUEUED, META(0, 100, META_TURN), ROOM(""),
	} },
	{ "re-queued, content", .steps = {
		RE_QUEUED, CONTENT(0, 0, 100, NOT_ASKED), ROOM(""),
	} },
	{ "re-queued, failed", .steps = {
		RE_QUEUED, ERR(0, -5, "end1:-5"), ROOM(""),
	} },
	{ "re-queued, cancelled", .steps = {
		RE_QUEUED, CANCEL(1, ""), ROOM("cancel#0"), CANCELLED(0, "end1:-125"),
	} },
	{ "re-queued, expired", .steps = {
		RE_QUEUED, EXPIRE(1, ""), ROOM("cancel#0"), CANCELLED(0, "end1:-110"),
	} },
	{ "re-queued, answer to no CANCEL", .steps = {
		RE_QUEUED, CANCELLED(0, NO_CANCEL), ROOM(""),
	} },
	{ "re-queued, cut", .steps = {
		RE_QUEUED, DOWN("end1:-104+text"),
	} },

	{ "re-sent, described again", .steps = {
		RE_SENT, META(0, 100, META_TURN),
	} },
	{ "re-sent, failed", .steps = {
		RE_SENT, ERR(0, -5, "end1:-5"),
	} },
	{ "re-sent, cancelled", .steps = {
		RE_SENT, CANCEL(1, "cancel#0"), CANCELLED(0, "end1:-125"),
	} },
	{ "re-sent, expired", .steps = {
		RE_SENT, EXPIRE(1, "cancel#0"), CANCELLED(0, "end1:-110"),
	} },
	{ "re-sent, answer to no CANCEL", .steps = {
		RE_SENT, CANCELLED(0, NO_CANCEL),
	} },
	{ "re-sent, content too long", .steps = {
		RE_SENT, CONTENT(0, 0, 101, LENGTH),
	} },
	{ "re-sent, cut", .steps = {
		RE_SENT, DOWN("end1:-104+text"),
	} },

	{ "cancel queued, content", .steps = {
		CANCEL_QUEUED, CONTENT(0, 1, 100, "end2:0"), ROOM(""),
	} },
	{ "cancel queued, content too long", .steps = {
		CANCEL_QUEUED, CONTENT(0, 1, 101, LENGTH), ROOM(""),
	} },
	{ "cancel queued, failed", .steps = {
		CANCEL_QUEUED, ERR(1, -5, "end2:-5"), ROOM(""),
	} },
	{ "cancel queued, described", .steps = {
		CANCEL_QUEUED, META(1, 200, ""), ROOM("cancel#1"), CANCELLED(1, "end2:-125"),
	} },
	{ "cancel queued, answer to no CANCEL", .steps = {
		CANCEL_QUEUED, CANCELLED(1, NO_CANCEL), ROOM(""),
	} },
	{ "cancel queued, cancelled", .steps = {
		CANCEL_QUEUED, CANCEL(2, ""), ABORT(1, -5, ""), ROOM("cancel#1"),
		CANCELLED(1, "end2:-125"),
	} },
	{ "cancel queued, expired", .steps = {
		CANCEL_QUEUED, EXPIRE(2, NO_ANSWER),
	} },
	{ "cancel queued, cut", .steps = {
		CANCEL_QUEUED, DOWN("end2:-104+text"),
	} },

	{ "cancel sent, content", .steps = {
		CANCEL_SENT, CONTENT(0, 1, 100, "end2:0"), CANCELLED(1, ""),
		CANCELLED(1, NOT_SENT),
	} },
	{ "cancel sent, content too long", .steps = {
		CANCEL_SENT, CONTENT(0, 1, 101, LENGTH),
	} },
	{ "cancel sent, described", .steps = {
		CANCEL_SENT, META(1, 200, ""), CANCELLED(1, "end2:-125"),
		FETCH(3, "x", "req#2+dest"), CONTENT(0, 2, 200, "end3:0"),
	} },
	{ "cancel sent, failed", .steps = {
		CANCEL_SENT, ERR(1, -5, "end2:-5"), CANCELLED(1, ""),
	} },
	{ "cancel sent, cancelled", .steps = {
		CANCEL_SENT, CANCEL(2, ""), CANCELLED(1, "end2:-125"),
		STEP("", .op = OP_CANCEL, .id = 2, .ret = -ENOENT),
	} },
	{ "cancel sent, expired", .steps = {
		CANCEL_SENT, EXPIRE(2, NO_ANSWER), DOWN("end2:-110+text"),
	} },
	{ "cancel sent, cut", .steps = {
		CANCEL_SENT, DOWN("end2:-104+text"),
	} },
	{ "cancel sent before content could come", .steps = {
		SENT, CANCEL(1, "cancel#0"), CONTENT(0, 0, 100, NOT_ASKED),
	} },

	{ "linger, described", .steps = {
		LINGER, META(1, 200, ""), CANCELLED(1, ""),
	} },
	{ "linger, failed", .steps = {
		LINGER, ERR(1, -5, SECOND_END),
	} },
	{ "linger, content", .steps = {
		LINGER, CONTENT(0, 1, 100, NOT_ASKED),
	} },
	{ "linger, cancelled and expired", .steps = {
		LINGER, STEP("", .op = OP_CANCEL, .id = 2, .ret = -ENOENT),
		STEP("", .op = OP_EXPIRE, .id = 2, .ret = -ENOENT), CANCELLED(1, ""),
	} },
	{ "linger, cut", .steps = {
		LINGER, DOWN(""),
	} },
	{ "linger counts as outstanding", .max_requests = 1, .steps = {
		LINGER, FETCH(3, "x", ""), CANCELLED(1, "req#2+dest"),
		CONTENT(0, 2, 100, "end3:0"),
	} },

	{ "validated", .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:0+ok"),
		FETCH(2, "x", "req#1+val"), META_SUM(1, 0, 0, "re#1+dest"),
		CONTENT(0, 1, 0, "end2:0+ok"),
	} },
	{ "validated by the sender's will", .steps = {
		FETCH_INTO(1, "x", 100, "req#0"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:0+ok"),
	} },
	{ "validated, content has changed", .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		LIE, CONTENT(0, 0, 100, "end1:-74+text"),
	} },
	{ "validated, sum is wrong", .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, 1, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:-74+text"),
	} },
	{ "validated, cancelled too late", .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		HOLD, CONTENT(0, 0, 100, ""), CANCEL(1, ""), EXPIRE(1, ""),
		CONTENT(0, 0, 100, NOT_ASKED), GO("end1:0+ok"),
	} },
	{ "validated, cancelled before", .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		CANCEL(1, "cancel#0"), HOLD, CONTENT(0, 0, 100, ""), CANCELLED(0, ""),
		GO("end1:0+ok"),
	} },
	{ "validated, cut", .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		HOLD, CONTENT(0, 0, 100, ""), DOWN(""), GO("end1:0+ok"),
	} },

	{ "striped", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(1, 0, 4096, ""),
		CONTENT(0, 0, 4096, "end1:0"),
	} },
	{ "striped, last write beyond its key", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(1, 0, 4097, LENGTH),
	} },
	{ "striped, a part twice", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(1, 0, 4096, ""),
		CONTENT(1, 0, 4096, TWICE),
	} },
	{ "striped, a part missing", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(0, 0, 4096, ""),
		CANCEL(1, "cancel#0"), CANCELLED(0, "end1:-125"), CONTENT(1, 0, 4096, ""),
	} },
	{ "striped, as short as may be", .lanes = 2, .steps = {
		SENT, META(0, 16384, "re#0+dest"), CONTENT(0, 0, 8192, "end1:0"),
	} },
};

KUNIT_ARRAY_PARAM(request, scripts, script_name);

static void request(struct kunit *test)
{
	script_run(test, test->param_value);
}

/* A channel and one fetch over it, whose region is to be allocated */
static struct script_end *open_with_one(struct kunit *test,
					const struct rdmatensor_channel_params *params,
					u64 deadline_ns)
{
	struct script_end *script = script_open(test, 1, params);
	struct rdmatensor_fetch_args args = {
		.user_data = 1,
		.name = "x",
		.name_len = 1,
		.step_id = 1,
		.pool = script->end->pool,
		.alloc = true,
		.deadline_ns = deadline_ns,
	};

	script_up(script);
	rdmatensor_pool_get(args.pool);
	KUNIT_ASSERT_EQ(test, rdmatensor_request_submit(script->end->channel, &args), 0);
	return script;
}

/* The clock itself: a deadline that has passed, then a peer that does not answer */
static void deadline(struct kunit *test)
{
	struct rdmatensor_channel_params params = end_params;
	struct script_end *script;

	params.cancel_ms = 1;
	script = open_with_one(test, &params, 1);
	KUNIT_EXPECT_NE(test, wait_event_timeout(script->end->channel->wait,
						 READ_ONCE(script->end->channel->state) ==
						 RDMATENSOR_CHANNEL_CLOSING, 20 * HZ), 0);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0 cancel#0 " NO_ANSWER);
	end_down(script->end);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "end1:-110+text");
	script_close(script);
}

static void cancel_it(struct script_end *script)
{
	static const struct script_step cancel = CANCEL(1, "cancel#0");
	static const struct script_step answer = CANCELLED(0, "end1:-125");

	script_do(script, &cancel);
	script_do(script, &answer);
}

/* One that is far away still runs when a CANCEL sets it anew: it is one timer, with one hold */
static void cancelled_before_its_deadline(struct kunit *test)
{
	struct script_end *script =
		open_with_one(test, &end_params, ktime_get_ns() + 3600 * NSEC_PER_SEC);

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	cancel_it(script);
	/* Waits for all that is held */
	script_close(script);
}

/* Whoever has a reference: with its entry all that it held is the process's again */
static void who_looks_keeps_nothing(struct kunit *test)
{
	struct script_end *script = open_with_one(test, &end_params, 0);
	struct rdmatensor_pool *pool = script->end->pool;
	unsigned long bucket = 0, serial = 0;
	struct rdmatensor_fetch *fetch;

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	fetch = rdmatensor_fetch_next(&script->end->exchange, &bucket, &serial);
	KUNIT_ASSERT_NOT_NULL(test, fetch);
	/* It will want a region of that pool */
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&pool->regions), -EBUSY);
	cancel_it(script);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 1);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&pool->regions), 0);
	rdmatensor_fetch_put(fetch);
	script_close(script);
}

static struct kunit_case request_tests[] = {
	KUNIT_CASE_PARAM(request, request_gen_params),
	KUNIT_CASE(deadline),
	KUNIT_CASE(cancelled_before_its_deadline),
	KUNIT_CASE(who_looks_keeps_nothing),
	{}
};

static struct kunit_suite request_suite = {
	.name = "rdmatensor_request",
	.test_cases = request_tests,
};

kunit_test_suite(request_suite);
