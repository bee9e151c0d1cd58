// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Servers as services: what they tell a manager, and the domain that it keeps for them. The
 * manager is a thread that does what systemd does with what is sent to its socket.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture.h"
#include "fake.h"
#include "safetensors/safetensors.h"
#include "served.h"
#include "tool/cmd/commands.h"
#include "tool/common/manager.h"
#include "tool/common/message.h"
#include "unit.h"

/* The first that a process gets of its manager: nobody else has it here */
#define FIRST_FD 3
/* No file of anybody else's has that number */
#define HIGH_FD 64
#define END "END"

static char dir[256], model[300], output[300];

static const struct st_tensor tensors[] = {
	{ .name = "some", .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .dims = { 5, 6 } },
	{ .name = "more", .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 100 } },
};

/* With their index */
#define PUBLISHED (NR(tensors) + 1)

/* ---- the manager -------------------------------------------------------------- */

static struct {
	pthread_t thread;
	int fd;
	/* All messages, each with its lines separated by spaces, on a line of its own */
	char told[4096];
	/* Its store: one descriptor, -1: none, and its name */
	int kept;
	char name[MANAGER_NAME_MAX];
} manager;

static int receive(char *message, size_t room)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { .iov_base = message, .iov_len = room - 1 };
	struct msghdr packet = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t got;
	int fd, high;

	got = recvmsg(manager.fd, &packet, MSG_CMSG_CLOEXEC);
	message[got > 0 ? got : 0] = '\0';
	header = CMSG_FIRSTHDR(&packet);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	/* The server, which is in this process, closes its first one when it will */
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	close(fd);
	return high;
}

static void store(const char *message, int fd)
{
	const char *name = strstr(message, "FDNAME=");

	if (!name)
		return;
	if (!strncmp(message, "FDSTORE=1", strlen("FDSTORE=1"))) {
		if (manager.kept >= 0)
			close(manager.kept);
		manager.kept = fd;
		snprintf(manager.name, sizeof(manager.name), "%s", name + strlen("FDNAME="));
	} else if (!strcmp(manager.name, name + strlen("FDNAME="))) {
		close(manager.kept);
		manager.kept = -1;
	}
}

static void *manage(void *arg)
{
	char message[1024], *line;
	size_t len = 0;
	int fd;

	(void)arg;
	for (;;) {
		fd = receive(message, sizeof(message));
		if (!strcmp(message, END))
			return NULL;
		store(message, fd);
		/* A barrier ends when its descriptor is closed, by which all before has been done */
		if (fd >= 0 && fd != manager.kept)
			close(fd);
		for (line = message; (line = strchr(line, '\n')); )
			*line = ' ';
		len += (size_t)snprintf(manager.told + len, sizeof(manager.told) - len, "%s\n",
					message);
	}
}

static void manager_begin(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char name[sizeof(addr.sun_path)];

	snprintf(name, sizeof(name), "@rdmatensor-test-%d", (int)getpid());
	memcpy(addr.sun_path + 1, name + 1, strlen(name) - 1);
	manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager.fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	manager.told[0] = '\0';
	assert_int_equal(pthread_create(&manager.thread, NULL, manage, NULL), 0);
}

/* All that was told until now is in @told then */
static void manager_end(void)
{
	struct sockaddr_un addr;
	socklen_t len = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	getsockname(manager.fd, (struct sockaddr *)&addr, &len);
	assert_int_equal(sendto(fd, END, strlen(END), 0, (struct sockaddr *)&addr, len),
			 strlen(END));
	close(fd);
	pthread_join(manager.thread, NULL);
	close(manager.fd);
	unsetenv("NOTIFY_SOCKET");
}

/* The next process gets what is kept, as @name */
static void give(const char *name)
{
	char pid[32];

	assert_int_equal(dup2(manager.kept, FIRST_FD), FIRST_FD);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", name, 1);
}

static void assert_told_in_order(const char *first, const char *second)
{
	const char *at = strstr(manager.told, first);

	if (!at || !strstr(at, second))
		fail_msg("\"%s\" and then \"%s\" is not in \"%s\"", first, second, manager.told);
}

static void assert_not_told(const char *what)
{
	if (strstr(manager.told, what))
		fail_msg("\"%s\" is in \"%s\"", what, manager.told);
}

/* ---- the model ---------------------------------------------------------------- */

