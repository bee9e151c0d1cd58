// SPDX-License-Identifier: GPL-2.0
/*
 * A dump over netlink that takes several messages, and what others do meanwhile: what
 * happens in the same network namespace interrupts it, and nothing else does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/genetlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdmatensor/netlink.h>
#include "harness.h"

#define CONTEXTS 12

static struct side sides[CONTEXTS];

static struct {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	char attrs[64];
} request;

static void ask(int fd, int type, int flags, int cmd, int attr_bytes)
{
	request.nl.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) + attr_bytes;
	request.nl.nlmsg_type = type;
	request.nl.nlmsg_flags = NLM_F_REQUEST | flags;
	request.nl.nlmsg_seq++;
	request.genl.cmd = cmd;
	request.genl.version = 1;
	EQ(send(fd, &request, request.nl.nlmsg_len, 0), request.nl.nlmsg_len);
}

/* The number of our family */
static int family(int fd)
{
	static const char name[] = RDMATENSOR_NL_NAME;
	struct nlattr *attr = (struct nlattr *)request.attrs;
	char answer[4096] __attribute__((aligned(4)));
	ssize_t len, at;

	attr->nla_type = CTRL_ATTR_FAMILY_NAME;
	attr->nla_len = NLA_HDRLEN + sizeof(name);
	memcpy(request.attrs + NLA_HDRLEN, name, sizeof(name));
	ask(fd, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, NLA_ALIGN(attr->nla_len));
	len = recv(fd, answer, sizeof(answer), 0);
	for (at = NLMSG_LENGTH(GENL_HDRLEN); at + NLA_HDRLEN <= len; at += NLA_ALIGN(attr->nla_len)) {
		attr = (struct nlattr *)(answer + at);
		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(answer + at + NLA_HDRLEN);
		if (attr->nla_len < NLA_HDRLEN)
			break;
	}
	test_fail(__FILE__, __LINE__, "there is no netlink family '%s'", name);
}

/* A context comes, and goes */
static int come_here(void)
{
	return close(open("/dev/rdmatensor", O_RDWR)) ? 1 : 0;
}

static int come_elsewhere(void)
{
	return unshare(CLONE_NEWNET) ? 2 : come_here();
}

static void come_and_go(int elsewhere)
{
	EQ(test_child(elsewhere ? come_elsewhere : come_here), 0);
}

/* Return: whether it was interrupted. @meanwhile is called after its first message */
static int dump(int fd, int type, void (*meanwhile)(int), int arg)
{
	char part[4096] __attribute__((aligned(4)));
	int parts, interrupted = 0, contexts = 0;

	ask(fd, type, NLM_F_DUMP, RDMATENSOR_NL_CMD_CONTEXT_GET, 0);
	for (parts = 0; ; parts++) {
		ssize_t len = recv(fd, part, sizeof(part), MSG_TRUNC);
		struct nlmsghdr *nl = (struct nlmsghdr *)part;

		CHECK(len > 0 && len <= (ssize_t)sizeof(part));
		for (; NLMSG_OK(nl, len); nl = NLMSG_NEXT(nl, len)) {
			interrupted |= nl->nlmsg_flags & NLM_F_DUMP_INTR;
			CHECK(nl->nlmsg_type != NLMSG_ERROR);
			if (nl->nlmsg_type == NLMSG_DONE) {
				/* Else there was no meanwhile */
				CHECK(parts >= 2);
				CHECK(contexts >= CONTEXTS);
				return !!interrupted;
			}
			contexts++;
		}
		if (!parts && meanwhile)
			meanwhile(arg);
	}
}

static void small(struct rdmatensor_start *start)
{
	start->ring_entries = 16;
}

/* Return: the error that refuses the dump of one context by @cmd; 0: none does */
static int refused(int fd, int type, int cmd)
{
	char answer[4096] __attribute__((aligned(4)));
	struct nlattr *attr = (struct nlattr *)request.attrs;
	struct nlmsghdr *nl = (struct nlmsghdr *)answer;
	const uint32_t context = 1;
	ssize_t len;

	attr->nla_type = RDMATENSOR_NL_A_CONTEXT;
	attr->nla_len = NLA_HDRLEN + sizeof(context);
	memcpy(request.attrs + NLA_HDRLEN, &context, sizeof(context));
	ask(fd, type, NLM_F_DUMP, cmd, NLA_ALIGN(attr->nla_len));
	len = recv(fd, answer, sizeof(answer), 0);
	CHECK(NLMSG_OK(nl, len));
	if (nl->nlmsg_type != NLMSG_ERROR)
		return 0;
	return ((struct nlmsgerr *)NLMSG_DATA(nl))->error;
}

TEST(dump_of_domains_is_of_all)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	CHECK(fd >= 0);
	EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	EQ(refused(fd, family(fd), RDMATENSOR_NL_CMD_DOMAIN_GET), -EINVAL);
	/* It is not what is asked with that is wrong */
	EQ(refused(fd, family(fd), RDMATENSOR_NL_CMD_TABLE_GET), 0);
	close(fd);
}

TEST(dumps_are_their_namespaces)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	int fd, type, i;

	for (i = 0; i < CONTEXTS; i++)
		side_open(&sides[i], "dumped", 4096, 0, small);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	CHECK(fd >= 0);
	EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	type = family(fd);
	EQ(dump(fd, type, NULL, 0), 0);
	EQ(dump(fd, type, come_and_go, 0), 1);
	EQ(dump(fd, type, come_and_go, 1), 0);
	EQ(dump(fd, type, come_and_go, 0), 1);
	close(fd);
}
