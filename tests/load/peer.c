// SPDX-License-Identifier: GPL-2.0
/*
 * The other side of the load matrix: a keeper that takes orders over TCP, and its child, the
 * peer, which publishes, exports, and fetches from the driver. The keeper stops the child.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bulk.h"
#include "scene.h"

static struct worker w;
static uint64_t rows_at;
static uint32_t rows_table;

static void offer_rows(void)
{
	int ret = rdmatensor_table_export(w.rt, "rows", &w.pool, rows_at, 0, ROWS, ROW_BYTES, 0,
					  RDMATENSOR_DT_UINT64, &rows_table);

	if (ret)
		die("export: %s", strerror(-ret));
}

static void peer_open(const char *ip)
{
	static const uint64_t sizes[] = { 1, SMALL_BYTES, LONG_BYTES };
	struct rdmatensor_op op;
	char listen[64], entries[16];
	uint64_t *words, row;
	const uint64_t dims[] = { SQUARE, SQUARE };
	unsigned int i;
	uint64_t at;

	snprintf(listen, sizeof(listen), "%s:%d", ip, PEER_PORT);
	snprintf(entries, sizeof(entries), "%d", PEER_RING);
	setenv("RDMATENSOR_RING_ENTRIES", entries, 1);
	worker_open(&w, "peer", 96 << 20, listen);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		worker_publish(&w, worker_alloc(&w, sizes[i] + 8), sizes[i]);
	at = worker_alloc(&w, SMALL_BYTES);
	perf_fill(worker_at(&w, at), SMALL_BYTES);
	rdmatensor_prep_publish(&op, SQUARE_NAME, 0, w.pool.id, at, SMALL_BYTES,
				RDMATENSOR_DT_UINT8, 2, dims, 0, 0);
	worker_submit(&w, &op);
	rdmatensor_prep_publish_failed(&op, "broken", 0, -EIO, "it broke", 0, 0);
	worker_submit(&w, &op);
	/* Exports begin with a page */
	rows_at = (worker_alloc(&w, ROWS * ROW_BYTES + 8192) + 4095) & ~UINT64_C(4095);
	words = worker_at(&w, rows_at);
	for (row = 0; row < ROWS; row++)
		for (i = 0; i < ROW_BYTES / 8; i++)
			*words++ = row_word(row, i);
	offer_rows();
}

