// SPDX-License-Identifier: GPL-2.0
/*
 * For each call of the ABI: the first thing in the kernel that can fail for want of
 * memory, or for user memory that is not there, fails; then the second; and so on
 * until nothing is left. After each failure the same call must succeed.
 *
 * fail-nth (Documentation/fault-injection) counts what the calling thread does.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "exporter.h"
#include "harness.h"
#include "points.h"

static struct pair p;
static struct rdmatensor *rt;
static struct rdmatensor_pool pool;
static uint64_t place;
static uint64_t serial;
/* A point has failed behind a call that had succeeded: its channel may go */
static int shaken;

/* Of fetches, from before anything can fail: asking for the time is a call that fails, too */
static uint64_t deadline;

/* What is left of the count; opened before anything can fail */
static int nth_fd;

static void nth_write(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	/* The write itself may be what fails */
	if (pwrite(nth_fd, text, len, 0) != len)
		EQ(pwrite(nth_fd, text, len, 0), len);
}

/* True: it has come to that */
static int nth_hit(void)
{
	char text[16] = "";
	ssize_t len = pread(nth_fd, text, sizeof(text) - 1, 0);

	nth_write(0);
	/* If it was the read that failed, the call before had come through */
	return len > 0 && atoi(text) == 0;
}

/*
 * @op has no effect when it fails; @undo ends the effect that it has. One exception:
 * memory that results are written to may be there before the call has its effect, and
 * gone after it. Then -EFAULT comes too late, and the second call meets @again
 */
static void each_nth(const char *name, int (*op)(void), void (*undo)(void), int again)
{
	int refused = 0, late = 0, n, ret, hit;

	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	CHECK(nth_fd >= 0);
	for (n = 1; ; n++) {
		deadline = rdmatensor_deadline_ms(20000);
		nth_write(n);
		ret = op();
		hit = nth_hit();
		if (ret && !hit)
			test_fail(__FILE__, __LINE__, "%s: %d, but nothing has failed", name, ret);
		if (ret) {
			int first = ret;

			refused++;
			ret = op();
			if (first == -EFAULT && again && ret == again)
				late++;
			else if (ret)
				test_fail(__FILE__, __LINE__, "%s: %d again after failure %d: %d",
					  name, ret, n, first);
		}
		undo();
		if (!hit)
			break;
	}
	close(nth_fd);
	printf("# %s: %d failures, %d times refused\n", name, n - 1, refused);
	CHECK(refused > 0);
	CHECK(late < refused);
}

/*
 * The same with the module's own points of failure, one by one. fail-nth counts them
 * too, among what is not the same each time, and so may step over one. Return: how many
 * of them made @op fail
 */
static int fail_points(const char *name, int (*op)(void), void (*undo)(void))
{
	int n, ret, refused = 0;

	for (n = 0; ; n++) {
		deadline = rdmatensor_deadline_ms(20000);
		point_set(n);
		ret = op();
		if (!point_hit()) {
			EQ(ret, 0);
			undo();
			break;
		}
		if (ret) {
			int first = ret;

			refused++;
			ret = op();
			if (ret)
				test_fail(__FILE__, __LINE__, "%s: %d again after point %d: %d",
					  name, ret, n, first);
		} else {
			shaken = 1;
		}
		undo();
		shaken = 0;
	}
	printf("# %s: %d points, %d times refused\n", name, n, refused);
	CHECK(n > 0);
	return refused;
}

static void each_point(const char *name, int (*op)(void), void (*undo)(void))
{
	CHECK(fail_points(name, op, undo) > 0);
}

static int op_open(void)
{
	return rdmatensor_open(NULL, &rt);
}

static void undo_open(void)
{
	rdmatensor_close(rt);
}

TEST(nth_open)
{
	each_nth("open", op_open, undo_open, 0);
}

