// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels to the peers that a node gets from: one each, kept, and made again when it went down.
 * Each peer has a lock of its own, so that one that does not answer keeps nobody else waiting.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node.h"

/* With the lock held. NULL: nothing has been got from there yet. It comes to the head: it is asked for again */
static struct node_peer *look_for(struct rdmatensor_node *node, const char *host)
{
	struct node_peer **at = &node->peers, *peer;

	while (*at && strcmp((*at)->host, host))
		at = &(*at)->next;
	peer = *at;
	if (peer) {
		*at = peer->next;
		peer->next = node->peers;
		node->peers = peer;
	}
	return peer;
}

static struct node_peer *find(struct rdmatensor_node *node, const char *host)
{
	size_t room = strlen(host) + 1;
	struct node_peer *peer;

	pthread_mutex_lock(&node->lock);
	peer = look_for(node, host);
	if (!peer)
		peer = calloc(1, sizeof(*peer) + room);
	if (peer && !peer->host[0]) {
		memcpy(peer->host, host, room);
		sem_init(&peer->turn, 0, 1);
		peer->next = node->peers;
		node->peers = peer;
	}
	pthread_mutex_unlock(&node->lock);
	return peer;
}

uint32_t node_left_ms(uint64_t deadline_ns)
{
	uint64_t now = rdmatensor_now_ns(), ms;

	if (!deadline_ns)
		return UINT32_MAX;
	ms = deadline_ns > now ? (deadline_ns - now) / 1000000 : 0;
	return ms ? ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX : 1;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

unsigned int node_pause_ms(unsigned int vain)
{
	return vain < 8 ? 10u << (vain - 1) : 1000;
}

int node_sleep_until(uint64_t until_ns)
{
	struct timespec until;
	bool last;

	do {
		until = timespec_of(rt_stop_look(until_ns, &last));
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) || rt_stopped())
			return EINTR;
	} while (!last);
	return 0;
}

int node_pause(struct rdmatensor_node *node, unsigned int vain, uint64_t deadline_ns)
{
	uint64_t until_ns = rdmatensor_deadline_ms(node_pause_ms(vain));

	if (deadline_ns && deadline_ns < until_ns)
		until_ns = deadline_ns;
	return node_sleep_until(until_ns) == EINTR &&
	       __atomic_load_n(&node->interruptible, __ATOMIC_RELAXED) ? -EINTR : 0;
}

int node_turn(sem_t *turn, uint64_t deadline_ns)
{
	struct timespec until;
	uint64_t look_ns;
	bool last;

	do {
		look_ns = rt_stop_look(deadline_ns, &last);
		until = timespec_of(look_ns);
		if (!(look_ns ? sem_clockwait(turn, CLOCK_MONOTONIC, &until) : sem_wait(turn)))
			return 0;
		if (errno != ETIMEDOUT || last)
			return -errno;
	} while (!rt_stopped());
	return -EINTR;
}

int node_interrupted(const char *what, const char *whose)
{
	return node_fail(-EINTR, "%s: %s: a signal has ended it", what, whose);
}

static _Thread_local uint64_t own_deadline_ns;

uint64_t rdmatensor_node_until(uint64_t deadline_ns)
{
	uint64_t former = own_deadline_ns;

	own_deadline_ns = deadline_ns;
	return former;
}

uint64_t node_deadline(const struct rdmatensor_node *node)
{
	return own_deadline_ns ? own_deadline_ns :
	       rdmatensor_deadline_ms(__atomic_load_n(&node->timeout_ms, __ATOMIC_RELAXED));
}

bool node_is_down(struct rdmatensor_node *node, uint32_t channel, int err)
{
	struct rdmatensor_channel_query query = { .channel = channel };

	if (!err || err == -ENODEV || err == -EINTR || channel == RDMATENSOR_CHANNEL_SELF)
		return false;
	return rdmatensor_channel_query(node->rt, &query) ||
	       query.state != RDMATENSOR_CHANNEL_UP;
}

