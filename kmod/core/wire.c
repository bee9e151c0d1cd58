// SPDX-License-Identifier: GPL-2.0
/*
 * Encoding and decoding of control messages, and the arithmetic that both ends
 * of a write must agree on. Pure functions, no I/O and no allocation: all that
 * a peer sends passes rdmatensor_wire_decode(), which is therefore the place
 * where it is distrusted.
 *
 * Which fields a type uses is written down once, in wire_used_fields(). Encoding
 * writes those and no other, whatever else is in the message; decoding refuses
 * a message in which any other is not zero, so that a later minor version can
 * give them a meaning without being misunderstood by this one.
 *
 * An error ends the message, and with it the channel: there is no resyncing.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <kunit/visibility.h>
#include <asm/byteorder.h>
#include "core/text.h"
#include "core/wire.h"

#define PART_ALIGN 4096U
#define ERROR_MAX 4095U

enum {
	FIELD_INDEX = 1 << 0,
	FIELD_STEP = 1 << 1,
	FIELD_ADDR = 1 << 2,
	FIELD_BYTES = 1 << 3,
	FIELD_CHECKSUM = 1 << 4,
	FIELD_ERROR = 1 << 5,
	FIELD_DTYPE = 1 << 6,
	FIELD_DEAD = 1 << 7,
	FIELD_DIMS = 1 << 8,
	FIELD_RKEYS = 1 << 9,
	FIELD_NAME = 1 << 10,
	FIELD_TEXT = 1 << 11,
	FIELD_PARTS = 1 << 12,
	FIELD_SHIFT = 1 << 13,
	FIELD_HELLO = 1 << 14,
	FIELD_TABLE = 1 << 15,
	FIELD_KEEP = 1 << 16,
	FIELD_LIST = 1 << 17,
	FIELD_ENTRIES = 1 << 18,
	FIELD_SLICE = 1 << 19,
	FIELD_LAYOUT = 1 << 20,
};

#define FIELDS_META	(FIELD_BYTES | FIELD_DTYPE | FIELD_DEAD | FIELD_DIMS)
#define FIELDS_ROWS	(FIELD_TABLE | FIELD_ADDR | FIELD_RKEYS | FIELD_SHIFT)
#define FIELDS_DEST	(FIELD_ADDR | FIELD_RKEYS | FIELD_PARTS | FIELD_SHIFT)

static const struct {
	const char *name;
	u32 fields;
	u16 flags;
} wire_types[] = {
	[RDMATENSOR_WIRE_HELLO] = {
		.name = "HELLO",
		.fields = FIELD_HELLO | FIELD_TEXT,
	},
	[RDMATENSOR_WIRE_TENSOR_REQUEST] = {
		.name = "TENSOR_REQUEST",
		.fields = FIELD_INDEX | FIELD_STEP | FIELDS_META | FIELD_NAME,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_VALIDATE |
			 RDMATENSOR_WIRE_F_KEEP | RDMATENSOR_WIRE_F_SLICE |
			 RDMATENSOR_WIRE_F_NEWEST | RDMATENSOR_WIRE_F_NOW |
			 RDMATENSOR_WIRE_F_LAYOUT,
	},
	[RDMATENSOR_WIRE_META_DATA_RESPONSE] = {
		.name = "META_DATA_RESPONSE",
		.fields = FIELD_INDEX | FIELD_STEP | FIELDS_META,
		.flags = RDMATENSOR_WIRE_F_CHECKSUM,
	},
	[RDMATENSOR_WIRE_TENSOR_RE_REQUEST] = {
		.name = "TENSOR_RE_REQUEST",
		.fields = FIELD_INDEX | FIELD_STEP | FIELDS_META,
		.flags = RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP |
			 RDMATENSOR_WIRE_F_SLICE | RDMATENSOR_WIRE_F_LAYOUT,
	},
	[RDMATENSOR_WIRE_ERROR_STATUS] = {
		.name = "ERROR_STATUS",
		.fields = FIELD_INDEX | FIELD_ERROR | FIELD_TEXT,
		.flags = RDMATENSOR_WIRE_F_CANCELLED | RDMATENSOR_WIRE_F_NAMED,
	},
	[RDMATENSOR_WIRE_CANCEL] = {
		.name = "CANCEL",
		.fields = FIELD_INDEX,
	},
	[RDMATENSOR_WIRE_TABLE_OPEN] = {
		.name = "TABLE_OPEN",
		.fields = FIELD_INDEX | FIELD_NAME | FIELD_TABLE,
		.flags = RDMATENSOR_WIRE_F_WAIT,
	},
	[RDMATENSOR_WIRE_TABLE_INFO] = {
		.name = "TABLE_INFO",
		.fields = FIELD_INDEX,
		.flags = RDMATENSOR_WIRE_F_FAILED,
	},
	[RDMATENSOR_WIRE_LIST] = {
		.name = "LIST",
		.fields = FIELD_INDEX | FIELD_NAME | FIELD_LIST,
	},
	[RDMATENSOR_WIRE_LIST_INFO] = {
		.name = "LIST_INFO",
		.fields = FIELD_INDEX,
		.flags = RDMATENSOR_WIRE_F_FAILED,
	},
};

const char *rdmatensor_wire_type_name(u8 type)
{
	if (type >= ARRAY_SIZE(wire_types) || !wire_types[type].name)
		return "unknown";
	return wire_types[type].name;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_type_name);

/* 0: the type is not known */
static u32 wire_used_fields(u8 type, u16 flags)
{
	u32 fields;

	if (type >= ARRAY_SIZE(wire_types))
		return 0;
	fields = wire_types[type].fields;
	if (flags & wire_types[type].flags & RDMATENSOR_WIRE_F_DEST)
		fields |= FIELDS_DEST;
	if (flags & wire_types[type].flags & RDMATENSOR_WIRE_F_KEEP) {
		fields |= FIELD_KEEP;
		/* The remembered destination includes the meta-data */
		if (!(flags & RDMATENSOR_WIRE_F_DEST))
			fields &= ~FIELDS_META;
	}
	if (flags & wire_types[type].flags & RDMATENSOR_WIRE_F_SLICE)
		fields |= FIELD_SLICE;
	if (flags & wire_types[type].flags & RDMATENSOR_WIRE_F_LAYOUT)
		fields |= FIELD_LAYOUT;
	if (flags & wire_types[type].flags & RDMATENSOR_WIRE_F_CHECKSUM)
		fields |= FIELD_CHECKSUM;
	if (flags & wire_types[type].flags & RDMATENSOR_WIRE_F_NAMED)
		fields |= FIELD_STEP | FIELD_NAME;
	if (type == RDMATENSOR_WIRE_TABLE_INFO)
		fields |= flags & RDMATENSOR_WIRE_F_FAILED ? FIELD_ERROR : FIELDS_ROWS;
	if (type == RDMATENSOR_WIRE_LIST_INFO)
		fields |= flags & RDMATENSOR_WIRE_F_FAILED ? FIELD_ERROR :
							     FIELD_LIST | FIELD_ENTRIES;
	return fields;
}

