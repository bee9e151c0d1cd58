// SPDX-License-Identifier: GPL-2.0
/*
 * seeds DIRECTORY: writes right messages of every type there, and private data of
 * connections, one a file, for wire.c to begin from. They are made by the encoder, so
 * they follow the wire.
 */
#include <stdio.h>
#include <stdlib.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "core/wire.h"

static const __le32 rkeys[3] = { 0x11223344, 0x55667788, 0x99aabbcc };
static const char name[RDMATENSOR_NAME_MAX] = "layer/weights";
static const char text[] = "no such tensor";
static const char long_text[RDMATENSOR_STATUS_TEXT_MAX] = "no such tensor, nor any like it";

/* A tensor, and one that has failed */
static const struct rdmatensor_listed listed[] = {
	{ .cursor = 5, .step_id = -1, .uses = 3, .name = "ab", .name_len = 2,
	  .meta = { .data_type = RDMATENSOR_DT_HALF, .ndims = 1, .bytes = 10, .dims = { 5 } } },
	{ .cursor = (1ULL << 63) + 7, .step_id = 2, .error = -5, .name = "c", .name_len = 1 },
};
static char entries[2 * sizeof(struct rdmatensor_wire_entry) + sizeof(__le64) + 3];

#define META_FLOAT { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 24, .dims = { 2, 3 } }
#define META_OPAQUE { .data_type = RDMATENSOR_DT_STRING, .bytes = 0x2001 }
#define META_DEAD { .data_type = RDMATENSOR_DT_INT64, .ndims = 1, .is_dead = 1, .dims = { 7 } }
#define META_DIMS \
	{ .data_type = RDMATENSOR_DT_UINT8, .ndims = 16, .bytes = 0x3000, \
	  .dims = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4096 } }

#define META_SLICED { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .bytes = 24, .dims = { 2, 3 } }

/* The second column of both rows, and bytes 2 to 17 of a content */
static const struct rdmatensor_wire_slice slice = {
	.ndims = 2, .ranges = { { 0, ~0ULL }, { 1, 1 } },
};

static const struct rdmatensor_wire_slice slice_bytes = { .ranges = { { 2, 16 } } };
static const struct rdmatensor_wire_layout layout = { .ndims = 2, .strides = { 100, 8 } };
static const struct rdmatensor_wire_layout layout_bytes = { .ndims = 1, .strides = { 3 } };

