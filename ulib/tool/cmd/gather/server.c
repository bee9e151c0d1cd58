// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gather --server: rows whose content follows from their number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sides.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/server.h"
#include "tool/common/stop.h"
#include "tool/common/store.h"

static uint64_t word_of(void *arg, uint64_t i)
{
	const struct gathering *gathering = arg;

	/* Words are counted through all rows */
	return gather_word((uint64_t)gathering->row_start, gathering->row_bytes, i);
}

/* Without an error nothing is exported if a signal has ended the server: *ended */
static int export_rows(struct gathering *gathering, struct store *store)
{
	uint64_t nr = (uint64_t)(gathering->row_end - gathering->row_start);
	uint32_t table;
	int err;

	/* An export consists of whole pages */
	if (store_create_array(gathering->server.rt, nr, gathering->row_bytes,
			       RDMATENSOR_POOL_PEERS_READ, store))
		return EXIT_FAILED;
	server_fill(store, nr * (gathering->row_bytes / 8), word_of, gathering);
	err = rdmatensor_table_export(gathering->server.rt, gathering->table, &store->pool,
				      store->offset, (uint64_t)gathering->row_start,
				      (uint64_t)gathering->row_end, gathering->row_bytes, 0,
				      RDMATENSOR_DT_UINT8, &table);
	return err ? failed("export table \"%s\": %s", gathering->table, strerror(-err)) : EXIT_OK;
}

static int run(struct gathering *gathering)
{
	struct json_object *line = json_object_new_object();
	char what[160];
	int err;

	add_string(line, "event", "ready");
	add_number(line, "row_start", (uint64_t)gathering->row_start);
	add_number(line, "row_end", (uint64_t)gathering->row_end);
	snprintf(what, sizeof(what), "exporting rows %" PRId64 "..%" PRId64 " of \"%.60s\"",
		 gathering->row_start, gathering->row_end - 1, gathering->table);
	err = server_ready(&gathering->server, what, line);
	if (err)
		return err;
	err = server_run(&gathering->server);
	stop_end();
	return err;
}

int gather_serve(struct gathering *gathering)
{
	struct store store;
	int err;

	err = server_start(&gathering->server);
	if (err)
		return err;
	err = export_rows(gathering, &store);
	if (!err)
		err = run(gathering);
	rdmatensor_close(gathering->server.rt);
	return err;
}
