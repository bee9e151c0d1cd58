// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The thread that empties a node's ring, so that channels which come and go do not fill it: a node
 * may do nothing but offer. The short calls take their own entries out, and find out by themselves
 * that a channel has gone down; what is left here is dropped, but for what ends a generation.
 *
 * It does not wake for each entry, but for so many that the ring has always room. To end it, as many
 * are made that nobody else wants; where that fails it looks by itself, before long.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "node.h"

#define BATCH 16
#define WAKE_MOST 64
#define LOOK_MS 1000

/* Of the least ring, 16 entries, a quarter */
static uint32_t wake_after(const struct rdmatensor_node *node)
{
	uint32_t quarter = (node->rt->ring.mask + 1) / 4;

	return quarter < WAKE_MOST ? quarter : WAKE_MOST;
}

void node_reap(struct rdmatensor_node *node)
{
	struct rdmatensor_cqe cqes[BATCH];
	unsigned int nr, i;

	while ((nr = rdmatensor_reap(node->rt, cqes, BATCH)))
		for (i = 0; i < nr; i++)
			if (cqes[i].type == RDMATENSOR_CQE_REVEAL)
				node_generation_over(node, cqes[i].user_data);
}

static void *reap(void *arg)
{
	struct rdmatensor_node *node = arg;
	unsigned int none;
	uint32_t head;
	int err;

	do {
		/* Before the look: what comes after it counts */
		head = rt_ring_head(&node->rt->ring);
		node_reap(node);
		if (__atomic_load_n(&node->ending, __ATOMIC_ACQUIRE))
			break;
		err = rt_submit_until(node->rt, NULL, 0, head + wake_after(node),
				      rdmatensor_deadline_ms(LOOK_MS), &none);
		/* Else the device has gone, and nothing comes any more */
	} while (!err || err == -EINTR || err == -ETIME);
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
	return err ? node_fail(-err, "open: the node's thread: %s: %s", strerror(err), err == EAGAIN ?
			       "allow the user more processes (ulimit -u)" : "end other processes") : 0;
}

void node_reaper_stop(struct rdmatensor_node *node)
{
	struct rdmatensor_op ops[WAKE_MOST];
	unsigned int nr = wake_after(node), i;

	__atomic_store_n(&node->ending, true, __ATOMIC_RELEASE);
	/* In the past, so they end at once; without a place, as they have none */
	for (i = 0; i < nr; i++)
		rdmatensor_prep_fetch_shared(&ops[i], "end", 0, 1, 0);
	rdmatensor_submit(node->rt, ops, nr, 0, 0, NULL);
	pthread_join(node->reaper, NULL);
}
