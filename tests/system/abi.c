// SPDX-License-Identifier: GPL-2.0
/*
 * The ABI beyond single fields (those are in fields.c): numbers, states, START's
 * texts, mappings, the ring, close() and fork(), 32-bit calls.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

static struct side s;

static int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

TEST(unknown_numbers)
{
	static const unsigned int types[] = { RDMATENSOR_IOC_TYPE - 1, 0xd8, 255 };
	static char arg[8192] __attribute__((aligned(8)));
	unsigned int nr, i;
	int fd;

	side_open(&s, "abi", 4096, 0, NULL);
	fd = rdmatensor_fd(s.rt);
	for (nr = 0; nr < 256; nr++) {
		if (nr < RDMATENSOR_CMD_QUERY || nr > RDMATENSOR_CMD_DUMP ||
		    nr == RDMATENSOR_CMD_DOMAIN_QUERY)
			EQ(call(fd, _IO(RDMATENSOR_IOC_TYPE, nr), arg), -ENOTTY);
		/* Known numbers of another type, direction or size are others */
		for (i = 0; i < sizeof(types) / sizeof(*types); i++)
			EQ(call(fd, _IO(types[i], nr), arg), -ENOTTY);
		EQ(call(fd, _IOR(RDMATENSOR_IOC_TYPE, nr, int), arg), -ENOTTY);
		EQ(call(fd, _IOW(RDMATENSOR_IOC_TYPE, nr, char[64]), arg), -ENOTTY);
	}
	EQ(call(fd, _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_QUERY) | 1ul << 31, arg), -ENOTTY);
	/* What a file of another kind has */
	CHECK(read(fd, arg, 1) < 0 && write(fd, arg, 1) < 0 && lseek(fd, 0, SEEK_SET) < 0);
}

TEST(before_start)
{
	struct rdmatensor_pool_alloc alloc = { .size = sizeof(alloc), .bytes = 1 };
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };
	struct rdmatensor_channel_query channel = { .size = sizeof(channel) };
	struct rdmatensor_stats stats = { .size = sizeof(stats) };
	struct rdmatensor_submit submit = { .size = sizeof(submit) };
	struct rdmatensor_connect connect = { .size = sizeof(connect), .addr = { AF_INET } };
	struct pollfd pfd = { .events = POLLIN };
	struct rdmatensor_pool pool;
	struct rdmatensor_query query;
	struct rdmatensor *rt;

	EQ(rdmatensor_open(NULL, &rt), 0);
	pfd.fd = rdmatensor_fd(rt);
	EQ(rdmatensor_query(rt, &query), 0);
	EQ(query.abi_version, RDMATENSOR_ABI_VERSION);
	EQ(query.flags, 0);
	EQ(rdmatensor_pool_create(rt, 4096, &pool), -ENOTCONN);
	EQ(rdmatensor_pool_register(rt, (void *)4096, 4096, 0, 0, &pool, NULL, 0), -ENOTCONN);
	EQ(rdmatensor_pool_import(rt, -1, 0, 0, &pool, NULL, NULL, 0), -ENOTCONN);
	EQ(call(rdmatensor_fd(rt), RDMATENSOR_POOL_ALLOC, &alloc), -ENOTCONN);
	EQ(call(rdmatensor_fd(rt), RDMATENSOR_POOL_DESTROY, &destroy), -ENOTCONN);
	EQ(call(rdmatensor_fd(rt), RDMATENSOR_CHANNEL_QUERY, &channel), -ENOTCONN);
	EQ(call(rdmatensor_fd(rt), RDMATENSOR_STATS, &stats), -ENOTCONN);
	EQ(call(rdmatensor_fd(rt), RDMATENSOR_SUBMIT, &submit), -ENOTCONN);
	EQ(call(rdmatensor_fd(rt), RDMATENSOR_CONNECT, &connect), -ENOTCONN);
	EQ(poll(&pfd, 1, 0), 1);
	EQ(pfd.revents, POLLERR);
	EQ(rdmatensor_disconnect(rt, 1), -ENOTCONN);
	EQ(rdmatensor_step_abort(rt, 1, -EIO, NULL), -ENOTCONN);
	EQ(rdmatensor_configure(rt, 1, 1), -ENOTCONN);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, rdmatensor_fd(rt), 0) == MAP_FAILED);
	rdmatensor_close(rt);
}

