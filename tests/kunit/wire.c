// SPDX-License-Identifier: GPL-2.0
/*
 * Control messages: what is written, byte for byte, and that nothing else than
 * a right message is ever taken. Messages are decoded from allocations of
 * exactly their length, so that KASAN sees a read beyond it.
 */
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include <rdma/ib_verbs.h>
#include "core/wire.h"

#define ROOM 4096
#define SEED 0x7264

static const __le32 rkeys[] = {
	cpu_to_le32(0xa1b2c3d4), cpu_to_le32(0x01020304), cpu_to_le32(0), cpu_to_le32(1),
};

/* The first six are of one type each, in the types' order */
enum {
	HELLO, REQUEST, META, RE_REQUEST, ERROR, CANCEL,
	REQUEST_UNKNOWN, REQUEST_NO_DEST, REQUEST_EMPTY, REQUEST_DEAD, REQUEST_LONGEST,
	META_PLAIN, META_DEAD, RE_REQUEST_LONG, ERROR_PLAIN, ERROR_CANCELLED, ERROR_LONGEST,
	TABLE_OPEN, TABLE_INFO, TABLE_FAILED,
	REQUEST_KEEP, REQUEST_KEPT, RE_REQUEST_KEEP,
	LIST, LIST_ALL, LIST_INFO, LIST_NOTHING, LIST_FAILED,
	REQUEST_SLICE, REQUEST_SLICE_BYTES, RE_REQUEST_SLICE, REQUEST_NEWEST,
	REQUEST_LAYOUT, RE_REQUEST_LAYOUT,
};

/* The middle of three rows of five, without the first column; and all bytes from the third on */
static const struct rdmatensor_wire_slice slice = {
	.ndims = 2,
	.ranges = { { cpu_to_le64(1), cpu_to_le64(1) }, { cpu_to_le64(1), cpu_to_le64(U64_MAX) } },
};

static const struct rdmatensor_wire_slice slice_bytes = {
	.ranges = { { cpu_to_le64(2), cpu_to_le64(U64_MAX) } },
};

/* Rows of a wider array of floats; and bytes with gaps */
static const struct rdmatensor_wire_layout layout = {
	.ndims = 2, .strides = { cpu_to_le64(4000), cpu_to_le64(4) },
};

static const struct rdmatensor_wire_layout layout_bytes = {
	.ndims = 1, .strides = { cpu_to_le64(2) },
};

/* Two entries of a list: a tensor of half numbers, {5}, and one that has failed */
#define ENTRY_BYTES 50
static const u8 golden_entries[] = {
	0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x13, 0x00, 0x02, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x61, 0x00,
	0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,
	0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x63,
};

static char longest_name[RDMATENSOR_NAME_MAX];
static const char longest_text[RDMATENSOR_STATUS_TEXT_MAX];
#define TEXT64 "sixty-three bytes are as long as the name of a worker may be, not"

static const struct sample {
	const char *name;
	struct rdmatensor_msg msg;
} samples[] = {
	[HELLO] = { "HELLO", {
		.type = RDMATENSOR_WIRE_HELLO,
		.incarnation = 0x1122334455667788, .max_requests = 1024,
		/* One that is known, and one that nobody knows yet */
		.features = BIT(31) | RDMATENSOR_WIRE_FEATURE_TABLE_WAIT, .listen_port = 18521,
		.text = "worker-1", .text_len = 8,
	} },
	[REQUEST] = { "TENSOR_REQUEST", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST, .request_index = 7, .step_id = -2,
		.remote_addr = 0x7f0000fff000, .nr_parts = 4, .seg_shift = 21,
		.rkeys = rkeys, .nr_rkeys = 2, .name = "w\0x", .name_len = 3,
		.meta = { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2,
			  .bytes = 0xc0000, .dims = { 0x100, 0x300 } },
	} },
	[META] = { "META_DATA_RESPONSE", {
		.type = RDMATENSOR_WIRE_META_DATA_RESPONSE,
		.flags = RDMATENSOR_WIRE_F_CHECKSUM, .checksum = 0xdeadbeef,
		.request_index = RDMATENSOR_INDEX_MAX, .step_id = 0x0102030405060708,
		.meta = { .data_type = RDMATENSOR_DT_HALF, .ndims = 1, .bytes = 10,
			  .dims = { 5 } },
	} },
	[RE_REQUEST] = { "TENSOR_RE_REQUEST", {
		.type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST,
		.request_index = RDMATENSOR_INDEX_MAX, .step_id = 0x0102030405060708,
		.remote_addr = 0x1040, .nr_parts = 1, .seg_shift = 12,
		.rkeys = rkeys, .nr_rkeys = 1,
		.meta = { .data_type = RDMATENSOR_DT_HALF, .ndims = 1, .bytes = 10,
			  .dims = { 5 } },
	} },
	[ERROR] = { "ERROR_STATUS", {
		.type = RDMATENSOR_WIRE_ERROR_STATUS,
		.flags = RDMATENSOR_WIRE_F_NAMED, .request_index = 9, .step_id = -2,
		.error = -2, .name = "w\0x", .name_len = 3, .text = "no such op", .text_len = 10,
	} },
	[CANCEL] = { "CANCEL", {
		.type = RDMATENSOR_WIRE_CANCEL, .request_index = 0x01020304,
	} },
	[REQUEST_UNKNOWN] = { "TENSOR_REQUEST, nothing known", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST, .step_id = S64_MIN,
		.name = "a", .name_len = 1,
	} },
	[REQUEST_NO_DEST] = { "TENSOR_REQUEST, no destination, longest name", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_VALIDATE, .step_id = S64_MAX,
		.name = longest_name, .name_len = RDMATENSOR_NAME_MAX,
		.meta = { .data_type = RDMATENSOR_DT_STRING, .ndims = 0, .bytes = 77 },
	} },
	[REQUEST_EMPTY] = { "TENSOR_REQUEST, empty tensor", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_VALIDATE,
		.remote_addr = U64_MAX, .nr_parts = 1, .seg_shift = 40,
		.name = "a", .name_len = 1,
		.meta = { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1 },
	} },
	[REQUEST_DEAD] = { "TENSOR_REQUEST, dead tensor", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST, .nr_parts = 1, .seg_shift = 12,
		.name = "a", .name_len = 1,
		.meta = { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .is_dead = 1,
			  .dims = { 9 } },
	} },
	[REQUEST_LONGEST] = { "TENSOR_REQUEST, 16 dims, 8 parts, to the last address", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST, .remote_addr = 0 - 4 * 4096ULL,
		.nr_parts = 8, .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 4,
		.name = "a", .name_len = 1,
		.meta = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 16, .bytes = 16383,
			  .dims = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 5461 } },
	} },
	[META_PLAIN] = { "META_DATA_RESPONSE, no checksum", {
		.type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .request_index = 1,
		.meta = { .data_type = RDMATENSOR_DT_INT64, .bytes = 8 },
	} },
	[META_DEAD] = { "META_DATA_RESPONSE, dead tensor", {
		.type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .request_index = 1,
		.flags = RDMATENSOR_WIRE_F_CHECKSUM,
		.meta = { .data_type = RDMATENSOR_DT_INT64, .is_dead = 1 },
	} },
	[RE_REQUEST_LONG] = { "TENSOR_RE_REQUEST, bytes at the limit", {
		.type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST, .remote_addr = (1ULL << 40) - 1,
		.nr_parts = 8, .seg_shift = 40, .rkeys = rkeys, .nr_rkeys = 3,
		.meta = { .data_type = RDMATENSOR_DT_VARIANT, .bytes = (1ULL << 40) + 2 },
	} },
	[ERROR_PLAIN] = { "ERROR_STATUS, longest text without a name", {
		.type = RDMATENSOR_WIRE_ERROR_STATUS, .error = -4095,
		.text = longest_text, .text_len = RDMATENSOR_TEXT_MAX,
	} },
	[ERROR_CANCELLED] = { "ERROR_STATUS of a CANCEL", {
		.type = RDMATENSOR_WIRE_ERROR_STATUS,
		.flags = RDMATENSOR_WIRE_F_CANCELLED, .request_index = 9, .error = -125,
	} },
	[ERROR_LONGEST] = { "ERROR_STATUS, longest name and text", {
		.type = RDMATENSOR_WIRE_ERROR_STATUS,
		.flags = RDMATENSOR_WIRE_F_NAMED, .step_id = S64_MIN, .error = -1,
		.name = longest_name, .name_len = RDMATENSOR_NAME_MAX,
		.text = longest_text, .text_len = RDMATENSOR_STATUS_TEXT_MAX,
	} },
	[TABLE_OPEN] = { "TABLE_OPEN", {
		.type = RDMATENSOR_WIRE_TABLE_OPEN, .request_index = 3,
		.name = "table", .name_len = 5, .table = { .first_key = 17 },
	} },
	/* Ten rows of 512 bytes, 600 apart, from 256 bytes before a change of keys */
	[TABLE_INFO] = { "TABLE_INFO", {
		.type = RDMATENSOR_WIRE_TABLE_INFO, .request_index = 3,
		.remote_addr = 0x7f0000000f00, .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 2,
		.table = { .row_start = 90, .row_end = 100, .row_bytes = 512, .stride = 600,
			   .data_type = RDMATENSOR_DT_FLOAT, .nr_keys = 3, .first_key = 1 },
	} },
	[TABLE_FAILED] = { "TABLE_INFO, failed", {
		.type = RDMATENSOR_WIRE_TABLE_INFO, .flags = RDMATENSOR_WIRE_F_FAILED,
		.request_index = 3, .error = -2,
	} },
	[REQUEST_KEEP] = { "TENSOR_REQUEST, destination to be kept", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP, .keep = U32_MAX,
		.remote_addr = 0x1040, .nr_parts = 1, .seg_shift = 12,
		.rkeys = rkeys, .nr_rkeys = 1, .name = "a", .name_len = 1,
		.meta = { .data_type = RDMATENSOR_DT_HALF, .ndims = 1, .bytes = 10,
			  .dims = { 5 } },
	} },
	[REQUEST_KEPT] = { "TENSOR_REQUEST, kept destination", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST, .flags = RDMATENSOR_WIRE_F_KEEP,
		.keep = 0x01020304, .request_index = 7, .step_id = -2, .name = "w\0x",
		.name_len = 3,
	} },
	[RE_REQUEST_KEEP] = { "TENSOR_RE_REQUEST, destination to be kept", {
		.type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP,
		.nr_parts = 1, .seg_shift = 12,
		.meta = { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1 },
	} },
	[REQUEST_SLICE] = { "TENSOR_REQUEST of a slice", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_SLICE, .slice = &slice,
		.remote_addr = 0x1ffc, .nr_parts = 1, .seg_shift = 12,
		.rkeys = rkeys, .nr_rkeys = 2, .name = "a", .name_len = 1,
		.meta = { .data_type = RDMATENSOR_DT_HALF, .ndims = 2, .bytes = 30,
			  .dims = { 3, 5 } },
	} },
	[REQUEST_SLICE_BYTES] = { "TENSOR_REQUEST of bytes of a new name", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_VALIDATE | RDMATENSOR_WIRE_F_SLICE,
		.slice = &slice_bytes, .request_index = 9, .name = "w\0x", .name_len = 3,
	} },
	[REQUEST_NEWEST] = { "TENSOR_REQUEST of the newest step, at once", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_NEWEST | RDMATENSOR_WIRE_F_NOW |
			 RDMATENSOR_WIRE_F_SLICE,
		.slice = &slice_bytes, .request_index = 9, .step_id = -4, .name = "w",
		.name_len = 1,
	} },
	[RE_REQUEST_SLICE] = { "TENSOR_RE_REQUEST of a slice", {
		.type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_SLICE, .slice = &slice_bytes,
		.remote_addr = 0x1000, .nr_parts = 1, .seg_shift = 12,
		.rkeys = rkeys, .nr_rkeys = 1,
		.meta = { .data_type = RDMATENSOR_DT_STRING, .ndims = 1, .bytes = 4098 },
	} },
	[REQUEST_LAYOUT] = { "TENSOR_REQUEST to a place with gaps", {
		.type = RDMATENSOR_WIRE_TENSOR_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_LAYOUT, .layout = &layout,
		.remote_addr = 0x1000, .nr_parts = 1, .seg_shift = 12,
		.rkeys = rkeys, .nr_rkeys = 2, .name = "a", .name_len = 1,
		.meta = { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 60,
			  .dims = { 3, 5 } },
	} },
	[RE_REQUEST_LAYOUT] = { "TENSOR_RE_REQUEST of a slice to a place with gaps", {
		.type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_SLICE |
			 RDMATENSOR_WIRE_F_LAYOUT,
		.slice = &slice_bytes, .layout = &layout_bytes,
		.remote_addr = 0x1000, .nr_parts = 1, .seg_shift = 12,
		.rkeys = rkeys, .nr_rkeys = 2,
		.meta = { .data_type = RDMATENSOR_DT_STRING, .ndims = 1, .bytes = 4098 },
	} },
	[LIST] = { "LIST", {
		.type = RDMATENSOR_WIRE_LIST, .request_index = 6, .cursor = 0x8000000000000001,
		.name = "w\0x", .name_len = 3,
	} },
	[LIST_ALL] = { "LIST of all names", {
		.type = RDMATENSOR_WIRE_LIST, .request_index = 7,
	} },
	[LIST_INFO] = { "LIST_INFO", {
		.type = RDMATENSOR_WIRE_LIST_INFO, .request_index = 6,
		.cursor = 0x8000000000000009, .nr_entries = 2,
		.entries = golden_entries, .entries_bytes = sizeof(golden_entries),
	} },
	[LIST_NOTHING] = { "LIST_INFO, nothing", {
		.type = RDMATENSOR_WIRE_LIST_INFO, .request_index = 7, .cursor = 256,
	} },
	[LIST_FAILED] = { "LIST_INFO, failed", {
		.type = RDMATENSOR_WIRE_LIST_INFO, .flags = RDMATENSOR_WIRE_F_FAILED,
		.request_index = 3, .error = -13,
	} },
};

