// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels to peers.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "internal.h"

/* Of a host, that are tried */
#define ADDRS_MAX 8

int rdmatensor_connect_raw(struct rdmatensor *rt,
			   struct rdmatensor_connect *connect)
{
	int err;

	connect->size = sizeof(*connect);
	err = rt_ioctl(rt, RDMATENSOR_CONNECT, connect);
	connect->cause[sizeof(connect->cause) - 1] = '\0';
	return err;
}

/* Another address of the same host may be one that this device reaches and the peer listens on */
static bool is_of_address(int err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ENETUNREACH ||
	       err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT || err == -ETIMEDOUT;
}

/*
 * One look at each address. @wait_at: out: the one to wait at, where somebody says that
 * nobody listens yet; else the first
 */
static int try_each(struct rdmatensor *rt, struct rdmatensor_connect *connect,
		    uint8_t (*addrs)[28], unsigned int nr, unsigned int *wait_at)
{
	uint32_t flags = connect->flags;
	int err = -EADDRNOTAVAIL;
	unsigned int i;

	*wait_at = nr;
	connect->flags |= RDMATENSOR_CONNECT_NOWAIT;
	for (i = 0; i < nr; i++) {
		memcpy(connect->addr, addrs[i], sizeof(connect->addr));
		err = rdmatensor_connect_raw(rt, connect);
		if (!is_of_address(err))
			break;
		if (err == -ECONNREFUSED && *wait_at == nr)
			*wait_at = i;
	}
	connect->flags = flags;
	if (*wait_at == nr)
		*wait_at = 0;
	return err;
}

/* What is left of @timeout_ms, at least one; 0: it is the default */
static uint32_t ms_left(uint32_t timeout_ms, uint64_t end_ns)
{
	uint64_t now = rdmatensor_now_ns();

	if (!timeout_ms)
		return 0;
	return now < end_ns ? (uint32_t)((end_ns - now + 999999) / 1000000) : 1;
}

int rdmatensor_connect_peer(struct rdmatensor *rt, const char *peer,
			    struct rdmatensor_connect *connect, char *cause, size_t cause_len)
{
	uint64_t end_ns = rdmatensor_deadline_ms(connect->timeout_ms);
	uint32_t timeout_ms = connect->timeout_ms;
	uint8_t addrs[ADDRS_MAX][28];
	unsigned int wait_at = 0;
	int nr, err = 0;

	nr = rt_resolve(peer, RDMATENSOR_PORT, 0, addrs, ADDRS_MAX, cause, cause_len);
	if (nr < 0)
		return nr;
	if (nr > 1)
		err = try_each(rt, connect, addrs, (unsigned int)nr, &wait_at);
	if (nr == 1 || (is_of_address(err) && !(connect->flags & RDMATENSOR_CONNECT_NOWAIT))) {
		memcpy(connect->addr, addrs[wait_at], sizeof(connect->addr));
		connect->timeout_ms = ms_left(timeout_ms, end_ns);
		err = rdmatensor_connect_raw(rt, connect);
		connect->timeout_ms = timeout_ms;
	}
	if (connect->cause[0])
		return rt_cause(cause, cause_len, err, "%s", connect->cause);
	return rt_cause(cause, cause_len, err, "connect: %s: %s", peer,
			err ? strerror(-err) : "up");
}

int rdmatensor_connect(struct rdmatensor *rt, const char *peer,
		       const char *worker, uint32_t timeout_ms,
		       uint32_t *channel, char *cause, size_t cause_len)
{
	struct rdmatensor_connect arg = { .timeout_ms = timeout_ms };
	int err;

	if (worker && strlen(worker) >= sizeof(arg.worker))
		return rt_cause(cause, cause_len, -EINVAL,
				"connect: worker name %s is longer than %zu bytes",
				worker, sizeof(arg.worker) - 1);
	if (worker)
		rt_copy_string(arg.worker, sizeof(arg.worker), worker);
	err = rdmatensor_connect_peer(rt, peer, &arg, cause, cause_len);
	if (!err)
		*channel = arg.out_channel;
	return err;
}

int rdmatensor_disconnect(struct rdmatensor *rt, uint32_t channel)
{
	struct rdmatensor_disconnect arg = {
		.size = sizeof(arg),
		.channel = channel,
	};

	return rt_ioctl(rt, RDMATENSOR_DISCONNECT, &arg);
}

int rdmatensor_channel_query(struct rdmatensor *rt,
			     struct rdmatensor_channel_query *query)
{
	query->size = sizeof(*query);
	return rt_ioctl(rt, RDMATENSOR_CHANNEL_QUERY, query);
}

int rdmatensor_channel_find(struct rdmatensor *rt, const char *worker, uint32_t *channel)
{
	struct rdmatensor_channel_query query = { .flags = RDMATENSOR_CHANNEL_NEXT };
	uint64_t incarnation = 0;
	uint32_t found = 0;
	int err;

	while (!(err = rdmatensor_channel_query(rt, &query))) {
		if (query.state != RDMATENSOR_CHANNEL_UP ||
		    strncmp(query.worker, worker, sizeof(query.worker)))
			continue;
		if (found && query.incarnation != incarnation)
			return -ENOTUNIQ;
		found = query.channel;
		incarnation = query.incarnation;
	}
	if (err != -ENOENT)
		return err;
	if (!found)
		return -ENOENT;
	*channel = found;
	return 0;
}