/* Return: what it says, 0 for nothing in @ms */
static uint32_t epoll_says(int epoll, int ms)
{
	struct epoll_event event = { 0 };

	return epoll_wait(epoll, &event, 1, ms) == 1 ? event.events : 0;
}

static void *epoll_until_entry(void *epoll)
{
	return (void *)(uintptr_t)epoll_says(*(int *)epoll, 20000);
}

/* epoll waits where it did when the descriptor was added, whatever START has come to since */
TEST(epoll_that_was_there_before_start)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct rdmatensor_query query;
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	struct rdmatensor *rt;
	pthread_t threads[4];
	char addr[64];
	unsigned int i;
	int epolls[4];
	void *said;

	EQ(rdmatensor_open(NULL, &rt), 0);
	for (i = 0; i < 4; i++) {
		epolls[i] = epoll_create1(EPOLL_CLOEXEC);
		EQ(epoll_ctl(epolls[i], EPOLL_CTL_ADD, rdmatensor_fd(rt), &event), 0);
		EQ(epoll_says(epolls[i], 0), EPOLLERR);
	}
	rdmatensor_start_init(&start, "epoll");
	strcpy(start.device_name, "mlx9_9");
	EQ(rdmatensor_start(rt, &start), -ENODEV);
	/* One that had its ring already */
	side_open(&s, "taken", 4096, 1, NULL);
	EQ(rdmatensor_query(s.rt, &query), 0);
	rdmatensor_start_init(&start, "epoll");
	test_addr(addr, sizeof(addr), query.listen_port);
	EQ(rdmatensor_start_listen(&start, addr, NULL, 0), 0);
	EQ(rdmatensor_start(rt, &start), -EADDRINUSE);
	for (i = 0; i < 4; i++)
		EQ(epoll_says(epolls[i], 0), EPOLLERR);
	rdmatensor_start_init(&start, "epoll");
	EQ(rdmatensor_start(rt, &start), 0);
	for (i = 0; i < 4; i++) {
		EQ(epoll_says(epolls[i], 0), 0);
		EQ(pthread_create(&threads[i], NULL, epoll_until_entry, &epolls[i]), 0);
	}
	EQ(rdmatensor_pool_create(rt, 4096, &pool), 0);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "nobody's", 0, pool.id, 0, 0,
			      rdmatensor_deadline_ms(100), 1);
	EQ(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
	for (i = 0; i < 4; i++) {
		EQ(pthread_join(threads[i], &said), 0);
		EQ((uintptr_t)said, EPOLLIN);
	}
	EQ(rdmatensor_reap(rt, &cqe, 1), 1);
	EQ(cqe.result, -ETIMEDOUT);
	for (i = 0; i < 4; i++) {
		EQ(epoll_says(epolls[i], 0), 0);
		close(epolls[i]);
	}
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
	BAD(strcpy(start.worker, "a\nb"), -EINVAL, "control characters");
	BAD(strcpy(start.device_name, "mlx9_9"), -ENODEV, "rxe0/1 ACTIVE");
	BAD(start.port = 2, -EINVAL, "1..1");
	BAD((start.flags |= RDMATENSOR_START_GID_INDEX, start.gid_index = 256), -EINVAL,
	    "gid_index 256 is out of range: 0..255");
	BAD((start.flags |= RDMATENSOR_START_GID_INDEX, start.gid_index = 200), -EADDRNOTAVAIL,
	    "empty");
	BAD(start.mtu = 1500, -EINVAL, "256..4096, a power of two");
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

/* What mmap() of @fd says; what it maps is unmapped again */
static int map(int fd, size_t bytes, int prot, int flags, long long offset)
{
	void *at = mmap(NULL, bytes, prot, flags, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	CHECK(!munmap(at, bytes));
	return 0;
}

#define RW (PROT_READ | PROT_WRITE)

TEST(mappings)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_WRITE, RW, RW | PROT_EXEC };
	const size_t bytes = 3 << 20;
	struct rdmatensor_pool pool, gone;
	long long at, ring_bytes;
	unsigned int i;
	void *ring;
	int fd;

	side_open(&s, "abi", bytes, 0, NULL);
	fd = rdmatensor_fd(s.rt);
	at = s.pool.id * 4096ll;
	EQ(rdmatensor_pool_create(s.rt, 4096, &gone), 0);
	pool = gone;
	EQ(rdmatensor_pool_destroy(s.rt, &gone), 0);

	for (i = 0; i < sizeof(prots) / sizeof(*prots); i++) {
		EQ(map(fd, 4096, prots[i], MAP_SHARED, 0), 0);
		EQ(map(fd, bytes, prots[i], MAP_SHARED, at), 0);
		/* A copy on write would be of no use, and was never meant */
		EQ(map(fd, 4096, prots[i], MAP_PRIVATE, 0), -EINVAL);
		EQ(map(fd, bytes, prots[i], MAP_PRIVATE, at), -EINVAL);
	}
	/* The ring: any beginning of it, no more. A pool: all of it */
	ring_bytes = 4096 + 4096ll * sizeof(struct rdmatensor_cqe);
	EQ(map(fd, ring_bytes, RW, MAP_SHARED, 0), 0);
	EQ(map(fd, ring_bytes + 4096, RW, MAP_SHARED, 0), -EINVAL);
	EQ(map(fd, 1ul << 30, RW, MAP_SHARED, 0), -EINVAL);
	EQ(map(fd, bytes - 4096, RW, MAP_SHARED, at), -EINVAL);
	EQ(map(fd, bytes + 4096, RW, MAP_SHARED, at), -EINVAL);
	EQ(map(fd, 4096, RW, MAP_SHARED, at), -EINVAL);
	EQ(map(fd, bytes - 4096, RW, MAP_SHARED, at + 99 * 4096), -ENOENT);
	EQ(map(fd, 4096, RW, MAP_SHARED, (1ll << 44) - 4096), -ENOENT);
	EQ(map(fd, 4096, RW, MAP_SHARED, pool.id * 4096ll), -ENOENT);
	EQ(map(fd, 4096, RW, MAP_SHARED, 99ll * 4096), -ENOENT);
	EQ(map(fd, 4096, RW, MAP_SHARED, ((long long)s.pool.id << 32) * 4096 + at), -ENOENT);
	EQ(map(fd, 4096, RW, MAP_SHARED, 0x3ffffll << 44), -ENOENT);
	/* Neither grows, and what is beyond the end is not there */
	ring = mmap(NULL, 4096, RW, MAP_SHARED, fd, 0);
	CHECK(ring != MAP_FAILED);
	CHECK(mremap(ring, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(!munmap(ring, 4096));
	CHECK(mremap(s.pool.base, bytes, bytes + 4096, MREMAP_MAYMOVE) == MAP_FAILED);

	/* A pool's bytes are zero, the process's to write, and all there */
	CHECK(side_at(&s, 0)[0] == 0 && side_at(&s, 0)[bytes - 1] == 0);
	fill(side_at(&s, 0), bytes, 1);
	CHECK(filled(side_at(&s, 0), bytes, 1));
	EQ(rdmatensor_pool_create(s.rt, 0, &pool), -EINVAL);
	EQ(rdmatensor_pool_create(s.rt, 1, &pool), 0);
	EQ(pool.bytes, 4096);
	EQ(rdmatensor_pool_destroy(s.rt, &pool), 0);
}

#ifdef __x86_64__
/* As a process of 32 bits: an offset in pages, of 32 bits. Return: the address, or -errno */
static long mmap2(size_t bytes, int fd, unsigned int page)
{
	register unsigned long at asm("r12") = page;
	unsigned int ret;

	asm volatile("xchg %%rbp, %%r12\n\tint $0x80\n\txchg %%rbp, %%r12"
		     : "=a" (ret), "+r" (at)
		     : "a" (192), "b" (0), "c" ((unsigned int)bytes), "d" (RW), "S" (MAP_SHARED),
		       "D" (fd)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret > -4096u ? (long)(int)ret : (long)ret;
}
#endif

/* @narrow: maps each once more, as a process of 32 bits */
static void pools_of_all_sizes(void (*narrow)(size_t bytes, int fd, uint64_t offset, char last))
{
	static const unsigned long sizes[] = { 4096, 3 << 20, 8192, 12 << 20 };
	struct rdmatensor_pool_create pool = {};
	unsigned long long before = 0;
	unsigned int i;
	int fd;

	side_open(&s, "narrow", 4096, 0, NULL);
	fd = rdmatensor_fd(s.rt);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *at;

		pool = (struct rdmatensor_pool_create) { .size = sizeof(pool), .bytes = sizes[i] };
		EQ(ioctl(fd, RDMATENSOR_POOL_CREATE, &pool), 0);
		CHECK(pool.out_mmap_offset > before && pool.out_mmap_offset < 1ull << 44);
		EQ(pool.out_mmap_offset % 4096, 0);
		before = pool.out_mmap_offset;
		at = mmap(NULL, sizes[i], RW, MAP_SHARED, fd, (off_t)pool.out_mmap_offset);
		CHECK(at != MAP_FAILED);
		at[sizes[i] - 1] = (char)(i + 1);
		if (narrow)
			narrow(sizes[i], fd, pool.out_mmap_offset, (char)(i + 1));
	}
}

TEST(pools_one_behind_the_other)
{
	pools_of_all_sizes(NULL);
}

#ifdef __x86_64__
static void mapped_narrow(size_t bytes, int fd, uint64_t offset, char last)
{
	long at = mmap2(bytes, fd, (unsigned int)(offset >> 12));

	CHECK(at > 0 && at + bytes <= 1ull << 32);
	EQ(((char *)at)[bytes - 1], last);
}

TEST_STOCK(pools_of_processes_of_32_bits)
{
	pools_of_all_sizes(mapped_narrow);
}
#endif

/* Pages that a process lets go are the kernel's, and there when they are looked at again */
TEST(what_was_let_go_is_there)
{
	const size_t bytes = 3 << 20;
	struct rdmatensor_ring *ring;
	struct rdmatensor_cqe cqe;
	unsigned char *base;
	uint64_t at, got;
	int status;
	pid_t pid;

	side_open(&s, "forgetful", bytes, 0, NULL);
	base = s.pool.base;
	at = publish(&s, "t", 0, 300000, 7, 1, 1);
	EQ(madvise(base, bytes, MADV_DONTNEED), 0);
	CHECK(filled(side_at(&s, at), 300000, 7));
	EQ(madvise(base, bytes, MADV_DONTNEED), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!filled(side_at(&s, at), 300000, 7));
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	/* It is the same memory: what the module writes there is seen, and the other way round */
	fill(side_at(&s, at), 300000, 8);
	s.channel = RDMATENSOR_CHANNEL_SELF;
	EQ(madvise(base + 4096, bytes - 8192, MADV_DONTNEED), 0);
	EQ(fetch(&s, "t", 0, 300000, &got, &cqe), 0);
	CHECK(filled(side_at(&s, got), 300000, 8));

	ring = mmap(NULL, 4096, RW, MAP_SHARED, rdmatensor_fd(s.rt), RDMATENSOR_MMAP_RING);
	CHECK(ring != MAP_FAILED);
	EQ(madvise(ring, 4096, MADV_DONTNEED), 0);
	EQ(ring->entries, 4096);
	CHECK(ring->head > 0);
}

static struct pair p;

static int fetches(struct side *side)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;
	int ret;

	ret = fetch(side, "t", 0, 64, &at, &cqe);
	if (!ret)
		CHECK(filled(side_at(side, at), 64, 1));
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
	return ret;
}

static void small_ring(struct rdmatensor_start *start)
{
	start->ring_entries = 64;
}

/* By the kernel's own count: the library looks into the ring first */
static int wait_for(int fd, uint32_t nr, unsigned int ms)
{
	struct rdmatensor_submit submit = {
		.size = sizeof(submit), .wait_nr = nr, .deadline_ns = rdmatensor_deadline_ms(ms),
	};

	return call(fd, RDMATENSOR_SUBMIT, &submit);
}

TEST(nonsense_in_the_ring)
{
	static const uint32_t lies[] = { 1, 5, 63, 64, 65, 1000, 1u << 31, ~0u, ~0u - 64 };
	struct rdmatensor_ring *ring, right;
	struct pollfd pfd = { .events = POLLIN };
	struct rdmatensor_op op;
	uint32_t head;
	unsigned int i;
	int ret;

	pair_open(&p, 1 << 20, small_ring);
	side_open(&s, "other", 1 << 20, 0, NULL);
	side_connect(&s, &p.a);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(fetches(&p.b), 0);
	EQ(fetches(&s), 0);
	pfd.fd = rdmatensor_fd(p.b.rt);
	ring = mmap(NULL, 4096, RW, MAP_SHARED, pfd.fd, 0);
	CHECK(ring != MAP_FAILED);

	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		/*
		 * Beyond head, or too far behind: a full ring. Nothing more is taken,
		 * nothing waits for ever. One behind is one that was not consumed.
		 */
		head = ring->head;
		__atomic_store_n(&ring->tail, head + lies[i], __ATOMIC_RELEASE);
		rdmatensor_prep_fetch(&op, p.b.channel, "t", 0, p.b.pool.id, 0, 64, 0, 9);
		op.offset = side_alloc(&p.b, 64);
		ret = side_do(&p.b, &op);
		EQ(ret, lies[i] == ~0u ? 0 : -EAGAIN);
		EQ(wait_for(pfd.fd, 64, 1), lies[i] == ~0u ? -ETIME : 0);
		EQ(poll(&pfd, 1, 0), 1);
		/* Others do not notice */
		EQ(fetches(&s), 0);
		__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
		if (!ret)
			EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 9, NULL), 0);
		EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, op.offset), 0);
		EQ(fetches(&p.b), 0);
	}

	/* What the kernel has told there it does not read again */
	right = *ring;
	memset(ring, 0xff, 4096);
	rdmatensor_prep_fetch(&op, p.b.channel, "t", 0, p.b.pool.id, side_alloc(&p.b, 64), 64, 0,
			      10);
	ring->tail = right.tail;
	EQ(side_do(&p.b, &op), 0);
	EQ(wait_for(pfd.fd, 1, 10000), 0);
	EQ(ring->head, right.head + 1);
	EQ(ring->entries, ~0u);
	head = ring->head;
	*ring = right;
	ring->head = head;
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 10, NULL), 0);
	EQ(fetches(&p.b), 0);
	CHECK(!munmap(ring, 4096));
}

