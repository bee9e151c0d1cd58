// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * perf PEER: keeps --in-flight fetches of one tensor in flight, each into a destination of its
 * own. One system call submits as many as have completed and waits for --batch completions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "sides.h"
#include "tool/common/context.h"
#include "tool/common/json.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/published.h"
#include "tool/common/store.h"

/* Bound on the first fetch, which shows whether the peer has the tensor */
#define PROBE_MS 10000
/* Content that is compared after the measurement, in bytes */
#define COMPARE_MAX (UINT64_C(64) << 20)

/**
 * struct load - one size under measurement
 * @perf: options
 * @rt: the context
 * @channel: to the server
 * @name: of the tensor
 * @size: its bytes
 * @store: destinations, @depth of them
 * @depth: fetches in flight at most
 * @ops: prepared fetch of each destination
 * @began_ns: when each was submitted
 * @batch: operations to submit
 * @nr_batch: their number
 * @flying: fetches in flight
 * @submitted: fetches since the start
 * @ended: of them, at their end
 * @samples: latencies
 * @failure: the first error, 0: none
 * @why: it in words
 */
struct load {
	const struct perf *perf;
	struct rdmatensor *rt;
	uint32_t channel;
	char name[48];
	uint64_t size;
	struct store store;
	unsigned int depth;
	struct rdmatensor_op *ops;
	uint64_t *began_ns;
	struct rdmatensor_op *batch;
	unsigned int nr_batch;
	unsigned int flying;
	uint64_t submitted;
	uint64_t ended;
	struct samples samples;
	int failure;
	char why[RDMATENSOR_STATUS_ROOM];
};

static uint64_t destination(const struct load *load, unsigned int i)
{
	return load->store.offset + i * align_region(load->size);
}

static void prepare(struct load *load, uint64_t deadline_ns)
{
	unsigned int i;

	for (i = 0; i < load->depth; i++)
		rdmatensor_prep_fetch(&load->ops[i], load->channel, load->name,
				      0, load->store.pool.id,
				      destination(load, i), load->size,
				      deadline_ns, i);
}

static void queue(struct load *load, unsigned int i, uint64_t now)
{
	load->batch[load->nr_batch++] = load->ops[i];
	load->began_ns[i] = now;
	load->submitted++;
}

static void take(struct load *load, const struct rdmatensor_cqe *cqe)
{
	if (cqe->result && !load->failure) {
		load->failure = cqe->result;
		rdmatensor_status_text(load->rt, cqe, load->why, sizeof(load->why));
	} else if (!cqe->result && cqe->tensor_bytes != load->size &&
		   !load->failure) {
		load->failure = -EMSGSIZE;
		snprintf(load->why, sizeof(load->why), "it has %" PRIu64 " bytes",
			 (uint64_t)cqe->tensor_bytes);
	}
}

/*
 * The loop: @iters fetches, or until @until_ns; the other is 0. The clock is read once for
 * each system call.
 */
static int fetch_many(struct load *load, uint64_t iters, uint64_t until_ns)
{
	unsigned int wait_nr, done, i, ready, batch;
	uint64_t now = rdmatensor_now_ns();
	const struct rdmatensor_cqe *cqe;
	int err;

	load->submitted = 0;
	load->ended = 0;
	load->nr_batch = 0;
	for (i = 0; i < load->depth && (!iters || i < iters); i++)
		queue(load, i, now);
	while (load->nr_batch || load->flying) {
		batch = (unsigned int)load->perf->batch;
		load->flying += load->nr_batch;
		wait_nr = batch < load->flying ? batch : load->flying;
		err = rdmatensor_submit(load->rt, load->batch, load->nr_batch,
					wait_nr, 0, &done);
		if (done < load->nr_batch || (err && err != -EINTR)) {
			load->failure = err;
			snprintf(load->why, sizeof(load->why), "%s", err == -EDQUOT ?
				 STORE_NO_REGIONS ", or lower --in-flight" : strerror(-err));
			return err;
		}
		load->nr_batch = 0;
		now = rdmatensor_now_ns();
		ready = rdmatensor_ready(load->rt);
		for (i = 0; i < ready; i++) {
			cqe = rdmatensor_peek(load->rt, i);
			if (cqe->type != RDMATENSOR_CQE_FETCH)
				continue;
			samples_add(&load->samples,
				    now - load->began_ns[cqe->user_data]);
			take(load, cqe);
			load->ended++;
			load->flying--;
			if (!load->failure &&
			    (iters ? load->submitted < iters : now < until_ns))
				queue(load, (unsigned int)cqe->user_data, now);
		}
		rdmatensor_advance(load->rt, ready);
	}
	return load->failure;
}