static void sample_name(const struct sample *s, char *desc)
{
	strscpy(desc, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sample, samples, sample_name);

static const u8 golden_hello[] = {
	0x60, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x00, 0x04, 0x00, 0x00, 0x01, 0x00, 0x00, 0x80,
	0x59, 0x48, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x77, 0x6f, 0x72, 0x6b, 0x65, 0x72, 0x2d, 0x31,
};

static const u8 golden_request[] = {
	0x5b, 0x00, 0x00, 0x00, 0x01, 0x02, 0x01, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,
	0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0x00, 0xf0, 0xff, 0x00, 0x00, 0x7f, 0x00, 0x00,
	0x00, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x02, 0x02, 0x00, 0x03, 0x00,
	0x00, 0x00, 0x04, 0x15, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xd4, 0xc3, 0xb2, 0xa1, 0x04, 0x03, 0x02, 0x01,
	0x77, 0x00, 0x78,
};

static const u8 golden_meta[] = {
	0x48, 0x00, 0x00, 0x00, 0x01, 0x03, 0x04, 0x00,
	0x00, 0x00, 0x00, 0x00, 0xfd, 0xff, 0xff, 0xff,
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xef, 0xbe, 0xad, 0xde, 0x00, 0x00, 0x00, 0x00,
	0x13, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static const u8 golden_re_request[] = {
	0x4c, 0x00, 0x00, 0x00, 0x01, 0x04, 0x01, 0x00,
	0x00, 0x00, 0x00, 0x00, 0xfd, 0xff, 0xff, 0xff,
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	0x40, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x13, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x0c, 0x00, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xd4, 0xc3, 0xb2, 0xa1,
};

static const u8 golden_error[] = {
	0x4d, 0x00, 0x00, 0x00, 0x01, 0x05, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00,
	0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00,
	0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x77, 0x00, 0x78,
	0x6e, 0x6f, 0x20, 0x73, 0x75, 0x63, 0x68, 0x20,
	0x6f, 0x70,
};

static const u8 golden_cancel[] = {
	0x40, 0x00, 0x00, 0x00, 0x01, 0x06, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static const struct golden {
	const u8 *bytes;
	u32 length;
} goldens[] = {
	[HELLO] = { golden_hello, sizeof(golden_hello) },
	[REQUEST] = { golden_request, sizeof(golden_request) },
	[META] = { golden_meta, sizeof(golden_meta) },
	[RE_REQUEST] = { golden_re_request, sizeof(golden_re_request) },
	[ERROR] = { golden_error, sizeof(golden_error) },
	[CANCEL] = { golden_cancel, sizeof(golden_cancel) },
};

static int wire_init(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < sizeof(longest_name); i++)
		longest_name[i] = i;
	return 0;
}

static u32 encode(struct kunit *test, const struct sample *sample, void **buf)
{
	int length;

	*buf = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *buf);
	length = rdmatensor_wire_encode(&sample->msg, *buf, ROOM);
	KUNIT_ASSERT_GT(test, length, 0);
	KUNIT_ASSERT_LE(test, length, ROOM);
	return length;
}

/* Decodes from an allocation of @len bytes; the message's pointers are stale */
static int decode(struct kunit *test, const void *bytes, u32 len,
		  struct rdmatensor_msg *msg, const char **why)
{
	void *copy = kmalloc(len, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, bytes, len);
	ret = rdmatensor_wire_decode(copy, len, msg, why);
	kfree(copy);
	return ret;
}

static void expect_refused(struct kunit *test, const char *name, const void *bytes,
			   u32 len, const char *reason)
{
	struct rdmatensor_msg msg;
	const char *why = NULL;

	KUNIT_EXPECT_EQ_MSG(test, decode(test, bytes, len, &msg, &why), -EPROTO,
			    "%s, %u bytes", name, len);
	KUNIT_EXPECT_NOT_NULL_MSG(test, why, "%s, %u bytes", name, len);
	if (reason && why)
		KUNIT_EXPECT_STREQ_MSG(test, why, reason, "%s", name);
}

static void expect_bytes(struct kunit *test, const void *a, const void *b, u32 len)
{
	KUNIT_EXPECT_EQ(test, memcmp(a, b, len), 0);
}

static void golden_bytes(struct kunit *test)
{
	unsigned int i;
	void *buf;
	u32 len;

	for (i = 0; i < ARRAY_SIZE(goldens); i++) {
		len = encode(test, &samples[i], &buf);
		KUNIT_EXPECT_EQ_MSG(test, len, goldens[i].length, "%s", samples[i].name);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(buf, goldens[i].bytes,
						 min(len, goldens[i].length)),
				    0, "%s", samples[i].name);
	}
}

