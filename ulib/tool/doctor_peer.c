// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What doctor tries with a context: the choice of the device, a fetch from itself, and
 * one from a peer.
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

#include "doctor.h"
#include "params.h"
#include "perf.h"

/* What it fetches from itself */
#define OWN_NAME "rdmatensor.doctor"
/* One packet of any MTU, and several of the longest */
#define SHORT 1024
#define LONG 32768
#define FETCH_MS 5000

static const char *connect_remedy(int err)
{
	switch (err) {
	case -ECONNREFUSED:
		return "start a worker that listens there, for a try: rdmatensor perf --server";
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return "is that machine up (ping), are its module and RDMA device there (rdmatensor doctor on it), does a firewall drop UDP port 4791?";
	case -ENOENT:
		return "another worker listens there: see --worker and the port";
	default:
		return "the kernel logs of both sides say more; rdmatensor doctor on the other one";
	}
}

static void say_mtu(struct doctor *doctor, const struct rdmatensor_query *query)
{
	char path[128], text[32] = "";
	FILE *file;

	if (*doctor->netdev) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", doctor->netdev);
		file = fopen(path, "re");
		if (file) {
			if (!fgets(text, sizeof(text), file))
				text[0] = '\0';
			fclose(file);
		}
		text[strcspn(text, "\n")] = '\0';
	}
	if (query->mtu < 1024)
		doctor_say(doctor, VERDICT_WARN, "mtu",
			   "give the network device an MTU of 1500 or more (4200 for 4096), and do not set the parameter mtu",
			   "path MTU %u%s%s: short packets cost bandwidth", query->mtu,
			   *text ? ", network device's " : "", text);
	else
		doctor_say(doctor, VERDICT_OK, "mtu", NULL, "path MTU %u%s%s%s%s", query->mtu,
			   *text ? ", " : "", *text ? doctor->netdev : "", *text ? " has " : "",
			   text);
}

/* What the cause begins with, which check that is, and what to do about it */
static const struct {
	const char *cause;
	const char *check;
	const char *remedy;
} refusals[] = {
	{ "START: mtu ", "mtu",
	  "take RDMA_QP_MTU and the parameter mtu away, or raise the network device's MTU: ip link set NETDEV mtu 4200" },
	{ "", "start", "set what it names: rdmatensor set NAME VALUE, or for one command its option or --param NAME=VALUE" },
};

static void say_start(struct doctor *doctor, int err)
{
	const struct rdmatensor_start *start = &doctor->common.start;
	char device[64], remedy[160];
	size_t i = 0;

	while (strncmp(start->cause, refusals[i].cause, strlen(refusals[i].cause)))
		i++;
	snprintf(remedy, sizeof(remedy), "%s", refusals[i].remedy);
	/* Nobody has named one here: it is the module's */
	if (strstr(start->cause, "is no RDMA device") && *start->device_name)
		snprintf(remedy, sizeof(remedy), "give --device one of those that there are: rdma link, or none for the only active one");
	else if (!strncmp(start->cause, "listen ", 7))
		snprintf(remedy, sizeof(remedy), "give another address with --listen, or none for all");
	else if (strstr(start->cause, "is no RDMA device") &&
		 !param_read("device", device, sizeof(device)))
		snprintf(remedy, sizeof(remedy), "the module's parameter device is %s: rdmatensor set device NAME, or '' for the only active one",
			 device);
	doctor_say(doctor, VERDICT_FAIL, refusals[i].check, remedy, "%s",
		   start->cause[0] ? start->cause : strerror(-err));
}

bool doctor_start(struct doctor *doctor)
{
	struct rdmatensor_start *start = &doctor->common.start;
	struct rdmatensor_query query;
	char cause[512], where[80];
	int err;

	err = rdmatensor_start_listen(start, doctor->common.listen ? doctor->common.listen : ":0",
				      cause, sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "listen", "see --listen", "%s", cause);
		return false;
	}
	err = rdmatensor_open_cause(context_path(&doctor->common), &doctor->rt, cause,
				    sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "start",
			   "it could be opened before: is the module being unloaded?", "%s", cause);
		return false;
	}
	err = rdmatensor_start(doctor->rt, start);
	if (err) {
		say_start(doctor, err);
		goto fail;
	}
	err = rdmatensor_query(doctor->rt, &query);
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "start", "see the kernel log", "query: %s",
			   strerror(-err));
		goto fail;
	}
	doctor_netdev(&query, doctor->netdev, sizeof(doctor->netdev));
	doctor_say(doctor, VERDICT_OK, "choice", NULL, "%s", start->cause);
	say_mtu(doctor, &query);
	doctor_say(doctor, VERDICT_OK, "listen", NULL, "%s",
		   context_listen_text(doctor->rt, &doctor->common, where, sizeof(where)));
	return true;

fail:
	rdmatensor_close(doctor->rt);
	doctor->rt = NULL;
	return false;
}

/* 0, or a negative errno; -EILSEQ: other bytes than perf's */
static int fetch_words(struct doctor *doctor, uint32_t channel, const char *name,
		       const struct store *store, uint64_t bytes, uint64_t *ns)
{
	uint64_t *words = (void *)((char *)store->pool.base + store->offset);
	uint64_t begun = rdmatensor_now_ns(), i;
	struct rdmatensor_cqe cqe;
	int err;

	memset(words, 0, bytes);
	err = rdmatensor_fetch(doctor->rt, channel, name, 0, &store->pool, store->offset, bytes,
			       rdmatensor_deadline_ms(FETCH_MS), &cqe);
	*ns = rdmatensor_now_ns() - begun;
	for (i = 0; !err && i < bytes / 8; i++)
		if (words[i] != perf_word(i))
			err = -EILSEQ;
	return err;
}

