// SPDX-License-Identifier: GPL-2.0
#include "waits.h"
#include "harness.h"
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <poll.h>
#include <rdmatensor/netlink.h>

#define BUFFER_BYTES (1 << 20)

static struct nl_sock *sock;
static const char *whose;
static int nr;

static int on_event(struct nl_msg *msg, void *arg)
{
	struct nlattr *attrs[RDMATENSOR_NL_A_MAX + 1];

	(void)arg;
	if (!genlmsg_parse(nlmsg_hdr(msg), 0, attrs, RDMATENSOR_NL_A_MAX, NULL) &&
	    nla_get_u32(attrs[RDMATENSOR_NL_A_EVENT]) == RDMATENSOR_NL_EVENT_CONNECT_WAITS &&
	    !strcmp(nla_get_string(attrs[RDMATENSOR_NL_A_WORKER]), whose))
		nr++;
	return NL_OK;
}

void waits_begin(const char *worker)
{
	int group;

	if (sock)
		nl_socket_free(sock);
	whose = worker;
	nr = 0;
	sock = nl_socket_alloc();
	CHECK(sock);
	EQ(genl_connect(sock), 0);
	group = genl_ctrl_resolve_grp(sock, RDMATENSOR_NL_NAME, RDMATENSOR_NL_EVENTS);
	CHECK(group > 0);
	EQ(nl_socket_set_buffer_size(sock, BUFFER_BYTES, 0), 0);
	nl_socket_disable_seq_check(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_event, NULL);
	EQ(nl_socket_add_membership(sock, group), 0);
	EQ(nl_socket_set_nonblocking(sock), 0);
}

int waits_nr(void)
{
	int ret;

	do
		ret = nl_recvmsgs_default(sock);
	while (ret >= 0);
	EQ(ret, -NLE_AGAIN);
	return nr;
}

int waits_until(int ended)
{
	struct pollfd pfd[2] = {
		{ .fd = nl_socket_get_fd(sock), .events = POLLIN },
		{ .fd = ended, .events = POLLIN },
	};

	while (!waits_nr()) {
		if (pfd[1].revents)
			return 0;
		CHECK(poll(pfd, 2, -1) > 0);
	}
	return 1;
}