static u32 wire_present_fields(const struct rdmatensor_wire_hdr *hdr)
{
	return (hdr->request_index ? FIELD_INDEX : 0) |
	       (hdr->step_id ? FIELD_STEP : 0) |
	       (hdr->remote_addr ? FIELD_ADDR : 0) |
	       (hdr->tensor_bytes ? FIELD_BYTES : 0) |
	       (hdr->checksum ? FIELD_CHECKSUM : 0) |
	       (hdr->error_status ? FIELD_ERROR : 0) |
	       (hdr->data_type ? FIELD_DTYPE : 0) |
	       (hdr->is_dead ? FIELD_DEAD : 0) |
	       (hdr->ndims ? FIELD_DIMS : 0) |
	       (hdr->nr_rkeys ? FIELD_RKEYS : 0) |
	       (hdr->name_len ? FIELD_NAME : 0) |
	       (hdr->text_len ? FIELD_TEXT : 0) |
	       (hdr->nr_parts ? FIELD_PARTS : 0) |
	       (hdr->seg_shift ? FIELD_SHIFT : 0) |
	       (hdr->keep ? FIELD_KEEP : 0);
}

static u32 wire_slice_bytes(u8 ndims)
{
	return offsetof(struct rdmatensor_wire_slice, ranges) +
	       max_t(u32, ndims, 1) * sizeof(struct rdmatensor_wire_range);
}

static u32 wire_layout_bytes(u8 ndims)
{
	return offsetof(struct rdmatensor_wire_layout, strides) + ndims * sizeof(__le64);
}

u32 rdmatensor_wire_length(const struct rdmatensor_msg *msg)
{
	u32 fields = wire_used_fields(msg->type, msg->flags);

	return sizeof(struct rdmatensor_wire_hdr) +
	       (fields & FIELD_HELLO ? sizeof(struct rdmatensor_wire_hello) : 0) +
	       (fields & FIELD_TABLE ? sizeof(struct rdmatensor_wire_table) : 0) +
	       (fields & FIELD_LIST ? sizeof(struct rdmatensor_wire_list) : 0) +
	       (fields & FIELD_SLICE ? wire_slice_bytes(msg->slice->ndims) : 0) +
	       (fields & FIELD_LAYOUT ? wire_layout_bytes(msg->layout->ndims) : 0) +
	       (fields & FIELD_DIMS ? msg->meta.ndims * sizeof(__le64) : 0) +
	       (fields & FIELD_RKEYS ? msg->nr_rkeys * sizeof(__le32) : 0) +
	       (fields & FIELD_NAME ? msg->name_len : 0) +
	       (fields & FIELD_TEXT ? msg->text_len : 0) +
	       (fields & FIELD_ENTRIES ? msg->entries_bytes : 0);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_length);

