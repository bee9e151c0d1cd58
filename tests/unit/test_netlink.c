// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is asked, netlink or the device file, and what is said when neither tells. What both
 * answer comes from here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>

#include <rdmatensor/netlink.h>
#include <rdmatensor/rdmatensor.h>

#include "capture.h"
#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "unit.h"

/**
 * struct kernel - what answers
 * @connect: of netlink: 0, or its error
 * @connects: after so many dumps
 * @resolve: for the family
 * @dumps: for a dump, one attempt after the other; the last one for all further ones
 * @objects: that come of each dump before it ends
 * @own: the device file's: 0, or a negative errno; -EINTR: something comes or goes all the time
 * @cause: that comes with it, when the file is opened
 * @sockets: that are open
 * @made: sockets that were made
 * @asked: dumps over netlink
 * @own_asked: who opened the device file
 * @files: open ones
 */
static struct kernel {
	int connect;
	int connects;
	int resolve;
	int dumps[3];
	int objects;
	int own;
	const char *cause;
	int sockets;
	int made;
	int asked;
	int own_asked;
	int files;
} kernel;

static char socket_of_netlink, device_file;
static nl_recvmsg_msg_cb_t on_message;
static void *on_message_arg;

struct nl_sock *__wrap_nl_socket_alloc(void);
void __wrap_nl_socket_free(struct nl_sock *sock);
int __wrap_genl_connect(struct nl_sock *sock);
int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_nl_socket_modify_cb(struct nl_sock *sock, enum nl_cb_type type, enum nl_cb_kind kind,
			       nl_recvmsg_msg_cb_t func, void *arg);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg);
int __wrap_nl_recvmsgs_default(struct nl_sock *sock);
int __wrap_rdmatensor_open_cause(const char *path, struct rdmatensor **out, char *cause,
				 size_t room);
int __wrap_rdmatensor_dump(struct rdmatensor *rt, struct rdmatensor_dump *dump);
void __wrap_rdmatensor_close(struct rdmatensor *rt);

struct nl_sock *__wrap_nl_socket_alloc(void)
{
	kernel.sockets++;
	kernel.made++;
	return (struct nl_sock *)&socket_of_netlink;
}

void __wrap_nl_socket_free(struct nl_sock *sock)
{
	assert_ptr_equal(sock, &socket_of_netlink);
	kernel.sockets--;
}

int __wrap_genl_connect(struct nl_sock *sock)
{
	(void)sock;
	return kernel.asked < kernel.connects ? 0 : kernel.connect;
}

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	(void)name;
	return kernel.resolve ? kernel.resolve : 42;
}

int __wrap_nl_socket_modify_cb(struct nl_sock *sock, enum nl_cb_type type, enum nl_cb_kind kind,
			       nl_recvmsg_msg_cb_t func, void *arg)
{
	(void)sock;
	(void)type;
	(void)kind;
	on_message = func;
	on_message_arg = arg;
	return 0;
}

int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg)
{
	(void)sock;
	(void)msg;
	return 1;
}

static void tell_object(void)
{
	struct nl_msg *msg = nlmsg_alloc();

	assert_non_null(msg);
	assert_non_null(genlmsg_put(msg, 1, 1, 42, 0, 0, RDMATENSOR_NL_CMD_CONTEXT_GET,
				    RDMATENSOR_NL_VERSION));
	assert_int_equal(nla_put_u32(msg, RDMATENSOR_NL_A_CONTEXT, 7), 0);
	on_message(msg, on_message_arg);
	nlmsg_free(msg);
}

int __wrap_nl_recvmsgs_default(struct nl_sock *sock)
{
	int i;

	(void)sock;
	for (i = 0; i < kernel.objects; i++)
		tell_object();
	return kernel.dumps[kernel.asked < 2 ? kernel.asked++ : (kernel.asked++, 2)];
}

int __wrap_rdmatensor_open_cause(const char *path, struct rdmatensor **out, char *cause,
				 size_t room)
{
	(void)path;
	kernel.own_asked++;
	if (kernel.cause) {
		snprintf(cause, room, "%s", kernel.cause);
		return kernel.own;
	}
	kernel.files++;
	*out = (struct rdmatensor *)&device_file;
	return 0;
}

int __wrap_rdmatensor_dump(struct rdmatensor *rt, struct rdmatensor_dump *dump)
{
	assert_ptr_equal(rt, &device_file);
	dump->out_bytes = 0;
	dump->flags = kernel.own == -EINTR ? RDMATENSOR_DUMP_CHANGED : 0;
	return kernel.own == -EINTR ? 0 : kernel.own;
}

void __wrap_rdmatensor_close(struct rdmatensor *rt)
{
	assert_ptr_equal(rt, &device_file);
	kernel.files--;
}

/* Runs `show contexts -j`, with what @answers */
static void shows(struct kernel answers, int status, int asked, int own_asked)
{
	kernel = answers;
	assert_int_equal(RUN(cmd_show, "contexts", "-j"), status);
	assert_int_equal(kernel.asked, asked);
	assert_int_equal(kernel.own_asked, own_asked);
	assert_int_equal(kernel.sockets, 0);
	assert_int_equal(kernel.files, 0);
}

