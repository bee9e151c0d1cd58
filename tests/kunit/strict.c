// SPDX-License-Identifier: GPL-2.0
/*
 * Requests in strict mode: a destination's keys are registered before the message that tells of
 * them ("reg"), and invalidated ("inv") before the end of the fetch is told. In every state that
 * is added by that: everything that the peer, the process and the clock can do. The words are in
 * script.h; a key covers two pages. Of a domain that registers apart no "reg" is seen: the message
 * alone, once the registration queue has done them, which end.c checks.
 */
#include <rdma/mr_pool.h>
#include "memory/domain.h"
#include "memory/exposure.h"
#include "script.h"

/* CRC32C of 100 zeros, which is what a new region holds */
#define ZEROS_SUM 0x07cb9ff6

/* Ways into a state */
#define SENT		FETCH(1, "x", "req#0")
#define EXPOSING	SENT, HOLD, META(0, 100, "")
#define RE_SENT		SENT, META(0, 100, "reg re#0+dest")
#define KNOWN		RE_SENT, CONTENT(0, 0, 100, "inv end1:0")
#define DIRECT		KNOWN, FETCH(2, "x", "reg req#1+dest")
#define REVOKING	DIRECT, FULL, CONTENT(0, 1, 100, "")
#define CANCEL_SENT	DIRECT, CANCEL(2, "cancel#1")
#define REVOKING_LINGER	CANCEL_SENT, FULL, CONTENT(0, 1, 100, "")
/* A destination of three keys */
#define LONG		(3 << END_SEG_SHIFT)
/* More keys than there are */
#define TOO_LONG	((END_MRS + 1) << END_SEG_SHIFT)

/* The same where keys are registered apart */
#define APART		.strict = true, .apart = true
#define APART_KNOWN	SENT, META(0, 100, "re#0+dest"), CONTENT(0, 0, 100, "inv end1:0")
#define APART_KEYS	SENT, HOLD_KEYS, META(0, 100, ""), REGISTERING("")
#define NO_KEYS "down:-104(registering a destination failed)"

#define NOT_SENT "down:-71(answer to a request that was not sent or has ended)"
#define NO_ANSWER "down:-110(the peer does not answer a CANCEL)"
#define KEYS_OPEN "down:-110(the keys of a destination cannot be taken back: the peer receives nothing)"
#define NOT_ASKED "down:-71(content that was not asked for)"
#define META_TURN "down:-71(META_DATA_RESPONSE out of turn)"
#define SECOND_END "down:-71(second end of one request)"