/*
 * One context, used by threads in every way that there is while its file is closed.
 */
#define USERS 6

static int racing_fd, racing_begun;
static uint32_t racing_pool, racing_channel;
static struct rdmatensor_connect racing_connect;

static void *race(void *arg)
{
	struct rdmatensor_connect connect = racing_connect;
	struct rdmatensor_submit submit = { .size = sizeof(submit), .op_size = sizeof(struct
					    rdmatensor_op), .nr_ops = 1 };
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = 1 << 20 };
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };
	struct rdmatensor_disconnect disconnect = { .size = sizeof(disconnect) };
	struct pollfd pfd = { .fd = racing_fd, .events = POLLIN };
	struct rdmatensor_op op;
	void *at;
	long ret;
	int i;

	rdmatensor_prep_fetch_alloc(&op, racing_channel, "t", 0, racing_pool, 0, 0, 1);
	submit.ops_uptr = rdmatensor_op_ptr(&op);
	for (i = 0; i < 100000; i++) {
		switch ((long)arg) {
		case 0: /* fetches, and waits for more than there is */
			submit.wait_nr = 64;
			submit.deadline_ns = rdmatensor_deadline_ms(5);
			ret = call(racing_fd, RDMATENSOR_SUBMIT, &submit);
			break;
		case 1:
			op.channel = RDMATENSOR_CHANNEL_SELF;
			ret = call(racing_fd, RDMATENSOR_SUBMIT, &submit);
			break;
		case 2:
			ret = poll(&pfd, 1, 1) >= 0 && pfd.revents & POLLNVAL ? -EBADF : 0;
			break;
		case 3:
			at = mmap(NULL, 1 << 20, RW, MAP_SHARED, racing_fd,
				  (long long)racing_pool << 44);
			ret = at == MAP_FAILED ? -errno : munmap(at, 1 << 20);
			break;
		case 4:
			ret = call(racing_fd, RDMATENSOR_POOL_CREATE, &create);
			destroy.pool_id = create.out_pool_id;
			if (!ret)
				ret = call(racing_fd, RDMATENSOR_POOL_DESTROY, &destroy);
			break;
		default:
			ret = call(racing_fd, RDMATENSOR_CONNECT, &connect);
			disconnect.channel = connect.out_channel;
			if (!ret)
				ret = call(racing_fd, RDMATENSOR_DISCONNECT, &disconnect);
			break;
		}
		if (ret == -EBADF)
			return NULL;
		__atomic_fetch_or(&racing_begun, 1 << (long)arg, __ATOMIC_RELAXED);
	}
	return arg;
}