/* A tensor of LONG bytes at the beginning of @store, of which the rest is free */
static int publish_own(struct doctor *doctor, const struct store *store)
{
	uint64_t *words = (void *)((char *)store->pool.base + store->offset);
	struct rdmatensor_op op;
	__u64 dim = LONG;
	uint64_t i;

	for (i = 0; i < LONG / 8; i++)
		words[i] = perf_word(i);
	rdmatensor_prep_publish(&op, OWN_NAME, 0, store->pool.id, store->offset, LONG,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	return rdmatensor_submit(doctor->rt, &op, 1, 0, 0, NULL);
}

/* rdma_cm takes no connection to oneself by a link-local address */
static bool is_link_local(struct doctor *doctor)
{
	struct rdmatensor_query query;

	return !rdmatensor_query(doctor->rt, &query) && query.gid[0] == 0xfe &&
	       (query.gid[1] & 0xc0) == 0x80;
}

static void say_memory(struct doctor *doctor, const char *cause)
{
	doctor_say(doctor, VERDICT_FAIL, "memory", "what the message says, or see memlock", "%s",
		   cause);
}

void doctor_itself(struct doctor *doctor)
{
	const char *remedy = "has the link been down? soft-RoCE takes no connections after that: rdma link del, then rdma link add it again; else see the kernel log";
	struct store from, to;
	char cause[512] = "", where[80];
	uint32_t channel;
	uint64_t ns;
	int err;

	if (store_create_cause(doctor->rt, LONG, &from, cause, sizeof(cause)) ||
	    store_create_cause(doctor->rt, LONG, &to, cause, sizeof(cause))) {
		say_memory(doctor, cause);
		return;
	}
	if (is_link_local(doctor)) {
		doctor_say(doctor, VERDICT_WARN, "itself",
			   "try a PEER on the link, as [fe80::1%eth0]:port",
			   "not tried: nobody can connect to itself by a link-local address");
		return;
	}
	context_listen_text(doctor->rt, &doctor->common, where, sizeof(where));
	err = publish_own(doctor, &from);
	if (!err)
		err = connect_within(doctor->rt, 0, where, NULL, &channel, cause, sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "itself", remedy, "%s",
			   *cause ? cause : strerror(-err));
		return;
	}
	err = fetch_words(doctor, channel, OWN_NAME, &to, LONG, &ns);
	if (err)
		doctor_say(doctor, VERDICT_FAIL, "itself", remedy,
			   "a fetch from itself over the device: %s", strerror(-err));
	else
		doctor_say(doctor, VERDICT_OK, "itself", NULL,
			   "fetched %d bytes from itself over the device in %.0f us", LONG,
			   (double)ns / 1e3);
	rdmatensor_disconnect(doctor->rt, channel);
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

/* False: there is none, or none that the device could take */
static bool say_route(struct doctor *doctor, const uint8_t addr[28])
{
	char where[80], netdev[32], remedy[256];
	int err;

	rdmatensor_format_addr(addr, where, sizeof(where));
	err = route_netdev(addr, netdev, sizeof(netdev));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "route",
			   "ip route add: a way to it over the RDMA device's network device",
			   "no route to %s: %s", where, strerror(-err));
		return false;
	}
	if (!strcmp(netdev, "lo") && is_loopback(addr)) {
		doctor_say(doctor, VERDICT_FAIL, "route",
			   "take an address of the RDMA device's network device, see `ip address`",
			   "%s is a loopback address, which no RDMA device has", where);
		return false;
	}
	/* To an own address it is lo */
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
 * What `serve` has in place of perf's tensors: its index, which is of any length. Return:
 * 0; -EMSGSIZE: it is there, and longer than the place; -ETIMEDOUT: the peer has none
 */
static int fetch_index_of(struct doctor *doctor, uint32_t channel, const struct store *store,
			  struct rdmatensor_cqe *cqe)
{
	return rdmatensor_fetch(doctor->rt, channel, INDEX_NAME, 0, &store->pool, store->offset,
				LONG, rdmatensor_deadline_ms(FETCH_MS), cqe);
}

/* Of a peer that has no tensor of perf's */
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

	if (store_create_cause(doctor->rt, LONG, &store, cause, sizeof(cause))) {
		say_memory(doctor, cause);
		return;
	}
	perf_name(SHORT, name);
	err = fetch_words(doctor, channel, name, &store, SHORT, &short_ns);
	if (err == -ETIMEDOUT && !rdmatensor_channel_query(doctor->rt, &query) &&
	    query.state == RDMATENSOR_CHANNEL_UP) {
		say_no_perf(doctor, channel, &store, name);
		return;
	}
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "fetch",
			   "the kernel logs of both sides say more; is the MTU of all on the way the same?",
			   "%d bytes from the peer: %s", SHORT, strerror(-err));
		return;
	}
	doctor_say(doctor, VERDICT_OK, "fetch", NULL, "%d bytes from the peer in %.0f us", SHORT,
		   (double)short_ns / 1e3);
	perf_name(LONG, name);
	err = fetch_words(doctor, channel, name, &store, LONG, &long_ns);
	if (err)
		doctor_say(doctor, VERDICT_FAIL, "fetch",
			   "full packets do not come through: give all network devices and switches on the way one MTU, or set RDMA_QP_MTU to what the smallest carries",
			   "%d bytes from the peer: %s", LONG, strerror(-err));
	else
		doctor_say(doctor, VERDICT_OK, "fetch", NULL,
			   "%d bytes, in packets of full length, in %.0f us", LONG,
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
	/* Of a host with several addresses the one counts that leads there */
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
