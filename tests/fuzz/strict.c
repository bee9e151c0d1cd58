// SPDX-License-Identifier: GPL-2.0
/*
 * Strict mode: what a peer can reach with the keys that it has ever been told. A fetch from the
 * liar is taken to each moment of its life; there every key is tried, by another peer's channel
 * and by the liar's own. All fail but the one way that is meant: the liar into the destination of
 * a fetch that is in flight from it.
 */
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "hostile.h"

/* Long enough to be under way while it ends; it ends within a page */
#define LONG_TENSOR (128 * 1024 - 100)
/* Within a page, in the middle of three places of that kind */
#define SHORT_TENSOR 1000
#define SHORT_ROOM 1024
#define KEYS_MAX 64
/* Of the keys that are known, so many are tried each time */
#define KEYS_TRIED 4

enum moment { CONNECTED, ASKED, EXPOSED, CANCELLING, CANCELLED, FAILED, ENDED, MOMENTS };

static const char *const moments[] = {
	[CONNECTED] = "before the fetch", [ASKED] = "before the destination is told",
	[EXPOSED] = "in flight", [CANCELLING] = "cancelled and not answered",
	[CANCELLED] = "cancelled", [FAILED] = "failed", [ENDED] = "ended",
};

static struct liar liar, other;

/* What was told of: a destination of @bytes at @addr. It is open as long as it is @live */
static struct told {
	uint64_t addr;
	uint32_t rkey;
	uint64_t bytes;
	bool live;
} told[KEYS_MAX];
static unsigned int nr_told;

static void tune_strict(struct rdmatensor_start *start)
{
	scene_tune(start);
	start->mr_mode = RDMATENSOR_MR_MODE_STRICT;
	start->cancel_ms = 5000;
}

static void remember(const struct rdmatensor_msg *msg)
{
	CHECK(nr_told < KEYS_MAX);
	CHECK(msg->nr_rkeys == 1);
	told[nr_told++] = (struct told){
		.addr = msg->remote_addr, .rkey = le32toh(msg->rkeys[0]),
		.bytes = msg->meta.bytes, .live = true,
	};
}

/* One more fetch, up to that moment. Return: its region */
static uint64_t live_until(enum moment moment, uint64_t id, uint64_t bytes)
{
	struct rdmatensor_msg msg, say;
	struct rdmatensor_op op;
	uint64_t at;

	if (moment == CONNECTED)
		return 0;
	at = scene_ask(id, bytes);
	scene_asked(&liar, &msg);
	if (moment == ASKED)
		return at;
	say = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
	say.meta.bytes = bytes;
	say.meta.dims[0] = bytes;
	/* The name is known after the first time, with a destination that fits */
	if (!(msg.flags & RDMATENSOR_WIRE_F_DEST)) {
		liar_say(&liar, &say);
		scene_asked(&liar, &msg);
	}
	remember(&msg);
	switch (moment) {
	case CANCELLING:
	case CANCELLED:
		rdmatensor_prep_cancel(&op, id);
		EQ(side_do(&scene.p.a, &op), 0);
		while (liar_hear(&liar, &say, 5000) != RDMATENSOR_WIRE_CANCEL)
			;
		if (moment == CANCELLING)
			break;
		say = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, msg.request_index);
		say.flags = RDMATENSOR_WIRE_F_CANCELLED;
		say.error = -ECANCELED;
		say.name_len = 0;
		liar_say(&liar, &say);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, id, NULL), -ECANCELED);
		told[nr_told - 1].live = false;
		break;
	case FAILED:
		say = scene_right(RDMATENSOR_WIRE_ERROR_STATUS, msg.request_index);
		liar_say(&liar, &say);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, id, NULL), -EIO);
		told[nr_told - 1].live = false;
		break;
	case ENDED:
		fill((void *)(liar.memory + LIAR_FROM), bytes, 3);
		EQ(liar_content(&liar, 0, msg.request_index, bytes, msg.remote_addr,
				told[nr_told - 1].rkey), 0);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, id, NULL), 0);
		told[nr_told - 1].live = false;
		break;
	default:
		break;
	}
	return at;
}

/* What the region has to have, whatever has been tried */
static void is_untouched(enum moment moment, uint64_t at, uint64_t bytes)
{
	if (moment != CONNECTED)
		CHECK(filled(side_at(&scene.p.a, at), bytes, moment == ENDED ? 3 : 9));
	CHECK(filled(side_at(&scene.p.a, scene.guard), GUARD, 8));
}

static int write_to(struct liar *from, uint64_t addr, uint32_t len, uint32_t rkey)
{
	memset(from->memory + LIAR_FROM, 0xee, len);
	return liar_post(from, 0, IBV_WR_RDMA_WRITE, LIAR_FROM, len, addr, rkey, 0);
}

