// SPDX-License-Identifier: GPL-2.0
/*
 * How long short things take, alone and beside bulk on the same channel: a fetch of 4 KB,
 * the channel's round trip (a fetch of one byte: one message, one write), and the time from
 * a CANCEL to its fetch's entry, from when on the process may use the buffer again. Round
 * trips and cancels are taken in turn, so that what the machine does besides hits both.
 *
 * Cancelled is a fetch that waits at the peer; and beside bulk in turn with that one of as
 * many bytes as the bulk's, whose content waits in the peer's queue or is being written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bulk.h"
#include "figures.h"

#define SAMPLES 10000
#define BULK_BYTES (UINT64_C(32) << 20)
#define BULK_DEPTH 8

/**
 * struct series - times of one kind
 * @ns: each
 * @n: their number
 */
struct series {
	uint64_t ns[SAMPLES];
	size_t n;
};

static struct series lat, rtt, cancel, queued;
static uint64_t small_at, byte_at, cancel_at;
static unsigned int crossed;

static void sample(struct series *series, uint64_t began)
{
	if (series->n < SAMPLES)
		series->ns[series->n++] = rdmatensor_now_ns() - began;
}

static void fetch(struct worker *worker, uint64_t bytes, uint64_t at, struct series *series)
{
	uint64_t began = rdmatensor_now_ns();
	char name[48];
	int ret;

	ret = worker_fetch(worker, perf_name(bytes, name), at, bytes, 0, NULL);
	if (ret)
		die("fetch of \"%s\": %s", name, strerror(-ret));
	sample(series, began);
}

/* One that has come before it could be cancelled is no sample */
static void cancel_one(struct worker *worker, const char *name, uint64_t bytes,
		       struct series *series)
{
	static uint64_t number = UINT64_C(1) << 31;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t began;
	int ret;

	rdmatensor_prep_fetch(&op, worker->channel, name, 0, worker->pool.id, cancel_at, bytes,
			      0, ++number);
	worker_submit(worker, &op);
	/* A message takes no other way than the request before it: the peer has that */
	fetch(worker, 1, byte_at, &rtt);
	began = rdmatensor_now_ns();
	rdmatensor_prep_cancel(&op, number);
	ret = rdmatensor_submit(worker->rt, &op, 1, 0, 0, NULL);
	if (ret && ret != -ENOENT)
		die("CANCEL: %s", strerror(-ret));
	worker_next(worker, RDMATENSOR_CQE_FETCH, number, 0, &cqe);
	if (cqe.result == -ECANCELED)
		sample(series, began);
	else if (cqe.result)
		die("a cancelled fetch ended with %d", cqe.result);
	else
		crossed++;
}

static void print(const char *name, struct series *series, bool last)
{
	size_t n = series->n;

	if (!n) {
		printf("\"%s\": null%s", name, last ? "" : ", ");
		return;
	}
	qsort(series->ns, n, sizeof(*series->ns), compare_u64);
	printf("\"%s\": {\"n\": %zu, \"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %.1f}%s",
	       name, n, percentile(series->ns, n, 500) / 1e3,
	       percentile(series->ns, n, 990) / 1e3, percentile(series->ns, n, 999) / 1e3,
	       percentile(series->ns, n, 1000) / 1e3, last ? "" : ", ");
	series->n = 0;
}

static void measure(struct worker *worker, bool beside, uint64_t part_ns)
{
	char name[48];
	uint64_t end;

	end = rdmatensor_now_ns() + part_ns;
	while (lat.n < 1000 && rdmatensor_now_ns() < end)
		fetch(worker, SMALL_BYTES, small_at, &lat);
	rtt.n = 0;
	end = rdmatensor_now_ns() + part_ns;
	while (cancel.n < SAMPLES && rdmatensor_now_ns() < end)
		cancel_one(worker, "nobody's", SMALL_BYTES, &cancel);
	if (beside) {
		end = rdmatensor_now_ns() + part_ns;
		while (queued.n < SAMPLES && rdmatensor_now_ns() < end)
			cancel_one(worker, perf_name(BULK_BYTES, name), BULK_BYTES, &queued);
	}
}

int figures_run(const char *peer, double seconds)
{
	uint64_t part_ns = (uint64_t)(seconds * 1e9);
	struct worker worker;
	struct bulk bulk;
	int i;

	worker_open(&worker, "figures", (BULK_DEPTH + 2) * BULK_BYTES, NULL);
	worker_connect(&worker, peer);
	small_at = worker_alloc(&worker, SMALL_BYTES);
	byte_at = worker_alloc(&worker, 1);
	cancel_at = worker_alloc(&worker, BULK_BYTES);
	bulk_init(&bulk, &worker, BULK_BYTES, BULK_DEPTH);
	for (i = 0; i < 10; i++) {
		fetch(&worker, SMALL_BYTES, small_at, &lat);
		fetch(&worker, 1, byte_at, &rtt);
		cancel_one(&worker, "nobody's", SMALL_BYTES, &cancel);
	}
	lat.n = cancel.n = 0;

	measure(&worker, false, part_ns);
	printf("{\"alone\": {");
	print("lat", &lat, false);
	print("rtt", &rtt, false);
	print("cancel", &cancel, true);
	printf("}, \"beside\": {");
	bulk_begin(&bulk, true);
	measure(&worker, true, part_ns);
	print("lat", &lat, false);
	print("rtt", &rtt, false);
	print("cancel", &cancel, false);
	print("queued", &queued, true);
	printf("}, \"crossed\": %u, \"bulk_fetches\": %u}\n", crossed, bulk.ended);
	if (!bulk_end(&bulk, 0))
		die("the bulk is not whole");
	worker_close(&worker);
	return 0;
}
