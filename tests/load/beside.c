// SPDX-License-Identifier: GPL-2.0
/* What is short, beside long transfers on the same channel */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "beside.h"
#include "bulk.h"

#define MS UINT64_C(1000000)
#define LONG_BYTES (UINT64_C(16) << 20)
/* At the speed of two emulated nodes on a busy machine */
#define LONG_END_MS 120000
/* Most of what a bulk of 128 MB has room for: what the wire does varies over a second */
#define SAMPLES 201
/* On two lanes */
#define CUT_BYTES (UINT64_C(8) << 20)
#define CUT_NR 15
/* Of what waits beside them */
#define WAIT_MS 1000

static int number, failures;

static void result(bool ok, const char *name)
{
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++number, name);
	failures += !ok;
}

/* Who waits for a peer, or an export, that never comes: not shorter than asked, nor a second longer */
static bool waits_its_time(const char *what, int ret, int want, uint64_t began, const char *cause)
{
	uint64_t took = rdmatensor_now_ns() - began;

	printf("# %s beside bulk: \"%s\" after %" PRIu64 " ms of %u: %s\n", what, strerror(-ret),
	       took / MS, WAIT_MS, cause);
	/* But for a tick, by which the kernel counts */
	return ret == want && took + 10 * MS >= WAIT_MS * MS && took < (WAIT_MS + 1000) * MS;
}

static void waits_beside_bulk(struct worker *worker, const char *peer)
{
	struct rdmatensor_table_open open = { .timeout_ms = WAIT_MS };
	struct rdmatensor_connect connect = { .timeout_ms = WAIT_MS };
	uint64_t began = rdmatensor_now_ns();
	char nobody[64];
	int ret;

	ret = rdmatensor_table_open(worker->rt, "nobody's", &worker->channel, 1, &open);
	result(waits_its_time("TABLE_OPEN", ret, -ENOENT, began, open.cause),
	       "a TABLE_OPEN that waits beside bulk ends when its time is over");
	/* Nobody listens at the port of discard */
	snprintf(nobody, sizeof(nobody), "%.*s:9", (int)strcspn(peer, ":"), peer);
	if (rdmatensor_parse_addr(nobody, 0, 0, connect.addr, NULL, 0))
		die("%s is no address", nobody);
	began = rdmatensor_now_ns();
	ret = rdmatensor_connect_raw(worker->rt, &connect);
	result(waits_its_time("CONNECT", ret, -ECONNREFUSED, began, connect.cause),
	       "a CONNECT that waits beside bulk ends when its time is over");
}

/* -ETIMEDOUT within a second, and nothing else is the worse for it */
static void deadline_beside_bulk(struct worker *worker, const char *peer)
{
	struct rdmatensor_cqe cqe, down;
	uint64_t at = worker_alloc(worker, SMALL_BYTES), began, took;
	struct bulk bulk;
	bool whole, is_down;
	int ret;

	bulk_init(&bulk, worker, LONG_BYTES, 12);
	bulk_begin(&bulk, true);
	began = rdmatensor_now_ns();
	ret = worker_fetch(worker, "nobody's", at, SMALL_BYTES, began + 100 * MS, &cqe);
	took = rdmatensor_now_ns() - began;
	printf("# a deadline of 100 ms beside 12 fetches of %" PRIu64 " MB: \"%s\" after %" PRIu64 " ms, %u fetches in flight\n",
	       LONG_BYTES >> 20, strerror(-ret), took / MS, bulk.flying);
	result(ret == -ETIMEDOUT && took < 1000 * MS,
	       "a fetch beside bulk ends by its deadline within a second");
	waits_beside_bulk(worker, peer);
	worker_reap(worker);
	whole = bulk_end(&bulk, rdmatensor_deadline_ms(LONG_END_MS));
	result(whole, "the bulk that a deadline passed beside is whole");
	is_down = worker_next(worker, RDMATENSOR_CQE_CHANNEL_DOWN, 0,
			      rdmatensor_now_ns(), &down);
	result(!is_down, "the channel that a deadline passed on is up");
	if (is_down || !whole) {
		/* The rest has a channel of its own */
		char text[256];

		if (is_down)
			printf("# CHANNEL_DOWN: %s\n",
			       rdmatensor_cqe_text(&down, text, sizeof(text)));
		return;
	}
	bulk_free(&bulk);
	worker_free(worker, at);
}

/*
 * What has begun on two lanes is written to its end. By turns with the others it would end when they
 * do, and nothing come from the peer until then: of longer ones for longer than its answer to the
 * CANCEL is waited for
 */
