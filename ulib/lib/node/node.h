/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the short way share. The public calls are in open.c, memory.c, offer.c, get.c,
 * list.c, rows.c and table.c; peers.c has the channels, reaper.c the thread that empties the ring.
 */
#ifndef RDMATENSOR_LIB_NODE_H
#define RDMATENSOR_LIB_NODE_H

#include <semaphore.h>

#include "../internal.h"

#pragma GCC visibility push(default)
#include <rdmatensor/node.h>
#pragma GCC visibility pop

/**
 * struct node_peer - where tensors are got from
 * @next: list, under the node's lock; none leaves it before the node's end
 * @turn: one thread at a time connects; a signal ends a wait for it, as none for a lock
 * @channel: to it, which may have gone down; 0: there is none
 * @met: there has been one
 * @host: as it was written
 */
struct node_peer {
	struct node_peer *next;
	sem_t turn;
	uint32_t channel;
	bool met;
	char host[];
};

/**
 * struct node_pools - pools of one kind, the newest first
 * @peers: what these may do with them
 * @pools: array, under the node's lock. It grows only: a pool stays until the node's end
 * @nr: of them
 */
struct node_pools {
	enum rdmatensor_pool_peers peers;
	struct rdmatensor_pool *pools;
	unsigned int nr;
};

/**
 * struct node_copy - a tensor that is offered, and was copied for that
 * @next: list, under the node's lock
 * @data: the copy
 * @step: the tensor's
 * @name: the tensor's
 */
struct node_copy {
	struct node_copy *next;
	void *data;
	int64_t step;
	char name[];
};

/**
 * struct node_generation - a generation that is visible, or that a newer one has replaced
 * @next: list, under the node's lock
 * @id: user_data of the entry that ends it
 * @group: its group
 * @step: its step
 * @replaced: not visible any more: it ends by an entry
 * @nr: length of @copies
 * @copies: memory of its own, NULL: of the caller's
 */
struct node_generation {
	struct node_generation *next;
	uint64_t id;
	uint64_t group;
	int64_t step;
	bool replaced;
	unsigned int nr;
	void *copies[];
};

/**
 * struct node_rows - memory that peers may read, a pool of its own
 * @next: list, under the node's lock
 * @pool: the pool
 * @offset: of its one region
 * @copied: it is an offer's, and goes with that
 * @doomed: nobody needs it, but a table of the node's own that is open still had its rows
 */
struct node_rows {
	struct node_rows *next;
	struct rdmatensor_pool pool;
	uint64_t offset;
	bool copied;
	bool doomed;
};

/**
 * struct node_offer - rows that are offered
 * @next: list, under the node's lock
 * @table: the export
 * @copy: they were copied for that; NULL: they were not
 * @memory: or they lie there, where they are
 * @name: the table's
 */
struct node_offer {
	struct node_offer *next;
	uint32_t table;
	struct node_rows *copy;
	const struct node_rows *memory;
	char name[];
};

/**
 * struct rdmatensor_node
 * @rt: the context
 * @started: it has been started, and does not change any more
 * @start: with what: a node that only gets may be started later
 * @starting: one thread at a time does
 * @revealing: one thread at a time makes a generation
 * @timeout_ms: rdmatensor_node_timeout()
 * @interruptible: rdmatensor_node_interruptible()
 * @words_ns: before that no peer is asked for names that may have been meant
 * @lock: guards what follows
 * @peers: that tensors were got from
 * @sources: memory that is offered
 * @landings: memory that peers write
 * @copies: offers of the caller's own memory
 * @generations: that are not over
 * @last_generation: id of the last one that was made
 * @rows: memory for rows
 * @offers: of rows
 * @reaper: the thread, once it is started
 * @ending: it is to end
 */
