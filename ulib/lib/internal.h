/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the library share.
 */
#ifndef RDMATENSOR_INTERNAL_H
#define RDMATENSOR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All is built with -fvisibility=hidden; what the public header declares is not */
#pragma GCC visibility push(default)
#include <rdmatensor/rdmatensor.h>
#pragma GCC visibility pop

#include "ring.h"

/**
 * struct rt_mapping - a pool that is mapped
 * @next: list, under the handle's lock
 * @base: of the mapping
 * @bytes: of the mapping
 * @id: the pool's
 */
struct rt_mapping {
	struct rt_mapping *next;
	void *base;
	size_t bytes;
	uint32_t id;
};

/**
 * struct rt_call - a blocking call, on its thread's stack, from its submission to its end
 * @next: list, under the handle's @reaping
 * @tag: user_data of its operation, or of the first of several
 * @nr: of them, with user_data one after the other
 * @ended: of these; under the handle's @reaping
 * @cqes: their ends, at the place of each, once it has come
 */
struct rt_call {
	struct rt_call *next;
	uint64_t tag;
	uint32_t nr;
	uint32_t ended;
	struct rdmatensor_cqe *cqes;
};

/**
 * struct rdmatensor - a handle
 * @fd: the device
 * @ring: the mapped completion ring; its header is NULL before START
 * @tag: user_data of the next blocking call, but for its upper half; under @reaping
 * @handshake_ms: what START has made of it, the bound on a CONNECT that names none
 * @setup: held by the one thread that starts the context and maps @ring
 * @lock: guards @mappings
 * @mappings: pools that are mapped
 * @interruptible: blocking calls end by a signal
 * @no_head: the module is older than RDMATENSOR_SUBMIT_HEAD
 * @reaping: guards the process's side of @ring, as far as blocking calls and
 *           rdmatensor_reap() use it, and what follows
 * @calls: blocking calls
 * @judged: up to which the ring's entries are no calls'
 * @abandoned: operations whose call was interrupted, and whose entries are to be dropped
 */
struct rdmatensor {
	int fd;
	struct rt_ring ring;
	uint32_t tag;
	uint32_t handshake_ms;
	pthread_mutex_t setup;
	pthread_mutex_t lock;
	struct rt_mapping *mappings;
	bool interruptible;
	bool no_head;
	pthread_mutex_t reaping;
	struct rt_call *calls;
	uint32_t judged;
	uint32_t abandoned;
};

/* ioctl() that returns 0 or a negative errno */
int rt_ioctl(struct rdmatensor *rt, unsigned long request, void *arg);

/*
 * Another thread ends waits of this one by setting *@stop, as a signal would that it does not get: they
 * look every RT_STOP_MS. NULL: nobody does
 */
void rt_stop_by(const bool *stop);
bool rt_may_stop(void);
bool rt_stopped(void);
/* When a wait until @deadline_ns, where 0 is never, is to look again; *@last: that is its end */
uint64_t rt_stop_look(uint64_t deadline_ns, bool *last);
#define RT_STOP_MS 100

/*
 * Submits, and waits until the ring's head has come to @head. Return: as rdmatensor_submit(), whose
 * done is *taken; once rt_stopped() -EINTR in place of 0 and -ETIME, whatever has come
 */
int rt_submit_until(struct rdmatensor *rt, const struct rdmatensor_op *ops, unsigned int nr,
		    uint32_t head, uint64_t deadline_ns, unsigned int *taken);

/*
 * Blocking: all of @ops, which make an entry each and can be cancelled, in flight at once as far as
 * the ring has room. @cqes has the end of each; of one that was not taken, its type is 0 and its
 * result says why, with RT_CQE_NO_ROOM: the ring had none until its deadline (-ETIMEDOUT). Of one
 * that a signal has ended the result is -EINTR with RT_CQE_SIGNAL: without it a peer has said so
 */
#define RT_CQE_NO_ROOM (1 << 15)
#define RT_CQE_SIGNAL (1 << 14)
void rt_run_many(struct rdmatensor *rt, struct rdmatensor_op *ops, struct rdmatensor_cqe *cqes,
		 unsigned int nr);

/*
 * rdmatensor_withdraw(), which no signal ends once the kernel has it. Return: so; -EAGAIN: the ring had
 * no room until the deadline; -EINTR: a signal came while it had none
 */
int rt_withdraw(struct rdmatensor *rt, const char *name, int64_t step_id, uint64_t deadline_ns);
/* The same of any WITHDRAW that makes an entry */
int rt_withdraw_by(struct rdmatensor *rt, const struct rdmatensor_op *op, uint64_t deadline_ns);

/*
 * Entries up to the first one of a call that was interrupted, which nobody is to see: it is dropped
 * when it is the oldest. Until then it stays, as the program looks at those before it in their places
 */
unsigned int rt_ready(struct rdmatensor *rt);

/* rdmatensor_reap(), which leaves the entries of blocking calls to these */
unsigned int rt_reap_beside_calls(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
				  unsigned int nr);

/* Maps the completion ring of a started context */
int rt_ring_map(struct rdmatensor *rt);

/*
 * As rdmatensor_parse_addr(), with all addresses of a host. Return: their number, 1..@most,
 * or a negative errno
 */
int rt_resolve(const char *text, uint16_t default_port, int passive, uint8_t (*addrs)[28],
	       unsigned int most, char *cause, size_t cause_len);

/*
 * "HOST[:PORT]" cut up, as rt_resolve() takes it, without asking a name server. Return: 0, and @host is
 * without brackets, and may be empty; -EINVAL
 */
int rt_split(const char *text, uint16_t default_port, char *host, size_t host_len, uint16_t *port,
	     char *cause, size_t cause_len);

/* Unmaps every pool that is still mapped */
void rt_unmap_all(struct rdmatensor *rt);
/* Maps a pool and notes the mapping for the handle's end. Return: 0; a negative errno */
int rt_map_pool(struct rdmatensor *rt, uint32_t id, uint64_t bytes, uint64_t offset,
		struct rdmatensor_pool *pool);

/* Stores a line for the caller; returns @err */
int rt_cause(char *cause, size_t cause_len, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * A whole number, decimal or 0x hexadecimal, with nothing before or after it.
 * -EINVAL: it is none, or not in min..max.
 */
int rt_parse_number(const char *text, uint64_t min, uint64_t max,
		    uint64_t *out);

/* Bytes of a struct up to the end of a member */
#define RT_END_OF(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/*
 * A program's struct of @size bytes into the library's own: what the program's does not have is 0.
 * Return: 0; -E2BIG: it is longer, and the rest is not zero
 */
int rt_take_struct(void *own, size_t own_size, const void *theirs, size_t size);
/* And back: what both have */
void rt_give_struct(void *theirs, size_t size, const void *own, size_t own_size);

/* Copies what fits of a zero-terminated string, and zeroes the rest */
/* As rdmatensor_start_listen(), at @default_port if @addr has no port */
int rt_start_listen(struct rdmatensor_start *start, const char *addr, uint16_t default_port,
		    char *cause, size_t cause_len);
void rt_copy_string(char *to, size_t to_len, const char *from);

#endif