static int op_start(void)
{
	struct rdmatensor_start start;
	char addr[64];

	rdmatensor_start_init(&start, "nth");
	test_addr(addr, sizeof(addr), 0);
	EQ(rdmatensor_start_listen(&start, addr, NULL, 0), 0);
	return rdmatensor_start(rt, &start);
}

static void undo_start(void)
{
	rdmatensor_close(rt);
	EQ(rdmatensor_open(NULL, &rt), 0);
}

TEST(nth_start)
{
	EQ(rdmatensor_open(NULL, &rt), 0);
	each_nth("START", op_start, undo_start, -EISCONN);
	each_point("START", op_start, undo_start);
	rdmatensor_close(rt);
}

/* As START, in the domain of another context, which is as it was after each failure */
static int domain;

static int op_join(void)
{
	struct rdmatensor_start start;

	rdmatensor_start_init(&start, "joins");
	EQ(rdmatensor_start_domain(&start, domain), 0);
	return rdmatensor_start(rt, &start);
}

static int op_domain_create(void)
{
	return rdmatensor_domain_create(p.b.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain);
}

static void undo_domain_create(void)
{
	EQ(close(domain), 0);
}

TEST(nth_domains)
{
	struct rdmatensor_domain_query is = { .size = sizeof(is) };

	pair_open(&p, 1 << 20, NULL);
	each_nth("DOMAIN_CREATE", op_domain_create, undo_domain_create, 0);
	EQ(op_domain_create(), 0);
	EQ(rdmatensor_open(NULL, &rt), 0);
	each_nth("START in a domain", op_join, undo_start, -EISCONN);
	rdmatensor_close(rt);
	EQ(rdmatensor_domain_query(domain, &is), 0);
	EQ(is.contexts, 1);
	EQ(is.pools, 1);
	close(domain);
}

/* The point at which a device is tried, as none of the lab's has what it is tried for */
TEST(a_device_that_would_bounce)
{
	struct rdmatensor_start start;
	int n, ret = 0;

	EQ(rdmatensor_open(NULL, &rt), 0);
	for (n = 0; ret != -EOPNOTSUPP; n++) {
		point_set(n);
		rdmatensor_start_init(&start, "bounced");
		ret = rdmatensor_start(rt, &start);
		/* All points have been passed, and none was that */
		CHECK(point_hit());
	}
	CHECK(strstr(start.cause, "copies that nobody makes"));
	CHECK(strstr(start.cause, "take another device"));
	rdmatensor_start_init(&start, "bounced");
	EQ(rdmatensor_start(rt, &start), 0);
	rdmatensor_close(rt);
}

/* A pool that takes several keys of short pages, and one of long ones */
#define LONG (5ul << 20)
#define SHORT_SEGMENT (2ul << 20)

static struct side *maker;

static int op_pool_create(void)
{
	return rdmatensor_pool_create(maker->rt, LONG, &pool);
}

static void undo_pool_create(void)
{
	EQ(rdmatensor_pool_destroy(maker->rt, &pool), 0);
}

/* In short pages, and in long ones */
TEST(nth_pool_create)
{
	pair_open(&p, 1 << 20, NULL);
	maker = &p.b;
	each_nth("POOL_CREATE, mmap", op_pool_create, undo_pool_create, 0);
	each_point("POOL_CREATE", op_pool_create, undo_pool_create);
	maker = &p.a;
	each_nth("POOL_CREATE of long pages", op_pool_create, undo_pool_create, 0);
	/*
	 * Each of them is got over in short pages, but for what the RDMA cgroup refuses. That is the
	 * first one, which a space of 0 and one of 1 come to alike
	 */
	EQ(fail_points("POOL_CREATE of long pages", op_pool_create, undo_pool_create), 2);
}

