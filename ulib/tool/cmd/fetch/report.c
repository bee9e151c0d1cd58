// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the steps took, as a table or as JSON.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"

static uint64_t control_messages(const struct step_result *result)
{
	return result->counters[RDMATENSOR_STAT_TX_MESSAGES] +
	       result->counters[RDMATENSOR_STAT_RX_MESSAGES];
}

/*
 * Each control message, ack and content is a write. A content that spans
 * segments, or lanes without an immediate of their own, takes more than one,
 * which only the sender can count.
 */
static uint64_t rdma_writes(const struct step_result *result)
{
	return control_messages(result) +
	       result->counters[RDMATENSOR_STAT_TX_ACKS] +
	       result->counters[RDMATENSOR_STAT_RX_ACKS] +
	       result->counters[RDMATENSOR_STAT_RX_CONTENTS];
}

void fetch_print(const struct fetch *fetch, const struct step_result *results)
{
	int64_t i;

	printf("%10s %8s %14s %10s %10s %10s\n", "step", "tensors", "bytes",
	       "messages", "writes", "seconds");
	for (i = 0; i < fetch->steps; i++)
		printf("%10" PRId64 " %8zu %14" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10.6f\n",
		       results[i].step, fetch->file->nr, fetch->file->data_bytes,
		       control_messages(&results[i]), rdma_writes(&results[i]),
		       results[i].seconds);
}

int fetch_print_json(const struct fetch *fetch, const struct step_result *results,
		     const char *output)
{
	struct rdmatensor_channel_query query = { .channel = fetch->channel };
	struct json_object *root, *list, *one;
	int64_t i;
	int err;

	/* The peer may have left already */
	err = rdmatensor_channel_query(fetch->rt, &query);
	if (err && err != -ENOENT)
		return failed("query channel to %s: %s", fetch->peer, strerror(-err));
	root = json_object_new_object();
	add_string(root, "peer", fetch->peer);
	if (!err) {
		add_string(root, "peer_worker", query.worker);
		add_number(root, "lanes", query.lanes);
	}
	add_string(root, "output", output);
	list = json_object_new_array();
	for (i = 0; i < fetch->steps; i++) {
		one = json_object_new_object();
		json_object_object_add(one, "step",
				       json_object_new_int64(results[i].step));
		add_number(one, "tensors", fetch->file->nr);
		add_number(one, "bytes", fetch->file->data_bytes);
		add_number(one, "control_messages",
			   control_messages(&results[i]));
		add_number(one, "rdma_writes", rdma_writes(&results[i]));
		add_double(one, "seconds", results[i].seconds);
		add_counters(one, results[i].counters, NULL);
		json_object_array_add(list, one);
	}
	json_object_object_add(root, "steps", list);
	print_json(root);
	return EXIT_OK;
}