static int load_failed(const struct load *load)
{
	return failed("fetch tensor \"%s\" from %s: %s%s", load->name,
		      load->perf->peer, load->why,
		      load->failure == -ETIMEDOUT ?
		      ": no `rdmatensor perf --server` runs there, it is still filling its memory, or it does not publish that size: give it the same --size" : "");
}

/* Checks the destinations, up to COMPARE_MAX bytes */
static int compare(const struct load *load)
{
	uint64_t compared = 0, i, word;
	const char *at;
	unsigned int d;

	for (d = 0; d < load->depth && compared <= COMPARE_MAX; d++) {
		at = (const char *)load->store.pool.base + destination(load, d);
		for (i = 0; i + 8 <= load->size; i += 8) {
			memcpy(&word, at + i, 8);
			if (word != perf_word(i / 8))
				return failed("compare tensor \"%s\": byte %" PRIu64 " of destination %u is wrong",
					      load->name, i, d);
		}
		word = perf_word(i / 8);
		if (memcmp(at + i, &word, load->size - i))
			return failed("compare tensor \"%s\": byte %" PRIu64 " of destination %u is wrong",
				      load->name, i, d);
		compared += load->size;
	}
	return EXIT_OK;
}

static void size_text(uint64_t size, char *text, size_t len)
{
	if (size && !(size & ((1 << 20) - 1)))
		snprintf(text, len, "%" PRIu64 "m", size >> 20);
	else if (size && !(size & 1023))
		snprintf(text, len, "%" PRIu64 "k", size >> 10);
	else
		snprintf(text, len, "%" PRIu64, size);
}

/* NULL: with a message */
static struct json_object *describe(struct load *load, double seconds,
				    const uint64_t *before,
				    const uint64_t *after)
{
	struct json_object *row = json_object_new_object();
	struct json_object *lat = json_object_new_object();
	struct samples *samples = &load->samples;
	struct rdmatensor_channel_query query = { .channel = load->channel };
	int err = rdmatensor_channel_query(load->rt, &query);
	char size[32], name[64];

	if (err && err != -ENOENT) {
		json_object_put(row);
		json_object_put(lat);
		failed("query channel: %s", strerror(-err));
		return NULL;
	}
	size_text(load->size, size, sizeof(size));
	snprintf(name, sizeof(name), "%s_%s",
		 load->perf->latency ? "lat" : "bw", size);
	samples_sort(samples);
	add_string(row, "name", name);
	add_number(row, "size", load->size);
	/* A channel that has gone down meanwhile has no more to report */
	if (!err) {
		add_number(row, "lanes", query.lanes);
		add_number(row, "msg_slots", query.msg_slots);
	}
	add_number(row, "depth", load->depth);
	add_number(row, "iters", load->ended);
	add_double(row, "seconds", seconds);
	add_double(row, "bytes_per_second",
		   (double)load->size * (double)load->ended / seconds);
	add_double(row, "fetches_per_second", (double)load->ended / seconds);
	add_double(lat, "min", (double)samples->min / 1e3);
	add_double(lat, "avg", (double)samples->sum /
			       (double)samples->count / 1e3);
	add_double(lat, "p50", (double)samples_percentile(samples, 50) / 1e3);
	add_double(lat, "p99", (double)samples_percentile(samples, 99) / 1e3);
	add_double(lat, "max", (double)samples->max / 1e3);
	json_object_object_add(row, "lat_us", lat);
	add_counters(row, after, before);
	return row;
}

static double number(struct json_object *row, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(row, key, &value))
		return 0;
	return json_object_get_double(value);
}

