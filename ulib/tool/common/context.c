// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a context needs until its first operation.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "context_options.h"
#include "gid.h"
#include "message.h"

const char *context_path(const struct context_options *options)
{
	const char *path = options->device_file;

	return path && *path ? path : RDMATENSOR_DEVICE_PATH;
}

int context_open(const struct context_options *options, struct rdmatensor **out)
{
	char cause[512];

	return rdmatensor_open_cause(context_path(options), out, cause, sizeof(cause)) ?
	       failed("%s", cause) : EXIT_OK;
}

int context_start(struct context_options *options, struct rdmatensor **out)
{
	struct rdmatensor_start *start = &options->start;
	char cause[512];
	int err;

	if (options->listen) {
		err = rdmatensor_start_listen(start, options->listen, cause,
					      sizeof(cause));
		if (err)
			return failed("--listen: %s", cause);
	}
	err = context_open(options, out);
	if (err)
		return err;
	err = rdmatensor_start(*out, start);
	if (err) {
		failed("%s%s%s", start->cause[0] ? "" : "START: ",
		       start->cause[0] ? start->cause : strerror(-err),
		       err == -ENOTUNIQ ? ": give one with --device" : "");
		rdmatensor_close(*out);
		*out = NULL;
		return EXIT_FAILED;
	}
	note("%s", start->cause);
	return EXIT_OK;
}

int context_counters(struct rdmatensor *rt, uint64_t *counters)
{
	int err = rdmatensor_stats(rt, 0, counters, RDMATENSOR_STAT_NR);

	return err ? failed("query counters: %s", strerror(-err)) : EXIT_OK;
}

int context_ring_holds(struct rdmatensor *rt, unsigned int in_flight, unsigned int channels)
{
	struct rdmatensor_query query;
	uint32_t enough = 1;
	int err;

	err = rdmatensor_query(rt, &query);
	if (err)
		return failed("query: %s", strerror(-err));
	if (in_flight + channels <= query.ring_entries)
		return EXIT_OK;
	while (enough < in_flight + channels)
		enough *= 2;
	return failed("--in-flight %u: the completion ring has only %u entries, one of which is for the end of each channel: give --ring-entries %u or more",
		      in_flight, query.ring_entries, enough);
}

int context_wait(struct rdmatensor *rt, unsigned int nr, uint64_t deadline_ns)
{
	int err;

	do {
		err = rdmatensor_wait(rt, nr, deadline_ns);
	} while (err == -EINTR);
	return err;
}

uint32_t wait_ms(uint64_t wait_ns)
{
	uint64_t ms = wait_ns / 1000000 + !!(wait_ns % 1000000);

	if (wait_ns == WAIT_DEFAULT)
		return 0;
	/* The ABI's field holds seven weeks */
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

uint64_t wait_left(uint64_t wait_ns, uint64_t end_ns)
{
	uint64_t now = rdmatensor_now_ns();

	if (wait_ns == WAIT_DEFAULT || !wait_ns)
		return wait_ns;
	return now < end_ns ? end_ns - now : 1;
}

int connect_within(struct rdmatensor *rt, uint64_t wait_ns, const char *peer, const char *worker,
		   uint32_t *channel, char *cause, size_t cause_len)
{
	struct rdmatensor_connect connect = { 0 };
	uint64_t end_ns;
	int err;

	if (__builtin_add_overflow(rdmatensor_now_ns(), wait_ns, &end_ns))
		end_ns = UINT64_MAX;

	if (worker && strlen(worker) >= sizeof(connect.worker)) {
		snprintf(cause, cause_len, "worker name %s is longer than %zu bytes", worker,
			 sizeof(connect.worker) - 1);
		return -EINVAL;
	}
	if (worker)
		strcpy(connect.worker, worker);
	if (!wait_ns)
		connect.flags = RDMATENSOR_CONNECT_NOWAIT;
	/* -EINTR follows a stop of the process, too; what ends it is not handled here */
	do {
		connect.timeout_ms = wait_ms(wait_left(wait_ns, end_ns));
		err = rdmatensor_connect_peer(rt, peer, &connect, cause, cause_len);
	} while (err == -EINTR && (!wait_ns || rdmatensor_now_ns() < end_ns));
	*channel = connect.out_channel;
	return err;
}

int context_connect(struct rdmatensor *rt, const struct context_options *options, const char *peer,
		    const char *worker, uint32_t *channel)
{
	char cause[512] = "";
	int err;

	err = connect_within(rt, options->wait_ns, peer, worker, channel, cause, sizeof(cause));
	if (err)
		return failed("%s", cause);
	note("%s", cause);
	return EXIT_OK;
}

const char *context_device_text(const struct rdmatensor_query *query,
				char *text, size_t len)
{
	snprintf(text, len, "%.63s port %u gid %u", query->device_name,
		 query->port, query->gid_index);
	return text;
}

const char *context_listen_text(struct rdmatensor *rt,
				const struct context_options *options, char *text,
				size_t len)
{
	struct rdmatensor_query query;
	struct sockaddr_in6 addr;
	char host[INET6_ADDRSTRLEN];
	bool wildcard;

	memcpy(&addr, options->start.listen_addr, sizeof(addr));
	if (rdmatensor_query(rt, &query) || !query.listen_port) {
		snprintf(text, len, "-");
		return text;
	}
	if (addr.sin6_family == AF_INET6)
		wildcard = IN6_IS_ADDR_UNSPECIFIED(&addr.sin6_addr);
	else
		wildcard = !((struct sockaddr_in *)&addr)->sin_addr.s_addr;
	if (!wildcard) {
		addr.sin6_port = htons((uint16_t)query.listen_port);
		return rdmatensor_format_addr((const uint8_t *)&addr, text,
					      len);
	}
	gid_text(query.gid, host, sizeof(host));
	snprintf(text, len, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
		 query.listen_port);
	return text;
}
