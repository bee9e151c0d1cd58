/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scripts: an end whose peer is played by hand. A script is a list of steps, each
 * with all that it must bring about, in words:
 *
 *	hello req#N re#N meta#N cancel#N	a message about request N is posted;
 *		+dest, +val, +sum		with that flag
 *		+NAME@STEP +textN +...		of that, with a text of N bytes, which was cut
 *		+keep:N				and the number of a destination
 *	err#N:E cancelled#N			an ERROR_STATUS, or one for a CANCEL
 *	list#N@CURSOR info#N:ENTRIES@CURSOR	a LIST, or its answer; info#N:E: an error
 *	ack					one is posted
 *	probe0					one is posted on lane 0
 *	wL#N:BYTES[!]				a write on lane L; "!": the last one
 *	endU:E pubU:E wdU:E			an entry of fetch, publish or withdraw
 *						number U, with result E;
 *		+dead, +ok, +text		with that flag
 *		+moreN				and a text that is longer, text_id N
 *	listU:E=BYTES@CURSOR			an entry of list number U; without what is 0
 *	up, down:E(TEXT)			the channel's
 *
 * What is posted to lane 0 comes first, then other lanes, entries, the channel.
 * Messages and acks are completed after each step, writes by DONE().
 */
#ifndef RDMATENSOR_KUNIT_SCRIPT_H
#define RDMATENSOR_KUNIT_SCRIPT_H

#include "end.h"

#define SCRIPT_STEPS 18

enum script_op {
	OP_END, OP_FETCH, OP_CANCEL, OP_EXPIRE, OP_ABORT, OP_PUBLISH, OP_WITHDRAW, OP_RX,
	OP_RX_ACK, OP_CONTENT, OP_DONE, OP_FULL, OP_ROOM, OP_HOLD, OP_GO, OP_BREAK, OP_LIE,
	OP_DOWN, OP_SILENT, OP_LIST, OP_PLACES, OP_HOLD_KEYS, OP_REGISTERING, OP_BREAK_KEYS,
};

/**
 * struct script_step - one step
 * @op: what to do
 * @line: where it is written
 * @expect: all that it brings about
 * @id: user_data of an operation
 * @name: of a tensor
 * @step_id: 0: step 1
 * @bytes: of a tensor, of its place, or of what arrives
 * @place: the fetch has a region of @bytes; else it is allocated
 * @again: and that is the last one's
 * @proxied: that is in a pool which peers cannot write, and may have a proxy in the end's pool
 * @keep: the fetch keeps it
 * @slice: the fetch wants so many elements of it, from the first on; 0: all
 * @uses: of a tensor
 * @error: of a tensor, of an abort, or of posting
 * @text_len: of script_text, with the error of a tensor
 * @dead: the tensor is
 * @ret: of an operation
 * @lane: where content arrives
 * @msg: what arrives; of step 1, if it does not say; LIST: the cursor
 */
struct script_step {
	enum script_op op;
	int line;
	const char *expect;
	u64 id;
	const char *name;
	s64 step_id;
	u64 bytes;
	bool place;
	bool again;
	bool proxied;
	bool keep;
	u64 slice;
	u32 uses;
	int error;
	u16 text_len;
	bool dead;
	int ret;
	u8 lane;
	struct rdmatensor_msg msg;
};

/**
 * struct script - one case
 * @name: of the case
 * @lanes: of the channel, 0: one
 * @max_requests: 0: that of end_params
 * @slot_bytes: 0: that of end_params
 * @validate: the end's mode
 * @unreachable: the CPU cannot reach the end's pool
 * @peers: what peers may do with the other pool, RDMATENSOR_POOL_PEERS_WRITE: there is none
 * @other_unreachable: the CPU cannot reach that
 * @strict: the end's mr_mode
 * @unlisted: the end does not tell what it offers
 * @apart: keys are registered apart from the channel's queue pairs
 * @features: of the peer
 * @left: tensors still offered at the end
 * @steps: up to one of 0
 */
struct script {
	const char *name;
	u8 lanes;
	u32 max_requests;
	u32 slot_bytes;
	bool validate;
	bool unreachable;
	enum rdmatensor_pool_peers peers;
	bool other_unreachable;
	bool strict;
	bool unlisted;
	bool apart;
	u32 features;
	unsigned int left;
	struct script_step steps[SCRIPT_STEPS];
};

#define STEP(_expect, ...) { .line = __LINE__, .expect = _expect, __VA_ARGS__ }

/* The process */
#define FETCH(_id, _name, _expect) \
	STEP(_expect, .op = OP_FETCH, .id = _id, .name = _name)
#define FETCH_INTO(_id, _name, _bytes, _expect) \
	STEP(_expect, .op = OP_FETCH, .id = _id, .name = _name, .bytes = _bytes, \
	     .place = true)
#define FETCH_KEEP(_id, _name, _bytes, _expect) \
	STEP(_expect, .op = OP_FETCH, .id = _id, .name = _name, .bytes = _bytes, \
	     .place = true, .keep = true)
