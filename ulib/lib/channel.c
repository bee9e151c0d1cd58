// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels to peers.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "internal.h"

/* Of a host, that are tried */
#define ADDRS_MAX 8
/* The parameter's default, where another program has started the context */
#define HANDSHAKE_MS 10000

int rdmatensor_connect_raw_sized(struct rdmatensor *rt, struct rdmatensor_connect *connect,
				 size_t size)
{
	int err;

	if (size < RT_END_OF(struct rdmatensor_connect, cause))
		return -EINVAL;
	connect->size = (uint32_t)size;
	err = rt_ioctl(rt, RDMATENSOR_CONNECT, connect);
	connect->cause[sizeof(connect->cause) - 1] = '\0';
	return err;
}

/* Another address of the same host may be one that this device reaches and the peer listens on */
static bool is_of_address(int err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ENETUNREACH ||
	       err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT || err == -ETIMEDOUT ||
	       err == -EXDEV;
}

/* Whole milliseconds until then, at least one */
static uint32_t ms_until(uint64_t end_ns)
{
	uint64_t now = rdmatensor_now_ns();

	return now < end_ns ? (uint32_t)((end_ns - now + 999999) / 1000000) : 1;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * How long an address may take. Who does not wait shares the time out among those that were
 * not tried yet; else one that answers nothing keeps the others waiting for a second, and
 * in each round for twice as long, for one that is slow may be right all the same
 */
static uint32_t turn_ms(uint64_t end_ns, bool waits, unsigned int round, unsigned int addrs_left)
{
	uint32_t left = ms_until(end_ns);

	if (!waits)
		return left / addrs_left ? left / addrs_left : 1;
	return lesser(left, 1000u << (round < 10 ? round : 10));
}

/*
 * In turns, without waiting at any of them: a peer that comes later may listen on each. What
 * is told in the end is of the address whose host says that nobody listens there yet, or of
 * the first
 */
static int connect_any(struct rdmatensor *rt, uint8_t (*addrs)[28], unsigned int nr,
		       struct rdmatensor_connect *connect)
{
	bool waits = !(connect->flags & RDMATENSOR_CONNECT_NOWAIT);
	uint32_t usual_ms = rt->handshake_ms ? rt->handshake_ms : HANDSHAKE_MS;
	uint64_t end_ns = rdmatensor_deadline_ms(connect->timeout_ms ? connect->timeout_ms :
						 usual_ms);
	struct rdmatensor_connect turn = *connect, told = { 0 };
	struct timespec pause = { 0 };
	unsigned int round, i;
	int err, worst = 0;

	turn.flags |= RDMATENSOR_CONNECT_NOWAIT;
	for (round = 0; !round || rdmatensor_now_ns() < end_ns; round++) {
		for (i = 0; i < nr; i++) {
			memcpy(turn.addr, addrs[i], sizeof(turn.addr));
			turn.timeout_ms = turn_ms(end_ns, waits, round, nr - i);
			err = rdmatensor_connect_raw(rt, &turn);
			if (!is_of_address(err)) {
				*connect = turn;
				return err;
			}
			if (!worst || (err == -ECONNREFUSED && worst != err)) {
				worst = err;
				told = turn;
			}
		}
		if (!waits)
			break;
		pause.tv_nsec = 1000000l * lesser(ms_until(end_ns), round < 6 ? 10u << round : 900);
		if (nanosleep(&pause, NULL))
			return -EINTR;
	}
	*connect = told;
	return worst;
}

int rdmatensor_connect_peer_sized(struct rdmatensor *rt, const char *peer,
				  struct rdmatensor_connect *connect, size_t size, char *cause,
				  size_t cause_len)
{
	struct rdmatensor_connect arg;
	uint8_t addrs[ADDRS_MAX][28];
	int nr, err;

	err = rt_take_struct(&arg, sizeof(arg), connect, size);
	if (err)
		return rt_cause(cause, cause_len, err,
				"connect: %s: the argument has fields that this library does not know: install the library that the program was built with, or a later one",
				peer);
	nr = rt_resolve(peer, RDMATENSOR_PORT, 0, addrs, ADDRS_MAX, cause, cause_len);
	if (nr < 0)
		return nr;
	if (nr == 1) {
		memcpy(arg.addr, addrs[0], sizeof(arg.addr));
		err = rdmatensor_connect_raw(rt, &arg);
	} else {
		err = connect_any(rt, addrs, (unsigned int)nr, &arg);
		arg.flags = connect->flags;
		arg.timeout_ms = connect->timeout_ms;
	}
	rt_give_struct(connect, size, &arg, sizeof(arg));
	if (arg.cause[0])
		return rt_cause(cause, cause_len, err, "%s", arg.cause);
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

int rdmatensor_channel_query_sized(struct rdmatensor *rt, struct rdmatensor_channel_query *query,
				   size_t size)
{
	query->size = (uint32_t)size;
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
