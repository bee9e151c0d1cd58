/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many threads on a few shared handles: what the parts of this fuzzer share. main.c has
 * the threads and the verdict, handle.c the handles and what has to end on them, the
 * others a kind of call each.
 *
 * A handle's descriptor is closed under the hands of who is inside of calls on it: by
 * dup2() of /dev/null over it, so that no call ever meets a number that means another
 * context by now, and what is counted stays true.
 */
#ifndef RDMATENSOR_TEST_THREADS_H
#define RDMATENSOR_TEST_THREADS_H

#include <rdmatensor/rdmatensor.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
/* Handles that are started and work; and those that START is called on, all the time */
#define MAINS 3u
#define RAWS 2u
#define PEERS 2u
#define HANDLES (MAINS + RAWS)
#define THREADS_MAX 16
#define ERRNO_MAX 134

#define NR_POOLS 4
#define NR_REGIONS 32
#define NR_CHANNELS 8
#define NR_TABLES 4
#define NR_MAPS 4
#define NR_PENDING 16384

#define POOL_BYTES (2u << 20)
/* Registered in parts, with what was never mapped behind it */
#define ARENA_BYTES (4u << 20)
#define ROWS 256
#define ROW_BYTES 256
#define NAMES 4
#define STEPS 3

enum kind {
	QUERY, START_LATE, START_BAD, START_GOOD, CONFIGURE, STATS, POOL_CREATE, POOL_REGISTER,
	POOL_IMPORT, POOL_ALLOC,
	POOL_DESTROY, CONNECT, DISCONNECT, CHANNEL_QUERY, STEP_ABORT, TABLE_EXPORT, TABLE_OPEN,
	TABLE_CLOSE, STATUS_TEXT, DOMAIN, POOL_QUERY, LASTING_QUERY, DUMP, SUBMIT, WAIT, REAP, POLL, MAP, MADVISE, MUNMAP,
	ARENA, NETLINK, REOPEN, RETIRE,
	FORK, EXEC, PEER, UNPLUG,
	NR_KINDS
};

#define NR_OPCODES (RDMATENSOR_OP_REVEAL + 1)
#define NR_SHARES 16

/**
 * struct life - one context of a handle, from open to close
 * @fd: its descriptor; /dev/null's soon after it is @closed
 * @refs: threads that may use @fd's number
 * @closed: it is being closed, maybe under their hands: nothing is mapped any more
 * @raw: not started by who opened it
 * @common: its domain is, or was about to be, that of others: a WITHDRAW waits for their readers
 * @port: where it listens
 * @reaper: held by who reads the ring, or unmaps it
 * @ring: mapped, or NULL
 * @maps_lock: for @maps
 * @next: serial number of the next operation
 * @pending: of an operation that has an entry to come its key, by the low bits of its user_data
 *
 * What is below @maps are hints: read and written by all threads without a lock, as a
 * wrong one is as good as a right one. But each of @shares is there until it was returned,
 * or somebody has taken it out to do so.
 */
struct life {
	int fd;
	int refs;
	bool closed;
	bool raw;
	bool common;
	unsigned int slot;
	uint16_t port;
	pthread_mutex_t reaper;
	struct rdmatensor_ring *ring;
	size_t ring_bytes;
	uint32_t entries;
	pthread_mutex_t maps_lock;
	struct {
		char *at;
		size_t bytes;
	} maps[NR_MAPS];
	uint32_t next;
	uint64_t pending[NR_PENDING];

	struct {
		uint32_t id;
		uint64_t bytes, mmap_offset;
	} pools[NR_POOLS];
	struct {
		uint32_t pool;
		uint64_t offset, bytes;
	} regions[NR_REGIONS];
	uint32_t channels[NR_CHANNELS];
	uint32_t tables[NR_TABLES], exports[NR_TABLES];
	uint32_t text_id;
	uint32_t shares[NR_SHARES];
};

/**
 * struct worker - one thread
 * @now: what it does; @doing: which system call
 * @since: when it began that; 0: nothing
 * @began: when it began @now, which may be many calls
 * @pages: one that can be written, one that cannot, one that is not there
 */
struct worker {
	pthread_t thread;
	int tid;
	uint64_t random;
	int now;
	const char *doing;
	uint64_t since, began;
	bool gone;
	uint64_t errors[NR_KINDS][ERRNO_MAX + 1];
	uint64_t ops[NR_OPCODES][ERRNO_MAX + 1];
	char *pages;
};

