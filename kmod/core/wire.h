/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire: what two workers send to each other, and nothing about how it is
 * carried. All integers are little-endian.
 *
 * A control message is written into a slot of the peer's message buffer by
 * WRITE_WITH_IMM RDMATENSOR_IMM_MESSAGE. It is a struct rdmatensor_wire_hdr and
 * a tail whose every length is in the header, in this order:
 *
 *	hello	(HELLO only)	struct rdmatensor_wire_hello
 *	table	(TABLE_* only)	struct rdmatensor_wire_table
 *	list	(LIST* only)	struct rdmatensor_wire_list
 *	slice	(F_SLICE only)	struct rdmatensor_wire_slice, as far as it has ranges
 *	layout	(F_LAYOUT only)	struct rdmatensor_wire_layout, as far as it has strides
 *	dims	8 * ndims
 *	rkeys	4 * nr_rkeys
 *	name	name_len
 *	text	text_len
 *	entries	(LIST_INFO only) list.entries_bytes: struct rdmatensor_wire_entry, each with
 *		its dims and its name behind it
 *
 * The types and fields keep the names of TensorFlow's verbs transport, where it
 * has them. Fields that a type does not use are zero, and that is checked.
 *
 * Content is written by WRITEs from the tensor's own pages. A tensor, or the slice of it that was
 * asked for, is cut
 * into nr_parts parts, one a lane, as rdmatensor_wire_part() says, and a part
 * into writes at each multiple of 1 << seg_shift of the destination's address,
 * because another rkey begins there, and wherever the destination's layout has a gap. The last
 * write of each part is a WRITE_WITH_IMM with the request index.
 */
#ifndef RDMATENSOR_WIRE_H
#define RDMATENSOR_WIRE_H

#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/types.h>
#include "core/slice.h"

/* TensorFlow verbs' immediates; content carries a request index of at most INDEX_MAX */
#define RDMATENSOR_IMM_MESSAGE 0xffffffffU
#define RDMATENSOR_IMM_ACK 0xfffffffeU
#define RDMATENSOR_INDEX_MAX 0xfffffffdU

#define RDMATENSOR_WIRE_MAGIC 0x544d4452U /* "RDMT" */
#define RDMATENSOR_WIRE_MAJOR 1
#define RDMATENSOR_WIRE_MINOR 0

#define RDMATENSOR_WIRE_SEG_SHIFT_MIN 12
#define RDMATENSOR_WIRE_SEG_SHIFT_MAX 40

/**
 * enum rdmatensor_wire_type - control messages
 * @RDMATENSOR_WIRE_HELLO: first message in each direction
 * @RDMATENSOR_WIRE_TENSOR_REQUEST: receiver requests (name, step_id)
 * @RDMATENSOR_WIRE_META_DATA_RESPONSE: sender's meta-data differs from what the
 *     request said, or a checksum was asked for; content waits for a re-request
 * @RDMATENSOR_WIRE_TENSOR_RE_REQUEST: receiver's new destination
 * @RDMATENSOR_WIRE_ERROR_STATUS: the request has failed; answers a CANCEL too. With F_NAMED
 *     it has the request's name and step, as TensorFlow verbs' has, and a longer text
 * @RDMATENSOR_WIRE_CANCEL: receiver no longer wants the request; answered by
 *     ERROR_STATUS when no write of it is in flight any more, always
 * @RDMATENSOR_WIRE_TABLE_OPEN: reader asks for the rows that the peer exports
 *     under a name, and their keys from table.first_key on. One at a time: the next one
 *     after the answer; with FEATURE_TABLE_WAIT more, see there
 * @RDMATENSOR_WIRE_TABLE_INFO: the answer: rows, and as many keys as fit; or with
 *     F_FAILED an errno
 * @RDMATENSOR_WIRE_LIST: receiver asks, with FEATURE_LIST, what is offered behind a cursor under
 *     names that begin with a prefix
 * @RDMATENSOR_WIRE_LIST_INFO: the answer: as many entries as fit, and the next cursor; or with
 *     F_FAILED an errno
 */
