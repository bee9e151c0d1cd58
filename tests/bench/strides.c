// SPDX-License-Identifier: GPL-2.0
/*
 * strides IP ROUNDS: 4 MiB in runs of 64 bytes to 64 KiB, each followed by a gap as long: what lies so
 * at the publisher (view), and what is to lie so at the receiver (place). Ours: the device's work, by
 * the strides that are named. Peer: the whole content by one fetch, and the processor's copy before or
 * behind it. In turn, from START to the last byte in its place. A line for each: NAME ours|peer MIB_S.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#define BYTES (4u << 20)
#define TIMES 4

static const unsigned int runs[] = { 64, 512, 4096, 65536 };

/**
 * struct side - a context with a pool
 * @rt: started
 * @pool: of 4 MiB, and twice as many for what has gaps
 * @whole: where the content lies together
 * @gaps: where it lies in runs
 */
struct side {
	struct rdmatensor *rt;
	struct rdmatensor_pool pool;
	uint64_t whole;
	uint64_t gaps;
};

static struct side from, to;
static uint32_t channel;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "strides: %s: %s\n", what, strerror(-err));
	exit(1);
}

static unsigned char *at(const struct side *side, uint64_t offset)
{
	return (unsigned char *)side->pool.base + offset;
}

static void side_open(struct side *side, const char *worker, const char *ip)
{
	struct rdmatensor_start start;
	char addr[64], cause[256];

	rdmatensor_start_init(&start, worker);
	snprintf(addr, sizeof(addr), "%s:0", ip);
	check(rdmatensor_start_listen(&start, addr, cause, sizeof(cause)), "listen");
	check(rdmatensor_open(NULL, &side->rt), "open");
	check(rdmatensor_start(side->rt, &start), start.cause);
	check(rdmatensor_pool_create(side->rt, 3 * (uint64_t)BYTES, &side->pool), "pool");
	check(rdmatensor_pool_alloc(side->rt, &side->pool, BYTES, &side->whole), "alloc");
	check(rdmatensor_pool_alloc(side->rt, &side->pool, 2 * (uint64_t)BYTES, &side->gaps), "alloc");
}

/* Between what lies together and what lies in runs of @run bytes */
static void spread(unsigned char *gaps, const unsigned char *whole, unsigned int run)
{
	uint64_t i;

	for (i = 0; i < BYTES / run; i++)
		memcpy(gaps + 2 * i * run, whole + i * run, run);
}

static void collect(unsigned char *whole, const unsigned char *gaps, unsigned int run)
{
	uint64_t i;

	for (i = 0; i < BYTES / run; i++)
		memcpy(whole + i * run, gaps + 2 * i * run, run);
}

/*
 * One tensor, published as a view (@view) or whole, and fetched to a place with gaps (@place) or whole,
 * of runs of @run bytes
 */
static void move(unsigned int run, int view, int place, int64_t step)
{
	const struct rdmatensor_stride strides[2] = { { 2ull * run, BYTES / run }, { 1, run } };
	const uint64_t dims[2] = { BYTES / run, run };
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	rdmatensor_prep_publish(&op, "t", step, from.pool.id, view ? from.gaps : from.whole,
				BYTES, RDMATENSOR_DT_UINT8, 2, dims, 1, 0);
	if (view)
		rdmatensor_prep_strides(&op, strides, 2);
	check(rdmatensor_submit(from.rt, &op, 1, 0, 0, NULL), "publish");
	rdmatensor_prep_fetch(&op, channel, "t", step, to.pool.id, place ? to.gaps : to.whole,
			      place ? 2 * BYTES - run : BYTES, 0, 0);
	if (place)
		rdmatensor_prep_strides(&op, strides, 2);
	check(rdmatensor_run(to.rt, &op, &cqe), "fetch");
	while (!rdmatensor_reap(from.rt, &cqe, 1))
		check(rdmatensor_wait(from.rt, 1, 0), "wait");
}

static void measure(unsigned int run, int view, int ours)
{
	static int64_t step;
	uint64_t began = 0;
	int i;

	/* The first one tells its meta-data, and meets cold pages */
	for (i = 0; i <= TIMES; i++) {
		if (i == 1)
			began = rdmatensor_now_ns();
		if (ours) {
			move(run, view, !view, step++);
			continue;
		}
		if (view)
			collect(at(&from, from.whole), at(&from, from.gaps), run);
		move(run, 0, 0, step++);
		if (!view)
			spread(at(&to, to.gaps), at(&to, to.whole), run);
	}
	printf("strides_%s_%u %s %.3f\n", view ? "view" : "place", run, ours ? "ours" : "peer",
	       (double)TIMES * BYTES / (1 << 20) / ((double)(rdmatensor_now_ns() - began) / 1e9));
}

int main(int argc, char **argv)
{
	unsigned int i, round, rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 5;
	struct rdmatensor_query query;
	char addr[64], cause[256];

	if (argc < 2)
		return 2;
	side_open(&from, "from", argv[1]);
	side_open(&to, "to", argv[1]);
	check(rdmatensor_query(from.rt, &query), "query");
	snprintf(addr, sizeof(addr), "%s:%u", argv[1], query.listen_port);
	check(rdmatensor_connect(to.rt, addr, NULL, 60000, &channel, cause, sizeof(cause)), cause);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
			measure(runs[i], 1, 1);
			measure(runs[i], 1, 0);
			measure(runs[i], 0, 1);
			measure(runs[i], 0, 0);
		}
	}
	rdmatensor_close(to.rt);
	rdmatensor_close(from.rt);
	return 0;
}