/* By a peer of the same context, to whom nothing was told: that ends its channel alone */
static void another_tries(const struct told *key)
{
	uint32_t channel = scene.channel;

	scene_meet(&other, 1);
	CHECK(write_to(&other, key->addr, key->bytes, key->rkey) != IBV_WC_SUCCESS);
	scene_ends(&other, -ECONNRESET);
	scene.channel = channel;
}

/* The liar's own try ends its channel, and with it the fetch that is in flight */
static void it_fails(enum moment moment, uint64_t id, uint64_t addr, uint32_t len, uint32_t rkey)
{
	CHECK(write_to(&liar, addr, len, rkey) != IBV_WC_SUCCESS);
	if (moment == ASKED || moment == EXPOSED)
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, id, NULL), -ECONNRESET);
	else if (moment == CANCELLING)
		CHECK(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, id, NULL) < 0);
	if (nr_told)
		told[nr_told - 1].live = false;
	scene_ends(&liar, -ECONNRESET);
}

TEST(strict_keys_in_the_hands_of_another)
{
	enum moment moment;
	unsigned int i;
	uint64_t at;

	nr_told = 0;
	scene_open(tune_strict);
	for (moment = CONNECTED; moment < MOMENTS; moment++) {
		scene_meet(&liar, 1);
		at = live_until(moment, moment, TENSOR);
		for (i = nr_told > KEYS_TRIED ? nr_told - KEYS_TRIED : 0; i < nr_told; i++)
			another_tries(&told[i]);
		is_untouched(moment, at, TENSOR);
		if (moment == ASKED || moment == EXPOSED || moment == CANCELLING) {
			/* Nobody else's tries have disturbed it: the way that is meant is open */
			if (moment != ASKED)
				EQ(write_to(&liar, told[nr_told - 1].addr, TENSOR,
					    told[nr_told - 1].rkey), IBV_WC_SUCCESS);
			it_fails(moment, moment, 0x1000, 1, 0x1234);
		} else {
			scene_lives(&liar);
		}
	}
	printf("# %u keys at %d moments, the last: %s\n", nr_told, MOMENTS, moments[MOMENTS - 1]);
}

/* Keys of fetches that are over, in the hands of the one whom they were told */
TEST(strict_keys_that_are_over)
{
	unsigned int i, tries = 0;
	enum moment moment;
	uint64_t at, id = 0;

	nr_told = 0;
	scene_open(tune_strict);
	for (moment = ENDED; moment > CONNECTED; moment--) {
		for (i = 0; i < KEYS_TRIED; i++) {
			struct told key;

			scene_meet(&liar, 1);
			/* Of this connection, and of those before it */
			if (i % 2)
				live_until(ENDED, ++id, TENSOR);
			at = live_until(moment, ++id, TENSOR);
			key = told[nr_told > i ? nr_told - 1 - i : 0];
			if (key.live)
				key = told[nr_told - 2];
			CHECK(!key.live);
			it_fails(moment, id, key.addr, key.bytes, key.rkey);
			is_untouched(moment, at, TENSOR);
			tries++;
		}
	}
	printf("# %u tries\n", tries);
}

/* Beside the destination of a fetch in flight, a byte off, and by keys that are nearly right */
TEST(strict_bytes_beside_the_destination)
{
	static const struct {
		int64_t from;
		uint32_t len;
		uint32_t key;
	} tries[] = {
		{ -1, 1, 0 }, { SHORT_TENSOR, 1, 0 }, { -1, 2, 0 }, { SHORT_TENSOR - 1, 2, 0 },
		{ -SHORT_TENSOR, SHORT_TENSOR, 0 }, { SHORT_TENSOR, SHORT_TENSOR, 0 },
		{ -1, SHORT_TENSOR + 2, 0 }, { 0, SHORT_TENSOR + 1, 0 },
		{ 2 << 20, SHORT_TENSOR, 0 }, { -(2 << 20), SHORT_TENSOR, 0 },
		{ 0, SHORT_TENSOR, 1 }, { 0, SHORT_TENSOR, 255 }, { 0, SHORT_TENSOR, 256 },
		{ 0, SHORT_TENSOR, -256 },
	};
	struct rdmatensor_msg msg, meta;
	const struct told *key;
	struct rdmatensor_op op;
	uint64_t at;
	size_t i;

	scene_open(tune_strict);
	for (i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		scene_meet(&liar, 1);
		at = side_alloc(&scene.p.a, 3 * SHORT_ROOM);
		fill(side_at(&scene.p.a, at), 3 * SHORT_ROOM, 5);
		rdmatensor_prep_fetch(&op, scene.channel, "lie", 0, scene.p.a.pool.id,
				      at + SHORT_ROOM, SHORT_TENSOR, 0, i);
		EQ(side_do(&scene.p.a, &op), 0);
		scene_asked(&liar, &msg);
		meta = scene_right(RDMATENSOR_WIRE_META_DATA_RESPONSE, msg.request_index);
		meta.meta.bytes = SHORT_TENSOR;
		meta.meta.dims[0] = SHORT_TENSOR;
		liar_say(&liar, &meta);
		scene_asked(&liar, &msg);
		nr_told = 0;
		remember(&msg);
		key = &told[0];
		it_fails(EXPOSED, i, key->addr + tries[i].from, tries[i].len,
			 key->rkey + tries[i].key);
		CHECK(filled(side_at(&scene.p.a, at), 3 * SHORT_ROOM, 5));
		rdmatensor_prep_free(&op, scene.p.a.pool.id, at);
		EQ(side_do(&scene.p.a, &op), scene.p.a.whole ? -ENOENT : 0);
	}
}

