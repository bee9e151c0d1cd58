// SPDX-License-Identifier: GPL-2.0
/* Strict mode: a channel goes while somebody works in its domain; exposures that fail */
#include "device.h"
#include "harness.h"
#include "hold.h"
#include "kmsg.h"
#include "points.h"

static struct pair p;
static uint64_t at;

static void tune_strict(struct rdmatensor_start *start)
{
	start->mr_mode = RDMATENSOR_MR_MODE_STRICT;
}

static int fetch_it(void)
{
	struct rdmatensor_cqe cqe;

	return rdmatensor_fetch(p.b.rt, p.b.channel, "x", 0, &p.b.pool, at, 5 << 20,
				rdmatensor_deadline_ms(15000), &cqe);
}

static void *fetcher(void *ret)
{
	*(int *)ret = fetch_it();
	return NULL;
}

static void open_strict(void)
{
	pair_open(&p, 8 << 20, tune_strict);
	publish(&p.a, "x", 0, 5 << 20, 1, 0, 1);
	at = side_alloc(&p.b, 5 << 20);
}

/* Its keys are made, in a domain that goes only after the thread has left it */
TEST(strict_channel_goes_under_a_submit)
{
	pthread_t thread;
	int ret = 0;

	open_strict();
	EQ(fetch_it(), 0);
	hold_at("fetch");
	EQ(pthread_create(&thread, NULL, fetcher, &ret), 0);
	hold_wait();
	EQ(rdmatensor_disconnect(p.a.rt, p.a.channel), 0);
	side_none(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, 500);
	hold_go();
	EQ(pthread_join(thread, NULL), 0);
	EQ(ret, -ENOTCONN);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	side_connect(&p.b, &p.a);
	EQ(fetch_it(), 0);
	CHECK(filled(side_at(&p.b, at), 5 << 20, 1));
}

static void *connecter(void *unused)
{
	char addr[64], cause[256];
	uint32_t channel;

	(void)unused;
	test_addr(addr, sizeof(addr), p.a.port);
	return (void *)(long)rdmatensor_connect(p.b.rt, addr, NULL, 5000, &channel, cause,
						sizeof(cause));
}

static void *removal(void *unused)
{
	(void)unused;
	return (void *)(long)device_del();
}

/*
 * The message buffers of a channel that is still being made are registered in its own domain. A
 * removal waits for that, and knows nothing of the channel
 */
TEST(strict_registration_that_does_not_complete)
{
	pthread_t connect, remove;
	void *ret;

	side_open(&p.a, "a", 8 << 20, 1, tune_strict);
	side_open(&p.b, "b", 8 << 20, 0, tune_strict);
	log_begin();
	hold_at("registered");
	EQ(pthread_create(&connect, NULL, connecter, NULL), 0);
	hold_wait();
	EQ(pthread_create(&remove, NULL, removal, NULL), 0);
	log_wait("does not complete what was posted");
	/* What is late ends before its queue does */
	hold_go();
	EQ(pthread_join(connect, &ret), 0);
	CHECK((long)ret < 0);
	EQ(pthread_join(remove, &ret), 0);
	EQ((long)ret, 0);
	side_close(&p.a);
	side_close(&p.b);
	EQ(device_add(), 0);
	side_open(&p.a, "after", 1 << 20, 1, NULL);
}

/* The channel may have failed, and not have heard of it yet */
static void recover(void)
{
	int ret, tries = 0;

	while ((ret = fetch_it()) == -ECONNRESET || ret == -ENOTCONN) {
		EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
		side_connect(&p.b, &p.a);
		CHECK(++tries < 3);
	}
	EQ(ret, 0);
}

/*
 * Each point of a fetch fails once, of a tensor that is known and of one that is not: the fetch
 * comes through or ends with an error, the channel lives or is made again, and the next fetch
 * comes through
 */
TEST(strict_exposures_that_fail)
{
	int n, known, failed = 0;

	open_strict();
	for (known = 0; known < 2; known++) {
		for (n = 0; ; n++) {
			int ret;

			/* What is known is so for the life of the channel */
			if (!known) {
				EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
				side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
				side_connect(&p.b, &p.a);
			}
			point_set(n);
			ret = fetch_it();
			if (!point_hit()) {
				EQ(ret, 0);
				break;
			}
			failed += ret != 0;
			recover();
			CHECK(filled(side_at(&p.b, at), 5 << 20, 1));
			memset(side_at(&p.b, at), 0, 5 << 20);
			test_alive();
		}
		printf("# %s: %d points\n", known ? "known" : "not known", n);
		CHECK(n > 5);
	}
	CHECK(failed > 0);
}

/* A fetch of "x" to memory that the kernel allocates; @op and @submit stay until it is submitted */
static void alloc_begin(struct caller *caller, struct rdmatensor_op *op,
			struct rdmatensor_submit *submit, uint64_t user_data)
{
	rdmatensor_prep_fetch_alloc(op, p.b.channel, "x", 0, p.b.pool.id, 0,
				    rdmatensor_deadline_ms(15000), user_data);
	*submit = (struct rdmatensor_submit){
		.size = sizeof(*submit), .op_size = sizeof(*op),
		.ops_uptr = rdmatensor_op_ptr(op), .nr_ops = 1,
	};
	caller_begin(caller, rdmatensor_fd(p.b.rt), RDMATENSOR_SUBMIT, submit);
}

static void alloc_end(uint64_t user_data)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, user_data, &cqe), 0);
	CHECK(filled(side_at(&p.b, cqe.offset), 5 << 20, 1));
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, cqe.offset), 0);
}

/*
 * A kernel thread makes the keys of the first fetch, of which one was paid for; the second fetch
 * pays what is owed. Until it has, no other fetch passes it
 */
TEST(strict_debt_is_seen_while_it_is_paid)
{
	struct rdmatensor_submit submits[3];
	struct rdmatensor_op ops[3];
	struct caller callers[3];
	uint64_t i;

	pair_open(&p, 32 << 20, tune_strict);
	publish(&p.a, "x", 0, 5 << 20, 1, 0, 1);
	alloc_begin(&callers[0], &ops[0], &submits[0], 1);
	EQ(caller_end(&callers[0]), 0);
	alloc_end(1);
	hold_at("quota_settle");
	alloc_begin(&callers[1], &ops[1], &submits[1], 2);
	hold_wait();
	alloc_begin(&callers[2], &ops[2], &submits[2], 3);
	caller_sleeps(&callers[2]);
	hold_go();
	for (i = 1; i < 3; i++)
		EQ(caller_end(&callers[i]), 0);
	for (i = 2; i < 4; i++)
		alloc_end(i);
}
