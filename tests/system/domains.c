// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: what contexts share by a descriptor, what stays when they end, and who is refused.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define BYTES 100000
#define POOL (1 << 20)

static struct side maker, heir, reader;
static int domain;

static void join(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_domain(start, domain), 0);
}

static int domain_of(struct side *side)
{
	int fd;

	EQ(rdmatensor_domain_create(side->rt, RDMATENSOR_DOMAIN_CLOEXEC, &fd), 0);
	return fd;
}

/* @maker, whose domain has a descriptor, and @heir, which has joined it */
static void open_both(void)
{
	side_open(&maker, "maker", POOL, 1, NULL);
	domain = domain_of(&maker);
	side_open(&heir, "heir", POOL, 1, join);
}

static void described(struct rdmatensor_domain_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	EQ(rdmatensor_domain_query(domain, query), 0);
}

/* The only tensor that is published with uses 0 */
static void only_lasting(struct side *side, struct rdmatensor_lasting_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	EQ(rdmatensor_lasting_query(side->rt, query), 0);
	EQ(rdmatensor_lasting_query(side->rt, query), -ENOENT);
}

static int withdraw(struct side *side, const char *name, int64_t step, uint64_t user_data)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, name, step, user_data);
	return side_do(side, &op);
}

static void withdrawn(struct side *side, const char *name, int64_t step, uint64_t user_data)
{
	EQ(withdraw(side, name, step, user_data), 0);
	EQ(side_next(side, RDMATENSOR_CQE_WITHDRAW, user_data, NULL), 0);
}

/* Fetched by @side over its channel, or from itself where it has none, and right */
static void comes(struct side *side, const char *name, int64_t step, unsigned int seed)
{
	struct rdmatensor_cqe cqe;
	uint64_t at;

	EQ(fetch(side, name, step, BYTES, &at, &cqe), 0);
	EQ(cqe.tensor_bytes, BYTES);
	CHECK(filled(side_at(side, at), BYTES, seed));
	EQ(rdmatensor_pool_free(side->rt, &side->pool, at), 0);
}

/* Refused with a text that has @why. Return: the errno */
static int start_refused(int fd, const char *device, const char *why)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	int ret;

	EQ(rdmatensor_open(NULL, &rt), 0);
	rdmatensor_start_init(&start, "refused");
	EQ(rdmatensor_start_domain(&start, fd), 0);
	snprintf(start.device_name, sizeof(start.device_name), "%s", device);
	ret = rdmatensor_start(rt, &start);
	rdmatensor_close(rt);
	if (!strstr(start.cause, why))
		test_fail(__FILE__, __LINE__, "\"%s\" is not in: %s", why, start.cause);
	return ret;
}

TEST(a_domain_outlives_the_context_that_made_it)
{
	struct rdmatensor_lasting_query lasting;
	struct rdmatensor_pool pool, again;
	struct rdmatensor_domain_query is;
	struct rdmatensor_pool_query query = { .size = sizeof(query) };
	uint64_t at;

	side_open(&maker, "maker", POOL, 1, NULL);
	domain = domain_of(&maker);
	at = publish(&maker, "n", 7, BYTES, 3, 0, 0);
	publish(&maker, "other", 7, BYTES, 4, 1, 1);
	pool = maker.pool;
	described(&is);
	EQ(is.contexts, 1);
	EQ(is.pools, 1);
	EQ(is.pool_bytes, POOL);
	EQ(is.lasting, 1);
	side_close(&maker);

	described(&is);
	EQ(is.contexts, 0);
	EQ(is.pools, 1);
	EQ(is.lasting, 1);
	CHECK(!is.flags && is.device_name[0]);

	side_open(&heir, "heir", POOL, 1, join);
	query.flags = RDMATENSOR_POOL_NEXT;
	EQ(rdmatensor_pool_query(heir.rt, &query), 0);
	EQ(query.pool_id, pool.id);
	EQ(query.bytes, POOL);
	CHECK(query.out_flags & RDMATENSOR_POOL_MAPPABLE);
	CHECK(query.keys);
	only_lasting(&heir, &lasting);
	EQ(lasting.step_id, 7);
	EQ(lasting.name_len, 1);
	EQ(lasting.name[0], 'n');
	EQ(lasting.pool_id, pool.id);
	EQ(lasting.offset, at);
	EQ(lasting.bytes, BYTES);
	EQ(lasting.ndims, 1);
	EQ(lasting.dims[0], BYTES);
	EQ(rdmatensor_pool_open(heir.rt, pool.id, &again), 0);
	CHECK(filled((unsigned char *)again.base + at, BYTES, 3));

	/* It is offered to the new one's peers, and to itself */
	side_open(&reader, "reader", POOL, 0, NULL);
	side_connect(&reader, &heir);
	comes(&reader, "n", 7, 3);
	comes(&reader, "n", 7, 3);
	comes(&heir, "n", 7, 3);

	/* And ends like one that it has published itself */
	EQ(rdmatensor_pool_destroy(heir.rt, &again), -EBUSY);
	withdrawn(&heir, "n", 7, 5);
	EQ(withdraw(&heir, "n", 7, 5), -ENOENT);
	EQ(rdmatensor_pool_free(heir.rt, &again, at), 0);
	EQ(rdmatensor_pool_destroy(heir.rt, &again), 0);
	EQ(rdmatensor_pool_open(heir.rt, pool.id, &again), -ENOENT);
	close(domain);
}