/* Long pages that the device does not take: the pool comes in short ones, and works */
TEST(long_pages_that_are_refused)
{
	unsigned int keys = 0;
	int n, ret;

	pair_open(&p, 1 << 20, NULL);
	maker = &p.a;
	EQ(op_pool_create(), 0);
	EQ(keys_of(LONG), 1);
	undo_pool_create();
	for (n = 0; keys < 2; n++) {
		point_set(n);
		ret = op_pool_create();
		/* All points have been passed, and none was that */
		CHECK(point_hit());
		if (ret)
			continue;
		keys = keys_of(LONG);
		memset(pool.base, 0x77, LONG);
		undo_pool_create();
	}
	EQ(keys, (LONG + SHORT_SEGMENT - 1) / SHORT_SEGMENT);
}

static void *own_pages;

static int op_pool_register(void)
{
	return rdmatensor_pool_register(maker->rt, own_pages, LONG, RDMATENSOR_POOL_PEERS_WRITE,
					0, &pool, NULL, 0);
}

TEST(nth_pool_register)
{
	pair_open(&p, 1 << 20, NULL);
	maker = &p.b;
	own_pages = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	CHECK(own_pages != MAP_FAILED);
	each_nth("POOL_REGISTER", op_pool_register, undo_pool_create, 0);
	each_point("POOL_REGISTER", op_pool_register, undo_pool_create);
	munmap(own_pages, LONG);
}

static int own_buf;

static int op_pool_import(void)
{
	return rdmatensor_pool_import(maker->rt, own_buf, RDMATENSOR_POOL_PEERS_WRITE, 0, &pool,
				      NULL, NULL, 0);
}

/* The kernel warns when an exporter cannot map it: so another pool has had it mapped before */
TEST(nth_pool_import)
{
	const struct exporter *exporter;
	struct rdmatensor_pool first;

	pair_open(&p, 1 << 20, NULL);
	maker = &p.b;
	for (exporter = exporter_next(NULL); exporter; exporter = exporter_next(exporter)) {
		own_buf = exporter->export(LONG, O_RDWR);
		CHECK(own_buf >= 0);
		EQ(rdmatensor_pool_import(p.a.rt, own_buf, RDMATENSOR_POOL_PEERS_WRITE, 0, &first,
					  NULL, NULL, 0), 0);
		each_nth("POOL_IMPORT", op_pool_import, undo_pool_create, 0);
		each_point("POOL_IMPORT", op_pool_import, undo_pool_create);
		EQ(rdmatensor_pool_destroy(p.a.rt, &first), 0);
		close(own_buf);
	}
}

static int op_alloc(void)
{
	return rdmatensor_pool_alloc(p.b.rt, &p.b.pool, 1000, &place);
}

static void undo_alloc(void)
{
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, place), 0);
}

TEST(nth_pool_alloc)
{
	pair_open(&p, 1 << 20, NULL);
	each_nth("POOL_ALLOC", op_alloc, undo_alloc, 0);
}

static uint32_t channel;

static int op_connect(void)
{
	char addr[64], cause[160];

	test_addr(addr, sizeof(addr), p.a.port);
	return rdmatensor_connect(p.b.rt, addr, NULL, 2000, &channel, cause, sizeof(cause));
}

static void undo_connect(void)
{
	struct rdmatensor_cqe cqe;
	int ret;

	ret = rdmatensor_disconnect(p.b.rt, channel);
	CHECK(!ret || (shaken && ret == -ENOENT));
	ret = side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
	CHECK(ret == -ESHUTDOWN || (shaken && ret == -ECONNRESET));
	/* The other end's: whatever came up and went down there */
	while (rdmatensor_reap(p.a.rt, &cqe, 1))
		;
}

TEST(nth_connect)
{
	pair_open(&p, 1 << 20, NULL);
	each_nth("CONNECT", op_connect, undo_connect, 0);
}

/* Each receive that is posted is a point: few of them say as much as many */
static void few_receives(struct rdmatensor_start *start)
{
	start->msg_slots = 4;
	start->queue_depth = 16;
}

TEST(points_of_connect)
{
	pair_open(&p, 1 << 20, few_receives);
	each_point("CONNECT", op_connect, undo_connect);
}

