// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels to several peers, and others in place of those that go down.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peers.h"
#include "tool/common/context.h"
#include "tool/common/message.h"

/* How long a channel that went down at once is left alone: doubled from the first to the last */
#define PAUSE_FIRST_NS 10000000ull
#define PAUSE_MOST_NS 1000000000ull

/**
 * struct peer_threads - what the threads share with the caller
 * @lock: guards what follows, and what a thread has ended with
 * @ended: one has
 * @running: threads that have not been joined
 * @left: the caller has gone; the last thread closes this context
 */
struct peer_threads {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t running;
	struct rdmatensor *left;
};

/**
 * struct peer_thread - connects to a peer
 * @thread: itself
 * @threads: whom it tells
 * @rt: the context
 * @name: the peer's address
 * @worker: name that it must have, or NULL
 * @pause_ns: before it begins
 * @until_ns: when it gives up; UINT64_MAX: never
 * @over: it has ended with what follows
 * @err: 0 or a negative errno
 * @channel: to the peer
 * @cause: what the library says
 */
struct peer_thread {
	pthread_t thread;
	struct peer_threads *threads;
	struct rdmatensor *rt;
	const char *name;
	const char *worker;
	uint64_t pause_ns;
	uint64_t until_ns;
	bool over;
	int err;
	uint32_t channel;
	char cause[512];
};

int peers_take(struct peers *peers, char *list)
{
	size_t i, k, nr = 1;
	char *at, *next;

	for (at = list; *at; at++)
		nr += *at == ',';
	peers->all = calloc(nr, sizeof(*peers->all));
	peers->threads = calloc(1, sizeof(*peers->threads));
	if (!peers->all || !peers->threads)
		return failed("out of memory");
	pthread_mutex_init(&peers->threads->lock, NULL);
	pthread_cond_init(&peers->threads->ended, NULL);
	peers->nr = nr;
	for (at = list, i = 0; i < nr; at = next, i++) {
		next = at + strcspn(at, ",");
		if (*next)
			*next++ = '\0';
		if (!*at)
			return misused("PEER %zu of %zu is empty: give PEER[,PEER]... without spaces",
				       i + 1, nr);
		for (k = 0; k < i; k++)
			if (!strcmp(peers->all[k].name, at))
				return misused("PEER %s is given twice", at);
		peers->all[i].name = at;
	}
	return EXIT_OK;
}

static uint64_t incarnation_of(const struct peers *peers, uint32_t channel)
{
	struct rdmatensor_channel_query query = { .channel = channel };

	return rdmatensor_channel_query(peers->rt, &query) ? 0 : query.incarnation;
}

int peers_connect(struct peers *peers)
{
	struct rdmatensor_query query;
	struct peer *peer;
	int err;

	err = rdmatensor_query(peers->rt, &query);
	if (err)
		return failed("query: %s", strerror(-err));
	if (query.ring_entries <= peers->nr)
		return failed("%zu PEERs: the completion ring has %u entries, one of which is for the end of each channel: give --ring-entries %zu, or fewer of them",
			      peers->nr, query.ring_entries, 2 * peers->nr);
	for (peer = peers->all; peer < peers->all + peers->nr; peer++) {
		err = context_connect(peers->rt, peers->options, peer->name, peers->worker,
				      &peer->channel);
		if (err)
			return err;
		peer->incarnation = incarnation_of(peers, peer->channel);
	}
	return EXIT_OK;
}

bool peer_is_down(const struct peers *peers, const struct peer *peer, int err)
{
	struct rdmatensor_channel_query query = { .channel = peer->channel };

	if (err != -ENOTCONN && err != -ECONNRESET && err != -ESHUTDOWN)
		return false;
	return rdmatensor_channel_query(peers->rt, &query) ||
	       query.state != RDMATENSOR_CHANNEL_UP;
}

void peer_down(struct peer *peer, const char *why)
{
	if (peer->state != PEER_UP)
		return;
	peer->state = PEER_DOWN;
	snprintf(peer->why, sizeof(peer->why), "%s", why);
	note("channel %u down: %s", peer->channel, why);
}

struct peer *peers_find(const struct peers *peers, uint32_t channel)
{
	struct peer *peer;

	for (peer = peers->all; peer < peers->all + peers->nr; peer++)
		if (peer->state == PEER_UP && peer->channel == channel)
			return peer;
	return NULL;
}

void peer_got(struct peer *peer, uint64_t bytes)
{
	peer->got++;
	peer->bytes += bytes;
	peer->tries = 0;
}

/* ---- another channel ---------------------------------------------------------- */

static void free_threads(struct peer_threads *threads)
{
	if (!threads)
		return;
	pthread_cond_destroy(&threads->ended);
	pthread_mutex_destroy(&threads->lock);
	free(threads);
}

static void *connect_again(void *arg)
{
	struct peer_thread *thread = arg;
	struct peer_threads *threads = thread->threads;
	struct timespec pause = {
		.tv_sec = (time_t)(thread->pause_ns / 1000000000),
		.tv_nsec = (long)(thread->pause_ns % 1000000000),
	};
	struct rdmatensor *left;
	bool is_last;
	uint64_t now;
	int err;

	/* A peer that ends each channel at once is not to be flooded with them */
	nanosleep(&pause, NULL);
	now = rdmatensor_now_ns();
	err = connect_within(thread->rt, now < thread->until_ns ? thread->until_ns - now : 1,
			     thread->name, thread->worker, &thread->channel, thread->cause,
			     sizeof(thread->cause));
	pthread_mutex_lock(&threads->lock);
	thread->err = err;
	thread->over = true;
	left = threads->left;
	is_last = left && !--threads->running;
	pthread_cond_signal(&threads->ended);
	pthread_mutex_unlock(&threads->lock);
	if (left)
		free(thread);
	if (is_last) {
		rdmatensor_close(left);
		free_threads(threads);
	}
	return NULL;
}