TEST(other_publications_end_with_their_context)
{
	struct rdmatensor_op op;
	uint64_t at;

	open_both();
	publish(&maker, "one", 0, BYTES, 1, 1, 1);
	side_close(&maker);
	at = side_alloc(&heir, BYTES);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "one", 0, heir.pool.id, at, BYTES,
			      rdmatensor_deadline_ms(50), 2);
	EQ(side_do(&heir, &op), 0);
	EQ(side_next(&heir, RDMATENSOR_CQE_FETCH, 2, NULL), -ETIMEDOUT);
	close(domain);
}

TEST(waiters_of_all_contexts_meet_a_lasting_tensor)
{
	struct rdmatensor_op op;
	uint64_t at[3];

	open_both();
	side_open(&reader, "reader", POOL, 0, NULL);
	side_connect(&reader, &heir);
	at[0] = side_alloc(&reader, BYTES);
	rdmatensor_prep_fetch(&op, reader.channel, "late", 1, reader.pool.id, at[0], BYTES, 0, 1);
	EQ(side_do(&reader, &op), 0);
	at[1] = side_alloc(&heir, BYTES);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "late", 1, heir.pool.id, at[1], BYTES,
			      0, 2);
	EQ(side_do(&heir, &op), 0);
	at[2] = side_alloc(&maker, BYTES);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "late", 1, maker.pool.id, at[2], BYTES,
			      0, 3);
	EQ(side_do(&maker, &op), 0);
	side_none(&reader, RDMATENSOR_CQE_FETCH, 1, 20);

	publish(&maker, "late", 1, BYTES, 9, 0, 0);
	EQ(side_next(&reader, RDMATENSOR_CQE_FETCH, 1, NULL), 0);
	EQ(side_next(&heir, RDMATENSOR_CQE_FETCH, 2, NULL), 0);
	EQ(side_next(&maker, RDMATENSOR_CQE_FETCH, 3, NULL), 0);
	CHECK(filled(side_at(&reader, at[0]), BYTES, 9));
	CHECK(filled(side_at(&heir, at[1]), BYTES, 9));
	CHECK(filled(side_at(&maker, at[2]), BYTES, 9));
	close(domain);
}

