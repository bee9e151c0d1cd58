// SPDX-License-Identifier: GPL-2.0
/*
 * RDMATENSOR_DUMP: what a user's own contexts do, without privileges; and nothing of anybody
 * else's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/genetlink.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdmatensor/netlink.h>
#include "harness.h"

/* A user that no other test is */
#define NOBODY 60001
#define TENSORS 300
#define CONTEXTS 12

static struct pair p;
static char room[RDMATENSOR_DUMP_ROOM_MAX] __attribute__((aligned(4)));

static void begin(struct rdmatensor_dump *dump, int command)
{
	*dump = (struct rdmatensor_dump){
		.size = sizeof(*dump), .command = command,
		.buf_uptr = (uint64_t)(uintptr_t)room, .room = RDMATENSOR_DUMP_ROOM_MIN,
	};
}

static const void *value(const struct nlmsghdr *nl, int type)
{
	const char *at = (const char *)nl + NLMSG_LENGTH(GENL_HDRLEN);
	const char *end = (const char *)nl + nl->nlmsg_len;

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attr = (const struct nlattr *)at;

		CHECK(attr->nla_len >= NLA_HDRLEN && at + attr->nla_len <= end);
		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			return at + NLA_HDRLEN;
		at += NLA_ALIGN(attr->nla_len);
	}
	return NULL;
}

/* The messages of one call. Return: how many; @each is called with each of them */
static int messages(const struct rdmatensor_dump *dump, void (*each)(const struct nlmsghdr *nl))
{
	const struct nlmsghdr *nl = (const struct nlmsghdr *)(uintptr_t)dump->buf_uptr;
	int left = dump->out_bytes, nr = 0;

	CHECK(dump->out_bytes <= dump->room);
	for (; left; nl = (const void *)((const char *)nl + NLMSG_ALIGN(nl->nlmsg_len))) {
		const struct genlmsghdr *genl = NLMSG_DATA(nl);

		CHECK(left >= (int)sizeof(*nl) && nl->nlmsg_len <= (unsigned int)left);
		EQ(genl->cmd, dump->command);
		if (each)
			each(nl);
		left -= NLMSG_ALIGN(nl->nlmsg_len);
		nr++;
	}
	return nr;
}

/* Return: the objects of a whole dump by @fd */
static int count(int fd, int command, void (*each)(const struct nlmsghdr *nl))
{
	struct rdmatensor_dump dump;
	int nr = 0;

	begin(&dump, command);
	do {
		EQ(ioctl(fd, RDMATENSOR_DUMP, &dump), 0);
		nr += messages(&dump, each);
	} while (dump.out_bytes);
	return nr;
}

/* What other tests have left may still be ending: the last ones of theirs, and how many came after */
static uint32_t last_context, last_domain;
static int later;

static void note_last(const struct nlmsghdr *nl)
{
	const uint32_t *context = value(nl, RDMATENSOR_NL_A_CONTEXT);
	const uint32_t *domain = value(nl, RDMATENSOR_NL_A_DOMAIN);

	if (context && *context > last_context)
		last_context = *context;
	if (domain && *domain > last_domain)
		last_domain = *domain;
}

static void note_later(const struct nlmsghdr *nl)
{
	const uint32_t *context = value(nl, RDMATENSOR_NL_A_CONTEXT);
	const uint32_t *domain = value(nl, RDMATENSOR_NL_A_DOMAIN);

	later += context ? *context > last_context : *domain > last_domain;
}

static void pair_begin(uint64_t pool_bytes)
{
	int fd = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	count(fd, RDMATENSOR_NL_CMD_CONTEXT_GET, note_last);
	count(fd, RDMATENSOR_NL_CMD_DOMAIN_GET, note_last);
	close(fd);
	pair_open(&p, pool_bytes, NULL);
}

/* So many that they are not passed in one go; the caller's, and to others those of somebody else */
static int crowd[200];

static void crowd_close(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(crowd) / sizeof(*crowd); i++) {
		if (crowd[i] > 0)
			close(crowd[i]);
		crowd[i] = 0;
	}
}

static void crowd_open(void)
{
	unsigned int i;

	test_at_end(crowd_close);
	for (i = 0; i < sizeof(crowd) / sizeof(*crowd); i++)
		CHECK((crowd[i] = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC)) > 0);
}

