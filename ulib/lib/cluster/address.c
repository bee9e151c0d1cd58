// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses of ranks as text: brought into one form, so that equal ones are equal, and the own one,
 * which others can reach. No RDMA device has a loopback address, so that is never one of these.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster.h"

/* Of a host, that are looked at */
#define ADDRS_MAX 8

void cluster_join(char address[ADDRESS_ROOM], const char *host, unsigned int port)
{
	snprintf(address, ADDRESS_ROOM, strchr(host, ':') ? "[%.256s]:%u" : "%.256s:%u", host, port);
}

void cluster_split(const char *address, char host[ADDRESS_ROOM], unsigned int *port)
{
	uint16_t number = 0;

	/* It is in the form of cluster_join() */
	rt_split(address, RDMATENSOR_PORT, host, ADDRESS_ROOM, &number, NULL, 0);
	*port = number;
}

/* One form: an IPv6 address as the standard writes it (RFC 5952), a name in lower case */
static void tidy_host(char host[ADDRESS_ROOM])
{
	size_t length = strcspn(host, "%");
	char zone[ADDRESS_ROOM], *at;
	struct in6_addr in6;

	/* Behind % is the name of a network device */
	rt_copy_string(zone, sizeof(zone), host + length);
	host[length] = 0;
	if (inet_pton(AF_INET6, host, &in6) == 1)
		inet_ntop(AF_INET6, &in6, host, ADDRESS_ROOM);
	for (at = host; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	rt_copy_string(at, ADDRESS_ROOM - (size_t)(at - host), zone);
}

int cluster_tidy(const char *where, const char *text, char address[ADDRESS_ROOM])
{
	char host[ADDRESS_ROOM], cause[512];
	uint16_t port;
	int err;

	err = rt_split(text, RDMATENSOR_PORT, host, sizeof(host), &port, cause, sizeof(cause));
	if (err)
		return node_fail(err, "cluster: %s: %s", where, cause);
	if (!host[0] || host[strcspn(host, " \t/,=")])
		return node_fail(-EINVAL, "cluster: %s: \"%s\" is no host: write HOST[:PORT]", where, text);
	tidy_host(host);
	cluster_join(address, host, port);
	return 0;
}

static bool is_loopback(const uint8_t addr[28])
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	memcpy(&in, addr, sizeof(in));
	memcpy(&in6, addr, sizeof(in6));
	if (in.sin_family == AF_INET)
		return ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

/* Its first address. False: it has none */
static bool resolve(const char *address, uint8_t addrs[ADDRS_MAX][28], int *nr)
{
	*nr = rt_resolve(address, RDMATENSOR_PORT, 0, addrs, ADDRS_MAX, NULL, 0);
	return *nr > 0;
}

void cluster_localize(const struct rdmatensor_cluster *cluster, char address[ADDRESS_ROOM])
{
	char host[ADDRESS_ROOM];
	unsigned int port;

	cluster_split(address, host, &port);
	cluster_join(address, cluster->own_host, port);
}

void cluster_reachable(const struct rdmatensor_cluster *cluster, char address[ADDRESS_ROOM])
{
	uint8_t addrs[ADDRS_MAX][28];
	int nr, i;

	if (!resolve(address, addrs, &nr))
		return;
	for (i = 0; i < nr; i++)
		if (!is_loopback(addrs[i]))
			return;
	cluster_localize(cluster, address);
}

static bool same_host(const uint8_t addr[28], const struct sockaddr *own)
{
	const struct sockaddr_in6 *own6 = (const void *)own;
	const struct sockaddr_in *own4 = (const void *)own;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	memcpy(&in, addr, sizeof(in));
	memcpy(&in6, addr, sizeof(in6));
	if (!own || own->sa_family != in.sin_family)
		return false;
	if (own->sa_family == AF_INET)
		return own4->sin_addr.s_addr == in.sin_addr.s_addr;
	return own->sa_family == AF_INET6 &&
	       !memcmp(&own6->sin6_addr, &in6.sin6_addr, sizeof(in6.sin6_addr));
}

bool cluster_is_own(const char *address)
{
	struct ifaddrs *list, *at;
	uint8_t addrs[ADDRS_MAX][28];
	bool own = false;
	int nr, i;

	if (!resolve(address, addrs, &nr) || getifaddrs(&list))
		return false;
	for (i = 0; i < nr && !own; i++) {
		own = is_loopback(addrs[i]);
		for (at = list; at && !own; at = at->ifa_next)
			own = same_host(addrs[i], at->ifa_addr);
	}
	freeifaddrs(list);
	return own;
}

int cluster_own_override(char host[ADDRESS_ROOM], unsigned int *port)
{
	const char *text = cluster_env("RDMATENSOR_ADDRESS");
	char cause[512];
	uint16_t number;
	int err;

	*port = 0;
	if (!text)
		return 0;
	err = rt_split(text, 0, host, ADDRESS_ROOM, &number, cause, sizeof(cause));
	if (err || !host[0])
		return node_fail(-EINVAL, "cluster: RDMATENSOR_ADDRESS: %s",
				 err ? cause : "it names no host: write HOST or HOST:PORT");
	tidy_host(host);
	*port = number;
	return 1;
}

/* An address of a network device that others can use without knowing this host's devices */
static bool of_netdev(const char *netdev, char host[ADDRESS_ROOM])
{
	struct ifaddrs *list, *at;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (at = list; at && !found; at = at->ifa_next) {
		const struct sockaddr_in6 *in6 = (const void *)at->ifa_addr;
		const struct sockaddr_in *in = (const void *)at->ifa_addr;

		if (!at->ifa_addr || strcmp(at->ifa_name, netdev))
			continue;
		if (in->sin_family == AF_INET)
			found = inet_ntop(AF_INET, &in->sin_addr, host, ADDRESS_ROOM);
		else if (in->sin_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			found = inet_ntop(AF_INET6, &in6->sin6_addr, host, ADDRESS_ROOM);
	}
	freeifaddrs(list);
	return found;
}

/* Of the network devices that belong to an RDMA device, as IPoIB's do */
static bool of_device(const char *device, char host[ADDRESS_ROOM])
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net", device);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && of_netdev(entry->d_name, host);
	if (dir)
		closedir(dir);
	return found;
}

/* What a GID says, if that is an address that others can use */
static bool of_gid(const uint8_t gid[16], char host[ADDRESS_ROOM])
{
	/* Global unicast, or unique local; InfiniBand's are in other ranges */
	bool global = (gid[0] & 0xe0) == 0x20 || (gid[0] & 0xfe) == 0xfc;
	struct in6_addr in6;

	memcpy(&in6, gid, sizeof(in6));
	if (IN6_IS_ADDR_V4MAPPED(&in6))
		return inet_ntop(AF_INET, gid + 12, host, ADDRESS_ROOM);
	return global && inet_ntop(AF_INET6, gid, host, ADDRESS_ROOM);
}

int cluster_own_host(struct rdmatensor_cluster *cluster)
{
	struct rdmatensor_query query;
	unsigned int port;
	int err;

	err = cluster_own_override(cluster->own_host, &port);
	if (err)
		return err < 0 ? err : 0;
	err = rdmatensor_query(cluster->node->rt, &query);
	if (err)
		return node_fail(err, "cluster: the node's device: %s", strerror(-err));
	if (of_gid(query.gid, cluster->own_host) || of_device(query.device_name, cluster->own_host))
		return 0;
	return node_fail(-EADDRNOTAVAIL, "cluster: %s has no IP address that other hosts can use: give its network device one, or set RDMATENSOR_ADDRESS to HOST that they reach it by",
			 query.device_name);
}