enum rdmatensor_wire_type {
	RDMATENSOR_WIRE_HELLO = 1,
	RDMATENSOR_WIRE_TENSOR_REQUEST,
	RDMATENSOR_WIRE_META_DATA_RESPONSE,
	RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
	RDMATENSOR_WIRE_ERROR_STATUS,
	RDMATENSOR_WIRE_CANCEL,
	RDMATENSOR_WIRE_TABLE_OPEN,
	RDMATENSOR_WIRE_TABLE_INFO,
	RDMATENSOR_WIRE_LIST,
	RDMATENSOR_WIRE_LIST_INFO,
};

/* TENSOR_REQUEST, TENSOR_RE_REQUEST: a destination is given */
#define RDMATENSOR_WIRE_F_DEST BIT(0)
/* TENSOR_REQUEST: take the meta-data path and send a checksum */
#define RDMATENSOR_WIRE_F_VALIDATE BIT(1)
/* META_DATA_RESPONSE: checksum is valid */
#define RDMATENSOR_WIRE_F_CHECKSUM BIT(2)
/* ERROR_STATUS: answers a CANCEL; the sender has forgotten the request */
#define RDMATENSOR_WIRE_F_CANCELLED BIT(3)
/* TABLE_INFO, LIST_INFO: there are no rows, no entries; error_status says why */
#define RDMATENSOR_WIRE_F_FAILED BIT(4)
/* TABLE_OPEN, with FEATURE_TABLE_WAIT: while there are no rows the answer is held back */
#define RDMATENSOR_WIRE_F_WAIT BIT(5)
/*
 * ERROR_STATUS, with FEATURE_ERROR_NAMED, but not as the answer to a CANCEL: it has name and
 * step, which are those of the request, and up to RDMATENSOR_STATUS_TEXT_MAX bytes of text.
 * The name is complete: a text that the slot has no space for is cut, and marked as cut
 */
#define RDMATENSOR_WIRE_F_NAMED BIT(8)

/*
 * TENSOR_REQUEST, TENSOR_RE_REQUEST, with FEATURE_KEEP. With F_DEST: the destination is to be
 * remembered under the number keep. TENSOR_REQUEST without F_DEST: the destination is the one
 * of that number, with the meta-data that was sent with it; a sender that does not remember it
 * answers as to a request without a destination
 */
#define RDMATENSOR_WIRE_F_KEEP BIT(6)
/*
 * TENSOR_REQUEST, TENSOR_RE_REQUEST, with FEATURE_SLICE, without F_KEEP: the content is a slice of
 * the tensor. Meta-data are the tensor's all the same: how long the content is follows from both.
 * A TENSOR_RE_REQUEST has the slice of its request
 */
#define RDMATENSOR_WIRE_F_SLICE BIT(7)

/*
 * TENSOR_REQUEST, TENSOR_RE_REQUEST, with FEATURE_LAYOUT and F_DEST, without F_KEEP, of a content
 * that is not empty: its elements do not lie together in the destination. There are keys for all
 * that lies between the first byte and the last, and only the content's own are written
 */
#define RDMATENSOR_WIRE_F_LAYOUT BIT(11)

/*
 * TENSOR_REQUEST, with FEATURE_NEWEST, without F_DEST and F_KEEP: the newest step of the name from
 * step_id on that is offered. The META_DATA_RESPONSE says which one it is, and there is always one;
 * from then on the request is of that step
 */
#define RDMATENSOR_WIRE_F_NEWEST BIT(9)
/*
 * TENSOR_REQUEST, with FEATURE_NEWEST: what is not offered when the request comes is answered at
 * once, with ENOENT
 */
#define RDMATENSOR_WIRE_F_NOW BIT(10)

/*
 * HELLO: the owner holds a TABLE_OPEN back until it exports the table. A reader has up to
 * TABLE_SLOTS questions at a time: one in each slot, which is the request index modulo
 * TABLE_SLOTS. A question takes the place of what is in its slot and has no answer yet: so a
 * reader gives up by forgetting, and an owner keeps no more than the slots
 */
#define RDMATENSOR_WIRE_FEATURE_TABLE_WAIT BIT(0)
#define RDMATENSOR_WIRE_TABLE_SLOTS 16

/*
 * HELLO: the sender remembers destinations by their number: one in each of KEEP_SLOTS slots,
 * which is the number modulo that. A destination replaces the one in its slot, whether it is
 * then remembered or not; the receiver never uses a number for two destinations
 */
#define RDMATENSOR_WIRE_FEATURE_KEEP BIT(1)
#define RDMATENSOR_WIRE_KEEP_SLOTS 1024