u32 rdmatensor_wire_segments(u64 addr, u64 bytes, u8 shift)
{
	u64 last, segments;

	if (!bytes)
		return 0;
	if (check_add_overflow(addr, bytes - 1, &last))
		return U32_MAX;
	segments = (last >> shift) - (addr >> shift) + 1;
	return segments > U32_MAX ? U32_MAX : segments;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_segments);

void rdmatensor_wire_part(u64 bytes, u8 nr_parts, u8 part, u64 *offset,
			  u64 *part_bytes)
{
	u64 length = div_u64(bytes + nr_parts - 1, nr_parts);

	/* No overflow: meta-data bounds bytes by S64_MAX */
	length = (length + PART_ALIGN - 1) & ~(u64)(PART_ALIGN - 1);
	*offset = min(length * part, bytes);
	*part_bytes = min(bytes - *offset, length);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_part);

static const char *wire_check_meta(const struct rdmatensor_msg *msg)
{
	const struct rdmatensor_meta *meta = &msg->meta;

	if (meta->data_type == RDMATENSOR_DT_INVALID &&
	    msg->type == RDMATENSOR_WIRE_TENSOR_REQUEST) {
		/* The receiver has not met this name yet */
		if (meta->ndims || meta->bytes || meta->is_dead)
			return "meta-data without a data type";
		if (msg->flags & RDMATENSOR_WIRE_F_DEST)
			return "destination without meta-data";
		return NULL;
	}
	return rdmatensor_meta_check(meta) ? "meta-data" : NULL;
}

/* What the content is. Return: NULL, or why it is not known */
static const char *wire_content(const struct rdmatensor_msg *msg, struct rdmatensor_meta *content)
{
	struct rdmatensor_slice slice;

	if (!(msg->flags & RDMATENSOR_WIRE_F_SLICE)) {
		*content = msg->meta;
		return NULL;
	}
	rdmatensor_wire_slice_get(msg->slice, &slice);
	return rdmatensor_slice_meta(&slice, &msg->meta, content) ?
	       "slice of other meta-data" : NULL;
}

/* From its first byte to its last one in the destination. Return: NULL, or why it has no place */
static const char *wire_content_span(const struct rdmatensor_msg *msg,
				     const struct rdmatensor_meta *content, u64 *span)
{
	struct rdmatensor_layout layout;
	struct rdmatensor_cut cut;

	*span = content->bytes;
	if (!(msg->flags & RDMATENSOR_WIRE_F_LAYOUT))
		return NULL;
	if (!content->bytes)
		return "layout of nothing";
	rdmatensor_wire_layout_get(msg->layout, &layout);
	if (rdmatensor_layout_span(&layout, content, span))
		return "layout of other meta-data";
	if (!rdmatensor_layout_disjoint(&layout, content))
		return "layout that overlaps itself";
	rdmatensor_slice_cut(NULL, &layout, content, &cut);
	return rdmatensor_cut_runs(&cut) > RDMATENSOR_RUNS_MAX ? "layout of too many runs" : NULL;
}

static const char *wire_check_dest(const struct rdmatensor_msg *msg)
{
	struct rdmatensor_meta content;
	const char *why;
	u64 span, end;

	why = wire_content(msg, &content) ?: wire_content_span(msg, &content, &span);
	if (why)
		return why;

	if (msg->seg_shift < RDMATENSOR_WIRE_SEG_SHIFT_MIN ||
	    msg->seg_shift > RDMATENSOR_WIRE_SEG_SHIFT_MAX)
		return "seg_shift";
	if (!msg->nr_parts || msg->nr_parts > RDMATENSOR_LANES_MAX ||
	    (msg->nr_parts > 1 && !content.bytes))
		return "nr_parts";
	if (check_add_overflow(msg->remote_addr, span, &end))
		return "remote_addr";
	if (msg->nr_rkeys != rdmatensor_wire_segments(msg->remote_addr, span, msg->seg_shift))
		return "number of rkeys";
	return NULL;
}

bool rdmatensor_wire_worker_ok(const char *name, u32 len)
{
	u32 i;

	if (!len || len >= RDMATENSOR_WORKER_MAX)
		return false;
	for (i = 0; i < len; i++)
		if ((u8)name[i] < ' ' || name[i] == 0x7f ||
		    (i && rdmatensor_text_is_c1(&name[i - 1])))
			return false;
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_worker_ok);

static const char *wire_check_hello(const struct rdmatensor_msg *msg)
{
	if (!msg->max_requests)
		return "max_requests";
	if (!rdmatensor_wire_worker_ok(msg->text, msg->text_len))
		return "worker name";
	return NULL;
}

