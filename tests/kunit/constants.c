// SPDX-License-Identifier: GPL-2.0
/*
 * The wire's constants, written out once more. What peers of other versions take and send
 * is fixed by them, so who changes one has to change it here too, and means it. Where the
 * originals have a value it is theirs: the immediates of TensorFlow's verbs transport.
 */
#include <kunit/test.h>
#include <linux/stddef.h>
#include "core/wire.h"

static void immediates(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, RDMATENSOR_IMM_MESSAGE, 0xffffffffU);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_IMM_ACK, 0xfffffffeU);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_INDEX_MAX, 0xfffffffdU);
}

static void version(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_MAGIC, 0x544d4452U);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_MAJOR, 1);
}

static void types(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_HELLO, 1);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_TENSOR_REQUEST, 2);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_META_DATA_RESPONSE, 3);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_TENSOR_RE_REQUEST, 4);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_ERROR_STATUS, 5);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_CANCEL, 6);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_TABLE_OPEN, 7);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_TABLE_INFO, 8);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_LIST, 9);
	KUNIT_EXPECT_EQ(test, (int)RDMATENSOR_WIRE_LIST_INFO, 10);
}

static void flags(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_DEST, 0x01U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_VALIDATE, 0x02U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_CHECKSUM, 0x04U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_CANCELLED, 0x08U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_FAILED, 0x10U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_WAIT, 0x20U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_KEEP, 0x40U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_SLICE, 0x80U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_NAMED, 0x100U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_NEWEST, 0x200U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_NOW, 0x400U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_F_LAYOUT, 0x800U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_PRIVATE_READ, 0x01U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_PRIVATE_REVERSE, 0x02U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_TABLE_WAIT, 0x01U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_KEEP, 0x02U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_ERROR_NAMED, 0x08U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_LIST, 0x10U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_SLICE, 0x20U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_NEWEST, 0x40U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURE_LAYOUT, 0x80U);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_FEATURES, 0xfbU);
}

static void bounds(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_SEG_SHIFT_MIN, 12);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_SEG_SHIFT_MAX, 40);
	KUNIT_EXPECT_EQ(test, (u32)RDMATENSOR_WIRE_KEYS_MAX, 16777216U);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_TABLE_SLOTS, 16);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_KEEP_SLOTS, 1024);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_LIST_SLOTS, 4);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_MTU_LEAST, 1);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_WIRE_MTU_MOST, 5);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_NAME_MAX, 512);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_TEXT_MAX, 128);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_STATUS_TEXT_MAX, 1024);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_DIMS_MAX, 16);
	KUNIT_EXPECT_EQ(test, RDMATENSOR_LANES_MAX, 8);
}

#define AT(_struct, _field, _offset) \
	KUNIT_EXPECT_EQ(test, offsetof(struct rdmatensor_wire_##_struct, _field), (size_t)(_offset))

static void places(struct kunit *test)
{
	AT(hdr, length, 0);
	AT(hdr, version_major, 4);
	AT(hdr, type, 5);
	AT(hdr, flags, 6);
	AT(hdr, consumed, 8);
	AT(hdr, request_index, 12);
	AT(hdr, step_id, 16);
	AT(hdr, remote_addr, 24);
	AT(hdr, tensor_bytes, 32);
	AT(hdr, checksum, 40);
	AT(hdr, error_status, 44);
	AT(hdr, data_type, 48);
	AT(hdr, is_dead, 50);
	AT(hdr, ndims, 51);
	AT(hdr, nr_rkeys, 52);
	AT(hdr, name_len, 54);
	AT(hdr, text_len, 56);
	AT(hdr, nr_parts, 58);
	AT(hdr, seg_shift, 59);
	AT(hdr, keep, 60);
	AT(hello, incarnation, 0);
	AT(hello, max_requests, 8);
	AT(hello, features, 12);
	AT(hello, listen_port, 16);
	AT(table, row_start, 0);
	AT(table, row_end, 8);
	AT(table, row_bytes, 16);
	AT(table, stride, 24);
	AT(table, data_type, 32);
	AT(table, nr_keys, 36);
	AT(table, first_key, 40);
	AT(list, cursor, 0);
	AT(list, nr_entries, 8);
	AT(list, entries_bytes, 12);
	AT(entry, cursor, 0);
	AT(entry, step_id, 8);
	AT(entry, tensor_bytes, 16);
	AT(entry, error_status, 24);
	AT(entry, uses, 28);
	AT(entry, data_type, 32);
	AT(entry, name_len, 34);
	AT(entry, is_dead, 36);
	AT(entry, ndims, 37);
	AT(private, magic, 0);
	AT(private, major, 4);
	AT(private, minor, 5);
	AT(private, lane, 6);
	AT(private, lanes, 7);
	AT(private, nonce, 8);
	AT(private, msgbuf_addr, 16);
	AT(private, msgbuf_rkey, 24);
	AT(private, msg_slot_bytes, 28);
	AT(private, msg_slots, 32);
	AT(private, ack_batch, 34);
	AT(private, max_requests, 36);
	AT(private, flags, 40);
	AT(private, mtu, 44);
	AT(reject, magic, 0);
	AT(reject, major, 4);
	AT(reject, minor, 5);
	AT(reject, error, 6);
}

static struct kunit_case constants_tests[] = {
	KUNIT_CASE(immediates),
	KUNIT_CASE(version),
	KUNIT_CASE(types),
	KUNIT_CASE(flags),
	KUNIT_CASE(bounds),
	KUNIT_CASE(places),
	{}
};

static struct kunit_suite constants_suite = {
	.name = "rdmatensor_constants",
	.test_cases = constants_tests,
};

kunit_test_suite(constants_suite);
