// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A netlink socket that receives what the input has, by the linker's --wrap. The messages
 * themselves are libnl's, as long as they are.
 */
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "kernel.h"

struct kernel kernel;

static char sockets[1];
static nl_recvmsg_msg_cb_t on_valid;
static void *on_valid_arg;
static uint64_t clock_ns;
static bool heard;

struct nl_sock *__wrap_nl_socket_alloc(void);
int __wrap_genl_connect(struct nl_sock *sock);
int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_genl_ctrl_resolve_grp(struct nl_sock *sock, const char *family, const char *name);
int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group);
void __wrap_nl_socket_free(struct nl_sock *sock);
void __wrap_nl_socket_disable_seq_check(struct nl_sock *sock);
int __wrap_nl_socket_set_nonblocking(const struct nl_sock *sock);
int __wrap_nl_socket_get_fd(const struct nl_sock *sock);
int __wrap_nl_socket_modify_cb(struct nl_sock *sock, enum nl_cb_type type, enum nl_cb_kind kind,
			       nl_recvmsg_msg_cb_t func, void *arg);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg);
int __wrap_nl_recvmsgs_default(struct nl_sock *sock);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes);
void __wrap_stop_init(void);
void __wrap_stop_block(void);
void __wrap_stop_unblock(void);
bool __wrap_stop_wait_fd(int fd, int ms);
uint64_t __wrap_rdmatensor_now_ns(void);

struct nl_sock *__wrap_nl_socket_alloc(void)
{
	heard = false;
	return (void *)sockets;
}

int __wrap_genl_connect(struct nl_sock *sock)
{
	return sock ? 0 : -NLE_BAD_SOCK;
}

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	return *name ? 42 : -NLE_OBJ_NOTFOUND;
}

int __wrap_genl_ctrl_resolve_grp(struct nl_sock *sock, const char *family, const char *name)
{
	(void)sock;
	return *family && *name ? 7 : -NLE_OBJ_NOTFOUND;
}

int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group)
{
	(void)sock;
	HOLDS(group == 7);
	return 0;
}

void __wrap_nl_socket_free(struct nl_sock *sock)
{
	HOLDS(!sock || sock == (void *)sockets);
}

void __wrap_nl_socket_disable_seq_check(struct nl_sock *sock)
{
	(void)sock;
}

int __wrap_nl_socket_set_nonblocking(const struct nl_sock *sock)
{
	(void)sock;
	return 0;
}

int __wrap_nl_socket_get_fd(const struct nl_sock *sock)
{
	(void)sock;
	return -1;
}

int __wrap_nl_socket_modify_cb(struct nl_sock *sock, enum nl_cb_type type, enum nl_cb_kind kind,
			       nl_recvmsg_msg_cb_t func, void *arg)
{
	(void)sock;
	(void)kind;
	if (type == NL_CB_VALID) {
		on_valid = func;
		on_valid_arg = arg;
	}
	return 0;
}

int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg)
{
	(void)sock;
	HOLDS(nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP);
	kernel.dumps++;
	return 1;
}

/* @bytes, of which four are generic netlink's header, if there are so many */
static void receive(const uint8_t *bytes, size_t len)
{
	struct nl_msg *msg = nlmsg_alloc_size(NLMSG_HDRLEN + len);

	HOLDS(msg && nlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, 42, 0, 0));
	HOLDS(!nlmsg_append(msg, (void *)bytes, len, 0));
	HOLDS(on_valid(msg, on_valid_arg) == NL_OK);
	kernel.messages++;
	nlmsg_free(msg);
}

int __wrap_nl_recvmsgs_default(struct nl_sock *sock)
{
	const uint8_t *at = kernel.data, *end = at + kernel.size;
	unsigned int i;
	size_t len;

	(void)sock;
	for (i = 0; end - at >= 2; i++, at += len) {
		len = kernel_length(at);
		at += 2;
		if (len > (size_t)(end - at))
			len = (size_t)(end - at);
		if (!kernel.turns || i % 2 == kernel.dumps % 2)
			receive(at, len);
	}
	if (kernel.error && kernel.errors) {
		kernel.errors--;
		return kernel.error;
	}
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	HOLDS(fd == -1 && level == SOL_SOCKET && name == SO_MEMINFO);
	HOLDS(*bytes == SK_MEMINFO_VARS * sizeof(uint32_t));
	((uint32_t *)value)[SK_MEMINFO_DROPS] = kernel.drops * (1 + kernel.errors);
	return 0;
}

/* libFuzzer has its own signals */
void __wrap_stop_init(void)
{
}

void __wrap_stop_block(void)
{
}

void __wrap_stop_unblock(void)
{
}

/* Once there is something to receive. Between two samples there is nothing to wait for */
bool __wrap_stop_wait_fd(int fd, int ms)
{
	bool again = heard;

	(void)fd;
	if (ms >= 0)
		return false;
	heard = true;
	return again && !kernel.errors;
}

uint64_t __wrap_rdmatensor_now_ns(void)
{
	return clock_ns += 250000000;
}
