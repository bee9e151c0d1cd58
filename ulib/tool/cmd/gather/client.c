// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gather PEER...: each gather in flight has ids and a destination of its own, which the next
 * gather of the slot uses again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "sides.h"
#include "tool/common/context.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/store.h"
#include "tool/common/text.h"

/**
 * struct load - a run
 * @gathering: options
 * @rt: the context
 * @table: opened
 * @rows: ids are below this
 * @row_bytes: of a row
 * @store: destinations, one behind the other
 * @stride: distance of two
 * @ids: one array behind the other
 */
struct load {
	struct gathering *gathering;
	struct rdmatensor *rt;
	uint32_t table;
	uint64_t rows;
	uint64_t row_bytes;
	struct store store;
	uint64_t stride;
	uint64_t *ids;
};

static int connect_all(struct load *load)
{
	uint64_t wait_ns = load->gathering->server.options.wait_ns, end_ns;
	struct rdmatensor_table_open open = {
		.flags = wait_ns ? 0 : RDMATENSOR_TABLE_NOWAIT,
	};
	uint32_t *channels = calloc((size_t)load->gathering->nr_peers, sizeof(*channels));
	int err = EXIT_OK, opened, i;

	if (!channels)
		return failed("out of memory");
	for (i = 0; !err && i < load->gathering->nr_peers; i++)
		err = context_connect(load->rt, &load->gathering->server.options,
				      load->gathering->peers[i], NULL, &channels[i]);
	end_ns = rdmatensor_now_ns() + wait_ns;
	/* -EINTR follows a stop of the process, too; what ends it is not handled here */
	do {
		open.timeout_ms = wait_ms(wait_left(wait_ns, end_ns));
		opened = err ? 0 : rdmatensor_table_open(load->rt, load->gathering->table, channels,
							 (unsigned int)load->gathering->nr_peers,
							 &open);
	} while (opened == -EINTR);
	if (opened)
		err = failed("%s", open.cause);
	free(channels);
	load->table = open.out_table;
	load->rows = open.out_rows;
	load->row_bytes = open.out_row_bytes;
	return err;
}

static int submit(struct load *load, uint64_t slot)
{
	uint64_t nr = (uint64_t)load->gathering->ids;
	uint64_t timeout_ns = load->gathering->timeout_ns;
	struct rdmatensor_op op;
	int err;

	rdmatensor_prep_gather(&op, load->table, load->ids + slot * nr, nr, load->store.pool.id,
			       load->store.offset + slot * load->stride, nr * load->row_bytes,
			       timeout_ns ? rdmatensor_now_ns() + timeout_ns : 0, slot);
	err = rdmatensor_submit(load->rt, &op, 1, 0, 0, NULL);
	return err ? failed("gather: %s", strerror(-err)) : EXIT_OK;
}

/* The next completion. EXIT_OK: all rows have arrived */
static int next_end(struct load *load, uint64_t *slot)
{
	const struct rdmatensor_cqe *cqe;
	char text[256];
	int err;

	for (;;) {
		err = context_wait(load->rt, 1, 0);
		if (err)
			return failed("wait: %s", strerror(-err));
		cqe = rdmatensor_peek(load->rt, 0);
		if (cqe->type != RDMATENSOR_CQE_GATHER) {
			note("channel %u: %s", cqe->channel,
			     rdmatensor_cqe_text(cqe, text, sizeof(text)));
			rdmatensor_advance(load->rt, 1);
			continue;
		}
		*slot = cqe->user_data;
		err = cqe->result ?
		      failed("gather: %s; %" PRIu64 " rows are missing, first at position %" PRIu64,
			     rdmatensor_cqe_text(cqe, text, sizeof(text)),
			     (uint64_t)cqe->tensor_bytes, (uint64_t)cqe->offset) : EXIT_OK;
		rdmatensor_advance(load->rt, 1);
		return err;
	}
}

/* Each completion is followed by another gather, up to the bound. *ended: completed gathers */
static int run(struct load *load, uint64_t *ended, double *seconds)
{
	const struct gathering *gathering = load->gathering;
	uint64_t begun = rdmatensor_now_ns(), in_flight = 0, submitted = 0, slot;
	bool more = true;
	int err = EXIT_OK;

	*ended = 0;
	for (slot = 0; !err && slot < (uint64_t)gathering->depth; slot++) {
		if (gathering->count && submitted == (uint64_t)gathering->count)
			break;
		err = submit(load, slot);
		in_flight += !err;
		submitted += !err;
	}
	while (!err && in_flight) {
		err = next_end(load, &slot);
		in_flight--;
		++*ended;
		more = gathering->count ? submitted < (uint64_t)gathering->count :
		       rdmatensor_now_ns() - begun < gathering->duration_ns;
		if (!err && more) {
			err = submit(load, slot);
			in_flight++;
			submitted++;
		}
	}
	*seconds = (double)(rdmatensor_now_ns() - begun) / 1e9;
	return err;
}