static int raw_open(const char *worker)
{
	struct rdmatensor_start start;
	int fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	rdmatensor_start_init(&start, worker);
	start.size = sizeof(start);
	start.ring_entries = 64;
	EQ(call(fd, RDMATENSOR_START, &start), 0);
	return fd;
}

TEST(closed_while_in_use)
{
	struct rdmatensor_pool_create create;
	pthread_t threads[USERS];
	struct rdmatensor_cqe cqe;
	char addr[64];
	void *ret;
	int round;
	long i;

	side_open(&p.a, "a", 1 << 20, 1, NULL);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	test_addr(addr, sizeof(addr), p.a.port);
	memset(&racing_connect, 0, sizeof(racing_connect));
	racing_connect.size = sizeof(racing_connect);
	EQ(rdmatensor_parse_addr(addr, 0, 0, racing_connect.addr, NULL, 0), 0);

	for (round = 0; round < 25; round++) {
		racing_fd = raw_open("racer");
		memset(&create, 0, sizeof(create));
		create.size = sizeof(create);
		create.bytes = 1 << 20;
		EQ(call(racing_fd, RDMATENSOR_POOL_CREATE, &create), 0);
		racing_pool = create.out_pool_id;
		EQ(call(racing_fd, RDMATENSOR_CONNECT, &racing_connect), 0);
		racing_channel = racing_connect.out_channel;
		racing_begun = 0;
		for (i = 0; i < USERS; i++)
			EQ(pthread_create(&threads[i], NULL, race, (void *)i), 0);
		/* Each has done its call once, whatever came of it; from then on at any time */
		while (__atomic_load_n(&racing_begun, __ATOMIC_RELAXED) != (1 << USERS) - 1)
			sched_yield();
		usleep(round * 300);
		CHECK(!close(racing_fd));
		for (i = 0; i < USERS; i++) {
			EQ(pthread_join(threads[i], &ret), 0);
			CHECK(!ret);
		}
	}
	side_open(&p.b, "b", 1 << 20, 0, NULL);
	side_connect(&p.b, &p.a);
	EQ(fetches(&p.b), 0);
	/* As many ends as beginnings */
	for (i = 0; side_stat(&p.a, RDMATENSOR_STAT_CHANNELS_UP) - 1 >
		    side_stat(&p.a, RDMATENSOR_STAT_CHANNELS_DOWN); i++)
		EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe), -ECONNRESET);
	printf("# %ld ends were still to come\n", i);
}

