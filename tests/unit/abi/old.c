// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that was built with this tree's headers, and runs with a library of later ones, whose
 * structs are longer. A kernel that knows the longer ones is here, too: it writes as many bytes as
 * a struct says that it has. All memory is exactly as long as the program's structs, so that
 * AddressSanitizer sees whoever writes or reads more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#define PATH "/dev/of-later"
#define ENTRIES 8
#define RING_BYTES 8192

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			printf("not so, line %d: %s\n", __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

static struct rdmatensor_ring *ring;
static int ring_fd;
static unsigned int nr_ops, nr_long;

static void complete(uint64_t user_data)
{
	struct rdmatensor_cqe *cqe = (struct rdmatensor_cqe *)
		((char *)ring + ring->entries_offset) + ring->head % ENTRIES;

	*cqe = (struct rdmatensor_cqe){ .user_data = user_data, .type = RDMATENSOR_CQE_FETCH };
	ring->head++;
}

/* Reads operations at the distance that they are said to have */
static void submit(struct rdmatensor_submit *arg)
{
	const char *at = (const char *)(uintptr_t)arg->ops_uptr;
	unsigned int i;

	for (i = 0; i < arg->nr_ops; i++, at += arg->op_size) {
		struct rdmatensor_op op;

		/* Those of the library's own are longer, too */
		memcpy(&op, at, arg->op_size < sizeof(op) ? arg->op_size : sizeof(op));
		nr_long += arg->op_size > sizeof(op);
		CHECK(op.opcode == RDMATENSOR_OP_FETCH);
		CHECK(op.name_len == 1);
		complete(op.user_data);
		nr_ops++;
	}
	arg->out_done = arg->nr_ops;
	arg->out_error = 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	uint32_t *size;

	CHECK(fd == ring_fd);
	va_start(args, request);
	size = va_arg(args, void *);
	va_end(args);
	switch (request) {
	case RDMATENSOR_SUBMIT:
		submit((struct rdmatensor_submit *)size);
		break;
	case RDMATENSOR_QUERY:
	case RDMATENSOR_START:
	case RDMATENSOR_CONNECT:
	case RDMATENSOR_CHANNEL_QUERY:
	case RDMATENSOR_TABLE_OPEN:
		/* As by copy_to_user(), of all members behind the first */
		memset(size + 1, 'x', *size - sizeof(*size));
		break;
	default:
		errno = ENOTTY;
		return -1;
	}
	return 0;
}

int open(const char *path, int flags, ...)
{
	(void)flags;
	if (strcmp(path, PATH)) {
		errno = ENOENT;
		return -1;
	}
	return ring_fd;
}

static void make_ring(void)
{
	ring_fd = memfd_create("ring", 0);
	CHECK(ring_fd >= 0 && !ftruncate(ring_fd, RING_BYTES));
	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	CHECK(ring != MAP_FAILED);
	ring->entries = ENTRIES;
	ring->entry_bytes = sizeof(struct rdmatensor_cqe);
	ring->entries_offset = 4096;
}

#define NEW(type) ((type *)calloc(1, sizeof(type)))

static void structs(struct rdmatensor *rt)
{
	struct rdmatensor_channel_query *channel = NEW(struct rdmatensor_channel_query);
	struct rdmatensor_table_open *table = NEW(struct rdmatensor_table_open);
	struct rdmatensor_connect *connect = NEW(struct rdmatensor_connect);
	struct rdmatensor_query *query = NEW(struct rdmatensor_query);
	uint32_t self = RDMATENSOR_CHANNEL_SELF;
	char cause[400];

	CHECK(!rdmatensor_query(rt, query));
	CHECK(query->size == sizeof(*query));
	CHECK(!rdmatensor_channel_query(rt, channel));
	CHECK(channel->size == sizeof(*channel));
	CHECK(!rdmatensor_table_open(rt, "t", &self, 1, table));
	CHECK(table->size == sizeof(*table));
	CHECK(!rdmatensor_connect_raw(rt, connect));
	CHECK(connect->size == sizeof(*connect));
	memset(connect, 0, sizeof(*connect));
	CHECK(!rdmatensor_connect_peer(rt, "127.0.0.1", connect, cause, sizeof(cause)));
	CHECK(connect->out_channel == 0x78787878);
	free(query);
	free(channel);
	free(table);
	free(connect);
}

static void operations(struct rdmatensor *rt)
{
	struct rdmatensor_op *ops = calloc(3, sizeof(*ops));
	struct rdmatensor_cqe *cqe = NEW(struct rdmatensor_cqe);
	unsigned int done, i;

	for (i = 0; i < 3; i++)
		rdmatensor_prep_fetch(&ops[i], 0, "x", 0, 1, 0, 64, 0, i);
	CHECK(!rdmatensor_submit(rt, ops, 3, 0, 0, &done));
	CHECK(done == 3 && nr_ops == 3 && !nr_long);
	for (i = 0; i < 3; i++)
		CHECK(rdmatensor_reap(rt, cqe, 1) == 1 && cqe->user_data == i);
	CHECK(!rdmatensor_run(rt, &ops[2], cqe));
	CHECK(cqe->user_data == 2 && nr_ops == 4 && nr_long == 1);
	free(ops);
	free(cqe);
}

int main(void)
{
	struct rdmatensor_start *start = NEW(struct rdmatensor_start);
	struct rdmatensor *rt;
	char cause[400];

	make_ring();
	CHECK(!rdmatensor_open(PATH, &rt));
	rdmatensor_start_init(start, "old");
	CHECK(!rdmatensor_start_set(start, "queue_depth", 64));
	CHECK(!rdmatensor_start_from_env(start, cause, sizeof(cause)));
	CHECK(!rdmatensor_start_listen(start, "127.0.0.1", cause, sizeof(cause)));
	CHECK(!rdmatensor_start(rt, start));
	CHECK(start->size == sizeof(*start));
	structs(rt);
	operations(rt);
	rdmatensor_close(rt);
	free(start);
	return 0;
}