/* Signals are for the main thread, which knows what it leaves behind. 0 or a negative errno */
static int begin_thread(struct peer_thread *thread)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread->thread, NULL, connect_again, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void give_up(struct peer *peer, const char *why)
{
	size_t len = strlen(peer->why);

	snprintf(peer->why + len, sizeof(peer->why) - len, "; then: %s", why);
	peer->state = PEER_GIVEN_UP;
}

static uint64_t pause_of(unsigned int tries)
{
	uint64_t pause_ns = PAUSE_FIRST_NS;

	if (!tries)
		return 0;
	while (--tries && pause_ns < PAUSE_MOST_NS)
		pause_ns *= 2;
	return pause_ns < PAUSE_MOST_NS ? pause_ns : PAUSE_MOST_NS;
}

void peer_again(struct peers *peers, struct peer *peer)
{
	uint64_t now = rdmatensor_now_ns();
	struct peer_thread *thread;

	if (!peer->tries)
		peer->until_ns = peers->timeout_ns && now < UINT64_MAX - peers->timeout_ns ?
				 now + peers->timeout_ns : UINT64_MAX;
	if (now >= peer->until_ns) {
		give_up(peer, "no tensor has arrived within --timeout by any other channel");
		return;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread) {
		give_up(peer, strerror(ENOMEM));
		return;
	}
	thread->threads = peers->threads;
	thread->rt = peers->rt;
	thread->name = peer->name;
	thread->worker = peers->worker;
	thread->pause_ns = pause_of(peer->tries++);
	thread->until_ns = peer->until_ns;
	if (thread->pause_ns > peer->until_ns - now)
		thread->pause_ns = peer->until_ns - now;
	peer->thread = thread;
	peer->state = PEER_CONNECTING;
	if (begin_thread(thread)) {
		free(thread);
		peer->thread = NULL;
		give_up(peer, strerror(EAGAIN));
		return;
	}
	peers->threads->running++;
	if (peer->tries == 1)
		warned("%s: %s: connecting again", peer->name, peer->why);
}

static bool is_over(struct peers *peers, const struct peer *peer)
{
	bool over;

	if (!peer->thread)
		return false;
	pthread_mutex_lock(&peers->threads->lock);
	over = peer->thread->over;
	pthread_mutex_unlock(&peers->threads->lock);
	return over;
}

/* What a peer that starts, or a wire that is bad, ends an attempt with */
static bool is_passing(int err)
{
	return err == -ECONNREFUSED || err == -ECONNRESET || err == -ECONNABORTED ||
	       err == -ESHUTDOWN || err == -ENOTCONN || err == -ETIMEDOUT ||
	       err == -EHOSTUNREACH || err == -ENETUNREACH || err == -EAGAIN || err == -EBUSY;
}

/* True: it is up again, and is not the worker that it was */
static bool take_channel(struct peers *peers, struct peer *peer)
{
	struct peer_thread *thread = peer->thread;
	uint64_t before = peer->incarnation;

	pthread_join(thread->thread, NULL);
	peers->threads->running--;
	peer->thread = NULL;
	if (is_passing(thread->err) && rdmatensor_now_ns() < peer->until_ns) {
		note("%s", thread->cause);
		peer->state = PEER_DOWN;
	} else if (thread->err) {
		give_up(peer, thread->cause);
	} else {
		note("%s", thread->cause);
		peer->channel = thread->channel;
		peer->state = PEER_UP;
		peer->again++;
		peer->incarnation = incarnation_of(peers, peer->channel);
	}
	free(thread);
	return peer->state == PEER_UP && peer->incarnation != before;
}

void peers_look(struct peers *peers, peer_changed *changed, void *arg)
{
	struct peer *peer;

	for (peer = peers->all; peer < peers->all + peers->nr; peer++)
		if (is_over(peers, peer) && take_channel(peers, peer) && changed)
			changed(arg, peer);
}

static bool any_is_over(const struct peers *peers)
{
	const struct peer *peer;

	for (peer = peers->all; peer < peers->all + peers->nr; peer++)
		if (peer->thread && peer->thread->over)
			return true;
	return false;
}

bool peers_wait(struct peers *peers)
{
	struct peer_threads *threads = peers->threads;

	if (!threads->running)
		return false;
	pthread_mutex_lock(&threads->lock);
	while (!any_is_over(peers))
		pthread_cond_wait(&threads->ended, &threads->lock);
	pthread_mutex_unlock(&threads->lock);
	return true;
}

/* Those that have ended are joined; the others do without the caller. True: there are none */
static bool leave_threads(struct peers *peers)
{
	struct peer_threads *threads = peers->threads;
	struct peer *peer;
	bool none;

	if (!threads)
		return true;
	pthread_mutex_lock(&threads->lock);
	for (peer = peers->all; peer < peers->all + peers->nr; peer++) {
		if (!peer->thread)
			continue;
		if (peer->thread->over) {
			pthread_join(peer->thread->thread, NULL);
			threads->running--;
			free(peer->thread);
		} else {
			pthread_detach(peer->thread->thread);
			threads->left = peers->rt;
		}
	}
	none = !threads->running;
	pthread_mutex_unlock(&threads->lock);
	if (none)
		free_threads(threads);
	return none;
}

bool peers_end(struct peers *peers)
{
	bool none = leave_threads(peers);
	size_t i;

	for (i = 0; i < peers->nr; i++)
		free(peers->all[i].has);
	free(peers->all);
	memset(peers, 0, sizeof(*peers));
	return none;
}
