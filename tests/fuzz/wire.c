// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer over rdmatensor_wire_decode(), compiled here from the module's own
 * file. Whatever bytes come: nothing outside of them is read, and if they are
 * taken for a message, then
 * - all that the rest of the module relies on without looking again holds;
 * - encoding it gives the same bytes, and so decoding them the same message.
 * The same bytes are looked at as a connection's private data.
 *
 * The mutator keeps the length field, or the private data's magic, right most of
 * the time, else hardly any input would come further than to the first comparison.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "core/wire.h"

#define TYPES (RDMATENSOR_WIRE_LIST_INFO + 1)

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static unsigned long long tried, right[TYPES], connections;

#define HOLDS(_cond) \
	do { \
		if (!(_cond)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #_cond); \
			abort(); \
		} \
	} while (0)

static int inside(const void *buf, size_t len, const void *at, size_t bytes)
{
	const char *start = buf, *from = at;

	return from >= start && from <= start + len && bytes <= (size_t)(start + len - from);
}

/* Counted one by one where they are few: not by the formula that is on trial */
static u64 segments(u64 addr, u64 bytes, u8 shift)
{
	u64 step = 1ULL << shift, nr = 0;

	while (bytes) {
		u64 run = step - (addr & (step - 1));

		if (run > bytes)
			run = bytes;
		addr += run;
		bytes -= run;
		if (++nr > UINT16_MAX)
			break;
	}
	return nr;
}

static void check_parts(u64 bytes, u8 nr_parts)
{
	u64 offset, part_bytes, end = 0;
	u8 part;

	for (part = 0; part < nr_parts; part++) {
		rdmatensor_wire_part(bytes, nr_parts, part, &offset, &part_bytes);
		HOLDS(offset == end);
		HOLDS(part_bytes <= bytes - offset);
		end = offset + part_bytes;
	}
	HOLDS(end == bytes);
}

static void check_question(const struct rdmatensor_msg *msg)
{
	struct rdmatensor_table_info table = { .first_key = msg->table.first_key };

	HOLDS(msg->table.first_key < RDMATENSOR_WIRE_KEYS_MAX);
	HOLDS(!memcmp(&msg->table, &table, sizeof(table)));
}

/* Every row can be computed with, and every key that is there is one of them */
static void check_rows(const struct rdmatensor_msg *msg)
{
	const struct rdmatensor_table_info *table = &msg->table;
	unsigned __int128 last;

	HOLDS(table->row_start < table->row_end && table->row_end <= INT64_MAX);
	HOLDS(table->row_bytes && table->row_bytes <= RDMATENSOR_ROW_MAX);
	HOLDS(table->stride >= table->row_bytes);
	HOLDS(table->data_type && table->data_type <= RDMATENSOR_DT_MAX);
	HOLDS(msg->seg_shift >= RDMATENSOR_WIRE_SEG_SHIFT_MIN &&
	      msg->seg_shift <= RDMATENSOR_WIRE_SEG_SHIFT_MAX);
	last = (unsigned __int128)(table->row_end - table->row_start - 1) * table->stride +
	       msg->remote_addr + table->row_bytes - 1;
	HOLDS(last < UINT64_MAX);
	HOLDS(table->nr_keys <= RDMATENSOR_WIRE_KEYS_MAX);
	HOLDS(((u64)last >> msg->seg_shift) - (msg->remote_addr >> msg->seg_shift) + 1 ==
	      table->nr_keys);
	HOLDS(msg->nr_rkeys && (u64)table->first_key + msg->nr_rkeys <= table->nr_keys);
}

/* Each is one, and there are as many as it says, to the last byte; written again they are the same */
static void check_entries(const struct rdmatensor_msg *msg)
{
	static char again[1024];
	const char *at = msg->entries, *end = at + msg->entries_bytes;
	struct rdmatensor_listed listed;
	u32 nr, bytes;

	for (nr = 0; at < end; nr++, at += bytes) {
		bytes = rdmatensor_wire_entry_get(at, end - at, &listed);
		HOLDS(bytes && bytes <= end - at);
		HOLDS(listed.cursor && listed.name_len && listed.name_len <= RDMATENSOR_NAME_MAX);
		HOLDS(listed.name + listed.name_len == at + bytes);
		HOLDS(listed.error <= 0 && listed.error >= -4095);
		HOLDS(listed.error ? !listed.meta.data_type && !listed.meta.bytes :
				     !rdmatensor_meta_check(&listed.meta));
		HOLDS(rdmatensor_wire_entry_put(&listed, again, bytes) == bytes);
		HOLDS(!rdmatensor_wire_entry_put(&listed, again, bytes - 1));
		HOLDS(!memcmp(again, at, bytes));
	}
	HOLDS(nr == msg->nr_entries);
}