static const char *wire_check_table(const struct rdmatensor_msg *msg)
{
	const struct rdmatensor_table_info *table = &msg->table;
	u64 bytes, end;

	if (msg->type == RDMATENSOR_WIRE_TABLE_OPEN) {
		if (table->row_start || table->row_end || table->row_bytes || table->stride ||
		    table->data_type || table->nr_keys)
			return "rows in a question";
		return table->first_key >= RDMATENSOR_WIRE_KEYS_MAX ? "first_key" : NULL;
	}
	if (table->row_start >= table->row_end || table->row_end > S64_MAX)
		return "range of rows";
	if (!table->row_bytes || table->row_bytes > RDMATENSOR_ROW_MAX ||
	    table->stride < table->row_bytes)
		return "bytes of a row";
	if (table->data_type == RDMATENSOR_DT_INVALID || table->data_type > RDMATENSOR_DT_MAX)
		return "data type";
	if (msg->seg_shift < RDMATENSOR_WIRE_SEG_SHIFT_MIN ||
	    msg->seg_shift > RDMATENSOR_WIRE_SEG_SHIFT_MAX)
		return "seg_shift";
	if (check_mul_overflow(table->row_end - table->row_start - 1, table->stride, &bytes) ||
	    check_add_overflow(bytes, (u64)table->row_bytes, &bytes) ||
	    check_add_overflow(msg->remote_addr, bytes, &end))
		return "length of the rows";
	if (table->nr_keys > RDMATENSOR_WIRE_KEYS_MAX ||
	    table->nr_keys != rdmatensor_wire_segments(msg->remote_addr, bytes, msg->seg_shift))
		return "number of keys";
	if (!msg->nr_rkeys || table->first_key >= table->nr_keys ||
	    msg->nr_rkeys > table->nr_keys - table->first_key)
		return "keys that are none of the rows'";
	return NULL;
}

/* Each entry by itself, and all of them against their number */
static const char *wire_check_entries(const struct rdmatensor_msg *msg)
{
	const char *pos = msg->entries;
	u32 left = msg->entries_bytes, nr = 0, bytes;
	struct rdmatensor_listed listed;

	for (; left; pos += bytes, left -= bytes) {
		bytes = rdmatensor_wire_entry_get(pos, left, &listed);
		if (!bytes)
			return "entry of a list";
		nr++;
	}
	return nr != msg->nr_entries ? "number of entries" : NULL;
}

static const char *wire_check_list(const struct rdmatensor_msg *msg)
{
	if (msg->type == RDMATENSOR_WIRE_LIST)
		return msg->nr_entries || msg->entries_bytes ? "entries in a question" : NULL;
	return wire_check_entries(msg);
}

static const char *wire_check_slice(const struct rdmatensor_msg *msg)
{
	struct rdmatensor_slice slice;

	if (memchr_inv(msg->slice->__reserved, 0, sizeof(msg->slice->__reserved)))
		return "reserved field of a slice";
	rdmatensor_wire_slice_get(msg->slice, &slice);
	if (rdmatensor_slice_check(&slice))
		return "range of a slice";
	return msg->flags & RDMATENSOR_WIRE_F_KEEP ? "kept destination with a slice" : NULL;
}

static const char *wire_check_layout(const struct rdmatensor_msg *msg)
{
	struct rdmatensor_layout layout;

	if (memchr_inv(msg->layout->__reserved, 0, sizeof(msg->layout->__reserved)))
		return "reserved field of a layout";
	rdmatensor_wire_layout_get(msg->layout, &layout);
	if (rdmatensor_layout_check(&layout))
		return "stride of a layout";
	if (!(msg->flags & RDMATENSOR_WIRE_F_DEST))
		return "layout without a destination";
	return msg->flags & RDMATENSOR_WIRE_F_KEEP ? "kept destination with a layout" : NULL;
}

/*
 * Where slice and layout begin, and that their own heads are there: how long they are stands in
 * those. Of the types that have them they are the first parts of the tail, in this order
 */
static const char *wire_find_parts(const struct rdmatensor_wire_hdr *hdr, u32 len, u32 fields,
				   struct rdmatensor_msg *msg)
{
	u32 pos = sizeof(*hdr);

	if (fields & FIELD_SLICE) {
		msg->slice = (const void *)hdr + pos;
		if (len < pos + wire_slice_bytes(0) || msg->slice->ndims > RDMATENSOR_DIMS_MAX)
			return "dims of a slice";
		pos += wire_slice_bytes(msg->slice->ndims);
	}
	if (fields & FIELD_LAYOUT) {
		msg->layout = (const void *)hdr + pos;
		if (len < pos + wire_layout_bytes(0) || msg->layout->ndims > RDMATENSOR_DIMS_MAX)
			return "dims of a layout";
	}
	return NULL;
}

/*
 * The tail's lengths, which are in the header, but for that of the entries: it is what is left
 */
static bool wire_fits(u32 fields, u32 len, struct rdmatensor_msg *msg)
{
	u32 least = rdmatensor_wire_length(msg);

	if (!(fields & FIELD_ENTRIES))
		return len == least;
	msg->entries_bytes = len - least;
	return len >= least;
}

/* What can be said of the header alone, the lengths of the tail above all */
static const char *wire_decode_header(const struct rdmatensor_wire_hdr *hdr, u32 len,
				      struct rdmatensor_msg *msg, u32 *fields)
{
	const char *why;

