// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "address.h"
#include "tool/common/local.h"
#include "tool/common/message.h"

#define UNIX "unix:"
/* Readers that wait to be accepted; each asks every few seconds */
#define BACKLOG 16

static int open_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool bind_and_listen(int fd, const void *addr, socklen_t bytes)
{
	return !bind(fd, addr, bytes) && !listen(fd, BACKLOG);
}

static int listen_failed(struct address *address, const char *text, int err)
{
	const char *remedy = err == EADDRINUSE ? ": end what listens there, or name another place" :
			     err == EEXIST ? ": it is no socket: name another place" :
			     err == EADDRNOTAVAIL ? ": name an address of this machine" : "";

	if (address->fd >= 0)
		close(address->fd);
	address->fd = -1;
	return failed("listen on %s: %s%s", text, strerror(err), remedy);
}

static int listen_unix(struct address *address, const char *text)
{
	const char *path = text + strlen(UNIX);
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	if (!*path || strlen(path) > LOCAL_PATH_MAX)
		return misused("--listen %s is refused: a path has 1 to %d bytes", text,
			       LOCAL_PATH_MAX);
	memcpy(un.sun_path, path, strlen(path) + 1);
	address->fd = local_listen(&un, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, BACKLOG,
				   &address->made);
	if (address->fd < 0)
		return listen_failed(address, text, -address->fd);
	address->un = un;
	snprintf(address->text, sizeof(address->text), "%s", text);
	return EXIT_OK;
}

static int listen_ip(struct address *address, const char *text)
{
	union {
		uint8_t bytes[28];
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;
	socklen_t bytes;
	char cause[256], name[128];
	int on = 1;

	if (rdmatensor_parse_addr(text, 0, 1, addr.bytes, cause, sizeof(cause)))
		return misused("--listen %s: %s", text, cause);
	bytes = addr.any.sa_family == AF_INET6 ? sizeof(addr.in6) : sizeof(addr.in);
	address->fd = open_socket(addr.any.sa_family);
	if (address->fd < 0)
		return failed("listen on %s: %s", text, strerror(errno));
	/* Connections of a command before this one that are still closing do not matter */
	setsockopt(address->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind_and_listen(address->fd, &addr, bytes) ||
	    getsockname(address->fd, &addr.any, &bytes))
		return listen_failed(address, text, errno);
	snprintf(address->text, sizeof(address->text), "http://%s",
		 rdmatensor_format_addr(addr.bytes, name, sizeof(name)));
	return EXIT_OK;
}

int address_listen(struct address *address, const char *text)
{
	memset(address, 0, sizeof(*address));
	address->fd = -1;
	return strncmp(text, UNIX, strlen(UNIX)) ? listen_ip(address, text) :
						   listen_unix(address, text);
}

void address_remove(const struct address *address)
{
	if (*address->un.sun_path)
		local_remove(&address->un, &address->made);
}
