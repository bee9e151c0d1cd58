/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sum of the tensors that come first: a step of training that does not wait for its slowest
 * workers.
 *
 *	quorum WANTED NAME STEP MS PEER...
 *
 * Fetches NAME of STEP, of type float, from all PEERs at the same time and for MS milliseconds at
 * most, adds up the WANTED that arrive first, and cancels the other fetches. Prints a line for each
 * fetch as it ends, and the first elements of the sum. Exits with 1 if fewer than WANTED have come.
 *
 * All of it is one thread. One system call submits all fetches, poll() waits for their entries, as it
 * could for a program's other descriptors, and reaping an entry takes no system call.
 */
#include <rdmatensor/rdmatensor.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All tensors together. The kernel pins that many bytes */
#define POOL_BYTES (UINT64_C(64) << 20)
#define SHOWN 4

/**
 * struct quorum - one step
 * @rt: the context
 * @pool: where tensors arrive
 * @peers: their names
 * @pending: of each peer: its fetch is in flight
 * @nr_peers: number of peers
 * @nr_pending: fetches in flight
 * @wanted: how many to add up
 * @have: how many have been added up
 * @sum: of their elements
 * @len: number of elements
 */
struct quorum {
	struct rdmatensor *rt;
	struct rdmatensor_pool pool;
	char **peers;
	char *pending;
	unsigned int nr_peers, nr_pending;
	unsigned int wanted, have;
	double *sum;
	uint64_t len;
};

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list args;

	fputs("quorum: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* A decimal number of 0..@max */
static uint64_t number(const char *text, const char *what, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value > max)
		die("%s is \"%s\": give a number from 0 to %llu", what, text, (unsigned long long)max);
	return value;
}

/*
 * Ends the fetches that are in flight. Their memory is theirs until their entries have come: a peer
 * may be writing to it at this moment
 */
static void cancel_rest(struct quorum *quorum)
{
	struct rdmatensor_op op;
	unsigned int i;
	int err;

	for (i = 0; i < quorum->nr_peers; i++) {
		if (!quorum->pending[i])
			continue;
		rdmatensor_prep_cancel(&op, i);
		err = rdmatensor_submit(quorum->rt, &op, 1, 0, 0, NULL);
		/* -ENOENT: it has ended, and its entry is in the ring */
		if (err && err != -ENOENT)
			die("cancel the fetch from %s: %s", quorum->peers[i], strerror(-err));
	}
}

/* Return: NULL: it is added; else why not */
static const char *add(struct quorum *quorum, const struct rdmatensor_cqe *cqe)
{
	const float *at = (const void *)((const char *)quorum->pool.base + cqe->offset);
	uint64_t len = cqe->tensor_bytes / sizeof(*at), i;

	if (cqe->flags & RDMATENSOR_CQE_DEAD)
		return "the tensor is dead";
	if (cqe->data_type != RDMATENSOR_DT_FLOAT)
		return "the tensor is not of type float";
	if (!quorum->sum) {
		quorum->len = len;
		quorum->sum = calloc(len ? len : 1, sizeof(*quorum->sum));
		if (!quorum->sum)
			die("no memory for %llu elements", (unsigned long long)len);
	}
	if (len != quorum->len)
		return "the tensor has another length than the first one";
	for (i = 0; i < len; i++)
		quorum->sum[i] += at[i];
	return NULL;
}

static void take(struct quorum *quorum, const struct rdmatensor_cqe *cqe)
{
	const char *why = NULL;
	unsigned int i = (unsigned int)cqe->user_data;

	/* A channel that went down: its fetch has an entry of its own */
	if (cqe->type != RDMATENSOR_CQE_FETCH)
		return;
	quorum->pending[i] = 0;
	quorum->nr_pending--;
	if (!cqe->result)
		why = quorum->have < quorum->wanted ? add(quorum, cqe) : "it came too late";
	else if (!(cqe->flags & RDMATENSOR_CQE_TEXT))
		why = strerror(-cqe->result);
	if (cqe->flags & RDMATENSOR_CQE_TEXT)
		printf("%s: %s: %.*s\n", quorum->peers[i], strerror(-cqe->result), cqe->text_len, cqe->text);
	else
		printf("%s: %s\n", quorum->peers[i], why ? why : "added");
	if (!cqe->result && !why && ++quorum->have == quorum->wanted)
		cancel_rest(quorum);
}

