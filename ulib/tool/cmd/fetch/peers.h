/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The peers that a model is fetched from, and the channels to them.
 *
 * A channel that goes down is not the end of its peer: another one is tried, by a thread of its own
 * so that the other peers' tensors arrive meanwhile, for as long as the fetch may take. The time
 * begins anew with each tensor that arrives, from whichever peer, and when a channel goes down that
 * has brought something.
 *
 * Behind the new channel may be another worker. Its index says whether it has the same model: if it
 * has, its tensors are fetched anew; else nothing of it is taken, and what arrived from the former
 * worker stays valid. All calls are the command's main thread's, which takes entries out of the ring
 * by rdmatensor_reap() alone while there are threads: they wait for some of their own.
 */
#ifndef TOOL_FETCH_PEERS_H
#define TOOL_FETCH_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/common/context_options.h"
#include "tool/common/progress.h"

/* Between what has ended a peer's channel, and what the last attempt at another one has ended with */
#define PEER_THEN "; then: "

/**
 * enum peer_state - how a peer can be reached
 * @PEER_UP: by @channel
 * @PEER_DOWN: its channel has gone down, and no tensor has been wanted from it since
 * @PEER_CONNECTING: a thread tries
 * @PEER_GIVEN_UP: not any more
 */
enum peer_state { PEER_UP, PEER_DOWN, PEER_CONNECTING, PEER_GIVEN_UP };

/**
 * enum missing_why - why tensors of a step do not come
 * @MISSING_DOWN: their peer cannot be reached any more
 * @MISSING_LATE: they have not come within --timeout
 * @MISSING_ASKED: they have not, and another peer was asked, which is no error
 * @MISSING_NR: number of reasons
 */
enum missing_why { MISSING_DOWN, MISSING_LATE, MISSING_ASKED, MISSING_NR };

/**
 * struct missing - tensors that are told together
 * @nr: their number
 * @first: the number of one of them
 */
struct missing {
	size_t nr;
	size_t first;
};

/**
 * struct peer - a peer
 * @name: its address as given
 * @state: whether it can be reached
 * @channel: the newest one to it
 * @incarnation: of its worker: another one has other content, whatever its names are
 * @index: its text, by which another worker is judged; NULL: the tensors' names were given
 * @index_bytes: length of that
 * @has: of each of the model's tensors, whether it has it, by its index; NULL: all
 * @shards_bytes: length of what tells of its shards; 0: it serves one file
 * @flying: fetches from it that have not ended
 * @got: tensors that have arrived from it
 * @bytes: of these
 * @again: channels to it after the first one
 * @tries: of them, since anything arrived from it
 * @lost_ns: when the channel went down that was the last to bring something
 * @restarts: of its worker, in this step
 * @late: tensors that it was asked for, and did not send: then it is asked last
 * @missing: tensors of this step that nobody else has, and that it will not send, by their reason
 * @why: why its channel has gone down, or is no other one
 * @thread: the one that connects, in PEER_CONNECTING
 */
struct peer {
	const char *name;
	enum peer_state state;
	uint32_t channel;
	uint64_t incarnation;
	char *index;
	size_t index_bytes;
	bool *has;
	uint64_t shards_bytes;
	size_t flying;
	size_t got;
	uint64_t bytes;
	unsigned int again;
	unsigned int tries;
	uint64_t lost_ns;
	unsigned int restarts;
	size_t late;
	struct missing missing[MISSING_NR];
	char why[512];
	struct peer_thread *thread;
};

/**
 * struct peers - all of them
 * @rt: the context
 * @options: its options
 * @worker: name that each must have, or NULL
 * @timeout_ns: for how long another channel is tried; 0: without a bound
 * @progress_ns: when something arrived last
 * @step: the step that is fetched, whose index another worker is asked for
 * @bar: to be wiped before a message, or NULL
 * @all: the peers
 * @nr: their number
 * @threads: what their threads share with the caller
 */
struct peers {
	struct rdmatensor *rt;
	const struct context_options *options;
	const char *worker;
	uint64_t timeout_ns;
	uint64_t progress_ns;
	int64_t step;
	struct progress *bar;
	struct peer *all;
	size_t nr;
	struct peer_threads *threads;
};

/*
 * Takes @list, "PEER[,PEER]...", apart, which is written to and stays in use. EXIT_OK; EXIT_USAGE
 * or EXIT_FAILED with a message. peers_end() follows in any case
 */
int peers_take(struct peers *peers, char *list);
/* The first channel to each, which has to come. EXIT_OK, or EXIT_FAILED with a message */
int peers_connect(struct peers *peers);
/* What @peer's index says, of which a copy is kept. 0 or -ENOMEM */
int peer_keep_index(struct peer *peer, const char *text, size_t bytes);
/*
 * The peer's channel is not up any more, so that an operation that has ended with @err may be
 * repeated by another one. Asked of the kernel: such an errno may be one that the peer has told, and a
 * channel can go down because of any
 */
bool peer_is_down(const struct peers *peers, const struct peer *peer, int err);
/* Its channel has gone down, because of @why. No-op if that is known */
void peer_down(struct peer *peer, const char *why);
/* The peer with this channel, or NULL: it is a former one */
struct peer *peers_find(const struct peers *peers, uint32_t channel);
/* A tensor has arrived */
void peer_got(struct peer *peer, uint64_t bytes);
/* Tensors have arrived: once for many, as it asks for the time */
void peers_progress(struct peers *peers);
/* PEER_DOWN: has another channel tried, or gives up; then the state is another one */
void peer_again(struct peers *peers, struct peer *peer);

/* What peers_look() tells: @peer is up again, and not the worker that it was */
typedef void peer_changed(void *arg, const struct peer *peer);
/*
 * Takes from the threads what they have ended with. @changed: NULL: whoever it is. True: the state
 * of a peer is another one
 */
bool peers_look(struct peers *peers, peer_changed *changed, void *arg);
/* Threads are under way: who waits for the ring waits for them, too, by peers_wait() */
bool peers_connecting(const struct peers *peers);
/* Waits until one of them has ended, or the ring has an entry */
void peers_wait(const struct peers *peers);
/*
 * Frees all; no-op for one of zeroes. False: a thread still tries to reach a peer that is not needed
 * any more, and closes the context when it has ended, if the process lives that long
 */
bool peers_end(struct peers *peers);

#endif