/* The destination of one slot against its ids */
static int compare_slot(const struct load *load, uint64_t slot)
{
	uint64_t nr = (uint64_t)load->gathering->ids, words = load->row_bytes / 8, i, k;
	const uint64_t *at = (void *)((char *)load->store.pool.base + load->store.offset +
				      slot * load->stride);
	const uint64_t *ids = load->ids + slot * nr;

	for (i = 0; i < nr; i++)
		for (k = 0; k < words; k++, at++)
			if (*at != gather_word(ids[i], load->row_bytes, k))
				return failed("row %" PRIu64 " at position %" PRIu64 " is wrong in word %" PRIu64,
					      ids[i], i, k);
	return EXIT_OK;
}

static int compare_rows(const struct load *load)
{
	int64_t slot, count = load->gathering->count;
	int err = EXIT_OK;

	/* Fewer gathers than slots leave some unused */
	for (slot = 0; !err && slot < load->gathering->depth && (!count || slot < count); slot++)
		err = compare_slot(load, (uint64_t)slot);
	return err;
}

static void report(struct load *load, uint64_t ended, double seconds, const uint64_t *before,
		   const uint64_t *after)
{
	double rows = (double)ended * (double)load->gathering->ids;
	struct json_object *line;

#define SINCE(_stat) (after[RDMATENSOR_STAT_##_stat] - before[RDMATENSOR_STAT_##_stat])
	if (!load->gathering->server.options.json) {
		printf("table ");
		put_string(stdout, load->gathering->table);
		printf(", %d owner%s\n", load->gathering->nr_peers,
		       plural((uint64_t)load->gathering->nr_peers));
		printf("%10s %12s %10s %10s %10s %10s %9s\n", "row bytes", "rows/s", "MB/s", "reads",
		       "lists", "copies", "seconds");
		printf("%10" PRIu64 " %12.0f %10.1f %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %9.3f\n",
		       load->row_bytes, rows / seconds,
		       rows * (double)load->row_bytes / seconds / 1e6, SINCE(GATHER_READS),
		       SINCE(GATHER_LISTS), SINCE(GATHER_COPIES), seconds);
		return;
	}
	line = json_object_new_object();
	add_string(line, "table", load->gathering->table);
	add_number(line, "row_bytes", load->row_bytes);
	add_number(line, "gathers", ended);
	add_double(line, "rows", rows);
	add_double(line, "seconds", seconds);
	add_double(line, "rows_per_second", rows / seconds);
	add_double(line, "bytes_per_second", rows * (double)load->row_bytes / seconds);
	add_counters(line, after, before);
	print_json(line);
#undef SINCE
}

static int measure(struct load *load)
{
	uint64_t before[RDMATENSOR_STAT_NR] = { 0 }, after[RDMATENSOR_STAT_NR] = { 0 };
	const struct gathering *gathering = load->gathering;
	uint64_t slots = (uint64_t)gathering->depth, ended;
	double seconds;
	int err;

	/* At most 2^31 rows of RDMATENSOR_ROW_MAX bytes */
	load->stride = align_region((uint64_t)gathering->ids * load->row_bytes);
	err = store_create_array(load->rt, slots, load->stride, RDMATENSOR_POOL_PEERS_NONE,
				 &load->store);
	if (err)
		return err;
	load->ids = calloc(slots * (uint64_t)gathering->ids, sizeof(*load->ids));
	if (!load->ids)
		return failed("out of memory");
	err = ids_choose(gathering, load->rows, load->ids);
	if (err)
		return err;
	if (context_counters(load->rt, before))
		return EXIT_FAILED;
	err = run(load, &ended, &seconds);
	if (context_counters(load->rt, after))
		return EXIT_FAILED;
	if (!err)
		err = compare_rows(load);
	if (!err)
		report(load, ended, seconds, before, after);
	return err;
}

int gather_measure(struct gathering *gathering)
{
	struct load load = { .gathering = gathering };
	int err;

	err = context_start(&gathering->server.options, &load.rt);
	if (err)
		return err;
	err = context_ring_holds(load.rt, (unsigned int)gathering->depth,
				 (unsigned int)gathering->nr_peers);
	if (!err)
		err = connect_all(&load);
	if (!err)
		err = measure(&load);
	/* Before the ids are freed: after a failure other gathers may be in flight */
	rdmatensor_close(load.rt);
	free(load.ids);
	return err;
}