static int op_publish(void)
{
	struct rdmatensor_op op;
	uint64_t dim = 1000;

	rdmatensor_prep_publish(&op, "nth", serial, p.b.pool.id, place, 1000,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, serial);
	return side_do(&p.b, &op);
}

static void undo_publish(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, "nth", serial, serial);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, serial, NULL), -ECANCELED);
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, serial, NULL), 0);
	serial++;
}

/* Each second byte */
static const struct rdmatensor_stride gaps = { 2, 1000 };

static int op_publish_view(void)
{
	struct rdmatensor_op op;
	uint64_t dim = 1000;

	rdmatensor_prep_publish(&op, "nth", serial, p.b.pool.id, place, 1000,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, serial);
	rdmatensor_prep_strides(&op, &gaps, 1);
	return side_do(&p.b, &op);
}

TEST(nth_publish)
{
	pair_open(&p, 1 << 20, NULL);
	place = side_alloc(&p.b, 2000);
	serial = 0;
	each_nth("PUBLISH", op_publish, undo_publish, -EEXIST);
	each_nth("PUBLISH of a view", op_publish_view, undo_publish, -EEXIST);
}

static int op_publish_lasting(void)
{
	struct rdmatensor_op op;
	uint64_t dim = 1000;

	rdmatensor_prep_publish(&op, "nth", serial, p.b.pool.id, place, 1000,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	return side_do(&p.b, &op);
}

static void undo_publish_lasting(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, "nth", serial, serial);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, serial, NULL), 0);
	serial++;
}

/* Until it is withdrawn: the range is free after each failure, as it is then */
TEST(nth_publish_lasting)
{
	struct rdmatensor_lasting_query query = { .size = sizeof(query) };

	pair_open(&p, 1 << 20, NULL);
	place = side_alloc(&p.b, 1000);
	each_nth("PUBLISH with uses 0", op_publish_lasting, undo_publish_lasting, -EEXIST);
	each_point("PUBLISH with uses 0", op_publish_lasting, undo_publish_lasting);
	EQ(rdmatensor_lasting_query(p.b.rt, &query), -ENOENT);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, place), 0);
}

/* Each time to a new buffer: the one before has been withdrawn with its tensor */
static int op_copy(void)
{
	struct rdmatensor_op op;
	uint64_t dim = 5000;

	rdmatensor_prep_publish(&op, "nth", serial, p.b.pool.id, place, 5000,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, serial);
	op.flags |= RDMATENSOR_OP_COPY;
	return side_do(&p.b, &op);
}

static void undo_copy(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, "nth", serial, serial);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, serial, NULL), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, serial, NULL), 0);
	serial++;
}

TEST(nth_copy)
{
	pair_open(&p, 1 << 20, NULL);
	place = side_alloc(&p.b, 5000);
	serial = 1;
	each_nth("PUBLISH, copied", op_copy, undo_copy, -EEXIST);
	each_point("PUBLISH, copied", op_copy, undo_copy);
}

static int op_withdraw(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, "nth", serial, serial);
	return side_do(&p.b, &op);
}

static void undo_withdraw(void)
{
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, serial, NULL), -ECANCELED);
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, serial, NULL), 0);
	serial++;
	EQ(op_publish(), 0);
}

TEST(nth_withdraw)
{
	pair_open(&p, 1 << 20, NULL);
	place = side_alloc(&p.b, 1000);
	serial = 0;
	EQ(op_publish(), 0);
	each_nth("WITHDRAW", op_withdraw, undo_withdraw, -ENOENT);
}

/*
 * The device may need memory to send, too, and soft-RoCE takes it in the task that
 * posts. If it gets none the queue pair fails, and the channel ends: that is known
 * when its entry comes, or when an operation says so
 */
static void reconnect(void)
{
	struct rdmatensor_cqe cqe;
	char addr[64], cause[160];

	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	test_addr(addr, sizeof(addr), p.a.port);
	EQ(rdmatensor_connect(p.b.rt, addr, NULL, 0, &p.b.channel, cause, sizeof(cause)), 0);
	while (rdmatensor_reap(p.a.rt, &cqe, 1))
		;
}