static const struct script scripts[] = {
	{ "first fetch", .strict = true, .steps = { KNOWN } },
	{ "known tensor", .strict = true, .steps = {
		DIRECT, CONTENT(0, 1, 100, "inv end2:0"),
	} },
	{ "tensor of no bytes", .strict = true, .steps = {
		SENT, META(0, 0, "re#0+dest"), CONTENT(0, 0, 0, "end1:0"),
		FETCH(2, "x", "req#1+dest"), CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "tensor of several keys", .strict = true, .steps = {
		SENT, META(0, LONG, "reg3 re#0+dest"),
		CONTENT(0, 0, 1 << END_SEG_SHIFT, "inv3 end1:0"),
		FETCH(2, "x", "reg3 req#1+dest"),
		CONTENT(0, 1, 1 << END_SEG_SHIFT, "inv3 end2:0"),
	} },
	{ "content over two lanes", .strict = true, .lanes = 2, .steps = {
		SENT, META(0, 20480, "reg3 re#0+dest"), CONTENT(1, 0, 4096, ""),
		CONTENT(0, 0, 4096, "inv3 end1:0"),
	} },
	{ "failed tensor", .strict = true, .steps = {
		DIRECT, ERR(1, -5, "inv end2:-5"),
	} },
	{ "known tensor that has changed", .strict = true, .steps = {
		DIRECT, META(1, 200, "inv reg re#1+dest"), CONTENT(0, 1, 200, "inv end2:0"),
		FETCH(3, "x", "reg req#2+dest"), CONTENT(0, 2, 200, "inv end3:0"),
	} },
	{ "known tensor that has changed to nothing", .strict = true, .steps = {
		DIRECT, META(1, 0, "inv re#1+dest"), CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "nothing is kept", .strict = true, .features = RDMATENSOR_WIRE_FEATURE_KEEP, .steps = {
		FETCH_KEEP(1, "x", 100, "req#0"), META(0, 100, "reg re#0+dest"),
		CONTENT(0, 0, 100, "inv end1:0"), FETCH_AGAIN(2, "x", 100, "reg req#1+dest"),
		CONTENT(0, 1, 100, "inv end2:0"), FETCH_AGAIN(3, "x", 100, "reg req#2+dest"),
	} },

	{ "too few keys", .strict = true, .steps = {
		SENT, META(0, TOO_LONG, "cancel#0"), CANCELLED(0, "end1:-95"),
		FETCH(2, "y", "req#1"), META(1, LONG, "reg3 re#1+dest"),
	} },
	{ "too few keys for a known tensor", .strict = true, .steps = {
		SENT, META(0, LONG, "reg3 re#0+dest"), FETCH(2, "y", "req#1"),
		CONTENT(0, 0, 1 << END_SEG_SHIFT, "inv3 end1:0"),
		META(1, END_MRS << END_SEG_SHIFT, "reg24 re#1+dest"),
		/* Without a destination, and then there are none still */
		FETCH(3, "x", "req#2"), META(2, LONG, "cancel#2"), CANCELLED(2, "end3:-95"),
	} },

	{ "exposing, goes on", .strict = true, .steps = {
		EXPOSING, GO("reg re#0+dest"), CONTENT(0, 0, 100, "inv end1:0"),
	} },
	{ "exposing, cancelled", .strict = true, .steps = {
		EXPOSING, CANCEL(1, "cancel#0"), GO(""), CANCELLED(0, "end1:-125"),
	} },
	{ "exposing, cancelled and answered", .strict = true, .steps = {
		EXPOSING, CANCEL(1, "cancel#0"), CANCELLED(0, "end1:-125"), GO(""),
	} },
	{ "exposing, expired", .strict = true, .steps = {
		EXPOSING, EXPIRE(1, "cancel#0"), CANCELLED(0, "end1:-110"), GO(""),
	} },
	{ "exposing, aborted", .strict = true, .steps = {
		EXPOSING, ABORT(1, -5, "cancel#0"), CANCELLED(0, "end1:-5"), GO(""),
	} },
	{ "exposing, failed", .strict = true, .steps = {
		EXPOSING, ERR(0, -5, "end1:-5"), GO(""),
	} },
	{ "exposing, described again", .strict = true, .steps = {
		EXPOSING, META(0, 100, META_TURN), GO(""), DOWN("end1:-71+text"),
	} },
	{ "exposing, content", .strict = true, .steps = {
		EXPOSING, CONTENT(0, 0, 100, NOT_ASKED), GO(""),
	} },
	{ "exposing, answered", .strict = true, .steps = {
		EXPOSING, CANCELLED(0, "down:-71(answer to a CANCEL that was not sent)"), GO(""),
	} },
	{ "exposing, cut", .strict = true, .steps = {
		EXPOSING, DOWN("end1:-104+text"), GO(""),
	} },

	{ "changed, old keys are not back yet", .strict = true, .steps = {
		DIRECT, FULL, META(1, 200, ""), ROOM("inv reg re#1+dest"),
		CONTENT(0, 1, 200, "inv end2:0"),
	} },
	{ "changed, old keys are not back yet, cancelled", .strict = true, .steps = {
		DIRECT, FULL, META(1, 200, ""), CANCEL(2, ""), ROOM("inv cancel#1"),
		CANCELLED(1, "end2:-125"),
	} },
	{ "changed, old keys are not back yet, failed", .strict = true, .steps = {
		DIRECT, FULL, META(1, 200, ""), ERR(1, -5, ""), ROOM("inv end2:-5"),
	} },
	{ "changed, old keys are not back yet, content", .strict = true, .steps = {
		DIRECT, FULL, META(1, 200, ""), CONTENT(0, 1, 100, NOT_ASKED),
		DOWN("end2:-71+text"),
	} },
	{ "changed, old keys are not back yet, cut", .strict = true, .steps = {
		DIRECT, FULL, META(1, 200, ""), DOWN("end2:-104+text"),
	} },

	{ "revoking, revoked", .strict = true, .steps = { REVOKING, ROOM("inv end2:0") } },
	{ "revoking, cancelled", .strict = true, .steps = {
		REVOKING, CANCEL(2, ""), ROOM("inv end2:0"),
	} },
	{ "revoking, expired", .strict = true, .steps = {
		REVOKING, EXPIRE(2, ""), ROOM("inv end2:0"),
	} },
	/* What has come has come, but the channel does not go on */
	{ "revoking for ever", .strict = true, .steps = {
		REVOKING, SILENT, EXPIRE(2, KEYS_OPEN), DOWN("end2:0"),
	} },
	{ "revoking and lingering for ever", .strict = true, .steps = {
		REVOKING_LINGER, SILENT, EXPIRE(2, KEYS_OPEN), DOWN("end2:0"),
	} },
	/* The length that was described is not that of the old keys */
	{ "changed to the longest, old keys are not back yet, cancelled, silent", .strict = true,
	  .steps = {
		DIRECT, FULL, META(1, 1ULL << 40, ""), CANCEL(2, ""), SILENT,
		EXPIRE(2, NO_ANSWER), DOWN("end2:-110+text"),
	} },
	{ "revoking, aborted", .strict = true, .steps = {
		REVOKING, ABORT(1, -5, ""), ROOM("inv end2:0"),
	} },
	{ "revoking, described", .strict = true, .steps = {
		REVOKING, META(1, 100, NOT_SENT), DOWN("end2:0"),
	} },
	{ "revoking, failed", .strict = true, .steps = {
		REVOKING, ERR(1, -5, NOT_SENT), DOWN("end2:0"),
	} },
	{ "revoking, content again", .strict = true, .steps = {
		REVOKING, CONTENT(0, 1, 100, NOT_ASKED), DOWN("end2:0"),
	} },
	{ "revoking, answered", .strict = true, .steps = {
		REVOKING, CANCELLED(1, NOT_SENT), DOWN("end2:0"),
	} },
	{ "revoking, cut", .strict = true, .steps = {
		REVOKING, DOWN("end2:0"),
	} },
	{ "revoking after an error", .strict = true, .steps = {
		DIRECT, FULL, ERR(1, -5, ""), CANCEL(2, ""), ROOM("inv end2:-5"),
	} },
	{ "revoking after an error, cut", .strict = true, .steps = {
		DIRECT, FULL, ERR(1, -5, ""), DOWN("end2:-5"),
	} },
	{ "revoking after an answer", .strict = true, .steps = {
		CANCEL_SENT, FULL, CANCELLED(1, ""), ROOM("inv end2:-125"),
	} },
	{ "revoking of what has overtaken its CANCEL", .strict = true, .steps = {
		DIRECT, FULL, CANCEL(2, ""), CONTENT(0, 1, 100, ""), ROOM("inv end2:0"),
	} },
	{ "revoking after an answer that overtook parts", .strict = true, .lanes = 2, .steps = {
		SENT, META(0, 20480, "reg3 re#0+dest"), CONTENT(0, 0, 4096, ""),
		CANCEL(1, "cancel#0"), CANCELLED(0, ""), FULL, CONTENT(1, 0, 4096, ""),
		ROOM("inv3 end1:0"),
	} },

	{ "revoking and lingering, revoked", .strict = true, .steps = {
		REVOKING_LINGER, ROOM("inv end2:0"), CANCELLED(1, ""),
	} },
	{ "revoking and lingering, answered", .strict = true, .steps = {
		REVOKING_LINGER, CANCELLED(1, ""), ROOM("inv end2:0"),
	} },
	{ "revoking and lingering, answered twice", .strict = true, .steps = {
		REVOKING_LINGER, CANCELLED(1, ""), CANCELLED(1, NOT_SENT), DOWN("end2:0"),
	} },
	{ "revoking and lingering, described", .strict = true, .steps = {
		REVOKING_LINGER, META(1, 100, ""), ROOM("inv end2:0"), CANCELLED(1, ""),
	} },
	{ "revoking and lingering, failed", .strict = true, .steps = {
		REVOKING_LINGER, ERR(1, -5, SECOND_END), DOWN("end2:0"),
	} },
	{ "revoking and lingering, content again", .strict = true, .steps = {
		REVOKING_LINGER, CONTENT(0, 1, 100, NOT_ASKED), DOWN("end2:0"),
	} },
	{ "revoking and lingering, cancelled, expired", .strict = true, .steps = {
		REVOKING_LINGER, CANCEL(2, ""), EXPIRE(2, ""), ROOM("inv end2:0"),
		CANCELLED(1, ""),
	} },
	{ "revoking and lingering, cut", .strict = true, .steps = {
		REVOKING_LINGER, DOWN("end2:0"),
	} },

	{ "validated", .strict = true, .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "reg re#0+dest"),
		CONTENT(0, 0, 100, "inv end1:0+ok"),
	} },
	/* What is written as long as that can be done is summed */
	{ "validated, changed before the keys are back", .strict = true, .validate = true,
	  .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "reg re#0+dest"),
		FULL, CONTENT(0, 0, 100, ""), LIE, ROOM("inv end1:-74+text"),
	} },
	{ "validated, cut before the keys are back", .strict = true, .validate = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "reg re#0+dest"),
		FULL, CONTENT(0, 0, 100, ""), DOWN("end1:0+ok"),
	} },

	{ "the send queue takes no registration", .strict = true, .steps = {
		SENT, BREAK(-EIO), META(0, 100, "down:-104(posting to the send queue failed)"),
		DOWN("end1:-104+text"),
	} },
	{ "the send queue takes no invalidation", .strict = true, .steps = {
		DIRECT, BREAK(-EIO),
		CONTENT(0, 1, 100, "down:-104(posting to the send queue failed)"), DOWN("end2:0"),
	} },
	{ "cut while registered", .strict = true, .steps = {
		DIRECT, DOWN("end2:-104+text"),
	} },

	{ "apart", APART, .steps = {
		APART_KNOWN, FETCH(2, "x", "req#1+dest"), CONTENT(0, 1, 100, "inv end2:0"),
	} },
	{ "apart, tensor of no bytes", APART, .steps = {
		SENT, META(0, 0, "re#0+dest"), CONTENT(0, 0, 0, "end1:0"),
		FETCH(2, "x", "req#1+dest"), CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "apart, tensor of many keys", APART, .steps = {
		SENT, META(0, 9 << END_SEG_SHIFT, "re#0+dest"),
		CONTENT(0, 0, 1 << END_SEG_SHIFT, "inv9 end1:0"),
		FETCH(2, "x", "req#1+dest"), CONTENT(0, 1, 1 << END_SEG_SHIFT, "inv9 end2:0"),
	} },
	{ "apart, known tensor that has changed", APART, .steps = {
		APART_KNOWN, FETCH(2, "x", "req#1+dest"), META(1, 200, "inv re#1+dest"),
		CONTENT(0, 1, 200, "inv end2:0"),
	} },
	{ "apart, cut", APART, .steps = {
		APART_KNOWN, FETCH(2, "x", "req#1+dest"), DOWN("end2:-104+text"),
	} },
	{ "registering, goes on", APART, .steps = {
		APART_KEYS, GO("re#0+dest"), CONTENT(0, 0, 100, "inv end1:0"),
	} },
	{ "registering, cancelled", APART, .steps = {
		APART_KEYS, CANCEL(1, "cancel#0"), GO(""), CANCELLED(0, "inv end1:-125"),
	} },
	{ "registering, cancelled and answered", APART, .steps = {
		APART_KEYS, CANCEL(1, "cancel#0"), CANCELLED(0, ""), GO("inv end1:-125"),
	} },
	{ "registering, expired", APART, .steps = {
		APART_KEYS, EXPIRE(1, "cancel#0"), GO(""), CANCELLED(0, "inv end1:-110"),
	} },
	{ "registering, aborted", APART, .steps = {
		APART_KEYS, ABORT(1, -5, "cancel#0"), CANCELLED(0, ""), GO("inv end1:-5"),
	} },
	{ "registering, failed", APART, .steps = {
		APART_KEYS, ERR(0, -5, ""), CANCEL(1, ""), GO("inv end1:-5"),
	} },
	{ "registering, content", APART, .steps = {
		APART_KEYS, CONTENT(0, 0, 100, NOT_ASKED), GO(""), DOWN("end1:-71+text"),
	} },
	{ "registering, cut", APART, .steps = {
		APART_KEYS, DOWN(""), GO("end1:-104+text"),
	} },
	{ "registering, failed and cut", APART, .steps = {
		APART_KEYS, ERR(0, -5, ""), DOWN(""), GO("end1:-5"),
	} },
	{ "registration fails", APART, .steps = {
		SENT, BREAK_KEYS(-EIO), META(0, 100, NO_KEYS), DOWN("end1:-104+text"),
	} },
	{ "registration fails, cancelled and answered", APART, .steps = {
		APART_KEYS, BREAK_KEYS(-EIO), CANCEL(1, "cancel#0"), CANCELLED(0, ""),
		GO(NO_KEYS), DOWN("end1:-125"),
	} },
	{ "registration fails, cut", APART, .steps = {
		APART_KEYS, BREAK_KEYS(-EIO), DOWN(""), GO("end1:-104+text"),
	} },
	/* The region is the process's again when the queue pairs are gone */
	{ "registration fails, of a known tensor", APART, .steps = {
		APART_KNOWN, BREAK_KEYS(-EIO), FETCH(2, "x", NO_KEYS), DOWN("end2:-104+text"),
	} },
	{ "registration fails, of a known tensor that is cancelled", APART, .steps = {
		APART_KNOWN, BREAK_KEYS(-EIO), FETCH(2, "x", NO_KEYS), CANCEL(2, ""),
		DOWN("end2:-125"),
	} },
	{ "registration of the last keys fails", APART, .steps = {
		SENT, BREAK_KEYS_AFTER(2, -EIO), META(0, 9 << END_SEG_SHIFT, NO_KEYS),
		DOWN("end1:-104+text"),
	} },
	{ "registration fails, the device has gone", APART, .steps = {
		SENT, BREAK_KEYS(-ENODEV),
		META(0, 100, "down:-19(registering a destination failed)"),
		DOWN("end1:-19+text"),
	} },
	{ "apart, queued and cancelled", APART, .steps = {
		APART_KNOWN, FULL, FETCH(2, "x", ""), CANCEL(2, ""), ROOM("inv end2:-125"),
		FETCH(3, "x", "req#2+dest"),
	} },
	{ "apart, queued and cancelled, the peer receives nothing", APART, .steps = {
		APART_KNOWN, FULL, FETCH(2, "x", ""), EXPIRE(2, ""), SILENT,
		EXPIRE(2, KEYS_OPEN), DOWN("end2:-110"),
	} },
	{ "registering, content of several lanes, cancelled", .lanes = 2, APART, .steps = {
		SENT, HOLD_KEYS, META(0, 20480, ""), REGISTERING(""), CANCEL(1, "cancel#0"),
		CANCELLED(0, ""), GO("inv3 end1:-125"),
	} },
	{ "registering and revoking for ever", APART, .steps = {
		APART_KEYS, CANCEL(1, "cancel#0"), CANCELLED(0, ""), SILENT,
		EXPIRE(1, KEYS_OPEN), GO(""), DOWN("end1:-125"),
	} },
};