/* What a context offers itself goes first there; a name is lasting once */
TEST(names_in_a_domain)
{
	struct rdmatensor_op op;
	uint64_t at;
	uint64_t dim = BYTES;

	open_both();
	publish(&heir, "n", 0, BYTES, 1, 1, 1);
	publish(&maker, "n", 0, BYTES, 2, 0, 0);
	comes(&heir, "n", 0, 1);
	EQ(side_next(&heir, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
	comes(&heir, "n", 0, 2);

	at = side_alloc(&heir, BYTES);
	rdmatensor_prep_publish(&op, "n", 0, heir.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1, &dim,
				1, 3);
	EQ(side_do(&heir, &op), -EEXIST);
	op.uses = 0;
	EQ(side_do(&heir, &op), -EEXIST);
	/* Of another step it is another tensor */
	op.step_id = 1;
	EQ(side_do(&heir, &op), 0);
	withdrawn(&maker, "n", 1, 4);
	EQ(rdmatensor_pool_free(heir.rt, &heir.pool, at), 0);

	/* Its own goes first for WITHDRAW, too */
	publish(&maker, "own", 0, BYTES, 5, 1, 6);
	rdmatensor_prep_publish(&op, "own", 0, maker.pool.id, 0, 0, RDMATENSOR_DT_STRING, 0, NULL,
				0, 0);
	EQ(side_do(&maker, &op), -EEXIST);
	EQ(side_do(&heir, &op), 0);
	withdrawn(&maker, "own", 0, 7);
	EQ(side_next(&maker, RDMATENSOR_CQE_PUBLISH, 6, NULL), -ECANCELED);
	withdrawn(&maker, "own", 0, 8);
	EQ(withdraw(&maker, "own", 0, 8), -ENOENT);
	close(domain);
}

static void aborted(struct side *side, int64_t step)
{
	EQ(rdmatensor_step_abort(side->rt, step, -EIO, "no good"), 0);
}

/* Those that nobody offers any more, by the one letter of their names */
static void retired_are(const char *names)
{
	struct rdmatensor_lasting_query query = { .size = sizeof(query) };
	char found[16] = "", *at = found;

	while (!rdmatensor_lasting_query(heir.rt, &query))
		if (query.flags & RDMATENSOR_LASTING_RETIRED)
			*at++ = query.name[0];
	CHECK(!strcmp(found, names));
}

static int fetched_within(struct side *side, const char *name, int64_t step, int ms)
{
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, name, step, side->pool.id, 0, BYTES,
			      rdmatensor_deadline_ms(ms), 77);
	op.flags |= RDMATENSOR_OP_ALLOC;
	ret = side_do(side, &op);
	return ret ? ret : side_next(side, RDMATENSOR_CQE_FETCH, 77, NULL);
}

TEST(an_abort_in_a_domain)
{
	int i;

	open_both();
	publish(&maker, "m", 5, BYTES, 1, 0, 0);
	publish(&heir, "h", 5, BYTES, 2, 0, 0);
	aborted(&maker, 5);
	/* Who looks for them can tell */
	retired_are("m");
	EQ(fetched_within(&maker, "m", 5, 50), -EIO);
	EQ(fetched_within(&maker, "h", 5, 50), -EIO);
	/* What the publisher has given up, nobody offers; what another one has, others do */
	EQ(fetched_within(&heir, "m", 5, 50), -ETIMEDOUT);
	EQ(fetched_within(&heir, "h", 5, 5000), 0);
	/* Nor when the step is forgotten */
	for (i = 0; i < 64; i++)
		aborted(&maker, 100 + i);
	EQ(fetched_within(&maker, "m", 5, 50), -ETIMEDOUT);
	EQ(fetched_within(&maker, "h", 5, 5000), 0);
	withdrawn(&heir, "m", 5, 1);
	withdrawn(&maker, "h", 5, 2);
	close(domain);
}

/* @heir reads a tensor of @maker's until it releases it */
static uint32_t shared(void)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t dim = BYTES;
	uint64_t at;

	open_both();
	at = side_alloc(&maker, BYTES);
	fill(side_at(&maker, at), BYTES, 1);
	rdmatensor_prep_publish(&op, "n", 0, maker.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	op.flags |= RDMATENSOR_OP_SHARE;
	EQ(side_do(&maker, &op), 0);
	rdmatensor_prep_fetch_shared(&op, "n", 0, 0, 1);
	EQ(side_do(&heir, &op), 0);
	EQ(side_next(&heir, RDMATENSOR_CQE_FETCH, 1, &cqe), 0);
	EQ(cqe.pool_id, maker.pool.id);
	EQ(cqe.offset, at);
	return cqe.share_id;
}

static void released(uint32_t share)
{
	struct rdmatensor_op op;

	rdmatensor_prep_release(&op, 0);
	op.target = share;
	EQ(side_do(&heir, &op), 0);
}

TEST(a_withdraw_waits_for_readers_of_other_contexts)
{
	struct rdmatensor_lasting_query query;
	uint32_t share = shared();

	EQ(withdraw(&maker, "n", 0, 9), 0);
	EQ(withdraw(&heir, "n", 0, 10), -EALREADY);
	only_lasting(&heir, &query);
	EQ(query.flags, RDMATENSOR_LASTING_WITHDRAWING);
	side_none(&maker, RDMATENSOR_CQE_WITHDRAW, 9, 20);
	released(share);
	EQ(side_next(&maker, RDMATENSOR_CQE_WITHDRAW, 9, NULL), 0);
	close(domain);
}

TEST(a_context_that_ends_does_not_wait_for_readers_of_others)
{
	struct rdmatensor_domain_query is;
	uint32_t share = shared();
	uint64_t began;

	EQ(withdraw(&maker, "n", 0, 9), 0);
	began = rdmatensor_now_ns();
	side_close(&maker);
	CHECK(ms_since(began) < 10000);
	described(&is);
	EQ(is.contexts, 1);
	EQ(is.lasting, 1);
	released(share);
	described(&is);
	EQ(is.lasting, 0);
	close(domain);
}

/* Copies are in the domain's own memory, and outlive both the pool and the context */
TEST(copies_that_last)
{
	struct rdmatensor_lasting_query query;
	struct rdmatensor_op op;
	uint64_t dim = BYTES;
	uint64_t at;

	open_both();
	at = side_alloc(&maker, BYTES);
	fill(side_at(&maker, at), BYTES, 6);
	rdmatensor_prep_publish(&op, "copy", 0, maker.pool.id, at, BYTES, RDMATENSOR_DT_UINT8, 1,
				&dim, 0, 0);
	op.flags |= RDMATENSOR_OP_COPY;
	EQ(side_do(&maker, &op), 0);
	EQ(rdmatensor_pool_destroy(maker.rt, &maker.pool), 0);
	side_close(&maker);
	only_lasting(&heir, &query);
	EQ(query.flags, RDMATENSOR_LASTING_COPIED);
	EQ(query.pool_id, 0);
	comes(&heir, "copy", 0, 6);
	withdrawn(&heir, "copy", 0, 1);
	close(domain);
}

/* A process that has joined, publishes, and is killed while others fetch what it has published */
static pid_t doomed(int says)
{
	pid_t pid = fork();
	struct side side;

	if (pid)
		return pid;
	side_open(&side, "doomed", POOL, 0, join);
	publish(&side, "left", 0, BYTES, 8, 0, 0);
	publish(&side, "gone", 0, BYTES, 8, 5, 0);
	if (write(says, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void *fetches(void *arg)
{
	int *go_on = arg, n = 0;

	while (__atomic_load_n(go_on, __ATOMIC_RELAXED) || n < 20) {
		comes(&reader, "left", 0, 8);
		n++;
	}
	return NULL;
}

TEST(a_process_is_killed_and_its_domain_goes_on)
{
	struct rdmatensor_domain_query is;
	int says[2], go_on = 1;
	pthread_t thread;
	pid_t pid;
	char c;

	open_both();
	EQ(pipe(says), 0);
	pid = doomed(says[1]);
	EQ(read(says[0], &c, 1), 1);
	side_open(&reader, "reader", POOL, 0, NULL);
	side_connect(&reader, &heir);
	EQ(pthread_create(&thread, NULL, fetches, &go_on), 0);
	EQ(kill(pid, SIGKILL), 0);
	EQ(waitpid(pid, NULL, 0), pid);
	__atomic_store_n(&go_on, 0, __ATOMIC_RELAXED);
	EQ(pthread_join(thread, NULL), 0);
	EQ(fetched_within(&heir, "gone", 0, 50), -ETIMEDOUT);
	described(&is);
	EQ(is.contexts, 2);
	EQ(is.lasting, 1);
	withdrawn(&heir, "left", 0, 1);
	close(says[0]);
	close(says[1]);
	close(domain);
}

/* By a socket the domain goes on even while nobody has a descriptor */
TEST(a_domain_in_flight_between_processes)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr packet = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
	int ends[2];

	side_open(&maker, "maker", POOL, 1, NULL);
	domain = domain_of(&maker);
	publish(&maker, "n", 0, BYTES, 3, 0, 0);
	EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &domain, sizeof(int));
	EQ(sendmsg(ends[0], &packet, 0), 1);
	close(domain);
	side_close(&maker);

	EQ(recvmsg(ends[1], &packet, 0), 1);
	header = CMSG_FIRSTHDR(&packet);
	CHECK(header);
	memcpy(&domain, CMSG_DATA(header), sizeof(int));
	side_open(&heir, "heir", POOL, 0, join);
	comes(&heir, "n", 0, 3);
	close(ends[0]);
	close(ends[1]);
	close(domain);
}

#define OTHER "ip link add d9 type dummy && ip addr add 10.9.9.1/24 dev d9 && " \
	"ip link set d9 up && rdma link add rxe9 type rxe netdev d9"
#define NO_OTHER "rdma link del rxe9; ip link del d9"

static void device_param(const char *device)
{
	FILE *file = fopen("/sys/module/rdmatensor/parameters/device", "w");

	CHECK(file);
	fprintf(file, "%s\n", device);
	EQ(fclose(file), 0);
}

/* All contexts of a domain are on its device, whatever others there are */
TEST(a_domain_is_of_one_device)
{
	struct rdmatensor_query query;
	int ret;

	side_open(&maker, "maker", POOL, 1, NULL);
	domain = domain_of(&maker);
	EQ(system(OTHER), 0);
	ret = start_refused(domain, "rxe9", "means rxe9");
	/* Named by the domain, where the rule would not decide, and whatever device the host prefers */
	device_param("rxe9");
	side_open(&heir, "heir", POOL, 0, join);
	device_param("");
	EQ(rdmatensor_query(heir.rt, &query), 0);
	EQ(system(NO_OTHER), 0);
	EQ(ret, -EXDEV);
	CHECK(strcmp(query.device_name, "rxe9"));
	close(domain);
}

static void join_strictly(struct rdmatensor_start *start)
{
	EQ(rdmatensor_start_set(start, "mr_mode", RDMATENSOR_MR_MODE_STRICT), 0);
}

/* Who asks for strict mode has it, or is refused; who does not has that of the domain */
TEST(the_mode_of_a_domain)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;

	side_open(&maker, "maker", POOL, 1, NULL);
	domain = domain_of(&maker);
	EQ(rdmatensor_open(NULL, &rt), 0);
	rdmatensor_start_init(&start, "strict");
	join(&start);
	start.mr_mode = test_strict() ? RDMATENSOR_MR_MODE_POOL : RDMATENSOR_MR_MODE_STRICT;
	EQ(rdmatensor_start(rt, &start), -EINVAL);
	CHECK(strstr(start.cause, "mr_mode"));
	rdmatensor_close(rt);
	side_close(&maker);
	close(domain);

	side_open(&maker, "maker", POOL, 1, join_strictly);
	domain = domain_of(&maker);
	EQ(rdmatensor_open(NULL, &rt), 0);
	rdmatensor_start_init(&start, "joined");
	join(&start);
	EQ(rdmatensor_start(rt, &start), 0);
	EQ(start.mr_mode, RDMATENSOR_MR_MODE_STRICT);
	rdmatensor_close(rt);
	close(domain);
}

static int of_another_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		return __LINE__;
	return start_refused(domain, "", "network namespace") == -EXDEV ? 0 : __LINE__;
}