struct writer {
	uint64_t addr;
	uint32_t rkey;
	atomic_uint writes;
};

/* Writes all of the destination by the second lane, other bytes each time, until that fails */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	int status;

	do {
		memset(liar.memory + LIAR_FROM, w->writes, LONG_TENSOR);
		status = liar_post(&liar, 1, IBV_WR_RDMA_WRITE, LIAR_FROM, LONG_TENSOR, w->addr,
				   w->rkey, 0);
		w->writes++;
	} while (status == IBV_WC_SUCCESS && w->writes < 100000);
	return NULL;
}

/* One that never stops to write: what is in the region when the entry is there stays there */
TEST(strict_writes_that_go_on)
{
	static unsigned char seen[LONG_TENSOR];
	unsigned int i, writes = 0;

	nr_told = 0;
	scene_open(tune_strict);
	for (i = 0; i < 8; i++) {
		struct writer w = {};
		pthread_t thread;
		uint64_t at;

		scene_meet(&liar, 2);
		at = live_until(EXPOSED, i, LONG_TENSOR);
		w.addr = told[nr_told - 1].addr;
		w.rkey = told[nr_told - 1].rkey;
		EQ(pthread_create(&thread, NULL, write_on, &w), 0);
		while (w.writes < 3)
			test_alive();
		/* Its index is the fetch's, as each connection has one; the content is one byte */
		liar_content(&liar, 0, 0, 1, w.addr + LONG_TENSOR - 1, w.rkey);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, i, NULL), 0);
		memcpy(seen, side_at(&scene.p.a, at), LONG_TENSOR);
		EQ(pthread_join(thread, NULL), 0);
		CHECK(!memcmp(seen, side_at(&scene.p.a, at), LONG_TENSOR));
		told[nr_told - 1].live = false;
		writes += w.writes;
		scene_ends(&liar, -ECONNRESET);
	}
	printf("# %u writes\n", writes);
}

static unsigned long long times_sent_again(void)
{
	unsigned long long times;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/rcvd_rnr_err",
		 liar.ids[0]->verbs->device->name);
	f = fopen(path, "r");
	CHECK(f);
	EQ(fscanf(f, "%llu", &times), 1);
	fclose(f);
	return times;
}

/*
 * One without receives: what it was sent is sent again and again, with other requests behind
 * that. Soft-RoCE executes registrations among them each time, if there are any
 */
TEST(strict_requests_that_are_sent_again)
{
	enum { BEHIND = 3 };
	uint64_t at[BEHIND], until, first = 1;
	unsigned long long before;
	struct rdmatensor_msg msg;
	struct rdmatensor_cqe cqe;
	unsigned int i;

	nr_told = 0;
	scene_open(tune_strict);
	liar_init(&liar, 1);
	/* HELLO, and a fetch by whose end the name is known */
	liar.nr_recvs = 3;
	liar.still = true;
	EQ(liar_connect(&liar, test_ip(), scene.p.a.port), 0);
	liar_hurry(&liar);
	liar_hello(&liar);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_HELLO);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	scene.channel = cqe.channel;
	live_until(ENDED, 0, TENSOR);

	before = times_sent_again();
	for (i = 0; i < BEHIND; i++)
		at[i] = scene_ask(first + i, TENSOR);
	until = rdmatensor_deadline_ms(5000);
	while (times_sent_again() < before + 4) {
		CHECK(rdmatensor_deadline_ms(0) < until);
		usleep(1000);
	}
	liar.still = false;
	/* Its acks take some, too */
	for (i = 0; i < 2 * BEHIND; i++)
		liar_recv(&liar);
	for (i = 0; i < BEHIND; i++) {
		scene_asked(&liar, &msg);
		CHECK(msg.flags & RDMATENSOR_WIRE_F_DEST);
		fill((void *)(liar.memory + LIAR_FROM), TENSOR, i + 3);
		EQ(liar_content(&liar, 0, msg.request_index, TENSOR, msg.remote_addr,
				le32toh(msg.rkeys[0])), 0);
		EQ(side_next(&scene.p.a, RDMATENSOR_CQE_FETCH, first + i, NULL), 0);
		CHECK(filled(side_at(&scene.p.a, at[i]), TENSOR, i + 3));
	}
	printf("# sent again %llu times\n", times_sent_again() - before);
	liar_close(&liar);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	scene_duty();
}