static int submit_fetch(const struct rdmatensor_op *op)
{
	struct rdmatensor_op again = *op;
	int ret = side_do(&p.b, op);

	if (ret != -ENOTCONN)
		return ret;
	/* It died of the failure before this one: that is not what is tried here */
	nth_write(0);
	reconnect();
	again.channel = p.b.channel;
	return side_do(&p.b, &again);
}

/* Fetches of this test that have ended */
static uint64_t ended;

/*
 * The fetch's entry; and another's of the same number, if one is in flight that was
 * taken, and the call that was to say so failed. Return: the last one's result
 */
static int ends_of(struct side *side, struct rdmatensor_cqe *cqe)
{
	int result;

	do {
		result = side_next(side, RDMATENSOR_CQE_FETCH, serial, cqe);
		ended++;
	} while (side_stat(side, RDMATENSOR_STAT_FETCHES) > ended);
	serial++;
	return result;
}

/* @ret: how it was to end; or with the channel, as above */
static void fetch_ended(int ret, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_cqe own;
	char text[RDMATENSOR_TEXT_MAX + 1];
	int result;

	cqe = cqe ? cqe : &own;
	result = ends_of(&p.b, cqe);
	rdmatensor_cqe_text(cqe, text, sizeof(text));
	if (result != ret && result != -ECONNRESET)
		printf("# fetch %llu: %s\n", (unsigned long long)serial - 1, text);
	if (result != -ECONNRESET)
		EQ(result, ret);
	else
		reconnect();
}

static int op_fetch(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, p.b.channel, "known", 0, p.b.pool.id, place, 1000,
			      deadline, serial);
	return submit_fetch(&op);
}

static int op_fetch_keep(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, p.b.channel, "known", 0, p.b.pool.id, place, 1000,
			      deadline, serial);
	op.flags |= RDMATENSOR_OP_KEEP;
	return submit_fetch(&op);
}

static int op_fetch_alloc(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "known", 0, p.b.pool.id, 0,
				    deadline, serial);
	return submit_fetch(&op);
}

static int op_fetch_strided(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, p.b.channel, "known", 0, p.b.pool.id, place, 1999,
			      deadline, serial);
	rdmatensor_prep_strides(&op, &gaps, 1);
	return submit_fetch(&op);
}

static unsigned char anywhere[1001];

static int op_fetch_proxied(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_memory(&op, p.b.channel, "known", 0, anywhere + 1, 1000, p.b.pool.id,
				     deadline, serial);
	return submit_fetch(&op);
}

static int op_fetch_new(void)
{
	struct rdmatensor_op op;
	char name[32];

	snprintf(name, sizeof(name), "new %llu", (unsigned long long)serial);
	rdmatensor_prep_fetch(&op, p.b.channel, name, 0, p.b.pool.id, place, 1000, 0, serial);
	return submit_fetch(&op);
}

static int op_fetch_self(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "known", 0, p.a.pool.id, place,
			      1000, 0, serial);
	return side_do(&p.a, &op);
}

static void undo_fetch(void)
{
	fetch_ended(0, NULL);
}

static void undo_fetch_proxied(void)
{
	struct rdmatensor_cqe cqe;

	fetch_ended(0, &cqe);
	CHECK(cqe.result || filled(anywhere + 1, 1000, 1));
	memset(anywhere, 0, sizeof(anywhere));
}

static void undo_fetch_alloc(void)
{
	struct rdmatensor_cqe cqe;

	fetch_ended(0, &cqe);
	if (!cqe.result)
		EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, cqe.offset), 0);
}

static void undo_fetch_new(void)
{
	struct rdmatensor_op op;

	int ret;

	rdmatensor_prep_cancel(&op, serial);
	ret = side_do(&p.b, &op);
	/* It may have ended with its channel already, which is what fetch_ended() finds then */
	CHECK(!ret || ret == -ENOENT);
	fetch_ended(-ECANCELED, NULL);
}

