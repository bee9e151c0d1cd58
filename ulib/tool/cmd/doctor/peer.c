// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What doctor tries with a peer: the route to it, a channel, and fetches.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "content.h"
#include "peer.h"
#include "say.h"
#include "tool/common/context.h"
#include "tool/common/published.h"
#include "tool/common/store.h"

static const char *connect_remedy(int err)
{
	switch (err) {
	case -ECONNREFUSED:
		return "start a worker that listens there, for a try: rdmatensor perf --server";
	case -EHOSTUNREACH:
		return "is that machine up (ping), and in the same network and VLAN? `ip neighbour` shows FAILED where nobody answers for the address";
	case -ENETUNREACH:
		return "correct the address, or give this machine a route to it: `ip route get` with the address";
	case -ETIMEDOUT:
		return "is that machine up (ping), are its module and RDMA device there (rdmatensor doctor on it), does a firewall drop UDP port 4791?";
	case -ENOENT:
		return "another worker listens there: check --worker and the port";
	default:
		return "the kernel logs of both sides say more; rdmatensor doctor on the other one";
	}
}

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
				  &((const struct sockaddr_in6 *)b)->sin6_addr);
}

/* Network device that packets to @addr leave by; -errno: there is no route */
static int route_netdev(const uint8_t addr[28], char *netdev, size_t len)
{
	struct sockaddr_storage to = { 0 }, from = { 0 };
	socklen_t from_len = sizeof(from);
	struct ifaddrs *all = NULL, *one;
	int sock, err = 0;

	*netdev = '\0';
	memcpy(&to, addr, 28);
	sock = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&to, to.ss_family == AF_INET ?
		    sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) ||
	    getsockname(sock, (struct sockaddr *)&from, &from_len))
		err = -errno;
	close(sock);
	if (err || getifaddrs(&all))
		return err;
	for (one = all; one; one = one->ifa_next)
		if (same_address(one->ifa_addr, &from))
			snprintf(netdev, len, "%s", one->ifa_name);
	freeifaddrs(all);
	return 0;
}

static bool is_loopback(const uint8_t addr[28])
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (in->sin_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return in6->sin6_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* False: there is no route, or none over the device */
static bool say_route(struct doctor *doctor, const uint8_t addr[28])
{
	char where[80], netdev[32], remedy[256];
	int err;

	rdmatensor_format_addr(addr, where, sizeof(where));
	err = route_netdev(addr, netdev, sizeof(netdev));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "route",
			   "add a route to it over the RDMA device's network device: ip route add",
			   "route to %s: %s", where, strerror(-err));
		return false;
	}
	if (!strcmp(netdev, "lo") && is_loopback(addr)) {
		doctor_say(doctor, VERDICT_FAIL, "route",
			   "take an address of the RDMA device's network device, see `ip address`",
			   "%s is a loopback address, which no RDMA device has", where);
		return false;
	}
	/* A route to an address of this machine is over lo */
	if (*netdev && *doctor->netdev && strcmp(netdev, doctor->netdev) && strcmp(netdev, "lo")) {
		snprintf(remedy, sizeof(remedy),
			 "take the device that is over %s (--device %s), or route by %s", netdev,
			 netdev, doctor->netdev);
		doctor_say(doctor, VERDICT_FAIL, "route", remedy,
			   "%s is reached over %s, but the RDMA device is over %s", where, netdev,
			   doctor->netdev);
		return false;
	}
	doctor_say(doctor, VERDICT_OK, "route", NULL, "%s%s%s", where, *netdev ? " over " : "",
		   netdev);
	return true;
}

/*
 * The index of a `serve`, which has any length. Return: 0; -EMSGSIZE: it is longer than the
 * region; -ETIMEDOUT: the peer has none
 */
static int fetch_index_of(struct doctor *doctor, uint32_t channel, const struct store *store,
			  struct rdmatensor_cqe *cqe)
{
	return rdmatensor_fetch(doctor->rt, channel, INDEX_NAME, 0, &store->pool, store->offset,
				CONTENT_LONG, rdmatensor_deadline_ms(CONTENT_MS), cqe);
}