KUNIT_ARRAY_PARAM(strict, scripts, script_name);

static void strict(struct kunit *test)
{
	script_run(test, test->param_value);
}

static struct script_end *open_strict(struct kunit *test)
{
	struct rdmatensor_channel_params params = end_params;
	struct script_end *script;

	params.strict = true;
	script = script_open(test, 1, &params);
	script_up(script);
	return script;
}

#define DO(_script, _step) \
	do { \
		static const struct script_step step = _step; \
\
		script_do(_script, &step); \
	} while (0)

/* What of a message is registered when it is cancelled is invalidated, and no more */
static void cancelled_half_registered(struct kunit *test)
{
	struct script_end *script = open_strict(test);

	DO(script, FETCH(1, "x", "req#0"));
	DO(script, FULL);
	DO(script, META(0, LONG, ""));
	script->slow = true;
	DO(script, PLACES(3, "reg2"));
	DO(script, CANCEL(1, ""));
	script->slow = false;
	DO(script, ROOM("cancel#0"));
	DO(script, CANCELLED(0, "inv2 end1:-125"));
	script_close(script);
}

struct submitter {
	struct script_end *script;
	struct work_struct work;
};

static void submit(struct work_struct *work)
{
	DO(container_of(work, struct submitter, work)->script, FETCH(2, "x", "inv end2:-5"));
}

