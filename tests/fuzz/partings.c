// SPDX-License-Identifier: GPL-2.0
/*
 * How a channel ends by will. What one side has posted by then arrives, counts, and is
 * acknowledged, whoever leaves; and who does not answer is not waited for.
 *
 * The peer is the liar's verbs, honest but slow: what a device does at its own time, it does
 * when the test says so. A write that meets no receive has been posted and is not complete.
 */
#include <pthread.h>
#include <unistd.h>
#include "hostile.h"

/* A leave's bound on soft-RoCE, four times 268 ms, and what a busy machine adds to it */
enum { BOUND_MS = 1074, SLACK_MS = 4000 };

#define TENSOR_ID 77

static struct liar liar;

static int state(void)
{
	struct rdmatensor_channel_query query = { .channel = scene.channel };

	return rdmatensor_channel_query(scene.p.a.rt, &query) ? -1 : (int)query.state;
}

static void *leave(void *unused)
{
	liar_leave(&liar);
	return unused;
}

/* The victim has heard of the leave, or begun one */
static void wait_for_leave(void)
{
	uint64_t end = rdmatensor_deadline_ms(10000);

	while (state() == RDMATENSOR_CHANNEL_UP) {
		CHECK(rdmatensor_deadline_ms(0) < end);
		usleep(1000);
	}
}

static void *disconnect(void *ret)
{
	*(int *)ret = rdmatensor_disconnect(scene.p.a.rt, scene.channel);
	return ret;
}

/*
 * The victim publishes a tensor, for one that fetches it; the liar asks for that, and has no
 * receive for the content: it is posted, and does not complete
 */
static void hold_a_content(void)
{
	uint64_t writes = side_stat(&scene.p.a, RDMATENSOR_STAT_TX_WRITES);
	uint64_t end = rdmatensor_deadline_ms(10000);
	struct rdmatensor_msg msg;
	struct rdmatensor_cqe cqe;
	__le32 rkey;

	publish(&scene.p.a, "parting", 0, TENSOR, 5, 1, TENSOR_ID);
	liar_init(&liar, 1);
	liar.nr_recvs = 1;
	EQ(liar_connect(&liar, test_ip(), scene.p.a.port), 0);
	liar_hurry(&liar);
	liar_hello(&liar);
	/* Into the only receive */
	liar.still = true;
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_HELLO);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	scene.channel = cqe.channel;

	msg = scene_right(RDMATENSOR_WIRE_TENSOR_REQUEST, 0);
	msg.name = "parting";
	msg.name_len = strlen(msg.name);
	scene_to_own(&liar, &msg, &rkey);
	liar_say(&liar, &msg);
	while (side_stat(&scene.p.a, RDMATENSOR_STAT_TX_WRITES) == writes) {
		CHECK(rdmatensor_deadline_ms(0) < end);
		usleep(1000);
	}
}

/* The peer's own words may be faster than its device's: a content that arrives is delivered */
TEST(content_counts_whose_reader_has_left)
{
	pthread_t thread;

	scene_open(NULL);
	hold_a_content();
	CHECK(!pthread_create(&thread, NULL, leave, NULL));
	wait_for_leave();
	liar_recv(&liar);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_PUBLISH, TENSOR_ID, NULL), 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	CHECK(!pthread_join(thread, NULL));
	CHECK(filled((unsigned char *)liar.memory + LIAR_DEST, TENSOR, 5));
	liar_close(&liar);
	scene_duty();
}

/* The other side's leave is no reason to wait less */
TEST(content_counts_when_both_leave)
{
	pthread_t threads[2];
	int ret = 1;

	scene_open(NULL);
	hold_a_content();
	CHECK(!pthread_create(&threads[0], NULL, disconnect, &ret));
	wait_for_leave();
	CHECK(!pthread_create(&threads[1], NULL, leave, NULL));
	liar_recv(&liar);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_PUBLISH, TENSOR_ID, NULL), 0);
	CHECK(!pthread_join(threads[0], NULL));
	CHECK(!pthread_join(threads[1], NULL));
	EQ(ret, 0);
	scene_ends(&liar, -ESHUTDOWN);
}