/* The peer has no tensor of perf */
static void say_no_perf(struct doctor *doctor, uint32_t channel, const struct store *store,
			const char *name)
{
	struct rdmatensor_cqe cqe;
	int err = fetch_index_of(doctor, channel, store, &cqe);

	if (!err)
		doctor_say(doctor, VERDICT_OK, "fetch", NULL,
			   "%" PRIu64 " bytes from the peer, the index of a `rdmatensor serve`; with `rdmatensor perf --server` there, packets of full length are tried too",
			   (uint64_t)cqe.tensor_bytes);
	else if (err == -EMSGSIZE)
		doctor_say(doctor, VERDICT_OK, "fetch", NULL,
			   "messages come through, and the peer is a `rdmatensor serve` with an index of %" PRIu64 " bytes; with `rdmatensor perf --server` there, contents are tried too",
			   (uint64_t)cqe.tensor_bytes);
	else
		doctor_say(doctor, VERDICT_WARN, "fetch",
			   "start `rdmatensor perf --server` there, and give its address",
			   "messages come through, but the peer has no tensor \"%s\" to try", name);
}

static void say_contents(struct doctor *doctor, uint32_t channel)
{
	struct rdmatensor_channel_query query = { .channel = channel };
	uint64_t short_ns, long_ns;
	char name[48], cause[512];
	struct store store;
	int err;

	if (store_create_cause(doctor->rt, CONTENT_LONG, RDMATENSOR_POOL_PEERS_WRITE, &store,
			       cause, sizeof(cause))) {
		content_no_memory(doctor, cause);
		return;
	}
	perf_name(CONTENT_SHORT, name);
	err = content_fetch(doctor, channel, name, &store, CONTENT_SHORT, &short_ns);
	if (err == -ETIMEDOUT && !rdmatensor_channel_query(doctor->rt, &query) &&
	    query.state == RDMATENSOR_CHANNEL_UP) {
		say_no_perf(doctor, channel, &store, name);
		return;
	}
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "fetch",
			   "the kernel logs of both sides say more; do all devices on the way have the same MTU?",
			   "%d bytes from the peer, tensor \"%s\": %s", CONTENT_SHORT, name,
			   strerror(-err));
		return;
	}
	doctor_say(doctor, VERDICT_OK, "fetch", NULL, "%d bytes from the peer in %.0f us",
		   CONTENT_SHORT, (double)short_ns / 1e3);
	perf_name(CONTENT_LONG, name);
	err = content_fetch(doctor, channel, name, &store, CONTENT_LONG, &long_ns);
	if (err)
		doctor_say(doctor, VERDICT_FAIL, "fetch",
			   "full packets do not come through: give all network devices and switches on the way one MTU, or set RDMA_QP_MTU to what the smallest carries",
			   "%d bytes from the peer, tensor \"%s\": %s", CONTENT_LONG, name,
			   strerror(-err));
	else
		doctor_say(doctor, VERDICT_OK, "fetch", NULL,
			   "%d bytes, in packets of full length, in %.0f us", CONTENT_LONG,
			   (double)long_ns / 1e3);
}

void doctor_try_peer(struct doctor *doctor)
{
	struct rdmatensor_channel_query query = { 0 };
	char cause[512] = "";
	uint32_t channel = 0;
	uint8_t addr[28];
	int err;

	doctor->here_is_well = doctor->worst != VERDICT_FAIL;
	err = rdmatensor_parse_addr(doctor->peer, RDMATENSOR_PORT, 0, addr, cause, sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "peer", "give host, host:port or [v6]:port", "%s",
			   cause);
		return;
	}
	/* A host may have several addresses: the one of the channel counts */
	err = connect_within(doctor->rt, 0, doctor->peer, NULL, &channel, cause, sizeof(cause));
	query.channel = channel;
	if (!err && !rdmatensor_channel_query(doctor->rt, &query))
		memcpy(addr, query.addr, sizeof(addr));
	if (!say_route(doctor, addr)) {
		doctor->here_is_well = false;
		return;
	}
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "peer", connect_remedy(err), "%s", cause);
		return;
	}
	doctor_say(doctor, VERDICT_OK, "peer", NULL, "%s", cause);
	say_contents(doctor, channel);
}