/* This test's own */
static int count_of(struct side *side, int command)
{
	later = 0;
	count(rdmatensor_fd(side->rt), command, note_later);
	return later;
}

static int count_all(int command)
{
	return count(rdmatensor_fd(p.a.rt), command, NULL);
}

static uint32_t asker;

static void note_request(const struct nlmsghdr *nl)
{
	const uint32_t *context = value(nl, RDMATENSOR_NL_A_CONTEXT);

	if (*context > last_context)
		asker = *context;
}

/* All that there is, of both sides, by the descriptor of either */
TEST(own_dumps_of_each_kind)
{
	struct rdmatensor_dump dump;
	uint32_t table;
	struct rdmatensor_op op;
	uint64_t at;
	int domain, bare;

	pair_begin(1 << 20);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	/* Whole pages of it */
	at = (side_alloc(&p.a, 8192) + 4095) & ~4095ull;
	EQ(rdmatensor_table_export(p.a.rt, "rows", &p.a.pool, at, 0, 8, 512, 0,
				   RDMATENSOR_DT_FLOAT, &table), 0);
	rdmatensor_prep_fetch(&op, p.b.channel, "none", 0, p.b.pool.id, side_alloc(&p.b, 64), 64,
			      0, 7);
	EQ(side_do(&p.b, &op), 0);
	EQ(rdmatensor_domain_create(p.a.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);

	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_CONTEXT_GET), 2);
	EQ(count_of(&p.b, RDMATENSOR_NL_CMD_CONTEXT_GET), 2);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_CHANNEL_GET), 2);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_POOL_GET), 2);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_REQUEST_GET), 1);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_TABLE_GET), 1);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_TENSOR_GET), 1);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_DOMAIN_GET), 2);

	/* Of one context, as it says itself */
	later = 0;
	count(rdmatensor_fd(p.a.rt), RDMATENSOR_NL_CMD_REQUEST_GET, note_request);
	begin(&dump, RDMATENSOR_NL_CMD_CONTEXT_GET);
	dump.context = asker;
	EQ(ioctl(rdmatensor_fd(p.a.rt), RDMATENSOR_DUMP, &dump), 0);
	EQ(messages(&dump, NULL), 1);
	CHECK(!strcmp(value((void *)room, RDMATENSOR_NL_A_WORKER), "b"));

	/* Domains are no context's */
	begin(&dump, RDMATENSOR_NL_CMD_DOMAIN_GET);
	dump.context = asker;
	EQ(ioctl(rdmatensor_fd(p.a.rt), RDMATENSOR_DUMP, &dump), -1);
	EQ(errno, EINVAL);

	/* One that no context has any more, but the descriptor */
	EQ(rdmatensor_domain_create(p.b.rt, RDMATENSOR_DOMAIN_CLOEXEC, &bare), 0);
	side_close(&p.b);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_CONTEXT_GET), 1);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_POOL_GET), 2);
	close(bare);
	close(domain);
}

static pid_t shown_pid;

static void note_pid(const struct nlmsghdr *nl)
{
	shown_pid = *(const uint32_t *)value(nl, RDMATENSOR_NL_A_PID);
}

/* Return: whether a dump from @first in place[0] on, of @context, leads to nothing, and tells nothing */
static bool tells_nothing(int fd, int command, uint32_t context, uint64_t first, uint64_t fifth)
{
	struct rdmatensor_dump dump;
	int i;

	begin(&dump, command);
	dump.context = context;
	dump.place[0] = first;
	dump.place[5] = fifth;
	if (ioctl(fd, RDMATENSOR_DUMP, &dump) || dump.out_bytes || dump.generation != 1)
		return false;
	for (i = 1; i < 5; i++)
		if (dump.place[i])
			return false;
	/* Those without contexts come next */
	return !dump.place[0] || dump.place[0] == first;
}

