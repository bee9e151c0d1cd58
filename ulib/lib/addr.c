// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses as text, and back.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

/* Longest host that is looked up: a DNS name, or IPv6 with an interface */
#define HOST_MAX 256

/**
 * struct parts - an address, cut up
 * @host: without brackets, may be empty
 * @port: text of the port, NULL: there is none
 */
struct parts {
	char host[HOST_MAX];
	const char *port;
};

static int cut(const char *text, struct parts *parts)
{
	const char *host = text, *end, *colon;

	parts->port = NULL;
	if (*text == '[') {
		host = text + 1;
		end = strchr(host, ']');
		if (!end || end == host)
			return -EINVAL;
		if (end[1] == ':')
			parts->port = end + 2;
		else if (end[1])
			return -EINVAL;
	} else {
		colon = strchr(text, ':');
		if (colon && !strchr(colon + 1, ':')) {
			end = colon;
			parts->port = colon + 1;
		} else {
			/* No colon, or an IPv6 address without brackets */
			end = text + strlen(text);
		}
	}
	if ((size_t)(end - host) >= sizeof(parts->host))
		return -EINVAL;
	memcpy(parts->host, host, (size_t)(end - host));
	parts->host[end - host] = '\0';
	return 0;
}

/* In the order in which getaddrinfo() would have them tried */
static unsigned int take_addrs(const struct addrinfo *list, uint16_t port, uint8_t (*addrs)[28],
			       unsigned int most)
{
	unsigned int nr = 0;

	for (; list && nr < most; list = list->ai_next) {
		if (list->ai_addrlen > sizeof(*addrs) ||
		    (list->ai_family != AF_INET && list->ai_family != AF_INET6))
			continue;
		memset(addrs[nr], 0, sizeof(*addrs));
		memcpy(addrs[nr], list->ai_addr, list->ai_addrlen);
		/* The port is at the same place in both families */
		((struct sockaddr_in *)(void *)addrs[nr++])->sin_port = htons(port);
	}
	return nr;
}

/* The number of addresses, or a negative errno */
static int lookup(const struct parts *parts, uint16_t port, uint8_t (*addrs)[28],
		  unsigned int most, char *cause, size_t cause_len)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list;
	unsigned int nr;
	int err, saved;

	if (strchr(parts->host, ':'))
		hints.ai_flags = AI_NUMERICHOST;
	err = getaddrinfo(parts->host, NULL, &hints, &list);
	saved = errno;
	if (err == EAI_MEMORY)
		return rt_cause(cause, cause_len, -ENOMEM,
				"address %s: out of memory", parts->host);
	if (err)
		return rt_cause(cause, cause_len, -EADDRNOTAVAIL,
				"address %s: %s: give a host that resolves, or a numeric address",
				parts->host, err == EAI_SYSTEM ?
				strerror(saved) : gai_strerror(err));
	nr = take_addrs(list, port, addrs, most);
	freeaddrinfo(list);
	return nr ? (int)nr : rt_cause(cause, cause_len, -EADDRNOTAVAIL,
				       "address %s: neither IPv4 nor IPv6", parts->host);
}

/* @port: in: where none is written; out: at least @least */
static int take_apart(const char *text, unsigned int least, struct parts *parts, uint64_t *port,
		      char *cause, size_t cause_len)
{
	/* What is returned is spelled out: analyzers look into this file alone */
	if (cut(text, parts)) {
		rt_cause(cause, cause_len, -EINVAL,
			 "address %s is refused: write host:port or [v6]:port", text);
		return -EINVAL;
	}
	if (parts->port && rt_parse_number(parts->port, least, 65535, port)) {
		rt_cause(cause, cause_len, -EINVAL,
			 "address %s is refused: the port is a number from %u to 65535", text,
			 least);
		return -EINVAL;
	}
	return 0;
}

int rt_split(const char *text, uint16_t default_port, char *host, size_t host_len, uint16_t *port,
	     char *cause, size_t cause_len)
{
	uint64_t number = default_port;
	struct parts parts;
	int err;

	err = take_apart(text, 1, &parts, &number, cause, cause_len);
	if (err)
		return err;
	if (strlen(parts.host) >= host_len)
		return rt_cause(cause, cause_len, -EINVAL,
				"address %s is refused: write host:port or [v6]:port", text);
	rt_copy_string(host, host_len, parts.host);
	*port = (uint16_t)number;
	return 0;
}

int rt_resolve(const char *text, uint16_t default_port, int passive, uint8_t (*addrs)[28],
	       unsigned int most, char *cause, size_t cause_len)
{
	uint64_t port = default_port;
	struct parts parts;
	int err;

	err = take_apart(text, passive ? 0 : 1, &parts, &port, cause, cause_len);
	if (err)
		return err;
	/* The resolver would take it for an address of four bytes in one number */
	if (parts.host[0] && !parts.host[strspn(parts.host, "0123456789")])
		return rt_cause(cause, cause_len, -EINVAL,
				"address %s is refused: a number alone is no host: %s", text,
				passive ? "write :PORT for a port, or a whole address" :
				"write a whole address, or a name");
	if (parts.host[0] && !(passive && !strcmp(parts.host, "*")))
		return lookup(&parts, (uint16_t)port, addrs, most, cause, cause_len);
	if (!passive)
		return rt_cause(cause, cause_len, -EINVAL,
				"address \"%s\" is refused: it names no host", text);
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
	};

	memset(addrs[0], 0, sizeof(*addrs));
	memcpy(addrs[0], &any, sizeof(any));
	return 1;
}

int rdmatensor_parse_addr(const char *text, uint16_t default_port, int passive,
			  uint8_t addr[28], char *cause, size_t cause_len)
{
	uint8_t first[1][28];
	int ret;

	ret = rt_resolve(text, default_port, passive, first, 1, cause, cause_len);
	if (ret < 0)
		return ret;
	memcpy(addr, first[0], sizeof(first[0]));
	return 0;
}

const char *rdmatensor_format_addr(const uint8_t addr[28], char *text,
				   size_t text_len)
{
	char host[INET6_ADDRSTRLEN], zone[IF_NAMESIZE + 1] = "";
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memcpy(&in, addr, sizeof(in));
	memcpy(&in6, addr, sizeof(in6));
	if (in.sin_family == AF_INET) {
		inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
		snprintf(text, text_len, "%s:%u", host, ntohs(in.sin_port));
	} else if (in6.sin6_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
		zone[0] = '%';
		if (!in6.sin6_scope_id ||
		    !if_indextoname(in6.sin6_scope_id, zone + 1))
			zone[0] = '\0';
		snprintf(text, text_len, "[%s%s]:%u", host, zone,
			 ntohs(in6.sin6_port));
	} else {
		snprintf(text, text_len, "-");
	}
	return text;
}