/* A request that has not had its turn, and is in no table of the peer's, has keys already */
static void aborted_while_submitted(struct kunit *test)
{
	struct submitter submitter = { .script = open_strict(test) };
	struct script_end *script = submitter.script;

	script->end->domain->apart = true;
	DO(script, FETCH(1, "x", "req#0"));
	DO(script, META(0, 100, "re#0+dest"));
	DO(script, CONTENT(0, 0, 100, "inv end1:0"));
	DO(script, HOLD_KEYS);
	INIT_WORK_ONSTACK(&submitter.work, submit);
	queue_work(system_unbound_wq, &submitter.work);
	DO(script, REGISTERING(""));
	end_abort_step(script->end, 1, -5);
	complete_all(&script->go);
	flush_work(&submitter.work);
	destroy_work_on_stack(&submitter.work);
	DO(script, GO(""));
	DO(script, STEP("req#2+dest", .op = OP_FETCH, .id = 3, .name = "x", .step_id = 2));
	script_close(script);
}

/* Nothing is told before the last invalidation has completed, and no memory region used again */
static void told_when_completed(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct list_head *idle = &script->end->domain->qp->rdma_mrs;

	DO(script, FETCH(1, "x", "req#0"));
	DO(script, META(0, LONG, "reg3 re#0+dest"));
	KUNIT_EXPECT_EQ(test, list_count_nodes(idle), END_MRS - 3);
	script->slow = true;
	DO(script, CONTENT(0, 0, 1 << END_SEG_SHIFT, "inv3"));
	end_complete(script->end, 0);
	end_complete(script->end, 0);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	KUNIT_EXPECT_EQ(test, list_count_nodes(idle), END_MRS - 3);
	end_complete(script->end, 0);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "end1:0");
	KUNIT_EXPECT_EQ(test, list_count_nodes(idle), END_MRS);
	script->slow = false;
	script_close(script);
}