/* One that does not arrive is offered again, and soon: nobody waits for ever */
static void offered_again(void (*end)(void))
{
	struct rdmatensor_cqe cqe;
	uint64_t began, at;

	scene_open(NULL);
	hold_a_content();
	began = rdmatensor_now_ns();
	end();
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	CHECK(ms_since(began) < BOUND_MS + SLACK_MS);
	side_none(&scene.p.a, RDMATENSOR_CQE_PUBLISH, TENSOR_ID, 0);
	EQ(fetch(&scene.p.b, "parting", 0, TENSOR, &at, &cqe), 0);
	CHECK(filled(side_at(&scene.p.b, at), TENSOR, 5));
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_PUBLISH, TENSOR_ID, NULL), 0);
	liar_close(&liar);
	scene_duty();
}

static void leave_without_it(void)
{
	liar_leave(&liar);
}

static void fail_without_it(void)
{
	liar_fail(&liar);
}

TEST(content_is_offered_again_if_its_reader_leaves_without_it)
{
	offered_again(leave_without_it);
}

TEST(content_is_offered_again_if_its_reader_fails)
{
	offered_again(fail_without_it);
}

/* Who leaves has a queue pair that answers until the other end has let go */
TEST(content_arrives_at_one_that_is_leaving)
{
	struct rdmatensor_msg msg, asked;
	pthread_t thread;
	int ret = 1, again;
	uint32_t rkey;

	scene_open(NULL);
	scene_meet(&liar, 2);
	scene_ask(9, TENSOR);
	scene_asked(&liar, &asked);
	msg = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, asked.request_index);
	msg.step_id = asked.step_id;
	liar_say(&liar, &msg);
	rkey = scene_asked(&liar, &asked);

	CHECK(!pthread_create(&thread, NULL, disconnect, &ret));
	CHECK(liar_is_left(&liar, 10000));
	liar.stays = true;
	EQ(liar_content(&liar, 0, asked.request_index, TENSOR, asked.remote_addr, rkey),
	   IBV_WC_SUCCESS);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, 9, NULL), 0);
	/* What it asks for now is not answered, and held by nobody */
	for (again = 0; again < 2; again++) {
		msg = (struct rdmatensor_msg){
			.type = RDMATENSOR_WIRE_TENSOR_REQUEST, .request_index = again,
			.name = "w", .name_len = 1,
		};
		liar_say(&liar, &msg);
	}
	liar_leave(&liar);
	CHECK(!pthread_join(thread, NULL));
	EQ(ret, 0);
	scene_ends(&liar, -ESHUTDOWN);
}

/* A peer that never lets go, and one whose last word is a write that never completes */
TEST(leaving_waits_for_nobody)
{
	uint64_t began;
	int how;

	for (how = 0; how < 4; how++) {
		scene_open(NULL);
		if (how % 2)
			hold_a_content();
		else
			scene_meet(&liar, 1);
		began = rdmatensor_now_ns();
		if (how < 2)
			EQ(rdmatensor_disconnect(scene.p.a.rt, scene.channel), 0);
		else
			side_close(&scene.p.a);
		CHECK(ms_since(began) < BOUND_MS + SLACK_MS);
		liar_close(&liar);
		side_close(&scene.p.a);
		side_close(&scene.p.b);
		side_close(&scene.stranger);
	}
}

/*
 * Each end tells the other one in time: a leave that waits for its bound takes a second. Every
 * other time who was connected leaves, as soon as it knows of the channel: before the last
 * message of the set-up, if that is slow
 */
TEST(leaving_is_quick)
{
	uint64_t began = rdmatensor_now_ns();
	struct rdmatensor_cqe cqe;
	int i;

	scene_open(NULL);
	for (i = 0; i < 40; i++) {
		struct side *from = i % 2 ? &scene.p.a : &scene.p.b;

		EQ(rdmatensor_disconnect(from->rt, from->channel), 0);
		EQ(side_next(&scene.p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL),
		   i % 2 ? -ECONNRESET : -ESHUTDOWN);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL),
		   i % 2 ? -ESHUTDOWN : -ECONNRESET);
		side_connect(&scene.p.b, &scene.p.a);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
		scene.p.a.channel = cqe.channel;
	}
	CHECK(ms_since(began) < 40 * BOUND_MS / 2);
	scene_duty();
}
