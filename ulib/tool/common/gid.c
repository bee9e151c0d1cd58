// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "gid.h"

const char *gid_text(const uint8_t gid[16], char *text, size_t len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char host[INET6_ADDRSTRLEN];

	if (!memcmp(gid, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, gid + 12, host, sizeof(host));
	else
		inet_ntop(AF_INET6, gid, host, sizeof(host));
	snprintf(text, len, "%s", host);
	return text;
}