/* Places in the send queue are counted: none is taken twice, and all come back */
static void places_are_counted(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_lane *lane = &script->end->channel->lanes[0];

	DO(script, FETCH(1, "x", "req#0"));
	KUNIT_EXPECT_EQ(test, lane->sendq_free, end_params.queue_depth);
	script->slow = true;
	DO(script, META(0, LONG, "reg3 re#0+dest"));
	KUNIT_EXPECT_EQ(test, lane->sendq_free, end_params.queue_depth - 4);
	script->slow = false;
	script_trace(script);
	KUNIT_EXPECT_EQ(test, lane->sendq_free, end_params.queue_depth);
	script->slow = true;
	DO(script, CONTENT(0, 0, 1 << END_SEG_SHIFT, "inv3"));
	KUNIT_EXPECT_EQ(test, lane->sendq_free, end_params.queue_depth - 3);
	script->slow = false;
	KUNIT_EXPECT_STREQ(test, script_trace(script), "end1:0");
	KUNIT_EXPECT_EQ(test, lane->sendq_free, end_params.queue_depth);
	script_close(script);
}

/* A memory region covers its bytes and no other, at addresses and by a key that are new */
static void exactly_the_bytes(struct kunit *test)
{
	static const struct {
		u64 offset;
		u64 bytes;
		u32 nr;
	} rows[] = {
		{ 0, 1, 1 }, { 100, 100, 1 }, { 0, 1 << END_SEG_SHIFT, 1 },
		{ PAGE_SIZE - 1, 2, 1 }, { (1 << END_SEG_SHIFT) - 1, 2, 2 },
		{ 100, LONG, 4 }, { 5 * PAGE_SIZE + 7, 3 * PAGE_SIZE, 3 },
	};
	struct script_end *script = open_strict(test);
	struct end *end = script->end;
	struct rdmatensor_exposure exposure = {};
	u64 at, last = 0;
	struct ib_mr *mr;
	u32 i, key = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		rdmatensor_exposure_begin(&exposure, end->domain, rows[i].offset, rows[i].bytes);
		KUNIT_EXPECT_EQ(test, exposure.nr_rkeys, rows[i].nr);
		while (!rdmatensor_exposure_is_whole(&exposure))
			KUNIT_ASSERT_EQ(test, rdmatensor_exposure_extend(&exposure,
									 &end->pool->reg,
									 GFP_KERNEL), 0);
		at = exposure.iova;
		KUNIT_EXPECT_GT(test, at, last);
		KUNIT_EXPECT_EQ(test, at & (PAGE_SIZE - 1), rows[i].offset & (PAGE_SIZE - 1));
		list_for_each_entry(mr, &exposure.mrs, qp_entry) {
			KUNIT_EXPECT_EQ(test, mr->iova, at);
			KUNIT_EXPECT_NE(test, mr->rkey, key);
			key = mr->rkey;
			at += mr->length;
		}
		KUNIT_EXPECT_EQ(test, at, exposure.iova + rows[i].bytes);
		last = at - 1;
		rdmatensor_exposure_end(&exposure);
	}
	script_close(script);
}

/* Until the timer of @user_data's fetch runs out, in jiffies */
static long left_of(struct script_end *script, u64 user_data)
{
	struct rdmatensor_operation_place place = { .user_data = user_data };
	struct rdmatensor_operation *op;
	long left;

	op = rdmatensor_operation_next(&script->end->core, &place);
	KUNIT_ASSERT_NOT_NULL(script->end->test, op);
	KUNIT_ASSERT_EQ(script->end->test, op->user_data, user_data);
	KUNIT_EXPECT_TRUE(script->end->test, timer_pending(&op->timer));
	left = op->timer.expires - jiffies;
	rdmatensor_operation_put(op);
	return left;
}

/*
 * The bound of an answer is cancel_ms, whatever length was announced meanwhile; that of a fetch
 * which has arrived is no less than what was posted before takes, or a line that loses some
 */
static void patience(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_channel_params params = *script->end->channel->params;
	const unsigned int cancel_ms = 100;

	params.cancel_ms = cancel_ms;
	params.lane_bytes = SZ_64M;
	script->end->channel->params = &params;
	DO(script, FETCH(1, "x", "req#0"));
	DO(script, META(0, 100, "reg re#0+dest"));
	DO(script, CONTENT(0, 0, 100, "inv end1:0"));
	DO(script, FETCH(2, "x", "reg req#1+dest"));
	DO(script, FULL);
	DO(script, META(1, 1ULL << 40, ""));
	DO(script, CANCEL(2, ""));
	KUNIT_EXPECT_LE(test, left_of(script, 2), (long)msecs_to_jiffies(cancel_ms) + 1);
	DO(script, ROOM("inv cancel#1"));
	DO(script, CANCELLED(1, "end2:-125"));

	DO(script, FETCH(3, "y", "req#2"));
	DO(script, META(2, 100, "reg re#2+dest"));
	DO(script, FULL);
	DO(script, CONTENT(0, 2, 100, ""));
	/* Four times lane_bytes, at 4096 bytes a millisecond */
	KUNIT_EXPECT_GE(test, left_of(script, 3),
			(long)msecs_to_jiffies(4 * (SZ_64M / 4096)) - HZ);
	DO(script, ROOM("inv end3:0"));

	params.lane_bytes = SZ_64K;
	DO(script, FETCH(4, "z", "req#3"));
	DO(script, META(3, 100, "reg re#3+dest"));
	DO(script, FULL);
	DO(script, CONTENT(0, 3, 100, ""));
	KUNIT_EXPECT_GE(test, left_of(script, 4), (long)HZ / 2);
	DO(script, ROOM("inv end4:0"));
	script_close(script);
}