	if (len < sizeof(*hdr))
		return "shorter than a header";
	if (le32_to_cpu(hdr->length) != len)
		return "length";
	if (hdr->version_major != RDMATENSOR_WIRE_MAJOR)
		return "version";

	msg->type = hdr->type;
	msg->flags = le16_to_cpu(hdr->flags);
	*fields = wire_used_fields(msg->type, msg->flags);
	if (!*fields)
		return "unknown type";
	if (msg->flags & ~wire_types[msg->type].flags ||
	    (msg->flags & RDMATENSOR_WIRE_F_NAMED && msg->flags & RDMATENSOR_WIRE_F_CANCELLED))
		return "flags";
	if (wire_present_fields(hdr) & ~*fields)
		return "field that the type does not use";

	msg->consumed = le32_to_cpu(hdr->consumed);
	msg->request_index = le32_to_cpu(hdr->request_index);
	msg->step_id = le64_to_cpu(hdr->step_id);
	msg->remote_addr = le64_to_cpu(hdr->remote_addr);
	msg->checksum = le32_to_cpu(hdr->checksum);
	msg->keep = le32_to_cpu(hdr->keep);
	msg->nr_rkeys = le16_to_cpu(hdr->nr_rkeys);
	msg->name_len = le16_to_cpu(hdr->name_len);
	msg->text_len = le16_to_cpu(hdr->text_len);
	msg->nr_parts = hdr->nr_parts;
	msg->seg_shift = hdr->seg_shift;
	msg->meta.bytes = le64_to_cpu(hdr->tensor_bytes);
	msg->meta.data_type = le16_to_cpu(hdr->data_type);
	msg->meta.is_dead = hdr->is_dead;
	msg->meta.ndims = hdr->ndims;

	if (msg->meta.ndims > RDMATENSOR_DIMS_MAX)
		return "ndims";
	if (msg->text_len > rdmatensor_wire_text_max(msg->flags))
		return "text_len";
	/* A prefix may be empty */
	if (*fields & FIELD_NAME &&
	    ((!msg->name_len && msg->type != RDMATENSOR_WIRE_LIST) ||
	     msg->name_len > RDMATENSOR_NAME_MAX))
		return "name_len";
	if (*fields & FIELD_INDEX && msg->request_index > RDMATENSOR_INDEX_MAX)
		return "request_index";
	if (*fields & FIELD_ERROR) {
		u32 error = le32_to_cpu(hdr->error_status);

		if (!error || error > ERROR_MAX)
			return "error_status";
		msg->error = -(int)error;
	}
	why = wire_find_parts(hdr, len, *fields, msg);
	if (why)
		return why;
	if (!wire_fits(*fields, len, msg))
		return "lengths of the tail";
	return NULL;
}

/* Only when the header is right: the tail is exactly as long as it says */
static const char *wire_decode_tail(const struct rdmatensor_wire_hdr *hdr, u32 fields,
				    struct rdmatensor_msg *msg)
{
	const char *pos = (const char *)(hdr + 1);
	const __le64 *dims;
	unsigned int i;

	if (fields & FIELD_HELLO) {
		const struct rdmatensor_wire_hello *hello = (const void *)pos;

		if (memchr_inv(hello->__reserved, 0, sizeof(hello->__reserved)))
			return "reserved field of HELLO";
		msg->incarnation = le64_to_cpu(hello->incarnation);
		msg->max_requests = le32_to_cpu(hello->max_requests);
		msg->features = le32_to_cpu(hello->features);
		msg->listen_port = le16_to_cpu(hello->listen_port);
		pos += sizeof(*hello);
	}
	if (fields & FIELD_TABLE) {
		const struct rdmatensor_wire_table *table = (const void *)pos;

		if (table->__reserved)
			return "reserved field of a table";
		if (le64_to_cpu(table->row_bytes) > U32_MAX)
			return "bytes of a row";
		msg->table.row_start = le64_to_cpu(table->row_start);
		msg->table.row_end = le64_to_cpu(table->row_end);
		msg->table.row_bytes = le64_to_cpu(table->row_bytes);
		msg->table.stride = le64_to_cpu(table->stride);
		msg->table.data_type = le32_to_cpu(table->data_type);
		msg->table.nr_keys = le32_to_cpu(table->nr_keys);
		msg->table.first_key = le32_to_cpu(table->first_key);
		pos += sizeof(*table);
	}
	if (fields & FIELD_LIST) {
		const struct rdmatensor_wire_list *list = (const void *)pos;

		if (le32_to_cpu(list->entries_bytes) != msg->entries_bytes)
			return "lengths of the tail";
		msg->cursor = le64_to_cpu(list->cursor);
		msg->nr_entries = le32_to_cpu(list->nr_entries);
		pos += sizeof(*list);
	}
	if (fields & FIELD_SLICE)
		pos += wire_slice_bytes(msg->slice->ndims);
	if (fields & FIELD_LAYOUT)
		pos += wire_layout_bytes(msg->layout->ndims);
	dims = (const void *)pos;
	for (i = 0; i < msg->meta.ndims; i++)
		msg->meta.dims[i] = le64_to_cpu(dims[i]);
	pos += msg->meta.ndims * sizeof(*dims);
	msg->rkeys = (const void *)pos;
	pos += msg->nr_rkeys * sizeof(*msg->rkeys);
	msg->name = pos;
	pos += msg->name_len;
	msg->text = pos;
	pos += msg->text_len;
	msg->entries = pos;
	return NULL;
}