/* HELLO: an ERROR_STATUS may have F_NAMED */
#define RDMATENSOR_WIRE_FEATURE_ERROR_NAMED BIT(3)

/*
 * HELLO: the sender answers a LIST. A receiver has up to LIST_SLOTS of them outstanding: one in
 * each slot, which is the request index modulo LIST_SLOTS. A question takes the place of what is
 * in its slot and has no answer yet, as with FEATURE_TABLE_WAIT
 */
#define RDMATENSOR_WIRE_FEATURE_LIST BIT(4)
#define RDMATENSOR_WIRE_LIST_SLOTS 4

/* HELLO: the sender writes slices */
#define RDMATENSOR_WIRE_FEATURE_SLICE BIT(5)

/* HELLO: the sender knows F_NEWEST and F_NOW */
#define RDMATENSOR_WIRE_FEATURE_NEWEST BIT(6)

/* HELLO: the sender writes to destinations with a layout */
#define RDMATENSOR_WIRE_FEATURE_LAYOUT BIT(7)

#define RDMATENSOR_WIRE_FEATURES (RDMATENSOR_WIRE_FEATURE_TABLE_WAIT | \
				  RDMATENSOR_WIRE_FEATURE_KEEP | \
				  RDMATENSOR_WIRE_FEATURE_ERROR_NAMED | \
				  RDMATENSOR_WIRE_FEATURE_LIST | \
				  RDMATENSOR_WIRE_FEATURE_SLICE | \
				  RDMATENSOR_WIRE_FEATURE_NEWEST | \
				  RDMATENSOR_WIRE_FEATURE_LAYOUT)

/**
 * struct rdmatensor_wire_hdr - head of every control message
 * @length: header and tail, in bytes; equals the length of the write
 * @version_major: RDMATENSOR_WIRE_MAJOR
 * @type: enum rdmatensor_wire_type
 * @flags: RDMATENSOR_WIRE_F_*
 * @consumed: control messages that the writer has consumed on this channel,
 *            modulo 2^32: a credit. Filled when the write is posted
 * @request_index: which request, 0..RDMATENSOR_INDEX_MAX (TensorFlow verbs: request_index);
 *                 TABLE_*, LIST*: a number of who asks, which the answer repeats
 * @step_id: two's complement (TensorFlow verbs: step_id)
 * @remote_addr: destination's address in the receiver (TensorFlow verbs: remote_addr); TABLE_INFO:
 *               first row's in the owner
 * @tensor_bytes: bytes of content that are expected or offered (TensorFlow verbs:
 *                tensor_bytes)
 * @checksum: CRC32C of the content (TensorFlow verbs: checksum)
 * @error_status: positive errno, 1..4095 (TensorFlow verbs: error_status)
 * @data_type: enum rdmatensor_data_type (TensorFlow verbs: data_type)
 * @is_dead: 0 or 1 (TensorFlow verbs: is_dead)
 * @ndims: members of dims (TensorFlow verbs: shape)
 * @nr_rkeys: members of rkeys (TensorFlow verbs: rkey, one)
 * @name_len: bytes of name (TensorFlow verbs: name_size); LIST: of the prefix, which may be empty
 * @text_len: bytes of text
 * @nr_parts: parts that the content is cut into, 1..RDMATENSOR_LANES_MAX
 * @seg_shift: log2 of the distance at which rkeys change
 * @keep: with F_KEEP: number of the destination
 */
struct rdmatensor_wire_hdr {
	__le32 length;
	u8 version_major;
	u8 type;
	__le16 flags;
	__le32 consumed;
	__le32 request_index;
	__le64 step_id;
	__le64 remote_addr;
	__le64 tensor_bytes;
	__le32 checksum;
	__le32 error_status;
	__le16 data_type;
	u8 is_dead;
	u8 ndims;
	__le16 nr_rkeys;
	__le16 name_len;
	__le16 text_len;
	u8 nr_parts;
	u8 seg_shift;
	__le32 keep;
};

static_assert(sizeof(struct rdmatensor_wire_hdr) == 64);

/**
 * struct rdmatensor_wire_hello - HELLO's own fields; the worker name is the text
 * @incarnation: random number of the worker's life
 * @max_requests: requests that the peer may have outstanding here
 * @features: RDMATENSOR_WIRE_FEATURE_*: what the writer can do. Both sides use what both
 *            have, and ignore what they do not know
 * @listen_port: who has connected the channel: the port of its own listener at the address that
 *               it has connected from, so that the peer can connect lanes for READs to it;
 *               0: there is none
 * @__reserved: zero
 */
