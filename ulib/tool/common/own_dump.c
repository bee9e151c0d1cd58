// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What netlink shows to CAP_NET_ADMIN, of one's own contexts: by the device file.
 */
#include <errno.h>
#include <netlink/msg.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/netlink.h>
#include <rdmatensor/rdmatensor.h>

#include "message.h"
#include "own_dump.h"

/* -ENOMEM; else 0 */
static int tell_messages(void *buf, size_t bytes, const struct dump_reader *reader, void *arg)
{
	struct nlmsghdr *hdr = buf;
	int left = (int)bytes;

	for (; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left)) {
		struct nl_msg *msg = nlmsg_convert(hdr);

		if (!msg)
			return -ENOMEM;
		reader->message(msg, arg);
		nlmsg_free(msg);
	}
	return 0;
}

/* 0, -EINTR: something came or went meanwhile, or what the module has said */
static int dump_once(struct rdmatensor *rt, int cmd, uint32_t context, void *buf,
		     const struct dump_reader *reader, void *arg)
{
	struct rdmatensor_dump dump = {
		.size = sizeof(dump), .command = (uint32_t)cmd, .context = context,
		.buf_uptr = (uint64_t)(uintptr_t)buf, .room = RDMATENSOR_DUMP_ROOM_MAX,
	};
	bool changed = false;
	int err;

	do {
		err = rdmatensor_dump(rt, &dump);
		if (!err)
			err = tell_messages(buf, dump.out_bytes, reader, arg);
		changed |= !err && dump.flags & RDMATENSOR_DUMP_CHANGED;
	} while (!err && dump.out_bytes);
	return err ? err : changed ? -EINTR : 0;
}

int dump_own(int cmd, uint32_t context, const struct dump_reader *reader, void *arg, int tries,
	     char *cause, size_t room)
{
	struct rdmatensor *rt;
	void *buf;
	int err;

	err = rdmatensor_open_cause(NULL, &rt, cause, room);
	if (err)
		return err;
	buf = malloc(RDMATENSOR_DUMP_ROOM_MAX);
	if (!buf)
		out_of_memory();
	do {
		reader->begin(arg);
		err = dump_once(rt, cmd, context, buf, reader, arg);
	} while (err == -EINTR && --tries > 0);
	free(buf);
	rdmatensor_close(rt);
	return err;
}