static const char *wire_decode(const void *buf, u32 len, struct rdmatensor_msg *msg)
{
	const char *why;
	u32 fields;

	why = wire_decode_header(buf, len, msg, &fields);
	if (!why)
		why = wire_decode_tail(buf, fields, msg);
	if (!why && fields & FIELD_HELLO)
		why = wire_check_hello(msg);
	if (!why && fields & FIELD_DTYPE)
		why = wire_check_meta(msg);
	if (!why && fields & FIELD_SLICE)
		why = wire_check_slice(msg);
	if (!why && fields & FIELD_LAYOUT)
		why = wire_check_layout(msg);
	if (!why && fields & FIELD_LIST)
		why = wire_check_list(msg);
	if (!why && fields & FIELD_TABLE)
		why = wire_check_table(msg);
	else if (!why && fields & FIELD_ADDR)
		why = wire_check_dest(msg);
	/* A request for a checksum sends no destination before it has the checksum */
	if (!why && msg->flags & RDMATENSOR_WIRE_F_KEEP &&
	    msg->flags & RDMATENSOR_WIRE_F_VALIDATE)
		why = "kept destination with validation";
	if (!why && msg->flags & RDMATENSOR_WIRE_F_NEWEST &&
	    msg->flags & (RDMATENSOR_WIRE_F_DEST | RDMATENSOR_WIRE_F_KEEP))
		why = "destination before the step is known";
	if (!why && msg->type == RDMATENSOR_WIRE_TENSOR_RE_REQUEST &&
	    !(msg->flags & RDMATENSOR_WIRE_F_DEST))
		why = "no destination";
	return why;
}

int rdmatensor_wire_decode(const void *buf, u32 len, struct rdmatensor_msg *msg,
			   const char **why)
{
	memset(msg, 0, sizeof(*msg));
	*why = wire_decode(buf, len, msg);
	return *why ? -EPROTO : 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_decode);

static void wire_encode_header(const struct rdmatensor_msg *msg, u32 fields, u32 length,
			       struct rdmatensor_wire_hdr *hdr)
{
	memset(hdr, 0, sizeof(*hdr));
	hdr->length = cpu_to_le32(length);
	hdr->version_major = RDMATENSOR_WIRE_MAJOR;
	hdr->type = msg->type;
	hdr->flags = cpu_to_le16(msg->flags);
	if (fields & FIELD_INDEX)
		hdr->request_index = cpu_to_le32(msg->request_index);
	if (fields & FIELD_STEP)
		hdr->step_id = cpu_to_le64(msg->step_id);
	if (fields & FIELD_CHECKSUM)
		hdr->checksum = cpu_to_le32(msg->checksum);
	if (fields & FIELD_KEEP)
		hdr->keep = cpu_to_le32(msg->keep);
	if (fields & FIELD_ERROR)
		hdr->error_status = cpu_to_le32(-msg->error);
	if (fields & FIELD_DIMS) {
		hdr->tensor_bytes = cpu_to_le64(msg->meta.bytes);
		hdr->data_type = cpu_to_le16(msg->meta.data_type);
		hdr->is_dead = msg->meta.is_dead;
		hdr->ndims = msg->meta.ndims;
	}
	if (fields & FIELD_RKEYS) {
		hdr->remote_addr = cpu_to_le64(msg->remote_addr);
		if (fields & FIELD_PARTS)
			hdr->nr_parts = msg->nr_parts;
		hdr->seg_shift = msg->seg_shift;
		hdr->nr_rkeys = cpu_to_le16(msg->nr_rkeys);
	}
	if (fields & FIELD_NAME)
		hdr->name_len = cpu_to_le16(msg->name_len);
	if (fields & FIELD_TEXT)
		hdr->text_len = cpu_to_le16(msg->text_len);
}