struct rdmatensor_wire_hello {
	__le64 incarnation;
	__le32 max_requests;
	__le32 features;
	__le16 listen_port;
	u8 __reserved[6];
};

static_assert(sizeof(struct rdmatensor_wire_hello) == 24);

/**
 * struct rdmatensor_wire_table - what TABLE_OPEN and TABLE_INFO say of a table
 * @row_start: number of the owner's first row; TABLE_OPEN: zero, as all but @first_key
 * @row_end: number after its last row
 * @row_bytes: bytes of a row
 * @stride: distance of two rows in bytes
 * @data_type: enum rdmatensor_data_type
 * @nr_keys: keys of all rows: one for each 1 << seg_shift that they touch
 * @first_key: of those, the first one that is asked for, or in the message
 * @__reserved: zero
 */
struct rdmatensor_wire_table {
	__le64 row_start;
	__le64 row_end;
	__le64 row_bytes;
	__le64 stride;
	__le32 data_type;
	__le32 nr_keys;
	__le32 first_key;
	__le32 __reserved;
};

static_assert(sizeof(struct rdmatensor_wire_table) == 48);

/**
 * struct rdmatensor_wire_list - what LIST and LIST_INFO say beside name and entries
 * @cursor: LIST: 0: from the beginning; else any that an entry or a LIST_INFO has had: what follows
 *          it. LIST_INFO: behind all that was looked at; 0: nothing follows
 * @nr_entries: LIST_INFO: entries in the message, 0 is allowed; LIST: zero
 * @entries_bytes: of them in all; LIST: zero
 */
struct rdmatensor_wire_list {
	__le64 cursor;
	__le32 nr_entries;
	__le32 entries_bytes;
};

static_assert(sizeof(struct rdmatensor_wire_list) == 16);

/**
 * struct rdmatensor_wire_entry - one tensor that is offered, in a LIST_INFO
 * @cursor: what follows it in the list; not 0
 * @step_id: two's complement
 * @tensor_bytes: length of its content
 * @error_status: 0; a positive errno: there is no tensor, and a request ends with this
 * @uses: deliveries that are left, 0: until it is withdrawn
 * @data_type: enum rdmatensor_data_type; 0 with @error_status
 * @name_len: bytes of the name, 1..RDMATENSOR_NAME_MAX
 * @is_dead: 0 or 1
 * @ndims: members of dims
 * @__reserved: zero
 *
 * Behind it: 8 * ndims bytes of dims, name_len bytes of the name.
 */
struct rdmatensor_wire_entry {
	__le64 cursor;
	__le64 step_id;
	__le64 tensor_bytes;
	__le32 error_status;
	__le32 uses;
	__le16 data_type;
	__le16 name_len;
	u8 is_dead;
	u8 ndims;
	u8 __reserved[2];
};

static_assert(sizeof(struct rdmatensor_wire_entry) == 40);

/* In a slice */
struct rdmatensor_wire_range {
	__le64 start;
	__le64 length;
};

/**
 * struct rdmatensor_wire_slice - which part of a tensor is asked for
 * @ndims: ranges, the slowest dim's first; dims behind those are taken whole. 0: one range, of
 *         bytes
 * @__reserved: zero
 * @ranges: only as many as there are; all ones as length: to the end
 */
struct rdmatensor_wire_slice {
	u8 ndims;
	u8 __reserved[7];
	struct rdmatensor_wire_range ranges[RDMATENSOR_DIMS_MAX];
};

static_assert(sizeof(struct rdmatensor_wire_slice) == 8 + 16 * RDMATENSOR_DIMS_MAX);

/**
 * struct rdmatensor_wire_layout - where the elements of the content lie in the destination
 * @ndims: strides, as many as the content has dims; that of a range of bytes has one
 * @__reserved: zero
 * @strides: in bytes, the slowest dim's first; only as many as there are
 */
struct rdmatensor_wire_layout {
	u8 ndims;
	u8 __reserved[7];
	__le64 strides[RDMATENSOR_DIMS_MAX];
};

static_assert(sizeof(struct rdmatensor_wire_layout) == 8 + 8 * RDMATENSOR_DIMS_MAX);

