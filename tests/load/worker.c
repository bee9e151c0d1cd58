// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "worker.h"

void die(const char *fmt, ...)
{
	va_list args;

	printf("not ok 999 - ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	exit(2);
}

void worker_open(struct worker *worker, const char *name, uint64_t pool_bytes,
		 const char *listen)
{
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	char cause[256];
	int ret;

	memset(worker, 0, sizeof(*worker));
	ret = rdmatensor_open(NULL, &worker->rt);
	if (ret)
		die("open: %s", strerror(-ret));
	rdmatensor_start_init(&start, name);
	if (rdmatensor_start_from_env(&start, cause, sizeof(cause)))
		die("%s", cause);
	if (listen && rdmatensor_start_listen(&start, listen, cause, sizeof(cause)))
		die("%s", cause);
	if (rdmatensor_start(worker->rt, &start))
		die("%s", start.cause);
	if (rdmatensor_query(worker->rt, &query))
		die("QUERY");
	worker->port = query.listen_port;
	ret = rdmatensor_pool_create(worker->rt, pool_bytes, &worker->pool);
	if (ret)
		die("pool of %" PRIu64 " bytes: %s", pool_bytes, strerror(-ret));
}

void worker_close(struct worker *worker)
{
	rdmatensor_close(worker->rt);
	free(worker->kept);
	memset(worker, 0, sizeof(*worker));
}

void worker_connect(struct worker *worker, const char *peer)
{
	char cause[256];

	if (rdmatensor_connect(worker->rt, peer, NULL, 0, &worker->channel, cause,
			       sizeof(cause)))
		die("%s", cause);
}

uint64_t worker_alloc(struct worker *worker, uint64_t bytes)
{
	uint64_t offset;
	int ret = rdmatensor_pool_alloc(worker->rt, &worker->pool, bytes, &offset);

	if (ret)
		die("region of %" PRIu64 " bytes: %s", bytes, strerror(-ret));
	return offset;
}

void worker_free(struct worker *worker, uint64_t offset)
{
	int ret = rdmatensor_pool_free(worker->rt, &worker->pool, offset);

	if (ret)
		die("region at %" PRIu64 ": %s", offset, strerror(-ret));
}

void *worker_at(const struct worker *worker, uint64_t offset)
{
	return (char *)worker->pool.base + offset;
}

void worker_add(struct worker *worker, struct load *load)
{
	static uint32_t data = 0x1000;
	int i;

	load->data = ++data;
	for (i = 0; i < WORKER_LOADS_MAX && worker->loads[i]; i++)
		;
	if (i == WORKER_LOADS_MAX)
		die("more than %d loads", i);
	worker->loads[i] = load;
}

void worker_remove(struct worker *worker, struct load *load)
{
	int i;

	for (i = 0; i < WORKER_LOADS_MAX; i++)
		if (worker->loads[i] == load)
			worker->loads[i] = NULL;
}

uint64_t worker_number(void)
{
	static uint32_t number;

	return ++number;
}

static void say_if_down(const struct rdmatensor_cqe *cqe)
{
	if (cqe->type == RDMATENSOR_CQE_CHANNEL_DOWN)
		printf("# channel %u down: %d: %.*s\n", cqe->channel, cqe->result,
		       (int)strnlen(cqe->text, sizeof(cqe->text)), cqe->text);
}

/* The kernel's log has no line of it where there were many before */
static void say_what_ended(struct worker *worker)
{
	struct rdmatensor_cqe cqe;
	unsigned int i;

	for (i = 0; i < worker->nr_kept; i++)
		say_if_down(&worker->kept[i]);
	while (rdmatensor_reap(worker->rt, &cqe, 1))
		say_if_down(&cqe);
}

void worker_submit(struct worker *worker, const struct rdmatensor_op *op)
{
	int ret = rdmatensor_submit(worker->rt, op, 1, 0, 0, NULL);

	if (ret == -ENOTCONN)
		say_what_ended(worker);
	if (ret)
		die("SUBMIT of operation %u: %s", op->opcode, strerror(-ret));
}

static void worker_keep(struct worker *worker, const struct rdmatensor_cqe *cqe)
{
	if (worker->nr_kept == worker->room_kept) {
		worker->room_kept = 2 * worker->room_kept + 64;
		worker->kept = realloc(worker->kept,
				       worker->room_kept * sizeof(*worker->kept));
		if (!worker->kept)
			die("out of memory");
	}
	worker->kept[worker->nr_kept++] = *cqe;
}

void worker_reap(struct worker *worker)
{
	/* Those that come meanwhile have another turn: a load may make them without end */
	unsigned int ready = rdmatensor_ready(worker->rt);
	struct rdmatensor_cqe cqe;
	int i;

	while (ready-- && rdmatensor_reap(worker->rt, &cqe, 1)) {
		for (i = 0; i < WORKER_LOADS_MAX; i++)
			if (worker->loads[i] && worker->loads[i]->data == cqe.user_data >> 32)
				break;
		if (i < WORKER_LOADS_MAX)
			worker->loads[i]->entry(worker->loads[i], &cqe);
		else
			worker_keep(worker, &cqe);
	}
}

static bool worker_take(struct worker *worker, int type, uint64_t user_data,
			struct rdmatensor_cqe *cqe)
{
	unsigned int i;

	for (i = 0; i < worker->nr_kept; i++) {
		if (worker->kept[i].type != type || worker->kept[i].user_data != user_data)
			continue;
		if (cqe)
			*cqe = worker->kept[i];
		worker->nr_kept--;
		memmove(&worker->kept[i], &worker->kept[i + 1],
			(worker->nr_kept - i) * sizeof(*worker->kept));
		return true;
	}
	return false;
}

bool worker_next(struct worker *worker, int type, uint64_t user_data,
		 uint64_t deadline_ns, struct rdmatensor_cqe *cqe)
{
	for (;;) {
		worker_reap(worker);
		if (worker_take(worker, type, user_data, cqe))
			return true;
		if (deadline_ns && rdmatensor_now_ns() >= deadline_ns)
			return false;
		rdmatensor_wait(worker->rt, 1, deadline_ns);
	}
}

bool worker_until_zero(struct worker *worker, const unsigned int *flag, uint64_t deadline_ns)
{
	for (;;) {
		worker_reap(worker);
		if (!*flag)
			return true;
		if (deadline_ns && rdmatensor_now_ns() >= deadline_ns)
			return false;
		rdmatensor_wait(worker->rt, 1, deadline_ns);
	}
}

int worker_fetch(struct worker *worker, const char *name, uint64_t offset, uint64_t bytes,
		 uint64_t deadline_ns, struct rdmatensor_cqe *cqe)
{
	uint64_t number = worker_number();
	struct rdmatensor_cqe own;
	struct rdmatensor_op op;

	if (!cqe)
		cqe = &own;
	rdmatensor_prep_fetch(&op, worker->channel, name, 0, worker->pool.id, offset, bytes,
			      deadline_ns, number);
	worker_submit(worker, &op);
	worker_next(worker, RDMATENSOR_CQE_FETCH, number, 0, cqe);
	return cqe->result;
}

void worker_publish(struct worker *worker, uint64_t offset, uint64_t bytes)
{
	struct rdmatensor_op op;
	uint64_t dim = bytes;
	char name[48];

	perf_fill(worker_at(worker, offset), bytes);
	rdmatensor_prep_publish(&op, perf_name(bytes, name), 0, worker->pool.id, offset, bytes,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	worker_submit(worker, &op);
}

const char *perf_name(uint64_t bytes, char name[48])
{
	snprintf(name, 48, "rdmatensor.perf.%" PRIu64, bytes);
	return name;
}

void perf_fill(void *at, uint64_t bytes)
{
	uint64_t i, *words = at;

	for (i = 0; i < bytes / 8; i++)
		words[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

bool perf_is(const void *at, uint64_t bytes)
{
	uint64_t i, word;

	for (i = 0; i < bytes / 8; i++)
		if (((const uint64_t *)at)[i] != (i + 1) * UINT64_C(0x9e3779b97f4a7c15))
			return false;
	word = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return !memcmp((const uint64_t *)at + i, &word, bytes % 8);
}

int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t percentile(const uint64_t *sorted, size_t n, unsigned int per_mille)
{
	size_t i = n * per_mille / 1000;

	return sorted[i < n ? i : n - 1];
}