#define FETCH_AGAIN(_id, _name, _bytes, _expect) \
	STEP(_expect, .op = OP_FETCH, .id = _id, .name = _name, .bytes = _bytes, \
	     .place = true, .keep = true, .again = true)
#define FETCH_PROXIED(_id, _name, _bytes, _expect) \
	STEP(_expect, .op = OP_FETCH, .id = _id, .name = _name, .bytes = _bytes, \
	     .place = true, .proxied = true)
#define FETCH_SLICE(_id, _name, _elements, _expect) \
	STEP(_expect, .op = OP_FETCH, .id = _id, .name = _name, .slice = _elements)
#define FETCH_FAILS(_id, _name, _step, _ret) \
	STEP("", .op = OP_FETCH, .id = _id, .name = _name, .step_id = _step, .ret = _ret)
#define CANCEL(_id, _expect) STEP(_expect, .op = OP_CANCEL, .id = _id)
#define EXPIRE(_id, _expect) STEP(_expect, .op = OP_EXPIRE, .id = _id)
#define ABORT(_step, _error, _expect) \
	STEP(_expect, .op = OP_ABORT, .step_id = _step, .error = _error)
#define PUBLISH(_id, _name, _bytes, _uses, _expect) \
	STEP(_expect, .op = OP_PUBLISH, .id = _id, .name = _name, .bytes = _bytes, \
	     .uses = _uses)
#define PUBLISH_DEAD(_id, _name, _expect) \
	STEP(_expect, .op = OP_PUBLISH, .id = _id, .name = _name, .uses = 1, .dead = true)
#define PUBLISH_FAILED(_id, _name, _error, _expect) \
	STEP(_expect, .op = OP_PUBLISH, .id = _id, .name = _name, .uses = 1, .error = _error)
#define PUBLISH_SAYS(_id, _name, _error, _len, _expect) \
	STEP(_expect, .op = OP_PUBLISH, .id = _id, .name = _name, .uses = 1, .error = _error, \
	     .text_len = _len)
#define WITHDRAW(_id, _name, _expect) \
	STEP(_expect, .op = OP_WITHDRAW, .id = _id, .name = _name)
/* Into a region of that many bytes, behind a cursor */
#define LIST_BEHIND(_id, _prefix, _cursor, _bytes, _expect) \
	STEP(_expect, .op = OP_LIST, .id = _id, .name = _prefix, .bytes = _bytes, \
	     .msg.cursor = _cursor)
#define LIST(_id, _prefix, _bytes, _expect) LIST_BEHIND(_id, _prefix, 0, _bytes, _expect)
#define LIST_FAILS(_id, _ret) \
	STEP("", .op = OP_LIST, .id = _id, .name = "x", .bytes = 4096, .ret = _ret)

/* The peer */
#define RX(_expect, ...) STEP(_expect, .op = OP_RX, .msg = { __VA_ARGS__ })
#define RX_ACK(_expect) STEP(_expect, .op = OP_RX_ACK)
#define CONTENT(_lane, _index, _bytes, _expect) \
	STEP(_expect, .op = OP_CONTENT, .lane = _lane, .bytes = _bytes, \
	     .msg.request_index = _index)
/* Meta-data of uint8 [_bytes] */
#define SCRIPT_META(_bytes) \
	{ .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .bytes = _bytes, .dims = { _bytes } }
#define SCRIPT_DEAD { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .is_dead = 1, .dims = { 9 } }
#define META(_index, _bytes, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .request_index = _index, \
	   .meta = SCRIPT_META(_bytes))
#define META_SUM(_index, _bytes, _sum, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .request_index = _index, \
	   .meta = SCRIPT_META(_bytes), .flags = RDMATENSOR_WIRE_F_CHECKSUM, .checksum = _sum)
#define ERR(_index, _error, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_ERROR_STATUS, .request_index = _index, \
	   .error = _error)
#define ERR_OF(_index, _name, _step, _error, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_ERROR_STATUS, .request_index = _index, \
	   .error = _error, .flags = RDMATENSOR_WIRE_F_NAMED, .name = _name, \
	   .name_len = sizeof(_name) - 1, .step_id = _step)
#define CANCELLED(_index, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_ERROR_STATUS, .request_index = _index, \
	   .error = -ECANCELED, .flags = RDMATENSOR_WIRE_F_CANCELLED)
#define REQ(_index, _name, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = _index, \
	   .name = _name, .name_len = sizeof(_name) - 1)
#define SCRIPT_DEST(_bytes, _parts) \
	.flags = RDMATENSOR_WIRE_F_DEST, .nr_parts = _parts, .seg_shift = END_SEG_SHIFT, \
	.remote_addr = END_IOVA, .meta = SCRIPT_META(_bytes)
#define REQ_DEST(_index, _name, _bytes, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = _index, \
	   .name = _name, .name_len = sizeof(_name) - 1, SCRIPT_DEST(_bytes, 1))
#define RE(_index, _bytes, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = _index, \
	   SCRIPT_DEST(_bytes, 1))