static void wire_encode_tail(const struct rdmatensor_msg *msg, u32 fields, char *pos)
{
	unsigned int i;

	if (fields & FIELD_HELLO) {
		struct rdmatensor_wire_hello hello = {
			.incarnation = cpu_to_le64(msg->incarnation),
			.max_requests = cpu_to_le32(msg->max_requests),
			.features = cpu_to_le32(msg->features),
			.listen_port = cpu_to_le16(msg->listen_port),
		};

		memcpy(pos, &hello, sizeof(hello));
		pos += sizeof(hello);
	}
	if (fields & FIELD_TABLE) {
		struct rdmatensor_wire_table table = {
			.row_start = cpu_to_le64(msg->table.row_start),
			.row_end = cpu_to_le64(msg->table.row_end),
			.row_bytes = cpu_to_le64(msg->table.row_bytes),
			.stride = cpu_to_le64(msg->table.stride),
			.data_type = cpu_to_le32(msg->table.data_type),
			.nr_keys = cpu_to_le32(msg->table.nr_keys),
			.first_key = cpu_to_le32(msg->table.first_key),
		};

		memcpy(pos, &table, sizeof(table));
		pos += sizeof(table);
	}
	if (fields & FIELD_LIST) {
		struct rdmatensor_wire_list list = {
			.cursor = cpu_to_le64(msg->cursor),
			.nr_entries = cpu_to_le32(msg->nr_entries),
			.entries_bytes = cpu_to_le32(msg->entries_bytes),
		};

		memcpy(pos, &list, sizeof(list));
		pos += sizeof(list);
	}
	if (fields & FIELD_SLICE) {
		memcpy(pos, msg->slice, wire_slice_bytes(msg->slice->ndims));
		pos += wire_slice_bytes(msg->slice->ndims);
	}
	if (fields & FIELD_LAYOUT) {
		memcpy(pos, msg->layout, wire_layout_bytes(msg->layout->ndims));
		pos += wire_layout_bytes(msg->layout->ndims);
	}
	if (fields & FIELD_DIMS) {
		__le64 *dims = (void *)pos;

		for (i = 0; i < msg->meta.ndims; i++)
			dims[i] = cpu_to_le64(msg->meta.dims[i]);
		pos += msg->meta.ndims * sizeof(*dims);
	}
	if (fields & FIELD_RKEYS) {
		if (msg->nr_rkeys)
			memcpy(pos, msg->rkeys, msg->nr_rkeys * sizeof(*msg->rkeys));
		pos += msg->nr_rkeys * sizeof(*msg->rkeys);
	}
	if (fields & FIELD_NAME) {
		if (msg->name_len)
			memcpy(pos, msg->name, msg->name_len);
		pos += msg->name_len;
	}
	if (fields & FIELD_TEXT) {
		if (msg->text_len)
			memcpy(pos, msg->text, msg->text_len);
		pos += msg->text_len;
	}
	if (fields & FIELD_ENTRIES && msg->entries_bytes)
		memcpy(pos, msg->entries, msg->entries_bytes);
}

int rdmatensor_wire_encode(const struct rdmatensor_msg *msg, void *buf, u32 room)
{
	u32 fields = wire_used_fields(msg->type, msg->flags);
	u32 length = rdmatensor_wire_length(msg);

	if (length > room)
		return -EMSGSIZE;
	wire_encode_header(msg, fields, length, buf);
	wire_encode_tail(msg, fields, buf + sizeof(struct rdmatensor_wire_hdr));
	return length;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_encode);

u32 rdmatensor_wire_entry_put(const struct rdmatensor_listed *listed, void *buf, u32 room)
{
	const struct rdmatensor_meta *meta = &listed->meta;
	const struct rdmatensor_wire_entry entry = {
		.cursor = cpu_to_le64(listed->cursor),
		.step_id = cpu_to_le64(listed->step_id),
		.tensor_bytes = cpu_to_le64(meta->bytes),
		.error_status = cpu_to_le32(-listed->error),
		.uses = cpu_to_le32(listed->uses),
		.data_type = cpu_to_le16(meta->data_type),
		.name_len = cpu_to_le16(listed->name_len),
		.is_dead = meta->is_dead,
		.ndims = meta->ndims,
	};
	u32 dims = meta->ndims * sizeof(__le64);
	char *pos = buf;
	unsigned int i;
	__le64 dim;

	if (sizeof(entry) + dims + listed->name_len > room)
		return 0;
	memcpy(pos, &entry, sizeof(entry));
	pos += sizeof(entry);
	for (i = 0; i < meta->ndims; i++) {
		dim = cpu_to_le64(meta->dims[i]);
		memcpy(pos + i * sizeof(dim), &dim, sizeof(dim));
	}
	memcpy(pos + dims, listed->name, listed->name_len);
	return sizeof(entry) + dims + listed->name_len;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_entry_put);

