/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One context whose entries are taken by one thread: those of the loads that run on it go
 * to them, the others wait for who asks for them. What must not fail ends the program.
 */
#ifndef LOAD_WORKER_H
#define LOAD_WORKER_H

#include <rdmatensor/rdmatensor.h>
#include <stdbool.h>

#define WORKER_LOADS_MAX 8

/* What a peer publishes, see `rdmatensor perf --server` */
#define BULK_MAX (UINT64_C(64) << 20)
#define SMALL_BYTES 4096

/**
 * struct load - what keeps a worker busy
 * @entry: one of its entries; submits what takes its place
 * @data: its entries have this user_data, in the bits from 32 up; set by worker_add()
 */
struct load {
	void (*entry)(struct load *load, const struct rdmatensor_cqe *cqe);
	uint32_t data;
};

/**
 * struct worker - a context
 * @rt: its handle
 * @pool: where it publishes from and fetches to
 * @channel: to its peer
 * @port: that it listens on
 * @loads: that run on it
 * @kept: entries that nobody has asked for
 * @nr_kept: their number
 * @room_kept: room for them
 */
struct worker {
	struct rdmatensor *rt;
	struct rdmatensor_pool pool;
	uint32_t channel;
	uint32_t port;
	struct load *loads[WORKER_LOADS_MAX];
	struct rdmatensor_cqe *kept;
	unsigned int nr_kept;
	unsigned int room_kept;
};

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* @listen: ADDRESS:PORT, NULL: it does not. Parameters are the environment's */
void worker_open(struct worker *worker, const char *name, uint64_t pool_bytes,
		 const char *listen);
void worker_close(struct worker *worker);
void worker_connect(struct worker *worker, const char *peer);
uint64_t worker_alloc(struct worker *worker, uint64_t bytes);
void worker_free(struct worker *worker, uint64_t offset);
void *worker_at(const struct worker *worker, uint64_t offset);

void worker_add(struct worker *worker, struct load *load);
void worker_remove(struct worker *worker, struct load *load);

/* The entries that are there, each to whom it belongs */
void worker_reap(struct worker *worker);
/* A number that no other operation of this program has */
uint64_t worker_number(void);
/* Must be taken */
void worker_submit(struct worker *worker, const struct rdmatensor_op *op);
/*
 * The entry of that type and user_data, which the loads run on until it has come, or
 * until the deadline. Return: it has come
 */
bool worker_next(struct worker *worker, int type, uint64_t user_data,
		 uint64_t deadline_ns, struct rdmatensor_cqe *cqe);
/* The loads run on until *flag is not 0 any more, or until the deadline. Return: it is 0 */
bool worker_until_zero(struct worker *worker, const unsigned int *flag,
		       uint64_t deadline_ns);

/* One fetch, and its end. Return: its result */
int worker_fetch(struct worker *worker, const char *name, uint64_t offset, uint64_t bytes,
		 uint64_t deadline_ns, struct rdmatensor_cqe *cqe);

/* The region at @offset, filled as a peer's, under the name of that length until withdrawn */
void worker_publish(struct worker *worker, uint64_t offset, uint64_t bytes);

/* "rdmatensor.perf.4096": what a peer has of that length, how that is filled, and whether it is what came */
const char *perf_name(uint64_t bytes, char name[48]);
void perf_fill(void *at, uint64_t bytes);
bool perf_is(const void *at, uint64_t bytes);

int compare_u64(const void *a, const void *b);
/* Of sorted samples, of @n of them; @per_mille 1000: the greatest */
uint64_t percentile(const uint64_t *sorted, size_t n, unsigned int per_mille);

#endif
