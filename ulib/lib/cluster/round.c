// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Something that is done with many ranks, a bounded number of them at a time, by threads that live
 * as long as the call. A signal ends it where the program wants that: no rank is begun any more, and
 * waits for those that are under way end, but for a connection that is being made.
 *
 * A rank that is not there yet makes way for the others, and is tried again after a pause. The pause
 * grows with the attempts, and with the number of ranks that are waited for, as each attempt costs
 * the store of addresses or the other host something. Those that are due and those that were not
 * begun yet take turns: a host that does not answer at all holds a thread for seconds, and many of
 * these would keep away one that refused at first and has come since. A thread ends when no rank is
 * left to be taken; then each that is under way has a thread, which takes it up again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/* Of each of the threads there is an attempt in so many milliseconds, once all ranks were begun */
#define PACE_MS 64

/**
 * struct left - a rank that is tried
 * @at: its place among the round's
 * @vain: attempts so far
 * @due_ns: before that there is no other one
 */
struct left {
	unsigned int at;
	unsigned int vain;
	uint64_t due_ns;
};

/**
 * struct run - a round under way
 * @cluster: whose
 * @round: what is done
 * @lock: guards what follows, up to @first
 * @next: the next of the ranks that were not begun
 * @left: those that are to be tried again, and no thread has
 * @nr: their number
 * @turn: of the next rank; odd: of one that is to be tried again
 * @done: so many have ended
 * @failed: so many of those have failed
 * @first: the least place of one that has failed, whose line the round has
 * @ended: is posted by each thread that ends
 * @cancelled: by it the threads' waits end (rt_stop_by()), and no rank is begun any more
 */
struct run {
	struct rdmatensor_cluster *cluster;
	struct cluster_round *round;
	pthread_mutex_t lock;
	unsigned int next;
	struct left *left;
	unsigned int nr;
	unsigned int turn;
	unsigned int done;
	unsigned int failed;
	unsigned int first;
	sem_t ended;
	bool cancelled;
	char *cause;
};

static bool is_interruptible(const struct run *run)
{
	return run->cluster->options.flags & RDMATENSOR_CLUSTER_INTERRUPTIBLE;
}

/* Of those that are to be tried again. Return: its place; @run->nr: there is none */
static unsigned int first_due(const struct run *run)
{
	unsigned int i, best = 0;

	for (i = 1; i < run->nr; i++)
		if (run->left[i].due_ns < run->left[best].due_ns)
			best = i;
	return best;
}

static bool take(struct run *run, struct left *left)
{
	bool fresh, more;
	unsigned int due;

	pthread_mutex_lock(&run->lock);
	fresh = run->next < run->round->nr;
	more = !rt_stopped() && !run->cause && (fresh || run->nr);
	if (more) {
		due = first_due(run);
		if (fresh && (!run->nr || !(run->turn++ & 1) ||
			      run->left[due].due_ns > rdmatensor_now_ns())) {
			*left = (struct left){ .at = run->next++ };
		} else {
			*left = run->left[due];
			run->left[due] = run->left[--run->nr];
		}
	}
	pthread_mutex_unlock(&run->lock);
	return more;
}

static void leave(struct run *run, struct left left)
{
	unsigned int pause = node_pause_ms(++left.vain), pace;

	pthread_mutex_lock(&run->lock);
	pace = (run->nr + 1) * PACE_MS / run->cluster->options.connects;
	left.due_ns = rdmatensor_deadline_ms(pause > pace ? pause : pace);
	run->left[run->nr++] = left;
	pthread_mutex_unlock(&run->lock);
}

/* Until it is due, or the deadline. False: the round was cancelled meanwhile */
static bool await_due(const struct run *run, const struct left *left)
{
	if (!left->due_ns)
		return true;
	node_sleep_until(cluster_earlier(left->due_ns, run->round->deadline_ns));
	return !rt_stopped();
}

static void note(struct run *run, unsigned int at, int err)
{
	struct rdmatensor_cluster_progress progress = {
		.stage = run->round->stage, .total = run->round->nr,
	};

	/* First this one: what is told is in order */
	pthread_mutex_lock(&run->cluster->telling);
	pthread_mutex_lock(&run->lock);
	run->round->errors[at] = err;
	progress.done = ++run->done;
	run->failed += !!err;
	/* The source ends the call */
	if (err == -ECANCELED && !run->cause) {
		run->cause = strdup(rdmatensor_node_error());
		__atomic_store_n(&run->cancelled, true, __ATOMIC_RELAXED);
	}
	progress.failed = run->failed;
	if (err && (!run->round->first || at < run->first)) {
		free(run->round->first);
		run->round->first = strdup(rdmatensor_node_error());
		run->first = at;
	}
	pthread_mutex_unlock(&run->lock);
	cluster_tell(run->cluster, &progress);
	pthread_mutex_unlock(&run->cluster->telling);
}

static void *work(void *arg)
{
	struct run *run = arg;
	struct cluster_round *round = run->round;
	struct left left;
	int err;

	if (is_interruptible(run))
		rt_stop_by(&run->cancelled);
	while (take(run, &left) && await_due(run, &left)) {
		node_clear_error();
		err = round->work(run->cluster, round->ranks[left.at], left.vain, round->arg);
		if (err == CLUSTER_LATER)
			leave(run, left);
		else
			note(run, left.at, err);
	}
	sem_post(&run->ended);
	return NULL;
}

static unsigned int begin(struct run *run, pthread_t *threads, unsigned int most)
{
	sigset_t all, old;
	unsigned int nr;

	/* The program's signals are its own threads' */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (nr = 0; nr < most; nr++)
		if (pthread_create(&threads[nr], NULL, work, run))
			break;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return nr;
}

static void await(struct run *run, unsigned int threads)
{
	while (threads) {
		if (!sem_wait(&run->ended)) {
			threads--;
		} else if (is_interruptible(run)) {
			__atomic_store_n(&run->cancelled, true, __ATOMIC_RELAXED);
		}
	}
}

int cluster_run(struct rdmatensor_cluster *cluster, struct cluster_round *round)
{
	struct run run = { .cluster = cluster, .round = round };
	unsigned int nr = round->nr, begun, i;
	pthread_t *threads;

	round->first = NULL;
	if (!nr)
		return 0;
	if (nr > cluster->options.connects)
		nr = cluster->options.connects;
	threads = calloc(nr, sizeof(*threads));
	run.left = calloc(round->nr, sizeof(*run.left));
	if (!threads || !run.left) {
		free(run.left);
		free(threads);
		return node_fail(-ENOMEM, "cluster: out of memory");
	}
	pthread_mutex_init(&run.lock, NULL);
	sem_init(&run.ended, 0, 0);
	begun = begin(&run, threads, nr);
	/* Fewer do as well */
	await(&run, begun);
	for (i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
	sem_destroy(&run.ended);
	pthread_mutex_destroy(&run.lock);
	free(run.left);
	free(threads);
	if (!begun)
		return node_fail(-EAGAIN, "cluster: no thread can be made: allow the user more processes (ulimit -u)");
	if (run.cause) {
		node_fail(-ECANCELED, "%s", run.cause);
		free(run.cause);
		return -ECANCELED;
	}
	if (run.cancelled)
		return node_interrupted("cluster", "the call");
	return (int)run.failed;
}