static void round_trip(struct kunit *test)
{
	const struct sample *sample = test->param_value;
	const struct rdmatensor_msg *in = &sample->msg;
	struct rdmatensor_msg out;
	void *buf, *again;
	const char *why;
	u32 len;

	len = encode(test, sample, &buf);
	KUNIT_EXPECT_EQ(test, len, rdmatensor_wire_length(in));
	rdmatensor_wire_set_consumed(buf, 0xfedcba98);
	memset(&out, 0xa5, sizeof(out));
	KUNIT_ASSERT_EQ(test, rdmatensor_wire_decode(buf, len, &out, &why), 0);
	KUNIT_EXPECT_NULL(test, why);

	KUNIT_EXPECT_EQ(test, out.type, in->type);
	KUNIT_EXPECT_EQ(test, out.nr_parts, in->nr_parts);
	KUNIT_EXPECT_EQ(test, out.seg_shift, in->seg_shift);
	KUNIT_EXPECT_EQ(test, out.flags, in->flags);
	KUNIT_EXPECT_EQ(test, out.consumed, 0xfedcba98);
	KUNIT_EXPECT_EQ(test, out.request_index, in->request_index);
	KUNIT_EXPECT_EQ(test, out.checksum, in->checksum);
	KUNIT_EXPECT_EQ(test, out.keep, in->keep);
	KUNIT_EXPECT_EQ(test, out.max_requests, in->max_requests);
	KUNIT_EXPECT_EQ(test, out.error, in->error);
	KUNIT_EXPECT_EQ(test, out.step_id, in->step_id);
	KUNIT_EXPECT_EQ(test, out.remote_addr, in->remote_addr);
	KUNIT_EXPECT_EQ(test, out.incarnation, in->incarnation);
	KUNIT_EXPECT_EQ(test, out.cursor, in->cursor);
	KUNIT_EXPECT_EQ(test, out.nr_entries, in->nr_entries);
	KUNIT_ASSERT_EQ(test, out.entries_bytes, in->entries_bytes);
	expect_bytes(test, &out.meta, &in->meta, sizeof(out.meta));
	expect_bytes(test, &out.table, &in->table, sizeof(out.table));
	KUNIT_ASSERT_EQ(test, out.nr_rkeys, in->nr_rkeys);
	KUNIT_ASSERT_EQ(test, out.name_len, in->name_len);
	KUNIT_ASSERT_EQ(test, out.text_len, in->text_len);
	if (in->nr_rkeys)
		expect_bytes(test, out.rkeys, in->rkeys, in->nr_rkeys * sizeof(__le32));
	if (in->name_len)
		expect_bytes(test, out.name, in->name, in->name_len);
	if (in->text_len)
		expect_bytes(test, out.text, in->text, in->text_len);
	if (in->entries_bytes)
		expect_bytes(test, out.entries, in->entries, in->entries_bytes);
	KUNIT_ASSERT_EQ(test, !out.slice, !in->slice);
	if (in->slice)
		expect_bytes(test, out.slice, in->slice,
			     8 + 16 * max_t(u32, in->slice->ndims, 1));
	KUNIT_ASSERT_EQ(test, !out.layout, !in->layout);
	if (in->layout)
		expect_bytes(test, out.layout, in->layout, 8 + 8 * in->layout->ndims);

	again = kunit_kzalloc(test, len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, again);
	KUNIT_ASSERT_EQ(test, rdmatensor_wire_encode(&out, again, len), (int)len);
	rdmatensor_wire_set_consumed(again, out.consumed);
	expect_bytes(test, again, buf, len);
}

static void no_room(struct kunit *test)
{
	const struct sample *sample = test->param_value;
	u32 len = rdmatensor_wire_length(&sample->msg), room;
	u8 *buf = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (room = 0; room < len; room++)
		KUNIT_EXPECT_EQ(test, rdmatensor_wire_encode(&sample->msg, buf, room),
				-EMSGSIZE);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0, len));
}

/* What is left over in a message from another use of it must not reach the peer */
static void only_used_fields_are_written(struct kunit *test)
{
	struct rdmatensor_msg clean = samples[CANCEL].msg, dirty = samples[REQUEST].msg;
	u8 a[128] __aligned(8), b[128] __aligned(8);

	dirty.type = clean.type;
	dirty.flags = 0;
	dirty.request_index = clean.request_index;
	dirty.checksum = 1;
	dirty.keep = 1;
	dirty.error = -5;
	dirty.incarnation = 1;
	dirty.max_requests = 1;
	dirty.consumed = 1;
	dirty.text = "left over";
	dirty.text_len = 9;
	KUNIT_ASSERT_EQ(test, rdmatensor_wire_encode(&clean, a, sizeof(a)), 64);
	KUNIT_ASSERT_EQ(test, rdmatensor_wire_encode(&dirty, b, sizeof(b)), 64);
	expect_bytes(test, a, b, 64);
}

/* Cut at every length, with the header's idea of the length and with a corrected one */
static void truncated(struct kunit *test)
{
	const struct sample *sample = test->param_value;
	struct rdmatensor_wire_hdr *hdr;
	u32 len, cut;
	void *buf;

	len = encode(test, sample, &buf);
	hdr = buf;
	for (cut = 0; cut < len; cut++) {
		hdr->length = cpu_to_le32(len);
		expect_refused(test, sample->name, buf, cut,
			       cut < sizeof(*hdr) ? "shorter than a header" : "length");
		hdr->length = cpu_to_le32(cut);
		expect_refused(test, sample->name, buf, cut, NULL);
	}
	for (cut = len + 1; cut < len + 200; cut++) {
		hdr->length = cpu_to_le32(len);
		expect_refused(test, sample->name, buf, cut, "length");
		hdr->length = cpu_to_le32(cut);
		expect_refused(test, sample->name, buf, cut, "lengths of the tail");
	}
}

/* Where things are in a message: said here once more, in numbers */
struct field {
	const char *name;
	u32 offset;
	u32 size;
};

static const struct field
	at_length = { "length", 0, 4 },
	at_version_major = { "version_major", 4, 1 },
	at_type = { "type", 5, 1 },
	at_flags = { "flags", 6, 2 },
	at_request_index = { "request_index", 12, 4 },
	at_step_id = { "step_id", 16, 8 },
	at_remote_addr = { "remote_addr", 24, 8 },
	at_tensor_bytes = { "tensor_bytes", 32, 8 },
	at_checksum = { "checksum", 40, 4 },
	at_error_status = { "error_status", 44, 4 },
	at_data_type = { "data_type", 48, 2 },
	at_is_dead = { "is_dead", 50, 1 },
	at_ndims = { "ndims", 51, 1 },
	at_nr_rkeys = { "nr_rkeys", 52, 2 },
	at_name_len = { "name_len", 54, 2 },
	at_text_len = { "text_len", 56, 2 },
	at_nr_parts = { "nr_parts", 58, 1 },
	at_seg_shift = { "seg_shift", 59, 1 },
	at_keep = { "keep", 60, 4 },
	at_hello_max_requests = { "hello max requests", 72, 4 },
	at_hello_reserved = { "hello reserved", 84, 4 },
	at_worker_first = { "worker first", 88, 1 },
	at_worker_two = { "worker's first two", 88, 2 },
	at_worker_last = { "worker last", 95, 1 },
	at_row_start = { "row_start", 64, 8 },
	at_row_end = { "row_end", 72, 8 },
	at_row_bytes = { "row_bytes", 80, 8 },
	at_stride = { "stride", 88, 8 },
	at_row_type = { "data type of rows", 96, 4 },
	at_nr_keys = { "nr_keys", 100, 4 },
	at_first_key = { "first_key", 104, 4 },
	at_table_reserved = { "table reserved", 108, 4 },
	at_nr_entries = { "nr_entries", 72, 4 },
	at_entries_bytes = { "entries_bytes", 76, 4 },
	at_entry_cursor = { "cursor of an entry", 80, 8 },
	at_entry_bytes = { "bytes of an entry's tensor", 96, 8 },
	at_entry_error = { "error of an entry", 104, 4 },
	at_entry_type = { "data type of an entry", 112, 2 },
	at_entry_name_len = { "name_len of an entry", 114, 2 },
	at_entry_dead = { "is_dead of an entry", 116, 1 },
	at_entry_ndims = { "ndims of an entry", 117, 1 },
	at_entry_reserved = { "reserved field of an entry", 118, 2 },
	at_last_name_len = { "name_len of the last entry", 164, 2 },
	at_slice_ndims = { "ndims of a slice", 64, 1 },
	at_slice_reserved = { "reserved field of a slice", 65, 1 },
	at_slice_reserved_end = { "its end", 71, 1 },
	at_slice_start = { "start of the first range", 72, 8 },
	at_slice_length = { "length of the first range", 80, 8 },
	at_slice_last_start = { "start of the last range", 88, 8 },
	at_slice_last_length = { "length of the last range", 96, 8 },
	at_layout_ndims = { "ndims of a layout", 64, 1 },
	at_layout_reserved = { "reserved field of a layout", 65, 1 },
	at_layout_reserved_end = { "its end", 71, 1 },
	at_layout_stride = { "first stride", 72, 8 },
	at_layout_last = { "last stride", 80, 8 },
	at_second_layout_ndims = { "ndims of a layout behind a slice", 88, 1 },
	at_second_layout_stride = { "stride of that", 96, 8 },
	at_first_dim = { "first dim", 64, 8 };