static struct ib_mr *no_more(struct ib_pd *pd, enum ib_mr_type type, u32 entries)
{
	return ERR_PTR(-EAGAIN);
}

/* A destination for which there are not enough keys: the peer is told that it is not wanted */
static void ends_without_keys(struct kunit *test, struct script_end *script, const char *end)
{
	const struct script_step cancelled = CANCELLED(0, end);

	DO(script, FETCH(1, "x", "req#0"));
	DO(script, META(0, TOO_LONG, "cancel#0"));
	/* Those that there are, others need not wait for */
	KUNIT_EXPECT_EQ(test, script->end->domain->qp->mrs_used, 0);
	script_do(script, &cancelled);
}

/* Some drivers say "again" when they have none left, and would be asked for ever */
static void no_more_regions(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct end *end = script->end;

	end->ibdev->ops.alloc_mr = no_more;
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_grow(end->domain), -ENOMEM);
	ends_without_keys(test, script, "end1:-12");
	script_close(script);
}

static int post_and_refuse(struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad)
{
	struct ib_wc wc = { .status = IB_WC_LOC_PROT_ERR, .wr_cqe = wr->wr_cqe };

	wc.wr_cqe->done(qp->send_cq, &wc);
	return 0;
}

/* The first of two, and then what flushes it */
static int post_and_refuse_the_next(struct ib_qp *qp, const struct ib_send_wr *wr,
				    const struct ib_send_wr **bad)
{
	struct end *end = qp->qp_context;
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .wr_cqe = wr->wr_cqe };

	if (wr->next) {
		*bad = wr->next;
		return -ENOMEM;
	}
	KUNIT_EXPECT_EQ(end->test, wr->opcode, IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(end->test, wr->num_sge, 0);
	wc.wr_cqe->done(qp->send_cq, &wc);
	return 0;
}

static int modify_to_error(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	struct end *end = qp->qp_context;

	KUNIT_EXPECT_EQ(end->test, attr->qp_state, IB_QPS_ERR);
	return 0;
}

/* All is well, and the queue pair fails in that moment */
static int post_and_fail_later(struct ib_qp *qp, const struct ib_send_wr *wr,
			       const struct ib_send_wr **bad)
{
	struct ib_event event = { .event = IB_EVENT_QP_FATAL, .element.qp = qp };
	struct end *end = qp->qp_context;
	struct ib_wc wc = { .status = IB_WC_SUCCESS, .wr_cqe = wr->wr_cqe };

	wc.wr_cqe->done(qp->send_cq, &wc);
	rdmatensor_domain_qp_event(&event, end->domain);
	return 0;
}

/* Reports that the queue pair has failed, and says nothing more */
static int post_and_fail(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct end *end = qp->qp_context;
	struct ib_event event = { .event = IB_EVENT_COMM_EST, .element.qp = qp };

	rdmatensor_domain_qp_event(&event, end->domain);
	KUNIT_EXPECT_FALSE(end->test, end->domain->doubtful);
	event.event = IB_EVENT_QP_FATAL;
	rdmatensor_domain_qp_event(&event, end->domain);
	return 0;
}

/* Has been seen to complete nothing, and to report no failure */
static int post_and_be_silent(struct ib_qp *qp, const struct ib_send_wr *wr,
			      const struct ib_send_wr **bad)
{
	return 0;
}

/* What was posted is flushed only now */
static int modify_and_flush(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			    struct ib_udata *udata)
{
	struct end *end = qp->qp_context;
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .wr_cqe = &end->domain->last_cqe };

	KUNIT_EXPECT_EQ(end->test, mask, IB_QP_STATE);
	KUNIT_EXPECT_EQ(end->test, attr->qp_state, IB_QPS_ERR);
	wc.wr_cqe->done(qp->send_cq, &wc);
	return 0;
}

static int modify_no_more(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	return -ETIMEDOUT;
}

/* A chain of one, and that it takes so many seconds */
static int posted_within(struct rdmatensor_domain *domain, struct ib_reg_wr *wrs, int least,
			 int most)
{
	struct end *end = domain->qp->qp_context;
	unsigned long begin = jiffies;
	int ret = rdmatensor_domain_post(domain, wrs, 1);

	KUNIT_EXPECT_GE(end->test, jiffies - begin, least * HZ);
	KUNIT_EXPECT_LE(end->test, jiffies - begin, most * HZ);
	return ret;
}

/*
 * A device that has failed: what it does not complete is given up, and no more posted before it
 * has
 */