/* One SUBMIT, so that the contents of all that are waited for are posted at once */
static void publish_shorts(int64_t step)
{
	static struct rdmatensor_op ops[SHORTS];
	static char names[SHORTS][16];
	static uint64_t dim = SHORT_BYTES;
	static uint64_t at;
	unsigned int i;

	if (!at) {
		at = worker_alloc(&w, SHORT_BYTES);
		perf_fill(worker_at(&w, at), SHORT_BYTES);
	}
	for (i = 0; i < SHORTS; i++)
		rdmatensor_prep_publish(&ops[i], short_name(i, names[i]), step, w.pool.id, at,
					SHORT_BYTES, RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	if (rdmatensor_submit(w.rt, ops, SHORTS, 0, 0, NULL))
		die("SUBMIT of short tensors");
}

/* The driver's first channel is the one that the bulk goes over */
static void hear(void)
{
	unsigned int i;

	worker_reap(&w);
	for (i = 0; i < w.nr_kept; i++) {
		if (!w.channel && w.kept[i].type == RDMATENSOR_CQE_CHANNEL_UP &&
		    w.kept[i].text_len == 6 && !memcmp(w.kept[i].text, "driver", 6))
			w.channel = w.kept[i].channel;
		/* What was to be got */
		if (w.kept[i].type == RDMATENSOR_CQE_FETCH && !w.kept[i].result)
			worker_free(&w, w.kept[i].offset);
	}
	w.nr_kept = 0;
}

/* Return: an error to tell, or NULL */
static const char *carry_out(const char *line)
{
	static struct bulk bulk;
	struct rdmatensor_op op;
	char name[48];
	long long step;

	if (!strcmp(line, "bulk on")) {
		bulk_init(&bulk, &w, LONG_BYTES, 4);
		bulk_begin(&bulk, true);
	} else if (!strcmp(line, "bulk off")) {
		if (!bulk_end(&bulk, rdmatensor_deadline_ms(25000)))
			return "the peer's bulk is not whole";
		bulk_free(&bulk);
	} else if (sscanf(line, "abort %lld", &step) == 1) {
		if (rdmatensor_step_abort(w.rt, step, -EDOM, "as ordered"))
			return "the peer cannot abort";
	} else if (sscanf(line, "get %47s %lld", name, &step) == 2) {
		rdmatensor_prep_fetch_alloc(&op, w.channel, name, step, w.pool.id, 0,
					    rdmatensor_deadline_ms(5000), worker_number());
		worker_submit(&w, &op);
	} else if (sscanf(line, "shorts %lld", &step) == 1) {
		publish_shorts(step);
	} else if (!strcmp(line, "retract")) {
		if (rdmatensor_table_close(w.rt, rows_table))
			return "the peer cannot retract its rows";
	} else if (!strcmp(line, "offer")) {
		offer_rows();
	} else {
		return "no such order";
	}
	return NULL;
}

/* The bytes of @fd up to the end of a line. Return: false: there will be none */
static bool read_line(int fd, char *line, size_t room)
{
	size_t n = 0;

	while (n < room - 1) {
		if (read(fd, line + n, 1) != 1)
			return false;
		if (line[n] == '\n')
			break;
		n++;
	}
	line[n] = '\0';
	return true;
}

static void say(int fd, const char *text)
{
	char line[192];

	snprintf(line, sizeof(line), "%s\n", text ? text : "ok");
	if (write(fd, line, strlen(line)) < 0)
		_exit(1);
}

static void peer_main(const char *ip, int fd)
{
	struct pollfd fds[2];
	char line[160];

	peer_open(ip);
	say(fd, NULL);
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = rdmatensor_fd(w.rt), .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			die("poll: %m");
		hear();
		/* For good */
		if (fds[1].revents & POLLERR)
			fds[1].fd = -1;
		if (!(fds[0].revents & (POLLIN | POLLHUP)))
			continue;
		if (!read_line(fd, line, sizeof(line)))
			break;
		say(fd, carry_out(line));
	}
	worker_close(&w);
	_exit(0);
}

static int listen_for_orders(const char *ip)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(ORDERS_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    inet_pton(AF_INET, ip, &addr.sin_addr) != 1 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		die("orders at %s: %m", ip);
	return fd;
}

/* Those of the keeper's own. Return: it was one */
static bool keep(pid_t pid, const char *line, const char **error)
{
	char command[192];
	int status;

	*error = NULL;
	if (!strcmp(line, "stop")) {
		kill(pid, SIGSTOP);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
			*error = "the peer does not stop";
	} else if (!strcmp(line, "go on")) {
		kill(pid, SIGCONT);
		if (waitpid(pid, &status, WCONTINUED) != pid || !WIFCONTINUED(status))
			*error = "the peer does not go on";
	} else if (!strncmp(line, "netem ", 6)) {
		snprintf(command, sizeof(command), "tc qdisc %s", line + 6);
		if (system(command))
			*error = "no netem at the peer";
	} else {
		return false;
	}
	return true;
}

int peer_run(const char *ip)
{
	int fds[2], listener, orders, one = 1, status;
	char line[160];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair: %m");
	pid = fork();
	if (pid < 0)
		die("fork: %m");
	if (!pid) {
		close(fds[0]);
		peer_main(ip, fds[1]);
	}
	close(fds[1]);
	if (!read_line(fds[0], line, sizeof(line)))
		die("the peer has not come up");
	listener = listen_for_orders(ip);
	printf("ready\n");
	orders = accept(listener, NULL, NULL);
	if (orders < 0 || setsockopt(orders, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("orders: %m");
	while (read_line(orders, line, sizeof(line)) && strcmp(line, "quit")) {
		const char *error;

		if (keep(pid, line, &error)) {
			say(orders, error);
			continue;
		}
		say(fds[0], line);
		if (!read_line(fds[0], line, sizeof(line)))
			die("the peer has gone");
		say(orders, line);
	}
	say(orders, NULL);
	close(fds[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		die("the peer ended with %x", status);
	return 0;
}
