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

#define NAMED RDMATENSOR_WIRE_FEATURE_ERROR_NAMED
#define SLICED RDMATENSOR_WIRE_FEATURE_SLICE
#define NO_SLICE "down:-71(META_DATA_RESPONSE of a tensor that has no such slice)"
#define OTHER_ERROR "down:-71(ERROR_STATUS of another tensor)"
#define NOT_SENT "down:-71(answer to a request that was not sent or has ended)"
#define NOT_ASKED "down:-71(content that was not asked for)"
#define NO_CANCEL "down:-71(answer to a CANCEL that was not sent)"
#define META_TURN "down:-71(META_DATA_RESPONSE out of turn)"
#define META_PART "down:-71(META_DATA_RESPONSE after a part of the content)"
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
	{ "slice of an unknown tensor, and all of it", .features = SLICED, .steps = {
		FETCH_SLICE(1, "x", 40, "req#0"), META(0, 100, "re#0+dest"),
		CONTENT(0, 0, 40, "end1:0"), FETCH(2, "x", "req#1+dest"),
		CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "slice of a known tensor", .features = SLICED, .steps = {
		KNOWN, FETCH_SLICE(2, "x", 40, "req#1+dest"), CONTENT(0, 1, 40, "end2:0"),
	} },
	{ "all of a known tensor in place of its slice", .features = SLICED, .steps = {
		KNOWN, FETCH_SLICE(2, "x", 40, "req#1+dest"), CONTENT(0, 1, 100, LENGTH),
	} },
	{ "slice that a known tensor has not", .features = SLICED, .steps = {
		KNOWN, FETCH_SLICE(2, "x", 101, "req#1"), ERR(1, -ERANGE, "end2:-34"),
	} },
	{ "slice that the tensor has not any more, and content", .features = SLICED, .steps = {
		KNOWN, FETCH_SLICE(2, "x", 100, "req#1+dest"), META(1, 50, NO_SLICE),
		CONTENT(0, 1, 0, ""),
	} },
	{ "slice of who knows none", .steps = {
		KNOWN, STEP("", .op = OP_FETCH, .id = 2, .name = "x", .slice = 40,
			    .ret = -EOPNOTSUPP),
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
	{ "failed tensor, named", .features = NAMED, .steps = {
		SENT, ERR_OF(0, "x", 1, -5, "end1:-5"),
	} },
	{ "failed tensor, with the longest text", .features = NAMED, .slot_bytes = 2048, .steps = {
		SENT, RX("end1:-5+text+more1", .type = RDMATENSOR_WIRE_ERROR_STATUS,
			 .request_index = 0, .error = -5, .flags = RDMATENSOR_WIRE_F_NAMED,
			 .name = "x", .name_len = 1, .text = script_text,
			 .text_len = RDMATENSOR_STATUS_TEXT_MAX),
		FETCH(2, "x", "req#1"),
		RX("end2:-5+text+more1", .type = RDMATENSOR_WIRE_ERROR_STATUS,
		   .request_index = 1, .error = -5, .flags = RDMATENSOR_WIRE_F_NAMED,
		   .name = "x", .name_len = 1, .text = script_text,
		   .text_len = RDMATENSOR_STATUS_TEXT_MAX),
		FETCH(3, "x", "req#2"),
		RX("end3:-5+text+more2", .type = RDMATENSOR_WIRE_ERROR_STATUS,
		   .request_index = 2, .error = -5, .flags = RDMATENSOR_WIRE_F_NAMED,
		   .name = "x", .name_len = 1, .text = script_text, .text_len = 129),
		FETCH(4, "x", "req#3"),
		RX("end4:-5+text", .type = RDMATENSOR_WIRE_ERROR_STATUS,
		   .request_index = 3, .error = -5, .flags = RDMATENSOR_WIRE_F_NAMED,
		   .name = "x", .name_len = 1, .text = script_text, .text_len = 128),
	} },
	{ "another tensor has failed", .features = NAMED, .steps = {
		SENT, ERR_OF(0, "y", 1, -5, OTHER_ERROR),
	} },
	{ "a longer name has failed", .features = NAMED, .steps = {
		SENT, ERR_OF(0, "xx", 1, -5, OTHER_ERROR),
	} },
	{ "another step has failed", .features = NAMED, .steps = {
		SENT, ERR_OF(0, "x", 2, -5, OTHER_ERROR),
	} },
	{ "failed tensor, named by a peer that has said it does not", .steps = {
		SENT, ERR_OF(0, "x", 1, -5, OTHER_ERROR),
	} },
	{ "failed tensor, cancelled, named", .features = NAMED, .steps = {
		SENT, CANCEL(1, "cancel#0"), ERR_OF(0, "x", 1, -5, "end1:-5"),
		CANCELLED(0, ""),
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
		CANCEL_QUEUED, SILENT, EXPIRE(2, NO_ANSWER),
	} },
	{ "cancel queued, expired, the peer is busy", .steps = {
		CANCEL_QUEUED, EXPIRE(2, ""), EXPIRE(2, ""), ROOM("cancel#1"), EXPIRE(2, ""),
		CANCELLED(1, "end2:-125"),
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
		CANCEL_SENT, SILENT, EXPIRE(2, NO_ANSWER), DOWN("end2:-110+text"),
	} },
	{ "cancel sent, expired, messages come", .steps = {
		CANCEL_SENT, SILENT, RE(9, 100, ""), EXPIRE(2, ""), SILENT, EXPIRE(2, NO_ANSWER),
	} },
	{ "cancel sent, expired, content comes", .steps = {
		KNOWN, FETCH(2, "x", "req#1+dest"), FETCH(3, "x", "req#2+dest"),
		CANCEL(2, "cancel#1"), SILENT, CONTENT(0, 2, 100, "end3:0"), EXPIRE(2, ""),
		SILENT, EXPIRE(2, NO_ANSWER),
	} },
	{ "cancel sent, expired, only the device answers", .steps = {
		CANCEL_SENT, PUBLISH(7, "z", 100, 1, ""), REQ_DEST(0, "z", 100, "w0#0:100!"),
		SILENT, DONE("pub7:0"), EXPIRE(2, NO_ANSWER),
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
	{ "validated by the sender, and out of the CPU's reach", .unreachable = true, .steps = {
		FETCH_INTO(1, "x", 100, "req#0"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:-95+text"),
	} },
	{ "to be validated, and out of the CPU's reach", .validate = true, .unreachable = true,
	  .steps = {
		FETCH_FAILS(1, "x", 1, -EOPNOTSUPP),
	} },
	{ "out of the CPU's reach", .unreachable = true, .steps = {
		RE_SENT, CONTENT(0, 0, 100, "end1:0"),
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
	{ "striped, meta-data after a part", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(1, 0, 4096, ""),
		CONTENT(0, 0, 4096, "end1:0"), FETCH(2, "x", "req#1+dest"),
		CONTENT(1, 1, 4096, ""), META(1, 100, META_PART),
	} },
	{ "striped, a part missing", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(0, 0, 4096, ""),
		CANCEL(1, "cancel#0"), CANCELLED(0, ""), CONTENT(1, 0, 4096, "end1:0"),
		CANCELLED(0, NOT_SENT),
	} },
	{ "striped, a part does not come", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(0, 0, 4096, ""),
		CANCEL(1, "cancel#0"), CANCELLED(0, ""), CANCEL(1, ""), ABORT(1, -5, ""),
		EXPIRE(1, ""), SILENT,
		EXPIRE(1, "down:-110(a part of a content does not come)"),
		DOWN("end1:-110+text"),
	} },
	{ "striped, answered twice", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(0, 0, 4096, ""),
		CANCEL(1, "cancel#0"), CANCELLED(0, ""), CANCELLED(0, NO_CANCEL),
	} },
	{ "striped, answered and failed", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CONTENT(0, 0, 4096, ""),
		CANCEL(1, "cancel#0"), CANCELLED(0, ""), ERR(0, -5, SECOND_END),
	} },
	{ "striped, lane 0's part missing", .lanes = 2, .steps = {
		SENT, META(0, 20480, "re#0+dest"), CANCEL(1, "cancel#0"),
		CANCELLED(0, "end1:-125"),
	} },
	{ "striped, answered, validated", .lanes = 2, .validate = true, .steps = {
		FETCH_INTO(1, "x", 20480, "req#0+val"), META_SUM(0, 20480, 1, "re#0+dest"),
		CONTENT(0, 0, 4096, ""), CANCEL(1, "cancel#0"), CANCELLED(0, ""),
		CONTENT(1, 0, 4096, "end1:-74+text"),
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

/* One that is far away still runs when a CANCEL sets it again: it is one timer, with one hold */
static void cancelled_before_its_deadline(struct kunit *test)
{
	struct script_end *script =
		open_with_one(test, &end_params, ktime_get_ns() + 3600 * NSEC_PER_SEC);

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	cancel_it(script);
	/* Waits for all that is held */
	script_close(script);
}

/* As when ticks were missed while the timer was armed: it waits for the rest */
static void expired_before_its_deadline(struct kunit *test)
{
	struct script_end *script =
		open_with_one(test, &end_params, ktime_get_ns() + 3600 * NSEC_PER_SEC);

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	KUNIT_EXPECT_TRUE(test, end_expire(script->end, 1));
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	KUNIT_EXPECT_TRUE(test, end_is_armed(script->end, 1));
	cancel_it(script);
	script_close(script);
}

/* The timer of @user_data's fetch as it runs out, once it has waited for the lock */
static void expire_late(struct script_end *script, u64 user_data)
{
	struct rdmatensor_operation_place place = { .user_data = user_data };
	struct rdmatensor_operation *op;

	op = rdmatensor_operation_next(&script->end->core, &place);
	KUNIT_ASSERT_NOT_NULL(script->end->test, op);
	op->ops->expire(op);
	rdmatensor_operation_put(op);
}

/* A deadline that ran out while a CANCEL had the lock, which has set the timer again */
static void expired_while_cancelled(struct kunit *test)
{
	static const struct script_step cancel = CANCEL(1, "cancel#0");
	static const struct script_step silent = SILENT;
	static const struct script_step answer = CANCELLED(0, "end1:-125");
	struct script_end *script =
		open_with_one(test, &end_params, ktime_get_ns() + 3600 * NSEC_PER_SEC);

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	script_do(script, &cancel);
	script_do(script, &silent);
	expire_late(script, 1);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "");
	script_do(script, &answer);
	script_close(script);
}

/* Who leaves posts no answer to a CANCEL, and the leave is not cut short for that */
static void cancel_of_one_that_leaves(struct kunit *test)
{
	static const struct script_step cancel = CANCEL(1, "cancel#0");
	static const struct script_step silent = SILENT;
	static const struct script_step down = DOWN("end1:-104+text");
	struct script_end *script = open_with_one(test, &end_params, 0);
	struct rdmatensor_channel *channel = script->end->channel;

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	script_do(script, &cancel);
	script_do(script, &silent);
	rdmatensor_channel_leave(channel, -ECONNRESET, "bye");
	KUNIT_EXPECT_STREQ(test, script_trace(script), "down:-104(bye)");
	KUNIT_EXPECT_TRUE(test, end_expire(script->end, 1));
	KUNIT_EXPECT_TRUE(test, channel->leaves);
	script_do(script, &down);
	script_close(script);
}

/* A peer that is heard of and never answers has its time, and no more */
static void busy_for_ever(struct kunit *test)
{
	struct rdmatensor_msg other = { .type = RDMATENSOR_WIRE_CANCEL, .request_index = 9 };
	struct rdmatensor_channel_params params = end_params;
	struct rdmatensor_channel *channel;
	struct script_end *script;
	unsigned long until;

	params.cancel_ms = 200;
	script = open_with_one(test, &params, 1);
	channel = script->end->channel;
	until = jiffies + 60 * HZ;
	while (READ_ONCE(channel->state) == RDMATENSOR_CHANNEL_UP &&
	       time_before(jiffies, until)) {
		rdmatensor_channel_rx_message(channel,
					      end_put_message(script->end, &other,
							      channel->credits.sent));
		script_trace(script);
		msleep(20);
	}
	KUNIT_EXPECT_STREQ(test, channel->error_text, "the peer does not answer a CANCEL");
	script_close(script);
}

/* Whoever has a reference: with its entry all that it held is the process's again */
static void who_looks_keeps_nothing(struct kunit *test)
{
	struct script_end *script = open_with_one(test, &end_params, 0);
	struct rdmatensor_pool *pool = script->end->pool;
	struct rdmatensor_operation_place place = {};
	struct rdmatensor_operation *op;

	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	op = rdmatensor_operation_next(&script->end->core, &place);
	KUNIT_ASSERT_NOT_NULL(test, op);
	/* It will want a region of that pool */
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&pool->regions), -EBUSY);
	cancel_it(script);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 1);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&pool->regions), 0);
	rdmatensor_operation_put(op);
	script_close(script);
}