/* From the content's first byte to its last one in the destination; each byte lies there, and alone */
static u64 check_layout(const struct rdmatensor_msg *msg, const struct rdmatensor_meta *content,
			const void *buf, u32 len)
{
	struct rdmatensor_wire_layout again;
	u64 span, pos, run, at, last, end = 0;
	struct rdmatensor_layout layout;
	struct rdmatensor_cut cut;

	HOLDS(!(msg->flags & RDMATENSOR_WIRE_F_LAYOUT) == !msg->layout);
	if (!msg->layout)
		return content->bytes;
	HOLDS(msg->flags & RDMATENSOR_WIRE_F_DEST && !(msg->flags & RDMATENSOR_WIRE_F_KEEP));
	HOLDS(content->bytes && msg->layout->ndims == content->ndims);
	HOLDS(inside(buf, len, msg->layout, 8 + 8 * msg->layout->ndims));
	rdmatensor_wire_layout_get(msg->layout, &layout);
	HOLDS(!rdmatensor_layout_check(&layout));
	rdmatensor_wire_layout_put(&layout, &again);
	HOLDS(!memcmp(&again, msg->layout, 8 + 8 * layout.ndims));
	HOLDS(!rdmatensor_layout_span(&layout, content, &span) && span >= content->bytes);
	HOLDS(rdmatensor_layout_disjoint(&layout, content));
	rdmatensor_slice_cut(NULL, &layout, content, &cut);
	for (pos = 0; pos < content->bytes; pos += content->bytes / 7 + 1) {
		at = rdmatensor_cut_at(&cut, pos, &run);
		HOLDS(run && run <= content->bytes && at < span && run <= span - at);
	}
	/* Each is a place of its own, of the few bytes that can be looked at */
	for (pos = 0; pos < content->bytes && pos < 64; pos++) {
		at = rdmatensor_cut_at(&cut, pos, &run);
		end = at > end ? at : end;
		for (last = 0; last < pos; last++)
			HOLDS(rdmatensor_cut_at(&cut, last, &run) != at);
	}
	HOLDS(end < span);
	return span;
}

/*
 * What the content is; a slice lies within its tensor, each byte of it. Return: from its first byte to its
 * last one in the destination
 */
static u64 check_content(const struct rdmatensor_msg *msg, const void *buf, u32 len,
			 struct rdmatensor_meta *content)
{
	struct rdmatensor_wire_slice again;
	struct rdmatensor_slice slice;
	struct rdmatensor_meta part;
	struct rdmatensor_cut cut;
	u64 pos, run, at;

	HOLDS(!(msg->flags & RDMATENSOR_WIRE_F_SLICE) == !msg->slice);
	HOLDS(!(msg->flags & RDMATENSOR_WIRE_F_NEWEST) ||
	      !(msg->flags & (RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP)));
	*content = msg->meta;
	if (!msg->slice)
		return check_layout(msg, content, buf, len);
	HOLDS(msg->type == RDMATENSOR_WIRE_TENSOR_REQUEST ||
	      msg->type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST);
	HOLDS(!(msg->flags & RDMATENSOR_WIRE_F_KEEP));
	HOLDS(msg->slice->ndims <= RDMATENSOR_DIMS_MAX);
	HOLDS(inside(buf, len, msg->slice, 8 + 16 * (msg->slice->ndims ?: 1)));
	rdmatensor_wire_slice_get(msg->slice, &slice);
	HOLDS(!rdmatensor_slice_check(&slice));
	rdmatensor_wire_slice_put(&slice, &again);
	HOLDS(!memcmp(&again, msg->slice, 8 + 16 * (slice.ndims ?: 1)));
	if (!msg->meta.data_type)
		return 0;
	if (rdmatensor_slice_meta(&slice, &msg->meta, &part)) {
		HOLDS(!(msg->flags & RDMATENSOR_WIRE_F_DEST));
		return 0;
	}
	HOLDS(!rdmatensor_meta_check(&part));
	HOLDS(part.bytes <= msg->meta.bytes);
	if (!part.bytes) {
		*content = part;
		HOLDS(!msg->layout);
		return 0;
	}
	*content = part;
	rdmatensor_slice_cut(&slice, NULL, &msg->meta, &cut);
	for (pos = 0; pos < part.bytes; pos += part.bytes / 7 + 1) {
		at = rdmatensor_cut_at(&cut, pos, &run);
		HOLDS(run && at < msg->meta.bytes && run <= msg->meta.bytes - at);
	}
	at = rdmatensor_cut_at(&cut, part.bytes - 1, &run);
	HOLDS(run && at < msg->meta.bytes);
	return check_layout(msg, content, buf, len);
}

