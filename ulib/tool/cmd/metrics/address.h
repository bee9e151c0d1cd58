/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where metrics are asked for: an address of IP, or a socket in the file system.
 */
#ifndef TOOL_METRICS_ADDRESS_H
#define TOOL_METRICS_ADDRESS_H

#include <sys/stat.h>
#include <sys/un.h>

/**
 * struct address - a socket that listens
 * @fd: the socket, which does not block; -1: not open
 * @text: what it is to be called, as "http://10.0.0.1:9000" or "unix:/run/metrics"
 * @un: its place in the file system; an empty path: it has none
 * @made: the file there
 */
struct address {
	int fd;
	char text[160];
	struct sockaddr_un un;
	struct stat made;
};

/*
 * "ADDR:PORT", as for rdmatensor_parse_addr(), or "unix:PATH"; a socket at PATH that nobody listens
 * at is replaced. EXIT_OK, or EXIT_FAILED or EXIT_USAGE with a message
 */
int address_listen(struct address *address, const char *text);
/* Takes the socket out of the file system, before whoever accepts from it closes it */
void address_remove(const struct address *address);

#endif