/* Keys of one owner at most: 32 TiB of 2 MiB segments */
#define RDMATENSOR_WIRE_KEYS_MAX BIT(24)

/* Private data: 128 << mtu bytes, as enum ib_mtu has it: 256 and 4096 */
#define RDMATENSOR_WIRE_MTU_LEAST 1
#define RDMATENSOR_WIRE_MTU_MOST 5

/* Private data: the connection is a lane for READs of the channel with that nonce */
#define RDMATENSOR_WIRE_PRIVATE_READ BIT(0)
/* And that channel was connected by who is asked for the lane */
#define RDMATENSOR_WIRE_PRIVATE_REVERSE BIT(1)

/**
 * struct rdmatensor_wire_private - rdma_cm private data of REQ and REP
 * @magic: RDMATENSOR_WIRE_MAGIC
 * @major: RDMATENSOR_WIRE_MAJOR; another one is refused with EPROTONOSUPPORT
 * @minor: RDMATENSOR_WIRE_MINOR; for people
 * @lane: which lane this connection is, from 0
 * @lanes: how many the channel has, 1..RDMATENSOR_LANES_MAX
 * @nonce: random; lanes with the same are one channel
 * @msgbuf_addr: address of the writer's receive message buffer (lane 0, else 0)
 * @msgbuf_rkey: its key (lane 0, else 0)
 * @msg_slot_bytes: bytes of a slot in it
 * @msg_slots: its slots
 * @ack_batch: messages that one of the writer's acks acknowledges
 * @max_requests: requests that the peer may have outstanding at the writer
 * @flags: RDMATENSOR_WIRE_PRIVATE_READ: for READs only; @lane and @lanes count those,
 *         and all between @nonce and this is zero. _REVERSE: only with that
 * @mtu: enum ib_mtu, of this connection. REQ: what the writer takes at most; REP: what both
 *       sides have, which is not more than that
 * @__reserved: zero
 *
 * 56 bytes is what rdma_cm leaves of a REQ.
 */
struct rdmatensor_wire_private {
	__le32 magic;
	u8 major;
	u8 minor;
	u8 lane;
	u8 lanes;
	__le64 nonce;
	__le64 msgbuf_addr;
	__le32 msgbuf_rkey;
	__le32 msg_slot_bytes;
	__le16 msg_slots;
	__le16 ack_batch;
	__le32 max_requests;
	__le32 flags;
	u8 mtu;
	u8 __reserved[11];
};

static_assert(sizeof(struct rdmatensor_wire_private) == 56);

/**
 * struct rdmatensor_wire_reject - rdma_cm private data of a REJ
 * @magic: RDMATENSOR_WIRE_MAGIC
 * @major: RDMATENSOR_WIRE_MAJOR of who rejects
 * @minor: its RDMATENSOR_WIRE_MINOR
 * @error: positive errno: why
 */
struct rdmatensor_wire_reject {
	__le32 magic;
	u8 major;
	u8 minor;
	__le16 error;
};

static_assert(sizeof(struct rdmatensor_wire_reject) == 8);

/**
 * struct rdmatensor_table_info - struct rdmatensor_wire_table in the CPU's own form
 * @row_start: number of the first row
 * @row_end: number after the last row
 * @stride: distance of two rows in bytes
 * @row_bytes: bytes of a row
 * @data_type: enum rdmatensor_data_type
 * @nr_keys: of all rows
 * @first_key: the first one that is asked for, or in the message
 */
struct rdmatensor_table_info {
	u64 row_start;
	u64 row_end;
	u64 stride;
	u32 row_bytes;
	u32 data_type;
	u32 nr_keys;
	u32 first_key;
};

/**
 * struct rdmatensor_listed - struct rdmatensor_wire_entry in the CPU's own form
 * @cursor: what follows it in the list; not 0
 * @step_id: its step
 * @meta: of the tensor; without a data type if @error
 * @error: 0; a negative errno: there is no tensor, and a request ends with this
 * @uses: deliveries that are left, 0: until it is withdrawn
 * @name_len: bytes of @name
 * @name: any bytes
 */
struct rdmatensor_listed {
	u64 cursor;
	s64 step_id;
	struct rdmatensor_meta meta;
	int error;
	u32 uses;
	u16 name_len;
	const char *name;
};