/* A tensor of so many segments that their number does not fit into the message's count */
static void too_many_segments(struct kunit *test)
{
	static const struct script_step meta =
		META(0, (U16_MAX + 2ULL) << PAGE_SHIFT, "cancel#0");
	static const struct script_step answer = CANCELLED(0, "end1:-90+text");
	struct script_end *script = script_open(test, 1, &end_params);
	struct rdmatensor_fetch_args args = {
		.user_data = 1,
		.name = "x",
		.name_len = 1,
		.step_id = 1,
		.alloc = true,
	};
	struct rdmatensor_pool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pool);
	kref_init(&pool->ref);
	pool->id = 2;
	pool->writable = true;
	pool->reg.seg_shift = PAGE_SHIFT;
	pool->reg.nr = U16_MAX + 2;
	pool->bytes = (u64)pool->reg.nr << PAGE_SHIFT;
	pool->reg.iova = END_IOVA;
	/* The keys, which nobody gets to see */
	pool->reg.mrs = kvcalloc(pool->reg.nr, sizeof(*pool->reg.mrs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pool->reg.mrs);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_init(&pool->regions, pool->bytes), 0);
	args.pool = pool;

	script_up(script);
	rdmatensor_pool_get(pool);
	KUNIT_ASSERT_EQ(test, rdmatensor_request_submit(script->end->channel, &args), 0);
	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	script_do(script, &meta);
	script_do(script, &answer);
	script_close(script);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 1);
	rdmatensor_regions_destroy(&pool->regions);
	kvfree(pool->reg.mrs);
}