/* Return: 0, or what was wrong */
static int by_nobody(void)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	uint32_t id;
	int i, fd = rdmatensor_fd(p.a.rt);

	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	/* A descriptor that was handed down shows what the user's are, not its opener's */
	for (i = RDMATENSOR_NL_CMD_CONTEXT_GET; i <= RDMATENSOR_NL_CMD_TENSOR_GET; i++)
		for (id = 0; i != RDMATENSOR_NL_CMD_EVENT && id < 64; id++)
			if (count_all(i) || !tells_nothing(fd, i, 0, id, 0) ||
			    !tells_nothing(fd, i, 0, id, 1) ||
			    (i != RDMATENSOR_NL_CMD_DOMAIN_GET && !tells_nothing(fd, i, id, 0, 0)))
				return 2;
	if (rdmatensor_open(NULL, &rt))
		return 3;
	rdmatensor_start_init(&start, "nobody");
	if (rdmatensor_start(rt, &start))
		return 4;
	if (count(rdmatensor_fd(rt), RDMATENSOR_NL_CMD_CONTEXT_GET, note_pid) != 1)
		return 5;
	if (shown_pid != getpid())
		return 6;
	if (count(rdmatensor_fd(rt), RDMATENSOR_NL_CMD_DOMAIN_GET, NULL) != 1)
		return 7;
	return 0;
}

TEST(own_dumps_are_the_users)
{
	struct stat device;
	int status;

	pair_begin(1 << 20);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(stat("/dev/rdmatensor", &device), 0);
	EQ(chmod("/dev/rdmatensor", 0666), 0);
	crowd_open();
	status = test_child(by_nobody);
	crowd_close();
	EQ(chmod("/dev/rdmatensor", device.st_mode & 0777), 0);
	EQ(status, 0);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_CONTEXT_GET), 2);
}

static int sees_nothing(void)
{
	return count_all(RDMATENSOR_NL_CMD_CONTEXT_GET) ||
	       count_all(RDMATENSOR_NL_CMD_TENSOR_GET) ||
	       count_all(RDMATENSOR_NL_CMD_DOMAIN_GET);
}

static int in_pid_namespace(void)
{
	return unshare(CLONE_NEWPID) ? 99 : test_child(sees_nothing);
}

/* The same user, in a container that does not see the process */
TEST(own_dumps_are_the_pid_namespaces)
{
	pair_begin(1 << 20);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(test_child(in_pid_namespace), 0);
	EQ(count_of(&p.a, RDMATENSOR_NL_CMD_TENSOR_GET), 1);
}

static int seen[TENSORS];

static void see(const struct nlmsghdr *nl)
{
	const int64_t *step = value(nl, RDMATENSOR_NL_A_STEP);
	int64_t at;

	if (*(const uint32_t *)value(nl, RDMATENSOR_NL_A_CONTEXT) <= last_context)
		return;
	CHECK(step);
	memcpy(&at, step, sizeof(at));
	CHECK(at >= 0 && at < TENSORS);
	seen[at]++;
}

TEST(own_dumps_go_on)
{
	struct rdmatensor_dump dump;
	int i, calls, changes, dumps = 0;

	pair_begin(1 << 20);
	for (i = 0; i < TENSORS; i++)
		publish(&p.a, "a name that has some length", i, 64, 1, 0, 0);
	do {
		memset(seen, 0, sizeof(seen));
		begin(&dump, RDMATENSOR_NL_CMD_TENSOR_GET);
		changes = 0;
		calls = 0;
		do {
			EQ(ioctl(rdmatensor_fd(p.b.rt), RDMATENSOR_DUMP, &dump), 0);
			changes |= dump.flags;
			messages(&dump, see);
			calls++;
		} while (dump.out_bytes);
		/* What other tests have left may end meanwhile, but not for ever */
		CHECK(++dumps < 1000);
	} while (changes);
	CHECK(calls > 3);
	for (i = 0; i < TENSORS; i++)
		EQ(seen[i], 1);
}

static void small(struct rdmatensor_start *start)
{
	start->ring_entries = 16;
}

/* Return: whether the second call says that something has changed since the first one */
static int changed(int fd, int come)
{
	struct rdmatensor_dump dump;
	int other = -1;

	begin(&dump, RDMATENSOR_NL_CMD_CONTEXT_GET);
	EQ(ioctl(fd, RDMATENSOR_DUMP, &dump), 0);
	EQ(dump.flags, 0);
	CHECK(dump.out_bytes);
	if (come)
		CHECK((other = open("/dev/rdmatensor", O_RDWR | O_CLOEXEC)) >= 0);
	EQ(ioctl(fd, RDMATENSOR_DUMP, &dump), 0);
	CHECK(dump.out_bytes);
	close(other);
	return dump.flags == RDMATENSOR_DUMP_CHANGED;
}

