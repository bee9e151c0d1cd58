// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nodes: made, started by the environment, and ended. A node that only gets is started when the
 * first peer is known, if its device cannot be told before.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node.h"

#define ERROR_ROOM 1536
#define TIMEOUT_MS 10000
/* Of a peer, that are asked for the way to them */
#define ADDRS_MAX 8
/* The parameters' defaults, and the most of one: rdmatensor-params(7) */
#define CHANNELS_DEFAULT 256
#define CHANNELS_MOST 4096
#define RING_DEFAULT 4096

static _Thread_local char error_line[ERROR_ROOM];

int node_fail(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error_line, sizeof(error_line), fmt, args);
	va_end(args);
	return err;
}

void node_fail_more(const char *fmt, ...)
{
	size_t len = strlen(error_line);
	va_list args;

	va_start(args, fmt);
	vsnprintf(error_line + len, sizeof(error_line) - len, fmt, args);
	va_end(args);
}

void node_clear_error(void)
{
	error_line[0] = '\0';
}

const char *node_status_text(struct rdmatensor_node *node, const struct rdmatensor_cqe *cqe,
			     char *text, size_t size)
{
	if (cqe->flags & RT_CQE_NO_ROOM)
		return NODE_NO_ROOM;
	return rdmatensor_status_text(node->rt, cqe, text, size);
}

const char *rdmatensor_node_error(void)
{
	return error_line;
}

/* The address of this host from which packets to @to leave, as START takes it for a device */
static bool source_of(const uint8_t to[28], char *device, size_t len)
{
	const struct sockaddr *addr = (const void *)to;
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} own;
	socklen_t own_len = sizeof(own);
	bool known;
	int fd;

	/* No packet is sent: the kernel only chooses a route */
	fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	known = !connect(fd, addr, addr->sa_family == AF_INET ? sizeof(own.v4) : sizeof(own.v6)) &&
		!getsockname(fd, (struct sockaddr *)&own, &own_len);
	close(fd);
	return known && inet_ntop(addr->sa_family, addr->sa_family == AF_INET ?
				  (void *)&own.v4.sin_addr : (void *)&own.v6.sin6_addr,
				  device, (socklen_t)len);
}

/* By the first of the peer's addresses that a device of this host leads to */
static int start_towards(struct rdmatensor_node *node, const char *peer)
{
	struct rdmatensor_start start;
	uint8_t addrs[ADDRS_MAX][28];
	char cause[256];
	int nr, i, err = -ENOTUNIQ;

	nr = rt_resolve(peer, RDMATENSOR_PORT, 0, addrs, ADDRS_MAX, cause, sizeof(cause));
	if (nr < 0)
		return node_fail(nr, "%s", cause);
	for (i = 0; i < nr; i++) {
		start = node->start;
		if (!source_of(addrs[i], start.device_name, sizeof(start.device_name)))
			continue;
		err = rdmatensor_start(node->rt, &start);
		if (!err)
			return 0;
	}
	return node_fail(err, "%s", node->start.cause);
}

static int start_by_rule(struct rdmatensor_node *node)
{
	int err = rdmatensor_start(node->rt, &node->start);

	if (!err)
		return 0;
	if (node->start.cause[0])
		return node_fail(err, "%s", node->start.cause);
	return node_fail(err, "start: %s", strerror(-err));
}