static void deadline_of_the_cut(const char *peer)
{
	struct rdmatensor_cqe cqe = { 0 }, down;
	uint64_t number = worker_number(), at, began, alone, took, all;
	struct worker worker;
	struct rdmatensor_op op;
	struct bulk bulk;
	bool came, is_down;
	char name[48];

	setenv("RDMATENSOR_LANES", "2", 1);
	setenv("RDMATENSOR_STRIPE_BYTES", "65536", 1);
	worker_open(&worker, "cut", (CUT_NR + 2) * CUT_BYTES, NULL);
	unsetenv("RDMATENSOR_LANES");
	unsetenv("RDMATENSOR_STRIPE_BYTES");
	worker_connect(&worker, peer);
	at = worker_alloc(&worker, CUT_BYTES);
	bulk_init(&bulk, &worker, CUT_BYTES, CUT_NR);
	began = rdmatensor_now_ns();
	if (worker_fetch(&worker, perf_name(CUT_BYTES, name), at, CUT_BYTES, 0, NULL))
		die("a fetch on two lanes");
	alone = rdmatensor_now_ns() - began;

	began = rdmatensor_now_ns();
	rdmatensor_prep_fetch(&op, worker.channel, name, 0, worker.pool.id, at, CUT_BYTES,
			      began + alone, number);
	worker_submit(&worker, &op);
	bulk_begin(&bulk, false);
	came = worker_next(&worker, RDMATENSOR_CQE_FETCH, number,
			   rdmatensor_deadline_ms(LONG_END_MS), &cqe);
	took = rdmatensor_now_ns() - began;
	worker_until_zero(&worker, &bulk.flying, rdmatensor_deadline_ms(LONG_END_MS));
	all = rdmatensor_now_ns() - began;
	printf("# a deadline of %" PRIu64 " ms, which it takes alone, of a fetch on two lanes beside %d: \"%s\" after %" PRIu64 " ms, all after %" PRIu64 "\n",
	       alone / MS, CUT_NR, strerror(-cqe.result), took / MS, all / MS);
	result(came && (!cqe.result || cqe.result == -ETIMEDOUT) && 2 * took < all,
	       "a fetch on two lanes whose deadline has passed ends before the others");
	result(bulk_end(&bulk, rdmatensor_deadline_ms(LONG_END_MS)), "the others are whole");
	is_down = worker_next(&worker, RDMATENSOR_CQE_CHANNEL_DOWN, 0, rdmatensor_now_ns(), &down);
	result(!is_down, "the channel whose fetch on two lanes had a deadline is up");
	worker_close(&worker);
}

static uint64_t median(uint64_t *samples, unsigned int n)
{
	qsort(samples, n, sizeof(*samples), compare_u64);
	return percentile(samples, n, 500);
}

static uint64_t small(struct worker *worker, uint64_t at)
{
	uint64_t began = rdmatensor_now_ns();
	char name[48];
	int ret;

	ret = worker_fetch(worker, perf_name(SMALL_BYTES, name), at, SMALL_BYTES, 0, NULL);
	if (ret)
		die("fetch of \"%s\": %s", name, strerror(-ret));
	return rdmatensor_now_ns() - began;
}

/* How many times as long they take. @whole: becomes false if that has spoilt the bulk */
static double behind_bulk(struct worker *worker, struct bulk *bulk, uint64_t at, bool *whole)
{
	uint64_t alone[SAMPLES] = { 0 }, behind[SAMPLES] = { 0 };
	uint64_t of_alone, of_behind;
	unsigned int i, n;

	for (i = 0; i < SAMPLES; i++)
		alone[i] = small(worker, at);
	bulk_begin(bulk, false);
	for (n = 0; n < SAMPLES && bulk->flying; n++)
		behind[n] = small(worker, at);
	*whole &= bulk_end(bulk, rdmatensor_deadline_ms(LONG_END_MS));
	of_alone = median(alone, SAMPLES);
	of_behind = median(behind, n);
	printf("# 4 KB alone: %.2f ms; behind 8 fetches of %" PRIu64 " MB: %.2f ms, %.1f times that, worst %.2f ms, of %u\n",
	       of_alone / 1e6, LONG_BYTES >> 20, of_behind / 1e6,
	       (double)of_behind / of_alone, behind[n - 1] / 1e6, n);
	return (double)of_behind / of_alone;
}

/* What else the machine does between the one and the other counts as bulk: the best of three */
static void small_behind_bulk(struct worker *worker)
{
	uint64_t at = worker_alloc(worker, SMALL_BYTES);
	double ratio = 11;
	bool whole = true;
	struct bulk bulk;
	unsigned int i;

	bulk_init(&bulk, worker, LONG_BYTES, 8);
	for (i = 0; i < 4; i++)
		small(worker, at);
	for (i = 0; i < 3 && ratio > 10; i++)
		ratio = behind_bulk(worker, &bulk, at, &whole);
	result(ratio <= 10, "4 KB behind bulk take at most 10 times what they take alone");
	result(whole, "the bulk that small fetches have passed is whole");
}

int beside_run(const char *peer)
{
	struct worker worker;

	worker_open(&worker, "deadline", 13 * LONG_BYTES, NULL);
	worker_connect(&worker, peer);
	deadline_beside_bulk(&worker, peer);
	worker_close(&worker);
	deadline_of_the_cut(peer);
	worker_open(&worker, "small", 9 * LONG_BYTES, NULL);
	worker_connect(&worker, peer);
	small_behind_bulk(&worker);
	worker_close(&worker);
	printf("1..%d\n", number);
	return failures;
}