TEST(what_is_no_domain)
{
	struct rdmatensor_domain_query is = { .size = sizeof(is) };
	struct rdmatensor_domain_create create = { .size = sizeof(create) };
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	int ends[2];

	side_open(&maker, "maker", POOL, 1, NULL);
	domain = domain_of(&maker);
	EQ(pipe(ends), 0);
	EQ(start_refused(ends[0], "", "no descriptor of a domain"), -EINVAL);
	EQ(start_refused(rdmatensor_fd(maker.rt), "", "no descriptor of a domain"), -EINVAL);
	EQ(start_refused(4095, "", "not open"), -EBADF);
	EQ(start_refused(-1, "", "not open"), -EBADF);
	EQ(start_refused(domain, "no-such-device", "no-such-device"), -ENODEV);
	EQ(rdmatensor_domain_query(ends[0], &is), -EINVAL);
	EQ(rdmatensor_domain_query(rdmatensor_fd(maker.rt), &is), -EINVAL);
	EQ(ioctl(domain, RDMATENSOR_QUERY, &is), -1);
	EQ(errno, ENOTTY);
	is.__reserved = 1;
	EQ(rdmatensor_domain_query(domain, &is), -EINVAL);

	/* A program whose struct is shorter cannot mean it */
	EQ(rdmatensor_open(NULL, &rt), 0);
	EQ(ioctl(rdmatensor_fd(rt), RDMATENSOR_DOMAIN_CREATE, &create), -1);
	EQ(errno, ENOTCONN);
	rdmatensor_start_init(&start, "short");
	start.size = offsetof(struct rdmatensor_start, domain_fd);
	EQ(rdmatensor_start_domain(&start, domain), -EINVAL);
	start.flags |= RDMATENSOR_START_DOMAIN;
	EQ(rdmatensor_start(rt, &start), -EINVAL);
	CHECK(strstr(start.cause, "domain_fd"));
	rdmatensor_close(rt);
	create.flags = 2;
	EQ(ioctl(rdmatensor_fd(maker.rt), RDMATENSOR_DOMAIN_CREATE, &create), -1);
	EQ(errno, EINVAL);

	EQ(test_child(of_another_namespace), 0);
	close(ends[0]);
	close(ends[1]);
	close(domain);
}

