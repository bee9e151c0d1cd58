// SPDX-License-Identifier: GPL-2.0
/*
 * Responses: every state, and in every state everything that the peer, the
 * process and the device can do; and where the tensor is afterwards. The words
 * are in script.h; fetches of the peer are #0 and on, the tensor is number 7.
 */
#include "script.h"

/* Ways into a state */
#define OFFERED		PUBLISH(7, "x", 100, 1, "")
#define WAITING		REQ(0, "x", "")
#define CHECKSUM	OFFERED, HOLD, REQ(0, "x", "")
#define META_QUEUED	OFFERED, FULL, REQ(0, "x", "")
#define META_SENT	OFFERED, REQ(0, "x", "meta#0")
#define WRITING		OFFERED, REQ_DEST(0, "x", 100, "w0#0:100!")
#define ERROR_QUEUED	PUBLISH_FAILED(7, "x", -5, ""), FULL, REQ(0, "x", "pub7:0")

#define NAMED RDMATENSOR_WIRE_FEATURE_ERROR_NAMED
#define NAME64 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define NAME512 NAME64 NAME64 NAME64 NAME64 NAME64 NAME64 NAME64 NAME64

#define IN_USE "down:-71(request index is in use already)"
#define TOO_MANY "down:-71(more requests outstanding than allowed)"
#define RE_TURN "down:-71(TENSOR_RE_REQUEST out of turn)"
#define OTHER_META "down:-71(TENSOR_RE_REQUEST with other meta-data than it was told)"
#define SECOND_CANCEL "down:-71(second CANCEL of one request)"
#define LANES "down:-71(more parts than lanes)"

