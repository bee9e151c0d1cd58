// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scene.h"

#define LONGEST_MS 30000

static int orders_connect(const char *host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(ORDERS_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || inet_pton(AF_INET, host, &addr.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("orders to %s: %m", host);
	return fd;
}

void scene_order(struct scene *scene, const char *fmt, ...)
{
	char line[128], answer[128] = "";
	size_t length, got = 0;
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	length = strlen(line);
	line[length] = '\n';
	if (write(scene->orders, line, length + 1) != (ssize_t)length + 1)
		die("order: %m");
	while (!memchr(answer, '\n', got)) {
		ssize_t n = read(scene->orders, answer + got, sizeof(answer) - 1 - got);

		if (n <= 0)
			die("the peer has gone");
		got += n;
	}
	if (strcmp(answer, "ok\n"))
		die("order %.*s: %s", (int)length, line, answer);
}

/* What the module has of that which does not end, for who reads of it */
static void show_all(void)
{
	static const char *const what[] = { "requests", "channels", "tables" };
	const char *build = getenv("LAB_BUILD");
	char command[256];
	size_t i;

	fflush(stdout);
	for (i = 0; build && i < sizeof(what) / sizeof(what[0]); i++) {
		snprintf(command, sizeof(command),
			 "%s/ulib/bin/rdmatensor show %s -j 2>&1 | sed 's/^/# show %s: /'", build,
			 what[i], what[i]);
		if (system(command))
			printf("# show %s failed\n", what[i]);
	}
}

int scene_next(struct scene *scene, int type, uint64_t number, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_cqe own;

	if (!cqe)
		cqe = &own;
	if (!worker_next(&scene->w, type, number, rdmatensor_deadline_ms(LONGEST_MS), cqe)) {
		show_all();
		die("no entry of type %d came in %d ms", type, LONGEST_MS);
	}
	return cqe->result;
}

bool scene_rows_are(const struct scene *scene, uint64_t at, uint64_t nr)
{
	const uint64_t *words = worker_at(&scene->w, at);
	uint64_t row;
	unsigned int i;

	for (row = 0; row < nr; row++)
		for (i = 0; i < ROW_BYTES / 8; i++)
			if (*words++ != row_word(scene->ids[row], i))
				return false;
	return true;
}

void scene_table_open(struct scene *scene)
{
	struct rdmatensor_table_open open = { 0 };

	if (rdmatensor_table_open(scene->w.rt, "rows", &scene->w.channel, 1, &open))
		die("%s", open.cause);
	scene->table = open.out_table;
}

void scene_open(struct scene *scene, const char *host)
{
	uint64_t i;

	memset(scene, 0, sizeof(*scene));
	scene->step = 1000;
	scene->orders = orders_connect(host);
	snprintf(scene->peer, sizeof(scene->peer), "%s:%d", host, PEER_PORT);
	snprintf(scene->nobody, sizeof(scene->nobody), "%s:%d", host, PEER_PORT + 1);
	worker_open(&scene->w, "driver", 96 << 20, NULL);
	worker_connect(&scene->w, scene->peer);
	scene->at = worker_alloc(&scene->w, LONG_BYTES);
	scene->own = worker_alloc(&scene->w, LONG_BYTES);
	scene->lent = worker_alloc(&scene->w, LONG_BYTES);
	scene->page = worker_alloc(&scene->w, 17 * 4096);
	scene->rows = worker_alloc(&scene->w, ROWS * ROW_BYTES);
	worker_publish(&scene->w, scene->own, LONG_BYTES);
	scene->ids = calloc(ROWS, sizeof(*scene->ids));
	if (!scene->ids)
		die("out of memory");
	/* Each once, far from its neighbours: ROWS and 7919 have no common divisor */
	for (i = 0; i < ROWS; i++)
		scene->ids[i] = i * 7919 % ROWS;
	scene_table_open(scene);
}

void scene_close(struct scene *scene)
{
	scene_order(scene, "quit");
	close(scene->orders);
	worker_close(&scene->w);
	free(scene->ids);
}
