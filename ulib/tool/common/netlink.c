// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sockets of dumps and events.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/sock_diag.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <rdmatensor/netlink.h>

#include "json.h"
#include "message.h"
#include "netlink.h"
#include "netlink_attrs.h"
#include "output.h"
#include "own_dump.h"
#include "stop.h"

/* Attempts at a dump during which objects come and go */
#define TRIES 10

/**
 * struct reading - where the messages of a dump go
 * @reader: of the caller
 * @arg: for it
 */
struct reading {
	const struct dump_reader *reader;
	void *arg;
};

static int on_valid(struct nl_msg *msg, void *arg)
{
	const struct reading *reading = arg;

	reading->reader->message(msg, reading->arg);
	return NL_OK;
}

/* 0: connected, and *family is the module's; or the library's error, of which nothing is told */
static int connect_family(struct nl_sock **out, int *family)
{
	struct nl_sock *sock = nl_socket_alloc();
	int err;

	if (!sock)
		return -NLE_NOMEM;
	err = genl_connect(sock);
	if (err >= 0) {
		*family = genl_ctrl_resolve(sock, RDMATENSOR_NL_NAME);
		err = *family < 0 ? *family : 0;
	}
	if (err)
		nl_socket_free(sock);
	else
		*out = sock;
	return err;
}

static int family_failed(int err)
{
	return err == -NLE_OBJ_NOTFOUND ?
		failed("netlink: there is no family \"%s\": the module is not loaded: modprobe rdmatensor",
		       RDMATENSOR_NL_NAME) :
		failed("netlink: ask for the family \"%s\": %s", RDMATENSOR_NL_NAME,
		       nl_geterror(err));
}

/*
 * Netlink answers the privileged, and a sandbox may have no such sockets at all. The library takes what
 * keeps it from asking for a family for the lack of one
 */
static bool may_not_ask(int err)
{
	return err == -NLE_PERM || err == -NLE_NOACCESS || err == -NLE_AF_NOSUPPORT ||
	       err == -NLE_PROTO_MISMATCH || err == -NLE_OBJ_NOTFOUND;
}

static int dump_once(struct nl_sock *sock, int family, int cmd, uint32_t context,
		     struct reading *reading)
{
	struct nl_msg *msg = nlmsg_alloc();
	int ret;

	if (!msg)
		return -NLE_NOMEM;
	if (!genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, NLM_F_DUMP, (uint8_t)cmd,
			 RDMATENSOR_NL_VERSION) ||
	    (context && nla_put_u32(msg, RDMATENSOR_NL_A_CONTEXT, context))) {
		nlmsg_free(msg);
		return -NLE_NOMEM;
	}
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_valid, reading);
	ret = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	return ret < 0 ? ret : nl_recvmsgs_default(sock);
}

/* For those who may not ask by netlink. @asked: what asking has ended with */
static int own_messages(int asked, int cmd, uint32_t context, const struct dump_reader *reader,
			void *arg, struct dump_extent *extent)
{
	char cause[512] = "";
	int err = dump_own(cmd, context, reader, arg, TRIES, cause, sizeof(cause));

	*extent = (struct dump_extent){ .whole = !err, .own = true };
	if (!err || err == -EINTR)
		return EXIT_OK;
	/* Neither is there */
	if (asked == -NLE_OBJ_NOTFOUND && (err == -ENOENT || err == -ENODEV || err == -ENXIO))
		return family_failed(asked);
	if (!*cause)
		snprintf(cause, sizeof(cause), "the device file: %s", err == -ENOTTY ?
			 "the module is older than this program: load a newer one" :
			 strerror(-err));
	return failed("%s; without the device file only CAP_NET_ADMIN over this network namespace shows contexts",
		      cause);
}

int dump_messages(int cmd, uint32_t context, const struct dump_reader *reader, void *arg,
		  struct dump_extent *extent)
{
	struct reading reading = { reader, arg };
	struct nl_sock *sock;
	int family, ret, i;

	*extent = (struct dump_extent){ 0 };
	for (i = 0; i < TRIES; i++) {
		ret = connect_family(&sock, &family);
		if (ret)
			return may_not_ask(ret) ?
			       own_messages(ret, cmd, context, reader, arg, extent) :
			       family_failed(ret);
		reader->begin(arg);
		ret = dump_once(sock, family, cmd, context, &reading);
		/* The rest of one that was interrupted must not be taken for the next one */
		nl_socket_free(sock);
		if (ret != -NLE_DUMP_INTR)
			break;
	}
	if (may_not_ask(ret))
		return own_messages(ret, cmd, context, reader, arg, extent);
	extent->whole = !ret;
	return !ret || ret == -NLE_DUMP_INTR ? EXIT_OK : failed("netlink: %s", nl_geterror(ret));
}