TEST(fork_shares_the_context)
{
	struct rdmatensor_cqe cqe;
	int status, fds[2];
	pid_t pid;
	char byte;

	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(fetches(&p.b), 0);
	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		/* The same pool and context, not copies; the test's end is the parent's */
		struct rdmatensor_query query;
		struct rdmatensor_op op;

		side_at(&p.b, 0)[4096] = 0x5a;
		rdmatensor_prep_fetch_alloc(&op, p.b.channel, "t", 0, p.b.pool.id, 0, 0, 5);
		_exit(side_do(&p.b, &op) || rdmatensor_query(p.b.rt, &query) ||
		      read(fds[0], &byte, 1) != 1);
	}
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 5, &cqe), 0);
	CHECK(filled(side_at(&p.b, cqe.offset), 64, 1));
	EQ(side_at(&p.b, 0)[4096], 0x5a);
	EQ(fetches(&p.b), 0);
	/* The parent closes first: the child keeps the context until it ends */
	side_close(&p.b);
	side_none(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, 50);
	EQ(write(fds[1], "x", 1), 1);
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	close(fds[0]);
	close(fds[1]);
}

/* ioctl() by the entry of 32-bit processes, which a 64-bit one can take as well */
static int call32(int fd, unsigned long cmd, void *arg)
{
	int ret;

	__asm__ volatile("int $0x80" : "=a" (ret) :
			 "a" (54), "b" (fd), "c" (cmd), "d" (arg) :
			 "memory", "cc", "r8", "r9", "r10", "r11");
	return ret;
}