/* What decoding promises of a message that it took */
static void check_promises(const struct rdmatensor_msg *msg, const void *buf, u32 len)
{
	int meta = msg->type == RDMATENSOR_WIRE_TENSOR_REQUEST ||
		   msg->type == RDMATENSOR_WIRE_META_DATA_RESPONSE ||
		   msg->type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST;
	int failed = (msg->type == RDMATENSOR_WIRE_TABLE_INFO ||
		      msg->type == RDMATENSOR_WIRE_LIST_INFO) &&
		     msg->flags & RDMATENSOR_WIRE_F_FAILED;
	int named = msg->type == RDMATENSOR_WIRE_ERROR_STATUS &&
		    msg->flags & RDMATENSOR_WIRE_F_NAMED;
	int rows = msg->type == RDMATENSOR_WIRE_TABLE_INFO && !failed;
	int listed = msg->type == RDMATENSOR_WIRE_LIST_INFO && !failed;
	static const struct rdmatensor_table_info none;
	struct rdmatensor_meta content;
	u64 span = check_content(msg, buf, len, &content);

	HOLDS(msg->type >= RDMATENSOR_WIRE_HELLO && msg->type < TYPES);
	HOLDS(rdmatensor_wire_length(msg) == len);
	HOLDS(inside(buf, len, msg->rkeys, msg->nr_rkeys * sizeof(*msg->rkeys)));
	HOLDS(inside(buf, len, msg->name, msg->name_len));
	HOLDS(inside(buf, len, msg->text, msg->text_len));
	HOLDS(inside(buf, len, msg->entries, msg->entries_bytes));
	HOLDS(listed || (!msg->nr_entries && !msg->entries_bytes));
	HOLDS(listed || msg->type == RDMATENSOR_WIRE_LIST || !msg->cursor);
	if (listed)
		check_entries(msg);
	HOLDS(msg->text_len <= (named ? RDMATENSOR_STATUS_TEXT_MAX : RDMATENSOR_TEXT_MAX));
	HOLDS(msg->request_index <= RDMATENSOR_INDEX_MAX);
	HOLDS(msg->meta.ndims <= RDMATENSOR_DIMS_MAX);

	if (msg->type == RDMATENSOR_WIRE_HELLO) {
		HOLDS(msg->max_requests);
		HOLDS(msg->text_len && msg->text_len < RDMATENSOR_WORKER_MAX);
		HOLDS(!memchr(msg->text, 0, msg->text_len));
	}
	HOLDS(msg->type == RDMATENSOR_WIRE_LIST ||
	      (msg->type == RDMATENSOR_WIRE_TENSOR_REQUEST ||
	       msg->type == RDMATENSOR_WIRE_TABLE_OPEN || named) == !!msg->name_len);
	HOLDS(!named || !(msg->flags & RDMATENSOR_WIRE_F_CANCELLED));
	HOLDS(meta || named || msg->type == RDMATENSOR_WIRE_TENSOR_REQUEST || !msg->step_id);
	HOLDS(msg->name_len <= RDMATENSOR_NAME_MAX);
	if (msg->type == RDMATENSOR_WIRE_ERROR_STATUS || failed)
		HOLDS(msg->error < 0 && msg->error >= -4095);
	else
		HOLDS(!msg->error);
	if (meta && msg->meta.data_type)
		HOLDS(!rdmatensor_meta_check(&msg->meta));
	else
		HOLDS(!msg->meta.bytes && !msg->meta.ndims && !msg->meta.is_dead);
	if (msg->type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST)
		HOLDS(msg->flags & RDMATENSOR_WIRE_F_DEST);
	if (msg->type == RDMATENSOR_WIRE_TABLE_OPEN)
		check_question(msg);
	else if (!rows)
		HOLDS(!memcmp(&msg->table, &none, sizeof(none)));

	if (rows)
		check_rows(msg);
	else if (meta && msg->type != RDMATENSOR_WIRE_META_DATA_RESPONSE &&
	    msg->flags & RDMATENSOR_WIRE_F_DEST) {
		HOLDS(msg->seg_shift >= RDMATENSOR_WIRE_SEG_SHIFT_MIN &&
		      msg->seg_shift <= RDMATENSOR_WIRE_SEG_SHIFT_MAX);
		HOLDS(msg->nr_parts >= 1 && msg->nr_parts <= RDMATENSOR_LANES_MAX);
		HOLDS(msg->remote_addr + span >= msg->remote_addr);
		HOLDS(msg->nr_rkeys == segments(msg->remote_addr, span, msg->seg_shift));
		check_parts(content.bytes, msg->nr_parts);
	} else {
		HOLDS(!msg->nr_rkeys && !msg->nr_parts && !msg->seg_shift &&
		      !msg->remote_addr);
	}
}