static const char unused[] = "field that the type does not use";
static const char tail[] = "lengths of the tail";
static const char listed_wrong[] = "entry of a list";

/* A right message with some fields changed; @extra: bytes added to its end */
static const struct bad_case {
	const char *name;
	unsigned int sample;
	const char *why;
	int extra;
	struct {
		const struct field *field;
		u64 value;
	} set[8];
} bad_cases[] = {
	{ "length 0", REQUEST, "length", 0, { { &at_length, 0 } } },
	{ "length of a header", REQUEST, "length", 0, { { &at_length, 64 } } },
	{ "length 2^32 - 1", REQUEST, "length", 0, { { &at_length, U32_MAX } } },
	{ "version 0", REQUEST, "version", 0, { { &at_version_major, 0 } } },
	{ "version 2", REQUEST, "version", 0, { { &at_version_major, 2 } } },
	{ "version 255", CANCEL, "version", 0, { { &at_version_major, 255 } } },
	{ "type 0", CANCEL, "unknown type", 0, { { &at_type, 0 } } },
	{ "TABLE_OPEN of no name", CANCEL, "name_len", 0,
	  { { &at_type, RDMATENSOR_WIRE_TABLE_OPEN } } },
	{ "TABLE_INFO of nothing", CANCEL, tail, 0,
	  { { &at_type, RDMATENSOR_WIRE_TABLE_INFO } } },
	{ "TABLE_INFO with a name", TABLE_INFO, unused, 5, { { &at_name_len, 5 } } },
	{ "TABLE_INFO, failed, with rows", TABLE_INFO, unused, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_FAILED } } },
	{ "TABLE_INFO, failed, without why", TABLE_FAILED, "error_status", 0,
	  { { &at_error_status, 0 } } },
	{ "TABLE_OPEN with rows", TABLE_OPEN, "rows in a question", 0, { { &at_row_end, 1 } } },
	{ "TABLE_OPEN with a type", TABLE_OPEN, "rows in a question", 0, { { &at_row_type, 1 } } },
	{ "TABLE_OPEN of too many keys", TABLE_OPEN, "first_key", 0,
	  { { &at_first_key, RDMATENSOR_WIRE_KEYS_MAX } } },
	{ "a table's reserved field", TABLE_INFO, "reserved field of a table", 0,
	  { { &at_table_reserved, 1 } } },
	{ "no rows", TABLE_INFO, "range of rows", 0, { { &at_row_end, 90 } } },
	{ "rows that end before they begin", TABLE_INFO, "range of rows", 0,
	  { { &at_row_start, 101 } } },
	{ "rows beyond all numbers", TABLE_INFO, "range of rows", 0,
	  { { &at_row_end, 1ULL << 63 } } },
	{ "rows of nothing", TABLE_INFO, "bytes of a row", 0, { { &at_row_bytes, 0 } } },
	{ "rows that are too long", TABLE_INFO, "bytes of a row", 0,
	  { { &at_row_bytes, RDMATENSOR_ROW_MAX + 1 }, { &at_stride, 1ULL << 21 } } },
	{ "rows of 2^32 and some bytes", TABLE_INFO, "bytes of a row", 0,
	  { { &at_row_bytes, (1ULL << 32) + 512 }, { &at_stride, 1ULL << 33 } } },
	{ "rows that overlap", TABLE_INFO, "bytes of a row", 0, { { &at_stride, 511 } } },
	{ "rows of no type", TABLE_INFO, "data type", 0, { { &at_row_type, 0 } } },
	{ "rows of a type that is not", TABLE_INFO, "data type", 0,
	  { { &at_row_type, RDMATENSOR_DT_MAX + 1 } } },
	{ "rows with a wrong seg_shift", TABLE_INFO, "seg_shift", 0, { { &at_seg_shift, 11 } } },
	{ "rows that are too far apart", TABLE_INFO, "length of the rows", 0,
	  { { &at_stride, 1ULL << 62 } } },
	{ "rows that wrap", TABLE_INFO, "length of the rows", 0,
	  { { &at_remote_addr, U64_MAX - 4096 } } },
	{ "a key less", TABLE_INFO, "number of keys", 0, { { &at_nr_keys, 2 } } },
	{ "a key more", TABLE_INFO, "number of keys", 0, { { &at_nr_keys, 4 } } },
	{ "rows that need another key", TABLE_INFO, "number of keys", 0,
	  { { &at_row_end, 1000 } } },
	{ "keys beyond the last", TABLE_INFO, "keys that are none of the rows'", 0,
	  { { &at_first_key, 2 } } },
	{ "keys from beyond the last", TABLE_INFO, "keys that are none of the rows'", 0,
	  { { &at_first_key, U32_MAX } } },
	{ "no keys", TABLE_INFO, "keys that are none of the rows'", -8, { { &at_nr_rkeys, 0 } } },
	{ "LIST without a cursor", CANCEL, tail, 0, { { &at_type, RDMATENSOR_WIRE_LIST } } },
	{ "LIST of the ack's index", LIST, "request_index", 0,
	  { { &at_request_index, RDMATENSOR_IMM_ACK } } },
	{ "LIST of a prefix of 513", LIST, "name_len", 510, { { &at_name_len, 513 } } },
	{ "LIST of a longer prefix", LIST, tail, 0, { { &at_name_len, 4 } } },
	{ "LIST with entries", LIST, "entries in a question", 0, { { &at_nr_entries, 1 } } },
	{ "LIST with bytes of entries", LIST, tail, 0, { { &at_entries_bytes, 1 } } },
	{ "LIST with entries behind it", LIST_ALL, tail, 41, { { &at_entries_bytes, 41 } } },
	{ "LIST with a step", LIST, unused, 0, { { &at_step_id, 1 } } },
	{ "LIST with dims", LIST, unused, 8, { { &at_ndims, 1 } } },
	{ "LIST_INFO with a name", LIST_INFO, unused, 1, { { &at_name_len, 1 } } },
	{ "LIST_INFO, failed, with entries", LIST_INFO, tail, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_FAILED }, { &at_error_status, 13 } } },
	{ "LIST_INFO, failed, without why", LIST_FAILED, "error_status", 0,
	  { { &at_error_status, 0 } } },
	{ "LIST_INFO with why", LIST_INFO, unused, 0, { { &at_error_status, 13 } } },
	{ "an entry less", LIST_INFO, "number of entries", 0, { { &at_nr_entries, 1 } } },
	{ "an entry more", LIST_INFO, "number of entries", 0, { { &at_nr_entries, 3 } } },
	{ "2^32 - 1 entries", LIST_INFO, "number of entries", 0, { { &at_nr_entries, U32_MAX } } },
	{ "entries of nothing", LIST_NOTHING, "number of entries", 0, { { &at_nr_entries, 1 } } },
	{ "a byte of the entries less", LIST_INFO, tail, 0, { { &at_entries_bytes, 90 } } },
	{ "a byte of the entries more", LIST_INFO, tail, 0, { { &at_entries_bytes, 92 } } },
	{ "2^32 - 1 bytes of entries", LIST_INFO, tail, 0, { { &at_entries_bytes, U32_MAX } } },
	{ "the last entry cut", LIST_INFO, listed_wrong, -1, { { &at_entries_bytes, 90 } } },
	{ "the last entry cut before its name", LIST_INFO, listed_wrong, -2,
	  { { &at_entries_bytes, 89 } } },
	{ "a byte behind the last entry", LIST_INFO, listed_wrong, 1,
	  { { &at_entries_bytes, 92 } } },
	{ "a name that ends behind the message", LIST_INFO, listed_wrong, 0,
	  { { &at_last_name_len, 2 } } },
	{ "an entry without a cursor", LIST_INFO, listed_wrong, 0, { { &at_entry_cursor, 0 } } },
	{ "an entry without a name", LIST_INFO, listed_wrong, 0, { { &at_entry_name_len, 0 } } },
	{ "an entry with a name of 513", LIST_INFO, listed_wrong, 0,
	  { { &at_entry_name_len, 513 } } },
	{ "an entry of error 4096", LIST_INFO, listed_wrong, 0, { { &at_entry_error, 4096 } } },
	{ "an entry of error -5", LIST_INFO, listed_wrong, 0, { { &at_entry_error, -5 } } },
	{ "an entry that failed, with meta-data", LIST_INFO, listed_wrong, 0,
	  { { &at_entry_error, 5 } } },
	{ "an entry of no type", LIST_INFO, listed_wrong, 0, { { &at_entry_type, 0 } } },
	{ "an entry of a type that is not", LIST_INFO, listed_wrong, 0,
	  { { &at_entry_type, RDMATENSOR_DT_MAX + 1 } } },
	{ "an entry of bytes that are not its shape's", LIST_INFO, listed_wrong, 0,
	  { { &at_entry_bytes, 12 } } },
	{ "an entry, dead, with bytes", LIST_INFO, listed_wrong, 0, { { &at_entry_dead, 1 } } },
	{ "an entry of 17 dims", LIST_INFO, listed_wrong, 0, { { &at_entry_ndims, 17 } } },
	{ "an entry of 255 dims", LIST_INFO, listed_wrong, 0, { { &at_entry_ndims, 255 } } },
	{ "an entry's reserved field", LIST_INFO, listed_wrong, 0,
	  { { &at_entry_reserved, 256 } } },
	{ "type 11", CANCEL, "unknown type", 0, { { &at_type, 11 } } },
	{ "type 255", CANCEL, "unknown type", 0, { { &at_type, 255 } } },
	{ "kept, and told all the same", REQUEST, unused, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_KEEP } } },
	{ "kept, with meta-data", REQUEST_KEPT, unused, 0, { { &at_data_type, 1 } } },
	{ "kept, with an address", REQUEST_KEPT, unused, 0, { { &at_remote_addr, 4096 } } },
	{ "kept, in parts", REQUEST_KEPT, unused, 0, { { &at_nr_parts, 1 } } },
	{ "kept, without a name", REQUEST_KEPT, "name_len", -3, { { &at_name_len, 0 } } },
	{ "kept, with a checksum", REQUEST_KEPT, "kept destination with validation", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_KEEP | RDMATENSOR_WIRE_F_VALIDATE } } },
	{ "to be kept, with a checksum", REQUEST_KEEP, "kept destination with validation", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP |
			 RDMATENSOR_WIRE_F_VALIDATE } } },
	{ "re-request that refers", RE_REQUEST_KEEP, unused, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_KEEP } } },

	{ "TENSOR_REQUEST of the ack's index", REQUEST, "request_index", 0,
	  { { &at_request_index, RDMATENSOR_IMM_ACK } } },
	{ "META_DATA_RESPONSE of the ack's index", META, "request_index", 0,
	  { { &at_request_index, RDMATENSOR_IMM_ACK } } },
	{ "TENSOR_RE_REQUEST of the message's index", RE_REQUEST, "request_index", 0,
	  { { &at_request_index, RDMATENSOR_IMM_MESSAGE } } },
	{ "ERROR_STATUS of the message's index", ERROR, "request_index", 0,
	  { { &at_request_index, RDMATENSOR_IMM_MESSAGE } } },
	{ "CANCEL of the ack's index", CANCEL, "request_index", 0,
	  { { &at_request_index, RDMATENSOR_IMM_ACK } } },

	{ "17 dims", REQUEST, "ndims", 0, { { &at_ndims, 17 } } },
	{ "17 dims that are there", META, "ndims", 128, { { &at_ndims, 17 } } },
	{ "255 dims", META, "ndims", 0, { { &at_ndims, 255 } } },
	{ "a dim less", REQUEST, tail, 0, { { &at_ndims, 1 } } },
	{ "a dim more", REQUEST, tail, 0, { { &at_ndims, 3 } } },
	{ "an rkey less", REQUEST, tail, 0, { { &at_nr_rkeys, 1 } } },
	{ "an rkey more", REQUEST, tail, 0, { { &at_nr_rkeys, 3 } } },
	{ "65535 rkeys", REQUEST, tail, 0, { { &at_nr_rkeys, U16_MAX } } },
	{ "no name", REQUEST, "name_len", -3, { { &at_name_len, 0 } } },
	{ "a shorter name", REQUEST, tail, 0, { { &at_name_len, 2 } } },
	{ "a longer name", REQUEST, tail, 0, { { &at_name_len, 4 } } },
	{ "name of 513", REQUEST, "name_len", 510, { { &at_name_len, 513 } } },
	{ "name of 65535", REQUEST, "name_len", 0, { { &at_name_len, U16_MAX } } },
	{ "a shorter text", ERROR, tail, 0, { { &at_text_len, 9 } } },
	{ "a longer text", ERROR, tail, 0, { { &at_text_len, 11 } } },
	{ "text of 129, without a name", ERROR_PLAIN, "text_len", 1, { { &at_text_len, 129 } } },
	{ "text of 1025", ERROR_LONGEST, "text_len", 1, { { &at_text_len, 1025 } } },
	{ "ERROR_STATUS of no name", ERROR, "name_len", -3, { { &at_name_len, 0 } } },
	{ "ERROR_STATUS of a name of 513", ERROR_LONGEST, "name_len", 1,
	  { { &at_name_len, 513 } } },
	{ "ERROR_STATUS with a name that it does not tell of", ERROR, unused, 0,
	  { { &at_flags, 0 } } },
	{ "answer to a CANCEL, with a name", ERROR, "flags", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_NAMED | RDMATENSOR_WIRE_F_CANCELLED } } },
	{ "text of 65535", ERROR, "text_len", 0, { { &at_text_len, U16_MAX } } },
	{ "lengths that make up for each other", REQUEST, "number of rkeys", 0,
	  { { &at_nr_rkeys, 1 }, { &at_name_len, 7 } } },

	{ "HELLO without a worker name", HELLO, "worker name", -8,
	  { { &at_text_len, 0 } } },
	{ "a worker name of 64", HELLO, "worker name", 56, { { &at_text_len, 64 } } },
	{ "a worker name that begins with 0", HELLO, "worker name", 0,
	  { { &at_worker_first, 0 } } },
	{ "a worker name that ends with 0", HELLO, "worker name", 0,
	  { { &at_worker_last, 0 } } },
	{ "a worker name with a newline", HELLO, "worker name", 0,
	  { { &at_worker_last, '\n' } } },
	{ "a worker name with a delete", HELLO, "worker name", 0,
	  { { &at_worker_first, 0x7f } } },
	{ "a worker name with U+0080", HELLO, "worker name", 0,
	  { { &at_worker_two, 0x80c2 } } },
	{ "a worker name with U+009F", HELLO, "worker name", 0,
	  { { &at_worker_two, 0x9fc2 } } },
	{ "no requests allowed", HELLO, "max_requests", 0,
	  { { &at_hello_max_requests, 0 } } },
	{ "HELLO's reserved field", HELLO, "reserved field of HELLO", 0,
	  { { &at_hello_reserved, 1U << 31 } } },

	{ "error 0", ERROR, "error_status", 0, { { &at_error_status, 0 } } },
	{ "error 4096", ERROR, "error_status", 0, { { &at_error_status, 4096 } } },
	{ "error -2^31", ERROR, "error_status", 0, { { &at_error_status, 1U << 31 } } },
	{ "error -2", ERROR, "error_status", 0, { { &at_error_status, -2 } } },

	{ "META_DATA_RESPONSE without a type", META, "meta-data", 0,
	  { { &at_data_type, 0 } } },
	{ "META_DATA_RESPONSE of nothing", META_PLAIN, "meta-data", 0,
	  { { &at_data_type, 0 }, { &at_tensor_bytes, 0 } } },
	{ "TENSOR_RE_REQUEST without a type", RE_REQUEST, "meta-data", 0,
	  { { &at_data_type, 0 } } },
	{ "a type that is not", META, "meta-data", 0,
	  { { &at_data_type, RDMATENSOR_DT_MAX + 1 } } },
	{ "type 0x100 + FLOAT", REQUEST, "meta-data", 0, { { &at_data_type, 0x101 } } },
	{ "is_dead 2", META_DEAD, "meta-data", 0, { { &at_is_dead, 2 } } },
	{ "dead with bytes", META, "meta-data", 0, { { &at_is_dead, 1 } } },
	{ "a byte less", META, "meta-data", 0, { { &at_tensor_bytes, 9 } } },
	{ "bytes of a negative number", META, "meta-data", 0,
	  { { &at_tensor_bytes, U64_MAX } } },
	{ "opaque bytes beyond 2^63", REQUEST_NO_DEST, "meta-data", 0,
	  { { &at_tensor_bytes, 1ULL << 63 } } },
	{ "a wrong dim", REQUEST, "meta-data", 0, { { &at_first_dim, 1 } } },

	{ "dead, of no type", REQUEST_UNKNOWN, "meta-data without a data type", 0,
	  { { &at_is_dead, 1 } } },
	{ "bytes, of no type", REQUEST_UNKNOWN, "meta-data without a data type", 0,
	  { { &at_tensor_bytes, 1 } } },
	{ "a shape, of no type", REQUEST_UNKNOWN, "meta-data without a data type", 8,
	  { { &at_ndims, 1 } } },
	{ "a destination, of no type", REQUEST_EMPTY, "destination without meta-data", -8,
	  { { &at_ndims, 0 }, { &at_data_type, 0 } } },

	{ "seg_shift 0", REQUEST, "seg_shift", 0, { { &at_seg_shift, 0 } } },
	{ "seg_shift 11", REQUEST, "seg_shift", 0, { { &at_seg_shift, 11 } } },
	{ "seg_shift 41", REQUEST, "seg_shift", 0, { { &at_seg_shift, 41 } } },
	{ "seg_shift 64", RE_REQUEST, "seg_shift", 0, { { &at_seg_shift, 64 } } },
	{ "seg_shift 255", REQUEST_EMPTY, "seg_shift", 0, { { &at_seg_shift, 255 } } },
	{ "0 parts", REQUEST, "nr_parts", 0, { { &at_nr_parts, 0 } } },
	{ "0 parts of nothing", REQUEST_EMPTY, "nr_parts", 0, { { &at_nr_parts, 0 } } },
	{ "9 parts", REQUEST, "nr_parts", 0, { { &at_nr_parts, 9 } } },
	{ "255 parts", RE_REQUEST, "nr_parts", 0, { { &at_nr_parts, 255 } } },
	{ "2 parts of nothing", REQUEST_EMPTY, "nr_parts", 0, { { &at_nr_parts, 2 } } },
	{ "2 parts of the dead", REQUEST_DEAD, "nr_parts", 0, { { &at_nr_parts, 2 } } },
	{ "addresses that end at 2^64", REQUEST, "remote_addr", 0,
	  { { &at_remote_addr, 0 - 0xc0000ULL } } },
	{ "addresses that wrap", RE_REQUEST, "remote_addr", 0,
	  { { &at_remote_addr, U64_MAX } } },
	{ "a segment less", REQUEST, "number of rkeys", 0, { { &at_remote_addr, 0 } } },
	{ "a segment more", REQUEST, "number of rkeys", 0, { { &at_seg_shift, 18 } } },
	{ "no rkey", RE_REQUEST, "number of rkeys", -4, { { &at_nr_rkeys, 0 } } },
	{ "an rkey too many", RE_REQUEST, "number of rkeys", 4, { { &at_nr_rkeys, 2 } } },
	{ "an rkey for nothing", REQUEST_EMPTY, "number of rkeys", 4,
	  { { &at_nr_rkeys, 1 } } },
	{ "a layout without its flag", REQUEST_LAYOUT, tail, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_DEST } } },
	{ "a layout of no length", CANCEL, "flags", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_LAYOUT } } },
	{ "a layout that is not there", REQUEST_UNKNOWN, "dims of a layout", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_LAYOUT } } },
	{ "a layout of 17 dims", REQUEST_LAYOUT, "dims of a layout", 0,
	  { { &at_layout_ndims, 17 } } },
	{ "a layout of a dim more", REQUEST_LAYOUT, tail, 0, { { &at_layout_ndims, 3 } } },
	{ "a layout of a dim less", REQUEST_LAYOUT, tail, 0, { { &at_layout_ndims, 1 } } },
	{ "a layout of a dim more, which is another's", REQUEST_LAYOUT, "meta-data", 8,
	  { { &at_layout_ndims, 3 } } },
	{ "a layout of no dim behind a slice", RE_REQUEST_LAYOUT, tail, 0,
	  { { &at_second_layout_ndims, 0 } } },
	{ "a layout's reserved field", REQUEST_LAYOUT, "reserved field of a layout", 0,
	  { { &at_layout_reserved, 1 } } },
	{ "a layout's reserved field's end", REQUEST_LAYOUT, "reserved field of a layout", 0,
	  { { &at_layout_reserved_end, 128 } } },
	{ "a stride beyond all numbers", REQUEST_LAYOUT, "stride of a layout", 0,
	  { { &at_layout_last, 1ULL << 63 } } },
	{ "a layout that ends beyond them", REQUEST_LAYOUT, "layout of other meta-data", 0,
	  { { &at_layout_stride, S64_MAX } } },
	{ "a layout that overlaps itself", REQUEST_LAYOUT, "layout that overlaps itself", 0,
	  { { &at_layout_stride, 19 } } },
	{ "bytes that overlap", RE_REQUEST_LAYOUT, "layout that overlaps itself", 0,
	  { { &at_second_layout_stride, 0 } } },
	{ "a layout of many runs", RE_REQUEST_LAYOUT, "number of rkeys", 0,
	  { { &at_tensor_bytes, 65538 } } },
	{ "a layout of too many runs", RE_REQUEST_LAYOUT, "layout of too many runs", 0,
	  { { &at_tensor_bytes, 65539 } } },
	{ "a layout that needs a key less", REQUEST_LAYOUT, "number of rkeys", 0,
	  { { &at_layout_stride, 100 } } },
	{ "a layout that needs a key more", RE_REQUEST_LAYOUT, "number of rkeys", 0,
	  { { &at_second_layout_stride, 3 } } },
	{ "a layout without a destination", REQUEST_LAYOUT, NULL, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_LAYOUT } } },
	{ "a layout of a kept destination", REQUEST_LAYOUT, "kept destination with a layout", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP |
			 RDMATENSOR_WIRE_F_LAYOUT } } },
	{ "a layout of the dead", REQUEST_LAYOUT, "layout of nothing", 0,
	  { { &at_is_dead, 1 }, { &at_tensor_bytes, 0 } } },
	{ "a slice without its flag", REQUEST_SLICE, tail, 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_DEST } } },
	{ "a slice of no length", CANCEL, "flags", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_SLICE } } },
	{ "a slice that is not there", REQUEST_UNKNOWN, "dims of a slice", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_SLICE } } },
	{ "a slice of 17 dims", REQUEST_SLICE, "dims of a slice", 0, { { &at_slice_ndims, 17 } } },
	{ "a slice of a dim more", REQUEST_SLICE, tail, 0, { { &at_slice_ndims, 3 } } },
	{ "a slice of a dim less", REQUEST_SLICE, tail, 0, { { &at_slice_ndims, 1 } } },
	{ "a slice's reserved field", REQUEST_SLICE, "reserved field of a slice", 0,
	  { { &at_slice_reserved, 1 } } },
	{ "a slice's reserved field's end", REQUEST_SLICE, "reserved field of a slice", 0,
	  { { &at_slice_reserved_end, 128 } } },
	{ "a slice that ends beyond all numbers", REQUEST_SLICE, "range of a slice", 0,
	  { { &at_slice_last_length, S64_MAX } } },
	{ "a slice that begins beyond them", REQUEST_SLICE_BYTES, "range of a slice", 0,
	  { { &at_slice_start, 1ULL << 63 } } },
	{ "a slice with a row more", REQUEST_SLICE, "slice of other meta-data", 0,
	  { { &at_slice_length, 3 } } },
	{ "a slice from beyond the last column", REQUEST_SLICE, "slice of other meta-data", 0,
	  { { &at_slice_last_start, 6 } } },
	{ "a slice of bytes beyond the last", RE_REQUEST_SLICE, "slice of other meta-data", 0,
	  { { &at_slice_start, 4099 } } },
	{ "a slice that needs a key less", REQUEST_SLICE, "number of rkeys", 0,
	  { { &at_slice_last_length, 2 } } },
	{ "a slice that needs a key more", RE_REQUEST_SLICE, "number of rkeys", 0,
	  { { &at_slice_start, 1 } } },
	{ "a slice of a kept destination", REQUEST_SLICE_BYTES, "kept destination with a slice", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_KEEP | RDMATENSOR_WIRE_F_SLICE } } },
	{ "the newest step, to a destination", REQUEST, "destination before the step is known", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_NEWEST } } },
	{ "the newest step, to a kept destination", REQUEST_KEPT,
	  "destination before the step is known", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_KEEP | RDMATENSOR_WIRE_F_NEWEST } } },
	{ "an answer at once to no question", RE_REQUEST, "flags", 0,
	  { { &at_flags, RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_NOW } } },
	{ "2^28 segments", RE_REQUEST_LONG, "number of rkeys", 0, { { &at_seg_shift, 12 } } },
	{ "2^35 segments", RE_REQUEST_LONG, "number of rkeys", 0,
	  { { &at_seg_shift, 12 }, { &at_tensor_bytes, 1ULL << 47 } } },
	{ "a destination without its flag", REQUEST, unused, 0, { { &at_flags, 0 } } },
	{ "TENSOR_RE_REQUEST without a destination", RE_REQUEST, "no destination", -4,
	  { { &at_flags, 0 }, { &at_nr_rkeys, 0 }, { &at_remote_addr, 0 },
	    { &at_nr_parts, 0 }, { &at_seg_shift, 0 } } },
	{ "a checksum without its flag", META, unused, 0, { { &at_flags, 0 } } },
};

