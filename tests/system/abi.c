// SPDX-License-Identifier: GPL-2.0
/* The ABI itself: lengths, reserved fields, states, START's ranges */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness.h"

static struct side s;

static const struct {
	unsigned long cmd;
	const char *name;
	uint32_t size;
} calls[] = {
	{ RDMATENSOR_QUERY, "QUERY", sizeof(struct rdmatensor_query) },
	{ RDMATENSOR_START, "START", sizeof(struct rdmatensor_start) },
	{ RDMATENSOR_CONFIGURE, "CONFIGURE", sizeof(struct rdmatensor_configure) },
	{ RDMATENSOR_STATS, "STATS", sizeof(struct rdmatensor_stats) },
	{ RDMATENSOR_POOL_CREATE, "POOL_CREATE", sizeof(struct rdmatensor_pool_create) },
	{ RDMATENSOR_POOL_DESTROY, "POOL_DESTROY", sizeof(struct rdmatensor_pool_destroy) },
	{ RDMATENSOR_POOL_ALLOC, "POOL_ALLOC", sizeof(struct rdmatensor_pool_alloc) },
	{ RDMATENSOR_CONNECT, "CONNECT", sizeof(struct rdmatensor_connect) },
	{ RDMATENSOR_DISCONNECT, "DISCONNECT", sizeof(struct rdmatensor_disconnect) },
	{ RDMATENSOR_CHANNEL_QUERY, "CHANNEL_QUERY", sizeof(struct rdmatensor_channel_query) },
	{ RDMATENSOR_STEP_ABORT, "STEP_ABORT", sizeof(struct rdmatensor_step_abort) },
	{ RDMATENSOR_SUBMIT, "SUBMIT", sizeof(struct rdmatensor_submit) },
};

static int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

TEST(lengths_of_structs)
{
	union {
		uint32_t size;
		char bytes[1024];
	} arg;
	unsigned int i;
	int fd, same;

	side_open(&s, "abi", 4096, 0, NULL);
	fd = rdmatensor_fd(s.rt);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		printf("# %s\n", calls[i].name);
		memset(&arg, 0, sizeof(arg));
		arg.size = calls[i].size - 1;
		EQ(call(fd, calls[i].cmd, &arg), -EINVAL);
		arg.size = 0;
		EQ(call(fd, calls[i].cmd, &arg), -EINVAL);
		memset(&arg, 0, sizeof(arg));
		arg.size = calls[i].size;
		same = call(fd, calls[i].cmd, &arg);
		memset(&arg, 0, sizeof(arg));
		arg.size = calls[i].size + 8;
		EQ(call(fd, calls[i].cmd, &arg), same);
		memset(&arg, 0, sizeof(arg));
		arg.size = calls[i].size + 8;
		arg.bytes[calls[i].size + 7] = 1;
		EQ(call(fd, calls[i].cmd, &arg), -E2BIG);
		arg.size = 1 << 20;
		EQ(call(fd, calls[i].cmd, &arg), -E2BIG);
		EQ(call(fd, calls[i].cmd, (void *)8), -EFAULT);
	}
	EQ(call(fd, _IO(RDMATENSOR_IOC_TYPE, 0x7f), &arg), -ENOTTY);
	EQ(call(fd, _IO(RDMATENSOR_IOC_TYPE, 0xff), &arg), -ENOTTY);
	EQ(call(fd, _IOR(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_QUERY, int), &arg), -ENOTTY);
}

TEST(before_start)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_query query;
	struct rdmatensor *rt;

	EQ(rdmatensor_open(NULL, &rt), 0);
	EQ(rdmatensor_query(rt, &query), 0);
	EQ(query.abi_version, RDMATENSOR_ABI_VERSION);
	EQ(query.flags, 0);
	EQ(rdmatensor_pool_create(rt, 4096, &pool), -ENOTCONN);
	EQ(rdmatensor_disconnect(rt, 1), -ENOTCONN);
	EQ(rdmatensor_step_abort(rt, 1, -EIO, NULL), -ENOTCONN);
	EQ(rdmatensor_configure(rt, 1, 1), -ENOTCONN);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, rdmatensor_fd(rt), 0) == MAP_FAILED);
	rdmatensor_close(rt);
}