/* Any number of fetches may have one number: those are cancelled, and no others */
static void cancelled_by_number(struct kunit *test)
{
	static const u64 numbers[] = { 5, 7, 6, 7, 0, 7, U64_MAX, 7 };
	struct rdmatensor_channel_params params = end_params;
	struct rdmatensor_operation_place place = {};
	struct rdmatensor_operation *op;
	struct script_end *script;
	unsigned int i, n = 0;
	u64 last = 0;

	params.max_requests = 1;
	script = script_open(test, 1, &params);
	script_up(script);
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		struct rdmatensor_fetch_args args = {
			.user_data = numbers[i], .name = "x", .name_len = 1, .step_id = 1,
			.pool = script->end->pool, .alloc = true,
		};

		rdmatensor_pool_get(args.pool);
		KUNIT_ASSERT_EQ(test, rdmatensor_request_submit(script->end->channel, &args), 0);
	}
	KUNIT_EXPECT_STREQ(test, script_trace(script), "req#0");
	KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&script->end->core, 7), 4);
	KUNIT_EXPECT_STREQ(test, script_trace(script),
			   "end7:-125 end7:-125 end7:-125 end7:-125");
	KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&script->end->core, 7), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&script->end->core, 8), 0);
	while ((op = rdmatensor_operation_next(&script->end->core, &place))) {
		KUNIT_EXPECT_TRUE(test, !n || op->user_data > last);
		last = op->user_data;
		rdmatensor_operation_put(op);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, 4);
	KUNIT_EXPECT_EQ(test, rdmatensor_operation_cancel(&script->end->core, U64_MAX), 1);
	script_close(script);
}

