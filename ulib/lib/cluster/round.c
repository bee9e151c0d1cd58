// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Something that is done with many ranks, a bounded number of them at a time, by threads that live
 * as long as the call. A signal ends it where the program wants that: no rank is begun any more,
 * and those that are under way end by themselves.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/**
 * struct run - a round under way
 * @cluster: whose
 * @round: what is done
 * @lock: guards what follows
 * @next: the next one of the ranks
 * @done: so many have ended
 * @failed: so many of those have failed
 * @first: the least place of one that has failed, whose line the round has
 * @ended: is posted by each thread that ends
 * @cancelled: no rank is begun any more
 */
struct run {
	struct rdmatensor_cluster *cluster;
	struct cluster_round *round;
	pthread_mutex_t lock;
	unsigned int next;
	unsigned int done;
	unsigned int failed;
	unsigned int first;
	sem_t ended;
	bool cancelled;
};

/* That this thread works for */
static _Thread_local struct run *own_run;

bool cluster_cancelled(void)
{
	bool cancelled = false;

	if (own_run) {
		pthread_mutex_lock(&own_run->lock);
		cancelled = own_run->cancelled;
		pthread_mutex_unlock(&own_run->lock);
	}
	return cancelled;
}

static bool take(struct run *run, unsigned int *at)
{
	bool more;

	pthread_mutex_lock(&run->lock);
	more = !run->cancelled && run->next < run->round->nr;
	if (more)
		*at = run->next++;
	pthread_mutex_unlock(&run->lock);
	return more;
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
	unsigned int at;

	own_run = run;
	while (take(run, &at)) {
		node_clear_error();
		note(run, at, round->work(run->cluster, round->ranks[at], round->arg));
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
		} else if (run->cluster->options.flags & RDMATENSOR_CLUSTER_INTERRUPTIBLE) {
			pthread_mutex_lock(&run->lock);
			run->cancelled = true;
			pthread_mutex_unlock(&run->lock);
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
	if (!threads)
		return node_fail(-ENOMEM, "cluster: out of memory");
	pthread_mutex_init(&run.lock, NULL);
	sem_init(&run.ended, 0, 0);
	begun = begin(&run, threads, nr);
	/* Fewer do as well */
	await(&run, begun);
	for (i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
	sem_destroy(&run.ended);
	pthread_mutex_destroy(&run.lock);
	free(threads);
	if (!begun)
		return node_fail(-EAGAIN, "cluster: no thread can be made: allow the user more processes (ulimit -u)");
	if (run.cancelled)
		return node_interrupted("cluster", "the call");
	return (int)run.failed;
}
