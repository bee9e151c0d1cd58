/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The contexts of this user, as `rdmatensor show contexts` has them, for those who may not ask
 * by netlink: a line "CONTEXT PID WORKER" of each.
 *
 *	own
 *
 * Nothing but the library and the kernel's headers; genlmsg_parse() of libnl does what attribute()
 * does.
 */
#include <rdmatensor/netlink.h>
#include <rdmatensor/rdmatensor.h>

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Contexts that come and go meanwhile */
#define TRIES 10

static struct nlmsghdr buf[RDMATENSOR_DUMP_ROOM_MAX / sizeof(struct nlmsghdr)];

/* Return: the attribute of this type, or NULL; an unknown one is a later module's */
static const struct nlattr *attribute(const struct nlmsghdr *message, int type)
{
	const char *at = (const char *)NLMSG_DATA(message) + GENL_HDRLEN;
	const char *end = (const char *)message + message->nlmsg_len;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *attr = (const void *)at;

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > end - at)
			break;
		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			return attr;
		at += NLA_ALIGN(attr->nla_len);
	}
	return NULL;
}

static unsigned int number(const struct nlmsghdr *message, int type)
{
	const struct nlattr *attr = attribute(message, type);
	unsigned int value = 0;

	if (attr && attr->nla_len >= NLA_HDRLEN + sizeof(value))
		memcpy(&value, (const char *)attr + NLA_HDRLEN, sizeof(value));
	return value;
}

static void print(FILE *lines, const struct nlmsghdr *message)
{
	const struct nlattr *worker = attribute(message, RDMATENSOR_NL_A_WORKER);

	fprintf(lines, "%u %u %.*s\n", number(message, RDMATENSOR_NL_A_CONTEXT),
		number(message, RDMATENSOR_NL_A_PID), worker ? worker->nla_len - NLA_HDRLEN : 0,
		worker ? (const char *)worker + NLA_HDRLEN : "");
}

/* All of them. Return: 0; 1: something came or went meanwhile; a negative errno */
static int dump(struct rdmatensor *rt, FILE *lines)
{
	struct rdmatensor_dump dump = {
		.size = sizeof(dump), .command = RDMATENSOR_NL_CMD_CONTEXT_GET,
		.buf_uptr = (uint64_t)(uintptr_t)buf, .room = sizeof(buf),
	};
	int changed = 0, err;

	do {
		struct nlmsghdr *message = buf;
		int left;

		err = rdmatensor_dump(rt, &dump);
		if (err)
			return err;
		changed |= dump.flags & RDMATENSOR_DUMP_CHANGED;
		for (left = (int)dump.out_bytes; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left))
			print(lines, message);
	} while (dump.out_bytes);
	return !!changed;
}

int main(void)
{
	struct rdmatensor *rt;
	char cause[256] = "";
	int err, i;

	err = rdmatensor_open_cause(NULL, &rt, cause, sizeof(cause));
	if (err)
		return fprintf(stderr, "own: %s\n", cause), 1;
	for (err = 1, i = 0; err > 0 && i < TRIES; i++) {
		char *text = NULL;
		size_t bytes;
		FILE *lines = open_memstream(&text, &bytes);

		if (!lines)
			return perror("own"), 1;
		err = dump(rt, lines);
		if (fclose(lines))
			return perror("own"), 1;
		/* Of a list with gaps nothing is shown */
		if (!err)
			fputs(text, stdout);
		free(text);
	}
	rdmatensor_close(rt);
	if (err)
		fprintf(stderr, "own: %s\n", err > 0 ? "contexts come and go all the time: try again" :
			err == -ENOTTY ? "the module is older than this program" : strerror(-err));
	return err || fflush(stdout) ? 1 : 0;
}