static void bad_case_name(const struct bad_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad, bad_cases, bad_case_name);

static void set_field(void *buf, const struct field *field, u64 value)
{
	u8 *at = buf + field->offset;
	u32 i;

	for (i = 0; i < field->size; i++, value >>= 8)
		at[i] = value;
}

static void bad_field(struct kunit *test)
{
	const struct bad_case *c = test->param_value;
	unsigned int i;
	void *buf;
	u32 len;

	len = encode(test, &samples[c->sample], &buf) + c->extra;
	set_field(buf, &at_length, len);
	for (i = 0; i < ARRAY_SIZE(c->set) && c->set[i].field; i++)
		set_field(buf, c->set[i].field, c->set[i].value);
	expect_refused(test, c->name, buf, len, c->why);
}

/* Which types use which field: said here once more */
static const struct {
	const struct field *field;
	u32 samples;
} field_uses[] = {
	{ &at_request_index,
	  BIT(REQUEST) | BIT(META) | BIT(RE_REQUEST) | BIT(ERROR) | BIT(CANCEL) },
	{ &at_step_id, BIT(REQUEST) | BIT(META) | BIT(RE_REQUEST) | BIT(ERROR) },
	{ &at_remote_addr, BIT(REQUEST) | BIT(RE_REQUEST) },
	{ &at_tensor_bytes, BIT(REQUEST) | BIT(META) | BIT(RE_REQUEST) },
	{ &at_checksum, BIT(META) },
	{ &at_error_status, BIT(ERROR) },
	{ &at_data_type, BIT(REQUEST) | BIT(META) | BIT(RE_REQUEST) },
	{ &at_is_dead, BIT(REQUEST) | BIT(META) | BIT(RE_REQUEST) },
	{ &at_ndims, BIT(REQUEST) | BIT(META) | BIT(RE_REQUEST) },
	{ &at_nr_rkeys, BIT(REQUEST) | BIT(RE_REQUEST) },
	{ &at_name_len, BIT(REQUEST) | BIT(ERROR) },
	{ &at_text_len, BIT(HELLO) | BIT(ERROR) },
	{ &at_nr_parts, BIT(REQUEST) | BIT(RE_REQUEST) },
	{ &at_seg_shift, BIT(REQUEST) | BIT(RE_REQUEST) },
	{ &at_keep, 0 },
};

