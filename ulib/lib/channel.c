// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels to peers.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

int rdmatensor_connect_raw(struct rdmatensor *rt,
			   struct rdmatensor_connect *connect)
{
	int err;

	connect->size = sizeof(*connect);
	err = rt_ioctl(rt, RDMATENSOR_CONNECT, connect);
	connect->cause[sizeof(connect->cause) - 1] = '\0';
	return err;
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
	err = rdmatensor_parse_addr(peer, RDMATENSOR_PORT, 0, arg.addr, cause,
				    cause_len);
	if (err)
		return err;
	err = rdmatensor_connect_raw(rt, &arg);
	if (arg.cause[0])
		rt_cause(cause, cause_len, err, "%s", arg.cause);
	else
		rt_cause(cause, cause_len, err, "connect: %s: %s", peer,
			 err ? strerror(-err) : "up");
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