/*
 * An attempt to connect, and what the last one has said: the node's line is that of the call, which
 * may yet come to its end
 */
struct attempt {
	struct rdmatensor_node *node;
	struct node_peer *peer;
	uint64_t deadline_ns;
	uint64_t until_ns;
	uint32_t flags;
	bool full;
	char cause[256];
	int piece_err;
	char piece_cause[256];
};

/* Of a CONNECT, which no other thread can end: as long as the slowest connection takes to be made */
#define PIECE_MS 10000

/* By who has the peer's turn. Return: 0; an error, whose cause it has */
static int connect_once(struct attempt *attempt)
{
	struct rdmatensor_connect connect = { .flags = attempt->flags };
	struct node_peer *peer = attempt->peer;
	char cause[sizeof(attempt->cause)];
	int err;

	attempt->until_ns = attempt->deadline_ns;
	if (rt_may_stop()) {
		attempt->until_ns = rdmatensor_deadline_ms(PIECE_MS);
		if (attempt->deadline_ns && attempt->deadline_ns < attempt->until_ns)
			attempt->until_ns = attempt->deadline_ns;
	}
	connect.timeout_ms = node_left_ms(attempt->until_ns);
	err = rdmatensor_connect_peer(attempt->node->rt, peer->host, &connect, cause, sizeof(cause));
	__atomic_store_n(&peer->channel, err ? 0 : connect.out_channel, __ATOMIC_RELEASE);
	if (!err)
		__atomic_store_n(&peer->met, true, __ATOMIC_RELAXED);
	/* One that the deadline cuts short knows less than the one before it */
	if (attempt->full && err == -ETIMEDOUT && node_left_ms(attempt->deadline_ns) <= 20)
		return -EUSERS;
	memcpy(attempt->cause, cause, sizeof(cause));
	return err;
}

/* Return: 0, *channel: it is up; an error, whose cause the attempt has. *waits: try again */
static int connect_in_turn(struct attempt *attempt, uint32_t dead, uint32_t *channel, bool *waits)
{
	struct node_peer *peer = attempt->peer;
	int err = node_turn(&peer->turn, attempt->deadline_ns);

	*waits = false;
	if (err == -ETIMEDOUT && attempt->full)
		return -EUSERS;
	if (err) {
		snprintf(attempt->cause, sizeof(attempt->cause),
			 "connect: %s: %s", peer->host, err == -EINTR ? "a signal has ended it" :
			 "another thread has not connected to it within the timeout (rdmatensor_node_timeout())");
		return err;
	}
	*channel = __atomic_load_n(&peer->channel, __ATOMIC_ACQUIRE);
	if (!*channel || *channel == dead) {
		err = connect_once(attempt);
		*channel = __atomic_load_n(&peer->channel, __ATOMIC_ACQUIRE);
	}
	*waits = err == -EUSERS && __atomic_load_n(&peer->met, __ATOMIC_RELAXED) &&
		 !(attempt->flags & RDMATENSOR_CONNECT_NOWAIT);
	sem_post(&peer->turn);
	return err;
}

static bool is_late(uint64_t deadline_ns)
{
	return deadline_ns && rdmatensor_now_ns() >= deadline_ns;
}

/*
 * Nobody was there until the end of a piece: to be tried again. What was said is kept, as the last piece
 * may be too short to find out as much
 */
static bool was_piece(struct attempt *attempt, int err)
{
	if (err != -ECONNREFUSED && err != -ETIMEDOUT && err != -EHOSTUNREACH && err != -ENETUNREACH)
		return false;
	/* The kernel's clock may be a tick early */
	if (attempt->until_ns == attempt->deadline_ns || node_left_ms(attempt->until_ns) > 20 ||
	    is_late(attempt->deadline_ns))
		return false;
	attempt->piece_err = err;
	memcpy(attempt->piece_cause, attempt->cause, sizeof(attempt->cause));
	return true;
}