static void unused_fields(struct kunit *test)
{
	unsigned int i, s;
	void *buf;
	u32 len;

	for (s = HELLO; s <= CANCEL; s++) {
		for (i = 0; i < ARRAY_SIZE(field_uses); i++) {
			const struct field *field = field_uses[i].field;

			if (field_uses[i].samples & BIT(s))
				continue;
			len = encode(test, &samples[s], &buf);
			set_field(buf, field, 1);
			expect_refused(test, field->name, buf, len, unused);
			set_field(buf, field, 1ULL << (8 * field->size - 1));
			expect_refused(test, field->name, buf, len, unused);
		}
	}
}

static void unknown_flags(struct kunit *test)
{
	static const u16 allowed[] = {
		[REQUEST] = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_VALIDATE |
			    RDMATENSOR_WIRE_F_KEEP | RDMATENSOR_WIRE_F_SLICE |
			    RDMATENSOR_WIRE_F_NEWEST | RDMATENSOR_WIRE_F_NOW |
			    RDMATENSOR_WIRE_F_LAYOUT,
		[META] = RDMATENSOR_WIRE_F_CHECKSUM,
		[RE_REQUEST] = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP |
			       RDMATENSOR_WIRE_F_SLICE | RDMATENSOR_WIRE_F_LAYOUT,
		[ERROR] = RDMATENSOR_WIRE_F_NAMED,
		[CANCEL] = 0,
	};
	unsigned int bit, s;
	void *buf;
	u32 len;

	for (s = HELLO; s <= CANCEL; s++) {
		for (bit = 0; bit < 16; bit++) {
			if (allowed[s] & BIT(bit))
				continue;
			len = encode(test, &samples[s], &buf);
			set_field(buf, &at_flags, samples[s].msg.flags | BIT(bit));
			expect_refused(test, samples[s].name, buf, len, "flags");
		}
	}
}