TEST(start_names_what_is_wrong)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;

	EQ(rdmatensor_open(NULL, &rt), 0);
#define BAD(_set, _error, _text) \
	do { \
		rdmatensor_start_init(&start, "abi"); \
		_set; \
		EQ(rdmatensor_start(rt, &start), _error); \
		if (!strstr(start.cause, _text)) \
			test_fail(__FILE__, __LINE__, "cause is '%s', without '%s'", \
				  start.cause, _text); \
	} while (0)

	BAD(start.worker[0] = 0, -EINVAL, "worker name");
	BAD(memset(start.worker, 'x', 64), -EINVAL, "worker name");
	BAD(strcpy(start.device_name, "mlx9_9"), -ENODEV, "rxe0/1 ACTIVE");
	BAD(start.port = 2, -EINVAL, "1..1");
	BAD((start.flags |= RDMATENSOR_START_GID_INDEX, start.gid_index = 100000), -EADDRNOTAVAIL,
	    "gid");
	BAD((start.flags |= RDMATENSOR_START_GID_INDEX, start.gid_index = 200), -EADDRNOTAVAIL,
	    "empty");
	BAD(start.mtu = 1500, -EINVAL, "256, 512");
	BAD(start.sl = 8, -EINVAL, "0..7");
	BAD(start.timeout = 32, -EINVAL, "1..31");
	BAD((start.flags |= RDMATENSOR_START_RETRY_COUNT, start.retry_count = 8), -EINVAL, "0..7");
	BAD(start.traffic_class = 256, -EINVAL, "0..255");
	BAD(start.msg_slots = 3, -EINVAL, "power of two");
	BAD(start.msg_slots = 2048, -EINVAL, "1..1024");
	BAD(start.msg_slot_bytes = 512, -EINVAL, "1024..65536");
	BAD((start.msg_slots = 8, start.ack_batch = 9), -EINVAL, "1..8");
	BAD((start.msg_slots = 64, start.msg_slot_bytes = 65536), -EINVAL, "message buffer");
	BAD(start.lanes = 9, -EINVAL, "1..8");
	BAD(start.queue_depth = 16000 * 2, -EINVAL, "queue_depth");
	BAD(start.queue_depth = 64, -EINVAL, "queue_depth");
	BAD(start.ring_entries = 1 << 21, -EINVAL, "ring_entries");
	BAD(start.flags = 1u << 31, -EINVAL, "flags");

	/* Nothing of it has stuck; a value equal to the active MTU is one */
	rdmatensor_start_init(&start, "abi");
	start.mtu = 1024;
	EQ(rdmatensor_start(rt, &start), 0);
	CHECK(strstr(start.cause, "MTU 1024"));
	EQ(rdmatensor_start(rt, &start), -EISCONN);
	rdmatensor_close(rt);
}

TEST(mappings)
{
	struct rdmatensor_pool pool;
	int fd;

	side_open(&s, "abi", 3 << 20, 0, NULL);
	fd = rdmatensor_fd(s.rt);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	CHECK(mmap(NULL, 64 << 20, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 99ll << 44) == MAP_FAILED);
	/* A pool's bytes are zero, the process's to write, and all there */
	CHECK(side_at(&s, 0)[0] == 0 && side_at(&s, 0)[(3 << 20) - 1] == 0);
	fill(side_at(&s, 0), 3 << 20, 1);
	CHECK(filled(side_at(&s, 0), 3 << 20, 1));
	EQ(rdmatensor_pool_create(s.rt, 0, &pool), -EINVAL);
	EQ(rdmatensor_pool_create(s.rt, 1, &pool), 0);
	EQ(pool.bytes, 4096);
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
}