/* With room for @most. Return: 0, or START's error; *@rt: it is open */
static int start_within(unsigned int most, struct rdmatensor **rt)
{
	struct rdmatensor_start start;

	test_param("max_contexts", most);
	EQ(rdmatensor_open(NULL, rt), 0);
	rdmatensor_start_init(&start, "one more");
	return rdmatensor_start(*rt, &start);
}

/* Domains that no context has count as one, so that descriptors are no way round the limit */
TEST(domains_count_as_contexts)
{
	unsigned int nr = 0;
	struct rdmatensor *rt;
	int copies[2], ret;

	/* What this host has already, whoever it is */
	do {
		ret = start_within(++nr, &rt);
		rdmatensor_close(rt);
	} while (ret == -EUSERS && nr < 100);
	EQ(ret, 0);

	test_param("max_contexts", 1024);
	side_open(&maker, "maker", POOL, 0, NULL);
	domain = domain_of(&maker);
	/* A second descriptor counts no more */
	copies[0] = domain_of(&maker);
	ret = start_within(nr + 1, &rt);
	rdmatensor_close(rt);
	test_param("max_contexts", 1024);
	EQ(ret, -EUSERS);
	side_close(&maker);
	/* Its place is free, that of the domain is not */
	ret = start_within(nr + 1, &rt);
	if (!ret)
		ret = rdmatensor_domain_create(rt, 0, &copies[1]);
	rdmatensor_close(rt);
	test_param("max_contexts", 1024);
	EQ(ret, -EUSERS);
	/* With the last descriptor it counts no more */
	close(copies[0]);
	close(domain);
	ret = start_within(nr, &rt);
	test_param("max_contexts", 1024);
	EQ(ret, 0);
	rdmatensor_close(rt);
}