int node_start(struct rdmatensor_node *node, const char *peer)
{
	int err = 0;

	pthread_mutex_lock(&node->starting);
	if (!node->started) {
		err = start_by_rule(node);
		if (err == -ENOTUNIQ && peer)
			err = start_towards(node, peer);
		if (!err)
			err = node_reaper_start(node);
		if (!err) {
			rdmatensor_interruptible(node->rt, node->interruptible);
			__atomic_store_n(&node->started, true, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&node->starting);
	return err;
}

/* Of START's, for more channels than it has by default; what the environment says goes before */
static void make_room(struct rdmatensor_node *node, unsigned int channels)
{
	if (channels <= CHANNELS_DEFAULT)
		return;
	if (channels > CHANNELS_MOST)
		channels = CHANNELS_MOST;
	rdmatensor_start_set(&node->start, "max_channels", channels);
	/* Each takes two entries at most, and those of calls come beside them */
	if (2 * channels + RING_DEFAULT / 2 > RING_DEFAULT)
		rdmatensor_start_set(&node->start, "ring_entries", 2 * channels + RING_DEFAULT / 2);
}

static int prepare(struct rdmatensor_node *node, const char *listen, const char *near,
		   unsigned int channels)
{
	char cause[sizeof(node->start.cause)];
	int err;

	err = rdmatensor_open_cause(NULL, &node->rt, cause, sizeof(cause));
	if (err)
		return node_fail(err, "%s", cause);
	rdmatensor_start_init(&node->start, NULL);
	make_room(node, channels);
	err = rdmatensor_start_from_env(&node->start, cause, sizeof(cause));
	/* Who is told a host alone looks for it at that port */
	if (!err && listen)
		err = rt_start_listen(&node->start, listen, RDMATENSOR_PORT, cause, sizeof(cause));
	if (err)
		return node_fail(err, "%s", cause);
	err = node_start(node, near);
	/* Whom it gets from may tell */
	return err == -ENOTUNIQ && !listen ? 0 : err;
}

int node_open(struct rdmatensor_node **out, const char *listen, const char *near,
	      unsigned int channels)
{
	struct rdmatensor_node *node = calloc(1, sizeof(*node));
	int err;

	*out = NULL;
	node_clear_error();
	if (!node)
		return node_fail(-ENOMEM, "open: out of memory");
	node->timeout_ms = TIMEOUT_MS;
	node->sources.peers = RDMATENSOR_POOL_PEERS_NONE;
	node->landings.peers = RDMATENSOR_POOL_PEERS_WRITE;
	pthread_mutex_init(&node->starting, NULL);
	pthread_mutex_init(&node->revealing, NULL);
	pthread_mutex_init(&node->lock, NULL);
	err = prepare(node, listen, near, channels);
	if (err) {
		rdmatensor_node_close(node);
		return err;
	}
	*out = node;
	return 0;
}

int rdmatensor_node_open(struct rdmatensor_node **out, const char *listen)
{
	return node_open(out, listen, NULL, 0);
}

void rdmatensor_node_close(struct rdmatensor_node *node)
{
	struct node_copy *copy;

	if (!node)
		return;
	if (node->started)
		node_reaper_stop(node);
	rdmatensor_close(node->rt);
	node_peers_free(node);
	while ((copy = node->copies)) {
		node->copies = copy->next;
		free(copy);
	}
	node_generations_end(node);
	node_rows_end(node);
	free(node->sources.pools);
	free(node->landings.pools);
	pthread_mutex_destroy(&node->lock);
	pthread_mutex_destroy(&node->revealing);
	pthread_mutex_destroy(&node->starting);
	free(node);
}

void rdmatensor_node_timeout(struct rdmatensor_node *node, int64_t ms)
{
	__atomic_store_n(&node->timeout_ms, ms, __ATOMIC_RELAXED);
}

void rdmatensor_node_interruptible(struct rdmatensor_node *node, int on)
{
	/* Beside the start, which takes it over */
	pthread_mutex_lock(&node->starting);
	node->interruptible = on;
	if (node->started)
		rdmatensor_interruptible(node->rt, on);
	pthread_mutex_unlock(&node->starting);
}

struct rdmatensor *rdmatensor_node_handle(struct rdmatensor_node *node)
{
	return __atomic_load_n(&node->started, __ATOMIC_ACQUIRE) ? node->rt : NULL;
}

unsigned int rdmatensor_node_port(struct rdmatensor_node *node)
{
	struct rdmatensor_query query;

	return rdmatensor_query(node->rt, &query) ? 0 : query.listen_port;
}