static void begin_objects(void *arg)
{
	struct json_object **list = arg;

	json_object_put(*list);
	*list = json_object_new_array();
}

static void add_object(struct nl_msg *msg, void *arg)
{
	struct json_object **list = arg;

	json_object_array_add(*list, netlink_object(msg));
}

int dump_objects(int cmd, uint32_t context, struct json_object **out,
		 struct dump_extent *extent)
{
	static const struct dump_reader reader = { begin_objects, add_object };
	struct json_object *list = NULL;
	int ret;

	ret = dump_messages(cmd, context, &reader, &list, extent);
	if (ret)
		json_object_put(list);
	else
		*out = list;
	return ret;
}

struct listener {
	bool (*event)(struct json_object *object, void *arg);
	void *arg;
	bool stop;
};

/* Messages that the kernel has dropped at the socket since it was created */
static uint32_t drops_of(struct nl_sock *sock)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t bytes = sizeof(info);

	if (getsockopt(nl_socket_get_fd(sock), SOL_SOCKET, SO_MEMINFO, info, &bytes))
		return 0;
	return info[SK_MEMINFO_DROPS];
}

/* An event like those of the kernel, with the number of dropped ones */
static void tell_lost(struct listener *listener, uint32_t nr)
{
	struct json_object *lost = json_object_new_object();

	add_string(lost, "event", "lost");
	add_number(lost, "events", nr);
	listener->stop = !listener->event(lost, listener->arg);
}

/* @told: drops that were told */
static void tell_drops(struct listener *listener, struct nl_sock *sock, uint32_t *told)
{
	uint32_t now = drops_of(sock);

	if (now != *told && !listener->stop)
		tell_lost(listener, now - *told);
	*told = now;
}

static int on_event(struct nl_msg *msg, void *arg)
{
	struct listener *listener = arg;

	if (!listener->stop)
		listener->stop = !listener->event(netlink_object(msg), listener->arg);
	return NL_OK;
}

int listen_events(bool (*event)(struct json_object *object, void *arg), void *arg)
{
	struct listener listener = { event, arg, false };
	struct nl_sock *sock;
	int family, group, ret;
	uint32_t drops = 0;

	ret = connect_family(&sock, &family);
	if (ret == -NLE_OBJ_NOTFOUND || (ret && !may_not_ask(ret)))
		return family_failed(ret);
	if (ret)
		return failed("netlink: cannot listen: %s: events come by netlink alone: run it where netlink sockets are allowed",
			      nl_geterror(ret));
	group = genl_ctrl_resolve_grp(sock, RDMATENSOR_NL_NAME, RDMATENSOR_NL_EVENTS);
	ret = group < 0 ? group : nl_socket_add_membership(sock, group);
	if (ret < 0) {
		nl_socket_free(sock);
		return failed("netlink: cannot listen: %s%s", nl_geterror(ret), ret == -NLE_PERM ?
			      ": only CAP_NET_ADMIN over this network namespace hears what processes do" : "");
	}
	nl_socket_disable_seq_check(sock);
	nl_socket_set_nonblocking(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_event, &listener);
	ret = 0;
	while (!listener.stop && (ret >= 0 || ret == -NLE_AGAIN) &&
	       !stop_wait_fd(nl_socket_get_fd(sock), -1)) {
		errno = 0;
		ret = nl_recvmsgs_default(sock);
		/*
		 * The error comes once, and may come before the count; the count grows until
		 * the socket is empty. The library has the same number for its own memory
		 */
		if (ret == -NLE_NOMEM && errno == ENOBUFS)
			ret = 0;
		tell_drops(&listener, sock, &drops);
	}
	/* Those that were dropped while the last ones were printed */
	tell_drops(&listener, sock, &drops);
	nl_socket_free(sock);
	return ret >= 0 || ret == -NLE_AGAIN ? EXIT_OK :
	       failed("netlink: %s", nl_geterror(ret));
}

int look_for_context(uint32_t context)
{
	struct json_object *list = NULL;
	size_t found;
	struct dump_extent extent;
	int err;

	if (!context)
		return EXIT_OK;
	err = dump_objects(RDMATENSOR_NL_CMD_CONTEXT_GET, context, &list, &extent);
	if (err)
		return err;
	found = json_object_array_length(list);
	json_object_put(list);
	/* A dump that is not whole does not show that it is missing */
	return found || !extent.whole ? EXIT_OK :
	       failed("there is no context %" PRIu32 " in this network namespace, or it is not of those that this user opened: rdmatensor show contexts lists them",
		      context);
}