static void worker_names(struct kunit *test)
{
	struct rdmatensor_msg msg = samples[HELLO].msg, out;
	u8 buf[256] __aligned(8);
	const char *why;
	int len;

	msg.text = TEXT64;
	for (msg.text_len = 1; msg.text_len < RDMATENSOR_WORKER_MAX; msg.text_len++) {
		len = rdmatensor_wire_encode(&msg, buf, sizeof(buf));
		KUNIT_ASSERT_EQ(test, len, 88 + msg.text_len);
		KUNIT_EXPECT_EQ(test, rdmatensor_wire_decode(buf, len, &out, &why), 0);
		KUNIT_EXPECT_EQ(test, out.text_len, msg.text_len);
	}
	len = rdmatensor_wire_encode(&msg, buf, sizeof(buf));
	KUNIT_ASSERT_EQ(test, len, 88 + RDMATENSOR_WORKER_MAX);
	expect_refused(test, "64", buf, len, "worker name");
}

/*
 * Right messages with some bytes changed: whatever decodes must be exactly what
 * encoding would have written, or something in the message was overlooked.
 */
static void mutations(struct kunit *test)
{
	u8 *bytes = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	u8 *again = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	unsigned int round, right = 0;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	KUNIT_ASSERT_NOT_NULL(test, again);
	prandom_seed_state(&rnd, SEED);

	for (round = 0; round < 50000; round++) {
		const struct sample *sample =
			&samples[prandom_u32_state(&rnd) % ARRAY_SIZE(samples)];
		unsigned int n = prandom_u32_state(&rnd) % 4;
		struct rdmatensor_msg msg;
		const char *why = NULL;
		u32 len;
		u8 *exact;
		int ret;

		len = rdmatensor_wire_encode(&sample->msg, bytes, ROOM);
		while (n--) {
			u32 at = prandom_u32_state(&rnd) % len;
			u32 how = prandom_u32_state(&rnd);

			/* The header more often than the tail */
			if (how & BIT(8))
				at %= sizeof(struct rdmatensor_wire_hdr);
			if (how & BIT(9))
				bytes[at] = how;
			else
				bytes[at] ^= BIT(how % 8);
		}
		if (!(prandom_u32_state(&rnd) % 4)) {
			len = prandom_u32_state(&rnd) % (len + 64);
			set_field(bytes, &at_length, len);
		}

		exact = kmalloc(len, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, exact);
		memcpy(exact, bytes, len);
		ret = rdmatensor_wire_decode(exact, len, &msg, &why);
		if (!ret) {
			right++;
			memset(again, 0xff, len);
			ret = rdmatensor_wire_encode(&msg, again, ROOM);
			rdmatensor_wire_set_consumed(again, msg.consumed);
			ret = ret == (int)len && !memcmp(again, exact, len) ? 0 : -EIO;
		} else {
			ret = ret == -EPROTO && why ? 0 : -EIO;
		}
		kfree(exact);
		if (ret) {
			KUNIT_FAIL(test, "round %u, from %s", round, sample->name);
			return;
		}
	}
	/* Unchanged ones, and names, texts, indices, credits that another value fits */
	KUNIT_EXPECT_GT(test, right, 10000);
	KUNIT_EXPECT_LT(test, right, 40000);
}

static void noise(struct kunit *test)
{
	struct rdmatensor_msg msg;
	struct rnd_state rnd;
	unsigned int round;
	const char *why;

	prandom_seed_state(&rnd, SEED);
	for (round = 0; round < 20000; round++) {
		u32 len = prandom_u32_state(&rnd) % 256;
		u8 bytes[256];

		prandom_bytes_state(&rnd, bytes, len);
		if (len > 8) {
			set_field(bytes, &at_length, len);
			bytes[4] = RDMATENSOR_WIRE_MAJOR;
			bytes[5] %= 10;
			bytes[6] %= 16;
			bytes[7] = 0;
		}
		KUNIT_ASSERT_EQ(test, decode(test, bytes, len, &msg, &why), -EPROTO);
	}
}

static const struct segment_case {
	u64 addr;
	u64 bytes;
	u8 shift;
	u32 segments;
} segment_cases[] = {
	{ 0, 0, 12, 0 },
	{ U64_MAX, 0, 12, 0 },
	{ 0, 1, 12, 1 },
	{ 0, 4096, 12, 1 },
	{ 0, 4097, 12, 2 },
	{ 4095, 1, 12, 1 },
	{ 4095, 2, 12, 2 },
	{ 4096, 4096, 12, 1 },
	{ 1, 4096, 12, 2 },
	{ 1, 8192, 12, 3 },
	{ 0, 1ULL << 21, 21, 1 },
	{ 64, 1ULL << 21, 21, 2 },
	{ 64, 64ULL << 20, 21, 33 },
	{ 0, 1ULL << 40, 40, 1 },
	{ 1, 1ULL << 40, 40, 2 },
	{ U64_MAX, 1, 12, 1 },
	{ U64_MAX - 4095, 4096, 12, 1 },
	{ U64_MAX - 4096, 4097, 12, 2 },
	{ U64_MAX, 2, 12, U32_MAX },
	{ 1, U64_MAX, 40, 1U << 24 },
	{ 2, U64_MAX, 40, U32_MAX },
	{ 0, (1ULL << 44) - 4096, 12, U32_MAX },
	{ 0, 1ULL << 44, 12, U32_MAX },
	{ 0, 1ULL << 62, 12, U32_MAX },
};

static void segments(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(segment_cases); i++) {
		const struct segment_case *c = &segment_cases[i];

		KUNIT_EXPECT_EQ_MSG(test,
				    rdmatensor_wire_segments(c->addr, c->bytes, c->shift),
				    c->segments, "%#llx + %#llx by 2^%u", c->addr, c->bytes,
				    c->shift);
	}
}

static const struct part_case {
	u64 bytes;
	u8 nr_parts;
	u8 part;
	u64 offset;
	u64 part_bytes;
} part_cases[] = {
	{ 0, 1, 0, 0, 0 },
	{ 1, 1, 0, 0, 1 },
	{ 5000, 1, 0, 0, 5000 },
	{ 1, 8, 0, 0, 1 },
	{ 1, 8, 1, 1, 0 },
	{ 1, 8, 7, 1, 0 },
	{ 8192, 2, 0, 0, 4096 },
	{ 8192, 2, 1, 4096, 4096 },
	{ 8193, 2, 0, 0, 8192 },
	{ 8193, 2, 1, 8192, 1 },
	{ 4097, 4, 0, 0, 4096 },
	{ 4097, 4, 1, 4096, 1 },
	{ 4097, 4, 2, 4097, 0 },
	{ 1 << 20, 4, 3, 3 << 18, 1 << 18 },
	{ (1 << 20) + 1, 4, 3, 3 * ((1 << 18) + 4096), (1 << 18) - 3 * 4096 + 1 },
	{ S64_MAX, 1, 0, 0, S64_MAX },
	{ S64_MAX, 8, 7, 7ULL << 60, (1ULL << 60) - 1 },
};