static void undo_fetch_self(void)
{
	EQ(ends_of(&p.a, NULL), 0);
}

TEST(nth_fetch)
{
	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "known", 0, 1000, 1, 0, 0);
	place = side_alloc(&p.b, 2000);
	serial = 0;
	ended = 0;
	each_nth("FETCH of a new name", op_fetch_new, undo_fetch_new, -EINVAL);
	EQ(op_fetch(), 0);
	undo_fetch();
	each_nth("FETCH of a known name", op_fetch, undo_fetch, -EINVAL);
	each_nth("FETCH that keeps its place", op_fetch_keep, undo_fetch, -EINVAL);
	/* In strict mode nothing is kept */
	EQ(side_stat(&p.b, RDMATENSOR_STAT_TX_SHORT_REQUESTS) > 0, !test_strict());
	each_nth("FETCH to a place with gaps", op_fetch_strided, undo_fetch, 0);
	each_nth("FETCH that has a proxy", op_fetch_proxied, undo_fetch_proxied, 0);
	each_nth("FETCH that allocates", op_fetch_alloc, undo_fetch_alloc, 0);
	place = side_alloc(&p.a, 1000);
	ended = 0;
	each_nth("loopback FETCH", op_fetch_self, undo_fetch_self, -EINVAL);
}

static int op_fetch_shared(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_shared(&op, "shared", 0, 0, serial);
	return side_do(&p.a, &op);
}

/* All that have come are returned */
static void undo_fetch_shared(void)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;

	do {
		EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, serial, &cqe), 0);
		ended++;
		rdmatensor_prep_release(&op, cqe.share_id);
		EQ(side_do(&p.a, &op), 0);
	} while (side_stat(&p.a, RDMATENSOR_STAT_FETCHES) > ended);
	serial++;
}

TEST(nth_shared)
{
	struct rdmatensor_op op;
	uint64_t dim = 1000;

	side_open(&p.a, "a", 1 << 20, 0, NULL);
	place = side_alloc(&p.a, 1000);
	rdmatensor_prep_publish(&op, "shared", 0, p.a.pool.id, place, 1000, RDMATENSOR_DT_UINT8,
				1, &dim, 0, 0);
	op.flags = RDMATENSOR_OP_SHARE;
	EQ(side_do(&p.a, &op), 0);
	serial = 0;
	ended = 0;
	each_nth("FETCH that shares", op_fetch_shared, undo_fetch_shared, 0);
	rdmatensor_prep_withdraw(&op, "shared", 0, 1);
	EQ(side_do(&p.a, &op), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_WITHDRAW, 1, NULL), 0);
	EQ(rdmatensor_pool_destroy(p.a.rt, &p.a.pool), 0);
}

static char long_text[RDMATENSOR_STATUS_TEXT_MAX + 1];
static uint32_t text_id;

static int op_publish_failed(void)
{
	struct rdmatensor_op op;

	rdmatensor_prep_publish_failed(&op, "nth", serial, -EIO, long_text, 1, serial);
	return side_do(&p.b, &op);
}

static int op_status_text(void)
{
	char text[sizeof(long_text)];
	struct rdmatensor_status_text arg = {
		.size = sizeof(arg), .text_id = text_id, .text_uptr = rdmatensor_op_ptr(text),
		.text_len = sizeof(text),
	};

	return ioctl(rdmatensor_fd(p.b.rt), RDMATENSOR_STATUS_TEXT, &arg) ? -errno : 0;
}

static int op_abort_with_text(void)
{
	return rdmatensor_step_abort(p.b.rt, 1000 + serial++ % 100, -EIO, long_text);
}

static void undo_abort(void)
{
}

