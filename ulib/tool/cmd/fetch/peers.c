// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels to several peers, and others in place of those that go down.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "peers.h"
#include "tool/common/context.h"
#include "tool/common/message.h"
#include "tool/common/published.h"
#include "tool/common/store.h"

/* How long a channel that went down at once is left alone: doubled from the first to the last */
#define PAUSE_FIRST_NS 10000000ull
#define PAUSE_MOST_NS 1000000000ull

/* How long threads are waited for at a time when the device has gone */
#define GONE_MS 100

/* For the index of a worker that was started anew, without --timeout */
#define COMPARE_MS 30000

/* A worker that is started so often ends each time, and would never have sent all it has */
#define RESTARTS_MOST 8

/**
 * struct peer_threads - what the threads share with the caller
 * @lock: guards what follows, and what a thread has ended with
 * @ended: eventfd: one has
 * @running: threads that have not been joined
 * @left: the caller has gone; the last thread closes this context
 */
struct peer_threads {
	pthread_mutex_t lock;
	int ended;
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
 * @index: copy of what its index said, or NULL
 * @index_bytes: length of that
 * @step: of the index
 * @before: the incarnation that it had then
 * @pause_ns: before it begins
 * @until_ns: when it gives up; UINT64_MAX: never
 * @over: it has ended with what follows
 * @err: 0 or a negative errno
 * @final: the next try would end in the same way
 * @channel: to the peer
 * @incarnation: that it has now
 * @cause: what the library says
 */
struct peer_thread {
	pthread_t thread;
	struct peer_threads *threads;
	struct rdmatensor *rt;
	char *name;
	char *worker;
	char *index;
	size_t index_bytes;
	int64_t step;
	uint64_t before;
	uint64_t pause_ns;
	uint64_t until_ns;
	bool over;
	int err;
	bool final;
	uint32_t channel;
	uint64_t incarnation;
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
	if (peers->threads) {
		peers->threads->ended = -1;
		pthread_mutex_init(&peers->threads->lock, NULL);
	}
	if (!peers->all || !peers->threads)
		return failed("out of memory");
	peers->threads->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (peers->threads->ended < 0)
		return failed("eventfd: %s", strerror(errno));
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

static uint64_t incarnation_of(struct rdmatensor *rt, uint32_t channel)
{
	struct rdmatensor_channel_query query = { .channel = channel };

	return rdmatensor_channel_query(rt, &query) ? 0 : query.incarnation;
}

static int connect_first(struct peers *peers, struct peer *peer)
{
	char cause[512] = "";

	if (connect_within(peers->rt, peers->options->wait_ns, peer->name, peers->worker,
			   &peer->channel, cause, sizeof(cause)))
		return failed("%s%s", cause, peers->nr > 1 ?
			      "; or leave this PEER out, if the others have all that you want" : "");
	note("%s", cause);
	peer->incarnation = incarnation_of(peers->rt, peer->channel);
	return EXIT_OK;
}

/* One worker has several addresses, and an address several spellings */
static int check_twice(const struct peers *peers, const struct peer *peer)
{
	const struct peer *other;

	for (other = peers->all; other < peer; other++)
		if (peer->incarnation && other->incarnation == peer->incarnation)
			return failed("PEERs %s and %s are the same worker: name each worker once",
				      other->name, peer->name);
	return EXIT_OK;
}

int peers_connect(struct peers *peers)
{
	struct rdmatensor_query query;
	struct peer *peer;
	int err;

	err = rdmatensor_query(peers->rt, &query);
	if (err)
		return failed("query: %s", strerror(-err));
	if (query.ring_entries <= 2 * peers->nr)
		return failed("%zu PEERs: the completion ring has %u entries, two of which are for each channel: give --ring-entries %zu, or fewer of them",
			      peers->nr, query.ring_entries, 4 * peers->nr);
	for (peer = peers->all; peer < peers->all + peers->nr; peer++) {
		err = connect_first(peers, peer);
		if (!err)
			err = check_twice(peers, peer);
		if (err)
			return err;
	}
	peers->progress_ns = rdmatensor_now_ns();
	return EXIT_OK;
}

int peer_keep_index(struct peer *peer, const char *text, size_t bytes)
{
	char *copy = malloc(bytes + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, bytes);
	free(peer->index);
	peer->index = copy;
	peer->index_bytes = bytes;
	return 0;
}

bool peer_is_down(const struct peers *peers, const struct peer *peer, int err)
{
	struct rdmatensor_channel_query query = { .channel = peer->channel };

	/* Without its device there is no other channel */
	if (!err || err == -ENODEV)
		return false;
	return rdmatensor_channel_query(peers->rt, &query) ||
	       query.state != RDMATENSOR_CHANNEL_UP;
}

void peer_down(struct peer *peer, const char *why)
{
	if (peer->state != PEER_UP)
		return;
	peer->state = PEER_DOWN;
	if (!peer->tries)
		peer->lost_ns = rdmatensor_now_ns();
	snprintf(peer->why, sizeof(peer->why), "%s", why);
	note("%s: channel %u is down: %s", peer->name, peer->channel, why);
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

void peers_progress(struct peers *peers)
{
	peers->progress_ns = rdmatensor_now_ns();
}

/* ---- another channel ---------------------------------------------------------- */

static void free_threads(struct peer_threads *threads)
{
	if (!threads)
		return;
	if (threads->ended >= 0)
		close(threads->ended);
	pthread_mutex_destroy(&threads->lock);
	free(threads);
}

static void free_thread(struct peer_thread *thread)
{
	if (!thread)
		return;
	free(thread->name);
	free(thread->worker);
	free(thread->index);
	free(thread);
}

/* 0; -ESTALE: it has another model; else it is not known, and @thread->cause says why */
static int compare_index(struct peer_thread *thread)
{
	uint64_t deadline = thread->until_ns == UINT64_MAX ? rdmatensor_deadline_ms(COMPARE_MS) :
			    thread->until_ns;
	char text[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_cqe cqe;
	struct store store;
	int err;

	if (store_create_cause(thread->rt, thread->index_bytes, RDMATENSOR_POOL_PEERS_WRITE, &store,
			       thread->cause, sizeof(thread->cause)))
		return -ENOMEM;
	err = rdmatensor_fetch(thread->rt, thread->channel, INDEX_NAME, thread->step, &store.pool,
			       store.offset, thread->index_bytes, deadline, &cqe);
	if ((err == -EMSGSIZE && cqe.flags & RDMATENSOR_CQE_META) ||
	    (!err && (cqe.tensor_bytes != thread->index_bytes ||
		      memcmp((char *)store.pool.base + store.offset, thread->index,
			     thread->index_bytes))))
		err = -ESTALE;
	else if (err == -ETIMEDOUT)
		snprintf(thread->cause, sizeof(thread->cause),
			 "it was started anew, and is no `rdmatensor serve` with step %" PRId64,
			 thread->step);
	else if (err)
		snprintf(thread->cause, sizeof(thread->cause), "fetch tensor \"%s\", step %" PRId64 ": %s",
			 INDEX_NAME, thread->step, cqe.type ?
			 rdmatensor_status_text(thread->rt, &cqe, text, sizeof(text)) :
			 strerror(-err));
	rdmatensor_pool_destroy(thread->rt, &store.pool);
	return err;
}

/* No later CONNECT can end otherwise: an earlier one has succeeded, so these are few */
static bool is_final(int err)
{
	return err == -ENODEV || err == -EPERM || err == -EACCES || err == -EINVAL ||
	       err == -ENOENT || err == -EPROTONOSUPPORT || err == -EOPNOTSUPP;
}

/* Return: 0; a negative errno, and @thread->cause */
static int try_again(struct peer_thread *thread)
{
	uint64_t now = rdmatensor_now_ns();
	int err;

	err = connect_within(thread->rt, thread->until_ns == UINT64_MAX ? WAIT_DEFAULT :
			     now < thread->until_ns ? thread->until_ns - now : 1, thread->name, thread->worker, &thread->channel, thread->cause,
			     sizeof(thread->cause));
	thread->final = is_final(err);
	if (err)
		return err;
	/* Of a channel that has gone already nobody knows whose it was */
	thread->incarnation = incarnation_of(thread->rt, thread->channel);
	if (!thread->incarnation) {
		snprintf(thread->cause, sizeof(thread->cause),
			 "the channel went down as soon as it was up");
		return -ENOTCONN;
	}
	if (thread->incarnation == thread->before || !thread->index)
		return 0;
	err = compare_index(thread);
	thread->final = err == -ESTALE;
	if (thread->final)
		snprintf(thread->cause, sizeof(thread->cause),
			 "it was started anew, and serves another model now");
	if (err)
		rdmatensor_disconnect(thread->rt, thread->channel);
	return err;
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
	int err;

	/* A peer that ends each channel at once is not to be flooded with them */
	nanosleep(&pause, NULL);
	err = try_again(thread);
	pthread_mutex_lock(&threads->lock);
	thread->err = err;
	thread->over = true;
	left = threads->left;
	is_last = left && !--threads->running;
	eventfd_write(threads->ended, 1);
	pthread_mutex_unlock(&threads->lock);
	if (left)
		free_thread(thread);
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

__attribute__((format(printf, 2, 3)))
static void tell(struct peers *peers, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (peers->bar)
		progress_wipe(peers->bar);
	warned("%s", text);
}

static void give_up(struct peers *peers, struct peer *peer, const char *why)
{
	size_t len = strlen(peer->why);

	snprintf(peer->why + len, sizeof(peer->why) - len, PEER_THEN "%s", why);
	peer->state = PEER_GIVEN_UP;
	/* Of the only one the errors that follow tell */
	if (peers->nr > 1)
		tell(peers, "%s is given up: %s", peer->name, why);
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

/* When the last try ends */
static uint64_t until_of(const struct peers *peers, const struct peer *peer)
{
	uint64_t from = peers->progress_ns > peer->lost_ns ? peers->progress_ns : peer->lost_ns;

	return peers->timeout_ns && from < UINT64_MAX - peers->timeout_ns ?
	       from + peers->timeout_ns : UINT64_MAX;
}

/* A copy of all that it needs: the caller may go before it. NULL: out of memory */
static struct peer_thread *alloc_thread(const struct peers *peers, const struct peer *peer)
{
	struct peer_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->threads = peers->threads;
	thread->rt = peers->rt;
	thread->name = strdup(peer->name);
	thread->worker = peers->worker ? strdup(peers->worker) : NULL;
	thread->index = peer->index ? malloc(peer->index_bytes + 1) : NULL;
	if (!thread->name || (peers->worker && !thread->worker) ||
	    (peer->index && !thread->index)) {
		free_thread(thread);
		return NULL;
	}
	if (peer->index)
		memcpy(thread->index, peer->index, peer->index_bytes);
	thread->index_bytes = peer->index_bytes;
	thread->step = peers->step;
	thread->before = peer->incarnation;
	return thread;
}

void peer_again(struct peers *peers, struct peer *peer)
{
	uint64_t now = rdmatensor_now_ns(), until = until_of(peers, peer);
	struct peer_thread *thread;

	if (now >= until) {
		give_up(peers, peer, "nothing has arrived within --timeout");
		return;
	}
	thread = alloc_thread(peers, peer);
	if (!thread) {
		give_up(peers, peer, strerror(ENOMEM));
		return;
	}
	thread->pause_ns = pause_of(peer->tries++);
	thread->until_ns = until;
	if (thread->pause_ns > until - now)
		thread->pause_ns = until - now;
	if (begin_thread(thread)) {
		free_thread(thread);
		give_up(peers, peer, strerror(EAGAIN));
		return;
	}
	peer->thread = thread;
	peer->state = PEER_CONNECTING;
	peers->threads->running++;
	if (peer->tries == 1)
		tell(peers, "%s: %s: connecting again", peer->name, peer->why);
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

static void attempt_failed(struct peers *peers, struct peer *peer, const struct peer_thread *thread)
{
	uint64_t now = rdmatensor_now_ns(), until = until_of(peers, peer);

	/* What little is left is worth no try, whose text would be of that short time */
	if (thread->final || now >= until || until - now < peers->timeout_ns / 16) {
		give_up(peers, peer, thread->cause);
		return;
	}
	note("%s: %s", peer->name, thread->cause);
	peer->state = PEER_DOWN;
}

/* True: it is up again, and is not the worker that it was */
static bool take_channel(struct peers *peers, struct peer *peer, const struct peer_thread *thread)
{
	bool changed = thread->incarnation != peer->incarnation;

	peer->channel = thread->channel;
	peer->incarnation = thread->incarnation;
	peer->again++;
	peer->restarts += changed;
	if (peer->restarts > RESTARTS_MOST) {
		peer->state = PEER_DOWN;
		give_up(peers, peer, "it was started anew too often");
		rdmatensor_disconnect(peers->rt, peer->channel);
		return false;
	}
	peer->state = PEER_UP;
	tell(peers, "%s: connected again", peer->name);
	note("%s", thread->cause);
	return changed;
}

bool peers_look(struct peers *peers, peer_changed *changed, void *arg)
{
	struct peer_thread *thread;
	struct peer *peer;
	eventfd_t nr;
	bool any = false;

	if (!peers->threads || !peers->threads->running)
		return false;
	/* Before the look: one that ends after it has to end the next wait */
	eventfd_read(peers->threads->ended, &nr);
	for (peer = peers->all; peer < peers->all + peers->nr; peer++) {
		if (!is_over(peers, peer))
			continue;
		any = true;
		thread = peer->thread;
		pthread_join(thread->thread, NULL);
		peers->threads->running--;
		peer->thread = NULL;
		if (thread->err)
			attempt_failed(peers, peer, thread);
		else if (take_channel(peers, peer, thread) && changed)
			changed(arg, peer);
		free_thread(thread);
	}
	return any;
}

bool peers_connecting(const struct peers *peers)
{
	return peers->threads && peers->threads->running;
}

void peers_wait(const struct peers *peers)
{
	struct pollfd fds[] = {
		{ .fd = peers->threads->ended, .events = POLLIN },
		{ .fd = rdmatensor_fd(peers->rt), .events = POLLIN },
	};

	/* What interrupts it does not matter: the caller looks again */
	if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) > 0 && !(fds[1].revents & POLLIN) &&
	    fds[1].revents)
		/* Of a device that has gone there is no more than that */
		poll(fds, 1, GONE_MS);
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
			free_thread(peer->thread);
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

	for (i = 0; i < peers->nr; i++) {
		free(peers->all[i].has);
		free(peers->all[i].index);
	}
	free(peers->all);
	memset(peers, 0, sizeof(*peers));
	return none;
}