static void parts(struct kunit *test)
{
	static const u64 sizes[] = {
		0, 1, 63, 4095, 4096, 4097, 32767, 32768, 32769, 1 << 20, (1 << 20) + 1,
		(64 << 20) - 1, 0x123456789abULL, S64_MAX - 4096, S64_MAX,
	};
	u64 offset, length, first, end;
	unsigned int i;
	u8 n, part;

	for (i = 0; i < ARRAY_SIZE(part_cases); i++) {
		const struct part_case *c = &part_cases[i];

		rdmatensor_wire_part(c->bytes, c->nr_parts, c->part, &offset, &length);
		KUNIT_EXPECT_EQ_MSG(test, offset, c->offset, "%llu / %u: %u", c->bytes,
				    c->nr_parts, c->part);
		KUNIT_EXPECT_EQ_MSG(test, length, c->part_bytes, "%llu / %u: %u", c->bytes,
				    c->nr_parts, c->part);
	}

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (n = 1; n <= RDMATENSOR_LANES_MAX; n++) {
			rdmatensor_wire_part(sizes[i], n, 0, &offset, &first);
			end = 0;
			for (part = 0; part < n; part++) {
				rdmatensor_wire_part(sizes[i], n, part, &offset, &length);
				KUNIT_EXPECT_EQ(test, offset, end);
				KUNIT_EXPECT_LE(test, length, first);
				if (offset + length < sizes[i]) {
					KUNIT_EXPECT_EQ(test, length, first);
					KUNIT_EXPECT_EQ(test, length % 4096, 0);
				}
				end = offset + length;
			}
			KUNIT_EXPECT_EQ(test, end, sizes[i]);
		}
	}
}

/* Byte @at of private data that is right otherwise */
static const struct {
	u8 at;
	u8 value;
	int ret;
} privates[] = {
	{ offsetof(struct rdmatensor_wire_private, magic), 0, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, magic) + 3, 0, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, major), 0, -EPROTONOSUPPORT },
	{ offsetof(struct rdmatensor_wire_private, major), RDMATENSOR_WIRE_MAJOR + 1,
	  -EPROTONOSUPPORT },
	{ offsetof(struct rdmatensor_wire_private, minor), 255, 0 },
	{ offsetof(struct rdmatensor_wire_private, lane), 3, 0 },
	{ offsetof(struct rdmatensor_wire_private, lane), 4, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, lane), 255, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, lanes), 0, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, lanes), 3, 0 },
	{ offsetof(struct rdmatensor_wire_private, lanes), 2, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, lanes), RDMATENSOR_LANES_MAX, 0 },
	{ offsetof(struct rdmatensor_wire_private, lanes), RDMATENSOR_LANES_MAX + 1, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, nonce), 0, 0 },
	{ offsetof(struct rdmatensor_wire_private, msg_slots), 77, 0 },
	{ offsetof(struct rdmatensor_wire_private, flags), RDMATENSOR_WIRE_PRIVATE_READ, 0 },
	{ offsetof(struct rdmatensor_wire_private, flags), RDMATENSOR_WIRE_PRIVATE_READ |
	  RDMATENSOR_WIRE_PRIVATE_REVERSE, 0 },
	{ offsetof(struct rdmatensor_wire_private, flags), RDMATENSOR_WIRE_PRIVATE_REVERSE,
	  -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, flags), 4, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, flags) + 3, 0x80, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, mtu), 0, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, mtu), IB_MTU_256, 0 },
	{ offsetof(struct rdmatensor_wire_private, mtu), IB_MTU_4096, 0 },
	{ offsetof(struct rdmatensor_wire_private, mtu), IB_MTU_4096 + 1, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, mtu), 255, -EPROTO },
	{ offsetof(struct rdmatensor_wire_private, __reserved), 1, -EPROTO },
	{ sizeof(struct rdmatensor_wire_private) - 1, 1, -EPROTO },
};

static void private_data(struct kunit *test)
{
	struct rdmatensor_wire_private private;
	unsigned int i;

	rdmatensor_wire_init_private(&private, 2, 4, 0x0102030405060708, IB_MTU_1024);
	KUNIT_EXPECT_EQ(test, private.lane, 2);
	KUNIT_EXPECT_EQ(test, private.lanes, 4);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(private.nonce), 0x0102030405060708);
	KUNIT_EXPECT_EQ(test, private.mtu, IB_MTU_1024);
	for (i = 0; i < sizeof(private); i++)
		KUNIT_EXPECT_EQ(test, rdmatensor_wire_check_private(&private, i), -EPROTO);
	KUNIT_EXPECT_EQ(test, rdmatensor_wire_check_private(&private, sizeof(private)), 0);
	/* rdma_cm pads what it delivers */
	KUNIT_EXPECT_EQ(test, rdmatensor_wire_check_private(&private, U8_MAX), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_wire_check_private(NULL, sizeof(private)), -EPROTO);

	for (i = 0; i < ARRAY_SIZE(privates); i++) {
		rdmatensor_wire_init_private(&private, 2, 4, 0x0102030405060708, IB_MTU_1024);
		((u8 *)&private)[privates[i].at] = privates[i].value;
		KUNIT_EXPECT_EQ_MSG(test,
				    rdmatensor_wire_check_private(&private, sizeof(private)),
				    privates[i].ret, "byte %u is %u", privates[i].at,
				    privates[i].value);
	}
}

static void type_names(struct kunit *test)
{
	static const char * const names[] = {
		"unknown", "HELLO", "TENSOR_REQUEST", "META_DATA_RESPONSE",
		"TENSOR_RE_REQUEST", "ERROR_STATUS", "CANCEL", "TABLE_OPEN", "TABLE_INFO",
		"LIST", "LIST_INFO", "unknown",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_STREQ(test, rdmatensor_wire_type_name(i), names[i]);
	KUNIT_EXPECT_STREQ(test, rdmatensor_wire_type_name(255), "unknown");
}

/* Of either: what is written, into no less room, and read from no fewer bytes */
static void entries(struct kunit *test)
{
	static const struct {
		u32 at, bytes;
		struct rdmatensor_listed listed;
	} cases[] = {
		{ 0, ENTRY_BYTES, {
			.cursor = 5, .step_id = -1, .uses = 3, .name = "a\0", .name_len = 2,
			.meta = { .data_type = RDMATENSOR_DT_HALF, .ndims = 1, .bytes = 10,
				  .dims = { 5 } },
		} },
		{ ENTRY_BYTES, sizeof(golden_entries) - ENTRY_BYTES, {
			.cursor = 0x8000000000000007, .step_id = 2, .error = -5, .name = "c",
			.name_len = 1,
		} },
	};
	struct rdmatensor_listed out;
	u32 i, cut;
	u8 *buf;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct rdmatensor_listed *in = &cases[i].listed;
		u32 bytes = cases[i].bytes;

		for (cut = 0; cut <= bytes; cut++) {
			buf = kunit_kzalloc(test, cut + 1, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, buf);
			KUNIT_EXPECT_EQ(test, rdmatensor_wire_entry_put(in, buf + 1, cut),
					cut < bytes ? 0 : bytes);
			if (cut < bytes)
				KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0, cut + 1));
			else
				expect_bytes(test, buf + 1, golden_entries + cases[i].at, bytes);
			memcpy(buf + 1, golden_entries + cases[i].at, cut);
			KUNIT_EXPECT_EQ(test, rdmatensor_wire_entry_get(buf + 1, cut, &out),
					cut < bytes ? 0 : bytes);
		}
		KUNIT_EXPECT_EQ(test, out.cursor, in->cursor);
		KUNIT_EXPECT_EQ(test, out.step_id, in->step_id);
		KUNIT_EXPECT_EQ(test, out.error, in->error);
		KUNIT_EXPECT_EQ(test, out.uses, in->uses);
		KUNIT_ASSERT_EQ(test, out.name_len, in->name_len);
		expect_bytes(test, out.name, in->name, in->name_len);
		expect_bytes(test, &out.meta, &in->meta, sizeof(out.meta));
	}
}

static struct kunit_case wire_tests[] = {
	KUNIT_CASE(golden_bytes),
	KUNIT_CASE(entries),
	KUNIT_CASE_PARAM(round_trip, sample_gen_params),
	KUNIT_CASE_PARAM(no_room, sample_gen_params),
	KUNIT_CASE(only_used_fields_are_written),
	KUNIT_CASE_PARAM(truncated, sample_gen_params),
	KUNIT_CASE_PARAM(bad_field, bad_gen_params),
	KUNIT_CASE(unused_fields),
	KUNIT_CASE(unknown_flags),
	KUNIT_CASE(worker_names),
	KUNIT_CASE(mutations),
	KUNIT_CASE(noise),
	KUNIT_CASE(segments),
	KUNIT_CASE(parts),
	KUNIT_CASE(private_data),
	KUNIT_CASE(type_names),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "rdmatensor_wire",
	.init = wire_init,
	.test_cases = wire_tests,
};

kunit_test_suite(wire_suite);