static void reap(struct quorum *quorum)
{
	struct pollfd ready = { .fd = rdmatensor_fd(quorum->rt), .events = POLLIN };
	struct rdmatensor_cqe cqes[16];
	unsigned int nr, i;

	while (quorum->nr_pending) {
		nr = rdmatensor_reap(quorum->rt, cqes, 16);
		for (i = 0; i < nr; i++)
			take(quorum, &cqes[i]);
		/* Entries that a device's removal makes come as well: POLLERR is no reason to leave */
		if (!nr && poll(&ready, 1, -1) < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
	}
}

static void submit(struct quorum *quorum, const uint32_t *channels, const char *name, int64_t step,
		   uint64_t deadline_ns)
{
	struct rdmatensor_op *ops = calloc(quorum->nr_peers, sizeof(*ops));
	unsigned int i, done;
	int err;

	if (!ops)
		die("no memory for %u fetches", quorum->nr_peers);
	for (i = 0; i < quorum->nr_peers; i++)
		rdmatensor_prep_fetch_alloc(&ops[i], channels[i], name, step, quorum->pool.id, 0, deadline_ns, i);
	err = rdmatensor_submit(quorum->rt, ops, quorum->nr_peers, 0, 0, &done);
	if (err)
		die("fetch from %s: %s", quorum->peers[done], strerror(-err));
	memset(quorum->pending, 1, quorum->nr_peers);
	quorum->nr_pending = quorum->nr_peers;
	free(ops);
}

static void start(struct quorum *quorum, uint32_t *channels)
{
	struct rdmatensor_start start;
	char cause[256] = "";
	unsigned int i;
	int err;

	rdmatensor_start_init(&start, NULL);
	if (rdmatensor_start_from_env(&start, cause, sizeof(cause)) ||
	    rdmatensor_open_cause(NULL, &quorum->rt, cause, sizeof(cause)))
		die("%s", cause);
	if (rdmatensor_start(quorum->rt, &start))
		die("%s", start.cause);
	err = rdmatensor_pool_create(quorum->rt, POOL_BYTES, &quorum->pool);
	if (err)
		die("a pool of %llu bytes: %s", (unsigned long long)POOL_BYTES, strerror(-err));
	for (i = 0; i < quorum->nr_peers; i++)
		if (rdmatensor_connect(quorum->rt, quorum->peers[i], NULL, 0, &channels[i], cause, sizeof(cause)))
			die("%s", cause);
}

int main(int argc, char **argv)
{
	struct quorum quorum = { 0 };
	uint32_t *channels;
	uint64_t step, ms, i;

	if (argc < 6)
		return fputs("usage: quorum WANTED NAME STEP MS PEER...\n", stderr), 2;
	quorum.peers = argv + 5;
	quorum.nr_peers = (unsigned int)argc - 5;
	quorum.wanted = (unsigned int)number(argv[1], "WANTED", quorum.nr_peers);
	step = number(argv[3], "STEP", INT64_MAX);
	ms = number(argv[4], "MS", UINT32_MAX);
	if (!quorum.wanted)
		die("WANTED is 0: give how many tensors to add up");
	quorum.pending = calloc(quorum.nr_peers, sizeof(*quorum.pending));
	channels = calloc(quorum.nr_peers, sizeof(*channels));
	if (!quorum.pending || !channels)
		die("no memory for %u peers", quorum.nr_peers);

	start(&quorum, channels);
	submit(&quorum, channels, argv[2], (int64_t)step, rdmatensor_deadline_ms(ms));
	reap(&quorum);

	printf("%u of %u:", quorum.have, quorum.nr_peers);
	for (i = 0; i < quorum.len && i < SHOWN; i++)
		printf(" %g", quorum.sum[i]);
	puts(quorum.len > SHOWN ? " ..." : "");
	rdmatensor_close(quorum.rt);
	free(quorum.sum);
	free(quorum.pending);
	free(channels);
	return quorum.have < quorum.wanted || fflush(stdout) ? 1 : 0;
}