TEST(own_dumps_say_what_has_changed)
{
	static struct side sides[CONTEXTS];
	int i, fd;

	for (i = 0; i < CONTEXTS; i++)
		side_open(&sides[i], "dumped", 4096, 0, small);
	fd = rdmatensor_fd(sides[0].rt);
	crowd_open();
	/* Not at once, if what other tests have left ends meanwhile */
	for (i = 0; changed(fd, 0); i++)
		CHECK(i < 1000);
	EQ(changed(fd, 1), 1);
	for (i = 0; changed(fd, 0); i++)
		CHECK(i < 1000);
	crowd_close();
}

/* Any place leads to objects, or to none */
TEST(own_dumps_from_anywhere)
{
	static const uint64_t some[] = {
		0, 1, 2, 3, UINT32_MAX, UINT32_MAX + 1ull, INT64_MAX, 1ull << 63, UINT64_MAX - 1,
		UINT64_MAX,
	};
	struct rdmatensor_dump dump;
	struct rdmatensor_op op;
	unsigned int state = 1;
	int i, k;

	pair_begin(1 << 20);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	rdmatensor_prep_fetch(&op, p.b.channel, "none", 0, p.b.pool.id, side_alloc(&p.b, 64), 64,
			      0, 7);
	EQ(side_do(&p.b, &op), 0);
	for (i = 0; i < 4000; i++) {
		begin(&dump, 1 + i % RDMATENSOR_NL_CMD_TENSOR_GET);
		for (k = 0; k < 6; k++)
			dump.place[k] = some[rand_r(&state) % (sizeof(some) / sizeof(*some))];
		dump.generation = rand_r(&state);
		EQ(ioctl(rdmatensor_fd(p.a.rt), RDMATENSOR_DUMP, &dump) ? errno : 0,
		   dump.command == RDMATENSOR_NL_CMD_EVENT ? EINVAL : 0);
		messages(&dump, NULL);
	}
}

/* As many threads as there are kinds, by one descriptor, beside contexts that come and go */
static int over;

static void *dump_all(void *command)
{
	static __thread char mine[RDMATENSOR_DUMP_ROOM_MIN] __attribute__((aligned(4)));
	struct rdmatensor_dump dump;
	long calls = 0, nr;
	bool same;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		begin(&dump, (int)(long)command);
		dump.buf_uptr = (uint64_t)(uintptr_t)mine;
		same = true;
		nr = 0;
		do {
			if (ioctl(rdmatensor_fd(p.a.rt), RDMATENSOR_DUMP, &dump))
				return (void *)-1l;
			nr += messages(&dump, NULL);
			same &= !dump.flags;
			calls++;
		} while (dump.out_bytes);
		/* Whatever the other threads are at */
		if (dump.command == RDMATENSOR_NL_CMD_TENSOR_GET && same && nr < TENSORS + 1)
			return (void *)-2l;
	}
	return (void *)calls;
}

TEST(own_dumps_by_many_threads)
{
	pthread_t threads[RDMATENSOR_NL_CMD_TENSOR_GET + 1];
	struct rdmatensor_cqe cqe;
	struct side other;
	uint64_t at;
	void *calls;
	int i;

	pair_begin(4 << 20);
	publish(&p.a, "x", 0, 1 << 20, 1, 0, 0);
	for (i = 0; i < TENSORS; i++)
		publish(&p.a, "another name that has some length", i, 64, 1, 0, 0);
	at = side_alloc(&p.b, 1 << 20);
	for (i = RDMATENSOR_NL_CMD_CONTEXT_GET; i <= RDMATENSOR_NL_CMD_TENSOR_GET; i++)
		EQ(pthread_create(&threads[i], NULL, dump_all, (void *)(long)
				  (i == RDMATENSOR_NL_CMD_EVENT ? 1 : i)), 0);
	for (i = 0; i < 20; i++) {
		side_open(&other, "comes", 4096, 0, small);
		side_close(&other);
		memset(side_at(&p.b, at), 0, 1 << 20);
		EQ(rdmatensor_fetch(p.b.rt, p.b.channel, "x", 0, &p.b.pool, at, 1 << 20,
				    rdmatensor_deadline_ms(20000), &cqe), 0);
		CHECK(filled(side_at(&p.b, at), 1 << 20, 1));
		test_alive();
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (i = RDMATENSOR_NL_CMD_CONTEXT_GET; i <= RDMATENSOR_NL_CMD_TENSOR_GET; i++) {
		EQ(pthread_join(threads[i], &calls), 0);
		CHECK((long)calls > 0);
	}
}
