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

/* The worker that it is now, which may have left already. 0 or a negative errno */
static int add_worker(const struct fetch *fetch, const struct peer *peer, const char *name,
		      struct json_object *to)
{
	struct rdmatensor_channel_query query = { .channel = peer->channel };
	int err = rdmatensor_channel_query(fetch->rt, &query);

	if (err)
		return err == -ENOENT ? 0 : err;
	add_string(to, name, query.worker);
	add_number(to, "lanes", query.lanes);
	return 0;
}

static int add_peers(const struct fetch *fetch, struct json_object *root)
{
	struct json_object *list = json_object_new_array(), *one;
	const struct peer *peer;
	int err = 0;

	for (peer = fetch->peers.all; peer < fetch->peers.all + fetch->peers.nr; peer++) {
		one = json_object_new_object();
		add_string(one, "peer", peer->name);
		err = err ?: add_worker(fetch, peer, "worker", one);
		add_number(one, "tensors", peer->got);
		add_number(one, "bytes", peer->bytes);
		add_number(one, "reconnects", peer->again);
		add_number(one, "refused", peer->late);
		add_string(one, "state", peer->state == PEER_UP ? "up" : "down");
		if (peer->state != PEER_UP)
			add_string(one, "error", peer->why);
		json_object_array_add(list, one);
	}
	json_object_object_add(root, "peers", list);
	return err;
}

int fetch_print_json(const struct fetch *fetch, const struct step_result *results,
		     const char *output)
{
	struct json_object *root, *list, *one;
	int64_t i;
	int err = 0;

	root = json_object_new_object();
	add_string(root, "peer", fetch->peer);
	if (fetch->peers.nr == 1)
		err = add_worker(fetch, fetch->peers.all, "peer_worker", root);
	err = err ?: add_peers(fetch, root);
	if (err) {
		json_object_put(root);
		return failed("query channel to %s: %s", fetch->peer, strerror(-err));
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