/*
 * Again while all places are taken, if this node has had one: its channel has gone down then, and either
 * side counts it until it has seen that. A peer that has no place for a first channel says so at once.
 * Others may try between two attempts.
 */
static int connect_by(struct rdmatensor_node *node, const char *host, uint32_t dead,
		      uint64_t deadline_ns, uint32_t flags, uint32_t *channel)
{
	struct attempt attempt = {
		.node = node, .peer = find(node, host), .deadline_ns = deadline_ns, .flags = flags,
	};
	unsigned int vain = 0;
	bool waits;
	int err;

	if (!attempt.peer)
		return node_fail(-ENOMEM, "connect: %s: out of memory", host);
	for (;;) {
		err = connect_in_turn(&attempt, dead, channel, &waits);
		if (err && rt_stopped())
			return node_interrupted("connect", host);
		if (was_piece(&attempt, err))
			continue;
		attempt.full = err == -EUSERS;
		if (!waits)
			break;
		if (node_pause(node, ++vain, deadline_ns))
			return node_interrupted("connect", host);
		if (is_late(deadline_ns))
			break;
	}
	if (attempt.piece_err && err == -ETIMEDOUT && is_late(deadline_ns))
		return node_fail(attempt.piece_err, "%s", attempt.piece_cause);
	return err ? node_fail(err, "%s", attempt.cause) : 0;
}

static _Thread_local struct node_guard *own_guard;

struct node_guard *node_guard(struct node_guard *guard)
{
	struct node_guard *former = own_guard;

	own_guard = guard;
	return former;
}

int node_guard_error(void)
{
	return own_guard ? own_guard->err : 0;
}

bool node_guard_probes(void)
{
	return own_guard && own_guard->probes;
}

/* What the thread's call has said of other tensors stays its line */
static int prove(uint64_t deadline_ns, uint32_t *channel)
{
	struct node_guard *guard = node_guard(NULL);
	char *line = strdup(rdmatensor_node_error());
	int err;

	err = line ? guard->prove(guard, deadline_ns, channel) :
	      node_fail(-ENOMEM, "connect: out of memory");
	guard->err = err;
	if (!err)
		node_fail(0, "%s", line);
	free(line);
	node_guard(guard);
	return err;
}

int node_connect(struct rdmatensor_node *node, const char *host, uint32_t dead,
		 uint64_t deadline_ns, uint32_t *channel)
{
	/* It connects where there is a need: who is meant may have come back elsewhere */
	if (own_guard) {
		*channel = dead ? 0 : node_channel(node, host);
		return prove(deadline_ns, channel);
	}
	return connect_by(node, host, dead, deadline_ns, 0, channel);
}

int node_connect_now(struct rdmatensor_node *node, const char *host, uint32_t dead,
		     uint64_t deadline_ns, uint32_t *channel)
{
	return connect_by(node, host, dead, deadline_ns, RDMATENSOR_CONNECT_NOWAIT, channel);
}

/* NULL: nothing has been got from there yet */
static struct node_peer *known(struct rdmatensor_node *node, const char *host)
{
	struct node_peer *peer;

	pthread_mutex_lock(&node->lock);
	peer = look_for(node, host);
	pthread_mutex_unlock(&node->lock);
	return peer;
}

uint32_t node_channel(struct rdmatensor_node *node, const char *host)
{
	struct node_peer *peer = known(node, host);

	return peer ? __atomic_load_n(&peer->channel, __ATOMIC_ACQUIRE) : 0;
}

bool node_met(struct rdmatensor_node *node, const char *host)
{
	struct node_peer *peer = known(node, host);

	return peer && __atomic_load_n(&peer->met, __ATOMIC_RELAXED);
}

void node_peers_free(struct rdmatensor_node *node)
{
	struct node_peer *peer;

	while ((peer = node->peers)) {
		node->peers = peer->next;
		sem_destroy(&peer->turn);
		free(peer);
	}
}