static const struct rdmatensor_msg messages[] = {
	{ .type = RDMATENSOR_WIRE_HELLO, .incarnation = 0x0102030405060708, .max_requests = 256,
	  .text = text, .text_len = 8 },
	{ .type = RDMATENSOR_WIRE_HELLO, .max_requests = 1, .features = ~0U, .listen_port = 18521,
	  .text = text, .text_len = 1 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .step_id = -1, .name = name, .name_len = 13 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 1, .meta = META_FLOAT,
	  .flags = RDMATENSOR_WIRE_F_VALIDATE, .name = name, .name_len = RDMATENSOR_NAME_MAX },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = RDMATENSOR_INDEX_MAX,
	  .flags = RDMATENSOR_WIRE_F_DEST, .meta = META_FLOAT, .remote_addr = 0x10000,
	  .nr_parts = 1, .seg_shift = 21, .rkeys = rkeys, .nr_rkeys = 1, .name = name,
	  .name_len = 1 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 2, .meta = META_OPAQUE,
	  .flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_VALIDATE, .remote_addr = 0x10fc0,
	  .nr_parts = 4, .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 3, .name = name,
	  .name_len = 13 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 16, .meta = META_FLOAT,
	  .flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP, .remote_addr = 0x10000,
	  .nr_parts = 1, .seg_shift = 21, .rkeys = rkeys, .nr_rkeys = 1, .name = name,
	  .name_len = 1, .keep = 1025 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 17,
	  .flags = RDMATENSOR_WIRE_F_KEEP, .name = name, .name_len = 13, .keep = 1025 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 18,
	  .flags = RDMATENSOR_WIRE_F_SLICE, .slice = &slice_bytes, .name = name, .name_len = 3 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 21, .step_id = -3,
	  .flags = RDMATENSOR_WIRE_F_NEWEST | RDMATENSOR_WIRE_F_NOW, .name = name, .name_len = 3 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 19, .meta = META_SLICED,
	  .flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_SLICE, .slice = &slice,
	  .remote_addr = 0x10000, .nr_parts = 1, .seg_shift = 21, .rkeys = rkeys, .nr_rkeys = 1,
	  .name = name, .name_len = 1 },
	{ .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = 20, .meta = META_SLICED,
	  .flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_SLICE, .slice = &slice_bytes,
	  .remote_addr = 0x10ff8, .nr_parts = 1, .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 2 },
	{ .type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = 22, .meta = META_SLICED,
	  .flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_LAYOUT, .layout = &layout,
	  .remote_addr = 0x10000, .nr_parts = 1, .seg_shift = 21, .rkeys = rkeys, .nr_rkeys = 1,
	  .name = name, .name_len = 1 },
	{ .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = 23, .meta = META_SLICED,
	  .flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_SLICE | RDMATENSOR_WIRE_F_LAYOUT,
	  .slice = &slice_bytes, .layout = &layout_bytes,
	  .remote_addr = 0x10ff8, .nr_parts = 1, .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 2 },
	{ .type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .request_index = 3, .meta = META_DIMS },
	{ .type = RDMATENSOR_WIRE_META_DATA_RESPONSE, .request_index = 4, .meta = META_DEAD,
	  .flags = RDMATENSOR_WIRE_F_CHECKSUM, .checksum = 0xdeadbeef },
	{ .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = 5, .meta = META_DIMS,
	  .flags = RDMATENSOR_WIRE_F_DEST, .remote_addr = 0x1000, .nr_parts = 8,
	  .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 3 },
	{ .type = RDMATENSOR_WIRE_TENSOR_RE_REQUEST, .request_index = 6, .meta = META_DEAD,
	  .flags = RDMATENSOR_WIRE_F_DEST, .nr_parts = 1, .seg_shift = 40 },
	{ .type = RDMATENSOR_WIRE_ERROR_STATUS, .request_index = 7, .error = -2, .text = text,
	  .text_len = sizeof(text) - 1 },
	{ .type = RDMATENSOR_WIRE_ERROR_STATUS, .flags = RDMATENSOR_WIRE_F_NAMED,
	  .request_index = 16, .step_id = -1, .error = -5, .name = name, .name_len = 13,
	  .text = long_text, .text_len = sizeof(long_text) },
	{ .type = RDMATENSOR_WIRE_ERROR_STATUS, .flags = RDMATENSOR_WIRE_F_NAMED,
	  .request_index = 17, .error = -5, .name = name, .name_len = RDMATENSOR_NAME_MAX },
	{ .type = RDMATENSOR_WIRE_ERROR_STATUS, .request_index = 8, .error = -4095,
	  .flags = RDMATENSOR_WIRE_F_CANCELLED },
	{ .type = RDMATENSOR_WIRE_CANCEL, .request_index = 9 },
	{ .type = RDMATENSOR_WIRE_TABLE_OPEN, .request_index = 10, .name = name, .name_len = 13 },
	{ .type = RDMATENSOR_WIRE_TABLE_OPEN, .flags = RDMATENSOR_WIRE_F_WAIT, .request_index = 15,
	  .name = name, .name_len = 13 },
	{ .type = RDMATENSOR_WIRE_TABLE_OPEN, .request_index = 11, .name = name, .name_len = 1,
	  .table = { .first_key = 100 } },
	{ .type = RDMATENSOR_WIRE_TABLE_INFO, .request_index = 12, .remote_addr = 0x10000,
	  .seg_shift = 12, .rkeys = rkeys, .nr_rkeys = 2,
	  .table = { .row_start = 5, .row_end = 29, .row_bytes = 512, .stride = 512,
		     .data_type = RDMATENSOR_DT_FLOAT, .nr_keys = 3, .first_key = 1 } },
	{ .type = RDMATENSOR_WIRE_TABLE_INFO, .request_index = 13, .remote_addr = 0x200000,
	  .seg_shift = 21, .rkeys = rkeys, .nr_rkeys = 1,
	  .table = { .row_end = 1, .row_bytes = 1, .stride = 64,
		     .data_type = RDMATENSOR_DT_UINT8, .nr_keys = 1 } },
	{ .type = RDMATENSOR_WIRE_TABLE_INFO, .request_index = 14,
	  .flags = RDMATENSOR_WIRE_F_FAILED, .error = -2 },
	{ .type = RDMATENSOR_WIRE_LIST, .request_index = 4 },
	{ .type = RDMATENSOR_WIRE_LIST, .request_index = 5, .cursor = 1ULL << 63, .name = name,
	  .name_len = 13 },
	{ .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = 4, .cursor = 7 },
	{ .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = 4, .nr_entries = 2,
	  .entries = entries, .entries_bytes = sizeof(entries) },
	{ .type = RDMATENSOR_WIRE_LIST_INFO, .request_index = 4,
	  .flags = RDMATENSOR_WIRE_F_FAILED, .error = -13 },
};

static int write_seed(const char *dir, unsigned int number, const char *what, const void *seed,
		      int len)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%02u-%s", dir, number, what);
	file = fopen(path, "w");
	if (len < 0 || !file || fwrite(seed, len, 1, file) != 1 || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static __le64 buf[512];
	struct rdmatensor_wire_private private;
	unsigned int i;
	u32 len = 0;
	int err = 0;

	if (argc != 2)
		return 2;
	for (i = 0; i < ARRAY_SIZE(listed); i++)
		len += rdmatensor_wire_entry_put(&listed[i], entries + len, sizeof(entries) - len);
	if (len != sizeof(entries))
		return 1;
	for (i = 0; i < ARRAY_SIZE(messages); i++)
		err |= write_seed(argv[1], i, rdmatensor_wire_type_name(messages[i].type), buf,
				  rdmatensor_wire_encode(&messages[i], buf, sizeof(buf)));
	rdmatensor_wire_init_private(&private, 7, 8, 0x0102030405060708, 5);
	err |= write_seed(argv[1], i, "CONNECTION", &private, sizeof(private));
	private.flags = cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_READ);
	return err | write_seed(argv[1], i + 1, "READS", &private, sizeof(private));
}