/* Of the first @nr tensors */
static void make_model(unsigned int nr)
{
	char error[ST_ERROR_MAX];
	struct st_file file;
	int fd;

	assert_int_equal(st_make(tensors, nr, NULL, &file, error, sizeof(error)), 0);
	fd = open(model, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(st_write_header(fd, &file), 0);
	assert_int_equal(ftruncate(fd, (off_t)(st_data_offset(&file) + file.data_bytes)), 0);
	close(fd);
	st_free(&file);
}

static void serves(unsigned int expect)
{
	manager_begin();
	server_start_with((char *[]){ "--keep", "systemd", "--exit-after", "1", model, NULL },
			  expect);
}

static void ends(unsigned int published)
{
	server_end_leaving(EXIT_OK, published);
	manager_end();
}

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	fake_reset();
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	snprintf(dir, sizeof(dir), "%s/manager-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(model, sizeof(model), "%s/model", dir);
	snprintf(output, sizeof(output), "%s/output", dir);
	manager.kept = -1;
	make_model(NR(tensors));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (manager.kept >= 0)
		close(manager.kept);
	unlink(model);
	unlink(output);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void needs_libsystemd(void)
{
	if (!MANAGER_BUILT)
		skip();
}

/* ---- the cases ---------------------------------------------------------------- */

/* It is said when everything is published and kept, and not before */
static void test_told(void **state)
{
	struct rdmatensor_domain_query query = { .size = sizeof(query) };

	(void)state;
	needs_libsystemd();
	serves(PUBLISHED);
	ends(PUBLISHED);
	assert_told_in_order("STATUS=reading /", "FDSTORE=1 FDNAME=rdmatensor-");
	assert_told_in_order("FDSTORE=1", "READY=1 STATUS=serving 2 tensors");
	assert_told_in_order("READY=1", "STOPPING=1");
	assert_int_equal(rdmatensor_domain_query(manager.kept, &query), 0);
	assert_int_equal(query.lasting, PUBLISHED);
}

/* Without --keep, too; nothing is stored */
static void test_ready(void **state)
{
	(void)state;
	needs_libsystemd();
	manager_begin();
	server_start_with((char *[]){ "--exit-after", "1", model, NULL }, PUBLISHED);
	server_end_with(EXIT_OK);
	manager_end();
	assert_told_in_order("READY=1", "STOPPING=1");
	assert_not_told("FDSTORE");
}

static void test_taken_up(void **state)
{
	unsigned int submits;

	(void)state;
	needs_libsystemd();
	serves(PUBLISHED);
	ends(PUBLISHED);
	give(manager.name);
	submits = fake.submits;
	serves(PUBLISHED);
	assert_contains(text, "taken up from systemd");
	assert_int_equal(fake.submits, submits);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output), EXIT_OK);
	ends(PUBLISHED);
	assert_told_in_order("STATUS=reading", "READY=1");
	assert_not_told("FDSTORE");
}

/* What is kept of another model goes before this one is loaded: there may be room for one */
static void test_other_model(void **state)
{
	char before[MANAGER_NAME_MAX];

	(void)state;
	needs_libsystemd();
	serves(PUBLISHED);
	ends(PUBLISHED);
	strcpy(before, manager.name);
	give(manager.name);
	make_model(1);
	fake_reset();
	serves(2);
	ends(2);
	assert_told_in_order("FDSTOREREMOVE=1 FDNAME=rdmatensor-", "BARRIER=1");
	assert_told_in_order("BARRIER=1", "FDSTORE=1 FDNAME=rdmatensor-");
	assert_told_in_order("FDSTORE=1", "READY=1");
	assert_string_not_equal(before, manager.name);
	/* Nor does the server hold it */
	assert_int_equal(fcntl(FIRST_FD, F_GETFD), -1);
}

/* A domain is of no use without its device, nor without all of its tensors */
static void test_of_no_use(void **state)
{
	(void)state;
	needs_libsystemd();
	serves(PUBLISHED);
	ends(PUBLISHED);
	give(manager.name);
	fake_reset();
	fake.device_gone = true;
	serves(PUBLISHED);
	ends(PUBLISHED);
	assert_told_in_order("FDSTOREREMOVE=1", "FDSTORE=1");
	give(manager.name);
	fake_reset();
	serves(PUBLISHED);
	ends(PUBLISHED);
	assert_told_in_order("FDSTOREREMOVE=1", "FDSTORE=1");
	assert_true(manager.kept >= 0);
}

/* As many tensors, and other ones: it does not serve them, and the next start reads the model */
static void test_other_tensors(void **state)
{
	char name[MANAGER_NAME_MAX];

	(void)state;
	needs_libsystemd();
	serves(PUBLISHED);
	ends(PUBLISHED);
	strcpy(name, manager.name);
	fake_reset();
	manager_begin();
	server_start_with((char *[]){ "--keep", "systemd", "--step", "5", "--exit-after", "1", model,
			  NULL }, PUBLISHED);
	ends(PUBLISHED);
	assert_string_not_equal(name, manager.name);
	strcpy(manager.name, name);
	give(name);
	manager_begin();
	assert_int_equal(RUN(cmd_serve, "--keep", "systemd", model), EXIT_FAILED);
	manager_end();
	assert_contains(messages, "only 0 of 3 tensors");
	assert_contains(manager.told, "FDSTOREREMOVE=1");
	assert_not_told("READY=1");
	assert_int_equal(manager.kept, -1);
}

static void test_socket_of_another(void **state)
{
	(void)state;
	needs_libsystemd();
	manager.kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
	give("http");
	serves(PUBLISHED);
	ends(PUBLISHED);
	assert_not_told("FDSTOREREMOVE");
	assert_told_in_order("FDSTORE=1", "READY=1");
}

static void test_nobody(void **state)
{
	(void)state;
	assert_int_equal(RUN(cmd_serve, "--keep", "systemd", model), EXIT_FAILED);
	assert_contains(messages, MANAGER_BUILT ? "NOTIFY_SOCKET is not set" :
						  "was built without libsystemd");
	assert_int_equal(RUN(cmd_domain, "show", "systemd"), EXIT_USAGE);
	assert_contains(messages, "systemctl stop");
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_told),
		test(test_ready),
		test(test_taken_up),
		test(test_other_model),
		test(test_of_no_use),
		test(test_other_tensors),
		test(test_socket_of_another),
		test(test_nobody),
	};

	/* Nobody else opens a file of that number */
	if (dup2(STDERR_FILENO, FIRST_FD) != FIRST_FD)
		return 1;
	return cmocka_run_group_tests_name("manager", tests, NULL, NULL);
}