TEST_STOCK(calls_of_32_bit_processes)
{
	union {
		uint32_t size;
		struct rdmatensor_query query;
		struct rdmatensor_start start;
		struct rdmatensor_pool_create create;
		struct rdmatensor_pool_destroy destroy;
		struct rdmatensor_submit submit;
	} *arg;
	struct rdmatensor_op *op;
	struct rdmatensor *rt;
	int fd;

	arg = mmap(NULL, 8192, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(arg != MAP_FAILED);
	op = (void *)((char *)arg + 4096);
	EQ(rdmatensor_open(NULL, &rt), 0);
	fd = rdmatensor_fd(rt);

	arg->size = sizeof(struct rdmatensor_query);
	EQ(call32(fd, RDMATENSOR_QUERY, arg), 0);
	EQ(arg->query.abi_version, RDMATENSOR_ABI_VERSION);
	rdmatensor_start_init(&arg->start, "abi32");
	arg->start.size = sizeof(struct rdmatensor_start);
	EQ(call32(fd, RDMATENSOR_START, arg), 0);
	memset(arg, 0, sizeof(*arg));
	arg->size = sizeof(struct rdmatensor_pool_create);
	arg->create.bytes = 1;
	EQ(call32(fd, RDMATENSOR_POOL_CREATE, arg), 0);
	EQ(arg->create.bytes, 4096);
	rdmatensor_prep_publish_failed(op, "", 1, -EIO, NULL, 0, 0);
	memcpy(op + 1, "name", 4);
	op->name_uptr = rdmatensor_op_ptr(op + 1);
	op->name_len = 4;
	memset(arg, 0, sizeof(*arg));
	arg->size = sizeof(struct rdmatensor_submit);
	arg->submit.op_size = sizeof(*op);
	arg->submit.ops_uptr = rdmatensor_op_ptr(op);
	arg->submit.nr_ops = 1;
	EQ(call32(fd, RDMATENSOR_SUBMIT, arg), 0);
	EQ(arg->submit.out_done, 1);
	EQ(call32(fd, RDMATENSOR_SUBMIT, arg), -EEXIST);
	EQ(arg->submit.out_error, -EEXIST);
	arg->size = offsetof(struct rdmatensor_submit, flags) - 1;
	EQ(call32(fd, RDMATENSOR_SUBMIT, arg), -EINVAL);
	EQ(call32(fd, RDMATENSOR_SUBMIT, (void *)8), -EFAULT);
	EQ(call32(fd, _IO(RDMATENSOR_IOC_TYPE, 0xff), arg), -ENOTTY);
	rdmatensor_close(rt);
	munmap(arg, 8192);
}
