/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sum of the tensors that come first, step after step: training that does not wait for its slowest
 * workers.
 *
 *	quorum WANTED NAME STEP STEPS MS PEER...
 *
 * In each of STEPS steps, from STEP on, it fetches NAME, of type float, from all PEERs at the same
 * time, adds up the WANTED that arrive first, cancels the other fetches, and begins the next step. A
 * fetch is given up after MS milliseconds, which a peer that does not answer can prolong by cancel_ms.
 * Prints the first elements of each sum, and which peers are not in it. Exits with 1 if a step has
 * fewer than WANTED. All peers must be up when it begins; one that goes is left out from then on.
 *
 * All of it is one thread. One system call submits the fetches of a step, poll() waits for their
 * entries, as it could for a program's other descriptors, and reaping an entry takes no system call.
 *
 * The user_data of a fetch is its step: so one CANCEL ends all that are left of a step, and an entry
 * that comes while a later step waits is told from that one's. The entry's channel tells the peer.
 */
#include <rdmatensor/rdmatensor.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest tensor to take: a peer that offers a longer one cannot use the pool up */
#define TENSOR_BYTES (UINT64_C(4) << 20)
/* What the tensors of a step take, and besides those of cancelled fetches, until their entries come */
#define POOL_BYTES (UINT64_C(16) << 20)
#define SHOWN 4

struct quorum {
	struct rdmatensor *rt;
	struct rdmatensor_pool pool;
	char **peers;
	uint32_t *channels;
	/* Of each peer: its tensor is in the step's sum */
	bool *added;
	unsigned int nr_peers, wanted;