static void registrations_that_do_not_complete(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_domain *domain = script->end->domain;
	struct ib_device *ibdev = script->end->ibdev;
	struct ib_reg_wr wrs[2] = {
		{ .mr = &script->end->mrs[0] }, { .mr = &script->end->mrs[1] },
	};
	struct ib_wc late = { .status = IB_WC_WR_FLUSH_ERR };

	/* What ib_core looks at */
	ibdev->port_data = kunit_kzalloc(test, sizeof(*ibdev->port_data), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibdev->port_data);
	domain->qp->real_qp = domain->qp;
	/* One that completes takes its queue pair with it, too */
	ibdev->ops.post_send = post_and_refuse;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), -EIO);
	KUNIT_EXPECT_TRUE(test, domain->broken);
	domain->broken = false;
	ibdev->ops.post_send = post_and_refuse_the_next;
	ibdev->ops.modify_qp = modify_to_error;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 2), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, domain->done);
	KUNIT_EXPECT_TRUE(test, domain->broken);
	domain->broken = false;
	/* Nor could it be told to flush, and works on: what tells of the end completes behind it */
	ibdev->ops.modify_qp = modify_no_more;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 2), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, domain->done);
	KUNIT_EXPECT_FALSE(test, domain->dead);
	domain->broken = false;
	ibdev->ops.post_send = post_and_fail_later;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), 0);
	KUNIT_EXPECT_TRUE(test, domain->broken);
	domain->broken = false;
	domain->doubtful = false;
	ibdev->ops.post_send = post_and_fail;
	ibdev->ops.modify_qp = modify_and_flush;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), -EIO);
	KUNIT_EXPECT_TRUE(test, domain->broken);
	KUNIT_EXPECT_FALSE(test, domain->dead);
	domain->broken = false;
	domain->doubtful = false;
	ibdev->ops.post_send = post_and_refuse;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), -EIO);
	KUNIT_EXPECT_FALSE(test, domain->silent);
	domain->broken = false;
	/* Nor does one whose device says nothing, and does what it is told */
	ibdev->ops.post_send = post_and_be_silent;
	KUNIT_EXPECT_EQ(test, posted_within(domain, wrs, 20, 60), -EIO);
	KUNIT_EXPECT_TRUE(test, domain->broken);
	KUNIT_EXPECT_FALSE(test, domain->dead);
	domain->broken = false;
	/* Who comes next does not wait as long */
	KUNIT_EXPECT_EQ(test, posted_within(domain, wrs, 1, 15), -EIO);
	domain->broken = false;
	ibdev->ops.post_send = post_and_fail;
	ibdev->ops.modify_qp = modify_no_more;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), -ENODEV);
	KUNIT_EXPECT_TRUE(test, domain->dead);
	/* Not even tried */
	ibdev->ops.post_send = NULL;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), -ENODEV);
	/* It was only late: its queue pair is connected again, or would be replaced */
	late.wr_cqe = &domain->last_cqe;
	late.wr_cqe->done(domain->cq, &late);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_post(domain, wrs, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_FALSE(test, domain->dead);
	script_close(script);
}

/* There are so many of a channel, whatever its fetches want; and the device is not asked */
static void keys_of_a_channel_are_bounded(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_domain *domain = script->end->domain;

	script->end->ibdev->ops.alloc_mr = no_more;
	domain->keys_made = 16383;
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_grow(domain), -ENOMEM);
	domain->keys_made = 16384;
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_grow(domain), -EDQUOT);
	ends_without_keys(test, script, "end1:-122");
	script_close(script);
}

/*
 * Others leave no key to a fetch of a known tensor. One whose destination has been paid for goes on
 * without it, and gets it when the peer has answered; one that is to have its region made is
 * not begun
 */
static void keys_of_a_known_tensor_are_taken(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_domain *domain = script->end->domain;
	struct ib_qp *qp = domain->qp;
	u32 made = domain->keys_made;
	LIST_HEAD(others);
	struct ib_mr *mr;

	DO(script, FETCH(1, "x", "req#0"));
	DO(script, META(0, 100, "reg re#0+dest"));
	DO(script, CONTENT(0, 0, 100, "inv end1:0"));
	while ((mr = ib_mr_pool_get(qp, &qp->rdma_mrs)))
		list_add(&mr->qp_entry, &others);
	domain->keys_made = 16384;
	DO(script, FETCH_FAILS(2, "x", 0, -EDQUOT));
	DO(script, FETCH_INTO(3, "x", 100, "req#1"));
	domain->keys_made = made;
	while ((mr = list_first_entry_or_null(&others, struct ib_mr, qp_entry))) {
		list_del(&mr->qp_entry);
		ib_mr_pool_put(qp, &qp->rdma_mrs, mr);
	}
	DO(script, META(1, 100, "reg re#1+dest"));
	DO(script, CONTENT(0, 1, 100, "inv end3:0"));
	script_close(script);
}

/* What a kernel thread was to make, and the device could not, is no debt that anybody can pay */
static void key_that_was_never_made_is_forgiven(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_domain *domain = script->end->domain;

	script->end->ibdev->ops.alloc_mr = no_more;
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_grow(domain), -ENOMEM);
	KUNIT_EXPECT_EQ(test, domain->keys_made, 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 1);
	KUNIT_EXPECT_EQ(test, rdmatensor_quota_owed(&domain->keys), 1);
	mutex_lock(&domain->keys_lock);
	rdmatensor_exposure_free_owed(domain);
	mutex_unlock(&domain->keys_lock);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_quota_owed(&domain->keys), 0);
	/* And nobody else's key has gone with it */
	KUNIT_EXPECT_FALSE(test, list_empty(&domain->qp->rdma_mrs));
	script_close(script);
}

/* As many as there can be at one time: of all fetches, or of those that may be outstanding */
static void keys_are_paid_for(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_domain *domain = script->end->domain;
	u64 step = 1ULL << END_SEG_SHIFT;

	KUNIT_EXPECT_EQ(test, rdmatensor_wire_segments(7, 0, END_SEG_SHIFT), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_wire_segments(7, step - 7, END_SEG_SHIFT), 1);
	KUNIT_EXPECT_EQ(test, rdmatensor_wire_segments(7, step - 6, END_SEG_SHIFT), 2);
	KUNIT_EXPECT_EQ(test, rdmatensor_wire_segments(step - 1, 2 * step + 1, END_SEG_SHIFT), 3);

	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 3, 5, 8), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 5);
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 3, 100, 8), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 24);
	/* What was paid for stays so */
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 1, 20, 8), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 24);
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 1, 100, 9), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 27);
	/* As if a process had paid, which this thread cannot: the next ones take no lock */
	rdmatensor_quota_forgive(&domain->keys, rdmatensor_quota_owed(&domain->keys));
	/* One that takes more than each before it is remembered, though it was paid for */
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 20, 20, 8), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 27);
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 1, 100, 8), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 100);
	KUNIT_EXPECT_EQ(test, rdmatensor_exposure_reserve(domain, 10000, U32_MAX, 256), 0);
	KUNIT_EXPECT_EQ(test, domain->keys_paid, 16384);
	script_close(script);
}