#define LOCKED (4u << 20)

/* The pool of a domain that only a descriptor has is locked memory of its user still */
static int locked_by_a_descriptor(void)
{
	struct rdmatensor_pool pool;
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	int fd, i;

	for (i = 0; i < 3; i++) {
		rdmatensor_start_init(&start, "locked");
		start.ring_entries = 16;
		if (rdmatensor_open(NULL, &rt) || rdmatensor_start(rt, &start))
			return __LINE__;
		if (rdmatensor_pool_create(rt, LOCKED - (64 << 10), &pool) != (i % 2 ? -ENOMEM : 0))
			return __LINE__;
		if (i % 2 == 0 && rdmatensor_domain_create(rt, RDMATENSOR_DOMAIN_CLOEXEC, &fd))
			return __LINE__;
		rdmatensor_close(rt);
		if (i % 2)
			close(fd);
	}
	close(fd);
	return 0;
}

TEST(memory_of_a_domain_that_nobody_has_joined_is_locked)
{
	AS_USER(LOCKED, locked_by_a_descriptor);
}

static void device(int there)
{
	const char *name = getenv("LAB_RDMA_DEV"), *netdev = getenv("LAB_NETDEV");
	char command[128];

	if (!name)
		name = "rxe0";
	if (there)
		snprintf(command, sizeof(command), "rdma link add %s type rxe netdev %s", name,
			 netdev ? netdev : "d0");
	else
		snprintf(command, sizeof(command), "rdma link del %s", name);
	EQ(system(command), 0);
}