u32 rdmatensor_wire_entry_get(const void *buf, u32 bytes, struct rdmatensor_listed *listed)
{
	struct rdmatensor_meta *meta = &listed->meta;
	struct rdmatensor_wire_entry entry;
	const char *pos = buf;
	u32 error, dims;
	unsigned int i;
	__le64 dim;

	if (bytes < sizeof(entry))
		return 0;
	memcpy(&entry, buf, sizeof(entry));
	pos += sizeof(entry);
	error = le32_to_cpu(entry.error_status);
	dims = entry.ndims * sizeof(__le64);
	listed->cursor = le64_to_cpu(entry.cursor);
	listed->step_id = le64_to_cpu(entry.step_id);
	listed->uses = le32_to_cpu(entry.uses);
	listed->name_len = le16_to_cpu(entry.name_len);
	listed->name = pos + dims;
	if (!listed->cursor || error > ERROR_MAX || entry.ndims > RDMATENSOR_DIMS_MAX ||
	    !listed->name_len || listed->name_len > RDMATENSOR_NAME_MAX ||
	    memchr_inv(entry.__reserved, 0, sizeof(entry.__reserved)) ||
	    bytes < sizeof(entry) + dims + listed->name_len)
		return 0;
	listed->error = -(int)error;
	memset(meta, 0, sizeof(*meta));
	meta->bytes = le64_to_cpu(entry.tensor_bytes);
	meta->data_type = le16_to_cpu(entry.data_type);
	meta->is_dead = entry.is_dead;
	meta->ndims = entry.ndims;
	for (i = 0; i < meta->ndims; i++) {
		memcpy(&dim, pos + i * sizeof(dim), sizeof(dim));
		meta->dims[i] = le64_to_cpu(dim);
	}
	/* What has failed has no meta-data */
	if (error ? meta->bytes || meta->data_type || meta->is_dead || meta->ndims :
		    rdmatensor_meta_check(meta))
		return 0;
	return sizeof(entry) + dims + listed->name_len;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_entry_get);

void rdmatensor_wire_slice_put(const struct rdmatensor_slice *slice,
			       struct rdmatensor_wire_slice *wire)
{
	unsigned int i;

	memset(wire, 0, sizeof(*wire));
	wire->ndims = slice->ndims;
	for (i = 0; i < max_t(unsigned int, slice->ndims, 1); i++) {
		wire->ranges[i].start = cpu_to_le64(slice->ranges[i].start);
		wire->ranges[i].length = cpu_to_le64(slice->ranges[i].length);
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_slice_put);

void rdmatensor_wire_slice_get(const struct rdmatensor_wire_slice *wire,
			       struct rdmatensor_slice *slice)
{
	unsigned int i;

	memset(slice, 0, sizeof(*slice));
	slice->ndims = wire->ndims;
	for (i = 0; i < max_t(unsigned int, slice->ndims, 1); i++) {
		slice->ranges[i].start = le64_to_cpu(wire->ranges[i].start);
		slice->ranges[i].length = le64_to_cpu(wire->ranges[i].length);
	}
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_slice_get);

void rdmatensor_wire_layout_put(const struct rdmatensor_layout *layout,
				struct rdmatensor_wire_layout *wire)
{
	unsigned int i;

	memset(wire, 0, sizeof(*wire));
	wire->ndims = layout->ndims;
	for (i = 0; i < layout->ndims; i++)
		wire->strides[i] = cpu_to_le64(layout->strides[i]);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_layout_put);

void rdmatensor_wire_layout_get(const struct rdmatensor_wire_layout *wire,
				struct rdmatensor_layout *layout)
{
	unsigned int i;

	memset(layout, 0, sizeof(*layout));
	layout->ndims = wire->ndims;
	for (i = 0; i < layout->ndims; i++)
		layout->strides[i] = le64_to_cpu(wire->strides[i]);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_layout_get);

void rdmatensor_wire_set_consumed(void *buf, u32 consumed)
{
	struct rdmatensor_wire_hdr *hdr = buf;

	hdr->consumed = cpu_to_le32(consumed);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_set_consumed);

void rdmatensor_wire_init_private(struct rdmatensor_wire_private *private, u8 lane, u8 lanes,
				  u64 nonce, u8 mtu)
{
	memset(private, 0, sizeof(*private));
	private->magic = cpu_to_le32(RDMATENSOR_WIRE_MAGIC);
	private->major = RDMATENSOR_WIRE_MAJOR;
	private->minor = RDMATENSOR_WIRE_MINOR;
	private->lane = lane;
	private->lanes = lanes;
	private->nonce = cpu_to_le64(nonce);
	private->mtu = mtu;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_init_private);

int rdmatensor_wire_check_private(const struct rdmatensor_wire_private *private, u8 len)
{
	if (!private || len < sizeof(*private))
		return -EPROTO;
	if (private->magic != cpu_to_le32(RDMATENSOR_WIRE_MAGIC))
		return -EPROTO;
	if (private->major != RDMATENSOR_WIRE_MAJOR)
		return -EPROTONOSUPPORT;
	if (!private->lanes || private->lanes > RDMATENSOR_LANES_MAX ||
	    private->lane >= private->lanes)
		return -EPROTO;
	if (private->mtu < RDMATENSOR_WIRE_MTU_LEAST || private->mtu > RDMATENSOR_WIRE_MTU_MOST)
		return -EPROTO;
	if (private->flags & ~cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_READ |
					  RDMATENSOR_WIRE_PRIVATE_REVERSE) ||
	    private->flags == cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_REVERSE) ||
	    memchr_inv(private->__reserved, 0, sizeof(private->__reserved)))
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_wire_check_private);