static void print_row(struct json_object *row, bool first)
{
	struct json_object *lat, *name;

	if (first)
		printf("%-10s %10s %6s %9s %10s %11s %9s %9s %9s %8s\n", "name",
		       "bytes", "depth", "fetches", "MB/s", "fetches/s",
		       "p50 us", "p99 us", "max us", "calls/f");
	json_object_object_get_ex(row, "lat_us", &lat);
	json_object_object_get_ex(row, "name", &name);
	printf("%-10s %10.0f %6.0f %9.0f %10.1f %11.0f %9.1f %9.1f %9.1f %8.3f\n",
	       json_object_get_string(name), number(row, "size"),
	       number(row, "depth"), number(row, "iters"),
	       number(row, "bytes_per_second") / 1e6,
	       number(row, "fetches_per_second"), number(lat, "p50"),
	       number(lat, "p99"), number(lat, "max"),
	       number(row, "submits") / number(row, "iters"));
	fflush(stdout);
}

static int measure(struct load *load, struct json_object **row)
{
	uint64_t before[RDMATENSOR_STAT_NR], after[RDMATENSOR_STAT_NR];
	uint64_t warm = load->depth, began, ended;

	if (load->size <= 65536 && warm < 64)
		warm = 64;
	/* One fetch alone: many at once may take longer than the bound */
	prepare(load, rdmatensor_deadline_ms(PROBE_MS));
	if (fetch_many(load, 1, 0))
		return load_failed(load);
	prepare(load, 0);
	if (fetch_many(load, warm, 0))
		return load_failed(load);
	/* Without a deadline and its timer: the end of the channel ends the fetches, too */
	prepare(load, 0);
	samples_reset(&load->samples);
	if (context_counters(load->rt, before))
		return EXIT_FAILED;
	began = rdmatensor_now_ns();
	if (fetch_many(load, (uint64_t)load->perf->iters, load->perf->iters ?
		       0 : began + load->perf->duration_ns))
		return load_failed(load);
	ended = rdmatensor_now_ns();
	if (context_counters(load->rt, after))
		return EXIT_FAILED;
	*row = describe(load, (double)(ended - began) / 1e9, before, after);
	return *row ? compare(load) : EXIT_FAILED;
}

static int measure_size(struct load *load, uint64_t size,
			struct json_object **row)
{
	int err;

	load->size = size;
	load->failure = 0;
	load->flying = 0;
	perf_name(size, load->name);
	err = store_create_of(load->rt, load->perf->memory, load->depth, align_region(size),
			      RDMATENSOR_POOL_PEERS_WRITE, &load->store);
	if (err)
		return err;
	err = measure(load, row);
	if (err) {
		rdmatensor_pool_destroy(load->rt, &load->store.pool);
		return err;
	}
	return store_destroy(load->rt, &load->store);
}

static int measure_all(struct load *load)
{
	struct json_object *rows = json_object_new_array();
	const struct perf *perf = load->perf;
	int err = EXIT_OK;
	size_t i;

	for (i = 0; !err && i < perf->nr_sizes; i++) {
		struct json_object *row = NULL;

		err = measure_size(load, perf->sizes[i], &row);
		if (!row)
			break;
		if (!perf->server.options.json)
			print_row(row, !i);
		json_object_array_add(rows, row);
	}
	/* What was measured before a failure is reported all the same */
	if (perf->server.options.json && json_object_array_length(rows))
		print_json(rows);
	else
		json_object_put(rows);
	return err;
}

int perf_measure(struct perf *perf)
{
	struct rdmatensor_start *start = &perf->server.options.start;
	struct load load = { .perf = perf, .depth = (unsigned int)perf->depth };
	int err;

	/* Every fetch in flight has a place in the ring */
	if (!start->ring_entries && load.depth > 2048)
		start->ring_entries = 2 * load.depth;
	err = context_start(&perf->server.options, &perf->server.rt);
	if (err)
		return err;
	load.rt = perf->server.rt;
	load.ops = calloc(load.depth, sizeof(*load.ops));
	load.batch = calloc(load.depth, sizeof(*load.batch));
	load.began_ns = calloc(load.depth, sizeof(*load.began_ns));
	if (!load.ops || !load.batch || !load.began_ns ||
	    samples_init(&load.samples))
		err = failed("out of memory");
	if (!err)
		err = context_ring_holds(load.rt, load.depth, 1);
	if (!err)
		err = context_connect(load.rt, &perf->server.options, perf->peer,
				      perf->peer_worker, &load.channel);
	if (!err)
		err = measure_all(&load);
	rdmatensor_close(load.rt);
	samples_free(&load.samples);
	free(load.began_ns);
	free(load.batch);
	free(load.ops);
	return err;
}