/* The domain, with or without contexts, does not keep the device, and is of no use after it */
static void device_goes(int joined)
{
	struct rdmatensor_domain_query is;
	struct rdmatensor_pool pool;
	int fd;

	open_both();
	publish(&maker, "n", 0, BYTES, 1, 0, 0);
	side_close(&maker);
	if (!joined)
		side_close(&heir);
	device(0);
	described(&is);
	EQ(is.flags, RDMATENSOR_DOMAIN_DEVICE_GONE);
	EQ(is.pools, 2);
	EQ(is.lasting, 1);
	EQ(start_refused(domain, "", "was removed"), -ENODEV);
	if (joined) {
		EQ(rdmatensor_pool_create(heir.rt, 4096, &pool), -ENODEV);
		EQ(rdmatensor_domain_create(heir.rt, 0, &fd), -ENODEV);
		/* Memory and what is published is there as before */
		comes(&heir, "n", 0, 1);
		withdrawn(&heir, "n", 0, 1);
	}
	device(1);
	EQ(start_refused(domain, "", "was removed"), -ENODEV);
	close(domain);
}

TEST(the_device_of_a_domain_goes)
{
	device_goes(0);
	device_goes(1);
}

/* Each mapping of a pool is for itself */
TEST(pools_that_are_opened_twice)
{
	struct rdmatensor_pool twice, again;
	uint64_t at;

	side_open(&maker, "maker", POOL, 0, NULL);
	at = side_alloc(&maker, BYTES);
	fill(side_at(&maker, at), BYTES, 1);
	EQ(rdmatensor_pool_open(maker.rt, maker.pool.id, &twice), 0);
	EQ(rdmatensor_pool_open(maker.rt, maker.pool.id, &again), 0);
	CHECK(twice.base != maker.pool.base && again.base != twice.base);
	rdmatensor_pool_close(maker.rt, &twice);
	EQ(twice.id, 0);
	CHECK(filled((unsigned char *)again.base + at, BYTES, 1));
	CHECK(filled(side_at(&maker, at), BYTES, 1));
	EQ(rdmatensor_pool_destroy(maker.rt, &again), 0);
	EQ(rdmatensor_pool_open(maker.rt, maker.pool.id, &twice), -ENOENT);
}

TEST(each_pool_and_tensor_of_a_domain_is_listed_once)
{
	struct rdmatensor_lasting_query lasting = { .size = sizeof(lasting) };
	struct rdmatensor_pool_query query = { .size = sizeof(query) };
	struct rdmatensor_pool pools[20];
	unsigned int i, seen = 0;
	char name[16];

	open_both();
	for (i = 0; i < 20; i++)
		EQ(rdmatensor_pool_create(i % 2 ? maker.rt : heir.rt, 4096 * (i + 1), &pools[i]),
		   0);
	query.flags = RDMATENSOR_POOL_NEXT;
	for (i = 0; i < 100 && !rdmatensor_pool_query(maker.rt, &query); i++)
		CHECK(query.bytes);
	EQ(i, 22);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		publish(i % 3 ? &maker : &heir, name, i, 100, i, 0, 0);
	}
	for (i = 0; !rdmatensor_lasting_query(heir.rt, &lasting); i++)
		seen |= 1u << lasting.step_id;
	EQ(i, 20);
	EQ(seen, (1u << 20) - 1);
	close(domain);
}