	/* The step that waits: fetches in flight, and tensors in its sum of len elements */
	uint64_t step;
	unsigned int nr_pending, have;
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

static unsigned int peer_of(const struct quorum *quorum, uint32_t channel)
{
	unsigned int i;

	for (i = 0; i < quorum->nr_peers && quorum->channels[i] != channel; i++)
		;
	return i;
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
	if (!quorum->have) {
		free(quorum->sum);
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

/*
 * A fetch that has brought bytes has left a region, whether they are wanted or not. One that has
 * failed or was cancelled has left none
 */
static void give_back(struct quorum *quorum, const struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_op op;
	int err;

	if (cqe->result || !cqe->tensor_bytes)
		return;
	rdmatensor_prep_free(&op, cqe->pool_id, cqe->offset);
	err = rdmatensor_submit(quorum->rt, &op, 1, 0, 0, NULL);
	if (err)
		die("free what a fetch has allocated: %s", strerror(-err));
}

static void take(struct quorum *quorum, const struct rdmatensor_cqe *cqe)
{
	unsigned int peer = peer_of(quorum, cqe->channel);
	char text[RDMATENSOR_TEXT_MAX + 128];
	const char *why = text;

	/* A channel that went down: its fetches have entries of their own, before or after it */
	if (cqe->type != RDMATENSOR_CQE_FETCH)
		return;
	if (cqe->user_data == quorum->step) {
		quorum->nr_pending--;
		if (cqe->result)
			rdmatensor_cqe_text(cqe, text, sizeof(text));
		else
			why = add(quorum, cqe);
		if (why) {
			printf("step %llu: %s: %s\n", (unsigned long long)quorum->step, quorum->peers[peer], why);
		} else {
			quorum->added[peer] = true;
			quorum->have++;
		}
	}
	give_back(quorum, cqe);
}

/* Takes what is there, up to the last one that is wanted; waits if there is nothing */
static void reap(struct quorum *quorum)
{
	struct pollfd ready = { .fd = rdmatensor_fd(quorum->rt), .events = POLLIN };
	struct rdmatensor_cqe cqe;

	/* The end of a channel is an entry, too */
	while (!rdmatensor_ready(quorum->rt)) {
		if (poll(&ready, 1, -1) < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
		if (ready.revents & POLLERR && !(ready.revents & POLLIN))
			die("the RDMA device is gone");
	}
	while (quorum->have < quorum->wanted && rdmatensor_reap(quorum->rt, &cqe, 1))
		take(quorum, &cqe);
}

/*
 * A peer whose channel is down is left out. When the ring is full, entries make place, among which may
 * be the last one that is wanted
 */
static void submit(struct quorum *quorum, const struct rdmatensor_op *ops)
{
	unsigned int at = 0, done;
	int err;

	while (at < quorum->nr_peers && quorum->have < quorum->wanted) {
		err = rdmatensor_submit(quorum->rt, ops + at, quorum->nr_peers - at, 0, 0, &done);
		quorum->nr_pending += done;
		at += done;
		if (!err)
			break;
		if (err == -EAGAIN) {
			reap(quorum);
			continue;
		}
		printf("step %llu: %s: fetch: %s\n", (unsigned long long)quorum->step, quorum->peers[at], strerror(-err));
		at++;
	}
}

/* What is left of a step. Its memory is the kernel's until the entries have come: peers may write to it */
static void cancel(struct quorum *quorum)
{
	struct rdmatensor_op op;
	int err;

	rdmatensor_prep_cancel(&op, quorum->step);
	err = rdmatensor_submit(quorum->rt, &op, 1, 0, 0, NULL);
	/* -ENOENT: all have ended, and their entries are in the ring */
	if (err && err != -ENOENT)
		die("cancel: %s", strerror(-err));
}

/* Return: the step has what is wanted */
static bool run_step(struct quorum *quorum, struct rdmatensor_op *ops, const char *name, uint64_t step,
		     uint64_t ms)
{
	uint64_t deadline_ns = rdmatensor_deadline_ms((int64_t)ms), i;
	bool without = false;

	quorum->step = step;
	quorum->nr_pending = quorum->have = 0;
	quorum->len = 0;
	memset(quorum->added, 0, quorum->nr_peers * sizeof(*quorum->added));
	for (i = 0; i < quorum->nr_peers; i++)
		rdmatensor_prep_fetch_alloc(&ops[i], quorum->channels[i], name, (int64_t)step, quorum->pool.id,
					    TENSOR_BYTES, deadline_ns, step);
	submit(quorum, ops);
	while (quorum->have < quorum->wanted && quorum->nr_pending)
		reap(quorum);
	if (quorum->nr_pending)
		cancel(quorum);

	printf("step %llu: %u of %u:", (unsigned long long)step, quorum->have, quorum->nr_peers);
	for (i = 0; i < quorum->len && i < SHOWN; i++)
		printf(" %g", quorum->sum[i]);
	for (i = 0; i < quorum->nr_peers; i++) {
		if (quorum->added[i])
			continue;
		printf("%s %s", without ? "" : ", without", quorum->peers[i]);
		without = true;
	}
	putchar('\n');
	return quorum->have >= quorum->wanted;
}

static void start(struct quorum *quorum)
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
		if (rdmatensor_connect(quorum->rt, quorum->peers[i], NULL, 0, &quorum->channels[i],
				       cause, sizeof(cause)))
			die("%s", cause);
}

int main(int argc, char **argv)
{
	struct quorum quorum = { 0 };
	struct rdmatensor_op *ops;
	uint64_t step, steps, ms;
	int missed = 0;

	if (argc < 7)
		return fputs("usage: quorum WANTED NAME STEP STEPS MS PEER...\n", stderr), 2;
	quorum.peers = argv + 6;
	quorum.nr_peers = (unsigned int)argc - 6;
	quorum.wanted = (unsigned int)number(argv[1], "WANTED", quorum.nr_peers);
	step = number(argv[3], "STEP", INT32_MAX);
	steps = number(argv[4], "STEPS", INT32_MAX);
	ms = number(argv[5], "MS", UINT32_MAX);
	if (!quorum.wanted)
		die("WANTED is 0: give how many tensors to add up");
	quorum.added = calloc(quorum.nr_peers, sizeof(*quorum.added));
	quorum.channels = calloc(quorum.nr_peers, sizeof(*quorum.channels));
	ops = calloc(quorum.nr_peers, sizeof(*ops));
	if (!quorum.added || !quorum.channels || !ops)
		die("no memory for %u peers", quorum.nr_peers);

	/* Each line as it is printed, into a pipe, too */
	setvbuf(stdout, NULL, _IOLBF, 0);
	start(&quorum);
	for (; steps; steps--)
		missed |= !run_step(&quorum, ops, argv[2], step++, ms);

	/* Waits until no peer writes any more */
	rdmatensor_close(quorum.rt);
	free(quorum.sum);
	free(quorum.added);
	free(quorum.channels);
	free(ops);
	return missed || fflush(stdout) ? 1 : 0;
}
