// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The thread that empties a node's ring, so that channels which come and go do not fill it. The
 * short calls take their own entries out; what is left are events, of which one matters: a channel
 * has gone down.
 *
 * It waits for the ring's head. To end it, an entry is made that nobody else wants.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "node.h"

#define BATCH 16

static void take_events(struct rdmatensor_node *node)
{
	struct rdmatensor_cqe cqes[BATCH];
	unsigned int nr, i;

	do {
		nr = rdmatensor_reap(node->rt, cqes, BATCH);
		for (i = 0; i < nr; i++)
			if (cqes[i].type == RDMATENSOR_CQE_CHANNEL_DOWN)
				node_peer_gone(node, cqes[i].channel);
	} while (nr);
}

static void *reap(void *arg)
{
	struct rdmatensor_node *node = arg;
	unsigned int none;
	uint32_t head;
	int err;

	do {
		/* Before the look: what comes after it ends the wait */
		head = rt_ring_head(&node->rt->ring);
		take_events(node);
		if (__atomic_load_n(&node->ending, __ATOMIC_ACQUIRE))
			break;
		err = rt_submit_until(node->rt, NULL, 0, head + 1, 0, &none);
		/* Else the device has gone, and nothing comes any more */
	} while (!err || err == -EINTR);
	return NULL;
}

int node_reaper_start(struct rdmatensor_node *node)
{
	sigset_t all, old;
	int err;

	/* The program's signals are its own threads' */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&node->reaper, NULL, reap, node);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err ? node_fail(-err, "open: a thread: %s", strerror(err)) : 0;
}

void node_reaper_stop(struct rdmatensor_node *node)
{
	struct rdmatensor_op op;

	__atomic_store_n(&node->ending, true, __ATOMIC_RELEASE);
	/* In the past, so it ends at once; without a place, as it has none */
	rdmatensor_prep_fetch_shared(&op, "end", 0, 1, 0);
	/* A ring that is full: the thread is about to empty it */
	while (rdmatensor_submit(node->rt, &op, 1, 0, 0, NULL) == -EAGAIN)
		sched_yield();
	pthread_join(node->reaper, NULL);
}