/**
 * struct rdmatensor_msg - a control message in the CPU's own form
 * @type: enum rdmatensor_wire_type
 * @nr_parts: with F_DEST
 * @seg_shift: with F_DEST
 * @flags: RDMATENSOR_WIRE_F_*
 * @nr_rkeys: with F_DEST
 * @name_len: TENSOR_REQUEST, TABLE_OPEN, LIST, with F_NAMED
 * @text_len: HELLO, ERROR_STATUS: with F_NAMED up to RDMATENSOR_STATUS_TEXT_MAX, else up to
 *            RDMATENSOR_TEXT_MAX
 * @consumed: only decoded: on the way out it is filled by
 *            rdmatensor_wire_set_consumed() when the write is posted
 * @request_index: all but HELLO
 * @checksum: with F_CHECKSUM
 * @keep: with F_KEEP
 * @max_requests: HELLO
 * @features: HELLO
 * @listen_port: HELLO
 * @error: ERROR_STATUS, with F_FAILED: negative errno
 * @nr_entries: LIST_INFO without F_FAILED
 * @entries_bytes: LIST_INFO without F_FAILED
 * @cursor: LIST, LIST_INFO without F_FAILED
 * @step_id: TENSOR_REQUEST, TENSOR_RE_REQUEST, META_DATA_RESPONSE, with F_NAMED
 * @remote_addr: with F_DEST
 * @incarnation: HELLO
 * @meta: as @step_id, but ERROR_STATUS; with F_KEEP only without F_DEST. dtype, shape, is_dead and
 *        bytes; meta.bytes is the wire's tensor_bytes
 * @table: TABLE_OPEN, TABLE_INFO without F_FAILED
 * @rkeys: as they are on the wire, to be read with le32_to_cpu()
 * @name: any bytes
 * @text: not zero-terminated; HELLO: the worker name
 * @entries: LIST_INFO: to be read with rdmatensor_wire_entry_get()
 * @slice: with F_SLICE: as it is on the wire, see rdmatensor_wire_slice_get()
 * @layout: with F_LAYOUT: as it is on the wire, see rdmatensor_wire_layout_get()
 *
 * Pointers of a decoded message point into the buffer that was decoded.
 */
struct rdmatensor_msg {
	u8 type;
	u8 nr_parts;
	u8 seg_shift;
	u16 flags;
	u16 nr_rkeys;
	u16 name_len;
	u16 text_len;
	u32 consumed;
	u32 request_index;
	u32 checksum;
	u32 keep;
	u32 max_requests;
	u32 features;
	u16 listen_port;
	int error;
	u32 nr_entries;
	u32 entries_bytes;
	u64 cursor;
	s64 step_id;
	u64 remote_addr;
	u64 incarnation;
	struct rdmatensor_meta meta;
	struct rdmatensor_table_info table;
	const __le32 *rkeys;
	const char *name;
	const char *text;
	const void *entries;
	const struct rdmatensor_wire_slice *slice;
	const struct rdmatensor_wire_layout *layout;
};

/**
 * rdmatensor_wire_decode - check a message and bring it into the CPU's form
 * @buf: private copy of the slot, 8-byte aligned; nobody else can write it
 * @len: bytes of it that were written
 * @msg: the result
 * @why: in case of an error, what is wrong, for the log
 *
 * Knows of each type which fields it uses, and holds every one of them to its
 * range: lengths against @len, data type, dims and bytes against each other
 * (rdmatensor_meta_check()), rkeys against the segments that the destination
 * touches, entries each by itself. Bounded time, no allocation. @msg is written to in case of an
 * error too, but means nothing then.
 *
 * Return: 0, or -EPROTO.
 */
int rdmatensor_wire_decode(const void *buf, u32 len, struct rdmatensor_msg *msg,
			   const char **why);

/**
 * rdmatensor_wire_encode - write a message
 * @msg: the message; rkeys, name and text may be NULL when their length is 0
 * @buf: slot, 8-byte aligned
 * @room: bytes of @buf
 *
 * Only fields that the type uses are written; rkeys and what belongs to them
 * only with RDMATENSOR_WIRE_F_DEST, the checksum only with
 * RDMATENSOR_WIRE_F_CHECKSUM. Nothing is checked: it is the caller's own.
 *
 * Return: bytes written, or -EMSGSIZE if @room is too small.
 */