/* What fetches may take of them is told as long as they are there, and no longer */
static void keys_of_fetches_are_counted(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_channel *channel = script->end->channel;

	DO(script, FETCH_INTO(1, "x", LONG, "req#0"));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 3);
	DO(script, META(0, 100, "reg re#0+dest"));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 3);
	/* How long what the kernel allocates will be nobody knows: it is one at least */
	DO(script, FETCH(2, "y", "req#1"));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 4);
	DO(script, CONTENT(0, 0, 100, "inv end1:0"));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 1);
	KUNIT_EXPECT_EQ(test, script->end->domain->keys_paid, 4);
	script_close(script);
}

/* A fetch whose entry the process has needs none, whatever the peer still owes it */
static void keys_of_late_fetches_are_given_back(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct rdmatensor_channel *channel = script->end->channel;

	DO(script, FETCH(1, "x", "req#0"));
	DO(script, META(0, 100, "reg re#0+dest"));
	DO(script, CANCEL(1, "cancel#0"));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 1);
	DO(script, CONTENT(0, 0, 100, "inv end1:0"));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 0);
	DO(script, CANCELLED(0, ""));
	KUNIT_EXPECT_EQ(test, atomic64_read(&channel->nr_keys), 0);
	script_close(script);
}

/* A memory region that was used last is used again after all others that are idle */
static void keys_rest(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct end *end = script->end;
	struct rdmatensor_exposure exposure = {};
	struct ib_mr *used[END_MRS] = {};
	u32 keys[END_MRS] = {};
	int i, j;

	for (i = 0; i < 3 * END_MRS; i++) {
		struct ib_mr *mr;

		rdmatensor_exposure_begin(&exposure, end->domain, 0, 1);
		KUNIT_ASSERT_EQ(test, rdmatensor_exposure_extend(&exposure, &end->pool->reg,
								 GFP_KERNEL), 0);
		mr = list_first_entry(&exposure.mrs, struct ib_mr, qp_entry);
		KUNIT_EXPECT_EQ(test, end->domain->qp->mrs_used, 1);
		/* Each once in a round, in the same order in each */
		for (j = 0; j < END_MRS && i < END_MRS; j++)
			KUNIT_EXPECT_PTR_NE(test, used[j], mr);
		if (i >= END_MRS)
			KUNIT_EXPECT_PTR_EQ(test, used[i % END_MRS], mr);
		/* By another key than the last time */
		KUNIT_EXPECT_NE(test, keys[i % END_MRS], mr->rkey);
		keys[i % END_MRS] = mr->rkey;
		used[i % END_MRS] = mr;
		rdmatensor_exposure_end(&exposure);
	}
	KUNIT_EXPECT_EQ(test, end->domain->qp->mrs_used, 0);
	script_close(script);
}

/* What is sent is read by the addresses of the memory, with the one key that reaches all of it */
static void sent_by_address(struct kunit *test)
{
	struct script_end *script = open_strict(test);
	struct post *post;
	u64 sent = 0;
	int i;

	DO(script, PUBLISH(1, "x", LONG, 1, ""));
	DO(script, REQ_DEST(0, "x", LONG, "w0#0:8192 w0#0:8192 w0#0:8192!"));
	spin_lock_bh(&script->end->channel->lock);
	list_for_each_entry(post, &script->end->posted[0], item)
		for (i = 0; i < post->nr_sge; i++) {
			u32 run;

			KUNIT_EXPECT_EQ(test, post->sge[i].lkey, 7U);
			KUNIT_EXPECT_EQ(test, post->sge[i].addr,
					(u64)(uintptr_t)end_at(script->end, sent, &run));
			sent += post->sge[i].length;
		}
	spin_unlock_bh(&script->end->channel->lock);
	KUNIT_EXPECT_EQ(test, sent, (u64)LONG);
	DO(script, DONE("pub1:0"));
	script_close(script);
}

static struct kunit_case strict_tests[] = {
	KUNIT_CASE_PARAM(strict, strict_gen_params),
	KUNIT_CASE(cancelled_half_registered),
	KUNIT_CASE(aborted_while_submitted),
	KUNIT_CASE(told_when_completed),
	KUNIT_CASE(places_are_counted),
	KUNIT_CASE(exactly_the_bytes),
	KUNIT_CASE(registrations_that_do_not_complete),
	KUNIT_CASE(keys_of_a_channel_are_bounded),
	KUNIT_CASE(keys_of_a_known_tensor_are_taken),
	KUNIT_CASE(key_that_was_never_made_is_forgiven),
	KUNIT_CASE(keys_are_paid_for),
	KUNIT_CASE(keys_of_fetches_are_counted),
	KUNIT_CASE(keys_of_late_fetches_are_given_back),
	KUNIT_CASE(keys_rest),
	KUNIT_CASE(patience),
	KUNIT_CASE(no_more_regions),
	KUNIT_CASE(sent_by_address),
	{}
};

static struct kunit_suite strict_suite = {
	.name = "rdmatensor_strict",
	.test_cases = strict_tests,
};

kunit_test_suite(strict_suite);