static const struct script scripts[] = {
	{ "published first", .steps = {
		META_SENT, RE(0, 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "requested first", .steps = {
		WAITING, PUBLISH(7, "x", 100, 1, "meta#0"), RE(0, 100, "w0#0:100!"),
		DONE("pub7:0"),
	} },
	{ "known to the peer", .steps = {
		WRITING, DONE("pub7:0"),
	} },
	{ "known to the peer, requested first", .steps = {
		REQ_DEST(0, "x", 100, ""), PUBLISH(7, "x", 100, 1, "w0#0:100!"),
		DONE("pub7:0"),
	} },
	{ "has changed", .steps = {
		OFFERED, REQ_DEST(0, "x", 64, "meta#0"), RE(0, 100, "w0#0:100!"),
		DONE("pub7:0"),
	} },
	{ "used twice", .steps = {
		PUBLISH(7, "x", 100, 2, ""), REQ_DEST(0, "x", 100, "w0#0:100!"),
		REQ_DEST(1, "x", 100, "w0#1:100!"), DONE("pub7:0"),
	} },
	{ "for good", .left = 1, .steps = {
		PUBLISH(7, "x", 100, 0, ""), REQ_DEST(0, "x", 100, "w0#0:100!"), DONE(""),
		REQ_DEST(0, "x", 100, "w0#0:100!"), DONE(""),
	} },
	{ "index is free again when the content has gone", .steps = {
		PUBLISH(7, "x", 100, 2, ""), REQ_DEST(0, "x", 100, "w0#0:100!"), DONE(""),
		REQ_DEST(0, "x", 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "dead", .steps = {
		PUBLISH_DEAD(7, "x", ""), REQ(0, "x", "meta#0"),
		RX("w0#0:0!", .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = 0,
		   .flags = RDMATENSOR_WIRE_F_DEST, .nr_parts = 1, .seg_shift = END_SEG_SHIFT,
		   .meta = SCRIPT_DEAD),
		DONE("pub7:0"),
	} },
	{ "empty", .steps = {
		PUBLISH(7, "x", 0, 1, ""), REQ(0, "x", "meta#0"), RE(0, 0, "w0#0:0!"),
		DONE("pub7:0"),
	} },
	{ "failed", .steps = {
		PUBLISH_FAILED(7, "x", -5, ""), REQ(0, "x", "err#0:-5 pub7:0"),
	} },
	{ "failed, requested first", .steps = {
		WAITING, PUBLISH_FAILED(7, "x", -5, "err#0:-5 pub7:0"),
	} },
	{ "failed, named", .features = NAMED, .steps = {
		PUBLISH_SAYS(7, "x", -5, 10, ""), REQ(0, "x", "err#0:-5+x@1+text10 pub7:0"),
	} },
	{ "failed, requested first, named", .features = NAMED, .slot_bytes = 2048, .steps = {
		WAITING, PUBLISH_SAYS(7, "x", -5, 1024, "err#0:-5+x@1+text1024 pub7:0"),
	} },
	{ "failed, the longest text that an old peer takes", .steps = {
		PUBLISH_SAYS(7, "x", -5, 128, ""), REQ(0, "x", "err#0:-5+text128 pub7:0"),
	} },
	{ "failed, a longer text than an old peer takes", .steps = {
		PUBLISH_SAYS(7, "x", -5, 129, ""), REQ(0, "x", "err#0:-5+text128+... pub7:0"),
	} },
	{ "failed, the longest text with the smallest slots and the longest name",
	  .features = NAMED, .slot_bytes = 1024, .steps = {
		PUBLISH_SAYS(7, NAME512, -5, 448, ""),
		REQ(0, NAME512, "err#0:-5+nnnnnnnn@1+text448 pub7:0"),
	} },
	{ "failed, a text that is cut by one byte", .features = NAMED, .slot_bytes = 1024,
	  .steps = {
		PUBLISH_SAYS(7, NAME512, -5, 449, ""),
		REQ(0, NAME512, "err#0:-5+nnnnnnnn@1+text448+... pub7:0"),
	} },
	{ "failed, the longest text with the smallest slots", .features = NAMED,
	  .slot_bytes = 1024, .steps = {
		PUBLISH_SAYS(7, "x", -5, 959, ""), REQ(0, "x", "err#0:-5+x@1+text959 pub7:0"),
		PUBLISH_SAYS(8, "x", -5, 1024, ""),
		REQ(1, "x", "err#1:-5+x@1+text959+... pub8:0"),
	} },
	{ "failed, everything longest", .features = NAMED, .slot_bytes = 2048, .steps = {
		PUBLISH_SAYS(7, NAME512, -5, 1024, ""),
		REQ(0, NAME512, "err#0:-5+nnnnnnnn@1+text1024 pub7:0"),
	} },
	{ "aborted while it waits, named", .features = NAMED, .steps = {
		WAITING, ABORT(1, -5, "err#0:-5+x@1"), REQ(1, "y", "err#1:-5+y@1"),
	} },
	{ "aborted in the checksum, named", .features = NAMED, .validate = true, .steps = {
		CHECKSUM, ABORT(1, -5, ""), GO("err#0:-5+x@1 pub7:-5"),
	} },
	{ "aborted after the meta-data, named", .features = NAMED, .steps = {
		META_SENT, ABORT(1, -5, "err#0:-5+x@1 pub7:-5"),
	} },
	{ "cancelled while an error is queued, not named", .features = NAMED, .steps = {
		ERROR_QUEUED, CANCEL_OF(0, ""), ROOM("cancelled#0"),
	} },
	{ "several keys", .steps = {
		PUBLISH(7, "x", 20000, 1, ""),
		RX("w0#0:4096 w0#0:8192 w0#0:7712!", .type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		   .request_index = 0, .name = "x", .name_len = 1,
		   .flags = RDMATENSOR_WIRE_F_DEST, .nr_parts = 1, .seg_shift = END_SEG_SHIFT,
		   .remote_addr = END_IOVA + 4096, .meta = SCRIPT_META(20000)),
		DONE("pub7:0"),
	} },
	{ "striped", .lanes = 2, .steps = {
		PUBLISH(7, "x", 20480, 1, ""),
		RX("w0#0:8192 w0#0:4096! w1#0:4096 w1#0:4096!",
		   .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 0, .name = "x",
		   .name_len = 1, SCRIPT_DEST(20480, 2)),
		DONE("pub7:0"),
	} },
	{ "more parts than lanes", .left = 1, .steps = {
		OFFERED, RX(LANES, .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 0,
			    .name = "x", .name_len = 1, SCRIPT_DEST(100, 2)),
	} },
	{ "more parts than lanes, asked again", .left = 1, .steps = {
		META_SENT, RX(LANES, .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
			      .request_index = 0, SCRIPT_DEST(100, 2)),
	} },
	{ "more than allowed", .max_requests = 1, .steps = {
		REQ(0, "x", ""), REQ(1, "y", ""), REQ(2, "z", TOO_MANY),
	} },
	{ "answers of more than allowed", .max_requests = 1, .steps = {
		REQ(0, "x", ""), REQ(1, "y", ""), CANCEL_OF(2, TOO_MANY),
	} },
	{ "contents wait for one another", .max_requests = 1, .steps = {
		PUBLISH(7, "x", 100, 2, ""), REQ_DEST(0, "x", 100, "w0#0:100!"),
		REQ_DEST(1, "x", 100, ""), DONE("w0#1:100!"), DONE("pub7:0"),
	} },
	{ "re-request of nothing", .steps = {
		RE(5, 100, ""),
	} },

	{ "waiting, asked twice", .steps = {
		WAITING, REQ(0, "y", IN_USE),
	} },
	{ "waiting, asked again", .steps = {
		WAITING, RE(0, 100, RE_TURN),
	} },
	{ "waiting, cancelled", .left = 1, .steps = {
		WAITING, CANCEL_OF(0, "cancelled#0"), OFFERED,
	} },
	{ "waiting, aborted", .steps = {
		WAITING, ABORT(1, -5, "err#0:-5"), REQ(1, "x", "err#1:-5"),
		STEP("", .op = OP_PUBLISH, .name = "x", .bytes = 100, .ret = -5),
	} },
	{ "waiting, cut", .left = 1, .steps = {
		WAITING, DOWN(""), OFFERED,
	} },

	{ "checksum", .validate = true, .steps = {
		CHECKSUM, GO("meta#0+sum"), RE(0, 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "checksum by the receiver's will", .steps = {
		OFFERED, RX("meta#0+sum", .type = RDMATENSOR_WIRE_TENSOR_REQUEST,
			    .request_index = 0, .name = "x", .name_len = 1,
			    .flags = RDMATENSOR_WIRE_F_VALIDATE),
		RE(0, 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "checksum, out of the CPU's reach", .validate = true, .unreachable = true, .left = 1,
	  .steps = {
		OFFERED, REQ(0, "x", "err#0:-95+text90"),
	} },
	{ "out of the CPU's reach", .unreachable = true, .steps = {
		OFFERED, REQ(0, "x", "meta#0"), RE(0, 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "checksum of a known tensor", .validate = true, .steps = {
		OFFERED, REQ_DEST(0, "x", 100, "meta#0+sum"), RE(0, 100, "w0#0:100!"),
		DONE("pub7:0"),
	} },
	{ "checksum of nothing", .validate = true, .steps = {
		PUBLISH(7, "x", 0, 1, ""), REQ(0, "x", "meta#0+sum"), RE(0, 0, "w0#0:0!"),
		DONE("pub7:0"),
	} },
	{ "checksum of a failed tensor", .validate = true, .steps = {
		PUBLISH_FAILED(7, "x", -5, ""), REQ(0, "x", "err#0:-5 pub7:0"),
	} },
	{ "checksum, asked again", .validate = true, .left = 1, .steps = {
		CHECKSUM, RE(0, 100, RE_TURN), GO(""),
	} },
	{ "checksum, cancelled", .validate = true, .left = 1, .steps = {
		CHECKSUM, CANCEL_OF(0, ""), GO("cancelled#0"),
	} },
	{ "checksum, cancelled twice", .validate = true, .left = 1, .steps = {
		CHECKSUM, CANCEL_OF(0, ""), CANCEL_OF(0, SECOND_CANCEL), GO(""),
	} },
	{ "checksum, aborted", .validate = true, .steps = {
		CHECKSUM, ABORT(1, -5, ""), GO("err#0:-5 pub7:-5"),
	} },
	{ "checksum, withdrawn", .validate = true, .steps = {
		CHECKSUM, WITHDRAW(8, "x", ""), GO("meta#0+sum"), RE(0, 100, "w0#0:100!"),
		DONE("pub7:-125 wd8:0"),
	} },
	{ "checksum, cut", .validate = true, .left = 1, .steps = {
		CHECKSUM, DOWN(""), GO(""),
	} },

	{ "description queued, asked again", .left = 1, .steps = {
		META_QUEUED, RE(0, 100, RE_TURN), ROOM(""),
	} },
	{ "description queued, cancelled", .left = 1, .steps = {
		META_QUEUED, CANCEL_OF(0, ""), ROOM("cancelled#0"),
	} },
	{ "description queued, aborted", .steps = {
		META_QUEUED, ABORT(1, -5, "pub7:-5"), ROOM("err#0:-5"),
	} },
	{ "description queued, aborted and cancelled", .steps = {
		META_QUEUED, ABORT(1, -5, "pub7:-5"), CANCEL_OF(0, ""), ROOM("cancelled#0"),
	} },
	{ "description queued, cut", .left = 1, .steps = {
		META_QUEUED, DOWN(""),
	} },

	{ "described, asked twice", .left = 1, .steps = {
		META_SENT, REQ(0, "x", IN_USE),
	} },
	{ "described, asked again for another tensor", .left = 1, .steps = {
		META_SENT, RE(0, 99, OTHER_META),
	} },
	{ "described, asked again for another step", .left = 1, .steps = {
		META_SENT, RX(RE_TURN, .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .step_id = 2,
			      .request_index = 0, SCRIPT_DEST(100, 1)),
	} },
	{ "described, cancelled", .left = 1, .steps = {
		META_SENT, CANCEL_OF(0, "cancelled#0"),
	} },
	{ "described, cancelled, another waits", .steps = {
		META_SENT, REQ(1, "x", ""), CANCEL_OF(0, "cancelled#0 meta#1"),
		RE(1, 100, "w0#1:100!"), DONE("pub7:0"),
	} },
	{ "described, cancelled and asked again", .left = 1, .steps = {
		META_SENT, FULL, CANCEL_OF(0, ""), RE(0, 100, ""), ROOM("cancelled#0"),
	} },
	{ "described, aborted", .steps = {
		META_SENT, ABORT(1, -5, "err#0:-5 pub7:-5"), RE(0, 100, ""),
	} },
	{ "described, another step is aborted", .steps = {
		META_SENT, ABORT(2, -5, ""), RE(0, 100, "w0#0:100!"), DONE("pub7:0"),
	} },
	{ "described, withdrawn", .steps = {
		META_SENT, WITHDRAW(8, "x", ""), RE(0, 100, "w0#0:100!"),
		DONE("pub7:-125 wd8:0"),
	} },
	{ "described, withdrawn and cancelled", .steps = {
		META_SENT, WITHDRAW(8, "x", ""), CANCEL_OF(0, "cancelled#0 pub7:-125 wd8:0"),
	} },
	{ "described, cut", .left = 1, .steps = {
		META_SENT, DOWN(""),
	} },
	{ "described, cut, another waits", .left = 1, .steps = {
		META_SENT, REQ(1, "x", ""), DOWN(""),
	} },

	{ "writing, asked twice", .left = 1, .steps = {
		WRITING, REQ(0, "x", IN_USE),
	} },
	{ "writing, asked again", .left = 1, .steps = {
		WRITING, RE(0, 100, RE_TURN),
	} },
	{ "writing, cancelled", .steps = {
		WRITING, CANCEL_OF(0, ""), DONE("cancelled#0 pub7:0"),
	} },
	{ "writing, cancelled twice", .left = 1, .steps = {
		WRITING, CANCEL_OF(0, ""), CANCEL_OF(0, SECOND_CANCEL),
	} },
	{ "writing, aborted", .steps = {
		WRITING, ABORT(1, -5, ""), DONE("pub7:-5"),
	} },
	{ "writing, withdrawn", .steps = {
		WRITING, WITHDRAW(8, "x", ""), DONE("pub7:-125 wd8:0"),
	} },
	{ "writing, cut", .left = 1, .steps = {
		WRITING, DOWN(""),
	} },
	{ "writing, cancelled and cut", .left = 1, .steps = {
		WRITING, CANCEL_OF(0, ""), DOWN(""),
	} },
	{ "writing waits for its turn, cancelled", .max_requests = 1, .steps = {
		PUBLISH(7, "x", 100, 2, ""), REQ_DEST(0, "x", 100, "w0#0:100!"),
		REQ_DEST(1, "x", 100, ""), CANCEL_OF(1, "cancelled#1"), DONE(""),
		REQ_DEST(2, "x", 100, "w0#2:100!"), DONE("pub7:0"),
	} },
	{ "writing, cancelled when some is posted", .steps = {
		PUBLISH(7, "x", 24576, 1, ""), FULL, REQ_DEST(0, "x", 24576, ""),
		PLACES(2, "w0#0:8192"), CANCEL_OF(0, ""), ROOM(""), DONE("cancelled#0"),
		REQ_DEST(1, "x", 24576, "w0#1:8192 w0#1:8192 w0#1:8192!"), DONE("pub7:0"),
	} },
	{ "writing, cancelled when some has arrived", .left = 1, .steps = {
		PUBLISH(7, "x", 24576, 1, ""), FULL, REQ_DEST(0, "x", 24576, ""),
		PLACES(2, "w0#0:8192"), FULL, DONE(""), CANCEL_OF(0, ""), ROOM("cancelled#0"),
	} },
	{ "writing, cancelled when one lane has all", .lanes = 2, .steps = {
		PUBLISH(7, "x", 20480, 1, ""), FULL,
		RX("w1#0:4096 w1#0:4096!", .type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		   .request_index = 0, .name = "x", .name_len = 1, SCRIPT_DEST(20480, 2)),
		CANCEL_OF(0, ""), DONE(""), ROOM("w0#0:8192 w0#0:4096!"),
		DONE("cancelled#0 pub7:0"),
	} },
	{ "writing over two lanes, cancelled before", .lanes = 2, .max_requests = 1, .left = 1,
	  .steps = {
		PUBLISH(7, "x", 20480, 2, ""),
		RX("w0#0:8192 w0#0:4096! w1#0:4096 w1#0:4096!",
		   .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 0, .name = "x",
		   .name_len = 1, SCRIPT_DEST(20480, 2)),
		RX("", .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 1, .name = "x",
		   .name_len = 1, SCRIPT_DEST(20480, 2)),
		CANCEL_OF(1, "cancelled#1"), DONE(""),
	} },
	{ "writing, cancelled when some is posted, cut", .left = 1, .steps = {
		PUBLISH(7, "x", 24576, 1, ""), FULL, REQ_DEST(0, "x", 24576, ""),
		PLACES(2, "w0#0:8192"), CANCEL_OF(0, ""), DOWN(""),
	} },
	{ "writing waits for its turn, cut", .max_requests = 1, .left = 1, .steps = {
		PUBLISH(7, "x", 100, 2, ""), REQ_DEST(0, "x", 100, "w0#0:100!"),
		REQ_DEST(1, "x", 100, ""), DOWN(""),
	} },

	{ "error queued, asked twice", .steps = {
		ERROR_QUEUED, REQ(0, "x", IN_USE), ROOM(""),
	} },
	{ "error queued, asked again", .steps = {
		ERROR_QUEUED, RE(0, 100, ""), ROOM("err#0:-5"),
	} },
	{ "error queued, cancelled", .steps = {
		ERROR_QUEUED, CANCEL_OF(0, ""), ROOM("cancelled#0"),
	} },
	{ "error queued, cancelled twice", .steps = {
		ERROR_QUEUED, CANCEL_OF(0, ""), CANCEL_OF(0, SECOND_CANCEL), ROOM(""),
	} },
	{ "error queued, cut", .steps = {
		ERROR_QUEUED, DOWN(""),
	} },
	{ "ended, cancelled", .steps = {
		WRITING, DONE("pub7:0"), CANCEL_OF(0, "cancelled#0"), REQ(0, "x", ""),
	} },
};

KUNIT_ARRAY_PARAM(response, scripts, script_name);

static void response(struct kunit *test)
{
	script_run(test, test->param_value);
}

static struct kunit_case response_tests[] = {
	KUNIT_CASE_PARAM(response, response_gen_params),
	{}
};

static struct kunit_suite response_suite = {
	.name = "rdmatensor_response",
	.test_cases = response_tests,
};

kunit_test_suite(response_suite);