/* Allocated as long as it is, so that a byte more is seen */
static void check_again(const struct rdmatensor_msg *msg, const void *buf, u32 len)
{
	struct rdmatensor_msg second;
	char *again = malloc(len);
	const char *why;

	HOLDS(again);
	memset(again, 0xa5, len);
	HOLDS(rdmatensor_wire_encode(msg, again, len - 1) == -EMSGSIZE);
	HOLDS(!memchr_inv(again, 0xa5, len));
	HOLDS(rdmatensor_wire_encode(msg, again, len) == (int)len);
	rdmatensor_wire_set_consumed(again, msg->consumed);
	HOLDS(!memcmp(again, buf, len));

	HOLDS(!rdmatensor_wire_decode(again, len, &second, &why));
	HOLDS(!second.slice == !msg->slice);
	HOLDS(!second.layout == !msg->layout);
	second.slice = msg->slice;
	second.layout = msg->layout;
	HOLDS(second.rkeys - msg->rkeys == (const __le32 *)again - (const __le32 *)buf);
	HOLDS(second.name - again == msg->name - (const char *)buf);
	HOLDS(second.text - again == msg->text - (const char *)buf);
	second.rkeys = msg->rkeys;
	second.name = msg->name;
	HOLDS((const char *)second.entries - again == (const char *)msg->entries - (const char *)buf);
	second.text = msg->text;
	second.entries = msg->entries;
	/* Both were cleared before they were filled in, padding too */
	HOLDS(!memcmp(&second, msg, sizeof(second)));
	free(again);
}

static void check_private(const void *buf, size_t size)
{
	const struct rdmatensor_wire_private *private = buf;

	if (rdmatensor_wire_check_private(buf, size > UINT8_MAX ? UINT8_MAX : size))
		return;
	HOLDS(size >= sizeof(*private));
	HOLDS(private->major == RDMATENSOR_WIRE_MAJOR);
	HOLDS(private->lanes >= 1 && private->lanes <= RDMATENSOR_LANES_MAX);
	HOLDS(private->lane < private->lanes);
	HOLDS(!(le32_to_cpu(private->flags) & ~(RDMATENSOR_WIRE_PRIVATE_READ |
						RDMATENSOR_WIRE_PRIVATE_REVERSE)));
	connections++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rdmatensor_msg msg;
	const char *why = NULL;
	void *buf = malloc(size);
	int ret;

	HOLDS(buf);
	memcpy(buf, data, size);
	tried++;
	ret = rdmatensor_wire_decode(buf, size, &msg, &why);
	HOLDS(!memcmp(buf, data, size));
	if (!ret) {
		HOLDS(!why);
		check_promises(&msg, buf, size);
		check_again(&msg, buf, size);
		right[msg.type]++;
	} else {
		HOLDS(ret == -EPROTO && why && *why);
	}
	HOLDS(*rdmatensor_wire_type_name(size > 5 ? data[5] : 0));
	check_private(buf, size);
	free(buf);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	const __le32 magic = cpu_to_le32(RDMATENSOR_WIRE_MAGIC);
	int private = size >= sizeof(magic) && !memcmp(data, &magic, sizeof(magic));
	__le32 first;

	size = LLVMFuzzerMutate(data, size, max_size);
	first = private ? magic : cpu_to_le32(size);
	if (seed % 16 && size >= sizeof(first))
		memcpy(data, &first, sizeof(first));
	return size;
}

static void report(void)
{
	unsigned long long all = 0;
	int type;

	for (type = RDMATENSOR_WIRE_HELLO; type < TYPES; type++) {
		printf("# %-18s %llu taken\n", rdmatensor_wire_type_name(type), right[type]);
		all += right[type];
	}
	printf("# %-18s %llu taken\n", "CONNECTION", connections);
	printf("messages %llu, %llu of them taken\n", tried, all);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return atexit(report);
}