int rdmatensor_wire_encode(const struct rdmatensor_msg *msg, void *buf, u32 room);

/* Longest text of a message with these flags */
static inline u32 rdmatensor_wire_text_max(u16 flags)
{
	return flags & RDMATENSOR_WIRE_F_NAMED ? RDMATENSOR_STATUS_TEXT_MAX : RDMATENSOR_TEXT_MAX;
}

/* Bytes that rdmatensor_wire_encode() would write, from the type, flags and lengths */
u32 rdmatensor_wire_length(const struct rdmatensor_msg *msg);

/**
 * rdmatensor_wire_entry_put - write an entry of a LIST_INFO
 * @listed: the entry
 * @buf: where to; needs no alignment
 * @room: bytes there
 *
 * Return: bytes written, 0: there is no room for it.
 */
u32 rdmatensor_wire_entry_put(const struct rdmatensor_listed *listed, void *buf, u32 room);

/**
 * rdmatensor_wire_entry_get - read an entry of a LIST_INFO
 * @buf: where it begins; needs no alignment
 * @bytes: that are there
 * @listed: out: the entry; its name points into @buf
 *
 * Return: length of the entry, 0: it is none, and @listed means nothing.
 */
u32 rdmatensor_wire_entry_get(const void *buf, u32 bytes, struct rdmatensor_listed *listed);

/* Both ways; what was decoded is a slice of some tensor */
void rdmatensor_wire_slice_put(const struct rdmatensor_slice *slice,
			       struct rdmatensor_wire_slice *wire);
void rdmatensor_wire_slice_get(const struct rdmatensor_wire_slice *wire,
			       struct rdmatensor_slice *slice);

/* Both ways; what was decoded is one of the content that the message is about */
void rdmatensor_wire_layout_put(const struct rdmatensor_layout *layout,
				struct rdmatensor_wire_layout *wire);
void rdmatensor_wire_layout_get(const struct rdmatensor_wire_layout *wire,
				struct rdmatensor_layout *layout);

/* Fills the credit into an encoded message */
void rdmatensor_wire_set_consumed(void *buf, u32 consumed);

/*
 * rkeys that a destination needs: segments of 1 << @shift that it touches; 0 for
 * 0 bytes, U32_MAX if there are no fewer or if the addresses wrap
 */
u32 rdmatensor_wire_segments(u64 addr, u64 bytes, u8 shift);

/**
 * rdmatensor_wire_part - the cut of a tensor over lanes
 * @bytes: the tensor's
 * @nr_parts: how many, at least 1
 * @part: which, from 0
 * @offset: where it begins
 * @part_bytes: its length; may be 0 for the last ones
 *
 * Parts are of equal length, rounded up to 4096 bytes, but the last.
 */
void rdmatensor_wire_part(u64 bytes, u8 nr_parts, u8 part, u64 *offset,
			  u64 *part_bytes);

/*
 * A worker's name: 1 to RDMATENSOR_WORKER_MAX - 1 bytes and no control character, because
 * it goes to logs as it is
 */
bool rdmatensor_wire_worker_ok(const char *name, u32 len);

/* Private data of a connection, so far as all lanes have it; the rest is zero */
void rdmatensor_wire_init_private(struct rdmatensor_wire_private *private, u8 lane, u8 lanes,
				  u64 nonce, u8 mtu);

/**
 * rdmatensor_wire_check_private - check what a peer said with its connection
 * @private: what it said; may be NULL
 * @len: bytes of it
 *
 * Whether nonce, lane and sizes fit is the caller's to see.
 *
 * Return: 0, -EPROTO: it is none of this protocol; -EPROTONOSUPPORT: another major version.
 */
int rdmatensor_wire_check_private(const struct rdmatensor_wire_private *private, u8 len);

/*
 * What a peer says becomes the result of a system call: errnos of user space only, as those
 * from 512 on mean something to the kernel that returns them. Else -EPROTO. Nor is it a signal
 * here, after which a program calls again, without end if the peer says so each time
 */
static inline int rdmatensor_wire_errno(int error)
{
	if (error == -EINTR)
		return -EREMOTEIO;
	return error < 0 && error > -512 ? error : -EPROTO;
}

/* For the log and the trace; never NULL */
const char *rdmatensor_wire_type_name(u8 type);

#endif /* RDMATENSOR_WIRE_H */