/* Nanoseconds that a walk takes over @nr operations of one number, one by one */
static u64 walk(struct kunit *test, struct rdmatensor_core *core,
		struct rdmatensor_operation *ops, u32 nr)
{
	static const struct rdmatensor_operation_kind kind = {
		.submitted = RDMATENSOR_STAT_FETCHES,
	};
	static const struct rdmatensor_operation_ops walked = { .kind = &kind };
	struct rdmatensor_operation_place place = {};
	struct rdmatensor_operation *op;
	u64 begun;
	u32 i, n = 0;

	for (i = 0; i < nr; i++) {
		kref_init(&ops[i].ref);
		ops[i].ops = &walked;
		ops[i].core = core;
		ops[i].counters = &core->counters;
		ops[i].user_data = 7;
		rdmatensor_operation_begin(&ops[i], 0);
	}
	begun = ktime_get_ns();
	while ((op = rdmatensor_operation_next(core, &place))) {
		rdmatensor_operation_put(op);
		n++;
	}
	begun = ktime_get_ns() - begun;
	KUNIT_EXPECT_EQ(test, n, nr);
	spin_lock_bh(&core->operations_lock);
	core->operations = RB_ROOT;
	spin_unlock_bh(&core->operations_lock);
	return begun;
}

/* Sixteen times as many take about sixteen times as long, and not the square of it */
static void walk_in_proportion(struct kunit *test)
{
	struct script_end *script = script_open(test, 1, &end_params);
	struct rdmatensor_operation *ops = kvcalloc(16000, sizeof(*ops), GFP_KERNEL);
	struct rdmatensor_core *core = &script->end->core;
	u64 few = U64_MAX, many = U64_MAX;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ops);
	script_up(script);
	/* The best of some, since others run beside */
	for (i = 0; i < 5; i++) {
		few = min(few, walk(test, core, ops, 1000));
		many = min(many, walk(test, core, ops, 16000));
	}
	KUNIT_EXPECT_LT(test, many, 128 * few);
	kvfree(ops);
	script_close(script);
}