#define SHOWS(status, asked, own_asked, ...) \
	shows((struct kernel){ __VA_ARGS__ }, status, asked, own_asked)

static void test_netlink(void **state)
{
	(void)state;
	SHOWS(EXIT_OK, 1, 0, .connect = 0);
	assert_string_equal(text, "[]\n");
	assert_string_equal(messages, "");
	/* Once more, on a socket of its own, when something came or went; but not for ever */
	SHOWS(EXIT_OK, 3, 0, .dumps = { -NLE_DUMP_INTR, -NLE_DUMP_INTR, 0 });
	assert_int_equal(kernel.made, 3);
	assert_string_equal(messages, "");
	SHOWS(EXIT_FAILED, 10, 0, .dumps = { -NLE_DUMP_INTR, -NLE_DUMP_INTR, -NLE_DUMP_INTR });
	assert_contains(messages, "try again");
	SHOWS(EXIT_FAILED, 1, 0, .dumps = { -NLE_NOMEM });
	assert_contains(messages, "netlink: Out of memory");
	SHOWS(EXIT_FAILED, 0, 0, .connect = -NLE_NOMEM);
	assert_contains(messages, "ask for the family \"rdmatensor\": Out of memory");
}

static void test_own(void **state)
{
	static const int connects[] = {
		-NLE_AF_NOSUPPORT, -NLE_NOACCESS, -NLE_PERM, -NLE_PROTO_MISMATCH,
	};
	size_t i;

	(void)state;
	/* Whose sandbox has no such sockets, and who may not ask by them */
	for (i = 0; i < NR(connects); i++) {
		SHOWS(EXIT_OK, 0, 1, .connect = connects[i]);
		assert_string_equal(text, "[]\n");
		assert_contains(messages, "warning: this is what this user opened");
	}
	SHOWS(EXIT_OK, 1, 1, .dumps = { -NLE_PERM });
	assert_contains(messages, "in this PID namespace");
	SHOWS(EXIT_OK, 1, 1, .dumps = { -NLE_NOACCESS });
	SHOWS(EXIT_OK, 2, 1, .dumps = { -NLE_DUMP_INTR, -NLE_PERM });
	SHOWS(EXIT_OK, 1, 1, .dumps = { -NLE_DUMP_INTR }, .connect = -NLE_AF_NOSUPPORT, .connects = 1);
	/* What keeps the library from asking is to it as if there were no family */
	SHOWS(EXIT_OK, 0, 1, .resolve = -NLE_OBJ_NOTFOUND);
	/* What had come by netlink until then is not of those */
	SHOWS(EXIT_OK, 1, 0, .objects = 1);
	assert_contains(text, "\"context\":7");
	SHOWS(EXIT_OK, 1, 1, .dumps = { -NLE_PERM }, .objects = 2);
	assert_string_equal(text, "[]\n");
	/* Of the device file too many came and went */
	SHOWS(EXIT_FAILED, 1, 1, .dumps = { -NLE_PERM }, .own = -EINTR);
	assert_contains(messages, "try again");
}

static void test_neither(void **state)
{
	(void)state;
	SHOWS(EXIT_FAILED, 1, 1, .dumps = { -NLE_PERM }, .own = -EACCES, .cause = "open F: no");
	assert_contains(messages, "error: open F: no; without the device file only");
	/* Nothing is there of the module, or of it there is no file */
	SHOWS(EXIT_FAILED, 0, 1, .resolve = -NLE_OBJ_NOTFOUND, .own = -ENOENT, .cause = "open F: none");
	assert_contains(messages, "the module is not loaded: modprobe rdmatensor");
	SHOWS(EXIT_FAILED, 1, 1, .dumps = { -NLE_PERM }, .own = -ENOENT, .cause = "open F: none");
	assert_contains(messages, "error: open F: none; without");
	SHOWS(EXIT_FAILED, 1, 1, .dumps = { -NLE_PERM }, .own = -ENOTTY);
	assert_contains(messages, "the module is older");
	/* What is no such file is no old module */
	SHOWS(EXIT_FAILED, 1, 1, .dumps = { -NLE_PERM }, .own = -ENOTTY,
	      .cause = "open F: this is no rdmatensor device");
	assert_contains(messages, "no rdmatensor device");
	assert_null(strstr(messages, "older"));
	SHOWS(EXIT_FAILED, 1, 1, .dumps = { -NLE_PERM }, .own = -ENOMEM);
	assert_contains(messages, "the device file: Cannot allocate memory");
}

/* Events have no other way */
static void test_events(void **state)
{
	(void)state;
	kernel = (struct kernel){ .connect = -NLE_AF_NOSUPPORT };
	assert_int_equal(RUN(cmd_monitor, "-j"), EXIT_FAILED);
	assert_contains(messages, "events come by netlink alone");
	assert_int_equal(kernel.sockets, 0);
	assert_int_equal(kernel.own_asked, 0);
	kernel = (struct kernel){ .resolve = -NLE_OBJ_NOTFOUND };
	assert_int_equal(RUN(cmd_monitor, "-j"), EXIT_FAILED);
	assert_contains(messages, "modprobe rdmatensor");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_netlink),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_neither),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests_name("netlink", tests, NULL, NULL);
}