TEST(nth_texts)
{
	struct rdmatensor_cqe cqe;

	memset(long_text, 'x', sizeof(long_text) - 1);
	side_open(&p.b, "b", 1 << 20, 0, NULL);
	serial = 0;
	each_nth("PUBLISH of a long failure", op_publish_failed, undo_publish, -EEXIST);
	each_nth("STEP_ABORT with a long text", op_abort_with_text, undo_abort, 0);
	serial = 5000;
	EQ(op_publish_failed(), 0);
	EQ(rdmatensor_fetch(p.b.rt, 0, "nth", serial, &p.b.pool, side_alloc(&p.b, 64), 64, 0,
			    &cqe), -EIO);
	text_id = cqe.text_id;
	CHECK(text_id);
	each_nth("STATUS_TEXT", op_status_text, undo_abort, 0);
}

static uint32_t table;
static uint64_t exports;

/* By another name each time: the region may be offered to readers more than once */
static int op_table_export(void)
{
	char name[32];

	snprintf(name, sizeof(name), "rows %llu", (unsigned long long)exports++);
	return rdmatensor_table_export(p.b.rt, name, &p.b.pool, place, 0, 8, 512, 0,
				       RDMATENSOR_DT_FLOAT, &table);
}

static int op_table_open(void)
{
	static const uint32_t self = RDMATENSOR_CHANNEL_SELF;
	struct rdmatensor_table_open open = {};
	int ret = rdmatensor_table_open(p.b.rt, "rows 0", &self, 1, &open);

	table = open.out_table;
	return ret;
}

static void undo_table(void)
{
	EQ(rdmatensor_table_close(p.b.rt, table), 0);
}

static int op_gather(void)
{
	static const uint64_t ids[4] = { 7, 0, 3, 3 };
	struct rdmatensor_op op;

	rdmatensor_prep_gather(&op, table, ids, 4, p.b.pool.id, place + 4096, 4 * 512, 0, serial);
	return side_do(&p.b, &op);
}

/* As ends_of(): the one before may have been taken, too */
static void undo_gather(void)
{
	do {
		int ret = side_next(&p.b, RDMATENSOR_CQE_GATHER, serial, NULL);

		ended++;
		if (!ret)
			continue;
		/* Ids that could not be read: its entry says so, and the same call succeeds */
		EQ(ret, -EFAULT);
		EQ(op_gather(), 0);
	} while (side_stat(&p.b, RDMATENSOR_STAT_GATHERS) > ended);
	serial++;
}

TEST(nth_tables)
{
	pair_open(&p, 1 << 20, NULL);
	place = side_alloc(&p.b, 8192);
	CHECK(!(place & 4095));
	exports = 0;
	EQ(op_table_export(), 0);
	each_nth("TABLE_EXPORT", op_table_export, undo_table, 0);
	each_point("TABLE_EXPORT", op_table_export, undo_table);
	each_nth("TABLE_OPEN", op_table_open, undo_table, 0);
	EQ(op_table_open(), 0);
	serial = 0;
	ended = 0;
	each_nth("GATHER", op_gather, undo_gather, -EINVAL);
}

static int op_query(void)
{
	struct rdmatensor_query query;

	return rdmatensor_query(p.b.rt, &query);
}

static int op_channel_query(void)
{
	struct rdmatensor_channel_query query = { .channel = p.b.channel };

	return rdmatensor_channel_query(p.b.rt, &query);
}

static int op_stats(void)
{
	uint64_t counters[RDMATENSOR_STAT_NR];
	int ret = rdmatensor_stats(p.b.rt, p.b.channel, counters, RDMATENSOR_STAT_NR);

	return ret < 0 ? ret : 0;
}

static int op_step_abort(void)
{
	return rdmatensor_step_abort(p.b.rt, 77, -EIO, "nth");
}

static void undo_nothing(void)
{
}

TEST(nth_others)
{
	pair_open(&p, 1 << 20, NULL);
	each_nth("QUERY", op_query, undo_nothing, 0);
	each_nth("CHANNEL_QUERY", op_channel_query, undo_nothing, 0);
	each_nth("STATS", op_stats, undo_nothing, 0);
	each_nth("STEP_ABORT", op_step_abort, undo_nothing, 0);
}