/* The destination of SCRIPT_DEST() is told under a number, or referred to */
#define REQ_KEEP(_index, _name, _bytes, _keep, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = _index, \
	   .name = _name, .name_len = sizeof(_name) - 1, .keep = _keep, SCRIPT_KEEP(_bytes))
#define RE_KEEP(_index, _bytes, _keep, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = _index, \
	   .keep = _keep, SCRIPT_KEEP(_bytes))
#define REQ_KEPT(_index, _name, _keep, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = _index, \
	   .name = _name, .name_len = sizeof(_name) - 1, .keep = _keep, \
	   .flags = RDMATENSOR_WIRE_F_KEEP)
#define SCRIPT_KEEP(_bytes) \
	.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP, .nr_parts = 1, \
	.seg_shift = END_SEG_SHIFT, .remote_addr = END_IOVA, .meta = SCRIPT_META(_bytes)
#define LIST_OF(_index, _prefix, _cursor, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_LIST, .request_index = _index, .cursor = _cursor, \
	   .name = _prefix, .name_len = sizeof(_prefix) - 1)
/* @_entries: an array of bytes, of so many entries */
#define INFO(_index, _cursor, _nr, _entries, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = _index, \
	   .cursor = _cursor, .nr_entries = _nr, .entries = _entries, \
	   .entries_bytes = sizeof(_entries))
#define NO_INFO(_index, _cursor, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = _index, .cursor = _cursor)
#define INFO_FAILED(_index, _error, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = _index, \
	   .error = _error, .flags = RDMATENSOR_WIRE_F_FAILED)
#define CANCEL_OF(_index, _expect) \
	RX(_expect, .type = RDMATENSOR_WIRE_CANCEL, .request_index = _index)

/* The device: writes are done; no place in lane 0's queue for messages, and again */
#define DONE(_expect) STEP(_expect, .op = OP_DONE)
#define FULL STEP("", .op = OP_FULL)
#define ROOM(_expect) STEP(_expect, .op = OP_ROOM)
/* So many more places in it, of which the last is an ack's */
#define PLACES(_nr, _expect) STEP(_expect, .op = OP_PLACES, .bytes = _nr)
#define BREAK(_error) STEP("", .op = OP_BREAK, .error = _error)

/* Registrations apart from the channel wait until GO(); one does; they fail */
#define HOLD_KEYS STEP("", .op = OP_HOLD_KEYS)
#define REGISTERING(_expect) STEP(_expect, .op = OP_REGISTERING)
#define BREAK_KEYS(_error) STEP("", .op = OP_BREAK_KEYS, .error = _error)
#define BREAK_KEYS_AFTER(_nr, _error) \
	STEP("", .op = OP_BREAK_KEYS, .error = _error, .bytes = _nr)

/* Nothing was heard of the peer for longer than anybody waits */
#define SILENT STEP("", .op = OP_SILENT)

/* Process context: checksums wait, and go on */
#define HOLD STEP("", .op = OP_HOLD)
#define GO(_expect) STEP(_expect, .op = OP_GO)

/* Somebody writes to the region of the fetch that was submitted last */
#define LIE STEP("", .op = OP_LIE)

#define DOWN(_expect) STEP(_expect, .op = OP_DOWN)

/* A text without end: each byte depends on its place */
extern char script_text[RDMATENSOR_STATUS_TEXT_MAX];

/* Puts @script into @suite's parameters: its name is the case's */
void script_name(const struct script *script, char *desc);
/* Runs it on an end that is up; @end_closed: taken apart, with its checks */
void script_run(struct kunit *test, const struct script *script);

/**
 * struct script_end - an end that is played by hand, for cases that need more than steps
 * @end: it
 * @trace: what has happened since the last look
 * @text: behind @trace
 * @free_places: FULL: what the send queue had
 * @go: HOLD: ends it
 * @hold: HOLD: occupies the workqueue
 * @held: HOLD, HOLD_KEYS: work items do not end
 * @place: of the last fetch
 * @last: the last message that was posted; what it points to is in its slot
 * @told_down: its going down is in an earlier trace
 * @slow: messages and acks are not completed
 * @features: of the peer
 */
struct script_end {
	struct end *end;
	struct seq_buf trace;
	char text[END_TRACE];
	u32 free_places;
	struct completion go;
	struct work_struct hold;
	bool held;
	u64 place;
	struct rdmatensor_msg last;
	bool told_down;
	bool slow;
	u32 features;
};

struct script_end *script_open(struct kunit *test, u8 lanes,
			       const struct rdmatensor_channel_params *params);
/* HELLO from the peer, which has the same parameters */
void script_up(struct script_end *script);
/* A message from the peer */
void script_rx(struct script_end *script, const struct rdmatensor_msg *msg);
void script_do(struct script_end *script, const struct script_step *step);
/* All that has happened; completes messages and acks */
const char *script_trace(struct script_end *script);
/* When all fetches have ended no region is left in the end's pool */
void script_pool_is_free(struct script_end *script);
void script_close(struct script_end *script);

#endif /* RDMATENSOR_KUNIT_SCRIPT_H */
