// SPDX-License-Identifier: GPL-2.0
/* Calls at random: tables and gathers */
#include <errno.h>
#include <sys/ioctl.h>
#include "calls.h"

#define TIMEOUT_MS 500
#define ROWS_MAX 512
#define IDS_MAX 256

/* In memory that stays: some are read while others are made */
static uint64_t ids[1 << 12];
static const uint32_t row_bytes[] = { 16, 64, 512, 1000 };

__attribute__((constructor)) static void ids_fill(void)
{
	uint32_t state = 1;
	size_t i;

	for (i = 0; i < 1 << 12; i++) {
		state = state * 1103515245 + 12345;
		ids[i] = (state >> 16) % (i % 4 ? 16 : ROWS_MAX);
	}
}

/* Whole pages of a region that the process has; what they are is the table's, or a half of it */
int do_table_export(struct worker *w, struct context *c)
{
	unsigned int region = region_of(w, c), slot = below(w, NR_IDS), half = below(w, 3);
	uint64_t offset = (c->regions[region].offset + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t end = c->regions[region].offset + c->regions[region].bytes;
	struct rdmatensor_table_close close = { .size = sizeof(close) };
	uint64_t rows;
	int ret;

	ARG(table_export);

	/* One for one, or each name would soon be there */
	close.table = c->exports[slot];
	if (close.table && !one_in(w, 8) && !ioctl(c->fd, RDMATENSOR_TABLE_CLOSE, &close))
		c->exports[slot] = 0;
	arg.name_uptr = (uintptr_t)words + below(w, 4);
	arg.name_len = 1;
	arg.pool_id = c->regions[region].pool;
	arg.offset = offset;
	arg.row_bytes = row_bytes[below(w, 16) ? 1 : below(w, 4)];
	arg.stride = one_in(w, 4) ? arg.row_bytes + below(w, 100) : 0;
	rows = end > offset ? (end - offset) / PAGE * PAGE /
			      (arg.stride ? arg.stride : arg.row_bytes) : 1;
	rows = rows < ROWS_MAX ? rows : ROWS_MAX;
	arg.row_start = half == 2 ? rows / 2 : 0;
	arg.row_end = half == 1 ? rows - rows / 2 : rows;
	arg.data_type = RDMATENSOR_DT_UINT8;
	MUTATE();
	ret = MAKE(TABLE_EXPORT);
	if (!ret)
		c->exports[slot] = arg.out_table;
	return ret;
}

/* A cache, and an order, of memory that is as it happens to be: most ids are none then */
static void add_to(struct worker *w, struct context *c, struct rdmatensor_table_open *arg,
		   struct rdmatensor_table_cache *caches)
{
	unsigned int region = region_of(w, c), i;

	if (one_in(w, 3)) {
		arg->nr_caches = 1 + below(w, 2);
		arg->caches_uptr = (uintptr_t)caches;
		for (i = 0; i < arg->nr_caches; i++) {
			caches[i] = (struct rdmatensor_table_cache) {
				.row_start = i * 8, .row_end = i * 8 + 1 + below(w, 8),
				.offset = c->regions[region].offset,
				.stride = one_in(w, 4) ? 1024 : 0,
				.pool_id = c->regions[region].pool,
			};
			if (one_in(w, 8))
				mutate(w, c, &caches[i], 0, sizeof(caches[i]));
		}
	}
	if (one_in(w, 8)) {
		arg->flags = one_in(w, 2) ? RDMATENSOR_TABLE_ORDER : RDMATENSOR_TABLE_ORDER32;
		arg->order_pool_id = c->regions[region].pool;
		arg->order_offset = c->regions[region].offset;
		arg->order_nr = c->regions[region].bytes / 8;
	}
}

int do_table_open(struct worker *w, struct context *c)
{
	uint32_t channels[2] = { channel_of(w, c), channel_of(w, c) };
	struct rdmatensor_table_close close = { .size = sizeof(close) };
	struct rdmatensor_table_cache caches[2];
	unsigned int slot = below(w, NR_IDS);
	int ret;

	ARG(table_open);

	if (one_in(w, 6))
		channels[0] = RDMATENSOR_CHANNEL_SELF;
	arg.name_uptr = (uintptr_t)words + below(w, 4);
	arg.name_len = 1;
	arg.channels_uptr = (uintptr_t)channels;
	arg.nr_channels = one_in(w, 4) ? 2 : 1;
	arg.timeout_ms = 1 + below(w, TIMEOUT_MS);
	add_to(w, c, &arg, caches);
	if (!one_in(w, 4))
		arg.flags |= RDMATENSOR_TABLE_NOWAIT;
	MUTATE();
	if (!arg.timeout_ms || arg.timeout_ms > TIMEOUT_MS)
		arg.timeout_ms = TIMEOUT_MS;
	ret = MAKE(TABLE_OPEN);
	if (ret)
		return ret;
	close.table = c->tables[slot];
	c->tables[slot] = arg.out_table;
	if (close.table && ioctl(c->fd, RDMATENSOR_TABLE_CLOSE, &close))
		errno = 0;
	return 0;
}

int do_table_close(struct worker *w, struct context *c)
{
	ARG(table_close);

	arg.table = live(w, one_in(w, 2) ? c->exports : c->tables);
	MUTATE();
	return MAKE(TABLE_CLOSE);
}

void make_gather(struct worker *w, struct context *c, struct rdmatensor_op *op)
{
	unsigned int region = region_of(w, c);
	uint64_t rows = c->regions[region].bytes / row_bytes[1];

	op->opcode = RDMATENSOR_OP_GATHER;
	op->table = live(w, c->tables);
	op->pool_id = c->regions[region].pool;
	op->offset = c->regions[region].offset;
	op->bytes = c->regions[region].bytes;
	op->nr_ids = below(w, (rows < IDS_MAX ? rows : IDS_MAX) + 1);
	/* Of small numbers mostly: most tables are short */
	op->ids_uptr = (uintptr_t)(ids + below(w, (1 << 12) - IDS_MAX));
	if (one_in(w, 4))
		op->nr_ids = 1;
	if (one_in(w, 32)) {
		op->flags = RDMATENSOR_OP_IDS32;
	} else if (one_in(w, 32)) {
		/* Where there are none, from the middle on */
		op->ids_uptr = (uintptr_t)w->pages + 2 * PAGE - 64;
	}
	op->deadline_ns = rdmatensor_now_ns() + below(w, 100000000);
}
