/* SPDX-License-Identifier: GPL-2.0 */
/* Calls at random: what calls.c and calls_tables.c share */
#ifndef RDMATENSOR_TEST_CALLS_H
#define RDMATENSOR_TEST_CALLS_H

#include <rdmatensor/rdmatensor.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PAGE 4096
#define NR_CONTEXTS 4
#define NR_THREADS 3
#define NR_IDS 8
#define NR_REGIONS 32
#define NR_NAMES 4
#define OPS_MAX 12
#define ERRNO_MAX 134
/* What all pools together may pin */
#define PINNED_MAX (192ul << 20)
/* A call that takes longer than any bound of the module's does not end */
#define STUCK_S 60

enum kind {
	OPEN, QUERY, START, CONFIGURE, STATS, POOL_CREATE, POOL_REGISTER, POOL_IMPORT,
	POOL_DESTROY, POOL_ALLOC, CONNECT,
	DISCONNECT, CHANNEL_QUERY, STEP_ABORT, TABLE_EXPORT, TABLE_OPEN, TABLE_CLOSE,
	STATUS_TEXT, SUBMIT, UNKNOWN, MAP, POLL, REAP, SCRIBBLE, FORK,
	NR_KINDS
};

#define NR_OPCODES (RDMATENSOR_OP_REVEAL + 1)

struct region {
	uint32_t pool;
	uint64_t offset, bytes;
};

/* Where tensors of a name are fetched to with KEEP, again and again, and by which channel */
struct kept {
	struct region region;
	uint32_t channel;
};

/**
 * struct context - one context, and what is thought to be alive in it
 *
 * Hints are read and written by all threads without a lock: a wrong one is as
 * good as a right one. The lock is for the mappings, which are unmapped by who
 * holds it for writing.
 */
struct context {
	pthread_rwlock_t lock;
	int fd;
	uint16_t port;
	struct rdmatensor_ring *ring;
	size_t ring_bytes;
	struct {
		void *at;
		size_t bytes;
	} pools[NR_IDS];
	uint32_t pool_ids[NR_IDS];
	uint64_t pool_bytes[NR_IDS];
	uint32_t channels[NR_IDS];
	/* user_data of some that were taken and may not have ended */
	uint64_t fetches[NR_IDS];
	struct region regions[NR_REGIONS];
	struct kept kept[NR_NAMES];
	/* Of TABLE_EXPORT and TABLE_OPEN */
	uint32_t exports[NR_IDS], tables[NR_IDS];
	/* Of a fetch that failed with a long text */
	uint32_t text_id;
	/* Some that were not returned yet */
	uint32_t shares[NR_IDS];
};

extern struct context contexts[NR_CONTEXTS];

struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t done;
	enum kind now;
	uint64_t ok[NR_KINDS], failed[NR_KINDS], errors[ERRNO_MAX + 1];
	uint64_t op_ok[NR_OPCODES], op_failed[NR_OPCODES];
	/* A page that can be written, one that cannot, one that is not there */
	char *pages;
};

static inline uint64_t rnd(struct worker *w)
{
	uint64_t z = (w->random += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline uint64_t below(struct worker *w, uint64_t n)
{
	return n ? rnd(w) % n : 0;
}

static inline bool one_in(struct worker *w, unsigned int n)
{
	return !below(w, n);
}

/* A look at some: most contexts have few */
static inline uint32_t live(struct worker *w, const uint32_t *ids)
{
	unsigned int i = below(w, NR_IDS), n = NR_IDS;

	while (!ids[i] && --n)
		i = (i + 1) % NR_IDS;
	return ids[i];
}

unsigned int region_of(struct worker *w, struct context *c);
uint32_t channel_of(struct worker *w, struct context *c);
/* Something that a field may be, and mostly should not */
uint64_t value(struct worker *w, struct context *c);
/* Some words of @bytes, from @from on, become something else */
void mutate(struct worker *w, struct context *c, void *at, size_t from, size_t bytes);
/*
 * Hands @arg over as it is, or so that it ends where memory does, where it cannot be
 * written, with another length, or not at all. Return: 0 or a negative errno
 */
int make(struct worker *w, struct context *c, unsigned long cmd, void *arg, uint32_t size);

#define ARG(_struct) \
	struct rdmatensor_##_struct arg = { .size = sizeof(arg) }

/* Every fourth one is not as it should be */
#define MUTATE() \
	do { \
		if (one_in(w, 4)) \
			mutate(w, c, &arg, 4, sizeof(arg)); \
	} while (0)

#define MAKE(_CALL) make(w, c, RDMATENSOR_##_CALL, &arg, sizeof(arg))

extern const char words[];

/* calls_tables.c */
int do_table_export(struct worker *w, struct context *c);
int do_table_open(struct worker *w, struct context *c);
int do_table_close(struct worker *w, struct context *c);
/* Fills in all but user_data */
void make_gather(struct worker *w, struct context *c, struct rdmatensor_op *op);

#endif
