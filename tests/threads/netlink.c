// SPDX-License-Identifier: GPL-2.0
/* Dumps of the netlink family: all kinds of objects, while they come and go */
#define _GNU_SOURCE
#include <linux/genetlink.h>
#include <rdmatensor/netlink.h>
#include <sys/socket.h>
#include <unistd.h>
#include "threads.h"

struct request {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	char attrs[32];
};

static void request_init(struct request *r, int type, int cmd, int flags)
{
	memset(r, 0, sizeof(*r));
	r->nl.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	r->nl.nlmsg_type = type;
	r->nl.nlmsg_flags = NLM_F_REQUEST | flags;
	r->genl.cmd = cmd;
	r->genl.version = 1;
}

static void request_add(struct request *r, int type, const void *value, size_t bytes)
{
	struct nlattr *attr = (void *)((char *)r + NLMSG_ALIGN(r->nl.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + bytes;
	memcpy((char *)attr + NLA_HDRLEN, value, bytes);
	r->nl.nlmsg_len = NLMSG_ALIGN(r->nl.nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

/* The u16 attribute @type of the first answer, 0: there is none */
static int family_in(const char *at, ssize_t n)
{
	const struct nlmsghdr *nl = (void *)at;
	const char *attr = at + NLMSG_LENGTH(GENL_HDRLEN), *end = at + nl->nlmsg_len;

	if (n < (ssize_t)sizeof(*nl) || nl->nlmsg_type == NLMSG_ERROR || end > at + n)
		return 0;
	while (attr + NLA_HDRLEN <= end) {
		const struct nlattr *nla = (void *)attr;

		if (nla->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(attr + NLA_HDRLEN);
		attr += NLA_ALIGN(nla->nla_len);
	}
	return 0;
}

/* Return: objects, or a negative errno */
static int dump(int fd, struct request *r)
{
	char room[32768] __attribute__((aligned(8)));
	int objects = 0;

	if (send(fd, r, r->nl.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		struct nlmsghdr *nl = (void *)room;
		ssize_t n = recv(fd, room, sizeof(room), 0);

		if (n < 0)
			return -errno;
		for (; NLMSG_OK(nl, n); nl = NLMSG_NEXT(nl, n)) {
			if (nl->nlmsg_type == NLMSG_ERROR || nl->nlmsg_type == NLMSG_DONE) {
				int error = *(int *)NLMSG_DATA(nl);

				return error < 0 ? error : objects;
			}
			objects++;
		}
	}
}

int do_netlink(struct worker *w)
{
	static int family;
	struct timeval limit = { .tv_sec = patience_s };
	char room[4096] __attribute__((aligned(8)));
	struct request r;
	uint32_t context;
	int fd, ret = 0;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	enter(w, "netlink dump");
	if (!family) {
		request_init(&r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
		request_add(&r, CTRL_ATTR_FAMILY_NAME, RDMATENSOR_NL_NAME,
			    sizeof(RDMATENSOR_NL_NAME));
		if (send(fd, &r, r.nl.nlmsg_len, 0) > 0)
			family = family_in(room, recv(fd, room, sizeof(room), 0));
		if (!family)
			ret = -ENOENT;
	} else {
		request_init(&r, family, RDMATENSOR_NL_CMD_CONTEXT_GET +
			     below(w, RDMATENSOR_NL_CMD_TABLE_GET), NLM_F_DUMP);
		if (one_in(w, 8)) {
			context = below(w, 1000);
			request_add(&r, RDMATENSOR_NL_A_CONTEXT, &context, sizeof(context));
		}
		ret = dump(fd, &r);
	}
	leave(w);
	/* Or in the middle of it, when it was interrupted */
	close(fd);
	return ret < 0 ? ret : 0;
}