/* Of a fetch of floats, whole or the half of each pair, to a place with gaps or without */
static void cost(struct kunit *test)
{
	struct rdmatensor_fetch *fetch = kunit_kzalloc(test, sizeof(*fetch), GFP_KERNEL);
	struct rdmatensor_fetch_layout gaps = { .layout = { .ndims = 2, .strides = { 64, 32 } } };

	KUNIT_ASSERT_NOT_NULL(test, fetch);
	fetch->meta = (struct rdmatensor_meta){
		.data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 800, .dims = { 100, 2 },
	};
	KUNIT_EXPECT_EQ(test, rdmatensor_fetch_cost(fetch), 800);
	fetch->layout = &gaps;
	KUNIT_EXPECT_EQ(test, rdmatensor_fetch_cost(fetch), 200 * SZ_1K);
	/* Pairs of them lie together */
	gaps.layout.strides[1] = 4;
	KUNIT_EXPECT_EQ(test, rdmatensor_fetch_cost(fetch), 100 * SZ_1K);
	/* What a proxy stands in for is written in one piece */
	fetch->proxy.used = true;
	KUNIT_EXPECT_EQ(test, rdmatensor_fetch_cost(fetch), 800);
	fetch->proxy.used = false;
	fetch->meta.bytes = 0;
	KUNIT_EXPECT_EQ(test, rdmatensor_fetch_cost(fetch), 0);
}

static struct kunit_case request_tests[] = {
	KUNIT_CASE_PARAM(request, request_gen_params),
	KUNIT_CASE(deadline),
	KUNIT_CASE(cancelled_before_its_deadline),
	KUNIT_CASE(expired_before_its_deadline),
	KUNIT_CASE(expired_while_cancelled),
	KUNIT_CASE(cancel_of_one_that_leaves),
	KUNIT_CASE(busy_for_ever),
	KUNIT_CASE(who_looks_keeps_nothing),
	KUNIT_CASE(too_many_segments),
	KUNIT_CASE(cancelled_by_number),
	KUNIT_CASE(cost),
	{}
};

static struct kunit_suite request_suite = {
	.name = "rdmatensor_request",
	.test_cases = request_tests,
};

/* Measures: clocks are read all the time, which UML does not stand where it skips idle time */
static struct kunit_case walk_tests[] = {
	KUNIT_CASE(walk_in_proportion),
	{}
};

static struct kunit_suite walk_suite = {
	.name = "rdmatensor_walk",
	.test_cases = walk_tests,
};

kunit_test_suites(&request_suite, &walk_suite);