/**
 * struct shared - what this process and its peers share
 * @ports: where everybody listens; 0: nobody
 * @fetched, @gathered, @bytes: entries that brought something
 * @peer_bytes: of @bytes, what peers were brought
 * @ended: entries of fetches and gathers that brought nothing
 * @taken: fetches and gathers
 * @settled: lives that ended with nothing left to come
 * @failures: what was wrong
 */
struct shared {
	uint16_t ports[MAINS + PEERS];
	uint64_t fetched, gathered, bytes, peer_bytes, ended, taken, settled;
	uint64_t breaches;
	int failures;
};

extern struct shared *shared;
extern int shared_fd, null_fd;
extern struct in_addr own_ip;
/* In a peer: its number, from 1 */
extern unsigned int peer_number;
/* A call's; and how much longer everything takes here than where 60 s are enough */
extern unsigned int patience_s, slowness;
extern bool stop;

void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For the set-up of a channel, in ms */
#define SETUP_MS (3000 * slowness)

static inline uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline uint64_t rnd(struct worker *w)
{
	return mix(w->random += 0x9e3779b97f4a7c15);
}

static inline uint64_t below(struct worker *w, uint64_t n)
{
	return n ? rnd(w) % n : 0;
}

static inline bool one_in(struct worker *w, unsigned int n)
{
	return !below(w, n);
}

static inline void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* What a thread is inside of, for who watches it */
void enter(struct worker *w, const char *doing);
void leave(struct worker *w);
/* @ret: 0 or what was asked for, or a negative errno. Return: it */
int count(struct worker *w, enum kind kind, int ret);

/* An ioctl as it is: its errors are negative numbers */
int call(struct worker *w, int fd, unsigned long cmd, void *arg, const char *name);
/*
 * Hands @arg over as it is, or, now and then, so that it ends where memory does, where it
 * cannot be written, with another length, or with words of it changed. @untold: set if what
 * came of it may not be in @arg
 */
int call_somehow(struct worker *w, struct life *life, unsigned long cmd, void *arg, uint32_t size,
		 const char *name, bool *untold);
void mutate(struct worker *w, struct life *life, void *at, size_t from, size_t bytes);

/* handle.c */
int handles_open(struct worker *w, unsigned int mains, unsigned int raws);
void handles_close(struct worker *w);
struct life *life_get(unsigned int slot);
void life_put(struct life *life);
int do_reopen(struct worker *w, unsigned int slot);
int do_retire(struct worker *w, unsigned int slot);
/* What there is while something does not end, for who reads the log */
void tell_why(void);
int do_start(struct worker *w, struct life *life, enum kind kind);
int do_reap(struct worker *w, struct life *life);
/* A user_data for it, 0: there is no place */
uint64_t pending_begin(struct life *life, unsigned int opcode);
void pending_refused(struct life *life, uint64_t user_data);
/* Nobody knows whether it was taken: it may end, once, and need not */
void pending_doubt(struct life *life, uint64_t user_data);

/* control.c, submit.c, memory.c: on a handle */
int do_control(struct worker *w, struct life *life, enum kind kind);
int do_submit(struct worker *w, struct life *life);
int do_wait(struct worker *w, struct life *life);
int do_map(struct worker *w, struct life *life);
int do_madvise(struct worker *w, struct life *life);
/* Memory that is registered, advised, unmapped and mapped anew at the same time */
extern char *arena;
bool arena_make(void);
int do_arena(struct worker *w);
/* dma-bufs of the exporters that the kernel has, and a file that is none */
#define NR_BUFS 4
extern int bufs[NR_BUFS];
/*
 * Descriptors of domains, each the last one that a thread has put there: it ends when another is
 * put there, if no context has joined it
 */
#define NR_DOMAINS 3
extern int domains[NR_DOMAINS];
bool domains_make(void);
/* None is left: after the last handle */
void domains_end(void);
/* Bounds what POOL_REGISTER names: nothing of this program but the arena */
void arena_bound(__u64 *addr, __u64 *bytes);
int do_munmap(struct worker *w, struct life *life);
void maps_drop(struct life *life);
int first_objects(struct worker *w, struct life *life);
int submit_plain(struct worker *w, struct life *life, struct rdmatensor_op *op);
extern const char words[];
extern const char long_words[RDMATENSOR_STATUS_TEXT_MAX];

/* netlink.c */
int do_netlink(struct worker *w);

/* heirs.c: children with inherited descriptors */
int do_fork(struct worker *w, struct life *life);
int do_exec(struct worker *w, struct life *life);
int heir_main(int fd);

/* actors.c: peers that come and go, a device that does. Threads of their own */
void *peers_work(void *arg);
void *device_work(void *arg);
/* Before there are threads. False: there can be no unplugging */
bool device_prepare(void);

#endif