struct rdmatensor_node {
	struct rdmatensor *rt;
	bool started;
	struct rdmatensor_start start;
	pthread_mutex_t starting;
	pthread_mutex_t revealing;
	int64_t timeout_ms;
	int interruptible;
	uint64_t words_ns;
	pthread_mutex_t lock;
	struct node_peer *peers;
	struct node_pools sources;
	struct node_pools landings;
	struct node_copy *copies;
	struct node_generation *generations;
	uint64_t last_generation;
	struct node_rows *rows;
	struct node_offer *offers;
	pthread_t reaper;
	bool ending;
};

/* Stores a line for rdmatensor_node_error(); returns @err, which is not 0 */
int node_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds to that line */
void node_fail_more(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define NODE_NO_ROOM "the completion ring had no room for it within the timeout: raise RDMATENSOR_RING_ENTRIES, or the timeout (rdmatensor_node_timeout())"
/* The last line is of an earlier call */
void node_clear_error(void);
/* Why an operation of rt_run_many() has failed, one that the kernel never took included */
const char *node_status_text(struct rdmatensor_node *node, const struct rdmatensor_cqe *cqe,
			     char *text, size_t size);

/*
 * rdmatensor_node_open() of a node that may have so many channels, whose device leads to @near where the
 * rule does not decide; NULL: to nobody in particular
 */
int node_open(struct rdmatensor_node **out, const char *listen, const char *near,
	      unsigned int channels);

/* Starts the context, if it is not. @peer: whom the device should lead to, NULL: nobody */
int node_start(struct rdmatensor_node *node, const char *peer);

/* Reaps what no call waits for: entries of generations are looked at, all others dropped */
void node_reap(struct rdmatensor_node *node);
int node_reaper_start(struct rdmatensor_node *node);
void node_reaper_stop(struct rdmatensor_node *node);

/*
 * A channel to a peer, made if there is none. @dead: one that has gone down, 0: none is known to.
 * Return: 0; a negative errno, and the line is stored
 */
int node_connect(struct rdmatensor_node *node, const char *host, uint32_t dead,
		 uint64_t deadline_ns, uint32_t *channel);
/* The same, which does not wait for a peer that is not up: it fails then, as with -ECONNREFUSED */
int node_connect_now(struct rdmatensor_node *node, const char *host, uint32_t dead,
		     uint64_t deadline_ns, uint32_t *channel);
/**
 * struct node_guard - who a thread gets from must be who it means
 * @prove: whether that one is behind a channel. *@channel: in: the one that a get or list is about to
 *         use, 0: there is none, or it is down, and @prove connects; out: the one that it uses. Called
 *         without a guard. Return: 0; an error, which ends the get or list, and the line is stored
 * @err: what @prove has returned last
 * @probes: what is got has a name of the library's own: no other one was meant
 */
struct node_guard {
	int (*prove)(struct node_guard *guard, uint64_t deadline_ns, uint32_t *channel);
	int err;
	bool probes;
};

/* Of what this thread gets from now on; NULL: none. Return: the former one */
struct node_guard *node_guard(struct node_guard *guard);
/* By what that one has ended the call; 0: there is none, or it has not */
int node_guard_error(void);
/* It probes, and what is said is for nobody who has written the name */
bool node_guard_probes(void);
/* The one that there is, which may have gone down; 0: none */
uint32_t node_channel(struct rdmatensor_node *node, const char *host);
/* There has been one: the peer may still count it */
bool node_met(struct rdmatensor_node *node, const char *host);
void node_peers_free(struct rdmatensor_node *node);
/*
 * What ended with @err may be repeated by another channel, as this one is not up any more: asked of
 * the kernel, for a peer can say any errno, and a channel can go down because of any. Without its
 * device there is no other one
 */
bool node_is_down(struct rdmatensor_node *node, uint32_t channel, int err);
/* What is left of a deadline, for CONNECT and TABLE_OPEN, to which 0 would be the default */
uint32_t node_left_ms(uint64_t deadline_ns);
/* The pause of node_pause(), in milliseconds. @vain: at least 1 */
unsigned int node_pause_ms(unsigned int vain);
/* Until then, or until a signal, or rt_stopped(). Return: 0; EINTR */
int node_sleep_until(uint64_t until_ns);
/*
 * Between attempts of which @vain have failed one after the other: from 10 ms to a second. Return: 0, at
 * the deadline as well; -EINTR: a signal ends the call
 */
int node_pause(struct rdmatensor_node *node, unsigned int vain, uint64_t deadline_ns);
/*
 * Waits until it is this thread's turn, which sem_post() ends. Return: 0; -ETIMEDOUT; -EINTR: a signal,
 * or rt_stopped()
 */
int node_turn(sem_t *turn, uint64_t deadline_ns);
/* As node_fail(), of a call that a signal ends */
int node_interrupted(const char *what, const char *whose);
/* When a call of this thread that begins now ends; 0: never */
uint64_t node_deadline(const struct rdmatensor_node *node);

/* Pool number @i, the newest first. False: there are no more */
bool node_pool(struct rdmatensor_node *node, struct node_pools *pools, unsigned int i,
	       struct rdmatensor_pool *pool);
/*
 * One pool more, with room for @bytes, unless there are more than @known already. Return: 0; a
 * negative errno, and the line is stored
 */
int node_grow(struct rdmatensor_node *node, struct node_pools *pools, uint64_t bytes,
	      unsigned int known);
/* Memory of one of them, or of one more. Return: 0; a negative errno, and the line is stored */
int node_alloc(struct rdmatensor_node *node, struct node_pools *pools, uint64_t bytes, void **data);
/* The pool that @data is in, and where. False: it is not the node's */
bool node_find(struct rdmatensor_node *node, struct node_pools *pools, const void *data,
	       struct rdmatensor_pool *pool, uint64_t *offset);

/*
 * Whether a tensor can be offered; *bytes: its length. Return: 0; -EINVAL, and the line is stored
 */
int node_check_offer(const char *name, const struct rdmatensor_tensor *tensor, uint64_t *bytes);
/* It can be offered where it is, of @bytes: there, unless they are 0. False: it is to be copied */
bool node_in_place(struct rdmatensor_node *node, const struct rdmatensor_tensor *tensor,
		   uint64_t bytes, struct rdmatensor_pool *pool, uint64_t *offset);
/* What is copied, so that the tensor lies together at @to */
void node_copy_content(const struct rdmatensor_tensor *tensor, void *to, uint64_t bytes);
/* Between a strided tensor of a type whose elements have a length, and what lies together */
void node_gather(const struct rdmatensor_tensor *tensor, void *to);
void node_scatter(const struct rdmatensor_tensor *tensor, const void *from);
/* From the first place of @tensor to behind the last one. False: its type or a dim's places are not said */
bool node_strides_span(const struct rdmatensor_tensor *tensor, uint64_t *span);
/* There are places within its bytes for what has this shape, which is not empty */
bool node_strides_fit(const struct rdmatensor_tensor *tensor, uint32_t data_type, uint32_t ndims,
		      const uint64_t *dims);
/* A PUBLISH of it, until it is withdrawn */
void node_prep_offer(struct rdmatensor_op *op, const char *name, int64_t step,
		     const struct rdmatensor_tensor *tensor, uint64_t bytes,
		     const struct rdmatensor_pool *pool, uint64_t offset);
/* An entry has ended that one. Nobody reads it */
void node_generation_over(struct rdmatensor_node *node, uint64_t id);
/* When the context is gone */
void node_generations_end(struct rdmatensor_node *node);

/* Gives memory for rows back. Return: 0; -EBUSY: it is offered; -ENOENT: it is none */
int node_rows_free(struct rdmatensor_node *node, const void *data);
/* Those whose rows were withdrawn while a table of the node's own still had them */
void node_rows_retry(struct rdmatensor_node *node);
/* When the context is gone */
void node_rows_end(struct rdmatensor_node *node);

#endif
